"""The forecast where hyper-parameters come from the same labels: RMSE, the guard, two fits."""

import json
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from numba import config

from fastal import (
    ActiveLearner,
    FixedBudget,
    Forecast,
    GaussianProcess,
    LookAhead,
    StillToCome,
    forecast,
    learn,
    reference,
    simulate,
)
from fastal.lookahead import criterion as module
from fastal.lookahead import gain, refit_shares
from fastal.lookahead.gain import NOTHING_TO_LEARN, quiet_forecast
from fastal.stopping import Criterion

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; test_campaign_by_chance has few",
)


def pool(n=30, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def campaign(n=60, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, 2))
    return X, 20 + 3 * np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n)


def twin(gp):
    return reference.GaussianProcess(
        gp.lengthscale, gp.noise, amplitude=gp.amplitude, mean=gp.mean, kernel=gp.kernel
    )


# The RMSE and its share --------------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [(), (5, 2, 7, 1), (8, 3, 0, 9, 5, 1, 7)])
@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": "matern32", "lengthscale": [0.5, 2.0]}, {"noise": 1.0, "mean": 4.0}],
    ids=["rbf", "matern", "noisy"],
)
def test_rmse_is_that_of_dense_posteriors(settings, labelled):
    X = pool(10)
    gp = GaussianProcess(**{"lengthscale": 0.8, "noise": 0.05, "amplitude": 1.7} | settings)
    rmse, end, share = reference.forecast_rmse(X, twin(gp), labelled=labelled)
    ahead = forecast(X, gp, labelled=labelled, samples=10)
    np.testing.assert_allclose(ahead.rmse, rmse, rtol=1e-13)
    assert math.sqrt(ahead.final_error) == pytest.approx(end, rel=1e-13)
    np.testing.assert_allclose(ahead.rmse_share, share, rtol=0, atol=1e-12)
    assert ahead.rmse_share[4] == 1.0
    assert ahead.rmse_share[-1] == pytest.approx(0.0, abs=1e-12)
    assert not ahead.nothing_to_learn


def test_rmse_of_other_inputs_is_that_of_predict():
    X, others, gp = pool(25), pool(60, seed=1), GaussianProcess(0.8, 0.05, amplitude=1.7)
    ahead = forecast(X, gp, labelled=[4], reference=others)
    model, squares = gp.copy(), []
    for i in ahead.order:
        model.add(X[i], 0.0)
        squares.append(model.predict(others, return_var=True)[1].mean() + gp.noise)
    np.testing.assert_allclose(ahead.rmse, np.sqrt(squares), rtol=1e-12)
    assert ahead.final_error == pytest.approx(squares[-1], rel=1e-12)


def test_rmse_of_three_points_by_hand():
    # K + noise I = [[2, c, 0], [c, 2, 0], [0, 0, 2]]. Given the other one, a neighbour has the
    # variance 1 - c^2 / 2, and the far one 1: e^2 = 2 - c^2 / 3 at the end, and with one label the
    # reduction c^2 / 6 more (`test_three_points_by_hand`).
    c = math.exp(-0.5)
    ahead = forecast([0.0, 1.0, 1000.0], GaussianProcess(1.0, 1.0))
    end = 2 - c * c / 3
    np.testing.assert_allclose(ahead.rmse, np.sqrt([end + c * c / 6, end, end]), rtol=1e-14)


def test_errors_at_new_inputs_are_as_foreseen():
    # functions drawn from the model itself, with other inputs of the same population
    rng = np.random.default_rng(0)
    X, others, gp = pool(60), pool(200, seed=1), GaussianProcess(0.9, 0.05)
    ahead = forecast(X, gp, labelled=[0])
    everything = np.vstack((X, others))
    K = GaussianProcess(0.9, 0.05).predict(everything, return_cov=True)[1]
    L = np.linalg.cholesky(K + 1e-10 * np.eye(len(K)))
    found = {10: [], 30: [], 60: []}
    for _ in range(40):
        f = L @ rng.normal(size=len(K))
        y = f + math.sqrt(0.05) * rng.normal(size=len(K))
        model = gp.copy()
        for t, i in enumerate(ahead.order, start=1):
            model.add(X[i], y[i])
            if t in found:
                found[t].append(np.mean((model.predict(others) - y[60:]) ** 2))
    for t, squares in found.items():
        assert math.sqrt(np.mean(squares)) == pytest.approx(ahead.rmse[t - 1], rel=0.12)


