"""fastal next: which rows of a table to label next, or whether to stop."""

from __future__ import annotations

import math
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from fastal._options import short_repr
from fastal.cli.arguments import (
    add_picture,
    add_quiet,
    add_seed,
    alpha_argument,
    integer_argument,
    split_columns,
)
from fastal.cli.output import (
    check_csv,
    check_picture,
    file_errors,
    library_errors,
    print_entry,
    print_note,
)
from fastal.cli.report import ReportContent, ReportTable, check_report, write_report

if TYPE_CHECKING:
    import argparse

    from fastal.cli.arguments import Commands
    from fastal.cli.next_answer import Answer
    from fastal.cli.next_campaign import Campaign
    from fastal.cli.sheet import Sheet

STOP, GO_ON = 0, 3  # exit status

BROKEN_PIPE = 141  # 128 + SIGPIPE, as in a shell: neither stop nor go on

LABEL = len("still to come: ")

_DESCRIPTION = """\
The everyday question of a labelling campaign. Of a table some rows have a target: label which rows
next, what is still to come, and may I stop? Nothing else needs to be known: the model is fitted to
the labels. Write what you measure into the table, skip or failed where nothing can be measured, and
ask again. Exit status: 0 stop, 3 go on, 2 wrong use.
"""

_EPILOG = """\
A column is given by its name or by its number from 1; -1 is the last one. Columns of text with a
few values are features too; the first one in which all values differ names the rows.
"""


