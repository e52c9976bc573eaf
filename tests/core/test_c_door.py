"""The functions of fastal.h, called through ctypes: they answer what Python answers."""

import ctypes
import math
import re
from pathlib import Path

import numpy as np
import pytest
from c_door import (
    BAD_SETTING,
    F64,
    NEGATIVE,
    NO_MEMORY,
    NOT_FINITE,
    NULL,
    OK,
    STOP,
    Api,
    C,
    new_movement,
    new_runs,
)

import fastal
from fastal import gp_kl
from fastal._core import capi, distribution
from fastal._core.rule import Rule
from fastal.runs import RunsDistribution

HEADER = Path(fastal.get_include()) / "fastal.h"
FALLING = np.random.default_rng(0).uniform(0.5, 1.5, 80) * 10.0 / np.arange(1, 81)


def test_the_struct_is_that_of_the_header():
    text = HEADER.read_text()
    assert capi.ABI_VERSION == C.abi_version == 3
    assert C.size == ctypes.sizeof(Api)
    assert f"#define FASTAL_ABI_VERSION {capi.ABI_VERSION}" in text
    body = text[text.index("typedef struct fastal_api {") : text.index("} fastal_api;")]
    assert re.findall(r"\(\*(\w+)\)", body) == [name for name, _ in Api._fields_[2:]]
    codes = {n: int(code) for n, code in re.findall(r"#define FASTAL_(\w+) \(?(-?\d)\)?", text)}
    assert [codes[name] for name in ("OK", "STOP", "NO_MEMORY", "NOT_FINITE")] == [
        OK, STOP, NO_MEMORY, NOT_FINITE,
    ]  # fmt: skip
    assert [codes[name] for name in ("NULL", "NEGATIVE", "BAD_SETTING")] == [
        NULL, NEGATIVE, BAD_SETTING,
    ]  # fmt: skip


def test_bound():
    r = F64(-5.0)
    assert C.bound(0.1, 0.5, 0.7, 0.01, ctypes.byref(r)) == OK
    assert r.value == gp_kl(0.1, 0.5, 0.7, 0.01)
    r.value = -5.0
    for arguments, status in [
        ((math.nan, 0.5, 0.7, 0.01), NOT_FINITE),
        ((0.1, math.inf, 0.7, 0.01), NOT_FINITE),
        ((0.1, -0.5, 0.7, 0.01), NEGATIVE),
        ((0.1, 0.5, 0.7, 0.0), NEGATIVE),
        ((1e308, 1e300, -1e308, 1e-300), NOT_FINITE),  # the bound overflows
    ]:
        assert C.bound(*arguments, ctypes.byref(r)) == status
        assert r.value == -5.0
    assert C.bound(0.1, 0.5, 0.7, 0.01, None) == NULL


@pytest.mark.parametrize("fall", [0, 1])
@pytest.mark.parametrize("method", [0, 1, 2])
def test_runs_are_those_of_python(method, fall):
    status, streams = new_runs(0.01, method, fall, n=3)
    assert status == OK
    for i, x in enumerate((FALLING, FALLING[::-1], np.ones(80))):
        rule = Rule(("runs", 0.01, method, False, bool(fall), 0))
        for r in x.tolist():
            assert C.streams_push(streams, i, r) == rule.push(r)
            assert C.streams_stopped_at(streams, i) == rule.stopped_at
        assert math.isnan(C.streams_left(streams, i))
    assert C.streams_stopped_at(streams, 0) > 0
    C.streams_free(streams)


def test_movement_is_that_of_python():
    status, streams = new_movement(0.4, 200, n=2)
    rule = Rule(("still", 0.4, 200))
    assert status == OK
    for r in FALLING.tolist():
        assert C.streams_push(streams, 1, r) == rule.push(r)
        assert C.streams_stopped_at(streams, 1) == rule.stopped_at
        np.testing.assert_array_equal(C.streams_left(streams, 1), rule.left)
    assert rule.stopped_at > 0
    assert C.streams_push(streams, 1, -1.0) == NEGATIVE
    assert C.streams_left(streams, 1) == rule.left
    assert C.streams_stopped_at(streams, 0) == 0
    C.streams_free(streams)


