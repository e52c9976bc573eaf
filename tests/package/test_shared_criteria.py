"""Criteria that threads share, that are called from within, and that are copied meanwhile."""

import copy
import itertools
import pickle
import threading
import warnings

import numpy as np
import pytest
from shared_objects import together

from fastal import (
    ActiveLearner,
    ErrorStability,
    FixedBudget,
    GaussianProcess,
    LaplaceClassifier,
    MinLabels,
    OverallUncertainty,
    StabilizingPredictions,
    Stopper,
)
from fastal._threads import OneWriter
from fastal.criteria import (
    CrossValidation,
    MaxVariance,
)
from fastal.stopping import Criterion, Measured

# criteria -----------------------------------------------------------------------------------------

CRITERIA = {
    "FixedBudget": (lambda: FixedBudget(77), lambda c, k: c.push(1.0)),
    "FixedBudget.update": (lambda: FixedBudget(10_000), lambda c, k: c.update(k)),
    "MinLabels": (lambda: MinLabels(77), lambda c, k: c.push(1.0)),
    "MaxVariance": (lambda: MaxVariance(1e-9), lambda c, k: c.update([k + 1.0])),
    "CrossValidation": (lambda: CrossValidation(-1.0), lambda c, k: c.push(k + 1.0)),
    "ErrorStability": (lambda: ErrorStability(0.01), lambda c, k: c.update(k + 1.0)),
    "OverallUncertainty": (lambda: OverallUncertainty(1e-9), lambda c, k: c.push(k + 1.0)),
    "StabilizingPredictions": (
        lambda: StabilizingPredictions(),
        lambda c, k: c.update(np.arange(20) % 7 > k % 7),
    ),
    "extend": (lambda: MaxVariance(1e-9), lambda c, k: c.extend([k + 1.0])),
}


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("name", CRITERIA)
def test_no_step_of_a_criterion_is_lost(name):
    make, step = CRITERIA[name]
    criterion, numbers, writing = make(), itertools.count(), [True] * 4

    def write(me):
        for _ in range(100):
            step(criterion, next(numbers))
        writing[me] = False

    def read():
        while any(writing):
            state = criterion.to_dict()
            new = Criterion.from_dict(state)
            assert new.to_dict() == state
            verdict = criterion.verdict
            # of one moment: a stop is for ever, and its number with it
            assert verdict.n == criterion.stopped_at if verdict.stop else 0 <= verdict.n <= 400
            assert len(pickle.loads(pickle.dumps(criterion)).history) <= 400

    together(*(lambda me=me: write(me) for me in range(4)), read)
    assert len(criterion.history) == 400
    alone = make()
    for k in range(400):
        step(alone, k)
    if name != "StabilizingPredictions":  # what it measures depends on the order
        assert sorted(criterion.history) == sorted(alone.history)
        assert criterion.stopped == alone.stopped
    else:
        assert np.isnan(criterion.history).sum() == 1


@pytest.mark.usefixtures("restless")
def test_reading_while_a_criterion_is_reset():
    criterion, writing = ErrorStability(0.5), [True]

    def write():
        for k in range(300):
            criterion.push(4.0)
            criterion.push(1e-9)
            assert criterion.stopped_at == 2
            criterion.reset()
            assert k < 300
        writing[0] = False

    def read():
        while writing[0]:
            said = str(criterion.verdict)
            assert said in {
                "go on: no error bound relative to the first yet",
                "go on: error bound relative to the first (1) is above 0.5",
                str(stopped),
            }

    alone = ErrorStability(0.5)
    alone.extend([4.0, 1e-9])
    stopped = alone.verdict
    together(write, read, read)


# from within ----------------------------------------------------------------------------------------


def inside_a_warning(call, hook):
    """Call something that warns, with a hook for warnings; return what the hook raised."""
    raised = []

    def show(*_, **__):
        try:
            hook()
        except RuntimeError as error:
            raised.append(str(error))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        call()
    return raised


@pytest.mark.parametrize(
    "hook",
    [
        lambda gp: gp.add(0.0, 0.1),
        lambda gp: gp.add_batch([0.0], [0.1]),
        lambda gp: gp.rewind(0),
        lambda gp: gp.refresh(),
    ],
)
def test_a_hook_for_warnings_that_changes_the_process(hook):
    gp = GaussianProcess()
    gp.add(1.0, 0.5)
    raised = inside_a_warning(lambda: gp.add(2.0, 1e3), lambda: hook(gp))
    assert len(raised) == 1
    assert "cannot be changed again from within" in raised[0]
    assert gp.to_dict()["labels"] == [0.5, 1e3]


def test_a_hook_for_warnings_that_reads():
    gp, read = GaussianProcess(), []
    assert inside_a_warning(lambda: gp.add(0.0, 1e3), lambda: read.append(gp.copy().n_labels)) == []
    assert read == [0]
    stopper = Stopper(gp=GaussianProcess())
    raised = inside_a_warning(lambda: stopper.observe(0.0, 1e3), lambda: stopper.observe(1.0, 0.0))
    assert len(raised) == 1
    assert (len(stopper), stopper.gp.n_labels) == (1, 1)


