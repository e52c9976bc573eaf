"""Slow twins of the compiled functions: same names and arguments, obviously right.

NumPy and the standard library only, nothing from the core: the oracle of the tests, the baseline of
the benchmarks, and a way to verify a surprising stop by hand.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def runs_arrangements(u: int, n_below: int, n_above: int) -> int:
    """Return how many arrangements of zeros and ones have exactly u runs.

    A run pattern of 2k runs splits each kind into k parts, in two orders; 2k + 1 runs give one kind
    k + 1 parts and the other k. There are C(n - 1, k - 1) ways to split n into k parts.

    Parameters
    ----------
    u : int
        Number of runs.
    n_below, n_above : int
        Number of zeros and ones.

    Returns
    -------
    int
        Exact count.

    Examples
    --------
    >>> from fastal import reference
    >>> [reference.runs_arrangements(u, 2, 2) for u in (2, 3, 4)]
    [2, 2, 2]
    """

    def splits(n: int, parts: int) -> int:
        if parts == 0:
            return int(n == 0)
        return math.comb(n - 1, parts - 1) if n >= 1 else 0

    k = u // 2
    if u < 1:
        return 0
    if u % 2 == 0:
        return 2 * splits(n_below, k) * splits(n_above, k)
    return splits(n_below, k + 1) * splits(n_above, k) + splits(n_below, k) * splits(n_above, k + 1)


def runs_pmf(u: int, n_below: int, n_above: int) -> Fraction:
    """Return P(U = u) as an exact fraction.

    Parameters
    ----------
    u : int
        Number of runs.
    n_below, n_above : int
        Number of zeros and ones.

    Returns
    -------
    fractions.Fraction
        Exact probability.
    """
    total = math.comb(n_below + n_above, n_below)
    return Fraction(runs_arrangements(u, n_below, n_above), total)


def runs_cdf(u: int, n_below: int, n_above: int) -> Fraction:
    """Return P(U <= u) as an exact fraction.

    Parameters
    ----------
    u : int
        Number of runs.
    n_below, n_above : int
        Number of zeros and ones.

    Returns
    -------
    fractions.Fraction
        Exact probability.
    """
    total = math.comb(n_below + n_above, n_below)
    return Fraction(sum(runs_arrangements(i, n_below, n_above) for i in range(1, u + 1)), total)


def labels(x: ArrayLike) -> Any:
    """Return True for values at or above the median, False below it.

    Parameters
    ----------
    x : array_like
        Values.

    Returns
    -------
    array of bool
        Side of each value.

    Examples
    --------
    >>> from fastal import reference
    >>> reference.labels([3.0, 1.0, 2.0])
    array([ True, False,  True])
    """
    values = np.asarray(x, dtype=float)
    return values >= np.median(values)


def count_runs(sides: ArrayLike) -> tuple[int, int, int]:
    """Return the number of runs, of False and of True.

    Parameters
    ----------
    sides : array_like of bool
        Side of each value.

    Returns
    -------
    tuple of int
        Runs, zeros, ones.

    Examples
    --------
    >>> from fastal import reference
    >>> reference.count_runs([True, True, False, True])
    (3, 1, 3)
    """
    ones = [bool(side) for side in np.asarray(sides)]
    changes = sum(a != b for a, b in itertools.pairwise(ones))
    return changes + 1, ones.count(False), ones.count(True)


def runs_test(x: ArrayLike, *, alternative: str = "two-sided", method: str = "exact") -> float:
    """Return the p-value of the runs test about the median.

    Parameters
    ----------
    x : array_like
        Values.
    alternative : {"two-sided", "less", "greater"}
        Too few runs, too many, or twice the smaller of both.
    method : {"exact", "normal"}
        Exact fractions, or the normal approximation.

    Returns
    -------
    float
        p-value.

    Examples
    --------
    >>> from fastal import reference
    >>> reference.runs_test([5, 6, 7, 1, 2, 3], alternative="less")
    0.1
    """
    u, n0, n1 = count_runs(labels(x))
    return runs_p_value(u, n0, n1, alternative=alternative, method=method)


def runs_p_value(
    u: int, n_below: int, n_above: int, *, alternative: str = "two-sided", method: str = "exact"
) -> float:
    """Return the p-value of u runs.

    Parameters
    ----------
    u : int
        Number of runs.
    n_below, n_above : int
        Number of zeros and ones.
    alternative : {"two-sided", "less", "greater"}
        Too few runs, too many, or twice the smaller of both.
    method : {"exact", "normal"}
        Exact fractions, or the normal approximation.

    Returns
    -------
    float
        p-value; 1.0 if all values are on one side.
    """
    n = n_below + n_above
    if min(n_below, n_above) == 0 or n == 2:
        return 1.0
    if method == "exact":
        fewer = float(runs_cdf(u, n_below, n_above))
        more = float(1 - runs_cdf(u - 1, n_below, n_above))
    else:
        product = 2 * n_below * n_above
        mean = 1 + product / n
        sd = math.sqrt(product * (product - n) / (n * n * (n - 1)))
        fewer = math.erfc((mean - u) / sd / math.sqrt(2)) / 2
        more = math.erfc((u - mean) / sd / math.sqrt(2)) / 2
    if alternative == "less":
        return fewer
    if alternative == "greater":
        return more
    return min(1.0, 2 * min(fewer, more))


def _kl_one(mean: float, var: float, y: float, noise: float) -> float:
    u = var / noise
    if u < 0.1:
        # u - log(1 + u) = u^2/2 - u^3/3 + u^4/4 - ...
        excess = math.fsum((-1) ** k * u**k / k for k in range(2, 25))
    else:
        excess = u - math.log1p(u)
    return 0.5 * excess + 0.5 * u * (y - mean) ** 2 / (var + noise)


def gp_kl(mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: ArrayLike) -> Any:
    """Twin of `fastal.gp_kl`: the formula, element by element."""
    result = np.vectorize(_kl_one, otypes=[float])(mean, var, y, noise)
    return float(result) if result.ndim == 0 else result


def bound_constant(a: float, b: float) -> float:
    """Twin of `fastal.bound_constant`, by the paper's own formula."""
    return float(2.0 * (np.logaddexp(a, b) - math.log(2.0)) - a - b)


