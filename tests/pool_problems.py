"""A pool with its labels, and what is compared of runs over it."""

import numpy as np

from fastal import FixedBudget, GaussianProcess

GP = GaussianProcess(0.8, 0.01)


def problem(n, d=3, seed=0, ties=None):
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, d))
    if ties == "grid":
        X = np.round(2 * X) / 2
    elif ties == "copies":
        X[n // 2 :] = X[: n - n // 2]
    return X, np.sin(X).sum(axis=1) + 0.1 * draws.normal(size=n)


def assert_same_run(a, b):
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_allclose(a.bounds, b.bounds, rtol=1e-9, atol=1e-9)
    assert a.stopped_at == b.stopped_at


BUDGET = {"gp": GP, "criterion": FixedBudget(150), "max_labels": 150, "seed": 1}
