"""A slow twin of the tracker, and random values and rules for both."""

import itertools
import math
import operator
import sys
from array import array
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache, partial

import twins

METHODS = ("auto", "exact", "normal")
ALTERNATIVES = ("less", "greater", "two-sided")
MOST = 2**63 - 1
LARGEST = sys.float_info.max

# No level but 1 is a p-value of more than 50 values: the last digit of one decides nothing.
LEVELS = (1.0, 0.45, 1 / 3, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-3, 1e-6, 1e-300, 5e-324)
WINDOWS = (0, 0, 0, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64)
HUGE_WINDOWS = (2**30 - 1, 2**30, 2**30 + 1, 2**31, 2**61, 2**62 - 1, 2**62, 2**62 + 1, MOST)
LEAST = (0, 0, 0, 1, 5, 20, 2**62, MOST)
PATIENCE = (1, 1, 1, 2, 3, 5, 2**62, MOST)
HORIZONS = (0, 0, 0, 1, 10, 40, 2**62, MOST)


# The slow twin ----------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def tails(below, above):
    """P(U <= u) and P(U >= u) for every u, each a ratio of whole numbers rounded once."""
    counts = [twins.runs_arrangements(u, below, above) for u in range(2 * min(below, above) + 2)]
    upto = list(itertools.accumulate(counts))
    total = upto[-1]
    less = array("d", [count / total for count in upto])
    greater = array("d", [(total - c + m) / total for c, m in zip(upto, counts, strict=True)])
    return less, greater


normal = lru_cache(maxsize=2**16)(partial(twins.runs_p_value, method="normal"))


def p_value(runs, below, above, method, alternative):
    if min(below, above) == 0 or below + above == 2:
        return 1.0
    if METHODS[method] == "normal":
        return normal(runs, below, above, alternative=ALTERNATIVES[alternative])
    less, greater = tails(below, above)
    if ALTERNATIVES[alternative] == "two-sided":
        return min(1.0, 2 * min(less[runs], greater[runs]))
    return (greater if alternative else less)[runs]


def same_p(one, other, n):
    """Up to 50 values both are rounded once; beyond, to 1e-13. The normal one is no sum."""
    return one == other or (n > 50 and math.isclose(one, other, rel_tol=1e-13))


