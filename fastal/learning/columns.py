"""Columns of a pool, by blocks of rows: a pool on a disk or on other machines is not copied."""

from __future__ import annotations

import numpy as np

from fastal._types import Array

# Rows that are looked at together.
BLOCK = 16384


def largest(X: Array) -> Array:
    """Return the largest absolute value of each column."""
    found: Array = np.maximum(X.max(axis=0), -X.min(axis=0))
    return found


def units(most: Array) -> Array:
    """Return powers of two; values of at most this size over them have squares that are doubles."""
    unit: Array = np.exp2(np.frexp(most)[1].astype(np.float64) - 1.0)
    return unit


def add_rows(X: Array, unit: Array, middle: Array | None, before: Array) -> Array:
    """Return sums of the columns over `unit`, or of squares around `middle`.

    before : what the rows before these gave. Rows are added one by one, as NumPy does where there
    are at least two columns.
    """
    total = before
    for low in range(0, len(X), BLOCK):
        part = X[low : low + BLOCK] / unit
        if middle is not None:
            part -= middle
            part *= part
        total = np.add.reduce(np.vstack((total, part)), axis=0)
    return total


def range_sum(X: Array, unit: Array, middle: Array | None) -> Array:
    """Return sums of columns over `unit`, or of squares around `middle`, in NumPy's order."""
    part = X / unit
    if middle is not None:
        part -= middle
        part *= part
    total: Array = part.sum(axis=0)
    return total


def deviations(X: Array, unit: Array) -> Array:
    """Return the standard deviation of each column over `unit`, to NumPy's last digit."""
    n, d = X.shape
    if d == 1:  # NumPy adds one column in another order
        one: Array = (X / unit).std(axis=0)
        return one
    nothing = np.zeros(d)
    middle = add_rows(X, unit, None, nothing) / n
    found: Array = np.sqrt(add_rows(X, unit, middle, nothing) / n)
    return found
