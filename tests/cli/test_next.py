"""fastal next, on small tables: every sentence that a user acts on."""

import csv
import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from next_tables import (
    GO_ON,
    STOP,
    A,
    B,
    N,
    Y,
    ask,
    kinds,
    lines_of,
    record,
    refused,
    table,
    words,
    write,
)
from next_tables import make as make
from numba import config

from fastal import ActiveLearner, MovementBelow
from fastal.cli import next_answer
from fastal.cli.entry import main
from fastal.cli.next_campaign import begin, with_course
from fastal.cli.sheet import read_sheet
from fastal.learning.refit import Refit, last_refit_before

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; test_campaign_by_chance has few",
)

# the answer --------------------------------------------------------------------------------------


def test_without_labels_rows_are_random_and_seeded(make, capsys):
    said = ask(capsys, make(0))
    assert "still to come: not known before 15 labels" in said
    assert re.search(r"^label next: +lines \d", said, re.M)
    assert "the first fit needs 5 labels, and there are 0" in said
    first = record(capsys, make(0))
    assert first["random"]
    assert len(set(lines_of(first))) == 10
    assert first == record(capsys, make(0))
    assert lines_of(first) != lines_of(record(capsys, make(0), "--seed", "1"))


def test_three_labels_the_random_rows_go_on(make, capsys):
    before = lines_of(record(capsys, make(0)))
    # those that were named, and three of them have labels now
    named = {line - 2: Y[line - 2] for line in before[:3]}
    said = record(capsys, make(0, special=named))
    assert said["n_labels"] == 3
    assert lines_of(said)[:7] == before[3:]


def test_twelve_labels(make, capsys):
    said = ask(capsys, make(12))
    assert "still to come: not known before 15 labels" in said
    assert "no stop is possible before 16 labels, and there are 12" in said
    assert not record(capsys, make(12))["random"]


def test_thirty_labels_are_those_of_a_learner(make, capsys):
    learner = ActiveLearner(
        np.column_stack((A, B)),
        criterion=MovementBelow(0.05),
        seed=0,
        known=(np.arange(29), Y[:29]),
    )
    learner.tell(Y[29], index=29)
    learner.refit()
    assert last_refit_before(30) == 29
    assert [fit.n_labels for fit in learner.refits] == [29, 30]
    said = record(capsys, make(30), "-n", "4")
    assert said["left"] == pytest.approx(learner.criterion.left, rel=1e-12)
    assert said["level"] == pytest.approx(learner.criterion.level, rel=1e-12)
    assert lines_of(said) == (learner.ask(4) + 2).tolist()
    assert [fit["n_labels"] for fit in said["refits"]] == [29, 30]
    text = words(ask(capsys, make(30), "-n", "4"))
    assert re.search(
        r"still to come: at most \d.* % of what all labels could move the model is left for the "
        r"remaining 30 labels; a label now moves it [\d.]+ times less than at the peak",
        text,
    )
    assert re.search(r"answer: go on: \d.* % is still to come \(5 % asked\)", text)


@pytest.mark.parametrize(
    ("n", "before"), [(4, None), (5, None), (6, 5), (10, 8), (11, 10), (120, 103), (125, 124)]
)
def test_the_fit_before_is_the_last_of_the_schedule(n, before):
    assert last_refit_before(n) == before


def test_acting_on_it_ends_with_a_stop(tmp_path, capsys):
    labels = {}
    for _ in range(8):
        path = table(tmp_path / "data.csv", 0, special=labels)
        status = main(["next", path, "--target", "y", "--json", "--share", "0.2"])
        said = json.loads(capsys.readouterr().out)
        assert said["stop"] == (status == STOP)
        if said["stop"]:
            break
        labels |= {line - 2: Y[line - 2] for line in lines_of(said)}
    assert status == STOP
    assert 15 < len(labels) < N
    assert said["left"] <= 0.2
    text = words(ask(capsys, path, "--share", "0.2", status=STOP))
    assert re.search(r"answer: stop: at most [\d.]+ % is still to come \(20 % asked\), and", text)
    assert re.search(r"the fits to \d+ and to \d+ labels agree", text)
    assert re.search(r"label next: lines .* of .*, in this order, if you go on", text)


