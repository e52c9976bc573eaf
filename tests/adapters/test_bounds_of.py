"""All bounds of fitted models: against the library's own predictions, label by label."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastal import GaussianProcess, MovementBelow, Stopper, gp_bounds, gp_kl
from fastal.adapters import bounds_of
from fastal.adapters.all_bounds import JITTER
from fastal.adapters.trained import at_edge
from fastal.models import LaplaceClassifier

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC


def regressor(kernel, **settings):
    return GaussianProcessRegressor(kernel, **{"optimizer": None, **settings})


def white_of(kernel, X):
    """The white noise of a kernel at X, by the difference of its two diagonals."""
    return kernel.diag(X) - np.diag(kernel(X, X))


def step_by_step(model, X, y):
    """Bounds from T predictions of scikit-learn, each fitted to the labels before.

    The kernel, `alpha` and the scaling of y are those of the fitted model.
    """
    scaled = (y - model._y_train_mean) / model._y_train_std
    alpha = np.broadcast_to(model.alpha, len(y))
    white = white_of(model.kernel_, X)
    found = []
    for t in range(len(y)):
        prefix = regressor(clone(model.kernel_), alpha=alpha[:t] if t else 1.0)
        if t:
            prefix.fit(X[:t], scaled[:t])
        mean, std = map(np.ravel, prefix.predict(X[[t]], return_std=True))
        noise = white[t] + alpha[t]
        found.append(gp_kl(float(mean[0]), float(std[0] ** 2 - white[t]), scaled[t], noise))
    return np.array(found)


# fastal's own


def test_own(loop):
    X, y, _ = loop
    noise = np.linspace(0.01, 0.1, 60)
    gp = GaussianProcess([0.9, 1.2], 0.01, amplitude=1.5, mean=0.3)
    added = gp.add_batch(X, y, noise)
    got = bounds_of(gp)
    assert isinstance(got, np.ndarray)
    assert got.at_edge is False
    np.testing.assert_array_equal(got, gp.bounds())
    np.testing.assert_allclose(got, added, rtol=1e-9)
    # step by step, from its own predictions
    before = GaussianProcess([0.9, 1.2], 0.01, amplitude=1.5, mean=0.3)
    for x, label, variance, bound in zip(X, y, noise, got, strict=True):
        mean, var = before.predict([x], return_var=True)
        assert bound == pytest.approx(gp_kl(mean[0], var[0], label, variance), rel=1e-6)
        before.add(x, label, variance)
    # rows to compare: the same, by another way
    np.testing.assert_allclose(bounds_of(gp, X=X, y=y), added, rtol=1e-9)
    order = np.random.default_rng(0).permutation(60)
    other = GaussianProcess([0.9, 1.2], 0.01, amplitude=1.5, mean=0.3)
    np.testing.assert_allclose(
        bounds_of(gp, order=order),
        other.add_batch(X[order], y[order], noise[order]),
        rtol=1e-9,
    )
    assert gp.n_labels == 60


def test_own_without_labels_and_other_models():
    assert bounds_of(GaussianProcess()).shape == (0,)
    assert bounds_of(GaussianProcess(), order=[]).shape == (0,)
    model = LaplaceClassifier()
    added = [model.add(x, label) for x, label in ((0.0, 1), (0.5, -1), (2.0, 1))]
    np.testing.assert_allclose(bounds_of(model), added, rtol=1e-9)
    with pytest.raises(TypeError, match=r"`model` \(fastal\) must be a GaussianProcess, got a Lap"):
        bounds_of(model, order=[0, 1, 2])
    with pytest.raises(TypeError, match=r"`model` \(fastal\) must be a GaussianProcess, got a Sto"):
        bounds_of(Stopper())


def test_own_rows_are_compared(loop):
    X, y, _ = loop
    gp = GaussianProcess(0.9, 0.01)
    gp.add_batch(X[:9], y[:9])
    with pytest.raises(
        ValueError, match=r"`model` \(fastal\) was fitted to other rows than `X`: to 9"
    ):
        bounds_of(gp, X=X[:10])
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 0 is"):
        bounds_of(gp, y=y[8::-1])
    with pytest.raises(
        ValueError, match=r"`X` must have 2 features as `model` \(fastal\), got shape"
    ):
        bounds_of(gp, X=X[:9, 0])


def test_features_of_other_scales_are_compared_too():
    X = np.c_[np.arange(9) * 1e6, np.arange(9) * 1e-6]
    model = regressor(RBF([1e6, 1e-6]), alpha=0.1).fit(X, np.arange(9.0))
    bounds_of(model, X=X)
    X[3, 1] += 1e-7
    with pytest.raises(ValueError, match="was fitted to other rows than `X`: row 3 is"):
        bounds_of(model, X=X)


def test_an_unknown_model():
    with pytest.raises(
        TypeError, match=r"got a str; fastal\.gp_bounds takes the covariance of any"
    ):
        bounds_of("model")


# scikit-learn

KERNELS = {
    "alpha": (1.5 * RBF(0.9), {"alpha": 0.01}),
    "white": (1.5 * RBF(0.9) + WhiteKernel(0.01), {"alpha": 0.0}),
    "both": (WhiteKernel(0.004) + 1.5 * RBF([0.9, 1.3]), {"alpha": 0.006}),
    "two": (WhiteKernel(0.004) + (1.5 * RBF(0.9) + WhiteKernel(0.005)), {"alpha": 0.001}),
    "in a product": (ConstantKernel(1.5) * (Matern(0.9) + WhiteKernel(0.006)), {"alpha": 0.001}),
    "in a power": ((RBF(0.9) + WhiteKernel(0.006)) ** 2, {"alpha": 0.001}),
    "trend": (DotProduct(1.0) + RationalQuadratic(0.9) + WhiteKernel(0.02), {"alpha": 1e-10}),
    "each": (Matern([0.9, 1.3], nu=1.5), {"alpha": np.linspace(0.01, 0.2, 30)}),
    "each and white": (RBF(0.9) + WhiteKernel(0.1), {"alpha": np.linspace(0.01, 0.2, 30)}),
    "default": (None, {"alpha": 0.01}),
}


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("which", KERNELS)
def test_scikit_learn(loop, which, normalize):
    X, y, _ = loop
    X, y = X[:30], 100 + 20 * y[:30] if normalize else y[:30]
    kernel, settings = KERNELS[which]
    model = regressor(kernel, normalize_y=normalize, **settings).fit(X, y)
    got = bounds_of(model)
    np.testing.assert_allclose(got, step_by_step(model, X, y), rtol=1e-6)
    assert got.at_edge is False
    # the rows it was fitted to are no others
    np.testing.assert_array_equal(bounds_of(model, X=X, y=y), got)


@given(st.integers(1, 25), st.integers(0, 1000))
def test_an_order_is_a_fit_in_that_order(loop, t, seed):
    X, y, _ = loop
    order = np.random.default_rng(seed).permutation(t)
    alpha = np.linspace(0.01, 0.2, t)
    kernel = 1.5 * RBF(0.9) + WhiteKernel(0.01)
    model = regressor(kernel, alpha=alpha).fit(X[:t], y[:t])
    other = regressor(kernel, alpha=alpha[order]).fit(X[order], y[order])
    np.testing.assert_allclose(bounds_of(model, order=order.tolist()), bounds_of(other), rtol=1e-9)


def test_a_fitted_kernel_and_a_pipeline(loop):
    X, y, _ = loop
    kernel = ConstantKernel(1.0) * RBF([1.0, 1.0]) + WhiteKernel(0.1)
    pipeline = make_pipeline(
        StandardScaler(), regressor(kernel, optimizer="fmin_l_bfgs_b", normalize_y=True)
    )
    pipeline.fit(5 + 3 * X, y)
    got = bounds_of(pipeline)
    model = pipeline[-1]
    np.testing.assert_allclose(got, step_by_step(model, model.X_train_, y), rtol=1e-6)
    np.testing.assert_array_equal(bounds_of(pipeline, X=5 + 3 * X, y=y), got)
    with pytest.raises(ValueError, match="was fitted to other rows than `X`: row 0 is"):
        bounds_of(pipeline, X=X)
    with pytest.raises(ValueError, match=r"`model` \(scikit-learn\) must be fitted first"):
        bounds_of(clone(pipeline))
    with pytest.raises(ValueError, match=r"`model` \(scikit-learn\) must be fitted first"):
        bounds_of(clone(pipeline), X=X, y=y)


@pytest.mark.parametrize(
    "kernel",
    [
        ConstantKernel(1.5) * (RBF(0.9) + WhiteKernel(0.006)),
        WhiteKernel(0.1) * RBF(0.9) + RBF(0.9),
        (RBF(0.9) + WhiteKernel(0.1)) * (2.0 * Matern(1.1, nu=1.5) + WhiteKernel(0.3)),
        Exponentiation(RBF(0.9) + WhiteKernel(0.1), 3),
        DotProduct(0.0, "fixed") + RBF(0.5) * WhiteKernel(0.2) + WhiteKernel(0.1),
    ],
)
def test_white_noise_anywhere_in_a_kernel(loop, kernel):
    X, y, _ = loop
    X, y = X[:15], y[:15]
    model = regressor(kernel, alpha=0.05).fit(X, y)
    np.testing.assert_allclose(bounds_of(model), step_by_step(model, X, y), rtol=1e-6)


def test_a_subclass_is_known(loop):
    class Mine(GaussianProcessRegressor):
        pass

    X, y, noise = loop
    mine = Mine(RBF(0.9), alpha=noise, optimizer=None).fit(X[:9], y[:9])
    plain = regressor(RBF(0.9), alpha=noise).fit(X[:9], y[:9])
    np.testing.assert_array_equal(bounds_of(mine), bounds_of(plain))


def test_a_kernel_of_ones_own(loop):
    class Own(Kernel):  # white noise in a kernel that fastal cannot look into
        def __init__(self, level=0.02):
            self.level = level

        def __call__(self, X, Y=None, eval_gradient=False):
            return RBF(0.9)(X, Y) + (self.level * np.eye(len(X)) if Y is None else 0.0)

        def diag(self, X):
            return np.full(len(X), 1 + self.level)

        def is_stationary(self):
            return True

    X, y, _ = loop
    model = regressor(Own(), alpha=0.01).fit(X[:20], y[:20])
    own = GaussianProcess(0.9, 0.03).add_batch(X[:21], y[:21])
    np.testing.assert_allclose(bounds_of(model), own[:20], rtol=1e-9)


def test_noise_that_is_kept_apart(loop):
    # As scikit-optimize has it: after the fit the white noise is taken out of the kernel.
    class Regressor(GaussianProcessRegressor):
        def fit(self, X, y):
            super().fit(X, y)
            self.noise_ = self.kernel_.k2.noise_level
            self.kernel_.k2.set_params(noise_level=0.0)
            return self

    X, y, _ = loop
    kernel = 1.5 * RBF(0.9) + WhiteKernel(0.01)
    model = Regressor(kernel, alpha=1e-10, optimizer=None).fit(X[:20], y[:20])
    own = GaussianProcess(0.9, 0.01 + 1e-10, amplitude=1.5).add_batch(X[:21], y[:21])
    np.testing.assert_allclose(bounds_of(model), own[:20], rtol=1e-9)
    del model.noise_
    with pytest.raises(ValueError, match="the model was changed after its fit"):
        bounds_of(model)


def test_a_model_that_was_changed_after_its_fit(loop):
    X, y, _ = loop

    def fitted():
        return regressor(1.5 * RBF(0.9) + WhiteKernel(0.01), alpha=0.0).fit(X[:20], y[:20])

    changed = r"`model` \(scikit-learn\) does not agree with its own factor: the model was changed"
    for name, value in (("k1__k2__length_scale", 1.0), ("k2__noise_level", 0.02)):
        model = fitted()
        model.kernel_.set_params(**{name: value})
        with pytest.raises(ValueError, match=changed):
            bounds_of(model)
    model = fitted()
    model.X_train_[3] += 0.1
    with pytest.raises(ValueError, match=changed):
        bounds_of(model)
    with pytest.raises(ValueError, match=changed):
        bounds_of(make_pipeline("passthrough", model))
    criterion = Stopper()
    with pytest.raises(ValueError, match=changed):
        criterion.after_fit(model)
    assert len(criterion) == 0
    model = fitted()
    model.X_train_, model.y_train_ = model.X_train_[:9], model.y_train_[:9]
    with pytest.raises(ValueError, match="its factor has 20 rows, it has 9 labels"):
        bounds_of(model, order=np.arange(9))


def test_an_ill_conditioned_model_agrees_with_its_own_factor():
    x = np.linspace(0, 1, 200)[:, None]
    model = regressor(RBF(1.0), alpha=1e-8).fit(x, np.sin(5 * x[:, 0]))
    with pytest.warns(UserWarning, match="takes labels as exact"):
        bounds = bounds_of(model)
    assert np.isfinite(bounds).all()


def test_exact_labels_are_warned_of_once_per_model(loop):
    X, y, _ = loop
    model = regressor(1.5 * RBF(0.9)).fit(X[:20], y[:20])
    with pytest.warns(
        UserWarning, match=r"the noise of `model` \(scikit-learn\) is about 1e-10 of"
    ):
        bounds = bounds_of(model)
    assert bounds[0] > 1e8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bounds_of(model)
        bounds_of(regressor(RBF(0.9), alpha=1.01 * JITTER).fit(X[:20], y[:20]))
    exact = regressor(RBF(0.9), alpha=0.0).fit(X[:3], y[:3])
    with pytest.raises(ValueError, match=r"takes labels as exact: its noise variance .* got 0"):
        bounds_of(exact)
    for more in ({}, {"X": X[:9]}):
        own = GaussianProcess(0.9, 1e-7, amplitude=10.0)
        own.add_batch(X[:9], y[:9])
        with pytest.warns(UserWarning, match=r"the noise of `model` \(fastal\) is about 1e-8 of"):
            bounds_of(own, **more)


@pytest.mark.parametrize(
    ("scales", "edge"),
    [
        ([(0.5, 0.1, 10.0)], False),
        ([(0.1009, 0.1, 10.0)], True),
        ([(0.102, 0.1, 10.0)], False),
        ([(9.91, 0.1, 10.0)], True),
        ([(9.8, 0.1, 10.0)], False),
        ([(10.0, 0.1, 10.0), (1.0, 0.1, 10.0)], False),
        ([(10.0, 0.1, 10.0), (20.0, 0.1, 20.0)], True),
        ([(0.1, 0.1, 10.0), (1.0, 0.1, 10.0)], True),
        ([(1e9, 0.0, np.inf)], False),
        ([(0.05, 0.1, 10.0)], True),  # beyond the edge
        ([], False),
    ],
)
def test_the_edge(scales, edge):
    assert at_edge(scales) is edge


def test_scikit_learn_at_the_edge(loop):
    X, y, _ = loop

    def fit(kernel, target=y, **settings):
        model = regressor(kernel, alpha=0.01, **{"optimizer": "fmin_l_bfgs_b", **settings})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn, about the bounds
            return bounds_of(model.fit(X[:30], target[:30])).at_edge

    assert not fit(RBF(1.0))
    assert fit(RBF(0.2, (0.1, 0.3)))  # wants to be longer
    assert fit(RBF(20.0, (10.0, 30.0)))  # wants to be shorter
    assert not fit(RBF(0.2, (0.1, 0.3)), optimizer=None)  # was not searched
    assert not fit(ConstantKernel() * RBF(1.0, "fixed"))
    # labels that depend on the first input only: one long length scale is no edge, both are
    one = np.sin(2 * X[:, 0])
    assert not fit(RBF([1.0, 1.0], (1e-2, 50.0)), one)
    assert fit(RBF([1.0, 1.0], (1e-2, 50.0)), np.full(60, 0.0) + 0.001 * X[:, 0])
    assert fit(RBF([1.0, 20.0], [(1e-2, 50.0), (10.0, 30.0)]))


def test_bayesian_ridge(loop):
    X, y, _ = loop
    model = BayesianRidge().fit(X + 5, y + 3)
    got = bounds_of(model, X=X + 5, y=y + 3)
    # Weights one label after another, at the hyper-parameters of the fit; the last are the model's.
    Z, mean = X + 5 - model.X_offset_, (y + 3).mean()
    w, S, noise = np.zeros(2), np.eye(2) / model.lambda_, 1 / model.alpha_
    for z, label, bound in zip(Z, y + 3, got, strict=True):
        s, d = z @ S @ z, label - mean - z @ w
        assert bound == pytest.approx(gp_kl(0.0, float(s), float(d), noise), rel=1e-9)
        gain = S @ z / (s + noise)
        w, S = w + gain * d, S - np.outer(gain, S @ z)
    np.testing.assert_allclose(w, model.coef_, rtol=1e-9)
    np.testing.assert_allclose(S, model.sigma_, rtol=1e-9)
    flat = BayesianRidge(fit_intercept=False).fit(X, y)
    expected = gp_bounds(X @ X.T / flat.lambda_, y, 1 / flat.alpha_)
    np.testing.assert_allclose(bounds_of(flat, X=X, y=y[:, None]), expected, rtol=1e-9)
    order = np.arange(60)[::-1]
    np.testing.assert_allclose(
        bounds_of(flat, X=X, y=y, order=order),
        gp_bounds(X[order] @ X[order].T / flat.lambda_, y[order], 1 / flat.alpha_),
        rtol=1e-9,
    )


def ard(noisy_features=3):
    """A fit that keeps some features and drops others, with its rows."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 2 + noisy_features)) + 4
    y = 3 + X[:, 0] - 2 * X[:, 1] + 0.3 * rng.standard_normal(50)
    # a low threshold, so that features fall out
    return ARDRegression(threshold_lambda=500.0).fit(X[:40], y[:40]), X, y


