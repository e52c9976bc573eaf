"""LaplaceClassifier: links and quadrature against mpmath and SciPy, the rest against scikit-learn,
a dense twin after every label, exact arithmetic where doubles are short, and its own properties."""

import json
import math
import pickle
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
import twins
from scipy.integrate import quad
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from fastal import ActiveLearner, FixedBudget, GaussianProcess, Stopper, learn, simulate
from fastal._core import laplace as core
from fastal._core import links, quadrature
from fastal.criteria import CrossValidation, GroundTruth, MaxUncertainty, PACBayes
from fastal.models import LaplaceClassifier
from fastal.plotting.demo import plot_demo

JIT = bool(hasattr(core.append, "py_func"))
NEVER = Stopper(1e-300)
LINKS = ["logistic", "probit"]


def problem(n, d=2, seed=0, noise=0.2):
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, d))
    return X, np.where(np.sin(2 * X).sum(axis=1) + noise * draws.normal(size=n) > 0, 1, -1)


# The links -----------------------------------------------------------------------------------------


def exact_link(link, z):
    """Log p, slope and minus curvature at z, in 80 digits."""
    with mp.workdps(80):
        z = mp.mpf(z)
        if link == "logistic":
            p = 1 / (1 + mp.exp(-z))
            return -mp.log1p(mp.exp(-z)), 1 / (1 + mp.exp(z)), p / (1 + mp.exp(z))
        below, above = mp.erfc(-z / mp.sqrt(2)) / 2, mp.erfc(z / mp.sqrt(2)) / 2
        rho = mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi) / below
        return mp.log1p(-above) if z > 0 else mp.log(below), rho, rho * (rho + z)


@pytest.mark.parametrize("link", LINKS)
def test_links_keep_their_digits_in_both_tails(link):
    kernel = getattr(links, link)
    for z in [-1e6, -1e3, -300.0, -40.0, -38.0, -12.0, -4.1, -4.0, -3.9, -2.0, -0.5, -1e-9, 0.0,
              1e-9, 0.5, 1.0, 2.0, 5.0, 8.0, 20.0, 36.0]:  # fmt: skip
        for value, expected in zip(kernel(z), exact_link(link, z), strict=True):
            # the square of z loses digits of a tail that is exp(-z^2 / 2)
            assert value == pytest.approx(float(expected), rel=3e-14 + 2e-16 * min(z * z, 1e3)), z


@pytest.mark.parametrize("link", LINKS)
def test_links_far_out(link):
    for z in (-1e150, -1e100, 800.0, 1e100, 1e300):
        value, slope, weight = getattr(links, link)(z)
        assert value <= 0
        assert math.isfinite(value + slope + weight)
        assert slope >= 0
        assert 0 <= weight <= 1


# Means over the latent Gaussian --------------------------------------------------------------------

FUNCTIONS = {
    quadrature.LOG_LOGISTIC: lambda f: -np.logaddexp(0.0, -f),
    quadrature.LOG_PROBIT: lambda f: float(links.probit(f)[0]),  # checked above
    quadrature.PLAIN_LOGISTIC: lambda f: math.exp(-np.logaddexp(0.0, -f)),
}


def by_adaptive_quadrature(function, mean, sd):
    def integrand(z):
        return FUNCTIONS[function](mean + sd * z) * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    cuts = {-10.0, -3.0, 0.0, 3.0, 10.0}
    cuts |= {(f - mean) / sd for f in (-10.0, -2.0, 0.0, 2.0, 10.0)}
    cuts = sorted(cut for cut in cuts if abs(cut) <= 10)
    return math.fsum(
        quad(integrand, low, high, epsabs=1e-13, epsrel=1e-12)[0] for low, high in pairwise(cuts)
    )


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_quadrature_for_every_mean_and_variance(function):
    """The documented accuracy is 1e-14; the adaptive rule itself is good to about 1e-12."""
    variances = [1e-12, 1e-6, 1e-2, 0.98, 1.02, 3.9, 4.1, 15.9, 16.1, 400.0, 1e4]
    for var in variances if JIT else variances[::2]:
        sd = math.sqrt(var)
        for mean in (0.0, 0.3, -1.0, 2.0, -5.0, 9.0, -30.0, 40.0, 4 * sd, -16.9 * sd, 17.1 * sd):
            expected = by_adaptive_quadrature(function, mean, sd)
            found = quadrature.gaussian_mean(function, mean, sd)
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-11), (mean, var)


