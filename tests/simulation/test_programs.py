"""Random simulations, run by run against `learn`: the same pools, bounds, errors and stops."""

import os

import numpy as np
import pytest
from numba import config

from fastal import FixedBudget, GaussianProcess, MinLabels, MovementBelow, Stopper, learn, simulate

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="hours interpreted")

COUNT = int(os.environ.get("FASTAL_PROGRAMS", "24"))
FIRST = int(os.environ.get("FASTAL_PROGRAMS_SEED", "0"))

# Pools and labels around the borders between the selections, and those of chunks and panels.
POOLS = (20, 64, 150, 999, 1000, 1001, 2047, 2048, 2049)
LABELS = (15, 17, 63, 65, 127, 129, 249, 250, 251, 256, 257, 300)
NEVER = FixedBudget(10**6)


def drawn_rule(rng):
    rules = (
        Stopper(0.01), Stopper(0.01, fall=False), MovementBelow(0.3), MovementBelow(0.1), FixedBudget(12),
        MovementBelow(0.3) & MinLabels(30), Stopper(0.01) | FixedBudget(40),
    )  # fmt: skip
    return rules[int(rng.integers(len(rules)))]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_simulation(seed):
    rng = np.random.default_rng([seed, 11])
    size, d = int(rng.choice(POOLS)), int(rng.integers(1, 5))
    n = size + int(rng.integers(1, 200))
    X = rng.normal(size=(n, d)) * rng.choice([1.0, 1e8, 1e-8])
    scale, noise = X.std(), float(rng.choice([1e-3, 0.01, 0.3, 1.0]))
    y = 5 + np.sin(X / scale @ rng.normal(size=d)) + np.sqrt(noise) * rng.uniform(-1.7, 1.7, n)
    gp, refit = None, None
    if rng.random() < 0.7:
        kernel = str(rng.choice(["rbf", "matern12", "matern32", "matern52"]))
        gp = GaussianProcess(rng.uniform(0.5, 2) * scale, noise, mean=5.0, kernel=kernel)
        refit = 1.3 if rng.random() < 0.2 else None
    initial = int(rng.choice([5, 8])) if gp is None else int(rng.choice([1, 4]))
    most = min(size, int(rng.choice(LABELS)) if rng.random() < 0.8 else size, 300)
    settings = {
        "gp": gp, "refit": refit, "max_labels": most,
        "acquisition": "random" if rng.random() < 0.2 else "max_variance",
    }  # fmt: skip
    stopper, others = drawn_rule(rng), [drawn_rule(rng) for _ in range(int(rng.integers(0, 3)))]
    rest = bool(rng.random() < 0.5)
    how = {
        "criterion": stopper, "criteria": others, "n_runs": int(rng.integers(1, 4)), "pool_size": size,
        "initial": initial, "test": "rest" if rest else None, "seed": seed, "n_jobs": int(rng.choice([1, 2])),
    }  # fmt: skip
    said = f"seed {seed}: {n} rows, {d} features, {settings | how}"
    result = simulate(X, y, **settings, **how, errors="raise")
    children = np.random.SeedSequence(seed).spawn(how["n_runs"])
    for run, child in enumerate(children):
        rows = result.pool(run)
        points, labels = X[rows], y[rows]
        same = settings | {"initial": np.arange(initial), "seed": int(child.generate_state(1)[0])}
        if settings["acquisition"] == "random" and gp is not None and refit is None:
            # in the order of the pool
            same["acquisition"] = lambda mean, var: -np.arange(len(mean), dtype=float)
        past = rest or bool(others)
        once = learn(points, labels, criterion=stopper, **same)
        left = np.setdiff1d(np.arange(n), rows)
        test = (X[left], y[left]) if rest else None
        whole = once.resume(max_labels=most, test=test) if past and once.stopped else once
        if whole is once and rest:
            whole = learn(points, labels, criterion=stopper, test=test, **same)
        assert result.n_labels[run] == once.n_labels, said
        assert result.stopped_at[run] == (once.stopped_at or -1), said
        bounds = result.bounds[run][: len(whole.bounds)]
        assert np.isnan(result.bounds[run][len(whole.bounds) :]).all(), said
        np.testing.assert_allclose(bounds, whole.bounds, rtol=1e-8, atol=1e-11, err_msg=said)
        if rest:
            size_of = {"rtol": 1e-8, "atol": 1e-9, "err_msg": said}
            np.testing.assert_allclose(result.errors[run], whole.errors, **size_of)
            np.testing.assert_allclose(result.rmse[run], whole.rmse, **size_of)
        for rule, at in zip(others, result.criteria_stops[run], strict=True):
            assert at == (learn(points, labels, criterion=rule, **same).stopped_at or -1), (
                rule,
                said,
            )
