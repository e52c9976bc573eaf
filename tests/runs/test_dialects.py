"""The options of runs_test, by enumeration with exact integers, and other programs' answers."""

import itertools
import math
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
import twins

from fastal import RunsDistribution, Stopper, runs_test
from fastal._core import distribution
from fastal.stopping.verdict import stop_warnings

TWO_SIDED = {"double": 2, "distance": 3, "likelihood": 4}


def arrangements_by_runs(n0, n1):
    """Count arrangements of n0 zeros and n1 ones by their runs, writing down every one."""
    counts = {}
    for ones in itertools.combinations(range(n0 + n1), n1):
        sides = [i in ones for i in range(n0 + n1)]
        u = 1 + sum(a != b for a, b in itertools.pairwise(sides))
        counts[u] = counts.get(u, 0) + 1
    return counts


def p_values(counts, n0, n1, u):
    """Return the three two-sided p-values as fractions."""
    total = sum(counts.values())
    mean = 1 + Fraction(2 * n0 * n1, n0 + n1)
    less = sum(c for i, c in counts.items() if i <= u)
    more = sum(c for i, c in counts.items() if i >= u)
    return {
        "double": min(Fraction(1), Fraction(2 * min(less, more), total)),
        "distance": Fraction(sum(c for i, c in counts.items() if abs(i - mean) >= abs(u - mean)))
        / total,
        "likelihood": Fraction(sum(c for c in counts.values() if c <= counts[u])) / total,
    }


@pytest.mark.parametrize("n", range(3, 13))
def test_two_sided_by_writing_down_every_arrangement(n):
    for n1 in range(1, n):
        counts = arrangements_by_runs(n - n1, n1)
        for u in counts:
            for how, p in p_values(counts, n - n1, n1, u).items():
                code = TWO_SIDED[how]
                ours = distribution.p_value(u, n - n1, n1, code, 1, False)
                assert ours == float(p), (u, n - n1, n1, how)  # correctly rounded up to T = 50
                assert twins.runs_p_value(u, n - n1, n1, two_sided=how) == float(p)


# 51 is the first total that is not counted in integers; odd and even, balanced and not
@pytest.mark.parametrize(
    ("n0", "n1"), [(20, 31), (25, 26), (26, 26), (3, 60), (1, 80), (2, 49), (75, 75), (40, 200)]
)
def test_two_sided_of_longer_sequences(n0, n1):
    counts = {u: twins.runs_arrangements(u, n0, n1) for u in range(2, n0 + n1 + 1)}
    counts = {u: c for u, c in counts.items() if c}
    for u in counts:
        for how, p in p_values(counts, n0, n1, u).items():
            ours = distribution.p_value(u, n0, n1, TWO_SIDED[how], 1, False)
            assert ours == pytest.approx(float(p), rel=1e-13), (u, how)
            assert ours <= 1


def test_two_sided_of_very_many_values():
    # no product of counts may overflow: 2^39 values on each side, a mean of 2^39 + 1
    half = 2**39
    for u in (half - 10**6, half + 1, half + 10**6):
        double, distance, likelihood = (
            distribution.p_value(u, half, half, code, 1, False) for code in TWO_SIDED.values()
        )
        assert distance == pytest.approx(double, rel=1e-5)  # nearly symmetric
        assert likelihood == pytest.approx(double, rel=1e-5)


def test_the_published_example():
    # DescTools, help page of RunsTest, "SPSS example small dataset"; its comments cite Eq. 4.7 of the
    # manual of SPSS Exact Tests for the distance and Gibbons for doubling. 210 arrangements of
    # 4 zeros and 6 ones: 2, 8 and 30 with 2, 3 and 4 runs, 5 with 9, the most there can be. The mean
    # is 5.8: three runs are 2.8 away, and so are 9 (3.2) but not 8 (2.2).
    assert [twins.runs_arrangements(u, 4, 6) for u in (2, 3, 4, 8, 9)] == [2, 8, 30, 20, 5]
    x = [1, 1, 1, 1, 0, 0, 0, 0, 1, 1]
    found = {how: runs_test(x, two_sided=how).pvalue for how in TWO_SIDED}
    assert found["double"] == float(2 * Fraction(2 + 8, 210)) == float(Fraction(2, 21))
    assert found["distance"] == float(Fraction(2 + 8 + 5, 210)) == float(Fraction(1, 14))
    assert found["likelihood"] == float(Fraction(2 + 8 + 5, 210))
    assert [f"{p:.4f}" for p in found.values()] == ["0.0952", "0.0714", "0.0714"]


