"""Versions, the changelog, deprecations and SECURITY.md say the same, and what they show runs."""

import ast
import doctest
import re
import tomllib
from pathlib import Path

import pytest

import fastal

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
MINOR = VERSION.rpartition(".")[0]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")

# What the lines of the changelog take from their surroundings.
GIVEN = """
from fastal import FixedBudget, Stopper, runs_test
from fastal.paper.protocol import problems
"""

# Left after the version whose lines name it: these lines are history, and run no more.
LEFT = ("from fastal.stopping import look_level", "from fastal.studies import ")  # in 0.3


def sections(text):
    """The changelog's versions, newest first: version -> text."""
    found = re.split(r"^## (\S+)(?: \(\d{4}-\d\d-\d\d\))?$", text, flags=re.M)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


def changes(text):
    """Before and after of every block of lines to change."""
    blocks = re.findall(r"^```diff\n(.*?)^```$", text, re.M | re.S)
    sides = []
    for block in blocks:
        lines = block.splitlines()
        assert all(line[0] in "-+" for line in lines)
        sides.append(tuple([line[1:] for line in lines if line[0] == sign] for sign in "-+"))
    return sides


def deprecations(source):
    """Texts of the DeprecationWarnings that some code gives, their variables left out."""
    texts = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and "DeprecationWarning" in map(ast.unparse, node.args):
            pieces = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
            texts.append("".join(map(str, pieces)))
    return texts


def unending(texts):
    """Those that name no later version as their end."""
    ends = [re.search(r"is removed in (\d+)\.(\d+)\b", text) for text in texts]
    now = tuple(map(int, MINOR.split(".")))
    return [
        text
        for text, end in zip(texts, ends, strict=True)
        if end is None or tuple(map(int, end.groups())) <= now
    ]


def test_the_changelog_begins_with_this_version():
    versions = [name for name in sections(CHANGELOG) if name != "Unreleased"]
    assert versions == [VERSION, "0.2.0", "0.1.0"]
    wanted = (
        "What is new", "What to change in your code", "What decides differently now, and why",
    )  # fmt: skip
    for heading in wanted:
        assert f"\n### {heading}\n" in sections(CHANGELOG)["0.2.0"]
    assert "semver.org" in CHANGELOG


def test_every_line_to_change_to_runs(capsys):
    found = changes(CHANGELOG)
    assert len(found) >= 5
    for before, after in found:
        assert before
        assert after
        names = {}
        exec(GIVEN, names)
        lines = [line for line in after if not line.startswith(LEFT)]
        for line in after:
            if line not in lines:
                with pytest.raises(ImportError):
                    exec(line, {})
        exec("\n".join(lines), names)  # with warnings as errors: nothing of it is deprecated


def test_every_line_to_change_from_does_so_for_a_reason():
    imports, unpacking, tell, stopper, runs = (before for before, _ in changes(CHANGELOG))
    for line in imports:
        if "fastal.paper" in line:
            continue  # it is there again since 0.3
        with pytest.raises(ModuleNotFoundError):
            exec(line, {})
    names = {}
    exec(GIVEN, names)
    with pytest.raises(TypeError):
        exec("\n".join(unpacking), names)
    with pytest.raises(TypeError):
        exec("\n".join(tell), names)
    # these two still run, with another answer than before
    exec("\n".join(stopper + runs), names)
    assert names["stopper"].fall is True
    after = changes(CHANGELOG)[-1][1]
    now, names = names["result"], {"runs_test": fastal.runs_test}
    exec("\n".join(after), names)
    assert now.pvalue < names["result"].pvalue == 1


def test_the_examples_of_the_changelog_run():
    found = doctest.testfile(str(ROOT / "CHANGELOG.md"), module_relative=False, encoding="utf-8")
    assert found.attempted >= 10
    assert found.failed == 0


def test_every_deprecation_names_its_end():
    texts = []
    for path in sorted(Path(fastal.__file__).parent.rglob("*.py")):
        texts += deprecations(path.read_text("utf-8"))
    assert len(texts) == 0
    assert unending(texts) == []


def test_security_names_the_versions_that_are_repaired():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\d+\.\d+) \| (yes|no) \|$", text, re.M))
    assert [version for version, repaired in rows.items() if repaired == "yes"] == [MINOR]
    assert "## Whom to tell" in text


def test_the_checks_can_fail():
    source = (
        "import warnings\n"
        "warnings.warn(f'{a} is old; removed in 0.3', DeprecationWarning)\n"
        "warnings.warn('b is old', DeprecationWarning, stacklevel=2)\n"
        "warnings.warn('c is old; the old name is removed in 0.1', DeprecationWarning)\n"
        "warnings.warn('d is removed in 9.0', DeprecationWarning)\n"
        "warnings.warn('e', UserWarning)\n"
    )
    texts = deprecations(source)
    assert len(texts) == 4
    assert [text[0] for text in unending(texts)] == [" ", "b", "c"]
    assert sections("# x\n## 1.0.0 (2020-01-31)\na\n## 0.9.0\nb\n") == {
        "1.0.0": "\na\n", "0.9.0": "\nb\n",
    }  # fmt: skip
