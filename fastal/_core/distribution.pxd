# The distribution of the number of runs U of n0 zeros and n1 ones in random order, and p-values.
#
# Plain C types only; nothing needs the GIL, nothing raises, nothing is allocated.

from libc.math cimport erfc
from libc.stdint cimport int64_t

# How a tail is computed. AUTO: see `choose_method` in fastal/runs.py.
cdef enum Method:
    AUTO = 0
    EXACT = 1
    NORMAL = 2

# TWO_SIDED doubles the smaller tail.
cdef enum Alternative:
    LESS = 0
    GREATER = 1
    TWO_SIDED = 2

# What AUTO means; the normal approximation is wildly off where one count is small.
cdef enum:
    EXACT_TOTAL = 1_000_000
    EXACT_COUNT = 1_000


cdef inline double mean_runs(double n0, double n1) noexcept nogil:
    return 1 + 2 * n0 * n1 / (n0 + n1)


cdef inline double var_runs(double n0, double n1) noexcept nogil:
    cdef double t = n0 + n1
    cdef double p = 2 * n0 * n1
    return p * (p - t) / (t * t * (t - 1)) if t > 1 else 0


cdef inline int64_t max_runs(int64_t n0, int64_t n1) noexcept nogil:
    if n0 == n1:
        return 2 * n0
    return 2 * min(n0, n1) + 1


cdef inline int64_t min_runs(int64_t n0, int64_t n1) noexcept nogil:
    return 1 if n0 == 0 or n1 == 0 else 2


cdef inline int resolve(int method, int64_t n0, int64_t n1) noexcept nogil:
    if method != AUTO:
        return method
    return EXACT if n0 + n1 <= EXACT_TOTAL or min(n0, n1) < EXACT_COUNT else NORMAL


cdef inline double normal_cdf(double z) noexcept nogil:
    return 0.5 * erfc(-z * 0.70710678118654752440)


cdef double runs_pmf(int64_t u, int64_t n0, int64_t n1) noexcept nogil
cdef double runs_logpmf(int64_t u, int64_t n0, int64_t n1) noexcept nogil
cdef double runs_cdf(int64_t u, int64_t n0, int64_t n1) noexcept nogil
cdef double runs_logcdf(int64_t u, int64_t n0, int64_t n1) noexcept nogil
cdef double runs_sf(int64_t u, int64_t n0, int64_t n1) noexcept nogil
cdef double runs_logsf(int64_t u, int64_t n0, int64_t n1) noexcept nogil
cdef double normal_quantile(double p) noexcept nogil
cdef double runs_p_value(int64_t u, int64_t n0, int64_t n1, int alternative,
                         int method) noexcept nogil
