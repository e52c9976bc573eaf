"""What a criterion says, and why: verdicts and their warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._core import runs_test as runs_test_core
from fastal.runs import runs_test


class Decision(NamedTuple):
    """What a criterion says, and why; a `Stopper` says more in its `Verdict`."""

    stop: bool
    n: int
    reason: str

    def __str__(self) -> str:
        return (
            f"stop after {self.n} bounds: {self.reason}" if self.stop else f"go on: {self.reason}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a stopper says, and why.

    Attributes
    ----------
    stop : bool or None
        True: stop. False: go on. None: no stop is possible yet, whatever the bounds are.
    p_value : float
        p-value of the runs test: at the stop, or now.
    n_runs : int
        Number of runs about the median.
    expected_runs : float
        Number of runs expected of a random sequence.
    critical_runs : int or None
        Largest number of runs that stops with as many bounds on each side; None if none does, or
        for another alternative than "less".
    n : int
        Number of bounds: at the stop, or now.
    median : float
        Median of the tested bounds.
    alpha : float
        Level that the p-value was compared with.
    reason : str
        Why, in words.
    warnings : tuple of str
        What speaks against trusting a stop; computed when read.
    """

    stop: bool | None
    p_value: float
    n_runs: int
    expected_runs: float
    critical_runs: int | None
    n: int
    median: float
    alpha: float
    reason: str
    _tested: NDArray[np.float64] = field(repr=False, compare=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against trusting a stop: judgement, not calibrated tests."""
        return stop_warnings(self._tested) if self.stop else ()

    def __str__(self) -> str:
        if self.stop is None:
            return f"too early: {self.reason}"
        if not self.stop:
            return f"go on: {self.reason}"
        return f"stop after {self.n} bounds: {self.reason}"


def stop_warnings(bounds: ArrayLike) -> tuple[str, ...]:
    """Return what speaks against trusting a stop on these bounds.

    The runs test detects dependence about the median; in practice a drop of level. It also detects
    a rise, a trend that goes on, and bounds that depend on their neighbours.

    Parameters
    ----------
    bounds : array_like
        The tested bounds.

    Returns
    -------
    tuple of str
        Warnings; empty if nothing is conspicuous.

    Examples
    --------
    >>> from fastal.stopping.verdict import stop_warnings
    >>> stop_warnings([1, 2, 1, 2, 1, 2, 8, 9, 8, 9, 8, 9])
    ('the bounds rose instead of falling',)
    """
    values = check.finite_array("bounds", bounds)
    found = []
    if len(values) < 2:
        return ()
    high = values >= runs_test(values).cutoff  # NumPy's median overflows for huge values
    half = len(values) // 2
    if high[:half].sum() <= high[len(values) - half :].sum():
        found.append("the bounds rose instead of falling")
    last = values[half:]
    if len(last) >= 8:
        if _mann_kendall(last) < -2.326:  # one-sided 1 %
            found.append("the bounds are still falling")
        _, group, sizes = np.unique(last, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(sizes) - sizes / 2)[group]  # ties share their middle rank
        ranks -= ranks.mean()
        if (ranks[1:] * ranks[:-1]).sum() > 0.2 * (ranks**2).sum():
            found.append("neighbouring bounds are alike (rank autocorrelation above 0.2)")
    return tuple(found)


def _mann_kendall(x: NDArray[np.float64]) -> float:
    """Return the z-score of the number of rising minus falling pairs."""
    n = len(x)
    rises = runs_test_core.rising_pairs(x.copy(), np.empty(n))
    return rises / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)


def _p(p: float) -> str:
    return f"p = {p:.1e}" if p < 1e-3 else f"p = {p:.2g}"


NO_STOP = {
    "still learning": "The bounds are still falling: labels still improve the model, and more of "
    "them would.",
    "never fell": "The bounds stay high: each label still tells the model more than its noise "
    "hides, as with a length scale that is short for the distances in the pool.",
    "noise from the start": "The bounds are low and without a trend: after its first labels the "
    "model had learnt what it can, or noise hides the rest.",
}

MASKED = 7  # a drop within so many bounds is mostly never detected

FEWEST = 8  # bounds after these that show a trend

FALLING = -2.326  # one-sided 1 %

HIGH_BOUND = 0.5  # nats


def no_stop_reason(bounds: ArrayLike) -> str:
    """Say what bounds that did not stop suggest.

    A judgement, not a calibrated test. The first 7 bounds are left out, since a drop within them is
    mostly masked for ever. If the others fall (Mann-Kendall trend, one-sided 1 %), the model is
    still learning. If not, their median decides: a label whose input has as much posterior variance
    as noise has a bound of about half a nat.

    Parameters
    ----------
    bounds : array_like
        Bounds of a run that did not stop, without the constant C.

    Returns
    -------
    {"still learning", "never fell", "noise from the start", "too few bounds"}
        "never fell": no trend, and a median of at least half a nat; "noise from the start": no
        trend, and a lower median; "too few bounds": fewer than 15.

    Examples
    --------
    >>> from fastal.stopping.verdict import no_stop_reason
    >>> no_stop_reason([5.0, 6.0, 4.0] * 10)
    'never fell'
    >>> no_stop_reason([0.05, 0.06, 0.04] * 10)
    'noise from the start'
    >>> no_stop_reason([6.0 - 0.1 * i for i in range(30)])
    'still learning'
    """
    import numpy as np

    from fastal import _validation as check
    from fastal.stopping.verdict import _mann_kendall

    values = check.vector("bounds", bounds)[MASKED:]
    if len(values) < FEWEST:
        return "too few bounds"
    if _mann_kendall(values) < FALLING:
        return "still learning"
    return "never fell" if np.median(values) >= HIGH_BOUND else "noise from the start"
