"""Random programs of operations on learners and runs, against a dense twin after each of them.

A program is one seed. Nothing of the code is patched: sizes are drawn around the borders that it
has. A failure prints the program so far.

    FASTAL_PROGRAMS=2000 FASTAL_PROGRAMS_SEED=1000 pytest tests/learning/test_programs.py
    python tests/learning/test_programs.py 17 18    # programs 17 and 18 only
"""

import copy
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from dense_twin import DenseTwin
from numba import config

from fastal import ActiveLearner, GaussianProcess, StillToCome, learn
from fastal.reference.stopping import still_to_come, window_of

pytestmark = [
    pytest.mark.skipif(bool(config.DISABLE_JIT), reason="hours interpreted"),
    # Ctrl-C in a destructor is nobody's exception
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COUNT = int(os.environ.get("FASTAL_PROGRAMS", "40"))
FIRST = int(os.environ.get("FASTAL_PROGRAMS_SEED", "0"))
MINUTES = float(os.environ.get("FASTAL_PROGRAMS_MINUTES", "20"))

# Borders of the code: which selection a pool gets, its stages, chunks and panels.
POOLS = {12: 2, 60: 2, 300: 1, 999: 2, 1000: 3, 1001: 2, 2047: 3, 2048: 4, 2049: 4, 2500: 7, 6000: 4}
LABELS = (15, 17, 50, 64, 65, 127, 128, 129, 200, 249, 251, 255, 256, 257, 260, 318, 400, 511, 512, 513, 560)
BATCHES = (1, 1, 2, 3, 7, 16, 33, 64, 100, 200, 256, 288, 320)
KERNELS = ("rbf", "matern12", "matern32", "matern52")
EPS = np.finfo(float).eps
UNSURE = Counter()  # stops that rounding decides: how many there were


class Mirror:
    """What a campaign must be by the definitions, from its labels and fits alone."""

    def __init__(self, X, gp, share, n_initial, max_labels, refit):
        self.X, self.share, self.n_initial, self.refit = X, share, n_initial, refit
        self.whole, self.max_labels = max_labels is None, len(X) if max_labels is None else max_labels
        self.rows, self.y, self.own, self.skipped = [], [], {}, set()
        self.fits, self.stop, self.gp, self.twin = [], None, gp, None
        self.unsure, self.greedy = False, True
        self.unit = self.scales()
        if gp is not None:
            self.hyper = {name: getattr(gp, name) for name in ("lengthscale", "noise", "amplitude", "mean", "kernel")}
            self.twin = DenseTwin(X, **self.hyper)

    def scales(self):
        """Return the unit of a fit's length scale."""
        if self.gp is not None:
            logs = np.log(np.broadcast_to(self.gp.lengthscale, self.X.shape[1]))
            return np.exp(logs - logs.mean())
        sd = (self.X / np.abs(self.X).max(axis=0, initial=1e-300)).std(axis=0) * np.abs(self.X).max(axis=0)
        return np.where(sd <= 1e-14 * np.abs(self.X).max(axis=0), np.inf, sd)

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
        noise = min([self.hyper["noise"], *self.own.values()])
        return 300 * EPS * (1 + self.hyper["amplitude"] / noise) + 1e-11

    @property
    def variance_error(self):
        return 1e4 * EPS * self.hyper["amplitude"]

    @property
    def peak(self):
        return np.maximum.accumulate(np.maximum(np.abs(self.twin.z), 1.0))

    def bound_errors(self):
        error = self.precision * (1 + self.peak**2) * (1 + np.minimum(self.twin.u, 1e3))
        return (error + 1e-8 * self.twin.bounds)[self.n_initial :]

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
        left, errors = still_to_come(bounds, n), self.bound_errors()
        for t in range(len(bounds) if first is None else first, len(bounds) + 1):
            w = window_of(t)
            if t >= n or (t > w and left[t - 1] <= self.share):
                found.append(t)
            if w < t < n and abs(left[t - 1] - self.share) <= self.left_error(t) * self.share:
                self.unsure = True
        return found

    def left_error(self, t):
        w = window_of(t)
        return 1e-7 + 2 * self.bound_errors()[:t].max() / max(self.bounds[t - w : t].mean(), 1e-300)

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
        assert len(set(rows) | set(self.rows)) == len(rows) + len(self.rows), "a row is labelled twice"
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
            assert got >= best - self.variance_error, (
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
            np.testing.assert_allclose(getattr(run.prior, name), self.hyper[name], rtol=1e-9)
        apart(run.bounds, self.bounds, self.bound_errors(), "bounds")
        if learner is not None:
            apart(learner.residuals, self.twin.z, self.precision * self.peak * (1 + self.peak), "residuals")
            np.testing.assert_array_equal(learner.unlabelled, self.free)
            largest = max(0.0, self.twin.var[self.free].max(initial=0.0))
            apart(learner.largest_variance, largest, self.variance_error, "largest variance")
        if not told:
            return
        if learner is None or not len(learner.pending):
            assert len(self.rows) < self.due(), f"a fit was due at {self.due()} labels"
        at = run.stopper.stopped_at
        if self.unsure and at != self.stop:
            UNSURE["stops"] += 1
            self.stop = at
        self.unsure = False
        assert at == self.stop, f"stopped at {at} bounds, the twin at {self.stop} (horizon {self.horizon})"
        assert len(run.stopper) == len(self.bounds)
        if self.stop is None and len(self.bounds):
            left = still_to_come(self.bounds, self.horizon)[-1]
            apart(run.stopper.left, left, self.left_error(len(self.bounds)), "left")


def apart(got, want, error, what):
    got, want = np.atleast_1d(got), np.atleast_1d(want)
    assert got.shape == want.shape, f"{what}: {got.shape} instead of {want.shape}"
    bad = np.flatnonzero(~(np.abs(got - want) <= error) & ~(np.isnan(got) & np.isnan(want)))
    if len(bad):
        i, error = bad[0], np.broadcast_to(error, want.shape)
        raise AssertionError(
            f"{what}: {len(bad)} of {len(got)} are wrong, the first at {i}: {got[i]:.12g} instead of "
            f"{want[i]:.12g} (to {error[i]:.1g}); the worst by {np.nanmax(np.abs(got - want)):.3g}"
        )


class Failed(Exception):
    """From an oracle or a callback."""


def with_ctrl_c(seconds, call):
    """Return what a call returns, or the KeyboardInterrupt that comes after so many seconds."""
    armed = True

    def interrupt(*_):
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        found = call()
        armed = False
        return found
    except KeyboardInterrupt as error:
        return error
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Program:
    """One random program; `said` is what it has done."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.said = []
        sizes = np.array(list(POOLS))
        n = int(rng.choice(sizes, p=np.array(list(POOLS.values())) / sum(POOLS.values())))
        self.kind = str(rng.choice(["learner", "run", "interrupted"], p=[0.55, 0.35, 0.1]))
        if self.kind == "interrupted":
            n = int(rng.choice([2500, 6000, 20_000]))
        d = int(rng.integers(1, 7))
        X = rng.normal(size=(n, d))
        ties = str(rng.choice(["", "", "copies", "grid"]))
        if ties == "copies":
            X[n // 2 :] = X[: n - n // 2]
        elif ties == "grid":
            X = np.round(3 * X) / 3
        if constant := bool(rng.random() < 0.2):
            X = np.column_stack((X, np.full(n, rng.choice([0.0, 3.7]))))
        self.wave = rng.normal(size=X.shape[1])
        sx, sy = (float(rng.choice([1.0, 1.0, 1.0, 1e8, 1e-8])) for _ in range(2))
        ratio = float(rng.choice([1e-8, 1e-6, 1e-4, 1e-2, 0.1, 1.0]))
        self.middle, self.sx, self.sy, self.sd = float(rng.choice([0.0, 5.0])) * sy, sx, sy, math.sqrt(ratio)
        self.X, self.ratio = X * sx, ratio
        self.truth = self.labels_of(self.X)
        gp, refit = None, 1.2
        if rng.random() < 0.75 or n < 10:
            length = rng.uniform(0.4, 2.0) * math.sqrt(d) * sx
            if rng.random() < 0.3:
                length = length * rng.uniform(0.5, 2, X.shape[1])
            kernel = str(rng.choice(KERNELS))
            gp = GaussianProcess(length, ratio * sy**2, amplitude=sy**2, mean=self.middle, kernel=kernel)
            refit = float(rng.choice([1.2, 1.6])) if rng.random() < 0.15 else None
        lowest = 5 if gp is None else 1
        n_initial = int(rng.choice([lowest, lowest, 7, min(40, n - 5)]))
        given = rng.choice(n, n_initial, replace=False) if rng.random() < 0.4 else None
        self.most = self.some_most(n_initial + 1, n)
        if self.kind == "interrupted":
            self.most = min(self.most, 150)
        whole = self.kind == "learner" and rng.random() < 0.25
        share = float(rng.choice([1e-6, 0.02, 0.1, 0.3]))
        acquisition = "random" if rng.random() < 0.1 else "max_variance"
        self.options = {
            "gp": gp, "stopper": StillToCome(share), "initial": n_initial if given is None else given,
            "max_labels": None if whole else self.most, "seed": int(rng.integers(1000)),
            "acquisition": acquisition, "refit": refit,
        }  # fmt: skip
        self.say(
            f"X: {n} points, {d} features{', one constant' * constant}, {ties or 'all different'}, "
            f"scales {sx:g} and {sy:g}; noise ratio {ratio:g}"
        )
        shown = self.options | {"initial": n_initial if given is None else f"{n_initial} given rows"}
        self.say(f"{self.kind}: {', '.join(f'{k}={v}' for k, v in shown.items())}")
        self.mirror = Mirror(self.X, gp, share, n_initial, None if whole else self.most, refit)
        self.mirror.greedy = acquisition == "max_variance"

    def say(self, text):
        self.said.append(text)

    def labels_of(self, X):
        f = np.sin(X / self.sx @ self.wave) + self.sd * self.rng.uniform(-1.7, 1.7, len(X))
        return self.middle + self.sy * f

    def some_most(self, least, n):
        """Draw a number of labels: a border above `least`, or anything."""
        fit = [most for most in LABELS if least <= most <= n]
        if not fit or self.rng.random() < 0.1:
            return int(self.rng.integers(least, min(n, max(least, 560)) + 1))
        return int(self.rng.choice(fit))

    def moment(self):
        return float(10 ** self.rng.uniform(-4, -1.2))

    def run(self):
        steps = self.learner_steps() if self.kind == "learner" else self.run_steps()
        for _ in steps:
            pass

    # a learner -------------------------------------------------------------------------------

    def learner_steps(self):
        options = dict(self.options)
        if self.rng.random() < 0.15:
            k = int(self.rng.integers(1, self.most + 1))
            rows = self.rng.choice(len(self.X), k, replace=False)
            self.say(f"known: {k} rows")
            self.mirror.n_initial = max(self.mirror.n_initial, k)
            options["known"] = rows, self.truth[rows]
            self.mirror.max_labels = max(self.mirror.max_labels, self.mirror.n_initial + 1)
            options["max_labels"] = None if self.mirror.whole else self.mirror.max_labels
        self.learner = ActiveLearner(self.X, **options)
        self.note()
        doing = {
            self.ask_and_tell: 12, self.tell_another: 2, self.skip: 1, self.correct: 1, self.extend: 1,
            self.keep: 3, self.more: 3, self.unasked: 0.4, self.ask_interrupted: 1,
        }  # fmt: skip
        weights = np.array(list(doing.values())) / sum(doing.values())
        for _ in range(int(self.rng.integers(5, 13))):
            step = self.rng.choice(list(doing), p=weights)
            step()
            yield

    def note(self, told=True):
        """Bring the mirror up to what the learner has, and compare."""
        run, mirror = self.learner.run(), self.mirror
        t = len(mirror.rows)
        assert run.indices[:t].tolist() == mirror.rows
        mirror.advance(run.indices[t:], run.labels[t:], run.refits[len(mirror.fits) :])
        mirror.check(run, self.learner, told)

    def room(self):
        return self.mirror.most - len(self.mirror.rows)

    def noise(self, count):
        if self.rng.random() < 0.85 or self.mirror.twin is None:
            return None
        return self.mirror.hyper["noise"] * self.rng.uniform(0.5, 3, count)

    def ask(self):
        n = int(self.rng.choice(BATCHES))
        self.say(f"rows = ask({n})")
        rows, mirror = self.learner.ask(n), self.mirror
        assert len(rows) == min(n, self.room())
        assert np.array_equal(rows, self.learner.ask(n))
        assert len(set(rows.tolist())) == len(rows)
        assert mirror.free[rows].all()
        mirror.check_choice(rows.tolist())
        return rows

    def told(self, rows, y, noise):
        """Take what was told in order, whatever variance it had: in the mirror."""
        greedy, self.mirror.greedy = self.mirror.greedy, False
        there = np.isfinite(y)
        self.mirror.skipped |= {int(row) for row in np.asarray(rows)[~there]}
        if noise is not None:
            self.mirror.own |= {int(r): float(v) for r, v in zip(rows, noise, strict=True)}
        try:
            self.note()
        finally:
            self.mirror.greedy = greedy

    def ask_and_tell(self):
        if self.room() < 1:
            return self.more()
        rows = self.ask()
        y = self.truth[rows].copy()
        how = str(self.rng.choice(["all", "all", "all", "gaps", "index", "parts"]))
        if how == "gaps" and len(rows) < 300:
            y[self.rng.random(len(rows)) < 0.1] = np.nan
        noise = self.noise(len(rows)) if how != "gaps" else None
        own = "" if noise is None else ", noise=..."
        if how in ("all", "gaps"):
            self.say(f"tell(y[rows]{own})" + f"  # {int(np.isnan(y).sum())} are nan" * bool(how == "gaps"))
            self.learner.tell(y if len(rows) > 1 else y[0], noise=noise)
            return self.told(rows, y, noise)
        place = self.rng.permutation(len(rows))
        rows, y = rows[place], y[place]
        noise = None if noise is None else noise[place]
        cut = len(rows) if how == "index" else int(self.rng.integers(0, len(rows) + 1))
        for part in (slice(0, cut), slice(cut, None)):
            if len(rows[part]):
                self.say(f"tell(y[part], index=part{own})  # {len(rows[part])} of them, in another order")
                some = None if noise is None else noise[part]
                self.learner.tell(y[part], index=rows[part], noise=some)
                self.told(rows[part], y[part], some)
        return None

    def tell_another(self):
        free = np.flatnonzero(self.mirror.free)
        if self.room() < 1 or not len(free):
            return
        count = min(int(self.rng.choice([1, 1, 3, 20])), self.room(), len(free))
        rows = self.rng.choice(free, count, replace=False)
        noise = self.noise(count)
        self.say(f"tell(y[rows], index=rows{', noise=...' if noise is not None else ''})  # {count} others")
        if count == 1 and self.rng.random() < 0.3:
            self.learner.tell(None, index=int(rows[0]))
            return self.told(rows, np.array([np.nan]), None)
        self.learner.tell(self.truth[rows], index=rows, noise=noise)
        self.told(rows, self.truth[rows], noise)

    def skip(self):
        if self.room() < 1 or len(self.mirror.skipped) > 5:
            return
        self.say("ask(); skip()")
        row = self.learner.ask()
        self.learner.skip()
        self.told([row], np.array([np.nan]), None)

    def correct(self):
        if not self.mirror.rows:
            return
        count = min(len(self.mirror.rows), int(self.rng.choice([1, 3])))
        places = self.rng.choice(len(self.mirror.rows), count, replace=False)
        rows = np.array(self.mirror.rows)[places]
        self.say(f"correct({rows.tolist()}, ...)")
        y = self.truth[rows] + 0.2 * self.sy * self.rng.uniform(-1, 1, count)
        self.truth[rows] = y
        self.learner.correct(rows, y)
        for place, value in zip(places, y.tolist(), strict=True):
            self.mirror.y[place] = value
        self.mirror.anew()
        self.note()

    def extend(self):
        count = int(self.rng.choice([1, 2, 40, 500]))
        self.say(f"extend_pool({count} points)")
        X = self.X[: min(count, len(self.X))] + self.sx * self.rng.normal(size=(1, self.X.shape[1]))
        if (self.X[:, -1] == self.X[0, -1]).all():
            X[:, -1] = self.X[0, -1]
        self.X = np.vstack((self.X, X))
        self.truth = np.r_[self.truth, self.labels_of(X)]
        self.learner.extend_pool(X)
        mirror = self.mirror
        mirror.X, mirror.max_labels = self.X, len(self.X) if mirror.whole else mirror.max_labels
        mirror.unit = mirror.scales()
        mirror.anew()
        self.note()

    def keep(self):
        how = str(self.rng.choice(["from_dict(to_dict(), X)", "pickle", "copy"]))
        self.say(how)
        before = self.learner
        if how == "pickle":
            self.learner = pickle.loads(pickle.dumps(before))
        elif how == "copy":
            self.learner = copy.copy(before)
        else:
            self.learner = ActiveLearner.from_dict(json.loads(json.dumps(before.to_dict())), self.X)
        assert self.learner.pending.tolist() == before.pending.tolist()
        self.note()

    def more(self):
        """Another budget, in place or by way of the saved state: both must go on alike."""
        mirror = self.mirror
        if mirror.whole or len(self.learner.pending):
            return
        most = self.some_most(max(len(mirror.rows), mirror.n_initial + 1), len(self.X) - len(mirror.skipped))
        if self.rng.random() < 0.5:
            self.say(f"max_labels = {most}")
            self.learner.max_labels = most
        else:
            self.say(f"from_dict(to_dict() | {{'max_labels': {most}}}, X)")
            state = json.loads(json.dumps(self.learner.to_dict() | {"max_labels": most}))
            self.learner = ActiveLearner.from_dict(state, self.X)
        mirror.max_labels = most
        self.note()

    def unasked(self):
        """Labels of points that nobody was shown are refused, and change nothing."""
        if len(self.learner.pending) or self.room() < 2:
            return
        if self.rng.random() < 0.5:
            self.say("ask(); tell(y)")
            row = self.learner.ask()
            self.learner.tell(self.truth[row])
            self.told([row], self.truth[[row]], None)
        if self.room() < 1:
            return
        self.say("tell(y)  # nothing was asked")
        before = self.learner.to_dict()
        with pytest.raises(ValueError):
            self.learner.tell(self.middle)
        assert self.learner.to_dict() == before
        self.note()

    def ask_interrupted(self):
        """Ctrl-C in `ask`, then in `tell`: the first labels are there, or none."""
        if self.room() < 1 or not hasattr(signal, "setitimer"):
            return
        n, moment = int(self.rng.choice(BATCHES)), self.moment()
        self.say(f"rows = ask({n}); tell(y[rows])  # Ctrl-C after {1000 * moment:.2f} ms, in both")
        with_ctrl_c(moment, lambda: self.learner.ask(n))
        self.note(told=False)
        rows = self.learner.ask(n)
        self.mirror.check_choice(rows.tolist())
        with_ctrl_c(moment, lambda: self.learner.tell(self.truth[rows], index=rows))
        greedy, self.mirror.greedy = self.mirror.greedy, False
        self.note(told=False)
        rest = rows[self.mirror.free[rows]]
        assert self.mirror.rows[len(self.mirror.rows) - len(rows) + len(rest) :] == rows[: len(rows) - len(rest)].tolist()
        if len(rest):
            self.learner.tell(self.truth[rest], index=rest)
        elif self.room() > 0:
            row = self.learner.ask()
            self.learner.tell(self.truth[row])
        self.note()
        self.mirror.greedy = greedy

    # runs ------------------------------------------------------------------------------------

    def run_steps(self):
        self.result = None
        tries = 12 if self.kind == "interrupted" else int(self.rng.integers(2, 6))
        for _ in range(tries):
            self.go_on()
            yield
        self.go_on("array")

    def source(self, how):
        """Return what gives labels, and a callback: one of them may fail."""
        fail, calls = int(self.rng.integers(1, 60)), Counter()

        def oracle(row, x):
            assert np.array_equal(x, self.X[row])
            calls["oracle"] += 1
            if how == "oracle fails" and calls["oracle"] == fail:
                raise Failed
            return self.truth[row]

        def callback(learner):
            calls["callback"] += 1
            if how == "callback fails" and calls["callback"] == fail:
                raise Failed

        return oracle if how.startswith("oracle") else self.truth, callback if "call" in how else None

    def go_on(self, how=None):
        rng, mirror, run = self.rng, self.mirror, self.result
        hows = ["array", "array", "oracle", "oracle fails", "callback fails", "Ctrl-C"]
        how = str(rng.choice(hows)) if how is None else how
        if self.kind == "interrupted" and how != "array":
            how = "Ctrl-C"
        if how == "Ctrl-C" and not hasattr(signal, "setitimer"):
            return
        if run is not None:
            if rng.random() < 0.2:
                self.say("run = pickle.loads(pickle.dumps(run))")
                run = pickle.loads(pickle.dumps(run))
            if rng.random() < 0.5 and run.n_labels >= mirror.most:
                mirror.max_labels = self.some_most(run.n_labels, len(self.X))
            if mirror.stop is not None and rng.random() < 0.5:
                mirror.max_labels = max(mirror.max_labels, self.some_most(run.n_labels, len(self.X)))
        past = mirror.stop is not None
        labels, callback = self.source(how)
        threads = int(rng.choice([1, 2]))
        if run is None:
            self.say(f"run = learn(X, y, threads={threads})  # {how}")
            call = lambda: learn(self.X, labels, threads=threads, on_label=callback, **self.options)  # noqa: E731
        else:
            if callback is not None:
                how, labels = "oracle fails", self.source("oracle fails")[0]
            self.say(f"run = run.resume(y, max_labels={mirror.max_labels}, threads={threads})  # {how}")
            call = lambda: run.resume(labels, max_labels=mirror.max_labels, threads=threads)  # noqa: E731
        if how == "Ctrl-C":
            moment = self.moment()
            self.said[-1] += f" after {1000 * moment:.2f} ms"
            found = with_ctrl_c(moment, call)
            if isinstance(found, KeyboardInterrupt) and not hasattr(found, "run"):
                # before the first label, or when the result was on its way: it is lost
                self.said[-1] += ": lost, begin anew"
                self.restart()
                return
        else:
            try:
                found = call()
            except Failed as error:
                found = error
        complete = not isinstance(found, BaseException)
        self.result = run = found if complete else found.run
        if not complete:
            self.said[-1] += f": {run.n_labels} labels"
        t = len(mirror.rows)
        assert run.indices[:t].tolist() == mirror.rows
        mirror.advance(run.indices[t:], run.labels[t:], run.refits[len(mirror.fits) :])
        np.testing.assert_array_equal(run.labels, self.truth[run.indices])
        mirror.check(run, told=complete)
        if complete:
            there = mirror.n_initial + (mirror.stop or 0)
            assert run.n_labels == (mirror.most if past or mirror.stop is None else there)

    def restart(self):
        old = self.mirror
        self.result = None
        most = old.max_labels = self.options["max_labels"]
        self.mirror = Mirror(self.X, old.gp, old.share, old.n_initial, most, old.refit)
        self.mirror.greedy = old.greedy


def run_program(seed):
    """Run one program; a failure says what it has done."""
    program = None
    try:
        program = Program(seed)
        program.run()
    except Exception as error:
        said = [] if program is None else program.said
        text = "\n    ".join([f"program {seed}:", *said])
        raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_program(seed):
    run_program(seed)


@pytest.mark.long
def test_fresh_programs():
    """In processes of their own: a program that is lost to a crash or hangs is named."""
    seed, end, failed = int(time.time()) * 1000, time.monotonic() + 60 * MINUTES, []
    while time.monotonic() < end:
        seeds = [str(seed + i) for i in range(25)]
        seed += 25
        done = subprocess.run(
            [sys.executable, __file__, *seeds], capture_output=True, text=True, timeout=1800
        )
        if done.returncode:
            failed.append(done.stdout[-3000:] + done.stderr[-1000:])
    assert not failed, "\n".join(failed)


if __name__ == "__main__":
    import faulthandler
    import warnings

    faulthandler.enable()
    warnings.simplefilter("error")
    bad = 0
    for number in map(int, sys.argv[1:]):
        faulthandler.dump_traceback_later(300, exit=True)  # it hangs
        began = time.perf_counter()
        try:
            run_program(number)
            print(f"program {number}: right, {time.perf_counter() - began:.1f} s", flush=True)
        except AssertionError as failure:
            bad += 1
            print(f"WRONG {failure}\n", flush=True)
            if os.environ.get("FASTAL_PROGRAMS_TRACE"):
                traceback.print_exc()
    print(dict(UNSURE), Path(__file__).name)
    sys.exit(bad > 0)
