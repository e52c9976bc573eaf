"""simulate: many learning runs, on threads or on joblib's backends (Dask); resumable.

A run is a learning campaign over its own pool. Runs are computed in chunks of at most a quarter of
a second, each one compiled call without the GIL; how they are cut and who computes them changes no
digit of the result.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _selection
from fastal import _validation as check
from fastal._core import eager as eager_core
from fastal._core import simulation as core
from fastal._criterion import Criterion, Measured
from fastal._record import Record, prior_loss
from fastal._store import FORMAT, Store
from fastal.gp import GaussianProcess
from fastal.learner import _test_set, _warn_if_far
from fastal.stopper import Stopper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Make = Callable[[np.random.Generator], tuple[ArrayLike, ArrayLike]]

# Seconds of work in a chunk: below a quarter, with room for a slower moment.
CHUNK_SECONDS = 0.23

# Most runs in a chunk, so that its arrays stay small.
CHUNK_RUNS = 8192

# How often the data are sent to a Dask cluster that loses them; Dask itself gives up a task that
# has brought down as many workers.
DASK_ATTEMPTS = 4

# The pool if none is asked for: the paper's 100, or half of the rows.
PAPER_POOL = 100

# Runs of a callable that may fail before the first one shows the size of its data.
PROBES = 10

# Labels between two moments in which a run over a large pool can be interrupted.
STEP = 64


class Failure(NamedTuple):
    """A run that failed.

    Attributes
    ----------
    run : int
        Its number.
    seed : str
        What its generator was seeded with, to be passed to ``numpy.random.default_rng``.
    message : str
        What went wrong.
    """

    run: int
    seed: str
    message: str


@dataclass(frozen=True)
class _Plan:
    """What each run does: small, and sent with every chunk."""

    gp: GaussianProcess
    stopper: Criterion
    criteria: tuple[Criterion, ...]
    make: Make | None
    seed: int
    pool_size: int
    initial: int
    max_labels: int
    rest: bool  # the test set is what the pool leaves
    tested: bool  # there are test errors
    keep_bounds: bool
    raising: bool

    @property
    def whole(self) -> bool:
        """Whether a run goes on behind its stop."""
        return self.tested or bool(self.criteria)

    @property
    def judged(self) -> bool:
        """Whether criteria look at runs once these are finished."""
        return bool(self.criteria) or not isinstance(self.stopper, Stopper)

    @property
    def measured(self) -> tuple[int, ...]:
        """Which of the criteria go by numbers of their own."""
        return tuple(j for j, other in enumerate(self.criteria) if _is_measured(other))

    @property
    def widths(self) -> tuple[int, int, int, int]:
        """Columns of criteria, their histories, bounds and errors."""
        bounds = self.max_labels - self.initial
        return (
            len(self.criteria),
            len(self.measured) if self.keep_bounds else 0,
            bounds if self.keep_bounds else 0,
            self.max_labels if self.tested else 0,
        )


class _Chunk(NamedTuple):
    """What came of some runs; k of them."""

    runs: Ints  # (k,)
    counts: Ints  # (2, k) labels computed; labels at the stop, -1 if none
    criteria: Ints  # (k, c) labels at the stop of each criterion, -1 if none
    histories: Array  # (k, h, B) numbers of those criteria that do not go by bounds
    bounds: Array  # (k, B), NaN behind the last one; B = 0 if they are not kept
    errors: Array  # (k, T), T = 0 without a test set
    messages: list[tuple[int, str]]  # runs that failed
    seconds: float
    left: tuple[tuple[int, int], ...] = ()  # runs there was no time for

    @classmethod
    def empty(cls, plan: _Plan, runs: Ints) -> _Chunk:
        k = len(runs)
        c, h, b, t = plan.widths
        return cls(
            runs,
            np.zeros((2, k), dtype=np.int64),
            np.full((k, c), -1, dtype=np.int64),
            np.full((k, h, b), np.nan),
            np.full((k, plan.max_labels - plan.initial), np.nan),
            np.full((k, t), np.nan),
            [],
            0.0,
        )

    def first(self, done: int) -> _Chunk:
        """Return the chunk of the first runs; the others are left."""
        if done == len(self.runs):
            return self
        return self._replace(
            runs=self.runs[:done],
            counts=self.counts[:, :done],
            criteria=self.criteria[:done],
            histories=self.histories[:done],
            bounds=self.bounds[:done],
            errors=self.errors[:done],
            left=_spans(self.runs[done:]),
        )

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """Return all arrays; what is NaN behind the bounds, most of them often, is left out."""
        lengths, values = core.without_tails(np.ascontiguousarray(self.bounds))
        return (
            self.runs, self.counts, self.criteria, self.histories, self.errors,
            np.array(self.bounds.shape), lengths, values,
        )  # fmt: skip

    @classmethod
    def _of_arrays(
        cls, arrays: Sequence[Any], messages: list[tuple[int, str]], *more: Any
    ) -> _Chunk:
        runs, counts, criteria, histories, errors, shape, lengths, values = arrays
        bounds = np.full(shape, np.nan)
        bounds[np.arange(bounds.shape[1]) < lengths[:, None]] = values
        return cls(runs, counts, criteria, histories, bounds, errors, messages, *more)

    def __reduce__(self) -> tuple[Any, ...]:  # on its way back from another process
        return _Chunk._of_arrays, (self._arrays(), self.messages, self.seconds, self.left)

    def pack(self) -> bytes:
        """Return the chunk as bytes, for the store."""
        file = io.BytesIO()
        for array in self._arrays():
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        text = "\0".join(f"{run} {message}" for run, message in self.messages)
        file.write(text.encode("utf-8", "backslashreplace"))
        return file.getvalue()

    @classmethod
    def unpack(cls, data: bytes) -> _Chunk:
        """Return the chunk that `pack` wrote."""
        file = io.BytesIO(data)
        arrays = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(8)]
        messages: list[tuple[int, str]] = []
        for line in filter(None, file.read().decode().split("\0")):
            run, _, message = line.partition(" ")
            messages.append((int(run), message))
        return cls._of_arrays(arrays, messages, 0.0)


def simulate(
    X: ArrayLike | Make,
    y: ArrayLike | None = None,
    *,
    gp: GaussianProcess,
    stopper: Criterion | None = None,
    criteria: Sequence[Criterion] = (),
    n_runs: int = 100,
    pool_size: int | None = None,
    initial: int = 1,
    max_labels: int | None = None,
    test: Any = "rest",
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    errors: str = "record",
    keep: str = "all",
    progress: bool = False,
) -> Simulation:
    """Run many learning campaigns, each over a pool of its own, by maximum variance.

    Parameters
    ----------
    X : array_like, shape (n, d), or callable
        Inputs, from which each run draws its pool. A callable ``make(rng) -> (X, y)`` makes new
        data for each run.
    y : array_like, shape (n,)
        Their labels; None with a callable.
    gp : GaussianProcess
        The model, without labels; common to all runs.
    stopper : Stopper or another criterion, optional
        When to stop; ``Stopper()`` by default.
    criteria : sequence of criteria
        Further ones, to be compared on the same bounds.
    n_runs : int
        Number of runs.
    pool_size : int, optional
        Points in a pool. By default 100, as in the paper, or half of the rows if these are fewer
        than 200; without ``test="rest"`` all rows.
    initial : int
        Random labels that come first and give no bound.
    max_labels : int, optional
        Most labels in all, the initial ones included; the whole pool by default.
    test : "rest", None or tuple of arrays
        On which rows to compute the expected loss after each label: all that are not in the pool,
        none, or these inputs and labels.
    seed : int
        Run i is seeded by ``numpy.random.SeedSequence(seed).spawn(n_runs)[i]``.
    n_jobs : int, optional
        Threads, -1 for one a core; 1 by default, or what ``joblib.parallel_config`` says.
    store : path, optional
        An SQLite file that keeps what is finished. The same call with the same file goes on where
        the last one was interrupted; `n_runs` may have grown.
    errors : {"record", "raise"}
        What to do when a run fails.
    keep : {"all", "summary"}
        "summary" leaves bounds and errors out of the result, for the sake of memory. (Errors take
        8 bytes a label and run until `t_opt` is known.)
    progress : bool
        Whether to show a progress bar (tqdm).

    Returns
    -------
    Simulation
        One entry a run.

    Notes
    -----
    A run ends at its stop if nothing else is wanted. With test errors or `criteria` it goes on to
    `max_labels`; the stop and `n_labels` are the same.

    Results do not depend on the backend, the number of workers or the order, to the last digit, on
    one type of CPU. Within ``joblib.parallel_config(backend="dask")`` a Dask cluster takes the
    chunks: the data go to every worker once, at the beginning, and only row numbers and settings
    travel with a chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, simulate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-5, 15, 300)
    >>> y = np.exp(-((X - 2) ** 2) / 2) + 0.05 * rng.standard_normal(300)
    >>> result = simulate(X, y, gp=GaussianProcess(1.5, 0.0025), n_runs=20, pool_size=50)
    >>> result.n_labels.shape, result.errors.shape, bool((result.n_labels <= 50).all())
    ((20,), (20, 50), True)
    """
    count = check.count("n_runs", n_runs, 1)
    check.option("errors", errors, ("record", "raise"))
    check.option("keep", keep, ("all", "summary"))
    check.flag("progress", progress)
    if n_jobs is not None and check.whole("n_jobs", n_jobs) == 0:
        raise ValueError("`n_jobs` must not be 0, got 0: -1 is all cores")
    plan, data = _prepare(
        X, y, gp, stopper, criteria, pool_size, initial, max_labels, test,
        check.count("seed", seed), keep == "all", errors == "raise",
    )  # fmt: skip
    table = _Table(plan, count)
    kept = None if store is None else Store(store, _settings(plan, data, keep))
    try:
        if kept is not None:
            for packed in kept.chunks():
                try:
                    table.put(_Chunk.unpack(packed))
                except (ValueError, IndexError, UnicodeDecodeError) as error:
                    raise ValueError(f"`store` {kept.path!r} is damaged: {error}") from None
        with (
            _Bar(count, table.n_done, progress) as bar,
            _Writer(kept) as write,
            closing(_chunks(plan, data, table.missing(), n_jobs)) as chunks,
        ):
            for chunk in chunks:
                write(chunk)
                table.put(chunk)
                bar(len(chunk.runs))
        if (lost := len(table.missing())) > 0:
            raise RuntimeError(f"the backend of joblib returned nothing for {lost} runs")
    finally:
        if kept is not None:
            kept.close()
    return Simulation(plan, table, data.n_rows, keep == "all")


class _Writer:
    """Commits chunks in a thread: a disk makes one wait, and the runs go on meanwhile."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> Callable[[_Chunk], None]:
        self._thread = ThreadPoolExecutor(1)
        return self._write

    def _write(self, chunk: _Chunk) -> None:
        if self._store is None:
            return
        store = self._store
        self._pending.append(self._thread.submit(lambda: store.add(chunk.pack())))
        # An error of the disk comes up here; and no more than two chunks wait for it.
        while self._pending and (len(self._pending) > 2 or self._pending[0].done()):
            self._pending.popleft().result()

    def __exit__(self, kind: object, *_: object) -> None:
        self._thread.shutdown()
        if kind is None:
            for commit in self._pending:
                commit.result()


