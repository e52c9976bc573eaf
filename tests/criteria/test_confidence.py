import copy
import json
import pickle

import numpy as np
import pytest
import twins
from hypothesis import given
from hypothesis import strategies as st

from fastal import GaussianProcess, learn
from fastal.criteria import ConfidenceDrop, ConfidenceGradient
from fastal.criteria.confidence import (
    confidences,
)
from fastal.models import LaplaceClassifier
from fastal.stopping.criterion import Criterion

STEPS = st.lists(st.sampled_from([0.5, 0.55, 0.6, 0.7, 0.75, 0.8, 1.0]), max_size=14)


def test_confidences_by_hand():
    assert confidences([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]]).tolist() == [0.5, 1.0]
    assert confidences([0.25, 0.5, 1.0]).tolist() == [0.75, 0.5, 1.0]


@given(STEPS, st.integers(1, 4), st.sampled_from([0.01, 0.06, 0.2]))
def test_gradient_stops_where_its_twin_does(steps, window, threshold):
    expected = twins.confidence_gradient_stop(steps, threshold, window)
    assert ConfidenceGradient(threshold, window).extend(steps) == expected
    criterion = ConfidenceGradient(threshold, window)
    for value in steps:
        criterion.update([value, 1.0])
    assert criterion.stopped_at == expected


@given(STEPS, st.integers(1, 4))
def test_drop_stops_where_its_twin_does(steps, rounds):
    assert ConfidenceDrop(rounds).extend(steps) == twins.confidence_drop_stop(steps, rounds)


def test_gradient_needs_a_new_maximum_and_a_rise():
    # medians of two: 0.55, 0.65, then 0.65 (no rise), then 0.66 at a new maximum
    assert ConfidenceGradient(0.05, 2).extend([0.5, 0.6, 0.7, 0.6, 0.72]) == 5
    assert ConfidenceGradient(0.05, 2).extend([0.5, 0.6, 0.9, 0.4, 0.89]) is None
    assert ConfidenceGradient(0.05, 1).extend([0.5, 0.5, 0.5]) is None
    assert ConfidenceGradient().window == 100


def test_update_takes_probabilities():
    gradient, drop = ConfidenceGradient(0.5, 1), ConfidenceDrop(1)
    gradient.update([[0.2, 0.8], [0.6, 0.4]])
    assert gradient.history.tolist() == [0.6]
    drop.update([[0.2, 0.8], [0.5, 0.5]])
    assert drop.history.tolist() == [0.65]
    assert drop.update([0.5, 0.5])


@pytest.mark.parametrize("made", [ConfidenceGradient(0.2, 2), ConfidenceDrop(2)])
def test_survives_saving(made):
    made.extend([0.5, 0.6, 0.55])
    for again in (
        Criterion.from_dict(json.loads(json.dumps(made.to_dict()))),
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
    ):
        assert again.history.tolist() == [0.5, 0.6, 0.55]
        assert again.extend([0.54, 0.9]) == copy.copy(made).extend([0.54, 0.9])


def test_refuses():
    for bad in (0.0, -1.0):
        with pytest.raises(ValueError, match="`threshold` must be positive"):
            ConfidenceGradient(bad)
    with pytest.raises(ValueError, match="`window` must be at least 1, got 0"):
        ConfidenceGradient(0.1, 0)
    with pytest.raises(ValueError, match="`rounds` must be at least 1, got 0"):
        ConfidenceDrop(0)
    rule = ConfidenceDrop()
    with pytest.raises(ValueError, match=r"`r` must be in \[0, 1\], got 1\.5"):
        rule.push(1.5)
    assert rule.history.size == 0


@pytest.mark.parametrize("made", [ConfidenceGradient(0.5, 1), ConfidenceDrop(1)])
def test_in_a_campaign(made):
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = (X[:, 0] > 0).astype(int)
    run = learn(X, y, gp=LaplaceClassifier(), criterion=made.replace(every=1), initial=3, seed=0)
    assert run.stopped
    with pytest.raises(TypeError, match="it needs a classifier, not a regression"):
        learn(X, y, gp=GaussianProcess(), criterion=made, seed=0)
