"""The lazy selection: only what may come next is brought up to date; for large pools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fastal._core import selection_lazy
from fastal._core.ended import DONE
from fastal._threads import one_blas_thread, workers
from fastal._types import Array
from fastal.learning.gaussian import GaussianSelection


class LazySelection(GaussianSelection):
    """Stale variances are upper bounds; the rest is completed in panels, by BLAS-3."""

    # The first column of the panel that is being completed, and the blocks that are done.
    _blocks: tuple[int, set[int]] = -1, set()

    def _new_state(self, capacity: int) -> Any:
        return selection_lazy.new_pool(self.Z, capacity, self.gp.amplitude)

    def _moved(self, new: Any, t: int) -> dict[str, Array]:
        for name in ("V", "rows", "Zl"):
            getattr(new, name)[:, :t] = getattr(self.state, name)[:, :t]
        return {"V": new.V, "rows": new.rows, "Zl": new.Zl}

    def best(self) -> int:
        """Return the unlabelled point of largest variance, the lowest index among equals."""
        return int(selection_lazy.best(self.gp.prior.kind, self.gp.amplitude, self.state))

    def _accept(self, index: int, y: float) -> tuple[int, float]:
        gp = self.gp
        status: int
        status, r = selection_lazy.accept(
            gp.prior.kind, gp.amplitude, gp.mean, gp.noise, self.state, index, y
        )
        return status, r

    def _run(self, y: Array, target: int, rule: int, past_stop: bool, threads: int) -> Any:
        gp = self.gp
        with one_blas_thread(), workers(threads) as pool:
            while True:
                reason, status = selection_lazy.run(
                    gp.prior.kind, gp.amplitude, gp.mean, gp.noise, self.state, y, self.order,
                    self.n_initial, target, rule, past_stop, threads > 1,
                )  # fmt: skip
                if threads > 1 and selection_lazy.panel_is_full(self.state):
                    self._complete_panel(pool.map)
                if reason != DONE or self.n_labels >= target:
                    return reason, status

    def settle(self) -> None:
        """Complete a full panel, also one that was begun and interrupted."""
        if not selection_lazy.panel_is_full(self.state):
            return
        with one_blas_thread():
            if self._blocks[0] == self.state.counters[selection_lazy.COMPLETE]:
                self._complete_panel(map)
            else:
                selection_lazy.complete_panel(self.gp.prior.kind, self.gp.amplitude, self.state)

    def _complete_panel(self, share_out: Callable[..., Iterable[None]]) -> None:
        """Complete a panel with the blocks of rows shared out among threads.

        Ctrl-C comes while they are waited for: what is done is remembered, for `settle`.
        """
        s, kind, amplitude = self.state, self.gp.prior.kind, self.gp.amplitude
        first, last = int(s.counters[selection_lazy.COMPLETE]), self.n_labels
        if self._blocks[0] != first:
            selection_lazy.gather_panel(s)
            self._blocks = first, set()
        done = self._blocks[1]

        def block(low: int) -> None:
            if low in done:
                return
            high = min(self.n, low + selection_lazy.ROWS)
            selection_lazy.complete_rows(
                kind, amplitude, s.Z, s.V, s.Zl, s.rows, first, last, low, high
            )
            selection_lazy.shrink_rows(s.V, first, last, low, high, s.base)
            done.add(low)

        list(share_out(block, range(0, self.n, selection_lazy.ROWS)))
        selection_lazy.close_panel(s)

    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        s = self.state
        out[: last - first, :last] = s.V[s.labels[first:last], :last]
        own = np.arange(last - first)
        out[own, first + own] = s.diagonal[first:last]
