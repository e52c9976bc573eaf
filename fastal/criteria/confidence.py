"""Criteria from related work that follow how sure a classifier is."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._types import Array
from fastal.criteria.predictions import Predicted, classifier_of


def confidences(p: ArrayLike) -> Array:
    """Return the probability of the most probable class of each example.

    Parameters
    ----------
    p : array_like, shape (n, k) or (n,)
        Class probabilities in rows, or the probability of the positive one of two classes.

    Returns
    -------
    ndarray, shape (n,)
        Between 1 / k and 1.

    Examples
    --------
    >>> from fastal.criteria.confidence import confidences
    >>> confidences([[0.5, 0.2, 0.3], [0.1, 0.0, 0.9]])
    array([0.5, 0.9])
    >>> confidences([0.2, 0.6])
    array([0.8, 0.6])
    """
    p = check.class_probabilities("p", p)
    most: Array = p.max(axis=1) if p.ndim == 2 else abs(p - 0.5) + 0.5
    return most


def _least(probabilities: ArrayLike) -> float:
    return float(confidences(check.class_probabilities("probabilities", probabilities)).min())


def _average(probabilities: ArrayLike) -> float:
    p = check.class_probabilities("probabilities", probabilities)
    return math.fsum(confidences(p)) / len(p)


class _Confidence(Predicted):
    """A summary of how sure a classifier is of some examples, step by step."""

    def _checked(self, name: str, value: object) -> float:
        return check.between(name, value, 0.0, 1.0)


class ConfidenceGradient(_Confidence):
    """Stop when the confidence of the selected examples no longer rises.

    The measure of a step is the confidence of the least certain unlabelled example, the one that
    uncertainty sampling selects. The median of the last `window` measures is compared with the
    median one step before: it stops when this gradient is positive and below the threshold, at a
    step whose measure is the largest so far. Source: Laws & Schütze (2008), with their window and
    the smaller one of their thresholds as defaults.

    Parameters
    ----------
    threshold : float
        Positive.
    window : int
        Number of measures in a median.
    every : int
        In `learn` and `ActiveLearner` it looks after each so many labels; 1: after each one.

    Notes
    -----
    No stop is possible before ``window + 1`` steps. The source selects one example per step; with
    batches of b it takes a window that is b times smaller to look back equally far, and so it does
    with looks after each b labels: ``every=1`` follows the source. We know the source through later
    accounts of it: that the probability of the most probable class is the confidence, and that the
    largest measure must be larger than all before it, are our reading.

    Examples
    --------
    >>> from fastal.criteria import ConfidenceGradient
    >>> criterion = ConfidenceGradient(threshold=0.02, window=3)
    >>> criterion.extend([0.4, 0.6, 0.7, 0.71, 0.72])
    5
    >>> criterion.verdict.reason
    'gradient of the median confidence, at a new maximum, (0.01) is below 0.02'
    """

    window: int

    _relation = ("is below", "is not below")
    _subject = "gradient of the median confidence, at a new maximum,"

    def __init__(self, threshold: float = 5e-5, window: int = 100, *, every: int = 10) -> None:
        super().__init__(
            threshold=check.positive("threshold", threshold),
            window=check.count("window", window, 1, check.INT64_MAX),
            every=every,
        )

    def update(self, probabilities: ArrayLike) -> bool:
        """Take the class probabilities of the unlabelled pool, or of the selected example.

        Parameters
        ----------
        probabilities : array_like, shape (n, k) or (n,)
            Class probabilities in rows, or the probability of the positive one of two classes. The
            least certain row counts.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._take(_least(probabilities), self._seen + 1)

    def measure(self, campaign: Any) -> float:
        """Return how sure the campaign's classifier is of its least certain unlabelled point.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.

        Returns
        -------
        float
            A probability; 1 if nothing is left to be uncertain of.
        """
        model, left = classifier_of(self, campaign), campaign.unlabelled
        return _least(model.predict_proba(campaign.points[left])) if left.any() else 1.0

    def _value(self, history: tuple[float, ...]) -> float:
        w = self.window
        if len(history) <= w or any(history[-1] <= before for before in history[:-1]):
            return math.nan
        return median(history[-w:]) - median(history[-w - 1 : -1])

    def _passes(self, value: float) -> bool:
        return 0.0 < value < self.threshold


class ConfidenceDrop(_Confidence):
    """Stop when the confidence on a fixed set falls, step after step.

    The measure of a step is the mean confidence of the classifier on a set of unlabelled examples
    that stays the same. It rises while labels are informative; when those that are left contradict
    one another it falls. It stops when the measure has fallen `rounds` times in a row. Source:
    Vlachos (2008).

    Parameters
    ----------
    rounds : int
        Number of falls in a row.
    every : int
        In `learn` and `ActiveLearner` it looks after each so many labels; 1: after each one.

    Notes
    -----
    The source has the margin of a support vector machine, or the probability, for the confidence.
    We know it through its abstract and later accounts of it: three rounds as the default, and that
    any fall counts however small, are our reading. In a campaign the whole pool is the set.

    Examples
    --------
    >>> from fastal.criteria import ConfidenceDrop
    >>> criterion = ConfidenceDrop(rounds=2)
    >>> criterion.extend([0.6, 0.8, 0.7, 0.9, 0.85, 0.84])
    6
    >>> criterion.verdict.reason
    'number of falls of the confidence in a row (2) reaches 2'
    """

    rounds: int

    _relation = ("reaches", "is below")
    _subject = "number of falls of the confidence in a row"

    def __init__(self, rounds: int = 3, *, every: int = 10) -> None:
        super().__init__(rounds=check.count("rounds", rounds, 1, check.INT64_MAX), every=every)

    def update(self, probabilities: ArrayLike) -> bool:
        """Take the class probabilities of the set.

        Parameters
        ----------
        probabilities : array_like, shape (n, k) or (n,)
            Class probabilities in rows, or the probability of the positive one of two classes;
            always of the same examples.

        Returns
        -------
        bool
            Whether there has been a stop, now or before.
        """
        return self._take(_average(probabilities), self._seen + 1)

    def measure(self, campaign: Any) -> float:
        """Return how sure the campaign's classifier is of the pool, on average.

        Parameters
        ----------
        campaign : CampaignView
            What may be seen of it.

        Returns
        -------
        float
            A probability.
        """
        return _average(classifier_of(self, campaign).predict_proba(campaign.points))

    def _value(self, history: tuple[float, ...]) -> float:
        falls = 0
        while falls < len(history) - 1 and history[-1 - falls] < history[-2 - falls]:
            falls += 1
        return float(falls)

    def _passes(self, value: float) -> bool:
        return value >= self.rounds

    @property
    def _limit(self) -> float:
        return self.rounds
