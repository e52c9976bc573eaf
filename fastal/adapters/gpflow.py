"""GPflow: `GPR`, the exact model.

::

    model = gpflow.models.GPR((X, Y), kernel)
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    stopper.after_fit(model)

f is the smooth part of the kernel; a `White` kernel counts as noise. The noise may depend on the
inputs. `SGPR`, `VGP`, `SVGP` and others are not exact and are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._types import Array
from fastal.adapters.trained import Asked, TrainedModel, column, inputs, same_rows

LIBRARY = "GPflow"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what an exact model knows of its labels."""
    X, Y = _data(model, name)
    if asked.X is not None:
        same_rows("X", X, inputs(asked.X, X.shape[1], name), name)
    if asked.y is not None:
        same_rows("y", Y, column(asked.y), name)
    cov, mean, noise = _prior(model, X)
    return TrainedModel(cov, Y, noise, mean)


def _prior(model: Any, X: Array) -> tuple[Array, Array, Array]:
    """Return covariance and mean of f at X, and the variance of the noise there."""
    cov = model.kernel(X, X).numpy()  # two arrays: without white noise
    white = model.kernel(X, full_cov=False).numpy() - np.diagonal(cov)
    own = np.ravel(model.likelihood.variance_at(X).numpy())
    return cov, np.ravel(model.mean_function(X).numpy()), own + white


def _data(model: Any, name: str) -> tuple[Array, Array]:
    """Return inputs and labels of an exact model with one output."""
    from gpflow.models import GPR

    if not isinstance(model, GPR):
        raise TypeError(
            f"{name} is not an exact Gaussian process with Gaussian noise: got a "
            f"{type(model).__name__}; a GPR is"
        )
    X, Y = (np.asarray(values) for values in model.data)
    if Y.shape[1] != 1:
        raise ValueError(f"{name} must have one output, got {Y.shape[1]}: one output is wanted")
    return X, Y[:, 0]
