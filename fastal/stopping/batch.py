"""Many streams: stopping_time over whole histories, StopperBatch in lock step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _memory
from fastal import _validation as check
from fastal._core import batch
from fastal._threads import cores
from fastal.runs import METHODS
from fastal.stopping.criterion import Criterion
from fastal.stopping.stopper import Stopper

if TYPE_CHECKING:
    from fastal._core.rule import CompiledRule

# A history of many streams shares a table of critical counts; a longer one would cost more to make
# than it saves.
_TABLE_LENGTH = 4096

_TABLE_STREAMS = 8


def stopping_time(
    bounds: ArrayLike,
    alpha: float | None = None,
    *,
    threads: int | None = None,
    criterion: Criterion | None = None,
    **settings: Any,
) -> Any:
    """Return how many bounds it takes a criterion to stop: a `Stopper`, unless another is given.

    Parameters
    ----------
    bounds : array_like
        One history, or a matrix whose rows are histories of independent streams.
    alpha : float, optional
        Level of the `Stopper`; 0.001 by default.
    threads : int, optional
        Threads for a matrix; as many as there are cores by default.
    criterion : MovementBelow, Stopper, budget or a combination of these, optional
        Another criterion; it is copied, without its bounds. Streams share its horizon.
    **settings
        Further arguments of `Stopper`.

    Returns
    -------
    int or None, or array of int
        Number of bounds at the stop or None; for a matrix an array, -1 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import stopping_time
    >>> stopping_time(np.repeat([5.0, 1.0], 10))
    15
    >>> stopping_time([np.repeat([5.0, 1.0], 10), np.tile([5.0, 1.0], 10)])
    array([15, -1])
    >>> from fastal import MovementBelow
    >>> stopping_time(5.0 / np.arange(1, 101) ** 2, criterion=MovementBelow(0.1, horizon=400))
    49
    """
    like, rule = _compiled_criterion(alpha, settings, criterion)
    history = check.finite_array("bounds", bounds)
    if threads is not None:
        check.count("threads", threads, 1)
    if history.ndim not in (1, 2):
        raise ValueError(f"`bounds` must have one or two axes, got shape {history.shape}")
    like._check_bounds("bounds", history)
    if history.ndim == 1:
        return like.extend(history)
    rows, n = history.shape
    table = np.empty(0, dtype=np.int32)
    if isinstance(like, Stopper) and rows >= _TABLE_STREAMS and n <= _TABLE_LENGTH:
        table = _critical_counts(like, n)
    out = np.empty(rows, dtype=np.int64)
    workers = min(threads or cores(), max(1, rows // 64))
    cuts = np.linspace(0, rows, workers + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        parts = [
            pool.submit(batch.stopping_times, history[a:b], rule, table, out[a:b])
            for a, b in pairwise(cuts.tolist())
        ]
        if not all(part.result() for part in parts):
            raise MemoryError(f"no memory for {workers} trackers of {n} bounds")
    return out


def _critical_counts(like: Stopper, n: int) -> NDArray[np.int32]:
    """Return the critical numbers of runs for up to n bounds; none for another alternative."""
    if like.alternative != "less":
        return np.empty(0, dtype=np.int32)
    window = n if like.window is None else min(int(like.window), n)
    table = np.empty(window + 1, dtype=np.int32)
    method = METHODS["exact" if like.sequential else like.method]
    batch.critical_counts(like._level, like._falling, method, table)
    return table


def _compiled_criterion(
    alpha: float | None, settings: dict[str, Any], criterion: Criterion | None
) -> tuple[Criterion, CompiledRule]:
    """Return the criterion of many streams, without bounds, and its compiled rule."""
    if criterion is None:
        stopper = Stopper(1e-3 if alpha is None else alpha, **settings)
        return stopper, stopper.compiled
    given = settings if alpha is None else {"alpha": alpha} | settings
    if given:
        name, value = next(iter(given.items()))
        if name not in Stopper()._argument_names():
            raise TypeError(f"`{name}` is not an argument, got {check.short_repr(value)}")
        raise TypeError(
            f"`{name}` is an argument of Stopper: it cannot be given together with `criterion`, "
            f"got {check.short_repr(value)}"
        )
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` must be a criterion, got {check.short_repr(criterion)}")
    like = criterion.copy().reset()
    rule = like.compiled
    if rule is None or rule.asks:
        raise TypeError(
            "`criterion` must be a Stopper, a MovementBelow or a budget, or combine such criteria, "
            f"got {check.short_repr(criterion)}"
        )
    return like, rule


class StopperBatch:
    """Criteria of many streams that advance in lock step: a `Stopper` each, or another one.

    Parameters
    ----------
    n_streams : int
        Number of streams.
    alpha : float, optional
        Level of the `Stopper`; 0.001 by default.
    criterion : MovementBelow, Stopper, budget or a combination of these, optional
        Another criterion; each stream gets a copy, without its bounds.
    **settings
        Further arguments of `Stopper`, but for `gp` and `noise`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastal import StopperBatch
    >>> batch = StopperBatch(3)
    >>> for t in range(16):
    ...     stopped = batch.push([5.0 if t < 8 else 1.0, t % 2, t])
    >>> stopped, batch.stopped_at
    (array([ True, False, False]), array([14, -1, -1]))
    """

    def __init__(
        self,
        n_streams: int,
        alpha: float | None = None,
        *,
        criterion: Criterion | None = None,
        **settings: Any,
    ) -> None:
        for name in ("gp", "noise"):
            if name in settings:
                raise TypeError(f"`{name}` is not an argument of StopperBatch: push bounds")
        self.n_streams = check.count("n_streams", n_streams, 1, check.INT64_MAX)
        self._like, rule = _compiled_criterion(alpha, settings, criterion)
        _memory.check(
            self.n_streams * (rule.nbytes + 8),
            f"a batch of {check.short_repr(self.n_streams)} streams",
            "lower `n_streams`",
        )
        self._batch = batch.RuleBatch(self.n_streams, rule)
        self._stopped = np.zeros(self.n_streams, dtype=np.uint8)

    def push(self, values: ArrayLike, where: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Push one bound to each stream.

        Parameters
        ----------
        values : array_like of shape (n_streams,)
            Finite bounds; those of streams left out do not matter.
        where : array_like of bool, optional
            Streams to advance; all by default. Streams that have stopped go on being recorded
            unless they are left out.

        Returns
        -------
        array of bool
            Which streams have stopped, now or before.
        """
        chosen = np.ones(self.n_streams, dtype=np.uint8)
        if where is not None:
            mask = check.as_array("where", where)
            if mask.dtype.kind != "b" or mask.shape != (self.n_streams,):
                raise ValueError(
                    f"`where` must hold {self.n_streams} booleans, got {check.short_repr(where)}"
                )
            chosen = np.ascontiguousarray(mask).view(np.uint8)
        bounds = check.float_array("values", values)
        if bounds.shape != (self.n_streams,):
            raise ValueError(f"`values` must have shape ({self.n_streams},), got {bounds.shape}")
        if where is not None:
            bounds = np.where(chosen, bounds, 0.0)
        bounds = check.finite_array("values", bounds)
        self._like._check_bounds("values", bounds)
        self._batch.push(bounds, chosen, self._stopped)
        return self._stopped.astype(bool)

    def reset(self, streams: ArrayLike | None = None) -> None:
        """Forget the bounds of some streams, or of all.

        Parameters
        ----------
        streams : int or array_like of int, optional
            Indices; all streams by default.
        """
        if streams is None:
            index = np.arange(self.n_streams)
        elif isinstance(streams, int | np.integer):
            index = np.array([check.below("streams", streams, self.n_streams)])
        else:
            index = check.indices("streams", streams, self.n_streams, "an index or indices")
        self._batch.reset(index, self._stopped)

    def _counts(self) -> NDArray[np.int64]:
        counts = np.empty((2, self.n_streams), dtype=np.int64)
        self._batch.counts(counts)
        return counts

    def _runs(self, name: str) -> tuple[NDArray[np.int64], Any]:
        if not isinstance(self._like, Stopper):
            raise AttributeError(f"a batch of {self._like!r} has no {name}")
        runs, floats = np.empty(self.n_streams, dtype=np.int64), np.empty((2, self.n_streams))
        self._batch.runs(runs, floats)
        return runs, floats

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """Which streams have stopped."""
        return self._stopped.astype(bool)

    @property
    def stopped_at(self) -> NDArray[np.int64]:
        """Number of bounds at the stop of each stream, -1 where there is none."""
        at = self._counts()[1]
        return np.where(at == 0, -1, at)

    @property
    def n(self) -> NDArray[np.int64]:
        """Number of bounds of each stream."""
        n: NDArray[np.int64] = self._counts()[0]
        return n

    @property
    def left(self) -> NDArray[np.float64]:
        """Share still to come of each stream, as the first MovementBelow says; NaN without one."""
        left = np.empty(self.n_streams)
        self._batch.left(left)
        return left

    @property
    def n_runs(self) -> NDArray[np.int64]:
        """Number of runs of each stream; of stoppers only."""
        return self._runs("n_runs")[0]

    @property
    def p_value(self) -> NDArray[np.float64]:
        """p-value of each stream now; of stoppers only."""
        p: NDArray[np.float64] = self._runs("p_value")[1][0]
        return p

    @property
    def median(self) -> NDArray[np.float64]:
        """Median of the tested bounds of each stream; of stoppers only."""
        median: NDArray[np.float64] = self._runs("median")[1][1]
        return median

    def bounds(self, stream: int) -> NDArray[np.float64]:
        """Return all bounds of one stream in order.

        Parameters
        ----------
        stream : int
            Index.

        Returns
        -------
        array of float
            Bounds.
        """
        index = check.below("stream", stream, self.n_streams)
        out = np.empty(int(self.n[index]))
        if not self._batch.values(index, out):
            raise AttributeError(f"a batch of {self._like!r} keeps no bounds")
        return out

    def __len__(self) -> int:
        return self.n_streams

    def __repr__(self) -> str:
        return f"StopperBatch({self.n_streams} streams, {int(self._stopped.sum())} stopped)"
