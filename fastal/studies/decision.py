"""How much a stop leaves unused, rule by rule, and whether `StillToCome` keeps its word.

The experiment behind `fastal reproduce decision`, on the paper's data sets, by its protocol (see
`fastal.studies.protocol`), and on three deterministic simulators, at several sizes of the pool,
with labels chosen by variance and at random. Hyper-parameters are known: common to all runs of a
set.

`unused` of a run is the share of the fall of the RMSE, from the first label to the whole pool, that
is still to come at the stop. Sets whose error does not fall by a tenth are reported apart.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from fastal import _validation as check
from fastal._threads import map_blocks, one_blas_thread
from fastal._types import Array, Ints
from fastal.simulation.campaigns import simulate
from fastal.simulation.result import mean_and_error, write_csv
from fastal.stopping.still import StillToCome
from fastal.stopping.stopper import Stopper
from fastal.studies import protocol
from fastal.studies.names import DATASETS, SIMULATORS
from fastal.studies.simulators import simulator
from fastal.studies.text import aligned, wrapped

POOLS = (100, 400)

SELECTIONS = ("max_variance", "random")

RUNS = 100

# Settings of each rule, from few labels to many.
FRACTIONS = tuple(float(percent) / 100 for percent in range(1, 101))

LEVELS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12, 1e-15)

SHARES = (0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)

RULES = {
    "fixed fraction": FRACTIONS,
    "paper's rule": LEVELS,
    "StillToCome": SHARES,
}

# The claim is about these; the table shows a few more.
CLAIMED = (0.05, 0.1, 0.2)

SHOWN = (0.02, 0.05, 0.1, 0.2, 0.3)

COMPARED_AT = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # mean labels at which the rules are compared

PAPER_ALPHA = 0.001

# An error that falls by less leaves nothing to share out.
LEAST_FALL = 0.1

# Fewer rows for the test say little.
TEST_ROWS = 100

FIRST_LABEL = "after the first label"


class DecisionRow(NamedTuple):
    """A rule with one setting on one set, means over its runs.

    Attributes
    ----------
    pool : int
        Points in a pool.
    selection : str
        "max_variance" or "random".
    dataset : str
        Name of the set.
    rule : str
        One of `RULES`.
    setting : float
        Fraction, alpha, eps or share.
    labels : float
        Labels at the stop, as a share of the pool.
    unused, unused_error : float
        Share of the fall of the RMSE that is still to come at the stop, and its standard error.
    rmse : float
        RMSE at the stop.
    first, last : float
        RMSE after the first label, and with the whole pool.
    runs : int
        Number of runs.
    rises : int
        Runs whose error with the whole pool is not below that after the first label: they have no
        unused share, and do not count in its mean.
    """

    pool: int
    selection: str
    dataset: str
    rule: str
    setting: float
    labels: float
    unused: float
    unused_error: float
    rmse: float
    first: float
    last: float
    runs: int
    rises: int

    @property
    def falls(self) -> bool:
        """Whether the error of the set falls by a tenth."""
        return self.last <= (1 - LEAST_FALL) * self.first


class MeanOverSets(NamedTuple):
    """A rule with one setting, means over sets; `worst` is the largest unused share of a set."""

    labels: float
    unused: float
    worst: float
    worst_set: str
    sets: int


def unused(rmse: Array, stops: Ints) -> Array:
    """Return the share of the fall of the error that is still to come at the stop of each run.

    Parameters
    ----------
    rmse : ndarray, shape (runs, n)
        Errors after 1, 2, ..., n labels.
    stops : ndarray of int, shape (runs,)
        Labels at the stop.

    Returns
    -------
    ndarray, shape (runs,)
        ``(rmse at stop - rmse at n) / (rmse at 1 - rmse at n)``; NaN where the error does not fall.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal.studies import unused
    >>> unused(np.array([[1.0, 0.6, 0.3, 0.2]]), np.array([2]))
    array([0.5])
    """
    first, last = rmse[:, 0], rmse[:, -1]
    at = rmse[np.arange(len(stops)), stops - 1]
    fall = first - last
    shares: Array = np.full(len(stops), np.nan)
    return np.divide(at - last, fall, out=shares, where=fall > 0)


@dataclass(frozen=True)
class DecisionStudy:
    """Result of the experiment; prints as tables.

    Attributes
    ----------
    rows : list of DecisionRow
        One for each pool, selection, set, rule and setting.
    left_out : dict
        Pool -> names of the sets that have too few rows for it.
    rules : dict
        Rule -> its settings.
    since : str
        Since when a fall of the error counts.
    """

    rows: list[DecisionRow]
    left_out: dict[int, tuple[str, ...]]
    rules: dict[str, tuple[float, ...]] = field(default_factory=lambda: dict(RULES))
    since: str = FIRST_LABEL

    @property
    def panels(self) -> list[tuple[int, str]]:
        """Pools and selections there are, in order."""
        return list(dict.fromkeys((row.pool, row.selection) for row in self.rows))

    def select(self, pool: int, selection: str, **wanted: Any) -> list[DecisionRow]:
        """Return the rows of a pool and selection, and of a `rule`, `setting` or `dataset`.

        Parameters
        ----------
        pool : int
            Points in a pool.
        selection : str
            "max_variance" or "random".
        **wanted
            Further columns and what they must be.

        Returns
        -------
        list of DecisionRow
            In the order of `rows`.
        """
        wanted |= {"pool": pool, "selection": selection}
        return [
            row
            for row in self.rows
            if all(getattr(row, name) == value for name, value in wanted.items())
        ]

    @cached_property
    def _by_setting(self) -> dict[tuple[int, str, str, float], list[DecisionRow]]:
        """Rows of each pool, selection, rule and setting; tables ask for them often."""
        found: dict[tuple[int, str, str, float], list[DecisionRow]] = {}
        for row in self.rows:
            found.setdefault((row.pool, row.selection, row.rule, row.setting), []).append(row)
        return found

    def outcome(
        self, pool: int, selection: str, rule: str, setting: float,
        datasets: Sequence[str] = (*DATASETS, *SIMULATORS),
    ) -> MeanOverSets | None:  # fmt: skip
        """Return means over the sets whose error falls by a tenth.

        Parameters
        ----------
        pool : int
            Points in a pool.
        selection : str
            "max_variance" or "random".
        rule : str
            One of `RULES`.
        setting : float
            One of its settings.
        datasets : sequence of str
            The sets that count.

        Returns
        -------
        MeanOverSets or None
            None if there is no such set.
        """
        there = self._by_setting.get((pool, selection, rule, setting), [])
        rows = [row for row in there if row.falls and row.dataset in datasets]
        if not rows:
            return None
        worst = max(rows, key=lambda row: row.unused)
        return MeanOverSets(
            float(np.mean([row.labels for row in rows])),
            float(np.mean([row.unused for row in rows])),
            worst.unused,
            worst.dataset,
            len(rows),
        )

    def curve(self, pool: int, selection: str, rule: str) -> tuple[Array, Array]:
        """Return labels and unused shares of a rule, means over sets, by growing labels.

        Parameters
        ----------
        pool : int
            Points in a pool.
        selection : str
            "max_variance" or "random".
        rule : str
            One of `RULES`.

        Returns
        -------
        tuple of arrays
            Shares of the pool, and what they leave unused; empty where a rule does not apply.
        """
        check.option("rule", rule, tuple(self.rules))
        found = [self.outcome(pool, selection, rule, setting) for setting in self.rules[rule]]
        points = sorted((one.labels, one.unused) for one in found if one is not None)
        labels, left = np.array(points).reshape(-1, 2).T
        return labels, left

    def unused_at(self, pool: int, selection: str, rule: str, labels: float) -> float:
        """Return what a rule leaves unused at this mean share of labels; NaN beyond its settings.

        Parameters
        ----------
        pool : int
            Points in a pool.
        selection : str
            "max_variance" or "random".
        rule : str
            One of `RULES`.
        labels : float
            Share of the pool, in (0, 1).

        Returns
        -------
        float
            Between two settings, in proportion.
        """
        where, left = self.curve(pool, selection, rule)
        share = check.probability("labels", labels)
        if not len(where):
            return math.nan
        return float(np.interp(share, where, left, left=np.nan, right=np.nan))

    # tables ----------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, list[list[str]]]]:
        """Return titles and cells of all tables.

        Returns
        -------
        list of tuple
            Title and rows of texts, the first of them the head. Shares asked and unused come first,
            then what the rules leave unused at equal labels, then every set.
        """
        made = [(self._title(*panel), self._shares(*panel)) for panel in self.panels]
        made += [
            (
                f"unused with the same mean labels: pool {pool}, {_words(selection)}",
                self._equal_labels(pool, selection),
            )
            for pool, selection in self.panels
        ]
        made += [
            (
                f"set by set, StillToCome: pool {pool}, {_words(selection)}",
                self._sets(pool, selection),
            )
            for pool, selection in self.panels
        ]
        return made

    def _title(self, pool: int, selection: str) -> str:
        names = {row.dataset for row in self.select(pool, selection) if row.falls}
        sets = f"{len(names)} set{'' if len(names) == 1 else 's'}"
        return f"share asked and unused left: pool {pool}, {_words(selection)}, {sets}"

    def _shares(self, pool: int, selection: str) -> list[list[str]]:
        head = ["rule", "unused", "worst set", "labels"]
        groups = {
            name: group
            for name, group in (("paper's sets", DATASETS), ("simulators", SIMULATORS))
            if any(row.dataset in SIMULATORS for row in self.rows)  # else there is one group only
        }
        rows = [[*head, *groups]]
        rules = [
            (rule, share, rule.replace("StillToCome", f"StillToCome({share:g})"))
            for rule in self.rules
            if rule.startswith("StillToCome")
            for share in SHOWN
        ]
        rules.append(("paper's rule", PAPER_ALPHA, f"paper's rule, alpha {PAPER_ALPHA:g}"))
        for rule, setting, name in rules:
            every = self.outcome(pool, selection, rule, setting)
            if every is None:
                rows.append([name, *["-"] * (len(rows[0]) - 1)])
                continue
            parts = [
                self.outcome(pool, selection, rule, setting, group) for group in groups.values()
            ]
            rows.append(
                [
                    name,
                    _percent(every.unused),
                    f"{_percent(every.worst)} {every.worst_set}",
                    _percent(every.labels, 0),
                    *("-" if one is None else _percent(one.unused) for one in parts),
                ]
            )
        return rows

    def _equal_labels(self, pool: int, selection: str) -> list[list[str]]:
        rows = [["labels", *(_percent(share, 0) for share in COMPARED_AT)]]
        for rule in self.rules:
            found = [self.unused_at(pool, selection, rule, share) for share in COMPARED_AT]
            rows.append([rule, *map(_percent, found)])
        return rows

    def _sets(self, pool: int, selection: str) -> list[list[str]]:
        head = ["set: unused (labels)", "RMSE, first", "last"]
        head += [f"StillToCome({share:g})" for share in CLAIMED]
        rows = [head]
        some = {row.dataset: row for row in self.select(pool, selection)}
        for name, any_row in some.items():
            cells = [name if any_row.falls else f"{name} (apart)"]
            cells += [f"{any_row.first:.3g}", f"{any_row.last:.3g}"]
            for share in CLAIMED:
                chosen = {"rule": "StillToCome", "setting": share, "dataset": name}
                row = self.select(pool, selection, **chosen)[0]
                cells.append(f"{_percent(row.unused)} ({_percent(row.labels, 0)})")
            rows.append(cells)
        return rows

    def sentences(self) -> list[str]:
        """Return what came out, in words, the exceptions included.

        Returns
        -------
        list of str
            One or two sentences each.
        """
        cases, broken = 0, []
        for pool, selection in self.panels:
            for share in CLAIMED:
                found = self.outcome(pool, selection, "StillToCome", share)
                if found is None:
                    continue
                cases += 1
                if found.unused > share:
                    broken.append(
                        f"{_percent(found.unused, 2)} for {_percent(share, 0)} (pool {pool}, "
                        f"{_words(selection)})"
                    )
        said = []
        if cases:
            shares = ", ".join(_percent(share, 0) for share in CLAIMED)
            said.append(
                f"The mean over sets is at most the share asked in {cases - len(broken)} of "
                f"{cases} cases (pools, selections, shares of {shares})"
                + (f"; above it: {'; '.join(broken)}." if broken else ".")
            )
        over = [
            row
            for row in self.rows
            if row.rule == "StillToCome"
            and row.setting in CLAIMED
            and row.falls
            and row.unused > row.setting
        ]
        total = sum(
            row.rule == "StillToCome" and row.setting in CLAIMED and row.falls for row in self.rows
        )
        if over:
            worst = max(over, key=lambda row: row.unused - row.setting)
            said.append(
                f"Single sets exceed it in {len(over)} of {total} cases; furthest "
                f"{worst.dataset}: {_percent(worst.unused)} for {_percent(worst.setting, 0)} (pool "
                f"{worst.pool}, {_words(worst.selection)})."
            )
        apart = {(row.pool, row.selection, row.dataset) for row in self.rows if not row.falls}
        for pool, selection, name in sorted(apart):
            said.append(
                f"Apart, because its error does not fall by a tenth: {name} (pool {pool}, "
                f"{_words(selection)})."
            )
        rising = {
            (row.pool, row.selection, row.dataset): row
            for row in self.rows
            if row.rises and row.falls
        }
        for (pool, selection, name), row in rising.items():
            said.append(
                f"{name} (pool {pool}, {_words(selection)}): in {row.rises} of {row.runs} runs the "
                "error does not fall at all; they do not count."
            )
        for pool, names in self.left_out.items():
            if names:
                said.append(f"Too few rows for pools of {pool}: {', '.join(names)}.")
        return said

    def __str__(self) -> str:
        made = [f"{title}\n{aligned(cells)}" for title, cells in self.tables()]
        return "\n\n".join([*made, "\n".join(wrapped(text) for text in self.sentences())])

    def to_markdown(self) -> str:
        """Return the tables and sentences as Markdown."""
        parts = []
        for title, (head, *body) in self.tables():
            lines = [head, ["---"] * len(head), *body]
            table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
            parts.append(f"**{title}**\n\n{table}")
        parts += self.sentences()
        return "\n\n".join(parts) + "\n"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line for each pool, selection, set, rule and setting.

        Parameters
        ----------
        path : path
            File to write.
        """
        write_csv(path, DecisionRow._fields, self.rows)


