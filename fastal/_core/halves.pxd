# The two halves of a tracker's distinct values: those below the median in a heap with the largest
# on top, the others in one with the smallest. What crosses takes its count and balance along.

from libc.stdint cimport int64_t

from fastal._core.heap cimport FREE, Entry, Node, heap_pop, heap_push
from fastal._core.tracker cimport Tracker


cdef inline Entry *lower_root(Tracker *t) noexcept nogil:
    return t.heaps + FREE


cdef inline Entry *upper_root(Tracker *t) noexcept nogil:
    return t.heaps + (t.capacity + FREE + 1)


cdef inline void lower_push(Tracker *t, int64_t node) noexcept nogil:
    cdef Entry new
    new.key, new.node = -t.nodes[node].value, node
    heap_push(lower_root(t), 1, t.n_lower, new)
    t.n_lower += 1


cdef inline void upper_push(Tracker *t, int64_t node) noexcept nogil:
    cdef Entry new
    new.key, new.node = t.nodes[node].value, node
    heap_push(upper_root(t), -1, t.n_upper, new)
    t.n_upper += 1


cdef inline void lower_pop(Tracker *t) noexcept nogil:
    heap_pop(lower_root(t), 1, t.n_lower, t.nodes)
    t.n_lower -= 1


cdef inline void upper_pop(Tracker *t) noexcept nogil:
    heap_pop(upper_root(t), -1, t.n_upper, t.nodes)
    t.n_upper -= 1


cdef inline Node *lower_top(Tracker *t) noexcept nogil:
    return &t.nodes[lower_root(t).node]


cdef inline Node *upper_top(Tracker *t) noexcept nogil:
    return &t.nodes[upper_root(t).node]


cdef inline void lower_to_upper(Tracker *t) noexcept nogil:
    cdef int64_t node = lower_root(t).node
    if t.rule.fall:
        t.places_below -= t.places[node]
    lower_pop(t)
    upper_push(t, node)
    t.n_below -= t.nodes[node].count
    t.crossings -= t.nodes[node].balance


cdef inline void upper_to_lower(Tracker *t) noexcept nogil:
    cdef int64_t node = upper_root(t).node
    if t.rule.fall:
        t.places_below += t.places[node]
    upper_pop(t)
    lower_push(t, node)
    t.n_below += t.nodes[node].count
    t.crossings += t.nodes[node].balance


cdef inline bint fell(Tracker *t) noexcept nogil:
    # Is the mean place of the values at or above the median smaller than that of those below?
    # Only a rule with fall knows the places; else the answer is no.
    #
    # The mean place of all n values, the oldest at place a, is a + (n - 1) / 2. It lies between the
    # means of both sides, so the question is
    #     places_below / n_below > a + (n - 1) / 2.
    # Places are below 2^30: both products are below 2^62. Without values below, 0 > 0 is false;
    # without values above, both sides are equal.
    return t.rule.fall and 2 * t.places_below > t.n_below * (2 * t.n_pushed - t.n - 1)
