"""Active learning over a pool, beside the loops one would write without fastal."""

import statistics
import subprocess
import sys
import threading
from time import perf_counter, process_time, thread_time

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from fastal import FixedBudget, GaussianProcess, MinLabels, Stopper, learn

from ._inside import inside
from ._timing import best, ratio, ratio_of_pairs

MovementBelow = inside("MovementBelow", "fastal")

NOISE, SCALE = 0.01, 1.3


def _data(n, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


def _learn(X, y, labels, threads=1, criterion=None):
    return learn(
        X,
        y,
        gp=GaussianProcess(SCALE, NOISE),
        criterion=Stopper(1e-300) if criterion is None else criterion,
        initial=[0],
        max_labels=labels,
        threads=threads,
    )


def _dgemv_loop(X, y, labels):
    """The straightforward loop: one matrix-vector product of BLAS a label."""
    n = len(X)
    Z = X / SCALE
    V, var, taken, i = np.empty((labels, n)), np.ones(n), np.zeros(n, dtype=bool), 0
    chosen = []
    for t in range(labels):
        chosen.append(i)
        k = np.exp(-0.5 * ((Z - Z[i]) ** 2).sum(axis=1))
        v = (k - V[:t, i] @ V[:t]) / np.sqrt(var[i] + NOISE)
        V[t] = v
        var -= v * v
        taken[i] = True
        i = int(np.argmax(np.where(taken, -1.0, var)))
    return chosen


def _scikit_learn_loop(X, y, labels):
    left, chosen = np.ones(len(X), dtype=bool), [0]
    left[0] = False
    for _ in range(labels - 1):
        peer = GaussianProcessRegressor(RBF(SCALE), alpha=NOISE, optimizer=None)
        deviation = peer.fit(X[chosen], y[chosen]).predict(X, return_std=True)[1]
        i = int(np.argmax(np.where(left, deviation, -1.0)))
        left[i] = False
        chosen.append(i)
    return chosen


class Pool:
    params = (["fastal", "dgemv loop", "scikit-learn"], [200, 2_000, 9_000])
    param_names = ("implementation", "N")
    timeout = 300

    def setup(self, implementation, N):
        if implementation == "scikit-learn" and N > 2_000:
            raise NotImplementedError("too slow")
        self.labels = {200: 100, 2_000: 300, 9_000: 1_000}[N]
        self.X, self.y = _data(N)
        loops = {"fastal": _learn, "dgemv loop": _dgemv_loop, "scikit-learn": _scikit_learn_loop}
        self.body = loops[implementation]
        if implementation == "fastal":
            self.body(self.X, self.y, 3)
        # not in the timed body: it takes milliseconds
        self.limit = threadpool_limits(1)

    def teardown(self, implementation, N):
        if hasattr(self, "limit"):
            self.limit.restore_original_limits()

    def time_labels(self, implementation, N):
        self.body(self.X, self.y, self.labels)


class PoolRatios:
    params = ([500, 9_000],)
    param_names = ("N",)
    timeout = 300

    def setup(self, N):
        self.labels = 1_000 if N == 9_000 else 100
        self.X, self.y = _data(N)
        _learn(self.X, self.y, 3)

    def track_dgemv_loop_over_learn(self, N):
        """At least 3 at 9,000 points and 1,000 labels."""
        with threadpool_limits(1):
            slow = best(lambda: _dgemv_loop(self.X, self.y, self.labels), rounds=3)
            return slow / best(lambda: _learn(self.X, self.y, self.labels), rounds=3)

    track_dgemv_loop_over_learn.unit = "ratio"

    def track_share_of_dgemm(self, N):
        """At least 0.4 at 9,000 points and 1,000 labels, counting N T^2 flops."""
        A = np.random.default_rng(0).random((2_000, 2_000))
        with threadpool_limits(1):
            rate = 2 * 2_000**3 / best(lambda: A @ A, rounds=3)
            seconds = best(lambda: _learn(self.X, self.y, self.labels), rounds=3)
        return N * self.labels**2 / seconds / rate

    track_share_of_dgemm.unit = "ratio"

    def track_one_thread_over_two(self, N):
        """At least 1.6 at 9,000 points and 1,000 labels."""
        one = best(lambda: _learn(self.X, self.y, self.labels, threads=1), rounds=3)
        return one / best(lambda: _learn(self.X, self.y, self.labels, threads=2), rounds=3)

    track_one_thread_over_two.unit = "ratio"

    def track_percent_of_a_run_for_decisions(self, N):
        """Below 1 at 9,000 points: the time of as many pushes in a run's time."""
        run = _learn(self.X, self.y, self.labels)
        seconds = best(lambda: _learn(self.X, self.y, self.labels), rounds=3)
        return 100 * best(lambda: Stopper(1e-300).extend(run.bounds)) / seconds

    track_percent_of_a_run_for_decisions.unit = "percent"


class ScikitLearnRatio:
    params = ([200, 2_000],)
    param_names = ("N",)
    timeout = 300

    def track_scikit_learn_over_learn(self, N):
        """At least 150 at 2,000 points and 300 labels."""
        X, y = _data(N)
        labels = 300 if N == 2_000 else 30
        _learn(X, y, 3)
        with threadpool_limits(1):
            begin = perf_counter()
            _scikit_learn_loop(X, y, labels)
            slow = perf_counter() - begin
            return slow / best(lambda: _learn(X, y, labels), rounds=5)

    track_scikit_learn_over_learn.unit = "ratio"


# Warm up, say so, wait for the word, run, say so.
_WORKER = """
import sys
import numpy as np
from fastal import GaussianProcess, Stopper, learn
rng = np.random.default_rng(0)
X = rng.normal(size=(100, 4))
y = np.sin(X).sum(axis=1)
gp, stopper = GaussianProcess(1.3, 0.01), Stopper(1e-300)

def runs(n):
    for seed in range(n):
        assert learn(X, y, gp=gp, criterion=stopper, seed=seed, threads=1).n_labels == 100

runs(2)
print("ready", flush=True)
runs(int(sys.stdin.readline()))
print("done", flush=True)
"""


class SmallRuns:
    """Whole calls of `learn`, 100 labels of 100 points with a decision after each."""

    params = ([1, 2], [200, 4_000])
    param_names = ("processes", "runs")

    def track_runs_a_second(self, processes, runs):
        """At least 4,000 on two cores."""
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(processes)
        ]
        for worker in workers:
            worker.stdout.readline()
        begin = perf_counter()
        for worker in workers:
            worker.stdin.write(f"{runs}\n")
            worker.stdin.flush()
        answers = [worker.stdout.readline() for worker in workers]
        seconds = perf_counter() - begin
        for worker in workers:
            worker.communicate()
        if answers != ["done\n"] * processes:
            raise RuntimeError(f"a worker failed: {answers}")
        return processes * runs / seconds

    track_runs_a_second.unit = "runs/s"


