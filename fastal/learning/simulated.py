"""A campaign over a pool whose labels are all known, with fits on the way, for `simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastal._types import Array, Ints
from fastal.learning.errors import test_errors
from fastal.learning.learner import ActiveLearner
from fastal.stopping.count import FixedBudget
from fastal.stopping.replay import Fitted

if TYPE_CHECKING:
    from fastal.learning.refit import Refit
    from fastal.learning.selection import ErrorCurves
    from fastal.models.gp import GaussianProcess
    from fastal.stopping.criterion import Criterion


class SimulatedRun(NamedTuple):
    """What came of a simulated campaign."""

    order: Ints  # (T,) points in the order of their labels
    bounds: Array  # of the labels after the initial ones, under the last fit
    stopped_at: int | None  # number of bounds at the stop
    fits: tuple[Fitted, ...]
    errors: ErrorCurves | None


class _Recorded(ActiveLearner):
    """A learner that keeps the bounds under each of its fits."""

    def note_fits(self, y: Array, max_labels: int, past_stop: bool) -> tuple[Fitted, ...]:
        """Label points up to the stop or the end; return the fits as they came."""
        self._fits: list[Fitted] = []
        self._since = (0, False)  # number of labels at the last fit, and whether it is at an edge
        if not self._run_compiled(y, max_labels, 1, past_stop):
            raise TypeError(f"{self.criterion!r} has to be asked in Python after each label")
        self._note_fit_before()
        return tuple(self._fits)

    def _note_fit_before(self, new: Refit | None = None) -> None:
        if self.gp is not None:
            n, at_edge = self._since
            bounds = self._selection.bounds.copy()
            self._fits.append(Fitted(n, at_edge, self.gp, bounds))
        if new is not None:
            self._since = new.n_labels, new.at_edge


def simulated_run(
    points: Array,
    y: Array,
    *,
    gp: GaussianProcess | None,
    criterion: Criterion | None,
    refit: float,
    initial: int,
    max_labels: int,
    acquisition: str,
    seed: int,
    past_stop: bool,
    test: tuple[Array, Array] | None,
) -> SimulatedRun:
    """Label the points of a pool, the first `initial` first, to the stop or to the end.

    Parameters
    ----------
    points : array, shape (n, d)
        The pool.
    y : array, shape (n,)
        Its labels.
    gp : GaussianProcess, optional
        As in `learn`.
    criterion : Criterion, optional
        A criterion with a compiled rule. None: nothing stops the run.
    refit : float
        How much the labels grow between two fits.
    initial, max_labels : int
        Labels that come first, and labels in all.
    acquisition : {"max_variance", "random"}
        How the next point is chosen.
    seed : int
        Seed of what is random.
    past_stop : bool
        Whether to go on after a stop.
    test : tuple of arrays, optional
        Inputs and labels to compute errors on.

    Returns
    -------
    SimulatedRun
        Order, bounds, stop, fits and errors.
    """
    learner = _Recorded(
        points,
        gp=gp,
        criterion=FixedBudget(len(y) + 1) if criterion is None else criterion,
        initial=np.arange(initial),
        max_labels=max_labels,
        acquisition=acquisition,
        seed=seed,
        refit=refit,
    )
    fits = learner.note_fits(y, max_labels, past_stop)
    return SimulatedRun(
        learner._selection.labels.copy(),
        learner.bounds,
        None if criterion is None else learner.criterion.stopped_at,
        fits,
        None if test is None else test_errors(learner, *test, 1),
    )
