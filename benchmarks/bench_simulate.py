"""Many simulated campaigns, beside the loops one would write without fastal."""

import os
import subprocess
import sys
import tempfile
from itertools import count
from time import perf_counter

import joblib
import numpy as np
import twins
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from fastal import GaussianProcess, Stopper, simulate

from ._peers import peer
from ._timing import ratio_of_pairs

NOISE, SCALE, POOL = 0.01, 1.3, 100


def _data(n=1_500, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


X, Y = _data()


def _simulate(runs, n_jobs=1, **more):
    arguments = {"gp": GaussianProcess(SCALE, NOISE), "pool_size": POOL, "test": None}
    return simulate(X, Y, n_runs=runs, n_jobs=n_jobs, **(arguments | more))


def _seconds(call, rounds=3):
    """Least time of one call: each takes long enough to be timed alone."""
    times = []
    for _ in range(rounds):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return min(times)


def _scikit_learn_loop(rows, alpha=1e-3):
    """The original authors' way: a new fit after each label, a runs test on all bounds."""
    points, y = X[rows], Y[rows]
    chosen, bounds = [0], []
    while len(chosen) < len(rows):
        model = GaussianProcessRegressor(RBF(SCALE), alpha=NOISE, optimizer=None)
        mean, deviation = model.fit(points[chosen], y[chosen]).predict(points, return_std=True)
        deviation[chosen] = -1.0
        i = int(np.argmax(deviation))
        bounds.append(float(twins.gp_kl(mean[i], deviation[i] ** 2, y[i], NOISE)))
        chosen.append(i)
        if len(bounds) > 1 and twins.runs_test(bounds, alternative="less") <= alpha:
            break
    return len(chosen)


class Threads:
    params = ([400, 20_000],)
    param_names = ("runs",)
    timeout = 300

    def setup(self, runs):
        _simulate(20, n_jobs=2)

    def track_runs_a_second(self, runs):
        """At least 4,000 on two cores."""
        return runs / _seconds(lambda: _simulate(runs, n_jobs=2))

    track_runs_a_second.unit = "runs/s"

    def track_runs_a_second_without_a_stop(self, runs):
        """At least 4,000 on two cores; every run has 100 labels."""
        return runs / _seconds(lambda: _simulate(runs, n_jobs=2, criterion=Stopper(1e-300)))

    track_runs_a_second_without_a_stop.unit = "runs/s"

    def track_one_thread_over_two(self, runs):
        """At least 1.8 on two free cores."""
        return ratio_of_pairs(lambda: _simulate(runs, n_jobs=1), lambda: _simulate(runs, n_jobs=2))

    track_one_thread_over_two.unit = "ratio"

    def track_percent_for_the_store(self, runs):
        """Below 5 with 20,000 runs: what `store=` adds, one thread on two cores."""
        return _percent_for_the_store(runs, 1)

    track_percent_for_the_store.unit = "percent"

    def track_percent_for_the_store_two_threads(self, runs):
        """No target: the same where no core is free for the writing."""
        return _percent_for_the_store(runs, 2)

    track_percent_for_the_store_two_threads.unit = "percent"


def _percent_for_the_store(runs, n_jobs):
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()

        def stored():
            _simulate(runs, n_jobs, store=os.path.join(folder, f"{next(numbers)}.sqlite"))

        return 100 * (ratio_of_pairs(stored, lambda: _simulate(runs, n_jobs), 25) - 1)


class Peers:
    params = ([1, 20],)
    param_names = ("runs",)
    timeout = 300

    def setup(self, runs):
        self.pools = [_simulate(runs).pool(run) for run in range(runs)]
        _simulate(20, n_jobs=2)

    def _fastal(self):
        return _seconds(lambda: _simulate(2_000, n_jobs=2)) / 2_000

    def track_numpy_loop_over_simulate(self, runs):
        """At least 100, two threads against one loop."""
        with threadpool_limits(1):
            slow = _seconds(lambda: twins.simulate(X, Y, self.pools, SCALE, NOISE), 1)
        return slow / runs / self._fastal()

    track_numpy_loop_over_simulate.unit = "ratio"

    def track_scikit_learn_over_simulate(self, runs):
        """At least 1,000, two threads against one loop."""
        with threadpool_limits(1):
            slow = _seconds(lambda: [_scikit_learn_loop(rows) for rows in self.pools], 1)
        return slow / runs / self._fastal()

    track_scikit_learn_over_simulate.unit = "ratio"


class Dask:
    params = ([400, 20_000],)
    param_names = ("runs",)
    timeout = 300

    def setup(self, runs):
        dask = peer("distributed")
        self.cluster = dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        self.client = dask.Client(self.cluster)
        _simulate(20, n_jobs=2)
        with joblib.parallel_config(backend="dask"):
            _simulate(2_000, n_jobs=None)  # both workers load the compiled code

    def teardown(self, runs):
        self.client.close()
        self.cluster.close()

    def track_threads_over_dask(self, runs):
        """At least 0.8 with 20,000 runs: the share of the threads' speed that Dask reaches."""

        def dask():
            with joblib.parallel_config(backend="dask"):
                _simulate(runs, n_jobs=None)

        return ratio_of_pairs(lambda: _simulate(runs, n_jobs=2), dask)

    track_threads_over_dask.unit = "ratio"


class Memory:
    params = ([1_000, 100_000],)
    param_names = ("runs",)
    timeout = 300

    def setup(self, runs):
        if not os.path.exists("/proc/self/status"):
            raise NotImplementedError("needs /proc")

    def track_megabytes_with_a_summary_only(self, runs):
        """Below 500 with 100,000 runs, Python and its libraries included."""
        code = (
            "import re\n"
            "import numpy as np\n"
            "from fastal import GaussianProcess, simulate\n"
            "rng = np.random.default_rng(0)\n"
            "X = rng.normal(size=(1500, 4))\n"
            "y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=1500)\n"
            f"simulate(X, y, gp=GaussianProcess({SCALE}, {NOISE}), pool_size={POOL}, test=None,\n"
            f"         n_runs={runs}, n_jobs=2, keep='summary')\n"
            # ru_maxrss would begin with that of the process that started this one
            "print(re.search('VmHWM:(.*)kB', open('/proc/self/status').read())[1])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        return float(done.stdout) / 1024

    track_megabytes_with_a_summary_only.unit = "MB"
