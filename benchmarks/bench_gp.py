"""The Gaussian process: one label, many labels, the solve within, predictions, and the fit."""

import math
import warnings
from time import perf_counter

import numpy as np
import twins
from scipy.linalg.blas import dgemv, dtrsv
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

from fastal import GaussianProcess, datasets

from ._gpytorch import LastLabel
from ._inside import inside
from ._timing import best, ratio

RBF_KIND = inside("RBF", "fastal._core.covariance")
weak_fit = inside("weak_fit", "fastal.models.weak")
new_panels, solve_panels, write_row = (
    inside(name, "fastal._core.panels") for name in ("new_panels", "solve_panels", "write_row")
)


def data(n, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


class OneLabel:
    """One more label when there are t: the bound needs the posterior before it.

    A peer takes the label before it and predicts the input of this one, with its variance:
    scikit-learn by a new fit, GPyTorch and BoTorch as `LastLabel` says.
    """

    params = (
        ["fastal", "scikit-learn", "gpytorch", "gpytorch fantasy", "botorch", "reference"],
        [10, 100, 1_000, 2_000],
    )
    param_names = ("implementation", "t")

    def setup(self, implementation, t):
        if implementation == "reference" and t > 100:
            raise NotImplementedError("too slow")
        self.X, self.y = data(t + 1)
        self.x, self.label = self.X[t], float(self.y[t])
        if implementation in ("fastal", "reference"):
            make = GaussianProcess if implementation == "fastal" else twins.GaussianProcess
            self.gp = make(1.3, 0.01)
            self.gp.add_batch(self.X[:t], self.y[:t])
            self.gp.add(self.x, self.label)
            self.gp.rewind(t)
            return
        if implementation == "scikit-learn":
            self.predict = self._refit
        else:
            last = LastLabel(implementation, self.X[:t], self.y[:t], 1.3, 0.01)
            self.predict = lambda: last.add_and_predict(self.x)
        self._compare(t)

    def _refit(self):
        peer = GaussianProcessRegressor(RBF(1.3), alpha=0.01, optimizer=None)
        mean, deviation = peer.fit(self.X[:-1], self.y[:-1]).predict(self.X[-1:], return_std=True)
        return mean[0], deviation[0] ** 2

    def _compare(self, t):
        """A peer that is fast because it computes something else is none."""
        own = GaussianProcess(1.3, 0.01)
        own.add_batch(self.X[:t], self.y[:t])
        mean, var = own.predict(self.X[t:], return_var=True)
        np.testing.assert_allclose(self.predict(), (mean[0], var[0]), rtol=1e-6)

    def time_add(self, implementation, t):
        if implementation in ("fastal", "reference"):
            # The timed body rewinds itself: asv does not repeat setup during warm-up.
            self.gp.add(self.x, self.label)
            self.gp.rewind(t)
        else:
            self.predict()


class OneLabelRatio:
    params = (["scikit-learn", "gpytorch", "gpytorch fantasy", "botorch"], [100, 1_000])
    param_names = ("peer", "t")

    def setup(self, peer, t):
        self.ours, self.peer = OneLabel(), OneLabel()
        self.ours.setup("fastal", t)
        self.peer.setup(peer, t)

    def track_peer_over_add(self, peer, t):
        """At least 400 at t = 1,000 with scikit-learn: refit and predict of one point."""
        # one after the other: a refit between two adds would empty the caches of the factor
        slow = best(lambda: self.peer.time_add(peer, t), rounds=5)
        return slow / best(lambda: self.ours.time_add("fastal", t))

    track_peer_over_add.unit = "ratio"


class OneLabelShare:
    """One more label against dgemv of a matrix of as many numbers as the triangle has."""

    params = ([100, 1_000],)
    param_names = ("t",)

    def setup(self, t):
        self.ours = OneLabel()
        self.ours.setup("fastal", t)
        n = math.isqrt(t * t // 2)
        self.A, self.x = np.asfortranarray(np.random.default_rng(0).random((n, n))), np.ones(n)

    def track_share_of_dgemv(self, t):
        """At least 0.95 at t = 1,000: speed as a share of dgemv's."""
        with threadpool_limits(1):
            return ratio(
                lambda: dgemv(1.0, self.A, self.x, trans=1),
                lambda: self.ours.time_add("fastal", t),
            )

    track_share_of_dgemv.unit = "ratio"


class FromEmpty:
    """n labels one by one from empty, and in one batch."""

    params = (["fastal", "fastal batch", "scikit-learn"], [100, 1_000])
    param_names = ("implementation", "n")
    timeout = 300

    def setup(self, implementation, n):
        self.X, self.y = data(n)
        if implementation != "scikit-learn":
            GaussianProcess(1.3, 0.01).add_batch(self.X, self.y)
            GaussianProcess(1.3, 0.01).add(self.X[0], self.y[0])

    def time_labels(self, implementation, n):
        gp = GaussianProcess(1.3, 0.01)
        if implementation == "fastal batch":
            gp.add_batch(self.X, self.y)
        elif implementation == "fastal":
            for x, label in zip(self.X, self.y, strict=True):
                gp.add(x, label)
        else:
            for t in range(1, n):
                peer = GaussianProcessRegressor(RBF(1.3), alpha=0.01, optimizer=None)
                peer.fit(self.X[:t], self.y[:t]).predict(self.X[t : t + 1], return_std=True)


class FromEmptyRatio:
    params = ([100, 1_000],)
    param_names = ("n",)
    timeout = 300

    def track_scikit_learn_over_labels(self, n):
        """At least 400 at n = 1,000."""
        loop = FromEmpty()
        loop.setup("fastal", n)
        begin = perf_counter()
        loop.time_labels("scikit-learn", n)
        slow = perf_counter() - begin
        return slow / best(lambda: loop.time_labels("fastal", n))

    track_scikit_learn_over_labels.unit = "ratio"


class TriangularSolve:
    """The solve within an add; the peer is the dtrsv of BLAS on the same triangle."""

    params = (["fastal", "dtrsv"], [100, 1_000, 2_000])
    param_names = ("implementation", "t")

    def setup(self, implementation, t):
        rng = np.random.default_rng(0)
        L = np.tril(rng.normal(size=(t, t))) / t + np.eye(t)
        self.panels, self.reciprocals = new_panels(t), 1 / np.diagonal(L)
        for i, row in enumerate(L):
            write_row(self.panels, i, row)
        self.upper = np.asfortranarray(L.T)
        self.k, self.v = rng.normal(size=t), np.zeros(t)
        self.time_solve(implementation, t)
        np.testing.assert_allclose(L @ self._solution(implementation), self.k, atol=1e-9)

    def _solution(self, implementation):
        if implementation == "fastal":
            self.v[:] = self.k
            solve_panels(self.panels, self.reciprocals, self.k.size, self.v)
            return self.v
        return dtrsv(self.upper, self.k, trans=1)

    def time_solve(self, implementation, t):
        self._solution(implementation)

    def peakmem_solve(self, implementation, t):
        self.time_solve(implementation, t)


class TriangularSolveRatio:
    params = ([100, 2_000],)
    param_names = ("t",)

    def track_share_of_dtrsv(self, t):
        """At least 0.7 at t = 2,000: speed as a share of BLAS's."""
        ours, blas = TriangularSolve(), TriangularSolve()
        ours.setup("fastal", t)
        blas.setup("dtrsv", t)
        return ratio(lambda: blas.time_solve("dtrsv", t), lambda: ours.time_solve("fastal", t))

    track_share_of_dtrsv.unit = "ratio"


class Predict:
    """Means and variances of 5,000 inputs given 1,000 labels."""

    params = (["fastal", "scikit-learn"], ["mean", "var"])
    param_names = ("implementation", "what")

    def setup(self, implementation, what):
        X, y = data(1_000)
        self.T, _ = data(5_000)
        if implementation == "fastal":
            self.gp = GaussianProcess(1.3, 0.01)
            self.gp.add_batch(X, y)
        else:
            self.gp = GaussianProcessRegressor(RBF(1.3), alpha=0.01, optimizer=None).fit(X, y)
        self.time_predict(implementation, what)

    def time_predict(self, implementation, what):
        name = "return_var" if implementation == "fastal" else "return_std"
        self.gp.predict(self.T, **{name: what == "var"})


class Drift:
    """Backward error of a factor grown label by label, in units of n eps max|K|."""

    params = ([100, 1_000],)
    param_names = ("n",)

    def track_drift(self, n):
        X, y = data(n)
        gp = GaussianProcess(1.3, 0.01)
        for x, label in zip(X, y, strict=True):
            gp.add(x, label)
        return gp.drift() / (n * np.finfo(float).eps * 1.01)


class Fit:
    """Length scale and noise by the marginal likelihood, 8 starts, at most 1,000 rows.

    Synthetic data, and those of the paper.
    """

    params = (
        ["fastal", "scikit-learn"],
        ["synthetic", "airfoil", "concrete", "power_plant", "protein", "yacht"],
    )
    param_names = ("implementation", "data")
    timeout = 300
    number = 1
    repeat = 1
    warmup_time = 0

    def setup(self, implementation, name):
        if name == "synthetic":
            self.X, self.y = data(400)
        else:
            try:
                X, y = datasets.load(name)
            except OSError as error:  # neither there nor to be downloaded
                raise NotImplementedError(str(error)) from None
            rows = np.random.default_rng(0).permutation(len(X))[:1000]
            self.X = ((X - X.mean(axis=0)) / X.std(axis=0))[rows]
            self.y = ((y - y.mean()) / y.std())[rows]
        if implementation == "fastal":
            GaussianProcess().fit_hyperparameters(self.X[:20], self.y[:20], restarts=1)

    def _fit(self, implementation):
        if implementation == "fastal":
            gp = GaussianProcess().fit_hyperparameters(self.X, self.y)
            gp.add_batch(self.X, self.y)
            return gp.log_marginal_likelihood()
        kernel = RBF(1.0, (1e-3, 1e4)) + WhiteKernel(1e-2, (1e-4, 1e2))
        peer = GaussianProcessRegressor(
            kernel, alpha=1e-300, n_restarts_optimizer=7, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return peer.fit(self.X, self.y).log_marginal_likelihood_value_

    def time_fit(self, implementation, name):
        self._fit(implementation)

    def track_log_marginal_likelihood(self, implementation, name):
        return self._fit(implementation)

    track_log_marginal_likelihood.unit = "nats"


class Refit:
    """A refit after some labels more: warm start, one length scale, noise, amplitude and mean.

    The peer begins where its last fit ended, too, and has no other start; it fits the same
    parameters but for the mean, which `normalize_y` puts at that of the labels.
    """

    params = (["fastal", "fastal cold", "scikit-learn"], [20, 100, 300])
    param_names = ("implementation", "n")

    def setup(self, implementation, n):
        self.X, self.y = data(n)
        before = int(n / 1.2)
        fit = weak_fit(self.X[:before], self.y[:before], RBF_KIND)
        self.start = fit.lengthscale, fit.ratio
        kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(1.0, (0.1, 60.0))
        self.kernel = self._peer(kernel + WhiteKernel(1e-2, (1e-4, 10.0)), before)
        self.time_refit(implementation, n)

    def _peer(self, kernel, n):
        peer = GaussianProcessRegressor(kernel, alpha=1e-12, normalize_y=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return peer.fit(self.X[:n], self.y[:n]).kernel_

    def time_refit(self, implementation, n):
        if implementation == "scikit-learn":
            return self._peer(self.kernel, n)
        start = self.start if implementation == "fastal" else None
        return weak_fit(self.X, self.y, RBF_KIND, start=start)


class RefitRatio:
    params = ([20, 100],)
    param_names = ("n",)

    def setup(self, n):
        self.refit = Refit()
        self.refit.setup("fastal", n)

    def track_scikit_learn_over_refit(self, n):
        """At least 5 at n = 100, for a refit that also looks for other optima."""
        return ratio(
            lambda: self.refit.time_refit("scikit-learn", n),
            lambda: self.refit.time_refit("fastal", n),
        )

    track_scikit_learn_over_refit.unit = "ratio"

    def track_milliseconds(self, n):
        """At most 5 at n = 100, on one core."""
        return 1e3 * best(lambda: self.refit.time_refit("fastal", n))

    track_milliseconds.unit = "ms"