def test_rmse_share_and_its_stop_are_what_they_say():
    ahead = forecast(pool(40), GaussianProcess(0.8, 0.05), labelled=[0])
    for eps in (0.5, 0.2, 0.05, 0.01):
        t = ahead.labels_for_rmse(eps)
        assert ahead.rmse_share[t - 1] <= eps < ahead.rmse_share[: t - 1].min()
    near = forecast(pool(40), GaussianProcess(0.8, 0.05), labelled=[0], horizon=3)
    assert near.labels_for_rmse(0.01) is None
    assert near.rmse_share[-1] == 1.0  # of the horizon, where there are no five labels
    for eps in (0, 1, math.nan):
        with pytest.raises(ValueError, match=r"`eps` must be in \(0, 1\), got"):
            ahead.labels_for_rmse(eps)


@pytest.mark.parametrize(
    "gp",
    [GaussianProcess(1e-3, 0.1), GaussianProcess(1.0, 1e4)],
    ids=["labels say nothing about each other", "all is noise"],
)
def test_where_there_is_nothing_to_learn_all_is_left(gp):
    ahead = forecast(pool(40), gp, labelled=range(8))
    assert ahead.nothing_to_learn
    np.testing.assert_array_equal(ahead.rmse_share, 1.0)
    assert ahead.labels_for_rmse(0.99) is None
    rmse, end, share = reference.forecast_rmse(pool(10), twin(gp), labelled=range(5))
    assert rmse[4] - end < 0.02 * rmse[4]
    assert (share == 1.0).all()


def test_a_forecast_of_version_1_has_no_rmse():
    ahead = forecast(pool(20), GaussianProcess(0.8, 0.05), labelled=[2])
    state = ahead.to_dict()
    assert Forecast.from_dict(json.loads(json.dumps(state))).final_error == ahead.final_error
    del state["final_error"]
    old = Forecast.from_dict(state | {"version": 1})
    np.testing.assert_array_equal(old.reduction, ahead.reduction)
    assert np.isnan(old.rmse).all()
    assert np.isnan(old.rmse_share).all()
    assert not old.nothing_to_learn
    assert old.labels_for_rmse(0.5) is None
    assert Forecast.from_dict(json.loads(json.dumps(old.to_dict()))).to_dict() == old.to_dict()
    with pytest.raises(ValueError, match="lacks 'final_error'"):
        Forecast.from_dict(state)


def test_skipped_rows_are_not_in_the_pool():
    X, gp = pool(30), GaussianProcess(0.8, 0.05)
    kept = np.setdiff1d(np.arange(30), [3, 17, 29])
    alone = quiet_forecast(X[kept], gp, [0, 5])
    ahead = quiet_forecast(X, gp, kept[[0, 5]], skipped=[17, 3, 29])
    np.testing.assert_array_equal(ahead.order, kept[alone.order])
    np.testing.assert_array_equal(ahead.reduction, alone.reduction)
    assert (ahead.n_pool, ahead.horizon) == (30, 27)
    assert Forecast.from_dict(ahead.to_dict()).to_dict() == ahead.to_dict()


@pytest.mark.parametrize("left", [0, 1])
def test_a_pool_without_unlabelled_points(left):
    X, gp = pool(12), GaussianProcess(0.8, 0.05)
    rows = np.arange(12 - left)
    rmse, _, share = reference.forecast_rmse(X, twin(gp), labelled=rows)
    ahead = quiet_forecast(X, gp, rows, samples=12, least=0)
    np.testing.assert_allclose(ahead.rmse, rmse, rtol=1e-13)
    np.testing.assert_allclose(ahead.rmse_share, share, atol=1e-12)


