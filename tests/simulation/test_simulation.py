"""simulate against a loop of learn, against itself on other backends, and its own properties."""

import csv
import math
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastal
from fastal import FixedBudget, GaussianProcess, MinLabels, Stopper, learn, simulate
from fastal._core import campaigns
from fastal._core.numpy_seeds import run_words
from fastal.learning import choose
from fastal.simulation import Simulation, scheduler, worker
from fastal.simulation import chunk as chunk_module
from fastal.simulation import plan as plan_module
from fastal.simulation import result as result_module

JIT = hasattr(campaigns.run_many, "py_func")
RUNS = 60 if JIT else 5
POOL = 60 if JIT else 20
GP = GaussianProcess(1.5, 0.0025)
NEVER = Stopper(1e-300)


def artificial(n, seed=0):
    draws = np.random.default_rng(seed)
    x = draws.uniform(-5, 15, n)
    y = np.exp(-((x - 2) ** 2) / 2) + np.exp(-((x - 6) ** 2) / 10) + 1 / (x**2 + 1)
    return x, y + 0.05 * draws.normal(size=n)


X, Y = artificial(700 if JIT else 80)
ARRAYS = ("n_labels", "stopped", "stopped_at", "bounds", "errors", "t_opt", "e_stop")
ARRAYS += ("criteria_stops", "ok")


def same(a, b):
    """Whether two simulations are equal to the last bit, their failures included."""
    for name in ARRAYS:
        one, other = getattr(a, name), getattr(b, name)
        if (one is None) != (other is None):
            return False
        if one is not None and (one.shape != other.shape or one.tobytes() != other.tobytes()):
            return False
    return a.failures == b.failures and (a.eta == b.eta or str(a.eta) == str(b.eta) == "nan")


def small(**more):
    arguments = {"gp": GP, "n_runs": RUNS, "pool_size": POOL, "seed": 3}
    return simulate(X, Y, **(arguments | more))


def data_of(rng):
    """A synthetic problem; module level, so that other processes can import it."""
    x = rng.uniform(-5, 15, 90)
    return x, np.sin(x) + 0.05 * rng.normal(size=90)


def failing(rng):
    """A synthetic problem of which a third fails."""
    if rng.random() < 1 / 3:
        raise RuntimeError("the oracle\nis asleep")
    return data_of(rng)


# Against learn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("initial", [0, 1, 4])
@pytest.mark.parametrize("large", [False, True])
def test_equals_a_loop_of_learn(initial, large, monkeypatch):
    if large:
        monkeypatch.setattr(choose, "EAGER_BELOW", 0)
        monkeypatch.setattr(worker, "STEP", 7)
    stopper = Stopper(0.01)
    result = small(n_runs=8, initial=initial, criterion=stopper)
    alone = small(n_runs=8, initial=initial, criterion=stopper, test=None)
    for run in range(8):
        rows = result.pool(run)
        assert len(set(rows.tolist())) == POOL
        rest = np.setdiff1d(np.arange(len(X)), rows)
        arguments = {"gp": GP, "initial": np.arange(initial), "threads": 1}
        once = learn(X[rows], Y[rows], criterion=stopper, **arguments)
        whole = learn(X[rows], Y[rows], criterion=NEVER, test=(X[rest], Y[rest]), **arguments)
        assert result.n_labels[run] == alone.n_labels[run] == once.n_labels
        assert result.stopped[run] == alone.stopped[run] == once.stopped
        assert result.stopped_at[run] == (once.stopped_at or -1)
        np.testing.assert_allclose(result.bounds[run], whole.bounds, rtol=1e-9)
        np.testing.assert_allclose(result.errors[run], whole.errors, rtol=1e-9)
        length = len(once.bounds)
        np.testing.assert_allclose(alone.bounds[run, :length], once.bounds, rtol=1e-9)
        assert np.isnan(alone.bounds[run, length:]).all()
    assert alone.errors is alone.t_opt is alone.e_stop is alone.eta is None
    assert result.stopped.any() or not JIT


def test_a_fixed_test_set_and_fewer_labels():
    test = artificial(1100 if JIT else 40, seed=9)  # three blocks of rows
    most = POOL // 2
    result = small(n_runs=4, test=test, max_labels=most, criterion=NEVER)
    assert result.errors.shape == (4, most)
    assert (result.n_labels == most).all()
    for run in range(4):
        rows = result.pool(run)
        once = learn(
            X[rows], Y[rows], gp=GP, criterion=NEVER, initial=[0], max_labels=most, test=test
        )
        np.testing.assert_allclose(result.errors[run], once.errors, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["matern12", "matern52"])
