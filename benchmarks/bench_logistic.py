"""Many classes: one more label with its bound, against refits of all labels."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from fastal.models.logistic import BayesianLogistic

from ._timing import best


def data(n, d, k):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    F = 3.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))
    return X, F.argmax(axis=1)


def labelled(t, d, k):
    """Return a model with t labels, its kernels compiled."""
    X, y = data(t + 1, d, k)
    model = BayesianLogistic(d, k)
    model.add_batch(X[:t], y[:t])
    model.copy().add(X[t], y[t])
    return model


def dense_laplace(X, y, k, prior=1.0):
    """Return mode and covariance of all weights from nothing: scikit-learn and one inverse."""
    peer = LogisticRegression(C=prior, fit_intercept=False, tol=1e-8, max_iter=500).fit(X, y)
    P = peer.predict_proba(X)
    d = X.shape[1]
    H = np.eye(k * d) / prior
    for a in range(k):
        for b in range(k):
            w = P[:, a] * ((a == b) - P[:, b])
            H[a * d : (a + 1) * d, b * d : (b + 1) * d] += (X * w[:, None]).T @ X
    return peer.coef_, np.linalg.inv(H)


class OneLabel:
    """One more label with its bound when there are 300; the peer fits anew."""

    params = (["fastal", "dense refit"], [(4, 3), (64, 10)])
    param_names = ("implementation", "features and classes")
    # A label cannot be taken back for nothing: each is added to a model of its own.
    number = 1
    warmup_time = 0
    repeat = 20
    timeout = 300

    def setup(self, implementation, size):
        d, k = size
        self.X, self.y = data(301, d, k)
        self.k = k
        if implementation == "fastal":
            self.model = labelled(300, d, k)

    def time_add(self, implementation, size):
        if implementation == "fastal":
            self.model.add(self.X[300], self.y[300])
        else:
            dense_laplace(self.X, self.y, self.k)


class OneLabelRatio:
    params = ([(4, 3), (64, 10)],)
    param_names = ("features and classes",)
    timeout = 300

    def track_dense_refit_over_add(self, size):
        """How many times longer a refit from nothing takes, one thread of BLAS each."""
        d, k = size
        X, y = data(301, d, k)
        model = labelled(300, d, k)
        with threadpool_limits(1, "blas"):
            peer = best(lambda: dense_laplace(X, y, k), rounds=5)
            return peer / best(lambda: model.copy().add(X[300], y[300]), rounds=15)

    track_dense_refit_over_add.unit = "ratio"


class ManyLabels:
    """Milliseconds per label over the labels 100 to 300; at most 5 with 64 features, 10 classes."""

    params = ([(4, 3), (64, 10)],)
    param_names = ("features and classes",)
    timeout = 300

    def track_milliseconds_per_label(self, size):
        d, k = size
        X, y = data(300, d, k)
        model = labelled(100, d, k)
        return 1000.0 * best(lambda: model.copy().add_batch(X[100:], y[100:]), rounds=3) / 200

    track_milliseconds_per_label.unit = "ms"
