"""Threads, processes and hostile surroundings: the same answers, or a clear word."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import twins
from numba import config

import fastal
from fastal import FixedBudget, GaussianProcess, Stopper, Streams, jit
from fastal._core.rule import Rule
from fastal.cli.entry import main

PACKAGE = Path(fastal.__file__).parent
needs_jit = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT"
)

BOUNDS = np.repeat([5.0, 1.0], 10) + np.random.default_rng(0).uniform(0, 1, 20)
STOP = next(
    n
    for n in range(2, 21)
    if twins.runs_test(BOUNDS[:n], alternative="less") <= 1e-3  # by exact integers
)

# In a process of its own: the Cython half, and a kernel that is quickly compiled.
CODE = f"""
import json, sys
import numpy as np
from fastal import Stopper, Streams, jit
bounds, streams = np.array({BOUNDS.tolist()}), Streams(Stopper(), 1)
stops = [jit.push(streams.handle, 0, r) for r in bounds.tolist()]
compiled = jit.stopped_at(streams.handle, 0)
print(json.dumps([Stopper().extend(bounds), compiled, sys.flags.optimize]))
"""


def python(*options, code=CODE, before=(), **environment):
    """Run code in a fresh interpreter, started by a command before it; return the process."""
    path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": path} | environment
    return subprocess.run(
        [*before, sys.executable, "-P", *options, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )


def answer(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# threads ----------------------------------------------------------------------------------------


def compiled_stop(bounds):
    """Return the stop of a Stopper as compiled code finds it."""
    streams = Streams(Stopper(), 1)
    stops = [jit.push(streams.handle, 0, r) for r in bounds]
    at = jit.stopped_at(streams.handle, 0)
    assert stops == [n >= at > 0 for n in range(1, len(bounds) + 1)]
    return at


def test_the_stop_that_all_must_find():
    assert Stopper().extend(BOUNDS) == STOP
    assert compiled_stop(BOUNDS.tolist()) == STOP


def test_stoppers_in_many_threads():
    streams = np.random.default_rng(1).standard_normal((64, 300)) + np.r_[[3.0] * 60, [0.0] * 240]

    def follow(stream):
        stopper = Stopper() | FixedBudget(290)
        for value in stream.tolist():
            stopper.push(value)
        one = stopper.members[0]
        return stopper.stopped_at, one.stopped_at, one.p_value, one.median

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(follow, streams))
    assert together == [follow(stream) for stream in streams]
    assert any(stop for _, stop, _, _ in together)


def test_two_threads_at_once_in_one_stopper():
    # A stopper belongs to one thread at a time. `extend` lets the GIL go: a call of another thread
    # meanwhile is refused, and nothing is corrupted.
    stopper, taken, refused = Stopper(), [0, 0], [0, 0]
    block = np.random.default_rng(2).standard_normal(20_000)

    def push():
        for value in block[:5000].tolist():
            try:
                stopper.push(value)
                taken[0] += 1
            except RuntimeError as error:
                refused[0] += "in use by another thread" in str(error)

    def extend():
        for _ in range(10):
            try:
                stopper.extend(block)
                taken[1] += len(block)
            except RuntimeError as error:
                refused[1] += "in use by another thread" in str(error)

    threads = [threading.Thread(target=work) for work in (push, extend)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken[0] + refused[0] == 5000
    assert taken[1] // len(block) + refused[1] == 10
    assert len(stopper.bounds) == sum(taken)
    again = Stopper()
    again.extend(stopper.bounds)
    assert (again.stopped_at, again.n_runs, again.median) == (
        stopper.stopped_at,
        stopper.n_runs,
        stopper.median,
    )


def test_many_threads_at_once_in_streams():
    # `.ci/run --long` does this under ThreadSanitizer as well
    streams, outcomes = Streams(Stopper(), 2000), []
    block = np.random.default_rng(5).standard_normal(2000)
    some = np.isin(np.arange(2000), [3, 4])
    calls = [lambda: streams.push(block), lambda: streams.reset(some), lambda: streams.bounds(2)]

    def work(seed):
        for call in np.random.default_rng(seed).integers(0, len(calls), 200).tolist():
            try:
                calls[call]()
                outcomes.append("done")
            except RuntimeError as error:
                outcomes.append(str(error))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(4))) == [None] * 4  # nothing else was raised
    finally:
        sys.setswitchinterval(interval)
    assert len(outcomes) == 800
    assert set(outcomes) <= {"done", "the streams are in use by another thread"}
    assert streams.n[0] == max(streams.n)


CALLS_OF_A_RULE = {
    "push": lambda rule: rule.push(1.0),
    "extend": lambda rule: rule.extend(BOUNDS),
    "replace": lambda rule: rule.replace(BOUNDS, True),
    "restore": lambda rule: rule.restore(BOUNDS, (0,), 0, False),
    "reset": lambda rule: rule.reset(),
    "set_horizon": lambda rule: rule.set_horizon(50),
    "copy": lambda rule: rule.copy(),
    "bounds": lambda rule: rule.bounds(np.empty(len(BOUNDS))),
    "says": lambda rule: rule.says,
    "left": lambda rule: rule.left,
    "level": lambda rule: rule.level,
    "lend": lambda rule: rule.lend(),
}


@pytest.mark.parametrize("call", CALLS_OF_A_RULE.values(), ids=CALLS_OF_A_RULE)
@pytest.mark.parametrize("spec", [("runs", 1e-3, 0, True, True, 0), ("still", 0.1, 50)], ids=repr)
def test_no_call_of_a_rule_that_something_else_changes(call, spec):
    # seen by ThreadSanitizer: numbers were read while another thread's extend wrote them
    rule = Rule(spec)
    rule.extend(BOUNDS)
    known = rule.n, rule.stopped_at, rule.stops
    rule.lend()
    with pytest.raises(RuntimeError, match="in use by another thread"):
        call(rule)
    rule.take_back()
    assert (rule.n, rule.stopped_at, rule.stops) == known
    call(rule.copy())


def test_processes_of_labels_in_many_threads():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)

    def grow(_):
        gp = GaussianProcess()
        return [gp.add(x, label) for x, label in zip(X, y, strict=True)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(grow, range(8)))
    assert all(result == results[0] for result in results)


@needs_jit
@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="NumPy 1 lets it go for every copy of an array",
)
def test_small_campaigns_keep_the_gil():
    # Threads that change places within a campaign lose as much time as its compiled part takes. NumPy
    # lets the GIL go for every range of numbers, and for a kilobyte of zeros.
    resource = pytest.importorskip("resource", reason="no count of hand-overs on this platform")
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 4)), rng.standard_normal(100)

    def campaigns(n):
        gp, stopper = GaussianProcess(), Stopper()
        for seed in range(n):
            fastal.learn(X, y, gp=gp, criterion=stopper, seed=seed, threads=1)

    def waits():
        return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw

    campaigns(1)  # compiles
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.1)  # hundreds of campaigns
        before = waits()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(campaigns, [400, 400]))
        assert waits() - before < 80  # 500 to 750 where each of the 800 lets it go
    finally:
        sys.setswitchinterval(interval)


# processes --------------------------------------------------------------------------------------


def stop_in_child(bounds):
    gp = GaussianProcess()
    gp.add(0.5, 1.0)
    return Stopper().extend(bounds), compiled_stop(bounds), gp.add(0.6, 0.9)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_with_a_warm_cache():
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    here = stop_in_child(BOUNDS.tolist())
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(stop_in_child, [BOUNDS.tolist()] * 4) == [here] * 4


def test_spawn_with_a_warm_cache():
    # what multiprocessing's spawn does, without its need to import this file by name
    code = CODE.replace("import json, sys", "import json, sys, multiprocessing, fastal._core.rule")
    code += "\nprint(multiprocessing.get_context('spawn').Pool(1).map(Stopper().extend, [bounds.tolist()]))"
    done = python(code=f"if __name__ == '__main__':\n    exec({code!r})")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert json.loads(first)[:2] == [STOP, STOP]
    assert json.loads(second) == [STOP]


@needs_jit
def test_two_processes_compile_at_once(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(python, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
        assert [answer(done.result()) for done in both] == [[STOP, STOP, 0]] * 2
    # what they left behind is whole
    assert answer(python(NUMBA_CACHE_DIR=str(tmp_path))) == [STOP, STOP, 0]


# surroundings -----------------------------------------------------------------------------------

NOWHERE = "/proc/none"  # no one can write there, not even root


@needs_jit
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that nobody can write")
def test_cache_folder_that_cannot_be_written():
    # Numba goes on to the next place, the package's own.
    assert answer(python(NUMBA_CACHE_DIR=NOWHERE)) == [STOP, STOP, 0]


@needs_jit
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that nobody can write")
def test_package_and_home_that_cannot_be_written(tmp_path):
    # A file where the cache's folder should be: as good as a package that is read-only.
    copy = tmp_path / "fastal"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    for folder in (copy, *(path.parent for path in copy.rglob("__init__.py"))):
        (folder / "__pycache__").touch()
    done = python(
        PYTHONPATH=str(tmp_path), HOME=NOWHERE, XDG_CACHE_HOME=NOWHERE, PYTHONDONTWRITEBYTECODE="1"
    )
    assert answer(done) == [STOP, STOP, 0]
    assert done.stderr.count("no folder for compiled code can be written") == 1
    assert "set the environment variable NUMBA_CACHE_DIR" in done.stderr


def test_home_that_cannot_be_written():
    assert answer(python(HOME=NOWHERE, XDG_CACHE_HOME=NOWHERE)) == [STOP, STOP, 0]


def test_optimised_python():
    assert answer(python("-O")) == [STOP, STOP, 1]
    bad = "from fastal import Stopper\nStopper().push(float('nan'))"
    done = python("-O", code=bad)
    assert done.returncode == 1
    assert "ValueError: `r` must be finite, got nan" in done.stderr


def test_no_compiler_at_run_time(tmp_path):
    done = python(PATH=str(tmp_path), CC=str(tmp_path / "no_such_compiler"))
    assert answer(done) == [STOP, STOP, 0]


def test_no_network(tmp_path):
    # Every attempt to open a connection fails; what needs none goes on.
    code = "import socket\ndef refuse(*_, **__):\n    raise OSError('no network')\n"
    code += "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
    assert answer(python(code=code + CODE)) == [STOP, STOP, 0]
    done = python(
        code=code + "from fastal.datasets import load\nload('yacht')",
        FASTAL_DATA=str(tmp_path),
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("OSError: cannot download")


# All of it at once; first the proof that the surroundings are what they should be.
DEMO = """
import pathlib, shutil, socket, sys
from fastal.cli.entry import main
if not sys.flags.optimize or shutil.which("cc") or shutil.which("gcc"):
    raise SystemExit("not optimised, or there is a compiler")
try:
    socket.create_connection(("127.0.0.1", 9), timeout=5)
    raise SystemExit("there is a network")
except ConnectionRefusedError:
    raise SystemExit("there is a network")
except OSError:
    pass
try:
    (pathlib.Path.home() / "file").touch()
    raise SystemExit("home can be written")
except OSError:
    raise SystemExit(main(["demo"]))
"""


@needs_jit
def test_the_demo_in_hostile_surroundings(tmp_path, capsys):
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, "-rn", "true"], capture_output=True).returncode:
        pytest.skip("a process cannot be cut off from the network here")
    # what is behind the call of unshare has neither PATH nor network
    surroundings = {"PATH": str(tmp_path), "CC": "", "HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE}
    done = python("-O", code=DEMO, before=[unshare, "-rn"], **surroundings)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert main(["demo"]) == 0
    assert done.stdout == capsys.readouterr().out
