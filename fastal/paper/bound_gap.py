"""Appendix C: how far the bound lies above what it bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fastal import _memory
from fastal import _validation as check
from fastal._progress import ProgressBar
from fastal._types import Array
from fastal.bound import bound_constant
from fastal.learning.run import learn
from fastal.models.classifier import LaplaceClassifier
from fastal.paper.protocol import campaigns, check_runs, problem
from fastal.paper.text import wrapped
from fastal.stopping.count import FixedBudget

TASKS = ("regression", "classification")

CLASSIFIER_FIT_ROWS = 200

TIGHTNESS_POOL, TIGHTNESS_TEST = 50, 1950


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
        return wrapped(
            f"{self.task}: the gap exceeds KL + C at {np.mean(self.gaps > bounds):.2%} of the "
            f"labels, KL alone at {np.mean(self.gaps > self.divergences):.2%}; in the later half "
            f"KL is {divergence.mean():.3g} on average, the gap {gap.mean():.3g} "
            f"(its absolute value {np.abs(gap).mean():.3g})"
        )


def tightness(
    runs: int = 100, seed: int = 0, *, tasks: Sequence[str] = TASKS, jobs: int | None = None,
    progress: bool = False, report: Callable[[str], object] | None = None,
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
    report : callable, optional
        Called with a progress message before each step.

    Returns
    -------
    list of Tightness
        One for each task.

    Notes
    -----
    The range of the labels stands for b - a, as in the paper; it has the unit of the labels, not of
    a loss in nats, and neither loss is bounded: the constant is a convention, not a guarantee.
    """
    count, seed, jobs = check_runs(runs), check.seed("seed", seed), check.jobs("jobs", jobs)
    check.flag("progress", progress)
    for task in tasks:
        check.option("tasks", task, TASKS)
    found = []
    for task in tasks:
        if report is not None:
            report(f"{task}: {count} runs")
        if task == "regression":
            found.append(_regression_tightness(count, seed, jobs, progress))
        else:
            found.append(_classification_tightness(count, seed, progress))
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
    _memory.check(8 * 4 * n, f"a data set of `n` = {check.short_repr(n)} points", "lower `n`")
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


def _classification_tightness(runs: int, seed: int, progress: bool) -> Tightness:
    rng = np.random.default_rng(seed)
    model = fit_classifier(*sign_of_sine(CLASSIFIER_FIT_ROWS, rng))
    gaps, divergences = [], []
    with ProgressBar(progress, runs, unit="run") as bar:
        for _ in range(runs):
            X, y = sign_of_sine(TIGHTNESS_POOL, rng)
            run = learn(
                X, y, gp=model, criterion=FixedBudget(TIGHTNESS_POOL),
                test=sign_of_sine(TIGHTNESS_TEST, rng), seed=int(rng.integers(2**32)),
            )  # fmt: skip
            assert run.errors is not None
            gaps.append(-np.diff(run.errors))
            divergences.append(run.bounds)
            bar.advance()
    constants = np.full(runs, bound_constant(-1.0, 1.0))
    return Tightness("classification", np.array(gaps), np.array(divergences), constants)
