"""Stopper, stopping_time and StopperBatch: four ways in, one decision."""

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
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import fastal
from fastal import (
    FixedBudget,
    GaussianProcess,
    MinLabels,
    Stopper,
    gp_kl,
    runs_test,
    stopping_time,
)
from fastal._core import bound_scalar
from fastal.runs import RunsDistribution
from fastal.stopping.criterion import Criterion
from fastal.stopping.verdict import stop_warnings

rng = np.random.default_rng(11)
I = np.arange(120, dtype=float)  # noqa: E741
SEQUENCES = {
    "random": rng.standard_normal(120),
    "shift": np.where(I < 25, 4.0, 0.0) + rng.standard_normal(120),
    "falling": np.exp(-I / 20) * rng.lognormal(sigma=0.3, size=120),
    "rise": np.where(I < 20, 0.0, 5.0) + rng.standard_normal(120),
    "tied": np.where(I < 30, 2.0, 1.0),
    "few": rng.integers(0, 3, 120).astype(float),
    "alternating": I % 2,
    "sorted": -I,
    "equal": np.ones(120),
    "huge": np.where(I < 20, 1.7e308, -1.7e308),
}
SETTINGS = [
    {},
    {"alpha": 0.05},
    {"alpha": 0.01, "method": "normal"},
    {"alpha": 0.01, "alternative": "greater"},
    {"alpha": 0.01, "alternative": "two-sided"},
    {"alpha": 0.01, "window": 20},
    {"alpha": 0.01, "min_bounds": 40},
    {"alpha": 0.01, "patience": 4},
    {"alpha": 0.02, "window": 30, "min_bounds": 35, "patience": 3, "alternative": "two-sided"},
    {"alpha": 0.05, "sequential": True, "horizon": 100},
    {"alpha": 0.05, "sequential": True},
    {"alpha": 0.01, "fall": False},
    {"alpha": 0.01, "window": 20, "patience": 2, "fall": False},
    {"alpha": 0.05, "sequential": True, "horizon": 100, "fall": False},
]


def slow_stopping_time(x, *, alpha=1e-3, method="auto", alternative="less", window=None,
                       min_bounds=None, patience=1, fall=True):  # fmt: skip
    """What the settings say, by the exact fractions of the slow twin."""
    streak = 0
    for n in range(1, len(x) + 1):
        tested = x[max(0, n - window) if window else 0 : n]
        p = 1.0
        if n >= 2:
            m = "normal" if method == "normal" else "exact"
            u, n0, n1 = twins.count_runs(tested >= np.median(tested))
            p = twins.runs_p_value(u, n0, n1, alternative=alternative, method=m)
        counts = p <= alpha and (not fall or alternative != "less" or twins.fell(tested))
        streak = streak + 1 if counts else 0
        if streak >= patience and n >= (min_bounds or 0):
            return n
    return None


@pytest.mark.parametrize("settings", SETTINGS[:9], ids=str)
@pytest.mark.parametrize("name", [n for n in SEQUENCES if n != "huge"])
@pytest.mark.parametrize("fall", [False, True])
def test_stopping_time_is_what_the_settings_say(name, settings, fall):
    x = SEQUENCES[name]
    assert stopping_time(x, fall=fall, **settings) == slow_stopping_time(x, fall=fall, **settings)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", SEQUENCES)
def test_every_way_in_agrees_after_every_value(name, settings):
    x = SEQUENCES[name]
    noise = 0.25
    pushed, extended = Stopper(**settings), Stopper(**settings)
    batch = StopperBatch(2, **settings)
    for n in range(1, len(x) + 1):
        stopped = pushed.push(x[n - 1])
        extended.extend(x[n - 1 : n])
        mask = batch.push([x[n - 1], 0.0], where=[True, n % 2 == 0])
        assert stopped == extended.stopped == mask[0]
        assert pushed.stopped_at == extended.stopped_at
        assert pushed.p_value == extended.p_value == batch.p_value[0]
        if n % 10 == 0:
            assert stopping_time(x[:n], **settings) == pushed.stopped_at
            rows = stopping_time(np.tile(x[:n], (9, 1)), **settings)  # with the shared table
            assert set(rows.tolist()) == {pushed.stopped_at or -1}
    assert batch.stopped_at[0] == (pushed.stopped_at or -1)
    assert (batch.bounds(0) == x).all()
    # update: find the label whose bound is each value, where there is one
    if name in ("random", "huge", "rise", "sorted", "equal", "alternating", "few", "shift"):
        return
    updated, var = Stopper(noise=noise, **settings), 0.5
    by_push = Stopper(**settings)
    base = gp_kl(0.0, var, 0.0, noise)
    labels = np.sqrt((base + x - base) * 2 * noise * (var + noise) / var)
    for y in labels:
        assert updated.update(0.0, var, y) == by_push.push(gp_kl(0.0, var, y, noise))
    np.testing.assert_allclose(updated.bounds, by_push.bounds, rtol=1e-13)


