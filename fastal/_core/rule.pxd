# A rule that says when to stop, as compiled loops see it: the runs test, what is still to come, a
# count, or several of these. Plain C types; nothing needs the GIL, nothing raises.

from libc.stdint cimport int64_t

from fastal._core.still cimport Still
from fastal._core.tracker cimport Tracker

cdef enum RuleKind:
    RULE_RUNS
    RULE_LEFT
    RULE_COUNT
    RULE_ANY
    RULE_ALL

cdef struct Count:
    int64_t limit           # stop at so many bounds
    int64_t seen

cdef struct Rule:
    RuleKind kind
    Tracker *tracker        # RULE_RUNS
    Still *still            # RULE_LEFT
    Count *count            # RULE_COUNT
    int64_t n_members       # RULE_ANY, RULE_ALL
    Rule **members

# rule_push: 1 = this bound is the one that stops, 0 = not; negative as in tracker.pxd, still.pxd.
#            There is room for it in every member, or none takes it.
# rule_stopped_at: number of bounds at the stop, 0 before it.
# rule_new_like: the same rule without bounds, with memory of its own; NULL if there is none.
cdef int rule_push(Rule *rule, double value) noexcept nogil
cdef bint rule_reserve(Rule *rule) noexcept nogil
cdef int64_t rule_stopped_at(Rule *rule) noexcept nogil
cdef void rule_reset(Rule *rule) noexcept nogil
cdef Rule *rule_new_like(const Rule *rule) noexcept nogil
cdef void rule_free(Rule *rule) noexcept nogil

cdef class Counter:
    cdef Count count
    cdef bint busy
    cdef int check(self) except -1

cdef class CompiledRule:
    cdef Rule rule
    cdef tuple parts        # the objects that own what the rule points to
    cdef readonly bint lent
    cdef int check(self) except -1
    cdef void point(self) noexcept
    cdef void mark(self, bint busy) noexcept
