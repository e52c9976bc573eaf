# The functions of fastal/include/fastal.h, in one struct behind a capsule.
#
# Nothing here needs the GIL or raises: every function returns a status.

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from fastal._core.bound_scalar cimport bound_of
from fastal._core.still cimport (
    Still,
    still_free,
    still_left,
    still_level,
    still_new,
    still_push,
    still_reset,
)
from fastal._core.tracker cimport (
    RunsRule,
    Tracker,
    tracker_fell,
    tracker_free,
    tracker_n_runs,
    tracker_new_with,
    tracker_p_value,
    tracker_push,
    tracker_reset,
)

cdef extern from "fastal.h" nogil:
    enum:
        FASTAL_ABI_VERSION
        FASTAL_OK
        FASTAL_STOP
        FASTAL_NO_MEMORY
        FASTAL_NOT_FINITE
        FASTAL_NULL
        FASTAL_NEGATIVE
        FASTAL_BAD_SETTING
        FASTAL_NORMAL
        FASTAL_TWO_SIDED

    ctypedef struct fastal_runs:
        pass

    ctypedef struct fastal_still:
        pass

    ctypedef struct fastal_runs_settings:
        double alpha
        int64_t window
        int64_t min_bounds
        int64_t patience
        int32_t method
        int32_t alternative
        int32_t fall
        int32_t reserved

    ctypedef struct fastal_runs_state:
        int64_t n_bounds
        int64_t stopped_at
        int64_t n_runs
        int64_t n_below
        int64_t n_above
        double median
        double p_value
        int32_t fell
        int32_t reserved

    ctypedef struct fastal_still_state:
        int64_t n_bounds
        int64_t stopped_at
        double left
        double level

    ctypedef struct fastal_api:
        int64_t abi_version
        int64_t size
        int (*bound)(double, double, double, double, double *) noexcept nogil
        int (*runs_new)(const fastal_runs_settings *, fastal_runs **) noexcept nogil
        int (*runs_push)(fastal_runs *, double) noexcept nogil
        int (*runs_query)(fastal_runs *, fastal_runs_state *) noexcept nogil
        int (*runs_reset)(fastal_runs *) noexcept nogil
        void (*runs_free)(fastal_runs *) noexcept nogil
        int (*still_new)(double, int64_t, int64_t, fastal_still **) noexcept nogil
        int (*still_push)(fastal_still *, double) noexcept nogil
        int (*still_query)(fastal_still *, fastal_still_state *) noexcept nogil
        int (*still_reset)(fastal_still *) noexcept nogil
        void (*still_free)(fastal_still *) noexcept nogil


# ---------------------------------------------------------------------------------------------
# The bound
# ---------------------------------------------------------------------------------------------

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
# The runs test
# ---------------------------------------------------------------------------------------------

cdef int c_runs_new(const fastal_runs_settings *s, fastal_runs **made) noexcept nogil:
    cdef RunsRule rule
    cdef Tracker *tracker
    if s == NULL or made == NULL:
        return FASTAL_NULL
    if not (0 < s.alpha < 1 and (s.window == 0 or s.window >= 2) and s.min_bounds >= 0
            and s.patience >= 1 and 0 <= s.method <= FASTAL_NORMAL
            and 0 <= s.alternative <= FASTAL_TWO_SIDED and 0 <= s.fall <= 1 and s.reserved == 0):
        return FASTAL_BAD_SETTING
    memset(&rule, 0, sizeof(RunsRule))
    rule.alpha, rule.window, rule.min_bounds = s.alpha, s.window, s.min_bounds
    rule.patience, rule.method, rule.alternative = s.patience, s.method, s.alternative
    rule.fall = s.fall
    tracker = tracker_new_with(rule)
    if tracker == NULL:
        return FASTAL_NO_MEMORY
    made[0] = <fastal_runs *>tracker
    return FASTAL_OK


