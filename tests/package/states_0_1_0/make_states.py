"""Write the states beside this file, with fastal 0.1.0: ``python make_states.py FOLDER``.

0.1.0 is the last commit before the code had rooms, 53979f8. Every file holds a state as 0.1.0 wrote
it, and "answers": what 0.1.0 said when it read that state again and went on with it.
"""

import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np
from fastal._criterion import Criterion  # 0.1.0 has it there

from fastal import ActiveLearner, FixedBudget, GaussianProcess, MinLabels, Stopper, learn, simulate
from fastal.criteria import (
    CrossValidation,
    ErrorStability,
    GroundTruth,
    MaxUncertainty,
    MaxVariance,
    OverallUncertainty,
    PACBayes,
    StabilizingPredictions,
)
from fastal.models import LaplaceClassifier

RNG = np.random.default_rng(7)
POOL = RNG.uniform(0, 6, (40, 2)).round(3)
TARGET = (np.sin(POOL[:, 0]) + 0.1 * RNG.standard_normal(40)).round(3)
CLASSES = np.where(TARGET > 0, 1.0, -1.0)
NEW = RNG.uniform(0, 6, (3, 2)).round(3)
FALL = [*(9 + RNG.standard_normal(9)).round(3), *(2 + 0.5 * RNG.standard_normal(9)).round(3)]
RISE = FALL[::-1]
LATER = (1 + 0.3 * RNG.standard_normal(12)).round(3).tolist()


def process():
    gp = GaussianProcess([1.0, 2.0], 0.1, amplitude=2.0, mean=0.5, kernel="matern52")
    gp.add_batch(POOL[:6], TARGET[:6])
    gp.add(POOL[6], TARGET[6], noise=0.5)
    return gp


def classifier():
    model = LaplaceClassifier(1.5, amplitude=3.0)
    for x, y in zip(POOL[:5], CLASSES[:5], strict=True):
        model.add(x, y)
    return model


def pushed(criterion, values):
    criterion.extend(values)
    return criterion


def predictions():
    criterion = StabilizingPredictions(window=2)
    for labels in ([0, 1, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0]):
        criterion.update(labels)
    return criterion


def learner(gp, stopper, y, n=6):
    active = ActiveLearner(POOL, gp=gp, stopper=stopper, initial=2, seed=3, max_labels=30)
    for _ in range(n):
        active.tell(y[active.ask()])
    active.ask()
    return active


def observed():
    stopper = Stopper(gp=GaussianProcess(1.5, 0.05))
    for x, y in zip(POOL[:6], TARGET[:6], strict=True):
        stopper.observe(x, y)
    return stopper


CRITERIA = {
    "stopper": lambda: pushed(Stopper(0.01, min_bounds=5, patience=2, noise=0.1), FALL[:12]),
    "stopper_stopped": lambda: pushed(Stopper(), FALL),
    "stopper_rise": lambda: pushed(Stopper(), RISE),
    "stopper_window": lambda: pushed(Stopper(0.05, window=10), FALL[:8]),
    "stopper_sequential": lambda: pushed(Stopper(0.01, sequential=True, horizon=50), FALL[:12]),
    "stopper_two_sided": lambda: pushed(Stopper(alternative="two-sided", method="normal"), FALL),
    "stopper_process": observed,
    "all_of": lambda: pushed(Stopper() & MinLabels(20), FALL),
    "any_of": lambda: pushed((Stopper() & MinLabels(20)) | FixedBudget(25), FALL),
    "fixed_budget": lambda: pushed(FixedBudget(20), FALL),
    "min_labels": lambda: pushed(MinLabels(20), FALL),
    "max_variance": lambda: pushed(MaxVariance(1.0), FALL),
    "cross_validation": lambda: pushed(CrossValidation(1.0), FALL),
    "pac_bayes": lambda: pushed(PACBayes(1.0, 5.0), FALL),
    "ground_truth": lambda: pushed(GroundTruth(POOL[:4], TARGET[:4], 1.0), FALL),
    "overall_uncertainty": lambda: pushed(OverallUncertainty(1.0), FALL),
    "max_uncertainty": lambda: pushed(MaxUncertainty(1.0), FALL),
    "error_stability": lambda: pushed(ErrorStability(0.1), [0.5, 0.4, 0.3]),
    "stabilizing_predictions": predictions,
}
MODELS = {"gaussian_process": process, "laplace_classifier": classifier}
LEARNERS = {
    "active_learner": lambda: learner(GaussianProcess(1.5, 0.05), Stopper(0.01), TARGET),
    "active_learner_budget": lambda: learner(
        GaussianProcess(1.5, 0.05), Stopper() | FixedBudget(15), TARGET
    ),
    "active_learner_classes": lambda: learner(LaplaceClassifier(1.5), FixedBudget(12), CLASSES),
}