def test_several_features(kernel):
    draws = np.random.default_rng(1)
    points = draws.normal(size=(80, 3))
    y = np.sin(points).sum(axis=1)
    gp = GaussianProcess([1.0, 2.0, 3.0], 0.01, kernel=kernel, amplitude=2.0, mean=0.3)
    result = simulate(points, y, gp=gp, criterion=NEVER, n_runs=3, pool_size=20)
    for run in range(3):
        rows = result.pool(run)
        once = learn(points[rows], y[rows], gp=gp, criterion=NEVER, initial=[0])
        np.testing.assert_allclose(result.bounds[run], once.bounds, rtol=1e-9)


def test_paper_measures_by_hand():
    result = small()
    final = result.errors[:, -1]
    eta = final.mean() + 2 * np.sqrt(((final - final.mean()) ** 2).mean())
    assert result.eta == pytest.approx(eta, rel=1e-12)
    for run in range(RUNS):
        below = [t for t, e in enumerate(result.errors[run], start=1) if e <= result.eta]
        assert result.t_opt[run] == (below[0] if below else POOL)
        stop = result.stopped_at[run] if result.stopped[run] else POOL
        assert result.n_labels[run] == stop
        assert result.e_stop[run] == abs(stop - result.t_opt[run])


def test_other_criteria():
    both = Stopper(0.01) & MinLabels(18)
    either = Stopper(0.01) | FixedBudget(9)
    result = small(
        n_runs=10, criteria=[both, either, Stopper(0.01)], criterion=Stopper(0.01), test=None
    )
    assert result.criteria_stops.shape == (10, 3)
    np.testing.assert_array_equal(result.criteria_stops[:, 2], result.stopped_at)
    # the bounds go on behind the stop, since others want to see them
    assert np.isfinite(result.bounds).all()
    for run in range(10):
        for j, criterion in enumerate((both, either)):
            at = criterion.copy().extend(result.bounds[run])
            assert result.criteria_stops[run, j] == (-1 if at is None else at + 1)
    assert len(result.summary()["criteria"]) == 3
    assert f"{either!r}: 10.00 labels" in repr(result)
    # and a composition as the stopper itself
    composed = small(n_runs=10, criterion=either, test=None)
    np.testing.assert_array_equal(composed.stopped_at, result.criteria_stops[:, 1])
    assert (composed.n_labels <= 10).all()
    assert np.isnan(composed.bounds[:, 9:]).all()
    assert np.isfinite(composed.bounds[0, : composed.n_labels[0] - 1]).all()
    assert not either.stopped
    assert same(small(criterion=either), small(criterion=either))


# The same everywhere ----------------------------------------------------------------------------


def test_the_comparison_can_fail():
    a, b = small(n_runs=3), small(n_runs=3)
    assert same(a, b)
    b.bounds[1, 3] = np.nextafter(b.bounds[1, 3], math.inf)
    assert not same(a, b)
    assert not same(a, small(n_runs=3, seed=4))


@pytest.mark.parametrize("n_jobs", [2, 4, -1])
def test_threads_change_nothing(n_jobs):
    assert same(small(n_jobs=n_jobs, criteria=[FixedBudget(5)]), small(criteria=[FixedBudget(5)]))


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_backends_change_nothing(backend):
    if backend != "threading" and not JIT:
        pytest.skip("a process that interprets kernels takes long to import")
    with joblib.parallel_config(backend=backend, n_jobs=2):
        result = small()
    assert same(result, small())


@pytest.mark.parametrize("seconds", [1e-9, 0.002, 100.0])
def test_chunks_change_nothing(seconds, monkeypatch):
    expected = small()
    monkeypatch.setattr(scheduler, "CHUNK_SECONDS", seconds)
    assert same(small(n_jobs=2), expected)


