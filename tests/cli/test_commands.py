import csv
import io
import json
import os
import re
import subprocess
import sys

import numba
import numpy as np
import pytest

from fastal import GaussianProcess, MovementBelow, Stopper, learn
from fastal.cli import campaign
from fastal.cli.campaign import unused_share
from fastal.cli.commands import demo
from fastal.cli.entry import main
from fastal.datasets import artificial
from fastal.stopping import verdict
from fastal.stopping.verdict import no_stop_reason, percent

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="fits and 1,950 test points take minutes interpreted"
)


def words(output):
    """The output as a dict: label -> its text on one line; labels that repeat are joined."""
    found = {}
    for line in output.splitlines():
        assert len(line) <= 100 or " " not in line[18:]  # a path stands on a line of its own
        label, rest = line[:18].strip(), line[18:]
        if label:
            last = label
            found[last] = f"{found[last]}; {rest}" if last in found else rest
        else:
            found[last] += " " + rest
    return found


HEAD = ["labels used", "still to come", "error then", "unused", "error at the end"]


def rows(output):
    """The table of rules as a dict: rule -> its cells by the names of their columns."""
    found = {}
    for label, text in words(output).items():
        cells = re.split("  +", text.strip())
        if len(cells) == 5:
            found[label] = cells
    assert found.pop("rule") == HEAD
    return {rule: dict(zip(HEAD, cells, strict=True)) for rule, cells in found.items()}


def percent_of(cell):
    """The number of a share in the table; "-" is NaN."""
    return float("nan") if cell == "-" else float(cell.split()[-2])


