"""fastal compare: the criteria side by side on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastal.cli.commands.reproduce import _add_common, _in_words, _settings, _written

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
    from fastal.cli.arguments import _count

    parser = commands.add_parser(
        "compare",
        help="compare stopping criteria on the rows of a file",
        description=_COMPARE,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="DATA.csv", help="a table of numbers")
    parser.add_argument(
        "--target", required=True, metavar="COLUMN", help="what to predict: name or number"
    )
    parser.add_argument(
        "--pool-size",
        type=_count(2),
        metavar="N",
        help="points in a pool (default: 100, or half of the rows)",
    )
    _add_common(parser, out=None)
    parser.set_defaults(run=_compare, gone=0)


def _compare(arguments: argparse.Namespace) -> int:
    with _in_words():
        from fastal.cli.table import read_table

        table = read_table(arguments.file, arguments.target)

        from fastal.cli.fitted import _standardised
        from fastal.studies.comparison import compare
        from fastal.studies.protocol import fit

        X, y, _ = _standardised(arguments.file, table)
        settings = _settings(arguments)
        settings.pop("tell")("fitting length scale and noise")
        gp = fit(X, y, seed=arguments.seed)
        result = compare(X, y, gp=gp, pool_size=arguments.pool_size, **settings)
        print(result)
        if arguments.out is not None:
            _written(arguments.out, {"compare.csv": result.to_csv})
    return 0
