"""Greedy selection over a pool: pivoted Cholesky, lazy and in panels.

Point i of the pool has the row V_i = L^-1 k(labels, x_i), which gives all that is asked of it:
    s_i = k(x_i, x_i) - V_i.V_i,    mu_i = mean + V_i.z,
and, once the point is labelled, its row of the factor L. A new label appends one entry to each row,
    V_i[t] = (k(x_t, x_i) - L_t.V_i) / L_tt.

Variances only shrink, so stale ones are upper bounds: a heap holds the points by what is known of
their variance, and only the top is brought up to date until it stays on top (lazy greedy). The
rest is completed a panel of entries at a time by products of matrices (`products`): with L_p the
panel's own triangle and L_0 what stands left of it,
    V_p = K M_p^T + V_0 M_0^T,    M_p = L_p^-1,    M_0 = -L_p^-1 L_0.
Columns live in chunks (`chunks`) that come with the labels; a panel never crosses a chunk. A row
has the same digits in whatever block it is completed, so that results do not depend on the number
of threads. For small pools see `selection_eager`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core.cholesky import last_entries
from fastal._core.chunks import CHUNK, STRIDE, aligned, chunk_at
from fastal._core.covariance import covariance_row, from_squares
from fastal._core.dots import dot_as_in_four, dots
from fastal._core.ended import BROKEN, DONE, FAILED, FULL, STOPPED, stops
from fastal._core.jit import jit, jit_borrowing, jit_fused, jit_part
from fastal._core.products import COLUMNS, add_block_product, add_chunk_product, squares_to
from fastal._core.symbols import dgemm
from fastal._types import Array, Ints

# Rows that are completed at a time: whole tiles of `products`.
ROWS = 240

# Most columns of a panel; a divisor of CHUNK and a multiple of COLUMNS.
PANEL = 64

# Places in `Pool.counters`.
LABELS, HEAP, COMPLETE = 0, 1, 2


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
    products: Array  # (PANEL * T,) M_0 and M_p of the panel that is being completed
    counters: Ints  # (3,) labels, size of the heap, completed entries


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
        aligned(PANEL * capacity),
        np.array([0, n, 0]),
    )


@jit_part
def panel_fits(table: Ints, first: int, last: int) -> bool:
    """Whether the labels `first` to `last` are a panel within a chunk, and the chunk is there."""
    end = CHUNK * min(table.size, first // CHUNK + 1)
    return first >= 0 and last - first <= PANEL and last <= end


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
    covariance_row(kind, amplitude, Zl, first, t, Z, i, scratch)
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
def sift_down(heap: Ints, var: Array, size: int | np.int64, place: int | np.int64) -> None:
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
    """Return the unlabelled point of largest variance, the lowest index among equals; -1: none.

    BROKEN if the panel leaves its chunk.
    """
    Z, Zl, table, _, var, level, taken, heap, _, _, _, _, _, rows, _, counters = pool
    t = counters[LABELS]
    complete = counters[COMPLETE]
    if t > complete and not panel_fits(table, complete, t):
        return BROKEN
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
    is too far off, or BROKEN if the panel leaves its chunk; nothing has changed then.
    """
    (
        Z, Zl, table, _, var, level, taken, _, labels, diagonal, residuals, ys, bounds, rows, _,
        counters,
    ) = pool  # fmt: skip
    n = Z.shape[1]
    t = counters[LABELS]
    complete = counters[COMPLETE]
    if not panel_fits(table, complete, t + 1) or t >= labels.size:
        return BROKEN, 0.0
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
    """Write M_0 = -L_p^-1 L_0 and M_p = L_p^-1 of a panel to `products`, of PANEL * T numbers.

    They lie by groups of COLUMNS rows, entry after entry: (groups, T, COLUMNS), zero where there is
    no such row.  rows : (>= PANEL, T), rows of L with their diagonal.
    """
    p = last - first
    inverse = np.empty((p, p))
    for j in range(p):
        row, factor = inverse[j], rows[j]
        for m in range(p):
            row[m] = 0.0
        # L_p M_p = I, row by row: M_j = (e_j - sum_{k<j} L_jk M_k) / L_jj
        row[j] = 1.0
        for k in range(j):
            other, weight = inverse[k], factor[first + k]
            for m in range(k + 1):
                row[m] -= weight * other[m]
        for m in range(j + 1):
            row[m] /= factor[first + j]
    T = products.size // PANEL
    step = T * COLUMNS
    for g in range((p + COLUMNS - 1) // COLUMNS):
        for m in range(p):
            place = g * step + (first + m) * COLUMNS
            for c in range(COLUMNS):
                j = g * COLUMNS + c
                products[place + c] = inverse[j, m] if j < p else 0.0
        if first > 0:
            group = products.ctypes.data + 8 * g * step
            # In the eyes of BLAS, which goes column by column: M_0 = -M_p (L_0^T)^T
            multiply(
                COLUMNS, first, p, -1.0, group + 8 * first * COLUMNS, COLUMNS, rows.ctypes.data,
                rows.shape[1], group, COLUMNS,
            )  # fmt: skip


@jit
def multiply(
    m: int, n: int, k: int, alpha: float, A: int, lda: int, B: int, ldb: int, C: int, ldc: int
) -> None:
    """Let C = alpha A B^T, for addresses of matrices that go column by column."""
    text = np.empty(2, dtype=np.uint8)
    text[0], text[1] = 78, 84  # N, T
    whole = np.empty(6, dtype=np.int32)
    whole[0], whole[1], whole[2], whole[3], whole[4], whole[5] = m, n, k, lda, ldb, ldc
    real = np.empty(2)
    real[0], real[1] = alpha, 0.0
    c, w, r = text.ctypes.data, whole.ctypes.data, real.ctypes.data
    dgemm(c, c + 1, w, w + 4, w + 8, r, A, w + 12, B, w + 16, r + 8, C, w + 20)
    # a later use keeps the arguments alive until here
    text[0], whole[0], real[0] = 0, 0, 0.0


@jit_fused
def covariance_block(
    kind: int,
    amplitude: float,
    Z: Array,
    Zl: Array,
    first: int,
    last: int,
    low: int,
    high: int,
    K: Array,
) -> None:
    """Write the covariances of rows and labels to K, by groups of labels: (groups, rows, COLUMNS).

    What belongs to no label is that of the origin.
    """
    d, n = Z.shape
    near = np.empty(d * COLUMNS)
    place = K.ctypes.data
    for begin in range(first, last, COLUMNS):
        for f in range(d):
            for c in range(COLUMNS):
                near[f * COLUMNS + c] = Zl[f, begin + c] if begin + c < last else 0.0
        for i in range(low, high):
            squares_to(near.ctypes.data, Z.ctypes.data + 8 * i, n, d, place)
            place += 8 * COLUMNS
    near[0] = 0.0  # a later use keeps it alive until here
    from_squares(kind, amplitude, K)


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
    after: Array,
) -> None:
    """Compute the entries `first` to `last` of the rows `low` to `high`.

    products : from `prepare_panel`.  after : (N,), `base` less the squares of the new entries.
    """
    n, p, count = Z.shape[1], last - first, high - low
    groups = (p + COLUMNS - 1) // COLUMNS
    step = products.size // PANEL * COLUMNS
    K = np.empty(groups * count * COLUMNS)
    covariance_block(kind, amplitude, Z, Zl, first, last, low, high, K)
    V = np.zeros(groups * count * COLUMNS)
    # V_p = K M_p^T, some columns of K after the others, + V_0 M_0^T, chunk by chunk. M_p is a lower
    # triangle: groups of columns of K have no part in those of V before them.
    for g in range(groups):
        begin = first + g * COLUMNS
        add_block_product(
            K.ctypes.data + 8 * g * count * COLUMNS,
            products.ctypes.data + 8 * (g * step + begin * COLUMNS), step,
            V.ctypes.data + 8 * g * count * COLUMNS, count, groups - g, min(COLUMNS, last - begin),
        )  # fmt: skip
    c = first // CHUNK
    start = first - c * CHUNK
    for before in range(c + 1):
        add_chunk_product(
            chunk_at(table, before, n).ctypes.data + 8 * low * STRIDE,
            products.ctypes.data + 8 * before * CHUNK * COLUMNS, step, V.ctypes.data, count, groups,
            CHUNK if before < c else start,
        )  # fmt: skip
    own = chunk_at(table, c, n)
    for r in range(count):
        new = own[low + r][start : start + p]
        for g in range(groups):
            part = V[(g * count + r) * COLUMNS :]
            target = new[g * COLUMNS :]
            for k in range(min(COLUMNS, target.size)):
                target[k] = part[k]
        after[low + r] = base[low + r] - dots((new,), new, p)[0]


