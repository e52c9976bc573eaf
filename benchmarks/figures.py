"""Print every tracked figure beside its target: ``python -m benchmarks.figures [NAME ...]``.

A figure is a ``track_`` benchmark; its target is the first sentence of its docstring. Names select
files, as in ``bench_runs``.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from .smoke import discover, load, params


def main(names: list[str]) -> None:
    """Print a Markdown table of all figures of the named files, or of all files."""
    print("| figure | measured | target |\n|---|---|---|")
    for module in load(Path(__file__).parent):
        if names and module.__name__.rpartition(".")[2] not in names:
            continue
        for benchmark in discover(module)[0]:
            if not benchmark.attribute.startswith("track_"):
                continue
            axes = [
                axis if isinstance(axis, list | tuple) else [axis] for axis in params(benchmark)
            ]
            for combination in itertools.product(*axes):
                holder = benchmark.owner() if benchmark.owner else benchmark.module
                body = getattr(holder, benchmark.attribute)
                try:
                    if benchmark.owner and hasattr(holder, "setup"):
                        holder.setup(*combination)
                except NotImplementedError:
                    continue
                words = benchmark.name.removeprefix("bench_").replace("track_", "")
                title = words.replace("_", " ").replace(".", ": ")
                shown = f" ({', '.join(map(str, combination))})" if combination else ""
                unit = getattr(body, "unit", "")
                target = (body.__doc__ or "").strip().partition(".\n")[0].rstrip(".")
                print(f"| {title}{shown} | {body(*combination):.3g} {unit} | {target} |")


if __name__ == "__main__":
    main(sys.argv[1:])
