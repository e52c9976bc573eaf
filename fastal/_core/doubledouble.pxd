# Double-double arithmetic: a number as the unevaluated sum hi + lo of two doubles.
#
# A mass is exp(sum of log-factorials). At T = 1e7 the log-factorials reach 1.5e8, so that sums of
# doubles would leave an error of 1e-8. Carried as hi + lo they leave about 1e-16, and the mass
# keeps its last digit at any T and any depth of the tail.

from libc.math cimport exp, fma


cdef struct dd:
    double hi
    double lo


cdef inline dd two_sum(double a, double b) noexcept nogil:
    # a + b = hi + lo exactly (Knuth)
    cdef dd r
    cdef double bb
    r.hi = a + b
    bb = r.hi - a
    r.lo = (a - (r.hi - bb)) + (b - bb)
    return r


cdef inline dd dd_add(dd a, dd b) noexcept nogil:
    cdef dd s = two_sum(a.hi, b.hi)
    return two_sum(s.hi, s.lo + (a.lo + b.lo))


cdef inline dd dd_scale(dd a, double f) noexcept nogil:
    # a * f, the product hi * f kept exactly by the fused multiply-add
    cdef double p = a.hi * f
    return two_sum(p, fma(a.hi, f, -p) + a.lo * f)


cdef inline dd atanh_ratio(double a, double b, int terms) noexcept nogil:
    # 2 atanh(a / b) = 2 s (1 + s^2/3 + s^4/5 + ...) with s = a / b; a and b exact
    cdef dd s, p
    cdef double s2, q = 0
    cdef int j
    s.hi = a / b
    s.lo = fma(-s.hi, b, a) / b
    s2 = s.hi * s.hi
    for j in range(terms, 0, -1):
        q = s2 * (1.0 / (2 * j + 1) + q)
    # the product s q is small beside s: a double is enough for |s| <= 2^-8
    p = two_sum(2 * s.hi, 2 * (s.lo + s.hi * q))
    return p


cdef inline double dd_exp(dd a) noexcept nogil:
    cdef double e = exp(a.hi)
    return e + e * a.lo
