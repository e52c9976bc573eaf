"""What a reader of the longest files found: each of these went wrong once."""

import json
import pickle
import sys
import threading
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

import fastal
from fastal import Criterion, FixedBudget, GaussianProcess, MinLabels, MovementBelow, Stopper
from fastal.criteria import CrossValidation, ErrorStability, MaxVariance
from fastal.models import LaplaceClassifier
from fastal.stopping import AnyOf, CampaignView

FALL = np.linspace(5, 1, 30)


@pytest.mark.parametrize("model", [GaussianProcess(), LaplaceClassifier()])
def test_setting_nothing_keeps_the_labels(model):
    model = model.copy()
    model.add(0.5, 1)
    assert model.set_params().n_labels == 1


def stopped_by_fits():
    stopper = Stopper(0.01)
    stopper.set_horizon(100)
    stopper.after_fit(FALL[:25])
    stopper.extend(FALL[25:28])
    stopper.after_fit(1.01 * FALL[:28])
    assert stopper.stopped_at == 28
    return stopper


@pytest.mark.parametrize("take", [lambda s: s.after_fit(FALL[:5]), lambda s: s.after_fit([])])
def test_a_stop_outlives_a_fit_to_fewer_labels(take):
    stopper = stopped_by_fits()
    said = str(stopper.verdict)
    take(stopper)
    for one in (stopper, stopper.copy(), Stopper.from_dict(stopper.to_dict())):
        assert (one.stopped_at, str(one.verdict)) == (28, said)


def test_a_combination_of_somebody_s_own_shares_nothing_with_its_copies():
    class Logged(AnyOf):
        def __init__(self, *members):
            super().__init__(*members)
            self._log = []

        def push(self, r):
            self._log.append(r)
            return super().push(r)

    one = Logged(Stopper(), MovementBelow(horizon=9))
    one.replace().push(2.0)
    one.copy().push(2.0)
    assert one._log == []


def test_a_class_with_the_name_of_ours_does_not_hide_it():
    kinds = dict(Criterion._kinds)
    type("Stopper", (Criterion,), {"__module__": "somebody"})
    assert Criterion._kinds == kinds
    assert fastal.Stopper.from_dict(Stopper().to_dict()) is not None


@pytest.mark.parametrize("amplitude", [1e10, 1e12])
def test_a_saved_classifier_of_a_large_amplitude_is_read(amplitude):
    rng = np.random.default_rng(0)
    model = LaplaceClassifier(amplitude=amplitude)
    model.add_batch(rng.uniform(0, 3, 40), rng.integers(0, 2, 40))
    assert LaplaceClassifier.from_dict(model.to_dict()).n_labels == 40


@pytest.mark.parametrize(
    "change",
    [{"version": True}, {"labels": [], "weights": []}, {"labels": [], "scaled_inputs": []}],
    ids=["version", "inputs", "weights"],
)
def test_a_damaged_classifier_is_refused(change):
    model = LaplaceClassifier()
    model.add(1.0, 1)
    with pytest.raises(ValueError, match=r"state|labels|scaled_inputs|weights"):
        LaplaceClassifier.from_dict(model.to_dict() | change)


@pytest.mark.parametrize(
    "criterion",
    [MaxVariance(np.array(0.1)), Stopper(Fraction(1, 1000)), MovementBelow(Fraction(1, 10))],
    ids=["array", "alpha", "share"],
)
def test_settings_of_any_number_can_be_written_as_json(criterion):
    state = json.loads(json.dumps(criterion.to_dict()))
    assert json.loads(json.dumps(Criterion.from_dict(state).to_dict())) == state


def test_no_model_is_refused_by_name():
    with pytest.raises(TypeError, match=r"None|NoneType"):
        Stopper().after_fit(None)


MIXED = [
    Stopper() | MaxVariance(1.0),
    MovementBelow(horizon=9) & CrossValidation(0.1) & MinLabels(3),
    (Stopper() & MinLabels(3)) | (FixedBudget(9) & MaxVariance(1.0)),
]


@pytest.mark.parametrize("rule", MIXED, ids=repr)
@pytest.mark.parametrize("push", [lambda rule: rule.push(0.5), lambda rule: rule.extend([0.5])])
def test_a_bound_is_no_measure(rule, push):
    # the measure of `MaxVariance` would have been 0.5: a stop
    with pytest.raises(
        TypeError, match=r"takes no bounds: push to each member, or let `learn` run"
    ):
        push(rule)
    assert (len(rule), rule.stopped) == (0, False)


class View:
    largest_variance = 0.5


def test_a_campaign_gives_bounds_and_measures():
    rule = Stopper() | MaxVariance(1.0)
    assert rule.see(View(), 7.0)
    stopper, variance = rule.members
    assert (stopper.bounds.tolist(), variance.history.tolist()) == ([7.0], [0.5])


@pytest.mark.parametrize(
    "rule", [MaxVariance(0.1) & MinLabels(2), Stopper() | ErrorStability(0.1) | FixedBudget(2)]
)
def test_counts_go_with_anything_and_bounds_with_bounds(rule):
    assert [rule.push(0.05), rule.push(0.05)] == [False, True]


def test_a_criterion_is_true():
    for rule in (Stopper(), FixedBudget(1), MaxVariance(1.0), *MIXED):
        assert len(rule) == 0
        assert rule


def test_what_a_criterion_may_see_is_what_a_learner_shows():
    names = [name for name in vars(CampaignView) if not name.startswith("_")]
    assert len(names) == 13
    learner = fastal.ActiveLearner([[0.0], [1.0], [2.0]], gp=GaussianProcess(), criterion=Stopper())
    while not learner.finished:
        learner.ask()
        learner.tell(1.0)
        if len(learner.bounds):  # it looks after labels that gave one
            assert [name for name in names if not hasattr(learner, name)] == []
    assert len(learner.bounds) == 2


@pytest.mark.parametrize("saved", [lambda s: s.to_dict(), pickle.dumps], ids=["dict", "pickle"])
def test_a_state_is_of_one_moment_while_another_thread_pushes(saved):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            stopper = Stopper(0.05)
            pusher = threading.Thread(target=lambda s=stopper: [s.push(r) for r in FALL])
            pusher.start()
            states = []
            while pusher.is_alive():
                with suppress(RuntimeError):  # others push, whenever it asks
                    states.append(saved(stopper))
            pusher.join()
            states.append(saved(stopper))
            for state in states[-20:]:
                again = pickle.loads(state) if saved is pickle.dumps else Stopper.from_dict(state)
                twin = Stopper(0.05)
                twin.extend(again.bounds)
                assert again.stopped_at == twin.stopped_at
    finally:
        sys.setswitchinterval(before)
