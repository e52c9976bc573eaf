# A rule that says when to stop, as compiled loops see it: the runs test, what is still to come, a
# count, the largest variance of a pool, or several of these. Plain C types; nothing needs the GIL,
# nothing raises.

from libc.stdint cimport int64_t

from fastal._core.still cimport Still
from fastal._core.tracker cimport Tracker

cdef enum RuleKind:
    RULE_RUNS
    RULE_LEFT
    RULE_COUNT
    RULE_VARIANCE
    RULE_ANY
    RULE_ALL

cdef struct Count:
    int64_t limit           # stop at so many bounds
    int64_t seen

cdef struct Variances:
    double threshold        # stop when the largest one is at most this
    int64_t before          # labels that were measured before
    int64_t stopped_at      # all of them counted; 0: not yet
    int64_t n               # measures since
    int64_t room
    double *values

cdef struct Rule:
    RuleKind kind
    bint stopped            # whether a push has stopped it, or it was lent with a stop
    Tracker *tracker        # RULE_RUNS
    Still *still            # RULE_LEFT
    Count *count            # RULE_COUNT
    Variances *variances    # RULE_VARIANCE
    int64_t n_members       # RULE_ANY, RULE_ALL
    Rule **members

# rule_push: 1 = this label is the one that stops, 0 = not; negative as in tracker.pxd, still.pxd.
#            value is its bound, variance the largest one of an unlabelled point after it, for rules
#            that ask for it (rule_asks). There is room in every member, or none takes anything.
# rule_stopped_at: number of bounds at the stop, 0 before it.
# rule_new_like: the same rule without bounds, with memory of its own; NULL if there is none.
cdef int rule_push(Rule *rule, double value, double variance) noexcept nogil
cdef bint rule_asks(const Rule *rule) noexcept nogil
cdef bint rule_reserve(Rule *rule) noexcept nogil
cdef int64_t rule_stopped_at(Rule *rule) noexcept nogil
cdef void rule_reset(Rule *rule) noexcept nogil
cdef Rule *rule_new_like(const Rule *rule) noexcept nogil
cdef void rule_free(Rule *rule) noexcept nogil

cdef class Counter:
    cdef Count count
    cdef bint busy
    cdef int check(self) except -1

cdef class VarianceRule:
    cdef Variances variances
    cdef bint busy
    cdef int check(self) except -1

cdef class CompiledRule:
    cdef Rule rule
    cdef tuple parts        # the objects that own what the rule points to
    cdef readonly bint lent
    cdef int check(self) except -1
    cdef void point(self) noexcept
    cdef void mark(self, bint busy) noexcept
