"""A triangle in panels of eight rows: where its entries are, and what is solved with it."""

import math

import numpy as np
import pytest
from numba import njit

from fastal._core import panels as core

JIT = hasattr(core.write_row, "py_func")
SIZES = [1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 41, 47, 48, 49, 64, 100, 257]


def triangle(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.tril(rng.normal(size=(n, n))) / math.sqrt(n) + 2 * np.eye(n)


def in_panels(L, more=0):
    """Return the panels of a triangle; all that belongs to no entry of it is NaN."""
    n = len(L)
    panels = core.new_panels(n + more)
    panels[:] = math.nan
    for i in range(n):
        core.write_row(panels, i, L[i].copy())
    return panels


@pytest.mark.parametrize("n", SIZES)
def test_every_entry_has_one_place(n):
    L = triangle(n)
    panels = in_panels(L)
    for i in range(n):
        p = i // 8
        for j in range(i + 1):
            assert panels[32 * p * (p + 1) + 8 * j + i % 8] == L[i, j]
    assert np.isfinite(panels).sum() == n * (n + 1) // 2
    assert panels.size == core.panels_size(n)
    assert panels.ctypes.data % 64 == 0
    np.testing.assert_array_equal(core.diagonal(panels, n), np.diagonal(L))


@pytest.mark.parametrize("n", SIZES)
def test_rows_come_back(n):
    L = triangle(n)
    panels = in_panels(L)
    out = np.full((n + 1, n + 1), 7.0)
    core.read_rows(panels, n, out)
    np.testing.assert_array_equal(np.tril(out[:n, :n]), L)
    assert (out[~np.tril(np.ones((n + 1, n + 1), dtype=bool))] == 7.0).all()
    assert (out[n] == 7.0).all()
    packed = np.empty(n * (n + 1) // 2)
    core.pack_rows(panels, n, packed)
    np.testing.assert_array_equal(packed, L[np.tril_indices(n)])
    again = core.new_panels(n)
    again[:] = math.nan
    core.unpack_rows(packed, n, again)
    np.testing.assert_array_equal(again, panels)


@pytest.mark.parametrize("n", [0, *SIZES])
def test_solves(n):
    """Also where rows beyond n are NaN: they are read with the others, and change nothing."""
    L = triangle(n)
    panels, reciprocals = in_panels(L), np.full(n + 1, math.nan)
    reciprocals[:n] = 1 / np.diagonal(L)
    k = np.random.default_rng(1).normal(size=n + 1)
    for solve, factor in ((core.solve_panels, L), (core.solve_transposed, L.T)):
        v = k.copy()
        solve(panels, reciprocals, n, v)
        # backward error of a substitution: n roundings of |L| |v|, and those of a reciprocal
        allowed = (2 * n + 4) * np.finfo(float).eps * (np.abs(factor) @ np.abs(v[:n]))
        assert (np.abs(factor @ v[:n] - k[:n]) <= allowed).all()
        assert v[n] == k[n]


@pytest.mark.parametrize("n", [0, *SIZES])
@pytest.mark.parametrize("m", [0, 1, core.SIDES - 1, core.SIDES, core.SIDES + 1, 3 * core.SIDES])
def test_solves_with_several_sides(n, m):
    L = triangle(n)
    panels, reciprocals = in_panels(L), 1 / np.diagonal(L)
    K = np.random.default_rng(1).normal(size=(m, n + 1))
    V = K.copy()
    core.solve_sides(panels, reciprocals, n, V)
    allowed = (2 * n + 4) * np.finfo(float).eps * (np.abs(V[:, :n]) @ np.abs(L.T))
    assert (np.abs(V[:, :n] @ L.T - K[:, :n]) <= allowed).all()
    np.testing.assert_array_equal(V[:, n], K[:, n])


@pytest.mark.parametrize("n", [9, 24, 25, 31, 33, 41, 48, 50, 100])
def test_entries_do_not_depend_on_the_rows_below(n):
    """A longer factor gives the same digits for its first rows: a rewind changes nothing."""
    L = triangle(120)
    panels, reciprocals = in_panels(L), 1 / np.diagonal(L)
    k = np.random.default_rng(2).normal(size=120)
    long, short = k.copy(), k.copy()
    core.solve_panels(panels, reciprocals, 120, long)
    core.solve_panels(panels, reciprocals, n, short)
    whole = n - n % 8  # interpreted and compiled kernels finish a panel in another way
    np.testing.assert_array_equal(short[:whole], long[:whole])
    np.testing.assert_allclose(short[whole:n], long[whole:n], rtol=1e-13)


@pytest.mark.parametrize("n", [24, 25, 32, 33, 40, 41, 48, 50])
@pytest.mark.parametrize(("name", "panels", "parts"), [("panel", 1, 4), ("group", 3, 2)])
def test_the_order_is_the_one_that_is_written_down(name, panels, parts, n):
    """Sums of every fourth or second column, in pairs, for the rows of panels that are there."""
    rng = np.random.default_rng(0)
    i, last = 24, min(n, 24 + 8 * panels)
    # products of integers need no rounding: only the order of the sums counts
    L = np.round(np.tril(rng.normal(size=(n, n))) * 2**20) / 2**20
    v = np.round(rng.normal(size=n + 3) * 2**20) / 2**20
    subtracts = getattr(core, f"subtract_{name}")

    def subtract(panels, start, v, i, n):
        subtracts(panels, start, v, i, n)

    found = v.copy()
    (njit(subtract) if JIT else subtract)(in_panels(L), core.panels_size(i), found, i, n)
    for row in range(i, last):
        sums = [0.0] * parts
        for j in range(i):
            sums[j % parts] += L[row, j] * v[j]
        while len(sums) > 1:
            sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)]
        if JIT:
            assert found[row] == v[row] - sums[0]
        else:
            assert found[row] == pytest.approx(v[row] - sums[0], rel=1e-12)
    np.testing.assert_array_equal(found[:i], v[:i])
    np.testing.assert_array_equal(found[last:], v[last:])


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
@pytest.mark.parametrize("subtracts", [core.subtract_panel, core.subtract_group])
def test_only_contiguous_vectors(subtracts):
    @njit
    def subtract(panels, v):
        subtracts(panels, 0, v, 0, 8)

    with pytest.raises(Exception, match="contiguous vectors"):
        subtract(np.ones(128)[::2], np.ones(8))


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_only_contiguous_sides():
    @njit
    def subtract(panels, B):
        core.subtract_sides(panels, 0, B, 0, 8)

    with pytest.raises(Exception, match="contiguous arrays"):
        subtract(np.ones(128), np.asfortranarray(np.ones((core.SIDES, 16))))