def gaussian_kl(
    mean0: ArrayLike,
    cov0: ArrayLike,
    mean1: ArrayLike,
    cov1: ArrayLike,
    *,
    jitter: float = 0.0,
) -> float:
    """Twin of `fastal.gaussian_kl`: trace, quadratic form and determinants."""
    m0, m1 = np.atleast_1d(mean0).astype(float), np.atleast_1d(mean1).astype(float)
    k = len(m0)
    c0 = np.atleast_2d(cov0) + jitter * np.eye(k)
    c1 = np.atleast_2d(cov1) + jitter * np.eye(k)
    trace = np.trace(np.linalg.solve(c1, c0))
    form = (m1 - m0) @ np.linalg.solve(c1, m1 - m0)
    return float(0.5 * (trace + form - k + np.linalg.slogdet(c1)[1] - np.linalg.slogdet(c0)[1]))


def gp_prior_kl(
    cov: ArrayLike, y: ArrayLike, noise: ArrayLike, *, mean: float = 0.0, jitter: float = 0.0
) -> float:
    """Twin of `fastal.bound.gp_prior_kl`: divergence of the dense posterior from the prior."""
    K, residual = np.asarray(cov, dtype=float), np.asarray(y, dtype=float) - mean
    t = len(residual)
    A = K + np.diag(np.broadcast_to(noise, t))
    posterior = K - K @ np.linalg.solve(A, K)
    shift = K @ np.linalg.solve(A, residual)
    return gaussian_kl(shift, posterior, np.zeros(t), K, jitter=jitter)


