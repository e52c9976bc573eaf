"""Stopper: the runs test on the sequence of bounds; one decision, five ways in."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastal import _validation as check
from fastal._core import batch, distribution
from fastal._core import tracker as tracker_core
from fastal._core.still import StillTracker
from fastal._state import state_values
from fastal.runs import ALTERNATIVES, METHODS
from fastal.stopping.by_bounds import ByBounds
from fastal.stopping.verdict import Verdict, _p, left_warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastal._types import Array
    from fastal.models.gp import GaussianProcess


@lru_cache(maxsize=256)
def _earliest(level: float, falling: bool, method: str, alternative: str, limit: int) -> int | None:
    """Return the least number of values at which any arrangement rejects; None beyond `limit`."""
    how, by = ALTERNATIVES[alternative], METHODS[method]
    for n in range(2, limit + 1):
        now = level * batch.level_at(n) if falling else level
        # At most half of the values are below their median. The extreme number of runs has the
        # least p-value; exact ones are least for equal counts, normal ones need not be.
        for below in range(1, n // 2 + 1) if method == "normal" else (n // 2,):
            for runs in distribution.support(below, n - below):
                if distribution.p_value(runs, below, n - below, how, by) <= now:
                    return n
    return None


class Trace(NamedTuple):
    """What a stopper's test found after each bound, as arrays of one value per bound.

    Attributes
    ----------
    p_values : array
        p-value of the runs test.
    medians : array
        Median of the tested bounds.
    levels : array
        Level that the p-value was compared with.
    """

    p_values: NDArray[np.float64]
    medians: NDArray[np.float64]
    levels: NDArray[np.float64]


class Stopper(ByBounds):
    """Says when to stop labelling, from the bounds that come with each label.

    Four ways in, one decision: `push` a bound or divergence, `update` with the posterior before the
    label, `observe` an input and its label with a Gaussian process, `extend` by a history.

    Parameters
    ----------
    alpha : float
        Level of the runs test. Each look has this level; `sequential` keeps all looks together to
        it.
    method : {"auto", "exact", "normal"}
        How the p-value is computed; see `choose_method`.
    alternative : {"less", "greater", "two-sided"}
        "less": stop on too few runs, the paper's rule.
    sequential : bool
        Whether the chance of ever stopping on a random sequence stays at or below alpha. Needs
        alternative "less", no window and method "auto" or "exact" (both are exact then).
    horizon : int, optional
        With `sequential`: number of bounds after which there is no stop any more.
    window : int, optional
        Test the last `window` bounds only.
    min_bounds : int, optional
        No stop before so many bounds.
    patience : int
        Rejections in a row that stop.
    fall : bool
        Whether a rejection counts only if the bounds fell: those at or above the median came, on
        average, earlier than those below. False is the letter of the paper, which stops on a rise
        as well. For alternative "less" only; the others ignore it.
    noise : float, optional
        Noise variance for `update`.
    gp : GaussianProcess or LaplaceClassifier, optional
        Model for `observe`, which adds the labels to it.

    Notes
    -----
    What the options do to the chance of ever stopping within 100 random bounds at alpha = 0.001
    (400,000 simulated streams; see `false_stop_probability` for other levels and horizons):

    ========================  =======
    plain                     0.59 %
    ``fall=False``            1.06 % (the letter of the paper)
    ``sequential=True``       alpha, by tables
    ``patience=3``            0.19 %
    ``min_bounds=30``         0.43 %
    ``window=50``             0.71 % (old evidence is forgotten, every stretch gets its chance)
    ``window=30``             1.03 %
    ``method="normal"``       0.78 % (its p-values are too small for few bounds)
    "two-sided", "greater"    0.99 %, 0.91 %
    ========================  =======

    alpha bounds false alarms of "a shift happened", not the risk of stopping early.

    One stopper belongs to one thread at a time; a call during another thread's `extend` raises a
    RuntimeError.

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

    _settings: ClassVar[tuple[str, ...]] = (
        "alpha",
        "method",
        "alternative",
        "sequential",
        "horizon",
        "window",
        "min_bounds",
        "patience",
        "fall",
        "noise",
    )

    _tracker: tracker_core.RunsTracker

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        method: str = "auto",
        alternative: str = "less",
        sequential: bool = False,
        horizon: int | None = None,
        window: int | None = None,
        min_bounds: int | None = None,
        patience: int = 1,
        fall: bool = True,
        noise: float | None = None,
        gp: GaussianProcess | None = None,
    ) -> None:
        self.alpha = alpha
        self.method = method
        self.alternative = alternative
        self.sequential = sequential
        self.horizon = horizon
        self.window = window
        self.min_bounds = min_bounds
        self.patience = patience
        self.fall = fall
        self.noise = noise
        self.gp = gp
        self._start()

    def _start(self) -> None:
        """Check the settings and begin with an empty tracker."""
        level = check.probability("alpha", self.alpha)
        method = check.option_code("method", self.method, METHODS)
        alternative = check.option_code("alternative", self.alternative, ALTERNATIVES)
        window = self._count("window", self.window, 2)
        min_bounds = self._count("min_bounds", self.min_bounds, 0)
        patience = check.count("patience", self.patience, 1, check.INT64_MAX)
        horizon = self._count("horizon", self.horizon, 2)
        check.flag("sequential", self.sequential)
        fall = check.flag("fall", self.fall)
        self._check_sources()
        if self.sequential:
            if self.alternative != "less" or self.window is not None or self.method == "normal":
                raise ValueError(
                    "`sequential` needs alternative='less', window=None and an exact method, got "
                    f"alternative={self.alternative!r}, window={self.window!r}, "
                    f"method={self.method!r}"
                )
            from fastal.stopping.sequential import look_level

            level = look_level(self.alpha, self.horizon, fall=fall)
            method = METHODS["exact"]
        elif self.horizon is not None:
            raise ValueError(f"`horizon` needs sequential=True, got {self.horizon!r}")
        self._level = level
        self._falling = bool(self.sequential) and not horizon
        self._tracker = tracker_core.RunsTracker(
            level, method, window, alternative, min_bounds, patience, horizon, self._falling, fall
        )
        # Follows the bounds when it is asked, so that a push costs nothing more.
        self._still = StillTracker()

    # what it knows ---------------------------------------------------------------------------

    @property
    def p_value(self) -> float:
        """p-value of the runs test now; 1.0 below two bounds."""
        return self._tracker.p_value(ALTERNATIVES[self.alternative])

    @property
    def n_runs(self) -> int:
        """Number of runs about the median; 0 without bounds."""
        return self._tracker.n_runs

    @property
    def n_below(self) -> int:
        """Number of tested bounds below the median."""
        return self._tracker.n_below

    @property
    def n_above(self) -> int:
        """Number of tested bounds at or above the median."""
        return self._tracker.n_above

    @property
    def median(self) -> float:
        """Median of the tested bounds; NaN without bounds."""
        return self._tracker.median

    @property
    def labels(self) -> NDArray[np.int8]:
        """1 for each tested bound at or above the median, 0 for those below."""
        tested = self._tested(self._tracker.n_pushed)
        return (tested >= self.median).astype(np.int8)

    def _tested(self, n: int) -> NDArray[np.float64]:
        """Return the bounds that the test after n bounds is about."""
        first = 0 if self.window is None else max(0, n - int(self.window))
        return self.bounds[first:n]

    @property
    def earliest_stop(self) -> int | None:
        """Least number of bounds at which a stop is possible; None if none ever is."""
        # Beyond 4096 bounds of one level each no level is too small for the exact test.
        limit = int(min(4096, self.window or 4096))
        method = "exact" if self.method == "auto" else self.method
        n = _earliest(self._level, self._falling, method, self.alternative, limit)
        if n is None:
            return None
        n = max(n + int(self.patience) - 1, int(self.min_bounds or 0))
        return None if self.horizon is not None and n > self.horizon else n

    @property
    def left(self) -> float:
        """Share of all movement of the model that is still to come (see `MovementBelow`).

        NaN before 10 bounds, with negative bounds, and if nobody has said how many bounds there can
        be: `learn`, `ActiveLearner` and `simulate` do.
        """
        return self._followed().left

    @property
    def level(self) -> float:
        """Mean of the last bounds over its largest value so far (see `MovementBelow`)."""
        return self._followed().level

    def _followed(self) -> StillTracker:
        """Return what is still to come, brought up to the last bound."""
        self._still.follow(self._tracker)
        return self._still

    def set_horizon(self, n_bounds: int) -> None:
        """Learn how many bounds there can be; only `left` depends on it."""
        self._still.horizon = check.count("n_bounds", n_bounds, 0, check.INT64_MAX)

    @property
    def verdict(self) -> Verdict:
        """The decision with its reasons: at the stop if there was one, else now."""
        stopped, n, tested, below, runs, median, p = self._tracker.evidence()
        alpha = self._level * batch.level_at(tested) if self._falling else self._level
        followed = self._followed()
        left, level = followed.at_stop if stopped else (followed.left, followed.level)
        expected = 1 + 2 * below * (tested - below) / tested if tested else math.nan
        stop, reason = self._decide(stopped, n, runs, expected, p, alpha)
        warnings = (*left_warning(left, level), *self._warnings(n)) if stopped else ()
        method = "exact" if self.sequential else self.method
        return Verdict(
            stop, n, reason, warnings, level, left,
            p, runs, below, tested - below, median, alpha, method, self.alternative,
        )  # fmt: skip

    def _decide(
        self, stopped: bool, n: int, runs: int, expected: float, p: float, level: float
    ) -> tuple[bool | None, str]:
        if stopped:
            return True, f"{runs} runs where {expected:.1f} are expected ({_p(p)} <= {level:.3g})"
        earliest = self.earliest_stop
        if self.horizon is not None and n >= self.horizon:
            return False, f"{runs} runs, {_p(p)}; the horizon of {self.horizon} bounds is reached"
        if earliest is None:
            return None, f"no stop is possible with these settings at alpha = {self.alpha:g}"
        if n < earliest:
            return None, f"no stop is possible before {earliest} bounds at alpha = {self.alpha:g}"
        said = f"{runs} runs, {_p(p)}"
        tracker = self._tracker
        if self.fall and self.alternative == "less" and not tracker.fell and tracker.rejects:
            said += f", but the bounds {'rose' if tracker.rose else 'did not fall'}"
        return False, said + self._unconfirmed()

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
        bounds = self.bounds
        again = type(self)(**self._arguments() | {"gp": None})
        p_values, medians = np.empty(len(bounds)), np.empty(len(bounds))
        for i, bound in enumerate(bounds.tolist()):
            again.push(bound)
            p_values[i], medians[i] = again.p_value, again.median
        levels = np.full(len(bounds), self._level)
        if self._falling:
            levels *= [batch.level_at(n) for n in range(1, len(bounds) + 1)]
        return Trace(p_values, medians, levels)

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

    # keeping and restoring -------------------------------------------------------------------

    _version = 2

    _compiled_state = ("_tracker", "_warned", "_still")

    def _extend(self, bounds: Array) -> int:
        return self._tracker.extend(bounds, np.empty(len(bounds), dtype=np.uint8))

    @property
    def _expected(self) -> int:
        return self._still.horizon

    @property
    def _at_stop(self) -> tuple[float, float]:
        return self._followed().at_stop

    @property
    def _evidence(self) -> list[float] | None:
        return list(self._tracker.stop_evidence) if self.stopped else None

    def _restore(
        self, bounds: Array, stopped_at: int, left: float, level: float, evidence: Any
    ) -> None:
        if (evidence is None) != (stopped_at == 0):
            raise ValueError(
                "`evidence` must be there where there was a stop, and only there, got "
                f"{check.short_repr(evidence)}"
            )
        found = (0, 0, 0, math.nan)
        if evidence is not None:
            if not isinstance(evidence, list) or len(evidence) != 4:
                raise ValueError(
                    f"`evidence` must be a list of four, got {check.short_repr(evidence)}"
                )
            n, below, crossings = (
                check.count("evidence", value, 0, check.INT64_MAX) for value in evidence[:3]
            )
            if not (below <= n <= stopped_at and crossings < max(n, 1)):
                raise ValueError(f"`evidence` cannot be, got {check.short_repr(evidence)}")
            found = (n, below, crossings, check.real("evidence", evidence[3]))
        self._tracker.restore(bounds)
        self._tracker.note_evidence(stopped_at, *found)
        self._followed().note_stop(stopped_at, left, level)

    def _note_stop(self, stopped_at: int, left: float, level: float) -> None:
        self._followed().note_stop(stopped_at, left, level)

    def allow_refits(self) -> None:
        """Refuse the sequential mode: with refits no error rate is known."""
        if self.sequential:
            raise ValueError(
                "`sequential` must be False where hyper-parameters are fitted on the way, got "
                "True: no error rate is known then"
            )

    def copy(self) -> Self:
        """Return an independent stopper in the same state; a Gaussian process is copied too."""
        new = super().copy()
        new._still = self._followed().copy()
        if self.stopped_at is not None:
            new._note_stop(self.stopped_at, *self._at_stop)
        return new

    @classmethod
    def _from_version_1(cls, state: dict[str, Any]) -> Stopper:
        # Version 0.1 decided anew from the bounds,
        # and kept to the letter of the paper.
        names = tuple(name for name in cls._settings if name != "fall")
        *settings, gp, bounds = state_values(state, (*names, "gp", "bounds"))
        old = dict(zip(names, settings, strict=True)) | {"fall": False}
        new, values = cls._settled(old, gp, bounds)
        new.extend(values)
        return new
