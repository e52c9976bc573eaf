"""Random programs of operations on learners and runs, against a dense twin after each of them.

A program is one seed. Nothing of the code is patched: sizes are drawn around the borders that it
has. A failure prints the program so far.

    FASTAL_PROGRAMS=2000 FASTAL_PROGRAMS_SEED=1000 pytest tests/learning/test_programs.py
    python tests/learning/test_programs.py 17 18    # programs 17 and 18 only
"""

import copy
import functools
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from numba import config

sys.path.append(str(Path(__file__).parents[1]))  # its twins, also where this is a program

from programs_mirror import CLOSEST, Mirror
from programs_problems import Problem

from fastal import ActiveLearner, GaussianProcess, MovementBelow, learn

pytestmark = [
    pytest.mark.skipif(bool(config.DISABLE_JIT), reason="hours interpreted"),
    # Ctrl-C in a destructor is nobody's exception
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COUNT = int(os.environ.get("FASTAL_PROGRAMS", "40"))
FIRST = int(os.environ.get("FASTAL_PROGRAMS_SEED", "0"))
MINUTES = float(os.environ.get("FASTAL_PROGRAMS_MINUTES", "20"))

BATCHES = (1, 1, 2, 3, 7, 16, 33, 64, 100, 200, 256, 288, 320)


class FailedError(Exception):
    """From an oracle or a callback."""


class Source:
    """An oracle and a callback, which may fail at some call."""

    def __init__(self, X, y, how, fail):
        self.X, self.y, self.how, self.fail, self.calls = X, y, how, fail, 0

    def count(self):
        self.calls += 1
        if self.how.endswith("fails") and self.calls == self.fail:
            raise FailedError

    def oracle(self, row, x):
        assert np.array_equal(x, self.X[row])
        self.count()
        return self.y[row]

    def callback(self, learner):
        self.count()


def with_ctrl_c(seconds, call):
    """Return what a call returns, or the KeyboardInterrupt that comes after so many seconds."""
    armed = True

    def interrupt(*_):
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        found = call()
        armed = False
        return found
    except KeyboardInterrupt as error:
        return error
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Program(Problem):
    """One random program; `said` is what it has done."""

    def moment(self):
        return float(10 ** self.rng.uniform(-4, -1.2))

    def run(self):
        steps = self.learner_steps() if self.kind == "learner" else self.run_steps()
        for _ in steps:
            pass

    # a learner -------------------------------------------------------------------------------

    def learner_steps(self):
        options = dict(self.options)
        if self.rng.random() < 0.15:
            k = int(self.rng.integers(1, self.most + 1))
            rows = self.rng.choice(len(self.X), k, replace=False)
            self.say(f"known: {k} rows")
            options["known"] = rows, self.truth[rows]
            self.learner = ActiveLearner(self.X, **options)
            assert self.learner.labelled.tolist() == rows.tolist()
            self.told(rows, self.truth[rows], None)
        else:
            self.learner = ActiveLearner(self.X, **options)
            self.note()
        doing = {
            self.ask_and_tell: 12, self.tell_another: 2, self.skip: 1.5, self.correct: 1.5, self.extend: 2.5,
            self.keep: 3, self.more: 3, self.unasked: 0.4, self.ask_interrupted: 1,
        }  # fmt: skip
        weights = np.array(list(doing.values())) / sum(doing.values())
        for _ in range(int(self.rng.integers(5, 13))):
            step = self.rng.choice(list(doing), p=weights)
            step()
            yield

    def note(self, told=True):
        """Bring the mirror up to what the learner has, and compare."""
        run, mirror = self.learner.run(), self.mirror
        t = len(mirror.rows)
        assert run.indices[:t].tolist() == mirror.rows
        mirror.advance(run.indices[t:], run.labels[t:], run.refits[len(mirror.fits) :])
        mirror.check(run, self.learner, told)

    def room(self):
        return self.mirror.most - len(self.mirror.rows)

    def noise(self, count):
        if self.rng.random() < 0.85 or self.mirror.twin is None:
            return None
        return self.mirror.hyper["noise"] * self.rng.uniform(0.5, 3, count)

    def ask(self):
        n = int(self.rng.choice(BATCHES))
        self.say(f"rows = ask({n})")
        rows, mirror = self.learner.ask(n), self.mirror
        assert len(rows) == min(n, self.room())
        assert np.array_equal(rows, self.learner.ask(n))
        assert len(set(rows.tolist())) == len(rows)
        assert mirror.free[rows].all()
        mirror.check_choice(rows.tolist())
        return rows

    def told(self, rows, y, noise):
        """Take what was told in order, whatever variance it had: in the mirror."""
        greedy, self.mirror.greedy = self.mirror.greedy, False
        rows = [int(row) for row in rows]
        if noise is not None:
            self.mirror.own |= dict(zip(rows, noise.tolist(), strict=True))
        begin = 0
        for end in np.flatnonzero(np.isnan(y)):  # each of them changes the horizon
            self.mirror.take(rows[begin:end], y[begin:end])
            self.mirror.skipped.add(rows[end])
            begin = end + 1
        try:
            self.note()
        finally:
            self.mirror.greedy = greedy

    def ask_and_tell(self):
        if self.room() < 1:
            return self.more()
        rows = self.ask()
        y = self.truth[rows].copy()
        how = str(self.rng.choice(["all", "all", "all", "gaps", "index", "parts"]))
        if how == "gaps" and len(rows) < 300:
            y[self.rng.random(len(rows)) < 0.1] = np.nan
        noise = self.noise(len(rows)) if how != "gaps" else None
        own = "" if noise is None else ", noise=..."
        if how in ("all", "gaps"):
            self.say(
                f"tell(y[rows]{own})"
                + f"  # {int(np.isnan(y).sum())} are nan" * bool(how == "gaps")
            )
            self.learner.tell(y if len(rows) > 1 else y[0], noise=noise)
            return self.told(rows, y, noise)
        place = self.rng.permutation(len(rows))
        rows, y = rows[place], y[place]
        noise = None if noise is None else noise[place]
        cut = len(rows) if how == "index" else int(self.rng.integers(0, len(rows) + 1))
        for part in (slice(0, cut), slice(cut, None)):
            if len(rows[part]):
                self.say(
                    f"tell(y[part], index=part{own})  # {len(rows[part])} of them, in another order"
                )
                some = None if noise is None else noise[part]
                self.learner.tell(y[part], index=rows[part], noise=some)
                self.told(rows[part], y[part], some)
        return None

    def tell_another(self):
        free = np.flatnonzero(self.mirror.free)
        if self.room() < 1 or not len(free):
            return
        count = min(int(self.rng.choice([1, 1, 3, 20])), self.room(), len(free))
        rows = self.rng.choice(free, count, replace=False)
        noise = self.noise(count)
        self.say(
            f"tell(y[rows], index=rows{', noise=...' if noise is not None else ''})  # {count} others"
        )
        if count == 1 and self.rng.random() < 0.3:
            self.learner.tell(None, index=int(rows[0]))
            self.told(rows, np.array([np.nan]), None)
            return
        self.learner.tell(self.truth[rows], index=rows, noise=noise)
        self.told(rows, self.truth[rows], noise)

    def skip(self):
        if self.room() < 1 or len(self.mirror.skipped) > 5:
            return
        self.say("ask(); skip()")
        row = self.learner.ask()
        self.learner.skip()
        self.told([row], np.array([np.nan]), None)

    def correct(self):
        if not self.mirror.rows:
            return
        count = min(len(self.mirror.rows), int(self.rng.choice([1, 3])))
        places = self.rng.choice(len(self.mirror.rows), count, replace=False)
        rows = np.array(self.mirror.rows)[places]
        self.say(f"correct({rows.tolist()}, ...)")
        y = self.truth[rows] + 0.2 * self.sy * self.rng.uniform(-1, 1, count)
        self.truth[rows] = y
        self.learner.correct(rows, y)
        for place, value in zip(places, y.tolist(), strict=True):
            self.mirror.y[place] = value
        self.mirror.anew()
        self.note()

    def extend(self):
        count = int(self.rng.choice([1, 2, 40, 500]))
        self.say(f"extend_pool({count} points)")
        X = self.X[: min(count, len(self.X))] + self.sx * self.rng.normal(size=(1, self.X.shape[1]))
        if (self.X[:, -1] == self.X[0, -1]).all():
            X[:, -1] = self.X[0, -1]
        self.X = np.vstack((self.X, X))
        self.truth = np.r_[self.truth, self.labels_of(X)]
        self.learner.extend_pool(X)
        mirror = self.mirror
        mirror.X, mirror.max_labels = self.X, len(self.X) if mirror.whole else mirror.max_labels
        mirror.unit = mirror.scales()
        mirror.anew()
        self.note()

    def keep(self):
        how = str(self.rng.choice(["from_dict(to_dict(), X)", "pickle", "copy"]))
        self.say(how)
        before = self.learner
        if how == "pickle":
            self.learner = pickle.loads(pickle.dumps(before))
        elif how == "copy":
            self.learner = copy.copy(before)
        else:
            self.learner = ActiveLearner.from_dict(json.loads(json.dumps(before.to_dict())), self.X)
        assert self.learner.pending.tolist() == before.pending.tolist()
        self.note()

    def more(self):
        """Another budget, in place or by way of the saved state: both must go on alike."""
        mirror = self.mirror
        if mirror.whole or len(self.learner.pending):
            return
        most = self.some_most(
            max(len(mirror.rows), mirror.n_initial + 1), len(self.X) - len(mirror.skipped)
        )
        if self.rng.random() < 0.5:
            self.say(f"max_labels = {most}")
            self.learner.max_labels = most
        else:
            self.say(f"from_dict(to_dict() | {{'max_labels': {most}}}, X)")
            state = json.loads(json.dumps(self.learner.to_dict() | {"max_labels": most}))
            self.learner = ActiveLearner.from_dict(state, self.X)
        mirror.max_labels = most
        self.note()

    def unasked(self):
        """Labels of points that nobody was shown are refused, and change nothing."""
        if len(self.learner.pending) or self.room() < 2:
            return
        if self.rng.random() < 0.5:
            self.say("ask(); tell(y)")
            row = self.learner.ask()
            self.learner.tell(self.truth[row])
            self.told([row], self.truth[[row]], None)
        if self.room() < 1:
            return
        self.say("tell(y)  # nothing was asked")
        before = self.learner.to_dict()
        try:
            self.learner.tell(self.middle)
        except ValueError:
            assert self.learner.to_dict() == before
        else:
            raise AssertionError(
                f"a label of point {self.learner.labelled[-1]}, which nobody was shown"
            )
        self.note()

    def ask_interrupted(self):
        """Ctrl-C in `ask`, then in `tell`: the first labels are there, or none."""
        if self.room() < 1 or not hasattr(signal, "setitimer"):
            return
        n, moment = int(self.rng.choice(BATCHES)), self.moment()
        self.say(f"rows = ask({n}); tell(y[rows])  # Ctrl-C after {1000 * moment:.2f} ms, in both")
        with_ctrl_c(moment, lambda: self.learner.ask(n))
        self.note(told=False)
        rows = self.learner.ask(n)
        self.mirror.check_choice(rows.tolist())
        with_ctrl_c(moment, lambda: self.learner.tell(self.truth[rows], index=rows))
        greedy, self.mirror.greedy = self.mirror.greedy, False
        self.note(told=False)
        rest = rows[self.mirror.free[rows]]
        assert (
            self.mirror.rows[len(self.mirror.rows) - len(rows) + len(rest) :]
            == rows[: len(rows) - len(rest)].tolist()
        )
        if len(rest):
            self.learner.tell(self.truth[rest], index=rest)
        elif self.room() > 0:
            row = self.learner.ask()
            self.learner.tell(self.truth[row])
        elif len(self.mirror.rows) >= self.mirror.due():
            self.learner.refit()  # no other call comes to that fit any more
        self.note()
        self.mirror.greedy = greedy

    # runs ------------------------------------------------------------------------------------

    def run_steps(self):
        self.result = None
        tries = 12 if self.kind == "interrupted" else int(self.rng.integers(2, 6))
        for _ in range(tries):
            self.go_on()
            yield
        self.go_on("array")

    def source(self, how):
        """Return what gives labels, and a callback."""
        source = Source(self.X, self.truth, how, int(self.rng.integers(1, 60)))
        labels = source.oracle if how.startswith("oracle") else self.truth
        return labels, source.callback if how.startswith("callback") else None

    def go_on(self, how=None):
        rng, mirror, run = self.rng, self.mirror, self.result
        hows = ["array", "array", "oracle", "oracle fails", "callback fails", "Ctrl-C"]
        how = str(rng.choice(hows)) if how is None else how
        if self.kind == "interrupted" and how != "array":
            how = "Ctrl-C"
        if how == "Ctrl-C" and not hasattr(signal, "setitimer"):
            return
        if run is not None:
            if rng.random() < 0.2:
                self.say("run = pickle.loads(pickle.dumps(run))")
                run = pickle.loads(pickle.dumps(run))
            if rng.random() < 0.5 and run.n_labels >= mirror.most:
                mirror.max_labels = self.some_most(run.n_labels, len(self.X))
            if mirror.stop is not None and rng.random() < 0.5:
                mirror.max_labels = max(
                    mirror.max_labels, self.some_most(run.n_labels, len(self.X))
                )
        past = mirror.stop is not None
        labels, callback = self.source(how)
        threads = int(rng.choice([1, 2]))
        if run is None:
            self.say(f"run = learn(X, y, threads={threads})  # {how}")
            call = lambda: learn(self.X, labels, threads=threads, on_label=callback, **self.options)  # noqa: E731
        else:
            if callback is not None:
                how, labels = "oracle fails", self.source("oracle fails")[0]
            self.say(
                f"run = run.resume(y, max_labels={mirror.max_labels}, threads={threads})  # {how}"
            )
            call = lambda: run.resume(labels, max_labels=mirror.max_labels, threads=threads)  # noqa: E731
        if how == "Ctrl-C":
            moment = self.moment()
            self.said[-1] += f" after {1000 * moment:.2f} ms"
            found = with_ctrl_c(moment, call)
            if isinstance(found, KeyboardInterrupt) and not hasattr(found, "run"):
                # before the first label, or when the result was on its way: it is lost
                self.said[-1] += ": lost, begin anew"
                self.restart()
                return
        else:
            try:
                found = call()
            except FailedError as error:
                found = error
        complete = not isinstance(found, BaseException)
        self.result = run = found if complete else found.run
        if not complete:
            self.said[-1] += f": {run.n_labels} labels"
        t = len(mirror.rows)
        assert run.indices[:t].tolist() == mirror.rows
        mirror.advance(run.indices[t:], run.labels[t:], run.refits[len(mirror.fits) :])
        np.testing.assert_array_equal(run.labels, self.truth[run.indices])
        mirror.check(run, told=complete)
        if complete:
            there = mirror.n_initial + (mirror.stop or 0)
            assert run.n_labels == (mirror.most if past or mirror.stop is None else there)

    def restart(self):
        old = self.mirror
        self.result = None
        most = old.max_labels = self.options["max_labels"]
        self.mirror = Mirror(self.X, old.gp, old.share, old.n_initial, most, old.refit)
        self.mirror.greedy = old.greedy


@functools.cache
def warm():
    """Compile, or load, the kernels: Ctrl-C in the middle of that can leave a lock of Numba held."""
    X = np.random.default_rng(0).normal(size=(2500, 2))
    y = np.sin(X).sum(axis=1)
    never = MovementBelow(1e-9)
    for gp in (GaussianProcess(1.0, 0.01), None):
        for threads in (1, 2):
            learn(X, y, gp=gp, criterion=never, max_labels=300, threads=threads, initial=5)
        for pool in (X, X[:50]):
            learner = ActiveLearner(pool, gp=gp, criterion=never, initial=5, max_labels=40)
            for count in (1, 5, 30):
                learner.tell(y[learner.ask(count)])
            learner.run()


def run_program(seed):
    """Run one program; a failure says what it has done."""
    program = None
    warm()
    try:
        program = Program(seed)
        program.run()
    except Exception as error:
        said = [] if program is None else program.said
        text = "\n    ".join([f"program {seed}:", *said])
        raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_program(seed):
    run_program(seed)


@pytest.mark.long
def test_fresh_programs():
    """In processes of their own: a program that is lost to a crash or hangs is named."""
    seed, end, failed = int(time.time()) * 1000, time.monotonic() + 60 * MINUTES, []
    while time.monotonic() < end:
        seeds = [str(seed + i) for i in range(25)]
        seed += 25
        done = subprocess.run(
            [sys.executable, __file__, *seeds], capture_output=True, text=True, timeout=1800
        )
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if ": right, " not in line]
            failed.append("\n".join(lines)[-5000:] + done.stderr[-2000:])
    assert not failed, "\n".join(failed)


if __name__ == "__main__":
    import faulthandler
    import warnings

    faulthandler.enable()
    warnings.simplefilter("error")
    bad = 0
    for number in map(int, sys.argv[1:]):
        faulthandler.dump_traceback_later(300, exit=True)  # it hangs
        began = time.perf_counter()
        print(f"program {number}: ", end="", flush=True)  # the last one is that of a crash
        try:
            run_program(number)
            print(f"right, {time.perf_counter() - began:.1f} s", flush=True)
        except AssertionError as failure:
            bad += 1
            print(f"WRONG {failure}\n", flush=True)
            if os.environ.get("FASTAL_PROGRAMS_TRACE"):
                traceback.print_exc()
    print(f"largest error over what is allowed: {CLOSEST}", flush=True)
    sys.exit(bad > 0)
