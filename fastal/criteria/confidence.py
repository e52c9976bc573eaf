"""Criteria from related work that follow how sure a classifier is."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._types import Array
from fastal.criteria.predictions import _classifier, _needs_classes
from fastal.stopping.measured import Measured

if TYPE_CHECKING:
    from fastal.stopping.criterion import CampaignView, FinishedRun


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


class _Confidence(Measured):
    """A summary of how sure a classifier is of some examples, step by step."""

    push_takes = "a confidence"

    def _measure(self, name: str, value: object) -> float:
        return check.between(name, value, 0.0, 1.0)

    def stop_in(self, run: FinishedRun, measures: Array | None) -> int | None:
        """Refuse: a finished run has no classifiers."""
        raise _needs_classes(self)


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

    Notes
    -----
    No stop is possible before ``window + 1`` steps. The source selects one example per step; with
    batches of b it takes a window that is b times smaller to look back equally far. We know the
    source through later accounts of it: that the probability of the most probable class is the
    confidence, and that the largest measure must be larger than all before it, are our reading.

    Examples
    --------
    >>> from fastal import ConfidenceGradient
    >>> criterion = ConfidenceGradient(threshold=0.02, window=3)
    >>> criterion.extend([0.4, 0.6, 0.7, 0.71, 0.72])
    5
    >>> criterion.reason
    'gradient of the median confidence, at a new maximum, (0.01) is below 0.02'
    """

    _settings = ("threshold", "window")
    _relation = ("is below", "is not below")
    _subject = "gradient of the median confidence, at a new maximum,"

    def __init__(self, threshold: float = 5e-5, window: int = 100) -> None:
        super().__init__()
        self.threshold = check.positive("threshold", threshold)
        self.window = check.count("window", window, 1, check.INT64_MAX)

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
            Whether there has been a stop.
        """
        p = check.class_probabilities("probabilities", probabilities)
        return self._step(float(confidences(p).min()))

    def after_label(self, campaign: CampaignView) -> bool:
        """Take the predictions of the campaign's classifier."""
        model, left = _classifier(self, campaign), campaign.unlabelled
        if not left.any():  # nothing is left to be uncertain of
            return self._step(1.0)
        return self.update(model.predict_proba(campaign.points[left]))

    def _value(self, history: list[float], n: int) -> float:
        w = self.window
        if n <= w or any(history[n - 1] <= before for before in history[: n - 1]):
            return math.nan
        return median(history[n - w : n]) - median(history[n - w - 1 : n - 1])

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

    Notes
    -----
    The source has the margin of a support vector machine, or the probability, for the confidence.
    We know it through its abstract and later accounts of it: three rounds as the default, and that
    any fall counts however small, are our reading. In a campaign the whole pool is the set.

    Examples
    --------
    >>> from fastal import ConfidenceDrop
    >>> criterion = ConfidenceDrop(rounds=2)
    >>> criterion.extend([0.6, 0.8, 0.7, 0.9, 0.85, 0.84])
    6
    >>> criterion.reason
    'number of falls of the confidence in a row (2) reaches 2'
    """

    _settings = ("rounds",)
    _relation = ("reaches", "is below")
    _subject = "number of falls of the confidence in a row"

    def __init__(self, rounds: int = 3) -> None:
        super().__init__()
        self.rounds = check.count("rounds", rounds, 1, check.INT64_MAX)

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
            Whether there has been a stop.
        """
        p = check.class_probabilities("probabilities", probabilities)
        return self._step(math.fsum(confidences(p)) / len(p))

    def after_label(self, campaign: CampaignView) -> bool:
        """Take the predictions of the campaign's classifier."""
        return self.update(_classifier(self, campaign).predict_proba(campaign.points))

    def _value(self, history: list[float], n: int) -> float:
        if n == 0:
            return math.nan
        falls = 0
        while falls < n - 1 and history[n - 1 - falls] < history[n - 2 - falls]:
            falls += 1
        return float(falls)

    def _passes(self, value: float) -> bool:
        return value >= self.rounds

    @property
    def _limit(self) -> float:
        return self.rounds
