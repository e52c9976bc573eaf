"""No growth: a million pushes, resets, copies and errors leave the process as large as before."""

import ctypes
import gc
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from fastal import Stopper
from fastal._core.tracker import RunsTracker

STATUS = Path("/proc/self/status")
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if STATUS.exists() else None  # glibc's
needs_proc = pytest.mark.skipif(not STATUS.exists(), reason="the size is read from /proc")


def resident():
    """Kilobytes of memory that the process holds, without what earlier tests gave free.

    A leak would go there first, unseen.
    """
    gc.collect()
    if TRIM is not None:
        TRIM(0)
    for line in STATUS.read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("/proc/self/status has no VmRSS")


def pushes_and_resets(n):
    tracker, values = RunsTracker(), np.random.default_rng(0).standard_normal(1000).tolist()
    for _ in range(n // 1000):
        for value in values:
            tracker.push(value)
        tracker.reset()


def windowed_pushes(n):
    # All values are kept, 8 bytes each: a new stopper for each 10,000.
    values = np.random.default_rng(0).standard_normal(10_000).tolist()
    for _ in range(max(n // 10_000, 1)):
        stopper = Stopper(window=50)
        for value in values:
            stopper.push(value)


def copies(n):
    tracker = RunsTracker()
    tracker.extend(np.arange(100.0), np.empty(100, dtype=np.uint8))
    for _ in range(n):
        tracker = tracker.copy()


def errors(n):
    stopper = Stopper()
    stopper.extend([3.0, 1.0, 2.0])
    bad = (float("nan"), float("inf"), "three", None, [1.0])
    for i in range(n):
        try:
            stopper.push(bad[i % len(bad)])
        except (TypeError, ValueError):
            continue
        raise AssertionError("a bad bound was taken")


def states(n):  # each is worth twenty pushes
    stopper = Stopper(window=20)
    stopper.extend(np.arange(100.0))
    for _ in range(n // 20):
        stopper = Stopper.from_dict(stopper.to_dict())
        stopper = pickle.loads(pickle.dumps(stopper))


WORK = (pushes_and_resets, windowed_pushes, copies, errors, states)


@needs_proc
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_no_growth(work):
    work(20_000)  # what is allocated once
    before = resident()
    work(50_000)
    # A leak of one 16-byte block a call would be 800 kB.
    assert resident() - before < 700


@pytest.mark.long
@needs_proc
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_no_growth_over_a_million(work):
    work(100_000)
    before = resident()
    work(1_000_000)
    grown = resident() - before
    print(f"{work.__name__}: {grown} kB more", file=sys.stderr)
    assert grown < 1000  # one byte a call


@needs_proc
def test_a_planted_leak_is_seen():
    free = [RunsTracker() for _ in range(100_000)]  # what an earlier test gave free
    del free
    before = resident()
    kept = [RunsTracker() for _ in range(50_000)]
    assert resident() - before > 700
    assert len(kept) == 50_000