def test_one_row(make, capsys):
    assert re.search(r"label next: +line \d+ of data\.csv\n", ask(capsys, make(12), "-n", "1"))
    said = record(capsys, make(N - 1), status=None)
    assert lines_of(said) == [N + 1]


def test_no_rows_left(make, capsys):
    said = ask(capsys, make(N), status=STOP)
    assert "stop: no rows are left to label" in said
    assert "label next:    nothing" in said
    assert "still to come: nothing" in said
    said = ask(capsys, make(N - 2, special={N - 1: "skip", N - 2: "failed"}), status=STOP)
    assert "stop: no rows are left to label" in said


def test_a_constant_target_goes_on_at_random(make, capsys):
    special = {i: 3.5 if i < 18 else "" for i in range(N)}
    said = ask(capsys, make(0, special=special))
    assert "all 18 labels are equal (3.5): rows are random until one differs" in said
    assert "still to come: not known while all labels are equal" in said
    assert "could not be fitted" not in said
    assert "at random" in words(said)


def test_warnings_about_the_fits(make, capsys, monkeypatch):
    monkeypatch.setattr("fastal.cli.next_answer.MOVES", 1.0)
    said = words(ask(capsys, make(30)))
    assert re.search(
        r"warning: the length scale still moves: [\d.]+ after 29, [\d.]+ after 30 labels", said
    )


def fits(*values):
    """Fits as (labels, length scale, at an edge, fitted)."""
    return tuple(Refit(n, scale, 0.1, 1.0, 0.0, edge, fitted) for n, scale, edge, fitted in values)


@pytest.mark.parametrize(
    ("refits", "said"),
    [
        (fits((20, 1.0, False, True), (24, 1.19, False, True)), []),
        (
            fits((20, 1.0, False, True), (24, 1.4, False, True)),
            ["still moves: 1 after 20, 1.4 after 24 labels"],
        ),
        (fits((20, 1.4, False, True), (24, 1.0, False, True)), ["the length scale still moves"]),
        (fits((24, 30.0, True, True)), ["the length scale (30) lies at an edge of the range"]),
        (
            fits((20, 1.0, False, True), (24, 1.0, True, False)),
            ["no fit to 24 labels was possible"],
        ),
    ],
)
def test_what_the_fits_say_against_an_answer(refits, said):
    found = next_answer._fit_warnings(SimpleNamespace(refits=refits, n_labels=24))
    assert len(found) == len(said)
    assert all(one in text for one, text in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("refits", "said"),
    [
        (fits((20, 1, False, True), (24, 1, True, True)), "the fit to 24 labels lies at an edge"),
        (fits((20, 1, True, True), (24, 1, False, True)), "the fit before, to 20 labels, lies at"),
        (fits((20, 1, False, True), (24, 1, False, True)), "to 20 labels, does not agree"),
        (fits((17, 1, False, True), (20, 1, False, True)), "the next one comes at 24 labels"),
        (fits((24, 1, False, True)), "a second fit must agree"),
    ],
)
def test_why_little_to_come_is_no_stop_yet(refits, said):
    assert said in next_answer._unconfirmed(SimpleNamespace(refits=refits, n_labels=24))


def test_skipped_rows_are_left_out(make, capsys):
    special = {30: "skip", 31: "FAILED", 32: "Skipped", 33: "fail", 34: "n/a"}
    said = record(capsys, make(30, special=special), "-n", "60")
    assert said["n_skipped"] == 4
    assert said["n_open"] == N - 34
    assert not {32, 33, 34, 35} & set(lines_of(said))
    assert 36 in lines_of(said)


def test_json_is_one_object(make, capsys):
    said = record(capsys, make(20))
    wanted = {"stop", "answer", "still_to_come", "left", "label_next", "warnings"}
    assert wanted <= said.keys()
    assert record(capsys, make(0))["left"] is None


