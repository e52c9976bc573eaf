"""ActiveLearner.refit, fits that are asked for, and corrections of several labels at once."""

import numpy as np
import pytest

from fastal import ActiveLearner, GaussianProcess, MovementBelow

X = np.random.default_rng(0).uniform(0, 10, (50, 2))
Y = np.sin(X[:, 0]) + 0.2 * X[:, 1]


def learner(n, **more):
    return ActiveLearner(X, criterion=MovementBelow(), known=(np.arange(n), Y[:n]), seed=0, **more)


def test_a_fit_between_those_that_are_due():
    made = learner(20)
    made.tell(Y[20:22], index=[20, 21])
    assert [fit.n_labels for fit in made.refits] == [20]
    made.refit()
    assert [fit.n_labels for fit in made.refits] == [20, 22]
    twin = learner(22)
    assert made.refits[-1].lengthscale == pytest.approx(twin.refits[-1].lengthscale, rel=1e-3)
    # the schedule goes on from there
    made.tell(Y[22:25], index=[22, 23, 24])
    assert len(made.refits) == 2
    made.tell(Y[25], index=25)
    assert made.refits[-1].n_labels == 26


def test_the_same_fit_twice_confirms_nothing():
    made = learner(30)
    bounds = made.bounds
    for _ in range(3):
        made.refit()
    assert len(made.refits) == 1
    assert not made.stopped
    assert np.array_equal(made.bounds, bounds)


def test_refits_that_cannot_be():
    with pytest.raises(ValueError, match="a fit needs 5 labels, got 3: 2 are missing"):
        learner(3).refit()
    with pytest.raises(ValueError, match="needs a learner that fits its hyper-parameters"):
        learner(6, gp=GaussianProcess()).refit()


def test_several_labels_are_corrected_at_once():
    one, many = learner(20), learner(20)
    rows, y = [3, 0, 7], [1.0, -2.0, 0.5]
    for row, label in zip(rows, y, strict=True):
        one.correct(row, label)
    many.correct(rows, y)
    assert len(many.refits) == 2
    assert np.array_equal(one.run().labels, many.run().labels)
    assert np.allclose(one.bounds, many.bounds, rtol=1e-3, atol=1e-6)
    assert many.correct([], []) == many.criterion.verdict
    for wrong, message in (
        (([3, 30], [1.0, 2.0]), "`index`: point 30 has no label yet"),
        (([3, 4], [1.0]), "`y`"),
        (([3, 3], [1.0, 2.0]), "`index`"),
        (([3], [np.nan]), "`y`"),
    ):
        before = many.to_dict()
        with pytest.raises(ValueError, match=message):
            many.correct(*wrong)
        assert many.to_dict() == before