def test_ard_regression():
    model, X, y = ard()
    kept = model.lambda_ < 500
    assert 0 < kept.sum() < 5
    got = bounds_of(model, X=X[:40], y=y[:40])
    # Weights one label after another, at the hyper-parameters of the fit; the last are the model's.
    Z, mean = (X[:40] - model.X_offset_)[:, kept], y[:40].mean()
    w, S, noise = np.zeros(kept.sum()), np.diag(1 / model.lambda_[kept]), 1 / model.alpha_
    for z, label, bound in zip(Z, y[:40], got, strict=True):
        s, d = z @ S @ z, label - mean - z @ w
        assert bound == pytest.approx(gp_kl(0.0, float(s), float(d), noise), rel=1e-8)
        gain = S @ z / (s + noise)
        w, S = w + gain * d, S - np.outer(gain, S @ z)
    np.testing.assert_allclose(w, model.coef_[kept], rtol=1e-8)
    np.testing.assert_allclose(S, model.sigma_, rtol=1e-7, atol=1e-12)


def test_ard_regression_refuses():
    model, X, y = ard()
    with pytest.raises(ValueError, match=r"a ARDRegression, keeps no training data: give `X`"):
        bounds_of(model)
    with pytest.raises(ValueError, match="was fitted to other rows than `X` and `y`"):
        bounds_of(model, X=X[:39], y=y[:39])
    with pytest.raises(ValueError, match="must be fitted first, got an unfitted ARDRegression"):
        bounds_of(ARDRegression(), X=X, y=y)


