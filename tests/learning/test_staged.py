"""The selection that is eager for the first labels and lazy from then on."""

import pickle

import numpy as np
import pytest

from fastal import ActiveLearner, GaussianProcess, MovementBelow, Stopper, learn
from fastal._core import selection_lazy
from fastal._core.ended import BROKEN
from fastal._core.selection_eager import Eager
from fastal.criteria import MaxVariance
from fastal.learning import choose, lazy
from fastal.learning.eager import EagerSelection
from fastal.learning.lazy import LazySelection
from fastal.learning.staged import MOST_EARLY, StagedSelection, early_labels

JIT = hasattr(selection_lazy.run, "py_func")
N = 3_000 if JIT else 300
SWITCH = early_labels(N)
GP = GaussianProcess(1.1, 0.01)


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    X[7] = X[3]  # equal variances go to the lower index
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=N)


def selection(kind, X, labels=400):
    return kind(GP, GP.prior.scale("X", X), np.array([3]), 1, labels)


def close(a, b):
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_allclose(a.bounds, b.bounds, rtol=1e-9)
    np.testing.assert_allclose(a.residuals, b.residuals, rtol=1e-9, atol=1e-12)


def test_which_pools():
    assert choose.lazy_selection(3_000) is StagedSelection
    assert choose.lazy_selection(choose.LAZY_POINTS - 1) is LazySelection
    assert choose.lazy_selection(10**6) is LazySelection  # not even one step would be early
    assert 0 < SWITCH <= MOST_EARLY
    for n in (1_000, 2_048, 9_000, 25_000):  # where panels of the lazy selection end
        assert early_labels(n) % 16 == 0
    assert isinstance(learn_of(3_000)._selection, StagedSelection)


def learn_of(n):
    X = np.linspace(0, 1, n)[:, None]
    return ActiveLearner(X, gp=GP, criterion=Stopper(), seed=0)


@pytest.mark.parametrize("labels", [1, SWITCH - 1, SWITCH, SWITCH + 1, SWITCH + 16, SWITCH + 150])
def test_same_labels_as_either(pool, labels):
    X, y = pool
    found = [selection(kind, X) for kind in (StagedSelection, LazySelection, EagerSelection)]
    for one in found:
        one.run(y, labels, None, False, 1)
        assert one.n_labels == labels
    close(found[0], found[1])
    close(found[0], found[2])
    assert isinstance(found[0].state, Eager) == (labels <= SWITCH)
    assert found[0].best() == found[1].best() == found[2].best()
    errors = [one.test_errors(X[:50], y[:50], 1) for one in found]
    np.testing.assert_allclose(errors[0].rmse, errors[1].rmse, rtol=1e-9)
    np.testing.assert_allclose(errors[0].loss, errors[2].loss, rtol=1e-9)


def test_label_by_label_and_in_parts(pool):
    X, y = pool
    whole, steps, parts = (selection(StagedSelection, X) for _ in range(3))
    whole.run(y, SWITCH + 40, None, False, 1)
    for _ in range(SWITCH + 40):
        i = 3 if steps.n_labels == 0 else steps.best()
        steps.accept(i, y[i])
    for target in (5, SWITCH, SWITCH + 3, SWITCH + 40):
        parts.run(y, target, None, False, 1)
    close(steps, whole)
    np.testing.assert_array_equal(parts.bounds, whole.bounds)
    np.testing.assert_array_equal(parts.labels, whole.labels)


def test_skipped_points_stay_out(pool):
    X, y = pool
    one = selection(StagedSelection, X)
    one.run(y, SWITCH - 1, None, False, 1)
    skipped = one.best()
    one.skip(skipped)
    one.run(y, SWITCH + 60, None, False, 1)
    assert skipped not in one.labels
    assert not one.unlabelled[skipped]


