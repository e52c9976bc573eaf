"""Multinomial logistic regression by the Laplace approximation, growing label by label.

Inputs z are features times the prior's standard deviation, so that the prior of the weights is
N(0, I). The k weight vectors sum to zero at every mode, and the labels say nothing about their sum:
only the k - 1 contrasts V, (m, d), are kept, m = k - 1, with logits f = E V z, where the columns of
E, (k, m), are an orthonormal basis of the contrasts. The precision of vec V, row by row, is
    H = I + sum_i K_i (x) z_i z_i^T,    K_i = E^T (diag p_i - p_i p_i^T) E,
and S = H^-1. Symmetric products with S take the place of solves with a factor.

Status of a kernel: 0 is fine.
"""

from __future__ import annotations

import math

import numpy as np

from fastal._core.jit import jit
from fastal._types import Array, Ints

# Statuses of `climb`.
FOUND, LOST, SLOW = 0, 1, 2

# The objective may fall by this much, against 1 + |objective|, before a step is halved: rounding.
SLACK = 1e-12

# A step below this that no longer shrinks has met the rounding of the gradient.
SMALL = 1e-6

MOST_STEPS = 500

MOST_HALVINGS = 60

# A probability that is smaller than this counts as this large where its movement is measured.
FLOOR = 0.1


def contrasts(classes: int) -> Array:
    """Return E, (k, k - 1): orthonormal columns that sum to zero."""
    E = np.zeros((classes, classes - 1))
    for a in range(classes - 1):
        E[: a + 1, a] = 1.0
        E[a + 1, a] = -(a + 1.0)
        E[:, a] /= math.sqrt((a + 1.0) * (a + 2.0))
    return E


@jit
def softmax_row(f: Array, p: Array) -> float:
    """Write exp(f_c) / sum to p; return the logarithm of the sum. Both (k,)."""
    top = f[0]
    for c in range(1, f.size):
        top = max(top, f[c])
    total = 0.0
    for c in range(f.size):
        p[c] = math.exp(f[c] - top)
        total += p[c]
    for c in range(f.size):
        p[c] /= total
    return top + math.log(total)


@jit
def logits(Z: Array, V: Array, E: Array) -> Array:
    """Return f = E V z of each input, (n, k); Z : (n, d), V : (m, d)."""
    return np.dot(np.dot(Z, V.T), E.T)


@jit
def evaluate(Z: Array, y: Ints, V: Array, E: Array, P: Array) -> float:
    """Write the probabilities of the classes, (n, k); return the log posterior, up to a constant.

    psi = sum_i log p(y_i | V) - 1/2 |V|^2
    """
    F = logits(Z, V, E)
    total = -0.5 * np.sum(V * V)
    for i in range(y.size):
        total += F[i, y[i]] - softmax_row(F[i], P[i])
    return total


@jit
def gradient(Z: Array, y: Ints, V: Array, E: Array, P: Array) -> Array:
    """Return the gradient of the log posterior, (m, d), where the probabilities are P, (n, k)."""
    # sum_i E^T (e_y - p) z^T - V
    R = np.dot(P, E)
    for i in range(y.size):
        for a in range(R.shape[1]):
            R[i, a] = E[y[i], a] - R[i, a]
    return np.dot(R.T, Z) - V


@jit
def curvature(p: Array, E: Array) -> Array:
    """Return K = E^T (diag p - p p^T) E, (m, m); p : (k,)."""
    m = E.shape[1]
    K = np.zeros((m, m))
    for a in range(m):
        # centred first: the variance of a contrast does not cancel where one class is certain
        mean = 0.0
        for c in range(p.size):
            mean += p[c] * E[c, a]
        for b in range(a, m):
            total = 0.0
            for c in range(p.size):
                total += p[c] * (E[c, a] - mean) * E[c, b]
            K[a, b] = total
            K[b, a] = total
    return K


