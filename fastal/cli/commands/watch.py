"""fastal watch: follow the bounds of a campaign line by line."""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import TYPE_CHECKING, Any

from fastal._options import METHODS, short_repr
from fastal.cli.arguments import (
    WIDTH,
    RawHelp,
    add_numbers_file,
    add_picture,
    alpha_argument,
    in_options,
    integer_argument,
    positive_argument,
)
from fastal.cli.errors import UserError
from fastal.cli.output import check_picture, file_errors
from fastal.cli.streams import file_name, finite_number, numbered_texts, read_lines

if TYPE_CHECKING:
    from fastal.cli.arguments import Commands
    from fastal.stopping.criterion import Criterion
    from fastal.stopping.still import MovementBelow
    from fastal.stopping.stopper import Stopper
    from fastal.stopping.verdict import Verdict

HORIZON = "how many labels you could buy at most, counted in bounds"

NO_STOP = 3  # exit status of `watch` when the input ends without a stop

_WATCH = """\
Says when to stop labelling. Reads one bound (or divergence) per line and answers after each, until
the decision is to stop; then it ends at once.
"""

_WATCH_END = """\
exit status:
  0    stop: the last line of the output says why
  2    wrong use or bad input, with one line on standard error
  3    the input ended without a stop
  130  interrupted (Ctrl-C)
  141  the reader has closed the output

Each line of the output has the number of bounds, the last bound, the p-value (with --rule still the
share that is still to come) and the verdict; on a terminal one line is kept up to date.

examples:
  my_learner | fastal watch && echo stop
  my_learner | fastal watch --rule still --share 0.05 --horizon 500
  fastal watch --follow bounds.txt
  fastal watch --noise 0.01 --json labels.csv
"""


