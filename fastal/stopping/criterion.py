"""Criterion: when to stop, decided from settings, a horizon, bounds, and fits.

The bounds and what follows from them are one object, a compiled `Rule` or, for a rule in Python, a
`PythonRule`. A stop is for ever. After a push it is an index, told by replaying the bounds up to
it; before those bounds are replaced it becomes a value, the `Verdict`.
"""

from __future__ import annotations

import warnings
from abc import ABC
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fastal import _params
from fastal import _validation as check
from fastal._core.rule import Pushes, Rule
from fastal._state import HOMES, damaged_state, import_home, state_values
from fastal.stopping.verdict import Verdict, own_verdict, unconfirmed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from fastal._types import Array

VERSION = 3  # of what `to_dict` returns

_Kind = TypeVar("_Kind", bound="Criterion")


class Fit(NamedTuple):
    """The last fit that the bounds are of."""

    n: int  # bounds at that time
    at_edge: bool  # it confirms nothing


class PythonRule:
    """The bounds, and whether a rule in Python says stop: what `Rule` does for a compiled one."""

    held = False  # whether only fits decide

    def __init__(self, says_stop: Callable[[Array], bool]) -> None:
        self._says_stop = says_stop
        self._values = np.empty(16)
        self.n = self.stopped_at = 0

    def push(self, r: float) -> bool:
        """Take a bound; return whether there has been a stop. An error changes nothing."""
        if self.n == len(self._values):
            self._values = np.concatenate((self._values, self._values))
        self._values[self.n] = check.real("r", r)
        if not self.held and not self.stopped_at and self._says(self.n + 1):
            self.stopped_at = self.n + 1
        self.n += 1
        return self.stopped_at > 0

    def _says(self, n: int) -> bool:
        seen = self._values[:n]
        seen.flags.writeable = False
        return bool(self._says_stop(seen)) if n else False

    def extend(self, values: Array) -> int:
        """Take bounds in order, all or none."""
        before = self.n, self.stopped_at
        try:
            for value in values.tolist():
                self.push(value)
        except BaseException:
            self.n, self.stopped_at = before
            raise
        return self.stopped_at

    def replace(self, values: Array, confirms: bool) -> int:
        """Take all bounds anew, under a new fit; from here on pushes do not decide."""
        new = PythonRule(self._says_stop)
        agreed = confirms and not self.stopped_at and self.says[0]
        new.restore(values, (0,), self.stopped_at, True)
        if agreed and new.says[0]:
            new.stopped_at = new.n
        vars(self).update(vars(new))
        return self.stopped_at

    def restore(self, values: Array, stops: Sequence[int], stopped_at: int, held: bool) -> None:
        """Take the bounds and the stop of another time: nothing is decided anew."""
        room = np.empty(max(16, 2 * len(values)))
        room[: len(values)] = values
        vars(self).update(_values=room, n=len(values), stopped_at=stopped_at, held=held)

    def set_horizon(self, horizons: Any) -> None:
        """Do nothing: a rule in Python knows no horizon."""

    def reset(self) -> None:
        """Forget all bounds."""
        vars(self).update(n=0, stopped_at=0, held=False)

    def copy(self) -> PythonRule:
        """Return an independent rule in the same state."""
        new = PythonRule(self._says_stop)
        new.restore(self._values[: self.n], (), self.stopped_at, self.held)
        return new

    def bounds(self, out: Array) -> None:
        """Copy all bounds into `out`."""
        out[:] = self._values[: self.n]

    @property
    def stops(self) -> tuple[int, ...]:
        """Number of bounds at the stop; 0 before it."""
        return (self.stopped_at,)

    @property
    def says(self) -> tuple[bool, ...]:
        """Whether the rule says stop now."""
        return (self._says(self.n),)


