# The runs test of a growing sequence about its running median, looked at only when a stop is
# possible. Plain C types; nothing needs the GIL, nothing raises. The values belong to the caller:
# r[0] .. r[n-1], finite, the same ones at each call and more of them.

from libc.stdint cimport int64_t

from fastal._core.levels cimport Level

cdef enum:
    MOST_VALUES = 1 << 30       # in one sequence: sums of places and products fit 64 bits
    NEVER = 0x7FFFFFFF

# The values on both sides of one of them.
cdef struct Cut:
    double at                   # labels are r >= at
    int64_t below               # values below it
    int64_t upto                # values up to it, with those equal to it
    int64_t runs
    int64_t places              # sum of the places, from 0, of those below

cdef struct Looks:
    Level *level                # borrowed
    bint fall                   # a rejection counts only if the values fell
    int64_t horizon             # no stop after so many values
    int64_t next_look           # number of values at which to ask next
    double *ordered             # the first n_ordered values in order
    int64_t n_ordered
    int64_t room                # values that `ordered` has room for, besides some to sort
    Cut cuts[2]                 # two neighbouring values about the median of the last look
    int64_t known               # values that the cuts have counted; 0: no look yet
    int64_t far                 # number of values from which on another cut could stop
    int64_t safe_runs, safe_below, safe_above   # proven not to reject: see rejects

# looks_start: a sequence without values; `ordered` and `room` stay as they are (0 at first).
# looks_reserve: False when there is no memory for so many values; then nothing has changed.
# looks_stop: whether to stop at n values; to be asked whenever n >= next_look, and n <= room.
# looks_now: whether the rule says stop at these n values, whatever was asked before.
# looks_copy: False when there is no memory; `to` keeps its own buffer.
cdef void looks_start(Looks *s, Level *level, bint fall, int64_t horizon) noexcept nogil
cdef bint looks_reserve(Looks *s, int64_t room) noexcept nogil
cdef bint looks_stop(Looks *s, const double *r, int64_t n) noexcept nogil
cdef bint looks_now(Looks *s, const double *r, int64_t n) noexcept nogil
cdef bint looks_copy(Looks *to, const Looks *s) noexcept nogil
cdef void looks_free(Looks *s) noexcept nogil
