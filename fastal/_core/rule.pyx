# Rules that compiled loops ask after each bound: one handle, whatever the criterion.
#
# A CompiledRule borrows the state of the criteria it was made from: what a compiled loop pushes is
# in them when it ends. While it is lent, nobody else may use them.

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from fastal._core.memory cimport allocate
from fastal._core.still cimport (
    StillTracker,
    still_free,
    still_new,
    still_push,
    still_reserve,
    still_reset,
)
from fastal._core.tracker cimport (
    RunsTracker,
    tracker_free,
    tracker_new_with,
    tracker_push,
    tracker_reserve,
    tracker_reset,
)


cdef inline int64_t joined(RuleKind kind, int64_t found, int64_t at) noexcept nogil:
    # The stop of the members so far, and that of the next; 0 for none, -1 for no member yet.
    # ANY: the first stop; ALL: the last one, if none is missing.
    if found == -1:
        return at
    if found == 0 or at == 0:
        return 0 if kind == RULE_ALL else max(found, at)
    return max(found, at) if kind == RULE_ALL else min(found, at)


cdef int64_t rule_stopped_at(Rule *rule) noexcept nogil:
    cdef int64_t i, found = -1
    if rule.kind == RULE_RUNS:
        return rule.tracker.stopped_at
    if rule.kind == RULE_LEFT:
        return rule.still.stopped_at
    if rule.kind == RULE_COUNT:
        return rule.count.limit if rule.count.seen >= rule.count.limit else 0
    if rule.kind == RULE_VARIANCE:
        return rule.variances.stopped_at
    for i in range(rule.n_members):
        found = joined(rule.kind, found, rule_stopped_at(rule.members[i]))
    return found


cdef bint rule_asks(const Rule *rule) noexcept nogil:
    # Whether the rule wants to know the largest variance.
    cdef int64_t i
    if rule.kind == RULE_VARIANCE:
        return True
    for i in range(rule.n_members):
        if rule_asks(rule.members[i]):
            return True
    return False


cdef bint variances_reserve(Variances *measures) noexcept nogil:
    cdef int64_t room
    cdef double *values
    if measures.n < measures.room:
        return True
    room = 2 * measures.room + 64
    values = <double *>realloc(measures.values, room * sizeof(double))
    if values == NULL:
        return False
    measures.values, measures.room = values, room
    return True


cdef bint rule_reserve(Rule *rule) noexcept nogil:
    cdef int64_t i
    if rule.kind == RULE_RUNS:
        return tracker_reserve(rule.tracker)
    if rule.kind == RULE_LEFT:
        return still_reserve(rule.still)
    if rule.kind == RULE_VARIANCE:
        return variances_reserve(rule.variances)
    for i in range(rule.n_members):
        if not rule_reserve(rule.members[i]):
            return False
    return True


cdef int64_t give(Rule *rule, double value, double variance) noexcept nogil:
    # Push; members have room. Returns rule_stopped_at, or a negative status.
    cdef int64_t i, at, found = -1
    cdef int status
    cdef Variances *measures
    if rule.kind == RULE_RUNS:
        status = tracker_push(rule.tracker, value)
        return rule.tracker.stopped_at if status >= 0 else status
    if rule.kind == RULE_LEFT:
        status = still_push(rule.still, value)
        return rule.still.stopped_at if status >= 0 else status
    if rule.kind == RULE_COUNT:
        rule.count.seen += 1
        return rule.count.limit if rule.count.seen >= rule.count.limit else 0
    if rule.kind == RULE_VARIANCE:
        measures = rule.variances
        measures.values[measures.n] = variance
        measures.n += 1
        if measures.stopped_at == 0 and variance <= measures.threshold:
            measures.stopped_at = measures.before + measures.n
        return measures.stopped_at
    for i in range(rule.n_members):
        at = give(rule.members[i], value, variance)
        if at < 0:
            return at
        found = joined(rule.kind, found, at)
    return found


cdef int rule_push(Rule *rule, double value, double variance) noexcept nogil:
    cdef bint before
    cdef int64_t at
    cdef int status
    if rule.kind == RULE_RUNS:          # the usual case, without a detour
        before = rule.tracker.stopped_at > 0
        status = tracker_push(rule.tracker, value)
        return status if status < 0 else rule.tracker.stopped_at > 0 and not before
    before = rule.stopped
    if not rule_reserve(rule):
        return -1
    at = give(rule, value, variance)
    if at < 0:
        return <int>at
    rule.stopped = at > 0
    return rule.stopped and not before


