"""What the criteria of the paper's experiments say after each label, in O(t^2) per label.

All rest on A = (K + S)^-1, S the diagonal matrix of one shift per label; it grows by one row with
each label:
    b = A k,  s = k(x, x) + shift - k.b,    A <- [[A + b b^T / s, -b / s], [-b^T / s, 1 / s]].
"""

from __future__ import annotations

import math

import numpy as np

from fastal._core.expected_loss import expected_loss
from fastal._core.jit import jit, jit_fused
from fastal._types import Array


@jit_fused
def grow_inverse(row: Array, shift: float, t: int, A: Array, b: Array) -> float:
    """Extend the inverse of t labels by label t; return the pivot s.

    row : (>= t + 1,), prior covariances of label t with the labels up to itself.
    A : (>= t + 1, >= t + 1), both triangles, written.  b : (>= t,), written.
    """
    pivot = row[t] + shift
    for i in range(t):
        b[i] = 0.0
    for j in range(t):
        known = A[j]
        k = row[j]
        for i in range(t):
            b[i] += k * known[i]
    for i in range(t):
        pivot -= row[i] * b[i]
    for j in range(t):
        known = A[j]
        scaled = b[j] / pivot
        for i in range(t):
            known[i] += scaled * b[i]
        known[t] = -scaled
        A[t, j] = -scaled
    A[t, t] = 1.0 / pivot
    return pivot


@jit_fused
def grow_weights(row: Array, y: float, pivot: float, b: Array, t: int, alpha: Array) -> None:
    """Extend alpha = A y by row t: ``alpha <- [alpha - b e, e]``, e = (y_t - k.alpha) / s."""
    error = y
    for i in range(t):
        error -= row[i] * alpha[i]
    error /= pivot
    for i in range(t):
        alpha[i] -= b[i] * error
    alpha[t] = error


@jit
def held_out(
    A: Array, alpha: Array, noise: Array, t: int, first: int, folds: int, G: Array
) -> float:
    """Return the sum of squared residuals and latent variances of one fold, held out.

    The fold has the labels first, first + folds, ... below t. With F for it,
        residuals A_FF^-1 alpha_F,    variances diag(A_FF^-1) - noise_F.
    Each label counts noise_0 / noise_i: squares in units of the first label's noise.
    noise : (>= t,).  G : (m, m), scratch.  NaN if A_FF is not positive definite.
    """
    m = (t - first + folds - 1) // folds
    for i in range(m):
        for j in range(i + 1):
            # G = R R^T, in place
            total = A[first + i * folds, first + j * folds]
            for k in range(j):
                total -= G[i, k] * G[j, k]
            if j < i:
                G[i, j] = total / G[j, j]
            elif total > 0.0:
                G[i, i] = math.sqrt(total)
            else:
                return math.nan
    total = 0.0
    column = np.empty(m)
    residual = np.empty(m)
    for i in range(m):
        residual[i] = alpha[first + i * folds]
    for i in range(m):
        # R z = alpha_F, then R^T residual = z
        for k in range(i):
            residual[i] -= G[i, k] * residual[k]
        residual[i] /= G[i, i]
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            residual[i] -= G[k, i] * residual[k]
        residual[i] /= G[i, i]
        total += residual[i] * residual[i] * (noise[0] / noise[first + i * folds])
    for j in range(m):
        # column j of R^-1; (A_FF^-1)_jj is its squared length
        square = 0.0
        for i in range(j, m):
            value = 1.0 if i == j else 0.0
            for k in range(j, i):
                value -= G[i, k] * column[k]
            column[i] = value / G[i, i]
            square += column[i] * column[i]
        own = noise[first + j * folds]
        total += (square - own) * (noise[0] / own)
    return total


@jit
def log_ratios(noise: Array, added: float, n: int) -> float:
    """Return sum_i log((noise_i + added) / (noise_0 + added)); 0 if all labels are alike."""
    total = 0.0
    for i in range(n):
        if noise[i] != noise[0]:
            total += math.log((noise[i] + added) / (noise[0] + added))
    return total


@jit
def held_out_loss(A: Array, alpha: Array, noise: Array, t: int, folds: int, G: Array) -> float:
    """Return the expected loss by cross-validation on t labels, averaged over them.

    Label i belongs to fold i mod `folds`.  G : (m, m), scratch, m = ceil(t / folds).
    """
    total = 0.0
    for first in range(folds):
        total += held_out(A, alpha, noise, t, first, folds, G)
    return expected_loss(total, t, noise[0]) + 0.5 * log_ratios(noise, 0.0, t) / t


