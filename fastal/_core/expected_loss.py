"""The expected loss, and the loss and error on a test set after each label."""

from __future__ import annotations

import math

from fastal._core.jit import jit
from fastal._core.selection_lazy import ROWS, complete_rows
from fastal._types import Array

# Columns of the test set's rows that one product of matrices completes.
PANEL = 48

__all__ = ["PANEL", "ROWS", "add_block", "expected_loss", "root_mean_square"]


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
