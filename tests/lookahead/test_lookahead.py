"""forecast and LookAhead, against brute force: refits with each point left out."""

import json
import math

import numpy as np
import pytest

from fastal import (
    ActiveLearner,
    FixedBudget,
    Forecast,
    GaussianProcess,
    LaplaceClassifier,
    LookAhead,
    Stopper,
    forecast,
    learn,
    reference,
    simulate,
)
from fastal._core import lookahead as lookahead_core
from fastal.lookahead import gain, rollout
from fastal.stopping import Criterion


def pool(n=30, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def process(**more):
    return GaussianProcess(**{"lengthscale": 0.8, "noise": 0.05, "amplitude": 1.7} | more)


def twin(gp):
    return reference.GaussianProcess(
        gp.lengthscale, gp.noise, amplitude=gp.amplitude, mean=gp.mean, kernel=gp.kernel
    )


# The numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("labelled", [(), (3,), (5, 2, 7, 1)])
@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": "matern32", "lengthscale": [0.5, 2.0]}, {"noise": 1.0, "mean": 4.0}],
    ids=["rbf", "matern", "noisy"],
)
def test_equals_refits_without_each_point(settings, labelled):
    X, gp = pool(10), process(**settings)
    order, reduction, final = reference.forecast(X, twin(gp), labelled=labelled)
    ahead = forecast(X, gp, labelled=labelled, samples=10)
    assert ahead.order.tolist() == order
    np.testing.assert_allclose(ahead.reduction, reduction, rtol=0, atol=1e-14)
    np.testing.assert_allclose(ahead.noise_of_final, final, rtol=1e-12)
    assert reduction[0] > 0.1
    assert ahead.n_labelled == len(labelled)


@pytest.mark.parametrize("labelled", [(), (4,), (9, 3, 22, 11, 0, 28, 17)])
@pytest.mark.parametrize("samples", [1, 7, 30])
def test_equals_the_loop_with_as_many_samples(labelled, samples):
    X, gp = pool(30), process()
    order, reduction, final = reference.forecast_loop(
        X, twin(gp), labelled=labelled, samples=samples
    )
    ahead = forecast(X, gp, labelled=labelled, samples=samples)
    assert ahead.order.tolist() == order
    np.testing.assert_allclose(ahead.reduction, reduction, rtol=0, atol=1e-14)
    np.testing.assert_allclose(ahead.noise_of_final, final, rtol=1e-12)


def test_three_points_by_hand():
    # K + noise I = [[2, c, 0], [c, 2, 0], [0, 0, 2]]: two neighbours and one far off.
    c = math.exp(-0.5)
    ahead = forecast([0.0, 1.0, 1000.0], GaussianProcess(1.0, 1.0))
    assert ahead.order.tolist() == [0, 2, 1]
    # After label 0 nobody can learn more but 0 itself, which lacks its neighbour: with 0 left out,
    # the far one comes first, as before. With both neighbours known nothing is left.
    np.testing.assert_allclose(ahead.reduction, [c * c / 2 / 3, 0.0, 0.0], atol=1e-15)
    # Only the neighbours are correlated, the third one tells nothing of them.
    np.testing.assert_allclose(ahead.noise_of_final, math.sqrt(2 * c * c / 3), rtol=1e-14)


def test_nothing_is_left_at_the_end_and_little_is_negative():
    ahead = forecast(pool(40), process(), labelled=[0])
    assert (ahead.reduction >= 0).all()
    np.testing.assert_allclose(ahead.reduction[-2:], 0.0, atol=1e-14)
    assert sorted(ahead.order) == list(range(40))


def test_samples_are_enough():
    X, gp = pool(120 if jitted() else 40, 3), process()
    some, every = forecast(X, gp, samples=32), forecast(X, gp, samples=len(X))
    assert np.abs(some.fraction - every.fraction).max() < 0.03


def jitted():
    return hasattr(lookahead_core.rerun, "py_func")


def test_the_order_is_that_of_learn():
    X, gp = pool(40, 3), process()
    run = learn(X, np.zeros(40), gp=gp, stopper=Stopper(1e-300), initial=[5, 8])
    ahead = forecast(X, gp, labelled=[5, 8])
    np.testing.assert_array_equal(ahead.order, run.indices)


