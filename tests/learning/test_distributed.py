"""A pool on workers: choices and bounds of one machine, with all parts in this process."""

import copy
import pickle

import numpy as np
import pytest
from pool_problems import GP, problem

from fastal import (
    ActiveLearner,
    FixedBudget,
)
from fastal._core import selection_lazy
from fastal.learning import columns, staged
from fastal.learning.distributed import pool as pool_module
from fastal.learning.distributed import selection as selection_module
from fastal.learning.distributed.rows import WorkerRows
from fastal.learning.lazy import LazySelection

if not hasattr(selection_lazy.run, "py_func"):
    pytest.skip("interpreted kernels take too long", allow_module_level=True)


class PartsHere:
    """A pool whose parts are in this process; some are replaced, as if their workers had died."""

    def __init__(self, X, ends, deaths=0.0, seed=0):
        self.X, self.shape, self.ends, self.deaths = X, X.shape, [0, *ends], deaths
        self.n_parts, self.n_deaths = len(ends), 0
        self.draws = np.random.default_rng(seed)
        self.parts = [self.part(k) for k in range(self.n_parts)]

    def part(self, k):
        low, high = self.ends[k], self.ends[k + 1]
        middle = (low + high) // 2
        return WorkerRows(low, [self.X[low:middle], self.X[middle:high]], len(self.X))

    def __len__(self):
        return len(self.X)

    def keep(self, rows):
        pass

    def come_near(self, rows, X):
        np.testing.assert_array_equal(self.X[rows], X)

    def ask(self, numbers, method, arguments):
        for k in numbers:
            if self.draws.random() < self.deaths:
                self.parts[k] = self.part(k)
                self.n_deaths += 1
        return [
            getattr(self.parts[k], method)(*own) for k, own in zip(numbers, arguments, strict=True)
        ]


def both(X, y, ends, labels, order=(7,), gp=GP, **more):
    Z = gp.prior.scale("X", X)
    order = np.array(order, dtype=np.int64)
    here = LazySelection(gp, Z, order, len(order), labels)
    there = selection_module.DaskSelection(
        gp, PartsHere(X, ends, **more), order, len(order), labels
    )
    for one in (here, there):
        one.run(y, labels, None, True, 1)
    return here, there


def assert_same(a, b):
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.bounds, b.bounds)  # to the last digit


PANEL = selection_lazy.PANEL


