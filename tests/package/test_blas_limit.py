"""One thread for BLAS: whatever overlaps, breaks or forks, the process gets its threads back."""

import dis
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from fastal import GaussianProcess, _threads, simulate
from fastal._threads import cores, one_blas_thread


def blas():
    """Threads of each library of BLAS."""
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


def set_blas(numbers):
    # not by threadpoolctl's limits: with these the main thread alone might set the number later
    found = ThreadpoolController().lib_controllers
    for one, number in zip([one for one in found if one.user_api == "blas"], numbers, strict=True):
        getattr(one, "_real_set_num_threads", one.set_num_threads)(number)


@pytest.fixture(autouse=True)
def two_threads():
    before = blas()
    set_blas([2] * len(before))
    assert set(blas()) == {2}
    yield
    after, rest = blas(), at_rest()
    set_blas(before)
    assert set(after) == {2}
    assert rest


def at_rest():
    return (_threads._inside, _threads._found, _threads._found_here) == ([], None, {})


class Overlap:
    """Two threads inside the same context: the first one in is the first one out."""

    def __init__(self, work):
        self.work = work
        self.inside = [threading.Event(), threading.Event()]
        self.leave = [threading.Event(), threading.Event()]
        self.seen = []

    def body(self):
        me = int(threading.current_thread().name)
        self.seen.append(blas())
        self.inside[me].set()
        assert self.leave[me].wait(60)

    def run(self):
        threads = [threading.Thread(target=self.work, name=str(i), args=(self,)) for i in (0, 1)]
        for thread, inside in zip(threads, self.inside, strict=True):
            thread.start()
            assert inside.wait(60)
        self.leave[0].set()
        threads[0].join(60)
        between = blas()
        self.leave[1].set()
        threads[1].join(60)
        assert not any(thread.is_alive() for thread in threads)
        return between


def test_simulations_while_the_main_thread_has_limits_of_its_own():
    # What threadpoolctl then ignores in every other thread.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    with threadpool_limits(2, user_api="blas"):
        for _ in range(3):
            simulate(X, y, gp=GaussianProcess(), n_runs=40, pool_size=20, n_jobs=2)
            assert set(blas()) == {2}


def test_simulations_leave_nothing_behind():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    for _ in range(10):
        simulate(X, y, gp=GaussianProcess(), n_runs=40, pool_size=20, n_jobs=2)
        assert set(blas()) == {2}


def test_contexts_that_overlap():
    def work(overlap):
        with one_blas_thread():
            overlap.body()

    overlap = Overlap(work)
    assert set(overlap.run()) == {1}  # one is still inside
    assert all(set(seen) == {1} for seen in overlap.seen)
    assert set(blas()) == {2}


def test_many_threads_at_random():
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for depth in rng.integers(1, 4, 50):
            uses = [one_blas_thread() for _ in range(depth)]
            for use in uses:
                use.__enter__()
            wrong.extend(set(blas()) - {1})
            for use in uses:
                use.__exit__(None, None, None)

    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert wrong == []


def test_nested_and_again():
    use = one_blas_thread()
    with use:
        with use, one_blas_thread():
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    assert set(blas()) == {2}
    with use:
        assert set(blas()) == {1}


def test_an_error_inside():
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        _ = 1 / 0
    assert set(blas()) == {2}


def test_what_is_dropped_inside():
    one_blas_thread().__enter__()  # nobody leaves it
    assert set(blas()) == {2}


def test_a_library_that_refuses(monkeypatch):
    class Broken:
        shared = True

        def get(self):
            return 2

        def set(self, threads):
            if threads == 1:
                raise OSError("no")

    libraries = _threads._libraries()
    with monkeypatch.context() as patch:
        patch.setattr(_threads, "_libraries", lambda: (*libraries, Broken()))
        with pytest.raises(OSError, match="no"), one_blas_thread():
            pass
    assert set(blas()) == {2}


