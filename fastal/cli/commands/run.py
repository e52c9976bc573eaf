"""fastal run: active learning over a table whose rows all have labels."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from fastal.cli.arguments import _add_quiet, _listed
from fastal.cli.fitted import _fitted, _standardised
from fastal.cli.output import (
    _file_errors,
    _note,
    _say,
    _say_why,
    _shows_progress,
    _warnings_in_words,
    _write,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from fastal.cli.arguments import Commands
    from fastal.cli.table import Table
    from fastal.learning.run import Run
    from fastal.lookahead.gain import Forecast
    from fastal.models.gp import GaussianProcess

FIT_ROWS = 1000  # of the paper's protocol

TEST_SHARE = 5  # one row in so many

MIN_TEST = 5


def add_run(commands: Commands) -> None:
    """Add ``fastal run`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    from fastal.cli.arguments import _alpha, _count, _positive

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
        help="text with one row a line, cells separated by commas, semicolons, tabs or white "
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
        type=_positive,
        metavar="VARIANCE",
        help="noise variance of the standardised target, whose variance is 1, instead of a "
        "fitted one; 0.01 says that noise has a tenth of the target's standard deviation",
    )
    parser.add_argument(
        "--alpha", type=_alpha, default=0.001, help="level of the runs test (default: 0.001)"
    )
    parser.add_argument(
        "--seed",
        type=_count(0),
        default=0,
        metavar="N",
        help="draws the rows held out and the first label (default: 0)",
    )
    parser.add_argument(
        "--max-labels", type=_count(2), metavar="N", help="most labels (default: the whole pool)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write run.json and the picture run.png there, over older ones",
    )
    _add_quiet(parser)
    parser.set_defaults(run=_run, gone=0)


def _run(arguments: argparse.Namespace) -> int:
    from fastal.cli.arguments import in_options
    from fastal.cli.errors import _UserError
    from fastal.cli.table import TableError, read_table

    name = arguments.file
    try:
        table = read_table(name, arguments.target, _listed(arguments.features))
        X, y, y_scale = _standardised(name, table)
    except TableError as error:
        raise _UserError(str(error)) from None

    import numpy as np

    order = np.random.default_rng(arguments.seed).permutation(len(y))
    n_test = max(MIN_TEST, len(y) // TEST_SHARE)
    test, pool = order[:n_test], order[n_test:]
    if arguments.max_labels is not None and arguments.max_labels > len(pool):
        raise _UserError(
            f"--max-labels: {arguments.max_labels} is more than the pool of {len(pool)} rows "
            f"({n_test} of {len(y)} are held out)"
        )
    if arguments.out is not None:
        with _file_errors("--out"):
            os.makedirs(arguments.out, exist_ok=True)

    with _warnings_in_words():
        try:
            _note(arguments, f"fitting the model to {min(len(pool), FIT_ROWS)} rows ...")
            gp = _fitted(X[pool[:FIT_ROWS]], y[pool[:FIT_ROWS]], arguments.noise)
            runs = _learn(
                X[pool],
                y[pool],
                (X[test], y[test]),
                gp=gp,
                alpha=arguments.alpha,
                seed=arguments.seed,
                max_labels=arguments.max_labels,
                progress=_shows_progress(arguments),
            )
            errors = _Errors.of(runs, y[test], lambda run: run.gp.predict(X[test]), y_scale)
        except (ValueError, MemoryError, np.linalg.LinAlgError) as error:
            # The learner speaks of its arguments; here they are options.
            raise _UserError(f"{name}: {in_options(str(error))}") from None
        ahead = _look_ahead(X[pool], gp, final := runs.last)

    features = "1 feature" if len(table.features) == 1 else f"{len(table.features)} features"
    _say(
        "data",
        f"{name}: {len(y)} rows, {features}, target {table.target!r}; a pool of "
        f"{len(pool)} rows, {n_test} held out to test on",
    )
    how = "given" if arguments.noise is not None else "fitted"
    _say(
        "model",
        f"length scale {gp.lengthscale:.3g} and noise variance {gp.noise:.3g} ({how}) "
        "for the standardised columns; the fit saw labels that a campaign would not have yet",
    )
    if final.stopped:
        _say(
            "answer",
            "Had you labelled by maximum variance, you could have stopped after "
            f"{_of_pool(final)}.",
        )
    else:
        _say(
            "answer",
            "Had you labelled by maximum variance, you would not have been told to stop "
            f"within {final.n_labels} of {final.n_pool} labels.",
        )
    _say_why(final)
    _say(
        "error then" if final.stopped else "error now",
        _error_text(errors.loss_then, errors.rms_then, table.target, runs.first.n_labels),
    )
    if final.stopped:
        _say(
            "error now", _error_text(errors.loss_now, errors.rms_now, table.target, final.n_labels)
        )
    if ahead is not None:
        _say("forecast", _forecast_text(ahead, len(pool)))
    if arguments.out is not None:
        record = _record(arguments, table, gp, final, errors, pool, test)
        _write(arguments.out, record, final)
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
    errors: _Errors,
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
        # The line of the file behind each label, in the order of labelling.
        "lines": table.rows[pool[run.indices]].tolist(),
        "run": run.to_dict(),
    }


class _Runs(NamedTuple):
    first: Run  # up to the stop
    last: Run  # to the end of the pool


class _Errors(NamedTuple):
    """Errors on the test set at the stop ("then"; at the end if there was none) and at the end."""

    loss_then: float
    loss_now: float
    rms_then: float
    rms_now: float

    @classmethod
    def of(cls, runs: _Runs, y: Any, predict: Callable[[Run], Any], scale: float = 1.0) -> _Errors:
        import numpy as np

        def rms(run: Run) -> float:
            return scale * math.sqrt(float(np.mean((y - predict(run)) ** 2)))

        def loss(run: Run) -> float:
            assert run.errors is not None
            return float(run.errors[-1])

        return cls(loss(runs.first), loss(runs.last), rms(runs.first), rms(runs.last))


def _learn(
    X: Any,
    y: Any,
    test: tuple[Any, Any],
    *,
    gp: GaussianProcess,
    alpha: float,
    seed: int,
    max_labels: int | None,
    progress: bool,
) -> _Runs:
    """Learn up to the stop, and from there to the end."""
    from fastal.learning.run import learn
    from fastal.stopping.stopper import Stopper

    first = learn(
        X,
        y,
        gp=gp,
        stopper=Stopper(alpha),
        max_labels=max_labels,
        test=test,
        seed=seed,
        progress=progress,
    )
    if not first.stopped:
        return _Runs(first, first)
    return _Runs(first, first.resume(max_labels=len(y) if max_labels is None else max_labels))


def _of_pool(run: Run) -> str:
    assert run.stopped_at is not None
    saved = 1 - run.stopped_at / run.n_pool
    return f"{run.stopped_at} of {run.n_pool} labels ({saved:.0%} of the pool saved)"
