"""Greedy selection over a pool whose rows are elsewhere, in parts.

Each part keeps a lazy selection (`selection_lazy`) of its own rows and hands out those with the
largest known variances, its candidates, and the next one as a certificate: no row that stays behind
is better than that. Whoever has the candidates of all parts runs the lazy selection among them, and
its choice is the choice among all rows as long as it beats every certificate.
"""

from __future__ import annotations

import numpy as np

from fastal._core.ended import DONE, FAILED, STOPPED, stops
from fastal._core.jit import jit
from fastal._core.selection_lazy import (
    COMPLETE,
    HEAP,
    LABELS,
    Pool,
    accept,
    best,
    panel_is_full,
    refine,
    sift_down,
)
from fastal._types import Array, Ints

# Besides DONE, STOPPED and FAILED: other candidates are needed.
ROUND = 4


@jit
def order_heap(heap: Ints, var: Array, size: int) -> None:
    """Make a heap of its first points."""
    for place in range(size // 2 - 1, -1, -1):
        sift_down(heap, var, size, place)


@jit
def sift_up(heap: Ints, var: Array, place: int) -> None:
    """Let the point at a place of the heap rise to where it belongs."""
    point = heap[place]
    s = var[point]
    while place > 0:
        parent = (place - 1) // 2
        p = heap[parent]
        if not (s > var[p] or (s == var[p] and point < p)):
            break
        heap[place] = p
        place = parent
    heap[place] = point


@jit
def top(kind: int, amplitude: float, pool: Pool, most: int, out: Ints) -> tuple[int, int]:
    """Write the points of largest known variance to `out`; return (how many, the next or -1).

    The first of them is up to date, and no more than `most` others are brought so: their known
    variances are upper bounds.
    """
    Z, Zl, table, _, var, level, taken, heap, _, _, _, _, _, rows, _, counters = pool
    t = counters[LABELS]
    complete = counters[COMPLETE]
    size = counters[HEAP]
    found, refined = 0, 0
    while size > 0:
        i = heap[0]
        if taken[i]:
            size -= 1
            heap[0] = heap[size]
        elif level[i] < t and found < out.size and (found == 0 or refined < most):
            var[i] = refine(kind, amplitude, Z, Zl, table, rows, i, complete, level[i], t, var[i])
            level[i] = t
            refined += 1
        elif found < out.size:
            out[found] = i
            found += 1
            size -= 1
            heap[0] = heap[size]
        else:
            break
        if size > 0:
            sift_down(heap, var, size, 0)
    following = heap[0] if size > 0 else -1
    for k in range(found):
        heap[size] = out[k]
        sift_up(heap, var, size)
        size += 1
    counters[HEAP] = size
    return found, following


@jit
def place_of(here: Ints, row: int) -> int:
    """Return the place of a row of the pool among the candidates, which are sorted; -1: none."""
    low, high = 0, here.size
    while low < high:
        middle = (low + high) // 2
        if here[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < here.size and here[low] == row else -1


@jit
def best_candidate(
    kind: int, amplitude: float, pool: Pool, here: Ints, limit: float, limit_row: int
) -> int:
    """Return the candidate that is best of all rows, by its place; -1: it cannot be told.

    limit, limit_row : the largest certificate, and whose it is. Of equals the lower row wins.
    """
    if limit == np.inf:  # there are no candidates: what is here is of another time
        return -1
    i = best(kind, amplitude, pool)
    if i >= 0 and (pool.var[i] > limit or (pool.var[i] == limit and here[i] < limit_row)):
        return i
    return -1


@jit
def accept_candidate(
    kind: int,
    amplitude: float,
    mean: float,
    noise: float,
    pool: Pool,
    here: Ints,
    i: int,
    y: float,
) -> tuple[int, float]:
    """Label the candidate at a place, under its row of the pool; return (status, r_t)."""
    t = pool.counters[LABELS]
    status, r = accept(kind, amplitude, mean, noise, pool, i, y)
    if status == 0:
        pool.labels[t] = here[i]
    return status, r


@jit
def run_candidates(
    kind: int,
    amplitude: float,
    mean: float,
    noise: float,
    pool: Pool,
    here: Ints,
    y: Array,
    order: Ints,
    initial: int,
    target: int,
    rule: int,
    past_stop: bool,
    limit: float,
    limit_row: int,
) -> tuple[int, int]:
    """Label candidates until there are `target` labels, the rule stops or the panel is full.

    As `selection_lazy.run`; ROUND if the next point is not among the candidates, or may not be.
    """
    t = pool.counters[LABELS]
    while t < target:
        if t < order.size:
            i = place_of(here, order[t])
        else:
            i = best_candidate(kind, amplitude, pool, here, limit, limit_row)
        if i < 0:
            return ROUND, 0
        status, r = accept_candidate(kind, amplitude, mean, noise, pool, here, i, y[here[i]])
        if status != 0:
            return FAILED, status
        t += 1
        if t > initial and stops(rule, r) and not past_stop:
            return STOPPED, 0
        if panel_is_full(pool.counters):
            break
    return DONE, 0
