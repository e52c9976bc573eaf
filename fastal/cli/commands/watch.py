"""fastal watch: follow the bounds of a campaign line by line."""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import TYPE_CHECKING

from fastal.cli.arguments import (
    ALTERNATIVES,
    METHODS,
    _alpha,
    _count,
    _positive,
    _short,
    in_options,
)
from fastal.cli.errors import _UserError
from fastal.cli.output import _check_picture
from fastal.cli.streams import _file_name, _finite, _lines, _texts

if TYPE_CHECKING:
    from fastal.cli.arguments import Commands
    from fastal.stopping.stopper import Stopper

NO_STOP = 3  # exit status of `watch` when the input ends without a stop

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
        "--no-fall",
        dest="fall",
        action="store_false",
        help="stop on a rise of the bounds as well, by the letter of the paper",
    )
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

    from fastal.stopping.stopper import Stopper

    names = "alpha method alternative sequential horizon window min_bounds patience fall noise"
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


def _save_picture(stopper: Stopper, path: str) -> None:
    from fastal.plotting.stopper import save_stopper

    try:
        save_stopper(stopper, path)
    except OSError as error:
        raise _UserError(f"--plot: {path}: {error.strerror}") from None
