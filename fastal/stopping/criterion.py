"""The protocol that all stopping criteria share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import deepcopy
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

from fastal import _validation as check
from fastal._state import FORMAT, HOMES, import_home
from fastal.stopping.verdict import Decision

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fastal._core.rule import CompiledRule
    from fastal._types import Array, Bools, Ints


class FittedView(Protocol):
    """What a criterion may see of a campaign at a fit of its hyper-parameters."""

    @property
    def points(self) -> Array:
        """The pool, (n, d)."""

    @property
    def n_pool(self) -> int:
        """Number of points in the pool."""

    @property
    def n_initial(self) -> int:
        """Number of labels at the beginning that give no bound."""

    @property
    def prior(self) -> Any:
        """The model without labels, not to be changed; None before the first fit."""

    @property
    def bounds(self) -> Array:
        """Bounds of all labels after the initial ones, under the present hyper-parameters."""

    @property
    def labelled(self) -> Ints:
        """Rows of the pool in the order of their labels."""

    @property
    def skipped(self) -> Ints:
        """Rows of the pool that cannot be measured."""


class CampaignView(FittedView, Protocol):
    """What a criterion may see of a campaign; an `ActiveLearner` is one."""

    @property
    def initial_rows(self) -> Ints:
        """Rows of the pool that are labelled first."""

    @property
    def acquisition(self) -> Any:
        """How the next point is chosen: a name, or a callable."""

    @property
    def model(self) -> Any:
        """The model with the labels so far, not to be changed; it may have to be computed."""

    @property
    def last_bound(self) -> float:
        """Bound of the last label."""

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""

    @property
    def unlabelled(self) -> Bools:
        """Which points have no label."""

    @property
    def largest_variance(self) -> float:
        """Largest variance of an unlabelled point."""


class Fitted(NamedTuple):
    """One fit of a finished campaign; a value."""

    n_labels: int  # at the fit; 0 for hyper-parameters that were given at the beginning
    at_edge: bool  # it confirms nothing
    prior: Any  # the model without labels, in the units of the pool
    bounds: Array  # under this fit, of all labels up to the next fit


class FinishedRun(Protocol):
    """A campaign that has ended: N points, T of them labelled, in the order of the labels."""

    @property
    def prior(self) -> Any:
        """The model without labels."""

    @property
    def scaled(self) -> Array:
        """The pool over the length scales, (d, N)."""

    @property
    def order(self) -> Ints:
        """The labelled points, (T,)."""

    @property
    def y(self) -> Array:
        """Their labels, (T,)."""

    @property
    def n_initial(self) -> int:
        """Number of labels at the beginning that gave no bound."""

    @property
    def bounds(self) -> Array:
        """The bounds, (T - n_initial,)."""

    @property
    def points(self) -> Array:
        """The pool in its own units, (N, d)."""

    @property
    def refits(self) -> tuple[Fitted, ...]:
        """The fits on the way, in order; none where hyper-parameters were given."""

    @property
    def losses(self) -> Array | None:
        """Expected loss on the run's own test set after each label, (T,); None without one."""

    @property
    def prior_loss(self) -> float:
        """Expected loss on that test set before the first label."""


