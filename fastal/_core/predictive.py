"""The predictive density of a test set after each label, for hyper-parameters that change."""

from __future__ import annotations

import math

from fastal._core.expected_loss import PANEL, complete_rows
from fastal._core.jit import jit
from fastal._types import Array


@jit
def add_densities(
    kind: int,
    amplitude: float,
    mean: float,
    noise: float,
    Z: Array,
    y: Array,
    rows: int,
    Zl: Array,
    factor: Array,
    residuals: Array,
    first: int,
    n: int,
    V: Array,
    densities: Array,
    squares: Array,
) -> None:
    """Add up -log p(y_i) and (y_i - mu_i)^2 of a block of test points after `first` to n labels.

        -log p = 1/2 log(2 pi (s + noise)) + (y - mu)^2 / (2 (s + noise))

    Z : (d, >= rows), test points over length scales.  y : (>= rows,).  Zl : (d, T), those of the
    labels in order.  factor : (panels, PANEL, T), rows of L.  residuals : (>= n,).
    V : (>= rows, T), written.  densities, squares : (>= n,), entry t - 1 is that after t labels.
    """
    for low in range(0, n, PANEL):
        high = min(n, low + PANEL)
        complete_rows(kind, amplitude, Z, V, Zl, factor[low // PANEL], low, high, 0, rows)
    constant = 0.5 * math.log(2.0 * math.pi)
    for i in range(rows):
        row = V[i]
        mu = mean
        s = amplitude
        for t in range(n):
            # mu_t+1 = mu_t + V_it z_t,  s_t+1 = s_t - V_it^2
            v = row[t]
            mu += v * residuals[t]
            s -= v * v
            if t + 1 >= first:
                e = y[i] - mu
                total = max(s, 0.0) + noise
                densities[t] += constant + 0.5 * math.log(total) + 0.5 * e * e / total
                squares[t] += e * e
