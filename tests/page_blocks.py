"""What the tests of the documentation share: the pages, their fenced blocks, and how to run commands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
# Pages that stand outside of docs/.
OTHERS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]

FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block of a page."""

    line: int
    language: str
    text: str

    @property
    def is_doctest(self):
        return self.language == "python" and self.text.lstrip().startswith(">>> ")


def name(page):
    """The path of a page within the project."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(text):
    """The fenced blocks of a page; directives such as a toctree are none."""
    found = []
    for match in FENCE.finditer(text):
        indent, language, body = match.groups()
        if language.startswith("{"):
            continue
        lines = [line.removeprefix(indent) for line in body.splitlines(keepends=True)]
        found.append(Block(text.count("\n", 0, match.start()) + 1, language, "".join(lines)))
    return found


def blocks(path, language):
    """The texts of a page's blocks in a language; those of Python without doctests."""
    return [
        block.text
        for block in blocks_of((ROOT / path).read_text("utf-8"))
        if block.language == language and not block.is_doctest
    ]


def without_blocks(text):
    """A page without its fenced blocks, of which no line is a heading or a link."""
    return FENCE.sub("", text)


def build_extension(folder):
    """Build what a folder's setup.py says, in place; warnings of the compiler are errors."""
    if shutil.which(os.environ.get("CC", "cc").split()[0]) is None or os.name == "nt":
        pytest.skip("there is no C compiler called cc")
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env={**os.environ, "CFLAGS": f"-O0 -Wall -Wextra -Werror {os.environ.get('CFLAGS', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run_python(code, folder):
    """Run code in a process of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
