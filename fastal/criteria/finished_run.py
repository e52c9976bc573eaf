"""A finished run, for criteria that need more than its bounds."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from fastal._core import label_traces
from fastal._core.covariance import covariance_rows
from fastal._core.expected_loss import expected_loss
from fastal._types import Array, Ints

if TYPE_CHECKING:
    from fastal.models.gp import GaussianProcess
    from fastal.stopping.replay import Fitted

# Test points at a time: their matrix stays small.
ROWS = 4096


class Record:
    """One run over a pool of N points, T of them labelled; arrays over labels are in their order.

    prior : the process before the first label.  scaled : (d, N), inputs over length scales.
    order : (T,), the labelled points.  y : (T,).  n_initial : labels without a bound.
    bounds : (T - n_initial,).  losses : (T,), expected loss on the run's own test set, or None;
    prior_loss is the loss before the first label.
    """

    def __init__(
        self, prior: GaussianProcess, scaled: Array, order: Ints, y: Array, n_initial: int,
        bounds: Array, losses: Array | None = None, prior_loss: float = np.nan,
    ) -> None:  # fmt: skip
        self.prior, self.scaled, self.order, self.y = prior, scaled, order, y
        self.n_initial, self.bounds = n_initial, bounds
        self.losses, self.prior_loss = losses, prior_loss
        self.refits: tuple[Fitted, ...] = ()
        self._points: Array | None = None

    @property
    def points(self) -> Array:
        """The pool in its own units, (N, d)."""
        if self._points is None:
            scale = np.reshape(self.prior.lengthscale, (-1, 1))
            self._points = np.ascontiguousarray((self.scaled * scale).T)
        return self._points

    @points.setter
    def points(self, points: Array) -> None:
        self._points = points

    def _cross(self, Z: Array) -> Array:
        """Return the prior covariances of some inputs with the labels, (m, T)."""
        labelled = np.ascontiguousarray(self.scaled[:, self.order])
        out, prior = np.empty((Z.shape[1], len(self.y))), self.prior.prior
        covariance_rows(prior.kind, prior.amplitude, labelled, len(self.y), Z, 0, out)
        return out

    @cached_property
    def covariance(self) -> Array:
        """K at the labels, (T, T)."""
        return self._cross(np.ascontiguousarray(self.scaled[:, self.order]))

    @property
    def _noise(self) -> Array:
        return np.full(len(self.y), self.prior.noise)

    @cached_property
    def _factor(self) -> Array:
        noisy = self.covariance + self.prior.noise * np.eye(len(self.y))
        factor: Array = cholesky(noisy, lower=True, check_finite=False)
        return factor

    def _rows(self, Z: Array) -> Array:
        """Return V = L^-1 k(labels, .), (T, m): row t is what label t takes off the variances."""
        V: Array = solve_triangular(self._factor, self._cross(Z).T, lower=True, check_finite=False)
        return V

    def largest_variances(self) -> Array:
        """Return the largest variance of an unlabelled point after each label; 0 without one."""
        left = self.prior.amplitude - np.cumsum(self._rows(self.scaled) ** 2, axis=0)
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
            self.covariance, self.y - self.prior.mean, self._noise, folds, out
        )
        return out

    def pac_bayes(self, kappa: float) -> Array:
        """Return the part of the PAC-Bayesian bound that moves, after each label."""
        out = np.empty(len(self.y))
        label_traces.pac_bayes(self.covariance, self.y - self.prior.mean, self._noise, kappa, out)
        return out

    def losses_on(self, X: Array, y: Array) -> Array:
        """Return the expected loss on a test set after each label."""
        Z, gp = self.prior.prior.scale("X_test", X), self.prior
        white = solve_triangular(self._factor, self.y - gp.mean, lower=True, check_finite=False)
        total = np.zeros(len(self.y))
        for low in range(0, len(y), ROWS):
            V = self._rows(np.ascontiguousarray(Z[:, low : low + ROWS]))
            # mu_t = mean + sum_{r<t} V_r z_r,  s_t = k - sum_{r<t} V_r^2
            errors = y[low : low + ROWS] - gp.mean - np.cumsum(V * white[:, None], axis=0)
            total += (errors**2 + gp.amplitude - np.cumsum(V**2, axis=0)).sum(axis=1)
        losses: Array = expected_loss(total, len(y), gp.noise)  # type: ignore[arg-type,assignment]
        return losses


def prior_loss(gp: GaussianProcess, y: Array) -> float:
    """Return the expected loss of the prior on a test set with these labels."""
    # of one label, with the mean of the squares
    return expected_loss(float(np.mean((y - gp.mean) ** 2)) + gp.amplitude, 1, gp.noise)