def test_reference_inputs_have_the_variances_of_predict():
    X, others, gp = pool(25), pool(60, seed=1), process()
    ahead = forecast(X, gp, labelled=[4], reference=others)
    model, means = gp.copy(), []
    for i in ahead.order:
        model.add(X[i], 0.0)
        means.append(model.predict(others, return_var=True)[1].mean())
    np.testing.assert_allclose(ahead.reduction, np.array(means) - means[-1], atol=1e-13)
    C = model.predict(others, return_cov=True)[1]
    pairs = C[~np.eye(60, dtype=bool)]
    np.testing.assert_allclose(ahead.noise_of_final, np.sqrt(2 * np.mean(pairs**2)), rtol=1e-10)


def test_many_reference_inputs_go_by_blocks(monkeypatch):
    X, others, gp = pool(15), pool(50, seed=1), process()
    expected = forecast(X, gp, reference=others)
    monkeypatch.setattr(rollout, "PANEL", 8)
    monkeypatch.setattr(rollout, "PAIRED", 20)
    found = forecast(X, gp, reference=others)
    np.testing.assert_allclose(found.reduction, expected.reduction, rtol=0, atol=1e-13)
    first = forecast(X, gp, reference=others[:20])
    np.testing.assert_allclose(found.noise_of_final, first.noise_of_final, rtol=1e-10)


def test_leaving_out_agrees_with_other_inputs_of_the_population():
    n = 150 if jitted() else 60
    X, others, gp = pool(n), pool(3 * n, seed=1), process(lengthscale=1.5)
    a = forecast(X, gp, labelled=[0])
    b = forecast(X, gp, labelled=[0], reference=others)
    assert np.abs(a.fraction - b.fraction).max() < 0.15
    np.testing.assert_array_equal(a.order, b.order)


def test_a_horizon_cuts_and_still_refers_to_the_whole_pool():
    X, gp = pool(30), process()
    whole = forecast(X, gp, samples=30)
    part = forecast(X, gp, horizon=12, samples=30)
    assert part.horizon == 12
    assert part.whole
    np.testing.assert_array_equal(part.order, whole.order[:12])
    np.testing.assert_allclose(part.reduction, whole.reduction[:12], rtol=1e-12)
    assert part.noise_of_final == whole.noise_of_final


def test_a_large_pool_is_rolled_up_to_the_horizon(monkeypatch):
    X, others, gp = pool(60), pool(30, seed=1), process()
    small = forecast(X, gp, labelled=[7, 3], reference=others)
    monkeypatch.setattr(gain, "WHOLE_POOL", 50)
    large = forecast(X, gp, labelled=[7, 3], reference=others, horizon=20)
    np.testing.assert_array_equal(large.order, small.order[:20])
    expected = small.reduction[:20] - small.reduction[19]
    np.testing.assert_allclose(large.reduction, expected, atol=1e-13)
    assert not large.whole
    assert large.horizon == 20


def test_a_large_pool_holds_out_its_own_reference(monkeypatch):
    monkeypatch.setattr(gain, "WHOLE_POOL", 50)
    monkeypatch.setattr(gain, "FAR_AHEAD", 25)
    X, gp = pool(80), process()
    ahead = forecast(X, gp, labelled=[7, 3], seed=3)
    assert ahead.order[:2].tolist() == [7, 3]
    assert ahead.horizon == 27
    rest = np.setdiff1d(np.arange(80), [7, 3])
    held = np.random.default_rng(3).choice(rest, 7, replace=False)
    assert not np.isin(ahead.order, held).any()
    again = forecast(X, gp, labelled=[7, 3], reference=X[held], horizon=27)
    whole = forecast(X, gp, labelled=[7, 3], horizon=80)
    assert whole.horizon == 73
    assert again.noise_of_final != ahead.noise_of_final  # the held-out rows may be selected there
    np.testing.assert_array_equal(forecast(X, gp, labelled=[7, 3], seed=3).order, ahead.order)
    with pytest.raises(ValueError, match="`reference` must be given: 19 of 80 points are unlabell"):
        forecast(X, gp, labelled=range(61))


# What is given ----------------------------------------------------------------------------------


