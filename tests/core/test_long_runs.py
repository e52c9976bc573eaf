"""Runs of a length that nobody waits for: nothing drifts, overflows or differs between threads."""

import threading

import numpy as np
import pytest

from fastal import GaussianProcess, Stopper, learn, runs_test, stopping_time
from fastal._core import selection_eager
from fastal._core.rule import Rule
from fastal.runs import RunsDistribution

JIT = hasattr(selection_eager.run, "py_func")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not JIT, reason="takes hours without the JIT"),
]


def recounted(x):
    """Return runs, and values below and above the median, of an even number of distinct values."""
    above = x > np.median(x)
    return 1 + int((above[1:] != above[:-1]).sum()), int((~above).sum()), int(above.sum())


def test_ten_million_pushes():
    """One value at a time; counts and p-value as from the whole sequence at once."""
    n = 10**7
    x = np.random.default_rng(0).standard_normal(n)
    rule = Rule(("runs", 1e-300, 1, False, True, 0))  # exact: "auto" is normal beyond 10^6 values
    push = rule.push
    for number, value in enumerate(x.tolist(), 1):
        push(value)
        if number in (10**3, 10**5, 10**6, n):
            runs, below, above = recounted(x[:number])
            found = runs_test(x[:number], cutoff="median", alternative="less", method="exact")
            assert (found.n_runs, found.n_below, found.n_above) == (runs, below, above)
            exact = RunsDistribution(below, above).cdf(runs)
            assert found.pvalue == pytest.approx(exact, rel=1e-12)
            assert rule.says == (False,)
    kept = np.empty(n)
    rule.bounds(kept)
    assert kept.tobytes() == x.tobytes()
    assert rule.stopped_at == 0
    assert stopping_time(x, 1e-300) is None


def test_ten_thousand_labels_in_one_model(capsys):
    """The factor grown label by label stays within n eps of the matrix, and equals a batch's."""
    n = 10_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)
    gp = GaussianProcess(1.3, 0.01)
    for x, label in zip(X, y, strict=True):
        gp.add(x, label)
    drift = gp.drift()
    unit = n * np.finfo(float).eps * 1.01  # of the largest entry of the matrix
    batch = GaussianProcess(1.3, 0.01)
    batch.add_batch(X, y)
    points = rng.normal(size=(200, 4))
    mean, var = gp.predict(points, return_var=True)
    other_mean, other_var = batch.predict(points, return_var=True)
    off = np.abs(mean - other_mean).max(), np.abs(var - other_var).max()
    with capsys.disabled():
        print(
            f"\n10,000 labels: drift {drift:.2g} = {drift / unit:.2g} n eps max|K|; "
            f"means and variances differ from a batch's by {off[0]:.2g} and {off[1]:.2g}"
        )
    assert drift < unit
    # A condition number of at most n / noise = 10^6 times eps, and the size of the labels.
    assert off[0] < 1e-9
    assert off[1] < 1e-9


def test_24000_learning_runs_in_two_threads():
    """Every bound of every run is that of one thread, to the last bit."""
    runs, pool, labels = 24_000, 60, 40
    rng = np.random.default_rng(1)
    X = rng.normal(size=(pool, 2))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=pool)

    def some(numbers, out):
        gp, stopper = GaussianProcess(1.3, 0.01), Stopper(1e-3)
        for number in numbers:
            run = learn(X, y, gp=gp, criterion=stopper, seed=number, max_labels=labels, threads=1)
            out[number] = run.bounds.tobytes(), run.n_labels, run.stopped

    alone = [None] * runs
    some(range(runs), alone)
    shared = [None] * runs
    threads = [
        threading.Thread(target=some, args=(range(part, runs, 2), shared)) for part in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared == alone
    assert None not in alone
    assert len({bounds for bounds, _, _ in alone}) > 50  # the first label differs
