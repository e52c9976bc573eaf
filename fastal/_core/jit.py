"""The one decorator of the Numba half, and the reason of each flag.

``nogil=True``
    A kernel touches no Python object, so that runs in threads do not wait for one another.
``cache=True``
    The machine code is kept on disk: only the first process ever compiles. Callers pass the same
    types always (C-contiguous float64, int64, float64), so that there is one entry per kernel.
    Where no folder can be written (package and home read-only), each process compiles for itself.
``error_model="numpy"``
    A division by zero gives inf or NaN, as in NumPy, instead of an exception: kernels raise
    nothing, and the loops carry no branch for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numba import config, njit

Function = TypeVar("Function", bound=Callable[..., Any])

FLAGS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}


@cache
def _warn_no_cache() -> None:
    warnings.warn(
        "no folder for compiled code can be written: every process compiles fastal's kernels anew; "
        "set the environment variable NUMBA_CACHE_DIR to a folder that can",
        RuntimeWarning,
        stacklevel=2,
    )


def decorator(**more: Any) -> Callable[[Function], Function]:
    """Return the decorator, with further flags where a comment below gives the reason."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        # Interpreted kernels must be as silent as compiled ones where a number overflows.
        return lambda function: np.errstate(all="ignore")(function)

    def compiled(function: Function) -> Function:
        kernel: Function
        try:
            kernel = njit(**FLAGS, **more)(function)
        except RuntimeError:  # Numba's word for "no place for the cache"
            _warn_no_cache()
            kernel = njit(**FLAGS | {"cache": False}, **more)(function)
        return kernel

    return compiled


jit = decorator()

# Fused multiply-add in polynomials: half the latency, and one rounding fewer. Nothing is reordered,
# so code that relies on the order of rounded operations may use it.
jit_fused = decorator(fastmath={"contract"})
