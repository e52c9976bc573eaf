"""The experiments of the paper: Table 1, Figure 1, and the tightness of the bound.

Ishibashi & Hino, "Stopping criterion for active learning based on deterministic generalization
bounds", AISTATS 2020. `docs/paper.md` maps the paper to this library. The text leaves details open;
the readings taken here are those that come closest to its table:

- inputs and labels are standardised (not the artificial ones); pools of 100 points (artificial 50),
  all other rows are the test set; one random label, then maximum variance;
- length scale and noise are fitted once for a data set, by marginal likelihood on at most 1,000
  rows (artificial 300);
- a criterion stops at its first crossing, at the size of the pool if there is none; thresholds of
  PAC-Bayes, cross-validation and maximum variance are those of 10,000 that do best on airfoil;
- the threshold of the ground truth is the mean less two standard deviations of what the whole pool
  gains over the prior.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal import _memory
from fastal import _validation as check
from fastal import datasets as data
from fastal._criterion import Criterion
from fastal._threads import one_blas_thread, workers
from fastal.bound import bound_constant
from fastal.classifier import LaplaceClassifier
from fastal.criteria import CrossValidation, FixedBudget, GroundTruth, MaxVariance, PACBayes
from fastal.gp import GaussianProcess
from fastal.learner import learn
from fastal.simulation import Simulation, simulate

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

DATASETS = ("artificial", "airfoil", "power_plant", "protein", "concrete", "yacht")
CRITERIA = ("ground_truth", "proposed", "pac_bayes", "cross_validation", "max_variance")

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

# Thresholds tried on the reference set (section 5.3).
REFERENCE = "airfoil"
SEARCHED = {
    "pac_bayes": (0.01, 100.0),
    "cross_validation": (0.001, 10.0),
    "max_variance": (0.0001, 1.0),
}
N_THRESHOLDS = 10_000

FIT_ROWS, ARTIFICIAL_FIT_ROWS = 1000, 300
POOL, ARTIFICIAL_POOL = 100, 50
NOISE_BOUNDS = (1e-4, 1e2)  # beta between 1e-2 and 1e4

# The criteria that are computed beside the proposed one; thresholds come later, from histories.
_OTHERS = ("ground_truth", "pac_bayes", "cross_validation", "max_variance")
_JUDGES = (
    GroundTruth(None, None, 0.0),
    PACBayes(0.0, loss_range=0.0),
    CrossValidation(0.0),
    MaxVariance(1e-300),
)


class Problem(NamedTuple):
    """A data set, ready for the experiments.

    Attributes
    ----------
    name : str
        One of `DATASETS`, or of the caller's choice.
    X, y : ndarray
        Inputs and labels, standardised unless artificial.
    pool_size : int
        Points in a pool.
    gp : GaussianProcess
        The model with its fitted parameters, without labels.
    """

    name: str
    X: Array
    y: Array
    pool_size: int
    gp: GaussianProcess


def standardise(values: Array) -> Array:
    """Return columns of mean 0 and standard deviation 1; a constant column becomes 0."""
    scale = values.std(axis=0)
    result: Array = (values - values.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return result


def fit(X: Array, y: Array, rows: int = FIT_ROWS, seed: int = 0) -> GaussianProcess:
    """Return the process whose parameters suit some rows best (section 5.3).

    Parameters
    ----------
    X, y : ndarray
        All data.
    rows : int
        How many rows to fit on, drawn at random; at least 2.
    seed : int
        Seed of that draw, and of the starts.

    Returns
    -------
    GaussianProcess
        Without labels.
    """
    rows, seed = check.count("rows", rows, 2), check.seed("seed", seed)
    chosen = np.random.default_rng(seed).permutation(len(y))[:rows]
    with one_blas_thread():  # the same digits on any number of cores
        return GaussianProcess().fit_hyperparameters(
            X[chosen], y[chosen], bounds={"noise": NOISE_BOUNDS}, seed=seed
        )


def problem(name: str, seed: int = 0) -> Problem:
    """Load and prepare a data set of the paper.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    seed : int
        Seed of the fit.

    Returns
    -------
    Problem
        Ready for `campaigns`.

    Examples
    --------
    >>> from fastal.paper import problem
    >>> artificial = problem("artificial")
    >>> artificial.X.shape, artificial.pool_size
    ((2000, 1), 50)
    """
    check.option("name", name, DATASETS)
    seed = check.seed("seed", seed)
    if name == "artificial":
        X, y = data.artificial()
        return Problem(name, X, y, ARTIFICIAL_POOL, fit(X, y, ARTIFICIAL_FIT_ROWS, seed))
    X, y = data.load(name)
    X, y = standardise(X), standardise(y)
    return Problem(name, X, y, POOL, fit(X, y, FIT_ROWS, seed))


def problems(
    names: Sequence[str], seed: int = 0, *, jobs: int | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> list[Problem]:  # fmt: skip
    """Load and prepare several data sets, their fits side by side.

    Parameters
    ----------
    names : sequence of str
        Some of `DATASETS`.
    seed : int
        Seed of the fits.
    jobs : int, optional
        Threads, as in `simulate`; they change nothing.
    tell : callable, optional
        Is told what comes next.

    Returns
    -------
    list of Problem
        In the order of `names`.
    """
    from joblib import effective_n_jobs

    for name in names:
        check.option("names", name, DATASETS)
    seed, threads = check.seed("seed", seed), check.jobs("jobs", jobs)
    tell(f"fitting length scale and noise: {', '.join(names)}")
    with one_blas_thread(), workers(effective_n_jobs(threads)) as pool:
        return list(pool.map(lambda name: problem(name, seed), names))


class Campaigns(NamedTuple):
    """Many runs over one data set, and what each criterion went by.

    Attributes
    ----------
    problem : Problem
        The data set.
    result : Simulation
        The runs; its stopper is the proposed criterion.
    histories : dict
        Measures of the other criteria, shape (n_runs, pool_size - 1): the first is that after two
        labels.
    more_stops : ndarray of int, shape (n_runs, k)
        Labels at the stop of further criteria, or the pool's size.
    """

    problem: Problem
    result: Simulation
    histories: dict[str, Array]
    more_stops: Ints

    def stops(self, criterion: str, threshold: float) -> Ints:
        """Return the labels of each run at a criterion's first crossing, or the pool's size."""
        check.option("criterion", criterion, tuple(self.histories))
        threshold, rises = check.real("threshold", threshold), criterion == "ground_truth"
        stops: Ints = first_crossings(self.histories[criterion], np.array([threshold]), rises)[0]
        return stops

    def misses(self, stops: Ints) -> Ints:
        """Return e_stop of each run."""
        assert self.result.t_opt is not None
        misses: Ints = np.abs(stops - self.result.t_opt)
        return misses


def campaigns(
    problem: Problem, runs: int = 100, seed: int = 0, *, others: bool = True,
    more: Sequence[Criterion] = (), jobs: int | None = None, progress: bool = False,
) -> Campaigns:  # fmt: skip
    """Run the campaigns of one data set.

    Parameters
    ----------
    problem : Problem
        The data set.
    runs : int
        Number of runs.
    seed : int
        Seed of the pools.
    others : bool
        Whether to compute what the other criteria go by.
    more : sequence of criteria
        Further ones, to be run beside them.
    jobs : int, optional
        Threads, as in `simulate`; they change nothing.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    Campaigns
        All runs go on to the end of the pool.
    """
    judges = _JUDGES if check.flag("others", others) else ()
    size = min(check.count("pool_size", problem.pool_size, 1), len(problem.y))
    count = _checked_runs(runs, 2 * size + len(judges) * (size + 1) + len(more))
    seed, jobs = check.seed("seed", seed), check.jobs("jobs", jobs)
    result = simulate(
        problem.X,
        problem.y,
        gp=problem.gp,
        criteria=(*judges, *more),
        n_runs=count,
        pool_size=problem.pool_size,
        seed=seed,
        n_jobs=jobs,
        errors="raise",
        progress=progress,
    )
    histories = {}
    if others:
        histories = {name: result.history(j) for j, name in enumerate(_OTHERS)}
        # The range of the loss is that of the labels in the pool, which differs between runs.
        ranges = np.array([np.ptp(problem.y[result.pool(run)]) for run in range(count)])
        histories["pac_bayes"] = histories["pac_bayes"] + ranges[:, None] ** 2 / 2
    stops = result.criteria_stops[:, len(judges) :]
    return Campaigns(problem, result, histories, np.where(stops < 0, result.pool_size, stops))


def _checked_runs(runs: object, width: int = 2 * ARTIFICIAL_POOL) -> int:
    """Check a number of runs, of which each keeps `width` numbers."""
    count = check.count("runs", runs, 1)
    _memory.check(
        8 * count * (8 + width), f"an experiment with `runs` = {check.shown(count)}", "lower `runs`"
    )
    return count


def first_crossings(histories: Array, thresholds: Array, rises: bool = False) -> Ints:
    """Return the labels at the first crossing of each threshold in each run.

    Parameters
    ----------
    histories : ndarray, shape (runs, n)
        Measures; the first is that after two labels. NaN crosses nothing.
    thresholds : ndarray, shape (k,)
        Thresholds.
    rises : bool
        Whether a crossing is to at least the threshold, instead of at most.

    Returns
    -------
    ndarray of int, shape (k, runs)
        Between 2 and n + 1, which is also the answer if there is no crossing.
    """
    sign = -1.0 if check.flag("rises", rises) else 1.0
    values = np.where(np.isnan(histories), np.inf, sign * histories)
    lowest = np.minimum.accumulate(values, axis=1)
    n = histories.shape[1]
    # `lowest` falls: so many of its values are above a threshold.
    above = [n - np.searchsorted(row[::-1], sign * thresholds, side="right") for row in lowest]
    stops: Ints = np.minimum(np.array(above, dtype=np.int64).T + 2, n + 1)
    return stops


def best_threshold(criterion: str, reference: Campaigns, tried: Array | None = None) -> float:
    """Return the threshold with the least mean e_stop on a reference set (section 5.3).

    Parameters
    ----------
    criterion : {"pac_bayes", "cross_validation", "max_variance"}
        Which.
    reference : Campaigns
        The runs to do well on.
    tried : ndarray, optional
        Thresholds to choose from; by default the paper's.

    Returns
    -------
    float
        The first of those that do equally well.
    """
    if tried is None:
        tried = np.linspace(*SEARCHED[criterion], N_THRESHOLDS)
    stops = first_crossings(reference.histories[criterion], tried)
    assert reference.result.t_opt is not None
    misses = np.abs(stops - reference.result.t_opt).mean(axis=1)
    return float(tried[np.argmin(misses)])


def true_threshold(campaign: Campaigns) -> float:
    """Return the ground truth's threshold: mean - 2 sd of the gain of the whole pool."""
    final = campaign.histories["ground_truth"][:, -1]
    return float(final.mean() - 2 * final.std())


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
    """What came of one data set.

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
            error = misses.std(ddof=1) / np.sqrt(len(misses)) if len(misses) > 1 else np.nan
            found.append(Cell(name, criterion, float(misses.mean()), float(error), *printed))
        return found


def outcomes(
    datasets: Sequence[str] = DATASETS, criteria: Sequence[str] = CRITERIA, runs: int = 100,
    seed: int = 0, *, jobs: int | None = None, progress: bool = False,
    tell: Callable[[str], object] = lambda text: None,
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
    tell : callable, optional
        Is told what comes next.

    Returns
    -------
    list of Outcome
        One for each data set.
    """
    for name in datasets:
        check.option("datasets", name, DATASETS)
    for name in criteria:
        check.option("criteria", name, CRITERIA)
    count, seed, jobs = _checked_runs(runs), check.seed("seed", seed), check.jobs("jobs", jobs)
    searched = [name for name in criteria if name in SEARCHED]
    others = any(name in _OTHERS for name in criteria)
    names = list(dict.fromkeys((*datasets, REFERENCE) if searched else datasets))
    done: dict[str, Campaigns] = {}
    for prepared in problems(names, seed, jobs=jobs, tell=tell):
        tell(f"{prepared.name}: {count} runs")
        done[prepared.name] = campaigns(
            prepared, count, seed, others=others, jobs=jobs, progress=progress
        )
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
        The runs behind them.
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
        return aligned(self._grid(_cell_text)) + "\n" + LEGEND

    def to_markdown(self) -> str:
        """Return the table in Markdown.

        Returns
        -------
        str
            With a line that explains the cells.
        """
        head, *rows = self._grid(_cell_text)
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n\n" + LEGEND + "\n"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line a cell.

        Parameters
        ----------
        path : path
            File to write.
        """
        write_csv(path, Cell._fields, self.cells)

    def records_to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line for each run: when the error had converged, and each criterion's stop.

        Parameters
        ----------
        path : path
            File to write.
        """
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


