"""Criteria inside the compiled loop: the same runs as when they are asked in Python."""

import json
import pickle

import numpy as np
import pytest
from numba import config

from fastal import (
    ActiveLearner,
    Criterion,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    learn,
    simulate,
)
from fastal.criteria import MaxVariance
from fastal.stopping import Combination, Measured, first_of

JIT = not config.DISABLE_JIT

GP = GaussianProcess(1.0, 0.01)

# Eager and lazy; interpreted, the lazy kernels take minutes over such a pool.
SIZES = (120, 2_300) if JIT else (40,)

CRITERIA = {
    "movement": lambda: MovementBelow(0.3),
    "either": lambda: Stopper(0.01) | MovementBelow(0.2),
    "either and a budget": lambda: MovementBelow(1e-9) | FixedBudget(20) | Stopper(1e-300),
    "both": lambda: MovementBelow(0.4) & MinLabels(15) & Stopper(0.3),
    "nested": lambda: (FixedBudget(12) & MovementBelow(0.5)) | (Stopper() & MinLabels(30)),
    "none stops": lambda: Stopper(1e-300),
}


NEVER = MovementBelow(1e-9) | Stopper(1e-300)


def _data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


def _same(a, b):
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.bounds, b.bounds)
    assert a.stopped_at == b.stopped_at
    assert str(a.verdict) == str(b.verdict)
    assert json.dumps(a.criterion.to_dict()) == json.dumps(b.criterion.to_dict())


@pytest.fixture
def steps(monkeypatch):
    """Count the labels that criteria see in Python."""
    seen, plain = [], Criterion.see

    def noted(self, campaign, r):
        seen.append(type(self).__name__)
        return plain(self, campaign, r)

    monkeypatch.setattr(Criterion, "see", noted)
    monkeypatch.setattr(Combination, "see", noted)
    return seen


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CRITERIA)
def test_compiled_and_asked_in_python(name, n, steps):
    X, y = _data(n)
    arguments = {"gp": GP, "seed": 1, "max_labels": min(n, 90)}
    fast = learn(X, y, criterion=CRITERIA[name](), threads=1, **arguments)
    assert steps == []
    slow = learn(X, y, criterion=CRITERIA[name](), on_label=lambda _: None, **arguments)
    assert steps
    _same(fast, slow)


@pytest.mark.skipif(not JIT, reason="the lazy kernels take minutes interpreted")
@pytest.mark.parametrize("labels", [63, 64, 65, 80])
def test_panels_that_are_left_to_threads(labels):
    X, y = _data(2_300)
    one, two = (
        learn(X, y, gp=GP, criterion=NEVER, seed=1, max_labels=labels, threads=threads)
        for threads in (1, 2)
    )
    _same(one, two)
    assert len(two.criterion) == labels - 1