# files -------------------------------------------------------------------------------------------


def test_predictions_and_picture(make, tmp_path, capsys):
    path, picture, data = (
        str(tmp_path / "p.csv"),
        tmp_path / "p.png",
        make(25, special={50: "skip"}),
    )
    said = ask(capsys, data, "--predictions", path, "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == N
    assert [row["role"] for row in rows] == ["labelled"] * 25 + ["open"] * 25 + ["skipped"] + (
        ["open"] * 9
    )
    learner = ActiveLearner(
        np.column_stack((A, B)), criterion=MovementBelow(), known=(np.arange(24), Y[:24]), seed=0
    )
    learner.tell(None, index=50)
    learner.tell(Y[24], index=24)
    learner.refit()
    mean, var = learner.model.predict(np.column_stack((A, B)), return_var=True)
    assert np.allclose([float(row["mean"]) for row in rows], mean, rtol=1e-9)
    assert np.allclose([float(row["sd"]) for row in rows], np.sqrt(var), rtol=1e-9)
    assert "mean and standard deviation of every row" in words(said)
    os.remove(path)
    said = ask(capsys, make(3), "--predictions", path, "--plot", str(picture))
    assert "none before the first fit" in said
    assert not os.path.exists(path)


def test_report(make, tmp_path, capsys):
    page = tmp_path / "campaign.html"
    said = ask(capsys, make(25), "--report", str(page))
    assert "the answer as a page" in words(said)
    text = page.read_text("utf-8")
    assert "Label next" in text
    assert "still to come" in text
    assert words(said).split("answer: ")[1].split(" still to come:")[0][1:] in words(text)
    assert "The 10 rows to label next, in this order<" in text
    for n, more in ((0, ", drawn at random<"), (3, ", drawn at random<"), (N, "</html>")):
        assert main(["next", make(n), "--target", "y", "--report", str(page)]) in (STOP, GO_ON)
        text = page.read_text("utf-8")
        assert "<h1>" in text
        assert more in text
    ask(capsys, make(N - 1), "--report", str(page), status=STOP)
    assert "The row to label next, if you go on<" in page.read_text("utf-8")
    capsys.readouterr()
    assert "--report" in refused(capsys, make(3), "--report", str(tmp_path / "x.pdf"))


def test_a_report_of_labels_that_were_equal_at_first(make, tmp_path, capsys):
    equal = dict.fromkeys(range(7), 1.5)
    ask(capsys, make(25, special=equal), "--report", str(tmp_path / "r.html"))


def test_the_course_of_the_fits_is_made_anew_for_the_report(make):
    sheet = read_sheet(make(25), "y")
    campaign = begin(sheet, 0.05, 0)
    whole = with_course(campaign, 0)
    assert [fit.n_labels for fit in campaign.learner.refits] == [24, 25]
    assert [fit.n_labels for fit in whole.refits] == [5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 25]
    assert whole.refits[-2:] == campaign.learner.refits
    assert np.allclose(whole.bounds, campaign.learner.bounds, rtol=1e-9)
    assert whole.criterion.verdict == campaign.criterion.verdict


def test_files_that_would_be_lost_are_refused(make, tmp_path, capsys):
    data = make(12)
    before = Path(data).read_bytes()
    for option in ("--predictions", "--state", "--report"):
        assert option in refused(capsys, data, option, data)
        assert option in refused(capsys, data, option, str(tmp_path))
    state = str(tmp_path / "s.json")
    assert "is --predictions as well" in refused(
        capsys, data, "--state", state, "--predictions", state
    )
    assert "--plot" in refused(capsys, data, "--plot", str(tmp_path / "x.nothing"))
    assert Path(data).read_bytes() == before


# the table ---------------------------------------------------------------------------------------


def test_text_columns(tmp_path, capsys):
    rows = [[f"s{i}", k, A[i], Y[i] if i < 20 else ""] for i, k in enumerate(kinds(N, 3))]
    path = write(tmp_path / "t.csv", rows, ["sample", "kind", "a", "y"])
    sheet = read_sheet(path, "y")
    assert sheet.columns == ("kind=kind 0", "kind=kind 1", "kind=kind 2", "a")
    assert sheet.X[:3, :3].tolist() == np.eye(3).tolist()
    assert sheet.names[7] == "s7"
    said = ask(capsys, path)
    assert re.search(r"label next: +lines \d+ \(s\d+\), ", said)
    assert "2 features (4 with a column per category), names of rows from 'sample'" in words(said)
    assert record(capsys, path)["label_next"][0]["name"].startswith("s")


def test_text_with_many_values_is_refused_by_name(tmp_path, capsys):
    rows = [[k, A[i], B[i], ""] for i, k in enumerate(kinds(N, 11))]
    path = write(tmp_path / "t.csv", rows, ["note", "a", "b,c", "y"])
    error = refused(capsys, path)
    assert "column 'note' is text with 11 different values in 60 rows" in error
    assert "--features 'a,\"b,c\"'" in error
    assert "--name note" in error
    ask(capsys, path, "--features", 'a,"b,c"')
    ask(capsys, path, "--name", "note")
    few = write(tmp_path / "f.csv", [[k, A[i], ""] for i, k in enumerate(kinds(8, 4))], "nay")
    assert "column 'n' is text with 4 different values in 8 rows" in refused(capsys, few)


def test_missing_cells_name_row_and_column(tmp_path, capsys):
    for word in ("", "NA", "nan"):
        rows = [[A[i], B[i] if i != 17 else word, ""] for i in range(N)]
        error = refused(capsys, write(tmp_path / "t.csv", rows, ["a", "b", "y"]))
        assert "line 19, column 'b': the cell is empty" in error
        assert "fill it in, delete the row, or leave the column out with --features a" in error


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("abc", "line 6, column 'a': 'abc' is not a number"),
        ("inf", "line 6, column 'a': 'inf' is not finite"),
    ],
)
def test_a_bad_cell_among_numbers(tmp_path, capsys, cell, message):
    rows = [[A[i] if i != 4 else cell, B[i], ""] for i in range(N)]
    assert message in refused(capsys, write(tmp_path / "t.csv", rows, ["a", "b", "y"]))


