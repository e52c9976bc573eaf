import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path

# Before NumPy is imported: tests run side by side (`pytest -n auto`), and threads of BLAS that wait for
# one another on busy cores make a fit take ten times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

# What several test files share is imported by its name; pytest's importlib mode adds no folder.
sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent / "learning"))  # its twin
pytest.register_assert_rewrite(
    "boundary_calls",
    "boundary_values",
    "c_door",
    "labelling_problem",
    "page_blocks",
    "pool_problems",
    "programs_mirror",
    "programs_problems",
    "saved_states",
)

# A shell without a terminal starts background jobs with Ctrl-C ignored, and their children inherit it:
# tests that interrupt something would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# ci: the same examples on every run, so that a red run means a change. fuzz: `.ci/run --long`.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each process of `pytest -n` a stretch of the suite instead of tests in turn.

    Processes that meet in one file would all compile its kernels; at a distance, one finds what the
    other has kept.
    """
    if config.getvalue("dist") != "load":  # asked for by hand
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session")
def loop():
    """A small problem on which every loop stops: inputs (60, 2), labels, and their noise."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(60)
    return X, y, 0.01


@pytest.fixture(scope="module")
def benchmarks():
    """Import a module of the benchmarks by name; nothing stays imported.

    By its place: the suite also runs away from the sources.
    """
    folder = Path(__file__).parents[1] / "benchmarks"
    spec = importlib.util.spec_from_file_location(
        "planted_benchmarks", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    yield lambda name: importlib.import_module(f"{spec.name}.{name}")
    for name in [name for name in sys.modules if name.startswith(spec.name)]:
        del sys.modules[name]
