"""Pools that are not in memory: what stands in for the array of points."""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from fastal._core.selection_lazy import ROWS
from fastal._types import Array
from fastal.learning.columns import BLOCK, add_rows, largest, units
from fastal.models.prior import Prior


class PoolElsewhere(ABC):
    """Points of a pool, (n, d), of which a learner gets the rows it asks for."""

    shape: tuple[int, int]

    # Whether who needs all rows in one place gets them.
    has_all = False

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "`X` is a dask array: what needs all of its rows in one place cannot be had with it"
        )

    @abstractmethod
    def __getitem__(self, rows: Any) -> Array:
        """Return one row, or some."""

    @abstractmethod
    def column_scales(self) -> tuple[Array, Array]:
        """Return powers of two that fit the columns, and standard deviations over them."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yield the rows, some at a time, each time with the number of the first one."""

    @abstractmethod
    def checksum(self) -> str:
        """Return what tells one pool from another, whatever its chunks."""

    def plain_checksum(self) -> str:
        """Return the checksum of an array in memory; all rows come here, some at a time."""
        digest = hashlib.sha256()
        for _, block in self.blocks():
            digest.update(block.data)
        return f"{self.shape[0]}x{self.shape[1]} {digest.hexdigest()}"


class StoredPool(PoolElsewhere):
    """Rows of a dask array without a cluster: they are read a chunk at a time.

    X : dask array, (n, d), checked.
    """

    def __init__(self, X: Any) -> None:
        self.shape = X.shape
        self._X = X
        self._known: dict[int, Array] = {}
        self._hash = ""
        for low, block in self.blocks():
            good = np.isfinite(block)
            if not good.all():
                i, f = (int(k) for k in np.argwhere(~good)[0])
                raise ValueError(f"`X` must be finite, got {block[i, f]} at index {(low + i, f)}")

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yield the rows, a chunk at a time, each with the number of its first one."""
        low = 0
        for size in self._X.chunks[0]:
            yield low, np.ascontiguousarray(self._X[low : low + size].compute())
            low += size

    def __getitem__(self, rows: Any) -> Array:
        if np.ndim(rows) == 0:
            row = int(rows)
            if row not in self._known:
                self._known[row] = self._X[row].compute()
            return self._known[row]
        index = np.asarray(rows, dtype=np.int64)
        missing = sorted({row for row in index.tolist() if row not in self._known})
        if missing:
            self._known.update(zip(missing, self._X[missing].compute(), strict=True))
        found = [self._known[row] for row in index.tolist()]
        return np.array(found, dtype=np.float64).reshape(len(index), self.shape[1])

    def scaled(self, prior: Prior) -> Array:
        """Return all inputs divided by the length scales, feature by feature: (d, n)."""
        Z = np.empty((self.shape[1], len(self)))
        for low, block in self.blocks():
            Z[:, low : low + len(block)] = prior.scale("X", block)
        return Z

    def column_scales(self) -> tuple[Array, Array]:
        """Return powers of two that fit the columns, and standard deviations over them."""
        most: Array = np.array([largest(block) for _, block in self.blocks()]).max(axis=0)
        unit = units(most)
        n, d = self.shape
        if d == 1:  # no more than the scaled inputs, and in NumPy's order
            column = np.concatenate([block for _, block in self.blocks()])
            one: Array = (column / unit).std(axis=0)
            return unit, one
        total = np.zeros(d)
        for _, block in self.blocks():
            total = add_rows(block, unit, None, total)
        middle, total = total / n, np.zeros(d)
        for _, block in self.blocks():
            total = add_rows(block, unit, middle, total)
        return unit, np.sqrt(total / n)

    def checksum(self) -> str:
        """Return what tells one pool from another, whatever its chunks."""
        if not self._hash:
            hashes, rest = [], np.empty((0, self.shape[1]))
            for _, block in self.blocks():
                rest = np.vstack((rest, block))
                whole = len(rest) // ROWS * ROWS
                hashes.append(block_hashes(rest[:whole]))
                rest = rest[whole:].copy()
            self._hash = blocks_checksum(self.shape, b"".join((*hashes, block_hashes(rest))))
        return self._hash


class MappedPool(StoredPool):
    """Rows of a file that is mapped into memory, and not as doubles one row after the other.

    X : numpy.memmap, (n, d). Doubles in C order need no such thing: they are used as they are.
    """

    has_all = True

    _plain = ""

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yield the rows, some at a time, each time with the number of the first one."""
        for low in range(0, len(self), BLOCK):
            yield low, np.ascontiguousarray(self._X[low : low + BLOCK], dtype=np.float64)

    def __getitem__(self, rows: Any) -> Array:
        return np.array(self._X[rows], dtype=np.float64)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if copy is False:
            raise ValueError("the pool has to be converted: `copy` must not be False")
        return np.ascontiguousarray(self._X, dtype=np.float64 if dtype is None else dtype)

    def checksum(self) -> str:
        """Return that of an array in memory."""
        if not self._plain:
            self._plain = self.plain_checksum()
        return self._plain

    def block_checksum(self) -> str:
        """Return that of a dask array."""
        return super().checksum()


def block_hashes(X: Array) -> bytes:
    """Return one hash per block of rows, one after the other."""
    return b"".join(hashlib.sha256(X[i : i + ROWS].data).digest() for i in range(0, len(X), ROWS))


def blocks_checksum(shape: tuple[int, ...], hashes: bytes) -> str:
    """Return the checksum of a pool by the hashes of its blocks."""
    return f"{shape[0]}x{shape[1]} blocks {hashlib.sha256(hashes).hexdigest()}"


def is_dask_array(X: Any) -> bool:
    """Whether an object is a dask array; nothing is imported for that."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(X, array.Array)


def mapped_pool(X: Any, features: int | None) -> MappedPool | None:
    """Return the rows of a mapped file that would have to be copied; None if X is none, or wrong.

    What is wrong with it, others say.
    """
    if not isinstance(X, np.memmap) or X.dtype.kind not in "fiu":
        return None
    if X.dtype == np.float64 and X.flags.c_contiguous:
        return None
    rows = X[:, None] if X.ndim == 1 else X
    if rows.ndim != 2 or 0 in rows.shape or features not in (None, rows.shape[1]):
        return None
    return MappedPool(rows)


def checked_dask_array(X: Any, features: int | None) -> Any:
    """Check a dask array; return it with the shape (n, d), all features of a row in one chunk."""
    if X.dtype.kind not in "fiu":
        raise TypeError(f"`X` must hold real numbers, got dtype {X.dtype}")
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError(
            "`X` must have chunks of known sizes, got unknown ones: call `X.compute_chunk_sizes()`"
        )
    if X.ndim == 1 and features in (None, 1):
        X = X[:, None]
    if X.ndim != 2 or X.shape[1] == 0 or features not in (None, X.shape[1]):
        wanted = "d" if features is None else features
        raise ValueError(f"`X` must have shape (n, {wanted}), got {X.shape}")
    if len(X) == 0:
        raise ValueError("`X` must have at least one row, got 0")
    return X.astype(np.float64).rechunk({1: -1})
