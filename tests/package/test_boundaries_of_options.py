"""Integers at the boundaries through every option of the command line that is a whole number."""

import argparse

import pytest
from boundary_calls import BOUNDS, small_paper
from boundary_values import HUGE, INTEGERS, guarded
from boundary_values import small_machine as small_machine

from fastal.cli.entry import build_parser, main

# The command line --------------------------------------------------------------------------------

TEXTS = (
    *(str(value) for value in INTEGERS if abs(value) <= HUGE), "9" * 5000, "0", "True", "False",
    "1.5", "1e3", "0x7", "1_000", " 7", "\u0663", "", "+7",
)  # fmt: skip
TABLE = "x,second,y\n" + "".join(f"{i},{i * i % 7},{i % 5}.5\n" for i in range(20))
PARTLY = "x,second,y\n" + "".join(f"{i},{i * i % 7},{'' if i > 15 else i % 5}\n" for i in range(20))

# Small and cheap, for each command; an option that is tried replaces its value here.
COMMANDS = {
    "demo": ["--labels=5", "--quiet"],
    "run": ["table.csv", "--target=y", "--noise=0.1", "--max-labels=5", "--quiet"],
    "next": ["partly.csv", "--target=y"],
    "simulate": ["table.csv", "--target=y", "--runs=2", "--pool-size=5", "--jobs=1"],
    "reproduce table1": ["--runs=2", "--jobs=1", "--datasets=artificial", "--criteria=proposed"],
    "reproduce figure1": ["--runs=2", "--jobs=1", "--datasets=artificial", "--criteria=proposed"],
    "reproduce tightness": ["--runs=2", "--jobs=1"],
    "reproduce refits": ["--runs=2", "--jobs=1", "--datasets=artificial"],
    "watch": ["bounds.txt", "--sequential", "--horizon=50"],
}
# Pictures take long: these are as good as all.
SLOW_COMMANDS = {"reproduce figure1", "reproduce tightness"}
FEW_TEXTS = ("2147483648", "4611686018427387904", "-1", "True")
# Options of columns, which may be numbers.
COLUMNS = ("--target", "--features", "--labelled", "--name", "--order")


def takes_integer(action):
    if any(name in COLUMNS for name in action.option_strings):
        return True
    for text in ("1", "2", "7") if action.type else ():
        try:
            return type(action.type(text)) is int
        except argparse.ArgumentTypeError:
            continue
    return False


def options(parser, path=()):
    """Yield command and option of all that take an integer."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from options(inner, (*path, name))
        elif takes_integer(action):
            yield " ".join(path), action.option_strings[0]


OPTIONS = list(options(build_parser()))


def test_options_are_found():
    assert {("demo", "--seed"), ("watch", "--horizon"), ("reproduce table1", "--jobs"),
            ("run", "--target"), ("next", "-n")} <= set(OPTIONS)  # fmt: skip
    assert ("watch", "--alpha") not in OPTIONS


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_options(command, option, tmp_path, monkeypatch, capfd):
    if command not in COMMANDS:
        pytest.fail(f"add {command!r} to COMMANDS in {__file__}: how to run it, small and cheap")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "partly.csv").write_text(PARTLY)
    (tmp_path / "bounds.txt").write_text("\n".join(map(str, BOUNDS)))
    rest = [part for part in COMMANDS[command] if part.partition("=")[0] != option]
    found = []
    for text in FEW_TEXTS if command in SLOW_COMMANDS else TEXTS:
        with small_paper(), guarded():
            status = main([*command.split(), *rest, f"{option}={text}"])
        err = capfd.readouterr().err
        if status == 2:
            named = option in err or (option in COLUMNS and "column" in err)
            if not (err.startswith("fastal: ") and err.count("\n") == 1 and named):
                found.append(f"{text[:40]!r}: {err[:400]}")
        elif status not in (0, 3):
            found.append(f"{text[:40]!r}: status {status}, {err[:400]}")
    assert found == []
