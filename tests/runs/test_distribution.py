"""RunsDistribution against exact integers, enumeration and printed tables."""

import itertools
import math
import pickle
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
import twins

from fastal._core import distribution
from fastal.runs import RunsDistribution

SMALL = [(a, b) for a in range(13) for b in range(13 - a) if a + b > 0]
LARGE = [(515, 515), (600, 600), (3000, 3000), (1, 10**6), (5000, 20)]


def exact_log(part: int, total: int) -> float:
    with mpmath.workdps(40):
        if 2 * part > total:
            return float(mpmath.log1p(-mpmath.mpf(total - part) / total))
        return float(mpmath.log(mpmath.mpf(part) / total))


def relative_error(value: float, exact: Fraction) -> float:
    return abs(float((Fraction(float(value)) - exact) / exact))


@pytest.mark.parametrize(("n0", "n1"), SMALL)
def test_masses_equal_enumeration(n0, n1):
    counted = [0] * (n0 + n1 + 2)
    for ones in itertools.combinations(range(n0 + n1), n1):
        sides = [i in ones for i in range(n0 + n1)]
        counted[1 + sum(a != b for a, b in itertools.pairwise(sides))] += 1
    total = sum(counted)
    assert total == math.comb(n0 + n1, n0)
    masses = RunsDistribution(n0, n1).pmf(np.arange(len(counted)))
    assert masses.tolist() == [c / total for c in counted]
    assert [twins.runs_arrangements(u, n0, n1) for u in range(len(counted))] == counted


def test_masses_up_to_60_against_exact_integers():
    worst = 0.0
    for n0, n1 in itertools.product(range(61), repeat=2):
        if n0 + n1 == 0:
            continue
        u = np.arange(2 * min(n0, n1) + 3)
        total = math.comb(n0 + n1, n0)
        for i, mass in zip(u.tolist(), RunsDistribution(n0, n1).pmf(u).tolist(), strict=True):
            exact = Fraction(twins.runs_arrangements(i, n0, n1), total)
            if exact == 0:
                assert mass == 0
            else:
                worst = max(worst, relative_error(mass, exact))
    assert worst <= 1e-15


