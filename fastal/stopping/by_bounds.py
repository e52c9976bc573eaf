"""Criteria that go by bounds: the ways in that Stopper and MovementBelow share."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _params
from fastal import _validation as check
from fastal._core import bound_scalar
from fastal._core.rule import CompiledRule
from fastal._state import damaged_state, restore_model, state_count, state_values
from fastal.bound import bounds_of
from fastal.stopping.criterion import Criterion
from fastal.stopping.verdict import stop_warnings

if TYPE_CHECKING:
    from fastal._types import Array
    from fastal.models.gp import GaussianProcess
    from fastal.stopping.criterion import FittedView


class Tracker(Protocol):
    """What compiled states share."""

    @property
    def n_pushed(self) -> int:
        """Number of bounds."""

    @property
    def stopped_at(self) -> int:
        """Number of bounds at the stop; 0 before it."""

    @property
    def epoch(self) -> int:
        """A number that changes whenever earlier bounds are no longer there."""

    def stopped_after(self, value: float) -> bool:
        """Take a bound; return whether there has been a stop."""

    def values(self, out: Array) -> None:
        """Copy all bounds."""

    def reset(self) -> None:
        """Forget all bounds."""

    def replace(self, other: Any) -> None:
        """Exchange states with another one."""

    def copy(self) -> Self:
        """Return an independent one in the same state."""

    # Whether a push stops nothing.
    held: bool

    @property
    def would_stop(self) -> bool:
        """Whether the rule says stop now, whatever it said before."""

    def latch(self) -> None:
        """Stop here."""

    def unlatch(self) -> None:
        """Forget the stop."""

    def take_stop(self, other: Any) -> None:
        """Take over the stop of another one, as it was."""


# Keys of a saved criterion, besides its settings.
STATE = ("gp", "bounds", "expected", "stopped_at", "left", "level", "evidence", "fit")


def _saved_share(name: str, value: Any) -> float:
    """Check a share in a saved state; None stands for NaN."""
    if value is None:
        return math.nan
    if type(value) not in (int, float) or not (0 <= value <= 1):
        raise ValueError(
            f"`state[{name!r}]` must be in [0, 1] or None, got {check.short_repr(value)}"
        )
    return float(value)


def recompute_from(
    criterion: Criterion, model: Any, initial: int, order: Any, X: Any, y: Any
) -> bool:
    """Give a criterion all bounds of a fitted model, but for those of the initial labels."""
    from fastal.adapters import recomputed

    first = check.count("initial", initial)
    found = recomputed(model, order=order, X=X, y=y)
    bounds = found.bounds[first:]
    missing = criterion._missing_in(len(bounds))
    if missing:
        warnings.warn(
            f"`model` was not fitted to the last {missing} of the labels that the criterion has "
            "bounds of: fit it to all of them first. Until the next fit these bounds are lost",
            UserWarning,
            stacklevel=3,
        )
    if not len(bounds):
        return criterion.stopped
    return criterion.after_refit(bounds, at_edge=found.at_edge)


class ByBounds(Criterion):
    """A criterion that takes bounds by four ways and keeps them all.

    `push` a bound or divergence, `update` with the posterior before the label, `observe` an input
    and its label with a Gaussian process, `extend` by a history.

    A subclass names its settings, and makes its compiled state in `_start`.
    """

    # Arguments of the constructor besides `gp`, in their order.
    _settings: ClassVar[tuple[str, ...]]

    noise: float | None
    gp: GaussianProcess | None

    # The compiled state, which has the bounds: a RunsTracker or a StillTracker.
    _tracker: Tracker

    @abstractmethod
    def _start(self) -> None:
        """Check the settings and begin with an empty tracker."""

    def _check_sources(self) -> None:
        """Check what bounds may be made from."""
        if self.noise is not None:
            check.positive("noise", self.noise)
        if self.gp is not None and not hasattr(self.gp, "add"):
            raise TypeError(f"`gp` must be a GaussianProcess, got {check.short_repr(self.gp)}")

    @staticmethod
    def _count(name: str, value: int | None, minimum: int) -> int:
        """Check a number of bounds; None is 0, the tracker's word for "none"."""
        return 0 if value is None else check.count(name, value, minimum, check.INT64_MAX)

    # the five ways in ------------------------------------------------------------------------

    def push(self, r: float) -> bool:
        """Take one bound or divergence.

        Parameters
        ----------
        r : float
            A finite number; without the constant C, which would change nothing.

        Returns
        -------
        bool
            Whether there has been a stop, now or before. Later bounds are recorded all the same.
        """
        try:
            return self._tracker.stopped_after(r)
        except (TypeError, ValueError, OverflowError):
            self._measure("r", r)
            raise

    def update(self, mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: Any = None) -> bool:
        """Take the posterior at an input before its label, and the label.

        Parameters
        ----------
        mean, var : float or array
            Posterior mean and variance of f (without noise) at the input.
        y : float or array
            The label. Arrays are labels that arrived together, in order. The bounds are exact if
            each posterior is given all labels before it; with the posterior before the whole batch
            they are an approximation, larger than the exact ones on average, since each label is
            treated as if it were the first of its batch.
        noise : float or array, optional
            Noise variance; by default the criterion's.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        if noise is None:
            noise = self.noise
        status = bound_scalar.update(self._tracker, mean, var, y, noise)
        if status < 0:
            return self.extend(bounds_of(mean, var, y, noise)) is not None
        return status == 1

    def observe(self, x: ArrayLike, y: float) -> bool:
        """Add a label to the Gaussian process, and its bound to the criterion.

        Parameters
        ----------
        x : array_like
            Input.
        y : float
            Label.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        gp = self.gp
        if gp is None:
            raise ValueError(f"`observe` needs {type(self).__name__}(gp=...), got gp=None")
        if type(x) is not np.ndarray:
            x = check.point(x, None)
        y = check.real("y", y)
        bounds, labels = len(self), getattr(gp, "n_labels", None)
        try:
            return self.push(gp.add(x, y))
        except BaseException:  # the label and its bound, or neither
            if labels is not None and gp.n_labels == labels + 1 and len(self) == bounds:
                gp.rewind(labels)
            raise

    def extend(self, values: Any) -> int | None:
        """Take bounds in order, as if pushed one by one.

        Parameters
        ----------
        values : array_like or iterable of float
            Finite bounds; if one is refused, none is taken.

        Returns
        -------
        int or None
            Number of bounds at the first stop, `stopped_at`.
        """
        if not isinstance(values, list | tuple | np.ndarray) and not hasattr(values, "__array__"):
            if not isinstance(values, Iterable):
                raise TypeError(f"`values` must hold real numbers, got {check.short_repr(values)}")
            values = list(values)
        bounds = check.finite_array("values", values)
        if bounds.ndim != 1:
            raise ValueError(f"`values` must have one axis, got shape {bounds.shape}")
        return self._extend(bounds) or None

    @abstractmethod
    def _extend(self, bounds: Array) -> int:
        """Take finite bounds, all or none; return the number of them at the stop, or 0."""

    def recompute(
        self, X: ArrayLike, y: ArrayLike, gp: GaussianProcess, *, initial: int = 0
    ) -> bool:
        """Replace all bounds by those that other hyper-parameters give, and decide.

        When hyper-parameters change while labelling goes on, the paper (section 5.3) offers two
        ways: go on with `push`, `update` or `observe` and the new ones, as if the old bounds were
        comparable; or compute the whole sequence anew, which is this. How it decides is said in
        `recompute_from`.

        Parameters
        ----------
        X, y : array_like
            All inputs and labels so far, in order.
        gp : GaussianProcess
            The model with the new hyper-parameters, without labels; it is copied.
        initial : int
            Number of labels at the beginning that give no bound. With no more labels than that
            nothing changes.

        Returns
        -------
        bool
            Whether there has been a stop, now or before. A criterion with a Gaussian process goes
            on with the copy, which has all labels.
        """
        initial = check.count("initial", initial)
        check.able("gp", gp, "add_batch", "a GaussianProcess")
        if gp.n_labels:
            raise ValueError(f"`gp` must have no labels, got {gp.n_labels}")
        model = gp.copy()
        bounds = check.finite_array("bounds", model.add_batch(X, y))[initial:]
        edge = bool(getattr(gp, "at_edge", False))
        stopped = self.after_refit(bounds, at_edge=edge) if len(bounds) else self.stopped
        if self.gp is not None:
            self.gp = model
        return stopped

    def recompute_from(
        self,
        model: Any,
        *,
        initial: int = 0,
        order: Any = None,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
    ) -> bool:
        """Replace all bounds by those of a model that was fitted anew, and decide.

        Call it after each fit. The bounds of all labels that the model was fitted to, in the order
        in which they came, under its present hyper-parameters, from one Cholesky factor. From the
        first call on, only such calls decide, and two fits must agree: the criterion must say stop
        right before the new bounds, under the fit before, and right after. A stop is latched at the
        present number of bounds.

        Parameters
        ----------
        model : object
            A fitted `GaussianProcess`, or a model of another library that fastal knows, see
            `fastal.adapters`. It is asked, not changed. The same fit twice counts once; one at an
            edge of its search box confirms nothing.
        initial : int
            Number of labels at the beginning that give no bound. With no more labels than that
            nothing changes.
        order : array_like of int, optional
            Rows of the model in the order in which their labels came, where it keeps another one.
        X, y : array_like, optional
            Inputs and labels as they were given to its `fit`: for a model that keeps none
            (`BayesianRidge`), and for a check that it has seen all of them.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.

        Raises
        ------
        ValueError
            If the model is not fitted, keeps no data, was fitted to other rows than `X` and `y`,
            has no noise at all, or was changed after its fit.
        TypeError
            If this is no model of a library that fastal knows; `fastal.gp_bounds` and `after_refit`
            will do for any Gaussian process.

        Warns
        -----
        UserWarning
            If the model lacks labels that were pushed since the fit before: it lags behind its
            loop. If its noise is below 1e-5 of its prior variance: it takes labels as exact.

        Examples
        --------
        >>> import numpy as np
        >>> from fastal import GaussianProcess, MovementBelow
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 10, 60)
        >>> y = np.sin(X) + 0.1 * rng.normal(size=60)
        >>> rule = MovementBelow(0.1, horizon=100)
        >>> for n in (20, 24, 29, 35, 42, 50):
        ...     gp = GaussianProcess().fit_hyperparameters(X[:n], y[:n], prior="weak")
        ...     _ = gp.add_batch(X[:n], y[:n])
        ...     if rule.recompute_from(gp):
        ...         break
        >>> rule.stopped_at, round(rule.left, 2)
        (24, 0.08)
        """
        return recompute_from(self, model, initial, order, X, y)

    # Number of bounds at the last fit, and whether that lay at an edge; None before the first.
    _fit: tuple[int, bool] | None = None

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
        values = check.vector("bounds", bounds)
        check.flag("at_edge", at_edge)
        check.flag("same_fit", same_fit)
        self._check_bounds("bounds", values)
        self.allow_refits()
        fit = self._fit
        if same_fit or self._has_seen(values):
            return self.stopped
        # The fit before, with all labels since, must say stop, and the new one too.
        agreed = (
            fit is not None
            and not fit[1]
            and not at_edge
            and len(values) >= fit[0]
            and self._tracker.would_stop
        )
        at, said = self.stopped_at, self._at_stop
        anew = self.copy().reset()
        anew._tracker.held = True
        anew._extend(values)
        if at is not None:
            anew._tracker.take_stop(self._tracker)
        elif anew._tracker.would_stop and (agreed or anew._at_the_end()):
            anew._tracker.latch()
        self._tracker.replace(anew._tracker)
        self._fit = (len(values), at_edge)
        if at is not None:
            self._note_stop(at, *said)
        return self.stopped

    def refitted(self, campaign: FittedView, *, at_edge: bool = False) -> bool:
        """Take all bounds of a campaign anew, and decide (see `after_refit`)."""
        return self.after_refit(campaign.bounds, at_edge=at_edge)

    def after_correction(self, bounds: ArrayLike) -> None:
        """Take the bounds of a campaign in which a label was wrong; nothing is decided.

        Parameters
        ----------
        bounds : array_like
            Bounds of all labels so far, in order; as many as there were.
        """
        values = check.vector("bounds", bounds, len(self))
        self._check_bounds("bounds", values)
        anew = self.copy().reset()
        anew._tracker.held = True
        anew._extend(values)
        anew._tracker.held = self._fit is not None
        at, said = self.stopped_at, self._at_stop
        if at is not None:
            anew._tracker.take_stop(self._tracker)
        self._tracker.replace(anew._tracker)
        if at is not None:
            self._note_stop(at, *said)

    def _has_seen(self, bounds: Array) -> bool:
        return self._fit is not None and np.array_equal(bounds, self.bounds)

    def _missing_in(self, n: int) -> int:
        # Fewer than at the fit before: labels were removed on purpose.
        removed = self._fit is not None and n < self._fit[0]
        return 0 if removed else max(0, len(self) - n)

    def _at_the_end(self) -> bool:
        """Whether no further bound can come, so that there will be no second fit."""
        return False

    @abstractmethod
    def _note_stop(self, stopped_at: int, left: float, level: float) -> None:
        """Say how a stop was, with what was left there."""

    def _unlatch(self) -> None:
        self._tracker.unlatch()

    def _unconfirmed(self) -> str:
        """Return why a rule that says stop has not stopped, or nothing."""
        if self._fit is None or self.stopped or not self._tracker.would_stop:
            return ""
        if self._fit[1]:
            return "; the fit lies at an edge of its search box and confirms nothing"
        return "; the next fit must agree"

    # what it knows ---------------------------------------------------------------------------

    @property
    def compiled(self) -> CompiledRule:
        """The criterion as compiled loops see it."""
        return CompiledRule(None, self._tracker)

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._tracker.stopped_at or None

    @property
    def bounds(self) -> NDArray[np.float64]:
        """All bounds in order, as a new array."""
        out = np.empty(self._tracker.n_pushed)
        self._tracker.values(out)
        return out

    @property
    def history(self) -> NDArray[np.float64]:
        """The bounds, under the name that all criteria share."""
        return self.bounds

    def __len__(self) -> int:
        return self._tracker.n_pushed

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        reason: str = self.verdict.reason
        return reason

    # Epoch of the tracker, bounds at the stop, and what speaks against that stop.
    _warned: tuple[int, int, tuple[str, ...]] = (-1, 0, ())

    def _warnings(self, n: int) -> tuple[str, ...]:
        """Return what speaks against a stop after n bounds: computed once, when first asked for."""
        epoch = self._tracker.epoch
        if self._warned[:2] != (epoch, n):
            self._warned = (epoch, n, stop_warnings(self._tested(n)))
        return self._warned[2]

    def _tested(self, n: int) -> Array:
        """Return the bounds that the decision after n bounds is about."""
        return self.bounds[:n]

    # keeping and restoring -------------------------------------------------------------------

    @property
    @abstractmethod
    def _at_stop(self) -> tuple[float, float]:
        """What was left at the stop, and the level there; NaN without one."""

    @property
    def _evidence(self) -> list[float] | None:
        """What else is known of a stop, as plain numbers."""
        return None

    @abstractmethod
    def _restore(
        self, bounds: Array, stopped_at: int, left: float, level: float, evidence: Any
    ) -> None:
        """Take the bounds and the stop of a saved criterion; nothing is decided anew."""

    def reset(self) -> Self:
        """Forget all bounds (a Gaussian process keeps its labels); return the criterion itself."""
        self._tracker.reset()
        self._tracker.held = False
        self._fit = None
        return self

    def copy(self) -> Self:
        """Return an independent criterion in the same state; a Gaussian process is copied too."""
        if self._ours:
            new = self._twin()  # compiled state is replaced below, and by subclasses
            vars(new).pop("_warned", None)  # of the bounds of another tracker
        else:  # of somebody's own class settings and bounds are known; it makes the rest
            new = type(self)(**self._arguments())
        if new.gp is not None:
            new.gp = new.gp.copy()
        new._tracker, new._fit = self._tracker.copy(), self._fit
        return new

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    # Compiled state, which a pickle replaces by bounds and stop.
    _compiled_state: ClassVar[tuple[str, ...]] = ("_tracker", "_warned")

    def __getstate__(self) -> dict[str, Any]:
        own = {name: v for name, v in vars(self).items() if name not in self._compiled_state}
        stop = (self.stopped_at or 0, *self._at_stop, self._evidence)
        return own | {"bounds": self.bounds, "stop": stop, "expected": self._expected}

    def __setstate__(self, state: dict[str, Any]) -> None:
        bounds, stop, expected = (state.pop(name) for name in ("bounds", "stop", "expected"))
        vars(self).update(state)
        self._start()
        self.set_horizon(expected)
        self._restore(bounds, *stop)
        self._tracker.held = self._fit is not None

    def to_dict(self) -> dict[str, Any]:
        """Return settings, bounds and stop as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`. A Gaussian process is described by its settings and labels.
        """
        settings = {name: _params.plain(getattr(self, name)) for name in self._settings}
        left, level = self._at_stop
        return {
            "kind": type(self).__name__,
            "version": self._version,
            **settings,
            "gp": None if self.gp is None else self.gp.to_dict(),
            "bounds": self.bounds.tolist(),
            "expected": self._expected or None,
            "stopped_at": self.stopped_at,
            "left": None if math.isnan(left) else left,
            "level": None if math.isnan(level) else level,
            "evidence": self._evidence,
            "fit": None if self._fit is None else list(self._fit),
        }

    @classmethod
    def _settled(cls, settings: dict[str, Any], gp: Any, bounds: Any) -> tuple[Self, Array]:
        """Return a criterion with saved settings, and the saved bounds."""
        if gp is not None:
            gp = restore_model(gp)
        if not isinstance(bounds, list) or not all(type(v) in (int, float) for v in bounds):
            raise ValueError(
                f"`state['bounds']` must be a list of numbers, got {check.short_repr(bounds)}"
            )
        with damaged_state():
            made: Any = cls  # subclasses have `gp`
            return made(**settings, gp=gp), check.finite_array("bounds", bounds)

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> ByBounds:
        *settings, gp, bounds, expected, at, left, level, evidence, fit = state_values(
            state, (*cls._settings, *STATE)
        )
        new, values = cls._settled(dict(zip(cls._settings, settings, strict=True)), gp, bounds)
        expected = state_count("expected", expected, optional=True)
        # after a refit with fewer labels a stop may lie beyond them
        most = len(values) if fit is None else check.INT64_MAX
        at = state_count("stopped_at", at, 1, optional=True, most=most)
        left, level = _saved_share("left", left), _saved_share("level", level)
        with damaged_state():
            new.set_horizon(expected or 0)
            new._restore(values, at or 0, left, level, evidence)
        if fit is not None:
            if not isinstance(fit, list) or len(fit) != 2 or type(fit[1]) is not bool:
                raise ValueError(
                    "`state['fit']` must be a number of bounds and whether it lies at an edge, got "
                    f"{check.short_repr(fit)}"
                )
            new._fit = (state_count("fit", fit[0]), fit[1])
            new._tracker.held = True
        return new

    def _argument_names(self) -> tuple[str, ...]:
        return (*self._settings, "gp")

    def __repr__(self) -> str:
        default = type(self)()
        changed = {
            name: value
            for name, value in self._arguments().items()
            if value != getattr(default, name)
        }
        return _params.call_text(self, changed)
