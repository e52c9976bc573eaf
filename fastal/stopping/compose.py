"""Combinations of criteria: ``a & b`` and ``a | b``."""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from fastal import _validation as check
from fastal._core.rule import CompiledRule
from fastal._state import FORMAT, state_values
from fastal.bound import bounds_of
from fastal.stopping.budget import FixedBudget
from fastal.stopping.by_bounds import recompute_from
from fastal.stopping.criterion import Criterion, replayed
from fastal.stopping.still import MovementBelow
from fastal.stopping.stopper import Stopper
from fastal.stopping.verdict import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastal._types import Array
    from fastal.stopping.criterion import CampaignView, FinishedRun, FittedView

_Kind = TypeVar("_Kind", bound=Criterion)


class _Composition(Criterion):
    """A combination of criteria; each member gets the measure it needs.

    It has no state of its own: members may also be given their numbers one by one. What is given to
    all is given to all before the next one.
    """

    _word: ClassVar[str]
    _kind: ClassVar[Literal["all", "any"]]

    def __init__(self, *members: Criterion) -> None:
        # (a | b) | c has three members
        self.members: tuple[Criterion, ...] = tuple(
            inner
            for member in members
            for inner in (member.members if isinstance(member, type(self)) else (member,))
        )

    @abstractmethod
    def combine_stops(self, stops: list[int | None]) -> int | None:
        """Return the stop of all from the stops of each."""

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self.combine_stops([member.stopped_at for member in self.members])

    @property
    def history(self) -> tuple[Any, ...]:
        """The numbers of each member."""
        return tuple(member.history for member in self.members)

    @property
    def left(self) -> float:
        """Share still to come, as the first member that is a MovementBelow says; else NaN."""
        still = self._first_still()
        return math.nan if still is None else still.left

    @property
    def level(self) -> float:
        """Level of the last bounds, as the first member that is a MovementBelow says; else NaN."""
        still = self._first_still()
        return math.nan if still is None else still.level

    def _movement_left(self) -> tuple[float, float]:
        still, at = self._first_still(), self.stopped_at
        if still is None:
            return math.nan, math.nan
        return (still.left, still.level) if at is None else still._moment(at)

    def _n_seen(self) -> int:
        return max(member._n_seen() for member in self.members)

    @property
    def verdict(self) -> Decision:
        """The decision with the reasons, and the warnings, of the members that made it."""
        said: Decision = super().verdict
        if not said.stop:
            return said
        deciding = [member for member in self.members if member.stopped_at is not None]
        found = (warning for member in deciding for warning in member.verdict.warnings)
        return replace(said, warnings=tuple(dict.fromkeys(found)))

    def extend(self, values: Any) -> int | None:
        """Give each number to every member; return the number of bounds at the stop, or None.

        Parameters
        ----------
        values : iterable of float
            Finite numbers; if one member refuses one, none is taken.

        Returns
        -------
        int or None
            `stopped_at`.
        """
        numbers = check.finite_array("values", check.column_values("values", values))
        self._check_bounds("values", numbers)
        taken = [self._measure("values", value) for value in numbers.tolist()]
        for value in taken:
            for member in self.members:
                member.push(value)
        return self.stopped_at

    def _first_still(self) -> MovementBelow | None:
        return first_of(self, MovementBelow)

    @property
    def compiled(self) -> CompiledRule | None:
        """The criterion as compiled loops see it; None if a member cannot do without Python."""
        rules = [member.compiled for member in self.members]
        return None if None in rules else CompiledRule(self._kind, *rules)

    def compiled_in(self, campaign: CampaignView) -> CompiledRule | None:
        """Return the combination as the compiled loop of a campaign sees it, or None."""
        rules = [member.compiled_in(campaign) for member in self.members]
        return None if None in rules else CompiledRule(self._kind, *rules)

    def has_run(self, campaign: CampaignView) -> None:
        """Let every member take over what a compiled loop has shown."""
        for member in self.members:
            member.has_run(campaign)

    def set_horizon(self, n_bounds: int) -> None:
        """Tell every member how many bounds there can be."""
        super().set_horizon(n_bounds)
        for member in self.members:
            member.set_horizon(n_bounds)

    @property
    def _expected(self) -> int:
        return max(member._expected for member in self.members)

    def push(self, r: float) -> bool:
        """Give one number to every member; return whether there has been a stop."""
        r = self._measure("r", r)
        for member in self.members:
            member.push(r)
        return self.stopped

    def _measure(self, name: str, value: object) -> float:
        takes = {member.push_takes: member for member in self.members if member.push_takes}
        if len(takes) > 1:
            said = " and ".join(f"{type(member).__name__} {what}" for what, member in takes.items())
            raise TypeError(f"`push` gives one number to all members, but {said}: push to each")
        for member in self.members:  # all agree to it before one takes it
            member._measure(name, value)
        return check.real(name, value)

    def _check_bounds(self, name: str, bounds: Array) -> None:
        for member in self.members:
            member._check_bounds(name, bounds)

    def start(self, campaign: CampaignView) -> None:
        for member in self.members:
            member.start(campaign)

    def after_label(self, campaign: CampaignView) -> bool:
        for member in self.members:
            member.after_label(campaign)
        return self.stopped

    def stop_in(self, run: FinishedRun, measures: Array | None) -> int | None:
        if run.refits and self._replays:
            return replayed(self, run)  # members are judged anew until the whole has stopped
        return self.combine_stops([m.stop_in(run, m.measures_in(run)) for m in self.members])

    @property
    def _replays(self) -> bool:
        return all(member._replays for member in self.members)

    def update(self, mean: Any, var: Any, y: Any, noise: Any = None) -> bool:
        """Give the bound of one label to every member (see `Stopper.update`)."""
        if noise is None:
            given = (getattr(member, "noise", None) for member in self.members)
            noise = next((value for value in given if value is not None), None)
        if noise is None:
            raise ValueError("`noise` must be given, here or to the Stopper, got None")
        bounds = bounds_of(mean, var, y, noise).tolist()
        for r in bounds:  # all agree to all before one is taken
            self._measure("r", r)
        for r in bounds:
            for member in self.members:
                member.push(r)
        return self.stopped

    def after_refit(
        self, bounds: ArrayLike, *, at_edge: bool = False, same_fit: bool = False
    ) -> bool:
        """Let every member take all bounds anew, and decide.

        Until the whole has stopped, its members are judged anew; then all stops stay.

        Parameters
        ----------
        bounds : array_like
            Bounds of all labels so far, in order.
        at_edge, same_fit : bool
            As in `Criterion.after_refit`.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        for member in self.members:
            if type(member).after_refit is Criterion.after_refit:
                member.after_refit(bounds)  # says why not, before any other has changed
        values = check.vector("bounds", bounds)
        self._check_bounds("bounds", values)
        if same_fit or self._has_seen(values):
            return self.stopped
        if not self.stopped:
            self._unlatch()
        for member in self.members:
            member.after_refit(values, at_edge=at_edge)
        return self.stopped

    def refitted(self, campaign: FittedView, *, at_edge: bool = False) -> bool:
        """Let every member look at a campaign that was fitted anew.

        Until the whole has stopped, its members are judged anew; then all stops stay.
        """
        bounds, stopped = campaign.bounds, self.stopped
        for member in self.members:
            if member._has_seen(bounds):
                continue
            if not stopped:
                member._unlatch()
            member.refitted(campaign, at_edge=at_edge)
        return self.stopped

    def after_correction(self, bounds: ArrayLike) -> None:
        """Give every member the bounds of a campaign in which a label was wrong."""
        values = check.vector("bounds", bounds)
        self._check_bounds("bounds", values)
        for member in self.members:
            member.after_correction(values)

    def allow_refits(self) -> None:
        for member in self.members:
            member.allow_refits()

    def _has_seen(self, bounds: Array) -> bool:
        return any(member._has_seen(bounds) for member in self.members)

    def _missing_in(self, n: int) -> int:
        return max(member._missing_in(n) for member in self.members)

    def _unlatch(self) -> None:
        for member in self.members:
            member._unlatch()

    def recompute_from(
        self,
        model: Any,
        *,
        initial: int = 0,
        order: Any = None,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
    ) -> bool:
        """Give every member all bounds of a model that was fitted anew (see `MovementBelow`).

        Parameters
        ----------
        model : object
            A fitted model.
        initial : int
            Number of labels at the beginning that give no bound.
        order : array_like of int, optional
            Rows of the model in the order in which their labels came.
        X, y : array_like, optional
            Inputs and labels as they were given to its `fit`: for a model that keeps none, and for
            a check that it has seen all of them.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return recompute_from(self, model, initial, order, X, y)

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself."""
        for member in self.members:
            member.reset()
        return self

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first member that is a MovementBelow, else the first that is a Stopper.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw the bounds; the rest comes below. A new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the bounds. The stop that is marked is that of the member; `Run.plot` marks the
            one of the combination.
        """
        member = self._first_still() or first_of(self, Stopper)
        if member is None:
            raise TypeError(
                f"there is no picture of {check.short_repr(self)}: `plot` needs a MovementBelow or "
                "a Stopper among the members"
            )
        return member.plot(ax)

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet: the members' reasons."""
        return self._said()[1]

    def _said(self) -> tuple[int | None, str]:
        said = [member._said() for member in self.members]
        at = self.combine_stops([stop for stop, _ in said])
        # of a stop, why those stopped that did; else why the others did not
        telling = [
            # what a member said earlier than the others is said of that moment
            reason if stop in (at, None) else f"{reason} (since {stop} bounds)"
            for stop, reason in said
            if (stop is None) == (at is None)
        ]
        return at, f" {self._word} ".join(telling)

    def __repr__(self) -> str:
        sign = {"or": "|", "and": "&"}[self._word]
        return "(" + f" {sign} ".join(map(repr, self.members)) + ")"

    def copy(self) -> Self:
        """Return an independent combination of copies of its members."""
        return self._of([member.copy() for member in self.members])

    def fresh(self) -> Self:
        """Return one with the same settings that has seen nothing."""
        return self._of([member.fresh() for member in self.members])

    def _of(self, members: list[Criterion]) -> Self:
        """Return a combination of copies of its members: nothing is to be told to them."""
        if not self._ours:
            return type(self)(*members)
        new = self._twin()
        new.members = tuple(members)
        return new

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        members = [member.to_dict() for member in self.members]
        return {"kind": type(self).__name__, "version": FORMAT, "members": members}

    def __getstate__(self) -> Any:
        members = deepcopy(self.members)
        return vars(self) | {"members": members}

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> _Composition:
        (members,) = state_values(state, ("members",))
        if not isinstance(members, list) or len(members) < 2:
            raise ValueError(f"`state['members']` must be a list of at least 2, got {members!r}")
        return cls(*(Criterion.from_dict(member) for member in members))


