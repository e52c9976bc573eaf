"""What ``fastal next`` has to say of a campaign: stop or go on, what is left, the rows to label."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastal.learning.refit import next_refit
from fastal.models.weak import LEAST_LABELS
from fastal.stopping import verdict as words

if TYPE_CHECKING:
    from fastal.cli.next_campaign import Campaign
    from fastal.cli.sheet import Sheet
    from fastal.learning.learner import ActiveLearner

FIRST_LEFT = 10  # bounds from which on `MovementBelow` knows what is left; it stops one later

LAST_FITS = 3

MOVES = 1.2  # a length scale that the last fits change by this factor still moves


class Answer(NamedTuple):
    """All that is printed, or written as JSON."""

    stop: bool
    sentence: str  # the same with its reason
    left: float  # share still to come; NaN where unknown, as the next three
    level: float
    low: float  # range of the share
    high: float
    still: str  # what they mean, in words
    rows: list[int]  # of the table, to label next
    random: bool  # whether these are
    warnings: list[str]
    n_open: int  # rows that have no label and can be measured


def answer(campaign: Campaign, sheet: Sheet, number: int, seed: int) -> Answer:
    """Return what there is to say, with so many rows to label next; seed : of random rows.

    The learner is asked, and not to be saved afterwards.
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
    criterion = campaign.criterion
    if not n_open:
        return "stop: no rows are left to label."
    if criterion.stopped:
        at = (criterion.stopped_at or 0) + learner.n_initial if campaign.was_stopped else None
        fits = [fit.n_labels for fit in learner.refits[-2:]]
        return words.stop_now(criterion.verdict.left, criterion.share, fits, at)
    first = learner.n_initial + FIRST_LEFT + 1
    if early := words.too_early(learner.n_labels, LEAST_LABELS, fitted, first):
        return f"go on: {early}"
    left, share = criterion.left, criterion.share
    return words.go_on_now(left, share, "" if left > share else _unconfirmed(learner))


def _unconfirmed(learner: ActiveLearner) -> str:
    """Say why little is still to come, and there is no stop."""
    fits = [(fit.n_labels, fit.at_edge) for fit in learner.refits]
    return words.unconfirmed_by(fits, learner.n_labels, next_refit(fits[-1][0]))


def _still(
    learner: ActiveLearner, n_open: int, fitted: bool, known: tuple[float, float, float, float]
) -> str:
    """Say what is still to come, and what that means."""
    first = learner.n_initial + FIRST_LEFT
    if not n_open:
        return "nothing: no rows are left"
    if learner.n_labels < first or not fitted:
        return words.left_unknown(learner.n_labels, first)
    return words.still_to_come(*known, n_open)


def _fit_warnings(learner: ActiveLearner) -> list[str]:
    """Return what the course of the hyper-parameters says against an answer."""
    if not learner.refits:
        return []
    last = learner.refits[-1]
    if not is_fitted(learner):
        y = learner.run().labels[0]
        text = f"all {learner.n_labels} labels are equal ({y:g}): rows are random until one differs"
        return [text]
    fits = [fit for fit in learner.refits if fit.fitted][-LAST_FITS:]
    scales = [fit.lengthscale for fit in fits]
    moves = max(scales) > MOVES * min(scales)
    course = [(fit.lengthscale, fit.n_labels) for fit in fits] if moves else []
    return words.fit_warnings(last.n_labels, last.lengthscale, last.fitted, last.at_edge, course)