@pytest.mark.parametrize("ties", [None, "grid", "copies"])
@pytest.mark.parametrize(
    ("n", "ends", "labels"),
    [
        (1, [1], 1),
        (PANEL - 1, [PANEL - 1], PANEL - 1),
        (257, [256, 257], 257),
        (1000, [256, 512, 1000], 130),
        (4095, [2048, 4095], PANEL - 1),
        (4097, [256, 4096, 4097], PANEL + 1),
        (5000, [5000], 257),
        (5001, [1280, 2560, 5001], 520),
    ],
)
def test_parts_choose_as_one_machine(n, ends, labels, ties):
    X, y = problem(n, ties=ties)
    here, there = both(X, y, ends, labels, order=[n // 2])
    assert_same(here, there)
    assert there.names
    assert there.rounds < 5 + labels


@pytest.mark.parametrize("candidates", [1, 8, 300])
@pytest.mark.parametrize("ties", [None, "copies"])
def test_few_candidates_mean_more_rounds_and_nothing_else(candidates, ties, monkeypatch):
    X, y = problem(2100, ties=ties)
    _, many = both(X, y, [1024, 2100], 90, order=[])
    monkeypatch.setattr(selection_module, "CANDIDATES", candidates)
    monkeypatch.setattr(selection_module, "ROUND_BYTES", 0)
    here, few = both(X, y, [1024, 2100], 90, order=[])
    assert_same(here, few)
    assert few.rounds > many.rounds


def test_parts_that_are_lost_all_the_time():
    X, y = problem(4200)
    here, there = both(X, y, [1024, 2048, 4200], 300, deaths=0.3)
    assert there.points.n_deaths > 5
    assert_same(here, there)


def test_equal_variances_at_the_beginning_go_to_the_lowest_row():
    X, y = problem(1000)
    _, there = both(X, y, [256, 1000], 1, order=[])
    assert there.labels.tolist() == [0]


def test_looking_ahead_skipping_and_labels_out_of_turn():
    X, y = problem(4200)
    order = np.array([3])
    ends = [1024, 2048, 4200]
    here = LazySelection(GP, GP.prior.scale("X", X), order, 1, 300)
    there = selection_module.DaskSelection(GP, PartsHere(X, ends), order, 1, 300)
    draws = np.random.default_rng(0)
    for k in range(150):
        for one in (here, there):
            if k % 40 == 7:  # ahead of the panel, and back
                ahead = one.frozen()
                ahead.run(np.zeros(4200), one.n_labels + 70, None, True, 1)
        if k % 40 == 7 and k > 7:
            assert here.best() == there.best()
        left = np.flatnonzero(here.unlabelled)
        np.testing.assert_array_equal(left, np.flatnonzero(there.unlabelled))
        row = int(draws.choice(left)) if k % 10 == 3 else here.best() if k else 3
        if k % 25 == 12:
            assert there.best() == row
            here.skip(row)
            there.skip(row)
            continue
        assert there.accept(row, y[row]) == pytest.approx(here.accept(row, y[row]), abs=1e-12)
    np.testing.assert_array_equal(here.labels, there.labels)
    assert here.largest_variance() == pytest.approx(there.largest_variance(), rel=1e-12)


def test_rows_have_the_same_digits_however_they_are_computed():
    """Entry by entry or many at a time, also behind the first chunk."""
    X, y = problem(4200)
    one = LazySelection(GP, GP.prior.scale("X", X), np.arange(300), 300, 600)
    one.run(y, 310, None, True, 1)
    s, kind = one.state, GP.prior.kind
    complete = int(s.counters[selection_lazy.COMPLETE])
    arguments = kind, GP.amplitude, s.Z, s.Zl, s.table, s.rows
    found = []
    for steps in ([310], range(complete + 1, 311), [complete + 3, 305, 310]):
        first, var = complete, s.base[500]
        for t in steps:
            var = selection_lazy.refine(*arguments, 500, complete, first, t, var)
            first = t
        found.append((var, one.chunks[1][500, : 310 - 256].tobytes()))
    assert complete == 256
    assert found[0] == found[1] == found[2]


def test_copies_of_a_lazy_selection_have_chunks_of_their_own(monkeypatch):
    monkeypatch.setattr(staged, "EARLY_ENTRIES", 0)  # lazy from the first label on
    X, y = problem(2100)
    learner = ActiveLearner(X, gp=GP, criterion=FixedBudget(100), seed=0)
    for _ in range(30):
        learner.tell(y[learner.ask()])
    for other in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        selection = other._selection
        assert selection.state.table.tolist() == [c.ctypes.data for c in selection.chunks]
        assert other.ask() == learner.ask()


def test_a_point_out_of_turn_stays_when_all_labels_are_taken_anew():
    X, y = problem(300)
    learner = ActiveLearner(X, gp=GP, criterion=FixedBudget(100), seed=0)
    for _ in range(10):
        learner.tell(y[learner.ask()])
    out = int(np.flatnonzero(learner.unlabelled)[-1])
    learner.tell(y[out], index=out)
    for _ in range(5):
        learner.tell(y[learner.ask()])
    before = learner.run()
    learner.correct(int(before.indices[3]), 2.0)
    after = learner.run()
    np.testing.assert_array_equal(after.indices, before.indices)
    np.testing.assert_array_equal(np.delete(after.labels, 3), np.delete(before.labels, 3))


@pytest.mark.parametrize("n", [1, 300, 2049, 5001, 70_003])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_scales_of_columns_to_the_last_digit(n, d):
    X = 10 + 3 * np.random.default_rng(n).normal(size=(n, d))
    cuts = sorted({k for k in (256, 1024, 2048, 4864) if k < n} | {n})
    here = PartsHere(X, cuts)
    pool = pool_module.DaskPool.__new__(pool_module.DaskPool)
    pool.shape, pool.ask = X.shape, here.ask
    pool._known, pool._near = {}, (np.arange(n), X)
    pool._parts = [
        pool_module.Part(low, high, [], "", None, None)
        for low, high in zip(here.ends, here.ends[1:], strict=False)
    ]
    unit, deviation = pool.column_scales()
    np.testing.assert_array_equal(unit, columns.units(np.abs(X).max(axis=0)))
    np.testing.assert_array_equal(deviation, (X / unit).std(axis=0))
    np.testing.assert_array_equal(deviation, columns.deviations(X, unit))


def test_labels_out_of_turn_beyond_the_first_chunk():
    # a new chunk of candidates had the rows that it needed, the ones before it had fewer
    X, y = problem(5000)
    here, there = both(X, y, [1280, 5000], 300)
    wanted = np.flatnonzero(here.unlabelled)[[5, 1500, -1]].tolist()
    for one in (here, there):
        for row in wanted:
            one.accept(row, y[row])
        one.run(y, 400, None, True, 1)
    assert_same(here, there)