def test_labels_of_the_process_are_found_in_the_pool():
    X, gp = pool(30), process()
    y = np.sin(X).sum(axis=1)
    plain = forecast(X, gp, labelled=[3, 9, 21])
    for i in (3, 9, 21):
        gp.add(X[i], y[i])
    before = gp.to_dict()
    ahead = forecast(X, gp)
    np.testing.assert_array_equal(ahead.order, plain.order)
    np.testing.assert_array_equal(ahead.reduction, plain.reduction)
    assert ahead.n_labelled == 3
    assert gp.to_dict() == before
    np.testing.assert_array_equal(forecast(X, gp, labelled=[3, 9, 21]).order, plain.order)


def test_repeated_rows_are_told_apart():
    X, gp = pool(30), process()
    X[20] = X[5]
    gp.add(X[5], 0.1)
    gp.add(X[5], 0.2)
    assert forecast(X, gp).order[:2].tolist() == [5, 20]
    gp.add(X[5], 0.3)
    with pytest.raises(ValueError, match="`gp` must have labels of rows of `X` only, got label 2"):
        forecast(X, gp)


def test_rho_is_that_of_the_residuals():
    X, gp = pool(30), process(mean=0.2)
    y = np.sin(X).sum(axis=1)
    plain = gp.copy()
    squares = 0.0
    for t, i in enumerate([4, 8, 15, 16, 23]):
        mean, var = gp.predict(X[[i]], return_var=True)
        squares += float((y[i] - mean[0]) ** 2 / (var[0] + gp.noise))
        gp.add(X[i], y[i])
        assert forecast(X, gp).rho == pytest.approx((5 + squares) / (5 + t + 1), rel=1e-12)
    ahead = forecast(X, gp)
    expected = (1 + ahead.rho) / 2 / gp.noise * ahead.reduction
    np.testing.assert_allclose(ahead.loss_fall, expected, rtol=1e-14)
    assert forecast(X, plain).rho == 1.0
    np.testing.assert_allclose(
        forecast(X, plain).loss_fall, forecast(X, plain).reduction / gp.noise, rtol=1e-14
    )


@pytest.mark.parametrize(
    "layout",
    [
        lambda X: X.tolist(),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[::-1].copy()[::-1],
    ],
    ids=["list", "fortran", "strided", "reversed"],
)
def test_the_layout_does_not_matter(layout):
    X, gp = pool(20), process()
    X.flags.writeable = False
    expected = forecast(X, gp, labelled=[1])
    found = forecast(layout(X), gp, labelled=np.array([1], dtype=np.int32))
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_array_equal(found.reduction, expected.reduction)


BAD = [
    ({"gp": 3}, TypeError, "`gp` must be a GaussianProcess, got 3"),
    ({"X": [[1.0, math.nan]] * 4}, ValueError, "`X` must be finite"),
    ({"X": [[1.0, 2.0]]}, ValueError, "`X` must have at least two unlabelled points, got 1 of 1"),
    ({"labelled": range(29)}, ValueError, "`X` must have at least two unlabelled points, got 1"),
    ({"labelled": [30]}, ValueError, r"`labelled` must hold indices in \[0, 30\), got 30"),
    ({"labelled": [-1]}, ValueError, r"`labelled` must hold indices in \[0, 30\), got -1"),
    ({"labelled": [2, 2]}, ValueError, r"`labelled` must not hold an index twice, got \[2, 2\]"),
    ({"labelled": [0.5]}, TypeError, r"`labelled` must be indices, got \[0.5\]"),
    ({"horizon": 31}, ValueError, r"`horizon` must be between 2 and the size of the pool \(30\)"),
    ({"horizon": 3, "labelled": [0, 1, 2]}, ValueError, "`horizon` must be between 4 and"),
    ({"horizon": 2.5}, TypeError, "`horizon` must be an integer, got 2.5"),
    ({"reference": [[0.0, 1.0]]}, ValueError, "`reference` must have at least two rows, got 1"),
    ({"reference": [[0.0]] * 3}, ValueError, r"`reference` must have shape \(n, 2\), got \(3, 1\)"),
    ({"samples": 0}, ValueError, "`samples` must be at least 1, got 0"),
    ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD)
def test_bad_input(change, kind, message):
    arguments = {"X": pool(30), "gp": process()} | change
    with pytest.raises(kind, match=message):
        forecast(arguments.pop("X"), arguments.pop("gp"), **arguments)


