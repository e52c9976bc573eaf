"""Criteria from related work, which use a classifier's predictions.

Outside a campaign each takes the predictions of any model, step by step:
``rule.update(model.predict(pool))``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._state import damaged_state
from fastal._types import Array
from fastal.criteria.measures import (
    check_same_classes,
    cohen_kappa,
    delta_f,
    entropies,
    error_gap,
    share_changed,
)
from fastal.stopping.criterion import Criterion
from fastal.stopping.measured import Measured


def classifier_of(criterion: Measured, campaign: Any) -> Any:
    """Return the model of a campaign, if it has classes."""
    if not hasattr(campaign.model, "predict_proba"):
        raise needs_classes(criterion)
    return campaign.model


def needs_classes(criterion: Measured) -> TypeError:
    """Return the error for a campaign without a classifier, or a finished one."""
    name = type(criterion).__name__
    return TypeError(f"{name} goes by predicted classes: it needs a classifier, not a regression")


class Predicted(Measured):
    """A criterion that goes by the predictions of a classifier, at every so many labels."""

    def __init__(self, *, every: int, **settings: Any) -> None:
        super().__init__(**settings, every=every)

    def measures_of_run(self, run: Any) -> Array:
        """Refuse: a finished run has no classifiers.

        Parameters
        ----------
        run : FinishedRun
            A campaign that has ended.

        Returns
        -------
        array
            Nothing: it raises a TypeError.
        """
        raise needs_classes(self)


def _mean_of_last(history: tuple[float, ...], window: int) -> float:
    """Return the mean, rounded once; NaN if there are fewer than `window` or one is NaN."""
    last = history[-window:]
    return math.fsum(last) / window if len(last) == window else math.nan


class Agreement(Predicted):
    """A criterion that compares the predictions of successive classifiers on the same examples."""

    # Predictions at the last step, if they are known, and those of the step that is on its way.
    _last: NDArray[Any] | None = None
    _next: NDArray[Any] | None = None

    @staticmethod
    @abstractmethod
    def _compare(before: NDArray[Any], now: NDArray[Any], /) -> float:
        """Return the measure of one step."""

    def update(self, predictions: ArrayLike) -> bool:
        """Take the predictions of the next classifier on the stop set.

        Parameters
        ----------
        predictions : array_like, shape (n,)
            Predicted classes: numbers, texts or booleans; always of the same examples.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._take(self._compared(predictions), self._seen + 1)

    def measure(self, campaign: Any) -> float:
        """Compare the predictions of the campaign's classifier with those at the look before.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it; the whole pool is the stop set.

        Returns
        -------
        float
            The measure; NaN at the first look.
        """
        return self._compared(classifier_of(self, campaign).predict(campaign.points))

    def _compared(self, predictions: ArrayLike) -> float:
        now = check.labels("predictions", predictions).copy()
        value = math.nan
        if self._last is not None:
            check_same_classes("predictions", now, self._last)
            value = self._compare(self._last, now)
        self._next = now
        return value

    def _take(self, value: float, seen: int) -> bool:
        self._last, self._next = self._next, None  # a measure that is pushed tells no predictions
        return super()._take(value, seen)

    # keeping ---------------------------------------------------------------------------------

    def _mark(self) -> Any:
        return super()._mark(), self._last

    def _go_back(self, mark: Any) -> None:
        steps, last = mark
        super()._go_back(steps)
        vars(self).update(_last=last, _next=None)

    def reset(self) -> Any:
        """Forget all steps; return the criterion itself."""
        vars(self).update(_last=None, _next=None)
        return super().reset()

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts, ready for JSON.

        Returns
        -------
        dict
            For `from_dict`.
        """
        last = None if self._last is None else self._last.tolist()
        return super().to_dict() | {"predictions": last}

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Criterion:
        if "predictions" not in state:
            raise ValueError("`state` lacks 'predictions'")
        state = dict(state)
        last = state.pop("predictions")
        new = super()._restored(state)
        if last is not None:
            with damaged_state():
                vars(new).update(_last=check.labels("predictions", last))
        return new


class StabilizingPredictions(Agreement):
    """Stop when successive classifiers agree on a stop set.

    The measure of a step is Cohen's kappa of the predictions of the classifier and of the one
    before it on the same unlabelled examples (`cohen_kappa`). It stops when the mean of the last
    `window` measures exceeds `cutoff`. Source: Bloodgood & Vijay-Shanker (2009), with their
    settings as defaults.

    Parameters
    ----------
    cutoff : float
        In (0, 1).
    window : int
        Number of measures in the mean.
    every : int
        In `learn` and `ActiveLearner` it looks after each so many labels; 1: after each one.

    Notes
    -----
    The stop set should be drawn at random, be large, and stay the same; it may contain examples
    that are labelled later. The first `update` has no classifier before it: it counts as a step,
    and its measure is NaN. So is that of an `update` after a `push`, which tells no predictions.
    That the mean must exceed the cutoff, rather than reach it, is our reading.

    Examples
    --------
    >>> from fastal.criteria import StabilizingPredictions
    >>> criterion = StabilizingPredictions(cutoff=0.9, window=2)
    >>> for predictions in ([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]):
    ...     stop = criterion.update(predictions)
    >>> criterion.history, criterion.stopped_at
    (array([nan, 0.5, 1. , 1. ]), 4)
    >>> criterion.verdict.reason
    'mean agreement of the last 2 steps (1) exceeds 0.9'
    """

    cutoff: float
    window: int

    _relation = ("exceeds", "does not exceed")
    _compare = staticmethod(cohen_kappa)

    def __init__(self, cutoff: float = 0.99, window: int = 3, *, every: int = 10) -> None:
        super().__init__(
            cutoff=check.probability("cutoff", cutoff),
            window=check.count("window", window, 1, check.INT64_MAX),
            every=every,
        )

    def _checked(self, name: str, value: object) -> float:
        return check.between(name, value, -1.0, 1.0)

    def _value(self, history: tuple[float, ...]) -> float:
        return _mean_of_last(history, self.window)

    def _passes(self, value: float) -> bool:
        return value > self.cutoff

    @property
    def _limit(self) -> float:
        return self.cutoff

    @property
    def _subject(self) -> str:  # type: ignore[override]
        return f"mean agreement of the last {self.window} steps"


class ClassificationChange(Agreement):
    """Stop when no prediction on the pool has changed from one look to the next.

    The measure of a step is the share of the examples whose predicted class is another one than
    by the classifier before; it stops when it is 0. Source: "classification-change" of Zhu, Wang &
    Hovy (2008).

    Parameters
    ----------
    every : int
        In `learn` and `ActiveLearner` it looks after each so many labels; 1: after each one.

    Notes
    -----
    The source compares the predictions of the examples that are still unlabelled, in two
    successive rounds. Here the examples must always be the same: in a campaign they are the whole
    pool, which is a little stricter.

    Examples
    --------
    >>> from fastal.criteria import ClassificationChange
    >>> criterion = ClassificationChange()
    >>> [criterion.update(p) for p in (["a", "b"], ["a", "a"], ["a", "a"])]
    [False, False, True]
    >>> criterion.verdict.reason
    'share of predictions that changed (0) is at most 0'
    """

    _subject = "share of predictions that changed"
    _compare = staticmethod(share_changed)

    def __init__(self, *, every: int = 10) -> None:
        super().__init__(every=every)

    def _checked(self, name: str, value: object) -> float:
        return check.between(name, value, 0.0, 1.0)

    def _passes(self, value: float) -> bool:
        return value <= 0.0

    @property
    def _limit(self) -> float:
        return 0.0


class DeltaFScore(Agreement):
    """Stop when the F-score is predicted to change no more.

    The measure of a step is the change of the F-score that the predictions of the classifier and
    of the one before it on the same unlabelled examples let expect (`delta_f`). It stops when the
    mean of the last `window` measures is below the threshold. Source: Altschuler & Bloodgood
    (2019).

    Parameters
    ----------
    threshold : float
        In (0, 1).
    window : int
        Number of measures in the mean.
    every : int
        In `learn` and `ActiveLearner` it looks after each so many labels; 1: after each one.

    Notes
    -----
    The source has two classes. Of two the later one, in the order of numbers or of the alphabet,
    is the positive one; of more the mean over the classes is taken, which is our reading. As with
    `StabilizingPredictions`, the first step has no measure.

    Examples
    --------
    >>> from fastal.criteria import DeltaFScore
    >>> criterion = DeltaFScore(threshold=0.2, window=2)
    >>> for predictions in ([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]):
    ...     stop = criterion.update(predictions)
    >>> criterion.history.round(4), criterion.stopped_at
    (array([nan, 0.2, 0. , 0. ]), 3)
    """

    window: int

    _relation = ("is below", "is not below")
    _compare = staticmethod(delta_f)

    def __init__(self, threshold: float = 0.05, window: int = 3, *, every: int = 10) -> None:
        super().__init__(
            threshold=check.probability("threshold", threshold),
            window=check.count("window", window, 1, check.INT64_MAX),
            every=every,
        )

    def _checked(self, name: str, value: object) -> float:
        return check.between(name, value, 0.0, 1.0)

    def _value(self, history: tuple[float, ...]) -> float:
        return _mean_of_last(history, self.window)

    def _passes(self, value: float) -> bool:
        return value < self.threshold

    @property
    def _subject(self) -> str:  # type: ignore[override]
        return f"mean predicted change of the F-score of the last {self.window} steps"


class _Uncertainty(Predicted):
    """A summary of the entropies of the unlabelled pool, as shares of log k."""

    _relation = ("is below", "is not below")

    def __init__(self, *, threshold: float, every: int) -> None:
        super().__init__(threshold=check.probability("threshold", threshold), every=every)

    @staticmethod
    @abstractmethod
    def _summary(shares: Array) -> float:
        """Return the measure of one step."""

    def update(self, probabilities: ArrayLike) -> bool:
        """Take the class probabilities of the unlabelled pool.

        Parameters
        ----------
        probabilities : array_like, shape (n, k) or (n,)
            Class probabilities in rows, or the probability of the positive one of two classes.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._take(self._measured(probabilities), self._seen + 1)

    def measure(self, campaign: Any) -> float:
        """Return how uncertain the campaign's classifier is of the unlabelled points.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.

        Returns
        -------
        float
            A share of log k; 0 if nothing is left to be uncertain of.
        """
        model, left = classifier_of(self, campaign), campaign.unlabelled
        return self._measured(model.predict_proba(campaign.points[left])) if left.any() else 0.0

    def _measured(self, probabilities: ArrayLike) -> float:
        p = check.class_probabilities("probabilities", probabilities)
        most = math.log(p.shape[1] if p.ndim == 2 else 2)
        return float(self._summary(np.minimum(entropies(p) / most, 1.0)))

    def _checked(self, name: str, value: object) -> float:
        return check.between(name, value, 0.0, 1.0)

    def _passes(self, value: float) -> bool:
        return value < self.threshold


