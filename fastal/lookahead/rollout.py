"""The order in which points will be labelled, and what each label buys."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpstrf, dtrtrs

from fastal._core import lookahead as core
from fastal._core.covariance import covariance_rows
from fastal._threads import cores
from fastal._types import Array, Ints
from fastal.learning.failures import failure
from fastal.learning.lazy import LazySelection
from fastal.models.gp import whitened
from fastal.models.posterior import PANEL

if TYPE_CHECKING:
    from fastal.models.gp import GaussianProcess

# From so many points on the reruns are shared out among threads.
THREADS_FROM = 200

# Reference inputs whose covariances make up `noise_of_final`, at most.
PAIRED = 500

# Labels beyond those there are, for a larger pool without `horizon`.
FAR_AHEAD = 1000


def _small_order(gp: GaussianProcess, Z: Array, done: Ints) -> tuple[Ints, Array]:
    """Select the whole pool; return the order, and V as `_core.lookahead` has it."""
    n, t = Z.shape[1], len(done)
    order = np.concatenate((done, np.setdiff1d(np.arange(n), done)))
    Z = np.ascontiguousarray(Z[:, order])
    K = np.empty((n, n))
    covariance_rows(gp.prior.kind, gp.amplitude, Z, n, Z, 0, K)
    K[np.diag_indices(n)] += gp.noise
    V = np.zeros((n, n))
    rest = K[t:, t:]
    if t:
        # K = L L^T:  L_dd from K_dd,  L_rd^T = L_dd^-1 K_dr,  the rest is K_rr - L_rd L_rd^T
        head, status = dpotrf(K[:t, :t], lower=1)
        if status:
            raise failure(int(status))
        V[:t, :t] = head.T
        V[:t, t:], _ = dtrtrs(head, K[:t, t:], lower=1)
        rest = rest - V[:t, t:].T @ V[:t, t:]
    if t == n:
        return order, V
    # pivots of K + noise I are variances plus noise: the largest comes next
    factor, pivots, rank, status = dpstrf(rest, lower=1)
    if status:
        raise failure(t + int(rank) + 1)
    pivots = pivots[: n - t] - 1
    V[:t, t:] = V[:t, t:][:, pivots]
    V[t:, t:] = np.tril(factor).T
    order[t:] = order[t:][pivots]
    return order, V


def _large_order(gp: GaussianProcess, Z: Array, done: Ints, rest: Ints, last: int) -> Ints:
    """Select up to the horizon among the labelled rows and the `rest`."""
    rows = np.concatenate((done, rest))
    plain = gp.copy()
    plain.rewind(0)
    pool = np.ascontiguousarray(Z[:, rows])
    selection = LazySelection(plain, pool, np.arange(len(done)), last, last)
    labels = np.full(len(rows), gp.mean)  # any: variances do not depend on them
    selection.run(labels, last, None, True, cores())
    chosen: Ints = rows[selection.labels]
    return chosen


def _on_pool(
    gp: GaussianProcess, V: Array, labels: int, last: int, samples: int
) -> tuple[Array, float, float]:
    """Return reduction_t for t = 1 to n, by leaving out points, sqrt(2 G), and the mean of loo."""
    n, noise = len(V), gp.noise
    P, _ = dpotri(V.T, lower=1)
    precision = np.ascontiguousarray(np.diagonal(P))
    loo = 1.0 / precision - noise
    final = np.sqrt(2.0 * core.mean_square_covariance(P.T, precision))
    # sum over c >= t of s_c(t) + noise: all of V from row t on
    left = np.cumsum(np.einsum("ij,ij->i", V, V)[::-1] - noise - loo[::-1])[::-1]
    unlabelled = np.append(left[1:], 0.0)  # at t = 1 to n
    # every so many-th of the points up to the horizon, the first one among them
    steps = np.arange(min(samples, last)) * last // min(samples, last)
    sums, counts = np.zeros(n), np.zeros(n)
    for j, tail in zip(steps, _reruns(V, labels, steps), strict=True):
        # tail[t] = v(t) - loo; point j is labelled from t = j + 1 on
        sums[j : n - 1] += tail[j + 1 :]
        counts[j:] += 1
    t = np.arange(1, n + 1)
    return (unlabelled + t * sums / counts) / n, float(final), float(loo.mean())


def _reruns(V: Array, labels: int, steps: Ints) -> list[Array]:
    """Run the selection again from each of the steps, without the point taken there."""
    n = len(V)

    def one(j: int) -> Array:
        tail = np.empty(n)
        # before the first label all variances are equal: the next point of the order comes first
        fixed = max(labels - j - 1, int(j == 0))
        S = np.empty((n - j - 1 - fixed) ** 2)
        status = core.rerun(V, j, fixed, np.empty(n), S, tail)
        if status:
            raise failure(int(status))
        return tail

    if n < THREADS_FROM:
        return [one(j) for j in steps.tolist()]
    with ThreadPoolExecutor(cores()) as workers:
        return list(workers.map(one, steps.tolist()))


def _on_reference(gp: GaussianProcess, points: Array, others: Any) -> tuple[Array, float, float]:
    """Return what the mean variance of other inputs still falls by after t = 1, 2, ...

    Also sqrt(2 G), and the mean variance at the end.
    """
    model = gp.copy()
    model.rewind(0)
    model.add_batch(points, np.full(len(points), gp.mean))
    scaled = model.prior.scale("reference", others)
    n, m = len(points), len(others)
    few = min(m, PAIRED)
    V, falls = np.empty((few, n)), np.zeros(n)
    for low in range(0, m, PANEL):
        block = whitened(model, scaled, low, min(m, low + PANEL))
        # var_i(t) = k(x_i, x_i) - sum over r < t of V_ir^2
        falls += np.einsum("ij,ij->j", block, block)
        V[low : low + PANEL] = block[: max(0, few - low)]
    reduction = np.append(np.cumsum(falls[:0:-1])[::-1], 0.0) / m
    C = np.empty((few, few))
    covariance_rows(gp.prior.kind, gp.amplitude, scaled, few, scaled, 0, C)
    C -= V @ V.T
    squares = np.einsum("ij,ij->", C, C) - np.einsum("ii,ii->", C, C)
    end = max(gp.amplitude - float(falls.sum()) / m, 0.0)
    return reduction, float(np.sqrt(2.0 * squares / (few * (few - 1)))), end
