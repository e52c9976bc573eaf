"""Gaussian-process classification by the Laplace approximation, growing label by label.

The posterior of the latent function is approximated at its mode f (Rasmussen & Williams 2006,
algorithms 3.1 and 3.2). Only the matrix B = I + W^1/2 K W^1/2 is factored, whose eigenvalues are
at least 1: nothing inverts K, which may be singular. The mode is kept as f = K a, so that
prior terms need no solve: f^T K^-1 f = a.f.

The factor is upper, U^T U = B, and its transpose is kept below the diagonal. Inner loops then all
add multiples of rows, and run in vectors without a sum being reordered: results agree to the last
digit whether the code was compiled in this process or comes from the cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastal._core.covariance import covariance_row
from fastal._core.jit import jit, jit_fused
from fastal._core.links import differentiate
from fastal._types import Array

# What is left to the mode is rounding below this, against 1 + max|f|.
TINY = 1e-15

# One below this that no longer shrinks has met the rounding of K a.
SMALL = 1e-6

# A factor that is not of the present curvature is used again while steps shrink by this much.
SHRINKS = 0.2

# The objective may fall by this much, against 1 + |objective|, before a step is halved: rounding.
SLACK = 1e-12

MOST_STEPS = 500

MOST_HALVINGS = 50

# Rows of a triangle that are added as far as the last of them reaches.
STRIP = 32

# A weight below this, times the amplitude, says nothing of the variance by way of B.
FAINT = 1e-6


class Laplace(NamedTuple):
    """All state of a classifier; inputs of d features, room for T labels, n of them in use."""

    Z: Array  # (d, T) inputs over length scales
    K: Array  # (T, T) prior covariance, both triangles
    U: Array  # (T, T) upper factor of B = I + W^1/2 K W^1/2, its transpose below the diagonal
    R: Array  # (T, T) room for U^-T
    sign: Array  # (T,) labels, -1 or 1
    a: Array  # (T,) weights of the mode, f = K a
    f: Array  # (T,) the mode
    root: Array  # (T,) W^1/2 of the factor
    slope: Array  # (T,) d log p / df
    w: Array  # (T,) W = -d^2 log p / df^2
    old: Array  # (4, T) what the divergence needs of the posterior before the label
    room: Array  # (4, T) scratch
    C: Array  # (4, T) scratch of `factor` and `invert`


# Rows of `Laplace.old`.
OLD_A, OLD_W, OLD_PIVOT, OLD_VARIANCE = 0, 1, 2, 3


def new_laplace(features: int, capacity: int) -> Laplace:
    """Return the state before the first label."""
    T = capacity
    squares = (np.zeros((T, T)) for _ in range(3))
    vectors = (np.zeros(T) for _ in range(6))
    scratch = (np.zeros((rows, T)) for rows in (4, 4, 4))
    return Laplace(np.zeros((features, T)), *squares, *vectors, *scratch)


@jit_fused
def dot(x: Array, y: Array, n: int) -> float:
    """Return x.y over the first n entries."""
    total = 0.0
    for j in range(n):
        total += x[j] * y[j]
    return total


@jit_fused
def add_rows(V: Array, c: Array, first: int, last: int, start: int, stop: int, out: Array) -> None:
    """Add ``sum_r c_r V_r``, r from `first` to `last`, to the entries `start` to `stop` of `out`.

    V : (>= last, >= stop), c : (>= last,), only read.  out : (>= stop,), may be a later row of V.
    Four rows at a time share each load and store of `out`.
    """
    # Slices, and loops that begin at 0: only then does the compiler know that no index counts
    # from the end, and vectorise.
    o = out[start:stop]
    whole = last - (last - first) % 4
    for r in range(first, whole, 4):
        v0, v1 = V[r][start:stop], V[r + 1][start:stop]
        v2, v3 = V[r + 2][start:stop], V[r + 3][start:stop]
        c0, c1, c2, c3 = c[r], c[r + 1], c[r + 2], c[r + 3]
        for j in range(o.size):
            o[j] += (c0 * v0[j] + c1 * v1[j]) + (c2 * v2[j] + c3 * v3[j])
    for r in range(whole, last):
        v0 = V[r][start:stop]
        c0 = c[r]
        for j in range(o.size):
            o[j] += c0 * v0[j]


@jit_fused
def add_rows_to_four(
    V: Array, C: Array, first: int, last: int, start: int, stop: int, k: int
) -> None:
    """Do `add_rows` for the rows k to k + 4 of V itself, with a row of C, (4, >= last), for each.

    ``last <= k``, and ``last - first`` is a multiple of four. Sixteen products for eight loads:
    twice the speed of row by row.
    """
    o0, o1 = V[k][start:stop], V[k + 1][start:stop]
    o2, o3 = V[k + 2][start:stop], V[k + 3][start:stop]
    for r in range(first, last, 4):
        v0, v1 = V[r][start:stop], V[r + 1][start:stop]
        v2, v3 = V[r + 2][start:stop], V[r + 3][start:stop]
        a0, a1, a2, a3 = C[0, r], C[0, r + 1], C[0, r + 2], C[0, r + 3]
        b0, b1, b2, b3 = C[1, r], C[1, r + 1], C[1, r + 2], C[1, r + 3]
        c0, c1, c2, c3 = C[2, r], C[2, r + 1], C[2, r + 2], C[2, r + 3]
        d0, d1, d2, d3 = C[3, r], C[3, r + 1], C[3, r + 2], C[3, r + 3]
        for j in range(o0.size):
            x0, x1, x2, x3 = v0[j], v1[j], v2[j], v3[j]
            o0[j] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
            o1[j] += (b0 * x0 + b1 * x1) + (b2 * x2 + b3 * x3)
            o2[j] += (c0 * x0 + c1 * x1) + (c2 * x2 + c3 * x3)
            o3[j] += (d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3)


@jit
def multiply(K: Array, x: Array, n: int, out: Array) -> None:
    """Write K x to `out`; K : (>= n, >= n), symmetric, x, out : (>= n,), memory of their own."""
    for j in range(n):
        out[j] = 0.0
    add_rows(K, x, 0, n, 0, n, out)


@jit_fused
def factor(K: Array, root: Array, n: int, U: Array, C: Array) -> None:
    """Write U with U^T U = B = I + W^1/2 K W^1/2, and its transpose below the diagonal.

    K : (>= n, >= n), root : (>= n,), only read.  U : (>= n, >= n).  C : (4, >= n), scratch.
    """
    for k in range(0, n, 4):
        end = min(k + 4, n)
        for i in range(k, end):
            row, covariance, roots = U[i][k:n], K[i][k:n], root[k:n]
            r = root[i]
            for j in range(row.size):
                row[j] = r * covariance[j] * roots[j]
            U[i, i] += 1.0
        # U_i = (B_i - sum_{r<i} U_ri U_r) / U_ii, first for the rows above these four
        for r in range(k):
            for i in range(k, end):
                U[i, r] = U[r, i]
                C[i - k, r] = -U[r, i]
        if end - k == 4:
            add_rows_to_four(U, C, 0, k, k, n, k)
        else:
            for i in range(k, end):
                add_rows(U, C[i - k], 0, k, k, n, U[i])
        for i in range(k, end):
            for r in range(k, i):
                U[i, r] = U[r, i]
                C[0, r] = -U[r, i]
            add_rows(U, C[0], k, i, i, n, U[i])
            # The exact pivot is at least 1; what is less is rounding.
            row = U[i][i:n]
            pivot = math.sqrt(max(row[0], 1.0))
            row[0] = pivot
            for j in range(1, row.size):
                row[j] /= pivot


@jit_fused
def forward(U: Array, n: int, v: Array) -> None:
    """Solve ``U^T v = v`` in place; U : (>= n, >= n), v : (>= n,)."""
    for k in range(n):
        x = v[k] / U[k, k]
        v[k] = x
        row, rest = U[k][k + 1 : n], v[k + 1 : n]
        for j in range(rest.size):
            rest[j] -= x * row[j]


@jit_fused
def backward(U: Array, n: int, v: Array) -> None:
    """Solve ``U v = v`` in place by the columns of U, which are kept below the diagonal."""
    for k in range(n - 1, -1, -1):
        x = v[k] / U[k, k]
        v[k] = x
        row, rest = U[k][:k], v[:k]
        for j in range(rest.size):
            rest[j] -= x * row[j]


@jit
def invert(U: Array, n: int, R: Array, C: Array) -> None:
    """Write R = U^-T, lower, row by row.

    R : (>= n, >= n), above the diagonal zero, and left so.  C : (4, >= n), scratch.
    """
    for k in range(0, n, 4):
        end = min(k + 4, n)
        for i in range(k, end):
            for r in range(i):
                R[i, r] = 0.0
                C[i - k, r] = -U[i, r]
        # sum_{r<i} U_ri R_r + U_ii R_i = e_i;  rows of R end at their diagonal
        for first in range(0, k, STRIP):
            last = min(first + STRIP, k)
            if end - k == 4:
                add_rows_to_four(R, C, first, last, 0, last, k)
            else:
                for i in range(k, end):
                    add_rows(R, C[i - k], first, last, 0, last, R[i])
        for i in range(k, end):
            add_rows(R, C[i - k], k, i, 0, i, R[i])
            row = R[i][:i]
            for j in range(row.size):
                row[j] /= U[i, i]
            R[i, i] = 1.0 / U[i, i]


@jit
def whiten(s: Laplace, n: int, V: Array, C: Array) -> None:
    """Overwrite the columns k of V by U^-T W^1/2 k; V : (n, m).  C : (4, >= n), scratch."""
    m = V.shape[1]
    for k in range(0, n, 4):
        end = min(k + 4, n)
        for i in range(k, end):
            row = V[i]
            for j in range(m):
                row[j] *= s.root[i]
            for r in range(i):
                C[i - k, r] = -s.U[i, r]
        # V_i = (root_i V_i - sum_{r<i} U_ri V_r) / U_ii
        if end - k == 4:
            add_rows_to_four(V, C, 0, k, 0, m, k)
        else:
            for i in range(k, end):
                add_rows(V, C[i - k], 0, k, 0, m, V[i])
        for i in range(k, end):
            row = V[i]
            add_rows(V, C[i - k], k, i, 0, m, row)
            for j in range(m):
                row[j] /= s.U[i, i]


@jit
def covariances(kind: int, amplitude: float, s: Laplace, n: int, X: Array, V: Array) -> None:
    """Write prior covariances of the n labelled inputs with those of X, (d, m), to V, (n, m)."""
    for i in range(n):
        covariance_row(kind, amplitude, X, 0, X.shape[1], s.Z, i, V[i])


@jit
def marginals(
    kind: int,
    amplitude: float,
    s: Laplace,
    n: int,
    X: Array,
    V: Array,
    C: Array,
    mean: Array,
    var: Array,
) -> None:
    """Write posterior means and variances of the latent function at the inputs X, (d, m).

    V : (n, m), C : (4, n), scratch; the state is only read.  mean : (m,).  var : (m,), or (0,) if
    they are not wanted.
    """
    m = mean.size
    covariances(kind, amplitude, s, n, X, V)
    # mu = k.a
    for j in range(m):
        mean[j] = 0.0
    add_rows(V, s.a, 0, n, 0, m, mean)
    if var.size == 0:
        return
    # s = k(x, x) - v.v,  v = U^-T W^1/2 k
    whiten(s, n, V, C)
    for j in range(m):
        var[j] = amplitude
    for i in range(n):
        row = V[i]
        for j in range(m):
            var[j] -= row[j] * row[j]
    for j in range(m):
        var[j] = max(var[j], 0.0)


@jit
def refresh_mode(link: int, s: Laplace, n: int) -> None:
    """Bring the mode, its derivatives and the factor in line with the weights `a`."""
    multiply(s.K, s.a, n, s.f)
    differentiate(link, s.sign, s.f, n, s.slope, s.w)
    for i in range(n):
        s.root[i] = math.sqrt(s.w[i])
    factor(s.K, s.root, n, s.U, s.C)


@jit
def find_mode(link: int, s: Laplace, n: int, factored: bool) -> tuple[int, int, int]:
    """Climb from `a`, f = K a to the mode by damped Newton steps.

    Return a status (0: found), the number of steps and that of factors. `factored` says that U and
    `root` are of some curvature for these n labels, if not of the present one: a step with them
    still climbs, and costs O(n^2).
    """
    a, f, slope, w, root, U, K = s.a, s.f, s.slope, s.w, s.root, s.U, s.K
    gradient, c, da, df = s.room[0], s.room[1], s.room[2], s.room[3]
    a_new, f_new = gradient, c  # no longer needed when there is a step
    factors = 0
    before = 0.0
    # psi = log p(y | f) - 1/2 f^T K^-1 f
    value = differentiate(link, s.sign, f, n, slope, w) - 0.5 * dot(a, f, n)
    for steps in range(1, MOST_STEPS + 1):
        fresh = not factored
        if fresh:
            for i in range(n):
                root[i] = math.sqrt(w[i])
            factor(K, root, n, U, s.C)
            factors += 1
            factored = True
        # (K^-1 + W) df = grad psi = slope - a,  df = K da:
        # da = (I - W^1/2 B^-1 W^1/2 K) (slope - a)
        for i in range(n):
            gradient[i] = slope[i] - a[i]
        multiply(K, gradient, n, c)
        for i in range(n):
            c[i] *= root[i]
        forward(U, n, c)
        backward(U, n, c)
        for i in range(n):
            da[i] = gradient[i] - root[i] * c[i]
        multiply(K, da, n, df)
        size = 0.0
        scale = 1.0
        for i in range(n):
            size = max(size, abs(df[i]))
            scale = max(scale, 1.0 + abs(f[i]))
        step = 1.0
        lowest = value - SLACK * (1.0 + abs(value))
        for _ in range(MOST_HALVINGS):
            for i in range(n):
                a_new[i] = a[i] + step * da[i]
                f_new[i] = f[i] + step * df[i]
            value = differentiate(link, s.sign, f_new, n, slope, w) - 0.5 * dot(a_new, f_new, n)
            if value >= lowest:
                break
            step *= 0.5
        a[:n] = a_new[:n]
        f[:n] = f_new[:n]
        # What is left shrinks as the steps do, or faster.
        rate = 1.0 if steps == 1 else size / before
        if rate * size <= TINY * scale:
            return 0, steps, factors
        shrinks = steps == 1 or rate <= SHRINKS
        if fresh and not shrinks and size <= SMALL * scale:
            return 0, steps, factors
        factored = shrinks and step == 1.0
        before = size
    return 1, MOST_STEPS, factors


@jit
def old_variances(amplitude: float, s: Laplace, n: int) -> None:
    """Write the posterior variances of the n latent values to ``old[OLD_VARIANCE]``."""
    out, c = s.old[OLD_VARIANCE], s.room[0]
    invert(s.U, n, s.R, s.C)
    for i in range(n):
        c[i] = 0.0
    for k in range(n):
        # (B^-1)_ii = sum_{k >= i} (U^-T)_ki^2
        row = s.R[k]
        for i in range(k + 1):
            c[i] += row[i] * row[i]
    for i in range(n):
        # W^1/2 S W^1/2 = I - B^-1
        if s.w[i] * amplitude >= FAINT:
            out[i] = max(1.0 - c[i], 0.0) / s.w[i]
        else:
            out[i] = -1.0
    for i in range(n):
        if out[i] < 0.0:
            # S_ii = K_ii - |U^-T W^1/2 k_i|^2
            for j in range(n):
                c[j] = s.root[j] * s.K[i, j]
            forward(s.U, n, c)
            out[i] = max(s.K[i, i] - dot(c, c, n), 0.0)


@jit
def divergence(s: Laplace, n: int, variance: float) -> float:
    """Return KL(q_n || q_{n+1}) on the n + 1 inputs, after the new mode is in place (Corollary 1).

    Both are the prior times Gaussian sites: precisions K^-1 + W0 and K^-1 + W1, where the new
    input has no weight in W0, and determinants |B0| / |K| and |B1| / |K|. Hence
    2 KL = sum (w1 - w0) S0_ii - log |B1| / |B0| + (m1 - m0)^T (K^-1 + W1) (m1 - m0).
    """
    w0, pivot, variances = s.old[OLD_W], s.old[OLD_PIVOT], s.old[OLD_VARIANCE]
    d = s.room[0]
    for i in range(n + 1):
        d[i] = s.a[i] - s.old[OLD_A, i]
    shift = s.room[1]
    multiply(s.K, d, n + 1, shift)
    total = dot(d, shift, n + 1)
    for i in range(n):
        total += (s.w[i] - w0[i]) * variances[i]
        # log U1_ii / U0_ii, which are nearly equal as a rule
        total -= 2.0 * math.log1p((s.U[i, i] - pivot[i]) / pivot[i])
        total += s.w[i] * shift[i] * shift[i]
    total += s.w[n] * (variance + shift[n] * shift[n])
    total -= 2.0 * math.log(s.U[n, n])
    return max(0.5 * total, 0.0)


@jit
def append(
    kind: int, amplitude: float, link: int, s: Laplace, n: int, sign: float
) -> tuple[int, float, int, int]:
    """Add the label of the input in column n of Z; return status, r_t, steps and factors.

    The old mode stays, the new latent value starts at its predictive mean, and the factor is
    extended by a column: the first step needs no new one. A status other than 0 leaves the weights
    before the label in ``old[OLD_A]``.
    """
    k = s.K[n]
    covariance_row(kind, amplitude, s.Z, 0, n + 1, s.Z, n, k)
    for i in range(n):
        s.K[i, n] = k[i]
    old_variances(amplitude, s, n)
    for i in range(n):
        s.old[OLD_A, i] = s.a[i]
        s.old[OLD_W, i] = s.w[i]
        s.old[OLD_PIVOT, i] = s.U[i, i]
    # mu = k.a,  s = k(x, x) - v.v,  v = U^-T W^1/2 k
    s.a[n] = s.old[OLD_A, n] = 0.0
    s.f[n] = dot(k, s.a, n)
    s.sign[n] = sign
    v = s.room[0]
    for i in range(n):
        v[i] = s.root[i] * k[i]
    forward(s.U, n, v)
    variance = max(k[n] - dot(v, v, n), 0.0)
    differentiate(link, s.sign[n : n + 1], s.f[n : n + 1], 1, s.slope[n : n + 1], s.w[n : n + 1])
    root = math.sqrt(s.w[n])
    for i in range(n):
        s.U[i, n] = s.U[n, i] = root * v[i]
    s.root[n] = root
    s.U[n, n] = math.sqrt(1.0 + s.w[n] * variance)
    status, steps, factors = find_mode(link, s, n + 1, True)
    if status != 0:
        return status, math.nan, steps, factors
    refresh_mode(link, s, n + 1)
    return 0, divergence(s, n, variance), steps, factors + 1
