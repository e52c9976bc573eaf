"""One compiled rule, whatever it is made of: against a twin that keeps settings, bounds and fits."""

import copy
import ctypes
import gc
import math
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba.extending import get_cython_function_address
from twins.rule import Twin

import fastal
from fastal._core import symbols
from fastal._core.jit import jit
from fastal._core.rule import Rule, Streams, stopping_times

RUNS = ("runs", 0.05, 0, False, True, 0)
SPECS = (
    RUNS,
    ("runs", 1e-3, 0, False, False, 0),
    ("runs", 0.2, 1, True, True, 0),
    ("runs", 0.1, 1, False, True, 30),
    ("still", 0.3, 0),
    ("still", 0.1, 45),
    ("still", 0, 0),
    ("count", 17),
    ("any", RUNS, ("count", 25)),
    ("all", RUNS, ("count", 25)),
    ("any", ("still", 0.3, 0), RUNS),
    ("all", ("still", 0.5, 0), RUNS, ("count", 12)),
    ("any", ("all", RUNS, ("count", 20)), ("all", ("still", 0.2, 0), ("count", 5)), ("count", 60)),
    ("all", ("any", RUNS, ("still", 0.2, 40)), ("any", ("count", 9), ("still", 0.6, 0))),
)


def some_bounds(rng, n):
    fall = np.exp(-np.arange(n) / rng.uniform(3, 40))
    kinds = (
        lambda: rng.random(n),
        lambda: fall * rng.lognormal(sigma=0.5, size=n),
        lambda: rng.integers(0, 3, n) * 1.0,
        lambda: np.where(rng.random(n) < 0.4, -1e-13, rng.random(n)),
        lambda: np.where(rng.random(n) < 0.05, 1e305, rng.random(n)),
    )
    return kinds[rng.integers(len(kinds))]()


def some_horizon(rng, spec, low, high):
    """Return one horizon for all parts, or one for each."""
    if rng.random() < 0.5:
        return int(rng.integers(low, high))
    return tuple(rng.integers(low, high, len(Twin(spec).parts)).tolist())


def taken(rule):
    out = np.empty(rule.n)
    rule.bounds(out)
    return out


