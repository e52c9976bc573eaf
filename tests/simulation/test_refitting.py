"""simulate where each run learns its hyper-parameters: against single learners, run by run."""

import joblib
import numpy as np
import pytest
from numba import config

from fastal import (
    Criterion,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    learn,
    simulate,
)
from fastal.criteria import CrossValidation, MaxVariance, PACBayes

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; test_campaign_by_chance has few",
)


def table(n=220, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, d))
    return X, 50 + 7 * np.sin(X[:, 0]) + 0.5 * rng.standard_normal(n)


X, Y = table()


def single(result, run, **more):
    """The same run by `learn`."""
    rows = result.pool(run)
    rest = np.setdiff1d(np.arange(len(Y)), rows)
    arguments = {"initial": np.arange(result.initial), "test": (X[rest], Y[rest])} | more
    return learn(X[rows], Y[rows], **arguments)


@pytest.mark.parametrize("gp", [None, GaussianProcess(2.0, 0.1, mean=50.0, kernel="matern52")])
def test_a_run_is_a_learner(gp):
    refit = None if gp is None else 1.3
    result = simulate(
        X, Y, gp=gp, refit=refit, criterion=MovementBelow(0.2), n_runs=4, pool_size=60, seed=5
    )
    assert result.initial == (5 if gp is None else 1)
    assert result.stopped.any()
    for run in range(4):
        one = single(result, run, gp=gp, refit=refit, criterion=MovementBelow(0.2))
        at = one.n_labels
        assert (result.stopped_at[run] == at) if one.stopped else not result.stopped[run]
        whole = one.resume() if one.stopped else one
        assert np.array_equal(whole.bounds, result.bounds[run])
        assert np.array_equal(whole.errors, result.errors[run], equal_nan=True)
        assert np.array_equal(whole.rmse, result.rmse[run], equal_nan=True)
        assert np.isnan(whole.rmse[:4]).all()
        assert np.isfinite(whole.rmse[4:]).all()


def test_without_a_test_set_a_run_ends_at_its_stop():
    result = simulate(X, Y, criterion=MovementBelow(0.2), n_runs=3, pool_size=60, test=None)
    for run in range(3):
        one = single(result, run, criterion=MovementBelow(0.2), test=None)
        assert result.n_labels[run] == one.n_labels
        known = result.bounds[run][~np.isnan(result.bounds[run])]
        assert np.array_equal(known, one.bounds)


CRITERIA = [
    Stopper(0.05),
    Stopper(0.05, fall=False),
    MovementBelow(0.3),
    MovementBelow(0.3) | FixedBudget(25),
    MovementBelow(0.3) & MinLabels(40),
    (Stopper(0.05) & MovementBelow(0.4)) | FixedBudget(50),
    FixedBudget(17),
]


def test_criteria_see_what_a_campaign_would_have_shown_them():
    result = simulate(X, Y, criteria=CRITERIA, n_runs=5, pool_size=60, seed=2)
    for run in range(5):
        for j, criterion in enumerate(CRITERIA):
            one = single(result, run, criterion=criterion, test=None)
            wanted = one.stopped_at if one.stopped else -1
            assert result.criteria_stops[run, j] == wanted, (run, criterion)


@pytest.mark.parametrize("criterion", [MaxVariance(8.0), PACBayes(3.0, 9.0), CrossValidation(1.2)])
def test_measures_are_those_of_the_fit_of_the_moment(criterion):
    result = simulate(X, Y, criteria=[criterion], n_runs=2, pool_size=30, seed=1)
    for run in range(2):
        one = single(result, run, criterion=criterion, test=None)
        whole = one.resume() if one.stopped else one
        kept = np.array(whole.criterion.history, dtype=float)
        np.testing.assert_allclose(result.history(0)[run], kept, rtol=1e-7, atol=1e-9)
        assert result.criteria_stops[run, 0] == (one.n_labels if one.stopped else -1)


