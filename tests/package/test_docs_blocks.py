"""Every fenced block of a page is run, or compared with what a command prints, by a test.

Examples with ``>>>`` are doctests. Blocks of ``console`` are run in a shell, here. Of ``sh`` blocks,
which install things or take minutes, every command is looked up: the program, its options, the files
and extras that it names. Any other block needs a line in CHECKED.
"""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import page_blocks
import pytest
from page_blocks import OTHERS, PAGES, ROOT, Block, blocks_of, without_blocks

import fastal
from fastal.cli.entry import build_parser
from fastal.cli.errors import UserError

# How many blocks of a language a page has that are no doctests, and the test that reads them.
CHECKED = {
    ("README.md", "text"): (
        1,
        "tests/package/test_docs.py::test_the_demo_prints_and_draws_what_is_shown",
    ),
    ("CONTRIBUTING.md", "text"): (
        1,
        "tests/package/test_docs_blocks.py::test_the_drawing_of_the_house_shows_what_is_there",
    ),
    ("docs/c.md", "c"): (2, "tests/package/test_docs_programs.py::test_the_c_page_builds_and_runs"),
    ("docs/c.md", "python"): (
        1,
        "tests/package/test_docs_programs.py::test_the_c_page_builds_and_runs",
    ),
    ("docs/commands.md", "text"): (
        2,
        "tests/package/test_docs_programs.py::test_next_prints_what_the_page_shows",
    ),
    ("docs/library.md", "cython"): (
        1,
        "tests/package/test_docs_programs.py::test_the_cython_lines_build_and_run",
    ),
    ("docs/library.md", "python"): (
        1,
        "tests/package/test_docs_programs.py::test_the_cython_lines_build_and_run",
    ),
    ("docs/scale.md", "python"): (
        2,
        "tests/package/test_docs_programs.py::test_the_lines_for_a_cluster_run",
    ),
    ("docs/simulations.md", "python"): (
        1,
        "tests/package/test_docs_programs.py::test_the_data_of_the_paper_are_loaded",
    ),
    ("docs/tutorial.md", "text"): (
        3,
        "tests/package/test_tutorial.py::test_the_shell_answers_as_the_page_says",
    ),
    ("docs/when.md", "text"): (
        2,
        "tests/package/test_docs_programs.py::test_the_study_prints_what_the_page_shows",
    ),
}

ALL = [*PAGES, *OTHERS]
ASV = {"machine", "run", "continuous", "publish", "preview", "compare"}
# Programs of other people, of which nothing can be looked up here.
FOREIGN = {"echo", "mkdir", ".", "pre-commit", "shtab"}


def unclaimed(page, found):
    """Say of which languages a page has other blocks than CHECKED knows."""
    counts = Counter(
        block.language
        for block in found
        if not block.is_doctest and block.language not in ("sh", "console")
    )
    known = {language: n for (path, language), (n, _) in CHECKED.items() if path == page}
    return [
        f"{page}: {counts[language]} blocks of {language or 'no language'!r}, "
        f"{known.get(language, 0)} are in CHECKED"
        for language in sorted(counts.keys() | known.keys())
        if counts[language] != known.get(language, 0)
    ]


@pytest.mark.parametrize("page", ALL, ids=page_blocks.name)
def test_every_block_is_run_or_checked(page):
    text = page.read_text("utf-8")
    assert unclaimed(page_blocks.name(page), blocks_of(text)) == []
    assert "+SKIP" not in text
    # an indented block, which has no language, would be seen by nobody
    assert re.findall(r"^ {4,}\S.*$", without_blocks(text), re.M) == []
    # fences come in pairs, or a block would be swallowed by its neighbour
    assert len(re.findall(r"^ *```", text, re.M)) == 2 * len(re.findall(page_blocks.FENCE, text))


def test_the_tests_that_check_blocks_exist():
    for _, test in CHECKED.values():
        path, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text("utf-8"), test
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    for command in ('--doctest-glob="docs/*.md" docs', "--doctest-glob=README.md README.md"):
        assert f"pytest {command}" in script


# Commands that are looked up


def extras():
    """Names of the groups of dependencies in pyproject.toml."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"])


def fault_of_fastal(words):
    """Say that the command line would refuse these arguments."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            build_parser().parse_args(words)
    except (UserError, SystemExit) as error:
        return said.getvalue() or str(error)
    return ""


def fault_of_python(words):
    """Say which module or script is not there."""
    if words[0] == "-m":
        file = ROOT / words[1].replace(".", "/")
        there = file.with_suffix(".py").is_file() or (
            "." not in words[1] and importlib.util.find_spec(words[1]) is not None
        )
        return "" if there else f"no module {words[1]}"
    return "" if (ROOT / words[0]).is_file() else f"no file {words[0]}"


def fault_of_files(words):
    """Say which of the paths among the arguments is not there."""
    paths = [word.split("::")[0] for word in words if "/" in word and not word.startswith("-")]
    missing = [path for path in paths if not (ROOT / path).exists() and path != "build/site"]
    return f"no file {missing[0]}" if missing else ""


def fault_of_pip(words):
    """Say which extra is not in pyproject.toml."""
    asked = {
        extra
        for word in words
        for group in re.findall(r"\[(.+)\]", word)
        for extra in group.split(",")
    }
    return f"no extra {sorted(asked - extras())}" if asked - extras() else ""