def test_ard_regression_that_drops_all_features():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    model = ARDRegression(threshold_lambda=1e-3).fit(X, y)
    assert model.sigma_.size == 0
    np.testing.assert_allclose(bounds_of(model, X=X, y=y), 0.0, atol=1e-15)


def test_bayesian_ridge_refuses(loop):
    X, y, _ = loop
    model = BayesianRidge().fit(X, y)
    keeps = r"`model` \(scikit-learn\), a BayesianRidge, keeps no training data: give `X` and `y`"
    for given_ in ({}, {"X": X}, {"y": y}):
        with pytest.raises(ValueError, match=keeps):
            bounds_of(model, **given_)
    with pytest.raises(ValueError, match="was fitted to other rows than `X` and `y`"):
        bounds_of(model, X=X[:50], y=y[:50])
    with pytest.raises(ValueError, match=r"`X` must have 2 features as .*got shape \(60, 1\)"):
        bounds_of(model, X=X[:, :1], y=y)
    with pytest.raises(ValueError, match=r"`y` must have one label for each of 60 rows"):
        bounds_of(model, X=X, y=y[:50])


@pytest.mark.parametrize(
    ("order", "error", "match"),
    [
        ([0, 1], ValueError, r"`order` must hold each of the 3 rows of `model` .* once, got 2"),
        ([0, 1, 1], ValueError, "`order` must not hold an index twice"),
        (
            [17, 3, 44],
            ValueError,
            r"in \[0, 3\), got 17; .* give np\.argsort\(np\.argsort\(rows\)\)",
        ),
        ([0, -1, 1], ValueError, r"`order` must hold indices in \[0, 3\), got -1"),
        ([0.0, 1.0, 2.0], TypeError, "`order` must be row numbers"),
        ([[0, 1, 2]], TypeError, "`order` must be row numbers"),
        ([True, False, True], TypeError, "`order` must be row numbers"),
        ("abc", TypeError, "`order` must be row numbers"),
    ],
)
def test_a_bad_order(loop, order, error, match):
    X, y, _ = loop
    model = regressor(RBF(0.9), alpha=0.1).fit(X[:3], y[:3])
    with pytest.raises(error, match=match):
        bounds_of(model, order=order)


