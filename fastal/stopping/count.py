"""Criteria that count: a budget, and a least number of bounds."""

from __future__ import annotations

from typing import Any, ClassVar

from fastal import _validation as check
from fastal._types import Array
from fastal.stopping.criterion import Criterion
from fastal.stopping.verdict import Verdict, count_verdict


class _Count(Criterion):
    """Stops at the n-th bound, also between fits."""

    n: int

    _pushed = "anything"

    _least: ClassVar[bool]

    def __init__(self, n: int) -> None:
        super().__init__(n=n)

    def _spec(self) -> tuple[Any, ...]:
        return "count", check.count("n", self.n, 1, check.INT64_MAX)

    def _judge(self, bounds: Array, stop: bool) -> Verdict:
        return count_verdict(len(bounds), int(self.n), stop, self._least)


class FixedBudget(_Count):
    """Stop after n bounds, whatever they are: the usual rule, and a safety net for the others.

    Parameters
    ----------
    n : int
        Number of bounds, one for each label after the initial ones.

    Examples
    --------
    >>> from fastal import FixedBudget, Stopper
    >>> rule = Stopper() | FixedBudget(3)
    >>> [rule.push(r) for r in (5.0, 4.0, 6.0)]
    [False, False, True]
    >>> rule.verdict.reason
    'the budget of 3 bounds is used up'
    """

    _least = False


class MinLabels(_Count):
    """Be satisfied after n bounds; with ``&`` it keeps another criterion from stopping earlier.

    Parameters
    ----------
    n : int
        Number of bounds, one for each label after the initial ones.

    Examples
    --------
    >>> from fastal import MinLabels, Stopper
    >>> rule = Stopper() & MinLabels(30)
    >>> rule.extend([9.0] * 10 + [1.0] * 20)
    30
    """

    _least = True
