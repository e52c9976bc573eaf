"""Ctrl-C in real processes: exit status 130, one line, and what is finished is not lost."""

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
from numba import config

from fastal.cli.entry import main
from fastal.simulation.store import count_runs

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals and pseudo-terminals of POSIX"),
    pytest.mark.skipif(bool(config.DISABLE_JIT), reason="minutes without the JIT"),
]

# A process that the suite starts in the background would inherit that Ctrl-C is ignored.
CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from fastal.cli import main
sys.exit(main(sys.argv[1:]))
"""
PATIENCE = 300  # seconds; the machine may be busy, and Numba may have to compile first


class Command:
    """A command whose standard error is a terminal, as for somebody who waits and gives up."""

    def __init__(self, call, folder):
        import fcntl
        import pty
        import termios

        self._screen, theirs = pty.openpty()
        size = struct.pack("HHHH", 40, 100, 0, 0)  # lines and columns: bars need to know
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        self.seen = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, *call.split()],
            stdout=subprocess.PIPE, stderr=theirs, cwd=folder, text=True,
            env=os.environ | {"COLUMNS": "100"},
        )  # fmt: skip
        os.close(theirs)

    def read(self, seconds):
        """Read what the screen shows next; return False at the end."""
        if not select.select([self._screen], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._screen, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self.seen += piece.decode().replace("\r\n", "\n")
        return bool(piece)

    def interrupt_when(self, reached):
        """Press Ctrl-C as soon as something holds; return the last line."""
        end = time.monotonic() + PATIENCE
        while not reached(self):
            assert time.monotonic() < end, self.seen
            assert self.process.poll() is None, (self.seen, self.process.stdout.read())
            self.read(0.02)
        self.process.send_signal(signal.SIGINT)
        while self.read(PATIENCE):
            pass
        self.printed, _ = self.process.communicate(timeout=PATIENCE)
        os.close(self._screen)
        assert self.process.returncode == 130
        assert "Traceback" not in self.seen
        assert self.seen.endswith("\n")
        return self.seen.splitlines()[-1]


def says(text):
    return lambda command: text in command.seen


@pytest.fixture
def tables(tmp_path):
    """A folder with a table, and one in which some rows have no label."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (700, 3))
    y = np.sin(X).sum(axis=1) + 0.05 * rng.standard_normal(700)
    rows = [
        ",".join(f"{value:.5f}" for value in (*x, target)) for x, target in zip(X, y, strict=True)
    ]
    some = [*rows[:600], *(row.rpartition(",")[0] + "," for row in rows[600:])]
    (tmp_path / "all.csv").write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    (tmp_path / "some.csv").write_text("\n".join(["a,b,c,y", *some]) + "\n")
    return tmp_path


STORED = {
    "simulate": ("simulate all.csv --target y --pool-size 60 --runs {}", "kept.sqlite", ""),
    "refits": (
        "reproduce refits --datasets artificial --runs {}",
        "kept",
        "refits-artificial.sqlite",
    ),
    "table1": (
        "reproduce table1 --datasets artificial --criteria proposed,ground_truth --runs {}",
        "kept",
        "table-artificial.sqlite",
    ),
}


def interrupted_with_runs(name, n_runs, folder):
    """Press Ctrl-C once some runs are in the store; return the call, the store and its file."""
    call, store, file = STORED[name]
    call = call.format(n_runs)
    path = folder / store / file if file else folder / store
    command = Command(f"{call} --store {store}", folder)
    last = command.interrupt_when(lambda _: count_runs(path) > 0)
    number = count_runs(path)
    assert 0 < number < n_runs
    runs = "1 finished run is" if number == 1 else f"{number} finished runs are"
    assert last == (
        f"fastal: interrupted; {runs} kept in {store}: the same command goes on from there"
    )
    assert command.printed == ""
    assert "run/s" in command.seen or "s/run" in command.seen or "?run" in command.seen  # the bar
    return call, store, path


@pytest.mark.parametrize("name", STORED)
def test_finished_runs_are_kept(name, tables):
    interrupted_with_runs(name, 100_000, tables)


def test_the_same_command_goes_on(tables, monkeypatch, capsys):
    call, store, path = interrupted_with_runs("simulate", 10_000, tables)
    before = count_runs(path)
    monkeypatch.chdir(tables)
    assert main([*call.split(), "--store", store]) == 0
    resumed = capsys.readouterr().out
    assert before < count_runs(path) == 10_000
    # the answer is that of a call that nobody interrupted
    assert main(call.split()) == 0
    assert capsys.readouterr().out == resumed


