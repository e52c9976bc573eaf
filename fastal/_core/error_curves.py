"""Errors on a large test set after each label, by the panels that complete the rows of a pool.

A test point x has a row V = L^-1 k(labels, x) as a point of the pool has, and costs as much:
`selection_lazy.complete_rows` completes it a panel of entries at a time,
    V_p = K M_p^T + V_0 M_0^T.
The matrices M of all panels are made once. Then the test set goes through in blocks of rows, which
stay in the cache for all panels; as the entries of a panel come, so do mean and variance after each
of its labels,
    mu_t+1 = mu_t + V_t z_t,    s_t+1 = s_t - V_t^2.
For few test points see `expected_loss`: they do not pay for the matrices.
"""

from __future__ import annotations

import math

import numpy as np

from fastal._core.chunks import CHUNK, chunk_at
from fastal._core.dots import dots
from fastal._core.jit import jit
from fastal._core.selection_lazy import PANEL, ROWS, complete_rows
from fastal._types import Array, Ints


def products_size(t: int) -> int:
    """Return how many doubles the matrices of all panels of t labels take."""
    return sum(PANEL * min(t, first + PANEL) for first in range(0, t, PANEL))


def products_place(first: int, last: int) -> slice:
    """Return where those of one panel are."""
    start = first * (first + PANEL) // 2
    return slice(start, start + PANEL * last)


@jit
def add_errors(
    kind: int,
    amplitude: float,
    mean: float,
    noise: float,
    predictive: bool,
    Z: Array,
    y: Array,
    low: int,
    high: int,
    Zl: Array,
    products: Array,
    residuals: Array,
    since: int,
    t: int,
    table: Ints,
    totals: Array,
    squares: Array,
) -> None:
    """Add up the errors of the test points `low` to `high` after each of `since` to t labels.

    ``squares[j - 1]`` gets (y - mu)^2 after j labels, ``totals[j - 1]`` gets (y - mu)^2 + s or,
    with `predictive`,
        -log p(y) = 1/2 log(2 pi (s + noise)) + (y - mu)^2 / (2 (s + noise)).

    Z : (d, m), test points over length scales.  y : (m,).  Zl : (d, >= t), those of the labels.
    products : (products_size(t),), from `prepare_panel`.  residuals : (>= t,).
    table : addresses of chunks of ROWS rows, for t columns; written.  totals, squares : (>= t,).
    """
    d = Z.shape[0]
    part = np.empty((d, ROWS))
    base, error, left = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS)
    ones = np.ones(ROWS)
    s = np.empty(ROWS)
    constant = 0.5 * math.log(2.0 * math.pi)
    for begin in range(low, high, ROWS):
        rows = min(ROWS, high - begin)
        for f in range(d):
            for i in range(rows):
                part[f, i] = Z[f, begin + i]
        for i in range(rows):
            error[i] = y[begin + i] - mean
            s[i] = amplitude
        place = 0
        for first in range(0, t, PANEL):
            last = min(t, first + PANEL)
            own_products = products[place : place + PANEL * last]
            place += PANEL * last
            complete_rows(
                kind, amplitude, part, Zl, table, own_products, first, last, 0, rows, base, base
            )
            c = first // CHUNK
            columns = chunk_at(table, c, ROWS)
            for j in range(first, last):
                move(columns, j - c * CHUNK, residuals[j], rows, error, s, left)
                if j + 1 < since:
                    continue
                ee = dots((error,), error, rows)[0]
                squares[j] += ee
                if predictive:
                    total = 0.0
                    for i in range(rows):
                        variance = left[i] + noise
                        total += 0.5 * math.log(variance) + 0.5 * error[i] * error[i] / variance
                    totals[j] += total + rows * constant
                else:
                    totals[j] += ee + dots((left,), ones, rows)[0]


@jit
def move(columns: Array, j: int, z: float, rows: int, error: Array, s: Array, left: Array) -> None:
    """Let errors and variances of test points take in one label; left : variances, not below 0."""
    for i in range(rows):
        v = columns[i, j]
        error[i] -= v * z
        s[i] -= v * v
        left[i] = s[i] if s[i] > 0.0 else 0.0
