"""The Cholesky factor that grows by rows, and the posterior before each label.

The factor L of K + N lies in panels of eight rows (`panels`), z = L^-1 (y - mean) beside it. A new
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
from fastal._core.panels import solve_panels, write_row

Array = NDArray[np.float64]

# Rows of the array that belongs to the labels, shape (4, capacity); the last one is 1 / L_tt.
TARGET, WHITE, NOISE, RECIPROCAL = 0, 1, 2, 3

# A pivot is trusted if it exceeds the rounding of the diagonal entry that it is the rest of.
PIVOT_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@jit
def forward_substitute(L: Array, start: int, stop: int, v: Array) -> None:
    """Solve ``L v = v`` in place for the entries `start` to `stop` of v.

    L : (>= stop - start, >= stop), rows of the factor from `start` on, of which the columns from
    `start` to `stop` are read.  v : (>= stop,), may be a later row of L.
    """
    n = stop - start
    whole = n - n % 8
    w = v[start:stop]
    # Eight rows at once: one load of w_j serves eight products, and eight streams keep the memory
    # busy. The triangle of 8 x 8 that is left has no such gain.
    for i in range(0, whole, 8):
        rows = (
            L[i][start:stop], L[i + 1][start:stop], L[i + 2][start:stop], L[i + 3][start:stop],
            L[i + 4][start:stop], L[i + 5][start:stop], L[i + 6][start:stop], L[i + 7][start:stop],
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
            factor = L[row][start:stop]
            x = w[row]
            for j in range(i, row):
                x -= factor[j] * w[j]
            w[row] = x / factor[row]
    for i in range(whole, n):
        factor = L[i][start:stop]
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
    if s < 0.0:
        s = 0.0
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

    s, mu : posterior before the label.  labels : (4, > t), column t is written.
    row : (> t,), entry t is written. Nothing is written unless the status is 0.
    """
    status, pivot, white, r = last_entries(amplitude, s, mu, y, noise, t)
    if status != 0:
        return status, r
    row[t] = pivot
    labels[TARGET, t] = y
    labels[WHITE, t] = white
    labels[NOISE, t] = noise
    labels[RECIPROCAL, t] = 1.0 / pivot
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
    panels: Array,
    v: Array,
) -> tuple[int, float]:
    """Append one label to the factor of t labels; return (status, r_t), r_t without C.

    x, per_length : (d,), input and reciprocal length scales, only read.
    Z : (d, > t), scaled inputs, column t is written.  labels : (4, > t), column t is written.
    panels : the factor, with room for row t, which is written; the others are only read.
    v : (> t,), to compute in.
    A status other than 0 leaves what belongs to the first t labels as it was.
    """
    broken = 0.0
    for f in range(x.size):
        Z[f, t] = x[f] * per_length[f]
        # 0 for a finite input, else NaN: one test of the pivot refuses both.
        broken += Z[f, t] - Z[f, t]
    # L v = k(x)
    covariance_row(kind, amplitude, Z, 0, t, Z, t, v)
    solve_panels(panels, labels[RECIPROCAL], t, v)
    vv, vz = two_dots(v, labels[WHITE], 0, t)
    s = amplitude - vv + broken
    status, r = close_row(amplitude, s, mean + vz, y, noise, t, labels, v)
    if status == 0:
        write_row(panels, t, v)
    return status, r


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
    rows: Array,
    panels: Array,
    bounds: Array,
) -> int:
    """Append b labels at once; return the status of the first row that fails, or 0.

    y, noise : (b,).  S : (b, b), V V^T, of which the lower triangle is read.
    Z : (d, >= t + b), with the scaled inputs of the block in place.
    rows : (b, >= t + b), rows of the factor from t on; they hold V = K_bt L^-T in their first t
    columns, the rest of them up to the diagonal is written.
    panels : the factor, with room for these rows, which are written; the others stay.
    labels : (4, >= t + b), columns t to t + b are written.
    bounds : (b,), r_t of each label, written. The other arguments are only read.
    """
    white = labels[WHITE]
    for j in range(y.size):
        row = t + j
        v = rows[j]
        # [L_bt  L_bb] [L_bt  L_bb]^T = K_bb + N: the block is the factor of K_bb - S
        covariance_row(kind, amplitude, Z, t, row, Z, row, v)
        for i in range(j):
            v[t + i] -= S[j, i]
        forward_substitute(rows, t, row, v)
        # s = k - v.v, mu = mean + v.z, over the earlier labels and over the block
        _, vz = two_dots(v, white, 0, t)
        vv, vz_block = two_dots(v, white, t, row)
        s = amplitude - S[j, j] - vv
        mu = mean + vz + vz_block
        status, r = close_row(amplitude, s, mu, y[j], noise[j], row, labels, v)
        if status != 0:
            return status
        write_row(panels, row, v)
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