@jit
def cross_validation(K: Array, y: Array, noise: Array, folds: int, out: Array) -> None:
    """Write the expected loss by cross-validation after each label; NaN before `folds` labels.

    K : (T, T), only its lower triangle is read.  y : (T,), less the prior mean.  noise : (T,).
    """
    labels = y.size
    A = np.zeros((labels, labels))
    b, alpha = np.empty(labels), np.empty(labels)
    most = (labels + folds - 1) // folds
    G = np.empty((most, most))
    for t in range(labels):
        pivot = grow_inverse(K[t], noise[t], t, A, b)
        grow_weights(K[t], y[t], pivot, b, t, alpha)
        out[t] = math.nan
        if t + 1 >= folds:
            out[t] = held_out_loss(A, alpha, noise, t + 1, folds, G)


@jit
def shift_of(noise: float, kappa: float) -> float:
    """Return c = kappa noise / (kappa + noise), see `pac_bayes_part`."""
    return kappa * noise / (kappa + noise)


@jit
def pac_bayes_part(
    A: Array, B: Array, alpha: Array, logs: Array, y: Array, noise: Array, kappa: float, n: int,
    mu: Array,
) -> float:  # fmt: skip
    """Return (n x expected loss on the labels + KL(q || p)) / n after n labels.

    kappa I is added to both covariances of the KL. With N = diag(noise), A = (K + N)^-1 and
    alpha = A y the posterior at the labels has
        y - mu = N alpha,    Sigma = N - N A N.
    With B = (K + kappa I)^-1 and C = diag(kappa noise_i / (kappa + noise_i))
        tr(B (Sigma + kappa I)) = sum_i (noise_i + kappa) B_ii - sum_ij noise_i noise_j B_ij A_ij,
        log|Sigma + kappa I| = sum_i log(noise_i + kappa) + log|K + C| - log|K + N|.
    For kappa = 0: tr = sum_i noise_i A_ii, mu.K^-1 mu = alpha.mu, and log|K| - log|Sigma| is
    log|K + N| - sum_i log noise_i.

    logs : (3,), log|K + N|, log|K + kappa I| and log|K + C|; without kappa B and the last two
    are not read.  y, noise : (>= n,).  mu : (>= n,), scratch.
    """
    loss = 0.0
    for i in range(n):
        error = noise[i] * alpha[i]
        mu[i] = y[i] - error
        square = error * error + noise[i] - noise[i] * noise[i] * A[i, i]
        loss += square * (noise[0] / noise[i])
    trace = 0.0
    square = 0.0
    if kappa > 0.0:
        for i in range(n):
            trace += (noise[i] + kappa) * B[i, i]
            for j in range(n):
                trace -= noise[i] * noise[j] * B[i, j] * A[i, j]
                square += mu[i] * B[i, j] * mu[j]
        log_ratio = logs[1] - logs[2] + logs[0] - n * math.log(noise[0] + kappa)
    else:
        for i in range(n):
            trace += noise[i] * A[i, i]
            square += alpha[i] * mu[i]
        log_ratio = logs[0] - n * math.log(noise[0])
    log_ratio -= log_ratios(noise, kappa, n)
    divergence = 0.5 * (trace + square - n + log_ratio)
    risk = expected_loss(loss, n, noise[0]) + 0.5 * log_ratios(noise, 0.0, n) / n
    return risk + divergence / n


@jit
def pac_bayes(K: Array, y: Array, noise: Array, kappa: float, out: Array) -> None:
    """Write `pac_bayes_part` after each label.

    K : (T, T), only its lower triangle is read.  y : (T,), less the prior mean.  noise : (T,).
    """
    labels = y.size
    A = np.zeros((labels, labels))
    B = np.zeros((labels, labels))
    C = np.zeros((labels, labels))
    b, alpha, mu = np.empty(labels), np.empty(labels), np.empty(labels)
    logs = np.zeros(3)
    for t in range(labels):
        pivot = grow_inverse(K[t], noise[t], t, A, b)
        logs[0] += math.log(pivot)
        grow_weights(K[t], y[t], pivot, b, t, alpha)
        if kappa > 0.0:
            logs[1] += math.log(grow_inverse(K[t], kappa, t, B, b))
            logs[2] += math.log(grow_inverse(K[t], shift_of(noise[t], kappa), t, C, b))
        out[t] = pac_bayes_part(A, B, alpha, logs, y, noise, kappa, t + 1, mu)
