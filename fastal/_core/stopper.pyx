# What the stopper adds to the tracker: the bound for scalars, critical counts, many streams.
#
# Layers as in runs.pyx: `cdef ... noexcept nogil` below, `def` loops over the caller's memoryviews.

from libc.math cimport INFINITY, frexp, isfinite, ldexp, log1p
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from fastal._core.memory cimport allocate
from fastal._core.runs cimport (
    LESS,
    Rule,
    RunsTracker,
    Tracker,
    level_factor,
    normal_quantile,
    runs_p_value,
    tracker_free,
    tracker_new_with,
    tracker_p_value,
    tracker_push,
    tracker_reserve,
    tracker_reset,
)

# ---------------------------------------------------------------------------------------------
# The bound of one label (Eq. 7 without C): the twin of fastal/_core/bound.py, for calls from Python
# that cannot wait for a Numba dispatch.
# ---------------------------------------------------------------------------------------------


cdef double log1p_excess(double u) noexcept nogil:
    # u - log1p(u). With s = u / (2 + u): log1p(u) = 2 atanh(s) and u - 2 s = u s, so that
    # u - log1p(u) = s (u - 2 s^2/3 - 2 s^4/5 - ...), without cancellation where u is small.
    cdef double s, w, q = 0
    cdef int j
    if u > 0.5:
        return u - log1p(u)
    s = u / (2 + u)
    w = s * s                   # at most 1/25: fourteen terms reach 2^-60
    for j in range(13, -1, -1):
        q = w * (2.0 / (2 * j + 3) + q)
    return s * (u - q)


cdef double square_term(double var, double noise, double d) noexcept nogil:
    # 1/2 var d^2 / (noise (var + noise)): mantissas and exponents go separate ways, so that only
    # the result can leave the range of doubles.
    cdef int ev, en, ed, es, e, half
    cdef double mv = frexp(var, &ev), mn = frexp(noise, &en), md = frexp(d, &ed)
    cdef double ms = frexp(0.5 * var + 0.5 * noise, &es), q
    if var == 0 or d == 0:
        return 0
    if not isfinite(d):
        return INFINITY
    e = ev + 2 * ed - en - es - 2
    if e > 1100:
        return INFINITY
    if e < -1200:
        return 0
    half = e // 2
    q = mv * md / mn * (md / ms)
    return ldexp(ldexp(q, half), e - half)


cdef inline double bound_of(double mean, double var, double y, double noise) noexcept nogil:
    # -1 for what is no posterior: not finite, negative variance, noise not positive
    cdef double d = y - mean, u = var / noise, square
    if not (var >= 0 and noise > 0 and isfinite(var) and isfinite(noise) and isfinite(d)):
        if not (var >= 0 and noise > 0 and isfinite(var) and isfinite(noise)
                and isfinite(mean) and isfinite(y)):
            return -1
    square = d * d
    if 1e-300 < u < 1e150 and 1e-150 < square < 1e150 and 1e-150 < noise < 1e150:
        # 1/2 [u - log(1 + u)] + 1/2 u d^2 / (s + 1/beta)
        return 0.5 * log1p_excess(u) + 0.5 * u * square / (var + noise)
    return 0.5 * log1p_excess(u) + square_term(var, noise, d)


def gp_kl(double mean, double var, double y, double noise):
    """Return r_t without C; -1.0 if the arguments are no posterior; inf if it overflows."""
    return bound_of(mean, var, y, noise)