def test_one_sided_p_values_do_not_depend_on_two_sided():
    x = [1, 1, 1, 1, 0, 0, 0, 0, 1, 1]
    for alternative in ("less", "greater"):
        p = {runs_test(x, alternative=alternative, two_sided=how).pvalue for how in TWO_SIDED}
        assert len(p) == 1
    normal = {
        runs_test(x, method="normal", two_sided=how, continuity=True).pvalue for how in TWO_SIDED
    }
    assert len(normal) == 1  # it is symmetric


# Two symbols -------------------------------------------------------------------------------------

FLIPS = [0, 0, 0, 0, 0, 0, 1, 1, 1]  # the median is 0: cut there, all are on one side


@pytest.mark.parametrize(
    "x",
    [
        FLIPS,
        np.array(FLIPS, dtype=bool),
        [3.5 + 2 * v for v in FLIPS],
        [v - 1 for v in FLIPS],
        list("aaaaaabbb"),
        np.array(list("aaaaaabbb")),
        pd.Series(list("aaaaaabbb")),
        pd.Series(list("aaaaaabbb"), dtype="category"),
        pd.Categorical(list("zzzzzzaaa"), categories=["z", "q", "a"]),
        pd.Series(FLIPS, dtype="Int64"),
        pd.Series([bool(v) for v in FLIPS], dtype="boolean"),
        pd.DataFrame({"x": FLIPS}),
        pd.DataFrame({"x": list("aaaaaabbb")}),
        pd.Series(FLIPS, index=pd.date_range("2026-01-01", periods=9)),
    ],
)
def test_two_symbols_are_taken_as_they_are(x):
    result = runs_test(x)
    assert (result.n_runs, result.n_below, result.n_above) == (2, 6, 3)
    assert result.pvalue == runs_test(np.array(FLIPS, dtype=bool)).pvalue < 1
    for ties in ("below", "drop"):  # symbols are no ties
        assert runs_test(x, ties=ties)[:5] == result[:5]


def test_the_median_is_the_median_where_it_is_asked_for():
    result = runs_test(FLIPS, cutoff="median")
    assert (result.pvalue, result.n_runs, result.n_below, result.cutoff) == (1.0, 1, 0, 0.0)
    assert runs_test(FLIPS).cutoff == 1.0
    assert runs_test([1, 1, 2, 2]).cutoff == 1.5  # the median, where it parts them
    assert runs_test(list("aaab")).cutoff == "b"
    assert runs_test([[0, 0, 1], [1, 2, 3]]).n_below.tolist() == [2, 1]  # each row by itself


def test_stoppers_and_verdicts_cut_at_the_median():
    # bounds of two values: the median is the smaller one, nothing lies below it
    bounds = [5.0] * 12 + [1.0] * 13
    stopper = Stopper()
    stopper.extend(bounds)
    assert (stopper.n_below, stopper.p_value) == (0, 1.0)
    assert stopper.p_value == runs_test(bounds, cutoff="median", alternative="less").pvalue
    assert runs_test(bounds, alternative="less").pvalue < 1e-3
    assert stop_warnings([1.0] * 13 + [5.0] * 12) == ()  # no side is empty by accident


def test_texts_that_are_no_two_symbols():
    with pytest.raises(ValueError, match=r"`x` must hold at most two different texts, got 3: \['a"):
        runs_test(list("abc"))
    with pytest.raises(ValueError, match=r"at most two categories, got 3: .* as in x == 'a'"):
        runs_test(pd.Categorical(list("abc")))
    with pytest.raises(
        TypeError, match=r"`cutoff` must be left out where `x` holds texts .*, got 'median'"
    ):
        runs_test(list("aab"), cutoff="median")
    with pytest.raises(TypeError, match="`x` must hold numbers or texts, not both, got 1"):
        runs_test(np.array(["a", 1], dtype=object))
    with pytest.raises(TypeError, match="`x` must hold numbers or texts, not both, got 1"):
        runs_test(["a", 1, "a"])  # NumPy would make "1" of it
    missing = runs_test(["a", float("nan"), "b", "a"], nan_policy="omit")
    assert missing == runs_test(list("aba"))
    assert runs_test(list("aaa")).pvalue == 1.0