class _Data(NamedTuple):
    """The big arrays; `digest` tells one problem from another."""

    Z: Array  # (d, n) inputs over length scales
    y: Array
    test_Z: Array  # noqa: N815 # (d, m)
    test_y: Array
    digest: str
    test_digest: str | None
    n_rows: int


def _prepare(
    X: Any, y: Any, gp: GaussianProcess, stopper: Criterion | None, criteria: Any,
    pool_size: int | None, initial: int, max_labels: int | None, test: Any, seed: int,
    keep_bounds: bool, raising: bool,
) -> tuple[_Plan, _Data]:  # fmt: skip
    """Check all that decides what a run computes."""
    if not isinstance(gp, GaussianProcess):
        raise TypeError(f"`gp` must be a GaussianProcess, got {check.shown(gp)}")
    if gp.n_labels:
        raise ValueError(f"`gp` must have no labels, got {gp.n_labels}: use a fresh one")
    chosen = Stopper() if stopper is None else stopper
    if not isinstance(chosen, Criterion):
        raise TypeError(f"`stopper` must be a Stopper or criterion, got {check.shown(stopper)}")
    if isinstance(criteria, Criterion) or not isinstance(criteria, Iterable):
        raise TypeError(f"`criteria` must be a sequence of criteria, got {check.shown(criteria)}")
    others = tuple(criteria)
    for other in others:
        if not isinstance(other, Criterion):
            raise TypeError(f"`criteria` must hold criteria, got {check.shown(other)}")
    rest = isinstance(test, str)
    if rest:
        check.option("test", test, ("rest",))
    scale = gp.lengthscale
    features = None if isinstance(scale, float) else len(scale)
    make: Make | None = None
    if callable(X):
        if y is not None:
            raise ValueError("`y` must be None when `X` is a callable, which returns both")
        make = X
        points, labels, digest = _probe(make, seed, features)
    else:
        if y is None:
            raise ValueError("`y` must be given, got None")
        points = check.points("X", X, features)
        labels = check.vector("y", y, len(points))
        digest = _digest(points, labels)
    n = len(points)
    if n == 0:
        raise ValueError("`X` must have at least one row, got 0")
    if pool_size is None:
        size = max(1, min(PAPER_POOL, n // 2)) if rest else n
    else:
        size = check.count("pool_size", pool_size, 1)
    if size > n:
        raise ValueError(f"`pool_size` must be at most the number of rows ({n}), got {size}")
    if rest and size == n:
        raise ValueError(
            f"`pool_size` must be below the number of rows ({n}), got {size}: it leaves no row for "
            "test='rest'"
        )
    first = check.count("initial", initial)
    if first > size:
        raise ValueError(f"`initial` must be at most the size of the pool ({size}), got {first}")
    most = size if max_labels is None else check.count("max_labels", max_labels, 1)
    if not (max(1, first) <= most <= size):
        raise ValueError(
            f"`max_labels` must be between `initial` ({first}) and the size of the pool ({size}), "
            f"got {most}"
        )
    _selection._check_memory(size, most)
    gp = gp.copy()
    if make is None:
        _warn_if_far(gp, labels)
    gp._warned = True  # said already
    Z = gp._scaled("X", points)
    test_Z, test_y, test_digest = Z, labels, None
    if not rest:
        test_Z, test_y = Z[:, :0].copy(), labels[:0].copy()
        if test is not None:
            test_points, test_y = _test_set(test, points.shape[1])
            test_Z, test_digest = gp._scaled("test", test_points), _digest(test_points, test_y)
    if make is not None:
        Z, labels = Z[:, :0].copy(), labels[:0].copy()
        if rest:
            test_Z, test_y = Z, labels
    plan = _Plan(
        gp=gp,
        stopper=_fresh(chosen),
        criteria=tuple(_fresh(other) for other in others),
        make=make,
        seed=seed,
        pool_size=size,
        initial=first,
        max_labels=most,
        rest=rest,
        tested=test is not None,
        keep_bounds=keep_bounds,
        raising=raising,
    )
    return plan, _Data(Z, labels, test_Z, test_y, digest, test_digest, n)


def _is_measured(criterion: Criterion) -> bool:
    """Whether a criterion goes by numbers of its own, not by bounds."""
    return isinstance(criterion, Measured) and criterion._takes != Criterion._takes


def _fresh(criterion: Criterion) -> Criterion:
    new = criterion.copy().reset()
    if isinstance(new, Stopper):
        new.gp = None  # the pool's own process gives the bounds
    return new


def _digest(*arrays: Array) -> str:
    total = hashlib.sha256()
    for array in arrays:
        total.update(repr(array.shape).encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _probe(make: Make, seed: int, features: int | None) -> tuple[Array, Array, str]:
    """Return the data of the first run of a callable that does not fail, and their checksum.

    A function cannot be compared with the one that filled a store, its data can.
    """
    for run in range(PROBES):
        try:
            X, y = _made(make, _sequence(seed, run), features)
        except Exception:
            if run == PROBES - 1:
                raise
        else:
            return X, y, f"run {run} of a callable: {_digest(X, y)}"
    raise AssertionError  # pragma: no cover


def _made(make: Make, sequence: Any, features: int | None) -> tuple[Array, Array]:
    made = make(np.random.default_rng(sequence))
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise TypeError(f"`X` must return a pair of inputs and labels, got {check.shown(made)}")
    points = check.points("X", made[0], features)
    return points, check.vector("y", made[1], len(points))


def _sequence(seed: int, run: int) -> np.random.SeedSequence:
    """Return ``SeedSequence(seed).spawn(run + 1)[run]``, without making the others."""
    return np.random.SeedSequence(seed, spawn_key=(run,))


def _pools(plan: _Plan, runs: Ints, n: int) -> Ints:
    """Return the rows of some runs' pools; the first `initial` of each are labelled first."""
    entropy = [plan.seed >> shift & 0xFFFFFFFF for shift in range(0, plan.seed.bit_length(), 32)]
    entropy += [0] * (4 - len(entropy))
    words = np.empty(len(runs), dtype=np.uint64)
    core.run_words(np.array(entropy, dtype=np.uint64), runs, words)
    rows = np.empty((len(words), plan.pool_size), dtype=np.int64)
    core.draw_rows(words, np.arange(n), np.empty(plan.pool_size, dtype=np.int64), rows)
    return rows


def _settings(plan: _Plan, data: _Data, keep: str) -> dict[str, Any]:
    """Return all that decides the numbers; how many runs there are does not."""
    test = "rest" if plan.rest else data.test_digest
    return {
        "format": FORMAT,
        "data": data.digest,
        "gp": plan.gp.to_dict(),
        "stopper": plan.stopper.to_dict(),
        "criteria": [criterion.to_dict() for criterion in plan.criteria],
        "pool_size": plan.pool_size,
        "initial": plan.initial,
        "max_labels": plan.max_labels,
        "test": test,
        "seed": plan.seed,
        "keep": keep,
    }


# Computing a chunk: here, in a thread, or in another process -------------------------------------


class OneBlasThread:
    """A context in which BLAS has one thread; the last of several threads to leave ends it."""

    _lock = threading.Lock()
    _inside = 0
    _limit: Any = None

    def __enter__(self) -> None:
        cls = type(self)
        with cls._lock:
            if cls._inside == 0:
                cls._limit = _selection._one_blas_thread()
                cls._limit.__enter__()
            cls._inside += 1

    def __exit__(self, *_: object) -> None:
        cls = type(self)
        with cls._lock:
            cls._inside -= 1
            if cls._inside == 0:
                cls._limit.__exit__(None, None, None)


def _spans(runs: Ints) -> tuple[tuple[int, int], ...]:
    """Return sorted numbers as ranges.

    An array would be large enough for joblib to put it on one Dask worker, and lose it with it.
    """
    ends = np.flatnonzero(np.diff(runs) != 1) + 1
    return tuple((int(part[0]), int(part[-1]) + 1) for part in np.split(runs, ends))


def run_chunk(
    plan: _Plan,
    Z: Array,
    y: Array,
    test_Z: Array,
    test_y: Array,
    seconds: float,
    spans: tuple[tuple[int, int], ...],
) -> _Chunk:
    """Compute some runs, as many as there is time for and at least one.

    The arrays are arguments of their own, so that Dask sends them once.
    """
    begin = perf_counter()
    chunk = _Chunk.empty(plan, np.concatenate([np.arange(low, high) for low, high in spans]))
    worker = _Worker(plan)
    done, size = 0, 1
    with OneBlasThread():
        while size > 0:
            here = slice(done, done + size)
            if plan.make is None:
                rows = _pools(plan, chunk.runs[here], len(y))
                worker.run(Z, y, rows, test_Z, test_y, chunk, done)
            else:
                _run_made(worker, plan, test_Z, test_y, chunk, here)
            done += size
            spent = perf_counter() - begin
            # the first runs may not be like the others: what they took is trusted step by step
            size = min(8 * size, len(chunk.runs) - done, int((seconds - spent) * done / spent))
    chunk = chunk.first(done)
    kept = chunk.bounds if plan.keep_bounds else chunk.bounds[:, :0]
    return chunk._replace(bounds=np.ascontiguousarray(kept), seconds=perf_counter() - begin)


def _run_made(
    worker: _Worker, plan: _Plan, test_Z: Array, test_y: Array, chunk: _Chunk, here: slice
) -> None:
    """Compute the runs of a callable, each with data of its own."""
    for place, run in enumerate(chunk.runs[here].tolist(), here.start):
        try:
            assert plan.make is not None
            points, y = _made(plan.make, _sequence(plan.seed, run), len(test_Z))
            if len(y) < plan.pool_size + plan.rest:
                raise ValueError(
                    f"`X` must return at least {plan.pool_size + plan.rest} rows, got {len(y)}"
                )
            Z = plan.gp._scaled("X", points)
        except Exception as error:
            if plan.raising:
                error.add_note(f"in run {run} of the simulation")
                raise
            chunk.messages.append((run, _message(error)))
            continue
        rows = _pools(plan, chunk.runs[place : place + 1], len(y))
        test = (Z, y) if plan.rest else (test_Z, test_y)
        worker.run(Z, y, rows, *test, chunk, place)


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\0", " ")


class _Worker:
    """The buffers of one chunk."""

    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        # a criterion of another kind judges the bounds afterwards
        self.stopper = plan.stopper.copy()
        compiled = isinstance(self.stopper, Stopper)
        self.tracker = self.stopper._tracker.address if isinstance(self.stopper, Stopper) else 0
        self.whole = plan.whole or not compiled
        self._pool: Any = None
        self._work: Any = None
        self._shape: tuple[int, int] | None = None
        self._labels = np.empty(plan.pool_size)
        self._judges = [criterion.copy() for criterion in plan.criteria]

    def run(
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: _Chunk,
        place: int,
    ) -> None:  # fmt: skip
        """Compute the runs with these pools; they stand in the chunk from `place` on."""
        plan, gp = self.plan, self.plan.gp
        here = slice(place, place + len(rows))
        counts = np.zeros((3, len(rows)), dtype=np.int64)
        orders = np.empty((len(rows), plan.max_labels if plan.judged else 0), dtype=np.int64)
        if plan.pool_size >= _selection.EAGER_BELOW:
            for r in range(len(rows)):
                self._run_large(
                    Z, y, rows[r], test_Z, test_y, chunk, place + r, counts[:, r], orders[r]
                )
        else:
            if self._shape != (len(Z), len(test_y)):
                self._shape = (len(Z), len(test_y))
                empty = np.empty((len(Z), plan.pool_size))
                self._pool = eager_core.new_eager(empty, plan.max_labels, gp.amplitude, gp.mean)
                self._work = core.new_work(len(Z), plan.max_labels, len(test_y))
            core.run_many(
                gp._kind, gp.amplitude, gp.mean, gp.noise, Z, y, rows, plan.initial, self.tracker,
                self.whole, test_Z, test_y, plan.rest, self._pool, self._labels, self._work,
                counts, orders, chunk.bounds[here], chunk.errors[here],
            )  # fmt: skip
        chunk.counts[0, here] = counts[0]
        chunk.counts[1, here] = np.where(counts[1] > 0, counts[1] + plan.initial, -1)
        for r in np.flatnonzero(counts[2]).tolist():
            self._failed(chunk, place + r, int(counts[2, r]))
        if plan.judged:
            for r in np.flatnonzero(counts[2] == 0).tolist():
                self._judge(Z, y, rows[r], orders[r, : counts[0, r]], test_y, chunk, place + r)

    def _run_large(
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: _Chunk,
        place: int, counts: Ints, order: Ints,
    ) -> None:  # fmt: skip
        """Compute one run over a pool that is too large for the straightforward selection."""
        plan, gp = self.plan, self.plan.gp
        selection = _selection.Selection.of_scaled(
            gp, np.ascontiguousarray(Z[:, rows]), plan.max_labels
        )
        stopper = self.stopper.reset()
        first, labels = np.arange(plan.initial), y[rows]
        try:
            while selection.n_labels < plan.max_labels and (self.whole or not stopper.stopped):
                target = min(plan.max_labels, selection.n_labels + STEP)
                selection.run(
                    labels, first, plan.initial, target, self.tracker, 1, chunk.bounds[place]
                )
        except (np.linalg.LinAlgError, ValueError) as error:
            counts[2] = selection.n_labels + 1
            if isinstance(error, ValueError) and not isinstance(error, np.linalg.LinAlgError):
                counts[2] *= -1
            return
        counts[0] = selection.n_labels
        if order.size:
            order[: selection.n_labels] = selection.state.labels[: selection.n_labels]
        counts[1] = stopper.stopped_at or 0 if self.tracker else 0
        if plan.tested:
            if plan.rest:
                left = np.ones(len(test_y), dtype=np.bool_)
                left[rows] = False
                test_Z, test_y = test_Z[:, left], test_y[left]
            chunk.errors[place] = selection.errors_scaled(test_Z, test_y, 1)

    def _failed(self, chunk: _Chunk, place: int, status: int) -> None:
        """Record or raise what the status of a kernel means."""
        run = int(chunk.runs[place])
        label = abs(status)
        error: Exception
        if status < 0:
            error = ValueError(
                f"label {label} of run {run} is too far from what the prior can explain: centre "
                "and scale the labels, or set `mean` and `amplitude` of the process"
            )
        else:
            error = np.linalg.LinAlgError(
                f"the factor breaks down at label {label} of run {run}: the point repeats others "
                "to the last digit; increase the noise variance or leave out duplicates"
            )
        if self.plan.raising:
            raise error
        chunk.messages.append((run, _message(error)))
        chunk.counts[:, place] = 0, -1
        chunk.bounds[place] = np.nan
        chunk.errors[place] = np.nan

    def _judge(
        self, Z: Array, y: Array, rows: Ints, order: Ints, test_y: Array, chunk: _Chunk, place: int
    ) -> None:
        """Let the criteria look at a finished run, as they would have at each label."""
        plan, gp = self.plan, self.plan.gp
        bounds = chunk.bounds[place, : len(order) - plan.initial]
        record = Record(
            gp, np.ascontiguousarray(Z[:, rows]), order, y[rows[order]], plan.initial, bounds
        )
        if plan.tested:
            left = np.delete(test_y, rows) if plan.rest else test_y
            record.errors, record.prior_error = chunk.errors[place], prior_loss(gp, left)
        for j, judge in enumerate(self._judges):
            at = judge._stop_in(record)
            chunk.criteria[place, j] = -1 if at is None else at + plan.initial
        if plan.keep_bounds:
            for h, j in enumerate(plan.measured):
                chunk.histories[place, h, : len(bounds)] = self._judges[j]._history_in(record)
        if not self.tracker:
            at = self.stopper._stop_in(record)
            chunk.counts[1, place] = -1 if at is None else at + plan.initial
            if at is not None and not plan.whole:
                chunk.counts[0, place] = at + plan.initial
                bounds[at:] = np.nan


# Sharing out chunks -------------------------------------------------------------------------------


class _Tasks:
    """Cuts the runs into chunks, by what the finished ones took."""

    def __init__(
        self, plan: _Plan, arrays: Sequence[Any], runs: Ints, workers: int, cheap: bool
    ) -> None:
        self._fixed = (plan, *arrays, *(arrays if plan.rest else ()))
        self._left, self._first_share = runs, -(-len(runs) // (2 * workers))
        self._workers, self._cheap = workers, cheap
        self._each: float | None = None  # seconds a run takes

    def __bool__(self) -> bool:
        return len(self._left) > 0

    def learn(self, chunk: _Chunk) -> None:
        """Note what a chunk took, and what it left to be shared out again."""
        each = chunk.seconds / len(chunk.runs)
        # A chunk too large leaves some; one too small, after a slow moment, would cost time.
        self._each = each if self._each is None else min(each, self._each)
        if chunk.left:
            again = [np.arange(low, high) for low, high in chunk.left]
            self._left = np.sort(np.concatenate([self._left, *again]))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `run_chunk` until nothing is left; more may come back later."""
        while self:
            part, self._left = np.split(self._left, [self._size()])
            yield *self._fixed, CHUNK_SECONDS, _spans(part)

    def _size(self) -> int:
        left, workers = len(self._left), self._workers
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
        return min(most, max(share, least))


def _chunks(
    plan: _Plan, data: _Data, runs: Ints, n_jobs: int | None
) -> Generator[_Chunk, None, None]:
    """Yield the chunks as they are finished, in any order."""
    if len(runs) == 0:
        return
    import joblib
    from joblib.parallel import SequentialBackend, ThreadingBackend, get_active_backend

    arrays = [data.Z, data.y, data.test_Z, data.test_y][: 2 if plan.rest else 4]
    backend = get_active_backend(prefer="threads")[0]
    # joblib polls for results, which costs more than many a chunk: where it leads to threads or to
    # a client of Dask, the chunks go straight there.
    if hasattr(backend, "client"):
        with backend.retrieval_context():  # this may itself be a task of Dask
            yield from _on_dask(backend, plan, arrays, runs)
        return
    threads = isinstance(backend, ThreadingBackend | SequentialBackend)
    workers = max(1, joblib.effective_n_jobs(n_jobs))
    tasks = _Tasks(plan, arrays, runs, workers, threads)
    if not threads:
        yield from _by_joblib(backend, tasks, workers, n_jobs)
    elif workers > 1:
        yield from _on_threads(tasks, workers)
    else:
        while tasks:
            for task in tasks:
                chunk = run_chunk(*task)
                tasks.learn(chunk)
                yield chunk


def _on_threads(tasks: _Tasks, workers: int) -> Iterator[_Chunk]:
    with ThreadPoolExecutor(workers) as executor:
        pending = {executor.submit(run_chunk, *task) for task in islice(tasks, 2 * workers)}
        try:
            while pending:
                # with a limit: Windows does not hear Ctrl-C while it waits without one
                done, pending = wait(pending, 0.5, FIRST_COMPLETED)
                for future in done:
                    chunk = future.result()
                    tasks.learn(chunk)
                    more = islice(tasks, 2 * workers - len(pending))
                    pending |= {executor.submit(run_chunk, *task) for task in more}
                    yield chunk
        finally:
            for future in pending:
                future.cancel()


def _on_dask(backend: Any, plan: _Plan, arrays: list[Array], runs: Ints) -> Iterator[_Chunk]:
    """Yield the chunks of a Dask cluster; the data are sent again if they are lost."""
    client, workers = backend.client, max(1, backend.effective_n_jobs(-1))
    for attempts_left in reversed(range(DASK_ATTEMPTS)):
        # To every worker, under names of their own: the same data of a call before may be on their
        # way out. (Some seconds later Dask drops copies that no task waits for, and may then lose
        # the last one with a worker; it cannot make it again as it does with results.)
        sent = client.scatter(arrays, broadcast=True, hash=False)
        tasks = _Tasks(plan, sent, runs, workers, False)
        try:
            for chunk in _until_cancelled(backend, tasks, 2 * workers):
                runs = np.setdiff1d(runs, chunk.runs, assume_unique=True)
                yield chunk
        except CancelledError:
            if not attempts_left:
                raise
        else:
            return


def _until_cancelled(backend: Any, tasks: _Tasks, ahead: int) -> Iterator[_Chunk]:
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
            tasks.learn(chunk)
            pending.update(submit(ahead - pending.count()))
            yield chunk
    finally:
        client.cancel(list(pending.futures))


def _by_joblib(backend: Any, tasks: _Tasks, workers: int, n_jobs: int | None) -> Iterator[_Chunk]:
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
                tasks.learn(chunk)
                yield chunk


class _Bar:
    """A tqdm bar over the runs, or nothing."""

    def __init__(self, total: int, done: int, wanted: bool) -> None:
        self._bar: Any = None
        if wanted:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, initial=done, unit="run")

    def __enter__(self) -> Callable[[int], None]:
        return self._update

    def _update(self, number: int) -> None:
        if self._bar is not None:
            self._bar.update(number)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


class _Table:
    """The results of all runs, filled chunk by chunk."""

    def __init__(self, plan: _Plan, n: int) -> None:
        c, h, b, t = plan.widths
        self.n = n
        self.raising = plan.raising
        self.done = np.zeros(n, dtype=np.bool_)
        self.counts = np.zeros((2, n), dtype=np.int64)
        self.criteria = np.full((n, c), -1, dtype=np.int64)
        # written by `put` before anybody reads them
        self.histories = np.empty((n, h, b))
        self.bounds = np.empty((n, b))
        self.errors = np.empty((n, t))
        self.messages: dict[int, str] = {}

    @property
    def n_done(self) -> int:
        return int(self.done.sum())

    def missing(self) -> Ints:
        return np.flatnonzero(~self.done)

    def put(self, chunk: _Chunk) -> None:
        """Take a chunk; runs beyond the last one wanted are left out."""
        runs = chunk.runs
        if runs.ndim != 1 or (runs < 0).any():
            raise ValueError("a chunk has no run numbers")
        wanted: Any = runs < self.n
        if self.raising and chunk.messages:
            # done again, so that the exception itself comes up
            wanted &= ~np.isin(runs, [run for run, _ in chunk.messages])
        to: Any = runs[wanted]
        if wanted.all() and (np.diff(runs) == 1).all():
            to, wanted = slice(runs[0], runs[-1] + 1), slice(None)  # one copy instead of two
        self.counts[:, to] = chunk.counts[:, wanted]
        self.criteria[to] = chunk.criteria[wanted]
        self.histories[to] = chunk.histories[wanted]
        self.bounds[to] = chunk.bounds[wanted]
        self.errors[to] = chunk.errors[wanted]
        self.done[to] = True
        self.messages.update((run, text) for run, text in chunk.messages if run < self.n)


# The result -------------------------------------------------------------------------------------


class Simulation:
    """What came of many learning runs; entry i of each array is run i.

    Attributes
    ----------
    n_labels : array of int
        Labels that the campaign used: up to the stop, or all it could have; 0 if the run failed.
    stopped : array of bool
        Whether the criterion stopped.
    stopped_at : array of int
        Labels at the stop, -1 if there was none.
    bounds : array, shape (n_runs, max_labels - initial), or None
        Bounds of the labels after the initial ones, NaN behind the last one.
    errors : array, shape (n_runs, max_labels), or None
        Expected loss on the test set after 1, 2, ... labels.
    eta : float or None
        Error that counts as converged: mean + 2 standard deviations of the final errors.
    t_opt : array of int or None
        First number of labels with an error of at most `eta`, the last one if there is none; -1 if
        the run failed.
    e_stop : array of int or None
        ``|n_labels - t_opt|``, the paper's measure; -1 if the run failed.
    criteria : tuple of criteria
        The further ones.
    criteria_stops : array of int, shape (n_runs, n_criteria)
        Labels at the stop of each, -1 if there was none.
    failures : list of Failure
        Runs that failed, with seed and message.
    ok : array of bool
        Which runs did not fail.
    n_runs, pool_size, initial, max_labels, seed : int
        As given, or by default.
    """

    def __init__(self, plan: _Plan, table: _Table, n_rows: int, keep: bool) -> None:
        self._plan = plan
        self._n_rows = n_rows
        self.n_runs = table.n
        self.pool_size, self.initial = plan.pool_size, plan.initial
        self.max_labels, self.seed = plan.max_labels, plan.seed
        self.criteria = plan.criteria
        self.failures = [
            Failure(run, f"SeedSequence({plan.seed}, spawn_key=({run},))", message)
            for run, message in sorted(table.messages.items())
        ]
        self.ok: NDArray[np.bool_] = np.ones(table.n, dtype=np.bool_)
        self.ok[[failure.run for failure in self.failures]] = False
        self.stopped_at: Ints = table.counts[1]
        self.stopped: NDArray[np.bool_] = self.stopped_at >= 0
        self.n_labels: Ints = np.where(self.stopped, self.stopped_at, table.counts[0])
        self.criteria_stops: Ints = table.criteria
        self._histories = table.histories if keep else None
        self.bounds: Array | None = table.bounds if keep else None
        self.errors: Array | None = table.errors if keep and plan.tested else None
        self.eta: float | None = None
        self.t_opt: Ints | None = None
        self.e_stop: Ints | None = None
        self._at_stop: Array | None = None
        if plan.tested:
            self._compare(table.errors)

    def _compare(self, errors: Array) -> None:
        """Compute how far the stops are from where the error had converged."""
        ok, t = self.ok, errors.shape[1]
        final = errors[ok, -1]
        self.eta = float(final.mean() + 2 * final.std()) if len(final) else math.nan
        t_opt = np.full(self.n_runs, -1, dtype=np.int64)
        # by blocks: the mask of all runs at once would take as much memory as an eighth of them
        for low in range(0, self.n_runs, CHUNK_RUNS):
            good = errors[low : low + CHUNK_RUNS] <= self.eta
            t_opt[low : low + CHUNK_RUNS] = np.where(good.any(axis=1), good.argmax(axis=1) + 1, t)
        self.t_opt = np.where(ok, t_opt, -1)
        self.e_stop = np.where(ok, np.abs(self.n_labels - t_opt), -1)
        last = np.maximum(self.n_labels, 1) - 1
        self._at_stop = errors[np.arange(self.n_runs), last]

    def history(self, j: int) -> Array:
        """Return the numbers that a further criterion went by.

        Parameters
        ----------
        j : int
            Which of `criteria`.

        Returns
        -------
        array, shape (n_runs, max_labels - initial)
            One number for each label after the initial ones, NaN where there is none; the bounds,
            if it is one that goes by them.
        """
        number = check.count("j", j)
        if number >= len(self.criteria):
            raise ValueError(f"`j` must be in [0, {len(self.criteria)}), got {number}")
        if self.bounds is None or self._histories is None:
            raise ValueError("histories are not kept with keep='summary'")
        measured = self._plan.measured
        if number not in measured:
            return self.bounds
        found: Array = self._histories[:, measured.index(number)]
        return found

    def pool(self, run: int) -> Ints:
        """Return the rows of a run's pool, the first labels first.

        Parameters
        ----------
        run : int
            Number of the run.

        Returns
        -------
        array of int
            Rows of `X`; ``learn(X[rows], y[rows], initial=range(initial), ...)`` is the run. With
            a callable, rows of what it makes of the run's seed, if that has as many rows as the
            first run's.
        """
        number = check.count("run", run)
        if number >= self.n_runs:
            raise ValueError(f"`run` must be in [0, {self.n_runs}), got {number}")
        rows: Ints = _pools(self._plan, np.array([number]), self._n_rows)[0]
        return rows

    def summary(self) -> dict[str, Any]:
        """Return the means over the runs that did not fail, with their standard errors.

        Returns
        -------
        dict
            ``n_runs``, ``n_failed``, ``stopped`` (share of the runs) and, each with its standard
            error under the name with ``_se``: ``n_labels``, ``savings`` (share of the pool that is
            not labelled), ``t_opt``, ``e_stop``, ``error`` (at the stop). ``criteria`` has
            ``criterion``, ``stopped``, ``n_labels`` and ``e_stop`` of each further criterion.
        """
        ok = self.ok
        found: dict[str, Any] = {
            "n_runs": self.n_runs,
            "n_failed": len(self.failures),
            "stopped": _mean(self.stopped[ok]),
        }
        columns: dict[str, Any] = {
            "n_labels": self.n_labels,
            "savings": 1 - self.n_labels / self.pool_size,
            "t_opt": self.t_opt,
            "e_stop": self.e_stop,
            "error": self._at_stop,
        }
        for name, values in columns.items():
            if values is not None:
                found[name], found[f"{name}_se"] = _mean(values[ok]), _standard_error(values[ok])
        found["criteria"] = []
        for j, criterion in enumerate(self.criteria):
            stops = self.criteria_stops[ok, j]
            labels = np.where(stops < 0, self.max_labels, stops)
            row: dict[str, Any] = {"criterion": repr(criterion), "stopped": _mean(stops >= 0)}
            row |= {"n_labels": _mean(labels), "n_labels_se": _standard_error(labels)}
            if self.t_opt is not None:
                misses = np.abs(labels - self.t_opt[ok])
                row |= {"e_stop": _mean(misses), "e_stop_se": _standard_error(misses)}
            found["criteria"].append(row)
        return found

    def _columns(self) -> dict[str, list[Any]]:
        """Return a table with one row a run; None where there is nothing."""
        columns: dict[str, list[Any]] = {
            "run": list(range(self.n_runs)),
            "n_labels": self.n_labels.tolist(),
            "stopped": self.stopped.tolist(),
            "stopped_at": _or_none(self.stopped_at),
        }
        if self.t_opt is not None and self.e_stop is not None and self._at_stop is not None:
            columns["t_opt"] = _or_none(self.t_opt)
            columns["e_stop"] = _or_none(self.e_stop)
            columns["error"] = [None if math.isnan(v) else v for v in self._at_stop.tolist()]
        for j in range(len(self.criteria)):
            columns[f"criterion_{j + 1}"] = _or_none(self.criteria_stops[:, j])
        messages: list[str | None] = [None] * self.n_runs
        for failure in self.failures:
            messages[failure.run] = failure.message
        columns["failure"] = messages
        return columns

    def to_pandas(self) -> Any:
        """Return a table with one row a run.

        Returns
        -------
        pandas.DataFrame
            Columns ``n_labels``, ``stopped``, ``stopped_at``, with a test set ``t_opt``, ``e_stop``
            and ``error`` (at the stop), ``criterion_1``... for further criteria, and ``failure``.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install pandas") from None
        columns: dict[str, Any] = {}
        for name, values in self._columns().items():
            whole = name in ("stopped_at", "t_opt", "e_stop") or name.startswith("criterion_")
            columns[name] = pd.array(values, dtype="Int64") if whole else values
        return pd.DataFrame(columns).set_index("run")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_pandas` to a file; numbers are written to their last digit.

        Parameters
        ----------
        path : path
            File to write.
        """
        columns = self._columns()
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors of all runs against the labels, and where they stopped.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the stops.
        """
        from fastal.plot_simulation import plot_simulation

        return plot_simulation(self, ax)

    def __repr__(self) -> str:
        said = self.summary()
        lines = [f"Simulation of {self.n_runs} runs, pools of {self.pool_size}"]
        if self.failures:
            first = self.failures[0]
            lines.append(f"  failed    {len(self.failures)}; run {first.run}: {first.message}")
        if len(self.failures) < self.n_runs:
            lines.append(f"  stopped   {said['stopped']:.1%}")
            lines.append(f"  labels    {said['n_labels']:.2f} ± {said['n_labels_se']:.2f}")
            if self.t_opt is not None:
                lines.append(f"  t_opt     {said['t_opt']:.2f} ± {said['t_opt_se']:.2f}")
                lines.append(f"  e_stop    {said['e_stop']:.2f} ± {said['e_stop_se']:.2f}")
            for row in said["criteria"]:
                text = f"  {row['criterion']}: {row['n_labels']:.2f} labels"
                if "e_stop" in row:
                    text += f", e_stop {row['e_stop']:.2f} ± {row['e_stop_se']:.2f}"
                lines.append(text)
        return "\n".join(lines)


def _or_none(values: Ints) -> list[int | None]:
    return [None if value < 0 else value for value in values.tolist()]


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _standard_error(values: Any) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
