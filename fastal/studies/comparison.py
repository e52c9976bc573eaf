"""compare: how the criteria of the paper, and one's own, do on data of one's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastal import _validation as check
from fastal._types import Array, Ints
from fastal.simulation.plan import PAPER_POOL
from fastal.simulation.result import mean_and_error, write_csv
from fastal.stopping.criterion import Criterion
from fastal.stopping.still import StillToCome
from fastal.studies.names import CRITERIA
from fastal.studies.protocol import (
    N_THRESHOLDS,
    SEARCHED,
    Problem,
    best_threshold,
    campaigns,
    store_file,
    true_threshold,
)
from fastal.studies.text import aligned, plus_minus, wrapped

if TYPE_CHECKING:
    from fastal.models.gp import GaussianProcess
    from fastal.studies.protocol import Campaigns

# How much is still to come, by the bounds alone.
STILL = {"still_to_come_5%": StillToCome(0.05)}

# Names of the rows that are always there.
ROWS = (*CRITERIA, *STILL, "fixed_budget")


class Row(NamedTuple):
    """What one criterion does, as means over the runs with their standard errors.

    Attributes
    ----------
    criterion : str
        Its name; "fixed_budget" is the same number of labels always.
    threshold : float
        What it was tuned to; NaN for those that need none.
    labels, labels_se : float
        Labels at the stop.
    e_stop, e_stop_se : float
        Distance from where the error had converged.
    loss, loss_se : float
        Expected loss on the test set at the stop.
    """

    criterion: str
    threshold: float
    labels: float
    labels_se: float
    e_stop: float
    e_stop_se: float
    loss: float
    loss_se: float


class Comparison:
    """The criteria side by side; prints as a table.

    Attributes
    ----------
    rows : list of Row
        One for each criterion.
    campaign : Campaigns
        The runs.
    stops : dict
        Labels at the stop of each run, by criterion.
    """

    def __init__(
        self, campaign: Campaigns, tuned: dict[str, float], stops: dict[str, Ints]
    ) -> None:
        self.campaign, self.stops = campaign, stops
        errors = campaign.result.errors
        assert errors is not None
        runs = np.arange(len(errors))
        self.rows = [
            Row(
                name,
                tuned.get(name, np.nan),
                *mean_and_error(found),
                *mean_and_error(campaign.misses(found)),
                *mean_and_error(errors[runs, found - 1]),
            )
            for name, found in stops.items()
        ]

    def __str__(self) -> str:
        head = ["criterion", "threshold", "labels", "e_stop", "expected loss"]
        lines = [head]
        for row in self.rows:
            threshold = f"{row.threshold:.4g}"
            if np.isnan(row.threshold):
                threshold = "none needed" if row.criterion in ROWS else "as given"
            lines.append([
                row.criterion,
                threshold,
                plus_minus(row.labels, row.labels_se),
                plus_minus(row.e_stop, row.e_stop_se),
                f"{row.loss:.4g} ± {row.loss_se:.2g}",
            ])  # fmt: skip
        result = self.campaign.result
        assert result.errors is not None
        assert result.t_opt is not None
        return (
            aligned(lines)
            + "\n"
            + wrapped(
                f"{result.n_runs} runs, pools of {result.pool_size}; the error had converged after "
                f"{result.t_opt.mean():.1f} labels on average; with all labels the expected loss "
                f"is {result.errors[:, -1].mean():.4g}."
            )
            + "\n"
            + wrapped(
                f"Thresholds were tuned on {result.n_runs} other runs over the same data, which "
                "favours the criteria that need one; the ground truth's comes from the test errors "
                "themselves."
            )
        )

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line per criterion.

        Parameters
        ----------
        path : path
            File to write.
        """
        write_csv(path, Row._fields, self.rows)


