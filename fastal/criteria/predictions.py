"""Criteria from related work, which use a classifier's predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from fastal import _validation as check
from fastal._state import damaged_state
from fastal._types import Array
from fastal.criteria.measures import _same_classes, cohen_kappa, entropies, error_gap
from fastal.stopping.measured import Measured

if TYPE_CHECKING:
    from fastal.stopping.criterion import CampaignView, FinishedRun


class StabilizingPredictions(Measured):
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

    Notes
    -----
    The stop set should be drawn at random, be large, and stay the same; it may contain examples
    that are labelled later. The first `update` has no classifier before it: it counts as a step,
    and its measure is NaN. So is that of an `update` after a `push`, which tells no predictions.
    That the mean must exceed the cutoff, rather than reach it, is our reading.

    Examples
    --------
    >>> from fastal import StabilizingPredictions
    >>> criterion = StabilizingPredictions(cutoff=0.9, window=2)
    >>> for predictions in ([0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]):
    ...     stop = criterion.update(predictions)
    >>> criterion.history, criterion.stopped_at
    (array([nan, 0.5, 1. , 1. ]), 4)
    >>> criterion.reason
    'mean agreement of the last 2 steps (1) exceeds 0.9'
    """

    _settings = ("cutoff", "window")
    push_takes = "an agreement"
    _relation = ("exceeds", "does not exceed")

    def __init__(self, cutoff: float = 0.99, window: int = 3) -> None:
        super().__init__()
        self.cutoff = check.probability("cutoff", cutoff)
        self.window = check.count("window", window, 1, check.INT64_MAX)
        # Predictions of the last step, and the steps up to it: a later one may have none.
        self._last: tuple[Any, NDArray[Any]] | None = None

    def update(self, predictions: ArrayLike) -> bool:
        """Take the predictions of the next classifier on the stop set.

        Parameters
        ----------
        predictions : array_like, shape (n,)
            Predicted classes: numbers, texts or booleans; always of the same examples.

        Returns
        -------
        bool
            Whether there has been a stop.
        """
        labels = check.labels("predictions", predictions).copy()
        last = self._before(self._steps)
        agreement = math.nan
        if last is not None:
            _same_classes("predictions", labels, last)
            agreement = cohen_kappa(last, labels)
        stopped = self._step(agreement)
        self._last = self._steps, labels
        return stopped

    def _before(self, steps: Any) -> NDArray[Any] | None:
        """Return the predictions of the last of these steps; None after a `push`."""
        last = self._last
        return None if last is None or last[0] is not steps else last[1]

    def after_label(self, campaign: CampaignView) -> bool:
        """Take the predictions of the campaign's classifier."""
        return self.update(_classifier(self, campaign).predict(campaign.points))

    def stop_in(self, run: FinishedRun, measures: Array | None) -> int | None:
        """Refuse: a finished run has no classifiers."""
        raise _needs_classes(self)

    def _measure(self, name: str, value: object) -> float:
        return check.between(name, value, -1.0, 1.0)

    def _value(self, history: list[float], n: int) -> float:
        return _mean(history[max(n - self.window, 0) : n], self.window)

    def _passes(self, value: float) -> bool:
        return value > self.cutoff

    @property
    def _limit(self) -> float:
        return self.cutoff

    @property
    def _subject(self) -> str:  # type: ignore[override]
        return f"mean agreement of the last {self.window} steps"

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        last = self._before(self._steps)
        return super().to_dict() | {"predictions": None if last is None else last.tolist()}

    def __getstate__(self) -> Any:
        history, n, at = self._steps
        steps = history[:n], n, at
        last = self._before(self._steps)
        return vars(self) | {"_steps": steps, "_last": None if last is None else (steps, last)}

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> StabilizingPredictions:
        if "predictions" not in state:
            raise ValueError("`state` lacks 'predictions'")
        state = dict(state)
        last = state.pop("predictions")
        new = super()._from_state(state)
        assert isinstance(new, StabilizingPredictions)
        if last is not None:
            with damaged_state():
                new._last = new._steps, check.labels("predictions", last)
        return new


def _classifier(criterion: Measured, campaign: CampaignView) -> Any:
    """Return the model of a campaign, if it has classes."""
    if not hasattr(campaign.model, "predict_proba"):
        raise _needs_classes(criterion)
    return campaign.model


def _needs_classes(criterion: Measured) -> TypeError:
    name = type(criterion).__name__
    return TypeError(f"{name} goes by predicted classes: it needs a classifier, not a regression")


def _mean(values: Sequence[float], size: int) -> float:
    """Return the mean, rounded once; NaN if there are fewer than `size` or one is NaN."""
    return math.fsum(values) / size if len(values) == size else math.nan


