"""Covariance functions of a scaled distance, and their slopes for the marginal likelihood.

Inputs are divided by their length scale once, when they are stored, and lie feature by feature
(d, n): the loop over points is then the inner one, contiguous and vectorised, whatever d is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastal._core.dots import dots
from fastal._core.formula import bits, choose, double, formula, square_root
from fastal._core.jit import jit, jit_fused, jit_fused_part
from fastal._core.views import part, row_part

Array = NDArray[np.float64]

RBF, MATERN12, MATERN32, MATERN52 = 0, 1, 2, 3
KINDS = {"rbf": RBF, "matern12": MATERN12, "matern32": MATERN32, "matern52": MATERN52}

SQRT3 = math.sqrt(3.0)
SQRT5 = math.sqrt(5.0)

# exp(x) = 2^k exp(r), |r| <= ln(2)/2; ln(2) in two parts, so that k LN2_HIGH is exact.
LOG2E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
# Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits of the double.
TO_INTEGER = 6755399441055744.0
BIAS = np.uint64(1023)
SHIFT = np.uint64(52)

# exp(r) = 1 + r + r^2 Q(r), error below 2e-17. Q interpolates (exp(r) - 1 - r)/r^2 at the 10
# Chebyshev nodes of [-ln(2)/2, ln(2)/2]; made with 40-digit mpmath, lu_solve.
Q0 = 0.5000000000000001
Q1 = 0.16666666666666669
Q2 = 0.041666666666624164
Q3 = 0.008333333333330065
Q4 = 0.0013888888917196719
Q5 = 0.00019841269863040545
Q6 = 2.4801521322368692e-05
Q7 = 2.7557268480310024e-06
Q8 = 2.7620075879983367e-07
Q9 = 2.5100375832561234e-08


@formula
def exp_negative(x: Any) -> Any:
    """Return ``exp(x)`` for ``x <= 0`` to two units in the last place; 0 below -708.

    The library's exp is a call an element; this one is arithmetic only and runs in vectors.
    """
    shifted = x * LOG2E + TO_INTEGER
    k = shifted - TO_INTEGER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    q = Q4 + r * (Q5 + r * (Q6 + r * (Q7 + r * (Q8 + r * Q9))))
    e = 1.0 + (r + r * r * (Q0 + r * (Q1 + r * (Q2 + r * (Q3 + r * q)))))
    # 2^k: the low bits of `shifted` hold k, the shift drops everything else.
    power = double((bits(shifted) + BIAS) << SHIFT)
    return choose(x < -708.0, 0.0, e * power)


@formula
def rbf(amplitude: Any, rr: Any) -> Any:
    """Return k from the squared distance r^2: a exp(-r^2 / 2)."""
    return amplitude * exp_negative.on(-0.5 * rr)


@formula
def capped(r: Any) -> Any:
    """Return r, at most 800: exp(-r) is 0 there, and inf times 0 would be NaN."""
    return choose(r > 800.0, 800.0, r)


@formula
def matern(amplitude: Any, root: Any, linear: Any, square: Any, rr: Any) -> Any:
    """Return k = a p(s) exp(-s), s a multiple of r: one formula for all.

    p = 1;  1 + sqrt(3) r;  1 + sqrt(5) r + 5 r^2 / 3
    """
    s = capped.on(root * square_root(rr))
    return amplitude * (1.0 + linear * s + square * (s * s / 3.0)) * exp_negative.on(-s)


@jit_fused_part
def from_squares(kind: int, amplitude: float, squares: Array) -> None:
    """Turn squared scaled distances into covariances, in place."""
    if kind == RBF:
        for j in range(squares.size):
            squares[j] = rbf(amplitude, squares[j])
        return
    root = SQRT5 if kind == MATERN52 else SQRT3 if kind == MATERN32 else 1.0
    linear = 0.0 if kind == MATERN12 else 1.0
    square = 1.0 if kind == MATERN52 else 0.0
    for j in range(squares.size):
        squares[j] = matern(amplitude, root, linear, square, squares[j])


@jit_fused_part
def squared_distances(Z: Array, first: int, last: int, X: Array, c: int, out: Array) -> None:
    """Write ``|Z[:, j] - X[:, c]|^2`` to ``out[j]`` for the columns `first` to `last` of Z.

    Z : (d, >= last), X : (d, > c), both scaled. out : (>= last,), shares no memory with either.
    """
    # Loops that begin at 0: only then does the compiler know that no index counts from the end, and
    # vectorise.
    squares = part(out, first, last)
    for j in range(squares.size):
        squares[j] = 0.0
    for f in range(Z.shape[0]):
        z = row_part(Z, f, first, last)
        x = X[f, c]
        for j in range(squares.size):
            difference = z[j] - x
            squares[j] += difference * difference


@jit_fused
def covariance_row(
    kind: int, amplitude: float, Z: Array, first: int, last: int, X: Array, c: int, out: Array
) -> None:
    """Write k(Z[:, j], X[:, c]) to ``out[j]``; shapes and aliasing as `squared_distances`."""
    squared_distances(Z, first, last, X, c, out)
    from_squares(kind, amplitude, out[first:last])


@jit
def covariance_rows(
    kind: int, amplitude: float, Z: Array, n: int, X: Array, start: int, out: Array
) -> None:
    """Write k(Z[:, j], X[:, start + i]) to ``out[i, :n]`` for every row i of `out`.

    Z : (d, >= n), X : (d, >= start + m), out : (m, >= n), memory of its own.
    """
    for i in range(out.shape[0]):
        covariance_row(kind, amplitude, Z, 0, n, X, start + i, out[i])


@jit_fused
def slopes_from_squares(kind: int, amplitude: float, squares: Array, values: Array, n: int) -> None:
    """Turn squared distances into covariances `values` and slopes, the latter in place.

    The slope is g = -2 dk/d(r^2), so that dk/d(log l_f) = g (x_f - x'_f)^2 / l_f^2.
    """
    for j in range(n):
        rr = squares[j]
        if kind == RBF:
            value = amplitude * exp_negative(-0.5 * rr)
            slope = value
        elif kind == MATERN12:
            r = math.sqrt(rr)
            value = amplitude * exp_negative(-r)
            # exp(-r)/r is unbounded at 0, but is multiplied by a square that is 0 there.
            slope = value / r if rr > 0.0 else 0.0
        elif kind == MATERN32:
            r = capped(SQRT3 * math.sqrt(rr))
            e = amplitude * exp_negative(-r)
            value = (1.0 + r) * e
            slope = 3.0 * e
        else:
            r = capped(SQRT5 * math.sqrt(rr))
            e = amplitude * exp_negative(-r)
            value = (1.0 + r + r * r / 3.0) * e
            slope = (5.0 / 3.0) * (1.0 + r) * e
        values[j] = value
        squares[j] = slope


@jit_fused
def covariance_and_slopes(
    kind: int, amplitude: float, Z: Array, values: Array, slopes: Array
) -> None:
    """Write the lower triangles of covariance and slope of all pairs of columns of Z.

    Z : (d, n), values and slopes : (n, n), memory of their own; upper triangles stay as they are.
    """
    for i in range(Z.shape[1]):
        squared_distances(Z, 0, i + 1, Z, i, slopes[i])
        slopes_from_squares(kind, amplitude, slopes[i], values[i], i + 1)


@jit
def lengthscale_gradient(
    Z: Array, slopes: Array, alpha: Array, inverse: Array, values: Array, gradient: Array
) -> float:
    """Add up the gradient of the log marginal likelihood; return its amplitude part.

    With W = alpha alpha^T - A^-1 (symmetric; A^-1 in the lower triangle of `inverse`):
    gradient_f = 1/2 sum_ij W_ij g_ij (Z_fi - Z_fj)^2, and 1/2 sum_ij W_ij K_ij is returned.
    Z : (d, n), slopes, inverse, values : (n, n) lower, alpha : (n,), gradient : (d,), overwritten;
    so are `slopes` and `inverse` below the diagonal.
    """
    d = Z.shape[0]
    scale = 0.0
    for f in range(d):
        gradient[f] = 0.0
    for i in range(Z.shape[1]):
        a = alpha[i]
        slope, row = slopes[i], inverse[i]
        # Below the diagonal, each pair counts twice: 1/2 * 2.
        for j in range(i):
            w = a * alpha[j] - row[j]
            row[j] = w
            slope[j] *= w
        scale += dots((values[i],), row, i)[0] + 0.5 * (a * a - row[i]) * values[i, i]
        for f in range(d):
            z = Z[f]
            x = z[i]
            for j in range(i):
                difference = x - z[j]
                row[j] = difference * difference
            gradient[f] += dots((slope,), row, i)[0]
    return scale
