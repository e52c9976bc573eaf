"""A pool on workers: choices and bounds of one machine, whatever becomes of the workers.

First the protocol, with all parts in this process; then real clusters, which are long tests.
"""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings

import numpy as np
import pytest

from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    LaplaceClassifier,
    LookAhead,
    MaxVariance,
    StillToCome,
    Stopper,
    learn,
)
from fastal._core import selection_lazy
from fastal.learning import columns
from fastal.learning.distributed import pool as pool_module
from fastal.learning.distributed import selection as selection_module
from fastal.learning.distributed.rows import WorkerRows
from fastal.learning.lazy import LazySelection
from fastal.learning.refit import column_scales

if not hasattr(selection_lazy.run, "py_func"):
    pytest.skip("interpreted kernels take too long", allow_module_level=True)

GP = GaussianProcess(0.8, 0.01)


def problem(n, d=3, seed=0, ties=None):
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, d))
    if ties == "grid":
        X = np.round(2 * X) / 2
    elif ties == "copies":
        X[n // 2 :] = X[: n - n // 2]
    return X, np.sin(X).sum(axis=1) + 0.1 * draws.normal(size=n)


class PartsHere:
    """A pool whose parts are in this process; some are replaced, as if their workers had died."""

    def __init__(self, X, ends, deaths=0.0, seed=0):
        self.X, self.shape, self.ends, self.deaths = X, X.shape, [0, *ends], deaths
        self.n_parts, self.n_deaths = len(ends), 0
        self.draws = np.random.default_rng(seed)
        self.parts = [self.part(k) for k in range(self.n_parts)]

    def part(self, k):
        low, high = self.ends[k], self.ends[k + 1]
        middle = (low + high) // 2
        return WorkerRows(low, [self.X[low:middle], self.X[middle:high]], len(self.X))

    def __len__(self):
        return len(self.X)

    def keep(self, rows):
        pass

    def come_near(self, rows, X):
        np.testing.assert_array_equal(self.X[rows], X)

    def ask(self, numbers, method, arguments):
        for k in numbers:
            if self.draws.random() < self.deaths:
                self.parts[k] = self.part(k)
                self.n_deaths += 1
        return [
            getattr(self.parts[k], method)(*own) for k, own in zip(numbers, arguments, strict=True)
        ]


def both(X, y, ends, labels, order=(7,), gp=GP, **more):
    Z = gp.prior.scale("X", X)
    order = np.array(order, dtype=np.int64)
    here = LazySelection(gp, Z, order, len(order), labels)
    there = selection_module.DaskSelection(
        gp, PartsHere(X, ends, **more), order, len(order), labels
    )
    for one in (here, there):
        one.run(y, labels, None, True, 1)
    return here, there


def assert_same(a, b):
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.bounds, b.bounds)  # to the last digit


PANEL = selection_lazy.PANEL


