"""Many streams: stopping_time over whole histories, Streams that advance one bound at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastal import _memory
from fastal import _validation as check
from fastal._core import rule as core
from fastal._threads import cores, map_blocks
from fastal.stopping.criterion import Criterion
from fastal.stopping.stopper import Stopper


def compiled_rule(criterion: Criterion) -> core.Rule:
    """Return the compiled rule of a criterion, without bounds."""
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` must be a criterion, got {check.short_repr(criterion)}")
    rule = criterion.copy().reset()._compiled()
    if rule is None:
        raise TypeError(
            "`criterion` must be a Stopper, a MovementBelow or a budget, or combine such criteria, "
            f"got {check.short_repr(criterion)}"
        )
    return rule


def _admit(rule: core.Rule, name: str, values: NDArray[np.float64]) -> None:
    """Refuse what a push would refuse, by the name of the argument."""
    if not values.size:
        return
    try:
        rule.copy().push(float(values.min()))
    except ValueError as error:
        said = str(error)
        if said.startswith("`r`"):
            where = np.unravel_index(int(values.argmin()), values.shape)
            place = where[0] if len(where) == 1 else tuple(map(int, where))
            said = f"`{name}`{said[3:]} at index {place}"
        raise ValueError(said) from None


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
    if criterion is None:
        criterion = Stopper(1e-3 if alpha is None else alpha, **settings)
    elif given := settings if alpha is None else {"alpha": alpha} | settings:
        name, value = next(iter(given.items()))
        raise TypeError(
            f"`{name}` is an argument of Stopper: it cannot be given together with `criterion`, "
            f"got {check.short_repr(value)}"
        )
    rule = compiled_rule(criterion)
    workers = cores() if threads is None else check.threads("threads", threads)
    history = check.finite_array("bounds", bounds)
    if history.ndim not in (1, 2):
        raise ValueError(f"`bounds` must have one or two axes, got shape {history.shape}")
    _admit(rule, "bounds", history)
    if history.ndim == 1:
        return rule.extend(history) or None
    out = np.empty(len(history), dtype=np.int64)
    blocks = min(workers, max(1, len(history) // 64))
    cuts = np.linspace(0, len(history), blocks + 1).astype(int).tolist()
    map_blocks(
        lambda part: core.stopping_times(history[slice(*part)], rule, out[slice(*part)]),
        pairwise(cuts),
        blocks,
    )
    return out


class Streams:
    """Many streams of bounds under one criterion, in one arena.

    Parameters
    ----------
    criterion : MovementBelow, Stopper, budget or a combination of these
        Each stream gets a copy, without its bounds.
    n : int
        Number of streams.

    Examples
    --------
    >>> from fastal import Stopper, Streams
    >>> streams = Streams(Stopper(), 3)
    >>> for t in range(16):
    ...     stopped = streams.push([5.0 if t < 8 else 1.0, t % 2, t])
    >>> stopped, streams.stopped_at
    (array([ True, False, False]), array([14, -1, -1]))
    """

    def __init__(self, criterion: Criterion, n: int) -> None:
        rule = compiled_rule(criterion)
        self._n = check.count("n", n, 1, check.INT64_MAX)
        _memory.check(self._n * rule.nbytes, f"{check.short_repr(n)} streams", "lower `n`")
        self._criterion, self._rule = criterion.copy().reset(), rule
        self._streams = core.Streams(rule, self._n)

    def push(self, values: ArrayLike, where: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Push one bound to each stream.

        Parameters
        ----------
        values : array_like, shape (n,)
            Finite bounds; those of streams left out do not matter.
        where : array_like of bool, optional
            Streams to advance; all by default. Streams that have stopped go on being recorded
            unless they are left out.

        Returns
        -------
        array of bool
            Which streams have stopped, now or before.
        """
        bounds = check.float_array("values", values)
        if bounds.shape != (self._n,):
            raise ValueError(f"`values` must have shape ({self._n},), got {bounds.shape}")
        chosen = np.ones(self._n, dtype=np.bool_)
        if where is not None:
            chosen = np.ascontiguousarray(check.as_array("where", where))
            if chosen.dtype.kind != "b" or chosen.shape != (self._n,):
                raise ValueError(
                    f"`where` must hold {self._n} booleans, got {check.short_repr(where)}"
                )
            bounds = np.where(chosen, bounds, 0.0)
        _admit(self._rule, "values", check.finite_array("values", bounds))
        stopped = np.empty(self._n, dtype=np.uint8)
        self._streams.push(bounds, chosen.view(np.uint8), stopped)
        return stopped.astype(bool)

    def reset(self, where: ArrayLike | None = None) -> None:
        """Forget the bounds of some streams, or of all.

        Parameters
        ----------
        where : array_like of bool, optional
            Which streams; all by default.
        """
        chosen = (
            np.ones(self._n, dtype=np.bool_) if where is None else check.as_array("where", where)
        )
        if chosen.dtype.kind != "b" or chosen.shape != (self._n,):
            raise ValueError(f"`where` must hold {self._n} booleans, got {check.short_repr(where)}")
        self._streams.reset(np.flatnonzero(chosen))

    @property
    def handle(self) -> int:
        """The streams for ``fastal.jit.push(handle, i, r)`` in compiled code, while this lives."""
        address = self._streams.lend()
        self._streams.take_back()
        return address

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

    def _counts(self) -> NDArray[np.int64]:
        counts = np.empty((2, self._n), dtype=np.int64)
        self._streams.counts(counts)
        return counts

    @property
    def left(self) -> NDArray[np.float64]:
        """Share still to come of each stream, as the first MovementBelow says; NaN without one."""
        left = np.empty(self._n)
        self._streams.left(left)
        return left

    def bounds(self, i: int) -> NDArray[np.float64]:
        """Return all bounds of one stream in order.

        Parameters
        ----------
        i : int
            Its index.

        Returns
        -------
        array
            A copy.
        """
        index = check.below("i", i, self._n)
        out = np.empty(self._streams.n_bounds(index))
        self._streams.bounds(index, out)
        return out

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        stopped = int((self.stopped_at > 0).sum())
        return f"Streams({self._criterion!r}, {self._n}): {stopped} stopped"
