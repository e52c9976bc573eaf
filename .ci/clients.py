"""The libraries of fastal.adapters: what `.ci/run --clients` installs, runs, and writes down.

python .ci/clients.py groups [--long]      the groups, each an environment of its own
python .ci/clients.py requirements GROUP   what to install for one, a line each
python .ci/clients.py tests GROUP          the tests, pages and examples to run there
python .ci/clients.py record GROUP FILE    add the versions installed here to a JSON file
python .ci/clients.py table FILE PAGE      write the table into a page, between its marks

A library that no run has recorded stands in the table as not run; one that this run has not
recorded, with what an earlier one wrote.
"""

import importlib.metadata
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
import versions

# One place for the version of torch: any other drags in gigabytes for graphics cards where an index
# offers these builds first.
TORCH = "torch==2.13.0"

MARKS = "<!-- libraries: .ci/run --clients writes this table anew -->", "<!-- end -->"


class Library(NamedTuple):
    """A row of the table."""

    name: str
    package: str
    models: str
    extra: str = ""


class Group(NamedTuple):
    """Libraries that can live together."""

    libraries: tuple[str, ...]
    tests: tuple[str, ...]
    first: tuple[str, ...] = ()  # installed before the others
    more: tuple[str, ...] = ()  # needed besides
    oldest: tuple[str, ...] = ()  # at the lower bounds of pyproject.toml
    heavy: bool = False


LIBRARIES = (
    Library(
        "scikit-learn",
        "scikit-learn",
        "GaussianProcessRegressor, BayesianRidge, ARDRegression",
        "sklearn",
    ),
    Library("modAL", "modAL-python", "ActiveLearner, BayesianOptimizer", "modal"),
    Library("scikit-activeml", "scikit-activeml", "SklearnRegressor and its kin", "skactiveml"),
    Library("scikit-optimize", "scikit-optimize", "Optimizer, GaussianProcessRegressor", "skopt"),
    Library("bayesian-optimization", "bayesian-optimization", "BayesianOptimization", "bayes-opt"),
    Library("GPyTorch", "gpytorch", "ExactGP", "botorch"),
    Library("BoTorch", "botorch", "SingleTaskGP, MultiTaskGP, one of a ModelListGP", "botorch"),
    Library("Ax", "ax-platform", "Client", "ax"),
    Library("BoFire", "bofire", "surrogates and strategies on BoTorch", "bofire"),
    Library("GPy", "GPy", "GP with exact inference", "gpy"),
    Library("Emukit", "emukit", "wrappers of GPy and scikit-learn, loops", "emukit"),
    Library("GPflow", "gpflow", "GPR", "gpflow"),
    Library("SMT", "smt", "KRG", "smt"),
    Library(
        "OpenTURNS", "openturns", "GaussianProcessFitter, GaussianProcessRegression", "openturns"
    ),
    Library("tinygp", "tinygp", "GaussianProcess; `y` is given, or conditioned", "tinygp"),
    Library("george", "george", "GP; `y` is given", "george"),
    Library(
        "celerite2",
        "celerite2",
        "GaussianProcess; `y` and `order` are given, or conditioned",
        "celerite2",
    ),
    Library("Optuna", "optuna", "a callback", "optuna"),
    Library("small-text", "small-text", "a StoppingCriterion", "small-text"),
)

