"""MovementBelow against exact fractions after every bound, and everything it shares with Stopper."""

import json
import math
import pickle
import warnings

import numpy as np
import pytest
import twins
from hypothesis import given
from hypothesis import strategies as st
from numba import config

import fastal
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
    stopping_time,
)
from fastal.criteria import MaxVariance
from fastal.models import LaplaceClassifier
from fastal.runs import movement_left
from fastal.stopping import stop_warnings

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


@pytest.mark.parametrize("window", [None, 2, 3, 7, 10, 33])
@pytest.mark.parametrize("name", STREAMS)
def test_against_the_slow_twin_after_every_push(name, window):
    bounds = STREAMS[name]
    horizon = len(bounds) + 17
    if window is not None:
        horizon = max(horizon, window + 1)
    criterion = MovementBelow(0.05, horizon=horizon, window=window)
    left = twins.movement_left(bounds, horizon, window=window)
    level = twins.levels(bounds, window=window)
    at = twins.still_stop(bounds, 0.05, horizon, window=window)
    lefts = []
    for t, r in enumerate(bounds, 1):
        stopped = criterion.push(r)
        lefts.append(criterion.left)
        same(criterion.left, left[t - 1])
        # in subnormal numbers a mean has no more digits than it has
        same(criterion.level, level[t - 1], 1e-12 if bounds.max() > 1e-300 else 0.2)
        assert stopped == (at is not None and t >= at)
        assert criterion.stopped_at == (at if stopped else None)
        assert str(criterion.verdict)
        assert math.isnan(criterion.verdict.left) == math.isnan(left[(at if stopped else t) - 1])
    # one by one, at once, and the pure function: to the last digit
    again = MovementBelow(0.05, horizon=horizon, window=window)
    assert again.extend(bounds) == at
    assert np.array_equal(again.left, lefts[-1], equal_nan=True)
    assert np.array_equal(movement_left(bounds, horizon, window=window), lefts, equal_nan=True)
    rows = movement_left(np.stack([bounds, bounds[::-1]]), horizon, window=window)
    assert np.array_equal(rows[0], lefts, equal_nan=True)
    assert stopping_time(bounds, criterion=again) == at


@given(
    st.lists(st.floats(0, 1.7e308) | st.floats(0, 5) | st.just(0.0), max_size=70),
    st.integers(1, 120),
    st.none() | st.integers(2, 30),
    st.floats(1e-9, 1 - 1e-9),
)
def test_any_bounds(bounds, horizon, window, share):
    if window is not None and window >= horizon:
        horizon = window + 1
    criterion = MovementBelow(share, horizon=horizon, window=window)
    left = twins.movement_left(bounds, horizon, window=window)
    for r, exact in zip(bounds, left, strict=True):
        criterion.push(r)
        now = criterion.left
        assert math.isnan(now) == math.isnan(exact)
        assert math.isnan(now) or abs(now - exact) <= 1e-12 * exact + 1e-300
    exact = twins.still_stop(bounds, share, horizon, window=window)
    if criterion.stopped_at != exact:  # a share that is met to the last digit
        nearest = min(abs(v - share) for v in left if not math.isnan(v))
        assert nearest <= 1e-12 * share


def test_a_long_window_and_a_long_stream():
    bounds = decay(5000, rate=0.001)
    bounds[0] = 1e290
    left = movement_left(bounds, 9000, window=700)
    exact = twins.movement_left(bounds[:1401], 9000, window=700)
    for t in (699, 700, 1399, 1400, 1401):
        same(left[t - 1], exact[t - 1])
    total, last = math.fsum(bounds[1:5000]), math.fsum(bounds[4300:5000]) / 700
    assert left[-1] == 0 or abs(left[-1] - last * 4000 / (1e290 + total)) <= 1e-12 * left[-1]


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
    assert (
        str(over.verdict)
        == "stop after 11 bounds: the last 10 labels no longer moved the model at all"
    )
    # no stop before 11 bounds, and left from 10 on
    early = MovementBelow(0.9, horizon=30)
    early.extend(np.full(9, 2.0))
    assert math.isnan(early.left)
    assert str(early.verdict) == "too early: no stop is possible before 11 bounds"
    early.push(2.0)
    assert early.left == pytest.approx(2 / 3, rel=1e-15)
    assert early.verdict.stop is None
    assert early.push(2.0)


