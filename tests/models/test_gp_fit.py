"""Fitting the parameters of a Gaussian process by its marginal likelihood."""

import math
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from numba import config
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from fastal.models.fit import Evidence
from fastal.models.gp import GaussianProcess

KERNELS = {"rbf": 0, "matern12": 1, "matern32": 2, "matern52": 3}
SIZE = 25 if config.DISABLE_JIT else 150
SETS = ["airfoil", "concrete", "power_plant", "protein", "yacht"]


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] + 0.1 * rng.normal(size=n)


def likelihood(gp, X, y):
    """Log marginal likelihood of data under the parameters of a process."""
    fresh = GaussianProcess(
        gp.lengthscale, gp.noise, amplitude=gp.amplitude, mean=gp.mean, kernel=gp.kernel
    )
    fresh.add_batch(X, y)
    return fresh.log_marginal_likelihood()


def peer_optimum(X, y, scale, restarts, factor=None):
    shape = RBF(scale, (1e-3, 1e4))
    kernel = shape if factor is None else factor * shape
    peer = GaussianProcessRegressor(
        kernel + WhiteKernel(1e-2, (1e-4, 1e2)),
        alpha=1e-300,
        n_restarts_optimizer=restarts - 1,
        random_state=0,
    )
    with warnings.catch_warnings():
        # A parameter at its bound, and starts where the factor breaks down: expected here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return peer.fit(X, y).log_marginal_likelihood_value_


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("amplitude", [None, 1.3])
@pytest.mark.parametrize("mean", [None, 0.4])
def test_value_and_gradient(kernel, ard, amplitude, mean):
    X, y = data(20, 2)
    X[3] = X[7]  # a distance of 0
    evidence = Evidence(X, y, KERNELS[kernel], ard, amplitude, mean)
    theta = np.array([0.1, -0.3, -1.5, 0.2])[0 if ard else 1 : 3 if amplitude else 4]
    value, gradient = evidence(theta)
    numeric = approx_fprime(theta, lambda t: evidence(t)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)
    p = np.exp(theta)
    gp = GaussianProcess(
        p[:2] if ard else float(p[0]),
        float(p[2 if ard else 1]),
        amplitude=amplitude or float(p[-1]),
        mean=evidence.mean_at(theta) if mean is None else mean,
        kernel=kernel,
    )
    assert -value == pytest.approx(likelihood(gp, X, y), rel=1e-9)
    if mean is None:
        # The mean is at its maximum.
        for shift in (-1e-3, 1e-3):
            other = GaussianProcess(
                gp.lengthscale,
                gp.noise,
                amplitude=gp.amplitude,
                mean=gp.mean + shift,
                kernel=kernel,
            )
            assert likelihood(other, X, y) < -value


@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("amplitude", [False, True])
def test_as_good_as_scikit_learn_on_synthetic_data(ard, amplitude):
    X, y = data(SIZE, 2, seed=1)
    gp = GaussianProcess()
    restarts = 2 if config.DISABLE_JIT else 8
    assert gp.fit_hyperparameters(X, y, ard=ard, amplitude=amplitude, restarts=restarts) is gp
    assert gp.n_labels == 0
    want = peer_optimum(
        X, y, np.ones(2) if ard else 1.0, 3, ConstantKernel(1.0) if amplitude else None
    )
    assert likelihood(gp, X, y) >= want - 1e-3
    assert np.shape(gp.lengthscale) == ((2,) if ard else ())
    assert (gp.amplitude != 1.0) == amplitude


@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52"])
def test_other_kernels(kernel):
    X, y = data(SIZE, 2, seed=2)
    gp = GaussianProcess(kernel=kernel).fit_hyperparameters(X, y, restarts=2)
    nu = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}[kernel]
    shape = Matern(1.0, (1e-3, 1e4), nu=nu) + WhiteKernel(1e-2, (1e-4, 1e2))
    peer = GaussianProcessRegressor(shape, alpha=1e-300, n_restarts_optimizer=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(X, y)
    assert likelihood(gp, X, y) >= peer.log_marginal_likelihood_value_ - 1e-3


@pytest.mark.skipif("FASTAL_DATA" not in os.environ, reason="FASTAL_DATA names no folder of data")
@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="hundreds of rows take hours interpreted")
@pytest.mark.parametrize("name", SETS)
def test_as_good_as_scikit_learn_on_the_data_of_the_paper(name):
    table = np.loadtxt(Path(os.environ["FASTAL_DATA"]) / f"{name}.txt")
    rows = np.random.default_rng(0).permutation(len(table))[:600]
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    X, y = table[rows, :-1], table[rows, -1]
    gp = GaussianProcess().fit_hyperparameters(X, y)
    assert likelihood(gp, X, y) >= peer_optimum(X, y, 1.0, 2) - 1e-3


