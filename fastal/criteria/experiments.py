"""The criteria of the paper's experiments, and what they have in common.

Every criterion takes one number per label by `push`, or computes it by `update`; it says
`stopped`, `stopped_at` and its `verdict`, and combines with ``&`` and ``|``: ``Stopper() |
FixedBudget(200)`` stops at 200 labels at the latest, ``Stopper() & MinLabels(30)`` not before 30.

Those of the paper's experiments (section 5.2) need a threshold that depends on the problem, and all
but the largest variance need more than a bound. Next to each stands a function that computes its
measure from a labelled process, and one that computes the measures of a whole run. Criteria from
related work, which use a classifier's predictions, are in `fastal.criteria.predictions`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.expected_loss import expected_loss as loss_of_total
from fastal._types import Array
from fastal.criteria.finished_run import Record, prior_loss
from fastal.criteria.label_inverses import LabelInverses
from fastal.models.gp import GaussianProcess
from fastal.stopping.measured import Measured

if TYPE_CHECKING:
    from fastal.models.buffers import Labels


class RunCriterion(Measured):
    """A criterion whose measure a finished run gives for all labels at once."""

    def __init__(self, threshold: float, **settings: Any) -> None:
        super().__init__(threshold=check.real("threshold", threshold), **settings)

    def measures_of_run(self, run: Any) -> Array:
        """Return the measures of a finished run.

        Parameters
        ----------
        run : Record
            A campaign that has ended.

        Returns
        -------
        array
            One measure for each bound.
        """
        return self._after_labels(run)[run.n_initial :]

    @abstractmethod
    def _after_labels(self, run: Record) -> Array:
        """Return the measure after each label of a run."""


class ModelCriterion(RunCriterion):
    """A criterion that measures a Gaussian process with its labels."""

    @abstractmethod
    def _measure_of(self, gp: GaussianProcess) -> float:
        """Return the measure of a labelled process; NaN if it cannot be computed yet."""

    def measure(self, campaign: Any) -> float:
        """Return the measure of a campaign's labels so far.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.

        Returns
        -------
        float
            A number; NaN if there is none yet.
        """
        return self._measure_of(campaign.model)

    def update(self, gp: GaussianProcess) -> bool:
        """Take a process with all labels so far; return whether there has been a stop.

        Parameters
        ----------
        gp : GaussianProcess
            With at least one label; it is not changed.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._take(self._measure_of(_labelled(gp)), self._seen + 1)


def _labelled(gp: Any) -> GaussianProcess:
    if not isinstance(gp, GaussianProcess):
        raise TypeError(f"`gp` must be a GaussianProcess, got {check.short_repr(gp)}")
    if gp.n_labels == 0:
        raise ValueError("`gp` must have labels, got none")
    return gp


def finished_run(gp: Any, X: ArrayLike, y: ArrayLike, order: Any = None) -> Record:
    """Return the run of labels that came in this order; `X` holds a pool with `order`."""
    if not isinstance(gp, GaussianProcess):
        raise TypeError(f"`gp` must be a GaussianProcess, got {check.short_repr(gp)}")
    points = check.points("X", X, gp.prior.features)
    labels = check.vector("y", y, len(points))
    places = np.arange(len(points)) if order is None else order
    return Record(gp, gp.prior.scale("X", points), places, labels[places], 0, np.empty(0))


