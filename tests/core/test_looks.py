"""Deferred looks stop where a count after every value stops."""

import itertools

import numpy as np
import pytest
from twins import fast_looks, looks

from fastal._core import distribution, levels
from fastal._core.rule import Rule, stopping_times

METHODS = ("auto", "exact", "normal")
LEVELS = (1e-300, 1e-12, 1e-6, 1e-3, 1e-3, 0.01, 0.05, 0.2, 1 / 3, 0.45, 0.7, 0.9, 0.99)


def blocks(rng, n):
    """Labels with about as many runs as are critical for some level, high values first or not."""
    runs = max(2, int(n / 2 + 1 + rng.normal(-2, 1) * np.sqrt(n) / 2))
    ends = np.sort(rng.choice(np.arange(1, n), min(runs, n) - 1, replace=False)) if n > 1 else []
    return (np.searchsorted(ends, np.arange(n), side="right") + rng.integers(2)) % 2


KINDS = {
    "continuous": lambda rng, n: rng.standard_normal(n),
    "falling": lambda rng, n: np.exp(-np.arange(n) / rng.uniform(2, n + 2)) * rng.lognormal(size=n),
    "rising": lambda rng, n: np.arange(n) + rng.uniform(0, 9) * rng.standard_normal(n),
    "two values": lambda rng, n: rng.integers(0, 2, n) * 1.0,
    "three values": lambda rng, n: rng.integers(0, 3, n) * 1.0,
    "five values": lambda rng, n: rng.integers(0, 5, n) * 1.0,
    "half zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.standard_normal(n)),
    "third zeros": lambda rng, n: np.where(rng.random(n) < 1 / 3, 0.0, rng.random(n)),
    "zeros below": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.random(n)),
    "late zeros": lambda rng, n: np.where(rng.random(n) < np.arange(n) / n, 0.0, rng.random(n)),
    "adjacent": lambda rng, n: 1 + rng.integers(0, 4, n) * 2.0**-52,
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.0, -1.0], n),
    "subnormal": lambda rng, n: rng.integers(0, 9, n) * 5e-324,
    "huge": lambda rng, n: rng.choice([1.7e308, -1.7e308, 1e308], n) * rng.random(n),
    "negative": lambda rng, n: -rng.random(n) - np.exp(np.arange(n) / n),
    "sawtooth": lambda rng, n: np.arange(n) % rng.integers(2, 19) * 1.0,
    "shift": lambda rng, n: rng.standard_normal(n) + 3 * (np.arange(n) < rng.integers(0, n + 1)),
    "critical, ties": lambda rng, n: blocks(rng, n) * 1.0,
    "critical": lambda rng, n: blocks(rng, n) + rng.random(n),
    "inwards": lambda rng, n: (-1.0) ** np.arange(n) / (1 + np.arange(n)),
    "outwards": lambda rng, n: (-1.0) ** np.arange(n) * np.arange(n),
    "balanced": lambda rng, n: np.abs(np.arange(n) - n // 2) + rng.integers(0, 3, n) * 1.0,
}


def a_rule(rng):
    falling = bool(rng.random() < 0.2)
    return {
        "alpha": float(rng.choice(LEVELS)),
        "method": int(rng.integers(2 if falling else 3)),
        "falling": falling,
        "fall": bool(rng.integers(2)),
        "horizon": int(rng.choice([0, 0, 0, 5, 20, 40])),
    }


def spec(alpha, method=0, falling=False, fall=True, horizon=0):
    return ("runs", alpha, method, falling, fall, horizon)


def in_pieces(rng, rule, x):
    """Give values by pushes and extends, copied in between."""
    rule, i = Rule(rule), 0
    while i < len(x):
        j = i + 1 + int(rng.integers(0, 8)) * int(rng.integers(2))
        if j == i + 1:
            rule.push(x[i])
        else:
            rule.extend(x[i:j])
        i = j
        if rng.random() < 0.05:
            rule = rule.copy()
    return rule