# Ties, missing values, axes ----------------------------------------------------------------------


def test_ties():
    x = [2, 1, 2, 3, 3, 1, 2]  # the median is 2
    sides = {"above": "1011101", "below": "0001100", "drop": "0110"}
    for ties, expected in sides.items():
        result = runs_test(x, ties=ties)
        want = twins.count_runs([side == "1" for side in expected])
        assert (result.n_runs, result.n_below, result.n_above) == want
        assert result.pvalue == runs_test([side == "1" for side in expected]).pvalue
        assert runs_test([x, x], ties=ties).n_runs.tolist() == [want[0]] * 2
    assert runs_test([3.0, 3.0, 3.0], ties="drop")[1:5] == (1.0, 0, 0, 0)
    assert math.isnan(runs_test([3.0, 3.0, 3.0], ties="drop").statistic)
    assert runs_test([1.7976931348623157e308] * 3, cutoff=1.7976931348623157e308, ties="below")[
        2:5
    ] == (1, 3, 0)


@pytest.mark.parametrize("cutoff", ["auto", "median", "mean", 0.25])
def test_missing_values(cutoff):
    rng = np.random.default_rng(3)
    x = np.round(rng.standard_normal((4, 30)), 1)
    gaps = x.copy()
    gaps[1, [0, 7, 29]] = np.nan
    gaps[3] = np.nan
    gaps[3, 4] = 1.0
    full = runs_test(x, cutoff=cutoff)
    omitted = runs_test(gaps, cutoff=cutoff, nan_policy="omit")
    propagated = runs_test(gaps, cutoff=cutoff, nan_policy="propagate")
    for name in full._fields:
        for row in (0, 2):
            for result in (omitted, propagated):
                assert getattr(result, name)[row] == getattr(full, name)[row]
    kept = runs_test(gaps[1][~np.isnan(gaps[1])], cutoff=cutoff)
    for name in full._fields:
        assert getattr(omitted, name)[1] == getattr(kept, name)
    assert np.isnan(omitted.pvalue[3])
    assert np.isnan(propagated.pvalue[[1, 3]]).all()
    assert propagated.n_runs[1] == omitted.n_runs[3] == 0
    one = runs_test(gaps[1], cutoff=cutoff, nan_policy="omit")
    assert one == kept
    assert math.isnan(runs_test(gaps[1], cutoff=cutoff, nan_policy="propagate").pvalue)
    with pytest.raises(ValueError, match=r"`x` must be finite, got nan at index \(1, 0\)"):
        runs_test(gaps, cutoff=cutoff)
    with pytest.raises(ValueError, match=r'got nan at index 0.*nan_policy="omit" leaves it out'):
        runs_test(gaps[1])
    with pytest.raises(ValueError, match="`x` must be finite, got inf"):
        runs_test([1.0, math.inf, math.nan], cutoff=cutoff, nan_policy="omit")


@pytest.mark.parametrize(
    "x",
    [
        np.array(["a", None, "b", "a", "b", np.nan], dtype=object),
        pd.Series(["a", None, "b", "a", "b", None], dtype="string"),
        pd.Series(["a", None, "b", "a", "b", None], dtype="category"),
        pd.Series([0, None, 1, 0, 1, None], dtype="Int64"),
        pd.Series([False, None, True, False, True, None], dtype="boolean"),
        np.array([False, None, True, False, True, None], dtype=object),
    ],
)
def test_missing_among_symbols(x):
    assert runs_test(x, nan_policy="omit")[2:5] == (4, 2, 2)
    assert math.isnan(runs_test(x, nan_policy="propagate").pvalue)
    with pytest.raises((ValueError, TypeError), match="`x` must"):
        runs_test(x)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_keepdims(axis):
    x = np.random.default_rng(0).standard_normal((4, 5, 6))
    plain, kept = runs_test(x, axis=axis), runs_test(x, axis=axis, keepdims=True)
    for a, b in zip(plain, kept, strict=True):
        assert b.shape == tuple(1 if i == axis % 3 else n for i, n in enumerate(x.shape))
        assert (np.squeeze(b, axis) == a).all()
    assert runs_test([1, 2, 3], keepdims=True).pvalue.shape == (1,)
    assert runs_test(list("aab"), keepdims=True).cutoff.tolist() == ["b"]


