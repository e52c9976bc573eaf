"""What the machine can do: the limits that figures are shares of, measured in the same run."""

import math

import numpy as np
from numba import njit
from scipy.linalg.blas import dgemv
from threadpoolctl import threadpool_limits

from ._timing import best


def dgemm_flops(n=2_000):
    """Return the flops a second of a product of two n x n matrices, one thread."""
    A = np.random.default_rng(0).random((n, n))
    with threadpool_limits(1):
        return 2 * n**3 / best(lambda: A @ A, rounds=3)


def dgemv_bytes(megabytes=4):
    """Return the bytes a second that a product of matrix and vector reads, one thread.

    Four megabytes are the triangle of 1,000 labels: they fit the last cache.
    """
    n = math.isqrt(megabytes * 10**6 // 8)
    A, x = np.asfortranarray(np.random.default_rng(0).random((n, n))), np.ones(n)
    with threadpool_limits(1):
        return 8 * n * n / best(lambda: dgemv(1.0, A, x, trans=1))


@njit(fastmath={"reassoc"})
def _sum(x):
    total = 0.0
    for value in x:
        total += value
    return total


def read_bytes(megabytes=256):
    """Return the bytes a second that a sum over an array beyond all caches reads, one thread."""
    x = np.ones(megabytes * 10**6 // 8)
    return x.nbytes / best(lambda: _sum(x))


def empty_call(calls=10_000):
    """Return the seconds of one call of a Python function that does nothing with its argument."""

    def empty(value):
        pass

    values = [1.0] * calls

    def body():
        for value in values:
            empty(value)

    return best(body) / calls
