"""fastal forecast: what the labels that a table still lacks would buy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastal.cli.arguments import (
    add_picture,
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
    warnings_in_words,
)

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands
    from fastal.cli.table import Table
    from fastal.lookahead.gain import Forecast
    from fastal.models.gp import GaussianProcess

MIN_FIT = 15  # labels on which to fit

ENOUGH_TO_FIT = 100  # with fewer a forecast is no better than a fixed budget

STEPS = (1, 2, 5)  # times powers of ten, from 10 on: labels that are reported

_DESCRIPTION = """\
Of a table of inputs some rows have a target: what would labelling the others buy? Rolls selection
by maximum variance forward, says how much the next 10, 20, 50, ... labels are expected to lower the
error, where to stop, and which rows to label next. Columns are standardised. The model is fitted
on the labels of an earlier table (--fit), which is much the best, or else on those of this one.
"""


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
    with warnings_in_words():
        X, y, gp = _model(arguments, table, done, earlier)
        gp.add_batch(X[done], y)
        with library_errors(arguments.file):
            ahead = forecast(X, gp, seed=arguments.seed)
    print_entry("forecast", f"{ahead.summary}.")
    _print_steps(ahead)
    _print_stops(arguments, ahead)
    rows = table.rows[ahead.order[len(done) :][: arguments.next]]
    print_entry(
        "label next", f"lines {', '.join(map(str, rows))} of {arguments.file}, in this order"
    )
    if arguments.plot is not None:
        from fastal.plotting.forecast import save_forecast

        with file_errors("--plot", arguments.plot):
            save_forecast(ahead, arguments.plot, eps=arguments.eps, price=arguments.price)
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
) -> tuple[Any, Any, GaussianProcess]:
    """Return the standardised inputs, the labels among the targets, and the fitted process."""
    import numpy as np

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
    if len(targets) > 1:
        file = arguments.file if earlier is None else arguments.fit
        with library_errors():
            scaling = Scaling.of(file, targets, (table.target,))
        y, targets = scaling(y), scaling(targets)
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
    if len(given) < 2 and earlier is None and len(targets) < ENOUGH_TO_FIT:
        print_entry(
            "warning",
            f"a model that comes from {len(targets)} of the same labels gives a forecast no better "
            f"than a fixed budget; {ENOUGH_TO_FIT} to 200 earlier labels (--fit) are needed",
        )
    return X, y, gp


def _print_steps(ahead: Forecast) -> None:
    most = ahead.horizon - max(ahead.n_labelled, 1)
    steps = [f * 10**k for k in range(1, 7) for f in STEPS if f * 10**k < most]
    left = float(ahead.loss_fall[max(ahead.n_labelled, 1) - 1])
    for more in [*steps, most]:
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
