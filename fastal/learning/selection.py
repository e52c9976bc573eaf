"""Selection over a pool for a Gaussian process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastal import _memory
from fastal._core import selection_eager, selection_lazy
from fastal._threads import one_blas_thread, workers
from fastal._types import Array, Ints
from fastal.bound import gp_kl
from fastal.learning.classes import ClassSelection
from fastal.learning.failures import _fail
from fastal.models.classifier import LaplaceClassifier

if TYPE_CHECKING:
    from fastal.learning.inputs import Model
    from fastal.models.gp import GaussianProcess

# Below this many points the straightforward selection is the faster one.
EAGER_BELOW = 2048

# Columns of the test set's rows that one product of matrices completes.
TEST_PANEL = 48


class Selection:
    """A pool, the labels so far, and the compiled state behind them."""

    model = None  # the state is in the order of the pool: a process of the labels is made on demand

    def __init__(self, gp: GaussianProcess, points: Array, capacity: int, all_points: bool) -> None:
        self._begin(
            gp, gp.prior.scale("X", points), capacity, all_points or len(points) < EAGER_BELOW
        )

    @classmethod
    def of_scaled(cls, gp: GaussianProcess, Z: Array, capacity: int) -> Selection:
        """Return the selection over a large pool whose inputs are divided by the length scales."""
        new = cls.__new__(cls)
        new._begin(gp, Z, capacity, False)
        return new

    def _begin(self, gp: GaussianProcess, Z: Array, capacity: int, eager: bool) -> None:
        self.gp, self.Z, self.n, self.capacity, self.eager = gp, Z, Z.shape[1], capacity, eager
        check_memory(self.n, capacity)
        if self.eager:
            self.state: Any = selection_eager.new_eager(self.Z, capacity, gp.amplitude, gp.mean)
        else:
            self.state = selection_lazy.new_pool(self.Z, capacity, gp.amplitude)
        # The first column of the panel that is being completed, and the blocks that are done.
        self._blocks: tuple[int, set[int]] = -1, set()

    def frozen(self) -> Selection:
        """Return another one that later labels do not change; what grows by rows is shared."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        changed = (name for name in self.state._fields if name not in ("Z", "V"))
        new.state = self.state._replace(
            **{name: getattr(self.state, name).copy() for name in changed}
        )
        return new

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
        return int(self.state.head[0])

    def grow(self, capacity: int) -> None:
        """Make room for more labels."""
        if capacity <= self.capacity:
            return
        check_memory(self.n, capacity)
        old, t = self.state, self.n_labels
        if self.eager:
            new: Any = selection_eager.new_eager(self.Z, capacity, self.gp.amplitude, self.gp.mean)
            new.V[:t] = old.V[:t]
        else:
            new = selection_lazy.new_pool(self.Z, capacity, self.gp.amplitude)
            new.V[:, :t] = old.V[:, :t]
            new.rows[:, :t] = old.rows[:, :t]
            new.Zl[:, :t] = old.Zl[:, :t]
        for name in ("labels", "diagonal", "white"):
            getattr(new, name)[:t] = getattr(old, name)[:t]
        kept = {name: getattr(new, name) for name in ("V", "labels", "diagonal", "white")}
        if not self.eager:
            kept |= {"rows": new.rows, "Zl": new.Zl}
        self.state, self.capacity = old._replace(**kept), capacity

    def best(self) -> int:
        """Return the unlabelled point of largest variance."""
        if self.eager:
            return int(selection_eager.best(self.state))
        return int(selection_lazy.best(self.gp.prior.kind, self.gp.amplitude, self.state))

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        return 0.0 if self.n_labels == self.n else max(0.0, float(self.state.var[self.best()]))

    def accept(self, index: int, y: float) -> float:
        """Label a point; return its bound."""
        gp = self.gp
        if self.eager:
            status, r = selection_eager.accept(
                gp.prior.kind, gp.amplitude, gp.noise, self.state, index, y
            )
        else:
            status, r = selection_lazy.accept(
                gp.prior.kind, gp.amplitude, gp.mean, gp.noise, self.state, index, y
            )
        if status:
            _fail(int(status), index, y)
        self.settle()
        return float(r)

    def settle(self) -> None:
        """Complete a full panel, also one that was begun and interrupted."""
        if self.eager or not selection_lazy.panel_is_full(self.state):
            return
        with one_blas_thread():
            if self._blocks[0] == self.state.head[selection_lazy.COMPLETE]:
                self._complete_panel(map)
            else:
                selection_lazy.complete_panel(self.gp.prior.kind, self.gp.amplitude, self.state)

    def last_bound(self, y: float) -> float:
        """Return the bound of the last label again, to rounding."""
        last = self.n_labels - 1
        pivot, white = float(self.state.diagonal[last]), float(self.state.white[last])
        # L_tt^2 = s + noise,  z_t = (y - mu) / L_tt
        var = max(pivot * pivot - self.gp.noise, 0.0)
        return float(gp_kl(y - white * pivot, var, y, self.gp.noise))

    def run(
        self, y: Array, order: Ints, initial: int, target: int, tracker: int, threads: int,
        bounds: Array,
    ) -> None:  # fmt: skip
        """Label points up to `target`, or until the tracker stops: one compiled call."""
        gp = self.gp
        if self.eager:
            code = selection_eager.run(
                gp.prior.kind, gp.amplitude, gp.noise, self.state, y, order, initial, target,
                tracker, bounds,
            )  # fmt: skip
        else:
            with one_blas_thread(), workers(threads) as pool:
                while True:
                    code = selection_lazy.run(
                        gp.prior.kind, gp.amplitude, gp.mean, gp.noise, self.state, y, order,
                        initial, target, tracker, threads > 1, bounds,
                    )  # fmt: skip
                    if threads > 1 and selection_lazy.panel_is_full(self.state):
                        self._complete_panel(pool.map)
                    if code != selection_lazy.DONE or self.n_labels >= target:
                        break
        if code > selection_eager.STOPPED or code < 0:
            index = int(order[self.n_labels]) if self.n_labels < len(order) else self.best()
            _fail(int(code) - (code > 0) * selection_eager.STOPPED, index, float(y[index]))

    def _complete_panel(self, share_out: Callable[..., Iterable[None]]) -> None:
        """Complete a panel with the blocks of rows shared out among threads.

        Ctrl-C comes while they are waited for: what is done is remembered, for `settle`.
        """
        s = self.state
        first, last = int(s.head[selection_lazy.COMPLETE]), self.n_labels
        if self._blocks[0] != first:
            selection_lazy.gather_panel(s)
            self._blocks = first, set()
        done = self._blocks[1]

        def block(low: int) -> None:
            if low in done:
                return
            high = min(self.n, low + selection_lazy.ROWS)
            selection_lazy.complete_rows(
                self.gp.prior.kind,
                self.gp.amplitude,
                s.Z,
                s.V,
                s.Zl,
                s.rows,
                first,
                last,
                low,
                high,
            )
            selection_lazy.shrink_rows(s.V, first, last, low, high, s.base)
            done.add(low)

        list(share_out(block, range(0, self.n, selection_lazy.ROWS)))
        selection_lazy.close_panel(s)

    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        """Write the rows `first` to `last` of L; what is right of their diagonal is arbitrary."""
        s = self.state
        points = s.labels[first:last]
        out[: last - first, :last] = s.V[:last, points].T if self.eager else s.V[points, :last]
        own = np.arange(last - first)
        out[own, first + own] = s.diagonal[first:last]

    def errors(self, X: Array, y: Array, threads: int) -> Array:
        """Return the expected loss on a test set after each label, by blocks of its rows.

        Only a block's rows are in memory at a time, not one for each test point.
        """
        return self.errors_scaled(self.gp.prior.scale("test", X), y, threads)

    def errors_scaled(self, Z: Array, y: Array, threads: int) -> Array:
        """Return `errors` for inputs that are divided by the length scales, (d, m)."""
        gp, t, m = self.gp, self.n_labels, len(y)
        Zl = np.ascontiguousarray(self.Z[:, self.state.labels[:t]])

        def block(low: int) -> Array:
            high = min(m, low + selection_lazy.ROWS)
            part = np.ascontiguousarray(Z[:, low:high])
            V, rows, sums = np.empty((high - low, t)), np.empty((TEST_PANEL, t)), np.zeros(t)
            for first in range(0, t, TEST_PANEL):
                last = min(t, first + TEST_PANEL)
                self._factor_rows(first, last, rows)
                selection_lazy.complete_rows(
                    gp.prior.kind, gp.amplitude, part, V, Zl, rows, first, last, 0, high - low
                )
            selection_lazy.error_rows(
                gp.amplitude, gp.mean, V, self.state.white, y[low:high], t, high - low, sums
            )
            return sums

        with one_blas_thread(), workers(threads) as pool:
            total = np.sum(list(pool.map(block, range(0, m, selection_lazy.ROWS))), axis=0)
        # E[loss] = beta/2 [ (y - mu)^2 + s ] + 1/2 log(2 pi / beta), averaged over the test set
        losses: Array = total / (2 * m * gp.noise) + 0.5 * np.log(2 * np.pi * gp.noise)
        return losses


def check_memory(n: int, labels: int) -> None:
    """Raise a MemoryError if the matrix of a pool does not fit into this machine."""
    _memory.check(
        8 * n * labels,
        f"a pool of {n} points with {labels} labels",
        "lower `max_labels` or take a part of the pool",
    )


def _selection_of(
    gp: Model, points: Array, capacity: int, all_points: bool
) -> Selection | ClassSelection:
    if isinstance(gp, LaplaceClassifier):
        return ClassSelection(gp, points, capacity)
    return Selection(gp, points, capacity, all_points)