def answers_of_criterion(state):
    criterion = Criterion.from_dict(state)
    said = {"stopped_at": criterion.stopped_at, "p_value": getattr(criterion, "p_value", None)}
    if criterion.__class__ is StabilizingPredictions:
        criterion.update([0, 1, 0, 0])
    elif isinstance(criterion, ErrorStability):
        criterion.extend([0.29, 0.28])
    else:
        criterion.extend(LATER)
    return said | {"stopped_at_later": criterion.stopped_at}


def answers_of_model(state):
    kind = {"GaussianProcess": GaussianProcess, "LaplaceClassifier": LaplaceClassifier}
    model = kind[state["kind"]].from_dict(state)
    mean = model.predict(NEW)
    y = 1.0
    return {
        "predictions": np.asarray(mean).tolist(),
        "log_marginal_likelihood": float(model.log_marginal_likelihood()),
        "bound": float(model.add(NEW[0], y)),
    }


def answers_of_learner(state, y):
    active = ActiveLearner.from_dict(state, POOL)
    while not active.finished:
        active.tell(y[active.ask()])
    run = active.run()
    return {
        "indices": run.indices.tolist(),
        "bounds": run.bounds.tolist(),
        "stopped_at": run.stopped_at,
    }


def stored_simulation():
    """A store as the text that SQLite makes it anew from; its pages would be 40 times larger."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        gp = GaussianProcess(1.5, 0.05)
        simulate(POOL, TARGET, gp=gp, n_runs=2, pool_size=20, n_jobs=1, store=path)
        with sqlite3.connect(path) as file:
            application = file.execute("PRAGMA application_id").fetchone()[0]
            return {"kind": "store", "application_id": application, "sql": list(file.iterdump())}


def plain(state):
    return json.loads(json.dumps(state))


def main(folder):
    found = {}
    for name, make in CRITERIA.items():
        state = plain(make().to_dict())
        found[name] = {"state": state, "answers": answers_of_criterion(state), "later": LATER}
    for name, make in MODELS.items():
        state = plain(make().to_dict())
        found[name] = {"state": state, "answers": answers_of_model(state), "inputs": NEW.tolist()}
    for name, make in LEARNERS.items():
        state, y = plain(make().to_dict()), CLASSES if "classes" in name else TARGET
        found[name] = {
            "state": state, "answers": answers_of_learner(state, y), "pool": POOL.tolist(),
            "labels": y.tolist(),
        }  # fmt: skip
    run = learn(POOL, TARGET, gp=GaussianProcess(1.5, 0.05), stopper=Stopper(), seed=0)
    found["run"] = {"state": plain(run.to_dict()), "answers": None}
    found["simulation_store"] = {
        "state": stored_simulation(), "answers": None, "pool": POOL.tolist(),
        "labels": TARGET.tolist(),
    }  # fmt: skip
    for name, content in found.items():
        text = json.dumps(content, allow_nan=False)
        Path(folder, f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
