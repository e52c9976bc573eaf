"""Dense twin of a campaign over a pool: one Cholesky factor of everything, and nothing of fastal.

L L^T = K(labels, labels) + noise,  V = L^-1 K(labels, pool),  z = L^-1 (y - mean),
s_i = k(x_i, x_i) - V_i.V_i for each point of the pool; the formulas of the paper for the bounds.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist


def covariance(kernel, amplitude, A, B):
    r = cdist(A, B)
    if kernel == "rbf":
        return amplitude * np.exp(-(r**2) / 2)
    s = {"matern12": 1.0, "matern32": 3.0, "matern52": 5.0}[kernel] ** 0.5 * r
    p = {"matern12": 1.0, "matern32": 1 + s, "matern52": 1 + s + s**2 / 3}[kernel]
    return amplitude * p * np.exp(-s)


class DenseTwin:
    def __init__(self, X, *, lengthscale, noise, amplitude, mean, kernel):
        self.Z = np.asarray(X, dtype=float) / lengthscale
        self.noise, self.amplitude, self.mean, self.kernel = noise, amplitude, mean, kernel
        self.rows = np.empty(0, dtype=int)
        self.V = np.empty((0, len(self.Z)))
        self.z, self.u, self.diagonal = np.empty(0), np.empty(0), np.empty(0)
        self.enlarged = np.empty(0)
        self.var = np.full(len(self.Z), float(amplitude))

    def block(self, rows, noises):
        """Return what more labels append: their triangle of L, and their rows of V."""
        K = covariance(self.kernel, self.amplitude, self.Z[rows], self.Z)
        L0 = self.V[:, rows].T
        L = cholesky(K[:, rows] - L0 @ L0.T + np.diag(noises), lower=True)
        return L, solve_triangular(L, K - L0 @ self.V, lower=True)

    def variances(self, V):
        """Return the variances of the pool before each label of a block, one row per label."""
        return self.var - np.cumsum(np.vstack((np.zeros(V.shape[1]), V[:-1] ** 2)), axis=0)

    def take(self, rows, y, noises):
        """Take labels in order."""
        L, V = self.block(rows, noises)
        before = np.diag(L) ** 2 - noises
        z = solve_triangular(L, y - self.mean - self.V[:, rows].T @ self.z, lower=True)
        self.u = np.r_[self.u, np.maximum(before, 0.0) / noises]
        self.diagonal = np.r_[self.diagonal, np.diag(L)]
        self.rows, self.z = np.r_[self.rows, rows], np.r_[self.z, z]
        self.V, self.var = np.vstack((self.V, V)), self.var - (V**2).sum(axis=0)

    def weights(self):
        """Return the sum of the weights that each label's prediction gave to the labels before it."""
        if len(self.enlarged) == len(self.rows):
            return self.enlarged
        L = np.tril(self.V[:, self.rows].T, -1) + np.diag(self.diagonal)
        inverse = solve_triangular(L, np.eye(len(L)), lower=True)  # row t: (-weights, 1) / L_tt
        self.enlarged = np.abs(inverse).sum(axis=1) * self.diagonal - 1
        return self.enlarged

    @property
    def bounds(self):
        u = self.u
        series = u**2 / 2 - u**3 / 3 + u**4 / 4 - u**5 / 5
        return 0.5 * (np.where(u < 1e-3, series, u - np.log1p(u)) + u * self.z**2)
