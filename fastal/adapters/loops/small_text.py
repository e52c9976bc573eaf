"""small-text: a `StoppingCriterion` around a criterion that takes predictions."""

from __future__ import annotations

from typing import Any

from fastal import _validation as check


def stopping_criterion(criterion: Any, *, proba: bool = False) -> Any:
    """Return a `StoppingCriterion` of small-text that decides as a criterion of fastal.

    A text classifier has no posterior, hence no bound: the criteria of `fastal.criteria` take what
    it has.

    Parameters
    ----------
    criterion : StabilizingPredictions, OverallUncertainty, MaxUncertainty, ...
        Anything with `update` of one array per query, and `stopped`.
    proba : bool
        Whether it takes probabilities, (n, k), and not predicted classes, (n,).

    Returns
    -------
    small_text.stopping_criteria.StoppingCriterion
        Its method ``stop(predictions=...)``, or ``stop(proba=...)``, is called once per query, with
        those of the whole data set.

    Examples
    --------
    After each query, with a learner of small-text::

        rule = stopping_criterion(StabilizingPredictions(cutoff=0.99, window=3))
        if rule.stop(predictions=learner.classifier.predict(dataset)):
            break
    """
    check.able("criterion", criterion, "update", "StabilizingPredictions or one like it")
    from small_text.stopping_criteria.base import StoppingCriterion

    wanted = "proba" if check.flag("proba", proba) else "predictions"

    class Criterion(StoppingCriterion):  # type: ignore[misc]  # of an untyped library
        def stop(
            self,
            active_learner: Any = None,
            predictions: Any = None,
            proba: Any = None,
            indices_stopping: Any = None,
        ) -> bool:
            values = proba if wanted == "proba" else predictions
            if values is None:
                raise ValueError(f"`{wanted}` must be given to stop(), got None")
            if indices_stopping is not None:
                values = values[indices_stopping]
            criterion.update(values)
            return bool(criterion.stopped)

    return Criterion()
