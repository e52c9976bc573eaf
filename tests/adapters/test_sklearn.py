import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from fastal import (
    ConfidenceDrop,
    GaussianProcess,
    LaplaceClassifier,
    MinLabels,
    Stopper,
    gaussian_kl,
    stopping_time,
)
from fastal.adapters import bounds_from, update_from

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    WhiteKernel,
)
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def regressor(kernel, **settings):
    return GaussianProcessRegressor(kernel, optimizer=None, **settings)


def farthest(model, X, unlabelled):
    _, std = model.predict(X[unlabelled], return_std=True)
    return unlabelled[int(std.argmax())]


def follow(model, X, y, choose=farthest, stopper=None):
    """Label by a strategy, refit after each label; return the order of the labels and the stopper."""
    stopper = stopper or Stopper()
    order = [0]
    while len(order) < len(X):
        model.fit(X[order], y[order])
        new = choose(model, X, [i for i in range(len(X)) if i not in order])
        stop = stopper.update_from(model, X[new], y[new])
        order.append(new)
        if stop:
            break
    return order, stopper


# GaussianProcessRegressor


NOISE_IN = {
    "alpha": (1.5 * RBF(0.9), 0.01),
    "white": (1.5 * RBF(0.9) + WhiteKernel(0.01), 0.0),
    "both": (WhiteKernel(0.004) + 1.5 * RBF(0.9), 0.006),
    "two": (WhiteKernel(0.004) + (1.5 * RBF(0.9) + WhiteKernel(0.005)), 0.001),
    "within a product": (ConstantKernel(1.5) * (RBF(0.9) + WhiteKernel(0.006)), 0.001),
}


@pytest.mark.parametrize("where", NOISE_IN)
def test_the_loop_decides_as_fastals_own_process(loop, where):
    X, y, noise = loop
    kernel, alpha = NOISE_IN[where]
    order, stopper = follow(regressor(kernel, alpha=alpha), X, y)
    own = GaussianProcess(0.9, noise, amplitude=1.5).add_batch(X[order], y[order])[1:]
    np.testing.assert_allclose(stopper.bounds, own, rtol=1e-9)
    assert stopper.stopped
    assert stopper.stopped_at == stopping_time(own) < 50


@pytest.mark.parametrize(
    ("foreign", "own"),
    [
        (Matern([0.7, 1.4], nu=0.5), {"lengthscale": [0.7, 1.4], "kernel": "matern12"}),
        (Matern(0.9, nu=1.5), {"lengthscale": 0.9, "kernel": "matern32"}),
        (Matern(0.9, nu=2.5), {"lengthscale": 0.9, "kernel": "matern52"}),
        (RBF([0.7, 1.4]), {"lengthscale": [0.7, 1.4]}),
    ],
)
def test_kernels(loop, foreign, own):
    X, y, noise = loop
    model = regressor(foreign + WhiteKernel(noise), alpha=0.0).fit(X[:20], y[:20])
    process = GaussianProcess(noise=noise, **own)
    process.add_batch(X[:20], y[:20])
    expected = process.add_batch(X[20:], y[20:])
    np.testing.assert_allclose(bounds_from(model, X[20:], y[20:]), expected, rtol=1e-9)


def test_a_batch_is_as_good_as_one_label_after_another(loop):
    X, y, noise = loop
    together, apart = Stopper(), Stopper()
    model = regressor(RBF(0.9), alpha=noise)
    model.fit(X[:4], y[:4])
    together.update_from(model, X[4:], y[4:])
    for t in range(4, 60):
        model.fit(X[:t], y[:t])
        apart.update_from(model, X[t], y[t])
    np.testing.assert_allclose(together.bounds, apart.bounds, rtol=1e-9)
    assert together.stopped_at == apart.stopped_at


def test_normalised_labels(loop):
    X, y, noise = loop
    y = 100 + 20 * y
    model = regressor(RBF(0.9) + WhiteKernel(noise), alpha=0.001, normalize_y=True)
    stopper = Stopper()
    expected = []
    for t in range(2, 40):
        model.fit(X[:t], y[:t])
        stopper.update_from(model, X[t], y[t])
        # the prior that these t labels give: their mean and their variance
        mean, var = y[:t].mean(), y[:t].var()
        own = GaussianProcess(0.9, 0.011 * var, amplitude=var, mean=mean)
        own.add_batch(X[:t], y[:t])
        expected.append(own.add(X[t], y[t]))
    np.testing.assert_allclose(stopper.bounds, expected, rtol=1e-9)
    assert stopper.stopped_at == stopping_time(expected)


