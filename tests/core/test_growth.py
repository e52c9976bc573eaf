"""No quadratic traps: operations are counted, or their growth from n to 4 n values compared."""

import struct
import time

import numpy as np
import pytest

from fastal import Stopper, runs_test, stopping_time
from fastal._core import batch
from fastal._core.runs_test import rising_pairs
from fastal._core.tracker import RunsTracker
from fastal.stopping.verdict import stop_warnings

WORD = 2**64


def collided_in_the_old_hash(n):
    """Doubles that one fixed hash, used up to version 0.1.0, sent to the same place of the table."""
    inverse = pow(0x9E3779B97F4A7C15, -1, WORD)
    found = []
    for high in range(1, 40 * n):
        hashed = high << 44
        hashed ^= (hashed >> 29) ^ (hashed >> 58)  # undoes h ^ (h >> 29)
        bits = hashed * inverse % WORD
        bits ^= bits >> 32  # undoes itself
        value = struct.unpack("<d", struct.pack("<Q", bits))[0]
        if np.isfinite(value) and value != 0:
            found.append(value)
        if len(found) == n:
            return np.array(found)
    raise AssertionError("not enough finite doubles")


def old_slots(values):
    slots = []
    for value in values.tolist():
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        hashed = (bits ^ (bits >> 32)) * 0x9E3779B97F4A7C15 % WORD
        slots.append((hashed ^ (hashed >> 29)) & (2**14 - 1))
    return slots


SEQUENCES = {
    "made to collide": collided_in_the_old_hash,
    "whole numbers": lambda n: np.arange(n, dtype=float),
    "a lattice of 2^-20": lambda n: np.arange(n) * 2.0**-20,
    "a lattice of 2^40": lambda n: np.arange(n) * 2.0**40,
    "whole numbers and halves": lambda n: 1e6 + np.arange(n) / 2,
    "powers of two": lambda n: 2.0 ** (np.arange(n) % 2000 - 1000) * (1 + np.arange(n) // 2000),
    "neighbours": lambda n: (2**62 + np.arange(n, dtype=np.int64)).view(np.float64),
    "random": lambda n: np.random.default_rng(0).standard_normal(n),
}


def probes(values):
    tracker = RunsTracker()
    tracker.extend(values, np.empty(len(values), dtype=np.uint8))
    return tracker.probes


def test_the_planted_values_would_have_collided():
    assert set(old_slots(collided_in_the_old_hash(1000))) == {0}


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_table_of_values(name):
    few, many = probes(SEQUENCES[name](2000)), probes(SEQUENCES[name](8000))
    assert few < 3 * 2000
    assert many < 6 * few


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


@pytest.mark.parametrize("work", [stop_warnings, verdict, runs_test, stopping_time])
def test_growth(work):
    assert growth(work) < 6


def test_growth_can_fail():
    # a few rows of all pairs, 60 to 240: quadratic
    assert growth(lambda x: np.subtract.outer(x[::10], x[::10]).sum(), n=6000) > 6


def test_a_long_window_needs_no_long_table(monkeypatch):
    lengths = []
    fill = batch.critical_counts

    def record(alpha, falling, method, out):
        lengths.append(len(out))
        fill(alpha, falling, method, out)

    monkeypatch.setattr(batch, "critical_counts", record)
    rows = np.random.default_rng(0).standard_normal((8, 100))
    stops = stopping_time(rows, window=10**7)
    assert lengths == [101]
    np.testing.assert_array_equal(stops, stopping_time(rows))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 31, 100])
def test_rising_pairs(n):
    rng = np.random.default_rng(n)
    for values in (rng.standard_normal(n), rng.integers(0, 4, n).astype(float), np.zeros(n)):
        pairs = sum(int(np.sign(values[i + 1 :] - values[i]).sum()) for i in range(n - 1))
        assert rising_pairs(values.copy(), np.empty(n)) == pairs
