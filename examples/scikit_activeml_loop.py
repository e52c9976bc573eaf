"""A loop with scikit-activeml: its query strategy chooses, its wrapper fits, fastal stops."""

import numpy as np
from skactiveml.pool import GreedySamplingX
from skactiveml.regressor import SklearnRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from fastal import Stopper
from fastal.datasets import artificial

X, truth = artificial(n=100, seed=3)
y = np.full(len(X), np.nan)  # nan: no label yet
y[0] = truth[0]

model = SklearnRegressor(GaussianProcessRegressor(RBF(1.5) + WhiteKernel(0.05**2), optimizer=None))
strategy = GreedySamplingX(random_state=0)
stopper, rows = Stopper(), [0]  # rows in the order of their labels
while np.isnan(y).any():
    model.fit(X, y)
    if stopper.after_fit(model, order=np.argsort(np.argsort(rows))):
        break
    new = strategy.query(X, y, batch_size=2)
    y[new] = truth[new]  # here a person or an experiment would answer
    rows.extend(new)

print(f"stopped: {stopper.stopped}, with {np.sum(~np.isnan(y))} of {len(X)} labels")
print(stopper.verdict)
