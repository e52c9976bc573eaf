"""The bound of one label, the constant, and the divergences."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import twins
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config, njit

import fastal
from fastal._core import bound_array
from fastal.bound import (
    alquier_bound,
    bound_constant,
    gaussian_kl,
    gp_kl,
    gp_prior_kl,
    mcallester_bound,
)

TINY = 5e-324  # the spacing of doubles next to 0: no result can be closer than that


def exact_kl(mean, var, y, noise):
    """r_t with 50 digits beyond any cancellation; the residual as doubles give it."""
    with mpmath.workdps(700):
        s, w, d = mpmath.mpf(var), mpmath.mpf(noise), mpmath.mpf(y - mean)
        u = s / w
        return +((u - mpmath.log1p(u)) / 2 + u * d * d / (s + w) / 2)


def assert_exact(got, want, tolerance=1e-14):
    with mpmath.workdps(50):
        error = abs(mpmath.mpf(float(got)) - want)
        assert error <= tolerance * abs(want) + 2 * TINY, (float(got), mpmath.nstr(want, 20))


@pytest.mark.parametrize("noise", [1e-12, 1e-4, 1.0, 1e8])
def test_gp_kl_keeps_full_precision_for_every_ratio(noise):
    steps = 20 if config.DISABLE_JIT else 120
    # Around the cut-off sqrt(2) - 1 and over the whole range.
    ratios = [*np.logspace(-300, 12, steps), *np.linspace(0.40, 0.43, 31), math.sqrt(2) - 1]
    for ratio in ratios:
        var = ratio * noise
        if var < 1e-307:
            continue
        for y in (0.0, 1e-150, 1e-8, 0.7, 1e150):
            want = exact_kl(0.0, var, y, noise)
            if want > sys.float_info.max:
                assert gp_kl(0.0, var, y, noise) == math.inf
            else:
                assert_exact(gp_kl(0.0, var, y, noise), want)


@settings(max_examples=60 if config.DISABLE_JIT else 400, deadline=None)
@given(
    var=st.floats(1e-300, 1e300),
    noise=st.floats(1e-300, 1e300),
    y=st.floats(1e-150, 1e150),
)
def test_gp_kl_overflows_only_where_the_result_does(var, noise, y):
    want = exact_kl(0.0, var, y, noise)
    got = gp_kl(0.0, var, y, noise)
    if want < 1.7e308:
        assert_exact(got, want)
    np.testing.assert_allclose(gp_kl(0.0, [var], [y], noise), got, rtol=1e-14)


@pytest.mark.parametrize("u", [-0.999, -0.5, -0.3, -0.2, -1e-3, -1e-12, 1e-12, 0.5, 1e5])
def test_log1p_excess_on_both_sides_of_zero(u):
    with mpmath.workdps(60):
        want = mpmath.mpf(u) - mpmath.log1p(mpmath.mpf(u))
    assert_exact(njit(lambda u: bound_array.log1p_excess(u))(u), want, 3e-15)


def test_precision_check_can_fail():
    with pytest.raises(AssertionError):
        assert_exact(0.5 * (1e-9 - math.log1p(1e-9)), exact_kl(0.0, 1e-9, 0.0, 1.0))


def test_gp_kl_broadcasts_like_a_ufunc():
    rng = np.random.default_rng(1)
    mean, var = rng.normal(size=(3, 1)), rng.exponential(size=700)
    got = gp_kl(mean, var, 0.3, 0.1)
    assert got.shape == (3, 700)
    np.testing.assert_allclose(got, twins.gp_kl(mean, var, 0.3, 0.1), rtol=1e-13)
    assert isinstance(gp_kl(0.0, 1.0, 0.5, 0.1), float)
    assert isinstance(gp_kl(np.float32(0), 1, np.array(0.5), 0.1), float)
    assert gp_kl([], 1.0, 0.0, 1.0).shape == (0,)


def test_gp_kl_array_equals_scalar_in_every_place():
    # Several blocks, with rare elements (no residual, no variance, extreme ones) in some of them.
    rng = np.random.default_rng(2)
    n = 3 * bound_array.BLOCK + 7
    mean, y = rng.normal(size=(2, n))
    var, noise = rng.exponential(size=n), rng.exponential(size=n) + 1e-3
    y[5], var[9], y[bound_array.BLOCK + 1] = mean[5], 0.0, 1e150
    var[-1], noise[-1] = 1e-200, 1e-10
    each = [gp_kl(*(float(v) for v in row)) for row in zip(mean, var, y, noise, strict=True)]
    np.testing.assert_allclose(gp_kl(mean, var, y, noise), each, rtol=1e-14)
    np.testing.assert_allclose(
        gp_kl(0.25, var, 1.0, 0.5),
        [gp_kl(0.25, float(v), 1.0, 0.5) for v in var],
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    "layout", ["strided", "reversed", "fortran", "readonly", "integer", "list"]
)
def test_gp_kl_does_not_depend_on_the_layout(layout):
    base = np.arange(1.0, 25.0).reshape(4, 6)
    var = {
        "strided": np.repeat(base, 2, axis=1)[:, ::2],
        "reversed": base[::-1, ::-1].copy()[::-1, ::-1],
        "fortran": np.asfortranarray(base),
        "readonly": base.copy(),
        "integer": base.astype(np.int32),
        "list": base.tolist(),
    }[layout]
    if layout == "readonly":
        var.flags.writeable = False
    before = np.array(var)
    got = gp_kl(0.5, var, 1.0, 2.0)
    np.testing.assert_array_equal(got, gp_kl(0.5, base, 1.0, 2.0))
    np.testing.assert_array_equal(var, before)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0.0, -1.0, 0.0, 1.0), r"`var` must not be negative, got -1.0"),
        ((0.0, [1.0, -2.0], 0.0, 1.0), r"`var` must not be negative, got -2.0 at index 1"),
        ((0.0, 1.0, 0.0, 0.0), r"`noise` must be positive, got 0.0"),
        ((0.0, 1.0, 0.0, [[1.0, -0.5]]), r"`noise` must be positive, got -0.5 at index \(0, 1\)"),
        ((math.nan, 1.0, 0.0, 1.0), r"`mean` must be finite, got nan"),
        ((0.0, math.inf, 0.0, 1.0), r"`var` must be finite, got inf"),
        ((0.0, 1.0, [0.0, math.inf], 1.0), r"`y` must be finite, got inf at index 1"),
        ((0.0, 1.0, 0.0, math.nan), r"`noise` must be finite, got nan"),
    ],
)
def test_gp_kl_refuses_and_names(arguments, match):
    with pytest.raises(ValueError, match=match):
        gp_kl(*arguments)


def test_gp_kl_refuses_other_types_and_shapes():
    with pytest.raises(TypeError, match="`var` must hold real numbers"):
        gp_kl(0.0, "a", 0.0, 1.0)
    with pytest.raises(ValueError, match=r"do not fit together: mean \(2,\), var \(3,\)"):
        gp_kl([0.0, 1.0], [1.0, 1.0, 1.0], 0.0, 1.0)


def test_a_bound_module_needs_neither_numba_nor_scipy_until_it_is_used():
    code = (
        "import sys, fastal.bound as bound\n"
        "bound.bound_constant(0.0, 2.0)\n"
        "print(sorted({'numba', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout


def test_scalar_form_is_callable_from_compiled_code():
    kernel = bound_array.gp_kl_scalar

    @njit
    def total(var):
        result = 0.0
        for value in var:
            result += kernel(0.1, value, 0.7, 0.2)
        return result

    var = np.linspace(0.0, 3.0, 50)
    assert total(var) == pytest.approx(gp_kl(0.1, var, 0.7, 0.2).sum(), rel=1e-13)


@pytest.mark.parametrize("width", [0.0, 1e-5, 0.1, 1.9, 2.0, 2.1, 50.0, 1e4, 1e300])
def test_bound_constant(width):
    with mpmath.workdps(60):
        z = mpmath.mpf(width) / 2
        want = 2 * (z - mpmath.log(2) + mpmath.log1p(mpmath.exp(-2 * z)))
    got = bound_constant(0.0, width)
    assert abs(got - want) <= 4e-15 * want
    assert bound_constant(-1.0, width - 1.0) == pytest.approx(got, rel=1e-9, abs=1e-14)
    if width in (0.1, 50.0):
        assert got == pytest.approx(twins.bound_constant(0.0, width), rel=1e-12)


def test_bound_constant_refuses():
    with pytest.raises(ValueError, match=r"`a` must not exceed `b`, got a = 2.0 and b = 1.0"):
        bound_constant(2, 1)
    with pytest.raises(ValueError, match="`b` must be finite, got inf"):
        bound_constant(0, math.inf)


def random_covariance(rng, k):
    A = rng.normal(size=(k, k + 2))
    return A @ A.T / k + 0.1 * np.eye(k)


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_gaussian_kl_equals_the_twin(k):
    rng = np.random.default_rng(k)
    m0, m1 = rng.normal(size=(2, k))
    c0, c1 = random_covariance(rng, k), random_covariance(rng, k)
    for jitter in (0.0, 0.01):
        got = gaussian_kl(m0, c0, m1, c1, jitter=jitter)
        assert got == pytest.approx(twins.gaussian_kl(m0, c0, m1, c1, jitter=jitter), rel=1e-9)
    assert 0.0 <= gaussian_kl(m0, c0, m0, c0) < 1e-28


def test_gaussian_kl_of_nearly_equal_distributions():
    # KL(N(0, 1 + e) || N(0, 1)) = (e - log(1 + e)) / 2
    for e in (1e-3, 1e-6, 1e-9):
        with mpmath.workdps(60):
            x = mpmath.mpf(1.0 + e) - 1
            want = (x - mpmath.log1p(x)) / 2
        # The factor is a rounded square root: an error of eps in 1 + e.
        assert abs(gaussian_kl(0.0, 1.0 + e, 0.0, 1.0) / want - 1) < 4e-16 / e * 2
    assert gaussian_kl(0.0, 2.0, 1.0, 4.0) == pytest.approx(twins.gaussian_kl(0.0, 2.0, 1.0, 4.0))


def test_gaussian_kl_refuses():
    eye = np.eye(2)
    with pytest.raises(ValueError, match="`mean1` must have 2 elements, got 3"):
        gaussian_kl([0, 0], eye, [0, 0, 0], eye)
    with pytest.raises(ValueError, match=r"`cov0` must have shape \(2, 2\), got \(3, 3\)"):
        gaussian_kl([0, 0], np.eye(3), [0, 0], eye)
    with pytest.raises(ValueError, match=r"`cov1` must be symmetric, got 0.5 at \(0, 1\)"):
        gaussian_kl([0, 0], eye, [0, 0], [[1, 0.5], [0, 1]])
    with pytest.raises(ValueError, match=r"`jitter` must not be negative, got -1\.0"):
        gaussian_kl([0, 0], eye, [0, 0], eye, jitter=-1)
    with pytest.raises(ValueError, match="`mean0` must be one-dimensional"):
        gaussian_kl([[0, 0]], eye, [0, 0], eye)
    singular = np.ones((2, 2))
    with pytest.raises(
        np.linalg.LinAlgError, match="`cov1` is not positive definite: the leading minor of order 2"
    ):
        gaussian_kl([0, 0], eye, [0, 0], singular)
    assert math.isfinite(gaussian_kl([0, 0], eye, [0, 0], singular, jitter=0.01))


@pytest.mark.parametrize("seed", range(5))
def test_the_short_formula_is_the_dense_divergence(seed):
    # Both posteriors on all t + 1 inputs (Corollary 1), by dense algebra only.
    rng = np.random.default_rng(seed)
    t, noise = 6, 0.05
    twin = twins.GaussianProcess(0.8, noise)
    X, y = rng.uniform(0, 6, size=(t + 1, 1)), rng.normal(size=t + 1)
    for i in range(t):
        twin.add(X[i], y[i])
    before = twin.predict(X, return_cov=True)
    mean, var = twin.predict(X[t:], return_var=True)
    twin.add(X[t], y[t])
    after = twin.predict(X, return_cov=True)
    dense = gaussian_kl(*before, *after)
    assert gp_kl(mean[0], var[0], y[t], noise) == pytest.approx(dense, rel=1e-9, abs=1e-9)


def artificial(n, rng):
    """The artificial data of the paper, section 5.2."""
    x = rng.uniform(-5, 15, size=n)
    clean = np.exp(-((x - 2) ** 2) / 2) + np.exp(-((x - 6) ** 2) / 10) + 1 / (x**2 + 1)
    return x, clean + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_holds_on_the_artificial_data(seed):
    # Gap of the expected loss on test points before and after each label, in the setting of the
    # paper: labels at maximum variance out of a pool, parameters near the optimum of the marginal
    # likelihood (fit_hyperparameters on 300 points gives 1.1 to 1.5 for the length scale).
    rng = np.random.default_rng(seed)
    noise, size = 0.05**2, 50
    x, y = artificial(size + 1000, rng)
    constant = bound_constant(0.0, float(np.ptp(y)))
    gp = twins.GaussianProcess(1.4, noise)

    def expected_loss():
        mean, var = gp.predict(x[size:], return_var=True)
        square = ((y[size:] - mean) ** 2 + var).mean()
        return square / (2 * noise) + 0.5 * math.log(2 * math.pi * noise)

    loss, pool, gaps, bounds = expected_loss(), list(range(size)), [], []
    for _ in range(size):
        _, var = gp.predict(x[pool], return_var=True)
        best = pool.pop(int(var.argmax()))
        bounds.append(gp.add(x[best], y[best]))
        new = expected_loss()
        gaps.append(loss - new)
        loss = new
    assert (np.array(gaps) <= np.array(bounds) + constant).all()
    # The check has teeth: a bound of a twentieth would be broken.
    assert (np.array(gaps) > 0.05 * np.array(bounds) + constant).any()


def test_prior_kl_equals_the_twin():
    rng = np.random.default_rng(5)
    K = random_covariance(rng, 12)
    y, noise = rng.normal(size=12), rng.uniform(0.05, 0.3, size=12)
    for jitter in (0.0, 0.01):
        got = gp_prior_kl(K, y, noise, mean=0.3, jitter=jitter)
        want = twins.gp_prior_kl(K, y, noise, mean=0.3, jitter=jitter)
        assert got == pytest.approx(want, rel=1e-8)
    # Duplicates: the prior covariance has no inverse, the divergence exists all the same. Two
    # labels of one value with noise w are one label with noise w/2.
    two = gp_prior_kl(np.ones((2, 2)), [0.4, 0.4], 0.2)
    assert two == pytest.approx(gp_prior_kl([[1.0]], [0.4], 0.1), rel=1e-12)
    assert gp_prior_kl(np.empty((0, 0)), [], 0.1) == 0.0


def test_prior_kl_refuses():
    with pytest.raises(ValueError, match=r"`cov` must have shape \(1, 1\)"):
        gp_prior_kl(np.eye(2), [1.0], 0.1)
    with pytest.raises(ValueError, match=r"`noise` must be positive, got 0\.0"):
        gp_prior_kl(np.eye(2), [1.0, 2.0], 0.0)
    with pytest.raises(ValueError, match=r"`noise` must be one number or one per label \(2\)"):
        gp_prior_kl(np.eye(2), [1.0, 2.0], [0.1, 0.1, 0.1])
    with pytest.raises(np.linalg.LinAlgError, match="increase the noise variance"):
        gp_prior_kl([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0], 0.1)


def test_pac_bayesian_bounds():
    assert alquier_bound(0.2, 3.0, 50, 1.5, delta=0.05) == pytest.approx(
        twins.alquier_bound(0.2, 3.0, 50, 1.5, delta=0.05), rel=1e-14
    )
    assert mcallester_bound(0.2, 3.0, 50, delta=0.05) == pytest.approx(
        twins.mcallester_bound(0.2, 3.0, 50, delta=0.05), rel=1e-14
    )
    # By hand: delta = 1, kl = 0, n = 1, range 2: 0 + 0 + 2; and sqrt(log(2) / 2).
    assert alquier_bound(0.0, 0.0, 1, 2.0, delta=1.0) == 2.0
    assert mcallester_bound(0.0, 0.0, 1, delta=1.0) == pytest.approx(math.sqrt(math.log(2) / 2))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: alquier_bound(0.1, -1.0, 5, 1.0), "`kl` must not be negative, got -1.0"),
        (lambda: alquier_bound(0.1, 1.0, 0, 1.0), "`n` must be at least 1, got 0"),
        (lambda: alquier_bound(0.1, 1.0, 5, 1.0, delta=0), r"`delta` must be in \(0, 1\], got 0"),
        (lambda: alquier_bound(0.1, 1.0, 5, -1.0), "`loss_range` must not be negative, got -1.0"),
        (lambda: mcallester_bound(1.5, 1.0, 5), r"`risk` must be in \[0, 1\], got 1.5"),
        (lambda: mcallester_bound(0.5, 1.0, 5, delta=2), r"`delta` must be in \(0, 1\], got 2.0"),
    ],
)
def test_pac_bayesian_bounds_refuse(call, match):
    with pytest.raises(ValueError, match=match):
        call()


SCRIPT = """
import json
import numpy as np
from fastal.bound import gp_kl, gaussian_kl
from fastal.models.gp import GaussianProcess
import fastal._core.bound_array, fastal._core.cholesky, fastal._core.covariance

