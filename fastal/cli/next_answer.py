"""What ``fastal next`` has to say of a campaign: stop or go on, what is left, the rows to label."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastal.learning.refit import next_refit
from fastal.models.weak import LEAST_LABELS
from fastal.stopping.verdict import asked, percent, still_to_come

if TYPE_CHECKING:
    from fastal.cli.next_campaign import Campaign
    from fastal.cli.sheet import Sheet
    from fastal.learning.learner import ActiveLearner

FIRST_LEFT = 10  # bounds from which on `MovementBelow` knows what is left; it stops one later

LAST_FITS = 3

MOVES = 1.2  # a length scale that the last fits change by this factor still moves


class Answer(NamedTuple):
    """All that is printed, or written as JSON.

    Attributes
    ----------
    stop : bool
        Whether to stop.
    sentence : str
        The same with its reason.
    left, level, low, high : float
        Share still to come, level, and the range of the share; NaN where unknown.
    still : str
        What they mean, in words.
    rows : list of int
        Rows of the table to label next.
    random : bool
        Whether these are random.
    warnings : list of str
        Reasons to distrust it all.
    n_open : int
        Rows that have no label and can be measured.
    """

    stop: bool
    sentence: str
    left: float
    level: float
    low: float
    high: float
    still: str
    rows: list[int]
    random: bool
    warnings: list[str]
    n_open: int


def answer(campaign: Campaign, sheet: Sheet, number: int, seed: int) -> Answer:
    """Return what there is to say. The learner is asked, and not to be saved afterwards.

    Parameters
    ----------
    campaign : Campaign
        The learner with all labels.
    sheet : Sheet
        The table.
    number : int
        How many rows to label next.
    seed : int
        Of random rows.
    """
    learner = campaign.learner
    n_open = int(learner.unlabelled.sum())
    fitted = is_fitted(learner)
    rows = _next_rows(campaign, number if n_open else 0, fitted, seed)
    stop = learner.stopped or not n_open
    said = list(sheet.warnings)
    left = level = low = high = math.nan
    if fitted and n_open:
        criterion = campaign.criterion
        left, level, verdict = criterion.left, criterion.level, criterion.verdict
        if not campaign.was_stopped:
            low, high = verdict.low, verdict.high
        said += verdict.warnings
    return Answer(
        stop=stop,
        sentence=_sentence(campaign, n_open, fitted),
        left=left,
        level=level,
        low=low,
        high=high,
        still=_still(learner, n_open, fitted, (left, level, low, high)),
        rows=rows,
        random=not fitted,
        warnings=[*said, *(_fit_warnings(learner) if n_open else ())],
        n_open=n_open,
    )


def is_fitted(learner: ActiveLearner) -> bool:
    """Return whether a fit has succeeded; none does while all labels are equal."""
    return any(fit.fitted for fit in learner.refits)


def _next_rows(campaign: Campaign, number: int, fitted: bool, seed: int) -> list[int]:
    """Return the rows of the table to label next."""
    learner, pool = campaign.learner, campaign.pool
    if not number:
        return []
    if fitted:
        return pool[learner.ask(number)].tolist()  # type: ignore[no-any-return]
    # One order for all calls: those that were named and not labelled yet are named again.
    is_open = np.zeros(len(pool), dtype=np.bool_)
    is_open[pool] = learner.unlabelled
    order = np.random.default_rng(seed).permutation(len(pool))
    return order[is_open[order]][:number].tolist()  # type: ignore[no-any-return]


# sentences ---------------------------------------------------------------------------------------


def _sentence(campaign: Campaign, n_open: int, fitted: bool) -> str:
    """Say go on or stop, and why."""
    learner = campaign.learner
    criterion, n = campaign.criterion, learner.n_labels
    if not n_open:
        return "stop: no rows are left to label."
    wanted = asked(criterion.share)
    if criterion.stopped:
        then = _share(criterion.verdict.left)
        if campaign.was_stopped:
            at = (criterion.stopped_at or 0) + learner.n_initial
            return f"stop, as said after {at} labels: {then} was still to come then ({wanted})."
        return f"stop: {then} is still to come ({wanted}), and {_two_fits(learner)} agree."
    if n < LEAST_LABELS:
        return f"go on: the first fit needs {LEAST_LABELS} labels, and there are {n}."
    if not fitted:
        return f"go on: all {n} labels are equal, and say nothing about the other rows."
    first = learner.n_initial + FIRST_LEFT + 1
    if n < first:
        return f"go on: no stop is possible before {first} labels, and there are {n}."
    left = criterion.left
    if left > criterion.share:
        return f"go on: {percent(left)} is still to come ({wanted})."
    return f"go on: {percent(left)} is still to come ({wanted}), but {_unconfirmed(learner)}."


def _share(left: float) -> str:
    return "nothing" if left == 0 else f"at most {percent(left)}"


def _two_fits(learner: ActiveLearner) -> str:
    fits = [fit.n_labels for fit in learner.refits[-2:]]
    return f"the fits to {fits[0]} and to {fits[1]} labels" if len(fits) == 2 else "the fits"


def _unconfirmed(learner: ActiveLearner) -> str:
    """Say why little is still to come, and there is no stop."""
    *before, last = learner.refits
    if last.at_edge:
        return (
            f"the fit to {last.n_labels} labels lies at an edge of its range, and confirms nothing"
        )
    if last.n_labels < learner.n_labels:
        due = next_refit(last.n_labels)
        return f"two fits must agree, and the next one comes at {due} labels"
    if before and before[-1].at_edge:
        return (
            f"the fit before, to {before[-1].n_labels} labels, lies at an edge of its range, and "
            "confirms nothing"
        )
    return f"the fit before, to {before[-1].n_labels} labels, does not agree" if before else (
        "a second fit must agree"
    )  # fmt: skip


def _still(
    learner: ActiveLearner, n_open: int, fitted: bool, known: tuple[float, float, float, float]
) -> str:
    """Say what is still to come, and what that means."""
    first = learner.n_initial + FIRST_LEFT
    if not n_open:
        return "nothing: no rows are left"
    if learner.n_labels < first:
        return f"not known before {first} labels"
    if not fitted:
        return "not known while all labels are equal"
    return still_to_come(*known, n_open)


def _fit_warnings(learner: ActiveLearner) -> list[str]:
    """Return what the course of the hyper-parameters says against an answer."""
    said: list[str] = []
    if not learner.refits:
        return said
    last = learner.refits[-1]
    if not is_fitted(learner):
        y = learner.run().labels[0]
        said.append(
            f"all {learner.n_labels} labels are equal ({y:g}): rows are random until one differs"
        )
        return said
    if not last.fitted:
        said.append(
            f"no fit to {last.n_labels} labels was possible: the hyper-parameters are those before"
        )
    elif last.at_edge:
        said.append(
            f"the length scale ({last.lengthscale:.2g}) lies at an edge of the range that was "
            "searched: such a fit confirms no stop, and its predictions deserve a look"
        )
    fits = [fit for fit in learner.refits if fit.fitted][-LAST_FITS:]
    scales = [fit.lengthscale for fit in fits]
    if max(scales) > MOVES * min(scales):
        course = ", ".join(f"{fit.lengthscale:.2g} after {fit.n_labels}" for fit in fits)
        said.append(
            f"the length scale still moves: {course} labels; what is said here may change with the "
            "next ones"
        )
    return said
