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
from fastal._options import ALTERNATIVES, METHODS
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
    >>> from fastal.runs import RunsDistribution
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
    >>> from fastal.runs import choose_method
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
) -> RunsTestResult:
    """Test whether the values on both sides of a cut-off are mixed at random.

    Parameters
    ----------
    x : array_like
        At least two finite values along `axis`: numbers, booleans, or two different texts or
        categories. Booleans are taken as they are (True is above); of two texts the one that is
        later in the alphabet is above, of two categories the later one. A frame with one column is
        its column.
    cutoff : {"auto", "median", "mean"} or float
        Where to cut; values at the cut-off are above. The median is NumPy's. "auto": numbers of
        just two different values (0 and 1) are the two symbols that they are, and all others are
        cut at their median.
    alternative : {"two-sided", "less", "greater"}
        "less": too few runs (a shift or trend), P(U <= u). "greater": too many, P(U >= u).
        "two-sided": twice the smaller of both, at most 1.
    method : {"auto", "exact", "normal"}
        See `choose_method` for the choice of "auto".
    axis : int
        Axis along which to test.

    Returns
    -------
    RunsTestResult
        With `statistic`, `pvalue`, `n_runs`, `n_below`, `n_above`, `method`, `cutoff`. With all
        values on one side the p-value is 1 and the statistic NaN.

    Examples
    --------
    >>> from fastal import runs_test
    >>> result = runs_test([9, 8, 9, 7, 8, 9, 2, 1, 2, 3, 1, 2], alternative="less")
    >>> result.n_runs, result.n_below, result.n_above, round(result.pvalue, 5)
    (2, 6, 6, 0.00216)
    >>> round(runs_test(list("HHHHTTTTHH")).pvalue, 4)
    0.0952
    """
    asked = (
        check.option_code("alternative", alternative, ALTERNATIVES),
        check.option_code("method", method, METHODS),
    )
    data, cut, fixed, symbol = _prepare(x, cutoff, axis)
    if data.ndim == 1:
        result = _one(data, cut, fixed, asked)
    else:
        original = data if axis in (-1, data.ndim - 1) else np.moveaxis(data, -1, axis)
        check.finite_array("x", original)
        result = _rows(data, cut, fixed, asked)
    if symbol is not None:
        shape = np.shape(result.cutoff)
        result = result._replace(cutoff=np.full(shape, symbol) if shape else symbol)
    return result


def _used(by: int, n_below: int, n_above: int) -> str:
    if by == METHODS["auto"]:
        by = distribution.resolved_method(n_below, n_above)
    return "exact" if by == METHODS["exact"] else "normal"


def _one(data: Array, cut: int, fixed: Any, asked: tuple[int, int]) -> RunsTestResult:
    """Test one sequence of at least one value."""
    tested = runs_test_core.test_one(data, cut, _cut_at(data, fixed), *asked)
    if isinstance(tested, int):
        raise ValueError(f"`x` must be finite, got {data[tested]} at index {tested}")
    z, p, u, n0, n1, cutoff = tested
    return RunsTestResult(z, p, u, n0, n1, _used(asked[1], n0, n1), cutoff)


def _rows(data: Array, cut: int, fixed: Any, asked: tuple[int, int]) -> RunsTestResult:
    """Test the rows of finite data along their last axis."""
    *shape, n = data.shape
    rows = data.reshape(-1, n)
    cutoffs = np.broadcast_to(_cut_at(data, fixed), shape).reshape(-1).copy()
    floats = np.empty((2, len(rows)))
    counts = np.empty((3, len(rows)), dtype=np.int64)
    runs_test_core.test_rows(rows, cut, cutoffs, *asked, np.empty(3 * n), floats, counts)
    z, p = floats.reshape(2, *shape)
    u, n0, n1 = counts.reshape(3, *shape)
    used = [_used(asked[1], int(a), int(b)) for a, b in zip(*counts[1:], strict=True)]
    method = np.array(used, dtype="U6").reshape(shape)
    return RunsTestResult(z, p, u, n0, n1, method, cutoffs.reshape(shape))


def _cut_at(data: Array, fixed: Any) -> Any:
    """Return a fixed cut-off, or the means of the rows where it is "mean"."""
    if not isinstance(fixed, str):
        return float(fixed)
    # scaled down, huge values do not overflow the sum
    scale = max(1.0, float(np.abs(check.finite_array("x", data)).max(initial=0)) / 1e290)
    return (data / scale).mean(axis=-1) * scale


def _prepare(x: ArrayLike, cutoff: str | float, axis: int) -> tuple[Array, int, Any, str | None]:
    """Return the data with the tested axis last, how to cut and where, and the symbol above.

    How to cut is 0 at a number, 1 at the median, 2 at the symbols if there are two.
    """
    if isinstance(cutoff, str):
        check.option("cutoff", cutoff, ("median", "mean", "auto"))
    else:
        cutoff = check.real("cutoff", cutoff)
    found, symbol = check.two_symbols("x", x)
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
