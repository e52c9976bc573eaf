"""scikit-activeml: its wrappers around an estimator that fastal knows.

`SklearnRegressor`, `SklearnNormalRegressor` and `SklearnClassifier`, with any query strategy::

    model = SklearnRegressor(GaussianProcessRegressor(...))
    while True:
        model.fit(X, y)  # unlabelled: y is nan
        index = strategy.query(X, y, ...)
        y[index] = ask(X[index])
        if stopper.update_from(model, X[index], y[index]):
            break

The fitted estimator within does the work: `fastal.adapters.sklearn` says how. Labels of a batch are
taken in order, each given those before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastal.adapters.dispatch import ask_adapter, bounds_from, update_from
from fastal.adapters.posterior import wrong_kind

__all__ = ["bounds_from", "update_from"]

LIBRARY = "scikit-activeml"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> NDArray[np.float64]:
    """Return the bounds of labels from the estimator in a wrapper."""
    # A wrapper passes on the attributes of its estimator: look at its own only.
    own = vars(model)
    if "estimator" not in own:
        wanted = "a SklearnRegressor, SklearnNormalRegressor or SklearnClassifier"
        raise wrong_kind(model, name, wanted)
    if not own.get("is_fitted_", True):
        raise ValueError(f"{name} must be fitted first: its fit failed, see the warning")
    within = own.get("estimator_", model.estimator)
    return ask_adapter(within, x, y, noise, "`model.estimator_` (scikit-activeml)")