def test_the_sentence():
    criterion = MovementBelow(0.05, horizon=395)
    criterion.extend(2.0 / np.arange(1, 396) ** 1.6)
    verdict = criterion.verdict
    assert str(verdict).startswith(
        f"stop after {verdict.n} bounds: at most {100 * verdict.left:.2g} % of what 395 bounds can move "
        "the model is still to come, if labels go on as the last "
    )
    assert "(5 % asked)" in verdict.reason
    assert "times less than at the peak" in verdict.reason
    assert verdict.low < verdict.left < verdict.high
    assert (verdict.share, verdict.horizon, verdict.warnings) == (0.05, 395, ())
    more = MovementBelow(0.05, horizon=395)
    more.extend(decay(20))
    assert str(more.verdict).startswith("go on: ")
    assert " % of what 395 bounds can move the model is still to come" in str(more.verdict)
    for name in ("p_value", "n_runs", "median", "labels"):
        with pytest.raises(AttributeError):
            getattr(more, name)


def test_a_filled_horizon_that_no_window_fits():
    criterion = MovementBelow(window=40)
    criterion.set_horizon(30)
    criterion.extend(np.ones(29))
    assert criterion.verdict.stop is None
    assert criterion.verdict.reason == "no stop is possible before the end, 30 bounds"
    assert criterion.push(1.0)


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
    assert filled.stopped_at == 61
    assert filled.verdict.left == 0.0


def test_a_stop_is_told_as_it_was():
    criterion = MovementBelow(0.3)
    criterion.set_horizon(200)
    assert criterion.extend(decay(80)) is not None
    said = str(criterion.verdict)
    criterion.set_horizon(10**6)
    assert str(criterion.verdict) == said
    for twin in (
        criterion.copy(),
        pickle.loads(pickle.dumps(criterion)),
        MovementBelow.from_dict(json.loads(json.dumps(criterion.to_dict()))),
    ):
        assert str(twin.verdict) == said
    with pytest.raises(ValueError, match="no stop is possible after 3 bounds"):
        MovementBelow.from_dict(twin.to_dict() | {"stopped_at": 3})


def test_small_shares_in_words():
    criterion = MovementBelow(1e-4, horizon=500)
    criterion.extend(np.r_[np.full(30, 5.0), np.full(40, 1e-7)])
    assert "at most 0.000" in criterion.verdict.reason or "less than" in criterion.verdict.reason
    assert "at most less" not in criterion.verdict.reason
    assert "(0.01 % asked)" in criterion.verdict.reason
    assert "more than 10,000 times less" in criterion.verdict.reason


def test_verdicts_of_combinations():
    bounds = np.r_[np.full(12, 5.0), np.full(12, 1.0)]
    paper = Stopper()
    paper.extend(bounds)
    assert str(paper.verdict).endswith("; but the bounds still stand at 60 % of their peak")
    either = Stopper() | FixedBudget(200)
    either.extend(bounds)
    assert either.verdict.warnings[0] == "up to 89 % of the movement may still be to come"
    assert "; but up to 89 % of the movement" in str(either.verdict)
    assert (Stopper() & MinLabels(12)).verdict.n == 0
    waiting = Stopper() & MinLabels(100)
    waiting.extend(bounds)
    assert (waiting.verdict.stop, waiting.verdict.n) == (False, 24)
    # what is left is what was left at the stop of the whole
    still = MovementBelow(0.5, horizon=40)
    both = still.copy() & MinLabels(22)
    both.extend(bounds)
    at = both.members[0].stopped_at
    assert at < 22 == both.stopped_at
    same(both.verdict.left, twins.movement_left(bounds[:22], 40)[-1])
    assert f"(since {at} bounds)" in both.verdict.reason
    alone = MovementBelow(0.5, horizon=40) | FixedBudget(100)
    alone.extend(bounds)
    same(alone.verdict.left, twins.movement_left(bounds[:at], 40)[-1])


def test_extend_of_a_combination_is_all_or_nothing():
    for rule in (Stopper() | MovementBelow(horizon=40), MovementBelow(horizon=9) & MinLabels(5)):
        with pytest.raises(ValueError, match=r"`values` must not be negative, got -3.0 at index 2"):
            rule.extend([1.0, 2.0, -3.0])
        assert [len(member.history) for member in rule.members] == [0, 0]