# The decision, fit by fit ------------------------------------------------------------------------


def by_hand(X, order, fits, eps, n_initial):
    """Return the labels at the stop, by the letter: (labels, at an edge, process) for each fit."""
    last = None
    for n, at_edge, gp in fits:
        if n <= n_initial:
            continue
        now = quiet_forecast(X, gp, order[:n], least=0)
        if last is not None and not (at_edge or last[1]):
            shares = last[0], now.rmse_share[n - 1]
            if max(shares) <= eps:
                return n, shares
        last = now.rmse_share[n - 1], at_edge
    return None


def fits_of(X, y, order, refits):
    """Return the processes of a campaign's fits, in units of X."""
    scale = X.std(axis=0)
    return [
        (
            fit.n_labels,
            fit.at_edge,
            GaussianProcess(
                fit.lengthscale * scale, fit.noise, amplitude=fit.amplitude, mean=fit.mean
            ),
        )
        for fit in refits
    ]


@pytest.mark.parametrize("eps", [0.3, 0.1, 0.03])
def test_learn_stops_when_two_fits_agree(eps):
    X, y = campaign()
    run = learn(X, y, stopper=LookAhead(eps), seed=1)
    fits = fits_of(X, y, run.indices, run.refits)
    n, (before, after) = by_hand(X, run.indices, fits, eps, 5)
    assert run.n_labels == n
    assert run.stopped_at == n
    assert run.stopper.stopped_at == n - 5
    assert run.verdict.reason == (
        f"after {n} labels {100 * after:.2g} % of the fall of the RMSE is left, and at the fit "
        f"before it was {100 * before:.2g} % (at most {100 * eps:.2g} % asked of both)"
    )
    assert run.verdict.n == n - 5
    assert len(run.stopper.history) == n - 5
    assert run.stopper.history[-1] == pytest.approx(after, rel=1e-9)
    assert run.stopper.n_labels == n


def test_a_learner_decides_as_simulate_does():
    X, y = campaign(70)
    rules = [
        LookAhead(0.2),
        LookAhead(0.05),
        LookAhead(0.1) & StillToCome(0.2),
        LookAhead(0.02) | FixedBudget(20),
        LookAhead(0.2) | StillToCome(0.1),
    ]
    for gp in (None, GaussianProcess(2.0, 0.1, amplitude=9.0, mean=20.0)):
        found = simulate(
            X, y, gp=gp, refit=1.3, initial=5, stopper=rules[0], criteria=rules[1:], n_runs=3,
            pool_size=50, n_jobs=1,
        )  # fmt: skip
        for run in range(3):
            rows = found.pool(run)
            stops = [found.stopped_at[run], *found.criteria_stops[run]]
            for rule, stop in zip(rules, stops, strict=True):
                alone = learn(
                    X[rows], y[rows], gp=gp, refit=1.3, stopper=rule, initial=np.arange(5)
                )
                assert stop == (alone.stopped_at or -1), rule
    threads = simulate(
        X, y, refit=1.3, stopper=rules[0], criteria=rules[1:], n_runs=3, pool_size=50, n_jobs=2
    )
    one = simulate(
        X, y, refit=1.3, stopper=rules[0], criteria=rules[1:], n_runs=3, pool_size=50, n_jobs=1
    )
    np.testing.assert_array_equal(threads.criteria_stops, one.criteria_stops)


class Shares(Criterion):
    """Takes note of the shares at the fits of finished runs."""

    found = ()  # of the last run

    def push(self, r):
        return False

    def reset(self):
        return self

    stopped_at = None
    reason = "it never stops"

    def stop_in(self, run, measures):
        Shares.found = refit_shares(run), run.order.copy(), run.refits


