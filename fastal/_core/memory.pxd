# The one place where the C structures of `_core` get memory.
#
# A number of items may come from a caller, so that its product with a size may not fit a size_t: it
# is checked here. There is no other status than "not to be had" (NULL or False), and after it what
# was held before is held still.

from libc.stdint cimport int64_t
from libc.stdlib cimport malloc, realloc

cdef extern from "<stdint.h>" nogil:
    const size_t PTRDIFF_MAX


cdef inline bint countable(int64_t count, size_t size) noexcept nogil:
    # Can so many items of this size be addressed at all?
    return count >= 0 and <size_t>count <= PTRDIFF_MAX // size


cdef inline void *allocate(int64_t count, size_t size) noexcept nogil:
    # NULL if there is no memory; also for no items at all it is memory that may be freed.
    if not countable(count, size):
        return NULL
    return malloc(max(<size_t>count, <size_t>1) * size)


cdef inline bint resize(void **buffer, int64_t count, size_t size) noexcept nogil:
    # False if there is no memory; the buffer is as before then.
    cdef void *moved
    if not countable(count, size):
        return False
    moved = realloc(buffer[0], max(<size_t>count, <size_t>1) * size)
    if moved == NULL:
        return False
    buffer[0] = moved
    return True
