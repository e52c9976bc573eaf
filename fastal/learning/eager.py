"""The eager selection: mean and variance of every point follow each label; for small pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastal._core import selection_eager
from fastal._types import Array, Ints
from fastal.learning.gaussian import GaussianSelection, check_memory

if TYPE_CHECKING:
    from fastal.models.gp import GaussianProcess

# Points times labels up to which a campaign takes about a tenth of a millisecond.
BRIEF_ENTRIES = 10_000


class EagerSelection(GaussianSelection):
    """A label costs O(t N); the fastest for small pools, and the one that can know all means."""

    all_means = False

    def __init__(
        self,
        gp: GaussianProcess,
        Z: Array,
        order: Ints,
        n_initial: int,
        capacity: int,
        all_means: bool = False,
    ) -> None:
        self.all_means = all_means
        super().__init__(gp, Z, order, n_initial, capacity)

    def _new_state(self, capacity: int) -> Any:
        gp = self.gp
        check_memory(self.n, capacity)
        return selection_eager.new_eager(self.Z, capacity, gp.amplitude, gp.mean, self.all_means)

    def _moved(self, new: Any, t: int) -> dict[str, Array]:
        new.V[:t] = self.state.V[:t]
        return {"V": new.V}

    def frozen(self) -> Self:
        """Return another one that later labels do not change."""
        new = super().frozen()
        if not self.all_means:  # columns of the factor change places
            old, t = self.state, self.n_labels
            V = np.empty_like(old.V)
            V[:t] = old.V[:t]
            new.state = new.state._replace(Z=old.Z.copy(), V=V)
        return new

    def largest_variance(self) -> float:
        """Return the largest variance of an unlabelled point; 0.0 if there is none."""
        found, s = self.best(), self.state
        return 0.0 if found < 0 else max(0.0, float(s.var[s.columns[found]]))

    def best(self) -> int:
        """Return the unlabelled point of largest variance, the lowest index among equals."""
        return int(selection_eager.best(self.state))

    def _accept(self, index: int, y: float, noise: float) -> tuple[int, float]:
        gp = self.gp
        status: int
        status, r = selection_eager.accept(gp.prior.kind, gp.amplitude, noise, self.state, index, y)
        return status, r

    def _run(self, y: Array, target: int, rule: int, past_stop: bool, threads: int) -> Any:
        gp = self.gp
        brief = self.n * target <= BRIEF_ENTRIES
        run = selection_eager.run_briefly if brief else selection_eager.run
        return run(
            gp.prior.kind, gp.amplitude, gp.noise, self.state, y, self.order, self.n_initial,
            target, rule, past_stop,
        )  # fmt: skip

    def settle(self) -> None:
        """Do nothing: a label is taken in one call."""

    def posterior(self) -> tuple[Array, Array]:
        """Return mean and variance of every point."""
        if not self.all_means:
            return super().posterior()
        return self.state.mean[: self.n].copy(), np.maximum(self.state.var[: self.n], 0.0)

    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        s = self.state
        out[: last - first, :last] = s.V[:last, s.columns[s.labels[first:last]]].T
        own = np.arange(last - first)
        out[own, first + own] = s.diagonal[first:last]
