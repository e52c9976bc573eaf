"""The client's side of a pool on a Dask cluster: who has which rows, and who replaces whom."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fastal._core.selection_lazy import ROWS
from fastal._types import Array, Ints
from fastal.learning.columns import BLOCK, range_sum, units
from fastal.learning.distributed.rows import WorkerRows
from fastal.learning.elsewhere import PoolElsewhere, blocks_checksum

# How often somebody looks whether the workers that are waited for are still there.
LOOK_SECONDS = 0.2

# How long to wait for a new worker in the place of a lost one, before another one gets its rows,
# and for any worker at all.
NEW_WORKER_SECONDS = 5.0
ANY_WORKER_SECONDS = 60.0

# A part that takes this many workers with it is the reason.
MOST_DEATHS = 10

# Up to so many numbers NumPy adds up in one go.
PAIRWISE = 128

# Nobody reads more of a pool at a time than this, in bytes.
PIECE = 2**27


class Part(NamedTuple):
    """Rows that one worker has."""

    start: int
    stop: int
    pieces: list[Any]  # the lazy arrays that give the rows
    address: str
    future: Any  # of the actor; it says whether the worker is there
    actor: Any


class DaskPool(PoolElsewhere):
    """Rows of a dask array, on the workers; it stands in for the array of points.

    Parameters
    ----------
    X : dask.array.Array, shape (n, d)
        The pool, checked.
    client : distributed.Client
        Of the cluster.
    """

    def __init__(self, X: Any, client: Any) -> None:
        self.shape = X.shape
        self.client = client
        self._known: dict[int, Array] = {}  # inputs of labelled rows
        self._near: tuple[Ints, Array] = np.empty(0, dtype=np.int64), np.empty((0, X.shape[1]))
        self._hashes: dict[int, bytes] = {}
        self._deaths: dict[int, int] = {}
        self._parts: list[Part] = []
        # Calls of actors leave cycles behind that hold them: the workers' memory would have to wait
        # for the garbage collector of this process.
        weakref.finalize(self, _free, client, self._parts).atexit = False
        self._spread(X)

    def __deepcopy__(self, _: Any) -> DaskPool:
        return self  # rows do not change

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a learner whose `X` is a dask array cannot be pickled; `to_dict` keeps its state"
        )

    # where rows are --------------------------------------------------------------------------

    @property
    def n_parts(self) -> int:
        """Number of parts, one per worker at the beginning."""
        return len(self._parts)

    def _spread(self, X: Any) -> None:
        """Give each worker a range of rows that begins with a block."""
        n = len(X)
        addresses = sorted(self._workers())
        blocks = -(-n // ROWS)
        count = min(len(addresses), blocks)
        ends = [min(n, ROWS * (blocks * (k + 1) // count)) for k in range(count)]
        # pieces no larger than before, or so
        size = min(max(X.chunks[0]), max(1, PIECE // (8 * X.shape[1])))
        size = -(-size // ROWS) * ROWS
        cuts, start = [], 0
        for end in ends:
            cuts += [min(size, end - low) for low in range(start, end, size)]
            start = end
        pieces = X.rechunk((tuple(cuts), (X.shape[1],))).to_delayed().ravel().tolist()
        starts = np.cumsum([0, *cuts])
        start = 0
        for address, end in zip(addresses, ends, strict=False):
            own = [piece for piece, low in zip(pieces, starts, strict=False) if start <= low < end]
            future = self._begin(start, end, own, address)
            self._parts.append(Part(start, end, own, address, future, None))
            start = end
        for number in range(count):
            self._replace(number, self._arrived(self._parts[number]))

    def _begin(self, start: int, stop: int, pieces: list[Any], address: str) -> Any:
        """Let a worker read its rows; return the future of the actor."""
        rows = self.client.compute(pieces, workers=[address], allow_other_workers=True)
        return self.client.submit(
            WorkerRows, start, rows, len(self), actor=True, workers=[address], pure=False
        )

    def _arrived(self, part: Part) -> Part:
        """Wait until a worker has its rows, or another one in its place; check them."""
        while True:
            while part.future.status == "pending":
                if part.address not in self._workers():
                    part.future.cancel()
                    break
                self.client.sync(_wait, part.future)
            self._refuse_closed()
            try:
                arrived = part._replace(actor=part.future.result())
            except Exception as error:  # of the worker, or of whoever makes the rows
                on_the_way = isinstance(error, OSError) and part.future.status != "error"
                if not on_the_way and not _is_loss(error):
                    raise
            else:
                about, lost = self._calls([(arrived, "about", ())])
                if not lost:
                    self._check(part.start, *about[0])
                    return arrived
            part = self._moved(part)

    def _check(self, start: int, hashes: bytes, bad: tuple[int, int, float] | None) -> None:
        if bad is not None:
            raise ValueError(f"`X` must be finite, got {bad[2]} at index {bad[:2]}")
        if self._hashes.setdefault(start, hashes) != hashes:
            raise RuntimeError(
                "`X` gave other rows when it was read again for a worker that was lost: rows that "
                "are random or change cannot be replaced"
            )

    def _moved(self, part: Part) -> Part:
        """Let another worker read the rows of a part."""
        deaths = self._deaths[part.start] = self._deaths.get(part.start, 0) + 1
        if deaths > MOST_DEATHS:
            raise RuntimeError(
                f"{deaths} workers were lost with the rows {part.start} to {part.stop} of `X`: "
                "they may need more memory than a worker has"
            )
        address = self._free_worker(part.address)
        future = self._begin(part.start, part.stop, part.pieces, address)
        return part._replace(address=address, future=future, actor=None)

    def _free_worker(self, lost: str) -> str:
        """Return the worker with the fewest rows; a new one may take some time to come."""
        end = time.monotonic() + NEW_WORKER_SECONDS
        while True:
            load = dict.fromkeys(self._workers(), 0)
            load.pop(lost, None)
            for part in self._parts:
                if part.address in load:
                    load[part.address] += part.stop - part.start
            if load and (0 in load.values() or time.monotonic() > end):
                return min(load, key=lambda address: (load[address], address))
            if time.monotonic() > end + ANY_WORKER_SECONDS:
                raise ConnectionError("all workers of the Dask cluster are lost")
            time.sleep(LOOK_SECONDS)

    def _refuse_closed(self) -> None:
        """Raise if there is no way to the cluster any more."""
        if self.client.status in ("closed", "closing"):
            raise ConnectionError(
                "the scheduler of the Dask cluster is lost, or its client was closed; the run so "
                "far is kept: `run.resume(X=...)` goes on with the same pool on another cluster"
            )

    def _workers(self) -> list[str]:
        """Return the addresses of all workers that are there."""
        from asyncio import CancelledError

        end = time.monotonic() + ANY_WORKER_SECONDS
        while True:
            self._refuse_closed()
            if self.client.status == "running":
                try:
                    found = list(self.client.nthreads())
                except (OSError, RuntimeError, CancelledError):  # it is being lost
                    found = []
                if found:
                    return found
            if time.monotonic() > end:
                raise ConnectionError("the Dask cluster has no workers")
            time.sleep(LOOK_SECONDS)

    # asking workers --------------------------------------------------------------------------

    def _calls(self, calls: list[tuple[Part, str, tuple[Any, ...]]]) -> tuple[list[Any], list[int]]:
        """Call methods of actors; return their answers, and the numbers of those that are lost."""
        answers: list[Any] = [None] * len(calls)
        lost, begun = [], []
        self._refuse_closed()
        for k, (part, method, arguments) in enumerate(calls):
            try:
                begun.append((k, part.future, getattr(part.actor, method)(*arguments)))
            except (RuntimeError, ValueError) as error:  # Dask knows already
                if not _is_loss(error):
                    raise
                lost.append(k)
        lost += self.client.sync(_answers, self.client, begun, answers)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors:
            raise errors[0]
        return answers, lost

    def ask(self, numbers: list[int], method: str, arguments: list[tuple[Any, ...]]) -> list[Any]:
        """Return the answers of some parts; workers that are lost are replaced on the way."""
        answers: list[Any] = [None] * len(numbers)
        todo = list(range(len(numbers)))
        while todo:
            calls = [(self._parts[numbers[k]], method, arguments[k]) for k in todo]
            found, lost = self._calls(calls)
            for k, answer in zip(todo, found, strict=True):
                answers[k] = answer
            todo = [todo[k] for k in lost]
            for k in todo:
                number = numbers[k]
                self._replace(number, self._arrived(self._moved(self._parts[number])))
        return answers

    def _replace(self, number: int, part: Part) -> None:
        """Note who has the rows of a part now; who had them before needs them no more."""
        before, self._parts[number] = self._parts[number], part
        if before.future is not part.future:
            _free(self.client, [before])

    # as an array of points -------------------------------------------------------------------

    def __getitem__(self, rows: Any) -> Array:
        if np.ndim(rows) == 0:
            one: Array = self[np.array([int(rows)])][0]
            return one
        index = np.asarray(rows, dtype=np.int64)
        out = np.empty((len(index), self.shape[1]))
        near, X = self._near
        missing = []
        for k, row in enumerate(index.tolist()):
            if row in self._known:
                out[k] = self._known[row]
            else:
                place = int(np.searchsorted(near, row))
                if place < len(near) and near[place] == row:
                    out[k] = X[place]
                else:
                    missing.append(k)
        if missing:
            wanted = index[missing]
            numbers, places, asked = [], [], []
            for number, part in enumerate(self._parts):
                own = np.flatnonzero((wanted >= part.start) & (wanted < part.stop))
                if len(own):
                    numbers.append(number)
                    places.append(np.array(missing)[own])
                    asked.append((wanted[own],))
            for own, found in zip(places, self.ask(numbers, "points", asked), strict=True):
                out[own] = found
        return out

    def come_near(self, rows: Ints, X: Array) -> None:
        """Keep the inputs of the present candidates, whose rows are sorted."""
        self._near = rows, X

    def keep(self, rows: Ints) -> None:
        """Keep the inputs of labelled rows, whatever becomes of the cluster."""
        new = [row for row in rows.tolist() if row not in self._known]
        if new:
            for row, x in zip(new, self[np.array(new)], strict=True):
                self._known[row] = x

    def column_scales(self) -> tuple[Array, Array]:
        """Return powers of two that fit the columns, and standard deviations over them."""
        everybody = list(range(self.n_parts))
        unit = units(np.max(self.ask(everybody, "largest", [()] * self.n_parts), axis=0))
        n = len(self)
        middle = self._sum(unit, None) / n
        return unit, np.sqrt(self._sum(unit, middle) / n)

    def _sum(self, unit: Array, middle: Array | None) -> Array:
        """Add up columns from the first row to the last, as one machine does."""
        if self.shape[1] == 1:
            return self._sum_in_halves(unit, middle)
        total: Array = np.zeros(self.shape[1])
        for number in range(self.n_parts):
            total = self.ask([number], "sums", [(unit, middle, total)])[0]
        return total

    def _sum_in_halves(self, unit: Array, middle: Array | None) -> Array:
        """Add up one column as NumPy does, halves of halves; what one worker has is left to it."""
        wanted: dict[int, list[tuple[int, int]]] = {k: [] for k in range(self.n_parts)}
        starts = np.array([part.start for part in self._parts])

        def owner(low: int, high: int) -> int:
            number = int(np.searchsorted(starts, low, side="right")) - 1
            return number if high <= self._parts[number].stop else -1

        def visit(low: int, n: int) -> None:
            number = owner(low, low + n)
            if number >= 0:
                wanted[number].append((low, low + n))
            elif n > PAIRWISE:
                half = n // 2 - n // 2 % 8
                visit(low, half)
                visit(low + half, n - half)

        visit(0, len(self))
        asked = [(wanted[k], unit, middle) for k in wanted]
        found = self.ask(list(wanted), "range_sums", asked)
        known = {
            place: total
            for ranges, totals in zip(wanted.values(), found, strict=True)
            for place, total in zip(ranges, totals, strict=True)
        }

        def total(low: int, n: int) -> Array:
            own: Array | None = known.get((low, low + n))
            if own is not None:
                return own
            if n > PAIRWISE:
                half = n // 2 - n // 2 % 8
                return total(low, half) + total(low + half, n - half)
            return range_sum(self[np.arange(low, low + n)], unit, middle)  # of two workers

        whole: Array = total(0, len(self))
        return whole

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yield the rows, some at a time, each time with the number of the first one."""
        for number, part in enumerate(self._parts):
            for low in range(part.start, part.stop, BLOCK):
                rows = np.arange(low, min(part.stop, low + BLOCK))
                yield low, self.ask([number], "points", [(rows,)])[0]

    def checksum(self) -> str:
        """Return what tells one pool from another, whatever its chunks."""
        whole = b"".join(self._hashes[part.start] for part in self._parts)
        return blocks_checksum(self.shape, whole)

    def gathered(self) -> Array:
        """Return all rows, of a pool that is no larger than a round's candidates."""
        rows = np.arange(len(self))
        if len(self._near[0]) < len(rows):
            self._near = rows, self[rows]
        return self._near[1]


