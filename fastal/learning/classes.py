"""Selection over a pool for a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastal import _validation as check
from fastal._types import Array, Bools, Ints
from fastal.learning.selection import ErrorCurves

if TYPE_CHECKING:
    from fastal._core.rule import Rule
    from fastal.models.classifier import LaplaceClassifier


class ClassSelection:
    """The points a classifier chooses from; their mean and variance are computed when asked for."""

    compilable = False

    def __init__(
        self,
        gp: LaplaceClassifier,
        points: Array,
        order: Ints,
        n_initial: int,
        capacity: int,
    ) -> None:
        self.gp: Any = gp
        self.model: Any = gp.copy()
        self.points, self.Z = points, gp.prior.scale("X", points)
        self.order, self.n_initial = order, n_initial
        self._labels: Ints = np.empty(capacity, dtype=np.int64)
        self._y, self._bounds = np.empty(capacity), np.empty(capacity)
        self.taken = np.zeros(len(points), dtype=np.bool_)
        self._marginals: tuple[Array, Array] | None = None

    @property
    def capacity(self) -> int:
        """Number of labels there is room for."""
        return self._labels.size

    @property
    def labels(self) -> Ints:
        """Points in the order of their labels."""
        return self._labels[: self.n_labels]

    @property
    def y(self) -> Array:
        """Their labels."""
        return self._y[: self.n_labels]

    @property
    def bounds(self) -> Array:
        """Bound of each label after the initial ones."""
        return self._bounds[self.n_initial : self.n_labels]

    @property
    def residuals(self) -> Array:
        """Not known of a classifier."""
        raise TypeError("a classifier has no residuals")

    @property
    def unlabelled(self) -> Bools:
        """Which points have no label."""
        left: Bools = np.logical_not(self.taken)
        return left

    def posterior(self) -> tuple[Array, Array]:
        """Return mean and variance of the latent function at every point."""
        mean, var = self._posterior()
        return mean.copy(), np.maximum(var, 0.0)

    def run(self, y: Array, target: int, rule: Rule | None, past_stop: bool, threads: int) -> None:
        """Labels of a classifier are taken one by one."""
        raise TypeError("a classifier has no compiled selection")

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
        n: int = self.model.n_labels
        return n

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
            self._marginals = self.model.posterior_scaled(self.Z)
        return self._marginals

    def reserve(self, capacity: int) -> None:
        """Make room for so many labels."""
        more = capacity - self._labels.size
        if more > 0:
            self._labels = np.r_[self._labels, np.empty(more, dtype=np.int64)]
            self._y = np.r_[self._y, np.empty(more)]
            self._bounds = np.r_[self._bounds, np.empty(more)]

    def best(self) -> int:
        """Return the unlabelled point whose class is least certain, the first among equals."""
        odds = np.abs(self.model.averaged_probabilities(*self._posterior())[:, 1] - 0.5)
        return int(np.argmin(np.where(self.taken, np.inf, odds)))

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        return float(np.max(self.var[~self.taken], initial=0.0))

    def skip(self, index: int) -> None:
        """Never choose a point."""
        self.taken[index] = True

    def accept(self, index: int, y: float, noise: float | None = None) -> float:
        """Label a point; return its bound. A class has no noise."""
        before = self.n_labels
        self._labels[before], self._y[before] = index, y
        self._bounds[before] = np.nan  # until it is known
        try:
            r: float = self.model.add(self.points[index], y)
            self._bounds[before] = r
            return r
        except ValueError as error:
            raise ValueError(f"invalid label for point {index}: {error}") from None
        finally:
            if self.n_labels > before:
                self.taken[index] = True
                self._marginals = None

    def settle(self) -> None:
        """Complete what was interrupted: labels are taken wholly, or not at all."""
        self.taken[self.labels] = True
        self._marginals = None
        last = self.n_labels - 1
        if last >= 0 and np.isnan(self._bounds[last]):
            again = self.model.copy()
            again.rewind(last)
            self._bounds[last] = again.add(self.points[self._labels[last]], float(self._y[last]))

    def frozen(self) -> Self:
        """Return another one that later labels do not change."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        new.model = self.model.copy()
        for name in ("_labels", "_y", "_bounds", "taken"):
            setattr(new, name, getattr(self, name).copy())
        return new

    def test_errors(self, X: Array, y: Array, threads: int) -> ErrorCurves:
        """Return the errors on a test set after each label, all labels taken once more."""
        check.class_labels("test", y, None, self.model.negative_class)
        return ErrorCurves(*self.model.replay_errors(X, y))
