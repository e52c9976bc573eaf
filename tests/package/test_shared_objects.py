"""Objects that threads share: nothing is lost, nothing is half written, readers see one moment."""

import copy
import dis
import itertools
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest
from numba import config

from fastal import (
    ActiveLearner,
    ErrorStability,
    FixedBudget,
    GaussianProcess,
    LaplaceClassifier,
    LookAhead,
    MinLabels,
    OverallUncertainty,
    StabilizingPredictions,
    Stopper,
    StopperBatch,
    forecast,
    learn,
)
from fastal._core import selection_lazy
from fastal._core.tracker import RunsTracker
from fastal._threads import OneWriter
from fastal.criteria import (
    CrossValidation,
    MaxVariance,
    cross_validation_error,
    pac_bayes_bound,
)
from fastal.learning import choose, eager, gaussian, lazy, learner
from fastal.models import buffers, gp, growing
from fastal.stopping import Criterion, Measured

BUSY = ("in use by another thread", "another thread has pushed meanwhile")


def attempt(call, *texts, kind=RuntimeError):
    """Call something; return its result, or None if it was refused with one of these texts."""
    try:
        return call()
    except kind as error:
        if not any(text in str(error) for text in texts or BUSY):
            raise
    return None


@pytest.fixture
def restless():
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works):
    """Run functions at once, each in a thread; raise what one raised."""
    start, wrong = threading.Barrier(len(works)), []

    def run(work):
        try:
            start.wait()
            work()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "threads wait for ever"
    for error in wrong:
        raise error


# What is shared: `write(k)` returns what was taken, `read()` what was seen, `check` compares both with
# the same changes in one thread.


class Shared:
    writes = 25  # of each of four threads

    def write(self, k):
        raise NotImplementedError

    def read(self):
        return None

    def check(self, taken, seen):
        raise NotImplementedError


def stress(shared):
    """Let four threads write and two read, then check."""
    numbers = itertools.count()
    taken, seen, writing = [], [], [True] * 4

    def write(me):
        try:
            for _ in range(shared.writes):
                taken.extend(shared.write(next(numbers)))
        finally:
            writing[me] = False

    def read():
        while any(writing):
            seen.append(shared.read())

    together(*(lambda me=me: write(me) for me in range(4)), read, read)
    shared.check(taken, seen)


class SharedProcess(Shared):
    """Labels are told apart by their values."""

    def __init__(self):
        self.gp = GaussianProcess(0.3, 0.01)
        self.grid = np.linspace(-1.0, 3.0, 7)
        self.reads = itertools.count()

    def label(self, k):
        rng = np.random.default_rng(k)
        return rng.uniform(-2, 4, 1), float(rng.normal())

    def write(self, k):
        if k % 5:
            x, y = self.label(k)
            return [(y, self.gp.add(x if k % 2 else x.tolist(), y))]
        some = [self.label(10_000 + 20 * k + i) for i in range(12 if k % 2 else 3)]
        y = [label for _, label in some]
        return list(zip(y, self.gp.add_batch([x for x, _ in some], y).tolist(), strict=True))

    def read(self):
        gp = self.gp
        kind = next(self.reads) % 7
        if kind == 0:
            return "labels", gp.to_dict()["labels"]
        if kind == 1:
            return "labels", pickle.loads(pickle.dumps(gp)).to_dict()["labels"]
        if kind == 2:
            new = gp.copy()
            assert new.drift() < 1e-12
            return "labels", new.to_dict()["labels"]
        if kind == 3:
            return "evidence", gp.log_marginal_likelihood()
        if kind == 4:
            return "mean", gp.predict(self.grid)
        if kind == 5:
            return "posterior", np.concatenate(gp.predict(self.grid, return_var=True))
        return "prior_kl", gp.prior_kl()

    def check(self, taken, seen):
        gp = self.gp
        labels, inputs = gp.to_dict()["labels"], gp.to_dict()["scaled_inputs"]
        assert gp.n_labels == len(taken)
        assert sorted(labels) == sorted(y for y, _ in taken)
        assert gp.drift() < 4 * len(labels) * np.finfo(float).eps * 1.01
        again = GaussianProcess(0.3, 0.01)
        states, bounds = [prefix(again, self.grid)], {}
        for x, y in zip(inputs, labels, strict=True):
            bounds[y] = again.add(np.multiply(x, 0.3), y)
            states.append(prefix(again, self.grid))
        for y, r in taken:
            assert r == pytest.approx(bounds[y], rel=1e-6, abs=1e-9)
        for kind, value in seen:
            if kind == "labels":
                assert value == labels[: len(value)]
            else:
                belongs(value, [state[kind] for state in states])


def prefix(gp, grid):
    mean, var = gp.predict(grid, return_var=True)
    return {
        "evidence": gp.log_marginal_likelihood(),
        "mean": mean,
        "posterior": np.r_[mean, var],
        "prior_kl": gp.prior_kl(),
    }


def belongs(value, known):
    assert any(np.allclose(value, one, rtol=1e-6, atol=1e-7) for one in known), value


