"""The bound of one label: scalars from compiled code, arrays, and precision."""

import math

import mpmath
import numpy as np
import twins
from numba import njit
from scipy.linalg import cho_factor, cho_solve

from fastal import GaussianProcess
from fastal.bound import gaussian_kl, gp_kl
from fastal.jit import gp_kl as gp_kl_scalar

from ._inside import inside
from ._timing import ratio

gp_bounds = inside("gp_bounds", "fastal.bound")  # since 0.2


@njit
def sum_of_bounds(var):
    total = 0.0
    for value in var:
        total += gp_kl_scalar(0.1, value, 0.7, 0.3)
    return total


@njit
def sum_of_logs(var):
    total = 0.0
    for value in var:
        total += math.log1p(value)
    return total


def numpy_expression(mean, var, y, noise):
    """What one would write without fastal; it cancels for small var / noise."""
    u = var / noise
    return 0.5 * (u - np.log1p(u) + u * (y - mean) ** 2 / (var + noise))


class Scalar:
    """100,000 scalar calls from compiled code; the peer is the bare log1p they need."""

    params = (["fastal", "log1p"], ["small", "mixed", "large"])
    param_names = ("implementation", "ratios")

    def setup(self, implementation, ratios):
        low, high = {"small": (-8, -2), "mixed": (-3, 1), "large": (1, 6)}[ratios]
        self.var = 10 ** np.random.default_rng(0).uniform(low, high, 100_000)
        self.function = {"fastal": sum_of_bounds, "log1p": sum_of_logs}[implementation]
        self.function(self.var)

    def time_sum(self, implementation, ratios):
        self.function(self.var)


class ScalarRatio:
    params = (["small", "mixed", "large"],)
    param_names = ("ratios",)

    def track_over_log1p(self, ratios):
        """At most 2."""
        ours, bare = Scalar(), Scalar()
        ours.setup("fastal", ratios)
        bare.setup("log1p", ratios)
        return ratio(lambda: ours.function(ours.var), lambda: bare.function(bare.var))

    track_over_log1p.unit = "ratio"


class Elements:
    """Arrays, with one noise variance each or one for all."""

    params = (["fastal", "numpy", "reference"], [1_000, 1_000_000], ["array", "scalar"])
    param_names = ("implementation", "n", "noise")

    def setup(self, implementation, n, noise):
        if implementation == "reference" and n > 1_000:
            raise NotImplementedError("too slow")
        rng = np.random.default_rng(0)
        mean, y = rng.normal(size=(2, n))
        var, noises = rng.exponential(size=n), rng.exponential(size=n) + 0.1
        self.arguments = mean, var, y, noises if noise == "array" else 0.1
        self.function = {
            "fastal": gp_kl,
            "numpy": numpy_expression,
            "reference": twins.gp_kl,
        }[implementation]
        self.function(*self.arguments)

    def time_gp_kl(self, implementation, n, noise):
        self.function(*self.arguments)


class ElementsRatio:
    params = ([1_000, 1_000_000],)
    param_names = ("n",)

    def track_numpy_over_gp_kl(self, n):
        """At least 3 at 10^6."""
        rng = np.random.default_rng(0)
        mean, var, y, noise = rng.normal(size=n), rng.random(n), rng.normal(size=n), rng.random(n)
        return ratio(
            lambda: numpy_expression(mean, var, y, noise), lambda: gp_kl(mean, var, y, noise)
        )

    track_numpy_over_gp_kl.unit = "ratio"


class Precision:
    """Largest relative error against 50 digits, ratios from 1e-140 to 1e12."""

    params = (["fastal", "numpy"],)
    param_names = ("implementation",)

    def track_relative_error(self, implementation):
        function = {"fastal": gp_kl, "numpy": numpy_expression}[implementation]
        worst = 0.0
        with mpmath.workdps(400):
            for ratio in np.logspace(-140, 12, 300):
                u = mpmath.mpf(ratio)
                exact = (u - mpmath.log1p(u)) / 2
                worst = max(worst, float(abs(function(0.0, ratio, 0.0, 1.0) / exact - 1)))
        return worst


class Dense:
    """Divergence of two Gaussian distributions of k dimensions."""

    params = (["fastal", "reference"], [10, 200])
    param_names = ("implementation", "k")

    def setup(self, implementation, k):
        rng = np.random.default_rng(0)
        A, B = rng.normal(size=(2, k, k + 2))
        self.arguments = np.zeros(k), A @ A.T + np.eye(k), np.ones(k), B @ B.T + np.eye(k)
        self.function = {"fastal": gaussian_kl, "reference": twins.gaussian_kl}[implementation]
        self.function(*self.arguments)

    def time_gaussian_kl(self, implementation, k):
        self.function(*self.arguments)


def prefixes(cov, y, noise):
    """What one would write without the factor: the posterior before each label, solved anew."""
    found = np.empty(len(y))
    for t in range(len(y)):
        A = cov[: t + 1, : t + 1].copy()
        A[np.diag_indices(t)] += noise
        weights = cho_solve(cho_factor(A[:t, :t], lower=True), A[:t, t]) if t else A[:t, t]
        mean, var = weights @ y[:t], A[t, t] - weights @ A[:t, t]
        found[t] = gp_kl(float(mean), float(var), float(y[t]), noise)
    return found


class AllBounds:
    """All bounds of T labels after a fit: one factor, or a refit to the labels before each.

    gp: fastal's own process, label by label.
    """

    params = (["fastal", "gp", "prefixes", "reference"], [100, 500, 1_000])
    param_names = ("implementation", "T")

    def setup(self, implementation, T):
        if implementation in ("prefixes", "reference") and T > 500:
            raise NotImplementedError("too slow")
        self.arguments = self._labels(T)
        self.function = {
            "fastal": gp_bounds,
            "gp": self._one_by_one,
            "prefixes": prefixes,
            "reference": twins.gp_bounds,
        }[implementation]
        np.testing.assert_allclose(
            self.function(*self.arguments), gp_bounds(*self.arguments), rtol=1e-8
        )

    def _labels(self, T):
        rng = np.random.default_rng(0)
        self.X = rng.uniform(-3, 3, (T, 2))
        square = ((self.X[:, None] - self.X) ** 2).sum(axis=-1)
        return np.exp(-0.5 * square), np.sin(self.X[:, 0]), 0.01

    def _one_by_one(self, cov, y, noise):
        return GaussianProcess(1.0, noise).add_batch(self.X, y)

    def time_all_bounds(self, implementation, T):
        self.function(*self.arguments)


class AllBoundsRatio:
    params = ([100, 500],)
    param_names = ("T",)

    def track_refits_over_gp_bounds(self, T):
        """At least 10: a refit per label is O(T^4), the factor O(T^3)."""
        labels = AllBounds()._labels(T)
        return ratio(lambda: prefixes(*labels), lambda: gp_bounds(*labels), rounds=3)

    track_refits_over_gp_bounds.unit = "ratio"
