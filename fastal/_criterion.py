"""The protocol that all stopping criteria share, and their composition with ``&`` and ``|``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fastal import _validation as check
from fastal._threads import OneWriter, lock_of

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

    Threads may share a criterion: numbers wait for one another, and none is lost. A class of your
    own takes its turn by ``with self._turn():`` around what it changes.
    """

    # Beside the attributes: `vars` is the state of a criterion, and nothing else.
    __slots__ = ("__dict__", "__weakref__", "_writing")

    _writing: OneWriter | None

    _kinds: ClassVar[dict[str, type[Criterion]]] = {}

    # What `push` takes.
    _takes: ClassVar[str] = "a bound"

    def __new__(cls, *_: Any, **__: Any) -> Self:
        # Here, so that every criterion has a lock of its own, however it was made.
        new = super().__new__(cls)
        new._writing = None  # until it is needed
        return new

    def _lock(self) -> OneWriter:
        """Return the lock of this criterion."""
        return self._writing or lock_of(self)

    def _turn(self) -> OneWriter:
        """Return the lock to change the criterion under (see `OneWriter.turn`)."""
        return self._lock().turn()

    def __getstate__(self) -> Any:
        # The rule of Python, without the lock.
        state = super().__getstate__()
        if isinstance(state, tuple):
            own, slots = state
            slots = {name: value for name, value in slots.items() if name != "_writing"}
            state = (own, slots) if slots else own
        return state

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
        at, reason = self._said()
        return Decision(at is not None, at or 0, reason)

    def _said(self) -> tuple[int | None, str]:
        """Return the stop and the reason, both of one moment."""
        return self.stopped_at, self.reason

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

    # Measures, how many of them count, and how many there were at the stop: set as one, after a
    # complete step. The list grows, and is not changed otherwise.
    _steps: tuple[list[float], int, int | None]

    def __init__(self) -> None:
        self._steps = [], 0, None

    def _value(self, history: list[float], n: int) -> float:
        """Return what is compared after n steps, NaN if there is nothing yet."""
        return history[n - 1] if n else math.nan

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
        """Take a measure; return whether there has been a stop."""
        with self._turn():
            return self._take(measure)

    def _take(self, measure: float) -> bool:
        """Take a measure, whoever has the turn."""
        history, n, at = self._steps
        del history[n:]  # of a step that was interrupted
        history.append(measure)
        if at is None and self._passes(self._value(history, n + 1)):
            at = n + 1
        self._steps = history, n + 1, at
        return at is not None

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
        with self._turn():
            self._steps = [], 0, None
        return self

    @property
    def stopped_at(self) -> int | None:
        """Number of steps at the stop, or None."""
        return self._steps[2]

    def _measures(self) -> list[float]:
        history, n, _ = self._steps
        return history[:n]

    @property
    def history(self) -> NDArray[np.float64]:
        """The measure of each step; NaN for a step that has none."""
        return np.array(self._measures())

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        return self._said()[1]

    def _said(self) -> tuple[int | None, str]:
        history, n, at = self._steps
        value = self._value(history, at or n)
        if math.isnan(value):
            return at, f"no {self._subject} yet"
        relation = self._relation[at is None]
        return at, f"{self._subject} ({value:.4g}) {relation} {self._limit:g}"

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
            "history": _listed(self._measures()),
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


def _listed(history: list[float]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in history]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


class _Composition(Criterion):
    """Several criteria under one roof, each with what it goes by.

    It has no state of its own: members may also be given their numbers one by one. What is given to
    all is given to all before the next one.
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
        with self._lock():
            return tuple(member.history for member in self.members)

    def push(self, r: float) -> bool:
        """Give one number to every member; return whether there has been a stop."""
        r = self._measure("r", r)
        with self._turn():
            return self._give(r)

    def _give(self, r: float) -> bool:
        """Give one number to every member, whoever has the turn."""
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
        with self._turn():
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
        bounds = np.ravel(gp_kl(mean, var, y, noise)).tolist()
        for r in bounds:  # all agree to all before one is taken
            self._measure("r", r)
        with self._turn():
            for r in bounds:
                self._give(r)
            return self.stopped

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself."""
        with self._turn():
            for member in self.members:
                member.reset()
        return self

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet: the members' reasons."""
        return self._said()[1]

    def _said(self) -> tuple[int | None, str]:
        with self._lock():  # a Stopper cannot be asked while it takes a bound
            said = [member._said() for member in self.members]
        at = self._first([stop for stop, _ in said])
        # of a stop, why those stopped that did; else why the others did not
        telling = [reason for stop, reason in said if (stop is None) == (at is None)]
        return at, f" {self._word} ".join(telling)

    def __repr__(self) -> str:
        sign = {"or": "|", "and": "&"}[self._word]
        return "(" + f" {sign} ".join(map(repr, self.members)) + ")"

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        with self._lock():  # members with equally many numbers
            members = [member.to_dict() for member in self.members]
        return {"kind": type(self).__name__, "version": FORMAT, "members": members}

    def __getstate__(self) -> Any:
        with self._lock():  # of one moment: the members themselves would be looked at later
            members = deepcopy(self.members)
        return vars(self) | {"members": members}

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


class AllOf(_Composition):
    """Stops when every member has stopped; made by ``a & b``."""

    _word = "and"

    def _first(self, stops: list[int | None]) -> int | None:
        there = [stop for stop in stops if stop is not None]
        return max(there) if len(there) == len(stops) else None
