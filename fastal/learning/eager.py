"""The eager selection: mean and variance of every point follow each label; for small pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastal._core import selection_eager
from fastal._types import Array
from fastal.learning.gaussian import GaussianSelection, check_memory

# Points times labels up to which a campaign takes about a tenth of a millisecond.
BRIEF_ENTRIES = 10_000


class EagerSelection(GaussianSelection):
    """A label costs O(t N); the fastest for small pools, and the one that knows all means."""

    def _new_state(self, capacity: int) -> Any:
        gp = self.gp
        check_memory(self.n, capacity)
        return selection_eager.new_eager(self.Z, capacity, gp.amplitude, gp.mean)

    def _moved(self, new: Any, t: int) -> dict[str, Array]:
        new.V[:t] = self.state.V[:t]
        return {"V": new.V}

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
        return self.state.mean.copy(), np.maximum(self.state.var, 0.0)

    def _factor_rows(self, first: int, last: int, out: Array) -> None:
        s = self.state
        out[: last - first, :last] = s.V[:last, s.labels[first:last]].T
        own = np.arange(last - first)
        out[own, first + own] = s.diagonal[first:last]