def _free(client: Any, parts: list[Part]) -> None:
    """Let workers forget parts; from any thread, and without waiting."""
    futures = [part.future for part in parts]
    if futures and client.status == "running":
        with suppress(RuntimeError):  # it has just ended
            client.loop.add_callback(client.cancel, futures, asynchronous=True)


async def _wait(future: Any) -> None:
    """Wait for a future, not for long."""
    import asyncio

    end = time.monotonic() + LOOK_SECONDS
    while future.status == "pending" and time.monotonic() < end:
        await asyncio.sleep(0.005)


async def _answers(client: Any, begun: list[tuple[int, Any, Any]], out: list[Any]) -> list[int]:
    """Wait for answers of actors and write them, or what they raised; return who is lost."""
    import asyncio

    async def one(answer: Any) -> Any:
        return await answer

    tasks = {asyncio.ensure_future(one(answer)): (k, future) for k, future, answer in begun}
    pending, lost = set(tasks), []
    while pending:
        done, pending = await asyncio.wait(pending, timeout=LOOK_SECONDS)
        for task in done:
            k, _ = tasks[task]
            error = task.exception()
            if error is None:
                out[k] = task.result()
            elif isinstance(error, OSError) or _is_loss(error):
                lost.append(k)
            else:
                out[k] = error
        for task in list(pending):
            k, future = tasks[task]
            if future.status != "finished" or client.status == "closed":
                task.cancel()
                pending.discard(task)
                lost.append(k)
    return lost


def _is_loss(error: Any) -> bool:
    """Whether an exception says that a worker is not there any more."""
    name = type(error).__name__
    return name in ("KilledWorker", "CancelledError", "FutureCancelledError") or (
        isinstance(error, RuntimeError | ValueError)  # the latter in older releases of Dask
        and "Worker holding Actor was lost" in str(error)
    )


def current_client() -> Any:
    """Return the client of the cluster; None if there is no cluster."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise ValueError("`X` is a dask array: its `distributed.Client` must not be asynchronous")
    return client