def test_observe_is_add_and_push():
    X = rng.uniform(-5, 15, 40)
    y = np.exp(-((X - 2) ** 2) / 2) + 0.05 * rng.standard_normal(40)
    stopper = Stopper(gp=GaussianProcess(1.4, 0.01))
    gp, other = GaussianProcess(1.4, 0.01), Stopper(noise=0.01)
    for x, label in zip(X, y, strict=True):
        mean, var = gp.predict([x], return_var=True)
        assert stopper.observe(x, label) == other.update(mean[0], var[0], label)
        gp.add(x, label)
    # the bound may differ by the rounding of two ways to the same posterior
    np.testing.assert_allclose(stopper.bounds, other.bounds, rtol=1e-7, atol=1e-9)
    assert stopper.gp.n_labels == 40
    with pytest.raises(ValueError, match=r"`observe` needs Stopper\(gp=...\), got gp=None"):
        other.observe(0.0, 0.0)
    before = stopper.bounds
    with pytest.raises(ValueError, match="`y` must be finite, got nan"):
        stopper.observe(0.0, math.nan)
    assert stopper.gp.n_labels == 40
    assert (stopper.bounds == before).all()


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


def test_labels_that_arrive_together():
    mean, var, y = rng.normal(size=12), rng.random(12), rng.normal(size=12)
    one, many = Stopper(noise=0.1), Stopper(noise=0.1)
    for m, v, label in zip(mean, var, y, strict=True):
        one.update(m, v, label)
    many.update(mean[:5], var[:5], y[:5])
    many.update(pd.Series(mean[5:]), var[5:].tolist(), y[5:], noise=0.1)
    assert (one.bounds == many.bounds).all()
    many.update(0.0, 1.0, [0.5, 0.5])
    assert len(many) == 14


# verdicts -------------------------------------------------------------------------------------


def test_verdict_of_a_stop_stays():
    x = SEQUENCES["shift"]
    stopper = Stopper()
    at = stopper.extend(x)
    assert 25 < at < 120
    verdict = stopper.verdict
    test = runs_test(x[:at], cutoff="median", alternative="less")
    assert (verdict.stop, verdict.n, verdict.p_value) == (True, at, test.pvalue)
    assert (verdict.n_runs, verdict.median) == (test.n_runs, test.cutoff)
    d = RunsDistribution(test.n_below, test.n_above)
    assert verdict.expected_runs == d.mean()
    assert d.cdf(verdict.critical_runs) <= 1e-3 < d.cdf(verdict.critical_runs + 1)
    assert verdict.alpha == 1e-3
    assert str(verdict) == (
        f"stop after {at} bounds: {test.n_runs} runs where {d.mean():.1f} are expected "
        f"(p = {test.pvalue:.1e} <= 0.001)"
    )
    assert str(stopper.verdict) == str(verdict)
    assert stopper.reason == verdict.reason
    with pytest.raises(AttributeError):
        verdict.stop = False


def test_too_early_is_not_go_on():
    stopper = Stopper()
    assert stopper.verdict.stop is None
    assert str(stopper.verdict) == (
        "too early: no stop is possible before 14 bounds at alpha = 0.001"
    )
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
        ({"patience": 3}, 16),
        ({"min_bounds": 50}, 50),
        ({"min_bounds": 3}, 14),
        ({"window": 13}, None),
        ({"window": 14}, 14),
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
    assert rising.stopped
    assert "the bounds rose instead of falling" in rising.verdict.warnings
    assert Stopper().verdict.warnings == ()


