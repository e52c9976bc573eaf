"""ActiveLearner: ask and tell, for programs that run the labelling loop themselves."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._state import restore_model, state_count, state_of
from fastal._threads import lock_of
from fastal._types import Array
from fastal.learning.choose import choose
from fastal.learning.inputs import (
    Model,
    acquisition_name,
    budget,
    check_model,
    check_test_set,
    checksum,
    first_points,
    fresh_criterion,
)
from fastal.models.gp import GaussianProcess, warn_if_far
from fastal.stopping.by_bounds import ByBounds
from fastal.stopping.criterion import Criterion

if TYPE_CHECKING:
    from fastal._threads import OneWriter
    from fastal._types import Ints
    from fastal.learning.inputs import Acquisition
    from fastal.learning.run import Run

# Keys of a saved learner, besides its kind and version.
STATE = (
    "pool", "gp", "stopper", "acquisition", "order", "n_initial", "max_labels", "indices", "labels",
    "asked",
)  # fmt: skip

# What a copy of a learner, or one from a pickle, has anew.
LOCKS = ("_writing", "_here")


class ActiveLearner:
    """Ask-and-tell active learner, for programs that run the labelling loop themselves.

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
        check_model(gp)
        new_stopper = fresh_criterion("stopper", stopper)
        self.points = check.points("X", X, gp.prior.features)
        n = len(self.points)
        if n == 0:
            raise ValueError("`X` must have at least one row, got 0")
        index: Any = getattr(X, "index", None) if hasattr(X, "iloc") else None
        self.names = None if index is None else list(index)
        if not callable(acquisition):
            acquisition = acquisition_name(acquisition, gp)
        self.acquisition = acquisition
        rng = np.random.default_rng(None if seed is None else check.seed("seed", seed))
        order, n_initial = first_points(initial, n, rng)
        if acquisition == "random":
            rest = np.setdiff1d(np.arange(n), order)
            order = np.r_[order, rng.permutation(rest)]
        self.max_labels = budget(max_labels, n_initial, n)
        self.gp = gp.copy()
        self.stopper = new_stopper
        self._selection = choose(
            self.gp, self.points, order, n_initial, self.max_labels, callable(acquisition)
        )
        self._model: Any = self._selection.model
        self._asked: int | None = None
        self._source: Any = None  # where `learn` takes labels from
        self._driven = False  # whether `learn` or `Run.resume` is at work
        self._tell_horizon()
        self.stopper.start(self)

    def _tell_horizon(self) -> None:
        """Tell the criterion how many bounds there can be."""
        self.stopper.expect(max(0, min(self.max_labels, self.n_pool) - self.n_initial))

    @property
    def order(self) -> Ints:
        """Rows of the pool that come first, whatever is known of them."""
        return self._selection.order

    @property
    def n_initial(self) -> int:
        """Number of labels at the beginning that give no bound."""
        return self._selection.n_initial

    @property
    def n_pool(self) -> int:
        """Number of points in the pool."""
        return len(self.points)

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
        return self._selection.n_labels

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
        return float(self._selection.bounds[-1])

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""
        with self._lock():
            return self._selection.residuals

    @property
    def unlabelled(self) -> NDArray[np.bool_]:
        """Which points have no label."""
        with self._lock():
            return self._selection.unlabelled

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
                process: Any = self.gp
                self._model = process.copy(quiet=True)  # what is far was said already
            known, n = self._model.n_labels, self.n_labels
            if known < n:
                new = self._selection.labels[known:n]
                self._model.add_batch(self.points[new], self._selection.y[known:n])
            return self._model

    @property
    def compilable(self) -> bool:
        """Whether labels given as an array need no Python in between."""
        return (
            self._selection.compilable
            and not callable(self.acquisition)
            and self.stopper.compiled is not None
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
            scores = check.finite_array(
                "acquisition", self.acquisition(*self._selection.posterior())
            )
            if scores.shape != (self.n_pool,):
                raise ValueError(
                    f"`acquisition` must return {self.n_pool} scores, got shape {scores.shape}"
                )
            self._asked = int(np.argmax(np.where(self._selection.unlabelled, scores, -np.inf)))
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
        self._selection.reserve(min(self.max_labels, self.n_pool))  # it may have been raised
        seen = False
        try:
            self._selection.accept(index, y)
            self._told()
            seen = True
            self._show()
        except BaseException:
            # Ctrl-C is heard when a long computation is over: the label has been taken by then
            if self._selection.n_labels > before:
                self._selection.settle()
                self._told()
                if not seen or (isinstance(self.stopper, ByBounds) and self._behind()):
                    self._show()
            raise

    def _told(self) -> None:
        """Ask for another point next."""
        self._asked = None
        self._remember(None)

    def _show(self) -> None:
        """Let the criterion see the last label."""
        if self.n_labels > self.n_initial:
            self.stopper.after_label(self)

    def _behind(self) -> bool:
        """Whether there is a bound that the criterion has not got."""
        return len(self.stopper.history) < len(self._selection.bounds)

    def _run_compiled(self, y: Array, target: int, threads: int) -> None:
        """Label points up to `target`, or until the criterion stops: one compiled call.

        Parameters
        ----------
        y : array, shape (n,)
            Labels of all points.
        target : int
            Number of labels.
        threads : int
            Threads for large pools.
        """
        with self._turn():
            target = min(target, self.n_pool)
            self._selection.reserve(target)
            try:
                self._selection.run(y, target, self.stopper.compiled, False, threads)
            finally:
                self._selection.settle()
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
        errors = None if test is None else self._selection.test_errors(*test, threads)
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
            return {
                "kind": "ActiveLearner",
                "version": 1,
                "pool": checksum(self.points),
                "gp": self.gp.to_dict(),
                "stopper": self.stopper.to_dict(),
                "acquisition": name,
                "order": self.order.tolist(),
                "n_initial": self.n_initial,
                "max_labels": self.max_labels,
                "indices": self._selection.labels.tolist(),
                "labels": self._selection.y.tolist(),
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
        pool, gp, stopper, name, order, n_initial, most, indices, labels, asked = state_of(
            "ActiveLearner", state, STATE
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
            if checksum(new.points) != pool:
                raise ValueError("`X` is another pool than the saved one")
            new._selection.order = np.array(first, dtype=np.int64)
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
        if index >= self.n_pool or not self._selection.unlabelled[index]:
            raise ValueError(
                f"`state` is damaged: `{name}`: row {check.short_repr(index)} is out of "
                "the pool, or "
                "there twice"
            )

    def __repr__(self) -> str:
        said = f"{self.n_labels} of {self.n_pool} labels, {self.stopper.verdict}"
        return f"ActiveLearner({said})"
