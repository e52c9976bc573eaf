"""celerite2: `GaussianProcess`, in one dimension.

::

    gp = celerite2.GaussianProcess(kernel, mean=0.0)
    gp.compute(t, diag=noise)  # sorted
    stopper.recompute_from(gp, y=y, order=order)

Its inputs are sorted, so that its order is hardly ever that in which the labels came: `order` must
be given, the rows of the process as they were labelled, and `y` in the order of the process. It
keeps no labels, and `update_from` is refused. The bounds take a dense factor, O(T^3).
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

LIBRARY = "celerite2"


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> NDArray[np.float64]:
    """Raise: a process keeps no labels."""
    raise no_new_labels(name)


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a process knows, with the labels of the caller."""
    if not hasattr(model, "_diag") or not hasattr(model.kernel, "get_value"):
        raise wrong_kind(model, name, "a celerite2.GaussianProcess")
    if getattr(model, "_t", None) is None:
        raise ValueError(f"{name} must know its inputs first: call `compute`")
    if not asked.ordered:
        raise ValueError(
            f"`order` must be given: {name} keeps its inputs sorted. np.argsort(np.argsort(t)) for "
            "inputs t in the order of their labels"
        )
    t = np.asarray(model._t)
    y = given_labels(asked, len(t), name)
    compare_inputs(asked, t, name)
    return TrainedModel(
        model.kernel.get_value(t[:, None] - t),
        y,
        np.asarray(model._diag),
        np.asarray(model._mean_value),
        factor_diagonal=np.sqrt(model._d),  # K + N = L diag(d) L^T, L with a unit diagonal
    )
