# Levels of single looks at the runs test, and the critical numbers of runs that follow from them.

from libc.math cimport floor, log2, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from fastal._core.distribution cimport (
    LESS,
    mean_runs,
    normal_quantile,
    runs_p_value,
    var_runs,
)

cdef enum:
    EXACT_BELOW = 512           # fewer values than this: critical numbers; else bounds of them


cdef double level_at(const Level *level, int64_t n) noexcept nogil:
    # alpha w(n), w = 1 below 16 values, else (1 + log2(n / 16))^-2
    if not level.falling or n < 16:
        return level.alpha
    return level.alpha * (1 + log2(<double>n / 16)) ** -2


cdef inline double p_at_halves(const Level *level, int64_t runs, int64_t n) noexcept nogil:
    return runs_p_value(runs, n >> 1, n - (n >> 1), LESS, level.method)


cdef Level *level_new(double alpha, int method, bint falling) noexcept nogil:
    cdef Level *level = <Level *>calloc(1, sizeof(Level))
    cdef int i
    if level == NULL:
        return NULL
    level.kept = <int32_t *>calloc(KEPT, sizeof(int32_t))
    if level.kept == NULL:
        free(level)
        return NULL
    level.alpha, level.method, level.falling = alpha, method, falling
    for i in range(POWERS):             # bisection to 1e-9, from below
        if i == 0 or falling:
            level.z[i] = normal_quantile(level_at(level, <int64_t>1 << i)) + 2e-9
        else:
            level.z[i] = level.z[0]
    level.first = 2
    while p_at_halves(level, 2, level.first) > level_at(level, level.first):
        level.first += 1
    return level


cdef void level_free(Level *level) noexcept nogil:
    if level != NULL:
        free(level.kept)
        free(level)


cdef int64_t bound_of_runs(const Level *level, int64_t n) noexcept nogil:
    # mean + z sd + z^2 / 16 at halves (/ 8 for levels that nobody uses): compared with the critical
    # numbers of every n to 2,200, and of some to 10^7, for levels of 5e-324 to 1 - 1e-12, it is
    # never too small (tests/core/test_looks.py)
    cdef double a = <double>(n >> 1), b = <double>(n - (n >> 1)), z
    cdef int i = 0
    while n >> (i + 1):
        i += 1
    z = level.z[i]
    z = z * sqrt(var_runs(a, b)) + z * z / (16 if -37 < z < 2.4 else 8)
    return max(<int64_t>floor(mean_runs(a, b) + z), 2)


cdef int64_t critical(Level *level, int64_t n) noexcept nogil:
    cdef int64_t runs
    cdef double alpha
    if n < level.first:
        return 0
    if level.kept[n] == 0:
        runs, alpha = bound_of_runs(level, n), level_at(level, n)
        while runs >= 2 and p_at_halves(level, runs, n) > alpha:
            runs -= 1
        level.kept[n] = <int32_t>(runs + 1 if runs >= 2 else 1)
    return level.kept[n] - 1


cdef int64_t most_runs(Level *level, int64_t n) noexcept nogil:
    if n < EXACT_BELOW or (n < KEPT and level.kept[n]):
        return critical(level, n)
    return bound_of_runs(level, n) if n >= level.first else 0


def critical_counts(double alpha, bint falling, int method, int32_t[::1] out):
    """Fill out[n] with the critical number of runs of n values halved by their median (no ties)."""
    cdef Level *level = level_new(alpha, method, falling)
    cdef int64_t n
    if level == NULL or out.shape[0] > KEPT:
        level_free(level)
        raise MemoryError(f"no memory for {out.shape[0]} critical numbers")
    for n in range(out.shape[0]):
        out[n] = <int>critical(level, n)
    level_free(level)


def bounds_of_runs(double alpha, bint falling, int method, const int64_t[::1] n, int64_t[::1] out):
    """Fill `out` with the bounds of the critical numbers, for tests."""
    cdef Level *level = level_new(alpha, method, falling)
    cdef int64_t i
    if level == NULL:
        raise MemoryError("no memory for a level")
    for i in range(n.shape[0]):
        out[i] = bound_of_runs(level, n[i]) if n[i] >= level.first else 0
    level_free(level)


def level_of(double alpha, int64_t n):
    """Return a level that falls, at n values."""
    cdef Level level
    level.alpha, level.falling = alpha, True
    return level_at(&level, n)