class Criterion(ABC):
    """Something that takes one number after each label and says when to stop.

    The number is a bound, or what else the criterion goes by. A stop is for ever: later numbers are
    recorded, the first stop stays. ``a | b`` stops when either has stopped, ``a & b`` when both
    have.

    A criterion belongs to one thread at a time.
    """

    _kinds: ClassVar[dict[str, type[Criterion]]] = {}

    # Whether the class is of this package: then its attributes are known, and `_twin` will do.
    _ours: ClassVar[bool] = True

    # Share of all movement that is still to come, and mean of the last bounds over its largest
    # value so far; NaN for those that do not know.
    left: Any = math.nan
    level: Any = math.nan

    # What `push` takes.
    push_takes: ClassVar[str] = "a bound"

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {name: getattr(self, name) for name in self._argument_names()}

    def _argument_names(self) -> tuple[str, ...]:
        """Return the names of the constructor's arguments, which are attributes too."""
        _, *found = signature(type(self).__init__).parameters.items()
        return tuple(
            name
            for name, argument in found
            if argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
        )

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._ours = cls.__module__.startswith("fastal.")
        if cls._ours or cls.__name__ not in HOMES:  # nobody's class takes the place of ours
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

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts.

        A criterion of your own need not have it; then it cannot be saved, nor a learner with it.
        """
        raise TypeError(
            f"a {type(self).__name__} cannot be saved: it defines no to_dict and _from_state"
        )

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Criterion:
        """Build a criterion from what `to_dict` returned, without its kind and version."""
        raise TypeError(f"a {cls.__name__} cannot be restored: it defines no _from_state")

    # Version of what `to_dict` returns.
    _version: ClassVar[int] = FORMAT

    @classmethod
    def _from_version_1(cls, state: dict[str, Any]) -> Criterion:
        """Build a criterion from what `to_dict` returned in version 0.1."""
        return cls._from_state(state)

    @property
    def history(self) -> Any:
        """The numbers so far; none unless a criterion keeps them."""
        return ()

    def _measure(self, name: str, value: object) -> float:
        """Check a number that is to be pushed."""
        return check.real(name, value)

    def _check_bounds(self, name: str, bounds: Array) -> None:
        """Check finite bounds that are to be given to it in compiled code."""
        return

    def start(self, campaign: CampaignView) -> None:
        """Look at a campaign before its first label; by default there is nothing to see.

        Parameters
        ----------
        campaign : CampaignView
            The learner that will be asked for labels.
        """
        return

    def after_label(self, campaign: CampaignView) -> bool:
        """Update after one label; by default, push its bound.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of the campaign.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self.push(campaign.last_bound)

    def after_refit(
        self, bounds: ArrayLike, *, at_edge: bool = False, same_fit: bool = False
    ) -> bool:
        """Take all bounds anew, under the hyper-parameters of a new fit, and decide.

        Parameters
        ----------
        bounds : array_like
            Bounds of all labels so far, in order.
        at_edge : bool
            Whether the fit lies at an edge of its search box: then it confirms nothing.
        same_fit : bool
            Whether this is the fit before once more: then nothing happens.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        raise TypeError(f"a {type(self).__name__} does not go by bounds: it knows no refits")

    def refitted(self, campaign: FittedView, *, at_edge: bool = False) -> bool:
        """Look at a campaign whose hyper-parameters were fitted anew.

        Learners call it after each refit. What goes by bounds takes them all anew; by default
        nothing happens.

        Parameters
        ----------
        campaign : FittedView
            The learner, with its labels under the new hyper-parameters; or a finished run as it was
            then.
        at_edge : bool
            Whether the fit lies at an edge of its search box: then it confirms nothing.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        check.flag("at_edge", at_edge)
        return self.stopped

    def after_correction(self, bounds: ArrayLike) -> None:
        """Take the bounds of a campaign in which a label was wrong; by default nothing happens.

        A stop stays, and nothing is decided before the next label or refit.

        Parameters
        ----------
        bounds : array_like
            Bounds of all labels so far, in order.
        """
        check.vector("bounds", bounds)

    def allow_refits(self) -> None:
        """Get ready for hyper-parameters that are fitted on the way; refuse settings that are not.

        Called before the first number.
        """
        return

    @property
    def _replays(self) -> bool:
        """Whether bounds and fits are all it needs to see of a finished run."""
        return type(self).after_refit is not Criterion.after_refit

    def _has_seen(self, bounds: Array) -> bool:
        """Whether these are the bounds of the fit before: the same fit once more."""
        return False

    def _missing_in(self, n: int) -> int:
        """Return how many of the bounds since the fit before are not among the n of a new one."""
        return 0

    def _unlatch(self) -> None:
        """Forget a stop, to be judged anew at a refit."""
        return

    def measures_in(self, run: FinishedRun) -> Array | None:
        """Return the measures of a finished run, one for each bound.

        Parameters
        ----------
        run : FinishedRun
            A campaign that has ended.

        Returns
        -------
        array or None
            None if the criterion goes by bounds.
        """
        return None

    def stop_in(self, run: FinishedRun, measures: Array | None) -> int | None:
        """Return the number of bounds at the stop in a finished run; the criterion is reset.

        Parameters
        ----------
        run : FinishedRun
            A campaign that has ended.
        measures : array or None
            What `measures_in` returned for it.

        Returns
        -------
        int or None
            None if there is no stop. With fits on the way, bounds are taken as the campaign had
            them at each moment, never those of a later fit.
        """
        if not run.refits:
            return self.reset().extend(run.bounds)
        return replayed(self, run)

    @property
    def stopped(self) -> bool:
        """Whether there has been a stop."""
        return self.stopped_at is not None

    @property
    def verdict(self) -> Any:
        """The decision with its reason."""
        at, reason = self._said()
        left, level = self._movement_left()
        return Decision(at is not None, at or self._n_seen(), reason, (), level, left)

    def _n_seen(self) -> int:
        """Return how many numbers there have been."""
        return len(self.history)

    def _movement_left(self) -> tuple[float, float]:
        """Return the share that is still to come, and the level; NaN if it does not know."""
        return math.nan, math.nan

    @property
    def compiled(self) -> CompiledRule | None:
        """The criterion as compiled loops see it; None if it cannot do without Python."""
        return None

    def compiled_in(self, campaign: CampaignView) -> CompiledRule | None:
        """Return the criterion as the compiled loop of a campaign sees it; by default `compiled`.

        Parameters
        ----------
        campaign : CampaignView
            The learner, whose labels will be shown to it from now on.

        Returns
        -------
        CompiledRule or None
            None if it has to be asked in Python, by `after_label`.
        """
        return self.compiled

    def has_run(self, campaign: CampaignView) -> None:
        """Take over what the compiled loop of a campaign has shown to what `compiled_in` returned.

        By default there is nothing to do: compiled loops borrow the state of the criterion itself.

        Parameters
        ----------
        campaign : CampaignView
            The learner, with the labels of the loop.
        """
        return

    def set_horizon(self, n_bounds: int) -> None:
        """Learn how many bounds there can be; by default that does not matter.

        `learn`, `ActiveLearner` and `simulate` tell every criterion.

        Parameters
        ----------
        n_bounds : int
            Number of bounds at the end of the pool, or of the labels that can be had.
        """
        check.count("n_bounds", n_bounds, 0, check.INT64_MAX)

    @property
    def _expected(self) -> int:
        """Number of bounds there can be, as `expect` was told; 0 if it does not matter."""
        return 0

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
        for value in check.finite_array("values", check.column_values("values", values)).tolist():
            self.push(value)
        return self.stopped_at

    def __or__(self, other: Criterion) -> Criterion:
        from fastal.stopping.compose import AnyOf  # itself a criterion

        return AnyOf(self, other) if isinstance(other, Criterion) else NotImplemented

    def __and__(self, other: Criterion) -> Criterion:
        from fastal.stopping.compose import AllOf

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
            raise ValueError(
                f"`state` must be a dict from `to_dict`, got {check.short_repr(state)}"
            )
        state = dict(state)
        kind, version = state.pop("kind", None), state.pop("version", None)
        if isinstance(kind, str):
            import_home(kind)
        found = Criterion._kinds.get(kind) if isinstance(kind, str) else None
        if found is None or not issubclass(found, cls):
            raise ValueError(
                f"`state` must describe a {cls.__name__}, got kind {check.short_repr(kind)}"
            )
        if type(version) is int and version == found._version:
            made = found._from_state(state)
        elif type(version) is int and version == 1:
            made = found._from_version_1(state)
        else:
            raise ValueError(
                f"`state` must have version {found._version}, got {check.short_repr(version)}: "
                f"this {kind} was written by another version of fastal"
            )
        assert isinstance(made, cls)
        return made

    def copy(self) -> Self:
        """Return an independent criterion in the same state."""
        if type(self).to_dict is Criterion.to_dict:
            return deepcopy(self)
        return self.from_dict(self.to_dict())

    def _twin(self) -> Self:
        """Return one with the same attributes, unchecked; what may change is then replaced."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        return new

    def fresh(self) -> Self:
        """Return an independent criterion with the same settings that has seen nothing.

        A Gaussian process that it observes keeps its labels.
        """
        return self.copy().reset()


# Kinds of criteria of which the log has said that they have no compiled form.
_noted: set[str] = set()


def note_interpreted(criterion: Criterion, campaign: CampaignView | None = None) -> None:
    """Say in the log, once for each kind, which criteria step out of the compiled loop.

    Parameters
    ----------
    criterion : Criterion
        It, or those of its members that have no compiled form, are named.
    campaign : CampaignView, optional
        The learner; None: many campaigns.
    """
    members = getattr(criterion, "members", None)
    if members is not None:
        for member in members:
            note_interpreted(member, campaign)
        return
    name = type(criterion).__name__
    rule = criterion.compiled if campaign is None else criterion.compiled_in(campaign)
    if rule is None and name not in _noted:
        import logging

        _noted.add(name)
        when = "after each label" if campaign is not None else "when each run has ended"
        logging.getLogger("fastal").info(
            "%s has no compiled form here: it is asked in Python, %s", name, when
        )


class PastCampaign:
    """A finished run as it was right after one of its fits.

    Parameters
    ----------
    run : FinishedRun
        The run.
    fit : Fitted
        One of its fits.
    """

    def __init__(self, run: FinishedRun, fit: Fitted) -> None:
        self._run, self._fit = run, fit

    @property
    def points(self) -> Array:
        """The pool, (n, d)."""
        return self._run.points

    @property
    def n_pool(self) -> int:
        """Number of points in the pool."""
        return len(self._run.points)

    @property
    def n_initial(self) -> int:
        """Number of labels at the beginning that give no bound."""
        return self._run.n_initial

    @property
    def prior(self) -> Any:
        """The model of the fit, without labels."""
        return self._fit.prior

    @property
    def labelled(self) -> Ints:
        """Rows that had a label then, in order."""
        return self._run.order[: self._fit.n_labels]

    @property
    def bounds(self) -> Array:
        """Their bounds under the fit, without those of the initial labels."""
        return self._fit.bounds[: max(0, self._fit.n_labels - self._run.n_initial)]

    @property
    def skipped(self) -> Ints:
        """None: every point of a finished run can be measured."""
        return self._run.order[:0]


def replayed(criterion: Criterion, run: FinishedRun) -> int | None:
    """Return the bounds at the stop of a criterion that sees the fits of a run as they came.

    Parameters
    ----------
    criterion : Criterion
        It is reset. One that knows no refits takes the bounds as they came.
    run : FinishedRun
        A campaign with fits on the way.

    Returns
    -------
    int or None
        None if there is no stop.
    """
    criterion.reset().allow_refits()
    for fit in run.refits:
        seen = max(0, fit.n_labels - run.n_initial)
        if fit.n_labels > 0:
            criterion.refitted(PastCampaign(run, fit), at_edge=fit.at_edge)
        criterion.extend(fit.bounds[seen:])
    return criterion.stopped_at
