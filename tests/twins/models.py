"""Dense models that solve everything anew."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twins.bound import gaussian_kl, gp_kl, gp_prior_kl

Array = NDArray[np.float64]


class GaussianProcess:
    """Twin of `fastal.GaussianProcess`: keeps the labels and solves dense systems each time.

    `fit_hyperparameters` has no twin: the optimum is checked by its gradient and by peers. What its
    weak prior maximises is `weak_log_posterior`.
    """

    def __init__(
        self,
        lengthscale: float | ArrayLike = 1.0,
        noise: float = 1e-2,
        *,
        amplitude: float = 1.0,
        mean: float = 0.0,
        kernel: str = "rbf",
    ) -> None:
        self.lengthscale = np.asarray(lengthscale, dtype=float)
        self.noise, self.amplitude, self.mean, self.kernel = noise, amplitude, mean, kernel
        self.X: list[Array] = []
        self.y: list[float] = []
        self.noises: list[float] = []

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.y)

    def empty(self) -> GaussianProcess:
        """Return the process without labels."""
        return GaussianProcess(
            self.lengthscale, self.noise, amplitude=self.amplitude, mean=self.mean,
            kernel=self.kernel,
        )  # fmt: skip

    def covariance(self, A: Array, B: Array) -> Array:
        """Prior covariance of two sets of inputs, shapes (m, d) and (n, d)."""
        difference = (A[:, None, :] - B[None, :, :]) / self.lengthscale
        r = np.sqrt((difference**2).sum(axis=-1))
        if self.kernel == "rbf":
            shape = np.exp(-0.5 * r**2)
        elif self.kernel == "matern12":
            shape = np.exp(-r)
        elif self.kernel == "matern32":
            shape = (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r)
        else:
            shape = (1 + math.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-math.sqrt(5) * r)
        return np.asarray(self.amplitude * shape)

    def noisy_covariance(self) -> Array:
        """Covariance of the labels."""
        X = np.array(self.X)
        return self.covariance(X, X) + np.diag(self.noises)

    def predict(self, X: ArrayLike, *, return_var: bool = False, return_cov: bool = False) -> Any:
        """Posterior by two dense solves."""
        T = np.asarray(X, dtype=float)
        T = T[:, None] if T.ndim == 1 else T
        mean, cov = np.full(len(T), self.mean), self.covariance(T, T)
        if self.y:
            cross = self.covariance(T, np.array(self.X))
            A = self.noisy_covariance()
            mean = mean + cross @ np.linalg.solve(A, np.array(self.y) - self.mean)
            cov = cov - cross @ np.linalg.solve(A, cross.T)
        if return_cov:
            return mean, cov
        return (mean, np.diag(cov).copy()) if return_var else mean

    def add(self, x: ArrayLike, y: float, noise: float | None = None) -> float:
        """Bound from the dense posterior, then keep the label."""
        x = np.atleast_1d(np.asarray(x, dtype=float))
        noise = self.noise if noise is None else noise
        mean, var = self.predict(x[None, :], return_var=True)
        self.X.append(x)
        self.y.append(float(y))
        self.noises.append(float(noise))
        return float(gp_kl(mean[0], max(var[0], 0.0), y, noise))

    def add_batch(self, X: ArrayLike, y: ArrayLike, noise: Any = None) -> Array:
        """Add one after the other."""
        targets = np.asarray(y, dtype=float)
        noises = np.broadcast_to(self.noise if noise is None else noise, targets.shape)
        rows = zip(np.asarray(X, dtype=float), targets, noises, strict=True)
        return np.array([self.add(x, float(t), float(w)) for x, t, w in rows])

    def log_marginal_likelihood(self) -> float:
        """Log density of the labels by a dense solve and a determinant."""
        if not self.y:
            return 0.0
        A, residual = self.noisy_covariance(), np.array(self.y) - self.mean
        form = residual @ np.linalg.solve(A, residual)
        log_det = np.linalg.slogdet(A)[1]
        return float(-0.5 * (form + log_det + len(residual) * math.log(2 * math.pi)))

    def prior_kl(self, *, jitter: float = 0.0) -> float:
        """Divergence of the posterior at the labelled inputs from the prior."""
        X = np.array(self.X)
        K = self.covariance(X, X)
        return gp_prior_kl(K, self.y, self.noises, mean=self.mean, jitter=jitter)

    def rewind(self, n: int) -> None:
        """Forget all labels but the first n."""
        del self.X[n:], self.y[n:], self.noises[n:]

    def copy(self) -> GaussianProcess:
        """Return a process of its own with the same labels."""
        new = GaussianProcess(
            self.lengthscale,
            self.noise,
            amplitude=self.amplitude,
            mean=self.mean,
            kernel=self.kernel,
        )
        new.X, new.y, new.noises = list(self.X), list(self.y), list(self.noises)
        return new

    def refresh(self) -> None:
        """Do nothing: there is no factor to refresh."""

    def drift(self) -> float:
        """Return 0: there is no factor that could drift."""
        return 0.0


def weak_log_posterior(
    X: ArrayLike,
    y: ArrayLike,
    lengthscale: float,
    ratio: float,
    *,
    kernel: str = "rbf",
    estimator: str = "weak",
    features: int | None = None,
) -> tuple[float, float, float]:
    """Return what a fit with the weak prior maximises, and the mean and amplitude there.

    Covariance ``a (R + g I)``: the likelihood integrated over the mean (flat) and over a (da / a),
    by the eigenvectors of ``R + g I``, plus the log densities of N(0, 1) at ``log(l / sqrt(d))``
    and of N(-3, 2^2) at ``log(g)`` unless the estimator is "plain".

    Parameters
    ----------
    X, y : array_like, shapes (n, d) and (n,)
        The labels.
    lengthscale, ratio : float
        l and g.
    kernel, estimator : str, optional
        As in `fastal.models.weak_fit`.
    features : int, optional
        The d of ``sqrt(d)``; default: the number of columns that are not constant.

    Returns
    -------
    log_posterior, mean, amplitude : float
    """
    points, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    n = len(labels)
    values, vectors = np.linalg.eigh(
        GaussianProcess(lengthscale, kernel=kernel).covariance(points, points)
    )
    weights = 1.0 / (values + ratio)
    ones, turned = vectors.T @ np.ones(n), vectors.T @ labels
    precision = float(weights @ ones**2)  # 1^T A^-1 1
    mean = float(weights @ (ones * turned)) / precision
    form = float(weights @ (turned - mean * ones) ** 2)
    # integral over the mean: a Gaussian of variance a / precision; over a: an inverse gamma density
    value = (
        0.5 * float(np.log(weights).sum())
        - 0.5 * math.log(precision)
        - 0.5 * (n - 1) * math.log(math.pi * form)
        + math.lgamma(0.5 * (n - 1))
    )
    if estimator == "weak":
        d = features or int((np.ptp(points, axis=0) > 0).sum()) or points.shape[1]
        u, v = math.log(lengthscale / math.sqrt(d)), (math.log(ratio) + 3.0) / 2.0
        value -= 0.5 * (u**2 + v**2) + math.log(2.0 * math.pi * 2.0)
    return value, mean, form / (n - 1)


def _log_likelihood(link: str, z: float) -> tuple[float, float, float]:
    """Return log p, its slope and minus its second derivative, at z = y f (z > -30 for probit)."""
    if link == "logistic":
        p = 1 / (1 + math.exp(-z)) if z > 0 else math.exp(z) / (1 + math.exp(z))
        return -float(np.logaddexp(0.0, -z)), 1 - p, p * (1 - p)
    p = 0.5 * math.erfc(-z / math.sqrt(2))
    ratio = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) / p
    return math.log(p), ratio, ratio * (ratio + z)


class LaplaceClassifier:
    """Twin of `fastal.models.LaplaceClassifier`: finds every mode from nothing, by dense solves.

    The divergence is that of the dense covariances: without `kappa` it needs inputs at which the
    posterior is well-conditioned.
    """

    def __init__(
        self,
        lengthscale: float | ArrayLike = 1.0,
        *,
        amplitude: float = 1.0,
        link: str = "logistic",
        kernel: str = "rbf",
        kappa: float = 0.0,
    ) -> None:
        self.prior = GaussianProcess(lengthscale, amplitude=amplitude, kernel=kernel)
        self.link, self.kappa = link, kappa
        self.X: list[Array] = []
        self.signs: list[float] = []

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.signs)

    def derivatives(self, f: Array) -> tuple[float, Array, Array]:
        """Return log p(y | f), its gradient, and minus the diagonal of its Hessian."""
        signs = np.array(self.signs)
        rows = [_log_likelihood(self.link, float(z)) for z in signs * f]
        values, slopes, weights = (np.array(column) for column in zip(*rows, strict=True))
        return float(values.sum()), signs * slopes, weights

    def mode(self) -> tuple[Array, Array, Array]:
        """Return the covariance K, the mode f = K a, and a, by damped Newton steps from f = 0."""
        X = np.array(self.X)
        K = self.prior.covariance(X, X)
        a = np.zeros(len(K))
        for _ in range(200):
            value, slope, w = self.derivatives(K @ a)
            # a_new = (I + W K)^-1 (W f + slope)
            new = np.linalg.solve(np.eye(len(K)) + w[:, None] * K, w * (K @ a) + slope)
            step = 1.0
            before = value - 0.5 * a @ K @ a
            while step > 1e-9:
                tried = a + step * (new - a)
                after = self.derivatives(K @ tried)[0] - 0.5 * tried @ K @ tried
                if after >= before - 1e-10:
                    break
                step /= 2
            moved = float(np.abs(K @ (tried - a)).max())
            a = tried
            if moved < 1e-10:  # squared by the next step
                break
        return K, K @ a, a

    def latent(self, X: ArrayLike, *, return_var: bool = False, return_cov: bool = False) -> Any:
        """Gaussian posterior of the latent function: K** - K* (I + W K)^-1 W K*^T."""
        T = np.asarray(X, dtype=float)
        T = T[:, None] if T.ndim == 1 else T
        mean, cov = np.zeros(len(T)), self.prior.covariance(T, T)
        if self.signs:
            K, f, a = self.mode()
            w = self.derivatives(f)[2]
            cross = self.prior.covariance(T, np.array(self.X))
            mean = cross @ a
            inner = np.linalg.solve(np.eye(len(K)) + w[:, None] * K, w[:, None] * cross.T)
            cov = cov - cross @ inner
        if return_cov:
            return mean, cov
        return (mean, np.diag(cov).copy()) if return_var else mean

    def add(self, x: ArrayLike, y: float) -> float:
        """Divergence of the dense posteriors at all inputs before and after the label."""
        x = np.atleast_1d(np.asarray(x, dtype=float))
        union = np.array([*self.X, x])
        before = self.latent(union, return_cov=True)
        self.X.append(x)
        self.signs.append(1.0 if y == 1 else -1.0)
        return gaussian_kl(*before, *self.latent(union, return_cov=True), jitter=self.kappa)

    def log_marginal_likelihood(self) -> float:
        """Return ``log p(y | f) - 1/2 f^T K^-1 f - 1/2 log |I + W K|``."""
        if not self.signs:
            return 0.0
        K, f, a = self.mode()
        value, _, w = self.derivatives(f)
        log_det = np.linalg.slogdet(np.eye(len(K)) + w[:, None] * K)[1]
        return float(value - 0.5 * a @ f - 0.5 * log_det)

    def _average(self, function: Any, X: ArrayLike) -> Array:
        """Mean of a function of f over the posterior, by a fine sum over 12 deviations."""
        z = np.linspace(-12, 12, 4801)
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        mean, var = self.latent(X, return_var=True)
        sums = [
            sum(
                function(i, m + math.sqrt(max(v, 0.0)) * u) * d
                for u, d in zip(z, density, strict=True)
            )
            for i, (m, v) in enumerate(zip(mean, var, strict=True))
        ]
        return np.array(sums)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the negative and the positive class."""

        def probability(_: int, f: float) -> float:
            return math.exp(_log_likelihood(self.link, f)[0])

        p = self._average(probability, X)
        return np.column_stack([1 - p, p])

    def expected_loss(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return -E log p(y | f) under the posterior."""
        signs = np.where(np.asarray(y) == 1, 1.0, -1.0)

        def loss(i: int, f: float) -> float:
            return -_log_likelihood(self.link, float(signs[i] * f))[0]

        return self._average(loss, X)
