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

from fastal import Stopper, false_stop_probability, stopping_time

from ._inside import inside
from ._timing import best, ratio

# since 0.3
Streams = inside("Streams", "fastal")
push, reset = (inside(name, "fastal.jit") for name in ("push", "reset"))
Rule = inside("Rule", "fastal._core.rule")

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


def _push_seconds():
    start = Stopper()
    start.extend(_values(BLOCK))
    values = _values(BLOCK, 1).tolist()

    def body(stopper):
        push = stopper.push
        for value in values:
            push(value)

    return _after_a_thousand(start.copy, body)


class Decision:
    """A decision after a thousand bounds: a thousand times for fastal, once for the others."""

    params = (["push", "reference", "statsmodels"],)
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


def track_push_over_an_append():
    """At most 3, at 1,000 bounds: `list.append` in the same loop."""
    values = _values(BLOCK, 1).tolist()

    def body(items):
        append = items.append
        for value in values:
            append(value)

    return _push_seconds() / _after_a_thousand(list, body)


track_push_over_an_append.unit = "ratio"


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


@njit
def _push_all(handle, values):
    stopped = False
    for value in values:
        stopped = push(handle, 0, value)
    return stopped


def track_compiled_push_over_the_c_loop():
    """At most 1.5: a thousand bounds from empty."""
    values, rule = _values(BLOCK), Rule(("runs", 1e-300, 0, False, True, 0))
    streams = Streams(Stopper(1e-300), 1)
    handle = streams.handle

    def compiled():
        reset(handle, 0)
        _push_all(handle, values)

    def plain():
        rule.reset()
        rule.extend(values)

    return ratio(compiled, plain)


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


def track_bytes_a_bound():
    """At most 20, at 2^20 bounds."""
    rule = Rule(("runs", 1e-3, 0, False, True, 0))
    rule.extend(_values(2**20))
    return rule.nbytes / 2**20


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

    params = (
        [
            "plain",
            "fall=0",
            "normal",
        ],
        [20_000, 400_000],
    )
    param_names = ("option", "streams")

    def track_percent_stopped(self, option, streams):
        settings = {"plain": {}, "fall=0": {"fall": False}, "normal": {"method": "normal"}}[option]
        x = np.random.default_rng(21).random((streams, 100))
        return 100 * (stopping_time(x, 1e-3, **settings) > 0).mean()

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
