"""Simulation: the table of all runs."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal import _validation as check
from fastal._types import Array, Ints
from fastal.runs import movement_left
from fastal.simulation.plan import draw_pools
from fastal.simulation.scheduler import CHUNK_RUNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastal.simulation.chunk import Chunk
    from fastal.simulation.plan import Plan


class Failure(NamedTuple):
    """A run that failed.

    Attributes
    ----------
    run : int
        Its number.
    seed : str
        What its generator was seeded with, to be passed to ``numpy.random.default_rng``.
    message : str
        What went wrong.
    """

    run: int
    seed: str
    message: str


class _Table:
    """The results of all runs, filled chunk by chunk."""

    def __init__(self, plan: Plan, n: int) -> None:
        c, h, b, t = plan.widths
        self.n = n
        self.raising = plan.raising
        self.done = np.zeros(n, dtype=np.bool_)
        self.counts = np.zeros((2, n), dtype=np.int64)
        self.criteria = np.full((n, c), -1, dtype=np.int64)
        # written by `put` before anybody reads them
        self.histories = np.empty((n, h, b))
        self.bounds = np.empty((n, b))
        self.errors = np.empty((n, t))
        self.rmse = np.empty((n, t if plan.keep_bounds else 0))
        self.messages: dict[int, str] = {}

    @property
    def n_done(self) -> int:
        return int(self.done.sum())

    def missing(self) -> Ints:
        return np.flatnonzero(~self.done)

    def put(self, chunk: Chunk) -> None:
        """Take a chunk; runs beyond the last one wanted are left out."""
        runs = chunk.runs
        if runs.ndim != 1 or (runs < 0).any():
            raise ValueError("a chunk has no run numbers")
        wanted: Any = runs < self.n
        if self.raising and chunk.messages:
            # done again, so that the exception itself comes up
            wanted &= ~np.isin(runs, [run for run, _ in chunk.messages])
        to: Any = runs[wanted]
        if wanted.all() and (np.diff(runs) == 1).all():
            to, wanted = slice(runs[0], runs[-1] + 1), slice(None)  # one copy instead of two
        self.counts[:, to] = chunk.counts[:, wanted]
        self.criteria[to] = chunk.criteria[wanted]
        self.histories[to] = chunk.histories[wanted]
        self.bounds[to] = chunk.bounds[wanted]
        self.errors[to] = chunk.errors[wanted]
        self.rmse[to] = chunk.rmse[wanted]
        self.done[to] = True
        self.messages.update((run, text) for run, text in chunk.messages if run < self.n)


class Simulation:
    """Result of many learning runs; entry i of each array is run i.

    Attributes
    ----------
    n_labels : array of int
        Labels that the campaign used: up to the stop, or all it could have; 0 if the run failed.
    stopped : array of bool
        Whether the criterion stopped.
    stopped_at : array of int
        Labels at the stop, -1 if there was none.
    bounds : array, shape (n_runs, max_labels - initial), or None
        Bounds of the labels after the initial ones, NaN after the last one.
    errors : array, shape (n_runs, max_labels), or None
        Expected loss on the test set after 1, 2, ... labels.
    rmse : array, shape (n_runs, max_labels), or None
        Root mean square of y minus the posterior mean on the test set after 1, 2, ... labels.
    left : array, shape (n_runs, max_labels - initial), or None
        Share of all movement of the model that is still to come after each bound (see
        `MovementBelow`), whatever the criterion; NaN where it is not defined.
    eta : float or None
        Error that counts as converged: mean + 2 standard deviations of the final errors.
    t_opt : array of int or None
        First number of labels with an error of at most `eta`, the last one if there is none; -1 if
        the run failed.
    e_stop : array of int or None
        ``|n_labels - t_opt|``, the paper's measure; -1 if the run failed.
    criteria : tuple of criteria
        The further ones.
    criteria_stops : array of int, shape (n_runs, n_criteria)
        Labels at the stop of each, -1 if there was none.
    failures : list of Failure
        Runs that failed, with seed and message.
    ok : array of bool
        Which runs did not fail.
    n_runs, pool_size, initial, max_labels, seed : int
        As given, or by default.
    """

    def __init__(self, plan: Plan, table: _Table, n_rows: int, keep: bool) -> None:
        self._plan = plan
        self._n_rows = n_rows
        self.n_runs = table.n
        self.pool_size, self.initial = plan.pool_size, plan.initial
        self.max_labels, self.seed = plan.max_labels, plan.seed
        self.criteria = plan.criteria
        self.failures = [
            Failure(run, f"SeedSequence({plan.seed}, spawn_key=({run},))", message)
            for run, message in sorted(table.messages.items())
        ]
        self.ok: NDArray[np.bool_] = np.ones(table.n, dtype=np.bool_)
        self.ok[[failure.run for failure in self.failures]] = False
        self.stopped_at: Ints = table.counts[1]
        self.stopped: NDArray[np.bool_] = self.stopped_at >= 0
        self.n_labels: Ints = np.where(self.stopped, self.stopped_at, table.counts[0])
        self.criteria_stops: Ints = table.criteria
        self._histories = table.histories if keep else None
        self.bounds: Array | None = table.bounds if keep else None
        self.errors: Array | None = table.errors if keep and plan.has_test else None
        self.rmse: Array | None = table.rmse if keep and plan.has_test else None
        self.eta: float | None = None
        self.t_opt: Ints | None = None
        self.e_stop: Ints | None = None
        self._at_stop: Array | None = None
        if plan.has_test:
            self._compare(table.errors)

    def _compare(self, errors: Array) -> None:
        """Compute how far the stops are from where the error had converged."""
        ok, t = self.ok, errors.shape[1]
        final = errors[ok, -1]
        self.eta = float(final.mean() + 2 * final.std()) if len(final) else math.nan
        t_opt = np.full(self.n_runs, -1, dtype=np.int64)
        # by blocks: the mask of all runs at once would take as much memory as an eighth of them
        for low in range(0, self.n_runs, CHUNK_RUNS):
            good = errors[low : low + CHUNK_RUNS] <= self.eta
            t_opt[low : low + CHUNK_RUNS] = np.where(good.any(axis=1), good.argmax(axis=1) + 1, t)
        self.t_opt = np.where(ok, t_opt, -1)
        self.e_stop = np.where(ok, np.abs(self.n_labels - t_opt), -1)
        last = np.maximum(self.n_labels, 1) - 1
        self._at_stop = errors[np.arange(self.n_runs), last]

    @property
    def left(self) -> Array | None:
        """Share of all movement of the model that is still to come, after each bound."""
        if self.bounds is None:
            return None
        missing = np.isnan(self.bounds)
        if self.bounds.size == 0:
            return self.bounds.copy()
        left = movement_left(np.where(missing, 0.0, self.bounds), self.bounds.shape[1])
        left[missing] = np.nan
        return left

    def history(self, j: int) -> Array:
        """Return the numbers that a further criterion went by.

        Parameters
        ----------
        j : int
            Which of `criteria`.

        Returns
        -------
        array, shape (n_runs, max_labels - initial)
            One number for each label after the initial ones, NaN where there is none; the bounds,
            if it is one that goes by them.
        """
        number = check.below("j", j, len(self.criteria))
        if self.bounds is None or self._histories is None:
            raise ValueError("histories are not kept with keep='summary'")
        measured = self._plan.measured
        if number not in measured:
            return self.bounds
        found: Array = self._histories[:, measured.index(number)]
        return found

    def pool(self, run: int) -> Ints:
        """Return the rows of a run's pool, the first labels first.

        Parameters
        ----------
        run : int
            Number of the run.

        Returns
        -------
        array of int
            Rows of `X`; ``learn(X[rows], y[rows], initial=range(initial), ...)`` is the run. With
            a callable, rows of what it makes of the run's seed, if that has as many rows as the
            first run's.
        """
        number = check.below("run", run, self.n_runs)
        rows: Ints = draw_pools(self._plan, np.array([number]), self._n_rows)[0]
        return rows

    def summary(self) -> dict[str, Any]:
        """Return the means over the runs that did not fail, with their standard errors.

        Returns
        -------
        dict
            ``n_runs``, ``n_failed``, ``stopped`` (share of the runs) and, each with its standard
            error under the name with ``_se``: ``n_labels``, ``savings`` (share of the pool that is
            not labelled), ``t_opt``, ``e_stop``, ``error`` (at the stop). ``criteria`` has
            ``criterion``, ``stopped``, ``n_labels`` and ``e_stop`` of each further criterion.
        """
        ok = self.ok
        found: dict[str, Any] = {
            "n_runs": self.n_runs,
            "n_failed": len(self.failures),
            "stopped": mean_and_error(self.stopped[ok])[0],
        }
        columns: dict[str, Any] = {
            "n_labels": self.n_labels,
            "savings": 1 - self.n_labels / self.pool_size,
            "t_opt": self.t_opt,
            "e_stop": self.e_stop,
            "error": self._at_stop,
        }
        for name, values in columns.items():
            if values is not None:
                found[name], found[f"{name}_se"] = mean_and_error(values[ok])
        found["criteria"] = []
        for j, criterion in enumerate(self.criteria):
            stops = self.criteria_stops[ok, j]
            labels = np.where(stops < 0, self.max_labels, stops)
            row: dict[str, Any] = {
                "criterion": repr(criterion),
                "stopped": mean_and_error(stops >= 0)[0],
            }
            row["n_labels"], row["n_labels_se"] = mean_and_error(labels)
            if self.t_opt is not None:
                misses = np.abs(labels - self.t_opt[ok])
                row["e_stop"], row["e_stop_se"] = mean_and_error(misses)
            found["criteria"].append(row)
        return found

    def _columns(self) -> dict[str, list[Any]]:
        """Return a table with one row per run; None where there is nothing."""
        columns: dict[str, list[Any]] = {
            "run": list(range(self.n_runs)),
            "n_labels": self.n_labels.tolist(),
            "stopped": self.stopped.tolist(),
            "stopped_at": _or_none(self.stopped_at),
        }
        if self.t_opt is not None and self.e_stop is not None and self._at_stop is not None:
            columns["t_opt"] = _or_none(self.t_opt)
            columns["e_stop"] = _or_none(self.e_stop)
            columns["error"] = [None if math.isnan(v) else v for v in self._at_stop.tolist()]
        for j in range(len(self.criteria)):
            columns[f"criterion_{j + 1}"] = _or_none(self.criteria_stops[:, j])
        messages: list[str | None] = [None] * self.n_runs
        for failure in self.failures:
            messages[failure.run] = failure.message
        columns["failure"] = messages
        return columns

    def to_pandas(self) -> Any:
        """Return a table with one row per run.

        Returns
        -------
        pandas.DataFrame
            Columns ``n_labels``, ``stopped``, ``stopped_at``, with a test set ``t_opt``, ``e_stop``
            and ``error`` (at the stop), ``criterion_1``... for further criteria, and ``failure``.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install pandas") from None
        columns: dict[str, Any] = {}
        for name, values in self._columns().items():
            whole = name in ("stopped_at", "t_opt", "e_stop") or name.startswith("criterion_")
            columns[name] = pd.array(values, dtype="Int64") if whole else values
        return pd.DataFrame(columns).set_index("run")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_pandas` to a file; numbers are written to their last digit.

        Parameters
        ----------
        path : path
            File to write.
        """
        columns = self._columns()
        write_csv(path, columns, zip(*columns.values(), strict=True))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors of all runs against the labels, and where they stopped.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib axes
            Those of the stops.
        """
        from fastal.plotting.simulation import plot_simulation

        return plot_simulation(self, ax)

    def __repr__(self) -> str:
        said = self.summary()
        lines = [f"Simulation of {self.n_runs} runs, pools of {self.pool_size}"]
        if self.failures:
            first = self.failures[0]
            lines.append(f"  failed    {len(self.failures)}; run {first.run}: {first.message}")
        if len(self.failures) < self.n_runs:
            lines.append(f"  stopped   {said['stopped']:.1%}")
            lines.append(f"  labels    {said['n_labels']:.2f} ± {said['n_labels_se']:.2f}")
            if self.t_opt is not None:
                lines.append(f"  t_opt     {said['t_opt']:.2f} ± {said['t_opt_se']:.2f}")
                lines.append(f"  e_stop    {said['e_stop']:.2f} ± {said['e_stop_se']:.2f}")
            for row in said["criteria"]:
                text = f"  {row['criterion']}: {row['n_labels']:.2f} labels"
                if "e_stop" in row:
                    text += f", e_stop {row['e_stop']:.2f} ± {row['e_stop_se']:.2f}"
                lines.append(text)
        return "\n".join(lines)


def _or_none(values: Ints) -> list[int | None]:
    return [None if value < 0 else value for value in values.tolist()]


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean and its standard error, NaN where there are too few values."""
    n = len(values)
    error = float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan
    return float(np.mean(values)) if n else math.nan, error


def write_csv(path: str | os.PathLike[str], head: Iterable[str], rows: Iterable[Any]) -> None:
    """Write a table; numbers are written to their last digit."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
