# Levels of single looks at the runs test, and the critical numbers of runs that follow from them.

from libc.stdint cimport int32_t, int64_t

cdef enum:
    KEPT = 1 << 14              # critical numbers that are kept, for fewer values than this
    POWERS = 33                 # of two

# Many sequences may share a level, in any number of threads: an entry of `kept` is one word, 0 or
# right, and it does not matter who fills it, nor how often.
cdef struct Level:
    double alpha
    bint falling                # the level falls with the number of values: see level_at
    int method
    int64_t first               # with fewer values nothing can stop
    double z[POWERS]            # quantile of the level at 2^i values, not too small by rounding
    int32_t *kept               # critical number at halves of n values, plus 1; 0: not computed yet

# level_new: NULL when there is no memory; 0 < alpha <= 1. level_free takes NULL.
# critical: the largest number of runs that rejects at halves of n < KEPT values; 0 for none.
# most_runs: at least the largest number of runs with which n values can stop, however split.
cdef Level *level_new(double alpha, int method, bint falling) noexcept nogil
cdef void level_free(Level *level) noexcept nogil
cdef double level_at(const Level *level, int64_t n) noexcept nogil
cdef int64_t critical(Level *level, int64_t n) noexcept nogil
cdef int64_t most_runs(Level *level, int64_t n) noexcept nogil