class SharedClassifier(Shared):
    writes = 8

    def __init__(self, **settings):
        self.settings = {"lengthscale": 0.5, "amplitude": 4.0} | settings
        self.model = LaplaceClassifier(**self.settings)
        self.grid = np.linspace(-1.0, 3.0, 5)
        self.reads = itertools.count()

    def label(self, k):
        rng = np.random.default_rng(k)
        x = float(rng.uniform(-2, 4))
        return x, 1 if x + rng.normal() > 1 else 0

    def write(self, k):
        if k % 4:
            x, y = self.label(k)
            return [(x, y, self.model.add(x, y))]
        x, y = zip(*[self.label(1000 + 3 * k + i) for i in range(3)], strict=True)
        return list(zip(x, y, self.model.add_batch(x, y).tolist(), strict=True))

    def read(self):
        model = self.model
        kind = next(self.reads) % 5
        if kind == 0:
            # a mode that is not of its labels would be refused
            return "inputs", LaplaceClassifier.from_dict(model.to_dict()).to_dict()["scaled_inputs"]
        if kind == 1:
            return "inputs", model.copy().to_dict()["scaled_inputs"]
        if kind == 2:
            return "proba", model.predict_proba(self.grid)
        if kind == 3:
            return "evidence", model.log_marginal_likelihood()
        return "latent", np.concatenate(model.latent(self.grid, return_var=True))

    def state(self, model):
        return {
            "proba": model.predict_proba(self.grid),
            "evidence": model.log_marginal_likelihood(),
            "latent": np.concatenate(model.latent(self.grid, return_var=True)),
        }

    def check(self, taken, seen):
        final = self.model.to_dict()
        inputs = final["scaled_inputs"]
        assert self.model.n_labels == len(taken)
        assert sorted(x for (x,) in inputs) == pytest.approx(sorted(2 * x for x, _, _ in taken))
        again = LaplaceClassifier(**self.settings)
        states, bounds = [self.state(again)], {}
        for (x,), y in zip(inputs, final["labels"], strict=True):
            bounds[round(x / 2, 12)] = again.add(x / 2, y)
            states.append(self.state(again))
        for x, _, r in taken:
            assert r == pytest.approx(bounds[round(x, 12)], rel=1e-6, abs=1e-9)
        for kind, value in seen:
            if kind == "inputs":
                assert value == inputs[: len(value)]
            else:
                belongs(value, [state[kind] for state in states])


class SharedLearner(Shared):
    writes = 15

    def __init__(self, model=None, stopper=None):
        rng = np.random.default_rng(5)
        self.X = rng.uniform(0, 10, (61, 1))
        self.y = np.sin(self.X[:, 0]) + np.arange(61) * 1e-6  # told apart by their values
        if isinstance(model, LaplaceClassifier):
            self.y = (self.y > 0).astype(float)
        self.model = model or GaussianProcess(1.0, 0.01)
        stopper = stopper or Stopper() | FixedBudget(1000)
        self.learner = ActiveLearner(self.X, gp=self.model, stopper=stopper, initial=3, seed=0)
        self.reads = itertools.count()

    def write(self, k):
        while True:  # until a label is taken
            index = self.learner.ask()
            tell = partial(self.learner.tell, self.y[index])
            if attempt(tell, "has been labelled meanwhile") is not None:
                return [index]

    def read(self):
        learner = self.learner
        kind = next(self.reads) % 4
        if kind == 0:
            state = learner.to_dict()
            assert state["labels"] == self.y[state["indices"]].tolist()
            return state["indices"]
        if kind == 1:
            new = pickle.loads(pickle.dumps(learner))
            left, n = new.unlabelled, new.n_labels
            assert left.sum() == len(self.y) - n
            return new.run().indices.tolist()
        if kind == 2:
            assert learner.model.n_labels <= 61
            assert learner.largest_variance >= 0.0
        run = learner.run()
        assert (run.labels == self.y[run.indices]).all()
        assert len(run.bounds) == max(0, run.n_labels - 3)
        self.same_bounds(run)
        return run.indices.tolist()

    def same_bounds(self, run):
        first = run.stopper.members[0] if hasattr(run.stopper, "members") else run.stopper
        np.testing.assert_array_equal(first.bounds, run.bounds)

    def check(self, taken, seen):
        run = self.learner.run()
        assert sorted(taken) == sorted(run.indices.tolist())
        assert (run.labels == self.y[run.indices]).all()
        self.same_bounds(run)
        again = self.model.copy()
        bounds = [again.add(self.X[i], self.y[i]) for i in run.indices.tolist()]
        np.testing.assert_allclose(run.bounds, bounds[3:], rtol=1e-6, atol=1e-9)
        for indices in seen:
            assert indices == run.indices[: len(indices)].tolist()


class SharedComposition(Shared):
    writes = 60

    def __init__(self):
        self.both = Stopper(window=40) | (Stopper(patience=2) & FixedBudget(200))
        self.reads = itertools.count()

    @staticmethod
    def bounds(state):
        """Bounds of both stoppers, and what the budget counted."""
        one, inner = state["members"]
        other, budget = inner["members"]
        return one["bounds"], other["bounds"], budget["seen"]

    def write(self, k):
        if k % 3:
            self.both.push(k + 0.5)
            return [k + 0.5]
        mean = np.array([1e3, 2e3]) + k
        before = self.both.update(mean, 1.0, 0.0, 1.0)
        assert before in (True, False)
        return [float(one) for one in self.as_bounds(mean)]

    @staticmethod
    def as_bounds(mean):
        from fastal import gp_kl

        return gp_kl(mean, 1.0, 0.0, 1.0)

    def read(self):
        if next(self.reads) % 2:
            assert isinstance(self.both.verdict.reason, str)
            state = pickle.loads(pickle.dumps(self.both)).to_dict()
        else:
            state = self.both.to_dict()
        one, other, seen = self.bounds(state)
        assert one == other
        assert len(one) == seen
        return one

    def check(self, taken, seen):
        bounds, other, count = self.bounds(self.both.to_dict())
        assert bounds == other
        assert count == len(bounds)
        assert sorted(bounds) == sorted(taken)
        again = Stopper(window=40) | (Stopper(patience=2) & FixedBudget(200))
        for r in bounds:
            again.push(r)
        assert again.stopped_at == self.both.stopped_at
        for one in seen:
            assert one == bounds[: len(one)]


