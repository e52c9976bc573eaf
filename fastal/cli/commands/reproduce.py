"""fastal reproduce: the paper's experiments."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from fastal.cli.arguments import add_store, add_study_options
from fastal.cli.output import library_errors, study_settings, write_files
from fastal.paper.names import CRITERIA, DATASETS

if TYPE_CHECKING:
    from fastal.cli.arguments import Commands

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
        help="Figure 2: the gap of the expected error at each label, and its bound",
        allow_abbrev=False,
    )
    add_study_options(tightness, out=".")
    tightness.set_defaults(run=_tightness, broken_pipe_status=0)

    refits = parts.add_parser(
        "refits",
        help="section 5.3: hyper-parameters fitted on the way, bounds as they come or all anew",
        allow_abbrev=False,
    )
    add_study_options(refits, out=None, runs=20)
    add_store(refits, "DIR")
    _add_names(refits, "datasets", DATASETS)
    refits.set_defaults(run=_refits, broken_pipe_status=0)


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
        from fastal.paper.table_one import table1

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
        from fastal.paper.table_one import outcomes
        from fastal.plotting.figure_one import figure1
        from fastal.plotting.style import require_matplotlib

        require_matplotlib()
        found = outcomes(*_names(arguments), store=arguments.store, **study_settings(arguments))
        write_files(arguments.out, {"figure1.png": figure1(found).savefig})
    return 0


def _tightness(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.paper.bound_gap import tightness
        from fastal.plotting.bound_gap import tightness_figure
        from fastal.plotting.style import require_matplotlib

        require_matplotlib()
        found = tightness(**study_settings(arguments))
        for one in found:
            print(one)
        write_files(arguments.out, {"tightness.png": tightness_figure(found).savefig})
    return 0


def _refits(arguments: argparse.Namespace) -> int:
    with library_errors():
        from fastal.paper.new_parameters import two_ways

        chosen = _chosen(arguments.datasets, DATASETS)
        found = two_ways(chosen, store=arguments.store, **study_settings(arguments))
        print(found)
        if arguments.out is not None:
            write_files(arguments.out, {"refits.txt": partial(_write_text, f"{found}\n")})
    return 0


def _write_text(text: str, path: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
