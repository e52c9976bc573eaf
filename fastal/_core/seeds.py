"""Pools of runs, drawn from their seeds (`numpy_seeds.run_words`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastal._core.jit import jit
from fastal._core.selection_eager import LABELS, LIVE
from fastal._types import Array, Ints

if TYPE_CHECKING:
    from fastal._core.selection_eager import Eager

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
        pool.places[j] = j
        pool.columns[j] = j
        for f in range(Z.shape[0]):
            pool.Z[f, j] = Z[f, rows[j]]
    pool.mean[:] = prior[0]
    pool.var[:] = prior[1]
    pool.taken[:] = False
    pool.counters[LABELS] = 0
    pool.counters[LIVE] = rows.size