@jit
def precision(Z: Array, P: Array, E: Array, H: Array) -> None:
    """Write H = I + sum_i K_i (x) z_i z_i^T, (m d, m d), both triangles.

    Z : (n, d), P : (n, k), only read.
    """
    n, d = Z.shape
    m = E.shape[1]
    W = np.empty((m * m, n))
    for i in range(n):
        K = curvature(P[i], E)
        for a in range(m):
            for b in range(a, m):
                W[a * m + b, i] = K[a, b]
    weighted = np.empty((n, d))
    for a in range(m):
        for b in range(a, m):
            w = W[a * m + b]
            for i in range(n):
                for j in range(d):
                    weighted[i, j] = w[i] * Z[i, j]
            block = np.dot(Z.T, weighted)
            for j in range(d):
                for e in range(d):
                    H[a * d + j, b * d + e] = block[j, e]
                    H[b * d + e, a * d + j] = block[j, e]
    for r in range(m * d):
        H[r, r] += 1.0


@jit
def mirror(S: Array) -> None:
    """Copy what is below the diagonal above it."""
    for r in range(S.shape[0]):
        for c in range(r):
            S[c, r] = S[r, c]


@jit
def variance(p: Array, f: Array) -> float:
    """Return the variance of the values f under the probabilities p; both (k,)."""
    mean = 0.0
    for c in range(f.size):
        mean += p[c] * f[c]
    total = 0.0
    for c in range(f.size):
        total += p[c] * (f[c] - mean) ** 2
    return total


@jit
def spread(Z: Array, change: Array, E: Array, P: Array) -> float:
    """Return sum_i Var_{p_i}(E A z_i), for A = `change`, (m, d): vec A^T (H - I) vec A."""
    F = logits(Z, change, E)
    total = 0.0
    for i in range(F.shape[0]):
        total += variance(P[i], F[i])
    return total


@jit
def climb(
    Z: Array, y: Ints, V: Array, E: Array, S: Array, P: Array, goal: float, slow: float
) -> tuple[int, int]:
    """Climb from V to the mode by conjugate gradients; return a status and the number of steps.

    The gradient times S is Newton's step where S is the inverse of the precision at V; where it is
    near that, conjugate directions make up for it. V is overwritten; P, (n, k), has the
    probabilities at it.  S : (m d, m d).
    What is left to the mode at the end, in posterior standard deviations, is about `goal`. SLOW:
    steps shrink by less than a factor `slow`, or had to be halved; an S of this place does better.
    """
    m, d = V.shape
    before = math.inf
    direction, g_before = np.zeros((m, d)), np.zeros((m, d))
    value = evaluate(Z, y, V, E, P)
    for steps in range(1, MOST_STEPS + 1):
        g = gradient(Z, y, V, E, P)
        step = np.dot(S, g.ravel()).reshape((m, d))
        # the distance to the mode, in posterior standard deviations
        size = math.sqrt(max(np.sum(g * step), 0.0))
        if not (size < math.inf):
            return LOST, steps
        if size <= goal:
            return FOUND, steps
        # Polak and Ribiere
        turn = 0.0 if steps == 1 else max(np.sum((g - g_before) * step) / before**2, 0.0)
        direction = step + turn * direction
        g_before = g
        # the length to the maximum of the quadratic approximation at V
        share = np.sum(g * direction)
        share /= np.sum(direction * direction) + spread(Z, direction, E, P)
        whole = share
        lowest = value - SLACK * (1.0 + abs(value))
        good = False
        for _ in range(MOST_HALVINGS):
            tried = V + share * direction
            reached = evaluate(Z, y, tried, E, P)
            if reached >= lowest:
                good = True
                break
            share *= 0.5
        if not good:
            evaluate(Z, y, V, E, P)
            return LOST, steps
        V[:] = tried
        value = reached
        rate = 1.0 if steps == 1 else size / before
        before = size
        # what is left shrinks as the steps do
        if steps > 1 and (rate * size <= goal or (size <= SMALL and rate > 0.5)):
            return FOUND, steps
        if share < whole or (steps > 1 and rate > slow):
            return SLOW, steps
    return LOST, MOST_STEPS


@jit
def seen_from(S: Array, z: Array, m: int) -> tuple[Array, Array]:
    """Return B, (m, m d), rows S (e_a (x) z), and C, (m, m), the covariance of the contrasts at z.

    S : (m d, m d).  z : (d,).
    """
    d = z.size
    B = np.empty((m, m * d))
    for a in range(m):
        # S is symmetric: a combination of its rows
        B[a] = np.dot(z, S[a * d : (a + 1) * d])
    C = np.dot(B.reshape((m * m, d)), z).reshape((m, m))
    return B, 0.5 * (C + C.T)


