"""fastal in other people's loops: the bounds of labels from the model that is already there.

One call in the loop, when the label is known and **before** the model is fitted to it::

    if stopper.update_from(model, x, y):
        break

The adapter is found by the class of the model; no library is imported for it. There is one for
scikit-learn (`fastal.adapters.sklearn`), modAL (`.modal`), scikit-activeml (`.skactiveml`), and
GPyTorch and BoTorch (`.botorch`); their pages say which models they know. Models are asked, never
changed or copied.

Any other model with a Gaussian posterior takes one line more::

    mean, var = ...  # of f at x, without noise, before the label
    if stopper.update(mean, var, y, noise):
        break
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal import _validation as check
from fastal._core.bound_scalar import gp_kl_rows

__all__ = ["bounds_from", "update_from"]

Array = NDArray[np.float64]

# Package that defines the class of a model -> the adapter.
_ADAPTERS = {
    "sklearn": "sklearn",
    "modAL": "modal",
    "skactiveml": "skactiveml",
    "gpytorch": "botorch",
    "botorch": "botorch",
}

# A variance below zero by no more than this part of the prior's is a rounding error.
ROUNDING = 1e-10


def update_from(criterion: Any, model: Any, x: Any, y: Any, noise: Any = None) -> bool:
    """Give a criterion the bounds of new labels, from the model before it is fitted to them.

    Parameters
    ----------
    criterion : Stopper, or another criterion that takes bounds
        For example ``Stopper() & MinLabels(30)``.
    model : object
        A fitted model of one of the libraries.
    x : array_like, shape (d,) or (m, d)
        The input, or those of several labels; shape (m,) for a model of one feature.
    y : float, or array_like of shape (m,)
        The label, or labels in order. The bound of each is given the labels before it.
    noise : float or array_like of shape (m,), optional
        Noise variance of these labels, if not that of the model.

    Returns
    -------
    bool
        Whether there has been a stop, now or before.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from fastal import MinLabels, Stopper
    >>> from fastal.adapters import update_from
    >>> X = np.linspace(0, 9, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.01), optimizer=None)
    >>> rule = Stopper() & MinLabels(20)
    >>> order = np.random.default_rng(0).permutation(40)
    >>> for t in range(1, 40):
    ...     _ = model.fit(X[order[:t]], y[order[:t]])
    ...     if update_from(rule, model, X[order[t]], y[order[t]]):
    ...         break
    >>> rule.stopped_at
    29
    """
    criterion.extend(bounds_from(model, x, y, noise))
    return bool(criterion.stopped)


def bounds_from(model: Any, x: Any, y: Any, noise: Any = None) -> Array:
    """Return the bounds ``r_t`` of new labels, from the model before it is fitted to them.

    Parameters
    ----------
    model, x, y, noise
        As for `update_from`.

    Returns
    -------
    ndarray, shape (m,)
        The bounds, without the constant C: divergences of the posterior before each label from
        the one after it, under the hyper-parameters that the model has now.

    Examples
    --------
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from fastal import GaussianProcess
    >>> from fastal.adapters import bounds_from
    >>> model = GaussianProcessRegressor(RBF(1.0), alpha=0.01, optimizer=None).fit([[0.0]], [0.5])
    >>> bounds_from(model, [0.1, 3.0], [0.6, -0.2]).round(4)
    array([ 0.8255, 50.053 ])
    >>> GaussianProcess(1.0, 0.01).add_batch([0.0, 0.1, 3.0], [0.5, 0.6, -0.2]).round(4)
    array([60.0687,  0.8255, 50.053 ])
    """
    return bounds_of(model, x, y, noise)


def bounds_of(model: Any, x: Any, y: Any, noise: Any, name: str = "") -> Array:
    """Return the bounds from the adapter of a model; `name` stands for it in messages."""
    for base in type(model).__mro__:
        adapter = _ADAPTERS.get(base.__module__.partition(".")[0])
        if adapter is not None:
            found = importlib.import_module(f"fastal.adapters.{adapter}")
            bounds: Array = found.bounds(model, x, y, noise, name or f"`model` ({found.LIBRARY})")
            return bounds
    raise TypeError(
        f"{name or '`model`'} must be of scikit-learn, modAL, scikit-activeml, GPyTorch or "
        f"BoTorch, got a {type(model).__name__}; Stopper.update takes the posterior of any model"
    )


# What the adapters share.


class Posterior(NamedTuple):
    """What a model knows of f at the inputs of m labels before the first of them."""

    mean: Any  # (m,)
    cov: Any  # (m, m), without noise
    prior: Any  # (m,), prior variances
    noise: Any  # noise variance of a label, or of each, (m,); None if the model does not know


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
    bounds = np.empty(m)
    gp_kl_rows(rows, bounds)
    if not np.isfinite(bounds).all():
        bad = int(np.argmin(np.isfinite(bounds)))
        raise ValueError(f"the bound of label {bad} overflows: `y` = {y[bad]} is too far")
    return bounds


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
