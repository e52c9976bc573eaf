"""Arrays on their way to a model, beside what NumPy makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from fastal._core.inputs import farthest, scale_rows

RNG = np.random.default_rng(0)

# around the rows of a block, and the numbers from which on the GIL is let go
SIZES = [1, 2, 3, 100, 1023, 1024, 1025, 5000, 10_001]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("each", [False, True])
def test_scaled_rows_are_products_with_the_reciprocals(n, each):
    X = RNG.normal(size=(n, 3))
    per_length = 1.0 / np.array([0.7, 1.3, 11.0]) if each else 1.0 / 0.7
    out = np.full((3, n), np.nan)
    assert scale_rows(X, per_length, out)
    assert np.array_equal(out, (X * per_length).T)


@pytest.mark.parametrize(
    "view", [lambda X: X[::2], lambda X: X[:, ::-1], np.asfortranarray], ids=["rows", "back", "F"]
)
def test_inputs_may_lie_anyhow_and_stay_as_they_are(view):
    X = view(RNG.normal(size=(50, 4)))
    kept = X.copy()
    X.flags.writeable = False
    out = np.empty(X.shape[::-1])
    assert scale_rows(X, 0.5, out)
    assert np.array_equal(out, (X * 0.5).T)
    assert np.array_equal(X, kept)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_what_is_not_finite_is_found_wherever_it_stands(n, bad):
    for place in {0, n // 2, n - 1}:
        for feature in (0, 1):
            X = RNG.normal(size=(n, 2))
            X[place, feature] = bad
            assert not scale_rows(X, 1e10, np.empty((2, n)))


def test_wrong_shapes_are_refused():
    X = np.zeros((5, 2))
    with pytest.raises(ValueError, match="3 length scales of 2 features"):
        scale_rows(X, np.ones(3), np.empty((2, 5)))
    with pytest.raises(ValueError, match=r"`out` must have shape \(2, 5\)"):
        scale_rows(X, 1.0, np.empty((5, 2)))


@pytest.mark.parametrize("n", SIZES)
def test_the_farthest_is_the_one_that_numpy_finds(n):
    y = RNG.normal(size=n)
    for center in (0.0, -3.0, 100.0):
        assert farthest(y, center) == np.argmax(np.abs(y - center))


def test_of_equal_distances_the_first_one_counts():
    assert farthest(np.array([1.0, 3.0, -1.0, 3.0]), 1.0) == 1
    assert farthest(np.array([2.0, 2.0]), 2.0) == 0