def test_empty_and_single():
    stopper = Stopper()
    assert (stopper.n_runs, stopper.p_value, stopper.stopped, stopper.stopped_at) == (
        0, 1.0, False, None,
    )  # fmt: skip
    assert math.isnan(stopper.median)
    assert stopper.bounds.shape == stopper.labels.shape == (0,)
    assert stopper.push(3.0) is False
    assert (stopper.n_runs, stopper.p_value, stopper.median) == (1, 1.0, 3.0)
    assert stopper.labels.tolist() == [1]
    assert Stopper().extend([]) is None
    assert stopping_time([]) is None


def test_labels_and_counts_of_a_window():
    stopper = Stopper(window=4)
    stopper.extend([9.0, 1.0, 5.0, 2.0, 7.0])
    assert stopper.labels.tolist() == [0, 1, 0, 1]
    assert (stopper.n_below, stopper.n_above, stopper.median) == (2, 2, 3.5)
    assert stopper.bounds.tolist() == [9.0, 1.0, 5.0, 2.0, 7.0]


def test_a_stop_latches():
    stopper = Stopper()
    first = stopper.extend(SEQUENCES["shift"])
    assert stopper.extend(SEQUENCES["random"]) == first
    assert stopper.push(100.0) is True
    assert len(stopper.bounds) == 241
    assert stopper.p_value == runs_test(stopper.bounds, cutoff="median", alternative="less").pvalue


# snapshots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    "snapshot",
    [
        lambda s: pickle.loads(pickle.dumps(s)),
        copy.deepcopy,
        copy.copy,
        lambda s: s.copy(),
        lambda s: Stopper.from_dict(json.loads(json.dumps(s.to_dict()))),
        lambda s: Criterion.from_dict(s.to_dict()),
    ],
)
def test_snapshots_continue_alike(settings, snapshot):
    x = SEQUENCES["falling"]
    stopper = Stopper(**settings)
    stopper.extend(x[:33])
    twin = snapshot(stopper)
    assert repr(twin) == repr(stopper)
    for value in x[33:]:
        assert twin.push(value) == stopper.push(value)
        assert twin.p_value == stopper.p_value
    assert twin.stopped_at == stopper.stopped_at
    stopper.push(1.0)
    assert len(twin) == len(stopper) - 1


def test_snapshot_with_a_process():
    stopper = Stopper(gp=GaussianProcess([1.0, 2.0], 0.1, kernel="matern52"))
    for row in rng.normal(size=(20, 3)):
        stopper.observe(row[:2], row[2])
    for twin in (
        pickle.loads(pickle.dumps(stopper)),
        stopper.copy(),
        Stopper.from_dict(json.loads(json.dumps(stopper.to_dict()))),
    ):
        same = stopper.copy()
        for row in rng.normal(size=(5, 3)):
            assert twin.observe(row[:2], row[2]) == same.observe(row[:2], row[2])
        np.testing.assert_array_equal(twin.bounds, same.bounds)
    assert stopper.gp.n_labels == 20


GOOD = Stopper(0.01, min_bounds=3, noise=np.float64(0.5))
GOOD.extend([3.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": None}, "`state` is damaged: `alpha` must be a real number"),
        ({"alpha": 2.0}, r"`state` is damaged: `alpha` must be in \(0, 1\), got 2"),
        ({"bounds": [1.0, "x"]}, r"`state\['bounds'\]` must be a list of numbers"),
        ({"bounds": [1.0, math.nan]}, "`state` is damaged: `bounds` must be finite, got nan"),
        ({"bounds": None}, r"`state\['bounds'\]` must be a list of numbers, got None"),
        ({"version": 99}, "`state` must have version 2, got 99"),
        ({"version": 0}, "`state` must have version 2, got 0"),
        ({"version": True}, "`state` must have version 2, got True"),
        ({"fall": 1}, "`state` is damaged: `fall` must be True or False, got 1"),
        ({"kind": "Car"}, "`state` must describe a Stopper, got kind 'Car'"),
        ({"kind": ["Stopper"]}, "`state` must describe a Stopper"),
        ({"colour": 1}, "`state` has the unknown 'colour'"),
        ({"method": "fast"}, "`state` is damaged: `method` must be one of"),
        ({"gp": {"kind": "GaussianProcess"}}, "`state` lacks 'version', 'kernel'"),
        ({"gp": 3}, "`state` must be a dict"),
    ],
)
def test_damaged_states(change, message):
    with pytest.raises(ValueError, match=message):
        Stopper.from_dict(GOOD.to_dict() | change)
    assert Stopper.from_dict(GOOD.to_dict()).bounds.tolist() == [3.0, 1.0, 2.0]