def test_a_bad_target(make, capsys):
    error = refused(capsys, make(5, special={30: "pending"}))
    assert "line 32, column 'y': 'pending' is not a number; leave the cell empty if" in error
    assert "is not finite" in refused(capsys, make(5, special={30: "inf"}))
    assert "line 32, column 'y': -1e200 is too large: choose another unit" in refused(
        capsys, make(5, special={30: "-1e200"})
    )


def test_decimal_commas_and_encodings_as_elsewhere(tmp_path, capsys):
    path = tmp_path / "t.csv"
    lines = [f"{A[i]};{B[i]};{Y[i] if i < 12 else ''}\n".replace(".", ",") for i in range(N)]
    path.write_text("a;b;y\n" + "".join(lines), "utf-8")
    assert "is not a number (use a decimal point)" in refused(capsys, str(path))
    lines = [f"{A[i]};{str(B[i]).replace('.', ',')};\n" for i in range(N)]
    path.write_text("a;b;y\n" + "".join(lines), "utf-8")
    error = refused(capsys, str(path))
    assert "line 2, column 'b'" in error
    assert "(use a decimal point)" in error
    path.write_bytes(b"gr\xf6\xdfe;y\n1;2\n")
    assert "line 1: not UTF-8 text" in refused(capsys, str(path))
    path.write_text("größe\ty\n" + "".join(f"{A[i]}\t\n" for i in range(N)), "utf-8-sig")
    assert record(capsys, str(path))["features"] == ["größe"]


