"""The classifier: one more label against a refit, what the warm start saves, and predictions."""

from time import perf_counter

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from fastal.models import LaplaceClassifier

from ._inside import inside
from ._timing import best

find_mode = inside("find_mode", "fastal._core.laplace")


def data(n, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.where(np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n) > 0, 1, -1)


def labelled(t, link="logistic"):
    """Return a classifier with t labels and room for one more."""
    X, y = data(t + 1)
    model = LaplaceClassifier(1.3, amplitude=4.0, link=link)
    model.add_batch(X, y)
    model.rewind(t)
    return model


def refit(X, y):
    kernel = ConstantKernel(4.0) * RBF(1.3)
    return GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)


class OneLabel:
    """One more label when there are t, with its bound; the peer fits anew."""

    params = (["fastal", "fastal probit", "scikit-learn"], [20, 50, 200])
    param_names = ("implementation", "t")
    # A label cannot be taken back for nothing: each is added to a model of its own.
    number = 1
    warmup_time = 0
    repeat = 30

    def setup(self, implementation, t):
        self.X, self.y = data(t + 1)
        if implementation != "scikit-learn":
            self.model = labelled(t, "probit" if "probit" in implementation else "logistic")

    def time_add(self, implementation, t):
        if implementation == "scikit-learn":
            refit(self.X, self.y)
        else:
            self.model.add(self.X[t], self.y[t])


class OneLabelRatio:
    params = ([50, 200],)
    param_names = ("t",)

    def track_scikit_learn_over_add(self, t):
        """At least 12 at t = 200: a refit against one add."""
        X, y = data(t + 1)
        model = labelled(t)
        models = [model.copy() for _ in range(40)]
        times = []
        for model in models:
            model.latent(X)  # its buffers are in the cache, as in a loop
            begin = perf_counter()
            model.add(X[t], y[t])
            times.append(perf_counter() - begin)
        # one thread each: those of BLAS gain nothing at this size, and wait for a busy machine
        with threadpool_limits(1, "blas"):
            return best(lambda: refit(X, y), rounds=9) / min(times)

    track_scikit_learn_over_add.unit = "ratio"


class WarmStart:
    """Operations of the labels 150 to 200, against searches for the same modes from nothing."""

    def setup(self):
        X, y = data(200)
        model = LaplaceClassifier(1.3, amplitude=4.0)
        model.add_batch(X[:150], y[:150])
        self.warm, self.cold = [], []
        for t in range(150, 200):
            model.add(X[t], y[t])
            self.warm.append(model._work)
            state = model.copy()._state
            state.a[:], state.f[:] = 0.0, 0.0
            _, steps, factors = find_mode(model._link, state, t + 1, False)
            # the factor at the mode is needed in either case
            self.cold.append((steps, factors + 1))

    def track_factorisations_warm(self):
        """At most 1.5 a label."""
        return np.mean(self.warm, axis=0)[1]

    def track_factorisations_cold(self):
        return np.mean(self.cold, axis=0)[1]

    def track_steps_warm(self):
        return np.mean(self.warm, axis=0)[0]

    def track_steps_cold(self):
        return np.mean(self.cold, axis=0)[0]


class Predict:
    """Probabilities of 5,000 inputs given 200 labels; the peer approximates the last integral."""

    params = (["fastal", "fastal probit", "scikit-learn"],)
    param_names = ("implementation",)

    def setup(self, implementation):
        self.T, _ = data(5_000)
        if implementation == "scikit-learn":
            self.model = refit(*data(200))
        else:
            self.model = labelled(200, "probit" if "probit" in implementation else "logistic")
        self.time_predict_proba(implementation)

    def time_predict_proba(self, implementation):
        self.model.predict_proba(self.T)