class MaxVariance(RunCriterion):
    """Stop when the variance of every unlabelled point is small.

    The paper's regression counterpart of `MaxUncertainty` (section 5.2, criterion 4).

    Parameters
    ----------
    threshold : float
        Largest variance of f (without noise) that is small enough.

    Examples
    --------
    >>> from fastal.criteria.experiments import MaxVariance
    >>> criterion = MaxVariance(0.1)
    >>> criterion.update([0.5, 0.02]), criterion.update([0.04, 0.01])
    (False, True)
    >>> criterion.verdict.reason
    'largest variance of an unlabelled point (0.04) is at most 0.1'
    """

    _subject = "largest variance of an unlabelled point"

    def __init__(self, threshold: float) -> None:
        super().__init__(check.positive("threshold", threshold))

    def update(self, var: ArrayLike) -> bool:
        """Take the variances of the unlabelled points; return whether there has been a stop.

        Parameters
        ----------
        var : array_like
            Variances of f, without noise; none if all points are labelled.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        largest = float(np.max(check.not_negative("var", var), initial=0.0))
        return self._take(largest, self._seen + 1)

    def measure(self, campaign: Any) -> float:
        """Return the largest variance of an unlabelled point of a campaign.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.

        Returns
        -------
        float
            A variance of f; 0 if all are labelled.
        """
        return float(campaign.largest_variance)

    def _after_labels(self, run: Record) -> Array:
        return run.largest_variances()


def max_variances(gp: GaussianProcess, X: ArrayLike, order: ArrayLike) -> Array:
    """Return the largest variance of an unlabelled point after each label.

    Parameters
    ----------
    gp : GaussianProcess
        The model; labels of its own do not count.
    X : array_like, shape (n, d)
        The pool.
    order : array_like of int
        Rows in the order of their labels.

    Returns
    -------
    array
        One variance per label; 0 when all are labelled.

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria.experiments import max_variances
    >>> max_variances(GaussianProcess(noise=0.01), [0.0, 1.0, 9.0], [0, 2]).round(4)
    array([1.    , 0.6358])
    """
    points = check.points("X", X, None)
    rows = check.indices("order", order, len(points), "row numbers")
    return finished_run(gp, points, np.zeros(len(points)), rows).largest_variances()


class _InverseCriterion(ModelCriterion):
    """A criterion that needs the inverse of the labels' covariance, which grows with them."""

    # What the last measure needed, to save time: it is not copied and not saved, and taken out
    # while the next one is computed.
    _spare: LabelInverses | None = None

    def _from_inverses(
        self, labels: Labels, kappa: float, compute: Callable[[LabelInverses], float]
    ) -> float:
        """Compute a measure from the inverses of these labels: those of fewer labels, grown."""
        inverses, self._spare = self._spare or LabelInverses(kappa), None
        measure = compute(inverses.follow(labels))
        self._spare = inverses
        return measure

    def reset(self) -> Self:
        """Forget all steps; return the criterion itself."""
        self._spare = None
        return super().reset()


class CrossValidation(_InverseCriterion):
    """Stop when cross-validation on the labels so far gives a small expected loss.

    The paper's criterion 3 (section 5.2). Label i is in fold i mod `folds`. Leaving a fold out
    needs no refit: with A = (K + noise I)^-1 its residuals are ``A_FF^-1 (A y)_F`` and its latent
    variances ``diag(A_FF^-1) - noise``.

    Parameters
    ----------
    threshold : float
        Expected negative log likelihood that is small enough.
    folds : int
        Number of folds; with fewer labels there is no measure.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria.experiments import CrossValidation
    >>> gp, criterion = GaussianProcess(noise=0.01), CrossValidation(0.0)
    >>> x = np.arange(20) * 0.3
    >>> for t in range(20):
    ...     _ = gp.add(x[t], np.sin(x[t]))
    ...     _ = criterion.update(gp)
    >>> criterion.stopped_at
    5
    """

    folds: int

    _subject = "expected loss by cross-validation"

    def __init__(self, threshold: float, folds: int = 5) -> None:
        super().__init__(threshold, folds=check.count("folds", folds, 2, check.INT64_MAX))

    def _measure_of(self, gp: GaussianProcess) -> float:
        """Return the expected loss by cross-validation; NaN with fewer labels than folds."""
        labels = _labelled(gp).snapshot()
        if len(labels.y) < self.folds:
            return math.nan
        return self._from_inverses(labels, 0.0, lambda known: known.cross_validation(self.folds))

    def _after_labels(self, run: Record) -> Array:
        return run.cross_validation(self.folds)


