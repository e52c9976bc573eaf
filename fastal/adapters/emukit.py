"""Emukit: its wrappers around models of GPy and scikit-learn, and its loops.

::

    loop = BayesianOptimizationLoop(space, GPyModelWrapper(model), acquisition)
    loop.run_loop(f, 1)
    stopper.after_fit(loop)

The model within does the work: `fastal.adapters.gpy` and `fastal.adapters.sklearn` say how. A loop
fits its model at the end of each iteration; a label that came later is noticed.
`fastal.adapters.loops.emukit` has a stopping condition for `run_loop`.
"""

from __future__ import annotations

from typing import Any

from fastal.adapters.dispatch import ask_trained
from fastal.adapters.trained import Asked, TrainedModel, all_seen, wrong_kind

LIBRARY = "Emukit"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what the model in a wrapper knows of its labels."""
    return ask_trained(_within(model, name), asked, "`model.model` (Emukit)")[0]


def _within(model: Any, name: str) -> Any:
    """Return the model in a wrapper, or in the wrapper of a loop."""
    wanted = "a loop or a wrapper with the `model` of GPy or scikit-learn"
    if type(model).__name__ == "LoopState":  # it has no model, and raises for any name
        raise wrong_kind(model, name, wanted)
    if hasattr(model, "model_updaters") and hasattr(model, "loop_state"):
        if len(model.model_updaters) != 1:
            raise ValueError(
                f"{name} must have one model, got {len(model.model_updaters)}: give one of them"
            )
        wrapper = model.model_updaters[0].model
        way_out = "the loop fits its model at the end of an iteration"
        all_seen(len(wrapper.X), len(model.loop_state.X), name, way_out)
        return _within(wrapper, name)
    if not hasattr(model, "model"):
        raise wrong_kind(model, name, wanted)
    return model.model
