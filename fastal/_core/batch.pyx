# Critical counts, and many streams.
#
# Layers as in tracker.pyx: `cdef ... noexcept nogil` below, `def` loops over the caller's
# memoryviews.

from libc.math cimport NAN
from libc.stdint cimport int64_t
from libc.stdlib cimport free

from fastal._core.distribution cimport LESS, runs_p_value
from fastal._core.memory cimport allocate
from fastal._core.rule cimport (
    RULE_LEFT,
    RULE_RUNS,
    CompiledRule,
    Rule,
    rule_free,
    rule_new_like,
    rule_push,
    rule_reserve,
    rule_reset,
    rule_stopped_at,
)
from fastal._core.still cimport still_left
from fastal._core.tracker cimport (
    Tracker,
    level_factor,
    tracker_n_runs,
    tracker_p_value,
    tracker_push,
)

# ---------------------------------------------------------------------------------------------
# Critical counts
# ---------------------------------------------------------------------------------------------

cdef inline double p_less(int64_t u, int64_t n0, int64_t n1, int method) noexcept nogil:
    return runs_p_value(u, n0, n1, LESS, method)


cdef int64_t next_critical(int64_t c, int64_t n0, int64_t n1, double level,
                           int method) noexcept nogil:
    # Largest u >= 2 whose p-value is at most the level, or 0; searched from c on.
    while c >= 2 and p_less(c, n0, n1, method) > level:
        c -= 1
    if c < 2:
        c = 0
    while True:
        if c >= 2 * min(n0, n1) + 1 or p_less(max(c + 1, 2), n0, n1, method) > level:
            return c
        c = max(c + 1, 2)


def critical_runs(int64_t n0, int64_t n1, double level, int method, int64_t guess):
    """Return the largest number of runs with P(U <= u) <= level; 0 if there is none."""
    if min(n0, n1) == 0:
        return 0
    with nogil:
        guess = next_critical(max(guess, 0), n0, n1, level, method)
    return guess


def critical_counts(double alpha, bint falling, int method, int[::1] out):
    """Fill out[T] with the critical number of runs of T values halved by their median (no ties)."""
    cdef int64_t n, c = 0
    with nogil:
        for n in range(out.shape[0]):
            if n < 2:
                out[n] = 0
                continue
            c = next_critical(c, n >> 1, n - (n >> 1),
                              alpha * level_factor(n) if falling else alpha, method)
            out[n] = <int>c


def level_at(int64_t n):
    """Return the factor of a falling level."""
    return level_factor(n)


# ---------------------------------------------------------------------------------------------
# Many streams
# ---------------------------------------------------------------------------------------------

def stopping_times(const double[:, ::1] bounds, CompiledRule like, const int[::1] critical,
                   int64_t[::1] out):
    """Fill out[i] with the stopping time of row i, -1 for never; the rule takes these bounds.

    `like` gives the rule. `critical`, from `critical_counts` or empty, spares most exact tails of a
    runs test. Returns False if there was no memory.
    """
    cdef Rule *rule
    cdef int64_t i, j
    cdef int status = 0
    like.point()
    with nogil:
        rule = rule_new_like(&like.rule)
        if rule != NULL:
            if critical.shape[0] and rule.kind == RULE_RUNS:
                rule.tracker.critical = &critical[0]
                rule.tracker.n_critical = critical.shape[0]
            for i in range(bounds.shape[0]):
                out[i] = -1
                if rule.kind == RULE_RUNS:      # the usual case, without a detour
                    for j in range(bounds.shape[1]):
                        status = tracker_push(rule.tracker, bounds[i, j])
                        if status < 0:
                            break
                        if rule.tracker.stopped_at:
                            out[i] = rule.tracker.stopped_at
                            break
                else:
                    for j in range(bounds.shape[1]):
                        status = rule_push(rule, bounds[i, j], 0.0)
                        if status < 0:
                            break
                        if status == 1:
                            out[i] = rule_stopped_at(rule)
                            break
                if status < 0:
                    break
                rule_reset(rule)
            rule_free(rule)
    return rule != NULL and status >= 0


