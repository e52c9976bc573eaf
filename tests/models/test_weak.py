"""The fit with a weak prior: one length scale, noise, amplitude and mean from few labels."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import twins
from numba import config, njit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from threadpoolctl import threadpool_limits

from fastal import GaussianProcess
from fastal._core.covariance import KINDS
from fastal._core.weak import (
    HIGH,
    LOW,
    MEAN,
    PLACE,
    SLOPE_U,
    SLOPE_V,
    VALUE,
    U,
    V,
    descend,
    evaluate,
    lowest_in_box,
    pair_squares,
    search,
)
from fastal.models import weak_fit

SIZE = 12 if config.DISABLE_JIT else 40
SETS = ["airfoil", "concrete", "power_plant", "protein", "yacht"]
KERNELS = list(KINDS)
compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="takes minutes interpreted")


def data(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] + 0.1 * rng.normal(size=n)


def real_data(name, n, seed=0):
    table = np.loadtxt(Path(os.environ["FASTAL_DATA"]) / f"{name}.txt")
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    rows = np.random.default_rng(seed).permutation(len(table))[:n]
    return table[rows, :-1], table[rows, -1]


def at(X, y, kind, weak, u, v, order=2):
    """Return the place and the curvature that the kernel computes."""
    n, d = X.shape
    squares = np.empty((n, n))
    pair_squares(np.ascontiguousarray(X.T), float(d), squares)
    place, curvature = np.full(PLACE, np.nan), np.full(3, np.nan)
    place[U], place[V] = u, v
    spare = np.empty((n, n)), np.empty((n, n)), np.empty((4, n))
    assert evaluate(kind, squares, y, weak, place, order, *spare, curvature) == 0
    return place, curvature


def twin(X, y, kernel, weak, u, v):
    scale = math.exp(u) * math.sqrt(X.shape[1])
    estimator = "weak" if weak else "plain"
    return twins.weak_log_posterior(X, y, scale, math.exp(v), kernel=kernel, estimator=estimator)


# The function that is maximised ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weak", [True, False])
@pytest.mark.parametrize(("u", "v"), [(-0.4, -2.0), (0.5, -6.0), (2.0, 1.0), (-2.5, -9.0)])
def test_slopes_are_those_of_the_slow_twin(kernel, weak, u, v):
    X, y = data(15)
    X[3] = X[7]  # a distance of 0
    place, _ = at(X, y, KINDS[kernel], weak, u, v)
    # Central differences: h^2 f''' / 6 is about 1e-9, the rounding of f over h about 1e-9 as well.
    h = 1e-4
    for slope, (du, dv) in ((SLOPE_U, (h, 0)), (SLOPE_V, (0, h))):
        above, below = (twin(X, y, kernel, weak, u + s * du, v + s * dv)[0] for s in (1, -1))
        assert -place[slope] == pytest.approx((above - below) / (2 * h), rel=1e-6, abs=1e-6)
    # f leaves out a constant that is the same everywhere
    value, mean, amplitude = twin(X, y, kernel, weak, u, v)
    other = at(X, y, KINDS[kernel], weak, 0.1, -3.0, order=0)[0]
    expected = value - twin(X, y, kernel, weak, 0.1, -3.0)[0]
    assert other[VALUE] - place[VALUE] == pytest.approx(expected, abs=1e-9)
    assert place[MEAN] == pytest.approx(mean, rel=1e-9)
    assert place[-1] / (len(y) - 1) == pytest.approx(amplitude, rel=1e-9)


def test_the_restricted_likelihood_is_the_integral_over_mean_and_amplitude():
    X, y = data(6, seed=3)
    scale, ratio = 1.3, 0.07
    # The likelihood on a grid of means and log amplitudes. The trapezoidal rule is exact to its
    # tails for a function that falls off on both sides like this one; da / a is d(log a).
    A = twins.GaussianProcess(scale).covariance(X, X) + ratio * np.eye(6)
    inverse, log_det = np.linalg.inv(A), np.linalg.slogdet(A)[1]
    total = 0.0
    logs = np.linspace(-8, 45, 2000)
    for log_a in logs:
        # the mean's standard deviation grows with that of the labels
        m = np.linspace(-12, 12, 601) * math.exp(0.5 * log_a) + y.mean()
        residual = y - m[:, None]
        form = np.einsum("ij,jk,ik->i", residual, inverse, residual)
        log_density = -0.5 * (form / math.exp(log_a) + log_det + 6 * (log_a + math.log(2 * np.pi)))
        total += np.exp(log_density).sum() * (m[1] - m[0]) * (logs[1] - logs[0])
    plain, mean, amplitude = twins.weak_log_posterior(X, y, scale, ratio, estimator="plain")
    assert plain == pytest.approx(math.log(total), abs=1e-6)
    # mean and amplitude are where the integrated and the whole likelihood are largest
    weights = inverse.sum(axis=0)
    assert mean == pytest.approx(weights @ y / weights.sum(), rel=1e-12)
    assert amplitude == pytest.approx((y - mean) @ inverse @ (y - mean) / 5, rel=1e-12)
    weak = twins.weak_log_posterior(X, y, scale, ratio)[0]
    u, v = math.log(scale / math.sqrt(2)), math.log(ratio)
    prior = -0.5 * u**2 - 0.5 * ((v + 3) / 2) ** 2 - math.log(2 * math.pi) - math.log(2)
    assert weak - plain == pytest.approx(prior, rel=1e-12)


def test_average_information():
    X, y = data(15)
    _, curvature = at(X, y, KINDS["matern52"], False, 0.3, -2.0)
    scale, g, h = math.exp(0.3) * math.sqrt(2), math.exp(-2.0), 1e-6
    R = twins.GaussianProcess(scale, kernel="matern52").covariance(X, X)
    R_up = twins.GaussianProcess(scale * math.exp(h), kernel="matern52").covariance(X, X)
    W = np.linalg.inv(R + g * np.eye(15))
    P = W - np.outer(W.sum(axis=0), W.sum(axis=0)) / W.sum()
    slopes = ((R_up - R) / h, g * np.eye(15))
    Q, alpha = y @ P @ y, P @ y
    for entry, (A, B) in zip(
        curvature, [(slopes[i], slopes[j]) for i, j in ((0, 0), (0, 1), (1, 1))], strict=True
    ):
        a, b = A @ alpha, B @ alpha
        expected = 7 * (a @ P @ b / Q - (alpha @ a) * (alpha @ b) / Q**2)
        assert entry == pytest.approx(expected, rel=1e-4)
    assert curvature[0] > 0
    assert curvature[0] * curvature[2] > curvature[1] ** 2


def test_the_step_is_the_lowest_point_of_the_box():
    rng = np.random.default_rng(0)
    steps = np.linspace(0, 1, 41)
    for _ in range(100 if config.DISABLE_JIT else 1000):
        gradient, curvature = tuple(rng.normal(size=2)), rng.normal(size=3)
        low, high = tuple(-rng.uniform(0, 2, size=2)), tuple(rng.uniform(0, 2, size=2))
        a, b, q = lowest_in_box(gradient, curvature, low, high)
        assert low[0] <= a <= high[0]
        assert low[1] <= b <= high[1]

        def model(a, b, g=gradient, c=curvature):
            return g[0] * a + g[1] * b + 0.5 * (c[0] * a * a + c[2] * b * b) + c[1] * a * b

        assert q == pytest.approx(model(a, b), abs=1e-12)
        grid = model(
            low[0] + (high[0] - low[0]) * steps[:, None], low[1] + (high[1] - low[1]) * steps
        )
        assert q <= grid.min() + 1e-12


# The optimum -----------------------------------------------------------------------------------------


def assert_no_grid_point_is_better(X, y, kernel, estimator):
    fit = weak_fit(X, y, KINDS[kernel], estimator=estimator)
    root = math.sqrt(X.shape[1])
    best = max(
        twins.weak_log_posterior(
            X, y, math.exp(u) * root, math.exp(v), kernel=kernel, estimator=estimator
        )[0]
        for u in np.linspace(LOW[0], HIGH[0], 60)
        for v in np.linspace(LOW[1], HIGH[1], 60)
    )
    # sums of the twin are rounded otherwise
    assert fit.log_posterior >= best - 1e-8
    value, mean, amplitude = twins.weak_log_posterior(
        X, y, fit.lengthscale, fit.ratio, kernel=kernel, estimator=estimator
    )
    assert fit.log_posterior == pytest.approx(value, abs=1e-7)
    assert fit.mean == pytest.approx(mean, rel=1e-6, abs=1e-8)
    assert fit.amplitude == pytest.approx(amplitude, rel=1e-6)


@compiled_only
@pytest.mark.parametrize("estimator", ["weak", "plain"])
@pytest.mark.parametrize(("kernel", "n"), [("rbf", 6), ("matern12", 20), ("matern52", 35)])
def test_no_point_of_a_fine_grid_is_better(kernel, n, estimator):
    assert_no_grid_point_is_better(*data(n, 3, seed=n), kernel, estimator)


@compiled_only
@pytest.mark.long
@pytest.mark.skipif("FASTAL_DATA" not in os.environ, reason="FASTAL_DATA names no folder of data")
@pytest.mark.parametrize("estimator", ["weak", "plain"])
@pytest.mark.parametrize("n", [5, 8, 20, 60])
@pytest.mark.parametrize("name", SETS)
def test_no_point_of_a_fine_grid_is_better_on_real_data(name, n, estimator):
    for seed, kernel in enumerate(KERNELS):
        X, y = real_data(name, n, seed)
        varying = np.ptp(X, axis=0) > 0
        assert_no_grid_point_is_better(X[:, varying], y, kernel, estimator)


@compiled_only
def test_one_search_ends_where_the_slopes_are_zero():
    X, y = data(30, seed=4)
    squares = np.empty((30, 30))
    pair_squares(np.ascontiguousarray(X.T), 2.0, squares)
    spare = np.empty((30, 30)), np.empty((30, 30)), np.empty((4, 30))
    ends = np.empty((1, PLACE))
    for start in ((0.0, -3.0), (3.0, 2.0), (-2.9, -9.0)):
        place = np.empty(PLACE)
        place[U], place[V] = start
        assert descend(0, squares, y, True, place, math.inf, ends, 0, *spare) < 25
        assert abs(place[SLOPE_U]) + abs(place[SLOPE_V]) < 1e-3


def test_a_warm_start_finds_the_same_with_fewer_evaluations():
    X, y = data(SIZE, seed=5)
    before = weak_fit(X[:-4], y[:-4], 0)
    cold = weak_fit(X, y, 0)
    warm = weak_fit(X, y, 0, start=(before.lengthscale, before.ratio))
    assert warm.log_posterior == pytest.approx(cold.log_posterior, abs=1e-9)
    assert warm.lengthscale == pytest.approx(cold.lengthscale, rel=1e-4)
    assert warm.n_evaluations < cold.n_evaluations


@compiled_only
def test_a_warm_start_leaves_a_bad_optimum():
    # Fast waves: the first labels may be noise about a constant, later ones are not.
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-1.7, 1.7, size=60))[:, None]
    y = np.sin(12 * x[:, 0]) + 0.05 * rng.normal(size=60)
    fit = weak_fit(x, y, 0)
    assert 0.1 < fit.lengthscale < 0.4
    for start in ((20.0, 5.0), (0.05, 1e-4), (1e-300, 1e300), (30.0, 1e-4)):
        assert weak_fit(x, y, 0, start=start).log_posterior > fit.log_posterior - 1e-6


def test_at_the_edge_of_the_box():
    X, y = data(SIZE, seed=6)
    assert not weak_fit(X, y, 0).at_edge
    # A smooth function is too smooth for this kernel at any length scale.
    X = np.random.default_rng(0).normal(size=(40, 3))
    smooth = weak_fit(X, np.sin(X[:, 0]), KINDS["matern12"], estimator="plain")
    assert smooth.at_edge
    assert smooth.lengthscale == pytest.approx(30.0 * math.sqrt(3))
    assert smooth.ratio == pytest.approx(1e-4)


# Invariance ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "shift"), [(7.0, 124.0), (-0.3, 1e3), (1e150, 0.0), (1e-150, 0.0)]
)
def test_units_of_the_labels_change_mean_and_amplitude_alone(factor, shift):
    X, y = data(SIZE, seed=7)
    fit, other = weak_fit(X, y, 3), weak_fit(X, factor * y + shift, 3)
    assert other.lengthscale == pytest.approx(fit.lengthscale, rel=1e-8)
    assert other.ratio == pytest.approx(fit.ratio, rel=1e-8)
    assert other.mean == pytest.approx(factor * fit.mean + shift, rel=1e-8)
    assert other.amplitude == pytest.approx(factor * factor * fit.amplitude, rel=1e-8)
    assert other.noise == pytest.approx(factor * factor * fit.noise, rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_order_of_rows_does_not_matter(kernel):
    X, y = data(SIZE, seed=8)
    order = np.random.default_rng(1).permutation(SIZE)
    fit = weak_fit(X, y, KINDS[kernel])
    other = weak_fit(X[order], y[order], KINDS[kernel])
    np.testing.assert_allclose(other[:5], fit[:5], rtol=1e-8)


def test_constant_columns_do_not_matter():
    X, y = data(SIZE, seed=9)
    more = np.column_stack([X, np.full(SIZE, 3.0), np.zeros(SIZE)])
    np.testing.assert_allclose(weak_fit(more, y, 0)[:5], weak_fit(X, y, 0)[:5], rtol=1e-9)
    # a campaign says how many columns its pool has
    assert weak_fit(X, y, 0, features=4).lengthscale > weak_fit(X, y, 0).lengthscale


def test_duplicates_are_replicates():
    X, y = data(SIZE, seed=10)
    X[SIZE // 2 :] = X[: SIZE - SIZE // 2]
    rng = np.random.default_rng(0)
    y[SIZE // 2 :] = y[: SIZE - SIZE // 2] + 0.1 * rng.normal(size=SIZE - SIZE // 2)
    fit = weak_fit(X, y, 0)
    assert 0.001 < fit.noise < 0.1
    # one place only: the labels know nothing of the length scale, the prior does
    alone = weak_fit(np.ones((8, 2)), np.arange(8.0), 0)
    assert alone.lengthscale == pytest.approx(math.sqrt(2), rel=1e-4)
    assert alone.mean == pytest.approx(3.5)


def test_inputs_of_any_size():
    X, y = data(SIZE, seed=11)
    for kind in KINDS.values():
        # beyond the box all labels are independent, or all inputs one
        far, near = weak_fit(1e300 * X, y, kind), weak_fit(1e-300 * X, y, kind)
        assert all(math.isfinite(value) for value in (*far, *near))
        assert min(far.amplitude, near.amplitude) > 0


@compiled_only
def test_more_labels_than_max_rows_are_a_seeded_subset():
    X, y = data(120, seed=12)
    rows = np.sort(np.random.default_rng(7).choice(120, 80, replace=False))
    part = weak_fit(X, y, 0, max_rows=80, seed=7)
    assert part == weak_fit(X[rows], y[rows], 0)
    assert part != weak_fit(X, y, 0, max_rows=80, seed=8)


@compiled_only
def test_the_same_digits_with_any_number_of_blas_threads():
    X, y = data(400, 3, seed=13)
    fits = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            fits.append(weak_fit(X, y, 0))
    assert fits[0] == fits[1]


@compiled_only
@pytest.mark.long
def test_the_search_can_be_called_from_compiled_code():
    X, y = data(20, seed=14)
    y = (y - y.mean()) / y.std()

    @njit(nogil=True)
    def compiled(Z, y):
        squares, best = np.empty((y.size, y.size)), np.empty(PLACE)
        pair_squares(Z, 2.0, squares)
        search(0, squares, y, True, np.full(2, np.nan), best)
        return best

    best = compiled(np.ascontiguousarray(X.T), y)
    assert math.exp(best[U]) * math.sqrt(2) == pytest.approx(weak_fit(X, y, 0).lengthscale)


# In a Gaussian process -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_are_those_of_scikit_learn(kernel):
    X, y = data(SIZE, seed=15)
    y = 40.0 + 6.0 * y
    gp = GaussianProcess(kernel=kernel)
    assert gp.fit_hyperparameters(X, y, prior="weak") is gp
    assert (gp.n_labels, type(gp.lengthscale)) == (0, float)
    fit = weak_fit(X, y, KINDS[kernel])
    assert (gp.lengthscale, gp.noise, gp.amplitude, gp.mean) == (
        fit.lengthscale, fit.amplitude * fit.ratio, fit.amplitude, fit.mean,
    )  # fmt: skip
    nu = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
    shape = RBF(gp.lengthscale) if kernel == "rbf" else Matern(gp.lengthscale, nu=nu[kernel])
    peer = GaussianProcessRegressor(gp.amplitude * shape, alpha=gp.noise, optimizer=None)
    peer.fit(X, y - gp.mean)
    new = np.random.default_rng(2).normal(size=(30, 2))
    mean, deviation = peer.predict(new, return_std=True)
    gp.add_batch(X, y)  # without a warning of labels that are far off
    ours, var = gp.predict(new, return_var=True)
    np.testing.assert_allclose(ours, mean + gp.mean, rtol=1e-9)
    np.testing.assert_allclose(var, deviation**2, rtol=1e-6)


def test_restarts_1_begins_at_the_present_parameters():
    X, y = data(SIZE, seed=16)
    gp = GaussianProcess().fit_hyperparameters(X[:-3], y[:-3], prior="weak")
    start = gp.lengthscale, gp.noise / gp.amplitude
    gp.fit_hyperparameters(X, y, prior="weak", restarts=1)
    fit = weak_fit(X, y, 0, start=start)
    assert (gp.lengthscale, gp.noise) == (fit.lengthscale, fit.noise)
    several = GaussianProcess([0.5, 2.0]).fit_hyperparameters(X, y, prior="weak", restarts=1)
    assert several.lengthscale == pytest.approx(gp.lengthscale, rel=1e-4)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": np.arange(3.0), "y": [0.0, 1.0, 0.5]}, "`y`.* needs at least 5 labels, got 3"),
        ({"X": [[1.0]], "y": [0.0]}, "`y`.* needs at least 5 labels, got 1"),
        ({"y": np.full(6, 2.5)}, "`y` must have different labels, got 6 times 2.5: equal labels"),
        ({"y": np.zeros(6)}, "`y` must have different labels, got 6 times 0"),
        ({"y": 1e9 * (1 + 1e-16 * np.arange(6))}, "`y` must have different labels"),
        ({"y": 1e-170 * np.arange(6)}, r"`y` must have a variance that is a positive double, got"),
        ({"y": 1e170 * np.arange(6)}, r"`y` must have a variance that is a positive double, got"),
        ({"ard": True}, "`prior`='weak' .* leave out `ard`$"),
        ({"amplitude": True}, "`prior`='weak' .* leave out `amplitude`$"),
        ({"ard": True, "bounds": {}}, "`prior`='weak' .* leave out `ard` and `bounds`$"),
        ({"prior": "strong"}, "`prior` must be 'weak' or None, got 'strong'"),
        ({"prior": True}, "`prior` must be 'weak' or None, got True"),
        ({"y": [0.0, 1.0, 2.0, 0.5, 4.0, math.nan]}, "`y` must be finite, got nan at index 5"),
    ],
)
def test_refusals_change_nothing(change, match):
    gp = GaussianProcess(0.7, 0.2)
    arguments = {"X": np.arange(6.0), "y": [0.0, 1.0, 0.5, 2.0, 0.1, 3.0], "prior": "weak"} | change
    with pytest.raises(ValueError, match=match):
        gp.fit_hyperparameters(**arguments)
    assert (gp.lengthscale, gp.noise, gp.amplitude, gp.mean) == (0.7, 0.2, 1.0, 0.0)
    labelled = GaussianProcess()
    labelled.add(0.0, 0.1)
    with pytest.raises(ValueError, match="needs a process without labels, this one has 1"):
        labelled.fit_hyperparameters(np.arange(6.0), np.arange(6.0), prior="weak")
