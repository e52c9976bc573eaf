"""One step of the factorisation: what is subtracted, in which order, and what stays."""

from fractions import Fraction

import numpy as np
import pytest
from numba import config, njit

from fastal._core import elimination as core

JIT = not config.DISABLE_JIT


def step(V, t, i, first):
    core.subtract_rows(V, t, i, first)


if JIT:
    step = njit(step)


def some(rows, columns):
    return np.random.default_rng(rows).standard_normal((rows, columns))


# up to, at and beyond whole groups of rows
@pytest.mark.parametrize("t", [0, 1, 3, 4, 5, 8, 11, 40])
@pytest.mark.parametrize("first", [0, core.WIDTH, 2 * core.WIDTH])
@pytest.mark.parametrize("i", [0, core.WIDTH - 1, 2 * core.WIDTH + 3])
def test_the_sum_is_right_and_nothing_else_changes(t, first, i):
    V = some(t + 3, 3 * core.WIDTH)
    before = V.copy()
    step(V, t, i, first)
    block = slice(first, first + core.WIDTH)
    for j in range(first, first + core.WIDTH):
        column = [Fraction(value) for value in before[: t + 1, j]]
        factors = [Fraction(value) for value in before[:t, i]]
        exact = column[t] - sum(a * b for a, b in zip(factors, column[:t], strict=True))
        size = abs(column[t]) + sum(abs(a * b) for a, b in zip(factors, column[:t], strict=True))
        # one rounding for each product and each sum
        assert abs(Fraction(V[t, j]) - exact) <= size * Fraction(np.finfo(float).eps) * (t + 1)
    before[t, block] = V[t, block]
    np.testing.assert_array_equal(V, before)


@pytest.mark.parametrize(("t", "subtracted"), [(3, 0), (4, 4), (7, 4)])
def test_four_rows_are_added_up_before_they_are_subtracted(t, subtracted):
    # -2^53 - 1 is no double: a single 1 is lost, four together are not
    V = np.ones((t + 1, core.WIDTH))
    V[t] = -(2.0**53)
    step(V, t, 0, 0)
    assert (V[t] == -(2.0**53) - subtracted).all()
