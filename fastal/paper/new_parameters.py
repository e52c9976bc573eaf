"""Section 5.3's two ways to go on when the hyper-parameters are fitted anew while labels come.

The paper names both and uses neither: its experiments keep common hyper-parameters. (1) Each bound
stays what it was under the fit of its moment. (2) All bounds are computed anew under each new fit;
as everywhere in fastal, two fits in a row must then agree on a stop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._types import Array
from fastal.paper.names import DATASETS
from fastal.paper.protocol import ARTIFICIAL_POOL, POOL, check_runs, load, store_file
from fastal.paper.table_one import PRINTED
from fastal.paper.text import aligned, wrapped
from fastal.simulation.campaigns import simulate
from fastal.simulation.result import mean_and_error
from fastal.stopping.stopper import Stopper

WAYS = ("as they come", "all anew")


class AsBoundsCome(Stopper):
    """A Stopper that keeps each bound as it came, and takes none anew after a fit."""

    def _see_fit(self, campaign: Any, bounds: Array, at_edge: bool) -> None:
        """Do nothing."""


class Way(NamedTuple):
    """One way on one data set: labels at the stop and e_stop, each with its standard error."""

    dataset: str
    way: str
    labels: float
    labels_se: float
    e_stop: float
    e_stop_se: float


@dataclass(frozen=True)
class TwoWays:
    """Both ways on each data set; prints as a table."""

    ways: list[Way]

    def __str__(self) -> str:
        rows = [["bounds", "", "labels", "e_stop", "paper's e_stop, common parameters"]]
        for one in self.ways:
            mean, error = PRINTED["proposed"][DATASETS.index(one.dataset)]
            rows.append([
                one.way,
                one.dataset,
                f"{one.labels:.1f} ± {one.labels_se:.1f}",
                f"{one.e_stop:.2f} ± {one.e_stop_se:.2f}",
                f"{mean:g} ± {error:g}",
            ])  # fmt: skip
        return aligned(rows) + "\n" + wrapped(LEGEND)


LEGEND = (
    "Length scale and noise are fitted while labels come, in each run for itself, and the error is "
    "minus the log of the predictive density; means ± standard errors over the runs. The paper has "
    "no values for either way: the last column is its row of Table 1, with common hyper-parameters."
)


def two_ways(
    datasets: Sequence[str] = DATASETS, runs: int = 20, seed: int = 0, *, jobs: int | None = None,
    progress: bool = False, report: Callable[[str], object] | None = None,
    store: str | os.PathLike[str] | None = None,
) -> TwoWays:  # fmt: skip
    """Run the proposed criterion with hyper-parameters that are fitted on the way (section 5.3).

    Parameters
    ----------
    datasets : sequence of str
        Some of `DATASETS`.
    runs : int
        Runs for each data set.
    seed : int
        Seed of the pools.
    jobs, progress, report, store
        As in `outcomes`.

    Returns
    -------
    TwoWays
        It prints as a table.

    Examples
    --------
    >>> from fastal.paper import two_ways
    >>> [(one.dataset, one.way) for one in two_ways(["artificial"], runs=2).ways]
    [('artificial', 'as they come'), ('artificial', 'all anew')]
    """
    for name in datasets:
        check.option("datasets", name, DATASETS)
    count, seed, jobs = check_runs(runs), check.seed("seed", seed), check.jobs("jobs", jobs)
    found = []
    for name in datasets:
        if report is not None:
            report(f"{name}: {count} runs")
        X, y = load(name)
        result = simulate(
            X, y, criterion=Stopper(fall=False), criteria=(AsBoundsCome(fall=False),), n_runs=count,
            pool_size=ARTIFICIAL_POOL if name == "artificial" else POOL, seed=seed, n_jobs=jobs,
            store=store_file(store, f"refits-{name}"), errors="raise", progress=progress,
        )  # fmt: skip
        assert result.t_opt is not None
        kept = result.criteria_stops[:, 0]
        stops = np.where(kept < 0, result.pool_size, kept), result.n_labels
        for way, labels in zip(WAYS, stops, strict=True):
            misses = np.abs(labels - result.t_opt)
            found.append(Way(name, way, *mean_and_error(labels), *mean_and_error(misses)))
    return TwoWays(found)
