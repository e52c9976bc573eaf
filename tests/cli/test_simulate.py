"""fastal simulate, as main() calls it once it is registered."""

import argparse
import csv
import io
import sys

import numpy as np
import pytest

from fastal._core import campaigns
from fastal.cli.arguments import Parser
from fastal.cli.commands import simulate
from fastal.cli.errors import UserError

JIT = hasattr(campaigns.run_many, "py_func")
ROWS = 120 if JIT else 30


@pytest.fixture
def data(tmp_path):
    draws = np.random.default_rng(0)
    x = draws.normal(size=(ROWS, 2))
    y = np.sin(x).sum(axis=1) + 0.1 * draws.normal(size=ROWS)
    path = tmp_path / "data.csv"
    lines = [f"{a!r},{b!r},{c!r}\n" for (a, b), c in zip(x.tolist(), y.tolist(), strict=True)]
    path.write_text("a,b,y\n" + "".join(lines), encoding="utf-8")
    return str(path)


def main(*argv):
    parser = Parser(prog="fastal")
    simulate.add_simulate(parser.add_subparsers())
    arguments: argparse.Namespace = parser.parse_args(["simulate", *argv])
    return arguments.run(arguments)


def test_simulate(data, tmp_path, capsys):
    out, store = str(tmp_path / "out.csv"), str(tmp_path / "runs.sqlite")
    arguments = (data, "--target", "y", "--runs", "6", "--pool-size", "12")
    assert main(*arguments, "--store", store, "--out", out) == 0
    first = capsys.readouterr()
    assert "Simulation of 6 runs, pools of 12" in first.out
    assert first.err == ""  # a bar is for terminals
    with open(out, newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 6
    assert main(*arguments, "--store", store, "--jobs", "1") == 0
    assert capsys.readouterr().out == first.out
    assert main(*arguments) == 0
    assert capsys.readouterr().out == first.out


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_is_for_terminals_and_not_for_the_quiet(data, monkeypatch):
    for options, expected in ([], True), (["--quiet"], False):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main(data, "--target", "y", "--runs", "6", "--pool-size", "12", *options) == 0
        assert ("6/6" in terminal.getvalue()) is expected
        if not expected:
            assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--target", "z"], "no column 'z'"),
        (
            ["--target", "y", "--pool-size", "1000"],
            "--pool-size must be at most the number of rows",
        ),
        (["--target", "y", "--runs", "0"], "must be a whole number of at least 1, got '0'"),
        (["--target", "y", "--alpha", "2"], r"must be in \(0, 1\), got '2'"),
        (
            ["--target", "y", "--runs", "2", "--store", "/no/such/file"],
            "in a directory that exists",
        ),
        (
            ["--target", "y", "--runs", "2", "--out", "/no/such/file"],
            "--out: /no/such/file: No such",
        ),
        ([], "--target"),
    ],
)
def test_wrong_use(data, more, message):
    with pytest.raises(UserError, match=message):
        main(data, *more)


def test_another_study_in_the_store(data, tmp_path):
    store = str(tmp_path / "runs.sqlite")
    arguments = (data, "--target", "y", "--runs", "2", "--pool-size", "12", "--store", store)
    assert main(*arguments) == 0
    with pytest.raises(UserError, match=r"other settings: .*seed is 0 there, 1 here"):
        main(*arguments, "--seed", "1")
