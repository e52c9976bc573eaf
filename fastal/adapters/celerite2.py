"""celerite2: `GaussianProcess`, in one dimension.

::

    gp = celerite2.GaussianProcess(kernel, mean=0.0)
    gp.compute(t, diag=noise)  # sorted
    stopper.after_fit(gp, y=y, order=order)

Its inputs are sorted, so that its order is hardly ever that in which the labels came: `order` must
be given, the rows of the process as they were labelled, and `y` in the order of the process. A
process keeps no labels; what `condition` returns does::

    stopper.after_fit(gp.condition(y), order=order)

The bounds take a dense factor, O(T^3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._types import Array
from fastal.adapters.keeps_no_labels import compare_inputs, given_labels
from fastal.adapters.trained import Asked, TrainedModel, column, same_rows, wrong_kind

LIBRARY = "celerite2"


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
