"""Bounds from scikit-learn's `GaussianProcessClassifier`: Laplace for any of its kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit

from fastal._types import Array

# Newton steps for the mode of a classifier. They converge quadratically: a dozen is many.
NEWTON_STEPS = 100


def classifier_bounds(model: Any, X: Array, y: NDArray[Any], noise: Any, name: str) -> Array:
    """Return the bounds of labels from a fitted GaussianProcessClassifier."""
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