def test_shares_at_fits_are_those_that_decide():
    X, y = campaign(70)
    for seed in range(3):
        rules = [LookAhead(eps) for eps in (0.4, 0.2, 0.1, 0.05, 0.02)]
        result = simulate(
            X, y, criteria=[*rules, Shares()], n_runs=1, pool_size=50, n_jobs=1, seed=seed
        )
        shares, order, refits = Shares.found
        assert [n for n, _ in shares] == [fit.n_labels for fit in refits if fit.n_labels > 5]
        assert math.isnan(shares[0][1])
        for rule, stop in zip(rules, result.criteria_stops[0, :-1], strict=True):
            expected = next((n for n, share in shares if share <= rule.eps), -1)
            assert stop == expected
            fits = [(fit.n_labels, fit.at_edge, fit.prior) for fit in refits]
            rows = X[result.pool(0)]
            assert (by_hand(rows, order, fits, rule.eps, 5) or (-1,))[0] == expected


def view(X, gp, rows, n_initial=5, skipped=()):
    return SimpleNamespace(
        points=X,
        n_pool=len(X),
        n_initial=n_initial,
        prior=gp,
        labelled=np.array(rows),
        initial_rows=np.array(rows[:n_initial]),
        skipped=np.array(skipped, dtype=np.int64),
        bounds=np.zeros(max(0, len(rows) - n_initial)),
        acquisition="max_variance",
    )


def ready(eps=0.5):
    rule = LookAhead(eps)
    rule.allow_refits()
    return rule


SMOOTH = GaussianProcess(0.8, 0.05)
SMOOTHER = GaussianProcess(0.82, 0.05)
ROUGH = GaussianProcess(0.4, 0.05)
COLLAPSED = GaussianProcess(1e-3, 0.5)


def rows_of(gp, n):
    return quiet_forecast(pool(40), gp, [0]).order[:n]


def test_one_fit_decides_nothing_and_the_same_fit_is_no_second_one():
    X, rule = pool(40), ready()
    assert not rule.refitted(view(X, SMOOTH, rows_of(SMOOTH, 30)))
    assert "as one fit sees it; the next one must agree" in rule.reason
    assert not rule.refitted(view(X, SMOOTH.copy(), rows_of(SMOOTH, 30)))
    assert not rule.refitted(view(X, SMOOTH.copy(), rows_of(SMOOTH, 31)))
    assert rule.refitted(view(X, SMOOTHER, rows_of(SMOOTH, 32)))
    assert rule.stopped_at == 27
    assert rule.verdict.stop


def test_the_larger_share_of_the_last_two_fits_counts():
    X, rows = pool(40), rows_of(SMOOTH, 40)

    def share(gp, n):
        return quiet_forecast(X, gp, rows[:n]).rmse_share[n - 1]

    low, high = share(SMOOTH, 19), share(ROUGH, 20)
    assert max(low, share(SMOOTHER, 20)) < share(ROUGH, 20) < share(ROUGH, 19)
    middle = (low + high) / 2
    for first, second in ((SMOOTH, ROUGH), (ROUGH, SMOOTH)):
        rule = ready(middle)
        rule.refitted(view(X, first, rows[:19]))
        assert not rule.refitted(view(X, second, rows[:20]))
        assert rule.reason == (
            f"after 20 labels {100 * share(second, 20):.2g} % of the fall of the RMSE is left, and "
            f"at the fit before it was {100 * share(first, 19):.2g} % (at most {100 * middle:.2g} "
            "% asked of both)"
        )
    rule = ready(middle)
    rule.refitted(view(X, SMOOTH, rows[:19]))
    assert rule.refitted(view(X, SMOOTHER, rows[:20]))


