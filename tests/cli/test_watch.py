import io
import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys

import numpy as np
import pytest

import fastal.runs.sequential
from fastal import MovementBelow, Stopper, gp_kl
from fastal.cli.commands import watch
from fastal.cli.entry import main
from fastal.stopping.verdict import Verdict

FASTAL = [sys.executable, "-m", "fastal", "watch"]
PIPE = subprocess.PIPE
# Without what would flush every output by itself.
ENVIRONMENT = {name: v for name, v in os.environ.items() if name != "PYTHONUNBUFFERED"}
posix = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")

RNG = np.random.default_rng(4)
BOUNDS = np.round(np.exp(np.repeat([1.5, -1.0], 20) + 0.3 * RNG.normal(size=40)), 3).tolist()
STOP = Stopper().extend(BOUNDS)
assert STOP is not None
TEXT = "".join(f"{bound}\n" for bound in BOUNDS)
STILL = ["--rule", "still", "--horizon", "50"]
SENTENCE = re.compile(r"stop after \d+ bounds: \d+ runs where [\d.]+ are expected \(p = \S+ <= \S+")


@pytest.fixture
def feed(monkeypatch):
    """Put bytes or text on standard input."""

    def put(data):
        data = data.encode() if isinstance(data, str) else data
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


@pytest.fixture
def levels(monkeypatch):
    """Levels of the order of the table's: what the command does depends on no exact value."""
    monkeypatch.setattr(
        fastal.runs.sequential,
        "look_level",
        lambda alpha, horizon=None, *, fall=True: 0.001 if horizon else 0.0019,
    )


def one_line(capsys):
    """The single line of an error; nothing may stand on standard output."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("\n")
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("fastal: ")
    return captured.err


def parsed(output):
    return [json.loads(line) for line in output.splitlines()]


def as_expected(stopper, bounds):
    """What the JSON lines must say: the stopper's verdict after every bound, up to the stop."""
    lines = []
    for bound in bounds:
        stopper.push(bound)
        verdict = stopper.verdict
        lines.append(
            {
                "n": verdict.n,
                "bound": bound,
                "p_value": verdict.p_value,
                "n_runs": verdict.n_runs,
                "stop": verdict.stop,
                "verdict": str(verdict),
                "warnings": list(verdict.warnings),
            }
        )
        if stopper.stopped:
            break
    return lines


def said(verdict):
    """A verdict and what speaks against it, as on a plain line."""
    sentence = str(verdict)  # it may end with one of them
    return "; but ".join((sentence, *(one for one in verdict.warnings if one not in sentence)))


# in this process --------------------------------------------------------------------------------


