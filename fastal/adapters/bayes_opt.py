"""bayesian-optimization: `BayesianOptimization`.

::

    optimizer.set_gp_params(alpha=1e-2)  # variance of the noise, in units of the normalised labels
    while True:
        point = optimizer.suggest()
        if stopper.after_fit(optimizer, initial=10):
            break
        optimizer.register(params=point, target=f(**point))

The model is fitted by `suggest`, to all labels so far. At any other time it lacks those that were
registered since: that is an error. So is the time before the first `suggest` with labels.

By default this library takes labels as exact (alpha=1e-6), and the bounds are huge.
"""

from __future__ import annotations

from typing import Any

from fastal.adapters.dispatch import ask_trained
from fastal.adapters.trained import Asked, TrainedModel, all_seen, no_model_yet, wrong_kind

LIBRARY = "bayesian-optimization"
# Where the process is: private to the library, which shows it nowhere else.
PLACE = "_gp"
WITHIN = "the model of `model` (bayesian-optimization)"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what the model of an optimiser knows of its labels."""
    within = _within(model, name)
    X = model.space.params if asked.X is None else asked.X
    y = model.space.target if asked.y is None else asked.y
    return ask_trained(within, asked._replace(X=X, y=y), WITHIN)[0]


def _within(model: Any, name: str) -> Any:
    """Return the process that `suggest` fitted to all labels."""
    found = getattr(model, PLACE, None)
    if found is None or not hasattr(model, "space"):
        raise wrong_kind(model, name, "a BayesianOptimization")
    if not hasattr(found, "X_train_"):
        raise no_model_yet(name, "it is fitted by `suggest`, to the labels there are")
    way_out = "ask between `suggest` and `register`"
    all_seen(len(found.X_train_), len(model.space.target), name, way_out)
    return found