@pytest.mark.parametrize(
    "kernel",
    [
        WhiteKernel(0.1) * RBF(0.9) + RBF(0.9),
        (RBF(0.9) + WhiteKernel(0.1)) * (2.0 * Matern(1.1, nu=1.5) + WhiteKernel(0.3)),
        Exponentiation(RBF(0.9) + WhiteKernel(0.1), 3),
        DotProduct(0.0, "fixed") + RBF(0.5) * WhiteKernel(0.2) + WhiteKernel(0.1),
    ],
)
def test_white_noise_anywhere_in_a_kernel(loop, kernel):
    X, y, _ = loop
    model = regressor(kernel, alpha=0.05).fit(X[:15], y[:15])
    # what sklearn itself predicts with noise, minus the jump of the kernel at equal inputs
    at = X[15:20]
    mean, cov = model.predict(at, return_cov=True)
    noise = np.diag(kernel(at)) - np.diag(kernel(at, at))
    for i in range(5):
        got = bounds_from(model, at[i], y[15 + i])[0]
        stopper = Stopper()
        stopper.update(mean[i], cov[i, i] - noise[i], y[15 + i], noise[i] + 0.05)
        assert got == pytest.approx(stopper.bounds[0], rel=1e-9)


def test_noise_per_label(loop):
    X, y, _ = loop
    noise = np.linspace(0.01, 0.2, 60)
    own = GaussianProcess(0.9, 1.0)
    expected = own.add_batch(X, y, noise)[20:]
    model = regressor(RBF(0.9), alpha=noise[:20]).fit(X[:20], y[:20])
    with pytest.raises(
        ValueError, match=r"`noise` must be given: that of `model` \(scikit-learn\) is"
    ):
        bounds_from(model, X[20], y[20])
    np.testing.assert_allclose(bounds_from(model, X[20:], y[20:], noise[20:]), expected, rtol=1e-9)
    # equal values are one value
    even = regressor(RBF(0.9), alpha=np.full(20, 0.1)).fit(X[:20], y[:20])
    plain = regressor(RBF(0.9), alpha=0.1).fit(X[:20], y[:20])
    assert bounds_from(even, X[20], y[20]) == bounds_from(plain, X[20], y[20])


def test_a_pipeline(loop):
    X, y, noise = loop
    model = make_pipeline(StandardScaler(), regressor(RBF(0.9), alpha=noise)).fit(X[:20], y[:20])
    own = GaussianProcess(0.9 * X[:20].std(axis=0), noise)
    own.add_batch(X[:20], y[:20])
    np.testing.assert_allclose(bounds_from(model, X[20], y[20]), own.add(X[20], y[20]), rtol=1e-9)


def test_forms_of_inputs_and_labels(loop):
    X, y, noise = loop
    model = regressor(RBF(0.9), alpha=noise).fit(X[:9], y[:9])
    one = bounds_from(model, X[9], y[9])
    for x, label in [
        (X[9].tolist(), float(y[9])),
        (X[[9]], y[[9]]),
        (X[[9]], y[[9]].reshape(-1, 1)),
        (X[9].astype(object), [y[9]]),
    ]:
        np.testing.assert_array_equal(bounds_from(model, x, label), one)
    flat = regressor(RBF(0.9), alpha=noise).fit(X[:9, :1], y[:9])
    np.testing.assert_array_equal(
        bounds_from(flat, X[9:12, 0], y[9:12]), bounds_from(flat, X[9:12, :1], y[9:12])
    )
    # labels of shape (n, 1) are one output
    column = regressor(RBF(0.9), alpha=noise).fit(X[:9], y[:9].reshape(-1, 1))
    np.testing.assert_allclose(bounds_from(column, X[9], y[9]), one, rtol=1e-12)
    assert bounds_from(model, np.empty((0, 2)), []).shape == (0,)