def test_plain_lines(feed, capsys):
    feed(TEXT)
    assert main(["watch"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert captured.err == ""
    assert len(lines) == STOP
    stopper = Stopper()
    for n, (line, bound) in enumerate(zip(lines, BOUNDS, strict=False), start=1):
        stopper.push(bound)
        expected = [str(n), f"{bound:.6g}", f"{stopper.p_value:.2g}", said(stopper.verdict)]
        assert re.split("  +", line, maxsplit=3) == expected
    assert SENTENCE.search(lines[-1])


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {}),
        ("--alpha 0.01", {"alpha": 0.01}),
        ("--alpha 1e-30", {"alpha": 1e-30}),
        ("--method normal", {"method": "normal"}),
        ("--no-fall", {"fall": False}),
        ("--no-fall --alpha 0.05", {"fall": False, "alpha": 0.05}),
        ("--sequential --alpha 0.01", {"sequential": True, "alpha": 0.01}),
        (
            "--sequential --alpha 0.01 --horizon 25",
            {"sequential": True, "alpha": 0.01, "horizon": 25},
        ),
    ],
)
@pytest.mark.parametrize("bounds", [BOUNDS, [3.0, 3.0, 1.0] * 12, [-1.5, 2.0] * 30])
def test_json_lines_and_options(feed, capsys, levels, options, settings, bounds):
    feed("".join(f"{bound!r}\n" for bound in bounds))
    stopper = Stopper(**settings)
    expected = as_expected(stopper, bounds)
    assert main(["watch", "--json", *options.split()]) == (0 if stopper.stopped else 3)
    assert parsed(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("--horizon 60", {"horizon": 60}),
        ("--share 0.3 --horizon 60", {"share": 0.3, "horizon": 60}),
        ("--horizon 5", {"horizon": 5}),  # reached before any other stop
        ("--horizon 1000000", {"horizon": 1_000_000}),  # never
    ],
)
@pytest.mark.parametrize("bounds", [BOUNDS, [0.0] * 30, [1.0, 2.0] * 12])
def test_how_much_is_movement_left(feed, capsys, options, settings, bounds):
    criterion, expected, plain = MovementBelow(**settings), [], []
    for bound in bounds:
        criterion.push(bound)
        verdict = criterion.verdict
        left, level = (None if np.isnan(v) else v for v in (verdict.left, verdict.level))
        expected.append({"n": verdict.n, "bound": bound, "left": left, "level": level})
        expected[-1] |= {"stop": verdict.stop, "verdict": str(verdict)}
        expected[-1] |= {"warnings": list(verdict.warnings)}
        share = "-" if left is None else f"{left:.2g}"
        plain.append([str(verdict.n), f"{bound:.6g}", share, said(verdict)])
        if criterion.stopped:
            break
    status = 0 if criterion.stopped else 3
    text = "".join(f"{bound!r}\n" for bound in bounds)
    feed(text)
    assert main(["watch", "--rule", "still", "--json", *options.split()]) == status
    assert parsed(capsys.readouterr().out) == expected
    feed(text)
    assert main(["watch", "--rule", "still", *options.split()]) == status
    lines = capsys.readouterr().out.splitlines()
    assert [re.split("  +", line, maxsplit=3) for line in lines] == plain


def test_what_is_movement_left_needs_bounds_that_are_not_negative(feed, capsys):
    feed("1\n-2\n")
    assert main(["watch", *STILL]) == 2
    error = "fastal: standard input: line 2: '-2' must not be negative; --rule paper takes it\n"
    assert capsys.readouterr().err == error


def test_what_is_movement_left_from_posteriors(feed, capsys):
    feed("0 1 2\n0 0.5 1\n")
    assert main(["watch", *STILL, "--noise", "0.1", "--json"]) == 3
    expected = gp_kl([0, 0], [1, 0.5], [2, 1], 0.1).tolist()
    assert [line["bound"] for line in parsed(capsys.readouterr().out)] == expected


