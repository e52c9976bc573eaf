"""The adapter of a model, found by the class of the model."""

from __future__ import annotations

import importlib
from typing import Any

from fastal.adapters.trained import Asked, TrainedModel, way_out

# Package that defines the class of a model -> the adapter.
_ADAPTERS = {
    "GPy": "gpy",
    "ax": "ax",
    "bayes_opt": "bayes_opt",
    "bofire": "bofire",
    "botorch": "botorch",
    "celerite2": "celerite2",
    "emukit": "emukit",
    "fastal": "own",
    "george": "george",
    "gpflow": "gpflow",
    "gpytorch": "botorch",
    "modAL": "modal",
    "openturns": "openturns",
    "skactiveml": "skactiveml",
    "sklearn": "sklearn",
    "skopt": "skopt",
    "smt": "smt",
    "tinygp": "tinygp",
}


def ask_trained(model: Any, asked: Asked, name: str = "") -> tuple[TrainedModel, str]:
    """Return what a fitted model knows of its labels, and its name in messages."""
    found = _adapter_of(model)
    if found is None:
        raise TypeError(
            f"{name or '`model`'} must be of scikit-learn, modAL, scikit-activeml, GPyTorch, "
            "BoTorch or another library that fastal.adapters knows, got a "
            f"{type(model).__name__}; {way_out(model)}"
        )
    name = name or f"`model` ({found.LIBRARY})"
    return found.trained(model, asked, name), name


def is_own(model: Any) -> bool:
    """Return whether a model is fastal's own, with bounds of its labels."""
    own = any(base.__module__.startswith("fastal.") for base in type(model).__mro__)
    return own and hasattr(model, "bounds") and hasattr(model, "n_labels")


def _adapter_of(model: Any) -> Any:
    """Return the module that knows the class of a model, or None."""
    for base in type(model).__mro__:
        adapter = _ADAPTERS.get(base.__module__.partition(".")[0])
        if adapter is not None:
            return importlib.import_module(f"fastal.adapters.{adapter}")
    return None
