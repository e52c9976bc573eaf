"""The labelling day as it is: batches, failures, known labels, corrections, pools that grow."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from labelling_problem import GP, NEVER, kind, problem  # noqa: F401 (kind is a fixture)
from numba import config

from fastal import ActiveLearner, FixedBudget, GaussianProcess, MovementBelow, Stopper, learn
from fastal.criteria import MaxVariance
from fastal.models import LaplaceClassifier

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; test_campaign_by_chance has few",
)


def snapshot(learner):
    """What must not change when something is refused."""
    return json.dumps(learner.to_dict()), learner.pending.tolist()


def told(learner, y, n):
    while learner.n_labels < n:
        learner.tell(y[learner.ask()])
    return learner


# batches -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("gp", [None, GP])
@pytest.mark.parametrize("acquisition", ["max_variance", "random"])
@pytest.mark.parametrize("skips", [False, True])
def test_a_batch_is_many_questions(gp, acquisition, skips):
    X, y = problem(60)
    settings = {"gp": gp, "criterion": NEVER, "acquisition": acquisition, "seed": 3, "initial": 6}
    batch, single = (ActiveLearner(X, **settings) for _ in range(2))
    told(batch, y, 14)
    told(single, y, 14)
    if skips:
        for _ in range(2):
            batch.ask()
            batch.skip()
            single.tell(None, index=single.ask())
    if gp is None:  # a fit would come in between
        batch._refits.growth = single._refits.growth = 100.0
    rows = batch.ask(9)
    assert rows.dtype == np.int64
    expected = []
    for _ in range(9):
        expected.append(single.ask())
        single.tell(y[expected[-1]])
    assert rows.tolist() == expected
    batch.tell(y[rows])
    np.testing.assert_allclose(batch.bounds, single.bounds, rtol=1e-9)
    assert batch.n_labels == 23


def test_the_first_batch():
    X, y = problem(60)
    with_gp = ActiveLearner(X, gp=GP, criterion=NEVER, initial=3, seed=1)
    single = ActiveLearner(X, gp=GP, criterion=NEVER, initial=3, seed=1)
    rows = with_gp.ask(7)
    for row in rows:
        assert single.ask() == row
        single.tell(y[row])
    learner = ActiveLearner(X, criterion=NEVER, seed=1)
    rows = learner.ask(12)
    assert rows[:5].tolist() == learner.initial_rows.tolist()
    assert len(set(rows.tolist())) == 12
    learner.tell(y[rows])
    assert learner.n_initial == 5
    assert len(learner.bounds) == len(learner.criterion.bounds) == 7
    assert [fit.n_labels for fit in learner.refits] == [12]


def test_asking_again():
    X, y = problem()
    learner = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0), y, 5)
    assert learner.pending.tolist() == []
    rows = learner.ask(4)
    assert learner.ask(4).tolist() == rows.tolist() == learner.pending.tolist()
    before = snapshot(learner)
    for n in (None, 1, 5):
        with pytest.raises(ValueError, match=f"`n` must be 4 as before .*, got {n or 1}"):
            learner.ask(n)
    assert snapshot(learner) == before
    learner.tell(y[rows[:3]], index=rows[:3])
    assert learner.ask() == rows[3]  # the only one that is left of the four
    assert learner.ask(4).tolist() == learner.ask(1).tolist() == [rows[3]]
    learner.tell(y[rows[3]])
    assert learner.ask(1).tolist() == [learner.ask()] == learner.pending.tolist()
    for bad in (0, -1, 2.5, "a", True):
        with pytest.raises((ValueError, TypeError), match="`n` must be"):
            learner.ask(bad)


def test_fewer_are_left():
    X, y = problem(12)
    learner = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0), y, 9)
    rows = learner.ask(10)
    assert len(rows) == 3
    assert learner.ask(10).tolist() == rows.tolist()
    learner.tell(y[rows])
    assert learner.finished
    with pytest.raises(ValueError, match="all 12 points of the pool are labelled"):
        learner.ask(2)
    learner = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0, max_labels=7), y, 6)
    assert len(learner.ask(3)) == 1


def test_a_choice_that_looks_at_labels():
    X, y = problem()
    signs = (y > 4.5).astype(float)
    for learner in (
        ActiveLearner(X, gp=GP, criterion=NEVER, acquisition=lambda m, v: v, seed=0),
        ActiveLearner(X, gp=LaplaceClassifier(1.0), criterion=Stopper(), seed=0),
    ):
        learner.tell(signs[learner.ask()])
        with pytest.raises(
            ValueError, match="`n` must be 1 where the choice looks at labels, got 3"
        ):
            learner.ask(3)
        assert len(learner.ask(1)) == 1
    learner = ActiveLearner(
        X, gp=GP, criterion=NEVER, acquisition=lambda m, v: v, initial=4, seed=0
    )
    assert len(learner.ask(4)) == 4  # the initial ones
    learner = ActiveLearner(X, gp=LaplaceClassifier(1.0), criterion=Stopper(), acquisition="random")
    assert len(learner.ask(4)) == 4


@pytest.mark.parametrize("gp", [None, GP])
def test_a_wrong_number_of_labels(gp):
    X, y = problem()
    learner = told(ActiveLearner(X, gp=gp, criterion=NEVER, seed=0), y, 8)
    for ask in (3, None):
        if ask:
            learner.ask(ask)
        before = snapshot(learner)
        for bad in ([1.0, 2.0], [], 1.0) if ask else ([1.0] * 60, [1.0], 1.0, []):
            with pytest.raises(ValueError, match=r"`y` must have|no point was asked for"):
                learner.tell(bad)
            assert snapshot(learner) == before
        for bad in ([1.0, "a", 2.0], [1.0, math.inf, 2.0], [1.0, [2.0], 3.0], np.ones((3, 1))):
            with pytest.raises((ValueError, TypeError), match="`y`"):
                learner.tell(bad)
            assert snapshot(learner) == before
        with pytest.raises(ValueError, match="`noise` must be" if ask else "no point was asked"):
            learner.tell([1.0, 2.0, 3.0], noise=[0.1, 0.2])
        with pytest.raises(ValueError, match="`y` must have 2 labels, one per `index`, got 3"):
            learner.tell([1.0, 2.0, 3.0], index=[1, 2])
        assert snapshot(learner) == before
        if ask:
            learner.tell([4.0, 5.0, 6.0])
    with pytest.raises(ValueError, match=r"point 99|in \[0, 50\)"):
        learner.tell(1.0, index=99)
    with pytest.raises(ValueError, match="has a label already; `correct` replaces it"):
        learner.tell(1.0, index=learner.run().indices[0])


def test_a_batch_with_a_label_that_no_process_explains():
    X, y = problem()
    learner = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0), y, 6)
    rows = learner.ask(4)
    before = snapshot(learner)
    with (
        pytest.warns(UserWarning, match="prior standard deviations from"),
        pytest.raises(ValueError, match=f"point {rows[2]}, y = 1e.200.* too far"),
    ):
        learner.tell([4.0, 4.0, 1e200, 4.0])
    assert snapshot(learner) == before  # none of the four
    learner.tell(y[rows])
    assert learner.run().indices[-4:].tolist() == rows.tolist()
    other = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0), y, 10)
    assert (other.bounds == learner.bounds).all()
    # nor does one that was not asked for come first in the order
    learner = ActiveLearner(X, gp=GP, criterion=NEVER, initial=[1, 2, 3], seed=0)
    with (
        pytest.warns(UserWarning, match="prior standard deviations from"),
        pytest.raises(ValueError, match="too far"),
    ):
        learner.tell(1e200, index=17)
    assert learner.initial_rows.tolist() == [1, 2, 3]
    assert learner.ask() == 1


def test_labels_of_a_batch_in_another_order():
    X, y = problem()
    learner = told(ActiveLearner(X, criterion=NEVER, seed=0), y, 14)
    rows = learner.ask(5)
    learner.tell(y[rows[3]], index=rows[3])
    assert learner.pending.tolist() == rows[[0, 1, 2, 4]].tolist()
    learner.tell(y[rows[[4, 0]]], index=rows[[4, 0]])
    learner.tell(None, index=int(rows[1]))
    assert learner.pending.tolist() == [rows[2]]
    assert learner.ask(5).tolist() == [rows[2]]
    assert [fit.n_labels for fit in learner.refits][-1] == 14
    learner.tell([y[rows[2]]])
    assert [fit.n_labels for fit in learner.refits][-1] == 18
    run = learner.run()
    assert run.indices[-4:].tolist() == rows[[3, 4, 0, 2]].tolist()
    assert run.skipped.tolist() == [rows[1]]
    # the same labels in that order, one by one
    again = ActiveLearner(X, criterion=NEVER, initial=run.indices[:5], seed=0)
    for row in run.indices:
        again.tell(y[row], index=row)
    assert (again.run().labels == run.labels).all()


def test_a_fit_waits_for_the_end_of_a_batch():
    X, y = problem(80)
    learner = ActiveLearner(X, criterion=NEVER, seed=0)
    for _ in range(6):
        rows = learner.ask(9)
        learner.tell(y[rows[:4]], index=rows[:4])
        n = len(learner.refits)
        learner.tell(y[rows[4:]], index=rows[4:])
        assert len(learner.refits) == n + 1
    assert [fit.n_labels for fit in learner.refits] == [9, 18, 27, 36, 45, 54]
    # a point that is never told does not keep fits waiting for ever
    rows = learner.ask(2)
    for row in np.flatnonzero(learner.unlabelled)[:4]:
        learner.tell(y[row], index=row)
    learner = told(ActiveLearner(X, criterion=NEVER, seed=0), y, 8)
    learner.ask()
    others = [row for row in np.flatnonzero(learner.unlabelled) if row not in learner.pending]
    learner.tell(y[others[:2]], index=others[:2])
    assert learner.refits[-1].n_labels == 10
    assert len(learner.pending) == 1


@pytest.mark.parametrize("gp", [None, GP])
def test_a_stop_inside_a_batch(gp):
    X, y = problem()
    learner = told(ActiveLearner(X, gp=gp, criterion=FixedBudget(12), initial=5, seed=0), y, 14)
    rows = learner.ask(10)
    verdict = learner.tell(y[rows])
    assert (verdict.stop, verdict.n) == (True, 12)
    run = learner.run()
    assert (run.stopped_at, run.n_labels, len(run.bounds)) == (17, 24, 19)
    assert learner.finished
    assert learner.ask() not in run.indices  # asking goes on


# failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, math.nan, np.float32("nan"), np.array(math.nan), pd.NA])
def test_what_cannot_be_measured(nothing):
    X, y = problem()
    learner = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0), y, 6)
    bounds, row = learner.bounds, learner.ask()
    learner.tell(nothing)
    assert (learner.bounds == bounds).all()
    assert learner.skipped.tolist() == learner.run().skipped.tolist() == [row]
    assert not learner.unlabelled[row]
    told(learner, y, 49)
    assert learner.finished
    assert row not in learner.run().indices
    assert learner.largest_variance == 0.0
    with pytest.raises(ValueError, match="all 49 points of the pool are labelled, 1 cannot be"):
        learner.ask()
    assert learner.to_dict()["skipped"] == learner.run().to_dict()["skipped"] == [row]
    learner.tell(y[row], index=row)  # it could be measured after all
    assert learner.skipped.tolist() == []
    assert learner.n_labels == learner.most_labels == 50


def test_skipping_one_of_several():
    X, y = problem()
    learner = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0), y, 6)
    rows = learner.ask(4)
    with pytest.raises(ValueError, match="`y` must have 4 labels"):
        learner.skip()
    learner.tell([y[rows[0]], None, math.nan, y[rows[3]]])
    assert learner.skipped.tolist() == rows[1:3].tolist()
    assert learner.run().indices[-2:].tolist() == rows[[0, 3]].tolist()
    learner.tell(None, index=rows[1])  # said twice
    assert learner.skipped.tolist() == rows[1:3].tolist()
    assert learner.n_labels == 8


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("gp", [None, GP])
@pytest.mark.parametrize("acquisition", ["max_variance", "random"])
def test_skipping_initial_points(gp, acquisition):
    X, y = problem(20)
    settings = {"gp": gp, "criterion": NEVER, "initial": 5, "seed": 2, "acquisition": acquisition}
    learner = ActiveLearner(X, **settings)
    first = learner.ask()
    learner.skip()
    second = learner.ask()
    learner.tell(y[second])
    third = learner.ask()
    learner.skip()
    told(learner, y, 5)
    rows = learner.run().indices
    assert not {first, third} & set(rows.tolist())
    assert learner.initial_rows.tolist() == rows.tolist()
    assert len(learner.bounds) == 0
    told(learner, y, 18)
    assert len(learner.bounds) == len(learner.criterion.bounds) == 13
    assert learner.finished


@pytest.mark.parametrize("gp", [None, GP])
def test_skipping_everything(gp):
    X, y = problem(9)
    learner = ActiveLearner(X, gp=gp, criterion=NEVER, seed=2)
    while not learner.finished:
        learner.ask()
        learner.skip()
    assert len(learner.skipped) == 9
    assert learner.n_labels == 0
    with pytest.raises(ValueError, match="all 0 points of the pool are labelled, 9 cannot"):
        learner.ask()
    again = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
    assert again.finished
    run = learner.run((X, y))
    assert run.n_labels == 0
    assert len(run.rmse) == 0
    again.tell(y[4], index=4)
    assert again.n_labels == 1
    assert again.finished


def test_fewer_points_than_a_fit_needs():
    X, y = problem(7)
    learner = ActiveLearner(X, criterion=NEVER, seed=2)
    for _ in range(3):
        learner.ask()
        learner.skip()
    told(learner, y, 4)
    assert learner.finished
    assert learner.refits == ()
    assert learner.prior is None
    with pytest.raises(
        ValueError, match="there is no model before the first fit, at 5 labels, got 4"
    ):
        learner.model  # noqa: B018
    run = learner.run((X, y))
    assert np.isnan(run.rmse).all()
    assert len(run.rmse) == 4
    with pytest.raises(ValueError, match="no model before the first fit"):
        run.gp  # noqa: B018
    assert json.loads(json.dumps(run.to_dict(), allow_nan=False))["rmse"] == [None] * 4
    again = ActiveLearner.from_dict(learner.to_dict(), X)
    again.tell(y[learner.skipped[0]], index=learner.skipped[0])
    assert len(again.refits) == 1


def test_the_horizon_moves():
    X, y = problem(40)
    learner = told(ActiveLearner(X, criterion=MovementBelow(0.01), seed=0), y, 7)
    assert learner.criterion.verdict.horizon == 35
    learner.ask()
    learner.skip()
    assert learner.criterion.verdict.horizon == 34
    learner.extend_pool(X[:6] + 0.01)
    assert learner.criterion.verdict.horizon == 40
    learner.tell(y[learner.skipped[0]], index=learner.skipped[0])
    assert learner.criterion.verdict.horizon == 41
    assert learner.criterion.horizon is None
    own = ActiveLearner(X, criterion=MovementBelow(0.01, horizon=20), seed=0)
    own.ask()
    own.skip()
    own.extend_pool(X[:6] + 0.01)
    assert own.criterion.verdict.horizon == 20
    run = learn(X, y, criterion=MovementBelow(0.01), max_labels=20, seed=0)
    assert run.criterion.verdict.horizon == 15
    assert run.resume(max_labels=30).criterion.verdict.horizon == 15  # told as it was at its stop
    run = learn(X, y, criterion=MovementBelow(1e-9), max_labels=16, seed=0)
    assert not run.stopped
    assert run.resume(max_labels=24).criterion.verdict.horizon == 19


# labels that nobody asked for ------------------------------------------------------------------------------


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("gp", [None, GP])
@pytest.mark.parametrize("n", [0, 3, 5, 30])
def test_known_labels(gp, n):
    X, y = problem(60)
    rows = np.random.default_rng(1).permutation(60)[:n]
    learner = ActiveLearner(X, gp=gp, criterion=NEVER, seed=0, known=(rows, y[rows]), initial=5)
    assert learner.n_labels == n
    assert learner.run().indices.tolist() == rows.tolist()
    assert len(learner.bounds) == len(learner.criterion.bounds) == max(0, n - 5)
    if gp is None:
        assert [fit.n_labels for fit in learner.refits] == ([n] if n >= 5 else [])
        assert not learner.stopped
    told(learner, y, 35)
    other = ActiveLearner(X, gp=gp, criterion=NEVER, seed=0, initial=learner.initial_rows)
    if n == 30 and gp is None:
        other.ask(30)
    for row in rows:
        if n == 30 and gp is None:
            continue
        other.tell(y[row], index=row)
    if gp is not None or n < 30:
        told(other, y, 35)
        assert other.run().indices.tolist() == learner.run().indices.tolist()
        np.testing.assert_allclose(other.bounds, learner.bounds, rtol=1e-6)


def test_known_labels_with_initial_rows():
    X, y = problem()
    learner = ActiveLearner(
        X, criterion=NEVER, initial=[7, 8, 9, 10, 11], known=([1, 8, 2], y[[1, 8, 2]]), seed=0
    )
    assert learner.initial_rows.tolist() == [1, 8, 2, 7, 9]
    assert learner.ask() == 7
    told(learner, y, 8)
    assert len(learner.bounds) == 3
    for known, message in [
        (([1, 1], [0.0, 1.0]), "`known` must not hold an index twice"),
        (([1, 50], [0.0, 1.0]), r"`known` must hold indices in \[0, 50\), got 50"),
        (([1, 2], [0.0]), "`known` must have 2 elements, got 1"),
        (([1, 2], [0.0, math.nan]), "`known` must be finite"),
        ((range(12), np.ones(12)), r"`known` must have at most 10 labels \(`max_labels`\), got 12"),
    ]:
        with pytest.raises(ValueError, match=message):
            ActiveLearner(X, criterion=NEVER, known=known, max_labels=10)
    for known in (3, ([1],), "ab", {"a": 1}):
        with pytest.raises(TypeError, match="`known` must be"):
            ActiveLearner(X, criterion=NEVER, known=known)


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("gp", [None, GP])
def test_labels_out_of_turn(gp):
    X, y = problem()
    learner = told(ActiveLearner(X, gp=gp, criterion=NEVER, seed=0), y, 8)
    asked = learner.ask()
    free = [row for row in np.flatnonzero(learner.unlabelled) if row != asked]
    learner.tell(y[free[3]], index=free[3])
    assert learner.pending.tolist() == [asked]
    assert learner.ask() == asked
    learner.tell(y[asked])
    learner.tell(y[free[[5, 1][0]]], index=free[5])
    run = learner.run()
    assert run.indices[8:].tolist() == [free[3], asked, free[5]]
    model = learner.prior.copy()
    bounds = model.add_batch(X[run.indices], run.labels)
    np.testing.assert_allclose(run.bounds, bounds[learner.n_initial :], rtol=1e-6)
    with pytest.raises(ValueError, match=f"`index`: point {asked} has a label already"):
        learner.tell(1.0, index=asked)
    np.testing.assert_allclose(run.gp.predict(X), learner.model.predict(X))


# corrections -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("gp", [None, GP])
@pytest.mark.parametrize("n", [3, 8, 13, 24])
def test_a_correction(gp, n):
    X, y = problem()
    learner = ActiveLearner(X, gp=gp, criterion=MovementBelow(0.2), initial=5, seed=0)
    wrong = y.copy()
    wrong[learner.initial_rows[1]] += 2.0
    told(learner, wrong, n)
    extra = np.flatnonzero(learner.unlabelled)[-1]
    learner.tell(y[extra], index=extra)  # not the one that a choice would take
    before = learner.run((X, y))
    kept = json.dumps(before.to_dict())
    row = int(learner.initial_rows[1])
    learner.correct(row, y[row])
    run = learner.run()
    assert run.indices.tolist() == before.indices.tolist()
    assert (run.labels == y[run.indices]).all()
    if gp is None and n >= 5:
        assert learner.refits[-1].n_labels == n + 1
    right = ActiveLearner(
        X, gp=gp, criterion=NEVER, initial=5, known=(run.indices, y[run.indices]), seed=0
    )
    np.testing.assert_allclose(learner.bounds, right.bounds, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(learner.criterion.bounds, learner.bounds, rtol=0, atol=0)
    if gp is not None or n > 4:
        np.testing.assert_allclose(learner.model.predict(X), right.model.predict(X), rtol=1e-5)
    # the earlier run is as it was
    assert json.dumps(before.to_dict()) == kept
    if gp is not None:
        old = GP.copy()
        old.add_batch(X[before.indices], before.labels)
        np.testing.assert_allclose(before.gp.predict(X), old.predict(X))
    with pytest.raises(ValueError, match="labels of the run have been corrected since"):
        before.resume(y)
    told(learner, y, 30)
    assert learner.n_labels == 30


def test_corrections_that_are_refused():
    X, y = problem()
    learner = told(ActiveLearner(X, gp=GP, criterion=NEVER, seed=0), y, 12)
    before = snapshot(learner)
    row = learner.run().indices[4]
    free = np.flatnonzero(learner.unlabelled)[0]
    with pytest.raises(ValueError, match=f"point {free} has no label yet"):
        learner.correct(free, 1.0)
    for bad in (math.nan, math.inf, None, "a"):
        with pytest.raises((ValueError, TypeError), match="`y` must be"):
            learner.correct(row, bad)
    for bad in (50, -1, 1.5, None, "a"):
        with pytest.raises((ValueError, TypeError), match="`index` must"):
            learner.correct(bad, 1.0)
    with (
        pytest.warns(UserWarning, match="prior standard deviations from"),
        pytest.raises(ValueError, match="too far"),
    ):
        learner.correct(row, 1e200)
    assert snapshot(learner) == before


def test_a_correction_after_a_stop():
    X, y = problem(80)
    for gp in (None, GP):
        learner = ActiveLearner(X, gp=gp, criterion=MovementBelow(0.2), seed=0, initial=5)
        while not learner.stopped:
            learner.tell(y[learner.ask()])
        verdict, at = learner.criterion.verdict, learner.criterion.stopped_at
        row = learner.run().indices[7]
        learner.correct(row, y[row] + 1.0)
        assert learner.criterion.stopped_at == at
        assert learner.criterion.verdict.left == verdict.left
        assert (learner.criterion.bounds == learner.bounds).all()


def test_a_correction_of_a_classifier():
    X, y = problem()
    signs = (y > 4.5).astype(float)
    learner = told(
        ActiveLearner(X, gp=LaplaceClassifier(1.0), criterion=Stopper(), seed=0), signs, 9
    )
    row = learner.run().indices[3]
    learner.correct(row, 1 - signs[row])
    model = LaplaceClassifier(1.0)
    labels = signs.copy()
    labels[row] = 1 - labels[row]
    rows = learner.run().indices
    bounds = model.add_batch(X[rows], labels[rows])
    np.testing.assert_allclose(learner.bounds, bounds[1:], rtol=1e-8)
    with pytest.raises(ValueError, match="`y`"):
        learner.correct(row, 7.0)
    assert learner.model.n_labels == 9


# pools that grow ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kind")
def test_a_pool_that_grows():
    X, y = problem(60)
    rows = [3, 7, 1, 9, 4]
    # before any label, and as long as the new points would not have been chosen
    whole = told(ActiveLearner(X, gp=GP, criterion=NEVER, initial=rows, seed=0), y, 40)
    grown = ActiveLearner(X[:40], gp=GP, criterion=NEVER, initial=rows, seed=0)
    assert grown.extend_pool(X[40:]).tolist() == list(range(40, 60))
    told(grown, y, 40)
    assert grown.run().indices.tolist() == whole.run().indices.tolist()
    np.testing.assert_allclose(grown.bounds, whole.bounds, rtol=1e-9)
    # later: labels and bounds stay, new points are chosen from
    later = told(ActiveLearner(X[:40], gp=GP, criterion=NEVER, initial=rows, seed=0), y, 20)
    run = later.run()
    later.extend_pool(X[40:])
    assert later.run().indices.tolist() == run.indices.tolist()
    np.testing.assert_allclose(later.bounds, run.bounds, rtol=1e-9)
    assert (later.n_pool, later.max_labels, len(later.unlabelled)) == (60, 60, 60)
    assert later.criterion.verdict.horizon == 55
    told(later, y, 60)
    assert sorted(later.run().indices.tolist()) == list(range(60))
    # one by hand
    model = GP.copy()
    model.add_batch(X[run.indices], run.labels)
    var = model.predict(X, return_var=True)[1]
    var[run.indices] = -1
    assert later.run().indices[20] == np.argmax(var)


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("acquisition", ["max_variance", "random"])
def test_a_pool_that_grows_between_fits(acquisition):
    X, y = problem(60, 2)
    X[:30, 1] = 1.0  # constant at first
    learner = ActiveLearner(X[:30], criterion=NEVER, acquisition=acquisition, seed=0)
    told(learner, y, 13)
    before = learner.run()
    asked = learner.ask()
    learner.extend_pool(X[30:])
    assert learner.ask() == asked
    assert (learner.run().bounds == before.bounds).all()
    assert before.n_pool == 30
    told(learner, y, 14)  # a fit
    assert learner.refits[-1].n_labels == 14
    np.testing.assert_allclose(
        learner.prior.lengthscale, learner.refits[-1].lengthscale * X.std(axis=0), rtol=1e-12
    )
    rows = learner.run().indices
    whole = ActiveLearner(X, criterion=NEVER, known=(rows, y[rows]), seed=0)
    assert learner.refits[-1].lengthscale == pytest.approx(whole.refits[-1].lengthscale, rel=1e-5)
    np.testing.assert_allclose(learner.bounds, whole.bounds, rtol=1e-4, atol=1e-9)
    run = learner.run((X, y))
    assert np.isfinite(run.rmse[4:]).all()
    told(learner, y, 60)
    assert learner.finished
    for bad in (np.ones((2, 3)), [[math.nan, 1.0]], "a"):
        with pytest.raises((ValueError, TypeError), match="`X_new`"):
            learner.extend_pool(bad)
    assert learner.extend_pool(np.empty((0, 2))).tolist() == []


def test_a_pool_that_grows_before_the_first_fit():
    X, y = problem(60)
    learner = told(ActiveLearner(X[:20], criterion=NEVER, seed=0), y, 3)
    learner.ask()
    learner.skip()
    learner.extend_pool(X[20:])
    told(learner, y, 59)
    assert learner.finished


def test_a_pool_that_grows_while_an_oracle_is_asked():
    X, y = problem(60)

    def look(learner):
        if learner.n_labels == 12:
            learner.extend_pool(X[20:])

    run = learn(X[:20], lambda i, x: float(y[i] + 0 * x[0]), criterion=NEVER, seed=0, on_label=look)
    assert run.n_labels == 60
    assert (run.labels == y[run.indices]).all()


def test_a_budget_and_a_pool_that_grows():
    X, y = problem(60)
    learner = told(ActiveLearner(X[:20], gp=GP, criterion=NEVER, seed=0, max_labels=10), y, 8)
    learner.extend_pool(X[20:])
    assert learner.max_labels == 10
    run = learn(X[:20], y[:20], gp=GP, criterion=NEVER, seed=0, max_labels=10)
    learner = run.resume(max_labels=15)._learner
    learner.extend_pool(X[20:])
    assert learner.max_labels == 15
    run = learn(X[:20], y[:20], gp=GP, criterion=NEVER, seed=0, max_labels=10)
    longer = run.resume()
    assert longer.n_labels == 20
    longer._learner.extend_pool(X[20:])
    assert longer._learner.max_labels == 60
    assert longer.finished  # it is what it was
    assert run.finished


def test_pandas():
    X, y = problem(30)
    table = pd.DataFrame(X, index=[f"a{i}" for i in range(30)])
    learner = ActiveLearner(table, criterion=NEVER, seed=0, known=([4, 2], pd.Series(y[[4, 2]])))
    rows = learner.ask(6)
    learner.tell(pd.Series(y[rows]), index=pd.Series(rows))
    learner.extend_pool(pd.DataFrame(X[:2] + 0.5, index=["b0", "b1"]))
    learner.tell(pd.Series([5.0, None], dtype="Float64"), index=[30, 31])
    run = learner.run()
    assert run.names == ["a4", "a2", *(f"a{i}" for i in rows), "b0"]
    assert learner.skipped.tolist() == [31]
    assert learner.names[-2:] == ["b0", "b1"]


# noise of its own --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("gp", [None, GP])
def test_labels_with_their_own_noise(gp):
    X, y = problem()
    learner = told(ActiveLearner(X, gp=gp, criterion=NEVER, seed=0, initial=5), y, 6)
    noise = {}
    for values in ([0.5], [0.01, 2.0, 0.3], [0.2]):
        rows = learner.ask(len(values))
        learner.tell(y[rows], noise=values)
        noise |= dict(zip(rows.tolist(), values, strict=True))
        told(learner, y, learner.n_labels + 2)
    run = learner.run((X, y))
    prior = learner.prior
    each = np.array([noise.get(row, prior.noise) for row in run.indices.tolist()])
    model = GaussianProcess(
        prior.lengthscale, prior.noise, amplitude=prior.amplitude, mean=prior.mean
    )
    bounds = model.add_batch(X[run.indices], run.labels, noise=each)
    np.testing.assert_allclose(learner.bounds, bounds[5:], rtol=1e-7)
    for one in (learner.model, run.gp):
        np.testing.assert_allclose(one.predict(X), model.predict(X), rtol=1e-9)
    assert run.rmse[-1] == pytest.approx(np.sqrt(np.mean((y - model.predict(X)) ** 2)))
    again = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
    np.testing.assert_allclose(again.bounds, learner.bounds, rtol=1e-9)
    assert again.ask(3).tolist() == learner.ask(3).tolist()
    for bad in (0.0, -1.0, math.nan, "a", [0.1, 0.2]):
        with pytest.raises((ValueError, TypeError), match="`noise` must"):
            learner.tell([1.0, 2.0, 3.0], noise=bad)
    learner.tell([1.0, None, 3.0], noise=[0.1, 0.2, 0.3])
    learner.correct(run.indices[7], 4.0)
    with pytest.raises(ValueError, match=r"`noise` must be None for a classifier, got 0\.1"):
        ActiveLearner(X, gp=LaplaceClassifier(1.0), criterion=Stopper()).tell(1.0, 3, noise=0.1)


def test_criteria_see_a_pool_that_changes():
    X, y = problem(30)
    learner = ActiveLearner(X, gp=GP, criterion=MaxVariance(1e-9), seed=0)
    told(learner, y, 28)
    while not learner.finished:
        learner.ask()
        learner.skip()
    assert learner.largest_variance == 0.0


def test_known_labels_far_from_a_process():
    X, _ = problem(30)
    with pytest.warns(UserWarning, match="prior standard deviations from"):
        ActiveLearner(X, gp=GP, criterion=NEVER, known=([3], [20.0]))
    ActiveLearner(X, gp=GP, criterion=NEVER, known=([3], [20.0]), refit=1.2)  # will be fitted