def test_a_fit_at_an_edge_confirms_nothing():
    X, rows = pool(40), rows_of(SMOOTH, 40)
    rule = ready()
    rule.refitted(view(X, SMOOTH, rows[:30]))
    assert not rule.refitted(view(X, SMOOTHER, rows[:31]), at_edge=True)
    assert "the fit lies at an edge of its search box and confirms nothing" in rule.reason
    assert not rule.refitted(view(X, SMOOTH, rows[:32]))
    assert "the fit before lay at an edge of its search box" in rule.reason
    assert rule.refitted(view(X, SMOOTHER, rows[:33]))
    assert rule.stopped_at == 28
    # a stop stays, whatever comes
    assert rule.refitted(view(X, ROUGH, rows[:34]), at_edge=True)
    assert rule.stopped_at == 28
    with pytest.raises(TypeError, match="`at_edge` must be True or False, got 1"):
        rule.refitted(view(X, SMOOTH, rows[:35]), at_edge=1)


def test_a_collapsed_fit_does_not_stop():
    X, rows = pool(40), rows_of(SMOOTH, 40)
    rule = ready(0.9)
    # without the guard, all of nearly nothing would be bought
    assert quiet_forecast(X, COLLAPSED, rows[:10]).fraction[9] < 0.9
    rule.refitted(view(X, COLLAPSED, rows[:10]))
    other = GaussianProcess(1e-3, 0.6)
    assert not rule.refitted(view(X, other, rows[:11]))
    assert rule.reason == f"after 11 labels: {NOTHING_TO_LEARN}"
    assert not rule.refitted(view(X, SMOOTH, rows[:38]))
    assert rule.refitted(view(X, SMOOTHER, rows[:39]))


def test_labels_that_are_noise():
    X, y = pool(60, 5), np.random.default_rng(1).normal(size=60)
    learner = ActiveLearner(X, stopper=LookAhead(0.05), seed=0)
    guarded = 0
    while not learner.finished:
        fits = len(learner.refits)
        reason = learner.tell(y[learner.ask()]).reason
        ahead = learner.stopper.forecast
        if len(learner.refits) > fits and ahead is not None and ahead.nothing_to_learn:
            assert reason == f"after {learner.n_labels} labels: {NOTHING_TO_LEARN}"
            guarded += 1
    assert guarded > 1
    assert not learner.stopped


def test_what_is_refused():
    X, y = campaign(30)
    with pytest.raises(ValueError, match=r"`price` must not be given where .* got 0.2: use `eps`"):
        learn(X, y, stopper=LookAhead(price=0.2) | FixedBudget(9))
    with pytest.raises(ValueError, match=r"`paper` must not be given where .* got True"):
        simulate(X, y, stopper=LookAhead(paper=True), n_runs=1, pool_size=20)
    given = LookAhead().begin(forecast(X, GaussianProcess(1.0, 0.1), labelled=[0]))
    with pytest.raises(ValueError, match="LookAhead must not have a forecast where"):
        ActiveLearner(X, stopper=given)
    with pytest.raises(ValueError, match="`acquisition` must be 'max_variance' with LookAhead"):
        learn(X, y, stopper=LookAhead(), acquisition="random")
    with pytest.raises(ValueError, match=r"more repeated rows than distinct ones, got 20 of 30"):
        ActiveLearner(np.repeat(X[:10], 3, axis=0), stopper=LookAhead())
    with pytest.raises(TypeError, match="does not go by bounds"):
        LookAhead().after_refit([0.1, 0.2])
    with pytest.raises(TypeError, match="LookAhead needs a GaussianProcess, got 3"):
        ready().refitted(view(X, 3, [0, 1, 2, 3, 4, 5]))


def test_a_forecast_that_fails_stops_nothing(monkeypatch):
    X, rows = pool(40), rows_of(SMOOTH, 40)
    rule = ready()
    rule.refitted(view(X, SMOOTH, rows[:30]))

    def broken(*_, **__):
        raise np.linalg.LinAlgError("the factor breaks down at label 3")

    monkeypatch.setattr(module, "quiet_forecast", broken)
    assert not rule.refitted(view(X, SMOOTHER, rows[:31]))
    assert rule.reason == (
        "there is no forecast from the fit to 31 labels: the factor breaks down at label 3"
    )
    assert np.isnan(rule.history).all()
    again = Criterion.from_dict(json.loads(json.dumps(rule.to_dict())))
    assert (again.reason, again.to_dict()) == (rule.reason, rule.to_dict())
    monkeypatch.undo()
    assert not rule.refitted(view(X, SMOOTH, rows[:32]))
    assert rule.refitted(view(X, SMOOTHER, rows[:33]))


