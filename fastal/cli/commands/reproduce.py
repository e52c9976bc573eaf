"""The commands ``fastal reproduce``, the paper's experiments, and ``fastal compare``, one's own.

Only the standard library is imported here; the commands import what they need when they run. What
parses options and ends with one line on standard error is `fastal.cli`'s, which calls
`add_reproduce` and `add_compare`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastal.cli.arguments import Commands

# The same names as in `fastal.paper`, which takes a second to import.
DATASETS = ("artificial", "airfoil", "power_plant", "protein", "concrete", "yacht")

CRITERIA = ("ground_truth", "proposed", "pac_bayes", "cross_validation", "max_variance")

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
    _add_common(table1, out=None)
    _add_names(table1, "datasets", DATASETS)
    _add_names(table1, "criteria", CRITERIA)
    table1.set_defaults(run=_table1, gone=0)

    figure1 = parts.add_parser(
        "figure1",
        help="the averaged error against the labels, with the stop of each criterion",
        allow_abbrev=False,
    )
    _add_common(figure1, out=".")
    _add_names(figure1, "datasets", DATASETS)
    _add_names(figure1, "criteria", CRITERIA)
    figure1.set_defaults(run=_figure1, gone=0)

    tightness = parts.add_parser(
        "tightness",
        help="the gap of the expected error at each label, and its bound",
        allow_abbrev=False,
    )
    _add_common(tightness, out=".")
    tightness.set_defaults(run=_tightness, gone=0)

    lookahead = parts.add_parser(
        "lookahead",
        help="beyond the paper: labels used against what they leave unused, rule by rule",
        allow_abbrev=False,
    )
    _add_common(lookahead, out=None)
    _add_names(lookahead, "datasets", DATASETS)
    lookahead.set_defaults(run=_lookahead, gone=0)


def _add_common(parser: argparse.ArgumentParser, out: str | None) -> None:
    from fastal.cli.arguments import _count, _threads

    parser.add_argument(
        "--runs", type=_count(1), default=100, metavar="N", help="campaigns (default: 100)"
    )
    parser.add_argument(
        "--seed", type=_count(0), default=0, metavar="N", help="seed of all that is random"
    )
    parser.add_argument(
        "--jobs",
        type=_threads,
        default=0,
        metavar="N",
        help="threads (default: 0, all cores); they do not change results",
    )
    parser.add_argument(
        "--out",
        default=out,
        metavar="DIR",
        help="folder to write files to, made if need be"
        + (" (default: this one)" if out else " (default: none are written)"),
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def _add_names(parser: argparse.ArgumentParser, what: str, names: tuple[str, ...]) -> None:
    import argparse

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


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    shown = not arguments.quiet and sys.stderr is not None

    def tell(text: str) -> None:
        if shown:
            print(text, file=sys.stderr, flush=True)

    return {
        "runs": arguments.runs,
        "seed": arguments.seed,
        "jobs": arguments.jobs or -1,
        "progress": shown,
        "tell": tell,
    }


@contextmanager
def _in_words() -> Iterator[None]:
    """Turn what data or files can do wrong into the user's one line."""
    from fastal.cli.arguments import in_options
    from fastal.cli.errors import _UserError

    try:
        yield
    except (ValueError, MemoryError, OSError, ImportError) as error:
        raise _UserError(in_options(str(error))) from None


def _written(folder: str, files: dict[str, Callable[[str], object]]) -> None:
    """Write files to a folder, and say so."""
    os.makedirs(folder, exist_ok=True)
    for name, write in files.items():
        path = os.path.join(folder, name)
        write(path)
        print(f"written: {path}")


def _table1(arguments: argparse.Namespace) -> int:
    with _in_words():
        from fastal.studies.table_one import table1

        table = table1(*_names(arguments), **_settings(arguments))
        print(table)
        if arguments.out is not None:

            def markdown(path: str) -> None:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(table.to_markdown())

            _written(
                arguments.out,
                {
                    "table1.csv": table.to_csv,
                    "table1.md": markdown,
                    "table1_runs.csv": table.records_to_csv,
                },
            )
    return 0


def _figure1(arguments: argparse.Namespace) -> int:
    with _in_words():
        from fastal.plotting.figure_one import figure1
        from fastal.plotting.style import require_matplotlib
        from fastal.studies.table_one import outcomes

        require_matplotlib()
        found = outcomes(*_names(arguments), **_settings(arguments))
        _written(arguments.out, {"figure1.png": figure1(found).savefig})
    return 0


def _tightness(arguments: argparse.Namespace) -> int:
    with _in_words():
        from fastal.plotting.bound_gap import tightness_figure
        from fastal.plotting.style import require_matplotlib
        from fastal.studies.bound_gap import tightness

        require_matplotlib()
        found = tightness(**_settings(arguments))
        for one in found:
            print(one)
        _written(arguments.out, {"tightness.png": tightness_figure(found).savefig})
    return 0


def _lookahead(arguments: argparse.Namespace) -> int:
    with _in_words():
        from fastal.studies.label_cost import tradeoff

        found = tradeoff(_chosen(arguments.datasets, DATASETS), **_settings(arguments))
        print(found)
        if arguments.out is not None:
            from fastal.plotting.label_cost import tradeoff_figure

            picture = tradeoff_figure(found)
            _written(
                arguments.out, {"lookahead.csv": found.to_csv, "lookahead.png": picture.savefig}
            )
    return 0