def test_quadrature_in_exact_arithmetic():
    with mp.workdps(30):
        for mean, var in [(-1.0, 1e-12), (2.0, 0.3), (-3.0, 4.0), (5.0, 100.0), (-20.0, 1e4)]:
            m, s = mp.mpf(mean), mp.sqrt(mp.mpf(var))
            cuts = sorted({-12, -4, 0, 4, 12, *(z for f in (-20, -4, 0, 4, 20)
                                                if abs(z := (f - m) / s) < 12)})  # fmt: skip
            expected = mp.quad(lambda z, m=m, s=s: mp.npdf(z) / (1 + mp.exp(-m - s * z)), cuts)
            found = quadrature.gaussian_mean(quadrature.PLAIN_LOGISTIC, mean, math.sqrt(var))
            assert abs(found - expected) < 1e-14


def test_quadrature_at_the_ends():
    for sd in (0.0, 1e-300, 1e8, 1e150):
        assert quadrature.gaussian_mean(quadrature.PLAIN_LOGISTIC, 0.0, sd) == pytest.approx(
            0.5, abs=1e-14
        )
    # E Phi(f) = Phi(m / sqrt(1 + v)), and s(f) is Phi(f / c) or so: at large sd only the sign counts
    assert quadrature.gaussian_mean(quadrature.PLAIN_LOGISTIC, 1e8, 1e8) == pytest.approx(
        0.5 * math.erfc(-math.sqrt(0.5)), abs=1e-7
    )
    out = np.empty((3, 2))
    quadrature.probabilities(links.LOGISTIC, np.array([-800.0, 0.0, 800.0]), np.full(3, 2.0), out)
    assert out[:, 1].tolist() == [pytest.approx(0.0, abs=1e-300), 0.5, 1.0]
    assert (out.sum(axis=1) == 1).all()


# The mode, the posterior, the bound ----------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    ("kernel", "scale", "kappa"),
    [("rbf", 0.4, 0.0), ("matern12", [0.7, 2.0], 0.0), ("matern52", 0.6, 0.01), ("rbf", 3.0, 0.01)],
)
def test_equals_the_dense_twin_after_every_label(link, kernel, scale, kappa):
    X, y = problem(14 if JIT else 9, seed=1)
    grid = np.random.default_rng(2).normal(size=(3, 2))
    options = {"amplitude": 3.0, "link": link, "kernel": kernel, "kappa": kappa}
    model = LaplaceClassifier(scale, **options)
    twin = twins.LaplaceClassifier(scale, **options)
    assert model.log_marginal_likelihood() == twin.log_marginal_likelihood() == 0.0
    for x, label in zip(X, y, strict=True):
        assert model.add(x, label) == pytest.approx(twin.add(x, label), rel=1e-8, abs=1e-10)
        mean, var = model.latent(grid, return_var=True)
        cov = model.latent(grid, return_cov=True)[1]
        expected_mean, expected_cov = twin.latent(grid, return_cov=True)
        np.testing.assert_allclose(mean, expected_mean, atol=1e-11)
        np.testing.assert_allclose(model.latent(grid), mean, atol=0)
        np.testing.assert_allclose(cov, expected_cov, atol=1e-11)
        np.testing.assert_allclose(var, np.diag(cov), atol=1e-13)
        assert model.log_marginal_likelihood() == pytest.approx(twin.log_marginal_likelihood())
    np.testing.assert_allclose(model.predict_proba(grid), twin.predict_proba(grid), atol=1e-11)
    np.testing.assert_allclose(
        model.expected_loss(grid, [1, -1, 1]), twin.expected_loss(grid, [1, -1, 1]), atol=1e-11
    )


@pytest.mark.parametrize(("amplitude", "scale"), [(1.0, 1.3), (25.0, 0.7), (1e4, 2.0)])
def test_equals_scikit_learn(amplitude, scale):
    X, y = problem(60 if JIT else 15, d=3)
    model = LaplaceClassifier(scale, amplitude=amplitude)
    model.add_batch(X, y)
    kernel = ConstantKernel(amplitude) * RBF(scale)
    peer = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    n = len(y)
    np.testing.assert_allclose(model.latent(X), peer.base_estimator_.f_cached, atol=1e-6)
    assert model.log_marginal_likelihood() == pytest.approx(
        peer.base_estimator_.log_marginal_likelihood_value_, abs=1e-8
    )
    # scikit-learn approximates the last integral
    new = np.random.default_rng(5).normal(size=(40, 3))
    np.testing.assert_allclose(model.predict_proba(new), peer.predict_proba(new), atol=1e-3)
    assert (model.predict(new) == peer.predict(new)).mean() > 0.95
    # at the mode the gradient is rounding
    state = model._state
    assert np.abs(state.slope[:n] - state.a[:n]).max() < 1e-15 * max(100.0, amplitude)


