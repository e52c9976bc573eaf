"""The buffers of a Gaussian process: parameters, labels and their Cholesky factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from fastal._core.cholesky import copy_lower
from fastal._types import Array
from fastal.models.prior import Prior

# First capacity of the buffers; it doubles.
CAPACITY = 64

# Buffers without memory: nobody can write into them, and all may share them.
NONE, NOTHING = np.empty((0, 0)), np.empty(0)


class Buffers(NamedTuple):
    """Parameters and buffers of a process; the rows of the first n labels are only read.

    The thread that has the turn writes the rows after them, then sets a larger n. `rewind` makes
    a new one of these, because rows are written again: by that a reader notices.
    """

    lengthscale: float | Array
    noise: float
    amplitude: float
    mean: float
    shape: tuple[int] | None  # of an input, None before the first label
    capacity: int
    Z: Array  # (d, capacity) inputs over length scales
    labels: Array  # (3, capacity) target, whitened target and noise
    L: Array  # (capacity, capacity)
    x: Array  # (d,) scratch: the input that is being added
    per_length: Array  # (d,) reciprocal length scales


class Labels(NamedTuple):
    """The labels of a process at one moment, with its prior; copies."""

    prior: Prior
    mean: float  # of the prior
    scaled: Array  # (d, n) inputs over length scales
    y: Array  # (n,)
    noise: Array  # (n,) noise variances


# Number of labels, and where they are: set as one, after a complete change.
Now = tuple[int, Buffers]


def no_labels(lengthscale: float | Array, noise: float, amplitude: float, mean: float) -> Now:
    """Return parameters without labels and without memory for any."""
    return 0, Buffers(
        lengthscale, noise, amplitude, mean, None, 0, NONE, NONE, NONE, NOTHING, NOTHING
    )


def allocate(kept: Buffers, features: int) -> Buffers:
    """Return buffers for inputs of so many features, before the first label."""
    if kept.shape == (features,):
        return kept
    capacity = max(kept.capacity, CAPACITY)
    per_length = np.empty(features)
    per_length[:] = 1.0 / np.asarray(kept.lengthscale)
    return kept._replace(
        shape=(features,),
        capacity=capacity,
        Z=np.zeros((features, capacity)),
        labels=np.zeros((3, capacity)),
        L=kept.L if kept.capacity == capacity else _square(capacity),
        x=np.empty(features),
        per_length=per_length,
    )


def enlarge(now: Now, total: int) -> Buffers:
    """Return buffers with room for more labels than now; the capacity at least doubles."""
    n, kept = now
    # A multiple of 8: every row of L begins at the beginning of a cache line.
    capacity = -(-max(2 * kept.capacity, total) // 8) * 8
    L = _square(capacity)
    copy_lower(kept.L, L, n)
    Z, labels = np.zeros((len(kept.Z), capacity)), np.zeros((3, capacity))
    Z[:, :n] = kept.Z[:, :n]
    labels[:, :n] = kept.labels[:, :n]
    return kept._replace(capacity=capacity, Z=Z, labels=labels, L=L)


def expected_features(now: Now) -> int | None:
    """Return how many features an input must have, None if any number is fine."""
    n, kept = now
    if n > 0:
        return len(kept.Z)
    scale = kept.lengthscale
    return None if isinstance(scale, float) else scale.size


def solve_rows(L: Array, B: Array, n: int) -> None:
    """Overwrite the first n entries of each row b of B by L^-1 b.

    B : (m, >= n), C-contiguous, may be rows of the factor's buffer from n on.
    """
    if n == 0 or len(B) == 0:
        return
    # L row by row is L^T column by column: the upper triangle of a (capacity, n) matrix.
    # dtrtrs takes leading dimensions as they are and works in place: nothing is copied.
    solved, _ = dtrtrs(L[:n].T, B.T, lower=0, trans=1, overwrite_b=1)
    if not np.may_share_memory(solved, B):  # pragma: no cover
        B[:] = solved.T


def _square(capacity: int) -> Array:
    """Return a square buffer of zeros that begins at the beginning of a cache line.

    Zeros, not empty: the upper triangle of the factor stays zero, and untouched memory
    costs nothing.
    """
    buffer = np.zeros(capacity * capacity + 8)
    skip = -buffer.ctypes.data // 8 % 8
    return buffer[skip : skip + capacity * capacity].reshape(capacity, capacity)