class SharedStopper(Shared):
    """Also `observe`: label and bound stay together, and in order."""

    writes = 60

    def __init__(self):
        self.stopper = Stopper(gp=GaussianProcess(0.5, 0.1), noise=1.0)

    def write(self, k):
        rng = np.random.default_rng(k)
        if k % 3 == 0:
            done = attempt(lambda: self.stopper.observe(rng.uniform(0, 5), rng.normal()))
            return [] if done is None else ["observed"]
        if k % 3 == 1:
            done = attempt(lambda: self.stopper.push(1000.0 + k))
            return [] if done is None else [1000.0 + k]
        values = (2000.0 + k + np.arange(5) / 8).tolist()
        return attempt(lambda: (self.stopper.extend(values), values)[1]) or []

    def read(self):
        return attempt(lambda: self.stopper.bounds.tolist()) or []

    def check(self, taken, seen):
        bounds = self.stopper.bounds.tolist()
        gp = self.stopper.gp
        assert len(bounds) == len(taken)
        pushed = [r for r in bounds if r >= 1000]
        assert sorted(pushed) == sorted(value for value in taken if value != "observed")
        assert gp.n_labels == taken.count("observed")
        labels = gp.to_dict()
        again = GaussianProcess(0.5, 0.1)
        observed = [
            again.add(np.multiply(x, 0.5), y)
            for x, y in zip(labels["scaled_inputs"], labels["labels"], strict=True)
        ]
        np.testing.assert_allclose([r for r in bounds if r < 1000], observed, rtol=1e-9)
        replayed = Stopper()
        replayed.extend(bounds)
        assert (replayed.stopped_at, replayed.n_runs) == (
            self.stopper.stopped_at,
            self.stopper.n_runs,
        )
        for one in seen:
            assert one == bounds[: len(one)]


class SharedBatch(Shared):
    writes = 60

    def __init__(self):
        self.batch = StopperBatch(3)

    def write(self, k):
        where = [True, k % 2 == 0, True]
        done = attempt(lambda: self.batch.push([k, k + 0.25, k + 0.5], where=where))
        return [] if done is None else [k]

    def read(self):
        return attempt(lambda: self.batch.n.tolist()) or [0]

    def check(self, taken, seen):
        first = self.batch.bounds(0).tolist()
        assert sorted(first) == sorted(taken)
        assert self.batch.bounds(2).tolist() == [value + 0.5 for value in first]
        assert self.batch.bounds(1).tolist() == [value + 0.25 for value in first if value % 2 == 0]
        again = Stopper()
        again.extend(first)
        assert self.batch.stopped_at[0] == (again.stopped_at or -1)
        for n in seen:
            assert max(n) <= len(taken)


class SharedTracker(Shared):
    writes = 100

    def __init__(self):
        self.tracker = RunsTracker()

    def write(self, k):
        if k % 4:
            done = attempt(lambda: self.tracker.push(float(k)))
            return [] if done is None else [float(k)]
        values, out = np.arange(50) / 64 + k, np.empty(50, dtype=np.uint8)
        return attempt(lambda: (self.tracker.extend(values, out), values.tolist())[1]) or []

    def values(self):
        out = np.empty(self.tracker.n_pushed)
        self.tracker.values(out)
        return out

    def read(self):
        return attempt(lambda: (self.tracker.n_runs, self.tracker.median))

    def check(self, taken, seen):
        values = self.values()
        assert sorted(values.tolist()) == sorted(taken)
        again = RunsTracker()
        again.extend(values, np.empty(len(values), dtype=np.uint8))
        assert (again.n_runs, again.median) == (self.tracker.n_runs, self.tracker.median)


SHARED = {
    "GaussianProcess": SharedProcess,
    "LaplaceClassifier": SharedClassifier,
    "ActiveLearner": SharedLearner,
    "composition": SharedComposition,
    "Stopper": SharedStopper,
    "StopperBatch": SharedBatch,
    "RunsTracker": SharedTracker,
}


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("name", SHARED)
def test_threads_write_and_read_at_once(name):
    for _ in range(1 if config.DISABLE_JIT else 3):
        stress(SHARED[name]())


@pytest.mark.long
@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("name", SHARED)
def test_ten_seconds_of_it(name):
    end, rounds = time.monotonic() + 10, 0
    while time.monotonic() < end:
        stress(SHARED[name]())
        rounds += 1
    assert rounds > 0


@pytest.mark.usefixtures("restless")
def test_a_classifier_that_compares_covariances():
    stress(SharedClassifier(kappa=0.01, link="probit"))