def test_scikit_learn_refuses(loop):
    X, y, _ = loop
    with pytest.raises(
        ValueError, match="must be fitted first, got an unfitted GaussianProcessReg"
    ):
        bounds_of(regressor(RBF(0.9)))
    two = regressor(RBF(0.9), alpha=0.1).fit(X, np.c_[y, y])
    with pytest.raises(ValueError, match=r"`model` \(scikit-learn\) must have one output, got 2"):
        bounds_of(two)
    column = regressor(RBF(0.9), alpha=0.1).fit(X, y[:, None])
    plain = regressor(RBF(0.9), alpha=0.1).fit(X, y)
    np.testing.assert_array_equal(bounds_of(column), bounds_of(plain))
    with pytest.raises(
        TypeError, match=r"must be a GaussianProcessRegressor or BayesianRidge or ARDReg.*, or a"
    ):
        bounds_of(RandomForestRegressor(2).fit(X, y))
    classes = GaussianProcessClassifier(RBF(0.9), optimizer=None).fit(X, y > 0)
    with pytest.raises(TypeError, match="must be a regressor, got a GaussianProcessClassifier"):
        bounds_of(classes)
    with pytest.raises(
        ValueError, match="was fitted to other rows than `X`: to 60 rows, `X` has 61"
    ):
        bounds_of(plain, X=np.r_[X, X[:1]])  # it lags one label behind
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 7 is"):
        bounds_of(plain, X=X, y=np.where(np.arange(60) == 7, 1e3, y))
    with pytest.raises(ValueError, match="`y` must be finite, got nan at index 3"):
        bounds_of(plain, X=X, y=np.where(np.arange(60) == 3, np.nan, y))
    plain.y_train_ = plain.y_train_ * np.nan
    with pytest.raises(ValueError, match=r"the labels of `model` \(scikit-learn\) must be finite"):
        bounds_of(plain)


