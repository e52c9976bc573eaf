"""Threads that work on one object at once, and what they may see of it."""

import itertools
import threading

import numpy as np

BUSY = ("in use by another thread", "another thread has pushed meanwhile")


def attempt(call, *texts, kind=RuntimeError):
    """Call something; return its result, or None if it was refused with one of these texts."""
    try:
        return call()
    except kind as error:
        if not any(text in str(error) for text in texts or BUSY):
            raise
    return None


def together(*works):
    """Run functions at once, each in a thread; raise what one raised."""
    start, wrong = threading.Barrier(len(works)), []

    def run(work):
        try:
            start.wait()
            work()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "threads wait for ever"
    for error in wrong:
        raise error


# What is shared: `write(k)` returns what was taken, `read()` what was seen, `check` compares both with
# the same changes in one thread.


class Shared:
    writes = 25  # of each of four threads

    def write(self, k):
        raise NotImplementedError

    def read(self):
        return None

    def check(self, taken, seen):
        raise NotImplementedError


def stress(shared):
    """Let four threads write and two read, then check."""
    numbers = itertools.count()
    taken, seen, writing = [], [], [True] * 4

    def write(me):
        try:
            for _ in range(shared.writes):
                taken.extend(shared.write(next(numbers)))
        finally:
            writing[me] = False

    def read():
        while any(writing):
            seen.append(shared.read())

    together(*(lambda me=me: write(me) for me in range(4)), read, read)
    shared.check(taken, seen)


def sequences(n=24):
    rng = np.random.default_rng(8)
    X, y = rng.uniform(0, 4, (n, 2)), rng.normal(size=n)
    return X, y, np.r_[y[:6], -y[6:]]