@jit
def own_step(C: Array, h: Array, label: int, E: Array, p: Array) -> tuple[int, Array]:
    """Find the mode for one label alone; return a status and u, (m,): the contrasts move by C u.

    h : (m,), contrasts before.  p : (k,), the probabilities at the mode, written.
    u = E^T (e_y - p(h + C u)), by damped Newton steps: (I + K C) du = E^T (e_y - p) - u.
    """
    m = h.size
    u = np.zeros(m)
    f = np.dot(E, h)
    value = f[label] - softmax_row(f, p)
    for _ in range(MOST_HALVINGS):
        rest = E[label] - np.dot(p, E) - u
        A = np.dot(curvature(p, E), C) + np.eye(m)
        if not np.all(np.isfinite(A)):
            return LOST, u
        du = np.linalg.solve(A, rest)
        share = 1.0
        good = False
        for _ in range(MOST_HALVINGS):
            tried = u + share * du
            shift = np.dot(C, tried)
            f = np.dot(E, h + shift)
            reached = f[label] - softmax_row(f, p) - 0.5 * np.dot(tried, shift)
            if reached >= value - SLACK * (1.0 + abs(value)):
                good = True
                break
            share *= 0.5
        if not good:
            return LOST, u
        u = tried
        value = reached
        if np.dot(du, np.dot(C, du)) <= 1e-16:
            return FOUND, u
    return FOUND, u  # a place to climb on from, if not the very mode


@jit
def middle(K: Array, C: Array) -> tuple[Array, float, float]:
    """Return M = (I + K C)^-1 K, symmetric, and the trace of K C minus log |I + K C|; and the log.

    With one label more, S becomes S - B^T M B.
    """
    A = np.dot(K, C)
    trace = np.trace(A)
    A += np.eye(K.shape[0])
    M = np.linalg.solve(A, K)
    grown = np.linalg.slogdet(A)[1]
    return 0.5 * (M + M.T), trace - grown, grown


@jit
def lower_covariance(S: Array, B: Array, M: Array) -> Array:
    """Return S - B^T M B, symmetric; S is only read."""
    new = np.dot(B.T, np.dot(M, B))
    D = S.shape[0]
    for r in range(D):
        for c in range(r + 1):
            x = S[r, c] - 0.5 * (new[r, c] + new[c, r])
            new[r, c] = x
            new[c, r] = x
    return new


@jit
def spread_change(Z: Array, change: Array, E: Array, P0: Array, P1: Array) -> float:
    """Return by how much `spread` grows from P0 to P1."""
    F = logits(Z, change, E)
    total = 0.0
    for i in range(F.shape[0]):
        total += variance(P1[i], F[i]) - variance(P0[i], F[i])
    return total


@jit
def divergence(
    Z: Array, E: Array, change: Array, P0: Array, P1: Array, B: Array, C: Array
) -> tuple[int, float]:
    """Return a status and KL(q_n || q_{n+1}), without a term of the second order.

    Z : (n + 1, d), the new input last.  change : (m, d), by which the mode moved.  P0, P1 :
    (n + 1, k), probabilities at the modes before and after.  B, C : `seen_from` the new input,
    with S of the n labels.
    With H1 = H0 + Z_new K Z_new^T + dH, where dH is what the old labels' curvatures changed by:
    2 KL = tr K C - log |I + K C| + change^T H1 change + tr dH (S0 - S1') + O(dH^2),
    S1' = S0 - B^T M B. What is left out is tr dH S1' - log |I + S1' dH| >= 0.
    """
    n, m = Z.shape[0] - 1, E.shape[1]
    K = curvature(P1[n], E)
    if not (np.all(np.isfinite(C)) and np.all(np.isfinite(K))):
        return LOST, math.nan
    M, own, _ = middle(K, C)
    total = max(own, 0.0) + np.sum(change * change) + spread(Z, change, E, P1)
    # tr dH B^T M B, from the eigenvectors of M
    values, vectors = np.linalg.eigh(M)
    turned = np.dot(vectors.T.copy(), B)
    old = Z[:n]
    for a in range(m):
        if values[a] > 0.0:
            direction = turned[a].reshape(change.shape)
            total += values[a] * spread_change(old, direction, E, P0[:n], P1[:n])
    return FOUND, 0.5 * max(total, 0.0)


