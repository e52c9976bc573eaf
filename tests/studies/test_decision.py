"""What a stop leaves unused: the study that tries whether `StillToCome` keeps its word."""

import csv
import math

import numpy as np
import pytest
from numba import config

from fastal import GaussianProcess, StillToCome, Stopper, learn, simulate
from fastal.cli.entry import main
from fastal.studies import DecisionRow, DecisionStudy, decision_study, protocol, unused
from fastal.studies.decision import RULES, SELECTIONS

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="fits and hundreds of test points take minutes interpreted"
)

POOL, RUNS, SEED = 40, 3, 3


@pytest.fixture(scope="module")
def found():
    return decision_study(["artificial"], RUNS, SEED, pools=[POOL], jobs=1)


def row(found, selection, rule, setting):
    (one,) = found.select(POOL, selection, rule=rule, setting=setting)
    return one


def test_unused_by_hand():
    rmse = np.array([[1.0, 0.8, 0.5, 0.2], [2.0, 3.0, 1.5, 1.0], [1.0, 0.5, 0.4, 1.0]])
    # (0.5 - 0.2) / (1 - 0.2); (3 - 1) / (2 - 1), an error that rises first; no fall: no share
    shares = unused(rmse, np.array([3, 2, 2]))
    assert shares[:2] == pytest.approx([0.375, 2.0], rel=1e-15)
    assert math.isnan(shares[2])
    assert unused(rmse[:2], np.array([1, 4])).tolist() == [1.0, 0.0]


def errors_in(problem, rows, order):
    """RMSE on all other rows after each label, one process and one prediction at a time."""
    left = np.setdiff1d(np.arange(len(problem.y)), rows)
    model, errors = problem.gp.copy(), []
    for i in order:
        model.add(problem.X[rows[i]], problem.y[rows[i]])
        misses = problem.y[left] - model.predict(problem.X[left])
        errors.append(math.sqrt(np.mean(misses**2)))
    return np.array(errors)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_rows_are_those_of_a_plain_loop(found, selection):
    problem = protocol.problem("artificial", SEED)
    pools = simulate(
        problem.X, problem.y, gp=problem.gp, n_runs=RUNS, pool_size=POOL, seed=SEED
    )  # fmt: skip
    rules = {
        ("StillToCome", 0.1): StillToCome(0.1),
        ("paper's rule", 0.01): Stopper(0.01, fall=False),
    }
    for (rule, setting), criterion in rules.items():
        labels, shares, at_stop = [], [], []
        for run in range(RUNS):
            rows = pools.pool(run)
            X, y = problem.X[rows], problem.y[rows]
            if selection == "max_variance":
                alone = learn(X, y, gp=problem.gp, stopper=criterion, initial=[0])
                stop, order = alone.n_labels, alone.resume().indices
            else:  # a pool is drawn in random order
                order = range(POOL)
                bounds = problem.gp.copy().add_batch(X, y)[1:]
                fresh = criterion.copy().reset()
                if rule == "StillToCome":
                    fresh.expect(POOL - 1)
                at = fresh.extend(bounds)
                stop = POOL if at is None else at + 1
            errors = errors_in(problem, rows, order)
            labels.append(stop / POOL)
            at_stop.append(errors[stop - 1])
            shares.append((errors[stop - 1] - errors[-1]) / (errors[0] - errors[-1]))
        one = row(found, selection, rule, setting)
        assert one.labels == pytest.approx(np.mean(labels), rel=1e-12)
        assert one.rmse == pytest.approx(np.mean(at_stop), rel=1e-9)
        assert one.unused == pytest.approx(np.mean(shares), rel=1e-7)
        assert one.unused_error == pytest.approx(np.std(shares, ddof=1) / RUNS**0.5, rel=1e-6)
        assert (one.runs, one.rises) == (RUNS, 0)


def test_every_rule_and_setting_is_there(found):
    for selection in SELECTIONS:
        for rule, settings in RULES.items():
            tried = [one.setting for one in found.select(POOL, selection, rule=rule)]
            assert tried == list(settings)


