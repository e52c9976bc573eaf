"""What labels buy, rule by rule: the forecast's rules beside the paper's and fixed budgets.

The experiment of `fastal reproduce lookahead`, on the paper's data sets and by its protocol
(see `fastal.paper`): labels used against the achievable fall of the loss that is left unused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._threads import cores
from fastal._types import Array, Ints
from fastal.lookahead.gain import quiet_forecast, rho_of
from fastal.simulation.result import write_csv
from fastal.stopping.batch import stopping_time
from fastal.studies.names import DATASETS
from fastal.studies.protocol import campaigns, check_runs, problems, store_file
from fastal.studies.text import aligned, reporter

if TYPE_CHECKING:
    from fastal.lookahead.gain import Forecast
    from fastal.studies.protocol import Campaigns, Problem

# Settings of each rule, from few labels to many.
FRACTIONS = tuple(np.arange(1, 101) / 100)

SHARES = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01, 0.005)

PRICES = tuple(np.geomspace(3, 0.003, 61))

LEVELS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12, 1e-15)

RULES = {
    "fixed fraction": FRACTIONS,
    "price": PRICES,
    "eps": SHARES,
    "paper's rule": LEVELS,
}

# Where the curves are compared, and where forecasts are compared with what came.
COMPARED_AT = (0.4, 0.5, 0.6, 0.7)

LOOKED_AT = (0.25, 0.5, 0.75)

# A budget that knows the answer on average: "always 63 %".
ALWAYS = 0.63


class Curve(NamedTuple):
    """A rule over its settings, means over runs and data sets.

    Attributes
    ----------
    rule : str
        Which.
    setting : float
        Share, price, level or fraction.
    labels : float
        Share of the pool that is labelled.
    unused : float
        Share of the achievable fall of the expected loss that is left.
    """

    rule: str
    setting: float
    labels: float
    unused: float


class Distance(NamedTuple):
    """e_stop of some rules on one data set, means over the runs."""

    dataset: str
    t_opt: float
    paper_rule: float
    look_ahead: float
    always: float


class Calibration(NamedTuple):
    """What came over what was forecast on one data set, with 25, 50 and 75 % of the labels."""

    dataset: str
    quarter: float
    half: float
    three_quarters: float


@dataclass(frozen=True)
class Tradeoff:
    """Results of the experiment; prints as tables.

    Attributes
    ----------
    curves : list of Curve
        One for each rule and setting.
    distances : list of Distance
        e_stop with ``LookAhead(paper=True)`` beside the paper's rule, one for each data set.
    calibrations : list of Calibration
        Mean fall of the loss over the mean forecast, one for each data set.
    """

    curves: list[Curve]
    distances: list[Distance]
    calibrations: list[Calibration]

    def curve(self, rule: str) -> tuple[Array, Array]:
        """Return labels and unused shares of a rule, by growing labels.

        Parameters
        ----------
        rule : str
            One of `RULES`.

        Returns
        -------
        tuple of arrays
            Shares of the pool, and what they leave unused.
        """
        check.option("rule", rule, tuple(RULES))
        rows = sorted((one.labels, one.unused) for one in self.curves if one.rule == rule)
        labels, unused = np.array(rows).T
        return labels, unused

    def unused_at(self, rule: str, labels: float) -> float:
        """Return what a rule leaves unused at this mean share of labels; NaN beyond its settings.

        Parameters
        ----------
        rule : str
            One of `RULES`.
        labels : float
            Share of the pool, in (0, 1).

        Returns
        -------
        float
            Between two settings, in proportion.
        """
        where, unused = self.curve(rule)
        share = check.probability("labels", labels)
        return float(np.interp(share, where, unused, left=np.nan, right=np.nan))

    def __str__(self) -> str:
        shares = [f"{share:.0%} of the labels" for share in COMPARED_AT]
        unused = [["unused, with", *shares]]
        for rule in RULES:
            found = [self.unused_at(rule, share) for share in COMPARED_AT]
            unused.append([rule, *(f"{value:.2%}" for value in found)])
        ratio = self.unused_at("price", 0.6) / self.unused_at("fixed fraction", 0.6)
        head = ["e_stop", "t_opt", "paper's rule", "LookAhead(paper=True)", f"always {ALWAYS:.0%}"]
        distances = [head] + [[row[0], *(f"{v:.1f}" for v in row[1:])] for row in self.distances]
        means = np.mean([row[1:] for row in self.distances], axis=0)
        distances.append(["mean", *(f"{value:.1f}" for value in means)])
        came = [["fall of the loss over its forecast", "25 %", "50 %", "75 % labelled"]]
        came += [[row[0], *(f"{v:.2f}" for v in row[1:])] for row in self.calibrations]
        return "\n\n".join(
            [
                aligned(unused) + f"\nprice over fixed fraction at 60 %: {ratio:.2f}",
                aligned(distances),
                aligned(came),
            ]
        )

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line for each rule and setting.

        Parameters
        ----------
        path : path
            File to write.
        """
        write_csv(path, Curve._fields, self.curves)