class ThreadByThread:
    """A library that counts its threads thread by thread, as OpenMP does."""

    user_api = "blas"

    def __init__(self):
        self.local = threading.local()

    @property
    def num_threads(self):
        return getattr(self.local, "number", 2)

    def set_num_threads(self, number):
        self.local.number = number


def test_a_library_that_counts_thread_by_thread(monkeypatch):
    library = _threads._Library(ThreadByThread())
    assert not library.shared
    assert all(one.shared for one in _threads._libraries())
    monkeypatch.setattr(_threads, "_libraries", lambda: (library,))
    seen = []

    def work(overlap):
        with one_blas_thread():
            seen.append(library.get())
            with one_blas_thread(), _threads.workers(1) as pool:
                seen.append(pool.submit(library.get).result())
            seen.append(library.get())
            overlap.inside[int(threading.current_thread().name)].set()
            assert overlap.leave[int(threading.current_thread().name)].wait(60)
        seen.append(library.get())

    library.set(3)
    Overlap(work).run()
    assert sorted(seen) == [1] * 6 + [2] * 2
    assert library.get() == 3


def test_dropped_by_another_thread(monkeypatch):
    library = _threads._Library(ThreadByThread())
    monkeypatch.setattr(_threads, "_libraries", lambda: (library,))
    kept = [one_blas_thread()]
    thread = threading.Thread(target=kept[0].__enter__)
    thread.start()
    thread.join()
    kept.clear()
    assert at_rest()
    assert library.get() == 2


def interrupted_at(place):
    """Use the limit with Ctrl-C at one moment in the module; return whether it came.

    Python looks for signals when a function begins, after a call and at the end of a loop's body:
    never between a lock that is entered by `with` and the first instruction under it.
    """
    left, last = [place], {}

    def trace(frame, event, argument):
        if frame.f_globals is not vars(_threads):
            return None
        frame.f_trace, frame.f_trace_opcodes = trace, True  # in this order for Python 3.13
        looks = event == "call"
        if event == "opcode":
            done = last.get(id(frame))
            looks = done is not None and done.startswith(("CALL", "JUMP_BACKWARD"))
            last[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if looks:
            left[0] -= 1
            if left[0] < 0 and not came:
                came.append(event)
                raise KeyboardInterrupt
        return trace

    came = []
    before = sys.gettrace()
    try:
        sys.settrace(trace)
        with one_blas_thread(), one_blas_thread():
            inside = len(_threads._inside)
        sys.settrace(before)
        assert inside == 2
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return bool(came)


def test_ctrl_c_at_every_moment(monkeypatch):
    # Python itself ignores what is raised while an object is collected.
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    place = 0
    while interrupted_at(place):
        assert set(blas()) == {2}, place
        assert at_rest(), place
        assert not _threads._guard._is_owned(), place
        place += 1
    assert place > 40


CHILD = """
import os, sys, threading
from threadpoolctl import threadpool_info, threadpool_limits
import fastal.models.gp
from fastal import _threads
from fastal._threads import one_blas_thread

def blas():
    return {entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"}

threadpool_limits(2, user_api="blas")
inside, leave = threading.Event(), threading.Event()

def hold():
    with _threads._guard, one_blas_thread():
        inside.set()
        leave.wait()

thread = threading.Thread(target=hold)
thread.start()
inside.wait()

def in_child():
    assert blas() == {2}, blas()      # the thread that wanted one is not here
    with one_blas_thread():
        assert blas() == {1}
    assert blas() == {2}

child = os.fork()
if child == 0:
    try:
        in_child()
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)
wrong = os.waitpid(child, 0)[1]
assert blas() == {1}                  # here it goes on
leave.set()
thread.join()
assert blas() == {2}
with one_blas_thread():               # a fork from inside: both leave
    child = os.fork()
if child == 0:
    os._exit(blas() != {2})
wrong = wrong or os.waitpid(child, 0)[1]
assert blas() == {2}
print("done", wrong)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forks():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CHILD],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("done 0\n", "")


def test_cores():
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_cores_where_affinity_is_unknown(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == (os.cpu_count() or 1)