@pytest.mark.parametrize("kind", KINDS)
def test_stops_where_a_count_after_every_value_stops(kind):
    rng = np.random.default_rng(sum(kind.encode()))
    for _ in range(100):
        n = int(rng.integers(1, 70)) if rng.random() < 0.95 else int(rng.integers(70, 160))
        x, rule = KINDS[kind](rng, n), a_rule(rng)
        settings = rule | {"method": METHODS[rule["method"]]}
        expected = looks.first_stop(x.tolist(), **settings)
        out = np.empty(1, dtype=np.int64)
        stopping_times(x[None], Rule(spec(**rule)), out)
        assert out[0] == expected
        made = in_pieces(rng, spec(**rule), x)
        assert made.stopped_at == max(expected, 0)
        assert made.says == (looks.says_stop(x.tolist(), **settings),)
        kept = np.empty(n)
        made.bounds(kept)
        assert (kept == x).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_twin_is_the_slow_one(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(10):
        rule = a_rule(rng)
        rule["method"] = METHODS[rule["method"]]
        x = KINDS[kind](rng, 60)
        assert fast_looks.first_stops(x[None], **rule)[0] == looks.first_stop(x.tolist(), **rule)


@pytest.mark.parametrize("fall", [True, False])
@pytest.mark.parametrize("alpha", [0.02, 0.11, 0.3, 0.45, 0.9])
def test_all_sequences_over_three_levels(alpha, fall):
    rows = np.array(list(itertools.product([0.0, 1.0, 2.0], repeat=12)))
    out = np.empty(len(rows), dtype=np.int64)
    stopping_times(rows, Rule(spec(alpha, fall=fall)), out)
    expected = fast_looks.first_stops(rows, alpha, fall=fall)
    assert (out == expected).all()
    assert (out > 0).sum() > 1000


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_streams(kind):
    assert different(kind, 45_000, seed=1) == 0
    assert different(kind, 1_000, seed=2, longest=256) == 0


def different(kind, n_streams, seed, longest=64):
    """Return how many of so many streams stop elsewhere than in the fast twin."""
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(n_streams // 500):
        rule = a_rule(rng)
        rows = np.array([KINDS[kind](rng, longest) for _ in range(500)])
        out = np.empty(500, dtype=np.int64)
        stopping_times(rows, Rule(spec(**rule)), out)
        settings = rule | {"method": METHODS[rule["method"]]}
        found += int((out != fast_looks.first_stops(rows, **settings)).sum())
    return found


def test_adjacent_doubles_have_the_exact_median():
    # the mean of the middle two rounds to the lower one: by it there is a stop at 8
    x = [1 + g * 2.0**-52 for g in (3, 2, 3, 2, 3, 2, 3, 0)]
    rule = Rule(spec(0.45))
    rule.extend(np.array(x))
    assert rule.stopped_at == 0
    assert looks.first_stop(x, 0.45) == -1


@pytest.mark.parametrize("method", [1, 2])
@pytest.mark.parametrize(
    "alpha", [*sorted(set(LEVELS)), 5e-324, 1e-310, 1e-100, 0.5, 0.995, 1 - 1e-6, 1 - 1e-12]
)
def test_bounds_of_critical_numbers_are_never_too_small(alpha, method):
    n = np.array([*range(2200), 3001, 4096, 10_000, 16_383, 16_384, 10**5, 10**6 - 1, 10**6, 10**7])
    bounds = np.empty(len(n), dtype=np.int64)
    levels.bounds_of_runs(alpha, False, method, n, bounds)
    for total, bound in zip(n.tolist(), bounds.tolist(), strict=True):
        n0, runs = total // 2, max(bound + 1, 2)
        if n0 and runs <= total:
            assert distribution.p_value(runs, n0, total - n0, 0, method) > alpha
    if 1e-12 <= alpha <= 0.99:
        assert bounds[n == 10_000] - critical(alpha, 10_000, method) <= 4


def critical(alpha, n, method):
    out = np.empty(n + 1, dtype=np.int32)
    levels.critical_counts(alpha, False, method, out)
    return out[n]


def test_critical_numbers():
    # counted in exact fractions
    out = np.empty(1001, dtype=np.int32)
    levels.critical_counts(0.001, False, 1, out)
    assert out[[13, 14, 20, 50, 100, 1000]].tolist() == [0, 2, 4, 14, 35, 451]
    for n in range(2, 200):
        table = fast_looks.critical(n // 2, n - n // 2, 0.001, "exact")
        assert out[n] == table


@pytest.mark.parametrize("fall", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_long_streams_stop_where_a_new_count_says_so(kind, fall):
    # beyond the critical numbers that a look ahead takes from the table
    rng = np.random.default_rng(sum(kind.encode()))
    for alpha, method in ((1e-3, 0), (0.2, 1), (0.01, 2), (1e-12, 0)):
        x = KINDS[kind](rng, 1500)
        if rng.random() < 0.5:  # the critical line far out
            x = np.concatenate([rng.permutation(x), x])
        rule, counted = (Rule(spec(alpha, method, fall=fall)) for _ in range(2))
        for n, r in enumerate(x.tolist(), 1):
            rule.push(r)
            counted.push(r)
            says = counted.says == (True,)  # by a count of all, whatever the looks before
            assert rule.stopped_at == says * n
            if says:
                break


@pytest.mark.parametrize("method", ["exact", "normal"])
@pytest.mark.parametrize("alpha", [*sorted(set(LEVELS)), 1e-4, 0.02, 0.1, 0.5, 0.999])
def test_halves_have_the_largest_critical_number(alpha, method):
    # what point 3 of the argument in looks.pyx rests on
    longest = 128
    counts = fast_looks.table(longest, alpha, method, False)
    for n in range(2, longest + 1):
        splits = counts[np.arange(n + 1), n - np.arange(n + 1)]
        assert splits.max() == splits[n // 2]
