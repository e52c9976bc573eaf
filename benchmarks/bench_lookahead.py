"""forecast against a NumPy loop of the same algorithm, and against `learn` on a large pool."""

from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from fastal import GaussianProcess, LookAhead, Stopper, forecast, learn, reference

from ._timing import best, ratio

SCALE, NOISE = 1.3, 0.01


def _pool(n, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def _model():
    return GaussianProcess(SCALE, NOISE)


class Small:
    params = ([100, 1_000],)
    param_names = ("n",)
    timeout = 300

    def setup(self, n):
        self.X = _pool(n)
        forecast(self.X[:20], _model())

    def time_forecast(self, n):
        forecast(self.X, _model(), labelled=[0])

    def track_seconds(self, n):
        """Below 1 at 1,000 points, on two cores."""
        return best(lambda: forecast(self.X, _model(), labelled=[0]), rounds=5)

    track_seconds.unit = "s"

    def track_numpy_loop_over_forecast(self, n):
        """At least 5 at 1,000 points."""
        twin = reference.GaussianProcess(SCALE, NOISE)
        with threadpool_limits(1):  # more threads slow its matrix-vector products down
            begin = perf_counter()
            reference.forecast_loop(self.X, twin, labelled=[0])
            slow = perf_counter() - begin
        return slow / best(lambda: forecast(self.X, _model(), labelled=[0]), rounds=5)

    track_numpy_loop_over_forecast.unit = "ratio"


class Large:
    params = ([3_000, 10_000],)
    param_names = ("n",)
    timeout = 300

    def setup(self, n):
        self.X, self.y, self.others = _pool(n), np.zeros(n), _pool(1_000, seed=1)
        self.labels = n // 10
        self._forecast(self.others, 30)
        self._learn(30)

    def _forecast(self, others, labels):
        return forecast(self.X, _model(), horizon=labels, reference=others)

    def _learn(self, labels):
        return learn(self.X, self.y, gp=_model(), stopper=Stopper(1e-300), max_labels=labels)

    def track_forecast_over_learn(self, n):
        """At most 1.5 at 10,000 points and a horizon of 1,000, with 1,000 reference inputs."""
        labels = self.labels
        return ratio(
            lambda: self._forecast(self.others, labels), lambda: self._learn(labels), rounds=5
        )

    track_forecast_over_learn.unit = "ratio"

    def track_own_reference_over_learn(self, n):
        """At most 1.5 at 10,000 points, with a tenth of the pool held out."""
        labels = self.labels
        return ratio(lambda: self._forecast(None, labels), lambda: self._learn(labels), rounds=5)

    track_own_reference_over_learn.unit = "ratio"


class Label:
    params = ([1_000],)
    param_names = ("n",)

    def track_update_over_that_of_100_points(self, n):
        """At most 1.2: a label costs O(1) after the forecast."""
        rules = [LookAhead().begin(forecast(_pool(size), _model())) for size in (n, 100)]
        return ratio(*(lambda rule=rule: rule.update(0.1, 0.5, 0.4) for rule in rules))

    track_update_over_that_of_100_points.unit = "ratio"
