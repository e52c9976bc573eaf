"""The criteria of the experiments: measures, histories, and how learn and simulate use them."""

import json
import math
import pickle

import numpy as np
import pytest
import twins
from numba import config

from fastal import FixedBudget, GaussianProcess, MinLabels, Stopper, learn, simulate
from fastal.bound import alquier_bound
from fastal.criteria import (
    ErrorStability,
    MaxUncertainty,
    OverallUncertainty,
    StabilizingPredictions,
)
from fastal.criteria.experiments import (
    CrossValidation,
    GroundTruth,
    MaxVariance,
    PACBayes,
    cross_validation_error,
    expected_loss,
    expected_losses,
    max_variances,
    pac_bayes_bound,
    pac_bayes_bounds,
)
from fastal.criteria.measures import first_crossing  # fmt: skip
from fastal.models import LaplaceClassifier
from fastal.stopping.criterion import Criterion


def problem(n=40, d=2, seed=0, mean=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, mean + np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


def process(**more):
    return GaussianProcess(**({"lengthscale": 1.1, "noise": 0.03, "amplitude": 1.4} | more))


def twin_of(gp):
    return twins.GaussianProcess(
        gp.lengthscale, gp.noise, amplitude=gp.amplitude, mean=gp.mean, kernel=gp.kernel
    )


@pytest.mark.parametrize("folds", [2, 3, 5])
@pytest.mark.parametrize("settings", [{}, {"mean": 2.5, "kernel": "matern32"}])
def test_cross_validation_is_a_refit_without_each_fold(folds, settings):
    gp = process(**settings)
    X, y = problem(mean=gp.mean)
    model, slow = gp.copy(), twin_of(gp)
    for t in range(len(y)):
        model.add(X[t], y[t])
        slow.add(X[t], y[t])
        if t + 1 >= folds:
            wanted = twins.cross_validation_error(slow, folds)
            assert cross_validation_error(model, folds) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("kappa", [1e-4, 0.01, 0.03, 2.0])
@pytest.mark.parametrize("settings", [{}, {"mean": 2.5, "kernel": "matern32"}])
def test_pac_bayes_is_alquiers_bound(kappa, settings):
    """0.03 is the noise: two of the matrices are then the same."""
    gp = process(**settings)
    X, y = problem(mean=gp.mean)
    history = pac_bayes_bounds(gp, X, y, 2.0, 0.05, kappa)
    model, slow = gp.copy(), twin_of(gp)
    for t in range(len(y)):
        model.add(X[t], y[t])
        slow.add(X[t], y[t])
        wanted = twins.pac_bayes_bound(slow, 2.0, 0.05, kappa)
        assert pac_bayes_bound(model, 2.0, 0.05, kappa) == pytest.approx(wanted, rel=1e-8)
        assert history[t] == pytest.approx(wanted, rel=1e-8)


def hetero(n=30):
    """A process whose labels have a noise variance each, and what made it."""
    X, y = problem(n)
    noise = np.random.default_rng(9).uniform(0.02, 0.5, n)
    gp = process(mean=0.2)
    gp.add_batch(X, y, noise)
    return gp, X, y, noise


@pytest.mark.parametrize("folds", [2, 7])
def test_cross_validation_with_a_noise_variance_per_label(folds):
    gp, X, y, noise = hetero()
    losses = np.empty(len(y))
    for first in range(folds):
        held = np.arange(len(y)) % folds == first
        rest = process(mean=0.2)
        rest.add_batch(X[~held], y[~held], noise[~held])
        mean, var = rest.predict(X[held], return_var=True)
        square = (y[held] - mean) ** 2 + var
        losses[held] = square / (2 * noise[held]) + 0.5 * np.log(2 * np.pi * noise[held])
    assert cross_validation_error(gp, folds) == pytest.approx(losses.mean(), rel=1e-10)


@pytest.mark.parametrize("kappa", [0.0, 0.01])
def test_pac_bayes_with_a_noise_variance_per_label(kappa):
    gp, X, y, noise = hetero()
    mean, var = gp.predict(X, return_var=True)
    risk = np.mean(((y - mean) ** 2 + var) / (2 * noise) + 0.5 * np.log(2 * np.pi * noise))
    wanted = alquier_bound(risk, gp.prior_kl(jitter=kappa), len(y), 1.5, delta=0.02)
    assert pac_bayes_bound(gp, 1.5, 0.02, kappa) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("criterion", "alone"),
    [
        (CrossValidation(-9.0, 3), lambda gp: cross_validation_error(gp, 3)),
        (PACBayes(-9.0, 1.0), lambda gp: pac_bayes_bound(gp, 1.0)),
        (PACBayes(-9.0, 1.0, kappa=0.0), lambda gp: pac_bayes_bound(gp, 1.0, kappa=0.0)),
    ],
)
def test_a_criterion_follows_its_process_wherever_it_goes(criterion, alone):
    """What it keeps from the last label must not show: not in labels taken back, not in others."""
    X, y = problem(120)
    noise = np.random.default_rng(1).uniform(0.02, 0.5, 120)
    gp, other = process(), process(lengthscale=0.7)
    gp.add_batch(X[:4], y[:4])
    other.add_batch(X[:90], y[:90])
    for t in range(4, 80):  # past the first capacity
        gp.add(X[t], y[t], noise[t])
        criterion.update(gp)
        assert criterion.history[-1] == pytest.approx(alone(gp), rel=1e-9)
    steps = [
        lambda: gp.rewind(70),
        lambda: gp.add(X[100], y[100]),
        lambda: gp.add_batch(X[101:104], y[101:104]),
        lambda: gp.add_batch(X[104:], y[104:]),
        lambda: gp.rewind(5),
    ]
    for step in steps:
        step()
        for one in (gp, other, gp):
            criterion.update(one)
            assert criterion.history[-1] == pytest.approx(alone(one), rel=1e-9)
    again = pickle.loads(pickle.dumps(criterion))
    assert again._spare is None
    again.update(gp)
    assert again.history[-1] == pytest.approx(alone(gp), rel=1e-9)
    assert criterion.reset().history.size == 0


