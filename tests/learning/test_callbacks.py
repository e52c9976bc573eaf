"""Oracles and callbacks that use the learner that called them, and Ctrl-C in them."""

import itertools
import threading

import numpy as np
import pytest

from fastal import ActiveLearner, FixedBudget, GaussianProcess, Stopper, learn
from fastal._core import selection_lazy
from fastal.learning import choose, staged

X = np.linspace(0, 10, 30)


def test_an_oracle_that_tells():
    kept = []

    def oracle(index, x):
        if kept and kept[0].n_labels == 4:
            kept[0].tell(7.0)
        return float(np.sin(x[0]))

    with pytest.raises(RuntimeError, match="has a label already, told by a callback") as caught:
        learn(
            X, oracle, gp=GaussianProcess(1.0, 0.1), criterion=Stopper(), seed=0,
            on_label=lambda learner: kept or kept.append(learner),
        )  # fmt: skip
    run = caught.value.run
    assert run.n_labels == 5
    assert run.labels[-1] == 7.0
    assert run.labels[:-1].tolist() == np.sin(X[run.indices[:-1]]).tolist()


def test_oracles_and_callbacks_may_read():
    kept, runs = [], []

    def oracle(index, x):
        if kept:
            runs.append(kept[0].run())
            assert kept[0].model.n_labels == kept[0].n_labels
        return float(np.sin(x[0]))

    def look(learner):
        kept[:] = [learner]
        assert learner.to_dict()["asked"] == []
        runs.append(learner.run((X, np.sin(X))))

    def acquisition(mean, var):
        assert kept[0].unlabelled.any()
        runs.append(kept[0].run())
        return var

    run = learn(
        X, oracle, gp=GaussianProcess(1.0, 0.1), criterion=Stopper(), seed=0, on_label=look,
        max_labels=12, acquisition=acquisition,
    )  # fmt: skip
    assert run.n_labels == 12
    for one in runs:
        n = one.n_labels
        assert one.indices.tolist() == run.indices[:n].tolist()
        assert one.criterion.bounds.tolist() == one.bounds.tolist() == run.bounds[: n - 1].tolist()
    kept[0].max_labels = 30
    kept[0].tell(0.0, index=kept[0].ask())
    assert (run.n_labels, len(run.criterion)) == (12, 11)  # later labels do not change it


def test_an_acquisition_that_tells():
    def acquisition(mean, var):
        learner.tell(0.0, index=4)

    learner = ActiveLearner(
        X, gp=GaussianProcess(1.0, 0.1), criterion=Stopper(), acquisition=acquisition, seed=0
    )
    learner.tell(0.5, index=3)
    with pytest.raises(RuntimeError, match="cannot be changed again from within"):
        learner.ask()
    assert learner.n_labels == 1
    learner.acquisition = "max_variance"
    learner.tell(0.25, index=4)  # nobody is at work any more
    assert learner.n_labels == 2


def test_two_threads_in_one_learner():
    inside, leave = threading.Event(), threading.Event()

    def acquisition(mean, var):
        inside.set()
        assert leave.wait(60)
        return var

    learner = ActiveLearner(
        X, gp=GaussianProcess(1.0, 0.1), criterion=Stopper(), acquisition=acquisition, seed=0
    )
    learner.tell(0.5, index=3)
    thread = threading.Thread(target=learner.ask)
    thread.start()
    assert inside.wait(60)
    for use in (learner.ask, lambda: learner.tell(0.1), lambda: learner.correct(0, 0.1)):
        with pytest.raises(RuntimeError, match="or by another thread"):
            use()
    leave.set()
    thread.join()
    learner.tell(0.25)  # of the point that the thread asked for
    assert learner.n_labels == 2


def test_a_run_that_is_resumed_from_within():
    run = learn(
        X, np.sin(X), gp=GaussianProcess(1.0, 0.1), criterion=Stopper(), max_labels=5, seed=0
    )

    def oracle(index, x):
        with pytest.raises(RuntimeError, match="the run is going on already"):
            run.resume(max_labels=9)
        return float(np.sin(x[0]))

    longer = run.resume(oracle, max_labels=9)
    assert longer.n_labels == 9
    assert run.n_labels == 5
    with pytest.raises(ValueError, match="resumed already"):
        run.resume()
    assert longer.resume(max_labels=12).n_labels == 12


# Ctrl-C -----------------------------------------------------------------------------------------------


class Interrupting(FixedBudget):
    """A criterion during whose work Ctrl-C comes, once."""

    _came = False

    def see(self, campaign, r):
        stopped = super().see(campaign, r)
        if len(self) == 6 and not self._came:
            self._came = True
            raise KeyboardInterrupt
        return stopped


@pytest.mark.parametrize("gp", [None, GaussianProcess(1.0, 0.1)])
def test_a_label_that_was_told_survives_ctrl_c(gp):
    learner = ActiveLearner(X, gp=gp, criterion=Interrupting(20), initial=5, seed=0)
    told = []

    def label():
        while True:
            told.append(learner.ask())
            learner.tell(float(np.sin(X[told[-1]])))

    with pytest.raises(KeyboardInterrupt):
        label()
    run = learner.run()
    assert run.indices.tolist() == told
    assert run.labels.tolist() == np.sin(X[told]).tolist()
    assert len(learner.criterion) == len(learner.bounds)
    while learner.n_labels < 15:
        learner.tell(float(np.sin(X[learner.ask()])))
        assert len(learner.criterion) == len(learner.bounds)
    assert len(set(learner.run().indices.tolist())) == 15


@pytest.mark.parametrize("at", [1, 6, 9])
def test_labels_survive_ctrl_c_in_an_oracle(at):
    told = []

    def oracle(index, x):
        if len(told) == at:
            raise KeyboardInterrupt
        told.append((index, float(np.sin(x[0]))))
        return told[-1][1]

    with pytest.raises(KeyboardInterrupt) as caught:
        learn(X, oracle, criterion=Stopper(), initial=5, seed=0)
    run = caught.value.run
    assert list(zip(run.indices.tolist(), run.labels.tolist(), strict=True)) == told
    expected = learn(X, np.sin(X), criterion=Stopper(), initial=5, seed=0)
    assert (run.resume(np.sin(X)).indices == expected.indices).all()


def test_an_error_in_a_panel_shared_out(monkeypatch):
    # As by Ctrl-C while threads complete a panel: some blocks are done, others are not.
    monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    monkeypatch.setattr(staged, "EARLY_ENTRIES", 0)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 10, (1300, 2)), rng.normal(size=1300)
    settings = {"gp": GaussianProcess(0.5, 0.1), "criterion": Stopper(alpha=1e-12), "seed": 0}
    alone = learn(X, y, max_labels=60, threads=1, **settings)
    complete = selection_lazy.complete_blocks
    calls = itertools.count()

    def broken(*arguments):
        if next(calls) == 1:
            raise KeyboardInterrupt
        complete(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(selection_lazy, "complete_blocks", broken)
        with pytest.raises(KeyboardInterrupt) as caught:
            learn(X, y, max_labels=60, threads=2, **settings)
    run = caught.value.run
    assert 0 < run.n_labels < 60
    assert (run.resume(y, max_labels=60).bounds == alone.bounds).all()
