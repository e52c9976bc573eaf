"""The straightforward selection: after each label, mean and variance of every point are brought up.

For small pools, where it is the fastest, and for acquisitions that ask for all means and variances.
A label costs O(t N), spent in loops over points that run in vectors. No sum is reordered: code that
was compiled in this process and code from the cache then agree to the last digit.

Points stand in columns. Unless somebody asks for all means, a labelled point leaves: it changes
places with the last column that is brought up to date, and t labels cost O(t (N - t)) each. Its
own column, up to its label, is a row of L and stays there. Columns are brought up to date by whole
vectors; those beyond the last one that counts get numbers that nobody reads.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core.cholesky import last_entries
from fastal._core.covariance import from_squares, squared_distances
from fastal._core.elimination import WIDTH, subtract_rows
from fastal._core.ended import DONE, FAILED, STOPPED, stops
from fastal._core.jit import (
    jit_borrowing,
    jit_fused_borrowing,
    jit_fused_part,
    jit_part,
    keeping_the_gil,
)
from fastal._core.views import row_part
from fastal._types import Array, Ints

# Columns that loops take at a time.
VECTOR = WIDTH

# Places in `Eager.counters`.
LABELS, LIVE, LEAVE = 0, 1, 2


class Eager(NamedTuple):
    """All state of a selection; N points of d features in W columns, room for T labels."""

    Z: Array  # (d, W) inputs over length scales, column by column
    V: Array  # (T, W) row t: L^-1 k(labels, .)[t]
    mean: Array  # (W,)
    var: Array  # (W,)
    places: Ints  # (N,) which point stands in a column
    columns: Ints  # (N,) in which column a point stands
    taken: NDArray[np.bool_]  # (N,) whether the point is labelled
    labels: Ints  # (T,) points in the order of their labels
    diagonal: Array  # (T,) L_tt
    residuals: Array  # (T,) z = L^-1 (y - mean)
    y: Array  # (T,) the labels
    bounds: Array  # (T,) r_t of each
    counters: Ints  # (3,) labels; columns that are brought up to date; whether labelled ones leave


def padded(n: int) -> int:
    """Return a number of columns in whole vectors."""
    return (n + VECTOR - 1) // VECTOR * VECTOR


padded_columns = jit_part(padded)  # for compiled callers


@lru_cache(maxsize=2)
def first_numbers(n: int) -> Ints:
    """Return 0, 1, ..., n - 1; to be copied."""
    numbers = np.arange(n)
    numbers.flags.writeable = False
    return numbers


def new_eager(
    Z: Array, capacity: int, amplitude: float, mean: float, all_means: bool = False
) -> Eager:
    """Return the state before the first label.

    Z : (d, N), copied.  all_means : whether labelled points are brought up to date as well.
    """
    d, n = Z.shape
    width, numbers = padded(n), first_numbers(n)
    # NumPy lets the GIL go for every `arange`, and for `zeros` of a kilobyte. Threads with small
    # campaigns would change places each time, which takes about as long as the compiled part.
    columns, means, variances = np.empty((d, width)), np.empty(width), np.empty(width)
    columns[:, :n] = Z
    columns[:, n:] = 0.0
    means.fill(mean)
    variances.fill(amplitude)
    return Eager(
        columns,
        np.empty((capacity, width)),
        means,
        variances,
        numbers.copy(),
        numbers.copy(),
        np.zeros(n, dtype=np.bool_),
        np.empty(capacity, dtype=np.int64),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(capacity),
        np.array([0, n, not all_means], dtype=np.int64),
    )


@jit_fused_part
def update_posterior(row: Array, pivot: float, residual: float, mean: Array, var: Array) -> None:
    """Finish row t of V, and take the label into all means and variances."""
    for j in range(row.size):
        # V_tj = (k - sum) / L_tt;  mu_j += V_tj z_t;  s_j -= V_tj^2
        v = row[j] / pivot
        row[j] = v
        mean[j] += v * residual
        var[j] -= v * v


@jit_fused_borrowing
def take_label(
    kind: int,
    amplitude: float,
    Z: Array,
    V: Array,
    t: int,
    p: int,
    live: int,
    pivot: float,
    residual: float,
    mean: Array,
    var: Array,
) -> None:
    """Compute row t of V, of the point in column p, and take the label into means and variances."""
    width = padded_columns(live)
    row = row_part(V, t, 0, width)
    squared_distances(Z, 0, width, Z, p, row)
    from_squares(kind, amplitude, row)
    for first in range(0, width, VECTOR):
        subtract_rows(V, t, p, first)
    update_posterior(row, pivot, residual, mean, var)


@jit_part
def exchange(
    Z: Array, V: Array, t: int, p: int, q: int, mean: Array, var: Array, places: Ints, columns: Ints
) -> None:
    """Let the point in column q move to column p, and the labelled one there to q.

    Mean and variance of the labelled one are not read again.
    """
    for f in range(Z.shape[0]):
        Z[f, p], Z[f, q] = Z[f, q], Z[f, p]
    for r in range(t):
        V[r, p], V[r, q] = V[r, q], V[r, p]
    mean[p] = mean[q]
    var[p] = var[q]
    labelled, moved = places[p], places[q]
    places[p], places[q] = moved, labelled
    columns[moved], columns[labelled] = p, q


@jit_part
def best(pool: Eager) -> int:
    """Return the unlabelled point of largest variance, the lowest index among equals; -1: none."""
    found = -1
    largest = -math.inf
    for p in range(pool.counters[LIVE]):
        s = pool.var[p]
        if s >= largest:
            i = pool.places[p]
            if not pool.taken[i] and (s > largest or i < found):
                largest = s
                found = i
    return found


@jit_part
def accept(
    kind: int, amplitude: float, noise: float, pool: Eager, i: int, y: float
) -> tuple[int, float]:
    """Label point i; return (status, r_t), the status as in `selection_lazy.accept`."""
    t = pool.counters[LABELS]
    p = pool.columns[i]
    status, pivot, residual, r = last_entries(amplitude, pool.var[p], pool.mean[p], y, noise, t)
    if status != 0:
        return status, r
    live = pool.counters[LIVE]
    if pool.counters[LEAVE] != 0:
        live -= 1
        exchange(pool.Z, pool.V, t, p, live, pool.mean, pool.var, pool.places, pool.columns)
        pool.counters[LIVE] = live
        p = live
    take_label(kind, amplitude, pool.Z, pool.V, t, p, live, pivot, residual, pool.mean, pool.var)
    pool.diagonal[t] = pivot
    pool.residuals[t] = residual
    pool.labels[t] = i
    pool.taken[i] = True
    pool.y[t] = y
    pool.bounds[t] = r
    pool.counters[LABELS] = t + 1  # the last of all: now there is one more
    return 0, r


@jit_borrowing
def run(
    kind: int,
    amplitude: float,
    noise: float,
    pool: Eager,
    y: Array,
    order: Ints,
    initial: int,
    target: int,
    rule: int,
    past_stop: bool,
) -> tuple[int, int]:
    """Label points until there are `target` labels or the rule stops (see `selection_lazy.run`)."""
    t = pool.counters[LABELS]
    while t < target:
        i = order[t] if t < order.size else best(pool)
        status, r = accept(kind, amplitude, noise, pool, i, y[i])
        if status != 0:
            return FAILED, status
        t += 1
        if t > initial and stops(rule, r) and not past_stop:
            return STOPPED, 0
    return DONE, 0


# For pools and campaigns so small that all of it takes a tenth of a millisecond.
run_briefly = keeping_the_gil(run, "run_briefly")
