"""Formulas and views: what is emitted is what plain Python would compute."""

import math

import numpy as np
import pytest
from numba import njit

from fastal._core.bound_array import gp_kl_fast, log1p_excess
from fastal._core.covariance import capped, exp_negative, matern, rbf
from fastal._core.formula import bits, choose, double, formula, square_root
from fastal._core.views import part, row_part


@formula
def every_operation(a, b):
    total = (a + b) - (1.0 - a) * 2.0 + 3.0 * b - (-a) / b + (1.0 + a)
    halved = double(bits(a) - (np.uint64(1) << np.uint64(52)))
    small = choose(a < b, a, b) + choose(a > 2.0, 1.0, 0.0)
    same = ((bits(a) - bits(b)) | (bits(b) - bits(a))) == np.uint64(0)
    return total, halved, small, square_root(b), same


@njit
def compiled(a, b):
    return every_operation(a, b)


@pytest.mark.parametrize(("a", "b"), [(1.5, 0.25), (0.3, 7.0), (-2.0, 3.0), (4.0, 4.0)])
def test_every_operation(a, b):
    total, halved, small, root, same = compiled(a, b)
    assert total == pytest.approx(a + b - (1 - a) * 2 + 3 * b + a / b + 1 + a, rel=1e-15)
    assert halved == a / 2
    assert small == min(a, b) + (a > 2)
    assert root == math.sqrt(b)
    assert same == (a == b)


def test_of_what_is_no_number():
    assert math.isnan(compiled(math.nan, 1.0)[0])
    assert compiled(1.0, math.nan)[2] != compiled(1.0, 2.0)[2]
    assert math.isnan(njit(lambda x: capped(x))(math.nan))
    assert njit(lambda x: capped(x))(math.inf) == 800.0


def test_a_formula_is_plain_python():
    assert exp_negative.on(np.float64(-1.5)) == pytest.approx(math.exp(-1.5), rel=1e-15)
    assert exp_negative.on.__doc__.startswith("Return ``exp(x)``")


@pytest.mark.parametrize("rr", [0.0, 1e-300, 0.7, 30.0, 1e6, 1e300])
def test_covariances(rr):
    got = njit(lambda a, rr: (rbf(a, rr), matern(a, math.sqrt(5.0), 1.0, 1.0, rr)))(2.0, rr)
    s = math.sqrt(5) * math.sqrt(rr)
    want = 2 * np.exp(-rr / 2), 2 * (1 + s + 5 * rr / 3) * np.exp(-s) if s < 800 else 0.0
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-300)


def test_parts_of_bounds():
    u = 0.7
    r, excess, usual = njit(lambda m, v, y, w: gp_kl_fast(m, v, y, w))(0.1, u * 0.5, 0.4, 0.5)
    assert excess == pytest.approx(u - math.log1p(u), rel=1e-14)
    assert excess == njit(lambda u: log1p_excess(u))(u * 0.5 / 0.5)
    assert r == pytest.approx(0.5 * excess + 0.5 * u * 0.09 / (u * 0.5 + 0.5), rel=1e-14)
    assert usual
    assert not njit(lambda m, v, y, w: gp_kl_fast(m, v, y, w))(0.4, 0.5, 0.4, 0.5)[2]  # d = 0


@njit
def write(v, A):
    part(v, 2, 5)[0] = 7.0
    row = row_part(A, 1, 1, 3)
    row[1] = 9.0
    return part(v, 2, 5).size, row.size, row_part(A, 2, 0, 4)[3], part(v, 3, 3).size


def test_views():
    v, A = np.arange(6.0), np.arange(12.0).reshape(3, 4)
    assert write(v, A) == (3, 2, 11.0, 0)
    assert v.tolist() == [0, 1, 7, 3, 4, 5]
    assert A[1].tolist() == [4, 5, 9, 7]
