"""fastal runs: the runs test of a sequence of numbers."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from fastal._options import ALTERNATIVES, TIES, TWO_SIDED
from fastal.cli.arguments import add_alpha, add_numbers_file, parse_number
from fastal.cli.errors import UserError
from fastal.cli.streams import file_name, read_numbers

if TYPE_CHECKING:
    from fastal.cli.arguments import Commands


def add_runs(commands: Commands) -> None:
    """Add ``fastal runs`` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Where to add it.
    """
    parser = commands.add_parser(
        "runs",
        help="test whether a sequence of numbers is in random order",
        description="Wald-Wolfowitz runs test of a sequence of numbers about a cutoff. Too few "
        "runs mean that high and low values keep together, as after a shift of level.",
        allow_abbrev=False,
    )
    add_numbers_file(parser, "one number per line")
    parser.add_argument(
        "--cutoff",
        type=_cutoff,
        default="auto",
        metavar="{auto,median,mean,NUMBER}",
        help="what divides below from above (default: auto, the median; numbers of two different "
        "values are taken as the two symbols that they are)",
    )
    parser.add_argument(
        "--ties",
        choices=TIES,
        default="above",
        help="values at the cutoff count as above, as below, or are dropped (default: above)",
    )
    parser.add_argument(
        "--alternative",
        choices=ALTERNATIVES,
        default="less",
        help="reject for too few runs, too many, or both (default: less, the stopping rule's)",
    )
    parser.add_argument(
        "--two-sided",
        choices=TWO_SIDED,
        default="double",
        help="two-sided p-value of the exact test: twice the smaller tail, at least as far from "
        "the mean, at most as likely (default: double)",
    )
    parser.add_argument(
        "--continuity",
        action="store_true",
        help="correct the normal approximation by half a run towards the mean",
    )
    add_alpha(parser, "reject when the exact p-value is at most this")
    parser.set_defaults(run=_runs, broken_pipe_status=0)


def _cutoff(text: str) -> str | float:
    if text in ("auto", "median", "mean"):
        return text
    value = parse_number(text)
    if value is None or not math.isfinite(value):
        raise argparse.ArgumentTypeError(
            f"must be median, mean or auto, or a finite number, got {text!r}"
        )
    return value


def _runs(arguments: argparse.Namespace) -> int:
    values = read_numbers(arguments.file)
    if len(values) < 2:
        name = file_name(arguments.file)
        raise UserError(f"{name}: the runs test needs at least two values, got {len(values)}")

    import numpy as np

    from fastal.runs import RunsDistribution, runs_test

    x = np.asarray(values)
    exact, normal = (
        runs_test(
            x,
            cutoff=arguments.cutoff,
            alternative=arguments.alternative,
            method=method,
            ties=arguments.ties,
            two_sided=arguments.two_sided,
            continuity=arguments.continuity,
        )
        for method in ("exact", "normal")
    )
    below, above, runs, p = exact.n_below, exact.n_above, exact.n_runs, exact.pvalue
    expected = RunsDistribution(below, above).mean()
    cutoff = f"{exact.cutoff:.6g}"
    symbols = np.unique(x).tolist() if arguments.cutoff == "auto" else []
    if isinstance(arguments.cutoff, str):
        name = "median" if arguments.cutoff == "auto" else arguments.cutoff
        cutoff = f"the {name} {cutoff}"
    if len(symbols) == 2:
        sides = f"{below} are {symbols[0]:g}, {above} are {symbols[1]:g}"
    else:
        sides = {
            "above": f"{below} below, {above} at or above {cutoff}",
            "below": f"{below} at or below, {above} above {cutoff}",
            "drop": f"{below} below, {above} above {cutoff}, {len(x) - below - above} dropped",
        }[arguments.ties]
    print(f"values            {len(x)}: {sides}")
    print(f"runs              {runs}, expected {expected:.6g}")
    print(f"p-value (exact)   {p:.6g} ({arguments.alternative})")
    print(f"p-value (normal)  {normal.pvalue:.6g} ({arguments.alternative})")
    if below == 0 or above == 0:
        verdict = "All values are on one side of the cutoff: there is no order to test."
    elif not p <= arguments.alpha:
        verdict = f"No sign against random order at alpha = {arguments.alpha:g}."
    elif runs < expected:
        verdict = f"Too few runs for random order at alpha = {arguments.alpha:g}: "
        verdict += "high and low values keep together."
    else:
        verdict = f"Too many runs for random order at alpha = {arguments.alpha:g}: "
        verdict += "high and low values alternate."
    print(f"verdict           {verdict}")
    return 0