def test_the_whole_pool_leaves_nothing(found):
    for selection in SELECTIONS:
        whole = row(found, selection, "fixed fraction", 1.0)
        assert (whole.labels, whole.unused) == (1.0, 0.0)
        assert row(found, selection, "fixed fraction", 0.01).unused == 1.0  # one label


def test_threads_change_nothing(found):
    assert decision_study(["artificial"], RUNS, SEED, pools=[POOL], jobs=2) == found


def test_an_interrupted_study_goes_on(found, tmp_path, monkeypatch):
    """Interrupted after the second chunk: what was written is not computed again."""
    from fastal.simulation import campaigns

    done, run_chunks = [], campaigns.run_chunks

    def counted(*arguments):
        for chunk in run_chunks(*arguments):
            done.extend(chunk.runs)
            yield chunk
            if len(done) > interrupt_after:
                raise KeyboardInterrupt

    monkeypatch.setattr(campaigns, "run_chunks", counted)
    interrupt_after = RUNS  # in the second of two simulations
    store = tmp_path / "made" / "here"
    with pytest.raises(KeyboardInterrupt):
        decision_study(["artificial"], RUNS, SEED, pools=[POOL], jobs=1, store=store)
    assert RUNS < len(done) <= 2 * RUNS
    interrupt_after = math.inf
    again = decision_study(["artificial"], RUNS, SEED, pools=[POOL], jobs=1, store=store)
    assert again == found
    assert len(done) == 2 * RUNS
    files = sorted(path.name for path in store.iterdir())
    assert files == [f"artificial-{POOL}-{selection}.sqlite" for selection in SELECTIONS]
    with pytest.raises(ValueError, match=r"`store` .* other"):
        decision_study(["artificial"], RUNS, SEED + 1, pools=[POOL], store=store)


def made(dataset, setting, unused, first=1.0, last=0.2, rises=0, labels=0.5):
    return DecisionRow(
        100, "random", dataset, "StillToCome", setting, labels, unused, 0.01, 0.3, first, last, 9,
        rises,
    )  # fmt: skip


def test_sets_that_do_not_fall_are_apart():
    rows = [
        made("airfoil", share, unused, labels=labels)
        for share, unused, labels in ((0.05, 0.02, 0.8), (0.1, 0.1, 0.6), (0.2, 0.1, 0.4))
    ]
    rows += [made("yacht", share, share + 0.06, rises=2) for share in (0.05, 0.1, 0.2)]
    rows += [made("protein", share, 9.0, last=0.91) for share in (0.05, 0.1, 0.2)]
    study = DecisionStudy(rows, {100: ("concrete",)})
    one = study.outcome(100, "random", "StillToCome", 0.05)
    assert one == pytest.approx((0.65, 0.065, 0.11, "yacht", 2))
    assert study.outcome(100, "random", "StillToCome", 0.05, ["protein"]) is None
    said = " ".join(study.sentences())
    assert "at most the share asked in 1 of 3 cases" in said
    assert "6.50 % for 5 % (pool 100, labels at random); 13.00 % for 10 %" in said
    assert "Single sets exceed it in 3 of 6 cases" in said
    assert "does not fall by a tenth: protein (pool 100, labels at random)" in said
    assert "yacht (pool 100, labels at random): in 2 of 9 runs the error does not fall" in said
    assert "Too few rows for pools of 100: concrete" in said
    assert "protein (apart)" in str(study)
    # labels 0.65, 0.55, 0.45 with 0.065, 0.13, 0.18
    assert study.unused_at(100, "random", "StillToCome", 0.6) == pytest.approx(0.0975)
    assert math.isnan(study.unused_at(100, "random", "StillToCome", 0.9))
    assert math.isnan(study.unused_at(100, "random", "paper's rule", 0.5))
    with pytest.raises(ValueError, match="`rule` must be one of"):
        study.curve(100, "random", "best")


