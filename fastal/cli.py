"""The command line: ``fastal COMMAND``.

Exit status: 0 success, 2 wrong use or bad input, with one line on standard error; ``fastal watch``:
0 stop, 3 the input ended without one.

Only the standard library is imported here. A command imports what it needs when it runs, so that
``fastal --help`` answers at once.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from array import array
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from .stopper import Stopper

    Commands = argparse._SubParsersAction["_Parser"]

ALTERNATIVES = ("less", "greater", "two-sided")
METHODS = ("auto", "exact", "normal")

# Arguments of the library that are options here.
OPTIONS = "runs|n_runs|jobs|n_jobs|pool_size|max_labels|seed|horizon|window|min_bounds|patience"

MOST_DIGITS = 18  # more than there will ever be, and no more than the core can count

NO_STOP = 3  # exit status of `watch` when the input ends without a stop


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
        The exit status: 0 success, 2 wrong use or bad input; `watch`: 0 stop, 3 the input ended
        without one.

    Examples
    --------
    >>> from fastal.cli import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    fastal ...
    0
    """
    status = 0
    gone = 0  # status if nobody reads the output
    try:
        try:
            arguments = build_parser().parse_args(argv)
            gone = arguments.gone
            status = arguments.run(arguments)
        except SystemExit:  # --help and --version end so; errors do not
            pass
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a failure can still be answered
    except _UserError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader has what it wanted, as in `fastal ... | head -1`
        _drop_output()
        return gone
    except MemoryError as error:
        return _fail(in_options(str(error)) or "out of memory")
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as in a shell
    except OSError as error:
        _drop_output()
        return _fail(f"cannot write the output: {error.strerror}")
    return status


def _fail(message: str) -> int:
    print("fastal:", " ".join(message.split("\n")), file=sys.stderr)
    return 2


def in_options(text: str) -> str:
    """Return a message about arguments of the library as one about options."""
    names = {"n_runs": "runs", "n_jobs": "jobs"}

    def option(found: re.Match[str]) -> str:
        name = found[1]
        return f"--{names.get(name, name).replace('_', '-')}"

    return re.sub(f"`({OPTIONS})`", option, text)


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
        Parsed arguments carry `run`, the function of the command, and `gone`, the exit status if
        its output is closed early.
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
    from .commands import add_demo, add_run  # not at the top: they use what is defined here
    from .commands_forecast import add_forecast
    from .commands_reproduce import add_compare, add_reproduce
    from .commands_simulate import add_simulate

    add_demo(commands)
    add_run(commands)
    add_forecast(commands)
    add_simulate(commands)
    add_compare(commands)
    add_reproduce(commands)
    _add_runs(commands)
    _add_watch(commands)
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
    parser.set_defaults(run=_runs, gone=0)


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


def _runs(arguments: argparse.Namespace) -> int:
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
    return 0


# fastal watch -----------------------------------------------------------------------------------

_WATCH = """\
Says when to stop labelling. Reads one bound (or divergence) a line and answers after each, until
the decision is to stop; then it ends at once.
"""
_WATCH_END = """\
exit status:
  0    stop: the last line of the output says why
  2    wrong use or bad input, with one line on standard error
  3    the input ended without a stop
  130  interrupted (Ctrl-C)
  141  nobody reads the output any more

Each line of the output has the number of bounds, the last bound, the p-value and the verdict; on a
terminal one line is kept up to date.

examples:
  my_learner | fastal watch && echo stop
  fastal watch --follow bounds.txt
  fastal watch --noise 0.01 --json labels.csv
"""


