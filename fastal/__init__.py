"""fastal tells an active-learning loop when to stop.

After every label it evaluates a deterministic upper bound on how far the expected generalisation
error can still have moved, keeps an exact Wald-Wolfowitz runs test on the sequence of bounds, and
answers: go on, or stop.

The public names are imported when they are first used, so that ``import fastal`` costs nothing.
"""

import importlib

# Public name -> the module that defines it. No module carries the name of a public function:
# importing it would put the module where the function belongs.
_HOME = {
    "ActiveLearner": "learning.learner",
    "Criterion": "stopping.criterion",
    "FixedBudget": "stopping.count",
    "GaussianProcess": "models.gp",
    "MinLabels": "stopping.count",
    "MovementBelow": "stopping.still",
    "Stopper": "stopping.stopper",
    "Streams": "stopping.batch",
    "bounds_of": "adapters.all_bounds",
    "get_include": "_versions",
    "gp_bounds": "bound",
    "gp_kl": "bound",
    "learn": "learning.run",
    "runs_test": "runs.exact",
    "show_versions": "_versions",
    "simulate": "simulation.campaigns",
    "stopping_time": "stopping.batch",
}
# What was here once -> where it is now, or what is there instead.
_MOVED = {
    "ConfidenceDrop": "criteria.ConfidenceDrop",
    "ConfidenceGradient": "criteria.ConfidenceGradient",
    "CrossValidation": "criteria.CrossValidation",
    "ErrorStability": "criteria.ErrorStability",
    "GroundTruth": "criteria.GroundTruth",
    "LaplaceClassifier": "models.LaplaceClassifier",
    "MaxUncertainty": "criteria.MaxUncertainty",
    "MaxVariance": "criteria.MaxVariance",
    "OverallUncertainty": "criteria.OverallUncertainty",
    "PACBayes": "criteria.PACBayes",
    "Run": "learning.Run",
    "RunsDistribution": "runs.RunsDistribution",
    "RunsTestResult": "runs.RunsTestResult",
    "Simulation": "simulation.Simulation",
    "StabilizingPredictions": "criteria.StabilizingPredictions",
    "StillToCome": "MovementBelow",
    "StopperBatch": "Streams",
    "Verdict": "stopping.Verdict",
    "bound_constant": "bound.bound_constant",
    "choose_method": "runs.choose_method",
    "false_stop_probability": "runs.false_stop_probability",
    "gaussian_kl": "bound.gaussian_kl",
    "movement_left": "runs.movement_left",
    "still_to_come": "runs.movement_left",
}
_MODULES = (
    "adapters",
    "bound",
    "criteria",
    "datasets",
    "jit",
    "learning",
    "models",
    "paper",
    "plotting",
    "runs",
    "simulation",
    "stopping",
)

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("fastal")
    elif name in _HOME:
        value = getattr(importlib.import_module(f"fastal.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"fastal.{name}")
    else:
        now = f": it is fastal.{_MOVED[name]} now" if name in _MOVED else ""
        raise AttributeError(f"module 'fastal' has no attribute {name!r}{now}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
