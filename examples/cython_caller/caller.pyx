# cython: language_level=3, boundscheck=False, wraparound=False
"""Decisions of fastal in Cython code, without the GIL: see setup.py for how to build it."""

from fastal._core.runs cimport (
    AUTO,
    Streams,
    runs_cdf,
    streams_free,
    streams_new_runs,
    streams_push,
    streams_stopped_at,
)


def follow(const double[::1] bounds, double alpha):
    """Return where one stream of bounds stops; 0: nowhere."""
    cdef Streams *streams = streams_new_runs(alpha, AUTO, True, 1)
    cdef Py_ssize_t i
    cdef int status = 0     # 1: stopped; negative: refused
    if streams is NULL:
        raise MemoryError
    try:
        with nogil:
            for i in range(bounds.shape[0]):
                status = streams_push(streams, 0, bounds[i])
                if status != 0:
                    break
        if status < 0:
            raise ValueError(f"status {status} at bound {i}: not finite, or no memory")
        return streams_stopped_at(streams, 0)
    finally:
        streams_free(streams)


def first_stops(const double[:, ::1] bounds, double alpha, Py_ssize_t[::1] out):
    """Fill `out` with the bounds at the stop of each row, 0 for none."""
    cdef Streams *streams = streams_new_runs(alpha, AUTO, True, bounds.shape[0])
    cdef Py_ssize_t i, j
    if streams is NULL:
        raise MemoryError
    with nogil:
        for i in range(bounds.shape[0]):
            for j in range(bounds.shape[1]):
                streams_push(streams, i, bounds[i, j])
            out[i] = streams_stopped_at(streams, i)
        streams_free(streams)


def too_few(Py_ssize_t runs, Py_ssize_t n_below, Py_ssize_t n_above):
    """Return the probability of so few runs in a random sequence."""
    return runs_cdf(runs, n_below, n_above)
