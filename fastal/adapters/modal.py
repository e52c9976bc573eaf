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

`recomputed` compares the rows of the estimator with `X_training` and `y_training`: after
``teach(only_new=True)`` or ``teach(bootstrap=True)`` the estimator was fitted to other rows, and
its bounds are not those of the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastal.adapters.dispatch import ask_adapter, ask_trained, bounds_from, update_from
from fastal.adapters.posterior import wrong_kind
from fastal.adapters.trained import Asked, TrainedModel

__all__ = ["bounds_from", "update_from"]

LIBRARY = "modAL"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> NDArray[np.float64]:
    """Return the bounds of labels from the estimator of a learner."""
    if not hasattr(model, "estimator"):
        raise wrong_kind(model, name, "an ActiveLearner or BayesianOptimizer")
    return ask_adapter(model.estimator, x, y, noise, "`model.estimator` (modAL)")


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what the estimator of a learner knows of its labels."""
    if not hasattr(model, "estimator"):
        raise wrong_kind(model, name, "an ActiveLearner or BayesianOptimizer")
    within = "`model.estimator` (modAL)"
    # A learner that was not given its labels itself has none.
    X, y = model.X_training, model.y_training
    own = X is not None and len(X) > 0
    if own and asked.X is None and asked.y is None:
        try:
            return ask_trained(model.estimator, asked._replace(X=X, y=y), within)[0]
        except ValueError as error:
            if "was fitted to other rows" not in str(error):
                raise
            raise ValueError(
                f"{within} was fitted to other rows than its labels, `X_training` and "
                f"`y_training` (teach with `only_new` or `bootstrap`?): {error}"
            ) from None
    return ask_trained(model.estimator, asked, within)[0]
