"""bayesian-optimization: its process is scikit-learn's, and lags behind its labels."""

import numpy as np
import pytest

from fastal import Stopper, gp_kl
from fastal.adapters import bounds_of

pytest.importorskip("bayes_opt", reason="bayesian-optimization is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from bayes_opt import BayesianOptimization
from sklearn.gaussian_process import GaussianProcessRegressor

pytestmark = pytest.mark.filterwarnings("ignore:.*close to the specified:UserWarning")


def step_by_step(model):
    """Bounds from predictions of the model's own class, each fitted to the labels before."""
    X, y = model.X_train_, model.y_train_
    found = []
    for t in range(1, len(y)):
        prefix = GaussianProcessRegressor(model.kernel_, alpha=model.alpha, optimizer=None)
        mean, std = prefix.fit(X[:t], y[:t]).predict(X[[t]], return_std=True)
        found.append(gp_kl(float(mean[0]), float(std[0] ** 2), y[t], model.alpha))
    return np.array(found)


def optimiser(points=12, alpha=1e-2, **space):
    space = space or {"x": (-2.0, 2.0), "z": (-1.0, 3.0)}
    found = BayesianOptimization(None, space, random_state=1, verbose=0)
    found.set_gp_params(alpha=alpha)
    for _ in range(points):
        point = found.suggest()
        found.register(params=point, target=-float(sum(v**2 for v in point.values())))
    return found


def test_an_optimiser():
    bo = optimiser()
    bo.suggest()  # fits to all labels
    got = bounds_of(bo)
    assert len(got) == 12
    np.testing.assert_array_equal(got, bounds_of(bo._gp))
    np.testing.assert_allclose(got[1:], step_by_step(bo._gp), rtol=1e-6)
    stopper = Stopper()
    stopper.after_fit(bo, initial=2)
    assert len(stopper) == 10


def test_the_last_label_is_not_seen_before_the_next_suggest():
    bo = optimiser(6)
    said = r"`model` \(bayesian-optimization\) has 6 labels, and its model has seen 5 of them: ask"
    with pytest.raises(ValueError, match=said):
        bounds_of(bo)
    bo.suggest()
    assert len(bounds_of(bo)) == 6


def test_refuses():
    early = BayesianOptimization(None, {"x": (-2.0, 2.0)}, random_state=1, verbose=0)
    with pytest.raises(ValueError, match="has no model yet: it is fitted by `suggest`"):
        bounds_of(early)
    with pytest.raises(TypeError, match="must be a BayesianOptimization, got a TargetSpace"):
        bounds_of(early.space)
    exact = optimiser(4, alpha=1e-6)
    exact.suggest()
    with pytest.warns(UserWarning, match="takes labels as exact"):
        bounds_of(exact)


@pytest.mark.filterwarnings("ignore:Non-float parameters:UserWarning")
def test_whole_numbers():
    bo = optimiser(8, x=(-2.0, 2.0), n=(0, 5, int))
    bo.suggest()
    got = bounds_of(bo)
    np.testing.assert_allclose(got[1:], step_by_step(bo._gp), rtol=1e-6)
