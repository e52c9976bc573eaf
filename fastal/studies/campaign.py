"""What a stop leaves unused when nobody knows the hyper-parameters, rule by rule.

The experiment behind `fastal reproduce campaign`, on the paper's data sets: each run learns its
hyper-parameters on the way, as `fastal.learn` does without a process. Bounds are taken as they
come, under the fit of their moment; or all of them anew after each fit, and then two fits must
agree.

`unused` of a run is the share of the fall of the RMSE, from the first fit to the whole pool, that
is still to come at the stop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from fastal import _validation as check
from fastal import datasets as data
from fastal._state import FORMAT, state_values
from fastal._types import Array, Ints
from fastal.learning.refit import ESTIMATORS, using_estimator
from fastal.models.weak import LEAST_LABELS
from fastal.simulation.campaigns import simulate
from fastal.stopping.criterion import Criterion
from fastal.stopping.still import StillToCome
from fastal.stopping.stopper import Stopper
from fastal.studies import protocol
from fastal.studies.decision import (
    FRACTIONS,
    LEVELS,
    SHARES,
    DecisionRow,
    DecisionStudy,
    decision_row,
)
from fastal.studies.names import DATASETS

POOLS = (100, 300)

RUNS = 20

RULES = {
    "fixed fraction": FRACTIONS,
    "paper's rule": LEVELS,
    "StillToCome, as bounds come": SHARES,
    "StillToCome": SHARES,
}

# Fewer rows for the test say little.
TEST_ROWS = 100


class AsBoundsCome(Criterion):
    """Gives another criterion each bound under the fit of its moment, and no refits.

    Parameters
    ----------
    criterion : Criterion
        What decides.
    """

    def __init__(self, criterion: Criterion) -> None:
        if not isinstance(criterion, Criterion):
            raise TypeError(f"`criterion` must be a Criterion, got {check.short_repr(criterion)}")
        self.criterion = criterion

    def push(self, r: float) -> bool:
        """Give one bound to the criterion."""
        return self.criterion.push(r)

    def reset(self) -> Self:
        """Forget all bounds; return the criterion itself."""
        self.criterion.reset()
        return self

    @property
    def stopped_at(self) -> int | None:
        """Number of bounds at the stop, or None."""
        return self.criterion.stopped_at

    @property
    def reason(self) -> str:
        """Why it stopped, or why not yet."""
        return self.criterion.reason

    @property
    def history(self) -> Any:
        """The bounds as they came."""
        return self.criterion.history

    def expect(self, n_bounds: int) -> None:
        """Tell the criterion how many bounds there can be."""
        self.criterion.expect(n_bounds)

    def to_dict(self) -> dict[str, Any]:
        """Return settings and state as plain lists, numbers and texts."""
        return {
            "kind": "AsBoundsCome",
            "version": FORMAT,
            "criterion": self.criterion.to_dict(),
        }

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> AsBoundsCome:
        (criterion,) = state_values(state, ("criterion",))
        return cls(Criterion.from_dict(criterion))


def campaign_study(
    datasets: Sequence[str] = DATASETS, runs: int = RUNS, seed: int = 0, *,
    pools: Sequence[int] = POOLS, store: str | os.PathLike[str] | None = None,
    jobs: int | None = None, progress: bool = False,
    report: Callable[[str], object] | None = None, estimator: str | None = None,
) -> DecisionStudy:  # fmt: skip
    """Measure what each rule leaves unused when hyper-parameters are learnt on the way.

    Parameters
    ----------
    datasets : sequence of str
        Some of `DATASETS`.
    runs : int
        Runs for each set and pool.
    seed : int
        Seed of the pools.
    pools : sequence of int
        Sizes of the pool. A set that would leave fewer than 100 rows for the test is left out.
    store : path, optional
        A folder that keeps what is finished, a file for each set and pool; made if need be. The
        same call with the same folder goes on where the last one was interrupted.
    jobs : int, optional
        Threads, as in `simulate`; they change nothing.
    progress : bool
        Whether to show a progress bar for each set.
    report : callable, optional
        Called with a progress message before each step.
    estimator : {"weak", "plain"}, optional
        How hyper-parameters are fitted: with the weak prior or by the restricted likelihood alone;
        by default as `learn` does.

    Returns
    -------
    DecisionStudy
        It prints as tables.

    Examples
    --------
    >>> from fastal.studies import campaign_study
    >>> found = campaign_study(["artificial"], runs=2, pools=[30])
    >>> found.panels
    [(30, 'max_variance')]
    """
    names = check.sequence("datasets", datasets)
    for name in names:
        check.option("datasets", name, DATASETS)
    sizes = [
        check.count("pools", size, LEAST_LABELS + 1) for size in check.sequence("pools", pools)
    ]
    if not names or not sizes:
        raise ValueError(f"`{'pools' if names else 'datasets'}` must not be empty, got []")
    count = check.count("runs", runs, 1)
    seed, jobs = check.seed("seed", seed), check.jobs("jobs", jobs)
    check.flag("progress", progress)
    if estimator is not None:
        check.option("estimator", estimator, ESTIMATORS)
    say = report or (lambda text: None)
    folder = None if store is None else os.fspath(store)
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    tables = {name: _loaded(name) for name in names}
    left_out = {
        size: tuple(name for name in names if len(tables[name][1]) < size + TEST_ROWS)
        for size in sizes
    }
    most = max(len(y) for _, y in tables.values()) - TEST_ROWS
    for size in sizes:
        if size > most:
            raise ValueError(
                f"`pools` must leave {TEST_ROWS} rows of a set for the test, so be at most {most}, "
                f"got {check.short_repr(size)}"
            )
    protocol.check_runs(count, 4 * max(sizes))
    rows: list[DecisionRow] = []
    with using_estimator(estimator) as used:
        for size in sizes:
            for name in names:
                if name in left_out[size]:
                    continue
                say(f"{name}, pool {size}: {count} runs")
                file = f"{name}-{size}-{used}.sqlite"
                kept = None if folder is None else os.path.join(folder, file)
                rows += _rows_of(name, *tables[name], size, count, seed, kept, jobs, progress)
    return DecisionStudy(rows, left_out, RULES, "after the first fit")


def _loaded(name: str) -> tuple[Array, Array]:
    X, y = data.artificial() if name == "artificial" else data.load(name)
    return X, y


def _rows_of(
    name: str, X: Array, y: Array, pool: int, runs: int, seed: int, store: str | None,
    jobs: int | None, progress: bool,
) -> list[DecisionRow]:  # fmt: skip
    """Run the campaigns of one set and pool, and evaluate each rule on them."""
    paper = [AsBoundsCome(Stopper(alpha, fall=False)) for alpha in LEVELS]
    come = [AsBoundsCome(StillToCome(share)) for share in SHARES]
    confirmed = [StillToCome(share) for share in SHARES]
    criteria = [*paper, *come, *confirmed]
    result = simulate(
        X,
        y,
        criteria=criteria,
        n_runs=runs,
        pool_size=pool,
        seed=seed,
        n_jobs=jobs,
        store=store,
        errors="raise",
        progress=progress,
    )
    assert result.rmse is not None
    found = np.where(result.criteria_stops < 0, pool, result.criteria_stops)
    stops: dict[tuple[str, float], Ints] = {}
    for share in FRACTIONS:
        stops["fixed fraction", share] = np.full(runs, max(LEAST_LABELS, round(share * pool)))
    j = 0
    for rule, settings in (
        ("paper's rule", LEVELS),
        ("StillToCome, as bounds come", SHARES),
        ("StillToCome", SHARES),
    ):
        for setting in settings:
            stops[rule, setting] = found[:, j]
            j += 1
    rmse = result.rmse[:, LEAST_LABELS - 1 :]  # before there is no model
    return [
        decision_row(
            name, pool, "max_variance", rule, setting, rmse, at - LEAST_LABELS + 1, at / pool
        )
        for (rule, setting), at in stops.items()
    ]
