"""learn, ActiveLearner and Run, against a plain NumPy loop, scikit-learn and their own properties."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import twins
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    _memory,
    learn,
)
from fastal._core import selection_lazy
from fastal.learning import Run, choose, gaussian
from fastal.learning import learner as learner_module

rng = np.random.default_rng(4)


def problem(n, d=3, seed=0):
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, d))
    return X, np.sin(X).sum(axis=1) + 0.1 * draws.normal(size=n)


def artificial(n, seed=0):
    draws = np.random.default_rng(seed)
    x = draws.uniform(-5, 15, n)
    y = np.exp(-((x - 2) ** 2) / 2) + np.exp(-((x - 6) ** 2) / 10) + 1 / (x**2 + 1)
    return x, y + 0.05 * draws.normal(size=n)


NEVER = Stopper(1e-300)
JIT = bool(hasattr(selection_lazy.run, "py_func"))
SIZES = [(1, 1), (2, 2), (30, 30), (100, 60)] + ([(700, 90)] if JIT else [])


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("n", "labels"), SIZES)
def test_equals_a_plain_loop(n, labels, lazy, monkeypatch):
    if lazy:
        monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    X, y = problem(n)
    gp = GaussianProcess(1.3, 0.05, amplitude=1.5, mean=0.2)
    run = learn(X, y, gp=gp, criterion=NEVER, initial=[0], max_labels=labels)
    indices, bounds = twins.select(X, y, 1.3, 0.05, labels, amplitude=1.5, mean=0.2)
    assert run.indices.tolist() == indices
    np.testing.assert_allclose(run.bounds, bounds[1:], rtol=1e-9, atol=1e-9)
    assert gp.n_labels == 0


@pytest.mark.parametrize("seed", [0, 7, 2**40, 2**100])
def test_random_rows_are_those_of_default_rng(seed):
    X, y = problem(40)
    gp, draws = GaussianProcess(1.3, 0.05), np.random.default_rng(seed)
    first = draws.permutation(40)[:3]
    run = learn(X, y, gp=gp, criterion=NEVER, initial=3, max_labels=5, seed=seed)
    assert run.indices[:3].tolist() == first.tolist()
    run = learn(X, y, gp=gp, criterion=NEVER, initial=3, acquisition="random", seed=seed)
    rest = draws.permutation(np.setdiff1d(np.arange(40), first))
    assert run.indices.tolist() == [*first, *rest]


@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52"])
@pytest.mark.parametrize("scale", [0.8, [0.8, 2.0, 1.1]])
def test_other_kernels(kernel, scale, monkeypatch):
    X, y = problem(120)
    gp = GaussianProcess(scale, 0.05, kernel=kernel)
    eager = learn(X, y, gp=gp, criterion=NEVER, seed=3)
    monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    lazy = learn(X, y, gp=gp, criterion=NEVER, seed=3)
    assert (eager.indices == lazy.indices).all()
    by_hand = gp.copy()
    expected = [by_hand.add(X[i], y[i]) for i in eager.indices]
    np.testing.assert_allclose(eager.bounds, expected[1:], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(lazy.bounds, expected[1:], rtol=1e-8, atol=1e-10)


def test_posterior_equals_scikit_learn():
    X, y = problem(80)
    run = learn(X, y, gp=GaussianProcess(1.3, 0.05), criterion=NEVER, seed=0, max_labels=50)
    peer = GaussianProcessRegressor(RBF(1.3), alpha=0.05, optimizer=None)
    peer.fit(X[run.indices], y[run.indices])
    mean, cov = run.gp.predict(X, return_cov=True)
    expected = peer.predict(X, return_cov=True)
    np.testing.assert_allclose(mean, expected[0], atol=1e-8)
    np.testing.assert_allclose(cov, expected[1], atol=1e-8)


@pytest.mark.parametrize("lazy", [False, True])
def test_greedy_properties(lazy, monkeypatch):
    if lazy:
        monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    X, y = problem(150)
    seen = []

    def look(learner):
        gp = GaussianProcess(0.9, 0.02)
        gp.add_batch(X[learner.run().indices], y[learner.run().indices])
        seen.append(gp.predict(X, return_var=True)[1])

    run = learn(
        X, y, gp=GaussianProcess(0.9, 0.02), criterion=NEVER, seed=1, max_labels=40, on_label=look
    )
    assert len(set(run.indices.tolist())) == 40
    for t in range(1, 40):
        assert (seen[t] <= seen[t - 1] + 1e-12).all()  # variances never grow
        unlabelled = np.setdiff1d(np.arange(150), run.indices[:t])
        best = seen[t - 1][unlabelled].max()
        assert seen[t - 1][run.indices[t]] == pytest.approx(best, rel=1e-9)


def test_ties_go_to_the_lower_index(monkeypatch):
    X = np.array([0.0, 100.0, 200.0, 300.0, 400.0])
    for below in (2048, 0):
        monkeypatch.setattr(choose, "EAGER_BELOW", below)
        run = learn(X, np.zeros(5), gp=GaussianProcess(1.0, 0.1), criterion=NEVER, initial=[3])
        assert run.indices.tolist() == [3, 0, 1, 2, 4]


@pytest.mark.skipif(not JIT, reason="large pools take too long without the JIT")
def test_threads_do_not_change_results():
    X, y = problem(5000, 2)
    test = problem(2500, 2, seed=9)
    runs = [
        learn(
            X, y, gp=GaussianProcess(0.5, 0.01), criterion=NEVER, seed=2, max_labels=150, test=test,
            threads=threads,
        )
        for threads in (1, 2, 3)
    ]  # fmt: skip
    for other in runs[1:]:
        assert (other.indices == runs[0].indices).all()
        assert (other.bounds == runs[0].bounds).all()
        assert (other.errors == runs[0].errors).all()


@pytest.mark.parametrize("lazy", [False, True])
def test_errors_at_every_label(lazy, monkeypatch):
    if lazy:
        monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    X, y = problem(70)
    X_test, y_test = problem(33, seed=5)
    noise = 0.05
    run = learn(
        X, y, gp=GaussianProcess(1.3, noise), criterion=NEVER, seed=0, test=(X_test, y_test)
    )
    assert run.errors.shape == (70,)
    gp = GaussianProcess(1.3, noise)
    for t, i in enumerate(run.indices):
        gp.add(X[i], y[i])
        mean, var = gp.predict(X_test, return_var=True)
        loss = ((y_test - mean) ** 2 + var).mean() / (2 * noise) + math.log(2 * math.pi * noise) / 2
        assert run.errors[t] == pytest.approx(loss, rel=1e-8)


def test_stops_as_the_stopper_says():
    x, y = artificial(300)
    gp = GaussianProcess(1.5, 0.0025)
    run = learn(x, y, gp=gp, criterion=Stopper(), seed=0)
    assert run.stopped
    assert run.stopped_at == run.n_labels < 100
    assert len(run.bounds) == run.n_labels - 1
    again = Stopper()
    assert again.extend(run.bounds) == run.n_labels - 1
    assert again.verdict.reason == run.verdict.reason
    again.set_horizon(299)  # as `learn` told the run's own
    again.reset().extend(run.bounds)
    assert str(again.verdict) == str(run.verdict)
    assert run.p_values[-1] == again.p_value <= 1e-3 < run.p_values[-2]
    assert run.savings == 1 - run.n_labels / 300
    assert repr(run) == f"Run({run.n_labels} of 300 labels; {run.verdict})"
    assert (run.criterion.bounds == run.bounds).all()
    # the same by an oracle, by a criterion that is no Stopper, and by asking and telling
    oracle = learn(x, lambda i, point: y[i], gp=gp, criterion=Stopper(), seed=0)
    either = learn(x, y, gp=gp, criterion=Stopper() | FixedBudget(250), seed=0)
    learner = ActiveLearner(x, gp=gp, criterion=Stopper(), seed=0)
    while not learner.finished:
        verdict = learner.tell(y[learner.ask()])
    assert verdict.stop is True
    for other in (oracle, either, learner.run()):
        assert (other.indices == run.indices).all()
        np.testing.assert_array_equal(other.bounds, run.bounds)
        assert other.stopped_at == run.stopped_at


def test_settings_of_the_stopper_count():
    x, y = artificial(200)
    gp = GaussianProcess(1.5, 0.0025)
    plain = learn(x, y, gp=gp, criterion=Stopper(), seed=0)
    strict = learn(x, y, gp=gp, criterion=Stopper(1e-5), seed=0)
    both = learn(x, y, gp=gp, criterion=Stopper() & MinLabels(60), seed=0)
    assert plain.n_labels < strict.n_labels
    assert both.n_labels >= 61
    used = Stopper()
    used.extend([1.0, 2.0])
    assert learn(x, y, gp=gp, criterion=used, seed=0).n_labels == plain.n_labels
    assert len(used) == 2


def test_going_on_after_a_stop():
    x, y = artificial(120)
    test = artificial(200, seed=3)
    gp = GaussianProcess(1.5, 0.0025)
    run = learn(x, y, gp=gp, criterion=Stopper(), seed=0, test=test)
    more = run.resume(max_labels=run.n_labels + 10)
    assert more.n_labels == run.n_labels + 10
    assert (more.stopped, more.stopped_at) == (True, run.stopped_at)
    full = more.resume()
    assert full.n_labels == 120
    assert full.stopped_at == run.stopped_at
    never = learn(x, y, gp=gp, criterion=NEVER, seed=0, test=test)
    assert (full.indices == never.indices).all()
    np.testing.assert_allclose(full.bounds, never.bounds, rtol=1e-12)
    np.testing.assert_allclose(full.errors, never.errors, rtol=1e-9)
    assert len(run.criterion) == len(run.bounds)
    with pytest.raises(ValueError, match="the run has been resumed already"):
        run.resume()
    with pytest.raises(ValueError, match="`max_labels` must be between 120 and 120, got 121"):
        full.resume(max_labels=121)


@pytest.mark.parametrize("lazy", [False, True])
def test_an_oracle_that_fails(lazy, monkeypatch):
    if lazy:
        monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    x, y = artificial(100)
    gp = GaussianProcess(1.5, 0.0025)
    expected = learn(x, y, gp=gp, criterion=Stopper(), seed=0)
    calls = []

    def oracle(index, point):
        assert point.shape == (1,)
        assert point[0] == x[index]
        calls.append(index)
        if len(calls) == 6:
            raise ConnectionError("the laboratory is closed")
        if len(calls) == 9:
            return math.nan
        if len(calls) == 12:
            raise KeyboardInterrupt
        return y[index]

    with pytest.raises(ConnectionError, match="the laboratory is closed") as closed:
        learn(x, oracle, gp=gp, criterion=Stopper(), seed=0)
    run = closed.value.run
    assert isinstance(run, Run)
    assert run.n_labels == 5
    with pytest.raises(
        ValueError, match=r"invalid label for point \d+: `y` must be finite, got nan"
    ) as bad:
        run.resume()
    assert bad.value.run.n_labels == 7
    with pytest.raises(KeyboardInterrupt) as stopped:
        bad.value.run.resume(oracle)
    final = stopped.value.run.resume(y)
    assert (final.indices == expected.indices).all()
    np.testing.assert_array_equal(final.bounds, expected.bounds)
    for value in ("a", None, [1.0, 2.0]):
        with pytest.raises(TypeError, match=r"invalid label for point \d+: `y` must be a real"):
            learn(x, lambda i, p, value=value: value, gp=gp, criterion=Stopper(), seed=0)


def test_initial_labels():
    x, y = artificial(50)
    gp = GaussianProcess(1.5, 0.0025)
    chosen = learn(x, y, gp=gp, criterion=NEVER, initial=[7, 3, 9], max_labels=10)
    assert chosen.indices[:3].tolist() == [7, 3, 9]
    assert len(chosen.bounds) == 7
    none = learn(x, y, gp=gp, criterion=NEVER, initial=0, max_labels=10)
    assert len(none.bounds) == 10
    assert none.indices[0] == 0  # all variances are equal
    five = learn(x, y, gp=gp, criterion=NEVER, initial=5, max_labels=5, seed=1)
    assert (five.n_labels, len(five.bounds)) == (5, 0)
    assert five.verdict.stop is None
    seeds = {tuple(learn(x, y, gp=gp, criterion=NEVER, initial=3, max_labels=3, seed=s).indices)
             for s in range(5)}  # fmt: skip
    assert len(seeds) > 1


def test_random_acquisition():
    x, y = artificial(60)
    gp = GaussianProcess(1.5, 0.0025)
    run = learn(x, y, gp=gp, criterion=NEVER, acquisition="random", seed=5)
    assert sorted(run.indices.tolist()) == list(range(60))
    same = learn(x, lambda i, p: y[i], gp=gp, criterion=NEVER, acquisition="random", seed=5)
    assert (run.indices == same.indices).all()
    assert not (
        run.indices == learn(x, y, gp=gp, criterion=NEVER, acquisition="random", seed=6).indices
    ).all()
    by_hand = gp.copy()
    expected = [by_hand.add(x[i], y[i]) for i in run.indices]
    np.testing.assert_allclose(run.bounds, expected[1:], rtol=1e-8, atol=1e-10)


def test_acquisition_of_ones_own():
    x, y = artificial(60)
    gp = GaussianProcess(1.5, 0.0025)
    plain = learn(x, y, gp=gp, criterion=Stopper(), seed=0)
    own = learn(x, y, gp=gp, criterion=Stopper(), seed=0, acquisition=lambda mean, var: var)
    assert (own.indices == plain.indices).all()
    np.testing.assert_allclose(own.bounds, plain.bounds, rtol=1e-12)

    def optimistic(mean, var):
        model = GaussianProcess(1.5, 0.0025)
        model.add_batch(x[learner.run().indices], y[learner.run().indices])
        m, v = model.predict(x, return_var=True)
        np.testing.assert_allclose(mean, m, atol=1e-9)
        np.testing.assert_allclose(var, v, atol=1e-9)
        return mean + 2 * np.sqrt(var)

    learner = ActiveLearner(x, gp=gp, criterion=NEVER, seed=0, acquisition=optimistic)
    for _ in range(12):
        learner.tell(y[learner.ask()])
    with pytest.raises(ValueError, match=r"`acquisition` must return 60 scores, got shape \(2,\)"):
        learn(x, y, gp=gp, criterion=NEVER, acquisition=lambda m, v: [1.0, 2.0])


def test_asking_twice_is_asking_once():
    x, y = artificial(30)
    learner = ActiveLearner(
        x, gp=GaussianProcess(1.5, 0.01), criterion=Stopper(), max_labels=3, seed=0
    )
    first = learner.ask()
    assert learner.ask() == first
    assert learner.tell(y[first]).stop is None
    for bad in (math.inf, "a"):
        with pytest.raises((ValueError, TypeError), match="`y` must be"):
            learner.tell(bad)
    for nobody_asked in (1.0, [1.0], [1.0, 2.0], None):
        with pytest.raises(ValueError, match="`index` must be given: no point was asked for"):
            learner.tell(nobody_asked)
    assert learner.n_labels == 1
    assert len(learner.pending) == len(learner.skipped) == 0
    for _ in range(2):
        learner.ask()
        learner.tell(1.0)
    assert learner.finished
    with pytest.raises(ValueError, match="all 3 labels are used: raise `max_labels`"):
        learner.ask()
    assert "ActiveLearner(3 of 30 labels, too early" in repr(learner)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("acquisition", ["max_variance", "random"])
def test_saved_and_loaded(lazy, acquisition, monkeypatch):
    if lazy:
        monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    x, y = artificial(80)
    gp = GaussianProcess(1.5, 0.0025, kernel="matern52")
    learner = ActiveLearner(
        x,
        gp=gp,
        criterion=Stopper(0.01) | FixedBudget(60),
        initial=3,
        seed=0,
        acquisition=acquisition,
    )
    for _ in range(10):
        learner.tell(y[learner.ask()])
    asked = learner.ask()
    twin = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), x)
    assert twin.ask() == asked
    while not learner.finished:
        assert twin.ask() == learner.ask()
        label = y[learner.ask()]
        assert str(twin.tell(label)) == str(learner.tell(label))
    assert twin.finished
    np.testing.assert_array_equal(twin.run().bounds, learner.run().bounds)


def test_damaged_states():
    x, y = artificial(40)
    learner = ActiveLearner(x, gp=GaussianProcess(1.5, 0.01), criterion=Stopper(), seed=0)
    for _ in range(5):
        learner.tell(y[learner.ask()])
    good = learner.to_dict()
    for change, message in [
        ({"kind": "Run"}, "`state` must describe an ActiveLearner of version 3, got 'Run', 3"),
        ({"version": 4}, "must describe an ActiveLearner of version 3"),
        ({"labels": [1.0]}, "`labels` must have 5 elements, got 1"),
        ({"indices": [0, 0, 1, 2, 3]}, "out of the pool, or there twice"),
        ({"indices": [0, 99, 1, 2, 3]}, "out of the pool, or there twice"),
        ({"more": 1}, "`state` has the unknown 'more'"),
        ({"acquisition": "best"}, "`acquisition` must be one of"),
        ({"acquisition": None}, "`acquisition` must be given"),
        ({"criterion": {}}, "`state` must describe a Criterion"),
    ]:
        with pytest.raises(ValueError, match=message):
            ActiveLearner.from_dict(good | change, x)
    with pytest.raises(ValueError, match="`X` is another pool than the saved one"):
        ActiveLearner.from_dict(good, x + 1)
    assert ActiveLearner.from_dict(good, x).n_labels == 5


def test_pandas_keeps_names():
    X, y = problem(30)
    table = pd.DataFrame(X, index=[f"sample {i}" for i in range(30)])
    run = learn(table, pd.Series(y), gp=GaussianProcess(1.3, 0.05), criterion=NEVER, seed=0)
    assert run.names == [f"sample {i}" for i in run.indices]
    assert json.loads(json.dumps(run.to_dict()))["names"] == run.names
    assert learn(X, y, gp=GaussianProcess(), criterion=NEVER, max_labels=3).names is None


def test_to_dict_is_json():
    x, y = artificial(60)
    run = learn(x, y, gp=GaussianProcess(1.5, 0.0025), criterion=Stopper(), seed=0, test=(x, y))
    state = json.loads(json.dumps(run.to_dict()))
    assert state["indices"] == run.indices.tolist()
    assert state["errors"] == run.errors.tolist()
    assert Stopper.from_dict(state["criterion"]).stopped_at == run.stopped_at - 1
    assert state["verdict"] == str(run.verdict)


def test_progress(capsys):
    x, y = artificial(60)
    gp = GaussianProcess(1.5, 0.0025)
    plain = learn(x, y, gp=gp, criterion=Stopper(), seed=0)
    assert capsys.readouterr().err == ""
    shown = learn(x, y, gp=gp, criterion=Stopper(), seed=0, progress=True)
    assert "label" in capsys.readouterr().err
    assert (plain.indices == shown.indices).all()


def test_numerical_edges():
    gp = GaussianProcess(1.0, 1e-12)
    duplicates = np.repeat(np.arange(5.0), 4)
    run = learn(duplicates, duplicates, gp=GaussianProcess(1.0, 0.1), criterion=NEVER, seed=0)
    assert np.isfinite(run.bounds).all()
    with pytest.raises(np.linalg.LinAlgError, match="increase the noise variance") as broken:
        learn(np.zeros(5), np.zeros(5), gp=GaussianProcess(1.0, 1e-17), criterion=NEVER)
    assert broken.value.run.n_labels == 1
    one = learn([[3.0]], [1.0], gp=gp, criterion=Stopper())
    assert (one.n_labels, one.savings, one.stopped_at) == (1, 0.0, None)
    with pytest.warns(UserWarning, match="centre and scale the labels"):
        learn(np.arange(5.0), np.full(5, 124.0), gp=GaussianProcess(), criterion=NEVER)


def test_a_pool_too_large_for_memory(monkeypatch):
    with pytest.raises(MemoryError, match=r"needs 80000\.0 GB, this machine has"):
        gaussian.check_memory(10**8, 10**5)
    monkeypatch.setattr(_memory, "SHARE", 1e-9)
    with pytest.raises(MemoryError, match="a pool of 50 points with 50 labels needs"):
        learn(np.arange(50.0), np.arange(50.0), gp=GaussianProcess(), criterion=NEVER)


@given(st.integers(1, 25), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 5.0]))
def test_any_small_pool(n, seed, scale):
    draws = np.random.default_rng(seed)
    X = np.round(draws.normal(size=(n, 2)), 1)
    y = draws.normal(size=n)
    run = learn(X, y, gp=GaussianProcess(scale, 0.1), criterion=Stopper(0.05), seed=seed)
    assert len(set(run.indices.tolist())) == run.n_labels <= n
    gp = GaussianProcess(scale, 0.1)
    expected = [gp.add(X[i], y[i]) for i in run.indices]
    np.testing.assert_allclose(run.bounds, expected[1:], rtol=1e-7, atol=1e-10)


X5, Y5 = np.arange(5.0), np.zeros(5)
GP = GaussianProcess()
USED = GaussianProcess()
USED.add(0.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": np.empty((0, 2)), "y_or_oracle": []}, ValueError, "`X` must have at least one row"),
        ({"X": [1.0, math.nan]}, ValueError, "`X` must be finite, got nan"),
        ({"X": ["a"]}, TypeError, "`X` must hold real numbers"),
        ({"y_or_oracle": [1.0]}, ValueError, "`y` must have 5 elements, got 1"),
        (
            {"y_or_oracle": [0, 0, math.inf, 0, 0]},
            ValueError,
            "`y` must be finite, got inf at index 2",
        ),
        ({"gp": USED}, ValueError, "`gp` must have no labels, got 1"),
        (
            {"gp": 1.5},
            TypeError,
            "a GaussianProcess or LaplaceClassifier, got 1.5",
        ),
        ({"gp": None, "initial": 4}, ValueError, "`initial` must be at least 5 without a `gp`"),
        ({"gp": None, "refit": 1.0}, ValueError, "`refit` must be above 1"),
        ({"gp": GaussianProcess([1.0, 2.0])}, ValueError, r"`X` must have shape \(n, 2\)"),
        ({"criterion": None}, TypeError, "`criterion` must be a Stopper or criterion, got None"),
        (
            {"initial": 6},
            ValueError,
            r"`initial` must be at most the size of the pool \(5\), got 6",
        ),
        ({"initial": -1}, ValueError, "`initial` must be at least 0, got -1"),
        ({"initial": [0, 0]}, ValueError, "`initial` must not hold an index twice"),
        ({"initial": [0, 5]}, ValueError, r"`initial` must hold indices in \[0, 5\), got 5"),
        ({"initial": [0.5]}, TypeError, "`initial` must be a number or indices"),
        (
            {"max_labels": 6},
            ValueError,
            r"`max_labels` must be between `initial` \(1\) and .* got 6",
        ),
        ({"max_labels": 2, "initial": 3}, ValueError, "`max_labels` must be between"),
        ({"max_labels": 0}, ValueError, "`max_labels` must be at least 1, got 0"),
        (
            {"acquisition": "best"},
            ValueError,
            "`acquisition` must be one of 'max_variance', 'random'",
        ),
        ({"test": 3}, TypeError, "`test` must be a pair of inputs and labels, got 3"),
        ({"test": (X5, Y5[:2])}, ValueError, "`test` must have 5 elements, got 2"),
        ({"test": ([], [])}, ValueError, "`test` must have at least one row"),
        ({"threads": 0}, ValueError, "`threads` must be at least 1, got 0"),
        ({"progress": 1}, TypeError, "`progress` must be True or False, got 1"),
        ({"on_label": 1}, TypeError, "`on_label` must be callable, got 1"),
    ],
)
def test_bad_input(arguments, error, message):
    defaults = {"X": X5, "y_or_oracle": Y5, "gp": GP, "criterion": Stopper()}
    with pytest.raises(error, match=message):
        learn(**(defaults | arguments))
    assert GP.n_labels == 0


def test_every_public_thing_is_documented():
    for thing in (learn, ActiveLearner, Run):
        assert thing.__doc__
    assert learner_module.__doc__


@pytest.mark.parametrize("below", [0, 2048])
def test_a_budget_that_is_raised_on_the_way(monkeypatch, below):
    # The message says "raise `max_labels`": labels beyond the first budget had no room, and were
    # written behind the buffers.
    monkeypatch.setattr(choose, "EAGER_BELOW", below)
    x = np.linspace(0, 10, 60)
    settings = {"gp": GaussianProcess(1.0, 0.1), "criterion": Stopper(), "seed": 0}
    learner, whole = ActiveLearner(x, max_labels=5, **settings), ActiveLearner(x, **settings)
    for _ in range(60):
        if learner.n_labels == learner.max_labels:
            with pytest.raises(ValueError, match="raise `max_labels`"):
                learner.ask()
            learner.max_labels = min(60, learner.max_labels + 30)
        index = learner.ask()
        assert index == whole.ask()
        learner.tell(np.sin(x[index]))
        whole.tell(np.sin(x[index]))
    assert (learner.run().bounds == whole.run().bounds).all()
    with pytest.raises(ValueError, match="all 60 points of the pool are labelled"):
        learner.ask()
    for bad in (100, 59, 0, 1.5, "a"):  # more than there are points, fewer than the labels
        with pytest.raises((ValueError, TypeError), match="`max_labels` must be"):
            learner.max_labels = bad
    assert learner.max_labels == 60


def test_another_budget_moves_the_horizon():
    x = np.random.default_rng(0).uniform(0, 10, (300, 2))
    y = np.sin(x[:, 0]) + np.cos(x[:, 1])

    def labelled(learner, n):
        while learner.n_labels < n and not learner.finished:
            learner.tell(y[learner.ask()])
        return learner

    given = {"gp": GaussianProcess(1.5, 0.01), "criterion": MovementBelow(0.05), "seed": 0}
    learner = labelled(ActiveLearner(x, max_labels=40, **given), 20)
    learner.max_labels = 250
    again = ActiveLearner.from_dict(learner.to_dict(), x)
    whole = labelled(ActiveLearner(x, max_labels=250, **given), 250)
    for one in (learner, again):
        labelled(one, 250)
        assert one.criterion.stopped_at == whole.criterion.stopped_at
        assert one.n_labels == whole.n_labels > 40
    learner = ActiveLearner(x, max_labels=40, **given)
    learner.max_labels = None
    learner.extend_pool(x[:5])
    assert learner.max_labels == 305
    learner.ask(10)
    with pytest.raises(ValueError, match="`max_labels` must be between 10 and"):
        learner.max_labels = 9