@pytest.mark.parametrize("labels", [SWITCH // 2, SWITCH, SWITCH + 20])
def test_frozen_and_pickled(pool, labels):
    X, y = pool
    one = selection(StagedSelection, X)
    one.run(y, labels, None, False, 1)
    kept, copy = one.frozen(), pickle.loads(pickle.dumps(one))
    before = kept.bounds.copy()
    one.run(y, labels + 40, None, False, 1)
    assert kept.n_labels == labels
    np.testing.assert_array_equal(kept.bounds, before)
    copy.run(y, labels + 40, None, False, 1)
    np.testing.assert_array_equal(copy.labels, one.labels)
    np.testing.assert_array_equal(copy.bounds, one.bounds)


def test_no_memory_for_the_switch(pool, monkeypatch):
    """It stays as it was, and goes on once there is room."""
    X, y = pool
    one, other = (selection(StagedSelection, X) for _ in range(2))
    one.run(y, SWITCH, None, False, 1)

    def full(*arguments):
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(lazy._memory, "check_next", full)
        with pytest.raises(MemoryError, match="no room"):
            one.run(y, SWITCH + 5, None, False, 1)
        assert one.n_labels == SWITCH
        assert isinstance(one.state, Eager)
    one.run(y, SWITCH + 5, None, False, 1)
    other.run(y, SWITCH + 5, None, False, 1)
    np.testing.assert_array_equal(one.bounds, other.bounds)


@pytest.mark.parametrize(
    "criterion", [Stopper(1e-2), MovementBelow(0.3), MaxVariance(0.2), Stopper() & MaxVariance(0.3)]
)
def test_criteria_stop_where_they_do_outside(pool, criterion):
    X, y = pool
    compiled = learn(X, y, gp=GP, criterion=criterion, initial=[3], max_labels=SWITCH + 90)
    outside = learn(
        X,
        y,
        gp=GP,
        criterion=criterion,
        initial=[3],
        max_labels=SWITCH + 90,
        on_label=lambda _: None,
    )
    assert compiled.n_labels == outside.n_labels
    assert compiled.stopped == outside.stopped
    np.testing.assert_array_equal(compiled.indices, outside.indices)
    np.testing.assert_allclose(compiled.bounds, outside.bounds, rtol=1e-12)


def test_means_are_refused(pool):
    one = selection(StagedSelection, pool[0])
    with pytest.raises(TypeError, match="eager"):
        one.posterior()


@pytest.mark.skipif(not JIT, reason="what interpreted kernels check is Python's")
@pytest.mark.parametrize("damage", ["the panel crosses its chunk", "no chunk", "no room"])
def test_kernels_refuse_a_state_that_would_be_written_behind(pool, damage):
    X, y = pool
    one = selection(LazySelection, X)
    one.run(y, 250, None, False, 1)
    state = one.state
    one.accept(one.best(), 1.0)
    before = [chunk.copy() for chunk in one.chunks], one.state.rows.copy()
    if damage == "no chunk":
        one.state = state._replace(table=state.table[:0])
    elif damage == "no room":
        one.state = state._replace(labels=state.labels[:251])
    else:
        state.counters[[selection_lazy.LABELS, selection_lazy.COMPLETE]] = 257, 200
    index = int(np.flatnonzero(one.unlabelled)[0])
    calls = [lambda: selection_lazy.accept(GP.prior.kind, 1.0, 0.0, 0.1, one.state, index, 1.0)[0]]
    if damage != "no room":
        calls.append(lambda: selection_lazy.best(GP.prior.kind, 1.0, one.state))
        if damage != "no chunk":
            calls.append(lambda: selection_lazy.run(
                GP.prior.kind, 1.0, 0.0, 0.1, one.state, y, one.order, 1, 300, 0, False
            )[1])  # fmt: skip
            calls.append(lambda: selection_lazy.complete_blocks(
                GP.prior.kind, 1.0, state.Z, state.Zl, state.table, state.products, 200, 257, 0, N,
                state.base, state.base,
            ))  # fmt: skip
            with pytest.raises(RuntimeError, match="state of the selection is damaged"):
                one.best()
    for call in calls:
        assert call() == BROKEN
    for chunk, kept in zip(one.chunks, before[0], strict=True):
        np.testing.assert_array_equal(chunk, kept)
    np.testing.assert_array_equal(state.rows, before[1])


@pytest.mark.skipif(not JIT, reason="a large pool takes minutes interpreted")
@pytest.mark.parametrize("capacity", [1, 15, 16, 17, 50, 127, 128, 129, 255, 256, 257, 500])
def test_whatever_room_it_was_born_with(capacity):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2_500, 3))
    y = np.sin(X).sum(axis=1)
    whole = selection(StagedSelection, X, 600)
    whole.run(y, 600, None, False, 1)
    one = selection(StagedSelection, X, capacity)
    for labels in (min(capacity, 600), 258, 600):
        one.run(y, labels, None, False, 1)
    assert one.labels.tolist() == whole.labels.tolist()
    assert one.bounds.tolist() == whole.bounds.tolist()  # panels end on one grid