def test_nothing_is_changed_and_criteria_compose(loop):
    X, y, noise = loop
    model = regressor(RBF(0.9) + WhiteKernel(noise)).fit(X[:9], y[:9])
    before = pickle.dumps(model)
    rule = Stopper() & MinLabels(5)
    assert update_from(rule, model, X[9:], y[9:]) == rule.stopped
    assert pickle.dumps(model) == before
    assert len(rule.members[0]) == 51


def test_compositions_take_labels_as_a_stopper_does(loop):
    X, y, _ = loop
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.01, optimizer=None).fit(X[:20], y[:20])
    rule, stopper = Stopper() & MinLabels(30), Stopper()
    for criterion in (rule, stopper):
        assert not criterion.update_from(model, X[20:23], y[20:23])
    np.testing.assert_array_equal(rule.members[0].bounds, stopper.bounds)
    for other in (ConfidenceDrop(2), rule | ConfidenceDrop(2)):
        with pytest.raises(
            TypeError, match="`criterion` must take bounds, got a ConfidenceDrop, which takes a con"
        ):
            update_from(other, model, X[20], y[20])
    with pytest.raises(TypeError, match=r"`criterion` must take bounds, .* got None"):
        update_from(None, model, X[20], y[20])
    assert len(stopper) == len(rule.members[0]) == 3


def test_a_subclass_is_known(loop):
    class Mine(GaussianProcessRegressor):
        pass

    X, y, noise = loop
    mine = Mine(RBF(0.9), alpha=noise, optimizer=None).fit(X[:9], y[:9])
    plain = regressor(RBF(0.9), alpha=noise).fit(X[:9], y[:9])
    assert bounds_from(mine, X[9], y[9]) == bounds_from(plain, X[9], y[9])


# BayesianRidge


@pytest.mark.parametrize(("features", "intercept"), [(3, True), (3, False), (12, True)])
def test_bayesian_ridge(features, intercept):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((45, features)) + 5.0
    y = X @ rng.standard_normal(features) + 0.3 * rng.standard_normal(45) + 2
    model, stopper = BayesianRidge(fit_intercept=intercept), Stopper()
    expected = []
    for t in range(6, 45):
        model.fit(X[:t], y[:t])
        stopper.update_from(model, X[t], y[t])
        # the posterior of the weights, before and after the label
        z = X[t] - model.X_offset_
        after = np.linalg.inv(np.linalg.inv(model.sigma_) + model.alpha_ * np.outer(z, z))
        shift = model.alpha_ * after @ z * (y[t] - model.predict(X[[t]])[0])
        kl = gaussian_kl(model.coef_, model.sigma_, model.coef_ + shift, (after + after.T) / 2)
        expected.append(kl)
    np.testing.assert_allclose(stopper.bounds, expected, rtol=1e-6)
    assert stopper.stopped_at == stopping_time(expected)


# GaussianProcessClassifier


def latent(K, target, seen):
    """Laplace approximation by a general optimiser: mean and covariance at all inputs of K."""
    root = np.linalg.cholesky(K)

    def loss(u):
        f = root @ u
        p = 1 / (1 + np.exp(-f))
        gradient = np.where(seen, p - target, 0.0)
        value = np.where(seen, np.logaddexp(0, f) - target * f, 0.0).sum() + u @ u / 2
        return value, root.T @ gradient + u

    best = minimize(loss, np.zeros(len(K)), jac=True, method="BFGS", options={"gtol": 1e-9})
    mean = root @ best.x
    p = 1 / (1 + np.exp(-mean))
    precision = np.linalg.inv(K) + np.diag(np.where(seen, p * (1 - p), 0.0))
    cov = np.linalg.inv(precision)
    return mean, (cov + cov.T) / 2


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(5)
    X = np.linspace(0, 3, 50)[rng.permutation(50), None]
    return X, np.where(np.sin(2 * np.pi * X[:, 0] / 1.5) > 0, "yes", "no")


@pytest.mark.parametrize("amplitude", [2.0, 50.0])
def test_a_classifier_gives_the_divergence_of_its_posteriors(classes, amplitude):
    X, y = classes
    kernel = amplitude * Matern(0.5, nu=0.5)
    model = GaussianProcessClassifier(kernel, optimizer=None)
    for t in (5, 12, 25):
        model.fit(X[:t], y[:t])
        K, target = kernel(X[: t + 1]), (y[: t + 1] == "yes").astype(float)
        index = np.arange(t + 1)
        expected = gaussian_kl(*latent(K, target, index < t), *latent(K, target, index <= t))
        assert bounds_from(model, X[t], y[t])[0] == pytest.approx(expected, rel=1e-6)


