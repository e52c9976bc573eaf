"""A pool on the workers of real Dask clusters, whatever becomes of these."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from pool_problems import BUDGET, GP, assert_same_run, problem

from fastal import ActiveLearner, FixedBudget, GaussianProcess, MovementBelow, Stopper, learn
from fastal._core import selection_lazy
from fastal.criteria import MaxVariance
from fastal.learning import staged
from fastal.learning.distributed import pool as pool_module
from fastal.learning.distributed import selection as selection_module
from fastal.models import LaplaceClassifier

if not hasattr(selection_lazy.run, "py_func"):
    pytest.skip("workers that interpret kernels take too long", allow_module_level=True)

distributed = pytest.importorskip("distributed", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")


# Dask's own end is not free of warnings.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of processes, one for all tests: to start one takes seconds."""
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
    ):
        warnings.simplefilter("ignore")
        yield cluster


@pytest.fixture
def client(cluster):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(cluster) as client:
            client.wait_for_workers(3, timeout=60)
            yield client


@pytest.fixture
def use_workers(monkeypatch):
    """Return a function that lets pools see some of the workers only."""
    everybody = pool_module.DaskPool._workers

    def use(count):
        def some(self):
            return sorted(everybody(self))[:count]

        monkeypatch.setattr(pool_module.DaskPool, "_workers", some)

    return use


@pytest.mark.long
def test_any_number_of_workers_and_any_chunks(client, use_workers, monkeypatch):
    X, y = problem(4133, ties="grid")
    test = X[:50] + 0.1, y[:50]
    expected = learn_lazily(monkeypatch, X, y, test=test, **BUDGET)
    assert_same_run(expected, learn(X, y, test=test, **BUDGET))
    for count, chunks in [(1, (4133, 3)), (2, (1000, 2)), (3, ((1, 300, 3832), 3)), (3, (77, 1))]:
        use_workers(count)
        run = learn(da.from_array(X, chunks=chunks), y, test=test, **BUDGET)
        assert run._learner.points.n_parts == count
        assert_same_run(run, expected)
        np.testing.assert_array_equal(run.bounds, expected.bounds)
        np.testing.assert_allclose(run.errors, expected.errors, rtol=1e-12)
        np.testing.assert_allclose(run.gp.predict(X[:5]), expected.gp.predict(X[:5]))


@pytest.mark.long
def test_oracles_criteria_random_choice_and_odd_pools(client):
    X, y = problem(3001, d=1)
    D = da.from_array(X, chunks=500)

    def oracle(index, x):
        np.testing.assert_array_equal(x, X[index])
        return y[index]

    for stopper in (Stopper(), MaxVariance(0.02), MovementBelow(0.05)):
        settings = {"gp": GP, "criterion": stopper, "max_labels": 40, "seed": 3}
        expected = learn(X, y, **settings)
        assert_same_run(learn(D, y, **settings), expected)
        assert_same_run(learn(D[:, 0], oracle, **settings), expected)
    for more in ({"acquisition": "random"}, {"initial": [5, 2999, 0]}, {"initial": 90}):
        settings = BUDGET | more
        assert_same_run(learn(D, y, **settings), learn(X, y, **settings))
    whole = (100 * X).astype(np.int32)
    settings = BUDGET | {"gp": GaussianProcess(50.0, 0.01)}
    assert_same_run(learn(da.from_array(whole), y, **settings), learn(whole, y, **settings))
    for n in (1, 255, 2047):
        settings = BUDGET | {"max_labels": min(n, 60)}
        assert_same_run(
            learn(da.from_array(X[:n]), y[:n], **settings), learn(X[:n], y[:n], **settings)
        )


