"""modAL: `ActiveLearner` and `BayesianOptimizer` around an estimator that fastal knows.

::

    learner = ActiveLearner(estimator=GaussianProcessRegressor(...), query_strategy=...,
                            X_training=X[:1], y_training=y[:1])
    while True:
        index, x = learner.query(pool)
        y = ask(x)
        if stopper.update_from(learner, x, y):
            break
        learner.teach(x, y)

The estimator does the work: `fastal.adapters.sklearn` says how. A `Committee` has no posterior.

modAL 0.4.2, the latest, passes an argument that scikit-learn 1.8 removed: its `teach` works with
earlier versions only, and the extra ``fastal[modal]`` asks for one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastal.adapters.dispatch import ask_adapter, bounds_from, update_from
from fastal.adapters.posterior import wrong_kind

__all__ = ["bounds_from", "update_from"]

LIBRARY = "modAL"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> NDArray[np.float64]:
    """Return the bounds of labels from the estimator of a learner."""
    if not hasattr(model, "estimator"):
        raise wrong_kind(model, name, "an ActiveLearner or BayesianOptimizer")
    return ask_adapter(model.estimator, x, y, noise, "`model.estimator` (modAL)")
