"""fastal run: active learning over a table whose rows all have labels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fastal.cli.arguments import (
    add_alpha,
    add_quiet,
    add_seed,
    integer_argument,
    positive_argument,
    split_columns,
)
from fastal.cli.campaign import Errors, labels_of_pool, learn_past_stop
from fastal.cli.errors import UserError
from fastal.cli.fitted import FIT_ROWS, fit_process, standardise_table
from fastal.cli.output import (
    file_errors,
    library_errors,
    print_entry,
    print_note,
    print_reason,
    shows_progress,
    warnings_in_words,
    write_run,
)

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands
    from fastal.cli.table import Table
    from fastal.learning.run import Run
    from fastal.lookahead.gain import Forecast
    from fastal.models.gp import GaussianProcess

TEST_SHARE = 5  # one row in so many

MIN_TEST = 5


def add_run(commands: Commands) -> None:
    """Add ``fastal run`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "run",
        help="say when labelling your own table could have stopped",
        description="A retrospective answer for a table whose rows all have labels: had they been "
        "labelled by maximum variance, after how many could labelling have stopped, and with what "
        "error? Features and target are standardised; length scale and noise are fitted by "
        f"marginal likelihood, on at most {FIT_ROWS} rows; a fifth of the rows is held out to "
        "state the error.",
        epilog="A column is given by its name or by its number from 1; -1 is the last one.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        metavar="DATA.csv",
        help="text with one row per line, cells separated by commas, semicolons, tabs or white "
        "space, with or without a header",
    )
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    parser.add_argument(
        "--features",
        metavar="A,B,...",
        help="the columns to predict from (default: all others)",
    )
    parser.add_argument(
        "--noise",
        type=positive_argument,
        metavar="VARIANCE",
        help="noise variance of the standardised target, whose variance is 1, instead of a "
        "fitted one; 0.01 says that noise has a tenth of the target's standard deviation",
    )
    add_alpha(parser)
    add_seed(parser, "draws the rows held out and the first label")
    parser.add_argument(
        "--max-labels",
        type=integer_argument(2),
        metavar="N",
        help="most labels (default: the whole pool)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write run.json and the picture run.png there, over older ones",
    )
    add_quiet(parser)
    parser.set_defaults(run=_run, broken_pipe_status=0)


def _run(arguments: argparse.Namespace) -> int:
    from fastal.cli.table import TableError, read_table

    name = arguments.file
    try:
        table = read_table(name, arguments.target, split_columns(arguments.features))
        X, y, y_scale = standardise_table(name, table)
    except TableError as error:
        raise UserError(str(error)) from None

    import numpy as np

    order = np.random.default_rng(arguments.seed).permutation(len(y))
    n_test = max(MIN_TEST, len(y) // TEST_SHARE)
    test, pool = order[:n_test], order[n_test:]
    if arguments.max_labels is not None and arguments.max_labels > len(pool):
        raise UserError(
            f"--max-labels: {arguments.max_labels} is more than the pool of {len(pool)} rows "
            f"({n_test} of {len(y)} are held out)"
        )
    if arguments.out is not None:
        with file_errors("--out", arguments.out):
            os.makedirs(arguments.out, exist_ok=True)

    with warnings_in_words():
        with library_errors(name):
            rows = pool[:FIT_ROWS]
            print_note(arguments, f"fitting the model to {len(rows)} rows ...")
            given = {} if arguments.noise is None else {"noise": arguments.noise}
            gp = fit_process(X[rows], y[rows], **given)
            runs = learn_past_stop(
                X[pool],
                y[pool],
                (X[test], y[test]),
                gp=gp,
                alpha=arguments.alpha,
                seed=arguments.seed,
                max_labels=arguments.max_labels,
                progress=shows_progress(arguments),
            )
            errors = Errors.of(runs, y[test], lambda run: run.gp.predict(X[test]), y_scale)
        ahead = _look_ahead(X[pool], gp, final := runs.last)

    features = "1 feature" if len(table.features) == 1 else f"{len(table.features)} features"
    print_entry(
        "data",
        f"{name}: {len(y)} rows, {features}, target {table.target!r}; a pool of "
        f"{len(pool)} rows, {n_test} held out to test on",
    )
    how = "given" if arguments.noise is not None else "fitted"
    print_entry(
        "model",
        f"length scale {gp.lengthscale:.3g} and noise variance {gp.noise:.3g} ({how}) "
        "for the standardised columns; the fit saw labels that a campaign would not have yet",
    )
    if final.stopped:
        print_entry(
            "answer",
            "Had you labelled by maximum variance, you could have stopped after "
            f"{labels_of_pool(final)}.",
        )
    else:
        print_entry(
            "answer",
            "Had you labelled by maximum variance, you would not have been told to stop "
            f"within {final.n_labels} of {final.n_pool} labels.",
        )
    print_reason(final)
    print_entry(
        "error then" if final.stopped else "error now",
        _error_text(errors.loss_then, errors.rms_then, table.target, runs.first.n_labels),
    )
    if final.stopped:
        print_entry(
            "error now", _error_text(errors.loss_now, errors.rms_now, table.target, final.n_labels)
        )
    if ahead is not None:
        print_entry("forecast", _forecast_text(ahead, len(pool)))
    if arguments.out is not None:
        record = _record(arguments, table, gp, final, errors, pool, test)
        write_run(arguments.out, record, final)
    return 0


def _look_ahead(X: Any, gp: GaussianProcess, run: Run) -> Forecast | None:
    """Return the forecast of the pool, made before its first bound; None if it cannot be made."""
    from fastal.lookahead.gain import forecast

    try:
        return forecast(X, gp, labelled=run.indices[: run.n_initial])
    except ValueError:  # hardly any points, or more duplicates than others
        return None


def _forecast_text(ahead: Forecast, n_pool: int) -> str:
    stop = ahead.labels_for(0.05)
    if stop is None:
        return f"LookAhead(eps=0.05) would not have stopped within {ahead.horizon} labels."
    left = f"{ahead.fraction[stop - 1]:.1%}"
    return (
        f"LookAhead(eps=0.05) would have stopped after {stop} of {n_pool} labels: the rest was "
        f"forecast to buy {left} of what labels after the first buy."
    )


def _error_text(loss: float, rms: float, target: str, labels: int) -> str:
    return (
        f"expected loss {loss:.3g}, root mean square {rms:.4g} in units of {target!r}, with "
        f"{labels} labels"
    )


def _record(
    arguments: argparse.Namespace,
    table: Table,
    gp: GaussianProcess,
    run: Run,
    errors: Errors,
    pool: Any,
    test: Any,
) -> dict[str, Any]:
    """Return what run.json holds."""
    from fastal.stopping.verdict import no_stop_reason

    options = ("file", "target", "features", "noise", "alpha", "seed", "max_labels")
    return {
        "settings": {option: getattr(arguments, option) for option in options},
        "data": {
            "features": list(table.features),
            "target": table.target,
            "n_rows": len(table.y),
            "n_test": len(test),
        },
        "hyperparameters": {
            "lengthscale": gp.lengthscale,
            "noise": gp.noise,
            "amplitude": gp.amplitude,
            "mean": gp.mean,
            "kernel": gp.kernel,
        },
        "results": {
            "stopped": run.stopped,
            "stopped_at": run.stopped_at,
            "n_labels": run.n_labels,
            "n_pool": run.n_pool,
            "savings": run.savings,
            "verdict": str(run.verdict),
            "warnings": list(run.verdict.warnings),
            "no_stop_reason": None if run.stopped else no_stop_reason(run.bounds),
            "expected_loss_then": errors.loss_then,
            "expected_loss_now": errors.loss_now,
            "rmse_then": errors.rms_then,
            "rmse_now": errors.rms_now,
        },
        # The line of the file that has each label, in the order of labelling.
        "lines": table.rows[pool[run.indices]].tolist(),
        "run": run.to_dict(),
    }
