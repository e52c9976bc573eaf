"""All bounds of a fitted model: checks, order, one factor."""

from __future__ import annotations

import math
import warnings
import weakref
from numbers import Real
from typing import Any

import numpy as np

from fastal import _validation as check
from fastal._types import Array, Ints
from fastal.adapters.dispatch import ask_trained, is_own
from fastal.adapters.trained import SAME, SAME_SINGLE, Asked, TrainedModel
from fastal.bound import bounds_of_factor, lower_factor

# A model whose noise is below this part of its prior variance takes labels as exact.
JITTER = 1e-5

# Factors of one matrix, computed twice: their squared diagonals agree to this part of themselves,
# or of the prior variance where the matrix is ill-conditioned.
SAME_FACTOR, SAME_PIVOT = 1e-6, 1e-9

_warned: weakref.WeakSet[Any] = weakref.WeakSet()


class ModelBounds(np.ndarray):
    """Bounds of a fitted model; what is computed from them is a plain array."""

    at_edge: bool = False  # does the fit lie at an edge of its search box?

    def __array_finalize__(self, source: Any) -> None:
        self.at_edge = getattr(source, "at_edge", False)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return np.asarray(array)[()]

    def __reduce__(self) -> Any:
        return _model_bounds, (np.asarray(self), self.at_edge)


def _model_bounds(bounds: Array, at_edge: bool) -> ModelBounds:
    found = bounds.view(ModelBounds)
    found.at_edge = bool(at_edge)
    return found


def bounds_of(
    model: Any, *more: object, initial: int = 0, order: Any = None, X: Any = None, y: Any = None
) -> ModelBounds:
    """Return the bounds of all labels that a model is fitted to, from one factor.

    Parameters
    ----------
    model : object
        A fitted Gaussian process of one of the libraries, or a `fastal.GaussianProcess` with
        labels. It is asked, never changed.
    *more
        Nothing: the bound of one label from numbers is `gp_kl`.
    initial : int
        How many labels at the beginning are left out.
    order : array_like of int, shape (T,), optional
        The rows of the model in the order in which their labels came, a permutation of
        ``range(T)``; needed where the model keeps another order (scikit-activeml: that of the
        pool).
    X, y : array_like, shape (T, d) and (T,), optional
        The rows that the model was fitted to, as they were given to its `fit`. Needed for models
        that keep no data (`BayesianRidge`); otherwise they are compared with what the model keeps,
        so that a model that lags behind its loop is found.

    Returns
    -------
    ndarray, shape (T - initial,)
        The bound of each label given those before it, under the hyper-parameters that the model
        has now, without the constant C. Its attribute `at_edge` says whether the length scale lies
        at an edge of the box in which it was searched: within 1 % of a bound, in the logarithm; of
        several, all at the upper bound or one at the lower one. Such a fit has not found its
        optimum. False where there is no box, or no search.

    Raises
    ------
    ValueError
        If the model is not fitted, has several outputs, was fitted to other rows than `X` and `y`,
        takes labels as exact, or was changed after its fit; or if it keeps no data and none are
        given.
    TypeError
        If this is no Gaussian process of a library that fastal knows: `gp_bounds` takes the
        covariance of any other, and the criteria of `fastal.criteria` what a classifier predicts.

    Warns
    -----
    UserWarning
        Once per model, if its noise is below 1e-5 of its prior variance.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from fastal import bounds_of
    >>> X, y = np.array([[0.0], [0.1], [3.0]]), np.array([0.5, 0.6, -0.2])
    >>> kernel = RBF(1.0) + WhiteKernel(0.01)
    >>> model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    >>> bounds = bounds_of(model)
    >>> print(bounds.round(4), bounds.at_edge)
    [60.0687  0.8255 50.053 ] False
    """
    if more or isinstance(model, Real | np.ndarray):
        raise TypeError(
            "`model` must be a fitted model; the bound of a label from numbers is "
            f"gp_kl(mean, var, y, noise), got {check.short_repr(model)}"
        )
    first = check.count("initial", initial)
    if order is None and X is None and y is None and is_own(model):
        # fastal's own models have the factor, and the bounds with it.
        found = _model_bounds(model.bounds()[first:], getattr(model, "at_edge", False))
        if hasattr(model, "label_noise"):  # classes have none
            prior = np.array([model.amplitude])
            _warn_if_exact(model, model.label_noise, prior, "`model` (fastal)")
        return found
    trained, name = ask_trained(model, Asked(X, y, ordered=order is not None))
    cov, labels, noise, mean = _checked(trained, name)
    L = None
    if trained.factor_diagonal is not None:
        L = _factor(cov, noise, name)
        _refuse_changed(L.diagonal(), trained, cov.diagonal(), name)
    if order is not None:
        rows = _permutation(order, len(labels), name)
        if (rows[1:] < rows[:-1]).any():
            cov, L = cov[np.ix_(rows, rows)], None
            labels, noise, mean = labels[rows], noise[rows], mean[rows]
    if L is None:
        L = _factor(cov, noise, name)
    bounds = bounds_of_factor(L, cov.diagonal(), labels - mean, noise)
    _warn_if_exact(model, noise, cov.diagonal(), name)
    return _model_bounds(bounds[first:], trained.at_edge)


