"""Rejections that count only if the bounds fell, against the slow twin after every bound."""

import json
import pickle

import numpy as np
import pytest
import twins
from fastal._core.tracker import RunsTracker
from fastal.stopping.compose import AllOf
from hypothesis import example, given
from hypothesis import strategies as st

from fastal import (
    GaussianProcess,
    MinLabels,
    Stopper,
    jit,
    learn,
    runs_test,
    simulate,
    stopping_time,
)

rng = np.random.default_rng(17)
T = np.arange(100.0)

STREAMS = {
    "a drop": np.where(T < 20, 5.0, 0.0) + rng.standard_normal(100),
    "a rise": np.where(T < 20, 0.0, 5.0) + rng.standard_normal(100),
    "rises for ever": T,
    "falls for ever": -T,
    "equal means": np.r_[np.zeros(25), np.ones(50), np.zeros(25)],
    "a hump, then a drop": np.r_[np.zeros(15), np.ones(30), np.full(55, -1.0)] + T * 1e-9,
    "up and down": np.sin(T / 12),
    "ties": rng.integers(0, 3, 100).astype(float),
    "tied drop": np.where(T < 30, 2.0, 1.0),
    "tied rise": np.where(T < 30, 1.0, 2.0),
    "one value": np.ones(100),
    "noise": rng.random(100),
}

