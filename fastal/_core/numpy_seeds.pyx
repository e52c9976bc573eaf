# What numpy.random makes of a seed: the words of a SeedSequence, and the shuffle of
# default_rng(seed).
#
# To the last bit NumPy's, which makes five objects and lets the GIL go for it: a fifth of a short
# call of `learn`, and as long as a short run of `simulate`.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    # SeedSequence, which is O'Neill's seed_seq_fe with a pool of four words of 32 bits
    POOL = 4
    MULT_A = 0x931E8875
    MULT_B = 0x58F38DED
    INIT_A = 0x43B0D7E5
    INIT_B = 0x8B51F9DD
    MIX_L = 0xCA01F9DD
    MIX_R = 0x4973F715
    # numbers of 64 bits for the state of a generator, which come first
    STATE = 4
    # more rows are shuffled without the GIL
    MANY = 10_000

# The multiplier of PCG64, a generator of 128 bits, in halves.
cdef uint64_t MULTIPLIER_HIGH = 2549297995355413924
cdef uint64_t MULTIPLIER_LOW = 4865540595714422341


cdef struct Entropy:
    uint32_t pool[POOL]
    uint32_t factor


cdef struct Pcg64:
    # state and increment have 128 bits
    uint64_t high
    uint64_t low
    uint64_t step_high
    uint64_t step_low
    # 64 bits are drawn at a time, for two numbers
    uint32_t second
    bint has_second


cdef inline uint32_t hashed(Entropy *e, uint32_t value) noexcept nogil:
    value ^= e.factor
    e.factor *= <uint32_t>MULT_A
    value *= e.factor
    return value ^ (value >> 16)


cdef inline void mix_into(Entropy *e, int to, uint32_t value) noexcept nogil:
    cdef uint32_t h = <uint32_t>MIX_L * e.pool[to] - <uint32_t>MIX_R * hashed(e, value)
    e.pool[to] = h ^ (h >> 16)


cdef void take_word(Entropy *e, uint32_t word) noexcept nogil:
    # a word behind the first four goes into each word of the pool
    cdef int to
    for to in range(POOL):
        mix_into(e, to, word)


cdef int take_seed(Entropy *e, object seed) except -1:
    # seed: not negative, of any size; its words of 32 bits, the lowest first
    cdef int i, to
    cdef list words = []
    while seed:
        words.append(seed & 0xFFFFFFFF)
        seed >>= 32
    e.factor = <uint32_t>INIT_A
    for i in range(POOL):
        e.pool[i] = hashed(e, words[i] if i < len(words) else 0)
    for i in range(POOL):
        for to in range(POOL):
            if to != i:
                mix_into(e, to, e.pool[i])
    for i in range(POOL, len(words)):
        take_word(e, words[i])
    return 0


cdef void write_words(const Entropy *e, uint64_t *out, int first, int last) noexcept nogil:
    # out[j - first] = generate_state(last, uint64)[j], of two words of 32 bits each
    cdef int j
    cdef uint32_t h, factor = <uint32_t>INIT_B
    for j in range(2 * last):
        h = e.pool[j % POOL] ^ factor
        factor *= <uint32_t>MULT_B
        h *= factor
        h ^= h >> 16
        if j >= 2 * first:
            if j % 2:
                out[j // 2 - first] |= <uint64_t>h << 32
            else:
                out[j // 2 - first] = h


def run_words(seed, const int64_t[::1] runs not None, uint64_t[::1] words not None):
    """Write ``SeedSequence(seed, spawn_key=(run,)).generate_state(5, uint64)[4]`` of each run.

    The four before it are what `default_rng` takes for its own state.
    """
    cdef Entropy all_runs, own
    cdef int64_t r
    take_seed(&all_runs, seed)
    with nogil:
        for r in range(runs.shape[0]):
            own = all_runs
            take_word(&own, <uint32_t>runs[r])
            write_words(&own, &words[r], STATE, STATE + 1)


cdef inline uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil:
    # the upper half of a b, by halves of 32 bits: not every compiler has 128
    cdef uint64_t a0 = <uint32_t>a, a1 = a >> 32, b0 = <uint32_t>b, b1 = b >> 32
    cdef uint64_t middle = a1 * b0 + (a0 * b0 >> 32)
    cdef uint64_t other = a0 * b1 + <uint32_t>middle
    return a1 * b1 + (middle >> 32) + (other >> 32)


cdef inline void advance(Pcg64 *g) noexcept nogil:
    # state = state multiplier + increment
    cdef uint64_t low = g.low * MULTIPLIER_LOW
    cdef uint64_t high = (
        high_product(g.low, MULTIPLIER_LOW) + g.low * MULTIPLIER_HIGH + g.high * MULTIPLIER_LOW
    )
    g.low = low + g.step_low
    g.high = high + g.step_high + (g.low < low)


cdef inline uint32_t next_number(Pcg64 *g) noexcept nogil:
    cdef uint64_t x
    cdef int turn
    if g.has_second:
        g.has_second = False
        return g.second
    advance(g)
    x, turn = g.high ^ g.low, <int>(g.high >> 58)
    x = (x >> turn) | (x << (-turn & 63))
    g.second, g.has_second = <uint32_t>(x >> 32), True
    return <uint32_t>x


cdef void shuffle_rows(Pcg64 *g, int64_t *rows, int64_t n) noexcept nogil:
    # from the last place on, each changes with one before it, or with itself
    cdef int64_t i, row
    cdef uint32_t mask, j
    for i in range(n - 1, 0, -1):
        mask = <uint32_t>i
        mask |= mask >> 1
        mask |= mask >> 2
        mask |= mask >> 4
        mask |= mask >> 8
        mask |= mask >> 16
        j = next_number(g) & mask
        while j > i:
            j = next_number(g) & mask
        row = rows[i]
        rows[i] = rows[j]
        rows[j] = row


cdef class Shuffler:
    """Shuffles rows as ``numpy.random.default_rng(seed)`` does.

    Parameters
    ----------
    seed : int
        Not negative, of any size.
    """

    cdef Pcg64 generator

    def __cinit__(self, seed):
        cdef Entropy e
        cdef uint64_t words[STATE]
        cdef Pcg64 *g = &self.generator
        cdef uint64_t low
        take_seed(&e, seed)
        write_words(&e, words, 0, STATE)
        # high before low; the increment is odd
        g.step_high = (words[2] << 1) | (words[3] >> 63)
        g.step_low = (words[3] << 1) | 1
        low = g.step_low + words[1]
        g.high = g.step_high + words[0] + (low < g.step_low)
        g.low = low
        g.has_second = False
        advance(g)

    def __reduce__(self):
        raise TypeError("a Shuffler cannot be pickled: keep the seed")

    def permutation(self, int64_t[::1] rows not None):
        """Write 0, 1, ... to `rows`, shuffled."""
        cdef int64_t i
        for i in range(rows.shape[0]):
            rows[i] = i
        self.shuffle(rows)

    def shuffle(self, int64_t[::1] rows not None):
        """Shuffle fewer than 2^32 rows in place; the next call goes on with other numbers."""
        cdef int64_t n = rows.shape[0]
        if n > 0xFFFFFFFF:
            raise ValueError(f"`rows` must be fewer than 2^32, got {n}")
        if n > MANY:
            with nogil:
                shuffle_rows(&self.generator, &rows[0], n)
        elif n:
            shuffle_rows(&self.generator, &rows[0], n)
