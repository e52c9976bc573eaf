"""The twin of `looks.py` in compiled code, for a million streams: critical numbers by integers."""

import math
from bisect import bisect
from functools import cache

import numba
import numpy as np

from twins import looks


def critical(n0, n1, level, method):
    """Return the largest number of runs that rejects; 0 for none."""
    runs = range(2, 2 * min(n0, n1) + 2)
    rejects = looks.rejects.__wrapped__
    found = bisect(runs, 0, key=lambda u: not rejects(u, n0, n1, level, method))
    return found + 1 if found else 0


@cache
def table(longest, alpha, method, falling):
    """Return the critical number of runs for each number of values below and not below."""
    out = np.zeros((longest + 1, longest + 1), dtype=np.int64)
    for n in range(2, longest + 1):
        level = looks.level_at(alpha, n, falling)
        for n0 in range(1, n // 2 + 1):
            out[n0, n - n0] = out[n - n0, n0] = critical(n0, n - n0, level, method)
    return out


@numba.njit(cache=True)
def _first_stop(values, table, fall):
    ordered = np.empty(len(values))
    for n in range(1, len(values) + 1):
        i = n - 1
        while i and ordered[i - 1] > values[n - 1]:
            ordered[i] = ordered[i - 1]
            i -= 1
        ordered[i] = values[n - 1]
        middle = ordered[n // 2]
        runs, below, places = 1, 0, 0
        for i in range(n):
            low = values[i] < middle
            below += low
            places += i * low
            runs += i > 0 and low != (values[i - 1] < middle)
        fell = 2 * places > below * (n - 1)
        if below and (fell or not fall) and runs <= table[below, n - below]:
            return n
    return -1


@numba.njit(cache=True)
def _first_stops(rows, table, fall):
    out = np.empty(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        out[i] = _first_stop(rows[i], table, fall)
    return out


def first_stops(rows, alpha, *, method="auto", falling=False, fall=True, horizon=None):
    """Return the first stop of each row, or -1."""
    rows = rows[:, : horizon or None]
    longest = max(16, 1 << math.ceil(math.log2(max(rows.shape[1], 1))))
    counts = table(longest, alpha, "normal" if method == "normal" else "exact", falling)
    return _first_stops(np.ascontiguousarray(rows), counts, fall)
