"""What labels buy, rule by rule: the experiment beyond the paper."""

import csv

import numpy as np
import pytest
from numba import config

from fastal import LookAhead, Stopper, learn
from fastal.cli.entry import main
from fastal.criteria.experiments import expected_losses
from fastal.studies import protocol
from fastal.studies.label_cost import RULES, Curve, Tradeoff, tradeoff

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT), reason="fits and 1,950 test points take minutes interpreted"
)


@pytest.fixture(scope="module")
def found():
    return tradeoff(["artificial"], runs=4, seed=3, jobs=1)


def test_curves_are_those_of_the_criteria(found):
    """Stops by `learn` with each criterion, losses by the textbook's formula."""
    problem = protocol.problem("artificial", 3)
    result = protocol.campaigns(problem, 4, 3, others=False).result
    rules = {
        ("price", RULES["price"][25]): LookAhead(price=RULES["price"][25]),
        ("eps", 0.05): LookAhead(eps=0.05),
        ("paper's rule", 0.01): Stopper(0.01),
    }
    for (rule, setting), criterion in rules.items():
        labels, unused = [], []
        for run in range(4):
            rows = result.pool(run)
            X, y = problem.X[rows], problem.y[rows]
            alone = learn(X, y, gp=problem.gp, stopper=criterion, initial=[0])
            left = np.setdiff1d(np.arange(len(problem.y)), rows)
            order = alone.resume().indices
            losses = expected_losses(
                problem.gp, X[order], y[order], problem.X[left], problem.y[left]
            )
            labels.append(alone.n_labels / 50)
            at = losses[alone.n_labels - 1]
            unused.append((at - losses[-1]) / (losses[0] - losses[-1]))
        row = next(one for one in found.curves if one[:2] == (rule, setting))
        assert row.labels == pytest.approx(np.mean(labels), rel=1e-12)
        assert row.unused == pytest.approx(np.mean(unused), rel=1e-7)


def test_the_whole_pool_leaves_nothing(found):
    fixed = [one for one in found.curves if one.rule == "fixed fraction"]
    assert (fixed[-1].labels, fixed[-1].unused) == (1.0, 0.0)
    assert fixed[0].unused == 1.0  # one label: half of a hundredth of 50, rounded up


def test_reading_a_curve():
    made = Tradeoff([Curve("price", 1.0, 0.7, 0.1), Curve("price", 2.0, 0.3, 0.5)], [], [])
    assert made.unused_at("price", 0.5) == pytest.approx(0.3)
    assert np.isnan(made.unused_at("price", 0.8))
    with pytest.raises(ValueError, match="`rule` must be one of"):
        made.curve("best")
    with pytest.raises(ValueError, match=r"`labels` must be in \(0, 1\), got 1"):
        made.unused_at("price", 1.0)


def test_the_command(tmp_path, capsys):
    arguments = ["--datasets", "artificial", "--runs", "2", "--quiet", "--out", str(tmp_path)]
    assert main(["reproduce", "lookahead", *arguments]) == 0
    said = capsys.readouterr().out
    for text in ("fixed fraction", "LookAhead(paper=True)", "fall of the loss over its forecast"):
        assert text in said
    with open(tmp_path / "lookahead.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["rule"] for row in rows} == set(RULES)
    assert (tmp_path / "lookahead.png").read_bytes().startswith(b"\x89PNG")


def test_bad_input():
    with pytest.raises(ValueError, match="`datasets` must be one of"):
        tradeoff(["iris"])
    with pytest.raises(ValueError, match="`runs` must be at least 1, got 0"):
        tradeoff(runs=0)
