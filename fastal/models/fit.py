"""Fitting hyper-parameters by the marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from fastal._core.covariance import covariance_and_slopes, lengthscale_gradient
from fastal._types import Array

# Rows on which fit_hyperparameters screens its starts.
SCREEN_ROWS = 250

SCREEN_STEPS = 40

# More starts would take days for the smallest data.
MOST_RESTARTS = 1_000_000

# Different optima of the screening that are followed up on all rows.
POLISHED = 3


class Evidence:
    """Negative log marginal likelihood and its gradient in log parameters.

    Parameters: the length scales (1, or d with ard), the noise, and the amplitude unless given.
    The mean is put at its maximum, where the gradient needs no term for it.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        kind: int,
        ard: bool,
        amplitude: float | None,
        mean: float | None,
    ) -> None:
        n, d = X.shape
        self.X = np.ascontiguousarray(X.T)
        self.y = y
        self.kind, self.ard, self.amplitude, self.mean = kind, ard, amplitude, mean
        self.values, self.slopes, self.factor = np.zeros((3, n, n))
        self.part = np.empty(d)
        self.ones = np.ones(n)

    def _solve(self, theta: Array) -> tuple[int, float, float, Array]:
        """Factor A = K + N at theta; return status, mean, log-determinant and alpha."""
        k = len(self.X) if self.ard else 1
        p = np.exp(theta)
        self.Z = self.X / p[:k, None]
        amplitude = self.amplitude if self.amplitude is not None else float(p[k + 1])
        covariance_and_slopes(self.kind, amplitude, self.Z, self.values, self.slopes)
        np.copyto(self.factor, self.values)
        diagonal = np.einsum("ii->i", self.factor)
        diagonal += p[k]
        # Lower row by row is upper column by column.
        _, status = dpotrf(self.factor.T, lower=0, overwrite_a=1, clean=0)
        if status != 0:
            return int(status), 0.0, 0.0, self.y
        log_det = 2.0 * float(np.log(diagonal).sum())
        mean = self.mean
        if mean is None:
            weights, _ = dpotrs(self.factor.T, self.ones, lower=0)
            mean = float(weights.ravel() @ self.y / weights.sum())
        alpha, _ = dpotrs(self.factor.T, self.y - mean, lower=0)
        return 0, mean, log_det, np.ascontiguousarray(alpha).reshape(-1)

    def mean_at(self, theta: Array) -> float:
        """Return the best mean at these parameters."""
        return self._solve(theta)[1]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        status, mean, log_det, alpha = self._solve(theta)
        gradient = np.zeros(theta.size)
        if status != 0:
            return math.inf, gradient
        n = self.y.size
        value = 0.5 * (alpha @ (self.y - mean) + log_det + n * math.log(2.0 * math.pi))
        k = len(self.X) if self.ard else 1
        dpotri(self.factor.T, lower=0, overwrite_c=1)
        scale = lengthscale_gradient(
            self.Z, self.slopes, alpha, self.factor, self.values, self.part
        )
        gradient[:k] = self.part if self.ard else self.part.sum()
        # d/d(log n) = n/2 sum_i (alpha_i^2 - (A^-1)_ii)
        trace = float(np.einsum("ii->", self.factor))
        gradient[k] = 0.5 * math.exp(theta[k]) * (alpha @ alpha - trace)
        if self.amplitude is None:
            gradient[k + 1] = scale
        return float(value), -gradient


def climb(
    evidence: Callable[[Array], tuple[float, Array]], start: Array, box: Array, steps: int
) -> tuple[float, Array]:
    """Return the value and the place of the optimum next to a start, (inf, start) if none."""
    # A line search wants numbers: where the factor breaks down the value is a wall.
    worst = 1e300

    def walled(theta: Array) -> tuple[float, Array]:
        value, gradient = evidence(theta)
        return (value, gradient) if math.isfinite(value) else (worst, gradient)

    found = minimize(
        walled,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=box,
        options={"maxiter": steps, "ftol": 1e-11, "gtol": 1e-4},
    )
    value = float(found.fun)
    return (value if value < worst else math.inf), np.asarray(found.x, dtype=np.float64)
