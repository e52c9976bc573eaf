# What is still to come: the share of all movement of a model, up to a horizon, that labels would
# still bring if they went on moving it as the last ones did. O(1) for each bound.
#
# Layers as in tracker.pyx. Bounds are not negative, so sums of them lose nothing to cancellation as
# long as nothing is subtracted: the window's sum is never "plus the new one, minus the old one",
# which one huge bound would spoil for ever.

from libc.math cimport NAN, isfinite, isnan
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fastal._core.doubledouble cimport dd, dd_add
from fastal._core.memory cimport allocate, resize
from fastal._core.numeric cimport first_not_finite
from fastal._core.tracker cimport RunsTracker, Tracker

cdef enum:
    FIRST_CAPACITY = 16
    MOST_VALUES = 1 << 30
    LEAST_WINDOW = 10
    MOST_WINDOW = 20
    SHIFT = 200                 # sums of MOST_VALUES doubles, each over 2^200, are finite

cdef double HUGE_BOUND = 2.0 ** 900
cdef double SCALE = 2.0 ** -SHIFT
cdef double ROUNDING = -1e-12   # a bound of our own models may be so far below 0


NO_HORIZON = (
    "`horizon` must be given, got None: how many labels you could buy at most, counted in bounds; "
    "`learn`, `ActiveLearner` and `simulate` fill it in from the pool"
)


