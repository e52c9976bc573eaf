"""Selection: owns the state of a pool, turns the status of a kernel into an exception."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fastal import _memory
from fastal._core import eager as eager_core
from fastal._core import pool as pool_core
from fastal._threads import one_blas_thread, workers
from fastal._validation import class_labels
from fastal.bound import gp_kl
from fastal.classifier import LaplaceClassifier
from fastal.gp import GaussianProcess

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Below this many points the straightforward selection is the faster one.
EAGER_BELOW = 2048

# Columns of the test set's rows that one product of matrices completes.
TEST_PANEL = 48


class Selection:
    """A pool, the labels so far, and the compiled state behind them."""

    model = None  # the state is in the order of the pool: a process of the labels is made on demand

    def __init__(self, gp: GaussianProcess, points: Array, capacity: int, all_points: bool) -> None:
        self._begin(gp, gp._scaled("X", points), capacity, all_points or len(points) < EAGER_BELOW)

    @classmethod
    def of_scaled(cls, gp: GaussianProcess, Z: Array, capacity: int) -> Selection:
        """Return the selection over a large pool whose inputs are divided by the length scales."""
        new = cls.__new__(cls)
        new._begin(gp, Z, capacity, False)
        return new

    def _begin(self, gp: GaussianProcess, Z: Array, capacity: int, eager: bool) -> None:
        self.gp, self.Z, self.n, self.capacity, self.eager = gp, Z, Z.shape[1], capacity, eager
        _check_memory(self.n, capacity)
        if self.eager:
            self.state: Any = eager_core.new_eager(self.Z, capacity, gp.amplitude, gp.mean)
        else:
            self.state = pool_core.new_pool(self.Z, capacity, gp.amplitude)
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
        return int(self.state.head[0])

    def grow(self, capacity: int) -> None:
        """Make room for more labels."""
        if capacity <= self.capacity:
            return
        _check_memory(self.n, capacity)
        old, t = self.state, self.n_labels
        if self.eager:
            new: Any = eager_core.new_eager(self.Z, capacity, self.gp.amplitude, self.gp.mean)
            new.V[:t] = old.V[:t]
        else:
            new = pool_core.new_pool(self.Z, capacity, self.gp.amplitude)
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
            return int(eager_core.best(self.state))
        return int(pool_core.best(self.gp._kind, self.gp.amplitude, self.state))

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        return 0.0 if self.n_labels == self.n else max(0.0, float(self.state.var[self.best()]))

    def accept(self, index: int, y: float) -> float:
        """Label a point; return its bound."""
        gp = self.gp
        if self.eager:
            status, r = eager_core.accept(gp._kind, gp.amplitude, gp.noise, self.state, index, y)
        else:
            status, r = pool_core.accept(
                gp._kind, gp.amplitude, gp.mean, gp.noise, self.state, index, y
            )
        if status:
            _fail(int(status), index, y)
        self.settle()
        return float(r)

    def settle(self) -> None:
        """Complete a full panel, also one that was begun and interrupted."""
        if self.eager or not pool_core.panel_is_full(self.state):
            return
        with one_blas_thread():
            if self._blocks[0] == self.state.head[pool_core.COMPLETE]:
                self._complete_panel(map)
            else:
                pool_core.complete_panel(self.gp._kind, self.gp.amplitude, self.state)

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
            code = eager_core.run(
                gp._kind, gp.amplitude, gp.noise, self.state, y, order, initial, target, tracker,
                bounds,
            )  # fmt: skip
        else:
            with one_blas_thread(), workers(threads) as pool:
                while True:
                    code = pool_core.run(
                        gp._kind, gp.amplitude, gp.mean, gp.noise, self.state, y, order, initial,
                        target, tracker, threads > 1, bounds,
                    )  # fmt: skip
                    if threads > 1 and pool_core.panel_is_full(self.state):
                        self._complete_panel(pool.map)
                    if code != pool_core.DONE or self.n_labels >= target:
                        break
        if code > eager_core.STOPPED or code < 0:
            index = int(order[self.n_labels]) if self.n_labels < len(order) else self.best()
            _fail(int(code) - (code > 0) * eager_core.STOPPED, index, float(y[index]))

    def _complete_panel(self, share_out: Callable[..., Iterable[None]]) -> None:
        """Complete a panel with the blocks of rows shared out among threads.

        Ctrl-C comes while they are waited for: what is done is remembered, for `settle`.
        """
        s = self.state
        first, last = int(s.head[pool_core.COMPLETE]), self.n_labels
        if self._blocks[0] != first:
            pool_core.gather_panel(s)
            self._blocks = first, set()
        done = self._blocks[1]

        def block(low: int) -> None:
            if low in done:
                return
            high = min(self.n, low + pool_core.ROWS)
            pool_core.complete_rows(
                self.gp._kind, self.gp.amplitude, s.Z, s.V, s.Zl, s.rows, first, last, low, high
            )
            pool_core.shrink_rows(s.V, first, last, low, high, s.base)
            done.add(low)

        list(share_out(block, range(0, self.n, pool_core.ROWS)))
        pool_core.close_panel(s)

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
        return self.errors_scaled(self.gp._scaled("test", X), y, threads)

    def errors_scaled(self, Z: Array, y: Array, threads: int) -> Array:
        """Return `errors` for inputs that are divided by the length scales, (d, m)."""
        gp, t, m = self.gp, self.n_labels, len(y)
        Zl = np.ascontiguousarray(self.Z[:, self.state.labels[:t]])

        def block(low: int) -> Array:
            high = min(m, low + pool_core.ROWS)
            part = np.ascontiguousarray(Z[:, low:high])
            V, rows, sums = np.empty((high - low, t)), np.empty((TEST_PANEL, t)), np.zeros(t)
            for first in range(0, t, TEST_PANEL):
                last = min(t, first + TEST_PANEL)
                self._factor_rows(first, last, rows)
                pool_core.complete_rows(
                    gp._kind, gp.amplitude, part, V, Zl, rows, first, last, 0, high - low
                )
            pool_core.error_rows(
                gp.amplitude, gp.mean, V, self.state.white, y[low:high], t, high - low, sums
            )
            return sums

        with one_blas_thread(), workers(threads) as pool:
            total = np.sum(list(pool.map(block, range(0, m, pool_core.ROWS))), axis=0)
        # E[loss] = beta/2 [ (y - mu)^2 + s ] + 1/2 log(2 pi / beta), averaged over the test set
        losses: Array = total / (2 * m * gp.noise) + 0.5 * np.log(2 * np.pi * gp.noise)
        return losses


class ClassSelection:
    """The same for a classifier: mean and variance of all points are computed when asked for."""

    def __init__(self, gp: LaplaceClassifier, points: Array, capacity: int) -> None:
        self.gp, self.model = gp, gp.copy()
        self.points, self.Z = points, gp._scaled("X", points)
        self.labels: Ints = np.empty(capacity, dtype=np.int64)
        self.taken = np.zeros(len(points), dtype=np.bool_)
        self._marginals: tuple[Array, Array] | None = None

    @property
    def state(self) -> ClassSelection:
        """What a learner reads: labels, taken, mean and var."""
        return self

    @property
    def n_labels(self) -> int:
        return self.model.n_labels

    @property
    def mean(self) -> Array:
        """Posterior mean of the latent function at every point."""
        return self._posterior()[0]

    @property
    def var(self) -> Array:
        """Posterior variance of the latent function at every point."""
        return self._posterior()[1]

    def _posterior(self) -> tuple[Array, Array]:
        if self._marginals is None:
            self._marginals = self.model._marginals(self.Z)
        return self._marginals

    def grow(self, capacity: int) -> None:
        """Make room for more labels."""
        if capacity > self.labels.size:
            self.labels = np.r_[self.labels, np.empty(capacity - self.labels.size, dtype=np.int64)]

    def best(self) -> int:
        """Return the unlabelled point whose class is least certain, the first among equals."""
        odds = np.abs(self.model._probabilities(*self._posterior())[:, 1] - 0.5)
        return int(np.argmin(np.where(self.taken, np.inf, odds)))

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        return float(np.max(self.var[~self.taken], initial=0.0))

    def accept(self, index: int, y: float) -> float:
        """Label a point; return its bound."""
        before = self.n_labels
        self.labels[before] = index
        try:
            return self.model.add(self.points[index], y)
        except ValueError as error:
            raise ValueError(f"the label of point {index} is of no use: {error}") from None
        finally:
            if self.n_labels > before:
                self.taken[index] = True
                self._marginals = None

    def settle(self) -> None:
        """Complete what was interrupted: labels are taken wholly, or not at all."""
        self.taken[self.labels[: self.n_labels]] = True
        self._marginals = None

    def last_bound(self, y: float) -> float:
        """Return the bound of the last label again."""
        last = self.n_labels - 1
        again = self.model.copy()
        again.rewind(last)
        return again.add(self.points[self.labels[last]], y)

    def frozen(self) -> ClassSelection:
        """Return another one that later labels do not change."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        new.model = self.model.copy()
        new.labels, new.taken = self.labels.copy(), self.taken.copy()
        return new

    def errors(self, X: Array, y: Array, threads: int) -> Array:
        """Return the expected loss on a test set after each label, all labels taken once more."""
        signs, _ = class_labels("test", y, None, self.model._negative)
        Z, model, losses = self.gp._scaled("test", X), self.gp.copy(), np.empty(self.n_labels)
        for t, index in enumerate(self.labels[: self.n_labels].tolist()):
            model._append(self.Z[:, index, None], self.model._state.sign[t : t + 1], None)
            losses[t] = model._losses(Z, signs).mean()
        return losses


def _fail(status: int, index: int, y: float) -> NoReturn:
    if status < 0:
        raise ValueError(
            f"the label {y} of point {index} is too far from what the prior can explain: centre "
            "and scale the labels, or set `mean` and `amplitude` of the process"
        )
    raise np.linalg.LinAlgError(
        f"the factor breaks down at label {status} (point {index}): the point repeats others to "
        "the last digit; increase the noise variance or leave out duplicates"
    )


def _check_memory(n: int, labels: int) -> None:
    _memory.check(
        8 * n * labels,
        f"a pool of {n} points with {labels} labels",
        "lower `max_labels` or take a part of the pool",
    )
