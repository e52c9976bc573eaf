# The functions of fastal/include/fastal.h, in one struct behind a capsule.
#
# Nothing here needs the GIL or raises: every function returns a status, or a number.

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, NAN, isfinite
from libc.stdint cimport int64_t

from fastal._core.bound_scalar cimport bound_of
from fastal._core.distribution cimport runs_cdf, runs_p_value, runs_pmf, runs_sf
from fastal._core.state cimport (
    Arena,
    streams_free,
    streams_left,
    streams_new_movement,
    streams_new_runs,
    streams_push,
    streams_reset,
    streams_stopped_at,
)

cdef extern from "fastal.h" nogil:
    enum:
        FASTAL_ABI_VERSION
        FASTAL_OK
        FASTAL_NO_MEMORY
        FASTAL_NOT_FINITE
        FASTAL_NULL
        FASTAL_NEGATIVE
        FASTAL_BAD_SETTING
        FASTAL_AUTO
        FASTAL_NORMAL
        FASTAL_LESS
        FASTAL_TWO_SIDED

    ctypedef struct fastal_streams:
        pass

    ctypedef struct fastal_api:
        int64_t abi_version
        int64_t size
        int (*bound)(double, double, double, double, double *) noexcept nogil
        int (*streams_new_runs)(double, int, int, int64_t, fastal_streams **) noexcept nogil
        int (*streams_new_movement)(double, int64_t, int64_t, fastal_streams **) noexcept nogil
        int (*streams_push)(fastal_streams *, int64_t, double) noexcept nogil
        int64_t (*streams_stopped_at)(const fastal_streams *, int64_t) noexcept nogil
        double (*streams_left)(fastal_streams *, int64_t) noexcept nogil
        int (*streams_reset)(fastal_streams *, int64_t) noexcept nogil
        void (*streams_free)(fastal_streams *) noexcept nogil
        double (*runs_pmf)(int64_t, int64_t, int64_t) noexcept nogil
        double (*runs_cdf)(int64_t, int64_t, int64_t) noexcept nogil
        double (*runs_sf)(int64_t, int64_t, int64_t) noexcept nogil
        double (*runs_p_value)(int64_t, int64_t, int64_t, int, int) noexcept nogil


cdef int c_bound(double mean, double var, double y, double noise, double *r) noexcept nogil:
    cdef double value
    if r == NULL:
        return FASTAL_NULL
    if not (isfinite(mean) and isfinite(var) and isfinite(y) and isfinite(noise)):
        return FASTAL_NOT_FINITE
    if not (var >= 0 and noise > 0):
        return FASTAL_NEGATIVE
    value = bound_of(mean, var, y, noise)
    if not (0 <= value < INFINITY):
        return FASTAL_NOT_FINITE
    r[0] = value
    return FASTAL_OK


# ---------------------------------------------------------------------------------------------
# Streams: the statuses of state.pxd are those of fastal.h, and no rule here waits for a horizon
# ---------------------------------------------------------------------------------------------

cdef inline int hand_over(Arena *streams, fastal_streams **made) noexcept nogil:
    if streams == NULL:
        return FASTAL_NO_MEMORY
    made[0] = <fastal_streams *>streams
    return FASTAL_OK


cdef int c_new_runs(double alpha, int method, int fall, int64_t n,
                    fastal_streams **made) noexcept nogil:
    if made == NULL:
        return FASTAL_NULL
    if not (0 < alpha < 1 and FASTAL_AUTO <= method <= FASTAL_NORMAL and 0 <= fall <= 1
            and n >= 1):
        return FASTAL_BAD_SETTING
    return hand_over(streams_new_runs(alpha, method, fall, n), made)


cdef int c_new_movement(double share, int64_t horizon, int64_t n,
                        fastal_streams **made) noexcept nogil:
    if made == NULL:
        return FASTAL_NULL
    if not (0 < share < 1 and horizon >= 1 and n >= 1):
        return FASTAL_BAD_SETTING
    return hand_over(streams_new_movement(share, horizon, n), made)


cdef int c_push(fastal_streams *streams, int64_t i, double r) noexcept nogil:
    return streams_push(<Arena *>streams, i, r)


cdef int64_t c_stopped_at(const fastal_streams *streams, int64_t i) noexcept nogil:
    return streams_stopped_at(<const Arena *>streams, i)


cdef double c_left(fastal_streams *streams, int64_t i) noexcept nogil:
    return streams_left(<Arena *>streams, i)


cdef int c_reset(fastal_streams *streams, int64_t i) noexcept nogil:
    return streams_reset(<Arena *>streams, i)


cdef void c_free(fastal_streams *streams) noexcept nogil:
    streams_free(<Arena *>streams)


# ---------------------------------------------------------------------------------------------
# The distribution
# ---------------------------------------------------------------------------------------------

cdef inline bint countable(int64_t n0, int64_t n1) noexcept nogil:
    cdef int64_t most = <int64_t>1 << 52
    return 0 <= n0 <= most and 0 <= n1 <= most


cdef double c_pmf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    return runs_pmf(u, n0, n1) if countable(n0, n1) else NAN


cdef double c_cdf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    return runs_cdf(u, n0, n1) if countable(n0, n1) else NAN


cdef double c_sf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    return runs_sf(u, n0, n1) if countable(n0, n1) else NAN


cdef double c_p_value(int64_t u, int64_t n0, int64_t n1, int alternative,
                      int method) noexcept nogil:
    if not (countable(n0, n1) and FASTAL_LESS <= alternative <= FASTAL_TWO_SIDED
            and FASTAL_AUTO <= method <= FASTAL_NORMAL):
        return NAN
    # far from all numbers of runs, u - 1 must not overflow
    return runs_p_value(max(u, <int64_t>0), n0, n1, alternative, method)


# ---------------------------------------------------------------------------------------------
# The capsule
# ---------------------------------------------------------------------------------------------

cdef fastal_api FUNCTIONS
FUNCTIONS.abi_version = FASTAL_ABI_VERSION
FUNCTIONS.size = sizeof(fastal_api)
FUNCTIONS.bound = c_bound
FUNCTIONS.streams_new_runs = c_new_runs
FUNCTIONS.streams_new_movement = c_new_movement
FUNCTIONS.streams_push = c_push
FUNCTIONS.streams_stopped_at = c_stopped_at
FUNCTIONS.streams_left = c_left
FUNCTIONS.streams_reset = c_reset
FUNCTIONS.streams_free = c_free
FUNCTIONS.runs_pmf = c_pmf
FUNCTIONS.runs_cdf = c_cdf
FUNCTIONS.runs_sf = c_sf
FUNCTIONS.runs_p_value = c_p_value

API = PyCapsule_New(<void *>&FUNCTIONS, "fastal._core.capi.API", NULL)
ABI_VERSION = FASTAL_ABI_VERSION