def test_a_large_pool_is_seen_up_to_the_horizon(monkeypatch):
    monkeypatch.setattr(gain, "WHOLE_POOL", 50)
    monkeypatch.setattr(gain, "FAR_AHEAD", 30)
    X, rule = pool(200), ready(0.99)
    rows = np.arange(185)
    rule.refitted(view(X, SMOOTH, rows[:20]))
    assert rule.forecast.horizon == 50
    assert not rule.forecast.whole
    assert rule.copy().refitted(view(X, SMOOTHER, rows[:24]))
    # too few are left to hold some of them out
    assert not rule.refitted(view(X, SMOOTHER, rows))
    assert "there is no forecast from the fit to 185 labels: `reference` must be" in rule.reason


# Campaigns as they are ---------------------------------------------------------------------------


def test_before_the_first_fit_there_is_no_forecast():
    X, y = campaign()
    learner = ActiveLearner(X, stopper=LookAhead(), seed=0)
    assert learner.stopper.forecast is None
    assert learner.stopper.reason == "there is no forecast before the first fit that can decide"
    for _ in range(5):
        verdict = learner.tell(y[learner.ask()])
    assert not verdict.stop
    learner.tell(y[learner.ask()])
    assert learner.stopper.forecast.n_labelled == 6
    np.testing.assert_array_equal(learner.labelled, learner.stopper.forecast.order[:6])
    learner.labelled[:] = 0  # a copy
    np.testing.assert_array_equal(learner.labelled, learner.stopper.forecast.order[:6])


def test_a_given_process_that_is_refitted_does_not_decide_by_itself():
    X, y = campaign()
    rough = GaussianProcess(
        [1e-4, 1e-4], 100.0, amplitude=4.0, mean=20.0
    )  # of all labels the first ones say it all
    assert learn(X, y, gp=rough, stopper=LookAhead(), seed=0).n_labels < 5
    run = learn(X, y, gp=rough, refit=1.2, stopper=LookAhead(0.1), seed=0)
    assert run.n_labels > 7
    assert "and at the fit before it was" in run.verdict.reason


def test_states_in_the_middle_of_a_campaign():
    X, y = campaign()
    learner = ActiveLearner(X, stopper=LookAhead(0.1) | FixedBudget(50), seed=0)
    while not learner.finished:
        learner = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
        before = learner.to_dict()
        assert pickle.loads(pickle.dumps(learner)).to_dict() == before
        assert learner.stopper.copy().to_dict() == before["stopper"]
        learner.tell(y[learner.ask()])
    alone = learn(X, y, stopper=LookAhead(0.1), seed=0)
    assert learner.n_labels == alone.n_labels
    assert learner.stopper.stopped_at == alone.stopper.stopped_at
    rule = learner.stopper.members[0]
    assert rule.reason == alone.verdict.reason
    restored = ActiveLearner.from_dict(learner.to_dict(), X)
    assert restored.stopped
    assert restored.stopper.verdict == learner.stopper.verdict


def test_states_of_version_1_load():
    ahead = forecast(pool(30), SMOOTH, labelled=[0, 4])
    rule = LookAhead(0.1).begin(ahead)
    rule.extend([0.1] * 3)
    state = rule.to_dict()
    for key in ("initial", "fits", "trouble"):
        del state[key]
    del state["forecast"]["final_error"]
    state["version"] = state["forecast"]["version"] = 1
    old = Criterion.from_dict(state)
    assert (old.stops_at, old.n_labels, old.reason) == (rule.stops_at, rule.n_labels, rule.reason)
    rule.extend([0.1] * 25)
    old.extend([0.1] * 25)
    assert old.stopped_at == rule.stopped_at
    with pytest.raises(ValueError, match="has the unknown 'fits'"):
        Criterion.from_dict(state | {"fits": None})


