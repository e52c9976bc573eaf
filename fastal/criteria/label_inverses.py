"""The inverses that cross-validation and PAC-Bayesian bounds need, growing with a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from fastal._core import label_traces
from fastal._core.covariance import covariance_rows
from fastal._types import Array

if TYPE_CHECKING:
    from fastal.models.buffers import Labels

# First capacity; it doubles.
CAPACITY = 64

# New labels that are taken one by one, in O(t^2) each. For more, LAPACK computes all of it.
FEW = 8


class LabelInverses:
    """A = (K + N)^-1 at the labels of a process, and what belongs to it.

    For PAC-Bayesian bounds (K + kappa I)^-1 and (K + C)^-1 as well, see
    `label_traces.pac_bayes_part`. After an error an object is not to be used any more.
    """

    def __init__(self, kappa: float = 0.0) -> None:
        self.kappa = kappa
        self.labels: Labels | None = None
        # (1 or 3, capacity, capacity)
        self.inverses = np.zeros((3 if kappa > 0.0 else 1, CAPACITY, CAPACITY))
        self.alpha, self.b = np.zeros(CAPACITY), np.empty(CAPACITY)  # alpha = A (y - mean), scratch
        self.logs = np.zeros(3)  # log-determinants of what is inverted

    @property
    def n(self) -> int:
        """Number of labels."""
        return 0 if self.labels is None else len(self.labels.y)

    def follow(self, labels: Labels) -> LabelInverses:
        """Go on to the labels of a process, from where it was or from the start; return itself."""
        n, total = self.n, len(labels.y)
        if not (n <= total <= n + FEW and self._begins(labels)):
            n = 0
        self.labels = labels
        if total > len(self.alpha):
            self._enlarge(max(total, 2 * len(self.alpha)))
        if n == 0:
            self._start(labels)
        for t in range(n or total, total):
            self._grow(labels, t)
        return self

    def cross_validation(self, folds: int) -> float:
        """Return the expected loss by cross-validation (see `label_traces.held_out_loss`)."""
        assert self.labels is not None
        most = -(-self.n // folds)
        return label_traces.held_out_loss(
            self.inverses[0], self.alpha, self.labels.noise, self.n, folds, np.empty((most, most))
        )

    def pac_bayes(self) -> float:
        """Return the part of the PAC-Bayesian bound that moves."""
        assert self.labels is not None
        A = self.inverses[0]
        B = self.inverses[1] if self.kappa > 0.0 else A  # not read without kappa
        y = self.labels.y - self.labels.mean
        return label_traces.pac_bayes_part(
            A, B, self.alpha, self.logs, y, self.labels.noise, self.kappa, self.n, np.empty(self.n)
        )

    def _begins(self, labels: Labels) -> bool:
        """Whether the labels so far are the first ones of these, under the same prior."""
        old = self.labels
        if old is None:
            return False
        n = len(old.y)
        same = (old.prior.kind, old.prior.amplitude, old.mean, len(old.scaled)) == (
            labels.prior.kind, labels.prior.amplitude, labels.mean, len(labels.scaled),
        )  # fmt: skip
        return (
            same
            and np.array_equal(old.y, labels.y[:n])
            and np.array_equal(old.noise, labels.noise[:n])
            and np.array_equal(old.scaled, labels.scaled[:, :n])
        )

    def _enlarge(self, capacity: int) -> None:
        """Make room for so many labels; what there is stays."""
        n = len(self.alpha)
        inverses, alpha = np.zeros((len(self.inverses), capacity, capacity)), np.zeros(capacity)
        inverses[:, :n, :n], alpha[:n] = self.inverses, self.alpha
        self.inverses, self.alpha, self.b = inverses, alpha, np.empty(capacity)

    def _shifts(self, noise: Array) -> list[Array]:
        """Return what each inverse has on its diagonal besides K, for labels of such noise."""
        if self.kappa == 0.0:
            return [noise]
        return [
            noise,
            np.full(len(noise), self.kappa),
            self.kappa * noise / (self.kappa + noise),
        ]

    def _start(self, labels: Labels) -> None:
        """Compute the inverses of all labels, in O(t^3)."""
        n = len(labels.y)
        K = np.empty((n, n))
        prior = labels.prior
        covariance_rows(prior.kind, prior.amplitude, labels.scaled, n, labels.scaled, 0, K)
        for i, shifts in enumerate(self._shifts(labels.noise)):
            L, status = dpotrf(K + np.diag(shifts), lower=1)
            if status != 0:
                raise _not_definite(int(status))
            self.logs[i] = 2.0 * np.log(np.diagonal(L)).sum()
            if i == 0:
                solved, _ = dpotrs(L, labels.y - labels.mean, lower=1)
                self.alpha[:n] = solved.reshape(n)
            lower, _ = dpotri(L, lower=1)
            self.inverses[i, :n, :n] = np.tril(lower) + np.tril(lower, -1).T

    def _grow(self, labels: Labels, t: int) -> None:
        """Take label t, in O(t^2)."""
        row = np.empty((1, t + 1))
        prior = labels.prior
        covariance_rows(prior.kind, prior.amplitude, labels.scaled, t + 1, labels.scaled, t, row)
        for i, shift in enumerate(self._shifts(labels.noise[t : t + 1])):
            pivot = label_traces.grow_inverse(row[0], shift.item(), t, self.inverses[i], self.b)
            if not pivot > 0.0:
                raise _not_definite(t + 1)
            self.logs[i] += np.log(pivot)
            if i == 0:
                y = float(labels.y[t]) - labels.mean
                label_traces.grow_weights(row[0], y, pivot, self.b, t, self.alpha)


def _not_definite(order: int) -> np.linalg.LinAlgError:
    return np.linalg.LinAlgError(
        f"the covariance of the labels is not positive definite: the leading minor of order {order}"
        " is not positive; increase `kappa` or the noise variance"
    )