@pytest.mark.usefixtures("restless")
def test_learners_of_other_kinds(monkeypatch):
    stress(SharedLearner(LaplaceClassifier(1.0, amplitude=4.0)))
    monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    stress(SharedLearner(stopper=Stopper()))


@pytest.mark.usefixtures("restless")
def test_first_labels_of_a_process_at_once():
    # The first one fixes the number of features: those of the others fit, or are refused.
    for _ in range(30):
        gp, taken = GaussianProcess(), []

        def add(d, gp=gp, taken=taken):
            for k in range(5):
                call = partial(gp.add, np.full(d, float(k)), 0.1 * k)
                if attempt(call, "must be one input of", kind=ValueError) is not None:
                    taken.append(d)

        together(*(lambda d=d: add(d) for d in (1, 2, 1, 2)))
        assert len(set(taken)) == 1
        assert gp.n_labels == len(taken)
        assert gp.drift() < 1e-13


@pytest.mark.usefixtures("restless")
def test_first_labels_of_a_classifier_at_once():
    for _ in range(10):
        model, taken = LaplaceClassifier(), []

        def add(negative, model=model, taken=taken):
            for k in range(3):
                call = partial(model.add, float(k), negative)
                if attempt(call, "must not mix -1 and 0", kind=ValueError) is not None:
                    taken.append(negative)

        together(*(lambda negative=negative: add(negative) for negative in (-1, 0, -1, 0)))
        assert len(set(taken)) == 1
        assert set(model.to_dict()["labels"]) == set(taken)
        assert model.n_labels == len(taken)


def sequences(n=24):
    rng = np.random.default_rng(8)
    X, y = rng.uniform(0, 4, (n, 2)), rng.normal(size=n)
    return X, y, np.r_[y[:6], -y[6:]]


@pytest.mark.usefixtures("restless")
def test_reading_while_labels_are_taken_back():
    X, y, other = sequences()
    gp, writing, seen = GaussianProcess(1.0, 0.1), [True], []
    looks = (
        lambda gp: gp.log_marginal_likelihood(),
        lambda gp: float(gp.predict(X[:3]).sum()),
        lambda gp: float(gp.predict(X[:3], return_var=True)[0].sum()),
        lambda gp: float(gp.predict(X[:3], return_cov=True)[0].sum()),
        lambda gp: pac_bayes_bound(gp, 1.0) if gp.n_labels else 0.0,
        lambda gp: cross_validation_error(gp, 3) if gp.n_labels > 5 else 0.0,
        lambda gp: gp.copy().log_marginal_likelihood(),
        lambda gp: pickle.loads(pickle.dumps(gp)).log_marginal_likelihood(),
    )
    gp.add_batch(X[:6], y[:6])

    def write():
        for k in range(60):
            labels = other if k % 2 else y
            gp.rewind(6)
            if k % 3:
                gp.add_batch(X[6:], labels[6:])
            else:
                for x, label in zip(X[6:], labels[6:], strict=True):
                    gp.add(x, label)
            if k % 5 == 0:
                gp.refresh()
        writing[0] = False

    def read(first):
        for k in itertools.count(first):
            kind = k % len(looks)
            seen.append((kind, looks[kind](gp)))
            assert gp.copy().drift() < 1e-13
            if not writing[0]:
                return

    together(write, lambda: read(0), lambda: read(3))
    known = {kind: [] for kind in range(len(looks))}
    for labels in (y, other):
        again = GaussianProcess(1.0, 0.1)
        again.add_batch(X[:6], labels[:6])
        for n in range(6, len(y) + 1):
            for kind, look in enumerate(looks):
                known[kind].append(look(again))
            if n < len(y):
                again.add(X[n], labels[n])
    for kind, value in seen:
        belongs(value, known[kind])


@pytest.mark.usefixtures("restless")
def test_reading_a_classifier_while_labels_are_taken_back():
    X, y, other = (values[:12] for values in sequences())
    y, other = np.sign(y), np.sign(other)
    model, writing, seen = LaplaceClassifier(1.0, amplitude=3.0), [True], []
    model.add_batch(X[:6], y[:6])

    def write():
        for k in range(25):
            model.rewind(6)
            model.add_batch(X[6:], (other if k % 2 else y)[6:])
        writing[0] = False

    def read():
        while writing[0]:
            seen.append(model.log_marginal_likelihood())
            seen.append(LaplaceClassifier.from_dict(model.to_dict()).log_marginal_likelihood())

    together(write, read, read)
    known = []
    for labels in (y, other):
        again = LaplaceClassifier(1.0, amplitude=3.0)
        again.add_batch(X[:6], labels[:6])
        known.append(again.log_marginal_likelihood())
        again.add_batch(X[6:], labels[6:])
        known.append(again.log_marginal_likelihood())
    for value in seen:
        belongs(value, known)


@pytest.mark.usefixtures("restless")
def test_weights_belong_to_their_labels():
    # A reader used to keep weights of the labels before, after a writer had thrown them away.
    X, y, _ = sequences(60)
    gp = GaussianProcess(1.0, 0.1)
    writing = [True]

    def write():
        for x, label in zip(X, y, strict=True):
            gp.add(x, label)
        writing[0] = False

    def read():
        while writing[0]:
            gp.predict(X[:2])

    together(write, read, read, read)
    alone = GaussianProcess(1.0, 0.1)
    alone.add_batch(X, y)
    np.testing.assert_allclose(gp.predict(X), alone.predict(X), rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("restless")
def test_a_fit_while_another_thread_adds():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 5, 30), rng.normal(size=30)
    for _ in range(5):
        gp = GaussianProcess()
        fit = partial(gp.fit_hyperparameters, X, y, restarts=1)
        together(
            partial(attempt, fit, "needs a process without labels", kind=ValueError),
            partial(gp.add, 0.5, 0.1),
        )
        assert gp.n_labels == 1
        alone = GaussianProcess(gp.lengthscale, gp.noise)
        alone.add(0.5, 0.1)
        assert gp.log_marginal_likelihood() == alone.log_marginal_likelihood()


