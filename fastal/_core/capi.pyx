# The functions of fastal/include/fastal.h, in one struct behind a capsule.
#
# Nothing here needs the GIL or raises: every function returns a status. What is saved is a header,
# the settings and all bounds; loading pushes them again, so that no buffer can make a state that
# pushes could not have made.

from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

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
        FASTAL_TOO_SMALL
        FASTAL_BAD_BUFFER
        FASTAL_OTHER_VERSION
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
        int (*runs_save)(fastal_runs *, void *, size_t, size_t *) noexcept nogil
        int (*runs_load)(const void *, size_t, fastal_runs **) noexcept nogil
        void (*runs_free)(fastal_runs *) noexcept nogil
        int (*still_new)(double, int64_t, int64_t, fastal_still **) noexcept nogil
        int (*still_push)(fastal_still *, double) noexcept nogil
        int (*still_query)(fastal_still *, fastal_still_state *) noexcept nogil
        int (*still_reset)(fastal_still *) noexcept nogil
        int (*still_save)(fastal_still *, void *, size_t, size_t *) noexcept nogil
        int (*still_load)(const void *, size_t, fastal_still **) noexcept nogil
        void (*still_free)(fastal_still *) noexcept nogil


# ---------------------------------------------------------------------------------------------
# What is saved
# ---------------------------------------------------------------------------------------------

cdef enum:
    STATE_VERSION = 1
    BYTE_ORDER = 0x01020304     # reads otherwise on a machine of the other byte order

cdef struct Header:
    char magic[8]               # of the kind
    uint32_t order
    uint32_t version
    uint64_t size               # of all, in bytes
    uint64_t checksum           # of what follows the header
    int64_t n                   # bounds, at the end
    int64_t stopped_at

cdef struct StillSettings:
    double share
    int64_t horizon
    int64_t window

cdef const char *RUNS_MAGIC = b"fastalR"
cdef const char *STILL_MAGIC = b"fastalS"


cdef uint64_t checksum_of(const uint8_t *data, size_t size) noexcept nogil:
    # FNV-1a: against damage, not against intent; loading trusts nothing anyhow
    cdef uint64_t h = 0xcbf29ce484222325
    cdef size_t i
    for i in range(size):
        h = (h ^ data[i]) * <uint64_t>0x100000001b3
    return h


cdef int save(const char *magic, const void *settings, size_t settings_size, const double *values,
              int64_t n, int64_t stopped_at, void *buffer, size_t capacity,
              size_t *size) noexcept nogil:
    cdef Header header
    cdef uint8_t *target = <uint8_t *>buffer
    cdef size_t offset = sizeof(Header), needed
    needed = offset + settings_size + <size_t>n * sizeof(double)
    size[0] = needed
    if buffer == NULL:
        return FASTAL_OK
    if capacity < needed:
        return FASTAL_TOO_SMALL
    memcpy(target + offset, settings, settings_size)
    if n:
        memcpy(target + offset + settings_size, values, <size_t>n * sizeof(double))
    memset(&header, 0, sizeof(Header))
    memcpy(header.magic, magic, 8)
    header.order, header.version, header.size = BYTE_ORDER, STATE_VERSION, needed
    header.checksum = checksum_of(target + offset, needed - offset)
    header.n, header.stopped_at = n, stopped_at
    memcpy(target, &header, sizeof(Header))
    return FASTAL_OK