def test_small_and_empty_tables(tmp_path, capsys):
    path = write(tmp_path / "t.csv", [[1, ""], [2, ""]], ["a", "y"])
    assert "at least 5 rows are needed, got 2" in refused(capsys, path)
    assert "no column 'z'; the columns are 'a', 'y'" in refused(capsys, path, target="z")
    path = write(tmp_path / "t.csv", [[i] for i in range(9)], ["y"])
    assert "there is no feature beside column 'y'" in refused(capsys, path)
    # what spreadsheets leave at the edges: empty rows, and columns without a name
    rows = [[A[i], Y[i] if i < 6 else "", ""] for i in range(N)] + [["", "", ""]] * 3
    said = record(capsys, write(tmp_path / "t.csv", rows, ["a", "y", ""]))
    assert said["n_rows"] == N
    assert said["features"] == ["a"]


def test_constant_and_duplicate_columns_are_fine(tmp_path, capsys):
    rows = [[A[i], 1.0, A[i], Y[i] if i < 20 else ""] for i in range(N)]
    said = record(capsys, write(tmp_path / "t.csv", rows, ["a", "b", "c", "y"]))
    assert said["refits"][-1]["fitted"]
    assert said["warnings"] == []
    text = words(ask(capsys, str(tmp_path / "t.csv")))
    assert "3 features; 'b' does not vary: no use for the model" in text
    steel = [["steel", 1.0, A[i], Y[i] if i < 20 else ""] for i in range(N)]
    text = words(ask(capsys, write(tmp_path / "t.csv", steel, ["k", "b", "a", "y"])))
    assert "; 'k=steel' and 'b' do not vary: no use for the model" in text


def test_rows_that_nothing_tells_apart(tmp_path, capsys):
    rows = [[2.5, 1.0, Y[i] if i < 20 else ""] for i in range(N)]
    said = record(capsys, write(tmp_path / "t.csv", rows, ["a", "b", "y"]))
    assert f"no column varies, all {N} points are alike" in said["warnings"][0]
    assert len(said["label_next"]) == 10


def test_a_column_that_counts_rows_is_said(tmp_path, capsys):
    rows = [[i + 1, A[i], Y[i] if i < 20 else ""] for i in range(N)]
    path = write(tmp_path / "t.csv", rows, ["id", "a", "y"])
    assert "column 'id' counts the rows" in words(ask(capsys, path))
    said = record(capsys, path, "--name", "id")
    assert said["warnings"] == []
    assert said["features"] == ["a"]
    assert said["label_next"][0]["name"] == str(said["label_next"][0]["line"] - 1)


def test_order_of_labels(tmp_path, capsys):
    def run(order, *more):
        rows = [[A[i], B[i], order[i], Y[i] if i < 20 else ""] for i in range(N)]
        return record(capsys, write(tmp_path / "t.csv", rows, ["a", "b", "day", "y"]), *more)

    up, down = list(range(N)), [N - i for i in range(N)]
    plain = run(up, "--features", "a,b")
    assert plain["order"] == "as they stand in the file"
    by_column = run(up, "--order", "day")
    assert by_column["order"] == "by the column of --order"
    assert by_column["left"] == plain["left"]
    assert by_column["features"] == ["a", "b"]
    backwards = run(down, "--order", "day")
    assert backwards["left"] != plain["left"]
    dates = [f"2024-03-{1 + (N - i) // 3:02}" for i in range(N)]
    assert run(dates, "--order", "day")["left"] != plain["left"]
    said = words(ask(capsys, str(tmp_path / "t.csv"), "--features", "a,b"))
    assert "of labels: as they stand in the file" in said
    # moments of several clocks: an hour later each, whatever the clock shows
    zones = [f"2024-05-01T{6 + i % 12:02}:{i:02}:00{'+05:00' if i % 12 > 5 else '+00:00'}"
             for i in range(N)]  # fmt: skip
    moments = [datetime.fromisoformat(zone) for zone in zones]
    ranks = [sorted(moments).index(moment) for moment in moments]
    assert run(zones, "--order", "day")["left"] == run(ranks, "--order", "day")["left"]
    mixed = ["", *up[1:]]
    write(tmp_path / "t.csv", [[A[i], mixed[i], Y[i]] for i in range(N)], ["a", "day", "y"])
    error = refused(capsys, str(tmp_path / "t.csv"), "--order", "day")
    assert "line 2, column 'day': --order needs a number or a date" in error
    assert "is the target and cannot say" in refused(
        capsys, str(tmp_path / "t.csv"), "--order", "y"
    )


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    y = pandas.array([Y[i] if i < 20 else None for i in range(N)], dtype="Float64")
    names = [f"s{i}" for i in range(N)]
    days = pandas.date_range("2024-05-01", periods=N)
    return pandas.DataFrame({"sample": names, "a": A, "b": B, "day": days, "y": y})


