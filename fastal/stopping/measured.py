"""Criteria that compare a measure of each step with a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fastal import _params
from fastal import _validation as check
from fastal._state import FORMAT, damaged_state, state_values
from fastal.stopping.criterion import Criterion


class Measured(Criterion):
    """Compares the measure of each step, or what the measures so far amount to, with a threshold.

    Measures need not fall steadily: the first crossing counts. One that cannot be computed yet
    stands as NaN in the history, and stops nothing.
    """

    # Names of the settings, in the order of the constructor.
    _settings: ClassVar[tuple[str, ...]] = ("threshold",)

    # What is compared, and its relation to the threshold: at a stop, before it.
    _subject: ClassVar[str]
    _relation: ClassVar[tuple[str, str]] = ("is at most", "is above")

    threshold: float

    # Measures, how many of them count, and how many there were at the stop: set as one, after a
    # complete step. The list grows, and is not changed otherwise.
    _steps: tuple[list[float], int, int | None]

    def __init__(self) -> None:
        self._steps = [], 0, None

    def _value(self, history: list[float], n: int) -> float:
        """Return what is compared after n steps, NaN if there is nothing yet."""
        return history[n - 1] if n else math.nan

    def _passes(self, value: float) -> bool:
        """Whether that is a reason to stop; false for NaN."""
        return value <= self.threshold

    @property
    def _limit(self) -> float:
        return self.threshold

    def push(self, r: float) -> bool:
        """Take the measure of one step; return whether there has been a stop.

        Parameters
        ----------
        r : float
            The measure, a finite number.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._step(self._measure("r", r))

    def _step(self, measure: float) -> bool:
        """Take a measure; return whether there has been a stop."""
        history, n, at = self._steps
        del history[n:]  # of a step that was interrupted
        history.append(measure)
        if at is None and self._passes(self._value(history, n + 1)):
            at = n + 1
        self._steps = history, n + 1, at
        return at is not None

    def extend(self, values: Iterable[float]) -> int | None:
        """Push each value; return the number of steps at the first stop, or None.

        Parameters
        ----------
        values : iterable of float
            Measures; if one is refused, none is taken.

        Returns
        -------
        int or None
            `stopped_at`.
        """
        taken = check.column_values("values", values)
        for value in [self._measure("values", value) for value in taken]:
            self.push(value)
        return self.stopped_at

    def reset(self) -> Self:
        """Forget all steps; return the criterion itself."""
        self._steps = [], 0, None
        return self

    @property
    def stopped_at(self) -> int | None:
        """Number of steps at the stop, or None."""
        return self._steps[2]

    def _measures(self) -> list[float]:
        history, n, _ = self._steps
        return history[:n]

    @property
    def history(self) -> NDArray[np.float64]:
        """The measure of each step; NaN for a step that has none."""
        return np.array(self._measures())

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        return self._said()[1]

    def _said(self) -> tuple[int | None, str]:
        history, n, at = self._steps
        value = self._value(history, at or n)
        if math.isnan(value):
            return at, f"no {self._subject} yet"
        relation = self._relation[at is None]
        return at, f"{self._subject} ({value:.4g}) {relation} {self._limit:g}"

    def __repr__(self) -> str:
        return _params.call_text(self, self._arguments())

    def _argument_names(self) -> tuple[str, ...]:
        return self._settings

    def copy(self) -> Self:
        """Return an independent criterion in the same state."""
        history, n, at = self._steps
        return self._with_steps(history[:n], n, at) if self._is_simple else super().copy()

    def fresh(self) -> Self:
        """Return one with the same settings that has seen nothing."""
        return self._with_steps([], 0, None) if self._is_simple else super().fresh()

    @property
    def _is_simple(self) -> bool:
        """Whether a threshold and steps are all there is to it."""
        return self._ours and vars(self).keys() == {"threshold", "_steps"}

    def _with_steps(self, history: list[float], n: int, at: int | None) -> Self:
        """Return one with the same threshold and these steps."""
        new = self._twin()
        new._steps = history, n, at
        return new

    def __copy__(self) -> Self:
        return self.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        return {
            "kind": type(self).__name__,
            "version": FORMAT,
            **{name: _params.plain(getattr(self, name)) for name in self._settings},
            "history": _listed(self._measures()),
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Measured:
        *settings, history = state_values(state, (*cls._settings, "history"))
        if not isinstance(history, list):
            raise ValueError(f"`state['history']` must be a list, got {check.short_repr(history)}")
        with damaged_state():
            new = cls(**dict(zip(cls._settings, settings, strict=True)))
            for value in history:
                new._step(math.nan if value is None else new._measure("history", value))
        return new


def _listed(history: list[float]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in history]
