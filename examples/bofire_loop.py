"""BoFire optimises; a condition of fastal holds as long as labels move its model.

That the optimum is found is another question, which this does not answer.
"""

from typing import Any

import bofire.strategies.api as strategies
import numpy as np
import torch
from bofire.data_models.domain.api import Domain, Inputs, Outputs
from bofire.data_models.features.api import ContinuousInput, ContinuousOutput
from bofire.data_models.objectives.api import MinimizeObjective
from bofire.data_models.strategies.api import SoboStrategy

from fastal import MovementBelow
from fastal.adapters.loops.bofire import condition

torch.manual_seed(0)
rng = np.random.default_rng(0)


def measure(points: Any) -> Any:
    points = points[["x"]].copy()
    points["y"] = np.sin(2 * points["x"]) + 0.1 * rng.standard_normal(len(points))
    points["valid_y"] = 1
    return points


domain = Domain(
    inputs=Inputs(features=[ContinuousInput(key="x", bounds=(-2, 2))]),
    outputs=Outputs(features=[ContinuousOutput(key="y", objective=MinimizeObjective())]),
)
strategy = strategies.map(SoboStrategy(domain=domain, seed=0))
strategy.tell(measure(domain.inputs.sample(5, seed=0)))
rule = MovementBelow(0.3, horizon=30)
going_on = condition(rule, initial=5)
while going_on.evaluate(strategy, domain, strategy.experiments) and len(strategy.experiments) < 35:
    strategy.tell(measure(strategy.ask(1)))
print(f"stopped: {rule.stopped}, with {len(strategy.experiments)} experiments")
print(rule.verdict)
