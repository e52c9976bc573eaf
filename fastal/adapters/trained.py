"""What all bounds of a fitted model need, and the checks that its adapters share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._types import Array

# A length scale within 1 % of a bound of its search, in the logarithm, lies at the edge.
EDGE = 0.01

# Numbers that a model keeps and numbers that a caller gives are the same up to this part of the
# largest one of their feature; single precision has fewer digits.
SAME, SAME_SINGLE = 1e-9, 1e-5


class TrainedModel(NamedTuple):
    """What a fitted model knows of its labels, in its own order and its own units.

    Units cancel in the bounds, so that no transform is undone.
    """

    cov: Any  # (T, T), prior covariance of f at the labelled inputs, without noise
    y: Any  # (T,), the labels
    noise: Any  # noise variance, of all labels or of each, (T,)
    mean: Any = 0.0  # prior mean, at all inputs or at each, (T,)
    at_edge: bool = False  # does the length scale lie at an edge of its search box?
    factor_diagonal: Any = (
        None  # (T,), of the model's own lower factor of cov + noise, if it has one
    )


class Asked(NamedTuple):
    """What the caller of `bounds_of` knows besides the model."""

    X: Any = None  # the inputs that the model was fitted to, in the user's units
    y: Any = None  # the labels that the model was fitted to, in the user's units
    ordered: bool = False  # is there an order?


def at_edge(scales: Iterable[tuple[float, float, float]]) -> bool:
    """Return whether a fit lies at an edge: all length scales at the upper or one at the lower one.

    scales : a length scale and the bounds of its search each. A lower bound of 0 and an upper one
    of inf are none.
    """
    upper = []
    for value, low, high in scales:
        if low > 0 and math.log(value / low) <= EDGE:
            return True
        upper.append(high < math.inf and math.log(high / value) <= EDGE)
    return bool(upper) and all(upper)


def same_rows(what: str, kept: Any, given: Any, name: str) -> None:
    """Raise unless what a model keeps, `kept`, is what the caller has, `given`, row by row."""
    kept, given = np.asarray(kept), check.finite_array(what, given)
    limit = SAME_SINGLE if kept.dtype == np.float32 else SAME
    if len(kept) != len(given):
        raise ValueError(
            f"{name} was fitted to other rows than `{what}`: to {len(kept)} rows, `{what}` has "
            f"{len(given)}"
        )
    if kept.shape != given.shape:
        raise ValueError(
            f"`{what}` must have shape {kept.shape} as the rows of {name}, got {given.shape}"
        )
    # Features have scales of their own.
    near = np.abs(given - kept) <= limit * np.abs(kept).max(axis=0, initial=0.0)
    wrong = ~near.reshape(len(kept), -1).all(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{name} was fitted to other rows than `{what}`: row {row} is {kept[row]}, "
            f"`{what}` has {given[row]}"
        )


def wrong_kind(model: Any, name: str, wanted: str) -> TypeError:
    """Return the error for a model that an adapter does not know."""
    return TypeError(f"{name} must be {wanted}, got a {type(model).__name__}; {way_out(model)}")


def way_out(model: Any) -> str:
    """Return what to do with a model that has no bounds here."""
    if hasattr(model, "predict_proba") or getattr(model, "_estimator_type", "") == "classifier":
        return (
            "fastal.criteria.StabilizingPredictions and others there take the predictions of any "
            "classifier"
        )
    return (
        "fastal.gp_bounds takes the covariance of any Gaussian process, and a model without one, "
        "such as a forest, has no bounds"
    )


def all_seen(seen: int, labels: int, name: str, way_out: str) -> None:
    """Raise unless the model within an optimiser has seen all labels of the optimiser."""
    if seen < labels:
        raise ValueError(
            f"{name} has {labels} labels, and its model has seen {seen} of them: {way_out}"
        )
    if seen > labels:
        raise ValueError(f"{name} was fitted to other rows than its labels: to {seen} of {labels}")


def no_model_yet(name: str, why: str) -> ValueError:
    """Return the error for an optimiser in its initial phase."""
    return ValueError(f"{name} has no model yet: {why}")


def column(y: Any) -> Any:
    """Return labels of shape (T, 1), as some libraries take them, as labels of shape (T,)."""
    labels = check.as_array("y", y)
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def inputs(X: Any, features: int, name: str) -> Array:
    """Return the inputs of labels as doubles of shape (T, features)."""
    points = check.finite_array("X", X)
    if points.ndim == 1 and features == 1:
        points = points.reshape(-1, 1)
    if points.ndim != 2 or points.shape[1] != features:
        raise ValueError(f"`X` must have {features} features as {name}, got shape {points.shape}")
    return points
