"""One thread for BLAS: whatever overlaps or breaks, the process gets its threads back."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from fastal import GaussianProcess, _threads, simulate
from fastal._threads import cores, map_blocks, one_blas_thread


def blas():
    """Threads of each library of BLAS."""
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    controller = ThreadpoolController()
    before = controller.limit(limits=2, user_api="blas")
    with controller.limit():
        pass  # threadpoolctl lets other threads set the number again
    assert set(blas()) == {2}
    yield
    after = set(blas())
    with before:
        pass
    assert after == {2}
    assert (_threads._inside, _threads._found) == (set(), None)


@pytest.mark.parametrize("first_out", [0, 1])
def test_two_user_threads_whose_limits_overlap(first_out):
    inside, leave = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]
    seen = []

    def work(me):
        with one_blas_thread():
            seen.append(set(blas()))
            inside[me].set()
            assert leave[me].wait(60)

    threads = [threading.Thread(target=work, args=(me,)) for me in (0, 1)]
    for thread, event in zip(threads, inside, strict=True):
        thread.start()
        assert event.wait(60)
    leave[first_out].set()
    threads[first_out].join(60)
    assert set(blas()) == {1}  # one is still inside
    leave[1 - first_out].set()
    threads[1 - first_out].join(60)
    assert seen == [{1}, {1}]
    assert set(blas()) == {2}


def test_many_threads_at_random():
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            with one_blas_thread():
                map_blocks(lambda _: time.sleep(0), range(rng.integers(1, 4)), 3)
                assert set(blas()) == {1}

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(switch)


def test_nested_and_an_error_inside():
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        _ = 1 / 0
    assert set(blas()) == {2}


def test_what_is_dropped_inside():
    one_blas_thread().__enter__()  # nobody leaves it
    assert set(blas()) == {2}


def test_simulations_while_the_main_thread_has_limits_of_its_own():
    # What threadpoolctl then ignores in every other thread.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    with threadpool_limits(2, user_api="blas"):
        for _ in range(3):
            simulate(X, y, gp=GaussianProcess(), n_runs=40, pool_size=20, n_jobs=2)
            assert set(blas()) == {2}


FRESH = """
import numpy as np, scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_info
from fastal import GaussianProcess, simulate

def blas():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

before = blas()
rng = np.random.default_rng(0)
X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
simulate(X, y, gp=GaussianProcess(), n_runs=400, pool_size=60, n_jobs=2)
assert blas() == before, (before, blas())
print(len(before))
"""


def test_fresh_processes():
    settings = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    found = set()
    for _ in range(20):
        done = subprocess.run(
            [sys.executable, "-c", FRESH], capture_output=True, text=True, timeout=120, env=settings
        )
        assert done.returncode == 0, done.stderr
        found.add(int(done.stdout))
    assert found <= {1, 2, 3}  # libraries of BLAS: NumPy's, SciPy's


def test_blocks_come_back_in_order_from_several_threads():
    who = set()

    def call(start):
        who.add(threading.get_ident())
        time.sleep(0.001)
        return start * start

    assert map_blocks(call, range(0, 100, 3), 4) == [k * k for k in range(0, 100, 3)]
    assert len(who) == 4
    assert map_blocks(call, [], 4) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_block_is_raised_and_nobody_is_left_at_work(threads):
    at_work = []

    def call(start):
        at_work.append(start)
        time.sleep(0.002)
        at_work.remove(start)
        if start == 17:
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        map_blocks(call, range(40), threads)
    assert at_work == []


def test_ctrl_c_waits_for_the_blocks_that_were_begun():
    at_work, ours = [], []

    def call(start):
        at_work.append(start)
        time.sleep(0.003)
        at_work.remove(start)
        if threading.current_thread() is threading.main_thread():
            ours.append(start)
            if len(ours) == 3:
                raise KeyboardInterrupt

    for _ in range(20):
        ours.clear()
        with pytest.raises(KeyboardInterrupt):
            map_blocks(call, range(60), 3)
        assert at_work == []


def test_cores():
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_cores_where_affinity_is_unknown(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == (os.cpu_count() or 1)
