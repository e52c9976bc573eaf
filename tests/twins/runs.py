"""The runs test by exact integers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def runs_arrangements(u: int, n_below: int, n_above: int) -> int:
    """Return how many arrangements of zeros and ones have exactly u runs.

    A run pattern of 2k runs splits each kind into k parts, in two orders; 2k + 1 runs give one kind
    k + 1 parts and the other k. There are C(n - 1, k - 1) ways to split n into k parts.
    """

    def splits(n: int, parts: int) -> int:
        if parts == 0:
            return int(n == 0)
        return math.comb(n - 1, parts - 1) if n >= 1 else 0

    k = u // 2
    if u < 1:
        return 0
    if u % 2 == 0:
        return 2 * splits(n_below, k) * splits(n_above, k)
    return splits(n_below, k + 1) * splits(n_above, k) + splits(n_below, k) * splits(n_above, k + 1)


def runs_pmf(u: int, n_below: int, n_above: int) -> Fraction:
    """Return P(U = u) as an exact fraction."""
    total = math.comb(n_below + n_above, n_below)
    return Fraction(runs_arrangements(u, n_below, n_above), total)


def runs_cdf(u: int, n_below: int, n_above: int) -> Fraction:
    """Return P(U <= u) as an exact fraction."""
    total = math.comb(n_below + n_above, n_below)
    return Fraction(sum(runs_arrangements(i, n_below, n_above) for i in range(1, u + 1)), total)


def labels(x: ArrayLike) -> Any:
    """Return True for values at or above the median, False below it."""
    values = np.asarray(x, dtype=float)
    return values >= np.median(values)


def count_runs(sides: ArrayLike) -> tuple[int, int, int]:
    """Return the number of runs, of False and of True."""
    ones = [bool(side) for side in np.asarray(sides)]
    changes = sum(a != b for a, b in itertools.pairwise(ones))
    return changes + 1, ones.count(False), ones.count(True)


def fell(x: ArrayLike) -> bool:
    """Return whether values at or above the median came earlier, on average, than those below."""
    sides = labels(x).tolist() if np.size(x) else []
    high = [i for i, side in enumerate(sides) if side]
    low = [i for i, side in enumerate(sides) if not side]
    if not high or not low:
        return False
    return Fraction(sum(high), len(high)) < Fraction(sum(low), len(low))


def runs_test(x: ArrayLike, *, alternative: str = "two-sided", method: str = "exact") -> float:
    """Return the p-value of the runs test about the median."""
    u, n0, n1 = count_runs(labels(x))
    return runs_p_value(u, n0, n1, alternative=alternative, method=method)


def runs_p_value(
    u: int, n_below: int, n_above: int, *, alternative: str = "two-sided", method: str = "exact"
) -> float:
    """Return the p-value of u runs."""
    n = n_below + n_above
    if min(n_below, n_above) == 0 or n == 2:
        return 1.0
    if method == "exact":
        fewer = float(runs_cdf(u, n_below, n_above))
        more = float(1 - runs_cdf(u - 1, n_below, n_above))
    else:
        product = 2 * n_below * n_above
        mean_runs = 1 + product / n
        sd = math.sqrt(product * (product - n) / (n * n * (n - 1)))
        fewer = math.erfc((mean_runs - u) / sd / math.sqrt(2)) / 2
        more = math.erfc((u - mean_runs) / sd / math.sqrt(2)) / 2
    if alternative == "less":
        return fewer
    if alternative == "greater":
        return more
    return min(1.0, 2 * min(fewer, more))


def stopping_time(
    bounds: ArrayLike, alpha: float = 1e-3, *, method: str = "exact", alternative: str = "less",
    window: int | None = None, min_bounds: int | None = None, patience: int = 1, fall: bool = True,
) -> int | None:  # fmt: skip
    """Return how many bounds it takes to stop, with a whole runs test after each."""
    values = np.asarray(bounds, dtype=float)
    streak = 0
    for n in range(1, len(values) + 1):
        tested = values[max(0, n - window) if window else 0 : n]
        p = runs_test(tested, alternative=alternative, method=method)
        counts = p <= alpha and (not fall or alternative != "less" or fell(tested))
        streak = streak + 1 if counts else 0
        if streak >= patience and n >= (min_bounds or 0):
            return n
    return None
