"""The incremental tracker equals runs_test on the prefix after every single value."""

import math
import threading

import numpy as np
import pytest
import twins
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fastal import RunsDistribution, runs_test
from fastal._core.tracker import RunsTracker

AUTO, EXACT, NORMAL = 0, 1, 2


def sequences(n=300):
    rng = np.random.default_rng(7)
    i = np.arange(n, dtype=float)
    return {
        "random": rng.standard_normal(n),
        "falling": np.exp(-i / 40) * rng.lognormal(sigma=0.5, size=n),
        "level shift": np.where(i < 30, 5.0, 0.0) + rng.standard_normal(n),
        "few values": rng.integers(0, 4, n).astype(float),
        "equal": np.full(n, 2.5),
        "alternating": i % 2,
        "three values": i % 3,
        "sorted": i,
        "reversed": -i,
        "sawtooth": i % 17,
        "organ pipe": np.minimum(i, n - i),
        "outwards": np.where(i % 2 == 0, i, -i),
        "neighbours": 1.0 + (i * 7 % 5) * 2.0**-52,
        "denormal": (i * 7 % 11) * 5e-324,
        "huge": np.where(i % 3 == 0, 1.7e308, -1.7e308) * rng.random(n),
        "signed zeros": np.where(i % 2 == 0, 0.0, -0.0) * np.where(i % 5 == 0, 1, 0),
        "powers of two": 2.0 ** (i % 60 - 30),
        "one outlier": np.where(i == 0, 1e9, 1.0),
    }


def assert_equals_prefix(tracker, prefix, alpha):
    """Compare a tracker with runs_test of the values it tests."""
    expected = runs_test(prefix, cutoff="median", alternative="less")
    assert tracker.n_runs == expected.n_runs
    assert tracker.n_below == expected.n_below
    assert tracker.n_above == expected.n_above
    assert tracker.median == expected.cutoff
    assert tracker.p_value() == expected.pvalue
    assert tracker.rejects == (expected.pvalue <= alpha)


@pytest.mark.parametrize("name", sequences())
@pytest.mark.parametrize("window", [0, 2, 3, 25])
def test_equals_runs_test_after_every_value(name, window):
    x = sequences()[name]
    alpha = 0.01
    tracker = RunsTracker(alpha, AUTO, window)
    first = 0
    for n in range(1, len(x) + 1):
        rejects = tracker.push(x[n - 1])
        assert tracker.n_pushed == n
        if n >= 2:
            assert_equals_prefix(tracker, x[max(0, n - window) if window else 0 : n], alpha)
            assert rejects == tracker.rejects
        first = first or n * rejects
        assert tracker.stopped_at == first
    kept = np.empty(len(x))
    tracker.values(kept)
    assert (kept == x).all()


def test_equals_the_slow_twin():
    x = sequences(80)["few values"]
    tracker = RunsTracker(0.05)
    for n in range(1, len(x) + 1):
        tracker.push(x[n - 1])
        if n >= 2:
            for code, alternative in enumerate(["less", "greater", "two-sided"]):
                p = twins.runs_test(x[:n], alternative=alternative)
                assert tracker.p_value(code) == pytest.approx(p, rel=1e-13)