class AnyOf(_Composition):
    """Stops when one member has stopped; made by ``a | b``.

    A `FixedBudget` among the members tells the others how many bounds there can be at most.
    """

    _word, _kind = "or", "any"

    def __init__(self, *members: Criterion) -> None:
        super().__init__(*members)
        budget = self._budget()
        if budget is not None:
            for member in self.members:
                if member._expected == 0:
                    member.set_horizon(budget)

    def _budget(self) -> int | None:
        budgets = [member.n for member in self.members if isinstance(member, FixedBudget)]
        return min(budgets) if budgets else None

    def set_horizon(self, n_bounds: int) -> None:
        """Tell every member how many bounds there can be: no more than a budget allows."""
        n = check.count("n_bounds", n_bounds, 0, check.INT64_MAX)
        budget = self._budget()
        super().set_horizon(n if budget is None else min(n or budget, budget))

    def combine_stops(self, stops: list[int | None]) -> int | None:
        """Return the first of the stops."""
        there = [stop for stop in stops if stop is not None]
        return min(there) if there else None


class AllOf(_Composition):
    """Stops when every member has stopped; made by ``a & b``."""

    _word, _kind = "and", "all"

    def combine_stops(self, stops: list[int | None]) -> int | None:
        """Return the last of the stops, if none is missing."""
        there = [stop for stop in stops if stop is not None]
        return max(there) if len(there) == len(stops) else None


