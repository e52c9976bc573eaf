"""Errors on large test sets: by panels, as by other ways, whatever the blocks and the threads."""

import math

import numpy as np
import pytest

from fastal import FixedBudget, GaussianProcess, learn
from fastal._core import error_curves, selection_lazy
from fastal._core.chunks import CHUNK
from fastal.learning import errors, gaussian
from fastal.learning.eager import EagerSelection
from fastal.learning.lazy import LazySelection

JIT = hasattr(selection_lazy.run, "py_func")
ROWS, PANEL = selection_lazy.ROWS, selection_lazy.PANEL
LABELS = [1, PANEL - 1, PANEL, PANEL + 1, CHUNK, CHUNK + PANEL + 3] if JIT else [1, PANEL + 1]


def data(n, d=2, seed=0):
    draws = np.random.default_rng(seed)
    Z = draws.normal(size=(d, n))
    return Z, np.sin(Z).sum(axis=0) + 0.1 * draws.normal(size=n)


def labelled(t, kind=EagerSelection):
    Z, y = data(t + 20)
    gp = GaussianProcess(1.0, 0.05, amplitude=1.5, mean=0.3)
    selection = kind(gp, Z, np.array([0]), 1, t)
    selection.run(y, t, None, True, 1)
    return selection


@pytest.mark.parametrize("kind", [EagerSelection, LazySelection])
@pytest.mark.parametrize("t", LABELS)
def test_panels_give_what_few_rows_are_given(t, kind):
    selection = labelled(t, kind)
    for m in (1, ROWS - 1, ROWS, ROWS + 1, gaussian.SHARE + 7) if JIT else (1, ROWS + 1):
        Z, y = data(m, seed=1)
        for found, expected in zip(
            selection.error_sums(Z, y, 1), selection._few_error_sums(Z, y, 1), strict=True
        ):
            assert found.shape == (t,)
            # a single error may be next to zero: what counts is the rounding of y and of t sums
            absolute = 4 * t * np.finfo(float).eps if m == 1 else 0.0
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=absolute)


@pytest.mark.parametrize("t", LABELS)
def test_panels_give_what_the_posterior_says(t):
    selection = labelled(t)
    gp = selection.gp.copy(quiet=True)
    Z, y = data(ROWS + 5, seed=2)
    totals, squares = selection.error_sums(Z, y, 1)
    since = max(1, t // 2)
    densities, same = selection.error_sums(Z, y, 1, predictive=True, since=since)
    np.testing.assert_array_equal(same[since - 1 :], squares[since - 1 :])
    assert (densities[: since - 1] == 0).all()
    for j, (index, label) in enumerate(zip(selection.labels, selection.y, strict=True)):
        gp.add(selection.Z[:, index], label)
        if j + 1 not in (1, since, t):
            continue
        mean, var = gp.predict(Z.T, return_var=True)
        error = (y - mean) ** 2
        assert squares[j] == pytest.approx(error.sum(), rel=1e-9)
        assert totals[j] == pytest.approx((error + var).sum(), rel=1e-9)
        if j + 1 >= since:
            var += gp.noise
            loss = 0.5 * np.log(2 * math.pi * var) + error / (2 * var)
            assert densities[j] == pytest.approx(loss.sum(), rel=1e-9)


def test_threads_change_no_digit():
    selection = labelled(20)
    Z, y = data(2 * gaussian.SHARE + 3 if JIT else ROWS, seed=3)
    one = selection.error_sums(Z, y, 1)
    for threads in (2, 3):
        for found, expected in zip(selection.error_sums(Z, y, threads), one, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_the_matrices_of_all_panels_have_their_places():
    for t in (1, PANEL, PANEL + 1, 5 * PANEL + 3):
        end = 0
        for first in range(0, t, PANEL):
            place = error_curves.products_place(first, min(t, first + PANEL))
            assert place.start == end
            end = place.stop
        assert end == error_curves.products_size(t)


@pytest.mark.parametrize("refit", [None, 1.5])
def test_a_run_takes_either_way(refit, monkeypatch):
    Z, y = data(40)
    test = data(30, seed=4)
    settings = {
        "criterion": FixedBudget(30),
        "max_labels": 30,
        "seed": 0,
        "refit": refit,
        "initial": 5,
    }
    settings |= {"gp": GaussianProcess(0.8, 0.05), "test": (test[0].T, test[1])}
    few = learn(Z.T, y, **settings)
    for module in (gaussian, errors):
        monkeypatch.setattr(module, "by_panels", lambda rows, labels: True)
    many = learn(Z.T, y, **settings)
    np.testing.assert_allclose(many.errors, few.errors, rtol=1e-11)
    np.testing.assert_allclose(many.rmse, few.rmse, rtol=1e-11)
