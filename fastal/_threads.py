"""Threads: one thread for BLAS, and the number of cores.

Everything here survives Ctrl-C at any point and a fork while another thread is at work.
"""

from __future__ import annotations

import os
import threading
from _thread import RLock, get_ident
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

# Around what is below in this module. It may be entered again by the same thread: an object that
# is collected inside leaves the limit of BLAS.
_guard = RLock()


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not on this platform
        return os.cpu_count() or 1


# One thread for BLAS -----------------------------------------------------------------------------

# Who is inside the limit: the object's id and its thread, once for each time it was entered.
_inside: list[tuple[int, int]] = []

# How many threads the libraries had: those that share them in the process, before the first one
# came in (None: nobody is inside); those that count them thread by thread, for each thread inside.
_found: list[tuple[_Library, int]] | None = None
_found_here: dict[int, list[tuple[_Library, int]]] = {}


class _Library:
    """A library of BLAS, and whether its number of threads holds for the whole process."""

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        # From release 3.8 on threadpoolctl lets one thread set the number, and silently ignores
        # all others. Ours take turns.
        self.set: Any = getattr(controller, "_real_set_num_threads", controller.set_num_threads)
        before = self.get()
        other = before - 1 if before > 1 else 2
        thread = threading.Thread(target=self.set, args=(other,))
        thread.start()
        thread.join()
        self.shared = self.get() != before
        self.set(before)

    def get(self) -> int:
        return int(self._controller.num_threads)


@cache
def _libraries() -> tuple[_Library, ...]:
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().lib_controllers
    return tuple(_Library(one) for one in found if one.user_api == "blas")


class one_blas_thread:  # noqa: N801
    """A context in which BLAS has one thread; the last one to leave puts back what was found.

    Most libraries have one number of threads for the whole process: of several users that overlap,
    in one thread or in many, only the first looks what there was. Threads that are started inside
    are to come from `workers`.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        global _found
        libraries = _libraries()
        try:
            with _guard:
                me = get_ident()
                # First of all: from here on leaving puts everything back.
                _inside.append((id(self), me))
                if _found is None:
                    _found = [(one, one.get()) for one in libraries if one.shared]
                if me not in _found_here:
                    _found_here[me] = [(one, one.get()) for one in libraries if not one.shared]
                for one, _ in _found + _found_here[me]:
                    one.set(1)
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        self._leave()

    def __del__(self) -> None:
        # Ctrl-C may come before the first line of `__exit__`, or within it.
        if _inside or _found is not None:
            self._leave(wholly=True)

    def _leave(self, wholly: bool = False) -> None:
        with _guard:
            places = [i for i, (user, _) in enumerate(_inside) if user == id(self)]
            for place in reversed(places if wholly else places[-1:]):
                del _inside[place]
            _put_back()


def _put_back() -> None:
    """Put back what nobody inside needs any more; once more, if that was interrupted."""
    global _found
    me, threads = get_ident(), {thread for _, thread in _inside}
    for thread in _found_here.keys() - threads:
        if thread == me:  # nobody else can
            for one, number in _found_here[me]:
                one.set(number)
        del _found_here[thread]
    if _found is not None and not _inside:
        for one, number in _found:
            one.set(number)
        _found = None


def workers(threads: int) -> ThreadPoolExecutor:
    """Return threads to work inside `one_blas_thread`."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, initializer=_limit_here)


def map_blocks(call: Callable[[int], Any], starts: range, threads: int) -> list[Any]:
    """Return what a call gives for each block, inside `one_blas_thread`."""
    if threads == 1 or len(starts) == 1:  # a thread costs more than many a block
        return list(map(call, starts))
    with workers(threads) as pool:
        return list(pool.map(call, starts))


def _limit_here() -> None:
    """Limit a thread that ends with its work."""
    for one in _libraries():
        if not one.shared:
            one.set(1)


def _in_child() -> None:
    """Go on after a fork, with the one thread that made it."""
    global _guard
    _guard = RLock()
    me = get_ident()
    _inside[:] = [use for use in _inside if use[1] == me]
    _put_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