def test_a_model_stays_as_it_was(loop):
    X, y, _ = loop
    model = regressor(1.5 * RBF(0.9) + WhiteKernel(0.01), normalize_y=True).fit(X, y)
    before = {
        name: np.array(getattr(model, name)) for name in ("X_train_", "y_train_", "L_", "alpha_")
    }
    bounds_of(model, order=np.arange(60)[::-1], X=X, y=y)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)


def test_fastals_own_need_no_other_library():
    code = (
        "import sys, fastal; from fastal.adapters import bounds_of;"
        "gp = fastal.GaussianProcess(); gp.add(0.0, 1.0); bounds_of(gp, order=[0]);"
        "print('sklearn' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == ["False", "False"]


def test_no_library_is_imported_before_it_is_needed():
    code = (
        "import fastal.adapters, sys\n"
        "try: fastal.Stopper().after_fit(object())\n"
        "except TypeError: pass\n"
        "print({'sklearn', 'modAL', 'skactiveml', 'torch', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_bounds_of_is_an_array_that_knows_whether_its_fit_is_at_an_edge(loop):
    X, y, _ = loop
    gp = GaussianProcess(0.9, 0.01)
    gp.add_batch(X, y)
    kernel = RBF(0.9, (0.8, 0.9))
    at_edge = GaussianProcessRegressor(kernel, alpha=0.01)
    with pytest.warns(UserWarning, match="close to the specified lower bound"):
        at_edge.fit(X, np.arange(60.0))
    for model, edge in ((gp, False), (at_edge, True)):
        bounds = bounds_of(model)
        assert bounds.at_edge is edge
        later = bounds_of(model, initial=5)
        np.testing.assert_array_equal(later, bounds[5:])
        assert (later.at_edge, bounds[5:].at_edge) == (edge, edge)
        again = pickle.loads(pickle.dumps(bounds))
        np.testing.assert_array_equal(again, bounds)
        assert again.at_edge is edge
        assert type(2 * bounds) is np.ndarray
        assert isinstance(bounds.sum(), float)
    assert bounds_of(gp, initial=60).shape == (0,)
    with pytest.raises(ValueError, match="`initial` must be at least 0, got -1"):
        bounds_of(gp, initial=-1)


def test_after_fit_takes_the_bounds_and_the_edge(loop):
    X, y, _ = loop
    model = regressor(RBF(0.9), alpha=0.01)
    by_model, by_bounds = Stopper(), Stopper()
    for t in range(10, 61):
        model.fit(X[:t], y[:t])
        assert by_model.after_fit(model, initial=3) is by_bounds.after_fit(
            bounds_of(model, initial=3)
        )
    np.testing.assert_array_equal(by_model.bounds, bounds_of(model)[3:])
    assert by_model.verdict == by_bounds.verdict
    assert by_model.stopped_at is not None
    at_edge = GaussianProcessRegressor(RBF(0.9, (0.8, 0.9)), alpha=0.01)
    with pytest.warns(UserWarning, match="close to the specified lower bound"):
        at_edge.fit(X, np.arange(60.0))
    edge = Stopper()
    edge.after_fit(at_edge)
    assert edge.to_dict()["fit"] == [60, True]
    edge.reset().after_fit(at_edge, at_edge=False)
    assert edge.to_dict()["fit"] == [60, False]


def test_a_pool_tells_the_horizon(loop):
    X, y, _ = loop
    model = regressor(RBF(0.9), alpha=0.01).fit(X[:30], y[:30])
    told, known = MovementBelow(0.05), MovementBelow(0.05, horizon=55)
    told.after_fit(model, pool=X, initial=5)
    known.after_fit(model, initial=5)
    assert told.left == known.left


@pytest.mark.parametrize(
    "numbers", [(0.1, 0.5, 0.3, 0.01), (0.1,), (np.zeros(3), 0.5, 0.3, 0.01), (np.zeros(3),)]
)
def test_bounds_of_numbers_are_those_of_gp_kl(numbers):
    with pytest.raises(TypeError, match=r"`model` must be a fitted model.* gp_kl\(mean, var, y, n"):
        bounds_of(*numbers)


@pytest.mark.parametrize("give", [bounds_of, Stopper().after_fit])
def test_models_without_bounds_are_told_where_to_go(give):
    for model in (RandomForestClassifier(), make_pipeline(StandardScaler(), LinearSVC())):
        with pytest.raises(TypeError, match=r"StabilizingPredictions and others there take the pr"):
            give(model)
    for model in (RandomForestRegressor(), object()):
        with pytest.raises(TypeError, match=r"fastal\.gp_bounds takes the covariance of any Gauss"):
            give(model)
