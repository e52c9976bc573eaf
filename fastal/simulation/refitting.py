"""Runs of a simulation whose hyper-parameters are learnt on the way: one learner each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastal._types import Array, Ints
from fastal.criteria.finished_run import Record
from fastal.learning.simulated import simulated_run
from fastal.simulation.plan import run_sequence
from fastal.stopping.campaigns import rule_of
from fastal.stopping.replay import measures_in, stop_in

if TYPE_CHECKING:
    from fastal.learning.simulated import SimulatedRun
    from fastal.simulation.chunk import Chunk
    from fastal.simulation.plan import Plan
    from fastal.stopping.criterion import Criterion


class RefittingWorker:
    """The criteria of one chunk; inputs are in their own units."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.criterion = plan.criterion.copy()
        self.criteria = [criterion.copy() for criterion in plan.criteria]

    def run(
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: Chunk,
        place: int,
    ) -> None:  # fmt: skip
        """Compute the runs with these pools; they stand in the chunk from `place` on."""
        for r in range(len(rows)):
            run = int(chunk.runs[place + r])
            try:
                self._run(Z, y, rows[r], test_Z, test_y, chunk, place + r, run)
            except (ValueError, np.linalg.LinAlgError) as error:
                if self.plan.raising:
                    error.add_note(f"in run {run} of the simulation")
                    raise
                chunk.fail(place + r, error)

    def _run(
        self, Z: Array, y: Array, rows: Ints, test_Z: Array, test_y: Array, chunk: Chunk,
        place: int, run: int,
    ) -> None:  # fmt: skip
        plan = self.plan
        assert plan.refit is not None
        compiled = rule_of(self.criterion) is not None
        points = np.ascontiguousarray(Z[:, rows].T)
        test = None
        if plan.has_test:
            left = np.ones(len(test_y), dtype=np.bool_)
            if plan.test_on_rest:
                left[rows] = False
            test = np.ascontiguousarray(test_Z[:, left].T), test_y[left]
        done = simulated_run(
            points,
            y[rows],
            gp=plan.gp,
            criterion=self.criterion if compiled else None,
            refit=plan.refit,
            initial=plan.initial,
            max_labels=plan.max_labels,
            acquisition=plan.acquisition,
            seed=int(run_sequence(plan.seed, run).generate_state(1)[0]),
            past_stop=plan.runs_past_stop or not compiled,
            test=test,
        )
        at = done.stopped_at
        record = Finished(points, y[rows], plan.initial, done)
        if not compiled:
            at = stop_in(self.criterion, record, record.measures_of(self.criterion))
        n, bounds = len(done.order), done.bounds
        if at is not None and not plan.runs_past_stop:
            n, bounds = at + plan.initial, bounds[:at]
        chunk.counts[0, place] = n
        chunk.counts[1, place] = -1 if at is None else at + plan.initial
        chunk.bounds[place, : len(bounds)] = bounds
        if done.errors is not None:
            chunk.errors[place, :n], chunk.rmse[place, :n] = done.errors
            record.losses = done.errors.loss
        for j, criterion in enumerate(self.criteria):
            measures = record.measures_of(criterion)
            at = stop_in(criterion, record, measures)
            chunk.criteria[place, j] = -1 if at is None else at + plan.initial
            if plan.keep_bounds and j in plan.measured:
                chunk.histories[place, plan.measured.index(j), : len(bounds)] = measures


class Finished(Record):
    """A finished run with fits on the way; what is said of one model is said of the last one."""

    def __init__(self, points: Array, y: Array, n_initial: int, done: SimulatedRun) -> None:
        gp = done.fits[-1].prior
        super().__init__(
            gp, gp.prior.scale("X", points), done.order, y[done.order], n_initial, done.bounds
        )
        self.points, self.refits = points, done.fits

    def measures_of(self, criterion: Criterion) -> Any:
        """Return the measures of a criterion, each under the fit of its moment."""
        whole = measures_in(criterion, self)
        if whole is None:
            return whole
        measures = np.full(len(self.bounds), np.nan)
        first = self.n_initial
        for number, fit in enumerate(self.refits):
            # a criterion looks at a label before the next fit is made
            end = len(self.order)
            if number + 1 < len(self.refits):
                end = self.refits[number + 1].n_labels
            begin = max(fit.n_labels, first)
            if begin >= end:
                continue
            part = Record(
                fit.prior, fit.prior.prior.scale("X", self.points), self.order[:end],
                self.y[:end], first, fit.bounds[: end - first],
            )  # fmt: skip
            if self.losses is not None:
                part.losses = self.losses[:end]
            found = measures_in(criterion, part)
            assert found is not None
            measures[begin - first : end - first] = found[begin - first :]
        return measures