class OverallUncertainty(_Uncertainty):
    """Stop when the unlabelled pool is no longer uncertain on average.

    The measure of a step is the mean entropy of the predicted class distributions over all
    examples that are still unlabelled, as a share of the largest possible one, log k for k classes.
    It stops when the measure is below the threshold. Source: "overall uncertainty" of Zhu, Wang &
    Hovy (2008) and Zhu et al. (2010).

    Parameters
    ----------
    threshold : float
        Share of log k, in (0, 1).
    every : int
        In `learn` and `ActiveLearner` it looks after each so many labels; 1: after each one.

    Notes
    -----
    The source lowers a threshold while predicted labels still change; this is the criterion with a
    fixed one. That it is a share of log k, so that it means the same for any number of classes and
    any base of the logarithm, and its default are ours.

    Examples
    --------
    >>> from fastal.criteria import OverallUncertainty
    >>> criterion = OverallUncertainty(0.3)
    >>> criterion.update([0.5, 0.7, 0.9]), criterion.update([0.9, 0.99])
    (False, True)
    >>> criterion.verdict.reason
    'mean entropy of the pool, as a share of log k, (0.2749) is below 0.3'
    """

    _subject = "mean entropy of the pool, as a share of log k,"

    def __init__(self, threshold: float = 0.05, *, every: int = 10) -> None:
        super().__init__(threshold=threshold, every=every)

    @staticmethod
    def _summary(shares: Array) -> float:
        return float(shares.mean())


