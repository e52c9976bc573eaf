"""All bounds of a Gaussian process from one factor."""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
import twins
from hypothesis import given, target
from hypothesis import strategies as st

import fastal
from fastal import GaussianProcess, gp_bounds
from fastal.bound import gp_kl


def rbf(X, lengthscale=1.0, amplitude=1.0):
    square = ((X[:, None] - X) ** 2).sum(axis=-1)
    return amplitude * np.exp(-0.5 * square / lengthscale**2)


@pytest.fixture
def labels():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (50, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(50) + 5.0


@pytest.mark.parametrize("noise", [0.02, 30.0, "each"])
def test_what_adding_labels_one_by_one_returns(labels, noise):
    X, y = labels
    noise = np.linspace(0.01, 0.5, 50) if noise == "each" else noise
    gp = GaussianProcess(0.8, 0.02, amplitude=1.7, mean=4.5)
    noises = np.broadcast_to(noise, 50)
    one_by_one = [gp.add(x, label, w) for x, label, w in zip(X, y, noises, strict=True)]
    cov = rbf(X, 0.8, 1.7)
    got = gp_bounds(cov, y, noise, mean=4.5)
    np.testing.assert_allclose(got, one_by_one, rtol=1e-11)
    np.testing.assert_allclose(got, twins.gp_bounds(cov, y, noise, mean=4.5), rtol=1e-10)
    np.testing.assert_allclose(got, gp.bounds(), rtol=1e-11)


def test_a_mean_for_each_label(labels):
    X, y = labels
    cov, trend = rbf(X), 5.0 + X[:, 1]
    got = gp_bounds(cov, y, 0.1, mean=trend)
    np.testing.assert_allclose(got, gp_bounds(cov, y - trend, 0.1), rtol=1e-12)
    np.testing.assert_allclose(got, twins.gp_bounds(cov, y, 0.1, mean=trend), rtol=1e-10)


def test_the_unit_of_the_labels_cancels(labels):
    X, y = labels
    cov = rbf(X)
    got = gp_bounds(1e6 * cov, 1e3 * y + 7.0, 0.1 * 1e6, mean=5e3 + 7.0)
    np.testing.assert_allclose(got, gp_bounds(cov, y, 0.1, mean=5.0), rtol=1e-9)


def exact_bounds(cov, y, noise):
    """Conditioning step by step in 60 digits; the arguments are taken as the doubles they are."""
    with mpmath.workdps(60):
        C, mu = mpmath.matrix(cov.tolist()), mpmath.matrix([0] * len(y))
        w, found = mpmath.mpf(noise), []
        for t in range(len(y)):
            s, d = C[t, t], mpmath.mpf(float(y[t])) - mu[t]
            u = s / w
            found.append(float((u - mpmath.log1p(u) + u * d * d / (s + w)) / 2))
            column = C[:, t]
            mu = mu + column * (d / (s + w))
            C = C - column * column.T / (s + w)
        return np.array(found)


@pytest.mark.parametrize("noise", [1e-8, 1e-4, 1.0, 1e4, 1e10])
def test_against_sixty_digits(noise):
    rng = np.random.default_rng(1)
    X = np.array([0.0, 1.0, 2.0, 0.5, 3.0, 3.1])[:, None]
    cov, y = rbf(X), rng.standard_normal(6)
    # Noise far above the prior variance costs no digits: the variance is not a difference from it.
    np.testing.assert_allclose(gp_bounds(cov, y, noise), exact_bounds(cov, y, noise), rtol=1e-11)


@given(
    st.integers(1, 12),
    st.floats(0.05, 10.0),
    st.floats(-6.0, 6.0),
    st.integers(0, 2**32 - 1),
)
def test_any_problem_equals_the_twin(t, lengthscale, log_noise, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-2, 2, (t, 2)), rng.standard_normal(t)
    cov, noise = rbf(X, lengthscale), 10.0**log_noise
    got, want = gp_bounds(cov, y, noise), twins.gp_bounds(cov, y, noise)
    # s and d carry rounding errors of the prior, which the bound weighs with 1 / noise.
    error = np.abs(got - want) / (want + 1e-3 * min(1.0, 1.0 / noise))
    target(float(error.max()))
    assert error.max() < 1e-9 * max(1.0, 1.0 / noise)
    assert (got >= 0).all()


def test_duplicates_and_exact_rank():
    # Two labels at one input: the second has s = w / (1 + w) with prior variance 1.
    w = 0.25
    got = gp_bounds(np.ones((2, 2)), [0.4, 0.1], w)
    want = [gp_kl(0.0, 1.0, 0.4, w), gp_kl(0.4 / (1 + w), w / (1 + w), 0.1, w)]
    np.testing.assert_allclose(got, want, rtol=1e-14)
    # Of rank one with hardly any noise: s is rounding, and never below zero.
    ones = gp_bounds(np.ones((200, 200)), np.ones(200), 1e-12)
    assert np.isfinite(ones).all()
    assert (ones >= 0).all()


def test_arguments_of_any_form_stay_as_they_were(labels):
    X, y = labels
    cov = rbf(X)
    want = gp_bounds(cov, y, 0.1)
    kept = cov.copy()
    for form in (
        cov,
        np.asfortranarray(cov),
        np.tile(cov, (2, 2))[::2, ::2][:25, :25],
        cov.tolist(),
    ):
        n = len(form)
        expected = want if n == 50 else gp_bounds(np.array(form), y[:n], 0.1)
        np.testing.assert_allclose(gp_bounds(form, y[:n], 0.1), expected, rtol=1e-12)
    frozen = cov.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(gp_bounds(frozen, y.tolist(), np.full(50, 0.1)), want)
    np.testing.assert_array_equal(cov, kept)
    assert gp_bounds(4, 1, 2).tolist() == [gp_kl(0.0, 4.0, 1.0, 2.0)]
    assert gp_bounds(np.empty((0, 0)), [], 0.1).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (
            (np.ones((2, 3)), [1, 2], 1.0),
            ValueError,
            r"`cov` must have shape \(2, 2\), got \(2, 3\)",
        ),
        ((np.eye(3), [1, 2], 1.0), ValueError, r"`cov` must have shape \(2, 2\), got \(3, 3\)"),
        (([[1, 0.5], [0.4, 1]], [1, 2], 1.0), ValueError, "`cov` must be symmetric, got 0.5 at"),
        (
            ([[1, np.nan], [0, 1]], [1, 2], 1.0),
            ValueError,
            r"`cov` must be finite, got nan at index",
        ),
        ((np.eye(2), [1, np.inf], 1.0), ValueError, "`y` must be finite, got inf at index 1"),
        (
            (np.eye(2), [[1, 2]], 1.0),
            ValueError,
            r"`y` must be one-dimensional, got shape \(1, 2\)",
        ),
        ((np.eye(2), [1, 2], 0.0), ValueError, r"`noise` must be positive, got 0\.0"),
        (
            (np.eye(2), [1, 2], [1, -1]),
            ValueError,
            r"`noise` must be positive, got -1\.0 at index 1",
        ),
        (
            (np.eye(2), [1, 2], [1, 1, 1]),
            ValueError,
            r"`noise` must be one number or one per label",
        ),
        ((np.eye(2), [1, 2], None), TypeError, "`noise` must hold real numbers"),
        ((np.eye(2), ["a", "b"], 1.0), TypeError, "`y` must hold real numbers"),
        (
            ([[1.0, 2.0], [2.0, 1.0]], [1, 2], 0.5),
            np.linalg.LinAlgError,
            r"not positive definite at label 1: increase the noise variance, got 0\.5",
        ),
        ((np.eye(2), [1, 1e200], 1.0), ValueError, "the bound of label 1 overflows"),
    ],
)
def test_refuses(arguments, error, match):
    with pytest.raises(error, match=match):
        gp_bounds(*arguments)


def test_refuses_a_mean():
    with pytest.raises(ValueError, match=r"`mean` must be one number or one per label \(2\), got"):
        gp_bounds(np.eye(2), [1, 2], 1.0, mean=[0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="`mean` must be finite, got nan"):
        gp_bounds(np.eye(2), [1, 2], 1.0, mean=np.nan)


def test_it_needs_no_numba():
    code = (
        "import sys, fastal; fastal.gp_bounds([[1.0]], [0.5], 0.1); print('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["False"]
    assert "gp_bounds" in fastal.__all__
