"""compare with criteria of the user's own, from Python and from the command line."""

import doctest
import os
from pathlib import Path

import numpy as np
import pytest
from numba import config

from fastal import FixedBudget, GaussianProcess, MinLabels, Stopper, compare, simulate
from fastal.cli.entry import main
from fastal.datasets import artificial
from fastal.simulation.store import count_runs
from fastal.stopping import Criterion
from fastal.studies import table1

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, 60)
Y = np.sin(X) + 0.05 * rng.standard_normal(60)
GP = GaussianProcess(1.0, 0.0025)
SETTINGS = {"gp": GP, "runs": 3, "pool_size": 12, "seed": 4}

RULES = '''
from fastal import Criterion, FixedBudget

class Few(Criterion):
    """Stops after five bounds."""
    def __init__(self):
        self.reset()
    def reset(self):
        self.seen = 0
        return self
    def push(self, r):
        self.seen += 1
        return self.stopped
    stopped_at = property(lambda self: 5 if self.seen >= 5 else None)
    reason = property(lambda self: f"{self.seen} bounds")

few = Few()
budget = FixedBudget(7)
number = 3
def broken():
    raise KeyError("oh")
'''


class Few(Criterion):
    """Stops after some bounds."""

    def __init__(self, n):
        self.n = n
        self.reset()

    def reset(self):
        self.seen = 0
        return self

    def push(self, r):
        self.seen += 1
        return self.stopped

    stopped_at = property(lambda self: self.n if self.seen >= self.n else None)
    reason = property(lambda self: f"{self.seen} bounds")


def test_criteria_of_ones_own_have_rows_of_their_own():
    own = {"few": Few(5), "both": Few(5) & MinLabels(8), "paper": Stopper(0.05), "never": Few(99)}
    with_own, without = compare(X, Y, criteria=own, **SETTINGS), compare(X, Y, **SETTINGS)
    assert repr(with_own.rows[: len(without.rows)]) == repr(without.rows)  # nan is not nan
    assert [row.criterion for row in with_own.rows[len(without.rows) :]] == list(own)
    assert with_own.stops["few"].tolist() == [6, 6, 6]  # one initial label
    assert with_own.stops["both"].tolist() == [9, 9, 9]
    assert with_own.stops["never"].tolist() == [12, 12, 12]
    direct = simulate(
        X, Y, gp=GP, criteria=[Stopper(0.05)], test="rest", n_runs=3, pool_size=12, seed=4
    )
    stops = direct.criteria_stops[:, 0]
    assert with_own.stops["paper"].tolist() == np.where(stops < 0, 12, stops).tolist()
    assert own["few"].seen == 0  # copied
    lines = {line.split("  ")[0]: line for line in str(with_own).split("\n")}
    assert "as given" in lines["few"]
    assert "none needed" in lines["proposed"]


def test_a_sequence_of_criteria_names_itself():
    found = compare(X, Y, criteria=[Few(5), FixedBudget(3), Few(4) | Stopper()], **SETTINGS)
    names = [row.criterion for row in found.rows[-3:]]
    assert names == ["Few", "FixedBudget(3)", "(Few | Stopper())"]


@pytest.mark.parametrize(
    ("criteria", "error", "message"),
    [
        (Few(3), TypeError, "`criteria` must be a dict or a sequence of criteria, got"),
        ("few", TypeError, "`criteria` must be a dict or a sequence of criteria, got 'few'"),
        (3, TypeError, "`criteria` must be a dict or a sequence of criteria, got 3"),
        ([3], TypeError, "`criteria` must hold criteria, got 3"),
        ([Few], TypeError, "`criteria` must hold criteria, got <class"),
        ({3: Few(3)}, TypeError, "`criteria` must have texts as names, got 3"),
        ({"proposed": Few(3)}, ValueError, "names that no other row has, got 'proposed'"),
        ({"fixed_budget": Few(3)}, ValueError, "names that no other row has, got 'fixed_budget'"),
        ([Few(3), Few(4)], ValueError, "names that no other row has, got 'Few'"),
    ],
)
def test_what_is_no_criterion(criteria, error, message):
    with pytest.raises(error, match=message):
        compare(X, Y, criteria=criteria, **SETTINGS)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "rules.py").write_text(RULES)
    lines = [f"{a!r},{b!r}\n" for a, b in zip(X.tolist(), Y.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(lines))
    return tmp_path


def test_a_criterion_of_ones_own_on_the_command_line(table, capsys):
    rules = str(table / "rules.py")
    command = ["compare", str(table / "data.csv"), "--target", "y", "--runs", "2"]
    command += ["--pool-size", "12", "--jobs", "1"]
    for name in "few", "Few", "budget":
        command += ["--criterion", f"{rules}:{name}"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = {line.split()[0]: line.split() for line in captured.out.split("\n") if line}
    assert [lines[name][3] for name in ("few", "Few", "budget")] == ["6.0", "6.0", "8.0"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{rules}:nothing", "AttributeError: module 'rules' has no attribute 'nothing'"),
        ("{rules}:number", "must be a fastal.Criterion, got 3"),
        ("{rules}:broken", "KeyError: 'oh'"),
        ("{folder}/none.py:few", "FileNotFoundError: "),
        ("no_such_module_here:few", "ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("few", "must be FILE.py:NAME or MODULE:NAME, got 'few'"),
        ("{rules}:", "must be FILE.py:NAME or MODULE:NAME, got "),
        ("fastal:Stopper()", "must be FILE.py:NAME or MODULE:NAME, got 'fastal:Stopper()'"),
    ],
)
def test_what_names_no_criterion_is_one_line(table, capsys, name, message):
    text = name.format(rules=table / "rules.py", folder=table)
    command = ["compare", str(table / "data.csv"), "--target", "y", "--criterion", text]
    assert main(command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fastal: --criterion: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_the_page_about_criteria_runs():
    page = Path(__file__).parents[2] / "docs" / "criteria.md"
    if not page.exists():
        pytest.skip("no documentation here")
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert failed == 0
    text = page.read_text(encoding="utf-8")
    assert tried > 15
    for name in "learn", "simulate", "compare":
        assert f"{name}(X, np.sin(X)" in text


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="minutes without the JIT")
def test_finished_runs_are_kept(tmp_path):
    X, y = artificial(200)
    settings = {"gp": GaussianProcess(1.4, 0.0026), "runs": 4, "pool_size": 30}
    first = compare(X, y, store=tmp_path / "kept", **settings)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "compared.sqlite", "tuning.sqlite",
    ]  # fmt: skip
    assert [count_runs(path) for path in (tmp_path / "kept").iterdir()] == [4, 4]
    # all of them are read again, and two more are computed
    more = compare(X, y, store=str(tmp_path / "kept"), **{**settings, "runs": 6})
    assert str(first) == str(compare(X, y, **settings))
    assert str(more) == str(compare(X, y, **{**settings, "runs": 6}))
    assert [count_runs(path) for path in (tmp_path / "kept").iterdir()] == [6, 6]
    with pytest.raises(TypeError, match="`store` must name a folder, got 5"):
        compare(X, y, store=5, **settings)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="minutes without the JIT")
@pytest.mark.skipif(
    not os.environ.get("FASTAL_DATA"), reason="FASTAL_DATA names no folder with the data"
)
def test_the_table_keeps_its_runs_too(tmp_path):
    settings = {"datasets": ["artificial"], "runs": 3}
    found = table1(store=tmp_path, **settings)
    assert count_runs(tmp_path / "table-artificial.sqlite") == 3
    assert str(table1(store=tmp_path, **settings)) == str(found) == str(table1(**settings))
