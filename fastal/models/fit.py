"""Fitting hyper-parameters by the marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from fastal._core.covariance import covariance_and_slopes, lengthscale_gradient
from fastal._types import Array
from fastal.models.weak import EDGE

# Rows on which fit_hyperparameters screens its starts.
SCREEN_ROWS = 250

SCREEN_STEPS = 40

POLISH_STEPS = 500

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


def minimise_from(
    start: Array, objective: Callable[[Array], tuple[float, Array]], box: Array, steps: int
) -> tuple[float, Array]:
    """Return the value and the place of the optimum next to a start, (inf, start) if none."""
    # The line search needs finite values: return a huge one where the factorisation fails.
    worst = 1e300

    def finite_objective(theta: Array) -> tuple[float, Array]:
        value, gradient = objective(theta)
        return (value, gradient) if math.isfinite(value) else (worst, gradient)

    found = minimize(
        finite_objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=box,
        options={"maxiter": steps, "ftol": 1e-11, "gtol": 1e-4},
    )
    value = float(found.fun)
    return (value if value < worst else math.inf), np.asarray(found.x, dtype=np.float64)


class Wanted(NamedTuple):
    """What a fit changes besides length scale and noise."""

    amplitude: bool
    ard: bool  # one length scale per feature
    mean: bool


# Length scales, noise, amplitude and mean.
Parameters = tuple[float | Array, float, float, float]


def search(
    X: Array,
    y: Array,
    kind: int,
    present: Parameters,
    wanted: Wanted,
    limits: dict[str, tuple[float, float]],
    restarts: int,
    seed: int,
) -> tuple[Parameters, bool]:
    """Return the parameters with the largest marginal likelihood that is found.

    X : (n, d).  y : (n,).  `present` is the first start, and keeps what is not wanted.
    Second: do the length scales lie at an edge of their box?
    """
    _, _, amplitude, mean = present
    n, d = X.shape
    k = d if wanted.ard else 1
    rng = np.random.default_rng(seed)
    plain_box, starts = _starts(X, y, present, wanted, limits, restarts, rng)
    box = np.log(plain_box)

    def objective(rows: Any) -> Evidence:
        return Evidence(
            X[rows],
            y[rows],
            kind,
            wanted.ard,
            None if wanted.amplitude else amplitude,
            None if wanted.mean else mean,
        )

    few = n if n < 1.5 * SCREEN_ROWS else SCREEN_ROWS
    subset: Any = np.sort(rng.choice(n, few, replace=False)) if few < n else slice(None)
    evidence = objective(subset)
    screened = [minimise_from(place, evidence, box, SCREEN_STEPS) for place in starts]
    if wanted.ard and d > 1:
        # Never worse than one length scale for all.
        (scale, *others, _), _ = search(
            X, y, kind, present, wanted._replace(ard=False), limits, restarts, seed
        )
        place = np.full(len(box), scale)
        place[k:] = others[: len(box) - k]
        place = np.clip(np.log(place), box[:, 0], box[:, 1])
        screened.append((evidence(place)[0], place))
    if few < n:
        # What is best for a few rows need not be so for all: rank by all.
        evidence = objective(slice(None))
        screened = [(evidence(place)[0], place) for _, place in screened]
    screened.sort(key=lambda pair: pair[0])
    best = screened[0]
    tried: list[float] = []
    for value, place in screened:
        # The same value is the same optimum, or the same plateau.
        if all(abs(value - other) > 0.01 for other in tried) and len(tried) < POLISHED:
            tried.append(value)
            polished = minimise_from(place, evidence, box, POLISH_STEPS)
            best = min(best, polished, key=lambda pair: pair[0])
    value, theta = best
    if not math.isfinite(value):
        raise np.linalg.LinAlgError(
            "the covariance of the data is not positive definite at any start; raise the "
            "lower bound of the noise, bounds={'noise': (low, high)}"
        )
    # exp(log(bound)) may be a digit outside of the box.
    found = np.clip(np.exp(theta), plain_box[:, 0], plain_box[:, 1])
    parameters = (
        found[:k].copy() if wanted.ard else float(found[0]),
        float(found[k]),
        float(found[k + 1]) if wanted.amplitude else amplitude,
        evidence.mean_at(theta) if wanted.mean else mean,
    )
    return parameters, _at_edge(theta[:k], box[:k])


def _at_edge(scales: Array, box: Array) -> bool:
    """Return whether all length scales lie at their upper bound, or one at its lower one.

    scales : (k,), logarithms.  box : (k, 2).
    """
    searched = box[:, 0] < box[:, 1]
    lower = scales - box[:, 0] <= EDGE
    upper = box[:, 1] - scales <= EDGE
    return bool(searched.any() and (lower[searched].any() or upper[searched].all()))


def _starts(
    X: Array,
    y: Array,
    present: Parameters,
    wanted: Wanted,
    limits: dict[str, tuple[float, float]],
    restarts: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return the box of the search, (p, 2), and the logarithms of its starts, (restarts, p)."""
    lengthscale, noise, amplitude, _ = present
    k = X.shape[1] if wanted.ard else 1
    scale = np.asarray(lengthscale)
    if scale.size != k:
        # One for several, or several for one: the geometric mean.
        scale = np.full(k, np.exp(np.log(scale).mean()))

    # Units of the default bounds and of the random starts.
    ranges = np.ptp(X, axis=0)
    ranges = np.where(ranges > 0, ranges, 1.0) if wanted.ard else np.array([ranges.max() or 1.0])
    spread = float(y.var()) or 1.0
    unit = spread if wanted.amplitude else 1.0
    box = np.empty((k + 1 + wanted.amplitude, 2))
    if "lengthscale" in limits:
        box[:k] = limits["lengthscale"]
    else:
        box[:k] = np.outer(ranges, [1e-3, 1e3])
    box[k] = limits.get("noise", (1e-4 * unit, 1e2 * unit))
    start = [*scale.flat, noise]
    centre = [*(0.3 * ranges), 0.03 * spread]
    if wanted.amplitude:
        box[k + 1] = limits.get("amplitude", (1e-3 * unit, 1e3 * unit))
        start.append(amplitude)
        centre.append(spread)
    starts = rng.uniform(-2.0, 2.0, size=(restarts, box.shape[0])) + np.log(centre)
    starts[0] = np.log(start)
    return box, np.clip(starts, *np.log(box).T)
