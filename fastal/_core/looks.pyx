# Deferred looks at the runs test of a growing sequence about its running median.
#
# The label of r is 1 if r >= m, m = o[n // 2] the upper middle one of the ordered values o: in
# exact arithmetic the same as "at or above the median", with nothing to round. Stop at the first n
# with P(U <= runs) <= level(n) and, with `fall`, values below m that came later than the others.
#
# Why no stop is missed. At n values, runs and places about two neighbours v <= w are known.
# 1. With k more values, h = (n + k) // 2, and o as ordered now: at most h old values are below the
#    new m, and at least h - k + 1 are not above it. So o[h - k] <= m <= o[h].
# 2. A label that changes takes two runs at most, a new one at the end none: runs about m are at
#    least those about v or w less twice the old labels between. For m > w these are the values from
#    w to below o[h], for m < v those from o[h - k] to below v; else there are none.
# 3. A stop needs runs <= c(n + k), the critical number at halves, the largest of all splits (the
#    likelihood ratio is monotone). c may be too large, but never too small (levels.pyx).
# 4. With `fall`, 2 place - (n + k - 1) of those below m must sum to more than 0. Each value that
#    comes below, or leaves for above, adds at most n + k - 1 to that sum.
# 5. `near` is the first k at which 2-4 allow a stop at v, at w or between them, `far` that beyond
#    them. Before both nobody looks; then v and w are counted on, in O(1): a median that is one of
#    them has its exact counts, one beyond waits for `far`. Else a new look orders and counts all.

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from fastal._core.distribution cimport LESS, NORMAL, mean_runs, resolve, runs_cdf
from fastal._core.distribution cimport runs_p_value, var_runs
from fastal._core.levels cimport KEPT, Level, critical, level_at, most_runs
from fastal._core.numeric cimport rank, sort

cdef extern from "count_runs.h" nogil:
    void count_runs(const double *r, int64_t n, double at, int64_t *runs, int64_t *places)

cdef enum:
    SOON = 2                    # values; a neighbour's counts may spare a look after so few


cdef bint rejects(Looks *s, int64_t runs, int64_t below, int64_t n) noexcept nogil:
    # P(U <= runs) <= level(n), for so many values below. Taking a zero or a one out of a random
    # arrangement never adds a run: what does not reject still does not with more runs and fewer
    # values on both sides (and a level that falls). So one tail some pairs ahead proves more.
    cdef int64_t above = n - below, ahead
    cdef double alpha, slack
    if below == 0:
        return False
    if n < KEPT and below == n >> 1:
        return runs <= critical(s.level, n)
    alpha = level_at(s.level, n)
    if resolve(s.level.method, below, above) == NORMAL:
        return runs_p_value(runs, below, above, LESS, NORMAL) <= alpha
    if runs >= s.safe_runs and below <= s.safe_below and above <= s.safe_above:
        return False
    if runs_cdf(runs, below, above) <= alpha:
        return True
    # each pair adds at most one to the mean
    slack = runs - mean_runs(below, above) - s.level.z[0] * sqrt(var_runs(below, above))
    ahead = <int64_t>min(max(slack, 0.0), <double>n)
    while ahead and runs_cdf(runs, below + ahead, above + ahead) <= alpha * (1 + 1e-9):
        ahead >>= 1
    s.safe_runs, s.safe_below, s.safe_above = runs, below + ahead, above + ahead
    return False


cdef void order(Looks *s, const double *r, int64_t n) noexcept nogil:
    # Sort the new values behind the room for all, and merge them from the largest on.
    cdef double *o = s.ordered
    cdef double *new = o + s.room
    cdef int64_t most = (s.room >> 2) + 64, i, j
    while s.n_ordered < n:
        i, j = s.n_ordered, min(n - s.n_ordered, most)
        sort(r + i, j, new)
        s.n_ordered = i + j
        while j:
            j -= 1
            while i and o[i - 1] > new[j]:
                i -= 1
                o[i + j + 1] = o[i]
            o[i + j] = new[j]


cdef void count(Cut *c, const Looks *s, const double *r, int64_t n, double at) noexcept nogil:
    c.at, c.below, c.upto = at, rank(s.ordered, n, at, False), rank(s.ordered, n, at, True)
    count_runs(r, n, at, &c.runs, &c.places)


cdef inline void follow(Cut *c, const double *r, int64_t i) noexcept nogil:
    # Count value i > 0 too.
    cdef int64_t low = r[i] < c.at
    c.runs += low ^ (r[i - 1] < c.at)
    c.places += i & -low
    c.below += low
    c.upto += r[i] <= c.at


cdef bint stops(Looks *s, const Cut *c, int64_t n) noexcept nogil:
    # The median is c.at: do its counts say stop?
    if s.fall and not 2 * c.places > c.below * (n - 1):
        return False
    return c.runs <= most_runs(s.level, n) and rejects(s, c.runs, c.below, n)