def test_a_criterion_that_goes_on_from_within():
    class Eager(MaxVariance):
        def _passes(self, value):
            return self.push(value)

    criterion = Eager(0.5)
    with pytest.raises(RuntimeError, match="cannot be changed again from within"):
        criterion.push(1.0)
    assert criterion.history.size == 0
    assert isinstance(criterion, Measured)


class Mine(Criterion):
    """A user's: no super().__init__, and a way of its own to copy."""

    def __init__(self, calls=None):
        self.values = []
        self.calls = calls

    def push(self, r):
        if self.calls is not None:
            self.calls(r)
        self.values.append(r)
        return self.stopped

    def reset(self):
        self.values = []
        return self

    @property
    def stopped_at(self):
        return 3 if len(self.values) >= 3 else None

    @property
    def reason(self):
        return f"{len(self.values)} values"

    @property
    def history(self):
        return self.values

    def to_dict(self):
        return {"kind": "Mine", "version": 1, "values": list(self.values)}

    @classmethod
    def _from_state(cls, state):
        new = cls()
        new.values = state["values"]
        return new


class Slotted(Mine):
    __slots__ = ("extra",)


def test_criteria_of_users():
    mine = Mine()
    assert mine.extend([1.0, 2.0]) is None
    both = mine | FixedBudget(5)
    both.push(3.0)
    assert (both.stopped_at, str(both.verdict)) == (3, "stop after 3 bounds: 3 values")
    assert vars(mine) == {"values": [1.0, 2.0, 3.0], "calls": None}
    for new in (pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine), mine.copy()):
        assert vars(new) == vars(mine)
        new.push(4.0)
        assert len(mine.values) == 3
    new = pickle.loads(pickle.dumps(both))
    new.push(4.0)
    assert (len(new.history[0]), len(both.history[0])) == (4, 3)
    slotted = Slotted()
    slotted.extra = 5
    again = pickle.loads(pickle.dumps(slotted))
    assert (again.extra, again.values) == (5, [])
    assert (again & FixedBudget(1)).push(1.0) is False


def test_a_member_that_pushes_to_all():
    mine = Mine(lambda r: both.push(r))
    both = mine | FixedBudget(5)
    with pytest.raises(RuntimeError, match="cannot be changed again from within"):
        both.push(1.0)
    assert len(mine.values) == 0
    assert len(both.members[1].history) == 0


# copies have locks of their own -----------------------------------------------------------------------


def objects():
    X = np.linspace(0, 5, 20)
    process, model = GaussianProcess(), LaplaceClassifier()
    process.add(0.0, 0.5)
    model.add(0.0, 1)
    learner = ActiveLearner(X, gp=GaussianProcess(1.0, 0.1), stopper=Stopper(), seed=0)
    for _ in range(3):
        learner.tell(float(np.sin(X[learner.ask()])))
    yield process, lambda one: one.add(1.0, 0.2), lambda one: one.n_labels
    yield model, lambda one: one.add(1.0, 1), lambda one: one.n_labels
    yield learner, lambda one: one.tell(0.1), lambda one: one.n_labels
    for criterion in (FixedBudget(9), MaxVariance(1e-3), Mine()):
        yield criterion, lambda one: one.push(1.0), lambda one: len(one.history)
    yield Stopper(), lambda one: one.push(1.0), len
    yield Stopper() | FixedBudget(5), lambda one: one.push(1.0), lambda one: len(one.members[0])


@pytest.mark.parametrize("place", range(8))
def test_a_copy_of_what_is_being_changed_is_free(place):
    one, change, size = list(objects())[place]
    before = size(one)
    with one._turn():
        assert one._writing is not None
        made = [copy.deepcopy(one), pickle.loads(pickle.dumps(one))]
        made += [one.copy()] if hasattr(one, "copy") else []
        made += [] if isinstance(one, Mine) else [copy.copy(one)]  # as the user's class has it
    assert b"OneWriter" not in pickle.dumps(one)
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with one._turn():
            inside.set()
            assert leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(60)
    for new in made:
        assert new._writing is None or new._writing is not one._writing
        change(new)  # would wait for ever
        assert size(new) == before + 1
    assert size(one) == before
    leave.set()
    thread.join()
    change(one)
    assert size(one) == before + 1


def test_a_lock_is_not_saved():
    writer = OneWriter()
    with writer.turn():
        for new in (pickle.loads(pickle.dumps(writer)), copy.copy(writer), copy.deepcopy(writer)):
            assert new is not writer
            with new.turn():
                pass
        with pytest.raises(RuntimeError, match="cannot be changed again"):
            writer.turn()
        with writer:  # looking is allowed
            pass
    with writer.turn():
        pass
