# cython: language_level=3, boundscheck=False, wraparound=False
"""Decisions of fastal in Cython code, without the GIL: see setup.py for how to build it."""

from fastal._core.runs cimport (
    Tracker,
    runs_cdf,
    tracker_free,
    tracker_n_runs,
    tracker_new,
    tracker_p_value,
    tracker_push,
    tracker_reset,
    tracker_stopped_at,
)


def follow(const double[::1] bounds, double alpha):
    """Return where one stream of bounds stops (0: nowhere), its runs and its p-value now."""
    cdef Tracker *tracker = tracker_new(alpha, 0)  # 0: no window
    cdef Py_ssize_t i
    cdef int status = 0
    if tracker is NULL:
        raise MemoryError
    try:
        with nogil:
            for i in range(bounds.shape[0]):
                status = tracker_push(tracker, bounds[i])  # 1: rejected, 0: not
                if status < 0:
                    break
        if status < 0:
            raise ValueError(f"status {status} at bound {i}: not finite, or no memory")
        return tracker_stopped_at(tracker), tracker_n_runs(tracker), tracker_p_value(tracker)
    finally:
        tracker_free(tracker)


def first_stops(const double[:, ::1] streams, double alpha, Py_ssize_t[::1] out):
    """Fill `out` with the bounds at the stop of each row, 0 for none; one tracker serves all."""
    cdef Tracker *tracker = tracker_new(alpha, 0)
    cdef Py_ssize_t i, j
    if tracker is NULL:
        raise MemoryError
    with nogil:
        for i in range(streams.shape[0]):
            tracker_reset(tracker)
            for j in range(streams.shape[1]):
                tracker_push(tracker, streams[i, j])
            out[i] = tracker_stopped_at(tracker)
        tracker_free(tracker)


def too_few(Py_ssize_t runs, Py_ssize_t n_below, Py_ssize_t n_above):
    """Return the probability of so few runs in a random sequence."""
    return runs_cdf(runs, n_below, n_above)
