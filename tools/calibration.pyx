# cython: boundscheck=False, wraparound=False, cdivision=True
# Calibration of the sequential mode; make_sequential.py compiles and uses it.

from libc.math cimport floor, ldexp, log2
from libc.stdint cimport int64_t
from libc.string cimport memset

from fastal._core.distribution cimport EXACT, LESS, runs_p_value
from fastal._core.levels cimport Level, level_at, level_new
from fastal._core.looks cimport Cut, Looks, looks_free, looks_reserve, looks_start, looks_stop

cdef enum:
    POWERS = 64

# Levels 2^-i of looks at bounds that are exchangeable, and of those that fall. They stay.
cdef Level *LEVELS[2][POWERS]


cdef inline int power_of(double least) noexcept nogil:
    # The smallest level that is not below this p-value.
    cdef int i = <int>min(floor(-log2(least)), <double>(POWERS - 1))
    while i > 0 and ldexp(1, -i) < least:
        i -= 1
    return i


cdef inline double p_value(const Looks *s, int64_t n) noexcept nogil:
    # Of the cut that holds the median, after looks_stop said so.
    cdef int64_t h = n >> 1
    cdef const Cut *c = &s.cuts[0 if s.cuts[0].below <= h < s.cuts[0].upto else 1]
    return runs_p_value(c.runs, c.below, n - c.below, LESS, EXACT)


def least_p_values(const double[:, ::1] bounds, bint weighted, bint fall,
                   const int64_t[::1] horizons, double[:, ::1] out):
    """Fill out[i, j] with the least P(U <= u) over the first horizons[j] bounds of row i.

    The p-value at T bounds is divided by w(T) if `weighted`; with `fall` it is 1 where the bounds
    did not fall. A look costs an exact tail only where it could lower the minimum: the level of the
    looks follows it.
    """
    cdef Looks looks
    cdef Level **levels = &LEVELS[weighted][0]
    cdef int64_t i, j, k, n
    cdef double least, p
    memset(&looks, 0, sizeof(Looks))
    for i in range(POWERS):
        if levels[i] == NULL:
            levels[i] = level_new(ldexp(1, -<int>i), EXACT, weighted)
        if levels[i] == NULL:
            return False
    if not looks_reserve(&looks, bounds.shape[1]):
        return False
    with nogil:
        for i in range(bounds.shape[0]):
            looks_start(&looks, levels[0], fall, 0)
            least, k = 1, 0
            for j in range(bounds.shape[1]):
                n = j + 1
                if n >= looks.next_look and looks_stop(&looks, &bounds[i, 0], n):
                    p = p_value(&looks, n)
                    if weighted:
                        p /= level_at(levels[0], n)     # of the level 1: w(n)
                    if p < least:
                        least = p
                        # only smaller ones are of interest from now on
                        looks.level = levels[power_of(least)]
                if k < horizons.shape[0] and n == horizons[k]:
                    out[i, k] = least
                    k += 1
        looks_free(&looks)
    return True
