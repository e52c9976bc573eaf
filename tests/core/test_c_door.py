"""The functions of fastal.h, called through ctypes: they answer what Python answers."""

import ctypes
import math
import re
from pathlib import Path

import numpy as np
import pytest

import fastal
from fastal import MovementBelow, Stopper, gp_kl
from fastal._core import capi

OK, STOP = 0, 1
NO_MEMORY, NOT_FINITE, NULL, NEGATIVE, BAD_SETTING = range(-1, -6, -1)
HEADER = Path(fastal.get_include()) / "fastal.h"

I64, I32, F64, VOID = (
    ctypes.c_int64, ctypes.c_int32, ctypes.c_double, ctypes.c_void_p,
)  # fmt: skip


class Settings(ctypes.Structure):
    _fields_ = [("alpha", F64), ("window", I64), ("min_bounds", I64), ("patience", I64),
                ("method", I32), ("alternative", I32), ("fall", I32), ("reserved", I32)]  # fmt: skip


class RunsState(ctypes.Structure):
    _fields_ = [("n_bounds", I64), ("stopped_at", I64), ("n_runs", I64), ("n_below", I64),
                ("n_above", I64), ("median", F64), ("p_value", F64), ("fell", I32),
                ("reserved", I32)]  # fmt: skip


class StillState(ctypes.Structure):
    _fields_ = [("n_bounds", I64), ("stopped_at", I64), ("left", F64), ("level", F64)]


def function(result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)


class Api(ctypes.Structure):
    _fields_ = [
        ("abi_version", I64),
        ("size", I64),
        ("bound", function(ctypes.c_int, F64, F64, F64, F64, VOID)),
        ("runs_new", function(ctypes.c_int, VOID, VOID)),
        ("runs_push", function(ctypes.c_int, VOID, F64)),
        ("runs_query", function(ctypes.c_int, VOID, VOID)),
        ("runs_reset", function(ctypes.c_int, VOID)),
        ("runs_free", function(None, VOID)),
        ("still_new", function(ctypes.c_int, F64, I64, I64, VOID)),
        ("still_push", function(ctypes.c_int, VOID, F64)),
        ("still_query", function(ctypes.c_int, VOID, VOID)),
        ("still_reset", function(ctypes.c_int, VOID)),
        ("still_free", function(None, VOID)),
    ]


def functions():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = VOID, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(capi.API, b"fastal._core.capi.API"), ctypes.POINTER(Api)).contents


C = functions()
FALLING = np.random.default_rng(0).uniform(0.5, 1.5, 80) * 10.0 / np.arange(1, 81)


def settings(**changed):
    return Settings(*({"alpha": 1e-3, "window": 0, "min_bounds": 0, "patience": 1, "method": 0,
                       "alternative": 0, "fall": 1, "reserved": 0} | changed).values())  # fmt: skip


def made(new, *arguments):
    """Return what a function makes, with its status."""
    out = VOID(None)
    status = new(*arguments, ctypes.byref(out))
    return status, out


class Door:
    """One kind of object: runs or still."""

    def __init__(self, kind):
        self.kind = kind
        self.push, self.free, self.query, self.reset = (
            getattr(C, f"{kind}_{name}") for name in ("push", "free", "query", "reset")
        )
        self.State = RunsState if kind == "runs" else StillState

    def new(self, **changed):
        if self.kind == "runs":
            return made(C.runs_new, ctypes.byref(settings(**changed)))
        given = {"share": 0.2, "horizon": 200, "window": 0} | changed
        return made(C.still_new, given["share"], given["horizon"], given["window"])

    def state(self, thing):
        found = self.State()
        assert self.query(thing, ctypes.byref(found)) == OK
        return {name: getattr(found, name) for name, _ in found._fields_}


@pytest.fixture(params=["runs", "still"])
def door(request):
    return Door(request.param)


