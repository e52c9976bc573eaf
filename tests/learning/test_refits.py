"""Campaigns that learn their hyper-parameters on the way, against a slow twin and their definition."""

import copy
import json
import math
import os

import numpy as np
import pytest
import twins
from numba import config

from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    learn,
)
from fastal.criteria import MaxVariance
from fastal.criteria.experiments import CrossValidation, GroundTruth, PACBayes
from fastal.learning import choose, next_refit, refit
from fastal.models import LaplaceClassifier
from fastal.stopping.criterion import Criterion

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; test_campaign_by_chance has few",
)

HAS_DATA = bool(os.environ.get("FASTAL_DATA"))
NEVER = MovementBelow(1e-9)


def problem(n=60, d=2, seed=0, noise=0.1):
    """A smooth function of some features with their own units, and its noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * 10.0 ** np.arange(d) + 3.0
    Z = (X - 3.0) / 10.0 ** np.arange(d)
    y = 20 + 5 * np.sin(3 * Z[:, 0]) + Z.sum(axis=1) + noise * rng.standard_normal(n)
    return X, y


def labelled(learner, y, n):
    """Label single points up to n labels."""
    while learner.n_labels < n:
        learner.tell(y[learner.ask()])
    return learner


# The twin ------------------------------------------------------------------------------------------------


def compare_with_twin(X, y, share, labels, seed, test=None):
    learner = ActiveLearner(X, criterion=MovementBelow(share), seed=seed)
    twin = twins.Campaign(X, learner.initial_rows.tolist(), share)
    losses, errors = [], []
    for _ in range(labels):
        row = learner.ask()
        assert twin.ask() == row, len(twin.y)
        learner.tell(y[row])
        twin.tell(row, y[row])
        assert len(learner.refits) == len(twin.fits)
        if twin.fits:
            fit, slow = learner.refits[-1], twin.fits[-1]
            assert fit.n_labels == slow.n_labels
            assert fit.at_edge == slow.at_edge
            assert fit.fitted
            assert fit[1:4] == pytest.approx(slow[1:4], rel=1e-4)
            assert fit.mean == pytest.approx(slow.mean, rel=1e-4, abs=1e-4 * np.std(y))
        np.testing.assert_allclose(learner.bounds, twin.bounds, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(learner.criterion.bounds, learner.bounds, rtol=0, atol=0)
        assert learner.criterion.left == pytest.approx(twin.left, rel=1e-3, nan_ok=True)
        assert learner.criterion.stopped_at == twin.stopped_at
        if test is not None:
            loss, rmse = twin.errors(*test)
            losses.append(loss)
            errors.append(rmse)
    if test is not None:
        run = learner.run(test)
        np.testing.assert_allclose(run.rmse, errors, rtol=1e-3)
        np.testing.assert_allclose(run.errors, losses, rtol=1e-3, atol=1e-3)
        assert np.isnan(run.rmse[:4]).all()
        assert np.isfinite(run.rmse[4:]).all()
    return learner


@pytest.mark.parametrize(("d", "seed"), [(1, 0), (2, 1), (3, 2), (4, 3)])
def test_a_campaign_like_its_twin(d, seed):
    X, y = problem(50, d, seed)
    test = problem(20, d, seed + 100)
    learner = compare_with_twin(X, y, 0.1, 36, seed, test)
    if d == 1:
        assert learner.stopped


def test_the_twin_to_the_end():
    X, y = problem(14, 1, 5)
    assert compare_with_twin(X, y, 1e-6, 14, 0).criterion.stopped_at in (None, 9)


@pytest.mark.skipif(not HAS_DATA, reason="FASTAL_DATA names no folder with the data")
def test_a_real_table_like_its_twin():
    from fastal.datasets import load

    X, y = load("yacht")
    rows = np.random.default_rng(0).permutation(len(X))[:60]
    compare_with_twin(X[rows], y[rows], 0.2, 30, 0, (X[:40], y[:40]))


# Fits ----------------------------------------------------------------------------------------------------


def test_the_schedule():
    times = [5]
    while times[-1] < 100:
        times.append(next_refit(times[-1]))
    assert times == [5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86, 103]
    assert next_refit(10, 1.01) == 11
    assert next_refit(10, growth=3) == 30
    X, y = problem()
    run = learn(X, y, criterion=NEVER, seed=0)
    assert [fit.n_labels for fit in run.refits] == times[:15]
    run = learn(X, y, criterion=NEVER, seed=0, refit=2.0, initial=7)
    assert [fit.n_labels for fit in run.refits] == [7, 14, 28, 56]
    assert len(run.bounds) == 53


def test_units_of_the_pool():
    X, y = problem(60, 3)
    run = learn(X, y, criterion=NEVER, seed=0, max_labels=40)
    fit = run.refits[-1]
    np.testing.assert_allclose(run.gp.lengthscale, fit.lengthscale * X.std(axis=0), rtol=1e-12)
    assert (run.gp.noise, run.gp.amplitude, run.gp.mean) == (fit.noise, fit.amplitude, fit.mean)
    assert run.gp.n_labels == 40
    assert run.prior.n_labels == 0
    fresh = run.prior.copy()
    bounds = fresh.add_batch(X[run.indices], run.labels)
    np.testing.assert_allclose(run.bounds, bounds[5:], rtol=1e-8)
    assert np.sqrt(np.mean((run.gp.predict(X) - y) ** 2)) < 2


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
@pytest.mark.parametrize("lengthscale", [1.0, [1.0, 10.0]])
def test_a_process_whose_kernel_stays(kernel, lengthscale):
    X, y = problem(60, 2)
    gp = GaussianProcess(lengthscale, 0.1, kernel=kernel, mean=20.0, amplitude=20.0)
    run = learn(X, y, gp=gp, refit=1.5, criterion=NEVER, seed=0)
    assert [fit.n_labels for fit in run.refits] == [5, 8, 12, 18, 27, 41]
    assert run.n_initial == 1
    assert len(run.bounds) == 59
    fit = run.refits[-1]
    assert run.gp.kernel == kernel
    unit = np.array([1.0, 1.0]) if lengthscale == 1.0 else np.array([0.1, 1.0]) * math.sqrt(10)
    np.testing.assert_allclose(
        run.gp.lengthscale, (fit.lengthscale * unit)[: np.size(run.gp.lengthscale)]
    )
    slow = twins.weak_maximum(X[run.indices[:41]] / unit, run.labels[:41], kernel=kernel)
    assert fit[1:4] == pytest.approx(slow[1:4], rel=1e-4)
    # the caller's is as it was
    assert gp.lengthscale == pytest.approx(lengthscale)


def test_constant_columns_count_for_nothing():
    X, y = problem(50, 2)
    wide = np.column_stack([X[:, 0], np.full(50, 7.5), X[:, 1], np.zeros(50)])
    a, b = (learn(table, y, criterion=NEVER, seed=0) for table in (X, wide))
    assert a.indices.tolist() == b.indices.tolist()
    assert a.bounds.tolist() == b.bounds.tolist()
    assert a.refits == b.refits
    a, b = (
        learn(table, y, criterion=NEVER, seed=0, gp=GaussianProcess(3.0, mean=20.0, amplitude=20.0),
              refit=1.2)
        for table in (X, wide)
    )  # fmt: skip
    assert a.refits == b.refits
    twice = np.column_stack([X, X])
    run = learn(twice, y, criterion=NEVER, seed=0, test=(twice, y))
    assert run.rmse[-1] < run.rmse[4]
    with pytest.warns(UserWarning, match="no column varies, all 20 points are alike"):
        run = learn(np.ones((20, 2)), y[:20], criterion=NEVER, seed=0)
    assert run.n_labels == 20


def test_duplicated_inputs_are_replicates():
    X, y = problem(20, 1)
    rng = np.random.default_rng(0)
    X, y = np.vstack([X, X, X]), np.r_[y, y, y] + 0.3 * rng.standard_normal(60)
    run = learn(X, y, criterion=NEVER, seed=0)
    assert run.n_labels == 60
    assert 0.02 < run.refits[-1].noise < 0.4
    exact = np.r_[y[:20], y[:20], y[:20]]
    assert learn(X, exact, criterion=NEVER, seed=0).n_labels == 60
    gp = GaussianProcess(1.0, 0.1, mean=22.0, amplitude=10.0)
    learner = ActiveLearner(X, gp=gp, criterion=NEVER, known=([3], [20.0]))
    learner.tell(25.0, index=23)
    assert learner.model.predict(X[[3]])[0] == pytest.approx(22.5, abs=0.1)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-10, 1e10, 1e100, 1e149])
def test_huge_and_tiny_units(scale):
    X, y = problem(40, 2)
    y -= 20
    plain = learn(X, y, criterion=MovementBelow(0.1), seed=0, test=(X, y))
    for inputs, labels in ((scale, 1.0), (1.0, scale / 10), (scale, scale / 10)):
        # powers of two change no digit
        a, b = (2.0 ** round(math.log2(unit)) for unit in (inputs, labels))
        run = learn(X * a, y * b, criterion=MovementBelow(0.1), seed=0, test=(X * a, y * b))
        assert run.indices.tolist() == plain.indices.tolist()
        np.testing.assert_allclose(run.bounds, plain.bounds, rtol=1e-6, atol=1e-12)
        assert run.stopped_at == plain.stopped_at
        np.testing.assert_allclose(run.rmse / b, plain.rmse, rtol=1e-6)
        assert np.isfinite(run.errors[4:]).all()
        learner = ActiveLearner(X * a, criterion=NEVER, seed=0)
        for _ in range(3):
            rows = learner.ask(6)
            learner.tell(y[rows] * b)
        assert learner.run().gp.n_labels == 18


def test_labels_without_a_variance():
    X, y = problem(30)
    for bad in (1e150, -1e200):
        labels = np.where(np.arange(30) == 3, bad, y)
        with pytest.raises(ValueError, match=r"`y` must be below 1e\+150 where .* got -?1e\+"):
            learn(X, labels, criterion=NEVER)
        learner = labelled(ActiveLearner(X, criterion=NEVER, seed=0), y, 8)
        before, free = learner.to_dict(), np.flatnonzero(learner.unlabelled)[:2]
        for call in (
            lambda one, bad=bad, free=free: one.tell(bad, index=free[0]),
            lambda one, bad=bad, free=free: one.tell([1.0, bad], index=free),
            lambda one, bad=bad: one.correct(one.run().indices[2], bad),
        ):
            with pytest.raises(ValueError, match=r"`y` must be below 1e\+150"):
                call(learner)
        assert learner.to_dict() == before
        with pytest.raises(ValueError, match=r"`known` must be below 1e\+150"):
            ActiveLearner(X, criterion=NEVER, known=([1], [bad]))
        with pytest.raises(ValueError, match=r"`y` must be below") as caught:
            learn(X, lambda i, x, bad=bad: bad, criterion=NEVER)
        assert caught.value.run.n_labels == 0


# Fits that fail ---------------------------------------------------------------------------------------------


def test_labels_that_are_all_equal():
    X, y = problem(40)
    for level in (0.0, 7.0, -1e120, 1e-140):
        learner = ActiveLearner(X, criterion=MovementBelow(0.5), seed=0)
        with pytest.warns(
            UserWarning, match="could not be fitted to 5 labels, and are a guess"
        ) as w:
            labelled(learner, np.full(40, level), 14)
        assert len(w) == 1
        assert "5 times" in str(w[0].message)
        assert not any(fit.fitted for fit in learner.refits)
        assert all(fit.at_edge for fit in learner.refits)
        assert not learner.stopped
        assert len(learner.bounds) == 9
        np.testing.assert_allclose(learner.model.predict(X), level)
    learner = ActiveLearner(X, criterion=MovementBelow(0.05), seed=0)
    with pytest.warns(UserWarning, match="could not be fitted"):
        labelled(learner, np.full(40, 20.0), 11)
    labelled(learner, y, 40)
    assert learner.refits[-1].fitted
    assert learner.refits[-1].amplitude > 1
    run = learner.run((X, y))
    assert np.isfinite(run.rmse[4:]).all()


@pytest.mark.parametrize("how", ["fit", "factor"])
def test_a_fit_that_fails(how, monkeypatch):
    X, y = problem(50)
    fits = refit.weak_fit
    whole = labelled(ActiveLearner(X, criterion=NEVER, seed=0), y, 20)
    learner = labelled(ActiveLearner(X, criterion=NEVER, seed=0), y, 13)
    good = learner.refits[-1]

    def broken(Z, labels, *arguments, **settings):
        if how == "fit":
            raise np.linalg.LinAlgError("no luck today")
        return fits(Z, labels, *arguments, **settings)._replace(amplitude=1e-300, ratio=1e-9)

    monkeypatch.setattr(refit, "weak_fit", broken)
    with pytest.warns(
        UserWarning, match="are those of the fit before until the next fit"
    ) as warned:
        labelled(learner, y, 19)
    assert len(warned) == 1
    last = learner.refits[-1]
    assert last == good._replace(n_labels=17, at_edge=True, fitted=False)
    assert learner.prior.noise == good.noise
    assert len(learner.bounds) == len(learner.criterion.bounds) == 14
    again = ActiveLearner.from_dict(learner.to_dict(), X)
    assert again.refits == learner.refits
    monkeypatch.setattr(refit, "weak_fit", fits)
    labelled(learner, y, 20)
    assert learner.refits[-1].fitted
    rows = learner.run().indices
    right = ActiveLearner(X, criterion=NEVER, seed=0, known=(rows, y[rows]))
    np.testing.assert_allclose(learner.bounds, right.bounds, rtol=1e-4)
    assert rows[:14].tolist() == whole.run().indices[:14].tolist()


def test_a_warning_that_is_an_error():
    X, y = problem(30)
    learner = ActiveLearner(X, criterion=NEVER, seed=0)
    with pytest.raises(UserWarning, match="could not be fitted"):
        labelled(learner, np.full(30, 3.0), 5)  # warnings are errors in this suite
    assert learner.n_labels == 5
    labelled(learner, np.full(30, 3.0), 6)
    labelled(learner, y, 20)
    assert learner.refits[-1].fitted


def test_what_is_refused():
    X, y = problem(30)
    for stopper in (Stopper(sequential=True), MovementBelow() | Stopper(sequential=True)):
        with pytest.raises(ValueError, match="`sequential` must be False where hyper-parameters"):
            ActiveLearner(X, criterion=stopper)
        with pytest.raises(ValueError, match="`sequential` must be False where hyper-parameters"):
            learn(X, y, gp=GaussianProcess(), refit=1.2, criterion=stopper)
    with pytest.raises(TypeError, match="`refit` needs a GaussianProcess, got LaplaceClassifier"):
        ActiveLearner(X, gp=LaplaceClassifier(), refit=1.2, criterion=Stopper())
    for bad in (1.0, 0.5, -2, math.inf, math.nan):
        with pytest.raises(ValueError, match="`refit` must be"):
            ActiveLearner(X, refit=bad, criterion=Stopper())
    with pytest.raises(ValueError, match=r"`X` must have at least 5 rows without a `gp`.*got 4"):
        ActiveLearner(X[:4], criterion=Stopper())
    for bad in (4, [1, 2, 3, 4], 0):
        with pytest.raises(ValueError, match="`initial` must be at least 5 without a `gp`"):
            ActiveLearner(X, initial=bad, criterion=Stopper())
    with pytest.raises(ValueError, match=r"`max_labels` must be between `initial` \(5\)"):
        ActiveLearner(X, max_labels=4, criterion=Stopper())
    assert learn(X[:5], y[:5], criterion=NEVER).n_labels == 5
    assert learn(X, y, max_labels=5, criterion=NEVER, test=(X, y)).rmse[-1] > 0


# The same by every way ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("acquisition", ["max_variance", "random"])
@pytest.mark.parametrize(
    "stopper", [MovementBelow(0.1), Stopper(0.05), MovementBelow(0.1) & MinLabels(30)]
)
def test_compiled_or_not(acquisition, stopper):
    X, y = problem(60)
    settings = {"criterion": stopper, "seed": 4, "acquisition": acquisition, "test": (X[:9], y[:9])}
    run = learn(X, y, **settings)
    seen = []
    others = [
        learn(X, lambda i, x: y[i], **settings),
        learn(X, y, on_label=lambda one: seen.append(one.n_labels), **settings),
        learn(X, y, threads=3, **settings),
    ]
    learner = ActiveLearner(X, criterion=stopper, seed=4, acquisition=acquisition)
    while not learner.finished:
        learner.tell(y[learner.ask()])
    others.append(learner.run((X[:9], y[:9])))
    for other in others:
        assert json.dumps(other.to_dict()) == json.dumps(run.to_dict())
        np.testing.assert_array_equal(other.errors, run.errors)
    assert seen == list(range(1, run.n_labels + 1))


def test_lazy_pools(monkeypatch):
    X, y = problem(120, 2)
    run = learn(X, y, criterion=MovementBelow(0.1), seed=0)
    monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    lazy = learn(X, y, criterion=MovementBelow(0.1), seed=0)
    assert lazy.indices.tolist() == run.indices.tolist()
    assert lazy.stopped_at == run.stopped_at
    np.testing.assert_allclose(lazy.bounds, run.bounds, rtol=1e-6)
    threads = learn(X, y, criterion=MovementBelow(0.1), seed=0, threads=3)
    assert threads.bounds.tolist() == lazy.bounds.tolist()
    learner = labelled(ActiveLearner(X, criterion=MovementBelow(0.1), seed=0), y, lazy.n_labels)
    assert learner.run().indices.tolist() == lazy.indices.tolist()


def test_progress(capsys):
    X, y = problem(30)
    run = learn(X, y, criterion=MovementBelow(0.1), seed=0, progress=True)
    assert run.n_labels == learn(X, y, criterion=MovementBelow(0.1), seed=0).n_labels
    assert "label" in capsys.readouterr().err


def test_an_acquisition_of_ones_own():
    X, y = problem(40)
    calls = []

    def acquisition(mean, var):
        calls.append(len(mean))
        return var

    run = learn(X, y, criterion=NEVER, seed=0, acquisition=acquisition, max_labels=25)
    assert len(calls) == 20  # not before the first fit
    assert (
        run.indices.tolist() == learn(X, y, criterion=NEVER, seed=0, max_labels=25).indices.tolist()
    )
    learner = ActiveLearner(X, criterion=NEVER, seed=0, acquisition=acquisition)
    state = labelled(learner, y, 12).to_dict()
    again = ActiveLearner.from_dict(state, X, acquisition)
    assert again.ask() == learner.ask()
    with pytest.raises(ValueError, match="`acquisition` must be given"):
        ActiveLearner.from_dict(state, X)


# A run ---------------------------------------------------------------------------------------------------------


def test_a_run_stays_as_it_was():
    X, y = problem(60)
    learner = labelled(ActiveLearner(X, criterion=MovementBelow(0.01), seed=0), y, 15)
    run = learner.run((X, y))
    late = learner.run()  # whose process is made when the learner has gone on
    kept = json.dumps(run.to_dict()), run.gp.predict(X).tolist(), run.left.tolist()
    labelled(learner, y, 30)
    learner.ask()
    learner.skip()
    learner.extend_pool(X + 0.01)
    learner.correct(run.indices[3], 0.0)
    assert (json.dumps(run.to_dict()), run.gp.predict(X).tolist()) == kept[:2]
    np.testing.assert_array_equal(run.left, kept[2])
    np.testing.assert_allclose(late.gp.predict(X), kept[1])
    assert not run.finished
    assert len(run.refits) == 7
    assert len(run.skipped) == 0


def test_errors_on_the_way():
    X, y = problem(40)
    run = learn(X, y, criterion=NEVER, seed=0, test=(X, y), max_labels=20)
    for t in range(5, 21):
        fit = [one for one in run.refits if one.n_labels <= t][-1]
        gp = GaussianProcess(
            fit.lengthscale * X.std(axis=0), fit.noise, amplitude=fit.amplitude, mean=fit.mean
        ).copy(quiet=True)
        gp.add_batch(X[run.indices[:t]], run.labels[:t])
        mean, var = gp.predict(X, return_var=True)
        assert run.rmse[t - 1] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)), rel=1e-9)
        s = var + gp.noise
        density = np.mean(0.5 * np.log(2 * np.pi * s) + (y - mean) ** 2 / (2 * s))
        assert run.errors[t - 1] == pytest.approx(density, rel=1e-8)
    state = json.loads(json.dumps(run.to_dict(), allow_nan=False))
    assert state["rmse"][:5] == [None] * 4 + [run.rmse[4]]
    assert state["refits"][0]["n_labels"] == 5


def test_resuming():
    X, y = problem(60)
    run = learn(X, y, criterion=MovementBelow(0.2), seed=0, test=(X, y))
    assert run.stopped
    at, said = run.stopped_at, str(run.verdict)
    longer = run.resume()
    assert (longer.n_labels, longer.stopped_at) == (60, at)
    assert str(longer.verdict) == said
    assert longer.refits[: len(run.refits)] == run.refits
    whole = learn(X, y, criterion=NEVER, seed=0, test=(X, y))
    assert longer.indices.tolist() == whole.indices.tolist()
    assert longer.bounds.tolist() == whole.bounds.tolist()
    np.testing.assert_array_equal(longer.rmse, whole.rmse)
    assert (run.n_labels, len(run.criterion.bounds), str(run.verdict)) == (at, at - 5, said)
    # a label after the other, with an oracle that fails
    calls = []

    def oracle(i, x):
        calls.append(i)
        if len(calls) == 13:
            raise OSError("broken")
        return y[i]

    with pytest.raises(OSError, match="broken") as caught:
        learn(X, oracle, criterion=MovementBelow(0.2), seed=0)
    part = caught.value.run
    assert part.n_labels == 12
    rest = part.resume()
    assert rest.indices.tolist() == run.indices.tolist()
    assert rest.stopped_at == at


@pytest.mark.parametrize("call", [0, 3, 7])
def test_ctrl_c_in_a_fit_of_learn(call, monkeypatch):
    X, y = problem(60)
    whole = learn(X, y, criterion=MovementBelow(0.1), seed=0, test=(X, y))
    fits, left = refit.weak_fit, [call]

    def interrupted(*arguments, **settings):
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        return fits(*arguments, **settings)

    monkeypatch.setattr(refit, "weak_fit", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        learn(X, y, criterion=MovementBelow(0.1), seed=0, test=(X, y))
    part = caught.value.run
    assert len(part.refits) == call
    run = part.resume(test=(X, y))
    assert json.dumps(run.to_dict()) == json.dumps(whole.to_dict())


# Criteria --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("initial", [5, 30])
def test_two_fits_must_agree(initial):
    # also those of a campaign that begins with many labels: its first fit gives no bounds
    X, y = problem(200, seed=1)
    for stopper in (MovementBelow(0.3), Stopper(0.2)):
        learner = ActiveLearner(X, criterion=stopper, seed=0, initial=initial)
        while not learner.finished:
            learner.tell(y[learner.ask()])
        assert learner.stopped
        assert learner.n_labels == learner.refits[-1].n_labels
        compiled = learn(X, y, criterion=stopper, seed=0, initial=initial)
        assert compiled.stopped_at == learner.n_labels


def test_a_fit_at_the_edge_confirms_nothing(monkeypatch):
    X, y = problem(60)
    at = learn(X, y, criterion=MovementBelow(0.3), seed=0).stopped_at
    assert at < 50
    fits = refit.weak_fit
    monkeypatch.setattr(
        refit, "weak_fit", lambda *a, **more: fits(*a, **more)._replace(at_edge=True)
    )
    run = learn(X, y, criterion=MovementBelow(0.3), seed=0)
    assert run.stopped_at == 60  # the end
    assert all(fit.at_edge for fit in run.refits)
    run = learn(X, y, criterion=MovementBelow(0.3), seed=0, max_labels=at + 2)
    assert str(run.verdict) == (
        f"go on: the horizon of {at + 2 - 5} bounds is reached between two fits; the fit lies at "
        "an edge of its search box and confirms nothing"
    )


def test_budgets_and_compositions():
    X, y = problem(60)
    run = learn(X, y, criterion=FixedBudget(13), seed=0)
    assert run.stopped_at == 18
    run = learn(X, y, criterion=FixedBudget(13) | MovementBelow(1e-6), seed=0)
    assert run.stopped_at == 18
    assert run.criterion.members[1].verdict.horizon == 13
    alone = learn(X, y, criterion=MovementBelow(0.2), seed=0)
    assert learn(X, y, criterion=MovementBelow(0.2) | FixedBudget(54), seed=0).stopped
    late = learn(X, y, criterion=MinLabels(alone.stopped_at) & MovementBelow(0.2), seed=0)
    assert alone.stopped_at <= late.stopped_at
    assert late.stopped_at in [fit.n_labels for fit in late.refits]
    for stopper in (MovementBelow(0.2) | Stopper(1e-6), MovementBelow(0.2) & Stopper(0.9)):
        learner = ActiveLearner(X, criterion=stopper, seed=0)
        while not learner.finished:
            learner.tell(y[learner.ask()])
            for member in learner.criterion.members:
                assert (member.bounds == learner.bounds).all()
        assert learner.run().stopped_at == learn(X, y, criterion=stopper, seed=0).stopped_at


class Quiet(Criterion):
    """Stops when a bound is small."""

    def __init__(self, least):
        super().__init__(least=least)

    def says_stop(self, bounds):
        return bounds[-1] <= self.least


def test_a_criterion_of_ones_own():
    X, y = problem(60)
    run = learn(X, y, criterion=Quiet(0.3), seed=0)
    assert run.stopped
    assert run.stopped_at == run.n_labels
    assert (run.criterion.bounds == run.bounds).all()
    assert len(run.bounds) == run.n_labels - 5
    assert run.n_labels in [fit.n_labels for fit in run.refits]  # two fits agree
    both = learn(X, y, criterion=Quiet(0.3) | MovementBelow(0.01), seed=0)
    assert both.n_labels <= run.n_labels
    learner = labelled(ActiveLearner(X, criterion=Quiet(1e-9), seed=0), y, 12)
    learner.correct(learner.run().indices[2], 3.0)
    learner.ask()
    learner.skip()
    learner.extend_pool(X + 0.1)
    assert labelled(copy.copy(learner), np.r_[y, y], 20).n_labels == 20


@pytest.mark.parametrize("n_known", [0, 20])
def test_criteria_of_experiments(n_known):
    X, y = problem(60)
    rows = np.arange(n_known)
    for stopper in (
        MaxVariance(1.0),
        CrossValidation(5.0),
        PACBayes(30.0, 50.0),
        GroundTruth(X, y, 1e9),
        MaxVariance(1.0) | MovementBelow(1e-6),
    ):
        learner = ActiveLearner(X, criterion=stopper, seed=0, known=(rows, y[rows]))
        labelled(learner, y, 30)
        run = learner.run()
        if run.stopped:
            assert n_known < run.stopped_at <= 30
        one = learner.criterion
        one = one.members[0] if hasattr(one, "members") else one
        assert len(one) == 25
        assert len(one.history) == 30 - max(5, n_known)  # none of labels before the first fit


@pytest.mark.parametrize("lengthscale", [1.0, 2.0, 4.0])
def test_labels_in_a_given_order_hide_no_point_of_a_lazy_pool(lengthscale, monkeypatch):
    # A point that is labelled out of turn sinks in the heap; larger ones below it must be found.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(0, 6, (300, 2)), rng.standard_normal(300)
        for rows in (rng.permutation(300)[:n] for n in (7, 12)):
            settings = {
                "gp": GaussianProcess(lengthscale, 0.1), "criterion": NEVER, "max_labels": 30,
                "initial": rows,
            }  # fmt: skip
            monkeypatch.setattr(choose, "EAGER_BELOW", 2048)
            eager = learn(X, y, **settings)
            monkeypatch.setattr(choose, "EAGER_BELOW", 0)
            assert learn(X, y, **settings).indices.tolist() == eager.indices.tolist()
