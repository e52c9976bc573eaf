"""A pool before the first fit: labels are kept, and nothing is known of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastal._types import Array, Bools, Ints

if TYPE_CHECKING:
    from fastal._core.rule import Rule
    from fastal.learning.selection import ErrorCurves


class Unfitted:
    """Labels of a pool whose hyper-parameters are not known yet; points come in random order."""

    compilable = True

    model = None

    def __init__(self, n: int, order: Ints, n_initial: int) -> None:
        self.n, self.order, self.n_initial = n, order, n_initial
        self._labels: list[int] = []
        self._y: list[float] = []
        self.taken = np.zeros(n, dtype=np.bool_)

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
        return len(self._y)

    @property
    def capacity(self) -> int:
        """Number of labels there is room for."""
        return self.n

    @property
    def labels(self) -> Ints:
        """Points in the order of their labels."""
        return np.array(self._labels[: len(self._y)], dtype=np.int64)

    @property
    def y(self) -> Array:
        """Their labels."""
        return np.array(self._y, dtype=np.float64)

    @property
    def bounds(self) -> Array:
        """No bounds without hyper-parameters."""
        return np.empty(0)

    @property
    def residuals(self) -> Array:
        """No residuals either."""
        return np.empty(0)

    @property
    def unlabelled(self) -> Bools:
        """Which points have no label."""
        left: Bools = np.logical_not(self.taken)
        return left

    def best(self) -> int:
        """Nothing is known that would tell one point from another."""
        raise ValueError("no point is better than another before the first fit")

    def accept(self, index: int, y: float, noise: float | None = None) -> float:
        """Keep a label; it has no bound yet."""
        del self._labels[len(self._y) :]  # of a label that was interrupted
        self._labels.append(index)
        self._y.append(y)  # from here on it is there
        self.taken[index] = True
        return float("nan")

    def skip(self, index: int) -> None:
        """Never choose a point."""
        self.taken[index] = True

    def run(self, y: Array, target: int, rule: Rule | None, past_stop: bool, threads: int) -> None:
        """Keep labels of the next points of the order."""
        for index in self.order[self.n_labels : target].tolist():
            self.accept(index, float(y[index]))

    def settle(self) -> None:
        """Complete a label that was interrupted."""
        self.taken[self.labels] = True

    def posterior(self) -> tuple[Array, Array]:
        """Nothing is known yet."""
        raise ValueError("there is no posterior before the first fit")

    def largest_variance(self) -> float:
        """Nothing is known yet."""
        return float("nan")

    def test_errors(self, X: Array, y: Array, threads: int) -> ErrorCurves:
        """Nothing is known yet."""
        raise ValueError("there are no errors before the first fit")

    def reserve(self, capacity: int) -> None:
        """There is always room."""

    def frozen(self) -> Unfitted:
        """Return another one that later labels do not change."""
        new = Unfitted(self.n, self.order, self.n_initial)
        new._labels, new._y, new.taken = list(self._labels), list(self._y), self.taken.copy()
        return new