cdef int c_runs_push(fastal_runs *runs, double r) noexcept nogil:
    cdef Tracker *tracker = <Tracker *>runs
    cdef int status = tracker_push(tracker, r)      # its negative codes are ours
    if status < 0:
        return status
    return FASTAL_STOP if tracker.stopped_at > 0 else FASTAL_OK


cdef int c_runs_query(fastal_runs *runs, fastal_runs_state *state) noexcept nogil:
    cdef Tracker *tracker = <Tracker *>runs
    if tracker == NULL or state == NULL:
        return FASTAL_NULL
    memset(state, 0, sizeof(fastal_runs_state))
    state.n_bounds, state.stopped_at = tracker.n_pushed, tracker.stopped_at
    state.n_runs = tracker_n_runs(tracker)
    state.n_below, state.n_above = tracker.n_below, tracker.n - tracker.n_below
    state.median, state.p_value = tracker.median, tracker_p_value(tracker)
    state.fell = tracker_fell(tracker)
    return FASTAL_OK


cdef int c_runs_reset(fastal_runs *runs) noexcept nogil:
    if runs == NULL:
        return FASTAL_NULL
    tracker_reset(<Tracker *>runs)
    return FASTAL_OK


cdef void c_runs_free(fastal_runs *runs) noexcept nogil:
    tracker_free(<Tracker *>runs)


# ---------------------------------------------------------------------------------------------
# What is still to come
# ---------------------------------------------------------------------------------------------

cdef int c_still_new(double share, int64_t horizon, int64_t window,
                     fastal_still **made) noexcept nogil:
    cdef Still *still
    if made == NULL:
        return FASTAL_NULL
    if not (0 < share < 1 and horizon >= 1 and (window == 0 or window >= 2) and window < horizon):
        return FASTAL_BAD_SETTING
    still = still_new(share, horizon, window)
    if still == NULL:
        return FASTAL_NO_MEMORY
    made[0] = <fastal_still *>still
    return FASTAL_OK


cdef int c_still_push(fastal_still *still, double r) noexcept nogil:
    cdef Still *s = <Still *>still
    cdef int status = still_push(s, r)      # -1 to -4 are ours; -5 needs a rule without a horizon
    if status < 0:
        return status
    return FASTAL_STOP if s.stopped_at > 0 else FASTAL_OK


cdef int c_still_query(fastal_still *still, fastal_still_state *state) noexcept nogil:
    cdef Still *s = <Still *>still
    if s == NULL or state == NULL:
        return FASTAL_NULL
    memset(state, 0, sizeof(fastal_still_state))
    state.n_bounds, state.stopped_at = s.n, s.stopped_at
    state.left, state.level = still_left(s), still_level(s)
    return FASTAL_OK


cdef int c_still_reset(fastal_still *still) noexcept nogil:
    if still == NULL:
        return FASTAL_NULL
    still_reset(<Still *>still)
    return FASTAL_OK


cdef void c_still_free(fastal_still *still) noexcept nogil:
    still_free(<Still *>still)


# ---------------------------------------------------------------------------------------------
# The capsule
# ---------------------------------------------------------------------------------------------

cdef fastal_api FUNCTIONS
memset(&FUNCTIONS, 0, sizeof(fastal_api))
FUNCTIONS.abi_version = FASTAL_ABI_VERSION
FUNCTIONS.size = sizeof(fastal_api)
FUNCTIONS.bound = c_bound
FUNCTIONS.runs_new = c_runs_new
FUNCTIONS.runs_push = c_runs_push
FUNCTIONS.runs_query = c_runs_query
FUNCTIONS.runs_reset = c_runs_reset
FUNCTIONS.runs_free = c_runs_free
FUNCTIONS.still_new = c_still_new
FUNCTIONS.still_push = c_still_push
FUNCTIONS.still_query = c_still_query
FUNCTIONS.still_reset = c_still_reset
FUNCTIONS.still_free = c_still_free

API = PyCapsule_New(<void *>&FUNCTIONS, "fastal._core.capi.API", NULL)
ABI_VERSION = FASTAL_ABI_VERSION