def exact_mode(K, signs, link):
    """Weights of the mode and the curvature there, by damped Newton steps in many digits."""
    n = len(signs)
    a = mp.zeros(n, 1)

    def objective(a):
        f = K * a
        return sum(exact_link(link, s * v)[0] for s, v in zip(signs, f, strict=True)) - (
            (a.T * f)[0] / 2
        )

    for _ in range(200):
        f = K * a
        rows = [exact_link(link, s * v) for s, v in zip(signs, f, strict=True)]
        W = mp.diag([row[2] for row in rows])
        slope = mp.matrix([s * row[1] for s, row in zip(signs, rows, strict=True)])
        move = mp.lu_solve(mp.eye(n) + W * K, W * f + slope) - a
        step = mp.mpf(1)
        while objective(a + step * move) < objective(a) - mp.mpf(10) ** -35:
            step /= 2
        a += step * move
        if mp.norm(move, mp.inf) < mp.mpf(10) ** -30:
            return a, [exact_link(link, s * v)[2] for s, v in zip(signs, K * a, strict=True)]
    raise AssertionError("no mode")


def exact_bound(K, signs, link):
    """KL of the last two posteriors by precisions, determinants and means, in many digits."""
    n = len(signs)
    a1, w1 = exact_mode(K, signs, link)
    a0, w0 = exact_mode(K[: n - 1, : n - 1], signs[:-1], link) if n > 1 else ([], [])
    inverse = mp.inverse(K)
    P0, P1 = inverse + mp.diag([*w0, 0]), inverse + mp.diag(w1)
    moved = K * (a1 - mp.matrix([*a0, 0]))
    product = P1 * mp.inverse(P0)
    trace = sum(product[i, i] for i in range(n))
    return (trace - n - mp.log(mp.det(product)) + (moved.T * P1 * moved)[0]) / 2


def exact_bounds(x, signs, amplitude, scale, link):
    """The bound of each label, with inputs of one feature."""
    with mp.workdps(60):
        K = mp.matrix(len(x), len(x))
        for i, first in enumerate(x):
            for j, second in enumerate(x):
                d = (mp.mpf(first) - mp.mpf(second)) / mp.mpf(scale)
                K[i, j] = amplitude * mp.exp(-d * d / 2)
        return [float(exact_bound(K[:n, :n], signs[:n], link)) for n in range(1, len(signs) + 1)]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("amplitude", "scale"), [(1.0, 0.5), (100.0, 300.0), (1e4, 3.0)])
def test_bound_in_exact_arithmetic(link, amplitude, scale):
    """No kappa, although in doubles the covariances are singular at the larger scales."""
    x, signs = [0.1, -0.7, 0.4, 1.1], [1, -1, 1, 1]
    model = LaplaceClassifier(scale, amplitude=amplitude, link=link)
    expected = exact_bounds(x, signs, amplitude, scale, link)
    tolerance = 1e-13 * max(1.0, amplitude)
    np.testing.assert_allclose(model.add_batch(x, signs), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("link", LINKS)
def test_bound_of_a_point_whose_weight_was_nothing(link):
    """A point far inside a class has no weight, until the last label contradicts it."""
    x, signs = [-1.0, 1.0, 20.0, 20.5], [-1, 1, 1, -1]
    model = LaplaceClassifier(20.0, amplitude=1e5, link=link)
    bounds = model.add_batch(x, signs)
    assert model._state.old[core.OLD_W, 2] < 1e-20
    expected = exact_bounds(x, signs, 1e5, 20.0, link)
    np.testing.assert_allclose(bounds, expected, rtol=0, atol=1e-8)
    assert expected[-1] > 1000


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("amplitude", [1e-6, 1.0, 1e4, 1e8])
def test_separable_data_and_one_class(link, amplitude):
    x = np.linspace(-3, 3, 40 if JIT else 10)
    rng = np.random.default_rng(3)
    for y in (np.sign(x + 0.01), np.ones(len(x)), np.sign(rng.normal(size=len(x)))):
        order = rng.permutation(len(x))
        model = LaplaceClassifier(0.5, amplitude=amplitude, link=link)
        bounds = model.add_batch(x[order], y[order])
        assert np.isfinite(bounds).all()
        assert bounds.min() >= 0
        n = len(x)
        residual = np.abs(model._state.slope[:n] - model._state.a[:n]).max()
        assert residual < 1e-14 * max(10.0, amplitude)
        if (y == np.sign(x + 0.01)).all() and amplitude >= 1:
            assert (model.predict(x) == y).all()
        if (y == 1).all():
            assert (model.predict(x) == 1).all()
            assert (model.predict_proba(x)[:, 1] > 0.5).all()


def test_duplicates():
    model = LaplaceClassifier(1.0, amplitude=100.0, link="probit")
    twin = twins.LaplaceClassifier(1.0, amplitude=100.0, link="probit", kappa=1e-9)
    for label in [1, 1, -1, 1, -1, -1]:
        # the twin's covariance is singular without kappa, but hardly changes the answer
        assert model.add(0.3, label) == pytest.approx(twin.add(0.3, label), rel=1e-5)
    assert model.predict_proba([0.3])[0, 1] == pytest.approx(0.5, abs=1e-12)


@pytest.mark.skipif(not JIT, reason="takes too long without the JIT")
@pytest.mark.parametrize("link", LINKS)
def test_two_hundred_labels(link):
    X, y = problem(200, d=4)
    model = LaplaceClassifier(1.2, amplitude=9.0, link=link)
    bounds = model.add_batch(X, y)
    twin = twins.LaplaceClassifier(1.2, amplitude=9.0, link=link)
    twin.X, twin.signs = list(X[:199]), y[:199].astype(float).tolist()
    assert bounds[-1] == pytest.approx(twin.add(X[-1], y[-1]), rel=1e-7)
    assert np.median(bounds[-20:]) < np.median(bounds[:20])
    K, f, _ = twin.mode()
    state = model._state
    np.testing.assert_allclose(state.f[:200], f, atol=1e-10)
    # U^T U = I + W^1/2 K W^1/2, by its entries: B is well-conditioned
    U = np.triu(state.U[:200, :200])
    B = np.eye(200) + state.root[:200, None] * K * state.root[None, :200]
    np.testing.assert_allclose(U.T @ U, B, atol=1e-12)
    np.testing.assert_array_equal(np.tril(state.U[:200, :200]), U.T)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 11] + ([67, 200] if JIT else []))
