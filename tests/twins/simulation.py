"""Simulated campaigns, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twins.bound import gp_kl
from twins.runs import fell, runs_test


def simulate(
    X: ArrayLike,
    y: ArrayLike,
    pools: ArrayLike,
    lengthscale: float,
    noise: float,
    *,
    alpha: float = 1e-3,
    whole: bool = False,
    fall: bool = True,
) -> tuple[list[list[float]], list[int | None]]:
    """Run campaigns over given pools one after the other, the runs test anew after each label."""
    inputs, targets = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    found: list[list[float]] = []
    stops: list[int | None] = []
    for rows in np.asarray(pools):
        Z, labels = inputs[rows] / lengthscale, targets[rows]
        n = len(rows)
        V: Any = np.empty((n, n))
        mean, var, left = np.zeros(n), np.ones(n), np.ones(n, dtype=bool)
        bounds: list[float] = []
        stop: int | None = None
        i = 0
        for t in range(n):
            if t:
                i = int(np.argmax(np.where(left, var, -np.inf)))
                bounds.append(float(gp_kl(mean[i], max(var[i], 0.0), labels[i], noise)))
            pivot = np.sqrt(max(var[i], 0.0) + noise)
            k = np.exp(-0.5 * ((Z - Z[i]) ** 2).sum(axis=1))
            V[t] = (k - V[:t, i] @ V[:t]) / pivot
            mean = mean + V[t] * ((labels[i] - mean[i]) / pivot)
            var = var - V[t] ** 2
            left[i] = False
            rejects = t > 1 and runs_test(bounds, alternative="less") <= alpha
            if stop is None and rejects and (not fall or fell(bounds)):
                stop = t + 1
                if not whole:
                    break
        found.append(bounds)
        stops.append(stop)
    return found, stops
