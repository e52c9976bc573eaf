"""Criteria in learn and simulate: compiled, asked in Python, alone; horizons, and errors on the way."""

import copy
import math
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
)
from fastal.criteria import MaxVariance
from fastal.models import LaplaceClassifier
from fastal.runs import movement_left
from fastal.stopping import Measured

RNG = np.random.default_rng(3)
X = RNG.uniform(-5, 15, (300, 1))
Y = np.exp(-((X[:, 0] - 2) ** 2) / 2) + 0.05 * RNG.standard_normal(300)
GP = GaussianProcess(1.5, 0.0025)

RULES = [
    MovementBelow(0.1),
    MovementBelow(0.1) | FixedBudget(30),
    MovementBelow(0.3) & MinLabels(50),
    (MovementBelow(0.1) | Stopper()) & MinLabels(20),
    MovementBelow(0.1, horizon=400),
    Stopper(0.05, fall=False),
    Stopper() | FixedBudget(25),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_learn_is_one_compiled_call(rule, monkeypatch):
    pool, labels = X[:100], Y[:100]
    asked = []
    monkeypatch.setattr(ActiveLearner, "ask", lambda self: asked.append(1))
    run = learn(pool, labels, gp=GP, criterion=rule, seed=1)
    assert not asked
    monkeypatch.undo()
    slow = learn(pool, lambda i, x: labels[i], gp=GP, criterion=rule, seed=1)
    assert np.array_equal(run.indices, slow.indices)
    assert np.array_equal(run.bounds, slow.bounds)
    assert run.stopped_at == slow.stopped_at
    assert str(run.verdict) == str(slow.verdict)
    # and as the criterion alone decides about the bounds of the whole pool
    whole = learn(pool, labels, gp=GP, criterion=FixedBudget(10**6), seed=1)
    alone = rule.copy()
    alone.set_horizon(99)
    assert run.criterion.stopped_at == alone.extend(whole.bounds)
    assert np.array_equal(run.left, movement_left(run.bounds, 99), equal_nan=True)


def test_who_fills_the_horizon_in():
    def horizon(criterion, **more):
        run = learn(X[:60], Y[:60], gp=GP, criterion=criterion, seed=0, **more)
        still = getattr(run.criterion, "members", [run.criterion])[0]
        return still.verdict.horizon

    assert horizon(MovementBelow()) == 59
    assert horizon(MovementBelow(), initial=5) == 55
    assert horizon(MovementBelow(), max_labels=40) == 39
    assert horizon(MovementBelow(horizon=1000)) == 1000
    assert horizon(MovementBelow() | FixedBudget(20)) == 20
    assert horizon(MovementBelow() & MinLabels(20)) == 59
    # alone, a budget beside it says how many bounds there can be
    alone = MovementBelow() | FixedBudget(20)
    assert alone.extend(np.ones(30)) == 19  # 1 / 20 is left
    # another budget moves it, unless it is the user's own
    settings = {"gp": GP, "max_labels": 20, "seed": 0}
    short = learn(X[:60], Y[:60], criterion=MovementBelow(1e-9), **settings)
    assert short.resume(max_labels=50).verdict.n == 19  # the stop stays
    never = learn(X[:60], Y[:60], criterion=MovementBelow(1e-9, horizon=90), **settings)
    assert never.resume(max_labels=50).verdict.horizon == 90


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_simulate(rule):
    runs = 1 if config.DISABLE_JIT else 12
    settings = {"gp": GP, "criterion": rule, "n_runs": runs, "pool_size": 80}
    result = simulate(X, Y, criteria=[rule, MovementBelow(0.2)], **settings)
    alone = simulate(X, Y, test=None, **settings)
    for r in range(runs):
        rows = result.pool(r)
        run = learn(X[rows], Y[rows], gp=GP, criterion=rule, initial=[0])
        assert result.stopped_at[r] == alone.stopped_at[r] == (run.stopped_at or -1)
        assert result.criteria_stops[r, 0] == result.stopped_at[r]
        rest = np.setdiff1d(np.arange(300), rows)
        budget, test = FixedBudget(10**6), (X[rest], Y[rest])
        whole = learn(X[rows], Y[rows], gp=GP, criterion=budget, initial=[0], test=test)
        np.testing.assert_allclose(result.rmse[r], whole.rmse, rtol=1e-9)
        np.testing.assert_allclose(result.errors[r], whole.errors, rtol=1e-9)
        assert np.array_equal(result.left[r], whole.left, equal_nan=True)


def test_rmse_against_predictions():
    run = learn(X[:40], Y[:40], gp=GP, criterion=FixedBudget(39), test=(X[40:], Y[40:]), seed=0)
    model = GP.copy()
    for t, i in enumerate(run.indices):
        model.add(X[i], Y[i])
        mean, var = model.predict(X[40:], return_var=True)
        square = (Y[40:] - mean) ** 2
        assert run.rmse[t] == pytest.approx(math.sqrt(square.mean()), rel=1e-9)
        loss = (square + var).mean() / (2 * 0.0025) + 0.5 * math.log(2 * math.pi * 0.0025)
        assert run.errors[t] == pytest.approx(loss, rel=1e-9)


def test_rmse_of_a_classifier():
    x = np.linspace(-3, 3, 40)
    y, test = np.where(x > 0.3, 1, -1), slice(1, None, 2)
    settings = {"gp": LaplaceClassifier(), "test": (x[test], y[test]), "seed": 0}
    run = learn(x[::2], y[::2], criterion=MovementBelow(0.3), **settings)
    model = LaplaceClassifier()
    for t, i in enumerate(run.indices):
        model.add(x[::2][i], y[::2][i])
        there = model.predict_proba(x[test])[np.arange(20), (y[test] > 0).astype(int)]
        assert run.rmse[t] == pytest.approx(math.sqrt(((1 - there) ** 2).mean()), rel=1e-9)
    assert np.array_equal(run.left, movement_left(run.bounds, 19), equal_nan=True)
    assert run.stopped


def test_random_selection_in_simulate():
    settings = {"gp": GP, "acquisition": "random", "criterion": FixedBudget(99)}
    result = simulate(X, Y, n_runs=4, pool_size=30, **settings)
    for r in range(4):
        rows, model = result.pool(r), GP.copy()
        bounds = model.add_batch(X[rows], Y[rows])[1:]
        np.testing.assert_allclose(result.bounds[r], bounds, rtol=1e-9)
    with pytest.raises(ValueError, match="`acquisition` must be one of 'max_variance', 'random', "):
        simulate(X, Y, gp=GP, acquisition="x")


def test_one_kind_of_verdict(loop):
    x, y, noise = loop
    criteria = [
        Stopper(), MovementBelow(0.2), FixedBudget(20), MinLabels(20), MaxVariance(0.01),
        Stopper() | MovementBelow(0.2), MovementBelow(0.2) & MinLabels(10),
    ]  # fmt: skip
    for criterion in criteria:
        run = learn(x, y, gp=GaussianProcess(1.0, noise), criterion=criterion, seed=0)
        verdict = run.verdict
        assert isinstance(verdict.stop, bool | None)
        assert isinstance(verdict.level, float)
        assert isinstance(verdict.left, float)
        assert verdict.reason in str(verdict)
        assert pickle.loads(pickle.dumps(verdict)) == verdict


class LongestScale(Measured):
    """Looks at fits: stops when the length scale is above a limit."""

    at = "fits"

    def __init__(self, threshold=1e9):
        super().__init__(threshold=threshold)

    def measure(self, campaign):
        return float(np.max(campaign.prior.lengthscale))

    def _passes(self, value):
        return value > self.threshold


def test_a_measure_at_fits():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 5, (80, 2))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.standard_normal(80)
    run = learn(X, y, criterion=LongestScale(), max_labels=40, seed=0)
    fits = [fit.n_labels for fit in run.refits]
    # bounds count after the initial labels; the first fit comes before there is any
    assert (run.criterion.times + run.n_initial).tolist() == [n for n in fits if n > run.n_initial]
    limit = run.criterion.history[3] - 1e-12
    first = int(np.argmax(run.criterion.history > limit))
    again = learn(X, y, criterion=LongestScale(limit) | FixedBudget(39), max_labels=40, seed=0)
    assert again.n_labels == fits[-len(run.criterion.times) :][first]
    learner = ActiveLearner(X, criterion=LongestScale(limit), seed=0)
    while not learner.finished:
        rows = learner.ask(3)
        learner.tell(y[rows])
        learner = copy.copy(learner)
    assert learner.n_labels in [fit.n_labels for fit in learner.refits]
