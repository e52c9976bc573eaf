"""The protocol that all stopping criteria share, and their composition with ``&`` and ``|``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastal import _validation as check

if TYPE_CHECKING:
    from fastal._record import Record

FORMAT = 1


class Decision(NamedTuple):
    """What a criterion says, and why; a `Stopper` says more in its `Verdict`."""

    stop: bool
    n: int
    reason: str

    def __str__(self) -> str:
        return (
            f"stop after {self.n} bounds: {self.reason}" if self.stop else f"go on: {self.reason}"
        )


class Criterion(ABC):
    """Something that takes one number after each label and says when to stop.

    The number is a bound, or what else the criterion goes by. A stop is for ever: later numbers are
    recorded, the first stop stays. ``a | b`` stops when either has stopped, ``a & b`` when both
    have.
    """

    _kinds: ClassVar[dict[str, type[Criterion]]] = {}

    # What `push` takes.
    _takes: ClassVar[str] = "a bound"

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        Criterion._kinds[cls.__name__] = cls

    @abstractmethod
    def push(self, r: float) -> bool:
        """Take one bound; return whether there has been a stop."""

    @abstractmethod
    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself."""

    @property
    @abstractmethod
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why it stopped, or why not yet, for a person to read."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""

    @classmethod
    @abstractmethod
    def _from_state(cls, state: dict[str, Any]) -> Criterion:
        """Build a criterion from what `to_dict` returned, without its kind and version."""

    @property
    @abstractmethod
    def history(self) -> Any:
        """The numbers so far."""

    def _measure(self, name: str, value: object) -> float:
        """Check a number that is to be pushed."""
        return check.real(name, value)

    def _begin(self, learner: Any) -> None:
        """Look at a learner before its first label: by default there is nothing to see."""
        return

    def _see(self, learner: Any) -> bool:
        """Take what a learner has to show after a label: by default the bound."""
        return self.push(learner.last_bound)

    def _stop_in(self, record: Record) -> int | None:
        """Return the bounds at the stop in a finished run, or None; the criterion is reset."""
        return self.reset().extend(record.bounds)

    def _history_in(self, record: Record) -> Any:
        """Return the numbers of a finished run, one for each bound; None if these are bounds."""
        return None

    @property
    def stopped(self) -> bool:
        """Whether there has been a stop."""
        return self.stopped_at is not None

    @property
    def verdict(self) -> Any:
        """The decision with its reason."""
        return Decision(self.stopped, self.stopped_at or 0, self.reason)

    def extend(self, values: Iterable[float]) -> int | None:
        """Push each value; return the number of bounds at the first stop, or None.

        Parameters
        ----------
        values : iterable of float
            Finite bounds.

        Returns
        -------
        int or None
            `stopped_at`.
        """
        for value in check.finite_array("values", check.sequence("values", values)).tolist():
            self.push(value)
        return self.stopped_at

    def __or__(self, other: Criterion) -> AnyOf:
        return AnyOf(self, other) if isinstance(other, Criterion) else NotImplemented

    def __and__(self, other: Criterion) -> AllOf:
        return AllOf(self, other) if isinstance(other, Criterion) else NotImplemented

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the criterion that `to_dict` described; it goes on with identical decisions.

        Parameters
        ----------
        state : dict
            From `to_dict`, perhaps by way of JSON.

        Returns
        -------
        Criterion
            A new one. What is damaged or foreign raises a ValueError that says what is wrong.
        """
        if not isinstance(state, dict):
            raise ValueError(f"`state` must be a dict from `to_dict`, got {check.shown(state)}")
        state = dict(state)
        kind, version = state.pop("kind", None), state.pop("version", None)
        found = Criterion._kinds.get(kind) if isinstance(kind, str) else None
        if found is None or not issubclass(found, cls):
            raise ValueError(
                f"`state` must describe a {cls.__name__}, got kind {check.shown(kind)}"
            )
        if type(version) is not int or version != FORMAT:
            raise ValueError(
                f"`state` must have version {FORMAT}, got {check.shown(version)}: "
                "it was written by another version of fastal"
            )
        made = found._from_state(state)
        assert isinstance(made, cls)
        return made

    def copy(self) -> Self:
        """Return an independent criterion in the same state."""
        return self.from_dict(self.to_dict())


class Measured(Criterion):
    """Compares the measure of each step, or what the measures so far amount to, with a threshold.

    Measures need not fall steadily: the first crossing counts. One that cannot be computed yet
    stands as NaN in the history, and stops nothing.
    """

    # Names of the settings, in the order of the constructor.
    _settings: ClassVar[tuple[str, ...]] = ("threshold",)

    # What is compared, and its relation to the threshold: at a stop, before it.
    _subject: ClassVar[str]
    _relation: ClassVar[tuple[str, str]] = ("is at most", "is above")

    threshold: float

    def __init__(self) -> None:
        self._history: list[float] = []
        self._stopped_at: int | None = None

    def _value(self, n: int) -> float:
        """Return what is compared after n steps, NaN if there is nothing yet."""
        return self._history[n - 1] if n else math.nan

    def _passes(self, value: float) -> bool:
        """Whether that is a reason to stop; false for NaN."""
        return value <= self.threshold

    @property
    def _limit(self) -> float:
        return self.threshold

    def push(self, r: float) -> bool:
        """Take the measure of one step; return whether there has been a stop.

        Parameters
        ----------
        r : float
            The measure, a finite number.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._step(self._measure("r", r))

    def _step(self, measure: float) -> bool:
        self._history.append(measure)
        n = len(self._history)
        if self._stopped_at is None and self._passes(self._value(n)):
            self._stopped_at = n
        return self.stopped

    def extend(self, values: Iterable[float]) -> int | None:
        """Push each value; return the number of steps at the first stop, or None.

        Parameters
        ----------
        values : iterable of float
            Measures; if one is refused, none is taken.

        Returns
        -------
        int or None
            `stopped_at`.
        """
        taken = check.sequence("values", values)
        for value in [self._measure("values", value) for value in taken]:
            self.push(value)
        return self.stopped_at

    def reset(self) -> Self:
        """Forget all steps; return the criterion itself."""
        self._history, self._stopped_at = [], None
        return self

    @property
    def stopped_at(self) -> int | None:
        """Number of steps at the stop, or None."""
        return self._stopped_at

    @property
    def history(self) -> NDArray[np.float64]:
        """The measure of each step; NaN for a step that has none."""
        return np.array(self._history)

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        value = self._value(self._stopped_at or len(self._history))
        if math.isnan(value):
            return f"no {self._subject} yet"
        relation = self._relation[0] if self.stopped else self._relation[1]
        return f"{self._subject} ({value:.4g}) {relation} {self._limit:g}"

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._settings)
        return f"{type(self).__name__}({said})"

    def __copy__(self) -> Self:
        return self.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        return {
            "kind": type(self).__name__,
            "version": FORMAT,
            **{name: _plain(getattr(self, name)) for name in self._settings},
            "history": [None if math.isnan(value) else value for value in self._history],
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Measured:
        *settings, history = check.state_values(state, (*cls._settings, "history"))
        if not isinstance(history, list):
            raise ValueError(f"`state['history']` must be a list, got {check.shown(history)}")
        try:
            new = cls(**dict(zip(cls._settings, settings, strict=True)))
            for value in history:
                new._step(math.nan if value is None else new._measure("history", value))
        except (TypeError, ValueError) as error:
            raise ValueError(f"`state` is damaged: {error}") from None
        return new


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


class _Composition(Criterion):
    """Several criteria under one roof, each with what it goes by.

    It has no state of its own: members may also be given their numbers one by one.
    """

    _word: ClassVar[str]

    def __init__(self, *members: Criterion) -> None:
        # (a | b) | c has three members
        self.members: tuple[Criterion, ...] = tuple(
            inner
            for member in members
            for inner in (member.members if isinstance(member, type(self)) else (member,))
        )

    @abstractmethod
    def _first(self, stops: list[int | None]) -> int | None:
        """Return the stop of all from the stops of each."""

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._first([member.stopped_at for member in self.members])

    @property
    def history(self) -> tuple[Any, ...]:
        """The numbers of each member."""
        return tuple(member.history for member in self.members)

    def push(self, r: float) -> bool:
        """Give one number to every member; return whether there has been a stop."""
        r = self._measure("r", r)
        for member in self.members:
            member.push(r)
        return self.stopped

    def _measure(self, name: str, value: object) -> float:
        takes = {member._takes: member for member in self.members if member._takes}
        if len(takes) > 1:
            said = " and ".join(f"{type(member).__name__} {what}" for what, member in takes.items())
            raise TypeError(f"`push` gives one number to all members, but {said}: push to each")
        for member in self.members:  # all agree to it before one takes it
            member._measure(name, value)
        return check.real(name, value)

    def _begin(self, learner: Any) -> None:
        for member in self.members:
            member._begin(learner)

    def _see(self, learner: Any) -> bool:
        for member in self.members:
            member._see(learner)
        return self.stopped

    def _stop_in(self, record: Record) -> int | None:
        return self._first([member._stop_in(record) for member in self.members])

    def update(self, mean: Any, var: Any, y: Any, noise: Any = None) -> bool:
        """Give the bound of one label to every member (see `Stopper.update`)."""
        from fastal.bound import gp_kl

        if noise is None:
            given = (getattr(member, "noise", None) for member in self.members)
            noise = next((value for value in given if value is not None), None)
        if noise is None:
            raise ValueError("`noise` must be given, here or to the Stopper, got None")
        for r in np.ravel(gp_kl(mean, var, y, noise)).tolist():
            self.push(r)
        return self.stopped

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself."""
        for member in self.members:
            member.reset()
        return self

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet: the members' reasons."""
        return f" {self._word} ".join(member.reason for member in self._telling())

    def _telling(self) -> tuple[Criterion, ...]:
        return self.members

    def __repr__(self) -> str:
        sign = {"or": "|", "and": "&"}[self._word]
        return "(" + f" {sign} ".join(map(repr, self.members)) + ")"

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        return {
            "kind": type(self).__name__,
            "version": FORMAT,
            "members": [member.to_dict() for member in self.members],
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> _Composition:
        (members,) = check.state_values(state, ("members",))
        if not isinstance(members, list) or len(members) < 2:
            raise ValueError(f"`state['members']` must be a list of at least 2, got {members!r}")
        return cls(*(Criterion.from_dict(member) for member in members))


class AnyOf(_Composition):
    """Stops when one member has stopped; made by ``a | b``."""

    _word = "or"

    def _first(self, stops: list[int | None]) -> int | None:
        return min((stop for stop in stops if stop is not None), default=None)

    def _telling(self) -> tuple[Criterion, ...]:
        return tuple(m for m in self.members if m.stopped) or self.members


class AllOf(_Composition):
    """Stops when every member has stopped; made by ``a & b``."""

    _word = "and"

    def _first(self, stops: list[int | None]) -> int | None:
        there = [stop for stop in stops if stop is not None]
        return max(there) if len(there) == len(stops) else None

    def _telling(self) -> tuple[Criterion, ...]:
        return self.members if self.stopped else tuple(m for m in self.members if not m.stopped)