def test_a_measure_goes_on_with_the_inverse_of_the_last_one():
    """It costs the square of the labels: to invert anew would cost the cube."""
    X, y = problem(60)
    gp, criterion = process(), PACBayes(-9.0, 1.0)
    gp.add_batch(X[:50], y[:50])
    criterion.update(gp)
    started = []
    inverses = criterion._spare
    start = inverses._start
    inverses._start = lambda labels: (started.append(len(labels.y)), start(labels))
    for t in range(50, 60):
        gp.add(X[t], y[t])
        criterion.update(gp)
    assert criterion._spare is inverses
    assert started == []


def test_pac_bayes_without_kappa_is_its_limit():
    """Few points far apart: a dense KL is then accurate without kappa."""
    X, y = problem(n=8)
    X *= 3
    gp = process()
    slow = twin_of(gp)
    slow.add_batch(X, y)
    wanted = twins.pac_bayes_bound(slow, 1.0, 0.01, 0.0)
    assert pac_bayes_bounds(gp, X, y, 1.0, 0.01, 0.0)[-1] == pytest.approx(wanted, rel=1e-10)
    gp.add_batch(X, y)
    assert pac_bayes_bound(gp, 1.0, 0.01, 0.0) == pytest.approx(wanted, rel=1e-10)


def test_pac_bayes_by_hand():
    """One label 0.5 at noise 0.01: mu = 0.5 / 1.01, s = 0.01 / 1.01."""
    from mpmath import log, mp, mpf, pi

    with mp.workdps(30):
        noise = mpf(0.01)
        mu, s = mpf(0.5) / (1 + noise), noise / (1 + noise)
        train = ((mpf(0.5) - mu) ** 2 + s) / (2 * noise) + log(2 * pi * noise) / 2
        ratio = (s + noise) / (1 + noise)
        wanted = (
            train + (ratio + mu**2 / (1 + noise) - 1 - log(ratio)) / 2 - log(noise) + mpf(1) / 2
        )
    gp = GaussianProcess(noise=0.01)
    gp.add(0.0, 0.5)
    assert pac_bayes_bound(gp, 1.0) == pytest.approx(float(wanted), rel=1e-13)
    assert pac_bayes_bounds(GaussianProcess(noise=0.01), [0.0], [0.5], 1.0)[0] == pytest.approx(
        float(wanted), rel=1e-13
    )