def test_a_stop_while_the_bounds_are_high_says_so(feed, capsys):
    feed("".join(f"{bound}\n" for bound in [*range(90, 99), *range(1, 10)]))
    assert main(["watch"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("; but the bounds still stand at 27 % of their peak")


@pytest.mark.parametrize("ends_with_it", [False, True])
def test_a_warning_of_the_verdict_is_not_said_twice(feed, capsys, monkeypatch, ends_with_it):
    warning = "; but the bounds still stand at 27 % of their peak"
    plain = Verdict.__str__

    def sentence(self):
        return plain(self).removesuffix(warning) + (warning if ends_with_it and self.stop else "")

    monkeypatch.setattr(Verdict, "__str__", sentence)
    bounds = [*range(90, 99), *range(1, 10)]
    feed("".join(f"{bound}\n" for bound in bounds))
    assert main(["watch"]) == 0
    assert capsys.readouterr().out.count(warning) == 1
    stopper = Stopper()
    stopper.extend(bounds)
    watch._print_end(stopper)  # what follows the live line of a terminal
    said = " ".join(capsys.readouterr().out.split())  # in lines of a terminal
    assert said.count(warning.removeprefix("; but ")) == 1


def test_input_ends_without_a_stop(tmp_path, feed, capsys):
    feed("1\n2\n1.5")
    assert main(["watch"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["1", "1"], ["2", "2"], ["3", "1.5"]]
    assert lines[-1].endswith("too early: no stop is possible before 14 bounds at alpha = 0.001")
    path = tmp_path / "empty.txt"
    path.write_text("# nothing yet\n\n")
    assert main(["watch", str(path)]) == 3
    assert capsys.readouterr() == ("", "")


def test_input_format(tmp_path, capsys):
    # A byte-order mark, Windows line ends, blanks, comments, no end of the last line.
    path = tmp_path / "bounds.txt"
    path.write_bytes(b"\xef\xbb\xbf# bounds\r\n 1 \r\n\r\n\t2e0\r\n  # 7\r\n-3.5")
    assert main(["watch", "--json", str(path)]) == 3
    assert [line["bound"] for line in parsed(capsys.readouterr().out)] == [1.0, 2.0, -3.5]


def test_nothing_is_read_after_the_stop(feed, capsys):
    feed(TEXT + "not a number\n")
    assert main(["watch"]) == 0
    assert SENTENCE.search(capsys.readouterr().out)


@pytest.mark.parametrize("separator", [",", ", ", " , ", " ", "\t", "  "])
def test_noise(feed, capsys, separator):
    rows = RNG.uniform(0.1, 2.0, size=(30, 3)).tolist()
    feed("".join(separator.join(map(repr, row)) + "\n" for row in rows))
    assert main(["watch", "--noise", "0.25", "--json"]) == 3
    stopper = Stopper()
    for row in rows:
        stopper.push(gp_kl(*row, 0.25))
    got = parsed(capsys.readouterr().out)
    assert [line["bound"] for line in got] == stopper.bounds.tolist()
    assert got[-1]["verdict"] == str(stopper.verdict)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"abc\n", "line 1: 'abc' is not a number"),
        (b"\n# x\n2 3\n", "line 3: '2 3' is not a number"),
        (b"NaN\n", "line 1: 'NaN' is not finite"),
        (b"\n-inf\n", "line 2: '-inf' is not finite"),
        (b"1e999\n", "line 1: '1e999' is not finite"),
        (b"# a\n\xff\n", "line 2: not UTF-8 text"),
    ],
)
def test_bad_input(tmp_path, feed, capsys, data, message):
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    assert main(["watch", str(path)]) == 2
    assert one_line(capsys) == f"fastal: {path}: {message}\n"
    feed(data)
    assert main(["watch", "--json"]) == 2
    assert one_line(capsys) == f"fastal: standard input: {message}\n"


def test_bad_input_later(feed, capsys):
    feed("3\n4\nx\n5\n")
    assert main(["watch"]) == 2
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert captured.err == "fastal: standard input: line 3: 'x' is not a number\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2", "'1,2' does not have 3 columns: mean, var, y"),
        ("7", "'7' does not have 3 columns: mean, var, y"),
        ("1 2 3 4", "'1 2 3 4' does not have 3 columns: mean, var, y"),
        ("1,,3", "'1,,3' does not have 3 columns: mean, var, y"),
        ("1,2,3,", "'1,2,3,' does not have 3 columns: mean, var, y"),
        ("1;2;3", "'1;2;3' does not have 3 columns: mean, var, y"),
        ("mean,var,y", "'mean' is not a number"),
        ("0, nan, 1", "'nan' is not finite"),
        ("0, 1, inf", "'inf' is not finite"),
        ("0, -1, 1", "'0, -1, 1': `var` must not be negative, got -1.0"),
        ("0 1 1e200", "'0 1 1e200': y is so far from mean that the bound overflows"),
    ],
)
def test_bad_columns(feed, capsys, text, message):
    feed(f"# mean, var, y\n{text}\n")
    assert main(["watch", "--noise", "1"]) == 2
    assert one_line(capsys) == f"fastal: standard input: line 2: {message}\n"


