"""A finished run, as criteria that need more than its bounds want to see it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from fastal._core import label_traces
from fastal._core.covariance import covariance_rows
from fastal._types import Array, Ints
from fastal.models.gp import GaussianProcess

# Test points at a time: their matrix stays small.
ROWS = 4096


class Record:
    """One run over a pool of N points, T of them labelled; arrays over labels are in their order.

    Z : (d, N), inputs over length scales.  order : (T,), the labelled points.  y : (T,).
    bounds : (T - initial,).  errors : (T,), expected loss on the run's own test set, or None;
    prior_error is the loss before the first label.
    """

    def __init__(
        self, gp: GaussianProcess, Z: Array, order: Ints, y: Array, initial: int, bounds: Array,
        errors: Array | None = None, prior_error: float = np.nan,
    ) -> None:  # fmt: skip
        self.gp, self.Z, self.order, self.y = gp, Z, order, y
        self.initial, self.bounds = initial, bounds
        self.errors, self.prior_error = errors, prior_error

    def unit_process(self) -> GaussianProcess:
        """Return the process for inputs that are divided by the length scales."""
        gp = self.gp
        return GaussianProcess(
            1.0, gp.noise, amplitude=gp.amplitude, mean=gp.mean, kernel=gp.kernel
        )

    def _cross(self, Z: Array) -> Array:
        """Return the prior covariances of some inputs with the labels, (m, T)."""
        labelled = np.ascontiguousarray(self.Z[:, self.order])
        out = np.empty((Z.shape[1], len(self.y)))
        covariance_rows(self.gp.prior.kind, self.gp.amplitude, labelled, len(self.y), Z, 0, out)
        return out

    @cached_property
    def covariance(self) -> Array:
        """K at the labels, (T, T)."""
        return self._cross(np.ascontiguousarray(self.Z[:, self.order]))

    @cached_property
    def _factor(self) -> Array:
        noisy = self.covariance + self.gp.noise * np.eye(len(self.y))
        factor: Array = cholesky(noisy, lower=True, check_finite=False)
        return factor

    def _rows(self, Z: Array) -> Array:
        """Return V = L^-1 k(labels, .), (T, m): row t is what label t takes off the variances."""
        V: Array = solve_triangular(self._factor, self._cross(Z).T, lower=True, check_finite=False)
        return V

    def largest_variances(self) -> Array:
        """Return the largest variance of an unlabelled point after each label; 0 without one."""
        left = self.gp.amplitude - np.cumsum(self._rows(self.Z) ** 2, axis=0)
        for t, point in enumerate(self.order):
            left[t:, point] = 0.0
        largest: Array = np.maximum(left.max(axis=1), 0.0)
        return largest

    def cross_validation(self, folds: int) -> Array:
        """Return the expected loss by cross-validation after each label (see the kernel)."""
        out = np.empty(len(self.y))
        # more folds than labels are all the same: there is no measure
        folds = min(folds, len(self.y) + 1)
        label_traces.cross_validation(
            self.covariance, self.y - self.gp.mean, self.gp.noise, folds, out
        )
        return out

    def pac_bayes(self, kappa: float) -> Array:
        """Return the part of the PAC-Bayesian bound that moves, after each label."""
        out = np.empty(len(self.y))
        label_traces.pac_bayes(self.covariance, self.y - self.gp.mean, self.gp.noise, kappa, out)
        return out

    def losses(self, X: Array, y: Array) -> Array:
        """Return the expected loss on a test set after each label."""
        Z, gp = self.gp.prior.scale("X_test", X), self.gp
        white = solve_triangular(self._factor, self.y - gp.mean, lower=True, check_finite=False)
        total = np.zeros(len(self.y))
        for low in range(0, len(y), ROWS):
            V = self._rows(np.ascontiguousarray(Z[:, low : low + ROWS]))
            # mu_t = mean + sum_{r<t} V_r z_r,  s_t = k - sum_{r<t} V_r^2
            errors = y[low : low + ROWS] - gp.mean - np.cumsum(V * white[:, None], axis=0)
            total += (errors**2 + gp.amplitude - np.cumsum(V**2, axis=0)).sum(axis=1)
        losses: Array = total / (2 * len(y) * gp.noise) + 0.5 * np.log(2 * np.pi * gp.noise)
        return losses


def prior_loss(gp: GaussianProcess, y: Array) -> float:
    """Return the expected loss of the prior on a test set with these labels."""
    square = float(np.mean((y - gp.mean) ** 2)) + gp.amplitude
    return square / (2 * gp.noise) + 0.5 * float(np.log(2 * np.pi * gp.noise))
