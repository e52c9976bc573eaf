"""The posterior against 50 digits; masses are in bench_runs, the bound is in bench_bound."""

import mpmath

from fastal import GaussianProcess

from .bench_gp import data

SCALE, NOISE = 1.3, 0.01


def _exact_posterior(X, y, x):
    """Return mean and variance of the latent function at x, from a dense solve."""

    def k(a, b):
        squares = ((p - q) ** 2 for p, q in zip(a, b, strict=True))
        return mpmath.exp(-sum(squares) / (2 * mpmath.mpf(SCALE) ** 2))

    points = [[mpmath.mpf(float(v)) for v in row] for row in X]
    new = [mpmath.mpf(float(v)) for v in x]
    K = mpmath.matrix([[k(a, b) for b in points] for a in points])
    K += mpmath.mpf(NOISE) * mpmath.eye(len(points))
    cross = mpmath.matrix([k(a, new) for a in points])
    weights = mpmath.lu_solve(K, cross)
    mean = sum(w * mpmath.mpf(float(label)) for w, label in zip(weights, y, strict=True))
    return mean, 1 - sum(w * c for w, c in zip(weights, cross, strict=True))


class Posterior:
    """Labels added one by one, then five other points."""

    params = ([10, 60],)
    param_names = ("labels",)
    timeout = 300

    def setup(self, labels):
        X, y = data(labels + 5)
        gp = GaussianProcess(SCALE, NOISE)
        for x, label in zip(X[:labels], y[:labels], strict=True):
            gp.add(x, label)
        self.found = gp.predict(X[labels:], return_var=True)
        with mpmath.workdps(50):
            self.exact = [_exact_posterior(X[:labels], y[:labels], x) for x in X[labels:]]

    def _worst(self, which):
        with mpmath.workdps(50):
            return max(
                float(abs(mpmath.mpf(float(value)) / pair[which] - 1))
                for value, pair in zip(self.found[which], self.exact, strict=True)
            )

    def track_worst_relative_error_of_the_mean(self, labels):
        """At most 1e-12."""
        return self._worst(0)

    track_worst_relative_error_of_the_mean.unit = "relative error"

    def track_worst_relative_error_of_the_variance(self, labels):
        """At most 1e-12."""
        return self._worst(1)

    track_worst_relative_error_of_the_variance.unit = "relative error"
