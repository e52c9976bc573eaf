"""The store of a simulation: processes are killed, files damaged and disks filled for real."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fastal import FixedBudget, GaussianProcess, Stopper, simulate
from fastal._core import campaigns
from fastal.simulation import scheduler, worker
from fastal.simulation import store as store_module
from fastal.simulation.chunk import Chunk

JIT = hasattr(campaigns.run_many, "py_func")
RUNS = 4000 if JIT else 6
ARRAYS = ("n_labels", "stopped_at", "bounds", "errors", "t_opt", "e_stop", "criteria_stops")

STUDY = """
import sys
import numpy as np
from fastal import FixedBudget, GaussianProcess, simulate
draws = np.random.default_rng(0)
x = draws.uniform(-5, 15, 120)
y = np.exp(-((x - 2) ** 2) / 2) + 0.05 * draws.normal(size=120)

def study(n_runs, store=None, **more):
    arguments = dict(gp=GaussianProcess(1.5, 0.0025), pool_size=40 if n_runs > 100 else 15)
    arguments |= dict(criteria=[FixedBudget(6)], seed=2)
    return simulate(x, y, n_runs=n_runs, store=store, **(arguments | more))
"""
names = {}
exec(STUDY, names)
study = names["study"]


def child(code, **more):
    # Chunks of a few milliseconds: many commits to be killed in.
    start = STUDY + "from fastal.simulation import scheduler\nscheduler.CHUNK_SECONDS = 0.01\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, **more,
    )  # fmt: skip


def table(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as file:
        rows = file.execute("SELECT data FROM chunks").fetchall()
    file.close()
    return [Chunk.unpack(data) for (data,) in rows]


def stored_runs(path):
    """Number of runs in a store."""
    return len({run for chunk in table(path) for run in chunk.runs.tolist()})


def assert_same(a, b):
    for name in ARRAYS:
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    assert a.failures == b.failures
    assert a.eta == b.eta


@pytest.fixture(scope="module")
def undisturbed():
    return study(RUNS)


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "runs.sqlite")


def test_a_store_changes_nothing(store, undisturbed):
    assert_same(study(RUNS, store), undisturbed)
    before = Path(store).read_bytes()
    assert_same(study(RUNS, store, n_jobs=2), undisturbed)
    assert Path(store).read_bytes() == before
    assert stored_runs(store) == RUNS
    assert not os.path.exists(store + "-journal")


def test_only_what_is_missing_is_computed(store, monkeypatch):
    study(5, store)
    computed = []
    compute = worker.run_chunk

    def watched(*arguments):
        computed.extend(run for low, high in arguments[-1] for run in range(low, high))
        return compute(*arguments)

    monkeypatch.setattr(scheduler, "run_chunk", watched)
    more = study(9, store)
    # a chunk that takes long hands back its rest: that is asked for once more
    assert set(computed) == {5, 6, 7, 8}
    assert_same(more, study(9))
    computed.clear()
    fewer = study(3, store)
    assert computed == []
    assert_same(fewer, study(3))


CLOSED_EARLY = """
import random, tempfile, threading, time
from fastal.simulation.store import Store

chance = random.Random(0)
data = bytes(300_000)
with tempfile.TemporaryDirectory() as folder:
    for i in range(100):
        store = Store(f"{folder}/{i}.sqlite", {})

        def write():
            try:
                for _ in range(30):
                    store.add(data)
            except OSError:
                pass

        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(chance.uniform(0, 0.01))
        store.close()
        thread.join()
        again = Store(f"{folder}/{i}.sqlite", {})
        assert all(chunk == data for chunk in again.chunks())
        again.close()