cdef Rule *keeper(Rule *rule) noexcept nogil:
    # The first part of a rule that keeps its bounds, or NULL.
    cdef int64_t i
    cdef Rule *found
    if rule.kind == RULE_RUNS or rule.kind == RULE_LEFT:
        return rule
    for i in range(rule.n_members):
        found = keeper(rule.members[i])
        if found != NULL:
            return found
    return NULL


cdef Rule *first_still(Rule *rule) noexcept nogil:
    # The first part that says what is still to come, or NULL.
    cdef int64_t i
    cdef Rule *found
    if rule.kind == RULE_LEFT:
        return rule
    for i in range(rule.n_members):
        found = first_still(rule.members[i])
        if found != NULL:
            return found
    return NULL


cdef class RuleBatch:
    """Rules of many streams that advance in lock step."""

    cdef Rule **rules
    cdef int64_t *pushed
    cdef int64_t n
    cdef bint busy

    def __cinit__(self, int64_t n_streams, CompiledRule like):
        cdef int64_t i
        self.n = 0
        like.point()
        self.rules = <Rule **>allocate(n_streams, sizeof(Rule *))
        self.pushed = <int64_t *>allocate(n_streams, sizeof(int64_t))
        if self.rules == NULL or self.pushed == NULL:
            raise MemoryError(f"no memory for {n_streams} streams")
        for i in range(n_streams):
            self.rules[i] = rule_new_like(&like.rule)
            if self.rules[i] == NULL:
                raise MemoryError(f"no memory for {n_streams} streams")
            self.pushed[i] = 0
            self.n += 1

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.n):
            rule_free(self.rules[i])
        free(self.rules)
        free(self.pushed)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the stoppers are in use by another thread")
        return 0

    def push(self, const double[::1] values, const unsigned char[::1] where,
             unsigned char[::1] stopped):
        """Push values[i] to stream i where where[i]; `stopped` receives every stream's state.

        The rule takes these values. If there is no memory for all, none is pushed.
        """
        cdef int64_t i, short_of = -1
        self.check()
        self.busy = True
        with nogil:
            for i in range(self.n):
                if where[i] and not rule_reserve(self.rules[i]):
                    short_of = i
                    break
            if short_of < 0:
                for i in range(self.n):
                    if where[i]:
                        rule_push(self.rules[i], values[i], 0.0)
                        self.pushed[i] += 1
                    stopped[i] = rule_stopped_at(self.rules[i]) > 0
        self.busy = False
        if short_of >= 0:
            raise MemoryError(f"no memory for one more bound of stream {short_of}")

    def reset(self, const int64_t[::1] streams, unsigned char[::1] stopped):
        """Forget all bounds of some streams, and that they stopped."""
        cdef int64_t i
        self.check()
        for i in range(streams.shape[0]):
            rule_reset(self.rules[streams[i]])
            self.pushed[streams[i]] = 0
            stopped[streams[i]] = 0

    def counts(self, int64_t[:, ::1] out):
        """Fill `out` with rows: bounds, bounds at the stop (0: none)."""
        cdef int64_t i
        self.check()
        for i in range(self.n):
            out[0, i] = self.pushed[i]
            out[1, i] = rule_stopped_at(self.rules[i])

    def runs(self, int64_t[::1] runs, double[:, ::1] floats):
        """Fill `runs`, and `floats` with rows p-value, median; for runs tests only."""
        cdef int64_t i
        cdef Tracker *tracker
        self.check()
        for i in range(self.n):
            tracker = self.rules[i].tracker
            runs[i] = tracker_n_runs(tracker)
            floats[0, i] = tracker_p_value(tracker)
            floats[1, i] = tracker.median

    def left(self, double[::1] out):
        """Fill `out` with what is still to come in each stream; NaN where nobody says."""
        cdef int64_t i
        cdef Rule *found
        self.check()
        for i in range(self.n):
            found = first_still(self.rules[i])
            out[i] = still_left(found.still) if found != NULL else NAN

    def values(self, int64_t stream, double[::1] out):
        """Copy the bounds of one stream into `out`; False if nobody keeps them."""
        cdef int64_t i
        cdef Rule *found
        cdef double *values
        self.check()
        found = keeper(self.rules[stream])
        if found == NULL:
            return False
        values = found.tracker.values if found.kind == RULE_RUNS else found.still.values
        for i in range(min(out.shape[0], self.pushed[stream])):
            out[i] = values[i]
        return True