def assert_same(rule, twin):
    assert taken(rule).tolist() == twin.bounds
    assert rule.stopped_at == twin.stopped_at
    assert rule.stops == twin.all_stops
    assert rule.says == twin.says
    assert rule.held == twin.held
    left, level = twin.left_and_level()
    assert (rule.left, rule.level) == pytest.approx((left, level), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("spec", SPECS)
def test_random_histories(spec):
    rng = np.random.default_rng(SPECS.index(spec))
    waits = "still" in str(spec)
    for _ in range(15):
        rule, twin = Rule(spec), Twin(spec)
        if waits:
            horizon = some_horizon(rng, spec, 20, 90)
            twin.set_horizon(horizon)
            rule.set_horizon(horizon)
        for _ in range(12):
            step, x = rng.integers(12), some_bounds(rng, int(rng.integers(1, 25)))
            if step < 5:
                for r in x.tolist():
                    assert rule.push(r) == twin.push(r)
                    assert rule.stopped_at == twin.stopped_at
            elif step < 8:
                rule.extend(x)
                for r in x.tolist():
                    twin.push(r)
            elif step < 10:
                confirms = bool(rng.random() < 0.8)
                values = np.concatenate([twin.bounds, x]) * rng.uniform(0.9, 1.1)
                if len(values) and values.min() >= -1e-12:
                    rule.replace(values, confirms)
                    twin.replace(values.tolist(), confirms)
            elif step == 10 and waits:
                horizon = some_horizon(rng, spec, 1, 120)
                twin.set_horizon(horizon)
                rule.set_horizon(horizon)
            elif rng.random() < 0.1:
                rule.reset()
                twin.reset()
            else:
                rule = rule.copy()
            assert_same(rule, twin)
        saved = Rule(spec)
        saved.set_horizon(tuple(twin.horizons))
        saved.restore(taken(rule), rule.stops, rule.stopped_at, rule.held)
        assert_same(saved, twin)


@pytest.mark.parametrize("spec", SPECS)
def test_streams_and_stopping_times_are_single_rules(spec):
    rng = np.random.default_rng(3)
    rows = np.array([some_bounds(rng, 70) for _ in range(30)])
    rules = [Rule(spec) for _ in rows]
    like = Rule(spec)
    streams = Streams(like, len(rows))
    for one in (*rules, like, streams):
        one.set_horizon(65)
    where = np.ones(len(rows), dtype=np.uint8)
    stopped = np.empty(len(rows), dtype=np.uint8)
    counts, left = np.empty((2, len(rows)), dtype=np.int64), np.empty(len(rows))
    for column in rows.T:
        where[:] = rng.random(len(rows)) < 0.9
        streams.push(np.ascontiguousarray(column), where, stopped)
        for rule, r, there in zip(rules, column, where, strict=True):
            if there:
                rule.push(r)
        assert stopped.tolist() == [rule.stopped_at > 0 for rule in rules]
    streams.counts(counts)
    assert counts.tolist() == [[rule.n for rule in rules], [rule.stopped_at for rule in rules]]
    streams.left(left)
    np.testing.assert_array_equal(left, [rule.left for rule in rules])
    kept = np.empty(streams.n_bounds(4))
    streams.bounds(4, kept)
    assert (kept == taken(rules[4])).all()
    streams.reset(np.array([4, 7]))
    assert [streams.n_bounds(i) for i in (3, 4, 7)] == [rules[3].n, 0, 0]
    times = np.empty(len(rows), dtype=np.int64)
    stopping_times(rows, like, times)
    for row, at in zip(rows, times, strict=True):
        rule = like.copy()
        rule.extend(row)
        assert rule.stopped_at == max(at, 0)
    stopping_times(np.empty((3, 0)), like, times[:3])
    assert times[:3].tolist() == [-1] * 3


def test_rows_are_shared_out_among_threads():
    rows = np.random.default_rng(0).random((400, 300))
    rows[::2, :20] += 1
    like = Rule(("runs", 0.0123, 0, False, True, 0))  # a level whose table nobody has filled
    one, many = (np.empty(len(rows), dtype=np.int64) for _ in range(2))
    with ThreadPoolExecutor(4) as pool:
        parts = [slice(i, i + 50) for i in range(0, 400, 50)]
        list(pool.map(lambda part: stopping_times(rows[part], like, many[part]), parts))
    stopping_times(rows, like, one)
    assert (one == many).all()
    assert 0 < (one > 0).sum() < 400


def c_function(name, returns, *takes):
    address = get_cython_function_address("fastal._core.state", name)
    return ctypes.CFUNCTYPE(returns, *takes)(address)


def test_the_c_functions():
    many, i, r = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    new = c_function("streams_new", many, many, i)
    push = c_function("streams_push", ctypes.c_int, many, i, r)
    stopped_at = c_function("streams_stopped_at", i, many, i)
    left = c_function("streams_left", r, many, i)
    reset = c_function("streams_reset", ctypes.c_int, many, i)
    free = c_function("streams_free", None, many)

    like = Rule(("any", RUNS, ("still", 0.1, 200)))
    streams = new(like.lend(), 3)
    like.take_back()
    x = np.random.default_rng(1).random(80) + 2 * (np.arange(80) < 20)
    assert [push(streams, 1, value) for value in x.tolist()] == [like.push(value) for value in x]
    assert [stopped_at(streams, j) for j in range(3)] == [0, like.stopped_at, 0]
    assert like.stopped_at > 0
    assert left(streams, 1) == like.left
    assert (reset(streams, 1), stopped_at(streams, 1)) == (0, 0)
    assert [push(streams, j, 1.0) for j in (-1, 0, 2, 3)] == [-3, 0, 0, -3]
    assert [push(streams, 0, value) for value in (math.nan, math.inf, -1.0)] == [-2, -2, -4]
    free(streams)
    assert (push(None, 0, 1.0), stopped_at(None, 0), new(None, 3), new(like.lend(), -1)) == (
        -3, -3, None, None
    )  # fmt: skip
    assert math.isnan(left(None, 0))
    assert reset(None, 0) == -3
    free(None)


@jit
def from_numba(rule, streams, x):
    stops = 0
    for r in x:
        stops += symbols.state_push(rule, r) == symbols.streams_push(streams, 1, r)
    return stops, symbols.state_stopped_at(rule), symbols.streams_stopped_at(streams, 1)


def test_compiled_loops_push_into_what_python_lends():
    x = np.random.default_rng(1).random(80) + 2 * (np.arange(80) < 20)
    plain, rule, streams = Rule(RUNS), Rule(RUNS), Streams(Rule(RUNS), 2)
    at = plain.extend(x)
    assert from_numba(rule.lend(), streams.lend(), x) == (80, at, at)
    rule.take_back()
    streams.take_back()
    assert (rule.stopped_at, taken(rule).tolist()) == (at, x.tolist())
    assert [streams.n_bounds(i) for i in range(2)] == [0, 80]


def test_a_refused_bound_changes_nothing():
    rule = Rule(("any", ("still", 0.1, 0), RUNS))
    with pytest.raises(ValueError, match="`horizon` must be given"):
        rule.push(1.0)
    with pytest.raises(ValueError, match="`horizon` must be given"):
        rule.extend(np.ones(2))
    rule.set_horizon(50)
    rule.push(1.0)
    for value, text in ((np.nan, "finite, got nan"), (-1.0, "negative, got -1.0")):
        with pytest.raises(ValueError, match=f"^`r` must .*{text}$"):
            rule.push(value)
        for give in (rule.extend, lambda x: rule.replace(x, True)):
            with pytest.raises(ValueError, match=f"^`values` must .*{text} at index 1$"):
                give(np.array([2.0, value]))
    assert taken(rule).tolist() == [1.0]
    assert not rule.held
    negative = Rule(RUNS)
    assert negative.push(-1.0) is False
    with pytest.raises(TypeError):
        negative.push("1")


@pytest.mark.parametrize(
    "spec",
    [
        ("runs", 0, 0, False, True, 0),
        ("runs", 1, 0, False, True, 0),
        ("runs", 0.1, 3, False, True, 0),
        ("runs", 0.1, 0, False, True, -1),
        ("still", 1.0, 0),
        ("still", 0.1, -1),
        ("count", 0),
        ("any",),
        ("none", 1),
        ("all", ("count", 3), ("count", 0)),
    ],
)
def test_no_rule(spec):
    with pytest.raises(ValueError, match="no rule"):
        Rule(spec)


def test_what_is_in_use_refuses():
    rule, streams = Rule(RUNS), Streams(Rule(RUNS), 2)
    assert rule.lend() > 0 < streams.lend()
    one = np.ones(1)
    for call in (
        lambda: rule.push(1.0),
        lambda: rule.extend(one),
        lambda: rule.replace(one, True),
        lambda: rule.restore(one, [0], 0, False),
        lambda: rule.set_horizon(3),
        lambda: rule.says,
        lambda: rule.left,
        rule.reset,
        rule.copy,
        rule.lend,
        lambda: streams.reset(np.array([0])),
        lambda: streams.push(np.ones(2), np.ones(2, np.uint8), np.ones(2, np.uint8)),
        lambda: stopping_times(np.ones((1, 1)), rule, np.empty(1, np.int64)),
    ):
        with pytest.raises(RuntimeError, match="in use by another thread"):
            call()
    rule.take_back()
    streams.take_back()
    assert rule.push(1.0) is False


def test_two_threads_in_one_rule():
    # extend runs without the GIL: whoever comes meanwhile is refused, and nothing is lost
    rule, x = Rule(RUNS), np.tile([1.0, 0.0], 200_000)
    refused, done = [], threading.Event()

    def meddle():
        while not done.is_set():
            try:
                rule.push(0.5)
                return
            except RuntimeError as error:
                refused.append(error)

    thread = threading.Thread(target=meddle)
    thread.start()
    while True:
        try:
            rule.extend(x)
            break
        except RuntimeError:  # pragma: no cover
            continue
    done.set()
    thread.join()
    assert rule.n - len(x) in (0, 1)


def test_no_memory_is_an_error_and_no_change():
    rule = Rule(RUNS)
    rule.extend(np.arange(20.0))
    with pytest.raises(MemoryError):
        Streams(rule, 2**62)
    with pytest.raises(IndexError, match="there are 3 streams"):
        Streams(rule, 3).n_bounds(3)
    with pytest.raises(ValueError, match="must have length 20"):
        rule.bounds(np.empty(3))
    assert rule.n == 20


def test_horizon_of_the_users_own_stays():
    own, told = Rule(("still", 0.05, 40)), Rule(("still", 0.05, 0))
    for rule in (own, told):
        rule.set_horizon(12)
        rule.extend(np.ones(12))
    assert (own.stopped_at, told.stopped_at) == (0, 12)
    told.set_horizon(1000)  # undoes no stop
    assert told.stopped_at == 12


def test_each_part_has_a_horizon():
    # a budget in an `any` limits its own group only
    still = ("still", 0.01, 0)
    rule = Rule(("any", ("all", still, ("count", 12)), ("all", still, ("count", 30)), RUNS))
    for wrong in ((), (1,) * 7, (1,) * 9):
        with pytest.raises(ValueError, match="`horizon` must have length 8, got"):
            rule.set_horizon(wrong)
    with pytest.raises(TypeError):
        rule.set_horizon((None, None, 12, None, None, "30", None, None))
    with pytest.raises(ValueError, match="`horizon` must be given"):
        rule.push(1.0)  # nothing of these has come in
    rule.set_horizon((None, None, 12, None, None, 0, None, None))
    with pytest.raises(ValueError, match="`horizon` must be given"):
        rule.push(1.0)  # one part still waits
    rule.set_horizon((0, -3, 15, 0, 0, 30, 0, 99))
    rule.extend(np.tile([1.0, 0.9], 20))
    assert rule.stops == (15, 15, 15, 12, 0, 0, 0, 0)
    streams, counts = Streams(rule, 2), np.empty((2, 2), dtype=np.int64)
    streams.set_horizon((0, 0, 20, 0, 0, 30, 0, 0))
    for r in rule.n * [1.0]:
        streams.push(np.full(2, r), np.ones(2, np.uint8), np.empty(2, np.uint8))
    streams.counts(counts)
    assert counts[1].tolist() == [20, 20]


def test_a_rule_is_small_and_copied_by_copy():
    rule = Rule(("any", RUNS, ("count", 200)))
    assert rule.nbytes < 1500
    with pytest.raises(TypeError):
        copy.deepcopy(rule)


SCARCE = """
import resource
import numpy as np
from fastal._core.rule import Rule, Streams, stopping_times
spec = ("any", ("runs", 1e-9, 0, False, True, 0), ("still", 1e-9, 2**40))
first = np.random.default_rng(0).random(1000)
rule, streams = Rule(spec), Streams(Rule(spec), 4)
rule.extend(first)
more, rows = first.repeat(2000), first.repeat(20_000).reshape(1, -1)
all_of, four = np.ones(4, np.uint8), np.empty(4, np.uint8)
def state():
    kept = np.empty(rule.n)
    rule.bounds(kept)
    return kept.tolist(), rule.stops, rule.says, rule.left
before, pushed = state(), 0
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
_, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000, most))
out = np.empty(1, np.int64)
for take in (
    lambda: rule.extend(more),
    lambda: rule.replace(more, True),
    lambda: Streams(rule, 10**6),
    lambda: stopping_times(rows, rule, out),
):
    try:
        take()
        print("taken")
    except MemoryError as error:
        print(error)
try:
    while pushed < 10**7:
        streams.push(np.full(4, pushed % 7.0), all_of, four)
        pushed += 1
    print("taken")
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
assert state() == before
assert [streams.n_bounds(i) for i in range(4)] == [pushed] * 4
streams.push(np.ones(4), all_of, four)
rule.extend(more)
assert rule.n == 2_001_000
print("as before")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size is read from /proc")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="ASan needs all addresses"
)
def test_out_of_memory_nothing_is_half_taken():
    path = str(Path(fastal.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCARCE],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    *errors, last = done.stdout.splitlines()
    assert last == "as before"
    assert len(errors) == 5
    assert all(error.startswith("no memory for") for error in errors)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size is read from /proc")
def test_nothing_grows():
    def work(n):
        x = np.random.default_rng(0).random(60)
        like = Rule(("any", RUNS, ("still", 0.01, 1000)))
        for _ in range(n):
            rule = like.copy()
            rule.extend(x)
            rule.replace(x, True)
            rule.reset()
            with pytest.raises(ValueError, match="finite"):
                rule.push(np.nan)
            Streams(rule, 2).push(x[:2], np.ones(2, np.uint8), np.empty(2, np.uint8))

    def resident():
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    work(1000)
    before = resident()
    work(5000)
    assert resident() - before < 1_000_000  # of 5 MB, were one copy lost each time