class ThreadedRuns:
    """As `SmallRuns`, in the threads of one process."""

    params = ([1, 2], [200, 2_000])
    param_names = ("threads", "runs")

    def setup(self, threads, runs):
        self.X, self.y = _data(100)
        self._runs(2)

    def _runs(self, n):
        gp, stopper = GaussianProcess(SCALE, NOISE), Stopper(1e-300)
        for seed in range(n):
            learn(self.X, self.y, gp=gp, criterion=stopper, seed=seed, threads=1)

    def track_runs_a_second_in_threads(self, threads, runs):
        """At least 5,000 in two threads on two cores is wanted."""
        workers = [threading.Thread(target=self._runs, args=(runs,)) for _ in range(threads)]
        begin = perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return threads * runs / (perf_counter() - begin)

    track_runs_a_second_in_threads.unit = "runs/s"


class OneOfTwoThreads:
    """What a small call of `learn` does while other threads wait for the GIL."""

    params = ([50, 1_000],)
    param_names = ("runs",)

    def setup(self, runs):
        self.threads = ThreadedRuns()
        self.threads.setup(1, runs)

    def track_two_threads_over_one(self, runs):
        """Above 1: two threads together against one, in runs per second."""

        def speed(threads):
            return self.threads.track_runs_a_second_in_threads(threads, runs)

        return statistics.median(speed(2) / speed(1) for _ in range(5))

    track_two_threads_over_one.unit = "ratio"

    def track_microseconds_of_python(self, runs):
        """At most 150: 5,000 runs a second in all threads leave 200 for what holds the GIL."""
        gp, stopper = GaussianProcess(SCALE, NOISE), Stopper(1e-300)
        least = float("inf")
        for _ in range(10):
            start = thread_time()
            for seed in range(runs):
                # one label: hardly anything is left but Python
                learn(
                    self.threads.X,
                    self.threads.y,
                    gp=gp,
                    criterion=stopper,
                    max_labels=1,
                    seed=seed,
                    threads=1,
                )
            least = min(least, (thread_time() - start) / runs)
        return 1e6 * least

    track_microseconds_of_python.unit = "us"


# None of them stops.
CRITERIA = {
    "FixedBudget": lambda: FixedBudget(10**9),
    "MinLabels": lambda: MinLabels(10**9),
    "MovementBelow": lambda: MovementBelow(1e-300),
    "Stopper & MinLabels": lambda: Stopper(1e-300) & MinLabels(10**9),
    "Stopper | FixedBudget": lambda: Stopper(1e-300) | FixedBudget(10**9),
    "Stopper | MovementBelow": lambda: Stopper(1e-300) | MovementBelow(1e-300),
}


