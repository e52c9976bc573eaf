"""MovementBelow against exact fractions after every bound, what it says, and in campaigns."""

import math
import pickle

import numpy as np
import pytest
import twins
from hypothesis import given
from hypothesis import strategies as st
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
from fastal.criteria import MaxVariance
from fastal.models import LaplaceClassifier
from fastal.runs import movement_left

NAN = math.nan


def same(a, b, tolerance=1e-12):
    """Equal to the given relative error, NaN in the same places."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert np.array_equal(np.isnan(a), np.isnan(b))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=0)


def decay(n, seed=0, rate=0.05):
    rng = np.random.default_rng(seed)
    return np.exp(-rate * np.arange(n)) * rng.gamma(2.0, 1.0, n)


STREAMS = {
    "falling": decay(120),
    "ties": np.repeat([3.0, 1.0, 0.25], 20),
    "all equal": np.full(50, 0.7),
    "zeros": np.zeros(40),
    "zeros, then movement": np.r_[np.zeros(15), decay(30)],
    "movement, then zeros": np.r_[decay(15), np.zeros(30)],
    "one spike": np.r_[np.full(20, 0.1), 50.0, np.full(60, 0.1)],
    "a huge first bound": np.r_[1e300, decay(60)],
    "huge, then tiny": np.r_[1e300, np.full(40, 1e-300)],
    "a huge bound in the middle": np.r_[decay(30), 1.7e308, decay(30)],
    "a rise before the fall": np.r_[np.linspace(0.1, 2, 25), decay(60)],
    "the largest doubles": np.full(40, 1.7e308),
    "1e305 twelve times": np.full(12, 1e305),
    "subnormal": np.full(40, 5e-324),
    "subnormal, falling": 1e-310 * decay(60),
}


@pytest.mark.parametrize("name", STREAMS)
def test_against_the_slow_twin_after_every_push(name):
    bounds = STREAMS[name]
    horizon = len(bounds) + 17
    criterion = MovementBelow(0.05, horizon=horizon)
    left, level = twins.movement_left(bounds, horizon), twins.levels(bounds)
    at, lefts = twins.still_stop(bounds, 0.05, horizon), []
    for t, r in enumerate(bounds, 1):
        stopped = criterion.push(r)
        lefts.append(criterion.left)
        same(criterion.left, left[t - 1])
        # in subnormal numbers a mean has no more digits than it has
        same(criterion.level, level[t - 1], 1e-12 if bounds.max() > 1e-300 else 0.2)
        assert stopped == (at is not None and t >= at)
        assert criterion.stopped_at == (at if stopped else None)
        assert math.isnan(criterion.verdict.left) == math.isnan(left[(at if stopped else t) - 1])
    # one by one, at once, and the pure function: to the last digit
    again = MovementBelow(0.05, horizon=horizon)
    assert again.extend(bounds) == at
    assert np.array_equal(again.left, lefts[-1], equal_nan=True)
    rows = movement_left(np.stack([bounds, bounds[::-1]]), horizon)
    assert np.array_equal(rows[0], lefts, equal_nan=True)
    assert np.array_equal(again.trace().left, lefts, equal_nan=True)
    assert stopping_time(bounds, criterion=again) == at


@given(
    st.lists(st.floats(0, 1.7e308) | st.floats(0, 5) | st.just(0.0), max_size=70),
    st.integers(1, 120),
    st.floats(1e-9, 1 - 1e-9),
)
def test_any_bounds(bounds, horizon, share):
    criterion = MovementBelow(share, horizon=horizon)
    left = twins.movement_left(bounds, horizon)
    for r, exact in zip(bounds, left, strict=True):
        criterion.push(r)
        now = criterion.left
        assert math.isnan(now) == math.isnan(exact)
        assert math.isnan(now) or abs(now - exact) <= 1e-12 * exact + 1e-300
    exact = twins.still_stop(bounds, share, horizon)
    if criterion.stopped_at != exact:  # a share that is met to the last digit
        nearest = min(abs(v - share) for v in left if not math.isnan(v))
        assert nearest <= 1e-12 * share


def test_a_long_stream_after_one_huge_bound():
    bounds = decay(5000, rate=0.001)
    bounds[0] = 1e290
    left = movement_left(bounds, 9000)
    total, last = math.fsum(bounds[1:]), math.fsum(bounds[-20:]) / 20
    assert abs(left[-1] - last * 4000 / (1e290 + total)) <= 1e-12 * left[-1]


# What is special ---------------------------------------------------------------------------------


def test_the_cases_in_their_order():
    # the horizon is reached: a stop, whatever t and the bounds
    short = MovementBelow(horizon=3)
    assert [short.push(5.0) for _ in range(4)] == [False, False, True, True]
    assert (short.stopped_at, short.left, short.verdict.left) == (3, 0.0, 0.0)
    assert str(short.verdict) == "stop after 3 bounds: the horizon of 3 bounds is reached"
    # nothing has moved: all is left
    still = MovementBelow(horizon=50)
    assert still.extend(np.zeros(20)) is None
    assert (still.left, str(still.verdict)) == (1.0, "go on: nothing has moved the model yet")
    assert math.isnan(still.level)
    # after some movement none at all: nothing is left, never "inf times less"
    over = MovementBelow(horizon=500)
    assert over.extend(np.r_[1.0, np.zeros(10)]) == 11
    assert over.verdict.left == 0
    said = "stop after 11 bounds: the last 10 labels no longer moved the model at all"
    assert str(over.verdict) == said
    # no stop before 11 bounds, and left from 10 on
    early = MovementBelow(0.9, horizon=30)
    early.extend(np.full(9, 2.0))
    assert math.isnan(early.left)
    assert str(early.verdict) == "too early: no stop is possible before 11 bounds"
    early.push(2.0)
    assert early.left == pytest.approx(2 / 3, rel=1e-15)
    assert early.verdict.stop is None
    assert early.push(2.0)
    near = MovementBelow(horizon=7)
    near.push(1.0)
    assert near.verdict.reason == "no stop is possible before the end, 7 bounds"


def test_the_sentence():
    criterion = MovementBelow(0.05, horizon=395)
    criterion.extend(2.0 / np.arange(1, 396) ** 1.6)
    verdict = criterion.verdict
    assert str(verdict).startswith(
        f"stop after {verdict.n} bounds: at most {100 * verdict.left:.2g} % of what 395 bounds can "
        "move the model is still to come, if labels go on as the last "
    )
    assert "(5 % asked)" in verdict.reason
    assert "times less than at the peak" in verdict.reason
    assert verdict.low < verdict.left < verdict.high
    assert (verdict.share, verdict.horizon, verdict.warnings) == (0.05, 395, ())
    more = MovementBelow(0.05, horizon=395)
    more.extend(decay(20))
    assert str(more.verdict).startswith("go on: ")
    for name in ("p_value", "n_runs", "median"):
        with pytest.raises(AttributeError):
            getattr(more, name)
    small = MovementBelow(1e-4, horizon=500)
    small.extend(np.r_[np.full(30, 5.0), np.full(40, 1e-7)])
    assert "at most less" not in small.verdict.reason
    assert "(0.01 % asked)" in small.verdict.reason
    assert "more than 10,000 times less" in small.verdict.reason


def test_the_horizon_moves_only_where_it_was_filled_in():
    own = MovementBelow(horizon=100)
    own.set_horizon(50)
    assert own.verdict.horizon == 100
    filled = MovementBelow()
    filled.set_horizon(100)
    assert filled.horizon is None
    bounds = decay(60)
    filled.extend(bounds)
    before = filled.left
    filled.set_horizon(61)  # judged at the next bound
    assert not filled.stopped
    assert filled.left < before
    assert filled.push(bounds[-1])
    filled.set_horizon(10**6)  # a stop stays
    assert (filled.stopped_at, filled.verdict.left) == (61, 0.0)
    filled.reset()
    filled.set_horizon(0)  # nobody knows; with bounds it would be the end
    with pytest.raises(ValueError, match="`horizon` must be given"):
        filled.push(1.0)


def test_verdicts_of_combinations():
    bounds = np.r_[np.full(12, 5.0), np.full(12, 1.0)]
    paper = Stopper()
    paper.extend(bounds)
    assert str(paper.verdict).endswith("; but the bounds still stand at 60 % of their peak")
    either = Stopper() | FixedBudget(200)
    either.extend(bounds)
    assert either.verdict.warnings[0] == "up to 89 % of the movement may still be to come"
    assert "; but up to 89 % of the movement" in str(either.verdict)
    waiting = Stopper() & MinLabels(100)
    assert waiting.verdict.n == 0
    waiting.extend(bounds)
    assert (waiting.verdict.stop, waiting.verdict.n) == (False, 24)
    # what is left is what was left at the stop of the whole
    both = MovementBelow(0.5, horizon=40) & MinLabels(22)
    both.extend(bounds)
    at = both.members[0].stopped_at
    assert at < 22 == both.stopped_at
    same(both.verdict.left, twins.movement_left(bounds[:22], 40)[-1])
    assert f"(since {at} bounds); and the least number of 22 bounds is" in both.verdict.reason
    alone = MovementBelow(0.5, horizon=40) | FixedBudget(100)
    alone.extend(bounds)
    same(alone.verdict.left, twins.movement_left(bounds[:at], 40)[-1])


def test_left_and_level_of_a_stopper():
    bounds = np.r_[np.full(12, 5.0), np.full(12, 1.0)]
    told = Stopper()
    told.extend(bounds[:3])
    assert math.isnan(told.left)
    told.reset().set_horizon(200)
    told.extend(bounds)
    same(told.left, twins.movement_left(bounds, 200)[-1])
    same(told.level, twins.levels(bounds)[-1])
    assert told.verdict.warnings[0] == "up to 89 % of the movement may still be to come"
    negative = Stopper()
    negative.set_horizon(200)
    negative.extend(np.r_[-1.0, bounds])
    assert math.isnan(negative.left)
    assert math.isnan(negative.level)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: MovementBelow(0), ValueError, r"`share` must be in \(0, 1\), got 0"),
        (lambda: MovementBelow(NAN), ValueError, r"`share` must be in \(0, 1\), got nan"),
        (lambda: MovementBelow("x"), TypeError, "`share` must be a real number, got 'x'"),
        (lambda: MovementBelow(horizon=0), ValueError, "`horizon` must be at least 1, got 0"),
        (lambda: MovementBelow(horizon=2.5), TypeError, "`horizon` must be an integer, got 2.5"),
        (lambda: MovementBelow(horizon=True), TypeError, "`horizon` must be an integer, got True"),
        (lambda: FixedBudget(0), ValueError, "`n` must be at least 1, got 0"),
        (lambda: MinLabels(2.5), TypeError, "`n` must be an integer, got 2.5"),
        (lambda: movement_left([1.0, -1.0], 5), ValueError, "`bounds` must not .* -1.0 at index 1"),
        (lambda: movement_left([1.0, NAN], 5), ValueError, "`bounds` must be finite, got nan"),
        (lambda: movement_left([1.0], 0), ValueError, "`horizon` must be at least 1, got 0"),
        (lambda: movement_left(np.ones((2, 2, 2)), 5), ValueError, "`bounds` must have one or two"),
    ],
)
def test_bad_settings(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "rule",
    [MovementBelow(horizon=90), MovementBelow() | FixedBudget(90), Stopper() | MovementBelow(horizon=90)],
    ids=repr,
)  # fmt: skip
def test_bad_bounds_leave_it_as_it_was(rule):
    rule = rule.copy()
    rule.extend(decay(30))
    before = rule.to_dict()
    for bad, message in ((-1.0, "not be negative, got -1.0"), (NAN, "be finite, got nan")):
        with pytest.raises(ValueError, match=f"`r` must {message}"):
            rule.push(bad)
        with pytest.raises(ValueError, match=f"`values` must {message} at index 1"):
            rule.extend([0.1, bad, 0.2])
        with pytest.raises(ValueError, match=f"`bounds_or_model` must {message} at index 1"):
            rule.after_fit([0.1, bad], pool=range(60))
    assert rule.to_dict() == before
    rule.push(-1e-13)  # the rounding of our own models is no movement
    nobody = MovementBelow()
    for call in (lambda: nobody.push(1.0), lambda: nobody.extend([1.0])):
        with pytest.raises(ValueError, match="`horizon` must be given, got None: how many labels"):
            call()
    assert len(nobody) == 0


# In campaigns ------------------------------------------------------------------------------------

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
