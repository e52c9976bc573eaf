"""SMT: `KRG`, with continuous inputs.

::

    model = KRG(eval_noise=True)
    model.set_training_values(X, y)
    model.train()
    stopper.after_fit(model)

The noise of SMT is relative to the variance of the process; the nugget counts as noise. Without
`eval_noise` or `noise0` there is only the nugget, labels count as exact, and the bounds are huge.
The trend is taken as known, at the coefficients of the fit: SMT's own variance includes that of the
trend. With `is_ri` its variance is no posterior variance: refused, use `eval_noise` without it. So
are models that merge rows (`use_het_noise` with `eval_noise`), other surrogates and mixed inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._types import Array
from fastal.adapters.trained import (
    Asked,
    TrainedModel,
    at_edge,
    column,
    inputs,
    same_rows,
    wrong_kind,
)

LIBRARY = "SMT"


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a trained model knows of its labels."""
    _refuse_others(model, name)
    X, y = model.X_norma, np.ravel(model.y_norma)
    if asked.X is not None:
        given = inputs(asked.X, X.shape[1], name)
        same_rows("X", X, (given - model.X_offset) / model.X_scale, name)
    if asked.y is not None:
        same_rows("y", y, (np.asarray(column(asked.y)) - model.y_mean[0]) / model.y_std[0], name)
    return TrainedModel(
        _covariance(model, X),
        y,
        _noise(model),
        _trend(model, X),
        at_edge=_at_edge(model),
        factor_diagonal=np.sqrt(_variance(model)) * np.diagonal(model.optimal_par["C"]),
    )


def _refuse_others(model: Any, name: str) -> None:
    if getattr(model, "name", None) != "Kriging":
        raise wrong_kind(model, name, "a KRG")
    if not getattr(model, "optimal_par", None):
        raise ValueError(f"{name} must be trained first: call `train`")
    if model.options["is_ri"]:
        raise ValueError(
            f"{name} reinterpolates (`is_ri`), and its variance is no posterior variance: use "
            "`eval_noise` without `is_ri`"
        )
    if model.options["use_het_noise"] and model.options["eval_noise"]:
        raise ValueError(f"{name} merges rows (`use_het_noise`): its rows are not its labels")
    if not model.is_continuous:
        raise ValueError(f"{name} must have continuous inputs only, got a mixed design space")
    if np.shape(model.y_norma)[1] != 1:
        raise ValueError(f"{name} must have one output, got {np.shape(model.y_norma)[1]}")


def _variance(model: Any) -> float:
    """Return the variance of the process, in units of the normalised labels."""
    return float(np.ravel(model.optimal_par["sigma2"])[0] / model.y_std[0] ** 2)


def _covariance(model: Any, X: Array) -> Array:
    """Return the covariance of f at normalised inputs."""
    pairs = (X[:, None, :] - X[None, :, :]).reshape(-1, X.shape[1])
    found = model.corr(model._componentwise_distance(pairs)).reshape(len(X), len(X))
    cov: Array = _variance(model) * found
    return cov


def _noise(model: Any) -> Array:
    relative = np.ravel(model.optimal_noise).astype(np.float64)
    if not model.options["eval_noise"]:
        relative = relative + model.options["nugget"]
    return np.broadcast_to(_variance(model) * relative, len(model.X_norma))


def _trend(model: Any, X: Array) -> Array:
    basis = model._regression_types[model.options["poly"]](X)
    return np.ravel(basis @ model.optimal_par["beta"])


def _at_edge(model: Any) -> bool:
    """Return whether the length scales, theta**-1/2, lie at an edge of their box."""
    if model.options["hyper_opt"] == "NoOp":
        return False
    low, high = model.options["theta_bounds"][:2]
    thetas = np.ravel(model.optimal_theta)
    return at_edge((float(t) ** -0.5, float(high) ** -0.5, float(low) ** -0.5) for t in thetas)