cdef inline int64_t still_window(Still *s) noexcept nogil:
    # w_t = min(20, max(10, t // 5)), or the user's own
    return s.window if s.window else min(MOST_WINDOW, max(LEAST_WINDOW, s.n // 5))


cdef inline dd plus(dd sum, double value) noexcept nogil:
    cdef dd term
    term.hi, term.lo = value, 0
    return dd_add(sum, term)


cdef inline double unit(Still *s) noexcept nogil:
    return SCALE if s.shift else 1.0


cdef void rescale(Still *s) noexcept nogil:
    # From here on all sums are over 2^200. Bounds that become subnormal thereby are less than
    # 1e-500 of the sum: they count for nothing anyway.
    cdef int64_t j
    s.shift = SHIFT
    s.total.hi *= SCALE
    s.total.lo *= SCALE
    s.head.hi *= SCALE
    s.head.lo *= SCALE
    s.peak *= SCALE
    if s.tails != NULL:
        for j in range(s.window):
            s.tails[j] *= SCALE


cdef double sum_of_last(Still *s, int64_t w) noexcept nogil:
    # At most 20 terms: all of them, four sums side by side.
    cdef const double *x = s.values + (s.n - w)
    cdef double a = 0, b = 0, c = 0, d = 0, scale = unit(s)
    cdef int64_t i = 0
    while i + 4 <= w:
        a += scale * x[i]
        b += scale * x[i + 1]
        c += scale * x[i + 2]
        d += scale * x[i + 3]
        i += 4
    while i < w:
        a += scale * x[i]
        i += 1
    return (a + b) + (c + d)


cdef double sum_of_window(Still *s, double value) noexcept nogil:
    # A window that may be long. The last w bounds are the end of a full block of w, whose sums from
    # every place on are in `tails`, and the beginning of the next one, whose sum is in `head`.
    cdef int64_t w = s.window, place = s.n % w, j
    cdef dd sum
    s.head = plus(s.head, unit(s) * value)
    if place == 0:              # the block is full
        sum.hi = sum.lo = 0
        for j in range(w - 1, -1, -1):
            sum = plus(sum, unit(s) * s.values[s.n - w + j])
            s.tails[j] = sum.hi
        s.head.hi = s.head.lo = 0
        return s.tails[0]
    return s.tails[place] + s.head.hi if s.n > w else NAN


cdef Still *still_new(double share, int64_t horizon, int64_t window) noexcept nogil:
    cdef Still *s
    if not (0 <= share < 1 and horizon >= 0 and (window == 0 or window >= 2)):
        return NULL
    s = <Still *>allocate(1, sizeof(Still))
    if s == NULL:
        return NULL
    memset(s, 0, sizeof(Still))
    s.share, s.horizon, s.window = share, horizon, window
    still_reset(s)
    return s


cdef void still_reset(Still *still) noexcept nogil:
    # Buffers are kept.
    cdef Still *s = still
    if s == NULL:
        return
    s.n = s.stopped_at = 0
    s.shift = 0
    s.negative = False
    s.total.hi = s.total.lo = s.head.hi = s.head.lo = s.peak = 0
    s.recent = s.stop_left = s.stop_level = NAN
    s.epoch += 1


cdef void still_free(Still *still) noexcept nogil:
    if still == NULL:
        return
    free(still.values)
    free(still.tails)
    free(still)


cdef bint reserve(Still *s, int64_t n) noexcept nogil:
    cdef int64_t capacity = max(s.capacity, FIRST_CAPACITY)
    if n > s.capacity:
        if n > MOST_VALUES:
            return False
        while capacity < n:
            capacity *= 2
        if not resize(<void **>&s.values, capacity, sizeof(double)):
            return False
        s.capacity = capacity
    # the sums of a block are needed when the first one is full, not before
    if s.window and s.tails == NULL and n >= s.window:
        s.tails = <double *>allocate(s.window, sizeof(double))
        return s.tails != NULL
    return True


cdef bint still_reserve(Still *still) noexcept nogil:
    # Make sure that the next push cannot fail for want of memory.
    return reserve(still, still.n + 1)


cdef inline void take(Still *s, double value) noexcept nogil:
    # A finite bound that there is room for, not negative.
    cdef int64_t w
    cdef double mean
    s.values[s.n] = value
    s.n += 1
    if value > HUGE_BOUND and not s.shift:
        rescale(s)
    s.total = plus(s.total, unit(s) * value)
    w = still_window(s)
    if s.window:
        s.recent = sum_of_window(s, value)
    elif s.n >= w:
        s.recent = sum_of_last(s, w)
    mean = s.recent / w
    if mean > s.peak:           # not where it is NaN
        s.peak = mean


cdef double still_left(Still *still) noexcept nogil:
    cdef Still *s = still
    cdef double rest
    if s == NULL or s.horizon == 0 or s.negative:
        return NAN
    if s.n >= s.horizon:
        return 0
    if isnan(s.recent):
        return NAN
    if s.total.hi == 0:
        return 1                # nothing has moved yet
    if s.recent == 0:
        return 0                # labels no longer move it at all
    # M (N - t) / S, in an order that cannot overflow: W is at most S
    rest = s.recent / s.total.hi * (<double>(s.horizon - s.n) / still_window(s))
    return rest / (1 + rest)


cdef double still_level(Still *still) noexcept nogil:
    cdef Still *s = still
    if s == NULL or s.negative or isnan(s.recent) or s.peak == 0:
        return NAN
    return s.recent / still_window(s) / s.peak


cdef inline bint enough(Still *s) noexcept nogil:
    if s.share == 0:
        return False
    return s.n >= s.horizon or (s.n > still_window(s) and still_left(s) <= s.share)


cdef inline void note_stop(Still *s) noexcept nogil:
    s.stopped_at, s.stop_left, s.stop_level = s.n, still_left(s), still_level(s)


cdef int still_push(Still *still, double value) noexcept nogil:
    cdef Still *s = still
    cdef bint stop
    if s == NULL:
        return -3
    if not isfinite(value):
        return -2
    if value < ROUNDING:
        return -4
    if s.share > 0 and s.horizon == 0:
        return -5
    if not reserve(s, s.n + 1):
        return -1
    take(s, value if value > 0 else 0.0)
    stop = enough(s)
    if stop and s.stopped_at == 0 and not s.held:
        note_stop(s)
    return stop


cdef int64_t still_stopped_at(Still *still) noexcept nogil:
    return still.stopped_at if still != NULL else 0


def left_of_rows(const double[:, ::1] bounds, int64_t horizon, int64_t window,
                 double[:, ::1] out):
    """Fill out[i, t] with what is left after bound t of row i; bounds are finite and not negative.

    Returns False if there was no memory.
    """
    cdef Still *s
    cdef int64_t i, j
    cdef int status = 0
    with nogil:
        s = still_new(0, horizon, window)
        if s != NULL:
            for i in range(bounds.shape[0]):
                still_reset(s)
                for j in range(bounds.shape[1]):
                    status = still_push(s, bounds[i, j])
                    if status < 0:
                        break
                    out[i, j] = still_left(s)
                if status < 0:
                    break
            still_free(s)
    return s != NULL and status >= 0


cdef class StillTracker:
    """What is still to come of a growing sequence of bounds.

    One of these belongs to one thread at a time. Its methods keep the GIL; while it is lent to
    compiled code, every other call is a RuntimeError.

    Parameters
    ----------
    share : float
        Stop when at most this share is left; 0 never stops.
    horizon : int
        Number of bounds there can be; 0 if that is not known.
    window : int
        Number of last bounds that say how labels go on; 0 for a fifth of them, 10 to 20.
    """

    def __cinit__(self, double share=0, int64_t horizon=0, int64_t window=0):
        self.still = still_new(share, horizon, window)
        if self.still == NULL:
            if 0 <= share < 1 and horizon >= 0 and (window == 0 or window >= 2):
                raise MemoryError("no memory for what is still to come")
            raise ValueError(f"no rule: share {share}, horizon {horizon}, window {window}")

    def __dealloc__(self):
        still_free(self.still)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the criterion is in use by another thread")
        return 0

    cdef int refuse(self, int status, double value) except -1:
        if status == -2:
            raise ValueError(f"`value` must be finite, got {value}")
        if status == -4:
            raise ValueError(f"`value` must not be negative, got {value}")
        if status == -5:
            raise ValueError(NO_HORIZON)
        raise MemoryError(f"no memory for value {self.still.n + 1}")

    def stopped_after(self, double value):
        """Add a bound; return whether there has been a stop, now or before."""
        self.check()
        cdef int status = still_push(self.still, value)
        if status < 0:
            self.refuse(status, value)
        return self.still.stopped_at > 0

    def extend(self, const double[::1] values not None):
        """Add bounds, all or none; return `stopped_at`."""
        cdef int64_t i, n = values.shape[0]
        self.check()
        if n == 0:
            return self.still.stopped_at
        i = first_not_finite(&values[0], n)
        if i >= 0:
            self.refuse(-2, values[i])
        for i in range(n):
            if values[i] < ROUNDING:
                self.refuse(-4, values[i])
        if self.still.share > 0 and self.still.horizon == 0:
            self.refuse(-5, 0)
        if not reserve(self.still, self.still.n + n):
            self.refuse(-1, 0)
        self.busy = True
        with nogil:
            for i in range(n):
                still_push(self.still, values[i])       # cannot fail any more
        self.busy = False
        return self.still.stopped_at

    def follow(self, RunsTracker other not None):
        """Take the bounds that a tracker has and this one has not; note what is left at its stop.

        If the tracker was reset or replaced, begin anew. A negative bound ends it: from there on
        nothing can be said.
        """
        cdef Tracker *t
        cdef Still *s = self.still
        cdef int64_t i
        cdef double value
        self.check()
        other.check()
        t = other.tracker
        if self.followed != t.epoch or s.n > t.n_pushed:
            still_reset(s)
            self.followed = t.epoch
        if not reserve(s, t.n_pushed):
            raise MemoryError(f"no memory for {t.n_pushed} bounds")
        for i in range(s.n, t.n_pushed):
            value = t.values[i]
            s.negative = s.negative or value < ROUNDING
            take(s, value if value > 0 else 0.0)
            if s.n == t.stopped_at:
                note_stop(s)

    def restore(self, const double[::1] values not None, int64_t stopped_at, double left,
                double level):
        """Take the bounds of a saved one, and its stop as it was: nothing is decided anew."""
        cdef double share = self.still.share
        self.check()
        if self.still.n:
            raise ValueError(f"there are {self.still.n} values already")
        self.still.share = 0
        try:
            self.extend(values)
        finally:
            self.still.share = share
        self.note_stop(stopped_at, left, level)

    def take_stop(self, StillTracker other not None):
        """Take over the stop of another one, as it was."""
        self.note_stop(other.still.stopped_at, other.still.stop_left, other.still.stop_level)

    def latch(self):
        """Stop here."""
        self.check()
        note_stop(self.still)

    def unlatch(self):
        """Forget the stop."""
        self.note_stop(0, NAN, NAN)

    @property
    def would_stop(self):
        """Whether the rule says stop now, whatever it said before."""
        self.check()
        return enough(self.still)

    @property
    def held(self):
        """Whether a push stops nothing."""
        return self.still.held

    @held.setter
    def held(self, bint held):
        self.check()
        self.still.held = held

    def note_stop(self, int64_t at, double left, double level):
        """Say how a stop was: after so many bounds, with so much left; 0 if there was none."""
        self.check()
        self.still.stopped_at, self.still.stop_left, self.still.stop_level = at, left, level

    def reset(self):
        """Forget all bounds."""
        self.check()
        still_reset(self.still)

    def replace(self, StillTracker other not None):
        """Exchange states with `other`."""
        self.check()
        other.check()
        self.still, other.still = other.still, self.still
        self.still.epoch = max(self.still.epoch, other.still.epoch) + 1

    def copy(self):
        """Return an independent one in the same state."""
        cdef Still *old
        cdef Still *s
        cdef StillTracker new
        cdef double *values
        cdef double *tails
        self.check()
        old = self.still
        new = StillTracker(old.share, old.horizon, old.window)
        s = new.still
        if not reserve(s, old.n) or (old.tails != NULL and not reserve(s, old.window)):
            raise MemoryError("no memory for a copy")
        if old.n:
            memcpy(s.values, old.values, old.n * sizeof(double))
        if old.tails != NULL:
            memcpy(s.tails, old.tails, old.window * sizeof(double))
        values, tails, capacity = s.values, s.tails, s.capacity
        s[0] = old[0]
        s.values, s.tails, s.capacity = values, tails, capacity
        new.followed = self.followed
        return new

    def values(self, double[::1] out not None):
        """Copy all bounds into `out`, of length `n_pushed`."""
        self.check()
        if out.shape[0] != self.still.n:
            raise ValueError(f"`out` must have length {self.still.n}, got {out.shape[0]}")
        if out.shape[0]:
            memcpy(&out[0], self.still.values, out.shape[0] * sizeof(double))

    def window_at(self, int64_t n, double[::1] out not None):
        """Copy the bounds before place n into `out`, as many as it has room for."""
        self.check()
        if not (out.shape[0] <= n <= self.still.n):
            raise ValueError(f"there are no {out.shape[0]} bounds before {n}")
        if out.shape[0]:
            memcpy(&out[0], self.still.values + (n - out.shape[0]), out.shape[0] * sizeof(double))

    @property
    def horizon(self):
        """Number of bounds there can be; 0 if that is not known."""
        return self.still.horizon

    @horizon.setter
    def horizon(self, int64_t horizon):
        self.check()
        self.still.horizon = max(horizon, 0)

    @property
    def stopped_at(self):
        """Number of bounds at the stop; 0 before it."""
        return self.still.stopped_at

    @property
    def n_pushed(self):
        """Number of bounds."""
        self.check()
        return self.still.n

    @property
    def epoch(self):
        """A number that changes whenever earlier bounds are no longer there."""
        return self.still.epoch

    @property
    def width(self):
        """Number of last bounds that say how labels go on."""
        self.check()
        return still_window(self.still)

    @property
    def left(self):
        """The share still to come, now; NaN where it is not defined."""
        self.check()
        return still_left(self.still)

    @property
    def level(self):
        """Mean of the last bounds over its largest value so far; NaN where it is not defined."""
        self.check()
        return still_level(self.still)

    @property
    def at_stop(self):
        """What was left at the stop, and the level there; NaN before it."""
        self.check()
        return self.still.stop_left, self.still.stop_level

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef Still *s = self.still
        return sizeof(Still) + 8 * s.capacity + (8 * s.window if s.tails != NULL else 0)
