# The bound of one label (Eq. 7 without C): the twin of bound_array.py, for calls from Python that
# cannot wait for a Numba dispatch, and for code that must not import Numba.

from libc.math cimport INFINITY, frexp, isfinite, isnan, ldexp, log1p


cdef double log1p_excess(double u) noexcept nogil:
    # u - log1p(u). With s = u / (2 + u): log1p(u) = 2 atanh(s) and u - 2 s = u s, so that
    # u - log1p(u) = s (u - 2 s^2/3 - 2 s^4/5 - ...), without cancellation where u is small.
    cdef double s, w, q = 0
    cdef int j
    if u > 0.5:
        return u - log1p(u)
    s = u / (2 + u)
    w = s * s                   # at most 1/25: fourteen terms reach 2^-60
    for j in range(13, -1, -1):
        q = w * (2.0 / (2 * j + 3) + q)
    return s * (u - q)


cdef double square_term(double var, double noise, double d) noexcept nogil:
    # 1/2 var d^2 / (noise (var + noise)): mantissas and exponents go separate ways, so that only
    # the result can leave the range of doubles.
    cdef int ev, en, ed, es, e, half
    cdef double mv = frexp(var, &ev), mn = frexp(noise, &en), md = frexp(d, &ed)
    cdef double ms = frexp(0.5 * var + 0.5 * noise, &es), q
    if not (var > 0) or d == 0:
        return d if isnan(d) else 0
    if not isfinite(d):
        return d * d
    e = ev + 2 * ed - en - es - 2
    if e > 1100:
        return INFINITY
    if e < -1200:
        return 0
    half = e // 2
    q = mv * md / mn * (md / ms)
    return ldexp(ldexp(q, half), e - half)


cdef double bound_of(double mean, double var, double y, double noise) noexcept nogil:
    # -1 for what is no posterior: not finite, negative variance, noise not positive
    cdef double d = y - mean, u = var / noise, square
    if not (var >= 0 and noise > 0 and isfinite(var) and isfinite(noise) and isfinite(d)):
        if not (var >= 0 and noise > 0 and isfinite(var) and isfinite(noise)
                and isfinite(mean) and isfinite(y)):
            return -1
    square = d * d
    if 1e-300 < u < 1e150 and 1e-150 < square < 1e150 and 1e-150 < noise < 1e150:
        # 1/2 [u - log(1 + u)] + 1/2 u d^2 / (s + 1/beta)
        return 0.5 * log1p_excess(u) + 0.5 * u * square / (var + noise)
    return 0.5 * log1p_excess(u) + square_term(var, noise, d)


def gp_kl(double mean, double var, double y, double noise):
    """Return r_t without C; -1.0 if the arguments are no posterior; inf if it overflows."""
    return bound_of(mean, var, y, noise)


def gp_kl_rows(const double[:, ::1] posteriors, double[::1] out):
    """Fill `out` as `gp_kl` does for columns mean, var, y, noise."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = bound_of(posteriors[i, 0], posteriors[i, 1], posteriors[i, 2],
                              posteriors[i, 3])