def add_next(commands: Commands) -> None:
    """Add ``fastal next`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "next",
        help="say which rows of a table to label next, or that you may stop",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument(
        "file",
        metavar="TABLE",
        help="CSV, TSV or other text with a header; .xlsx and .parquet need pandas. Rows without a "
        "target are those to choose from",
    )
    parser.add_argument("--target", required=True, metavar="COLUMN", help="what to predict")
    parser.add_argument(
        "-n",
        type=integer_argument(1),
        default=10,
        metavar="N",
        dest="number",
        help="rows to label next (default: 10)",
    )
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="keep the campaign in this file: the order of labels, all fits, and a stop",
    )
    parser.add_argument(
        "--share",
        type=alpha_argument,
        default=0.05,
        help="stop when at most this share of the movement of the model is still to come "
        "(default: 0.05)",
    )
    parser.add_argument(
        "--features", metavar="A,B,...", help="the columns to predict from (default: all others)"
    )
    parser.add_argument(
        "--name",
        metavar="COLUMN",
        help="the column with the names of the rows; it is no feature",
    )
    parser.add_argument(
        "--order",
        metavar="COLUMN",
        help="a column of numbers or dates: labels came in its order (default: that of --state, "
        "else as they stand in the file)",
    )
    add_picture(parser, "draw what is still to come")
    parser.add_argument(
        "--predictions",
        metavar="FILE",
        help="write a CSV file with mean and standard deviation of every row",
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="write one page with the answer, its pictures, and predictions against labels; it "
        "opens without a network (needs matplotlib)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_seed(parser, "draws the rows before the first fit, at five labels")
    add_quiet(parser)
    parser.set_defaults(run=_next, broken_pipe_status=BROKEN_PIPE)


def _next(arguments: argparse.Namespace) -> int:
    if arguments.plot is not None:
        check_picture(arguments.plot)
    if arguments.report is not None:
        check_report(arguments.report)
    lock: Any = nullcontext()
    if arguments.state is not None:
        from fastal.cli.next_state import check_state_file, locked_state

        others = {"the table": arguments.file}
        for option in ("plot", "predictions", "report"):
            if (path := getattr(arguments, option)) is not None:
                others[f"--{option}"] = path
        check_state_file(arguments.state, others)
        lock = locked_state(arguments.state)
    with lock:  # the table is read within it: it cannot be older than the state
        sheet, campaign, said, warned = _campaign(arguments)
    files = _write_files(arguments, sheet, campaign)
    if arguments.report is not None:
        with file_errors("--report", arguments.report), library_errors():
            write_report(arguments.report, _report(arguments, sheet, campaign, said, warned))
        files["report"] = f"{arguments.report}: the answer as a page, with its pictures"
    if arguments.json:
        import json

        record = _record(arguments, sheet, campaign, said, warned)
        print(json.dumps(record | {"written": files}, indent=1, allow_nan=False))
    else:
        _print(arguments, sheet, campaign, said, warned)
        for what, text in files.items():
            print_entry(f"{what}:", text, LABEL)
    return STOP if said.stop else GO_ON


def _campaign(
    arguments: argparse.Namespace,
) -> tuple[Sheet, Campaign, Answer, list[str]]:
    """Read the table, and the state if there is one; write it anew, and return the answer."""
    import warnings

    from fastal.cli.sheet import read_sheet

    with library_errors():
        sheet = read_sheet(
            arguments.file,
            arguments.target,
            split_columns(arguments.features),
            name=arguments.name,
            order=arguments.order,
        )
    if arguments.predictions is not None:
        check_csv("--predictions", arguments.predictions, arguments.file)
    if arguments.report is not None:
        check_report(arguments.report, arguments.file)

    from fastal.cli.next_answer import answer
    from fastal.cli.next_campaign import begin, resume
    from fastal.cli.next_state import read_state, write_state

    share, seed, path = arguments.share, arguments.seed, arguments.state
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with library_errors(arguments.file):
            state = None if path is None else read_state(path)
            labels = len(sheet.y) - int((sheet.y != sheet.y).sum())
            print_note(arguments, f"fitting the model to {labels} labels ...")
            if state is None:
                campaign = begin(sheet, share, seed)
            else:
                campaign = resume(path, state, sheet, share, seed)
            if path is not None:
                keys = [sheet.keys[row] for row in campaign.pool.tolist()]
                write_state(path, sheet, keys, campaign.learner.to_dict())
            said = answer(campaign, sheet, arguments.number, seed)
    texts = [str(warning.message) for warning in caught if warning.category is UserWarning]
    # of a fit that failed the answer speaks itself
    texts = [text for text in texts if "could not be fitted" not in text]
    return sheet, campaign, said, list(dict.fromkeys([*said.warnings, *texts]))


# files -------------------------------------------------------------------------------------------


def _write_files(arguments: argparse.Namespace, sheet: Sheet, campaign: Campaign) -> dict[str, str]:
    """Write what is asked for; return what to say of it."""
    written = {}
    if arguments.state is not None:
        written["state"] = arguments.state
    if arguments.plot is not None:
        from fastal.plotting.still import save_still

        with file_errors("--plot", arguments.plot), library_errors():
            save_still(campaign.criterion, arguments.plot)
        written["picture"] = (
            f"{arguments.plot}: the bounds of the labels, and what is still to come"
        )
    if arguments.predictions is not None:
        from fastal.cli.next_answer import is_fitted

        path = arguments.predictions
        if is_fitted(campaign.learner):
            with file_errors("--predictions", path):
                _write_predictions(path, sheet, campaign)
            written["predictions"] = f"{path}: mean and standard deviation of every row"
        else:
            written["predictions"] = f"none before the first fit; {path} is not written"
    return written


PREDICTED_AT_ONCE = 2000  # rows: a covariance with all labels each


def _write_predictions(path: str, sheet: Sheet, campaign: Campaign) -> None:
    """Write what the model says of every row of the table."""
    import csv

    import numpy as np

    gp = campaign.learner.model
    n = len(sheet.y)
    mean, var = np.empty(n), np.empty(n)
    for begin in range(0, n, PREDICTED_AT_ONCE):
        rows = slice(begin, begin + PREDICTED_AT_ONCE)
        mean[rows], var[rows] = gp.predict(sheet.X[rows], return_var=True)
    roles = np.where(sheet.skipped, "skipped", np.where(np.isnan(sheet.y), "open", "labelled"))
    names = [""] * n if sheet.names is None else sheet.names
    y = ["" if math.isnan(value) else value for value in sheet.y.tolist()]
    columns = (
        sheet.lines.tolist(), names, y, mean.tolist(), np.sqrt(var).tolist(),
        np.sqrt(var + gp.noise).tolist(), roles.tolist(),
    )  # fmt: skip
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([sheet.unit, "name", sheet.target, "mean", "sd", "sd_of_label", "role"])
        out.writerows(zip(*columns, strict=True))


# what is printed ---------------------------------------------------------------------------------


def _print(
    arguments: argparse.Namespace,
    sheet: Sheet,
    campaign: Campaign,
    said: Answer,
    warned: list[str],
) -> None:
    print_entry("answer:", said.sentence, LABEL)
    print_entry("still to come:", said.still, LABEL)
    print_entry("label next:", _next_in_words(sheet, said), LABEL)
    for text in warned:
        print_entry("warning:", text, LABEL)
    for label, text in _facts(arguments, sheet, campaign, said):
        print_entry(f"{label}:", text, LABEL)


def _facts(
    arguments: argparse.Namespace, sheet: Sheet, campaign: Campaign, said: Answer
) -> list[tuple[str, str]]:
    """Return what the answer is about."""
    facts = [("changed", text) for text in campaign.notes]
    facts.append(("data", _data_in_words(sheet, said)))
    if campaign.learner.n_labels:
        facts.append(("order", f"of labels: {_order_in_words(arguments, campaign)}"))
    if not said.random:
        facts.append(("model", _model_in_words(sheet, campaign)))
    return facts


def _next_in_words(sheet: Sheet, said: Answer) -> str:
    if not said.rows:
        return "nothing: every row has a label, or cannot be measured"
    rows = ", ".join(_printable(sheet.row_name(row)) for row in said.rows)
    text = f"{sheet.unit}{'s' if len(said.rows) > 1 else ''} {rows} of {sheet.file}"
    if said.random:
        text += ", at random"
    elif len(said.rows) > 1:
        text += ", in this order"
    return f"{text}, if you go on" if said.stop else text


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _data_in_words(sheet: Sheet, said: Answer) -> str:
    n, d = len(sheet.y), len(sheet.features)
    done, skipped = int((~(sheet.y != sheet.y)).sum()), int(sheet.skipped.sum())
    text = f"{sheet.file}: {n} rows, {done} with a label"
    text += f", {skipped} that cannot be measured" if skipped else ""
    text += f", {said.n_open} to choose from; {d} feature{'s' if d > 1 else ''}"
    if len(sheet.columns) > d:
        text += f" ({len(sheet.columns)} with a column per category)"
    if sheet.name_column is not None:
        text += f", names of rows from {sheet.name_column!r}"
    if same := sheet.constant_columns:
        from fastal.cli.sheet import in_a_row

        which = in_a_row([short_repr(column) for column in same], 5)
        text += f"; {which} {'does' if len(same) == 1 else 'do'} not vary: no use for the model"
    return text


def _order_in_words(arguments: argparse.Namespace, campaign: Campaign) -> str:
    said = campaign.order
    if arguments.order is None and arguments.state is None:
        said += "; if they came in another one, --order COLUMN says so, and --state FILE knows it"
    return said


def _model_in_words(sheet: Sheet, campaign: Campaign) -> str:
    fit = campaign.learner.refits[-1]
    return (
        f"fitted to {fit.n_labels} labels: length scale {fit.lengthscale:.2g} standard deviations "
        f"of the features; {sheet.target} varies by {math.sqrt(fit.amplitude):.2g} about "
        f"{fit.mean:.3g}, a label's noise is {math.sqrt(fit.noise):.2g} (standard deviations)"
    )


def _report(
    arguments: argparse.Namespace,
    sheet: Sheet,
    campaign: Campaign,
    said: Answer,
    warned: list[str],
) -> ReportContent:
    """Return what the page says."""
    import warnings

    from fastal.cli.next_campaign import with_course

    rows, run = said.rows, None
    columns = [[str(sheet.lines[row]) for row in rows]]
    header = [sheet.unit]
    if sheet.names is not None:
        header.append("name")
        columns.append([sheet.names[row] for row in rows])
    if not said.random:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the earliest fits may fail
            run = with_course(campaign, arguments.seed).run()
        header += ["prediction", "its sd"]
        if rows:
            mean, var = run.gp.predict(sheet.X[rows], return_var=True)
            columns.append([f"{value:.4g}" for value in mean])
            columns.append([f"{math.sqrt(value):.2g}" for value in var + run.gp.noise])
    return ReportContent(
        title=f"{sheet.target}: label next, or stop?",
        verdict=said.sentence[0].upper() + said.sentence[1:],
        warnings=warned,
        facts=[
            ("still to come", said.still),
            *_facts(arguments, sheet, campaign, said),
        ],
        target=sheet.target,
        source=sheet.file,
        run=run,
        next_rows=ReportTable(header, list(zip(*columns, strict=True))) if rows else None,
        next_caption=_caption(said),
        label_names=None
        if run is None
        else [f"{sheet.unit} {sheet.row_name(row)}" for row in campaign.pool[run.indices].tolist()],
    )


def _caption(said: Answer) -> str:
    """Say what the rows of the page's table are."""
    many = len(said.rows) > 1
    text = f"The {len(said.rows)} rows" if many else "The row"
    text += " to label next"
    if said.random:
        text += ", drawn at random"
    elif many:
        text += ", in this order"
    return f"{text}, if you go on" if said.stop else text


