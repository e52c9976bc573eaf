"""Checks of a campaign's arguments, shared by learn, ActiveLearner and simulate."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._core.numpy_seeds import Shuffler
from fastal._threads import cores
from fastal._types import Array, Ints
from fastal.learning.distributed.pool import DaskPool, current_client
from fastal.learning.elsewhere import (
    MappedPool,
    PoolElsewhere,
    StoredPool,
    block_hashes,
    blocks_checksum,
    checked_dask_array,
    is_dask_array,
    mapped_pool,
)
from fastal.models.classifier import LaplaceClassifier
from fastal.models.gp import GaussianProcess, warn_if_far
from fastal.stopping.criterion import Criterion

Acquisition = str | Callable[[Array, Array], ArrayLike]

Model = GaussianProcess | LaplaceClassifier

NO_ROWS: Ints = np.empty(0, dtype=np.int64)
NO_LABELS: Array = np.empty(0)


def check_threads(threads: int | None) -> int:
    """Return a number of threads; one per core by default."""
    return cores() if threads is None else check.threads("threads", threads)


def check_label(value: Any, index: int) -> float:
    """Check a label that an oracle returned for a point."""
    try:
        return check.real("y", value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"invalid label for point {index}: {error}") from None


def first_points(initial: Any, n: int, shuffler: Shuffler) -> tuple[Ints, int]:
    """Return the points to label first, and how many of them are initial."""
    if isinstance(initial, int) or np.ndim(initial) == 0:
        number = check.count("initial", initial)
        if number > n:
            raise ValueError(
                f"`initial` must be at most the size of the pool ({n}), "
                f"got {check.short_repr(number)}"
            )
        rows = np.empty(n, dtype=np.int64)
        shuffler.permutation(rows)
        return rows[:number].copy(), number
    chosen = check.indices("initial", initial, n, "a number or indices")
    return chosen, len(chosen)


def check_model(gp: Any) -> Model:
    """Check for a model without labels."""
    if not isinstance(gp, Model):
        raise TypeError(
            f"`gp` must be a GaussianProcess or LaplaceClassifier, got {check.short_repr(gp)}"
        )
    if gp.n_labels:
        raise ValueError(f"`gp` must have no labels, got {gp.n_labels}: use a fresh one")
    return gp


def fresh_criterion(name: str, criterion: Any) -> Criterion:
    """Check for a criterion; return one with the same settings, without bounds."""
    if not isinstance(criterion, Criterion):
        raise TypeError(
            f"`{name}` must be a Stopper or criterion, got {check.short_repr(criterion)}"
        )
    return criterion.replace()


def budget(max_labels: Any, n_initial: int, n: int) -> int:
    """Check for the number of labels that can be had; the whole pool by default."""
    most = n if max_labels is None else check.count("max_labels", max_labels, 1)
    if not (max(1, n_initial) <= most <= n):
        raise ValueError(
            f"`max_labels` must be between `initial` ({n_initial}) and the size of the pool ({n}), "
            f"got {check.short_repr(most)}"
        )
    return most


def check_test_set(test: Any, features: int) -> tuple[Array, Array]:
    """Check for a pair of inputs and labels."""
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise TypeError(f"`test` must be a pair of inputs and labels, got {check.short_repr(test)}")
    X = check.points("test", test[0], features)
    if len(X) == 0:
        raise ValueError("`test` must have at least one row, got 0")
    return X, check.vector("test", test[1], len(X))


def check_known(known: Any, n: int, gp: Model | None) -> tuple[Ints, Array]:
    """Check for rows of the pool whose labels are known, and these labels."""
    if known is None:
        return NO_ROWS, NO_LABELS
    if not isinstance(known, tuple | list) or len(known) != 2:
        raise TypeError(f"`known` must be a pair of rows and labels, got {check.short_repr(known)}")
    rows = check.indices("known", known[0], n)
    y = check.vector("known", known[1], len(rows))
    check_labels(gp, "known", y)
    return rows, y


def acquisition_name(acquisition: str, gp: Model | None) -> str:
    """Return the name of the acquisition; a classifier's default is its own."""
    if gp is None or isinstance(gp, GaussianProcess):
        return check.option("acquisition", acquisition, ("max_variance", "random"))
    name = check.option("acquisition", acquisition, ("uncertainty", "max_variance", "random"))
    return "uncertainty" if name == "max_variance" else name


def check_labels(gp: Model | None, name: str, y: Array) -> None:
    """Refuse labels that are invalid for a classifier; warn of those far from a process."""
    if isinstance(gp, LaplaceClassifier):
        check.class_labels(name, y, None, None)
    elif name == "y" and gp is not None:
        warn_if_far(gp, y)


def pool_features(gp: Model | None) -> int | None:
    """Return how many features a pool must have, None if any number is fine."""
    return None if gp is None else gp.prior.features


def pool_points(X: Any, gp: Model | None, all_means: bool = False) -> Any:
    """Check for a pool; return its points, those of a dask array where they are."""
    features = pool_features(gp)
    if type(X) is np.ndarray:  # the usual case, without a detour
        return check.points("X", X, features)
    if hasattr(X, "to_dask_array"):
        raise TypeError(
            "`X` must be an array, got a data frame of Dask: `X.to_dask_array(lengths=True)` is one"
        )
    if isinstance(X, MappedPool):
        return X
    if not isinstance(X, PoolElsewhere) and not is_dask_array(X):
        mapped = mapped_pool(X, features)
        return check.points("X", X, features) if mapped is None else mapped
    # before rows are read
    if isinstance(gp, LaplaceClassifier):
        raise TypeError(
            f"`gp` must be a GaussianProcess where `X` is a dask array, got {check.short_repr(gp)}"
        )
    if all_means:
        raise TypeError("`acquisition` must be a name where `X` is a dask array, got a callable")
    if isinstance(X, PoolElsewhere):
        return X
    X, client = checked_dask_array(X, features), current_client()
    return StoredPool(X) if client is None else DaskPool(X, client)


def checksum(points: Any, like: str = "") -> str:
    """Return what tells one pool from another; `like`: in the form of another one."""
    if isinstance(points, MappedPool) and " blocks " in like:
        return points.block_checksum()
    if isinstance(points, PoolElsewhere):
        return points.plain_checksum() if like and " blocks " not in like else points.checksum()
    if " blocks " in like:
        return blocks_checksum(points.shape, block_hashes(points))
    return f"{points.shape[0]}x{points.shape[1]} {hashlib.sha256(points.data).hexdigest()}"