class Third(Criterion):
    """Says stop from the third bound on, whatever it is; with fits, where two of them agree."""

    def __init__(self):
        super().__init__()

    def says_stop(self, bounds):
        return len(bounds) >= 3


def test_a_criterion_of_ones_own():
    result = simulate(X, Y, criterion=Third(), criteria=[Third()], n_runs=3, pool_size=30)
    assert result.stopped_at.tolist() == [8, 8, 8]
    assert result.criteria_stops[:, 0].tolist() == [8, 8, 8]
    alone = simulate(X, Y, criterion=Third(), n_runs=3, pool_size=30, test=None)
    assert alone.n_labels.tolist() == [8, 8, 8]
    assert (~np.isnan(alone.bounds)).sum(axis=1).tolist() == [3, 3, 3]


def assert_same(one, other):
    assert one.n_labels.tolist() == other.n_labels.tolist()
    for name in ("bounds", "errors", "rmse", "criteria_stops"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def test_results_do_not_depend_on_who_computes_them(tmp_path):
    arguments = {"criteria": [MovementBelow(0.1)], "pool_size": 40, "seed": 3}
    alone = simulate(X, Y, n_runs=9, **arguments)
    assert_same(alone, simulate(X, Y, n_runs=9, n_jobs=3, **arguments))
    path = tmp_path / "runs.sqlite"
    simulate(X, Y, n_runs=4, store=path, **arguments)
    assert_same(alone, simulate(X, Y, n_runs=9, store=path, n_jobs=2, **arguments))
    for other in (
        {"refit": 1.5},
        {"gp": GaussianProcess(2.0, mean=50.0, amplitude=50.0), "initial": 5},
    ):
        with pytest.raises(ValueError, match="store"):
            simulate(X, Y, n_runs=4, store=path, **(arguments | other))


def test_processes():
    arguments = {"pool_size": 30, "seed": 3, "n_runs": 4}
    alone = simulate(X, Y, **arguments)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same(alone, simulate(X, Y, **arguments))


def test_made_data_summary_and_random_labels():
    def make(rng):
        return table(90, 2, int(rng.integers(1000)))

    arguments = {
        "n_runs": 3,
        "pool_size": 40,
        "criterion": MovementBelow(0.2),
        "acquisition": "random",
    }
    result = simulate(make, **arguments)
    assert result.bounds.shape == (3, 35)
    assert np.isfinite(result.rmse[:, 4:]).all()
    short = simulate(make, keep="summary", **arguments)
    assert short.n_labels.tolist() == result.n_labels.tolist()
    assert short.bounds is None


def test_units_do_not_matter():
    arguments = {"n_runs": 3, "pool_size": 40, "criterion": MovementBelow(0.2)}
    plain = simulate(X, Y, **arguments)
    other = simulate(X * [1e6, 1e-6] + 3, 1e-5 * Y, **arguments)
    assert plain.n_labels.tolist() == other.n_labels.tolist()
    np.testing.assert_allclose(other.rmse * 1e5, plain.rmse, rtol=1e-3)


def test_bad_input():
    for more, message in [
        ({"initial": 4}, "`initial` must be at least 5 without a `gp`, for the first fit, got 4"),
        ({"refit": 1.0}, "`refit` must be above 1"),
        ({"pool_size": 4}, r"`initial` must be at most the size of the pool \(4\), got 5"),
        ({"criterion": Stopper(sequential=True, horizon=50)}, "`sequential` must be False"),
        ({"criteria": [Stopper(sequential=True, horizon=50)]}, "`sequential` must be False"),
    ]:
        with pytest.raises(ValueError, match=message):
            simulate(X, Y, **({"n_runs": 2, "pool_size": 30} | more))


def test_labels_that_are_all_equal():
    with pytest.warns(UserWarning, match="could not be fitted to 5 labels"):
        result = simulate(X, np.full(len(Y), 3.0), n_runs=1, pool_size=20)
    assert result.rmse[0, -1] == pytest.approx(0.0, abs=1e-9)
