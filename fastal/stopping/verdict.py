"""What a criterion says, and why: the verdict, its sentences and warnings, written here alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._core import runs_test as runs_test_core
from fastal._state import state_values
from fastal.runs import runs_test


@dataclass(frozen=True)
class Verdict:
    """What a criterion says, and why.

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
    numbers : dict
        What its rule goes by, at the stop or now. Each is an attribute as well: `level` and `left`
        (see `MovementBelow`) of all rules on bounds; `p_value`, `n_runs`, `n_below`, `n_above`,
        `median` and `alpha` of a `Stopper`; `low`, `high`, `share` and `horizon` of a
        `MovementBelow`; `value` of a criterion that measures something else.
    """

    stop: bool | None
    n: int
    reason: str
    warnings: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __getattr__(self, name: str) -> Any:
        numbers = vars(self).get("numbers", {})
        if name in numbers:
            return numbers[name]
        if name in ("left", "level"):
            return math.nan
        raise AttributeError(f"this verdict has no `{name}`: it has {', '.join(numbers) or 'none'}")

    def __str__(self) -> str:
        if self.stop is None:
            return f"too early: {self.reason}"
        if not self.stop:
            return f"go on: {self.reason}"
        said = f"stop after {counted(self.n)}: {self.reason}"
        # What a reader of this one line must know; the other warnings are a matter of judgement.
        caution = [warning for warning in self.warnings if warning.startswith(CAUTIONS)]
        return said + "".join(f"; but {warning}" for warning in caution)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain lists, numbers and texts, ready for JSON."""
        numbers = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in self.numbers.items()
        }
        return {
            "stop": self.stop, "n": self.n, "reason": self.reason,
            "warnings": list(self.warnings), "numbers": numbers,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, state: Any) -> Verdict:
        """Return the verdict that `to_dict` described."""
        names = ("stop", "n", "reason", "warnings", "numbers")
        stop, n, reason, said, numbers = state_values(state, names)
        if not (
            isinstance(reason, str)
            and isinstance(said, list)
            and isinstance(numbers, dict)
            and all(isinstance(warning, str) for warning in said)
        ):
            raise ValueError(f"`stop` cannot be, got {check.short_repr(state)}")
        n = check.count("n", n, 1, check.INT64_MAX)
        kept: dict[str, Any] = {
            name: math.nan if value is None else _saved_number(str(name), value)
            for name, value in numbers.items()
        }
        if kept.get("horizon", 0) != kept.get("horizon", 0):  # of no horizon
            kept["horizon"] = None
        return cls(stop, n, reason, tuple(said), kept)


def _saved_number(name: str, value: object) -> float:
    number = check.real(name, value)
    return int(value) if isinstance(value, Integral) else number


# Words -------------------------------------------------------------------------------------------


def percent(share: float, short: bool = False) -> str:
    """Return a share in words, such as "4.8 %"; never rounded to "100 %" if it is less.

    short : as in a picture.
    """
    if 0 < share < 1e-6 and not short:
        return "less than 0.0001 %"
    text = f"{100 * share:.2g}" if share < 0.0995 else f"{100 * share:.0f}"
    if text == "100" and share < 1:
        return "> 99 %" if short else "more than 99 %"
    return f"{text} %"


def between(low: float, high: float) -> str:
    """Return a range of shares in words."""
    return f"between {percent(low)} and {percent(high)}"


def counted(n: int) -> str:
    """Return a number of bounds in words."""
    return "1 bound" if n == 1 else f"{n} bounds"


def times_less(level: float) -> str:
    """Return how much less a label moves the model than at the peak."""
    less = 1 / level
    times = f"{less:.0f}" if less >= 9.95 else f"{less:.1f}"
    if times == "1.0":
        return "as much as at the peak"
    return f"{times if less < 1e4 else 'more than 10,000'} times less than at the peak"


def asked(share: float) -> str:
    """Return the share that was asked for in words."""
    return f"{100 * share:g} % asked"


def still_to_come(left: float, level: float, low: float, high: float, n: int) -> str:
    """Return what is still to come in the last n labels, and by the scatter of those before."""
    if left == 0:
        return "nothing: the last labels did not move the model at all"
    if math.isnan(level):
        return "not known: no label has moved the model yet"
    rest = "the last label" if n == 1 else f"the remaining {n} labels"
    said = f"at most {percent(left)} of what all labels could move the model is left for {rest}"
    if level > 0:
        said += f"; a label now moves it {times_less(level)}"
    if low < left < high:
        said += f" ({between(low, high)} by the scatter of the last labels)"
    return said


