"""The functions of fastal.h, called through ctypes: they answer what Python answers, and no buffer harms."""

import ctypes
import math
import os
import random
import re
import struct
from pathlib import Path

import numpy as np
import pytest

import fastal
from fastal import StillToCome, Stopper, gp_kl
from fastal._core import capi

OK, STOP = 0, 1
NO_MEMORY, NOT_FINITE, NULL, NEGATIVE, BAD_SETTING, TOO_SMALL, BAD_BUFFER, OTHER_VERSION = range(
    -1, -9, -1
)
HEADER = Path(fastal.get_include()) / "fastal.h"

I64, I32, F64, VOID, SIZE = (
    ctypes.c_int64, ctypes.c_int32, ctypes.c_double, ctypes.c_void_p, ctypes.c_size_t,
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
        ("runs_save", function(ctypes.c_int, VOID, VOID, SIZE, VOID)),
        ("runs_load", function(ctypes.c_int, VOID, SIZE, VOID)),
        ("runs_free", function(None, VOID)),
        ("still_new", function(ctypes.c_int, F64, I64, I64, VOID)),
        ("still_push", function(ctypes.c_int, VOID, F64)),
        ("still_query", function(ctypes.c_int, VOID, VOID)),
        ("still_reset", function(ctypes.c_int, VOID)),
        ("still_save", function(ctypes.c_int, VOID, VOID, SIZE, VOID)),
        ("still_load", function(ctypes.c_int, VOID, SIZE, VOID)),
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
        self.push, self.free, self.load, self.save, self.query, self.reset = (
            getattr(C, f"{kind}_{name}")
            for name in ("push", "free", "load", "save", "query", "reset")
        )
        self.State = RunsState if kind == "runs" else StillState

    def new(self, **changed):
        if self.kind == "runs":
            return made(C.runs_new, ctypes.byref(settings(**changed)))
        given = {"share": 0.2, "horizon": 200, "window": 0} | changed
        return made(C.still_new, given["share"], given["horizon"], given["window"])

    def saved(self, thing):
        size = SIZE(0)
        assert self.save(thing, None, 0, ctypes.byref(size)) == OK
        buffer = ctypes.create_string_buffer(size.value)
        assert self.save(thing, buffer, size.value, ctypes.byref(size)) == OK
        return buffer.raw

    def loaded(self, data):
        # exactly as long as the data, and at an odd address: nothing may be read beside it
        memory = ctypes.create_string_buffer(len(data) + 1)
        ctypes.memmove(ctypes.addressof(memory) + 1, data, len(data))
        return made(self.load, ctypes.addressof(memory) + 1, len(data))

    def state(self, thing):
        found = self.State()
        assert self.query(thing, ctypes.byref(found)) == OK
        return {name: getattr(found, name) for name, _ in found._fields_}


@pytest.fixture(params=["runs", "still"])
def door(request):
    return Door(request.param)


def test_the_struct_is_that_of_the_header():
    text = HEADER.read_text()
    assert capi.ABI_VERSION == C.abi_version == 1
    assert C.size == ctypes.sizeof(Api)
    assert f"#define FASTAL_ABI_VERSION {capi.ABI_VERSION}" in text
    body = text[text.index("typedef struct fastal_api {") : text.index("} fastal_api;")]
    assert re.findall(r"\(\*(\w+)\)", body) == [name for name, _ in Api._fields_[2:]]
    codes = dict(re.findall(r"#define FASTAL_(\w+) \(?(-?\d)\)?", text))
    for name in ("NO_MEMORY", "NOT_FINITE", "NULL", "NEGATIVE", "BAD_SETTING", "TOO_SMALL",
                 "BAD_BUFFER", "OTHER_VERSION", "OK", "STOP"):  # fmt: skip
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
    rule = StillToCome(0.2, horizon=200, window=window or None)
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
    state, size = door.State(), SIZE(0)
    assert door.push(None, 1.0) == NULL
    assert door.query(None, ctypes.byref(state)) == NULL
    assert door.reset(None) == NULL
    assert door.save(None, None, 0, ctypes.byref(size)) == NULL
    assert made(door.load, None, 0)[0] == NULL
    door.free(None)
    _, thing = door.new()
    assert door.query(thing, None) == NULL
    assert door.save(thing, None, 0, None) == NULL
    assert door.load(door.saved(thing), 1, None) == NULL
    door.free(thing)
    assert C.runs_new(None, ctypes.byref(SIZE())) == NULL
    assert C.still_new(0.1, 10, 0, None) == NULL


def test_what_is_not_finite_is_refused(door):
    _, thing = door.new()
    before = door.saved(thing)
    for bad in (math.nan, math.inf, -math.inf):
        assert door.push(thing, bad) == NOT_FINITE
    assert door.saved(thing) == before
    door.free(thing)


@pytest.mark.parametrize("n", [0, 1, 20, 80])
def test_a_saved_state_goes_on_where_it_was(door, n):
    _, thing = door.new()
    for r in FALLING[:n]:
        door.push(thing, r)
    data = door.saved(thing)
    status, again = door.loaded(data)
    assert status == OK
    assert repr(door.state(again)) == repr(door.state(thing))  # NaN included
    assert door.saved(again) == data
    for r in FALLING:
        assert door.push(again, r) == door.push(thing, r)
    assert repr(door.state(again)) == repr(door.state(thing))
    assert door.reset(again) == OK
    assert door.state(again)["n_bounds"] == 0
    door.free(thing)
    door.free(again)


def test_a_buffer_that_is_too_small(door):
    _, thing = door.new()
    door.push(thing, 1.0)
    size = SIZE(0)
    door.save(thing, None, 0, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(b"\xaa" * size.value, size.value)
    needed = size.value
    assert door.save(thing, buffer, needed - 1, ctypes.byref(size)) == TOO_SMALL
    assert size.value == needed
    assert buffer.raw == b"\xaa" * needed
    door.free(thing)


def checksummed(data):
    """Return the data with the checksum that it should have: damage that looks right."""
    h = 0xCBF29CE484222325
    for byte in data[48:]:
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return data[:24] + struct.pack("=Q", h) + data[32:]


def test_damaged_buffers(door):
    _, thing = door.new()
    for r in FALLING:
        door.push(thing, r)
    data = door.saved(thing)
    assert checksummed(data) == data
    door.free(thing)
    other = Door("still" if door.kind == "runs" else "runs")
    assert other.loaded(data)[0] == BAD_BUFFER
    for cut in (0, 1, 47, 48, 60, len(data) - 8, len(data) - 1):
        assert door.loaded(data[:cut])[0] == BAD_BUFFER
    assert door.loaded(data + b"\0" * 8)[0] == BAD_BUFFER
    swapped = data[:8] + data[8:12][::-1] + data[12:]
    assert door.loaded(swapped)[0] == OTHER_VERSION  # a machine of the other byte order
    newer = data[:12] + struct.pack("=I", 2) + data[16:]
    assert door.loaded(newer)[0] == OTHER_VERSION
    for place, value in [(16, 2**63), (32, 2**60), (32, -1), (40, -1), (40, 3), (40, 10**9)]:
        packed = struct.pack("=Q", value % 2**64)
        status, out = door.loaded(checksummed(data[:place] + packed + data[place + 8 :]))
        assert (status, out.value) == (BAD_BUFFER, None), place
    for value in (math.nan, math.inf):
        bad = checksummed(data[:-8] + struct.pack("=d", value))
        assert door.loaded(bad)[0] == BAD_BUFFER
    bad = checksummed(data[:48] + struct.pack("=d", math.nan) + data[56:])  # alpha or share
    assert door.loaded(bad)[0] == BAD_BUFFER


def test_hostile_buffers(door):
    # FASTAL_FUZZ_OPERATIONS and FASTAL_FUZZ_SEED as in test_fuzz_core.py
    operations = int(os.environ.get("FASTAL_FUZZ_OPERATIONS", 3000)) // 10
    rng = random.Random(int(os.environ.get("FASTAL_FUZZ_SEED", 1)))
    _, thing = door.new()
    for r in FALLING[:30]:
        door.push(thing, r)
    data = door.saved(thing)
    door.free(thing)
    statuses = set()
    for _ in range(operations):
        bad = bytearray(data)
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(bad))
            if rng.random() < 0.3 and place < len(bad) - 8:
                value = rng.choice([0, 1, -1, 2**62, -(2**63), rng.getrandbits(63)])
                bad[place : place + 8] = struct.pack("=q", value)
            else:
                bad[place] = rng.randrange(256)
        if rng.random() < 0.2:
            bad = bad[: rng.randrange(len(bad) + 1)] or bad
        made_up = bytes(bad)
        if len(made_up) > 48 and rng.random() < 0.8:
            made_up = made_up[:16] + struct.pack("=Q", len(made_up)) + made_up[24:]
            made_up = checksummed(data[:16] + made_up[16:])
        status, out = door.loaded(made_up)
        statuses.add(status)
        assert status in (OK, NO_MEMORY, BAD_BUFFER, OTHER_VERSION)
        assert (out.value is not None) == (status == OK)
        if status == OK:  # then it works
            assert door.push(out, 1.0) in (OK, STOP, NO_MEMORY)
            door.state(out)
            door.free(out)
    assert {OK, BAD_BUFFER} <= statuses
