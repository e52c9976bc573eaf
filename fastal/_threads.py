"""Threads: one thread for BLAS, blocks shared out, and the number of cores."""

from __future__ import annotations

import os
from _thread import RLock, allocate_lock, start_new_thread
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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

# Who is inside the limit, and what the first one found, which the last one puts back.
_inside: set[object] = set()
_found: Any = None


@cache
def _blas() -> Any:
    """Return the libraries of BLAS that are loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def limit_blas() -> Any:
    """Give BLAS one thread; return what puts back, as a context, the number that was found.

    For `one_blas_thread`, and for threads that are started inside: some libraries count threads
    thread by thread.
    """
    found = _blas().limit(limits=1, user_api="blas")
    # From release 3.8 on threadpoolctl ignores all threads but the one that set a limit, until that
    # one leaves a context: this one, which changes nothing.
    with _blas().limit():
        return found


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Give BLAS one thread in this context; whoever leaves last puts back what was found.

    Most libraries have one number of threads for the whole process: of several users that overlap,
    in one thread or in many, only the first looks what there was.
    """
    global _found
    me = object()
    try:
        with _guard:
            _inside.add(me)
            if _found is None:
                _found = limit_blas()
        yield
    finally:
        with _guard:
            _inside.discard(me)
            if not _inside and _found is not None:
                with _found:
                    _found = None


def map_blocks(call: Callable[[Any], Any], starts: Iterable[Any], threads: int) -> list[Any]:
    """Return what a call gives for each block, shared out among threads, this one among them.

    When it returns, no other thread is at work. After Ctrl-C neither, and some blocks are missing;
    after a second one, threads may still be in the middle of their blocks.
    """
    # Plain threads and locks: those of `concurrent.futures` wait in Python code, which Ctrl-C
    # leaves with their locks held. Methods of lists and dicts are whole under the GIL.
    order = list(starts)
    todo, found = order[::-1], {}
    errors: list[BaseException] = []

    def work() -> None:
        while todo and not errors:
            try:
                start = todo.pop()
            except IndexError:  # another thread was faster
                return
            found[start] = call(start)

    def helper(at_work: Any) -> None:
        try:
            limit_blas()
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            at_work.release()

    started: list[int] = []
    locks = [allocate_lock() for _ in range(min(threads, len(order)) - 1)]

    def wait() -> None:
        for lock in locks[: len(started)]:
            with lock:
                pass

    with one_blas_thread() if locks else nullcontext():
        try:
            for lock in locks:
                lock.acquire()
            started.extend(map(start_new_thread, repeat(helper), zip(locks)))
            work()
            wait()
        except BaseException:
            todo.clear()
            wait()
            raise
    if errors:
        raise errors[0]
    return [found[start] for start in order]
