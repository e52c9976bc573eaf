"""Combinations of criteria: ``a & b`` and ``a | b``."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.rule import Rule
from fastal._state import state_values
from fastal.stopping.count import FixedBudget
from fastal.stopping.criterion import VERSION, Criterion, Fit, saved_count, saved_fit
from fastal.stopping.still import MovementBelow
from fastal.stopping.stopper import Stopper
from fastal.stopping.verdict import Verdict, combined_verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from fastal._types import Array

_Kind = TypeVar("_Kind", bound=Criterion)


class MemberRules:
    """What `Rule` does, where members have state of their own: all bounds go to each of them."""

    def __init__(self, members: tuple[Criterion, ...], combine: Any) -> None:
        self.members, self._combine = members, combine
        self.kept = 0  # a stop that no later stop of a member changes

    def push(self, r: float) -> bool:
        """Give a bound to every member; if one refuses it, none has it."""
        self.refuse_mixed()
        marks = [member._mark() for member in self.members]
        try:
            for member in self.members:
                member.push(r)
        except BaseException:
            for member, mark in zip(self.members, marks, strict=True):
                member._go_back(mark)
            raise
        return self.stopped_at > 0

    def refuse_mixed(self) -> None:
        """Refuse a number that some members would take for a bound, others for their measure."""
        parts = [part for member in self.members for part in _single(member)]
        taken = {part._pushed: part for part in parts}
        if {"bound", "measure"} <= taken.keys():
            raise TypeError(
                f"a combination with {check.short_repr(taken['measure'])} takes no bounds: push to "
                "each member, or let `learn` run it"
            )

    @property
    def n(self) -> int:
        """Number of bounds."""
        return max(map(len, self.members))

    @property
    def stops(self) -> tuple[int, ...]:
        """Number of bounds at the stop of each member; 0 before it."""
        return tuple(member.stopped_at or 0 for member in self.members)

    @property
    def stopped_at(self) -> int:
        """Number of bounds at the stop; 0 before it."""
        found: int = self.kept or self._combine(self.stops)
        return found


class Combination(Criterion):
    """A combination of criteria. Where all members are compiled, it is one compiled rule.

    Otherwise each member keeps its own state; then a criterion that measures something else than
    bounds may be among them.
    """

    _kind: ClassVar[str]
    _word: ClassVar[str]
    _sign: ClassVar[str]

    _members: tuple[Criterion, ...]  # with their state, or as settings only

    def __init__(self, *members: Criterion) -> None:
        for member in members:
            if not isinstance(member, Criterion):
                raise TypeError(f"`members` must be criteria, got {check.short_repr(member)}")
        # (a | b) | c has three members
        flat = [
            inner
            for member in members
            for inner in (member._members if type(member) is type(self) else (member,))
        ]
        if not flat:
            raise ValueError("`members` must not be empty, got ()")
        vars(self).update(_members=tuple(one.copy().reset() for one in flat))
        super().__init__()
        self._tell_horizons()

    def _spec(self) -> tuple[Any, ...] | None:
        parts = [member._spec() for member in self._members]
        return None if None in parts else (self._kind, *parts)

    def _new_rule(self) -> Any:
        spec = self._spec()
        return MemberRules(self._members, self._combine) if spec is None else Rule(spec)

    @staticmethod
    @abstractmethod
    def _combine(stops: Sequence[int]) -> int:
        """Return the stop of the whole from the stops of the members; 0: none."""

    @property
    def members(self) -> tuple[Criterion, ...]:
        """The members as they are now; copies, where the combination is one compiled rule."""
        if isinstance(self._rule, MemberRules):
            return self._members
        return tuple(self._rebuilt(self.bounds))

    def _rebuilt(self, bounds: Array) -> Iterator[Criterion]:
        """Return the members of a compiled combination with their own stops."""
        stops, place = self._rule.stops, 1
        for member in self._members:
            new, size = member.copy(), _parts(member._spec())
            own = stops[place : place + size]
            place += size
            new.set_horizon(self._at_most(self._horizon))
            new._rule.restore(bounds, own, own[0], self._rule.held)
            vars(new).update(_fit=self._fit)
            yield new

    # bounds in -------------------------------------------------------------------------------

    def extend(self, values: ArrayLike) -> int | None:
        """Take bounds in order, all or none.

        Parameters
        ----------
        values : array_like
            Finite numbers.

        Returns
        -------
        int or None
            `stopped_at`.
        """
        if not isinstance(self._rule, MemberRules):
            return super().extend(values)
        self._rule.refuse_mixed()
        mark = self._mark()
        try:
            for r in check.vector("values", check.column_values("values", values)).tolist():
                self._rule.push(r)
        except BaseException:
            self._go_back(mark)
            raise
        return self.stopped_at

    def _mark(self) -> Any:
        if not isinstance(self._rule, MemberRules):
            return super()._mark()
        return [member._mark() for member in self._members]

    def _go_back(self, mark: Any) -> None:
        if not isinstance(self._rule, MemberRules):
            super()._go_back(mark)
            return
        for member, one in zip(self._members, mark, strict=True):
            member._go_back(one)

    def see(self, campaign: Any, r: float) -> bool:
        """Let every member look at a campaign right after a label.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.
        r : float
            The bound of the label.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        if not isinstance(self._rule, MemberRules):
            return self.push(r)
        for member in self._members:
            member.see(campaign, r)
        return self.stopped

    def _see_fit(self, campaign: Any, bounds: Array, at_edge: bool) -> None:
        if not isinstance(self._rule, MemberRules):
            super()._see_fit(campaign, bounds, at_edge)
            return
        new = self._fit is None or not np.array_equal(bounds, self.bounds)
        if new:
            self._forget_stops()
        for member in self._members:
            member._see_fit(campaign, bounds, at_edge)
        if new:
            vars(self).update(_fit=Fit(len(bounds), at_edge))

    def _replace_all(self, bounds: Array, at_edge: bool) -> None:
        if not isinstance(self._rule, MemberRules):
            super()._replace_all(bounds, at_edge)
            return
        self._forget_stops()
        for member in self._members:
            member._replace_all(bounds, at_edge)
        vars(self).update(_fit=Fit(len(bounds), at_edge))

    def _forget_stops(self) -> None:
        """Until the whole has stopped, its members are judged anew at a fit."""
        vars(self).update(_stop=self._told())
        self._rule.kept = self._rule.stopped_at
        if not self.stopped:
            for member in self._members:
                member._forget_stop()

    def _forget_stop(self) -> None:
        if isinstance(self._rule, MemberRules):
            self._rule.kept = 0
            vars(self).update(_stop=None)
            for member in self._members:
                member._forget_stop()
        else:
            super()._forget_stop()

    def _put_back(self, bounds: Array) -> None:
        if isinstance(self._rule, MemberRules):
            vars(self).update(_stop=self._told())
            for member in self._members:
                member._put_back(bounds)
        else:
            super()._put_back(bounds)

    def _allow_fits(self) -> None:
        for member in self._members:
            member._allow_fits()

    def _tell_horizons(self) -> None:
        if isinstance(self._rule, MemberRules):
            for member in self._members:
                member.set_horizon(self._at_most(self._horizon))
        else:
            super()._tell_horizons()

    def _at_most(self, n: int) -> int:
        """Return the horizon of the members; n: that of the combination, 0 if nobody knows."""
        return n

    def _horizons(self, n: int) -> tuple[int, ...]:
        n = self._at_most(n)
        return (n, *(end for member in self._members for end in member._horizons(n)))

    def reset(self) -> Self:
        """Forget all bounds and measures; return the combination itself. The horizon stays."""
        if isinstance(self._rule, MemberRules):
            for member in self._members:
                member.reset()
            self._rule.kept = 0
            vars(self).update(_fit=None, _stop=None)
            return self
        return super().reset()

    # decisions out ---------------------------------------------------------------------------

    @property
    def bounds(self) -> Array:
        """All bounds in order, as a new array; NaN where members measure something else."""
        if not isinstance(self._rule, MemberRules):
            return super().bounds
        known = [member.bounds for member in self._members if not member._measures]
        return known[0] if known else np.full(len(self), np.nan)

    def _judge(self, bounds: Array, stop: bool) -> Verdict:
        n = len(bounds)
        members = self.members
        said = [_said(member, bounds) for member in members]
        numbers = {}
        one = _first_among(members, MovementBelow) or _first_among(members, Stopper)
        if one is not None:
            known = one._judge(bounds, False).numbers
            numbers = {name: known[name] for name in ("left", "level")}
        return combined_verdict(n, n if stop else None, said, self._word, numbers)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the first member that is a `MovementBelow`, else the first that is a `Stopper`.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw the bounds; a new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the bounds.
        """
        from fastal.plotting import plot_member

        return plot_member(self, ax)

    # keeping ---------------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent combination in the same state."""
        new = type(self)(*self._members)
        new._take_over(self)
        return new

    __copy__ = copy

    def _take_over(self, other: Self) -> None:
        if isinstance(self._rule, MemberRules):
            for own, old in zip(self._members, other._members, strict=True):
                own._take_over(old)
            self._rule.kept = other._rule.kept
            vars(self).update(_horizon=other._horizon, _fit=other._fit, _stop=other._stop)
        else:
            super()._take_over(other)

    def replace(self, **changes: Any) -> Self:
        """Return another one with the same members, without bounds.

        Parameters
        ----------
        **changes
            There are none: combine other members.

        Returns
        -------
        Criterion
            Of the same class.
        """
        if changes:
            name = next(iter(changes))
            raise ValueError(f"`{name}` is no setting of a combination: combine other members")
        return type(self)(*self._members)

    def to_dict(self) -> dict[str, Any]:
        """Return members and state as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`.
        """
        stop, live = self._told(), isinstance(self._rule, MemberRules)
        return {
            "kind": type(self).__name__,
            "version": VERSION,
            "members": [member.to_dict() for member in self._members],
            "horizon": self._horizon,
            "bounds": None if live else self.bounds.tolist(),
            "fit": None if self._fit is None else list(self._fit),
            "stops": None if live else list(self._rule.stops),
            "stop": None if stop is None else stop.to_dict(),
        }

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Criterion:
        names = ("kind", "version", "members", "horizon", "bounds", "fit", "stops", "stop")
        _, _, members, horizon, bounds, fit, stops, stop = state_values(state, names)
        if not isinstance(members, list):
            raise ValueError(f"`members` must be a list, got {check.short_repr(members)}")
        made = [
            member if isinstance(member, Criterion) else Criterion.from_dict(member)
            for member in members
        ]
        new = cls(*made)
        if not isinstance(new._rule, MemberRules):
            if any(len(member) for member in made):
                raise ValueError("`members` must have no bounds of their own in this combination")
            new._restore(horizon, bounds, fit, stops, stop)
            return new
        if bounds is not None or stops is not None:
            raise ValueError("`bounds` and `stops` must be those of the members, got others")
        for member, old in zip(new._members, made, strict=True):
            member._take_over(old)
        told = None if stop is None else Verdict.from_dict(stop)
        new._rule.kept = 0 if told is None else told.n
        vars(new).update(_horizon=saved_count("horizon", horizon), _fit=saved_fit(fit), _stop=told)
        return new

    def __reduce__(self) -> Any:
        # Members as they are: where they come to, their classes may not be known by name.
        return type(self)._restored, (self.to_dict() | {"members": list(self._members)},)

    def __repr__(self) -> str:
        return "(" + f" {self._sign} ".join(map(repr, self._members)) + ")"


