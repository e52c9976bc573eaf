"""The expected loss, and the loss and error on a test set after each label."""

from __future__ import annotations

import math

import numpy as np

from fastal._core.covariance import covariance_row
from fastal._core.jit import jit
from fastal._core.symbols import dgemm, dtrsm
from fastal._types import Array

# Rows of a test set that are in memory at a time.
ROWS = 512

# Columns of the test set's rows that one product of matrices completes.
PANEL = 48


@jit
def expected_loss(total: float, count: float, noise: float) -> float:
    """Return the mean of E[-log p(y | f)] over `count` labels.

    total : sum of (y - mu)^2 + s over them.
    """
    # E[loss] = beta/2 [ (y - mu)^2 + s ] + 1/2 log(2 pi / beta)
    return total / (2 * count * noise) + 0.5 * math.log(2 * math.pi * noise)


@jit
def root_mean_square(squares: float, count: float) -> float:
    """Return the root of the mean of `count` squares whose sum is given."""
    return math.sqrt(squares / count)


@jit
def complete_rows(
    kind: int,
    amplitude: float,
    X: Array,
    V: Array,
    Zl: Array,
    rows: Array,
    first: int,
    last: int,
    low: int,
    high: int,
) -> None:
    """Compute the entries `first` to `last` of the rows `low` to `high`, with one thread of BLAS.

    X : (d, >= high).  V : (>= high, T), written.  Zl : (d, T).  rows : (last - first, T), from
    `GaussianSelection.factor_panels`.
    """
    for i in range(low, high):
        covariance_row(kind, amplitude, Zl, first, last, X, i, V[i])
    # In the eyes of BLAS, which goes column by column, V is V^T:  V^T = L_p^-1 (K^T - L_0 V_0^T)
    text = np.empty(4, dtype=np.uint8)
    text[0], text[1], text[2], text[3] = 84, 78, 76, 85  # T, N, L, U
    blas_ints = np.empty(4, dtype=np.int32)
    blas_ints[0], blas_ints[1], blas_ints[2], blas_ints[3] = (
        last - first,
        high - low,
        first,
        V.shape[1],
    )
    real = np.empty(2)
    real[0], real[1] = -1.0, 1.0
    c, w, r = text.ctypes.data, blas_ints.ctypes.data, real.ctypes.data
    target = V.ctypes.data + 8 * (low * V.shape[1] + first)
    if first > 0:
        dgemm(
            c, c + 1, w, w + 4, w + 8, r, rows.ctypes.data, w + 12,
            V.ctypes.data + 8 * low * V.shape[1], w + 12, r + 8, target, w + 12,
        )  # fmt: skip
    dtrsm(
        c + 2, c + 3, c, c + 1, w, w + 4, r + 8, rows.ctypes.data + 8 * first, w + 12, target,
        w + 12,
    )  # fmt: skip
    # a later use keeps the arguments alive until here
    text[0], blas_ints[0], real[0] = 0, 0, 0.0


@jit
def add_rows(
    amplitude: float,
    mean: float,
    V: Array,
    residuals: Array,
    y: Array,
    n: int,
    rows: int,
    totals: Array,
    squares: Array,
) -> None:
    """Add up the errors of the first `rows` test points after each of n labels.

    ``totals[t]`` gets ``(y_i - mu_i)^2 + s_i``, ``squares[t]`` gets ``(y_i - mu_i)^2``.

    V : (>= rows, >= n), rows of test points.  residuals : (>= n,).  y : (>= rows,).
    totals, squares : (>= n,).
    """
    for i in range(rows):
        row = V[i]
        mu = mean
        s = amplitude
        for t in range(n):
            # mu_t+1 = mu_t + V_it z_t,  s_t+1 = s_t - V_it^2
            v = row[t]
            mu += v * residuals[t]
            s -= v * v
            e = y[i] - mu
            totals[t] += e * e + max(s, 0.0)
            squares[t] += e * e


@jit
def add_block(
    kind: int,
    amplitude: float,
    mean: float,
    Z: Array,
    y: Array,
    rows: int,
    Zl: Array,
    factor: Array,
    residuals: Array,
    n: int,
    V: Array,
    totals: Array,
    squares: Array,
) -> None:
    """Add up the errors of a block of test points after each of n labels, with one thread of BLAS.

    Z : (d, >= rows), test points over length scales.  y : (>= rows,).  Zl : (d, T), those of the
    labels in order.  factor : (panels, PANEL, T), rows of L.  residuals : (>= n,).
    V : (>= rows, T), written.  totals, squares : (>= n,).
    """
    for first in range(0, n, PANEL):
        last = min(n, first + PANEL)
        complete_rows(kind, amplitude, Z, V, Zl, factor[first // PANEL], first, last, 0, rows)
    add_rows(amplitude, mean, V, residuals, y, n, rows, totals, squares)
