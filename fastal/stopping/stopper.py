"""Stopper: the paper's rule, a runs test after every label."""

from __future__ import annotations

import bisect
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._core import distribution, levels
from fastal._options import METHODS
from fastal._types import Array
from fastal.stopping.criterion import Criterion, doubt
from fastal.stopping.still import movement_now
from fastal.stopping.verdict import Verdict, left_warning, runs_verdict, stop_warnings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LESS = 0  # of `distribution.p_value`: too few runs


class Trace(NamedTuple):
    """What a `Stopper` found after each bound, as arrays of one value per bound.

    Attributes
    ----------
    p_values : array
        p-value of the runs test; 1.0 after the first bound.
    medians : array
        Median of the bounds so far.
    levels : array
        Level that the p-value was compared with.
    """

    p_values: Array
    medians: Array
    levels: Array


class Stopper(Criterion):
    """Stop when a runs test says that the bounds were high and are now low.

    After every bound a one-sided Wald-Wolfowitz test asks whether there are too few runs about the
    median for a random sequence; the paper stops at the first rejection. A rejection counts here
    only if the bounds fell.

    Parameters
    ----------
    alpha : float
        Level of the test. Each look has this level; `sequential` keeps all looks together to it.
    method : {"auto", "exact", "normal"}
        How the p-value is computed; see `fastal.runs.choose_method`.
    fall : bool
        Whether a rejection counts only if the bounds fell: those at or above the median came, on
        average, earlier than those below. False is the letter of the paper, which stops on a rise
        as well.
    sequential : bool
        Whether the chance of ever stopping on a random sequence stays at or below alpha. Needs
        method "auto" or "exact" (both are exact then).
    horizon : int, optional
        With `sequential`: number of bounds after which there is no stop any more.

    Notes
    -----
    The chance of ever stopping within 100 random bounds at alpha = 0.001 is 0.59 %, with
    ``fall=False`` 1.06 % (see `fastal.runs.false_stop_probability`). alpha bounds false alarms of
    "a shift happened", not the risk of stopping early.

    Examples
    --------
    >>> from fastal import Stopper
    >>> stopper = Stopper()
    >>> for bound in [9.1, 8.7, 9.9, 7.5, 8.2, 9.0, 7.9, 8.8, 2.1, 1.4, 2.2, 2.9, 1.3, 2.0]:
    ...     stop = stopper.push(bound)
    >>> print(stopper.verdict)
    go on: 4 runs, p = 0.025
    >>> stopper.push(1.8)
    True
    >>> print(stopper.verdict.reason)
    2 runs where 8.5 are expected (p = 3.1e-04 <= 0.001)
    >>> stopper.verdict.warnings
    ('the bounds still stand at 54 % of their peak',)
    """

    alpha: float
    method: str
    fall: bool
    sequential: bool
    horizon: int | None

    _level: float  # of one look, before it falls

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        method: str = "auto",
        fall: bool = True,
        sequential: bool = False,
        horizon: int | None = None,
    ) -> None:
        super().__init__(
            alpha=alpha, method=method, fall=fall, sequential=sequential, horizon=horizon
        )

    def _spec(self) -> tuple[Any, ...]:
        self._level = check.probability("alpha", self.alpha)
        method = check.option_code("method", self.method, METHODS)
        fall, end = check.flag("fall", self.fall), 0
        if check.flag("sequential", self.sequential):
            if self.method == "normal":
                raise ValueError("`method` must be exact where `sequential` is True, got 'normal'")
            from fastal.runs.sequential import look_level

            end = 0 if self.horizon is None else check.count("horizon", self.horizon, 2)
            self._level = look_level(self.alpha, self.horizon, fall=fall)
            method = METHODS["exact"]
        elif self.horizon is not None:
            raise ValueError(
                f"`horizon` needs sequential=True, got {check.short_repr(self.horizon)}"
            )
        return "runs", self._level, method, _falls(self), fall, end

    def _allow_fits(self) -> None:
        if self.sequential:
            raise ValueError(
                "`sequential` must be False where hyper-parameters are fitted on the way, got "
                "True: no error rate is known then"
            )

    # what it knows ---------------------------------------------------------------------------

    def _test(self, bounds: Array) -> dict[str, Any]:
        """Return what the test finds in some bounds, by the upper middle value."""
        n = len(bounds)
        if n == 0:
            return {"p_value": 1.0, "n_runs": 0, "n_below": 0, "n_above": 0, "median": math.nan}
        middle = np.partition(bounds, [(n - 1) // 2, n // 2])
        median, cut = _mean(middle[(n - 1) // 2], middle[n // 2]), middle[n // 2]
        high = bounds >= cut
        runs, below = 1 + int(np.count_nonzero(high[1:] != high[:-1])), n - int(high.sum())
        p = _p_value(self, runs, below, n - below)
        return {
            "p_value": p, "n_runs": runs, "n_below": below, "n_above": n - below, "median": median
        }  # fmt: skip

    @property
    def p_value(self) -> float:
        """p-value of the runs test now; 1.0 below two bounds."""
        found: float = self._test(self.bounds)["p_value"]
        return found

    @property
    def n_runs(self) -> int:
        """Number of runs about the median; 0 without bounds."""
        found: int = self._test(self.bounds)["n_runs"]
        return found

    @property
    def n_below(self) -> int:
        """Number of bounds below the median."""
        found: int = self._test(self.bounds)["n_below"]
        return found

    @property
    def n_above(self) -> int:
        """Number of bounds at or above the median."""
        found: int = self._test(self.bounds)["n_above"]
        return found

    @property
    def median(self) -> float:
        """Median of the bounds; NaN without bounds."""
        found: float = self._test(self.bounds)["median"]
        return found

    @property
    def left(self) -> float:
        """Share of all movement of the model that is still to come (see `MovementBelow`).

        NaN before 10 bounds, with negative bounds, and if nobody has said how many bounds there can
        be: `learn`, `ActiveLearner` and `simulate` do.
        """
        return movement_now(self.bounds, self._horizon)[0]

    @property
    def level(self) -> float:
        """Mean of the last bounds over its largest value so far (see `MovementBelow`)."""
        return movement_now(self.bounds, self._horizon)[1]

    @property
    def earliest_stop(self) -> int | None:
        """Least number of bounds at which a stop is possible; None if none ever is."""
        method = "exact" if self.method == "auto" or self.sequential else self.method
        n = _earliest(self._level, _falls(self), METHODS[method])
        return None if n is None or (self.horizon is not None and n > self.horizon) else n

    def _judge(self, bounds: Array, stop: bool) -> Verdict:
        left, level = movement_now(bounds, self._horizon)
        numbers = self._test(bounds) | {"left": left, "level": level}
        numbers["alpha"] = _level_of(self, len(bounds))
        direction, warnings = "", tuple[str, ...]()
        if stop:
            warnings = (*left_warning(left, level), *stop_warnings(bounds))
        elif self.fall and numbers["p_value"] <= numbers["alpha"] and len(bounds) > 1:
            direction = _direction(bounds)
        return runs_verdict(
            stop, numbers, self.earliest_stop, self.alpha, self.horizon, direction, warnings,
            doubt(self),
        )  # fmt: skip

    def trace(self) -> Trace:
        """Replay all bounds and return what the test found after each.

        Returns
        -------
        Trace
            ``p_values``, ``medians`` and ``levels``, one value per bound, those after a stop
            included.

        Examples
        --------
        >>> from fastal import Stopper
        >>> stopper = Stopper()
        >>> stopper.extend([5.0, 4.0, 2.0, 1.0])
        >>> stopper.trace().medians.tolist()
        [5.0, 4.5, 4.0, 3.0]
        """
        bounds, ordered = self.bounds, list[float]()
        p_values, medians = np.ones(len(bounds)), np.empty(len(bounds))
        for i, bound in enumerate(bounds.tolist()):
            bisect.insort(ordered, bound)
            n, cut = i + 1, ordered[(i + 1) // 2]
            high = bounds[:n] >= cut
            below = bisect.bisect_left(ordered, cut)
            runs = 1 + int(np.count_nonzero(high[1:] != high[:-1]))
            p_values[i] = _p_value(self, runs, below, n - below)
            medians[i] = _mean(ordered[i // 2], cut)
        found = [_level_of(self, n) for n in range(1, len(bounds) + 1)]
        return Trace(p_values, medians, np.array(found))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds, their running median, the runs and the p-value, with the stop.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw the bounds; the p-value comes below. A new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the bounds.
        """
        from fastal.plotting.stopper import plot_stopper

        return plot_stopper(self, ax)


def _falls(rule: Stopper) -> bool:
    """Return whether the level falls with the number of bounds."""
    return bool(rule.sequential) and rule.horizon is None


def _level_of(rule: Stopper, n: int) -> float:
    """Return the level of the look at n bounds."""
    return levels.level_of(rule._level, n) if _falls(rule) else rule._level


def _p_value(rule: Stopper, runs: int, below: int, above: int) -> float:
    if below + above < 2:
        return 1.0
    method = METHODS["exact" if rule.sequential else rule.method]
    return distribution.p_value(runs, below, above, LESS, method)


def _mean(low: float, high: float) -> float:
    """Return the mean of two numbers whose sum may overflow."""
    low, high = float(low), float(high)  # NumPy warns where they overflow
    total = low + high
    return total / 2 if math.isfinite(total) else low / 2 + high / 2


def _direction(bounds: Array) -> str:
    """Return what speaks against a rejection: where those below the median came, on average."""
    n = len(bounds)
    low = np.flatnonzero(bounds < np.partition(bounds, n // 2)[n // 2])
    late = 2 * int(low.sum()) - len(low) * (n - 1)
    return "" if late > 0 else "rose" if late < 0 else "did not fall"


@lru_cache(maxsize=256)
def _earliest(level: float, falls: bool, method: int) -> int | None:
    """Return the least number of bounds at which some runs stop; None if none up to 4096 does."""
    # with as many values on each side, and one run on each, the p-value is as small as it can be
    for n in range(2, 4097):
        p = distribution.p_value(2, n // 2, n - n // 2, LESS, method)
        if p <= (levels.level_of(level, n) if falls else level):
            return n
    return None
