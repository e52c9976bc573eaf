"""The lazy selection over chunks of columns: against the eager one and against dense algebra."""

import copy
import pickle

import numpy as np
import pytest

from fastal import GaussianProcess, Stopper, learn
from fastal import _memory as memory
from fastal._core import selection_lazy
from fastal._core.chunks import CHUNK, STRIDE, chunk_at, new_chunk
from fastal.learning.eager import EagerSelection
from fastal.learning.lazy import LazySelection

JIT = hasattr(selection_lazy.run, "py_func")
PANEL = selection_lazy.PANEL


def data(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = np.ascontiguousarray(rng.uniform(0, 6, (d, n)))
    return Z, np.sin(Z).sum(axis=0) + 0.1 * rng.standard_normal(n)


def both(gp, Z, y, order, labels, threads=1):
    made = []
    for kind in (EagerSelection, LazySelection):
        one = kind(gp, Z, order, len(order), labels)
        one.run(y, labels, None, True, threads)
        made.append(one)
    return made


SIZES = [
    1,
    2,
    15,
    16,
    17,
    PANEL - 1,
    PANEL,
    PANEL + 1,
    CHUNK - 1,
    CHUNK,
    CHUNK + 1,
    CHUNK + PANEL + 3,
]


@pytest.mark.parametrize("n", SIZES if JIT else [1, 2, 17])
@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_every_size_to_its_end(n, kernel):
    gp = GaussianProcess(1.0, 0.05, amplitude=2.0, mean=0.3, kernel=kernel)
    Z, y = data(n)
    eager, lazy = both(gp, Z, y, np.array([n // 2]), n)
    assert lazy.labels.tolist() == eager.labels.tolist()
    np.testing.assert_allclose(lazy.bounds, eager.bounds, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(lazy.residuals, eager.residuals, rtol=1e-8, atol=1e-10)


@pytest.mark.skipif(not JIT, reason="slow without the JIT")
@pytest.mark.parametrize("n", [4096, 5000])  # wide panels
def test_wide_panels(n):
    gp = GaussianProcess(0.8, 0.05)
    Z, y = data(n, 3)
    labels = 2 * CHUNK + 5
    eager, lazy = both(gp, Z, y, np.array([7, 11]), labels)
    assert lazy.labels.tolist() == eager.labels.tolist()
    np.testing.assert_allclose(lazy.bounds, eager.bounds, rtol=1e-8, atol=1e-11)
    _, two = both(gp, Z, y, np.array([7, 11]), labels, threads=2)
    assert two.labels.tolist() == lazy.labels.tolist()
    assert np.array_equal(two.bounds, lazy.bounds)


@pytest.mark.parametrize("copies", [2, 3])
def test_of_equal_variances_the_lower_index_wins(copies):
    n = 40 if JIT else 8
    Z, y = data(n)
    Z, y = np.ascontiguousarray(np.tile(Z, copies)), np.tile(y, copies)
    gp = GaussianProcess(1.0, 0.5)
    eager, lazy = both(gp, Z, y, np.array([1]), n * copies)
    assert lazy.labels.tolist() == eager.labels.tolist()
    first = lazy.labels[lazy.labels % n == 0]
    assert first.tolist() == sorted(first.tolist())


def test_one_by_one_is_all_at_once():
    n = CHUNK + 40 if JIT else 20
    gp = GaussianProcess(1.0, 0.05)
    Z, y = data(n)
    _, whole = both(gp, Z, y, np.array([3]), n)
    single = LazySelection(gp, Z, np.array([3]), 1, n)
    for t in range(n):
        index = 3 if t == 0 else single.best()
        assert index == whole.labels[t]
        single.accept(index, float(y[index]))
    assert np.array_equal(single.bounds, whole.bounds)


@pytest.mark.skipif(not JIT, reason="slow without the JIT")
@pytest.mark.parametrize("t", [1, 40, CHUNK - 2, CHUNK, CHUNK + 30])
def test_what_is_frozen_stays(t):
    gp = GaussianProcess(1.0, 0.05)
    Z, y = data(CHUNK + 100)
    one = LazySelection(gp, Z, np.array([0]), 1, CHUNK + 100)
    one.run(y, t, None, True, 1)
    kept = one.frozen()
    X, target = data(30, seed=1)
    before = kept.test_errors_scaled(X, target, 1)
    ahead = one.frozen()
    ahead.run(np.zeros(len(y)), min(t + 70, len(y)), None, True, 1)
    one.run(y, t + 60, None, True, 1)
    assert ahead.labels[t : t + 60].tolist() == one.labels[t:].tolist()
    after = kept.test_errors_scaled(X, target, 1)
    assert np.array_equal(before.loss, after.loss)
    assert kept.n_labels == t


@pytest.mark.parametrize("way", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_has_chunks_of_its_own(way):
    n = CHUNK + 20 if JIT else 12
    gp = GaussianProcess(1.0, 0.05)
    Z, y = data(n)
    _, whole = both(gp, Z, y, np.array([0]), n)
    one = LazySelection(gp, Z, np.array([0]), 1, n)
    one.run(y, n - 5, None, True, 1)
    other = way(one)
    assert not set(other.state.table.tolist()) & set(one.state.table.tolist())
    for chunk in one.chunks:
        chunk[:] = np.nan
    other.run(y, n, None, True, 1)
    assert other.labels.tolist() == whole.labels.tolist()
    assert np.array_equal(other.bounds, whole.bounds)


def test_chunks_are_aligned_and_have_no_power_of_two():
    chunk = new_chunk(5)
    assert chunk.shape == (5, STRIDE)
    assert chunk.ctypes.data % 64 == 0
    assert STRIDE & (STRIDE - 1)
    chunk[:] = np.arange(5 * STRIDE).reshape(5, STRIDE)
    if not JIT:
        found = chunk_at(np.array([chunk.ctypes.data]), 0, 5)
        assert np.array_equal(found, chunk)


@pytest.mark.skipif(not JIT, reason="slow without the JIT")
def test_memory_that_ends_keeps_the_run(monkeypatch):
    X = np.random.default_rng(0).uniform(0, 6, (3000, 2))
    y = np.sin(X).sum(axis=1)
    part = 8 * 3000 * STRIDE
    monkeypatch.setattr(memory, "machine", lambda: int(1.5 * part / memory.SHARE))
    with pytest.raises(
        MemoryError, match=rf"for the labels {CHUNK + 1} to {2 * CHUNK}, needs"
    ) as e:
        learn(X, y, gp=GaussianProcess(0.3, 0.05), criterion=Stopper(1e-300), seed=0)
    assert f"enough for about {CHUNK} labels" in str(e.value)
    run = e.value.run
    assert run.n_labels == CHUNK
    monkeypatch.undo()
    longer = run.resume(max_labels=CHUNK + 50)
    whole = learn(
        X,
        y,
        gp=GaussianProcess(0.3, 0.05),
        criterion=Stopper(1e-300),
        seed=0,
        max_labels=CHUNK + 50,
    )
    assert longer.indices.tolist() == whole.indices.tolist()


def test_no_memory_at_all(monkeypatch):
    X = np.random.default_rng(0).uniform(0, 6, (3000, 2))
    monkeypatch.setattr(memory, "machine", lambda: 1000)
    with pytest.raises(MemoryError, match="enough for about 0 labels"):
        learn(X, X[:, 0], gp=GaussianProcess(0.3, 0.05), criterion=Stopper(), seed=0)