def one_line(capsys):
    """The single line of an error; nothing may stand on standard output."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("fastal: ")
    return captured.err


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A smooth function of two features with noise; the target in its own units."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(200, 2))
    y = 50 + 10 * np.sin(X[:, 0]) * np.cos(X[:, 1]) + rng.normal(size=200)
    path = tmp_path_factory.mktemp("data") / "smooth.csv"
    lines = [f"{a!r},{b!r},{c!r}" for a, b, c in np.column_stack((X, y)).tolist()]
    path.write_text("a,b,strength\n" + "\n".join(lines) + "\n")
    return path


# fastal demo ------------------------------------------------------------------------------------


def test_demo_parameters_are_those_of_the_fit():
    X, y = artificial()
    gp = GaussianProcess().fit_hyperparameters(X[:300], y[:300])
    assert gp.lengthscale == pytest.approx(demo.DEMO_LENGTHSCALE, rel=1e-4)
    assert gp.noise == pytest.approx(demo.DEMO_NOISE, rel=1e-4)


def demo_run(criterion, seed):
    X, y = artificial()
    order = np.random.default_rng(seed).permutation(2000)
    pool, rest = order[:50], order[50:]
    gp = GaussianProcess(demo.DEMO_LENGTHSCALE, demo.DEMO_NOISE)
    return learn(X[pool], y[pool], gp=gp, criterion=criterion, test=(X[rest], y[rest]), seed=seed)


@pytest.mark.parametrize("rule", ["still", "paper"])
def test_demo_tells_what_learn_finds(capsys, rule):
    assert main(["demo", "--seed", "7", "--rule", rule]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    said = words(captured.out)
    names = {"still 0.05": MovementBelow(), "paper 0.001": Stopper()}
    chosen = next(name for name in names if name.startswith(rule))
    assert next(iter(said)) == "answer"
    assert list(rows(captured.out)) == [chosen, *(name for name in names if name != chosen)]
    for name, cells in rows(captured.out).items():
        run = demo_run(names[name], 7)
        end = run.resume()
        assert run.stopped
        at = run.n_labels
        unused = (run.rmse[-1] - end.rmse[-1]) / (end.rmse[0] - end.rmse[-1])
        assert list(cells.values()) == [
            f"{at} of 50",
            "-" if np.isnan(run.left[-1]) else percent(run.left[-1]),
            f"{run.rmse[-1]:.3g}",
            percent(unused),
            f"{end.rmse[-1]:.3g}",
        ]
        if name == chosen:
            assert (
                f"after {at} of 50 labels ({percent(1 - at / 50)} of the pool saved) with an error "
                f"of {run.rmse[-1]:.3g}" in said["answer"]
            )
            brought = f"the other {50 - at} brought {percent(unused)} of the fall of the error."
            end_error = f"; all 50 would have brought {end.rmse[-1]:.3g}: "
            assert said["answer"].endswith(end_error + brought)
            assert said["why"].startswith(f"{run.verdict}.")
            for warning in run.verdict.warnings:
                against = f"{name}: {warning}"
                assert (against in said["but"]) is (warning not in str(run.verdict))
    assert re.search(r"\d%", captured.out) is None
    assert "--plot demo.png" in said["picture"]


@pytest.mark.parametrize("rule", ["still", "paper"])
def test_a_stop_of_the_papers_rule_while_much_is_to_come_says_so(capsys, rule):
    assert main(["demo", "--rule", rule]) == 0
    said = words(capsys.readouterr().out)
    warning = "up to 62 % of the movement may still be to come"
    assert (warning in said["answer"]) is (rule == "paper")
    # once, whether the verdict ends with it or not
    assert f"{said['why']} {said['but']}".count(warning) == 1
    if rule == "still":
        assert said["but"] == f"paper 0.001: {warning}"


@pytest.mark.parametrize("ends_with_it", [False, True])
def test_a_warning_of_the_verdict_is_not_said_twice(capsys, monkeypatch, ends_with_it):
    warning = "up to 62 % of the movement may still be to come"
    plain = verdict.Verdict.__str__

    def sentence(self):
        own = plain(self).removesuffix(f"; but {warning}")
        return f"{own}; but {warning}" if ends_with_it and warning in self.warnings else own

    monkeypatch.setattr(verdict.Verdict, "__str__", sentence)
    assert main(["demo", "--rule", "paper"]) == 0
    said = words(capsys.readouterr().out)
    assert (warning in said["why"]) is ends_with_it
    assert (f"paper 0.001: {warning}" in said["but"]) is not ends_with_it
    assert "paper 0.001: the bounds are still falling" in said["but"]


def test_demo_what_if_i_accept_more(capsys):
    assert main(["demo", "--share", "0.05,0.2, 0.4,0.2"]) == 0
    found = rows(capsys.readouterr().out)
    assert list(found) == ["still 0.05", "still 0.2", "still 0.4", "paper 0.001"]
    used = [int(cells["labels used"].split()[0]) for cells in found.values()]
    assert used[0] > used[1] > used[2]


def test_demo_is_the_same_again(capsys):
    outputs = []
    for _ in range(2):
        assert main(["demo"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert main(["demo", "--seed", "2"]) == 0
    assert capsys.readouterr().out != outputs[0]


def test_demo_without_a_stop(capsys):
    assert main(["demo", "--rule", "paper", "--alpha", "1e-12"]) == 0
    said = words(printed := capsys.readouterr().out)
    assert said["answer"].startswith("no stop before the end: ")
    assert said["why"].startswith("go on: ")
    assert said["suggests"].startswith("still learning. The bounds are still falling")
    row = rows(printed)["paper 1e-12"]
    assert row["labels used"] == "no stop before the end"
    assert (row["still to come"], row["unused"]) == ("0 %", "0 %")
    assert row["error then"] == row["error at the end"]


def test_demo_too_small_to_stop(capsys):
    assert main(["demo", "--labels", "10"]) == 0
    said = words(capsys.readouterr().out)
    assert said["answer"].startswith("no stop before the end: ")
    assert said["why"] == "no stop is possible before 11 bounds, and there are 9."
    assert "suggests" not in said
    assert main(["demo", "--labels", "10", "--rule", "paper"]) == 0
    said = words(capsys.readouterr().out)
    assert said["why"] == "too early: no stop is possible before 14 bounds at alpha = 0.001."


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_demo_picture(capsys, tmp_path, ending):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"demo.{ending}"
    assert main(["demo", "--plot", str(path)]) == 0
    assert path.read_bytes()[:4] == (b"\x89PNG" if ending == "png" else b"<?xm")
    # The path may be longer than a line: it stands on one of its own then.
    assert f"{path}: the model at the stop" in words(capsys.readouterr().out)["picture"].strip()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--labels", "1"], "--labels: must be a whole number in 2..1000, got '1'"),
        (["--labels", "1001"], "--labels: must be a whole number in 2..1000, got '1001'"),
        (["--seed", "-1"], "--seed: must be a whole number of at least 0, got '-1'"),
        (["--seed", "1.5"], "--seed: must be a whole number of at least 0, got '1.5'"),
        (["--seed", "9" * 500], "--seed: must be a whole number of at least 0, got '999"),
        (["--alpha", "0"], r"--alpha: must be in \(0, 1\), got '0'"),
        *(
            (["--share", text], rf"--share: must be shares in \(0, 1\) .*, got '{text}'")
            for text in ("0", "1", "", ",", "0.05,", "nan", "0.1;0.2", "5%")
        ),
        (["--share", "0.1,0.2", "--rule", "paper"], "--share: 0.1,0.2 belongs to --rule still"),
        (["--rule", "other"], "--rule: invalid choice: 'other'"),
        (["--plot", "picture.doc"], "--plot: 'picture.doc' must end with one of"),
        (["--plot", "nowhere/picture.png"], "--plot: 'nowhere/picture.png'"),
        (["extra"], "unrecognized arguments: extra"),
    ],
)
def test_demo_wrong_use(capsys, options, text):
    if "--plot" in options:
        pytest.importorskip("matplotlib")
    assert main(["demo", *options]) == 2
    error = one_line(capsys)
    assert re.search(text, error)
    assert len(error) < 200


def test_demo_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "fastal", "demo"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert "you could have stopped after 24 of 50 labels" in done.stdout


# fastal run -------------------------------------------------------------------------------------


def test_run_answers_and_writes(capsys, table, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "new" / "folder"
    assert main(["run", str(table), "--target", "strength", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    said = words(captured.out)
    record = json.loads((out / "run.json").read_text(), parse_constant=pytest.fail)
    results, run = record["results"], record["run"]
    assert sorted(path.name for path in out.iterdir()) == ["run.json", "run.png"]
    assert (out / "run.png").read_bytes()[:4] == b"\x89PNG"

    assert (
        "200 rows, 2 features, target 'strength'; a pool of 160 rows, 40 held out" in said["data"]
    )
    assert results["stopped"] is True
    at = results["stopped_at"]
    assert 15 <= at < 160
    assert f"you could have stopped after {at} of 160 labels" in said["answer"]
    found = rows(captured.out)
    assert list(found) == ["still 0.05", "paper 0.001"]
    assert found["still 0.05"]["labels used"] == f"{at} of 160"
    assert [
        f"{rule['rule']} {rule.get('share', rule.get('alpha')):g}" for rule in results["rules"]
    ] == list(found)
    for rule, cells in zip(results["rules"], found.values(), strict=True):
        assert cells["labels used"].startswith(f"{rule['n_labels']} of")
        assert cells["error then"] == f"{rule['rmse']:.3g}"
        assert cells["unused"] == percent(rule["unused"])
        assert rule["rmse"] == pytest.approx(
            run["rmse"][rule["n_labels"] - 1] / run["rmse"][-1] * results["rmse_now"], rel=1e-9
        )
    assert results["n_labels"] == run["n_labels"] == len(run["labels"]) == 160
    assert results["savings"] == pytest.approx(1 - at / 160)
    assert results["expected_loss_then"] == pytest.approx(run["errors"][at - 1], rel=1e-9)
    assert results["expected_loss_now"] == run["errors"][-1]
    # The noise of the target has standard deviation 1.
    assert 0.8 < results["rmse_now"] < 1.2
    assert 0.8 < results["rmse_then"] < 1.2
    unit = "root mean square in units of 'strength', on the 40 rows held out"
    assert said["error"] == f"{unit}; {results['rmse_first']:.3g} after one label"
    assert found["still 0.05"]["error then"] == f"{results['rmse_then']:.3g}"
    assert found["still 0.05"]["error at the end"] == f"{results['rmse_now']:.3g}"
    assert record["settings"]["seed"] == 0
    assert record["hyperparameters"]["noise"] < 0.1

    # The lines lead from the labels back to the file: standardised and back, the same numbers.
    lines = table.read_text().splitlines()
    y = np.array([float(line.split(",")[2]) for line in lines[1:]])
    of_labels = np.array([float(lines[i - 1].split(",")[2]) for i in record["lines"]])
    np.testing.assert_allclose(
        run["labels"], (of_labels - y.mean()) / y.std(), rtol=1e-9, atol=1e-12
    )
    assert len(set(record["lines"])) == 160


def test_run_overwrites_its_own_files_only(capsys, table, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("run.json", "run.png", "notes.txt"):
        (tmp_path / name).write_text("old")
    command = ["run", str(table), "--target", "3", "--max-labels", "20", "--out", str(tmp_path)]
    assert main(command) == 0
    assert json.loads((tmp_path / "run.json").read_text())["settings"]["max_labels"] == 20
    assert (tmp_path / "run.png").stat().st_size > 1000
    assert (tmp_path / "notes.txt").read_text() == "old"
    assert "run.json" in words(capsys.readouterr().out)["written"]


def test_run_without_matplotlib_still_writes_the_record(capsys, table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    command = ["run", str(table), "--target", "3", "--max-labels", "20", "--out", str(tmp_path)]
    assert main(command) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert "no picture: pictures need matplotlib" in words(capsys.readouterr().out)["written"]


def test_run_with_given_noise_and_features(capsys, table, tmp_path):
    pytest.importorskip("matplotlib")
    options = ["--features", "b, 1", "--noise", "0.05", "--max-labels", "30", "--share", "0.001"]
    assert main(["run", str(table), "--target=-1", *options, "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["hyperparameters"]["noise"] == 0.05
    assert record["data"]["features"] == ["b", "a"]
    assert record["settings"]["share"] == [0.001]
    assert record["results"]["stopped"] is False
    assert record["results"]["stopped_at"] is None
    assert record["results"]["savings"] == 0
    assert record["results"]["unused"] == 0
    assert record["results"]["no_stop_reason"] in verdict.NO_STOP
    said = words(printed := capsys.readouterr().out)
    assert "noise variance 0.05 (given)" in said["model"]
    assert said["answer"].startswith("no stop before the end: ")
    assert "within the 30 labels you allow, in a pool of 160" in said["answer"]
    end = f"{record['results']['rmse_now']:.3g}"
    assert said["answer"].endswith(f"you would have used all 30 labels, with an error of {end}.")
    assert re.fullmatch(
        "one label before the end .* % of the movement was still to come .0.1 % asked..",
        said["why"],
    )
    assert said["suggests"].startswith(record["results"]["no_stop_reason"])
    assert rows(printed)["still 0.001"]["labels used"] == "no stop before the end"


def test_run_counts_savings_from_what_can_be_had(capsys, table):
    command = ["run", str(table), "--target", "3", "--max-labels", "60", "--share", "0.3"]
    assert main(command) == 0
    said = words(printed := capsys.readouterr().out)
    at = int(rows(printed)["still 0.3"]["labels used"].removesuffix(" of 60"))
    assert "within the 60 labels you allow, in a pool of 160" in said["answer"]
    assert f"after {at} of 60 labels ({percent(1 - at / 60)} of them saved)" in said["answer"]
    assert main(["run", str(table), "--target", "3", "--max-labels", "160"]) == 0
    assert "you allow" not in words(capsys.readouterr().out)["answer"]  # the pool ends it


def test_run_writes_predictions(capsys, table, tmp_path):
    path = tmp_path / "predictions.csv"
    command = ["run", str(table), "--target", "3", "--predictions", str(path)]
    assert main([*command, "--out", str(tmp_path)]) == 0
    results = json.loads((tmp_path / "run.json").read_text())["results"]
    with open(path, newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["line", "strength", "mean", "sd", "sd_of_label", "role"]
    lines = table.read_text().splitlines()
    assert [int(row["line"]) for row in found] == list(range(2, 202))
    assert [row["strength"] for row in found] == [line.split(",")[2] for line in lines[1:]]
    roles = [row["role"] for row in found]
    assert roles.count("labelled") == results["stopped_at"]
    assert roles.count("test") == 40
    y, mean, sd, with_noise = (
        np.array([float(row[name]) for row in found])
        for name in ("strength", "mean", "sd", "sd_of_label")
    )
    test = np.array(roles) == "test"
    # the same numbers as in the table, from the same model
    assert np.sqrt(np.mean((y - mean)[test] ** 2)) == pytest.approx(results["rmse_then"], rel=1e-6)
    assert (with_noise > sd).all()
    assert (sd > 0).all()
    # the noise of the target has standard deviation 1
    assert np.abs((y - mean) / with_noise)[test].max() < 5
    assert (
        f"{path}: mean and standard deviation of all 200 rows"
        in words(capsys.readouterr().out)["written"]
    )


def test_run_where_labels_do_not_lower_the_error(capsys, tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "noise.csv"
    path.write_text("".join(f"{a},{b}\n" for a, b in rng.normal(size=(60, 2)).tolist()))
    seen = set()
    for seed in range(6):
        assert (
            main(["run", str(path), "--target", "2", "--seed", str(seed), "--noise", "0.01"]) == 0
        )
        said = words(printed := capsys.readouterr().out)
        unused = {cells["unused"] for cells in rows(printed).values()}
        if said["unused"] == "labels do not lower the error here":
            assert unused == {"-"}
            assert re.search(
                r"; labels do not lower the error here: [\d.]+ after one label, [\d.]+ after all "
                r"48(; none after the first paid|, though it was [\d.]+ on the way)\.$",
                said["answer"],
            )
        else:
            assert "-" not in unused
        seen.add(unused == {"-"})
    assert True in seen


def test_run_where_labels_hardly_lower_the_error(capsys, tmp_path):
    path = tmp_path / "noise.csv"
    np.savetxt(path, np.random.default_rng(1).normal(size=(200, 2)), delimiter=",")
    assert main(["run", str(path), "--target", "2"]) == 0
    said = words(printed := capsys.readouterr().out)
    first = re.search(r"; ([\d.]+) after one label", said["error"])[1]
    end = rows(printed)["still 0.05"]["error at the end"]
    assert 0.9 * float(first) < float(end) < float(first)
    assert said["answer"].endswith(
        f"; labels hardly lower the error here: {first} after one label, {end} after all 160."
    )
    assert "asked for" not in said["but"]  # a share of chance


@pytest.mark.parametrize(
    ("rmse", "text"),
    [
        ([1.0, 0.5, 0.95], "hardly lower the error here: 1 after one label, 0.95 after all 3"),
        ([1.0, 0.95, 1.0], "1 after one label, 1 after all 3; none after the first paid"),
        ([1.0, 0.5, 1.5], "1 after one label, 1.5 after all 3, though it was 0.5 on the way"),
        ([0.0, 0.0], "0 after one label, 0 after all 2; none after the first paid"),
    ],
)
def test_the_words_for_an_error_that_does_not_fall(rmse, text):
    assert not campaign._falls(np.array(rmse))
    assert campaign._no_fall(np.array(rmse)).endswith(text)
    assert campaign._falls(np.array([1.0, 0.5, 0.9 - 1e-9]))


def test_unused_is_a_share():
    rmse = np.array([4.0, 5.0, 3.0, 1.0, 2.0])
    assert [unused_share(rmse, n) for n in range(1, 6)] == [1.0, 1.0, 0.5, 0.0, 0.0]
    assert unused_share(np.array([1.0, 0.5, 1.0]), 2) is None
    assert unused_share(np.array([1.0, 0.5, 1.5]), 2) is None
    assert unused_share(np.array([1.0]), 1) is None


def test_the_advice_on_a_table_where_the_papers_rule_stops_early(capsys, tmp_path):
    """Groups far apart make the first bounds large; the structure within them comes later."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 615)
    X = np.column_stack([4 * group + 0.6 * rng.normal(size=615), rng.normal(size=(615, 5))])
    y = 8 * group**1.5 + 3 * np.sin(3 * X[:, 1]) * np.cos(2 * X[:, 2]) + 0.5 * X[:, 3] ** 2
    y += 0.1 * rng.normal(size=615)
    path = tmp_path / "groups.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",")
    for seed in "0", "1":
        assert main(["run", str(path), "--target", "7", "--seed", seed]) == 0
        said = words(printed := capsys.readouterr().out)
        still, paper = rows(printed).values()
        assert int(paper["labels used"].split()[0]) < 50
        assert int(still["labels used"].split()[0]) > 492 / 3
        assert float(still["unused"].removesuffix(" %").removeprefix("less than ")) <= 5
        assert percent_of(paper["still to come"]) > 10
        # of each rule that does not look at it, and once
        assert said["but"] == "; ".join(
            f"{rule}: up to {cells['still to come']} of the movement may still be to come"
            for rule, cells in (("paper 0.001", paper),)
            if percent_of(cells["still to come"]) > 10
        )


