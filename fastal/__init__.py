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
    "ActiveLearner": "learner",
    "Comparison": "comparison",
    "CrossValidation": "criteria",
    "ErrorStability": "criteria",
    "FixedBudget": "criteria",
    "Forecast": "lookahead",
    "GaussianProcess": "gp",
    "GroundTruth": "criteria",
    "LaplaceClassifier": "classifier",
    "MaxUncertainty": "criteria",
    "MaxVariance": "criteria",
    "LookAhead": "lookahead",
    "MinLabels": "criteria",
    "OverallUncertainty": "criteria",
    "PACBayes": "criteria",
    "Run": "learner",
    "RunsDistribution": "runs",
    "RunsTestResult": "runs",
    "Simulation": "simulation",
    "StabilizingPredictions": "criteria",
    "Stopper": "stopper",
    "StopperBatch": "stopper",
    "Verdict": "stopper",
    "bound_constant": "bound",
    "choose_method": "runs",
    "compare": "comparison",
    "false_stop_probability": "sequential",
    "forecast": "lookahead",
    "gaussian_kl": "bound",
    "gp_kl": "bound",
    "learn": "learner",
    "runs_test": "runs",
    "show_versions": "_versions",
    "simulate": "simulation",
    "stopping_time": "stopper",
}
_MODULES = (
    "adapters",
    "bound",
    "classifier",
    "comparison",
    "criteria",
    "datasets",
    "gp",
    "jit",
    "learner",
    "paper",
    "lookahead",
    "reference",
    "runs",
    "sequential",
    "simulation",
    "stability",
    "stopper",
    "tradeoff",
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