def _words(selection: str) -> str:
    return "labels by variance" if selection == "max_variance" else "labels at random"


def _percent(share: float, digits: int = 1) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def _prepared(name: str, seed: int) -> protocol.Problem:
    return simulator(name, seed) if name in SIMULATORS else protocol.problem(name, seed)


def _rows_of(
    problem: protocol.Problem, pool: int, selection: str, runs: int, seed: int,
    store: str | None, jobs: int | None, progress: bool,
) -> list[DecisionRow]:  # fmt: skip
    """Run the campaigns of one set, pool and selection, and evaluate each rule on them."""
    paper = [Stopper(alpha, fall=False) for alpha in LEVELS]  # the letter of the paper
    criteria = [*(StillToCome(share) for share in SHARES), *paper]
    file = f"{problem.name}-{pool}-{selection}.sqlite"
    kept = None if store is None else os.path.join(store, file)
    result = simulate(
        problem.X,
        problem.y,
        gp=problem.gp,
        criteria=criteria,
        n_runs=runs,
        pool_size=pool,
        acquisition=selection,
        seed=seed,
        n_jobs=jobs,
        store=kept,
        errors="raise",
        progress=progress,
    )
    assert result.rmse is not None
    found = np.where(result.criteria_stops < 0, pool, result.criteria_stops)
    stops: dict[tuple[str, float], Ints] = {
        ("fixed fraction", share): np.full(runs, max(1, round(share * pool))) for share in FRACTIONS
    }
    for j, alpha in enumerate(LEVELS, start=len(SHARES)):
        stops["paper's rule", alpha] = found[:, j]
    for j, share in enumerate(SHARES):
        stops["StillToCome", share] = found[:, j]
    return [
        decision_row(problem.name, pool, selection, rule, setting, result.rmse, at, at / pool)
        for (rule, setting), at in stops.items()
    ]


