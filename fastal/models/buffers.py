"""The buffers of a Gaussian process: parameters, labels and their Cholesky factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastal._core.cholesky import RECIPROCAL
from fastal._core.panels import TALL, new_panels, panels_size, read_rows, solve_sides
from fastal._types import Array
from fastal.models.prior import Prior

# First capacity of the buffers; it doubles. A multiple of TALL.
CAPACITY = 64

# Buffers without memory: nobody can write into them, and all may share them.
NONE, NOTHING = np.empty((0, 0)), np.empty(0)


class Buffers(NamedTuple):
    """Parameters and buffers of a process; the rows of the first n labels are only read.

    A new label writes the row after them, and then sets a larger n. `rewind` makes a new one of
    these, because rows are written again.
    """

    lengthscale: float | Array
    noise: float
    amplitude: float
    mean: float
    shape: tuple[int] | None  # of an input, None before the first label
    capacity: int
    Z: Array  # (d, capacity) inputs over length scales
    labels: Array  # (4, capacity) target, whitened target, noise and 1 / L_tt
    panels: Array  # the factor L, as `fastal._core.panels` says
    row: Array  # (capacity,) scratch: the row of L that is being added
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
        lengthscale, noise, amplitude, mean, None, 0, NONE, NONE, NOTHING, NOTHING, NOTHING,
        NOTHING,
    )  # fmt: skip


def allocate(kept: Buffers, features: int) -> Buffers:
    """Return buffers for inputs of so many features, before the first label."""
    if kept.shape == (features,):
        return kept
    capacity = max(kept.capacity, CAPACITY)
    per_length = np.empty(features)
    with np.errstate(over="ignore"):  # inputs that are not finite then are refused by name
        per_length[:] = 1.0 / np.asarray(kept.lengthscale)
    return kept._replace(
        shape=(features,),
        capacity=capacity,
        Z=np.zeros((features, capacity)),
        labels=np.zeros((4, capacity)),
        panels=kept.panels if kept.capacity == capacity else new_panels(capacity),
        row=np.empty(capacity),
        x=np.empty(features),
        per_length=per_length,
    )


def enlarge(now: Now, total: int) -> Buffers:
    """Return buffers with room for more labels than now; the capacity at least doubles."""
    n, kept = now
    capacity = -(-max(2 * kept.capacity, total) // TALL) * TALL
    panels, used = new_panels(capacity), panels_size(n)
    panels[:used] = kept.panels[:used]
    Z, labels = np.zeros((len(kept.Z), capacity)), np.zeros((4, capacity))
    Z[:, :n] = kept.Z[:, :n]
    labels[:, :n] = kept.labels[:, :n]
    return kept._replace(
        capacity=capacity, Z=Z, labels=labels, panels=panels, row=np.empty(capacity)
    )


def expected_features(now: Now) -> int | None:
    """Return how many features an input must have, None if any number is fine."""
    n, kept = now
    if n > 0:
        return len(kept.Z)
    scale = kept.lengthscale
    return None if isinstance(scale, float) else scale.size


def lower_triangle(now: Now) -> Array:
    """Return the factor row by row, (n, n), with zeros above the diagonal; a copy."""
    n, kept = now
    L = np.zeros((n, n))
    read_rows(kept.panels, n, L)
    return L


def solve_rows(kept: Buffers, n: int, B: Array) -> None:
    """Overwrite the first n entries of each row b of B by L^-1 b, with the first n rows of L.

    B : (m, >= n), C-contiguous.
    """
    if n > 0:
        solve_sides(kept.panels, kept.labels[RECIPROCAL], n, B)