# criteria -----------------------------------------------------------------------------------------

AHEAD = forecast(np.linspace(0, 10, 40), GaussianProcess(1.0, 0.1), labelled=[0])

CRITERIA = {
    "FixedBudget": (lambda: FixedBudget(77), lambda c, k: c.push(1.0)),
    "FixedBudget.update": (lambda: FixedBudget(10_000), lambda c, k: c.update(k)),
    "MinLabels": (lambda: MinLabels(77), lambda c, k: c.push(1.0)),
    "MaxVariance": (lambda: MaxVariance(1e-9), lambda c, k: c.update([k + 1.0])),
    "CrossValidation": (lambda: CrossValidation(-1.0), lambda c, k: c.push(k + 1.0)),
    "ErrorStability": (lambda: ErrorStability(0.01), lambda c, k: c.update(k + 1.0)),
    "OverallUncertainty": (lambda: OverallUncertainty(1e-9), lambda c, k: c.push(k + 1.0)),
    "StabilizingPredictions": (
        lambda: StabilizingPredictions(),
        lambda c, k: c.update(np.arange(20) % 7 > k % 7),
    ),
    "LookAhead": (lambda: LookAhead(0.05).begin(AHEAD), lambda c, k: c.update(0.0, 1.0, 0.3)),
    "LookAhead.push": (lambda: LookAhead(0.5).begin(AHEAD), lambda c, k: c.push(1.0)),
    "extend": (lambda: MaxVariance(1e-9), lambda c, k: c.extend([k + 1.0])),
}


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("name", CRITERIA)
def test_no_step_of_a_criterion_is_lost(name):
    make, step = CRITERIA[name]
    criterion, numbers, writing = make(), itertools.count(), [True] * 4

    def write(me):
        for _ in range(100):
            step(criterion, next(numbers))
        writing[me] = False

    def read():
        while any(writing):
            state = criterion.to_dict()
            new = Criterion.from_dict(state)
            assert new.to_dict() == state
            verdict = criterion.verdict
            assert verdict.stop == (verdict.n > 0)
            assert len(pickle.loads(pickle.dumps(criterion)).history) <= 400

    together(*(lambda me=me: write(me) for me in range(4)), read)
    assert len(criterion.history) == 400
    alone = make()
    for k in range(400):
        step(alone, k)
    if name != "StabilizingPredictions":  # what it measures depends on the order
        assert sorted(criterion.history) == sorted(alone.history)
        assert criterion.stopped == alone.stopped
    else:
        assert np.isnan(criterion.history).sum() == 1
    if name == "LookAhead":
        assert criterion.rho == pytest.approx(alone.rho, rel=1e-12)


@pytest.mark.usefixtures("restless")
def test_reading_while_a_criterion_is_reset():
    criterion, writing = ErrorStability(0.5), [True]

    def write():
        for k in range(300):
            criterion.push(4.0)
            criterion.push(1e-9)
            assert criterion.stopped_at == 2
            criterion.reset()
            assert k < 300
        writing[0] = False

    def read():
        while writing[0]:
            said = str(criterion.verdict)
            assert said in {
                "go on: no error bound relative to the first yet",
                "go on: error bound relative to the first (1) is above 0.5",
                str(stopped),
            }

    alone = ErrorStability(0.5)
    alone.extend([4.0, 1e-9])
    stopped = alone.verdict
    together(write, read, read)


# from within ----------------------------------------------------------------------------------------


def inside_a_warning(call, hook):
    """Call something that warns, with a hook for warnings; return what the hook raised."""
    raised = []

    def show(*_, **__):
        try:
            hook()
        except RuntimeError as error:
            raised.append(str(error))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        call()
    return raised


@pytest.mark.parametrize(
    "hook",
    [
        lambda gp: gp.add(0.0, 0.1),
        lambda gp: gp.add_batch([0.0], [0.1]),
        lambda gp: gp.rewind(0),
        lambda gp: gp.refresh(),
    ],
)
def test_a_hook_for_warnings_that_changes_the_process(hook):
    gp = GaussianProcess()
    gp.add(1.0, 0.5)
    raised = inside_a_warning(lambda: gp.add(2.0, 1e3), lambda: hook(gp))
    assert len(raised) == 1
    assert "cannot be changed again from within" in raised[0]
    assert gp.to_dict()["labels"] == [0.5, 1e3]


def test_a_hook_for_warnings_that_reads():
    gp, read = GaussianProcess(), []
    assert inside_a_warning(lambda: gp.add(0.0, 1e3), lambda: read.append(gp.copy().n_labels)) == []
    assert read == [0]
    stopper = Stopper(gp=GaussianProcess())
    raised = inside_a_warning(lambda: stopper.observe(0.0, 1e3), lambda: stopper.observe(1.0, 0.0))
    assert len(raised) == 1
    assert (len(stopper), stopper.gp.n_labels) == (1, 1)