def decision_row(
    name: str, pool: int, selection: str, rule: str, setting: float, rmse: Array, stops: Ints,
    labels: Array,
) -> DecisionRow:  # fmt: skip
    """Return the means over the runs of a rule with one setting.

    rmse : (runs, n), from the first error that counts on.  stops : which of these is the one at the
    stop, from 1.  labels : labels at the stop, as shares of the pool.
    """
    left = unused(rmse, stops)
    falling = left[~np.isnan(left)]
    mean, error = mean_and_error(falling)
    return DecisionRow(
        pool,
        selection,
        name,
        rule,
        setting,
        float(np.mean(labels)),
        mean,
        error,
        float(rmse[np.arange(len(stops)), stops - 1].mean()),
        float(rmse[:, 0].mean()),
        float(rmse[:, -1].mean()),
        len(stops),
        len(stops) - len(falling),
    )


def decision_study(
    datasets: Sequence[str] = (*DATASETS, *SIMULATORS), runs: int = RUNS, seed: int = 0, *,
    pools: Sequence[int] = POOLS, store: str | os.PathLike[str] | None = None,
    jobs: int | None = None, progress: bool = False,
    report: Callable[[str], object] | None = None,
) -> DecisionStudy:  # fmt: skip
    """Measure what each rule leaves unused, against the labels it uses.

    Parameters
    ----------
    datasets : sequence of str
        Some of `DATASETS` and `SIMULATORS`.
    runs : int
        Runs for each set, pool and selection.
    seed : int
        Seed of fits, simulators and pools.
    pools : sequence of int
        Sizes of the pool. A set that would leave fewer than 100 rows for the test is left out.
    store : path, optional
        A folder that keeps what is finished, a file for each set, pool and selection; made if need
        be. The same call with the same folder goes on where the last one was interrupted.
    jobs : int, optional
        Threads, as in `simulate`; they change nothing.
    progress : bool
        Whether to show a progress bar for each set.
    report : callable, optional
        Called with a progress message before each step.

    Returns
    -------
    DecisionStudy
        It prints as tables.

    Examples
    --------
    >>> from fastal.studies import decision_study
    >>> found = decision_study(["artificial"], runs=3, pools=[50])
    >>> found.panels
    [(50, 'max_variance'), (50, 'random')]
    >>> one = found.outcome(50, "max_variance", "StillToCome", 0.1)
    >>> bool(one.unused < 0.1), one.sets
    (True, 1)
    """
    names = check.sequence("datasets", datasets)
    for name in names:
        check.option("datasets", name, (*DATASETS, *SIMULATORS))
    sizes = [check.count("pools", size, 2) for size in check.sequence("pools", pools)]
    if not names or not sizes:
        raise ValueError(f"`{'pools' if names else 'datasets'}` must not be empty, got []")
    count = check.count("runs", runs, 1)
    seed, jobs = check.seed("seed", seed), check.jobs("jobs", jobs)
    check.flag("progress", progress)
    say = report or (lambda text: None)
    folder = None if store is None else os.fspath(store)
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    say(f"fitting length scale and noise: {', '.join(names)}")
    with one_blas_thread():
        problems = map_blocks(lambda name: _prepared(name, seed), names, effective_n_jobs(jobs))
    left_out = {
        size: tuple(one.name for one in problems if len(one.y) < size + TEST_ROWS) for size in sizes
    }
    most = max(len(one.y) for one in problems) - TEST_ROWS
    for size in sizes:
        if size > most:
            raise ValueError(
                f"`pools` must leave {TEST_ROWS} rows of a set for the test, so be at most {most}, "
                f"got {check.short_repr(size)}"
            )
    protocol.check_runs(count, 4 * max(sizes))
    rows: list[DecisionRow] = []
    for size in sizes:
        fit = [one for one in problems if one.name not in left_out[size]]
        for selection in SELECTIONS:
            for one in fit:
                say(f"{one.name}, pool {size}, {_words(selection)}: {count} runs")
                rows += _rows_of(one, size, selection, count, seed, folder, jobs, progress)
    return DecisionStudy(rows, left_out)