print("alive")
"""


def test_closing_waits_for_a_commit():
    """A second Ctrl-C closes the store while its thread writes: Python crashed."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CLOSED_EARLY], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def kill_often(store, times, undisturbed):
    """Kill a study so many times, then let it finish."""
    chance = random.Random(0)
    begun = killed = 0
    seen = 0
    while killed < times:
        begun += 1
        assert begun < 5 * times + 20
        process = child(f"print('begin', flush=True); study({RUNS}, {store!r}, n_jobs=2)")
        assert process.stdout.readline() == "begin\n"
        time.sleep(chance.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            killed += 1
        if os.path.exists(store) and os.path.getsize(store):
            copy = store + "-copy"
            for ending in ("", "-journal"):
                if os.path.exists(store + ending):
                    shutil.copy(store + ending, copy + ending)
            with closing(sqlite3.connect(copy)) as file:
                begun = file.execute("PRAGMA schema_version").fetchone()[0]
            if begun:
                now = stored_runs(copy)
                assert now >= seen  # nothing that was committed is ever lost
                seen = now
                if now == RUNS:  # finished before the signal: begin again, to be killed
                    assert_same(study(RUNS, store), undisturbed)
                    os.remove(store)
                    seen = 0
            for ending in ("", "-journal"):
                if os.path.exists(copy + ending):
                    os.remove(copy + ending)
    assert_same(study(RUNS, store), undisturbed)
    assert stored_runs(store) == RUNS


@pytest.mark.skipif(not JIT, reason="interpreted runs take too long to be killed in between")
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_killed_three_times(store, undisturbed):
    kill_often(store, 3, undisturbed)


@pytest.mark.long
@pytest.mark.skipif(not JIT, reason="interpreted runs take too long to be killed in between")
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_killed_twenty_times(store, undisturbed):
    kill_often(store, 20, undisturbed)


def test_two_processes_share_a_store(store, undisturbed):
    both = [child(f"study({RUNS}, {store!r}); print('done')") for _ in range(2)]
    for process in both:
        out, err = process.communicate()
        assert (process.returncode, out) == (0, "done\n"), err
    assert_same(study(RUNS, store), undisturbed)
    assert stored_runs(store) == RUNS
    with sqlite3.connect(store) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("SELECT count(*) FROM settings").fetchone() == (1,)
    file.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 3}, "other settings: seed is 2 there, 3 here"),
        ({"pool_size": 12}, "max_labels is 15 there, 12 here; pool_size is 15 there, 12 here"),
        ({"gp": GaussianProcess(1.0, 0.01)}, "other settings: gp is"),
        ({"criterion": Stopper(0.01)}, "other settings: criterion is"),
        ({"criteria": [FixedBudget(7)]}, "other settings: criteria is"),
        ({"criteria": []}, "other settings: criteria is"),
        ({"test": None}, "other settings: test is 'rest' there, None here"),
        ({"keep": "summary"}, "other settings: keep is 'all' there, 'summary' here"),
        ({"initial": 2}, "other settings: initial is 1 there, 2 here"),
    ],
)
def test_other_settings(store, change, message):
    study(3, store)
    before = Path(store).read_bytes()
    with pytest.raises(ValueError, match=message):
        study(3, store, **change)
    assert Path(store).read_bytes() == before
    study(3, store)


def test_other_data(store):
    gp = GaussianProcess(1.5, 0.01)
    x, y = np.arange(30.0), np.zeros(30)
    simulate(x, y, gp=gp, n_runs=2, store=store)
    other = y.copy()
    other[29] = 1e-300
    with pytest.raises(ValueError, match="other settings: data is"):
        simulate(x, other, gp=gp, n_runs=2, store=store)
    with pytest.raises(ValueError, match="other settings: data is"):
        simulate(lambda rng: (x, y), gp=gp, n_runs=2, store=store)
    path = store + "2"
    simulate(lambda rng: (rng.random(30), y), gp=gp, n_runs=2, store=path)
    simulate(lambda rng: (rng.random(30), y), gp=gp, n_runs=3, store=path)
    with pytest.raises(ValueError, match="other settings: data is 'run 0 of a callable"):
        simulate(lambda rng: (rng.random(30), y + 1), gp=gp, n_runs=3, store=path)


def refused(store, message):
    before = Path(store).read_bytes()
    with pytest.raises(ValueError, match=message):
        study(3, store)
    assert Path(store).read_bytes() == before
    assert sorted(os.listdir(os.path.dirname(store))) == [os.path.basename(store)]


def change(store, statement, *values):
    file = sqlite3.connect(store)
    with file:
        file.execute(statement, values)
    file.close()


def test_another_format(store, monkeypatch):
    monkeypatch.setattr(store_module, "FORMAT", 0)
    study(3, store)
    monkeypatch.undo()
    refused(store, "has format 0, this version of fastal reads and writes format 4")


def test_foreign_files(store):
    Path(store).write_text("run,labels\n0,17\n" * 100, encoding="utf-8")
    refused(store, "is damaged or no store: file is not a database")
    os.remove(store)
    change(store, "CREATE TABLE mine (value INTEGER)")
    refused(store, "is an SQLite file, but no store of fastal")