def test_a_criterion_that_goes_on_from_within():
    class Eager(MaxVariance):
        def _passes(self, value):
            return self.push(value)

    criterion = Eager(0.5)
    with pytest.raises(RuntimeError, match="cannot be changed again from within"):
        criterion.push(1.0)
    assert criterion.history.size == 0
    assert isinstance(criterion, Measured)


class Mine(Criterion):
    """A user's: no super().__init__, and a way of its own to copy."""

    def __init__(self, calls=None):
        self.values = []
        self.calls = calls

    def push(self, r):
        if self.calls is not None:
            self.calls(r)
        self.values.append(r)
        return self.stopped

    def reset(self):
        self.values = []
        return self

    @property
    def stopped_at(self):
        return 3 if len(self.values) >= 3 else None

    @property
    def reason(self):
        return f"{len(self.values)} values"

    @property
    def history(self):
        return self.values

    def to_dict(self):
        return {"kind": "Mine", "version": 1, "values": list(self.values)}

    @classmethod
    def _from_state(cls, state):
        new = cls()
        new.values = state["values"]
        return new


class Slotted(Mine):
    __slots__ = ("extra",)


def test_criteria_of_users():
    mine = Mine()
    assert mine.extend([1.0, 2.0]) is None
    both = mine | FixedBudget(5)
    both.push(3.0)
    assert (both.stopped_at, str(both.verdict)) == (3, "stop after 3 bounds: 3 values")
    assert vars(mine) == {"values": [1.0, 2.0, 3.0], "calls": None}
    for new in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), mine.copy()):
        assert vars(new) == vars(mine)
        new.push(4.0)
        assert len(mine.values) == 3
    new = pickle.loads(pickle.dumps(both))
    new.push(4.0)
    assert (len(new.history[0]), len(both.history[0])) == (4, 3)
    slotted = Slotted()
    slotted.extra = 5
    again = pickle.loads(pickle.dumps(slotted))
    assert (again.extra, again.values) == (5, [])
    assert (again & FixedBudget(1)).push(1.0) is False


def test_a_member_that_pushes_to_all():
    mine = Mine(lambda r: both.push(r))
    both = mine | FixedBudget(5)
    with pytest.raises(RuntimeError, match="cannot be changed again from within"):
        both.push(1.0)
    assert len(mine.values) == 0
    assert len(both.members[1].history) == 0


# copies have locks of their own -----------------------------------------------------------------------


def objects():
    X = np.linspace(0, 5, 20)
    process, model = GaussianProcess(), LaplaceClassifier()
    process.add(0.0, 0.5)
    model.add(0.0, 1)
    learner = ActiveLearner(X, gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), seed=0)
    for _ in range(3):
        learner.tell(float(np.sin(X[learner.ask()])))
    yield process, lambda one: one.add(1.0, 0.2), lambda one: one.n_labels
    yield model, lambda one: one.add(1.0, 1), lambda one: one.n_labels
    yield learner, lambda one: one.tell(0.1), lambda one: one.n_labels
    for criterion in (FixedBudget(9), MaxVariance(1e-3), LookAhead().begin(AHEAD), Mine()):
        yield criterion, lambda one: one.push(1.0), lambda one: len(one.history)
    yield Stopper(), lambda one: one.push(1.0), len
    yield Stopper() | FixedBudget(5), lambda one: one.push(1.0), lambda one: len(one.members[0])


@pytest.mark.parametrize("place", range(9))
def test_a_copy_of_what_is_being_changed_is_free(place):
    one, change, size = list(objects())[place]
    before = size(one)
    with one._turn():
        assert one._writing is not None
        made = [copy.deepcopy(one), pickle.loads(pickle.dumps(one))]
        made += [one.copy()] if hasattr(one, "copy") else []
        made += [] if isinstance(one, Mine) else [copy.copy(one)]  # as the user's class has it
    assert b"OneWriter" not in pickle.dumps(one)
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with one._turn():
            inside.set()
            assert leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(60)
    for new in made:
        assert new._writing is None or new._writing is not one._writing
        change(new)  # would wait for ever
        assert size(new) == before + 1
    assert size(one) == before
    leave.set()
    thread.join()
    change(one)
    assert size(one) == before + 1


def test_a_lock_is_not_saved():
    writer = OneWriter()
    with writer.turn():
        for new in (pickle.loads(pickle.dumps(writer)), copy.copy(writer), copy.deepcopy(writer)):
            assert new is not writer
            with new.turn():
                pass
        with pytest.raises(RuntimeError, match="cannot be changed again"):
            writer.turn()
        with writer:  # looking is allowed
            pass
    with writer.turn():
        pass


# learners ---------------------------------------------------------------------------------------------


def test_a_label_that_comes_too_late():
    X = np.linspace(0, 5, 20)
    learner = ActiveLearner(X, gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), seed=0)
    index = learner.ask()
    together(lambda: learner.tell(1.5))  # another thread, which did not ask: of the point asked for
    assert learner.run().indices.tolist() == [index]
    with pytest.raises(RuntimeError, match=f"point {index} has been labelled meanwhile"):
        learner.tell(0.5)
    assert learner.run().labels.tolist() == [1.5]
    other = learner.ask()
    learner.tell(0.5)
    learner.tell(0.25)  # told without being asked: the next one
    assert learner.run().indices.tolist()[:2] == [index, other]
    assert learner.run().labels.tolist() == [1.5, 0.5, 0.25]


