"""What people read fits 100 columns, on a terminal of any width, and nothing is coloured."""

import argparse
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from numba import config

from fastal.cli.entry import build_parser, main
from fastal.paper.text import aligned, wrapped

WIDTH = 100
COLOUR = re.compile("\x1b\\[[0-9;]*m")
BOUNDS = [9.1, 8, 9, 7, 8, 9, 8, 9, 8, 1, 1.2, 1.1, 1, 0.9, 1, 1.1, 1]


def parsers(parser, name=()):
    """Every command, and what belongs to it, with its parser."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from parsers(inner, (*name, word))


COMMANDS = dict(parsers(build_parser()))


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder with tables under short names, and a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (60, 2))
    y = np.sin(X[:, 0]) + X[:, 1] / 5 + 0.05 * rng.standard_normal(60)
    rows = [f"{a:.4f},{b:.4f},{target:.4f}" for (a, b), target in zip(X, y, strict=True)]
    some = [*rows[:25], *(row.rpartition(",")[0] + "," for row in rows[25:])]
    (tmp_path / "all.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    (tmp_path / "some.csv").write_text("\n".join(["a,b,y", *some]) + "\n")
    (tmp_path / "bounds.txt").write_text("".join(f"{bound}\n" for bound in BOUNDS))


def too_wide(text):
    return [line for line in text.splitlines() if len(line) > WIDTH]


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_help(name, monkeypatch, capsys):
    for columns in ("300", "60"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main([*name, "--help"]) == 0
        said = capsys.readouterr().out
        assert said.startswith("usage: ")
        assert too_wide(said) == []


# A call of every command; reproduce has a call for each of its parts.
CALLS = {
    "demo": (0, "demo --plot demo.png --share 0.05,0.1"),
    "run": (0, "run all.csv --target y --out out --predictions p.csv --report r.html"),
    "next": (3, "next some.csv --target y --state s.json --plot n.png --report r.html"),
    "simulate": (0, "simulate all.csv --target y --runs 3 --store s.sqlite --out s.csv"),
    "reproduce table1": (0, "reproduce table1 --runs 2 --datasets artificial --out out"),
    "reproduce figure1": (0, "reproduce figure1 --runs 2 --datasets artificial --out out"),
    "reproduce tightness": (0, "reproduce tightness --runs 1 --out out"),
    "reproduce refits": (0, "reproduce refits --runs 1 --datasets artificial --out out"),
}


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="minutes without the JIT")
@pytest.mark.parametrize("name", CALLS)
def test_answers(name, tables, capsys):
    pytest.importorskip("matplotlib")
    if name.endswith(("table1", "figure1")) and not os.environ.get("FASTAL_DATA"):
        pytest.skip("FASTAL_DATA names no folder with the data: thresholds come from airfoil")
    status, call = CALLS[name]
    assert main(call.split()) == status
    said = "".join(capsys.readouterr())
    assert said
    assert too_wide(said) == []


def test_every_command_is_called():
    parts = {" ".join(name) for name, parser in COMMANDS.items() if parser.get_default("run")}
    # the records of watch, one line per bound, are for programs; test_watch has the terminal
    assert parts == {*CALLS, "watch"}


ERRORS = [
    "nothing",
    "run",
    "run all.csv --target z",
    "run nowhere.csv --target y",
    "watch --alternative fewer bounds.txt",
    "watch --rule still",
    "reproduce refits --datasets nothing",
    "simulate all.csv --target y --pool-size 5000",
    "demo --rule nothing",
    "runs --cutoff mode bounds.txt",
    "next some.csv --target y --plot nowhere/x.png",
]


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("call", ERRORS)
def test_errors(call, tables, monkeypatch, capsys):
    assert main(call.split()) == 2
    plain = capsys.readouterr().err
    assert plain.startswith("fastal: ")
    assert plain.count("\n") == 1  # one line for programs, whatever its length
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    assert main(call.split()) == 2
    assert too_wide(screen.getvalue()) == []
    notes, _, error = screen.getvalue().partition("fastal: ")
    assert "fitting" in notes or notes == ""  # progress, which a terminal sees too
    assert error.split() == plain.removeprefix("fastal: ").split()


def test_wide_tables_are_folded():
    rows = [["", *(f"column {i}".ljust(20) for i in range(6))], ["row", *"abcdef"]]
    folded = aligned(rows)
    assert too_wide(folded) == []
    first, second = folded.split("\n\n")
    assert second.splitlines()[1].split() == ["row", "e", "f"]
    assert first.split() + second.split() == [
        *(word for i in range(4) for word in ("column", str(i))), "row", *"abcd",
        *(word for i in range(4, 6) for word in ("column", str(i))), "row", "e", "f",
    ]  # fmt: skip
    assert aligned([["x" * 120, "y" * 120]]).count("\n\n") == 0  # nothing helps there
    assert too_wide(wrapped("7 % of the " * 30)) == []
    assert not re.search(r"(?m)^%", wrapped("of what is left 7 % " * 30))


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals of POSIX")
@pytest.mark.parametrize("call", ["--help", "run --help", "demo", "nothing"])
def test_no_color_is_respected(call, tmp_path):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = os.environ | {"NO_COLOR": "1", "TERM": "xterm-256color"}
    environment.pop("FORCE_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "fastal", *call.split()], stdout=theirs, stderr=theirs,
        cwd=tmp_path, env=environment,
    ) as process:  # fmt: skip
        os.close(theirs)
        screen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not piece:
                break
            screen += piece
        assert process.wait(timeout=300) == (2 if call == "nothing" else 0)
    os.close(ours)
    assert len(screen) > 60
    assert COLOUR.search(screen.decode()) is None


def test_the_checks_can_fail():
    assert too_wide("a" * 100 + "\n" + "b" * 101) == ["b" * 101]
    assert COLOUR.search("\x1b[1;31mred\x1b[0m") is not None
