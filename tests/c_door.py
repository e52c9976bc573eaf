"""The functions of fastal.h for Python, through ctypes."""

import ctypes

from fastal._core import capi

OK, STOP = 0, 1
NO_MEMORY, NOT_FINITE, NULL, NEGATIVE, BAD_SETTING = range(-1, -6, -1)
I64, F64, VOID, INT = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_int


def function(result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)


class Api(ctypes.Structure):
    _fields_ = [
        ("abi_version", I64),
        ("size", I64),
        ("bound", function(INT, F64, F64, F64, F64, VOID)),
        ("streams_new_runs", function(INT, F64, INT, INT, I64, VOID)),
        ("streams_new_movement", function(INT, F64, I64, I64, VOID)),
        ("streams_push", function(INT, VOID, I64, F64)),
        ("streams_stopped_at", function(I64, VOID, I64)),
        ("streams_left", function(F64, VOID, I64)),
        ("streams_reset", function(INT, VOID, I64)),
        ("streams_free", function(None, VOID)),
        ("runs_pmf", function(F64, I64, I64, I64)),
        ("runs_cdf", function(F64, I64, I64, I64)),
        ("runs_sf", function(F64, I64, I64, I64)),
        ("runs_p_value", function(F64, I64, I64, I64, INT, INT)),
    ]


def functions():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = VOID, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer(capi.API, b"fastal._core.capi.API"), ctypes.POINTER(Api)).contents


C = functions()


def new_runs(alpha=1e-3, method=0, fall=1, n=1):
    """Return the status, and the address of the streams or None."""
    made = VOID(None)
    return C.streams_new_runs(alpha, method, fall, n, ctypes.byref(made)), made.value


def new_movement(share=0.4, horizon=200, n=1):
    made = VOID(None)
    return C.streams_new_movement(share, horizon, n, ctypes.byref(made)), made.value
