"""The stopper: what a decision costs from Python, from compiled code and for many streams."""

import itertools
import subprocess
import sys
from importlib.util import find_spec
from statistics import median
from time import perf_counter

import numpy as np
import twins
from numba import njit

from fastal import FixedBudget, Stopper, stopping_time
from fastal.bound import gp_kl

from ._inside import inside
from ._timing import best, ratio

# until 0.2 in the module `fastal` itself
false_stop_probability = inside("false_stop_probability", "fastal.runs", "fastal")
# since 0.3
Rule = inside("Rule", "fastal._core.rule")
Streams = inside("Streams", "fastal", "fastal.stopping")
jit_push, jit_reset = (inside(name, "fastal.jit") for name in ("push", "reset"))

if find_spec("statsmodels") is None:
    runstest_1samp = None
else:  # not in a try: a statsmodels without it is a failure to see
    from statsmodels.sandbox.stats.runs import runstest_1samp

BLOCK = 1000


def _values(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def _after_a_thousand(prepare, body, rounds=25):
    """Return the least time of `body`, for a thousand values after a thousand, and its result."""
    least = float("inf")
    for _ in range(rounds):
        state = prepare()
        begin = perf_counter()
        body(state)
        least = min(least, perf_counter() - begin)
    return least / BLOCK


def _criterion_seconds(start, n=BLOCK):
    """Return the seconds of a push, of a thousand after n bounds; none of them stops."""
    start.extend(_values(n))
    values = _values(BLOCK, 1).tolist()
    if start.copy().extend(values):
        raise RuntimeError("it stopped: a push after a stop does less")

    def body(criterion):
        push = criterion.push
        for value in values:
            push(value)

    return _after_a_thousand(start.copy, body)


def _push_seconds():
    return _criterion_seconds(Stopper())


def _append_seconds():
    values = _values(BLOCK, 1).tolist()

    def body(bounds):
        append = bounds.append
        for value in values:
            append(value)

    return _after_a_thousand(lambda: _values(BLOCK).tolist(), body)


def _bound_and_push_seconds():
    start = Stopper()
    start.extend(_values(BLOCK) ** 2)
    labels = _values(BLOCK, 1).tolist()

    def body(stopper):
        push = stopper.push
        for y in labels:
            push(gp_kl(0.1, 0.5, y, 0.01))

    return _after_a_thousand(start.copy, body)


class Decision:
    """A decision after a thousand bounds: a thousand times for fastal, once for the others."""

    params = (["push", "bound and push", "reference", "statsmodels"],)
    param_names = ("implementation",)
    number = 1  # a push changes the state
    warmup_time = 0

    def setup(self, implementation):
        if implementation == "statsmodels" and runstest_1samp is None:
            raise NotImplementedError("statsmodels is not installed")
        x, labels = _values(BLOCK), _values(BLOCK, 1).tolist()
        stopper = Stopper()
        stopper.extend(x)
        self.body = {
            "push": lambda: [stopper.push(value) for value in labels],
            "bound and push": lambda: [stopper.push(gp_kl(0.1, 0.5, y, 0.01)) for y in labels],
            "reference": lambda: twins.runs_test(x, alternative="less") <= 1e-3,
            "statsmodels": lambda: runstest_1samp(x)[1] <= 1e-3,
        }[implementation]

    def time_decision(self, implementation):
        self.body()


class Push:
    def setup(self):
        if runstest_1samp is None:
            raise NotImplementedError("statsmodels is not installed")

    def track_statsmodels_over_push(self):
        """At least 700 at T = 1,000."""
        x = _values(BLOCK)
        return best(lambda: runstest_1samp(x)) / _push_seconds()

    track_statsmodels_over_push.unit = "ratio"


# What is pushed from Python; none of them stops.
PUSHED = {
    "Stopper": lambda: Stopper(),
    "Stopper | FixedBudget": lambda: Stopper() | FixedBudget(10**9),
}


class PushFromPython:
    """A push of a thousand in a loop, after so many bounds."""

    params = (list(PUSHED), [50, 1_000, 10_000])
    param_names = ("criterion", "bounds")

    def track_push_over_append(self, criterion, bounds):
        """About 3 for a Stopper, over `list.append` in the same loop."""
        return _criterion_seconds(PUSHED[criterion](), bounds) / _append_seconds()

    track_push_over_append.unit = "ratio"

    def track_nanoseconds_a_push(self, criterion, bounds):
        """Below 500."""
        return 1e9 * _criterion_seconds(PUSHED[criterion](), bounds)

    track_nanoseconds_a_push.unit = "ns"


def track_push_of_a_short_combination():
    """Below 500 ns: `Stopper() | FixedBudget(200)` up to its stop at 200 bounds."""
    values = _values(200).tolist()
    rule = Stopper() | FixedBudget(200)

    def call():
        push = rule.reset().push
        for value in values:
            push(value)

    return 1e9 * best(call) / len(values)


track_push_of_a_short_combination.unit = "ns"


def track_bound_and_push_over_push():
    """At most 4."""
    return _bound_and_push_seconds() / _push_seconds()


track_bound_and_push_over_push.unit = "ratio"


RUNS = ("runs", 1e-3, 0, False, True, 0)  # of a Stopper


class Histories:
    """Streams of 100 bounds in one call."""

    params = ([10_000, 100_000], [1, 2])
    param_names = ("streams", "threads")

    def setup(self, streams, threads):
        self.x = _values(100 * streams).reshape(streams, 100)

    def time_stopping_time(self, streams, threads):
        stopping_time(self.x, threads=threads)


class HistoriesRatio:
    params = ([10_000, 100_000],)
    param_names = ("streams",)

    def setup(self, streams):
        self.x = _values(100 * streams).reshape(streams, 100)

    def track_million_bounds_a_second_a_core(self, streams):
        """At least 10."""
        seconds = best(lambda: stopping_time(self.x, 1e-9, threads=1), rounds=5)
        return self.x.size / seconds / 1e6

    track_million_bounds_a_second_a_core.unit = "million/s"

    def track_one_thread_over_two(self, streams):
        """At least 1.8."""
        return ratio(
            lambda: stopping_time(self.x, threads=1),
            lambda: stopping_time(self.x, threads=2),
            rounds=5,
        )

    track_one_thread_over_two.unit = "ratio"


def track_compiled_push_over_the_c_loop():
    """At most 1.3: a thousand bounds from empty."""
    values, streams = _values(BLOCK), Streams(Stopper(), 1)
    handle, rule = streams.handle, Rule(RUNS)

    @njit
    def push_all(handle, values):
        jit_reset(handle, 0)
        stopped = False
        for value in values:
            stopped = jit_push(handle, 0, value)
        return stopped

    def plain():
        rule.reset()
        rule.extend(values)

    return ratio(lambda: push_all(handle, values), plain)


track_compiled_push_over_the_c_loop.unit = "ratio"


class LockStep:
    params = (["Streams", "Stoppers"], [1_000])
    param_names = ("implementation", "streams")
    number = 1  # a push changes the state
    warmup_time = 0

    def setup(self, implementation, streams):
        self.streams = Streams(Stopper(), streams)
        self.stoppers = [Stopper() for _ in range(streams)]
        self.rows = itertools.cycle(_values(100 * streams).reshape(100, streams))

    def time_push(self, implementation, streams):
        row = next(self.rows)
        if implementation == "Streams":
            self.streams.push(row)
        else:
            for stopper, value in zip(self.stoppers, row.tolist(), strict=True):
                stopper.push(value)


class Many:
    """Rounds over many live streams, which all get a bound."""

    params = ([(5_000, 1_000), (25_000, 200), (100_000, 50)],)
    param_names = ("streams, bounds",)
    timeout = 300

    def setup(self, size):
        n_streams, n = size
        self.values = np.random.default_rng(0).standard_normal((n, n_streams))

    def _seconds(self, criterion):
        def rounds():
            streams = Streams(criterion, self.values.shape[1])
            for values in self.values:
                streams.push(values)

        return best(rounds, rounds=2)

    def track_nanoseconds_a_bound(self, size):
        """`Streams(Stopper(), n).push`."""
        return 1e9 * self._seconds(Stopper()) / self.values.size

    track_nanoseconds_a_bound.unit = "ns"

    def track_nanoseconds_a_bound_of_a_combination(self, size):
        """`Streams(Stopper() | FixedBudget(200), n).push`."""
        return 1e9 * self._seconds(Stopper() | FixedBudget(200)) / self.values.size

    track_nanoseconds_a_bound_of_a_combination.unit = "ns"


def track_bytes_a_bound():
    """At most 72, at 2^20 bounds."""
    stopper = Stopper()
    stopper.extend(_values(2**20))
    return stopper._rule.nbytes / 2**20


track_bytes_a_bound.unit = "bytes"


def track_first_push_over_import_numpy():
    """At most 1.5, in fresh interpreters."""
    statements = ["import fastal; fastal.Stopper().push(1.0)", "import numpy"]
    seconds = [[], []]
    for _ in range(9):
        for statement, times in zip(statements, seconds, strict=True):
            begin = perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            times.append(perf_counter() - begin)
    return median(seconds[0]) / median(seconds[1])


track_first_push_over_import_numpy.unit = "ratio"


class FalseStopsOfOptions:
    """What each option does to the chance of stopping within 100 random bounds."""

    params = (["plain", "fall=False", "normal"], [20_000, 400_000])
    param_names = ("option", "streams")

    def track_percent_stopped(self, option, streams):
        settings = {"fall=False": {"fall": False}, "normal": {"method": "normal"}}
        x = np.random.default_rng(21).random((streams, 100))
        return 100 * (stopping_time(x, 1e-3, **settings.get(option, {})) > 0).mean()

    track_percent_stopped.unit = "percent"


class FalseStops:
    """Share of random streams of 100 bounds that stop, over what the tables say."""

    params = (["plain", "sequential with horizon", "sequential"], [0.01])
    param_names = ("mode", "alpha")

    def track_share_over_expected(self, mode, alpha):
        """About 1; the mode without a horizon keeps its share for later bounds."""
        x = np.random.default_rng(7).random((200_000, 100))
        if mode == "plain":
            return (stopping_time(x, alpha) > 0).mean() / false_stop_probability(alpha, 100)
        horizon = 100 if "horizon" in mode else None
        return (stopping_time(x, alpha, sequential=True, horizon=horizon) > 0).mean() / alpha

    track_share_over_expected.unit = "ratio"