def test_a_chunk_ends_in_time():
    plan, data = plan_module._prepare(
        X,
        Y,
        GaussianProcess(1.5, 0.0025),
        None,
        Stopper(),
        (),
        20,
        1,
        None,
        None,
        0,
        "max_variance",
        True,
        False,
    )
    arrays = (plan, data.Z, data.y, data.test_Z, data.test_y)
    whole = worker.run_chunk(*arrays, 100.0, ((0, 40), (50, 60)))
    assert whole.left == ()
    assert whole.runs.tolist() == [*range(40), *range(50, 60)]
    one = worker.run_chunk(*arrays, 0.0, ((0, 40), (50, 60)))
    assert one.runs.tolist() == [0]
    assert one.left == ((1, 40), (50, 60))
    assert one.bounds.tobytes() == whole.bounds[:1].tobytes()
    again = pickle.loads(pickle.dumps(one))
    assert again.left == one.left
    assert again.bounds.tobytes() == one.bounds.tobytes()


def test_what_chunks_leave_is_shared_out_again(monkeypatch):
    expected = small()
    left = []
    compute = worker.run_chunk

    def in_no_time(*arguments):
        *fixed, _, spans = arguments
        chunk = compute(*fixed, 0.0, spans)
        left.append(chunk.left)
        return chunk

    monkeypatch.setattr(scheduler, "run_chunk", in_no_time)
    assert same(small(), expected)
    assert any(left)
    assert same(small(n_jobs=2), expected)


def test_rows_without_their_tails():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 12))
    lengths = rng.integers(0, 13, 50)
    rows[np.arange(12) >= lengths[:, None]] = np.nan
    found, values = campaigns.without_tails(rows)
    assert found.tolist() == lengths.tolist()
    assert values.tobytes() == rows[~np.isnan(rows)].tobytes()


def test_order_changes_nothing(monkeypatch):
    expected = small()
    cut = scheduler.Tasks.__iter__
    monkeypatch.setattr(scheduler.Tasks, "__iter__", lambda self: iter(list(cut(self))[::-1]))
    assert same(small(n_jobs=2), expected)


def test_more_runs_begin_with_the_same():
    few, many = small(n_runs=3), small(n_runs=6)
    assert few.bounds.tobytes() == many.bounds[:3].tobytes()
    assert few.errors.tobytes() == many.errors[:3].tobytes()


def test_layout_changes_nothing():
    wide = np.zeros((len(X), 4))
    wide[:, 1] = X
    read_only = Y.copy()
    read_only.flags.writeable = False
    result = simulate(wide[:, 1], read_only, gp=GP, n_runs=3, pool_size=POOL, seed=3)
    assert same(result, small(n_runs=3))
    assert same(simulate(list(X), list(Y), gp=GP, n_runs=3, pool_size=POOL, seed=3), result)


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**64 + 5, 3**120])
def test_seeds_are_those_of_numpy(seed):
    out = np.empty(5, dtype=np.uint64)
    run_words(seed, np.arange(5), out)
    children = np.random.SeedSequence(seed).spawn(5)
    assert out.tolist() == [child.generate_state(5, np.uint64)[4] for child in children]


def test_pools_are_drawn_evenly():
    result = simulate(np.arange(10.0), np.zeros(10), gp=GP, n_runs=2000, pool_size=3, test=None)
    pools = np.array([result.pool(run) for run in range(2000)])
    assert (np.sort(pools, axis=1)[:, 1:] > np.sort(pools, axis=1)[:, :-1]).all()
    for place in range(3):
        counts = np.bincount(pools[:, place], minlength=10)
        # chi-square with 9 degrees of freedom; 33.7 is its 0.9999 quantile (scipy.stats.chi2.ppf)
        assert ((counts - 200) ** 2 / 200).sum() < 33.7


@given(st.integers(2, 30), st.integers(0, 2**40), st.sampled_from([0.3, 1.0, 5.0]), st.data())
@settings(max_examples=40 if JIT else 5)
def test_any_small_problem(n, seed, scale, data):
    draws = np.random.default_rng(seed)
    points, y = np.round(draws.normal(size=(n, 2)), 1), draws.normal(size=n)
    size = data.draw(st.integers(1, n - 1))
    initial = data.draw(st.integers(0, size))
    most = data.draw(st.integers(max(1, initial), size))
    result = simulate(
        points, y, gp=GaussianProcess(scale, 0.1), criterion=Stopper(0.05), n_runs=3, pool_size=size,
        initial=initial, max_labels=most, seed=seed,
    )  # fmt: skip
    assert result.bounds.shape == (3, most - initial)
    assert np.isfinite(result.bounds).all()
    assert np.isfinite(result.errors).all()
    assert (result.n_labels[~result.stopped] == most).all()
    assert ((result.t_opt >= 1) & (result.t_opt <= most)).all()


# Callables and failures -------------------------------------------------------------------------


