# Small pieces of arithmetic on doubles that several modules share.

from libc.math cimport isfinite
from libc.stdint cimport int64_t


cdef inline double midpoint(double a, double b) noexcept nogil:
    # NumPy's median of an even number of values, but for sums that overflow
    cdef double m = (a + b) / 2
    return m if isfinite(m) else a / 2 + b / 2


cdef inline int64_t first_not_finite(const double *x, int64_t n) noexcept nogil:
    # x - x is 0 for finite values and NaN for the others: two independent sums, no branch
    cdef int64_t i
    cdef double a = 0, b = 0
    for i in range(0, n - 1, 2):
        a += x[i] - x[i]
        b += x[i + 1] - x[i + 1]
    if n & 1:
        a += x[n - 1] - x[n - 1]
    if a + b == 0:
        return -1
    i = 0
    while isfinite(x[i]):
        i += 1
    return i