@pytest.mark.parametrize("flag", ["keepdims", "continuity"])
@pytest.mark.parametrize("value", [0, 1, "yes", None, 1.0, np.array([True])])
def test_flags_are_booleans(flag, value):
    with pytest.raises(TypeError, match=f"`{flag}` must be True or False, got"):
        runs_test([1.0, 2.0, 3.0], **{flag: value})
    assert runs_test([1.0, 2.0, 3.0], **{flag: np.True_}).n_runs == 2


@pytest.mark.parametrize("name", ["nan_policy", "ties", "two_sided", "cutoff"])
@pytest.mark.parametrize("value", ["no", "", "Double"])
def test_options_name_what_they_may_be(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be one of '.*', got '{value}'"):
        runs_test([1.0, 2.0, 3.0], **{name: value})


# Other programs ----------------------------------------------------------------------------------
#
# Their rules were read in their sources and manuals (docs/runs.md has the table); what they answer is
# computed here from these rules, with exact integers, and nothing of fastal.

# the 24 values of the example in the manual of SPSS Exact Tests, as DescTools has them
SPSS = [31, 23, 36, 43, 51, 44, 12, 26, 43, 75, 2, 3, 15, 18, 78, 24, 13, 27, 86, 61, 13, 7, 6, 8]
# 23 determinations of the density of the earth (Brownlee 1965, p. 223), as randtests has them
EARTH = [5.36, 5.29, 5.58, 5.65, 5.57, 5.53, 5.62, 5.29, 5.44, 5.34, 5.79, 5.10, 5.27, 5.39, 5.42,
         5.47, 5.63, 5.34, 5.46, 5.30, 5.75, 5.68, 5.85]  # fmt: skip


def counted(sides):
    sides = list(sides)
    u = 1 + sum(a != b for a, b in itertools.pairwise(sides))
    return u, sides.count(False), sides.count(True)


def exact_tails(u, n0, n1):
    """Return P(U <= u) and P(U >= u) from binomial coefficients."""

    def ways(i):
        k = i // 2
        if i % 2 == 0:
            return 2 * comb(n0 - 1, k - 1) * comb(n1 - 1, k - 1)
        return comb(n0 - 1, k - 1) * comb(n1 - 1, k) + comb(n0 - 1, k) * comb(n1 - 1, k - 1)

    masses = {i: Fraction(ways(i), comb(n0 + n1, n0)) for i in range(2, n0 + n1 + 1)}
    less = sum(p for i, p in masses.items() if i <= u)
    mean = 1 + Fraction(2 * n0 * n1, n0 + n1)
    distant = sum(p for i, p in masses.items() if abs(i - mean) >= abs(u - mean))
    return less, 1 - less + masses[u], distant


def normal_p(u, n0, n1, shift=0.0):
    n = n0 + n1
    mean, var = 1 + 2 * n0 * n1 / n, 2 * n0 * n1 * (2 * n0 * n1 - n) / (n * n * (n - 1))
    d = abs(u - mean) - shift
    return math.erfc(max(d, 0.0) / math.sqrt(var) / math.sqrt(2))


def answers(x):
    """Return what each program answers for numbers x, by its rule."""
    median = sorted(x)[len(x) // 2] if len(x) % 2 else sum(sorted(x)[len(x) // 2 - 1 :][:2]) / 2
    mean = float(Fraction(sum(Fraction(v) for v in x), len(x)))
    dropped = counted(v > median for v in x if v != median)
    above = counted(v >= median for v in x)
    below = counted(v > median for v in x)
    at_mean = counted(v >= mean for v in x)
    less, more, _ = exact_tails(*dropped)
    return {
        "randtests": normal_p(*dropped),
        "randtests, exact": float(2 * min(less, more)),
        "DescTools": float(exact_tails(*below)[2]),
        "DescTools, normal": normal_p(*below, 0.5),
        "tseries": normal_p(*above),
        "snpar": normal_p(*below),
        "snpar, exact": float(2 * min(exact_tails(*below)[:2])),
        "SPSS": normal_p(*above, 0.5),
        "SPSS, exact": float(exact_tails(*above)[2]),
        "statsmodels": normal_p(*at_mean, 0.5),
        "HypothesisTests.jl": normal_p(*above),
    }


ARGUMENTS = {
    "randtests": {"ties": "drop", "method": "normal"},
    "randtests, exact": {"ties": "drop", "method": "exact"},
    "DescTools": {"ties": "below", "method": "exact", "two_sided": "distance"},
    "DescTools, normal": {"ties": "below", "method": "normal", "continuity": True},
    "tseries": {"method": "normal"},
    "snpar": {"ties": "below", "method": "normal"},
    "snpar, exact": {"ties": "below", "method": "exact"},
    "SPSS": {"cutoff": "median", "method": "normal", "continuity": True},
    "SPSS, exact": {"cutoff": "median", "method": "exact", "two_sided": "distance"},
    "statsmodels": {"cutoff": "mean", "method": "normal", "continuity": True},
    "HypothesisTests.jl": {"cutoff": "median", "method": "normal"},
}


@pytest.mark.parametrize("program", ARGUMENTS)
@pytest.mark.parametrize("data", [SPSS, EARTH], ids=["spss", "earth"])
def test_arguments_that_reproduce_other_programs(program, data):
    ours = runs_test(data, **ARGUMENTS[program]).pvalue
    assert ours == pytest.approx(answers(data)[program], rel=1e-12)


def test_the_table_in_the_documentation():
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "runs.md").read_text("utf-8")
    for program, p in answers(EARTH).items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {program} |"))
        assert row.endswith(f"| {p:.6f} |"), (row, p)
        for name, value in ARGUMENTS[program].items():
            assert f"{name}={value!r}".replace("'", '"') in row


def test_statsmodels_itself():
    runs = pytest.importorskip("statsmodels.sandbox.stats.runs", reason="statsmodels: extra bench")
    for data in (SPSS, EARTH):
        z, p = runs.runstest_1samp(data)
        ours = runs_test(data, **ARGUMENTS["statsmodels"])
        assert (ours.statistic, ours.pvalue) == (pytest.approx(z), pytest.approx(p))
    # an older median, no correction: R's tseries, as its help page says
    z, p = runs.runstest_1samp(SPSS, cutoff="median", correction=False)
    assert runs_test(SPSS, **ARGUMENTS["tseries"]).pvalue == pytest.approx(p)


# The distribution --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n0", "n1"), [(3, 4), (5, 5), (1, 9), (12, 7)])
def test_median_and_isf(n0, n1):
    d = RunsDistribution(n0, n1)
    support = range(d.support()[0], d.support()[1] + 1)
    assert d.median() == min(u for u in support if twins.runs_cdf(u, n0, n1) >= Fraction(1, 2))
    for q in (0.001, 0.025, 0.25, 0.5, 0.9, 0.999, d.sf(4), d.sf(3)):
        want = min(u for u in support if d.sf(u) <= q)
        assert d.isf(q) == want
    assert d.isf([0.0, 1.0]).tolist() == d.ppf([1.0, 0.0]).tolist()
    assert np.isnan(d.isf([-0.1, 1.1])).all()


def test_rng_is_random_state():
    d = RunsDistribution(20, 30)
    assert (d.rvs(50, rng=3) == d.rvs(50, random_state=3)).all()
    assert d.rvs(rng=np.random.default_rng(1)) in range(2, 42)
    with pytest.raises(ValueError, match="`rng` must not be given together with `random_state`"):
        d.rvs(rng=1, random_state=1)
    with pytest.raises(TypeError, match="`rng` must be an integer, got 'a'"):
        d.rvs(rng="a")
