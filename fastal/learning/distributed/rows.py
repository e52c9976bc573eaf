"""What one worker holds: some rows of the pool, and their part of the lazy selection.

Nothing is known here of the labels, only of the labelled points: panels of rows of L, each with the
hash of all up to it. The state is that of a list of panels, whoever asks, so that another selection
over the same rows, or one that looked ahead, needs only what it does not share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastal import _memory
from fastal._core import selection_lazy
from fastal._core.chunks import CHUNK, STRIDE, aligned, new_chunk
from fastal._core.selection_candidates import order_heap, top
from fastal._core.selection_lazy import COMPLETE, HEAP, LABELS, ROWS, Pool
from fastal._threads import map_blocks, one_blas_thread
from fastal._types import Array, Ints
from fastal.learning.columns import add_rows, largest, range_sum
from fastal.learning.elsewhere import block_hashes
from fastal.models.prior import scaled_inputs

# This share of a worker's rows may be brought up to date for a round in any case: a small part of
# what the panel costs, and it saves rounds.
REFINED_SHARE = 32


class Root(NamedTuple):
    """What all rows of V depend on."""

    kind: int
    amplitude: float
    lengthscale: float | tuple[float, ...]


class Panel(NamedTuple):
    """Labelled points and their rows of L, which complete entries of all rows of V."""

    first: int  # number of labels before it
    labels: Ints  # (p,) rows of the pool
    Z: Array  # (d, p) their inputs over length scales
    rows: Array  # (p, first + p) their rows of L, with the diagonal

    @property
    def nbytes(self) -> int:
        """What its arrays take."""
        return self.labels.nbytes + self.Z.nbytes + self.rows.nbytes


class Question(NamedTuple):
    """What a round asks of a worker: its rows of largest known variance, and some others."""

    root: Root
    names: list[bytes]  # hashes of the panels that are complete
    news: Panel | None  # the last of these, if it is new
    panel: Panel  # the labels since
    skipped: Ints  # rows of the pool that are never chosen
    wanted: Ints  # rows that are returned in any case
    others: int  # how many more than these
    most: int  # how many rows may be brought up to date for that

    @property
    def nbytes(self) -> int:
        """What its arrays and names take."""
        panels = self.panel.nbytes + (0 if self.news is None else self.news.nbytes)
        return panels + 32 * len(self.names) + self.skipped.nbytes + self.wanted.nbytes


class Behind(NamedTuple):
    """An answer: panels are missing, after so many that are known."""

    known: int


class Candidates(NamedTuple):
    """An answer: the rows of largest known variance, and how good the others can be."""

    row: Ints  # (m,) rows of the pool
    X: Array  # (m, d) their inputs
    V: Array  # (m, t) their rows of V, as far as `level`
    var: Array  # (m,)
    level: Ints  # (m,)
    limit: float  # the next variance; -inf if there are no others
    limit_row: int  # and whose it is

    @property
    def nbytes(self) -> int:
        """What its arrays take."""
        return sum(a.nbytes for a in (self.row, self.X, self.V, self.var, self.level))


class WorkerRows:
    """Rows of a pool on a worker; an actor.

    Parameters
    ----------
    start : int
        The first of the rows; a multiple of `ROWS`, so that blocks are the same on any number of
        workers.
    parts : list of array
        The rows, one part after the other.
    n_pool : int
        Number of rows of the whole pool.
    """

    pool: Pool
    names: list[bytes]  # of the panels that are complete
    ends: list[int]  # number of labels after each
    bases: list[Array]  # variances before each, to go back to
    labels: Ints  # of all of them
    partial: Array  # rows of L since
    skipped: Ints
    stale: bool  # whether variances are to be taken anew

    def __init__(self, start: int, parts: list[Array], n_pool: int) -> None:
        self.start, self.n_pool = start, n_pool
        self.X = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
        self.n = len(self.X)
        self.threads = _threads_of_worker()
        self.chunks: list[Array] = []
        self.root: Root | None = None

    # the rows themselves ---------------------------------------------------------------------

    def about(self) -> tuple[bytes, tuple[int, int, float] | None]:
        """Return hashes of the blocks, and the first place that is not finite with its value."""
        bad = None
        for low in range(0, self.n, 65536):
            good = np.isfinite(self.X[low : low + 65536])
            if not good.all():
                i, f = (int(k) for k in np.argwhere(~good)[0])
                bad = self.start + low + i, f, float(self.X[low + i, f])
                break
        return block_hashes(self.X), bad

    def points(self, rows: Ints) -> Array:
        """Return the inputs of some rows of the pool."""
        found: Array = self.X[rows - self.start]
        return found

    def largest(self) -> Array:
        """Return the largest absolute value of each column."""
        return largest(self.X)

    def sums(self, unit: Array, middle: Array | None, before: Array) -> Array:
        """Return sums of the columns or of their squares, see `columns.add_rows`."""
        return add_rows(self.X, unit, middle, before)

    def range_sums(
        self, ranges: list[tuple[int, int]], unit: Array, middle: Array | None
    ) -> list[Array]:
        """Return sums over ranges of rows of the pool, see `columns.range_sum`."""
        return [
            range_sum(self.X[low - self.start : high - self.start], unit, middle)
            for low, high in ranges
        ]

    # the selection ---------------------------------------------------------------------------

    def extend(self, root: Root, names: list[bytes], panel: Panel) -> Behind:
        """Take one more panel, the last one of the names; return how many of them are known."""
        self._open(root)
        known = self._known(names)
        if known != len(names) - 1:
            return Behind(known)
        self._go_back(known)
        first, p = panel.first, len(panel.labels)
        self._write(panel)
        s = self.pool
        with one_blas_thread():
            selection_lazy.prepare_panel(s.rows, s.products, first, first + p)
            self.bases.append(s.base.copy())

            def block(low: int) -> None:
                selection_lazy.complete_rows(
                    root.kind, root.amplitude, s.Z, s.Zl, s.table, s.products, first, first + p,
                    low, min(self.n, low + ROWS), s.base, s.base,
                )  # fmt: skip

            map_blocks(block, range(0, self.n, ROWS), self.threads)
        self.names.append(names[-1])
        self.ends.append(first + p)
        self.labels = np.r_[self.labels, panel.labels]
        s.counters[COMPLETE] = first + p
        self.stale = True
        return Behind(len(self.names))

    def candidates(self, asked: Question) -> Candidates | Behind:
        """Return the rows of largest known variance and those that are wanted."""
        root, names, news, panel, skipped, wanted, others, most = asked
        self._open(root)
        known = self._known(names)
        if known == len(names) - 1 and news is not None:
            known = self.extend(root, names, news).known
        if known < len(names):
            return Behind(known)
        self._go_back(known)
        self._write(panel)
        s, t = self.pool, panel.first + len(panel.labels)
        seen = panel.rows[: len(self.partial), : self.partial.shape[1]]
        if (
            self.stale
            or not np.array_equal(self.partial, seen)
            or not np.isin(self.skipped, skipped).all()
        ):
            self._refresh(panel.first)
        s.counters[LABELS] = t
        self.partial, self.skipped = panel.rows, skipped
        for rows in (panel.labels, skipped):
            s.taken[self._own(rows)] = True
        out = np.empty(min(others, self.n), dtype=np.int64)
        most = max(most, self.n // REFINED_SHARE)
        found, following = top(root.kind, root.amplitude, s, most, out)
        here = np.union1d(out[:found], self._own(wanted))
        V = np.empty((len(here), t))
        for c, chunk in enumerate(self.chunks):
            low, high = c * CHUNK, min(t, (c + 1) * CHUNK)
            if low < high:
                V[:, low:high] = chunk[here, : high - low]
        limit, limit_row = -np.inf, -1
        if following >= 0:
            limit, limit_row = float(s.var[following]), self.start + int(following)
        return Candidates(
            here + self.start, self.X[here], V, s.var[here], s.level[here], limit, limit_row
        )

    def _known(self, names: list[bytes]) -> int:
        """Return how many of some panels are complete here."""
        both = min(len(names), len(self.names))
        return next((k for k in range(both) if names[k] != self.names[k]), both)

    def _own(self, rows: Ints) -> Ints:
        """Return those of some rows of the pool that are here, by their place."""
        places = rows - self.start
        return places[(places >= 0) & (places < self.n)]

    def _open(self, root: Root) -> None:
        """Begin anew, if it is another covariance function."""
        if self.root == root:
            return
        self.root = None
        Z = scaled_inputs("X", self.X, np.asarray(root.lengthscale, dtype=np.float64))
        self.pool = selection_lazy.new_pool(Z, CHUNK, root.amplitude)
        addresses = [chunk.ctypes.data for chunk in self.chunks]
        self.pool = self.pool._replace(table=np.array(addresses, dtype=np.int64))
        self.names, self.ends, self.bases = [], [], []
        self.labels = np.empty(0, dtype=np.int64)
        self.skipped = np.empty(0, dtype=np.int64)
        self.partial = np.empty((0, 0))
        self.stale = True
        self.root = root

    def _go_back(self, known: int) -> None:
        """Forget all panels but the first ones."""
        if known == len(self.names):
            return
        s = self.pool
        s.base[:] = self.bases[known]
        del self.names[known:], self.ends[known:], self.bases[known:]
        first = self.ends[-1] if self.ends else 0
        self.labels = self.labels[:first]
        s.counters[COMPLETE] = first
        self.stale = True

    def _write(self, panel: Panel) -> None:
        """Make room for a panel, and take its rows of L."""
        last = panel.first + len(panel.labels)
        while len(self.chunks) * CHUNK < panel.first + selection_lazy.PANEL:
            _memory.check_next(
                8 * self.n * STRIDE,
                sum(chunk.nbytes for chunk in self.chunks),
                f"{self.n} points on this worker, for {CHUNK} labels more",
                CHUNK,
            )
            chunk = new_chunk(self.n)
            table = np.append(self.pool.table, chunk.ctypes.data)
            self.chunks.append(chunk)
            self.pool = self.pool._replace(table=table)
        old, room = self.pool, len(self.chunks) * CHUNK
        if old.rows.shape[1] < room:
            wide: Any = {name: np.empty((len(getattr(old, name)), room)) for name in ("rows", "Zl")}
            for name, array in wide.items():
                array[:, : old.rows.shape[1]] = getattr(old, name)
            self.pool = old._replace(**wide, products=aligned(selection_lazy.PANEL * room))
        self.pool.rows[: len(panel.labels), :last] = panel.rows
        self.pool.Zl[:, panel.first : last] = panel.Z

    def _refresh(self, complete: int) -> None:
        """Take all variances as they were after the last panel."""
        s = self.pool
        s.var[:] = s.base
        s.level[:] = complete
        s.taken[:] = False
        s.taken[self._own(self.labels)] = True
        left = np.flatnonzero(~s.taken)
        s.heap[: len(left)] = left
        s.counters[HEAP] = len(left)
        s.counters[LABELS] = complete
        order_heap(s.heap, s.var, len(left))
        self.partial = np.empty((0, complete))
        self.stale = False


def _threads_of_worker() -> int:
    """Return how many threads the worker has."""
    try:
        from distributed import get_worker

        worker: Any = get_worker()
    except (ImportError, ValueError):  # not on a worker, perhaps without Dask
        return 1
    return int(worker.state.nthreads)
