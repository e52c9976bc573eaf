"""Selection over a pool for a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastal._types import Array, Ints
from fastal._validation import class_labels

if TYPE_CHECKING:
    from fastal.models.classifier import LaplaceClassifier


class ClassSelection:
    """The same for a classifier: mean and variance of all points are computed when asked for."""

    def __init__(self, gp: LaplaceClassifier, points: Array, capacity: int) -> None:
        self.gp, self.model = gp, gp.copy()
        self.points, self.Z = points, gp.prior.scale("X", points)
        self.labels: Ints = np.empty(capacity, dtype=np.int64)
        self.taken = np.zeros(len(points), dtype=np.bool_)
        self._marginals: tuple[Array, Array] | None = None

    @property
    def state(self) -> ClassSelection:
        """What a learner reads: labels, taken, mean and var."""
        return self

    @property
    def n_labels(self) -> int:
        """Number of labels so far."""
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
        Z, model, losses = self.gp.prior.scale("test", X), self.gp.copy(), np.empty(self.n_labels)
        for t, index in enumerate(self.labels[: self.n_labels].tolist()):
            model._append(self.Z[:, index, None], self.model._state.sign[t : t + 1], None)
            losses[t] = model._losses(Z, signs).mean()
        return losses
