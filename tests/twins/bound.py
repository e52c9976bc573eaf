"""The bound and its relatives, written as they stand in the paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def _kl_one(mean: float, var: float, y: float, noise: float) -> float:
    u = var / noise
    if u < 0.1:
        # u - log(1 + u) = u^2/2 - u^3/3 + u^4/4 - ...
        excess = math.fsum((-1) ** k * u**k / k for k in range(2, 25))
    else:
        excess = u - math.log1p(u)
    return 0.5 * excess + 0.5 * u * (y - mean) ** 2 / (var + noise)


def gp_kl(mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: ArrayLike) -> Any:
    """Twin of `fastal.gp_kl`: the formula, element by element."""
    result = np.vectorize(_kl_one, otypes=[float])(mean, var, y, noise)
    return float(result) if result.ndim == 0 else result


def bound_constant(a: float, b: float) -> float:
    """Twin of `fastal.bound.bound_constant`, by the paper's own formula."""
    return float(2.0 * (np.logaddexp(a, b) - math.log(2.0)) - a - b)


def gaussian_kl(
    mean0: ArrayLike,
    cov0: ArrayLike,
    mean1: ArrayLike,
    cov1: ArrayLike,
    *,
    jitter: float = 0.0,
) -> float:
    """Twin of `fastal.bound.gaussian_kl`: trace, quadratic form and determinants."""
    m0, m1 = np.atleast_1d(mean0).astype(float), np.atleast_1d(mean1).astype(float)
    k = len(m0)
    c0 = np.atleast_2d(cov0) + jitter * np.eye(k)
    c1 = np.atleast_2d(cov1) + jitter * np.eye(k)
    trace = np.trace(np.linalg.solve(c1, c0))
    form = (m1 - m0) @ np.linalg.solve(c1, m1 - m0)
    return float(0.5 * (trace + form - k + np.linalg.slogdet(c1)[1] - np.linalg.slogdet(c0)[1]))


def gp_bounds(cov: ArrayLike, y: ArrayLike, noise: ArrayLike, *, mean: ArrayLike = 0.0) -> Any:
    """Twin of `fastal.gp_bounds`: the posterior before each label by a dense solve."""
    K, labels = np.asarray(cov, dtype=float), np.asarray(y, dtype=float)
    noises, means = np.broadcast_to(noise, len(labels)), np.broadcast_to(mean, len(labels))
    bounds = []
    for t in range(len(labels)):
        A = K[:t, :t] + np.diag(noises[:t])
        mu = means[t] + K[t, :t] @ np.linalg.solve(A, labels[:t] - means[:t])
        s = K[t, t] - K[t, :t] @ np.linalg.solve(A, K[:t, t])
        bounds.append(_kl_one(mu, max(s, 0.0), labels[t], noises[t]))
    return np.array(bounds)


def gp_prior_kl(
    cov: ArrayLike, y: ArrayLike, noise: ArrayLike, *, mean: float = 0.0, jitter: float = 0.0
) -> float:
    """Twin of `fastal.bound.gp_prior_kl`: divergence of the dense posterior from the prior."""
    K, residual = np.asarray(cov, dtype=float), np.asarray(y, dtype=float) - mean
    t = len(residual)
    A = K + np.diag(np.broadcast_to(noise, t))
    posterior = K - K @ np.linalg.solve(A, K)
    shift = K @ np.linalg.solve(A, residual)
    return gaussian_kl(shift, posterior, np.zeros(t), K, jitter=jitter)


def alquier_bound(
    risk: float, kl: float, n: int, loss_range: float, *, delta: float = 0.01
) -> float:
    """Twin of `fastal.bound.alquier_bound`."""
    return risk + kl / n + math.log(1 / delta) / n + loss_range**2 / 2


def mcallester_bound(risk: float, kl: float, n: int, *, delta: float = 0.01) -> float:
    """Twin of `fastal.bound.mcallester_bound`."""
    return risk + math.sqrt((kl + math.log(2) + math.log(n) / 2 - math.log(delta)) / (2 * n))
