"""scikit-learn: `GaussianProcessRegressor`, `BayesianRidge` and `ARDRegression`.

A `Pipeline` that ends in one of them will do as well::

    model.fit(X_labelled, y_labelled)
    stopper.after_fit(model)

**GaussianProcessRegressor.** f is the smooth part of the kernel. The noise is what a `WhiteKernel`,
anywhere in the kernel, has on the diagonal, plus `alpha`, a number or an array. With the default
``alpha=1e-10`` and no `WhiteKernel` labels count as nearly free of noise, and the bounds are huge:
that is the model's opinion. `L_` is compared with the kernel: a model whose kernel or data were
changed after the fit is refused.

**BayesianRidge, ARDRegression.** f is the linear function; its noise variance is ``1 / alpha_``.
`ARDRegression` takes the features that it dropped as zero. With fewer labels than features,
`sigma_` of `BayesianRidge` is right from scikit-learn 1.7 on only. They keep no data: `X` and `y`
are needed.

A `GaussianProcessClassifier` is refused: `fastal.models.LaplaceClassifier` has its bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Exponentiation, Product, Sum
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.pipeline import Pipeline

from fastal._types import Array
from fastal.adapters.trained import (
    SAME_SINGLE,
    Asked,
    TrainedModel,
    at_edge,
    column,
    inputs,
    same_rows,
    wrong_kind,
)

LIBRARY = "scikit-learn"

# What a kernel has on the diagonal and not beside it, below this part of it, is rounding.
ROUNDING = 1e-12


def trained(model: Any, asked: Asked, name: str) -> TrainedModel:
    """Return what a fitted estimator knows of its labels."""
    known = (GaussianProcessRegressor, BayesianRidge, ARDRegression)
    if isinstance(model, GaussianProcessClassifier):
        raise TypeError(
            f"{name} must be a regressor, got a GaussianProcessClassifier: the bounds of classes "
            "do not come from one factor; `fastal.models.LaplaceClassifier` has them"
        )
    if not isinstance(model, (*known, Pipeline)):
        names = " or ".join(kind.__name__ for kind in known)
        raise wrong_kind(model, name, f"a {names}, or a Pipeline that ends in one")
    if isinstance(model, Pipeline):
        within = model[-1]
        if asked.X is not None and hasattr(within, "n_features_in_"):
            asked = asked._replace(X=model[:-1].transform(asked.X))
        return trained(within, asked, name)
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{name} must be fitted first, got an unfitted {type(model).__name__}")
    if isinstance(model, BayesianRidge | ARDRegression):
        return _ridge(model, asked, name)
    return _gaussian_process(model, asked, name)


def _gaussian_process(model: Any, asked: Asked, name: str) -> TrainedModel:
    if not hasattr(model, "X_train_"):
        raise ValueError(f"{name} must be fitted first, got an unfitted {type(model).__name__}")
    X, y = model.X_train_, np.asarray(model.y_train_)
    outputs = 1 if y.ndim == 1 else y.shape[1]
    if outputs != 1:
        raise ValueError(f"{name} must have one output, got {outputs}")
    y = y.reshape(len(X))
    if asked.X is not None:
        same_rows("X", X, inputs(asked.X, model.n_features_in_, name), name)
    if asked.y is not None:
        scale, centre = np.ravel(model._y_train_std)[0], np.ravel(model._y_train_mean)[0]
        same_rows("y", centre + scale * y, column(asked.y), name)
    # `kernel(X, X)` leaves out white noise; `kernel(X)` includes it.
    _, white = _smooth_and_white(model.kernel_, X)
    return TrainedModel(
        model.kernel_(X, X),
        y,
        white + _own_noise(model),
        at_edge=_at_edge(model),
        factor_diagonal=np.diagonal(model.L_),
    )


def _own_noise(model: Any) -> Any:
    """Return the noise variance of a process outside its kernel, of all labels or of each.

    scikit-optimize takes the noise out of the kernel after the fit and keeps it in `noise_`.
    """
    kept = getattr(model, "noise_", None)
    return model.alpha if kept is None else model.alpha + kept


def _smooth_and_white(kernel: Any, X: Any) -> tuple[Array, Array]:
    """Return the prior variances of f at X, and those of the white noise in a kernel."""
    if isinstance(kernel, Sum | Product):
        s1, w1 = _smooth_and_white(kernel.k1, X)
        s2, w2 = _smooth_and_white(kernel.k2, X)
        if isinstance(kernel, Sum):
            return s1 + s2, w1 + w2
        # (s1 + w1) (s2 + w2) = s1 s2 + white
        return s1 * s2, s1 * w2 + w1 * s2 + w1 * w2
    if isinstance(kernel, Exponentiation):
        s, w = _smooth_and_white(kernel.kernel, X)
        return s**kernel.exponent, (s + w) ** kernel.exponent - s**kernel.exponent
    diagonal, smooth = kernel.diag(X), np.diagonal(kernel(X, X))
    white = diagonal - smooth
    return smooth, np.where(white > ROUNDING * diagonal, white, 0.0)


def _at_edge(model: Any) -> bool:
    """Return whether the length scales that were searched lie at an edge of their box."""
    if model.optimizer is None:
        return False
    kernel, scales = model.kernel_, []
    values = kernel.get_params()
    for parameter in kernel.hyperparameters:
        if parameter.name.endswith("length_scale") and not parameter.fixed:
            found = np.broadcast_to(values[parameter.name], parameter.n_elements)
            box = np.broadcast_to(parameter.bounds, (parameter.n_elements, 2))
            scales += [
                (float(value), float(low), float(high))
                for value, (low, high) in zip(found, box, strict=True)
            ]
    return at_edge(scales)


def _ridge(model: Any, asked: Asked, name: str) -> TrainedModel:
    if asked.X is None or asked.y is None:
        raise ValueError(
            f"{name}, a {type(model).__name__}, keeps no training data: give `X` and `y` in the "
            "order of the labels"
        )
    X, y = inputs(asked.X, model.n_features_in_, name), np.asarray(column(asked.y), np.float64)
    if y.shape != (len(X),):
        raise ValueError(f"`y` must have one label for each of {len(X)} rows of `X`, got {y.shape}")
    # The intercept is taken as known.
    Z, precisions, kept = _ridge_features(model, X)
    coef = model.coef_[kept]
    mean = model.intercept_ + model.X_offset_ @ model.coef_
    # coef_ = alpha sigma Z^T (y - mean)
    weights = model.alpha_ * (model.sigma_ @ (Z.T @ (y - mean)))
    limit = SAME_SINGLE * np.abs(coef).max(initial=0.0)
    if not np.allclose(weights, coef, rtol=SAME_SINGLE, atol=limit):
        raise ValueError(
            f"{name} was fitted to other rows than `X` and `y`: they do not give its `coef_`"
        )
    return TrainedModel((Z / precisions) @ Z.T, y, 1.0 / model.alpha_, mean)


def _ridge_features(model: Any, X: Array) -> tuple[Array, Array, Any]:
    """Return the centred features that a linear model keeps, their precisions, and which they are.

    The weights w ~ N(0, 1 / lambda) belong to centred inputs. `ARDRegression` has one lambda per
    feature and drops those above a threshold: `sigma_` has only the others.
    """
    Z = X - model.X_offset_
    precisions = np.broadcast_to(model.lambda_, Z.shape[1])
    kept = precisions < getattr(model, "threshold_lambda", np.inf)
    return Z[:, kept], precisions[kept], kept
