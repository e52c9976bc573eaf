"""MovementBelow against exact fractions after every bound, what it says, and in campaigns."""

import math

import numpy as np
import pytest
import twins
from hypothesis import given
from hypothesis import strategies as st

from fastal import (
    FixedBudget,
    MinLabels,
    MovementBelow,
    Stopper,
    stopping_time,
)
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