def same_but_for_rows(capsys, path, first, wanted):
    said = record(capsys, path, "--order", "day")
    assert said["left"] == pytest.approx(wanted["left"], rel=1e-12)
    assert said["n_rows"] == N
    assert said["features"] == ["a", "b"]
    rows = lines_of(said)
    assert rows == [line - 2 + first for line in lines_of(wanted)]
    assert said["label_next"][0]["name"] == wanted["label_next"][0]["name"]
    assert re.search(
        rf"label next: +rows {rows[0]} \(s\d+\), ", ask(capsys, path, "--order", "day")
    )


def test_what_pandas_reads(frame, tmp_path, capsys, monkeypatch):
    """Whatever engine reads it: cells of a spreadsheet are objects, without a header."""
    import pandas

    frame.to_csv(tmp_path / "t.csv", index=False)
    wanted = record(capsys, str(tmp_path / "t.csv"), "--order", "day")
    cells = [list(frame.columns), *frame.astype(object).values.tolist()]
    sheet = pandas.DataFrame([*cells, [""] * 5, [None] * 5], dtype=object)
    monkeypatch.setattr(pandas, "read_excel", lambda path, **_: sheet)
    same_but_for_rows(capsys, str(tmp_path / "t.xlsx"), 2, wanted)  # as the program numbers them
    monkeypatch.setattr(pandas, "read_parquet", lambda path, **_: frame)
    same_but_for_rows(capsys, str(tmp_path / "t.parquet"), 1, wanted)
    monkeypatch.setattr(pandas, "read_parquet", lambda path, **_: frame.set_index("sample"))
    same_but_for_rows(capsys, str(tmp_path / "t.parquet"), 1, wanted)


def test_spreadsheet(frame, tmp_path, capsys):
    pytest.importorskip("openpyxl")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    wanted = record(capsys, str(tmp_path / "t.csv"), "--order", "day")
    same_but_for_rows(capsys, str(tmp_path / "t.xlsx"), 2, wanted)


def test_parquet(frame, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    wanted = record(capsys, str(tmp_path / "t.csv"), "--order", "day")
    same_but_for_rows(capsys, str(tmp_path / "t.parquet"), 1, wanted)


def test_files_that_pandas_cannot_read(frame, tmp_path, capsys, monkeypatch):
    path = str(tmp_path / "t.xlsx")
    assert "No such file" in refused(capsys, path)
    Path(path).write_bytes(b"nothing")
    assert f"{path}: cannot be read as .xlsx" in refused(capsys, path)

    def no_engine(*_, **__):
        raise ImportError("Unable to find a usable engine; tried using: " + 20 * "this, ")

    monkeypatch.setattr("pandas.read_excel", no_engine)
    assert "pandas needs openpyxl to read .xlsx (pip install -U openpyxl)" in refused(capsys, path)
    monkeypatch.setattr("pandas.read_parquet", no_engine)
    assert "pandas needs pyarrow to read .pq" in refused(capsys, str(tmp_path / "t.pq"))
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pandas is needed to read .xlsx (pip install pandas)" in refused(capsys, path)


def test_help_needs_the_standard_library_only():
    code = (
        "import sys\nfrom fastal.cli import main\nmain(['next', '--help'])\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
    assert "Exit status: 0 stop, 3 go on" in words(done.stdout)
