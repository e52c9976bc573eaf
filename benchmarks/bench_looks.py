"""Deferred looks: what a bound costs with them, for many kinds of streams."""

import numpy as np

from ._inside import inside
from ._timing import best

# since 0.3
Rule, Streams, stopping_times = (
    inside(name, "fastal._core.rule") for name in ("Rule", "Streams", "stopping_times")
)

RUNS = ("runs", 1e-3, 0, False, True, 0)
LENGTHS = [50, 1000, 10_000]


def _at_the_critical_line(n, ties):
    """Return high and low values, about as many, in as few runs as do not stop."""
    rng, out, runs, balance = np.random.default_rng(0), [1], 1, 1
    for t in range(2, n + 1):
        last = out[-1]
        more = runs < t / 2 + 2 - 3.09 * np.sqrt(t) / 2
        label = 1 - last if more else last
        if abs(balance + 2 * label - 1) > 6:
            label = int(balance < 0)
        runs += label != last
        balance += 2 * label - 1
        out.append(label)
    return np.array(out) + (0 if ties else 0.1) * rng.random(n)


def _streams(n):
    rng, i = np.random.default_rng(0), np.arange(n)
    return {
        "continuous": rng.standard_normal(n),
        "falling": np.exp(-3 * i / n) * rng.lognormal(size=n),
        "three values": rng.integers(0, 3, n) * 1.0,
        "half zeros": np.where(rng.random(n) < 0.5, 0.0, rng.standard_normal(n)),
        "third zeros": np.where(rng.random(n) < 1 / 3, 0.0, rng.random(n)),
        "rising": i * 1.0,
        "rising, noise": i + 0.05 * n * rng.standard_normal(n),
        "sawtooth": i % 17 * 1.0,
        "constant": np.ones(n),
        "inwards": (-1.0) ** i / (1 + i),
        "outwards": (-1.0) ** i * i,
        "critical": _at_the_critical_line(n, ties=False),
        "critical, ties": _at_the_critical_line(n, ties=True),
    }


def _pushes(push_of, values):
    def call():
        push = push_of()
        for value in values:
            push(value)

    return call


class Push:
    """Nanoseconds a push from Python, of all bounds of a stream, in the order they come."""

    params = (["rule", "list"], list(_streams(2)), LENGTHS)
    param_names = ("implementation", "stream", "bounds")

    def setup(self, implementation, stream, bounds):
        push_of = {
            "rule": lambda: Rule(RUNS).push,
            "list": lambda: [].append,
        }[implementation]
        push_of()
        self.body = _pushes(push_of, _streams(bounds)[stream].tolist())

    def track_push(self, implementation, stream, bounds):
        """With a rule below 600 for each stream, at each length."""
        return best(self.body) / bounds * 1e9


Push.track_push.unit = "ns"


def track_push_of_a_combination():
    """Nanoseconds; below 500."""
    rule = ("any", RUNS, ("count", 200))
    return best(_pushes(lambda: Rule(rule).push, _streams(100)["continuous"].tolist())) / 100 * 1e9


track_push_of_a_combination.unit = "ns"


class Many:
    """Rounds over many live streams, and their histories in one call."""

    params = ([(100_000, 50), (25_000, 200), (5_000, 1_000)],)
    param_names = ("streams, bounds",)
    timeout = 300

    def setup(self, size):
        n_streams, n = size
        self.values = np.random.default_rng(0).standard_normal((n, n_streams))
        self.where = np.ones(n_streams, dtype=np.uint8)
        self.stopped = np.empty(n_streams, dtype=np.uint8)
        self.rows = np.ascontiguousarray(self.values.T)
        self.times = np.empty(n_streams, dtype=np.int64)
        Rule(RUNS)

    def _rounds(self):
        streams = Streams(Rule(RUNS), len(self.where))
        for values in self.values:
            streams.push(values, self.where, self.stopped)

    def track_streams(self, size):
        """Nanoseconds a bound; 31 to 70, where a batch of 0.2 took 270 to 445."""
        return best(self._rounds, rounds=1) / self.values.size * 1e9

    def track_stopping_times(self, size):
        """Nanoseconds a bound, up to the stop of each."""
        like = Rule(RUNS)
        seconds = best(lambda: stopping_times(self.rows, like, self.times), rounds=1)
        return seconds / self.values.size * 1e9


Many.track_streams.unit = Many.track_stopping_times.unit = "ns"
