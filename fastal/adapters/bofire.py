"""BoFire: surrogates on BoTorch, and strategies with one output.

::

    strategy.tell(experiments)
    stopper.recompute_from(strategy)

The BoTorch model within is asked: `fastal.adapters.botorch` says how. A strategy fits it in `tell`,
to the experiments whose output is valid; after ``tell(..., retrain=False)`` it lacks labels, which
is an error. Of several outputs give the surrogate of one, ``strategy.surrogates.surrogates[0]``.
New inputs, for `update_from`, are a data frame, as `predict` takes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastal.adapters.dispatch import ask_adapter, ask_trained, bounds_from, update_from
from fastal.adapters.posterior import wrong_kind
from fastal.adapters.trained import Asked, TrainedModel, all_seen, no_model_yet

__all__ = ["bounds_from", "update_from"]

LIBRARY = "BoFire"
WITHIN = "the BoTorch model of `model` (BoFire)"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> NDArray[np.float64]:
    """Return the bounds of labels from the BoTorch model within."""
    within = _within(model, name)
    if hasattr(x, "columns"):
        features = model.domain.inputs if hasattr(model, "domain") else model.inputs
        x = features.transform(x, model.input_preprocessing_specs).to_numpy()
    return ask_adapter(within, x, y, noise, WITHIN)


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what the BoTorch model within knows of its labels."""
    return ask_trained(_within(model, name), asked, WITHIN)[0]


def _within(model: Any, name: str) -> Any:
    """Return the BoTorch model of a surrogate, or of the only surrogate of a strategy."""
    if hasattr(model, "surrogates") and hasattr(model, "experiments"):
        surrogates = model.surrogates
        surrogates = [] if surrogates is None else surrogates.surrogates
        if len(surrogates) > 1:
            raise ValueError(
                f"{name} must have one output, got {len(surrogates)}: one output is wanted, give "
                "`strategy.surrogates.surrogates[0]`"
            )
        if not surrogates or model.experiments is None or surrogates[0].model is None:
            raise no_model_yet(name, "it is fitted by `tell`")
        within = surrogates[0].model
        valid = model.domain.outputs.preprocess_experiments_all_valid_outputs(model.experiments)
        if hasattr(within, "train_targets"):
            seen = len(within.train_targets)
            all_seen(seen, len(valid), name, "call `tell` with `retrain=True` first")
        return within
    if not hasattr(model, "model"):
        raise wrong_kind(model, name, "a surrogate or a strategy with a BoTorch model")
    if model.model is None:
        raise no_model_yet(name, "it is fitted by `fit`")
    return model.model
