"""Learners that threads share, and oracles and callbacks that use the learner that called them."""

import json
import threading

import numpy as np
import pytest
from shared_objects import together

from fastal import (
    ActiveLearner,
    GaussianProcess,
    StillToCome,
    Stopper,
    learn,
)
from fastal.learning import choose

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
    assert learner.run().indices.tolist() == [index, other]
    assert learner.run().labels.tolist() == [1.5, 0.5]


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
        assert learner.to_dict()["asked"] == []
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
    kept[0].tell(0.0, index=kept[0].ask())
    assert (run.n_labels, len(run.stopper)) == (12, 11)  # later labels do not change it


def test_an_acquisition_that_tells():
    X = np.linspace(0, 10, 30)

    def acquisition(mean, var):
        learner.tell(0.0, index=4)

    learner = ActiveLearner(
        X, gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), acquisition=acquisition, seed=0
    )
    learner.tell(0.5, index=3)
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


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("n", [None, 3])
def test_a_campaign_with_fits_that_threads_share(n):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (90, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(90)
    learner = ActiveLearner(X, stopper=StillToCome(1e-9), seed=0)

    def work():
        while learner.n_labels < 60:
            try:
                rows = np.atleast_1d(learner.ask(n))
                learner.tell(y[rows] if n else y[rows[0]])
            except (RuntimeError, ValueError) as error:  # another thread was faster
                said = str(error)
                assert "meanwhile" in said or "`y` must have" in said or "has a label" in said
            json.dumps(learner.run().to_dict())
            json.dumps(learner.to_dict())

    together(work, work, work)
    run = learner.run()
    assert run.n_labels >= 60
    assert (run.labels == y[run.indices]).all()
    assert len(set(run.indices.tolist())) == run.n_labels
    assert (run.stopper.bounds == run.bounds).all()
    alone = ActiveLearner(X, stopper=StillToCome(1e-9), seed=0)
    while alone.n_labels < run.n_labels:
        rows = np.atleast_1d(alone.ask(n))
        alone.tell(y[rows] if n else y[rows[0]])
    assert alone.run().indices.tolist() == run.indices.tolist()
    assert alone.refits == run.refits
