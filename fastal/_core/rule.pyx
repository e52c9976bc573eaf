# When to stop: one compiled object for Python, whatever the rule; and many of them.
#
# What they do is in state.pyx. Here are checks, the GIL, and loops over the caller's memoryviews.

from functools import lru_cache

from libc.math cimport NAN
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from fastal._core.distribution cimport AUTO, NORMAL
from fastal._core.levels cimport Level, level_free, level_new
from fastal._core.looks cimport NEVER, looks_reserve, looks_start
from fastal._core.numeric cimport first_not_finite
from fastal._core.state cimport (
    ALL,
    ANY,
    COUNT,
    NEGATIVE,
    NO_HORIZON,
    NO_MEMORY,
    NOT_FINITE,
    ROUNDING,
    RUNS,
    STILL,
    Arena,
    Part,
    State,
    state_conclude,
    state_copy,
    state_find_open,
    state_free,
    state_left,
    state_like,
    state_push,
    state_replace,
    state_reserve,
    state_reset,
    state_run_to,
    state_says,
    state_still,
    state_stop_of,
    streams_free,
    streams_new,
)
from fastal._core.still cimport Still, still_level, still_start

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define prefetch(p) __builtin_prefetch(p, 1)
    #else
    #define prefetch(p)
    #endif
    """
    void prefetch(void *p) noexcept nogil

cdef enum:
    AHEAD = 8                   # streams that are fetched beforehand


cdef inline void fetch(State *s) noexcept nogil:
    # What the next push of a stream will need.
    cdef int64_t i
    prefetch(s.values + s.n)
    if s.n + 1 >= s.wake:
        prefetch(s.parts)
        prefetch(<char *>s.parts + 64)
        prefetch(<char *>s.parts + 128)
        for i in range(0, min(s.n, 64), 8):
            prefetch(s.values + i)


NO_HORIZON_TEXT = (
    "`horizon` must be given, got None: how many labels you could buy at most, counted in bounds; "
    "`learn`, `ActiveLearner` and `simulate` fill it in from the pool"
)


cdef class SharedLevel:
    """A level and its critical numbers, shared by all rules that have it."""

    cdef Level *level

    def __cinit__(self, double alpha, int method, bint falling):
        self.level = level_new(alpha, method, falling)
        if self.level == NULL:
            raise MemoryError("no memory for a level")

    def __dealloc__(self):
        level_free(self.level)


shared_level = lru_cache(maxsize=64)(SharedLevel)


cdef int count_parts(tuple spec) except -1:
    cdef int n = 1
    if spec[0] in ("any", "all"):
        for member in spec[1:]:
            n += count_parts(member)
    return n


cdef int fill_parts(State *s, int i, tuple spec, list levels) except -1:
    # Parts from the i-th on; returns the index behind them.
    cdef Part *p = &s.parts[i]
    cdef int j = i + 1
    cdef SharedLevel shared
    cdef double number
    cdef int64_t horizon
    kind = spec[0]
    if kind == "runs":
        _, number, method, falling, fall, horizon = spec
        if not (0 < number < 1 and AUTO <= method <= NORMAL and horizon >= 0):
            raise ValueError(f"no rule: {spec}")
        shared = shared_level(number, method, bool(falling))
        levels.append(shared)
        p.kind = RUNS
        looks_start(&p.facts.looks, shared.level, fall, horizon)
    elif kind == "still":
        _, number, horizon = spec
        if not (0 <= number < 1 and horizon >= 0):
            raise ValueError(f"no rule: {spec}")
        p.kind, s.not_negative = STILL, True
        still_start(&p.facts.still, number, horizon, horizon > 0)
    elif kind == "count":
        _, p.facts.limit = spec
        if p.facts.limit < 1:
            raise ValueError(f"no rule: {spec}")
        p.kind = COUNT
    else:
        if kind not in ("any", "all") or len(spec) == 1:
            raise ValueError(f"no rule: {spec}")
        p.kind = ANY if kind == "any" else ALL
        for member in spec[1:]:
            j = fill_parts(s, j, member, levels)
    p.end = j
    return j


cdef class Rule:
    """When to stop, and the bounds so far.

    A rule belongs to one thread at a time. Its methods keep the GIL, but for ``extend``; while that
    runs, and while the rule is lent to compiled code, every other call is a RuntimeError.

    Parameters
    ----------
    spec : tuple
        One of ``("runs", level, method, falling, fall, horizon)``, ``("still", share, horizon)``,
        ``("count", limit)``, ``("any", *specs)`` and ``("all", *specs)``. Methods: 0 = auto, 1 =
        exact, 2 = normal. `falling`: the level falls with the number of values T, like
        (1 + log2(T/16))^-2 from 16 on. A horizon of 0: none, or not known.
    """

    cdef State state
    cdef readonly tuple spec
    cdef list levels            # that the runs tests borrow
    cdef bint busy

    def __cinit__(self, tuple spec not None):
        cdef int n = count_parts(spec)
        self.spec, self.levels = spec, []
        self.state.parts = <Part *>calloc(n, sizeof(Part))
        if self.state.parts == NULL:
            raise MemoryError("no memory for a rule")
        fill_parts(&self.state, 0, spec, self.levels)
        self.state.n_parts = n
        state_find_open(&self.state)
        state_reset(&self.state)

    def __dealloc__(self):
        state_free(&self.state)
        free(self.state.parts)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the criterion is in use by another thread")
        return 0

    cdef int refuse(self, int status, double value, int64_t index=-1) except -1:
        cdef str name = "r" if index < 0 else "values"
        cdef str where = "" if index < 0 else f" at index {index}"
        if status == NOT_FINITE:
            raise ValueError(f"`{name}` must be finite, got {value}{where}")
        if status == NEGATIVE:
            raise ValueError(f"`{name}` must not be negative, got {value}{where}")
        if status == NO_HORIZON:
            raise ValueError(NO_HORIZON_TEXT)
        raise MemoryError(f"no memory for value {self.state.n + 1}")

    cdef int admit(self, const double[::1] values, int64_t room) except -1:
        # Refuse what a push would refuse; make room.
        cdef int64_t i, n = values.shape[0]
        i = first_not_finite(&values[0], n) if n else -1
        if i >= 0:
            self.refuse(NOT_FINITE, values[i], i)
        if self.state.not_negative:
            for i in range(n):
                if values[i] < ROUNDING:
                    self.refuse(NEGATIVE, values[i], i)
        if self.state.open and n:
            self.refuse(NO_HORIZON, 0)
        if not state_reserve(&self.state, room):
            self.refuse(NO_MEMORY, 0)
        return 0

    def push(self, double r):
        """Take a bound; return whether there has been a stop, now or before."""
        cdef int status
        if self.busy:
            self.check()
        status = state_push(&self.state, r)
        if status < 0:
            self.refuse(status, r)
        return status == 1

    def extend(self, const double[::1] values not None):
        """Take bounds in order, all or none; return `stopped_at`."""
        cdef int64_t n = self.state.n + values.shape[0]
        self.check()
        self.admit(values, n)
        if values.shape[0]:
            memcpy(self.state.values + self.state.n, &values[0], values.nbytes)
        self.busy = True
        with nogil:
            state_run_to(&self.state, n)
        self.busy = False
        return self.state.stopped_at

    def replace(self, const double[::1] values not None, bint confirms):
        """Take all bounds anew, under a new fit; return `stopped_at`.

        From here on pushes do not decide, but counts do. A part stops if it said so right before,
        says so now, and `confirms`: the two fits may confirm each other. A stop of the whole stays.
        """
        cdef const double *first = &values[0] if values.shape[0] else NULL
        self.check()
        self.admit(values, values.shape[0])
        state_replace(&self.state, first, values.shape[0], confirms)
        return self.state.stopped_at

    def restore(self, const double[::1] values not None, stops, int64_t stopped_at, bint held):
        """Take the bounds of a saved rule, and its stops as they were: nothing is decided anew."""
        cdef int i
        self.check()
        if len(stops) != self.state.n_parts:
            raise ValueError(f"`stops` must have length {self.state.n_parts}, got {len(stops)}")
        self.admit(values, values.shape[0])
        state_reset(&self.state)
        if values.shape[0]:
            memcpy(self.state.values, &values[0], values.nbytes)
        self.state.n, self.state.held = values.shape[0], held
        for i in range(self.state.n_parts):
            if self.state.parts[i].kind < ANY:
                self.state.parts[i].stopped_at = stops[i]
        state_conclude(&self.state)
        if stopped_at:
            self.state.stopped_at, self.state.wake = stopped_at, NEVER

    def set_horizon(self, horizon):
        """Learn how many bounds there can be; it is judged at the next one, and undoes no stop.

        One number for all parts, or a tuple with one for each, parents before their members; only
        those of ``"still"`` without a horizon of its own are read.
        """
        cdef int i
        cdef int64_t n
        cdef Still *still
        cdef list known = []
        self.check()
        if isinstance(horizon, tuple) and len(horizon) != self.state.n_parts:
            raise ValueError(
                f"`horizon` must have length {self.state.n_parts}, got {len(horizon)}"
            )
        for i in range(self.state.n_parts):
            if self.state.parts[i].kind == STILL:
                n = horizon[i] if isinstance(horizon, tuple) else horizon
                known.append((i, n))
        for i, n in known:
            still = &self.state.parts[i].facts.still
            if not still.own:
                still.horizon = max(n, 0)
        state_find_open(&self.state)

    def reset(self):
        """Forget all bounds; the horizon stays."""
        self.check()
        state_reset(&self.state)

    def copy(self):
        """Return an independent rule in the same state."""
        cdef Rule new
        self.check()
        new = Rule.__new__(Rule, self.spec)
        new.levels = self.levels
        if not state_copy(&new.state, new.state.parts, &self.state):
            raise MemoryError("no memory for a copy")
        return new

    def bounds(self, double[::1] out not None):
        """Copy all bounds into `out`, of length `n`."""
        self.check()
        if out.shape[0] != self.state.n:
            raise ValueError(f"`out` must have length {self.state.n}, got {out.shape[0]}")
        if out.shape[0]:
            memcpy(&out[0], self.state.values, out.nbytes)

    def lend(self):
        """Return the address of the C struct for code that holds no GIL, until `take_back`."""
        self.check()
        self.busy = True
        return <Py_ssize_t>&self.state

    def take_back(self):
        """End what `lend` began."""
        self.busy = False

    @property
    def n(self):
        """Number of bounds."""
        return self.state.n

    @property
    def stopped_at(self):
        """Number of bounds at the stop; 0 before it."""
        return self.state.stopped_at

    @property
    def stops(self):
        """The same for each part, parents before their members."""
        cdef int i
        self.check()
        return tuple([state_stop_of(&self.state, i) for i in range(self.state.n_parts)])

    @property
    def says(self):
        """Whether each part says stop now, whatever it said before; combinations say no."""
        cdef int i
        cdef State *s = &self.state
        self.check()
        return tuple([state_says(s, &s.parts[i]) for i in range(s.n_parts)])

    @property
    def held(self):
        """Whether only fits decide."""
        return self.state.held

    @property
    def left(self):
        """The share still to come, of the first part that knows it; NaN where it is not defined."""
        self.check()
        return state_left(&self.state)

    @property
    def level(self):
        """Mean of the last bounds over its largest value so far; NaN where it is not defined."""
        cdef Part *p
        self.check()
        p = state_still(&self.state)
        return still_level(&p.facts.still) if p != NULL else NAN

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef int i
        cdef int64_t total = sizeof(State) + self.state.n_parts * sizeof(Part)
        total += self.state.room * sizeof(double)
        for i in range(self.state.n_parts):
            if self.state.parts[i].kind == RUNS and self.state.parts[i].facts.looks.room:
                total += (5 * self.state.parts[i].facts.looks.room // 4 + 64) * sizeof(double)
        return total


def stopping_times(const double[:, ::1] rows, Rule like not None, int64_t[::1] out):
    """Fill out[i] with the stopping time of row i, -1 for never; the rule takes these bounds.

    Needs no GIL: callers share out the rows of one matrix among threads. `like` is not changed, and
    must not be used meanwhile.
    """
    cdef State s
    cdef Part *parts
    cdef int64_t i, n = rows.shape[1]
    cdef int j
    cdef bint room = True
    like.check()
    parts = <Part *>malloc(like.state.n_parts * sizeof(Part))
    if parts == NULL:
        raise MemoryError("no memory for a rule")
    with nogil:
        state_like(&s, parts, &like.state)
        for j in range(s.n_parts):
            if parts[j].kind == RUNS:
                room = room and looks_reserve(&parts[j].facts.looks, n)
        for i in range(rows.shape[0] if room else 0):
            out[i] = -1
            if n:
                state_reset(&s)
                s.values = <double *>&rows[i, 0]        # borrowed, and only read
                state_run_to(&s, n)
                out[i] = s.stopped_at if s.stopped_at else -1
        s.values = NULL
        state_free(&s)
        free(parts)
    if not room:
        raise MemoryError(f"no memory for rows of {n} bounds")


cdef class Streams:
    """Many sequences of bounds under one rule.

    Parameters
    ----------
    like : Rule
        The rule; its own bounds do not count.
    n : int
        Number of streams.
    """

    cdef Arena *streams
    cdef Rule like              # it owns the levels
    cdef bint busy

    def __cinit__(self, Rule like not None, int64_t n):
        self.like = like.copy()
        self.streams = streams_new(&self.like.state, n)
        if self.streams == NULL:
            raise MemoryError(f"no memory for {n} streams")

    def __dealloc__(self):
        streams_free(self.streams)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the streams are in use by another thread")
        return 0

    cdef State *at(self, int64_t i) except NULL:
        self.check()
        if not 0 <= i < self.streams.n:
            raise IndexError(f"there are {self.streams.n} streams, got {i}")
        return &self.streams.states[i]

    def push(self, const double[::1] values not None, const unsigned char[::1] where not None,
             unsigned char[::1] stopped not None):
        """Push values[i] to stream i where where[i]; `stopped` receives every stream's state.

        The rule takes these values. If there is no memory for all, none is pushed.
        """
        cdef int64_t i, short_of = -1
        cdef State *s
        self.check()
        if not (self.streams.n == values.shape[0] == where.shape[0] == stopped.shape[0]):
            raise ValueError(f"there are {self.streams.n} streams")
        self.busy = True
        with nogil:
            for i in range(self.streams.n):
                s = &self.streams.states[i]
                if where[i] and s.n == s.room and not state_reserve(s, s.n + 1):
                    short_of = i
                    break
            if short_of < 0:
                for i in range(self.streams.n):
                    s = &self.streams.states[i]
                    if i + AHEAD < self.streams.n:
                        fetch(s + AHEAD)
                    if where[i]:
                        state_push(s, values[i])
                    stopped[i] = s.stopped_at > 0
        self.busy = False
        if short_of >= 0:
            raise MemoryError(f"no memory for one more bound of stream {short_of}")

    def set_horizon(self, horizon):
        """Learn how many bounds there can be in each stream; as in a rule."""
        cdef int64_t i
        cdef int j
        cdef State *s
        self.check()
        self.like.set_horizon(horizon)
        for i in range(self.streams.n):
            s = &self.streams.states[i]
            for j in range(s.n_parts):
                if s.parts[j].kind == STILL:
                    s.parts[j].facts.still.horizon = self.like.state.parts[j].facts.still.horizon
            s.open = self.like.state.open

    def reset(self, const int64_t[::1] streams not None):
        """Forget all bounds of some streams, and that they stopped."""
        cdef int64_t i
        for i in range(streams.shape[0]):
            state_reset(self.at(streams[i]))

    def counts(self, int64_t[:, ::1] out not None):
        """Fill `out` with rows: bounds, bounds at the stop (0: none)."""
        cdef int64_t i
        self.check()
        for i in range(self.streams.n):
            out[0, i] = self.streams.states[i].n
            out[1, i] = self.streams.states[i].stopped_at

    def left(self, double[::1] out not None):
        """Fill `out` with what is still to come in each stream; NaN where nobody says."""
        cdef int64_t i
        self.check()
        for i in range(self.streams.n):
            out[i] = state_left(&self.streams.states[i])

    def n_bounds(self, int64_t stream):
        """Return the number of bounds of a stream."""
        return self.at(stream).n

    def bounds(self, int64_t stream, double[::1] out not None):
        """Copy all bounds of a stream into `out`, of length `n_bounds(stream)`."""
        cdef State *s = self.at(stream)
        if out.shape[0] != s.n:
            raise ValueError(f"`out` must have length {s.n}, got {out.shape[0]}")
        if out.shape[0]:
            memcpy(&out[0], s.values, out.nbytes)

    def lend(self):
        """Return the address of the C struct for code that holds no GIL, until `take_back`."""
        self.check()
        self.busy = True
        return <Py_ssize_t>self.streams

    def take_back(self):
        """End what `lend` began."""
        self.busy = False

    def __len__(self):
        return self.streams.n


# ---------------------------------------------------------------------------------------------
# A push without a frame of Python
# ---------------------------------------------------------------------------------------------

cdef class Pushes:
    """What takes bounds one by one, by a `Rule` or what does the same in Python, in `_rule`.

    ``_number(r)`` checks what is no float.
    """

    cdef public object _rule

    def push(self, r):
        """Take the bound of one label.

        Parameters
        ----------
        r : float
            A finite number.

        Returns
        -------
        bool
            Whether there has been a stop, now or before. After a call of `after_fit` only such
            calls decide.
        """
        cdef Rule rule
        cdef int status
        if type(self._rule) is not Rule or not isinstance(r, float):
            return self._rule.push(self._number(r))
        rule = <Rule>self._rule
        if rule.busy:
            rule.check()
        status = state_push(&rule.state, r)
        if status < 0:
            rule.refuse(status, r)
        return status == 1