def test_run_scale_of_the_table_does_not_matter(capsys, table, tmp_path):
    lines = table.read_text().splitlines()
    rows = [[float(cell) for cell in line.split(",")] for line in lines[1:]]
    scaled = tmp_path / "scaled.csv"
    # Squares of these numbers are infinite, or zero.
    scaled.write_text("\n".join(f"{a * 1e200} {b * 1e-200} {c * 1e250}" for a, b, c in rows))
    answers = []
    for path in (table, scaled):
        assert main(["run", str(path), "--target", "3"]) == 0
        answers.append(words(capsys.readouterr().out)["answer"])
    huge = r"[\d.]+e\+2\d\d"  # an error, in units of the target
    assert len(re.findall(huge, answers[1])) == 2
    assert answers[0] == re.sub(huge, lambda n: f"{float(n[0]) / 1e250:.3g}", answers[1])


def test_run_too_small_to_stop(capsys, tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("".join(f"{i},{i * i}\n" for i in range(15)))
    assert main(["run", str(path), "--target", "2"]) == 0
    said = words(capsys.readouterr().out)
    assert "15 rows, 1 feature, target 'column 2'; a pool of 10 rows, 5 held out" in said["data"]
    assert said["answer"].startswith("no stop before the end: ")
    assert said["why"] == "no stop is possible before 11 bounds, and there are 9."


def test_run_warns_of_labels_that_the_prior_cannot_explain(capsys, tmp_path):
    path = tmp_path / "outlier.csv"
    y = np.sin(np.arange(300))
    # One of 300 labels can be 17 standard deviations off. Not among the 60 rows held out.
    y[np.random.default_rng(0).permutation(300)[100]] = 1e6
    path.write_text("".join(f"{i},{v}\n" for i, v in enumerate(y)))
    assert main(["run", str(path), "--target", "2", "--noise", "0.1"]) == 0
    said = words(capsys.readouterr().out)
    assert "17.2" in said["warning"]
    assert "answer" in said


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--target", "weight"], "no column 'weight'; the columns are 'a', 'b', 'strength'"),
        (["--target", "a", "--features", "b,,strength"], "--features: must be columns separated"),
        (["--target", "a", "--features", ""], "--features: must be columns separated"),
        (["--target", "a", "--features", '"b'], "--features: unexpected end of data"),
        (["--target", "a", "--features", "a"], "column 'a' is the target"),
        (["--target", "a", "--noise", "0"], "--noise: must be a positive number, got '0'"),
        (
            ["--target", "a", "--max-labels", "1"],
            "--max-labels: must be a whole number of at least 2",
        ),
        (
            ["--target", "a", "--max-labels", "161"],
            "--max-labels: 161 is more than the pool of 160",
        ),
        (["--target", "a", "--alpha", "2"], "--alpha: must be in"),
        (["--target", "a", "--share", "0.1,1"], "--share: must be shares in (0, 1) separated by"),
        (["--target", "a", "--share", "0.1", "--rule", "paper"], "--share: 0.1 belongs to --rule"),
        (["--target", "a", "--predictions", ""], "--predictions: '' is a directory, or in none"),
        (["--target", "a", "--predictions", "."], "--predictions: '.' is a directory, or in none"),
        (["--target", "a", "--predictions", "nowhere/p.csv"], "--predictions: 'nowhere/p.csv' is"),
        ([], "the following arguments are required: --target"),
    ],
)
def test_run_wrong_use(capsys, table, options, text):
    assert main(["run", str(table), *options]) == 2
    assert text in one_line(capsys)