def gp_kl_rows(const double[:, ::1] posteriors, double[::1] out):
    """Fill `out` as `gp_kl` does for columns mean, var, y, noise."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = bound_of(posteriors[i, 0], posteriors[i, 1], posteriors[i, 2],
                              posteriors[i, 3])


cdef inline bint is_number(object x) noexcept:
    return isinstance(x, float) or type(x) is int


def update(RunsTracker tracker, mean, var, y, noise):
    """Push the bound of one label; 1 = stopped, 0 = not, -1 = these are not four valid numbers."""
    cdef double r
    if not (is_number(mean) and is_number(var) and is_number(y) and is_number(noise)):
        return -1
    try:
        r = bound_of(mean, var, y, noise)
    except OverflowError:       # an integer that no double can hold
        return -1
    if not (0 <= r < INFINITY):
        return -1
    return tracker.stopped_after(r)


# ---------------------------------------------------------------------------------------------
# Critical counts
# ---------------------------------------------------------------------------------------------

cdef inline double p_less(int64_t u, int64_t n0, int64_t n1, int method) noexcept nogil:
    return runs_p_value(u, n0, n1, LESS, method, False)


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

def stopping_times(const double[:, ::1] bounds, RunsTracker like, const int[::1] critical,
                   int64_t[::1] out):
    """Fill out[i] with the stopping time of row i, -1 for never; bounds are finite.

    `like` gives the rule. `critical`, from `critical_counts` or empty, spares most exact tails.
    Returns False if there was no memory.
    """
    cdef Tracker *tracker
    cdef int64_t i, j
    cdef int status = 0
    with nogil:
        tracker = tracker_new_with(like.tracker.rule)
        if tracker != NULL:
            if critical.shape[0]:
                tracker.critical = &critical[0]
                tracker.n_critical = critical.shape[0]
            for i in range(bounds.shape[0]):
                out[i] = -1
                for j in range(bounds.shape[1]):
                    status = tracker_push(tracker, bounds[i, j])
                    if status < 0:
                        break
                    if tracker.stopped_at:
                        out[i] = tracker.stopped_at
                        break
                if status < 0:
                    break
                tracker_reset(tracker)
            tracker_free(tracker)
    return tracker != NULL and status >= 0


cdef class TrackerBatch:
    """Trackers of many streams that advance in lock step."""

    cdef Tracker **trackers
    cdef int64_t n
    cdef bint busy

    def __cinit__(self, int64_t n_streams, RunsTracker like):
        cdef int64_t i
        self.n = 0
        self.trackers = <Tracker **>allocate(n_streams, sizeof(Tracker *))
        if self.trackers == NULL:
            raise MemoryError(f"no memory for {n_streams} streams")
        for i in range(n_streams):
            self.trackers[i] = tracker_new_with(like.tracker.rule)
            if self.trackers[i] == NULL:
                raise MemoryError(f"no memory for {n_streams} streams")
            self.n += 1

    def __dealloc__(self):
        cdef int64_t i
        for i in range(self.n):
            tracker_free(self.trackers[i])
        free(self.trackers)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the stoppers are in use by another thread")
        return 0

    def push(self, const double[::1] values, const unsigned char[::1] where,
             unsigned char[::1] stopped):
        """Push values[i] to stream i where where[i]; `stopped` receives every stream's state.

        Values are finite. If there is no memory for all, none is pushed.
        """
        cdef int64_t i, short_of = -1
        self.check()
        self.busy = True
        with nogil:
            for i in range(self.n):
                if where[i] and not tracker_reserve(self.trackers[i]):
                    short_of = i
                    break
            if short_of < 0:
                for i in range(self.n):
                    if where[i]:
                        tracker_push(self.trackers[i], values[i])
                    stopped[i] = self.trackers[i].stopped_at > 0
        self.busy = False
        if short_of >= 0:
            raise MemoryError(f"no memory for one more bound of stream {short_of}")

    def reset(self, const int64_t[::1] streams, unsigned char[::1] stopped):
        """Forget all bounds of some streams, and that they stopped."""
        cdef int64_t i
        self.check()
        for i in range(streams.shape[0]):
            tracker_reset(self.trackers[streams[i]])
            stopped[streams[i]] = 0

    def state(self, int64_t[:, ::1] counts, double[:, ::1] floats):
        """Fill counts with rows n, runs, stopped_at and floats with rows p-value, median."""
        cdef int64_t i
        self.check()
        for i in range(self.n):
            counts[0, i] = self.trackers[i].n_pushed
            counts[1, i] = self.trackers[i].crossings + 1 if self.trackers[i].n else 0
            counts[2, i] = self.trackers[i].stopped_at
            floats[0, i] = tracker_p_value(self.trackers[i])
            floats[1, i] = self.trackers[i].median

    def values(self, int64_t stream, double[::1] out):
        """Copy the bounds of one stream into `out`."""
        cdef int64_t i
        self.check()
        for i in range(out.shape[0]):
            out[i] = self.trackers[stream].values[i]


# ---------------------------------------------------------------------------------------------
# Calibration of the sequential mode
# ---------------------------------------------------------------------------------------------

def least_p_values(const double[:, ::1] bounds, bint weighted, const int64_t[::1] horizons,
                   double[:, ::1] out):
    """Fill out[i, j] with the least P(U <= u) over the first horizons[j] bounds of row i.

    The p-value at T bounds is divided by w(T) if `weighted`. A look costs an exact tail only where
    it could lower the minimum: the level of the tracker follows the minimum.
    """
    cdef Rule rule
    cdef Tracker *t
    cdef int64_t i, j, k
    cdef double least, p
    memset(&rule, 0, sizeof(Rule))
    rule.method, rule.patience, rule.falling = 1, 1, weighted
    rule.alpha = 1
    with nogil:
        t = tracker_new_with(rule)
        if t != NULL:
            for i in range(bounds.shape[0]):
                tracker_reset(t)
                least = 1
                t.rule.alpha = 1
                t.z_alpha = 0
                t.keep_below = t.keep_above = -1
                k = 0
                for j in range(bounds.shape[1]):
                    if tracker_push(t, bounds[i, j]) == 1:
                        p = tracker_p_value(t)
                        if weighted:
                            p /= level_factor(t.n)
                        if p < least:
                            least = p
                            # only a smaller one is of interest from now on
                            t.rule.alpha = least * (1 - 1e-12)
                            t.z_alpha = normal_quantile(least)
                    if k < horizons.shape[0] and j + 1 == horizons[k]:
                        out[i, k] = least
                        k += 1
            tracker_free(t)
    return t != NULL
