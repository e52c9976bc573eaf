"""What the eager and the lazy selection of a Gaussian process share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastal import _memory
from fastal._core import error_curves, selection_lazy
from fastal._core.chunks import CHUNK, aligned, new_chunk
from fastal._core.ended import FAILED
from fastal._core.expected_loss import PANEL, ROWS, add_block, expected_loss, root_mean_square
from fastal._threads import map_blocks, one_blas_thread
from fastal._types import Array, Bools, Ints
from fastal.learning.failures import failure
from fastal.learning.selection import ErrorCurves

if TYPE_CHECKING:
    from fastal._core.rule import Rule
    from fastal.models.gp import GaussianProcess

# Test rows that one task takes, several blocks of those that stay in the cache. Neither depends on
# the number of threads, and so no sum does.
SHARE = 8 * selection_lazy.ROWS

# Test rows, and products, from which on panels pay for the matrices that belong to them, and for
# kernels that would have to be compiled.
MANY, MUCH = 1024, 50_000_000


def by_panels(rows: int, labels: int) -> bool:
    """Whether the errors of so many test rows are computed by the products of panels."""
    return rows >= MANY and rows * labels**2 >= MUCH


class GaussianSelection(ABC):
    """A pool, the labels so far, and the compiled state behind them.

    Parameters
    ----------
    gp : GaussianProcess
        The model, without labels.
    Z : array, shape (d, N)
        The pool over the length scales.
    order : array of int
        Points that come first.
    n_initial : int
        Number of labels at the beginning that give no bound.
    capacity : int
        Number of labels there is room for.
    """

    compilable = True

    model = None  # the state is in the order of the pool: a process of the labels is made on demand

    # Fields of the state that grow with the labels along their first axis.
    _by_label = ("labels", "diagonal", "residuals", "y", "bounds")

    def __init__(
        self, gp: GaussianProcess, Z: Array, order: Ints, n_initial: int, capacity: int
    ) -> None:
        self.gp, self.Z, self.n = gp, Z, Z.shape[1]
        self.order, self.n_initial, self.capacity = order, n_initial, capacity
        self.state = self._new_state(capacity)

    @abstractmethod
    def _new_state(self, capacity: int) -> Any:
        """Return the compiled state before the first label."""

    @abstractmethod
    def _moved(self, new: Any, t: int) -> dict[str, Array]:
        """Copy what t labels wrote into a larger state; return the fields that are replaced."""

    @abstractmethod
    def _accept(self, index: int, y: float, noise: float) -> tuple[int, float]:
        """Label a point; return (status, bound)."""

    @abstractmethod
    def _run(self, y: Array, target: int, rule: int, past_stop: bool, threads: int) -> Any:
        """Label points; return (reason, status) as the kernels do."""

    @abstractmethod
    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        """Write the rows `first` to `last` of L; what is right of their diagonal is arbitrary."""

    @abstractmethod
    def best(self) -> int:
        """Return the unlabelled point of largest variance, the lowest index among equals."""

    @abstractmethod
    def settle(self) -> None:
        """Complete what was interrupted."""

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
        n: int = self.state.counters.item(0)
        return n

    @property
    def labels(self) -> Ints:
        """Points in the order of their labels."""
        labels: Ints = self.state.labels[: self.n_labels]
        return labels

    @property
    def y(self) -> Array:
        """Their labels."""
        y: Array = self.state.y[: self.n_labels]
        return y

    @property
    def bounds(self) -> Array:
        """Bound of each label after the initial ones."""
        bounds: Array = self.state.bounds[self.n_initial : self.n_labels]
        return bounds

    @property
    def residuals(self) -> Array:
        """Distances of the labels from their predictions before them, in standard deviations."""
        # z_t = (y_t - mu_t) / sqrt(s_t + noise), the whitened labels
        residuals: Array = self.state.residuals[: self.n_labels]
        return residuals

    @property
    def unlabelled(self) -> Bools:
        """Which points have no label."""
        left: Bools = np.logical_not(self.state.taken)
        return left

    def posterior(self) -> tuple[Array, Array]:
        """Return mean and variance of every point."""
        # V_i.z and V_i.V_i over what is known of each row would do; who asks is given eager state
        raise TypeError("means of all points need an eager selection that was made for them")

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        found = self.best()
        return 0.0 if found < 0 else max(0.0, float(self.state.var[found]))

    def frozen(self) -> Self:
        """Return another one that later labels do not change; what grows by rows is shared."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        changed = (name for name in self.state._fields if name not in ("Z", "V", "table"))
        new.state = self.state._replace(
            **{name: getattr(self.state, name).copy() for name in changed}
        )
        return new

    def reserve(self, capacity: int) -> None:
        """Make room for so many labels."""
        if capacity > self.capacity:
            check_memory(self.n, capacity)
            self._reserve(capacity)

    def _reserve(self, capacity: int) -> None:
        old, new, t = self.state, self._new_state(capacity), self.n_labels
        for name in self._by_label:
            getattr(new, name)[:t] = getattr(old, name)[:t]
        kept = {name: getattr(new, name) for name in self._by_label}
        self.state, self.capacity = old._replace(**kept, **self._moved(new, t)), capacity

    def skip(self, index: int) -> None:
        """Never choose a point."""
        self.state.taken[index] = True

    def accept(self, index: int, y: float, noise: float | None = None) -> float:
        """Label a point, perhaps with a noise of its own; return its bound."""
        status, r = self._accept(index, y, self.gp.noise if noise is None else noise)
        if status:
            raise failure(int(status), f" (point {index}, y = {y:g})")
        self.settle()
        return float(r)

    def run(self, y: Array, target: int, rule: Rule | None, past_stop: bool, threads: int) -> None:
        """Label points up to `target`, or until the rule stops: one compiled call."""
        address = 0
        try:
            if rule is not None:
                # Without the GIL, and with the criterion's own state: nobody else may use it.
                address = rule.lend()
            reason, status = self._run(y, target, address, past_stop, threads)
        except BaseException as error:
            # What `lend` refuses is in use elsewhere. Ctrl-C may come right after it.
            if rule is not None and (address or not isinstance(error, RuntimeError)):
                rule.take_back()
            raise
        if rule is not None:
            rule.take_back()
        if reason == FAILED:
            t = self.n_labels
            index = int(self.order[t]) if t < len(self.order) else self.best()
            raise failure(int(status), f" (point {index}, y = {float(y[index]):g})")

    def factor_panels(self) -> Array:
        """Return the rows of L by panels; what is right of their diagonal is arbitrary."""
        t = self.n_labels
        factor = np.empty((-(-t // PANEL), PANEL, t))
        for first in range(0, t, PANEL):
            self._factor_rows(first, min(t, first + PANEL), factor[first // PANEL])
        return factor

    def _label_inputs(self) -> Array:
        """Return the inputs of the labels over the length scales, (d, t)."""
        return np.ascontiguousarray(self.Z[:, self.labels])

    def test_errors(self, X: Array, y: Array, threads: int) -> ErrorCurves:
        """Return the errors on a test set after each label, by blocks of its rows.

        Only a block's rows are in memory at a time, not one for each test point.
        """
        return self.test_errors_scaled(self.gp.prior.scale("test", X), y, threads)

    def test_errors_scaled(self, Z: Array, y: Array, threads: int) -> ErrorCurves:
        """Return `test_errors` for inputs that are divided by the length scales, (d, m)."""
        m, noise = len(y), self.gp.noise
        if by_panels(m, self.n_labels):
            totals, squares = self.error_sums(Z, y, threads)
        else:
            totals, squares = self._few_error_sums(Z, y, threads)
        loss = np.array([expected_loss(total, m, noise) for total in totals.tolist()])
        rmse = np.array([root_mean_square(square, m) for square in squares.tolist()])
        return ErrorCurves(loss, rmse)

    def _few_error_sums(self, Z: Array, y: Array, threads: int) -> tuple[Array, Array]:
        """Return the sums of `error_sums` for few test rows."""
        gp, t, m = self.gp, self.n_labels, len(y)
        Zl, factor = self._label_inputs(), self.factor_panels()

        def block(low: int) -> Array:
            high = min(m, low + ROWS)
            sums = np.zeros((2, t))
            add_block(
                gp.prior.kind, gp.amplitude, gp.mean, np.ascontiguousarray(Z[:, low:high]),
                y[low:high], high - low, Zl, factor, self.state.residuals, t,
                np.empty((high - low, t)), sums[0], sums[1],
            )  # fmt: skip
            return sums

        with one_blas_thread():
            totals, squares = np.sum(map_blocks(block, range(0, m, ROWS), threads), axis=0)
        return totals, squares

    def error_sums(
        self, Z: Array, y: Array, threads: int, *, predictive: bool = False, since: int = 1
    ) -> tuple[Array, Array]:
        """Return sums of losses and of squared errors over test rows, after each label.

        `predictive`: minus the logarithms of the predictive densities, from label `since` on;
        else squared errors and variances.
        """
        gp, t, m = self.gp, self.n_labels, len(y)
        Zl, products = self._label_inputs(), self._panel_products()

        def share(low: int) -> Array:
            sums = np.zeros((2, t))
            chunks = [new_chunk(selection_lazy.ROWS) for _ in range(0, t, CHUNK)]
            table = np.array([chunk.ctypes.data for chunk in chunks], dtype=np.int64)
            error_curves.add_errors(
                gp.prior.kind, gp.amplitude, gp.mean, gp.noise, predictive, Z, y, low,
                min(m, low + SHARE), Zl, products, self.state.residuals, since, t, table, sums[0],
                sums[1],
            )  # fmt: skip
            return sums

        totals, squares = np.sum(map_blocks(share, range(0, m, SHARE), threads), axis=0)
        return totals, squares

    def _panel_products(self) -> Array:
        """Return the matrices that complete rows, panel by panel, as `error_curves` takes them."""
        t = self.n_labels
        rows = np.empty((selection_lazy.PANEL, t))
        products = aligned(error_curves.products_size(t))
        with one_blas_thread():
            for first in range(0, t, selection_lazy.PANEL):
                last = min(t, first + selection_lazy.PANEL)
                self._factor_rows(first, last, rows)
                own = products[error_curves.products_place(first, last)]
                selection_lazy.prepare_panel(rows, own, first, last)
        return products


def check_memory(n: int, labels: int) -> None:
    """Raise a MemoryError if the matrix of a pool does not fit into this machine."""
    _memory.check(
        8 * n * labels,
        f"a pool of {n} points with {labels} labels",
        "lower `max_labels` or take a part of the pool",
    )