cdef int look(const char *magic, const void *buffer, size_t size, size_t settings_size,
              Header *header) noexcept nogil:
    # Is this what was saved? The buffer may lie anywhere: it is copied from, never pointed into.
    cdef size_t fixed = sizeof(Header) + settings_size
    if size < sizeof(Header):
        return FASTAL_BAD_BUFFER
    memcpy(header, buffer, sizeof(Header))
    if memcmp(header.magic, magic, 8):
        return FASTAL_BAD_BUFFER
    if header.order != BYTE_ORDER or header.version != STATE_VERSION:
        return FASTAL_OTHER_VERSION
    if header.size != size or size < fixed or (size - fixed) % sizeof(double):
        return FASTAL_BAD_BUFFER
    if header.n < 0 or <uint64_t>header.n != (size - fixed) // sizeof(double):
        return FASTAL_BAD_BUFFER
    if header.stopped_at < 0 or header.stopped_at > header.n:
        return FASTAL_BAD_BUFFER
    if header.checksum != checksum_of(<const uint8_t *>buffer + sizeof(Header),
                                      size - sizeof(Header)):
        return FASTAL_BAD_BUFFER
    return FASTAL_OK


cdef double bound_at(const void *buffer, size_t offset, int64_t i) noexcept nogil:
    cdef double value
    memcpy(&value, <const uint8_t *>buffer + offset + <size_t>i * sizeof(double), sizeof(double))
    return value


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

cdef int runs_made(const fastal_runs_settings *s, Tracker **made) noexcept nogil:
    cdef RunsRule rule
    if not (0 < s.alpha < 1 and (s.window == 0 or s.window >= 2) and s.min_bounds >= 0
            and s.patience >= 1 and 0 <= s.method <= FASTAL_NORMAL
            and 0 <= s.alternative <= FASTAL_TWO_SIDED and 0 <= s.fall <= 1 and s.reserved == 0):
        return FASTAL_BAD_SETTING
    memset(&rule, 0, sizeof(RunsRule))
    rule.alpha, rule.window, rule.min_bounds = s.alpha, s.window, s.min_bounds
    rule.patience, rule.method, rule.alternative = s.patience, s.method, s.alternative
    rule.fall = s.fall
    made[0] = tracker_new_with(rule)
    return FASTAL_OK if made[0] != NULL else FASTAL_NO_MEMORY


cdef int c_runs_new(const fastal_runs_settings *settings, fastal_runs **made) noexcept nogil:
    cdef Tracker *tracker = NULL
    cdef int status
    if settings == NULL or made == NULL:
        return FASTAL_NULL
    status = runs_made(settings, &tracker)
    if status == FASTAL_OK:
        made[0] = <fastal_runs *>tracker
    return status


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


cdef int c_runs_save(fastal_runs *runs, void *buffer, size_t capacity,
                     size_t *size) noexcept nogil:
    cdef Tracker *tracker = <Tracker *>runs
    cdef fastal_runs_settings s
    if tracker == NULL or size == NULL:
        return FASTAL_NULL
    memset(&s, 0, sizeof(fastal_runs_settings))
    s.alpha, s.window, s.min_bounds = (tracker.rule.alpha, tracker.rule.window,
                                       tracker.rule.min_bounds)
    s.patience, s.method, s.alternative = (tracker.rule.patience, tracker.rule.method,
                                           tracker.rule.alternative)
    s.fall = tracker.rule.fall
    return save(RUNS_MAGIC, &s, sizeof(fastal_runs_settings), tracker.values, tracker.n_pushed,
                tracker.stopped_at, buffer, capacity, size)


cdef int c_runs_load(const void *buffer, size_t size, fastal_runs **made) noexcept nogil:
    cdef Header header
    cdef fastal_runs_settings s
    cdef Tracker *tracker = NULL
    cdef int64_t i
    cdef int status
    if buffer == NULL or made == NULL:
        return FASTAL_NULL
    status = look(RUNS_MAGIC, buffer, size, sizeof(fastal_runs_settings), &header)
    if status != FASTAL_OK:
        return status
    memcpy(&s, <const uint8_t *>buffer + sizeof(Header), sizeof(fastal_runs_settings))
    status = runs_made(&s, &tracker)
    if status != FASTAL_OK:
        return FASTAL_BAD_BUFFER if status == FASTAL_BAD_SETTING else status
    for i in range(header.n):
        status = tracker_push(tracker, bound_at(
            buffer, sizeof(Header) + sizeof(fastal_runs_settings), i))
        if status < 0:
            tracker_free(tracker)
            return status if status == FASTAL_NO_MEMORY else FASTAL_BAD_BUFFER
    if tracker.stopped_at != header.stopped_at:
        tracker_free(tracker)
        return FASTAL_BAD_BUFFER
    made[0] = <fastal_runs *>tracker
    return FASTAL_OK


