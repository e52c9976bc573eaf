"""MovementBelow: stop when little of the movement of the model is still to come."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core import still as still_core
from fastal._types import Array
from fastal.stopping.by_bounds import ByBounds
from fastal.stopping.verdict import ROSE, Decision, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastal.models.gp import GaussianProcess

# Bounds from our own models may be so far below 0, by rounding.
ROUNDING = -1e-12


@dataclass(frozen=True, slots=True)
class StillVerdict(Decision):
    """What a `MovementBelow` says, and why.

    Attributes
    ----------
    stop, n, reason, warnings, level, left
        As in `Decision`.
    low, high : float
        Range of `left` by the scatter of the last bounds: two standard errors of their mean down
        and up; NaN where there is none.
    share : float
        The share that was asked for.
    horizon : int or None
        Number of bounds there can be.
    """

    low: float = field(default=math.nan, compare=False)
    high: float = field(default=math.nan, compare=False)
    share: float = math.nan
    horizon: int | None = None


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


class MovementBelow(ByBounds):
    """Stop when at most a given share of the movement of the model is still to come.

    A bound says how far a label moved the model. If N bounds can come at most, t have come, and
    labels go on moving the model as the last ones did (M, the mean of the last bounds), then
    ``left = M (N - t) / (r_1 + ... + r_t + M (N - t))`` is the share of all movement that is still
    to come. Bounds fall, so this errs on the side of going on.

    It has the ways in of `Stopper`: `push`, `update`, `observe`, `extend`.

    Parameters
    ----------
    share : float
        Stop when at most this share is left, in (0, 1).
    horizon : int, optional
        N, how many labels you could buy at most, counted in bounds. `learn`, `ActiveLearner`
        and `simulate` fill it in from the pool or `max_labels`; a `FixedBudget` beside it
        (``MovementBelow() | FixedBudget(300)``) does so too.
    window : int, optional
        Number of last bounds that say how labels go on; a fifth of the bounds by default, at least
        10 and at most 20.
    noise : float, optional
        Noise variance for `update`.
    gp : GaussianProcess or LaplaceClassifier, optional
        Model for `observe`, which adds the labels to it.

    Notes
    -----
    No stop is possible before one bound more than the window, 11 by default, unless the horizon is
    reached. A share is kept on average over data sets, not on each of them: docs/when.md says what
    was measured, and when not to trust it.

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

    _settings: ClassVar[tuple[str, ...]] = ("share", "horizon", "window", "noise")

    _tracker: still_core.StillTracker

    def __init__(
        self,
        share: float = 0.05,
        *,
        horizon: int | None = None,
        window: int | None = None,
        noise: float | None = None,
        gp: GaussianProcess | None = None,
    ) -> None:
        self.share = share
        self.horizon = horizon
        self.window = window
        self.noise = noise
        self.gp = gp
        self._start()

    def _start(self) -> None:
        share = check.probability("share", self.share)
        window = self._count("window", self.window, 2)
        horizon = self._count("horizon", self.horizon, 1)
        if window and horizon and window >= horizon:
            raise ValueError(
                f"`window` must be below `horizon` ({self.horizon}), got {self.window}: no stop "
                "would be possible before the end"
            )
        self._check_sources()
        self._tracker = still_core.StillTracker(share, horizon, window)

    def _measure(self, name: str, value: object) -> float:
        number = check.real(name, value)
        if number < ROUNDING:
            raise ValueError(f"`{name}` must not be negative, got {check.short_repr(value)}")
        self._require_horizon()
        return number

    def _require_horizon(self) -> None:
        if not self._tracker.horizon:
            raise ValueError(still_core.NO_HORIZON)

    def _check_bounds(self, name: str, bounds: Array) -> None:
        self._refuse_negative(name, bounds)
        if bounds.size:
            self._require_horizon()

    @staticmethod
    def _refuse_negative(name: str, bounds: Array) -> None:
        if (bounds < ROUNDING).any():
            where = np.unravel_index(int(np.argmax(bounds < ROUNDING)), bounds.shape)
            place = where[0] if len(where) == 1 else tuple(map(int, where))
            raise ValueError(f"`{name}` must not be negative, got {bounds[where]} at index {place}")

    def _extend(self, bounds: Array) -> int:
        self._check_bounds("values", bounds)
        return self._tracker.extend(bounds)

    def set_horizon(self, n_bounds: int) -> None:
        """Learn how many bounds there can be; a horizon of your own wins.

        Parameters
        ----------
        n_bounds : int
            Number of bounds at the end of the pool, or of the labels that can be had. A change
            never undoes a stop, and counts from the next bound on.
        """
        n = check.count("n_bounds", n_bounds, 0, check.INT64_MAX)
        if self.horizon is None:
            self._stop_terms = self._terms  # a stop is told as it was
            self._tracker.horizon = n

    # Share, horizon and window that a stop was about; None while they are the present ones.
    _stop_terms: tuple[float, int, int] | None = None

    @property
    def _terms(self) -> tuple[float, int, int] | None:
        """What a stop was about; None without one."""
        if not self.stopped:
            return None
        return self._stop_terms or (
            float(self.share), self._tracker.horizon, int(self.window or 0)
        )  # fmt: skip

    def _moment(self, n: int) -> tuple[float, float]:
        """Return what was left after n bounds, and the level there, under the present terms."""
        tracker = self._tracker
        if tracker.stopped_at == n:
            return tracker.at_stop
        if tracker.n_pushed == n:
            return tracker.left, tracker.level
        then = still_core.StillTracker(0, tracker.horizon, int(self.window or 0))
        then.extend(self.bounds[:n])
        return then.left, then.level

    @property
    def left(self) -> float:
        """Share of all movement of the model that is still to come, now.

        NaN before 10 bounds, or `window`; 0 when the horizon is reached.
        """
        return self._tracker.left

    @property
    def level(self) -> float:
        """Mean of the last bounds over its largest value so far; NaN before 10 bounds."""
        return self._tracker.level

    @property
    def verdict(self) -> StillVerdict:
        """The decision with its reasons: at the stop if there was one, else now."""
        tracker = self._tracker
        at = self.stopped_at
        n = at or tracker.n_pushed
        left, level = tracker.at_stop if at else (tracker.left, tracker.level)
        share, end, window = self._terms or (self.share, tracker.horizon, self.window)
        horizon, width = end or None, int(window or min(20, max(10, n // 5)))
        stop: bool | None = at is not None
        low = high = math.nan
        if stop and horizon is not None and left == 0 and n >= horizon:
            reason = f"the horizon of {horizon} bounds is reached"
        elif not stop and n <= width:
            stop, reason = None, self._too_early(width, horizon)
        elif not stop and horizon is not None and n >= horizon:
            reason = f"the horizon of {horizon} bounds is reached between two fits"
            reason += self._unconfirmed()
        else:
            low, high = self._range(n, width, left)
            reason = self._sentence(bool(stop), left, level, width, horizon, float(share))
            if 0 < left < 1 and not math.isnan(low):
                span = f"{percent(low)} and {percent(high)}"
                reason += f"; by the scatter of those {width} between {span}"
            reason += self._unconfirmed()
        warnings = self._warnings(n) if stop else ()
        return StillVerdict(
            stop, n, reason, warnings, level, left, low, high, float(share), horizon
        )

    def _warnings(self, n: int) -> tuple[str, ...]:
        # That bounds still fall, and that neighbours are alike, is what it reckons with.
        return tuple(warning for warning in super()._warnings(n) if warning == ROSE)

    def _too_early(self, width: int, horizon: int | None) -> str:
        if horizon is not None and horizon <= width:
            return f"no stop is possible before the end, {horizon} bounds"
        return f"no stop is possible before {width + 1} bounds"

    @staticmethod
    def _sentence(
        stop: bool, left: float, level: float, width: int, horizon: int | None, share: float
    ) -> str:
        if left == 0:
            return f"the last {width} labels no longer moved the model at all"
        if math.isnan(level):
            return "nothing has moved the model yet"
        amount = percent(left)
        if stop and not amount.startswith("less"):
            amount = f"at most {amount}"
        said = (
            f"{amount} of what {horizon} bounds can move the model is still to come, "
            f"if labels go on as the last {width} did ({100 * share:g} % asked)"
        )
        if level > 0:
            less = 1 / level
            times = f"{less:.0f}" if less >= 9.95 else f"{less:.1f}"
            times = times if less < 1e4 else "more than 10,000"
            said += (
                f"; a label now moves it {times} times less than at the peak"
                if times != "1.0"
                else "; a label now moves it as much as at the peak"
            )
        return said

    def _range(self, n: int, width: int, left: float) -> tuple[float, float]:
        """Return `left` for a mean of the last bounds two standard errors lower and higher."""
        if not (0 < left < 1):
            return left, left
        if self._fit is not None and n != len(self):  # the bounds of that moment are gone
            return math.nan, math.nan
        last = np.empty(width)
        self._tracker.window_at(n, last)
        # So that no sum overflows; not all are zero. NumPy 1 warns of a division of subnormals.
        last = np.ldexp(last, -math.frexp(float(last.max()))[1])
        error = float(last.std(ddof=1) / last.mean()) / math.sqrt(width)
        # M (N - t) / (S + M (N - t)) is left; with f M it is f left / (1 - left + f left)
        low, high = max(0.0, 1 - 2 * error), 1 + 2 * error
        rest = 1 - left
        return low * left / (rest + low * left), high * left / (rest + high * left)

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
        >>> criterion = MovementBelow(horizon=6, window=2)
        >>> criterion.extend([4.0, 2.0, 1.0, 1.0])
        >>> criterion.trace().means.tolist()
        [nan, 3.0, 1.5, 1.0]
        >>> criterion.trace().left.round(2).tolist()
        [nan, 0.67, 0.39, 0.2]
        """
        bounds, horizon = self.bounds, self._tracker.horizon
        left = np.full(len(bounds), np.nan)
        if horizon:  # which is missing without bounds, or if `expect` took it away
            left = movement_left(bounds, horizon, window=self.window)
        return StillTrace(window_means(bounds, self.window), left)

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

    # keeping and restoring -------------------------------------------------------------------

    @property
    def _expected(self) -> int:
        return self._tracker.horizon

    @property
    def _at_stop(self) -> tuple[float, float]:
        return self._tracker.at_stop

    @property
    def _evidence(self) -> list[float] | None:
        return None if self._terms is None else list(self._terms)

    def _restore(
        self, bounds: Array, stopped_at: int, left: float, level: float, evidence: Any
    ) -> None:
        if (evidence is None) != (stopped_at == 0):
            raise ValueError(
                "`evidence` must be there where there was a stop, and only there, got "
                f"{check.short_repr(evidence)}"
            )
        if evidence is not None:
            if not isinstance(evidence, list) or len(evidence) != 3:
                raise ValueError(
                    f"`evidence` must be a list of three, got {check.short_repr(evidence)}"
                )
            share = check.probability("evidence", evidence[0])
            end, window = (
                check.count("evidence", value, 0, check.INT64_MAX) for value in evidence[1:]
            )
            width = window or min(20, max(10, stopped_at // 5))
            if stopped_at <= width and left != 0:
                raise ValueError(f"no stop is possible after {stopped_at} bounds, before {width}")
            self._stop_terms = (share, end, window)
        self._refuse_negative("bounds", bounds)
        self._tracker.restore(bounds, stopped_at, left, level)

    def _note_stop(self, stopped_at: int, left: float, level: float) -> None:
        self._tracker.note_stop(stopped_at, left, level)

    def _at_the_end(self) -> bool:
        return len(self) >= self._tracker.horizon

    def copy(self) -> Self:
        """Return an independent criterion in the same state; a Gaussian process is copied too."""
        new = super().copy()
        new._stop_terms = self._terms
        return new

    def reset(self) -> Self:
        """Forget all bounds (a Gaussian process keeps its labels); return the criterion itself."""
        super().reset()
        self._stop_terms = None
        return self


def movement_left(bounds: ArrayLike, horizon: int, *, window: int | None = None) -> Array:
    """Return the share of all movement that is still to come, after each bound.

    Parameters
    ----------
    bounds : array_like
        Bounds of one campaign, or a matrix whose rows are those of several; not negative.
    horizon : int
        How many bounds there can be at most.
    window : int, optional
        Number of last bounds that say how labels go on; see `MovementBelow`.

    Returns
    -------
    array
        One value per bound, of the shape of `bounds`; NaN where it is not defined.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import movement_left
    >>> left = movement_left(5.0 / np.arange(1, 21) ** 2, 200)
    >>> bool(np.isnan(left[:9]).all()), left[9:12].round(3)
    (True, array([0.95 , 0.871, 0.791]))
    """
    like = MovementBelow(horizon=check.count("horizon", horizon, 1, check.INT64_MAX), window=window)
    values = check.finite_array("bounds", bounds)
    if values.ndim not in (1, 2):
        raise ValueError(f"`bounds` must have one or two axes, got shape {values.shape}")
    like._check_bounds("bounds", values)
    out = np.empty(values.shape)
    rows = np.atleast_2d(values)
    n, w = like._tracker.horizon, int(like.window or 0)
    if not still_core.left_of_rows(np.ascontiguousarray(rows), n, w, np.atleast_2d(out)):
        raise MemoryError(f"no memory for {values.shape[-1]} bounds")
    return out


def window_means(bounds: ArrayLike, window: int | None = None) -> Array:
    """Return the mean of the last bounds after each bound.

    Parameters
    ----------
    bounds : array_like
        Bounds of one campaign.
    window : int, optional
        How many bounds the mean is of; by default as in `MovementBelow`, a fifth of the bounds so
        far, at least 10 and at most 20.

    Returns
    -------
    array
        One value per bound; NaN before there are as many as the window.

    Examples
    --------
    >>> from fastal.stopping.still import window_means
    >>> window_means([3.0, 1.0, 0.0, 0.0], 2).tolist()
    [nan, 2.0, 0.5, 0.0]
    """
    values = check.vector("bounds", bounds)
    n = np.arange(1, len(values) + 1)
    if window is None:
        widths = np.clip(n // 5, 10, 20)
    else:
        widths = np.full(len(values), check.count("window", window, 2, check.INT64_MAX))
    means = np.full(len(values), np.nan)
    for width in np.unique(widths[n >= widths]).tolist():
        chosen = (widths == width) & (n >= width)
        means[chosen] = _means(values, width)[chosen[width - 1 :]]
    return means


def _means(values: Array, width: int) -> Array:
    """Return the means of all windows of one width."""
    # Blocks as long as the window: each window is the end of one and the beginning of the next.
    # Only sums of bounds, never a difference of two sums: a huge first bound leaves no trace.
    blocks = -(-len(values) // width)
    peak = np.abs(values).max(initial=0.0) or 1.0  # so that no sum overflows
    padded = np.zeros((blocks, width))
    padded.ravel()[: len(values)] = values / peak
    beginnings = np.cumsum(padded, axis=1).ravel()
    ends = np.cumsum(padded[:, ::-1], axis=1)[:, ::-1].ravel()
    first = np.arange(len(values) - width + 1)
    sums = beginnings[first + width - 1] + np.where(first % width, ends[first], 0.0)
    means: Array = sums / width * peak
    return means
