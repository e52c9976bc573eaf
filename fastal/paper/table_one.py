"""Table 1 of the paper: how far each criterion stops from the best moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._types import Ints
from fastal.paper.names import CRITERIA, DATASETS
from fastal.paper.protocol import (
    OTHERS,
    REFERENCE,
    SEARCHED,
    Campaigns,
    best_threshold,
    campaigns,
    check_runs,
    problems,
    store_file,
    true_threshold,
)
from fastal.paper.text import aligned, wrapped
from fastal.simulation.result import mean_and_error, write_csv

# Table 1 as printed: mean and standard error of e_stop, in the order of DATASETS.
PRINTED = {
    "ground_truth": (
        (0.25, 0.05), (1.81, 0.25), (2.11, 0.39), (0.06, 0.03), (4.29, 0.58), (15.5, 1.52),
    ),
    "proposed": (
        (2.38, 0.58), (13.52, 1.05), (27.89, 2.34), (17.26, 1.5), (15.83, 1.28), (16.33, 1.28),
    ),
    "pac_bayes": (
        (10.16, 0.59), (30.35, 1.8), (37.5, 1.93), (54.17, 1.44), (54.06, 1.19), (44.7, 1.18),
    ),
    "cross_validation": (
        (32.84, 0.59), (13.84, 1.39), (29.2, 1.92), (14.35, 1.21), (17.09, 1.35), (17.69, 1.42),
    ),
    "max_variance": (
        (5.57, 0.61), (10.52, 1.12), (37.5, 1.93), (14.26, 1.39), (29.15, 1.25), (24.82, 1.2),
    ),
}  # fmt: skip


class Cell(NamedTuple):
    """A cell of Table 1: e_stop of one criterion on one data set, and the paper's."""

    dataset: str
    criterion: str
    mean: float
    se: float
    paper_mean: float
    paper_se: float

    @property
    def differs(self) -> bool:
        """Whether the difference is beyond twice the combined standard error."""
        return abs(self.mean - self.paper_mean) > 2 * float(np.hypot(self.se, self.paper_se))


@dataclass(frozen=True)
class Outcome:
    """Stops and thresholds on one data set.

    Attributes
    ----------
    campaign : Campaigns
        The runs.
    stops : dict
        Labels at the stop of each run, by criterion.
    thresholds : dict
        Thresholds of the criteria that have one.
    """

    campaign: Campaigns
    stops: dict[str, Ints]
    thresholds: dict[str, float]

    def cells(self) -> list[Cell]:
        """Return the cells of Table 1."""
        name = self.campaign.problem.name
        found = []
        for criterion, stops in self.stops.items():
            misses = self.campaign.misses(stops)
            printed = PRINTED[criterion][DATASETS.index(name)]
            found.append(Cell(name, criterion, *mean_and_error(misses), *printed))
        return found


def outcomes(
    datasets: Sequence[str] = DATASETS, criteria: Sequence[str] = CRITERIA, runs: int = 100,
    seed: int = 0, *, jobs: int | None = None, progress: bool = False,
    report: Callable[[str], object] | None = None,
    store: str | os.PathLike[str] | None = None,
) -> list[Outcome]:  # fmt: skip
    """Run the experiment of Table 1 and Figure 1.

    Parameters
    ----------
    datasets, criteria : sequence of str
        Some of `DATASETS` and `CRITERIA`.
    runs : int
        Runs for each data set.
    seed : int
        Seed of fits and pools.
    jobs : int, optional
        Threads; they change nothing.
    progress : bool
        Whether to show a progress bar for each data set.
    report : callable, optional
        Called with a progress message before each step.
    store : path, optional
        A folder that keeps finished runs, made if need be. The same call with the same folder goes
        on where the last one was interrupted.

    Returns
    -------
    list of Outcome
        One for each data set.
    """
    for name in datasets:
        check.option("datasets", name, DATASETS)
    for name in criteria:
        check.option("criteria", name, CRITERIA)
    count, seed, jobs = check_runs(runs), check.seed("seed", seed), check.jobs("jobs", jobs)
    searched = [name for name in criteria if name in SEARCHED]
    others = any(name in OTHERS for name in criteria)
    names = list(dict.fromkeys((*datasets, REFERENCE) if searched else datasets))
    done: dict[str, Campaigns] = {}
    say = report or (lambda text: None)
    for prepared in problems(names, seed, jobs=jobs, report=say):
        say(f"{prepared.name}: {count} runs")
        done[prepared.name] = campaigns(
            prepared, count, seed, others=others, jobs=jobs, progress=progress,
            store=store_file(store, f"table-{prepared.name}"),
        )  # fmt: skip
    thresholds = {name: best_threshold(name, done[REFERENCE]) for name in searched}
    found = []
    for name in datasets:
        campaign = done[name]
        own = dict(thresholds)
        if "ground_truth" in criteria:
            own["ground_truth"] = true_threshold(campaign)
        stops = {
            criterion: campaign.result.n_labels
            if criterion == "proposed"
            else campaign.stops(criterion, own[criterion])
            for criterion in criteria
        }
        found.append(Outcome(campaign, stops, own))
    return found


