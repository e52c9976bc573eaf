"""How times grow: the exponent b of time = a size^b, by least squares on logarithms."""

import numpy as np
from threadpoolctl import threadpool_limits

from ._timing import best
from .bench_gp import OneLabel
from .bench_learn import _data, _learn
from .bench_runs import _seconds_a_push


def _exponent(sizes, seconds):
    times = [seconds(size) for size in sizes]
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


class Growth:
    """Up to the sizes of the other benchmarks, or to a tenth of them."""

    params = ([0.1, 1.0],)
    param_names = ("share",)
    timeout = 300

    def track_exponent_of_push(self, share):
        """At most 0.25, from 1,000 to 10^6 values: heaps, and caches that become too small."""
        return _exponent([1_000, 10_000, 100_000, int(1_000_000 * share)], _seconds_a_push)

    track_exponent_of_push.unit = "exponent"

    def track_exponent_of_add(self, share):
        """At most 2.5, from 500 to 4,000 labels: 2, and a factor that leaves the cache (64 MB)."""

        def seconds(t):
            one = OneLabel()
            one.setup("fastal", t)
            return best(lambda: one.time_add("fastal", t))

        return _exponent([int(t * share) for t in (500, 1_000, 2_000, 4_000)], seconds)

    track_exponent_of_add.unit = "exponent"

    def track_exponent_of_learn_over_points(self, share):
        """At most 1.1, from 4,000 to 16,000 points and 500 labels."""
        labels = int(500 * share)

        def seconds(n):
            X, y = _data(n)
            return best(lambda: _learn(X, y, labels), rounds=3)

        with threadpool_limits(1):
            return _exponent([4_000, 8_000, 16_000], seconds)

    track_exponent_of_learn_over_points.unit = "exponent"

    def track_exponent_of_learn_over_labels(self, share):
        """At most 2.1, from 125 to 1,000 labels of 9,000 points."""
        X, y = _data(int(9_000 * share))
        with threadpool_limits(1):
            return _exponent(
                [125, 250, 500, 1_000 if share == 1.0 else 700],
                lambda labels: best(lambda: _learn(X, y, labels), rounds=3),
            )

    track_exponent_of_learn_over_labels.unit = "exponent"