@pytest.mark.parametrize("ties", [None, "grid", "copies"])
@pytest.mark.parametrize(
    ("n", "ends", "labels"),
    [
        (1, [1], 1),
        (PANEL - 1, [PANEL - 1], PANEL - 1),
        (257, [256, 257], 257),
        (1000, [256, 512, 1000], 130),
        (4095, [2048, 4095], PANEL - 1),
        (4097, [256, 4096, 4097], PANEL + 1),
        (5000, [5000], 257),
        (5001, [1280, 2560, 5001], 520),
    ],
)
def test_parts_choose_as_one_machine(n, ends, labels, ties):
    X, y = problem(n, ties=ties)
    here, there = both(X, y, ends, labels, order=[n // 2])
    assert_same(here, there)
    assert there.names
    assert there.rounds < 5 + labels


@pytest.mark.parametrize("candidates", [1, 8, 300])
@pytest.mark.parametrize("ties", [None, "copies"])
def test_few_candidates_mean_more_rounds_and_nothing_else(candidates, ties, monkeypatch):
    X, y = problem(2100, ties=ties)
    _, many = both(X, y, [1024, 2100], 90, order=[])
    monkeypatch.setattr(selection_module, "CANDIDATES", candidates)
    monkeypatch.setattr(selection_module, "ROUND_BYTES", 0)
    here, few = both(X, y, [1024, 2100], 90, order=[])
    assert_same(here, few)
    assert few.rounds > many.rounds


def test_parts_that_are_lost_all_the_time():
    X, y = problem(4200)
    here, there = both(X, y, [1024, 2048, 4200], 300, deaths=0.3)
    assert there.points.n_deaths > 5
    assert_same(here, there)


def test_equal_variances_at_the_beginning_go_to_the_lowest_row():
    X, y = problem(1000)
    _, there = both(X, y, [256, 1000], 1, order=[])
    assert there.labels.tolist() == [0]


def test_looking_ahead_skipping_and_labels_out_of_turn():
    X, y = problem(4200)
    order = np.array([3])
    ends = [1024, 2048, 4200]
    here = LazySelection(GP, GP.prior.scale("X", X), order, 1, 300)
    there = selection_module.DaskSelection(GP, PartsHere(X, ends), order, 1, 300)
    draws = np.random.default_rng(0)
    for k in range(150):
        for one in (here, there):
            if k % 40 == 7:  # ahead of the panel, and back
                ahead = one.frozen()
                ahead.run(np.zeros(4200), one.n_labels + 70, None, True, 1)
        if k % 40 == 7 and k > 7:
            assert here.best() == there.best()
        left = np.flatnonzero(here.unlabelled)
        np.testing.assert_array_equal(left, np.flatnonzero(there.unlabelled))
        row = int(draws.choice(left)) if k % 10 == 3 else here.best() if k else 3
        if k % 25 == 12:
            assert there.best() == row
            here.skip(row)
            there.skip(row)
            continue
        assert there.accept(row, y[row]) == pytest.approx(here.accept(row, y[row]), abs=1e-12)
    np.testing.assert_array_equal(here.labels, there.labels)
    assert here.largest_variance() == pytest.approx(there.largest_variance(), rel=1e-12)


def test_rows_have_the_same_digits_however_they_are_computed():
    """Entry by entry or many at a time, also behind the first chunk."""
    X, y = problem(4200)
    one = LazySelection(GP, GP.prior.scale("X", X), np.arange(300), 300, 600)
    one.run(y, 310, None, True, 1)
    s, kind = one.state, GP.prior.kind
    complete = int(s.counters[selection_lazy.COMPLETE])
    arguments = kind, GP.amplitude, s.Z, s.Zl, s.table, s.rows
    found = []
    for steps in ([310], range(complete + 1, 311), [complete + 3, 305, 310]):
        first, var = complete, s.base[500]
        for t in steps:
            var = selection_lazy.refine(*arguments, 500, complete, first, t, var)
            first = t
        found.append((var, one.chunks[1][500, : 310 - 256].tobytes()))
    assert complete == 256
    assert found[0] == found[1] == found[2]


def test_copies_of_a_lazy_selection_have_chunks_of_their_own():
    X, y = problem(2100)
    learner = ActiveLearner(X, gp=GP, stopper=FixedBudget(100), seed=0)
    for _ in range(30):
        learner.tell(y[learner.ask()])
    for other in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        selection = other._selection
        assert selection.state.table.tolist() == [c.ctypes.data for c in selection.chunks]
        assert other.ask() == learner.ask()


def test_a_point_out_of_turn_stays_when_all_labels_are_taken_anew():
    X, y = problem(300)
    learner = ActiveLearner(X, gp=GP, stopper=FixedBudget(100), seed=0)
    for _ in range(10):
        learner.tell(y[learner.ask()])
    out = int(np.flatnonzero(learner.unlabelled)[-1])
    learner.tell(y[out], index=out)
    for _ in range(5):
        learner.tell(y[learner.ask()])
    before = learner.run()
    learner.correct(int(before.indices[3]), 2.0)
    after = learner.run()
    np.testing.assert_array_equal(after.indices, before.indices)
    np.testing.assert_array_equal(np.delete(after.labels, 3), np.delete(before.labels, 3))


@pytest.mark.parametrize("n", [1, 300, 2049, 5001, 70_003])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_scales_of_columns_to_the_last_digit(n, d):
    X = 10 + 3 * np.random.default_rng(n).normal(size=(n, d))
    cuts = sorted({k for k in (256, 1024, 2048, 4864) if k < n} | {n})
    here = PartsHere(X, cuts)
    pool = pool_module.DaskPool.__new__(pool_module.DaskPool)
    pool.shape, pool.ask = X.shape, here.ask
    pool._known, pool._near = {}, (np.arange(n), X)
    pool._parts = [
        pool_module.Part(low, high, [], "", None, None)
        for low, high in zip(here.ends, here.ends[1:], strict=False)
    ]
    unit, deviation = pool.column_scales()
    np.testing.assert_array_equal(unit, columns.units(np.abs(X).max(axis=0)))
    np.testing.assert_array_equal(deviation, (X / unit).std(axis=0))
    np.testing.assert_array_equal(deviation, columns.deviations(X, unit))


# real clusters ----------------------------------------------------------------------------------

distributed = pytest.importorskip("distributed", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")


def on_a_cluster(test):
    """Mark a test that needs a cluster, which takes its time; Dask's own end has warnings."""
    for mark in (
        pytest.mark.long,
        pytest.mark.filterwarnings("ignore::ResourceWarning"),
        pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
        pytest.mark.filterwarnings("ignore::DeprecationWarning"),
        pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
    ):
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def cluster():
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


def assert_same_run(a, b):
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_allclose(a.bounds, b.bounds, rtol=1e-9, atol=1e-9)
    assert a.stopped_at == b.stopped_at


BUDGET = {"gp": GP, "stopper": FixedBudget(150), "max_labels": 150, "seed": 1}


@on_a_cluster
def test_any_number_of_workers_and_any_chunks(client, use_workers):
    X, y = problem(4133, ties="grid")
    test = X[:50] + 0.1, y[:50]
    expected = learn(X, y, test=test, **BUDGET)
    for count, chunks in [(1, (4133, 3)), (2, (1000, 2)), (3, ((1, 300, 3832), 3)), (3, (77, 1))]:
        use_workers(count)
        run = learn(da.from_array(X, chunks=chunks), y, test=test, **BUDGET)
        assert run._learner.points.n_parts == count
        assert_same_run(run, expected)
        np.testing.assert_array_equal(run.bounds, expected.bounds)
        np.testing.assert_allclose(run.errors, expected.errors, rtol=1e-12)
        np.testing.assert_allclose(run.gp.predict(X[:5]), expected.gp.predict(X[:5]))


@on_a_cluster
def test_oracles_criteria_random_choice_and_odd_pools(client):
    X, y = problem(3001, d=1)
    D = da.from_array(X, chunks=500)

    def oracle(index, x):
        np.testing.assert_array_equal(x, X[index])
        return y[index]

    for stopper in (Stopper(), MaxVariance(0.02), StillToCome(0.05)):
        settings = {"gp": GP, "stopper": stopper, "max_labels": 40, "seed": 3}
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


@on_a_cluster
def test_hyper_parameters_learnt_on_the_way(client):
    X, y = problem(2500)
    X[:, 1] = 100 * X[:, 1] + 1e6
    D = da.from_array(X, chunks=(600, 2))
    test = X[:50], y[:50]
    for more in ({}, {"gp": GaussianProcess([1.0, 100.0, 1.0], 0.01), "refit": 1.5}):
        settings = {"stopper": FixedBudget(50), "max_labels": 50, "seed": 2, "test": test} | more
        run, expected = learn(D, y, **settings), learn(X, y, **settings)
        assert_same_run(run, expected)
        assert len(run.refits) == len(expected.refits) > 3
        np.testing.assert_allclose(run.errors, expected.errors, rtol=1e-9)


@on_a_cluster
def test_ask_and_tell_and_keep(client):
    X, y = problem(3000)
    D = da.from_array(X, chunks=800)
    settings = {"gp": GP, "stopper": FixedBudget(80), "seed": 0, "initial": 3}
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


@on_a_cluster
def test_the_pool_is_never_gathered(client, monkeypatch):
    X, y = problem(9000)
    expected = learn(X, y, **BUDGET)
    D = da.from_array(X, chunks=1000)

    def refuse(*_, **__):
        raise AssertionError("gathered")

    monkeypatch.setattr(da.Array, "compute", refuse)
    monkeypatch.setattr(da.Array, "__array__", refuse)
    monkeypatch.setattr(client, "gather", refuse)
    monkeypatch.setattr(selection_module, "CANDIDATES", 600)
    monkeypatch.setattr(selection_module, "ROUND_BYTES", 0)
    rows, near = [], pool_module.DaskPool.come_near
    monkeypatch.setattr(
        pool_module.DaskPool, "come_near", lambda *a: (rows.append(len(a[1])), near(*a))
    )
    run = learn(D, y, **BUDGET)
    assert_same_run(run, expected)
    assert 0 < max(rows) <= 600
    assert len(run._learner.points._known) == 150


@on_a_cluster
def test_what_does_not_work_is_refused_by_name(client):
    X, y = problem(2100)
    D = da.from_array(X, chunks=1000)
    with pytest.raises(TypeError, match=r"`acquisition` must be a name .* dask array"):
        learn(D, y, **BUDGET | {"acquisition": lambda mean, var: var})
    with pytest.raises(TypeError, match=r"`gp` must be a GaussianProcess .* dask array"):
        learn(D, y > 0, **BUDGET | {"gp": LaplaceClassifier()})
    with pytest.raises(TypeError, match=r"LookAhead .* dask array"):
        learn(D, y, **BUDGET | {"stopper": LookAhead()})
    with pytest.raises(TypeError, match=r"`extend_pool` .* dask array"):
        ActiveLearner(D, gp=GP, stopper=Stopper()).extend_pool(X[:3])
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
    os.kill(pids[draws.integers(len(pids))], signal.SIGKILL)


@on_a_cluster
@pytest.mark.parametrize("seed", range(3))
def test_a_worker_is_killed(client, seed, monkeypatch):
    """In the middle of a round, or while rows are read; twice."""
    X, y = problem(6001, seed=seed)
    settings = BUDGET | {"stopper": FixedBudget(400), "max_labels": 400}
    expected = learn(X, y, **settings)
    draws = np.random.default_rng(seed)
    calls, calling = [], pool_module.DaskPool._calls
    moments = {int(draws.integers(4)), 3 + int(draws.integers(6, 20))}

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


@on_a_cluster
def test_a_client_that_was_closed(cluster):
    X, y = problem(9000)
    with distributed.Client(cluster):
        learner = ActiveLearner(da.from_array(X, chunks=900), gp=GP, stopper=FixedBudget(9), seed=0)
        for _ in range(5):
            learner.tell(y[learner.ask()])
    with pytest.raises(ConnectionError, match="client was closed"):
        learner.tell(0.0, index=int(np.setdiff1d(np.arange(9000), learner._selection._here)[0]))
    run = learner.run()
    assert run.n_labels == 5
    settings = {"gp": GP, "stopper": FixedBudget(9), "seed": 0, "max_labels": 9}
    assert_same_run(run.resume(y, X=X, max_labels=9), learn(X, y, **settings))


def random_rows():
    return np.random.default_rng().normal(size=(3000, 2))


def no_rows():
    raise FileNotFoundError("no such pool")


@on_a_cluster
def test_rows_that_cannot_be_read(client):
    import cloudpickle
    import dask

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        D = da.from_delayed(dask.delayed(no_rows)(), (3000, 2), float)
        with pytest.raises(FileNotFoundError, match="no such pool"):
            ActiveLearner(D, gp=GP, stopper=FixedBudget(9), seed=0)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@on_a_cluster
def test_rows_that_are_not_the_same_when_read_again(client):
    import cloudpickle
    import dask

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        D = da.from_delayed(dask.delayed(random_rows)(), (3000, 2), float)
        learner = ActiveLearner(D, gp=GP, stopper=FixedBudget(9), seed=0)
        learner.tell(0.0)
        kill_one(client, np.random.default_rng(0))
        kill_one(client, np.random.default_rng(0))
        kill_one(client, np.random.default_rng(0))
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


@on_a_cluster
def test_the_scheduler_is_lost(tmp_path, request):
    """With the commands of Dask, as one would start them on other machines."""
    import dask

    X, y = problem(4100)
    settings = BUDGET | {"stopper": FixedBudget(200), "max_labels": 200}
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n", [1000, 3001])
def test_without_a_cluster_chunks_are_read_one_by_one(n):
    X, y = problem(n)
    D = da.from_array(X, chunks=(700, 2))
    assert_same_run(learn(D, y, **BUDGET), learn(X, y, **BUDGET))
    settings = {"stopper": FixedBudget(30), "max_labels": 30, "seed": 0}
    run = learn(D, lambda index, x: float(np.sin(x).sum()), **settings)
    assert_same_run(run, learn(X, np.sin(X).sum(axis=1), **settings))
    state = run._learner.to_dict()
    for again in (X, D.rechunk(311)):
        assert ActiveLearner.from_dict(state, again).n_labels == 30
    with pytest.raises(ValueError, match=r"finite, got inf at index \(999, 1\)"):
        learn(da.where(X[999, 1] == D, np.inf, D), y, **BUDGET)


def test_a_pool_mapped_from_a_file_is_not_copied(tmp_path):
    n, d = 60_000, 8
    X = np.memmap(tmp_path / "pool", dtype=np.float64, mode="w+", shape=(n, d))
    X[:] = np.random.default_rng(0).normal(size=(n, d))
    X.flush()
    tracemalloc.start()
    try:
        learner = ActiveLearner(X, gp=GP, stopper=FixedBudget(9), seed=0)
        ready, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        learner.to_dict()
        column_scales(learner.points)
        later = tracemalloc.get_traced_memory()[1] - ready
    finally:
        tracemalloc.stop()
    inputs = X.nbytes
    assert peak < 1.2 * inputs + 50 * n  # the scaled ones, and some numbers per point
    assert later < 0.9 * inputs  # a block, here of a quarter of the rows
    assert np.shares_memory(learner.points, X)
