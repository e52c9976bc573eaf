# The runs test of a growing sequence, for Cython callers (by way of runs.pxd) and for Numba.
#
# Only plain C types, so that the exported names do not depend on the version of Cython. Nothing
# here needs the GIL and nothing raises. A tracker belongs to one thread at a time. Every function
# that takes a tracker takes NULL too, and does nothing then; one that was freed, or an address that
# is no tracker's, cannot be told from a good one: what happens then is undefined.

from libc.stdint cimport int64_t, uint64_t

from fastal._core.heap cimport Entry, Node

# When to stop.
cdef struct RunsRule:
    double alpha            # level of one look
    bint falling            # the level falls with T: alpha w(T), see level_factor
    int method
    int alternative
    int64_t window          # 0: all values
    int64_t min_bounds      # no stop before
    int64_t patience        # rejections in a row that stop
    int64_t horizon         # no stop after; 0: none
    bint fall               # a rejection counts only if the values fell; for LESS only

cdef struct Tracker:
    RunsRule rule
    double z_alpha
    int64_t safe_count      # with at most so many values on each side nothing rejects
    const int *critical     # of T values halved by the median, or NULL; borrowed
    int64_t n_critical
    # the answer
    int64_t n_pushed
    int64_t n               # values in the test: n_pushed, or at most window
    int64_t n_below
    int64_t crossings       # runs - 1
    int64_t places_below    # with fall: sum of the places of the values below the median, else 0
    double median
    int64_t streak          # rejections in a row
    int64_t stopped_at      # n_pushed at the stop, 0 before it
    int64_t stop_n          # n, n_below, crossings and median at the stop
    int64_t stop_below
    int64_t stop_crossings
    double stop_median
    bint held               # a push stops nothing: who holds it decides (`latch`)
    int64_t epoch           # changes whenever earlier values are no longer there
    # the values in order, and the distinct ones in a hash table and two heaps
    double *values
    int64_t values_capacity
    Node *nodes
    int64_t *places         # with fall: sum of the places, counted from 0, of each node; else NULL
    uint64_t *table         # half of the hash and the number of the node; all ones if empty
    void *heap_memory
    Entry *heaps            # values below the median from the left, the others from the right
    int64_t n_lower
    int64_t n_upper
    int64_t n_nodes
    int64_t capacity        # of nodes and of both heaps; the table has twice as many places
    int last                # node of the newest value
    # proven not to reject: at least these runs with at most these counts (see tracker_rejects)
    int64_t safe_runs, safe_below, safe_above
    # proven to have at most p-value rejected_p: at most these runs with at least these counts
    int64_t rejected_runs, rejected_below, rejected_above
    double rejected_p

cdef double level_factor(int64_t n) noexcept nogil

# The runs test of a growing sequence about its running median.
# tracker_new: NULL when there is no memory, or for what is no rule: alpha outside (0, 1], a window
#               other than 0 or at least 2, a negative count, patience below 1. window = 0 tests all
#               values, else the last `window`. Its rule has fall = 1.
# tracker_push: 1 = P(U <= runs) <= alpha and, with fall, the values fell; 0 = not; -1 = no memory,
#               -2 = value not finite, -3 = NULL, and in these three cases the tracker is as before.
# tracker_fell: 1 = the values at or above the median came earlier, by the mean of their places,
#               than those below; 0 = not, or one side is empty, or the rule has no fall.
# tracker_reserve: whether the next push is sure to find memory.
# tracker_stopped_at: number of values at the first stop, 0 before it; a stop is for ever.
# For NULL: tracker_stopped_at, tracker_n_runs and tracker_fell are 0, tracker_p_value is NaN.
cdef Tracker *tracker_new(double alpha, int64_t window) noexcept nogil
cdef Tracker *tracker_new_with(RunsRule rule) noexcept nogil
cdef int tracker_push(Tracker *tracker, double value) noexcept nogil
cdef bint tracker_reserve(Tracker *tracker) noexcept nogil
cdef int64_t tracker_stopped_at(Tracker *tracker) noexcept nogil
cdef double tracker_p_value(Tracker *tracker) noexcept nogil
cdef int64_t tracker_n_runs(Tracker *tracker) noexcept nogil
cdef bint tracker_fell(Tracker *tracker) noexcept nogil
cdef void tracker_reset(Tracker *tracker) noexcept nogil
cdef void tracker_free(Tracker *tracker) noexcept nogil

cdef class RunsTracker:
    cdef Tracker *tracker
    cdef bint busy
    cdef int check(self) except -1
    cdef int refuse(self, int status, double value) except -1
