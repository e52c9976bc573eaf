"""Greedy selection over a pool: pivoted Cholesky, lazy and in panels.

Point i of the pool has the row V_i = L^-1 k(labels, x_i), which gives all that is asked of it:
    s_i = k(x_i, x_i) - V_i.V_i,    mu_i = mean + V_i.z,
and, once the point is labelled, its row of the factor L. A new label appends one entry to each row,
    V_i[t] = (k(x_t, x_i) - L_t.V_i) / L_tt.

Variances only shrink, so stale ones are upper bounds: a heap holds the points by what is known of
their variance, and only the top is brought up to date until it stays on top (lazy greedy). The
rest is completed a panel of entries at a time by BLAS-3. Blocks of rows have a fixed size, so that
results do not depend on the number of threads. For small pools see `eager`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core.cholesky import last_entries
from fastal._core.covariance import covariance_row
from fastal._core.dots import dots
from fastal._core.ended import DONE, FAILED, STOPPED, stops
from fastal._core.jit import jit
from fastal._core.symbols import dgemm, dtrsm
from fastal._types import Array, Ints

# Rows that one thread completes at a time.
ROWS = 512


def panel_size(n: int) -> int:
    """Return how many entries of a row one product of matrices completes.

    BLAS wants many, the lazy part few: of 9,000 points 7 % of the entries are needed early with 32
    and 22 % with 64, of 2,000 points 6 % with 16 and 18 % with 32. Measured: 9,000 points and 1,000
    labels take 522, 423, 371, 368 ms with 16, 32, 48, 64; 3,000 and 300 take 18, 19, 22, 25 ms.
    """
    return 48 if n >= 4096 else 16


# Places in `Pool.counters`.
LABELS, HEAP, COMPLETE = 0, 1, 2


class Pool(NamedTuple):
    """All state of a selection; N points of d features, room for T labels."""

    Z: Array  # (d, N) inputs over length scales
    Zl: Array  # (d, T) those of the labels, in order
    V: Array  # (N, T)
    base: Array  # (N,) variance after the completed entries
    var: Array  # (N,) variance after `level` entries
    level: Ints  # (N,) entries of the row that are there
    taken: NDArray[np.bool_]  # (N,) whether the point is labelled
    heap: Ints  # (N,) points, largest known variance first; labelled ones leave from the top
    labels: Ints  # (T,) points in the order of their labels
    diagonal: Array  # (T,) L_tt
    residuals: Array  # (T,) z = L^-1 (y - mean)
    y: Array  # (T,) the labels
    bounds: Array  # (T,) r_t of each
    rows: Array  # (panel_size, T) rows of L of the panel
    counters: Ints  # (3,) number of labels, size of the heap, completed entries


def new_pool(Z: Array, capacity: int, amplitude: float) -> Pool:
    """Return the state before the first label."""
    d, n = Z.shape
    return Pool(
        Z,
        np.empty((d, capacity)),
        np.empty((n, capacity)),
        np.full(n, amplitude),
        np.full(n, amplitude),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        np.arange(n),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty((panel_size(n), capacity)),
        np.array([0, n, 0]),
    )


@jit
def subtract_dots(V: Array, labels: Ints, first: int, t: int, row: Array) -> None:
    """Subtract ``L_j.row``, over the first `first` entries, from ``row[j]`` for j in `first` to t.

    Four rows of L at a time share each load of `row`.
    """
    unrolled = first + (t - first) // 4 * 4
    for j in range(first, unrolled, 4):
        rows = V[labels[j]], V[labels[j + 1]], V[labels[j + 2]], V[labels[j + 3]]
        a0, a1, a2, a3 = dots(rows, row, first)
        row[j] -= a0
        row[j + 1] -= a1
        row[j + 2] -= a2
        row[j + 3] -= a3
    for j in range(unrolled, t):
        row[j] -= dots((V[labels[j]],), row, first)[0]


@jit
def refine(
    kind: int,
    amplitude: float,
    Z: Array,
    Zl: Array,
    V: Array,
    labels: Ints,
    diagonal: Array,
    i: int,
    first: int,
    t: int,
    s: float,
) -> float:
    """Compute the entries `first` to t of row i; return its variance, which was s.

    Hot functions take arrays, not the whole `Pool`: passing it counts references to each of its
    members, which costs more than a short row.
    """
    row = V[i]
    # V_i[j] = (k(x_j, x_i) - L_j.V_i) / L_jj: first what is known of V_i, then what is new
    covariance_row(kind, amplitude, Zl, first, t, Z, i, row)
    subtract_dots(V, labels, first, t, row)
    for j in range(first, t):
        factor = V[labels[j]]
        v = row[j]
        for k in range(first, j):
            v -= factor[k] * row[k]
        v /= diagonal[j]
        row[j] = v
        s -= v * v
    return s


@jit
def sift_down(heap: Ints, var: Array, size: int, place: int) -> None:
    """Let the point at a place of the heap sink to where it belongs.

    A larger variance comes first, then a lower index.
    """
    point = heap[place]
    s = var[point]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        c = heap[child]
        if child + 1 < size:
            other = heap[child + 1]
            if var[other] > var[c] or (var[other] == var[c] and other < c):
                child += 1
                c = other
        if not (var[c] > s or (var[c] == s and c < point)):
            break
        heap[place] = c
        place = child
    heap[place] = point


@jit
def best(kind: int, amplitude: float, pool: Pool) -> int:
    """Return the unlabelled point of largest variance, the lowest index among equals; -1: none."""
    Z, Zl, V, _, var, level, taken, heap, labels, diagonal, _, _, _, _, counters = pool
    t = counters[LABELS]
    size = counters[HEAP]
    found = -1
    while size > 0:
        i = heap[0]
        if taken[i]:
            size -= 1
            heap[0] = heap[size]
        elif level[i] < t:
            var[i] = refine(kind, amplitude, Z, Zl, V, labels, diagonal, i, level[i], t, var[i])
            level[i] = t
        else:
            found = i
            break
        sift_down(heap, var, size, 0)
    counters[HEAP] = size
    return found


@jit
def accept(
    kind: int, amplitude: float, mean: float, noise: float, pool: Pool, i: int, y: float
) -> tuple[int, float]:
    """Label point i; return (status, r_t).

    The status is 0, or as in `cholesky` the order of the minor that fails, negative if the label
    is too far off; nothing has changed then, but that row i is up to date.
    """
    Z, Zl, V, _, var, level, taken, _, labels, diagonal, residuals, ys, bounds, _, counters = pool
    t = counters[LABELS]
    if level[i] < t:
        var[i] = refine(kind, amplitude, Z, Zl, V, labels, diagonal, i, level[i], t, var[i])
        level[i] = t
    mu = mean + dots((V[i],), residuals, t)[0]
    status, pivot, residual, r = last_entries(amplitude, var[i], mu, y, noise, t)
    if status != 0:
        return status, r
    diagonal[t] = pivot
    residuals[t] = residual
    labels[t] = i
    for f in range(Z.shape[0]):
        Zl[f, t] = Z[f, i]
    taken[i] = True
    ys[t] = y
    bounds[t] = r
    counters[LABELS] = t + 1  # the last of all: now there is one more
    return 0, r


@jit
def gather_panel(pool: Pool) -> None:
    """Copy the rows of L that belong to the panel, up to their diagonal."""
    first = pool.counters[COMPLETE]
    for j in range(pool.counters[LABELS] - first):
        pool.rows[j, : first + j] = pool.V[pool.labels[first + j], : first + j]
        pool.rows[j, first + j] = pool.diagonal[first + j]


@jit
def complete_rows(
    kind: int,
    amplitude: float,
    X: Array,
    V: Array,
    Zl: Array,
    rows: Array,
    first: int,
    last: int,
    low: int,
    high: int,
) -> None:
    """Compute the entries `first` to `last` of the rows `low` to `high`, with one thread of BLAS.

    X : (d, >= high).  V : (>= high, T), written.  Zl : (d, T).  rows : (last - first, T), from
    `gather_panel`.
    """
    for i in range(low, high):
        covariance_row(kind, amplitude, Zl, first, last, X, i, V[i])
    # In the eyes of BLAS, which goes column by column, V is V^T:  V^T = L_p^-1 (K^T - L_0 V_0^T)
    text = np.empty(4, dtype=np.uint8)
    text[0], text[1], text[2], text[3] = 84, 78, 76, 85  # T, N, L, U
    blas_ints = np.empty(4, dtype=np.int32)
    blas_ints[0], blas_ints[1], blas_ints[2], blas_ints[3] = (
        last - first,
        high - low,
        first,
        V.shape[1],
    )
    real = np.empty(2)
    real[0], real[1] = -1.0, 1.0
    c, w, r = text.ctypes.data, blas_ints.ctypes.data, real.ctypes.data
    target = V.ctypes.data + 8 * (low * V.shape[1] + first)
    if first > 0:
        dgemm(
            c, c + 1, w, w + 4, w + 8, r, rows.ctypes.data, w + 12,
            V.ctypes.data + 8 * low * V.shape[1], w + 12, r + 8, target, w + 12,
        )  # fmt: skip
    dtrsm(
        c + 2, c + 3, c, c + 1, w, w + 4, r + 8, rows.ctypes.data + 8 * first, w + 12, target,
        w + 12,
    )  # fmt: skip
    # a later use keeps the arguments alive until here
    text[0], blas_ints[0], real[0] = 0, 0, 0.0


@jit
def shrink_rows(V: Array, first: int, last: int, low: int, high: int, base: Array) -> None:
    """Take the entries `first` to `last` of the rows `low` to `high` off the variances `base`."""
    for i in range(low, high):
        row = V[i][first:last]
        base[i] -= dots((row,), row, last - first)[0]


@jit
def close_panel(pool: Pool) -> None:
    """Put back the rows of L as they were computed, and order the heap anew."""
    _, _, V, base, var, level, taken, heap, labels, _, _, _, _, rows, counters = pool
    first = counters[COMPLETE]
    last = counters[LABELS]
    for j in range(last - first):
        V[labels[first + j], first : first + j] = rows[j, first : first + j]
    counters[COMPLETE] = last
    size = 0
    for i in range(taken.size):
        var[i] = base[i]
        level[i] = last
        if not taken[i]:
            heap[size] = i
            size += 1
    counters[HEAP] = size
    for place in range(size // 2 - 1, -1, -1):
        sift_down(heap, var, size, place)


@jit
def panel_is_full(pool: Pool) -> bool:
    """Whether it is time to complete a panel."""
    return pool.counters[LABELS] - pool.counters[COMPLETE] == pool.rows.shape[0]


@jit
def complete_panel(kind: int, amplitude: float, pool: Pool) -> None:
    """Complete a full panel, block by block."""
    first = pool.counters[COMPLETE]
    last = pool.counters[LABELS]
    n = pool.V.shape[0]
    gather_panel(pool)
    for low in range(0, n, ROWS):
        high = min(n, low + ROWS)
        complete_rows(kind, amplitude, pool.Z, pool.V, pool.Zl, pool.rows, first, last, low, high)
        shrink_rows(pool.V, first, last, low, high, pool.base)
    close_panel(pool)


@jit
def run(
    kind: int,
    amplitude: float,
    mean: float,
    noise: float,
    pool: Pool,
    y: Array,
    order: Ints,
    initial: int,
    target: int,
    rule: int,
    past_stop: bool,
    leave_panels: bool,
) -> tuple[int, int]:
    """Label points until there are `target` labels or the rule stops.

    y : (N,), labels of all points.  order : (m,), points to label first; then the best ones.
    The bounds of all labels but the first `initial` are given to the rule at this address (0:
    none); with `past_stop` its stop ends nothing. With `leave_panels` a full panel is left to the
    caller. Returns (reason, status): DONE, STOPPED, or FAILED with the status of `accept`.
    """
    t = pool.counters[LABELS]
    while t < target:
        i = order[t] if t < order.size else best(kind, amplitude, pool)
        status, r = accept(kind, amplitude, mean, noise, pool, i, y[i])
        if status != 0:
            return FAILED, status
        t += 1
        stopped = t > initial and stops(rule, r) and not past_stop
        if panel_is_full(pool):
            if leave_panels:
                return (STOPPED if stopped else DONE), 0
            complete_panel(kind, amplitude, pool)
        if stopped:
            return STOPPED, 0
    return DONE, 0
