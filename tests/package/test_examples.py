"""Every example runs, without a terminal."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import fastal
from fastal._core.rule import Rule

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "scikit_learn_refits": "sklearn",
    "scikit_activeml_loop": "skactiveml",
}
# Loops around libraries that warn of their own; `.ci/run --clients` has them.
WARN = {
    "ax_loop": "ax",
    "bofire_loop": "bofire",
    "emukit_loop": "emukit",
    "optuna_loop": "optuna",
    "scikit_optimize_loop": "skopt",
    "small_text_loop": "small_text",
}


def run(name, tmp_path, *arguments, answers="", strict=True):
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    if name == "jitted_campaigns":  # it caches what it compiles, beside itself by default
        env["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error" if strict else "ignore",
            str(EXAMPLES / f"{name}.py"),
            *arguments,
        ],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        input=answers,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or not strict
    return done.stdout


def test_all_examples_are_tested():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    tested = {"jitted_campaigns", "label_by_hand", "own_process"} | set(NEEDS) | set(WARN)
    assert names == tested
    # test_jit.py builds and runs the first one, the others are below
    folders = {path.name for path in EXAMPLES.iterdir() if (path / "setup.py").is_file()}
    assert folders == {"cython_caller", "c_caller", "cpp_caller"}


def test_jitted_campaigns(tmp_path):
    assert "stopped by themselves" in run("jitted_campaigns", tmp_path, "300")


def test_own_process(tmp_path):
    out = run("own_process", tmp_path)
    assert "stopped: True" in out
    assert "stop after" in out


@pytest.mark.parametrize("name", NEEDS)
def test_loops_of_other_libraries(name, tmp_path):
    pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    out = run(name, tmp_path)
    assert "stopped: True" in out
    assert "stop after" in out


@pytest.mark.parametrize("name", WARN)
def test_criteria_in_loops_of_other_libraries(name, tmp_path):
    if importlib.util.find_spec(WARN[name]) is None:
        pytest.skip(f"{WARN[name]} is not installed")
    assert "stopped: True" in run(name, tmp_path, strict=False)


# Extensions in C and C++


def built(name, folder, header=None):
    """Build an extension in a folder of its own; return a function that runs code with it."""
    compiler = shutil.which(os.environ.get("CC", "cc").split()[0])
    if compiler is None or os.name == "nt":
        pytest.skip("there is no C compiler called cc")
    for path in (EXAMPLES / name).iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    if header is not None:
        script = (folder / "setup.py").read_text()
        (folder / "setup.py").write_text(script.replace("fastal.get_include()", repr(header)))
    env = dict(os.environ)
    # warnings are errors, also of the header; .ci/run adds the sanitizers
    env["CFLAGS"] = f"-O0 -Wall -Wextra -Werror {env.get('CFLAGS', '')}"
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def use(code):
        (folder / "use.py").write_text(textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, "-W", "error", "use.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return use


def test_c_caller(tmp_path):
    n = 200
    rng = np.random.default_rng(0)
    var = 1.0 / np.arange(1, n + 1)
    y = rng.normal(0.0, np.sqrt(var + 0.01))
    arguments = f"np.zeros({n}), np.array({var.tolist()}), np.array({y.tolist()})"
    use = built("c_caller", tmp_path)
    (stopped_at, left), refused = use(f"""
        import json, c_caller, numpy as np
        found = c_caller.follow({arguments}, 0.01)
        try:
            c_caller.follow(np.zeros(3), -np.ones(3), np.zeros(3), 0.01)
        except ValueError as error:
            refused = str(error)
        print(json.dumps([found, refused]))
    """)
    rule = Rule(("still", 0.05, n))
    bounds = fastal.gp_kl(0.0, var, y, 0.01)
    assert rule.extend(bounds[:stopped_at]) == stopped_at
    assert left == rule.left
    assert stopped_at < n
    assert refused == "fastal: status -4"


def test_cpp_caller(tmp_path):
    bounds = np.concatenate((np.full(12, 5.0), np.linspace(1.0, 0.5, 20)))
    use = built("cpp_caller", tmp_path)
    stopped_at, refused = use(f"""
        import json, cpp_caller, numpy as np
        found = cpp_caller.follow(np.array({bounds.tolist()}), 1e-3)
        try:
            cpp_caller.follow(np.array([np.nan]), 1e-3)
        except ValueError as error:
            refused = str(error)
        print(json.dumps([found, refused]))
    """)
    assert Rule(("runs", 1e-3, 0, False, True, 0)).extend(bounds[:stopped_at]) == stopped_at > 12
    assert refused == "fastal: status -2"


def test_an_extension_for_another_version_is_refused(tmp_path):
    header, folder = tmp_path / "header", tmp_path / "extension"
    header.mkdir()
    folder.mkdir()
    text = (Path(fastal.get_include()) / "fastal.h").read_text()
    (header / "fastal.h").write_text(text.replace("ABI_VERSION 3\n", "ABI_VERSION 999\n"))
    said = built("c_caller", folder, str(header))("""
        import json
        try:
            import c_caller
        except ImportError as error:
            print(json.dumps(str(error)))
    """)
    assert said.startswith("fastal has version 3 of its C interface with")
    assert said.endswith("build it anew")
    assert "version 999" in said


@pytest.mark.parametrize(("language", "standard"), [("c", "c99"), ("c++", "c++11")])
def test_the_header_needs_no_python(tmp_path, language, standard):
    compiler = shutil.which(os.environ.get("CC", "cc").split()[0])
    if compiler is None or os.name == "nt":
        pytest.skip("there is no C compiler called cc")
    source = tmp_path / "alone.txt"
    source.write_text(
        "#include <fastal.h>\nint size(const fastal_api *f) { return (int)f->size; }\n"
    )
    flags = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-std={standard}"]
    done = subprocess.run(
        [compiler, *flags, "-x", language, f"-I{fastal.get_include()}", str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# A person at the terminal


@pytest.fixture
def session(tmp_path, monkeypatch, capsys):
    """Give answers to label_by_hand, end its input, and return what it printed."""
    spec = importlib.util.spec_from_file_location("by_hand", EXAMPLES / "label_by_hand.py")
    by_hand = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(by_hand)
    monkeypatch.chdir(tmp_path)

    def answer(answers, *arguments, end=EOFError):
        left = iter(answers)

        def ask(_):
            try:
                return next(left)
            except StopIteration:
                raise end from None

        monkeypatch.setattr("builtins.input", ask)
        by_hand.main(*arguments)
        return capsys.readouterr().out

    return answer


ANSWERS = [f"{10 + 0.1 * (7 * i % 10):.1f}" for i in range(52)]


def test_label_by_hand_is_saved_after_each_answer_and_resumed(session, tmp_path):
    campaign, whole = tmp_path / "campaign.json", tmp_path / "whole.json"
    out = session(ANSWERS, "whole.json")
    used = len(json.loads(whole.read_text())["labels"])
    assert f"stopped: True, with {used} of 52 answers in whole.json" in out

    assert "not stopped yet: 0 answers so far" in session([])
    assert not campaign.exists()
    out = session([ANSWERS[0], "warm", "nan", "", *ANSWERS[1:3]])
    assert out.count("a number, please") == 3
    assert "not stopped yet: 3 answers so far" in out
    assert len(json.loads(campaign.read_text())["labels"]) == 3
    out = session([text.replace(".", ",") for text in ANSWERS[3:6]], end=KeyboardInterrupt)
    assert "going on after 3 answers in campaign.json" in out
    assert "not stopped yet: 6 answers so far" in out
    assert f"stopped: True, with {used} of 52 answers" in session(ANSWERS[6:])
    assert campaign.read_text() == whole.read_text()
    assert f"stopped: True, with {used} of 52 answers" in session([])  # it asks no more
    assert {path.name for path in tmp_path.iterdir()} == {"campaign.json", "whole.json"}


def test_label_by_hand_ends_with_its_input(tmp_path):
    out = run("label_by_hand", tmp_path, answers="12\n13")
    assert out.endswith("not stopped yet: 2 answers so far; start again to go on\n")
