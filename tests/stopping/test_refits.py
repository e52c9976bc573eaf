"""Bounds taken anew after each fit: when a criterion decides, and that two fits must agree."""

import json
import math
import pickle

import numpy as np
import pytest
import twins

from fastal import (
    Criterion,
    FixedBudget,
    GaussianProcess,
    MinLabels,
    MovementBelow,
    Stopper,
    runs_test,
)
from fastal.criteria import MaxVariance

LOW, HIGH = 0.01, 3.0


def drop(n_high, n_low, low=LOW, seed=0):
    rng = np.random.default_rng(seed)
    return np.r_[HIGH + rng.random(n_high), low * (1 + rng.random(n_low))]


class StillTwin:
    """The rule in so many words, over a plain list."""

    def __init__(self, share, horizon):
        self.share, self.horizon = share, horizon
        self.bounds, self.fit, self.at = [], None, None

    def says_stop(self):
        n = len(self.bounds)
        if n >= self.horizon:
            return True
        left = twins.movement_left(self.bounds, self.horizon)
        return n > min(20, max(10, n // 5)) and left[-1] <= self.share

    def push(self, r):
        self.bounds.append(r)
        if self.fit is None and self.at is None and self.says_stop():
            self.at = len(self.bounds)

    def after_refit(self, bounds, at_edge=False):
        if self.fit is not None and list(bounds) == self.bounds:
            return
        agreed = self.fit is not None and not self.fit[1] and not at_edge
        agreed = agreed and len(bounds) >= self.fit[0] and self.says_stop()
        self.bounds = list(bounds)
        ended = len(bounds) >= self.horizon
        if self.at is None and self.says_stop() and (agreed or ended):
            self.at = len(bounds)
        self.fit = (len(bounds), at_edge)


class RunsTwin(StillTwin):
    def __init__(self, alpha):
        super().__init__(alpha, math.inf)

    def says_stop(self):
        if len(self.bounds) < 2:
            return False
        test = runs_test(self.bounds, cutoff="median", alternative="less")
        return test.pvalue <= self.share and twins.fell(self.bounds)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kind", ["still", "runs"])
def test_against_the_rule_in_so_many_words(seed, kind):
    rng = np.random.default_rng(seed)
    if kind == "still":
        criterion, twin = MovementBelow(0.2, horizon=80), StillTwin(0.2, 80)
    else:
        criterion, twin = Stopper(0.01), RunsTwin(0.01)
    n = 0
    for _ in range(40):
        if rng.random() < 0.6 and n < 79:
            n += 1
            r = float(rng.exponential() * math.exp(-0.08 * n))
            criterion.push(r)
            twin.push(r)
        else:
            n = max(1, min(79, n + int(rng.integers(-1, 4))))
            bounds = rng.exponential(size=n) * np.exp(
                -rng.choice([0.02, 0.08, 0.15]) * np.arange(n)
            )
            edge = bool(rng.random() < 0.2)
            criterion.after_refit(bounds, at_edge=edge)
            twin.after_refit(bounds.tolist(), edge)
            if rng.random() < 0.3:  # the same fit once more
                criterion.after_refit(bounds)
        assert criterion.stopped_at == twin.at
        assert criterion.bounds.tolist() == twin.bounds
        again = type(criterion).from_dict(json.loads(json.dumps(criterion.to_dict())))
        criterion = rng.choice(
            [criterion, criterion.copy(), pickle.loads(pickle.dumps(criterion)), again]
        )
        assert criterion.stopped_at == twin.at
        assert str(again.verdict) == str(criterion.verdict)


def test_the_first_fit_alone_never_stops():
    bounds = drop(20, 40)
    for criterion in (Stopper(), MovementBelow(0.05, horizon=100)):
        assert criterion.after_refit(bounds) is False
        assert criterion.after_refit(bounds) is False  # the same fit is no second one
        assert str(criterion.verdict).endswith(
            "the next fit must agree"
        ) or "the next fit must agree" in str(criterion.verdict)
        assert criterion.after_refit(bounds * 1.01) is True
        assert criterion.stopped_at == 60


def test_after_a_fit_pushes_no_longer_decide():
    for criterion in (Stopper(), MovementBelow(0.05, horizon=200)):
        criterion.after_refit(drop(20, 1))
        for r in drop(0, 22):
            assert not criterion.push(r)
        assert criterion.after_refit(np.r_[drop(20, 1), drop(0, 22)] * 1.001)
        assert criterion.stopped_at == 43


def test_a_fit_at_an_edge_confirms_nothing():
    bounds = drop(20, 40)
    for criterion in (Stopper(), MovementBelow(0.05, horizon=100)):
        criterion.after_refit(bounds, at_edge=True)
        assert not criterion.after_refit(bounds * 1.01)  # the one before lay at an edge
        assert not criterion.after_refit(bounds * 1.02, at_edge=True)  # so does this one
        assert "the fit lies at an edge of its search box" in criterion.verdict.reason
        assert not criterion.after_refit(bounds * 1.03)
        assert criterion.after_refit(bounds * 1.04)


def test_a_label_was_removed():
    criterion = MovementBelow(0.05, horizon=100)
    bounds = drop(20, 40)
    criterion.after_refit(bounds)
    assert not criterion.after_refit(bounds[:-1])  # the fit before is forgotten
    assert criterion.after_refit(bounds[:-1] * 1.01)
    assert criterion.after_refit(bounds[:30])  # a stop stays
    assert criterion.stopped_at == 59
    left = criterion.verdict.left
    criterion.after_refit(np.full(70, 5.0))
    assert criterion.verdict.left == left


def test_recompute_shares_the_rule():
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 3, 60))
    y = np.sin(X) + 0.1 * rng.standard_normal(60)
    order = rng.permutation(60)
    X, y = X[order], y[order]
    criterion = MovementBelow(0.2, horizon=90)
    first = criterion.recompute(X, y, GaussianProcess(1.0, 0.01))
    assert first is False
    np.testing.assert_allclose(criterion.bounds, GaussianProcess(1.0, 0.01).add_batch(X, y))
    assert criterion.recompute(X, y, GaussianProcess(1.1, 0.011)) is True
    assert criterion.stopped_at == 60
    used = GaussianProcess(1.0, 0.01)
    used.add_batch(X, y)
    with pytest.raises(ValueError, match="`gp` must have no labels, got 60"):
        criterion.recompute(X, y, used)
    assert not MovementBelow(horizon=9).recompute(X[:3], y[:3], GaussianProcess(), initial=5)


