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
    "ConfidenceDrop": "criteria.confidence",
    "ConfidenceGradient": "criteria.confidence",
    "Criterion": "stopping.criterion",
    "CrossValidation": "criteria.experiments",
    "ErrorStability": "criteria.predictions",
    "FixedBudget": "stopping.count",
    "GaussianProcess": "models.gp",
    "GroundTruth": "criteria.experiments",
    "LaplaceClassifier": "models.classifier",
    "MaxUncertainty": "criteria.predictions",
    "MaxVariance": "criteria.experiments",
    "MinLabels": "stopping.count",
    "OverallUncertainty": "criteria.predictions",
    "PACBayes": "criteria.experiments",
    "Run": "learning.run",
    "RunsDistribution": "runs",
    "RunsTestResult": "runs",
    "Simulation": "simulation.result",
    "StabilizingPredictions": "criteria.predictions",
    "MovementBelow": "stopping.still",
    "Stopper": "stopping.stopper",
    "Streams": "stopping.batch",
    "Verdict": "stopping.verdict",
    "bound_constant": "bound",
    "choose_method": "runs",
    "false_stop_probability": "stopping.sequential",
    "gaussian_kl": "bound",
    "get_include": "_versions",
    "gp_bounds": "bound",
    "gp_kl": "bound",
    "learn": "learning.run",
    "runs_test": "runs",
    "show_versions": "_versions",
    "simulate": "simulation.campaigns",
    "movement_left": "stopping.still",
    "stopping_time": "stopping.batch",
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
        raise AttributeError(f"module 'fastal' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