def test_losses_and_variances_are_the_textbooks():
    X, y = problem(30, mean=1.0)
    test = problem(50, seed=1, mean=1.0)
    gp = process(mean=1.0)
    order = np.random.default_rng(0).permutation(30)[:20]
    variances = max_variances(gp, X, order)
    losses = expected_losses(gp, X[order], y[order], *test)
    model, slow = gp.copy(), twin_of(gp)
    for t in range(len(order)):
        model.add(X[order[t]], y[order[t]])
        slow.add(X[order[t]], y[order[t]])
        wanted = twins.expected_loss(slow, *test)
        assert losses[t] == pytest.approx(wanted, rel=1e-11)
        assert expected_loss(model, *test) == pytest.approx(wanted, rel=1e-11)
        left = np.setdiff1d(np.arange(30), order[: t + 1])
        largest = slow.predict(X[left], return_var=True)[1].max()
        assert variances[t] == pytest.approx(largest, rel=1e-11)
    assert max_variances(gp, X, np.arange(30))[-1] == 0.0


def all_criteria(test):
    return [
        MaxVariance(0.3),
        CrossValidation(2.0),
        PACBayes(6.0, 3.0),
        GroundTruth(*test, 20.0),
        MaxVariance(0.3) & CrossValidation(2.0),
        Stopper() | PACBayes(6.0, 3.0),
    ]


def names(criteria):
    return [repr(criterion)[:30] for criterion in criteria]


TEST = problem(60, seed=1)


def cross_validation_history(X, y, folds=5):
    model, found = process(), []
    for t in range(len(y)):
        model.add(X[t], y[t])
        found.append(cross_validation_error(model, folds) if t + 1 >= folds else np.nan)
    return np.array(found)


@pytest.mark.parametrize("criterion", all_criteria(TEST), ids=names(all_criteria(TEST)))
def test_learn_shows_each_what_it_goes_by(criterion):
    """The stop and the history are those of the pure functions over the run."""
    X, y = problem()
    run = learn(X, y, gp=process(), criterion=criterion, seed=3)
    again = learn(X, y, gp=process(), criterion=FixedBudget(100), seed=3)  # all labels
    assert (again.indices[: run.n_labels] == run.indices).all()
    points, labels = X[again.indices], y[again.indices]

    def histories(one):
        if isinstance(one, Stopper):
            return again.bounds
        if isinstance(one, MaxVariance):
            return max_variances(process(), X, again.indices)[1:]
        if isinstance(one, CrossValidation):
            return cross_validation_history(points, labels)[1:]
        if isinstance(one, PACBayes):
            return pac_bayes_bounds(process(), points, labels, one.loss_range)[1:]
        start = expected_loss(process(), *TEST)
        return start - expected_losses(process(), points, labels, *TEST)[1:]

    members = getattr(criterion, "members", (criterion,))
    stops = []
    for member, seen in zip(
        members, getattr(run.criterion, "members", (run.criterion,)), strict=True
    ):
        history = histories(member)
        np.testing.assert_allclose(seen.bounds, history[: len(seen)], rtol=1e-8)
        if isinstance(member, Stopper):
            stops.append(member.copy().extend(history))
        else:
            rises = isinstance(member, GroundTruth)
            stops.append(first_crossing(history, member.threshold, rises=rises))
    wanted = stops[0]
    if len(members) == 2 and "&" in repr(criterion):
        wanted = max(stops)
    elif len(members) == 2:
        wanted = min(stop for stop in stops if stop is not None)
    assert run.stopped_at == wanted + 1
    assert run.stopped
    assert str(run.verdict).startswith(f"stop after {wanted} ")
    assert not criterion.stopped  # the caller's is not changed