def fault_of(command):
    """Say what is wrong with one command of a `sh` block; nothing is run."""
    words = shlex.split(command, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # variables of the environment
        words.pop(0)
    if not words:  # a variable of the shell
        return ""
    program, *rest = words
    if program == "fastal":
        return fault_of_fastal(rest)
    if program == "python":
        return fault_of_python(rest)
    if program == "pip":
        return fault_of_pip(rest)
    if program in ("pytest", "sphinx-build"):
        return fault_of_files(rest)
    if program == "asv":
        return "" if rest[0] in ASV else f"no command {rest[0]} of asv"
    if program.startswith(".ci/"):
        text = (ROOT / program).read_text("utf-8") if (ROOT / program).is_file() else ""
        missing = [word for word in rest if word not in text]
        return "" if text and not missing else f"{program} does not know {missing}"
    return "" if program in FOREIGN else f"no program {program}"


def wrong_commands(text):
    """The commands of a `sh` block in which something is wrong, with what it is."""
    joined = text.replace("\\\n", " ")
    commands = [part for line in joined.splitlines() for part in line.split("#")[0].split("&&")]
    commands = [command.split(">")[0].strip() for command in commands]
    return [
        f"{command}: {fault_of(command)}" for command in commands if command and fault_of(command)
    ]


@pytest.mark.parametrize("page", ALL, ids=page_blocks.name)
def test_every_command_is_there(page):
    found = [block for block in blocks_of(page.read_text("utf-8")) if block.language == "sh"]
    assert [wrong for block in found for wrong in wrong_commands(block.text)] == []


def test_some_commands_are_looked_up():
    found = [block for page in ALL for block in blocks_of(page.read_text("utf-8"))]
    assert sum(block.language == "sh" for block in found) > 10
    assert sum(block.is_doctest for block in found) > 100


# Commands that are run


def session(text):
    """The commands of a `console` block, each with what it prints."""
    parts = re.split(r"^\$ ", text, flags=re.M)
    assert parts[0] == "", "a console block begins with a command"
    return [tuple(part.split("\n", 1)) for part in parts[1:]]


def printed(command, folder):
    """What a command prints in a shell in which `fastal` is the one under test."""
    folder.joinpath("bin").mkdir(exist_ok=True)
    script = folder / "bin" / "fastal"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fastal "$@"\n')
    script.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


CONSOLE = [
    pytest.param(command, output, id=f"{page.stem}-{i}")
    for page in ALL
    for block in blocks_of(page.read_text("utf-8"))
    if block.language == "console"
    for i, (command, output) in enumerate(session(block.text))
]


NEEDED = ("bash", "seq", "awk", "tail")


@pytest.mark.skipif(
    os.name == "nt" or not all(map(shutil.which, NEEDED)), reason=f"not all of {NEEDED} are here"
)
@pytest.mark.parametrize(("command", "output"), CONSOLE)
def test_the_shell_prints_what_is_shown(command, output, tmp_path):
    assert printed(command, tmp_path) == output


def test_the_drawing_of_the_house_shows_what_is_there():
    (drawing,) = page_blocks.blocks("CONTRIBUTING.md", "text")
    package = Path(fastal.__file__).parent
    there = {path.name for path in package.iterdir() if (path / "__init__.py").is_file()}
    there |= {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    drawn = {word for word in re.findall(r"\b_?[a-z]+\b", drawing) if word in there}
    assert drawn == there


# Planted failures


def test_the_checks_of_blocks_can_fail():
    page = "# A page\n\n```python\nfastal.learn(X, y)\n```\n\n```python\n>>> 1 + 1\n2\n\n```\n\n- a list:\n\n  ```rust\n  fn main() {}\n  ```\n"
    found = blocks_of(page)
    assert found == [
        Block(3, "python", "fastal.learn(X, y)\n"),
        Block(7, "python", ">>> 1 + 1\n2\n\n"),
        Block(15, "rust", "fn main() {}\n"),
    ]
    assert unclaimed("docs/new.md", found) == [
        "docs/new.md: 1 blocks of 'python', 0 are in CHECKED",
        "docs/new.md: 1 blocks of 'rust', 0 are in CHECKED",
    ]
    # one block more on a page that has some, and one that is gone
    c_page = blocks_of((ROOT / "docs" / "c.md").read_text("utf-8"))
    assert unclaimed("docs/c.md", c_page) == []
    assert unclaimed("docs/c.md", [*c_page, Block(1, "c", "int x;")]) == [
        "docs/c.md: 3 blocks of 'c', 2 are in CHECKED"
    ]
    assert len(unclaimed("docs/c.md", c_page[1:])) == 1


@pytest.mark.parametrize(
    "command",
    [
        "fastal nexxt table.csv --target y",
        "fastal watch --no-such-option",
        "python -m benchmarks.no_such_module",
        "python benchmarks/no_such_file.py",
        "pytest -m long tests/no_such_file.py",
        'pip install -e ".[dev,no-such-extra]"',
        ".ci/run --no-such-option",
        ".ci/no-such-script",
        "asv remember",
        "frobnicate now",
    ],
)
def test_wrong_commands_are_found(command):
    block = f"# as ever\n{command}   # and why\nFASTAL_DATA=here python -m benchmarks.report && asv run\n"
    assert len(wrong_commands(block)) == 1


def test_another_output_is_found(tmp_path):
    assert session("$ seq 2\n1\n2\n$ true\n") == [("seq 2", "1\n2\n"), ("true", "")]
    if os.name == "nt" or not all(map(shutil.which, NEEDED)):
        pytest.skip(f"not all of {NEEDED} are here")
    assert printed("echo a | tail -1", tmp_path) != "b\n"