@pytest.mark.parametrize(
    "criterion",
    [
        Stopper(0.01),
        (FixedBudget(30) & Stopper(0.3)) | (Stopper(1e-4) & MinLabels(35)),
        MaxVariance(0.4),
    ],
)
def test_resumed(criterion):
    X, y = _data(100 if JIT else 30)
    arguments = {"gp": GP, "criterion": criterion, "seed": 2}
    whole = learn(X, y, max_labels=len(y) // 2, **arguments)
    parts = learn(X, y, max_labels=len(y) // 4, **arguments)
    if not parts.stopped:
        parts = parts.resume(max_labels=len(y) // 2)
    _same(whole, parts)
    # past the stop, and by way of an oracle
    ends = [run.resume(max_labels=len(y)) for run in (whole, parts)]
    asked = learn(X, lambda i, _: y[i], max_labels=len(y) // 2, **arguments)
    ends.append(asked.resume(max_labels=len(y)))
    _same(ends[0], ends[1])
    _same(ends[0], ends[2])


@pytest.mark.skipif(not JIT, reason="fits take minutes interpreted")
@pytest.mark.parametrize("acquisition", ["max_variance", "random"])
@pytest.mark.parametrize("name", ["movement", "either"])
def test_with_fits_on_the_way(name, acquisition):
    X, y = _data(60)
    arguments = {"criterion": CRITERIA[name](), "seed": 3, "acquisition": acquisition}
    for gp in (None, GP):
        fast = learn(X, y, gp=gp, refit=1.3, **arguments)
        slow = learn(X, y, gp=gp, refit=1.3, on_label=lambda _: None, **arguments)
        _same(fast, slow)


def test_the_variance_is_that_of_the_process():
    X, y = _data(30)
    run = learn(X, y, gp=GP, criterion=MaxVariance(1e-9), seed=0)
    gp = GP.copy()
    for t, i in enumerate(run.indices):
        gp.add(X[i], y[i])
        left = np.setdiff1d(np.arange(30), run.indices[: t + 1])
        largest = gp.predict(X[left], return_var=True)[1].max() if len(left) else 0.0
        if t >= run.n_initial:
            got = run.criterion.history[t - run.n_initial]
            assert got == pytest.approx(largest, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("size", [60, 2_100] if JIT else [30])
def test_simulations_stop_where_the_finished_run_does(size):
    X, y = _data(2 * size)
    arguments = {"gp": GP, "n_runs": 3, "pool_size": size, "max_labels": 50 if JIT else 15}
    for make in (lambda: MaxVariance(0.5), lambda: MaxVariance(0.55) | FixedBudget(30)):
        stopped = simulate(X, y, criterion=make(), test=None, **arguments)
        judged = simulate(X, y, criteria=[make()], test=None, **arguments)
        expected = judged.criteria_stops[:, 0]
        np.testing.assert_array_equal(stopped.stopped_at, expected)
        np.testing.assert_array_equal(
            stopped.n_labels, np.where(expected < 0, arguments["max_labels"], expected)
        )


@pytest.mark.parametrize("name", ["movement", "nested"])
def test_what_a_loop_has_is_no_state(name):
    X, _ = _data(40)
    learner = ActiveLearner(X, gp=GP, criterion=CRITERIA[name](), seed=0)
    criterion = learner.criterion
    before = json.dumps(criterion.to_dict())
    rule = criterion._compiled()
    assert rule.stopped_at == 0
    assert json.dumps(criterion.to_dict()) == before
    for copied in (criterion.copy(), pickle.loads(pickle.dumps(criterion))):
        assert json.dumps(copied.to_dict()) == before
    rule.lend()
    with pytest.raises(RuntimeError, match="another thread"):
        rule.lend()
    with pytest.raises(RuntimeError, match="another thread"):
        learner._run_compiled(X[:, 0], 10, 1)
    with pytest.raises(RuntimeError, match="another thread"):  # still lent
        criterion.push(1.0)
    rule.take_back()
    assert learner._run_compiled(X[:, 0], 10, 1)
    assert len(criterion) == 9


@pytest.mark.skipif(not JIT, reason="the lazy kernels take minutes interpreted")
def test_ctrl_c_while_a_label_waits_for_its_panel(monkeypatch):
    from fastal.learning import staged
    from fastal.learning.lazy import LazySelection

    monkeypatch.setattr(staged, "EARLY_ENTRIES", 0)  # lazy from the first label on
    X, y = _data(2_300)
    arguments = {"gp": GP, "seed": 1, "max_labels": 70, "threads": 2}
    rule = NEVER
    whole = learn(X, y, criterion=rule, **arguments)
    calls, plain = [], LazySelection._complete_panel

    def interrupted(self, share_out):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        plain(self, share_out)

    monkeypatch.setattr(LazySelection, "_complete_panel", interrupted)
    with pytest.raises(KeyboardInterrupt) as info:
        learn(X, y, criterion=rule, **arguments)
    run = info.value.run
    assert 1 < run.n_labels < 70
    np.testing.assert_array_equal(run.criterion.bounds, run.bounds)
    _same(whole, run.resume())


class Patient(Criterion):
    """One of somebody's own: several low bounds in a row."""

    def __init__(self, level=0.7, patience=3):
        super().__init__(level=level, patience=patience)

    def says_stop(self, bounds):
        return len(bounds) >= self.patience and bounds[-self.patience :].max() < self.level


OWN = {
    "alone": lambda: Patient(),
    "or compiled": lambda: Patient() | FixedBudget(62),
    "and compiled": lambda: Patient(1.0) & (MinLabels(61) | Stopper(1e-5)),
    "and measured": lambda: Patient(1.0) & MaxVariance(0.2),
}


@pytest.mark.parametrize("refit", [None, 1.3] if JIT else [None])
@pytest.mark.parametrize("name", OWN)
def test_a_criterion_of_ones_own_by_every_way(name, refit):
    X, y = _data(90 if JIT else 40)
    arguments = {"gp": GP, "seed": 5, "refit": refit, "initial": 5}
    run = learn(X, y, criterion=OWN[name](), **arguments)
    _same(run, learn(X, lambda i, _: y[i], criterion=OWN[name](), **arguments))
    learner = ActiveLearner(X, criterion=OWN[name](), **arguments)
    while not learner.finished:
        learner.tell(y[learner.ask()])
        if learner.n_labels == 12:
            learner = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
        if learner.n_labels == 17:
            learner = pickle.loads(pickle.dumps(learner))
    assert learner.labelled.tolist() == run.indices.tolist()
    assert learner.criterion.stopped_at == run.criterion.stopped_at
    if refit is None and name != "and measured" and JIT:
        whole = OWN[name]()
        assert run.stopped
        assert whole.extend(run.bounds) == run.stopped_at - 5


@pytest.mark.parametrize("refit", [None, 1.3] if JIT else [None])
@pytest.mark.parametrize("name", OWN)
def test_a_criterion_of_ones_own_in_simulations(name, refit):
    X, y = _data(150 if JIT else 50)
    arguments = {"gp": GP, "refit": refit, "initial": 5, "pool_size": 70 if JIT else 30}
    how = {"n_runs": 3, "test": None, "seed": 1}
    alone = simulate(X, y, criterion=OWN[name](), **arguments, **how)
    beside = simulate(X, y, criteria=[OWN[name](), Stopper()], **arguments, **how)
    assert alone.stopped_at.tolist() == beside.criteria_stops[:, 0].tolist()
    del arguments["pool_size"]
    for run, child in enumerate(np.random.SeedSequence(1).spawn(3)):
        rows = alone.pool(run)
        seed = int(child.generate_state(1)[0])
        same = arguments | {"initial": np.arange(5), "seed": seed, "criterion": OWN[name]()}
        one = learn(X[rows], y[rows], **same)
        assert alone.stopped_at[run] == (one.stopped_at or -1)
        assert alone.n_labels[run] == one.n_labels


class Looks(Measured):
    """Writes down when it is asked."""

    def __init__(self, every=10, threshold=-1.0):
        super().__init__(every=every, threshold=threshold)

    def measure(self, campaign):
        return float(campaign.n_labels)


@pytest.mark.parametrize("whole", [Looks(), Looks() | Stopper(1e-300)])
def test_what_is_measured_looks_where_a_batch_ends(whole):
    X, y = _data(60)

    def looks(*sizes):
        learner = ActiveLearner(X, gp=GP, criterion=whole, seed=0, max_labels=50)
        for size in sizes:
            rows = learner.ask(size)
            learner.tell(y[rows] if size > 1 else float(y[rows[0]]))
        assert len(learner.criterion) == learner.n_labels - 1
        return first_of(learner.criterion, Looks).history.tolist()

    assert looks(*[1] * 50) == [11, 21, 31, 41]
    assert looks(1, 7, 7, 7, 7) == [15, 22]
    assert looks(8, 35, 1, 1, 1) == [43]
    learner = ActiveLearner(X, gp=GP, criterion=whole, seed=0)
    rows = learner.ask(12)
    learner.tell([*y[rows[:-1]], None])  # the last one cannot be measured
    assert first_of(learner.criterion, Looks).history.tolist() == [11]


def test_an_error_in_a_criterion_loses_no_label():
    class Fails(Criterion):
        def __init__(self, at):
            super().__init__(at=at)
            self._failed = False

        def says_stop(self, bounds):
            if len(bounds) == self.at and not self._failed:
                self._failed = True
                raise ZeroDivisionError
            return len(bounds) >= 20

    class Unmeasured(Looks):
        def measure(self, campaign):
            if campaign.n_labels == 8:
                raise ZeroDivisionError
            return super().measure(campaign)

    X, y = _data(40)
    for rule in (
        Fails(7),
        Fails(7) | Stopper(1e-300),
        Unmeasured(1) | FixedBudget(20),
        FixedBudget(20) | Unmeasured(1),
    ):
        with pytest.raises(ZeroDivisionError) as info:
            learn(X, y, gp=GP, criterion=rule, seed=0)
        run = info.value.run
        assert run.n_labels == 8
        assert len(run.criterion) == len(run.bounds) == 7
        longer = run.resume()
        assert longer.stopped_at == 21
        assert len(longer.criterion) == 20


def test_ask_and_tell_is_the_same_as_the_loop():
    X, y = _data(40)
    for make in (CRITERIA["movement"], CRITERIA["nested"]):
        run = learn(X, y, gp=GP, criterion=make(), seed=5)
        learner = ActiveLearner(X, gp=GP, criterion=make(), seed=5)
        while not learner.finished:
            learner.tell(y[learner.ask()])
        assert json.dumps(learner.criterion.to_dict()) == json.dumps(run.criterion.to_dict())


@pytest.mark.parametrize(
    ("criterion", "acquisition", "said"),
    [
        (Stopper(), "max_variance", True),
        (Stopper() | FixedBudget(5), "max_variance", True),
        (Stopper() | MaxVariance(0.1), "max_variance", False),
        (Patient(), "max_variance", False),
        (Stopper(), lambda mean, var: var, False),
    ],
    ids=["stopper", "combination", "measured", "own", "callable"],
)
def test_a_learner_says_whether_it_needs_python(criterion, acquisition, said):
    learner = ActiveLearner(
        np.arange(9.0), gp=GaussianProcess(), criterion=criterion, acquisition=acquisition
    )
    assert learner.compilable is said
