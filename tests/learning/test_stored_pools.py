"""Pools on a disk: not read into memory as a whole, and the same choices."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from pool_problems import BUDGET, GP, assert_same_run, problem

from fastal import ActiveLearner, FixedBudget, GaussianProcess, learn
from fastal._core import selection_lazy
from fastal.learning.refit import column_scales
from fastal.models import LaplaceClassifier

if not hasattr(selection_lazy.run, "py_func"):
    pytest.skip("interpreted kernels take too long", allow_module_level=True)

da = pytest.importorskip("dask.array", reason="dask is not installed")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("n", [1000, 3001])
def test_without_a_cluster_chunks_are_read_one_by_one(n):
    X, y = problem(n)
    D = da.from_array(X, chunks=(700, 2))
    assert_same_run(learn(D, y, **BUDGET), learn(X, y, **BUDGET))
    settings = {"criterion": FixedBudget(30), "max_labels": 30, "seed": 0}
    run = learn(D, lambda index, x: float(np.sin(x).sum()), **settings)
    assert_same_run(run, learn(X, np.sin(X).sum(axis=1), **settings))
    state = run._learner.to_dict()
    for again in (X, D.rechunk(311)):
        assert ActiveLearner.from_dict(state, again).n_labels == 30
    with pytest.raises(ValueError, match=r"finite, got inf at index \(999, 1\)"):
        learn(da.where(X[999, 1] == D, np.inf, D), y, **BUDGET)


def mapped(path, X, dtype=np.float64, order="C"):
    """Return a pool mapped from a file that it is written to."""
    out = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape, order=order)
    out[:] = X
    out.flush()
    return out


def stored(path, X):
    """Return a pool as a dask array of the zarr array that it is written to."""
    pytest.importorskip("zarr", reason="zarr is not installed")
    da.from_array(X, chunks=(7000, 3)).to_zarr(str(path))
    return da.from_zarr(str(path))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_zarr_array_gives_the_run_of_an_array(tmp_path):
    X, y = problem(3001)
    D = stored(tmp_path / "pool.zarr", X)
    unknown = {
        "criterion": FixedBudget(30),
        "max_labels": 30,
        "seed": 0,
        "test": (X[:9] + 0.1, y[:9]),
    }
    for settings in (BUDGET, unknown):
        run, expected = learn(D, y, **settings), learn(X, y, **settings)
        assert_same_run(run, expected)
        np.testing.assert_array_equal(run.bounds, expected.bounds)
    oracle = learn(D, lambda index, x: float(np.sin(x).sum()), **BUDGET)
    assert_same_run(oracle, learn(X, np.sin(X).sum(axis=1), **BUDGET))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "kind", ["float64", "float32", "by columns", "int32", "dask", "dask32", "zarr"]
)
def test_a_pool_in_a_file_is_never_in_memory_as_a_whole(tmp_path, kind):
    """Besides the scaled inputs, which the covariances need: measured without the page cache."""
    n, d = 60_000, 8
    X = 100 * np.random.default_rng(0).normal(size=(n, d))
    dtype = {"int32": np.int32, "float32": np.float32, "dask32": np.float32}.get(kind, np.float64)
    pool = mapped(tmp_path / "pool", X, dtype, "F" if kind == "by columns" else "C")
    if kind.startswith("dask"):
        pool = da.from_array(pool, chunks=(7000, 3))
    elif kind == "zarr":
        pool = stored(tmp_path / "pool.zarr", pool)
        pool[:1].compute()  # imports what it needs
    inputs = X.nbytes
    del X
    tracemalloc.start()
    try:
        learner = ActiveLearner(pool, gp=GP, criterion=FixedBudget(9), seed=0)
        ready, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        learner.to_dict()
        column_scales(learner.points)
        learner.points[17], learner.points[np.array([5, 59_999])]
        later = tracemalloc.get_traced_memory()[1] - ready
    finally:
        tracemalloc.stop()
    assert ready < 1.1 * inputs + 50 * n  # the scaled ones, and some numbers per point
    assert peak < ready + 0.7 * inputs  # a block, here of a quarter of the rows
    assert later < 0.9 * inputs


def test_a_mapped_file_of_doubles_is_used_as_it_is(tmp_path):
    X = mapped(tmp_path / "pool", problem(3000)[0])
    assert np.shares_memory(ActiveLearner(X, gp=GP, criterion=FixedBudget(9)).points, X)


@pytest.mark.parametrize(("dtype", "order"), [(np.float32, "C"), (np.float64, "F"), (">f8", "C")])
def test_a_mapped_file_gives_the_run_of_an_array(tmp_path, dtype, order):
    whole, y = problem(3001)
    X = mapped(tmp_path / "pool", whole, dtype, order)
    whole = np.array(X, dtype=np.float64, order="C")
    test = whole[:9] + 0.1, y[:9]
    unknown = {"criterion": FixedBudget(30), "max_labels": 30, "seed": 0, "test": test}
    for settings in (BUDGET, unknown):
        run, expected = learn(X, y, **settings), learn(whole, y, **settings)
        assert_same_run(run, expected)
        np.testing.assert_array_equal(run.bounds, expected.bounds)
        if settings is unknown:
            np.testing.assert_array_equal(run.errors, expected.errors)
    oracle = learn(X, lambda index, x: float(np.sin(x).sum()), **BUDGET)
    assert_same_run(oracle, learn(whole, np.sin(whole).sum(axis=1), **BUDGET))


def mean_and_variance(mean, var):
    return mean + var


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_needs_all_rows_of_a_mapped_file_gets_them(tmp_path):
    whole, y = problem(2100)
    X = mapped(tmp_path / "pool", whole, np.float32)
    whole = np.array(X, dtype=np.float64)
    D = da.from_array(whole, chunks=500)
    for more in (
        {"gp": GP},
        {"gp": GP, "acquisition": mean_and_variance},
        {"gp": LaplaceClassifier(0.8)},
    ):
        settings = {"criterion": FixedBudget(9), "seed": 0, "initial": 2} | more
        one, other = ActiveLearner(X, **settings), ActiveLearner(whole, **settings)
        for learner in (one, other):
            for _ in range(4):
                learner.tell(1.0 if y[learner.ask()] > 0 else -1.0)
        assert one.ask() == other.ask()
        np.testing.assert_array_equal(one.bounds, other.bounds)
        assert copy.deepcopy(one).ask() == one.ask()
        for pool in (X, whole, D) if more == {"gp": GP} else (X, whole):
            for learner in (one, other):
                again = ActiveLearner.from_dict(
                    learner.to_dict(), pool, acquisition=more.get("acquisition")
                )
                assert again.ask() == one.ask()
        if more == {"gp": GP}:
            assert pickle.loads(pickle.dumps(one)).ask() == one.ask()
        assert one.extend_pool(X[:3]).tolist() == [2100, 2101, 2102]
        assert one.n_pool == 2103
    with pytest.raises(ValueError, match="another pool"):
        ActiveLearner.from_dict(other.to_dict(), X[::-1])
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"finite, got nan at index \(5, 1\)"):
        learn(X, y, **BUDGET)
    with pytest.raises(ValueError, match=r"shape \(n, 2\), got \(2100, 3\)"):
        learn(X, y, **BUDGET | {"gp": GaussianProcess([1.0, 2.0])})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_run_in_memory_goes_on_with_chunks_and_back():
    X, y = problem(2500)
    settings = BUDGET | {"max_labels": 40}
    expected = learn(X, y, **settings)
    D = da.from_array(X, chunks=600)
    for first, then in [(X, D), (D, X), (D, D.rechunk(311))]:
        part = learn(first, y, **settings | {"max_labels": 20})
        with pytest.raises(ValueError, match="another pool"):
            part.resume(y, X=then + 1.0, max_labels=40)
        assert_same_run(part.resume(y, X=then, max_labels=40), expected)


def test_a_data_frame_of_dask_is_refused_by_name():
    class Frame:  # Dask's needs more libraries
        def to_dask_array(self):
            raise AssertionError

    with pytest.raises(TypeError, match=r"`X` must be an array, got a data frame of Dask"):
        learn(Frame(), [0.0], **BUDGET)
