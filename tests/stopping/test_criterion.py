"""The protocol of criteria: one of the user's own, restored ones, and what is imported for them."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastal
from fastal import (
    ActiveLearner,
    Criterion,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    Stopper,
    _state,
    learn,
    simulate,
)
from fastal.criteria import CrossValidation, MaxVariance
from fastal.criteria.finished_run import Record
from fastal.stopping import Criterion as Base

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, 60)
Y = np.sin(X) + 0.05 * rng.standard_normal(60)
GP = GaussianProcess(1.0, 0.0025)


class Quiet(Criterion):
    """Stops when three bounds in a row are below a level."""

    def __init__(self, level):
        self.level = level
        self.reset()

    def reset(self):
        self.seen, self.low, self.stop = 0, 0, None
        return self

    def push(self, r):
        self.seen, self.low = self.seen + 1, self.low + 1 if r < self.level else 0
        self.stop = self.stop or (self.seen if self.low == 3 else None)
        return self.stopped

    stopped_at = property(lambda self: self.stop)
    reason = property(lambda self: f"{self.low} bounds in a row are below {self.level}")


def first_quiet(bounds, level):
    low = np.array(bounds) < level
    runs = [n for n in range(3, len(low) + 1) if low[n - 3 : n].all()]
    return runs[0] if runs else None


def test_a_criterion_of_ones_own_in_learn():
    whole = learn(X, Y, gp=GP, criterion=FixedBudget(59), seed=1)
    at = first_quiet(whole.bounds, 0.5)
    assert at is not None
    run = learn(X, Y, gp=GP, criterion=Quiet(0.5), seed=1)
    assert (run.stopped, len(run.bounds)) == (True, at)
    assert str(run.verdict) == f"stop after {at} bounds: 3 bounds in a row are below 0.5"
    both = learn(X, Y, gp=GP, criterion=Quiet(0.5) & MinLabels(40), seed=1)
    assert len(both.bounds) == max(at, 40)
    either = learn(X, Y, gp=GP, criterion=Quiet(0.5) | FixedBudget(5), seed=1)
    assert len(either.bounds) == 5


def test_a_criterion_of_ones_own_in_simulate():
    result = simulate(
        X, Y, gp=GP, criterion=Quiet(0.5), criteria=[Quiet(5.0)], n_runs=6, pool_size=40
    )
    for bounds, labels, early in zip(
        result.bounds, result.n_labels, result.criteria_stops[:, 0], strict=True
    ):
        bounds = bounds[~np.isnan(bounds)]
        at = first_quiet(bounds, 0.5)
        assert labels == (40 if at is None else at + 1)
        assert early == first_quiet(bounds, 5.0) + 1


def test_a_criterion_of_ones_own_is_copied_and_cannot_be_saved():
    rule = Quiet(1.0)
    rule.extend([0.5, 0.5])
    twin = rule.copy()
    twin.push(0.5)
    assert (twin.stopped_at, rule.stopped_at) == (3, None)
    assert pickle.loads(pickle.dumps(twin)).stopped_at == 3
    with pytest.raises(TypeError, match="a Quiet cannot be saved"):
        rule.to_dict()
    with pytest.raises(TypeError, match="a Quiet cannot be saved"):
        ActiveLearner(X, gp=GP, criterion=rule, seed=0).to_dict()


def test_learners_and_finished_runs_are_what_criteria_may_see():
    learner = ActiveLearner(X, gp=GP, criterion=Stopper(), initial=3, seed=0)
    for name in ("points", "n_pool", "n_initial", "initial_rows", "acquisition", "prior", "model",
                 "residuals", "unlabelled", "largest_variance"):  # fmt: skip
        assert hasattr(learner, name)
    assert learner.initial_rows.tolist() == learner.order[:3].tolist()
    run = Record(GP, np.ones((1, 2)), np.arange(2), np.zeros(2), 0, np.zeros(2))
    for name in (
        "prior", "scaled", "order", "y", "n_initial", "bounds", "losses", "prior_loss",
    ):  # fmt: skip
        assert hasattr(run, name)


def fresh(code):
    """Run code in a process that has imported nothing of fastal yet."""
    path = os.pathsep.join(
        [str(Path(fastal.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_saved_criterion_loads_in_a_fresh_process():
    # only kinds whose module somebody had imported did
    rule = (Stopper() | FixedBudget(9)) & MinLabels(3)
    rule.extend([3.0, 1.0, 2.0])
    states = json.dumps(
        [rule.to_dict(), MaxVariance(0.2).to_dict(), CrossValidation(0.2).to_dict()]
    )
    said = fresh(
        "import json\nfrom fastal.stopping.criterion import Criterion\n"
        f"print([repr(Criterion.from_dict(state)) for state in json.loads({states!r})])"
    )
    assert "FixedBudget(9)" in said
    assert "CrossValidation" in said


def test_a_saved_learner_loads_in_a_fresh_process():
    learner = ActiveLearner(X, gp=GP, criterion=FixedBudget(9), seed=0)
    learner.tell(Y[learner.ask()])
    state = json.dumps(learner.to_dict())
    said = fresh(
        "import json\nimport numpy as np\nfrom fastal import ActiveLearner\n"
        f"X = np.array({X.tolist()})\n"
        f"learner = ActiveLearner.from_dict(json.loads({state!r}), X)\nprint(learner.ask())"
    )
    assert int(said) == learner.ask()


def test_every_kind_has_a_home():

    ours = {
        name
        for name, kind in Base._kinds.items()
        if kind.__module__.startswith("fastal.") and not kind.__abstractmethods__
        if not name.startswith("_")
    }
    assert ours - {"Measured"} <= set(_state.HOMES)
    for kind, home in _state.HOMES.items():
        assert hasattr(__import__(home, fromlist=[kind]), kind)


def test_a_composition_takes_a_posterior_without_numba_and_scipy():
    said = fresh(
        "import sys\nfrom fastal import FixedBudget, Stopper\n"
        "rule = Stopper(noise=0.1) | FixedBudget(3)\n"
        "rule.update(0.0, 1.0, 0.5)\n"
        "print(rule.history[0], [name for name in ('numba', 'scipy') if name in sys.modules])"
    )
    alone = Stopper(noise=0.1)
    alone.update(0.0, 1.0, 0.5)
    assert said == f"{alone.history} []\n"


def test_simulate_evaluates_a_measured_criterion_once(monkeypatch):
    calls = []
    measures = MaxVariance.measures_in

    def counted(self, run):
        calls.append(1)
        return measures(self, run)

    monkeypatch.setattr(MaxVariance, "measures_in", counted)
    simulate(X, Y, gp=GP, criteria=[MaxVariance(0.1)], n_runs=4, pool_size=20, n_jobs=1)
    assert len(calls) == 4


class Mine(Criterion):
    """A user's: no super().__init__, and a way of its own to copy."""

    def __init__(self):
        self.values = []

    def push(self, r):
        self.values.append(r)
        return self.stopped

    def reset(self):
        self.values = []
        return self

    @property
    def stopped_at(self):
        return 3 if len(self.values) >= 3 else None

    @property
    def reason(self):
        return f"{len(self.values)} values"

    @property
    def history(self):
        return self.values

    def to_dict(self):
        return {"kind": "Mine", "version": 1, "values": list(self.values)}

    @classmethod
    def _from_state(cls, state):
        new = cls()
        new.values = state["values"]
        return new


class Slotted(Mine):
    __slots__ = ("extra",)


def test_criteria_of_users():
    mine = Mine()
    assert mine.extend([1.0, 2.0]) is None
    both = mine | FixedBudget(5)
    both.push(3.0)
    assert (both.stopped_at, str(both.verdict)) == (3, "stop after 3 bounds: 3 values")
    assert vars(mine) == {"values": [1.0, 2.0, 3.0]}
    for new in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), mine.copy()):
        assert vars(new) == vars(mine)
        new.push(4.0)
        assert len(mine.values) == 3
    new = pickle.loads(pickle.dumps(both))
    new.push(4.0)
    assert (len(new.history[0]), len(both.history[0])) == (4, 3)
    slotted = Slotted()
    slotted.extra = 5
    again = pickle.loads(pickle.dumps(slotted))
    assert (again.extra, again.values) == (5, [])
    assert (again & FixedBudget(1)).push(1.0) is False
