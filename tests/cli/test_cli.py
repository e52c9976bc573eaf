import io
import math
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


def test_runs_rising(feed, capsys):
    feed(RISING)
    assert main(["runs"]) == 0
    got = fields(capsys.readouterr().out)
    assert got["values"] == "40: 20 below, 20 at or above the median 20.5"
    assert got["runs"] == "2, expected 21"
    # P(U <= 2) = 2 / C(40, 20): the two arrangements with one change.
    assert got["p-value (exact)"] == f"{2 / math.comb(40, 20):.6g} (less)"
    # Mean 21, variance 2 n0 n1 (2 n0 n1 - T) / (T^2 (T - 1)).
    z = (2 - 21) / math.sqrt(800 * 760 / (1600 * 39))
    assert got["p-value (normal)"] == f"{math.erfc(-z / math.sqrt(2)) / 2:.6g} (less)"
    assert got["verdict"].startswith("Too few runs for random order at alpha = 0.001")


def test_runs_alternating(feed, capsys):
    feed("1\n2\n" * 20)
    assert main(["runs"]) == 0
    assert fields(capsys.readouterr().out)["verdict"].startswith("No sign against random order")
    feed("1\n2\n" * 20)
    assert main(["runs", "--alternative", "greater"]) == 0
    got = fields(capsys.readouterr().out)
    assert got["runs"] == "40, expected 21"
    # P(U >= 40) = 2 / C(40, 20): the two alternating arrangements.
    assert got["p-value (exact)"] == f"{2 / math.comb(40, 20):.6g} (greater)"
    assert got["verdict"].startswith("Too many runs for random order at alpha = 0.001")


@pytest.mark.parametrize(
    ("data", "verdict"), [(RISING, "Too few runs"), ("1\n2\n" * 20, "Too many runs")]
)
def test_two_sided_names_the_side(feed, capsys, data, verdict):
    feed(data)
    assert main(["runs", "--alternative", "two-sided"]) == 0
    got = fields(capsys.readouterr().out)
    assert got["p-value (exact)"] == f"{4 / math.comb(40, 20):.6g} (two-sided)"
    assert got["verdict"].startswith(verdict)


def test_alpha_decides(feed, capsys):
    data = "1\n1\n1\n2\n2\n2\n"  # P(U <= 2) = 2 / C(6, 3) = 0.1
    for alpha, verdict in [("0.1001", "Too few"), ("0.0999", "No sign")]:
        feed(data)
        assert main(["runs", "--alpha", alpha, "--cutoff", "1.5"]) == 0
        assert fields(capsys.readouterr().out)["verdict"].startswith(verdict)


@pytest.mark.parametrize(
    ("cutoff", "expected"),
    [
        ("median", "5: 2 below, 3 at or above the median 2"),
        ("mean", "5: 3 below, 2 at or above the mean 3.6"),
        ("-1.5", "5: 0 below, 5 at or above -1.5"),
        ("1e1", "5: 4 below, 1 at or above 10"),
    ],
)
def test_cutoff(feed, capsys, cutoff, expected):
    feed("1\n1\n2\n4\n10\n")
    assert main(["runs", "--cutoff", cutoff]) == 0
    assert fields(capsys.readouterr().out)["values"] == expected


def test_one_sided_values(feed, capsys):
    feed("3\n" * 5)
    assert main(["runs"]) == 0
    got = fields(capsys.readouterr().out)
    assert got["runs"] == "1, expected 1"
    assert got["p-value (exact)"] == got["p-value (normal)"] == "1 (less)"
    assert got["verdict"].startswith("All values are on one side")


def test_two_values_are_symbols(feed, capsys):
    feed("0\n" * 6 + "1\n" * 3)
    assert main(["runs"]) == 0
    got = fields(capsys.readouterr().out)
    assert got["values"] == "9: 6 are 0, 3 are 1"
    assert got["p-value (exact)"] == f"{2 / math.comb(9, 3):.6g} (less)"
    feed("0\n" * 6 + "1\n" * 3)
    assert main(["runs", "--cutoff", "median"]) == 0
    assert fields(capsys.readouterr().out)["values"] == "9: 0 below, 9 at or above the median 0"


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("above", "5: 2 below, 3 at or above the median 2"),
        ("below", "5: 3 at or below, 2 above the median 2"),
        ("drop", "5: 2 below, 2 above the median 2, 1 dropped"),
    ],
)
def test_ties(feed, capsys, ties, expected):
    feed("1\n1\n2\n4\n10\n")
    assert main(["runs", "--ties", ties]) == 0
    assert fields(capsys.readouterr().out)["values"] == expected


def test_two_sides_of_the_published_example(feed, capsys):
    for how, p in [("double", 2 / 21), ("distance", 1 / 14), ("likelihood", 1 / 14)]:
        feed("1\n" * 4 + "0\n" * 4 + "1\n" * 2)
        assert main(["runs", "--alternative", "two-sided", "--two-sided", how, "--continuity"]) == 0
        got = fields(capsys.readouterr().out)
        assert got["p-value (exact)"] == f"{p:.6g} (two-sided)"
        # mean 5.8, variance 48 (48 - 10) / 900, half a run of correction
        z = (2.8 - 0.5) / math.sqrt(48 * 38 / 900)
        assert got["p-value (normal)"] == f"{math.erfc(z / math.sqrt(2)):.6g} (two-sided)"