def test_missing_file_and_directory(tmp_path, capsys):
    for path in (tmp_path / "missing.txt", tmp_path, tmp_path / "a\nb"):
        for options in ([], ["--follow"]):
            assert main(["watch", *options, str(path)]) == 2
            assert str(path).replace("\n", " ") in one_line(capsys)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["a", "b"], "b"),
        (["--foll", "x"], "--foll"),
        (["--alpha", "2"], r"--alpha: must be in \(0, 1\), got '2'"),
        (["--method", "slow"], "--method.*'slow'.*normal"),
        (["--noise", "0"], "--noise: must be a positive number, got '0'"),
        (["--noise", "inf"], "--noise: must be a positive number, got 'inf'"),
        (["--noise", "x"], "--noise: must be a positive number, got 'x'"),
        (["--horizon", "1e3"], "--horizon: must be a whole number of at least 1, got '1e3'"),
        (["--horizon", "9" * 40], "--horizon: must be a whole number of at least 1, got '999"),
        (["--window", "20"], "unrecognized arguments: --window"),
        (["--min-bounds", "20"], "unrecognized arguments: --min-bounds"),
        (["--sequential", "--horizon", "1"], "--horizon: must be a whole number of at least 2"),
        (["--horizon", "50"], "--horizon needs --sequential or --rule still"),
        (["--rule", "other"], "--rule.*'other'.*still"),
        (["--share", "0.1"], "--share: 0.1 belongs to --rule still, got --rule paper"),
        (["--rule", "still"], "--rule still needs --horizon N: how many labels you could buy"),
        ([*STILL, "--share", "1"], r"--share: must be in \(0, 1\), got '1'"),
        ([*STILL, "--share", "0.1,0.2"], r"--share: must be in \(0, 1\), got '0.1,0.2'"),
        (["--rule", "still", "--horizon", "0"], "--horizon: must be a whole number of at least 1"),
        *(
            ([*STILL, *option.split()], f"{option.split()[0]} belongs to --rule paper, got")
            for option in (
                "--alpha 0.001",
                "--method auto",
                "--sequential",
                "--no-fall",
            )
        ),
        (
            ["--sequential", "--method", "normal"],
            "--sequential needs an exact method, got --method normal",
        ),
        (["--follow"], "--follow needs a FILE; standard input is followed anyway"),
        (["--follow", "-"], "--follow needs a FILE; standard input is followed anyway"),
    ],
)
def test_wrong_use(feed, capsys, argv, message):
    feed("1\n")
    assert main(["watch", *argv]) == 2
    assert re.search(message, one_line(capsys))


def test_settings_that_the_stopper_refuses(feed, capsys, monkeypatch):
    def refuse(alpha, horizon=None, *, fall=True):
        raise ValueError(f"`horizon` must be at most 10000, got {horizon}")

    monkeypatch.setattr(fastal.runs.sequential, "look_level", refuse)
    feed("1\n")
    assert main(["watch", "--sequential", "--horizon", "20000"]) == 2
    assert one_line(capsys) == "fastal: --horizon must be at most 10000, got 20000\n"