def test_missing_keys_and_other_things():
    for key in GOOD.to_dict():
        state = GOOD.to_dict()
        del state[key]
        with pytest.raises(ValueError, match="`state`"):
            Stopper.from_dict(state)
    for thing in (None, [], "{}", 3):
        with pytest.raises(ValueError, match="`state` must be a dict from `to_dict`"):
            Stopper.from_dict(thing)
    with pytest.raises(ValueError, match="must describe a Stopper, got kind 'FixedBudget'"):
        Stopper.from_dict(FixedBudget(3).to_dict())


def test_reset():
    stopper = Stopper()
    stopper.extend(SEQUENCES["shift"])
    assert stopper.reset() is stopper
    assert (len(stopper), stopper.stopped) == (0, False)
    assert stopper.extend(SEQUENCES["shift"]) == stopping_time(SEQUENCES["shift"])


# hyper-parameters that change -----------------------------------------------------------------


@pytest.mark.parametrize(("seed", "alone", "together"), [(0, 0, 0), (2, 1, 1), (4, 1, 0)])
def test_recompute(seed, alone, together):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-5, 15, 50)
    y = np.sin(X) + 0.1 * rng.standard_normal(50)
    new = GaussianProcess(1.0, 0.02)
    stopper, fresh = Stopper(gp=GaussianProcess(3.0, 0.1)), Stopper(gp=new.copy())
    for x, label in zip(X, y, strict=True):
        stopper.observe(x, label)
        fresh.observe(x, label)
    assert fresh.stopped == alone
    assert stopper.recompute(X, y, new) == together  # under those before as well: two must agree
    assert new.n_labels == 0
    np.testing.assert_allclose(stopper.bounds, fresh.bounds, rtol=1e-8, atol=1e-12)
    assert stopper.gp.n_labels == 50
    stopper.recompute(X, y, new, initial=3)
    assert len(stopper) == 47
    before = stopper.bounds
    with pytest.raises(ValueError, match="`y` must have 50 elements, got 49"):
        stopper.recompute(X, y[:-1], new)
    with pytest.raises(ValueError, match="`gp` must have no labels, got 50"):
        stopper.recompute(X, y, stopper.gp)
    assert (stopper.bounds == before).all()


# composition ----------------------------------------------------------------------------------


def test_composition():
    x = SEQUENCES["shift"]
    alone = stopping_time(x)
    either = Stopper() | FixedBudget(alone - 5)
    assert either.extend(x) == alone - 5
    assert (
        either.reason == f"the budget of {alone - 5} bounds is used up" or " or " in either.reason
    )
    assert (Stopper() | FixedBudget(500)).extend(x) == alone
    both = Stopper() & MinLabels(alone + 7)
    assert both.push(x[0]) is False
    assert "at least" in both.reason
    assert both.extend(x[1:]) == alone + 7
    three = Stopper() | FixedBudget(7) | MinLabels(5)
    assert len(three.members) == 3
    assert three.extend(x) == 5
    assert three.reset().stopped is False
    assert repr(Stopper() & MinLabels(3)) == "(Stopper() & MinLabels(3))"
    twin = Criterion.from_dict(json.loads(json.dumps(both.to_dict())))
    assert (twin.stopped_at, repr(twin)) == (both.stopped_at, repr(both))
    half = Stopper() & MinLabels(alone + 7)
    half.extend(x[:30])
    assert half.copy().extend(x[30:]) == alone + 7
    nested = (Stopper() & MinLabels(60)) | FixedBudget(90)
    assert nested.extend(x) == 60
    assert (Stopper(noise=0.1) | FixedBudget(2)).update([0.0, 0.0], [1.0, 1.0], [0.1, 0.2]) is True
    with pytest.raises(TypeError):
        _ = Stopper() | 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: FixedBudget(0), ValueError, "`n` must be at least 1, got 0"),
        (lambda: MinLabels(2.5), TypeError, "`n` must be an integer, got 2.5"),
        (lambda: FixedBudget(3).push(math.nan), ValueError, "`r` must be finite, got nan"),
        (lambda: (Stopper() | FixedBudget(3)).push("a"), TypeError, "`r` must be a real number"),
        (lambda: (Stopper() | FixedBudget(3)).update(0, 1, 0), ValueError, "`noise` must be given"),
        (
            lambda: Criterion.from_dict({"kind": "AnyOf", "version": 1, "members": []}),
            ValueError, "must be a list of at least 2",
        ),
        (
            lambda: Criterion.from_dict(FixedBudget(3).to_dict() | {"seen": -1}),
            ValueError, r"`state\['seen'\]` must be an integer >= 0, got -1",
        ),
    ],
)  # fmt: skip
def test_bad_criteria(call, error, message):
    with pytest.raises(error, match=message):
        call()


# bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 0}, ValueError, r"`alpha` must be in \(0, 1\), got 0"),
        ({"alpha": 3}, ValueError, r"`alpha` must be in \(0, 1\), got 3"),
        ({"alpha": math.nan}, ValueError, r"`alpha` must be in \(0, 1\), got nan"),
        ({"alpha": "x"}, TypeError, "`alpha` must be a real number, got 'x'"),
        ({"method": "fast"}, ValueError, "`method` must be one of 'auto', 'exact', 'normal'"),
        ({"alternative": "up"}, ValueError, "`alternative` must be one of"),
        ({"window": 1}, ValueError, "`window` must be at least 2, got 1"),
        ({"window": 2.0}, TypeError, "`window` must be an integer, got 2.0"),
        ({"min_bounds": -1}, ValueError, "`min_bounds` must be at least 0, got -1"),
        ({"patience": 0}, ValueError, "`patience` must be at least 1, got 0"),
        ({"noise": 0}, ValueError, "`noise` must be positive, got 0"),
        ({"gp": 3}, TypeError, "`gp` must be a GaussianProcess, got 3"),
        ({"horizon": 50}, ValueError, "`horizon` needs sequential=True, got 50"),
        ({"sequential": 1}, TypeError, "`sequential` must be True or False, got 1"),
        ({"sequential": True, "window": 9}, ValueError, "`sequential` needs alternative='less'"),
        ({"sequential": True, "method": "normal"}, ValueError, "an exact method"),
        ({"sequential": True, "alternative": "greater"}, ValueError, "got alternative='greater'"),
        ({"sequential": True, "horizon": 10**6}, ValueError, "`horizon` must be at most 10000"),
        ({"sequential": True, "alpha": 1e-9}, ValueError, "`alpha` of the sequential mode must be"),
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
        (
            lambda s: s.extend([1.0, math.inf]),
            ValueError,
            "`values` must be finite, got inf at ind",
        ),
        (
            lambda s: s.extend([[1.0]]),
            ValueError,
            r"`values` must have one axis, got shape \(1, 1\)",
        ),
        (lambda s: s.extend(["a"]), TypeError, "`values` must hold real numbers"),
        (lambda s: s.update(0.0, -1.0, 0.0, 1.0), ValueError, "`var` must not be negative, got -1"),
        (lambda s: s.update(0.0, 1.0, 0.0, 0.0), ValueError, "`noise` must be positive, got 0"),
        (lambda s: s.update(0.0, 1.0, math.nan, 1.0), ValueError, "`y` must be finite, got nan"),
        (lambda s: s.update(0.0, 1.0, 0.0), ValueError, "`noise` must be given"),
        (lambda s: s.update("a", 1.0, 0.0, 1.0), TypeError, "`mean` must hold real numbers"),
        (lambda s: s.update([0, 0], [1, 1, 1], 0.0, 1.0), ValueError, "do not fit together"),
        (lambda s: s.update([0, 0], [1, -2], 0.0, 1.0), ValueError, "`var` .* got -2.0 at index 1"),
        (lambda s: s.update(0.0, 1.0, 1e200, 1.0), ValueError, "the bound of label 0 overflows"),
    ],
)
def test_bad_bounds_change_nothing(call, error, message):
    stopper = Stopper()
    stopper.extend([3.0, 1.0, 2.0])
    with pytest.raises(error, match=message):
        call(stopper)
    assert stopper.bounds.tolist() == [3.0, 1.0, 2.0]
    assert stopper.push(4.0) is False
    assert len(stopper) == 4


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


