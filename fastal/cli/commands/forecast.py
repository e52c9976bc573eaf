"""fastal forecast: what the labels that a table still lacks would buy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fastal.cli.arguments import (
    add_picture,
    add_quiet,
    add_seed,
    alpha_argument,
    integer_argument,
    positive_argument,
    split_columns,
)
from fastal.cli.errors import UserError
from fastal.cli.fitted import Scaling, draw_fit_rows, fit_process
from fastal.cli.output import (
    check_picture,
    file_errors,
    library_errors,
    print_entry,
    print_note,
    warnings_in_words,
)

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands
    from fastal.cli.table import Table
    from fastal.lookahead.gain import Forecast
    from fastal.models.gp import GaussianProcess

MIN_FIT = 15  # labels on which to fit

ENOUGH_TO_FIT = 100  # with fewer a forecast, taken as it is, is no better than a fixed budget

STEPS = (1, 2, 5)  # times powers of ten, from 10 on: labels that are reported

_DESCRIPTION = """\
Of a table of inputs some rows have a target: what would labelling the others buy? Rolls selection
by maximum variance forward, says how much the next 10, 20, 50, ... labels are expected to lower the
error, where to stop, and which rows to label next. Columns are standardised. The model is fitted
on the labels of an earlier table (--fit), which is much the best, or else on those of this one.
Then what is left is counted in RMSE, and the larger figure of two fits counts: one to all labels,
one to the first of them in the order of the table.
"""


class _Fitted(NamedTuple):
    """A table's rows on the scale of the model, and the model."""

    X: Any
    y: Any  # the labels that there are
    gp: GaussianProcess
    before: GaussianProcess | None  # the same from fewer of the same labels, if it comes from these
    n_before: int
    unit: float  # of the target