def aligned(rows: list[list[str]]) -> str:
    """Return rows of texts as a table with straight columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def write_csv(path: str | os.PathLike[str], head: Sequence[str], rows: Sequence[Any]) -> None:
    """Write a table; numbers are written to their last digit."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def table1(
    datasets: Sequence[str] = DATASETS, criteria: Sequence[str] = CRITERIA, runs: int = 100,
    seed: int = 0, *, jobs: int | None = None, progress: bool = False,
    tell: Callable[[str], object] = lambda text: None,
) -> Table1:  # fmt: skip
    """Compute Table 1 of the paper.

    Parameters
    ----------
    datasets, criteria, runs, seed, jobs, progress, tell
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
    return Table1(outcomes(datasets, criteria, runs, seed, jobs=jobs, progress=progress, tell=tell))


# Tightness of the bound (Appendix C) --------------------------------------------------------------

TASKS = ("regression", "classification")
TIGHTNESS_POOL, TIGHTNESS_TEST = 50, 1950
CLASSIFIER_FIT_ROWS = 200


@dataclass(frozen=True)
class Tightness:
    """The bound beside what it bounds, for each label after the first.

    Attributes
    ----------
    task : {"regression", "classification"}
        Which.
    gaps : ndarray, shape (runs, labels - 1)
        Expected error before a label less that after it, on the test set.
    divergences : ndarray, shape (runs, labels - 1)
        KL of the two posteriors.
    constants : ndarray, shape (runs,)
        C, from the range of the pool's labels.
    """

    task: str
    gaps: Array
    divergences: Array
    constants: Array

    def __str__(self) -> str:
        bounds = self.divergences + self.constants[:, None]
        late = slice(self.gaps.shape[1] // 2, None)
        gap, divergence = self.gaps[:, late], self.divergences[:, late]
        return (
            f"{self.task}: the gap exceeds KL + C at {np.mean(self.gaps > bounds):.2%} of the "
            f"labels, KL alone at {np.mean(self.gaps > self.divergences):.2%}; in the later half "
            f"KL is {divergence.mean():.3g} on average, the gap {gap.mean():.3g} "
            f"(its absolute value {np.abs(gap).mean():.3g})"
        )


def tightness(
    runs: int = 100, seed: int = 0, *, tasks: Sequence[str] = TASKS, jobs: int | None = None,
    progress: bool = False, tell: Callable[[str], object] = lambda text: None,
) -> list[Tightness]:  # fmt: skip
    """Measure the gap of the expected error at each label, and its bound (Appendix C).

    Parameters
    ----------
    runs : int
        Runs for each task, over pools of 50 points.
    seed : int
        Seed of fits and pools.
    tasks : sequence of str
        Some of "regression", on the artificial data, and "classification", of sgn(sin(2 pi x)).
    jobs : int, optional
        Threads of the regression half.
    progress : bool
        Whether to show progress bars.
    tell : callable, optional
        Is told what comes next.

    Returns
    -------
    list of Tightness
        One for each task.

    Notes
    -----
    The range of the labels stands for b - a, as in the paper; it has the unit of the labels, not of
    a loss in nats, and neither loss is bounded: the constant is a convention, not a guarantee.
    """
    count, seed, jobs = _checked_runs(runs), check.seed("seed", seed), check.jobs("jobs", jobs)
    check.flag("progress", progress)
    for task in tasks:
        check.option("tasks", task, TASKS)
    found = []
    for task in tasks:
        tell(f"{task}: {count} runs")
        if task == "regression":
            found.append(_regression_tightness(count, seed, jobs, progress))
        else:
            found.append(_classification_tightness(count, seed))
    return found


def _regression_tightness(runs: int, seed: int, jobs: int | None, progress: bool) -> Tightness:
    prepared = problem("artificial", seed)
    result = campaigns(prepared, runs, seed, others=False, jobs=jobs, progress=progress).result
    assert result.errors is not None
    assert result.bounds is not None
    ranges = [np.ptp(prepared.y[result.pool(run)]) for run in range(runs)]
    constants = np.array([bound_constant(0.0, float(b)) for b in ranges])
    return Tightness("regression", -np.diff(result.errors, axis=1), result.bounds, constants)


def sign_of_sine(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw inputs, uniform in [-1, 1], and their classes, sgn(sin(2 pi x))."""
    n = check.count("n", n)
    _memory.check(8 * 4 * n, f"a data set of `n` = {check.shown(n)} points", "lower `n`")
    x = rng.uniform(-1.0, 1.0, n)
    return x[:, None], np.where(np.sin(2 * np.pi * x) < 0, -1.0, 1.0)