def test_damaged_states():
    X, rows = pool(40), rows_of(SMOOTH, 40)
    rule = ready()
    rule.refitted(view(X, SMOOTH, rows[:30]))
    rule.refitted(view(X, SMOOTHER, rows[:31]))
    state = rule.to_dict()
    assert Criterion.from_dict(json.loads(json.dumps(state))).to_dict() == state
    fits = state["fits"]
    for change, message in (
        ({"initial": 32}, r"`state\['initial'\]` must be at most 31"),
        ({"given": True}, "with `fits` only `eps` decides"),
        ({"trouble": 3}, r"`state\['trouble'\]` must be a text, got 3"),
        ({"fits": 3}, "must be a dict"),
        ({"fits": fits | {"more": 1}}, "has the unknown 'more'"),
        ({"fits": fits | {"stop": 27}}, r"`state\['stop'\]` must be an integer >= 1, got 27"),
        ({"fits": fits | {"at_edge": 0}}, "damaged: `at_edge` must be True or False"),
        ({"fits": fits | {"after": "x"}}, "damaged: `after` must be a real number"),
        ({"fits": fits | {"values": [math.nan]}}, "damaged: `values` must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            Criterion.from_dict(state | change)


def test_a_stopper_is_used_again():
    X, y = campaign()
    first = learn(X, y, stopper=LookAhead(0.1), seed=1)
    assert learn(X, y, stopper=first.stopper, seed=1).n_labels == first.n_labels
    gp = GaussianProcess(2.0, 0.01, amplitude=9.0, mean=20.0)
    known = learn(X, y, gp=gp, stopper=LookAhead(0.1), seed=1)
    assert learn(X, y, gp=gp, stopper=first.stopper, seed=1).n_labels == known.n_labels
    assert learn(X, y, stopper=known.stopper, seed=1).n_labels == first.n_labels


def test_members_are_judged_anew_until_the_whole_has_stopped():
    X, rows = pool(40), rows_of(SMOOTH, 40)
    both = LookAhead(0.5) & FixedBudget(28)
    both.allow_refits()
    both.refitted(view(X, SMOOTH, rows[:30]))
    assert not both.refitted(view(X, SMOOTHER, rows[:31]))
    assert both.members[0].stopped
    both.refitted(view(X, COLLAPSED, rows[:32]))
    assert not both.members[0].stopped
    both.refitted(view(X, SMOOTH, rows[:34]))
    assert both.members[1].stopped
    assert not both.stopped
    assert both.refitted(view(X, SMOOTHER, rows[:35]))
    assert both.stopped_at == 30


def test_skipped_points_and_pools_that_grow_with_fits():
    X, y = campaign(60)
    learner = ActiveLearner(X[:40], stopper=LookAhead(0.02), seed=0)
    while learner.n_labels < 12:
        if learner.n_labels in (3, 9) and len(learner.skipped) < 1 + (learner.n_labels > 5):
            learner.skip()
        else:
            learner.tell(y[learner.ask()])
    ahead = learner.stopper.forecast
    assert not np.isin(learner.skipped, ahead.order).any()
    assert (ahead.n_pool, ahead.horizon) == (40, 38)
    learner.tell(y[learner.ask()])
    learner.extend_pool(X[40:])
    ahead = learner.stopper.forecast
    assert (ahead.n_pool, ahead.horizon, ahead.n_labelled) == (60, 58, 13)
    expected = quiet_forecast(X, learner.prior, learner.labelled, skipped=learner.skipped)
    np.testing.assert_array_equal(ahead.reduction, expected.reduction)
    # the last fit, to 12 labels, now sees more left: the pool is larger
    assert f"after 12 labels {100 * ahead.rmse_share[11]:.2g} %" in learner.stopper.reason
    while not learner.finished:
        learner = ActiveLearner.from_dict(learner.to_dict(), X)
        learner.tell(y[learner.ask()])
    assert learner.stopped


def test_the_forecast_of_a_known_model_follows_its_pool():
    rng = np.random.default_rng(0)
    X, gp = rng.uniform(0, 10, (60, 1)), GaussianProcess(1.0, 0.1)
    learner = ActiveLearner(X, gp=gp, stopper=LookAhead(0.05), seed=0)
    first = learner.stopper.stops_at
    for _ in range(5):
        learner.tell(0.0)
    X = np.vstack((X, rng.uniform(10, 30, (60, 1))))
    learner.extend_pool(X[60:])
    rule = learner.stopper
    assert rule.stops_at > first
    assert rule.n_labels == 5
    expected = quiet_forecast(X, gp, learner.labelled)
    np.testing.assert_array_equal(rule.forecast.reduction, expected.reduction)
    assert rule.stops_at == expected.labels_for(0.05)
    for _ in range(10):
        learner.skip()
    assert not np.isin(learner.skipped, rule.forecast.order).any()
    learner = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
    while not learner.finished:
        learner.tell(0.0)
    assert learner.n_labels == learner.stopper.stops_at == learner.stopper.stopped_at + 1
    learner.skip()
    assert learner.stopped
    assert learner.stopper.n_labels == learner.n_labels


def test_a_smaller_pool_stops_at_the_next_label():
    rng = np.random.default_rng(0)
    X, gp = rng.uniform(0, 30, (60, 1)), GaussianProcess(1.0, 0.1)
    learner = ActiveLearner(X, gp=gp, stopper=LookAhead(0.05), seed=0)
    while learner.n_labels < learner.stopper.stops_at - 2:
        learner.tell(0.0)
    n = learner.n_labels
    while learner.stopper.stops_at > n:
        learner.skip()
    assert not learner.stopped
    assert "the stop will be at the next one" in learner.stopper.reason
    learner.tell(0.0)
    assert learner.stopped
    assert learner.stopper.stopped_at == n  # one bound more than before


def test_a_forecast_that_was_given_stays():
    X, gp = pool(30), SMOOTH
    ahead = forecast(X, gp, labelled=[0])
    learner = ActiveLearner(X, gp=gp, stopper=LookAhead(0.05).begin(ahead), initial=[0])
    learner.skip()
    learner.tell(0.0)
    learner.extend_pool(pool(3, seed=9))
    assert learner.stopper.forecast.to_dict() == ahead.to_dict()


def test_a_skipped_initial_point_of_a_known_model():
    X, gp = pool(30), SMOOTH
    learner = ActiveLearner(X, gp=gp, stopper=LookAhead(0.05), initial=3, seed=0)
    learner.tell(0.0)
    learner.skip()
    rule = learner.stopper
    np.testing.assert_array_equal(rule.forecast.order[:3], learner.initial_rows)
    assert (rule.forecast.n_labelled, rule.n_labels) == (3, 3)


def test_a_pool_labelled_to_its_end():
    X, y = campaign(12)
    run = learn(X, y, stopper=LookAhead(1e-9), seed=0)
    assert run.n_labels == 12
    assert (
        run.verdict.stop or "is left" in run.verdict.reason or NOTHING_TO_LEARN in str(run.verdict)
    )


def test_a_corrected_label_is_another_fit():
    X, y = campaign()
    learner = ActiveLearner(X, stopper=LookAhead(0.05), seed=0)
    for _ in range(14):
        learner.tell(y[learner.ask()])
    before = learner.stopper.forecast
    learner.correct(int(learner.labelled[3]), 35.0)
    assert learner.stopper.forecast is not before
    assert learner.stopper.forecast.n_labelled == 14
