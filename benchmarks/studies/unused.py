"""What a stop leaves unused, rule by rule: prints the tables of docs/when.md.

python -m benchmarks.studies.unused [--learnt] [--runs N] [--pool N ...] [--datasets NAME ...]

Campaigns over the paper's data sets, by its protocol, and over three deterministic simulators. With
`--learnt` the hyper-parameters are not known but fitted on the way, on the paper's sets only. Of a
run, unused is the share of the fall of the RMSE, from the first model to the whole pool, that is
still to come at the stop. Sets whose error does not fall by a tenth do not count.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

from fastal import MovementBelow, Stopper, simulate
from fastal.models.weak import LEAST_LABELS
from fastal.paper.names import DATASETS
from fastal.paper.new_parameters import AsBoundsCome
from fastal.paper.protocol import load, problem
from fastal.paper.text import aligned

from .simulators import SIMULATORS, simulator

SHARES = (0.02, 0.05, 0.1, 0.2, 0.3)
PAPER = "paper's rule, alpha 0.001"
TEST_ROWS = 100  # fewer say little
SELECTIONS = {"max_variance": "labels by variance", "random": "labels at random"}


class StillAsBoundsCome(MovementBelow):
    """Keeps each bound as it came, and takes none anew after a fit."""

    def _see_fit(self, campaign: Any, bounds: Any, at_edge: bool) -> None:
        pass


class Outcome(NamedTuple):
    """A rule on one set: means over the runs."""

    dataset: str
    labels: float  # share of the pool
    unused: float


def known_rules() -> dict[str, Stopper | MovementBelow]:
    still = {f"MovementBelow({share:g})": MovementBelow(share) for share in SHARES}
    return still | {PAPER: Stopper(fall=False)}


def learnt_rules() -> dict[str, Stopper | MovementBelow]:
    come = {
        f"MovementBelow({share:g}), as bounds come": StillAsBoundsCome(share) for share in SHARES
    }
    still = {f"MovementBelow({share:g})": MovementBelow(share) for share in SHARES}
    return come | still | {PAPER: AsBoundsCome(fall=False)}


def outcomes(
    name: str, X: Any, y: Any, rules: dict[str, Any], first: int, **settings: Any
) -> dict[str, Outcome]:
    """Return what each rule did on a set; nothing if its error does not fall by a tenth.

    first : labels of the first model.
    """
    result = simulate(
        X, y, criteria=list(rules.values()), seed=0, n_jobs=-1, errors="raise", **settings
    )
    pool = result.pool_size
    rmse = result.rmse[:, first - 1 :]
    begin, end = rmse[:, 0], rmse[:, -1]
    if end.mean() > 0.9 * begin.mean():
        return {}
    stops = np.where(result.criteria_stops < 0, pool, result.criteria_stops)
    falls = begin > end
    found = {}
    for rule, at in zip(rules, stops.T, strict=True):
        then = rmse[np.arange(len(at)), at - first]
        shares = (then - end)[falls] / (begin - end)[falls]
        found[rule] = Outcome(name, float(np.mean(at / pool)), float(shares.mean()))
    return found


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def table(title: str, found: list[dict[str, Outcome]], rules: dict[str, Any]) -> str:
    """Return means over the sets, and the worst one, as text."""
    found = [one for one in found if one]
    groups = {"paper's sets": DATASETS, "simulators": SIMULATORS}
    names = {outcome.dataset for one in found for outcome in one.values()}
    if not (names & set(DATASETS) and names & set(SIMULATORS)):
        groups = {}
    rows = [["rule", "unused", "worst set", "labels", *groups]]
    for rule in rules:
        sets = [one[rule] for one in found]
        worst = max(sets, key=lambda one: one.unused)
        rows.append([
            rule,
            percent(np.mean([one.unused for one in sets])),
            f"{percent(worst.unused)} {worst.dataset}",
            percent(np.mean([one.labels for one in sets]), 0),
            *(
                percent(np.mean([one.unused for one in sets if one.dataset in group]))
                for group in groups.values()
            ),
        ])  # fmt: skip
    sets = f"{len(names)} set{'' if len(names) == 1 else 's'}"
    return f"share asked and unused left: {title}, {sets}\n{aligned(rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learnt", action="store_true", help="hyper-parameters are not known")
    parser.add_argument("--runs", type=int, help="by default 100, and 20 with --learnt")
    parser.add_argument("--pool", type=int, nargs="+", help="by default 100 and 400, or 300")
    parser.add_argument("--datasets", nargs="+", default=(*DATASETS, *SIMULATORS))
    options = parser.parse_args()
    learnt = options.learnt
    runs = options.runs or (20 if learnt else 100)
    rules = learnt_rules() if learnt else known_rules()
    names = [name for name in options.datasets if name in DATASETS or not learnt]
    data = {}
    for name in names:
        if learnt:
            data[name] = (*load(name), None)
        else:
            one = simulator(name) if name in SIMULATORS else problem(name)
            data[name] = one.X, one.y, one.gp
    tables = []
    selections = list(SELECTIONS)[:1] if learnt else list(SELECTIONS)
    for pool in options.pool or ((100, 300) if learnt else (100, 400)):
        for selection in selections:
            found = [
                outcomes(
                    name, X, y, rules, LEAST_LABELS if learnt else 1, gp=gp, n_runs=runs,
                    pool_size=pool, acquisition=selection,
                )
                for name, (X, y, gp) in data.items()
                if len(y) >= pool + TEST_ROWS
            ]  # fmt: skip
            tables.append(table(f"pool {pool}, {SELECTIONS[selection]}", found, rules))
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
