"""MovementBelow: stop when little of the movement of the model is still to come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.rule import Rule
from fastal._types import Array
from fastal.runs import ROUNDING, movement_left
from fastal.stopping.criterion import Criterion, doubt
from fastal.stopping.verdict import ROSE, Verdict, movement_verdict, stop_warnings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class StillTrace(NamedTuple):
    """What a `MovementBelow` went by after each bound, as arrays of one value per bound.

    Attributes
    ----------
    means : array
        Mean of the last bounds (M); NaN before there are as many as the window.
    left : array
        Share of all movement that is still to come; NaN where it is not defined.
    """

    means: Array
    left: Array


class MovementBelow(Criterion):
    """Stop when at most a given share of the movement of the model is still to come.

    A bound says how far a label moved the model. If N bounds can come at most, t have come, and
    labels go on moving the model as the last ones did (M, the mean of the last bounds), then
    ``left = M (N - t) / (r_1 + ... + r_t + M (N - t))`` is the share of all movement that is still
    to come. Bounds fall, so this errs on the side of going on.

    Parameters
    ----------
    share : float
        Stop when at most this share is left, in (0, 1).
    horizon : int, optional
        N, how many labels you could buy at most, counted in bounds. `learn`, `ActiveLearner`
        and `simulate` fill it in from the pool or `max_labels`; a `FixedBudget` beside it
        (``MovementBelow() | FixedBudget(300)``) does so too.

    Notes
    -----
    The last bounds are a fifth of them, at least 10 and at most 20. No stop is possible before 11
    bounds, unless the horizon is reached. A share is kept on average over data sets, not on each of
    them: docs/when.md says what was measured, and when not to trust it.

    Bounds must not be negative (`Stopper` takes such divergences).

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import MovementBelow
    >>> criterion = MovementBelow(0.05, horizon=200)
    >>> criterion.extend(5.0 / np.arange(1, 101) ** 2)
    48
    >>> print(criterion.verdict)  # doctest: +ELLIPSIS
    stop after 48 bounds: at most 4.8 % of what 200 bounds can move the model is still to come, ...
    """

    share: float
    horizon: int | None

    def __init__(self, share: float = 0.05, *, horizon: int | None = None) -> None:
        super().__init__(share=share, horizon=horizon)

    def _spec(self) -> tuple[Any, ...]:
        share = check.probability("share", self.share)
        own = (
            0 if self.horizon is None else check.count("horizon", self.horizon, 1, check.INT64_MAX)
        )
        return "still", share, own

    @property
    def _end(self) -> int:
        """Number of bounds there can be; 0 if nobody knows."""
        return self._horizon if self.horizon is None else int(self.horizon)

    @property
    def left(self) -> float:
        """Share of all movement of the model that is still to come, now.

        NaN before 10 bounds; 0 when the horizon is reached.
        """
        return float(self._rule.left) if self._end else math.nan

    @property
    def level(self) -> float:
        """Mean of the last bounds over its largest value so far; NaN before 10 bounds."""
        return float(self._rule.level)

    def _judge(self, bounds: Array, stop: bool) -> Verdict:
        n, width = len(bounds), window_of(len(bounds))
        left, level = movement_now(bounds, self._end)
        low, high = _range(bounds[n - width :], left) if n > width else (math.nan, math.nan)
        numbers = {
            "left": left, "level": level, "low": low, "high": high, "share": float(self.share),
            "horizon": self._end or None,
        }  # fmt: skip
        # that bounds still fall, and that neighbours are alike, is what it reckons with
        found = tuple(one for one in stop_warnings(bounds) if one == ROSE) if stop else ()
        return movement_verdict(n, stop, numbers, width, found, doubt(self))

    def trace(self) -> StillTrace:
        """Return what it went by after each bound.

        Returns
        -------
        StillTrace
            ``means`` and ``left``, one value per bound, those after a stop included; all of them
            under the present horizon.

        Examples
        --------
        >>> from fastal import MovementBelow
        >>> criterion = MovementBelow(horizon=40)
        >>> criterion.extend([4.0, 2.0, 1.0] * 4)
        >>> criterion.trace().left.round(2)[8:].tolist()
        [nan, 0.75, 0.71, 0.69]
        """
        bounds = self.bounds
        left = movement_left(bounds, self._end) if self._end else np.full(len(bounds), np.nan)
        return StillTrace(window_means(bounds), left)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds with the mean of the last ones, and below what is still to come.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw the bounds; the share comes below. A new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the bounds.
        """
        from fastal.plotting.still import plot_still

        return plot_still(self, ax)


def window_of(n: int) -> int:
    """Return how many of n bounds are the last ones."""
    return min(20, max(10, n // 5))


def movement_now(bounds: Array, horizon: int) -> tuple[float, float]:
    """Return what is left after some bounds, and the level; NaN where it is not defined."""
    if not len(bounds) or bounds.min() < ROUNDING:
        return math.nan, math.nan
    rule = Rule(("still", 0.0, horizon))
    rule.extend(bounds)
    return rule.left if horizon else math.nan, rule.level


def _range(last: Array, left: float) -> tuple[float, float]:
    """Return `left` for a mean of the last bounds two standard errors lower and higher."""
    if not (0 < left < 1):
        return left, left
    # So that no sum overflows; not all are zero. NumPy 1 warns of a division of subnormals.
    last = np.ldexp(last, -math.frexp(float(last.max()))[1])
    error = float(last.std(ddof=1) / last.mean()) / math.sqrt(len(last))
    # M (N - t) / (S + M (N - t)) is left; with f M it is f left / (1 - left + f left)
    low, high, rest = max(0.0, 1 - 2 * error), 1 + 2 * error, 1 - left
    return low * left / (rest + low * left), high * left / (rest + high * left)


def window_means(bounds: ArrayLike) -> Array:
    """Return the mean of the last bounds, after each bound.

    Parameters
    ----------
    bounds : array_like
        Bounds of one campaign.

    Returns
    -------
    array
        One value per bound; NaN before there are as many as the window.
    """
    values = check.vector("bounds", bounds)
    n = np.arange(1, len(values) + 1)
    widths = np.clip(n // 5, 10, 20)
    means = np.full(len(values), np.nan)
    for width in np.unique(widths[n >= widths]).tolist():
        chosen = (widths == width) & (n >= width)
        windows = np.lib.stride_tricks.sliding_window_view(values, width)
        peak = np.abs(values).max() or 1.0  # so that no sum overflows
        means[chosen] = ((windows / peak).mean(axis=1) * peak)[chosen[width - 1 :]]
    return means
