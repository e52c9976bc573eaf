"""Ten classes: handwritten digits of scikit-learn, until labels no longer move the model.

The pool's least certain digit is labelled next; the bound of a label is the divergence of the
posteriors of the weights before and after it.
"""

from sklearn.datasets import load_digits

from fastal import BayesianLogistic, StillToCome, learn

X, y = load_digits(return_X_y=True)
# every second pixel in each direction, between 0 and 1: 16 features
X = X.reshape(-1, 8, 8)[:, ::2, ::2].reshape(-1, 16) / 16
pool, rest = slice(0, 120), slice(120, 600)

model = BayesianLogistic(n_features=16, n_classes=10, prior=4.0)
run = learn(
    X[pool], y[pool], gp=model, stopper=StillToCome(0.2), initial=10, acquisition="margin", seed=0
)

print(run.verdict)
print(f"stopped: {run.stopped}, {run.n_labels} of 120 labels")
print(f"of 480 other digits {(run.gp.predict(X[rest]) == y[rest]).mean():.0%} are read correctly")
