"""GPy: `GPRegression`, `GPHeteroscedasticRegression`, and any `GP` with exact inference.

::

    model = GPy.models.GPRegression(X, Y, kernel, normalizer=True)
    model.optimize()
    stopper.after_fit(model)

f is the smooth part of the kernel; white noise in the kernel counts as noise, and so does the
1e-8 that GPy itself adds to the diagonal. Sparse, variational and EP models are refused: they are
not exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._types import Array
from fastal.adapters.trained import Asked, TrainedModel, column, inputs, same_rows, wrong_kind

LIBRARY = "GPy"

# What GPy's exact inference adds to the diagonal, besides the noise.
ITS_JITTER = 1e-8


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what an exact model knows of its labels."""
    _refuse_others(model, name)
    X = np.asarray(model.X)
    if asked.X is not None:
        same_rows("X", X, inputs(asked.X, X.shape[1], name), name)
    if asked.y is not None:
        same_rows("y", np.asarray(model.Y)[:, 0], column(asked.y), name)
    return TrainedModel(
        model.kern.K(X, X.copy()),  # two arrays: without white noise
        _labels(model),
        _noise(model),
        _mean(model, X),
        factor_diagonal=np.diagonal(model.posterior.woodbury_chol),
    )


def _refuse_others(model: Any, name: str) -> None:
    """Raise for models that are not exact, and for several outputs."""
    method = type(getattr(model, "inference_method", None)).__name__
    if method != "ExactGaussianInference":
        said = f", with {method}" if hasattr(model, "inference_method") else ""
        raise TypeError(
            f"{name} is not an exact Gaussian process with Gaussian noise: got a "
            f"{type(model).__name__}{said}"
        )
    outputs = np.shape(model.Y)[1]
    if outputs != 1:
        raise ValueError(f"{name} must have one output, got {outputs}: one output is wanted")
    if not hasattr(model, "kern"):  # pragma: no cover - no such model is known
        raise wrong_kind(model, name, "a GP")


def _labels(model: Any) -> Array:
    return np.ravel(np.asarray(model.Y_normalized, dtype=np.float64))


def _noise(model: Any) -> Array:
    X = np.asarray(model.X)
    white = model.kern.Kdiag(X) - np.diag(model.kern.K(X, X.copy()))
    own = np.ravel(model.likelihood.gaussian_variance(model.Y_metadata))
    noise: Array = own + white + ITS_JITTER
    return noise


def _mean(model: Any, X: Array) -> Any:
    return 0.0 if model.mean_function is None else np.ravel(model.mean_function.f(X))
