"""Many learning runs over small pools in one call: nothing of Python between them.

Each run draws its pool from common data by row numbers, learns by `eager.run`, and, if wanted, goes
on behind the stop and computes the expected loss on a test set after each label.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core.eager import STOPPED, Eager, run
from fastal._core.jit import jit
from fastal._core.pool import ROWS, complete_rows, error_rows
from fastal._core.symbols import tracker_reset, tracker_stopped_at

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Columns of the test set's rows that one product of matrices completes.
PANEL = 48


class Work(NamedTuple):
    """Buffers of the test errors; T labels, d features."""

    Zl: Array  # (d, T) inputs of the labels, in order
    factor: Array  # (panels, PANEL, T) rows of L
    part: Array  # (d, ROWS) a block of test inputs
    target: Array  # (ROWS,) and their labels
    V: Array  # (ROWS, T)
    used: NDArray[np.bool_]  # (test rows,) whether a row is in the pool
    sums: Array  # (T,)


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
    )


# numpy.random.SeedSequence, whose arithmetic is of 32 bits: its constants (O'Neill's seed_seq_fe).
LOW = np.uint64(0xFFFFFFFF)
INIT_A, MULT_A = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
INIT_B, MULT_B = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
MIX_L, MIX_R = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
S16, S32 = np.uint64(16), np.uint64(32)

# Words of a SeedSequence behind those that `default_rng` takes for its own state.
FIRST_WORD = 8


@jit
def run_words(entropy: NDArray[np.uint64], runs: Ints, words: NDArray[np.uint64]) -> None:
    """Write ``SeedSequence(seed, spawn_key=(run,)).generate_state(5, uint64)[4]`` of each run.

    entropy : (m,), m >= 4, the seed's words of 32 bits, padded with zeros.  runs, words : (R,).
    numpy's own takes 15 us and the GIL, a third of a short run.
    """
    mixed = np.empty(4, dtype=np.uint64)
    m = entropy.size
    for r in range(runs.size):
        factor = INIT_A
        for source in range(-4, m + 1):
            # first the pool itself, then each of its words into the others, then what is left
            if source < 0:
                value = entropy[source + 4]
            elif source < 4:
                value = mixed[source]
            elif source < m:
                value = entropy[source]
            else:
                value = np.uint64(runs[r])
            for to in range(4):
                if (source < 0 and to != source + 4) or source == to:
                    continue
                h = value ^ factor
                factor = np.uint64(factor * MULT_A) & LOW
                h = np.uint64(h * factor) & LOW
                h ^= h >> S16
                if source >= 0:
                    h = np.uint64(np.uint64(MIX_L * mixed[to]) - np.uint64(MIX_R * h)) & LOW
                    h ^= h >> S16
                mixed[to] = h
        factor = INIT_B
        word = np.uint64(0)
        for j in range(FIRST_WORD + 2):
            h = mixed[j % 4] ^ factor
            factor = np.uint64(factor * MULT_B) & LOW
            h = np.uint64(h * factor) & LOW
            h ^= h >> S16
            word = (word >> S32) | (h << S32)
        words[r] = word


# SplitMix64 (Steele, Lea, Flood 2014): one add and two multiplications a number.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31 = np.uint64(27), np.uint64(30), np.uint64(31)
HALVES = (np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(8), np.uint64(16), np.uint64(32))


@jit
def draw_rows(words: NDArray[np.uint64], numbers: Ints, swaps: Ints, rows: Ints) -> None:
    """Draw rows without replacement, in random order, by a shuffle that ends early.

    words : (R,), a seed for each run.  numbers : (n,), 0 to n - 1, the same afterwards.
    swaps : (N,), scratch.  rows : (R, N), written.
    """
    n = numbers.size
    for r in range(words.size):
        state = words[r]
        for j in range(swaps.size):
            # a number in [0, n - j), each with the same chance: too large ones are drawn again
            span = np.uint64(n - 1 - j)
            mask = span
            for half in HALVES:
                mask |= mask >> half
            while True:
                state = np.uint64(state + GOLDEN)
                z = state
                z = np.uint64((z ^ (z >> S30)) * MIX1)
                z = np.uint64((z ^ (z >> S27)) * MIX2)
                z = (z ^ (z >> S31)) & mask
                if z <= span:
                    break
            k = j + np.int64(z)
            swaps[j] = k
            number = numbers[k]
            numbers[k] = numbers[j]
            numbers[j] = number
            rows[r, j] = number
        # undone, the table serves the next run: O(N), not O(n)
        for j in range(swaps.size - 1, -1, -1):
            k = swaps[j]
            number = numbers[k]
            numbers[k] = numbers[j]
            numbers[j] = number


@jit
def draw_pool(Z: Array, y: Array, rows: Ints, pool: Eager, labels: Array, prior: Array) -> None:
    """Begin a run: copy the rows of its pool, forget the labels.

    Z : (d, n), y : (n,), rows : (N,).  labels : (N,), written.  prior : mean and variance.
    """
    for j in range(rows.size):
        labels[j] = y[rows[j]]
        for f in range(Z.shape[0]):
            pool.Z[f, j] = Z[f, rows[j]]
    pool.mean[:] = prior[0]
    pool.var[:] = prior[1]
    pool.taken[:] = False
    pool.head[0] = 0


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
) -> None:
    """Write the expected loss after each label, over the test rows that are not `used`.

    Z : (d, m), scaled.  y : (m,).  errors : (T,).  By blocks of rows, as `Selection.errors`.
    """
    Zl, factor, part, target, V, used, sums = work
    t = pool.head[0]
    for j in range(t):
        point = pool.labels[j]
        for f in range(Z.shape[0]):
            Zl[f, j] = pool.Z[f, point]
        row = factor[j // PANEL, j % PANEL]
        for k in range(j):
            row[k] = pool.V[k, point]
        row[j] = pool.diagonal[j]
    errors[:t] = 0.0
    count = 0
    filled = 0
    for i in range(y.size):
        if not used[i]:
            for f in range(Z.shape[0]):
                part[f, filled] = Z[f, i]
            target[filled] = y[i]
            filled += 1
        if filled == ROWS or (filled > 0 and i == y.size - 1):
            for first in range(0, t, PANEL):
                last = min(t, first + PANEL)
                complete_rows(
                    kind, amplitude, part, V, Zl, factor[first // PANEL], first, last, 0, filled
                )
            sums[:t] = 0.0
            error_rows(amplitude, mean, V, pool.white, target, t, filled, sums)
            for j in range(t):
                errors[j] += sums[j]
            count += filled
            filled = 0
    # E[loss] = beta/2 [ (y - mu)^2 + s ] + 1/2 log(2 pi / beta), averaged over the test set
    constant = 0.5 * math.log(2 * math.pi * noise)
    for j in range(t):
        errors[j] = errors[j] / (2 * count * noise) + constant


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
    tracker: int,
    whole: bool,
    test_Z: Array,
    test_y: Array,
    rest: bool,
    pool: Eager,
    labels: Array,
    work: Work,
    counts: Ints,
    orders: Ints,
    bounds: Array,
    errors: Array,
) -> None:
    """Run one campaign for each row of `rows`.

    Z : (d, n), scaled.  y : (n,).  rows : (R, N), the pools; their first `initial` points are
    labelled first.  tracker : address, 0 for none.  whole : go on behind a stop.
    test_Z : (d, m), test_y : (m,), m = 0 for none; with `rest` the pool's rows are left out.
    counts : (3, R), written: number of labels, of bounds at the stop (0: none), status (as
    `eager.accept`, 0 is fine).  orders : (R, T), written: places in the pool in the order of
    their labels, or (R, 0).  bounds : (R, T - initial).  errors : (R, T), or (0, 0).
    """
    prior = np.empty(2)
    prior[0], prior[1] = mean, amplitude
    order = np.arange(initial)
    target = pool.V.shape[0]
    for r in range(rows.shape[0]):
        chosen = rows[r]
        draw_pool(Z, y, chosen, pool, labels, prior)
        if tracker != 0:
            tracker_reset(tracker)
        code = run(kind, amplitude, noise, pool, labels, order, initial, target, tracker, bounds[r])
        counts[1, r] = 0
        if code == STOPPED:
            counts[1, r] = tracker_stopped_at(tracker)
            code = 0
            if whole:
                code = run(
                    kind, amplitude, noise, pool, labels, order, initial, target, tracker, bounds[r]
                )
        counts[0, r] = pool.head[0]
        counts[2, r] = code - STOPPED if code > 0 else code
        if orders.size > 0:
            orders[r, : pool.head[0]] = pool.labels[: pool.head[0]]
        if code == 0 and test_y.size > 0:
            if rest:
                for j in range(chosen.size):
                    work.used[chosen[j]] = True
            test_errors(kind, amplitude, mean, noise, pool, test_Z, test_y, work, errors[r])
            if rest:
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