def _record(
    arguments: argparse.Namespace,
    sheet: Sheet,
    campaign: Campaign,
    said: Answer,
    warned: list[str],
) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    learner = campaign.learner
    rows = [
        {
            "line": int(sheet.lines[row]),  # or the row of a spreadsheet
            "name": None if sheet.names is None else sheet.names[row],
        }
        for row in said.rows
    ]
    at = campaign.criterion.stopped_at
    return {
        "stop": said.stop,
        "answer": said.sentence,
        "still_to_come": said.still,
        "left": _number(said.left),
        "left_low": _number(said.low),
        "left_high": _number(said.high),
        "level": _number(said.level),
        "share": arguments.share,
        "stopped_at": None if at is None else at + learner.n_initial,
        "label_next": rows,
        "random": said.random,
        "warnings": warned,
        "changed": list(campaign.notes),
        "order": campaign.order,
        "file": os.fspath(arguments.file),
        "target": sheet.target,
        "features": list(sheet.features),
        "columns": list(sheet.columns),
        "name_column": sheet.name_column,
        "n_rows": len(sheet.y),
        "n_labels": learner.n_labels,
        "n_skipped": len(learner.skipped),
        "n_open": said.n_open,
        "refits": [fit._asdict() for fit in learner.refits],
        "seed": arguments.seed,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
