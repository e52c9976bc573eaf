"""Finished chunks in SQLite: killed at any moment, a simulation goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastal import _validation as check

if TYPE_CHECKING:
    from fastal.simulation.chunk import Chunk

FORMAT = 4

# "fast" in ASCII: tells this kind of file from other SQLite files.
APPLICATION = 0x66617374

# Seconds to wait for another process that is writing.
PATIENCE = 60.0

_TABLES = """
CREATE TABLE settings (format INTEGER NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, digest BLOB NOT NULL, data BLOB NOT NULL);
"""


class Store:
    """An open file; `settings` are plain values that decide what the runs compute."""

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self.path = os.fspath(path)
        if not isinstance(self.path, str) or not self.path:
            raise TypeError(f"`store` must be the name of a file, got {check.short_repr(path)}")
        folder = os.path.dirname(os.path.abspath(self.path))
        if os.path.isdir(self.path) or not os.path.isdir(folder):
            raise ValueError(
                f"`store` must be a file in a directory that exists, got {self.path!r}"
            )
        self._settings = settings
        # Closing a connection in the middle of another thread's statement crashes Python; a second
        # Ctrl-C, which does not wait for that thread, would do it.
        self._busy = threading.Lock()
        self._text = json.dumps(settings, sort_keys=True)
        # Read first: what is not ours is not touched. (A journal that a killed process left behind
        # is rolled back by SQLite itself.)
        uri = Path(os.path.abspath(self.path)).as_uri()
        try:
            self._file = sqlite3.connect(
                f"{uri}?mode=rwc",
                uri=True,
                timeout=PATIENCE,
                isolation_level=None,
                check_same_thread=False,  # one thread reads, then another one writes
            )
        except sqlite3.Error as error:
            raise OSError(f"`store` {self.path!r} cannot be opened: {error}") from None
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        try:
            # An empty file is a new one: a process killed in its first moment leaves one.
            if os.path.getsize(self.path) > 0 and not self._is_blank():
                self._check()
                return
        except sqlite3.OperationalError as error:
            raise OSError(f"`store` {self.path!r} cannot be read: {error}") from None
        except sqlite3.DatabaseError as error:
            raise ValueError(f"`store` {self.path!r} is damaged or no store: {error}") from None
        try:
            self._file.execute("PRAGMA page_size=16384")  # a chunk has some hundred kilobytes
            self._file.execute("PRAGMA synchronous=FULL")
            self._file.execute("BEGIN IMMEDIATE")
            if self._is_blank():  # another process may have been faster
                for statement in _TABLES.strip().split("\n"):
                    self._file.execute(statement)
                self._file.execute(
                    "INSERT INTO settings VALUES (?, ?, ?)", (FORMAT, self._digest(), self._text)
                )
                self._file.execute(f"PRAGMA application_id={APPLICATION}")
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._cannot_write(error) from None
        self._check()

    def _is_blank(self) -> bool:
        return bool(self._file.execute("PRAGMA schema_version").fetchone()[0] == 0)

    def _digest(self) -> str:
        return hashlib.sha256(self._text.encode()).hexdigest()

    def _check(self) -> None:
        """Raise if the file is none of ours, damaged, or of other settings; write nothing."""
        self._file.execute("PRAGMA synchronous=FULL")
        application = self._file.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION:
            raise ValueError(f"`store` {self.path!r} is an SQLite file, but no store of fastal")
        found = self._file.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise ValueError(f"`store` {self.path!r} is damaged: {found}")
        rows = self._file.execute("SELECT format, digest, text FROM settings").fetchall()
        if len(rows) != 1:
            raise ValueError(f"`store` {self.path!r} is damaged: it has no settings")
        version, digest, text = rows[0]
        if version != FORMAT:
            raise ValueError(
                f"`store` {self.path!r} has format {version}, this version of fastal reads and "
                f"writes format {FORMAT}: use another file"
            )
        if digest != hashlib.sha256(str(text).encode()).hexdigest():
            raise ValueError(
                f"`store` {self.path!r} is damaged: the settings do not fit their hash"
            )
        if digest != self._digest():
            raise ValueError(
                f"`store` {self.path!r} belongs to other settings: {self._difference(text)}"
            )

    def _difference(self, text: str) -> str:
        there = json.loads(text)
        names = sorted(
            name
            for name in there.keys() | self._settings.keys()
            if there.get(name) != json.loads(self._text).get(name)
        )
        return "; ".join(
            f"{name} is {check.short_repr(there.get(name))} there, "
            f"{check.short_repr(self._settings.get(name))} here"
            for name in names
        )

    def chunks(self) -> Iterator[bytes]:
        """Yield the stored chunks; raise if one is damaged."""
        try:
            for number, digest, data in self._file.execute("SELECT id, digest, data FROM chunks"):
                if hashlib.sha256(data).digest() != digest:
                    raise ValueError(
                        f"`store` {self.path!r} is damaged: chunk {number} does not fit its hash"
                    )
                yield data
        except sqlite3.DatabaseError as error:
            raise ValueError(f"`store` {self.path!r} is damaged: {error}") from None

    def add(self, data: bytes) -> None:
        """Commit one chunk."""
        digest = hashlib.sha256(data).digest()
        with self._busy:
            try:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.execute(
                    "INSERT INTO chunks (digest, data) VALUES (?, ?)", (digest, data)
                )
                self._file.execute("COMMIT")
            except sqlite3.Error as error:
                try:
                    if self._file.in_transaction:
                        self._file.execute("ROLLBACK")
                except sqlite3.Error:
                    pass  # what was committed is safe; the next process rolls the rest back
                raise self._cannot_write(error) from None

    def _cannot_write(self, error: sqlite3.Error) -> OSError:
        return OSError(
            f"`store` {self.path!r} cannot be written: {error}; what was committed is kept"
        )

    def close(self) -> None:
        """Close the file, once a commit under way is done."""
        with self._busy:
            self._file.close()


def count_runs(path: str | os.PathLike[str]) -> int:
    """Return how many finished runs a store has; 0 for what is no store, or not there yet."""
    from fastal.simulation.chunk import Chunk

    if not os.path.isfile(path):
        return 0
    uri = Path(os.path.abspath(path)).as_uri()
    try:
        with closing(sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=PATIENCE)) as file:
            packed = file.execute("SELECT data FROM chunks").fetchall()
        return len({run for (data,) in packed for run in Chunk.unpack(data).runs.tolist()})
    except (sqlite3.Error, ValueError):
        return 0


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
