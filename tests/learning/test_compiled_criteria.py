"""Criteria inside the compiled loop: the same runs as when they are asked in Python."""

import json
import logging
import pickle

import numpy as np
import pytest
from numba import config

from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    learn,
    simulate,
    stopping_time,
)
from fastal.criteria.experiments import CrossValidation, MaxVariance
from fastal.stopping import criterion as protocol
from fastal.stopping.criterion import Criterion

JIT = not config.DISABLE_JIT

GP = GaussianProcess(1.0, 0.01)

# Eager and lazy; interpreted, the lazy kernels take minutes over such a pool.
SIZES = (120, 2_300) if JIT else (40,)

CRITERIA = {
    "variance": lambda: MaxVariance(0.25),
    "either": lambda: Stopper() | MaxVariance(0.25),
    "either and a budget": lambda: MaxVariance(1e-9) | FixedBudget(20) | Stopper(1e-300),
    "both": lambda: MaxVariance(0.4) & MinLabels(15) & MovementBelow(0.3),
    "nested": lambda: (FixedBudget(12) & MaxVariance(0.3)) | (Stopper() & MinLabels(30)),
    "none stops": lambda: MaxVariance(1e-12),
}


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
    seen = []
    for kind in (Criterion, MaxVariance):
        if "after_label" in vars(kind) or kind is MaxVariance:
            plain = kind.after_label

            def noted(self, campaign, plain=plain):
                seen.append(type(self).__name__)
                return plain(self, campaign)

            monkeypatch.setattr(kind, "after_label", noted)
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
    # with several threads a label waits for its panel before its variance is known
    X, y = _data(2_300)
    one, two = (
        learn(X, y, gp=GP, criterion=MaxVariance(0.01), seed=1, max_labels=labels, threads=threads)
        for threads in (1, 2)
    )
    _same(one, two)
    assert len(two.criterion.history) == labels - 1


@pytest.mark.parametrize("name", ["variance", "nested"])
def test_resumed(name):
    X, y = _data(100 if JIT else 30)
    arguments = {"gp": GP, "criterion": CRITERIA[name](), "seed": 2}
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
@pytest.mark.parametrize("name", ["variance", "either"])
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


def test_a_rule_that_asks_for_variances_takes_no_streams_of_bounds():
    for criterion in (MaxVariance(0.1), Stopper() | MaxVariance(0.1)):
        with pytest.raises(TypeError, match="must be a Stopper, a MovementBelow or a budget"):
            stopping_time(np.ones(20), criterion=criterion)
        with pytest.raises(TypeError, match="must be a Stopper, a MovementBelow or a budget"):
            StopperBatch(2, criterion=criterion)


@pytest.mark.parametrize("name", ["variance", "nested"])
def test_what_a_loop_has_is_no_state(name):
    X, _ = _data(40)
    learner = ActiveLearner(X, gp=GP, criterion=CRITERIA[name](), seed=0)
    criterion = learner.criterion
    before = json.dumps(criterion.to_dict())
    rule = criterion.compiled_in(learner)
    assert rule.stopped_at == 0
    assert json.dumps(criterion.to_dict()) == before
    for copied in (criterion.copy(), pickle.loads(pickle.dumps(criterion))):
        assert json.dumps(copied.to_dict()) == before
    criterion.has_run(learner)  # nothing was shown
    assert json.dumps(criterion.to_dict()) == before
    rule = criterion.compiled_in(learner)
    rule.lend()
    with pytest.raises(RuntimeError, match="another thread"):
        rule.lend()
    rule.take_back()


@pytest.mark.skipif(not JIT, reason="the lazy kernels take minutes interpreted")
def test_ctrl_c_while_a_label_waits_for_its_panel(monkeypatch):
    from fastal.learning import staged
    from fastal.learning.lazy import LazySelection

    monkeypatch.setattr(staged, "EARLY_ENTRIES", 0)  # lazy from the first label on
    X, y = _data(2_300)
    arguments = {"gp": GP, "seed": 1, "max_labels": 70, "threads": 2}
    rule = MaxVariance(0.01) | Stopper(1e-300)
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
    assert [len(part) for part in run.criterion.history] == [run.n_labels - 1] * 2
    _same(whole, run.resume())


class Patient(Criterion):
    """One of somebody's own."""

    def __init__(self):
        self._n = 0

    def push(self, r):
        self._n += 1
        return self.stopped

    def reset(self):
        self._n = 0
        return self

    stopped_at = property(lambda self: 10 if self._n >= 10 else None)
    reason = "ten"


def stepping_out(caplog):
    """Messages of the log but those of what came of a run."""
    return [record for record in caplog.records if "labels; " not in record.getMessage()]


def test_criteria_that_step_out_say_so_once(caplog, monkeypatch):
    monkeypatch.setattr(protocol, "_noted", set())
    X, y = _data(30)
    with caplog.at_level(logging.INFO, logger="fastal"):
        learn(X, y, gp=GP, criterion=Stopper() | MaxVariance(0.1), seed=0)
        assert stepping_out(caplog) == []
        for _ in range(2):
            assert learn(X, y, gp=GP, criterion=Patient() | Stopper(), seed=0).n_labels == 11
            learn(X, y, gp=GP, criterion=CrossValidation(-9.0), seed=0, max_labels=12)
        # whoever looks at each label has stepped out already
        learn(X, y, gp=GP, criterion=MaxVariance(0.1), seed=0, on_label=lambda _: None)
    said = stepping_out(caplog)
    assert [record.levelname for record in said] == ["INFO", "INFO"]
    assert [record.getMessage().split()[0] for record in said] == ["Patient", "CrossValidation"]


def test_ask_and_tell_is_the_same_as_the_loop():
    X, y = _data(40)
    for make in (CRITERIA["variance"], CRITERIA["nested"]):
        run = learn(X, y, gp=GP, criterion=make(), seed=5)
        learner = ActiveLearner(X, gp=GP, criterion=make(), seed=5)
        while not learner.finished:
            learner.tell(y[learner.ask()])
        assert json.dumps(learner.criterion.to_dict()) == json.dumps(run.criterion.to_dict())


@pytest.mark.parametrize(
    ("criterion", "acquisition", "said"),
    [
        (Stopper(), "max_variance", True),
        (Stopper() | MaxVariance(0.1), "max_variance", True),
        (Stopper(), lambda mean, var: var, False),
    ],
    ids=["stopper", "combination", "callable"],
)
def test_a_learner_says_whether_it_needs_python(criterion, acquisition, said):
    learner = ActiveLearner(
        np.arange(9.0), gp=GaussianProcess(), criterion=criterion, acquisition=acquisition
    )
    assert learner.compilable is said