cdef void rule_reset(Rule *rule) noexcept nogil:
    cdef int64_t i
    rule.stopped = False
    if rule.kind == RULE_RUNS:
        tracker_reset(rule.tracker)
    elif rule.kind == RULE_LEFT:
        still_reset(rule.still)
    elif rule.kind == RULE_COUNT:
        rule.count.seen = 0
    elif rule.kind == RULE_VARIANCE:
        rule.variances.before = rule.variances.n = rule.variances.stopped_at = 0
    for i in range(rule.n_members):
        rule_reset(rule.members[i])


cdef void rule_free(Rule *rule) noexcept nogil:
    cdef int64_t i
    if rule == NULL:
        return
    tracker_free(rule.tracker)
    still_free(rule.still)
    free(rule.count)
    if rule.variances != NULL:
        free(rule.variances.values)
    free(rule.variances)
    for i in range(rule.n_members):
        rule_free(rule.members[i])
    free(rule.members)
    free(rule)


cdef Rule *rule_new_like(const Rule *rule) noexcept nogil:
    cdef int64_t i
    cdef Rule *new = <Rule *>allocate(1, sizeof(Rule))
    cdef bint made = True
    if new == NULL:
        return NULL
    memset(new, 0, sizeof(Rule))
    new.kind = rule.kind
    if rule.kind == RULE_RUNS:
        new.tracker = tracker_new_with(rule.tracker.rule)
        made = new.tracker != NULL
    elif rule.kind == RULE_LEFT:
        new.still = still_new(rule.still.share, rule.still.horizon, rule.still.window)
        made = new.still != NULL
    elif rule.kind == RULE_COUNT:
        new.count = <Count *>allocate(1, sizeof(Count))
        made = new.count != NULL
        if made:
            new.count.limit, new.count.seen = rule.count.limit, 0
    elif rule.kind == RULE_VARIANCE:
        new.variances = <Variances *>allocate(1, sizeof(Variances))
        made = new.variances != NULL
        if made:
            memset(new.variances, 0, sizeof(Variances))
            new.variances.threshold = rule.variances.threshold
    else:
        new.members = <Rule **>allocate(rule.n_members, sizeof(Rule *))
        made = new.members != NULL
        for i in range(rule.n_members if made else 0):
            new.members[i] = rule_new_like(rule.members[i])
            if new.members[i] == NULL:
                made = False
                break
            new.n_members += 1
    if not made:
        rule_free(new)
        return NULL
    return new


cdef class Counter:
    """Counts bounds up to a limit.

    Parameters
    ----------
    limit : int
        Number of bounds at which to stop.
    seen : int
        Number of bounds so far.
    """

    def __cinit__(self, int64_t limit, int64_t seen=0):
        self.count.limit, self.count.seen = limit, seen

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the criterion is in use by another thread")
        return 0

    def step(self):
        """Count one more; return whether the limit is reached."""
        self.check()
        self.count.seen += 1
        return self.count.seen >= self.count.limit

    def count_to(self, int64_t n):
        """Have counted at least n."""
        self.check()
        self.count.seen = max(self.count.seen, n)

    def reset(self):
        """Begin anew."""
        self.check()
        self.count.seen = 0

    def __reduce__(self):
        return Counter, (self.count.limit, self.seen)

    @property
    def seen(self):
        """Number of bounds so far."""
        return self.count.seen


cdef class VarianceRule:
    """Compares the largest variance of an unlabelled point with a threshold, after each label.

    Parameters
    ----------
    threshold : float
        Largest variance that is small enough.
    before : int
        Number of labels that were measured before.
    stopped_at : int
        How many of them there were at the stop; 0 without one.
    """

    def __cinit__(self, double threshold, int64_t before=0, int64_t stopped_at=0):
        self.variances.threshold, self.variances.before = threshold, before
        self.variances.stopped_at = stopped_at

    def __dealloc__(self):
        free(self.variances.values)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the criterion is in use by another thread")
        return 0

    def __reduce__(self):
        raise TypeError("a VarianceRule is lent to a compiled loop and cannot be pickled")

    def taken(self):
        """Return what was measured since, as a list."""
        cdef int64_t i
        self.check()
        return [self.variances.values[i] for i in range(self.variances.n)]

    @property
    def stopped_at(self):
        """Number of measures at the stop; 0 before it."""
        return self.variances.stopped_at


