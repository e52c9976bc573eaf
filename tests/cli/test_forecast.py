"""fastal forecast, on small tables."""

import re

import numpy as np
import pytest

from fastal import GaussianProcess, forecast
from fastal.cli.entry import main

MODEL = ("--lengthscale", "1.0", "--noise", "0.05")


def write(path, rows, header="a,b,done,y\n"):
    path.write_text(header + "".join(",".join(map(str, row)) + "\n" for row in rows), "utf-8")
    return str(path)


@pytest.fixture
def rows():
    draws = np.random.default_rng(0)
    x = draws.normal(size=(40, 2)).round(6)
    y = (np.sin(x).sum(axis=1) + 0.1 * draws.normal(size=40)).round(6)
    return [[a, b, int(i < 18), c] for i, ((a, b), c) in enumerate(zip(x, y, strict=True))]


@pytest.fixture
def data(rows, tmp_path):
    """Eighteen rows have a target."""
    cut = [[a, b, y if done else ""] for a, b, done, y in rows]
    return write(tmp_path / "data.csv", cut, "a,b,y\n")


def say(capsys, *argv):
    assert main(["forecast", *argv]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_what_is_said_is_the_forecast(data, rows, capsys):
    said = say(capsys, data, "--target", "y", *MODEL, "--price", "0.3", "--next", "4")
    table = np.array(rows, dtype=float)
    X = (table[:, :2] - table[:, :2].mean(axis=0)) / table[:, :2].std(axis=0)
    y = table[:18, 3]
    gp = GaussianProcess(1.0, 0.05)
    gp.add_batch(X[:18], (y - y.mean()) / y.std())
    ahead = forecast(X, gp)
    words = " ".join(said.split())
    assert "40 rows, 18 of them labelled" in words
    assert "length scale 1, noise variance 0.05, as given" in words
    assert ahead.summary in words
    fall = ahead.loss_fall[17]
    share = ahead.bought_by(10)
    assert (
        f"next 10 {100 * share:.3g} % of what is left: expected loss lower by {share * fall:.2g}"
        in words
    )
    assert f"next 22 100 % of what is left: expected loss lower by {fall:.2g}" in words
    assert re.findall(r"^next (\d+)", said, re.M) == ["10", "20", "22"]
    assert f"after {ahead.labels_for(0.05)} labels: at most 5 % of all is left" in words
    assert f"after {ahead.labels_at_price(0.3)} labels" in words
    lines = ", ".join(str(i + 2) for i in ahead.order[18:22])
    assert f"label next lines {lines} of {data}, in this order" in words


def test_a_column_says_what_is_labelled(data, rows, tmp_path, capsys):
    marked = write(tmp_path / "marked.csv", rows)
    one = say(capsys, marked, "--target", "y", "--labelled", "done", *MODEL)
    assert one.replace(marked, data) == say(capsys, data, "--target", "y", *MODEL)


def test_fitted_to_the_same_labels(data, capsys):
    said = " ".join(say(capsys, data, "--target", "y").split())
    assert "fitted to 18 of the labels of this table" in said
    assert "18 of the same labels gives a forecast no better than a fixed budget" in said


def test_two_fits_to_the_same_labels(data, rows, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "ahead.png"
    said = say(capsys, data, "--target", "y", "--price", "0.3", "--plot", str(path))
    words = " ".join(said.split())
    assert "counted in RMSE, and the larger figure of two fits counts" in words
    assert path.stat().st_size > 5000
    table = np.array(rows, dtype=float)
    X = (table[:, :2] - table[:, :2].mean(axis=0)) / table[:, :2].std(axis=0)
    y = (table[:18, 3] - table[:18, 3].mean()) / table[:18, 3].std()
    views = []
    for n, text in ((17, "the first 17 of them, in the order of the table"), (18, "18 of the")):
        # the schedule of fits: 5, 6, 7, 8, 10, 12, 14, 17, 20
        order = np.random.default_rng(0).permutation(n)
        gp = GaussianProcess().fit_hyperparameters(X[order], y[order])
        said = f"length scale {gp.lengthscale:.3g}, noise variance {gp.noise:.3g}, fitted to {text}"
        assert said in words
        views.append(forecast(X, gp, labelled=range(18)))
    shares = [view.rmse_share[17] for view in views]
    assert (
        f"after 18 labels about {100 * max(shares):.2g} % of the fall of the RMSE is left, from 5 "
        f"labels to the end of the table ({100 * shares[0]:.2g} % as the fit before sees it, "
        f"{100 * shares[1]:.2g} % as the last one)." in words
    )
    careful = views[int(np.argmax(shares))]
    unit = table[:18, 3].std()
    now, then, end = unit * careful.rmse[[17, 27, -1]]
    assert (
        f"next 10 {100 * (now - then) / (now - end):.3g} % of what is left: RMSE {now:.3g} -> "
        f"{then:.3g}" in words
    )
    stop = careful.labels_for_rmse(0.05)
    assert f"stop after {stop} labels: at most 5 % of the fall of the RMSE is left" in words
    assert f"stop after {careful.labels_at_price(0.3)} labels: further labels cost more" in words
    lines = ", ".join(str(i + 2) for i in views[1].order[18:28])
    assert f"label next lines {lines} of {data}" in words


def test_nothing_to_learn_in_these_labels(data, capsys):
    said = " ".join(say(capsys, data, "--target", "y", "--lengthscale", "0.001").split())
    assert "forecast the model finds nothing to learn in these labels." in said
    assert "stop not known: label more" in said
    assert "% of" not in said


def test_a_fit_at_an_edge_confirms_nothing(data, capsys):
    said = " ".join(say(capsys, data, "--target", "y", "--lengthscale", "1000").split())
    assert "stop not known: a fit with the length scale 1e+03 lies at an edge" in said


def test_many_of_the_same_labels(tmp_path, capsys):
    draws = np.random.default_rng(0)
    x = draws.normal(size=(130, 2))
    rows = [[a, b, np.sin(a) + b if i < 110 else ""] for i, (a, b) in enumerate(x)]
    path = write(tmp_path / "many.csv", rows, "a,b,y\n")
    said = " ".join(say(capsys, path, "--target", "y", "--noise", "0.01").split())
    assert "warning the model comes from the same labels; what is left is therefore counted" in said
    assert "fixed budget" not in said


def test_fitted_to_earlier_labels(data, rows, tmp_path, capsys):
    earlier = write(tmp_path / "earlier.csv", [[a, b, y] for a, b, _, y in rows[18:]], "a,b,y\n")
    said = " ".join(say(capsys, data, "--target", "y", "--fit", earlier, "--noise", "0.02").split())
    assert f"noise variance 0.02, fitted to 22 of the rows of {earlier}" in said
    assert "fixed budget" not in said
    marked = write(tmp_path / "marked.csv", rows)
    arguments = ("--target", "y", "--fit", earlier, "--noise", "0.02", "--labelled", "done")
    assert " ".join(say(capsys, marked, *arguments).split()).replace(marked, data) == said


def test_without_a_header_and_without_labels(rows, tmp_path, capsys):
    bare = write(tmp_path / "bare.csv", [[a, b, ""] for a, b, _, _ in rows], "")
    said = " ".join(say(capsys, bare, "--target", "-1", *MODEL).split())
    assert "40 rows, 0 of them labelled" in said
    assert "40 labels would lower the expected loss by about" in said
    one = write(
        tmp_path / "one.csv",
        [[a, b, 7.0 if i == 3 else ""] for i, (a, b, _, _) in enumerate(rows)],
        "",
    )
    said = " ".join(say(capsys, one, "--target", "3", *MODEL).split())
    assert "40 rows, 1 of them labelled" in said


def test_warnings_are_said(rows, tmp_path, capsys):
    cut = [[*rows[i % 30][:2], rows[i % 30][3] if i < 18 else ""] for i in range(40)]
    twice = write(tmp_path / "twice.csv", cut, "a,b,y\n")
    said = " ".join(say(capsys, twice, "--target", "y", *MODEL).split())
    assert "warning 10 of 40 rows repeat others" in said


def test_picture(data, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "ahead.png"
    said = say(capsys, data, "--target", "y", *MODEL, "--plot", str(path))
    assert f"picture           {path}" in said
    assert path.stat().st_size > 5000


def test_wrong_use(data, rows, tmp_path, capsys):
    marked = write(tmp_path / "marked.csv", rows)
    few = write(
        tmp_path / "few.csv", [[a, b, y if a > 1 else ""] for a, b, _, y in rows], "a,b,y\n"
    )
    other = write(tmp_path / "other.csv", [[a, b, y] for a, b, _, y in rows], "a,c,y\n")
    full = write(tmp_path / "full.csv", [[a, b, y] for a, b, _, y in rows], "a,b,y\n")
    for argv, message in (
        ([data], "the following arguments are required: --target"),
        ([data, "--target", "z"], "no column 'z'"),
        ([data, "--target", "y", "--eps", "1"], "argument --eps: must be in (0, 1), got '1'"),
        ([marked, "--target", "y", "--labelled", "y"], "column 'y' is the target and cannot say"),
        (
            [marked, "--target", "y", "--labelled", "a"],
            "line 2, column 'a': must be 0 or 1, got 0.1",
        ),
        ([few, "--target", "y"], "at least 15 rows with a target are needed to fit the model, got"),
        (
            [data, "--target", "y", "--fit", other],
            f"{other}: the features are 'a', 'c', those of {data}",
        ),
        ([full, "--target", "y", *MODEL], "`X` must have at least two unlabelled points, got 0"),
        ([data, "--target", "y", "--plot", "a.txt"], "--plot: 'a.txt' must end with one of"),
    ):
        assert main(["forecast", *argv]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_huge_columns_are_standardised_all_the_same(data, rows, tmp_path, capsys):
    huge = [[a * 1e200, b, y * 1e250 if done else ""] for a, b, done, y in rows]
    other = write(tmp_path / "huge.csv", huge, "a,b,y\n")
    said = say(capsys, other, "--target", "y", *MODEL)
    assert said.replace(other, data) == say(capsys, data, "--target", "y", *MODEL)


def test_a_column_without_a_finite_range_is_named(rows, tmp_path, capsys):
    wide = [[a, -1.7e308 if i == 3 else 1e307 * b, y] for i, (a, b, _, y) in enumerate(rows)]
    wide[4][1] = 1.7e308
    path = write(tmp_path / "wide.csv", wide, "a,b,y\n")
    assert main(["forecast", path, "--target", "y", *MODEL]) == 2
    assert "column 'b': the range of its values is not finite" in capsys.readouterr().err


def test_an_earlier_table_too_far_away(data, rows, tmp_path, capsys):
    far = [[a * 1e307, b, y] for a, b, _, y in rows]
    near = write(tmp_path / "near.csv", [[a * 1e-300, b, ""] for a, b, _, _ in rows], "a,b,y\n")
    path = write(tmp_path / "far.csv", far, "a,b,y\n")
    assert main(["forecast", near, "--target", "y", "--fit", path, *MODEL]) == 2
    assert "too far from those of" in capsys.readouterr().err