def add_forecast(commands: Commands) -> None:
    """Add ``fastal forecast`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "forecast",
        help="say what the labels that a table still lacks would buy",
        description=_DESCRIPTION,
        epilog="A column is given by its name or by its number from 1; -1 is the last one.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file", metavar="DATA.csv", help="a table of numbers; empty target cells are unlabelled"
    )
    parser.add_argument("--target", required=True, metavar="COLUMN", help="what to predict")
    parser.add_argument(
        "--features", metavar="A,B,...", help="the columns to predict from (default: all others)"
    )
    parser.add_argument(
        "--labelled",
        metavar="COLUMN",
        help="a column of 1 and 0: rows with 0 count as unlabelled, whatever their target",
    )
    parser.add_argument(
        "--fit",
        metavar="EARLIER.csv",
        help="fit length scale and noise on this table, with the same columns, all labelled",
    )
    for option, text in (
        ("--lengthscale", "length scale of the standardised features, instead of a fitted one"),
        ("--noise", "noise variance of the standardised target, instead of a fitted one"),
    ):
        parser.add_argument(option, type=positive_argument, metavar="VALUE", help=text)
    parser.add_argument(
        "--eps",
        type=alpha_argument,
        default=0.05,
        help="stop when at most this share of the reduction is left (default: 0.05)",
    )
    parser.add_argument(
        "--price",
        type=positive_argument,
        help="also say where to stop if labelling the whole table costs this many times what all "
        "labels after the first are worth",
    )
    parser.add_argument(
        "--next",
        type=integer_argument(1),
        default=10,
        metavar="N",
        help="rows to label next (default: 10)",
    )
    add_seed(parser, "seed of the fit")
    add_picture(parser, "draw what is left after each label")
    add_quiet(parser)
    parser.set_defaults(run=_forecast, broken_pipe_status=0)


def _forecast(arguments: argparse.Namespace) -> int:
    from fastal.cli.table import read_table

    if arguments.plot is not None:
        check_picture(arguments.plot)
    features = split_columns(arguments.features)
    with library_errors():
        table = read_table(
            arguments.file, arguments.target, features, partly=True, labelled=arguments.labelled
        )
        earlier = None if arguments.fit is None else _earlier(arguments, features, table)

    import numpy as np

    from fastal.lookahead.gain import forecast

    done = np.flatnonzero(~np.isnan(table.y))
    print_entry("data", f"{len(table.y)} rows, {len(done)} of them labelled")
    print_note(arguments, "fitting the model, and rolling the selection forward ...")
    with warnings_in_words():
        model = _model(arguments, table, done, earlier)
        gp = model.gp
        gp.add_batch(model.X[done], model.y)
        with library_errors(arguments.file):
            ahead = forecast(model.X, gp, seed=arguments.seed)
            order = ahead.order
            if model.before is not None:
                ahead = _second_opinion(model, model.before, done, ahead, arguments)
    if model.before is None:
        print_entry("forecast", f"{ahead.summary}.")
        _print_steps(ahead)
        _print_stops(arguments, ahead)
    rows = table.rows[order[len(done) :][: arguments.next]]
    print_entry(
        "label next", f"lines {', '.join(map(str, rows))} of {arguments.file}, in this order"
    )
    if arguments.plot is not None:
        from fastal.plotting.forecast import save_forecast

        with file_errors("--plot", arguments.plot):
            save_forecast(
                ahead, arguments.plot, eps=arguments.eps, price=arguments.price,
                rmse=model.before is not None,
            )  # fmt: skip
        print_entry("picture", f"{arguments.plot}: what is left after each label, and the stops")
    return 0


def _earlier(arguments: argparse.Namespace, features: list[str] | None, table: Table) -> Table:
    """Return the table to fit on, with the same features."""
    from fastal.cli.table import TableError, read_table

    if features is None and arguments.labelled is not None:
        features = list(table.features)  # it need not say what is labelled
    earlier = read_table(arguments.fit, arguments.target, features)
    if earlier.features != table.features:
        raise TableError(
            f"{arguments.fit}: the features are {', '.join(map(repr, earlier.features))}, those of "
            f"{arguments.file} {', '.join(map(repr, table.features))}"
        )
    return earlier


def _model(
    arguments: argparse.Namespace, table: Table, done: Any, earlier: Table | None
) -> _Fitted:
    """Return the standardised inputs and labels, and the fitted process."""
    import numpy as np

    from fastal.learning.refit import last_refit_before

    wanted = {"lengthscale": arguments.lengthscale, "noise": arguments.noise}
    given = {name: value for name, value in wanted.items() if value is not None}
    with library_errors():
        scaling = Scaling.of(arguments.file, table.X, table.features)
    X, y = scaling(table.X), table.y[done]
    if earlier is not None:
        inputs, targets = scaling(earlier.X), earlier.y
        origin = f"the rows of {arguments.fit}"
    else:
        inputs, targets, origin = X[done], y, "the labels of this table"
    if len(given) < 2 and len(targets) < MIN_FIT:
        raise UserError(
            f"{arguments.file}: at least {MIN_FIT} rows with a target are needed to fit the model, "
            f"got {len(targets)}: use --fit EARLIER.csv, or --lengthscale and --noise"
        )
    unit = 1.0
    if len(targets) > 1:
        file = arguments.file if earlier is None else arguments.fit
        with library_errors():
            scaling = Scaling.of(file, targets, (table.target,))
        y, targets = scaling(y), scaling(targets)
        unit = float(scaling.width * scaling.deviation)
    else:
        y = np.zeros(len(y))  # one label alone has no scale
    if not (np.isfinite(inputs).all() and np.isfinite(y).all()):
        raise UserError(
            f"{arguments.fit}: its values are too far from those of {arguments.file} to be compared"
        )
    rows = draw_fit_rows(len(targets), arguments.seed)
    gp = fit_process(inputs[rows], targets[rows], seed=arguments.seed, **given)
    origin = "as given" if len(given) == 2 else f"fitted to {len(rows)} of {origin}"
    print_entry(
        "model", f"length scale {gp.lengthscale:.3g}, noise variance {gp.noise:.3g}, {origin}"
    )
    if len(given) == 2 or earlier is not None:
        return _Fitted(X, y, gp, None, 0, unit)
    # the fit before, of a campaign that labelled these rows in their order
    n = last_refit_before(len(targets)) or len(targets)
    rows = draw_fit_rows(n, arguments.seed)
    before = fit_process(inputs[rows], targets[rows], seed=arguments.seed, **given)
    print_entry(
        "the fit before",
        f"length scale {before.lengthscale:.3g}, noise variance {before.noise:.3g}, fitted to "
        f"{'' if len(rows) == n else f'{len(rows)} of '}the first {n} of them, in the order of the "
        "table",
    )
    said = "what is left is therefore counted in RMSE, and the larger figure of two fits counts"
    if len(targets) < ENOUGH_TO_FIT:
        said = (
            f"a model that comes from {len(targets)} of the same labels gives a forecast no better "
            f"than a fixed budget, taken as it is; {said}. {ENOUGH_TO_FIT} to 200 earlier labels "
            "(--fit) are better"
        )
    else:
        said = f"the model comes from the same labels; {said}"
    print_entry("warning", said)
    return _Fitted(X, y, gp, before, n, unit)


def _second_opinion(
    model: _Fitted, before: GaussianProcess, done: Any, ahead: Forecast,
    arguments: argparse.Namespace,
) -> Forecast:  # fmt: skip
    """Say what is left as two fits see it; return the forecast that sees more."""
    from fastal.lookahead.gain import NOTHING_TO_LEARN, forecast
    from fastal.models.weak import at_edge

    n = len(done)
    other = forecast(model.X, before, labelled=done, seed=arguments.seed)
    views = (other, ahead)
    shares = [float(view.rmse_share[n - 1]) for view in views]
    careful, share = (other, shares[0]) if shares[0] > shares[1] else (ahead, shares[1])
    if any(view.nothing_to_learn for view in views):
        who = "the model" if ahead.nothing_to_learn else f"the fit to {model.n_before} labels"
        print_entry("forecast", NOTHING_TO_LEARN.replace("the model", who) + ".")
        print_entry("stop", "not known: label more, or take the model from other labels (--fit)")
        return next(view for view in (ahead, other) if view.nothing_to_learn)
    end = "the table" if ahead.whole else f"{ahead.horizon} labels"
    print_entry(
        "forecast",
        f"after {n} labels about {100 * share:.2g} % of the fall of the RMSE is left, from 5 "
        f"labels to the end of {end} ({100 * shares[0]:.2g} % as the fit before sees it, "
        f"{100 * shares[1]:.2g} % as the last one).",
    )
    _print_rmse_steps(careful, model.unit)
    edges = [fit for fit in (before, model.gp) if at_edge(float(fit.lengthscale), model.X.shape[1])]
    _print_rmse_stop(arguments, careful, edges)
    return careful


def _print_rmse_steps(ahead: Forecast, unit: float) -> None:
    n = ahead.n_labelled
    now, end = float(ahead.rmse[n - 1]), float(ahead.rmse[-1])
    for more in _steps(ahead.horizon - n):
        then = float(ahead.rmse[n + more - 1])
        share = (now - then) / (now - end) if now > end else 0.0
        print_entry(
            f"next {more}",
            f"{100 * share:.3g} % of what is left: RMSE {unit * now:.3g} -> {unit * then:.3g}",
        )


def _print_rmse_stop(
    arguments: argparse.Namespace, ahead: Forecast, edges: list[GaussianProcess]
) -> None:
    if edges:
        print_entry(
            "stop",
            f"not known: a fit with the length scale {edges[0].lengthscale:.3g} lies at an edge "
            "and confirms nothing",
        )
        return
    stop = ahead.labels_for_rmse(arguments.eps)
    where = f"beyond {ahead.horizon}" if stop is None else f"after {stop}"
    now = ", which is now" if stop is not None and stop <= ahead.n_labelled else ""
    text = f"at most {100 * arguments.eps:g} % of the fall of the RMSE is left"
    print_entry("stop", f"{where} labels{now}: {text}")
    if arguments.price is not None:
        print_entry(
            "stop",
            f"after {ahead.labels_at_price(arguments.price)} labels: further labels cost more than "
            f"they buy (price {arguments.price:g}), if this fit is right",
        )


def _steps(most: int) -> list[int]:
    """Return numbers of labels to say something about, up to the last one."""
    return [*(f * 10**k for k in range(1, 7) for f in STEPS if f * 10**k < most), most]


def _print_steps(ahead: Forecast) -> None:
    left = float(ahead.loss_fall[max(ahead.n_labelled, 1) - 1])
    for more in _steps(ahead.horizon - max(ahead.n_labelled, 1)):
        share = ahead.bought_by(more)
        print_entry(
            f"next {more}",
            f"{100 * share:.3g} % of what is left: expected loss lower by {share * left:.2g}",
        )


def _print_stops(arguments: argparse.Namespace, ahead: Forecast) -> None:
    rules = [
        (f"at most {100 * arguments.eps:g} % of all is left", ahead.labels_for(arguments.eps)),
        ("the rest lies within the noise of the final error", ahead.labels_as_paper()),
    ]
    if arguments.price is not None:
        price = ahead.labels_at_price(arguments.price)
        rules.append((f"further labels cost more than they buy (price {arguments.price:g})", price))
    for text, stop in rules:
        where = f"beyond {ahead.horizon}" if stop is None else f"after {stop}"
        now = ", which is now" if stop is not None and stop <= ahead.n_labelled else ""
        print_entry("stop", f"{where} labels{now}: {text}")
