"""Stopper, stopping_time and Streams: ways in, one decision; what is refused and what is said."""

import copy
import json
import math
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import twins
from hypothesis import given
from hypothesis import strategies as st

from fastal import FixedBudget, MinLabels, MovementBelow, Stopper, Streams, runs_test, stopping_time
from fastal._core import bound_scalar
from fastal.bound import gp_kl
from fastal.criteria import MaxVariance
from fastal.stopping import stop_warnings

rng = np.random.default_rng(11)
I = np.arange(120, dtype=float)  # noqa: E741
SEQUENCES = {
    "random": rng.standard_normal(120),
    "shift": np.where(I < 25, 4.0, 0.0) + rng.standard_normal(120),
    "falling": np.exp(-I / 20) * rng.lognormal(sigma=0.3, size=120),
    "rise": np.where(I < 20, 0.0, 5.0) + rng.standard_normal(120),
    "tied": np.where(I < 30, 2.0, 1.0),
    "tied rise": np.where(I < 30, 1.0, 2.0),
    "few": rng.integers(0, 3, 120).astype(float),
    "alternating": I % 2,
    "rises for ever": I,
    "falls for ever": -I,
    "equal means": np.r_[np.zeros(25), np.ones(50), np.zeros(25)],
    "a hump, then a drop": np.r_[np.zeros(15), np.ones(30), np.full(55, -1.0)] + 1e-9 * I[:100],
    "equal": np.ones(120),
    "huge": np.where(I < 20, 1.7e308, -1.7e308),
}
SETTINGS = [
    {},
    {"alpha": 0.05},
    {"alpha": 0.01, "method": "normal"},
    {"alpha": 0.01, "fall": False},
    {"alpha": 0.05, "sequential": True, "horizon": 100},
    {"alpha": 0.05, "sequential": True},
]


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=str)
@pytest.mark.parametrize("name", [n for n in SEQUENCES if n != "huge"])
def test_stopping_time_is_what_the_settings_say(name, settings):
    x = SEQUENCES[name]
    method = {"method": settings.get("method", "exact")}
    assert stopping_time(x, **settings) == twins.stopping_time(x, **settings | method)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", SEQUENCES)
def test_every_way_in_agrees_after_every_value(name, settings):
    x = SEQUENCES[name]
    pushed, extended = Stopper(**settings), Stopper(**settings)
    streams = Streams(pushed, 2)
    for n in range(1, len(x) + 1):
        stopped = pushed.push(x[n - 1])
        extended.extend(x[n - 1 : n])
        mask = streams.push([x[n - 1], 0.0], where=[True, n % 2 == 0])
        assert stopped == extended.stopped == mask[0]
        assert pushed.stopped_at == extended.stopped_at
        if n % 20 == 0:
            assert stopping_time(x[:n], **settings) == pushed.stopped_at
            rows = stopping_time(np.tile(x[:n], (9, 1)), **settings)
            assert set(rows.tolist()) == {pushed.stopped_at or -1}
    assert streams.stopped_at[0] == (pushed.stopped_at or -1)
    assert (streams.bounds(0) == x).all()


def test_c_twin_of_the_bound():
    draws = np.random.default_rng(3)
    for _ in range(3000):
        mean, y = draws.normal(size=2) * 10 ** draws.uniform(-8, 8)
        var, noise = 10 ** draws.uniform(-12, 12, size=2)
        assert bound_scalar.gp_kl(mean, var, y, noise) == pytest.approx(
            gp_kl(mean, var, y, noise), rel=1e-14
        )
    for case in [(0, 0, 1, 1), (0, 1e-300, 1, 1), (0, 1, 1e150, 1), (0, 1e300, 1e-150, 1e-5),
                 (1e150, 1e-200, -1e150, 1e10), (0, 1, 0, 1), (0, 1e-8, 1e-170, 1e-4)]:  # fmt: skip
        assert bound_scalar.gp_kl(*map(float, case)) == pytest.approx(
            gp_kl(*map(float, case)), rel=1e-13
        )
    for bad in [(0, -1, 0, 1), (0, 1, 0, 0), (math.nan, 1, 0, 1), (0, math.inf, 0, 1)]:
        assert bound_scalar.gp_kl(*bad) == -1


# A rejection counts only if the bounds fell -----------------------------------------------------

FEW = st.lists(st.integers(0, 4).map(float), min_size=2, max_size=60)
ANY = st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=60)


