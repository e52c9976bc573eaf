"""scikit-activeml: its wrappers around an estimator that fastal knows.

`SklearnRegressor`, `SklearnNormalRegressor` and `SklearnClassifier`, with any query strategy::

    model = SklearnRegressor(GaussianProcessRegressor(...))
    while True:
        model.fit(X, y)  # unlabelled: y is nan
        if stopper.after_fit(model, order=np.argsort(np.argsort(rows))):
            break
        index = strategy.query(X, y, ...)
        y[index] = ask(X[index])
        rows.extend(index)

The fitted estimator within does the work: `fastal.adapters.sklearn` says how.

A wrapper is fitted to the rows of the pool that have a label, in the order of the pool:
`bounds_of` needs `order`. If the pool's rows were labelled as ``rows = [17, 3, 44]``, that is
``np.argsort(np.argsort(rows))``; if the wrapper was given rows in the order of their labels,
``np.arange(T)``. `X` and `y`, if given, may be those of the whole pool, with nan for missing
labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal.adapters.dispatch import ask_trained
from fastal.adapters.trained import Asked, TrainedModel, column, wrong_kind

LIBRARY = "scikit-activeml"
WITHIN = "`model.estimator_` (scikit-activeml)"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what the estimator in a wrapper knows of its labels."""
    within = _within(model, name)
    if "estimator_" in vars(model) and not asked.ordered:
        raise ValueError(
            f"`order` must be given: {name} keeps its labels in the order of the pool. "
            "np.argsort(np.argsort(rows)) for the rows of the pool as they were labelled"
        )
    if asked.X is not None and asked.y is not None:
        y = np.asarray(column(asked.y))
        if y.dtype.kind == "f" and y.ndim == 1 and len(asked.X) == len(y):
            there = ~np.isnan(y)
            asked = asked._replace(X=np.asarray(asked.X)[there], y=y[there])
    return ask_trained(within, asked, WITHIN)[0]


def _within(model: Any, name: str) -> Any:
    """Return the fitted estimator in a wrapper."""
    # A wrapper passes on the attributes of its estimator: look at its own only.
    own = vars(model)
    if "estimator" not in own:
        wanted = "a SklearnRegressor, SklearnNormalRegressor or SklearnClassifier"
        raise wrong_kind(model, name, wanted)
    if not own.get("is_fitted_", True):
        raise ValueError(f"{name} must be fitted first: its fit failed, see the warning")
    return own.get("estimator_", model.estimator)
