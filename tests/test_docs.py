"""The pages in docs: what they name exists."""

import importlib
import re
from pathlib import Path

import pytest

import fastal

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def resolve(dotted):
    """Import the module of a dotted name and return what it names."""
    first, *rest = dotted.split(".")
    found = importlib.import_module(first)
    for place, name in enumerate(rest, start=2):
        if not hasattr(found, name):  # a module that its package does not import by itself
            importlib.import_module(".".join(dotted.split(".")[:place]))
        found = getattr(found, name)
    return found


def unknown_names(text):
    """Dotted names of fastal in backticks that cannot be imported."""
    wrong = []
    for name in sorted(set(re.findall(r"`(fastal(?:\.\w+)+)`", text))):
        try:
            resolve(name)
        except (ImportError, AttributeError):
            wrong.append(name)
    return wrong


def unknown_tests(text):
    """Tests, as pytest names them, that are not there."""
    wrong = []
    for path, name in sorted(set(re.findall(r"`(tests/\w+\.py)::(\w+)`", text))):
        file = ROOT / path
        if not (file.is_file() and re.search(rf"^def {name}\(", file.read_text("utf-8"), re.M)):
            wrong.append(f"{path}::{name}")
    return wrong


def anchors(text):
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(text, folder):
    """Relative links to files or headings that are not there."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target) or target.startswith("pictures/"):  # drawn by the build
            continue
        path, _, anchor = target.partition("#")
        file = folder / path
        there = file.exists()
        if there and anchor:
            there = anchor in anchors(file.read_text("utf-8") if path else text)
        if not there:
            wrong.append(target)
    return wrong


def test_there_are_pages():
    assert "paper.md" in {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_what_exists(page):
    text = page.read_text("utf-8")
    assert unknown_names(text) == []
    assert unknown_tests(text) == []
    assert broken_links(text, page.parent) == []


def test_the_paper_page_names_many():
    text = (ROOT / "docs" / "paper.md").read_text("utf-8")
    assert len(set(re.findall(r"`fastal\.[\w.]+`", text))) > 50
    assert len(set(re.findall(r"`tests/\w+\.py::\w+`", text))) > 40


def test_every_public_name_is_in_the_reference():
    text = "".join(
        page.read_text("utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.rst"))
    )
    documented = re.findall(r"^\.\. auto(?:class|function):: fastal\.(\w+)$", text, re.M)
    assert sorted(documented) == sorted(fastal._HOME)


def test_the_checks_can_fail():
    assert unknown_names("`fastal.bound.gp_kl` `fastal.bound.nothing` `fastal.nowhere.gp_kl`") == [
        "fastal.bound.nothing",
        "fastal.nowhere.gp_kl",
    ]
    names = "`tests/test_docs.py::test_there_are_pages` `tests/test_docs.py::test_there` `tests/test_no.py::test_a`"
    assert unknown_tests(names) == ["tests/test_docs.py::test_there", "tests/test_no.py::test_a"]
    links = "# A page\n## 1. Two, three\n[a](#1-two-three) [b](#2) [c](paper.md#nothing) [d](no.md) [e](https://x.y)"
    assert broken_links(links, ROOT / "docs") == ["#2", "paper.md#nothing", "no.md"]
