"""Who computes the chunks of a simulation: this thread, several, a Dask cluster, joblib.

How the runs are cut and shared out changes no digit of the result.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fastal._threads import limit_blas, one_blas_thread
from fastal._types import Array, Ints
from fastal.simulation.chunk import as_spans
from fastal.simulation.worker import run_chunk

if TYPE_CHECKING:
    from fastal.simulation.chunk import Chunk
    from fastal.simulation.plan import Plan

# Seconds of work in a chunk: below a quarter, with room for a slower moment.
CHUNK_SECONDS = 0.23

# Most runs in a chunk, so that its arrays stay small.
CHUNK_RUNS = 8192

# How often the data are sent to a Dask cluster that loses them; Dask itself gives up a task that
# has brought down as many workers.
DASK_ATTEMPTS = 4


class Tasks:
    """Cuts the runs into chunks, by what the finished ones took."""

    def __init__(
        self, plan: Plan, arrays: Sequence[Any], runs: Ints, workers: int, cheap: bool
    ) -> None:
        self._fixed = (plan, *arrays, *(arrays if plan.test_on_rest else ()))
        self._spans = list(as_spans(runs)[::-1])  # of runs that nobody has
        self._left = len(runs)
        self._first_share = -(-len(runs) // (2 * workers))
        self._workers, self._cheap = workers, cheap
        self._each: float | None = None  # seconds a run takes

    def __bool__(self) -> bool:
        return self._left > 0

    def record_time(self, chunk: Chunk) -> None:
        """Note what a chunk took, and what it left to be shared out again."""
        each = chunk.seconds / len(chunk.runs)
        # A chunk too large leaves some; one too small, after a slow moment, would cost time.
        self._each = each if self._each is None else min(each, self._each)
        self._spans += chunk.left[::-1]
        self._left += sum(high - low for low, high in chunk.left)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `run_chunk` until nothing is left; more may come back later."""
        while self:
            yield *self._fixed, CHUNK_SECONDS, self._next(self._size())

    def _next(self, size: int) -> tuple[tuple[int, int], ...]:
        part = []
        self._left -= size
        while size > 0:
            low, high = self._spans.pop()
            if high - low > size:
                self._spans.append((low + size, high))
                high = low + size
            part.append((low, high))
            size -= high - low
        return tuple(part)

    def _size(self) -> int:
        left, workers = self._left, self._workers
        most = CHUNK_RUNS
        if self._each is not None:
            most = max(1, min(most, int(CHUNK_SECONDS / max(self._each, 1e-9))))
        # The last chunks are smaller, so that all workers end together. A thread takes another one
        # at once; with Dask each costs some 20 ms, of several processes.
        if self._cheap:
            share, least = -(-left // (2 * workers if workers > 1 else 1)), most // 32
        elif self._each is None:
            share, least = self._first_share, 1
        else:
            share, least = -(-left // workers), most // 3
        return min(left, most, max(share, least))


def run_chunks(
    plan: Plan, arrays: Sequence[Array], runs: Ints, n_jobs: int | None
) -> Generator[Chunk, None, None]:
    """Yield the chunks as they are finished, in any order.

    arrays : those of `run_chunk`; without the last two if the test set is what a pool leaves.
    """
    if len(runs) == 0:
        return
    import joblib
    from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

    backend = get_active_backend(prefer="threads")[0]
    # joblib polls for results, which costs more than many a chunk: where it leads to threads or to
    # a client of Dask, the chunks go straight there.
    if hasattr(backend, "client"):
        with backend.retrieval_context():  # this may itself be a task of Dask
            yield from _on_dask(backend, plan, arrays, runs)
        return
    threads = isinstance(backend, ThreadingBackend | SequentialBackend)
    workers = max(1, joblib.effective_n_jobs(n_jobs))
    tasks = Tasks(plan, arrays, runs, workers, threads)
    if not threads:
        yield from _by_joblib(backend, tasks, workers, n_jobs)
    elif workers > 1:
        yield from _on_threads(tasks, workers)
    else:
        while tasks:
            for task in tasks:
                chunk = run_chunk(*task)
                tasks.record_time(chunk)
                yield chunk


def _on_threads(tasks: Tasks, workers: int) -> Iterator[Chunk]:
    with one_blas_thread(), ThreadPoolExecutor(workers, initializer=limit_blas) as executor:
        pending = {executor.submit(run_chunk, *task) for task in islice(tasks, 2 * workers)}
        try:
            while pending:
                # with a limit: Windows does not hear Ctrl-C while it waits without one
                done, pending = wait(pending, 0.5, FIRST_COMPLETED)
                for future in done:
                    chunk = future.result()
                    tasks.record_time(chunk)
                    more = islice(tasks, 2 * workers - len(pending))
                    pending |= {executor.submit(run_chunk, *task) for task in more}
                    yield chunk
        finally:
            for future in pending:
                future.cancel()


def _on_dask(backend: Any, plan: Plan, arrays: Sequence[Array], runs: Ints) -> Iterator[Chunk]:
    """Yield the chunks of a Dask cluster; the data are sent again if they are lost."""
    client, workers = backend.client, max(1, backend.effective_n_jobs(-1))
    for attempts_left in reversed(range(DASK_ATTEMPTS)):
        # To every worker, under names of their own: the same data of a call before may be on their
        # way out. (Some seconds later Dask drops copies that no task waits for, and may then lose
        # the last one with a worker; it cannot make it again as it does with results.)
        sent = client.scatter(list(arrays), broadcast=True, hash=False)
        tasks = Tasks(plan, sent, runs, workers, False)
        finished = []
        try:
            for chunk in _until_cancelled(backend, tasks, 2 * workers):
                finished.append(chunk.runs)
                yield chunk
        except CancelledError:
            if not attempts_left:
                raise
            runs = np.setdiff1d(runs, np.concatenate([runs[:0], *finished]))
        else:
            return


def _until_cancelled(backend: Any, tasks: Tasks, ahead: int) -> Iterator[Chunk]:
    from distributed import as_completed

    client = backend.client

    def submit(number: int) -> list[Any]:
        some = list(islice(tasks, number))
        if not some:
            return []
        columns = zip(*some, strict=True)  # all in one message
        return list(client.map(run_chunk, *columns, pure=False, **backend.submit_kwargs))

    pending = as_completed(submit(ahead), loop=client.loop, with_results=True)
    try:
        for _, chunk in pending:
            if isinstance(chunk, CancelledError):
                raise chunk  # lost on its way
            tasks.record_time(chunk)
            pending.update(submit(ahead - pending.count()))
            yield chunk
    finally:
        client.cancel(list(pending.futures))


def _by_joblib(backend: Any, tasks: Tasks, workers: int, n_jobs: int | None) -> Iterator[Chunk]:
    """Yield the chunks of another backend of joblib."""
    import joblib

    settings = {"n_jobs": n_jobs, "prefer": "threads", "batch_size": 1}
    wave: int | None = None
    if getattr(backend, "supports_return_generator", True):
        settings["return_as"] = "generator_unordered"
    else:
        wave = 4 * workers  # it returns nothing before everything is done
    while tasks:  # again, if chunks have left some runs
        calls = (joblib.delayed(run_chunk)(*task) for task in islice(tasks, wave))
        with ExitStack() as stack:
            results = joblib.Parallel(**settings)(calls)
            if wave is None:
                stack.enter_context(closing(results))
            for chunk in results:
                tasks.record_time(chunk)
                yield chunk
