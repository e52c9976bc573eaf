"""What commands print and write."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fastal._options import short_repr
from fastal.cli.arguments import WIDTH, in_options
from fastal.cli.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from fastal.learning.run import Run


def check_picture(path: str) -> None:
    """Raise now for what would make the picture fail at the end."""
    try:
        from fastal.plotting.style import file_formats

        known = file_formats()
    except ImportError as error:
        raise UserError(f"--plot: {error}") from None
    ending = os.path.splitext(path)[1][1:].lower()
    if ending not in known:
        raise UserError(f"--plot: {short_repr(path)} must end with one of .{', .'.join(known)}")
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or "."):
        raise UserError(f"--plot: {short_repr(path)} is a directory, or in none that exists")


def check_csv(option: str, path: str, table: str) -> None:
    """Raise now for what would make a file fail at the end, or write over the table."""
    folder = os.path.dirname(path) or "."
    if not path or os.path.isdir(path) or not os.path.isdir(folder):
        raise UserError(f"{option}: {short_repr(path)} is a directory, or in none that exists")
    if os.path.exists(path) and os.path.samefile(path, table):
        raise UserError(f"{option}: {short_repr(path)} is the table itself")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise UserError(f"{option}: {short_repr(path)} cannot be written: Permission denied")


LABEL = 18


def write_run(folder: str, record: dict[str, Any], run: Run) -> None:
    """Write run.json and, if matplotlib is there, run.png; say so."""
    import json

    text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    path, picture = os.path.join(folder, "run.json"), os.path.join(folder, "run.png")
    with file_errors("--out", folder):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            from fastal.plotting.run import save_run

            save_run(run, picture)
        except ImportError as error:
            print_entry("written", f"{path}; no picture: {error}")
            return
    print_entry(
        "written",
        f"{path} and {picture}: the bounds, what the rule made of them, and the error after each "
        "label",
    )


def print_entry(label: str, text: str, width: int = LABEL) -> None:
    """Print one labelled entry in lines that can be read."""
    indent = " " * width
    print(
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=label.ljust(width),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def shows_progress(arguments: argparse.Namespace) -> bool:
    """Return whether somebody watches: on a terminal, unless ``--quiet``."""
    return not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()


def print_note(arguments: argparse.Namespace, text: str) -> None:
    """Print what comes next, if somebody watches."""
    if shows_progress(arguments):
        # at once: Ctrl-C may come between a text and the end of its line
        print(f"{text}\n", end="", file=sys.stderr, flush=True)


def study_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a study: runs, seed, threads, and how it shows its progress."""
    return {
        "runs": arguments.runs,
        "seed": arguments.seed,
        "jobs": arguments.jobs or -1,
        "progress": shows_progress(arguments),
        "report": partial(print_note, arguments),
    }


@contextmanager
def warnings_in_words() -> Iterator[None]:
    """Print warnings for the user as entries of the answer, once each, and no others."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [str(warning.message) for warning in caught if warning.category is UserWarning]
    for text in dict.fromkeys(texts):
        print_entry("warning", text)


@contextmanager
def file_errors(option: str, path: str) -> Iterator[None]:
    """Turn what goes wrong with a file into the user's one line."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{option}: {error.filename or path}: {error.strerror}") from None


@contextmanager
def library_errors(file: str | None = None) -> Iterator[None]:
    """Turn what the library refuses into the user's one line, with options for its arguments."""
    from numpy.linalg import LinAlgError

    try:
        yield
    except (ValueError, MemoryError, OSError, ImportError, LinAlgError) as error:
        where = "" if file is None else f"{file}: "
        raise UserError(where + in_options(str(error))) from None


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file over an older one, all of it or nothing.

    Parameters
    ----------
    path : path
        File to write. A link stays one; permissions stay, and are those of any new file else.
    data : bytes
        What it is to hold.
    """
    real = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(
        os.path.splitext(real)[1], ".fastal-", os.path.dirname(real)
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(real))
        os.replace(temporary, real)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise


def _mode(path: str) -> int:
    """Return the permissions of a file, or those that a new one would get."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def write_files(folder: str, files: dict[str, Callable[[str], object]]) -> None:
    """Write files to a folder, and say so."""
    os.makedirs(folder, exist_ok=True)
    for name, write in files.items():
        path = os.path.join(folder, name)
        write(path)
        print(f"written: {path}")
