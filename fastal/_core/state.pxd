# When to stop, as compiled code sees it: a tree of rules over one sequence of bounds. Plain C
# types; nothing needs the GIL, nothing raises. A state belongs to one thread at a time.

from libc.stdint cimport int64_t

from fastal._core.levels cimport Level
from fastal._core.looks cimport Looks
from fastal._core.still cimport Still

cdef enum Kind:
    RUNS                    # the runs test rejects (and the bounds fell)
    STILL                   # little is still to come
    COUNT                   # so many bounds are there
    ANY                     # one of the members has stopped
    ALL                     # every member has

cdef union Facts:
    Looks looks
    Still still
    int64_t limit           # of COUNT

cdef struct Part:
    Kind kind
    int end                 # index of the first part behind this one and its members
    int64_t stopped_at      # bounds at its own stop; 0 before it, and for ANY and ALL
    bint said               # what it said before all bounds were replaced
    Facts facts

cdef struct State:
    double *values          # all bounds
    int64_t n
    int64_t room
    int64_t wake            # number of bounds at which a part must be asked
    int64_t stopped_at      # bounds at the stop; 0 before it
    bint held               # after a fit: pushes count, but nobody decides by them
    bint not_negative       # a part refuses negative bounds
    bint open               # a part waits for its horizon
    int n_parts
    Part *parts             # members follow their parent

cdef enum:
    NO_MEMORY = -1
    NOT_FINITE = -2
    NO_STATE = -3
    NEGATIVE = -4
    NO_HORIZON = -5

cdef extern from *:
    """
    #define FASTAL_ROUNDING (-1e-12)
    """
    const double ROUNDING "FASTAL_ROUNDING"     # a bound of our own models may be so far below 0

# state_push: 1 = it has stopped, now or before; 0 = not; or one of the numbers above, and then all
#             is as it was before.
# state_reserve: False when there is no memory for n bounds; then all is as before.
# state_run_to: decide on the values up to n, all there, as if they came one by one.
# state_replace: all bounds under a new fit; there is room for them.
# state_says: whether a part says stop now, whatever it said before.
# state_stop_of: bounds at the stop of a part and its members; 0 before it.
# state_conclude, state_find_open: what follows from stops, and from horizons, that somebody set.
# state_still: the first part that knows what is still to come, of all bounds; or NULL.
# state_like, state_copy: the same rule, without bounds or with them, in the parts given; state_copy
#             returns False when there is no memory. state_free frees no parts.
cdef int state_push(State *s, double r) noexcept nogil
cdef bint state_reserve(State *s, int64_t n) noexcept nogil
cdef void state_run_to(State *s, int64_t n) noexcept nogil
cdef void state_replace(State *s, const double *values, int64_t n, bint confirms) noexcept nogil
cdef void state_reset(State *s) noexcept nogil
cdef bint state_says(State *s, Part *p) noexcept nogil
cdef int64_t state_stop_of(const State *s, int i) noexcept nogil
cdef void state_conclude(State *s) noexcept nogil
cdef void state_find_open(State *s) noexcept nogil
cdef Part *state_still(State *s) noexcept nogil
cdef int64_t state_stopped_at(const State *s) noexcept nogil
cdef double state_left(State *s) noexcept nogil
cdef void state_like(State *s, Part *parts, const State *like) noexcept nogil
cdef bint state_copy(State *s, Part *parts, const State *old) noexcept nogil
cdef void state_free(State *s) noexcept nogil

# Many streams under one rule, for Numba, C and Cython.
#
# streams_new: NULL when there is no memory; the levels of `like` are borrowed. streams_new_runs,
# streams_new_movement: the same, and NULL for settings that no rule has.
# streams_push: as state_push. streams_stopped_at: bounds at the stop, 0 before it. streams_reset:
# 0. All of these take NULL, and a stream i that there is not: NO_STATE, or NaN.
cdef struct Arena:
    int64_t n
    State *states
    Part *parts
    Level *level            # its own, or NULL

cdef Arena *streams_new(const State *like, int64_t n) noexcept nogil
cdef Arena *streams_new_runs(double alpha, int method, bint fall, int64_t n) noexcept nogil
cdef Arena *streams_new_movement(double share, int64_t horizon, int64_t n) noexcept nogil
cdef int streams_push(Arena *streams, int64_t i, double r) noexcept nogil
cdef int64_t streams_stopped_at(const Arena *streams, int64_t i) noexcept nogil
cdef double streams_left(Arena *streams, int64_t i) noexcept nogil
cdef int streams_reset(Arena *streams, int64_t i) noexcept nogil
cdef void streams_free(Arena *streams) noexcept nogil