@given(FEW | ANY, st.integers(2, 59))
def test_random_streams(x, cut):
    expected = twins.stopping_time(x, 0.2)
    stopper = Stopper(0.2)
    stopper.extend(x[:cut])
    stopper = Stopper.from_dict(json.loads(json.dumps(stopper.to_dict())))
    assert stopper.extend(x[cut:]) == stopping_time(x, 0.2) == expected
    letter = stopping_time(x, 0.2, fall=False)
    assert expected is None or (letter is not None and letter <= expected)
    assert str(stopper.verdict).startswith(("stop after", "go on", "too early"))


def test_what_does_not_fall_does_not_stop():
    risen = SEQUENCES["tied rise"]
    assert stopping_time(risen, fall=False) is not None
    stopper = Stopper()
    assert stopper.extend(risen[:60]) is None
    assert stopper.p_value < 1e-3
    assert str(stopper.verdict) == f"go on: 2 runs, p = {stopper.p_value:.1e}, but the bounds rose"
    hump = Stopper()
    hump.extend(SEQUENCES["equal means"])
    assert str(hump.verdict).endswith(", but the bounds did not fall")


def test_a_million_rising_bounds_stay_exact():
    # the places of half of them sum up to 4e11
    rising = np.arange(1e6)
    assert stopping_time(rising) is None
    assert stopping_time(-rising) == 14


# Verdicts ---------------------------------------------------------------------------------------


def test_verdict_of_a_stop_stays():
    x = SEQUENCES["shift"]
    stopper = Stopper()
    at = stopper.extend(x)
    assert 25 < at < 120
    verdict = stopper.verdict
    test = runs_test(x[:at], cutoff="median", alternative="less")
    assert (verdict.stop, verdict.n, verdict.p_value) == (True, at, test.pvalue)
    assert (verdict.n_runs, verdict.median) == (test.n_runs, test.cutoff)
    expected = 1 + 2 * test.n_below * test.n_above / at
    assert str(verdict) == (
        f"stop after {at} bounds: {test.n_runs} runs where {expected:.1f} are expected "
        f"(p = {test.pvalue:.1e} <= 0.001)"
    )
    assert stopper.extend(SEQUENCES["random"]) == at
    assert stopper.push(100.0) is True
    assert (len(stopper.bounds), stopper.verdict) == (241, verdict)
    assert stopper.p_value == runs_test(stopper.bounds, cutoff="median", alternative="less").pvalue
    with pytest.raises(AttributeError):
        verdict.stop = False
    with pytest.raises(AttributeError, match="this verdict has no `share`: it has p_value, n_runs"):
        verdict.share  # noqa: B018


def test_too_early_is_not_go_on():
    stopper = Stopper()
    assert stopper.verdict.stop is None
    said = "too early: no stop is possible before 14 bounds at alpha = 0.001"
    assert str(stopper.verdict) == said
    stopper.extend(SEQUENCES["random"][:13])
    assert stopper.verdict.stop is None
    stopper.push(0.0)
    assert stopper.verdict.stop is False
    assert str(stopper.verdict).startswith(f"go on: {stopper.n_runs} runs, p = 0.")


@pytest.mark.parametrize(
    ("settings", "earliest"),
    [
        ({}, 14),
        ({"method": "normal"}, 13),
        ({"alpha": 0.1}, 6),
        ({"alpha": 0.01, "sequential": True, "horizon": 100, "fall": False}, 14),
        # 2 / C(12, 6) = 2.16e-3 is above the level, 2 / C(13, 6) = 1.17e-3 below
        ({"alpha": 0.01, "sequential": True, "horizon": 100}, 13),
        ({"fall": False}, 14),
        ({"alpha": 0.001, "sequential": True, "horizon": 10}, None),
    ],
)
def test_earliest_possible_stop(settings, earliest):
    stopper = Stopper(**settings)
    assert stopper.earliest_stop == earliest
    if earliest is None:
        assert "no stop is possible with these settings" in str(stopper.verdict)
        return
    # nothing stops earlier: try a drop after every number of values
    first = min(
        stopping_time(np.r_[-np.arange(k), -1000 - np.arange(80.0)], **settings) or 999
        for k in range(1, 40)
    )
    assert first == earliest or (first > earliest and settings.get("method") == "normal")


