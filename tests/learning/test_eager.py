"""The eager selection: labelled points leave their columns, and nothing else changes."""

import numpy as np
import pytest
from pool_problems import problem
from twins.learning import select

from fastal import GaussianProcess, Stopper
from fastal._core.selection_eager import VECTOR
from fastal.learning.eager import EagerSelection

KERNELS = ("rbf", "matern12", "matern32", "matern52")


def selection(X, kernel="rbf", **more):
    gp = GaussianProcess(1.3, 0.01, kernel=kernel)
    n = len(X)
    return EagerSelection(gp, gp.prior.scale("X", X), np.array([n // 2]), 1, n, **more)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [1, 2, VECTOR - 1, VECTOR, VECTOR + 1, 2 * VECTOR, 53])
def test_who_leaves_changes_no_digit(n, kernel):
    X, y = problem(n)
    leaving, staying = selection(X, kernel), selection(X, kernel, all_means=True)
    for one in (leaving, staying):
        one.run(y, n, Stopper(1e-300)._compiled(), False, 1)
    for name in ("labels", "y", "bounds", "residuals"):
        assert np.array_equal(getattr(leaving, name), getattr(staying, name)), name
    rows, others = (np.tril(one.factor_panels().reshape(-1, n)[:n]) for one in (leaving, staying))
    assert np.array_equal(rows, others)


@pytest.mark.parametrize("n", [VECTOR - 1, 2 * VECTOR + 3])
def test_one_by_one_is_all_at_once(n):
    X, y = problem(n)
    at_once, singly = selection(X), selection(X)
    at_once.run(y, n, None, False, 1)
    singly.accept(n // 2, y[n // 2])
    largest = []
    for _ in range(n - 1):
        largest.append(singly.largest_variance())
        best = singly.best()
        assert singly.unlabelled[best]
        singly.accept(best, y[best])
    assert singly.best() == -1
    assert singly.largest_variance() == 0.0
    assert np.array_equal(singly.labels, at_once.labels)
    assert np.array_equal(singly.bounds, at_once.bounds)
    assert largest == sorted(largest, reverse=True)
    twin, bounds = select(X, y, 1.3, 0.01, n, first=n // 2)
    assert at_once.labels.tolist() == twin
    np.testing.assert_allclose(at_once.bounds, bounds[1:], rtol=1e-9)


def test_equal_variances_go_to_the_lowest_index_wherever_it_stands():
    # far apart: all variances stay equal, while labels move the points from column to column
    n = 2 * VECTOR + 5
    X = 1e3 * np.arange(n)[:, None]
    one = selection(X)
    one.run(np.zeros(n), n, None, False, 1)
    rest = [i for i in range(n) if i != n // 2]
    assert one.labels.tolist() == [n // 2, *rest]


def test_a_point_that_cannot_be_measured_is_passed_over():
    n = VECTOR + 2
    X, y = problem(n)
    one = selection(X)
    one.skip(3)
    one.run(y, n - 1, None, False, 1)
    assert sorted(one.labels.tolist()) == [i for i in range(n) if i != 3]
    assert one.best() == -1
    one.accept(3, y[3])  # it could be measured after all
    assert one.labels[-1] == 3


@pytest.mark.parametrize("all_means", [False, True])
def test_a_frozen_one_stays(all_means):
    n = 2 * VECTOR + 3
    X, y = problem(n)
    one = selection(X, all_means=all_means)
    one.run(y, 10, None, False, 1)
    kept = one.frozen()
    one.run(y, 20, None, False, 1)
    kept.run(y, n, None, False, 1)
    one.run(y, n, None, False, 1)
    whole = selection(X)
    whole.run(y, n, None, False, 1)
    for other in (one, kept):
        assert np.array_equal(other.labels, whole.labels)
        assert np.array_equal(other.bounds, whole.bounds)


def test_means_of_all_points_only_where_they_are_kept():
    X, y = problem(30)
    one = selection(X)
    one.accept(15, y[15])
    with pytest.raises(TypeError, match="means of all points"):
        one.posterior()
    other = selection(X, all_means=True)
    other.run(y, 12, None, False, 1)
    gp = GaussianProcess(1.3, 0.01)
    gp.add_batch(X[other.labels], y[other.labels])
    mean, var = gp.predict(X, return_var=True)
    assert np.allclose(other.posterior()[0], mean, rtol=1e-10, atol=1e-12)
    assert np.allclose(other.posterior()[1], var, rtol=1e-8, atol=1e-12)
