"""What commands print and write."""

from __future__ import annotations

import os
import sys
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastal.cli.arguments import _short
from fastal.cli.errors import _UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from fastal.learning.run import Run


def _check_picture(path: str) -> None:
    """Complain now of what would make the picture fail at the end."""
    try:
        from fastal.plotting.style import file_formats

        known = file_formats()
    except ImportError as error:
        raise _UserError(f"--plot: {error}") from None
    ending = os.path.splitext(path)[1][1:].lower()
    if ending not in known:
        raise _UserError(f"--plot: {_short(path)} must end with one of .{', .'.join(known)}")
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or "."):
        raise _UserError(f"--plot: {_short(path)} is a directory, or in none that exists")


WIDTH = 100  # of the text

LABEL = 18


def _write(folder: str, record: dict[str, Any], run: Run) -> None:
    import json

    text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    path, picture = os.path.join(folder, "run.json"), os.path.join(folder, "run.png")
    with _file_errors("--out"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            from fastal.plotting.run import save_run

            save_run(run, picture)
        except ImportError as error:
            _say("written", f"{path}; no picture: {error}")
            return
    _say(
        "written",
        f"{path} and {picture}: the bounds with their runs about the median, the "
        "p-value, and the error after each label",
    )


def _say_why(run: Run) -> None:
    verdict = run.verdict
    if run.stopped:
        text = f"{verdict}."
        if not any("rose" in warning for warning in verdict.warnings):
            text += " Bounds that were high have become low: labels no longer move the model as "
            text += "they did."
        _say("why", text)
        for warning in verdict.warnings:
            _say("but", warning)
    else:
        _say("why", f"{verdict}")
        from fastal.stopping.verdict import NO_STOP, no_stop_reason

        reason = no_stop_reason(run.bounds)
        if reason in NO_STOP:
            _say("suggests", f"{reason}. {NO_STOP[reason]}")


def _say(label: str, text: str) -> None:
    """Print one labelled entry, like those of ``fastal runs``, in lines that can be read."""
    indent = " " * LABEL
    print(
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=label.ljust(LABEL),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _on_terminal(arguments: argparse.Namespace) -> bool:
    return not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()


def _note(arguments: argparse.Namespace, text: str) -> None:
    if _on_terminal(arguments):
        print(text, file=sys.stderr, flush=True)


def _shows_progress(arguments: argparse.Namespace) -> bool:
    from importlib.util import find_spec

    return _on_terminal(arguments) and find_spec("tqdm") is not None


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Print warnings for the user as entries of the answer, once each, and no others."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [str(warning.message) for warning in caught if warning.category is UserWarning]
    for text in dict.fromkeys(texts):
        _say("warning", text)


@contextmanager
def _file_errors(option: str) -> Iterator[None]:
    """Turn what goes wrong with a file into the user's one line."""
    from fastal.cli.errors import _UserError

    try:
        yield
    except OSError as error:
        raise _UserError(f"{option}: {error.filename or ''}: {error.strerror}") from None
