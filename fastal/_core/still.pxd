# What is still to come of the movement of a model. Plain C types; nothing needs the GIL, nothing
# raises. The bounds belong to the caller, as in looks.pxd; none is below -1e-12.

from libc.stdint cimport int64_t

from fastal._core.doubledouble cimport dd

# After t of N bounds r_1 .. r_t, with W the sum of the last w = min(20, max(10, t // 5)):
#     left = (W / w) (N - t) / (r_1 + ... + r_t + (W / w) (N - t)).
cdef struct Still:
    double share            # stop when at most this share is left; 0: never
    int64_t horizon         # N, the bounds there can be; 0: not known
    bint own                # whether the horizon is the user's own
    int64_t n               # bounds so far, t
    # sums in units of 2^shift, which is 0 until a bound is huge: none can overflow
    int shift
    dd total                # of all bounds
    double recent           # W; NaN while there are fewer than w bounds
    double peak             # largest W / w so far

# still_follow: count all of the first n bounds. still_left, still_level: NaN where not defined.
cdef void still_start(Still *s, double share, int64_t horizon, bint own) noexcept nogil
cdef void still_follow(Still *s, const double *r, int64_t n) noexcept nogil
cdef double still_left(const Still *s) noexcept nogil
cdef double still_level(const Still *s) noexcept nogil
cdef bint still_stops(const Still *s) noexcept nogil