def test_raw_targets_need_mean_and_amplitude():
    X, y = data(SIZE, 1, seed=3)
    y = 124.0 + 7.0 * y
    gp = GaussianProcess().fit_hyperparameters(X, y, mean=True, amplitude=True, restarts=3)
    assert gp.mean == pytest.approx(y.mean(), abs=2 * y.std())
    gp.add_batch(X, y)  # without the warning for far data, which would be an error


def test_same_seed_same_result_and_no_trace_of_the_data():
    X, y = data(SIZE, 2, seed=4)
    before = X.copy(), y.copy()
    a = GaussianProcess().fit_hyperparameters(X, y, restarts=3, seed=5)
    b = GaussianProcess().fit_hyperparameters(X.tolist(), y.tolist(), restarts=3, seed=5)
    assert (a.lengthscale, a.noise) == (b.lengthscale, b.noise)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    np.testing.assert_array_equal(a.predict(X), np.zeros(SIZE))


@pytest.mark.parametrize("low", [3.0, 0.7, 1.1, 1.3, 1.9, 2.3, 3.1, 4.7, 5.9, 6.1])
def test_bounds_are_kept(low):
    """To the last digit: the logarithms in which the search goes do not always come back."""
    X, y = data(SIZE, 1, seed=5)
    bounds = {"lengthscale": (low, 1.3 * low), "noise": (low / 6, low / 5), "amplitude": (low, low)}
    gp = GaussianProcess().fit_hyperparameters(X, y, amplitude=True, bounds=bounds, restarts=2)
    assert low <= gp.lengthscale <= 1.3 * low
    assert gp.amplitude == low
    assert low / 6 <= gp.noise <= low / 5


def test_length_scales_change_their_number():
    X, y = data(SIZE, 2, seed=6)
    gp = GaussianProcess([1.0, 2.0, 3.0]).fit_hyperparameters(X, y, restarts=1)
    assert isinstance(gp.lengthscale, float)
    gp.fit_hyperparameters(X, y, ard=True, restarts=1)
    assert gp.lengthscale.shape == (2,)
    gp.add([0.0, 0.0], 0.1)
    gp.rewind(0)
    gp.fit_hyperparameters(X[:, 0], y, restarts=1)
    gp.add(0.0, 0.1)
    assert gp.n_labels == 1


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (
            {"X": [[0.0]] * 2 + [[math.nan]]},
            ValueError,
            r"`X` must be finite, got nan at index \(2, 0\)",
        ),
        ({"y": [0.0, 1.0, math.inf]}, ValueError, "`y` must be finite, got inf at index 2"),
        ({"y": [0.0, 1.0]}, ValueError, "`y` must have 3 elements, got 2"),
        ({"X": [[0.0]], "y": [0.0]}, ValueError, "`X` must have at least 2 rows, got 1"),
        ({"restarts": 0}, ValueError, "`restarts` must be at least 1, got 0"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ({"ard": 1}, TypeError, "`ard` must be True or False, got 1"),
        ({"bounds": (1, 2)}, TypeError, r"`bounds` must be a dict or None, got \(1, 2\)"),
        (
            {"bounds": {"beta": (1, 2)}},
            ValueError,
            "`bounds` may have the keys 'lengthscale', .*got 'beta'",
        ),
        (
            {"bounds": {"noise": (2, 1)}},
            ValueError,
            r"`bounds\['noise'\]` must be 0 < low <= high, got \(2, 1\)",
        ),
        (
            {"bounds": {"noise": 1}},
            ValueError,
            r"`bounds\['noise'\]` must be a pair of numbers, got 1",
        ),
    ],
)
def test_refusals_change_nothing(change, error, match):
    gp = GaussianProcess(0.7, 0.2)
    arguments = {"X": [[0.0], [1.0], [2.0]], "y": [0.0, 1.0, 0.5], **change}
    with pytest.raises(error, match=match):
        gp.fit_hyperparameters(**arguments)
    assert (gp.lengthscale, gp.noise) == (0.7, 0.2)


def test_a_hopeless_covariance_says_so():
    X = np.zeros(5)
    with pytest.raises(np.linalg.LinAlgError, match="raise the lower bound of the noise"):
        GaussianProcess().fit_hyperparameters(
            X, X, bounds={"noise": (1e-30, 1e-29), "lengthscale": (1.0, 2.0)}, restarts=2
        )
