"""The regression guard by instruction counts: what it says of planted counts.

The counting itself is a stage of `.ci/run`: it takes half a minute.
"""

import importlib.util
import json
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2] / "benchmarks"
spec = importlib.util.spec_from_file_location("instructions", HOME / "instructions.py")
guard = importlib.util.module_from_spec(spec)
spec.loader.exec_module(guard)

RECORDED = {
    "tolerance": 0.03,
    "tolerance_other_tools": 0.3,
    "pythons": {
        "3.9": {
            "tools": {"python": "3.9", "numba": "0.60"},
            "instructions": {"push": 900, "tail": 5000},
        },
        "3.11": {
            "tools": {"python": "3.11", "numba": "0.60"},
            "instructions": {"push": 1000, "tail": 5000},
        },
    },
}
OLD, SAME = (one["tools"] for one in RECORDED["pythons"].values())
OTHER = {"python": "3.11", "numba": "0.61"}
NEW = {"python": "3.12", "numba": "0.60"}


@pytest.mark.parametrize(
    ("counted", "tools", "wrong"),
    [
        ({"push": 1000, "tail": 5000}, SAME, []),
        ({"push": 1029, "tail": 100}, SAME, []),  # fewer is fine
        ({"push": 1031, "tail": 5000}, SAME, ["push: 3.1% more instructions than recorded"]),
        ({"push": 1299, "tail": 5000}, OTHER, []),
        ({"push": 1301, "tail": 5000}, OTHER, ["push: 30.1% more instructions than recorded"]),
        ({"push": 928, "tail": 5000}, OLD, ["push: 3.1% more instructions than recorded"]),
        ({"push": 1299, "tail": 5000}, NEW, []),  # no record: that of the newest one
        ({"push": 1301, "tail": 5000}, NEW, ["push: 30.1% more instructions than recorded"]),
        ({"push": 1000}, SAME, ["tail: recorded, not counted"]),
        ({"push": 1000, "tail": 5000, "new": 1}, SAME, ["new: not recorded"]),
    ],
)
def test_comparison(capsys, counted, tools, wrong):
    assert guard.compare(RECORDED, counted, tools) == wrong
    assert ("numba: 0.61, recorded with 0.60" in capsys.readouterr().out) == (tools is OTHER)


def test_what_is_missing_is_said(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert guard.main([]) == 0
    assert capsys.readouterr().out == "instructions: skipped, valgrind is not installed\n"


def test_the_record_is_of_these_cases():
    record = json.loads(guard.RECORD.read_text())
    assert record["cases"] == {case.__name__: case.__doc__ for case in guard.CASES}
    assert list(record["pythons"]) == ["3.11", "3.12", "3.13"]
    for python, recorded in record["pythons"].items():
        assert recorded["tools"]["python"] == python
        assert recorded["instructions"].keys() == record["cases"].keys()
    assert record["tolerance"] == guard.TOLERANCE
    assert record["tolerance_other_tools"] == guard.TOLERANCE_OTHER_TOOLS


@pytest.mark.parametrize("case", guard.CASES, ids=lambda case: case.__name__)
def test_each_case_does_its_calls(case):
    assert len(case(3)()) == 3
