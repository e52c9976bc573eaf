"""The selection over rows on a Dask cluster: candidates here, everything else on the workers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastal._core import selection_lazy
from fastal._core.chunks import CHUNK, new_chunk
from fastal._core.selection_candidates import (
    ROUND,
    accept_candidate,
    best_candidate,
    order_heap,
    place_of,
    run_candidates,
)
from fastal._core.selection_lazy import COMPLETE, HEAP, PANEL
from fastal._threads import one_blas_thread
from fastal._types import Array, Bools, Ints
from fastal.learning.distributed.rows import Behind, Panel, Question, Root
from fastal.learning.gaussian import GaussianSelection

if TYPE_CHECKING:
    from fastal.learning.distributed.pool import DaskPool
    from fastal.models.gp import GaussianProcess

# Candidates of a round, of all workers together: as many as these bytes hold, since short rows cost
# little and more candidates mean fewer rounds; but no fewer and no more than this, and never more
# than this share of the pool.
ROUND_BYTES = 8_000_000
CANDIDATES = 4096
MOST_CANDIDATES = 32_768
LARGEST_SHARE = 4

# Rows that a worker may bring up to date for each of its candidates, within a panel.
REFINED = 16


class DaskSelection(GaussianSelection):
    """The lazy selection with its rows on workers.

    A round asks every worker for its rows of largest known variance; the choice among them is the
    choice among all as long as it beats the best row that stayed behind. Panels end where they end
    on one machine, and all numbers are computed by the same kernels in the same blocks: choices and
    bounds are those of `LazySelection`, to the last digit on the same processors.

    All that workers know can be sent again: `panels` are kept here. A worker that is new, or worked
    for another selection meanwhile, is brought up to date when it is asked.
    """

    # Memory for candidates, and whether another selection may look at it.
    _room: tuple[Array, ...] = ()
    _room_is_mine = False

    def __init__(
        self, gp: GaussianProcess, points: DaskPool, order: Ints, n_initial: int, capacity: int
    ) -> None:
        self.points, self.root = points, _root(gp)
        self.panels: list[Panel] = []
        self._told = 0  # how many of them the workers have heard of
        self.names: list[bytes] = []
        self.skipped: set[int] = set()
        self.rounds = 0
        self.bytes_sent = 0  # what arrays and names take, to and from all workers
        self.bytes_received = 0
        nothing = np.empty((points.shape[1], 0))
        super().__init__(gp, nothing, order, n_initial, min(capacity, CHUNK))
        self.n = len(points)
        self._no_candidates()

    def _no_candidates(self) -> None:
        """Nothing beats what is not known."""
        self._limit: tuple[float, int] = np.inf, -1
        self._here: Ints = np.empty(0, dtype=np.int64)
        self._chunks: tuple[Array, ...] = ()

    def _new_state(self, capacity: int) -> Any:
        return selection_lazy.new_pool(self.Z, capacity, self.gp.amplitude)

    def _moved(self, new: Any, t: int) -> dict[str, Array]:
        for name in ("rows", "Zl"):
            getattr(new, name)[:, :t] = getattr(self.state, name)[:, :t]
        return {"rows": new.rows, "products": new.products, "Zl": new.Zl}

    def reserve(self, capacity: int) -> None:
        """Do nothing: room comes with the labels."""

    def _make_room(self) -> None:
        t = self.n_labels
        if t >= self.capacity:
            self._reserve(max(t + CHUNK, self.capacity * 3 // 2))

    # a round ---------------------------------------------------------------------------------

    def _round(self, wanted: Ints, count: int) -> None:
        """Get new candidates: the best ones, and rows that are wanted in any case."""
        self.settle()
        pool, t = self.points, self.n_labels
        pool.keep(self.labels)
        parts = pool.n_parts
        each = -(-count // parts)
        panel = self._open_panel()
        skipped = np.array(sorted(self.skipped), dtype=np.int64)
        # the last panel goes with the first question of all that need it
        news = self.panels[-1] if len(self.panels) > self._told else None
        answers: list[Any] = [None] * parts
        todo = list(range(parts))
        while todo:
            question = Question(
                self.root, self.names, news, panel, skipped, wanted, each, REFINED * each
            )
            found = pool.ask(todo, "candidates", [(question,)] * len(todo))
            self.bytes_sent += len(todo) * question.nbytes
            behind = {}
            for number, answer in zip(todo, found, strict=True):
                if isinstance(answer, Behind):
                    behind[number] = answer.known
                else:
                    answers[number] = answer
            self._catch_up(behind)
            todo, news = list(behind), None
        self._told = len(self.panels)
        self.rounds += 1
        self.bytes_received += sum(answer.nbytes for answer in answers)
        self._take(answers, t)

    def _catch_up(self, behind: dict[int, int]) -> None:
        """Send the panels that workers do not know."""
        while behind:
            numbers = list(behind)
            asked = [
                (self.root, self.names[: behind[k] + 1], self.panels[behind[k]]) for k in numbers
            ]
            found = self.points.ask(numbers, "extend", asked)
            self.bytes_sent += sum(panel.nbytes + 32 * len(names) for _, names, panel in asked)
            behind = {
                number: answer.known
                for number, answer in zip(numbers, found, strict=True)
                if answer.known < len(self.names)
            }

    def _take(self, answers: list[Any], t: int) -> None:
        """Make a pool of the candidates."""
        self._no_candidates()
        answers = [answer for answer in answers if answer is not None]
        here = np.concatenate([answer.row for answer in answers])
        order = np.argsort(here)  # of equal variances the lower row comes first
        here = here[order]
        X = np.concatenate([answer.X for answer in answers])[order]
        var = np.concatenate([answer.var for answer in answers])[order]
        level = np.concatenate([answer.level for answer in answers])[order]
        complete = int(self.state.counters[COMPLETE])
        chunks = self._room_for(len(here), complete // CHUNK + 1)
        V = np.concatenate([answer.V for answer in answers])[order]
        for c, chunk in enumerate(chunks):
            part = V[:, c * CHUNK : (c + 1) * CHUNK]
            chunk[:, : part.shape[1]] = part
        taken = np.isin(here, [*self.labels.tolist(), *self.skipped])
        heap = np.arange(len(here))
        order_heap(heap, var, len(heap))
        self.points.come_near(here, X)
        self.state = self.state._replace(
            Z=self.gp.prior.scale("X", X),
            table=np.array([chunk.ctypes.data for chunk in chunks], dtype=np.int64),
            base=var.copy(),
            var=var,
            level=level,
            taken=taken,
            heap=heap,
        )
        self.state.counters[HEAP] = len(heap)
        self._chunks, self._here = chunks, here
        limit, row = max((answer.limit, -answer.limit_row) for answer in answers)
        self._limit = limit, -row

    def _room_for(self, rows: int, count: int) -> tuple[Array, ...]:
        """Return chunks for candidates: those of the round before, if nobody else looks at them.

        New memory costs more than what is written to it.
        """
        room = self._room if self._room_is_mine else ()
        if any(len(chunk) < rows for chunk in room):
            room = ()
        room += tuple(new_chunk(rows) for _ in range(count - len(room)))
        self._room, self._room_is_mine = room, True
        return tuple(chunk[:rows] for chunk in room[:count])

    def frozen(self) -> Self:
        """Return another one that later labels do not change."""
        new = super().frozen()
        self._room_is_mine = new._room_is_mine = False
        return new

    def _open_panel(self) -> Panel:
        """Return the labels since the last panel that is complete."""
        s = self.state
        first, last = int(s.counters[COMPLETE]), self.n_labels
        rows = np.tril(s.rows[: last - first, :last], first)  # the rest is arbitrary
        labels = s.labels[first:last].copy()
        return Panel(first, labels, np.ascontiguousarray(s.Zl[:, first:last]), rows)

    def settle(self) -> None:
        """Close a full panel; workers complete it when they are asked the next time."""
        counters = self.state.counters
        if not self.n_labels or not selection_lazy.is_full(counters):
            return
        panel = self._open_panel()
        before = self.names[len(self.panels) - 1] if self.panels else repr(self.root).encode()
        name = hashlib.sha256(before)
        for array in (panel.labels, panel.Z, panel.rows):
            name.update(array.tobytes())
        last = panel.first + len(panel.labels)
        ended = sum(len(one.labels) for one in self.panels)
        if ended < last:
            self.names = [*self.names, name.digest()]
            self.panels = [*self.panels, panel]
        self._no_candidates()
        counters[COMPLETE] = last

    # the protocol ----------------------------------------------------------------------------

    @property
    def unlabelled(self) -> Bools:
        """Which points have no label."""
        left = np.ones(self.n, dtype=np.bool_)
        left[self.labels] = False
        left[list(self.skipped)] = False
        return left

    def skip(self, index: int) -> None:
        """Never choose a point."""
        self.skipped = self.skipped | {index}
        place = place_of(self._here, index)
        if place >= 0:
            self.state.taken[place] = True

    def __getstate__(self) -> dict[str, Any]:
        # a copy gets candidates of its own: these lie at addresses
        none = self.frozen()
        none._no_candidates()
        none._room = ()
        none.state = none.state._replace(table=np.empty(0, dtype=np.int64))
        return vars(none)

    def _best(self) -> int:
        """Return the best point by its place among the candidates; -1 if none is left."""
        kind, amplitude = self.root.kind, self.root.amplitude
        with one_blas_thread():
            place = best_candidate(kind, amplitude, self.state, self._here, *self._limit)
            if place < 0 and self.n_labels + len(self.skipped - set(self.labels.tolist())) < self.n:
                self._round(np.empty(0, dtype=np.int64), self._count())
                place = best_candidate(kind, amplitude, self.state, self._here, *self._limit)
        return int(place)

    def best(self) -> int:
        """Return the unlabelled point of largest variance, the lowest index among equals."""
        place = self._best()
        return int(self._here[place]) if place >= 0 else -1

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        place = self._best()
        return max(0.0, float(self.state.var[place])) if place >= 0 else 0.0

    def _accept(self, index: int, y: float, noise: float) -> tuple[int, float]:
        self._make_room()
        place = place_of(self._here, index)
        if place < 0:
            self._round(np.array([index]), self._count_beyond(self.n_labels + 1))
            place = place_of(self._here, index)
        gp = self.gp
        status: int
        status, r = accept_candidate(
            gp.prior.kind, gp.amplitude, gp.mean, noise, self.state, self._here, place, y
        )
        if status == 0:
            self.points.keep(np.array([index]))
        return status, r

    def _count_beyond(self, t: int) -> int:
        """Return how many candidates are needed besides those that are wanted."""
        return 0 if t < len(self.order) else self._count()

    def _count(self) -> int:
        """Return how many candidates a round has now."""
        each = 8 * (self.n_labels + self.points.shape[1] + 3)
        count = min(MOST_CANDIDATES, max(CANDIDATES, ROUND_BYTES // each))
        return int(max(1, min(count, self.n // LARGEST_SHARE)))

    def _run(self, y: Array, target: int, rule: int, past_stop: bool, threads: int) -> Any:
        gp = self.gp
        with one_blas_thread():
            while True:
                self._make_room()
                room = min(target, self.capacity)
                reason, status = run_candidates(
                    gp.prior.kind, gp.amplitude, gp.mean, gp.noise, self.state, self._here, y,
                    self.order, self.n_initial, room, rule, past_stop, *self._limit,
                )  # fmt: skip
                if reason == ROUND:
                    t = self.n_labels
                    wanted = self.order[t : min(target, t + PANEL)]
                    self._round(wanted, 0 if len(wanted) else self._count())
                    continue
                self.settle()
                if reason != 0 or self.n_labels >= target:
                    self.points.keep(self.labels)
                    return reason, status

    def _label_inputs(self) -> Array:
        return np.ascontiguousarray(self.state.Zl[:, : self.n_labels])

    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        for panel in (*self.panels, self._open_panel()):
            for j, row in enumerate(panel.rows):
                t = panel.first + j
                if first <= t < last:
                    out[t - first, : t + 1] = row[: t + 1]


def _root(gp: GaussianProcess) -> Root:
    scale = gp.lengthscale
    plain = scale if isinstance(scale, float) else tuple(scale.tolist())
    return Root(gp.prior.kind, gp.amplitude, plain)