def test_simulate_agrees_with_learn():
    X, y = problem(120)
    criteria = all_criteria(TEST)
    result = simulate(
        X, y, gp=process(), criteria=criteria, criterion=MaxVariance(0.2) | FixedBudget(30),
        n_runs=5, pool_size=40, test=TEST, seed=4,
    )  # fmt: skip
    for run in range(5):
        rows = result.pool(run)
        for j, criterion in enumerate([*criteria, MaxVariance(0.2) | FixedBudget(30)]):
            one = learn(X[rows], y[rows], gp=process(), criterion=criterion, initial=[0])
            stops = result.criteria_stops[run, j] if j < 6 else result.stopped_at[run]
            assert stops == (one.stopped_at or -1)
            if j < 4:
                history = one.criterion.history
                got = result.history(j)[run, : len(history)]
                np.testing.assert_allclose(got, history, rtol=1e-8)
    assert (result.history(5) == result.bounds).all()
    text = repr(result)
    assert "CrossValidation(threshold=2.0): " in text
    assert "e_stop" in text


def test_ground_truth_of_a_runs_own_test_set():
    X, y = problem(90)
    result = simulate(
        X, y, gp=process(), criteria=[GroundTruth(None, None, 15.0)], n_runs=4, pool_size=30
    )
    for run in range(4):
        rows = result.pool(run)
        left = np.setdiff1d(np.arange(90), rows)
        one = learn(
            X[rows], y[rows], gp=process(), initial=[0],
            criterion=GroundTruth(X[left], y[left], 15.0),
        )  # fmt: skip
        assert result.criteria_stops[run, 0] == one.stopped_at
        n = len(one.bounds)
        np.testing.assert_allclose(result.history(0)[run, :n], one.criterion.history, rtol=1e-9)
    with pytest.raises(ValueError, match="`X_test` must be given if there is no `test`"):
        simulate(X, y, gp=process(), criteria=[GroundTruth(None, None, 1.0)], n_runs=2, test=None)
    with pytest.raises(ValueError, match="`X_test` must be given outside `simulate`"):
        learn(X, y, gp=process(), criterion=GroundTruth(None, None, 1.0))


def test_same_digits_for_any_number_of_threads(tmp_path):
    X, y = problem(120)
    settings = {
        "gp": process(), "criteria": all_criteria(TEST)[:4], "n_runs": 3 if config.DISABLE_JIT else 30,
        "pool_size": 40,
        "test": "rest",
    }  # fmt: skip
    one = simulate(X, y, n_jobs=1, **settings)
    two = simulate(X, y, n_jobs=2, store=tmp_path / "runs.sqlite", **settings)
    kept = simulate(X, y, store=tmp_path / "runs.sqlite", **settings)
    for other in (two, kept):
        assert (one.criteria_stops == other.criteria_stops).all()
        for j in range(4):
            assert one.history(j).tobytes() == other.history(j).tobytes()
    few = simulate(X, y, keep="summary", **settings)
    assert (few.criteria_stops == one.criteria_stops).all()
    with pytest.raises(ValueError, match="histories are not kept"):
        few.history(0)
    with pytest.raises(ValueError, match=r"`j` must be in \[0, 4\), got 4"):
        one.history(4)


@pytest.mark.parametrize("criterion", all_criteria(TEST), ids=names(all_criteria(TEST)))
def test_snapshots(criterion):
    X, y = problem()
    run = learn(X, y, gp=process(), criterion=criterion, max_labels=6, seed=3)
    seen = run.criterion
    for twin in (
        Criterion.from_dict(json.loads(json.dumps(seen.to_dict(), allow_nan=False))),
        pickle.loads(pickle.dumps(seen)),
        seen.copy(),
    ):
        assert repr(twin) == repr(seen)
        assert (twin.stopped_at, twin.verdict.reason) == (seen.stopped_at, seen.verdict.reason)
        np.testing.assert_equal(twin.bounds, seen.bounds)
    assert seen.reset() is seen
    assert not seen.stopped