frozen = np.array([0.5, 0.25])
frozen.flags.writeable = False
for x in (frozen, [1, 2], np.array([1.5, 7.0, 2.5])[::2], np.float32([1, 3])):
    gp = GaussianProcess()
    gp.add(x, 0.1)
    gp.add(x, np.float64(0.1), noise=1)
X = np.random.default_rng(0).normal(size=(150, 2))
for inputs in (X, X[::-1], np.asfortranarray(X), X.tolist()):
    gp.add_batch(inputs, X[:, 0])
    gp.predict(inputs, return_var=True)
gp.predict(X, return_cov=True)
gp.copy().refresh()
gp.drift()
gp_kl(0.0, X[:, 0] ** 2, X[:, 1], 0.5)
gp_kl(0.0, X**2, frozen, 1)
gp_kl(0, 1, 2, 3)
gaussian_kl([0, 0], np.eye(2), [0, 0], np.eye(2))
GaussianProcess().fit_hyperparameters(X, X[:, 0], restarts=1)
counts = {}
for module in (fastal._core.bound_array, fastal._core.cholesky, fastal._core.covariance):
    for name, value in vars(module).items():
        if hasattr(value, "stats"):
            stats = value.stats
            counts[name] = [
                sum(stats.cache_hits.values()),
                sum(stats.cache_misses.values()),
                len(value.signatures),
            ]
print(json.dumps(counts))
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")
def test_a_second_process_compiles_nothing(tmp_path):
    root = Path(fastal.__file__).parents[1]  # the package under test, wherever it is installed
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    counts = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            cwd=tmp_path,
        )
        counts.append(json.loads(done.stdout))
    first, second = counts
    assert sum(misses for _, misses, _ in first.values()) > 0
    assert sum(hits for hits, _, _ in second.values()) > 0
    assert {name: misses for name, (_, misses, _) in second.items() if misses} == {}
    # Whatever the arrays look like, the kernels see one type each.
    assert {name: kinds for name, (_, _, kinds) in second.items() if kinds > 1} == {}