def test_many_streams_on_any_number_of_threads():
    x = np.random.default_rng(5).standard_normal((500, 80))
    x[::3, :15] += 4
    expected = [stopping_time(row, 0.01) or -1 for row in x]
    for threads in (None, 1, 2, 7):
        assert stopping_time(x, 0.01, threads=threads).tolist() == expected
    assert stopping_time(np.asfortranarray(x)[:, ::-1], 0.01).shape == (500,)
    assert stopping_time(np.empty((0, 5))).tolist() == []
    assert stopping_time(np.empty((3, 0))).tolist() == [-1, -1, -1]
    # ties, and a window longer and shorter than the rows
    t = np.random.default_rng(6).integers(0, 4, (200, 60)).astype(float)
    for settings in ({}, {"window": 20}, {"window": 200}, {"method": "normal"}):
        rows = stopping_time(t, 0.05, **settings)
        assert rows.tolist() == [stopping_time(row, 0.05, **settings) or -1 for row in t]
    with pytest.raises(
        ValueError, match=r"`bounds` must have one or two axes, got shape \(1, 1, 1\)"
    ):
        stopping_time([[[1.0]]])
    with pytest.raises(ValueError, match=r"`bounds` must be finite, got nan at index \(1, 0\)"):
        stopping_time([[1.0, 2.0], [math.nan, 1.0]])
    with pytest.raises(ValueError, match="`threads` must be at least 1, got 0"):
        stopping_time(x, threads=0)


def test_batch():
    x = np.random.default_rng(5).standard_normal((60, 4))
    x[:15, 0] += 5
    batch = StopperBatch(4, 0.01, min_bounds=10)
    singles = [Stopper(0.01, min_bounds=10) for _ in range(4)]
    where = np.array([True, True, False, True])
    for t, row in enumerate(x):
        if t == 30:
            batch.reset(1)
            singles[1].reset()
            batch.reset([3])
            singles[3].reset()
        mask = batch.push(row, where=None if t % 3 else where)
        for i, single in enumerate(singles):
            if t % 3 or where[i]:
                single.push(row[i])
            assert mask[i] == single.stopped
    assert batch.stopped_at.tolist() == [s.stopped_at or -1 for s in singles]
    assert batch.n.tolist() == [len(s) for s in singles]
    assert batch.n_runs.tolist() == [s.n_runs for s in singles]
    assert batch.median.tolist() == [s.median for s in singles]
    assert (batch.stopped == mask).all()
    assert len(batch) == 4
    assert repr(batch).startswith("StopperBatch(4 streams, ")
    # a value that is not finite does not matter where nobody looks
    batch.push([1.0, math.nan, 1.0, 1.0], where=[True, False, True, True])
    batch.reset()
    assert batch.n.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda b: b.push([1.0]), ValueError, r"`values` must have shape \(2,\), got \(1,\)"),
        (
            lambda b: b.push([1.0, math.nan]),
            ValueError,
            "`values` must be finite, got nan at index 1",
        ),
        (lambda b: b.push([1.0, 2.0], [1, 0]), ValueError, "`where` must hold 2 booleans"),
        (lambda b: b.push([1.0, 2.0], [True]), ValueError, "`where` must hold 2 booleans"),
        (lambda b: b.reset(2), ValueError, r"`streams` must be in \[0, 2\), got 2"),
        (lambda b: b.reset(-1), ValueError, r"`streams` must be in \[0, 2\), got -1"),
        (lambda b: b.reset([0.5]), TypeError, "`streams` must be an index or indices"),
        (lambda b: b.bounds(2), ValueError, r"`stream` must be in \[0, 2\), got 2"),
        (lambda b: StopperBatch(0), ValueError, "`n_streams` must be at least 1, got 0"),
        (lambda b: StopperBatch(2, gp=None), TypeError, "`gp` is not an argument of StopperBatch"),
    ],
)
def test_bad_batches_change_nothing(call, error, message):
    batch = StopperBatch(2)
    batch.push([1.0, 2.0])
    with pytest.raises(error, match=message):
        call(batch)
    assert batch.n.tolist() == [1, 1]


