"""What the criteria of the paper's experiments say after each label of a run, in O(t^2) a label.

All rest on A = (K + shift I)^-1, which grows by one row with each label:
    b = A k,  s = k(x, x) + shift - k.b,    A <- [[A + b b^T / s, -b / s], [-b^T / s, 1 / s]].
"""

from __future__ import annotations

import math

import numpy as np

from fastal._core.jit import jit, jit_fused
from fastal._types import Array


@jit_fused
def grow_inverse(K: Array, shift: float, t: int, A: Array, b: Array) -> float:
    """Extend the inverse of the leading t x t block by row t; return the pivot s.

    K : (T, T), only its lower triangle is read.  A : (T, T), both triangles, written.
    b : (T,), written.
    """
    row = K[t]
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
    A: Array, alpha: Array, noise: float, t: int, first: int, folds: int, G: Array
) -> float:
    """Return the sum of squared residuals and latent variances of one fold, held out.

    The fold has the labels first, first + folds, ... below t. With F for it,
        residuals A_FF^-1 alpha_F,    variances diag(A_FF^-1) - noise.
    G : (m, m), scratch.  NaN if A_FF is not positive definite.
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
        total += residual[i] * residual[i]
    for j in range(m):
        # column j of R^-1; (A_FF^-1)_jj is its squared length
        square = 0.0
        for i in range(j, m):
            value = 1.0 if i == j else 0.0
            for k in range(j, i):
                value -= G[i, k] * column[k]
            column[i] = value / G[i, i]
            square += column[i] * column[i]
        total += square - noise
    return total


@jit
def cross_validation(K: Array, y: Array, noise: float, folds: int, out: Array) -> None:
    """Write the expected loss by cross-validation after each label; NaN before `folds` labels.

    K : (T, T).  y : (T,), less the prior mean.  Label i belongs to fold i mod `folds`.
    E[loss] = (residual^2 + variance) / (2 noise) + 1/2 log(2 pi noise), averaged over the labels.
    """
    labels = y.size
    A = np.zeros((labels, labels))
    b, alpha = np.empty(labels), np.empty(labels)
    most = (labels + folds - 1) // folds
    G = np.empty((most, most))
    constant = 0.5 * math.log(2 * math.pi * noise)
    for t in range(labels):
        pivot = grow_inverse(K, noise, t, A, b)
        grow_weights(K[t], y[t], pivot, b, t, alpha)
        out[t] = math.nan
        if t + 1 >= folds:
            total = 0.0
            for first in range(folds):
                total += held_out(A, alpha, noise, t + 1, first, folds, G)
            out[t] = total / (2 * noise * (t + 1)) + constant


@jit
def pac_bayes(K: Array, y: Array, noise: float, kappa: float, out: Array) -> None:
    """Write (t x expected loss on the labels + KL(q || p)) / t after each label.

    K : (T, T).  y : (T,), less the prior mean.  kappa I is added to both covariances of the KL.
    With A = (K + noise I)^-1 and alpha = A y the posterior at the labels has
        y - mu = noise alpha,    Sigma = noise I - noise^2 A = noise K A.
    With B = (K + kappa I)^-1 and c = kappa noise / (kappa + noise), since all of it commutes,
        tr(B (Sigma + kappa I)) = (noise + kappa) tr(B) - noise^2 tr(B A),
        log|Sigma + kappa I| = t log(noise + kappa) + log|K + c I| - log|K + noise I|.
    For kappa = 0: tr = noise tr(A), mu.K^-1 mu = alpha.mu, log|K| - log|Sigma| = -log|noise A|.
    """
    labels = y.size
    A = np.zeros((labels, labels))
    B = np.zeros((labels, labels))
    C = np.zeros((labels, labels))
    b, alpha, mu = np.empty(labels), np.empty(labels), np.empty(labels)
    shift = kappa * noise / (kappa + noise)
    constant = 0.5 * math.log(2 * math.pi * noise)
    log_noise = log_kappa = log_shift = 0.0
    for t in range(labels):
        n = t + 1
        pivot = grow_inverse(K, noise, t, A, b)
        log_noise += math.log(pivot)
        grow_weights(K[t], y[t], pivot, b, t, alpha)
        loss = 0.0
        for i in range(n):
            error = noise * alpha[i]
            mu[i] = y[i] - error
            loss += error * error + noise - noise * noise * A[i, i]
        trace = 0.0
        square = 0.0
        if kappa > 0.0:
            log_kappa += math.log(grow_inverse(K, kappa, t, B, b))
            log_shift += math.log(grow_inverse(K, shift, t, C, b))
            for i in range(n):
                trace += (noise + kappa) * B[i, i]
                for j in range(n):
                    trace -= noise * noise * B[i, j] * A[i, j]
                    square += mu[i] * B[i, j] * mu[j]
            logs = log_kappa - log_shift + log_noise - n * math.log(noise + kappa)
        else:
            for i in range(n):
                trace += noise * A[i, i]
                square += alpha[i] * mu[i]
            logs = log_noise - n * math.log(noise)
        divergence = 0.5 * (trace + square - n + logs)
        out[t] = loss / (2 * noise * n) + constant + divergence / n
