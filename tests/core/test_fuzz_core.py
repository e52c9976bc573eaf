"""The C core in random order: every way to a tracker against a slow twin, after every operation.

A seeded driver draws one operation after the other on trackers, stoppers, batches, handles of
compiled code and C entry points. 40,000 operations as a rule, which are the same on every run;
``FASTAL_FUZZ_OPERATIONS=1000000`` asks for more, which begin at a seed of their own unless
``FASTAL_FUZZ_SEED`` gives one. A failure names the seed and the operation that show it again.
"""

import itertools
import json
import math
import os
import pickle
import random
import sys

import numpy as np
import pytest
from tracker_twin import (
    ALTERNATIVES,
    HUGE_WINDOWS,
    LEVELS,
    METHODS,
    NOT_FINITE,
    PATIENCE,
    WINDOWS,
    Source,
    Twin,
    equal,
    p_value,
    random_rule,
    refuses,
    same_p,
)

from fastal import Stopper, StopperBatch, jit, stopping_time
from fastal._core import symbols
from fastal._core.jit import jit as compiled
from fastal._core.tracker import RunsTracker

OPERATIONS = int(os.environ.get("FASTAL_FUZZ_OPERATIONS", "40000"))
SEED = int(
    os.environ.get(
        "FASTAL_FUZZ_SEED", random.randrange(10**9) if "FASTAL_FUZZ_OPERATIONS" in os.environ else 0
    )
)
PARTS = 4  # tests that share the operations, so that they can run side by side
ONE_WORLD = 5000  # operations before everything begins anew


# One class for each way in: a method is an operation, `check` compares with the twin ---------------


class Stream:
    """One thing under test and its twin."""

    operations = ()

    def __init__(self, rng):
        self.rng = rng
        self.source = Source(rng)
        # a twin takes time in proportion to the values: few long streams
        self.longest = rng.choice((10, 20, 40, 40, 80, 80, 250))
        self.begin()

    def begin(self):
        """Make the thing and the twin anew."""

    def close(self):
        """Free what Python does not."""

    def draw(self):
        return self.source.draw(self.twin)

    def several(self):
        """Some values as the twin will see them one after the other."""
        # values at the median of all before the first one will do
        return [self.draw() for _ in range(self.rng.choice((0, 1, 2, 3, 8, 17, 40)))]

    def too_long(self):
        limit = self.longest if not 0 < self.twin.window < 100 else 10 * self.longest
        return len(self.twin.values) > limit

    def step(self):
        """Do one operation; return its name."""
        operation = self.rng.choice(self.operations)
        if self.too_long():
            operation = self.rng.choice(("reset", "begin_anew"))
        getattr(self, operation)()
        self.check()
        return operation

    def begin_anew(self):
        self.close()
        self.begin()


