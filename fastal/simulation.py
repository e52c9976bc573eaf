"""simulate: many learning runs, on threads or on joblib's backends (Dask); resumable.

A run is a learning campaign over its own pool. Runs are computed in chunks (`_chunks`) of at most a
quarter of a second, compiled and without the GIL, by whoever there is (`_sharing`); this module
checks what is asked for, keeps the results and shows them.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _memory, _selection
from fastal import _validation as check
from fastal._chunks import Chunk, Plan, draw_pools, made_data, run_sequence
from fastal._criterion import Criterion
from fastal._sharing import CHUNK_RUNS, shared_out
from fastal._store import FORMAT, Store
from fastal.gp import GaussianProcess
from fastal.learner import _test_set, _warn_if_far
from fastal.stopper import Stopper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Make = Callable[[np.random.Generator], tuple[ArrayLike, ArrayLike]]

# The pool if none is asked for: the paper's 100, or half of the rows.
PAPER_POOL = 100

# Runs of a callable that may fail before the first one shows the size of its data.
PROBES = 10


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


def simulate(
    X: ArrayLike | Make,
    y: ArrayLike | None = None,
    *,
    gp: GaussianProcess,
    stopper: Criterion | None = None,
    criteria: Sequence[Criterion] = (),
    n_runs: int = 100,
    pool_size: int | None = None,
    initial: int = 1,
    max_labels: int | None = None,
    test: Any = "rest",
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    errors: str = "record",
    keep: str = "all",
    progress: bool = False,
) -> Simulation:
    """Run many learning campaigns, each over a pool of its own, by maximum variance.

    Parameters
    ----------
    X : array_like, shape (n, d), or callable
        Inputs, from which each run draws its pool. A callable ``make(rng) -> (X, y)`` makes new
        data for each run.
    y : array_like, shape (n,)
        Their labels; None with a callable.
    gp : GaussianProcess
        The model, without labels; common to all runs.
    stopper : Stopper or another criterion, optional
        When to stop; ``Stopper()`` by default.
    criteria : sequence of criteria
        Further ones, to be compared on the same bounds.
    n_runs : int
        Number of runs.
    pool_size : int, optional
        Points in a pool. By default 100, as in the paper, or half of the rows if these are fewer
        than 200; without ``test="rest"`` all rows.
    initial : int
        Random labels that come first and give no bound.
    max_labels : int, optional
        Most labels in all, the initial ones included; the whole pool by default.
    test : "rest", None or tuple of arrays
        On which rows to compute the expected loss after each label: all that are not in the pool,
        none, or these inputs and labels.
    seed : int
        Run i is seeded by ``numpy.random.SeedSequence(seed).spawn(n_runs)[i]``.
    n_jobs : int, optional
        Threads, at most 4,096, or -1 for one a core; 1 by default, or what
        ``joblib.parallel_config`` says.
    store : path, optional
        An SQLite file that keeps what is finished. The same call with the same file goes on where
        the last one was interrupted; `n_runs` may have grown.
    errors : {"record", "raise"}
        What to do when a run fails.
    keep : {"all", "summary"}
        "summary" leaves bounds and errors out of the result, for the sake of memory. (Errors take
        8 bytes a label and run until `t_opt` is known.)
    progress : bool
        Whether to show a progress bar (tqdm).

    Returns
    -------
    Simulation
        One entry a run.

    Notes
    -----
    A run ends at its stop if nothing else is wanted. With test errors or `criteria` it goes on to
    `max_labels`; the stop and `n_labels` are the same.

    Results do not depend on the backend, the number of workers or the order, to the last digit.
    (Pools of 2,048 points and more go through BLAS, whose digits are those of the processor and the
    version of BLAS.) Within ``joblib.parallel_config(backend="dask")`` a Dask cluster takes the
    chunks: the data go to every worker once, at the beginning, and only row numbers and settings
    travel with a chunk.

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
        X, y, gp, stopper, criteria, pool_size, initial, max_labels, test,
        check.seed("seed", seed), keep == "all", errors == "raise",
    )  # fmt: skip
    # besides the columns: counts, and what is made of them in the end
    judges, measured, bounds, tested = plan.widths
    _memory.check(
        8 * count * (8 + judges + measured * bounds + bounds + tested),
        f"a simulation with `n_runs` = {check.shown(count)}",
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
        arrays = (data.Z, data.y) if plan.rest else (data.Z, data.y, data.test_Z, data.test_y)
        with (
            _Bar(count, table.n_done, progress) as bar,
            _Writer(kept) as write,
            closing(shared_out(plan, arrays, table.missing(), jobs)) as chunks,
        ):
            for chunk in chunks:
                write(chunk)
                table.put(chunk)
                bar(len(chunk.runs))
        if (lost := len(table.missing())) > 0:
            raise RuntimeError(f"the backend of joblib returned nothing for {lost} runs")
    finally:
        if kept is not None:
            kept.close()
    return Simulation(plan, table, data.n_rows, keep == "all")


class _Writer:
    """Commits chunks in a thread: a disk makes one wait, and the runs go on meanwhile."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> Callable[[Chunk], None]:
        self._thread = ThreadPoolExecutor(1)
        return self._write

    def _write(self, chunk: Chunk) -> None:
        if self._store is None:
            return
        store = self._store
        self._pending.append(self._thread.submit(lambda: store.add(chunk.pack())))
        # An error of the disk comes up here; and no more than two chunks wait for it.
        while self._pending and (len(self._pending) > 2 or self._pending[0].done()):
            self._pending.popleft().result()

    def __exit__(self, kind: object, *_: object) -> None:
        self._thread.shutdown()
        if kind is None:
            for commit in self._pending:
                commit.result()


class _Data(NamedTuple):
    """The big arrays; `digest` tells one problem from another."""

    Z: Array  # (d, n) inputs over length scales
    y: Array
    test_Z: Array  # noqa: N815 # (d, m)
    test_y: Array
    digest: str
    test_digest: str | None
    n_rows: int


def _prepare(
    X: Any, y: Any, gp: GaussianProcess, stopper: Criterion | None, criteria: Any,
    pool_size: int | None, initial: int, max_labels: int | None, test: Any, seed: int,
    keep_bounds: bool, raising: bool,
) -> tuple[Plan, _Data]:  # fmt: skip
    """Check all that decides what a run computes."""
    if not isinstance(gp, GaussianProcess):
        raise TypeError(f"`gp` must be a GaussianProcess, got {check.shown(gp)}")
    if gp.n_labels:
        raise ValueError(f"`gp` must have no labels, got {gp.n_labels}: use a fresh one")
    chosen = Stopper() if stopper is None else stopper
    if not isinstance(chosen, Criterion):
        raise TypeError(f"`stopper` must be a Stopper or criterion, got {check.shown(stopper)}")
    if isinstance(criteria, Criterion) or not isinstance(criteria, Iterable):
        raise TypeError(f"`criteria` must be a sequence of criteria, got {check.shown(criteria)}")
    others = tuple(criteria)
    for other in others:
        if not isinstance(other, Criterion):
            raise TypeError(f"`criteria` must hold criteria, got {check.shown(other)}")
    rest = isinstance(test, str)
    if rest:
        check.option("test", test, ("rest",))
    scale = gp.lengthscale
    features = None if isinstance(scale, float) else len(scale)
    make: Make | None = None
    if callable(X):
        if y is not None:
            raise ValueError("`y` must be None when `X` is a callable, which returns both")
        make = X
        points, labels, digest = _probe(make, seed, features)
    else:
        if y is None:
            raise ValueError("`y` must be given, got None")
        points = check.points("X", X, features)
        labels = check.vector("y", y, len(points))
        digest = _digest(points, labels)
    n = len(points)
    if n == 0:
        raise ValueError("`X` must have at least one row, got 0")
    if pool_size is None:
        size = max(1, min(PAPER_POOL, n // 2)) if rest else n
    else:
        size = check.count("pool_size", pool_size, 1)
    if size > n:
        raise ValueError(
            f"`pool_size` must be at most the number of rows ({n}), got {check.shown(size)}"
        )
    if rest and size == n:
        raise ValueError(
            f"`pool_size` must be below the number of rows ({n}), got {size}: it leaves no row for "
            "test='rest'"
        )
    first = check.count("initial", initial)
    if first > size:
        raise ValueError(
            f"`initial` must be at most the size of the pool ({size}), got {check.shown(first)}"
        )
    most = size if max_labels is None else check.count("max_labels", max_labels, 1)
    if not (max(1, first) <= most <= size):
        raise ValueError(
            f"`max_labels` must be between `initial` ({first}) and the size of the pool ({size}), "
            f"got {check.shown(most)}"
        )
    _selection._check_memory(size, most)
    gp = gp.copy()
    if make is None:
        _warn_if_far(gp, labels)
    gp._warned = True  # said already
    Z = gp._scaled("X", points)
    test_Z, test_y, test_digest = Z, labels, None
    if not rest:
        test_Z, test_y = Z[:, :0].copy(), labels[:0].copy()
        if test is not None:
            test_points, test_y = _test_set(test, points.shape[1])
            test_Z, test_digest = gp._scaled("test", test_points), _digest(test_points, test_y)
    if make is not None:
        Z, labels = Z[:, :0].copy(), labels[:0].copy()
        if rest:
            test_Z, test_y = Z, labels
    plan = Plan(
        gp=gp,
        stopper=_fresh(chosen),
        criteria=tuple(_fresh(other) for other in others),
        make=make,
        seed=seed,
        pool_size=size,
        initial=first,
        max_labels=most,
        rest=rest,
        tested=test is not None,
        keep_bounds=keep_bounds,
        raising=raising,
    )
    return plan, _Data(Z, labels, test_Z, test_y, digest, test_digest, n)


def _fresh(criterion: Criterion) -> Criterion:
    new = criterion.copy().reset()
    if isinstance(new, Stopper):
        new.gp = None  # the pool's own process gives the bounds
    return new


def _digest(*arrays: Array) -> str:
    total = hashlib.sha256()
    for array in arrays:
        total.update(repr(array.shape).encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _probe(make: Make, seed: int, features: int | None) -> tuple[Array, Array, str]:
    """Return the data of the first run of a callable that does not fail, and their checksum.

    A function cannot be compared with the one that filled a store, its data can.
    """
    for run in range(PROBES):
        try:
            X, y = made_data(make, run_sequence(seed, run), features)
        except Exception:
            if run == PROBES - 1:
                raise
        else:
            return X, y, f"run {run} of a callable: {_digest(X, y)}"
    raise AssertionError  # pragma: no cover


def _settings(plan: Plan, data: _Data, keep: str) -> dict[str, Any]:
    """Return all that decides the numbers; how many runs there are does not."""
    test = "rest" if plan.rest else data.test_digest
    return {
        "format": FORMAT,
        "data": data.digest,
        "gp": plan.gp.to_dict(),
        "stopper": plan.stopper.to_dict(),
        "criteria": [criterion.to_dict() for criterion in plan.criteria],
        "pool_size": plan.pool_size,
        "initial": plan.initial,
        "max_labels": plan.max_labels,
        "test": test,
        "seed": plan.seed,
        "keep": keep,
    }


# Computing a chunk: here, in a thread, or in another process -------------------------------------


# Sharing out chunks -------------------------------------------------------------------------------


class _Bar:
    """A tqdm bar over the runs, or nothing."""

    def __init__(self, total: int, done: int, wanted: bool) -> None:
        self._bar: Any = None
        if wanted:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, initial=done, unit="run")

    def __enter__(self) -> Callable[[int], None]:
        return self._update

    def _update(self, number: int) -> None:
        if self._bar is not None:
            self._bar.update(number)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


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
        self.done[to] = True
        self.messages.update((run, text) for run, text in chunk.messages if run < self.n)


# The result -------------------------------------------------------------------------------------


class Simulation:
    """What came of many learning runs; entry i of each array is run i.

    Attributes
    ----------
    n_labels : array of int
        Labels that the campaign used: up to the stop, or all it could have; 0 if the run failed.
    stopped : array of bool
        Whether the criterion stopped.
    stopped_at : array of int
        Labels at the stop, -1 if there was none.
    bounds : array, shape (n_runs, max_labels - initial), or None
        Bounds of the labels after the initial ones, NaN behind the last one.
    errors : array, shape (n_runs, max_labels), or None
        Expected loss on the test set after 1, 2, ... labels.
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
        self.errors: Array | None = table.errors if keep and plan.tested else None
        self.eta: float | None = None
        self.t_opt: Ints | None = None
        self.e_stop: Ints | None = None
        self._at_stop: Array | None = None
        if plan.tested:
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
            "stopped": _mean(self.stopped[ok]),
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
                found[name], found[f"{name}_se"] = _mean(values[ok]), _standard_error(values[ok])
        found["criteria"] = []
        for j, criterion in enumerate(self.criteria):
            stops = self.criteria_stops[ok, j]
            labels = np.where(stops < 0, self.max_labels, stops)
            row: dict[str, Any] = {"criterion": repr(criterion), "stopped": _mean(stops >= 0)}
            row |= {"n_labels": _mean(labels), "n_labels_se": _standard_error(labels)}
            if self.t_opt is not None:
                misses = np.abs(labels - self.t_opt[ok])
                row |= {"e_stop": _mean(misses), "e_stop_se": _standard_error(misses)}
            found["criteria"].append(row)
        return found

    def _columns(self) -> dict[str, list[Any]]:
        """Return a table with one row a run; None where there is nothing."""
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
        """Return a table with one row a run.

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
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

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
        from fastal.plot_simulation import plot_simulation

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


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _standard_error(values: Any) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
