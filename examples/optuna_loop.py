"""Optuna searches; a callback of fastal ends it when trials no longer move a process beside it.

That the optimum is found is another question, which this does not answer.
"""

import numpy as np
import optuna

from fastal import GaussianProcess, Stopper
from fastal.adapters.loops.optuna import callback

optuna.logging.set_verbosity(optuna.logging.ERROR)
rng = np.random.default_rng(0)


def objective(trial: optuna.Trial) -> float:
    x, z = trial.suggest_float("x", -2, 2), trial.suggest_float("z", -1, 3)
    return float(np.sin(x) + 0.5 * z + 0.1 * rng.standard_normal())


gp, stopper = GaussianProcess(lengthscale=1.5, noise=0.1**2), Stopper()
study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
study.optimize(objective, n_trials=200, callbacks=[callback(stopper, gp, ["x", "z"])])
print(f"stopped: {stopper.stopped}, after {len(study.trials)} of 200 trials")
print(stopper.verdict)
