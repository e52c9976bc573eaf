"""What the labels of one moment say: the posterior, the evidence, the divergence from the prior."""

from __future__ import annotations

import math

import numpy as np

from fastal._core.bound_array import gp_kl_array
from fastal._core.cholesky import NOISE, RECIPROCAL, TARGET, WHITE, row_variances
from fastal._core.covariance import covariance_rows
from fastal._core.panels import diagonal, solve_transposed
from fastal._types import Array
from fastal.bound import gp_prior_kl, prior_kl_of_factor
from fastal.models.buffers import Now, lower_triangle, solve_rows

# Inputs that are predicted at once: enough for the solve to run at full speed.
PANEL = 512


def covariances(
    kind: int, amplitude: float, Z: Array, n: int, scaled: Array, low: int, high: int
) -> Array:
    """Return prior covariances of the scaled inputs `low` to `high` with the first n of Z."""
    out = np.empty((high - low, n))
    covariance_rows(kind, amplitude, Z, n, scaled, low, out)
    return out


def whitened_rows(kind: int, now: Now, scaled: Array, low: int, high: int) -> Array:
    """Return v = L^-1 k(x) of the scaled inputs `low` to `high`, a row each."""
    n, kept = now
    V = covariances(kind, kept.amplitude, kept.Z, n, scaled, low, high)
    solve_rows(kept, n, V)
    return V


def joint(kind: int, now: Now, scaled: Array) -> tuple[Array, Array]:
    """Return mean and covariance at scaled inputs, (d, m)."""
    n, kept = now
    m = scaled.shape[1]
    mean = np.full(m, kept.mean)
    cov = covariances(kind, kept.amplitude, scaled, m, scaled, 0, m)
    if n > 0:
        V = whitened_rows(kind, now, scaled, 0, m)
        mean += V @ kept.labels[WHITE, :n]
        cov -= V @ V.T
        diagonal = np.einsum("ii->i", cov)
        np.maximum(diagonal, 0.0, out=diagonal)
    return mean, cov


def means(kind: int, now: Now, scaled: Array, alpha: Array) -> Array:
    """Return means at scaled inputs, (d, m); alpha = A^-1 (y - mean)."""
    n, kept = now
    m = scaled.shape[1]
    mean = np.full(m, kept.mean)
    for low in range(0, m if n > 0 else 0, PANEL):
        high = min(m, low + PANEL)
        # mu = m + k(x)^T A^-1 (y - m)
        mean[low:high] += covariances(kind, kept.amplitude, kept.Z, n, scaled, low, high) @ alpha
    return mean


def marginals(kind: int, now: Now, scaled: Array) -> tuple[Array, Array]:
    """Return means and variances at scaled inputs, (d, m)."""
    n, kept = now
    m = scaled.shape[1]
    mean, var = np.full(m, kept.mean), np.full(m, kept.amplitude)
    for low in range(0, m if n > 0 else 0, PANEL):
        high = min(m, low + PANEL)
        # mu = m + v.z, s = k(x, x) - v.v, v = L^-1 k(x)
        V = whitened_rows(kind, now, scaled, low, high)
        mean[low:high] += V @ kept.labels[WHITE, :n]
        row_variances(kept.amplitude, V, var[low:high])
    return mean, var


def weights(now: Now) -> Array:
    """Return alpha = A^-1 (y - mean)."""
    n, kept = now
    # L^T alpha = z
    alpha = kept.labels[WHITE, :n].copy()
    solve_transposed(kept.panels, kept.labels[RECIPROCAL], n, alpha)
    return alpha


def log_evidence(now: Now) -> float:
    """Return the log density of the labels under the prior."""
    n, kept = now
    if n == 0:
        return 0.0
    white = kept.labels[WHITE, :n]
    # -1/2 z.z - sum log L_ii - t/2 log(2 pi)
    logs = np.log(diagonal(kept.panels, n)).sum()
    return float(-0.5 * (white @ white) - logs - 0.5 * n * math.log(2.0 * math.pi))


def label_bounds(now: Now) -> Array:
    """Return the bound of each label given those before it, from the factor alone.

    With A = K + N = L L^T and z = L^-1 (y - mean), before label t
        s_t + n_t = L_tt^2,    y_t - mu_t = L_tt z_t.
    """
    n, kept = now
    bounds = np.empty(n)
    if n > 0:
        pivots, noise = diagonal(kept.panels, n), kept.labels[NOISE, :n].copy()
        # rounding may leave the pivot just below the noise
        var = np.maximum(pivots * pivots - noise, 0.0)
        gp_kl_array(np.zeros(n), var, pivots * kept.labels[WHITE, :n], noise, bounds)
    return bounds


def divergence_from_prior(kind: int, now: Now, jitter: float) -> float:
    """Return KL(q_t || p), with `jitter` on the diagonals of both covariances."""
    n, kept = now
    if n == 0:
        return 0.0
    y, noise = kept.labels[TARGET, :n], kept.labels[NOISE, :n]
    if jitter == 0.0:
        return prior_kl_of_factor(lower_triangle(now), y - kept.mean, noise)
    K = covariances(kind, kept.amplitude, kept.Z, n, kept.Z, 0, n)
    return gp_prior_kl(K, y, noise, mean=kept.mean, jitter=jitter)


def backward_error(kind: int, now: Now) -> float:
    """Return max |L L^T - (K + N)|, block by block."""
    n, kept = now
    worst, L = 0.0, lower_triangle(now)
    for low in range(0, n, PANEL):
        high = min(n, low + PANEL)
        K = covariances(kind, kept.amplitude, kept.Z, high, kept.Z, low, high)
        own = np.arange(high - low)
        K[own, low + own] += kept.labels[NOISE, low:high]
        for left in range(0, high, PANEL):
            right = min(high, left + PANEL)
            # Columns of L right of the block's own are zero.
            product = L[low:high, :right] @ L[left:right, :right].T
            worst = max(worst, float(np.abs(product - K[:, left:right]).max()))
    return worst
