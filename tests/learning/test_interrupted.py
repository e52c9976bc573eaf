"""Ctrl-C at a random moment of a large pool: no label is lost, and the run goes on as if it had not come."""

import os
import signal
import time

import numpy as np
import pytest
from numba import config

from fastal import GaussianProcess, Stopper, learn

pytestmark = [
    pytest.mark.skipif(bool(config.DISABLE_JIT), reason="a large pool takes minutes interpreted"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer"),
]

TIMES = int(os.environ.get("FASTAL_INTERRUPTIONS", "100"))


class Interrupted:
    """In this context KeyboardInterrupt comes after so many seconds, unless it has been left by then."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_large_pool_interrupted_while_it_is_labelled(threads):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (20_000, 3))
    y = np.sin(7 * X).sum(axis=1) + 0.1 * rng.standard_normal(20_000)
    settings = {
        "gp": GaussianProcess(0.3, 0.01), "criterion": Stopper(1e-300), "seed": 0, "max_labels": 100,
        "threads": threads,
    }  # fmt: skip
    whole = learn(X, y, **settings)
    takes, came = 1.0, 0
    for _ in range(3):
        begin = time.perf_counter()
        learn(X, y, **settings)
        takes = min(takes, time.perf_counter() - begin)
    for _ in range(TIMES):
        run = None
        try:
            with Interrupted(rng.uniform(1e-4, takes)):
                run = learn(X, y, **settings)
        except KeyboardInterrupt as error:
            run = getattr(error, "run", None)  # None: before there was a campaign
            came += 1
        if run is None:
            continue
        assert run.indices.tolist() == whole.indices[: run.n_labels].tolist()
        longer = run.resume(max_labels=100) if run.n_labels < 100 else run
        assert longer.indices.tolist() == whole.indices.tolist()
        assert longer.bounds.tolist() == whole.bounds.tolist()
    assert came > TIMES / 4
