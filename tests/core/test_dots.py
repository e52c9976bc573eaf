"""Dot products of one fixed order: right, and the same digits wherever they were compiled."""

import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from fastal._core import cholesky
from fastal._core.dots import LANES, UNDER_WAY, dots

JIT = hasattr(cholesky.two_dots, "py_func")


@njit
def one(a, x, n):
    return dots((a[0],), x, n)


@njit
def two(a, x, n):
    return dots((a[0], a[1]), x, n)


@njit
def four(a, x, n):
    return dots((a[0], a[1], a[2], a[3]), x, n)


@njit
def eight(a, x, n):
    return dots((a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]), x, n)


@pytest.mark.parametrize(("function", "rows"), [(one, 1), (two, 2), (four, 4), (eight, 8)])
def test_every_length(function, rows):
    rng = np.random.default_rng(rows)
    most = 3 * LANES * UNDER_WAY + 3
    a, x = rng.normal(size=(8, most + 1)), rng.normal(size=most + 1)
    a[:, -1] = x[-1] = math.nan  # never read
    for n in range(most + 1):
        found = function(a, x, n)
        assert len(found) == rows
        for row, value in zip(a, found, strict=False):
            terms = row[:n] * x[:n]
            # each of n additions and products rounds once
            error = 2 * n * np.finfo(float).eps * np.abs(terms).sum()
            assert abs(value - math.fsum(terms)) <= error


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_the_order_is_the_one_that_is_written_down():
    """Four sums of every fourth product, by fused multiply-add, in pairs; then the rest."""
    rng = np.random.default_rng(0)
    a, x = rng.normal(size=(8, 13)), rng.normal(size=13)
    for n in range(14):
        # products of integers need no rounding: only the order of the sums counts
        p = np.round(a * 2**20) / 2**20
        q = np.round(x * 2**20) / 2**20
        lanes = [0.0] * 4
        for j in range(n - n % 4):
            lanes[j % 4] += p[0, j] * q[j]
        total = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        for j in range(n - n % 4, n):
            total += p[0, j] * q[j]
        assert eight(p, q, n)[0] == total


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_only_contiguous_vectors():
    with pytest.raises(Exception, match="contiguous vectors"):
        one(np.asfortranarray(np.ones((8, 4))), np.ones(4), 4)


DIGITS = """
import hashlib
import numpy as np
from fastal import GaussianProcess, Stopper, learn
rng = np.random.default_rng(0)
X = rng.normal(size=(2300, 3))
y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=2300)
gp = GaussianProcess(1.3, 0.01)
bounds = [gp.add(x, label) for x, label in zip(X[:333], y[:333])]
run = learn(X, y, gp=GaussianProcess(1.3, 0.01), criterion=Stopper(1e-300), initial=[0],
            max_labels=100, threads=1)
numbers = np.concatenate([bounds, run.bounds, *gp.predict(X[400:500], return_var=True)])
print(hashlib.sha256(numbers.tobytes()).hexdigest())
"""


def digits(cache, **more):
    return subprocess.run(
        [sys.executable, "-c", DIGITS], check=True, capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache)} | more,
    ).stdout  # fmt: skip


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_compiled_and_cached_code_give_the_same_digits(tmp_path):
    assert digits(tmp_path) == digits(tmp_path)


def fused():
    info = Path("/proc/cpuinfo")
    return platform.machine() == "x86_64" and info.exists() and " fma " in info.read_text()


@pytest.mark.long
@pytest.mark.skipif(not JIT or not fused(), reason="needs the JIT on x86-64 with FMA")
@pytest.mark.parametrize("processor", ["haswell", "skylake", "znver2"])
def test_code_for_another_processor_gives_the_same_digits(processor, tmp_path):
    here = digits(tmp_path / "here")
    assert digits(tmp_path / "other", NUMBA_CPU_NAME=processor) == here