class _Uncertainty(Measured):
    """A summary of the entropies of the unlabelled pool, compared with a threshold."""

    push_takes = "an entropy"
    _relation = ("is below", "is not below")

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = check.positive("threshold", threshold)

    @staticmethod
    @abstractmethod
    def _summary(probabilities: ArrayLike) -> float:
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
            Whether there has been a stop.
        """
        return self._step(self._summary(check.class_probabilities("probabilities", probabilities)))

    def _measure(self, name: str, value: object) -> float:
        return check.zero_or_more(name, value)

    def _passes(self, value: float) -> bool:
        return value < self.threshold

    def after_label(self, campaign: CampaignView) -> bool:
        """Take the predictions of the campaign's classifier."""
        model, left = _classifier(self, campaign), campaign.unlabelled
        if not left.any():  # nothing is left to be uncertain of
            return self._step(0.0)
        return self.update(model.predict_proba(campaign.points[left]))

    def stop_in(self, run: FinishedRun, measures: Array | None) -> int | None:
        """Refuse: a finished run has no classifiers."""
        raise _needs_classes(self)


class OverallUncertainty(_Uncertainty):
    """Stop when the unlabelled pool is no longer uncertain on average.

    The measure of a step is the mean entropy of the predicted class distributions over all
    examples that are still unlabelled. It stops when the measure is below the threshold. Source:
    "overall uncertainty" of Zhu, Wang & Hovy (2008) and Zhu et al. (2010).

    Parameters
    ----------
    threshold : float
        In nats, positive; at most log 2 = 0.69 makes sense for two classes. It depends on the
        task: there is no default.

    Notes
    -----
    Natural logarithms are our reading; with logarithms to the base 2 the threshold is to be
    divided by 1.44. The source lowers a threshold while predicted labels still change; this is the
    criterion with a fixed one.

    Examples
    --------
    >>> from fastal import OverallUncertainty
    >>> criterion = OverallUncertainty(0.3)
    >>> criterion.update([0.5, 0.7, 0.9]), criterion.update([0.9, 0.99])
    (False, True)
    >>> criterion.reason
    'mean entropy of the pool (0.1905) is below 0.3'
    """

    _subject = "mean entropy of the pool"

    @staticmethod
    def _summary(probabilities: ArrayLike) -> float:
        return float(entropies(probabilities).mean())


class MaxUncertainty(_Uncertainty):
    """Stop when not even the most uncertain unlabelled example is uncertain.

    The measure of a step is the largest entropy of the predicted class distributions over the
    examples that are still unlabelled, which is that of the example that uncertainty sampling
    selects. It stops when the measure is below the threshold. Source: "max-confidence" of Zhu &
    Hovy (2007), called "maximum uncertainty" by Zhu et al. (2010).

    Parameters
    ----------
    threshold : float
        In nats, positive and near 0. It depends on the task: there is no default.

    Notes
    -----
    Where several examples are selected at a time, the source asks that each of them be below the
    threshold; the largest of the pool decides that. Natural logarithms are our reading.

    Examples
    --------
    >>> from fastal import MaxUncertainty
    >>> criterion = MaxUncertainty(0.1)
    >>> criterion.update([0.5, 0.7, 0.9]), criterion.update([0.99, 0.999])
    (False, True)
    >>> criterion.reason
    'largest entropy of the pool (0.056) is below 0.1'
    """

    _subject = "largest entropy of the pool"

    @staticmethod
    def _summary(probabilities: ArrayLike) -> float:
        return float(entropies(probabilities).max())


class ErrorStability(Measured):
    """Stop when a label can no longer move the expected error as the first one could.

    The measure of a step is the divergence of the posteriors after and before a label. `error_gap`
    turns it into a bound on the gap of their expected errors; it stops when this bound is at most
    `threshold` times the first one. After Ishibashi & Hino (2021).

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
    >>> from fastal import ErrorStability
    >>> criterion = ErrorStability(0.05)
    >>> criterion.update([2.0, 1.5])  # KL(after || before) and KL(before || after)
    False
    >>> criterion.push(0.1), criterion.push(0.001)
    (False, True)
    >>> criterion.reason
    'error bound relative to the first (0.01739) is at most 0.05'
    """

    _subject = "error bound relative to the first"

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = check.probability("threshold", threshold)

    def update(self, kl: ArrayLike) -> bool:
        """Take the divergence of the posteriors after and before a label.

        Parameters
        ----------
        kl : float or array_like
            One divergence, or that of each direction; the largest counts.

        Returns
        -------
        bool
            Whether there has been a stop.
        """
        divergences = check.not_negative("kl", kl)
        if divergences.size == 0:
            raise ValueError("`kl` must not be empty")
        return self._step(float(divergences.max()))

    def _measure(self, name: str, value: object) -> float:
        return check.zero_or_more(name, value)

    def _value(self, history: list[float], n: int) -> float:
        first = next((kl for kl in islice(history, n) if kl > 0), None)
        if first is None:
            return math.nan
        return float(error_gap(history[n - 1]) / error_gap(first))
