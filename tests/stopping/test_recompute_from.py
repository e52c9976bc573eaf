"""Criteria and fitted models: what a loop that fits anew calls after each fit."""

import copy
import json
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numba import config

from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    gp_bounds,
)
from fastal.adapters import recomputed

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge

many_fits = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; the kernels are tested elsewhere",
)

CRITERIA = {
    "Stopper": lambda: Stopper(),
    "MovementBelow": lambda: MovementBelow(0.05, horizon=100),
    "combination": lambda: (MovementBelow(0.05, horizon=100) & MinLabels(5)) | FixedBudget(90),
}


def process(scale=0.9, noise=0.01, **settings):
    kernel = 1.5 * RBF(scale) + WhiteKernel(noise)
    return GaussianProcessRegressor(kernel, alpha=0.0, **{"optimizer": None, **settings})


def spread(n):
    """Points of [0, 12] so that each lies far from those before it, and noisy labels."""
    x = np.array([12 * int(f"{i:07b}"[::-1], 2) / 128 for i in range(n)])
    return x, np.sin(2 * x) + 0.1 * np.random.default_rng(0).standard_normal(n)


def nested(criterion):
    """The first criterion that goes by bounds."""
    while hasattr(criterion, "members"):
        criterion = criterion.members[0]
    return criterion


@pytest.mark.parametrize("which", CRITERIA)
def test_bounds_are_those_of_the_fit_without_the_initial_labels(loop, which):
    X, y, _ = loop
    criterion = CRITERIA[which]()
    model = process().fit(X[:30], y[:30])
    assert criterion.recompute_from(model, initial=5) is False
    np.testing.assert_array_equal(nested(criterion).bounds, recomputed(model).bounds[5:])
    order = np.arange(30)[::-1]
    criterion.recompute_from(model, initial=5, order=order, X=X[:30], y=y[:30])
    np.testing.assert_array_equal(
        nested(criterion).bounds, recomputed(model, order=order).bounds[5:]
    )
    # no bounds yet
    few = CRITERIA[which]()
    assert few.recompute_from(process().fit(X[:5], y[:5]), initial=5) is False
    assert len(nested(few)) == 0


@pytest.mark.parametrize("which", CRITERIA)
def test_bounds_go_on_between_fits(loop, which):
    X, y, _ = loop
    criterion = CRITERIA[which]()
    model = process().fit(X[:20], y[:20])
    criterion.recompute_from(model, initial=1)
    # more labels under the same hyper-parameters: as if they had been there at the fit
    for t in range(20, 30):
        model = process().fit(X[: t + 1], y[: t + 1])
        assert not criterion.push(recomputed(model).bounds[-1])
    np.testing.assert_allclose(nested(criterion).bounds, recomputed(model).bounds[1:], rtol=1e-9)
    # the next fit takes all of them anew
    model = process(1.1, 0.02).fit(X[:30], y[:30])
    criterion.recompute_from(model, initial=1)
    np.testing.assert_array_equal(nested(criterion).bounds, recomputed(model).bounds[1:])


def test_labels_since_the_fit_before_count_for_its_opinion():
    """What the fit before says includes the labels that were pushed since."""
    low, high = 0.01 + 1e-4 * np.arange(60), np.full(12, 3.0)
    criterion = MovementBelow(0.2, horizon=80)
    criterion.after_refit(np.r_[high, low[:1]])
    assert not criterion.verdict.left <= 0.2
    for r in low[1:40]:
        assert criterion.push(r) is False
    assert criterion.left <= 0.2
    assert criterion.after_refit(np.r_[high, low[:40]] * 1.01) is True
    assert criterion.stopped_at == 52


@pytest.mark.parametrize("which", CRITERIA)
def test_the_loop_stops_at_the_second_fit_that_agrees(which):
    x, y = spread(80)
    X = x[:, None]
    criterion, said = CRITERIA[which](), []
    for n in range(10, 80, 5):
        model = process(0.7 + 0.001 * n).fit(X[:n], y[:n])
        stopped = criterion.recompute_from(model)
        said.append(nested(criterion)._tracker.would_stop)
        if stopped:
            break
    assert stopped
    assert said[-2:] == [True, True]
    assert not any(a and b for a, b in pairwise(said[:-1]))
    assert criterion.stopped_at == n
    again = criterion.copy()
    assert again.recompute_from(process(0.1).fit(X, y)) is True  # it has latched
    assert again.stopped_at == n


