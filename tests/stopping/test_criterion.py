"""A criterion of the user's own, restored ones, states of before, what is said, and what is imported."""

import copy
import json
import os
import pickle
import re
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
    MovementBelow,
    Stopper,
    _state,
    learn,
    simulate,
)
from fastal.criteria import CrossValidation, MaxVariance

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, 60)
Y = np.sin(X) + 0.05 * rng.standard_normal(60)
GP = GaussianProcess(1.0, 0.0025)


class Quiet(Criterion):
    """Stops when three bounds in a row are below a level."""

    def __init__(self, level=0.5, *, n=3):
        super().__init__(level=level, n=n)

    def says_stop(self, bounds):
        return len(bounds) >= self.n and max(bounds[-self.n :]) < self.level


def first_quiet(bounds, level):
    low = np.array(bounds) < level
    return next((n for n in range(3, len(low) + 1) if low[n - 3 : n].all()), None)


def test_a_criterion_of_ones_own_in_learn():
    whole = learn(X, Y, gp=GP, criterion=FixedBudget(59), seed=1)
    at = first_quiet(whole.bounds, 0.5)
    run = learn(X, Y, gp=GP, criterion=Quiet(0.5), seed=1)
    assert (run.stopped, len(run.bounds)) == (True, at)
    assert str(run.verdict) == f"stop after {at} bounds: the rule says stop"
    both = learn(X, Y, gp=GP, criterion=Quiet(0.5) & MinLabels(40), seed=1)
    assert len(both.bounds) == max(at, 40)
    either = learn(X, Y, gp=GP, criterion=Quiet(0.5) | FixedBudget(5), seed=1)
    assert len(either.bounds) == 5


def test_a_criterion_of_ones_own_in_a_learner():
    at = first_quiet(learn(X, Y, gp=GP, criterion=FixedBudget(59), seed=1).bounds, 0.5)
    learner = ActiveLearner(X, gp=GP, criterion=Quiet(0.5) | MovementBelow(1e-9), seed=1)
    while not learner.finished:
        learner.tell(Y[learner.ask()])
        how = learner.n_labels % 3
        if how == 1:
            learner = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
        elif how == 2:
            learner = pickle.loads(pickle.dumps(learner))
    assert len(learner.bounds) == learner.criterion.stopped_at == at
    fitted = ActiveLearner(X, criterion=Quiet(1e-3), seed=1)  # its own fits: two must agree
    while not fitted.finished:
        fitted.tell(Y[fitted.ask()])
    assert fitted.criterion.stopped_at is None or fitted.refits


def test_a_criterion_of_ones_own_in_simulate():
    settings = {"gp": GP, "n_runs": 6, "pool_size": 40}
    result = simulate(X, Y, criterion=Quiet(0.5), criteria=[Quiet(5.0)], **settings)
    for bounds, labels, early in zip(
        result.bounds, result.n_labels, result.criteria_stops[:, 0], strict=True
    ):
        bounds = bounds[~np.isnan(bounds)]
        at = first_quiet(bounds, 0.5)
        assert labels == (40 if at is None else at + 1)
        assert early == first_quiet(bounds, 5.0) + 1


def test_a_criterion_of_ones_own_is_kept():
    rule = Quiet(1.0)
    rule.extend([0.5, 0.5])
    keep = (
        lambda one: one.copy(),
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: Criterion.from_dict(json.loads(json.dumps(one.to_dict()))),
    )
    for one in (rule, rule.copy() | FixedBudget(9), (Quiet(1.0) & MinLabels(3)) | Stopper()):
        for how in keep:
            new = how(one)
            assert (type(new), repr(new)) == (type(one), repr(one))
            before = len(one)
            new.extend([0.5] * (3 - before))
            assert (new.stopped_at, len(one), one.stopped) == (3, before, False)
    assert (repr(Quiet(np.float64(2.0), n=4)), repr(Quiet())) == (
        "Quiet(level=2.0, n=4)",
        "Quiet()",
    )
    other = rule.replace(n=2)
    assert (other.level, other.n, len(other)) == (1.0, 2, 0)
    with pytest.raises(AttributeError, match=r"`level` cannot be set: `replace\(level=...\)`"):
        rule.level = 3.0
    assert str(rule.verdict) == "go on: the rule says go on"


