"""fastal reproduce: the paper's experiments."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from fastal.cli.arguments import add_store, add_study_options, integer_argument
from fastal.cli.output import library_errors, study_settings, write_files
from fastal.studies.names import CLASS_SETS, CRITERIA, DATASETS, SIMULATORS

if TYPE_CHECKING:
    from fastal.cli.arguments import Commands
    from fastal.studies.decision import DecisionStudy

_REPRODUCE = """\
Computes the experiments of the paper anew (Ishibashi & Hino, AISTATS 2020). Its data sets are
downloaded once and kept in the user's cache folder, or in the one that FASTAL_DATA names.
"""


def add_reproduce(commands: Commands) -> None:
    """Add ``fastal reproduce`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "reproduce",
        help="compute the tables and figures of the paper",
        description=_REPRODUCE,
        allow_abbrev=False,
    )
    parts: Commands = parser.add_subparsers(metavar="WHAT", required=True)

    table1 = parts.add_parser(
        "table1",
        help="e_stop of five criteria on six data sets, the paper's values beside them",
        allow_abbrev=False,
    )
    add_study_options(table1, out=None)
    add_store(table1, "DIR")
    _add_names(table1, "datasets", DATASETS)
    _add_names(table1, "criteria", CRITERIA)
    table1.set_defaults(run=_table1, broken_pipe_status=0)

    figure1 = parts.add_parser(
        "figure1",
        help="the averaged error against the labels, with the stop of each criterion",
        allow_abbrev=False,
    )
    add_study_options(figure1, out=".")
    add_store(figure1, "DIR")
    _add_names(figure1, "datasets", DATASETS)
    _add_names(figure1, "criteria", CRITERIA)
    figure1.set_defaults(run=_figure1, broken_pipe_status=0)

    tightness = parts.add_parser(
        "tightness",
        help="the gap of the expected error at each label, and its bound",
        allow_abbrev=False,
    )
    add_study_options(tightness, out=".")
    tightness.set_defaults(run=_tightness, broken_pipe_status=0)

    lookahead = parts.add_parser(
        "lookahead",
        help="beyond the paper: labels used against what they leave unused, rule by rule",
        allow_abbrev=False,
    )
    add_study_options(lookahead, out=None)
    add_store(lookahead, "DIR")
    _add_names(lookahead, "datasets", DATASETS)
    lookahead.set_defaults(run=_lookahead, broken_pipe_status=0)

    decision = parts.add_parser(
        "decision",
        help="beyond the paper: what a stop leaves unused, and whether StillToCome keeps its share",
        allow_abbrev=False,
    )
    add_study_options(decision, out=None)
    decision.add_argument(
        "--pool",
        type=integer_argument(2),
        nargs="+",
        default=[100, 400],
        metavar="N",
        help="points in a pool, one number or several (default: 100 400)",
    )
    add_store(decision, "DIR")
    _add_names(decision, "datasets", (*DATASETS, *SIMULATORS))
    decision.set_defaults(run=_decision, broken_pipe_status=0)

    campaign = parts.add_parser(
        "campaign",
        help="beyond the paper: the same when nobody knows the hyper-parameters",
        allow_abbrev=False,
    )
    add_study_options(campaign, out=None, runs=20)
    campaign.add_argument(
        "--pool",
        type=integer_argument(6),
        nargs="+",
        default=[100, 300],
        metavar="N",
        help="points in a pool, one number or several (default: 100 300)",
    )
    add_store(campaign, "DIR")
    campaign.add_argument(
        "--estimator",
        choices=("weak", "plain"),
        help="fit with the weak prior, or by the restricted likelihood alone (default: as `learn`)",
    )
    _add_names(campaign, "datasets", DATASETS)
    campaign.set_defaults(run=_campaign, broken_pipe_status=0)

    classes = parts.add_parser(
        "classes",
        help="beyond the paper: many classes, what a stop leaves unused (needs scikit-learn)",
        allow_abbrev=False,
    )
    add_study_options(classes, out=None, runs=5)
    classes.add_argument(
        "--pool",
        type=integer_argument(12),
        default=150,
        metavar="N",
        help="points in a pool (default: 150)",
    )
    _add_names(classes, "datasets", CLASS_SETS)
    classes.set_defaults(run=_classes, broken_pipe_status=0)


def _add_names(parser: argparse.ArgumentParser, what: str, names: tuple[str, ...]) -> None:
    def listed(text: str) -> list[str]:
        chosen = [name for name in text.split(",") if name]
        for name in chosen:
            if name not in names:
                raise argparse.ArgumentTypeError(
                    f"unknown {name!r}: choose from {', '.join(names)}"
                )
        return chosen

    parser.add_argument(
        f"--{what}",
        type=listed,
        nargs="+",
        metavar="NAME",
        help=f"some of {', '.join(names)} (default: all)",
    )


def _chosen(given: list[list[str]] | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in the order of the paper; all if none are given."""
    wanted = {name for part in given or [] for name in part}
    return tuple(name for name in names if name in wanted) or names


def _names(arguments: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return _chosen(arguments.datasets, DATASETS), _chosen(arguments.criteria, CRITERIA)


def _table1(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.studies.table_one import table1

        table = table1(*_names(arguments), store=arguments.store, **study_settings(arguments))
        print(table)
        if arguments.out is not None:
            write_files(
                arguments.out,
                {
                    "table1.csv": table.to_csv,
                    "table1.md": partial(_write_text, table.to_markdown()),
                    "table1_runs.csv": table.records_to_csv,
                },
            )
    return 0


def _figure1(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.plotting.figure_one import figure1
        from fastal.plotting.style import require_matplotlib
        from fastal.studies.table_one import outcomes

        require_matplotlib()
        found = outcomes(*_names(arguments), store=arguments.store, **study_settings(arguments))
        write_files(arguments.out, {"figure1.png": figure1(found).savefig})
    return 0


def _tightness(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.plotting.bound_gap import tightness_figure
        from fastal.plotting.style import require_matplotlib
        from fastal.studies.bound_gap import tightness

        require_matplotlib()
        found = tightness(**study_settings(arguments))
        for one in found:
            print(one)
        write_files(arguments.out, {"tightness.png": tightness_figure(found).savefig})
    return 0


def _lookahead(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.studies.label_cost import tradeoff

        found = tradeoff(
            _chosen(arguments.datasets, DATASETS),
            store=arguments.store,
            **study_settings(arguments),
        )
        print(found)
        if arguments.out is not None:
            from fastal.plotting.label_cost import tradeoff_figure

            picture = tradeoff_figure(found)
            write_files(
                arguments.out, {"lookahead.csv": found.to_csv, "lookahead.png": picture.savefig}
            )
    return 0


def _decision(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.studies.decision import decision_study

        if arguments.out is not None:
            from fastal.plotting.style import require_matplotlib

            require_matplotlib()
        found = decision_study(
            _chosen(arguments.datasets, (*DATASETS, *SIMULATORS)),
            pools=list(dict.fromkeys(arguments.pool)),
            store=arguments.store,
            **study_settings(arguments),
        )
        _show(found, arguments.out, "decision")
    return 0


def _campaign(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.studies.campaign import campaign_study

        if arguments.out is not None:
            from fastal.plotting.style import require_matplotlib

            require_matplotlib()
        found = campaign_study(
            _chosen(arguments.datasets, DATASETS),
            pools=list(dict.fromkeys(arguments.pool)),
            store=arguments.store,
            estimator=arguments.estimator,
            **study_settings(arguments),
        )
        _show(found, arguments.out, "campaign")
    return 0


def _show(found: DecisionStudy, folder: str | None, name: str) -> None:
    """Print a study; write it to the files of a folder, if there is one."""
    print(found)
    if folder is not None:
        from fastal.plotting.decision import decision_figure

        write_files(
            folder,
            {
                f"{name}.csv": found.to_csv,
                f"{name}.txt": partial(_write_text, f"{found}\n"),
                f"{name}.md": partial(_write_text, found.to_markdown()),
                f"{name}.svg": decision_figure(found).savefig,
            },
        )


def _classes(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.studies.many_classes import class_study

        settings = study_settings(arguments)
        del settings["progress"]  # a line per data set is enough
        found = class_study(
            _chosen(arguments.datasets, CLASS_SETS), pool=arguments.pool, **settings
        )
        print(found)
        if arguments.out is not None:
            write_files(
                arguments.out,
                {
                    "classes.txt": partial(_write_text, f"{found}\n"),
                    "classes.md": partial(_write_text, found.to_markdown()),
                },
            )
    return 0


def _write_text(text: str, path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
