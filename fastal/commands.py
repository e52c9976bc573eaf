"""The commands that learn: ``fastal demo`` and ``fastal run``.

Only the standard library is imported here; a command imports what it needs when it runs. What
parses options and ends with one line on standard error is `fastal.cli`'s, which calls `add_demo`
and `add_run`.
"""

from __future__ import annotations

import math
import os
import sys
import textwrap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from .cli import Commands
    from .gp import GaussianProcess
    from .learner import Run
    from .lookahead import Forecast
    from .table import Table

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

FIT_ROWS = 1000  # of the paper's protocol
TEST_SHARE = 5  # one row in so many
MIN_TEST = 5

WIDTH = 100  # of the text
LABEL = 18


def add_demo(commands: Commands) -> None:
    """Add ``fastal demo`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    from .cli import _alpha, _count

    parser = commands.add_parser(
        "demo",
        help="see active learning stop, on the artificial model of the paper",
        description="Active learning on the artificial model of the paper: labels a pool of points "
        "by maximum variance until the bounds say stop, and shows what the other labels would "
        "have changed. Nothing is needed, and nothing is written without --plot.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--seed",
        type=_count(0),
        default=DEMO_SEED,
        metavar="N",
        help=f"draws the pool and the first label (default: {DEMO_SEED})",
    )
    parser.add_argument(
        "--labels",
        type=_count(2, DEMO_POINTS // 2),
        default=DEMO_POOL,
        metavar="N",
        help=f"size of the pool, the labels to be had (default: {DEMO_POOL})",
    )
    parser.add_argument(
        "--alpha", type=_alpha, default=0.001, help="level of the runs test (default: 0.001)"
    )
    parser.add_argument(
        "--plot",
        metavar="PICTURE",
        help="write a picture; the ending is the format (needs matplotlib)",
    )
    _add_quiet(parser)
    parser.set_defaults(run=_demo, gone=0)


def add_run(commands: Commands) -> None:
    """Add ``fastal run`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    from .cli import _alpha, _count, _positive

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


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="show no progress on a terminal")


# fastal demo ------------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.plot is not None:
        from .cli import _check_picture

        _check_picture(arguments.plot)

    import numpy as np

    from .datasets import HIGH, LOW, artificial, artificial_mean
    from .gp import GaussianProcess
    from .plot_run import dense_posterior

    X, y = artificial(DEMO_POINTS)
    order = np.random.default_rng(arguments.seed).permutation(DEMO_POINTS)
    pool, rest = order[: arguments.labels], order[arguments.labels :]
    gp = GaussianProcess(lengthscale=DEMO_LENGTHSCALE, noise=DEMO_NOISE)
    with _warnings_in_words():
        runs = _learn(
            X[pool],
            y[pool],
            (X[rest], y[rest]),
            gp=gp,
            alpha=arguments.alpha,
            seed=arguments.seed,
            max_labels=None,
            progress=_shows_progress(arguments),
        )

    def predict(run: Run) -> Any:
        used = pool[run.indices]
        return dense_posterior(gp, X[used], y[used], X[rest])[0]

    errors = _Errors.of(runs, y[rest], predict)
    final = runs.last

    _say(
        "data",
        f"the artificial model of the paper: a pool of {final.n_pool} points, "
        f"{len(rest)} others to test on",
    )
    if final.stopped:
        _say("labels used", _of_pool(final))
    else:
        _say("labels used", f"all {final.n_labels}: there was no stop")
    _say_why(final)
    where = "at the stop" if final.stopped else "at the end"
    _say(
        f"error {where}",
        f"expected loss {errors.loss_then:.3g}, root mean square "
        f"{errors.rms_then:.3g} (the noise alone: 0.05)",
    )
    if final.stopped:
        _say(
            "error at the end",
            f"expected loss {errors.loss_now:.3g}, root mean square "
            f"{errors.rms_now:.3g} with all {final.n_labels} labels",
        )
    if arguments.plot is not None:
        from .plot_run import save_demo

        grid = np.linspace(LOW, HIGH, 500)
        with _file_errors("--plot"):
            save_demo(final, X[pool], y[pool], grid, artificial_mean(grid), arguments.plot)
        _say(
            "picture",
            f"{arguments.plot}: the model {where} with its data; the bounds with their "
            "runs about the median, and the p-value; the error after each label",
        )
    else:
        _say(
            "picture",
            "none; --plot demo.png draws the model, the bounds, the p-value and the error",
        )
    return 0


# fastal run -------------------------------------------------------------------------------------


def _run(arguments: argparse.Namespace) -> int:
    from .cli import _UserError, in_options
    from .table import TableError, read_table

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


def _listed(text: str | None) -> list[str] | None:
    """Split a list of columns at its commas; a name with a comma stands in double quotes."""
    if text is None:
        return None
    import csv

    from .cli import _UserError

    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise _UserError(f"--features: {error} in {text!r}") from None
    if not all(name.strip() for name in names) or not names:
        raise _UserError(f"--features: must be columns separated by commas, got {text!r}")
    return names


def _standardised(name: str, table: Table) -> tuple[Any, Any, float]:
    """Return features and target with mean 0 and variance 1, and the scale of the target."""
    import numpy as np

    from .table import TableError

    columns = np.column_stack((table.X, table.y))
    with np.errstate(over="ignore"):
        # By the range first: squares of very large or very small numbers would not be finite or 0.
        ranges = np.ptp(columns, axis=0)
    if not np.isfinite(ranges).all():
        bad = (*table.features, table.target)[int(np.argmin(np.isfinite(ranges)))]
        raise TableError(f"{name}: column {bad!r}: the range of its values is not finite")
    columns = (columns - columns.min(axis=0)) / ranges
    scales = columns.std(axis=0)
    columns = (columns - columns.mean(axis=0)) / scales
    return columns[:, :-1], columns[:, -1], float(scales[-1] * ranges[-1])


def _fitted(X: Any, y: Any, noise: float | None) -> GaussianProcess:
    from .gp import GaussianProcess

    if noise is None:
        return GaussianProcess().fit_hyperparameters(X, y)
    fit = GaussianProcess(noise=noise)
    fit.fit_hyperparameters(X, y, bounds={"noise": (noise, noise)})
    # Exactly the noise that was asked for: the search goes by logarithms.
    return GaussianProcess(lengthscale=fit.lengthscale, noise=noise)


def _look_ahead(X: Any, gp: GaussianProcess, run: Run) -> Forecast | None:
    """Return the forecast of the pool, made before its first bound; None if it cannot be made."""
    from .lookahead import forecast

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


def _write(folder: str, record: dict[str, Any], run: Run) -> None:
    import json

    text = json.dumps(record, indent=1, allow_nan=False) + "\n"
    path, picture = os.path.join(folder, "run.json"), os.path.join(folder, "run.png")
    with _file_errors("--out"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            from .plot_run import save_run

            save_run(run, picture)
        except ImportError as error:
            _say("written", f"{path}; no picture: {error}")
            return
    _say(
        "written",
        f"{path} and {picture}: the bounds with their runs about the median, the "
        "p-value, and the error after each label",
    )


# Why there was no stop --------------------------------------------------------------------------

NO_STOP = {
    "still learning": "The bounds are still falling: labels still improve the model, and more of "
    "them would.",
    "never fell": "The bounds stay high: each label still tells the model more than its noise "
    "hides, as with a length scale that is short for the distances in the pool.",
    "noise from the start": "The bounds are low and without a trend: after its first labels the "
    "model had learnt what it can, or noise hides the rest.",
}

MASKED = 7  # a drop within so many bounds is mostly never detected
FEWEST = 8  # bounds after these that show a trend
FALLING = -2.326  # one-sided 1 %
HIGH_BOUND = 0.5  # nats


def no_stop_reason(bounds: ArrayLike) -> str:
    """Say what bounds that did not stop suggest.

    A judgement, not a calibrated test. The first 7 bounds are left out, since a drop within them is
    mostly masked for ever. If the others fall (Mann-Kendall trend, one-sided 1 %), the model is
    still learning. If not, their median decides: a label whose input has as much posterior variance
    as noise has a bound of about half a nat.

    Parameters
    ----------
    bounds : array_like
        Bounds of a run that did not stop, without the constant C.

    Returns
    -------
    {"still learning", "never fell", "noise from the start", "too few bounds"}
        "never fell": no trend, and a median of at least half a nat; "noise from the start": no
        trend, and a lower median; "too few bounds": fewer than 15.

    Examples
    --------
    >>> from fastal.commands import no_stop_reason
    >>> no_stop_reason([5.0, 6.0, 4.0] * 10)
    'never fell'
    >>> no_stop_reason([0.05, 0.06, 0.04] * 10)
    'noise from the start'
    >>> no_stop_reason([6.0 - 0.1 * i for i in range(30)])
    'still learning'
    """
    import numpy as np

    from . import _validation as check
    from .stopper import _mann_kendall

    values = check.vector("bounds", bounds)[MASKED:]
    if len(values) < FEWEST:
        return "too few bounds"
    if _mann_kendall(values) < FALLING:
        return "still learning"
    return "never fell" if np.median(values) >= HIGH_BOUND else "noise from the start"


# What both commands share -----------------------------------------------------------------------


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
    from .learner import learn
    from .stopper import Stopper

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


def _say_why(run: Run) -> None:
    verdict = run.verdict
    if run.stopped:
        text = f"{verdict}."
        if not any("rose" in warning for warning in verdict.warnings):
            text += " Bounds that were high have become low: labels no longer move the model as "
            text += "they did."
        _say("why", text)
        for warning in verdict.warnings:
            _say("but", warning)
    else:
        _say("why", f"{verdict}")
        reason = no_stop_reason(run.bounds)
        if reason in NO_STOP:
            _say("suggests", f"{reason}. {NO_STOP[reason]}")


def _say(label: str, text: str) -> None:
    """Print one labelled entry, like those of ``fastal runs``, in lines that can be read."""
    indent = " " * LABEL
    print(
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=label.ljust(LABEL),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _on_terminal(arguments: argparse.Namespace) -> bool:
    return not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()


def _note(arguments: argparse.Namespace, text: str) -> None:
    if _on_terminal(arguments):
        print(text, file=sys.stderr, flush=True)


def _shows_progress(arguments: argparse.Namespace) -> bool:
    from importlib.util import find_spec

    return _on_terminal(arguments) and find_spec("tqdm") is not None


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Print warnings for the user as entries of the answer, once each, and no others."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [str(warning.message) for warning in caught if warning.category is UserWarning]
    for text in dict.fromkeys(texts):
        _say("warning", text)


@contextmanager
def _file_errors(option: str) -> Iterator[None]:
    """Turn what goes wrong with a file into the user's one line."""
    from .cli import _UserError

    try:
        yield
    except OSError as error:
        raise _UserError(f"{option}: {error.filename or ''}: {error.strerror}") from None
