"""simulate: many labelling campaigns over pools drawn from one data set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from fastal import _memory
from fastal import _validation as check
from fastal._progress import ProgressBar, logger
from fastal.simulation.chunk import Chunk
from fastal.simulation.plan import _prepare, _settings
from fastal.simulation.result import Simulation, _Table
from fastal.simulation.scheduler import run_chunks
from fastal.simulation.store import Store, _Writer

if TYPE_CHECKING:
    from fastal.models.gp import GaussianProcess
    from fastal.simulation.plan import Make
    from fastal.stopping.criterion import Criterion


def simulate(
    X: ArrayLike | Make,
    y: ArrayLike | None = None,
    *,
    gp: GaussianProcess | None = None,
    refit: float | None = None,
    criterion: Criterion | None = None,
    criteria: Sequence[Criterion] = (),
    n_runs: int = 100,
    pool_size: int | None = None,
    initial: int | None = None,
    max_labels: int | None = None,
    acquisition: str = "max_variance",
    test: Any = "rest",
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    errors: str = "record",
    keep: str = "all",
    progress: bool = False,
) -> Simulation:
    """Run many learning campaigns, each over a pool of its own.

    Parameters
    ----------
    X : array_like, shape (n, d), or callable
        Inputs, from which each run draws its pool. A callable ``make(rng) -> (X, y)`` makes new
        data for each run.
    y : array_like, shape (n,)
        Their labels; None with a callable.
    gp : GaussianProcess, optional
        The model, without labels; common to all runs. None: each run learns its hyper-parameters on
        the way (see `ActiveLearner`).
    refit : float, optional
        How much the labels grow between two fits of the hyper-parameters, above 1. By default 1.2
        without a `gp`, and no fits with one.
    criterion : Stopper or another criterion, optional
        When to stop; ``Stopper()`` by default.
    criteria : sequence of criteria
        Further ones, to be compared on the same bounds.
    n_runs : int
        Number of runs.
    pool_size : int, optional
        Points in a pool. By default 100, as in the paper, or half of the rows if these are fewer
        than 200; without ``test="rest"`` all rows.
    initial : int, optional
        Random labels that come first and give no bound. By default one, and five without a `gp`.
    max_labels : int, optional
        Most labels in all, the initial ones included; the whole pool by default.
    acquisition : {"max_variance", "random"}
        How the next point is chosen.
    test : "rest", None or tuple of arrays
        On which rows to compute the expected loss after each label: all that are not in the pool,
        none, or these inputs and labels.
    seed : int
        Run i is seeded by ``numpy.random.SeedSequence(seed).spawn(n_runs)[i]``.
    n_jobs : int, optional
        Threads, at most 4,096, or -1 for one per core; 1 by default, or what
        ``joblib.parallel_config`` says.
    store : path, optional
        An SQLite file that keeps what is finished. The same call with the same file goes on where
        the last one was interrupted; `n_runs` may have grown.
    errors : {"record", "raise"}
        What to do when a run fails.
    keep : {"all", "summary"}
        "summary" leaves bounds and errors out of the result, for the sake of memory. (Errors take
        8 bytes per label and run until `t_opt` is known.)
    progress : bool
        Whether to show a progress bar (tqdm).

    Returns
    -------
    Simulation
        One entry per run.

    Notes
    -----
    A run ends at its stop if nothing else is wanted. With test errors or `criteria` it goes on to
    `max_labels`; the stop and `n_labels` are the same.

    With fits on the way, criteria see bounds as they were at each moment. Those in the result are
    under the last fit of each run, `errors` is minus the logarithm of the predictive density, and
    errors before the first fit are NaN.

    Results do not depend on the backend, the number of workers or the order, to the last digit.
    (Pools of 2,048 points and more, and of 1,000 if points times labels exceed 250,000, go through
    BLAS, whose digits are those of the processor and the version of BLAS.) Within
    ``joblib.parallel_config(backend="dask")`` a Dask cluster takes the chunks: the data go to every
    worker once, at the beginning, and only row numbers and settings travel with a chunk.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import GaussianProcess, simulate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-5, 15, 300)
    >>> y = np.exp(-((X - 2) ** 2) / 2) + 0.05 * rng.standard_normal(300)
    >>> result = simulate(X, y, gp=GaussianProcess(1.5, 0.0025), n_runs=20, pool_size=50)
    >>> result.n_labels.shape, result.errors.shape, bool((result.n_labels <= 50).all())
    ((20,), (20, 50), True)
    """
    count = check.count("n_runs", n_runs, 1)
    jobs = check.jobs("n_jobs", n_jobs)
    check.option("errors", errors, ("record", "raise"))
    check.option("keep", keep, ("all", "summary"))
    check.flag("progress", progress)
    plan, data = _prepare(
        X, y, gp, refit, criterion, criteria, pool_size, initial, max_labels, test,
        check.seed("seed", seed), acquisition, keep == "all", errors == "raise",
    )  # fmt: skip
    # besides the columns: counts, and what is made of them in the end
    judges, measured, bounds, tested = plan.widths
    curves = 2 * tested if bounds else tested
    _memory.check(
        8 * count * (8 + judges + measured * bounds + bounds + curves),
        f"a simulation with `n_runs` = {check.short_repr(count)}",
        "lower `n_runs`, or use keep='summary'",
    )
    table = _Table(plan, count)
    kept = None if store is None else Store(store, _settings(plan, data, keep))
    try:
        if kept is not None:
            for packed in kept.chunks():
                try:
                    table.put(Chunk.unpack(packed))
                except (ValueError, IndexError, UnicodeDecodeError) as error:
                    raise ValueError(f"`store` {kept.path!r} is damaged: {error}") from None
        logger.info("%d runs, %d of them in the store", count, table.n_done)
        arrays = (
            (data.Z, data.y) if plan.test_on_rest else (data.Z, data.y, data.test_Z, data.test_y)
        )
        with (
            ProgressBar(progress, count, table.n_done, unit="run") as bar,
            _Writer(kept) as write,
            closing(run_chunks(plan, arrays, table.missing(), jobs)) as chunks,
        ):
            for chunk in chunks:
                write(chunk)
                table.put(chunk)
                bar.advance(len(chunk.runs))
        if (lost := len(table.missing())) > 0:
            raise RuntimeError(f"the backend of joblib returned nothing for {lost} runs")
    finally:
        if kept is not None:
            kept.close()
    return Simulation(plan, table, data.n_rows, keep == "all")