@pytest.mark.parametrize("which", CRITERIA)
def test_the_same_fitted_model_is_no_second_fit(which):
    x, y = spread(80)
    criterion = CRITERIA[which]()
    model = process(0.7).fit(x[:, None], y)
    for _ in range(3):
        assert criterion.recompute_from(model) is False
        assert nested(criterion)._tracker.would_stop
    assert "the next fit must agree" in str(nested(criterion).verdict)
    assert criterion.recompute_from(process(0.7001).fit(x[:, None], y)) is True
    assert criterion.stopped_at == 80


# models that know less than their loop


@pytest.mark.parametrize("which", CRITERIA)
def test_a_model_that_lags_behind_its_loop_is_noticed(loop, which):
    X, y, _ = loop
    lags = r"`model` was not fitted to the last 1 of the labels that the criterion has bounds of"
    # before the first fit
    criterion = CRITERIA[which]()
    for t in range(1, 10):
        model = process().fit(X[:t], y[:t])
        criterion.push(recomputed(process().fit(X[: t + 1], y[: t + 1])).bounds[-1])
    with pytest.warns(UserWarning, match=lags) as noted:
        criterion.recompute_from(model, initial=1)  # 9 labels, the loop has 10
    assert noted[0].filename.endswith(("by_bounds.py", "compose.py", __file__))
    assert len(nested(criterion)) == 8
    # and after it
    model = process().fit(X[:10], y[:10])
    criterion.recompute_from(model, initial=1)
    criterion.push(recomputed(process().fit(X[:11], y[:11])).bounds[-1])
    with pytest.warns(UserWarning, match=lags):
        criterion.recompute_from(process(1.0).fit(X[:10], y[:10]), initial=1)
    pushed = CRITERIA[which]()
    pushed.extend(np.full(10, 0.5))
    with pytest.warns(UserWarning, match="not fitted to the last 10 of the labels"):
        pushed.recompute_from(process().fit(X[:1], y[:1]), initial=1)
    assert len(nested(pushed)) == 10  # it has no bounds to give
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        criterion.recompute_from(process(1.1).fit(X[:11], y[:11]), initial=1)
        # fewer than at the fit before: labels were removed on purpose
        criterion.recompute_from(process(1.2).fit(X[:9], y[:9]), initial=1)
    # given the labels of the loop, it is an error, and nothing has changed
    before = nested(criterion).bounds
    with pytest.raises(
        ValueError, match="was fitted to other rows than `X`: to 9 rows, `X` has 10"
    ):
        criterion.recompute_from(process().fit(X[:9], y[:9]), X=X[:10], y=y[:10])
    other = np.where(np.arange(9) == 3, 9.0, y[:9])
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 3 is"):
        criterion.recompute_from(process().fit(X[:9], y[:9]), X=X[:9], y=other)
    np.testing.assert_array_equal(nested(criterion).bounds, before)


def test_a_model_that_keeps_no_data(loop):
    X, y, _ = loop
    model, criterion = BayesianRidge().fit(X, y), MovementBelow(horizon=100)
    with pytest.raises(ValueError, match="a BayesianRidge, keeps no training data: give `X` and"):
        criterion.recompute_from(model)
    assert len(criterion) == 0
    criterion.recompute_from(model, X=X, y=y)
    assert len(criterion) == 60


def test_a_model_that_takes_labels_as_exact(loop):
    X, y, _ = loop
    criterion = MovementBelow(horizon=100)
    model = process(noise=1e-10).fit(X[:20], y[:20])
    with pytest.warns(UserWarning, match="takes labels as exact, and its bounds are huge"):
        criterion.recompute_from(model)
    assert criterion.bounds[0] > 1e8
    none = GaussianProcessRegressor(RBF(0.9), alpha=0.0, optimizer=None).fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="takes labels as exact: its noise variance must be pos"):
        criterion.recompute_from(none)
    assert len(criterion) == 20


def test_any_other_library():
    x, y = spread(60)
    criterion = MovementBelow(0.1, horizon=80)
    with pytest.raises(TypeError, match=r"fastal\.gp_bounds takes the covariance of any model"):
        criterion.recompute_from(object())

    def fitted(scale):
        return gp_bounds(np.exp(-0.5 * (x[:, None] - x) ** 2 / scale**2), y, 0.01)

    assert criterion.after_refit(fitted(0.7)) is False
    assert criterion.after_refit(fitted(0.71)) is True


# fits at an edge of their box


def fitted_own(X, y, **settings):
    gp = GaussianProcess().fit_hyperparameters(X, y, **settings)
    gp.add_batch(X, y)
    return gp


