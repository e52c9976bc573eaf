"""A chunk of simulated runs: what each run does, its numbers, and their computation.

`run_chunk` works in this process, in a thread without the GIL, or in a worker of a cluster.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _selection
from fastal import _validation as check
from fastal._core import eager as eager_core
from fastal._core import simulation as core
from fastal._criterion import Criterion, Measured
from fastal._record import Record, prior_loss
from fastal._threads import one_blas_thread
from fastal.gp import GaussianProcess
from fastal.stopper import Stopper

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Make = Callable[[np.random.Generator], tuple[ArrayLike, ArrayLike]]

# Labels between two moments in which a run over a large pool can be interrupted.
STEP = 64


@dataclass(frozen=True)
class Plan:
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


class Chunk(NamedTuple):
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
    def empty(cls, plan: Plan, runs: Ints) -> Chunk:
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

    def first(self, done: int) -> Chunk:
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
            left=as_spans(self.runs[done:]),
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
    ) -> Chunk:
        runs, counts, criteria, histories, errors, shape, lengths, values = arrays
        bounds = np.full(shape, np.nan)
        bounds[np.arange(bounds.shape[1]) < lengths[:, None]] = values
        return cls(runs, counts, criteria, histories, bounds, errors, messages, *more)

    def __reduce__(self) -> tuple[Any, ...]:  # on its way back from another process
        return Chunk._of_arrays, (self._arrays(), self.messages, self.seconds, self.left)

    def pack(self) -> bytes:
        """Return the chunk as bytes, for the store."""
        file = io.BytesIO()
        for array in self._arrays():
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        text = "\0".join(f"{run} {message}" for run, message in self.messages)
        file.write(text.encode("utf-8", "backslashreplace"))
        return file.getvalue()

    @classmethod
    def unpack(cls, data: bytes) -> Chunk:
        """Return the chunk that `pack` wrote."""
        file = io.BytesIO(data)
        arrays = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(8)]
        messages: list[tuple[int, str]] = []
        for line in filter(None, file.read().decode().split("\0")):
            run, _, message = line.partition(" ")
            messages.append((int(run), message))
        return cls._of_arrays(arrays, messages, 0.0)


def _is_measured(criterion: Criterion) -> bool:
    """Whether a criterion goes by numbers of its own, not by bounds."""
    return isinstance(criterion, Measured) and criterion._takes != Criterion._takes


def made_data(make: Make, sequence: Any, features: int | None) -> tuple[Array, Array]:
    made = make(np.random.default_rng(sequence))
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise TypeError(f"`X` must return a pair of inputs and labels, got {check.shown(made)}")
    points = check.points("X", made[0], features)
    return points, check.vector("y", made[1], len(points))


def run_sequence(seed: int, run: int) -> np.random.SeedSequence:
    """Return ``SeedSequence(seed).spawn(run + 1)[run]``, without making the others."""
    return np.random.SeedSequence(seed, spawn_key=(run,))


def draw_pools(plan: Plan, runs: Ints, n: int) -> Ints:
    """Return the rows of some runs' pools; the first `initial` of each are labelled first."""
    entropy = [plan.seed >> shift & 0xFFFFFFFF for shift in range(0, plan.seed.bit_length(), 32)]
    entropy += [0] * (4 - len(entropy))
    words = np.empty(len(runs), dtype=np.uint64)
    core.run_words(np.array(entropy, dtype=np.uint64), runs, words)
    rows = np.empty((len(words), plan.pool_size), dtype=np.int64)
    core.draw_rows(words, np.arange(n), np.empty(plan.pool_size, dtype=np.int64), rows)
    return rows


def as_spans(runs: Ints) -> tuple[tuple[int, int], ...]:
    """Return numbers as ranges.

    An array would be large enough for joblib to put it on one Dask worker, and lose it with it.
    """
    ends = np.flatnonzero(np.diff(runs) != 1) + 1
    parts = np.split(runs, ends) if len(runs) else []
    return tuple((int(part[0]), int(part[-1]) + 1) for part in parts)


def run_chunk(
    plan: Plan,
    Z: Array,
    y: Array,
    test_Z: Array,
    test_y: Array,
    seconds: float,
    spans: tuple[tuple[int, int], ...],
) -> Chunk:
    """Compute some runs, as many as there is time for and at least one.

    The arrays are arguments of their own, so that Dask sends them once.
    """
    begin = perf_counter()
    chunk = Chunk.empty(plan, np.concatenate([np.arange(low, high) for low, high in spans]))
    worker = _Worker(plan)
    done, size = 0, 1
    with one_blas_thread():
        while size > 0:
            here = slice(done, done + size)
            if plan.make is None:
                rows = draw_pools(plan, chunk.runs[here], len(y))
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
    worker: _Worker, plan: Plan, test_Z: Array, test_y: Array, chunk: Chunk, here: slice
) -> None:
    """Compute the runs of a callable, each with data of its own."""
    for place, run in enumerate(chunk.runs[here].tolist(), here.start):
        try:
            assert plan.make is not None
            points, y = made_data(plan.make, run_sequence(plan.seed, run), len(test_Z))
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
        rows = draw_pools(plan, chunk.runs[place : place + 1], len(y))
        test = (Z, y) if plan.rest else (test_Z, test_y)
        worker.run(Z, y, rows, *test, chunk, place)


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\0", " ")


class _Worker:
    """The buffers of one chunk."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        # a criterion of another kind judges the bounds afterwards
        self.stopper = plan.stopper.copy()
        # nobody else has this stopper: compiled code may have its tracker for good
        self.tracker = self.stopper._tracker.address if isinstance(self.stopper, Stopper) else 0
        self.whole = plan.whole or not self.tracker
        self._pool: Any = None
        self._work: Any = None
        self._shape: tuple[int, int] | None = None
        self._labels = np.empty(plan.pool_size)
        self._judges = [criterion.copy() for criterion in plan.criteria]

    def run(
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: Chunk,
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
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: Chunk,
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

    def _failed(self, chunk: Chunk, place: int, status: int) -> None:
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
        self, Z: Array, y: Array, rows: Ints, order: Ints, test_y: Array, chunk: Chunk, place: int
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
