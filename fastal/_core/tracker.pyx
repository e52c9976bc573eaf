# The runs test of a growing sequence about its running median: one value in O(log T).
#
# Three layers. `cdef ... noexcept nogil` functions hold the data structure; one loop pushes many
# values; RunsTracker wraps one tracker for Python. Kernels raise nothing; the class raises
# MemoryError and refuses what is not finite. Nothing hot crosses a file.

from libc.math cimport NAN, isfinite, log2, sqrt
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fastal._core.distribution cimport (
    AUTO,
    LESS,
    NORMAL,
    mean_runs,
    normal_quantile,
    resolve,
    runs_cdf,
    runs_p_value,
    var_runs,
)
from fastal._core.halves cimport (
    fell,
    lower_push,
    lower_pop,
    lower_root,
    lower_to_upper,
    lower_top,
    upper_pop,
    upper_push,
    upper_root,
    upper_to_lower,
    upper_top,
)
from fastal._core.hashing cimport folded_twice
from fastal._core.heap cimport FREE, LINE, Entry, Node, prefetch
from fastal._core.memory cimport allocate, resize
from fastal._core.numeric cimport first_not_finite, midpoint

# ---------------------------------------------------------------------------------------------
# The tracker
#
# Label i is 1 if r_i >= m, m the median, else 0. Neighbours differ iff min < m <= max, so
#     runs - 1 = #{pairs whose smaller value is below m} - #{pairs whose larger value is below m}
#              = sum of balance(v) over the distinct values v below m.
# Distinct values below m lie in the lower heap (largest first), the others in the upper one
# (smallest first). A new value moves the median past at most a few distinct values; each that
# crosses takes its count and its balance along. All occurrences of a value cross in one step, so
# ties cost nothing: O(log of the number of distinct values) for each push, amortised over doubling
# buffers.
# ---------------------------------------------------------------------------------------------

cdef uint64_t EMPTY = ~<uint64_t>0

# Where a value lies in the table depends on two numbers that differ from process to process, as
# Python's own hashes do (PYTHONHASHSEED): nobody can choose values beforehand that collide.
cdef uint64_t SECRET = <uint64_t><int64_t>hash(b"fastal: added to a value")
cdef uint64_t FACTOR = <uint64_t><int64_t>hash(b"fastal: times the sum") | 1

cdef enum:
    FIRST_CAPACITY = 16
    MOST_VALUES = 1 << 30       # counts and balances are ints
    AHEAD = 4                   # values whose slot is fetched while earlier ones are pushed


cdef inline uint64_t hash_of(double value) noexcept nogil:
    return folded_twice(value, SECRET, FACTOR)


cdef inline uint64_t slot_of(Tracker *t, double value) noexcept nogil:
    return hash_of(value) & (2 * t.capacity - 1)


cdef inline uint64_t find(Tracker *t, double value) noexcept nogil:
    # Slot of the node with this value, or the empty one where it belongs. The upper half of the
    # hash, kept in the slot, spares a look at the nodes of other values.
    cdef uint64_t hashed = hash_of(value), mask = 2 * t.capacity - 1
    cdef uint64_t slot = hashed & mask, entry
    while True:
        entry = t.table[slot]
        if entry == EMPTY or (entry >> 32 == hashed >> 32
                              and t.nodes[<int>entry].value == value):
            return slot
        slot = (slot + 1) & mask


cdef inline void put(Tracker *t, uint64_t slot, int64_t node) noexcept nogil:
    t.table[slot] = (hash_of(t.nodes[node].value) >> 32 << 32) | <uint64_t>node


cdef inline int node_of(Tracker *t, double value) noexcept nogil:
    # of a value that is there
    return <int>t.table[find(t, value)]


cdef void fill_table(Tracker *t) noexcept nogil:
    cdef int64_t i
    memset(t.table, 0xFF, 2 * t.capacity * sizeof(uint64_t))      # every slot EMPTY
    for i in range(t.n_nodes):
        put(t, find(t, t.nodes[i].value), i)


cdef bint reserve_values(Tracker *t, int64_t n) noexcept nogil:
    cdef int64_t capacity = max(t.values_capacity, FIRST_CAPACITY)
    if n <= t.values_capacity:
        return True
    if n > MOST_VALUES:
        return False
    while capacity < n:
        capacity *= 2
    if not resize(<void **>&t.values, capacity, sizeof(double)):
        return False
    t.values_capacity = capacity
    return True


