"""A loop with scikit-learn that fits its kernel after every label: one call says when to stop."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from fastal import MovementBelow

# scikit-learn warns of a fit that ends at a bound of its search. fastal sees that too: such a fit
# confirms nothing.
warnings.simplefilter("ignore", ConvergenceWarning)

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (60, 1))
y = 20 + 5 * np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(60)

kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1, noise_level_bounds=(1e-3, 10.0))
model = GaussianProcessRegressor(kernel, alpha=0.0, normalize_y=True)
rule = MovementBelow(0.05)
labelled = list(range(5))

# All bounds anew after each fit; two fits must agree.
while not rule.after_fit(model.fit(X[labelled], y[labelled]), pool=X, initial=5):
    std = model.predict(X, return_std=True)[1]
    std[labelled] = 0.0
    labelled.append(int(std.argmax()))  # here a person or an experiment would give its label

print(f"stopped: {rule.stopped}, with {len(labelled)} of {len(X)} labels")
print(rule.verdict)
print(f"fitted: {model.kernel_}")
rest = [i for i in range(len(X)) if i not in labelled]
error = np.sqrt(np.mean((model.predict(X[rest]) - y[rest]) ** 2))
print(f"root mean square error on the others: {error:.2f} (the noise alone: 0.50)")
