"""learn: active learning over a pool until the criterion stops it, and its result, a Run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._progress import ProgressBar, logger
from fastal._types import Array, Ints
from fastal.learning.inputs import check_label, check_labels, check_test_set, check_threads
from fastal.learning.learner import ActiveLearner
from fastal.learning.refit import check_size
from fastal.runs import ROUNDING, movement_left
from fastal.stopping.combine import first_of
from fastal.stopping.still import MovementBelow, StillTrace, window_means
from fastal.stopping.stopper import Stopper
from fastal.stopping.verdict import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastal.learning.inputs import Acquisition, Model
    from fastal.learning.selection import ErrorCurves
    from fastal.stopping.criterion import Criterion


class Run:
    """Result of active learning over a pool.

    Attributes
    ----------
    indices : array of int
        Rows of the pool in the order of their labels.
    labels : array
        The labels.
    names : list or None
        Row names of `indices`, if the pool had some.
    bounds : array
        Bound of each label after the initial ones, without C.
    n_labels, n_initial, n_pool : int
        Number of labels, of initial ones among them, and of points.
    stopped : bool
        Whether the criterion stopped.
    stopped_at : int or None
        Number of labels at the stop.
    verdict : Verdict
        What the criterion says.
    errors : array or None
        Expected loss on the test set after 1, 2, ... labels.
    rmse : array or None
        Root mean square of y minus the posterior mean on the test set after 1, 2, ... labels, in
        the units of y; for a classifier, of one minus the probability of the class that is there.
    left : array
        Share of all movement of the model that is still to come after each bound (see
        `MovementBelow`), whatever the criterion; NaN where it is not defined.
    refits : tuple of Refit
        The fits of the hyper-parameters, in order; none if they were given.
    search_box : tuple of float or None
        The least and the largest length scale that the fits can find, in units of `Refit`.
    skipped : array of int
        Rows of the pool that could not be measured.
    criterion : Stopper
        The criterion with all bounds.

    Notes
    -----
    With hyper-parameters that are learnt on the way, `bounds` are those under the last fit,
    `errors` is minus the logarithm of the predictive density under the fit of each moment, and
    `errors` and `rmse` are NaN before the first fit.
    """

    def __init__(
        self, learner: ActiveLearner, errors: ErrorCurves | None, test: Any, criterion: Criterion
    ) -> None:
        self._learner = learner
        self._test = test
        self._gp: Any = None
        selection = learner._selection
        self.indices: Ints = selection.labels.copy()
        self.labels: Array = selection.y.copy()
        self.bounds: Array = selection.bounds.copy()
        self.n_labels = len(self.indices)
        self.n_initial = min(self.n_labels, selection.n_initial)
        self.n_pool = learner.n_pool
        self.names = None if learner.names is None else [learner.names[i] for i in self.indices]
        self.criterion = criterion
        self.refits = learner.refits
        self.search_box = learner.search_box
        self.skipped: Ints = learner.skipped
        self._prior, self._points = learner.gp, learner.points
        self._noise = learner._noise_of(self.indices) if learner.fitted else {}
        self._most = learner.most_labels
        self._horizon = max(0, self._most - selection.n_initial)
        self.errors: Array | None = None if errors is None else errors.loss
        self.rmse: Array | None = None if errors is None else errors.rmse

    @property
    def left(self) -> Array:
        """Share of all movement of the model that is still to come after each bound.

        Up to the end of the pool or of `max_labels`, whatever horizon the criterion has.
        """
        if not self._horizon or (self.bounds < ROUNDING).any():
            return np.full(len(self.bounds), np.nan)
        return movement_left(self.bounds, self._horizon)

    def trace(self) -> StillTrace:
        """Return the mean of the last bounds and what is still to come, after each bound.

        Returns
        -------
        StillTrace
            As the criterion's first `MovementBelow` reckons, with a horizon of its own if it has
            one; else with that of `left`.
        """
        still = first_of(self.criterion, MovementBelow)
        if still is not None and len(still) == len(self.bounds):
            return still.trace()
        return StillTrace(window_means(self.bounds), self.left)

    @property
    def stopped(self) -> bool:
        """Whether the criterion stopped."""
        return self.criterion.stopped

    @property
    def stopped_at(self) -> int | None:
        """Number of labels at the stop, or None."""
        at = self.criterion.stopped_at
        return None if at is None else at + self.n_initial

    @property
    def verdict(self) -> Any:
        """What the criterion says, and why."""
        return self.criterion.verdict

    @property
    def savings(self) -> float:
        """Share of the pool that need not be labelled; 0.0 without a stop."""
        return 0.0 if self.stopped_at is None else 1 - self.stopped_at / self.n_pool

    @property
    def gp(self) -> Any:
        """The Gaussian process or classifier with all labels, in units of X."""
        if self._gp is None:
            if self._learner.gp is self._prior and self._is_of(self._learner):
                self._gp = self._learner.model.copy()
                self._gp.rewind(self.n_labels)
            elif self._prior is None:
                raise ValueError(
                    f"there is no model before the first fit; the run has {self.n_labels} labels"
                )
            else:  # the learner has been fitted anew since, or its labels were corrected
                self._gp = self._prior.copy(quiet=True)
                self._gp.add_batch(self._points[self.indices], self.labels, **self._noise)
        return self._gp

    def _is_of(self, learner: ActiveLearner) -> bool:
        """Whether a learner begins with the labels of this run."""
        selection, n = learner._selection, self.n_labels
        return np.array_equal(selection.labels[:n], self.indices) and np.array_equal(
            selection.y[:n], self.labels
        )

    @property
    def prior(self) -> Any:
        """The Gaussian process or classifier without labels; not to be changed."""
        return self._prior

    @property
    def p_values(self) -> Array:
        """p-value of the runs test after each bound."""
        again = self.criterion.replace() if isinstance(self.criterion, Stopper) else Stopper()
        again.extend(self.bounds)
        return again.trace().p_values

    def resume(
        self, labels: ArrayLike | Callable[[int, Array], float] | None = None, *,
        max_labels: int | None = None, test: Any = None, threads: int | None = None,
        X: Any = None,
    ) -> Run:  # fmt: skip
        """Go on after a stop, an oracle's failure, or a spent budget.

        Parameters
        ----------
        labels : array_like or callable, optional
            Labels as in `learn`; by default those that `learn` was given.
        max_labels : int, optional
            Most labels in all; by default the whole pool if this run has stopped, else as before.
        test : tuple of arrays, optional
            Test set; by default the run's.
        threads : int, optional
            Threads, as in `learn`.
        X : array_like or dask.array.Array, optional
            The same pool once more, where it is to be had now: a Dask cluster may be lost, and the
            run goes on with another one.

        Returns
        -------
        Run
            The longer run. A stop stays recorded, and does not end it again. This one stays as it
            is, but cannot be resumed a second time.
        """
        learner = self._learner
        given = None if max_labels is None else check.count("max_labels", max_labels, 1)

        # all checks before the first change
        check_threads(threads)
        if test is not None:
            check_labels(learner.gp, "test", check_test_set(test, learner.points.shape[1])[1])
        if labels is not None and not callable(labels):
            check_source(learner, check.vector("y", labels, learner.n_pool))

        def prepare() -> None:
            if learner.n_labels != self.n_labels:
                raise ValueError(
                    f"the run has been resumed already, up to {learner.n_labels} labels"
                )
            if not self._is_of(learner) or learner.refits != self.refits:
                raise ValueError("labels of the run have been corrected since: make another run")
            most = given
            if most is None:
                most = learner.n_pool if self.finished else learner.max_labels
            if not (self.n_labels <= most <= learner.n_pool):
                raise ValueError(
                    f"`max_labels` must be between {self.n_labels} and {learner.n_pool}, got "
                    f"{check.short_repr(most)}"
                )
            if X is not None:
                learner._move(X)
            if learner._refits is None:
                learner._selection.reserve(most)
            learner.criterion = self.criterion.copy()
            learner._max_labels = most
            learner._whole = given is None and (self.finished or learner._whole)
            learner._tell_horizon()

        source = learner._source if labels is None else labels
        test = self._test if test is None else test
        return run_campaign(learner, source, test, None, threads, False, prepare)

    @property
    def finished(self) -> bool:
        """Whether the criterion stopped or the budget is spent."""
        return self.stopped or self.n_labels >= self._most

    def plot(self, axes: Any = None) -> tuple[Axes, ...]:
        """Draw the bounds, what is still to come, and the error curve if there is one.

        A run of a `Stopper` also shows the runs and the p-value.

        Parameters
        ----------
        axes : sequence of matplotlib axes, optional
            Where to draw.

        Returns
        -------
        tuple of matplotlib axes
            Those of the bounds and, with a test set, of the errors.
        """
        from fastal.plotting.run import plot_run

        return plot_run(self, axes)

    def plot_refits(self, axes: Any = None) -> Any:
        """Draw the course of the hyper-parameters, to see whether they still move.

        Parameters
        ----------
        axes : sequence of matplotlib axes, optional
            Where to draw the length scale, and noise and amplitude; a new figure by default.

        Returns
        -------
        tuple of matplotlib axes
            Those of the length scale, and of noise and amplitude.
        """
        from fastal.plotting.refits import plot_refits

        return plot_refits(self, axes)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            Everything but the pool.
        """
        return {
            "kind": "Run",
            "version": 1,
            "n_pool": self.n_pool,
            "n_initial": self.n_initial,
            "n_labels": self.n_labels,
            "indices": self.indices.tolist(),
            "names": None if self.names is None else [str(name) for name in self.names],
            "labels": self.labels.tolist(),
            "bounds": self.bounds.tolist(),
            "p_values": self.p_values.tolist(),
            "errors": None if self.errors is None else _listed(self.errors),
            "rmse": None if self.rmse is None else _listed(self.rmse),
            "left": _listed(self.left),
            "stopped": self.stopped,
            "stopped_at": self.stopped_at,
            "savings": self.savings,
            "verdict": str(self.verdict),
            "criterion": self.criterion.to_dict(),
            "refits": [fit._asdict() for fit in self.refits],
            "skipped": self.skipped.tolist(),
            "gp": None if self._prior is None else self._prior.to_dict(),
        }

    def __repr__(self) -> str:
        return f"Run({self.n_labels} of {self.n_pool} labels; {self.verdict})"


