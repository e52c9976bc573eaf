"""The protocol of the paper's experiments: data, fits and campaigns.

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

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastal import _memory
from fastal import _validation as check
from fastal import datasets as data
from fastal._threads import map_blocks, one_blas_thread
from fastal._types import Array, Ints
from fastal.criteria.experiments import CrossValidation, GroundTruth, MaxVariance, PACBayes
from fastal.criteria.measures import crossing_counts
from fastal.models.gp import GaussianProcess
from fastal.paper.names import DATASETS
from fastal.simulation.campaigns import simulate
from fastal.stopping.stopper import Stopper

if TYPE_CHECKING:
    from fastal.simulation.result import Simulation

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
OTHERS = ("ground_truth", "pac_bayes", "cross_validation", "max_variance")

MEASURED = (
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
    """Return the process whose parameters suit some rows, drawn at random, best (section 5.3)."""
    rows, seed = check.count("rows", rows, 2), check.seed("seed", seed)
    chosen = np.random.default_rng(seed).permutation(len(y))[:rows]
    with one_blas_thread():  # the same digits on any number of cores
        return GaussianProcess().fit_hyperparameters(
            X[chosen], y[chosen], bounds={"noise": NOISE_BOUNDS}, seed=seed
        )


def problem(name: str, seed: int = 0) -> Problem:
    """Load and prepare a data set of the paper; the seed is that of the fit.

    Examples
    --------
    >>> from fastal.paper import problem
    >>> artificial = problem("artificial")
    >>> artificial.X.shape, artificial.pool_size
    ((2000, 1), 50)
    """
    seed = check.seed("seed", seed)
    X, y = load(name)
    if name == "artificial":
        return Problem(name, X, y, ARTIFICIAL_POOL, fit(X, y, ARTIFICIAL_FIT_ROWS, seed))
    X, y = standardise(X), standardise(y)
    return Problem(name, X, y, POOL, fit(X, y, FIT_ROWS, seed))


def load(name: str) -> tuple[Array, Array]:
    """Return inputs and labels of a data set of the paper, in their own units."""
    check.option("name", name, DATASETS)
    return data.artificial() if name == "artificial" else data.load(name)


def problems(
    names: Sequence[str], seed: int = 0, *, jobs: int | None = None,
    report: Callable[[str], object] | None = None,
) -> list[Problem]:  # fmt: skip
    """Load and prepare several data sets, their fits side by side."""
    from joblib import effective_n_jobs

    for name in names:
        check.option("names", name, DATASETS)
    seed, threads = check.seed("seed", seed), check.jobs("jobs", jobs)
    if report is not None:
        report(f"fitting length scale and noise: {', '.join(names)}")
    with one_blas_thread():
        return map_blocks(lambda name: problem(name, seed), names, effective_n_jobs(threads))


class Campaigns(NamedTuple):
    """Many runs over one data set, and the measures of each criterion.

    Attributes
    ----------
    problem : Problem
        The data set.
    result : Simulation
        The runs; its criterion is the proposed criterion.
    histories : dict
        Measures of the other criteria, shape (n_runs, pool_size - 1): the first is that after two
        labels.
    """

    problem: Problem
    result: Simulation
    histories: dict[str, Array]

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
    jobs: int | None = None, progress: bool = False, store: str | None = None,
) -> Campaigns:  # fmt: skip
    """Run the campaigns of one data set, each to the end of its pool.

    `others` says whether to compute the measures of the other criteria; the rest is as in
    `simulate`.
    """
    measured = MEASURED if check.flag("others", others) else ()
    size = min(check.count("pool_size", problem.pool_size, 1), len(problem.y))
    count = check_runs(runs, 2 * size + len(measured) * (size + 1))
    seed, jobs = check.seed("seed", seed), check.jobs("jobs", jobs)
    result = simulate(
        problem.X,
        problem.y,
        gp=problem.gp,
        criterion=Stopper(fall=False),  # the letter of the paper
        criteria=measured,
        n_runs=count,
        pool_size=problem.pool_size,
        seed=seed,
        n_jobs=jobs,
        store=store,
        errors="raise",
        progress=progress,
    )
    histories = {}
    if others:
        histories = {name: result.history(j) for j, name in enumerate(OTHERS)}
        # The range of the loss is that of the labels in the pool, which differs between runs.
        ranges = np.array([np.ptp(problem.y[result.pool(run)]) for run in range(count)])
        histories["pac_bayes"] = histories["pac_bayes"] + ranges[:, None] ** 2 / 2
    return Campaigns(problem, result, histories)


def store_file(folder: str | os.PathLike[str] | None, name: str) -> str | None:
    """Return the file of a folder, made if need be, that keeps some runs; None without one."""
    if folder is None:
        return None
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"`store` must name a folder, got {check.short_repr(folder)}")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(os.fspath(folder), f"{name}.sqlite")


def check_runs(runs: object, width: int = 2 * ARTIFICIAL_POOL) -> int:
    """Check a number of runs, of which each keeps `width` numbers."""
    count = check.count("runs", runs, 1)
    _memory.check(
        8 * count * (8 + width),
        f"an experiment with `runs` = {check.short_repr(count)}",
        "lower `runs`",
    )
    return count


def first_crossings(histories: Array, thresholds: Array, rises: bool = False) -> Ints:
    """Return the labels at the first crossing of each threshold in each run: (thresholds, runs).

    The first of the n measures of a run is that after two labels; NaN crosses nothing. Without a
    crossing the answer is n + 1, the whole pool.
    """
    counts = crossing_counts(histories, thresholds, rises)
    stops: Ints = np.minimum(counts + 1, histories.shape[1] + 1)
    return stops


def best_threshold(criterion: str, reference: Campaigns) -> float:
    """Return the threshold with the least mean e_stop on a reference set (section 5.3).

    It is one of `N_THRESHOLDS` in the range of `SEARCHED`, the first of those that do equally well.
    """
    tried = np.linspace(*SEARCHED[criterion], N_THRESHOLDS)
    stops = first_crossings(reference.histories[criterion], tried)
    assert reference.result.t_opt is not None
    misses = np.abs(stops - reference.result.t_opt).mean(axis=1)
    return float(tried[np.argmin(misses)])


def true_threshold(campaign: Campaigns) -> float:
    """Return the ground truth's threshold: mean - 2 sd of the gain of the whole pool."""
    final = campaign.histories["ground_truth"][:, -1]
    return float(final.mean() - 2 * final.std())
