"""What a caller's own ``@njit`` code may call: the stopping decision without Python.

A handle is the address of `Streams`, many sequences of bounds under one criterion. It is made in
Python, ``streams = Streams(criterion, n)`` and ``streams.handle``, and lives as long as `streams`:
keep that while compiled code runs. Functions that call these can be cached (``cache=True``) and
need no GIL. In ``prange`` each stream belongs to one thread at a time.

Zero is never followed, and a stream that is not there is a ValueError. A handle whose `Streams` is
gone, or a number that is no handle, cannot be told from a good one: the process may crash.
"""

from __future__ import annotations

from fastal._core.bound_array import gp_kl_scalar as gp_kl
from fastal._core.jit import jit
from fastal._core.symbols import (
    streams_left,
    streams_push,
    streams_reset,
    streams_stopped_at,
)

__all__ = ["gp_kl", "left", "push", "reset", "stopped_at"]


@jit
def push(handle: int, i: int, r: float) -> bool:
    """Add a bound to a stream; return whether it has stopped, now or before.

    Parameters
    ----------
    handle : int
        From `Streams.handle`.
    i : int
        Which stream, from 0.
    r : float
        A finite bound; not negative if the criterion takes none.

    Returns
    -------
    bool
        True from the first stop on.
    """
    status = streams_push(handle, i, r)
    if status == -2:
        raise ValueError("`r` must be finite")
    if status == -3:
        raise ValueError("there is no such stream: `handle` is 0, or `i` out of range")
    if status == -4:
        raise ValueError("`r` must not be negative")
    if status == -5:
        raise ValueError("`horizon` must be given: the criterion waits for it")
    if status < 0:
        raise MemoryError("no memory for one more bound")
    return status == 1


@jit
def stopped_at(handle: int, i: int) -> int:
    """Return the number of bounds at the stop of a stream.

    Parameters
    ----------
    handle : int
        From `Streams.handle`.
    i : int
        Which stream, from 0.

    Returns
    -------
    int
        -1 without a stop.
    """
    at = streams_stopped_at(handle, i)
    if at < 0:
        raise ValueError("there is no such stream: `handle` is 0, or `i` out of range")
    return at if at > 0 else -1


@jit
def left(handle: int, i: int) -> float:
    """Return the share of all movement that is still to come in a stream.

    Parameters
    ----------
    handle : int
        From `Streams.handle`.
    i : int
        Which stream, from 0.

    Returns
    -------
    float
        NaN before 10 bounds, and if the criterion does not know it.
    """
    if streams_stopped_at(handle, i) < 0:
        raise ValueError("there is no such stream: `handle` is 0, or `i` out of range")
    return streams_left(handle, i)


@jit
def reset(handle: int, i: int) -> None:
    """Forget the bounds of a stream; the memory is kept for the next sequence.

    Parameters
    ----------
    handle : int
        From `Streams.handle`.
    i : int
        Which stream, from 0.
    """
    if streams_reset(handle, i) < 0:
        raise ValueError("there is no such stream: `handle` is 0, or `i` out of range")