def cross_validation_error(gp: GaussianProcess, folds: int = 5) -> float:
    """Return the expected negative log likelihood by cross-validation, without a refit.

    Parameters
    ----------
    gp : GaussianProcess
        With at least `folds` labels.
    folds : int
        Number of folds; label i is in fold i mod `folds`.

    Returns
    -------
    float
        Mean over the labels, each held out with its fold.

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria.experiments import cross_validation_error
    >>> gp = GaussianProcess(noise=0.01)
    >>> _ = gp.add_batch([0.0, 0.5, 1.0], [0.1, 0.2, 0.3])
    >>> round(cross_validation_error(gp, folds=3), 4)
    3.1745
    """
    number = check.count("folds", folds, 2)
    labels = _labelled(gp).snapshot()
    if len(labels.y) < number:
        raise ValueError(
            f"`gp` must have at least {check.short_repr(number)} labels for so many `folds`, got "
            f"{len(labels.y)}"
        )
    return LabelInverses().follow(labels).cross_validation(number)


class PACBayes(_InverseCriterion):
    """Stop when a PAC-Bayesian bound of the expected loss is small.

    The paper's criterion 1 (section 5.2), by the bound of Alquier, Ridgway and Chopin (2016):
    expected loss on the labels + (KL(q || p) - log delta) / t + loss_range^2 / 2.

    Parameters
    ----------
    threshold : float
        Bound that is small enough.
    loss_range : float
        Range b - a of the loss; the paper takes the range of the labels.
    delta : float
        Probability that the bound does not hold.
    kappa : float
        Added to the diagonals of both covariances in the KL, to stabilise it.

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria.experiments import PACBayes
    >>> gp, criterion = GaussianProcess(noise=0.01), PACBayes(10.0, loss_range=1.0)
    >>> _ = gp.add(0.0, 0.5)
    >>> criterion.update(gp), criterion.verdict.reason
    (True, 'PAC-Bayesian bound (5.812) is at most 10')
    """

    loss_range: float
    delta: float
    kappa: float

    _subject = "PAC-Bayesian bound"

    def __init__(
        self, threshold: float, loss_range: float, delta: float = 0.01, kappa: float = 0.01
    ) -> None:
        super().__init__(
            threshold,
            loss_range=check.zero_or_more("loss_range", loss_range),
            delta=check.confidence("delta", delta),
            kappa=check.zero_or_more("kappa", kappa),
        )

    def _measure_of(self, gp: GaussianProcess) -> float:
        """Return the PAC-Bayesian bound of a labelled process."""
        labels = _labelled(gp).snapshot()
        moving = self._from_inverses(labels, self.kappa, LabelInverses.pac_bayes)
        return float(self._bound(moving, len(labels.y)))

    def _after_labels(self, run: Record) -> Array:
        all_bounds: Array = self._bound(run.pac_bayes(self.kappa), np.arange(1, len(run.y) + 1))
        return all_bounds

    def _bound(self, moving: Any, t: Any) -> Any:
        """Return the bound after t labels: what moves, and what does not."""
        return moving - math.log(self.delta) / t + self.loss_range**2 / 2


def pac_bayes_bound(
    gp: GaussianProcess, loss_range: float, delta: float = 0.01, kappa: float = 0.01
) -> float:
    """Return the PAC-Bayesian bound of the expected loss (see `PACBayes`).

    Parameters
    ----------
    gp : GaussianProcess
        With labels.
    loss_range, delta, kappa : float
        As in `PACBayes`.

    Returns
    -------
    float
        The bound, in nats.

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria.experiments import pac_bayes_bound
    >>> gp = GaussianProcess(noise=0.01)
    >>> _ = gp.add(0.0, 0.5)
    >>> round(pac_bayes_bound(gp, loss_range=1.0), 4)
    5.8124
    """
    return PACBayes(0.0, loss_range, delta, kappa)._measure_of(gp)


def pac_bayes_bounds(
    gp: GaussianProcess, X: ArrayLike, y: ArrayLike, loss_range: float, delta: float = 0.01,
    kappa: float = 0.01,
) -> Array:  # fmt: skip
    """Return `pac_bayes_bound` after each label of a run, in O(t^2) per label.

    Parameters
    ----------
    gp : GaussianProcess
        The model; labels of its own do not count.
    X, y : array_like
        Inputs and labels, in order.
    loss_range, delta, kappa : float
        As in `PACBayes`.

    Returns
    -------
    array
        One bound per label.
    """
    return PACBayes(0.0, loss_range, delta, kappa).measures_of_run(finished_run(gp, X, y))