cdef class CompiledRule:
    """A criterion as compiled loops see it.

    Parameters
    ----------
    kind : {"all", "any"} or None
        How members combine; None for a single part.
    *parts : RunsTracker, StillTracker, Counter, VarianceRule; or CompiledRule for each member
        What the rule borrows its state from.
    """

    def __cinit__(self, kind, *parts):
        cdef int64_t i
        self.parts = parts
        if kind is None:
            (part,) = parts
            if isinstance(part, RunsTracker):
                self.rule.kind = RULE_RUNS
            elif isinstance(part, StillTracker):
                self.rule.kind = RULE_LEFT
            elif isinstance(part, VarianceRule):
                self.rule.kind = RULE_VARIANCE
                self.rule.variances = &(<VarianceRule>part).variances
            else:
                self.rule.kind = RULE_COUNT
                self.rule.count = &(<Counter?>part).count
            self.point()
            return
        self.rule.kind = RULE_ALL if kind == "all" else RULE_ANY
        self.rule.members = <Rule **>allocate(len(parts), sizeof(Rule *))
        if self.rule.members == NULL:
            raise MemoryError("no memory for a rule")
        for i, part in enumerate(parts):
            self.rule.members[i] = &(<CompiledRule?>part).rule
        self.rule.n_members = len(parts)

    def __dealloc__(self):
        free(self.rule.members)

    cdef int check(self) except -1:
        for part in self.parts:
            if isinstance(part, CompiledRule):
                (<CompiledRule>part).check()
            elif isinstance(part, RunsTracker):
                (<RunsTracker>part).check()
            elif isinstance(part, StillTracker):
                (<StillTracker>part).check()
            elif isinstance(part, VarianceRule):
                (<VarianceRule>part).check()
            else:
                (<Counter>part).check()
        return 0

    cdef void point(self) noexcept:
        # `replace` exchanges what a tracker holds: the rule points to what is there now.
        for part in self.parts:
            if isinstance(part, CompiledRule):
                (<CompiledRule>part).point()
            elif isinstance(part, RunsTracker):
                self.rule.tracker = (<RunsTracker>part).tracker
            elif isinstance(part, StillTracker):
                self.rule.still = (<StillTracker>part).still

    cdef void mark(self, bint busy) noexcept:
        for part in self.parts:
            if isinstance(part, CompiledRule):
                (<CompiledRule>part).mark(busy)
            elif isinstance(part, RunsTracker):
                (<RunsTracker>part).busy = busy
            elif isinstance(part, StillTracker):
                (<StillTracker>part).busy = busy
            elif isinstance(part, VarianceRule):
                (<VarianceRule>part).busy = busy
            else:
                (<Counter>part).busy = busy

    def lend(self):
        """Return the address of the C struct for code that holds no GIL, until `take_back`."""
        self.check()
        self.point()
        self.mark(True)
        self.lent = True
        self.rule.stopped = rule_stopped_at(&self.rule) > 0
        return <Py_ssize_t>&self.rule

    def take_back(self):
        """End what `lend` began."""
        self.mark(False)
        self.lent = False

    def reset(self):
        """Forget all bounds."""
        self.check()
        self.point()
        rule_reset(&self.rule)

    @property
    def asks(self):
        """Whether it goes by more than bounds: the largest variance after each label."""
        return rule_asks(&self.rule)

    @property
    def stopped_at(self):
        """Number of bounds at the stop; 0 before it."""
        self.point()
        return rule_stopped_at(&self.rule)

    @property
    def nbytes(self):
        """Bytes that a copy without bounds would take."""
        cdef size_t total = sizeof(Rule) + sizeof(Rule *) * self.rule.n_members
        for part in self.parts:
            if isinstance(part, Counter):
                total += sizeof(Count)
            else:
                total += sizeof(Variances) if isinstance(part, VarianceRule) else part.nbytes
        return total
