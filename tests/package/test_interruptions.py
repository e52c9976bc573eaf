"""Ctrl-C, errors and forks in the middle of a change: nothing is half written, no lock stays held."""

import copy
import dis
import itertools
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from numba import config
from shared_objects import sequences

from fastal import (
    ActiveLearner,
    FixedBudget,
    GaussianProcess,
    LaplaceClassifier,
    StillToCome,
    Stopper,
    learn,
)
from fastal._core import selection_lazy
from fastal.learning import (
    campaign,
    choose,
    eager,
    gaussian,
    lazy,
    learner,
    refit,
    staged,
    unfitted,
)
from fastal.models import buffers, gp, growing
from fastal.stopping import by_bounds, compose

# Ctrl-C -------------------------------------------------------------------------------------------------


# Python looks for signals when it enters a function, after a call, and when a loop begins again.
CALLS = ("CALL", "JUMP_BACKWARD", "RESUME")


def handler(code, place):
    """Return where an exception at this instruction goes."""
    entries = dis._parse_exception_table(code)
    return next((one.target for one in entries if one.start <= place < one.end), None)


def interrupted_at(place, call, files):
    """Call something with Ctrl-C at one point of some files; return whether it came."""
    left, came, before, last = [place], [], sys.gettrace(), {}

    def trace(frame, event, argument):
        if frame.f_code.co_filename not in files:
            return None
        # The function first: Python 3.13 looks for it there when it is to trace opcodes.
        frame.f_trace, frame.f_trace_opcodes, frame.f_trace_lines = trace, True, False
        if event == "opcode":
            # What is raised at the end of a call belongs to the call: elsewhere it would go to
            # another handler than Ctrl-C does.
            code, now = frame.f_code, frame.f_lasti
            was = last.get(frame, now)
            looked = dis.opname[code.co_code[was]].startswith(CALLS)
            looked = looked and handler(code, was) == handler(code, now)
            last[frame] = now
        else:
            looked = event == "call"
        if looked and not came:
            left[0] -= 1
            if left[0] < 0:
                came.append(event)
                raise KeyboardInterrupt
        return trace

    try:
        sys.settrace(trace)
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
        last.clear()
    return bool(came)


def test_ctrl_c_while_labels_are_added():
    files = {module.__file__ for module in (buffers, gp, growing)}
    X, y, _ = sequences(70)
    for call in (
        lambda one: one.add(X[64], y[64]),
        lambda one: one.add_batch(X[64:67], y[64:67]),
        lambda one: one.add_batch(X[64:], -y[64:]),
        lambda one: one.rewind(60),
        lambda one: one.refresh(),
    ):
        base = GaussianProcess(1.0, 0.1)
        base.add_batch(X[:64], y[:64])
        full = base.copy()
        call(full)
        known = {64: base.log_marginal_likelihood()}
        known |= {full.n_labels: full.log_marginal_likelihood()}
        for place in itertools.count():
            one = base.copy()
            if not interrupted_at(place, partial(call, one), files):
                break
            assert one.log_marginal_likelihood() == pytest.approx(known[one.n_labels], rel=1e-12)
            assert one.drift() < 1e-12
            one.add(X[69], 0.5)  # the turn is free
        assert place >= 4


@pytest.mark.parametrize("kind", ["eager", "lazy", "classes", "composition"])
def test_ctrl_c_while_a_label_is_told(kind, monkeypatch):
    monkeypatch.setattr(choose, "EAGER_BELOW", 0 if kind == "lazy" else 2048)
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (40, 1))
    y, model = np.sin(X[:, 0]), GaussianProcess(1.0, 0.1)
    if kind == "classes":
        y, model = (y > 0).astype(float), LaplaceClassifier(1.0, amplitude=4.0)
    stopper = Stopper() | FixedBudget(100) if kind == "composition" else Stopper()
    start = ActiveLearner(X, gp=model, stopper=stopper, seed=0)
    for _ in range(15):  # the next label fills a panel
        start.tell(y[start.ask()])
    files = {module.__file__ for module in (campaign, learner, eager, gaussian, lazy)}
    full = copy.copy(start)
    for _ in range(4):
        full.tell(y[full.ask()])
    for place in itertools.count():
        one = copy.copy(start)
        index = one.ask()
        if not interrupted_at(place, lambda one=one, i=index: one.tell(y[i]), files):
            break
        n, run = one.n_labels, one.run()
        assert n in (15, 16), place
        assert (run.labels == y[run.indices]).all()
        assert len(run.bounds) == n - 1
        assert one._selection.n_labels == n
        for _ in range(19 - n):
            one.tell(y[one.ask()])
        run = one.run()
        assert (run.indices == full.run().indices).all(), place
        np.testing.assert_allclose(run.bounds, full.run().bounds, rtol=1e-7, atol=1e-12)
        if kind != "composition":  # a member may have got a bound before the other
            np.testing.assert_allclose(run.stopper.bounds, run.bounds, rtol=0, atol=0)
    assert place > 20


def _change(name, X, y):
    """Return (labels before it, a change of a learner, what to do once more if it came too early)."""

    def tell(one):
        one.tell(y[one.pending])

    def tell_rest(one):
        if len(one.pending):
            one.tell(y[one.pending])

    def skip(one):
        one.tell([None] * len(one.pending))

    def skip_rest(one):
        if len(one.pending):
            skip(one)

    def correct(one):
        row = int(one.run().indices[3])
        one.correct(row, y[row] + 1.0)

    def correct_again(one):
        row = int(one.run().indices[3])
        if one.run().labels[3] == y[row]:
            one.correct(row, y[row] + 1.0)

    def extend(one):
        one.extend_pool(X[:5] + 0.05)

    def extend_again(one):
        if one.n_pool == len(X):
            extend(one)

    return {
        "a label with a fit": (9, 1, tell, tell_rest),
        "the first fit": (4, 1, tell, tell_rest),
        "a batch": (9, 4, tell, tell_rest),
        "the fit that stops": (None, 1, tell, tell_rest),
        "a skip": (9, 1, skip, skip_rest),
        "an initial skip": (2, 1, skip, skip_rest),
        "a correction": (9, 0, correct, correct_again),
        "a grown pool": (9, 0, extend, extend_again),
    }[name]


