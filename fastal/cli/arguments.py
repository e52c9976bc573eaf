"""Types of arguments that several commands take."""

from __future__ import annotations

import argparse
import math
import re
import shutil
from typing import TYPE_CHECKING, Any, NoReturn

from fastal._options import MOST_THREADS, short_repr
from fastal.cli.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable


WIDTH = 100  # of what people read, however wide their terminal is


class Help(argparse.HelpFormatter):
    """Help that can be read on a wide terminal."""

    def __init__(self, prog: str, **settings: Any) -> None:
        columns = shutil.get_terminal_size().columns - 2  # as argparse itself would take
        super().__init__(prog, **{"width": min(columns, WIDTH), **settings})


class RawHelp(argparse.RawDescriptionHelpFormatter, Help):
    """The same where description and end keep their lines."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line, like every other error of this program."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": Help, **settings})

    def error(self, message: str) -> NoReturn:
        """Raise what the user gets to see."""
        raise UserError(f"{message} (see {self.prog} --help)")


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]

# Arguments of the library that are options here.
OPTIONS = "runs|n_runs|jobs|n_jobs|pool_size|max_labels|seed|horizon"

MOST_DIGITS = 18  # more than there will ever be, and no more than the core can count


def in_options(text: str) -> str:
    """Return a message about arguments of the library as one about options."""
    names = {"n_runs": "runs", "n_jobs": "jobs"}

    def option(found: re.Match[str]) -> str:
        name = found[1]
        return f"--{names.get(name, name).replace('_', '-')}"

    return re.sub(f"`({OPTIONS})`", option, text)


def alpha_argument(text: str) -> float:
    """Parse a number in (0, 1)."""
    value = parse_number(text)
    if value is None or not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1), got {text!r}")
    return value


def share_list(text: str) -> list[float]:
    """Parse shares in (0, 1), separated by commas; one that repeats counts once."""
    shares = [parse_number(part.strip()) for part in text.split(",")]
    found = [share for share in shares if share is not None and 0 < share < 1]
    if len(found) < len(shares):
        raise argparse.ArgumentTypeError(
            f"must be shares in (0, 1) separated by commas, got {short_repr(text)}"
        )
    return list(dict.fromkeys(found))


def positive_argument(text: str) -> float:
    """Parse a positive, finite number."""
    value = parse_number(text)
    if value is None or not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def integer_argument(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers between limits."""

    def count(text: str) -> int:
        written = re.fullmatch("[0-9]+", text) is not None
        value = int(text) if written and len(text) <= MOST_DIGITS else -1
        if value < minimum or (maximum is not None and value > maximum):
            limits = f"of at least {minimum}" if maximum is None else f"in {minimum}..{maximum}"
            message = f"must be a whole number {limits}, got {short_repr(text)}"
            if maximum is None and written and value < 0:
                message += f" of more than {MOST_DIGITS} digits"
            raise argparse.ArgumentTypeError(message)
        return value

    return count


def threads_argument(text: str) -> int:
    """Parse a number of threads; 0 is all cores."""
    return integer_argument(0, MOST_THREADS)(text)


def parse_number(text: str) -> float | None:
    """Return a float, or None. Unlike `float`, refuse digits that no data file should hold."""
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def add_store(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--store``: a file or a folder (`what`) for what is finished."""
    parser.add_argument(
        "--store",
        metavar=what,
        help="keep finished runs there; the same command goes on where it was interrupted",
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add ``--quiet``."""
    parser.add_argument("--quiet", action="store_true", help="show no progress on a terminal")


def add_alpha(parser: argparse.ArgumentParser, what: str = "level of the runs test") -> None:
    """Add ``--alpha``."""
    parser.add_argument(
        "--alpha", type=alpha_argument, default=0.001, help=f"{what} (default: 0.001)"
    )


def add_seed(parser: argparse.ArgumentParser, what: str, default: int = 0) -> None:
    """Add ``--seed``."""
    parser.add_argument(
        "--seed",
        type=integer_argument(0),
        default=default,
        metavar="N",
        help=f"{what} (default: {default})",
    )


def add_runs_and_jobs(parser: argparse.ArgumentParser, runs: int = 100) -> None:
    """Add ``--runs`` and ``--jobs``, of commands that simulate."""
    parser.add_argument(
        "--runs",
        type=integer_argument(1),
        default=runs,
        metavar="N",
        help=f"campaigns (default: {runs})",
    )
    parser.add_argument(
        "--jobs",
        type=threads_argument,
        default=0,
        metavar="N",
        help="threads (default: 0, all cores); they do not change results",
    )


def add_pool_size(parser: argparse.ArgumentParser, minimum: int) -> None:
    """Add ``--pool-size``."""
    parser.add_argument(
        "--pool-size",
        type=integer_argument(minimum),
        metavar="N",
        help="points in a pool (default: 100, or half of the rows)",
    )


def add_labelled_table(parser: argparse.ArgumentParser) -> None:
    """Add ``DATA.csv`` and ``--target``, of commands over a table whose rows all have labels."""
    parser.add_argument("file", metavar="DATA.csv", help="a table of numbers")
    parser.add_argument(
        "--target", required=True, metavar="COLUMN", help="what to predict: name or number"
    )


def add_study_options(parser: argparse.ArgumentParser, out: str | None, runs: int = 100) -> None:
    """Add what all studies take; `out` is the folder that files go to by default."""
    add_runs_and_jobs(parser, runs)
    add_seed(parser, "seed of all that is random")
    parser.add_argument(
        "--out",
        default=out,
        metavar="DIR",
        help="folder to write files to, made if need be"
        + (" (default: this one)" if out else " (default: none are written)"),
    )
    add_quiet(parser)


def add_picture(parser: argparse.ArgumentParser, what: str = "write a picture") -> None:
    """Add ``--plot``."""
    parser.add_argument(
        "--plot", metavar="PICTURE", help=f"{what}; the ending is the format (needs matplotlib)"
    )


def add_numbers_file(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``FILE``, of commands that read numbers line by line."""
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help=f"{what}; blank lines and lines that start with # are ignored; '-' (the default) is "
        "standard input",
    )


def split_columns(text: str | None) -> list[str] | None:
    """Split a list of columns at its commas; a name with a comma stands in double quotes."""
    if text is None:
        return None
    import csv

    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UserError(f"--features: {error} in {text!r}") from None
    if not all(name.strip() for name in names) or not names:
        raise UserError(f"--features: must be columns separated by commas, got {text!r}")
    return names
