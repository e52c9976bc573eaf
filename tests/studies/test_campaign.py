"""Campaigns whose hyper-parameters are learnt on the way: what the study counts, by single runs."""

import numpy as np
import pytest
from numba import config

from fastal import Criterion, StillToCome, Stopper, learn, simulate
from fastal.cli.entry import main
from fastal.datasets import artificial
from fastal.learning.refit import ESTIMATORS, Refits
from fastal.studies import campaign_study, unused
from fastal.studies.campaign import RULES, AsBoundsCome

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="fits and hundreds of test points take minutes interpreted"
)

POOL, RUNS, SEED = 40, 3, 3
X, Y = artificial()


@pytest.fixture(scope="module")
def found():
    return campaign_study(["artificial"], RUNS, SEED, pools=[POOL], jobs=1)


@pytest.fixture(scope="module")
def pools():
    result = simulate(X, Y, n_runs=RUNS, pool_size=POOL, seed=SEED)
    return [result.pool(run) for run in range(RUNS)]


def single(rows, stopper):
    rest = np.setdiff1d(np.arange(len(Y)), rows)
    arguments = {"stopper": stopper, "initial": np.arange(5), "test": (X[rest], Y[rest])}
    return learn(X[rows], Y[rows], **arguments)


def the_row(found, rule, setting):
    (one,) = found.select(POOL, "max_variance", rule=rule, setting=setting)
    return one


@pytest.mark.parametrize(
    ("rule", "setting", "criterion"),
    [
        ("StillToCome", 0.1, StillToCome(0.1)),
        ("StillToCome", 0.3, StillToCome(0.3)),
        ("StillToCome, as bounds come", 0.2, AsBoundsCome(StillToCome(0.2))),
        ("paper's rule", 0.01, AsBoundsCome(Stopper(0.01, fall=False))),
    ],
)
def test_rows_are_those_of_single_campaigns(found, pools, rule, setting, criterion):
    labels, shares = [], []
    for rows in pools:
        run = single(rows, criterion)
        stop = run.n_labels if run.stopped else POOL
        whole = run.resume() if run.n_labels < POOL else run
        labels.append(stop / POOL)
        shares.append(unused(whole.rmse[None, 4:], np.array([stop - 4]))[0])
    one = the_row(found, rule, setting)
    assert one.labels == pytest.approx(np.mean(labels), rel=1e-12)
    assert one.unused == pytest.approx(np.mean(shares), rel=1e-9, abs=1e-12)


def test_all_rules_and_settings_are_there(found):
    assert {(row.rule, row.setting) for row in found.rows} == {
        (rule, setting) for rule, settings in RULES.items() for setting in settings
    }
    assert "simulators" not in str(found)


def test_as_bounds_come_takes_no_refits():
    class Fit:
        def __init__(self, n_labels, bounds):
            self.n_labels, self.bounds, self.at_edge = n_labels, np.array(bounds), False

    inner = Stopper(0.5)
    wrapped = AsBoundsCome(inner)

    class Run:
        n_initial, bounds = 5, np.array([9.0, 9.0, 9.0, 9.0])
        refits = (Fit(5, [1.0, 2.0]), Fit(7, [5.0, 6.0, 3.0]), Fit(8, [7.0, 7.0, 7.0, 4.0]))

    wrapped.stop_in(Run(), None)
    assert inner.bounds.tolist() == [1.0, 2.0, 3.0, 4.0]
    again = Criterion.from_dict(wrapped.to_dict())
    assert isinstance(again, AsBoundsCome)
    assert again.history.tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TypeError, match="`criterion` must be a Criterion, got 3"):
        AsBoundsCome(3)


def test_a_study_goes_on_where_it_was_interrupted(tmp_path):
    arguments = {"runs": 2, "pools": [20], "store": tmp_path / "kept"}
    first = campaign_study(["artificial"], **arguments)
    said = []
    again = campaign_study(["artificial"], report=said.append, **arguments)
    assert again.rows == first.rows
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["artificial-20-weak.sqlite"]


def test_the_other_estimator(tmp_path):
    weak, plain = (
        campaign_study(["artificial"], 2, pools=[20], estimator=name) for name in ESTIMATORS
    )
    assert weak.rows != plain.rows
    # and nothing is left of it
    y = np.sin(np.arange(9.0))
    fit = Refits(None, np.arange(9.0)[:, None], 1.2).fit(np.arange(9.0)[:, None], y)
    with pytest.raises(ValueError, match="`estimator` must be one of 'weak', 'plain', got 'best'"):
        campaign_study(["artificial"], 2, pools=[20], estimator="best")
    assert Refits(None, np.arange(9.0)[:, None], 1.2).fit(np.arange(9.0)[:, None], y) == fit


def test_bad_input():
    for more, message in [
        ({"datasets": ["iris"]}, "`datasets` must be one of"),
        ({"pools": []}, "`pools` must not be empty"),
        ({"pools": [5]}, "`pools` must be at least 6, got 5"),
        ({"pools": [1990]}, "`pools` must leave 100 rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            campaign_study(**({"datasets": ["artificial"], "runs": 1, "pools": [20]} | more))


def test_the_command(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "results"
    code = main(
        ["reproduce", "campaign", "--datasets", "artificial", "--runs", "2", "--pool", "20",
         "--out", str(out), "--quiet"]
    )  # fmt: skip
    assert code == 0
    said = capsys.readouterr().out
    assert "share asked and unused left: pool 20" in said
    assert sorted(path.name for path in out.iterdir()) == [
        "campaign.csv", "campaign.md", "campaign.svg", "campaign.txt",
    ]  # fmt: skip