class AnyOf(Combination):
    """Stops when one member has stopped; a budget among them says how many bounds there can be."""

    _kind, _word, _sign = "any", "or", "|"

    @staticmethod
    def _combine(stops: Sequence[int]) -> int:
        return min((stop for stop in stops if stop), default=0)

    def _at_most(self, n: int) -> int:
        budgets = [int(one.n) for one in self._members if isinstance(one, FixedBudget)]
        return min((one for one in (n, *budgets) if one), default=0)


class AllOf(Combination):
    """Stops when every member has stopped."""

    _kind, _word, _sign = "all", "and", "&"

    @staticmethod
    def _combine(stops: Sequence[int]) -> int:
        return 0 if 0 in stops else max(stops)


def _said(member: Criterion, bounds: Array) -> Verdict:
    """Return what a member said when there were these bounds."""
    if member._measures:
        return member.verdict
    told = member._told()
    return member._judge(bounds, False) if told is None or told.n > len(bounds) else told


def _parts(spec: tuple[Any, ...] | None) -> int:
    """Return the number of parts of a compiled rule."""
    assert spec is not None
    return 1 + sum(map(_parts, spec[1:])) if spec[0] in ("any", "all") else 1


def _single(criterion: Criterion) -> Iterator[Criterion]:
    """Return a criterion, or those that it combines."""
    if isinstance(criterion, Combination):
        for member in criterion._members:
            yield from _single(member)
    else:
        yield criterion


def separate_parts(criterion: Criterion) -> Iterator[Criterion]:
    """Return a criterion, or those of its members that keep state of their own."""
    if isinstance(criterion, Combination) and isinstance(criterion._rule, MemberRules):
        for member in criterion._members:
            yield from separate_parts(member)
    else:
        yield criterion


def first_of(criterion: Criterion, kind: type[_Kind]) -> _Kind | None:
    """Return a criterion or the first of its members of a kind; None if there is none.

    Parameters
    ----------
    criterion : Criterion
        It, or one of its members.
    kind : type
        A class of criteria.

    Returns
    -------
    Criterion or None
        As it is now; a copy, where it is a part of a compiled combination.
    """
    if isinstance(criterion, kind):
        return criterion
    return _first_among(criterion.members, kind) if isinstance(criterion, Combination) else None


def _first_among(members: tuple[Criterion, ...], kind: type[_Kind]) -> _Kind | None:
    """Return the first of some criteria and their members of a kind."""
    found = (first_of(member, kind) for member in members)
    return next((one for one in found if one is not None), None)
