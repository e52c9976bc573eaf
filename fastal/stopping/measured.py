"""Criteria that go by a number of their own instead of bounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _params
from fastal import _validation as check
from fastal._state import damaged_state, state_values
from fastal._types import Array
from fastal.stopping.criterion import VERSION, Criterion, settings_of, with_settings
from fastal.stopping.verdict import Verdict, measure_verdict

MOST = check.INT64_MAX // 2  # labels in a saved state: more can come


class Measured(Criterion):
    """Compares a measure, or what the measures so far amount to, with a limit.

    A class of your own defines ``measure(campaign) -> float``, which is asked after each label of a
    campaign, or after each `every`-th one; with ``at = "fits"`` after each fit of the
    hyper-parameters instead. Measures need not fall steadily: the first crossing counts. One that
    cannot be computed yet stands as NaN in the history, and stops nothing. Fits change no measure
    that was taken.
    """

    _measures = True
    _pushed = "measure"

    at: ClassVar[str] = "labels"  # or "fits": when it looks
    every: int = 1  # labels from one look to the next
    threshold: float

    # What is compared, and its relation to the limit: at a stop, before it.
    _subject: ClassVar[str] = "measure"
    _relation: ClassVar[tuple[str, str]] = ("is at most", "is above")

    _history: tuple[float, ...]  # the measures
    _times: tuple[int, ...]  # labels at each of them
    _seen: int  # labels so far
    _at: int  # labels at the stop; 0 before it

    def __init__(self, **settings: Any) -> None:
        if "every" in settings:
            settings["every"] = check.count("every", settings["every"], 1, check.INT64_MAX)
        super().__init__(**settings)
        self.reset()

    # what a class defines --------------------------------------------------------------------

    @abstractmethod
    def measure(self, campaign: Any) -> float:
        """Return the measure of a campaign right after a label; NaN: there is none.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.

        Returns
        -------
        float
            A number.
        """

    def _checked(self, name: str, value: object) -> float:
        """Check a measure that is pushed."""
        return check.real(name, value)

    def _value(self, history: tuple[float, ...]) -> float:
        """Return what is compared after these measures, at least one; NaN if there is nothing."""
        return history[-1]

    def _passes(self, value: float) -> bool:
        """Whether that is a reason to stop; false for NaN."""
        return value <= self.threshold

    @property
    def _limit(self) -> float:
        return self.threshold

    # measures in -----------------------------------------------------------------------------

    def push(self, r: float) -> bool:
        """Take the measure of one step.

        Parameters
        ----------
        r : float
            The measure, a finite number.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._take(self._checked("r", r), self._seen + 1)

    def _take(self, value: float, seen: int) -> bool:
        """Take a measure after so many labels; return whether there has been a stop."""
        history, at = (*self._history, value), self._at
        if not at and self._passes(self._value(history)):
            at = seen
        vars(self).update(_history=history, _times=(*self._times, seen), _seen=seen, _at=at)
        return at > 0

    def extend(self, values: ArrayLike) -> int | None:
        """Push each value; if one is refused, none is taken.

        Parameters
        ----------
        values : array_like
            Measures.

        Returns
        -------
        int or None
            `stopped_at`.
        """
        for value in [self._checked("values", v) for v in check.column_values("values", values)]:
            self._take(value, self._seen + 1)
        return self.stopped_at

    def see(self, campaign: Any, r: float) -> bool:
        """Look at a campaign right after a label, if it is time.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.
        r : float
            The bound of the label, which does not count.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        seen, looked = self._seen + 1, self._times[-1] if self._times else 0
        # a batch that passes a multiple is looked at at its end
        self._seen = seen  # also where the measure raises
        due = self.at == "labels" and seen // self.every > looked // self.every
        if due and getattr(campaign, "batch_ends", True):
            return self._take(float(self.measure(campaign)), seen)
        return self.stopped

    def _replace_all(self, bounds: Array, at_edge: bool) -> None:
        """Do nothing: fits change no measure."""

    def _see_fit(self, campaign: Any, bounds: Array, at_edge: bool) -> None:
        """Count labels that came before the first fit, which have no measure; look at fits."""
        seen, looked = max(self._seen, len(bounds)), self._times[-1] if self._times else 0
        self._seen = seen
        if self.at == "fits" and seen > looked:
            self._take(float(self.measure(campaign)), seen)

    def _put_back(self, bounds: Array) -> None:
        """Do nothing: what was measured was measured."""

    def _forget_stop(self) -> None:
        """Do nothing: a fit judges nothing anew."""

    def set_horizon(self, n: int) -> None:
        """Do nothing: measures have no end.

        Parameters
        ----------
        n : int
            Number of bounds there can be.
        """
        check.count("n", n, 0, check.INT64_MAX)

    def reset(self) -> Self:
        """Forget all measures; return the criterion itself."""
        vars(self).update(_history=(), _times=(), _seen=0, _at=0)
        return self

    # decisions out ---------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether there has been a stop."""
        return self._at > 0

    @property
    def stopped_at(self) -> int | None:
        """Number of labels at the stop, or None: those that gave a bound, or of steps."""
        return self._at or None

    @property
    def history(self) -> NDArray[np.float64]:
        """The measures so far; NaN for a step that has none."""
        return np.array(self._history)

    @property
    def times(self) -> NDArray[np.int64]:
        """Number of labels at each measure: those that gave a bound, or of steps."""
        return np.array(self._times, dtype=np.int64)

    @property
    def bounds(self) -> Array:
        """The measures so far, which stand in for bounds."""
        return self.history

    def __len__(self) -> int:
        return self._seen

    @property
    def verdict(self) -> Verdict:
        """The decision with its reason."""
        history = self._history
        if self._at:
            history = history[: self._times.index(self._at) + 1]
        value = self._value(history) if history else math.nan
        return measure_verdict(
            self._at or self._seen, self._at > 0, value, self._subject,
            self._relation[not self._at], self._limit,
        )  # fmt: skip

    def _told(self) -> Verdict | None:
        return self.verdict if self._at else None

    # keeping ---------------------------------------------------------------------------------

    def _mark(self) -> Any:
        return self._history, self._times, self._seen, self._at

    def _go_back(self, mark: Any) -> None:
        vars(self).update(zip(("_history", "_times", "_seen", "_at"), mark, strict=True))

    def _take_over(self, other: Self) -> None:
        self._go_back(other._mark())

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`.
        """
        return {
            "kind": type(self).__name__,
            "version": VERSION,
            "settings": {name: _params.plain(value) for name, value in settings_of(self).items()},
            "history": [None if math.isnan(value) else value for value in self._history],
            "times": list(self._times),
            "seen": self._seen,
        }

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Criterion:
        names = ("kind", "version", "settings", "history", "times", "seen")
        _, _, settings, history, times, seen = state_values(state, names)
        with damaged_state():
            new = with_settings(cls, settings)
            for value, at in zip(history, times, strict=True):
                number = math.nan if value is None else new._checked("history", value)
                new._take(number, check.count("times", at, new._seen + 1, MOST))
            new._seen = check.count("seen", seen, new._seen, MOST)
        return new