@pytest.mark.parametrize("alpha", [1e-9, 1e-4, 1e-3, 0.0056, 0.05, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_decision_without_the_tail_equals_the_tail(alpha):
    """The proof by monotonicity that saves most tails never changes a decision."""
    decisions = 0
    for x in sequences(400).values():
        tracker = RunsTracker(alpha, EXACT)
        out = np.empty(len(x), dtype=np.uint8)
        tracker.extend(x, out)
        for n in range(2, len(x) + 1, 7):
            p = runs_test(x[:n], cutoff="median", alternative="less", method="exact").pvalue
            assert out[n - 1] == (p <= alpha)
            decisions += int(out[n - 1])
    assert decisions or alpha < 1e-8


def test_monotonicity_behind_the_decision():
    # P(U <= u) falls when either count grows: by exact integers
    for n0 in range(1, 14):
        for n1 in range(1, 14):
            for u in range(2, 2 * min(n0, n1) + 2):
                p = twins.runs_cdf(u, n0, n1)
                assert twins.runs_cdf(u, n0 + 1, n1) <= p
                assert twins.runs_cdf(u, n0, n1 + 1) <= p


def test_earliest_stop_is_fourteen():
    # two halves far apart: DESIGN, alpha = 0.001 needs 14 values with the exact test, 13 with z
    def first(method):
        best = math.inf
        for k in range(1, 30):
            tracker = RunsTracker(1e-3, method)
            for i in range(60):
                tracker.push(float(-i) if i < k else -1000.0 - i)
            best = min(best, tracker.stopped_at or math.inf)
        return best

    assert (first(EXACT), first(NORMAL)) == (14, 13)
    assert RunsDistribution(7, 7).cdf(2) <= 1e-3 < RunsDistribution(6, 7).cdf(2)


def test_normal_method():
    x = sequences(200)["falling"]
    tracker = RunsTracker(0.01, NORMAL)
    for n in range(1, len(x) + 1):
        rejects = tracker.push(x[n - 1])
        if n >= 2:
            p = runs_test(x[:n], cutoff="median", alternative="less", method="normal").pvalue
            assert tracker.p_value() == p
            assert rejects == (p <= 0.01)


def test_extend_equals_pushes():
    for x in sequences().values():
        one, many = RunsTracker(0.01), RunsTracker(0.01)
        out = np.empty(len(x), dtype=np.uint8)
        many.extend(x[:100], out[:100])
        many.extend(x[100:100], out[100:100])
        many.extend(x[100:], out[100:])
        assert out.astype(bool).tolist() == [one.push(v) for v in x]
        assert (one.n_runs, one.median, one.stopped_at) == (
            many.n_runs,
            many.median,
            many.stopped_at,
        )


def test_empty_and_single():
    tracker = RunsTracker()
    assert (tracker.n_runs, tracker.p_value(), tracker.n_below, tracker.n_above) == (0, 1.0, 0, 0)
    assert math.isnan(tracker.median)
    assert tracker.rejects is False
    tracker.push(3.0)
    assert (tracker.n_runs, tracker.p_value(), tracker.median) == (1, 1.0, 3.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_change_nothing(value):
    tracker = RunsTracker()
    for v in (3.0, 1.0, 2.0):
        tracker.push(v)
    before = (tracker.n_pushed, tracker.n_runs, tracker.median, tracker.p_value())
    with pytest.raises(ValueError, match=f"`value` must be finite, got {value}"):
        tracker.push(value)
    with pytest.raises(ValueError, match=f"`values` must be finite, got {value} at index 1"):
        tracker.extend(np.array([1.0, value]), np.empty(2, dtype=np.uint8))
    assert (tracker.n_pushed, tracker.n_runs, tracker.median, tracker.p_value()) == before


def test_bad_calls():
    tracker = RunsTracker()
    with pytest.raises(ValueError, match="`out` must have length 3, got 2"):
        tracker.extend(np.zeros(3), np.empty(2, dtype=np.uint8))
    with pytest.raises(ValueError, match="`out` must have length 0, got 2"):
        tracker.values(np.empty(2))
    with pytest.raises(TypeError):
        tracker.push("three")


def test_memory_at_a_million():
    n = 2**20
    tracker = RunsTracker()
    tracker.extend(np.random.default_rng(0).standard_normal(n), np.empty(n, dtype=np.uint8))
    assert tracker.nbytes <= 64 * n
    # a window needs the recorded values and O(window) more
    tracker = RunsTracker(1e-3, AUTO, 100)
    tracker.extend(np.random.default_rng(0).standard_normal(n), np.empty(n, dtype=np.uint8))
    assert tracker.nbytes <= 8 * n + 64 * 512


def test_copy_and_reset():
    x = sequences()["random"]
    tracker = RunsTracker(0.05, AUTO, 40)
    for v in x[:150]:
        tracker.push(v)
    twin = tracker.copy()
    ahead = [tracker.push(v) for v in x[150:]]
    assert twin.n_pushed == 150
    assert [twin.push(v) for v in x[150:]] == ahead
    assert twin.stopped_at == tracker.stopped_at
    tracker.reset()
    assert (tracker.n_pushed, tracker.n_runs, tracker.stopped_at) == (0, 0, 0)
    fresh = RunsTracker(0.05, AUTO, 40)
    assert [tracker.push(v) for v in x] == [fresh.push(v) for v in x]
    assert RunsTracker().copy().n_pushed == 0


def test_two_threads_on_one_tracker_do_not_crash():
    tracker = RunsTracker()
    x = np.random.default_rng(0).standard_normal(200_000)
    outcomes = []

    def work():
        for _ in range(5):
            try:
                tracker.extend(x, np.empty(len(x), dtype=np.uint8))
                outcomes.append("done")
            except RuntimeError as error:
                outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 10
    assert set(outcomes) <= {"done", "the tracker is in use by another thread"}
    assert tracker.n_pushed == len(x) * outcomes.count("done")


def test_a_million_tied_values_cost_no_more_nodes():
    # ties are grouped: memory beyond the values themselves stays that of a few distinct values
    n = 10**6
    for x in (np.zeros(n), np.arange(n) % 2 * 1.0, np.arange(n) % 100 * 1.0):
        tracker = RunsTracker()
        tracker.extend(x, np.empty(n, dtype=np.uint8))
        assert tracker.nbytes <= 8 * 2**20 + 20_000
        assert tracker.n_runs == runs_test(x, cutoff="median").n_runs


class TrackerMachine(RuleBasedStateMachine):
    """Push, extend, copy and reset in any order; compare with runs_test each time."""

    @initialize(
        alpha=st.sampled_from([1e-3, 0.05, 0.5]),
        window=st.sampled_from([0, 0, 2, 5, 16]),
    )
    def start(self, alpha, window):
        self.alpha, self.window = alpha, window
        self.tracker = RunsTracker(alpha, AUTO, window)
        self.values = []

    @rule(
        value=st.one_of(
            st.integers(-2, 2).map(float),
            st.floats(allow_nan=False, allow_infinity=False),
            st.sampled_from([0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 1.0, 1.0 + 2.0**-52]),
        )
    )
    def push(self, value):
        self.values.append(value)
        self.tracker.push(value)

    @rule(values=st.lists(st.integers(0, 9).map(float), max_size=20))
    def extend(self, values):
        self.values += values
        self.tracker.extend(np.array(values, dtype=float), np.empty(len(values), dtype=np.uint8))

    @rule()
    def copy(self):
        old, self.tracker = self.tracker, self.tracker.copy()
        old.push(1.0)

    @rule()
    @precondition(lambda self: len(self.values) > 30)
    def reset(self):
        self.tracker.reset()
        self.values = []

    @invariant()
    def equals_runs_test(self):
        if not hasattr(self, "tracker"):
            return
        assert self.tracker.n_pushed == len(self.values)
        tested = self.values[-self.window :] if self.window else self.values
        if len(tested) >= 2:
            assert_equals_prefix(self.tracker, tested, self.alpha)


TestTrackerMachine = TrackerMachine.TestCase
