"""What leaving out one point does to a selection: reruns by pivoted Cholesky.

Selection by maximum variance is Cholesky with complete pivoting of K + noise I: the pivots are the
variances plus noise. Points are in the order of the selection here, and row r of V holds column r
of the factor L from its diagonal on (zero before): V[r, c] = L_cr, so that after t labels
    s_c(t) + noise = V[t, c]^2 + ... + V[c, c]^2        (c >= t).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastal._core.jit import jit, jit_fused
from fastal._core.symbols import dpstrf, dsyrk, dtrsm

Array = NDArray[np.float64]

# Columns of L that one product of matrices takes: few enough that little of the zero triangle of L
# goes into it, and enough for BLAS.
COLUMNS = 96


@jit_fused
def rotate(V: Array, row: int, x: Array, a: float) -> tuple[float, float]:
    """Turn the left-out point's column x into row `row` of V; return (w, a), the point's entries.

    A Givens rotation of [column `row` of L | x] takes x to zero at `row`. The left-out point has 0
    in the first and `a` in the second; it gets w in the first and the new `a` in the second.
    x : (n,), entries behind `row` are changed, V is only read.
    """
    pivot = math.hypot(V[row, row], x[row])
    cosine = V[row, row] / pivot
    sine = x[row] / pivot
    factor = V[row]
    for c in range(row + 1, x.size):
        x[c] = cosine * x[c] - sine * factor[c]
    return sine * a, cosine * a


@jit
def free_selection(V: Array, first: int, x: Array, a: float, S: Array, w: Array) -> int:
    """Select all points from `first` on anew, with x as one more column of L; return a status.

    x : (n,).  S : (>= m^2,), m = n - first, overwritten.  w : (n,), gets the entries of the row of
    the left-out point, whose last one is `a`, from ``w[first]`` on in the order of the selection.
    The status is 0, or the order of the minor that is not positive definite.
    """
    n = V.shape[0]
    m = n - first
    text = np.empty(2, dtype=np.uint8)
    text[0], text[1] = 76, 78  # L, N
    whole = np.empty(7, dtype=np.int32)
    whole[0], whole[1], whole[2] = m, n, 1
    real = np.empty(2)
    real[0], real[1] = 1.0, -1.0  # a tolerance below 0 is LAPACK's own
    c, k, f = text.ctypes.data, whole.ctypes.data, real.ctypes.data
    # S = x x^T + L L^T, the lower triangle; to BLAS, which goes column by column, V is L
    for j in range(m):
        column = S[j * m : (j + 1) * m]
        for i in range(j, m):
            column[i] = x[first + i] * x[first + j]
    for low in range(0, m, COLUMNS):
        whole[5], whole[6] = m - low, min(COLUMNS, m - low)
        corner = V.ctypes.data + 8 * (first + low) * (n + 1)
        target = S.ctypes.data + 8 * low * (m + 1)
        dsyrk(c, c + 1, k + 20, k + 24, f, corner, k + 4, f, target, k)
    pivots = np.empty(m, dtype=np.int32)
    work = np.empty(2 * m)
    dpstrf(
        c, k, S.ctypes.data, k, pivots.ctypes.data, k + 12, f + 8, work.ctypes.data, k + 16
    )  # fmt: skip
    if whole[4] != 0:
        return first + whole[3] + 1
    # w = M^-1 (a x), M the factor of S in its own order
    for i in range(m):
        w[first + i] = a * x[first + pivots[i] - 1]
    # side L, lower, not transposed, not unit
    dtrsm(
        c, c, c + 1, c + 1, k, k + 8, f, S.ctypes.data, k, w.ctypes.data + 8 * first, k
    )  # fmt: skip
    # a later use keeps the arguments alive until here
    text[0], whole[0], real[0] = 0, 0, 0.0
    return 0


@jit
def rerun(V: Array, j: int, fixed: int, x: Array, S: Array, tail: Array) -> int:
    """Run the selection again from step j without its point; return the status.

    The `fixed` points after it stay where they are, the others are selected anew; of equal
    variances the earlier one wins. ``tail[t]`` becomes v(t) - v(n - 1) for t in j to n - 1: how
    far the variance of the point left out is, after t labels, from what all others leave of it.
    V : (n, n), only read.  x, tail : (n,).  S : (>= (n - j - 1)^2,).  All three are overwritten.
    """
    n = V.shape[0]
    x[:] = V[j]
    a = V[j, j]
    first = j + 1 + fixed
    for row in range(j + 1, first):
        tail[row], a = rotate(V, row, x, a)
    if first < n:
        status = free_selection(V, first, x, a, S, tail)
        if status != 0:
            return status
    # The point's row of the new factor is (..., w_{j+1}, ..., w_{n-1}); its variance after t labels
    # is v(t) = v(n - 1) + w_{t+1}^2 + ... + w_{n-1}^2.
    total = 0.0
    for t in range(n - 1, j, -1):
        w = tail[t]
        tail[t] = total
        total += w * w
    tail[j] = total
    return 0


@jit_fused
def mean_square_covariance(P: Array, diagonal: Array) -> float:
    """Return the mean over pairs of C_ij^2, with ``C_ij = -P_ij / (P_ii P_jj - P_ij^2)``.

    C_ij is the covariance of two points given all others. P : (n, n), the inverse of K + noise I,
    of which the upper triangle is read (to BLAS, the lower).  diagonal : (n,), that of P.
    """
    n = diagonal.size
    total = 0.0
    for i in range(n):
        row = P[i]
        for j in range(i + 1, n):
            p = row[j]
            c = p / (diagonal[i] * diagonal[j] - p * p)
            total += c * c
    return 2.0 * total / (n * (n - 1.0))