def fit_classifier(X: Array, y: Array) -> LaplaceClassifier:
    """Return the classifier whose length scale has the largest marginal likelihood."""
    from scipy.optimize import minimize_scalar

    def negative(log_scale: float) -> float:
        model = LaplaceClassifier(float(np.exp(log_scale)))
        model.add_batch(X, y)
        return -model.log_marginal_likelihood()

    limits = np.log(1e-2 * np.ptp(X)), np.log(1e1 * np.ptp(X))
    best = minimize_scalar(negative, bounds=limits, method="bounded", options={"xatol": 1e-3})
    return LaplaceClassifier(float(np.exp(best.x)))


def _classification_tightness(runs: int, seed: int) -> Tightness:
    rng = np.random.default_rng(seed)
    model = fit_classifier(*sign_of_sine(CLASSIFIER_FIT_ROWS, rng))
    gaps, divergences = [], []
    for _ in range(runs):
        X, y = sign_of_sine(TIGHTNESS_POOL, rng)
        run = learn(
            X, y, gp=model, stopper=FixedBudget(TIGHTNESS_POOL),
            test=sign_of_sine(TIGHTNESS_TEST, rng), seed=int(rng.integers(2**32)),
        )  # fmt: skip
        assert run.errors is not None
        gaps.append(-np.diff(run.errors))
        divergences.append(run.bounds)
    constants = np.full(runs, bound_constant(-1.0, 1.0))
    return Tightness("classification", np.array(gaps), np.array(divergences), constants)