@pytest.mark.parametrize(
    ("criterion", "values", "stop", "reason"),
    [
        (
            MaxVariance(0.5),
            [1.0, 0.4, 0.9],
            2,
            "largest variance of an unlabelled point (0.4) is at most 0.5",
        ),
        (
            MaxVariance(0.5),
            [1.0, 0.6],
            None,
            "largest variance of an unlabelled point (0.6) is above 0.5",
        ),
        (
            CrossValidation(-1),
            [0.0, -1.0],
            2,
            "expected loss by cross-validation (-1) is at most -1",
        ),
        (GroundTruth(None, None, 3), [2, 4], 2, "fall of the test loss (4) is at least 3"),
        (PACBayes(3, 1), [], None, "no PAC-Bayesian bound yet"),
    ],
)
def test_thresholds_by_hand(criterion, values, stop, reason):
    for t, value in enumerate(values, start=1):
        assert criterion.push(value) is (stop is not None and t >= stop)
    assert criterion.stopped_at == stop
    assert criterion.verdict.reason == reason
    assert criterion.history.tolist() == values
    assert first_crossing(values, criterion.threshold, rises="fall" in reason) == stop


def test_members_may_be_fed_one_by_one():
    either = Stopper() | MaxVariance(0.1)
    bounds, variance = either.members
    bounds.push(0.4)
    variance.update([0.3, 0.2])
    assert not either.stopped
    bounds.push(0.3)
    variance.update([0.3, 0.05])
    bounds.push(0.2)
    variance.update([0.02, 0.05])
    assert either.stopped_at == 3
    assert either.verdict.reason == "largest variance of an unlabelled point (0.05) is at most 0.1"
    assert (MaxVariance(0.1) & MinLabels(3)).extend([0.05, 0.05, 0.2]) == 3


def test_a_number_that_one_member_refuses_reaches_none():
    both = MinLabels(3) & (StabilizingPredictions() | StabilizingPredictions(0.5))
    with pytest.raises(ValueError, match=r"`r` must be in \[-1, 1\], got 2"):
        both.push(2.0)
    count, either = both.members
    assert [len(one) for one in (count, *either.members)] == [0, 0, 0]