def alquier_bound(
    risk: float, kl: float, n: int, loss_range: float, *, delta: float = 0.01
) -> float:
    """Twin of `fastal.bound.alquier_bound`."""
    return risk + kl / n + math.log(1 / delta) / n + loss_range**2 / 2


def mcallester_bound(risk: float, kl: float, n: int, *, delta: float = 0.01) -> float:
    """Twin of `fastal.bound.mcallester_bound`."""
    return risk + math.sqrt((kl + math.log(2) + math.log(n) / 2 - math.log(delta)) / (2 * n))


class GaussianProcess:
    """Twin of `fastal.GaussianProcess`: keeps the labels and solves dense systems each time.

    `fit_hyperparameters` has no twin: the optimum is checked by its gradient and by peers.
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


def expected_loss(gp: GaussianProcess, X: ArrayLike, y: ArrayLike) -> float:
    """Twin of `fastal.criteria.expected_loss`."""
    mean, var = gp.predict(X, return_var=True)
    square = float(np.mean((np.asarray(y, dtype=float) - mean) ** 2 + var))
    return square / (2 * gp.noise) + 0.5 * math.log(2 * math.pi * gp.noise)


def cross_validation_error(gp: GaussianProcess, folds: int = 5) -> float:
    """Twin of `fastal.criteria.cross_validation_error`: a refit without each fold."""
    X, y = np.array(gp.X), np.array(gp.y)
    total = 0.0
    for first in range(folds):
        held = np.arange(len(y)) % folds == first
        rest = gp.empty()
        rest.X, rest.y = list(X[~held]), list(y[~held])
        rest.noises = [gp.noise] * len(rest.y)
        total += expected_loss(rest, X[held], y[held]) * held.sum()
    return float(total / len(y))


def pac_bayes_bound(
    gp: GaussianProcess, loss_range: float, delta: float = 0.01, kappa: float = 0.01
) -> float:
    """Twin of `fastal.criteria.pac_bayes_bound`: a dense KL of posterior and prior."""
    X, y = np.array(gp.X), np.array(gp.y)
    mean, cov = gp.predict(X, return_cov=True)
    prior = gp.covariance(X, X)
    divergence = gaussian_kl(mean, cov, np.full(len(y), gp.mean), prior, jitter=kappa)
    risk = expected_loss(gp, X, y)
    return risk + (divergence - math.log(delta)) / len(y) + loss_range**2 / 2


def _log_likelihood(link: str, z: float) -> tuple[float, float, float]:
    """Return log p, its slope and minus its second derivative, at z = y f (z > -30 for probit)."""
    if link == "logistic":
        p = 1 / (1 + math.exp(-z)) if z > 0 else math.exp(z) / (1 + math.exp(z))
        return -float(np.logaddexp(0.0, -z)), 1 - p, p * (1 - p)
    p = 0.5 * math.erfc(-z / math.sqrt(2))
    ratio = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) / p
    return math.log(p), ratio, ratio * (ratio + z)


class LaplaceClassifier:
    """Twin of `fastal.LaplaceClassifier`: finds every mode from nothing, by dense solves.

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


