"""The tutorial: what it shows of the shell is what the commands print and write."""

import csv
import doctest
import os
import re
from pathlib import Path

import numpy as np
import pytest
from numba import config

from fastal.cli.entry import main

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
INGREDIENTS = ("cement", "slag", "ash", "water", "plasticizer", "coarse", "fine", "age")

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("FASTAL_DATA"), reason="FASTAL_DATA names no folder with the data"
    ),
    pytest.mark.skipif(bool(config.DISABLE_JIT), reason="300 points take minutes without the JIT"),
]


@pytest.fixture(scope="module")
def campaign():
    """Names that the examples of the page define, down to its stop."""
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    before = pyplot.get_backend()
    pyplot.switch_backend("agg")
    names = {"__name__": "__main__"}
    text = PAGE.read_text("utf-8").split("## What the share means")[0]
    for example in doctest.DocTestParser().get_examples(text):
        if "plot" not in example.source:
            exec(compile(example.source, "<example>", "exec"), names)
    pyplot.switch_backend(before)
    return names


def write_table(campaign, n_labels, path):
    """The spreadsheet of the page after so many labels; returns its first lines."""
    run, mixes = campaign["run"], campaign["mixes"]
    number = {int(row): i + 1 for i, row in enumerate(run.indices[:n_labels])}
    strength = dict(zip(number, run.labels[:n_labels], strict=True))
    failed = set(campaign["learner"].skipped.tolist())
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["mix", *INGREDIENTS, "test", "strength"])
        for row, mix in enumerate(mixes):
            label = "failed" if row in failed else f"{strength.get(row, np.nan):g}"
            cells = [f"{value:g}" for value in mix]
            table.writerow(
                [f"M{row + 1:03}", *cells, number.get(row, ""), label.replace("nan", "")]
            )
    return "".join(path.read_text("utf-8").splitlines(keepends=True)[:5])


def test_the_shell_answers_as_the_page_says(campaign, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table, *answers = re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    commands = re.findall(r"```sh\nfastal (.*?)\n```", PAGE.read_text("utf-8"))
    states = [(109, 3), (219, 0)]
    assert len(commands) == len(answers) == len(states)
    assert write_table(campaign, 109, tmp_path / "mixes.csv") == table
    for (n_labels, status), command, answer in zip(states, commands, answers, strict=True):
        write_table(campaign, n_labels, tmp_path / "mixes.csv")
        assert main(command.split()) == status
        assert capsys.readouterr().out == answer
    page = (tmp_path / "campaign.html").read_text("utf-8")
    assert "2.1 %" in page
    assert re.search(r"(src|href)=.?https?:", page) is None


def test_the_shell_and_the_learner_agree(campaign):
    verdict = campaign["run"].verdict
    text = PAGE.read_text("utf-8")
    assert f"stop: at most {100 * verdict.left:.1f} % is still to come" in " ".join(text.split())