SETTINGS = [
    {},
    {"alpha": 0.05},
    {"alpha": 0.05, "window": 15},
    {"alpha": 0.05, "patience": 3},
    {"alpha": 0.05, "window": 24, "patience": 2, "min_bounds": 40},
    {"alpha": 0.05, "method": "normal"},
    {"alpha": 0.05, "alternative": "two-sided"},
    {"alpha": 0.05, "alternative": "greater"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("fall", [False, True])
def test_equals_the_slow_twin(name, settings, fall):
    x = STREAMS[name]
    expected = twins.stopping_time(x, fall=fall, **settings)
    stopper, batch = Stopper(fall=fall, **settings), StopperBatch(2, fall=fall, **settings)
    for n, value in enumerate(x.tolist(), 1):
        stopped = stopper.push(value)
        assert stopped == (expected is not None and n >= expected)
        assert batch.push([value, 0.0]).tolist() == [stopped, False]
        if n % 30 == 0:
            stopper = stopper.copy()
    assert stopper.stopped_at == expected
    assert stopping_time(x, fall=fall, **settings) == expected
    rows = stopping_time([x] * 9, fall=fall, **settings)  # with a table of critical counts
    assert rows.tolist() == [expected or -1] * 9


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("window", [0, 2, 3, 20])
def test_fell_after_every_value(name, window):
    tracker = RunsTracker(0.05, 0, window, fall=True)
    x = STREAMS[name]
    for n in range(1, len(x) + 1):
        counts = tracker.push(x[n - 1])
        tested = x[max(0, n - window) if window else 0 : n]
        assert tracker.fell == twins.fell(tested)
        assert tracker.rose == (not tracker.fell and not equal_means(tested))
        assert counts == (tracker.rejects and tracker.fell)


def equal_means(x):
    sides, places = x >= np.median(x), np.arange(len(x))
    below, above = int((~sides).sum()), int(sides.sum())
    return places[sides].sum() * below == places[~sides].sum() * above


# Few values, so that they tie; a window below the length, so that values leave it.
FEW = st.lists(st.integers(0, 4).map(float), min_size=2, max_size=60)
ANY = st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=60)


@given(FEW | ANY, st.sampled_from([None, 2, 3, 7, 16]), st.integers(1, 3), st.integers(2, 59))
@example([1.0] * 8 + [5.0] * 8 + [1.0] * 8, None, 1, 20)
def test_random_streams(x, window, patience, cut):
    settings = {"alpha": 0.2, "window": window, "patience": patience}
    expected = twins.stopping_time(x, **settings)
    stopper = Stopper(**settings)
    stopper.extend(x[:cut])
    stopper = Stopper.from_dict(json.loads(json.dumps(stopper.to_dict())))
    stopper.extend(x[cut:])
    assert stopper.stopped_at == stopping_time(x, **settings) == expected
    assert stopper._tracker.fell == twins.fell(x[-window:] if window else x)
    letter = stopping_time(x, fall=False, **settings)
    assert expected is None or (letter is not None and letter <= expected)


def test_what_does_not_fall_does_not_stop():
    risen = STREAMS["tied rise"]
    assert stopping_time(risen, fall=False) is not None
    stopper = Stopper()
    assert stopper.extend(risen[:60]) is None
    assert stopper.p_value < 1e-3
    assert stopper.verdict.stop is False
    assert str(stopper.verdict) == f"go on: 2 runs, p = {stopper.p_value:.1e}, but the bounds rose"
    hump = Stopper()
    hump.extend(STREAMS["equal means"])
    assert str(hump.verdict).endswith(", but the bounds did not fall")
    # the other alternatives do not ask
    assert stopping_time(risen, alternative="two-sided") == stopping_time(
        risen, alternative="two-sided", fall=False
    )
    two_sided = Stopper(alternative="two-sided", patience=100)
    two_sided.extend(risen)
    assert "rose" not in str(two_sided.verdict)


def test_patience_counts_rejections_that_count():
    # looks reject from the start, but the first 30 bounds rise; then they fall below all that was
    x = np.r_[np.arange(30.0), -np.arange(1.0, 60.0)]
    first = twins.stopping_time(x, 0.05)
    assert first > 30
    assert stopping_time(x, 0.05, fall=False) < 10
    assert stopping_time(x, 0.05) == first
    assert stopping_time(x, 0.05, patience=5) == twins.stopping_time(x, 0.05, patience=5)
    assert stopping_time(x, 0.05, patience=5) >= first + 4


def test_compiled_stoppers_ask_for_a_fall():
    for x in STREAMS.values():
        expected = twins.stopping_time(x, 0.01)
        assert jit.stopping_time(x, 0.01) == (expected or -1)
        handle = jit.stopper_new(0.01)
        stops = [jit.stopper_push(handle, value) for value in x]
        jit.stopper_free(handle)
        assert (stops.index(True) + 1 if any(stops) else None) == expected


def test_a_million_rising_bounds_stay_exact():
    # the places of half of them sum up to 4e11
    n = 1_000_000
    tracker = RunsTracker(1e-3, fall=True)
    out = np.empty(n, dtype=np.uint8)
    tracker.extend(np.arange(float(n)), out)
    assert not out.any()
    assert tracker.rejects
    assert tracker.rose
    tracker.reset()
    tracker.extend(-np.arange(float(n)), out)
    assert tracker.fell
    assert out.argmax() + 1 == 14


def test_in_learn_simulate_and_compositions():
    X = np.linspace(0, 10, 60)[:, None]
    y = np.sin(X[:, 0]) * (X[:, 0] > 5)
    gp = GaussianProcess(0.7, 1e-3)
    for fall in (False, True):
        run = learn(X, y, gp=gp, criterion=Stopper(0.05, fall=fall), seed=0)
        assert len(run.bounds) == (twins.stopping_time(run.bounds, 0.05, fall=fall) or 59)
        many = simulate(X, y, gp=gp, criterion=Stopper(0.05, fall=fall), n_runs=8, test=None)
        for bounds, stop in zip(many.bounds, many.stopped_at, strict=True):
            at = twins.stopping_time(bounds[~np.isnan(bounds)], 0.05, fall=fall)
            assert stop == (-1 if at is None else at + 1)
    rule = AllOf(Stopper(0.05), MinLabels(5))
    assert rule.extend(T) is None


def test_settings_and_states():
    assert Stopper().fall is True
    assert repr(Stopper(fall=False)) == "Stopper(fall=False)"
    risen = Stopper()
    risen.extend(STREAMS["a rise"])
    assert not risen.stopped
    for twin in (
        risen.copy(),
        pickle.loads(pickle.dumps(risen)),
        Stopper.from_dict(risen.to_dict()),
    ):
        assert (twin.fall, twin.stopped_at, twin.reason) == (True, None, risen.reason)
    letter = Stopper(fall=False)
    assert letter.extend(risen.bounds) == stopping_time(risen.bounds, fall=False) < 60
    for bad in (1, None, "yes"):
        with pytest.raises(TypeError, match="`fall` must be True or False"):
            Stopper(fall=bad)
        with pytest.raises(TypeError, match="`fall` must be True or False"):
            stopping_time(T, fall=bad)
        with pytest.raises(TypeError, match="`fall` must be True or False"):
            StopperBatch(2, fall=bad)


# What Stopper(0.01, patience=2) with three bounds wrote in version 0.1.0.
OF_0_1 = {
    "kind": "Stopper", "version": 1, "alpha": 0.01, "method": "auto", "alternative": "less",
    "sequential": False, "horizon": None, "window": None, "min_bounds": None, "patience": 2,
    "noise": None, "gp": None, "bounds": [1.0, 3.0, 2.0],
}  # fmt: skip


def test_states_of_0_1_keep_to_the_letter_of_the_paper():
    old = Stopper.from_dict(OF_0_1)
    assert old.fall is False
    assert (old.alpha, old.patience, old.bounds.tolist()) == (0.01, 2, [1.0, 3.0, 2.0])
    state = Stopper().to_dict()
    assert state["version"] == 2
    del state["fall"]
    with pytest.raises(ValueError, match="`state` lacks 'fall'"):
        Stopper.from_dict(state)
    # a composition of then holds stoppers of then
    both = {"kind": "AllOf", "version": 1, "members": [OF_0_1, MinLabels(3).to_dict()]}
    assert [getattr(c, "fall", None) for c in AllOf.from_dict(both).members] == [False, None]


def test_the_test_itself_is_as_before():
    # p-value, counts and critical runs do not depend on `fall`
    for x in STREAMS.values():
        with_fall, letter = Stopper(min_bounds=1000), Stopper(min_bounds=1000, fall=False)
        with_fall.extend(x)
        letter.extend(x)
        assert (
            with_fall.p_value
            == letter.p_value
            == runs_test(x, cutoff="median", alternative="less").pvalue
        )
        assert with_fall.verdict.critical_runs == letter.verdict.critical_runs
        assert with_fall.earliest_stop == letter.earliest_stop