def test_labels_that_do_not_fit():
    X, gp = pool(30), process()
    gp.add([9.0, 9.0], 0.3)
    with pytest.raises(ValueError, match="`gp` must have labels of rows of `X` only, got label 0"):
        forecast(X, gp)
    gp = process()
    gp.add(X[4], 0.3)
    with pytest.raises(ValueError, match="`labelled` must be the rows of the 1 labels of `gp`"):
        forecast(X, gp, labelled=[5])
    gp.add(X[5], 0.3, noise=0.5)
    with pytest.raises(ValueError, match=r"labels of its own noise 0.05 only, got 0.5 at label 1"):
        forecast(X, gp)
    gp = process()
    gp.add(1.0, 0.3)
    with pytest.raises(ValueError, match="`gp` has labels of 1 features, `X` has 2"):
        forecast(X, gp)


def test_more_repeated_rows_than_distinct_ones():
    X = np.repeat(pool(10), 3, axis=0)
    with pytest.raises(ValueError, match=r"`X` must not have more repeated rows than .* 20 of 30"):
        forecast(X, process())


def test_rows_that_agree_to_the_last_digit():
    X = np.repeat(np.linspace(0, 1, 15), 2) + np.tile([0, 1e-13], 15)
    with pytest.raises(np.linalg.LinAlgError, match="the factor breaks down at label 16"):
        forecast(X, GaussianProcess(0.01, 1e-20))


# What it says -----------------------------------------------------------------------------------


def test_warnings():
    X = pool(30)
    twice = np.r_[X[:27], X[:3]]
    with pytest.warns(UserWarning, match="3 of 30 rows repeat others"):
        ahead = forecast(twice, process())
    assert ahead.warnings[0] in str(ahead)
    with pytest.warns(UserWarning, match="the noise variance 0.0001 is nearly zero"):
        forecast(X, process(noise=1e-4, amplitude=1.0))
    y = np.sin(X).sum(axis=1)
    for scale, message in ((5.0, r"[\d.]+ times as far from"), (0.01, r"[\d.]+ times as near to")):
        gp = process()
        gp.add_batch(X[:12], scale * y[:12])
        with pytest.warns(UserWarning, match=message):
            assert not 1 / 3 < forecast(X, gp).rho < 2


def test_in_words():
    X, gp = pool(100 if jitted() else 40), process()
    ahead = forecast(X, gp, labelled=forecast(X, gp).order[:20])
    left, gained = ahead.reduction[19], ahead.reduction[0] - ahead.reduction[19]
    stop = ahead.labels_for(0.05)
    assert str(ahead) == (
        f"{len(X) - 20} more labels would lower the expected loss by about {100 * left / gained:.2g} "
        "% of what was gained so far (within a factor of two); 95 % of what labels up to the end "
        f"of the pool buy is bought after {stop}"
    )
    assert repr(ahead) == (
        f"Forecast(20 of {len(X)} labelled, up to {len(X)}: 5 % is left after {stop})"
    )
    fresh = forecast(X, gp)
    assert f"{len(X)} labels would lower" in str(fresh)
    assert f"about {fresh.loss_fall[0]:.2g} nats" in str(fresh)
    near = forecast(X, gp, horizon=3)
    assert near.labels_for(0.05) is None
    assert "beyond 3 labels" in str(near)
    late = forecast(X, gp, labelled=fresh.order[: len(X) - 5])
    assert f"is bought already, after {late.labels_for(0.05)}" in str(late)


def test_stops_are_what_they_say():
    ahead = forecast(pool(40), process(), labelled=[0])
    for eps in (0.5, 0.2, 0.05, 0.001):
        t = ahead.labels_for(eps)
        assert ahead.fraction[t - 1] <= eps < ahead.fraction[: t - 1].min()
    for price in (0.01, 0.2, 1.0, 5.0):
        t = ahead.labels_at_price(price)
        costs = [ahead.fraction[k - 1] + price * k / 40 for k in range(1, 41)]
        assert costs[t - 1] == min(costs)
    t = ahead.labels_as_paper()
    assert ahead.reduction[t - 1] <= ahead.noise_of_final < ahead.reduction[: t - 1].min()
    share = ahead.bought_by(10)
    assert share == pytest.approx(1 - ahead.reduction[10] / ahead.reduction[0])
    assert ahead.bought_by(0) == 0.0
    assert ahead.bought_by(39) == pytest.approx(1.0)