def first_of(criterion: Criterion, kind: type[_Kind]) -> _Kind | None:
    """Return the first criterion of a kind: this one, a member, or a member's member.

    Parameters
    ----------
    criterion : Criterion
        Where to look.
    kind : type
        What to look for.

    Returns
    -------
    Criterion or None
        None if there is none.

    Examples
    --------
    >>> from fastal import FixedBudget, MovementBelow
    >>> from fastal.stopping.compose import first_of
    >>> first_of(FixedBudget(300) | MovementBelow(0.1), MovementBelow)
    MovementBelow(share=0.1)
    """
    return next(iter(members_of(criterion, kind)), None)


def members_of(criterion: Criterion, kind: type[_Kind]) -> list[_Kind]:
    """Return all criteria of a kind: this one, members, and members' members.

    Parameters
    ----------
    criterion : Criterion
        Where to look.
    kind : type
        What to look for.

    Returns
    -------
    list of Criterion
        In their order.

    Examples
    --------
    >>> from fastal import FixedBudget, MovementBelow
    >>> from fastal.stopping.compose import members_of
    >>> members_of(FixedBudget(300) | MovementBelow(0.1), MovementBelow)
    [MovementBelow(share=0.1)]
    """
    if isinstance(criterion, kind):
        return [criterion]
    members = criterion.members if isinstance(criterion, _Composition) else ()
    return [one for member in members for one in members_of(member, kind)]