def test_combinations():
    bounds = drop(20, 40)
    both = MovementBelow(0.05, horizon=100) & MinLabels(70)
    assert not both.after_refit(bounds)
    assert not both.after_refit(bounds * 1.01)  # one member says stop
    assert both.members[0].stopped
    more = np.r_[bounds, np.full(15, HIGH)]
    assert not both.after_refit(more)  # judged anew: much is to come again
    assert not both.members[0].stopped
    less = np.r_[bounds, drop(0, 20)]
    both.after_refit(less)
    assert both.after_refit(less * 1.01)
    assert both.stopped_at == 80
    assert both.after_refit(np.full(90, HIGH))  # the whole has latched
    either = MovementBelow(0.05, horizon=1000) | FixedBudget(30)
    assert either.after_refit(bounds)  # a budget acts at every label
    assert either.stopped_at == 30
    nested = (MovementBelow(0.05, horizon=100) | FixedBudget(1000)) & MinLabels(10)
    assert not nested.after_refit(bounds)
    assert not nested.after_refit(bounds)
    assert nested.after_refit(bounds * 1.01)
    assert Criterion.from_dict(nested.to_dict()).stopped_at == nested.stopped_at


def test_what_knows_no_refits():
    bounds = drop(20, 40)
    with pytest.raises(TypeError, match="a MaxVariance does not go by bounds: it knows no refits"):
        MaxVariance(0.1).after_refit(bounds)
    mixed = MovementBelow(horizon=100) | MaxVariance(0.1)
    with pytest.raises(TypeError, match="a MaxVariance does not go by bounds"):
        mixed.after_refit(bounds)
    assert len(mixed.members[0]) == 0
    sequential = Stopper(0.01, sequential=True, horizon=100)
    with pytest.raises(
        ValueError, match="`sequential` must be False where hyper-parameters are fitted"
    ):
        sequential.after_refit(bounds)
    still = MovementBelow(horizon=100)
    for bad, message in (
        ([1.0, math.nan], "`bounds` must be finite"),
        ([1.0, -1.0], "`bounds` must not be negative, got -1.0 at index 1"),
    ):
        with pytest.raises(ValueError, match=message):
            still.after_refit(bad)
    with pytest.raises(TypeError, match="`at_edge` must be True or False, got 1"):
        still.after_refit(bounds, at_edge=1)
    with pytest.raises(ValueError, match="`horizon` must be given"):
        MovementBelow().after_refit(bounds)
    assert (len(still), still._fit) == (0, None)


def test_the_end_of_the_horizon_needs_no_second_fit():
    criterion = MovementBelow(0.01, horizon=60)
    assert criterion.after_refit(np.full(60, 2.0))
    assert criterion.verdict.reason == "the horizon of 60 bounds is reached"


def test_reset_begins_with_pushes_that_decide():
    criterion = MovementBelow(0.05, horizon=200)
    criterion.after_refit(drop(20, 40))
    criterion.reset()
    assert criterion.extend(drop(20, 80)) == MovementBelow(0.05, horizon=200).extend(drop(20, 80))
