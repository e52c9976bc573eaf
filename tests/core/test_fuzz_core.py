"""Every door to compiled streams in random order, against a rule for each stream.

A seeded driver pushes, resets and refuses through Python, Numba and C, and compares all streams
with rules of their own after each operation; `test_rule.py` compares those with a slow twin. 40,000
operations as a rule, the same on every run; ``FASTAL_FUZZ_OPERATIONS=1000000`` asks for more, which
begin at a seed of their own unless ``FASTAL_FUZZ_SEED`` gives one.
"""

import itertools
import math
import os
import random

import numpy as np
import pytest
from c_door import NEGATIVE, NOT_FINITE, NULL, C, new_movement, new_runs

from fastal import jit
from fastal._core.rule import Rule, Streams

OPERATIONS = int(os.environ.get("FASTAL_FUZZ_OPERATIONS", "40000"))
SEED = int(
    os.environ.get(
        "FASTAL_FUZZ_SEED", random.randrange(10**9) if "FASTAL_FUZZ_OPERATIONS" in os.environ else 0
    )
)
N = 3  # streams of a door
ONE_WORLD = 1000  # operations before everything begins anew
RUNS, MOVEMENT = ("runs", 0.05, 0, False, True, 0), ("still", 0.3, 60)
SPECS = (RUNS, MOVEMENT, ("any", RUNS, ("count", 40)), ("all", MOVEMENT, RUNS))
BAD = (math.nan, math.inf, -math.inf)


class FromPython:
    """`Streams`."""

    def __init__(self, spec):
        self.streams = Streams(Rule(spec), N)

    def push(self, i, r):
        where, values = np.arange(N) == i, np.full(N, r)
        stopped = np.empty(N, dtype=np.uint8)
        self.streams.push(values, where.view(np.uint8), stopped)
        return bool(stopped[i])

    def refuses(self, i, r):
        if 0 <= i < N:
            return True  # its caller checks the values
        with pytest.raises(IndexError):
            self.streams.n_bounds(i)
        return True

    def reset(self, i):
        self.streams.reset(np.array([i]))

    def state(self):
        counts, left = np.empty((2, N), dtype=np.int64), np.empty(N)
        self.streams.counts(counts)
        self.streams.left(left)
        return counts[1].tolist(), left.tolist()


class FromNumba(FromPython):
    """The same, lent to Numba for each call."""

    def lent(self, call, *arguments):
        try:
            return call(self.streams.lend(), *arguments)
        finally:
            self.streams.take_back()

    def push(self, i, r):
        return self.lent(jit.push, i, r)

    def refuses(self, i, r):
        what = "finite" if r in BAD else "negative"
        with pytest.raises(ValueError, match=what if 0 <= i < N else "no such stream"):
            self.lent(jit.push, i, r)
        return True

    def reset(self, i):
        self.lent(jit.reset, i)

    def state(self):
        at = [self.lent(jit.stopped_at, i) for i in range(N)]
        return [max(n, 0) for n in at], [self.lent(jit.left, i) for i in range(N)]


class FromC:
    """Streams of fastal.h."""

    def __init__(self, spec):
        if spec == RUNS:
            _, self.streams = new_runs(0.05, n=N)
        else:
            _, self.streams = new_movement(0.3, 60, n=N)

    def __del__(self):
        C.streams_free(self.streams)

    def push(self, i, r):
        return C.streams_push(self.streams, i, r) == 1

    def refuses(self, i, r):
        wanted = NULL if not 0 <= i < N else NOT_FINITE if r in BAD else NEGATIVE
        return C.streams_push(self.streams, i, r) == wanted

    def reset(self, i):
        C.streams_reset(self.streams, i)

    def state(self):
        of = range(N)
        return [C.streams_stopped_at(self.streams, i) for i in of], [
            C.streams_left(self.streams, i) for i in of
        ]


class World:
    """All doors under all rules that they know, and a rule for each stream of each."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        made = [(door, spec) for door in (FromPython, FromNumba) for spec in SPECS]
        made += [(FromC, spec) for spec in SPECS[:2]]
        self.doors = [(door(spec), spec, [Rule(spec) for _ in range(N)]) for door, spec in made]
        self.sources = [self.source() for _ in range(5)]

    def source(self):
        """Bounds without end, of one kind or another."""
        rng, kind, length = self.rng, self.rng.randrange(5), self.rng.uniform(3, 40)
        for t in itertools.count():
            yield (
                rng.random(),
                math.exp(-t / length) * rng.random(),
                float(rng.randrange(3)),
                rng.random() + 4 * (t % 50 < 15),
                rng.choice((0.0, -0.0, 5e-324, 1e300, 1.0)),
            )[kind]

    def step(self):
        rng = self.rng
        door, spec, rules = rng.choice(self.doors)
        i, chance = rng.randrange(N), rng.random()
        if chance < 0.85:
            source = rng.choice(self.sources)
            for r in itertools.islice(source, rng.randrange(1, 30)):
                assert door.push(i, r) == rules[i].push(r)
        elif chance < 0.9:
            door.reset(i)
            rules[i].reset()
        elif chance < 0.95:
            assert door.refuses(rng.choice((-1, N, 2**40)), 1.0)
        else:
            bad = (*BAD, -1.0) if "still" in str(spec) else BAD
            assert door.refuses(i, rng.choice(bad))
        at, left = door.state()
        assert at == [rule.stopped_at for rule in rules]
        np.testing.assert_array_equal(left, [rule.left for rule in rules])


def play(operations, seed):
    world = None
    for number in range(operations):
        if number % ONE_WORLD == 0:
            world = World(f"{seed} {number}")
        try:
            world.step()
        except BaseException:
            print(f"operation {number}; FASTAL_FUZZ_SEED={seed}")
            raise


def test_random_operations():
    play(OPERATIONS, SEED)


def forgets_nothing(door, i):
    """Reset that does nothing."""


def pushes_to_the_next(door, i, r):
    return C.streams_push(door.streams, (i + 1) % N, r) == 1


@pytest.mark.parametrize(
    ("name", "wrong"), [("reset", forgets_nothing), ("push", pushes_to_the_next)]
)
def test_what_is_wrong_is_found(monkeypatch, name, wrong):
    monkeypatch.setattr(FromC, name, wrong)
    with pytest.raises(AssertionError):
        play(2000, 0)