def p_text(p: float) -> str:
    """Return a p-value in words."""
    return f"p = {p:.1e}" if p < 1e-3 else f"p = {p:.2g}"


def unconfirmed(at_edge: bool) -> str:
    """Return why a rule that says stop has not stopped after a fit."""
    if at_edge:
        return "; the fit lies at an edge of its search box and confirms nothing"
    return "; the next fit must agree"


# A campaign: `fastal next`, the report and the pictures ------------------------------------------


def too_early(n: int, least: int, fitted: bool, first: int) -> str:
    """Return why n labels are too few; empty if they are not. least, first : of a fit, a stop."""
    if n < least:
        return f"the first fit needs {least} labels, and there are {n}."
    if not fitted:
        return f"all {n} labels are equal, and say nothing about the other rows."
    return no_stop_before(first, n, "labels") if n < first else ""


def left_unknown(n: int, first: int) -> str:
    """Return why it is not known what is left: fewer labels than the first, or no fit."""
    return (
        f"not known before {first} labels" if n < first else "not known while all labels are equal"
    )


def no_stop_before(first: int, n: int, what: str) -> str:
    """Return that no stop is possible yet."""
    return f"no stop is possible before {first} {what}, and there are {n}."


def go_on_now(left: float, share: float, why: str) -> str:
    """Return that we go on; why : if what is left is little enough."""
    said = f"go on: {percent(left)} is still to come ({asked(share)})"
    return f"{said}, but {why}." if why else f"{said}."


def stop_now(left: float, share: float, fits: list[int], at: int | None) -> str:
    """Return that we stop. fits : labels of the last ones.  at : labels when it was first said."""
    amount = "nothing" if left == 0 else f"at most {percent(left)}"
    if at is not None:
        return f"stop, as said after {at} labels: {amount} was still to come then ({asked(share)})."
    two = f"the fits to {fits[0]} and to {fits[1]} labels" if len(fits) == 2 else "the fits"
    return f"stop: {amount} is still to come ({asked(share)}), and {two} agree."


def unconfirmed_by(fits: list[tuple[int, bool]], n: int, due: int) -> str:
    """Return why there is no stop, with little left. fits : labels, at edge.  due : next fit."""
    *before, (last, at_edge) = fits
    idle = "lies at an edge of its range, and confirms nothing"
    if at_edge:
        return f"the fit to {last} labels {idle}"
    if last < n:
        return f"two fits must agree, and the next one comes at {due} labels"
    if not before:
        return "a second fit must agree"
    return (
        f"the fit before, to {before[-1][0]} labels, {idle if before[-1][1] else 'does not agree'}"
    )


def fit_warnings(
    n: int, scale: float, fitted: bool, at_edge: bool, course: list[tuple[float, int]]
) -> list[str]:
    """Return what the fits say against an answer; course : scales that move, and their labels."""
    said = []
    if not fitted:
        said.append(f"no fit to {n} labels was possible: the hyper-parameters are those before")
    elif at_edge:
        said.append(
            f"the length scale ({scale:.2g}) lies at an edge of the range that was searched: such "
            "a fit confirms no stop, and its predictions deserve a look"
        )
    if course:
        moves = ", ".join(f"{scale:.2g} after {n}" for scale, n in course)
        said.append(
            f"the length scale still moves: {moves} labels; what is said here may change with the "
            "next ones"
        )
    return said


def scale_course(scales: list[float], now: float, n: int, fitted: bool, at_edge: bool) -> str:
    """Return whether the length scale moves. scales : of good fits.  now, n : of the last one."""
    said = f"it is {now:.3g} after {n} labels"
    if not scales:
        return f"no fit has been possible so far: the length scale is a guess; {said}"
    if len(scales) < LAST_FITS:
        fits = "one fit" if len(scales) == 1 else f"{len(scales)} fits"
        text = f"too early to say whether the length scale moves, after {fits}; {said}"
    else:
        change = max(scales[-LAST_FITS:]) / min(scales[-LAST_FITS:]) - 1
        size = percent(change) if change < 1 else f"a factor of {1 + change:.2g}"
        how = "still moves" if change > MOVED else "hardly moves any more"
        text = f"the length scale {how}, by {size} over the last three fits; {said}"
    if not fitted:
        return f"{text}; the last fit failed, and these are the values of the fit before"
    if at_edge:
        return f"{text}; the last fit lies at an edge of its search, and confirms nothing"
    return text