class MaxUncertainty(_Uncertainty):
    """Stop when not even the most uncertain unlabelled example is uncertain.

    The measure of a step is the largest entropy of the predicted class distributions over the
    examples that are still unlabelled, which is that of the example that uncertainty sampling
    selects, as a share of the largest possible one, log k for k classes. It stops when the measure
    is below the threshold. Source: "max-confidence" of Zhu & Hovy (2007), called "maximum
    uncertainty" by Zhu et al. (2010).

    Parameters
    ----------
    threshold : float
        Share of log k, in (0, 1).
    every : int
        In `learn` and `ActiveLearner` it looks after each so many labels; 1: after each one.

    Notes
    -----
    Where several examples are selected at a time, the source asks that each of them be below the
    threshold; the largest of the pool decides that. That the threshold is a share of log k, and
    its default, are ours.

    Examples
    --------
    >>> from fastal.criteria import MaxUncertainty
    >>> criterion = MaxUncertainty(0.1)
    >>> criterion.update([0.5, 0.7, 0.9]), criterion.update([0.99, 0.999])
    (False, True)
    >>> criterion.verdict.reason
    'largest entropy of the pool, as a share of log k, (0.08079) is below 0.1'
    """

    _subject = "largest entropy of the pool, as a share of log k,"

    def __init__(self, threshold: float = 0.1, *, every: int = 10) -> None:
        super().__init__(threshold=threshold, every=every)

    @staticmethod
    def _summary(shares: Array) -> float:
        return float(shares.max())