@pytest.mark.parametrize("gp", [None, GaussianProcess(1.0, 0.1)])
@pytest.mark.parametrize(
    "name",
    [
        "a label with a fit", "the first fit", "a batch", "the fit that stops", "a skip",
        "an initial skip", "a correction", "a grown pool",
    ],
)  # fmt: skip
@pytest.mark.parametrize("composed", [False, True])
def test_ctrl_c_in_a_campaign(gp, name, composed):
    if config.DISABLE_JIT and gp is None:
        pytest.skip("hundreds of fits take minutes interpreted")
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 10, (40, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)
    before, count, change, again = _change(name, X, y)
    stopper = StillToCome(0.2) | FixedBudget(34) if composed else StillToCome(0.2)
    make = partial(ActiveLearner, X, gp=gp, stopper=stopper, initial=5, seed=0)
    if before is None:
        whole = make()
        while not whole.stopped:
            whole.tell(y[whole.ask()])
        before = whole.n_labels - 1
    start = make()
    while start.n_labels < before:
        start.tell(y[start.ask()])
    if count:
        start.ask(count)

    def outcome(one):
        answers = np.r_[y, y[:5]]
        for _ in range(8):
            one.tell(answers[one.ask()])
        run = one.run()
        return (
            run.indices.tolist(), run.labels.tolist(), run.skipped.tolist(), run.stopped_at,
            [fit.n_labels for fit in run.refits], one.most_labels, one.stopper._expected,
        ), run  # fmt: skip

    full = copy.copy(start)
    change(full)
    expected, whole = outcome(full)
    modules = (campaign, learner, refit, unfitted, eager, gaussian, by_bounds, compose)
    files = {module.__file__ for module in modules}
    for place in itertools.count():
        one = copy.copy(start)
        if not interrupted_at(place, partial(change, one), files):
            break
        one = ActiveLearner.from_dict(one.to_dict(), np.vstack((X, X[:5] + 0.05))[: one.n_pool])
        again(one)
        said, run = outcome(one)
        assert said == expected, place
        np.testing.assert_allclose(run.bounds, whole.bounds, rtol=1e-6, atol=1e-12)
        if not composed:
            np.testing.assert_allclose(run.stopper.bounds, run.bounds, rtol=1e-6, atol=1e-12)
    assert place > 5


def test_ctrl_c_between_a_label_and_its_bound():
    from fastal.stopping import by_bounds as module

    for place in itertools.count():
        one = Stopper(gp=GaussianProcess())
        one.observe(0.0, 0.5)
        if not interrupted_at(place, lambda one=one: one.observe(1.0, 0.25), {module.__file__}):
            break
        assert len(one) == one.gp.n_labels, place
        one.observe(2.0, 0.1)
        assert len(one) == one.gp.n_labels
    assert place > 5


def test_an_error_in_a_panel_shared_out(monkeypatch):
    # As by Ctrl-C while threads complete a panel: some blocks are done, others are not.
    monkeypatch.setattr(choose, "EAGER_BELOW", 0)
    monkeypatch.setattr(staged, "EARLY_ENTRIES", 0)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 10, (1300, 2)), rng.normal(size=1300)
    settings = {"gp": GaussianProcess(0.5, 0.1), "stopper": Stopper(alpha=1e-12), "seed": 0}
    alone = learn(X, y, max_labels=60, threads=1, **settings)
    complete = selection_lazy.complete_blocks
    calls = itertools.count()

    def broken(*arguments):
        if next(calls) == 1:
            raise KeyboardInterrupt
        complete(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(selection_lazy, "complete_blocks", broken)
        with pytest.raises(KeyboardInterrupt) as caught:
            learn(X, y, max_labels=60, threads=2, **settings)
    run = caught.value.run
    assert 0 < run.n_labels < 60
    assert (run.resume(y, max_labels=60).bounds == alone.bounds).all()


# forks --------------------------------------------------------------------------------------------------

CHILD = """
import os, threading
import numpy as np
from fastal import GaussianProcess, LaplaceClassifier, MaxVariance
gp, model, criterion = GaussianProcess(), LaplaceClassifier(), MaxVariance(0.1)
gp.add(0.0, 1.0)
model.add(0.0, 1)
inside, leave = threading.Event(), threading.Event()

def hold():
    with gp._turn(), model._turn(), criterion._turn():
        inside.set()
        leave.wait()

thread = threading.Thread(target=hold)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    gp.add(1.0, 0.5)
    model.add(1.0, -1)
    criterion.push(1.0)
    with gp._turn():
        inner = os.fork()     # by the thread that has the turn: it keeps it
        if inner == 0:
            try:
                gp.add(2.0, 0.5)
            except RuntimeError:
                os._exit(0)
            os._exit(1)
        wrong = os.waitpid(inner, 0)[1]
    os._exit(wrong or (gp.n_labels, model.n_labels, len(criterion.history)) != (2, 2, 1))
wrong = os.waitpid(child, 0)[1]
leave.set()
thread.join()
gp.add(1.0, 0.5)
print(wrong, gp.n_labels)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_while_another_thread_has_the_turn():
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CHILD],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0 2\n", "")
