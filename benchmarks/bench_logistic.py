"""Many classes: one more label with its bound, against refits of all labels."""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from ._inside import inside
from ._timing import best

BayesianLogistic = inside("BayesianLogistic", "fastal")  # since 0.2


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


def processor_time(call):
    """Return the processor's seconds of a call, in which others of a busy machine do not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


class Digits:
    """The first 300 digits of scikit-learn in random order: 64 features, 10 classes."""

    labels = 300
    timeout = 300

    def setup(self):
        X, y = load_digits(return_X_y=True)
        rows = np.random.default_rng(0).permutation(len(X))[: self.labels]
        self.X, self.y = X[rows] / 16.0, y[rows]

    def _per_label(self):
        """Return the processor's seconds of each label of a new model."""
        model = BayesianLogistic(64, 10)
        return [
            processor_time(lambda i=i: model.add(self.X[i], self.y[i])) for i in range(self.labels)
        ]

    def track_median_milliseconds_per_label(self):
        """Processor time of a label with its bound, the median of all; at most 5."""
        with threadpool_limits(1, "blas"):
            self._per_label()  # compiled
            return 1000.0 * float(np.median(self._per_label()))

    track_median_milliseconds_per_label.unit = "ms"

    def track_refit_over_label(self):
        """How many times longer scikit-learn's refit takes at the same labels, without any bound.

        The median over the labels 20, 40, ..., 300 of both, in one run, one thread of BLAS each.
        """
        some = range(19, self.labels, 20)
        with threadpool_limits(1, "blas"):
            self._per_label()  # compiled
            own = self._per_label()
            peer = [
                processor_time(
                    lambda i=i: LogisticRegression(fit_intercept=False, max_iter=500).fit(
                        self.X[: i + 1], self.y[: i + 1]
                    )
                )
                for i in some
            ]
        return float(np.median(peer) / np.median([own[i] for i in some]))

    track_refit_over_label.unit = "ratio"