def test_an_oracle_that_tells():
    X = np.linspace(0, 5, 20)
    kept = []

    def oracle(index, x):
        if kept and kept[0].n_labels == 4:
            kept[0].tell(7.0)
        return float(np.sin(x[0]))

    with pytest.raises(RuntimeError, match="has been labelled meanwhile") as caught:
        learn(
            X, oracle, gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), seed=0,
            on_label=lambda learner: kept or kept.append(learner),
        )  # fmt: skip
    run = caught.value.run
    assert run.n_labels == 5
    assert run.labels[-1] == 7.0
    assert run.labels[:-1].tolist() == np.sin(X[run.indices[:-1]]).tolist()


def test_oracles_and_callbacks_may_read():
    X = np.linspace(0, 10, 30)
    kept, runs = [], []

    def oracle(index, x):
        if kept:
            runs.append(kept[0].run())
            assert kept[0].model.n_labels == kept[0].n_labels
        return float(np.sin(x[0]))

    def look(learner):
        kept[:] = [learner]
        assert learner.to_dict()["asked"] is None
        runs.append(learner.run((X, np.sin(X))))

    def acquisition(mean, var):
        assert kept[0].unlabelled.any()
        runs.append(kept[0].run())
        return var

    run = learn(
        X, oracle, gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), seed=0, on_label=look,
        max_labels=12, acquisition=acquisition,
    )  # fmt: skip
    assert run.n_labels == 12
    for one in runs:
        n = one.n_labels
        assert one.indices.tolist() == run.indices[:n].tolist()
        assert one.stopper.bounds.tolist() == one.bounds.tolist() == run.bounds[: n - 1].tolist()
    kept[0].max_labels = 30
    kept[0].tell(0.0)
    assert (run.n_labels, len(run.stopper)) == (12, 11)  # later labels do not change it


def test_an_acquisition_that_tells():
    X = np.linspace(0, 10, 30)

    def acquisition(mean, var):
        learner.tell(0.0)

    learner = ActiveLearner(
        X, gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), acquisition=acquisition, seed=0
    )
    learner.tell(0.5)
    with pytest.raises(RuntimeError, match="cannot be changed again from within"):
        learner.ask()
    assert learner.n_labels == 1


def test_a_run_that_two_resume():
    X = np.linspace(0, 10, 40)
    run = learn(X, np.sin(X), gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), max_labels=5, seed=0)
    inside, leave, longer = threading.Event(), threading.Event(), []

    def oracle(index, x):
        inside.set()
        assert leave.wait(60)
        return float(np.sin(x[0]))

    thread = threading.Thread(target=lambda: longer.append(run.resume(oracle, max_labels=9)))
    thread.start()
    assert inside.wait(60)
    with pytest.raises(RuntimeError, match="the run is going on already"):
        run.resume(max_labels=9)
    leave.set()
    thread.join()
    assert longer[0].n_labels == 9
    assert run.n_labels == 5
    with pytest.raises(ValueError, match="resumed already"):
        run.resume()
    assert longer[0].resume(max_labels=12).n_labels == 12


@pytest.mark.usefixtures("restless")
def test_reading_during_a_compiled_run(monkeypatch):
    monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 10, (600, 2)), rng.normal(size=600)
    run = learn(
        X, y, gp=GaussianProcess(0.3, 0.1), stopper=Stopper(alpha=1e-12), max_labels=20, seed=0
    )
    seen, going, longer = [], [True], []

    def resume():
        longer.append(run.resume(max_labels=300))
        going[0] = False

    def read():
        while going[0]:
            seen.append(run._learner.run().n_labels)
            seen.append(len(run._learner.to_dict()["labels"]))

    together(resume, read)
    assert set(seen) <= {20, 300}
    alone = learn(
        X, y, gp=GaussianProcess(0.3, 0.1), stopper=Stopper(alpha=1e-12), max_labels=300, seed=0
    )
    assert (longer[0].bounds == alone.bounds).all()


# Ctrl-C -------------------------------------------------------------------------------------------------


# Python looks for signals when it enters a function, after a call, and when a loop begins again.
CALLS = ("CALL", "JUMP_BACKWARD", "RESUME")


def handler(code, place):
    """Return where an exception at this instruction goes."""
    entries = dis._parse_exception_table(code)
    return next((one.target for one in entries if one.start <= place < one.end), None)


def interrupted_at(place, call, files):
    """Call something with Ctrl-C at one point of some files; return whether it came."""
    left, came, before, last = [place], [], sys.gettrace(), {}

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            # What is raised at the end of a call belongs to the call: elsewhere it would go to
            # another handler than Ctrl-C does.
            code, now = frame.f_code, frame.f_lasti
            was = last.get(frame, now)
            looked = dis.opname[code.co_code[was]].startswith(CALLS)
            looked = looked and handler(code, was) == handler(code, now)
            last[frame] = now
        else:
            looked = event == "call"
        if looked and not came:
            left[0] -= 1
            if left[0] < 0:
                came.append(event)
                raise KeyboardInterrupt
        return trace

    try:
        sys.settrace(trace)
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
        last.clear()
    return bool(came)


