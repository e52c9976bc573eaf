"""The C structures: sizes at the edge of what can be counted, no memory, zero handles, bad rules."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastal
from fastal import Stopper, StopperBatch, jit, stopping_time
from fastal._core import symbols
from fastal._core.jit import jit as compiled
from fastal._core.tracker import RunsTracker

BOUNDS = np.repeat([5.0, 1.0], 100) + np.random.default_rng(0).uniform(0, 1, 200)
PLAIN = Stopper()
PLAIN.extend(BOUNDS)
STOP = PLAIN.stopped_at
HUGE = [2**30, 2**30 + 1, 2**31, 2**32, 2**61, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1]


@compiled
def new_tracker(alpha, window):
    return symbols.tracker_new(alpha, window)


@compiled
def push_and_stop(handle, value):
    return symbols.tracker_push(handle, value), symbols.tracker_stopped_at(handle)


def state(stopper):
    return stopper.stopped_at, stopper.n_runs, stopper.n_below, stopper.median, stopper.p_value


@pytest.mark.parametrize("window", HUGE)
def test_a_window_that_no_stream_can_fill_is_no_window(window):
    # 2**62 and more used to write beyond the buffers: twice the window is not a 64-bit number
    stopper = Stopper(window=window)
    for bound in BOUNDS.tolist():
        stopper.push(bound)
    assert state(stopper) == state(PLAIN)
    assert (stopper.window, len(stopper)) == (window, 200)
    assert stopper.earliest_stop == PLAIN.earliest_stop
    assert str(stopper.verdict) == str(PLAIN.verdict)
    again = Stopper.from_dict(json.loads(json.dumps(dict(PLAIN.to_dict(), window=window))))
    assert state(again) == state(PLAIN)
    assert state(again.copy()) == state(PLAIN)
    assert stopping_time(BOUNDS, window=window) == STOP
    assert stopping_time([BOUNDS] * 8, window=window).tolist() == [STOP] * 8
    batch = StopperBatch(2, window=window)
    for bound in BOUNDS.tolist():
        batch.push([bound, bound])
    assert batch.stopped_at.tolist() == [STOP] * 2


@pytest.mark.parametrize("name", ["min_bounds", "patience"])
@pytest.mark.parametrize("value", HUGE)
def test_a_count_that_no_stream_can_reach_never_stops(name, value):
    stopper = Stopper(**{name: value})
    assert stopper.extend(BOUNDS) is None
    assert stopper.verdict.stop is None
    assert (
        stopper.verdict.reason
        == f"no stop is possible before {stopper.earliest_stop} bounds at alpha = 0.001"
    )
    assert stopping_time([BOUNDS] * 8, **{name: value}).tolist() == [-1] * 8
    assert Stopper.from_dict(stopper.to_dict()).stopped_at is None


@pytest.mark.parametrize("name", ["window", "min_bounds", "patience", "horizon"])
@pytest.mark.parametrize("value", [2**63, 2**64, 10**400, -1, -(2**63), True, np.bool_(True), 2.0])
def test_a_count_that_is_none_is_refused_by_name(name, value):
    more = {"sequential": True, "alpha": 0.01} if name == "horizon" else {}
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must be"):
        Stopper(**more, **{name: value})
    if not isinstance(value, np.bool_):
        saved = dict(Stopper(**more).to_dict(), **{name: value})
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            Stopper.from_dict(saved)


@pytest.mark.parametrize("n", [2**40, 2**60, 2**61, 2**61 + 1, 2**62, 2**63 - 1, 2**63, 10**400])
def test_more_streams_than_memory(n):
    with pytest.raises((MemoryError, ValueError), match="streams"):
        StopperBatch(n)


def test_what_is_no_rule_makes_no_tracker():
    for alpha, window in ((-1.0, 0), (0.0, 0), (math.nan, 0), (2.0, 0), (1e-3, -5), (1e-3, 1)):
        assert new_tracker(alpha, window) == 0
        with pytest.raises(ValueError, match="no rule of a tracker"):
            RunsTracker(alpha, 0, window)
    for more in ({"patience": 0}, {"min_bounds": -1}, {"horizon": -1}):
        with pytest.raises(ValueError, match="no rule of a tracker"):
            RunsTracker(**more)


def test_zero_is_never_followed():
    with pytest.raises(ValueError, match="`handle` must come from stopper_new, got 0"):
        jit.stopper_push(0, 1.0)
    assert math.isnan(jit.stopper_p_value(0))
    assert jit.stopper_n_runs(0) == 0
    jit.stopper_reset(0)
    jit.stopper_free(0)
    assert push_and_stop(0, 1.0) == (-3, 0)


# In a process of its own whose memory ends soon: nothing is taken, nothing is lost.
SCARCE = """
import resource, sys
import numpy as np
from fastal import Stopper, StopperBatch
first = np.random.default_rng(0).standard_normal(1000)
stopper, batch = Stopper(), StopperBatch(4)
stopper.extend(first)
latched = stopper.copy()._tracker
latched.held = True
latched.latch()  # as a refit does
for value in first[:200].tolist():
    batch.push([value] * 4)
before = (stopper.bounds.tolist(), stopper.n_runs, stopper.median, stopper.p_value, stopper.stopped_at)
streams = [batch.bounds(i).tolist() for i in range(4)]
more = np.random.default_rng(1).standard_normal(2_000_000)  # 96 MB of nodes, table and heaps
_, most = resource.getrlimit(resource.RLIMIT_AS)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000, most))
try:
    stopper.extend(more)
    print("taken")
except MemoryError as error:
    print(error)
try:
    latched.extend(more, bytearray(len(more)))
    print("taken")
except MemoryError:
    assert (latched.n_pushed, latched.stopped_at) == (1000, 1000), latched.stopped_at
resource.setrlimit(resource.RLIMIT_AS, (used, most))
pushed = 200
try:
    rng = np.random.default_rng(2)
    while pushed < 3_000_000:
        batch.push(rng.standard_normal(4))
        pushed += 1
    print("taken")
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
after = (stopper.bounds.tolist(), stopper.n_runs, stopper.median, stopper.p_value, stopper.stopped_at)
assert after == before
assert batch.n.tolist() == [pushed] * 4, (batch.n, pushed)
again = StopperBatch(4)
for row in np.array([batch.bounds(i) for i in range(4)]).T[:2000]:
    again.push(row)
stopper.push(0.5)
assert len(stopper) == 1001
print("as before")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size is read from /proc")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="ASan needs all addresses"
)
def test_out_of_memory_nothing_is_half_taken():
    path = os.pathsep.join(
        [str(Path(fastal.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCARCE],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "no memory for value 1001",
        done.stdout.splitlines()[1],
        "as before",
    ]
    assert "no memory for one more bound of stream" in done.stdout
