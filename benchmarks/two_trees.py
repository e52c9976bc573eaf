"""The rows of the report in two source trees, in turn: python -m benchmarks.two_trees OLD NEW.

For "did this make it slower?" on a machine that others use too. Both trees must be built in place
(`python setup.py build_ext --inplace`), and need the same packages. Each section of the report runs
in a process of its own, once in each tree per round; the best time of a row counts, and how far its
second best lies away is its noise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

# Only our side of a row is measured: the peers are the same in both trees.
CODE = """
import json, math, os, sys
from benchmarks import selection
import fastal
assert os.path.samefile(os.path.dirname(os.path.dirname(fastal.__file__)), os.getcwd())
in_turn = selection.in_turn
selection.in_turn = lambda ours, *peers, **how: [*in_turn(ours, **how), *(math.nan for _ in peers)]
selection.once = lambda peer: math.nan
section = {one.__name__: one for one in selection.SECTIONS}[sys.argv[1]]
rows = [(row.what, row.peer_name, row.ours) for row in section(selection.Limits.measured())]
print("ROWS", json.dumps(rows))
"""
SECTIONS = ("decisions", "bounds", "models", "learning", "simulations", "processes")


def measured(tree: str, section: str) -> dict[tuple[str, str], float]:
    """Return row and peer -> seconds, of one section in one tree."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, section],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": os.path.abspath(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{tree}, {section}: {done.stderr}")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("ROWS "))
    return {(what, peer): ours for what, peer, ours in json.loads(line[5:])}


def noise(times: list[float]) -> float:
    """Return how far the second best of some times lies above the best."""
    best, *others = sorted(times)
    return min(others) / best - 1 if others else 0.0


def main() -> None:
    """Measure, and print a line per row and a sentence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    args = parser.parse_args()
    slower, seen = [], 0
    print(f"{'best of ' + str(args.rounds):64} {'old':>9} {'new':>9}  new/old  noise")
    for section in args.sections:
        found: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
        for turn in range(args.rounds):
            for side in (0, 1) if turn % 2 == 0 else (1, 0):
                for row, ours in measured((args.old, args.new)[side], section).items():
                    found.setdefault(row, ([], []))[side].append(ours)
        for (what, _), (old, new) in found.items():
            if not old or not new:
                continue
            seen += 1
            over, spread = min(new) / min(old), max(noise(old), noise(new))
            if over > 1.03 + spread:
                slower.append(what)
            times = f"{min(old):9.3g} {min(new):9.3g}"
            print(f"{what[:64]:64} {times}  {over:7.3f}  {spread:5.1%}", flush=True)
    print(
        f"{len(slower)} of {seen} rows slower by more than 3 % and their noise"
        + "".join(f"\n  {what}" for what in slower)
    )


if __name__ == "__main__":
    main()
