"""Campaigns in which anything happens in any order, compared with their definition after each step."""

import copy
import json
import pickle

import numpy as np
import pytest
from numba import config

from fastal import ActiveLearner, FixedBudget, GaussianProcess, MovementBelow, Stopper
from fastal.learning import choose


class Day:
    """A labelling day: a learner, what was said to it, and what must be true of it."""

    def __init__(self, seed, gp, acquisition):
        self.rng = rng = np.random.default_rng(seed)
        self.X = rng.uniform(0, 4, (int(rng.integers(12, 30)), int(rng.integers(1, 4))))
        self.given, self.acquisition = gp, acquisition
        stopper = [
            MovementBelow(0.1), Stopper(0.05), MovementBelow(0.1) | FixedBudget(14),
            MovementBelow(0.2) & Stopper(0.5),
        ][int(rng.integers(4))]  # fmt: skip
        self.initial = int(rng.integers(5, 8))
        self.rows, self.labels, self.noises, self.skipped = [], {}, {}, []
        known = rng.permutation(len(self.X))[: int(rng.integers(0, 9))]
        for row in known.tolist():
            self.note(row, self.label())
        self.learner = ActiveLearner(
            self.X, gp=gp, criterion=stopper, initial=self.initial, seed=seed,
            acquisition=acquisition, refit=None if gp is None or rng.random() < 0.5 else 1.3,
            known=(known, [self.labels[row] for row in known.tolist()]),
        )  # fmt: skip
        self.stopped_at = self.learner.criterion.stopped_at

    def label(self):
        return float(self.rng.normal(3.0, 1.0))

    def note(self, row, y, noise=None):
        if y is None:
            if row not in self.skipped:
                self.skipped.append(row)
            return
        if row in self.skipped:
            self.skipped.remove(row)
        self.rows.append(row)
        self.labels[row] = y
        if noise is not None:
            self.noises[row] = noise

    def free(self):
        return [row for row in range(len(self.X)) if row not in self.labels]

    def answers(self, n):
        return [None if self.rng.random() < 0.15 else self.label() for _ in range(n)]

    # what may happen

    def ask(self):
        one = self.learner
        if len(one.pending) or one.n_labels >= one.most_labels:
            return
        n = int(self.rng.integers(1, 6))
        rows = one.ask(n)
        assert rows.tolist() == one.ask(n).tolist() == one.pending.tolist()
        assert len(rows) == min(n, one.most_labels - one.n_labels)
        t = one.n_labels
        if self.acquisition == "max_variance" and one.prior is not None:
            model = one.model.copy()
            for i, row in enumerate(rows.tolist()):
                if t + i >= self.initial:
                    var = model.predict(self.X, return_var=True)[1]
                    var[self.rows + self.skipped + rows[:i].tolist()] = -1.0
                    assert var[row] >= var.max() * (1 - 1e-7), (t, i)
                model.add(self.X[row], model.mean)

    def tell(self):
        rows = self.learner.pending.tolist()
        if rows:
            answers, noise = self.answers(len(rows)), None
            if self.rng.random() < 0.2:
                noise = self.rng.uniform(0.1, 2.0, len(rows))
            single = len(rows) == 1 and self.rng.random() < 0.5
            if single:
                noise = None if noise is None else float(noise[0])
            self.learner.tell(answers[0] if single else answers, noise=noise)
            for i, (row, y) in enumerate(zip(rows, answers, strict=True)):
                self.note(row, y, None if noise is None else float(np.atleast_1d(noise)[i]))

    def tell_some(self):
        rows = self.learner.pending
        if len(rows):
            rows = self.rng.permutation(rows)[: int(self.rng.integers(1, len(rows) + 1))]
            answers = self.answers(len(rows))
            self.learner.tell(answers, index=rows)
            for row, y in zip(rows.tolist(), answers, strict=True):
                self.note(row, y)

    def tell_any(self):
        if self.learner.n_labels < self.learner.max_labels:
            row, (y,) = int(self.rng.choice(self.free())), self.answers(1)
            self.learner.tell(y, index=row)
            self.note(row, y)

    def correct(self):
        if self.rows:
            row, y = int(self.rng.choice(self.rows)), self.label()
            self.learner.correct(row, y)
            self.labels[row] = y

    def extend(self):
        if len(self.X) < 45:
            new = self.rng.uniform(0, 5, (int(self.rng.integers(1, 6)), self.X.shape[1]))
            n = len(self.X)
            assert self.learner.extend_pool(new).tolist() == list(range(n, n + len(new)))
            self.X = np.vstack([self.X, new])

    def keep(self):
        before = self.learner
        self.learner = {
            0: lambda: ActiveLearner.from_dict(json.loads(json.dumps(before.to_dict())), self.X),
            1: lambda: pickle.loads(pickle.dumps(before)),
            2: lambda: copy.copy(before),
        }[int(self.rng.integers(3))]()
        assert self.learner.to_dict() == before.to_dict()

    def refuse(self):
        before = json.dumps(self.learner.to_dict())
        for call in (
            lambda one: one.tell([1.0] * (len(one.pending) + 60)),
            lambda one: one.tell("a"),
            lambda one: one.tell(1.0, index=len(self.X)),
            lambda one: one.tell(1.0, index=0, noise=-1.0),
            lambda one: one.correct(0, float("nan")),
            lambda one: one.extend_pool([[np.nan] * self.X.shape[1]]),
            lambda one: one.ask(0),
        ):
            with pytest.raises((ValueError, TypeError)):
                call(self.learner)
        assert json.dumps(self.learner.to_dict()) == before

    # what must be true

    def check(self):
        one = self.learner
        run = one.run()
        assert run.indices.tolist() == self.rows
        assert run.labels.tolist() == [self.labels[row] for row in self.rows]
        assert one.skipped.tolist() == self.skipped
        left = np.ones(len(self.X), dtype=bool)
        left[self.rows + self.skipped] = False
        assert (one.unlabelled == left).all()
        assert left[one.pending].all()
        assert one.max_labels == len(self.X)
        assert one.most_labels == len(self.X) - len(self.skipped)
        n_bounds = max(0, len(self.rows) - self.initial) if one.prior is not None else 0
        assert len(one.bounds) == n_bounds
        members = getattr(one.criterion, "members", [one.criterion])
        for member in members:
            if not isinstance(member, FixedBudget):
                np.testing.assert_allclose(member.bounds, one.bounds, rtol=1e-9, atol=1e-12)
        if self.stopped_at is not None:  # for ever
            assert one.criterion.stopped_at == self.stopped_at
        self.stopped_at = one.criterion.stopped_at
        if one._refits is not None:
            counts = [fit.n_labels for fit in one.refits]
            assert counts == sorted(counts)
            if not len(one.pending) and len(self.rows) >= max(5, self.initial):
                assert counts
                assert one._refits.next_at > len(self.rows)
        if one.prior is None:
            return
        prior = one.prior
        model = GaussianProcess(
            prior.lengthscale, prior.noise, amplitude=prior.amplitude, mean=prior.mean
        ).copy(quiet=True)
        if self.rows:
            noise = [self.noises.get(row, prior.noise) for row in self.rows]
            bounds = model.add_batch(self.X[self.rows], run.labels, noise=noise)
            np.testing.assert_allclose(one.bounds, bounds[self.initial :], rtol=1e-6, atol=1e-10)
        for same in (one.model, run.gp):
            np.testing.assert_allclose(same.predict(self.X), model.predict(self.X), rtol=1e-7)


HAPPENS = (
    *["ask", "tell"] * 5, *["tell_some"] * 2, "tell_any", "correct", "extend", "keep", "keep",
    "refuse",
)  # fmt: skip


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("gp", [None, GaussianProcess(1.0, 0.2, mean=3.0)])
@pytest.mark.parametrize("acquisition", ["max_variance", "random"])
@pytest.mark.parametrize("seed", range(1 if config.DISABLE_JIT else 6))
def test_a_day_by_chance(seed, acquisition, gp, lazy, monkeypatch):
    monkeypatch.setattr(choose, "EAGER_BELOW", 0 if lazy else 2048)
    day = Day(seed, gp, acquisition)
    day.check()
    said = []
    for _ in range(60):
        if not day.free():
            break
        said.append(str(day.rng.choice(HAPPENS)))
        getattr(day, said[-1])()
        day.check()
