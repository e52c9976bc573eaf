"""Types of arguments that several commands take."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING, NoReturn

from fastal.cli.errors import _UserError

if TYPE_CHECKING:
    from collections.abc import Callable


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line, like every other error of this program."""

    def error(self, message: str) -> NoReturn:
        raise _UserError(f"{message} (see {self.prog} --help)")


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[_Parser]


ALTERNATIVES = ("less", "greater", "two-sided")

METHODS = ("auto", "exact", "normal")

# Arguments of the library that are options here.
OPTIONS = "runs|n_runs|jobs|n_jobs|pool_size|max_labels|seed|horizon|window|min_bounds|patience"

MOST_DIGITS = 18  # more than there will ever be, and no more than the core can count


def in_options(text: str) -> str:
    """Return a message about arguments of the library as one about options."""
    names = {"n_runs": "runs", "n_jobs": "jobs"}

    def option(found: re.Match[str]) -> str:
        name = found[1]
        return f"--{names.get(name, name).replace('_', '-')}"

    return re.sub(f"`({OPTIONS})`", option, text)


def _alpha(text: str) -> float:
    value = _number(text)
    if value is None or not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1), got {text!r}")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if value is None or not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def _count(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    def count(text: str) -> int:
        written = re.fullmatch("[0-9]+", text) is not None
        value = int(text) if written and len(text) <= MOST_DIGITS else -1
        if value < minimum or (maximum is not None and value > maximum):
            limits = f"of at least {minimum}" if maximum is None else f"in {minimum}..{maximum}"
            message = f"must be a whole number {limits}, got {_short(text)}"
            if maximum is None and written and value < 0:
                message += f" of more than {MOST_DIGITS} digits"
            raise argparse.ArgumentTypeError(message)
        return value

    return count


def _threads(text: str) -> int:
    from fastal._validation import MOST_THREADS

    return _count(0, MOST_THREADS)(text)


def _number(text: str) -> float | None:
    """Return a float, or None. Unlike `float`, refuse digits that no data file should hold."""
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="show no progress on a terminal")


def _listed(text: str | None) -> list[str] | None:
    """Split a list of columns at its commas; a name with a comma stands in double quotes."""
    if text is None:
        return None
    import csv

    from fastal.cli.errors import _UserError

    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise _UserError(f"--features: {error} in {text!r}") from None
    if not all(name.strip() for name in names) or not names:
        raise _UserError(f"--features: must be columns separated by commas, got {text!r}")
    return names
