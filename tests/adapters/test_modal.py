import numpy as np
import pytest

from fastal import GaussianProcess, Stopper
from fastal.adapters import bounds_of

pytest.importorskip("modAL", reason="modAL is not installed")
import sklearn
from modAL.acquisition import max_UCB
from modAL.models import ActiveLearner, BayesianOptimizer, Committee
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
    pytest.skip(
        "modAL 0.4.2 passes `force_all_finite`, which scikit-learn 1.8 removed",
        allow_module_level=True,
    )

pytestmark = pytest.mark.filterwarnings("ignore:'force_all_finite' was renamed:FutureWarning")


def max_std(estimator, pool):
    index = int(estimator.predict(pool, return_std=True)[1].argmax())
    return index, pool[[index]]


def estimator(noise):
    return GaussianProcessRegressor(1.5 * RBF(0.9) + WhiteKernel(noise), alpha=1e-9, optimizer=None)


@pytest.mark.parametrize(
    ("kind", "strategy", "stops"),
    [(ActiveLearner, max_std, True), (BayesianOptimizer, max_UCB, False)],
)
def test_the_loop_decides_as_fastals_own_process(loop, kind, strategy, stops):
    X, y, noise = loop
    learner = kind(estimator(noise), query_strategy=strategy, X_training=X[:1], y_training=y[:1])
    stopper, order, pool = Stopper(), [0], list(range(1, 60))
    while pool and not stopper.after_fit(learner, initial=1):
        index, _ = learner.query(X[pool])
        new = pool.pop(int(np.ravel(index)[0]))
        learner.teach(X[[new]], y[[new]])
        order.append(new)
    seen = order if stopper.stopped else order[:-1]
    own = GaussianProcess(0.9, noise + 1e-9, amplitude=1.5).add_batch(X[seen], y[seen])[1:]
    np.testing.assert_allclose(stopper.bounds, own, rtol=1e-9)
    assert stopper.stopped is stops


@pytest.mark.parametrize("kind", [ActiveLearner, BayesianOptimizer])
@pytest.mark.parametrize("scaled", [False, True])
def test_recomputed(loop, kind, scaled):
    X, y, noise = loop
    model = make_pipeline(StandardScaler(), estimator(noise)) if scaled else estimator(noise)
    learner = kind(model, query_strategy=max_std, X_training=X[:3], y_training=y[:3])
    for t in range(3, 30):
        learner.teach(X[[t]], y[[t]])
    inputs = StandardScaler().fit_transform(X[:30]) if scaled else X[:30]
    got = bounds_of(learner)
    own = GaussianProcess(0.9, noise + 1e-9, amplitude=1.5).add_batch(inputs, y[:30])
    np.testing.assert_allclose(got, own, rtol=1e-8)
    np.testing.assert_array_equal(bounds_of(learner, X=X[:30], y=y[:30]), got)
    order = np.arange(30)[::-1]
    own = GaussianProcess(0.9, noise + 1e-9, amplitude=1.5).add_batch(inputs[order], y[order])
    np.testing.assert_allclose(bounds_of(learner, order=order), own, rtol=1e-9)


def test_bounds_of_a_learner_that_keeps_the_data_of_its_estimator(loop):
    X, y, _ = loop
    learner = ActiveLearner(BayesianRidge(), max_std, X_training=X, y_training=y)
    alone = BayesianRidge().fit(X, y)
    np.testing.assert_array_equal(bounds_of(learner), bounds_of(alone, X=X, y=y))


def test_bounds_refuses(loop):
    X, y, noise = loop

    def learner():
        return ActiveLearner(estimator(noise), max_std, X_training=X[:20], y_training=y[:20])

    other = r"`model.estimator` \(modAL\) was fitted to other rows than its labels"
    new = learner()
    new.teach(X[20:22], y[20:22], only_new=True)
    with pytest.raises(ValueError, match=other):
        bounds_of(new)
    drawn = learner()
    drawn.teach(X[20:22], y[20:22], bootstrap=True)
    with pytest.raises(ValueError, match=other):
        bounds_of(drawn)
    with pytest.raises(
        ValueError, match="was fitted to other rows than `X`: to 20 rows, `X` has 21"
    ):
        bounds_of(learner(), X=X[:21], y=y[:21])
    with pytest.raises(ValueError, match=r"`model.estimator` \(modAL\) must be fitted first"):
        bounds_of(ActiveLearner(estimator(noise)))
    changed = learner()
    changed.estimator.kernel_.set_params(k2__noise_level=0.5)
    with pytest.raises(ValueError, match=r"`model` \(modAL\) does not agree with its own"):
        bounds_of(changed)
    fitted = ActiveLearner(estimator(noise).fit(X[:20], y[:20]), max_std)
    np.testing.assert_array_equal(bounds_of(fitted), bounds_of(learner()))
    with pytest.raises(TypeError, match=r"`model` \(modAL\) must be an ActiveLearner or Bayes"):
        bounds_of(Committee([learner()]))
    forest = ActiveLearner(RandomForestRegressor(2), max_std, X_training=X, y_training=y)
    with pytest.raises(TypeError, match=r"`model.estimator` \(modAL\) must be a GaussianProcessR"):
        bounds_of(forest)