@pytest.mark.long
def test_hyper_parameters_learnt_on_the_way(client):
    X, y = problem(2500)
    X[:, 1] = 100 * X[:, 1] + 1e6
    D = da.from_array(X, chunks=(600, 2))
    test = X[:50], y[:50]
    for more in ({}, {"gp": GaussianProcess([1.0, 100.0, 1.0], 0.01), "refit": 1.5}):
        settings = {"criterion": FixedBudget(50), "max_labels": 50, "seed": 2, "test": test} | more
        run, expected = learn(D, y, **settings), learn(X, y, **settings)
        assert_same_run(run, expected)
        assert len(run.refits) == len(expected.refits) > 3
        np.testing.assert_allclose(run.errors, expected.errors, rtol=1e-9)
    # a criterion that has to be asked in Python once there is a model
    settings = {"criterion": MaxVariance(0.02), "max_labels": 60, "seed": 2}
    expected = learn(X, y, **settings)
    assert expected.stopped
    assert_same_run(learn(D, y, **settings), expected)


@pytest.mark.long
def test_ask_and_tell_and_keep(client, monkeypatch):
    monkeypatch.setattr(staged, "EARLY_ENTRIES", 0)  # as on workers: the digits are the same then
    X, y = problem(3000)
    D = da.from_array(X, chunks=800)
    settings = {"gp": GP, "criterion": FixedBudget(80), "seed": 0, "initial": 3}
    here, there = ActiveLearner(X, **settings), ActiveLearner(D, **settings)
    for k in range(12):
        rows = here.ask(7)
        np.testing.assert_array_equal(there.ask(7), rows)
        labels = y[rows].tolist()
        if k == 4:
            labels[2] = None
        for learner in (here, there):
            learner.tell(labels)
            if k == 6:
                learner.tell(y[1234], index=1234)
                learner.correct(int(learner.run().indices[2]), 0.5)
        assert here.largest_variance == there.largest_variance
    assert_same_run(there.run(), here.run())
    state = there.to_dict()
    for again in (
        ActiveLearner.from_dict(state, D.rechunk(311)),
        ActiveLearner.from_dict(state, X),
    ):
        assert again.ask() == here.ask()
        assert_same_run(again.run(), here.run())
    with pytest.raises(ValueError, match="another pool"):
        ActiveLearner.from_dict(state, D + 1)
    other = copy.deepcopy(there)
    row = other.ask()
    other.tell(0.0)
    assert there.ask() == row
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(there)


def actors(client):
    return sum(client.run(lambda dask_worker: len(dask_worker.state.actors)).values())


def test_the_pool_stays_where_it_is_and_goes_when_the_run_goes(client, monkeypatch):
    X, y = problem(9000, ties="grid")
    settings = BUDGET | {
        "criterion": FixedBudget(70),
        "max_labels": 70,
        "test": (X[:9] + 0.1, y[:9]),
    }
    expected = learn_lazily(monkeypatch, X, y, **settings)

    def refuse(*_, **__):
        raise AssertionError("gathered")

    monkeypatch.setattr(da.Array, "compute", refuse)
    monkeypatch.setattr(da.Array, "__array__", refuse)
    monkeypatch.setattr(client, "gather", refuse)
    monkeypatch.setattr(selection_module, "CANDIDATES", 600)
    monkeypatch.setattr(selection_module, "ROUND_BYTES", 0)
    calling, received = pool_module.DaskPool._calls, []

    def count(self, wanted):
        answers, lost = calling(self, wanted)
        received.extend(len(pickle.dumps(answer)) for answer in answers)
        return answers, lost

    monkeypatch.setattr(pool_module.DaskPool, "_calls", count)
    rows, near = set(), pool_module.DaskPool.come_near
    monkeypatch.setattr(
        pool_module.DaskPool, "come_near", lambda *a: (rows.update(a[1].tolist()), near(*a))
    )
    gc.disable()  # no cycles are waited for
    try:
        run = learn(da.from_array(X, chunks=(1000, 2)), y, **settings)
        assert_same_run(run, expected)
        np.testing.assert_array_equal(run.bounds, expected.bounds)
        np.testing.assert_allclose(run.errors, expected.errors, rtol=1e-12)
        assert run._learner.points.n_parts == actors(client) == 3
        selection = run._learner._selection
        assert 70 < len(rows) < 0.7 * len(X)
        assert max(received) < 300 * (8 * (70 + 3 + 3) + 100)
        assert 0.95 * sum(received) < selection.bytes_received < sum(received)
        assert 0 < selection.bytes_sent < selection.bytes_received
        del run, selection
        end = time.monotonic() + 60
        while actors(client) and time.monotonic() < end:
            time.sleep(0.05)
        assert actors(client) == 0
    finally:
        gc.enable()


