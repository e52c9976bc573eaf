"""Criteria that only count: FixedBudget and MinLabels."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _memory
from fastal import _validation as check
from fastal._core.rule import CompiledRule, Counter
from fastal._state import FORMAT, state_count, state_values
from fastal.stopping.criterion import Criterion

if TYPE_CHECKING:
    from fastal.stopping.criterion import CampaignView, FittedView


class _Counter(Criterion):
    """Stops at the n-th bound."""

    push_takes = ""  # anything

    def __init__(self, n: int) -> None:
        self.n = n
        self._limit = check.count("n", n, 1, check.INT64_MAX)
        self._counter = Counter(self._limit)

    @property
    def _seen(self) -> int:
        return self._counter.seen

    def _n_seen(self) -> int:
        return self._seen

    @property
    def compiled(self) -> CompiledRule:
        """The criterion as compiled loops see it."""
        return CompiledRule(None, self._counter)

    def push(self, r: float) -> bool:
        """Take one bound; return whether there has been a stop."""
        check.real("r", r)
        return self.update()

    def update(self, *label: Any, **more: Any) -> bool:
        """Count one label, whatever is said about it; return whether there has been a stop."""
        return self._counter.step()

    @property
    def history(self) -> NDArray[np.int64]:
        """The number of bounds after each."""
        seen = self._seen
        _memory.check(8 * seen, f"the history of {seen} bounds", "`reset` it")
        return np.arange(1, seen + 1)

    def after_label(self, campaign: CampaignView) -> bool:
        return self.update()

    def after_refit(
        self, bounds: ArrayLike, *, at_edge: bool = False, same_fit: bool = False
    ) -> bool:
        """Count the labels that a fit has seen; a budget acts at every label.

        Parameters
        ----------
        bounds : array_like
            Bounds of all labels so far.
        at_edge, same_fit : bool
            Of no importance here.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        check.flag("at_edge", at_edge)
        check.flag("same_fit", same_fit)
        self._counter.count_to(len(check.vector("bounds", bounds)))
        return self.stopped

    def refitted(self, campaign: FittedView, *, at_edge: bool = False) -> bool:
        """Count the labels that a fit has seen."""
        return self.after_refit(campaign.bounds, at_edge=at_edge)

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself."""
        self._counter.reset()
        return self

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._limit if self._seen >= self._limit else None

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        return self._said()[1]

    def _said(self) -> tuple[int | None, str]:
        seen = self._seen
        stopped = seen >= self._limit
        return self._limit if stopped else None, self._why(stopped, seen)

    @abstractmethod
    def _why(self, stopped: bool, seen: int) -> str:
        """Return the reason after so many bounds."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._limit})"

    def copy(self) -> Self:
        """Return an independent criterion in the same state."""
        return self._counting_from(self._seen) if self._ours else super().copy()

    def fresh(self) -> Self:
        """Return one with the same settings that has seen nothing."""
        return self._counting_from(0) if self._ours else super().fresh()

    def _counting_from(self, seen: int) -> Self:
        new = self._twin()
        new._counter = Counter(self._limit, seen)
        return new

    def __copy__(self) -> Self:
        return self.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        return {
            "kind": type(self).__name__,
            "version": FORMAT,
            "n": self._limit,
            "seen": self._seen,
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> _Counter:
        n, seen = state_values(state, ("n", "seen"))
        new = cls(state_count("n", n, 1))
        new._counter = Counter(new._limit, state_count("seen", seen, most=check.MOST_SEEN))
        return new


class FixedBudget(_Counter):
    """Stop after n bounds, whatever they are: the usual rule, and a safety net for the others.

    Parameters
    ----------
    n : int
        Number of bounds, one for each label.

    Examples
    --------
    >>> from fastal import FixedBudget, Stopper
    >>> either = Stopper() | FixedBudget(3)
    >>> either.extend([0.5, 0.4, 0.6]), either.reason
    (3, 'the budget of 3 bounds is used up')
    """

    def _why(self, stopped: bool, seen: int) -> str:
        if stopped:
            return f"the budget of {self._limit} bounds is used up"
        return f"{self._limit - seen} of {self._limit} bounds are left"


class MinLabels(_Counter):
    """Be satisfied after n bounds; with ``&`` it keeps another criterion from stopping earlier.

    Parameters
    ----------
    n : int
        Number of bounds, one for each label.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import MinLabels, Stopper
    >>> both = Stopper() & MinLabels(30)
    >>> both.extend(np.repeat([5.0, 1.0], 20))
    30
    """

    def _why(self, stopped: bool, seen: int) -> str:
        if stopped:
            return f"the least number of {self._limit} bounds is reached"
        return f"at least {self._limit} bounds are wanted, {seen} are there"