cdef void c_runs_free(fastal_runs *runs) noexcept nogil:
    tracker_free(<Tracker *>runs)


# ---------------------------------------------------------------------------------------------
# What is still to come
# ---------------------------------------------------------------------------------------------

cdef int still_made(const StillSettings *s, Still **made) noexcept nogil:
    if not (0 < s.share < 1 and s.horizon >= 1 and (s.window == 0 or s.window >= 2)):
        return FASTAL_BAD_SETTING
    if s.window >= s.horizon:
        return FASTAL_BAD_SETTING
    made[0] = still_new(s.share, s.horizon, s.window)
    return FASTAL_OK if made[0] != NULL else FASTAL_NO_MEMORY


cdef int c_still_new(double share, int64_t horizon, int64_t window,
                     fastal_still **made) noexcept nogil:
    cdef StillSettings s
    cdef Still *still = NULL
    cdef int status
    if made == NULL:
        return FASTAL_NULL
    s.share, s.horizon, s.window = share, horizon, window
    status = still_made(&s, &still)
    if status == FASTAL_OK:
        made[0] = <fastal_still *>still
    return status


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


cdef int c_still_save(fastal_still *still, void *buffer, size_t capacity,
                      size_t *size) noexcept nogil:
    cdef Still *s = <Still *>still
    cdef StillSettings settings
    if s == NULL or size == NULL:
        return FASTAL_NULL
    settings.share, settings.horizon, settings.window = s.share, s.horizon, s.window
    return save(STILL_MAGIC, &settings, sizeof(StillSettings), s.values, s.n, s.stopped_at,
                buffer, capacity, size)


cdef int c_still_load(const void *buffer, size_t size, fastal_still **made) noexcept nogil:
    cdef Header header
    cdef StillSettings settings
    cdef Still *s = NULL
    cdef int64_t i
    cdef int status
    if buffer == NULL or made == NULL:
        return FASTAL_NULL
    status = look(STILL_MAGIC, buffer, size, sizeof(StillSettings), &header)
    if status != FASTAL_OK:
        return status
    memcpy(&settings, <const uint8_t *>buffer + sizeof(Header), sizeof(StillSettings))
    status = still_made(&settings, &s)
    if status != FASTAL_OK:
        return FASTAL_BAD_BUFFER if status == FASTAL_BAD_SETTING else status
    for i in range(header.n):
        status = still_push(s, bound_at(buffer, sizeof(Header) + sizeof(StillSettings), i))
        if status < 0:
            still_free(s)
            return status if status == FASTAL_NO_MEMORY else FASTAL_BAD_BUFFER
    if s.stopped_at != header.stopped_at:
        still_free(s)
        return FASTAL_BAD_BUFFER
    made[0] = <fastal_still *>s
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
FUNCTIONS.runs_save = c_runs_save
FUNCTIONS.runs_load = c_runs_load
FUNCTIONS.runs_free = c_runs_free
FUNCTIONS.still_new = c_still_new
FUNCTIONS.still_push = c_still_push
FUNCTIONS.still_query = c_still_query
FUNCTIONS.still_reset = c_still_reset
FUNCTIONS.still_save = c_still_save
FUNCTIONS.still_load = c_still_load
FUNCTIONS.still_free = c_still_free

API = PyCapsule_New(<void *>&FUNCTIONS, "fastal._core.capi.API", NULL)
ABI_VERSION = FASTAL_ABI_VERSION