class ErrorStability(Measured):
    """Stop when a label can no longer move the expected error as the first one could.

    The measure of a step is the divergence of the posteriors after and before a label: in a
    campaign, its bound. `error_gap` turns it into a bound on the gap of their expected errors; it
    stops when this bound is at most `threshold` times the first one. After Ishibashi & Hino (2021).

    Parameters
    ----------
    threshold : float
        In (0, 1); there is no default.

    Notes
    -----
    Of the source we could read the abstract only (a bound on the change of the generalisation
    error, for any Bayesian active learner, compared with a cost). The bound by Lambert's function
    is derived and proved in the notes of `error_gap`; that the paper has the same constant, that
    the ratio to the first bound is compared, and with "at most", are our reading. Both directions
    of the divergence bound the gap from both sides; as the bound grows with the divergence, the
    larger one decides. If the first divergences are 0, the first bound is the first positive one.

    Examples
    --------
    >>> from fastal.criteria import ErrorStability
    >>> criterion = ErrorStability(0.05)
    >>> criterion.update([2.0, 1.5])  # KL(after || before) and KL(before || after)
    False
    >>> criterion.push(0.1), criterion.push(0.001)
    (False, True)
    >>> criterion.verdict.reason
    'error bound relative to the first (0.01739) is at most 0.05'
    """

    _pushed = "bound"

    _subject = "error bound relative to the first"

    def __init__(self, threshold: float) -> None:
        super().__init__(threshold=check.probability("threshold", threshold))

    def update(self, kl: ArrayLike) -> bool:
        """Take the divergence of the posteriors after and before a label.

        Parameters
        ----------
        kl : float or array_like
            One divergence, or that of each direction; the largest counts.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        divergences = check.not_negative("kl", kl)
        if divergences.size == 0:
            raise ValueError("`kl` must not be empty")
        return self._take(float(divergences.max()), self._seen + 1)

    def measure(self, campaign: Any) -> float:
        """Return the bound of the last label, which is such a divergence.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.

        Returns
        -------
        float
            The bound.
        """
        return float(campaign.bounds[-1])

    def see(self, campaign: Any, r: float) -> bool:
        """Take the bound of the last label.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.
        r : float
            The bound.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self.push(r)

    def measures_of_run(self, run: Any) -> Array:
        """Return the bounds of a finished run.

        Parameters
        ----------
        run : FinishedRun
            A campaign that has ended.

        Returns
        -------
        array
            One measure for each bound.
        """
        bounds: Array = run.bounds
        return bounds

    def _checked(self, name: str, value: object) -> float:
        return check.zero_or_more(name, value)

    def _value(self, history: tuple[float, ...]) -> float:
        first = next((kl for kl in history if kl > 0), None)
        return math.nan if first is None else float(error_gap(history[-1]) / error_gap(first))
