"""Models, learners, stoppers and trackers that threads share: nothing is lost or half written."""

import itertools
import pickle
import time
from functools import partial

import numpy as np
import pytest
from numba import config
from shared_objects import Shared, attempt, sequences, stress, together

from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    LaplaceClassifier,
    Stopper,
    StopperBatch,
)
from fastal._core.tracker import RunsTracker
from fastal.criteria import (
    cross_validation_error,
    pac_bayes_bound,
)
from fastal.learning import choose


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