def test_triangles(n):
    """The linear algebra by its invariants, at sizes around the fours and strips of its loops."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    state = core.new_laplace(1, n + 5)
    state.K[:n, :n] = A @ A.T
    state.root[:n] = rng.uniform(0.1, 1.0, n)
    B = np.eye(n) + state.root[:n, None] * state.K[:n, :n] * state.root[None, :n]
    core.factor(state.K, state.root, n, state.U, state.C)
    np.testing.assert_allclose(np.triu(state.U[:n, :n]), np.linalg.cholesky(B).T, atol=1e-11)
    core.invert(state.U, n, state.R, state.C)
    np.testing.assert_allclose(state.R[:n, :n] @ np.linalg.cholesky(B), np.eye(n), atol=1e-12)
    v, out = rng.normal(size=n), np.empty(n)
    expected = np.linalg.solve(B, v)
    core.multiply(state.K, v, n, out)
    np.testing.assert_allclose(out, A @ (A.T @ v), rtol=1e-11, atol=1e-11)
    core.forward(state.U, n, v)
    core.backward(state.U, n, v)
    np.testing.assert_allclose(v, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("amplitude", [1.0, 25.0])
def test_warm_start_saves_factorisations(amplitude):
    """An operation count: a label costs fewer factorisations than a search from nothing."""
    X, y = problem(80 if JIT else 20, d=3)
    n = len(y)
    model = LaplaceClassifier(1.3, amplitude=amplitude)
    warm = []
    for x, label in zip(X, y, strict=True):
        model.add(x, label)
        warm.append(model._work)
    state = model.copy()._state
    state.a[:n] = state.f[:n] = 0.0
    status, steps, factors = core.find_mode(model._link, state, n, False)
    assert status == 0
    np.testing.assert_allclose(state.f[:n], model._state.f[:n], atol=1e-12)
    late = np.mean(warm[n // 2 :], axis=0)
    # the factor at the mode is counted with the label, not with the search
    assert late[1] < 0.6 * (factors + 1)
    assert late[0] < 2 * steps  # steps with an old factor are cheap


# Labels and their coding ---------------------------------------------------------------------------


def test_codings():
    X, y = problem(12)
    signs, zeros = LaplaceClassifier(), LaplaceClassifier()
    np.testing.assert_array_equal(signs.add_batch(X, y), zeros.add_batch(X, (y + 1) // 2))
    np.testing.assert_array_equal(signs.predict_proba(X), zeros.predict_proba(X))
    assert ((signs.predict(X) + 1) // 2 == zeros.predict(X)).all()
    assert signs.predict(X).dtype == np.int64
    assert set(signs.predict(X)) <= {-1, 1}
    assert set(zeros.predict(X)) <= {0, 1}
    with pytest.raises(
        ValueError, match="`y` must not mix -1 and 0: the negative class is -1, got 0"
    ):
        signs.add(X[0], 0)
    with pytest.raises(ValueError, match="the negative class is 0, got -1"):
        zeros.add(X[0], -1.0)
    with pytest.raises(ValueError, match="`y` must not mix -1 and 0"):
        LaplaceClassifier().add_batch(X[:3], [1, 0, -1])
    late = LaplaceClassifier()
    late.add_batch([0.0, 1.0], [1, 1])
    assert late.predict([0.5]).tolist() == [1]
    late.add(2.0, 0)
    late.rewind(2)
    late.add(2.0, -1)  # the first label that is not 1 decides
    assert late.predict([2.5]).tolist() == [-1]


def test_prior():
    model = LaplaceClassifier(2.0, amplitude=3.0)
    assert model.predict_proba([0.0, 9.0]).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert model.predict([0.0]).tolist() == [1]
    mean, var = model.latent([0.0, 9.0], return_var=True)
    assert (mean.tolist(), var.tolist()) == ([0.0, 0.0], [3.0, 3.0])
    assert model.latent([0.0, 9.0], return_cov=True)[1][0, 0] == 3.0
    assert model.predict_proba(np.empty((0, 1))).shape == (0, 2)
    assert model.add_batch([], []).size == 0
    assert model.n_labels == 0


def test_layouts_do_not_matter():
    X, y = problem(10)
    expected = LaplaceClassifier()
    bounds = expected.add_batch(X, y)
    wide = np.zeros((20, 4))
    wide[::2, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    for inputs, labels in [
        (X.tolist(), y.tolist()), (np.asfortranarray(X), y.astype(np.int8)),
        (wide[::2, ::2], y.astype(np.float32)), (frozen, y.astype(float)),
    ]:  # fmt: skip
        model = LaplaceClassifier()
        np.testing.assert_array_equal(model.add_batch(inputs, labels), bounds)
        np.testing.assert_array_equal(model.predict_proba(inputs), expected.predict_proba(X))
    one_by_one = LaplaceClassifier()
    assert [one_by_one.add(x, label) for x, label in zip(X, y, strict=True)] == bounds.tolist()


def used():
    model = LaplaceClassifier(0.8)
    model.add_batch(*problem(3))
    return model


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda m: m.add([0.0, 0.0], 2),
            ValueError,
            "`y` must be -1 or 1, or else 0 or 1, got 2.0",
        ),
        (lambda m: m.add([0.0, 0.0], math.nan), ValueError, "`y` must be finite, got nan"),
        (lambda m: m.add([0.0, 0.0], "a"), TypeError, "`y` must be a real number, got 'a'"),
        (lambda m: m.add([0.0, 0.0], [1]), TypeError, "`y` must be a real number"),
        (lambda m: m.add([0.0], 1), ValueError, "`x` must be one input of 2 numbers"),
        (lambda m: m.add([0.0, math.inf], 1), ValueError, "`x` must be finite, got inf at index 1"),
        (lambda m: m.add([0.0, 1.7e308], 1), ValueError, "`x` divided by the length scale"),
        (lambda m: m.add_batch([[0, 0], [1, 1]], [1, 3]), ValueError, "got 3.0 at index 1"),
        (lambda m: m.add_batch([[0, 0]], [1, 1]), ValueError, "`y` must have 1 elements, got 2"),
        (lambda m: m.predict_proba([0.0]), ValueError, r"`X` must have shape \(n, 2\)"),
        (lambda m: m.predict([["a", "b"]]), TypeError, "`X` must hold real numbers"),
        (lambda m: m.expected_loss([[0, 0]], [2]), ValueError, "`y` must be -1 or 1"),
        (lambda m: m.expected_loss([[0, 0]], [0]), ValueError, "`y` must not mix -1 and 0"),
        (
            lambda m: m.latent([[0, 0]], return_var=True, return_cov=True),
            ValueError,
            "`return_var` and `return_cov` must not both be True",
        ),
        (lambda m: m.latent([[0, 0]], return_var=1), TypeError, "`return_var` must be True or"),
        (lambda m: m.rewind(4), ValueError, "`n` must be at most the number of labels, 3, got 4"),
    ],
)
def test_bad_input(call, error, message):
    model = used()
    before = model.to_dict()
    with pytest.raises(error, match=message):
        call(model)
    assert model.to_dict() == before


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"lengthscale": 0.0}, ValueError, "`lengthscale` must be positive, got 0.0"),
        ({"amplitude": -1.0}, ValueError, "`amplitude` must be positive, got -1.0"),
        ({"link": "cauchit"}, ValueError, "`link` must be one of 'logistic', 'probit'"),
        ({"kernel": "linear"}, ValueError, "`kernel` must be one of 'rbf'"),
        ({"kappa": -0.1}, ValueError, "`kappa` must not be negative, got -0.1"),
        ({"kappa": "a"}, TypeError, "`kappa` must be a real number"),
    ],
)
def test_bad_parameters(arguments, error, message):
    with pytest.raises(error, match=message):
        LaplaceClassifier(**arguments)


def test_a_mode_that_is_not_found_changes_nothing(monkeypatch):
    model = LaplaceClassifier(1.0, amplitude=1e100)
    with pytest.raises(np.linalg.LinAlgError, match=r"mode .* not found at label 1; lower the amp"):
        model.add(0.0, 1)
    assert model.n_labels == 0
    model = used()
    before, expected = model.to_dict(), model.latent(np.eye(2), return_cov=True)
    append, calls = core.append, []

    def second_fails(*arguments):
        calls.append(append(*arguments))
        return calls[-1] if len(calls) < 2 else (1, math.nan, 500, 500)

    monkeypatch.setattr(core, "append", second_fails)
    with pytest.raises(np.linalg.LinAlgError, match="not found at label 5; lower the amplitude"):
        model.add_batch(np.eye(2), [1, -1])
    assert model.to_dict() == before
    for found, there in zip(model.latent(np.eye(2), return_cov=True), expected, strict=True):
        np.testing.assert_array_equal(found, there)


# Keeping -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_kept_and_loaded(link):
    X, y = problem(90 if JIT else 14)
    half = len(y) // 2
    model = LaplaceClassifier([0.8, 1.5], amplitude=5.0, link=link, kernel="matern32")
    model.add_batch(X[:half], y[:half])
    twins = [
        model.copy(),
        pickle.loads(pickle.dumps(model)),
        LaplaceClassifier.from_dict(json.loads(json.dumps(model.to_dict()))),
    ]
    bounds = model.add_batch(X[half:], y[half:])
    for twin in twins:
        assert twin.n_labels == half
        np.testing.assert_array_equal(twin.add_batch(X[half:], y[half:]), bounds)
        assert twin.to_dict() == model.to_dict()
        assert repr(twin) == repr(model)
        np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    empty = LaplaceClassifier.from_dict(LaplaceClassifier(0.3).to_dict())
    assert (empty.n_labels, empty.lengthscale) == (0, 0.3)


def test_damaged_states():
    good = used().to_dict()
    for change, message in [
        ({"kind": "GaussianProcess"}, "must describe a LaplaceClassifier of version 1"),
        ({"version": 2}, "must describe a LaplaceClassifier of version 1"),
        ({"more": 1}, "`state` has the unknown 'more'"),
        ({"amplitude": -1.0}, "`state` is damaged: `amplitude` must be positive"),
        ({"link": "x"}, "`state` is damaged: `link` must be one of"),
        ({"labels": [1, 1]}, "`labels` must have 3 elements, got 2"),
        ({"labels": [1, 0, -1]}, "`labels` must not mix"),
        ({"labels": "a"}, "`state` is damaged: `labels` must hold real numbers"),
        ({"weights": [0.1]}, "`weights` must have 3 elements, got 1"),
        ({"weights": [0.0, 0.0, 0.0]}, "`weights` are not those of the mode"),
    ]:
        with pytest.raises(ValueError, match=message):
            LaplaceClassifier.from_dict(good | change)


def test_rewind():
    X, y = problem(12)
    model, short = LaplaceClassifier(amplitude=4.0), LaplaceClassifier(amplitude=4.0)
    bounds = model.add_batch(X, y)
    short.add_batch(X[:7], y[:7])
    model.rewind(12)
    model.rewind(7)
    np.testing.assert_allclose(model.latent(X), short.latent(X), atol=1e-13)
    np.testing.assert_allclose(model.add_batch(X[7:], y[7:]), bounds[7:], rtol=1e-9)
    model.rewind(0)
    assert model.n_labels == 0
    assert model.add(5.0, 0) > 0  # another number of features, another coding


# In a learner --------------------------------------------------------------------------------------


def pool(n=60):
    x = np.linspace(0, 2, n)
    return x, np.where(np.sin(2 * np.pi * x) > 0, 1, -1)


SIZE = 60 if JIT else 12
MODEL = LaplaceClassifier(0.3, amplitude=10.0)


def by_hand(x, y, first, labels):
    """Order and bounds of labels where the dense twin is least certain."""
    twin = twins.LaplaceClassifier(0.3, amplitude=10.0, kernel="matern12")
    order, bounds = [first], [twin.add(x[first], y[first])]
    while len(order) < labels:
        left = [i for i in range(len(x)) if i not in order]
        # the logistic average is symmetric and grows with the mean; compare probabilities
        odds = np.abs(twin.predict_proba(x[left])[:, 1] - 0.5)
        order.append(left[int(np.flatnonzero(odds <= odds.min() + 1e-13)[0])])
        bounds.append(twin.add(x[order[-1]], y[order[-1]]))
    return order, bounds


def test_learn_equals_a_plain_loop():
    x = np.sort(np.random.default_rng(8).uniform(0, 2, 12))
    y = np.where(np.sin(2 * np.pi * x) > 0, 1, -1)
    model = LaplaceClassifier(0.3, amplitude=10.0, kernel="matern12")
    run = learn(x, y, gp=model, criterion=NEVER, initial=[4], max_labels=6)
    order, bounds = by_hand(x, y, 4, 6)
    assert run.indices.tolist() == order
    np.testing.assert_allclose(run.bounds, bounds[1:], rtol=1e-8)
    assert model.n_labels == 0
    assert run.gp.n_labels == 6
    explicit = learn(x, y, gp=model, criterion=NEVER, initial=[4], max_labels=6,
                     acquisition="uncertainty")  # fmt: skip
    assert explicit.indices.tolist() == order


def test_errors_after_every_label():
    x, y = pool(SIZE)
    T, labels = x[::5] + 0.01, y[::5]
    run = learn(x, y, gp=MODEL, criterion=NEVER, seed=0, max_labels=10, test=(T, labels))
    model = MODEL.copy()
    for t, i in enumerate(run.indices):
        model.add(x[i], y[i])
        assert run.errors[t] == pytest.approx(model.expected_loss(T, labels).mean(), rel=1e-12)
    assert run.errors[-1] < run.errors[0]
    zeros = learn(x, (y + 1) // 2, gp=MODEL, criterion=NEVER, seed=0, max_labels=10,
                  test=(T, (labels + 1) // 2))  # fmt: skip
    np.testing.assert_array_equal(zeros.errors, run.errors)


@pytest.mark.skipif(not JIT, reason="takes too long without the JIT")
def test_a_campaign_stops():
    x, y = pool(200)
    model = LaplaceClassifier(0.15, amplitude=25.0)
    run = learn(x, y, gp=model, criterion=Stopper(), seed=1)
    assert run.stopped
    assert run.n_labels < 100
    assert (run.gp.predict(x) == y).mean() > 0.9
    stopper, beside = Stopper(), model.copy()
    for i in run.indices:
        stopper.push(beside.add(x[i], y[i]))
    np.testing.assert_array_equal(stopper.bounds[1:], run.bounds)
    again = Stopper.from_dict(json.loads(json.dumps(stopper.to_dict())))
    kept = LaplaceClassifier.from_dict(json.loads(json.dumps(beside.to_dict())))
    assert kept.to_dict() == beside.to_dict()
    assert again.push(kept.add(0.123, 1)) == stopper.push(beside.add(0.123, 1))
    assert again.bounds.tobytes() == stopper.bounds.tobytes()


def test_oracles_and_resuming():
    x, y = pool(SIZE)
    expected = learn(x, y, gp=MODEL, criterion=NEVER, seed=0, max_labels=9, test=(x, y))
    calls = []

    def oracle(index, point):
        calls.append(index)
        if len(calls) == 4:
            raise ConnectionError("the annotator is out")
        return 7 if len(calls) == 6 else y[index]

    with pytest.raises(ConnectionError) as out:
        learn(x, oracle, gp=MODEL, criterion=NEVER, seed=0, max_labels=9, test=(x, y))
    assert out.value.run.n_labels == 3
    with pytest.raises(
        ValueError, match=r"invalid label for point \d+: `y` must be -1 or 1"
    ) as bad:
        out.value.run.resume()
    assert bad.value.run.n_labels == 4
    half = bad.value.run.resume(max_labels=6)
    final = half.resume(max_labels=9, test=(x, y))
    assert (final.indices == expected.indices).all()
    np.testing.assert_array_equal(final.bounds, expected.bounds)
    np.testing.assert_array_equal(final.errors, expected.errors)
    assert half.gp.n_labels == 6  # a record that later labels do not change
    np.testing.assert_allclose(final.gp.latent(x), expected.gp.latent(x), atol=1e-12)
    seen = []
    learn(x, y, gp=MODEL, criterion=FixedBudget(4), seed=0,
          on_label=lambda learner: seen.append(learner.model.n_labels))  # fmt: skip
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("acquisition", ["max_variance", "random", lambda mean, var: var])
def test_asked_saved_and_loaded(acquisition):
    x, y = pool(SIZE)
    learner = ActiveLearner(x, gp=MODEL, criterion=Stopper(0.01) | FixedBudget(9), seed=0,
                            acquisition=acquisition)  # fmt: skip
    for _ in range(5):
        learner.tell(y[learner.ask()])
    asked = learner.ask()
    own = acquisition if callable(acquisition) else None
    twin = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), x, own)
    assert twin.ask() == asked
    assert twin.acquisition in ("uncertainty", "random", acquisition)
    with pytest.raises(ValueError, match="`y` must not mix -1 and 0"):
        twin.tell(0)
    while not learner.finished:
        assert twin.ask() == learner.ask()
        label = y[learner.ask()]
        assert str(twin.tell(label)) == str(learner.tell(label))
    np.testing.assert_array_equal(twin.run().bounds, learner.run().bounds)
    np.testing.assert_array_equal(twin.run().gp.latent(x), learner.run().gp.latent(x))
    var = learner.model.latent(x, return_var=True)[1]
    assert learner.largest_variance == pytest.approx(var[learner.unlabelled].max())


def test_callables_see_the_latent_posterior():
    x, y = pool(SIZE)
    learner = ActiveLearner(
        x, gp=MODEL, criterion=NEVER, seed=0, acquisition=lambda m, v: seen(m, v)
    )

    def seen(mean, var):
        expected = learner.model.latent(x, return_var=True)
        np.testing.assert_array_equal(mean, expected[0])
        np.testing.assert_array_equal(var, expected[1])
        return -np.abs(mean)

    for _ in range(6):
        learner.tell(y[learner.ask()])
    assert learner.n_labels == 6


def test_equal_uncertainty_goes_to_the_lower_index():
    x = np.array([0.0, 100.0, 200.0, 300.0])
    run = learn(x, [1, -1, 1, -1], gp=LaplaceClassifier(1.0), criterion=NEVER, initial=[2])
    assert run.indices.tolist() == [2, 0, 1, 3]


def test_criteria_that_look_at_a_classifier():
    x, y = pool(SIZE)
    run = learn(x, y, gp=MODEL, criterion=MaxUncertainty(0.5) | FixedBudget(8), seed=0)
    assert run.stopped
    assert run.n_labels <= 9


def test_what_is_for_regression_says_so():
    x, y = pool(SIZE)
    run = learn(x, y, gp=MODEL, criterion=NEVER, seed=0, max_labels=3, test=(x, y))
    with pytest.raises(TypeError, match="`gp` must be a GaussianProcess, got LaplaceClassifier"):
        simulate(x, y, gp=MODEL)
    for criterion in (CrossValidation(0.1), PACBayes(1.0, 1.0), GroundTruth(x, y, 0.1)):
        with pytest.raises(TypeError, match="`gp` must be a GaussianProcess, got LaplaceCl"):
            learn(x, y, gp=MODEL, criterion=criterion, seed=0, max_labels=6)
    with pytest.raises(TypeError, match="`run` must be one of a GaussianProcess"):
        plot_demo(run, x, y, x, y)
    with pytest.raises(ValueError, match="`acquisition` must be one of 'max_variance', 'random'"):
        learn(x, y, gp=GaussianProcess(), criterion=NEVER, acquisition="uncertainty")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"y_or_oracle": np.linspace(0, 1, SIZE)},
            ValueError,
            "`y` must be -1 or 1, or else 0 or 1",
        ),
        ({"test": ([0.1], [2])}, ValueError, "`test` must be -1 or 1, or else 0 or 1, got 2.0"),
        (
            {"acquisition": "best"},
            ValueError,
            "must be one of 'uncertainty', 'max_variance', 'random'",
        ),
        ({"gp": used()}, ValueError, "`gp` must have no labels, got 3"),
        ({"gp": 3}, TypeError, "`gp` must be a GaussianProcess or LaplaceClassifier, got 3"),
    ],
)
def test_bad_input_of_learn(arguments, error, message):
    x, y = pool(SIZE)
    defaults = {"X": x, "y_or_oracle": y, "gp": MODEL, "criterion": Stopper()}
    with pytest.raises(error, match=message):
        learn(**(defaults | arguments))
    assert MODEL.n_labels == 0


# What a campaign asks ----------------------------------------------------------------------------


def test_bounds_are_those_that_add_returned():
    rng = np.random.default_rng(2)
    X, y = rng.uniform(0, 3, (25, 2)), rng.choice([0, 1], 25)
    model = LaplaceClassifier([1.0, 2.0], amplitude=3.0, kappa=0.01)
    assert model.bounds().shape == (0,)
    told = [model.add(x, label) for x, label in zip(X, y, strict=True)]
    np.testing.assert_array_equal(model.bounds(), told)
    assert model.n_labels == 25


def test_losses_are_replayed_label_by_label():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(0, 3, (12, 1)), rng.choice([-1, 1], 12)
    test = rng.uniform(0, 3, (5, 1)), rng.choice([-1, 1], 5)
    model, expected = LaplaceClassifier(), []
    for x, label in zip(X, y, strict=True):
        model.add(x, label)
        expected.append(model.expected_loss(*test).mean())
    np.testing.assert_array_equal(model.replay_errors(*test)[0], expected)
    with pytest.raises(ValueError, match="`X` must have at least one row"):
        model.replay_errors(np.empty((0, 1)), [])


def test_scaled_inputs_have_the_features_of_the_labels():
    model = LaplaceClassifier([1.0, 2.0])
    model.add([0.0, 1.0], 1)
    X = np.array([[0.5, 1.5], [2.0, 0.0], [0.0, 1.0]])
    mean, var = model.posterior_scaled(model.prior.scale("X", X))
    np.testing.assert_array_equal((mean, var), model.latent(X, return_var=True))
    np.testing.assert_array_equal(model.averaged_probabilities(mean, var), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"`scaled` must have shape \(2, m\), got \(3, 2\)"):
        model.posterior_scaled(X)
    assert model.negative_class is None
    model.add([1.0, 1.0], 0)
    assert model.negative_class == 0