def exact_masses(n0, n1, samples=400):
    """Numbers of runs all over the support, each with its exact mass."""
    low, high = RunsDistribution(n0, n1).support()
    spread = RunsDistribution(n0, n1)
    middle = np.arange(spread.mean() - 40 * spread.std(), spread.mean() + 40 * spread.std())
    every = np.unique(np.r_[np.linspace(low, high, samples), middle[:: max(1, len(middle) // 800)]])
    every = np.unique(np.clip(every.astype(int), low, high))
    total = math.comb(n0 + n1, n0)
    return [(u, Fraction(twins.runs_arrangements(u, n0, n1), total)) for u in every.tolist()]


@pytest.mark.parametrize(("n0", "n1"), LARGE)
def test_large_masses_against_exact_integers(n0, n1):
    d = RunsDistribution(n0, n1)
    compared = 0
    for u, exact in exact_masses(n0, n1):
        if exact > Fraction(1, 10**290):
            assert relative_error(d.pmf(u), exact) <= 1e-15
            compared += 1
        log = exact_log(exact.numerator, exact.denominator)
        assert d.logpmf(u) == pytest.approx(log, rel=1e-14)
    assert compared >= 2


@pytest.mark.parametrize(("n0", "n1"), [(515, 515), (600, 600), (5000, 20), (40, 200), (1, 10**4)])
def test_tails_against_exact_integers(n0, n1):
    d = RunsDistribution(n0, n1)
    low, high = d.support()
    total = math.comb(n0 + n1, n0)
    count = 0
    for u in range(low, high + 1):
        count += twins.runs_arrangements(u, n0, n1)
        below, above = Fraction(count, total), Fraction(total - count, total)
        for value, exact in ((d.cdf(u), below), (d.sf(u), above)):
            if exact > Fraction(1, 10**290):
                assert relative_error(value, exact) <= 1e-13
        assert d.logcdf(u) == pytest.approx(exact_log(count, total), rel=1e-13, abs=1e-300)
        if above:
            assert d.logsf(u) == pytest.approx(
                exact_log(total - count, total), rel=1e-13, abs=1e-300
            )


def log_errors(n0, n1, every=1):
    """Worst relative errors of logcdf, logsf and logpmf over the support and one step beyond it."""
    d = RunsDistribution(n0, n1)
    low, high = d.support()
    total = math.comb(n0 + n1, n0)
    # exact numbers of arrangements with u runs, by the ratios of the masses
    masses = {u: twins.runs_arrangements(u, n0, n1) for u in range(low, high + 1)}
    assert sum(masses.values()) == total
    u = np.arange(low - 1, high + 2)
    found = {name: getattr(d, name)(u) for name in ("logcdf", "logsf", "logpmf")}
    worst, below = 0.0, 0
    for i, at in enumerate(u.tolist()):
        mass = masses.get(at, 0)
        below += mass
        if i % every and 2 < i < len(u) - 3:
            continue
        for name, part in (("logcdf", below), ("logsf", total - below), ("logpmf", mass)):
            value = float(found[name][i])
            if part == 0:
                assert value == -math.inf, (name, at)
                continue
            exact = 0.0 if part == total else exact_log(part, total)
            if exact == 0:  # certain, or up to a complement below every double
                assert value == 0, (name, at)
                assert math.copysign(1, value) == -1, (name, at)  # approached from below
            else:  # among the denormal doubles, one of which stands for many numbers, by steps
                steps = 8 * math.ulp(0.0) if abs(exact) < sys.float_info.min else 0.0
                worst = max(worst, max(0.0, abs(value - exact) - steps) / abs(exact))
    return worst


def test_logarithms_at_every_count_up_to_60():
    # they were off by 1e-4 at T = 50, where a probability next to 1 was taken off 1
    worst = 0.0
    for n0, n1 in itertools.combinations_with_replacement(range(61), 2):
        if n0 + n1 > 0 and (n0 + n1 <= 52 or (n0 + n1) % 7 == 0):
            worst = max(worst, log_errors(n0, n1))
    assert worst <= 1e-12


@pytest.mark.long
def test_logarithms_at_every_count_up_to_60_and_large_ones():
    worst = max(
        log_errors(n0, n1) for n0, n1 in itertools.product(range(61), repeat=2) if n0 + n1 > 0
    )
    assert worst <= 1e-12
    for n0, n1 in ((500, 500), (3000, 3000), (1, 10**6), (10**6, 1), (5000, 20), (20, 5000)):
        assert log_errors(n0, n1) <= 1e-12, (n0, n1)


@pytest.mark.parametrize(
    ("n0", "n1", "every"), [(500, 500, 3), (1, 10**6, 1), (5000, 20, 1), (3000, 3000, 150)]
)
def test_logarithms_of_large_counts(n0, n1, every):
    assert log_errors(n0, n1, every) <= 1e-12


def test_quantiles_at_every_jump():
    for n0, n1 in itertools.combinations_with_replacement(range(1, 40, 3), 2):
        d = RunsDistribution(n0, n1)
        u = np.arange(d.support()[0], d.support()[1] + 1)
        cdf = d.cdf(u)
        assert (np.diff(cdf) >= 0).all()
        jumps = np.r_[True, np.diff(cdf) > 0]
        # at a jump the quantile is there, and just above it further on
        np.testing.assert_array_equal(d.ppf(cdf[jumps]), u[jumps])
        above = np.nextafter(cdf[jumps][:-1], 1)
        np.testing.assert_array_equal(d.ppf(above), u[jumps][1:])


def test_two_sided_p_values_against_exact_integers():
    for n0, n1 in itertools.product(range(1, 31, 2), range(1, 31, 3)):
        total = math.comb(n0 + n1, n0)
        low, high = RunsDistribution(n0, n1).support()
        below = 0
        for u in range(low, high + 1):
            mass = twins.runs_arrangements(u, n0, n1)
            below += mass
            tail = min(Fraction(below, total), Fraction(total - below + mass, total))
            exact = min(Fraction(1), 2 * tail) if n0 + n1 > 2 else Fraction(1)
            assert relative_error(distribution.p_value(u, n0, n1, 2, 1), exact) <= 1e-13


def test_ten_million_values_against_mpmath():
    # P(U = 2k) = 2 C(n-1,k-1)^2 / C(2n,n), log-gamma with 60 digits
    n = 5 * 10**6
    d = RunsDistribution(n, n)
    with mpmath.workdps(60):

        def log_choose(a, b):
            gamma = mpmath.loggamma
            return gamma(a + 1) - gamma(b + 1) - gamma(a - b + 1)

        for u in (2, 1000, 4_900_000, 4_943_000, 4_990_000, 5_000_000, 5_010_000, 9_999_998):
            exact = mpmath.log(2) + 2 * log_choose(n - 1, u // 2 - 1) - log_choose(2 * n, n)
            assert d.logpmf(u) == pytest.approx(float(exact), rel=1e-15)
            if exact > -667:
                assert float(abs(d.pmf(u) / mpmath.exp(exact) - 1)) <= 1e-14
    assert d.cdf(4_995_000) + d.sf(4_995_000) == pytest.approx(1, rel=1e-14)
    assert d.cdf(5_000_000) + d.sf(4_999_999) - d.pmf(5_000_000) == pytest.approx(1, rel=1e-13)
    assert d.ppf(d.cdf(4_995_000)) == 4_995_000


def test_floor_of_half_is_hypergeometric():
    # an implementation of another kind: scipy's hypergeometric distribution (T-1, n0, n1)
    for n0, n1 in [(7, 9), (30, 30), (200, 37)]:
        k = np.arange(1, min(n0, n1) + 1)
        d = RunsDistribution(n0, n1)
        peer = scipy.stats.hypergeom(n0 + n1 - 1, n0, n1)
        np.testing.assert_allclose(d.cdf(2 * k + 1), peer.cdf(k), rtol=1e-10)
        np.testing.assert_allclose(d.pmf(2 * k) + d.pmf(2 * k + 1), peer.pmf(k), rtol=1e-10)


@pytest.mark.parametrize(("n0", "n1"), [(5, 9), (26, 26), (60, 31), (300, 299), (1, 70), (0, 4)])
def test_identities(n0, n1):
    d = RunsDistribution(n0, n1)
    low, high = d.support()
    u = np.arange(low - 2, high + 3)
    np.testing.assert_allclose(d.cdf(u) + d.sf(u), 1, rtol=1e-13)
    np.testing.assert_allclose(d.cdf(u) + d.sf(u - 1) - d.pmf(u), 1, rtol=1e-13)
    np.testing.assert_allclose(d.pmf(u).sum(), 1, rtol=1e-13)
    np.testing.assert_allclose(np.cumsum(d.pmf(u)), d.cdf(u), rtol=1e-12)
    np.testing.assert_allclose((u * d.pmf(u)).sum(), d.mean(), rtol=1e-12)
    np.testing.assert_allclose(((u - d.mean()) ** 2 * d.pmf(u)).sum(), d.var(), rtol=1e-11)
    assert d.std() == math.sqrt(d.var())
    swapped = RunsDistribution(n1, n0)
    for name in ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
        np.testing.assert_allclose(getattr(d, name)(u), getattr(swapped, name)(u), rtol=1e-13)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(d.logpmf(u), np.log(d.pmf(u)), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(d.logcdf(u), np.log(d.cdf(u)), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(d.logsf(u), np.log(d.sf(u)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("n0", "n1"), [(4, 4), (10, 25), (40, 40), (700, 650), (1, 300)])
def test_ppf_inverts_cdf(n0, n1):
    d = RunsDistribution(n0, n1)
    u = np.arange(d.support()[0], d.support()[1] + 1)
    cdf = d.cdf(u)
    levels = cdf[cdf > 0]
    for q in [
        1e-12,
        1e-3,
        0.025,
        0.3,
        0.5,
        0.77,
        0.999,
        1 - 1e-12,
        *levels[:: max(1, len(levels) // 30)],
    ]:
        # the first u whose cdf, as computed, reaches q: what ppf promises
        assert d.ppf(q) == u[np.argmax(cdf >= q)]
    assert d.ppf(0) == d.support()[0] - 1
    assert d.ppf(1) <= d.support()[1]
    assert np.isnan(d.ppf([-0.1, 1.1, np.nan])).all()


def test_the_papers_odd_formula_is_shifted():
    # Section 4.1 of the paper prints for U = 2t + 1 the mass of U = 2t - 1
    def printed(u, n0, n1):
        t = u // 2
        choose = math.comb
        if u % 2 == 0:
            number = 2 * choose(n0 - 1, t - 1) * choose(n1 - 1, t - 1)
        elif t == 1:
            number = 0  # C(n, -1) = 0
        else:
            number = choose(n0 - 1, t - 1) * choose(n1 - 1, t - 2)
            number += choose(n0 - 1, t - 2) * choose(n1 - 1, t - 1)
        return Fraction(number, choose(n0 + n1, n0))

    n0, n1 = 5, 8
    u = range(2, 2 * n0 + 2)
    theirs = sum(printed(i, n0, n1) for i in u)
    assert theirs == Fraction(422, 429) == 1 - twins.runs_pmf(2 * n0 + 1, n0, n1)
    assert sum(twins.runs_pmf(i, n0, n1) for i in u) == 1
    assert RunsDistribution(n0, n1).pmf(list(u)).sum() == pytest.approx(1, rel=1e-15)
    for i in range(5, 2 * n0 + 2, 2):
        assert printed(i, n0, n1) == twins.runs_pmf(i - 2, n0, n1)


# F. S. Swed and C. Eisenhart, "Tables for testing randomness of grouping in a sequence of
# alternatives", Annals of Mathematical Statistics 14 (1943), table II: the largest u with
# P(U <= u) at most the level. Verified here from exact integers.
@pytest.mark.parametrize(
    ("n0", "n1", "level", "critical"),
    [
        (10, 10, 0.05, 6),
        (10, 10, 0.025, 6),
        (10, 10, 0.01, 5),
        (20, 20, 0.05, 15),
        (20, 20, 0.025, 14),
        (15, 15, 0.025, 10),
        (5, 5, 0.05, 3),
        (5, 5, 0.025, 2),
        (2, 12, 0.025, 2),
    ],
)
def test_printed_critical_values(n0, n1, level, critical):
    level = Fraction(str(level))
    assert twins.runs_cdf(critical, n0, n1) <= level < twins.runs_cdf(critical + 1, n0, n1)
    d = RunsDistribution(n0, n1)
    assert d.cdf(critical) <= float(level) < d.cdf(critical + 1)


def test_a_tail_equal_to_the_level_is_exact():
    # P(U <= 2) = 2 / C(6, 3) = 1/10: up to 50 values the ratio is correctly rounded
    assert RunsDistribution(3, 3).cdf(2) == 0.1
    for n0, n1 in [(3, 3), (11, 14), (25, 25), (8, 42)]:
        for u in range(2, RunsDistribution(n0, n1).support()[1] + 1):
            assert RunsDistribution(n0, n1).cdf(u) == float(twins.runs_cdf(u, n0, n1))


def test_random_draws_follow_the_masses():
    for n0, n1 in [(6, 9), (40, 40), (0, 3), (1, 1)]:
        d = RunsDistribution(n0, n1)
        draws = d.rvs(size=(200, 500), random_state=1)
        assert draws.shape == (200, 500)
        low, high = d.support()
        assert low <= draws.min() <= draws.max() <= high
        seen = np.bincount(draws.ravel(), minlength=high + 1)[low:]
        expected = d.pmf(np.arange(low, high + 1)) * draws.size
        keep = expected >= 10
        if keep.sum() > 1:
            rest = [max(seen[~keep].sum(), 0)], [expected[~keep].sum()]
            pooled = np.r_[seen[keep], rest[0]], np.r_[expected[keep], rest[1]]
            chosen = pooled[1] > 0
            test = scipy.stats.chisquare(pooled[0][chosen], pooled[1][chosen])
            assert test.pvalue > 1e-4
    assert d.rvs(random_state=np.random.default_rng(3)) == 2
    assert (d.rvs(5, random_state=7) == d.rvs(5, random_state=7)).all()


def test_shapes_types_and_points_off_the_support():
    d = RunsDistribution(4, 6)
    assert type(d.cdf(5)) is float
    assert type(d.mean()) is float
    assert d.support() == (2, 9)
    assert d.pmf([[2, 3], [4, 5]]).shape == (2, 2)
    assert d.cdf(np.arange(2, 10, dtype=np.int32)[::-2]).tolist() == [
        d.cdf(u) for u in (9, 7, 5, 3)
    ]
    assert d.pmf(2.5) == 0
    assert d.logpmf(2.5) == -math.inf
    assert d.cdf(2.5) == d.cdf(2)
    assert d.cdf([-math.inf, -3, 1e300, math.inf]).tolist() == [0, 0, 1, 1]
    assert d.sf([-5, 100]).tolist() == [1, 0]
    assert np.isnan(d.cdf(math.nan))
    assert RunsDistribution(0, 5).pmf([0, 1, 2]).tolist() == [0, 1, 0]
    assert RunsDistribution(0, 5).logcdf(1) == 0


def test_equality_pickle_and_repr():
    d = RunsDistribution(4, np.int64(6))
    assert pickle.loads(pickle.dumps(d)) == d
    assert d != RunsDistribution(6, 4)
    assert d != "d"
    assert len({d, RunsDistribution(4, 6)}) == 1
    assert repr(d) == "RunsDistribution(n_below=4, n_above=6)"
    with pytest.raises(AttributeError):
        d.n_below = 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, 3), ValueError, "`n_below` must be at least 0, got -1"),
        ((3, -2), ValueError, "`n_above` must be at least 0, got -2"),
        ((2.5, 3), TypeError, "`n_below` must be an integer, got 2.5"),
        ((True, 3), TypeError, "`n_below` must be an integer, got True"),
        ((0, 0), ValueError, r"`n_below` \+ `n_above` must be between 1 and 2\^40, got 0 \+ 0"),
        ((2**40, 1), ValueError, "must be between 1 and"),
    ],
)
def test_bad_counts(arguments, error, message):
    with pytest.raises(error, match=message):
        RunsDistribution(*arguments)


def test_bad_points():
    with pytest.raises(TypeError, match="`u` must hold real numbers, got dtype"):
        RunsDistribution(3, 3).pmf("two")
    with pytest.raises(TypeError, match="`q` must hold real numbers, got dtype"):
        RunsDistribution(3, 3).ppf([1j])


@pytest.mark.parametrize("name", ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf"])
def test_integers_that_no_double_can_hold(name):
    d = RunsDistribution(5, 5)
    argument = "q" if name == "ppf" else "u"
    for value in (10**400, [1, 10**400]):
        with pytest.raises(ValueError, match=f"`{argument}` must be finite as a double, got 1000"):
            getattr(d, name)(value)


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