def test_saved_copied_and_pickled_in_the_middle():
    bounds = np.r_[decay(90), np.full(30, 1e-9)]
    for window in (None, 5):
        whole = MovementBelow(0.1, window=window)
        whole.set_horizon(150)
        for t, r in enumerate(bounds):
            twins = [
                whole.copy(),
                pickle.loads(pickle.dumps(whole)),
                MovementBelow.from_dict(json.loads(json.dumps(whole.to_dict()))),
                Criterion.from_dict(whole.to_dict()),
            ]
            stopped = whole.push(r)
            for twin in twins:
                assert twin.push(r) == stopped
                assert np.array_equal(twin.left, whole.left, equal_nan=True)
                assert str(twin.verdict) == str(whole.verdict)
                assert twin.to_dict() == whole.to_dict()
            if t in (40, 100):
                whole.set_horizon(150 + t)  # saved as well


def test_restoring_never_decides_anew():
    criterion = MovementBelow(0.1)
    criterion.set_horizon(40)
    assert criterion.extend(decay(40)) is not None
    at, left = criterion.stopped_at, criterion.verdict.left
    criterion.set_horizon(10**6)
    state = criterion.to_dict()
    assert MovementBelow.from_dict(state).stopped_at == at
    assert MovementBelow.from_dict(state).verdict.left == left
    nothing = dict.fromkeys(("stopped_at", "left", "level", "evidence"))
    undecided = state | nothing | {"expected": 40}
    again = MovementBelow.from_dict(undecided)
    assert not again.stopped
    assert again.push(0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"stopped_at": 31},
            r"`state\['stopped_at'\]` must be an integer >= 1, got 31, which is above 30",
        ),
        ({"stopped_at": 0}, "must be an integer >= 1, got 0"),
        ({"left": 2.0}, r"`state\['left'\]` must be in \[0, 1\] or None, got 2.0"),
        ({"level": "x"}, r"`state\['level'\]` must be in \[0, 1\] or None, got 'x'"),
        ({"bounds": [-1.0] * 30}, "`state` is damaged: `bounds` must not be negative"),
        ({"bounds": [math.inf] * 30}, "`state` is damaged: `bounds` must be finite"),
        ({"share": 7}, r"`state` is damaged: `share` must be in \(0, 1\), got 7"),
        ({"expected": -1}, r"`state\['expected'\]` must be an integer >= 0, got -1"),
        ({"version": 99}, "`state` must have version 1, got 99"),
        ({"more": 1}, "`state` has the unknown 'more'"),
    ],
)
def test_damaged_states(change, message):
    criterion = MovementBelow(horizon=90)
    criterion.extend(decay(30))
    with pytest.raises(ValueError, match=message):
        MovementBelow.from_dict(criterion.to_dict() | change)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"share": 0}, ValueError, r"`share` must be in \(0, 1\), got 0"),
        ({"share": 1.0}, ValueError, r"`share` must be in \(0, 1\), got 1"),
        ({"share": NAN}, ValueError, r"`share` must be in \(0, 1\), got nan"),
        ({"share": "x"}, TypeError, "`share` must be a real number, got 'x'"),
        ({"window": 1}, ValueError, "`window` must be at least 2, got 1"),
        ({"horizon": 0}, ValueError, "`horizon` must be at least 1, got 0"),
        ({"horizon": 2.5}, TypeError, "`horizon` must be an integer, got 2.5"),
        ({"horizon": True}, TypeError, "`horizon` must be an integer, got True"),
        (
            {"horizon": 10, "window": 10},
            ValueError,
            r"`window` must be below `horizon` \(10\), got 10",
        ),
        ({"noise": -1.0}, ValueError, "`noise` must be positive"),
        ({"gp": 3}, TypeError, "`gp` must be a GaussianProcess, got 3"),
    ],
)
def test_bad_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        MovementBelow(**arguments)


