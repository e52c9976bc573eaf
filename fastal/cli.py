"""The command line: ``fastal COMMAND``.

Exit status: 0 success, 2 wrong use or bad input, with one line on standard error.

Only the standard library is imported here. A command imports what it needs when it runs, so that
``fastal --help`` answers at once.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from array import array
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Commands = argparse._SubParsersAction["_Parser"]

ALTERNATIVES = ("less", "greater", "two-sided")


class _UserError(Exception):
    """Wrong use or bad input: the message is all that the user gets to see."""


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line, like every other error of this program."""

    def error(self, message: str) -> NoReturn:
        raise _UserError(f"{message} (see {self.prog} --help)")


class _Version(argparse.Action):
    """Print the version; argparse's own action would look it up on every start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from . import __version__

        print(f"fastal {__version__}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; by default those of this process.

    Returns
    -------
    int
        The exit status: 0 success, 2 wrong use or bad input.

    Examples
    --------
    >>> from fastal.cli import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    fastal ...
    0
    """
    try:
        try:
            arguments = build_parser().parse_args(argv)
            arguments.run(arguments)
        except SystemExit:  # --help and --version end so; errors do not
            pass
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a failure can still be answered
    except _UserError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader has what it wanted, as in `fastal ... | head -1`
        _drop_output()
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as in a shell
    except OSError as error:
        _drop_output()
        return _fail(f"cannot write the output: {error.strerror}")
    return 0


def _fail(message: str) -> int:
    print("fastal:", " ".join(message.split("\n")), file=sys.stderr)
    return 2


def _drop_output() -> None:
    """Send what is left in the buffer nowhere, or the interpreter fails on it when it exits."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line.

    Returns
    -------
    argparse.ArgumentParser
        Parsed arguments carry `run`, the function of the command.
    """
    parser = _Parser(
        prog="fastal",
        description="Tells an active-learning loop when to stop.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show the version of fastal and exit"
    )
    commands: Commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_runs(commands)
    return parser


# fastal runs ------------------------------------------------------------------------------------


def _add_runs(commands: Commands) -> None:
    parser = commands.add_parser(
        "runs",
        help="test whether a sequence of numbers is in random order",
        description="Wald-Wolfowitz runs test of a sequence of numbers about a cutoff. Too few "
        "runs mean that high and low values keep together, as after a shift of level.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="one number a line; blank lines and lines that start with # are ignored; "
        "'-' (the default) is standard input",
    )
    parser.add_argument(
        "--cutoff",
        type=_cutoff,
        default="median",
        metavar="{median,mean,NUMBER}",
        help="what divides below from above; equal values count as above (default: median)",
    )
    parser.add_argument(
        "--alternative",
        choices=ALTERNATIVES,
        default="less",
        help="reject for too few runs, too many, or both (default: less, the stopping rule's)",
    )
    parser.add_argument(
        "--alpha",
        type=_alpha,
        default=0.001,
        help="reject when the exact p-value is at most this (default: 0.001)",
    )
    parser.set_defaults(run=_runs)


def _cutoff(text: str) -> str | float:
    if text in ("median", "mean"):
        return text
    value = _number(text)
    if value is None or not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be median, mean or a finite number, got {text!r}")
    return value


def _alpha(text: str) -> float:
    value = _number(text)
    if value is None or not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be in (0, 1), got {text!r}")
    return value


def _runs(arguments: argparse.Namespace) -> None:
    values = _read(arguments.file)
    if len(values) < 2:
        name = _file_name(arguments.file)
        raise _UserError(f"{name}: the runs test needs at least two values, got {len(values)}")

    import numpy as np

    from .runs import RunsDistribution, runs_test

    x = np.asarray(values)
    exact, normal = (
        runs_test(x, cutoff=arguments.cutoff, alternative=arguments.alternative, method=method)
        for method in ("exact", "normal")
    )
    below, above, runs, p = exact.n_below, exact.n_above, exact.n_runs, exact.pvalue
    expected = RunsDistribution(below, above).mean()
    cutoff = f"{exact.cutoff:.6g}"
    if isinstance(arguments.cutoff, str):
        cutoff = f"the {arguments.cutoff} {cutoff}"
    print(f"values            {len(x)}: {below} below, {above} at or above {cutoff}")
    print(f"runs              {runs}, expected {expected:.6g}")
    print(f"p-value (exact)   {p:.6g} ({arguments.alternative})")
    print(f"p-value (normal)  {normal.pvalue:.6g} ({arguments.alternative})")
    if below == 0 or above == 0:
        verdict = "All values are on one side of the cutoff: there is no order to test."
    elif not p <= arguments.alpha:
        verdict = f"No sign against random order at alpha = {arguments.alpha:g}."
    elif runs < expected:
        verdict = f"Too few runs for random order at alpha = {arguments.alpha:g}: "
        verdict += "high and low values keep together."
    else:
        verdict = f"Too many runs for random order at alpha = {arguments.alpha:g}: "
        verdict += "high and low values alternate."
    print(f"verdict           {verdict}")


# Reading numbers --------------------------------------------------------------------------------


def _file_name(path: str) -> str:
    return "standard input" if path == "-" else path


def _read(path: str) -> array[float]:
    """Read one number a line from a file, or from standard input if the path is ``-``."""
    name = _file_name(path)
    try:
        if path != "-":
            with open(path, "rb") as file:
                return _parse(name, file)
        if sys.stdin is None:
            raise _UserError("standard input is closed")
        if sys.stdin.isatty():
            print("One number a line; end with an end-of-file character.", file=sys.stderr)
        return _parse(name, sys.stdin.buffer)
    except OSError as error:
        raise _UserError(f"{name}: {error.strerror}") from None


def _parse(name: str, lines: Iterable[bytes]) -> array[float]:
    """Turn lines into numbers; the first bad one is an error that names it."""
    values = array("d")
    for number, line in enumerate(lines, start=1):
        try:
            # The byte-order mark that some editors put first is no part of the number.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise _UserError(f"{name}: line {number}: not UTF-8 text") from None
        if not text or text.startswith("#"):
            continue
        value = _number(text)
        if value is None:
            raise _UserError(f"{name}: line {number}: {_short(text)} is not a number")
        if not math.isfinite(value):
            raise _UserError(f"{name}: line {number}: {_short(text)} is not finite")
        values.append(value)
    return values


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
