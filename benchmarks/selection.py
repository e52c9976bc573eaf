"""The rows of the report: fastal, what one would use without it, and what the machine allows.

Both sides of a row are measured in one run. A row is a function of the machine's limits; the set-up
is that of the benchmarks. Losses are rows like others.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from fastal import Stopper, stopping_time

from . import (
    _limits,
    bench_accuracy,
    bench_bound,
    bench_classifier,
    bench_defaults,
    bench_gp,
    bench_growth,
    bench_import,
    bench_learn,
    bench_paper,
    bench_runs,
    bench_simulate,
    bench_stopper,
)
from ._timing import best, ratio_of_pairs


class Limits(NamedTuple):
    """What the machine can do."""

    dgemm: float  # flops a second
    dgemv: float  # bytes a second, from the cache
    read: float  # bytes a second, from memory
    call: float  # seconds of an empty Python call

    @classmethod
    def measured(cls) -> Limits:
        return cls(
            _limits.dgemm_flops(),
            _limits.dgemv_bytes(),
            _limits.read_bytes(),
            _limits.empty_call(),
        )


class Row(NamedTuple):
    """One line of the table; times in seconds."""

    what: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    asked: float | None = None  # least value of peer / ours
    possible: float | None = None  # the time at the machine's limit
    limit: str = ""


class Tracked(NamedTuple):
    """One line of the second table."""

    what: str
    measured: float
    unit: str
    asked: str


def once(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    begin = perf_counter()
    call()
    return perf_counter() - begin


def in_turn(*calls: Callable[[], object], rounds: int = 5, seconds: float = 0.4) -> list[float]:
    """Return the least time of each call, a block of each a round: what is slow meets all."""
    least = [math.inf] * len(calls)
    for call in calls:
        call()
    for _ in range(rounds):
        for i, call in enumerate(calls):
            least[i] = min(least[i], best(call, rounds=3, seconds=seconds / 3))
    return least


def body(benchmark: type, method: str, *params: object) -> Callable[[], object]:
    """Return a `time_` method of a benchmark, set up for these parameters."""
    holder = benchmark()
    holder.setup(*params)
    return lambda: getattr(holder, method)(*params)


def decisions(limits: Limits) -> Iterator[Row]:
    """The runs test and the stopper."""
    x = bench_runs._values(1_000)
    statsmodels = best(lambda: bench_runs.runstest_1samp(x))
    y, noise = 0.4, 0.01

    def by_hand() -> None:
        bench_bound.numpy_expression(0.1, 0.5, y, noise)
        bench_runs.runstest_1samp(x)

    yield Row(
        "one more bound decided at T = 1,000, `Stopper.push`", bench_stopper._push_seconds(),
        statsmodels, "statsmodels", 700, limits.call, "empty call",
    )  # fmt: skip
    yield Row(
        "bound and decision of a label, `stopper.push(gp_kl(...))`",
        bench_stopper._bound_and_push_seconds(),
        best(by_hand), "NumPy and statsmodels", None, limits.call, "empty call",
    )  # fmt: skip
    yield Row(
        "every prefix of 10⁶ values decided",
        *in_turn(
            body(bench_runs.EveryPrefix, "time_every_prefix", "fastal", 1_000_000),
            body(bench_runs.EveryPrefix, "time_every_prefix", "argsort", 1_000_000),
        ),
        "`numpy.argsort`", 0.4,
    )  # fmt: skip
    few = x.reshape(10, 100)
    with np.errstate(all="ignore"):  # statsmodels divides by zero where there is one value
        prefixes = once(
            lambda: [bench_runs.runstest_1samp(row[:t]) for row in few for t in range(1, 101)]
        )
    streams = bench_stopper._values(10_000_000).reshape(100_000, 100)
    yield Row(
        "`stopping_time` of 10⁵ histories of 100 bounds",
        best(lambda: stopping_time(streams, 1e-9, threads=1), rounds=5),
        prefixes * len(streams) / len(few), "statsmodels on 10, scaled", None,
        streams.nbytes / limits.read, "reading them",
    )  # fmt: skip
    yield Row(
        "`runs_test` of 1,000 values, normal",
        *in_turn(
            lambda: bench_runs.runs_test(x, method="normal"), lambda: bench_runs.runstest_1samp(x)
        ),
        "statsmodels", 25, limits.call, "empty call",
    )  # fmt: skip
    yield Row(
        "exact p-value of 500 + 500 values",
        *in_turn(
            body(bench_runs.ExactTail, "time_exact_tail", "fastal", 500),
            body(bench_runs.ExactTail, "time_exact_tail", "comb", 500),
        ),
        "sum over `math.comb`", 1_000, limits.call, "empty call",
    )  # fmt: skip


def bounds(limits: Limits) -> Iterator[Row]:
    """The bound."""
    arguments = 1_000_000, "array"
    yield Row(
        "`gp_kl` of 10⁶ labels",
        *in_turn(
            body(bench_bound.Elements, "time_gp_kl", "fastal", *arguments),
            body(bench_bound.Elements, "time_gp_kl", "numpy", *arguments),
        ),
        "NumPy", 3,
    )  # fmt: skip
    yield Row(
        "10⁵ bounds from `@njit` code",
        *in_turn(
            body(bench_bound.Scalar, "time_sum", "fastal", "mixed"),
            body(bench_bound.Scalar, "time_sum", "log1p", "mixed"),
        ),
        "their logarithms alone", 0.5,
    )  # fmt: skip


def models(limits: Limits) -> Iterator[Row]:
    """Gaussian processes."""
    triangle = 8 * 1_000**2 / 2 / limits.dgemv
    add = body(bench_gp.OneLabel, "time_add", "fastal", 1_000)
    for name, words, asked in (
        ("scikit-learn", "scikit-learn, refit", 400),
        ("gpytorch", "GPyTorch, new model", None),
    ):
        try:
            peer = body(bench_gp.OneLabel, "time_add", name, 1_000)
        except NotImplementedError:  # not installed
            continue
        yield Row(
            "one label at t = 1,000, `GaussianProcess.add`", *in_turn(add, peer), words, asked,
            triangle, "dgemv",
        )  # fmt: skip
    yield Row(
        "1,000 labels one by one",
        *in_turn(body(bench_gp.FromEmpty, "time_labels", "fastal", 1_000)),
        once(body(bench_gp.FromEmpty, "time_labels", "scikit-learn", 1_000)),
        "scikit-learn, refits", 400, 8 * 1_000**3 / 6 / limits.dgemv, "dgemv",
    )  # fmt: skip
    with threadpool_limits(1):
        yield Row(
            "5,000 variances given 1,000 labels",
            *in_turn(
                body(bench_gp.Predict, "time_predict", "fastal", "var"),
                body(bench_gp.Predict, "time_predict", "scikit-learn", "var"),
            ),
            "scikit-learn", None, 5_000 * 1_000**2 / limits.dgemm, "dgemm",
        )  # fmt: skip
        yield Row(
            "length scale and noise fitted to 400 rows, 8 starts",
            *in_turn(
                body(bench_gp.Fit, "time_fit", "fastal", "synthetic"),
                body(bench_gp.Fit, "time_fit", "scikit-learn", "synthetic"),
                rounds=1,
            ),
            "scikit-learn",
        )  # fmt: skip
    share = bench_classifier.OneLabelRatio().track_scikit_learn_over_add(200)
    with threadpool_limits(1):
        refit = best(body(bench_classifier.OneLabel, "time_add", "scikit-learn", 200))
    yield Row(
        "one label at t = 200, `LaplaceClassifier.add`", refit / share, refit,
        "scikit-learn, refit", 12, 200**3 / 3 / limits.dgemm, "dgemm",
    )  # fmt: skip


def learning(limits: Limits) -> Iterator[Row]:
    """Active learning over a pool."""
    few, many = bench_learn._data(2_000), bench_learn._data(9_000)
    possible = 9_000 * 1_000**2 / limits.dgemm
    with threadpool_limits(1):
        yield Row(
            "`learn`, 300 labels of 2,000 points",
            *in_turn(
                lambda: bench_learn._learn(*few, 300),
                lambda: bench_learn._scikit_learn_loop(*few, 300),
                rounds=2,
            ),
            "scikit-learn, refits", 150, 2_000 * 300**2 / limits.dgemm, "dgemm",
        )  # fmt: skip
        yield Row(
            "`learn`, 1,000 labels of 9,000 points",
            *in_turn(
                lambda: bench_learn._learn(*many, 1_000),
                lambda: bench_learn._dgemv_loop(*many, 1_000),
                rounds=2,
            ),
            "loop of dgemv", 3, possible, "dgemm",
        )  # fmt: skip
        large_pool = bench_learn._data(100_000)
        yield Row(
            "`learn`, 1,000 labels of 100,000 points",
            *in_turn(lambda: bench_learn._learn(*large_pool, 1_000), rounds=1),
            possible=100_000 * 1_000**2 / limits.dgemm, limit="dgemm",
        )  # fmt: skip
        defaults = bench_defaults.Selection()
        defaults.setup(30_000)
        yield Row(
            "`learn` with default arguments, 30,000 points",
            *in_turn(defaults._learn, lambda: defaults._learn(max_labels=defaults.labels)),
            "`max_labels` where it ends", 0.91,
        )  # fmt: skip
    two, one = in_turn(
        lambda: bench_learn._learn(*many, 1_000, threads=2),
        lambda: bench_learn._learn(*many, 1_000, threads=1),
    )
    yield Row(
        "`learn`, 1,000 labels of 9,000 points, two threads",
        two,
        one,
        "one thread",
        1.6,
        possible / 2,
        "dgemm, two cores",
    )


def simulations(limits: Limits) -> Iterator[Row]:
    """Many campaigns."""
    simulate = bench_simulate._simulate
    simulate(20, n_jobs=2)
    peers = bench_simulate.Peers()
    peers.setup(20)
    ours = peers._fastal()
    for name, asked, over in (
        ("NumPy loop", 100, peers.track_numpy_loop_over_simulate(20)),
        ("scikit-learn, refits", 1_000, peers.track_scikit_learn_over_simulate(20)),
    ):
        what = "a run of `simulate` to its stop, 100 points, two threads"
        yield Row(what, ours, ours * over, name, asked)
    never = Stopper(1e-300)
    whole = bench_simulate._seconds(lambda: simulate(5_000, n_jobs=2, criterion=never)) / 5_000
    yield Row(
        "the same, all 100 labels", whole, possible=100**3 / limits.dgemm / 2,
        limit="dgemm, two cores",
    )  # fmt: skip
    runs = 20_000
    one, two = (bench_simulate._seconds(lambda n=n: simulate(runs, n_jobs=n)) for n in (1, 2))
    gain = ratio_of_pairs(lambda: simulate(runs, n_jobs=1), lambda: simulate(runs, n_jobs=2), 25)
    yield Row(
        "20,000 runs on two threads", one / gain, one, "one thread", 1.8, one / 2, "two cores"
    )
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()

        def stored() -> None:
            simulate(runs, store=os.path.join(folder, f"{next(numbers)}.sqlite"))

        cost = ratio_of_pairs(stored, lambda: simulate(runs), 25)
    yield Row("20,000 runs with `store=`", one * cost, one, "without", 0.95)
    dask = bench_simulate.Dask()
    dask.setup(runs)
    try:
        share = dask.track_threads_over_dask(runs)
    finally:
        dask.teardown(runs)
    yield Row("20,000 runs on Dask, two workers", two / share, two, "two threads", 0.8)


def processes(limits: Limits) -> Iterator[Row]:
    """What a new process waits for."""
    over = bench_stopper.track_first_push_over_import_numpy()
    with tempfile.TemporaryDirectory() as cache:
        cold = bench_import.process_seconds(bench_import.FIRST_RUN, cache)
        warm = min(bench_import.process_seconds(bench_import.FIRST_RUN, cache) for _ in range(3))
        peer = min(bench_import.process_seconds(bench_import.FIRST_FIT, cache) for _ in range(3))
        numpy = min(bench_import.process_seconds("import numpy", cache) for _ in range(5))
    yield Row(
        "a new process, `import fastal` and a push", numpy * over, numpy, "`import numpy`", 0.67
    )
    yield Row("a new process, its first `learn`", warm, peer, "a first fit of scikit-learn")
    yield Row("the same, nothing compiled yet", cold, peer, "a first fit of scikit-learn")
    table = bench_paper.Table1()
    try:
        table.setup("all", 100)
    except NotImplementedError:
        return  # the data sets are not here
    seconds = table.track_seconds_of_the_whole_table("all", 100)
    yield Row("Table 1 of the paper, 100 runs a cell, two cores", seconds)


SECTIONS = (decisions, bounds, models, learning, simulations, processes)


def tracked() -> Iterator[Tracked]:
    """Accuracy, memory, growth, and how often noise stops a campaign."""
    masses = bench_runs.Accuracy()
    yield Tracked(
        "worst relative error of a mass (60 + 60, 600 + 600, 3,000 + 3,000)",
        max(masses.track_worst_relative_error_of_pmf(n) for n in (60, 600, 3_000)), "", "1e-13",
    )  # fmt: skip
    yield Tracked(
        "worst relative error of a bound (ratios from 1e-140 to 1e12)",
        bench_bound.Precision().track_relative_error("fastal"), "", "",
    )  # fmt: skip
    posterior = bench_accuracy.Posterior()
    posterior.setup(60)
    errors = (
        posterior.track_worst_relative_error_of_the_mean(60),
        posterior.track_worst_relative_error_of_the_variance(60),
    )
    yield Tracked("worst relative error of a posterior, 60 labels", max(errors), "", "")
    yield Tracked("memory of a bound", bench_runs.track_bytes_a_value(), "bytes", "at most 64")
    memory = bench_learn.Memory()
    yield Tracked(
        "`learn`, 9,000 points and 1,000 labels with a test set (one such matrix has 72 MB)",
        memory.track_megabytes_beyond_the_inputs(9_000), "MB", "at most 83",
    )  # fmt: skip
    yield Tracked(
        "a process with 100,000 runs, summary only",
        bench_simulate.Memory().track_megabytes_with_a_summary_only(100_000), "MB", "below 500",
    )  # fmt: skip
    growth = bench_growth.Growth()
    for what, exponent, asked in (
        ("a push, T from 10³ to 10⁶", growth.track_exponent_of_push, "at most 0.25"),
        ("an `add`, t from 500 to 4,000", growth.track_exponent_of_add, "at most 2.5"),
        (
            "`learn`, N from 4,000 to 16,000",
            growth.track_exponent_of_learn_over_points,
            "at most 1.1",
        ),
        ("`learn`, T from 125 to 1,000", growth.track_exponent_of_learn_over_labels, "at most 2.1"),
    ):
        yield Tracked(f"growth exponent of {what}", exponent(1.0), "", asked)
    x = np.random.default_rng(7).random((200_000, 100))
    for mode, alpha, settings, asked in (
        ("plain", 1e-3, {}, "1.0"),
        ("sequential", 0.01, {"sequential": True, "horizon": 100}, "at most 1"),
    ):
        yield Tracked(
            f"noise that stops within 100 bounds, {mode}, alpha = {alpha:g}",
            100 * float((stopping_time(x, alpha, **settings) > 0).mean()), "%", asked,
        )  # fmt: skip