def select(
    X: ArrayLike,
    y: ArrayLike,
    lengthscale: float,
    noise: float,
    labels: int,
    *,
    first: int = 0,
    amplitude: float = 1.0,
    mean: float = 0.0,
) -> tuple[list[int], list[float]]:
    """Label by maximum variance, with the whole posterior computed anew for every label (rbf).

    Parameters
    ----------
    X, y : array_like
        The pool and its labels.
    lengthscale, noise, amplitude, mean : float
        Parameters of the process.
    labels : int
        How many labels.
    first : int
        The first point.

    Returns
    -------
    tuple of lists
        Points in order, and the bound of each label.
    """
    points = np.asarray(X, dtype=float)
    targets = np.asarray(y, dtype=float)
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    K = amplitude * np.exp(-squares / (2 * lengthscale**2))
    chosen: list[int] = []
    bounds: list[float] = []
    mu, var = np.full(len(K), mean), np.diag(K).copy()
    for t in range(labels):
        # of variances that agree to rounding the lower index wins
        left = [i for i in range(len(K)) if i not in chosen]
        best = max(var[i] for i in left)
        i = next(i for i in left if var[i] >= best * (1 - 1e-12)) if t else first
        bounds.append(float(gp_kl(mu[i], max(var[i], 0.0), targets[i], noise)))
        chosen.append(i)
        A = K[np.ix_(chosen, chosen)] + noise * np.eye(len(chosen))
        weights = np.linalg.solve(A, K[chosen])
        mu = mean + weights.T @ (targets[chosen] - mean)
        var = np.diag(K) - (weights * K[chosen]).sum(axis=0)
    return chosen, bounds


def simulate(
    X: ArrayLike,
    y: ArrayLike,
    pools: ArrayLike,
    lengthscale: float,
    noise: float,
    *,
    alpha: float = 1e-3,
    whole: bool = False,
) -> tuple[list[list[float]], list[int | None]]:
    """Run campaigns over given pools one after the other, the runs test anew after each label.

    Parameters
    ----------
    X, y : array_like
        Inputs, shape (n, d), and labels.
    pools : array_like of int, shape (runs, N)
        Rows of each pool; its first point is labelled first, and gives no bound.
    lengthscale, noise : float
        Parameters of the process (rbf, amplitude 1, mean 0).
    alpha : float
        Level of the runs test.
    whole : bool
        Whether to go on behind a stop.

    Returns
    -------
    tuple of lists
        The bounds of each run, and its number of labels at the stop, or None.
    """
    inputs, targets = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    found: list[list[float]] = []
    stops: list[int | None] = []
    for rows in np.asarray(pools):
        Z, labels = inputs[rows] / lengthscale, targets[rows]
        n = len(rows)
        V: Any = np.empty((n, n))
        mean, var, left = np.zeros(n), np.ones(n), np.ones(n, dtype=bool)
        bounds: list[float] = []
        stop: int | None = None
        i = 0
        for t in range(n):
            if t:
                i = int(np.argmax(np.where(left, var, -np.inf)))
                bounds.append(float(gp_kl(mean[i], max(var[i], 0.0), labels[i], noise)))
            pivot = np.sqrt(max(var[i], 0.0) + noise)
            k = np.exp(-0.5 * ((Z - Z[i]) ** 2).sum(axis=1))
            V[t] = (k - V[:t, i] @ V[:t]) / pivot
            mean = mean + V[t] * ((labels[i] - mean[i]) / pivot)
            var = var - V[t] ** 2
            left[i] = False
            if stop is None and t > 1 and runs_test(bounds, alternative="less") <= alpha:
                stop = t + 1
                if not whole:
                    break
        found.append(bounds)
        stops.append(stop)
    return found, stops