@pytest.mark.parametrize("cutoff", ["median", "mean"])
def test_huge_values(feed, capsys, cutoff):
    feed("1.6e308\n1.7e308\n")  # their sum overflows
    assert main(["runs", "--cutoff", cutoff]) == 0
    expected = f"2: 1 below, 1 at or above the {cutoff} 1.65e+308"
    assert fields(capsys.readouterr().out)["values"] == expected


def test_input_format(tmp_path, feed, capsys):
    # A byte-order mark, Windows line ends, blanks, comments, no end of the last line.
    path = tmp_path / "values.txt"
    path.write_bytes(b"\xef\xbb\xbf# bounds\r\n 1 \r\n\r\n\t2e0\r\n  # 7\r\n-3.5")
    assert main(["runs", str(path)]) == 0
    from_file = capsys.readouterr().out
    assert fields(from_file)["values"].startswith("3: ")
    feed("1\n2\n-3.5\n")
    assert main(["runs", "-"]) == 0
    assert capsys.readouterr().out == from_file


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1\n2\nabc\n", "line 3: 'abc' is not a number"),
        (b"1\n\n# x\n2 3\n", "line 4: '2 3' is not a number"),
        (b"1,5\n", "line 1: '1,5' is not a number"),
        (b"1_000\n", "line 1: '1_000' is not a number"),
        ("\u0661\n".encode(), "line 1: '\u0661' is not a number"),
        (b"1\nNaN\n", "line 2: 'NaN' is not finite"),
        (b"1\n-inf\n", "line 2: '-inf' is not finite"),
        (b"1e999\n", "line 1: '1e999' is not finite"),
        (b"1\n\xff\n", "line 2: not UTF-8 text"),
        (b"1\n" + b"x" * 500, "line 2: '" + "x" * 56 + "... is not a number"),
        (b"", "the runs test needs at least two values, got 0"),
        (b"# only a comment\n5\n", "the runs test needs at least two values, got 1"),
    ],
)
def test_bad_input(tmp_path, feed, capsys, data, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    assert main(["runs", str(path)]) == 2
    assert one_line(capsys) == f"fastal: {path}: {message}\n"
    feed(data)
    assert main(["runs"]) == 2
    assert one_line(capsys) == f"fastal: standard input: {message}\n"


def test_missing_file_and_directory(tmp_path, capsys):
    for path in (tmp_path / "missing.txt", tmp_path, tmp_path / "a\nb"):
        assert main(["runs", str(path)]) == 2
        assert str(path).replace("\n", " ") in one_line(capsys)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["walk"], "'walk'"),
        (["--verbose"], "COMMAND"),
        (["runs", "a", "b"], "b"),
        (["runs", "--alph", "0.1"], "--alph"),  # abbreviations would tie our hands later
        (["runs", "--alpha", "3"], r"--alpha: must be in \(0, 1\), got '3'"),
        (["runs", "--alpha", "0"], r"--alpha: must be in \(0, 1\), got '0'"),
        (["runs", "--alpha", "nan"], r"--alpha: must be in \(0, 1\), got 'nan'"),
        (["runs", "--alternative", "fewer"], "--alternative.*'fewer'.*two-sided"),
        (["runs", "--cutoff", "mode"], "--cutoff: must be median, mean or .*, got 'mode'"),
        (["runs", "--cutoff", "inf"], "--cutoff: must be median, mean or .*, got 'inf'"),
    ],
)
def test_wrong_use(capsys, argv, message):
    assert main(argv) == 2
    assert re.search(message, one_line(capsys))


def test_closed_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["runs"]) == 2
    assert one_line(capsys) == "fastal: standard input is closed\n"


def test_interrupt(monkeypatch, capsys):
    class Interrupted:
        def isatty(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert main(["runs"]) == 130
    assert capsys.readouterr().err == ""


def test_as_a_process():
    done = subprocess.run([*FASTAL, "runs"], input=RISING, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Too few runs" in done.stdout
    done = subprocess.run([*FASTAL, "runs"], input="x\n", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fastal: standard input: line 1: 'x' is not a number\n"
    done = subprocess.run([*FASTAL, "runs", "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--alternative" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("argv", [["runs"], ["runs", "--help"], ["--version"]])
def test_closed_pipe(argv):
    pipe = subprocess.PIPE
    with subprocess.Popen([*FASTAL, *argv], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        process.stdout.close()  # nobody reads: what `| head -1` does, only earlier
        _, errors = process.communicate(RISING.encode())
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*FASTAL, "runs"], input=RISING, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.startswith("fastal: cannot write the output: ")
    assert done.stderr.count("\n") == 1


def test_start_is_light():
    code = "import sys, fastal.cli as c; c.main(['--version']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"fastal {fastal.__version__}\nFalse\n"