def test_a_classifier_agrees_with_its_own_refits(classes):
    # the posteriors that scikit-learn itself has before and after its fit to one more label
    X, y = classes
    kernel = 3.0 * Matern(0.3, nu=0.5)
    model = GaussianProcessClassifier(kernel, optimizer=None)
    for t in (11, 20, 35):
        K = kernel(X[: t + 1])
        posteriors, found = [], None
        for n in (t, t + 1):
            model.fit(X[:n], y[:n])
            found = bounds_from(model, X[t], y[t])[0] if n == t else found
            base = model.base_estimator_
            cross, root = K[:n], base.W_sr_
            V = np.linalg.solve(base.L_, root[:, None] * cross)
            posteriors += [cross.T @ (base.y_train_ - base.pi_), K - V.T @ V]
        # its Newton steps end when they gain less than 1e-10, so that modes are good to about 1e-5
        assert found == pytest.approx(gaussian_kl(*posteriors), rel=1e-5)


def test_a_classifier_loop_and_its_batches(classes):
    X, y = classes
    model = GaussianProcessClassifier(4.0 * RBF(0.3), optimizer=None)
    apart = Stopper()
    first = sorted(np.unique(y, return_index=True)[1])
    start = first[-1] + 1
    for t in range(start, 32):
        model.fit(X[:t], y[:t])
        apart.update_from(model, X[t], y[t])
    model.fit(X[:start], y[:start])
    together = bounds_from(model, X[start:32], y[start:32])
    np.testing.assert_allclose(together, apart.bounds, rtol=1e-7, atol=1e-12)
    assert stopping_time(together) == apart.stopped_at
    assert (together > 0).all()


@pytest.mark.parametrize("amplitude", [1.0, 30.0])
def test_a_classifier_decides_as_fastals_own(classes, amplitude):
    X, y = classes
    model = GaussianProcessClassifier(amplitude * RBF(0.3), optimizer=None).fit(X[:6], y[:6])
    own = LaplaceClassifier(0.3, amplitude=amplitude).add_batch(X, (y == "yes").astype(int))[6:]
    stopper = Stopper()
    stopper.update_from(model, X[6:], y[6:])
    np.testing.assert_allclose(stopper.bounds, own, rtol=1e-6)
    assert stopper.stopped_at == stopping_time(own)


def test_a_classifier_with_a_singular_kernel(classes):
    X, y = classes
    model = GaussianProcessClassifier(1e4 * RBF(5.0), optimizer=None).fit(X[:20], y[:20])
    again = bounds_from(model, X[3], y[3])  # an input that has a label already
    assert 0 <= again[0] < np.inf


# Bad input


def test_an_unfitted_model(loop):
    X, y, _ = loop
    stopper = Stopper()
    for model in (regressor(RBF()), BayesianRidge(), GaussianProcessClassifier()):
        with pytest.raises(ValueError, match=r"`model` \(scikit-learn\) must be fitted first"):
            stopper.update_from(model, X[0], y[0])
    with pytest.raises(ValueError, match=r"`model` \(scikit-learn\) must be fitted first"):
        stopper.update_from(make_pipeline(StandardScaler(), regressor(RBF())), X[0], y[0])
    assert len(stopper) == 0


