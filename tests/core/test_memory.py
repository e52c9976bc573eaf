"""No growth: a million pushes, resets, copies and errors leave the process as large as before."""

import ctypes
import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from c_door import C, new_movement, new_runs

from fastal import jit
from fastal._core.rule import Rule, Streams

STATUS = Path("/proc/self/status")
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if STATUS.exists() else None  # glibc's
needs_proc = pytest.mark.skipif(not STATUS.exists(), reason="the size is read from /proc")

SPEC = ("any", ("runs", 1e-3, 0, False, True, 0), ("still", 0.01, 10_000))


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
    rule, values = Rule(SPEC), np.random.default_rng(0).random(1000).tolist()
    for _ in range(n // 1000):
        for value in values:
            rule.push(value)
        rule.reset()


def copies(n):
    rule = Rule(SPEC)
    rule.extend(np.arange(100.0))
    for _ in range(n):
        rule = rule.copy()


def errors(n):
    rule = Rule(SPEC)
    rule.extend(np.array([3.0, 1.0, 2.0]))
    bad = (float("nan"), float("inf"), -1.0, "three", None, [1.0])
    for i in range(n):
        try:
            rule.push(bad[i % len(bad)])
        except (TypeError, ValueError):
            continue
        raise AssertionError("a bad bound was taken")


def streams(n):  # each is worth fifty pushes
    rule = Rule(SPEC)
    for _ in range(n // 50):
        made = Streams(rule, 3)
        handle = made.lend()
        for i in range(30):
            jit.push(handle, i % 3, 1.0)
        jit.reset(handle, 1)


def doors(n):  # likewise
    for _ in range(n // 50):
        for _, made in (new_runs(n=3), new_movement(n=3)):
            for i in range(30):
                C.streams_push(made, i % 3, 1.0)
            C.streams_free(made)


WORK = (pushes_and_resets, copies, errors, streams, doors)


@needs_proc
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_no_growth(work):
    work(20_000)  # what is allocated once
    before = resident()
    work(50_000)
    # A leak of one 16-byte block a call would be 800 kB; of one of 1,000 streams, 100.
    assert resident() - before < (100 if work in (streams, doors) else 700)


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
    free = [new_runs() for _ in range(1000)]  # what an earlier test gave free
    for _, made in free:
        C.streams_free(made)
    before = resident()
    kept = [new_runs() for _ in range(1000)]
    assert resident() - before > 100
    for _, made in kept:
        C.streams_free(made)
