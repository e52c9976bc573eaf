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

from fastal import Stopper, stopping_time
from fastal.jit import stopper_free, stopper_new, stopper_push, stopper_reset
from fastal.runs import false_stop_probability

from ._inside import inside
from ._timing import best, ratio

RunsTracker = inside("RunsTracker", "fastal._core.tracker", "fastal._core.runs")

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
    start = Stopper(noise=0.01)
    start.extend(_values(BLOCK))
    values = _values(BLOCK, 1).tolist()

    def body(stopper):
        push = stopper.push
        for value in values:
            push(value)

    return _after_a_thousand(start.copy, body)


def _tracker_seconds():
    start = RunsTracker()
    start.extend(_values(BLOCK), np.empty(BLOCK, dtype=np.uint8))
    values = _values(BLOCK, 1).tolist()

    def body(tracker):
        push = tracker.push
        for value in values:
            push(value)

    return _after_a_thousand(start.copy, body)


def _update_seconds():
    start = Stopper(noise=0.01)
    start.extend(_values(BLOCK) ** 2)
    labels = _values(BLOCK, 1).tolist()

    def body(stopper):
        update = stopper.update
        for y in labels:
            update(0.1, 0.5, y)

    return _after_a_thousand(start.copy, body)


class Decision:
    """A decision after a thousand bounds: a thousand times for fastal, once for the others."""

    params = (["push", "update", "reference", "statsmodels"],)
    param_names = ("implementation",)
    number = 1  # a push changes the state
    warmup_time = 0

    def setup(self, implementation):
        if implementation == "statsmodels" and runstest_1samp is None:
            raise NotImplementedError("statsmodels is not installed")
        x, labels = _values(BLOCK), _values(BLOCK, 1).tolist()
        stopper = Stopper(noise=0.01)
        stopper.extend(x)
        self.body = {
            "push": lambda: [stopper.push(value) for value in labels],
            "update": lambda: [stopper.update(0.1, 0.5, y) for y in labels],
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


def track_push_over_the_tracker():
    """At most 2."""
    return _push_seconds() / _tracker_seconds()


track_push_over_the_tracker.unit = "ratio"


def track_update_over_push():
    """At most 4."""
    return _update_seconds() / _push_seconds()


track_update_over_push.unit = "ratio"


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
        stopped = stopper_push(handle, value)
    return stopped


def track_compiled_push_over_the_c_loop():
    """At most 1.3: a thousand bounds from empty."""
    values, out = _values(BLOCK), np.empty(BLOCK, dtype=np.uint8)
    handle, tracker = stopper_new(1e-3), RunsTracker()

    def compiled():
        stopper_reset(handle)
        _push_all(handle, values)

    def plain():
        tracker.reset()
        tracker.extend(values, out)

    try:
        return ratio(compiled, plain)
    finally:
        stopper_free(handle)


track_compiled_push_over_the_c_loop.unit = "ratio"


class LockStep:
    params = (["StopperBatch", "Stoppers"], [1_000])
    param_names = ("implementation", "streams")
    number = 1  # a push changes the state
    warmup_time = 0

    def setup(self, implementation, streams):
        self.batch = StopperBatch(streams)
        self.stoppers = [Stopper() for _ in range(streams)]
        self.rows = itertools.cycle(_values(100 * streams).reshape(100, streams))

    def time_push(self, implementation, streams):
        row = next(self.rows)
        if implementation == "StopperBatch":
            self.batch.push(row)
        else:
            for stopper, value in zip(self.stoppers, row.tolist(), strict=True):
                stopper.push(value)


def track_bytes_a_bound():
    """At most 72, at 2^20 bounds."""
    stopper = Stopper()
    stopper.extend(_values(2**20))
    return stopper._tracker.nbytes / 2**20


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
            "patience=3",
            "min_bounds=30",
            "window=50",
            "window=30",
            "normal",
            "two-sided",
        ],
        [20_000, 400_000],
    )
    param_names = ("option", "streams")

    def track_percent_stopped(self, option, streams):
        name, _, value = option.partition("=")
        settings = {name: int(value)} if value else {}
        if name == "fall":
            settings = {"fall": False}
        if option == "normal":
            settings = {"method": option}
        elif option == "two-sided":
            settings = {"alternative": option}
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