def test_bad_questions():
    ahead = forecast(pool(20), process())
    for eps in (0, 1, 1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match=r"`eps` must be in \(0, 1\), got"):
            ahead.labels_for(eps)
    with pytest.raises(ValueError, match="`price` must be positive, got 0"):
        ahead.labels_at_price(0)
    with pytest.raises(ValueError, match="`labels` must be at most 19, up to the horizon, got 20"):
        ahead.bought_by(20)


def test_a_forecast_can_be_kept():
    ahead = forecast(pool(20), process(), labelled=[2])
    again = Forecast.from_dict(json.loads(json.dumps(ahead.to_dict())))
    assert again.to_dict() == ahead.to_dict()
    np.testing.assert_array_equal(again.reduction, ahead.reduction)
    state = ahead.to_dict()
    for change, message in (
        ({"kind": "Run"}, "must describe a Forecast of version 2"),
        ({"version": 3}, "must describe a Forecast of version 2"),
        ({"version": True}, "must describe a Forecast of version 2"),
        ({"final_error": 0.0}, "damaged: `final_error` must be positive"),
        ({"n_pool": 19}, "damaged: its arrays do not fit"),
        ({"order": [0]}, "damaged: its arrays do not fit"),
        ({"reduction": [-1.0] * 20}, "damaged: `reduction` must not be negative"),
        ({"noise": 0.0}, "damaged: `noise` must be positive"),
        ({"whole": 1}, "damaged: `whole` must be True or False"),
        ({"more": 1}, "has the unknown 'more'"),
    ):
        with pytest.raises(ValueError, match=message):
            Forecast.from_dict(state | change)


# The criterion ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "labels", "text"),
    [
        (LookAhead(), lambda ahead: ahead.labels_for(0.05), "at most 5 % was asked for"),
        (LookAhead(0.2), lambda ahead: ahead.labels_for(0.2), "at most 20 % was asked for"),
        (LookAhead(price=0.3), lambda ahead: ahead.labels_at_price(0.3), "at the price 0.3"),
        (LookAhead(paper=True), Forecast.labels_as_paper, "less than the noise of the final error"),
    ],
)
def test_lookahead_stops_where_the_forecast_says(rule, labels, text):
    ahead = forecast(pool(40), process(), labelled=[0, 6])
    rule.begin(ahead)
    expected = labels(ahead)
    assert rule.stops_at == expected
    assert f"the stop will be at {expected}" in rule.reason
    said = [rule.push(1.0) for _ in range(38)]
    assert said == [t >= expected for t in range(3, 41)]
    assert rule.stopped_at == expected - 2
    assert f"after {expected} labels" in rule.reason
    assert text in rule.reason
    assert str(rule.verdict).startswith(f"stop after {expected - 2} bounds: after {expected} ")
    assert not rule.reset().stopped
    assert rule.forecast is ahead


def test_lookahead_follows_the_labels():
    X, gp = pool(30), process()
    y = 5 * np.sin(X).sum(axis=1)
    ahead = forecast(X, gp, labelled=[0])
    rule = LookAhead(0.01).begin(ahead)
    gp.add(X[0], y[0])
    squares = 0.0
    for i in ahead.order[1:20]:
        mean, var = gp.predict(X[[i]], return_var=True)
        rule.update(mean[0], var[0], y[i])
        squares += float((y[i] - mean[0]) ** 2 / (var[0] + gp.noise))
        gp.add(X[i], y[i])
    assert rule.n_labels == 20
    assert rule.rho == pytest.approx((5 + squares) / (5 + 19), rel=1e-10)
    assert "times as far from their predictions" in rule.reason
    with pytest.warns(UserWarning, match="times as far"):
        later = LookAhead(0.01).begin(forecast(X, gp))
    assert later.rho == pytest.approx(later.forecast.rho, rel=1e-14)
    i = ahead.order[20]
    mean, var = gp.predict(X[[i]], return_var=True)
    later.update(mean[0], var[0], y[i])
    gp.add(X[i], y[i])
    with pytest.warns(UserWarning, match="times as far"):
        assert later.rho == pytest.approx(forecast(X, gp).rho, rel=1e-10)


def test_enough_labels_stop_at_the_first_bound():
    X, gp = pool(30), process()
    ahead = forecast(X, gp, labelled=forecast(X, gp).order[:27])
    rule = LookAhead(0.5).begin(ahead)
    assert not rule.stopped
    assert rule.push(0.1)
    assert rule.stopped_at == 1


