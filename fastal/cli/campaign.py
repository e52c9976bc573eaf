"""One campaign over a table that has all labels, and what the rules say of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from fastal.cli.arguments import add_alpha, share_list
from fastal.cli.errors import UserError
from fastal.cli.output import LABEL, print_entry

if TYPE_CHECKING:
    import argparse

    from fastal._types import Array
    from fastal.learning.run import Run
    from fastal.models.gp import GaussianProcess
    from fastal.stopping.criterion import Criterion

STILL, PAPER = RULES = ("still", "paper")

DEFAULT_SHARE = 0.05

FIRST_STOP = 11  # bounds, of `MovementBelow`: its window and one

LITTLE_FALL = 0.1  # of the first error: a share of a smaller fall is a share of chance


class Outcome(NamedTuple):
    """Where one rule stops in a finished campaign, and with what error."""

    rule: str  # as on the command line
    setting: float  # share, or alpha
    criterion: Criterion  # with the bounds up to its decision, or all of them
    labels: int  # at the stop; at the end if there is none before
    early: bool  # whether the stop is before the end
    left: float  # share of the movement that is still to come then; NaN if unknown
    rmse: float  # then, in units of the target
    unused: float | None  # of the fall of the error; None if it does not fall

    @property
    def name(self) -> str:
        """What the row of a table is called."""
        return f"{self.rule} {self.setting:g}"

    def record(self) -> dict[str, Any]:
        """Return what a JSON file says of it."""
        return {
            "rule": self.rule,
            "alpha" if self.rule == PAPER else "share": self.setting,
            "stopped": self.early,
            "n_labels": self.labels,
            "left": None if math.isnan(self.left) else self.left,
            "rmse": self.rmse,
            "unused": self.unused,
            "verdict": str(self.criterion.verdict),
            "warnings": list(self.criterion.verdict.warnings),
        }


class Campaign(NamedTuple):
    """A campaign to its end, and the rules on its bounds; the first is the one that was chosen."""

    run: Run
    rmse: Array  # after each label, in units of the target
    outcomes: list[Outcome]

    @property
    def chosen(self) -> Outcome:
        """What the rule that was chosen says."""
        return self.outcomes[0]


def add_rule(parser: argparse.ArgumentParser) -> None:
    """Add ``--rule``, ``--share`` and ``--alpha``."""
    parser.add_argument(
        "--rule",
        choices=RULES,
        default=STILL,
        help="what decides: how much is still to come, by the last bounds (still, the default); "
        "or the paper's runs test",
    )
    parser.add_argument(
        "--share",
        type=share_list,
        metavar="SHARE,...",
        help="with still: stop when at most this share is still to come (default: "
        f"{DEFAULT_SHARE}); further shares get a row each: what if I accept more?",
    )
    add_alpha(parser, "level of the paper's runs test")


def chosen_shares(arguments: argparse.Namespace) -> list[float]:
    """Return the shares that were asked for."""
    if arguments.share is None:
        return [DEFAULT_SHARE]
    if arguments.rule == PAPER:
        given = ",".join(f"{share:g}" for share in arguments.share)
        raise UserError(f"--share: {given} belongs to --rule still, got --rule paper")
    shares: list[float] = arguments.share
    return shares


def run_campaign(
    X: Any,
    y: Any,
    test: tuple[Any, Any],
    *,
    gp: GaussianProcess,
    arguments: argparse.Namespace,
    max_labels: int | None,
    progress: bool,
    scale: float = 1.0,
) -> Campaign:
    """Label the pool to its end, once, and ask every rule where it would have stopped.

    `scale` is the unit of the labels.
    """
    from fastal.learning.run import learn

    shares, rule, alpha = chosen_shares(arguments), arguments.rule, arguments.alpha
    asked: list[tuple[str, float]] = [(rule, share) for share in shares]
    if rule == PAPER:
        asked = [(PAPER, alpha), (STILL, DEFAULT_SHARE)]
    else:
        asked.append((PAPER, alpha))
    first = learn(
        X,
        y,
        gp=gp,
        criterion=_criterion(*asked[0]),
        max_labels=max_labels,
        seed=arguments.seed,
        progress=progress,
    )
    # the errors of all labels in one pass
    run = first.resume(max_labels=len(y) if max_labels is None else max_labels, test=test)
    assert run.rmse is not None
    rmse = scale * run.rmse
    judged = [(*asked[0], run.criterion)]
    judged += [(*one, _on_bounds(*one, run)) for one in asked[1:]]
    return Campaign(run, rmse, [_outcome(*one, run, rmse) for one in judged])


def _criterion(rule: str, setting: float) -> Criterion:
    """Return a rule without bounds."""
    if rule == PAPER:
        from fastal.stopping.stopper import Stopper

        return Stopper(setting)
    from fastal.stopping.still import MovementBelow

    return MovementBelow(setting)


def _on_bounds(rule: str, setting: float, run: Run) -> Criterion:
    """Return a rule that has seen all bounds of a run."""
    criterion: Any = _criterion(rule, setting)
    criterion.set_horizon(len(run.bounds))  # the run went to its end
    criterion.extend(run.bounds)
    return criterion  # type: ignore[no-any-return]


def _outcome(rule: str, setting: float, criterion: Criterion, run: Run, rmse: Array) -> Outcome:
    at = criterion.stopped_at
    early = at is not None and at + run.n_initial < run.n_labels
    labels = at + run.n_initial if early and at is not None else run.n_labels
    left = 0.0  # nothing comes after the end
    if early:
        left = float(run.left[labels - run.n_initial - 1])
    then = float(rmse[labels - 1])
    return Outcome(rule, setting, criterion, labels, early, left, then, unused_share(rmse, labels))


def unused_share(rmse: Array, labels: int) -> float | None:
    """Return what the labels after so many still brought, of all that labels after the first did.

    It is of the error on the test rows, in [0, 1]; None where the error does not fall.
    """
    start, then, end = float(rmse[0]), float(rmse[labels - 1]), float(rmse[-1])
    if not end < start:
        return None
    return min(1.0, max(0.0, (then - end) / (start - end)))


# what is printed ---------------------------------------------------------------------------------


def print_answer(campaign: Campaign, given: str) -> None:
    """Print the decision of the rule that was chosen, and the reasons for and against it."""
    for label, text in answer_entries(campaign, given):
        print_entry(label, text)


def answer_entries(campaign: Campaign, given: str) -> list[tuple[str, str]]:
    """Return the decision of the rule that was chosen, and the reasons for and against it."""
    from fastal.stopping import verdict as words

    run, chosen = campaign.run, campaign.chosen
    verdict = chosen.criterion.verdict
    why = f"{verdict}." if chosen.early or chosen.rule != STILL else _why_not(campaign)
    if chosen.rule == PAPER and chosen.early and words.ROSE not in verdict.warnings:
        why += f" {words.FELL}"
    entries = [("answer", _answer(campaign, given)), ("why", why)]
    if not chosen.early:
        reason = words.no_stop_reason(run.bounds)
        if reason in words.NO_STOP:
            entries.append(("suggests", f"{reason}. {words.NO_STOP[reason]}"))
        return entries
    entries += [
        ("but", f"{chosen.name}: {warning}")
        for warning in dict.fromkeys((*verdict.warnings, *_much_left(chosen)))
        if warning not in why  # a verdict may end with one
    ]
    return entries + _more_than_asked(campaign)


def _answer(campaign: Campaign, given: str) -> str:
    """Say where the rule that was chosen stops, with what error, and what the rest brought."""
    from fastal.stopping import verdict as words

    run, chosen, rmse = campaign.run, campaign.chosen, campaign.rmse
    n, whole = run.n_labels, run.n_labels == run.n_pool
    no_fall = "" if _falls(rmse) else _no_fall(rmse)
    if not whole:
        given += f" within the {n} labels you allow, in a pool of {run.n_pool}"
    if not chosen.early:
        return words.not_stopped(given, n, chosen.rmse, no_fall)
    errors = (chosen.rmse, float(rmse[-1]))
    missed = _much_left(chosen)
    return words.saved(given, chosen.labels, n, whole, errors, chosen.unused, no_fall, missed)


def _falls(rmse: Array) -> bool:
    """Return whether the error falls enough for a share of its fall to mean something."""
    start, end = float(rmse[0]), float(rmse[-1])
    return end < start and start - end >= LITTLE_FALL * start


def _no_fall(rmse: Array) -> str:
    """Say that labels hardly lower the error, or do not."""
    from fastal.stopping.verdict import hardly_falls

    start, end, least = float(rmse[0]), float(rmse[-1]), float(rmse.min())
    fell = start - least >= LITTLE_FALL * start > 0
    return hardly_falls(start, end, least if fell else None, len(rmse))


def _much_left(one: Outcome) -> tuple[str, ...]:
    """Return the warning of a stop with much still to come, of a rule that does not look at it."""
    from fastal.stopping.verdict import left_warning

    return left_warning(one.left, math.nan) if one.early and one.rule != STILL else ()


def _more_than_asked(campaign: Campaign) -> list[tuple[str, str]]:
    """Say that the labels after the stop brought more than the share that was asked for."""
    from fastal.stopping.verdict import more_than_asked

    chosen = campaign.chosen
    if chosen.rule == PAPER or chosen.unused is None or not _falls(campaign.rmse):
        return []
    if not chosen.unused > chosen.setting:
        return []
    text = f"{chosen.name}: {more_than_asked(chosen.setting)}; a smaller --share stops later"
    return [("but", text)]


def _why_not(campaign: Campaign) -> str:
    """Say why `MovementBelow` did not stop before the horizon."""
    from fastal.stopping.verdict import left_before_end, no_stop_before

    n, left = len(campaign.run.bounds), campaign.run.left
    if n <= FIRST_STOP:
        return no_stop_before(FIRST_STOP, n, "bounds")
    return left_before_end(float(left[-2]), campaign.chosen.setting)


def outcome_rows(campaign: Campaign) -> list[list[str]]:
    """Return a row per rule, as texts, below the names of the columns."""
    from fastal.stopping.verdict import percent

    head = ["labels used", "still to come", "error then", "unused", "error at the end"]
    rows, end = [["rule", *head]], f"{campaign.rmse[-1]:.3g}"
    for one in campaign.outcomes:
        labels = f"{one.labels} of {campaign.run.n_labels}"
        rows.append([
            one.name,
            labels if one.early else "no stop before the end",
            "-" if math.isnan(one.left) else percent(one.left),
            f"{one.rmse:.3g}",
            "-" if one.unused is None else percent(one.unused),
            end,
        ])  # fmt: skip
    return rows


def print_outcomes(campaign: Campaign, unit: str) -> None:
    """Print a row per rule, and what the columns are."""
    from fastal.stopping.verdict import NO_FALL, small_fall

    rows = outcome_rows(campaign)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(widths[0], LABEL - 2)
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())
    for one in campaign.outcomes[1:]:
        for warning in _much_left(one):
            print_entry("but", f"{one.name}: {warning}")
    start, last = float(campaign.rmse[0]), float(campaign.rmse[-1])
    print_entry("error", f"root mean square {unit}; {start:.3g} after one label")
    if not last < start:
        print_entry("unused", NO_FALL)
        return
    if not _falls(campaign.rmse):
        print_entry("but", small_fall((start - last) / start))
    print_entry(
        "unused", "what the labels after the stop brought, of all that those after the first did"
    )