def test_warnings():
    rng = np.random.default_rng(1)  # of its own: what other tests drew must not matter
    drop = np.r_[np.full(12, 5.0), np.full(12, 1.0)] + 0.1 * rng.standard_normal(24)
    stopper = Stopper()
    stopper.extend(drop)
    # nobody has said how many bounds there can be: 1 of 5, and two of the last ten are high ones
    assert stopper.verdict.warnings == ("the bounds still stand at 28 % of their peak",)
    assert stop_warnings(drop) == ()
    assert stop_warnings(drop[::-1]) == ("the bounds rose instead of falling",)
    slope = np.exp(-np.arange(60) / 10)
    assert stop_warnings(slope) == (
        "the bounds are still falling",
        "neighbouring bounds are alike (rank autocorrelation above 0.2)",
    )
    rising = Stopper(fall=False)
    rising.extend(SEQUENCES["rise"])
    assert "the bounds rose instead of falling" in rising.verdict.warnings
    assert Stopper().verdict.warnings == ()
    # where the median is the least value, nothing rose
    assert stop_warnings(np.r_[np.ones(5), np.zeros(10)]) == stop_warnings(np.ones(12)) == ()


def test_empty_and_single():
    stopper = Stopper()
    found = (stopper.n_runs, stopper.p_value, stopper.stopped, stopper.stopped_at)
    assert found == (0, 1.0, False, None)
    assert math.isnan(stopper.median)
    assert stopper.bounds.shape == (0,)
    assert stopper.push(3.0) is False
    assert (stopper.n_runs, stopper.p_value, stopper.median) == (1, 1.0, 3.0)
    assert Stopper().extend([]) is None
    assert stopping_time([]) is None


@pytest.mark.parametrize("settings", [*SETTINGS[:2], *SETTINGS[4:]], ids=str)
def test_trace_replays_what_each_push_found(settings):
    stopper, found = Stopper(**settings), []
    for bound in np.repeat([5.0, 1.0], 20) + np.sin(np.arange(40.0)):
        stopper.push(bound)
        found.append((stopper.p_value, stopper.median))
    p_values, medians, levels = stopper.trace()
    assert list(zip(p_values.tolist(), medians.tolist(), strict=True)) == found
    assert levels[stopper.verdict.n - 1] == stopper.verdict.alpha
    assert 1 + int(np.argmax(p_values <= levels)) == stopper.stopped_at
    assert [len(values) for values in Stopper().trace()] == [0, 0, 0]


# Bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 0}, ValueError, r"`alpha` must be in \(0, 1\), got 0"),
        ({"alpha": math.nan}, ValueError, r"`alpha` must be in \(0, 1\), got nan"),
        ({"alpha": "x"}, TypeError, "`alpha` must be a real number, got 'x'"),
        ({"method": "fast"}, ValueError, "`method` must be one of 'auto', 'exact', 'normal'"),
        ({"horizon": 50}, ValueError, "`horizon` needs sequential=True, got 50"),
        ({"fall": 1}, TypeError, "`fall` must be True or False, got 1"),
        ({"sequential": 1}, TypeError, "`sequential` must be True or False, got 1"),
        ({"sequential": True, "method": "normal"}, ValueError, "`method` must be exact .*'normal'"),
        ({"sequential": True, "horizon": 10**6}, ValueError, "`horizon` must be at most 10000"),
        ({"sequential": True, "alpha": 1e-9}, ValueError, "`alpha` of the sequential mode must be"),
        ({"window": 9}, TypeError, "window"),
    ],
)
def test_bad_settings(arguments, error, message):
    with pytest.raises(error, match=message):
        Stopper(**arguments)
    with pytest.raises(error, match=message):
        stopping_time([1.0, 2.0], **arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.push(math.nan), ValueError, "`r` must be finite, got nan"),
        (lambda s: s.push(-math.inf), ValueError, "`r` must be finite, got -inf"),
        (lambda s: s.push("a"), TypeError, "`r` must be a real number, got 'a'"),
        (lambda s: s.push(None), TypeError, "`r` must be a real number, got None"),
        (lambda s: s.push(10**400), ValueError, "`r` must be finite as a double, got 1000"),
        (lambda s: s.extend([1.0, math.inf]), ValueError, "`values` must be finite, got inf at"),
        (lambda s: s.extend([1.0, -(10**400)]), ValueError, "`values` must be finite as a double"),
        (lambda s: s.extend([[1.0]]), ValueError, r"`values` must be one-dim.*\(1, 1\)"),
        (lambda s: s.extend(["a"]), TypeError, "`values` must hold real numbers"),
        (lambda s: s.after_fit([1.0, math.nan]), ValueError, "`bounds_or_model` must be finite"),
        (lambda s: s.after_fit([1.0], at_edge=1), TypeError, "`at_edge` must be True or False"),
        (lambda s: s.after_fit([1.0], initial=-1), ValueError, "`initial` must be at least 0"),
        (lambda s: s.set_horizon(-1), ValueError, "`n` must be at least 0, got -1"),
        (lambda s: s.set_horizon(2.5), TypeError, "`n` must be an integer, got 2.5"),
        (lambda s: setattr(s, "alpha", 0.1), AttributeError, r"`alpha` cannot be set: `replace"),
        (lambda s: s.replace(window=3), ValueError, "`changes` must be one of 'alpha', .*'window'"),
        (lambda s: s | 3, TypeError, "unsupported operand"),
        (lambda s: (s & MinLabels(3)).replace(n=4), ValueError, "`n` is no setting of a combinat"),
    ],
)
def test_what_is_refused_changes_nothing(call, error, message):
    stopper = Stopper()
    stopper.extend([3.0, 1.0, 2.0])
    before = stopper.to_dict()
    with pytest.raises(error, match=message):
        call(stopper)
    assert stopper.to_dict() == before
    assert stopper.push(4.0) is False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"alpha": 2.0}}, r"`state` is damaged: `alpha` must be in \(0, 1\), got 2"),
        ({"settings": {"window": 3}}, "`state` is damaged: .*window"),
        ({"bounds": [1.0, "x"]}, "`state` is damaged: `bounds` must"),
        ({"bounds": [1.0, math.nan]}, "`state` is damaged: `bounds` must be finite, got nan"),
        ({"bounds": None}, "`state` is damaged: `bounds`"),
        ({"stops": [1, 2]}, r"`state` is damaged: `stops` cannot be, got \[1, 2\]"),
        ({"stops": [2]}, r"`stops` and `stop` contradict each other, got \[2\]"),
        ({"stop": 3}, "`state`"),
        ({"horizon": -1}, "`state` is damaged: `horizon` must be at least 0"),
        ({"fit": [3]}, "`state` is damaged"),
        ({"version": 99}, "`state` must have version 3, got 99"),
        ({"kind": "Car"}, "`state` must describe a Stopper, got kind 'Car'"),
        ({"kind": ["Stopper"]}, "`state` must describe a Stopper"),
        ({"kind": "FixedBudget"}, "must describe a Stopper, got kind 'FixedBudget'"),
        ({"colour": 1}, "`state` has the unknown 'colour'"),
    ],
)
def test_damaged_states(change, message):
    good = Stopper(0.01)
    good.extend([3.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=message):
        Stopper.from_dict(good.to_dict() | change)
    for key in good.to_dict():
        state = good.to_dict()
        del state[key]
        with pytest.raises(ValueError, match="`state`"):
            Stopper.from_dict(state)


def test_states_of_other_things():
    for thing in (None, [], "{}", 3):
        with pytest.raises(ValueError, match="`state` must be a dict from `to_dict`"):
            Stopper.from_dict(thing)


@pytest.mark.parametrize(
    "convert",
    [list, tuple, pd.Series, iter, lambda x: x.astype(np.float32), lambda x: np.repeat(x, 2)[::2]],
)
def test_histories_of_any_kind(convert):
    x = np.round(SEQUENCES["falling"] * 64) / 64
    x.flags.writeable = False
    stopper = Stopper()
    assert stopper.extend(convert(x)) == stopping_time(x)
    assert (stopper.bounds == x).all()


# Many streams -----------------------------------------------------------------------------------

RULES = [
    Stopper(0.01),
    MovementBelow(0.1, horizon=400),
    MovementBelow(0.1) | FixedBudget(200),
    Stopper() | FixedBudget(25),
    FixedBudget(17),
    MovementBelow(0.1, horizon=90) & MinLabels(40),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_streams_are_single_criteria(rule):
    draws = np.random.default_rng(5)
    rows = np.exp(-0.04 * np.arange(80)) * draws.gamma(2.0, 1.0, (7, 80))
    singles, streams = [rule.copy() for _ in rows], Streams(rule, 7)
    where = np.arange(7) != 2
    for t in range(80):
        if t == 30:
            streams.reset(~where)
            singles[2].reset()
        mask = streams.push(rows[:, t], where=None if t % 3 else where)
        for i, single in enumerate(singles):
            if t % 3 or where[i]:
                single.push(rows[i, t])
            assert mask[i] == single.stopped
    assert streams.stopped_at.tolist() == [single.stopped_at or -1 for single in singles]
    assert streams.n.tolist() == [len(single) for single in singles]
    assert streams.bounds(2).tolist() == singles[2].bounds.tolist()
    if isinstance(rule, MovementBelow):
        assert streams.left.tolist() == [single.left for single in singles]
    assert (len(streams), repr(streams)) == (7, f"Streams({rule!r}, 7): {int(mask.sum())} stopped")
    # a value that is not finite does not matter where nobody looks
    streams.push([1.0, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0], where=where)
    alone = [rule.copy().extend(row) or -1 for row in rows]
    for threads in (None, 1, 2, 7):
        assert stopping_time(rows, criterion=rule, threads=threads).tolist() == alone
    streams.reset()
    assert streams.n.tolist() == [0] * 7


def test_rows_of_any_shape():
    x = np.random.default_rng(5).standard_normal((500, 80))
    x[::3, :15] += 4
    expected = [stopping_time(row, 0.01) or -1 for row in x]
    for threads in (None, 1, 2, 7):
        assert stopping_time(x, 0.01, threads=threads).tolist() == expected
    assert stopping_time(np.asfortranarray(x)[:, ::-1], 0.01).shape == (500,)
    assert stopping_time(np.empty((0, 5))).tolist() == []
    assert stopping_time(np.empty((3, 0))).tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.push([1.0]), ValueError, r"`values` must have shape \(2,\), got \(1,\)"),
        (lambda s: s.push([1.0, math.nan]), ValueError, "`values` must be finite, got nan at"),
        (lambda s: s.push([1.0, 2.0], [1, 0]), ValueError, "`where` must hold 2 booleans"),
        (lambda s: s.push([1.0, 2.0], [True]), ValueError, "`where` must hold 2 booleans"),
        (lambda s: s.push([-1.0, 2.0]), ValueError, "`values` must not .* -1.0 at index 0"),
        (lambda s: s.push([1.0, 10**400]), ValueError, "`values` must be finite as a double"),
        (lambda s: s.reset([1]), ValueError, "`where` must hold 2 booleans"),
        (lambda s: s.bounds(2), ValueError, r"`i` must be in \[0, 2\), got 2"),
        (lambda s: Streams(Stopper(), 0), ValueError, "`n` must be at least 1, got 0"),
        (lambda s: Streams(3, 2), TypeError, "`criterion` must be a criterion, got 3"),
        (lambda s: Streams(Stopper() | MaxVariance(0.1), 2), TypeError, "must be a Stopper, .*MaxV"),
        (lambda s: Streams(MovementBelow(), 2).push([1.0, 1]), ValueError, "`horizon` must be given"),
        (lambda s: stopping_time([[[1.0]]]), ValueError, "`bounds` must have one or two axes"),
        (lambda s: stopping_time([[1.0], [math.nan]]), ValueError, r"finite, got nan at .*\(1, 0\)"),
        (lambda s: stopping_time([1.0], threads=0), ValueError, "`threads` must be at least 1"),
        (
            lambda s: stopping_time([1.0], 0.01, criterion=RULES[1]),
            TypeError, "`alpha` is an argument of Stopper.*got 0.01",
        ),
        (
            lambda s: stopping_time([[1.0, -1.0]], criterion=RULES[1]),
            ValueError, r"`bounds` must not be negative, got -1.0 at index \(0, 1\)",
        ),
    ],
)  # fmt: skip
def test_what_streams_refuse(call, error, message):
    streams = Streams(MovementBelow(horizon=9), 2)
    streams.push([1.0, 2.0])
    with pytest.raises(error, match=message):
        call(streams)
    assert streams.n.tolist() == [1, 1]