def test_a_callable_makes_the_data():
    result = simulate(data_of, gp=GP, n_runs=6, pool_size=20, seed=5)
    for run, child in enumerate(np.random.SeedSequence(5).spawn(6)):
        x, y = data_of(np.random.default_rng(child))
        rows = result.pool(run)
        once = learn(x[rows], y[rows], gp=GP, criterion=NEVER, initial=[0])
        np.testing.assert_allclose(result.bounds[run], once.bounds, rtol=1e-9)
    assert same(simulate(data_of, gp=GP, n_runs=6, pool_size=20, seed=5, n_jobs=2), result)
    test = artificial(30)
    given_test = simulate(data_of, gp=GP, n_runs=2, pool_size=20, seed=5, test=test)
    assert given_test.bounds.tobytes() == result.bounds[:2].tobytes()
    assert simulate(data_of, gp=GP, n_runs=2).pool_size == 45


def test_failures_are_recorded():
    result = simulate(failing, gp=GP, n_runs=30, pool_size=15, n_jobs=2)
    failed = []
    for run, child in enumerate(np.random.SeedSequence(0).spawn(30)):
        if np.random.default_rng(child).random() < 1 / 3:
            failed.append(run)
    assert [failure.run for failure in result.failures] == failed
    assert failed
    first = result.failures[0]
    assert first.message == "RuntimeError: the oracle\nis asleep"
    assert first.seed == f"SeedSequence(0, spawn_key=({first.run},))"
    assert not result.ok[failed].any()
    assert np.isnan(result.errors[failed]).all()
    assert np.isfinite(result.errors[result.ok]).all()
    assert (result.e_stop[failed] == -1).all()
    assert result.summary()["n_failed"] == len(failed)
    assert f"failed    {len(failed)}; run {failed[0]}: RuntimeError" in repr(result)
    table = result.to_pandas()
    assert table["failure"].notna().sum() == len(failed)
    with pytest.raises(RuntimeError, match="is asleep") as caught:
        simulate(failing, gp=GP, n_runs=30, pool_size=15, errors="raise")
    assert f"in run {failed[0]} of the simulation" in caught.value.__notes__


@pytest.mark.parametrize("large", [False, True])
def test_a_factor_that_breaks_down(large, monkeypatch):
    if large:
        monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    points = np.r_[np.zeros(3), np.arange(1.0, 40.0) * 10]
    arguments = {"gp": GaussianProcess(1.0, 1e-17), "n_runs": 40, "pool_size": 5}
    result = simulate(points, np.zeros(42), criterion=NEVER, **arguments)
    broken = [run for run in range(40) if (result.pool(run) < 3).sum() > 1]
    assert [failure.run for failure in result.failures] == broken
    assert broken
    assert "breaks down at label" in result.failures[0].message
    assert np.isnan(result.bounds[broken]).all()
    with pytest.raises(np.linalg.LinAlgError, match="increase the noise variance"):
        simulate(points, np.zeros(42), errors="raise", **arguments)
    with pytest.warns(UserWarning, match="centre and scale the labels"):
        far = simulate(points, np.full(42, 1e200), gp=GP, n_runs=2, pool_size=5)
    assert len(far.failures) == 2
    assert "too far from what the prior can explain" in far.failures[1].message
    assert math.isnan(far.eta)
    assert "failed    2" in repr(far)


# The result -------------------------------------------------------------------------------------


def test_summary_and_repr():
    result = small()
    said = result.summary()
    assert said["n_runs"] == RUNS
    assert said["n_labels"] == pytest.approx(result.n_labels.mean())
    spread = np.std(result.e_stop, ddof=1) / math.sqrt(RUNS)
    assert said["e_stop_se"] == pytest.approx(spread)
    assert said["savings"] == pytest.approx(1 - result.n_labels.mean() / POOL)
    assert f"Simulation of {RUNS} runs, pools of {POOL}" in repr(result)
    assert "e_stop" in repr(result)
    one = small(n_runs=1)
    assert math.isnan(one.summary()["n_labels_se"])


def test_tables_agree(tmp_path):
    result = small(criteria=[FixedBudget(7)])
    table = result.to_pandas()
    assert table["n_labels"].tolist() == result.n_labels.tolist()
    assert table["criterion_1"].tolist() == [8] * RUNS
    result.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == RUNS
    assert [float(row["error"]) for row in rows] == table["error"].tolist()
    assert [row["stopped"] for row in rows] == [str(v) for v in result.stopped]
    assert rows[0]["failure"] == ""
    at = [int(row["stopped_at"] or -1) for row in rows]
    assert at == result.stopped_at.tolist()
    for run in range(3):
        error = result.errors[run, result.n_labels[run] - 1]
        assert float(rows[run]["error"]) == error


