"""The Cholesky factor that grows by rows, and the posterior before each label.

The factor L of K + N is row-major in a square buffer, z = L^-1 (y - mean) is kept beside it. A new
row is v = L^-1 k(x): at the same time the row to append and all that the posterior at x needs,
    s = k(x, x) - v.v,    mu = mean + v.z.
Status of a kernel: 0 is fine, i > 0 is the order of the leading minor that is not positive
definite in floating-point numbers, -i that the label of row i is too far off for doubles.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastal._core.bound_array import gp_kl_scalar
from fastal._core.covariance import covariance_row
from fastal._core.dots import dots
from fastal._core.jit import jit, jit_part

Array = NDArray[np.float64]

# Rows of the array that belongs to the labels, shape (3, capacity).
TARGET, WHITE, NOISE = 0, 1, 2

# A pivot is trusted if it exceeds the rounding of the diagonal entry that it is the rest of.
PIVOT_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@jit
def forward_substitute(L: Array, start: int, stop: int, v: Array) -> None:
    """Solve ``L v = v`` in place for the entries `start` to `stop` of v.

    L : (>= stop, >= stop), only rows and columns from `start` to `stop` are read.
    v : (>= stop,), may be a later row of L.
    """
    n = stop - start
    whole = n - n % 8
    w = v[start:stop]
    # Eight rows at once: one load of w_j serves eight products, and eight streams keep the memory
    # busy. The triangle of 8 x 8 that is left has no such gain.
    for i in range(0, whole, 8):
        r = start + i
        rows = (
            L[r][start:stop], L[r + 1][start:stop], L[r + 2][start:stop], L[r + 3][start:stop],
            L[r + 4][start:stop], L[r + 5][start:stop], L[r + 6][start:stop], L[r + 7][start:stop],
        )  # fmt: skip
        a0, a1, a2, a3, a4, a5, a6, a7 = dots(rows, w, i)
        w[i] -= a0
        w[i + 1] -= a1
        w[i + 2] -= a2
        w[i + 3] -= a3
        w[i + 4] -= a4
        w[i + 5] -= a5
        w[i + 6] -= a6
        w[i + 7] -= a7
        # w_i = (k_i - sum_{j<i} L_ij w_j) / L_ii
        for row in range(i, i + 8):
            factor = L[start + row][start:stop]
            x = w[row]
            for j in range(i, row):
                x -= factor[j] * w[j]
            w[row] = x / factor[row]
    for i in range(whole, n):
        factor = L[start + i][start:stop]
        w[i] = (w[i] - dots((factor,), w, i)[0]) / factor[i]


@jit
def two_dots(v: Array, z: Array, start: int, stop: int) -> tuple[float, float]:
    """Return v.v and v.z over the entries `start` to `stop`; both are only read."""
    w = v[start:stop]
    vv, vz = dots((w, z[start:stop]), w, stop - start)
    return vv, vz


@jit_part
def last_entries(
    amplitude: float, s: float, mu: float, y: float, noise: float, t: int
) -> tuple[int, float, float, float]:
    """Return status, L_tt, z_t and r_t of label t, from the posterior s, mu before it."""
    # L_tt^2 = s + noise
    if not (s + noise > PIVOT_ROUNDING * (amplitude + noise)):
        return t + 1, math.nan, math.nan, math.nan
    # The exact s is not negative; what is left below zero is rounding.
    s = max(s, 0.0)
    pivot = math.sqrt(s + noise)
    # z_t = (y - mu) / L_tt
    white = (y - mu) / pivot
    r = gp_kl_scalar(mu, s, y, noise)
    # Both are finite, or later posteriors would be NaN.
    if not (abs(white) + r < math.inf):
        return -(t + 1), pivot, white, r
    return 0, pivot, white, r


@jit
def close_row(
    amplitude: float,
    s: float,
    mu: float,
    y: float,
    noise: float,
    t: int,
    labels: Array,
    row: Array,
) -> tuple[int, float]:
    """Write pivot, z_t and the label of row t; return (status, r_t).

    s, mu : posterior before the label.  labels : (3, > t), column t is written.
    row : (> t,), entry t is written. Nothing is written unless the status is 0.
    """
    status, pivot, white, r = last_entries(amplitude, s, mu, y, noise, t)
    if status != 0:
        return status, r
    row[t] = pivot
    labels[TARGET, t] = y
    labels[WHITE, t] = white
    labels[NOISE, t] = noise
    return 0, r


@jit
def append_row(
    kind: int,
    amplitude: float,
    mean: float,
    x: Array,
    per_length: Array,
    y: float,
    noise: float,
    t: int,
    Z: Array,
    labels: Array,
    L: Array,
) -> tuple[int, float]:
    """Append one label to the factor of t labels; return (status, r_t), r_t without C.

    x, per_length : (d,), input and reciprocal length scales, only read.
    Z : (d, > t), scaled inputs, column t is written.  labels : (3, > t), column t is written.
    L : (> t, > t), row t is written up to its diagonal, rows above are only read.
    A status other than 0 leaves what belongs to the first t labels as it was.
    """
    broken = 0.0
    for f in range(x.size):
        Z[f, t] = x[f] * per_length[f]
        # 0 for a finite input, else NaN: one test of the pivot refuses both.
        broken += Z[f, t] - Z[f, t]
    v = L[t]
    # L v = k(x)
    covariance_row(kind, amplitude, Z, 0, t, Z, t, v)
    forward_substitute(L, 0, t, v)
    vv, vz = two_dots(v, labels[WHITE], 0, t)
    s = amplitude - vv + broken
    return close_row(amplitude, s, mean + vz, y, noise, t, labels, v)


@jit
def append_block(
    kind: int,
    amplitude: float,
    mean: float,
    y: Array,
    noise: Array,
    S: Array,
    t: int,
    Z: Array,
    labels: Array,
    L: Array,
    bounds: Array,
) -> int:
    """Append b labels at once; return the status of the first row that fails, or 0.

    y, noise : (b,).  S : (b, b), V V^T, of which the lower triangle is read.
    Z : (d, >= t + b), with the scaled inputs of the block in place.
    L : (>= t + b, >= t + b), rows t to t + b hold V = K_bt L^-T in their first t columns; the rest
    of them up to the diagonal is written, rows above are only read.
    labels : (3, >= t + b), columns t to t + b are written.
    bounds : (b,), r_t of each label, written. The other arguments are only read.
    """
    white = labels[WHITE]
    for j in range(y.size):
        row = t + j
        v = L[row]
        # [L_bt  L_bb] [L_bt  L_bb]^T = K_bb + N: the block is the factor of K_bb - S
        covariance_row(kind, amplitude, Z, t, row, Z, row, v)
        for i in range(j):
            v[t + i] -= S[j, i]
        forward_substitute(L, t, row, v)
        # s = k - v.v, mu = mean + v.z, over the earlier labels and over the block
        _, vz = two_dots(v, white, 0, t)
        vv, vz_block = two_dots(v, white, t, row)
        s = amplitude - S[j, j] - vv
        mu = mean + vz + vz_block
        status, r = close_row(amplitude, s, mu, y[j], noise[j], row, labels, v)
        if status != 0:
            return status
        bounds[j] = r
    return 0


@jit
def row_variances(amplitude: float, V: Array, out: Array) -> None:
    """Write ``amplitude - sum_j V_ij^2``, not below zero, to ``out[i]``.

    V : (m, n), only read.  out : (m,).
    """
    for i in range(V.shape[0]):
        row = V[i]
        out[i] = max(amplitude - dots((row,), row, row.size)[0], 0.0)


@jit
def copy_lower(source: Array, target: Array, n: int) -> None:
    """Copy the lower triangle of the first n rows; the upper one is neither read nor written."""
    for i in range(n):
        for j in range(i + 1):
            target[i, j] = source[i, j]


@jit
def pack_lower(L: Array, n: int, packed: Array) -> None:
    """Write the lower triangle of L row by row into ``packed``, of shape (n (n + 1) / 2,)."""
    k = 0
    for i in range(n):
        for j in range(i + 1):
            packed[k] = L[i, j]
            k += 1


@jit
def unpack_lower(packed: Array, n: int, L: Array) -> None:
    """Undo `pack_lower`: write the lower triangle of the first n rows of L."""
    k = 0
    for i in range(n):
        for j in range(i + 1):
            L[i, j] = packed[k]
            k += 1
