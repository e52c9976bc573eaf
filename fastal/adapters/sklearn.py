"""scikit-learn: `GaussianProcessRegressor`, `BayesianRidge`, `GaussianProcessClassifier`.

A `Pipeline` that ends in one of them will do as well::

    model.fit(X_labelled, y_labelled)
    ...
    stopper.update_from(model, x, y)  # before the next fit

**GaussianProcessRegressor.** f is the smooth part of the kernel. The noise is what a `WhiteKernel`,
anywhere in the kernel, has on the diagonal, plus `alpha`; an array `alpha` that is not constant
says nothing about new labels, and `noise` must be given. `normalize_y` is undone for mean, variance
and noise. With the default ``alpha=1e-10`` and no `WhiteKernel` labels count as nearly free of
noise, and the bounds are huge: that is the model's opinion.

**BayesianRidge.** f is the linear function; its noise variance is ``1 / alpha_``. With fewer labels
than features, `sigma_` is right from scikit-learn 1.7 on only.

**GaussianProcessClassifier**, two classes. The bound is the divergence KL(q_t || q_t+1) of the
Laplace approximations before and after the label, on all labelled inputs (Corollary 1), with the
kernel that the model has now. The posterior after the label is computed here: there is no second
call after the refit. A label costs O(t^3), as a fit with a fixed kernel does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Exponentiation, Product, Sum
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import Pipeline

from fastal.adapters import (
    Posterior,
    bounds_from,
    bounds_in_order,
    inputs_and_labels,
    update_from,
    wrong_kind,
)

__all__ = ["bounds_from", "update_from"]

LIBRARY = "scikit-learn"

Array = NDArray[np.float64]

# Newton steps for the mode of a classifier. They converge quadratically: a dozen is many.
NEWTON_STEPS = 100


def bounds(model: Any, x: Any, y: Any, noise: Any, name: str) -> Array:
    """Return the bounds of labels from a fitted estimator."""
    known = (GaussianProcessRegressor, BayesianRidge, GaussianProcessClassifier)
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
        return _classifier_bounds(model, points, labels, noise, name)
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
    # Of two arguments a kernel gives no white noise, be they equal.
    prior = model.kernel_(X, X)
    # mu = k.(K + N)^-1 y,  C = K** - V^T V,  V = L^-1 k^T
    V = solve_triangular(model.L_, cross.T, lower=True, check_finite=False)
    _, white = _smooth_and_white(model.kernel_, X)
    alpha = np.unique(model.alpha)
    return Posterior(
        centre + scale * (cross @ model.alpha_.reshape(-1)),
        scale**2 * (prior - V.T @ V),
        scale**2 * np.diagonal(prior),
        scale**2 * (white + alpha) if alpha.size == 1 else None,
    )


def _smooth_and_white(kernel: Any, X: Array) -> tuple[Array, Array]:
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
    return smooth, np.where(smooth == 0.0, diagonal, 0.0)


def _ridge(model: Any, X: Array) -> Posterior:
    # The weights w ~ N(coef_, sigma_) belong to centred inputs; the intercept is taken as known.
    Z = X - model.X_offset_
    return Posterior(
        X @ model.coef_ + model.intercept_,
        Z @ model.sigma_ @ Z.T,
        np.einsum("ij,ij->i", Z, Z) / model.lambda_,
        1.0 / model.alpha_,
    )


# Two classes.


def _classifier_bounds(model: Any, X: Array, y: NDArray[Any], noise: Any, name: str) -> Array:
    if noise is not None:
        raise ValueError(f"`noise` has no meaning for the classes of {name}, got {noise}")
    if len(model.classes_) != 2:
        raise ValueError(f"{name} must have two classes, got {model.classes_.tolist()}")
    unknown = ~np.isin(y, model.classes_)
    if unknown.any():
        raise ValueError(
            f"`y` must be one of the classes {model.classes_.tolist()} of {name}, "
            f"got {y[unknown].tolist()[0]!r}"
        )
    base = model.base_estimator_
    t, m = len(base.y_train_), len(y)
    K = base.kernel_(np.concatenate([base.X_train_, X]))
    if not np.isfinite(K).all():
        raise ValueError(f"the prior `var` of {name} must be finite")
    target = np.concatenate([base.y_train_, y == model.classes_[1]]).astype(np.float64)
    found = np.empty(m)
    after = _laplace(K, target, t, np.zeros(t + m), name)
    for i in range(m):
        before = after
        after = _laplace(K, target, t + i + 1, before[0], name)
        found[i] = _laplace_kl(K, before, after)
    return found


def _laplace(K: Array, target: Array, t: int, a: Array, name: str) -> tuple[Array, Array, Array]:
    """Laplace approximation q = N(K a, (K^-1 + W)^-1) given the first t of n labels.

    K : (n, n); target : (n,), 0 or 1; a : (n,), where to begin. Returns a, the diagonal of W, and
    the lower factor of B = I + W^1/2 K W^1/2 (Rasmussen & Williams 2006, algorithm 3.1).
    """
    seen = np.arange(len(K)) < t
    sign = 2.0 * target - 1.0

    def objective(a: Array, f: Array) -> float:
        # psi = log p(y | f) - 1/2 f^T K^-1 f
        return float(-np.logaddexp(0.0, -(sign * f)[seen]).sum() - 0.5 * a @ f)

    a = np.where(seen, a, 0.0)
    f = K @ a
    for _ in range(NEWTON_STEPS):
        p = expit(f)
        W = np.where(seen, p * (1.0 - p), 0.0)
        root = np.sqrt(W)
        L = cholesky(np.eye(len(K)) + root[:, None] * K * root, lower=True)
        # a' = b - W^1/2 B^-1 W^1/2 K b,  b = W f + grad log p
        b = W * f + np.where(seen, target - p, 0.0)
        step = b - root * cho_solve((L, True), root * (K @ b)) - a
        size = np.abs(K @ step).max(initial=0.0)
        if size <= 1e-12 * (1.0 + np.abs(f).max(initial=0.0)):
            return a, W, L
        # A full step, or a part of it that does not make things worse.
        now = objective(a, f)
        part = 1.0
        while part > 1e-6 and objective(a + part * step, f + part * (K @ step)) < now - 1e-9:
            part *= 0.5
        a = a + part * step
        f = K @ a
    raise ValueError(f"the mode of the posterior of {name} is not found: its kernel is too large")


def _laplace_kl(
    K: Array, before: tuple[Array, Array, Array], after: tuple[Array, Array, Array]
) -> float:
    """KL(q0 || q1) of two approximations on the same n inputs; no inverse of K is needed."""
    a0, W0, L0 = before
    a1, W1, L1 = after
    # S0 = K - V^T V,  V = L0^-1 W0^1/2 K
    V = solve_triangular(L0, np.sqrt(W0)[:, None] * K, lower=True)
    s0 = np.diagonal(K) - np.einsum("ij,ij->j", V, V)
    # tr(S1^-1 S0) - n = tr((W1 - W0) S0),  log det(S1^-1 S0) = log det B1 - log det B0
    spread = (W1 - W0) @ s0 - 2.0 * np.log(np.diagonal(L1) / np.diagonal(L0)).sum()
    # (m1 - m0)^T (K^-1 + W1) (m1 - m0),  m1 - m0 = K (a1 - a0)
    d = a1 - a0
    shift = K @ d
    return max(0.0, 0.5 * float(spread + d @ shift + W1 @ shift**2))