class Tracker(Stream):
    """RunsTracker, which everything else is made of."""

    operations = (
        *["push"] * 30, *["stopped_after"] * 15, *["lent_push"] * 5, *["extend"] * 3, "reset",
        "begin_anew", "copy", "copy", "replace", "values", "refuse", "lend", "tails",
    )  # fmt: skip

    def begin(self):
        rule = random_rule(self.rng)
        self.tracker, self.twin = RunsTracker(*rule), Twin(*rule)

    def check(self):
        tracker, twin = self.tracker, self.twin
        n, median = tracker.n_pushed, tracker.median
        equal(
            (
                n,
                tracker.n_runs,
                tracker.n_below,
                tracker.n_above,
                median if n else None,
                tracker.stopped_at,
            ),
            twin.state(),
        )
        equal(tracker.rejects, twin.rejects)
        equal((tracker.fell, tracker.rose), (twin.fell, twin.rose))
        p = tracker.p_value(twin.rule[3])
        if not same_p(p, twin.p, twin.below + twin.above):
            # two erfc of arguments that were rounded differently
            equal(twin.rule[1], 2)
            equal(math.isclose(p, twin.p, rel_tol=1e-11), True)

    def push(self):
        value = self.draw()
        equal(self.tracker.push(value), self.twin.push(value))

    def stopped_after(self):
        value = self.draw()
        self.twin.push(value)
        equal(self.tracker.stopped_after(value), self.twin.stopped_at > 0)

    def lent_push(self):
        value = self.draw()
        address = self.tracker.lend()
        said = entry_push(address, value)
        stopped_at = entry_stopped_at(address)
        self.tracker.take_back()
        equal(said, self.twin.push(value))
        equal(stopped_at, self.twin.stopped_at)

    def extend(self):
        values = self.several()
        out = np.empty(len(values), dtype=np.uint8)
        stopped_at = self.tracker.extend(np.array(values, dtype=float), out)
        equal(out.tolist(), self.twin.extend(values))
        equal(stopped_at, self.twin.stopped_at)

    def reset(self):
        self.tracker.reset()
        self.twin.reset()

    def copy(self):
        before, old = self.tracker, self.twin
        self.tracker, self.twin = before.copy(), old.copy()
        self.check()
        if self.rng.random() < 0.5:  # what the one is given, the other does not see
            value = self.draw()
            equal(before.push(value), old.push(value))
            self.check()
            self.tracker, self.twin = before, old

    def replace(self):
        rule = random_rule(self.rng) if self.rng.random() < 0.5 else self.twin.rule
        twin, values = Twin(*rule), self.several()
        other = RunsTracker(*rule)
        other.extend(np.array(values, dtype=float), np.empty(len(values), dtype=np.uint8))
        twin.extend(values)
        self.tracker.replace(other)
        equal(other.n_pushed, len(self.twin.values))
        self.twin = twin

    def values(self):
        out = np.empty(len(self.twin.values))
        self.tracker.values(out)
        equal(out.tolist(), self.twin.values)
        refuses(ValueError, self.tracker.values, np.empty(len(out) + 1))

    def refuse(self):
        bad = self.rng.choice(NOT_FINITE)
        refuses(ValueError, self.tracker.push, bad)
        values = np.array([*self.several(), bad, *self.several()])
        refuses(ValueError, self.tracker.extend, values, np.empty(len(values), dtype=np.uint8))

    def lend(self):
        equal(self.tracker.lend() != 0, True)
        for function in (self.tracker.reset, self.tracker.copy, self.tracker.p_value):
            refuses(RuntimeError, function)
        refuses(RuntimeError, self.tracker.push, 1.0)
        refuses(RuntimeError, RunsTracker().replace, self.tracker)
        self.tracker.take_back()

    def tails(self):
        twin = self.twin
        for alternative in range(3):
            expected = p_value(twin.runs, twin.below, twin.above, 1, alternative)
            if twin.rule[1] != 2 and not same_p(
                self.tracker.p_value(alternative), expected, twin.below + twin.above
            ):
                equal(self.tracker.p_value(alternative), expected)


