"""Chunk: the numbers of some runs, on their way between processes and to the store."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastal._core import campaigns
from fastal._types import Array, Ints

if TYPE_CHECKING:
    from fastal.simulation.plan import Plan


class Chunk(NamedTuple):
    """Results of k runs."""

    runs: Ints  # (k,)
    counts: Ints  # (2, k) labels computed; labels at the stop, -1 if none
    criteria: Ints  # (k, c) labels at the stop of each criterion, -1 if none
    histories: Array  # (k, h, B) numbers of those criteria that do not go by bounds
    bounds: Array  # (k, B), NaN after the last one; B = 0 if they are not kept
    errors: Array  # (k, T), T = 0 without a test set
    rmse: Array  # (k, T) likewise
    messages: list[tuple[int, str]]  # runs that failed
    seconds: float
    left: tuple[tuple[int, int], ...] = ()  # runs there was no time for

    @classmethod
    def empty(cls, plan: Plan, runs: Ints) -> Chunk:
        """Return the chunk of these runs, before any is computed."""
        k = len(runs)
        c, h, b, t = plan.widths
        return cls(
            runs,
            np.zeros((2, k), dtype=np.int64),
            np.full((k, c), -1, dtype=np.int64),
            np.full((k, h, b), np.nan),
            np.full((k, plan.n_bounds), np.nan),
            np.full((k, t), np.nan),
            np.full((k, t), np.nan),
            [],
            0.0,
        )

    def fail(self, place: int, error: BaseException) -> None:
        """Record that a run has failed."""
        message = f"{type(error).__name__}: {error}".replace("\0", " ")
        self.messages.append((int(self.runs[place]), message))
        self.counts[:, place] = 0, -1
        self.criteria[place] = -1
        for array in (self.histories, self.bounds, self.errors, self.rmse):
            array[place] = np.nan

    def first(self, done: int) -> Chunk:
        """Return the chunk of the first runs; the others are left."""
        if done == len(self.runs):
            return self
        return self._replace(
            runs=self.runs[:done],
            counts=self.counts[:, :done],
            criteria=self.criteria[:done],
            histories=self.histories[:done],
            bounds=self.bounds[:done],
            errors=self.errors[:done],
            rmse=self.rmse[:done],
            left=as_spans(self.runs[done:]),
        )

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """Return all arrays; the NaNs after the bounds, often most of the row, are left out."""
        lengths, values = campaigns.without_tails(np.ascontiguousarray(self.bounds))
        return (
            self.runs, self.counts, self.criteria, self.histories, self.errors, self.rmse,
            np.array(self.bounds.shape), lengths, values,
        )  # fmt: skip

    @classmethod
    def _of_arrays(
        cls, arrays: Sequence[Any], messages: list[tuple[int, str]], *more: Any
    ) -> Chunk:
        runs, counts, criteria, histories, errors, rmse, shape, lengths, values = arrays
        bounds = np.full(shape, np.nan)
        bounds[np.arange(bounds.shape[1]) < lengths[:, None]] = values
        return cls(runs, counts, criteria, histories, bounds, errors, rmse, messages, *more)

    def __reduce__(self) -> tuple[Any, ...]:  # on its way back from another process
        return Chunk._of_arrays, (self._arrays(), self.messages, self.seconds, self.left)

    def pack(self) -> bytes:
        """Return the chunk as bytes, for the store."""
        file = io.BytesIO()
        for array in self._arrays():
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        text = "\0".join(f"{run} {message}" for run, message in self.messages)
        file.write(text.encode("utf-8", "backslashreplace"))
        return file.getvalue()

    @classmethod
    def unpack(cls, data: bytes) -> Chunk:
        """Return the chunk that `pack` wrote."""
        file = io.BytesIO(data)
        arrays = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(9)]
        messages: list[tuple[int, str]] = []
        for line in filter(None, file.read().decode().split("\0")):
            run, _, message = line.partition(" ")
            messages.append((int(run), message))
        return cls._of_arrays(arrays, messages, 0.0)


def as_spans(runs: Ints) -> tuple[tuple[int, int], ...]:
    """Return numbers as ranges.

    An array would be large enough for joblib to put it on one Dask worker, and lose it with it.
    """
    ends = np.flatnonzero(np.diff(runs) != 1) + 1
    parts = np.split(runs, ends) if len(runs) else []
    return tuple((int(part[0]), int(part[-1]) + 1) for part in parts)