# Threads ----------------------------------------------------------------------------------------


def test_two_threads_on_one_stopper_do_not_crash():
    stopper, refused = Stopper(), []

    def work(values, call):
        for value in values:
            try:
                call(value)
            except RuntimeError as error:
                refused.append(str(error))

    pushed = np.random.default_rng(0).standard_normal(20_000).tolist()
    extended = [np.zeros(50_000)] * 20
    threads = [
        threading.Thread(target=work, args=args)
        for args in ((pushed, stopper.push), (pushed, stopper.push), (extended, stopper.extend))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(refused) <= {"the criterion is in use by another thread"}
    stopper.reset()
    assert stopper.extend(SEQUENCES["shift"]) == stopping_time(SEQUENCES["shift"])


def test_a_lent_rule_is_left_alone():
    stopper = Stopper()
    stopper.extend(np.arange(5.0))
    rule = stopper._compiled()
    assert rule.lend() != 0
    for use in (
        lambda: stopper.push(1.0),
        lambda: stopper.extend([1.0]),
        lambda: stopper.after_fit([1.0]),
        lambda: stopper.bounds,
        lambda: stopper.verdict,
        lambda: copy.copy(stopper),
        lambda: stopper.reset(),
        lambda: pickle.dumps(stopper),
        lambda: rule.lend(),
    ):
        with pytest.raises(RuntimeError, match="in use by another thread"):
            use()
    rule.take_back()
    assert stopper.bounds.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
