"""Names of the data sets, simulators and criteria of the studies; standard library only."""

from __future__ import annotations

DATASETS = ("artificial", "airfoil", "power_plant", "protein", "concrete", "yacht")

SIMULATORS = ("branin", "ishigami", "friedman1")

CRITERIA = ("ground_truth", "proposed", "pac_bayes", "cross_validation", "max_variance")