class Twin:
    """What a tracker should say: all values, sorted and counted anew after each."""

    def __init__(
        self, alpha, method=0, window=0, alternative=0, min_bounds=0, patience=1, horizon=0,
        falling=False, fall=False,
    ):  # fmt: skip
        self.rule = (
            alpha, method, window, alternative, min_bounds, patience, horizon, falling, fall
        )  # fmt: skip
        self.window = window
        self.reset()

    def reset(self):
        self.values = []
        self.streak = self.stopped_at = self.runs = self.below = self.above = 0
        self.median, self.rejects, self.p = None, False, 1.0
        self.fell = self.rose = False

    def tested(self):
        return self.values[-self.window :] if self.window else self.values

    def push(self, value):
        alpha, method, _, alternative, min_bounds, patience, horizon, falling, fall = self.rule
        self.values.append(value)
        tested = self.tested()
        n = len(tested)
        ordered = sorted(tested)
        low, high = ordered[(n - 1) // 2], ordered[n // 2]
        median = (low + high) / 2
        self.median = median if math.isfinite(median) else low / 2 + high / 2
        self.below = bisect_left(ordered, self.median)
        self.above = n - self.below
        sides = [v >= self.median for v in tested]
        self.runs = 1 + sum(map(operator.ne, sides, itertools.islice(sides, 1, None)))
        self.p = p_value(self.runs, self.below, self.above, method, alternative)
        if falling and n >= 16:
            alpha *= (1 + math.log2(n / 16)) ** -2
        self.rejects = self.below > 0 < self.above and self.p <= alpha
        if fall and alternative == 0 and self.below > 0 < self.above:
            places = sum(i for i, high in enumerate(sides) if not high)
            high, low = (
                Fraction(n * (n - 1) // 2 - places, self.above),
                Fraction(places, self.below),
            )
            self.fell, self.rose = high < low, high > low
        else:
            self.fell = self.rose = False
        counts = self.rejects and (self.fell or not fall or alternative != 0)
        self.streak = self.streak + 1 if counts else 0
        if (
            not self.stopped_at
            and self.streak >= patience
            and len(self.values) >= min_bounds
            and (not horizon or len(self.values) <= horizon)
        ):
            self.stopped_at = len(self.values)
        return counts

    def extend(self, values):
        return [self.push(value) for value in values]

    def replay(self, rule):
        """A twin with another rule and the same values."""
        new = Twin(*rule)
        new.extend(self.values)
        return new

    def copy(self):
        new = Twin(*self.rule)
        vars(new).update(vars(self) | {"values": self.values.copy()})
        return new

    def state(self):
        return (len(self.values), self.runs, self.below, self.above, self.median, self.stopped_at)


# Values -----------------------------------------------------------------------------------------

EXTREMES = (
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.0, 1.0 + 2.0**-52, 1.0 - 2.0**-53,
    LARGEST, -LARGEST, 1.7e308, -1.7e308, 1e-300, 2.0**53, 2.0**53 + 2,
)  # fmt: skip


class Source:
    """Values of one stream: of one kind for a while, then of another."""

    KINDS = (
        "ties", "lattice", "denormal", "huge", "neighbours", "alternating", "rising", "falling",
        "zeros", "normal", "drop", "median", "old", "left",
    )  # fmt: skip

    def __init__(self, rng):
        self.rng = rng
        self.change()

    def change(self):
        rng = self.rng
        self.kind = rng.choice(self.KINDS)
        self.n = 0
        self.few = rng.sample(EXTREMES, rng.randint(1, 4))
        self.step = rng.choice((2.0**-20, 0.5, 1.0, 2.0**40, 1e-310, 1e300))
        self.start = rng.choice((0.0, 1.0, -1e300, 1e-310, rng.gauss(0, 1)))
        self.span = rng.choice((1, 3, 10, 40))

    def draw(self, twin):
        """One finite double that `twin` may find hard."""
        rng, kind = self.rng, self.kind
        if self.n and rng.random() < 0.03:
            self.change()
        self.n += 1
        if kind in ("median", "old", "left") and not twin.values:
            kind = "ties"
        if kind == "ties":
            return rng.choice(self.few)
        if kind == "zeros":
            return rng.choice((0.0, -0.0, 5e-324, -5e-324))
        if kind == "denormal":
            return rng.randint(-self.span, self.span) * 5e-324
        if kind == "lattice":
            return self.step * rng.randint(-self.span, self.span)
        if kind == "huge":
            value = LARGEST * (1 - rng.randint(0, 3) * 2.0**-53)
            return value if rng.random() < 0.5 else -value
        if kind == "neighbours":
            value = self.start
            for _ in range(rng.randint(0, 3)):
                value = math.nextafter(value, math.inf)
            return value
        if kind == "alternating":
            return (-1) ** self.n * float(rng.randint(1, self.span))
        if kind == "rising":
            return self.start + self.n
        if kind == "falling":
            return self.start - self.n
        if kind == "drop":
            return rng.gauss(5.0 if self.n <= 10 else 0.0, 1)
        if kind == "median":  # at it and beside it
            toward = rng.choice((twin.median, math.inf, -math.inf))
            value = math.nextafter(twin.median, toward)
            return value if math.isfinite(value) else twin.median
        if kind == "old":
            return rng.choice(twin.values)
        if kind == "left":  # what has just left the window, or will next
            at = len(twin.values) - len(twin.tested()) + rng.randint(-2, 1)
            return twin.values[min(max(at, 0), len(twin.values) - 1)]
        return rng.gauss(0, 1)


def random_rule(rng):
    return (
        rng.choice(LEVELS),
        rng.choice((0, 1, 1, 2)),
        rng.choice(HUGE_WINDOWS if rng.random() < 0.1 else WINDOWS),
        rng.choice((0, 0, 1, 2)),
        rng.choice(LEAST),
        rng.choice(PATIENCE),
        rng.choice(HORIZONS),
        rng.random() < 0.25,
        rng.random() < 0.6,
    )


NOT_FINITE = (math.nan, math.inf, -math.inf)


def equal(said, expected):
    if said != expected:
        raise AssertionError(f"{said} instead of {expected}")


def refuses(error, function, *arguments):
    """The call must raise; plain, because pytest.raises takes longer than the operation."""
    try:
        function(*arguments)
    except error:
        return
    raise AssertionError(f"{function.__name__}{arguments} was not refused")
