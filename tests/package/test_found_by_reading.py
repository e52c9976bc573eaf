"""What a reader of the longest files found: each of these went wrong once."""

import json
import pickle
import sys
import threading
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from fastal.stopping.compose import AnyOf

import fastal
from fastal import Criterion, GaussianProcess, MovementBelow, Stopper
from fastal.models import LaplaceClassifier

FALL = np.linspace(5, 1, 30)


@pytest.mark.parametrize("model", [GaussianProcess(), LaplaceClassifier()])
def test_setting_nothing_keeps_the_labels(model):
    model = model.copy()
    model.add(0.5, 1)
    assert model.set_params().n_labels == 1


def stopped_by_fits():
    stopper = Stopper(0.01)
    stopper.set_horizon(100)
    stopper.after_refit(FALL[:25])
    stopper.extend(FALL[25:28])
    stopper.after_refit(1.01 * FALL[:28])
    assert stopper.stopped_at == 28
    return stopper


def test_a_combination_of_somebody_s_own_shares_nothing_with_its_copies():
    class Logged(AnyOf):
        def __init__(self, *members):
            super().__init__(*members)
            self.log = []

        def push(self, r):
            self.log.append(r)
            return super().push(r)

    one = Logged(Stopper(), MovementBelow(horizon=9))
    one.fresh().push(2.0)
    one.copy().push(2.0)
    assert one.log == []


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
    [Stopper(noise=np.array(0.1)), Stopper(Fraction(1, 1000)), MovementBelow(Fraction(1, 10))],
    ids=["array", "alpha", "share"],
)
def test_settings_of_any_number_can_be_written_as_json(criterion):
    state = json.loads(json.dumps(criterion.to_dict()))
    assert json.loads(json.dumps(Criterion.from_dict(state).to_dict())) == state


def test_no_process_is_refused_by_name():
    with pytest.raises(TypeError, match="`gp` must be a GaussianProcess, got None"):
        Stopper().recompute([[0.0]], [1.0], None)


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
