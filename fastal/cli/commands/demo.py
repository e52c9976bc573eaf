"""fastal demo: the artificial model of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastal.cli.arguments import add_picture, add_quiet, add_seed, integer_argument
from fastal.cli.campaign import (
    add_rule,
    chosen_shares,
    print_answer,
    print_outcomes,
    run_campaign,
)
from fastal.cli.output import (
    check_picture,
    file_errors,
    library_errors,
    print_entry,
    shows_progress,
    warnings_in_words,
)

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands

# Hyper-parameters of the demonstration. They are what
#     X, y = artificial()
#     GaussianProcess().fit_hyperparameters(X[:300], y[:300])
# gives: 300 points, as in the paper's experiment on this model.
DEMO_LENGTHSCALE = 1.4903605

DEMO_NOISE = 0.0026735210

DEMO_POINTS = 2000

DEMO_POOL = 50

# Not 0: the pool that 0 draws has no point in the last 2.9 units of x (others: gaps below 2), and
# its last error is that of the gap.
DEMO_SEED = 1


def add_demo(commands: Commands) -> None:
    """Add ``fastal demo`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "demo",
        help="see active learning stop, on the paper's artificial model",
        description="Active learning on the artificial model of the paper: labels a pool of points "
        "by maximum variance until little is still to come, and shows what the other labels "
        "would have changed, and where the paper's rule stops. Nothing is needed, and nothing is "
        "written without --plot.",
        allow_abbrev=False,
    )
    add_seed(parser, "draws the pool and the first label", DEMO_SEED)
    parser.add_argument(
        "--labels",
        type=integer_argument(2, DEMO_POINTS // 2),
        default=DEMO_POOL,
        metavar="N",
        help=f"size of the pool, the labels to be had (default: {DEMO_POOL})",
    )
    add_rule(parser)
    add_picture(parser)
    add_quiet(parser)
    parser.set_defaults(run=_demo, broken_pipe_status=0)


def _demo(arguments: argparse.Namespace) -> int:
    chosen_shares(arguments)
    if arguments.plot is not None:
        check_picture(arguments.plot)

    import numpy as np

    from fastal.datasets import HIGH, LOW, artificial, artificial_mean
    from fastal.models.gp import GaussianProcess

    X, y = artificial(DEMO_POINTS)
    order = np.random.default_rng(arguments.seed).permutation(DEMO_POINTS)
    pool, rest = order[: arguments.labels], order[arguments.labels :]
    gp = GaussianProcess(lengthscale=DEMO_LENGTHSCALE, noise=DEMO_NOISE)
    with warnings_in_words():
        with library_errors():
            campaign = run_campaign(
                X[pool],
                y[pool],
                (X[rest], y[rest]),
                gp=gp,
                arguments=arguments,
                max_labels=None,
                progress=shows_progress(arguments),
            )
        print_answer(campaign, "labelling by maximum variance")
    final = campaign.run
    print_entry(
        "data",
        f"the artificial model of the paper: a pool of {final.n_pool} points, "
        f"{len(rest)} others to test on",
    )
    print_outcomes(campaign, "on the others (the noise alone: 0.05)")
    where = "at the stop" if campaign.chosen.early else "at the end"
    if arguments.plot is not None:
        from fastal.plotting.demo import save_demo

        grid = np.linspace(LOW, HIGH, 500)
        with file_errors("--plot", arguments.plot):
            save_demo(final, X[pool], y[pool], grid, artificial_mean(grid), arguments.plot)
        print_entry(
            "picture",
            f"{arguments.plot}: the model {where} with its data, the bounds and what the rule "
            "made of them, the error after each label",
        )
    else:
        print_entry(
            "picture",
            "none; --plot demo.png draws the model, the bounds, what the rule made of them and "
            "the error",
        )
    return 0
