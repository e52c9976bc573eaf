"""The straightforward selection: after each label, mean and variance of every point are brought up.

For small pools, where it is the fastest, and for acquisitions that ask for all means and variances.
A label costs O(t N), spent in loops over points that run in vectors. No sum is reordered: code that
was compiled in this process and code from the cache then agree to the last digit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core.cholesky import last_entries
from fastal._core.covariance import covariance_row
from fastal._core.jit import jit, jit_fused
from fastal._core.symbols import tracker_push, tracker_stopped_at
from fastal._types import Array, Ints

# What `run` returns when it is through, or the tracker has stopped it.
DONE, STOPPED = 0, 1


class Eager(NamedTuple):
    """All state of a selection; N points of d features, room for T labels."""

    Z: Array  # (d, N) inputs over length scales
    V: Array  # (T, N) row t: L^-1 k(labels, .)[t]
    mean: Array  # (N,)
    var: Array  # (N,)
    taken: NDArray[np.bool_]  # (N,) whether the point is labelled
    labels: Ints  # (T,) points in the order of their labels
    diagonal: Array  # (T,) L_tt
    white: Array  # (T,) z = L^-1 (y - mean)
    head: Ints  # (1,) number of labels


def new_eager(Z: Array, capacity: int, amplitude: float, mean: float) -> Eager:
    """Return the state before the first label."""
    n = Z.shape[1]
    return Eager(
        Z,
        np.empty((capacity, n)),
        np.full(n, mean),
        np.full(n, amplitude),
        np.zeros(n, dtype=np.bool_),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity),
        np.empty(capacity),
        np.zeros(1, dtype=np.int64),
    )


@jit_fused
def subtract_rows(V: Array, t: int, i: int, row: Array) -> None:
    """Subtract ``sum_{r<t} V_ri V_r`` from `row`; four rows at a time save three passes of four."""
    whole = t - t % 4
    for r in range(0, whole, 4):
        v0, v1, v2, v3 = V[r], V[r + 1], V[r + 2], V[r + 3]
        c0, c1, c2, c3 = v0[i], v1[i], v2[i], v3[i]
        for j in range(row.size):
            row[j] -= c0 * v0[j] + c1 * v1[j] + c2 * v2[j] + c3 * v3[j]
    for r in range(whole, t):
        v0 = V[r]
        c0 = v0[i]
        for j in range(row.size):
            row[j] -= c0 * v0[j]


@jit_fused
def spread(row: Array, pivot: float, white: float, mean: Array, var: Array) -> None:
    """Finish row t of V, and take the label into all means and variances."""
    for j in range(row.size):
        # V_tj = (k - sum) / L_tt;  mu_j += V_tj z_t;  s_j -= V_tj^2
        v = row[j] / pivot
        row[j] = v
        mean[j] += v * white
        var[j] -= v * v


@jit
def best(pool: Eager) -> int:
    """Return the unlabelled point of largest variance, the lowest index among equals; -1: none."""
    found = -1
    largest = -math.inf
    for i in range(pool.var.size):
        if not pool.taken[i] and pool.var[i] > largest:
            largest = pool.var[i]
            found = i
    return found


@jit
def accept(
    kind: int, amplitude: float, noise: float, pool: Eager, i: int, y: float
) -> tuple[int, float]:
    """Label point i; return (status, r_t), the status as in `pool.accept`."""
    t = pool.head[0]
    status, pivot, white, r = last_entries(amplitude, pool.var[i], pool.mean[i], y, noise, t)
    if status != 0:
        return status, r
    row = pool.V[t]
    covariance_row(kind, amplitude, pool.Z, 0, row.size, pool.Z, i, row)
    subtract_rows(pool.V, t, i, row)
    spread(row, pivot, white, pool.mean, pool.var)
    pool.diagonal[t] = pivot
    pool.white[t] = white
    pool.labels[t] = i
    pool.taken[i] = True
    pool.head[0] = t + 1
    return 0, r


@jit
def run(
    kind: int,
    amplitude: float,
    noise: float,
    pool: Eager,
    y: Array,
    order: Ints,
    initial: int,
    target: int,
    tracker: int,
    bounds: Array,
) -> int:
    """Label points until there are `target` labels or the tracker stops (see `pool.run`)."""
    t = pool.head[0]
    while t < target:
        i = order[t] if t < order.size else best(pool)
        status, r = accept(kind, amplitude, noise, pool, i, y[i])
        if status != 0:
            return status + STOPPED if status > 0 else status
        if t >= initial:
            bounds[t - initial] = r
            if tracker != 0:
                already = tracker_stopped_at(tracker) > 0
                tracker_push(tracker, r)
                if tracker_stopped_at(tracker) > 0 and not already:
                    return STOPPED
        t += 1
    return DONE