def _add_watch(commands: Commands) -> None:
    parser = commands.add_parser(
        "watch",
        help="follow the bounds of a labelling campaign and say when to stop",
        description=_WATCH,
        epilog=_WATCH_END,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="one number a line, or with --noise three; blank lines and lines that start with # "
        "are ignored; '-' (the default) is standard input",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="wait for more at the end of FILE, like tail -f",
    )
    parser.add_argument(
        "--noise",
        type=_positive,
        metavar="VARIANCE",
        help="read columns mean, var, y, separated by commas or white space: posterior mean and "
        "variance at the input before its label, and the label; this is the noise variance",
    )
    parser.add_argument(
        "--alpha", type=_alpha, default=0.001, help="level of the runs test (default: 0.001)"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="how the p-value is computed (default: auto, exact up to a million bounds)",
    )
    parser.add_argument(
        "--alternative",
        choices=ALTERNATIVES,
        default="less",
        help="stop on too few runs, too many, or both (default: less)",
    )
    parser.add_argument(
        "--sequential",
        action="store_true",
        help="keep the chance of ever stopping on a random sequence to alpha",
    )
    for option, minimum, default, text in (
        ("--horizon", 2, None, "with --sequential: no stop after N bounds"),
        ("--window", 2, None, "test the last N bounds only"),
        ("--min-bounds", 0, None, "no stop before N bounds"),
        ("--patience", 1, 1, "N rejections in a row stop (default: 1)"),
    ):
        parser.add_argument(option, type=_count(minimum), default=default, metavar="N", help=text)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON lines: n, bound, p_value, n_runs, stop (true, false, or null: too early "
        "to tell) and verdict",
    )
    parser.add_argument(
        "--plot",
        metavar="PICTURE",
        help="write a picture at the end; the ending is the format (needs matplotlib)",
    )
    # 128 + SIGPIPE, as in a shell: 0 would say "stop".
    parser.set_defaults(run=_watch, gone=141)


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
    from ._validation import MOST_THREADS

    return _count(0, MOST_THREADS)(text)


def _watch(arguments: argparse.Namespace) -> int:
    path, picture = arguments.file, arguments.plot
    if arguments.follow and path == "-":
        raise _UserError("--follow needs a FILE; standard input is followed anyway")
    stopper = _stopper(arguments)
    if picture is not None:
        _check_picture(picture)
    typed = path == "-" and sys.stdin is not None and sys.stdin.isatty()
    # A live line and what somebody types would overwrite each other.
    live = not (arguments.json or typed or sys.stdout is None) and sys.stdout.isatty()
    report = _Report(as_json=arguments.json, live=live)
    try:
        _feed(stopper, path, arguments.follow, report)
    except KeyboardInterrupt:
        if picture is not None:
            _save_picture(stopper, picture)
        raise
    finally:
        report.end_line()
    if live:
        _print_end(stopper)
    if picture is not None:
        _save_picture(stopper, picture)
    return 0 if stopper.stopped else NO_STOP


def _stopper(arguments: argparse.Namespace) -> Stopper:
    if arguments.horizon is not None and not arguments.sequential:
        raise _UserError("--horizon needs --sequential")
    if arguments.sequential and (
        arguments.alternative != "less"
        or arguments.window is not None
        or arguments.method == "normal"
    ):
        raise _UserError("--sequential needs --alternative less, an exact method and no --window")

    from .stopper import Stopper

    names = "alpha method alternative sequential horizon window min_bounds patience noise"
    try:
        return Stopper(**{name: getattr(arguments, name) for name in names.split()})
    except ValueError as error:  # an alpha or a horizon beyond the tables
        raise _UserError(in_options(str(error))) from None


def _feed(stopper: Stopper, path: str, follow: bool, report: _Report) -> None:
    """Give the stopper one line after the other until it stops or the input ends."""
    name = _file_name(path)
    what = "One number" if stopper.noise is None else "mean, var, y"
    for number, text in _texts(name, _lines(path, follow, f"{what} a line")):
        where = f"{name}: line {number}"
        if stopper.noise is None:
            bound = _finite(where, text)
            stopper.push(bound)
        else:
            columns = re.split(r"\s*,\s*|\s+", text)
            if len(columns) != 3 or "" in columns:
                raise _UserError(f"{where}: {_short(text)} does not have 3 columns: mean, var, y")
            mean, var, y = (_finite(where, value) for value in columns)
            try:
                stopper.update(mean, var, y)
            except ValueError as error:  # a negative variance, or a bound that overflows
                raise _UserError(f"{where}: {_short(text)}: {error}") from None
            bound = float(stopper.bounds[-1])
        report.show(stopper, bound)
        if stopper.stopped:
            return