GROUPS = {
    "optimisers": Group(
        ("scikit-learn", "scikit-activeml", "scikit-optimize", "bayesian-optimization", "optuna",
         "small-text"),
        ("tests/adapters/test_skopt.py", "tests/adapters/test_bayes_opt.py",
         "tests/adapters/test_bounds_of.py",
         "tests/adapters/test_skactiveml.py", "tests/adapters/test_loops.py",
         "docs/others/optimisers.md", "docs/others/text.md",
         "examples/scikit_optimize_loop.py", "examples/optuna_loop.py",
         "examples/small_text_loop.py"),
    ),
    "processes": Group(
        ("GPy", "emukit", "smt", "openturns", "tinygp", "george", "celerite2"),
        ("tests/adapters/test_gpy.py", "tests/adapters/test_kriging.py",
         "tests/adapters/test_processes.py", "tests/adapters/test_loops.py",
         "docs/others/gpy.md", "docs/others/kriging.md", "docs/others/processes.md",
         "examples/emukit_loop.py"),
        more=("scikit-learn",),
    ),
    "columns": Group(  # no models: tables and columns in which people keep their numbers
        (),
        ("tests/package/test_conventions.py",),
        more=("pandas", "polars", "pyarrow", "scikit-learn"),
    ),
    "torch": Group(
        ("gpytorch", "botorch", "ax-platform", "bofire"),
        ("tests/adapters/test_botorch.py", "tests/adapters/test_botorch_loops.py",
         "docs/others/torch.md", "examples/bofire_loop.py", "examples/ax_loop.py"),
        first=(TORCH,),
        more=("bofire[optimization]", "scikit-learn"),
    ),
    "tensorflow": Group(
        ("gpflow",),
        ("tests/adapters/test_gpflow.py", "docs/others/gpflow.md"),
        heavy=True,
    ),
    "oldest scikit-learn": Group(
        ("scikit-learn", "modAL-python"),
        ("tests/adapters/test_bounds_of.py",
         "tests/adapters/test_modal.py"),
        oldest=("sklearn", "modal"),
    ),
    "oldest BoTorch": Group(
        ("gpytorch", "botorch"),
        ("tests/adapters/test_botorch.py",),
        first=(TORCH,),
        oldest=("botorch",),
    ),
}  # fmt: skip


def requirements(group):
    """Return what to install, besides fastal itself; the first in a run of pip of their own."""
    if group.oldest:
        project = versions.PROJECT
        lines = [f"{project['name']}[{','.join(group.oldest)}]"]
        return [*group.first, *sorted(set(versions.oldest(versions.expand(lines, set()))))]
    return [*group.first, *group.libraries, *group.more]


def record(name, file):
    """Add the versions that are installed here to a file."""
    path = Path(file)
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for package in GROUPS[name].libraries:
        version = importlib.metadata.version(package)
        found.setdefault(package, [])
        if version not in found[package]:
            found[package].append(version)
    path.write_text(json.dumps(found, indent=1), "utf-8")


def table(found, before=""):
    """Return the table, in Markdown; what this run has not recorded stays as it was before."""
    lines = ["| library | models | version tested | extra |", "|---|---|---|---|"]
    for library in LIBRARIES:
        kept = re.search(rf"^\| {re.escape(library.name)} \|.*\| ([^|]*) \|[^|]*\|$", before, re.M)
        seen = sorted(
            found.get(library.package, []), key=lambda v: [int(n) for n in re.findall(r"\d+", v)]
        )
        tested = ", ".join(seen) or (kept[1] if kept else "not run")
        extra = f"`fastal[{library.extra}]`" if library.extra else ""
        lines.append(f"| {library.name} | {library.models} | {tested} | {extra} |")
    return "\n".join(lines)


def write_table(file, page):
    """Write the table into a page, between its marks."""
    path = Path(page)
    text = path.read_text("utf-8")
    start, end = MARKS
    if text.count(start) != 1 or text.count(end) != 1:
        raise SystemExit(f"{page}: the marks {start} and {end} must stand there once")
    before, rest = text.split(start)
    old, after = rest.split(end)
    recorded = Path(file)
    found = json.loads(recorded.read_text("utf-8")) if recorded.exists() else {}
    path.write_text(f"{before}{start}\n{table(found, old)}\n{end}{after}", "utf-8")


def main(arguments):
    """Do what the command line says."""
    what, *rest = arguments
    if what == "groups":
        print(
            *(name for name, group in GROUPS.items() if "--long" in rest or not group.heavy),
            sep="\n",
        )
    elif what == "requirements":
        print(*requirements(GROUPS[rest[0]]), sep="\n")
    elif what == "tests":
        print(*GROUPS[rest[0]].tests, sep="\n")
    elif what == "record":
        record(*rest)
    elif what == "table":
        write_table(*rest)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
