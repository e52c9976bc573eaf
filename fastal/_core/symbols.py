"""C functions as Numba sees them: those of stopping rules, and some of BLAS and LAPACK.

`llvmlite.binding.add_symbol` gives each address a name; compiled code refers to the name, so that
functions calling it can be cached on disk (a ctypes pointer would forbid that). With the JIT
disabled an ExternalFunction would silently return its signature: ctypes takes its place.
"""

from __future__ import annotations

import ctypes
import re
from importlib import import_module
from typing import Any

import llvmlite.binding
from numba import config, types
from numba.extending import get_cython_function_address

_CTYPES: dict[Any, Any] = {
    types.intp: ctypes.c_ssize_t,
    types.int64: ctypes.c_int64,
    types.int32: ctypes.c_int32,
    types.float64: ctypes.c_double,
    types.void: None,
}


def _bind(name: str, returns: Any, *takes: Any, module: str) -> Any:
    """Return a C function of a Cython module, for compiled and for interpreted callers."""
    address = get_cython_function_address(module, name)
    if config.DISABLE_JIT:
        return ctypes.CFUNCTYPE(_CTYPES[returns], *(_CTYPES[t] for t in takes))(address)
    symbol = f"fastal_{name}"
    llvmlite.binding.add_symbol(symbol, address)
    return types.ExternalFunction(symbol, returns(*takes))


def _signature(module: str, name: str) -> str:
    """Return the signature of a C function of a Cython module, as its capsule is named."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    found: bytes = name_of(import_module(module).__pyx_capi__[name])
    return found.decode()


def check_integers(signature: str) -> None:
    """Refuse a function of BLAS whose arguments are not text, 32-bit integers and doubles.

    We write integers of 32 bits: another width would be read beyond them.
    """
    if not re.fullmatch(r"void \(((char|int|double|\w+_d) \*(, )?)+\)", signature):
        raise ImportError(
            "fastal needs a SciPy whose BLAS takes 32-bit integers; this one has "
            f"{signature!r}: install a build of SciPy with the LP64 interface"
        )


def _bind_scipy(name: str, count: int, module: str) -> Any:
    """Return a function of BLAS or LAPACK with so many arguments, all of them addresses."""
    check_integers(_signature(module, name))
    return _bind(name, types.void, *[types.intp] * count, module=module)


# when to stop: many streams under one rule (`Streams.lend`), or one (`Rule.lend`); an address is an
# intp
_STATE = "fastal._core.state"
_RUNS = (types.float64, types.int32, types.int32, types.int64)  # level, method, fall, streams
_STREAM = (types.intp, types.int64)  # the streams, and which of them
streams_new_runs = _bind("streams_new_runs", types.intp, *_RUNS, module=_STATE)
streams_push = _bind("streams_push", types.int32, *_STREAM, types.float64, module=_STATE)
streams_stopped_at = _bind("streams_stopped_at", types.int64, *_STREAM, module=_STATE)
streams_left = _bind("streams_left", types.float64, *_STREAM, module=_STATE)
streams_reset = _bind("streams_reset", types.int32, *_STREAM, module=_STATE)
streams_free = _bind("streams_free", types.void, types.intp, module=_STATE)
state_push = _bind("state_push", types.int32, types.intp, types.float64, module=_STATE)
state_stopped_at = _bind("state_stopped_at", types.int64, types.intp, module=_STATE)
state_reset = _bind("state_reset", types.void, types.intp, module=_STATE)

# of the bound, where intermediate results leave the range of doubles: variance, noise, residual
_BOUND = "fastal._core.bound_scalar"
square_term = _bind("square_term", types.float64, *[types.float64] * 3, module=_BOUND)

# BLAS and LAPACK take every argument by reference; an address is an intp
_BLAS = "scipy.linalg.cython_blas"
dgemm = _bind_scipy("dgemm", 13, _BLAS)
dtrsm = _bind_scipy("dtrsm", 11, _BLAS)
_LAPACK = "scipy.linalg.cython_lapack"
dpotrf = _bind_scipy("dpotrf", 5, _LAPACK)
dpotri = _bind_scipy("dpotri", 5, _LAPACK)
dpotrs = _bind_scipy("dpotrs", 8, _LAPACK)
