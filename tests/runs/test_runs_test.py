"""runs_test against its slow twin, enumeration, and hand-made sequences."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import twins
from hypothesis import example, given
from hypothesis import strategies as st

from fastal import Stopper, runs_test
from fastal.runs import RunsDistribution, choose_method
from fastal.stopping.verdict import stop_warnings

ALTERNATIVES = ["less", "greater", "two-sided"]
numbers = st.floats(allow_nan=False, allow_infinity=False)
few_values = st.lists(st.one_of(st.integers(-3, 3).map(float), numbers), min_size=2, max_size=60)


@given(few_values)
@example([1.5e308, 1.7e308])  # the sum of the two middle values overflows
@example([5e-324, 0.0])  # the midpoint of neighbours rounds down onto the smaller
@example([0.0, -0.0, 0.0, -1.0])
def test_equals_reference(x):
    result = runs_test(x, cutoff="median")
    if max(map(abs, x)) < 8e307:  # beyond, NumPy's median can overflow
        sides = np.asarray(x) >= np.median(x)
        assert (result.n_runs, result.n_below, result.n_above) == twins.count_runs(sides)
        assert result.cutoff == np.median(x)
    for alternative, method in itertools.product(ALTERNATIVES, ["exact", "normal"]):
        p = twins.runs_p_value(
            result.n_runs, result.n_below, result.n_above, alternative=alternative, method=method
        )
        ours = runs_test(x, cutoff="median", alternative=alternative, method=method)
        assert ours.pvalue == pytest.approx(p, rel=1e-12)
        assert ours.method == method


def test_huge_values_do_not_overflow_the_median():
    result = runs_test([1.7e308, 1.2e308, 1.7e308, 1.2e308])
    assert (result.n_runs, result.n_below, result.n_above) == (4, 2, 2)
    assert result.cutoff == pytest.approx(1.45e308)
    assert runs_test([1.7e308, 1.2e308, 1.7e308], cutoff="mean").n_runs == 3


@pytest.mark.parametrize("n", range(2, 13))
def test_every_arrangement_up_to_twelve(n):
    # p-values from counting arrangements with the same numbers of zeros and ones
    for n1 in range(n + 1):
        arrangements = [
            [i in ones for i in range(n)] for ones in itertools.combinations(range(n), n1)
        ]
        runs = [1 + sum(a != b for a, b in itertools.pairwise(s)) for s in arrangements]
        for sides, u in list(zip(arrangements, runs, strict=True))[:: max(1, len(runs) // 20)]:
            fewer = Fraction(sum(r <= u for r in runs), len(runs))
            more = Fraction(sum(r >= u for r in runs), len(runs))
            expected = (fewer, more, min(1, 2 * min(fewer, more)))
            for alternative, p in zip(ALTERNATIVES, expected, strict=True):
                result = runs_test(np.array(sides), alternative=alternative, method="exact")
                assert result.pvalue == float(p)
                assert (result.n_runs, result.n_above) == (u, n1)


def test_statistic_of_a_hand_made_sequence():
    # 6 below, 6 above, 2 runs: mean 7, variance 72 * 60 / (144 * 11)
    result = runs_test([9, 8, 9, 7, 8, 9, 2, 1, 2, 3, 1, 2], method="normal", alternative="less")
    z = (2 - 7) / math.sqrt(72 * 60 / (144 * 11))
    assert result.statistic == pytest.approx(z, rel=1e-15)
    assert result.pvalue == pytest.approx(math.erfc(-z / math.sqrt(2)) / 2, rel=1e-14)


def test_cutoffs():
    x = [0.0, 1.0, 2.0, 9.0]
    assert runs_test(x).cutoff == 1.5
    assert runs_test(x, cutoff="mean").cutoff == 3
    assert runs_test(x, cutoff="mean").n_above == 1
    assert runs_test(x, cutoff=2).n_above == 2  # ties go up
    assert runs_test(x, cutoff=np.float32(0.5)).n_below == 1
    flags = np.array([True, False, False, True, True])
    for cutoff in ("median", "mean", 7.0):
        result = runs_test(flags, cutoff=cutoff)
        assert (result.n_runs, result.n_below, result.n_above) == (3, 2, 3)


@pytest.mark.parametrize("n", [2, 3, 11, 12, 13, 100, 255, 256, 257, 1000, 5001])
@pytest.mark.parametrize("kind", ["normal", "few", "sorted", "equal", "outliers"])
def test_median_is_numpys(n, kind):
    rng = np.random.default_rng(n)
    x = {
        "normal": rng.standard_normal(n),
        "few": rng.integers(0, 5, n).astype(float),
        "sorted": np.arange(n) / 7,
        "equal": np.full(n, 3.25),
        "outliers": np.where(np.arange(n) % 10, rng.standard_normal(n), 1e300),
    }[kind]
    before = x.copy()
    result = runs_test(x, cutoff="median")
    assert result.cutoff == np.median(x)
    assert (result.n_runs, result.n_below, result.n_above) == twins.count_runs(twins.labels(x))
    assert (x == before).all()


def test_many_rows_in_one_call():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 40, 5))
    result = runs_test(x, axis=1, alternative="less")
    assert result.pvalue.shape == (3, 5)
    for i, j in np.ndindex(3, 5):
        one = runs_test(x[i, :, j], alternative="less")
        for name, value in one._asdict().items():
            assert getattr(result, name)[i, j] == value
    assert (runs_test(x, axis=-2, alternative="less").pvalue == result.pvalue).all()
    flags = runs_test(x > 0, axis=1)
    assert flags.n_above[0, 0] == (x[0, :, 0] > 0).sum()
    assert runs_test(x, cutoff="mean").cutoff[1, 1] == pytest.approx(x[1, 1].mean())
    assert runs_test(np.empty((0, 4))).pvalue.shape == (0,)
    assert runs_test(x[0], method="normal").method.tolist() == ["normal"] * 40


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        pd.Series,
        lambda x: x.astype(np.float32),
        lambda x: (x * 1000).astype(np.int16),
        lambda x: np.repeat(x, 3)[::3],
        lambda x: x[::-1].copy()[::-1],
        lambda x: x.astype(object),
        lambda x: [Fraction(v) for v in x],
        lambda x: np.asfortranarray(np.tile(x, (2, 1)))[1],
    ],
)
def test_any_layout_gives_the_same(convert):
    x = np.round(np.random.default_rng(5).standard_normal(50), 2)
    x.flags.writeable = False
    expected = runs_test(x)
    result = runs_test(convert(x))
    assert (result.n_runs, result.pvalue) == (expected.n_runs, expected.pvalue)


@pytest.mark.parametrize("x", [[1.0, 1.0], [5.0] * 30, [True, True], [0, 0, 0]])
def test_all_on_one_side(x):
    for method, alternative in itertools.product(["exact", "normal", "auto"], ALTERNATIVES):
        result = runs_test(x, method=method, alternative=alternative)
        assert result.pvalue == 1.0
        assert math.isnan(result.statistic)
        assert result.n_runs == 1


def test_two_values_tell_nothing():
    # statsmodels answers p = 0 here
    result = runs_test([1.0, 2.0], method="normal")
    assert (result.pvalue, result.n_runs) == (1.0, 2)
    assert math.isnan(result.statistic)


def test_choice_of_method():
    assert choose_method(500_000, 500_000) == "exact"
    assert choose_method(500_001, 500_000) == "normal"
    assert choose_method(999, 10**8) == "exact"
    assert choose_method(10**8, 999) == "exact"
    assert choose_method(1000, 10**8) == "normal"
    assert choose_method(1000, 999_000) == "exact"
    sides = np.arange(1_000_002) % 2 == 0
    assert runs_test(sides).method == "normal"
    assert runs_test(sides[:1_000_000]).method == "exact"
    sides[:] = True
    sides[:999] = False
    assert runs_test(sides).method == "exact"
    with pytest.raises(TypeError, match="`n_above` must be an integer"):
        choose_method(3, 2.0)


def test_stated_error_of_the_normal_approximation():
    # choose_method: 0.3 % too small at p = 0.001 with 10^6 balanced values, 0.2 % at 0.05;
    # n0 = 1, T = 22, U = 2 gives 7.8e-4 instead of 0.091 (DESIGN)
    d = RunsDistribution(500_000, 500_000)
    for z, low, high in [(-3.09, 0.003, 0.004), (-1.645, 0.0018, 0.0025)]:
        u = round(d.mean() + z * d.std())
        normal = math.erfc(-(u - d.mean()) / d.std() / math.sqrt(2)) / 2
        assert low < 1 - normal / d.cdf(u) < high
    one = [True] + 21 * [False]
    p = runs_test(one, method="normal", alternative="less").pvalue
    assert p == pytest.approx(7.8e-4, rel=0.01)
    assert runs_test(one, method="exact", alternative="less").pvalue == 2 / 22


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": [1.0]}, ValueError, "`x` must have at least 2 values along axis -1, got 1"),
        ({"x": []}, ValueError, "`x` must have at least 2 values along axis -1, got 0"),
        ({"x": 3.0}, ValueError, "`x` must have at least one axis, got 3.0"),
        ({"x": [1, math.nan, 2]}, ValueError, "`x` must be finite, got nan at index 1"),
        ({"x": [1, 2, 3, math.inf]}, ValueError, "`x` must be finite, got inf at index 3"),
        ({"x": [[1, 2], [-math.inf, 3]]}, ValueError, r"got -inf at index \(1, 0\)"),
        ({"x": [1, math.nan], "cutoff": "mean"}, ValueError, "`x` must be finite, got nan"),
        ({"x": [b"a", b"b"]}, TypeError, "`x` must hold real numbers, got dtype"),
        ({"x": [1j, 2]}, TypeError, "`x` must hold real numbers, got dtype complex128"),
        ({"x": [None, 1]}, TypeError, "`x` must hold real numbers, got dtype object"),
        ({"x": np.ma.array([1.0, 2.0], mask=[0, 1])}, TypeError, "must not be a masked array"),
        ({"x": [1, 2], "axis": 1}, ValueError, r"`axis` must be in \[-1, 1\), got 1"),
        ({"x": [1, 2], "axis": 0.0}, TypeError, "`axis` must be an integer, got 0.0"),
        ({"x": [1, 2], "cutoff": "mode"}, ValueError, "`cutoff` must be one of 'median', 'mean'"),
        ({"x": [1, 2], "cutoff": math.nan}, ValueError, "`cutoff` must be finite, got nan"),
        ({"x": [1, 2], "cutoff": None}, TypeError, "`cutoff` must be a real number, got None"),
        ({"x": [1, 2], "method": "fast"}, ValueError, "`method` must be one of .*, got 'fast'"),
        ({"x": [1, 2], "alternative": "left"}, ValueError, "`alternative` must be one of"),
        ({"x": [1, 2], "alternative": ["less"]}, ValueError, "`alternative` must be one of"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        runs_test(**arguments)


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
    with pytest.raises(ValueError, match="`x` must be finite, got nan at index 1"):
        runs_test(["a", float("nan"), "b", "a"])
    assert runs_test(list("aaa")).pvalue == 1.0
