"""Whole simulated campaigns over small pools, one compiled call for many."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core.ended import FAILED
from fastal._core.expected_loss import PANEL, ROWS, add_block, expected_loss, root_mean_square
from fastal._core.jit import jit
from fastal._core.seeds import draw_pool
from fastal._core.selection_eager import LABELS, run
from fastal._core.symbols import state_reset, state_stopped_at
from fastal._types import Array, Ints

if TYPE_CHECKING:
    from fastal._core.selection_eager import Eager


class Work(NamedTuple):
    """Buffers of the test errors; T labels, d features."""

    Zl: Array  # (d, T) inputs of the labels, in order
    factor: Array  # (panels, PANEL, T) rows of L
    part: Array  # (d, ROWS) a block of test inputs
    target: Array  # (ROWS,) and their labels
    V: Array  # (ROWS, T)
    used: NDArray[np.bool_]  # (test rows,) whether a row is in the pool
    totals: Array  # (T,)
    squares: Array  # (T,)


def new_work(features: int, labels: int, test_rows: int) -> Work:
    """Return buffers for test sets of so many rows; none without a test set."""
    t = labels if test_rows else 0
    height = ROWS if test_rows else 0
    return Work(
        np.empty((features, t)),
        np.empty((-(-t // PANEL), PANEL, t)),
        np.empty((features, height)),
        np.empty(height),
        np.empty((height, t)),
        np.zeros(test_rows, dtype=np.bool_),
        np.empty(t),
        np.empty(t),
    )


@jit
def test_errors(
    kind: int,
    amplitude: float,
    mean: float,
    noise: float,
    pool: Eager,
    Z: Array,
    y: Array,
    work: Work,
    errors: Array,
    rmse: Array,
) -> None:
    """Write the expected loss and the RMSE after each label, over the test rows not `used`.

    Z : (d, m), scaled.  y : (m,).  errors, rmse : (T,).  By blocks of rows, as
    `GaussianSelection.test_errors`.
    """
    Zl, factor, part, target, V, used, totals, squares = work
    t = pool.counters[LABELS]
    for j in range(t):
        own = pool.columns[pool.labels[j]]
        for f in range(Z.shape[0]):
            Zl[f, j] = pool.Z[f, own]
        row = factor[j // PANEL, j % PANEL]
        for k in range(j):
            row[k] = pool.V[k, own]
        row[j] = pool.diagonal[j]
    errors[:t] = 0.0
    rmse[:t] = 0.0
    count = 0
    filled = 0
    for i in range(y.size):
        if not used[i]:
            for f in range(Z.shape[0]):
                part[f, filled] = Z[f, i]
            target[filled] = y[i]
            filled += 1
        if filled == ROWS or (filled > 0 and i == y.size - 1):
            totals[:t] = 0.0
            squares[:t] = 0.0
            add_block(
                kind, amplitude, mean, part, target, filled, Zl, factor, pool.residuals, t, V,
                totals, squares,
            )  # fmt: skip
            for j in range(t):
                errors[j] += totals[j]
                rmse[j] += squares[j]
            count += filled
            filled = 0
    for j in range(t):
        errors[j] = expected_loss(errors[j], count, noise)
        rmse[j] = root_mean_square(rmse[j], count)


@jit
def run_many(
    kind: int,
    amplitude: float,
    mean: float,
    noise: float,
    Z: Array,
    y: Array,
    rows: Ints,
    initial: int,
    ordered: int,
    rule: int,
    past_stop: bool,
    test_Z: Array,
    test_y: Array,
    test_on_rest: bool,
    pool: Eager,
    labels: Array,
    work: Work,
    counts: Ints,
    orders: Ints,
    bounds: Array,
    errors: Array,
    rmse: Array,
) -> None:
    """Run one campaign for each row of `rows`.

    Z : (d, n), scaled.  y : (n,).  rows : (R, N), the pools; their first `ordered` points are
    labelled first, `initial` of them without a bound.  rule : address, 0 for none.
    past_stop : continue past a stop.
    test_Z : (d, m), test_y : (m,), m = 0 for none; with `test_on_rest` the pool's rows are left
    out.  counts : (3, R), written: number of labels, of bounds at the stop (0: none), status (as
    `accept`, 0 is fine).  orders : (R, T), written: places in the pool in the order of their
    labels, or (R, 0).  bounds : (R, T - initial).  errors, rmse : (R, T), or (0, 0).
    """
    prior = np.empty(2)
    prior[0], prior[1] = mean, amplitude
    order = np.arange(ordered)
    target = pool.V.shape[0]
    for r in range(rows.shape[0]):
        chosen = rows[r]
        draw_pool(Z, y, chosen, pool, labels, prior)
        if rule != 0:
            state_reset(rule)
        reason, status = run(
            kind, amplitude, noise, pool, labels, order, initial, target, rule, past_stop
        )
        t = pool.counters[LABELS]
        counts[0, r] = t
        counts[1, r] = state_stopped_at(rule) if rule != 0 else 0
        counts[2, r] = status
        for j in range(initial, t):
            bounds[r, j - initial] = pool.bounds[j]
        if orders.size > 0:
            orders[r, :t] = pool.labels[:t]
        if reason != FAILED and test_y.size > 0:
            if test_on_rest:
                for j in range(chosen.size):
                    work.used[chosen[j]] = True
            test_errors(
                kind, amplitude, mean, noise, pool, test_Z, test_y, work, errors[r], rmse[r]
            )
            if test_on_rest:
                for j in range(chosen.size):
                    work.used[chosen[j]] = False


@jit
def without_tails(rows: Array) -> tuple[Ints, Array]:
    """Return how many numbers each row has before its first NaN, and those of all rows in turn.

    rows : (k, B).  A masked copy by NumPy takes four times as long.
    """
    k, width = rows.shape
    lengths = np.empty(k, dtype=np.int64)
    total = 0
    for i in range(k):
        n = 0
        while n < width and not math.isnan(rows[i, n]):
            n += 1
        lengths[i] = n
        total += n
    values = np.empty(total)
    at = 0
    for i in range(k):
        for j in range(lengths[i]):
            values[at + j] = rows[i, j]
        at += lengths[i]
    return lengths, values
