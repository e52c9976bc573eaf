"""The job of the other libraries: its groups name what exists, and its table is written as it says."""

import importlib.util
import json
import sys
import tomllib
from pathlib import Path

import pytest

from fastal.adapters import dispatch

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".ci" / "clients.py"


@pytest.fixture
def clients(monkeypatch):
    if not FILE.is_file():
        pytest.skip("the sources of the job are not here")
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("clients_job", FILE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_groups_name_what_exists(clients):
    known = {library.package for library in clients.LIBRARIES}
    run = {package for group in clients.GROUPS.values() for package in group.libraries}
    assert run == known
    files = {file for group in clients.GROUPS.values() for file in group.tests}
    assert {file for file in files if not (ROOT / file).is_file()} == set()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {library.extra for library in clients.LIBRARIES}
    assert wanted - set(extras["optional-dependencies"]) == set()


def test_every_page_and_example_of_a_library_is_run(clients):
    files = {file for group in clients.GROUPS.values() for file in group.tests}
    pages = {f"docs/others/{page.name}" for page in (ROOT / "docs" / "others").glob("*.md")}
    assert pages - files == set()
    loops = {path.stem for path in (ROOT / "fastal" / "adapters" / "loops").glob("[a-z]*.py")}
    loops -= {"checks"}  # what all of them ask
    if loops:  # the suite also runs away from the sources
        assert len([file for file in files if file.endswith("_loop.py")]) == len(loops)


def test_every_adapter_is_a_module():
    for name in dispatch._ADAPTERS.values():
        assert importlib.util.find_spec(f"fastal.adapters.{name}") is not None


def test_the_table(clients, tmp_path):
    page, found = tmp_path / "page.md", tmp_path / "found.json"
    start, end = clients.MARKS
    page.write_text(f"before\n{start}\n{end}\nafter\n", "utf-8")
    found.write_text(json.dumps({"scikit-learn": ["1.10.0", "1.7.0"], "GPy": ["1.15.0"]}), "utf-8")
    clients.write_table(found, page)
    text = page.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "| 1.7.0, 1.10.0 | `fastal[sklearn]` |" in text
    assert "| GPflow | GPR | not run | `fastal[gpflow]` |" in text
    # a later run of another group leaves the others as they were
    found.write_text(json.dumps({"GPy": ["1.16.0"]}), "utf-8")
    clients.write_table(found, page)
    text = page.read_text("utf-8")
    assert "| 1.7.0, 1.10.0 | `fastal[sklearn]` |" in text
    assert "| 1.16.0 | `fastal[gpy]` |" in text
    page.write_text("no marks", "utf-8")
    with pytest.raises(SystemExit, match="must stand there once"):
        clients.write_table(found, page)


def test_oldest_versions_come_from_pyproject(clients):
    lines = clients.requirements(clients.GROUPS["oldest BoTorch"])
    assert lines[0] == clients.TORCH
    assert any(line.startswith("botorch==") for line in lines)
    assert "gpflow" not in clients.requirements(clients.GROUPS["processes"])
    assert clients.GROUPS["tensorflow"].heavy
