"""States that 0.1.0 wrote: read with the same answers, or refused by kind and version.

The files are what `states_0_1_0/make_states.py` wrote with the code of 0.1.0, answers included.
"""

import copy
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from fastal import ActiveLearner, Criterion, GaussianProcess, Stopper, simulate
from fastal.criteria import ErrorStability, StabilizingPredictions
from fastal.models import LaplaceClassifier

FILES = {path.stem: path for path in Path(__file__).with_name("states_0_1_0").glob("*.json")}
MODELS = {"GaussianProcess": GaussianProcess, "LaplaceClassifier": LaplaceClassifier}
OTHERS = {"active_learner", "gaussian_process", "laplace_classifier", "run"}
CRITERIA = sorted(name for name in FILES if not name.startswith((*OTHERS, "simulation")))


def content_of(name):
    return json.loads(FILES[name].read_text("utf-8"))


def members(criterion):
    return [one for member in getattr(criterion, "members", ()) for one in members(member)] or [
        criterion
    ]


def test_there_is_a_state_of_every_kind():
    kinds = {content_of(name)["state"]["kind"] for name in FILES}
    assert kinds == {
        "ActiveLearner", "AllOf", "AnyOf", "CrossValidation", "ErrorStability", "FixedBudget",
        "GaussianProcess", "GroundTruth", "LaplaceClassifier", "MaxUncertainty", "MaxVariance",
        "MinLabels", "OverallUncertainty", "PACBayes", "Run", "StabilizingPredictions", "Stopper",
        "store",
    }  # fmt: skip
    assert len(CRITERIA) == 19


@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_go_on_as_they_did(name):
    content = content_of(name)
    said, before = content["answers"], copy.deepcopy(content["state"])
    criterion = Criterion.from_dict(content["state"])
    assert content["state"] == before
    assert criterion.stopped_at == said["stopped_at"]
    if said["p_value"] is not None:
        assert criterion.p_value == pytest.approx(said["p_value"], rel=1e-12)
    again = Criterion.from_dict(json.loads(json.dumps(criterion.to_dict())))
    for one in (criterion, again):  # of 0.1.0, and as this version saves it
        if isinstance(one, StabilizingPredictions):
            one.update([0, 1, 0, 0])
        elif isinstance(one, ErrorStability):
            one.extend([0.29, 0.28])
        else:
            one.extend(content["later"])
        assert one.stopped_at == said["stopped_at_later"]
    # The letter of the paper: 0.1.0 had no other rule.
    stoppers = [one for one in members(criterion) if isinstance(one, Stopper)]
    assert all(one.fall is False for one in stoppers)
    assert bool(stoppers) == ("Stopper" in json.dumps(content["state"]))


@pytest.mark.parametrize("name", ["gaussian_process", "laplace_classifier"])
def test_models_say_what_they_said(name):
    content = content_of(name)
    state, said, inputs = content["state"], content["answers"], np.array(content["inputs"])
    model = MODELS[state["kind"]].from_dict(state)
    # last digits: kernels may sum in another order than those of 0.1.0
    np.testing.assert_allclose(model.predict(inputs), said["predictions"], rtol=1e-9)
    likelihood = said["log_marginal_likelihood"]
    assert model.log_marginal_likelihood() == pytest.approx(likelihood, rel=1e-9)
    assert model.add(inputs[0], 1.0) == pytest.approx(said["bound"], rel=1e-8)


@pytest.mark.parametrize(
    "name", ["active_learner", "active_learner_budget", "active_learner_classes"]
)
def test_learners_choose_and_stop_as_they_did(name):
    content = content_of(name)
    said, y = content["answers"], content["labels"]
    learner = ActiveLearner.from_dict(content["state"], content["pool"])
    while not learner.finished:
        learner.tell(y[learner.ask()])
    run = learner.run()
    assert run.indices.tolist() == said["indices"]
    assert run.stopped_at == said["stopped_at"]
    np.testing.assert_allclose(run.bounds, said["bounds"], rtol=1e-7)


def test_a_run_is_a_record_whose_parts_load():
    state = content_of("run")["state"]
    stopper = Stopper.from_dict(state["stopper"])
    assert stopper.bounds.tolist() == state["bounds"]
    assert (stopper.stopped_at is not None) == state["stopped"]
    assert GaussianProcess.from_dict(state["gp"]).n_labels == 0
    with pytest.raises(ValueError, match="`state` must describe a Criterion, got kind 'Run'"):
        Criterion.from_dict(state)


def test_a_store_is_refused_by_its_format(tmp_path):
    content = content_of("simulation_store")
    path = tmp_path / "store"
    with sqlite3.connect(path) as file:
        file.executescript("\n".join(content["state"]["sql"]))
        file.execute(f"PRAGMA application_id={content['state']['application_id']}")
    file.close()
    before = path.read_bytes()
    X, y = np.array(content["pool"]), np.array(content["labels"])
    words = r"has format 2, this version of fastal reads and writes format 3: use another file"
    with pytest.raises(ValueError, match=words):
        simulate(X, y, gp=GaussianProcess(1.5, 0.05), n_runs=2, pool_size=20, store=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", sorted(set(FILES) - {"run", "simulation_store"}))
def test_a_version_of_another_day_is_refused_by_kind_and_version(name):
    content = content_of(name)
    state = content["state"] | {"version": 7}
    kind = state["kind"]
    readers = {**MODELS, "ActiveLearner": ActiveLearner}
    pool = [content["pool"]] if kind == "ActiveLearner" else []
    with pytest.raises(ValueError, match=rf"(?s)(?=.*{kind})(?=.*7)(?=.*version)"):
        readers.get(kind, Criterion).from_dict(state, *pool)
