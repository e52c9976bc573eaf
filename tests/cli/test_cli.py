import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fastal
from fastal.cli.entry import main

FASTAL = [sys.executable, "-m", "fastal"]
RISING = "".join(f"{i}\n" for i in range(1, 41))


@pytest.fixture
def feed(monkeypatch):
    """Put bytes or text on standard input."""

    def put(data):
        data = data.encode() if isinstance(data, str) else data
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


def fields(output):
    """The output as a dict: label -> the rest of the line."""
    return dict(re.split(r"  +", line, maxsplit=1) for line in output.splitlines())


def one_line(capsys):
    """The single line of an error; nothing may stand on standard output."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("\n")
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("fastal: ")
    return captured.err


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option, capsys):
    assert main([option]) == 0
    assert capsys.readouterr().out == f"fastal {fastal.__version__}\n"


def test_a_command_is_one_line_of_the_help(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    main(["--help"])
    said = capsys.readouterr().out.partition("  COMMAND\n")[2].partition("\n\n")[0].splitlines()
    commands = Path(fastal.__file__).parent / "cli" / "commands"
    assert len(said) == len(list(commands.glob("[a-z]*.py")))
    assert {line[:17].strip() for line in said} >= {"demo", "next", "reproduce"}
    # a name, and what it does
    assert all(line[4].isalpha() and line[17].isalpha() for line in said)


def test_without_arguments_it_says_what_to_do_first(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 8
    assert max(map(len, said)) <= 100
    # what it names are commands
    named = set(re.findall(r"fastal (\w+)(?= TABLE| --help|$)", "\n".join(said), re.M))
    assert {"demo", "next", "run", "watch", "simulate"} <= named
    for command in named:
        assert main([command, "--help"]) == 0
    done = subprocess.run(FASTAL, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == said


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["walk"], "'walk'"),
        (["--verbose"], "COMMAND"),
    ],
)
def test_wrong_use(capsys, argv, message):
    assert main(argv) == 2
    assert re.search(message, one_line(capsys))


def test_ctrl_c_is_one_line(monkeypatch, capsys):
    import fastal.cli.commands.demo as demo

    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_demo", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr() == ("", "fastal: interrupted\n")


def test_as_a_process():
    done = subprocess.run([*FASTAL, "watch", "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--sequential" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("argv", [["watch", "--help"], ["--version"]])
def test_closed_pipe(argv):
    pipe = subprocess.PIPE
    with subprocess.Popen([*FASTAL, *argv], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        process.stdout.close()  # nobody reads: what `| head -1` does, only earlier
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")


def test_start_is_light():
    code = "import sys, fastal.cli as c; c.main(['--version']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"fastal {fastal.__version__}\nFalse\n"