def test_ctrl_c_while_labels_are_added():
    files = {module.__file__ for module in (buffers, gp, growing)}
    X, y, _ = sequences(70)
    for call in (
        lambda one: one.add(X[64], y[64]),
        lambda one: one.add_batch(X[64:67], y[64:67]),
        lambda one: one.add_batch(X[64:], -y[64:]),
        lambda one: one.rewind(60),
        lambda one: one.refresh(),
    ):
        base = GaussianProcess(1.0, 0.1)
        base.add_batch(X[:64], y[:64])
        full = base.copy()
        call(full)
        known = {64: base.log_marginal_likelihood()}
        known |= {full.n_labels: full.log_marginal_likelihood()}
        for place in itertools.count():
            one = base.copy()
            if not interrupted_at(place, partial(call, one), files):
                break
            assert one.log_marginal_likelihood() == pytest.approx(known[one.n_labels], rel=1e-12)
            assert one.drift() < 1e-12
            one.add(X[69], 0.5)  # the turn is free
        assert place >= 4


@pytest.mark.parametrize("kind", ["eager", "lazy", "classes", "composition"])
def test_ctrl_c_while_a_label_is_told(kind, monkeypatch):
    monkeypatch.setattr(choose, "EAGER_BELOW", 0 if kind == "lazy" else 2048)
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (40, 1))
    y, model = np.sin(X[:, 0]), GaussianProcess(1.0, 0.1)
    if kind == "classes":
        y, model = (y > 0).astype(float), LaplaceClassifier(1.0, amplitude=4.0)
    stopper = Stopper() | FixedBudget(100) if kind == "composition" else Stopper()
    start = ActiveLearner(X, gp=model, stopper=stopper, seed=0)
    for _ in range(15):  # the next label fills a panel
        start.tell(y[start.ask()])
    files = {module.__file__ for module in (learner, eager, gaussian, lazy)}
    full = copy.copy(start)
    for _ in range(4):
        full.tell(y[full.ask()])
    for place in itertools.count():
        one = copy.copy(start)
        index = one.ask()
        if not interrupted_at(place, lambda one=one, i=index: one.tell(y[i]), files):
            break
        n, run = one.n_labels, one.run()
        assert n in (15, 16), place
        assert (run.labels == y[run.indices]).all()
        assert len(run.bounds) == n - 1
        assert one._selection.n_labels == n
        for _ in range(19 - n):
            one.tell(y[one.ask()])
        run = one.run()
        assert (run.indices == full.run().indices).all(), place
        np.testing.assert_allclose(run.bounds, full.run().bounds, rtol=1e-7, atol=1e-12)
        if kind != "composition":  # a member may have got a bound before the other
            np.testing.assert_allclose(run.stopper.bounds, run.bounds, rtol=0, atol=0)
    assert place > 20


def test_ctrl_c_between_a_label_and_its_bound():
    from fastal.stopping import stopper as module

    for place in itertools.count():
        one = Stopper(gp=GaussianProcess())
        one.observe(0.0, 0.5)
        if not interrupted_at(place, lambda one=one: one.observe(1.0, 0.25), {module.__file__}):
            break
        assert len(one) == one.gp.n_labels, place
        one.observe(2.0, 0.1)
        assert len(one) == one.gp.n_labels
    assert place > 5


def test_an_error_in_a_panel_shared_out(monkeypatch):
    # As by Ctrl-C while threads complete a panel: some blocks are done, others are not.
    monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 10, (1300, 2)), rng.normal(size=1300)
    settings = {"gp": GaussianProcess(0.5, 0.1), "stopper": Stopper(alpha=1e-12), "seed": 0}
    alone = learn(X, y, max_labels=60, threads=1, **settings)
    complete = selection_lazy.complete_rows
    calls = itertools.count()

    def broken(*arguments):
        if next(calls) == 1:
            raise KeyboardInterrupt
        complete(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(selection_lazy, "complete_rows", broken)
        with pytest.raises(KeyboardInterrupt) as caught:
            learn(X, y, max_labels=60, threads=2, **settings)
    run = caught.value.run
    assert 0 < run.n_labels < 60
    assert (run.resume(y, max_labels=60).bounds == alone.bounds).all()


# forks --------------------------------------------------------------------------------------------------

CHILD = """
import os, threading
import numpy as np
from fastal import GaussianProcess, LaplaceClassifier, MaxVariance
gp, model, criterion = GaussianProcess(), LaplaceClassifier(), MaxVariance(0.1)
gp.add(0.0, 1.0)
model.add(0.0, 1)
inside, leave = threading.Event(), threading.Event()

def hold():
    with gp._turn(), model._turn(), criterion._turn():
        inside.set()
        leave.wait()

thread = threading.Thread(target=hold)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    gp.add(1.0, 0.5)
    model.add(1.0, -1)
    criterion.push(1.0)
    with gp._turn():
        inner = os.fork()     # by the thread that has the turn: it keeps it
        if inner == 0:
            try:
                gp.add(2.0, 0.5)
            except RuntimeError:
                os._exit(0)
            os._exit(1)
        wrong = os.waitpid(inner, 0)[1]
    os._exit(wrong or (gp.n_labels, model.n_labels, len(criterion.history)) != (2, 2, 1))
wrong = os.waitpid(child, 0)[1]
leave.set()
thread.join()
gp.add(1.0, 0.5)
print(wrong, gp.n_labels)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_while_another_thread_has_the_turn():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CHILD],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0 2\n", "")