class Public(Stream):
    """Stopper, with its ways to be kept."""

    operations = (
        *["push"] * 12, *["extend"] * 2, "reset", "begin_anew", "copy", "dictionary", "pickled",
        "refuse", "verdict",
    )  # fmt: skip

    def settings(self):
        rng = self.rng
        if rng.random() < 0.3:
            return {
                "alpha": rng.choice((0.45, 0.1, 0.01, 1e-3)),
                "sequential": True,
                "horizon": rng.choice((None, 10, 40, 1000)),
                "patience": rng.choice(PATIENCE),
                "fall": rng.random() < 0.5,
            }
        _, method, window, alternative, min_bounds, patience, *_, fall = random_rule(rng)
        return {
            "alpha": rng.choice(LEVELS[1:]),
            "method": METHODS[method],
            "alternative": ALTERNATIVES[alternative],
            "window": window or None,
            "min_bounds": min_bounds or None,
            "patience": patience,
            "fall": fall,
        }

    def begin(self):
        self.criterion = Stopper(**self.settings())
        self.twin = Twin(*self.rule())

    def rule(self):
        s = self.criterion
        return (
            s._level,
            1 if s.sequential else METHODS.index(s.method),
            s.window or 0,
            ALTERNATIVES.index(s.alternative),
            s.min_bounds or 0,
            s.patience,
            s.horizon or 0,
            s._falling,
            s.fall,
        )

    def check(self):
        stopper, twin = self.criterion, self.twin
        n = len(stopper)
        equal(
            (
                n,
                stopper.n_runs,
                stopper.n_below,
                stopper.n_above,
                stopper.median if n else None,
                stopper.stopped_at or 0,
            ),
            twin.state(),
        )
        if not math.isclose(stopper.p_value, twin.p, rel_tol=1e-11):
            equal(stopper.p_value, twin.p)

    def push(self):
        value = self.draw()
        self.twin.push(value)
        equal(self.criterion.push(value), self.twin.stopped_at > 0)

    def extend(self):
        values = self.several()
        self.twin.extend(values)
        equal(self.criterion.extend(values), self.twin.stopped_at or None)

    def reset(self):
        self.criterion.reset()
        self.twin.reset()

    def copy(self):
        before = self.criterion
        self.criterion = before.copy()
        self.check()
        before.push(1.0)

    def dictionary(self):
        self.criterion = Stopper.from_dict(json.loads(json.dumps(self.criterion.to_dict())))
        equal(self.criterion.bounds.tolist(), self.twin.values)

    def pickled(self):
        self.criterion = pickle.loads(pickle.dumps(self.criterion))
        equal(self.criterion.bounds.tolist(), self.twin.values)

    def refuse(self):
        bad = self.rng.choice(NOT_FINITE)
        refuses(ValueError, self.criterion.push, bad)
        refuses(ValueError, self.criterion.extend, [*self.several(), bad])

    def verdict(self):
        verdict, twin = self.criterion.verdict, self.twin
        equal(verdict.stop is True, twin.stopped_at > 0)
        if not twin.stopped_at and len(twin.values) >= 2:
            equal((verdict.n, verdict.n_runs), (len(twin.values), twin.runs))
            equal(verdict.median, twin.median)
            equal(self.criterion.labels.sum(), twin.above)


class Batch(Stream):
    """StopperBatch: some streams advance, others stand."""

    operations = (*["push"] * 20, "reset", "reset_all", "begin_anew", "values", "refuse")

    def begin(self):
        rng = self.rng
        settings = Public.settings(self)
        self.batch = StopperBatch(rng.choice((1, 2, 3, 5)), **settings)
        self.criterion = self.batch._like
        self.twins = [Twin(*Public.rule(self)) for _ in range(len(self.batch))]

    @property
    def twin(self):  # for the source and for the length
        return max(self.twins, key=lambda twin: len(twin.values))

    def check(self):
        batch = self.batch
        columns = (batch.n, batch.n_runs, batch.stopped_at, batch.p_value, batch.median)
        for twin, row in zip(
            self.twins, zip(*(c.tolist() for c in columns), strict=True), strict=True
        ):
            n, runs, stopped_at, p, median = row
            stopped_at = max(stopped_at, 0)
            equal(
                (n, runs, median if n else None, stopped_at),
                (len(twin.values), twin.runs, twin.median, twin.stopped_at),
            )
            if not math.isclose(p, twin.p, rel_tol=1e-11):
                equal(p, twin.p)
        equal(self.batch.stopped.tolist(), [twin.stopped_at > 0 for twin in self.twins])

    def push(self):
        where = [self.rng.random() < 0.7 for _ in self.twins]
        values = [self.source.draw(twin) for twin in self.twins]
        everywhere = self.rng.random() < 0.3
        for i, twin in enumerate(self.twins):
            if everywhere or where[i]:
                twin.push(values[i])
            elif self.rng.random() < 0.1:
                values[i] = self.rng.choice(NOT_FINITE)  # does not matter
        stopped = self.batch.push(values) if everywhere else self.batch.push(values, where)
        equal(stopped.tolist(), [twin.stopped_at > 0 for twin in self.twins])

    def reset(self):
        chosen = self.rng.randrange(len(self.twins))
        self.batch.reset(chosen)
        self.twins[chosen].reset()

    def reset_all(self):
        self.batch.reset()
        for twin in self.twins:
            twin.reset()

    def values(self):
        for i, twin in enumerate(self.twins):
            equal(self.batch.bounds(i).tolist(), twin.values)

    def refuse(self):
        values = [self.source.draw(twin) for twin in self.twins]
        values[-1] = self.rng.choice(NOT_FINITE)
        refuses(ValueError, self.batch.push, values)
        refuses(ValueError, self.batch.reset, len(self.twins))


