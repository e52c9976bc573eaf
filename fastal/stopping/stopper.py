"""Stopper: the runs test on the sequence of bounds; one decision, five ways in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._core import batch, bound_scalar, distribution
from fastal._core import tracker as tracker_core
from fastal._state import restore_model, state_values
from fastal.runs import ALTERNATIVES, METHODS, RunsDistribution, runs_test
from fastal.stopping.criterion import Criterion
from fastal.stopping.posterior import bounds_of
from fastal.stopping.verdict import Verdict, _p

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastal.models.gp import GaussianProcess


@lru_cache(maxsize=256)
def _earliest(level: float, falling: bool, method: str, alternative: str, limit: int) -> int | None:
    """Return the least number of values at which any arrangement rejects; None beyond `limit`."""
    how, by = ALTERNATIVES[alternative], METHODS[method]
    for n in range(2, limit + 1):
        now = level * batch.level_at(n) if falling else level
        # At most half of the values are below their median. The extreme number of runs has the
        # least p-value; exact ones are least for equal counts, normal ones need not be.
        for below in range(1, n // 2 + 1) if method == "normal" else (n // 2,):
            for runs in distribution.support(below, n - below):
                if distribution.p_value(runs, below, n - below, how, by, False) <= now:
                    return n
    return None


class Stopper(Criterion):
    """Says when to stop labelling, from the bounds that come with each label.

    Five ways in, one decision: `push` a bound or divergence, `update` with the posterior before the
    label, `update_from` a model of another library, `observe` an input and its label with a
    Gaussian process, `extend` by a history.

    Parameters
    ----------
    alpha : float
        Level of the runs test. Each look has this level; `sequential` keeps all looks together to
        it.
    method : {"auto", "exact", "normal"}
        How the p-value is computed; see `choose_method`.
    alternative : {"less", "greater", "two-sided"}
        "less": stop on too few runs, the paper's rule.
    sequential : bool
        Whether the chance of ever stopping on a random sequence stays at or below alpha. Needs
        alternative "less", no window and method "auto" or "exact" (both are exact then).
    horizon : int, optional
        With `sequential`: number of bounds after which there is no stop any more.
    window : int, optional
        Test the last `window` bounds only.
    min_bounds : int, optional
        No stop before so many bounds.
    patience : int
        Rejections in a row that stop.
    fall : bool
        Whether a rejection counts only if the bounds fell: those at or above the median came, on
        average, earlier than those below. False is the letter of the paper, which stops on a rise
        as well. For alternative "less" only; the others ignore it.
    noise : float, optional
        Noise variance for `update`.
    gp : GaussianProcess or LaplaceClassifier, optional
        Model for `observe`, which adds the labels to it.

    Notes
    -----
    What the options do to the chance of ever stopping within 100 random bounds at alpha = 0.001
    (400,000 simulated streams; see `false_stop_probability` for other levels and horizons):

    ========================  =======
    plain                     0.59 %
    ``fall=False``            1.06 % (the letter of the paper)
    ``sequential=True``       alpha, by calibration
    ``patience=3``            0.19 %
    ``min_bounds=30``         0.43 %
    ``window=50``             0.71 % (old evidence is forgotten, every stretch gets its chance)
    ``window=30``             1.03 %
    ``method="normal"``       0.78 % (its p-values are too small for few bounds)
    "two-sided", "greater"    0.99 %, 0.91 %
    ========================  =======

    alpha bounds false alarms of "a shift happened", not the risk of stopping early.

    One stopper belongs to one thread at a time. Two threads that share one do not crash: `push` and
    `update` keep the GIL, and a call during another thread's `extend` raises a RuntimeError.

    Examples
    --------
    >>> from fastal import Stopper
    >>> stopper = Stopper()
    >>> for bound in [9.1, 8.7, 9.9, 7.5, 8.2, 9.0, 7.9, 8.8, 2.1, 1.4, 2.2, 2.9, 1.3, 2.0]:
    ...     stop = stopper.push(bound)
    >>> print(stopper.verdict)
    go on: 4 runs, p = 0.025
    >>> stopper.push(1.8)
    True
    >>> print(stopper.verdict)
    stop after 15 bounds: 2 runs where 8.5 are expected (p = 3.1e-04 <= 0.001)
    """

    _format: ClassVar[int] = 2  # since there is `fall`
    _settings: ClassVar[tuple[str, ...]] = (
        "alpha",
        "method",
        "alternative",
        "sequential",
        "horizon",
        "window",
        "min_bounds",
        "patience",
        "fall",
        "noise",
    )

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        method: str = "auto",
        alternative: str = "less",
        sequential: bool = False,
        horizon: int | None = None,
        window: int | None = None,
        min_bounds: int | None = None,
        patience: int = 1,
        fall: bool = True,
        noise: float | None = None,
        gp: GaussianProcess | None = None,
    ) -> None:
        self.alpha = alpha
        self.method = method
        self.alternative = alternative
        self.sequential = sequential
        self.horizon = horizon
        self.window = window
        self.min_bounds = min_bounds
        self.patience = patience
        self.fall = fall
        self.noise = noise
        self.gp = gp
        self._start()

    def _start(self) -> None:
        """Check the settings and begin with an empty tracker."""
        level = check.probability("alpha", self.alpha)
        method = check.option_code("method", self.method, METHODS)
        alternative = check.option_code("alternative", self.alternative, ALTERNATIVES)
        window = self._count("window", self.window, 2)
        min_bounds = self._count("min_bounds", self.min_bounds, 0)
        patience = check.count("patience", self.patience, 1, check.INT64_MAX)
        horizon = self._count("horizon", self.horizon, 2)
        check.flag("sequential", self.sequential)
        fall = check.flag("fall", self.fall)
        if self.noise is not None:
            check.positive("noise", self.noise)
        if self.gp is not None and not hasattr(self.gp, "add"):
            raise TypeError(f"`gp` must be a GaussianProcess, got {check.short_repr(self.gp)}")
        if self.sequential:
            if self.alternative != "less" or self.window is not None or self.method == "normal":
                raise ValueError(
                    "`sequential` needs alternative='less', window=None and an exact method, got "
                    f"alternative={self.alternative!r}, window={self.window!r}, "
                    f"method={self.method!r}"
                )
            from fastal.stopping.sequential import look_level

            level = look_level(self.alpha, self.horizon, fall=fall)
            method = METHODS["exact"]
        elif self.horizon is not None:
            raise ValueError(f"`horizon` needs sequential=True, got {self.horizon!r}")
        self._level = level
        self._falling = bool(self.sequential) and not horizon
        self._tracker = tracker_core.RunsTracker(
            level, method, window, alternative, min_bounds, patience, horizon, self._falling, fall
        )

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
            Any finite number; without the constant C, which would change nothing.

        Returns
        -------
        bool
            Whether there has been a stop, now or before. Later bounds are recorded all the same.
        """
        try:
            return self._tracker.stopped_after(r)
        except (TypeError, ValueError, OverflowError):
            check.real("r", r)
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
            Noise variance; by default the stopper's.

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

    def update_from(self, model: Any, x: Any, y: Any, noise: Any = None) -> bool:
        """Take a label and the model of another library, before that is fitted to the label.

        Parameters
        ----------
        model : object
            A fitted model of scikit-learn, modAL, scikit-activeml, GPyTorch or BoTorch; see
            `fastal.adapters`. It is asked for its posterior, not changed.
        x : array_like, shape (d,) or (m, d)
            The input, or those of several labels.
        y : float, or array_like of shape (m,)
            The label, or labels in order; the bound of each is given the labels before it.
        noise : float or array_like of shape (m,), optional
            Noise variance of these labels, if not that of the model. The stopper's own is for
            `update`.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        from fastal.adapters import update_from

        return update_from(self, model, x, y, noise)

    def observe(self, x: ArrayLike, y: float) -> bool:
        """Add a label to the Gaussian process, and its bound to the stopper.

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
            raise ValueError("`observe` needs Stopper(gp=...), got gp=None")
        # What is not yet numbers may be anything: its own code runs before the turn.
        if type(x) is not np.ndarray:
            x = check.point(x, None)
        y = check.real("y", y)
        with self._turn():
            bounds, labels = len(self), getattr(gp, "n_labels", None)
            r = None
            try:
                r = gp.add(x, y)
                return self.push(r)
            except BaseException as error:
                # The label and its bound, or neither. A push that is refused takes nothing; Ctrl-C
                # may come at any moment, and after it.
                refused = isinstance(error, Exception)
                alone = r is not None if refused else self._has(bounds)
                if alone and labels is not None and gp.n_labels == labels + 1:
                    gp.rewind(labels)
                raise

    def _has(self, n: int) -> bool:
        """Whether there are n bounds, or no one can tell since another thread is at work."""
        try:
            return len(self) == n
        except RuntimeError:
            return True

    def extend(self, values: Any) -> int | None:
        """Take bounds in order, as if pushed one by one.

        Parameters
        ----------
        values : array_like or iterable of float
            Finite bounds; if one is not, none is taken.

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
        return self._tracker.extend(bounds, np.empty(len(bounds), dtype=np.uint8)) or None

    def recompute(
        self, X: ArrayLike, y: ArrayLike, gp: GaussianProcess, *, initial: int = 0
    ) -> bool:
        """Replace all bounds by those that other hyper-parameters give.

        When hyper-parameters change while labelling goes on, the paper (section 5.3) offers two
        ways: go on with `push`, `update` or `observe` and the new ones, as if the old bounds were
        comparable; or compute the whole sequence anew, which is this.

        Parameters
        ----------
        X, y : array_like
            All inputs and labels so far, in order.
        gp : GaussianProcess
            The model with the new hyper-parameters, without labels; it is copied.
        initial : int
            Number of labels at the beginning that give no bound.

        Returns
        -------
        bool
            Whether the new sequence stops. A stopper with a Gaussian process goes on with the
            copy, which has all labels.
        """
        initial = check.count("initial", initial)
        if gp.n_labels:
            raise ValueError(f"`gp` must have no labels, got {gp.n_labels}")
        model = gp.copy()
        before = self._tracker.n_pushed
        bounds = check.finite_array("bounds", model.add_batch(X, y))[initial:]
        anew = self._tracker.copy()
        anew.reset()
        anew.extend(bounds, np.empty(len(bounds), dtype=np.uint8))
        self._tracker.replace(anew, before)
        if self.gp is not None:
            self.gp = model
        return self.stopped

    # what it knows ---------------------------------------------------------------------------

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self._tracker.stopped_at or None

    @property
    def p_value(self) -> float:
        """p-value of the runs test now; 1.0 below two bounds."""
        return self._tracker.p_value(ALTERNATIVES[self.alternative])

    @property
    def n_runs(self) -> int:
        """Number of runs about the median; 0 without bounds."""
        return self._tracker.n_runs

    @property
    def n_below(self) -> int:
        """Number of tested bounds below the median."""
        return self._tracker.n_below

    @property
    def n_above(self) -> int:
        """Number of tested bounds at or above the median."""
        return self._tracker.n_above

    @property
    def median(self) -> float:
        """Median of the tested bounds; NaN without bounds."""
        return self._tracker.median

    @property
    def bounds(self) -> NDArray[np.float64]:
        """All bounds in order, as a new array."""
        out = np.empty(self._tracker.n_pushed)
        try:
            self._tracker.values(out)
        except ValueError:  # of the length
            raise RuntimeError("another thread has pushed meanwhile: ask again") from None
        return out

    @property
    def history(self) -> NDArray[np.float64]:
        """The bounds, under the name that all criteria share."""
        return self.bounds

    @property
    def labels(self) -> NDArray[np.int8]:
        """1 for each tested bound at or above the median, 0 for those below."""
        tested = self._tested(self._tracker.n_pushed)
        return (tested >= self.median).astype(np.int8)

    def __len__(self) -> int:
        return self._tracker.n_pushed

    def _tested(self, n: int) -> NDArray[np.float64]:
        """Return the bounds that the test after n bounds is about."""
        first = 0 if self.window is None else max(0, n - int(self.window))
        return self.bounds[first:n]

    @property
    def earliest_stop(self) -> int | None:
        """Least number of bounds at which a stop is possible; None if none ever is."""
        # Beyond 4096 bounds of one level each no level is too small for the exact test.
        limit = int(min(4096, self.window or 4096))
        method = "exact" if self.method == "auto" else self.method
        n = _earliest(self._level, self._falling, method, self.alternative, limit)
        if n is None:
            return None
        n = max(n + int(self.patience) - 1, int(self.min_bounds or 0))
        return None if self.horizon is not None and n > self.horizon else n

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        return self.verdict.reason

    @property
    def verdict(self) -> Verdict:
        """The decision with its reasons: at the stop if there was one, else now."""
        n = self.stopped_at or self._tracker.n_pushed
        tested = self._tested(n)
        level = self._level * batch.level_at(len(tested)) if self._falling else self._level
        if len(tested) >= 2:
            method = "exact" if self.sequential else self.method
            test = runs_test(tested, alternative=self.alternative, method=method)
            p, runs, below, above = test.pvalue, test.n_runs, test.n_below, test.n_above
            used, median = test.method, test.cutoff
        else:
            p, runs, below, above = 1.0, len(tested), 0, len(tested)
            used, median = "exact", self.median
        expected = RunsDistribution(below, above).mean() if len(tested) else math.nan
        critical = None
        if self.alternative == "less" and len(tested) >= 2:
            guess = runs if p <= level else int(expected)
            critical = batch.critical_runs(below, above, level, METHODS[used], guess) or None
        stop, reason = self._decide(n, runs, expected, p, level)
        return Verdict(stop, p, runs, expected, critical, n, median, level, reason, tested)

    def _decide(
        self, n: int, runs: int, expected: float, p: float, level: float
    ) -> tuple[bool | None, str]:
        if self.stopped:
            return True, f"{runs} runs where {expected:.1f} are expected ({_p(p)} <= {level:.3g})"
        earliest = self.earliest_stop
        if self.horizon is not None and n >= self.horizon:
            return False, f"{runs} runs, {_p(p)}; the horizon of {self.horizon} bounds is reached"
        if earliest is None:
            return None, f"no stop is possible with these settings at alpha = {self.alpha:g}"
        if n < earliest:
            return None, f"no stop is possible before {earliest} bounds at alpha = {self.alpha:g}"
        said = f"{runs} runs, {_p(p)}"
        tracker = self._tracker
        if self.fall and self.alternative == "less" and not tracker.fell and tracker.rejects:
            said += f", but the bounds {'rose' if tracker.rose else 'did not fall'}"
        return False, said

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds, their running median, the runs and the p-value, with the stop.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw the bounds; the p-value comes below. A new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the bounds.
        """
        from fastal.plotting.stopper import plot_stopper

        return plot_stopper(self, ax)

    # keeping and restoring -------------------------------------------------------------------

    def reset(self) -> Self:
        """Forget all bounds (a Gaussian process keeps its labels); return the stopper itself."""
        self._tracker.reset()
        return self

    def copy(self) -> Self:
        """Return an independent stopper in the same state; a Gaussian process is copied too."""
        new = type(self)(**self.get_params(deep=False))
        if new.gp is not None:
            new.gp = new.gp.copy()
        new._tracker = self._tracker.copy()
        return new

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_tracker"}
        return state | {"bounds": self.bounds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        bounds = state.pop("bounds")
        vars(self).update({"fall": False} | state)  # one of 0.1.0 has none
        self._start()
        self.extend(bounds)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and bounds as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `Stopper.from_dict`. A Gaussian process is described by its settings and labels.
        """
        settings: dict[str, Any] = {}
        for name in self._settings:
            value = getattr(self, name)
            settings[name] = value.item() if isinstance(value, np.generic) else value
        return {
            "kind": "Stopper",
            "version": self._format,
            **settings,
            "gp": None if self.gp is None else self.gp.to_dict(),
            "bounds": self.bounds.tolist(),
        }

    @classmethod
    def _upgraded(cls, state: dict[str, Any], version: int) -> dict[str, Any]:
        if version == 1 and "fall" not in state:  # of 0.1.0, which kept to the letter of the paper
            return state | {"fall": False}
        return state

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Stopper:
        *settings, gp, bounds = state_values(state, (*cls._settings, "gp", "bounds"))
        if gp is not None:
            gp = restore_model(gp)
        if not isinstance(bounds, list) or not all(type(v) in (int, float) for v in bounds):
            raise ValueError(
                f"`state['bounds']` must be a list of numbers, got {check.short_repr(bounds)}"
            )
        try:
            new = cls(**dict(zip(cls._settings, settings, strict=True)), gp=gp)
            new.extend(bounds)
        except (TypeError, ValueError) as error:
            raise ValueError(f"`state` is damaged: {error}") from None
        return new

    # scikit-learn's conventions --------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Parameters
        ----------
        deep : bool
            Accepted for scikit-learn; there is nothing deeper.

        Returns
        -------
        dict
            Argument to value.
        """
        return {name: getattr(self, name) for name in (*self._settings, "gp")}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor; the bounds are judged anew, from the first on.

        Parameters
        ----------
        **params
            Arguments of the constructor.

        Returns
        -------
        Stopper
            The stopper itself.
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                check.option("params", name, tuple(known))
        changed = type(self)(**(known | params))
        bounds = self.bounds
        changed.extend(bounds)
        tracker = self._tracker  # stays: another thread may be about to push to it
        tracker.replace(changed._tracker, len(bounds))
        vars(self).update(vars(changed) | {"_tracker": tracker})
        return self

    def __repr__(self) -> str:
        default = type(self)()
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != getattr(default, name)
        ]
        return f"Stopper({', '.join(changed)})"
