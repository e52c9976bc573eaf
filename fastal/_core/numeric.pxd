# Small pieces of arithmetic on doubles that several modules share.

from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy


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


cdef inline void sort(const double *new, int64_t n, double *x) noexcept nogil:
    # Into x: few by their ranks, without a branch; more by insertion, beyond 128 in Shell's way.
    cdef int64_t gap = 1, i, j, k
    cdef double value
    if n <= 24:
        for i in range(n):
            k, value = 0, new[i]
            for j in range(i):
                k += new[j] <= value
            for j in range(i + 1, n):
                k += new[j] < value
            x[k] = value
        return
    memcpy(x, new, n * sizeof(double))
    while 128 * gap < n:
        gap = 4 * gap + 1
    while gap:
        for i in range(gap, n):
            j, value = i, x[i]
            while j >= gap and x[j - gap] > value:
                x[j] = x[j - gap]
                j -= gap
            x[j] = value
        gap = gap >> 2


cdef inline int64_t rank(const double *o, int64_t n, double value, bint upto) noexcept nogil:
    # Number of ordered values below this one, or up to it.
    cdef int64_t low = 0, middle
    while low < n:
        middle = (low + n) >> 1
        if o[middle] < value or (upto and o[middle] == value):
            low = middle + 1
        else:
            n = middle
    return low
