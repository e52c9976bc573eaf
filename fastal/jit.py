"""What a caller's own ``@njit`` code may call: the stopping decision without Python.

A stopper is a handle: make it with `stopper_new`, push bounds, and give it back with
`stopper_free`; likewise `still_new` for what is still to come (`MovementBelow`). One handle belongs
to one thread at a time. Functions that call these can be cached (``cache=True``), need no GIL, and
may run in ``prange``.

A handle is an address. Zero is never followed: `stopper_push` refuses it, the others answer as for
a stopper without bounds (the p-value is NaN), and freeing it does nothing. A handle that was freed,
or a number that is no handle, cannot be told from a good one: the process may crash. Every handle
is freed once, and not used after that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastal._core.bound_array import gp_kl_scalar as gp_kl
from fastal._core.jit import jit
from fastal._core.symbols import still_free as _free
from fastal._core.symbols import still_left as _left
from fastal._core.symbols import still_new as _new
from fastal._core.symbols import still_push as _push
from fastal._core.symbols import still_reset as _reset
from fastal._core.symbols import still_stopped_at as _stopped_at
from fastal._core.symbols import (
    tracker_free,
    tracker_n_runs,
    tracker_new,
    tracker_p_value,
    tracker_push,
    tracker_reset,
    tracker_stopped_at,
)

__all__ = [
    "gp_kl",
    "still_free",
    "still_left",
    "still_new",
    "still_push",
    "still_reset",
    "stopper_free",
    "stopper_n_runs",
    "stopper_new",
    "stopper_p_value",
    "stopper_push",
    "stopper_reset",
    "stopping_time",
]


@jit
def stopper_new(alpha: float) -> int:
    """Return the handle of a new stopper with level alpha; it stops only if the bounds fell.

    Parameters
    ----------
    alpha : float
        Level of the exact runs test, in (0, 1).

    Returns
    -------
    int
        Handle; free it with `stopper_free`.
    """
    if not (0.0 < alpha < 1.0):
        raise ValueError("`alpha` must be in (0, 1)")
    handle = tracker_new(alpha, 0)
    if handle == 0:
        raise MemoryError("no memory for a stopper")
    return handle


@jit
def stopper_push(handle: int, r: float) -> bool:
    """Add a bound; return whether the stopper has stopped, now or before.

    Parameters
    ----------
    handle : int
        From `stopper_new`.
    r : float
        A finite bound.

    Returns
    -------
    bool
        True from the first stop on.
    """
    status = tracker_push(handle, r)
    if status == -2:
        raise ValueError("`r` must be finite")
    if status == -3:
        raise ValueError("`handle` must come from stopper_new, got 0")
    if status < 0:
        raise MemoryError("no memory for one more bound")
    return tracker_stopped_at(handle) > 0


@jit
def stopper_p_value(handle: int) -> float:
    """Return the p-value of the bounds so far.

    Parameters
    ----------
    handle : int
        From `stopper_new`.

    Returns
    -------
    float
        P(U <= number of runs); 1.0 below two bounds, NaN for the handle 0.
    """
    return tracker_p_value(handle)


@jit
def stopper_n_runs(handle: int) -> int:
    """Return the number of runs about the running median.

    Parameters
    ----------
    handle : int
        From `stopper_new`.

    Returns
    -------
    int
        Number of runs, 0 without bounds.
    """
    return tracker_n_runs(handle)


@jit
def stopper_reset(handle: int) -> None:
    """Forget all bounds; the memory is kept for the next sequence.

    Parameters
    ----------
    handle : int
        From `stopper_new`.
    """
    tracker_reset(handle)


@jit
def stopper_free(handle: int) -> None:
    """Give a stopper's memory back; the handle is invalid afterwards.

    Parameters
    ----------
    handle : int
        From `stopper_new`.
    """
    tracker_free(handle)


@jit
def still_new(share: float, horizon: int) -> int:
    """Return the handle of a new criterion that stops when little is still to come.

    Parameters
    ----------
    share : float
        Stop when at most this share of all movement is still to come, in (0, 1).
    horizon : int
        How many bounds there can be at most.

    Returns
    -------
    int
        Handle; free it with `still_free`.

    Examples
    --------
    >>> from fastal.jit import still_free, still_left, still_new, still_push
    >>> handle = still_new(0.05, 100)
    >>> [still_push(handle, 4.0 ** -i) for i in range(14)][-2:], round(still_left(handle), 3)
    ([False, True], 0.033)
    >>> still_free(handle)
    """
    if not (0.0 < share < 1.0):
        raise ValueError("`share` must be in (0, 1)")
    if horizon < 1:
        raise ValueError("`horizon` must be at least 1")
    handle = _new(share, horizon, 0)
    if handle == 0:
        raise MemoryError("no memory for a criterion")
    return handle


@jit
def still_push(handle: int, r: float) -> bool:
    """Add a bound; return whether the criterion has stopped, now or before.

    Parameters
    ----------
    handle : int
        From `still_new`.
    r : float
        A finite bound, not negative.

    Returns
    -------
    bool
        True from the first stop on.
    """
    status = _push(handle, r)
    if status == -2:
        raise ValueError("`r` must be finite")
    if status == -3:
        raise ValueError("`handle` must come from still_new, got 0")
    if status == -4:
        raise ValueError("`r` must not be negative")
    if status < 0:
        raise MemoryError("no memory for one more bound")
    return _stopped_at(handle) > 0


@jit
def still_left(handle: int) -> float:
    """Return the share of all movement that is still to come.

    Parameters
    ----------
    handle : int
        From `still_new`.

    Returns
    -------
    float
        NaN before 10 bounds, and for the handle 0.
    """
    return _left(handle)


@jit
def still_reset(handle: int) -> None:
    """Forget all bounds; the memory is kept for the next sequence.

    Parameters
    ----------
    handle : int
        From `still_new`.
    """
    _reset(handle)


@jit
def still_free(handle: int) -> None:
    """Give a criterion's memory back; the handle is invalid afterwards.

    Parameters
    ----------
    handle : int
        From `still_new`.
    """
    _free(handle)


@jit
def stopping_time(bounds: NDArray[np.float64], alpha: float) -> int:
    """Return how many bounds it takes to stop; only a rejection where they fell counts.

    Parameters
    ----------
    bounds : 1-D array of float64
        Finite bounds in order.
    alpha : float
        Level of the exact runs test, in (0, 1).

    Returns
    -------
    int
        Number of bounds at the stop; -1 if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal.jit import stopping_time
    >>> stopping_time(np.repeat([5.0, 1.0], 10), 1e-3)
    15
    """
    if not (0.0 < alpha < 1.0):
        raise ValueError("`alpha` must be in (0, 1)")
    handle = tracker_new(alpha, 0)
    if handle == 0:
        raise MemoryError("no memory for a stopper")
    status = 0
    stopped_at = -1
    for i in range(len(bounds)):
        status = tracker_push(handle, bounds[i])
        if status < 0:
            break
        if tracker_stopped_at(handle) > 0:  # what every other way in goes by
            stopped_at = tracker_stopped_at(handle)
            break
    tracker_free(handle)
    if status == -2:
        raise ValueError("`bounds` must be finite")
    if status == -1:
        raise MemoryError("no memory for one more bound")
    return stopped_at
