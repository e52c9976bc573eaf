"""ActiveLearner: ask and tell, for programs that run the labelling loop themselves."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._state import restore_model, state_count, state_values
from fastal._threads import lock_of
from fastal._types import Array
from fastal.learning.inputs import (
    Model,
    _checksum,
    _choice,
    _first_points,
    check_test_set,
)
from fastal.learning.selection import Selection, _selection_of
from fastal.models.gp import GaussianProcess, warn_if_far
from fastal.stopping.criterion import Criterion
from fastal.stopping.stopper import Stopper

if TYPE_CHECKING:
    from fastal._threads import OneWriter
    from fastal._types import Ints
    from fastal.learning.inputs import Acquisition
    from fastal.learning.run import Run

# What a copy of a learner, or one from a pickle, has anew.
LOCKS = ("_writing", "_here")


class ActiveLearner:
    """Active learning that is asked and told, for loops that live in another program.

    Parameters
    ----------
    X : array_like, shape (n, d)
        The pool; a pandas object keeps its row names.
    gp : GaussianProcess or LaplaceClassifier
        The model, without labels; it is copied.
    stopper : Stopper or another criterion
        When to stop; it is copied, without its bounds.
    initial : int or array_like of int
        How many random labels come first, or which; they give no bounds.
    max_labels : int, optional
        Most labels in all; the whole pool by default.
    acquisition : {"max_variance", "uncertainty", "random"} or callable
        How the next point is chosen. A callable takes mean and variance of all points (of the
        latent function, for a classifier) and returns a score for each; the largest unlabelled
        one wins, the lowest index among equals. A classifier takes the point whose probability is
        closest to 1/2, "uncertainty": the default stands for that as well.
    seed : int, optional
        Seed of what is random.

    Notes
    -----
    Threads may share a learner. Each label goes to the point that the thread asked for; if another
    one has labelled that meanwhile, `tell` raises a RuntimeError and takes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import ActiveLearner, GaussianProcess, Stopper
    >>> X = np.linspace(0, 10, 40)
    >>> learner = ActiveLearner(X, gp=GaussianProcess(1.0, 0.01), stopper=Stopper(), seed=0)
    >>> while not learner.finished:
    ...     index = learner.ask()
    ...     verdict = learner.tell(np.sin(X[index]))
    >>> learner.n_labels <= 40
    True
    """

    _writing: OneWriter | None
    _here: threading.local | None = None  # `index`: the point that this thread asked for

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make a learner with a lock of its own, also one that comes out of a pickle."""
        new = super().__new__(cls)
        new._writing = None  # until it is needed
        return new

    def _lock(self) -> OneWriter:
        return self._writing or lock_of(self)

    def _turn(self) -> OneWriter:
        return self._lock().turn()

    def __init__(
        self,
        X: ArrayLike,
        *,
        gp: Model,
        stopper: Criterion,
        initial: int | ArrayLike = 1,
        max_labels: int | None = None,
        acquisition: Acquisition = "max_variance",
        seed: int | None = None,
    ) -> None:
        if not isinstance(gp, Model):
            raise TypeError(
                f"`gp` must be a GaussianProcess or LaplaceClassifier, got {check.short_repr(gp)}"
            )
        if gp.n_labels:
            raise ValueError(f"`gp` must have no labels, got {gp.n_labels}: use a fresh one")
        if not isinstance(stopper, Criterion):
            raise TypeError(
                f"`stopper` must be a Stopper or criterion, got {check.short_repr(stopper)}"
            )
        scale = gp.lengthscale
        features = None if isinstance(scale, float) else len(scale)
        self.points = check.points("X", X, features)
        n = len(self.points)
        if n == 0:
            raise ValueError("`X` must have at least one row, got 0")
        index: Any = getattr(X, "index", None) if hasattr(X, "iloc") else None
        self.names = None if index is None else list(index)
        if not callable(acquisition):
            acquisition = _choice(acquisition, gp)
        self.acquisition = acquisition
        rng = np.random.default_rng(None if seed is None else check.seed("seed", seed))
        self.order, self.n_initial = _first_points(initial, n, rng)
        if acquisition == "random":
            rest = np.setdiff1d(np.arange(n), self.order)
            self.order = np.r_[self.order, rng.permutation(rest)]
        self.max_labels = n if max_labels is None else check.count("max_labels", max_labels, 1)
        if not (max(1, self.n_initial) <= self.max_labels <= n):
            raise ValueError(
                f"`max_labels` must be between `initial` ({self.n_initial}) and the size of the "
                f"pool ({n}), got {check.short_repr(self.max_labels)}"
            )
        self.gp = gp.copy()
        self.stopper = stopper.copy().reset()
        if isinstance(self.stopper, Stopper) and self.stopper.gp is not None:
            self.stopper.gp = None  # the learner's own process gives the bounds
        self._selection = _selection_of(
            self.gp, self.points, self.max_labels, callable(acquisition)
        )
        self._y: list[float] = []
        self._bounds: list[float] = []
        self._model: Any = self._selection.model
        self._asked: int | None = None
        self._source: Any = None  # where `learn` takes labels from
        self._driven = False  # whether `learn` or `Run.resume` is at work
        self.stopper.start(self)

    @property
    def n_pool(self) -> int:
        """Number of points in the pool."""
        return len(self.points)

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
        return len(self._y)

    @property
    def stopped(self) -> bool:
        """Whether the criterion has stopped."""
        return self.stopper.stopped

    @property
    def finished(self) -> bool:
        """Whether the criterion has stopped or the labels are used up."""
        return self.stopped or self.n_labels >= self.max_labels

    @property
    def initial_rows(self) -> Ints:
        """Rows of the pool that are labelled first; they give no bounds."""
        return self.order[: self.n_initial]

    @property
    def prior(self) -> Model:
        """The model without labels; not to be changed."""
        return self.gp

    @property
    def last_bound(self) -> float:
        """Bound of the last label."""
        return self._bounds[-1]

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""
        # z_t = (y_t - mu_t) / sqrt(s_t + noise), the whitened labels
        with self._lock():
            state: Any = self._selection.state
            z: Array = state.white[: self.n_labels]
            return z

    @property
    def unlabelled(self) -> NDArray[np.bool_]:
        """Which points have no label."""
        with self._lock():
            left: NDArray[np.bool_] = np.logical_not(self._selection.state.taken)
            return left

    @property
    def largest_variance(self) -> float:
        """Largest variance of an unlabelled point; 0.0 if there is none."""
        with self._lock():  # it brings variances up to date
            return self._selection.largest_variance()

    @property
    def model(self) -> Any:
        """The Gaussian process or classifier with the labels so far; not to be changed."""
        with self._lock():
            if self._model is None:
                self._model = self.gp.copy()
                self._model._warned = True  # said already
            known, n = self._model.n_labels, self.n_labels
            if known < n:
                new = self._selection.state.labels[known:n]
                self._model.add_batch(self.points[new], self._y[known:n])
            return self._model

    @property
    def compilable(self) -> bool:
        """Whether labels given as an array need no Python in between."""
        return (
            isinstance(self._selection, Selection)
            and isinstance(self.stopper, Stopper)
            and not callable(self.acquisition)
        )

    def ask(self) -> int:
        """Return the point to label next; the same one until `tell` is called.

        Returns
        -------
        int
            Row of the pool. Asking goes on being possible after a stop.
        """
        index = self._asked
        if index is None:
            with self._turn():
                index = self._ask()
        self._remember(index)
        return index

    def _remember(self, index: int | None) -> None:
        """Remember what this thread asked for; None: it has told."""
        here = self._here
        if here is None:
            with self._lock():
                here = self._here = self._here or threading.local()
        here.index = index

    def _ask(self) -> int:
        """Choose the next point, if that has not been done; whoever has the turn."""
        if self._asked is not None:
            return self._asked
        t = self.n_labels
        if t >= min(self.max_labels, self.n_pool):
            if t == self.n_pool:
                raise ValueError(f"all {t} points of the pool are labelled")
            raise ValueError(f"all {self.max_labels} labels are used: raise `max_labels`")
        if t < len(self.order):
            self._asked = int(self.order[t])
        elif callable(self.acquisition):
            state = self._selection.state
            scores = check.finite_array(
                "acquisition", self.acquisition(state.mean.copy(), np.maximum(state.var, 0.0))
            )
            if scores.shape != (self.n_pool,):
                raise ValueError(
                    f"`acquisition` must return {self.n_pool} scores, got shape {scores.shape}"
                )
            self._asked = int(np.argmax(np.where(state.taken, -np.inf, scores)))
        else:
            self._asked = self._selection.best()
        return self._asked

    def tell(self, y: float) -> Any:
        """Take the label of the point asked for.

        Parameters
        ----------
        y : float
            The label.

        Returns
        -------
        Verdict
            What the stopper says now.
        """
        label = check.real("y", y)
        with self._turn():
            self._take(label, getattr(self._here, "index", None))  # of None there is none
            return self.stopper.verdict

    def _take(self, y: float, meant: int | None = None) -> None:
        """Take a label, for the point that it is meant for; whoever has the turn."""
        if meant is not None and meant != self._asked:
            raise RuntimeError(
                f"point {meant} has been labelled meanwhile, by another thread or a callback: its "
                f"label {y:g} is not taken; ask again"
            )
        index, before = self._ask(), self.n_labels
        if isinstance(self.gp, GaussianProcess):
            warn_if_far(self.gp, np.array([y]))
        self._selection.grow(min(self.max_labels, self.n_pool))  # it may have been raised
        r: float | None = None
        seen = False
        try:
            r = self._selection.accept(index, y)
            self._record(y, r)
            seen = True
            self._show()
        except BaseException:
            # Ctrl-C is heard when a long computation is over: the label has been taken by then
            if self._selection.n_labels > before:
                self._selection.settle()
                self._record(y, self._selection.last_bound(y) if r is None else r)
                if not seen or (isinstance(self.stopper, Stopper) and self._behind()):
                    self._show()
            raise

    def _record(self, y: float, r: float) -> None:
        """Write down the last label of the selection, if that has not been done."""
        n = self._selection.n_labels
        if n > self.n_initial:
            self._bounds[n - 1 - self.n_initial :] = [r]
        self._y[n - 1 :] = [y]  # the last of all: now there is one more
        self._asked = None
        self._remember(None)

    def _show(self) -> None:
        """Let the criterion see the last label."""
        if self.n_labels > self.n_initial:
            self.stopper.after_label(self)

    def _behind(self) -> bool:
        """Whether there is a bound that the stopper has not got."""
        return len(self.stopper.history) < len(self._bounds)

    def _compiled(self, y: Array, target: int, threads: int) -> None:
        """Label points up to `target`, or until the stopper stops: one compiled call."""
        stopper = self.stopper
        assert isinstance(stopper, Stopper)
        assert isinstance(self._selection, Selection)
        bounds = np.empty(max(0, target - self.n_initial))
        with self._turn():
            before, target = self.n_labels, min(target, self.n_pool)
            self._selection.grow(target)
            # Without the GIL, and with the stopper's own tracker: nobody else may use it.
            try:
                tracker = stopper._tracker.lend()
            except RuntimeError:  # somebody has it, and will be done with it
                raise
            except BaseException:  # Ctrl-C: by then it is lent
                stopper._tracker.take_back()
                raise
            try:
                self._selection.run(y, self.order, self.n_initial, target, tracker, threads, bounds)
            finally:
                stopper._tracker.take_back()
                self._selection.settle()
                after = self._selection.n_labels
                done = slice(max(0, before - self.n_initial), max(0, after - self.n_initial))
                self._bounds[done.start :] = bounds[done].tolist()
                self._y[before:] = y[self._selection.state.labels[before:after]].tolist()
                self._asked = None

    def run(self, test: Any = None, threads: int = 1) -> Run:
        """Return what has come of it so far.

        Parameters
        ----------
        test : tuple of arrays, optional
            Inputs and labels on which to compute the expected loss after each label.
        threads : int
            Threads for that, at most 4,096.

        Returns
        -------
        Run
            A record that later labels do not change.
        """
        workers = check.threads("threads", threads)
        checked = None if test is None else check_test_set(test, self.points.shape[1])
        with self._lock():
            return self._run(checked, workers, self.stopper.copy())

    def _run(self, test: tuple[Array, Array] | None, threads: int, stopper: Criterion) -> Run:
        errors = None if test is None else self._selection.errors(*test, threads)
        from fastal.learning.run import Run  # which runs learners

        return Run(self, errors, test, stopper)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`, which wants the pool again; its checksum is kept.
        """
        name = self.acquisition if isinstance(self.acquisition, str) else None
        with self._lock():
            n = self.n_labels
            return {
                "kind": "ActiveLearner",
                "version": 1,
                "pool": _checksum(self.points),
                "gp": self.gp.to_dict(),
                "stopper": self.stopper.to_dict(),
                "acquisition": name,
                "order": self.order.tolist(),
                "n_initial": self.n_initial,
                "max_labels": self.max_labels,
                "indices": self._selection.state.labels[:n].tolist(),
                "labels": self._y[:n],
                "asked": self._asked,
            }

    def __getstate__(self) -> dict[str, Any]:
        with self._lock():
            state = {name: value for name, value in vars(self).items() if name not in LOCKS}
            selection = self._selection.frozen()
            return state | {
                "stopper": self.stopper.copy(),
                "_selection": selection,
                "_model": selection.model,
                "_y": self._y[:],
                "_bounds": self._bounds[:],
                "_driven": False,
            }

    def __copy__(self) -> ActiveLearner:
        return deepcopy(self)

    @classmethod
    def from_dict(
        cls, state: dict[str, Any], X: ArrayLike, acquisition: Acquisition | None = None
    ) -> ActiveLearner:
        """Return the learner that `to_dict` described.

        Parameters
        ----------
        state : dict
            From `to_dict`, perhaps by way of JSON.
        X : array_like
            The same pool.
        acquisition : callable, optional
            The acquisition, if it was a callable.

        Returns
        -------
        ActiveLearner
            It goes on with the same choices and decisions. What is damaged or does not fit the
            pool raises a ValueError.
        """
        names = ("kind", "version", "pool", "gp", "stopper", "acquisition", "order", "n_initial",
                 "max_labels", "indices", "labels", "asked")  # fmt: skip
        kind, version, pool, gp, stopper, name, order, n_initial, most, indices, labels, asked = (
            state_values(state, names)
        )
        if (kind, version) != ("ActiveLearner", 1):
            raise ValueError(
                f"`state` must describe an ActiveLearner of version 1, got "
                f"{check.short_repr(kind)}, {check.short_repr(version)}"
            )
        if name is None and not callable(acquisition):
            raise ValueError("`acquisition` must be given: the saved one was a callable")
        try:
            first = [state_count("order", i) for i in order]
            check.indices("order", first, len(check.points("X", X, None)))
            if state_count("n_initial", n_initial) > len(first):
                raise ValueError(
                    f"`state['n_initial']` must be at most {len(first)}, the length of its order, "
                    f"got {n_initial}"
                )
            new = cls(
                X,
                gp=restore_model(gp),
                stopper=Criterion.from_dict(stopper),
                initial=np.array(first[:n_initial], dtype=np.int64),
                max_labels=most,
                acquisition=name or acquisition,  # type: ignore[arg-type]
            )
            if _checksum(new.points) != pool:
                raise ValueError("`X` is another pool than the saved one")
            new.order = np.array(first, dtype=np.int64)
            for index, y in zip(indices, check.vector("labels", labels, len(indices)), strict=True):
                new._ask()  # the lazy selection then computes in the same order, to the last digit
                new._refuse_taken("indices", state_count("indices", index))
                new._asked = index
                new._take(float(y))
            if state_count("asked", asked, optional=True) is not None:
                new._ask()
                new._refuse_taken("asked", asked)
            new._asked = asked
            saved = Criterion.from_dict(stopper)
            if saved.stopped_at != new.stopper.stopped_at:
                raise ValueError("`state['stopper']`: the bounds are not those of the labels")
        except (TypeError, IndexError) as error:
            raise ValueError(f"`state` is damaged: {error}") from None
        return new

    def _refuse_taken(self, name: str, index: int) -> None:
        if index >= self.n_pool or self._selection.state.taken[index]:
            raise ValueError(
                f"`state` is damaged: `{name}`: row {check.short_repr(index)} is out of "
                "the pool, or "
                "there twice"
            )

    def __repr__(self) -> str:
        said = f"{self.n_labels} of {self.n_pool} labels, {self.stopper.verdict}"
        return f"ActiveLearner({said})"
