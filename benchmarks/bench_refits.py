"""Campaigns whose hyper-parameters are learnt on the way, beside scikit-learn's refits."""

from time import perf_counter

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

from fastal import FixedBudget, GaussianProcess, Stopper, learn, simulate

from ._inside import inside
from ._timing import best, ratio

RBF_KIND = inside("RBF", "fastal._core.covariance")
next_refit = inside("next_refit", "fastal.learning.refit")
weak_fit = inside("weak_fit", "fastal.models.weak")

POOL = 100


def _data(n=1_000, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 20 + 3 * np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n)


X, Y = _data()


def _simulate(runs):
    """Whole campaigns: a budget that is never used up decides nothing."""
    return simulate(
        X, Y, criterion=FixedBudget(POOL), n_runs=runs, pool_size=POOL, test=None, n_jobs=1
    )


def _scikit_learn_campaign(points, y):
    """The same campaign: fits at the same numbers of labels, each from the last one's result."""
    scaled = (points - points.mean(axis=0)) / points.std(axis=0)
    chosen = list(range(5))
    kernel = ConstantKernel(1.0) * RBF(2.0, (0.1, 60.0)) + WhiteKernel(0.05, (1e-4, 10.0))
    due = 5
    while len(chosen) < len(y):
        fits = len(chosen) == due
        model = GaussianProcessRegressor(
            kernel, normalize_y=True, optimizer="fmin_l_bfgs_b" if fits else None
        )
        model.fit(scaled[chosen], y[chosen])
        kernel = model.kernel_
        if fits:
            due = next_refit(due)
        _, deviation = model.predict(scaled, return_std=True)
        deviation[chosen] = -1.0
        chosen.append(int(np.argmax(deviation)))
    return chosen


class Campaigns:
    """One thread each."""

    timeout = 300

    def setup(self):
        _simulate(1)

    def track_scikit_learn_over_simulate(self):
        """At least 20; whole campaigns of 100 labels with fits at 17 of them."""
        with threadpool_limits(1):
            return ratio(
                lambda: _scikit_learn_campaign(X[:POOL], Y[:POOL]), lambda: _simulate(1), rounds=3
            )

    track_scikit_learn_over_simulate.unit = "times"

    def track_milliseconds_a_campaign(self):
        """100 labels, 17 fits."""
        with threadpool_limits(1):
            return 1e3 * best(lambda: _simulate(4), rounds=3) / 4

    track_milliseconds_a_campaign.unit = "ms"


class Refit:
    """A fit from the result of the last one, on one core."""

    params = ([30, 100, 300],)
    param_names = ("labels",)

    def setup(self, labels):
        self.X, self.y = _data(labels)
        before = labels * 5 // 6
        last = weak_fit(self.X[:before], self.y[:before], RBF_KIND)
        self.start = last.lengthscale, last.ratio

    def track_milliseconds(self, labels):
        """At most 5 at 100 labels."""
        with threadpool_limits(1):
            return 1e3 * best(
                lambda: weak_fit(self.X, self.y, RBF_KIND, start=self.start), rounds=5
            )

    track_milliseconds.unit = "ms"


class Wall:
    """Fits cost the cube of the labels, the selection their square."""

    timeout = 600
    params = ([600, 3_000],)
    param_names = ("labels",)

    def setup(self, labels):
        self.X, self.y = _data(labels + labels // 3, 5)
        for few in ({"gp": None}, {"gp": GaussianProcess(2.0, 0.1, mean=20.0)}):
            self._run(60, **few)

    def _run(self, labels, **more):
        begin = perf_counter()
        learn(
            self.X, self.y, criterion=Stopper(1e-300), max_labels=labels, seed=0, threads=1, **more
        )
        return perf_counter() - begin

    def track_refits_over_selection(self, labels):
        """At most 10 at 3,000 labels."""
        alone = self._run(labels, gp=GaussianProcess(2.0, 0.1, amplitude=9.0, mean=20.0))
        return self._run(labels, gp=None) / alone

    track_refits_over_selection.unit = "times"