def add_watch(commands: Commands) -> None:
    """Add ``fastal watch`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "watch",
        help="follow the bounds of a campaign and say when to stop",
        description=_WATCH,
        epilog=_WATCH_END,
        formatter_class=RawHelp,
        allow_abbrev=False,
    )
    add_numbers_file(parser, "one number per line, or with --noise three")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="wait for more at the end of FILE, like tail -f",
    )
    parser.add_argument(
        "--noise",
        type=positive_argument,
        metavar="VARIANCE",
        help="read columns mean, var, y, separated by commas or white space: posterior mean and "
        "variance at the input before its label, and the label; this is the noise variance",
    )
    parser.add_argument(
        "--rule",
        choices=("paper", "still"),
        default="paper",
        help="what decides: the paper's runs test (paper, the default), or how much is still to "
        "come (still), which needs --horizon",
    )
    parser.add_argument(
        "--share",
        type=alpha_argument,
        help="with --rule still: stop when at most this share is still to come (default: 0.05)",
    )
    # None: not given, so that an option of the other rule can be refused.
    parser.add_argument(
        "--alpha", type=alpha_argument, help="level of the runs test (default: 0.001)"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        help="how the p-value is computed (default: auto, exact up to a million bounds)",
    )
    parser.add_argument(
        "--sequential",
        action="store_true",
        default=None,
        help="keep the chance of ever stopping on a random sequence to alpha",
    )
    parser.add_argument(
        "--horizon",
        type=integer_argument(1),
        metavar="N",
        help=f"{HORIZON} (with --sequential: no stop after so many)",
    )
    parser.add_argument(
        "--no-fall",
        dest="fall",
        action="store_false",
        default=None,
        help="stop on a rise of the bounds as well, by the letter of the paper",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON lines: n, bound, p_value and n_runs (with --rule still: left and level, "
        "null where unknown), stop (true, false, or null: too early to tell), verdict, warnings",
    )
    add_picture(parser, "write a picture at the end")
    # 128 + SIGPIPE, as in a shell: 0 would say "stop".
    parser.set_defaults(run=_watch, broken_pipe_status=141)


def _watch(arguments: argparse.Namespace) -> int:
    path, picture = arguments.file, arguments.plot
    if arguments.follow and path == "-":
        raise UserError("--follow needs a FILE; standard input is followed anyway")
    criterion = _criterion(arguments)
    if picture is not None:
        check_picture(picture)
    typed = path == "-" and sys.stdin is not None and sys.stdin.isatty()
    # A live line and what somebody types would overwrite each other.
    live = not (arguments.json or typed or sys.stdout is None) and sys.stdout.isatty()
    report = _Report(as_json=arguments.json, live=live)
    try:
        _feed(criterion, arguments, report)
    except KeyboardInterrupt:
        if picture is not None:
            _save_picture(criterion, picture)
        raise
    finally:
        report.end_line()
    if live:
        _print_end(criterion)
    if picture is not None:
        _save_picture(criterion, picture)
    return 0 if criterion.stopped else NO_STOP


# Options of one rule only; --horizon and --noise are options of both.
OF_PAPER = {
    "alpha": "--alpha",
    "method": "--method",
    "sequential": "--sequential",
    "fall": "--no-fall",
}


def _criterion(arguments: argparse.Namespace) -> Stopper | MovementBelow:
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    if arguments.rule == "still":
        for name, option in OF_PAPER.items():
            if name in given:
                raise UserError(f"{option} belongs to --rule paper, got --rule still")
        if "horizon" not in given:
            raise UserError(f"--rule still needs --horizon N: {HORIZON}")
    else:
        if "share" in given:
            raise UserError(
                f"--share: {arguments.share:g} belongs to --rule still, got --rule paper"
            )
        _check_paper(arguments)

    from inspect import signature

    from fastal.stopping.still import MovementBelow
    from fastal.stopping.stopper import Stopper

    kind = MovementBelow if arguments.rule == "still" else Stopper
    try:
        return kind(**{name: given[name] for name in signature(kind).parameters if name in given})
    except ValueError as error:  # an alpha or a horizon beyond the tables
        raise UserError(in_options(str(error))) from None


def _check_paper(arguments: argparse.Namespace) -> None:
    if arguments.horizon is not None:
        if not arguments.sequential:
            raise UserError("--horizon needs --sequential or --rule still")
        if arguments.horizon < 2:
            raise UserError(
                f"--horizon: must be a whole number of at least 2, got {arguments.horizon}"
            )
    if arguments.sequential and arguments.method == "normal":
        raise UserError("--sequential needs an exact method, got --method normal")


def _feed(criterion: Criterion, arguments: argparse.Namespace, report: _Report) -> None:
    """Give the criterion one line after the other until it stops or the input ends."""
    path, noise = arguments.file, arguments.noise
    name = file_name(path)
    what = "One number" if noise is None else "mean, var, y"
    lines = read_lines(path, arguments.follow, f"{what} per line")
    for number, text in numbered_texts(name, lines):
        where = f"{name}: line {number}"
        bound = finite_number(where, text) if noise is None else _bound(where, text, noise)
        try:
            criterion.push(bound)
        except ValueError:  # of MovementBelow
            raise UserError(
                f"{where}: {short_repr(text)} must not be negative; --rule paper takes it"
            ) from None
        report.show(criterion.verdict, bound)
        if criterion.stopped:
            return


def _bound(where: str, text: str, noise: float) -> float:
    """Return the bound of a label from what the model knew before it."""
    from fastal.bound import gp_kl

    columns = re.split(r"\s*,\s*|\s+", text)
    if len(columns) != 3 or "" in columns:
        raise UserError(f"{where}: {short_repr(text)} does not have 3 columns: mean, var, y")
    mean, var, y = (finite_number(where, value) for value in columns)
    try:
        bound = float(gp_kl(mean, var, y, noise))
    except ValueError as error:  # a negative variance
        raise UserError(f"{where}: {short_repr(text)}: {error}") from None
    if bound == math.inf:
        raise UserError(
            f"{where}: {short_repr(text)}: y is so far from mean that the bound overflows"
        )
    return bound


class _Report:
    """Prints the state after each bound: JSON lines, plain lines, or one live line."""

    def __init__(self, *, as_json: bool, live: bool) -> None:
        self._json, self._live = as_json, live
        self._width = 0  # of the live line on the screen

    def show(self, verdict: Verdict, bound: float) -> None:
        n, sentence = verdict.n, str(verdict)
        still = "share" in verdict.numbers
        if self._json:
            import json

            fields: dict[str, Any] = {"n": n, "bound": bound}
            names = ("left", "level") if still else ("p_value", "n_runs")
            fields |= {name: _or_none(getattr(verdict, name)) for name in names}
            fields |= {"stop": verdict.stop, "verdict": sentence}
            print(json.dumps(fields | {"warnings": list(verdict.warnings)}), flush=True)
            return
        number = verdict.left if still else verdict.p_value
        shown = "-" if math.isnan(number) else f"{number:.2g}"
        line = f"{n:<5}  {bound:<12.6g}  {shown:<8}  {sentence}"
        if not self._live:
            line += "".join(f"; but {warning}" for warning in _unsaid(verdict))
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


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _unsaid(verdict: Verdict) -> list[str]:
    """Return the warnings that the verdict's own sentence does not end with."""
    sentence = str(verdict)
    return [warning for warning in verdict.warnings if warning not in sentence]


def _print_end(criterion: Criterion) -> None:
    """Print the verdict for somebody who reads it on a terminal."""
    import textwrap

    verdict = criterion.verdict
    for text in (str(verdict), *(f"warning: {warning}" for warning in _unsaid(verdict))):
        print(textwrap.fill(text, WIDTH))


def _save_picture(criterion: Stopper | MovementBelow, path: str) -> None:
    from fastal.stopping.stopper import Stopper

    with file_errors("--plot", path):
        if isinstance(criterion, Stopper):
            from fastal.plotting.stopper import save_stopper

            save_stopper(criterion, path)
        else:
            from fastal.plotting.still import save_still

            save_still(criterion, path)
