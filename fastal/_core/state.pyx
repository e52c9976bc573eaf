# When to stop, as compiled code sees it: a tree of rules over one sequence of bounds.
#
# A push appends the bound. Parts are asked when the number of bounds has reached `wake`: where a
# runs test could stop, a count ends, or a part needs every bound.

from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from fastal._core.distribution cimport AUTO, NORMAL
from fastal._core.levels cimport Level, level_free, level_new
from fastal._core.looks cimport (
    MOST_VALUES,
    NEVER,
    looks_copy,
    looks_free,
    looks_now,
    looks_reserve,
    looks_start,
    looks_stop,
)
from fastal._core.still cimport still_follow, still_left, still_start, still_stops

cdef enum:
    FIRST_ROOM = 16


cdef int64_t state_stop_of(const State *s, int i) noexcept nogil:
    # ANY: the first stop of a member. ALL: the last one, if none is missing.
    cdef const Part *p = &s.parts[i]
    cdef int64_t found = 0, at
    cdef int j = i + 1
    if p.kind < ANY:
        return p.stopped_at
    while j < p.end:
        at = state_stop_of(s, j)
        if p.kind == ALL:
            if at == 0:
                return 0
            found = max(found, at)
        elif at:
            found = at if found == 0 else min(found, at)
        j = s.parts[j].end
    return found


cdef bint state_says(State *s, Part *p) noexcept nogil:
    if p.kind == RUNS:
        return looks_now(&p.facts.looks, s.values, s.n)
    if p.kind == STILL:
        still_follow(&p.facts.still, s.values, s.n)
        return still_stops(&p.facts.still)
    return p.kind == COUNT and s.n >= p.facts.limit


cdef bint ask(State *s, Part *p) noexcept nogil:
    # The same at a push, where a runs test knows how long it need not look.
    if p.kind == RUNS:
        return s.n >= p.facts.looks.next_look and looks_stop(&p.facts.looks, s.values, s.n)
    return state_says(s, p)


cdef void state_conclude(State *s) noexcept nogil:
    cdef Part *p
    cdef int i
    s.wake = NEVER
    s.stopped_at = state_stop_of(s, 0)
    if s.stopped_at:
        return
    for i in range(s.n_parts):
        p = &s.parts[i]
        if p.stopped_at or p.kind >= ANY or (s.held and p.kind != COUNT):
            continue
        if p.kind == RUNS:
            s.wake = min(s.wake, p.facts.looks.next_look)
        else:
            s.wake = min(s.wake, p.facts.limit if p.kind == COUNT else s.n + 1)


cdef void advance(State *s) noexcept nogil:
    cdef Part *p
    cdef int i
    for i in range(s.n_parts):
        p = &s.parts[i]
        if (p.kind < ANY and p.stopped_at == 0 and not (s.held and p.kind != COUNT)
                and ask(s, p)):
            p.stopped_at = p.facts.limit if p.kind == COUNT else s.n
    state_conclude(s)


cdef void state_run_to(State *s, int64_t n) noexcept nogil:
    while s.stopped_at == 0 and s.wake <= n and s.n < n:
        s.n = max(s.wake, s.n + 1)
        advance(s)
    s.n = n


cdef bint state_reserve(State *s, int64_t n) noexcept nogil:
    cdef int64_t room = max(s.room, FIRST_ROOM)
    cdef double *moved
    cdef int i
    if n <= s.room:
        return True
    if n > MOST_VALUES:
        return False
    while room < n:
        room *= 2
    for i in range(s.n_parts):
        if s.parts[i].kind == RUNS and not looks_reserve(&s.parts[i].facts.looks, room):
            return False
    moved = <double *>realloc(s.values, room * sizeof(double))
    if moved == NULL:
        return False
    s.values, s.room = moved, room
    return True


cdef int state_push(State *s, double r) noexcept nogil:
    if not isfinite(r):
        return NOT_FINITE
    if s.not_negative and r < ROUNDING:
        return NEGATIVE
    if s.open:
        return NO_HORIZON
    if s.n == s.room and not state_reserve(s, s.n + 1):
        return NO_MEMORY
    s.values[s.n] = r
    s.n += 1
    if s.n >= s.wake:
        advance(s)
    return s.stopped_at > 0


cdef void restart(State *s) noexcept nogil:
    # The parts know no bounds; their stops stay.
    cdef Part *p
    cdef int i
    s.n = 0
    for i in range(s.n_parts):
        p = &s.parts[i]
        if p.kind == RUNS:
            looks_start(&p.facts.looks, p.facts.looks.level, p.facts.looks.fall,
                        p.facts.looks.horizon)
        elif p.kind == STILL:
            still_start(&p.facts.still, p.facts.still.share, p.facts.still.horizon,
                        p.facts.still.own)


cdef void state_reset(State *s) noexcept nogil:
    # Buffers are kept.
    cdef int i
    restart(s)
    s.held = False
    for i in range(s.n_parts):
        s.parts[i].stopped_at = 0
    state_conclude(s)


cdef void state_replace(State *s, const double *values, int64_t n, bint confirms) noexcept nogil:
    # All bounds under a new fit; there is room. A part stops if it said so right before, says so
    # now, and the fits confirm each other; at its horizon in any case. A stop of the whole stays.
    cdef Part *p
    cdef bint stopped = s.stopped_at > 0
    cdef int i
    for i in range(s.n_parts):
        s.parts[i].said = confirms and not stopped and state_says(s, &s.parts[i])
    restart(s)
    if n:
        memcpy(s.values, values, n * sizeof(double))
    s.n, s.held = n, True
    if stopped:
        return
    for i in range(s.n_parts):
        p = &s.parts[i]
        p.stopped_at = 0
        if p.kind == COUNT:
            p.stopped_at = p.facts.limit if n >= p.facts.limit else 0
        elif (p.said or (p.kind == STILL and n >= p.facts.still.horizon)) and state_says(s, p):
            p.stopped_at = n
    state_conclude(s)


