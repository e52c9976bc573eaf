"""celerite2: `GaussianProcess`, in one dimension.

::

    gp = celerite2.GaussianProcess(kernel, mean=0.0)
    gp.compute(t, diag=noise)  # sorted
    stopper.recompute_from(gp, y=y, order=order)

Its inputs are sorted, so that its order is hardly ever that in which the labels came: `order` must
be given, the rows of the process as they were labelled, and `y` in the order of the process. A
process keeps no labels; what `condition` returns does, and serves for both::

    known = gp.condition(y)
    stopper.update_from(known, t_new, y_new)  # before the process is computed with them
    stopper.recompute_from(known, order=order)

The noise of a new label is that of the others if it is one; else `noise` must be given. The bounds
take a dense factor, O(T^3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._types import Array
from fastal.adapters.dispatch import bounds_from, update_from
from fastal.adapters.keeps_no_labels import compare_inputs, given_labels, no_new_labels
from fastal.adapters.posterior import bounds_in_order, conditioned, inputs_and_labels, wrong_kind
from fastal.adapters.trained import Asked, TrainedModel, column, same_rows

__all__ = ["bounds_from", "update_from"]

LIBRARY = "celerite2"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> Array:
    """Return the bounds of labels from a process and the labels that it was conditioned on."""
    process, known = _process_and_labels(model, name)
    if known is None:
        raise no_new_labels(name, "give `gp.condition(y)`, which does")
    points, labels = inputs_and_labels(x, y)
    if points.shape[1] != 1:
        raise ValueError(f"`x` must have 1 feature as {name}, got shape {np.shape(x)}")
    t, new = np.asarray(process._t), points[:, 0]
    both = np.concatenate([t, new])
    noises = np.asarray(process._diag)
    mean = np.concatenate(
        [np.broadcast_to(process.mean(part), part.shape) for part in (t, new)], dtype=np.float64
    )
    found = conditioned(
        process.kernel.get_value(both[:, None] - both),
        mean,
        known,
        noises,
        noises[0] if np.ptp(noises) == 0 else None,
    )
    return bounds_in_order(found, labels, noise, name)


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a process knows, with the labels of the caller or those it was conditioned on."""
    process, known = _process_and_labels(model, name)
    if not asked.ordered:
        raise ValueError(
            f"`order` must be given: {name} keeps its inputs sorted. np.argsort(np.argsort(t)) for "
            "inputs t in the order of their labels"
        )
    t = np.asarray(process._t)
    if known is not None and asked.y is not None:
        same_rows("y", known, column(asked.y), name)
    y = given_labels(asked, len(t), name) if known is None else known
    compare_inputs(asked, t, name)
    return TrainedModel(
        process.kernel.get_value(t[:, None] - t),
        y,
        np.asarray(process._diag),
        np.asarray(process._mean_value),
        factor_diagonal=np.sqrt(process._d),  # K + N = L diag(d) L^T, L with a unit diagonal
    )


def _process_and_labels(model: Any, name: str) -> tuple[Any, Array | None]:
    """Return a process that knows its inputs, and the labels of what `condition` returned."""
    conditional = hasattr(model, "gp") and hasattr(model, "y")
    process = model.gp if conditional else model
    if not hasattr(process, "_diag") or not hasattr(process.kernel, "get_value"):
        raise wrong_kind(model, name, "a celerite2.GaussianProcess, or what `condition` returns")
    if getattr(process, "_t", None) is None:
        raise ValueError(f"{name} must know its inputs first: call `compute`")
    if not conditional:
        return process, None
    if model.kernel is not None or not model.include_mean:
        raise ValueError(
            f"{name} must be conditioned with its own kernel and mean: give `gp.condition(y)`"
        )
    return process, np.asarray(model.y, dtype=np.float64)
