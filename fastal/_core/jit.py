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
from functools import cache, cached_property
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numba import config, njit, types

Function = TypeVar("Function", bound=Callable[..., Any])

FLAGS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}


# Of a kernel that another kernel calls: it is part of that one, and neither called from Python nor
# kept by itself: what Numba would add for that takes time at the first use.
INNER: dict[str, Any] = {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def _kernel_class(plain: Any) -> Any:
    """Return Numba's class of compiled functions, with another face for compiled callers."""

    class Kernel(plain):  # type: ignore[misc]
        @cached_property
        def inner(self) -> Any:
            # not before it is needed: most kernels are not, and each takes part of a millisecond
            return njit(**FLAGS | INNER | self.flags)(self.py_func)

        @property
        def _numba_type_(self) -> Any:
            return types.Dispatcher(self.inner)

    return Kernel


@cache
def _warn_no_cache() -> None:
    warnings.warn(
        "no folder for compiled code can be written: every process compiles fastal's kernels anew; "
        "set the environment variable NUMBA_CACHE_DIR to a folder that can",
        RuntimeWarning,
        stacklevel=2,
    )


def decorator(part: bool = False, **more: Any) -> Callable[[Function], Function]:
    """Return the decorator, with further flags where a comment below gives the reason.

    part : whether such a kernel becomes part of each compiled caller, under the caller's flags.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        # Interpreted kernels must be as silent as compiled ones where a number overflows.
        return lambda function: np.errstate(all="ignore")(function)

    def compiled(function: Function) -> Function:
        kernel: Any
        try:
            kernel = njit(**FLAGS | more)(function)
        except RuntimeError:  # Numba's word for "no place for the cache"
            _warn_no_cache()
            kernel = njit(**FLAGS | more | {"cache": False})(function)
        kernel.flags = more
        if part:
            kernel.targetoptions["inline"] = "always"  # in the eyes of compiled callers
        plain: Any = type(kernel)
        kernel.__class__ = _kernel_class(plain)
        return cast("Function", kernel)

    return compiled


jit = decorator()

# For kernels that allocate nothing: without the counting of references to arrays, which the caller
# holds, there is less to compile.
jit_borrowing = decorator(_nrt=False)

# For pieces of few callers: there is nothing to compile but the caller, and nothing is optimised
# once alone and once more there. The digits stay if both have the same flags, or if the piece has
# no products that could be fused with sums.
jit_part = decorator(part=True)

# Fused multiply-add in polynomials: half the latency, and one rounding fewer. Nothing is reordered,
# so code that relies on the order of rounded operations may use it.
jit_fused = decorator(fastmath={"contract"})

# Both, and pieces of callers that are fused as well.
jit_fused_borrowing = decorator(_nrt=False, fastmath={"contract"})
jit_fused_part = decorator(part=True, fastmath={"contract"})


def keeping_the_gil(kernel: Function, name: str) -> Function:
    """Return a kernel that keeps the GIL, under another name: Numba's cache knows it by that.

    For calls so short that to let the GIL go, and to ask for it again while others want it, takes
    longer than they do.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        return kernel
    given: Any = kernel
    function = FunctionType(given.py_func.__code__, given.py_func.__globals__, name)
    function.__qualname__ = name
    return cast("Function", decorator(**given.flags, nogil=False)(function))


def alone(piece: Function) -> Function:
    """Return a piece as a kernel of its own, for compiled callers that have other flags."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        return piece
    kernel: Any = piece
    return decorator(**kernel.flags)(kernel.py_func)