LAST_FITS = 3

MOVED = 0.2  # the length scale moves if the last fits differ by more than this


def left_after(left: float, n: int, stop: int | None) -> str:
    """Return how much is left at the stop, or after n labels."""
    when = f"After {n} labels" if stop is None else f"At the stop, after {stop} labels,"
    if math.isnan(left):
        return f"{when} it is not known yet how much of all movement is still to come."
    return f"{when} {percent(left)} of all movement of the model is still to come."


def loss_then(then: float, stop: int | None, end: float, n: int) -> str:
    """Return the expected loss at the stop, and at the end."""
    last = f"{end:.3g} after {n}"
    if stop is None:
        return f"no stop: expected loss {last}"
    said = f"expected loss {then:.3g} at the stop ({stop} labels)"
    return f"{said}, {last}" if n > stop else said


# A finished campaign: what a stop saved ----------------------------------------------------------

FELL = "Bounds that were high have become low: labels no longer move the model as they did."

NO_FALL = "labels do not lower the error here"


def not_stopped(given: str, n: int, error: float, no_fall: str) -> str:
    """Return that a rule did not stop. given : under what.  no_fall : of an error that stays."""
    said = f"no stop before the end: {given}, you would have used all {n} labels"
    return f"{said}; {no_fall}." if no_fall else f"{said}, with an error of {error:.3g}."


def saved(
    given: str, at: int, n: int, whole: bool, errors: tuple[float, float], unused: float | None,
    no_fall: str, warnings: tuple[str, ...],
) -> str:  # fmt: skip
    """Return what a stop saved, and what the other labels would have brought.

    whole : whether n labels are the pool.  errors : at the stop and the end.  unused : share of
    their fall.  warnings : against a rule that does not look at what is left.
    """
    who = "the paper's rule would have stopped you" if warnings else "you could have stopped"
    said = (
        f"{given[0].upper()}{given[1:]}, {who} after {at} of {n} labels ({percent(1 - at / n)} of "
        f"{'the pool' if whole else 'them'} saved) with an error of {errors[0]:.3g}"
    )
    said += "".join(f", but {warning}" for warning in warnings)
    if unused is None or no_fall:
        return f"{said}; {no_fall}."
    others = f"other {n - at}" if n - at > 1 else "last one"
    return (
        f"{said}; all {n} would have brought {errors[1]:.3g}: the {others} brought "
        f"{percent(unused)} of the fall of the error."
    )


def hardly_falls(start: float, end: float, least: float | None, n: int) -> str:
    """Return that labels hardly lower the error, or do not; least : if it was low on the way."""
    said = f"{start:.3g} after one label, {end:.3g} after all {n}"
    if end < start:
        return f"labels hardly lower the error here: {said}"
    way = (
        "; none after the first paid"
        if least is None
        else f", though it was {least:.3g} on the way"
    )
    return f"{NO_FALL}: {said}{way}"


def small_fall(share: float) -> str:
    """Return how much all labels lower the error."""
    return f"all labels together lower the error by {percent(share)} only"


def more_than_asked(share: float) -> str:
    """Return that the labels after the stop brought more than the share."""
    return (
        f"more than the {percent(share)} asked for: a share holds about, on average over tables, "
        "not on each of them"
    )


def left_before_end(left: float, share: float) -> str:
    """Return why what is still to come stopped nothing before the end."""
    return (
        f"one label before the end {percent(left)} of the movement was still to come "
        f"({asked(share)})."
    )


# One function a rule: at the stop (True), now (False) --------------------------------------------


def own_verdict(bounds: NDArray[np.float64], stop: bool, doubt: str) -> Verdict:
    """Return the verdict of a rule that we know nothing of."""
    n = len(bounds)
    return Verdict(stop, n, "the rule says stop" if stop else f"the rule says go on{doubt}")


def count_verdict(n: int, limit: int, stop: bool, least: bool) -> Verdict:
    """Return the verdict of a budget, or of a least number."""
    if stop:
        kind = "least number" if least else "budget"
        reason = f"the {kind} of {counted(limit)} is {'reached' if least else 'used up'}"
    elif least:
        reason = f"at least {counted(limit)} are wanted, {n} are there"
    else:
        reason = f"{limit - n} of {counted(limit)} are left"
    return Verdict(stop, n, reason)


