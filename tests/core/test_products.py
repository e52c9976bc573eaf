"""The product of matrices of the panels: right at every size, in the order that is written down."""

from fractions import Fraction

import numpy as np
import pytest
import twins

from fastal import GaussianProcess
from fastal._core import products, selection_lazy
from fastal._core.chunks import CHUNK, STRIDE, aligned, new_chunk
from fastal._core.products import COLUMNS, TILE
from fastal.learning.lazy import LazySelection

JIT = hasattr(selection_lazy.run, "py_func")
PANEL = selection_lazy.PANEL


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("rows", [1, TILE - 1, TILE, TILE + 1, 3 * TILE + 2])
@pytest.mark.parametrize("k", [0, 1, 7, CHUNK])
def test_every_size(groups, rows, k):
    rng = np.random.default_rng(k)
    A, B = new_chunk(rows), aligned(groups * CHUNK * COLUMNS)
    A[:], B[:] = rng.normal(size=A.shape), rng.normal(size=B.size)
    C = np.ones((groups, rows, COLUMNS))
    products.add_chunk_product(
        A.ctypes.data, B.ctypes.data, CHUNK * COLUMNS, C.ctypes.data, rows, groups, k
    )
    packed = np.ascontiguousarray(A[:, :COLUMNS])
    D = np.ones((groups, rows, COLUMNS))
    products.add_block_product(
        packed.ctypes.data, B.ctypes.data, CHUNK * COLUMNS, D.ctypes.data, rows, groups, min(k, 16)
    )
    for g in range(groups):
        part = B.reshape(groups, CHUNK, COLUMNS)[g]
        np.testing.assert_allclose(C[g], 1 + A[:, :k] @ part[:k], rtol=1e-12, atol=1e-12)
        least = min(k, 16)
        np.testing.assert_allclose(D[g], 1 + A[:, :least] @ part[:least], rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_one_fused_addition_after_the_other():
    """Each step is exact but for one rounding, in the order of the columns of A."""
    rng = np.random.default_rng(3)
    k, rows = 9, TILE + 1
    A, B = new_chunk(rows), aligned(k * COLUMNS)
    A[:], B[:] = rng.normal(size=A.shape), rng.normal(size=B.size)
    C = np.zeros((1, rows, COLUMNS))
    products.add_chunk_product(A.ctypes.data, B.ctypes.data, 0, C.ctypes.data, rows, 1, k)
    for i in (0, TILE - 1, TILE):  # in a tile, and in the row that is left
        for j in (0, COLUMNS - 1):
            total = 0.0
            for m in range(k):
                # a fraction is exact, and turns into the nearest double
                exact = Fraction(A[i, m]) * Fraction(B[m * COLUMNS + j]) + Fraction(total)
                total = float(exact)
            assert C[0, i, j] == total


def test_squares():
    rng = np.random.default_rng(1)
    for d in (1, 3, 8):
        near, Z = rng.normal(size=(d, COLUMNS)), rng.normal(size=(d, 5))
        K = np.empty(5 * COLUMNS)
        selection_lazy.covariance_block(0, 2.0, Z, near, 0, COLUMNS, 0, 5, K)
        squares = ((near[:, None, :] - Z[:, :, None]) ** 2).sum(axis=0)
        np.testing.assert_allclose(K.reshape(5, COLUMNS), 2 * np.exp(-squares / 2), rtol=1e-13)


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize(
    "n", [1, 2, PANEL - 1, PANEL, PANEL + 1, CHUNK, CHUNK + 2] if JIT else [1, 2, 18]
)
def test_the_order_of_the_slow_twin(n, copies):
    """Also where points are there twice: of equal variances the lower index is the next."""
    rng = np.random.default_rng(n)
    X = np.tile(rng.uniform(0, 6, (-(-n // copies), 2)), (copies, 1))[:n]
    y = np.sin(X).sum(axis=1)
    gp = GaussianProcess(1.0, 0.5)
    lazy = LazySelection(gp, gp.prior.scale("X", X), np.array([0]), 1, n)
    lazy.run(y, n, None, True, 1)
    twin = twins.GaussianProcess(1.0, 0.5)
    left = np.ones(n, dtype=bool)
    i = 0
    for t in range(min(n, 40 if JIT else 18)):
        assert lazy.labels[t] == i
        left[i] = False
        twin.add(X[i], y[i])
        if left.any():
            _, var = twin.predict(X, return_var=True)
            i = int(np.argmax(np.where(left, var, -1.0)))
            # the variances of copies are equal, but for the rounding of dense algebra
            i = int(np.flatnonzero(left & (X[i] == X).all(axis=1))[0])


def test_a_stride_is_that_of_a_chunk():
    assert new_chunk(2).strides[0] == 8 * STRIDE
    assert aligned(3).ctypes.data % 64 == 0
