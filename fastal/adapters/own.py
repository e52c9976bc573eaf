"""fastal's own `GaussianProcess`, for `bounds_of` with an order or with rows to compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._core.covariance import covariance_rows
from fastal.adapters.trained import Asked, TrainedModel, column, inputs, same_rows, wrong_kind

LIBRARY = "fastal"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a process knows of its labels."""
    if not hasattr(model, "snapshot"):
        raise wrong_kind(model, name, "a GaussianProcess")
    labels = model.snapshot()
    n = len(labels.y)
    if asked.X is not None:
        points = inputs(asked.X, len(labels.scaled), name)
        same_rows("X", labels.scaled.T, labels.prior.scale("X", points).T, name)
    if asked.y is not None:
        same_rows("y", labels.y, column(asked.y), name)
    cov = np.empty((n, n))
    if n > 0:
        prior = labels.prior
        covariance_rows(prior.kind, prior.amplitude, labels.scaled, n, labels.scaled, 0, cov)
    edge = bool(getattr(model, "at_edge", False))
    return TrainedModel(cov, labels.y, labels.noise, labels.mean, edge)