def forecast(
    X: ArrayLike, gp: GaussianProcess, *, labelled: ArrayLike = ()
) -> tuple[list[int], Array, float]:
    """Twin of `fastal.forecast`: everything refitted with each point left out, O(n^6).

    Parameters
    ----------
    X : array_like, shape (n, d)
        The pool.
    gp : reference.GaussianProcess
        The parameters.
    labelled : array_like of int
        Rows labelled already, in order.

    Returns
    -------
    order : list of int
        Rows as maximum variance takes them.
    reduction : array, shape (n,)
        With every labelled point left out, not only some.
    noise_of_final : float
        From the covariance of every two points given the others.
    """
    points = np.asarray(X, dtype=float)
    n = len(points)
    K = gp.covariance(points, points)
    given = [int(i) for i in np.asarray(labelled)]

    def posterior(labels: list[int], at: list[int]) -> Array:
        A = K[np.ix_(labels, labels)] + gp.noise * np.eye(len(labels))
        cross = K[np.ix_(labels, at)]
        return np.asarray(K[np.ix_(at, at)] - cross.T @ np.linalg.solve(A, cross))

    def selected(first: list[int], candidates: list[int]) -> list[int]:
        order, left = list(first), [i for i in candidates if i not in first]
        while left:
            var = [float(posterior(order, [i])[0, 0]) for i in left]
            # of variances that agree to rounding the earlier candidate wins
            best = next(k for k, v in enumerate(var) if v >= max(var) * (1 - 1e-12))
            order.append(left.pop(best))
        return order

    order = selected(given, list(range(n)))
    reduction = np.zeros(n)
    for i in range(n):
        without = selected([j for j in given if j != i], [j for j in order if j != i])
        loo = posterior(without, [i])[0, 0]
        for t in range(1, n + 1):
            reduction[t - 1] += (posterior(without[:t], [i])[0, 0] - loo) / n
    squares = [
        posterior([k for k in range(n) if k not in pair], list(pair))[0, 1] ** 2
        for pair in itertools.combinations(range(n), 2)
    ]
    return order, reduction, math.sqrt(2 * sum(squares) / len(squares))


def forecast_loop(
    X: ArrayLike, gp: GaussianProcess, *, labelled: ArrayLike = (), samples: int = 32
) -> tuple[list[int], Array, float]:
    """Do what `fastal.forecast` does by plain loops, one matrix-vector product a label.

    Parameters
    ----------
    X, gp, labelled
        As in `forecast`.
    samples : int
        How many labelled points are left out; their reruns begin at their own step.

    Returns
    -------
    order, reduction, noise_of_final
        As in `forecast`.
    """
    points = np.asarray(X, dtype=float)
    n = len(points)
    K = gp.covariance(points, points)
    given = [int(i) for i in np.asarray(labelled)]

    def roll(order: list[int], V: Array, var: Array, first: list[int], barred: int) -> Array:
        """Go on from `order`, with `first` next; return the variances after each label."""
        history = [var]
        left = np.ones(n, dtype=bool)
        left[[*order, *([] if barred < 0 else [barred])]] = False
        for t in range(len(order), n - (barred >= 0)):
            free = np.where(left, var, -np.inf)
            i = first.pop(0) if first else int(np.argmax(free))
            V[t] = (K[i] - V[:t, i] @ V[:t]) / math.sqrt(max(var[i], 0.0) + gp.noise)
            var = var - V[t] ** 2
            left[i] = False
            order.append(i)
            history.append(var)
        return np.array(history)

    order: list[int] = []
    V: Array = np.empty((n, n))
    variances = roll(order, V, np.diag(K).copy(), list(given), -1)
    P = np.linalg.inv(K + gp.noise * np.eye(n))
    diagonal = np.diag(P).copy()
    loo = 1 / diagonal - gp.noise
    number = min(samples, n)
    steps = [k * n // number for k in range(number)]
    excess: dict[int, Array] = {}  # of the points left out, after j, j + 1, ... labels
    for j in steps:
        i, fixed = order[j], given[j + 1 :]
        again = V.copy()
        if j == 0 and not fixed:
            fixed = [order[1]]  # all variances are equal
        excess[j] = roll(order[:j], again, variances[j], fixed, i)[:, i] - loo[i]
    reduction = np.empty(n)
    for t in range(1, n + 1):
        rest = order[t:]
        labelled_part = np.mean([excess[j][min(t, n - 1) - j] for j in steps if j < t])
        reduction[t - 1] = ((variances[t] - loo)[rest].sum() + t * labelled_part) / n
    C = P / (np.outer(diagonal, diagonal) - P**2 + np.diag(np.full(n, np.inf)))
    return order, reduction, math.sqrt(2 * (C**2).sum() / (n * (n - 1)))
