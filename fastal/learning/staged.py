"""The selection for large pools: eager for the first labels, then lazy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastal import _memory
from fastal._core import selection_eager, selection_lazy
from fastal._core.chunks import CHUNK, STRIDE, new_chunk
from fastal._core.ended import DONE
from fastal._core.selection_eager import Eager
from fastal._types import Array, Ints
from fastal.learning.eager import EagerSelection
from fastal.learning.gaussian import GaussianSelection
from fastal.learning.lazy import LazySelection

if TYPE_CHECKING:
    from fastal.models.gp import GaussianProcess

# Most labels of the eager stage. Panels of the lazy one end at multiples of 16 up to there.
MOST_EARLY, STEP = 128, 16

# Entries of the factor up to which the eager selection is as fast as the lazy one.
EARLY_ENTRIES = 400_000


def early_labels(n: int) -> int:
    """Return how many labels of a pool of n points the eager stage takes; 0: too few to matter."""
    return min(MOST_EARLY, EARLY_ENTRIES // n // STEP * STEP)


class StagedSelection(EagerSelection, LazySelection):
    """Eager for the first labels, lazy from then on.

    The first labels move all variances, so that being lazy spares nothing there. A campaign that
    stops among them needs no kernel of the lazy selection, which takes seconds to compile once.
    """

    _started = False  # whether there is a state; the eager one never grows

    def __init__(
        self, gp: GaussianProcess, Z: Array, order: Ints, n_initial: int, capacity: int
    ) -> None:
        self.early = early_labels(Z.shape[1])
        GaussianSelection.__init__(self, gp, Z, order, n_initial, self.early)
        self._started = True

    @property
    def _stage(self) -> type[EagerSelection] | type[LazySelection]:
        return EagerSelection if isinstance(self.state, Eager) else LazySelection

    def _new_state(self, capacity: int) -> Any:
        if self._started:
            return LazySelection._new_state(self, capacity)
        _memory.check_next(
            8 * self.n * capacity,
            0,
            f"a pool of {self.n} points, for the labels 1 to {capacity}",
            capacity,
        )
        gp = self.gp
        return selection_eager.new_eager(self.Z, capacity, gp.amplitude, gp.mean)

    def _moved(self, new: Any, t: int) -> dict[str, Array]:
        return self._stage._moved(self, new, t)

    def _become_lazy(self) -> None:
        """Carry all labels over, as panels that are complete."""
        early, t = self.state, self.n_labels
        pool = selection_lazy.new_pool(self.Z, CHUNK, self.gp.amplitude)
        for name in self._by_label:
            getattr(pool, name)[:t] = getattr(early, name)[:t]
        pool.Zl[:, :t] = self.Z[:, early.labels[:t]]
        pool.base[early.places], pool.taken[:] = early.var[: self.n], early.taken
        pool.counters[selection_lazy.LABELS] = pool.counters[selection_lazy.COMPLETE] = t
        _memory.check_next(
            8 * self.n * STRIDE, 0, f"a pool of {self.n} points, for the labels 1 to {CHUNK}", CHUNK
        )
        columns = new_chunk(self.n)
        columns[early.places, :t] = early.V[:t, : self.n].T
        # of a labelled point the row of L; what comes after it was not brought up to date
        columns[early.labels[:t], :t] = np.tril(columns[early.labels[:t], :t], -1)
        table = np.array([columns.ctypes.data], dtype=np.int64)
        selection_lazy.close_panel(pool._replace(table=table), pool.base)
        self._set_chunks(pool, (columns,))

    def best(self) -> int:
        """Return the unlabelled point of largest variance, the lowest index among equals."""
        return self._stage.best(self)

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        return self._stage.largest_variance(self)

    def _accept(self, index: int, y: float, noise: float) -> tuple[int, float]:
        if self._stage is EagerSelection and self.n_labels == self.early:
            self._become_lazy()
        return self._stage._accept(self, index, y, noise)

    def _run(self, y: Array, target: int, rule: int, past_stop: bool, threads: int) -> Any:
        if self._stage is EagerSelection:
            early = min(target, self.early)
            reason, status = EagerSelection._run(self, y, early, rule, past_stop, threads)
            if reason != DONE or self.n_labels >= target:
                return reason, status
            self._become_lazy()
        return LazySelection._run(self, y, target, rule, past_stop, threads)

    def settle(self) -> None:
        """Complete what was interrupted."""
        self._stage.settle(self)

    def posterior(self) -> tuple[Array, Array]:
        """Raise a TypeError in both stages: who asks for means is given the eager selection."""
        return GaussianSelection.posterior(self)

    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        self._stage._factor_rows(self, first, last, out)

    def frozen(self) -> Self:
        """Return another one that later labels do not change."""
        return self._stage.frozen(self)

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self)) if self._stage is EagerSelection else super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["state"], Eager):
            vars(self).update(state)
        else:
            super().__setstate__(state)