def _listed(values: Array) -> list[float | None]:
    """Return numbers for JSON, which has no NaN."""
    return [None if np.isnan(value) else value for value in values.tolist()]


def recorded(
    learner: ActiveLearner, test: tuple[Array, Array] | None, threads: int, criterion: Criterion
) -> Run:
    """Return the run of a learner so far; whoever calls has its lock."""
    errors = None
    if test is not None:
        from fastal.learning.errors import test_errors  # kernels that most runs do not need

        errors = test_errors(learner, *test, threads)
    return Run(learner, errors, test, criterion)


def check_source(learner: ActiveLearner, y: Array) -> None:
    """Check labels of all points; warn of those far from a process that will not be fitted."""
    if learner._refits is None:
        check_labels(learner.gp, "y", y)
    else:
        check_size("y", y)


def learn(
    X: ArrayLike,
    y_or_oracle: ArrayLike | Callable[[int, Array], float],
    *,
    gp: Model | None = None,
    criterion: Criterion,
    refit: float | None = None,
    initial: int | ArrayLike | None = None,
    max_labels: int | None = None,
    acquisition: Acquisition = "max_variance",
    test: Any = None,
    on_label: Callable[[ActiveLearner], object] | None = None,
    threads: int | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> Run:
    """Label points of a pool until the criterion stops or the labels are used up.

    Parameters
    ----------
    X : array_like, shape (n, d)
        The pool; shape (n,) for one feature. A pandas object keeps its row names in the result. A
        dask array stays on the workers of its cluster.
    y_or_oracle : array_like, shape (n,), or callable
        Labels of all points (a simulation), or ``oracle(index, x) -> float`` (a campaign).
    gp : GaussianProcess or LaplaceClassifier, optional
        The model, without labels; it is copied. None: nobody knows its hyper-parameters, and they
        are learnt on the way (see `ActiveLearner`).
    criterion : Stopper or another criterion
        When to stop; it is copied, without its bounds.
    refit : float, optional
        How much the labels grow between two fits of the hyper-parameters, above 1. By default 1.2
        without a `gp`, and no fits with one.
    initial : int or array_like of int, optional
        How many random labels come first, or which; they give no bounds. By default one, and five
        without a `gp`.
    max_labels : int, optional
        Most labels in all, the initial ones included; the whole pool by default.
    acquisition : {"max_variance", "uncertainty", "random"} or callable
        How the next point is chosen, see `ActiveLearner`. Of equal variances the lower index wins.
    test : tuple of arrays, optional
        Inputs and labels on which to compute the expected loss after each label, the mean of
        ``-E log p(y | f)`` under the posterior.
    on_label : callable, optional
        Called with the `ActiveLearner` after every label.
    threads : int, optional
        Threads for large pools and test sets, at most 4,096; all cores by default. They do not
        change results.
    seed : int, optional
        Seed of what is random.
    progress : bool
        Whether to show a progress bar with the current p-value (tqdm).

    Returns
    -------
    Run
        Its result. If the oracle raises, or returns no finite number, the exception has the
        run so far as its attribute ``run``, which can be resumed.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, Stopper, learn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-5, 15, 200)
    >>> y = np.exp(-((X - 2) ** 2) / 2) + 0.05 * rng.standard_normal(200)
    >>> run = learn(X, y, gp=GaussianProcess(1.5, 0.0025), criterion=Stopper(), seed=1)
    >>> run.stopped, run.n_labels < 100, len(run.bounds) == run.n_labels - 1
    (True, True, True)
    """
    if on_label is not None and not callable(on_label):
        raise TypeError(f"`on_label` must be callable, got {check.short_repr(on_label)}")
    learner = ActiveLearner(
        X,
        gp=gp,
        criterion=criterion,
        initial=initial,
        max_labels=max_labels,
        acquisition=acquisition,
        seed=seed,
        refit=refit,
    )
    return run_campaign(
        learner, y_or_oracle, test, on_label, threads, check.flag("progress", progress)
    )


def run_campaign(
    learner: ActiveLearner,
    source: Any,
    test: Any,
    on_label: Callable[[ActiveLearner], object] | None,
    threads: int | None,
    progress: bool,
    prepare: Callable[[], None] | None = None,
) -> Run:
    """Label points of a learner's pool until it is finished; return the run."""
    workers = check_threads(threads)
    if test is not None:
        test = check_test_set(test, learner.points.shape[1])
        check_labels(learner.gp, "test", test[1])
    driving = False
    try:
        if learner._driven:
            raise RuntimeError("the run is going on already")
        if prepare is not None:
            prepare()
        learner._source = source
        learner._driven = driving = True
        _label_all(learner, source, on_label, workers, progress)
        # who was called with the learner may go on with it
        criterion = learner.criterion if on_label is None else learner.criterion.copy()
        run = recorded(learner, test, workers, criterion)
        if logger.isEnabledFor(logging.INFO):  # a verdict costs more than a message
            logger.info("%d of %d labels; %s", run.n_labels, learner.n_pool, criterion.verdict)
        return run
    finally:
        if driving:
            learner._driven = False


def _label_all(
    learner: ActiveLearner,
    source: Any,
    on_label: Callable[[ActiveLearner], object] | None,
    workers: int,
    progress: bool,
) -> None:
    """Label points until the stop; the learner is nobody's while labels are made or looked at."""
    resumed = learner.stopped
    try:
        if not callable(source):
            y = check.vector("y", source, learner.n_pool)
            check_source(learner, y)
            compilable = on_label is None and not progress
            if compilable and learner._run_compiled(y, learner.max_labels, workers, resumed):
                return
            source = y.__getitem__
            oracle: Callable[[int], Any] = source
        else:

            def oracle(index: int) -> Any:
                return source(index, learner.points[index].copy())  # the pool may have grown

        learner._catch_up()  # a fit that Ctrl-C kept from the last label may stop it
        with ProgressBar(progress, learner.max_labels, learner.n_labels, unit="label") as bar:
            while learner.n_labels < learner.most_labels and (resumed or not learner.stopped):
                index = learner.ask()
                label = check_label(oracle(index), index)
                learner._tell_one(index, label)
                if on_label is not None:
                    on_label(learner)
                bar.advance(note=_progress_note(learner.criterion) if bar.shown else None)
    except BaseException as error:
        # whatever happened, the labels so far are not lost
        error.run = learner.run()  # type: ignore[attr-defined]
        raise


def _progress_note(criterion: Criterion) -> str | None:
    """Return what to show beside a progress bar: the number that the criterion goes by."""
    if isinstance(criterion, Stopper):
        return f"p = {criterion.p_value:.2g}"
    left = criterion.verdict.left
    return f"{percent(left)} to come" if left > 0 else None
