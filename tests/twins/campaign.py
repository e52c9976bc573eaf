"""A campaign with unknown hyper-parameters, everything computed anew after each label."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twins.bound import gp_kl
from twins.models import GaussianProcess, weak_log_posterior
from twins.stopping import movement_left, window_of

Array = NDArray[np.float64]

# The box of a fit, l / sqrt(d) and g, in logarithms; at an edge of l it confirms nothing.
LOW = math.log(0.05), math.log(1e-4)
HIGH = math.log(30.0), math.log(10.0)
EDGE = 0.01


class Fit(NamedTuple):
    """Hyper-parameters: the length scale counts in standard deviations of the pool's columns."""

    n_labels: int
    lengthscale: float
    noise: float
    amplitude: float
    mean: float
    at_edge: bool


def downhill(value: Callable[[Array], float], start: Array) -> Array:
    """Return a minimum in the box: the best of 5 x 5 points around the last, ever closer together.

    The points are half as far apart whenever the middle one is the best.
    """
    at, least, step = start, value(start), 0.5
    while step > 1e-9:
        around = [
            np.clip(at + step * np.array([i, j]), LOW, HIGH)
            for i in range(-2, 3)
            for j in range(-2, 3)
        ]
        values = [value(point) for point in around]
        if min(values) < least:
            least = min(values)
            at = around[values.index(least)]
        else:
            step /= 2
    return at


def weak_maximum(Z: Array, y: Array, *, kernel: str = "rbf", features: int | None = None) -> Fit:
    """Return the maximum of `weak_log_posterior`, from many starts and without slopes."""
    d = features or Z.shape[1]
    unit = float(np.std(y))

    def value(at: Array) -> float:
        scale, g = math.exp(at[0]) * math.sqrt(d), math.exp(at[1])
        return -weak_log_posterior(Z, y / unit, scale, g, kernel=kernel, features=d)[0]

    grid = [
        np.array([u, v])
        for u in np.linspace(LOW[0] + 0.2, HIGH[0] - 0.2, 8)
        for v in np.linspace(LOW[1] + 0.2, HIGH[1] - 0.2, 6)
    ]
    starts = sorted(grid, key=value)[:8]
    u, v = min((downhill(value, start) for start in starts), key=value)
    scale, g = math.exp(u) * math.sqrt(d), math.exp(v)
    _, mean, amplitude = weak_log_posterior(Z, y, scale, g, kernel=kernel, features=d)
    at_edge = bool(u <= LOW[0] + EDGE or u >= HIGH[0] - EDGE)
    return Fit(len(y), scale, amplitude * g, amplitude, mean, at_edge)


class Campaign:
    """Twin of `ActiveLearner(X, gp=None, criterion=MovementBelow(share))` with single questions."""

    def __init__(
        self,
        X: ArrayLike,
        initial: list[int],
        share: float,
        *,
        growth: float = 1.2,
        max_labels: int | None = None,
    ) -> None:
        self.X = np.asarray(X, dtype=float)
        self.initial, self.share, self.growth = list(initial), share, growth
        self.horizon = (max_labels or len(self.X)) - len(initial)
        deviations = self.X.std(axis=0)
        self.varying = deviations > 1e-15 * np.abs(self.X).max()
        self.Z = self.X[:, self.varying] / deviations[self.varying]
        self.rows: list[int] = []
        self.y: list[float] = []
        self.fits: list[Fit] = []
        self.bounds: list[float] = []
        self.left = math.nan
        self.stopped_at: int | None = None  # number of bounds

    @property
    def process(self) -> GaussianProcess:
        """The process of the last fit with all labels, in standard deviations of the pool."""
        fit = self.fits[-1]
        gp = GaussianProcess(fit.lengthscale, fit.noise, amplitude=fit.amplitude, mean=fit.mean)
        for row, label in zip(self.rows, self.y, strict=True):
            gp.X.append(self.Z[row])
            gp.y.append(label)
            gp.noises.append(fit.noise)
        return gp

    def ask(self) -> int:
        """Return the unlabelled point of largest variance; the initial ones first."""
        if len(self.rows) < len(self.initial):
            return self.initial[len(self.rows)]
        var = np.diag(self.process.predict(self.Z, return_cov=True)[1]).copy()
        var[self.rows] = -math.inf
        return int(np.argmax(var))

    def _bounds(self) -> list[float]:
        """All bounds under the last fit, each from the posterior of the labels before it."""
        out = []
        whole = self.process
        for t in range(len(self.initial), len(self.y)):
            gp = whole.copy()
            gp.rewind(t)
            mean, var = gp.predict(self.Z[self.rows[t]][None, :], return_var=True)
            out.append(float(gp_kl(mean[0], max(var[0], 0.0), self.y[t], gp.noise)))
        return out

    def _says_stop(self) -> bool:
        t = len(self.bounds)
        return t >= self.horizon or (t > window_of(t) and self.left <= self.share)

    def tell(self, row: int, y: float) -> None:
        """Take a label, fit if that is due, and decide."""
        self.rows.append(row)
        self.y.append(float(y))
        t = len(self.y)
        if self.fits:
            self._look()
        due = len(self.initial)
        if self.fits:
            last = self.fits[-1].n_labels
            due = max(last + 1, math.floor(self.growth * last + 0.5))
        if t < due:
            return
        confirmed = bool(self.fits) and not self.fits[-1].at_edge and self._says_stop()
        fit = weak_maximum(self.Z[self.rows], np.array(self.y), features=int(self.varying.sum()))
        self.fits.append(fit)
        self._look()
        agreed = confirmed and not fit.at_edge
        at_the_end = len(self.bounds) >= self.horizon
        if self.stopped_at is None and self._says_stop() and (agreed or at_the_end):
            self.stopped_at = len(self.bounds)

    def _look(self) -> None:
        self.bounds = self._bounds()
        self.left = movement_left(self.bounds, self.horizon)[-1] if self.bounds else math.nan

    def errors(self, X: ArrayLike, y: ArrayLike) -> tuple[float, float]:
        """Return the mean of -log p and the root mean square error on a test set, now."""
        if not self.fits:
            return math.nan, math.nan
        deviations = self.X.std(axis=0)[self.varying]
        at = np.asarray(X, dtype=float)[:, self.varying] / deviations
        gp, targets = self.process, np.asarray(y, dtype=float)
        mean, var = gp.predict(at, return_var=True)
        total = np.maximum(var, 0.0) + gp.noise
        losses = 0.5 * np.log(2 * math.pi * total) + 0.5 * (targets - mean) ** 2 / total
        return float(losses.mean()), math.sqrt(float(((targets - mean) ** 2).mean()))
