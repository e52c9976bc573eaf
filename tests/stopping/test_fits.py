"""Bounds taken anew after each fit: when a criterion decides, that two fits must agree, and models."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numba import config

from fastal import (
    ActiveLearner,
    Criterion,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    bounds_of,
)
from fastal.stopping import first_of

LOW, HIGH = 0.01, 3.0


def drop(n_high, n_low, low=LOW, seed=0):
    rng = np.random.default_rng(seed)
    return np.r_[HIGH + rng.random(n_high), low * (1 + rng.random(n_low))]


class Agreeing(Criterion):
    """One of a user's own: the last five bounds are small."""

    def __init__(self, level=0.1):
        super().__init__(level=level)

    def says_stop(self, bounds):
        return len(bounds) >= 5 and max(bounds[-5:]) < self.level


CRITERIA = [Stopper(), MovementBelow(0.05, horizon=150), Agreeing(), Agreeing() & MinLabels(3)]
each = pytest.mark.parametrize("criterion", CRITERIA, ids=repr)


@each
def test_the_first_fit_alone_never_stops(criterion):
    criterion, bounds = criterion.copy(), drop(20, 40)
    assert criterion.after_fit(bounds) is False
    assert criterion.after_fit(bounds) is False  # the same fit is no second one
    assert "the next fit must agree" in criterion.verdict.reason
    assert criterion.after_fit(bounds * 1.01) is True
    assert criterion.stopped_at == 60


@each
def test_after_a_fit_pushes_no_longer_decide(criterion):
    criterion, bounds = criterion.copy(), drop(20, 41)
    criterion.after_fit(bounds[:21])
    for r in bounds[21:]:
        assert not criterion.push(r)
    # what the fit before says includes the labels since
    assert criterion.after_fit(bounds * 1.001)
    assert criterion.stopped_at == 61
    criterion.reset()
    assert criterion.extend(bounds) is not None  # pushes decide again
    assert criterion.stopped_at < 61


@each
def test_a_fit_at_an_edge_confirms_nothing(criterion):
    criterion, bounds = criterion.copy(), drop(20, 40)
    criterion.after_fit(bounds, at_edge=True)
    assert not criterion.after_fit(bounds * 1.01)  # the one before lay at an edge
    assert not criterion.after_fit(bounds * 1.02, at_edge=True)  # so does this one
    assert "the fit lies at an edge of its search box" in criterion.verdict.reason
    assert not criterion.after_fit(bounds * 1.03)
    assert criterion.after_fit(bounds * 1.04)


@each
def test_a_label_was_removed(criterion):
    criterion, bounds = criterion.copy(), drop(20, 40)
    criterion.after_fit(bounds)
    assert not criterion.after_fit(bounds[:-1])  # the fit before is forgotten
    assert criterion.after_fit(bounds[:-1] * 1.01)
    assert criterion.after_fit(bounds[:30])  # a stop stays
    said = str(criterion.verdict)
    criterion.after_fit(np.full(70, 5.0))
    assert (criterion.stopped_at, str(criterion.verdict)) == (59, said)


def test_a_stop_of_a_mixture_stays_when_fewer_bounds_say_stop_again():
    # a member's later stop, at fewer bounds, took its place
    rule = Agreeing(9.0) | MovementBelow(0.05, horizon=100)
    rule.extend(np.r_[np.full(20, 10.0), np.full(20, 2.0)])
    assert rule.stopped_at == 25
    fewer = drop(12, 12)
    for one in (rule, rule.copy(), Criterion.from_dict(json.loads(json.dumps(rule.to_dict())))):
        assert one.after_fit(fewer)
        assert one.after_fit(fewer * 1.01)
        assert (one.stopped_at, one.verdict.n) == (25, 25)


def test_combinations():
    bounds = drop(20, 40)
    both = MovementBelow(0.05, horizon=100) & MinLabels(70)
    assert not both.after_fit(bounds)
    assert not both.after_fit(bounds * 1.01)  # one member says stop
    assert both.members[0].stopped
    more = np.r_[bounds, np.full(15, HIGH)]
    assert not both.after_fit(more)  # judged anew: much is to come again
    assert not both.members[0].stopped
    less = np.r_[bounds, drop(0, 20)]
    both.after_fit(less)
    assert both.after_fit(less * 1.01)
    assert both.stopped_at == 80
    assert both.after_fit(np.full(90, HIGH))  # the whole has latched
    either = MovementBelow(0.05, horizon=1000) | FixedBudget(30)
    assert either.after_fit(bounds)  # a budget acts at every label
    assert either.stopped_at == 30
    end = MovementBelow(0.01, horizon=60)
    assert end.after_fit(np.full(60, 2.0))  # the end of the horizon needs no second fit
    assert end.verdict.reason == "the horizon of 60 bounds is reached"


def test_what_knows_no_fits():
    sequential = Stopper(0.01, sequential=True, horizon=100)
    for rule in (sequential, sequential | FixedBudget(9), Agreeing() & sequential):
        with pytest.raises(ValueError, match="`sequential` must be False where hyper-parameters"):
            rule.after_fit(drop(20, 40))
        assert len(rule) == 0
    with pytest.raises(ValueError, match="`horizon` must be given"):
        MovementBelow().after_fit(drop(20, 40))