@pytest.mark.parametrize(
    ("call", "begun", "kept"),
    [
        (
            "reproduce refits --datasets artificial",
            "artificial: 20 runs",
            "nothing is kept: --store would keep what is finished",
        ),
        (
            "simulate all.csv --target y --store kept.sqlite",
            "fitting the model to 700 rows",
            "no run was finished yet: the same command begins anew",
        ),
        (
            "run all.csv --target y",
            "fitting the model to 560 rows",
            "nothing is kept: the same command begins anew",
        ),
        (
            "run all.csv --target y --out results",
            "fitting the model to 560 rows",
            "files that are not named above are missing or incomplete: run it again",
        ),
        (
            "next some.csv --target y",
            "fitting the model to 600 labels",
            "nothing is kept: ask again",
        ),
        (
            "reproduce tightness --runs 100000 --out results",
            "regression: 100000 runs",
            "files that are not named above are missing or incomplete: run it again",
        ),
    ],
)
def test_what_is_kept_is_said(call, begun, kept, tables):
    command = Command(call, tables)
    assert command.interrupt_when(says(begun)) == f"fastal: interrupted; {kept}"
    assert command.printed == ""


def test_the_state_of_a_campaign_stays_whole(tables, monkeypatch, capsys):
    monkeypatch.chdir(tables)
    few = (tables / "some.csv").read_text().splitlines()
    rows = [*few[:31], *(row.rpartition(",")[0] + "," for row in few[31:])]
    (tables / "few.csv").write_text("\n".join(rows) + "\n")
    assert main(["next", "few.csv", "--target", "y", "--state", "state.json"]) == 3
    before = (tables / "state.json").read_bytes()
    (tables / "few.csv").write_text("\n".join(few) + "\n")  # 570 labels more
    command = Command("next few.csv --target y --state state.json", tables)
    last = command.interrupt_when(says("fitting the model to 600 labels"))
    assert last == (
        "fastal: interrupted; state.json is whole, with the new labels or as it was: ask again"
    )
    after = (tables / "state.json").read_bytes()
    assert after == before or len(json.loads(after)) == len(json.loads(before))
    capsys.readouterr()
    assert main(["next", "some.csv", "--target", "y", "--json"]) in (0, 3)
    wanted = json.loads(capsys.readouterr().out)
    assert main(["next", "few.csv", "--target", "y", "--state", "state.json", "--json"]) in (0, 3)
    answer = json.loads(capsys.readouterr().out)
    assert answer["n_labels"] == wanted["n_labels"] == 600


def test_before_the_arguments_are_read_nothing_is_said(monkeypatch, capsys):
    import fastal.cli.entry as entry

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "build_parser", interrupted)
    assert main(["demo"]) == 130
    assert "".join(capsys.readouterr()) == ""


def test_what_is_no_store_has_no_runs(tmp_path):
    assert count_runs(tmp_path / "nothing") == 0
    assert count_runs(tmp_path) == 0
    (tmp_path / "text").write_text("no store")
    assert count_runs(tmp_path / "text") == 0


class Lost:
    """Its end raises where nobody can catch it, as a callback of LLVM does."""

    def __del__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize("broken", [False, True])
def test_ctrl_c_in_a_callback_of_the_compiler_is_heard(broken, monkeypatch, capsys):
    import fastal.cli.commands.demo as demo

    def work(arguments):
        Lost()
        if broken:
            raise RuntimeError("no compiled object yet")
        for _ in range(600):
            time.sleep(0.1)

    before = sys.unraisablehook
    monkeypatch.setattr(demo, "_demo", work)
    start = time.monotonic()
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # as in CHILD
    try:
        assert main(["demo"]) == 130
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert time.monotonic() - start < 30
    said = capsys.readouterr()
    assert said == ("", "fastal: interrupted; nothing is kept: the same command begins anew\n")
    assert sys.unraisablehook is before


def test_other_errors_are_not_taken_for_ctrl_c(monkeypatch):
    import fastal.cli.commands.demo as demo

    def work(arguments):
        raise RuntimeError("of the program")

    monkeypatch.setattr(demo, "_demo", work)
    with pytest.raises(RuntimeError, match="of the program"):
        main(["demo"])
