"""Regression with fastal's own Gaussian process: label by maximum variance until it says stop.

A function stands in for the experiment that would give the labels.
"""

import numpy as np
from numpy.typing import NDArray

from fastal import GaussianProcess, Stopper, learn
from fastal.datasets import artificial, artificial_mean

X, y = artificial(n=200, seed=1)  # noise of standard deviation 0.05
rng = np.random.default_rng(1)


def experiment(index: int, x: NDArray[np.float64]) -> float:
    """Measure the label of one point: this is what costs."""
    return float(artificial_mean(x[0]) + 0.05 * rng.standard_normal())


gp = GaussianProcess(noise=0.05**2).fit_hyperparameters(X[100:], y[100:])  # earlier data
run = learn(X[:100], experiment, gp=gp, criterion=Stopper(), seed=0, test=(X[100:], y[100:]))

print(gp)
print(f"stopped: {run.stopped}, with {run.n_labels} of 100 labels ({run.savings:.0%} saved)")
print(run.verdict)
assert run.errors is not None  # there is a test set
print(f"expected loss on a test set: {run.errors[0]:.2f} at first, {run.errors[-1]:.2f} at the end")
