"""Run every benchmark once at its smallest size: ``python benchmarks/smoke.py [DIRECTORY]``.

Of a parameter whose values are numbers the smallest is taken, of a leading one of texts
(implementations) all, of anything else the first. NotImplementedError in a setup skips one
combination, as it does in asv.
The exit status is 1 if a benchmark fails, is skipped in every combination or could never be found
by asv. Only the standard library is needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import math
import numbers
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

PREFIXES = ("time_", "timeraw_", "track_", "peakmem_", "mem_")
FIXTURES = ("setup", "setup_cache", "teardown")


class Benchmark(NamedTuple):
    """A benchmark as asv sees it; `owner` is its class, or None for a function."""

    name: str
    module: ModuleType
    owner: type | None
    attribute: str


def load(directory: Path) -> list[ModuleType]:
    """Import ``bench_*.py`` as modules of a package, so that they can import their neighbours."""
    package = directory.resolve().name
    spec = importlib.util.spec_from_file_location(
        package, directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    if spec is None or spec.loader is None:
        raise FileNotFoundError(directory / "__init__.py")
    sys.modules[package] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[package])
    stems = sorted(path.stem for path in directory.glob("bench_*.py"))
    return [importlib.import_module(f"{package}.{stem}") for stem in stems]


def discover(module: ModuleType) -> tuple[list[Benchmark], list[str]]:
    """Return the benchmarks of a module, and the names that look like one but would never run."""
    short = module.__name__.rpartition(".")[2]
    found: list[Benchmark] = []
    lost: list[str] = []
    for name, thing in vars(module).items():
        # An imported name belongs to the module that defines it; an underscore hides from asv.
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(thing):
            if name.startswith(PREFIXES):
                found.append(Benchmark(f"{short}.{name}", module, None, name))
        elif inspect.isclass(thing):
            methods = [
                method
                for method, _ in inspect.getmembers(thing, inspect.isfunction)
                if not method.startswith("_") and method not in FIXTURES
            ]
            for method in methods:
                if method.startswith(PREFIXES):
                    found.append(Benchmark(f"{short}.{name}.{method}", module, thing, method))
                else:
                    lost.append(f"{short}.{name}.{method}")
    return found, lost


def params(benchmark: Benchmark) -> Any:
    """Return the parameters of a benchmark: its own, else its class's, else its module's."""
    home: Any = benchmark.owner or benchmark.module
    for source in (getattr(home, benchmark.attribute), home, benchmark.module):
        if hasattr(source, "params"):
            return source.params
    return []


def combinations(axes: Any) -> list[tuple[Any, ...]]:
    """Return the smallest combinations of asv's `params`: one list of values, or a list of them."""
    axes = list(axes)
    if axes and not isinstance(axes[0], list | tuple):
        axes = [axes]
    return list(itertools.product(*(_smallest(axis, i == 0) for i, axis in enumerate(axes))))


def _smallest(axis: Any, leading: bool) -> list[Any]:
    values = list(axis)
    if leading and all(isinstance(value, str) for value in values):
        return values
    if all(isinstance(value, numbers.Real) for value in values):
        return [min(values)]
    return values[:1]


def run(benchmark: Benchmark, combination: tuple[Any, ...]) -> bool:
    """Run one benchmark once; False if its setup skips it."""
    if benchmark.owner is None:
        holder: Any = benchmark.module
        body = getattr(holder, benchmark.attribute)
        sources = [benchmark.module, body]
    else:
        holder = benchmark.owner()
        body = getattr(holder, benchmark.attribute)
        sources = [benchmark.module, holder, body]

    arguments = combination
    for source in reversed(sources):
        if hasattr(source, "setup_cache"):
            arguments = (source.setup_cache(), *combination)
            break
    try:
        for source in sources:
            if hasattr(source, "setup"):
                source.setup(*arguments)
    except NotImplementedError:
        return False
    try:
        value = body(*arguments)
        if benchmark.attribute.startswith("timeraw_"):
            code, setup = (value, "") if isinstance(value, str) else value
            subprocess.run([sys.executable, "-c", f"{setup}\n{code}"], check=True)
        number = isinstance(value, numbers.Real) and not math.isnan(value)
        if benchmark.attribute.startswith("track_") and not number:
            raise TypeError(f"a track_ benchmark must return a number, got {value!r}")
    finally:
        for source in reversed(sources):
            if hasattr(source, "teardown"):
                source.teardown(*arguments)
    return True


def main(directory: Path) -> int:
    """Run all benchmarks of a directory once and return the exit status."""
    ran = skipped = 0
    problems: list[str] = []
    modules = load(directory)
    if not modules:
        problems.append(f"{directory.name}: no bench_*.py")
    for module in modules:
        benchmarks, lost = discover(module)
        problems += [f"{name}: no prefix of asv, never runs" for name in lost]
        if not benchmarks:
            problems.append(f"{module.__name__}: no benchmark")
        for benchmark in benchmarks:
            done = 0
            for combination in combinations(params(benchmark)):
                label = f"{benchmark.name}({', '.join(map(repr, combination))})"
                start = time.perf_counter()
                try:
                    if not run(benchmark, combination):
                        skipped += 1
                        print(f"  skipped  {label}", flush=True)
                        continue
                except Exception:
                    traceback.print_exc()
                    problems.append(f"{label}: failed")
                else:
                    ran += 1
                    print(f"{time.perf_counter() - start:8.2f}s  {label}", flush=True)
                done += 1
            if not done:
                problems.append(f"{benchmark.name}: skipped in every combination")
    for problem in problems:
        print(f"smoke: {problem}", file=sys.stderr)
    print(f"smoke: {ran} ran, {skipped} skipped, {len(problems)} problems in {len(modules)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
