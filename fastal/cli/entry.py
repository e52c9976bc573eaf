"""The parser of the whole command line, and the exit status of each ending."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from fastal.cli.arguments import WIDTH, Parser, in_options
from fastal.cli.commands.demo import add_demo
from fastal.cli.commands.next import add_next
from fastal.cli.commands.reproduce import add_reproduce
from fastal.cli.commands.run import add_run
from fastal.cli.commands.simulate import add_simulate
from fastal.cli.commands.watch import add_watch
from fastal.cli.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastal.cli.arguments import Commands


# What `fastal` says without arguments.
FIRST_STEPS = """\
fastal tells an active-learning loop when to stop. What do you have?
  nothing yet                       fastal demo
  a table, some rows have a label   fastal next TABLE --target COLUMN
  a table, all rows have a label    fastal run TABLE --target COLUMN
  a program that makes bounds       PROGRAM | fastal watch
  thousands of campaigns to try     fastal simulate TABLE --target COLUMN
All commands: fastal --help. One of them: fastal next --help.
In Python: from fastal import MovementBelow; help(MovementBelow)"""


class _Version(argparse.Action):
    """Print the version; argparse's own action would look it up on every start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from fastal import __version__

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
        The exit status: 0 success (without arguments it says what to do first), 2 wrong use or bad
        input, 130 interrupted; `watch`: 0 stop, 3 the input ended without one; `next`: 0 stop, 3 go
        on.

    Examples
    --------
    >>> from fastal.cli.entry import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    fastal ...
    0
    """
    status = 0
    broken_pipe_status = 0  # exit status if the reader closes the output
    try:
        try:
            if sys.argv[1:] if argv is None else argv:
                arguments = build_parser().parse_args(argv)
                broken_pipe_status = arguments.broken_pipe_status
                status = arguments.run(arguments)
            else:
                print(FIRST_STEPS)
        except SystemExit:  # --help and --version end so; errors do not
            pass
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a failure can still be answered
    except UserError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader has what it wanted, as in `fastal ... | head -1`
        _drop_output()
        return broken_pipe_status
    except MemoryError as error:
        return _fail(in_options(str(error)) or "out of memory")
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("fastal: interrupted", file=sys.stderr)
        return 130  # 128 + SIGINT, as in a shell
    except OSError as error:
        _drop_output()
        return _fail(f"cannot write the output: {error.strerror}")
    return status


def _fail(message: str) -> int:
    """Print an error: for a program one line, for a person lines that can be read."""
    text = "fastal: " + " ".join(message.split("\n"))
    if sys.stderr is not None and sys.stderr.isatty():
        import textwrap

        text = textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    print(text, file=sys.stderr)
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
        Parsed arguments carry `run`, the function of the command, and `broken_pipe_status`, the
        exit status if its output is closed early.
    """
    parser = Parser(
        prog="fastal",
        description="Tells an active-learning loop when to stop.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-V", "--version", action=_Version, nargs=0, help="show the version of fastal and exit"
    )
    commands: Commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_demo(commands)
    add_run(commands)
    add_next(commands)
    add_simulate(commands)
    add_reproduce(commands)
    add_watch(commands)
    return parser
