"""Slow twin of the runs test of a growing sequence: counts again after every value, in integers."""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise


@cache
def arrangements(n0, n1):
    """How many arrangements of n0 zeros and n1 ones have at most u runs, for each u."""
    upto = [0, 0]
    for u in range(2, 2 * min(n0, n1) + 2):
        k = u // 2
        a, b = math.comb(n0 - 1, k - 1), math.comb(n1 - 1, k - 1)
        # both kinds have k parts; or one of them has one more
        odd = math.comb(n0 - 1, k) * b + a * math.comb(n1 - 1, k)
        upto.append(upto[-1] + (odd if u % 2 else 2 * a * b))
    return upto


@cache
def rejects(runs, n0, n1, level, method):
    """Whether P(U <= runs) <= level."""
    n = n0 + n1
    if min(n0, n1) == 0 or n == 2:
        return False
    if method == "normal":
        product = 2 * n0 * n1
        mean, var = 1 + product / n, product * (product - n) / (n * n * (n - 1))
        return math.erfc((mean - runs) / math.sqrt(2 * var)) / 2 <= level
    upto = arrangements(n0, n1)
    share = Fraction(upto[min(runs, len(upto) - 1)], math.comb(n, n0))
    # a level is a double: a p-value that rounds to it is at most the level
    return share <= Fraction(level) or (n <= 50 and float(share) <= level)


def level_at(alpha, n, falling):
    return alpha * (1 + math.log2(n / 16)) ** -2 if falling and n >= 16 else alpha


def counts(values):
    """Return runs, values below and at or above the upper middle one, and whether values fell."""
    middle = sorted(values)[len(values) // 2]
    low = [value < middle for value in values]
    runs = 1 + sum(a != b for a, b in pairwise(low))
    n0 = sum(low)
    places = sum(i for i, below in enumerate(low) if below)
    return runs, n0, len(values) - n0, 2 * places > n0 * (len(values) - 1)


def says_stop(values, alpha, *, method="auto", falling=False, fall=True, horizon=None):
    """Whether the rule says stop after these values."""
    if not values or (horizon and len(values) > horizon):
        return False
    runs, n0, n1, fell = counts(values)
    level = level_at(alpha, len(values), falling)
    return (fell or not fall) and rejects(runs, n0, n1, level, method)


def first_stop(values, alpha, **rule):
    """Return the first n at which the rule says stop, or -1."""
    at = range(1, len(values) + 1)
    return next((n for n in at if says_stop(values[:n], alpha, **rule)), -1)
