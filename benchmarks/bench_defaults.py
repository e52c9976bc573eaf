"""Default arguments at a large size: none of them may be a cliff.

A figure is the time with default arguments over that with explicit small settings that do the same
work, in one run; or the exponent of growth where a call has nothing to set.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from fastal import (
    ActiveLearner,
    GaussianProcess,
    Stopper,
    Streams,
    learn,
    runs_test,
    simulate,
    stopping_time,
)

from ._timing import best, ratio
from .bench_growth import _exponent
from .bench_learn import NOISE, SCALE, _data


def _gp():
    return GaussianProcess(SCALE, NOISE)


class Selection:
    """Runs that stop long before the pool ends."""

    params = ([3_000, 30_000],)
    param_names = ("N",)
    timeout = 300

    def setup(self, N):
        self.X, self.y = _data(N)
        self.labels = self._learn().n_labels

    def _learn(self, **more):
        return learn(self.X, self.y, gp=_gp(), criterion=Stopper(), seed=0, **more)

    def track_learn_over_max_labels(self, N):
        """At most 1.1: default arguments over `max_labels` where the run ends."""
        with threadpool_limits(1):
            return ratio(self._learn, lambda: self._learn(max_labels=self.labels), rounds=5)

    track_learn_over_max_labels.unit = "ratio"

    def track_learner_over_max_labels(self, N):
        """At most 1.1: 20 labels by ask and tell, over `max_labels=20`."""

        def call(**more):
            learner = ActiveLearner(self.X, gp=_gp(), criterion=Stopper(), seed=0, **more)
            for _ in range(20):
                learner.tell(self.y[learner.ask()])

        return ratio(call, lambda: call(max_labels=20), rounds=5)

    track_learner_over_max_labels.unit = "ratio"

    def peakmem_learn(self, N):
        self._learn()


class Grows:
    """Exponents of growth of calls with default arguments, up to a size or to a tenth of it."""

    params = ([0.1, 1.0],)
    param_names = ("share",)
    timeout = 300

    def _sizes(self, most, share):
        most = int(most * share)
        return [most // 4, most // 2, most]

    def track_exponent_of_stopping_time(self, share):
        """At most 1.3, to 10^6 bounds."""
        values = np.random.default_rng(0).random(1_000_000)
        return _exponent(
            self._sizes(1_000_000, share), lambda n: best(lambda: stopping_time(values[:n], 1e-9))
        )

    track_exponent_of_stopping_time.unit = "exponent"

    def track_exponent_of_runs_test(self, share):
        """At most 1.3, to 10^6 values."""
        values = np.random.default_rng(0).random(1_000_000)
        return _exponent(
            self._sizes(1_000_000, share), lambda n: best(lambda: runs_test(values[:n]))
        )

    track_exponent_of_runs_test.unit = "exponent"

    def track_exponent_of_streams(self, share):
        """At most 1.3, to 10^5 streams, 20 bounds each."""
        values = np.random.default_rng(0).random((20, 100_000))

        def seconds(n):
            def call():
                streams = Streams(Stopper(), n)
                for row in values:
                    streams.push(row[:n])

            return best(call, rounds=3)

        return _exponent(self._sizes(100_000, share), seconds)

    track_exponent_of_streams.unit = "exponent"

    def track_exponent_of_predict(self, share):
        """At most 1.2, to 40,000 points given 500 labels."""
        X, y = _data(40_500)
        gp = _gp()
        for i in range(500):
            gp.add(X[i], y[i])
        return _exponent(
            self._sizes(40_000, share),
            lambda n: best(lambda: gp.predict(X[500 : 500 + n], return_var=True), rounds=3),
        )

    track_exponent_of_predict.unit = "exponent"

    def track_exponent_of_fit(self, share):
        """At most 3.3, to 1,000 rows: a factorisation per step."""
        X, y = _data(1_000)
        return _exponent(
            self._sizes(1_000, share),
            lambda n: best(lambda: _gp().fit_hyperparameters(X[:n], y[:n]), rounds=1, seconds=0),
        )

    track_exponent_of_fit.unit = "exponent"

    def track_exponent_of_simulate(self, share):
        """At most 1.2, to 8,000 points in all, pools of 100, 50 runs."""
        X, y = _data(8_000)
        return _exponent(
            self._sizes(8_000, share),
            lambda n: best(
                lambda: simulate(
                    X[:n], y[:n], gp=_gp(), criterion=Stopper(), n_runs=50, pool_size=100
                ),
                rounds=2,
            ),
        )

    track_exponent_of_simulate.unit = "exponent"
