"""Greedy selection over a pool: pivoted Cholesky, lazy and in panels.

Point i of the pool has the row V_i = L^-1 k(labels, x_i), which gives all that is asked of it:
    s_i = k(x_i, x_i) - V_i.V_i,    mu_i = mean + V_i.z,
and, once the point is labelled, its row of the factor L. A new label appends one entry to each row,
    V_i[t] = (k(x_t, x_i) - L_t.V_i) / L_tt.

Variances only shrink, so stale ones are upper bounds: a heap holds the points by what is known of
their variance, and only the top is brought up to date until it stays on top (lazy greedy). The
rest is completed a panel of entries at a time by BLAS-3: with L_p the panel's own triangle and L_0
what stands left of it,
    V_p = K M_p^T + V_0 M_0^T,    M_p = L_p^-1,    M_0 = -L_p^-1 L_0.
Columns live in chunks (`chunks`) that come with the labels; a panel never crosses a chunk. Blocks
of rows have a fixed size, so that results do not depend on the number of threads. For small pools
see `selection_eager`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core.cholesky import last_entries
from fastal._core.chunks import CHUNK, STRIDE, chunk_at
from fastal._core.covariance import from_squares, squared_distances
from fastal._core.dots import dot_as_in_four, dots
from fastal._core.ended import DONE, FAILED, FULL, STOPPED, stops
from fastal._core.jit import jit, jit_borrowing
from fastal._core.symbols import dgemm, rule_asks
from fastal._types import Array, Ints

# Rows that one thread completes at a time.
ROWS = 256

# Most columns of a panel; a divisor of CHUNK.
PANEL = 64

# Places in `Pool.counters`.
LABELS, HEAP, COMPLETE, WIDTH = 0, 1, 2, 3


class Pool(NamedTuple):
    """All state of a selection; N points of d features, room for T labels."""

    Z: Array  # (d, N) inputs over length scales
    Zl: Array  # (d, T) those of the labels, in order
    table: Ints  # (chunks,) addresses of the chunks of V
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
    rows: Array  # (PANEL + 1, T) rows of L of the panel, and one to compute in
    products: Array  # (PANEL, T) M_0 and M_p of the panel that is being completed
    counters: Ints  # (4,) labels, size of the heap, completed entries, width of the panel


def panel_width(n: int) -> int:
    """Return how many entries of a row one product of matrices completes.

    BLAS wants many, the lazy part few, and the fewer the smaller the pool.
    """
    return PANEL if n >= 4096 else 16


def new_pool(Z: Array, capacity: int, amplitude: float) -> Pool:
    """Return the state before the first label, without any chunk."""
    d, n = Z.shape
    return Pool(
        Z,
        np.empty((d, capacity)),
        np.empty(0, dtype=np.int64),
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
        np.empty((PANEL + 1, capacity)),
        np.empty((PANEL, capacity)),
        np.array([0, n, 0, panel_width(n)]),
    )


@jit_borrowing
def refine(
    kind: int,
    amplitude: float,
    Z: Array,
    Zl: Array,
    table: Ints,
    rows: Array,
    i: int,
    complete: int,
    first: int,
    t: int,
    s: float,
) -> float:
    """Compute the entries `first` to t of row i; return its variance, which was s.

    complete : where the panel begins, whose rows of L are `rows`, with their diagonal.
    Hot functions take arrays, not the whole `Pool`: passing it counts references to each of its
    members, which costs more than a short row.
    """
    n = Z.shape[1]
    c = complete // CHUNK
    low = c * CHUNK
    own = chunk_at(table, c, n)[i]
    new = own[first - low :]
    # V_i[j] = (k(x_j, x_i) - L_j.V_i) / L_jj: first what stands before the panel, then the panel
    scratch = rows[PANEL]
    squared_distances(Zl, first, t, Z, i, scratch)
    from_squares(kind, amplitude, scratch[first:t])
    for j in range(t - first):
        new[j] = scratch[first + j]
    for before in range(c):
        known = chunk_at(table, before, n)[i]
        begin = before * CHUNK
        j = first
        while j + 4 <= t:
            p = j - complete
            a0, a1, a2, a3 = dots(
                (
                    rows[p, begin:],
                    rows[p + 1, begin:],
                    rows[p + 2, begin:],
                    rows[p + 3, begin:],
                ),
                known,
                CHUNK,
            )
            k = j - first
            new[k] -= a0
            new[k + 1] -= a1
            new[k + 2] -= a2
            new[k + 3] -= a3
            j += 4
        while j < t:
            # a row has the same digits, however many entries are computed at a time
            new[j - first] -= dot_as_in_four(rows[j - complete, begin:], known, CHUNK)
            j += 1
    for j in range(first, t):
        factor = rows[j - complete]
        v = new[j - first] - dots((factor[low:],), own, j - low)[0]
        v /= factor[j]
        new[j - first] = v
        s -= v * v
    return s


@jit_borrowing
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


@jit_borrowing
def best(kind: int, amplitude: float, pool: Pool) -> int:
    """Return the unlabelled point of largest variance, the lowest index among equals; -1: none."""
    Z, Zl, table, _, var, level, taken, heap, _, _, _, _, _, rows, _, counters = pool
    t = counters[LABELS]
    complete = counters[COMPLETE]
    size = counters[HEAP]
    found = -1
    while size > 0:
        i = heap[0]
        if taken[i]:
            size -= 1
            heap[0] = heap[size]
        elif level[i] < t:
            var[i] = refine(kind, amplitude, Z, Zl, table, rows, i, complete, level[i], t, var[i])
            level[i] = t
        else:
            found = i
            break
        sift_down(heap, var, size, np.int64(0))
    counters[HEAP] = size
    return found


@jit_borrowing
def accept(
    kind: int, amplitude: float, mean: float, noise: float, pool: Pool, i: int, y: float
) -> tuple[int, float]:
    """Label point i; return (status, r_t). There must be a chunk for it.

    The status is 0, or as in `cholesky` the order of the minor that fails, negative if the label
    is too far off; nothing has changed then.
    """
    (
        Z, Zl, table, _, var, level, taken, _, labels, diagonal, residuals, ys, bounds, rows, _,
        counters,
    ) = pool  # fmt: skip
    n = Z.shape[1]
    t = counters[LABELS]
    complete = counters[COMPLETE]
    s = var[i]
    if level[i] < t:
        # Not written to `var`: in the middle of the heap, a point that sinks without being sifted
        # would hide larger ones below it.
        s = refine(kind, amplitude, Z, Zl, table, rows, i, complete, level[i], t, s)
    # The row of V becomes one of L.
    factor = rows[t - complete]
    mu = mean
    for c in range((t + CHUNK - 1) // CHUNK):
        low = c * CHUNK
        width = min(t - low, CHUNK)
        own = chunk_at(table, c, n)[i]
        for k in range(width):
            factor[low + k] = own[k]
        mu += dots((residuals[low:],), own, width)[0]
    status, pivot, residual, r = last_entries(amplitude, s, mu, y, noise, t)
    if status != 0:
        return status, r
    factor[t] = pivot
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
def prepare_panel(rows: Array, products: Array, first: int, last: int) -> None:
    """Write M_p = L_p^-1 and M_0 = -L_p^-1 L_0 of a panel to `products`, (PANEL, T).

    rows : (>= PANEL, T), rows of L with their diagonal.
    """
    p = last - first
    for j in range(p):
        row, factor = products[j], rows[j]
        for k in range(p):
            row[first + k] = 0.0
        # L_p M_p = I, row by row: M_j = (e_j - sum_{k<j} L_jk M_k) / L_jj
        row[first + j] = 1.0
        for k in range(j):
            other, weight = products[k], factor[first + k]
            for m in range(first, first + k + 1):
                row[m] -= weight * other[m]
        for m in range(first, first + j + 1):
            row[m] /= factor[first + j]
    if first > 0:
        # In the eyes of BLAS, which goes column by column: M_0^T = -L_0^T M_p^T
        multiply(
            False, first, p, p, -1.0, rows.ctypes.data, rows.shape[1],
            products.ctypes.data + 8 * first, products.shape[1], 0.0, products.ctypes.data,
            products.shape[1],
        )  # fmt: skip


@jit
def multiply(
    transposed: bool,
    m: int,
    n: int,
    k: int,
    alpha: float,
    A: int,
    lda: int,
    B: int,
    ldb: int,
    beta: float,
    C: int,
    ldc: int,
) -> None:
    """Let C = alpha A B + beta C, or A^T B, for addresses of matrices that go column by column."""
    text = np.empty(2, dtype=np.uint8)
    text[0], text[1] = 84 if transposed else 78, 78  # T or N, N
    whole = np.empty(6, dtype=np.int32)
    whole[0], whole[1], whole[2], whole[3], whole[4], whole[5] = m, n, k, lda, ldb, ldc
    real = np.empty(2)
    real[0], real[1] = alpha, beta
    c, w, r = text.ctypes.data, whole.ctypes.data, real.ctypes.data
    dgemm(c, c + 1, w, w + 4, w + 8, r, A, w + 12, B, w + 16, r + 8, C, w + 20)
    # a later use keeps the arguments alive until here
    text[0], whole[0], real[0] = 0, 0, 0.0


@jit
def complete_rows(
    kind: int,
    amplitude: float,
    Z: Array,
    Zl: Array,
    table: Ints,
    products: Array,
    first: int,
    last: int,
    low: int,
    high: int,
    base: Array,
) -> None:
    """Compute the entries `first` to `last` of the rows `low` to `high`, with one thread of BLAS.

    products : from `prepare_panel`.  base : (N,), loses the squares of the new entries.
    """
    n, p, count = Z.shape[1], last - first, high - low
    K = np.empty(count * p)
    for r in range(count):
        row = K[r * p : (r + 1) * p]
        z, x = Zl[0][first:last], Z[0, low + r]
        for j in range(row.size):
            difference = z[j] - x
            row[j] = difference * difference
        for f in range(1, Z.shape[0]):
            z, x = Zl[f][first:last], Z[f, low + r]
            for j in range(row.size):
                difference = z[j] - x
                row[j] += difference * difference
    from_squares(kind, amplitude, K)
    c = first // CHUNK
    T = products.shape[1]
    own = chunk_at(table, c, n)
    start = first - c * CHUNK
    target = own.ctypes.data + 8 * (low * STRIDE + start)
    # V_p^T = M_p K^T + M_0 V_0^T, chunk by chunk
    multiply(
        True, p, count, p, 1.0, products.ctypes.data + 8 * first, T, K.ctypes.data, p, 0.0, target,
        STRIDE,
    )  # fmt: skip
    for before in range(c + 1):
        width = CHUNK if before < c else start
        if width > 0:
            multiply(
                True, p, count, width, 1.0, products.ctypes.data + 8 * before * CHUNK, T,
                chunk_at(table, before, n).ctypes.data + 8 * low * STRIDE, STRIDE, 1.0, target,
                STRIDE,
            )  # fmt: skip
    for i in range(low, high):
        new = own[i][start : start + p]
        base[i] -= dots((new,), new, p)[0]


@jit_borrowing
def close_panel(pool: Pool) -> None:
    """Put back the rows of L as they were computed, and order the heap anew."""
    Z, _, table, base, var, level, taken, heap, labels, _, _, _, _, rows, _, counters = pool
    first = counters[COMPLETE]
    last = counters[LABELS]
    c = first // CHUNK
    own = chunk_at(table, c, Z.shape[1])
    for j in range(last - first):
        row = own[labels[first + j]]
        for k in range(first, first + j):
            row[k - c * CHUNK] = rows[j, k]
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
        sift_down(heap, var, np.int64(size), place)


def is_full(counters: Ints) -> bool:
    """Whether it is time to complete a panel: after labels 1, 4, 16, ..., then one width each."""
    complete, width = counters[COMPLETE], counters[WIDTH]
    # Without the first label alone, the second would bring every row up to date by itself.
    end = min(width, max(1, 4 * complete)) if complete < width else complete + width
    return bool(counters[LABELS] >= end)


panel_is_full = jit(is_full)  # for compiled callers


@jit
def complete_panel(kind: int, amplitude: float, pool: Pool) -> None:
    """Complete a full panel, block by block."""
    first = pool.counters[COMPLETE]
    last = pool.counters[LABELS]
    n = pool.Z.shape[1]
    prepare_panel(pool.rows, pool.products, first, last)
    for low in range(0, n, ROWS):
        high = min(n, low + ROWS)
        complete_rows(
            kind, amplitude, pool.Z, pool.Zl, pool.table, pool.products, first, last, low, high,
            pool.base,
        )  # fmt: skip
    close_panel(pool)


@jit_borrowing
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
    told: int,
) -> tuple[int, int]:
    """Label points until there are `target` labels or the rule stops.

    y : (N,), labels of all points.  order : (m,), points to label first; then the best ones.
    The bounds of all labels but the first `initial` are given to the rule at this address (0:
    none); with `past_stop` its stop ends nothing. A full panel is left to the caller. Returns
    (reason, status): DONE, STOPPED, FULL if another chunk is needed, or FAILED with the status of
    `accept`.
    A rule that asks for the largest variance sees a label once its panel is complete; `told` labels
    were seen before: the last one was not if its panel was full.
    """
    t = pool.counters[LABELS]
    asks = rule != 0 and rule_asks(rule) != 0
    i = -1
    while True:
        if asks and told < t:
            told = t
            if t > initial:
                i = best(kind, amplitude, pool)  # it comes next
                s = pool.var[i] if i >= 0 and pool.var[i] > 0.0 else 0.0
                if stops(rule, pool.bounds[t - 1], s) and not past_stop:
                    return STOPPED, 0
        if t >= target:
            break
        if t == pool.table.size * CHUNK:
            return FULL, 0
        if t < order.size:
            i = order[t]
        elif i < 0:
            i = best(kind, amplitude, pool)
        status, r = accept(kind, amplitude, mean, noise, pool, i, y[i])
        if status != 0:
            return FAILED, status
        t += 1
        i = -1
        stopped = not asks and t > initial and stops(rule, r, 0.0) and not past_stop
        if panel_is_full(pool.counters):
            return (STOPPED if stopped else DONE), 0
        if stopped:
            return STOPPED, 0
    return DONE, 0
