# What is still to come of the movement of a model, for Cython callers (by way of runs.pxd) and
# Numba. The terms are those of tracker.pxd: plain C types, no GIL, no exception, NULL does nothing.

from libc.stdint cimport int64_t

from fastal._core.doubledouble cimport dd
from fastal._core.tracker cimport RunsTracker

# After t of N bounds r_1 .. r_t, with W the sum of the last w of them:
#     left = (W / w) (N - t) / (r_1 + ... + r_t + (W / w) (N - t)).
cdef struct Still:
    double share            # stop when at most this share is left; 0: never stop
    int64_t horizon         # N, the bounds there can be; 0: not known
    int64_t window          # w; 0: a fifth of the bounds, 10 to 20 (see still_window)
    int64_t n               # bounds so far, t
    int64_t stopped_at      # bounds at the stop, 0 before it
    double stop_left        # what was left there, and the level
    double stop_level
    bint held               # a push stops nothing: who holds it decides (`latch`)
    bint negative           # a negative bound came: nothing can be said
    int64_t epoch           # changes whenever earlier bounds are no longer there
    # sums in units of 2^shift, which is 0 until a bound is huge: none can overflow
    int shift
    dd total                # of all bounds
    double recent           # W; NaN while there are fewer than w bounds
    double peak             # largest W / w so far
    # all bounds in order
    double *values
    int64_t capacity
    # only for a window of the user's own: sums of the ends of the last full block of w bounds, and
    # of what has come since
    double *tails
    dd head

# still_new: NULL when there is no memory, or for what is no rule: share outside [0, 1), a negative
#             count, a window of 1.
# still_push: 1 = at most `share` is left, 0 = not; -1 = no memory, -2 = value not finite,
#             -3 = NULL, -4 = negative value, -5 = a share without a horizon; in these five cases
#             nothing has changed.
# still_left, still_level: NaN where they are not defined, and for NULL.
cdef Still *still_new(double share, int64_t horizon, int64_t window) noexcept nogil
cdef int still_push(Still *still, double value) noexcept nogil
cdef bint still_reserve(Still *still) noexcept nogil
cdef int64_t still_stopped_at(Still *still) noexcept nogil
cdef double still_left(Still *still) noexcept nogil
cdef double still_level(Still *still) noexcept nogil
cdef void still_reset(Still *still) noexcept nogil
cdef void still_free(Still *still) noexcept nogil

cdef class StillTracker:
    cdef Still *still
    cdef bint busy
    cdef int64_t followed       # epoch of the tracker that is followed
    cdef int check(self) except -1
    cdef int refuse(self, int status, double value) except -1
