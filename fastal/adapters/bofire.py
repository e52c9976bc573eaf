"""BoFire: surrogates on BoTorch, and strategies with one output.

::

    strategy.tell(experiments)
    stopper.after_fit(strategy)

The BoTorch model within is asked: `fastal.adapters.botorch` says how. A strategy fits it in `tell`,
to the experiments whose output is valid; after ``tell(..., retrain=False)`` it lacks labels, which
is an error. Of several outputs give the surrogate of one, ``strategy.surrogates.surrogates[0]``.
"""

from __future__ import annotations

from typing import Any

from fastal.adapters.dispatch import ask_trained
from fastal.adapters.trained import Asked, TrainedModel, all_seen, no_model_yet, wrong_kind

LIBRARY = "BoFire"
WITHIN = "the BoTorch model of `model` (BoFire)"


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