class Bare(Criterion):
    def __init__(self):
        super().__init__()


class Fails(Criterion):
    def __init__(self, says=0):
        super().__init__(says=says)

    def says_stop(self, bounds):
        if len(bounds) == 3:
            raise KeyError("third")
        return len(bounds) == self.says


def test_an_error_in_a_criterion_of_ones_own_changes_nothing():
    with pytest.raises(NotImplementedError, match=r"a Bare must define says_stop\(bounds\)"):
        Bare().push(1.0)
    for rule in (Fails(), Fails() | FixedBudget(9), MinLabels(2) & Fails()):
        rule.push(1.0)
        before = rule.to_dict()
        for call in (lambda one: one.extend([2.0, 3.0]), lambda one: one.extend([1, 2, 3, 4])):
            with pytest.raises(KeyError, match="third"):
                call(rule)
            assert rule.to_dict() == before
    for rule in (Fails(2), Fails(2) | FixedBudget(9), MinLabels(1) & Fails(2)):
        rule.after_fit([1.0, 2.0])
        before = rule.to_dict()
        with pytest.raises(KeyError, match="third"):
            rule.after_fit([1.0, 2.0, 3.0], pool=range(9))
        assert rule.to_dict() == before

    class Writes(Bare):
        def says_stop(self, bounds):
            bounds[0] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        Writes().push(1.0)


