"""The state file of ``fastal next``: one writer at a time, all of it or nothing."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from fastal._options import short_repr
from fastal.cli.errors import UserError
from fastal.cli.output import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastal.cli.sheet import Sheet

KIND, VERSION = "fastal next", 2

KEYS = {
    "target": str,
    "name": (str, type(None)),
    "features": list,
    "columns": list,
    "rows": list,
    "learner": dict,
}

PATIENCE = 60.0  # seconds to wait for another process

POLL = 0.05


class State(NamedTuple):
    """What a state file holds.

    Attributes
    ----------
    target : str
        Column that is predicted.
    name : str or None
        Column with the names of the rows.
    features : list of str
        Columns of the file that are features.
    columns : list of str
        Columns of the pool: features, and categories of text.
    rows : list of str
        Keys of the rows, in the order of the pool.
    learner : dict
        From `ActiveLearner.to_dict`.
    """

    target: str
    name: str | None
    features: list[str]
    columns: list[str]
    rows: list[str]
    learner: dict[str, Any]


def check_state_file(path: str, others: dict[str, str]) -> None:
    """Raise now for what would make the file fail at the end, or write over another one.

    Parameters
    ----------
    path : str
        The state file.
    others : dict
        Option or "the table" to the other files of the command.
    """
    folder = os.path.dirname(path) or "."
    if not path or os.path.isdir(path) or not os.path.isdir(folder):
        raise UserError(f"--state: {short_repr(path)} is a directory, or in none that exists")
    for what, other in others.items():
        if os.path.realpath(path) == os.path.realpath(other):
            raise UserError(f"--state: {short_repr(path)} is {what} as well")
    if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
        raise UserError(f"--state: {short_repr(path)} cannot be written: Permission denied")


@contextmanager
def locked_state(path: str, patience: float = PATIENCE) -> Iterator[None]:
    """Keep other processes from the state file; wait for one that is at work.

    Parameters
    ----------
    path : str
        The state file. The lock is a file beside it, which is gone afterwards.
    patience : float
        Seconds to wait, before a `UserError` says that another process is at work.
    """
    lock = f"{os.path.realpath(path)}.lock"
    end = time.monotonic() + patience
    try:
        while (handle := _try_lock(lock)) is None:
            if time.monotonic() > end:
                raise UserError(
                    f"--state: another process is at work on {path}: try again; if there is none, "
                    f"delete {lock}"
                )
            time.sleep(POLL)
    except OSError as error:
        raise UserError(f"--state: {lock}: {error.strerror}") from None
    try:
        yield
    finally:
        # gone before the lock is: who waits for it sees that, and makes a new one
        with suppress(OSError):
            os.remove(lock)
        os.close(handle)


def _try_lock(lock: str) -> int | None:
    """Return an open file that nobody else has locked; None if somebody has."""
    try:
        import fcntl
    except ImportError:  # no POSIX: whoever makes the file has it
        try:
            return os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        except (FileExistsError, PermissionError):
            return None
    handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = os.stat(lock)
    except (BlockingIOError, FileNotFoundError):
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    mine = os.fstat(handle)
    if (there.st_ino, there.st_dev) == (mine.st_ino, mine.st_dev):
        return handle
    os.close(handle)  # its owner has removed it meanwhile
    return None


def read_state(path: str) -> State | None:
    """Return what a state file holds; None if there is none yet.

    Parameters
    ----------
    path : str
        The file. One that is no state, or of another version, is a `UserError`.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"--state: {path}: {error.strerror}") from None
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise UserError(f"--state: {path} is no state of fastal next; it is left as it is")
    if found.get("version") == 1:
        raise UserError(
            f"--state: {path} was written by fastal 0.1 or 0.2, whose states this version cannot "
            "read: begin anew with another --state FILE, the labels are in the table (--order "
            "COLUMN says in which order they came)"
        )
    if found.get("version") != VERSION:
        raise UserError(
            f"--state: {path} is of version {short_repr(found.get('version'))}, this program knows "
            f"{VERSION}"
        )
    for key, kind in KEYS.items():
        if not isinstance(found.get(key), kind):  # type: ignore[arg-type]
            raise UserError(f"--state: {path} is damaged: {key!r} is missing, or of another type")
    for key in ("features", "columns", "rows"):
        if not all(isinstance(text, str) for text in found[key]):
            raise UserError(f"--state: {path} is damaged: {key!r} must hold texts")
    return State(*(found[key] for key in KEYS))


def write_state(path: str, sheet: Sheet, rows: list[str], learner: dict[str, Any]) -> None:
    """Write a state over an older one, all of it or nothing.

    Parameters
    ----------
    path : str
        The file.
    sheet : Sheet
        The table.
    rows : list of str
        Keys of its rows, in the order of the pool.
    learner : dict
        From `ActiveLearner.to_dict`.
    """
    state = State(
        sheet.target, sheet.name_column, list(sheet.features), list(sheet.columns), rows, learner
    )
    text = json.dumps({"kind": KIND, "version": VERSION, **state._asdict()}, allow_nan=False)
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise UserError(f"--state: {path}: {error.strerror}; it is left as it was") from None


def check_same_campaign(path: str, state: State, sheet: Sheet) -> None:
    """Refuse a state of another target, of other features or of other rows.

    Parameters
    ----------
    path : str
        The state file.
    state : State
        What it holds.
    sheet : Sheet
        The table.
    """
    anew = "begin anew with another --state FILE"
    if state.target != sheet.target:
        raise UserError(
            f"--state: {path} is about the target {short_repr(state.target)}, got "
            f"{short_repr(sheet.target)}: {anew}"
        )
    if state.features != list(sheet.features):
        raise UserError(
            f"--state: {path} is about the features {', '.join(state.features)}, got "
            f"{', '.join(sheet.features)}: choose them with --features, or {anew}"
        )
    if state.name != sheet.name_column:
        raise UserError(
            f"--state: in {path} rows have their names from {short_repr(state.name)}, got "
            f"{short_repr(sheet.name_column)}: choose it with --name, or {anew}"
        )
    here = set(sheet.keys)
    gone = sum(key not in here for key in state.rows)
    if gone == len(state.rows):
        raise UserError(f"--state: {path} is about another table than {sheet.file}: {anew}")
    if gone:
        changed = "1 row" if gone == 1 else f"{gone} rows"
        raise UserError(
            f"--state: {changed} of the {len(state.rows)} that {path} knows are not in "
            f"{sheet.file} any more, or have other features or names: put them back (skip in the "
            f"column {short_repr(sheet.target)} leaves a row out), or {anew}"
        )