class _Study(NamedTuple):
    """The runs of one data set: (R, N) arrays over labels, one row per run."""

    campaign: Campaigns
    forecasts: list[Forecast]
    rho: Array

    @property
    def errors(self) -> Array:
        errors = self.campaign.result.errors
        assert errors is not None
        return errors

    def stops(self, rule: str, setting: float) -> Ints:
        """Return the labels of each run at the stop, the pool's size without one."""
        runs, n = self.errors.shape
        if rule == "fixed fraction":
            return np.full(runs, max(1, round(setting * n)))
        if rule == "paper's rule":
            bounds = self.campaign.result.bounds
            assert bounds is not None
            at = np.asarray(stopping_time(bounds, setting, fall=False))
            return np.where(at < 0, n, at + 1)
        if rule == "price":
            return np.array([ahead.labels_at_price(setting) for ahead in self.forecasts])
        return np.array([ahead.labels_for(setting) or n for ahead in self.forecasts])

    def unused(self, stops: Ints) -> float:
        """Return the share of the fall from first to last label that is left at the stop."""
        at = self.errors[np.arange(len(stops)), stops - 1]
        first, last = self.errors[:, 0], self.errors[:, -1]
        return float(np.mean((at - last) / (first - last)))

    def distance(self) -> Distance:
        result = self.campaign.result
        assert result.t_opt is not None
        assert result.e_stop is not None
        n = result.pool_size
        ahead = np.array([one.labels_as_paper() or n for one in self.forecasts])
        always = np.full(len(ahead), round(ALWAYS * n))
        misses = [self.campaign.misses(stops).mean() for stops in (ahead, always)]
        return Distance(
            self.campaign.problem.name,
            float(result.t_opt.mean()),
            float(result.e_stop.mean()),
            float(misses[0]),
            float(misses[1]),
        )

    def calibration(self) -> Calibration:
        n, noise = self.errors.shape[1], self.campaign.problem.gp.noise
        ratios = []
        for share in LOOKED_AT:
            t = round(share * n)
            came = self.errors[:, t - 1] - self.errors[:, -1]
            left = np.array([ahead.reduction[t - 1] for ahead in self.forecasts])
            # (beta / 2) (1 + rho_t) red_t
            ratios.append(came.mean() / np.mean((1 + self.rho[:, t - 1]) * left / (2 * noise)))
        return Calibration(self.campaign.problem.name, *map(float, ratios))


def _study(
    prepared: Problem, runs: int, seed: int, jobs: int | None, progress: bool, store: str | None
) -> _Study:
    campaign = campaigns(
        prepared, runs, seed, others=False, jobs=jobs, progress=progress, store=store
    )

    def one(run: int) -> tuple[Forecast, Array]:
        rows = campaign.result.pool(run)
        ahead = quiet_forecast(prepared.X[rows], prepared.gp, [0])
        # the order of the forecast is that of the run: it does not depend on labels
        model = prepared.gp.copy(quiet=True)
        model.add_batch(prepared.X[rows][ahead.order], prepared.y[rows][ahead.order])
        squares = np.cumsum(model.residuals**2)
        t = np.arange(1, len(rows) + 1)
        return ahead, rho_of(squares, t)

    threads = cores() if jobs is None or jobs < 0 else jobs
    with ThreadPoolExecutor(threads) as workers:
        found = list(workers.map(one, range(runs)))
    return _Study(campaign, [ahead for ahead, _ in found], np.array([rho for _, rho in found]))


def tradeoff(
    datasets: Sequence[str] = DATASETS, runs: int = 100, seed: int = 0, *, jobs: int | None = None,
    progress: bool = False, report: Callable[[str], object] | None = None,
    tell: Callable[[str], object] | None = None, store: str | os.PathLike[str] | None = None,
) -> Tradeoff:  # fmt: skip
    """Compare the rules of the forecast with the paper's and with fixed budgets.

    Parameters
    ----------
    datasets : sequence of str
        Some of `fastal.studies.DATASETS`.
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
    tell : callable, optional
        Old name of `report`; deprecated.
    store : path, optional
        A folder that keeps finished runs, made if need be. The same call with the same folder goes
        on where the last one was interrupted.

    Returns
    -------
    Tradeoff
        It prints as tables.

    Examples
    --------
    >>> from fastal.studies.label_cost import tradeoff
    >>> found = tradeoff(["artificial"], runs=3)
    >>> len(found.curves), [row.dataset for row in found.distances]
    (187, ['artificial'])
    """
    for name in datasets:
        check.option("datasets", name, DATASETS)
    count, seed, jobs = check_runs(runs), check.seed("seed", seed), check.jobs("jobs", jobs)
    check.flag("progress", progress)
    studies = []
    say = reporter(report, tell)
    for prepared in problems(datasets, seed, jobs=jobs, report=say):
        say(f"{prepared.name}: {count} runs")
        kept = store_file(store, f"lookahead-{prepared.name}")
        studies.append(_study(prepared, count, seed, jobs, progress, kept))
    curves = []
    for rule, settings in RULES.items():
        for setting in settings:
            stops = [study.stops(rule, setting) for study in studies]
            sizes = [study.campaign.result.pool_size for study in studies]
            labels = np.mean([at.mean() / n for at, n in zip(stops, sizes, strict=True)])
            unused = np.mean([one.unused(at) for one, at in zip(studies, stops, strict=True)])
            curves.append(Curve(rule, float(setting), float(labels), float(unused)))
    return Tradeoff(
        curves,
        [study.distance() for study in studies],
        [study.calibration() for study in studies],
    )
