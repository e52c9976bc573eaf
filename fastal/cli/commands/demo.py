"""fastal demo: the artificial model of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastal.cli.arguments import add_alpha, add_picture, add_quiet, add_seed, integer_argument
from fastal.cli.campaign import Errors, labels_of_pool, learn_past_stop
from fastal.cli.output import (
    check_picture,
    file_errors,
    print_entry,
    print_reason,
    shows_progress,
    warnings_in_words,
)

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands
    from fastal.learning.run import Run

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
        help="see active learning stop, on the artificial model of the paper",
        description="Active learning on the artificial model of the paper: labels a pool of points "
        "by maximum variance until the bounds say stop, and shows what the other labels would "
        "have changed. Nothing is needed, and nothing is written without --plot.",
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
    add_alpha(parser)
    add_picture(parser)
    add_quiet(parser)
    parser.set_defaults(run=_demo, broken_pipe_status=0)


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.plot is not None:
        check_picture(arguments.plot)

    import numpy as np

    from fastal.datasets import HIGH, LOW, artificial, artificial_mean
    from fastal.models.gp import GaussianProcess
    from fastal.reference.models import dense_posterior

    X, y = artificial(DEMO_POINTS)
    order = np.random.default_rng(arguments.seed).permutation(DEMO_POINTS)
    pool, rest = order[: arguments.labels], order[arguments.labels :]
    gp = GaussianProcess(lengthscale=DEMO_LENGTHSCALE, noise=DEMO_NOISE)
    with warnings_in_words():
        runs = learn_past_stop(
            X[pool],
            y[pool],
            (X[rest], y[rest]),
            gp=gp,
            alpha=arguments.alpha,
            seed=arguments.seed,
            max_labels=None,
            progress=shows_progress(arguments),
        )

    def predict(run: Run) -> Any:
        used = pool[run.indices]
        return dense_posterior(gp, X[used], y[used], X[rest])[0]

    errors = Errors.of(runs, y[rest], predict)
    final = runs.last

    print_entry(
        "data",
        f"the artificial model of the paper: a pool of {final.n_pool} points, "
        f"{len(rest)} others to test on",
    )
    if final.stopped:
        print_entry("labels used", labels_of_pool(final))
    else:
        print_entry("labels used", f"all {final.n_labels}: there was no stop")
    print_reason(final)
    where = "at the stop" if final.stopped else "at the end"
    print_entry(
        f"error {where}",
        f"expected loss {errors.loss_then:.3g}, root mean square "
        f"{errors.rms_then:.3g} (the noise alone: 0.05)",
    )
    if final.stopped:
        print_entry(
            "error at the end",
            f"expected loss {errors.loss_now:.3g}, root mean square "
            f"{errors.rms_now:.3g} with all {final.n_labels} labels",
        )
    if arguments.plot is not None:
        from fastal.plotting.demo import save_demo

        grid = np.linspace(LOW, HIGH, 500)
        with file_errors("--plot", arguments.plot):
            save_demo(final, X[pool], y[pool], grid, artificial_mean(grid), arguments.plot)
        print_entry(
            "picture",
            f"{arguments.plot}: the model {where} with its data; the bounds with their "
            "runs about the median, and the p-value; the error after each label",
        )
    else:
        print_entry(
            "picture",
            "none; --plot demo.png draws the model, the bounds, the p-value and the error",
        )
    return 0
