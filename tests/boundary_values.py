"""Integers at the boundaries, and guards against what they may do to the machine."""

import contextlib
import signal
import sys

import numpy as np
import pytest

from fastal import (
    _memory,
)

# The values --------------------------------------------------------------------------------------

HUGE = 10**400
INTEGERS = (
    2**31 - 1, 2**31, 2**31 + 1, 2**32, 2**53 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64,
    -1, -(2**31), -(2**63), HUGE, -HUGE, 10**5000,
)  # fmt: skip
WIDTHS = (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
EXTREMES = tuple(
    width(end) for width in WIDTHS for end in (np.iinfo(width).min, np.iinfo(width).max)
)
FLAGS = (True, False, np.True_, np.False_)
ALL = (*INTEGERS, *EXTREMES, *FLAGS)

# For calls that take long when they succeed: one of each kind.
FEW = (2**31, 2**62, 2**63, -1, HUGE, np.int8(-128), np.uint64(2**64 - 1), True)

# A count that all data here are small for: a larger one must act like it.
PLENTY = 10**6

# Guards, not measurements: they turn a hang and a swapping machine into failures. A call that works
# is given seconds of the processor, which other programs do not use up; one that waits, ten times as
# many by the clock.
SECONDS = 60
MACHINE = 8 * 10**9


@contextlib.contextmanager
def guarded():
    """Raise in a call that does not come back."""

    def ring(*_):
        raise TimeoutError(f"no answer within {SECONDS} s of the processor")

    if not hasattr(signal, "setitimer"):
        yield
        return
    clocks = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, ring) for number in clocks}
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)
    try:
        yield
    finally:
        for number, clock in clocks.items():
            signal.setitimer(clock, 0)
            signal.signal(number, before[number])


@pytest.fixture(autouse=True)
def small_machine(monkeypatch):
    """The same answers on machines of any size, and no request that fills this one."""
    monkeypatch.setattr(_memory, "machine", lambda: MACHINE)
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + MACHINE
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