cdef inline bint possible(const Looks *s, const Cut *c, int64_t most, int64_t n, int64_t flips,
                          int64_t moved) noexcept nogil:
    # Points 2 to 4: could so few changes of labels about c make a stop at n values?
    return c.runs - 2 * flips <= most and (
        not s.fall or 2 * c.places + (n - 1) * (moved - c.below) > 0)


cdef void look_ahead(Looks *s, int64_t n) noexcept nogil:
    # Point 5: the first number of values at which a stop is possible, and `far`.
    cdef const double *o = s.ordered
    cdef Cut *v = s.cuts
    cdef Cut *w = s.cuts + 1
    cdef int64_t k = 0, near = 0, longest = (n >> 1) + 64, h, most
    cdef int64_t high = rank(o, n, o[n >> 1], False), low = high   # values below o[h], o[h - k]
    while k < longest:
        k += 1
        if n + k > s.horizon:
            k = NEVER - n
            break
        h = (n + k) >> 1
        if h >= n:
            high = n
        elif o[h] > o[h - 1]:
            high = h
        if h - k < low:
            low = rank(o, low, o[h - k], False) if h >= k else 0
        most = most_runs(s.level, n + k)
        if most < 2:
            continue
        if near == 0 and ((h - k < v.upto and possible(s, v, most, n + k, 0, k))
                          or (h >= w.below and possible(s, w, most, n + k, 0, k))):
            near = k
        if h >= w.upto and possible(s, w, most, n + k, high - w.below, h - w.below):
            break
        if h - k < v.below and possible(s, v, most, n + k, v.below - low, v.below - low + k):
            break
    s.far = n + k
    s.next_look = n + (near if near else k)


cdef bint look(Looks *s, const double *r, int64_t n) noexcept nogil:
    # Order all, count about the median, and look ahead; where that is not far, also count about its
    # nearer neighbour. Until then v and w are the same.
    cdef Cut *v = s.cuts
    cdef Cut *w = s.cuts + 1
    cdef int64_t h = n >> 1
    order(s, r, n)
    s.known = n
    count(v, s, r, n, s.ordered[h])
    w[0] = v[0]
    if stops(s, v, n):
        return True
    look_ahead(s, n)
    if s.next_look > n + SOON:
        return False
    if 0 < v.below and h - v.below < v.upto - h:
        count(v, s, r, n, s.ordered[v.below - 1])
    elif v.upto < n:
        count(w, s, r, n, s.ordered[v.upto])
    else:                               # above all values: one run
        w.at, w.below, w.upto, w.runs, w.places = INFINITY, n, n, 1, n * (n - 1) // 2
    look_ahead(s, n)
    return False


cdef bint looks_stop(Looks *s, const double *r, int64_t n) noexcept nogil:
    cdef Cut *v = s.cuts
    cdef Cut *w = s.cuts + 1
    cdef int64_t h = n >> 1
    if n > s.horizon:
        s.next_look = NEVER
        return False
    if s.known == 0:
        return look(s, r, n)
    while s.known < n:
        follow(v, r, s.known)
        follow(w, r, s.known)
        s.known += 1
    s.next_look = n + 1
    if v.below <= h < v.upto:
        return stops(s, v, n)
    if w.below <= h < w.upto:
        return stops(s, w, n)
    if n < s.far and (h < v.below or w.upto <= h):
        return False
    return look(s, r, n)


cdef bint looks_now(Looks *s, const double *r, int64_t n) noexcept nogil:
    cdef Cut c
    if n < s.level.first or n > s.horizon:
        return False
    order(s, r, n)
    count(&c, s, r, n, s.ordered[n >> 1])
    return stops(s, &c, n)


cdef void looks_start(Looks *s, Level *level, bint fall, int64_t horizon) noexcept nogil:
    s.level, s.fall = level, fall
    s.horizon = min(horizon, MOST_VALUES) if horizon else MOST_VALUES
    s.next_look = level.first
    s.n_ordered = s.known = s.far = 0
    s.safe_runs, s.safe_below, s.safe_above = 0, 0, 0


cdef bint looks_reserve(Looks *s, int64_t room) noexcept nogil:
    cdef double *moved
    if room <= s.room:
        return True
    moved = <double *>realloc(s.ordered, (room + (room >> 2) + 64) * sizeof(double))
    if moved == NULL:
        return False
    s.ordered, s.room = moved, room
    return True


cdef bint looks_copy(Looks *to, const Looks *s) noexcept nogil:
    cdef double *ordered
    cdef int64_t room
    if not looks_reserve(to, s.n_ordered):
        return False
    ordered, room = to.ordered, to.room
    to[0] = s[0]
    to.ordered, to.room = ordered, room
    if s.n_ordered:
        memcpy(ordered, s.ordered, s.n_ordered * sizeof(double))
    return True


cdef void looks_free(Looks *s) noexcept nogil:
    free(s.ordered)
    s.ordered, s.room = NULL, 0