def test_models_without_a_posterior(loop):
    X, y, _ = loop
    forest = RandomForestRegressor(2).fit(X, y)
    wanted = (
        r"\(scikit-learn\) must be a GaussianProcessRegressor or BayesianRidge or ARDReg.* Random"
    )
    with pytest.raises(TypeError, match=wanted):
        bounds_from(forest, X[0], y[0])
    with pytest.raises(
        TypeError, match=r"`model` must be of scikit-learn, modAL, .* got a object;"
    ):
        Stopper().update_from(object(), X[0], y[0])
    with pytest.raises(TypeError, match=r"Stopper.update takes the posterior of any model"):
        Stopper().update_from(GaussianProcess(), X[0], y[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [1.0, np.nan]}, "`x` must be finite, got nan"),
        ({"x": [1.0, 2.0, 3.0]}, "`x` must have 2 features as `model` .scikit-learn., got shape"),
        (
            {"x": np.zeros((3, 2))},
            r"`x` must have one row for each of 1 labels, got shape \(3, 2\)",
        ),
        ({"y": np.zeros((2, 2))}, r"`y` must be one label or have shape .m,., got shape \(2, 2\)"),
        ({"y": np.nan}, "`y` must be finite, got nan"),
        ({"y": 1e300}, "the bound of label 0 overflows: `y` = 1e.300 is too far"),
        ({"noise": -1.0}, "`noise` must be positive, got -1.0"),
        ({"noise": [1.0, 2.0]}, "`noise` must be one number or one per label .1., got shape"),
    ],
)
def test_bad_arguments(loop, change, message):
    X, y, noise = loop
    model = regressor(RBF(0.9), alpha=noise).fit(X[:9], y[:9])
    stopper = Stopper()
    with pytest.raises(ValueError, match=message):
        stopper.update_from(model, **{"x": X[9], "y": y[9], **change})
    assert len(stopper) == 0


def test_what_a_model_predicts_is_checked(loop):
    X, y, _ = loop
    model = regressor(RBF(0.9), alpha=1e-14).fit(X[:1], y[:1])
    factor = model.L_.copy()
    # s = 1 - k^2 / L^2 at the labelled input: below zero by rounding, and by more than that
    model.L_ = factor * (1 - 1e-12)
    assert bounds_from(model, X[0], y[0], 0.1) == 0.0
    model.L_ = factor * (1 - 1e-9)
    with pytest.raises(ValueError, match=r"`var` of `model` \(scikit-learn\) must not be negative"):
        bounds_from(model, X[0], y[0])
    model.L_ = factor * np.nan
    with pytest.raises(
        ValueError, match=r"`var` of `model` \(scikit-learn\) must be finite, got nan"
    ):
        bounds_from(model, X[0], y[0])
    model.L_, model.alpha_ = factor, model.alpha_ * np.inf
    with pytest.raises(ValueError, match=r"`mean` of `model` .* must be finite, got -?(inf|nan)"):
        bounds_from(model, X[0], y[0])
    silent = regressor(RBF(0.9), alpha=0.0).fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="`noise` must be given: that of `model`"):
        bounds_from(silent, X[3], y[3])
    for scaled in (False, True):
        two = regressor(RBF(0.9), alpha=0.1, normalize_y=scaled).fit(X[:9], np.c_[y, y * y][:9])
        for m in (1, 2, 3):
            with pytest.raises(
                ValueError, match=r"`model` \(scikit-learn\) must have one output, got 2"
            ):
                bounds_from(two, X[9 : 9 + m], y[9 : 9 + m])


def test_bad_input_to_a_classifier(classes):
    X, y = classes
    model = GaussianProcessClassifier(RBF(0.3), optimizer=None).fit(X[:20], y[:20])
    with pytest.raises(
        ValueError, match=r"`y` must be one of the classes \['no', 'yes'\] of .* 'may"
    ):
        bounds_from(model, X[20], "maybe")
    with pytest.raises(ValueError, match="`noise` has no meaning for the classes of `model`"):
        bounds_from(model, X[20], y[20], 0.1)
    model.base_estimator_.kernel_ = np.nan * model.base_estimator_.kernel_
    with pytest.raises(ValueError, match=r"prior `var` of `model` \(scikit-learn\) must be finite"):
        bounds_from(model, X[20], y[20])
    three = GaussianProcessClassifier(RBF(0.3), optimizer=None).fit(X[:20], np.arange(20) % 3)
    with pytest.raises(
        ValueError, match=r"`model` \(scikit-learn\) must have two classes, got \[0,"
    ):
        bounds_from(three, X[20], 1)


def test_no_library_is_imported_before_it_is_needed():
    code = (
        "import fastal.adapters, sys\n"
        "try: fastal.Stopper().update_from(1, 2, 3)\n"
        "except TypeError: pass\n"
        "print({'sklearn', 'modAL', 'skactiveml', 'torch', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