def test_without_pandas(monkeypatch):
    result = small(n_runs=2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_pandas needs pandas: pip install pandas"):
        result.to_pandas()


def test_summary_only():
    full, brief = small(), small(keep="summary")
    assert brief.bounds is None
    assert brief.errors is None
    for name in ("n_labels", "stopped_at", "t_opt", "e_stop"):
        np.testing.assert_array_equal(getattr(brief, name), getattr(full, name))
    assert brief.summary() == full.summary()


@pytest.mark.parametrize("arguments", [{}, {"test": None}, {"keep": "summary"}])
def test_plot(arguments):
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    result = small(**arguments)
    ax = result.plot()
    assert sum(bar.get_height() for bar in ax.patches) == result.stopped.sum()
    assert len(ax.figure.axes) == (1 if arguments else 2)
    _, other = pyplot.subplots()
    assert result.plot(other) is other
    pyplot.close("all")


def test_progress(capsys):
    quiet = small()
    assert capsys.readouterr().err == ""
    assert same(small(progress=True), quiet)
    assert f"{RUNS}/{RUNS}" in capsys.readouterr().err


def test_the_callers_objects_stay():
    stopper, gp = Stopper(), GaussianProcess(1.5, 0.0025)
    stopper.push(1.0)
    x, y = X.copy(), Y.copy()
    simulate(x, y, gp=gp, criterion=stopper, criteria=[stopper], n_runs=2, pool_size=10)
    assert len(stopper) == 1
    assert gp.n_labels == 0
    assert (x == X).all()
    assert (y == Y).all()


def test_default_pools():
    x, y = artificial(60)
    assert simulate(x, y, gp=GP, n_runs=1).pool_size == 30
    assert simulate(x, y, gp=GP, n_runs=1, test=None).pool_size == 60
    assert simulate(x, y, gp=GP, n_runs=1, pool_size=7).bounds.shape == (1, 6)
    assert plan_module.PAPER_POOL == 100


def test_blas_threads_are_given_back():
    from threadpoolctl import threadpool_info, threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        before = [(entry["filepath"], entry["num_threads"]) for entry in threadpool_info()]
        small(n_jobs=2)
        after = {entry["filepath"]: entry["num_threads"] for entry in threadpool_info()}
    assert 2 in dict(before).values()
    assert all(after[path] == threads for path, threads in before)


CHILD = """
import os, sys, time
import numpy as np
from fastal import GaussianProcess, simulate

def make(rng):
    time.sleep(0.01)
    os.write(1, b"made\\n")
    return np.arange(20.0), np.zeros(20)

try:
    simulate(make, gp=GaussianProcess(), n_runs=10**5, pool_size=10, n_jobs={n_jobs}, store={store!r})
except KeyboardInterrupt:
    os.write(1, b"interrupted\\n")
    sys.exit(7)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupted(n_jobs, tmp_path):
    store = str(tmp_path / "runs.sqlite")
    code = CHILD.format(n_jobs=n_jobs, store=store)
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watchdog = threading.Timer(60, child.kill)  # a test that hangs ends as a failure
    watchdog.start()
    try:
        for _ in range(60):
            assert child.stdout.readline() == "made\n"
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate()
    finally:
        watchdog.cancel()
        child.kill()
        child.communicate()
    assert child.returncode == 7, err
    assert out.endswith("interrupted\n")
    assert err == ""
    with closing(sqlite3.connect(store)) as file:
        assert file.execute("SELECT count(*) FROM chunks").fetchone()[0] > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": np.empty((0, 2)), "y": []}, ValueError, "`X` must have at least one row, got 0"),
        ({"X": [1.0, math.nan], "y": [0, 0]}, ValueError, "`X` must be finite, got nan"),
        ({"y": [1.0]}, ValueError, "`y` must have 5 elements, got 1"),
        ({"y": None}, ValueError, "`y` must be given, got None"),
        ({"X": data_of}, ValueError, "`y` must be None when `X` is a callable"),
        ({"X": lambda rng: 3, "y": None}, TypeError, "`X` must return a pair .* got 3"),
        ({"gp": 3.0}, TypeError, "`gp` must be a GaussianProcess, got 3.0"),
        ({"criterion": 3}, TypeError, "`criterion` must be a Stopper or criterion, got 3"),
        ({"criteria": Stopper()}, TypeError, "`criteria` must be a sequence of criteria"),
        ({"criteria": [3]}, TypeError, "`criteria` must hold criteria, got 3"),
        ({"n_runs": 0}, ValueError, "`n_runs` must be at least 1, got 0"),
        ({"n_runs": 1.5}, TypeError, "`n_runs` must be an integer, got 1.5"),
        ({"pool_size": 6}, ValueError, r"`pool_size` must be at most .* \(5\), got 6"),
        ({"pool_size": 5}, ValueError, "it leaves no row for test='rest'"),
        ({"pool_size": 0}, ValueError, "`pool_size` must be at least 1, got 0"),
        ({"initial": 3}, ValueError, r"`initial` must be at most the size .* \(2\), got 3"),
        ({"initial": [0]}, TypeError, r"`initial` must be an integer, got \[0\]"),
        ({"max_labels": 3}, ValueError, "`max_labels` must be between .* got 3"),
        ({"test": "all"}, ValueError, "`test` must be one of 'rest', got 'all'"),
        ({"test": 3}, TypeError, "`test` must be a pair of inputs and labels, got 3"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ({"seed": None}, TypeError, "`seed` must be an integer, got None"),
        ({"n_jobs": 0}, ValueError, "`n_jobs` must not be 0"),
        ({"n_jobs": "all"}, TypeError, "`n_jobs` must be an integer, got 'all'"),
        ({"errors": "skip"}, ValueError, "`errors` must be one of 'record', 'raise', got 'skip'"),
        ({"keep": "some"}, ValueError, "`keep` must be one of 'all', 'summary', got 'some'"),
        ({"progress": 1}, TypeError, "`progress` must be True or False, got 1"),
        ({"store": "no/such/place.db"}, ValueError, "in a directory that exists, got 'no/such"),
        ({"store": "."}, ValueError, "`store` must be a file in a directory"),
        ({"store": 3}, TypeError, "int"),
    ],
)
def test_bad_input(arguments, error, message):
    defaults = {"X": np.arange(5.0), "y": np.zeros(5), "gp": GP, "n_runs": 2}
    with pytest.raises(error, match=message):
        simulate(**(defaults | arguments))


def test_bad_runs_of_the_result():
    result = small(n_runs=2)
    with pytest.raises(ValueError, match=r"`run` must be in \[0, 2\), got 2"):
        result.pool(2)
    used = GaussianProcess()
    used.add(0.0, 0.0)
    with pytest.raises(ValueError, match="`gp` must have no labels, got 1"):
        small(gp=used)
    with pytest.raises(ZeroDivisionError):  # a callable that always fails has no size
        simulate(lambda rng: 1 / 0, gp=GP)


def test_a_callable_with_too_few_rows():
    def shrinking(rng):
        n = 10 if rng.random() < 0.5 else 30  # not the first run, which shows the size
        return np.arange(float(n)), np.zeros(n)

    result = simulate(shrinking, gp=GP, n_runs=20, pool_size=10)
    assert 0 < len(result.failures) < 20
    assert result.failures[0].message == "ValueError: `X` must return at least 11 rows, got 10"


def test_every_public_thing_is_documented():
    for thing in (simulate, Simulation, result_module.Failure, fastal.simulation):
        assert thing.__doc__


def test_equals_the_slow_twin():
    import twins

    runs = 4
    result = small(n_runs=runs, test=None, criterion=Stopper(0.01))
    pools = [result.pool(run) for run in range(runs)]
    bounds, stops = twins.simulate(X[:, None], Y, pools, 1.5, 0.0025, alpha=0.01)
    assert [stop or -1 for stop in stops] == result.stopped_at.tolist()
    for run in range(runs):
        np.testing.assert_allclose(result.bounds[run, : len(bounds[run])], bounds[run], rtol=1e-6)


def test_runs_as_ranges():
    for runs in ([], [3], [0, 1, 2], [0, 2, 3, 4, 9], [1, 3, 5], [7, 8, 2, 3]):
        spans = chunk_module.as_spans(np.array(runs, dtype=np.int64))
        assert [run for low, high in spans for run in range(low, high)] == runs
    assert chunk_module.as_spans(np.arange(5000)) == ((0, 5000),)
