"""What a criterion says, and why: verdicts and their warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._core import batch
from fastal._core import runs_test as runs_test_core
from fastal.runs import METHODS, runs_test


@dataclass(frozen=True, slots=True)
class Decision:
    """What a criterion says, and why: the part that all verdicts share.

    Attributes
    ----------
    stop : bool or None
        True: stop. False: go on. None: no stop is possible yet, whatever comes.
    n : int
        Number of bounds: at the stop, or now.
    reason : str
        Why, in words.
    warnings : tuple of str
        Reasons to distrust this stop: judgement, not calibrated tests.
    level : float
        Mean of the last bounds over its largest value so far, at the stop or now; NaN if unknown.
    left : float
        Share of all movement of the model that is still to come, at the stop or now; NaN if
        unknown, as without a horizon.
    """

    stop: bool | None
    n: int
    reason: str
    warnings: tuple[str, ...] = ()
    level: float = field(default=math.nan, compare=False)
    left: float = field(default=math.nan, compare=False)

    def __str__(self) -> str:
        if self.stop is None:
            return f"too early: {self.reason}"
        if not self.stop:
            return f"go on: {self.reason}"
        said = f"stop after {self.n} bounds: {self.reason}"
        # What a reader of this one line must know; the other warnings are a matter of judgement.
        caution = [warning for warning in self.warnings if warning.startswith(CAUTIONS)]
        return said + "".join(f"; but {warning}" for warning in caution)


@dataclass(frozen=True, slots=True)
class Verdict(Decision):
    """What a `Stopper` says, and why.

    Attributes
    ----------
    stop : bool or None
        True: stop. False: go on. None: no stop is possible yet, whatever the bounds are.
    n : int
        Number of bounds: at the stop, or now.
    reason : str
        Why, in words.
    warnings : tuple of str
        Reasons to distrust this stop: judgement, not calibrated tests.
    level, left : float
        As in `Decision`.
    p_value : float
        p-value of the runs test: at the stop, or now.
    n_runs : int
        Number of runs about the median.
    n_below, n_above : int
        Number of tested bounds below the median, and at or above it.
    median : float
        Median of the tested bounds.
    alpha : float
        Level that the p-value was compared with.
    method : {"auto", "exact", "normal"}
        How the p-value was computed.
    alternative : {"less", "greater", "two-sided"}
        What the test is against.
    """

    p_value: float = 1.0
    n_runs: int = 0
    n_below: int = 0
    n_above: int = 0
    median: float = field(default=math.nan, compare=False)
    alpha: float = math.nan
    method: str = "auto"
    alternative: str = "less"

    @property
    def expected_runs(self) -> float:
        """Number of runs expected of a random sequence; NaN without bounds."""
        n = self.n_below + self.n_above
        return 1 + 2 * self.n_below * self.n_above / n if n else math.nan

    @property
    def critical_runs(self) -> int | None:
        """Largest number of runs that stops with as many bounds on each side; None if none does.

        Also None for another alternative than "less".
        """
        if self.alternative != "less" or self.n_below + self.n_above < 2:
            return None
        guess = self.n_runs if self.p_value <= self.alpha else int(self.expected_runs)
        method = METHODS[self.method]
        found = batch.critical_runs(self.n_below, self.n_above, self.alpha, method, guess)
        return found or None


FEWEST = 7  # bounds that show a trend

FALLING = -2.326  # one-sided 1 %

ROSE = "the bounds rose instead of falling"

STILL_FALLING = "the bounds are still falling"

# More than this share of the movement still to come, or of the peak still there, is worth a word.
MUCH_LEFT = 0.1


# How the warnings begin that belong to a stop wherever it is printed.
CAUTIONS = ("up to", "the bounds still stand at")


def left_warning(left: float, level: float) -> tuple[str, ...]:
    """Return what speaks against a stop by how much is still to come.

    Parameters
    ----------
    left : float
        Share of all movement that is still to come; NaN if unknown.
    level : float
        Mean of the last bounds over its largest value; NaN if unknown.

    Returns
    -------
    tuple of str
        One warning or none.
    """
    if left > MUCH_LEFT:
        return (f"{CAUTIONS[0]} {percent(left)} of the movement may still be to come",)
    if math.isnan(left) and level > MUCH_LEFT:
        return (f"{CAUTIONS[1]} {percent(level)} of their peak",)
    return ()


def percent(share: float) -> str:
    """Return a share in words: two digits, never rounded to "100 %" if it is less.

    Parameters
    ----------
    share : float
        From 0 to 1.

    Returns
    -------
    str
        Such as "4.8 %".
    """
    if 0 < share < 1e-6:
        return "less than 0.0001 %"
    text = f"{100 * share:.2g}" if share < 0.0995 else f"{100 * share:.0f}"
    return "more than 99 %" if text == "100" and share < 1 else f"{text} %"


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
    high = (
        values >= runs_test(values, cutoff="median").cutoff
    )  # NumPy's median overflows for huge values
    half = len(values) // 2
    # where the median is the least value, nothing lies below it
    if not high.all() and high[:half].sum() <= high[len(values) - half :].sum():
        found.append(ROSE)
    last = values[half:]
    if len(last) >= FEWEST:  # also at the earliest stop
        if _mann_kendall(last) < FALLING:
            found.append(STILL_FALLING)
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
    values = check.vector("bounds", bounds)[MASKED:]
    if len(values) < 8:
        return "too few bounds"
    if _mann_kendall(values) < FALLING:
        return "still learning"
    return "never fell" if np.median(values) >= HIGH_BOUND else "noise from the start"
