# Critical counts, and many streams.
#
# Layers as in tracker.pyx: `cdef ... noexcept nogil` below, `def` loops over the caller's
# memoryviews.

from libc.stdint cimport int64_t
from libc.stdlib cimport free

from fastal._core.distribution cimport LESS, runs_p_value
from fastal._core.memory cimport allocate
from fastal._core.tracker cimport (
    RunsTracker,
    Tracker,
    level_factor,
    tracker_free,
    tracker_n_runs,
    tracker_new_with,
    tracker_p_value,
    tracker_push,
    tracker_reserve,
    tracker_reset,
)

# ---------------------------------------------------------------------------------------------
# Critical counts
# ---------------------------------------------------------------------------------------------

cdef inline double p_less(int64_t u, int64_t n0, int64_t n1, int method) noexcept nogil:
    return runs_p_value(u, n0, n1, LESS, method, False)


cdef int64_t next_critical(int64_t c, int64_t n0, int64_t n1, double level,
                           int method) noexcept nogil:
    # Largest u >= 2 whose p-value is at most the level, or 0; searched from c on.
    while c >= 2 and p_less(c, n0, n1, method) > level:
        c -= 1
    if c < 2:
        c = 0
    while True:
        if c >= 2 * min(n0, n1) + 1 or p_less(max(c + 1, 2), n0, n1, method) > level:
            return c
        c = max(c + 1, 2)


def critical_runs(int64_t n0, int64_t n1, double level, int method, int64_t guess):
    """Return the largest number of runs with P(U <= u) <= level; 0 if there is none."""
    if min(n0, n1) == 0:
        return 0
    with nogil:
        guess = next_critical(max(guess, 0), n0, n1, level, method)
    return guess


def critical_counts(double alpha, bint falling, int method, int[::1] out):
    """Fill out[T] with the critical number of runs of T values halved by their median (no ties)."""
    cdef int64_t n, c = 0
    with nogil:
        for n in range(out.shape[0]):
            if n < 2:
                out[n] = 0
                continue
            c = next_critical(c, n >> 1, n - (n >> 1),
                              alpha * level_factor(n) if falling else alpha, method)
            out[n] = <int>c


def level_at(int64_t n):
    """Return the factor of a falling level."""
    return level_factor(n)


# ---------------------------------------------------------------------------------------------
# Many streams
# ---------------------------------------------------------------------------------------------

def stopping_times(const double[:, ::1] bounds, RunsTracker like, const int[::1] critical,
                   int64_t[::1] out):
    """Fill out[i] with the stopping time of row i, -1 for never; bounds are finite.

    `like` gives the rule. `critical`, from `critical_counts` or empty, spares most exact tails.
    Returns False if there was no memory.
    """
    cdef Tracker *tracker
    cdef int64_t i, j
    cdef int status = 0
    with nogil:
        tracker = tracker_new_with(like.tracker.rule)
        if tracker != NULL:
            if critical.shape[0]:
                tracker.critical = &critical[0]
                tracker.n_critical = critical.shape[0]
            for i in range(bounds.shape[0]):
                out[i] = -1
                for j in range(bounds.shape[1]):
                    status = tracker_push(tracker, bounds[i, j])
                    if status < 0:
                        break
                    if tracker.stopped_at:
                        out[i] = tracker.stopped_at
                        break
                if status < 0:
                    break
                tracker_reset(tracker)
            tracker_free(tracker)
    return tracker != NULL and status >= 0


cdef class TrackerBatch:
    """Trackers of many streams that advance in lock step."""

    cdef Tracker **trackers
    cdef int64_t n
    cdef bint busy

    def __cinit__(self, int64_t n_streams, RunsTracker like):
        cdef int64_t i
        self.n = 0
        self.trackers = <Tracker **>allocate(n_streams, sizeof(Tracker *))
        if self.trackers == NULL:
            raise MemoryError(f"no memory for {n_streams} streams")
        for i in range(n_streams):
            self.trackers[i] = tracker_new_with(like.tracker.rule)
            if self.trackers[i] == NULL:
                raise MemoryError(f"no memory for {n_streams} streams")
            self.n += 1

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.n):
            tracker_free(self.trackers[i])
        free(self.trackers)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the stoppers are in use by another thread")
        return 0

    def push(self, const double[::1] values, const unsigned char[::1] where,
             unsigned char[::1] stopped):
        """Push values[i] to stream i where where[i]; `stopped` receives every stream's state.

        Values are finite. If there is no memory for all, none is pushed.
        """
        cdef int64_t i, short_of = -1
        self.check()
        self.busy = True
        with nogil:
            for i in range(self.n):
                if where[i] and not tracker_reserve(self.trackers[i]):
                    short_of = i
                    break
            if short_of < 0:
                for i in range(self.n):
                    if where[i]:
                        tracker_push(self.trackers[i], values[i])
                    stopped[i] = self.trackers[i].stopped_at > 0
        self.busy = False
        if short_of >= 0:
            raise MemoryError(f"no memory for one more bound of stream {short_of}")

    def reset(self, const int64_t[::1] streams, unsigned char[::1] stopped):
        """Forget all bounds of some streams, and that they stopped."""
        cdef int64_t i
        self.check()
        for i in range(streams.shape[0]):
            tracker_reset(self.trackers[streams[i]])
            stopped[streams[i]] = 0

    def state(self, int64_t[:, ::1] counts, double[:, ::1] floats):
        """Fill counts with rows n, runs, stopped_at and floats with rows p-value, median."""
        cdef int64_t i
        self.check()
        for i in range(self.n):
            counts[0, i] = self.trackers[i].n_pushed
            counts[1, i] = tracker_n_runs(self.trackers[i])
            counts[2, i] = self.trackers[i].stopped_at
            floats[0, i] = tracker_p_value(self.trackers[i])
            floats[1, i] = self.trackers[i].median

    def values(self, int64_t stream, double[::1] out):
        """Copy the bounds of one stream into `out`."""
        cdef int64_t i
        self.check()
        for i in range(out.shape[0]):
            out[i] = self.trackers[stream].values[i]