@jit
def moved(P: Array, Q: Array) -> Array:
    """Return how far the probabilities of each label are from their reference, (n,).

    The largest difference of a class, as a share of the larger one of the two.
    """
    out = np.zeros(P.shape[0])
    for i in range(P.shape[0]):
        for c in range(P.shape[1]):
            share = abs(P[i, c] - Q[i, c]) / max(P[i, c], Q[i, c], FLOOR)
            out[i] = max(out[i], share)
    return out


@jit
def change_curvatures(S: Array, Z: Array, P: Array, Q: Array, E: Array) -> tuple[int, Array]:
    """Return a status and the covariance after the curvatures of some labels have changed.

    S : (m d, m d), only read.  Z : (b, d), their inputs.  P, Q : (b, k), their probabilities now,
    and those at which S has their curvature; Q of zeros: it has none.
    (S^-1 + Z dK Z^T)^-1 = S - B^T (I + dK C)^-1 dK B.
    """
    b, d = Z.shape
    m = E.shape[1]
    r = b * m
    B, dK = np.empty((r, m * d)), np.zeros((r, r))
    for i in range(b):
        at = i * m
        for a in range(m):
            B[at + a] = np.dot(Z[i], S[a * d : (a + 1) * d])
        dK[at : at + m, at : at + m] = curvature(P[i], E) - curvature(Q[i], E)
    C = np.empty((r, r))
    for j in range(b):
        C[:, j * m : (j + 1) * m] = np.dot(B.reshape((r * m, d)), Z[j]).reshape((r, m))
    A = np.empty((r, r))
    for i in range(b):
        at = i * m
        A[at : at + m] = np.dot(dK[at : at + m, at : at + m].copy(), C[at : at + m])
    for i in range(r):
        A[i, i] += 1.0
    if not np.all(np.isfinite(A)):
        return LOST, S
    M = np.linalg.solve(A, dK)
    return FOUND, lower_covariance(S, B, 0.5 * (M + M.T))


@jit
def contrast_covariances(Z: Array, S: Array, m: int, G: Array) -> None:
    """Write the covariances of the contrasts at each input, G : (n, m, m); Z : (n, d)."""
    n, d = Z.shape
    for a in range(m):
        for b in range(a, m):
            block = S[a * d : (a + 1) * d, b * d : (b + 1) * d].copy()
            half = np.dot(Z, block)
            for i in range(n):
                total = 0.0
                for j in range(d):
                    total += half[i, j] * Z[i, j]
                G[i, a, b] = total
                G[i, b, a] = total


@jit
def averaged(F: Array, G: Array, E: Array, P: Array) -> None:
    """Write the class probabilities averaged over Gaussian logits, P : (n, k).

    F : (n, k), means of the logits.  G : (n, m, m), covariances of the contrasts.
    1 / p_c = sum_j exp((mu_j - mu_c) / sqrt(1 + pi v_cj / 8)), with v_cj the variance of f_c - f_j,
    and then normalised: MacKay's approximation of a logistic average, pair by pair.
    """
    n, k = F.shape
    m = k - 1
    half = np.empty((k, m))
    cov = np.empty((k, k))
    for i in range(n):
        for c in range(k):
            for b in range(m):
                total = 0.0
                for a in range(m):
                    total += E[c, a] * G[i, a, b]
                half[c, b] = total
        for c in range(k):
            for j in range(c + 1):
                total = 0.0
                for b in range(m):
                    total += half[c, b] * E[j, b]
                cov[c, j] = total
                cov[j, c] = total
        whole = 0.0
        for c in range(k):
            total = 0.0
            for j in range(k):
                v = max(cov[c, c] + cov[j, j] - 2.0 * cov[c, j], 0.0)
                total += math.exp(
                    min((F[i, j] - F[i, c]) / math.sqrt(1.0 + 0.125 * math.pi * v), 700.0)
                )
            P[i, c] = 1.0 / total
            whole += P[i, c]
        for c in range(k):
            P[i, c] /= whole
