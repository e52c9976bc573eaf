"""Checks of a campaign's arguments, shared by learn, ActiveLearner and simulate."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._threads import cores
from fastal._types import Array, Ints
from fastal.models.classifier import LaplaceClassifier
from fastal.models.gp import GaussianProcess, warn_if_far

Acquisition = str | Callable[[Array, Array], ArrayLike]

Model = GaussianProcess | LaplaceClassifier


def _workers(threads: int | None) -> int:
    return cores() if threads is None else check.threads("threads", threads)


def _label(value: Any, index: int) -> float:
    try:
        return check.real("y", value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the label of point {index} is of no use: {error}") from None


def _first_points(initial: Any, n: int, rng: np.random.Generator) -> tuple[Ints, int]:
    """Return the points to label first, and how many of them are initial."""
    if np.ndim(initial) == 0:
        number = check.count("initial", initial)
        if number > n:
            raise ValueError(
                f"`initial` must be at most the size of the pool ({n}), "
                f"got {check.short_repr(number)}"
            )
        return rng.permutation(n)[:number].astype(np.int64), number
    chosen = check.indices("initial", initial, n, "a number or indices")
    return chosen, len(chosen)


def check_test_set(test: Any, features: int) -> tuple[Array, Array]:
    """Check for a pair of inputs and labels."""
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise TypeError(f"`test` must be a pair of inputs and labels, got {check.short_repr(test)}")
    X = check.points("test", test[0], features)
    if len(X) == 0:
        raise ValueError("`test` must have at least one row, got 0")
    return X, check.vector("test", test[1], len(X))


def _choice(acquisition: str, gp: Model) -> str:
    """Return the name of the acquisition; a classifier's default is its own."""
    if isinstance(gp, GaussianProcess):
        return check.option("acquisition", acquisition, ("max_variance", "random"))
    names = ("uncertainty", "max_variance", "random")
    name = check.option("acquisition", acquisition, names)
    return "uncertainty" if name == "max_variance" else name


def _look_at(gp: Model, name: str, y: Array) -> None:
    """Refuse labels that are of no use to a classifier; warn of those far from a process."""
    if isinstance(gp, LaplaceClassifier):
        check.class_labels(name, y, None, None)
    elif name == "y":
        warn_if_far(gp, y)


def _checksum(points: Array) -> str:
    return f"{points.shape[0]}x{points.shape[1]} {hashlib.sha256(points.tobytes()).hexdigest()}"
