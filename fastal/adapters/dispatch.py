"""The adapter of a model, found by the class of the model."""

from __future__ import annotations

import importlib
from typing import Any

from fastal import _validation as check
from fastal._types import Array
from fastal.adapters.trained import Asked, TrainedModel

# Package that defines the class of a model -> the adapter.
_ADAPTERS = {
    "GPy": "gpy",
    "ax": "ax",
    "bayes_opt": "bayes_opt",
    "bofire": "bofire",
    "botorch": "botorch",
    "celerite2": "celerite2",
    "emukit": "emukit",
    "fastal": "own",
    "george": "george",
    "gpflow": "gpflow",
    "gpytorch": "botorch",
    "modAL": "modal",
    "openturns": "openturns",
    "skactiveml": "skactiveml",
    "sklearn": "sklearn",
    "skopt": "skopt",
    "smt": "smt",
    "tinygp": "tinygp",
}


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
    _refuse_unless_by_bounds(criterion)
    criterion.extend(bounds_from(model, x, y, noise))
    return bool(criterion.stopped)


def _refuse_unless_by_bounds(criterion: Any) -> None:
    """Raise for what takes no bounds, or takes a number for something else than a bound."""
    if not hasattr(criterion, "extend") or not hasattr(criterion, "stopped"):
        raise TypeError(
            f"`criterion` must take bounds, as a Stopper does, got {check.short_repr(criterion)}"
        )
    for member in getattr(criterion, "members", ()):
        _refuse_unless_by_bounds(member)
    takes = getattr(criterion, "push_takes", "")
    if takes not in ("", "a bound"):
        raise TypeError(
            f"`criterion` must take bounds, got a {type(criterion).__name__}, which takes {takes}: "
            "push to it"
        )


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
    return ask_adapter(model, x, y, noise)


def ask_adapter(model: Any, x: Any, y: Any, noise: Any, name: str = "") -> Array:
    """Return the bounds from the adapter of a model; `name` stands for it in messages."""
    found = _adapter_of(model)
    if found is None or not hasattr(found, "bounds"):
        raise _unknown(model, name, "Stopper.update takes the posterior of any model")
    bounds: Array = found.bounds(model, x, y, noise, name or f"`model` ({found.LIBRARY})")
    return bounds


def ask_trained(model: Any, asked: Asked, name: str = "") -> tuple[TrainedModel, str]:
    """Return what a fitted model knows of its labels, and its name in messages."""
    found = _adapter_of(model)
    if found is None:
        raise _unknown(model, name, "fastal.gp_bounds takes the covariance of any model")
    name = name or f"`model` ({found.LIBRARY})"
    return found.trained(model, asked, name), name


def is_own(model: Any) -> bool:
    """Return whether a model is fastal's own, with bounds of its labels."""
    own = any(base.__module__.startswith("fastal.") for base in type(model).__mro__)
    return own and hasattr(model, "bounds") and hasattr(model, "n_labels")


def _adapter_of(model: Any) -> Any:
    """Return the module that knows the class of a model, or None."""
    for base in type(model).__mro__:
        adapter = _ADAPTERS.get(base.__module__.partition(".")[0])
        if adapter is not None:
            return importlib.import_module(f"fastal.adapters.{adapter}")
    return None


def _unknown(model: Any, name: str, instead: str) -> TypeError:
    return TypeError(
        f"{name or '`model`'} must be of scikit-learn, modAL, scikit-activeml, GPyTorch, BoTorch "
        f"or another library that fastal.adapters knows, got a {type(model).__name__}; {instead}"
    )
