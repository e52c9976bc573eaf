"""The protocol that all stopping criteria share, and their composition with ``&`` and ``|``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from fastal import _validation as check

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
    """Something that takes one bound at a time and says when to stop.

    A stop is for ever: later bounds are recorded, the first stop stays. ``a | b`` stops when either
    has stopped, ``a & b`` when both have.
    """

    _kinds: ClassVar[dict[str, type[Criterion]]] = {}

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
        for value in check.finite_array("values", list(values)).tolist():
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


class _Composition(Criterion):
    """Several criteria under one roof: every bound goes to each."""

    _word: ClassVar[str]

    def __init__(self, *members: Criterion) -> None:
        # (a | b) | c has three members
        self.members: tuple[Criterion, ...] = tuple(
            inner
            for member in members
            for inner in (
                member.members
                if isinstance(member, type(self)) and not member._begun()
                else (member,)
            )
        )
        self._n = 0
        self._stopped_at: int | None = None

    def _begun(self) -> bool:
        return self._n > 0

    @abstractmethod
    def _holds(self) -> bool:
        """Whether the members' states amount to a stop."""

    def _note(self) -> bool:
        self._n += 1
        if self._stopped_at is None and self._holds():
            self._stopped_at = self._n
        return self._stopped_at is not None

    def push(self, r: float) -> bool:
        """Give one bound to every member; return whether there has been a stop."""
        r = check.real("r", r)
        for member in self.members:
            member.push(r)
        return self._note()

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
        self._n, self._stopped_at = 0, None
        return self

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._stopped_at

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
            "n": self._n,
            "stopped_at": self._stopped_at,
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> _Composition:
        members, n, stopped_at = check.state_values(state, ("members", "n", "stopped_at"))
        if not isinstance(members, list) or len(members) < 2:
            raise ValueError(f"`state['members']` must be a list of at least 2, got {members!r}")
        new = cls(*(Criterion.from_dict(member) for member in members))
        new._n = check.state_count("n", n)
        new._stopped_at = check.state_count("stopped_at", stopped_at, optional=True)
        return new


class AnyOf(_Composition):
    """Stops when one member has stopped; made by ``a | b``."""

    _word = "or"

    def _holds(self) -> bool:
        return any(member.stopped for member in self.members)

    def _telling(self) -> tuple[Criterion, ...]:
        return tuple(m for m in self.members if m.stopped) or self.members


class AllOf(_Composition):
    """Stops when every member has stopped; made by ``a & b``."""

    _word = "and"

    def _holds(self) -> bool:
        return all(member.stopped for member in self.members)

    def _telling(self) -> tuple[Criterion, ...]:
        return self.members if self.stopped else tuple(m for m in self.members if not m.stopped)
