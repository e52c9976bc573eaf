"""What adapters of libraries share whose processes keep inputs and no labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal import _validation as check
from fastal._types import Array
from fastal.adapters.trained import Asked, column, inputs, same_rows


def given_labels(asked: Asked, size: int, name: str) -> Array:
    """Return the labels that the caller gives, one for each input of a process."""
    if asked.y is None:
        raise ValueError(
            f"{name} keeps no labels: give `y`, as after_fit(model, y=y), in its order of inputs"
        )
    y: Array = check.finite_array("y", column(asked.y))
    if y.shape != (size,):
        raise ValueError(f"`y` must have one label for each of {size} inputs, got shape {y.shape}")
    return y


def compare_inputs(asked: Asked, kept: Any, name: str) -> None:
    """Raise unless the inputs that a process keeps are those that the caller has."""
    if asked.X is None:
        return
    X = np.asarray(kept)
    if X.ndim == 1:
        X = X[:, None]
    same_rows("X", X, inputs(asked.X, X.shape[1], name), name)