def test_what_only_saves_time_is_neither_copied_nor_saved():
    gp, criterion = process(), CrossValidation(-9.0)
    gp.add_batch(*problem(n=8))
    criterion.update(gp)
    assert criterion._spare is not None
    for twin in (criterion.copy(), pickle.loads(pickle.dumps(criterion)), criterion.replace()):
        assert twin._spare is None
    assert criterion.reset()._spare is None


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: MaxVariance(0.0), ValueError, "`threshold` must be positive, got 0"),
        (lambda: MaxVariance("a"), TypeError, "`threshold` must be a real number"),
        (lambda: MaxVariance(1).push(math.nan), ValueError, "`r` must be finite, got nan"),
        (lambda: MaxVariance(1).update([0.1, -2.0]), ValueError, "`var` must not be negative, got -2.0"),
        (lambda: CrossValidation(math.inf), ValueError, "`threshold` must be finite, got inf"),
        (lambda: CrossValidation(1, folds=1), ValueError, "`folds` must be at least 2, got 1"),
        (lambda: CrossValidation(1).update(3), TypeError, "`gp` must be a GaussianProcess, got 3"),
        (lambda: CrossValidation(1).update(process()), ValueError, "`gp` must have labels"),
        (lambda: PACBayes(1, -2), ValueError, "`loss_range` must not be negative"),
        (lambda: PACBayes(1, 1, delta=2), ValueError, r"`delta` must be in \(0, 1\], got 2"),
        (lambda: PACBayes(1, 1, kappa=-1), ValueError, "`kappa` must not be negative"),
        (lambda: GroundTruth([1.0], None, 1), ValueError, "must both be given"),
        (lambda: GroundTruth([1.0], [1.0, 2.0], 1), ValueError, "`y_test` must"),
        (lambda: GroundTruth([], [], 1), ValueError, "`X_test` must have at least one row"),
        (lambda: first_crossing([[1.0]], 1), ValueError, "`history` must have one axis"),
        (lambda: max_variances(process(), [1.0, 2.0], [2]), ValueError, "`order` must hold"),
        (lambda: max_variances(process(), [1.0, 2.0], [0, 0]), ValueError, "`order` must not hold"),
        (lambda: max_variances(process(), [1.0, 2.0], [0.5]), TypeError, "`order` must be row"),
        (
            lambda: Criterion.from_dict(MaxVariance(1.0).to_dict() | {"history": ["a"]}),
            ValueError, "`state` is damaged",
        ),
        (
            lambda: Criterion.from_dict({"kind": "MaxVariance", "version": 3, "settings": {}}),
            ValueError, "history",
        ),
        (
            lambda: Criterion.from_dict({"kind": "MaxVariance", "version": 1, "threshold": 1.0}),
            ValueError, "is a MaxVariance of fastal 0.1 or 0.2",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_bad_input_changes_nothing():
    criterion = CrossValidation(1.0)
    criterion.push(3.0)
    for bad in (lambda: criterion.push(math.nan), lambda: criterion.update(process())):
        with pytest.raises(ValueError, match="`"):
            bad()
    assert criterion.history.tolist() == [3.0]


@pytest.mark.parametrize(
    "criterion",
    [
        StabilizingPredictions(0.9, 3, every=1),
        OverallUncertainty(0.65, every=1),
        MaxUncertainty(0.98, every=1),
        ErrorStability(0.2),
    ],
    ids=repr,
)
def test_criteria_of_the_related_work_in_learn(criterion):
    """Each sees the classifier after each label, as if it had been told by hand."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 2, size=(40, 1))
    y = np.where(np.sin(np.pi * X[:, 0]) > 0, 1, 0)
    model = LaplaceClassifier(0.4, amplitude=9.0)
    run = learn(X, y, gp=model, criterion=criterion, initial=4, seed=0)
    assert run.stopped
    by_hand, model = criterion.copy(), model.copy()
    for t, index in enumerate(run.indices.tolist()):
        bound = model.add(X[index], y[index])
        if t < 4:
            continue
        if isinstance(criterion, ErrorStability):
            stop = by_hand.update(bound)
        elif isinstance(criterion, StabilizingPredictions):
            stop = by_hand.update(model.predict(X))
        else:
            left = np.setdiff1d(np.arange(40), run.indices[: t + 1])
            stop = by_hand.update(model.predict_proba(X[left]))
        assert stop is (t + 1 == run.n_labels)
    np.testing.assert_allclose(run.criterion.history, by_hand.history, rtol=1e-9)


def test_classes_are_for_classifiers():
    X, y = problem(20)
    for criterion in (StabilizingPredictions(), MaxUncertainty(0.1)):
        with pytest.raises(TypeError, match="goes by predicted classes: it needs a classifier"):
            learn(X, y, gp=process(), criterion=criterion)
        with pytest.raises(TypeError, match="goes by predicted classes: it needs a classifier"):
            simulate(X, y, gp=process(), criteria=[criterion], n_runs=2)


def test_error_stability_goes_by_bounds_in_simulate():
    X, y = problem(60)
    result = simulate(X, y, gp=process(), criteria=[ErrorStability(0.3)], n_runs=3, pool_size=30)
    for run in range(3):
        assert (
            result.criteria_stops[run, 0]
            == (ErrorStability(0.3).extend(result.bounds[run]) or -2) + 1
        )
    assert (result.history(0) == result.bounds).all()