def test_labels_that_say_nothing(monkeypatch):
    """A set of noise: its error does not fall, some runs have no share, and no mean counts it."""
    rng = np.random.default_rng(0)
    noise = protocol.Problem(
        "artificial", rng.normal(size=(150, 2)), rng.normal(size=150), 20, GaussianProcess(1.0, 1.0)
    )
    monkeypatch.setattr(protocol, "problem", lambda name, seed: noise)
    study = decision_study(["artificial"], 4, pools=[20])
    assert not any(one.falls for one in study.rows)
    assert max(one.rises for one in study.rows) > 0
    assert "share asked and unused left: pool 20, labels by variance, 0 sets" in str(study)
    assert "does not fall by a tenth: artificial" in str(study)


def test_too_few_rows(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = {"artificial": 130, "airfoil": 150}

    def problem(name, seed):
        X, y = rng.normal(size=(sizes[name], 1)), rng.normal(size=sizes[name])
        return protocol.Problem(name, X, y, 20, GaussianProcess())

    monkeypatch.setattr(protocol, "problem", problem)
    study = decision_study(list(sizes), 2, pools=[20, 40])
    assert study.left_out == {20: (), 40: ("artificial",)}
    with pytest.raises(ValueError, match=r"`pools` must leave 100 rows .* at most 50, got 51"):
        decision_study(list(sizes), 2, pools=[20, 51])


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"datasets": ["naval"]}, "`datasets` must be one of"),
        ({"datasets": []}, "`datasets` must not be empty"),
        ({"pools": []}, "`pools` must not be empty"),
        ({"pools": [1]}, "`pools` must be at least 2, got 1"),
        ({"runs": 0}, "`runs` must be at least 1, got 0"),
        ({"seed": -1}, "`seed` must be"),
    ],
)
def test_bad_arguments(wrong, match):
    with pytest.raises(ValueError, match=match):
        decision_study(**wrong)


def test_the_command(tmp_path, capsys):
    arguments = ["--datasets", "artificial", "--runs", "2", "--pool", "30", "40", "--quiet"]
    folders = ["--out", str(tmp_path / "out"), "--store", str(tmp_path / "store")]
    assert main(["reproduce", "decision", *arguments, *folders]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.split("written: ")[0].splitlines())) <= 100
    assert "share asked and unused left: pool 40, labels at random, 1 set\n" in said
    with open(tmp_path / "out" / "decision.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {one["rule"] for one in rows} == set(RULES)
    assert {one["pool"] for one in rows} == {"30", "40"}
    assert (tmp_path / "out" / "decision.txt").read_text("utf-8") in said
    assert "| StillToCome(0.05) | " in (tmp_path / "out" / "decision.md").read_text("utf-8")
    assert "<svg" in (tmp_path / "out" / "decision.svg").read_text("utf-8")
    assert main(["reproduce", "decision", *arguments, *folders]) == 0
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--pool", "1"], "argument --pool: must be a whole number of at least 2, got '1'"),
        (["--datasets", "naval"], "argument --datasets: unknown 'naval'"),
        (["--pool", "1901"], "--pool must leave 100 rows"),
        (["--store", __file__], "File exists"),
    ],
)
def test_the_command_refuses(wrong, said, capsys):
    given = ["--datasets", "artificial", "--runs", "1", "--quiet"]
    assert main(["reproduce", "decision", *given, *wrong]) == 2
    err = capsys.readouterr().err
    assert err.startswith("fastal: ")
    assert err.count("\n") == 1
    assert said in err


def test_picture(found):
    pytest.importorskip("matplotlib")
    from fastal.plotting import decision_figure

    figure = decision_figure(found)
    assert [ax.get_title() for ax in figure.axes] == [
        f"pool {POOL}, labels by variance, mean of 1 set",
        f"pool {POOL}, labels at random, mean of 1 set",
    ]
    by_variance, _ = figure.axes
    named = [line.get_label() for line in by_variance.get_lines()]
    assert [name for name in named if not name.startswith("_")] == [
        "fixed fraction of the pool", "the paper's rule, over alpha", "StillToCome, over share",
    ]  # fmt: skip
    labels, left = found.curve(POOL, "max_variance", "StillToCome")
    drawn = by_variance.get_lines()[2]
    assert drawn.get_xdata() == pytest.approx(100 * labels)
    assert drawn.get_ydata() == pytest.approx(100 * left)