@jit
def complete_blocks(
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
    after: Array,
) -> int:
    """Do what `complete_rows` does, some rows after the others; return 0, or BROKEN before any."""
    if not panel_fits(table, first, last):
        return BROKEN
    for begin in range(low, high, ROWS):
        end = min(high, begin + ROWS)
        complete_rows(kind, amplitude, Z, Zl, table, products, first, last, begin, end, base, after)
    return 0


@jit_borrowing
def close_panel(pool: Pool, after: Array) -> None:
    """Put back the rows of L as they were computed, and order the heap anew.

    after : (N,), the variances now.
    """
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
        base[i] = var[i] = after[i]
        level[i] = last
        if not taken[i]:
            heap[size] = i
            size += 1
    counters[HEAP] = size
    for place in range(size // 2 - 1, -1, -1):
        sift_down(heap, var, np.int64(size), place)


def is_full(counters: Ints) -> bool:
    """Whether it is time to complete a panel: at 1, 4 and 16 labels, then at fixed distances.

    The first labels shrink all variances: were their panels wide, most rows would be brought up to
    date one by one. After label 1 alone, the second one would do so with every row. Wherever a
    panel begins, it ends on the same grid, which has the ends of all chunks.
    """
    complete = counters[COMPLETE]
    if complete < 16:
        end = 1 if complete < 1 else 4 if complete < 4 else 16
    else:
        step = 16 if complete < 128 else 32 if complete < 256 else PANEL
        end = complete // step * step + step
    return bool(counters[LABELS] >= end)


panel_is_full = jit(is_full)  # for compiled callers


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
) -> tuple[int, int]:
    """Label points until there are `target` labels or the rule stops.

    y : (N,), labels of all points.  order : (m,), points to label first; then the best ones.
    The bounds of all labels but the first `initial` are given to the rule at this address (0:
    none); with `past_stop` its stop ends nothing. A full panel is left to the caller. Returns
    (reason, status): DONE, STOPPED, FULL if another chunk is needed, or FAILED with the status of
    `accept`.
    """
    t = pool.counters[LABELS]
    while t < target:
        if t == pool.table.size * CHUNK:
            return FULL, 0
        if t < order.size:
            i = order[t]
        else:
            i = best(kind, amplitude, pool)
            if i == BROKEN:
                return FAILED, BROKEN
        status, r = accept(kind, amplitude, mean, noise, pool, i, y[i])
        if status != 0:
            return FAILED, status
        t += 1
        if t > initial and stops(rule, r) and not past_stop:
            return STOPPED, 0
        if panel_is_full(pool.counters):
            break
    return DONE, 0
