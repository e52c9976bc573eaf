"""Every example runs, without a terminal."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "digits_ten_classes": "sklearn",
    "torch_last_layer": "torch",
    "scikit_learn_loop": "sklearn",
    "scikit_learn_refits": "sklearn",
    "scikit_activeml_loop": "skactiveml",
}


def run(name, tmp_path, *arguments, answers=""):
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    if name == "jitted_campaigns":  # it caches what it compiles, beside itself by default
        env["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        input=answers,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_all_examples_are_tested():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    tested = {"jitted_campaigns", "label_by_hand", "own_process"} | set(NEEDS)
    assert names == tested
    # test_jit.py builds and runs this one
    assert (EXAMPLES / "cython_caller" / "caller.pyx").is_file()


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
