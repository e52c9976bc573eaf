"""modAL: `ActiveLearner` and `BayesianOptimizer` around an estimator that fastal knows.

::

    learner = ActiveLearner(estimator=GaussianProcessRegressor(...), query_strategy=...,
                            X_training=X[:1], y_training=y[:1])
    while True:
        index, x = learner.query(pool)
        y = ask(x)
        learner.teach(x, y)
        if stopper.after_fit(learner, initial=1):
            break

The estimator does the work: `fastal.adapters.sklearn` says how. A `Committee` has no posterior.

modAL 0.4.2, the latest, passes an argument that scikit-learn 1.8 removed: its `teach` works with
earlier versions only, and the extra ``fastal[modal]`` asks for one.

`bounds_of` compares the rows of the estimator with `X_training` and `y_training`: after
``teach(only_new=True)`` or ``teach(bootstrap=True)`` the estimator was fitted to other rows, and
its bounds are not those of the labels.
"""

from __future__ import annotations

from typing import Any

from fastal.adapters.dispatch import ask_trained
from fastal.adapters.trained import Asked, TrainedModel, wrong_kind

LIBRARY = "modAL"


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