class Criterion(Pushes, ABC):
    """Takes one number after each label, a bound, and says when to stop.

    A criterion of your own is a class whose ``__init__`` gives its settings to this one, and a
    method ``says_stop(bounds) -> bool``: it can be combined, saved, copied, pickled, and run in
    `learn`, `ActiveLearner` and `simulate`. ``a | b`` stops when either has stopped, ``a & b`` when
    both have. Settings are attributes that cannot be set. A criterion belongs to one thread.

    Examples
    --------
    >>> from fastal import Criterion, FixedBudget
    >>> class ThreeLow(Criterion):
    ...     def __init__(self, level=0.1):
    ...         super().__init__(level=level)
    ...
    ...     def says_stop(self, bounds):
    ...         return len(bounds) >= 3 and max(bounds[-3:]) < self.level
    >>> rule = ThreeLow(0.5) | FixedBudget(100)
    >>> rule.extend([2.0, 0.4, 0.3, 0.2, 0.1])
    4
    """

    _kinds: ClassVar[dict[str, type[Criterion]]] = {}

    _measures: ClassVar[bool] = False  # whether it goes by something else than bounds
    _pushed: ClassVar[str] = "bound"  # what a number is that is pushed

    _horizon: int  # number of bounds there can be; 0: nobody has said
    _fit: Fit | None
    _stop: Verdict | None  # what was said at the stop, before its bounds were replaced

    def __init__(self, **settings: Any) -> None:
        vars(self).update(settings, _horizon=0)
        vars(self).update(_fit=None, _stop=None)
        self._rule = self._new_rule()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if cls.__module__.startswith("fastal.") or cls.__name__ not in HOMES:
            Criterion._kinds[cls.__name__] = cls  # nobody's class takes the place of ours

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(
                f"`{name}` cannot be set: `replace({name}=...)` returns another criterion"
            )
        super().__setattr__(name, value)

    # what a class defines --------------------------------------------------------------------

    def says_stop(self, bounds: Array) -> bool:
        """Return whether the rule says stop after these bounds, at least one."""
        raise NotImplementedError(f"a {type(self).__name__} must define says_stop(bounds)")

    def _number(self, r: object) -> float:
        """Check a bound that is no float."""
        return check.real("r", r)

    def _spec(self) -> tuple[Any, ...] | None:
        """Return the rule as `Rule` takes it; None if it is in Python. Settings are checked."""
        return None

    def _judge(self, bounds: Array, stop: bool) -> Verdict:
        """Return what the rule says of these bounds, in words: at the stop, or now."""
        return own_verdict(bounds, stop, "" if stop else doubt(self))

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
        self._rule.extend(check.vector("values", check.column_values("values", values)))
        return self.stopped_at

    def after_fit(
        self,
        bounds_or_model: Any,
        *,
        pool: Any = None,
        initial: int = 0,
        order: ArrayLike | None = None,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        at_edge: bool | None = None,
    ) -> bool:
        """Take all bounds anew after a fit of hyper-parameters, and decide.

        From the first call on only such calls decide, and two fits must agree: the rule must say
        stop right before (under the fit before, with all bounds since) and right after. A fit at an
        edge of its search box confirms nothing, and the same bounds once more are no new fit.

        Parameters
        ----------
        bounds_or_model : array_like or fitted model
            Bounds of all labels so far, in order; or a Gaussian process that was just fitted to
            them, of any library that `fastal.adapters` knows.
        pool : sized, optional
            All points that can be labelled, labelled or not: their number is the horizon.
        initial : int
            How many labels at the beginning do not count.
        order, X, y : optional
            For a model that does not keep them; see `bounds_of`.
        at_edge : bool, optional
            Whether the fit lies at an edge of its search box; a model's is read from it.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        first, source = check.count("initial", initial), bounds_or_model
        is_model = not (isinstance(source, list | tuple) or hasattr(source, "__array__"))
        if is_model:
            from fastal.adapters import bounds_of

            source = bounds_of(source, order=order, X=X, y=y)
        for name, value in () if is_model else (("order", order), ("X", X), ("y", y)):
            if value is not None:
                raise TypeError(
                    f"`{name}` is for a model, and bounds were given, got {check.short_repr(value)}"
                )
        bounds = check.vector("bounds_or_model", source)[first:]
        edge = getattr(source, "at_edge", False) if at_edge is None else at_edge
        edge = check.flag("at_edge", edge)
        if pool is not None:
            check.able("pool", pool, "__len__", "all points that can be labelled")
        horizon = self._horizon if pool is None else max(0, len(pool) - first)
        self._allow_fits()
        if self._fit is not None and np.array_equal(bounds, self.bounds):
            self.set_horizon(horizon)
            return self.stopped
        if is_model and len(bounds) < len(self):
            warnings.warn(
                f"`model` was not fitted to the last {len(self) - len(bounds)} of the labels that "
                "the criterion has bounds of: fit it to all of them first",
                stacklevel=2,
            )
        before = self.copy()
        try:
            self.set_horizon(horizon)
            self._replace_all(bounds, edge)
        except BaseException as error:  # a bound is refused
            self._take_over(before)
            if isinstance(error, ValueError):
                said = str(error).replace("`values`", "`bounds_or_model`")
                raise ValueError(said) from None
            raise
        return self.stopped

    def _allow_fits(self) -> None:
        """Refuse settings with which fits on the way make no sense."""

    def _replace_all(self, bounds: Array, at_edge: bool) -> None:
        """Take all bounds anew, under a new fit, and decide."""
        fit = self._fit
        stop = self._told()
        confirms = fit is not None and not fit.at_edge and not at_edge and len(bounds) >= fit.n
        self._rule.replace(bounds, confirms)
        vars(self).update(_fit=Fit(len(bounds), at_edge), _stop=stop)

    def set_horizon(self, n: int) -> None:
        """Learn how many bounds there can be; a change undoes no stop.

        Parameters
        ----------
        n : int
            Number of bounds at the end of the pool, or of the labels that can be had. It counts
            from the next bound on; a horizon among the settings stays.
        """
        n = check.count("n", n, 0, check.INT64_MAX)
        if n != self._horizon:
            # A stop is told as it was. With bounds, none at all can be had: the end is here.
            vars(self).update(_stop=self._told(), _horizon=max(n, 1) if len(self) else n)
            self._tell_horizons()

    def _tell_horizons(self) -> None:
        self._rule.set_horizon(self._horizons(self._horizon))

    def _horizons(self, n: int) -> tuple[int, ...]:
        """Return the horizon of each part of the rule."""
        return (n,)

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself. The horizon stays."""
        self._rule.reset()
        vars(self).update(_fit=None, _stop=None)
        return self

    # campaigns -------------------------------------------------------------------------------

    def see(self, campaign: Any, r: float) -> bool:
        """Look at a campaign right after a label; by default, push its bound.

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
        return self.push(r)

    def _see_fit(self, campaign: Any, bounds: Array, at_edge: bool) -> None:
        """Look at a campaign right after a fit: take all bounds anew."""
        if self._fit is None or not np.array_equal(bounds, self.bounds):
            self._replace_all(bounds, at_edge)

    def _put_back(self, bounds: Array) -> None:
        """Take the bounds of labels that were corrected: nothing is decided, and a stop stays."""
        vars(self).update(_stop=self._told())
        rule = self._rule
        rule.restore(bounds, rule.stops, rule.stopped_at, rule.held)

    def _forget_stop(self) -> None:
        """Forget the stop of a member of a combination, which a fit judges anew."""
        rule = self._rule
        rule.restore(self.bounds, (0,) * len(rule.stops), 0, rule.held)
        vars(self).update(_stop=None)

    def _mark(self) -> Any:
        """Return what `_go_back` needs to take back later pushes."""
        return self._rule.n, self._rule.stops, self._rule.stopped_at

    def _go_back(self, mark: Any) -> None:
        n, stops, stopped_at = mark
        if n < self._rule.n:
            self._rule.restore(self.bounds[:n], stops, stopped_at, self._rule.held)

    def _compiled(self) -> Rule | None:
        """Return the rule for compiled loops; None if it is in Python."""
        return self._rule if isinstance(self._rule, Rule) else None

    # decisions out ---------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether there has been a stop."""
        return bool(self._rule.stopped_at)

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._rule.stopped_at or None

    @property
    def bounds(self) -> Array:
        """All bounds in order, as a new array."""
        out = np.empty(self._rule.n)
        self._rule.bounds(out)
        return out

    def __len__(self) -> int:
        n: int = self._rule.n
        return n

    def __bool__(self) -> bool:
        return True  # not only where there are bounds

    @property
    def verdict(self) -> Verdict:
        """The decision with its reason: at the stop if there was one, else now."""
        return self._told() or self._judge(self.bounds, False)

    def _told(self) -> Verdict | None:
        """Make what is to be said of a stop a value, while its bounds are there; return it."""
        if self._stop is None and self._rule.stopped_at:
            self._stop = self._judge(self.bounds[: self._rule.stopped_at], True)
        return self._stop

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds and the stop.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw the bounds; a new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the bounds.
        """
        from fastal.plotting import plot_criterion

        return plot_criterion(self, ax)

    # keeping ---------------------------------------------------------------------------------

    def _new_rule(self) -> Any:
        """Return the rule without bounds; settings are checked here."""
        spec = self._spec()
        return PythonRule(self.says_stop) if spec is None else Rule(spec)

    def copy(self) -> Self:
        """Return an independent criterion in the same state."""
        new = self.replace()
        new._take_over(self)
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def _take_over(self, other: Self) -> None:
        """Become what another one with the same settings is."""
        vars(self).update(_horizon=other._horizon, _fit=other._fit, _stop=other._stop)
        self._rule = other._rule.copy()

    def replace(self, **changes: Any) -> Self:
        """Return another criterion with these settings, without bounds.

        Parameters
        ----------
        **changes
            Settings that differ.

        Returns
        -------
        Criterion
            Of the same class.
        """
        for name in changes:
            check.option("changes", name, _names(type(self)))
        return type(self)(**settings_of(self) | changes)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`.
        """
        stop = self._told()
        return {
            "kind": type(self).__name__,
            "version": VERSION,
            "settings": {name: _params.plain(value) for name, value in settings_of(self).items()},
            "horizon": self._horizon,
            "bounds": self.bounds.tolist(),
            "fit": None if self._fit is None else list(self._fit),
            "stops": list(self._rule.stops),
            "stop": None if stop is None else stop.to_dict(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """Return the criterion that `to_dict` described; nothing is decided anew.

        Parameters
        ----------
        state : dict
            From `to_dict`, perhaps by way of JSON.

        Returns
        -------
        Criterion
            A new one. What is damaged or foreign raises a ValueError that says what is wrong.
        """
        kind = kind_of(state, cls)
        with damaged_state():
            made = kind._restored(state)
        assert isinstance(made, cls)
        return made

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Criterion:
        names = ("kind", "version", "settings", "horizon", "bounds", "fit", "stops", "stop")
        _, _, settings, horizon, bounds, fit, stops, stop = state_values(state, names)
        new = with_settings(cls, settings)
        new._restore(horizon, bounds, fit, stops, stop)
        return new

    def _restore(self, horizon: Any, bounds: Any, fit: Any, stops: Any, stop: Any) -> None:
        """Become what a saved state says."""
        if not isinstance(bounds, list) or any(isinstance(r, bool) for r in bounds):
            raise ValueError(f"`bounds` must be a list of numbers, got {check.short_repr(bounds)}")
        values = check.vector("bounds", bounds)
        self.set_horizon(saved_count("horizon", horizon))
        if not isinstance(stops, list) or len(stops) != len(self._rule.stops):
            raise ValueError(f"`stops` cannot be, got {check.short_repr(stops)}")
        for at in stops:
            saved_count("stops", at)
        told = None if stop is None else Verdict.from_dict(stop)
        if told is not None and told.stop is not True:
            raise ValueError(f"`stop` must be a stop, got {check.short_repr(stop)}")
        last = saved_fit(fit)
        seen, at = len(values), 0 if told is None else told.n
        if last is not None and last.n > seen:
            raise ValueError(f"`fit` must be to at most {seen} bounds, got {last.n}")
        # A fit may be to fewer bounds than there were at a stop before it.
        if last is None and max(*stops, at) > seen:
            raise ValueError(f"`stops` must be at most {seen}, got {max(*stops, at)}")
        self._rule.restore(values, stops, at, last is not None)
        one = last is None or len(stops) == 1  # then it is of the same bounds
        if (
            list(self._rule.stops) != stops
            or (one and stops[0] != at)
            or (told is None) != (not self._rule.stopped_at)
        ):
            raise ValueError(f"`stops` and `stop` contradict each other, got {stops}")
        vars(self).update(_fit=last, _stop=told)

    def __reduce__(self) -> Any:
        return type(self)._restored, (self.to_dict(),)

    def __or__(self, other: Criterion) -> Criterion:
        from fastal.stopping.combine import AnyOf  # itself a criterion

        return AnyOf(self, other) if isinstance(other, Criterion) else NotImplemented

    def __and__(self, other: Criterion) -> Criterion:
        from fastal.stopping.combine import AllOf

        return AllOf(self, other) if isinstance(other, Criterion) else NotImplemented

    def __repr__(self) -> str:
        usual = signature(type(self)).parameters
        settings = settings_of(self).items()
        return _params.call_text(
            self, {name: v for name, v in settings if repr(v) != repr(usual[name].default)}
        )


def saved_count(name: str, value: object) -> int:
    """Check a number of bounds in a saved state."""
    return check.count(name, value, 0, check.INT64_MAX)


def saved_fit(state: Any) -> Fit | None:
    """Return the last fit that a saved state has."""
    if state is None:
        return None
    if not isinstance(state, list) or len(state) != 2:
        raise ValueError(f"`fit` cannot be, got {check.short_repr(state)}")
    return Fit(saved_count("fit", state[0]), check.flag("fit", state[1]))


def doubt(rule: Criterion) -> str:
    """Return why a rule that says stop has not stopped, or nothing."""
    fit, waits = rule._fit, not rule.stopped and rule._rule.says[0]
    return unconfirmed(fit.at_edge) if waits and fit is not None else ""


def settings_of(rule: Criterion) -> dict[str, Any]:
    """Return the settings of a criterion by name."""
    return {name: getattr(rule, name) for name in _names(type(rule))}


@cache
def _names(kind: type[Criterion]) -> tuple[str, ...]:
    return tuple(signature(kind).parameters)


def with_settings(kind: type[_Kind], settings: Any) -> _Kind:
    """Return a criterion of a class with the settings of a saved state, all of them."""
    new = kind(**settings)
    state_values(settings, _names(kind))
    return new


def kind_of(state: object, wanted: type[Criterion]) -> type[Criterion]:
    """Return the class that a saved state is of."""
    if not isinstance(state, dict):
        raise ValueError(f"`state` must be a dict from `to_dict`, got {check.short_repr(state)}")
    kind, version = state.get("kind"), state.get("version")
    if isinstance(kind, str):
        import_home(kind)
    found = Criterion._kinds.get(kind) if isinstance(kind, str) else None
    old = type(version) is int and version in (1, 2)
    if (isinstance(kind, str) and kind in OLD_KINDS) or (old and kind in HOMES):
        raise ValueError(
            f"`state` is a {kind} of fastal 0.1 or 0.2: make a new criterion, and give it "
            f"`state['bounds']` by `extend` (its version is {check.short_repr(version)})"
        )
    if found is None or not issubclass(found, wanted):
        hint = "" if found else " (a class of your own must be imported first)"
        raise ValueError(
            f"`state` must describe a {wanted.__name__}, got kind {check.short_repr(kind)}{hint}"
        )
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"`state` must have version {VERSION}, got {check.short_repr(version)}: this {kind} "
            "was written by another version of fastal"
        )
    return found


OLD_KINDS = ("StillToCome",)