def fresh(code, **files):
    """Run code in a process that has imported nothing of fastal yet."""
    root = str(Path(fastal.__file__).parents[1])
    path = os.pathsep.join([root, *files.values(), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pickle_brings_classes_of_ones_own_along(tmp_path):
    # by its name alone a class was unknown where its module had not been imported yet
    (tmp_path / "of_ones_own.py").write_text(
        "from fastal import Criterion\n"
        "class ThirdOfOnesOwn(Criterion):\n"
        "    def __init__(self, n=3):\n"
        "        super().__init__(n=n)\n"
        "    def says_stop(self, bounds):\n"
        "        return len(bounds) >= self.n\n"
    )
    said = fresh(
        "import pickle\nfrom of_ones_own import ThirdOfOnesOwn\nfrom fastal import FixedBudget, MinLabels\n"
        "rule = (ThirdOfOnesOwn(2) & MinLabels(3)) | FixedBudget(9)\nrule.extend([1.0, 2.0])\n"
        "print(pickle.dumps(rule).hex())",
        here=str(tmp_path),
    )
    again = fresh(
        f"import pickle\nrule = pickle.loads(bytes.fromhex('{said.strip()}'))\n"
        "print(rule.push(1.0), rule.stopped_at, rule)",
        here=str(tmp_path),
    )
    assert again == "True 3 ((ThirdOfOnesOwn(n=2) & MinLabels(n=3)) | FixedBudget(n=9))\n"
    state = {**Quiet().to_dict(), "kind": "ThirdOfOnesOwn"}
    with pytest.raises(
        ValueError, match=r"got kind 'ThirdOfOnesOwn' .a class of your own must be imported"
    ):
        Criterion.from_dict(state)


def test_a_saved_criterion_loads_in_a_fresh_process():
    # only kinds whose module somebody had imported did
    rule = (Stopper() | FixedBudget(9)) & MinLabels(3)
    rule.extend([3.0, 1.0, 2.0])
    states = json.dumps([one.to_dict() for one in (rule, MaxVariance(0.2), CrossValidation(0.2))])
    said = fresh(
        "import json\nfrom fastal.stopping.criterion import Criterion\n"
        f"print([repr(Criterion.from_dict(state)) for state in json.loads({states!r})])"
    )
    assert "FixedBudget(n=9)" in said
    assert "CrossValidation" in said


def test_every_kind_has_a_home():
    ours = {
        name
        for name, kind in Criterion._kinds.items()
        if kind.__module__.startswith("fastal.") and not kind.__abstractmethods__
        if not name.startswith("_")
    }
    assert ours - {"Measured"} <= set(_state.HOMES)
    for kind, home in _state.HOMES.items():
        assert hasattr(__import__(home, fromlist=[kind]), kind)


def test_a_combination_needs_no_numba_and_no_scipy():
    said = fresh(
        "import sys\nfrom fastal import FixedBudget, Stopper\n"
        "rule = Stopper() | FixedBudget(3)\nrule.push(0.5)\nrule.verdict\n"
        "print([name for name in ('numba', 'scipy') if name in sys.modules])"
    )
    assert said == "[]\n"


# What 0.1.0 and 0.2.0 wrote of Stopper(0.01), StillToCome(0.1, horizon=50) and budgets.
OF_0_1 = {
    "kind": "Stopper", "version": 1, "alpha": 0.01, "method": "auto", "alternative": "less",
    "sequential": False, "horizon": None, "window": None, "min_bounds": None, "patience": 2,
    "noise": None, "gp": None, "bounds": [1.0, 3.0, 2.0],
}  # fmt: skip
OLD = [
    OF_0_1,
    OF_0_1 | {"version": 2, "fall": True},
    {
        "kind": "StillToCome", "version": 1, "share": 0.1, "horizon": 50, "window": None,
        "noise": None, "gp": None, "bounds": [1.0, 2.0], "expected": 0, "stopped_at": None,
        "left": None, "level": None, "evidence": None,
    },
    {"kind": "FixedBudget", "version": 1, "n": 9, "seen": 2},
    {"kind": "MinLabels", "version": 1, "n": 9, "seen": 2},
    {"kind": "AnyOf", "version": 1, "members": [OF_0_1, {"kind": "FixedBudget", "version": 1}]},
    {"kind": "MaxVariance", "version": 1, "threshold": 0.1, "history": [0.3]},
    {"kind": "StabilizingPredictions", "version": 1, "window": 3, "history": []},
]  # fmt: skip


@pytest.mark.parametrize("state", OLD, ids=lambda state: f"{state['kind']}-{state['version']}")
def test_states_of_before_are_refused_by_name(state):
    said = f"`state` is a {state['kind']} of fastal 0.1 or 0.2: make a new criterion, and give"
    with pytest.raises(ValueError, match=re.escape(said)):
        Criterion.from_dict(state)


# Sentences --------------------------------------------------------------------------------------

SAID = [
    Stopper(0.05), Stopper(), Stopper(0.2, fall=False), Stopper(0.01, sequential=True, horizon=30),
    MovementBelow(0.3), MovementBelow(1e-9), MovementBelow(0.5, horizon=60), Quiet(2.0),
    FixedBudget(30), MinLabels(50),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["falling", "rising", "still", "noise"])
def test_no_part_of_a_verdict_has_more_than_30_words(kind):
    n = np.arange(70.0)
    bounds = {
        "falling": 5 * np.exp(-n / 8), "rising": n, "still": np.r_[np.ones(5), np.zeros(65)],
        "noise": np.random.default_rng(1).random(70),
    }[kind]  # fmt: skip
    rules = [*SAID, *(a | b for a in SAID for b in SAID), *(a & b for a in SAID for b in SAID)]
    for rule in (one.copy() for one in rules):
        rule.set_horizon(200)
        for stretch in (bounds[:8], bounds[8:20], bounds[20:]):
            rule.extend(stretch)
            verdict = rule.verdict
            for text in (str(verdict), *verdict.warnings):
                for part in re.split(r"[;.](?:\s|$)", text):
                    words = [word for word in part.split() if re.search(r"\w", word)]
                    assert len(words) <= 30, part