def test_bad_bounds_leave_it_as_it_was():
    criterion = MovementBelow(horizon=90)
    criterion.extend(decay(30))
    before = criterion.to_dict()
    for bad, message in (
        (-1.0, "`r` must not be negative, got -1.0"),
        (NAN, "`r` must be finite, got nan"),
        (math.inf, "`r` must be finite, got inf"),
        (10**400, "`r` must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            criterion.push(bad)
        with pytest.raises(ValueError, match="`values` must"):
            criterion.extend([0.1, bad, 0.2])
    with pytest.raises(TypeError, match="`r` must be a real number, got 'x'"):
        criterion.push("x")
    with pytest.raises(ValueError, match="`noise` must be given"):
        criterion.update(0.0, 1.0, 1.0)
    assert criterion.to_dict() == before
    nobody = MovementBelow()
    for call in (
        lambda: nobody.push(1.0),
        lambda: nobody.extend([1.0]),
        lambda: nobody.update(0, 1, 1, 1),
    ):
        with pytest.raises(
            ValueError, match="`horizon` must be given, got None: how many labels you could"
        ):
            call()
    assert len(nobody) == 0
    # rounding of our own models is no movement
    criterion.push(-1e-13)
    assert criterion.bounds[-1] == 0.0


# The ways in -------------------------------------------------------------------------------------


def test_ways_in(loop):
    X, y, noise = loop
    gp = GaussianProcess(1.0, noise)
    bounds = gp.copy().add_batch(X, y)
    pushed = MovementBelow(0.2, horizon=60)
    pushed.extend(bounds)
    observed = MovementBelow(0.2, horizon=60, gp=gp.copy())
    updated = MovementBelow(0.2, horizon=60, noise=noise)
    model = gp.copy()
    for t in range(60):
        mean, var = model.predict(X[t : t + 1], return_var=True)
        observed.observe(X[t], y[t])
        updated.update(mean[0], var[0], y[t])
        model.add(X[t], y[t])
    np.testing.assert_allclose(observed.bounds, bounds, rtol=1e-12)
    np.testing.assert_allclose(updated.bounds, bounds, rtol=1e-7)
    assert observed.stopped_at == updated.stopped_at == pushed.stopped_at
    again = MovementBelow(0.2, horizon=60)
    assert again.recompute(X, y, gp) == pushed.stopped
    assert again.left == pytest.approx(pushed.left, rel=1e-9)


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
    MovementBelow(0.1, window=5) | FixedBudget(200),
    Stopper() | FixedBudget(25),
    FixedBudget(17),
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
    def horizon(stopper, **more):
        run = learn(X[:60], Y[:60], gp=GP, criterion=stopper, seed=0, **more)
        return run.verdict.horizon

    assert horizon(MovementBelow()) == 59
    assert horizon(MovementBelow(), initial=5) == 55
    assert horizon(MovementBelow(), max_labels=40) == 39
    assert horizon(MovementBelow(horizon=1000)) == 1000
    budget = MovementBelow() | FixedBudget(20)
    run = learn(X[:60], Y[:60], gp=GP, criterion=budget, seed=0)
    assert run.criterion.members[0].verdict.horizon == 20
    longer = learn(X[:60], Y[:60], gp=GP, criterion=MovementBelow() & MinLabels(20), seed=0)
    assert longer.criterion.members[0].verdict.horizon == 59
    # alone, a budget beside it says how many bounds there can be
    alone = MovementBelow() | FixedBudget(20)
    assert alone.extend(np.ones(30)) == 19  # 1 / 20 is left
    # another budget moves it, unless it is the user's own
    short = learn(X[:60], Y[:60], gp=GP, criterion=MovementBelow(1e-9), max_labels=20, seed=0)
    assert short.resume(max_labels=50).verdict.n == 19  # the stop stays
    never = learn(
        X[:60], Y[:60], gp=GP, criterion=MovementBelow(1e-9, horizon=90), max_labels=20, seed=0
    )
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
        whole = learn(
            X[rows],
            Y[rows],
            gp=GP,
            criterion=FixedBudget(10**6),
            initial=[0],
            test=(X[rest], Y[rest]),
        )
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
    y = np.where(x > 0.3, 1, -1)
    run = learn(
        x[::2],
        y[::2],
        gp=LaplaceClassifier(),
        criterion=MovementBelow(0.3),
        test=(x[1::2], y[1::2]),
        seed=0,
    )
    model = LaplaceClassifier()
    for t, i in enumerate(run.indices):
        model.add(x[::2][i], y[::2][i])
        there = model.predict_proba(x[1::2])[np.arange(20), (y[1::2] > 0).astype(int)]
        assert run.rmse[t] == pytest.approx(math.sqrt(((1 - there) ** 2).mean()), rel=1e-9)
    assert np.array_equal(run.left, movement_left(run.bounds, 19), equal_nan=True)
    assert run.stopped


def test_random_selection_in_simulate():
    result = simulate(
        X, Y, gp=GP, n_runs=4, pool_size=30, acquisition="random", criterion=FixedBudget(99)
    )
    for r in range(4):
        rows = result.pool(r)
        run = learn(X[rows], Y[rows], gp=GP, criterion=FixedBudget(99), initial=np.arange(30))
        model = GP.copy()
        np.testing.assert_allclose(
            result.bounds[r], model.add_batch(X[rows], Y[rows])[1:], rtol=1e-9
        )
        assert run.n_labels == 30
    with pytest.raises(
        ValueError, match="`acquisition` must be one of 'max_variance', 'random', got 'x'"
    ):
        simulate(X, Y, gp=GP, acquisition="x")


# Many streams, compositions, the family of verdicts ----------------------------------------------


@pytest.mark.parametrize(
    "rule", [*RULES[4:7], MovementBelow(0.1, horizon=90) & MinLabels(40)], ids=repr
)
def test_batches(rule):
    rows = np.stack([decay(80, seed, 0.02 + 0.01 * seed) for seed in range(7)])
    alone = [rule.copy().reset().extend(row) or -1 for row in rows]
    assert stopping_time(rows, criterion=rule).tolist() == alone
    assert [stopping_time(row, criterion=rule) or -1 for row in rows] == alone
    batch = StopperBatch(7, criterion=rule)
    for t in range(80):
        mask = batch.push(rows[:, t])
        assert mask.tolist() == [0 < at <= t + 1 for at in alone]
    assert batch.stopped_at.tolist() == alone
    assert batch.n.tolist() == [80] * 7
    if not isinstance(rule, FixedBudget):
        assert np.array_equal(batch.bounds(3), rows[3])
    still = rule if isinstance(rule, MovementBelow) else None
    if still is not None:
        expected = [movement_left(row, 400)[-1] for row in rows]
        assert np.array_equal(batch.left, expected)
        with pytest.raises(AttributeError, match="has no p_value"):
            batch.p_value  # noqa: B018
    batch.reset(2)
    assert batch.n[2] == 0
    assert not batch.stopped[2]


def test_what_a_batch_refuses():
    rule = MovementBelow(horizon=9)
    for make in (lambda **k: stopping_time([1.0], **k), lambda **k: StopperBatch(3, **k)):
        with pytest.raises(TypeError, match=r"`alpha` is an argument of Stopper.*got 0.01"):
            make(alpha=0.01, criterion=rule)
        with pytest.raises(TypeError, match=r"`window` is an argument of Stopper.*got 30"):
            make(window=30, criterion=rule)
        with pytest.raises(TypeError, match="`criterion` must be a criterion, got 3"):
            make(criterion=3)
        with pytest.raises(TypeError, match=r"`criterion` must be a Stopper, .*MaxVariance"):
            make(criterion=rule | MaxVariance(0.1))
    with pytest.raises(
        ValueError, match=r"`bounds` must not be negative, got -1.0 at index \(0, 1\)"
    ):
        stopping_time([[1.0, -1.0]], criterion=rule)
    batch = StopperBatch(2, criterion=rule)
    with pytest.raises(ValueError, match=r"`values` must not be negative, got -1.0 at index 0"):
        batch.push([-1.0, 2.0])
    assert batch.n.tolist() == [0, 0]
    with pytest.raises(ValueError, match="`horizon` must be given"):
        StopperBatch(2, criterion=MovementBelow()).push([1.0, 1.0])


def test_movement_left_refuses():
    for arguments, message in (
        (([1.0, -1.0], 5), "`bounds` must not be negative, got -1.0 at index 1"),
        (([1.0, NAN], 5), "`bounds` must be finite, got nan"),
        (([1.0], 0), "`horizon` must be at least 1, got 0"),
        ((np.ones((2, 2, 2)), 5), "`bounds` must have one or two axes"),
    ):
        with pytest.raises(ValueError, match=message):
            movement_left(*arguments)
    with pytest.raises(ValueError, match="`window` must be at least 2, got 1"):
        movement_left([1.0], 5, window=1)
    assert movement_left([], 5).shape == (0,)
    assert movement_left(np.empty((3, 0)), 5).shape == (3, 0)


def test_one_family_of_verdicts(loop):
    x, y, noise = loop
    criteria = [
        Stopper(), MovementBelow(0.2), FixedBudget(20), MinLabels(20), MaxVariance(0.01),
        Stopper() | MovementBelow(0.2), MovementBelow(0.2) & MinLabels(10),
    ]  # fmt: skip
    for criterion in criteria:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            verdict = learn(
                x, y, gp=GaussianProcess(1.0, noise), criterion=criterion, seed=0
            ).verdict
        assert isinstance(verdict.stop, bool | None)
        assert isinstance(verdict.n, int)
        assert isinstance(verdict.reason, str)
        assert isinstance(verdict.warnings, tuple)
        assert isinstance(verdict.level, float)
        assert isinstance(verdict.left, float)
        assert verdict.reason in str(verdict)
        assert pickle.loads(pickle.dumps(verdict)) == verdict


def test_left_and_level_of_a_stopper():
    bounds = np.r_[np.full(12, 5.0), np.full(12, 1.0)]
    stopper = Stopper()
    stopper.extend(bounds)
    assert math.isnan(stopper.left)
    same(stopper.level, twins.levels(bounds)[-1])
    at = stopper.stopped_at
    same(stopper.verdict.level, twins.levels(bounds)[at - 1])
    assert stopper.verdict.warnings[0] == "the bounds still stand at 60 % of their peak"
    told = Stopper()
    told.set_horizon(200)
    for t, r in enumerate(bounds, 1):
        told.push(r)
        same(told.left, twins.movement_left(bounds[:t], 200)[-1])
    assert told.verdict.warnings[0] == "up to 89 % of the movement may still be to come"
    for twin in (told.copy(), pickle.loads(pickle.dumps(told)), Stopper.from_dict(told.to_dict())):
        assert str(twin.verdict) == str(told.verdict)
        assert twin.verdict.warnings == told.verdict.warnings
        assert twin.left == told.left
    negative = Stopper()
    negative.set_horizon(200)
    negative.extend(np.r_[-1.0, bounds])
    assert math.isnan(negative.left)
    assert math.isnan(negative.level)
    told.reset()
    assert math.isnan(told.left)


def test_where_the_median_is_the_least_value_nothing_rose():
    assert stop_warnings(np.r_[np.ones(5), np.zeros(10)]) == ()
    assert stop_warnings(np.ones(12)) == ()


def test_on_a_negligible_rest_there_is_no_warning():
    # 200 high bounds, then hardly any movement; the horizon is near
    stopper = Stopper()
    stopper.set_horizon(230)
    stopper.extend(np.r_[np.full(15, 9.0) + np.arange(15) % 2, np.full(15, 0.01)])
    assert stopper.stopped
    assert stopper.verdict.left > 0.1  # two of the last ten are high ones
    late = Stopper(min_bounds=30)
    late.set_horizon(230)
    late.extend(np.r_[np.full(15, 9.0) + np.arange(15) % 2, np.full(15, 0.01)])
    assert late.verdict.left < 0.1
    assert not any("to come" in warning for warning in late.verdict.warnings)


# Compiled callers --------------------------------------------------------------------------------


def test_jit_door():
    jit = fastal.jit
    bounds = decay(100)
    handle = jit.still_new(0.1, 150)
    criterion = MovementBelow(0.1, horizon=150)
    for r in bounds:
        assert jit.still_push(handle, r) == criterion.push(r)
        assert np.array_equal(jit.still_left(handle), criterion.left, equal_nan=True)
    with pytest.raises(ValueError, match="`r` must not be negative"):
        jit.still_push(handle, -1.0)
    with pytest.raises(ValueError, match="`r` must be finite"):
        jit.still_push(handle, NAN)
    jit.still_reset(handle)
    assert math.isnan(jit.still_left(handle))
    jit.still_free(handle)
    with pytest.raises(ValueError, match="`handle` must come from still_new, got 0"):
        jit.still_push(0, 1.0)
    assert math.isnan(jit.still_left(0))
    with pytest.raises(ValueError, match=r"`share` must be in \(0, 1\)"):
        jit.still_new(1.0, 3)
    with pytest.raises(ValueError, match="`horizon` must be at least 1"):
        jit.still_new(0.1, 0)