class GroundTruth(ModelCriterion):
    """Stop when the expected loss on a test set has fallen far enough below the prior's.

    The paper's criterion 2 (section 5.2), for experiments: with a test set one needs no
    criterion.

    Parameters
    ----------
    X_test, y_test : array_like or None
        The test set. In `simulate` they may be None: then it is each run's own.
    threshold : float
        Fall of the expected loss, R_test(prior, q_t), that is large enough.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria.experiments import GroundTruth
    >>> x = np.linspace(0, 6, 50)
    >>> gp, criterion = GaussianProcess(noise=0.01), GroundTruth(x, np.sin(x), 60.0)
    >>> for t in range(0, 50, 5):
    ...     _ = gp.add(x[t], np.sin(x[t]))
    ...     _ = criterion.update(gp)
    >>> criterion.stopped_at
    7
    """

    X_test: Array | None
    y_test: Array | None

    _subject = "fall of the test loss"
    _relation = ("is at least", "is below")

    def __init__(
        self, X_test: ArrayLike | None, y_test: ArrayLike | None, threshold: float
    ) -> None:
        if (X_test is None) != (y_test is None):
            raise ValueError("`X_test` and `y_test` must both be given, or both be None")
        X = y = None
        if X_test is not None and y_test is not None:
            X = check.points("X_test", X_test, None)
            y = check.vector("y_test", y_test, len(X))
            if not len(y):
                raise ValueError("`X_test` must have at least one row, got 0")
        super().__init__(threshold, X_test=X, y_test=y)

    def _passes(self, value: float) -> bool:
        return value >= self.threshold

    def _measure_of(self, gp: GaussianProcess) -> float:
        """Return how far a labelled process has brought the loss below the prior's."""
        if self.X_test is None or self.y_test is None:
            raise ValueError("`X_test` must be given outside `simulate`, got None")
        return prior_loss(_labelled(gp), self.y_test) - expected_loss(gp, self.X_test, self.y_test)

    def _after_labels(self, run: Record) -> Array:
        if self.X_test is not None and self.y_test is not None:
            return prior_loss(run.prior, self.y_test) - run.losses_on(self.X_test, self.y_test)
        if run.losses is None:
            raise ValueError("`X_test` must be given if there is no `test`, got None")
        falls: Array = run.prior_loss - run.losses
        return falls


def expected_loss(gp: GaussianProcess, X: ArrayLike, y: ArrayLike) -> float:
    """Return the posterior mean of the negative log likelihood, averaged over a test set.

    Parameters
    ----------
    gp : GaussianProcess
        With or without labels.
    X, y : array_like
        The test set.

    Returns
    -------
    float
        ``mean((y - mu)^2 + s) / (2 noise) + 1/2 log(2 pi noise)``. (The paper prints the constant
        with the opposite sign.)

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> from fastal.criteria.experiments import expected_loss
    >>> round(expected_loss(GaussianProcess(noise=0.5), [0.0], [1.0]), 4)
    2.5724
    """
    mean, var = gp.predict(X, return_var=True)
    labels = check.vector("y", y, len(mean))
    return loss_of_total(float(((labels - mean) ** 2 + var).sum()), len(mean), gp.noise)


def expected_losses(
    gp: GaussianProcess, X: ArrayLike, y: ArrayLike, X_test: ArrayLike, y_test: ArrayLike
) -> Array:
    """Return `expected_loss` after each label of a run.

    Parameters
    ----------
    gp : GaussianProcess
        The model; labels of its own do not count.
    X, y : array_like
        Inputs and labels, in order.
    X_test, y_test : array_like
        The test set.

    Returns
    -------
    array
        One loss per label.
    """
    run = finished_run(gp, X, y)
    points = check.points("X_test", X_test, len(run.scaled))
    return run.losses_on(points, check.vector("y_test", y_test, len(points)))