class _Report:
    """Prints the state after each bound: JSON lines, plain lines, or one live line."""

    def __init__(self, *, as_json: bool, live: bool) -> None:
        self._json, self._live = as_json, live
        self._width = 0  # of the live line on the screen

    def show(self, stopper: Stopper, bound: float) -> None:
        n, p = len(stopper), stopper.p_value
        stop, verdict = _sentence(stopper, n, p)
        if self._json:
            import json

            fields = {"n": n, "bound": bound, "p_value": p, "n_runs": stopper.n_runs}
            print(json.dumps(fields | {"stop": stop, "verdict": verdict}), flush=True)
            return
        line = f"{n:<5}  {bound:<12.6g}  {p:<8.2g}  {verdict}"
        if not self._live:
            # Flushed, so that a program at the other end of a pipe has the answer at once.
            print(line, flush=True)
            return

        import shutil

        # A full line would make some terminals go to the next one.
        line = line[: shutil.get_terminal_size().columns - 1]
        print("\r" + line.ljust(self._width), end="", flush=True)
        self._width = len(line)

    def end_line(self) -> None:
        """Go to the next line if a live one is on the screen."""
        if self._width:
            self._width = 0
            print(flush=True)


def _sentence(stopper: Stopper, n: int, p: float) -> tuple[bool | None, str]:
    """Return what ``stopper.verdict`` says, without looking at all bounds again on each line."""
    if stopper.stopped:
        return True, str(stopper.verdict)
    stop, reason = stopper._decide(n, stopper.n_runs, math.nan, p, stopper._level)
    return stop, f"{'too early' if stop is None else 'go on'}: {reason}"


def _print_end(stopper: Stopper) -> None:
    verdict = stopper.verdict
    print(verdict)
    for warning in verdict.warnings:
        print(f"warning: {warning}")


def _check_picture(path: str) -> None:
    """Complain now of what would make the picture fail at the end."""
    try:
        from .plot import file_formats

        known = file_formats()
    except ImportError as error:
        raise _UserError(f"--plot: {error}") from None
    ending = os.path.splitext(path)[1][1:].lower()
    if ending not in known:
        raise _UserError(f"--plot: {_short(path)} must end with one of .{', .'.join(known)}")
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or "."):
        raise _UserError(f"--plot: {_short(path)} is a directory, or in none that exists")


def _save_picture(stopper: Stopper, path: str) -> None:
    from .plot import save_stopper

    try:
        save_stopper(stopper, path)
    except OSError as error:
        raise _UserError(f"--plot: {path}: {error.strerror}") from None


# Reading numbers --------------------------------------------------------------------------------


def _file_name(path: str) -> str:
    return "standard input" if path == "-" else path


def _read(path: str) -> array[float]:
    """Read one number a line from a file, or from standard input if the path is ``-``."""
    name = _file_name(path)
    texts = _texts(name, _lines(path, False, "One number a line"))
    return array("d", (_finite(f"{name}: line {number}", text) for number, text in texts))


def _lines(path: str, follow: bool, prompt: str) -> Iterator[bytes]:
    """Yield the lines of a file, or of standard input if the path is ``-``, as they come."""
    name = _file_name(path)
    try:
        if path != "-":
            with open(path, "rb") as file:
                yield from _growing(name, file) if follow else file
            return
        if sys.stdin is None:
            raise _UserError("standard input is closed")
        if sys.stdin.isatty():
            print(f"{prompt}; end with an end-of-file character.", file=sys.stderr)
        yield from sys.stdin.buffer
    except OSError as error:
        raise _UserError(f"{name}: {error.strerror}") from None


def _growing(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Yield lines without end; one without its newline is still being written."""
    import stat
    import time

    line = b""
    while True:
        line += file.readline()
        if line.endswith(b"\n"):
            yield line
            line = b""
            continue
        state = os.fstat(file.fileno())
        if stat.S_ISREG(state.st_mode) and state.st_size < file.tell():
            raise _UserError(f"{name}: the file became shorter")
        time.sleep(0.05)


def _texts(name: str, lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank or a comment."""
    for number, line in enumerate(lines, start=1):
        try:
            # The byte-order mark that some editors put first is no part of the number.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise _UserError(f"{name}: line {number}: not UTF-8 text") from None
        if text and not text.startswith("#"):
            yield number, text


def _finite(where: str, text: str) -> float:
    value = _number(text)
    if value is None:
        raise _UserError(f"{where}: {_short(text)} is not a number")
    if not math.isfinite(value):
        raise _UserError(f"{where}: {_short(text)} is not finite")
    return value


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
