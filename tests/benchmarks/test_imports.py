"""Benchmarks import public names only, so that they run on older versions too."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import fastal

FILES = sorted((Path(__file__).parents[2] / "benchmarks").glob("bench_*.py"))
# Public modules, whose names benchmarks may take; of rooms, what the documentation lists.
MODULES = {"fastal.bound", "fastal.jit"}
ROOMS = {
    "fastal.criteria": None,
    "fastal.models": {"GaussianProcess", "LaplaceClassifier"},
    "fastal.runs": None,
}


def inner_names(source):
    """Return what a file takes from fastal at import that is not public."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and not node.level and node.module.startswith("fastal"):
            public = node.module in MODULES
            known = _known(node.module)
            found += [
                f"{node.module}.{a.name}" for a in node.names if not public and a.name not in known
            ]
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.startswith("fastal.")]
    return found


def _known(module):
    """Names of a module that are public."""
    if module == "fastal":
        return {*fastal.__all__, "datasets"}
    if module not in ROOMS:
        return set()
    return ROOMS[module] or set(import_module(module).__all__)


def test_the_files_are_found():
    assert len(FILES) > 10


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_public_names_only(file):
    assert inner_names(file.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("from fastal._core.rule import Rule", ["fastal._core.rule.Rule"]),
        ("from fastal.models import weak_fit", ["fastal.models.weak_fit"]),
        ("from fastal import Stopper, _threads", ["fastal._threads"]),
        ("import fastal._core.dots", ["fastal._core.dots"]),
        ("from fastal import movement_left", ["fastal.movement_left"]),
        ("from fastal.jit import gp_kl", []),
        ("from fastal.runs import runs_test, choose", ["fastal.runs.choose"]),
    ],
)
def test_what_is_not_public_is_seen(line, names):
    assert inner_names(line) == names
