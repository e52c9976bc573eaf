"""No quadratic traps: operations are counted, or their growth from n to 4 n values compared."""

import time

import numpy as np
import pytest

from fastal import Stopper, runs_test, stopping_time
from fastal._core.rule import Rule
from fastal._core.runs_test import rising_pairs


def growth(work, n=30_000, rounds=7):
    """CPU time of 4 n over that of n, the least of several rounds each."""

    def least(size):
        given = np.random.default_rng(0).standard_normal(size) - 1e-4 * np.arange(size)
        times = []
        for _ in range(rounds):
            begin = time.thread_time()
            work(given)
            times.append(time.thread_time() - begin)
        return min(times)

    return least(4 * n) / least(n)


def verdict(values):
    stopper = Stopper()
    stopper.extend(values)
    return stopper.verdict.warnings


def looks(values):
    Rule(("runs", 1e-300, 0, False, True, 0)).extend(values)


@pytest.mark.parametrize("work", [verdict, runs_test, stopping_time, looks])
def test_growth(work):
    assert growth(work) < 6


def test_growth_can_fail():
    # a few rows of all pairs, 60 to 240: quadratic
    assert growth(lambda x: np.subtract.outer(x[::10], x[::10]).sum(), n=6000) > 6


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 31, 100])
def test_rising_pairs(n):
    rng = np.random.default_rng(n)
    for values in (rng.standard_normal(n), rng.integers(0, 4, n).astype(float), np.zeros(n)):
        pairs = sum(int(np.sign(values[i + 1 :] - values[i]).sum()) for i in range(n - 1))
        assert rising_pairs(values.copy(), np.empty(n)) == pairs