def test_ctrl_c_while_workers_are_waited_for(client, monkeypatch):
    X, y = problem(4100)
    settings = BUDGET | {"criterion": FixedBudget(80), "max_labels": 80}
    calling, calls = pool_module.DaskPool._calls, []

    def interrupt(self, wanted):
        calls.append(wanted)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return calling(self, wanted)

    monkeypatch.setattr(pool_module.DaskPool, "_calls", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        learn(da.from_array(X, chunks=900), y, **settings)
    run = caught.value.run
    assert 0 < run.n_labels < 80
    assert_same_run(run.resume(), learn(X, y, **settings))


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(pool_module, "ANY_WORKER_SECONDS", 0.3)
    X, y = problem(2100)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty),
        pytest.raises(ConnectionError, match="no workers"),
    ):
        learn(da.from_array(X, chunks=900), y, **BUDGET)


@pytest.mark.long
def test_what_does_not_work_is_refused_by_name(client):
    X, y = problem(2100)
    D = da.from_array(X, chunks=1000)
    with pytest.raises(TypeError, match=r"`acquisition` must be a name .* dask array"):
        learn(D, y, **BUDGET | {"acquisition": lambda mean, var: var})
    with pytest.raises(TypeError, match=r"`gp` must be a GaussianProcess .* dask array"):
        learn(D, y > 0, **BUDGET | {"gp": LaplaceClassifier()})
    with pytest.raises(TypeError, match=r"`extend_pool` .* dask array"):
        ActiveLearner(D, gp=GP, criterion=Stopper()).extend_pool(X[:3])
    for bad, said in [
        (D[D[:, 0] > 0], "known sizes"),
        (D[:, :, None], "shape"),
        (D[:0], "at least one row"),
        (da.where(X[1500, 2] == D, np.nan, D), r"finite, got nan at index \(1500, 2\)"),
    ]:
        with pytest.raises(ValueError, match=said):
            learn(bad, y, **BUDGET)
    with pytest.raises(TypeError, match="real numbers"):
        learn(D > 0, y, **BUDGET)
    with pytest.raises(ValueError, match="must have shape"):
        learn(D, y, **BUDGET | {"gp": GaussianProcess([1.0, 2.0])})


def kill_one(client, draws):
    pids = sorted(client.run(os.getpid, on_error="ignore").values())
    if pids:  # else all of them are dead already
        os.kill(pids[draws.integers(len(pids))], signal.SIGKILL)


def learn_lazily(monkeypatch, X, y, **settings):
    """Learn here, lazily from the first label on as workers do: the digits are the same then."""
    with monkeypatch.context() as patch:
        patch.setattr(staged, "EARLY_ENTRIES", 0)
        return learn(X, y, **settings)


def learn_among_kills(client, seed, labels, kills, monkeypatch):
    """Kill workers at random moments: while rows are read, in a round, or between two."""
    X, y = problem(6001, seed=seed)
    settings = BUDGET | {"criterion": FixedBudget(labels), "max_labels": labels}
    expected = learn_lazily(monkeypatch, X, y, **settings)
    draws = np.random.default_rng(seed)
    calls, calling = [], pool_module.DaskPool._calls
    moments = set(draws.choice(np.arange(1, 5 + 4 * kills), kills, replace=False).tolist())

    def kill_now_and_then(self, wanted):
        calls.append(len(wanted))
        if len(calls) in moments:
            late = threading.Timer(draws.uniform(0, 0.02), kill_one, (client, draws))
            late.start()
            if draws.random() < 0.5:
                late.join()
        return calling(self, wanted)

    monkeypatch.setattr(pool_module.DaskPool, "_calls", kill_now_and_then)
    run = learn(da.from_array(X, chunks=(900, 2)), y, **settings)
    assert sum(run._learner.points._deaths.values()) >= 1
    assert_same_run(run, expected)
    np.testing.assert_array_equal(run.bounds, expected.bounds)


