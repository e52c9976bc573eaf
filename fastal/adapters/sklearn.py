"""scikit-learn: its Gaussian processes, `BayesianRidge` and `ARDRegression`.

A `Pipeline` that ends in one of them will do as well::

    model.fit(X_labelled, y_labelled)
    ...
    stopper.update_from(model, x, y)  # before the next fit

**GaussianProcessRegressor.** f is the smooth part of the kernel. The noise is what a `WhiteKernel`,
anywhere in the kernel, has on the diagonal, plus `alpha`; an array `alpha` that is not constant
says nothing about new labels, and `noise` must be given. `normalize_y` is undone for mean, variance
and noise. With the default ``alpha=1e-10`` and no `WhiteKernel` labels count as nearly free of
noise, and the bounds are huge: that is the model's opinion. `recomputed` knows the noise of each
label and takes any `alpha`; it compares `L_` with the kernel and refuses a model whose kernel or
data were changed after the fit.

**BayesianRidge, ARDRegression.** f is the linear function; its noise variance is ``1 / alpha_``.
`ARDRegression` takes the features that it dropped as zero. With fewer labels than features,
`sigma_` of `BayesianRidge` is right from scikit-learn 1.7 on only. They keep no data: `recomputed`
needs `X` and `y`.

**GaussianProcessClassifier**, two classes. The bound is the divergence KL(q_t || q_t+1) of the
Laplace approximations before and after the label, on all labelled inputs (Corollary 1), with the
kernel that the model has now. The posterior after the label is computed here: there is no second
call after the refit. A label costs O(t^3), as a fit with a fixed kernel does. `recomputed` does not
take it: `fastal.LaplaceClassifier` has its bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.pipeline import Pipeline

from fastal.adapters.dispatch import bounds_from, update_from
from fastal.adapters.posterior import Posterior, bounds_in_order, inputs_and_labels, wrong_kind
from fastal.adapters.sklearn_classifier import classifier_bounds
from fastal.adapters.sklearn_trained import own_noise, ridge_features, smooth_and_white
from fastal.adapters.sklearn_trained import trained as trained

__all__ = ["bounds_from", "update_from"]

LIBRARY = "scikit-learn"

Array = NDArray[np.float64]


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> Array:
    """Return the bounds of labels from a fitted estimator."""
    known = (GaussianProcessRegressor, BayesianRidge, ARDRegression, GaussianProcessClassifier)
    if not isinstance(model, (*known, Pipeline)):
        names = " or ".join(kind.__name__ for kind in known)
        raise wrong_kind(model, name, f"a {names}, or a Pipeline that ends in one")
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{name} must be fitted first, got an unfitted {type(model).__name__}")
    if isinstance(model, Pipeline):
        if np.ndim(x) < 2:
            x, _ = inputs_and_labels(x, y)
        return bounds(model[-1], model[:-1].transform(x), y, noise, name)
    points, labels = inputs_and_labels(x, y)
    if points.shape[1] != model.n_features_in_:
        raise ValueError(
            f"`x` must have {model.n_features_in_} features as {name}, got shape {np.shape(x)}"
        )
    if isinstance(model, GaussianProcessClassifier):
        return classifier_bounds(model, points, labels, noise, name)
    if isinstance(model, GaussianProcessRegressor):
        posterior = _gaussian_process(model, points, name)
    else:
        posterior = _ridge(model, points)
    return bounds_in_order(posterior, labels, noise, name)


def _gaussian_process(model: Any, X: Array, name: str) -> Posterior:
    scales, centres = np.ravel(model._y_train_std), np.ravel(model._y_train_mean)
    if len(scales) != 1:
        raise ValueError(f"{name} must have one output, got {len(scales)}")
    scale, centre = float(scales[0]), float(centres[0])
    cross = model.kernel_(X, model.X_train_)
    # `kernel(X, X)` leaves out white noise; `kernel(X)` includes it.
    prior = model.kernel_(X, X)
    # mu = k.(K + N)^-1 y,  C = K** - V^T V,  V = L^-1 k^T
    V = solve_triangular(model.L_, cross.T, lower=True, check_finite=False)
    _, white = smooth_and_white(model.kernel_, X)
    alpha = np.unique(own_noise(model))
    return Posterior(
        centre + scale * (cross @ model.alpha_.reshape(-1)),
        scale**2 * (prior - V.T @ V),
        scale**2 * np.diagonal(prior),
        scale**2 * (white + alpha) if alpha.size == 1 else None,
    )


def _ridge(model: Any, X: Array) -> Posterior:
    # The weights w ~ N(coef_, sigma_) belong to centred inputs; the intercept is taken as known.
    Z, precisions, _ = ridge_features(model, X)
    return Posterior(
        X @ model.coef_ + model.intercept_,
        Z @ model.sigma_ @ Z.T,
        np.einsum("ij,ij->i", Z, Z / precisions),
        1.0 / model.alpha_,
    )
