"""Predictions of labels from all the others."""

import numpy as np
import pytest

from fastal import GaussianProcess, MovementBelow, learn
from fastal.criteria import LeaveOneOut, leave_one_out
from fastal.models import LaplaceClassifier

RNG = np.random.default_rng(11)


def labelled(n, kernel="rbf", *, noise=0.01, own_noise=None):
    X = RNG.uniform(-2, 2, (n, 2))
    y = 3 + np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(n)
    gp = GaussianProcess([1.5, 3.0], noise, amplitude=2.0, mean=3.0, kernel=kernel)
    given = {} if own_noise is None else {"noise": own_noise}
    gp.add_batch(X, y, **given)
    return gp, X, y


def refitted(gp, X, y, noise):
    """Mean and variance of each label from a process without it."""
    means, variances = [], []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        without = gp.copy()
        without.rewind(0)
        if others.any():
            without.add_batch(X[others], y[others], noise=noise[others])
        mean, var = without.predict(X[i : i + 1], return_var=True)
        means.append(mean.item())
        variances.append(var.item() + noise[i])
    return np.array(means), np.array(variances)


@pytest.mark.parametrize("kernel", ["rbf", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("n", [1, 2, 5, 80])
def test_against_processes_without_each_label(kernel, n):
    gp, X, y = labelled(n, kernel)
    found = leave_one_out(gp)
    mean, var = refitted(gp, X, y, np.full(n, 0.01))
    np.testing.assert_array_equal(found.y, y)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.var, var, rtol=1e-8)


def test_labels_with_noise_of_their_own():
    noise = RNG.uniform(0.01, 1.0, 30)
    gp, X, y = labelled(30, own_noise=noise)
    found = leave_one_out(gp)
    mean, var = refitted(gp, X, y, noise)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.var, var, rtol=1e-8)


def test_a_run_with_refits():
    X = RNG.uniform(-3, 3, (40, 2))
    y = 1e4 * (5 + np.sin(X[:, 0])) + RNG.standard_normal(40)
    run = learn(X, y, criterion=MovementBelow(0.05), max_labels=25, seed=0)
    found = leave_one_out(run.gp)
    noise = np.full(run.n_labels, run.gp.noise)
    mean, var = refitted(run.gp, X[run.indices], run.labels, noise)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.var, var, rtol=1e-8)


def test_in_two_numbers():
    told = LeaveOneOut(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0, 5.0]), np.ones(4))
    assert told.rmse == 1.0  # sqrt(2^2 / 4)
    assert told.share_within() == 1.0
    assert told.share_within(1.0) == 0.75


def test_a_model_that_suits_covers_its_labels():
    X = np.linspace(-10, 10, 400)
    gp = GaussianProcess(1.0, 0.04)
    K = np.exp(-0.5 * (X[:, None] - X) ** 2)
    y = RNG.multivariate_normal(np.zeros(400), K + 0.04 * np.eye(400))
    gp.add_batch(X, y)
    assert 0.91 < leave_one_out(gp).share_within() < 0.99  # 0.954 +- 0.01 where independent


def test_wrong_use():
    with pytest.raises(ValueError, match="`gp` must have at least one label, got 0"):
        leave_one_out(GaussianProcess(1.0, 0.1))
    with pytest.raises(TypeError, match="`gp` must be a GaussianProcess, got LaplaceClassifier"):
        leave_one_out(LaplaceClassifier(1.0))
