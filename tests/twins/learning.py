"""Selection by maximum variance, one posterior per point."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twins.bound import gp_kl


def select(
    X: ArrayLike,
    y: ArrayLike,
    lengthscale: float,
    noise: float,
    labels: int,
    *,
    first: int = 0,
    amplitude: float = 1.0,
    mean: float = 0.0,
) -> tuple[list[int], list[float]]:
    """Label by maximum variance, with the whole posterior computed anew for every label (rbf)."""
    points = np.asarray(X, dtype=float)
    targets = np.asarray(y, dtype=float)
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    K = amplitude * np.exp(-squares / (2 * lengthscale**2))
    chosen: list[int] = []
    bounds: list[float] = []
    mu, var = np.full(len(K), mean), np.diag(K).copy()
    for t in range(labels):
        # of variances that agree to rounding the lower index wins
        left = [i for i in range(len(K)) if i not in chosen]
        best = max(var[i] for i in left)
        i = next(i for i in left if var[i] >= best * (1 - 1e-12)) if t else first
        bounds.append(float(gp_kl(mu[i], max(var[i], 0.0), targets[i], noise)))
        chosen.append(i)
        A = K[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
        weights = np.linalg.solve(A, K[chosen])
        mu = mean + weights.T @ (targets[chosen] - mean)
        var = np.diag(K) - (weights * K[chosen]).sum(axis=0)
    return chosen, bounds
