"""A loop with scikit-learn: one line, before each fit, says when to stop."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from fastal import Stopper

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (200, 2))
y = np.sin(X[:, 0]) + np.cos(X[:, 1]) + 0.1 * rng.standard_normal(200)
labelled = [0]

# Bounds are comparable under one kernel: take it from earlier data, and keep it (optimizer=None).
model = GaussianProcessRegressor(RBF(1.5) + WhiteKernel(0.1**2), optimizer=None)
stopper = Stopper()
while len(labelled) < len(X):
    model.fit(X[labelled], y[labelled])
    _, std = model.predict(X, return_std=True)
    std[labelled] = -np.inf
    new = int(std.argmax())  # here a person or an experiment would give y[new]
    labelled.append(new)
    if stopper.update_from(model, X[new], y[new]):
        break

print(f"stopped: {stopper.stopped}, with {len(labelled)} of {len(X)} labels")
print(stopper.verdict)
rest = [i for i in range(len(X)) if i not in labelled]
error = np.sqrt(np.mean((model.predict(X[rest]) - y[rest]) ** 2))
print(f"root mean square error on the others: {error:.2f} (the noise alone: 0.10)")
