"""simulate on a real Dask cluster: a scheduler and two worker processes on this machine."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import joblib
import numpy as np
import pytest

from fastal import GaussianProcess, MovementBelow, simulate
from fastal._core import campaigns
from fastal.simulation import result as result_module
from fastal.simulation import scheduler

distributed = pytest.importorskip("distributed", reason="dask is not installed")
if not hasattr(campaigns.run_many, "py_func"):
    pytest.skip("workers that interpret kernels take too long", allow_module_level=True)

# A cluster takes its time. Dask's own shutdown is not free of warnings.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ARRAYS = ("n_labels", "stopped_at", "bounds", "errors", "t_opt", "e_stop")


def study(n_runs=300, gp=GaussianProcess(1.5, 0.0025), **more):  # noqa: B008 # it is copied
    draws = np.random.default_rng(0)
    x = draws.uniform(-5, 15, 400)
    y = np.exp(-((x - 2) ** 2) / 2) + 0.05 * draws.normal(size=400)
    return simulate(x, y, gp=gp, n_runs=n_runs, pool_size=50, **more)


def assert_same(a, b):
    for name in ARRAYS:
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    assert a.failures == b.failures


@pytest.fixture
def client():
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_cluster_changes_nothing(client, tmp_path, monkeypatch):
    scattered = []
    scatter = client.scatter

    def counting(data, **options):
        scattered.extend(np.shape(array) for array in data)
        return scatter(data, **options)

    monkeypatch.setattr(client, "scatter", counting)
    monkeypatch.setattr(scheduler, "CHUNK_SECONDS", 0.02)
    store = tmp_path / "runs.sqlite"
    with joblib.parallel_config(backend="dask"):
        result = study(store=store)
    assert_same(result, study())
    assert_same(study(store=store), result)
    # inputs and labels once, not once a chunk
    assert sorted(scattered) == [(1, 400), (400,)]


@pytest.mark.usefixtures("client")
def test_runs_that_learn_their_hyper_parameters():
    with joblib.parallel_config(backend="dask"):
        far = study(12, gp=None, criteria=[MovementBelow(0.1)])
    near = study(12, gp=None, criteria=[MovementBelow(0.1)])
    assert_same(far, near)
    assert far.criteria_stops.tolist() == near.criteria_stops.tolist()


def failing(rng):
    if rng.random() < 0.3:
        raise RuntimeError("no data")
    x = rng.uniform(0, 5, 60)
    return x, np.sin(x)


def test_callables_and_failures(client):
    arguments = {"gp": GaussianProcess(), "n_runs": 30, "pool_size": 20}
    # by value: a worker cannot import a module of tests
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with joblib.parallel_config(backend="dask"):
            result = simulate(failing, **arguments)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert_same(result, simulate(failing, **arguments))
    assert result.failures


def test_a_worker_is_killed(client, monkeypatch):
    expected = study(3000)
    monkeypatch.setattr(scheduler, "CHUNK_SECONDS", 0.02)
    victim = client.run(os.getpid)
    killed = []
    put = result_module._Table.put

    def put_and_kill(self, chunk):
        put(self, chunk)
        if not killed and self.n_done > 300:
            killed.append(next(iter(victim.values())))
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(result_module._Table, "put", put_and_kill)
    with joblib.parallel_config(backend="dask"):
        result = study(3000)
    assert killed
    assert_same(result, expected)


def test_the_last_copy_of_the_data_is_lost(client, monkeypatch):
    """Dask drops copies of scattered data after some seconds, and cannot make the last one again."""
    expected = study(3000)
    victim, pid = next(iter(client.run(os.getpid).items()))
    sent, scatter = [], client.scatter

    def to_the_victim(data, **options):
        sent.append(len(data))
        if len(sent) == 1:
            options = {"workers": [victim], "hash": False}
        return scatter(data, **options)

    killed, put = [], result_module._Table.put

    def put_and_kill(self, chunk):
        put(self, chunk)
        if not killed and self.n_done > 300:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr(scheduler, "CHUNK_SECONDS", 0.02)
    monkeypatch.setattr(client, "scatter", to_the_victim)
    monkeypatch.setattr(result_module._Table, "put", put_and_kill)
    # with a task the other worker would get a copy of the data
    with joblib.parallel_config(backend="dask", workers=[victim], allow_other_workers=True):
        result = study(3000)
    assert killed
    assert sent == [2, 2]
    assert_same(result, expected)


def test_an_exception_and_ctrl_c_leave_the_cluster_free(client, monkeypatch):
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        with joblib.parallel_config(backend="dask"), pytest.raises(RuntimeError, match="no data"):
            simulate(failing, gp=GaussianProcess(), n_runs=30, pool_size=20, errors="raise")
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "CHUNK_SECONDS", 0.02)
        patch.setattr(
            result_module._Table, "put", lambda *_: os.kill(os.getpid(), signal.SIGINT)
        )  # while other chunks are under way
        with joblib.parallel_config(backend="dask"), pytest.raises(KeyboardInterrupt):
            study(3000)
    for _ in range(600):  # nothing is left to do: chunks under way are at their end soon
        if not any(client.processing().values()):
            break
        time.sleep(0.1)
    assert not any(client.processing().values())
    with joblib.parallel_config(backend="dask"):
        result = study()
    assert_same(result, study())


def wait_for(path):
    for _ in range(600):
        if path.exists() and path.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} was not written")


def test_the_commands_of_dask(tmp_path):
    """`dask scheduler` and `dask worker`, as one would start them on other machines."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    started = [
        subprocess.Popen(
            [*dask, "scheduler", "--scheduler-file", file, "--port", "0", "--no-dashboard"], **quiet
        )
    ]
    watchdog = threading.Timer(120, lambda: [process.kill() for process in started])
    watchdog.start()
    try:
        wait_for(file)
        worker = [*dask, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard"]
        started += [subprocess.Popen([*worker, "--no-nanny"], **quiet) for _ in range(2)]
        with distributed.Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(2, timeout=60)
            with joblib.parallel_config(backend="dask"):
                result = study()
    finally:
        watchdog.cancel()
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:  # a worker of Dask may hang while it closes
                process.kill()
                process.wait()
    assert_same(result, study())