def test_predictions_do_not_overwrite_the_table(capsys, table):
    before = table.read_bytes()
    assert main(["run", str(table), "--target", "a", "--predictions", str(table)]) == 2
    assert "--predictions: " in (error := one_line(capsys))
    assert "is the table itself" in error
    assert table.read_bytes() == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_predictions_that_cannot_be_written(capsys, table):
    command = ["run", str(table), "--target", "a", "--max-labels", "20"]
    assert main([*command, "--predictions", "/dev/full"]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("answer")  # it is there all the same
    assert captured.err == "fastal: --predictions: /dev/full: No space left on device\n"


def test_run_bad_files(capsys, tmp_path):
    assert main(["run", str(tmp_path / "none.csv"), "--target", "1"]) == 2
    assert "none.csv: No such file or directory" in one_line(capsys)
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n" + "1,2\n" * 5 + "3,red\n" + "2,3\n" * 20)
    assert main(["run", str(bad), "--target", "b"]) == 2
    assert "bad.csv: line 7, column 'b': 'red' is not a number" in one_line(capsys)
    bad.write_text("".join(f"{i},{(-1) ** i * 1.7e308}\n" for i in range(20)))
    assert main(["run", str(bad), "--target", "2"]) == 2
    assert "'column 2': the range of its values is not finite" in one_line(capsys)


def test_run_out_that_is_a_file(capsys, table, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    assert main(["run", str(table), "--target", "a", "--out", str(path)]) == 2
    assert f"--out: {path}: File exists" in one_line(capsys)
    (tmp_path / "run.json").mkdir()
    command = ["run", str(table), "--target", "a", "--max-labels", "20", "--out", str(tmp_path)]
    assert main(command) == 2
    assert f"--out: {tmp_path / 'run.json'}: Is a directory" in capsys.readouterr().err


def test_what_the_learner_refuses_is_one_line(capsys, table, monkeypatch):
    def refuse(*_, **__):
        raise MemoryError("the pool needs 99.0 GB: lower `max_labels`")

    monkeypatch.setattr("fastal.learning.run.learn", refuse)
    assert main(["run", str(table), "--target", "a", "--noise", "0.1"]) == 2
    assert "smooth.csv: the pool needs 99.0 GB: lower --max-labels" in one_line(capsys)


def test_repeated_rows_without_noise_are_one_line(capsys, tmp_path):
    path = tmp_path / "grid.csv"
    path.write_text("".join(f"{i % 3},{i % 5},{i % 3 + i % 5}\n" for i in range(150)))
    # the campaign bears it; a model of all labels does not
    command = ["run", str(path), "--target", "3", "--noise", "1e-15"]
    command += ["--rule", "paper", "--alpha", "1e-300"]  # no stop
    assert main([*command, "--predictions", str(tmp_path / "predictions.csv")]) == 2
    error = one_line(capsys)
    assert "grid.csv: " in error
    assert "increase the noise variance" in error
    assert main(["run", str(path), "--target", "3"]) == 0
    assert "answer" in words(capsys.readouterr().out)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_for_terminals_and_not_for_the_quiet(capsys, table, monkeypatch):
    command = ["run", str(table), "--target", "strength", "--max-labels", "20"]
    for options, expected in ([], True), (["--quiet"], False):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main([*command, *options]) == 0
        assert ("fitting the model to 160 rows" in terminal.getvalue()) is expected
        if not expected:
            assert terminal.getvalue() == ""
    assert "answer" in words(capsys.readouterr().out)


# Why there was no stop --------------------------------------------------------------------------


def test_no_stop_reason():
    rng = np.random.default_rng(0)
    noise = rng.exponential(size=60)
    assert no_stop_reason(5 + noise) == "never fell"
    assert no_stop_reason(0.01 * noise) == "noise from the start"
    assert no_stop_reason(noise * np.exp(-0.1 * np.arange(60))) == "still learning"
    # A drop within the first bounds is masked: what follows counts.
    assert no_stop_reason(np.r_[np.full(5, 100.0), 0.01 * noise]) == "noise from the start"
    assert no_stop_reason([1.0] * 14) == "too few bounds"
    assert no_stop_reason([]) == "too few bounds"
    # Ties have no trend.
    assert no_stop_reason([1.0] * 15) == "never fell"


def test_no_stop_reason_checks_its_input():
    with pytest.raises(ValueError, match=r"`bounds`.*nan"):
        no_stop_reason([1.0, np.nan])
    with pytest.raises(ValueError, match="`bounds`"):
        no_stop_reason([[1.0], [2.0]])


def test_each_reason_has_its_words():
    assert set(verdict.NO_STOP) == {"still learning", "never fell", "noise from the start"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_picture_that_cannot_be_written_is_named(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.svg"
    picture.symlink_to("/dev/full")
    assert main(["demo", "--plot", str(picture)]) == 2
    assert capsys.readouterr().err.startswith(f"fastal: --plot: {picture}: ")
