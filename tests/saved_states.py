"""Something of each kind that can be saved, its state, and what reads that again."""

import copy
import json

import numpy as np

from fastal import ActiveLearner, FixedBudget, GaussianProcess, MinLabels, Stopper
from fastal.criteria import ConfidenceDrop, ConfidenceGradient
from fastal.criteria.experiments import CrossValidation, GroundTruth, MaxVariance, PACBayes
from fastal.criteria.predictions import (
    ErrorStability,
    MaxUncertainty,
    OverallUncertainty,
    StabilizingPredictions,
)
from fastal.models import LaplaceClassifier
from fastal.stopping.criterion import Criterion

POOL = np.random.default_rng(0).uniform(0, 3, (8, 2))


def process():
    gp = GaussianProcess([1.0, 2.0], 0.1)
    gp.add_batch(POOL[:3], [0.5, -0.2, 0.1])
    return gp


def classifier():
    model = LaplaceClassifier(1.0)
    for x, y in zip(POOL[:4], (1, -1, 1, 1), strict=True):
        model.add(x, y)
    return model


def learner(gp, stopper, labels):
    active = ActiveLearner(POOL, gp=gp, criterion=stopper, initial=1, seed=0)
    for label in labels:
        active.ask()
        active.tell(label)
    active.ask()
    return active


def predictions():
    criterion = StabilizingPredictions()
    for labels in ([0, 1, 1], [0, 1, 0], [0, 1, 0]):
        criterion.update(labels)
    return criterion


def pushed(criterion, values=(0.3, 0.1, 0.2)):
    criterion.extend(values)
    return criterion


def learner_from(state):
    return ActiveLearner.from_dict(state, POOL)


MAKERS = {
    "Stopper": lambda: pushed(Stopper(0.01, window=20, min_bounds=5, patience=2, noise=0.1)),
    "Stopper sequential": lambda: pushed(Stopper(0.01, sequential=True, horizon=50)),
    "Stopper gp": lambda: Stopper(gp=process()),
    "Stopper classifier": lambda: Stopper(gp=classifier()),
    "FixedBudget": lambda: pushed(FixedBudget(5)),
    "MinLabels": lambda: pushed(MinLabels(2)),
    "MaxVariance": lambda: pushed(MaxVariance(0.2)),
    "CrossValidation": lambda: pushed(CrossValidation(0.2)),
    "PACBayes": lambda: pushed(PACBayes(0.2, 5.0)),
    "GroundTruth": lambda: pushed(GroundTruth(POOL, np.zeros(8), 0.2)),
    "StabilizingPredictions": predictions,
    "OverallUncertainty": lambda: pushed(OverallUncertainty(0.2)),
    "MaxUncertainty": lambda: pushed(MaxUncertainty(0.2)),
    "ConfidenceGradient": lambda: pushed(ConfidenceGradient(0.2, 2)),
    "ConfidenceDrop": lambda: pushed(ConfidenceDrop(2)),
    "ErrorStability": lambda: pushed(ErrorStability(0.2)),
    "AnyOf and AllOf": lambda: (pushed(Stopper()) | FixedBudget(9)) & MinLabels(3),
    "GaussianProcess": process,
    "LaplaceClassifier": classifier,
    "ActiveLearner": lambda: learner(GaussianProcess(1.0, 0.1), Stopper(), (0.5, -0.2, 0.1)),
    "ActiveLearner classes": lambda: learner(LaplaceClassifier(), FixedBudget(6), (1, -1, 1)),
}
READERS = {
    "GaussianProcess": GaussianProcess.from_dict,
    "LaplaceClassifier": LaplaceClassifier.from_dict,
    "ActiveLearner": learner_from,
}
STATES: dict[str, dict] = {}


def good_state(name):
    if name not in STATES:
        STATES[name] = json.loads(json.dumps(MAKERS[name]().to_dict()))
    return copy.deepcopy(STATES[name])


def reader(name):
    return READERS.get(name.partition(" ")[0], Criterion.from_dict)


def places(value, path=()):
    """All paths into a nested state, its own first."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))
        else:
            yield (*path, key)
