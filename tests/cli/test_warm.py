"""fastal warm: what it compiled, no later process compiles."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

from fastal.cli.entry import main

# Each in a process of its own: what a user does first.
FIRST_USES = {
    "learn": "learn(X[:100], y[:100], gp=gp, stopper=Stopper(), seed=0)",
    "large": "learn(X, y, gp=gp, stopper=Stopper(), seed=0, max_labels=80)",
    "criteria": "learn(X[:100], y[:100], gp=gp, stopper=MaxVariance(0.01) | Stopper(), seed=0)",
    "simulate": "simulate(X[:200], y[:200], gp=gp, n_runs=3, pool_size=100, n_jobs=1)",
    "unknown": "learn(X[:50], y[:50], stopper=StillToCome(), seed=0, max_labels=15)",
}

SCRIPT = """
import numpy as np
from fastal import *
rng = np.random.default_rng(1)
X = rng.normal(size=(3_000, 3))
y = np.sin(X).sum(axis=1)
gp = GaussianProcess(1.3, 0.01)
"""


def _kept(folder):
    return {path.name for path in Path(folder).rglob("*.nb?")}


@pytest.mark.long
@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")
def test_after_it_nothing_is_compiled(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "fastal", "warm"],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    kept = _kept(tmp_path)
    kernels = sum(name.endswith(".nbc") for name in kept)
    assert kernels > 20
    last = done.stdout.splitlines()[-3:]
    assert last[0].startswith(f"{kernels} compiled in ")
    assert last[0].endswith("0 were there already")
    assert last[1].startswith(f"cache: {tmp_path}")
    for name, call in FIRST_USES.items():
        subprocess.run([sys.executable, "-c", SCRIPT + call], env=environment, check=True)
        assert _kept(tmp_path) == kept, name


def test_without_the_jit_there_is_nothing_to_do(monkeypatch, capsys):
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert main(["warm"]) == 0
    assert "nothing to compile" in capsys.readouterr().out