def _checked(trained: TrainedModel, name: str) -> tuple[Array, Array, Array, Array]:
    """Return covariance, labels, noise and mean as finite doubles, or say what is wrong."""
    y = np.asarray(trained.y)
    cov = np.asarray(trained.cov)
    if y.ndim != 1 or cov.shape != (y.size, y.size):
        raise ValueError(
            f"{name} must have one output, got labels of shape {y.shape} and a covariance of "
            f"shape {cov.shape}"
        )
    single = cov.dtype == np.float32
    found = []
    for what, values in (("covariance", cov), ("labels", y), ("mean", trained.mean)):
        array = np.asarray(values, dtype=np.float64)
        if not np.isfinite(array).all():
            bad = array[~np.isfinite(array)][0]
            raise ValueError(f"the {what} of {name} must be finite, got {bad}")
        found.append(array)
    cov, y, mean = found
    skew = np.abs(cov - cov.T).max(initial=0.0)
    if not (skew <= (SAME_SINGLE if single else SAME) * np.abs(cov).max(initial=0.0)):
        raise ValueError(f"the covariance of {name} must be symmetric, got differences of {skew:g}")
    noise = np.asarray(trained.noise, dtype=np.float64)
    if not (np.isfinite(noise).all() and (noise > 0).all()):
        bad = noise[~(np.isfinite(noise) & (noise > 0))].flat[0]
        raise ValueError(
            f"{name} takes labels as exact: its noise variance must be positive, got {bad:g}"
        )
    return cov, y, np.broadcast_to(noise, y.shape), np.broadcast_to(mean, y.shape)


def _permutation(order: Any, size: int, name: str) -> Ints:
    """Check for a permutation of the rows of a model."""
    try:
        rows = check.indices("order", order, size, "row numbers")
    except ValueError as error:
        raise ValueError(
            f"{error}; it counts the rows of {name}: for the rows of a pool give "
            "np.argsort(np.argsort(rows))"
        ) from None
    if len(rows) != size:
        raise ValueError(
            f"`order` must hold each of the {size} rows of {name} once, got {len(rows)} of them: "
            f"{check.short_repr(order)}"
        )
    return rows


def _factor(cov: Array, noise: Array, name: str) -> Array:
    try:
        return lower_factor(cov, noise)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(f"the covariance of {name}: {error}") from None


def _refuse_changed(ours: Array, trained: TrainedModel, prior: Array, name: str) -> None:
    """Raise if the factor that a model keeps is not that of its covariance and noise."""
    kept = np.asarray(trained.factor_diagonal, dtype=np.float64)
    message = f"{name} does not agree with its own factor: the model was changed after its fit"
    if kept.shape != ours.shape:
        raise ValueError(f"{message} (its factor has {kept.size} rows, it has {ours.size} labels)")
    limit = SAME_FACTOR * ours**2 + SAME_PIVOT * prior.max(initial=0.0)
    wrong = ~(np.abs(kept**2 - ours**2) <= limit)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{message} ({kept[row]:g} in row {row}, expected {ours[row]:g})")


def _warn_if_exact(model: Any, noise: Array, prior: Array, name: str) -> None:
    """Warn once per model that takes its labels as exact."""
    if noise.size == 0:
        return
    share = float(np.max(noise)) / max(float(prior.max()), 1e-300)
    if share < JITTER:
        try:
            if model in _warned:
                return
            _warned.add(model)
        except TypeError:  # it has no hash or takes no reference: Python shows a text once
            pass
        warnings.warn(
            # The power of ten only: Python shows a text once.
            f"the noise of {name} is about 1e{round(math.log10(share))} of its prior variance: the "
            "model takes labels as exact, and its bounds are huge",
            UserWarning,
            stacklevel=3,
        )
