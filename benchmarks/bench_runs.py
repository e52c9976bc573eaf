"""The runs test: distribution, test and rule, beside the slow twins and statsmodels."""

import math
from fractions import Fraction
from importlib.util import find_spec
from time import perf_counter

import numpy as np
import twins

from fastal import RunsDistribution, runs_test

from ._inside import inside
from ._timing import best, ratio

Rule = inside("Rule", "fastal._core.rule")  # since 0.3

if find_spec("statsmodels") is None:
    runstest_1samp = None
else:  # not in a try: a statsmodels without it is a failure to see
    from statsmodels.sandbox.stats.runs import runstest_1samp


def _values(n):
    return np.random.default_rng(0).standard_normal(n)


def _rule(values, alpha=1e-300):
    """Return a rule that has taken these, and looks on."""
    rule = Rule(("runs", alpha, 0, False, True, 0))
    rule.extend(values)
    return rule


class _Pushes:
    """Push a block of values after n others, from a fresh copy each time.

    A rule grows with every push. Making the copy and freeing it (milliseconds at 10^6 values)
    are kept out of the timed body.
    """

    def __init__(self, n, block=1000):
        self.start = _rule(_values(n))
        self.values = np.random.default_rng(1).standard_normal(block).tolist()

    def prepare(self):
        self.rule = self.start.copy()

    def body(self):
        push = self.rule.push
        for value in self.values:
            push(value)


def _seconds_a_push(n, rounds=15):
    pushes, least = _Pushes(n), math.inf
    for _ in range(rounds):
        pushes.prepare()
        begin = perf_counter()
        pushes.body()
        least = min(least, perf_counter() - begin)
    return least / len(pushes.values)


class Decision:
    """Is randomness rejected after one more value?"""

    params = (["fastal", "reference", "statsmodels"], [1_000, 1_000_000])
    param_names = ("implementation", "T")
    number = 1  # a push changes the rule: no repetition within a sample, no warm-up
    warmup_time = 0

    def setup(self, implementation, T):
        if implementation == "fastal":
            pushes = _Pushes(T)
            pushes.prepare()
            self.body = pushes.body
            return
        if T > 1_000:
            raise NotImplementedError("too slow")
        if implementation == "statsmodels" and runstest_1samp is None:
            raise NotImplementedError("statsmodels is not installed")
        x = _values(T)
        if implementation == "reference":
            self.body = lambda: twins.runs_test(x, alternative="less") <= 1e-3
        else:
            self.body = lambda: runstest_1samp(x)[1] <= 1e-3

    def time_decision(self, implementation, T):
        # fastal: 1,000 pushes; the others: one decision
        self.body()


class DecisionRatios:
    def setup(self):
        if runstest_1samp is None:
            raise NotImplementedError("statsmodels is not installed")

    def track_statsmodels_over_push(self):
        """At least 1,000."""
        x = _values(1_000)
        return best(lambda: runstest_1samp(x)) / _seconds_a_push(1_000)

    track_statsmodels_over_push.unit = "ratio"

    def track_statsmodels_over_runs_test(self):
        """At least 25: 1,000 values, normal."""
        x = _values(1_000)
        return ratio(lambda: runstest_1samp(x), lambda: runs_test(x, method="normal"))

    track_statsmodels_over_runs_test.unit = "ratio"


def track_push_at_a_million_over_a_thousand():
    """At most 20: a look at a million values is in it."""
    return _seconds_a_push(1_000_000) / _seconds_a_push(1_000)


track_push_at_a_million_over_a_thousand.unit = "ratio"


class EveryPrefix:
    """A whole array in one call, every prefix decided; the values do not stop it."""

    params = (["fastal", "argsort"], [10_000, 1_000_000])
    param_names = ("implementation", "n")

    def setup(self, implementation, n):
        x = _values(n)
        bodies = {
            "fastal": lambda: _rule(x, 1e-9),
            "argsort": lambda: np.argsort(x, kind="stable"),
        }
        self.body = bodies[implementation]

    def time_every_prefix(self, implementation, n):
        self.body()


class EveryPrefixRatio:
    params = ([10_000, 1_000_000],)
    param_names = ("n",)

    def track_over_argsort(self, n):
        x = _values(n)
        return ratio(lambda: _rule(x, 1e-9), lambda: np.argsort(x, kind="stable"))

    track_over_argsort.unit = "ratio"


class TiedPrefixes:
    """Ties and order must not cost more than random values do."""

    params = (["equal", "alternating", "sorted", "reversed", "sawtooth"], [100_000])
    param_names = ("kind", "n")

    def track_over_random(self, kind, n):
        i = np.arange(n, dtype=float)
        kinds = {"equal": 0 * i, "alternating": i % 2, "sorted": i, "reversed": -i}
        x, random = kinds.get(kind, i % 1000), _values(n)
        return ratio(lambda: _rule(x, 1e-9), lambda: _rule(random, 1e-9))

    track_over_random.unit = "ratio"


def _comb_sum(u, n0, n1):
    number = sum(twins.runs_arrangements(i, n0, n1) for i in range(2, u + 1))
    return number / math.comb(n0 + n1, n0)


class ExactTail:
    params = (["fastal", "comb"], [500])
    param_names = ("implementation", "n0")

    def setup(self, implementation, n0):
        d, u = RunsDistribution(n0, n0), n0 - 50
        self.body = (
            (lambda: d.cdf(u)) if implementation == "fastal" else lambda: _comb_sum(u, n0, n0)
        )

    def time_exact_tail(self, implementation, n0):
        self.body()


def track_comb_over_exact_tail():
    """At least 1,000: exact one-sided p-value at n0 = n1 = 500."""
    d = RunsDistribution(500, 500)
    return ratio(lambda: _comb_sum(450, 500, 500), lambda: d.cdf(450), rounds=3)


track_comb_over_exact_tail.unit = "ratio"


class TailOfTenMillion:
    """At most 200 microseconds; the central tail is the longest sum."""

    params = ([5_000_000],)
    param_names = ("n0",)

    def setup(self, n0):
        self.d = RunsDistribution(n0, n0)

    def time_central_tail(self, n0):
        self.d.cdf(n0)

    def time_mass(self, n0):
        self.d.pmf(n0)


class Accuracy:
    params = ([60, 600, 3000],)
    param_names = ("n0",)

    def track_worst_relative_error_of_pmf(self, n0):
        """At most 1e-13, for masses of at least 1e-290."""
        d, total, worst = RunsDistribution(n0, n0), math.comb(2 * n0, n0), 0.0
        for u in range(2, 2 * n0 + 1, max(1, n0 // 200)):
            exact = Fraction(twins.runs_arrangements(u, n0, n0), total)
            if exact > Fraction(1, 10**290):
                worst = max(worst, abs(float((Fraction(d.pmf(u)) - exact) / exact)))
        return worst

    track_worst_relative_error_of_pmf.unit = "relative error"


def track_bytes_a_value():
    """At most 20, at 2^20 values."""
    return _rule(_values(2**20)).nbytes / 2**20


track_bytes_a_value.unit = "bytes"


def peakmem_a_million_values():
    _rule(_values(2**20))
