"""fastal compare: the criteria side by side on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastal.cli.arguments import (
    add_labelled_table,
    add_pool_size,
    add_store,
    add_study_options,
)
from fastal.cli.criterion import load_criterion
from fastal.cli.fitted import standardise_table
from fastal.cli.output import library_errors, study_settings, write_files

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands

_COMPARE = """\
Which criterion would have stopped where on data like these? Draws many pools from the rows of a
file, labels each by maximum variance, and compares where the criteria of the paper stop with where
the error on the other rows had converged. Columns are standardised; length scale and noise are
fitted once, on at most 1,000 rows.
"""


def add_compare(commands: Commands) -> None:
    """Add ``fastal compare`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "compare",
        help="compare stopping criteria on the rows of a file",
        description=_COMPARE,
        allow_abbrev=False,
    )
    add_labelled_table(parser)
    add_pool_size(parser, 2)
    parser.add_argument(
        "--criterion",
        action="append",
        default=[],
        metavar="FILE.py:NAME",
        help="also compare a criterion of your own: an object of a Python file, or of a module as "
        "MODULE:NAME; may be given several times",
    )
    add_store(parser, "DIR")
    add_study_options(parser, out=None)
    parser.set_defaults(run=_compare, broken_pipe_status=0)


def _compare(arguments: argparse.Namespace) -> int:
    own = {}
    for text in arguments.criterion:
        name = text.rpartition(":")[2]
        own[text if name in own else name] = load_criterion(text)
    with library_errors():
        from fastal.cli.table import read_table

        table = read_table(arguments.file, arguments.target)

        from fastal.studies.comparison import compare
        from fastal.studies.protocol import fit

        X, y, _ = standardise_table(arguments.file, table)
        settings = study_settings(arguments)
        settings.pop("report")("fitting length scale and noise")
        gp = fit(X, y, seed=arguments.seed)
        result = compare(
            X, y, gp=gp, pool_size=arguments.pool_size, criteria=own, store=arguments.store,
            **settings,
        )  # fmt: skip
        print(result)
        if arguments.out is not None:
            write_files(arguments.out, {"compare.csv": result.to_csv})
    return 0
