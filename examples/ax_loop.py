"""Ax optimises; a global stopping strategy of fastal ends it when labels no longer move its model.

That the optimum is found is another question, which this does not answer.
"""

import logging

import numpy as np
from ax.exceptions.core import OptimizationShouldStop
from ax.service.ax_client import AxClient, ObjectiveProperties

from fastal import MovementBelow
from fastal.adapters.loops.ax import global_stopping_strategy

logging.disable(logging.WARNING)
rng = np.random.default_rng(0)
client = AxClient(random_seed=0, verbose_logging=False)
client.create_experiment(
    parameters=[{"name": "x", "type": "range", "bounds": [-2.0, 2.0]}],
    objectives={"y": ObjectiveProperties(minimize=True)},
)
rule = MovementBelow(0.3, horizon=30)
client.global_stopping_strategy = global_stopping_strategy(rule, client, initial=5)
for _ in range(35):
    try:
        point, index = client.get_next_trial()
    except OptimizationShouldStop:
        break
    noisy = np.sin(2 * point["x"]) + 0.1 * rng.standard_normal()
    client.complete_trial(trial_index=index, raw_data=float(noisy))
print(f"stopped: {rule.stopped}, with {len(client.experiment.trials)} trials")
print(rule.verdict)
