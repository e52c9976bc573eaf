"""Completion with the tab key, as docs/commands.md has it: shtab reads the parser."""

import re
import shutil
import subprocess
import sys

import pytest

from fastal.cli.entry import build_parser

pytest.importorskip("shtab", reason="shtab is not installed")
BASH = shutil.which("bash")


def script(shell):
    done = subprocess.run(
        [sys.executable, "-m", "shtab", f"--shell={shell}", "fastal.cli.entry.build_parser"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [(["fastal", "sim"], "simulate"), (["fastal", "simulate", "--st"], "--store")],
)
def test_bash(typed, completed):
    words, before, last = " ".join(typed), typed[-2], typed[-1]
    ask = (
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}\n"
        f"_shtab_fastal fastal {last} {before}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [BASH, "--norc", "-c", f"{script('bash')}\n{ask}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [completed]


def test_zsh_knows_every_command():
    text = script("zsh")
    assert text.startswith("#compdef fastal")
    (commands,) = (one.choices for one in build_parser()._actions if one.choices)
    assert len(commands) == 10
    for name, parser in commands.items():
        (part,) = re.findall(rf"^ *{name}\) \S.*$", text, re.M)
        assert part
        assert f"_shtab_fastal_{name}" in text
        assert parser.prog == f"fastal {name}"
