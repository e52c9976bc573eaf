"""Names of the paper's data sets and criteria; standard library only."""

from __future__ import annotations

DATASETS = ("artificial", "airfoil", "power_plant", "protein", "concrete", "yacht")

CRITERIA = ("ground_truth", "proposed", "pac_bayes", "cross_validation", "max_variance")