def runs_verdict(
    stop: bool, numbers: dict[str, Any], earliest: int | None, alpha: float, end: int | None,
    direction: str, warnings: tuple[str, ...], doubt: str,
) -> Verdict:  # fmt: skip
    """Return the verdict of a runs test.

    alpha : the setting.  end : the horizon of the sequential mode.  direction : what speaks against
    a rejection, such as "rose"; empty if nothing does.
    """
    runs, below, above = numbers["n_runs"], numbers["n_below"], numbers["n_above"]
    n = below + above
    said = f"{runs} runs, {p_text(numbers['p_value'])}"
    if stop:
        expected = 1 + 2 * below * above / n
        reason = (
            f"{runs} runs where {expected:.1f} are expected "
            f"({p_text(numbers['p_value'])} <= {numbers['alpha']:.3g})"
        )
        return Verdict(True, n, reason, warnings, numbers)
    if end is not None and n >= end:
        return Verdict(False, n, f"{said}; the horizon of {counted(end)} is reached", (), numbers)
    if earliest is None or n < earliest:
        when = "with these settings" if earliest is None else f"before {counted(earliest)}"
        reason = f"no stop is possible {when} at alpha = {alpha:g}"
        return Verdict(None, n, reason, (), numbers)
    if direction:
        said += f", but the bounds {direction}"
    return Verdict(False, n, said + doubt, (), numbers)


def movement_verdict(
    n: int, stop: bool, numbers: dict[str, Any], width: int, warnings: tuple[str, ...], doubt: str
) -> Verdict:
    """Return the verdict about what is still to come; width : that of the window."""
    left, level, horizon = numbers["left"], numbers["level"], numbers["horizon"]
    if stop and horizon is not None and n >= horizon:
        return Verdict(True, n, f"the horizon of {counted(horizon)} is reached", warnings, numbers)
    if not stop and n <= width:
        short = horizon is not None and horizon <= width
        when = f"the end, {counted(horizon)}" if short else counted(width + 1)
        return Verdict(None, n, f"no stop is possible before {when}", (), numbers)
    if not stop and horizon is not None and n >= horizon:
        reason = f"the horizon of {counted(horizon)} is reached between two fits{doubt}"
        return Verdict(False, n, reason, (), numbers)
    if left == 0:
        reason = f"the last {width} labels no longer moved the model at all"
    elif math.isnan(level):
        reason = "nothing has moved the model yet"
    else:
        amount = percent(left)
        if stop and amount[0].isdigit():
            amount = f"at most {amount}"
        reason = (
            f"{amount} of what {counted(horizon)} can move the model is still to come, if labels "
            f"go on as the last {width} did ({asked(numbers['share'])})"
        )
        if level > 0:
            reason += f"; a label now moves it {times_less(level)}"
    if 0 < left < 1:
        span = between(numbers["low"], numbers["high"])
        reason += f"; by the scatter of those {width} {span}"
    return Verdict(stop, n, reason + doubt, warnings, numbers)


def measure_verdict(
    n: int, stop: bool, value: float, subject: str, relation: str, limit: float
) -> Verdict:
    """Return the verdict of a criterion that compares a measure with a limit."""
    if math.isnan(value):
        return Verdict(stop, n, f"no {subject} yet", (), {"value": value})
    return Verdict(stop, n, f"{subject} ({value:.4g}) {relation} {limit:g}", (), {"value": value})


def combined_verdict(
    n: int, at: int | None, said: list[Verdict], word: str, numbers: dict[str, Any]
) -> Verdict:
    """Return the verdict of a combination: what the members say that made it."""
    stopped = [one.stop is True and (at is None or one.n <= at) for one in said]
    deciding = [one for one, stop in zip(said, stopped, strict=True) if stop == (at is not None)]
    reasons = [
        one.reason + (f" (since {counted(one.n)})" if one.stop and one.n != at else "")
        for one in deciding
    ]
    warnings = dict.fromkeys(w for one in deciding for w in one.warnings) if at else ()
    return Verdict(at is not None, at or n, f"; {word} ".join(reasons), tuple(warnings), numbers)


# Warnings ----------------------------------------------------------------------------------------

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