@compiled
def entry_new(alpha, window):
    return symbols.tracker_new(alpha, window)


@compiled
def entry_push(handle, value):
    return symbols.tracker_push(handle, value)


@compiled
def entry_stopped_at(handle):
    return symbols.tracker_stopped_at(handle)


@compiled
def entry_p_value(handle):
    return symbols.tracker_p_value(handle)


@compiled
def entry_n_runs(handle):
    return symbols.tracker_n_runs(handle)


@compiled
def entry_reset(handle):
    symbols.tracker_reset(handle)


@compiled
def entry_free(handle):
    symbols.tracker_free(handle)


class Entries(Stream):
    """The C entry points."""

    operations = (*["push"] * 20, "refuse", "reset", "begin_anew")

    def begin(self):
        alpha = self.rng.choice(LEVELS)
        window = self.rng.choice(HUGE_WINDOWS if self.rng.random() < 0.2 else WINDOWS)
        self.handle, self.twin = entry_new(alpha, window), Twin(alpha, 0, window, fall=True)
        equal(self.handle != 0, True)

    def close(self):
        entry_free(self.handle)
        self.handle = 0

    def check(self):
        handle, twin = self.handle, self.twin
        equal((entry_n_runs(handle), entry_stopped_at(handle)), (twin.runs, twin.stopped_at))
        p = entry_p_value(handle)
        if not same_p(p, twin.p, twin.below + twin.above):
            equal(p, twin.p)

    def push(self):
        value = self.draw()
        equal(entry_push(self.handle, value), self.twin.push(value))

    def refuse(self):
        equal(entry_push(self.handle, self.rng.choice(NOT_FINITE)), -2)

    def reset(self):
        entry_reset(self.handle)
        self.twin.reset()


class Handles(Stream):
    """fastal.jit, as compiled code uses it."""

    operations = (*["push"] * 20, "refuse", "reset", "begin_anew", "whole")

    def begin(self):
        alpha = self.rng.choice(LEVELS[1:])
        self.handle, self.twin = jit.stopper_new(alpha), Twin(alpha, fall=True)

    def close(self):
        jit.stopper_free(self.handle)
        self.handle = 0

    def check(self):
        handle, twin = self.handle, self.twin
        equal(jit.stopper_n_runs(handle), twin.runs)
        p = jit.stopper_p_value(handle)
        if not same_p(p, twin.p, twin.below + twin.above):
            equal(p, twin.p)

    def push(self):
        value = self.draw()
        self.twin.push(value)
        equal(jit.stopper_push(self.handle, value), self.twin.stopped_at > 0)

    def refuse(self):
        refuses(ValueError, jit.stopper_push, self.handle, self.rng.choice(NOT_FINITE))

    def reset(self):
        jit.stopper_reset(self.handle)
        self.twin.reset()

    def whole(self):
        said = jit.stopping_time(np.array(self.twin.values, dtype=float), self.twin.rule[0])
        equal(said, self.twin.stopped_at or -1)