cdef bint reserve_heaps(Tracker *t, int64_t capacity) noexcept nogil:
    # A new buffer that begins with a line, both heaps copied to its ends.
    cdef int64_t spare = FREE + 2 + LINE // <int64_t>sizeof(Entry)
    cdef void *memory = allocate(capacity + spare, sizeof(Entry))
    cdef Entry *heaps
    if memory == NULL:
        return False
    heaps = <Entry *>((<uintptr_t>memory + LINE - 1) // LINE * LINE)
    if t.heaps != NULL:
        memcpy(heaps + FREE, lower_root(t), t.n_lower * sizeof(Entry))
        memcpy(heaps + (capacity + FREE + 2 - t.n_upper), upper_root(t) - (t.n_upper - 1),
               t.n_upper * sizeof(Entry))
        free(t.heap_memory)
    t.heap_memory = memory
    t.heaps = heaps
    return True


cdef bint reserve_nodes(Tracker *t, int64_t n) noexcept nogil:
    cdef int64_t capacity = max(t.capacity, FIRST_CAPACITY)
    if n <= t.capacity:
        return True
    while capacity < n:
        capacity *= 2
    # buffers that did grow stay usable at the old capacity if a later one cannot
    if not (resize(<void **>&t.nodes, capacity, sizeof(Node))
            and (not t.rule.fall or resize(<void **>&t.places, capacity, sizeof(int64_t)))
            and resize(<void **>&t.table, 2 * capacity, sizeof(uint64_t))
            and reserve_heaps(t, capacity)):
        return False
    t.capacity = capacity
    fill_table(t)
    return True


cdef void drop_unused(Tracker *t) noexcept nogil:
    # Renumber the nodes that still occur in the window and build table and heaps anew: O(size),
    # and at least half of the nodes have gone, so O(1) for each value that left.
    cdef int64_t i, kept = 0
    cdef double last = t.nodes[t.last].value
    t.n_lower = t.n_upper = 0
    for i in range(t.n_nodes):
        if t.nodes[i].count > 0:
            t.nodes[kept] = t.nodes[i]
            if t.rule.fall:
                t.places[kept] = t.places[i]
            if t.nodes[kept].value < t.median:
                lower_push(t, kept)
            else:
                upper_push(t, kept)
            kept += 1
    t.n_nodes = kept
    fill_table(t)
    t.last = node_of(t, last)


cdef inline void discard_unused_tops(Tracker *t) noexcept nogil:
    # Values that left the window stay in their heap until they come to its top.
    while t.rule.window and t.n_lower and lower_top(t).count == 0:
        lower_top(t).count = -1
        lower_pop(t)
    while t.rule.window and t.n_upper and upper_top(t).count == 0:
        upper_top(t).count = -1
        upper_pop(t)


cdef void follow_median(Tracker *t) noexcept nogil:
    cdef int64_t k1 = (t.n + 1) >> 1, k2 = (t.n >> 1) + 1      # ranks of the middle value(s)
    cdef double a, b
    discard_unused_tops(t)
    while t.n_upper and k2 > t.n_below + upper_top(t).count:
        upper_to_lower(t)
        discard_unused_tops(t)
    while t.n_lower and k1 <= t.n_below - lower_top(t).count:
        lower_to_upper(t)
        discard_unused_tops(t)
    a = lower_top(t).value if k1 <= t.n_below else upper_top(t).value
    b = lower_top(t).value if k2 <= t.n_below else upper_top(t).value
    t.median = midpoint(a, b)
    # values at the median count as above it (also when the midpoint rounds down to a)
    while t.n_lower and lower_top(t).value >= t.median:
        lower_to_upper(t)


cdef inline void link_neighbours(Tracker *t, int first, int second, int sign) noexcept nogil:
    # Add (sign = 1) or take away (-1) the neighbours `first, second`.
    cdef double a = t.nodes[first].value, b = t.nodes[second].value
    if first == second:
        return
    if a < b:
        t.nodes[first].balance += sign
        t.nodes[second].balance -= sign
    else:
        t.nodes[first].balance -= sign
        t.nodes[second].balance += sign
    if (a < t.median) != (b < t.median):
        t.crossings += sign


cdef void forget_oldest(Tracker *t) noexcept nogil:
    cdef int64_t place = t.n_pushed - t.n
    cdef double *oldest = t.values + place
    cdef int node = node_of(t, oldest[0])
    link_neighbours(t, node, node_of(t, oldest[1]), -1)
    t.nodes[node].count -= 1
    t.n -= 1
    if oldest[0] < t.median:
        t.n_below -= 1
    if t.rule.fall:
        t.places[node] -= place
        if oldest[0] < t.median:
            t.places_below -= place


cdef int insert(Tracker *t, double value) noexcept nogil:
    # 0 = done, -1 = no memory, -2 = not finite; in these two cases nothing has changed.
    cdef uint64_t slot
    cdef int64_t below
    cdef int node
    if not isfinite(value):
        return -2
    value += 0.0                # -0.0 and 0.0 are one value
    if t.n_pushed == t.values_capacity and not reserve_values(t, t.n_pushed + 1):
        return -1
    if t.n_nodes == t.capacity:
        if t.rule.window and t.n_nodes >> 1 >= t.rule.window:
            drop_unused(t)
        elif not reserve_nodes(t, t.n_nodes + 1):
            return -1
    if t.rule.window and t.n == t.rule.window:
        forget_oldest(t)
    slot = find(t, value)
    if t.table[slot] == EMPTY:
        node = <int>t.n_nodes
        t.n_nodes += 1
        t.nodes[node].value = value
        t.nodes[node].count = -1
        t.nodes[node].balance = 0
        if t.rule.fall:
            t.places[node] = 0
        put(t, slot, node)
    else:
        node = <int>t.table[slot]
    if t.nodes[node].count == -1:
        t.nodes[node].count = 0
        if value < t.median:
            lower_push(t, node)
        else:
            upper_push(t, node)
    t.nodes[node].count += 1
    below = value < t.median
    t.n_below += below
    if t.rule.fall:
        t.places[node] += t.n_pushed
        t.places_below += below * t.n_pushed
    if t.n_pushed:
        link_neighbours(t, t.last, node, 1)
    t.values[t.n_pushed] = value
    t.last = node
    t.n_pushed += 1
    t.n += 1
    follow_median(t)
    return 0


cdef double level_factor(int64_t n) noexcept nogil:
    # w(T) = 1 below T = 16, else (1 + log2(T / 16))^-2
    return 1 if n < 16 else (1 + log2(<double>n / 16)) ** -2


cdef bint tracker_rejects(Tracker *t) noexcept nogil:
    # Is the p-value at most the level?
    #
    # Taking a random zero (or one) out of a random arrangement leaves a random arrangement and
    # never adds a run. So P(U <= u) falls when n0 or n1 grows, and rises with u. One exact tail
    # above the level at counts some steps ahead therefore proves "no" for all that lies between:
    # about sqrt(T) values pass on comparisons of integers alone. The proof holds for every level,
    # and for levels that fall.
    cdef int64_t n0 = t.n_below, n1 = t.n - t.n_below, u = t.crossings + 1, ahead
    cdef double a = <double>n0, b = <double>n1, slack, p, level = t.rule.alpha
    if n0 == 0 or n1 == 0:
        return False
    if t.n < t.n_critical and n0 == t.n >> 1:
        return u <= t.critical[t.n]
    if t.rule.falling:
        level *= level_factor(t.n)
    if t.rule.alternative != LESS or resolve(t.rule.method, n0, n1) == NORMAL:
        return runs_p_value(u, n0, n1, t.rule.alternative, t.rule.method) <= level
    if u >= t.safe_runs and n0 <= t.safe_below and n1 <= t.safe_above:
        return False
    if (u <= t.rejected_runs and n0 >= t.rejected_below and n1 >= t.rejected_above
            and t.rejected_p <= level):
        return True
    p = runs_cdf(u, n0, n1)
    if p <= level:
        t.rejected_runs, t.rejected_below, t.rejected_above, t.rejected_p = u, n0, n1, p
        return True
    # The mean grows by one with each pair of values: guess how many pairs ahead this u would
    # still not reject, and prove it; halve the guess if it was too bold.
    slack = 0.95 * (u + 0.5 - mean_runs(a, b) - t.z_alpha * sqrt(var_runs(a, b)))
    ahead = <int64_t>min(max(slack, 0.0), a + b)
    while ahead and runs_cdf(u, n0 + ahead, n1 + ahead) <= level * (1 + 1e-9):
        ahead >>= 1
    t.safe_runs, t.safe_below, t.safe_above = u, n0 + ahead, n1 + ahead
    return False


cdef bint is_rule(RunsRule rule) noexcept nogil:
    # What lies outside would make the loops below endless, or look at values that are not there.
    return (0 < rule.alpha <= 1 and (rule.window == 0 or rule.window >= 2)
            and rule.min_bounds >= 0 and rule.patience >= 1 and rule.horizon >= 0)


cdef Tracker *tracker_new_with(RunsRule rule) noexcept nogil:
    cdef Tracker *t
    cdef double m, least = 1            # 2 / C(2, 1)
    if not is_rule(rule):
        return NULL
    t = <Tracker *>allocate(1, sizeof(Tracker))
    if t == NULL:
        return NULL
    memset(t, 0, sizeof(Tracker))
    t.rule = rule
    if rule.window > MOST_VALUES:
        t.rule.window = 0       # longer than any sequence can become: all values are tested
    t.rule.fall = rule.fall and rule.alternative == LESS
    t.z_alpha = normal_quantile(rule.alpha)
    # P(U <= 2) = 2 / C(2m, m) is the least p-value of at most m values on each side
    while least > rule.alpha:
        t.safe_count += 1
        m = <double>t.safe_count + 1
        least *= m / (2 * (2 * m - 1))          # C(2m, m) = C(2m-2, m-1) 2 (2m-1) / m
    tracker_reset(t)
    if not reserve_nodes(t, FIRST_CAPACITY):
        tracker_free(t)
        return NULL
    return t


cdef Tracker *tracker_new(double alpha, int64_t window) noexcept nogil:
    cdef RunsRule rule
    memset(&rule, 0, sizeof(RunsRule))      # AUTO, LESS, no horizon
    rule.alpha = alpha
    rule.window = window
    rule.patience = 1
    rule.fall = True
    return tracker_new_with(rule)


cdef inline bint would_stop(Tracker *t) noexcept nogil:
    return (t.streak >= t.rule.patience and t.n_pushed >= t.rule.min_bounds
            and (t.rule.horizon == 0 or t.n_pushed <= t.rule.horizon))


cdef inline void note_stop(Tracker *t) noexcept nogil:
    t.stopped_at = t.n_pushed
    t.stop_n, t.stop_below, t.stop_crossings = t.n, t.n_below, t.crossings
    t.stop_median = t.median


cdef int tracker_push(Tracker *tracker, double value) noexcept nogil:
    cdef Tracker *t = tracker
    cdef int status
    if t == NULL:
        return -3
    status = insert(t, value)
    if status:
        return status
    # The fall is asked for first: where values rise, every test would reject.
    status = (not t.rule.fall or fell(t)) and tracker_rejects(t)
    t.streak = t.streak + 1 if status else 0
    if t.stopped_at == 0 and not t.held and would_stop(t):
        note_stop(t)
    return status


cdef int64_t tracker_stopped_at(Tracker *tracker) noexcept nogil:
    return tracker.stopped_at if tracker != NULL else 0


cdef double tracker_p_value(Tracker *tracker) noexcept nogil:
    if tracker == NULL:
        return NAN
    if tracker.n < 2:
        return 1
    return runs_p_value(tracker.crossings + 1, tracker.n_below, tracker.n - tracker.n_below,
                        tracker.rule.alternative, tracker.rule.method)


cdef int64_t tracker_n_runs(Tracker *tracker) noexcept nogil:
    return tracker.crossings + 1 if tracker != NULL and tracker.n else 0


cdef bint tracker_fell(Tracker *tracker) noexcept nogil:
    return tracker != NULL and fell(tracker)


cdef void tracker_reset(Tracker *tracker) noexcept nogil:
    # Buffers are kept.
    cdef Tracker *t = tracker
    if t == NULL:
        return
    t.n_pushed = t.n = t.n_below = t.crossings = t.n_nodes = t.streak = t.stopped_at = 0
    t.n_lower = t.n_upper = t.places_below = 0
    t.last = -1
    t.median = NAN
    t.epoch += 1
    t.safe_runs, t.safe_below, t.safe_above = 0, t.safe_count, t.safe_count
    t.rejected_runs, t.rejected_below, t.rejected_above = -1, 0, 0
    if t.capacity:
        fill_table(t)


cdef void tracker_free(Tracker *tracker) noexcept nogil:
    if tracker == NULL:
        return
    free(tracker.values)
    free(tracker.nodes)
    free(tracker.places)
    free(tracker.table)
    free(tracker.heap_memory)
    free(tracker)


cdef void forget_after(Tracker *t, int64_t n) noexcept nogil:
    # Go back to the first n values. What they need is allocated already: nothing can fail.
    cdef int64_t i
    tracker_reset(t)
    for i in range(n):
        tracker_push(t, t.values[i])


cdef int push_all(Tracker *t, const double[::1] values, unsigned char[::1] out) noexcept nogil:
    # out[i] = what tracker_push says of the prefix up to values[i]. Without memory none is taken.
    cdef int64_t i, before = t.n_pushed
    cdef Tracker was = t[0]
    cdef int status
    if not reserve_values(t, t.n_pushed + values.shape[0]):
        return -1
    for i in range(values.shape[0]):
        if i + AHEAD < values.shape[0]:
            prefetch(&t.table[slot_of(t, values[i + AHEAD])])
        status = tracker_push(t, values[i])
        if status < 0:
            forget_after(t, before)
            # a stop that somebody else made, who holds the tracker
            t.stopped_at, t.stop_n, t.stop_below = was.stopped_at, was.stop_n, was.stop_below
            t.stop_crossings, t.stop_median = was.stop_crossings, was.stop_median
            return status
        out[i] = status
    return 0


cdef bint tracker_reserve(Tracker *tracker) noexcept nogil:
    # Make sure that the next push cannot fail for want of memory.
    cdef Tracker *t = tracker
    if t == NULL or not reserve_values(t, t.n_pushed + 1):
        return False
    if t.n_nodes < t.capacity or (t.rule.window and t.n_nodes >> 1 >= t.rule.window):
        return True
    return reserve_nodes(t, t.n_nodes + 1)


cdef class RunsTracker:
    """Runs test of a growing sequence about its running median.

    ``push`` and ``extend`` say whether the test of `method` and `alternative` rejects at the level,
    `alpha` or what it has fallen to, and, with `fall`, whether the values fell as well.
    ``stopped_after`` and ``stopped_at`` follow the whole rule: a stop, once made, stays.
    One tracker belongs to one thread at a time. Its methods keep the GIL, but for ``extend``; while
    that runs, and while the tracker is lent to compiled code, every other call is a RuntimeError.

    Parameters
    ----------
    alpha : float
        Level of one look.
    method : int
        0 = auto, 1 = exact, 2 = normal.
    window : int
        Test the last `window` values only; 0 means all.
    alternative : int
        0 = less, 1 = greater, 2 = two-sided.
    min_bounds, patience, horizon : int
        No stop before, rejections in a row that stop, no stop after (0 = no limit).
    falling : bool
        Whether the level falls with the number of values T, like (1 + log2(T/16))^-2 from 16 on.
    fall : bool
        Whether a rejection counts only if the values fell; for alternative 0 only.
    """

    # busy: something runs without the GIL, no other call may touch the buffers then

    def __cinit__(self, double alpha=1e-3, int method=AUTO, int64_t window=0,
                  int alternative=LESS, int64_t min_bounds=0, int64_t patience=1,
                  int64_t horizon=0, bint falling=False, bint fall=False):
        cdef RunsRule rule
        rule.alpha, rule.falling = alpha, falling
        rule.method, rule.alternative = method, alternative
        rule.window, rule.min_bounds, rule.patience = window, min_bounds, patience
        rule.horizon, rule.fall = horizon, fall
        if not is_rule(rule):
            raise ValueError(f"no rule of a tracker: {rule}")
        self.tracker = tracker_new_with(rule)
        if self.tracker == NULL:
            raise MemoryError("no memory for a runs tracker")

    def __dealloc__(self):
        tracker_free(self.tracker)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the tracker is in use by another thread")
        return 0

    def push(self, double value):
        """Add a value; return whether there is a rejection now that counts."""
        self.check()
        cdef int status = tracker_push(self.tracker, value)
        if status < 0:
            self.refuse(status, value)
        return status == 1

    def stopped_after(self, double value):
        """Add a value; return whether there has been a stop, now or before."""
        self.check()
        cdef int status = tracker_push(self.tracker, value)
        if status < 0:
            self.refuse(status, value)
        return self.tracker.stopped_at > 0

    cdef int refuse(self, int status, double value) except -1:
        if status == -2:
            raise ValueError(f"`value` must be finite, got {value}")
        raise MemoryError(f"no memory for value {self.tracker.n_pushed + 1}")

    def extend(self, const double[::1] values not None, unsigned char[::1] out not None):
        """Push `values`; `out` of the same length receives the decision after each.

        Returns `stopped_at`.
        """
        cdef int64_t bad
        cdef int status = 0
        self.check()
        if out.shape[0] != values.shape[0]:
            raise ValueError(f"`out` must have length {values.shape[0]}, got {out.shape[0]}")
        self.busy = True
        with nogil:
            bad = first_not_finite(&values[0], values.shape[0]) if values.shape[0] else -1
            if bad < 0:
                status = push_all(self.tracker, values, out)
        self.busy = False
        if bad >= 0:
            raise ValueError(f"`values` must be finite, got {values[bad]} at index {bad}")
        if status < 0:
            self.refuse(status, 0)
        return self.tracker.stopped_at

    def restore(self, const double[::1] values not None):
        """Take the values of a saved tracker; nothing is decided anew."""
        cdef Tracker *t = self.tracker
        cdef bint held = t.held
        self.check()
        if t.n_pushed:
            raise ValueError(f"there are {t.n_pushed} values already")
        t.held = True
        try:
            self.extend(values, bytearray(values.shape[0]))
        finally:
            t.held = held

    def reset(self):
        """Forget all values."""
        self.check()
        tracker_reset(self.tracker)

    def replace(self, RunsTracker other not None):
        """Exchange states with `other`."""
        self.check()
        other.check()
        self.tracker, other.tracker = other.tracker, self.tracker
        self.tracker.epoch = max(self.tracker.epoch, other.tracker.epoch) + 1

    def lend(self):
        """Return the address of the C struct for code that holds no GIL, until `take_back`."""
        self.check()
        self.busy = True
        return <Py_ssize_t>self.tracker

    def take_back(self):
        """End what `lend` began."""
        self.busy = False

    def copy(self):
        """Return an independent tracker in the same state."""
        self.check()
        cdef Tracker *old = self.tracker
        cdef RunsTracker new = RunsTracker(fall=old.rule.fall)   # that one asks for memory
        cdef Tracker *t = new.tracker
        t.rule, t.z_alpha, t.safe_count = old.rule, old.z_alpha, old.safe_count
        tracker_reset(t)                # what is safe follows from the level
        if not (reserve_values(t, max(old.values_capacity, 1)) and reserve_nodes(t, old.capacity)):
            raise MemoryError("no memory for a copy of the tracker")
        if old.n_pushed:                # else there may be no buffer, and memcpy must not see NULL
            memcpy(t.values, old.values, old.n_pushed * sizeof(double))
        memcpy(t.nodes, old.nodes, old.n_nodes * sizeof(Node))
        if t.rule.fall:
            memcpy(t.places, old.places, old.n_nodes * sizeof(int64_t))
        memcpy(t.table, old.table, 2 * old.capacity * sizeof(uint64_t))
        memcpy(lower_root(t), lower_root(old), old.n_lower * sizeof(Entry))
        memcpy(upper_root(t) - (old.n_upper - 1), upper_root(old) - (old.n_upper - 1),
               old.n_upper * sizeof(Entry))
        t.n_lower, t.n_upper = old.n_lower, old.n_upper
        t.n_nodes, t.last = old.n_nodes, old.last
        t.n_pushed, t.n, t.n_below = old.n_pushed, old.n, old.n_below
        t.crossings, t.median = old.crossings, old.median
        t.places_below = old.places_below
        t.streak, t.stopped_at = old.streak, old.stopped_at
        t.stop_n, t.stop_below = old.stop_n, old.stop_below
        t.stop_crossings, t.stop_median = old.stop_crossings, old.stop_median
        t.held = old.held
        return new

    def take_stop(self, RunsTracker other not None):
        """Take over the stop of another tracker, as it was."""
        self.note_evidence(other.tracker.stopped_at, *other.stop_evidence)

    @property
    def stop_evidence(self):
        """Tested values, those below the median, crossings and median of the stop."""
        cdef Tracker *t = self.tracker
        return t.stop_n, t.stop_below, t.stop_crossings, t.stop_median

    def note_evidence(self, int64_t stopped_at, int64_t n, int64_t below, int64_t crossings,
                      double median):
        """Say how a stop was."""
        cdef Tracker *t = self.tracker
        self.check()
        t.stopped_at, t.stop_n, t.stop_below = stopped_at, n, below
        t.stop_crossings, t.stop_median = crossings, median

    def latch(self):
        """Stop here."""
        self.check()
        note_stop(self.tracker)

    def unlatch(self):
        """Forget the stop."""
        self.check()
        self.tracker.stopped_at = 0

    @property
    def would_stop(self):
        """Whether the rule says stop now, whatever it said before."""
        self.check()
        return would_stop(self.tracker)

    @property
    def held(self):
        """Whether a push stops nothing."""
        return self.tracker.held

    @held.setter
    def held(self, bint held):
        self.check()
        self.tracker.held = held

    def p_value(self, int alternative=LESS):
        """Return the p-value now; 1.0 below two values."""
        self.check()
        cdef Tracker *t = self.tracker
        if t.n < 2:
            return 1.0
        return runs_p_value(t.crossings + 1, t.n_below, t.n - t.n_below, alternative, t.rule.method)

    def evidence(self):
        """Return (stopped, values, tested, below, runs, median, p-value): of the stop, or now."""
        self.check()
        cdef Tracker *t = self.tracker
        cdef int64_t pushed = t.n_pushed, n = t.n, below = t.n_below, crossings = t.crossings
        cdef double median = t.median, p = 1
        if t.stopped_at:
            pushed, n, below = t.stopped_at, t.stop_n, t.stop_below
            crossings, median = t.stop_crossings, t.stop_median
        if n >= 2:
            p = runs_p_value(crossings + 1, below, n - below, t.rule.alternative,
                             t.rule.method)
        return t.stopped_at > 0, pushed, n, below, crossings + 1 if n else 0, median, p

    @property
    def epoch(self):
        """A number that changes whenever earlier values are no longer there."""
        return self.tracker.epoch

    def values(self, double[::1] out not None):
        """Copy all pushed values into `out`, of length `n_pushed`."""
        self.check()
        if out.shape[0] != self.tracker.n_pushed:
            raise ValueError(
                f"`out` must have length {self.tracker.n_pushed}, got {out.shape[0]}"
            )
        if out.shape[0]:
            memcpy(&out[0], self.tracker.values, out.shape[0] * sizeof(double))

    @property
    def rejects(self):
        """Whether randomness is rejected now, whether the values fell or not."""
        self.check()
        return tracker_rejects(self.tracker)

    @property
    def fell(self):
        """Whether, with `fall`, high values came earlier on average than those below the median."""
        self.check()
        return tracker_fell(self.tracker)

    @property
    def rose(self):
        """Whether, with `fall`, high values came later, on average, than those below the median."""
        self.check()
        cdef Tracker *t = self.tracker
        return t.rule.fall and 2 * t.places_below < t.n_below * (2 * t.n_pushed - t.n - 1)

    @property
    def stopped_at(self):
        """Number of values at the stop; 0 before it."""
        # unchecked: whoever has just pushed may ask, whatever the others do
        return self.tracker.stopped_at

    @property
    def n_pushed(self):
        """Number of values pushed."""
        self.check()
        return self.tracker.n_pushed

    @property
    def n_below(self):
        """Number of tested values below the median."""
        self.check()
        return self.tracker.n_below

    @property
    def n_above(self):
        """Number of tested values at or above the median."""
        self.check()
        return self.tracker.n - self.tracker.n_below

    @property
    def n_runs(self):
        """Number of runs; 0 without values."""
        self.check()
        return tracker_n_runs(self.tracker)

    @property
    def median(self):
        """Running median; NaN without values."""
        self.check()
        return self.tracker.median

    @property
    def probes(self):
        """Places of the hash table looked at when every value is found once; for tests."""
        self.check()
        cdef Tracker *t = self.tracker
        cdef uint64_t mask = 2 * t.capacity - 1
        cdef int64_t i, total = 0
        cdef double value
        for i in range(t.n_nodes):
            value = t.nodes[i].value
            total += <int64_t>((find(t, value) - slot_of(t, value)) & mask) + 1
        return total

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef Tracker *t = self.tracker
        return sizeof(Tracker) + t.values_capacity * sizeof(double) + t.capacity * (
            sizeof(Node) + sizeof(Entry) + 2 * sizeof(uint64_t) + t.rule.fall * sizeof(int64_t))
