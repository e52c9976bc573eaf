"""The command ``fastal simulate``: many learning campaigns over the rows of a file.

Only the standard library is imported here; the command imports what it needs when it runs. What
parses options and ends with one line on standard error is `fastal.cli`'s, which calls
`add_simulate`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands

FIT_ROWS = 1000  # of the paper's protocol

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
    from fastal.cli.arguments import _alpha, _count, _threads

    parser = commands.add_parser(
        "simulate",
        help="run many simulated labelling campaigns over the rows of a file",
        description=_DESCRIPTION,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="DATA.csv", help="a table of numbers")
    parser.add_argument(
        "--target", required=True, metavar="COLUMN", help="what to predict: name or number"
    )
    parser.add_argument(
        "--runs", type=_count(1), default=100, metavar="N", help="campaigns (default: 100)"
    )
    parser.add_argument(
        "--pool-size",
        type=_count(1),
        metavar="N",
        help="points in a pool (default: 100, or half of the rows)",
    )
    parser.add_argument(
        "--store",
        metavar="FILE",
        help="keep finished runs in this file; the same command goes on where it was interrupted",
    )
    parser.add_argument(
        "--jobs", type=_threads, default=0, metavar="N", help="threads (default: 0, all cores)"
    )
    parser.add_argument(
        "--seed", type=_count(0), default=0, metavar="N", help="seed of the pools (default: 0)"
    )
    parser.add_argument(
        "--alpha", type=_alpha, default=0.001, help="level of the runs test (default: 0.001)"
    )
    parser.add_argument("--out", metavar="FILE.csv", help="write a table with one line a run")
    parser.set_defaults(run=_simulate, gone=0)


def _simulate(arguments: argparse.Namespace) -> int:
    from fastal.cli.arguments import in_options
    from fastal.cli.errors import _UserError
    from fastal.cli.table import read_table

    try:
        table = read_table(arguments.file, arguments.target)
    except ValueError as error:
        raise _UserError(str(error)) from None

    import numpy as np

    from fastal.models.gp import GaussianProcess
    from fastal.simulation.campaigns import simulate
    from fastal.stopping.stopper import Stopper

    X = (table.X - table.X.mean(axis=0)) / table.X.std(axis=0)
    y = (table.y - table.y.mean()) / table.y.std()
    rows = np.random.default_rng(arguments.seed).permutation(len(y))[:FIT_ROWS]
    gp = GaussianProcess().fit_hyperparameters(X[rows], y[rows], seed=arguments.seed)
    try:
        result = simulate(
            X,
            y,
            gp=gp,
            stopper=Stopper(arguments.alpha),
            n_runs=arguments.runs,
            pool_size=arguments.pool_size,
            seed=arguments.seed,
            n_jobs=arguments.jobs or -1,
            store=arguments.store,
            progress=sys.stderr is not None,
        )
    except (ValueError, MemoryError, OSError) as error:
        raise _UserError(in_options(str(error))) from None
    print(result)
    if arguments.out is not None:
        try:
            result.to_csv(arguments.out)
        except OSError as error:
            raise _UserError(f"--out: {arguments.out}: {error.strerror}") from None
    return 0