def test_workers_are_killed(client, monkeypatch):
    monkeypatch.setattr(pool_module, "NEW_WORKER_SECONDS", 0.1)  # those that are left take over
    learn_among_kills(client, 0, 100, 2, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_workers_are_killed(client, seed, monkeypatch):
    learn_among_kills(client, seed, 400, 5, monkeypatch)


@pytest.mark.long
def test_a_client_that_was_closed(cluster):
    X, y = problem(9000)
    with distributed.Client(cluster):
        learner = ActiveLearner(
            da.from_array(X, chunks=900), gp=GP, criterion=FixedBudget(9), seed=0
        )
        for _ in range(5):
            learner.tell(y[learner.ask()])
    with pytest.raises(ConnectionError, match="client was closed"):
        learner.tell(0.0, index=int(np.setdiff1d(np.arange(9000), learner._selection._here)[0]))
    run = learner.run()
    assert run.n_labels == 5
    settings = {"gp": GP, "criterion": FixedBudget(9), "seed": 0, "max_labels": 9}
    assert_same_run(run.resume(y, X=X, max_labels=9), learn(X, y, **settings))


def random_rows():
    return np.random.default_rng().normal(size=(3000, 2))


def no_rows():
    raise FileNotFoundError("no such pool")


@pytest.mark.long
def test_rows_that_cannot_be_read(client):
    import cloudpickle
    import dask

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        D = da.from_delayed(dask.delayed(no_rows)(), (3000, 2), float)
        with pytest.raises(FileNotFoundError, match="no such pool"):
            ActiveLearner(D, gp=GP, criterion=FixedBudget(9), seed=0)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.long
def test_rows_that_are_not_the_same_when_read_again(client):
    import cloudpickle
    import dask

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        D = da.from_delayed(dask.delayed(random_rows)(), (3000, 2), float)
        learner = ActiveLearner(D, gp=GP, criterion=FixedBudget(9), seed=0)
        learner.tell(0.0, index=learner.ask())
        owner = learner.points._parts[0].address
        os.kill(client.run(os.getpid, workers=[owner])[owner], signal.SIGKILL)
        with pytest.raises(RuntimeError, match="other rows when it was read again"):
            learner.ask()
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert learner.n_labels == 1


def wait_for(path):
    for _ in range(600):
        if path.exists() and path.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} was not written")


@pytest.mark.long
def test_the_scheduler_is_lost(tmp_path, request):
    """With the commands of Dask, as one would start them on other machines."""
    import dask

    X, y = problem(4100)
    settings = BUDGET | {"criterion": FixedBudget(200), "max_labels": 200}
    expected = learn(X, y, **settings)
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    options = ["--scheduler-file", file, "--no-dashboard"]
    started = [subprocess.Popen([*command, "scheduler", *options, "--port", "0"], **quiet)]

    def oracle(index, x):
        if len(told) == 120:
            started[0].kill()
        told.append(index)
        return y[index]

    told = []
    try:
        wait_for(file)
        worker = [*command, "worker", *options, "--nthreads", "1", "--no-nanny"]
        started += [subprocess.Popen(worker, **quiet) for _ in range(2)]
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
            distributed.Client(scheduler_file=str(file)) as client,
        ):
            client.wait_for_workers(2, timeout=60)
            with pytest.raises(ConnectionError, match=r"scheduler .* is lost.*resume") as caught:
                learn(da.from_array(X, chunks=999), oracle, **settings)
    finally:
        for process in started:
            process.kill()
            process.wait()
    run = caught.value.run
    assert 100 < run.n_labels < 200
    np.testing.assert_array_equal(run.indices, expected.indices[: run.n_labels])
    run.gp.predict(X[:3])
    other = copy.deepcopy(run)
    with pytest.raises(ValueError, match="another pool"):
        run.resume(y, X=X + 1.0)
    assert_same_run(run.resume(y, X=X), expected)
    request.getfixturevalue("client")  # another cluster
    assert_same_run(other.resume(y, X=da.from_array(X, chunks=800)), expected)
