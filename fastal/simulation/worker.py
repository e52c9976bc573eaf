"""run_chunk: computes some runs, in any thread or process."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from fastal._core import campaigns, selection_eager
from fastal._threads import one_blas_thread
from fastal._types import Array, Ints
from fastal.criteria.finished_run import Record, prior_loss
from fastal.learning import choose
from fastal.learning.failures import failure
from fastal.learning.lazy import LazySelection
from fastal.simulation.chunk import Chunk
from fastal.simulation.plan import draw_pools, made_data, run_sequence
from fastal.simulation.refitting import RefittingWorker
from fastal.stopping.campaigns import rule_of
from fastal.stopping.replay import measures_in, stop_in

if TYPE_CHECKING:
    from fastal.simulation.plan import Plan

# Labels between two moments in which a run over a large pool can be interrupted.
STEP = 64


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
    worker = _Worker(plan) if plan.refit is None else RefittingWorker(plan)
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
    rmse = chunk.rmse if plan.keep_bounds else chunk.rmse[:, :0]
    return chunk._replace(
        bounds=np.ascontiguousarray(kept),
        rmse=np.ascontiguousarray(rmse),
        seconds=perf_counter() - begin,
    )


def _run_made(
    worker: _Worker | RefittingWorker,
    plan: Plan,
    test_Z: Array,
    test_y: Array,
    chunk: Chunk,
    here: slice,
) -> None:
    """Compute the runs of a callable, each with data of its own."""
    for place, run in enumerate(chunk.runs[here].tolist(), here.start):
        try:
            assert plan.make is not None
            points, y = made_data(plan.make, run_sequence(plan.seed, run), len(test_Z))
            least = plan.pool_size + plan.test_on_rest
            if len(y) < least:
                raise ValueError(f"`X` must return at least {least} rows, got {len(y)}")
            Z = plan.scaled("X", points)
        except Exception as error:
            if plan.raising:
                error.add_note(f"in run {run} of the simulation")
                raise
            chunk.fail(place, error)
            continue
        rows = draw_pools(plan, chunk.runs[place : place + 1], len(y))
        test = (Z, y) if plan.test_on_rest else (test_Z, test_y)
        worker.run(Z, y, rows, *test, chunk, place)


class _Worker:
    """The buffers of one chunk."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        # None: the criterion evaluates the bounds afterwards
        self.criterion = plan.criterion.copy()
        self.rule = rule_of(self.criterion)
        self.past_stop = plan.runs_past_stop or self.rule is None
        self._pool: Any = None
        self._work: Any = None
        self._shape: tuple[int, int] | None = None
        self._labels = np.empty(plan.pool_size)
        self._criteria = [criterion.copy() for criterion in plan.criteria]

    def run(
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: Chunk,
        place: int,
    ) -> None:  # fmt: skip
        """Compute the runs with these pools; they stand in the chunk from `place` on."""
        plan, gp = self.plan, self.plan.known_gp
        here = slice(place, place + len(rows))
        counts = np.zeros((3, len(rows)), dtype=np.int64)
        orders = np.empty(
            (len(rows), plan.max_labels if plan.needs_evaluation else 0), dtype=np.int64
        )
        if choose.is_lazy(plan.pool_size, plan.max_labels):
            for r in range(len(rows)):
                self._run_large(
                    Z, y, rows[r], test_Z, test_y, chunk, place + r, counts[:, r], orders[r]
                )
        else:
            if self._shape != (len(Z), len(test_y)):
                self._shape = (len(Z), len(test_y))
                empty = np.empty((len(Z), plan.pool_size))
                self._pool = selection_eager.new_eager(
                    empty, plan.max_labels, gp.amplitude, gp.mean
                )
                self._work = campaigns.new_work(len(Z), plan.max_labels, len(test_y))
            # nobody else has this criterion: compiled code may borrow its state
            rule = 0 if self.rule is None else self.rule.lend()
            campaigns.run_many(
                gp.prior.kind, gp.amplitude, gp.mean, gp.noise, Z, y, rows, plan.initial,
                plan.n_ordered, rule, self.past_stop, test_Z, test_y, plan.test_on_rest,
                self._pool, self._labels,
                self._work, counts, orders, chunk.bounds[here], chunk.errors[here],
                chunk.rmse[here],
            )  # fmt: skip
            if self.rule is not None:
                self.rule.take_back()
        chunk.counts[0, here] = counts[0]
        chunk.counts[1, here] = np.where(counts[1] > 0, counts[1] + plan.initial, -1)
        for r in np.flatnonzero(counts[2]).tolist():
            self._failed(chunk, place + r, int(counts[2, r]))
        if plan.needs_evaluation:
            for r in np.flatnonzero(counts[2] == 0).tolist():
                self._evaluate(Z, y, rows[r], orders[r, : counts[0, r]], test_y, chunk, place + r)

    def _run_large(
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: Chunk,
        place: int, counts: Ints, order: Ints,
    ) -> None:  # fmt: skip
        """Compute one run over a pool that is too large for the eager selection."""
        plan, gp = self.plan, self.plan.known_gp
        selection = LazySelection(
            gp, np.ascontiguousarray(Z[:, rows]), np.arange(plan.n_ordered), plan.initial,
            plan.max_labels,
        )  # fmt: skip
        rule, labels = self.rule, y[rows]
        if rule is not None:
            rule.reset()
        try:
            while selection.n_labels < plan.max_labels and (
                self.past_stop or rule is None or not rule.stopped_at
            ):
                target = min(plan.max_labels, selection.n_labels + STEP)
                selection.run(labels, target, rule, self.past_stop, 1)
        except (np.linalg.LinAlgError, ValueError) as error:
            counts[2] = selection.n_labels + 1
            if isinstance(error, ValueError) and not isinstance(error, np.linalg.LinAlgError):
                counts[2] *= -1
            return
        counts[0] = selection.n_labels
        chunk.bounds[place, : len(selection.bounds)] = selection.bounds
        if order.size:
            order[: selection.n_labels] = selection.labels
        counts[1] = 0 if rule is None else rule.stopped_at
        if plan.has_test:
            if plan.test_on_rest:
                left = np.ones(len(test_y), dtype=np.bool_)
                left[rows] = False
                test_Z, test_y = test_Z[:, left], test_y[left]
            errors = selection.test_errors_scaled(test_Z, test_y, 1)
            chunk.errors[place], chunk.rmse[place] = errors

    def _failed(self, chunk: Chunk, place: int, status: int) -> None:
        """Record or raise what the status of a kernel means."""
        run = int(chunk.runs[place])
        error = failure(status, f" of run {run}")
        if self.plan.raising:
            raise error
        chunk.fail(place, error)

    def _evaluate(
        self, Z: Array, y: Array, rows: Ints, order: Ints, test_y: Array, chunk: Chunk, place: int
    ) -> None:
        """Let the criteria look at a finished run, as they would have at each label."""
        plan, gp = self.plan, self.plan.known_gp
        bounds = chunk.bounds[place, : len(order) - plan.initial]
        record = Record(
            gp, np.ascontiguousarray(Z[:, rows]), order, y[rows[order]], plan.initial, bounds
        )
        if plan.has_test:
            left = np.delete(test_y, rows) if plan.test_on_rest else test_y
            record.losses, record.prior_loss = chunk.errors[place], prior_loss(gp, left)
        for j, criterion in enumerate(self._criteria):
            measures = measures_in(criterion, record)
            at = stop_in(criterion, record, measures)
            chunk.criteria[place, j] = -1 if at is None else at + plan.initial
            if plan.keep_bounds and j in plan.measured:
                chunk.histories[place, plan.measured.index(j), : len(bounds)] = measures
        if self.rule is None:
            at = stop_in(self.criterion, record)
            chunk.counts[1, place] = -1 if at is None else at + plan.initial
            if at is not None and not plan.runs_past_stop:
                chunk.counts[0, place] = at + plan.initial
                bounds[at:] = np.nan