class CompiledCriteria:
    """Runs with another criterion, over those with a `Stopper`."""

    params = (list(CRITERIA), [100, 2_000, 9_000])
    param_names = ("criterion", "N")
    timeout = 300

    def setup(self, criterion, N):
        self.X, self.y = _data(N)
        self.labels = min(N, 300)
        self.criterion = CRITERIA[criterion]()

    def _run(self, stopper):
        run = _learn(self.X, self.y, self.labels, 1, stopper)
        if run.n_labels != self.labels:
            raise RuntimeError(f"it stopped after {run.n_labels} labels")

    def track_run_over_that_of_a_stopper(self, criterion, N):
        """At most 1.1; the time of the processor."""
        alone = Stopper(1e-300)
        self._run(alone)
        self._run(self.criterion)
        number, pairs = (20, 31) if N == 100 else (1, 31 if N == 2_000 else 15)
        return ratio_of_pairs(
            lambda: self._run(self.criterion),
            lambda: self._run(alone),
            pairs=pairs,
            clock=process_time,
            number=number,
        )

    track_run_over_that_of_a_stopper.unit = "ratio"


class CompiledLoop:
    """The compiled loop of a small run by itself: a run of 100 labels less one of two."""

    params = (list(CRITERIA),)
    param_names = ("criterion",)
    timeout = 300

    def setup(self, criterion):
        run = CompiledCriteria()
        run.setup(criterion, 100)
        self.X, self.y, self.criterion, self.alone = run.X, run.y, run.criterion, Stopper(1e-300)

    def _least(self):
        """Return least times of runs of 2 and of 100 labels, by it and by a `Stopper`, in turns."""
        kinds = [
            (stopper, labels) for labels in (2, 100) for stopper in (self.criterion, self.alone)
        ]
        times = [float("inf")] * len(kinds)
        for _ in range(150):
            for i, (stopper, labels) in enumerate(kinds):
                start = process_time()
                for _ in range(10):
                    _learn(self.X, self.y, labels, 1, stopper)
                times[i] = min(times[i], (process_time() - start) / 10)
        return times

    def track_loop_over_that_of_a_stopper(self, criterion):
        """At most 1.1: 98 labels, their bounds and decisions."""
        ours_2, theirs_2, ours_100, theirs_100 = self._least()
        return (ours_100 - ours_2) / (theirs_100 - theirs_2)

    track_loop_over_that_of_a_stopper.unit = "ratio"

    def track_microseconds_before_and_after(self, criterion):
        """Beyond those of a `Stopper`: what is copied, asked and told once per run."""
        ours_2, theirs_2, *_ = self._least()
        return 1e6 * (ours_2 - theirs_2)

    track_microseconds_before_and_after.unit = "us"


class Memory:
    """At most one N x T matrix beyond the inputs: 72 MB for 9,000 points and 1,000 labels."""

    params = ([1_000, 9_000],)
    param_names = ("N",)

    def peakmem_learn(self, N):
        X, y = _data(N)
        _learn(X, y, N // 9)

    def track_megabytes_beyond_the_inputs(self, N):
        """At most 1.15 N x T doubles, 83 at 9,000 points."""
        import tracemalloc

        X, y = _data(N)
        test = _data(N)
        _learn(X, y, 3)
        tracemalloc.start()
        try:
            learn(
                X,
                y,
                gp=GaussianProcess(SCALE, NOISE),
                criterion=Stopper(1e-300),
                max_labels=N // 9,
                test=test,
                threads=1,
            )
            return tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()

    track_megabytes_beyond_the_inputs.unit = "MB"


class ErrorsOfTestSet:
    """Errors after each of 300 labels on as many test rows as the pool has points.

    A test row needs as many flops as a row of the pool, T^2: twice the time is the limit of any
    way that completes rows.
    """

    params = ([10_000, 100_000],)
    param_names = ("N",)
    timeout = 300

    def setup(self, N):
        X, y = _data(2 * N)
        self.X, self.y, self.test = X[:N], y[:N], (X[N:], y[N:])
        self._learn()
        self._learn(test=self.test)

    def _learn(self, **more):
        learn(
            self.X, self.y, gp=GaussianProcess(SCALE, NOISE), criterion=Stopper(1e-300), seed=0,
            max_labels=300, threads=1, **more,
        )  # fmt: skip

    def track_test_set_over_none(self, N):
        """At most 2 with 10^5 test rows: the run with errors over the run without."""
        with threadpool_limits(1):
            return ratio(lambda: self._learn(test=self.test), self._learn, rounds=3)

    track_test_set_over_none.unit = "ratio"

    def track_memory_over_none(self, N):
        """At most 1.2 with 10^5 test rows: memory of the run with errors over the run without."""
        import tracemalloc

        peaks = []
        for more in ({"test": self.test}, {}):
            tracemalloc.start()
            try:
                self._learn(**more)
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
        return peaks[0] / peaks[1]

    track_memory_over_none.unit = "ratio"

    def peakmem_with_errors(self, N):
        self._learn(test=self.test)
