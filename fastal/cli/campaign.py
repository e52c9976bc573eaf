"""One campaign over a table that has all labels: up to the stop, and on to the end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastal.learning.run import Run
    from fastal.models.gp import GaussianProcess


class Runs(NamedTuple):
    """One campaign, up to its stop and to its end."""

    first: Run  # up to the stop
    last: Run  # to the end of the pool


class Errors(NamedTuple):
    """Errors on the test set at the stop ("then"; at the end if there was none) and at the end."""

    loss_then: float
    loss_now: float
    rms_then: float
    rms_now: float

    @classmethod
    def of(cls, runs: Runs, y: Any, predict: Callable[[Run], Any], scale: float = 1.0) -> Errors:
        """Return the errors of a campaign; `scale` is the unit of the labels."""
        import numpy as np

        def rms(run: Run) -> float:
            return scale * math.sqrt(float(np.mean((y - predict(run)) ** 2)))

        def loss(run: Run) -> float:
            assert run.errors is not None
            return float(run.errors[-1])

        return cls(loss(runs.first), loss(runs.last), rms(runs.first), rms(runs.last))


def learn_past_stop(
    X: Any,
    y: Any,
    test: tuple[Any, Any],
    *,
    gp: GaussianProcess,
    alpha: float,
    seed: int,
    max_labels: int | None,
    progress: bool,
) -> Runs:
    """Learn up to the stop, and from there to the end."""
    from fastal.learning.run import learn
    from fastal.stopping.stopper import Stopper

    first = learn(
        X,
        y,
        gp=gp,
        stopper=Stopper(alpha),
        max_labels=max_labels,
        test=test,
        seed=seed,
        progress=progress,
    )
    if not first.stopped:
        return Runs(first, first)
    return Runs(first, first.resume(max_labels=len(y) if max_labels is None else max_labels))


def labels_of_pool(run: Run) -> str:
    """Say how many labels a stopped run used."""
    assert run.stopped_at is not None
    saved = 1 - run.stopped_at / run.n_pool
    return f"{run.stopped_at} of {run.n_pool} labels ({saved:.0%} of the pool saved)"