def compare(
    X: ArrayLike,
    y: ArrayLike,
    *,
    gp: GaussianProcess,
    runs: int = 100,
    pool_size: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
    criteria: Mapping[str, Criterion] | Iterable[Criterion] = (),
    store: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compare the criteria of the paper, and your own, on a data set.

    Each run draws a pool from the rows; all others are its test set. Thresholds are tuned, for the
    least mean e_stop, on as many other runs.

    Parameters
    ----------
    X, y : array_like
        Inputs, shape (n, d), and labels, on the scale that `gp` was fitted for.
    gp : GaussianProcess
        The model, without labels.
    runs : int
        Number of runs to compare on.
    pool_size : int, optional
        Points in a pool; by default 100, or half of the rows if these are fewer than 200.
    seed : int
        Seed of the pools.
    jobs : int, optional
        Threads, as in `simulate`.
    progress : bool
        Whether to show progress bars.
    criteria : dict or sequence of criteria
        Further criteria, each with a row of its own: those of fastal with settings of your choice,
        combinations, or a `Criterion` that you wrote. A dict names the rows; the criteria of a
        sequence name themselves. They are copied, and nothing of them is tuned.
    store : path, optional
        A folder that keeps finished runs, made if need be. The same call with the same folder goes
        on where the last one was interrupted.

    Returns
    -------
    Comparison
        It prints as a table.

    Examples
    --------
    >>> from fastal import GaussianProcess
    >>> from fastal.studies.comparison import compare
    >>> from fastal.datasets import artificial
    >>> X, y = artificial(200)
    >>> result = compare(X, y, gp=GaussianProcess(1.4, 0.0026), runs=5, pool_size=40)
    >>> [row.criterion for row in result.rows][:3]
    ['ground_truth', 'proposed', 'pac_bayes']

    With a rule of one's own beside them:

    >>> from fastal import MinLabels, Stopper
    >>> later = {"later": Stopper() & MinLabels(20)}
    >>> result = compare(
    ...     X, y, gp=GaussianProcess(1.4, 0.0026), runs=5, pool_size=40, criteria=later
    ... )
    >>> result.rows[-1].criterion, bool(result.rows[-1].labels >= 21)
    ('later', True)
    """
    count = check.count("runs", runs, 1)
    points = check.points("X", X, None)
    labels = check.vector("y", y, len(points))
    if len(labels) < 4:
        raise ValueError(f"`X` must have at least 4 rows, got {len(labels)}")
    if pool_size is None:
        pool_size = max(2, min(PAPER_POOL, len(labels) // 2))
    size = check.count("pool_size", pool_size, 2)
    first, own = check.seed("seed", seed), _named(criteria)
    problem = Problem("data", points, labels, size, gp)
    settings: dict[str, Any] = {"jobs": check.jobs("jobs", jobs), "progress": progress}
    # the seeds of `simulate` are those of one SeedSequence each: another number, other pools
    kept = store_file(store, "tuning")
    tuning = campaigns(problem, count, first + 1_000_003, store=kept, **settings)
    more, kept = STILL | own, store_file(store, "compared")
    campaign = campaigns(problem, count, first, more=tuple(more.values()), store=kept, **settings)
    tuned = {name: best_threshold(name, tuning, _tried(tuning, name)) for name in SEARCHED}
    tuned["ground_truth"] = true_threshold(tuning)
    stops = {
        name: campaign.result.n_labels if name == "proposed" else campaign.stops(name, tuned[name])
        for name in CRITERIA
    }
    found = dict(zip(more, campaign.more_stops.T, strict=True))
    stops |= {name: found[name] for name in STILL}
    tuned["fixed_budget"] = _best_budget(tuning)
    stops["fixed_budget"] = np.full(count, int(tuned["fixed_budget"]))
    stops |= {name: found[name] for name in own}
    return Comparison(campaign, tuned, stops)


def _named(criteria: Any) -> dict[str, Criterion]:
    """Return further criteria by the names of their rows."""
    if isinstance(criteria, Criterion | str) or not isinstance(criteria, Iterable):
        raise TypeError(
            f"`criteria` must be a dict or a sequence of criteria, got {check.short_repr(criteria)}"
        )
    if isinstance(criteria, Mapping):
        pairs = list(criteria.items())
    else:
        pairs = [(_own_name(criterion), criterion) for criterion in criteria]
    named: dict[str, Criterion] = {}
    for name, criterion in pairs:
        if not isinstance(criterion, Criterion):
            raise TypeError(f"`criteria` must hold criteria, got {check.short_repr(criterion)}")
        if not isinstance(name, str):
            raise TypeError(f"`criteria` must have texts as names, got {check.short_repr(name)}")
        if name in (*ROWS, *named):
            raise ValueError(
                f"`criteria` must have names that no other row has, got {check.short_repr(name)}"
            )
        named[name] = criterion
    return named


def _own_name(criterion: Any) -> str:
    """Return the repr of a criterion; of classes that define none, the name of the class."""
    return re.sub(r"<(?:[\w<>]+\.)*(\w+) object at 0x[0-9a-fA-F]+>", r"\1", repr(criterion))


def _tried(tuning: Campaigns, criterion: str) -> Array:
    """Return thresholds that are dense where the measures are, whatever their unit."""
    values = tuning.histories[criterion]
    quantiles: Array = np.quantile(values[~np.isnan(values)], np.linspace(0, 1, N_THRESHOLDS))
    return quantiles


def _best_budget(tuning: Campaigns) -> float:
    assert tuning.result.t_opt is not None
    return float(np.ceil(np.median(tuning.result.t_opt)))