def test_the_struct_is_that_of_the_header():
    text = HEADER.read_text()
    assert capi.ABI_VERSION == C.abi_version == 2
    assert C.size == ctypes.sizeof(Api)
    assert f"#define FASTAL_ABI_VERSION {capi.ABI_VERSION}" in text
    body = text[text.index("typedef struct fastal_api {") : text.index("} fastal_api;")]
    assert re.findall(r"\(\*(\w+)\)", body) == [name for name, _ in Api._fields_[2:]]
    codes = dict(re.findall(r"#define FASTAL_(\w+) \(?(-?\d)\)?", text))
    for name in ("NO_MEMORY", "NOT_FINITE", "NULL", "NEGATIVE", "BAD_SETTING", "OK", "STOP"):
        assert int(codes[name]) == globals()[name]


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


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"window": 15},
        {"fall": 0, "alternative": 2},
        {"patience": 3, "min_bounds": 30, "method": 2},
    ],
)
def test_runs_are_those_of_a_stopper(changed):
    door = Door("runs")
    names = {
        "method": ["auto", "exact", "normal"],
        "alternative": ["less", "greater", "two-sided"],
    }
    given = {k: names[k][v] if k in names else (bool(v) if k == "fall" else v)
             for k, v in changed.items()}  # fmt: skip
    stopper = Stopper(**given)
    status, runs = door.new(**changed)
    assert status == OK
    for r in FALLING:
        assert door.push(runs, r) == stopper.push(r)
        found = door.state(runs)
        assert found["n_bounds"] == len(stopper.bounds)
        assert found["stopped_at"] == (stopper.stopped_at or 0)
        assert (found["n_runs"], found["n_below"], found["n_above"]) == (
            stopper.n_runs, stopper.n_below, stopper.n_above,
        )  # fmt: skip
        assert (found["median"], found["p_value"]) == (stopper.median, stopper.p_value)
    door.free(runs)


@pytest.mark.parametrize("window", [0, 12])
def test_still_is_that_of_python(window):
    door = Door("still")
    rule = MovementBelow(0.2, horizon=200, window=window or None)
    status, still = door.new(window=window)
    assert status == OK
    for r in FALLING:
        assert door.push(still, r) == rule.push(r)
        found = door.state(still)
        assert found["stopped_at"] == (rule.stopped_at or 0)
        for name in ("left", "level"):
            value = getattr(rule, name)
            assert found[name] == value or (math.isnan(found[name]) and math.isnan(value))
    assert door.push(still, -1.0) == NEGATIVE
    assert door.state(still)["n_bounds"] == len(FALLING)
    door.free(still)


def test_bad_settings():
    for changed in (
        {"alpha": 0.0}, {"alpha": 1.0}, {"alpha": math.nan}, {"window": 1}, {"window": -3},
        {"min_bounds": -1}, {"patience": 0}, {"method": 3}, {"method": -1}, {"alternative": 4},
        {"fall": 2}, {"reserved": 1},
    ):  # fmt: skip
        status, runs = Door("runs").new(**changed)
        assert (status, runs.value) == (BAD_SETTING, None), changed
    for changed in (
        {"share": 0.0}, {"share": 1.0}, {"share": math.nan}, {"horizon": 0}, {"horizon": -1},
        {"window": 1}, {"window": -2}, {"window": 200},
    ):  # fmt: skip
        status, still = Door("still").new(**changed)
        assert (status, still.value) == (BAD_SETTING, None), changed


def test_nothing_is_done_with_null(door):
    state = door.State()
    assert door.push(None, 1.0) == NULL
    assert door.query(None, ctypes.byref(state)) == NULL
    assert door.reset(None) == NULL
    door.free(None)
    _, thing = door.new()
    assert door.query(thing, None) == NULL
    door.free(thing)
    assert C.runs_new(None, ctypes.byref(VOID())) == NULL
    assert C.still_new(0.1, 10, 0, None) == NULL


def test_what_is_not_finite_is_refused(door):
    _, thing = door.new()
    before = repr(door.state(thing))
    for bad in (math.nan, math.inf, -math.inf):
        assert door.push(thing, bad) == NOT_FINITE
    assert repr(door.state(thing)) == before  # NaN included
    door.free(thing)


def test_a_reset_begins_anew(door):
    _, thing = door.new()
    _, fresh = door.new()
    for r in FALLING:
        door.push(thing, r)
    assert door.reset(thing) == OK
    assert repr(door.state(thing)) == repr(door.state(fresh))
    for r in FALLING:
        assert door.push(thing, r) == door.push(fresh, r)
    assert repr(door.state(thing)) == repr(door.state(fresh))
    door.free(thing)
    door.free(fresh)
