"""Stopper.trace: what the test found after each bound."""

import numpy as np
import pytest

from fastal import GaussianProcess, Stopper, learn


@pytest.mark.parametrize(
    "settings",
    [{}, {"window": 10}, {"sequential": True, "alpha": 0.05}, {"noise": 0.1, "patience": 2}],
)
def test_trace_replays_what_each_push_found(settings):
    stopper = Stopper(**settings)
    bounds = np.concatenate((np.full(20, 5.0), np.full(20, 1.0))) + np.sin(np.arange(40.0))
    found = []
    for bound in bounds:
        stopper.push(bound)
        found.append((stopper.p_value, stopper.median))
    p_values, medians, levels = stopper.trace()
    assert list(zip(p_values.tolist(), medians.tolist(), strict=True)) == found
    level = stopper.verdict.alpha
    assert levels[stopper.verdict.n - 1] == level
    assert len(stopper) == 40
    # The first rejection of the trace is the stop, if one rejection suffices.
    if stopper.stopped and stopper.patience == 1:
        assert 1 + int(np.argmax(p_values <= levels)) == stopper.stopped_at


def test_trace_of_no_bounds_is_empty():
    assert [len(values) for values in Stopper().trace()] == [0, 0, 0]


def test_a_run_takes_its_p_values_from_it():
    X = np.linspace(0, 10, 30)
    run = learn(X, np.sin(X), gp=GaussianProcess(1.0, 0.01), criterion=Stopper(window=12), seed=0)
    assert run.p_values.tolist() == run.criterion.trace().p_values.tolist()


def test_a_run_knows_its_model_without_labels():
    X, gp = np.linspace(0, 10, 30), GaussianProcess(1.0, 0.01)
    run = learn(X, np.sin(X), gp=gp, criterion=Stopper(), seed=0)
    assert (run.prior.n_labels, run.gp.n_labels) == (0, run.n_labels)
    assert run.prior.to_dict() == gp.to_dict()
