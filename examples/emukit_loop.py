"""Emukit designs an experiment; fastal ends it when labels no longer move its model."""

from typing import Any

import GPy
import numpy as np
from emukit.core import ContinuousParameter, ParameterSpace
from emukit.core.loop import FixedIterationsStoppingCondition
from emukit.experimental_design import ExperimentalDesignLoop
from emukit.model_wrappers import GPyModelWrapper

from fastal import MovementBelow
from fastal.adapters.loops.emukit import stopping_condition

np.random.seed(0)
rng = np.random.default_rng(0)


def f(x: Any) -> Any:
    return np.sin(2 * x) + 0.1 * rng.standard_normal(x.shape)


X = rng.uniform(-2, 2, (5, 1))
model = GPy.models.GPRegression(X, f(X), GPy.kern.RBF(1), noise_var=0.01)
wrapper = GPyModelWrapper(model)
loop = ExperimentalDesignLoop(ParameterSpace([ContinuousParameter("x", -2, 2)]), wrapper)
rule = MovementBelow(0.2, horizon=40)
loop.run_loop(
    f, stopping_condition(rule, wrapper, initial=5) | FixedIterationsStoppingCondition(40)
)
print(f"stopped: {rule.stopped}, with {len(loop.loop_state.X)} labels")
print(rule.verdict)