class Rows(Stream):
    """stopping_time of a matrix: with and without a table of critical counts."""

    operations = ("rows",)

    def begin(self):
        self.twin = Twin(1.0)

    def check(self):
        """Nothing is left behind."""

    def rows(self):
        settings = Public.settings(self)
        self.criterion = Stopper(**settings)
        twins = [Twin(*Public.rule(self)) for _ in range(self.rng.choice((0, 1, 3, 8, 9)))]
        n = self.rng.choice((0, 1, 2, 15, 40))
        for twin in twins:
            self.source.change()
            for _ in range(n):
                twin.push(self.source.draw(twin))
        matrix = np.array([twin.values for twin in twins], dtype=float).reshape(len(twins), n)
        said = stopping_time(matrix, threads=self.rng.choice((1, 2)), **settings)
        equal(said.tolist(), [twin.stopped_at or -1 for twin in twins])


class World:
    """Some of each, in random order."""

    MANY = ((Tracker, 8), (Public, 2), (Batch, 2), (Entries, 2), (Handles, 2), (Rows, 1))

    def __init__(self, seed):
        self.seed, self.rng, self.done = seed, random.Random(seed), 0
        self.streams = [kind(self.rng) for kind, many in self.MANY for _ in range(many)]
        # a row is forty operations, a batch and a stopper some: fewer of them
        self.weights = list(
            itertools.accumulate(
                {Tracker: 10, Public: 5, Batch: 4, Rows: 0.4}.get(type(stream), 5)
                for stream in self.streams
            )
        )

    def step(self):
        stream = self.rng.choices(self.streams, cum_weights=self.weights)[0]
        try:
            stream.step()
        except Exception as error:
            raise AssertionError(
                f"seed {self.seed}, operation {self.done}, {type(stream).__name__}: {error}"
            ) from error
        self.done += 1

    def run(self, operations):
        try:
            for _ in range(operations):
                self.step()
            for stream in self.streams:  # nothing was changed by an operation on another
                stream.check()
        finally:
            for stream in self.streams:
                stream.close()


@pytest.mark.parametrize("part", range(PARTS))
def test_random_operations(part):
    for number in range(part, math.ceil(OPERATIONS / ONE_WORLD), PARTS):
        print(SEED + number, end=" ", flush=True)  # if a sanitizer ends the process, the last one
        World(SEED + number).run(min(ONE_WORLD, OPERATIONS - number * ONE_WORLD))


# The net must hold what falls into it: a twin that is wrong is a tracker that is wrong -------------


class KeepsItsStop(Twin):
    def reset(self):
        before = getattr(self, "stopped_at", 0)
        super().reset()
        self.stopped_at = before


class LooksTooFarBack(Twin):
    def tested(self):
        return self.values[-self.window - 1 :] if 8 <= self.window < 100 else super().tested()


class StopsAgain(Twin):
    def push(self, value):
        rejects = super().push(value)
        if self.stopped_at and rejects:
            self.stopped_at = len(self.values)
        return rejects


class CountsTiesBelow(Twin):
    def state(self):
        ties = self.tested().count(self.median) if len(self.values) == 30 else 0
        n, runs, below, above, *rest = super().state()
        return (n, runs, below + ties, above - ties, *rest)


@pytest.mark.parametrize("wrong", [KeepsItsStop, LooksTooFarBack, StopsAgain, CountsTiesBelow])
def test_what_is_wrong_is_found(monkeypatch, wrong):
    monkeypatch.setattr(sys.modules[__name__], "Twin", wrong)
    with pytest.raises(AssertionError, match=r"seed 0, operation \d+, [A-Z][a-z]+: "):
        World(0).run(ONE_WORLD)


@pytest.mark.parametrize("kind", [kind for kind, _ in World.MANY if kind is not Rows])
def test_one_value_unseen_is_found(kind):
    stream = kind(random.Random(0))
    stream.push()
    stream.check()
    twins = stream.twins if kind is Batch else [stream.twin]
    for twin in twins:
        twin.push(5.0 + twin.values[0])
    stream.twin.push(0.0)
    with pytest.raises(AssertionError, match="instead of"):
        stream.check()
    stream.close()
