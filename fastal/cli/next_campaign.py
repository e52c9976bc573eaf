"""A learner with the labels of a table: begun anew, or as a state file left it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastal.cli.errors import UserError
from fastal.cli.next_state import check_same_campaign
from fastal.learning.learner import ActiveLearner
from fastal.learning.refit import last_refit_before, next_refit
from fastal.models.weak import LEAST_LABELS
from fastal.stopping.still import MovementBelow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastal._types import Array, Ints
    from fastal.cli.next_state import State
    from fastal.cli.sheet import Sheet

# What a saved criterion knows of its stop.
STOP = ("stops", "stop")


class Campaign(NamedTuple):
    """A learner over the rows of a table.

    Attributes
    ----------
    learner : ActiveLearner
        It has all labels, and its last fit.
    pool : ndarray of int
        Row of the table that each point of the pool is.
    order : str
        Where the order of the labels comes from, in words.
    notes : tuple of str
        What has changed since the state file was written.
    was_stopped : bool
        Whether the stop stood in the state file already.
    """

    learner: ActiveLearner
    pool: Ints
    order: str
    notes: tuple[str, ...] = ()
    was_stopped: bool = False

    @property
    def criterion(self) -> MovementBelow:
        """The criterion of the learner."""
        assert isinstance(self.learner.criterion, MovementBelow)
        return self.learner.criterion


def begin(sheet: Sheet, share: float, seed: int) -> Campaign:
    """Return the campaign of a table without a state file."""
    rows = _in_order(sheet, np.flatnonzero(~np.isnan(sheet.y)))
    learner = _learner(
        sheet.X, rows, sheet.y[rows], np.flatnonzero(sheet.skipped).tolist(), share, seed
    )
    return Campaign(learner, np.arange(len(sheet.y)), _order_in_words(sheet))


def _order_in_words(sheet: Sheet) -> str:
    return "as they stand in the file" if sheet.rank is None else "by the column of --order"


def _in_order(sheet: Sheet, rows: Ints) -> list[int]:
    """Return labelled rows of a table in the order of their labels, as far as it is known."""
    if sheet.rank is None:
        return rows.tolist()  # type: ignore[no-any-return]
    return rows[np.argsort(sheet.rank[rows], kind="stable")].tolist()  # type: ignore[no-any-return]


def _learner(
    X: Array, rows: Sequence[int], y: Array, skipped: Sequence[int], share: float, seed: int
) -> ActiveLearner:
    """Return a learner with all labels; the fit before the last is made anew."""
    first = last_refit_before(len(rows)) or len(rows)
    known = (np.array(rows[:first], dtype=np.int64), y[:first])
    learner = ActiveLearner(X, criterion=MovementBelow(share), known=known, seed=seed)
    if len(skipped):
        learner.tell([None] * len(skipped), index=skipped)
    if first < len(rows):
        learner.tell(y[first:], index=rows[first:])
    if len(rows) >= LEAST_LABELS:
        learner.refit()
    return learner


def with_course(campaign: Campaign, seed: int) -> ActiveLearner:
    """Return the learner with the fits that came before those it has made, for a picture of them.

    Parameters
    ----------
    campaign : Campaign
        The learner has only two fits if there is no state file.
    seed : int
        As on the command line.

    Returns
    -------
    ActiveLearner
        The same labels, bounds and decision.
    """
    learner = campaign.learner
    first = learner.refits[0].n_labels
    state = learner.to_dict()
    if first == LEAST_LABELS or len(state["refits"]["scales"]) > 1:  # the pool was another one then
        return learner
    run = learner.run()
    twin = _learner(learner.points, run.indices[:LEAST_LABELS].tolist(), run.labels, [], 0.5, seed)
    due = next_refit(LEAST_LABELS)
    while due < first:
        told = slice(twin.n_labels, due)
        twin.tell(run.labels[told], index=run.indices[told])
        due = next_refit(due)
    state["refits"]["fits"] = twin.to_dict()["refits"]["fits"] + state["refits"]["fits"]
    return ActiveLearner.from_dict(state, learner.points)


# with a state ------------------------------------------------------------------------------------


def resume(path: str, state: State, sheet: Sheet, share: float, seed: int) -> Campaign:
    """Return the campaign of a state file, with what the table has that is new.

    Parameters
    ----------
    path : str
        The state file, for messages.
    state : State
        What it holds.
    sheet : Sheet
        The table as it is now.
    share, seed : float, int
        As on the command line.

    Returns
    -------
    Campaign
        Its notes say what is different. What cannot be taken over raises a `UserError`, and the
        state stays as it was.
    """
    check_same_campaign(path, state, sheet)
    table = {key: row for row, key in enumerate(sheet.keys)}
    known = [table[key] for key in state.rows]
    here = set(known)
    pool = np.array(known + [row for row in range(len(sheet.y)) if row not in here])
    n_known, X = len(known), sheet.X[pool]
    saved = state.learner
    same_columns = state.columns == list(sheet.columns)
    try:
        if same_columns:
            learner = ActiveLearner.from_dict(_with_share(saved, share), X[:n_known])
        old = dict(zip(_rows(saved["indices"], n_known), saved["labels"], strict=True))
        old_skipped, stop = _rows(saved["skipped"], n_known), saved["criterion"]
        saved_share, was_stopped = stop["settings"]["share"], _is_stop(stop, share)
        refitted = bool(saved["refits"]["fits"])
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"--state: {path} is damaged: {error}") from None

    new = _Changes.of(sheet, pool, old, old_skipped)
    if new.lost:
        values = ", ".join(f"{old[i]:g}" for i in new.lost[:12])
        raise UserError(
            f"{sheet.file}: labels are gone since {path} was written, from "
            f"{sheet.listed(pool[new.lost].tolist())} ({values}): put them back, or write skip in "
            "their place if they do not count"
        )
    notes = new.notes(sheet, pool, n_known)
    if saved_share != share:
        notes.append(f"the share is {100 * share:g} % now, and was {100 * saved_share:g} %")
    if not (same_columns and refitted) or new.dropped or new.back:
        # no learner forgets a label: all of them anew, in the same order
        rows = [i for i in old if i not in new.dropped] + new.labelled
        y = sheet.y[pool[rows]]
        learner = _learner(X, rows, y, np.flatnonzero(sheet.skipped[pool]).tolist(), share, seed)
        if was_stopped:
            learner = _with_stop(learner, stop, X)
    else:
        learner.extend_pool(X[n_known:])
        if new.changed:
            learner.correct(new.changed, sheet.y[pool[new.changed]])
        if new.skipped:
            learner.tell([None] * len(new.skipped), index=new.skipped)
        if new.labelled:
            learner.tell(sheet.y[pool[new.labelled]], index=new.labelled)
    order = "by the state file"
    if new.labelled:
        order += f", then {len(new.labelled)} new ones {_order_in_words(sheet)}"
    return Campaign(learner, pool, order, tuple(notes), was_stopped)


class _Changes(NamedTuple):
    """What a table has that a state has not, as rows of the pool."""

    labelled: list[int]  # new labels, in their order
    changed: list[int]
    lost: list[int]  # had a label, and are empty
    dropped: list[int]  # had a label, and cannot be measured now
    skipped: list[int]
    back: list[int]  # could not be measured, and are empty now

    @classmethod
    def of(cls, sheet: Sheet, pool: Ints, old: dict[int, float], old_skipped: list[int]) -> Any:
        y, skipped = sheet.y[pool], sheet.skipped[pool]
        place = {row: i for i, row in enumerate(pool.tolist())}
        fresh = np.array(
            [r for i, r in enumerate(pool) if y[i] == y[i] and i not in old], dtype=int
        )
        empty, before = np.isnan(y) & ~skipped, set(old_skipped)
        return cls(
            labelled=[place[row] for row in _in_order(sheet, np.sort(fresh))],
            changed=[i for i, value in old.items() if y[i] == y[i] and y[i] != value],
            lost=[i for i in old if empty[i]],
            dropped=[i for i in old if skipped[i]],
            skipped=[
                i for i in np.flatnonzero(skipped).tolist() if i not in old and i not in before
            ],
            back=[i for i in old_skipped if empty[i]],
        )

    def notes(self, sheet: Sheet, pool: Ints, n_known: int) -> list[str]:
        def listed(rows: list[int]) -> str:
            return sheet.listed(sorted(pool[rows].tolist()))

        said = []
        if len(pool) > n_known:
            count = len(pool) - n_known
            said.append(f"{count} new {'row' if count == 1 else 'rows'} joined the table")
        if self.changed:
            said.append(f"{listed(self.changed)} changed since: all bounds are computed anew")
        if self.dropped:
            said.append(f"left out, in spite of an earlier label: {listed(self.dropped)}")
        if self.back:
            said.append(f"to be measured after all: {listed(self.back)}")
        return said


def _rows(values: Any, n: int) -> list[int]:
    """Check rows of a saved pool."""
    if not all(type(row) is int and 0 <= row < n for row in values):
        raise ValueError(f"there are rows that are not in [0, {n})")
    return list(values)


def _is_stop(criterion: dict[str, Any], share: float) -> bool:
    """Return whether a saved criterion has stopped, and would have with this share as well."""
    stop = criterion["stop"]
    return stop is not None and stop["numbers"]["left"] <= share


def _with_share(saved: dict[str, Any], share: float) -> dict[str, Any]:
    """Return a saved learner that asks for another share; a stop at a larger one is none."""
    criterion = saved["criterion"]
    if criterion["settings"]["share"] == share:
        return saved
    criterion = criterion | {"settings": criterion["settings"] | {"share": share}}
    if not _is_stop(criterion, share):
        criterion |= {"stops": [0] * len(criterion["stops"]), "stop": None}
    return saved | {"criterion": criterion}


def _with_stop(learner: ActiveLearner, stop: dict[str, Any], X: Array) -> ActiveLearner:
    """Return a learner that remembers the stop of one before."""
    state = learner.to_dict()
    if state["criterion"]["fit"] is None:  # hardly a label is left
        return learner
    state["criterion"] |= {name: stop[name] for name in STOP}
    return ActiveLearner.from_dict(state, X)
