"""fastal simulate: many learning campaigns over the rows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastal.cli.arguments import (
    add_alpha,
    add_labelled_table,
    add_pool_size,
    add_quiet,
    add_runs_and_jobs,
    add_seed,
    add_store,
)
from fastal.cli.fitted import draw_fit_rows, fit_process, standardise_table
from fastal.cli.output import file_errors, library_errors, print_note, shows_progress

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands

_DESCRIPTION = """\
How would the stopping rule have done on data like these? Draws many pools from the rows of a file,
labels each by maximum variance, and says where the rule stops and how far that is from where the
error on the other rows had converged. Columns are standardised; length scale and noise are fitted
once, on at most 1,000 rows.
"""


def add_simulate(commands: Commands) -> None:
    """Add ``fastal simulate`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "simulate",
        help="run many simulated campaigns over the rows of a file",
        description=_DESCRIPTION,
        allow_abbrev=False,
    )
    add_labelled_table(parser)
    add_pool_size(parser, 1)
    add_store(parser, "FILE")
    add_runs_and_jobs(parser)
    add_seed(parser, "seed of the pools")
    add_alpha(parser)
    add_quiet(parser)
    parser.add_argument("--out", metavar="FILE.csv", help="write a table with one line per run")
    parser.set_defaults(run=_simulate, broken_pipe_status=0)


def _simulate(arguments: argparse.Namespace) -> int:
    from fastal.cli.table import read_table

    with library_errors():
        table = read_table(arguments.file, arguments.target)
        X, y, _ = standardise_table(arguments.file, table)

    from fastal.simulation.campaigns import simulate
    from fastal.stopping.stopper import Stopper

    rows = draw_fit_rows(len(y), arguments.seed)
    print_note(arguments, f"fitting the model to {len(rows)} rows ...")
    gp = fit_process(X[rows], y[rows], seed=arguments.seed)
    with library_errors():
        result = simulate(
            X,
            y,
            gp=gp,
            criterion=Stopper(arguments.alpha),
            n_runs=arguments.runs,
            pool_size=arguments.pool_size,
            seed=arguments.seed,
            n_jobs=arguments.jobs or -1,
            store=arguments.store,
            progress=shows_progress(arguments),
        )
    print(result)
    if arguments.out is not None:
        with file_errors("--out", arguments.out):
            result.to_csv(arguments.out)
    return 0