@many_fits
def test_a_fit_of_ones_own_at_the_edge_confirms_nothing():
    X, y = spread(60)
    near, far = {"lengthscale": (0.3, 0.5)}, {"lengthscale": (0.05, 5.0)}
    for criterion in (MovementBelow(0.2, horizon=80), Stopper()):
        edge = fitted_own(X[:50], y[:50], bounds=near)
        assert edge.at_edge
        assert criterion.recompute_from(edge) is False
        assert criterion.recompute_from(fitted_own(X[:52], y[:52], bounds=near)) is False
        assert criterion._fit == (52, True)
        assert "at an edge of its search box" in criterion.verdict.reason
        # the first good fit has no good one before it
        assert criterion.recompute_from(fitted_own(X[:54], y[:54], bounds=far)) is False
        assert criterion.recompute_from(fitted_own(X[:56], y[:56], bounds=far)) is True
    # rows to compare, and `recompute`, go by it as well
    assert recomputed(edge, X=X[:50]).at_edge
    bare = GaussianProcess().fit_hyperparameters(X[:50], y[:50], bounds=near)
    criterion = MovementBelow(0.2, horizon=80)
    criterion.recompute(X[:50], y[:50], bare)
    assert criterion._fit == (50, True)


def test_a_campaigns_model_knows_its_edge():
    X = np.random.default_rng(0).uniform(0, 1, (30, 2))
    learner = ActiveLearner(X, criterion=MovementBelow(0.05), seed=0)
    edges = []
    for _ in range(20):
        row = learner.ask()
        if learner.n_labels == 4:  # equal labels at first: nothing can be fitted
            with pytest.warns(UserWarning, match="could not be fitted to 5 labels"):
                learner.tell(0.0)
        else:
            learner.tell(float(learner.n_labels > 8) * X[row].sum())
        if learner.refits:
            edges.append(learner.refits[-1].at_edge)
            again = ActiveLearner.from_dict(json.loads(json.dumps(learner.to_dict())), X)
            for one in (learner.model, learner.prior, learner.run().gp, again.model):
                assert one.at_edge is edges[-1]
    assert edges[0] is True
    assert edges[-1] is False


def test_the_edge_is_kept():
    X, y = spread(30)
    edge = fitted_own(X, y, bounds={"lengthscale": (0.2, 0.3)})
    state = json.loads(json.dumps(edge.to_dict()))
    for same in (
        edge.copy(),
        copy.deepcopy(edge),
        pickle.loads(pickle.dumps(edge)),
        GaussianProcess.from_dict(state),
    ):
        assert same.at_edge is True
        assert same.to_dict() == state
    with pytest.raises(AttributeError):
        edge.at_edge = False
    edge.rewind(0)
    assert edge.at_edge  # the parameters are those of the fit
    edge.fit_hyperparameters(X, y)
    assert edge.at_edge is False
    # states of before know nothing of it
    state.pop("at_edge")
    assert GaussianProcess.from_dict(state).at_edge is False
    assert "at_edge" not in GaussianProcess().to_dict()
    old = GaussianProcess().__getstate__()
    old.pop("at_edge")
    new = GaussianProcess.__new__(GaussianProcess)
    new.__setstate__(old)
    assert new.at_edge is False
    with pytest.raises(ValueError, match="`state` is damaged: `at_edge` must be True or False"):
        GaussianProcess.from_dict(state | {"at_edge": 1})


@many_fits
@pytest.mark.parametrize(
    ("settings", "edge"),
    [
        ({}, False),
        ({"prior": "weak"}, False),
        ({"bounds": {"lengthscale": (0.1, 0.3)}}, True),  # wants to be longer
        ({"bounds": {"lengthscale": (5.0, 30.0)}}, True),  # wants to be shorter
        ({"bounds": {"lengthscale": (0.3, 0.3)}}, False),  # was not searched
        ({"bounds": {"noise": (1.0, 2.0)}}, False),  # the noise has no edge
        ({"ard": True, "bounds": {"lengthscale": (0.05, 3.0)}}, False),  # one of two is long
        ({"ard": True, "bounds": {"lengthscale": (0.02, 0.1)}}, True),  # both are
        ({"ard": True, "bounds": {"lengthscale": (2.5, 30.0)}}, True),  # one is short
    ],
)
def test_the_edge_of_a_search(settings, edge):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 3, (60, 2))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.standard_normal(60)  # the second input says nothing
    assert GaussianProcess().at_edge is False
    assert GaussianProcess().fit_hyperparameters(X, y, **settings).at_edge is edge


def test_the_edge_of_the_weak_prior():
    x = np.linspace(0, 1, 120)
    gp = GaussianProcess().fit_hyperparameters(x, np.sin(40 * x), prior="weak")
    assert gp.lengthscale == pytest.approx(0.05)  # the least there is
    assert gp.at_edge
