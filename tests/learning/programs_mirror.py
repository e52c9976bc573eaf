"""What a campaign must be by the definitions: labels, fits and a dense twin, and what may differ."""

import math

import numpy as np
from dense_twin import DenseTwin, covariance
from scipy.linalg import solve
from twins.stopping import movement_left, window_of

EPS = np.finfo(float).eps
ROUNDINGS = 30  # of a covariance

# Of each comparison the largest error over the one that is allowed; stops that rounding decides.
CLOSEST = {}


class Mirror:
    """What a campaign must be by the definitions, from its labels and fits alone."""

    def __init__(self, X, gp, share, n_initial, max_labels, refit):
        self.X, self.share, self.n_initial, self.refit = X, share, n_initial, refit
        self.whole, self.max_labels = (
            max_labels is None,
            len(X) if max_labels is None else max_labels,
        )
        self.rows, self.y, self.own, self.skipped = [], [], {}, set()
        self.fits, self.stop, self.gp, self.twin = [], None, gp, None
        self.unsure, self.greedy = False, True
        self.unit = self.scales()
        if gp is not None:
            self.hyper = {
                name: getattr(gp, name)
                for name in ("lengthscale", "noise", "amplitude", "mean", "kernel")
            }
            self.twin = DenseTwin(X, **self.hyper)

    def scales(self):
        """Return the unit of a fit's length scale."""
        if self.gp is not None:
            logs = np.log(np.broadcast_to(self.gp.lengthscale, self.X.shape[1]))
            return np.exp(logs - logs.mean())
        sd = (self.X / np.abs(self.X).max(axis=0, initial=1e-300)).std(axis=0) * np.abs(self.X).max(
            axis=0
        )
        return np.where(sd <= 1e-12 * np.abs(self.X).max(axis=0), np.inf, sd)

    @property
    def most(self):
        return min(self.max_labels, len(self.X) - len(self.skipped))

    @property
    def horizon(self):
        return max(0, self.most - self.n_initial)

    @property
    def free(self):
        free = np.ones(len(self.X), dtype=bool)
        free[self.rows + list(self.skipped)] = False
        return free

    # how exact anything can be: roundings of the covariances over the noise ------------------

    @property
    def precision(self):
        """Roundings of the covariances, as the weights of a prediction and the noise enlarge them."""
        noise = min([self.hyper["noise"], *self.own.values()])
        enlarged = (1 + self.twin.weights()) ** 2 * (1 + self.hyper["amplitude"] / noise)
        return np.maximum.accumulate(ROUNDINGS * EPS * enlarged) + 1e-11

    def variance_error(self, row, before):
        """Return how exact the variance of a point is, given labels of some points."""
        noises, Z, amplitude = self.noises(before), self.twin.Z, self.hyper["amplitude"]
        K = covariance(self.twin.kernel, amplitude, Z[before], Z[[*before, row]])
        weights = (
            solve(K[:, :-1] + np.diag(noises), K[:, -1], assume_a="pos") if before else K[:, -1]
        )
        return ROUNDINGS * EPS * amplitude * (1 + np.abs(weights).sum()) ** 2

    @property
    def peak(self):
        return np.maximum.accumulate(np.maximum(np.abs(self.twin.z), 1.0))

    def bound_errors(self):
        error = self.precision * (1 + self.peak**2) * (1 + np.minimum(self.twin.u, 1e3))
        return (error + 1e-9 * self.twin.bounds)[self.n_initial :]

    # the rule --------------------------------------------------------------------------------

    @property
    def bounds(self):
        return np.empty(0) if self.twin is None else self.twin.bounds[self.n_initial :]

    def says_stop(self, first=None):
        """Return after which bounds, from `first` on, the rule says stop; notes what is unsure."""
        bounds, n = self.bounds, self.horizon
        found = []
        if not len(bounds):
            return found
        left, errors = movement_left(bounds, n), self.left_errors()
        for t in range(len(bounds) if first is None else first, len(bounds) + 1):
            w = window_of(t)
            if t >= n or (t > w and left[t - 1] <= self.share):
                found.append(t)
            if w < t < n and abs(left[t - 1] - self.share) <= errors[t - 1] * self.share:
                self.unsure = True
        return found

    def left_errors(self):
        """Return how exact the share is that is still to come, after each bound."""
        sums = np.r_[0, np.cumsum(self.bounds)]
        t = np.arange(1, len(sums))
        begin = np.maximum(0, t - np.clip(t // 5, 10, 20))
        means = (sums[t] - sums[begin]) / (t - begin)
        return 1e-9 + 2 * np.maximum.accumulate(self.bound_errors()) / np.maximum(means, 1e-300)

    # what happens ----------------------------------------------------------------------------

    def advance(self, rows, y, fits):
        """Take labels, and the fits that came between them."""
        at = 0
        for fit in fits:
            end = at + fit.n_labels - len(self.rows)
            self.take(rows[at:end], y[at:end])
            at = end
            self.fitted(fit)
        self.take(rows[at:], y[at:])

    def take(self, rows, y):
        rows, y = list(map(int, rows)), list(map(float, y))
        assert len(set(rows) | set(self.rows)) == len(rows) + len(self.rows), (
            "a row is labelled twice"
        )
        if not rows:
            return
        self.check_choice(rows)
        self.skipped -= set(rows)
        first = max(1, len(self.rows) + 1 - self.n_initial)
        self.rows, self.y = self.rows + rows, self.y + y
        if self.twin is not None:
            self.twin.take(rows, np.array(y), self.noises(rows))
            stops = self.says_stop(first) if not self.fits and self.stop is None else []
            if stops:
                self.stop = stops[0]

    def noises(self, rows):
        return np.array([self.own.get(row, self.hyper["noise"]) for row in rows])

    def check_choice(self, rows):
        """Check that each row has the largest variance, given those before it."""
        ahead = max(0, self.n_initial - len(self.rows))
        if not self.greedy or self.twin is None or ahead >= len(rows):
            return
        _, V = self.twin.block(rows, self.noises(rows))
        variances, free = self.twin.variances(V), self.free
        free[rows[:ahead]] = False
        for i in range(ahead, len(rows)):
            best, got = variances[i][free].max(), variances[i, rows[i]]
            assert free[rows[i]], f"point {rows[i]} was not to be had"
            error = 0.0
            if got < best:
                wanted = np.flatnonzero(free)[variances[i][free].argmax()]
                error = self.variance_error(wanted, self.rows + rows[:i])
                close("choice", best - got, error)
            assert got >= best - error, (
                f"point {rows[i]}, label {len(self.rows) + i + 1}: variance {got:.12g}, the largest is {best:.12g}"
            )
            free[rows[i]] = False

    def fitted(self, fit):
        """Take a fit: two must agree, or nothing can come any more."""
        assert fit.fitted
        before = self.fits[-1] if self.fits else None
        agreed = before is not None and not before.at_edge and not fit.at_edge and self.says_stop()
        self.hyper = {
            "lengthscale": fit.lengthscale * self.unit, "noise": fit.noise, "amplitude": fit.amplitude,
            "mean": fit.mean, "kernel": "rbf" if self.gp is None else self.gp.kernel,
        }  # fmt: skip
        self.fits.append(fit)
        self.anew()
        if self.stop is None and self.says_stop() and (agreed or len(self.bounds) >= self.horizon):
            self.stop = len(self.bounds)

    def anew(self):
        """Compute everything again, for other labels, points or hyper-parameters."""
        if self.twin is None and not self.fits:
            return
        self.twin = DenseTwin(self.X, **self.hyper)
        if self.rows:
            self.twin.take(self.rows, np.array(self.y), self.noises(self.rows))

    def due(self):
        """Return at how many labels a fit is due."""
        if self.refit is None:
            return math.inf
        if not self.fits:
            return max(5, self.n_initial)
        last = self.fits[-1].n_labels
        return max(last + 1, math.floor(self.refit * last + 0.5))

    # comparisons -----------------------------------------------------------------------------

    def check(self, run, learner=None, told=True):
        """Compare with a run, and with a learner; not `told`: Ctrl-C, the rule may not know all."""
        assert run.indices.tolist() == self.rows
        assert run.labels.tolist() == self.y
        assert set(run.skipped.tolist()) == self.skipped
        if self.twin is None:
            assert not len(run.bounds)
            return
        for name in ("lengthscale", "noise", "amplitude", "mean"):
            got, want = np.broadcast_arrays(getattr(run.prior, name), self.hyper[name])
            there = np.isfinite(want)  # a column that does not vary has any length scale
            np.testing.assert_allclose(got[there], want[there], rtol=1e-9, err_msg=name)
        apart(run.bounds, self.bounds, self.bound_errors(), "bounds")
        if learner is not None:
            apart(
                learner.residuals,
                self.twin.z,
                self.precision * self.peak * (1 + self.peak),
                "residuals",
            )
            np.testing.assert_array_equal(learner.unlabelled, self.free)
            largest, error = 0.0, 0.0
            if self.free.any():
                row = int(np.where(self.free, self.twin.var, -1).argmax())
                largest, error = max(0.0, self.twin.var[row]), self.variance_error(row, self.rows)
            apart(learner.largest_variance, largest, error, "largest variance")
        if not told:
            return
        if learner is None or not len(learner.pending):
            assert len(self.rows) < self.due(), f"a fit was due at {self.due()} labels"
        at = run.criterion.stopped_at
        if self.unsure and at != self.stop:
            CLOSEST["unsure stops"] = CLOSEST.get("unsure stops", 0) + 1
            self.stop = at
        self.unsure = False
        assert at == self.stop, (
            f"stopped at {at} bounds, the twin at {self.stop} (horizon {self.horizon})"
        )
        assert len(run.criterion) == len(self.bounds)
        if self.stop is None and len(self.bounds):
            left = movement_left(self.bounds, self.horizon)[-1]
            apart(run.criterion.left, left, self.left_errors()[-1], "left")


def close(what, errors, allowed):
    """Remember how near to what is allowed the errors have come."""
    ratio = np.max(np.asarray(errors) / np.maximum(allowed, 1e-300), initial=0.0)
    if ratio <= 1:
        CLOSEST[what] = max(CLOSEST.get(what, 0.0), float(round(ratio, 3)))


def apart(got, want, error, what):
    got, want = np.atleast_1d(got), np.atleast_1d(want)
    assert got.shape == want.shape, f"{what}: {got.shape} instead of {want.shape}"
    there = ~np.isnan(want)
    close(what, np.abs(got - want)[there], np.broadcast_to(error, want.shape)[there])
    bad = np.flatnonzero(~(np.abs(got - want) <= error) & ~(np.isnan(got) & np.isnan(want)))
    if len(bad):
        i, error = bad[0], np.broadcast_to(error, want.shape)
        raise AssertionError(
            f"{what}: {len(bad)} of {len(got)} are wrong, the first at {i}: {got[i]:.12g} instead of "
            f"{want[i]:.12g} (to {error[i]:.1g}); the worst by {np.nanmax(np.abs(got - want)):.3g}"
        )
