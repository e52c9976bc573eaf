"""The lazy selection: only what may come next is brought up to date; for large pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastal import _memory
from fastal._core import selection_lazy
from fastal._core.chunks import CHUNK, STRIDE, new_chunk
from fastal._core.ended import BROKEN, DONE, FULL
from fastal._threads import map_blocks, one_blas_thread
from fastal._types import Array, Ints
from fastal.learning.failures import failure
from fastal.learning.gaussian import GaussianSelection

if TYPE_CHECKING:
    from fastal.models.gp import GaussianProcess

# Rows that a thread completes at a time: a thread that waits for the next share waits for the GIL.
SHARE = 4 * selection_lazy.ROWS


class LazySelection(GaussianSelection):
    """Stale variances are upper bounds; the rest is completed in panels, by products of matrices.

    Columns of the factor come in chunks, with the labels: nothing is reserved.
    """

    # What `Pool.table` has the addresses of.
    chunks: tuple[Array, ...] = ()

    def __init__(
        self, gp: GaussianProcess, Z: Array, order: Ints, n_initial: int, capacity: int
    ) -> None:
        super().__init__(gp, Z, order, n_initial, min(capacity, CHUNK))

    def _new_state(self, capacity: int) -> Any:
        return selection_lazy.new_pool(self.Z, capacity, self.gp.amplitude)

    def _moved(self, new: Any, t: int) -> dict[str, Array]:
        for name in ("rows", "Zl"):
            getattr(new, name)[:, :t] = getattr(self.state, name)[:, :t]
        return {"rows": new.rows, "products": new.products, "Zl": new.Zl}

    def reserve(self, capacity: int) -> None:
        """Do nothing: room comes with the labels."""

    def _make_room(self) -> None:
        """Add a chunk, if the next label needs one."""
        t = self.n_labels
        if t < len(self.chunks) * CHUNK:
            return
        _memory.check_next(
            8 * self.n * STRIDE,
            sum(chunk.nbytes for chunk in self.chunks),
            f"a pool of {self.n} points, for the labels {t + 1} to {t + CHUNK}",
            CHUNK,
        )
        chunk = new_chunk(self.n)
        room = (len(self.chunks) + 1) * CHUNK
        if room > self.state.labels.size:
            # by halves, so that what is copied stays in proportion
            self._reserve(max(room, self.state.labels.size * 3 // 2))
        self._set_chunks(self.state, (*self.chunks, chunk))

    def __getstate__(self) -> dict[str, Any]:
        # Addresses mean nothing elsewhere.
        return vars(self) | {"state": self.state._replace(table=self.state.table[:0])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        chunks = []
        for chunk in self.chunks:
            chunks.append(new_chunk(self.n))
            chunks[-1][:] = chunk
        self._set_chunks(self.state, tuple(chunks))

    def _set_chunks(self, state: Any, chunks: tuple[Array, ...]) -> None:
        """Keep a state and its chunks, with their addresses for compiled code."""
        table = np.array([chunk.ctypes.data for chunk in chunks], dtype=np.int64)
        # in one call: Ctrl-C finds both or neither
        vars(self).update(chunks=chunks, state=state._replace(table=table))

    def best(self) -> int:
        """Return the unlabelled point of largest variance, the lowest index among equals."""
        found = int(selection_lazy.best(self.gp.prior.kind, self.gp.amplitude, self.state))
        if found == BROKEN:
            raise failure(BROKEN)
        return found

    def _accept(self, index: int, y: float, noise: float) -> tuple[int, float]:
        self._make_room()
        gp = self.gp
        status: int
        status, r = selection_lazy.accept(
            gp.prior.kind, gp.amplitude, gp.mean, noise, self.state, index, y
        )
        return status, r

    def _run(self, y: Array, target: int, rule: int, past_stop: bool, threads: int) -> Any:
        gp = self.gp
        with one_blas_thread():
            while True:
                if self.n_labels < target:
                    self._make_room()
                reason, status = selection_lazy.run(
                    gp.prior.kind, gp.amplitude, gp.mean, gp.noise, self.state, y, self.order,
                    self.n_initial, target, rule, past_stop,
                )  # fmt: skip
                if selection_lazy.is_full(self.state.counters):
                    self._complete_panel(threads)
                if reason not in (DONE, FULL) or self.n_labels >= target:
                    return reason, status

    def settle(self) -> None:
        """Complete a full panel, also one that was begun and interrupted."""
        if self.n_labels and selection_lazy.is_full(self.state.counters):
            with one_blas_thread():
                self._complete_panel(1)

    def _complete_panel(self, threads: int) -> None:
        """Complete a panel, the blocks of rows shared out among threads.

        Until it is closed, it may be begun anew: what it writes does not depend on that.
        """
        s, kind, amplitude = self.state, self.gp.prior.kind, self.gp.amplitude
        first, last = int(s.counters[selection_lazy.COMPLETE]), self.n_labels
        selection_lazy.prepare_panel(s.rows, s.products, first, last)
        base = np.empty(self.n)  # its own: a thread that Ctrl-C left behind writes to another one

        def block(low: int) -> int:
            high = min(self.n, low + share)
            return selection_lazy.complete_blocks(
                kind, amplitude, s.Z, s.Zl, s.table, s.products, first, last, low, high, s.base,
                base,
            )  # fmt: skip

        share = SHARE if threads > 1 else self.n
        if any(map_blocks(block, range(0, self.n, share), threads)):
            raise failure(BROKEN)
        selection_lazy.close_panel(s, base)

    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        s = self.state
        rows = s.labels[first:last]
        for c, chunk in enumerate(self.chunks):
            low, high = c * CHUNK, min(last, (c + 1) * CHUNK)
            if low < high:
                out[: last - first, low:high] = chunk[rows, : high - low]
        own = np.arange(last - first)
        out[own, first + own] = s.diagonal[first:last]