cdef void state_find_open(State *s) noexcept nogil:
    cdef int i
    s.open = False
    for i in range(s.n_parts):
        if (s.parts[i].kind == STILL and s.parts[i].facts.still.horizon == 0
                and s.parts[i].facts.still.share > 0):
            s.open = True


cdef Part *state_still(State *s) noexcept nogil:
    cdef int i
    for i in range(s.n_parts):
        if s.parts[i].kind == STILL:
            still_follow(&s.parts[i].facts.still, s.values, s.n)
            return &s.parts[i]
    return NULL


cdef int64_t state_stopped_at(const State *s) noexcept nogil:
    return s.stopped_at


cdef double state_left(State *s) noexcept nogil:
    cdef Part *p = state_still(s)
    return still_left(&p.facts.still) if p != NULL else NAN


cdef void state_free(State *s) noexcept nogil:
    cdef int i
    free(s.values)
    for i in range(s.n_parts):
        if s.parts[i].kind == RUNS:
            looks_free(&s.parts[i].facts.looks)
    s.values, s.room, s.n = NULL, 0, 0


cdef void state_like(State *s, Part *parts, const State *like) noexcept nogil:
    cdef int i
    s[0] = like[0]
    s.values, s.room, s.parts = NULL, 0, parts
    memcpy(parts, like.parts, like.n_parts * sizeof(Part))
    for i in range(s.n_parts):          # no buffer has two owners
        if parts[i].kind == RUNS:
            parts[i].facts.looks.ordered, parts[i].facts.looks.room = NULL, 0
    state_reset(s)


cdef bint state_copy(State *s, Part *parts, const State *old) noexcept nogil:
    cdef int i
    state_like(s, parts, old)
    if not state_reserve(s, old.n):
        return False
    for i in range(s.n_parts):
        if parts[i].kind == RUNS:
            if not looks_copy(&parts[i].facts.looks, &old.parts[i].facts.looks):
                return False
        else:
            parts[i].facts = old.parts[i].facts
        parts[i].stopped_at = old.parts[i].stopped_at
    if old.n:
        memcpy(s.values, old.values, old.n * sizeof(double))
    s.n, s.wake, s.stopped_at, s.held = old.n, old.wake, old.stopped_at, old.held
    return True


# ---------------------------------------------------------------------------------------------
# Many of them
# ---------------------------------------------------------------------------------------------

cdef Arena *streams_new(const State *like, int64_t n) noexcept nogil:
    cdef Arena *streams
    cdef int64_t i
    if like == NULL or n < 0 or n > MOST_VALUES:
        return NULL
    streams = <Arena *>calloc(1, sizeof(Arena))
    if streams == NULL:
        return NULL
    streams.states = <State *>calloc(max(n, 1), sizeof(State))
    streams.parts = <Part *>calloc(max(n, 1) * like.n_parts, sizeof(Part))
    if streams.states == NULL or streams.parts == NULL:
        streams_free(streams)
        return NULL
    for i in range(n):
        state_like(&streams.states[i], streams.parts + i * like.n_parts, like)
    streams.n = n
    return streams


cdef Arena *streams_of(Part *part, int64_t n) noexcept nogil:
    # Under a rule of one part.
    cdef State like
    memset(&like, 0, sizeof(State))
    like.parts, like.n_parts, like.not_negative = part, 1, part.kind == STILL
    part.end = 1
    return streams_new(&like, n)


cdef Arena *streams_new_runs(double alpha, int method, bint fall, int64_t n) noexcept nogil:
    cdef Part part
    cdef Level *level
    cdef Arena *streams
    if not (0 < alpha < 1 and AUTO <= method <= NORMAL):
        return NULL
    level = level_new(alpha, method, False)
    if level == NULL:
        return NULL
    memset(&part, 0, sizeof(Part))
    part.kind = RUNS
    looks_start(&part.facts.looks, level, fall, 0)
    streams = streams_of(&part, n)
    if streams == NULL:
        level_free(level)
    else:
        streams.level = level
    return streams


cdef Arena *streams_new_movement(double share, int64_t horizon, int64_t n) noexcept nogil:
    cdef Part part
    if not (0 < share < 1 and horizon >= 1):
        return NULL
    memset(&part, 0, sizeof(Part))
    part.kind = STILL
    still_start(&part.facts.still, share, horizon, True)
    return streams_of(&part, n)


cdef inline bint there(const Arena *streams, int64_t i) noexcept nogil:
    return streams != NULL and 0 <= i < streams.n


cdef int streams_push(Arena *streams, int64_t i, double r) noexcept nogil:
    return state_push(&streams.states[i], r) if there(streams, i) else NO_STATE


cdef int64_t streams_stopped_at(const Arena *streams, int64_t i) noexcept nogil:
    return streams.states[i].stopped_at if there(streams, i) else NO_STATE


cdef double streams_left(Arena *streams, int64_t i) noexcept nogil:
    return state_left(&streams.states[i]) if there(streams, i) else NAN


cdef int streams_reset(Arena *streams, int64_t i) noexcept nogil:
    if not there(streams, i):
        return NO_STATE
    state_reset(&streams.states[i])
    return 0


cdef void streams_free(Arena *streams) noexcept nogil:
    cdef int64_t i
    if streams == NULL:
        return
    for i in range(streams.n):
        state_free(&streams.states[i])
    free(streams.states)
    free(streams.parts)
    level_free(streams.level)
    free(streams)
