"""Integers at the boundaries in saved states: refused in words, or what is restored works."""

import json
import types
import warnings

import pytest
from boundary_calls import BOUNDS, snapshot
from boundary_values import ALL, HUGE, guarded
from boundary_values import small_machine as small_machine
from saved_states import MAKERS, POOL, good_state, reader

from fastal import ActiveLearner, GaussianProcess, Stopper
from fastal import _validation as check
from fastal.criteria.predictions import Agreement
from fastal.models import LaplaceClassifier
from fastal.stopping import first_of
from fastal.stopping.campaigns import goes_by_bounds

# Saved states ------------------------------------------------------------------------------------


def numbers_in(state, path=()):
    """Yield path and value of the numbers in a state."""
    for key, value in state.items() if isinstance(state, dict) else enumerate(state):
        if isinstance(value, dict | list):
            yield from numbers_in(value, (*path, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key), value


def replaced(state, path, value):
    *way, last = path
    holder = state
    for key in way:
        holder = holder[key]
    holder[last] = value
    return state


def used(made):
    """Go on with what was read, and read again what comes of it."""
    if isinstance(made, ActiveLearner):
        while made.n_labels < made.max_labels:
            made.ask()
            made.tell(1.0)
        return ActiveLearner.from_dict(made.to_dict(), POOL).n_labels
    if isinstance(made, GaussianProcess | LaplaceClassifier):
        made.add(POOL[5], 1.0)
        return made.copy().predict(POOL)
    if isinstance(made, Agreement):
        made.update([0, 1, 0])
    numbers = [min(bound, 1.0) for bound in BOUNDS * 8]  # 224 of them
    if len({goes_by_bounds(one) for one in getattr(made, "members", [made])}) > 1:
        for r in numbers:
            made.see(types.SimpleNamespace(value=r, largest_variance=r), r)
    else:
        made.extend(numbers)
        stopper = first_of(made, Stopper)
        if stopper is None or not stopper.sequential:
            made.after_fit(numbers)
            made.after_fit([2 * r for r in numbers])
        made.set_horizon(300)
        made.push(0.5)
    assert str(made.verdict)
    assert made.copy().to_dict() == made.to_dict()
    return type(made).from_dict(json.loads(json.dumps(made.to_dict()))).stopped_at


@pytest.mark.parametrize("name", MAKERS)
def test_saved_states(name):
    read, found = reader(name), []
    for path, old in list(numbers_in(good_state(name))):
        # Of a list of numbers one stands for all.
        if isinstance(path[-1], int) and path[-1] > 0:
            continue
        for value in ALL if isinstance(old, int) else (HUGE, -HUGE, 2**63, 10**5000):
            state = replaced(good_state(name), path, value)
            before, said = snapshot(state), f"{path} = {check.short_repr(value)}"
            keys = [part for part in path if isinstance(part, str)]
            with warnings.catch_warnings(), guarded():
                warnings.simplefilter("ignore", UserWarning)  # a label far from the prior mean
                try:
                    used(read(state))
                except ValueError as error:
                    named = any(key in str(error) for key in keys) or isinstance(old, float)
                    if not named or len(str(error)) > 400:
                        found.append(f"{said}: ValueError without the key: {str(error)[:400]}")
                except Exception as error:
                    found.append(f"{said}: {type(error).__name__}: {error}")
            if snapshot(state) != before:
                found.append(f"{said}: the state was changed")
    assert found == []


def test_integers_of_states_are_found():
    found = {path for path, old in numbers_in(good_state("ActiveLearner")) if isinstance(old, int)}
    assert {("version",), ("n_initial",), ("order", 0)} <= found
    found = {path for path, old in numbers_in(good_state("AnyOf fits")) if isinstance(old, int)}
    assert {("horizon",), ("fit", 0), ("stops", 0), ("members", 1, "settings", "n")} <= found
