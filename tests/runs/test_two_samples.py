"""The Wald-Wolfowitz test of two samples against every order of the ties."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import twins
from hypothesis import given
from hypothesis import strategies as st

from fastal import runs_test_2samp

A = [35, 44, 39, 50, 48, 29, 60, 75, 49, 66]
B = [17, 23, 13, 24, 33, 21, 18, 16, 32]


def test_samples_without_ties():
    # in order: B x 6 (13 .. 24), A 29, B x 2 (32, 33), A x 9: 4 runs of 10 and 9
    for alternative in ("less", "greater", "two-sided"):
        for method in ("exact", "normal"):
            result = runs_test_2samp(A, B, alternative=alternative, method=method)
            p = twins.runs_p_value(4, 10, 9, alternative=alternative, method=method)
            assert result.pvalue == pytest.approx(p, rel=1e-12)
            assert result[2:] == (4, 10, 9, 4, 4, method)
    assert runs_test_2samp(A, B).pvalue == float(twins.runs_cdf(4, 10, 9))
    assert runs_test_2samp(B, A).pvalue == runs_test_2samp(A, B).pvalue
    for ties in ("average", "fewest", "most"):
        assert runs_test_2samp(A, B, ties=ties).pvalue == runs_test_2samp(A, B).pvalue


def test_siegels_example_of_ties():
    # DescTools, help page of RunsTest: four sequences, with 7 or 9 runs
    x, y = [10, 14, 17, 19, 34], [12, 13, 17, 19, 22]
    orders = twins.tied_orders(x, y)
    assert sorted(orders) == [7, 7, 7, 9]
    result = runs_test_2samp(x, y)
    assert (result.fewest_runs, result.most_runs, result.n_runs) == (7, 9, 9)
    assert runs_test_2samp(x, y, ties="fewest").pvalue == float(twins.runs_cdf(7, 5, 5))


small = st.lists(st.integers(0, 3), min_size=1, max_size=4)


@given(small, small, st.sampled_from(["less", "greater", "two-sided"]))
def test_every_order_of_ties(x, y, alternative):
    orders = twins.tied_orders(x, y)
    sizes = len(x), len(y)
    each = {u: twins.runs_p_value(u, *sizes, alternative=alternative) for u in set(orders)}
    result = {
        ties: runs_test_2samp(x, y, alternative=alternative, ties=ties, method="exact")
        for ties in ("conservative", "average", "fewest", "most")
    }
    for found in result.values():
        assert (found.fewest_runs, found.most_runs) == (min(orders), max(orders))
    assert result["fewest"].pvalue == pytest.approx(each[min(orders)], rel=1e-12)
    assert result["most"].pvalue == pytest.approx(each[max(orders)], rel=1e-12)
    assert result["conservative"].pvalue == pytest.approx(max(each.values()), rel=1e-12)
    mean = math.fsum(each[u] for u in orders) / len(orders)
    assert result["average"].pvalue == pytest.approx(mean, rel=1e-12)
    assert result["average"].n_runs == pytest.approx(float(Fraction(sum(orders), len(orders))))


@pytest.mark.parametrize("how", ["double", "distance", "likelihood"])
def test_two_sided(how):
    x, y = [1, 2, 2, 3, 9, 9], [2, 3, 4, 4, 4]
    each = [twins.runs_p_value(u, 6, 5, two_sided=how) for u in set(twins.tied_orders(x, y))]
    result = runs_test_2samp(x, y, alternative="two-sided", two_sided=how)
    assert result.pvalue == pytest.approx(max(each), rel=1e-12)


def test_many_ties():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 50, 400), rng.integers(0, 50, 300)
    average = runs_test_2samp(x, y, ties="average")
    assert average.fewest_runs < average.n_runs < average.most_runs
    # the mean number of runs, by drawing orders of ties
    draws = []
    values = np.concatenate((x, y))
    for _ in range(300):
        order = np.lexsort((rng.random(700), values))
        draws.append(1 + np.count_nonzero(np.diff(order < 400)))
    assert average.n_runs == pytest.approx(np.mean(draws), abs=4 * np.std(draws) / math.sqrt(300))
    assert (
        runs_test_2samp(x, y, ties="fewest").pvalue
        <= average.pvalue
        <= runs_test_2samp(x, y, ties="conservative").pvalue
    )


def test_normal_with_continuity():
    result = runs_test_2samp(A, B, method="normal", continuity=True)
    n, both = 19, 2 * 10 * 9
    sd = math.sqrt(both * (both - n) / (n * n * (n - 1)))
    z = (4 - (1 + both / n) + 0.5) / sd
    assert result.statistic == pytest.approx(z)
    assert result.pvalue == pytest.approx(math.erfc(-z / math.sqrt(2)) / 2)


def test_missing_values_and_containers():
    x = [*A, math.nan]
    assert runs_test_2samp(x, B, nan_policy="omit") == runs_test_2samp(A, B)
    assert math.isnan(runs_test_2samp(x, B, nan_policy="propagate").pvalue)
    assert runs_test_2samp(A, B, nan_policy="propagate") == runs_test_2samp(A, B)
    with pytest.raises(ValueError, match="`x` must be finite, got nan at index 10"):
        runs_test_2samp(x, B)
    frame = pd.DataFrame({"a": A}, index=pd.date_range("2026-01-01", periods=10))
    assert runs_test_2samp(frame, pd.Series(B)) == runs_test_2samp(A, B)
    assert runs_test_2samp([1], [2]).pvalue == 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": []}, ValueError, r"`x` must have at least one value that is not missing, got \[\]"),
        ({"y": [math.nan], "nan_policy": "omit"}, ValueError, "`y` must have at least one value"),
        ({"y": [1.0, math.nan]}, ValueError, 'got nan at index 1; nan_policy="omit" leaves it out'),
        ({"y": [[1.0]]}, ValueError, r"`y` must be one-dimensional, got shape \(1, 1\)"),
        ({"y": [math.inf]}, ValueError, "`y` must be finite, got inf"),
        ({"x": ["a"]}, TypeError, "`x` must hold real numbers"),
        ({"ties": "drop"}, ValueError, "`ties` must be one of 'conservative', .*, got 'drop'"),
        ({"continuity": 1}, TypeError, "`continuity` must be True or False, got 1"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        runs_test_2samp(**({"x": A, "y": B} | arguments))