def test_bad_settings():
    for changed in (
        {"alpha": 0.0}, {"alpha": 1.0}, {"alpha": math.nan}, {"method": 3}, {"method": -1},
        {"fall": 2}, {"fall": -1}, {"n": 0}, {"n": -1},
    ):  # fmt: skip
        assert new_runs(**changed) == (BAD_SETTING, None), changed
    for changed in (
        {"share": 0.0}, {"share": 1.0}, {"share": math.nan}, {"horizon": 0}, {"horizon": -1},
        {"n": 0}, {"n": -1},
    ):  # fmt: skip
        assert new_movement(**changed) == (BAD_SETTING, None), changed
    for n in (2**31, 2**61, 2**63 - 1):  # more than can be addressed
        assert new_runs(n=n) == new_movement(n=n) == (NO_MEMORY, None)


@pytest.mark.parametrize("new", [new_runs, new_movement])
def test_nothing_is_done_without_a_stream(new):
    _, streams = new(n=2)
    for thing, i in ((None, 0), (streams, 2), (streams, -1), (streams, 2**63 - 1)):
        assert C.streams_push(thing, i, 1.0) == NULL
        assert C.streams_stopped_at(thing, i) == NULL
        assert C.streams_reset(thing, i) == NULL
        assert math.isnan(C.streams_left(thing, i))
    C.streams_free(streams)
    C.streams_free(None)
    assert C.streams_new_runs(0.1, 0, 1, 1, None) == NULL
    assert C.streams_new_movement(0.1, 10, 1, None) == NULL


@pytest.mark.parametrize("new", [new_runs, new_movement])
def test_what_is_not_finite_is_refused_and_a_reset_begins_anew(new):
    _, streams = new(n=2)
    for i in (0, 1):
        for r in FALLING.tolist():
            C.streams_push(streams, i, r)
    at = C.streams_stopped_at(streams, 0)
    assert C.streams_reset(streams, 0) == OK
    assert [C.streams_stopped_at(streams, i) for i in (0, 1)] == [0, at]
    for t, r in enumerate(FALLING.tolist(), 1):
        for bad in (math.nan, math.inf, -math.inf):
            assert C.streams_push(streams, 0, bad) == NOT_FINITE
        assert C.streams_push(streams, 0, r) == (t >= at)
    assert C.streams_stopped_at(streams, 0) == at > 0
    C.streams_free(streams)


def test_the_distribution():
    d = RunsDistribution(10, 12)
    for u in range(-1, 24):
        assert [f(u, 10, 12) for f in (C.runs_pmf, C.runs_cdf, C.runs_sf)] == [
            d.pmf(u), d.cdf(u), d.sf(u),
        ]  # fmt: skip
        for alternative in range(3):
            for method in range(3):
                p = C.runs_p_value(u, 10, 12, alternative, method)
                assert p == distribution.p_value(max(u, 0), 10, 12, alternative, method)
    for counts in ((-1, 3), (3, -1), (2**53, 1), (3, 2**63 - 1), (-(2**63), 2)):
        for f in (C.runs_pmf, C.runs_cdf, C.runs_sf):
            assert math.isnan(f(4, *counts))
        assert math.isnan(C.runs_p_value(4, *counts, 0, 0))
    for kind in ((3, 0), (-1, 0), (0, 3), (0, -1)):
        assert math.isnan(C.runs_p_value(4, 5, 5, *kind))
    for u in (-(2**63), 2**63 - 1):
        assert (C.runs_cdf(u, 5, 5), C.runs_p_value(u, 5, 5, 1, 0)) == (u > 0, u < 0)
