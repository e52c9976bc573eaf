"""The numerical edge: right to a stated accuracy, or a clear error.

Stated for n labels, condition number c of K + noise I, eps = 2.2e-16: posterior variances are right to
8 eps times the amplitude, posterior means to c eps times the largest label.
"""

import itertools

import mpmath
import numpy as np
import pytest

from fastal import ActiveLearner, FixedBudget, GaussianProcess, Stopper, learn, simulate
from fastal.models import LaplaceClassifier

EPS = float(np.finfo(float).eps)
N = 12


def exact_posterior(x, y, noise, lengthscale, at):
    """Means and variances with 60 digits; the inputs are taken as the doubles they are."""
    with mpmath.workdps(60):
        ell = mpmath.mpf(lengthscale)

        def k(a, b):
            return mpmath.exp(-(((mpmath.mpf(a) - mpmath.mpf(b)) / ell) ** 2) / 2)

        K = mpmath.matrix(len(x), len(x))
        for i, j in itertools.product(range(len(x)), repeat=2):
            K[i, j] = k(x[i], x[j]) + (mpmath.mpf(noise) if i == j else 0)
        inverse = K**-1
        answers = []
        for a in at:
            column = mpmath.matrix([k(a, b) for b in x])
            weights = inverse * column
            mean = mpmath.fsum(w * mpmath.mpf(label) for w, label in zip(weights, y, strict=True))
            answers.append((mean, 1 - (weights.T * column)[0]))
        return answers


def check_posterior(gp, x, y, noise, lengthscale, at, condition):
    mean, var = gp.predict(at, return_var=True)
    for i, (m, s) in enumerate(exact_posterior(x, y, noise, lengthscale, at)):
        assert abs(float(mean[i] - m)) <= condition * EPS * np.abs(y).max()
        assert abs(float(var[i] - s)) <= 8 * EPS


@pytest.mark.parametrize("lengthscale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12, 1e15, 1e16])
def test_condition_and_lengthscale(lengthscale, condition):
    x = np.linspace(0, 1, N)
    y = np.sin(3 * x)
    # With a long length scale the largest eigenvalue is n, the least is the noise.
    noise = N / condition
    one, many = GaussianProcess(lengthscale, noise), GaussianProcess(lengthscale, noise)
    bounds = [one.add(a, b) for a, b in zip(x, y, strict=True)]
    assert np.isfinite(bounds).all()
    many.add_batch(x, y)
    at = [0.05, 0.5, 0.97]
    for gp in (one, many):
        check_posterior(gp, x, y, noise, lengthscale, at, condition)


def test_beyond_the_edge_is_an_error():
    # noise below the rounding of the amplitude: the second label at the same place adds nothing
    gp = GaussianProcess(1.0, 1e-17)
    gp.add(0.0, 0.5)
    before = gp.to_dict()
    with pytest.raises(np.linalg.LinAlgError, match=r"row 1 .* increase the noise variance"):
        gp.add(0.0, 0.5)
    with pytest.raises(np.linalg.LinAlgError, match=r"row 1 .* increase the noise variance"):
        gp.add_batch([0.0] * 10, [0.5] * 10)
    assert gp.to_dict() == before


@pytest.mark.parametrize("noise", [1.0, 1e-4, 1e-10, 1e-14])
def test_duplicate_points(noise):
    # m labels at one place are one label, their mean, with noise / m
    m, y = 10, np.linspace(0.1, 0.9, 10)
    gp = GaussianProcess(1.0, noise)
    for label in y:
        gp.add(2.0, label)
    mean, var = gp.predict([2.0, 2.5], return_var=True)
    single = noise / m
    k = np.exp([0.0, -0.125])
    # the condition number is m / noise
    np.testing.assert_allclose(mean, k * y.mean() / (1 + single), rtol=0, atol=m / noise * EPS)
    np.testing.assert_allclose(var, 1 - k**2 / (1 + single), rtol=0, atol=8 * EPS)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5])
def test_constant_labels(value):
    # the prior mean itself: nothing is learnt from the labels, only the variances fall
    X = np.linspace(0, 5, 30)
    run = learn(X, np.full(30, value), gp=GaussianProcess(mean=value), criterion=FixedBudget(40))
    assert run.n_labels == 30
    assert (run.bounds >= 0).all()
    np.testing.assert_array_equal(run.gp.predict(X), value)
    fitted = GaussianProcess().fit_hyperparameters(X, np.full(30, value) + 1e-9 * np.sin(X))
    assert np.isfinite([fitted.noise, fitted.lengthscale]).all()


def test_constant_bounds_never_stop():
    stopper = Stopper(0.5)
    assert stopper.extend(np.full(1000, 0.1)) is None
    assert (stopper.p_value, stopper.n_runs, stopper.n_below) == (1.0, 1, 0)


@pytest.mark.parametrize("gp", [GaussianProcess(), LaplaceClassifier()], ids=["gp", "classes"])
def test_a_pool_of_one_row(gp):
    run = learn([[0.3, 0.4]], [1.0], gp=gp, criterion=Stopper())
    assert (run.n_labels, run.indices.tolist(), run.stopped, len(run.bounds)) == (1, [0], False, 0)
    learner = ActiveLearner([[0.3, 0.4]], gp=gp, criterion=Stopper())
    assert learner.ask() == 0
    learner.tell(1.0)
    with pytest.raises(ValueError, match="all 1 points of the pool are labelled"):
        learner.ask()


def test_one_row_is_too_few_elsewhere():
    with pytest.raises(ValueError, match="`pool_size`"):
        simulate([[0.3], [0.4]], [1.0, 2.0], gp=GaussianProcess(), pool_size=0, n_runs=2)


@pytest.mark.parametrize("lengthscale", [1e-6, 1e-3, 1e3, 1e6])
def test_learning_with_extreme_length_scales(lengthscale):
    X = np.linspace(0, 1, 40)
    y = np.sin(6 * X)
    run = learn(X, y, gp=GaussianProcess(lengthscale, 0.01), criterion=FixedBudget(30), initial=[0])
    assert len(set(run.indices.tolist())) == run.n_labels == 31
    twin = GaussianProcess(lengthscale, 0.01)
    again = [twin.add(X[i], y[i]) for i in run.indices][1:]
    # r depends on s / noise: 100 times the rounding of the variance, times the label's distance
    np.testing.assert_allclose(run.bounds, again, rtol=1e-11, atol=1e-11)
    if lengthscale < 0.01:  # labels know nothing of one another
        s, d2 = 1.0, y[run.indices[1:]] ** 2
        r = 0.5 * (s / 0.01 - np.log1p(s / 0.01) + s / 0.01 * d2 / (s + 0.01))
        np.testing.assert_allclose(run.bounds, r, rtol=1e-13)


@pytest.mark.parametrize("lengthscale", [5e-324, [5e-324, 5e-324]])
def test_a_length_scale_whose_reciprocal_overflows(lengthscale):
    # found by fuzzing: with one per feature it was a RuntimeWarning of NumPy
    gp = GaussianProcess(lengthscale, 0.1)
    point = [0.5] if isinstance(lengthscale, float) else [0.5, 0.0]
    for call in (lambda: gp.add(point, 1.0), lambda: gp.predict([point])):
        with pytest.raises(ValueError, match="divided by the length scale is not finite"):
            call()
    assert gp.n_labels == 0