def test_changed_bytes(store):
    study(3, store)
    good = Path(store).read_bytes()
    chunk = table(store)[0].bounds.tobytes()[:40]
    place = good.index(chunk)
    Path(store).write_bytes(good[:place] + b"\0" + good[place + 1 :])
    refused(store, "is damaged: chunk 1 does not fit its hash")
    # anywhere else: refused, or harmless
    chance = random.Random(1)
    expected = study(3)
    for _ in range(60 if JIT else 5):
        place = chance.randrange(len(good))
        bad = good[:place] + bytes([good[place] ^ (1 << chance.randrange(8))]) + good[place + 1 :]
        Path(store).write_bytes(bad)
        try:
            result = study(3, store)
        except (ValueError, OSError) as error:
            assert "`store`" in str(error)  # noqa: PT017
            assert Path(store).read_bytes() == bad
        else:
            assert_same(result, expected)
        os.remove(store)


def test_damaged_settings(store):
    study(3, store)
    good = Path(store).read_bytes()
    change(store, "UPDATE settings SET text = '{}'")
    refused(store, "the settings do not fit their hash")
    Path(store).write_bytes(good)
    change(store, "DELETE FROM settings")
    refused(store, "is damaged: it has no settings")
    Path(store).write_bytes(good)
    change(store, "UPDATE chunks SET data = ?", b"abc")
    refused(store, "does not fit its hash")
    import hashlib

    change(store, "UPDATE chunks SET digest = ?", hashlib.sha256(b"abc").digest())
    refused(store, "is damaged")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_truncated(store, share):
    study(30 if JIT else 6, store, pool_size=40)
    size = os.path.getsize(store)
    os.truncate(store, int(size * share))
    before = Path(store).read_bytes()
    with pytest.raises((ValueError, OSError), match=r"`store` .* (is damaged|cannot be read)"):
        study(30 if JIT else 6, store, pool_size=40)
    assert Path(store).read_bytes() == before


def test_an_empty_file_is_a_new_store(store):
    Path(store).touch()
    study(3, store)
    assert stored_runs(store) == 3


def small_disk(folder):
    """Mount a file system of 1 MB; return whether that is allowed here."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


FULL = """
try:
    study({runs}, {store!r})
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(not JIT, reason="interpreted runs take too long to fill a disk")
@pytest.mark.parametrize("how", ["disk", "limit"])
def test_a_full_disk(tmp_path, how, undisturbed):
    folder = tmp_path / "disk"
    folder.mkdir()
    store = str(folder / "runs.sqlite")
    more = {}
    if how == "limit":
        more["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))
    elif not small_disk(folder):
        pytest.skip("a small file system cannot be mounted here")
    try:
        process = child(FULL.format(runs=RUNS, store=store), **more)
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert "`store`" in out
        assert "cannot be written" in out
        assert "what was committed is kept" in out
        kept = stored_runs(store)
        assert 0 < kept < RUNS
        moved = str(tmp_path / "moved.sqlite")
        shutil.copy(store, moved)
    finally:
        if how == "disk":
            subprocess.run(["umount", str(folder)], check=True)
    assert_same(study(RUNS, moved), undisturbed)


def test_a_locked_store(store, monkeypatch):
    study(3, store)
    monkeypatch.setattr(store_module, "PATIENCE", 0.05)
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(OSError, match="cannot be read: database is locked"):
        study(3, store)
    other.execute("ROLLBACK")
    other.execute("BEGIN IMMEDIATE")
    study(3, store)  # nothing to write
    with pytest.raises(OSError, match="cannot be written: database is locked"):
        study(4, store)
    other.execute("ROLLBACK")
    other.close()
    study(4, store)


def fails(rng):
    if rng.random() < 0.4:
        raise RuntimeError("sometimes\x00")
    return np.arange(30.0), np.zeros(30)


def test_failures_are_stored(store):
    gp = GaussianProcess()
    first = simulate(fails, gp=gp, n_runs=20, store=store)
    again = simulate(fails, gp=gp, n_runs=20, store=store)
    assert first.failures == again.failures
    assert 0 < len(first.failures) < 20
    assert first.failures[0].message == "RuntimeError: sometimes "
    with pytest.raises(RuntimeError, match="sometimes"):
        simulate(fails, gp=gp, n_runs=20, store=store, errors="raise")


def test_bytes_round_trip():
    chunk = Chunk(
        np.array([4, 7]), np.zeros((2, 2), dtype=np.int64), np.zeros((2, 0), dtype=np.int64),
        np.array([[[1.0, np.nan]], [[2.0, 3.0]]]), np.array([[1.0, np.nan], [np.inf, -0.0]]), np.zeros((2, 0)),
        np.array([[0.5], [0.25]]), [(7, "a\nb ü \ud800")], 1.0,
    )  # fmt: skip
    back = Chunk.unpack(chunk.pack())
    for one, other in zip(chunk[:7], back[:7], strict=True):
        assert one.tobytes() == other.tobytes()
    assert back.messages == [(7, "a\nb ü \\ud800")]
