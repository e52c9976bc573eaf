"""Something of each kind that can be saved, its state, and what reads that again."""

import copy
import json
import math
import types

import numpy as np

from fastal import (
    ActiveLearner,
    Criterion,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
)
from fastal.criteria import (
    ClassificationChange,
    ConfidenceDrop,
    ConfidenceGradient,
    CrossValidation,
    DeltaFScore,
    ErrorStability,
    GroundTruth,
    MaxUncertainty,
    MaxVariance,
    OverallUncertainty,
    PACBayes,
    StabilizingPredictions,
)
from fastal.models import LaplaceClassifier
from fastal.stopping import Measured

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


def refitted(criterion):
    """A fit, and bounds since."""
    criterion.set_horizon(30)
    criterion.after_fit([0.4, 0.3, 0.2])
    return pushed(criterion)


def stopped(criterion):
    criterion.set_horizon(200)
    criterion.extend([5.0, 4.0] * 6 + [1.0, 0.9] * 6)
    assert criterion.stopped
    return criterion


def stopped_before_a_fit(criterion):
    stopped(criterion).after_fit([2.0] * 26)
    return criterion


class OwnRule(Criterion):
    """A rule of the user's own, in Python."""

    def __init__(self, level=0.15):
        if not isinstance(level, int | float):
            raise TypeError(f"`level` must be a number, got {level!r}")
        super().__init__(level=level)

    def says_stop(self, bounds):
        return len(bounds) >= 3 and bounds[-1].item() < self.level


class OwnMeasure(Measured):
    """A measure of the user's own."""

    def __init__(self, threshold=0.15, every=2):
        math.isfinite(threshold)
        super().__init__(threshold=threshold, every=every)

    def measure(self, campaign):
        return campaign.value


def seen(criterion):
    """A criterion, perhaps of bounds and measures, that has seen labels of a campaign."""
    values = (math.nan, 0.3, 0.2, 0.1, 0.1)
    for r in values:
        criterion.see(types.SimpleNamespace(value=r, largest_variance=r), 0.5)
    return criterion


def update(criterion, *values):
    for value in values:
        criterion.update(value)
    return criterion


MAKERS = {
    "Stopper": lambda: pushed(Stopper(0.01, method="exact", fall=False)),
    "Stopper sequential": lambda: pushed(Stopper(0.01, sequential=True, horizon=50)),
    "Stopper fits": lambda: refitted(Stopper(0.01)),
    "Stopper stopped": lambda: stopped(Stopper(0.01)),
    "Stopper stopped before a fit": lambda: stopped_before_a_fit(Stopper(0.01)),
    "MovementBelow": lambda: pushed(MovementBelow(0.1, horizon=50)),
    "MovementBelow fits": lambda: refitted(MovementBelow()),
    "MovementBelow stopped": lambda: stopped(MovementBelow(0.9)),
    "FixedBudget": lambda: pushed(FixedBudget(5)),
    "MinLabels": lambda: pushed(MinLabels(2)),
    "OwnRule": lambda: pushed(OwnRule()),
    "OwnRule stopped": lambda: stopped(OwnRule(2.0)),
    "OwnMeasure": lambda: seen(OwnMeasure()),
    "MaxVariance": lambda: pushed(MaxVariance(0.2)),
    "CrossValidation": lambda: pushed(CrossValidation(0.2)),
    "PACBayes": lambda: pushed(PACBayes(0.2, 5.0)),
    "GroundTruth": lambda: pushed(GroundTruth(POOL, np.zeros(8), 0.2)),
    "StabilizingPredictions": predictions,
    "ClassificationChange": lambda: update(ClassificationChange(), [0, 1, 1], [0, 1, 0]),
    "DeltaFScore": lambda: update(DeltaFScore(0.1, 2), [0, 1, 1], [0, 1, 0], [0, 1, 0]),
    "OverallUncertainty": lambda: pushed(OverallUncertainty(0.2)),
    "MaxUncertainty": lambda: pushed(MaxUncertainty(0.2)),
    "ConfidenceGradient": lambda: pushed(ConfidenceGradient(0.2, 2)),
    "ConfidenceDrop": lambda: pushed(ConfidenceDrop(2)),
    "ErrorStability": lambda: pushed(ErrorStability(0.2)),
    "AnyOf and AllOf": lambda: pushed((Stopper() | FixedBudget(9)) & MinLabels(3)),
    "AnyOf fits": lambda: refitted((Stopper() & MinLabels(3)) | FixedBudget(9)),
    "AllOf stopped": lambda: stopped(Stopper(0.01) & MinLabels(3)),
    "AnyOf own": lambda: refitted(OwnRule() | Stopper() | FixedBudget(9)),
    "AnyOf own stopped": lambda: stopped_before_a_fit(OwnRule(2.0) | (Stopper() & MinLabels(2))),
    "AllOf measured": lambda: seen((Stopper() | MinLabels(3)) & MaxVariance(0.15) & OwnMeasure()),
    "GaussianProcess": process,
    "LaplaceClassifier": classifier,
    "ActiveLearner": lambda: learner(GaussianProcess(1.0, 0.1), Stopper(), (0.5, -0.2, 0.1)),
    "ActiveLearner classes": lambda: learner(LaplaceClassifier(), FixedBudget(6), (1, -1, 1)),
    "ActiveLearner measured": lambda: learner(
        GaussianProcess(1.0, 0.1), MovementBelow() | MaxVariance(0.01), (0.5, -0.2, 0.1)
    ),
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
