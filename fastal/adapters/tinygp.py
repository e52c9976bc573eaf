"""tinygp: `GaussianProcess` with diagonal noise.

::

    gp = tinygp.GaussianProcess(kernel, X, diag=noise)
    stopper.recompute_from(gp, y=y)

A process keeps its inputs and no labels: `y` must be given, and `update_from` is refused. Dense and
banded noise is correlated from label to label and refused. Say
``jax.config.update("jax_enable_x64", True)``: in single precision, JAX's default, five digits of
the bounds are right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastal.adapters.dispatch import bounds_from, update_from
from fastal.adapters.keeps_no_labels import compare_inputs, given_labels, no_new_labels
from fastal.adapters.posterior import wrong_kind
from fastal.adapters.trained import Asked, TrainedModel

__all__ = ["bounds_from", "update_from"]

LIBRARY = "tinygp"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> NDArray[np.float64]:
    """Raise: a process keeps no labels."""
    raise no_new_labels(name)


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a process knows, with the labels of the caller."""
    if not (hasattr(model, "kernel") and hasattr(model, "noise") and hasattr(model, "X")):
        raise wrong_kind(model, name, "a tinygp.GaussianProcess")
    kind = type(model.noise).__name__
    if kind != "Diagonal":
        raise ValueError(f"the noise of {name} must be independent from label to label, got {kind}")
    noise = np.asarray(model.noise.diagonal())
    y = given_labels(asked, len(noise), name)
    if not isinstance(model.X, tuple | list | dict):  # a tree of inputs cannot be compared
        compare_inputs(asked, model.X, name)
    factor = getattr(model.solver, "scale_tril", None)
    single = noise.dtype == np.float32  # its factor has too few digits to be compared
    return TrainedModel(
        np.asarray(model.kernel(model.X, model.X)),
        y,
        noise,
        np.asarray(model.mean),
        factor_diagonal=None if factor is None or single else np.diagonal(np.asarray(factor)),
    )
