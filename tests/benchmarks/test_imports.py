"""Benchmarks import public names only, so that they run on older versions too."""

import ast
from pathlib import Path

import pytest

import fastal

FILES = sorted((Path(__file__).parents[2] / "benchmarks").glob("bench_*.py"))
MODULES = {"fastal.bound", "fastal.jit"}  # public modules, whose names benchmarks may take


def inner_names(source):
    """Return what a file takes from fastal at import that is not public."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and not node.level and node.module.startswith("fastal"):
            public = node.module in MODULES
            known = set(fastal.__all__) | {"datasets"} if node.module == "fastal" else ()
            found += [
                f"{node.module}.{a.name}" for a in node.names if not public and a.name not in known
            ]
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.startswith("fastal.")]
    return found


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
        ("from fastal.jit import gp_kl", []),
    ],
)
def test_what_is_not_public_is_seen(line, names):
    assert inner_names(line) == names