def test_a_horizon_too_near_never_stops():
    rule = LookAhead(0.001).begin(forecast(pool(30), process(), horizon=5))
    assert rule.extend([1.0] * 30) is None
    assert "no stop up to the horizon of 5 labels" in rule.reason


def test_lookahead_beside_other_criteria():
    ahead = forecast(pool(40), process(), labelled=[0])
    rule = LookAhead(0.1).begin(ahead) | FixedBudget(39)
    assert rule.extend([1.0] * 39) == ahead.labels_for(0.1) - 1
    both = LookAhead(0.1).begin(ahead) & Stopper()
    assert both.extend([1.0] * 39) is None


def test_learn_stops_there():
    X, gp = pool(40), process()
    rule = LookAhead(0.1).begin(forecast(X, gp, labelled=[3]))
    run = learn(X, np.sin(X).sum(axis=1), gp=gp, stopper=rule, initial=[3])
    assert run.n_labels == run.stopped_at == rule.stops_at
    np.testing.assert_array_equal(run.indices, rule.forecast.order[: run.n_labels])
    assert not rule.stopped
    with pytest.raises(ValueError, match="LookAhead has no forecast yet"):
        LookAhead().push(1.0)


def test_lookahead_can_be_kept():
    ahead = forecast(pool(30), process(), labelled=[0])
    rule = LookAhead(price=0.2)
    assert rule.copy().to_dict() == rule.to_dict()
    rule.begin(ahead)
    rule.update(0.1, 0.5, 0.9)
    rule.push(0.3)
    again = Criterion.from_dict(json.loads(json.dumps(rule.to_dict())))
    assert isinstance(again, LookAhead)
    assert again.to_dict() == rule.to_dict()
    assert (again.rho, again.stops_at, again.reason) == (rule.rho, rule.stops_at, rule.reason)
    assert repr(again) == "LookAhead(price=0.2)"
    assert repr(LookAhead()) == "LookAhead(eps=0.05)"
    assert repr(LookAhead(paper=True)) == "LookAhead(paper=True)"
    with pytest.raises(ValueError, match=r"`eps` must be in \(0, 1\), got 2"):
        LookAhead.from_dict(rule.to_dict() | {"eps": 2.0, "price": None})
    with pytest.raises(ValueError, match="`state` is damaged: `paper` must be True or False"):
        LookAhead.from_dict(rule.to_dict() | {"paper": 2})
    with pytest.raises(ValueError, match=r"`state\['seen'\]` must be an integer >= 0, got -1"):
        LookAhead.from_dict(rule.to_dict() | {"seen": -1})


