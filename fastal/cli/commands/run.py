"""fastal run: active learning over a table whose rows all have labels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fastal.cli.arguments import (
    add_quiet,
    add_seed,
    integer_argument,
    positive_argument,
    split_columns,
)
from fastal.cli.campaign import (
    add_rule,
    answer_entries,
    chosen_shares,
    outcome_rows,
    print_answer,
    print_outcomes,
    run_campaign,
)
from fastal.cli.errors import UserError
from fastal.cli.fitted import FIT_ROWS, fit_process, standardise_table
from fastal.cli.output import (
    check_csv,
    file_errors,
    library_errors,
    print_entry,
    print_note,
    shows_progress,
    warnings_in_words,
    write_run,
)
from fastal.cli.report import ReportContent, ReportTable, check_report, write_report

if TYPE_CHECKING:
    import argparse

    from fastal._types import Array
    from fastal.cli.arguments import Commands
    from fastal.cli.campaign import Campaign
    from fastal.cli.fitted import Unit
    from fastal.cli.table import Table
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
        "labelled by maximum variance, after how many could labelling have stopped, with what "
        "error, and what did the labels after that bring? Features and target are standardised; "
        f"length scale and noise are fitted by marginal likelihood, on at most {FIT_ROWS} rows; a "
        "fifth of the rows is held out to state the error.",
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
    add_rule(parser)
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
    parser.add_argument(
        "--predictions",
        metavar="FILE",
        help="write a CSV file with a line per row of the table: the model's mean and standard "
        "deviation with the labels up to the stop",
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="write one page with the answer, its pictures, and predictions against labels; it "
        "opens without a network",
    )
    add_quiet(parser)
    parser.set_defaults(run=_run, broken_pipe_status=0)


def _run(arguments: argparse.Namespace) -> int:
    from fastal.cli.table import TableError, read_table

    name = arguments.file
    chosen_shares(arguments)
    try:
        table = read_table(name, arguments.target, split_columns(arguments.features))
        X, y, unit = standardise_table(name, table)
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
    if arguments.predictions is not None:
        check_csv("--predictions", arguments.predictions, name)
    if arguments.report is not None:
        check_report(arguments.report, name)
    if arguments.out is not None:
        with file_errors("--out", arguments.out):
            os.makedirs(arguments.out, exist_ok=True)

    with warnings_in_words():
        with library_errors(name):
            rows = pool[:FIT_ROWS]
            print_note(arguments, f"fitting the model to {len(rows)} rows ...")
            given = {} if arguments.noise is None else {"noise": arguments.noise}
            gp = fit_process(X[rows], y[rows], **given)
            campaign = run_campaign(
                X[pool],
                y[pool],
                (X[test], y[test]),
                gp=gp,
                arguments=arguments,
                max_labels=arguments.max_labels,
                progress=shows_progress(arguments),
                scale=unit.deviation,
            )
            wanted = arguments.predictions is not None
            predicted = _predict(X, campaign, pool, unit) if wanted else None
        print_answer(campaign, GIVEN)
    print_outcomes(campaign, f"in units of {table.target!r}, on the {n_test} rows held out")
    features = "1 feature" if len(table.features) == 1 else f"{len(table.features)} features"
    how = "given" if arguments.noise is not None else "fitted"
    facts = [
        (
            "data",
            f"{name}: {len(y)} rows, {features}, target {table.target!r}; a pool of "
            f"{len(pool)} rows, {n_test} held out to test on",
        ),
        (
            "model",
            f"length scale {gp.lengthscale:.3g} and noise variance {gp.noise:.3g} ({how}) "
            "for the standardised columns; the fit saw labels that a campaign would not have yet",
        ),
    ]
    for label, text in facts:
        print_entry(label, text)
    if arguments.out is not None:
        record = _record(arguments, table, gp, campaign, pool, test)
        write_run(arguments.out, record, campaign.run)
    if predicted is not None:
        with file_errors("--predictions", arguments.predictions):
            _write_predictions(arguments.predictions, table, predicted, campaign, pool, test)
        print_entry(
            "written",
            f"{arguments.predictions}: mean and standard deviation of all {len(y)} rows with the "
            f"{campaign.chosen.labels} labels that the answer uses",
        )
    if arguments.report is not None:
        content = _report(name, table, campaign, pool, unit, facts)
        with file_errors("--report", arguments.report):
            write_report(arguments.report, content)
        print_entry("written", f"{arguments.report}: the answer as a page, with its pictures")
    return 0


GIVEN = "had you labelled by maximum variance"


def _report(
    name: str,
    table: Table,
    campaign: Campaign,
    pool: Any,
    unit: Unit,
    facts: list[tuple[str, str]],
) -> ReportContent:
    """Return what the page says."""
    (_, answer), *entries = answer_entries(campaign, GIVEN)
    base = os.path.basename(name)
    header, *rows = outcome_rows(campaign)
    run = campaign.run
    return ReportContent(
        title=f"When could labelling {base} have stopped?",
        verdict=answer,
        warnings=[text for label, text in entries if label == "but"],
        facts=[
            *(entry for entry in entries if entry[0] != "but"),
            *((label, text.removeprefix(name[: len(name) - len(base)])) for label, text in facts),
        ],
        target=table.target,
        source=base,
        run=run,
        rules=ReportTable(header, rows),
        used=campaign.chosen.labels,
        label_names=[f"line {line}" for line in table.rows[pool[run.indices]].tolist()],
        unit=unit,
    )


def _record(
    arguments: argparse.Namespace,
    table: Table,
    gp: GaussianProcess,
    campaign: Campaign,
    pool: Any,
    test: Any,
) -> dict[str, Any]:
    """Return what run.json holds."""
    from fastal.stopping.verdict import no_stop_reason

    run, chosen = campaign.run, campaign.chosen
    assert run.errors is not None
    options = [
        "file",
        "target",
        "features",
        "noise",
        "rule",
        "share",
        "alpha",
        "seed",
        "max_labels",
    ]
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
            "stopped": chosen.early,
            "stopped_at": chosen.labels if chosen.early else None,
            "n_labels": run.n_labels,
            "n_pool": run.n_pool,
            "savings": 1 - chosen.labels / run.n_pool if chosen.early else 0.0,
            "verdict": str(run.verdict),
            "warnings": list(run.verdict.warnings),
            "no_stop_reason": None if chosen.early else no_stop_reason(run.bounds),
            "expected_loss_then": float(run.errors[chosen.labels - 1]),
            "expected_loss_now": float(run.errors[-1]),
            "rmse_first": float(campaign.rmse[0]),
            "rmse_then": chosen.rmse,
            "rmse_now": float(campaign.rmse[-1]),
            "unused": chosen.unused,
            "rules": [one.record() for one in campaign.outcomes],
        },
        # The line of the file that has each label, in the order of labelling.
        "lines": table.rows[pool[run.indices]].tolist(),
        "run": run.to_dict(),
    }


PREDICTED_AT_ONCE = 2000  # rows: a covariance with all labels each


def _predict(X: Array, campaign: Campaign, pool: Any, unit: Unit) -> Array:
    """Return mean, standard deviation and that of a label of every row, with the labels used."""
    import numpy as np

    run, used = campaign.run, campaign.chosen.labels
    gp = run.prior.copy(quiet=True)
    gp.add_batch(X[pool[run.indices[:used]]], run.labels[:used])
    out = np.empty((len(X), 3))
    for begin in range(0, len(X), PREDICTED_AT_ONCE):
        rows = slice(begin, begin + PREDICTED_AT_ONCE)
        mean, var = gp.predict(X[rows], return_var=True)
        out[rows, 0] = unit.mean + unit.deviation * mean
        out[rows, 1] = unit.deviation * np.sqrt(var)
        out[rows, 2] = unit.deviation * np.sqrt(var + gp.noise)
    return out


def _write_predictions(
    path: str, table: Table, predicted: Array, campaign: Campaign, pool: Any, test: Any
) -> None:
    """Write what the model says of every row with the labels up to the stop."""
    import csv

    roles = ["not used"] * len(predicted)
    for row in test:
        roles[row] = "test"
    for row in pool[campaign.run.indices[: campaign.chosen.labels]]:
        roles[row] = "labelled"
    columns = (table.rows.tolist(), table.y.tolist(), *predicted.T.tolist(), roles)
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["line", table.target, "mean", "sd", "sd_of_label", "role"])
        out.writerows(zip(*columns, strict=True))