def test_two_threads_on_one_stopper_do_not_crash():
    stopper, refused = Stopper(), []

    def work():
        for value in np.random.default_rng(0).standard_normal(20_000).tolist():
            try:
                stopper.push(value)
            except RuntimeError as error:
                refused.append(str(error))

    def fill():
        for _ in range(20):
            try:
                stopper.extend(np.zeros(50_000))
            except RuntimeError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=target) for target in (work, work, fill)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(refused) <= {"the tracker is in use by another thread"}
    stopper.reset()
    assert stopper.extend(SEQUENCES["shift"]) == stopping_time(SEQUENCES["shift"])


@given(st.lists(st.one_of(st.integers(0, 3).map(float), st.floats(-1e3, 1e3)), max_size=60))
def test_any_history(x):
    stopper = Stopper(0.05)
    assert stopper.extend(x) == stopping_time(x, 0.05)
    assert fastal.jit.stopping_time(np.array(x, dtype=float), 0.05) == (stopper.stopped_at or -1)
    text = str(stopper.verdict)
    assert text.startswith(("stop after", "go on", "too early"))


class StopperMachine(RuleBasedStateMachine):
    """Any way in, snapshots and resets, against a plain list of bounds."""

    @initialize(settings=st.sampled_from(SETTINGS))
    def start(self, settings):
        self.settings = settings
        self.criterion = Stopper(**settings, noise=0.5)
        self.bounds = []

    @rule(r=st.one_of(st.integers(0, 2).map(float), st.floats(-1e6, 1e6)))
    def push(self, r):
        self.criterion.push(r)
        self.bounds.append(r)

    @rule(rs=st.lists(st.integers(0, 5).map(float), max_size=15))
    def extend(self, rs):
        self.criterion.extend(rs)
        self.bounds += rs

    @rule(y=st.floats(-5, 5))
    def update(self, y):
        self.criterion.update(0.0, 1.0, y)
        self.bounds.append(bound_scalar.gp_kl(0.0, 1.0, y, 0.5))

    @rule(how=st.sampled_from([copy.deepcopy, lambda s: Stopper.from_dict(s.to_dict())]))
    def snapshot(self, how):
        self.criterion = how(self.criterion)

    @rule()
    def reset(self):
        self.criterion.reset()
        self.bounds = []

    @invariant()
    def equals_the_pure_function(self):
        if hasattr(self, "stopper"):
            assert self.criterion.bounds.tolist() == self.bounds
            assert self.criterion.stopped_at == stopping_time(self.bounds, **self.settings)


TestStopperMachine = StopperMachine.TestCase


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_integers_that_no_double_can_hold(value):
    stopper = Stopper(noise=0.1)
    stopper.push(1)
    said = "must be finite as a double, got -?1000"
    with pytest.raises(ValueError, match=f"`r` {said}"):
        stopper.push(value)
    for arguments, name in (
        ((0.0, 1.0, value), "y"),
        ((value, 1.0, 0.0), "mean"),
        ((0.0, 1.0, 0.0, abs(value)), "noise"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` {said}"):
            stopper.update(*arguments)
    with pytest.raises(ValueError, match="`var` "):
        stopper.update(0.0, value, 0.0)
    with pytest.raises(ValueError, match=f"`values` {said}"):
        stopper.extend([1.0, value])
    with pytest.raises(ValueError, match=f"`values` {said}"):
        StopperBatch(2).push([1.0, value])
    with pytest.raises(ValueError, match=f"`bounds` {said}"):
        stopping_time([1.0, value])
    assert stopper.bounds.tolist() == [1.0]


def test_a_lent_tracker_is_left_alone():
    stopper = Stopper()
    stopper.extend(np.arange(5.0))
    tracker = stopper._tracker
    assert tracker.lend() != 0
    for use in (
        lambda: stopper.push(1.0),
        lambda: stopper.extend([1.0]),
        lambda: stopper.update(0.0, 1.0, 0.5, 0.1),
        lambda: stopper.bounds,
        lambda: stopper.p_value,
        lambda: stopper.verdict,
        lambda: stopper.copy(),
        lambda: stopper.reset(),
        lambda: stopper.to_dict(),
        lambda: tracker.lend(),
    ):
        with pytest.raises(RuntimeError, match="in use by another thread"):
            use()
    tracker.take_back()
    assert stopper.bounds.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
