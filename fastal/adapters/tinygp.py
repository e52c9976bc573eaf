"""tinygp: `GaussianProcess` with diagonal noise.

::

    gp = tinygp.GaussianProcess(kernel, X, diag=noise)
    stopper.after_fit(gp, y=y)

A process keeps its inputs and no labels: `y` must be given. Dense and banded noise is correlated
from label to label and refused. Say ``jax.config.update("jax_enable_x64", True)``: in single
precision, JAX's default, five digits of the bounds are right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal.adapters.keeps_no_labels import compare_inputs, given_labels
from fastal.adapters.trained import Asked, TrainedModel, wrong_kind

LIBRARY = "tinygp"


def _process(model: Any, name: str) -> Any:
    """Return a process; `condition` returns it in a pair."""
    model = getattr(model, "gp", model)
    if not (hasattr(model, "kernel") and hasattr(model, "noise") and hasattr(model, "X")):
        raise wrong_kind(model, name, "a tinygp.GaussianProcess")
    return model


def _is_conditioned(process: Any) -> bool:
    return hasattr(process.kernel, "solver") and hasattr(process.mean_function, "alpha")


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a process knows, with the labels of the caller."""
    model = _process(model, name)
    if _is_conditioned(model):
        raise TypeError(
            f"{name} is conditioned on labels that it does not keep: give the process before "
            "`condition`, as after_fit(gp, y=y)"
        )
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
