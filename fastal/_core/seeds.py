"""Seeds of runs as NumPy's SeedSequence spawns them, and pools drawn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastal._core.jit import jit
from fastal._types import Array, Ints

if TYPE_CHECKING:
    from fastal._core.selection_eager import Eager

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
    pool.counters[0] = 0
