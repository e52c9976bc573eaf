"""What the tests of ``fastal next`` share: a small table with some labels, and how to ask about it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fastal.cli.entry import main

STOP, GO_ON, WRONG = 0, 3, 2

draws = np.random.default_rng(5)
N = 60
A, B = draws.normal(size=(2, N)).round(4)
Y = (np.sin(A) + 0.5 * B + 0.3 * draws.normal(size=N)).round(4)


def write(path, rows, header):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def table(path, n_labels, *, special=None, extra=None):
    """Write a table whose first rows have labels; `special` sets other targets."""
    rows = []
    for i in range(N):
        target = (special or {}).get(i, Y[i] if i < n_labels else "")
        rows.append([A[i], B[i], target])
    return write(path, rows + (extra or []), ["a", "b", "y"])


@pytest.fixture
def make(tmp_path, monkeypatch):
    # A short name: where lines are broken then does not depend on the folder.
    monkeypatch.chdir(tmp_path)
    return lambda n_labels, **more: table("data.csv", n_labels, **more)


def ask(capsys, *argv, status=GO_ON):
    found = main(["next", *argv, "--target", "y"])
    assert status is None or found == status
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def record(capsys, *argv, status=GO_ON):
    return json.loads(ask(capsys, *argv, "--json", status=status))


def refused(capsys, *argv, target="y"):
    assert main(["next", *argv, "--target", target]) == WRONG
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def lines_of(said):
    return [row["line"] for row in said["label_next"]]


def saved_in(state):
    return json.loads(Path(state).read_text("utf-8"))


def words(text):
    return " ".join(text.split())


def kinds(n, count):
    return [f"kind {i % count}" for i in range(n)]