def test_closed_standard_streams(monkeypatch, feed, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", None)
        assert main(["watch"]) == 2
        assert one_line(capsys) == "fastal: standard input is closed\n"
    feed(TEXT)
    monkeypatch.setattr(sys, "stdout", None)  # the exit status still tells
    assert main(["watch"]) == 0


def test_help_states_the_exit_status(capsys):
    assert main(["watch", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "0 stop: the last line of the output says why" in text
    assert "3 the input ended without a stop" in text
    for option in ("--follow", "--noise", "--json", "--no-fall", "--plot"):
        assert option in text


# a growing file, without waiting: the file grows whenever the command sleeps ---------------------


@pytest.fixture
def grow(monkeypatch):
    """Append the next piece to a file at each sleep; then interrupt."""

    def start(path, pieces):
        waiting = iter(pieces)

        def sleep(seconds):
            assert 0 < seconds < 1
            piece = next(waiting, None)
            if piece is None:
                raise KeyboardInterrupt
            if callable(piece):
                piece()
                return
            with open(path, "ab") as file:
                file.write(piece)

        monkeypatch.setattr("time.sleep", sleep)

    return start


def test_follow_waits_for_the_end_of_a_line(tmp_path, capsys, grow):
    path = tmp_path / "bounds.txt"
    path.write_bytes(b"1\n2")
    grow(path, [b"5\n", b"", b"# a comm", b"ent\n3\n4", b"\xc3", b"\xa4\n"])
    assert main(["watch", "--follow", "--json", str(path)]) == 2
    captured = capsys.readouterr()
    assert [line["bound"] for line in parsed(captured.out)] == [1.0, 25.0, 3.0]
    assert captured.err == f"fastal: {path}: line 5: '4\u00e4' is not a number\n"


def test_follow_until_the_stop(tmp_path, capsys, grow):
    path = tmp_path / "bounds.txt"
    path.write_bytes(b"")
    grow(path, [f"{bound}\n".encode() for bound in BOUNDS])
    assert main(["watch", "--follow", "--json", str(path)]) == 0
    assert parsed(capsys.readouterr().out) == as_expected(Stopper(), BOUNDS)


def test_follow_and_interrupt(tmp_path, capsys, grow):
    path = tmp_path / "bounds.txt"
    path.write_bytes(b"1\n")
    grow(path, [b"2\n"])
    assert main(["watch", "--follow", str(path)]) == 130
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert captured.err == "fastal: interrupted\n"


def test_follow_a_file_that_becomes_shorter(tmp_path, capsys, grow):
    path = tmp_path / "bounds.txt"
    path.write_bytes(b"1\n2\n")
    grow(path, [lambda: path.write_bytes(b"1\n")])
    assert main(["watch", "--follow", str(path)]) == 2
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert captured.err == f"fastal: {path}: the file became shorter\n"


# pictures ----------------------------------------------------------------------------------------


def test_plot(tmp_path, feed, capsys):
    pytest.importorskip("matplotlib")
    for name, data, status in (("a.png", TEXT, 0), ("b.svg", "1\n2\n", 3), ("c.pdf", "", 3)):
        feed(data)
        path = tmp_path / name
        assert main(["watch", "--plot", str(path)]) == status
        assert path.read_bytes()[:4] in (b"\x89PNG", b"<?xm", b"%PDF")
    assert capsys.readouterr().err == ""


def test_plot_of_what_is_movement_left(tmp_path, feed, capsys):
    pytest.importorskip("matplotlib")
    for name, data, status in (("a.png", TEXT, 0), ("b.svg", "1\n2\n", 3), ("c.pdf", "", 3)):
        feed(data)
        path = tmp_path / name
        assert main(["watch", *STILL, "--share", "0.5", "--plot", str(path)]) == status
        assert path.read_bytes()[:4] in (b"\x89PNG", b"<?xm", b"%PDF")
    assert capsys.readouterr().err == ""


def test_plot_after_an_interrupt(tmp_path, capsys, grow):
    pytest.importorskip("matplotlib")
    path, picture = tmp_path / "bounds.txt", tmp_path / "picture.png"
    path.write_bytes(b"1\n2\n")
    grow(path, [])
    assert main(["watch", "--follow", str(path), "--plot", str(picture)]) == 130
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == "fastal: interrupted\n"


def test_plot_is_refused_before_reading(tmp_path, feed, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    for name, message in (
        ("picture", "must end with one of .*png"),
        ("picture.doc", "must end with one of .*png"),
        ("missing/picture.png", "is a directory, or in none that exists"),
        (".", "must end with one of .*png"),
    ):
        feed(TEXT)
        assert main(["watch", "--plot", str(tmp_path / name)]) == 2
        assert re.search(message, one_line(capsys))
    (tmp_path / "folder.png").mkdir()
    assert main(["watch", "--plot", str(tmp_path / "folder.png")]) == 2
    assert "is a directory" in one_line(capsys)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["watch", "--plot", "picture.png"]) == 2
    expected = 'fastal: --plot: pictures need matplotlib: pip install "fastal[plot]"\n'
    assert one_line(capsys) == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_plot_that_cannot_be_written(tmp_path, feed, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.svg"
    picture.symlink_to("/dev/full")
    feed(TEXT)
    assert main(["watch", "--plot", str(picture)]) == 2
    captured = capsys.readouterr()
    assert SENTENCE.search(captured.out)  # the decision is there all the same
    assert captured.err.startswith(f"fastal: --plot: {picture}: ")
    assert captured.err.count("\n") == 1


# as a process ------------------------------------------------------------------------------------


def answer(stream):
    """Read one line; fail instead of waiting for ever."""
    ready, _, _ = select.select([stream], [], [], 60)
    assert ready, "no answer"
    return stream.readline()


@posix
@pytest.mark.parametrize("options", [["--json"], []])
def test_pipe_line_by_line(options):
    # Unbuffered: select must not miss what a buffer holds.
    with subprocess.Popen(
        [*FASTAL, *options], stdin=PIPE, stdout=PIPE, stderr=PIPE, bufsize=0, env=ENVIRONMENT
    ) as process:
        for expected in as_expected(Stopper(), BOUNDS):
            process.stdin.write(f"{expected['bound']}\n".encode())
            line = answer(process.stdout).decode()
            if options:
                assert json.loads(line) == expected
            else:
                sentence = expected["verdict"]
                others = [one for one in expected["warnings"] if one not in sentence]
                words = "; but ".join((sentence, *others))
                assert line.rstrip().endswith("  " + words)
        assert expected["stop"] is True
        # Standard input is still open: the process ends by itself.
        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == process.stderr.read() == b""


@posix
def test_pipe_of_what_is_movement_left():
    criterion = MovementBelow(0.3, horizon=50)
    command = [*FASTAL, *STILL, "--share", "0.3"]
    with subprocess.Popen(
        command, stdin=PIPE, stdout=PIPE, stderr=PIPE, bufsize=0, env=ENVIRONMENT
    ) as process:
        lines = []
        for bound in BOUNDS:
            process.stdin.write(f"{bound}\n".encode())
            lines.append(answer(process.stdout).decode().rstrip())
            if criterion.push(bound):
                break
        process.stdin.close()
        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == process.stderr.read() == b""
    assert criterion.stopped
    assert len(lines) == criterion.stopped_at
    assert lines[-1].endswith("  " + said(criterion.verdict))


@posix
def test_growing_file(tmp_path):
    path = tmp_path / "bounds.txt"
    path.write_text(f"{BOUNDS[0]}\n")
    command = [*FASTAL, "--follow", "--json", str(path)]
    with (
        open(path, "ab", buffering=0) as file,
        subprocess.Popen(command, stdout=PIPE, stderr=PIPE, bufsize=0, env=ENVIRONMENT) as process,
    ):
        expected = as_expected(Stopper(), BOUNDS)
        assert json.loads(answer(process.stdout)) == expected[0]
        for line in expected[1:]:
            text = str(line["bound"]).encode()
            file.write(text[:2])
            file.write(text[2:] + b"\n")
            assert json.loads(answer(process.stdout)) == line
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""


@posix
def test_interrupt(tmp_path):
    path = tmp_path / "bounds.txt"
    path.write_text("1\n")
    with subprocess.Popen(
        [*FASTAL, "--follow", str(path)], stdout=PIPE, stderr=PIPE, bufsize=0, env=ENVIRONMENT
    ) as process:
        assert answer(process.stdout).startswith(b"1 ")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stdout.read() == b""
        assert process.stderr.read() == b"fastal: interrupted\n"


@posix
def test_closed_pipe():
    with subprocess.Popen(FASTAL, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        process.stdout.close()
        _, errors = process.communicate(b"1\n2\n")
    # Not 0, which would say "stop".
    assert (process.returncode, errors) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk():
    with open("/dev/full", "w") as full:
        done = subprocess.run(FASTAL, input=TEXT, stdout=full, stderr=PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("fastal: cannot write the output: ")
    assert done.stderr.count("\n") == 1


# on a terminal -----------------------------------------------------------------------------------


def on_terminal(argv, data, columns, *, typed=False):
    """Run with a pseudo-terminal as output, and as input if typed; return status and texts."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = ENVIRONMENT | {"COLUMNS": str(columns)}
    with subprocess.Popen(
        [*FASTAL, *argv],
        stdin=theirs if typed else PIPE,
        stdout=theirs,
        stderr=PIPE,
        env=environment,
    ) as process:
        os.close(theirs)
        if typed:
            os.write(ours, data + b"\x04")
        else:
            process.stdin.write(data)
            process.stdin.close()
        screen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not piece:
                break
            screen += piece
        errors = process.stderr.read()
        status = process.wait(timeout=60)
    os.close(ours)
    return status, screen.decode().replace("\r\n", "\n"), errors.decode()


@pytest.mark.parametrize("columns", [40, 200])
def test_live_line(columns):
    status, screen, errors = on_terminal([], TEXT.encode(), columns)
    assert (status, errors) == (0, "")
    live, *rest = screen.split("\n")
    stopper = Stopper()
    stopper.extend(BOUNDS[:STOP])
    sentence = str(stopper.verdict)  # it may end with one of them
    others = [text for text in stopper.verdict.warnings if text not in sentence]
    warnings = [f"warning: {text}" for text in others]
    assert max(map(len, rest)) <= 100  # for people, also on a wide terminal
    assert " ".join(rest).split() == " ".join([str(stopper.verdict), *warnings]).split()
    first, *states = live.split("\r")
    assert first == ""
    assert [state.split()[0] for state in states] == [str(n) for n in range(1, STOP + 1)]
    assert max(map(len, states)) < columns
    shown = states[-1].rstrip()
    if columns == 40:
        assert len(shown) <= 39
        assert re.sub(r".*  ", "", shown) == str(stopper.verdict)[: 39 - shown.rindex("  ") - 2]
    else:
        assert shown.endswith(str(stopper.verdict))
    # What a longer line left behind is overwritten.
    assert all(len(b) >= len(a.rstrip()) for a, b in itertools.pairwise(states))


def test_live_line_is_there_at_once():
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(FASTAL, stdin=PIPE, stdout=theirs, bufsize=0, env=ENVIRONMENT) as process:
        os.close(theirs)
        process.stdin.write(b"7\n")
        ready, _, _ = select.select([ours], [], [], 60)
        assert ready, "no answer"
        assert os.read(ours, 4).startswith(b"\r1 ")
        process.stdin.close()
        assert process.wait(timeout=60) == 3
    os.close(ours)


def test_live_line_ends_before_an_error():
    status, screen, errors = on_terminal([], b"1\n2\nx\n", 80)
    assert status == 2
    assert errors == "fastal: standard input: line 3: 'x' is not a number\n"
    assert screen.count("\n") == 1
    assert screen.endswith("\n")


def test_end_without_a_stop_on_a_terminal():
    status, screen, _ = on_terminal([], b"1\n2\n", 80)
    sentence = "too early: no stop is possible before 14 bounds at alpha = 0.001"
    assert status == 3
    assert screen.split("\n")[1:] == [sentence, ""]


def test_json_on_a_terminal():
    status, screen, errors = on_terminal(["--json"], TEXT.encode(), 40)
    assert (status, errors) == (0, "")
    assert parsed(screen) == as_expected(Stopper(), BOUNDS)


def test_typed_numbers():
    # A live line would overwrite what is typed.
    status, screen, errors = on_terminal([], b"1\n2\n", 80, typed=True)
    assert (status, errors) == (3, "One number per line; end with an end-of-file character.\n")
    states = [line for line in screen.split("\n") if "too early" in line]
    assert [state.split()[:2] for state in states] == [["1", "1"], ["2", "2"]]
    assert "\r" not in screen
