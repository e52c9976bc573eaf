# A 4-ary heap of doubles, smallest key first, in a buffer that two heaps share.
#
# `root` is the buffer's first used entry and `step` 1, or its last and -1. Three entries before the
# left root stay free, and the right root stands at a multiple of four: so the children of every
# entry, 4 x 16 bytes, are one line of the cache.

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define FASTAL_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define FASTAL_PREFETCH(address) ((void)0)
    #endif
    """
    void prefetch "FASTAL_PREFETCH"(const void *address) noexcept nogil

cdef enum:
    LINE = 64                   # bytes
    FREE = 3                    # entries before the left root
    PREFETCH_FROM = 8192        # entries from here on are likely not in the nearer caches

# One distinct value among those held.
cdef struct Node:
    double value
    int count       # how often it is held; 0: in a heap for nothing; -1: in no heap
    int balance     # neighbouring pairs of which it is the smaller, minus those of which the larger

# The keys of values below the median are negated.
cdef struct Entry:
    double key
    int64_t node


cdef inline void heap_push(Entry *root, int64_t step, int64_t size, Entry new) noexcept nogil:
    cdef int64_t i = size, parent
    while i > 0:
        parent = (i - 1) >> 2
        if root[step * parent].key <= new.key:
            break
        root[step * i] = root[step * parent]
        i = parent
    root[step * i] = new


cdef inline void heap_pop(Entry *root, int64_t step, int64_t size, Node *nodes) noexcept nogil:
    cdef int64_t n = size - 1, i = 0, child, best, j
    cdef Entry last = root[step * n]
    cdef double smallest
    while True:
        child = 4 * i + 1
        if child >= n:
            break
        if PREFETCH_FROM <= 4 * child < n:
            for j in range(4):          # whichever child is chosen, its children are on the way
                prefetch(&root[step * (4 * (child + j) + 1)])
        best = child
        smallest = root[step * child].key
        for j in range(child + 1, min(child + 4, n)):
            if root[step * j].key < smallest:
                smallest = root[step * j].key
                best = j
        if smallest >= last.key:
            break
        root[step * i] = root[step * best]
        if i == 0:
            prefetch(&nodes[root[0].node])      # the new top is looked at next
        i = best
    root[step * i] = last
