"""The Wald-Wolfowitz runs test and the exact distribution behind it, shaped like `scipy.stats`."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from fastal import _memory
from fastal import _validation as check
from fastal._core import distribution
from fastal._core import runs_test as runs_test_core
from fastal._options import ALTERNATIVES as ALTERNATIVES
from fastal._options import METHODS as METHODS
from fastal._options import NAN_POLICIES, TIES, TIES_BETWEEN, TWO_SIDED
from fastal._types import Array

# Beyond this many values the counts would not fit the arithmetic of the exact masses.
_MOST_VALUES = 2**40


class RunsDistribution:
    """Number of runs in a random arrangement of `n_below` zeros and `n_above` ones.

    Masses are exact to the last digits of a double for every T = n_below + n_above and however deep
    in the tail; where a mass underflows, the logarithmic forms go on. A mass costs O(1), a tail
    O(sqrt(T)) at most (30 microseconds at T = 10^7).

    Parameters
    ----------
    n_below, n_above : int
        How many zeros and ones; at least one value in all.

    Notes
    -----
    With n0 zeros and n1 ones::

        P(U = 2k)     = 2 C(n0-1, k-1) C(n1-1, k-1) / C(T, n0)
        P(U = 2k + 1) = [C(n0-1, k) C(n1-1, k-1) + C(n0-1, k-1) C(n1-1, k)] / C(T, n0)

    ``floor(U / 2)`` is hypergeometric, and given ``floor(U / 2) = k`` the number is even with
    probability ``2 k / T``; `rvs` draws that way.

    Examples
    --------
    >>> from fastal import RunsDistribution
    >>> d = RunsDistribution(10, 10)
    >>> d.mean()
    11.0
    >>> round(d.cdf(6), 4)    # Swed and Eisenhart 1943: 6 runs reject at 2.5 %, one-sided
    0.0185
    >>> d.pmf([2, 3])
    array([1.08250882e-05, 9.74257940e-05])
    >>> RunsDistribution(5_000_000, 5_000_000).logcdf(1000)  # doctest: +ELLIPSIS
    -6921279.010542...
    """

    __slots__ = ("_n_above", "_n_below")

    def __init__(self, n_below: int, n_above: int) -> None:
        self._n_below = check.count("n_below", n_below)
        self._n_above = check.count("n_above", n_above)
        if not (1 <= self._n_below + self._n_above <= _MOST_VALUES):
            raise ValueError(
                "`n_below` + `n_above` must be between 1 and 2^40, got "
                f"{check.short_repr(self._n_below)} + {check.short_repr(self._n_above)}"
            )

    @property
    def n_below(self) -> int:
        """Number of zeros."""
        return self._n_below

    @property
    def n_above(self) -> int:
        """Number of ones."""
        return self._n_above

    def __repr__(self) -> str:
        return f"RunsDistribution(n_below={self._n_below}, n_above={self._n_above})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunsDistribution):
            return NotImplemented
        return (self._n_below, self._n_above) == (other._n_below, other._n_above)

    def __hash__(self) -> int:
        return hash((RunsDistribution, self._n_below, self._n_above))

    def __reduce__(self) -> tuple[Any, ...]:
        return RunsDistribution, (self._n_below, self._n_above)

    def _evaluate(self, name: str, u: ArrayLike) -> Any:
        if type(u) in (int, float):
            try:
                return distribution.evaluate_one(name, self._n_below, self._n_above, cast(float, u))
            except OverflowError:  # an integer that no double can hold: refused below, by name
                pass
        at = check.float_array("u", u)
        out = np.empty(at.size)
        distribution.evaluate(name, self._n_below, self._n_above, at.reshape(-1), out)
        return out.reshape(at.shape)[()]

    def pmf(self, u: ArrayLike) -> Any:
        """Return P(U = u)."""
        return self._evaluate("pmf", u)

    def logpmf(self, u: ArrayLike) -> Any:
        """Return log P(U = u), also where the probability underflows."""
        return self._evaluate("logpmf", u)

    def cdf(self, u: ArrayLike) -> Any:
        """Return P(U <= u)."""
        return self._evaluate("cdf", u)

    def logcdf(self, u: ArrayLike) -> Any:
        """Return log P(U <= u), also where the probability underflows."""
        return self._evaluate("logcdf", u)

    def sf(self, u: ArrayLike) -> Any:
        """Return P(U > u)."""
        return self._evaluate("sf", u)

    def logsf(self, u: ArrayLike) -> Any:
        """Return log P(U > u), also where the probability underflows."""
        return self._evaluate("logsf", u)

    def ppf(self, q: ArrayLike) -> Any:
        """Return the smallest u with P(U <= u) >= q; NaN outside [0, 1]."""
        at = check.float_array("q", q)
        out = np.empty(at.size)
        distribution.quantiles(self._n_below, self._n_above, at.reshape(-1), out)
        return out.reshape(at.shape)[()]

    def isf(self, q: ArrayLike) -> Any:
        """Return the smallest u with P(U > u) <= q; NaN outside [0, 1]."""
        at = check.float_array("q", q)
        out = np.empty(at.size)
        distribution.quantiles(self._n_below, self._n_above, 1 - at.reshape(-1), out)
        # 1 - q is rounded: the answer is one of three neighbours
        for i, level in enumerate(at.reshape(-1)):
            if 0 < level < 1:
                while out[i] > self.support()[0] and self.sf(out[i] - 1) <= level:
                    out[i] -= 1
                while self.sf(out[i]) > level:
                    out[i] += 1
        return out.reshape(at.shape)[()]

    def median(self) -> float:
        """Return the smallest u with P(U <= u) >= 1/2."""
        return float(self.ppf(0.5))

    def mean(self) -> float:
        """Return the expected number of runs, 1 + 2 n0 n1 / T."""
        return distribution.moments(self._n_below, self._n_above)[0]

    def var(self) -> float:
        """Return the variance, 2 n0 n1 (2 n0 n1 - T) / (T^2 (T - 1))."""
        return distribution.moments(self._n_below, self._n_above)[1]

    def std(self) -> float:
        """Return the standard deviation."""
        return math.sqrt(self.var())

    def support(self) -> tuple[int, int]:
        """Return the smallest and the largest possible number of runs."""
        return distribution.support(self._n_below, self._n_above)

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | None = None,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> Any:
        """Draw random numbers of runs, exactly and in O(1) each.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result; one number by default.
        random_state : int or numpy.random.Generator, optional
            Seed or generator.
        rng : int or numpy.random.Generator, optional
            The same under the name that SciPy prefers now.

        Returns
        -------
        int or array of int
            Draws.
        """
        if rng is not None and random_state is not None:
            raise ValueError("`rng` must not be given together with `random_state`: they are one")
        name, source = ("random_state", random_state) if rng is None else ("rng", rng)
        if not isinstance(source, np.random.Generator | None):
            source = check.seed(name, source)
        shape: tuple[int, ...] = ()
        if size is not None:
            axes = size if isinstance(size, tuple | list) else (size,)
            shape = tuple(check.count("size", n) for n in axes)
        _memory.check(
            8 * math.prod(shape), f"`size` = {check.short_repr(size)}", "draw fewer numbers"
        )
        generator = np.random.default_rng(source)
        n0, n1 = self._n_below, self._n_above
        if min(n0, n1) == 0:
            return np.ones(shape, dtype=np.int64)[()]
        drawn = None if size is None else shape
        half = generator.hypergeometric(n0, n1 - 1, n1, drawn)
        odd = generator.random(drawn) * (n0 + n1) >= 2 * half
        return 2 * half + odd


def choose_method(n_below: int, n_above: int) -> Literal["exact", "normal"]:
    """Return what ``method="auto"`` means for these counts.

    Exact for at most 10^6 values, and whenever the smaller count is below 1,000; normal beyond.
    There the normal p-value of balanced counts is too small by 0.2 % at p = 0.05 and by 0.3 % at
    p = 0.001 (T = 10^6; the error falls like 1/sqrt(T)). For very unbalanced counts it is worse:
    1,000 of 10^7 values on one side and two runs fewer than the most possible give 4.7e-6 instead
    of 4.7e-3. ``method="exact"`` is always right and takes 30 microseconds at T = 10^7.

    Parameters
    ----------
    n_below, n_above : int
        Number of values on each side.

    Returns
    -------
    {"exact", "normal"}
        The method.

    Examples
    --------
    >>> from fastal import choose_method
    >>> choose_method(500_000, 500_000), choose_method(500_000, 500_001)
    ('exact', 'normal')
    >>> choose_method(999, 5_000_000)
    'exact'
    """
    counts = (("n_below", n_below), ("n_above", n_above))
    code = distribution.resolved_method(
        *(check.count(name, n, 0, _MOST_VALUES) for name, n in counts)
    )
    return "exact" if code == METHODS["exact"] else "normal"


class RunsTestResult(NamedTuple):
    """Result of `runs_test`; arrays where the data had more than one axis.

    Attributes
    ----------
    statistic : float or array
        z = (n_runs - mean) / std; NaN where nothing can be learnt (one side empty).
    pvalue : float or array
        p-value.
    n_runs, n_below, n_above : int or array
        Number of runs, of values below the cut-off and of the others.
    method : {"exact", "normal"} or array of them
        How the p-value was computed.
    cutoff : float, str or array
        Where the data were cut; for texts and categories the one that counts as above.
    """

    statistic: Any
    pvalue: Any
    n_runs: Any
    n_below: Any
    n_above: Any
    method: Any
    cutoff: Any


def runs_test(
    x: ArrayLike,
    *,
    cutoff: str | float = "auto",
    alternative: str = "two-sided",
    method: str = "auto",
    axis: int = -1,
    nan_policy: str = "raise",
    keepdims: bool = False,
    ties: str = "above",
    two_sided: str = "double",
    continuity: bool = False,
) -> RunsTestResult:
    """Test whether the values on both sides of a cut-off are mixed at random.

    Parameters
    ----------
    x : array_like
        At least two values along `axis`: numbers, booleans, or two different texts or categories.
        Booleans are taken as they are (True is above); of two texts the one that is later in the
        alphabet is above, of two categories the later one. A frame with one column is its column.
    cutoff : {"auto", "median", "mean"} or float
        Where to cut; the median is NumPy's. "auto": numbers of just two different values (0 and 1)
        are the two symbols that they are, and all others are cut at their median.
    alternative : {"two-sided", "less", "greater"}
        "less": too few runs (a shift or trend), P(U <= u). "greater": too many, P(U >= u).
        "two-sided": both, see `two_sided`.
    method : {"auto", "exact", "normal"}
        See `choose_method` for the choice of "auto".
    axis : int
        Axis along which to test.
    nan_policy : {"raise", "omit", "propagate"}
        What missing values do: raise a ValueError; be left out; or make the answer NaN. Where
        fewer than two values are left the answer is NaN as well, all counts 0 then. Infinities are
        always refused.
    keepdims : bool
        Whether `axis` stays, with length 1.
    ties : {"above", "below", "drop"}
        Where values at the cut-off belong; "drop" leaves them out. Two symbols are no ties.
    two_sided : {"double", "distance", "likelihood"}
        Two-sided p-value of the exact test: twice the smaller tail, at most 1; the probability of
        what is at least as far from the mean; or of what is at most as likely (probabilities that
        agree to 12 digits count as equal). The normal approximation is symmetric: there they agree.
    continuity : bool
        Correct the normal approximation by half a run towards the mean.

    Returns
    -------
    RunsTestResult
        With `statistic`, `pvalue`, `n_runs`, `n_below`, `n_above`, `method`, `cutoff`. With all
        values on one side the p-value is 1 and the statistic NaN.

    See Also
    --------
    runs_test_2samp : the test of two samples.

    Examples
    --------
    >>> from fastal import runs_test
    >>> result = runs_test([9, 8, 9, 7, 8, 9, 2, 1, 2, 3, 1, 2], alternative="less")
    >>> result.n_runs, result.n_below, result.n_above, round(result.pvalue, 5)
    (2, 6, 6, 0.00216)
    >>> tosses = list("HHHHTTTTHH")
    >>> [round(runs_test(tosses, two_sided=how).pvalue, 4) for how in ("double", "distance")]
    [0.0952, 0.0714]
    """
    how, by, continuity = _asked(alternative, method, two_sided, continuity)
    policy = check.option("nan_policy", nan_policy, NAN_POLICIES)
    keepdims = check.flag("keepdims", keepdims)
    tied = check.option_code("ties", ties, TIES)
    data, cut, fixed, symbol = _prepare(x, cutoff, axis, gaps=policy != "raise")
    missing = None if policy == "raise" else np.isnan(data)
    if missing is not None and missing.any():
        result = _with_missing(data, missing, policy, cut, fixed, (tied, how, by, continuity))
    elif data.ndim == 1:
        result = _one(data, cut, fixed, (tied, how, by, continuity))
    else:
        original = data if axis in (-1, data.ndim - 1) else np.moveaxis(data, -1, axis)
        check.finite_array("x", original)
        result = _rows(data, cut, fixed, (tied, how, by, continuity))
    if symbol is not None:
        shape = np.shape(result.cutoff)
        result = result._replace(cutoff=np.full(shape, symbol) if shape else symbol)
    if keepdims:
        place = axis if axis >= 0 else axis + data.ndim
        result = RunsTestResult(*(np.expand_dims(np.asarray(v), place) for v in result))
    return result


def _asked(
    alternative: object, method: object, two_sided: object, continuity: object
) -> tuple[int, int, bool]:
    """Return the codes of a p-value: alternative, method, and whether to correct."""
    how = check.option_code("alternative", alternative, ALTERNATIVES)
    both = check.option_code("two_sided", two_sided, TWO_SIDED)
    by = check.option_code("method", method, METHODS)
    continuity = check.flag("continuity", continuity)
    return both if how == ALTERNATIVES["two-sided"] else how, by, continuity


def _used(by: int, n_below: int, n_above: int) -> str:
    if by == METHODS["auto"]:
        by = distribution.resolved_method(n_below, n_above)
    return "exact" if by == METHODS["exact"] else "normal"


def _one(data: Array, cut: int, fixed: Any, asked: tuple[int, int, int, bool]) -> RunsTestResult:
    """Test one sequence of at least one value."""
    tested = runs_test_core.test_one(data, cut, _cut_at(data, fixed), *asked)
    if isinstance(tested, int):
        raise ValueError(
            f"`x` must be finite, got {data[tested]} at index {tested}"
            + ("" if not math.isnan(data[tested]) else '; nan_policy="omit" leaves it out')
        )
    z, p, u, n0, n1, cutoff = tested
    return RunsTestResult(z, p, u, n0, n1, _used(asked[2], n0, n1), cutoff)


def _rows(data: Array, cut: int, fixed: Any, asked: tuple[int, int, int, bool]) -> RunsTestResult:
    """Test the rows of finite data along their last axis."""
    *shape, n = data.shape
    rows = data.reshape(-1, n)
    cutoffs = np.broadcast_to(_cut_at(data, fixed), shape).reshape(-1).copy()
    floats = np.empty((2, len(rows)))
    counts = np.empty((3, len(rows)), dtype=np.int64)
    runs_test_core.test_rows(rows, cut, cutoffs, *asked, np.empty(3 * n), floats, counts)
    z, p = floats.reshape(2, *shape)
    u, n0, n1 = counts.reshape(3, *shape)
    used = [_used(asked[2], int(a), int(b)) for a, b in zip(*counts[1:], strict=True)]
    method = np.array(used, dtype="U6").reshape(shape)
    return RunsTestResult(z, p, u, n0, n1, method, cutoffs.reshape(shape))


def _with_missing(
    data: Array,
    missing: Any,
    policy: str,
    cut: int,
    fixed: Any,
    asked: tuple[int, int, int, bool],
) -> RunsTestResult:
    """Test rows with missing values: NaN for those, or without the missing ones."""
    *shape, n = data.shape
    tests = []
    for row, gaps in zip(data.reshape(-1, n), missing.reshape(-1, n), strict=True):
        kept = row[~gaps] if policy == "omit" else row[:0] if gaps.any() else row
        if len(kept) > 1:
            tests.append(_one(kept, cut, fixed, asked))
        else:
            nan = math.nan
            tests.append(RunsTestResult(nan, nan, 0, 0, 0, _used(asked[2], 0, 0), nan))
    if not shape:
        return tests[0]
    return RunsTestResult(
        *(np.array([t[i] for t in tests]).reshape(shape) for i in range(len(tests[0])))
    )


def _cut_at(data: Array, fixed: Any) -> Any:
    """Return a fixed cut-off, or the means of the rows where it is "mean"."""
    if not isinstance(fixed, str):
        return float(fixed)
    # scaled down, huge values do not overflow the sum
    scale = max(1.0, float(np.abs(check.finite_array("x", data)).max(initial=0)) / 1e290)
    return (data / scale).mean(axis=-1) * scale


def _prepare(
    x: ArrayLike, cutoff: str | float, axis: int, *, gaps: bool
) -> tuple[Array, int, Any, str | None]:
    """Return the data with the tested axis last, how to cut and where, and the symbol above.

    How to cut is 0 at a number, 1 at the median, 2 at the symbols if there are two.
    """
    if isinstance(cutoff, str):
        check.option("cutoff", cutoff, ("median", "mean", "auto"))
    else:
        cutoff = check.real("cutoff", cutoff)
    found, symbol = check.two_symbols("x", x, gaps=gaps)
    if symbol is not None and cutoff != "auto":
        raise TypeError(
            "`cutoff` must be left out where `x` holds texts or categories, got "
            f"{check.short_repr(cutoff)}"
        )
    boolean = symbol is not None or found.dtype.kind == "b"
    data = check.doubles(found)
    if data.ndim == 0:
        raise ValueError(f"`x` must have at least one axis, got {check.short_repr(x)}")
    if axis != -1:
        check.integer("axis", axis)
        if not (-data.ndim <= axis < data.ndim):
            raise ValueError(
                f"`axis` must be in [{-data.ndim}, {data.ndim}), got {check.short_repr(axis)}"
            )
        data = np.ascontiguousarray(np.moveaxis(data, axis, -1))
    n = data.shape[-1]
    if n < 2:
        raise ValueError(f"`x` must have at least 2 values along axis {axis}, got {n}")
    if boolean:
        return data, 0, 0.5, symbol  # True is 1.0, False 0.0, whatever the cut-off asked for
    if cutoff == "auto":
        return data, 2, 0.0, None
    if cutoff == "median":
        return data, 1, 0.0, None
    return data, 0, cutoff, None


class RunsTest2SampResult(NamedTuple):
    """Result of `runs_test_2samp`.

    Attributes
    ----------
    statistic : float
        z = (n_runs - mean) / std of the number of runs that is reported.
    pvalue : float
        p-value.
    n_runs : int or float
        Number of runs in the common order; with ``ties="average"`` their mean over the orders.
    n_x, n_y : int
        Size of each sample.
    fewest_runs, most_runs : int
        Smallest and largest number of runs over all orders of values that both samples have.
    method : {"exact", "normal"}
        How the p-value was computed.
    """

    statistic: float
    pvalue: float
    n_runs: Any
    n_x: int
    n_y: int
    fewest_runs: int
    most_runs: int
    method: str


def runs_test_2samp(
    x: ArrayLike,
    y: ArrayLike,
    *,
    alternative: str = "less",
    method: str = "auto",
    nan_policy: str = "raise",
    ties: str = "conservative",
    two_sided: str = "double",
    continuity: bool = False,
) -> RunsTest2SampResult:
    """Test whether two samples come from the same distribution (Wald and Wolfowitz, 1940).

    Both samples are put into one order, and the runs of values of the same sample are counted. Few
    runs mean that the samples keep apart, by their level, their spread or anything else.

    Parameters
    ----------
    x, y : array_like
        The samples: at least one number each.
    alternative : {"less", "two-sided", "greater"}
        "less", the test of Wald and Wolfowitz: the samples differ, P(U <= u). "two-sided" rejects
        for too many runs as well, which no difference of two distributions explains.
    method : {"auto", "exact", "normal"}
        See `choose_method` for the choice of "auto".
    nan_policy : {"raise", "omit", "propagate"}
        What missing values do: raise a ValueError, be left out, or make the answer NaN.
    ties : {"conservative", "average", "fewest", "most"}
        Equal values within a sample are no matter; those that both samples have may stand in any
        order. "conservative": the largest p-value over all orders. "average": the mean of the
        p-values over all orders, all of them equally likely (Siegel, 1956); it takes quadratic time
        in the number of tied values. "fewest", "most": the order with the fewest or most runs.
    two_sided, continuity
        As in `runs_test`.

    Returns
    -------
    RunsTest2SampResult
        With `statistic`, `pvalue`, `n_runs`, `n_x`, `n_y`, `fewest_runs`, `most_runs`, `method`.

    Examples
    --------
    >>> from fastal import runs_test_2samp
    >>> a = [35, 44, 39, 50, 48, 29, 60, 75, 49, 66]
    >>> b = [17, 23, 13, 24, 33, 21, 18, 16, 32]
    >>> result = runs_test_2samp(a, b)
    >>> result.n_runs, f"{result.pvalue:.6f}"
    (4, '0.001764')
    >>> runs_test_2samp([10, 14, 17, 19, 34], [12, 13, 17, 19, 22])[2:7]     # 17 and 19 are in both
    (9, 5, 5, 7, 9)
    """
    how, by, continuity = _asked(alternative, method, two_sided, continuity)
    policy = check.option("nan_policy", nan_policy, NAN_POLICIES)
    tied = check.option("ties", ties, TIES_BETWEEN)
    samples = [_sample(name, values, policy) for name, values in (("x", x), ("y", y))]
    sizes = len(samples[0]), len(samples[1])
    used = _used(by, *sizes)
    if any(np.isnan(sample).any() for sample in samples):  # only with "propagate"
        return RunsTest2SampResult(math.nan, math.nan, 0, *sizes, 0, 0, used)
    values, place = np.unique(np.concatenate(samples), return_inverse=True)
    in_x = np.bincount(place[: sizes[0]], minlength=len(values)).astype(np.int64)
    in_y = np.bincount(place[sizes[0] :], minlength=len(values)).astype(np.int64)
    fewest, most = runs_test_core.tied_runs(in_x, in_y)

    def p_value(u: int) -> float:
        return distribution.p_value(u, *sizes, how, by, continuity)

    runs: Any = fewest if tied == "fewest" else most
    p = p_value(runs)
    if fewest < most and tied in ("conservative", "average"):
        if tied == "conservative" and how == ALTERNATIVES["greater"]:
            runs, p = fewest, p_value(fewest)
        elif tied == "average" or how != ALTERNATIVES["less"]:
            chances = _tied_chances(in_x, in_y)
            possible = [u for u in range(fewest, most + 1) if chances[u] > 0]
            each = [p_value(u) for u in possible]
            if tied == "conservative":
                p = max(each)
                runs = possible[each.index(p)]
            else:
                weights = [float(chances[u]) for u in possible]
                total = math.fsum(weights)
                p = math.fsum(w * v for w, v in zip(weights, each, strict=True)) / total
                runs = math.fsum(w * u for w, u in zip(weights, possible, strict=True)) / total
    spread = RunsDistribution(*sizes)
    deviation = spread.std()
    distance = runs - spread.mean()
    if continuity and used == "normal":
        half = {ALTERNATIVES["less"]: -0.5, ALTERNATIVES["greater"]: 0.5}
        distance -= half.get(how, max(min(distance, 0.5), -0.5))
    z = distance / deviation if deviation > 0 else math.nan
    return RunsTest2SampResult(z, p, runs, *sizes, fewest, most, used)


def _sample(name: str, values: ArrayLike, policy: str) -> Array:
    """Check one sample: finite numbers in one dimension, NaN as the policy says."""
    array = check.float_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional, got shape {array.shape}")
    if policy == "omit":
        array = array[~np.isnan(array)]
    if policy == "propagate" and np.isnan(array).any():
        return array
    if len(array) == 0:
        raise ValueError(
            f"`{name}` must have at least one value that is not missing, got "
            f"{check.short_repr(values)}"
        )
    if np.isnan(array).any():
        place = int(np.isnan(array).argmax())
        raise ValueError(
            f'`{name}` must be finite, got nan at index {place}; nan_policy="omit" leaves it out'
        )
    return check.finite_array(name, array)


def _tied_chances(in_x: Any, in_y: Any) -> Any:
    """Return the probability of each number of runs, when tied values stand in random order."""
    # chances[last symbol][runs]; a group of values that one sample alone has changes nothing but
    # the last symbol, so that only groups of both cost a convolution
    chances: list[Any] = [np.zeros(2), np.zeros(2)]
    begun = False
    for a, b in zip(in_x.tolist(), in_y.tolist(), strict=True):
        steps = _group_chances(a, b)
        longest = max(len(step) for step in steps.values())
        size = len(chances[0]) + longest
        following = [np.zeros(size), np.zeros(size)]
        for (first, last), step in steps.items():
            if begun:
                # the other symbol before it: one run more
                before = np.concatenate((chances[first], [0.0]))
                before[1:] += chances[1 - first]
            else:
                before = np.array([0.0, 1.0])
            added = np.convolve(before, step)
            following[last][: len(added)] += added[:size]
        begun = True
        total = following[0] + following[1]
        end = int(np.flatnonzero(total)[-1]) + 1
        chances = [f[:end] for f in following]
    return chances[0] + chances[1]


def _group_chances(a: int, b: int) -> dict[tuple[int, int], Any]:
    """Return P(first symbol, last symbol, changes) for a zeros and b ones in random order."""
    if b == 0 or a == 0:
        symbol = 0 if b == 0 else 1
        return {(symbol, symbol): np.ones(1)}
    d = RunsDistribution(a, b)
    runs = np.arange(1, d.support()[1] + 1)
    masses = d.pmf(runs.astype(float))
    even = runs % 2 == 0
    halves = np.where(even, masses / 2, 0.0)  # 01 and 10 are equally likely
    found = {(0, 1): halves, (1, 0): halves}
    # an odd number of runs 2 k + 1 begins with 0 in C(a-1, k) C(b-1, k-1) cases, with 1 in
    # C(a-1, k-1) C(b-1, k): as (a - k) to (b - k)
    k = runs // 2
    for symbol, count in ((0, a), (1, b)):
        share = np.where(even | (runs == 1), 0.0, (count - k) / np.maximum(a + b - 2 * k, 1))
        found[symbol, symbol] = masses * share
    return found
