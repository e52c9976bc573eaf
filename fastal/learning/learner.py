"""ActiveLearner: ask and tell, for programs that run the labelling loop themselves."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._types import Array, Ints
from fastal.learning import saved
from fastal.learning.campaign import Campaign, row_names
from fastal.learning.elsewhere import PoolElsewhere
from fastal.learning.inputs import check_labels, check_test_set
from fastal.learning.refit import check_size
from fastal.learning.unfitted import Unfitted
from fastal.models.classifier import LaplaceClassifier
from fastal.models.weak import LEAST_LABELS

if TYPE_CHECKING:
    from fastal.learning.inputs import Acquisition, Model
    from fastal.learning.run import Run
    from fastal.stopping.criterion import Criterion


class ActiveLearner(Campaign):
    """Ask-and-tell active learner, for programs that run the labelling loop themselves.

    Parameters
    ----------
    X : array_like, shape (n, d)
        The pool; a pandas object keeps its row names. A dask array stays on the workers of its
        cluster.
    gp : GaussianProcess or LaplaceClassifier, optional
        The model, without labels; it is copied. None: nobody knows its hyper-parameters, and they
        are learnt on the way, for inputs in standard deviations of the pool.
    criterion : Stopper or another criterion
        When to stop; it is copied, without its bounds.
    initial : int or array_like of int, optional
        How many random labels come first, or which; they give no bounds. By default one, and five
        without a `gp`, which needs them for the first fit.
    max_labels : int, optional
        Most labels in all; the whole pool by default.
    acquisition : {"max_variance", "uncertainty", "random"} or callable
        How the next point is chosen. A callable takes mean and variance of all points (of the
        latent function, for a classifier) and returns a score for each; the largest unlabelled one
        wins, the lowest index among equals. A classifier takes the point whose probability is
        closest to 1/2, "uncertainty": the default stands for that as well.
    seed : int, optional
        Seed of what is random.
    refit : float, optional
        How much the labels grow between two fits of the hyper-parameters, above 1. By default 1.2
        without a `gp`, and no fits with one. With a `gp` its kernel stays, and the ratios of its
        length scales.
    known : tuple of arrays, optional
        Rows of the pool whose labels are known from the beginning, and these labels, in the order
        in which they came. They stand in for as many of the `initial` ones, and are one batch.

    Notes
    -----
    Hyper-parameters are fitted at 5, 6, 7, 8, 10, 12, 14, 17, ... labels, and then all labels are
    taken anew, with their bounds. A criterion that goes by bounds decides at these moments only,
    and two fits must agree (see `Criterion.after_fit`).

    A learner belongs to one thread at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import ActiveLearner, MovementBelow
    >>> X = np.random.default_rng(0).uniform(0, 10, (60, 1))
    >>> learner = ActiveLearner(X, criterion=MovementBelow(0.1), seed=0)
    >>> while not learner.finished:
    ...     rows = learner.ask(5)
    ...     verdict = learner.tell(20 + 3 * np.sin(X[rows, 0]))
    >>> learner.n_labels, [fit.n_labels for fit in learner.refits]
    (20, [5, 10, 15, 20])
    """

    _busy = False  # whether it is being changed

    def _begin_change(self) -> None:
        """Begin a change; whoever does must set `_busy` to False at its end."""
        if self._busy:
            raise RuntimeError(
                "the learner is being changed: it cannot be changed again from within, by a "
                "callback or a hook for warnings, or by another thread"
            )
        self._busy = True

    def __init__(
        self,
        X: ArrayLike,
        *,
        gp: Model | None = None,
        criterion: Criterion,
        initial: int | ArrayLike | None = None,
        max_labels: int | None = None,
        acquisition: Acquisition = "max_variance",
        seed: int | None = None,
        refit: float | None = None,
        known: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        self._asked = ()
        self._asked_n = 1  # how many were asked for; there may have been fewer
        self._batch_end = 0  # a fit that falls into a batch waits for so many labels
        self._source: Any = None  # where `learn` takes labels from
        self._driven = False  # whether `learn` or `Run.resume` is at work
        rows, y = self._begin(
            X, gp, criterion, initial, max_labels, acquisition, seed, refit, known
        )
        if len(rows):
            self._take_all(rows.tolist(), y.tolist(), None)
        self._catch_up()

    # what is known ---------------------------------------------------------------------------

    @property
    def bounds(self) -> Array:
        """Bounds of all labels after the initial ones, under the present hyper-parameters."""
        return self._selection.bounds.copy()

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""
        return self._selection.residuals

    @property
    def unlabelled(self) -> NDArray[np.bool_]:
        """Which points have no label, and can be measured."""
        return self._selection.unlabelled

    @property
    def largest_variance(self) -> float:
        """Largest variance of an unlabelled point; 0.0 if there is none."""
        return self._selection.largest_variance()

    @property
    def model(self) -> Any:
        """The Gaussian process or classifier with the labels so far; not to be changed.

        Without a `gp`, in the units of X: one length scale per feature.
        """
        return self._built_model()

    @property
    def pending(self) -> Ints:
        """Rows of the pool that were asked for and not told."""
        return np.array(self._asked, dtype=np.int64)

    # asking ----------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """Return the point to label next, or the next n; the same ones until `tell` is called.

        Parameters
        ----------
        n : int, optional
            Number of points. The choice by variance does not look at labels: they are those that n
            single questions would have given, up to the next fit, which waits for their labels.

        Returns
        -------
        int or array of int
            Row of the pool, or rows if n is given; fewer than n if there are no more. Before all of
            them are told, another n is a ValueError. Asking goes on being possible after a stop.
        """
        count = 1 if n is None else check.count("n", n, 1)
        rows = self._asked
        if not rows or count not in (self._asked_n, len(rows)):
            self._begin_change()
            try:
                rows = self._ask(count)
            finally:
                self._busy = False
        return rows[0] if n is None else np.array(rows, dtype=np.int64)

    def _ask(self, n: int = 1) -> tuple[int, ...]:
        """Choose the next points, if that has not been done."""
        if self._asked:
            if n not in (self._asked_n, len(self._asked)):
                raise ValueError(
                    f"`n` must be {self._asked_n} as before while labels are to come "
                    f"({len(self._asked)} of the points asked for), got {check.short_repr(n)}"
                )
            return self._asked
        self._catch_up()
        t = self.n_labels
        if t >= self.most_labels:
            if t >= self.n_pool - len(self._skipped):
                rest = f", {len(self._skipped)} cannot be measured" if self._skipped else ""
                raise ValueError(f"all {t} points of the pool are labelled{rest}")
            raise ValueError(f"all {self.max_labels} labels are used: raise `max_labels`")
        count = min(n, self.most_labels - t)
        if isinstance(self._selection, Unfitted) and len(self.order) < t + count:
            more = self._random_rows(t + count - len(self.order), self.order)
            self._selection.order = np.r_[self.order, more]
        if t + count <= len(self.order):
            rows = tuple(self.order[t : t + count].tolist())
        elif count == 1:
            rows = (self._best(),)
        else:
            rows = self._best_ahead(count)
        self._asked_n, self._batch_end = n, t + len(rows)
        self._asked = rows
        return rows

    def _waits(self) -> bool:
        """Whether a fit has to wait for the labels of a batch."""
        return bool(self._asked) and self.n_labels < self._batch_end

    def _best(self) -> int:
        """Return the point that the acquisition wants next."""
        if not callable(self.acquisition):
            return self._selection.best()
        scores = check.finite_array("acquisition", self.acquisition(*self._selection.posterior()))
        if scores.shape != (self.n_pool,):
            raise ValueError(
                f"`acquisition` must return {self.n_pool} scores, got shape {scores.shape}"
            )
        return int(np.argmax(np.where(self._selection.unlabelled, scores, -np.inf)))

    def _best_ahead(self, count: int) -> tuple[int, ...]:
        """Return the next points of a choice that does not look at labels."""
        if callable(self.acquisition) or isinstance(self.gp, LaplaceClassifier):
            raise ValueError(
                f"`n` must be 1 where the choice looks at labels, got {count}: each point depends "
                "on the label before it"
            )
        t = self.n_labels
        self._make_room(t + count)
        ahead = self._selection.frozen()
        # variances do not depend on labels: any will do
        ahead.run(np.full(self.n_pool, self.gp.mean), t + count, None, True, self._threads)
        return tuple(ahead.labels[t : t + count].tolist())

    # telling ---------------------------------------------------------------------------------

    def tell(self, y: Any, index: Any = None, noise: Any = None) -> Any:
        """Take the label of the point asked for, or those of all points asked for.

        Parameters
        ----------
        y : float, None, or array_like
            The label; labels in the order of the points, if several were asked for. None or NaN:
            this point cannot be measured, and will not be asked for again.
        index : int or array_like of int, optional
            The point or points that the labels belong to, asked for or not; others that were asked
            for stay open.
        noise : float or array_like, optional
            Noise variance of these labels, if not that of the model. (Fits of hyper-parameters take
            them for labels like the others.)

        Returns
        -------
        Verdict
            What the criterion says now. A wrong number of labels is refused before any is taken; a
            stop within a batch is at its label, and the rest is recorded.
        """
        labels = _labels(y)
        values = [y] if labels is None else labels
        checked = [_label(value) for value in values]
        self._begin_change()
        try:
            rows = self._rows_told(labels is None, index, checked)
            own = self._check_told(rows, checked, noise)
            self._take_all(rows, checked, own)
            self._catch_up()
            return self.criterion.verdict
        finally:
            self._busy = False

    def _tell_one(self, index: int, y: float) -> None:
        """Take the label of a point that was asked for; the verdict is nobody's business."""
        self._begin_change()
        try:
            if index not in self._asked:
                raise RuntimeError(
                    f"point {index} has a label already, told by a callback: {y:g} is not taken"
                )
            if self._refits is not None:
                check_size("y", np.array([y]))
            self._take(index, y)
            self._catch_up()
        finally:
            self._busy = False

    def _rows_told(self, single: bool, index: Any, labels: list[float | None]) -> list[int]:
        """Return the points that labels are for."""
        count = len(labels)
        if index is not None:
            given = [index] if np.ndim(index) == 0 else index
            rows: list[int] = check.indices("index", given, self.n_pool).tolist()
            if len(rows) != count:
                raise ValueError(f"`y` must have {len(rows)} labels, one per `index`, got {count}")
            if not self._asked:
                self._catch_up()
            return rows
        asked = self._asked
        if not asked:
            raise ValueError(
                "`index` must be given: no point was asked for, and nobody knows which one "
                f"{'this label is' if single else f'these {count} labels are'} of"
            )
        if len(asked) != count or (single and len(asked) > 1):
            raise ValueError(
                f"`y` must have {len(asked)} labels, one per point asked for, got {count}; "
                "`index` tells which point a label is of"
            )
        return list(asked)

    def _check_told(self, rows: list[int], labels: list[float | None], noise: Any) -> Any:
        """Check labels before any of them is taken; return their noise, if it is their own."""
        for row in rows:
            if row not in self._asked and (self._selection.labels == row).any():
                raise ValueError(f"`index`: point {row} has a label already; `correct` replaces it")
        there = [i for i, label in enumerate(labels) if label is not None]
        values = np.array([labels[i] for i in there], dtype=np.float64)
        room = self.max_labels - self.n_labels
        if len(values) > room:
            raise ValueError(
                f"`y` must have at most {room} labels, got {len(values)}: all {self.max_labels} "
                "labels are used; raise `max_labels`"
            )
        if noise is not None and isinstance(self.gp, LaplaceClassifier):
            raise ValueError(
                f"`noise` must be None for a classifier, got {check.short_repr(noise)}"
            )
        own = None if noise is None else check.label_noise(noise, 0.0, len(labels))
        if self._refits is None:
            check_labels(self.gp, "y", values)
        else:
            check_size("y", values)
        if len(values) > 1 and not isinstance(self._selection, Unfitted):
            # Of a batch all labels are taken, or none: they are tried on a copy.
            self._make_room(self.n_labels + len(values))
            trial = self._selection.frozen()
            for i, value in zip(there, values.tolist(), strict=True):
                trial.accept(rows[i], value, None if own is None else float(own[i]))
        return own

    def _taken(self, row: int) -> None:
        """Do not ask for a point any more."""
        if row in self._asked:
            self._asked = tuple(other for other in self._asked if other != row)

    def skip(self) -> Any:
        """Say that the point asked for cannot be measured; it is not asked for again.

        Returns
        -------
        Verdict
            What the criterion says now. An initial point is replaced by a random one.
        """
        return self.tell(None)

    def correct(self, index: Any, y: Any) -> Any:
        """Replace a label that was wrong, or several; all labels are taken anew.

        Parameters
        ----------
        index : int or array_like of int
            The point or points.
        y : float or array_like
            The right label, or labels in the order of the points.

        Returns
        -------
        Verdict
            What the criterion says now. A stop stays. Hyper-parameters that are learnt on the way
            are fitted anew at once; else nothing is decided before the next label.
        """
        given, values = ([index], [y]) if np.ndim(index) == 0 else (index, y)
        rows: list[int] = check.indices("index", given, self.n_pool).tolist()
        if np.ndim(index) == 0:
            labels = np.array([check.real("y", y)])
        else:
            labels = check.vector("y", values, len(rows))
        if not rows:
            return self.criterion.verdict
        self._begin_change()
        try:
            known = set(self._selection.labels.tolist())
            for row in rows:
                if row not in known:
                    raise ValueError(f"`index`: point {row} has no label yet; `tell` takes one")
            if self._refits is None:
                check_labels(self.gp, "y", labels)
            else:
                check_size("y", labels)
            self._tell_news()
            self._correct(rows, labels)
            return self.criterion.verdict
        finally:
            self._busy = False

    def refit(self) -> Any:
        """Fit the hyper-parameters now, to all labels so far; the criterion decides.

        By themselves fits come as the labels grow. After a fit to the same labels, nothing happens:
        the same fit twice confirms no stop.

        Returns
        -------
        Verdict
            What the criterion says now.

        Examples
        --------
        >>> import numpy as np
        >>> from fastal import ActiveLearner, MovementBelow
        >>> X = np.linspace(0, 10, 40)
        >>> known = np.arange(0, 33, 3)
        >>> learner = ActiveLearner(X, criterion=MovementBelow(), known=(known, np.sin(X[known])))
        >>> _ = learner.tell(np.sin(X[1]), index=1)
        >>> _ = learner.refit()
        >>> [fit.n_labels for fit in learner.refits]
        [11, 12]
        """
        self._begin_change()
        try:
            if self._refits is None:
                raise ValueError("`refit` needs a learner that fits its hyper-parameters, got none")
            if self.n_labels < LEAST_LABELS:
                raise ValueError(
                    f"a fit needs {LEAST_LABELS} labels, got {self.n_labels}: "
                    f"{LEAST_LABELS - self.n_labels} are missing"
                )
            self._catch_up()
            if not self.refits or self.refits[-1].n_labels < self.n_labels:
                self._refit()
            return self.criterion.verdict
        finally:
            self._busy = False

    def extend_pool(self, X_new: ArrayLike) -> Ints:
        """Add points to the pool.

        Parameters
        ----------
        X_new : array_like, shape (m, d)
            The new points. They stand behind the others.

        Returns
        -------
        array of int
            Their rows.
        """
        if isinstance(self.points, PoolElsewhere) and not self.points.has_all:
            raise TypeError("`extend_pool` needs a pool in memory: `X` is a dask array")
        points = check.points("X_new", X_new, self.points.shape[1])
        new = row_names(X_new)
        self._begin_change()
        try:
            n, m = self.n_pool, len(points)
            if m:
                names = self.names
                if names is not None:
                    names = names + (list(range(n, n + m)) if new is None else new)
                self._extend(points, names)
            return np.arange(n, n + m)
        finally:
            self._busy = False

    # many at once ----------------------------------------------------------------------------

    def _run_compiled(self, y: Array, target: int, threads: int, past_stop: bool = False) -> bool:
        """Label points up to `target`, or until the criterion stops: compiled calls between fits.

        Parameters
        ----------
        y : array, shape (n,)
            Labels of all points.
        target : int
            Number of labels.
        threads : int
            Threads for large pools.
        past_stop : bool
            Whether to go on after a stop.

        Returns
        -------
        bool
            False if Python is needed between the labels that are left.
        """
        self._threads = threads
        self._begin_change()
        try:
            self._catch_up()
            rule = self._compiled_rule()
            if rule is None:
                return False
            target = min(target, self.most_labels)
            while self.n_labels < target and (past_stop or not self.stopped):
                end = target if self._refits is None else min(target, self._refits.next_at)
                self._selection.reserve(end if self._refits is not None else target)
                try:
                    seen = rule if self.fitted else None
                    self._selection.run(y, end, seen, past_stop, threads)
                except BaseException:
                    self._selection.settle()
                    self._show_missing()
                    raise
                finally:
                    self._asked = ()
                self._selection.settle()
                if self._refits is None:
                    break
                self._catch_up()
            return True
        finally:
            self._busy = False

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
        from fastal.learning.run import recorded  # which runs learners

        workers = check.threads("threads", threads)
        checked = None if test is None else check_test_set(test, self.points.shape[1])
        return recorded(self, checked, workers, self.criterion.copy())

    # keeping ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`, which wants the pool again; its checksum is kept.
        """
        return saved.state_of_learner(self)

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
            It goes on with the same choices and decisions; nothing is decided anew. What is damaged
            or does not fit the pool raises a ValueError.
        """
        return saved.restored_learner(cls, state, X, acquisition)

    def __getstate__(self) -> dict[str, Any]:
        selection = self._selection.frozen()
        return vars(self) | {
            "criterion": self.criterion.copy(),
            "_selection": selection,
            "_model": selection.model,
            "_refits": deepcopy(self._refits),
            "_skipped": list(self._skipped),
            "_noises": dict(self._noises),
            "_driven": False,
            "_busy": False,
        }

    def __copy__(self) -> ActiveLearner:
        return deepcopy(self)

    def __repr__(self) -> str:
        said = f"{self.n_labels} of {self.n_pool} labels, {self.criterion.verdict}"
        return f"ActiveLearner({said})"


def _labels(y: Any) -> list[Any] | None:
    """Return labels as a list; None if there is only one."""
    if y is None or isinstance(y, str | bytes):
        return None
    if isinstance(y, list | tuple):
        return list(y)
    labels = check.as_array("y", y)  # a frame of one column is its column
    if labels.ndim == 0:
        return None
    if labels.ndim != 1:
        raise ValueError(f"`y` must be a label or a list of labels, got shape {labels.shape}")
    return list(labels)


def _label(value: Any) -> float | None:
    """Check a label; None and NaN stand for a point that cannot be measured."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if value is None or type(value).__name__ == "NAType":  # that of pandas
        return None
    if isinstance(value, float | np.floating) and value != value:
        return None
    return check.real("y", value)
