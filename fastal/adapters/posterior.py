"""What the adapters share: inputs, labels, and bounds from a joint posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from fastal import _validation as check
from fastal._types import Array
from fastal.bound import bounds_of, lower_factor

# A variance below zero by no more than this part of the prior's is a rounding error.
ROUNDING = 1e-10


class Posterior(NamedTuple):
    """What a model knows of f at the inputs of m labels before the first of them."""

    mean: Any  # (m,)
    cov: Any  # (m, m), without noise
    prior: Any  # (m,), prior variances
    noise: Any  # noise variance of a label, or of each, (m,); None if the model does not know


def conditioned(cov: Any, mean: Any, y: Any, noise: Any, new_noise: Any) -> Posterior:
    """Return the posterior at m new inputs from the prior at T labelled and these, in this order.

    cov : (T + m, T + m), of f, without noise; mean : of f, a number or (T + m,); y : (T,);
    noise : of the labels, a number or (T,); new_noise : of those to come, or None.
    """
    cov, y = np.asarray(cov, dtype=np.float64), np.asarray(y, dtype=np.float64)
    t = len(y)
    mean = np.broadcast_to(np.asarray(mean, dtype=np.float64), len(cov))
    noise = np.broadcast_to(np.asarray(noise, dtype=np.float64), t)
    # mu = m + V^T L^-1 (y - m),  C = K** - V^T V,  V = L^-1 k^T
    L = lower_factor(cov[:t, :t], noise)
    solved = solve_triangular(L, np.c_[cov[:t, t:], y - mean[:t]], lower=True, check_finite=False)
    V, z = solved[:, :-1], solved[:, -1]
    prior = cov[t:, t:]
    return Posterior(mean[t:] + V.T @ z, prior - V.T @ V, np.diagonal(prior), new_noise)


def inputs_and_labels(x: Any, y: Any) -> tuple[Array, NDArray[Any]]:
    """Return inputs of shape (m, d) and labels of shape (m,), one for each."""
    labels = check.as_array("y", y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    labels = np.atleast_1d(labels)
    if labels.ndim != 1:
        raise ValueError(f"`y` must be one label or have shape (m,), got shape {np.shape(y)}")
    m = len(labels)
    points = check.finite_array("x", x)
    if points.ndim < 2:
        # One label: one input. Several: inputs of one feature.
        points = points.reshape(1, -1) if m == 1 else points.reshape(-1, 1)
    if points.ndim != 2 or len(points) != m:
        raise ValueError(f"`x` must have one row for each of {m} labels, got shape {np.shape(x)}")
    return points, labels


def bounds_in_order(posterior: Posterior, y: NDArray[Any], noise: Any, name: str) -> Array:
    """Return the bound of each label given those before it; raise if this is no posterior."""
    m = len(y)
    y = check.finite_array("y", y)
    mean = _predicted("mean", posterior.mean, (m,), name)
    cov = _predicted("var", posterior.cov, (m, m), name)
    prior = _predicted("prior variance", posterior.prior, (m,), name)
    if noise is None:
        noise = posterior.noise
        if noise is None or not np.all(np.asarray(noise) > 0):
            raise ValueError(f"`noise` must be given: that of {name} is {noise}")
    noises = check.label_noise(noise, 1.0, m)
    rows = np.empty((m, 4))
    for i in range(m):
        var = float(cov[i, i])
        if not (var >= -ROUNDING * prior[i]):
            raise ValueError(
                f"the predictive `var` of {name} must not be negative, got {var} for label {i}"
            )
        rows[i] = mean[i], max(var, 0.0), y[i], noises[i]
        # Given label i: mu += c_i (y_i - mu_i) / (s_i + n_i),  C -= c_i c_i^T / (s_i + n_i)
        gain = cov[:, i] / (max(var, 0.0) + noises[i])
        mean = mean + gain * (y[i] - mean[i])
        cov = cov - np.outer(gain, cov[i])
    return bounds_of(*rows.T)


def _predicted(what: str, values: Any, shape: tuple[int, ...], name: str) -> Array:
    """Return what a model predicts as finite doubles of a shape, or say that they are not."""
    array: Array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(
            f"the predictive `{what}` of {name} must have shape {shape}, got {array.shape}: "
            "one output is wanted"
        )
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)][0]
        raise ValueError(f"the predictive `{what}` of {name} must be finite, got {bad}")
    return array


def wrong_kind(model: Any, name: str, wanted: str) -> TypeError:
    """Return the error for a model that an adapter does not know."""
    return TypeError(f"{name} must be {wanted}, got a {type(model).__name__}")