def test_wrong_use_of_lookahead():
    for eps in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"`eps` must be in \(0, 1\), got"):
            LookAhead(eps)
    with pytest.raises(ValueError, match="`price` must be positive, got -1"):
        LookAhead(price=-1)
    with pytest.raises(ValueError, match=r"exclude one another, got 0.1, None and True"):
        LookAhead(0.1, paper=True)
    with pytest.raises(TypeError, match="`paper` must be True or False, got 'yes'"):
        LookAhead(paper="yes")
    rule = LookAhead()
    assert rule.reason == "there is no forecast yet"
    assert (rule.rho, rule.stopped_at, rule.n_labels) == (1.0, None, 0)
    with pytest.raises(ValueError, match="LookAhead has no forecast yet"):
        rule.push(1.0)
    with pytest.raises(TypeError, match="`forecast` must be a Forecast, got 3"):
        rule.begin(3)
    rule.begin(forecast(pool(20), process()))
    before = rule.to_dict()
    for call, message in (
        (lambda: rule.push(math.nan), "`r` must be finite"),
        (lambda: rule.update(0.0, -1.0, 0.0), "`var` must not be negative"),
        (lambda: rule.update(0.0, 1.0, math.inf), "`y` must be finite"),
        (lambda: rule.update(0.0, 1.0, 0.0, noise=0.0), "`noise` must be positive"),
        (lambda: rule.update(-1e200, 1.0, 1e200), "`y` is too far from `mean`, got 1e\\+200 and"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert rule.to_dict() == before


# Inside learn and simulate -----------------------------------------------------------------------


def campaign(n=60, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, n)
    return X[:, None], np.sin(X) + 0.1 * rng.normal(size=n)


RULES = [LookAhead(eps=0.05), LookAhead(price=0.3), LookAhead(paper=True)]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_learn_stops_where_the_forecast_says(rule):
    X, y = campaign()
    gp = GaussianProcess(1.2, 0.01)
    run = learn(X, y, gp=gp, stopper=rule, seed=1)
    ahead = forecast(X, gp, labelled=run.indices[:1])
    by_hand = rule.copy().begin(ahead)
    assert run.n_labels == run.stopped_at == by_hand.stops_at
    np.testing.assert_array_equal(run.indices, ahead.order[: run.n_labels])
    np.testing.assert_array_equal(run.stopper.history, ahead.fraction[1 : run.n_labels])
    # rho is that of the process with these labels
    assert run.stopper.rho == pytest.approx(forecast(X, run.gp).rho, rel=1e-12)
    assert rule.forecast is None  # the caller's is not changed


def test_a_stopper_is_used_again_on_another_pool():
    X, y = campaign()
    gp = GaussianProcess(1.2, 0.01)
    first = learn(X, y, gp=gp, stopper=LookAhead(), seed=1)
    narrow = learn(X / 3, y, gp=gp, stopper=LookAhead(), seed=1)
    assert first.n_labels != narrow.n_labels
    assert learn(X / 3, y, gp=gp, stopper=first.stopper, seed=1).n_labels == narrow.n_labels
    # what the caller gave stays
    ahead = forecast(X, gp, labelled=[0])
    assert LookAhead().begin(ahead).reset().forecast is ahead


def test_look_ahead_beside_the_papers_rule():
    X, y = campaign(100)
    gp = GaussianProcess(1.2, 0.01)
    alone = learn(X, y, gp=gp, stopper=LookAhead(), seed=1).n_labels
    paper = learn(X, y, gp=gp, stopper=Stopper(), seed=1).n_labels
    assert alone != paper
    either = learn(X, y, gp=gp, stopper=Stopper() | LookAhead(), seed=1)
    assert either.n_labels == min(alone, paper)
    both = learn(X, y, gp=gp, stopper=Stopper() & LookAhead(), seed=1)
    assert both.n_labels == max(alone, paper)
    assert "of what all labels buy is left" in both.verdict.reason


def test_simulate_makes_a_forecast_for_each_pool():
    X, y = campaign(150)
    gp = GaussianProcess([1.2], 0.01, kernel="matern52", amplitude=1.3)
    result = simulate(
        X, y, gp=gp, stopper=LookAhead(), criteria=RULES[1:], n_runs=4, pool_size=50, n_jobs=2
    )
    for run in range(4):
        rows = result.pool(run)
        for j, rule in enumerate(RULES):
            alone = learn(X[rows], y[rows], gp=gp, stopper=rule, initial=[0])
            stops = result.stopped_at if j == 0 else result.criteria_stops[:, j - 1]
            assert stops[run] == alone.stopped_at


def test_a_learner_with_look_ahead_can_be_kept():
    X, y = campaign()
    learner = ActiveLearner(
        X, gp=GaussianProcess(1.2, 0.01), stopper=LookAhead(eps=0.02), initial=2, seed=0
    )
    for _ in range(5):
        learner.tell(y[learner.ask()])
    twin = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
    while not learner.finished:
        index = learner.ask()
        assert twin.ask() == index
        learner.tell(y[index])
        twin.tell(y[index])
    assert twin.finished
    assert twin.stopper.stopped_at == learner.stopper.stopped_at


def test_look_ahead_refuses_what_it_cannot_foresee():
    X, y = campaign(20)
    gp = GaussianProcess(1.2, 0.01)
    for acquisition in ("random", lambda mean, var: var):
        with pytest.raises(ValueError, match="`acquisition` must be 'max_variance' with LookAhead"):
            learn(X, y, gp=gp, stopper=Stopper() | LookAhead(), acquisition=acquisition)
    other = LookAhead().begin(forecast(X[:10], gp, labelled=[0]))
    with pytest.raises(
        ValueError, match="must be of 20 points with 1 labels, got one of 10 with 1"
    ):
        learn(X, y, gp=gp, stopper=other)
    with pytest.raises(TypeError, match="LookAhead needs a GaussianProcess"):
        learn(X, np.sign(y), gp=LaplaceClassifier(), stopper=LookAhead())
    with pytest.raises(ValueError, match="at least two unlabelled points"):
        learn(X[:2], y[:2], gp=gp, stopper=LookAhead())
