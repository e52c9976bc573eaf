"""Stopping criteria besides the paper's, and what they have in common.

Every criterion takes bounds by `push`, says `stopped`, `stopped_at` and `reason`, and combines with
``&`` and ``|``: ``Stopper() | FixedBudget(200)`` stops at 200 labels at the latest,
``Stopper() & MinLabels(30)`` not before 30.
"""

from __future__ import annotations

from typing import Any, Self

from fastal import _validation as check
from fastal._criterion import FORMAT, AllOf, AnyOf, Criterion

__all__ = ["AllOf", "AnyOf", "Criterion", "FixedBudget", "MinLabels"]


class _Counter(Criterion):
    """Stops at the n-th bound."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._limit = check.count("n", n, 1)
        self._seen = 0

    def push(self, r: float) -> bool:
        """Take one bound; return whether there has been a stop."""
        check.real("r", r)
        self._seen += 1
        return self.stopped

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself."""
        self._seen = 0
        return self

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._limit if self._seen >= self._limit else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n})"

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
        n, seen = check.state_values(state, ("n", "seen"))
        new = cls(check.state_count("n", n, 1))
        new._seen = check.state_count("seen", seen)
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

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        if self.stopped:
            return f"the budget of {self._limit} bounds is used up"
        return f"{self._limit - self._seen} of {self._limit} bounds are left"


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

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        if self.stopped:
            return f"the least number of {self._limit} bounds is reached"
        return f"at least {self._limit} bounds are wanted, {self._seen} are there"
