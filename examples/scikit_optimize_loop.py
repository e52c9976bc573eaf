"""scikit-optimize minimises; a callback of fastal ends it when labels no longer move its model.

That the optimum is found is another question, which this does not answer.
"""

import numpy as np
from skopt import gp_minimize

from fastal import MovementBelow
from fastal.adapters.loops.skopt import callback

rng = np.random.default_rng(0)


def objective(point: list[float]) -> float:
    x, z = point
    return float(np.sin(3 * x) + 0.5 * z**2 + 0.1 * rng.standard_normal())


rule = MovementBelow(0.2, horizon=50)
result = gp_minimize(
    objective,
    [(-2.0, 2.0), (-1.0, 3.0)],
    n_calls=60,
    n_initial_points=10,
    callback=callback(rule, initial=10),
    random_state=0,
)
print(f"stopped: {rule.stopped}, after {len(result.x_iters)} of 60 calls, best {result.fun:.2f}")
print(rule.verdict)