class Table1:
    """Table 1 of the paper, computed anew.

    Attributes
    ----------
    cells : list of Cell
        One for each data set and criterion.
    outcomes : list of Outcome
        The runs that they summarise.
    """

    def __init__(self, found: list[Outcome]) -> None:
        self.outcomes = found
        self.cells = [cell for outcome in found for cell in outcome.cells()]

    def _grid(self, text: Callable[[Cell], str]) -> list[list[str]]:
        """Return the table as texts: a row for each criterion, a column for each data set."""
        names = list(dict.fromkeys(cell.dataset for cell in self.cells))
        rows = list(dict.fromkeys(cell.criterion for cell in self.cells))
        by_place = {(cell.criterion, cell.dataset): text(cell) for cell in self.cells}
        return [["", *names]] + [[row] + [by_place[row, name] for name in names] for row in rows]

    def __str__(self) -> str:
        return aligned(self._grid(_cell_text)) + "\n" + wrapped(LEGEND)

    def to_markdown(self) -> str:
        """Return the table in Markdown, with a line that explains the cells."""
        head, *rows = self._grid(_cell_text)
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n\n" + LEGEND + "\n"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line per cell."""
        write_csv(path, Cell._fields, self.cells)

    def records_to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line for each run: when the error had converged, and each criterion's stop."""
        criteria = list(self.outcomes[0].stops)
        rows = []
        for outcome in self.outcomes:
            result = outcome.campaign.result
            assert result.t_opt is not None
            columns = [outcome.stops[name].tolist() for name in criteria]
            runs = zip(range(result.n_runs), result.t_opt.tolist(), *columns, strict=True)
            rows += [(outcome.campaign.problem.name, *values) for values in runs]
        write_csv(path, ("dataset", "run", "t_opt", *criteria), rows)


LEGEND = (
    "e_stop: mean ± standard error over the runs (in brackets the paper's); * marks a difference "
    "beyond twice the combined error"
)


def _cell_text(cell: Cell) -> str:
    mark = "*" if cell.differs else ""
    return f"{cell.mean:.2f} ± {cell.se:.2f}{mark} ({cell.paper_mean:g} ± {cell.paper_se:g})"


def table1(
    datasets: Sequence[str] = DATASETS, criteria: Sequence[str] = CRITERIA, runs: int = 100,
    seed: int = 0, *, jobs: int | None = None, progress: bool = False,
    report: Callable[[str], object] | None = None,
    store: str | os.PathLike[str] | None = None,
) -> Table1:  # fmt: skip
    """Compute Table 1 of the paper.

    Parameters
    ----------
    datasets, criteria, runs, seed, jobs, progress, report, store
        As in `outcomes`.

    Returns
    -------
    Table1
        It prints with the paper's values beside ours.

    Examples
    --------
    >>> from fastal.paper import table1
    >>> table = table1(["artificial"], ["ground_truth", "proposed"], runs=10)
    >>> [cell.criterion for cell in table.cells]
    ['ground_truth', 'proposed']
    """
    return Table1(
        outcomes(
            datasets, criteria, runs, seed, jobs=jobs, progress=progress, report=report,
            store=store,
        )
    )  # fmt: skip
