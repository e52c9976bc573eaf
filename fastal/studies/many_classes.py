"""StillToCome with many classes: what its stops leave unused, on data sets of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fastal import _validation as check
from fastal._types import Array, Ints
from fastal.learning.run import learn
from fastal.models.logistic import BayesianLogistic
from fastal.stopping.budget import FixedBudget
from fastal.stopping.still import StillToCome
from fastal.studies.names import CLASS_SETS
from fastal.studies.text import aligned

# Shares that StillToCome is asked for.
SHARES = (0.05, 0.1, 0.2)

# Random labels at the beginning.
INITIAL = 10

MOST_RUNS = 1000


def class_data(name: str) -> tuple[Array, Ints]:
    """Return features and classes of a data set of scikit-learn.

    Parameters
    ----------
    name : str
        One of ``fastal.studies.names.CLASS_SETS``.

    Returns
    -------
    X : ndarray, shape (n, d)
        Features in standard deviations (pixels of digits: over 16), and a column of ones.
    y : ndarray of int, shape (n,)
        Classes 0 to k - 1.

    Examples
    --------
    >>> from fastal.studies.many_classes import class_data
    >>> X, y = class_data("iris")
    >>> X.shape, sorted(set(y.tolist()))
    ((150, 5), [0, 1, 2])
    """
    check.option("name", name, CLASS_SETS)
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = X / 16.0 if name == "digits" else (X - X.mean(axis=0)) / X.std(axis=0)
    return np.column_stack((X, np.ones(len(X)))), y.astype(np.int64)


class ClassRow(NamedTuple):
    """What stops at one share left unused on one data set, means over the runs."""

    dataset: str
    acquisition: str
    share: float
    asked: float  # labels at the stop, as a share of the pool
    unused: float  # share of the fall of the error that was still to come
    worst: float  # the largest one of the runs
    accuracy: float  # on the test set, at the stop
    final: float  # and after the whole pool


class ClassStudy(NamedTuple):
    """The rows of the study, one per data set, acquisition and share; as text, a table."""

    rows: tuple[ClassRow, ...]

    def _cells(self) -> list[list[str]]:
        head = [
            "data set", "acquisition", "share asked", "labels", "unused", "worst run", "accuracy",
            "with all",
        ]  # fmt: skip
        return [head] + [
            [row.dataset, row.acquisition, f"{row.share:.0%}"]
            + [f"{100 * value:.1f} %" for value in row[3:]]
            for row in self.rows
        ]

    def __str__(self) -> str:
        return aligned(self._cells())

    def to_markdown(self) -> str:
        """Return the rows as a table of Markdown.

        Returns
        -------
        str
            With a line per row.
        """
        head, *rows = self._cells()
        lines = [head, ["---"] * len(head), *rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def class_study(
    datasets: Sequence[str] = CLASS_SETS,
    *,
    acquisitions: Sequence[str] = ("margin", "entropy"),
    runs: int = 5,
    pool: int = 150,
    prior: float = 1.0,
    seed: int = 0,
    jobs: int | None = None,
    report: Callable[[str], object] | None = None,
) -> ClassStudy:
    """Label whole pools with `BayesianLogistic`, and see what earlier stops would have left.

    Parameters
    ----------
    datasets : sequence of str, optional
        Some of ``fastal.studies.names.CLASS_SETS``.
    acquisitions : sequence of str, optional
        How points are chosen.
    runs : int, optional
        Random pools per data set, at most 1,000.
    pool : int, optional
        Points in a pool; at most two thirds of a data set. The rest is the test set.
    prior : float, optional
        Prior variance of each weight.
    seed : int, optional
        Seed of all that is random.
    jobs : int, optional
        Threads for runs; one per core by default.
    report : callable, optional
        Called with a line of progress per data set.

    Returns
    -------
    ClassStudy
        `unused` is the share of the fall of the root mean square error (of one minus the
        probability of the class that is there), from the last initial label to the pool's end.

    Examples
    --------
    >>> from fastal.studies import class_study
    >>> study = class_study(["iris"], acquisitions=["margin"], runs=1, pool=30)
    >>> [row.share for row in study.rows]
    [0.05, 0.1, 0.2]
    """
    from joblib import Parallel, delayed

    runs, pool = check.count("runs", runs, 1, MOST_RUNS), check.count("pool", pool, INITIAL + 2)
    prior, seed = check.positive("prior", prior), check.seed("seed", seed)
    say = report or (lambda text: None)
    rows = []
    for name in datasets:
        X, y = class_data(name)
        for acquisition in acquisitions:
            say(f"{name}, {acquisition}: {runs} runs")
            found = Parallel(check.jobs("jobs", jobs) or -1, prefer="threads")(
                delayed(_stops)(X, y, acquisition, min(pool, 2 * len(X) // 3), prior, (seed, run))
                for run in range(runs)
            )
            means = np.nanmean(found, axis=0)
            worst = np.nanmax(np.array(found)[:, :, 1], axis=0)
            rows += [
                ClassRow(name, acquisition, share, asked, left, float(most), right, final)
                for share, (asked, left, right, final), most in zip(
                    SHARES, means.tolist(), worst, strict=True
                )
            ]
    return ClassStudy(tuple(rows))


def _stops(
    X: Array, y: Ints, acquisition: str, pool: int, prior: float, seed: tuple[int, int]
) -> Array:
    """Return labels, unused share and accuracies of one run, for each share asked: (shares, 4)."""
    order = np.random.default_rng(seed).permutation(len(X))
    mine, rest = order[:pool], order[pool:]
    run = learn(
        X[mine], y[mine], gp=BayesianLogistic(X.shape[1], int(y.max()) + 1, prior=prior),
        stopper=FixedBudget(pool), initial=INITIAL, acquisition=acquisition, seed=seed[1],
        test=(X[rest], y[rest]),
    )  # fmt: skip
    assert run.rmse is not None
    rmse = run.rmse[INITIAL - 1 :]
    fall = rmse[0] - rmse[-1]
    out = np.empty((len(SHARES), 4))
    for i, share in enumerate(SHARES):
        at = StillToCome(share, horizon=len(run.bounds)).extend(run.bounds) or len(run.bounds)
        model = BayesianLogistic(X.shape[1], int(y.max()) + 1, prior=prior)
        model.add_batch(X[mine][run.indices[: INITIAL + at]], run.labels[: INITIAL + at])
        left = (rmse[at] - rmse[-1]) / fall if fall > 0 else np.nan
        right, final = (np.mean(m.predict(X[rest]) == y[rest]) for m in (model, run.gp))
        out[i] = (INITIAL + at) / pool, left, right, final
    return out
