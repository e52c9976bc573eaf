# What is still to come: the share of all movement of a model, up to a horizon, that labels would
# still bring if they went on moving it as the last ones did. O(1) for each bound.
#
# Bounds are not negative, so sums of them lose nothing to cancellation as long as nothing is
# subtracted: the window's sum is never "plus the new one, minus the old one", which one huge bound
# would spoil for ever.

from libc.math cimport NAN, isnan
from libc.stdint cimport int64_t

from fastal._core.doubledouble cimport dd, dd_add

cdef enum:
    LEAST_WINDOW = 10
    MOST_WINDOW = 20
    SHIFT = 200                 # sums of 2^30 doubles, each over 2^200, are finite

cdef double HUGE_BOUND = 2.0 ** 900
cdef double SCALE = 2.0 ** -SHIFT


cdef inline int64_t window(const Still *s) noexcept nogil:
    # w_t = min(20, max(10, t // 5))
    return min(MOST_WINDOW, max(LEAST_WINDOW, s.n // 5))


cdef inline double scaled(const Still *s, double value) noexcept nogil:
    # Models return values down to -1e-12 for 0. Bounds that become subnormal by the scale are less
    # than 1e-500 of the sum: they count for nothing anyway.
    value = value if value > 0 else 0.0
    return value * SCALE if s.shift else value


cdef void rescale(Still *s) noexcept nogil:
    # From here on all sums are over 2^200.
    s.shift = SHIFT
    s.total.hi *= SCALE
    s.total.lo *= SCALE
    s.peak *= SCALE


cdef double sum_of_last(const Still *s, const double *x, int64_t w) noexcept nogil:
    # At most 20 terms: all of them, four sums side by side.
    cdef double a = 0, b = 0, c = 0, d = 0
    cdef int64_t i = 0
    while i + 4 <= w:
        a += scaled(s, x[i])
        b += scaled(s, x[i + 1])
        c += scaled(s, x[i + 2])
        d += scaled(s, x[i + 3])
        i += 4
    while i < w:
        a += scaled(s, x[i])
        i += 1
    return (a + b) + (c + d)


cdef void still_start(Still *s, double share, int64_t horizon, bint own) noexcept nogil:
    s.share, s.horizon, s.own = share, horizon, own
    s.n = s.shift = 0
    s.total.hi = s.total.lo = s.peak = 0
    s.recent = NAN


cdef void still_follow(Still *s, const double *r, int64_t n) noexcept nogil:
    cdef dd term
    cdef int64_t w
    while s.n < n:
        if r[s.n] > HUGE_BOUND and not s.shift:
            rescale(s)
        # S_t = S_{t-1} + r_t
        term.hi, term.lo = scaled(s, r[s.n]), 0
        s.total = dd_add(s.total, term)
        s.n += 1
        # W_t = r_{t-w+1} + ... + r_t
        w = window(s)
        if s.n >= w:
            s.recent = sum_of_last(s, r + (s.n - w), w)
            s.peak = max(s.peak, s.recent / w)


cdef double still_left(const Still *s) noexcept nogil:
    cdef double rest
    if s.horizon == 0:
        return NAN
    if s.n >= s.horizon:
        return 0
    if isnan(s.recent):
        return NAN
    if s.total.hi == 0:
        return 1                # nothing has moved yet
    if s.recent == 0:
        return 0                # labels no longer move it at all
    # M (N - t) / S, in an order that cannot overflow: W is at most S
    rest = s.recent / s.total.hi * (<double>(s.horizon - s.n) / window(s))
    return rest / (1 + rest)


cdef double still_level(const Still *s) noexcept nogil:
    # M_t / max_{s<=t} M_s
    if isnan(s.recent) or s.peak == 0:
        return NAN
    return s.recent / window(s) / s.peak


cdef bint still_stops(const Still *s) noexcept nogil:
    # the first t > w_t with left_t <= share, or the horizon
    if s.share == 0 or s.n == 0:
        return False
    return s.n >= s.horizon or (s.n > window(s) and still_left(s) <= s.share)