# Fitted models -----------------------------------------------------------------------------------

many_fits = pytest.mark.skipif(
    bool(config.DISABLE_JIT),
    reason="fits take minutes interpreted; the kernels are tested elsewhere",
)
LOOPED = [
    Stopper(),
    MovementBelow(0.05, horizon=100),
    (MovementBelow(0.05, horizon=100) & MinLabels(5)) | FixedBudget(90),
]
looped = pytest.mark.parametrize("criterion", LOOPED, ids=repr)


def process(scale=0.9, noise=0.01):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    kernels = gaussian_process.kernels
    kernel = 1.5 * kernels.RBF(scale) + kernels.WhiteKernel(noise)
    return gaussian_process.GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)


def spread(n):
    """Points of [0, 12] so that each lies far from those before it, and noisy labels."""
    x = np.array([12 * int(f"{i:07b}"[::-1], 2) / 128 for i in range(n)])
    return x, np.sin(2 * x) + 0.1 * np.random.default_rng(0).standard_normal(n)


@looped
def test_bounds_go_on_between_fits(loop, criterion):
    X, y, _ = loop
    criterion = criterion.copy()
    assert criterion.after_fit(process().fit(X[:5], y[:5]), initial=5) is False
    assert len(criterion) == 0  # no bounds yet
    criterion.after_fit(process().fit(X[:20], y[:20]), initial=1)
    # more labels under the same hyper-parameters: as if they had been there at the fit
    for t in range(20, 30):
        model = process().fit(X[: t + 1], y[: t + 1])
        assert not criterion.push(bounds_of(model)[-1])
    np.testing.assert_allclose(criterion.bounds, bounds_of(model)[1:], rtol=1e-9)
    # the next fit takes all of them anew
    model, order = process(1.1, 0.02).fit(X[:30], y[:30]), np.arange(30)[::-1]
    criterion.after_fit(model, initial=1, order=order, X=X[:30], y=y[:30])
    assert criterion.bounds.tolist() == bounds_of(model, order=order)[1:].tolist()


@looped
def test_the_loop_stops_at_the_second_fit_that_agrees(criterion):
    x, y = spread(80)
    criterion, said = criterion.copy(), []
    for n in range(10, 80, 5):
        model = process(0.7 + 0.001 * n).fit(x[:n, None], y[:n])
        stopped = criterion.after_fit(model)
        said.append(first_of(criterion, Stopper | MovementBelow)._compiled().says[0])
        if stopped:
            break
    assert stopped
    assert said[-2:] == [True, True]
    assert not any(a and b for a, b in pairwise(said[:-1]))
    assert criterion.stopped_at == n
    assert criterion.after_fit(process(0.1).fit(x[:, None], y)) is True  # it has latched
    assert criterion.stopped_at == n


@looped
def test_a_model_that_lags_behind_its_loop_is_noticed(loop, criterion):
    X, y, _ = loop
    criterion = criterion.copy()
    lags = r"`model` was not fitted to the last 1 of the labels that the criterion has bounds of"
    criterion.extend(np.full(9, 0.5))
    with pytest.warns(UserWarning, match=lags) as noted:
        criterion.after_fit(process().fit(X[:9], y[:9]), initial=1)  # 9 labels, the loop has 10
    assert noted[0].filename == __file__
    assert len(criterion) == 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        criterion.after_fit(process(1.1).fit(X[:11], y[:11]), initial=1)
        criterion.after_fit(bounds_of(process(1.2).fit(X[:9], y[:9])))  # bounds: on purpose
    # given the labels of the loop, it is an error, and nothing has changed
    before = criterion.to_dict()
    with pytest.raises(ValueError, match="was fitted to other rows than `X`: to 9 rows, `X` has 1"):
        criterion.after_fit(process().fit(X[:9], y[:9]), X=X[:10], y=y[:10])
    other = np.where(np.arange(9) == 3, 9.0, y[:9])
    with pytest.raises(ValueError, match="was fitted to other rows than `y`: row 3 is"):
        criterion.after_fit(process().fit(X[:9], y[:9]), X=X[:9], y=other)
    with pytest.raises(TypeError, match=r"gp_bounds"):
        criterion.after_fit(object())
    assert criterion.to_dict() == before


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
        assert criterion.after_fit(edge) is False
        assert criterion.after_fit(fitted_own(X[:52], y[:52], bounds=near)) is False
        assert criterion._fit == (52, True)
        assert "at an edge of its search box" in criterion.verdict.reason
        # the first good fit has no good one before it
        assert criterion.after_fit(fitted_own(X[:54], y[:54], bounds=far)) is False
        assert criterion.after_fit(fitted_own(X[:56], y[:56], bounds=far)) is True
    criterion.reset().after_fit(edge, at_edge=False)  # the caller knows better
    assert criterion._fit == (50, False)


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
