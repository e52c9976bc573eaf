# The Wald-Wolfowitz runs test: the exact distribution, and a tracker for a growing sequence.
#
# Three layers. `cdef ... noexcept nogil` functions hold the mathematics and the data structure;
# `def` functions loop them over memoryviews that the caller allocates; RunsTracker wraps one
# tracker for Python. Arguments are not validated here, except that a tracker refuses NaN and inf.
#
# NumPy is not needed to build this file.

from libc.math cimport (
    INFINITY, NAN, cbrt, erfc, exp, fabs, fma, frexp, isfinite, log, log1p, log2, sqrt,
)
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from fastal._core.memory cimport allocate, resize

# ---------------------------------------------------------------------------------------------
# Double-double logarithms
#
# A mass is exp(sum of log-factorials). At T = 1e7 the log-factorials reach 1.5e8, so that sums of
# doubles would leave an error of 1e-8. Carried as unevaluated sums hi + lo they leave about 1e-16,
# and the mass keeps its last digit at any T and any depth of the tail.
# ---------------------------------------------------------------------------------------------

cdef struct dd:
    double hi
    double lo


cdef inline dd two_sum(double a, double b) noexcept nogil:
    # a + b = hi + lo exactly (Knuth)
    cdef dd r
    cdef double bb
    r.hi = a + b
    bb = r.hi - a
    r.lo = (a - (r.hi - bb)) + (b - bb)
    return r


cdef inline dd dd_add(dd a, dd b) noexcept nogil:
    cdef dd s = two_sum(a.hi, b.hi)
    return two_sum(s.hi, s.lo + (a.lo + b.lo))


cdef inline dd dd_scale(dd a, double f) noexcept nogil:
    # a * f, the product hi * f kept exactly by the fused multiply-add
    cdef double p = a.hi * f
    return two_sum(p, fma(a.hi, f, -p) + a.lo * f)


cdef inline dd atanh_ratio(double a, double b, int terms) noexcept nogil:
    # 2 atanh(a / b) = 2 s (1 + s^2/3 + s^4/5 + ...) with s = a / b; a and b exact
    cdef dd s, p
    cdef double s2, q = 0
    cdef int j
    s.hi = a / b
    s.lo = fma(-s.hi, b, a) / b
    s2 = s.hi * s.hi
    for j in range(terms, 0, -1):
        q = s2 * (1.0 / (2 * j + 1) + q)
    # the product s q is small beside s: a double is enough for |s| <= 2^-8
    p = two_sum(2 * s.hi, 2 * (s.lo + s.hi * q))
    return p


cdef enum:
    CELLS = 128

cdef dd LOG_CELL[CELLS + 1]     # log(i / 128) for i = 64 .. 128
cdef dd LOG_2
cdef double FACTORIAL[19]       # up to 18!, the last that is exact in the table's arithmetic


cdef void fill_tables() noexcept nogil:
    # log(i / 128) = -sum of 2 atanh(1 / (2 j + 1)) over j = i .. 127: each term is log((j+1)/j),
    # and s = 1 / (2 j + 1) <= 1/129 makes the short series exact to 2^-78.
    cdef int j
    LOG_CELL[CELLS] = two_sum(0, 0)
    for j in range(CELLS - 1, CELLS // 2 - 1, -1):
        LOG_CELL[j] = dd_add(LOG_CELL[j + 1], dd_scale(atanh_ratio(1, 2 * j + 1, 6), -1))
    LOG_2.hi = -LOG_CELL[CELLS // 2].hi
    LOG_2.lo = -LOG_CELL[CELLS // 2].lo
    FACTORIAL[0] = 1
    for j in range(1, 19):
        FACTORIAL[j] = FACTORIAL[j - 1] * j


fill_tables()


cdef dd log_dd(double n) noexcept nogil:
    # log n for a whole n >= 1 of at most 45 significant bits:
    # n = 2^e m, c the nearest 128th to m:  log n = e log 2 + log c + 2 atanh((m - c) / (m + c))
    cdef int e
    cdef double m = frexp(n, &e)
    cdef int i = <int>(m * CELLS + 0.5)
    cdef double c = i * (1.0 / CELLS)
    return dd_add(dd_add(dd_scale(LOG_2, e), LOG_CELL[i]), atanh_ratio(m - c, m + c, 4))


cdef dd log_factorial(int64_t n) noexcept nogil:
    # Stirling: log n! = (n + 1/2) log n - n + log(2 pi)/2 + 1/(12 n) - 1/(360 n^3) + ...;
    # for n >= 19 the first term left out, 1/(156 n^13), is below 2e-19.
    cdef double x, w, tail
    cdef dd r
    if n <= 18:
        return log_dd(FACTORIAL[n])
    x = <double>n
    w = 1 / (x * x)
    tail = (1.0 / 12 - w * (1.0 / 360 - w * (1.0 / 1260 - w * (1.0 / 1680 - w * (
        1.0 / 1188 - w * (691.0 / 360360)))))) / x
    r = dd_scale(log_dd(x), x + 0.5)
    # log(2 pi)/2 to 33 digits (mpmath: mp.dps = 50; log(2 * pi) / 2)
    return dd_add(dd_add(r, two_sum(-x, 0.9189385332046728)),
                  two_sum(tail, -3.8782941580672414e-17))


# ---------------------------------------------------------------------------------------------
# The distribution of the number of runs U, n0 zeros and n1 ones, T = n0 + n1
#
#   even masses   f(k) = P(U = 2k)     = 2 C(n0-1, k-1) C(n1-1, k-1) / C(T, n0)
#   odd masses           P(U = 2k + 1) = f(k) (T - 2k) / (2k)
#   pairs         g(k) = P(U = 2k) + P(U = 2k + 1) = f(k) T / (2k)
#
# The second line is [C(n0-1,k) C(n1-1,k-1) + C(n0-1,k-1) C(n1-1,k)] / C(T, n0) with
# C(n-1,k) = C(n-1,k-1) (n-k)/k; so one recurrence serves, and floor(U/2) is hypergeometric:
#   g(k) = C(n0, k) C(n1-1, k-1) / C(T-1, n1),   g(k+1) / g(k) = (n0-k)(n1-k) / (k (k+1)).
# ---------------------------------------------------------------------------------------------

# Up to this T every count of arrangements, times T, is an exact double:
# C(50, 25) * 50 = 6.3e15 < 2^53. There all tails are correctly rounded ratios of integers.
cdef enum:
    INTEGERS_UP_TO = 50

# A tail's terms fall faster than geometrically; one below this share of the sum, and all after it,
# is below rounding: at 1e-20 they are 9 standard deviations out and sum to < 1e-17 for T <= 1e9.
cdef double NEGLIGIBLE = 1e-20


cdef inline double mean_runs(double n0, double n1) noexcept nogil:
    return 1 + 2 * n0 * n1 / (n0 + n1)


cdef inline double var_runs(double n0, double n1) noexcept nogil:
    cdef double t = n0 + n1
    cdef double p = 2 * n0 * n1
    return p * (p - t) / (t * t * (t - 1)) if t > 1 else 0


cdef inline int64_t max_runs(int64_t n0, int64_t n1) noexcept nogil:
    if n0 == n1:
        return 2 * n0
    return 2 * min(n0, n1) + 1


cdef inline int64_t min_runs(int64_t n0, int64_t n1) noexcept nogil:
    return 1 if n0 == 0 or n1 == 0 else 2


cdef dd log_even_mass(int64_t k, int64_t n0, int64_t n1) noexcept nogil:
    # log f(k), written with 2 (n0-1)! (n1-1)! n0! n1! = 2 (n0! n1!)^2 / (n0 n1)
    cdef dd r = dd_add(log_factorial(n0), log_factorial(n1))
    r = dd_add(r, dd_scale(log_factorial(k - 1), -1))
    r = dd_add(dd_scale(r, 2), dd_scale(log_factorial(n0 + n1), -1))
    r = dd_add(r, dd_scale(log_factorial(n0 - k), -1))
    r = dd_add(r, dd_scale(log_factorial(n1 - k), -1))
    r = dd_add(r, dd_scale(dd_add(log_dd(<double>n0), log_dd(<double>n1)), -1))
    return dd_add(r, LOG_2)


cdef inline double dd_exp(dd a) noexcept nogil:
    cdef double e = exp(a.hi)
    return e + e * a.lo


cdef double lower_factor(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    # P(U <= u) / f(k), k = floor(u / 2), summed downwards; 2 <= u <= max_runs
    cdef int64_t k = u >> 1
    cdef double j, term, total, a = <double>n0, b = <double>n1
    if u & 1:
        j = <double>k
        term = (a + b) / (2 * j)            # g(k) / f(k)
        total = term
    else:
        j = <double>(k - 1)
        term = (a + b) * j / (2 * (a - j) * (b - j))     # g(k-1) / f(k), 0 for k = 1
        total = 1 + term
    while j > 1 and term > NEGLIGIBLE * total:
        # g(j-1) / g(j) = (j-1) j / ((n0-j+1)(n1-j+1))
        term *= (j - 1) * j / ((a - j + 1) * (b - j + 1))
        total += term
        j -= 1
    return total


cdef double upper_factor(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    # P(U > u) / f(k), k = floor(u / 2), summed upwards; 2 <= u < max_runs
    cdef int64_t k = u >> 1
    cdef int64_t last = min(n0, n1)
    cdef double j = <double>k, term, total = 0, a = <double>n0, b = <double>n1
    if not (u & 1):
        total = (a + b - 2 * j) / (2 * j)   # P(U = 2k + 1) / f(k)
    if k >= last:
        return total
    term = (a + b) / (2 * j)                # g(k) / f(k)
    while j < last:
        # g(j+1) / g(j) = (n0-j)(n1-j) / (j (j+1))
        term *= (a - j) * (b - j) / (j * (j + 1))
        total += term
        j += 1
        if term <= NEGLIGIBLE * total:
            break
    return total


cdef double arrangements(int64_t u, int64_t n0, int64_t n1, bint up_to) noexcept nogil:
    # Number of arrangements with U = u (or U <= u), and of all for u = -1; T <= INTEGERS_UP_TO,
    # so that every intermediate result is a whole number below 2^53.
    cdef double a = 1, b = 1, next_a, next_b, even, odd, total = 0
    cdef int64_t k = 0, last = min(n0, n1)
    if last == 0:
        return 1 if u == 1 or (up_to and u >= 1) or u < 0 else 0
    while k < last:
        k += 1
        # a = C(n0-1, k-1), b = C(n1-1, k-1)
        next_a = a * (n0 - k) / k
        next_b = b * (n1 - k) / k
        even = 2 * a * b
        odd = next_a * b + a * next_b
        if u < 0:
            total += even + odd
        elif up_to:
            if 2 * k <= u:
                total += even
            if 2 * k + 1 <= u:
                total += odd
        elif 2 * k == u:
            return even
        elif 2 * k + 1 == u:
            return odd
        a = next_a
        b = next_b
    return total


cdef double runs_pmf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    cdef int64_t k = u >> 1
    cdef double mass
    if u < min_runs(n0, n1) or u > max_runs(n0, n1):
        return 0
    if n0 + n1 <= INTEGERS_UP_TO:
        return arrangements(u, n0, n1, False) / arrangements(-1, n0, n1, False)
    if u == 1:
        return 1
    mass = dd_exp(log_even_mass(k, n0, n1))
    if u & 1:
        mass *= <double>(n0 + n1 - 2 * k) / <double>(2 * k)
    return mass


cdef double runs_logpmf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    cdef int64_t k = u >> 1
    cdef dd r
    cdef double value
    if u < min_runs(n0, n1) or u > max_runs(n0, n1):
        return -INFINITY
    if u == 1:
        return -0.0
    if n0 + n1 <= INTEGERS_UP_TO:
        value = log(runs_pmf(u, n0, n1))
    else:
        r = log_even_mass(k, n0, n1)
        if u & 1:
            r = dd_add(r, log_dd(<double>(n0 + n1 - 2 * k)))
            r = dd_add(r, dd_scale(log_dd(<double>(2 * k)), -1))
        value = r.hi + r.lo
    if value > -0.5:
        # near 1 the logarithm is that of 1 minus the rest, which is a sum of small masses
        value = log1p(-(runs_cdf(u - 1, n0, n1) + runs_sf(u, n0, n1)))
    return value


cdef double lower_tail(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    return dd_exp(log_even_mass(u >> 1, n0, n1)) * lower_factor(u, n0, n1)


cdef double upper_tail(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    return dd_exp(log_even_mass(u >> 1, n0, n1)) * upper_factor(u, n0, n1)


cdef double runs_cdf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    if u < min_runs(n0, n1):
        return 0
    if u >= max_runs(n0, n1):
        return 1
    if n0 + n1 <= INTEGERS_UP_TO:
        return arrangements(u, n0, n1, True) / arrangements(-1, n0, n1, True)
    if u <= mean_runs(<double>n0, <double>n1):
        return lower_tail(u, n0, n1)
    return 1 - upper_tail(u, n0, n1)


cdef double runs_sf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    cdef double total
    if u < min_runs(n0, n1):
        return 1
    if u >= max_runs(n0, n1):
        return 0
    if n0 + n1 <= INTEGERS_UP_TO:
        total = arrangements(-1, n0, n1, True)
        return (total - arrangements(u, n0, n1, True)) / total
    if u <= mean_runs(<double>n0, <double>n1):
        return 1 - lower_tail(u, n0, n1)
    return upper_tail(u, n0, n1)


# The logarithm of a probability above a half is that of 1 minus the other tail, which is small and
# known to its last digits; that of any other is taken directly. -0.0 stands for certainty.

cdef double runs_logcdf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    cdef dd r
    cdef double p
    if u < min_runs(n0, n1):
        return -INFINITY
    if u >= max_runs(n0, n1):
        return -0.0
    p = runs_cdf(u, n0, n1)
    if p > 0.5:
        return log1p(-runs_sf(u, n0, n1))
    if n0 + n1 <= INTEGERS_UP_TO:
        return log(p)
    r = log_even_mass(u >> 1, n0, n1)
    return (log(lower_factor(u, n0, n1)) + r.lo) + r.hi


cdef double runs_logsf(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    cdef dd r
    cdef double p
    if u >= max_runs(n0, n1):
        return -INFINITY
    if u < min_runs(n0, n1):
        return -0.0
    p = runs_sf(u, n0, n1)
    if p > 0.5:
        return log1p(-runs_cdf(u, n0, n1))
    if n0 + n1 <= INTEGERS_UP_TO:
        return log(p)
    r = log_even_mass(u >> 1, n0, n1)
    return (log(upper_factor(u, n0, n1)) + r.lo) + r.hi


cdef int64_t runs_ppf(double q, int64_t n0, int64_t n1) noexcept nogil:
    # Smallest u with P(U <= u) >= q, for 0 < q <= 1: from the mean outwards by growing steps, then
    # by bisection; O(log T) tails.
    cdef int64_t lo = min_runs(n0, n1) - 1, hi = max_runs(n0, n1)     # cdf(lo) < q <= cdf(hi)
    cdef int64_t step = <int64_t>sqrt(var_runs(<double>n0, <double>n1)) + 1
    cdef int64_t u = <int64_t>mean_runs(<double>n0, <double>n1)
    cdef bint up
    if lo < u < hi:
        up = runs_cdf(u, n0, n1) < q
        while lo < u < hi:
            if runs_cdf(u, n0, n1) < q:
                lo = u
                if not up:
                    break
                u += step
            else:
                hi = u
                if up:
                    break
                u -= step
            step *= 2
    while hi - lo > 1:
        u = lo + ((hi - lo) >> 1)
        if runs_cdf(u, n0, n1) < q:
            lo = u
        else:
            hi = u
    return hi


# ---------------------------------------------------------------------------------------------
# p-values
# ---------------------------------------------------------------------------------------------

# The choice of `auto`; the normal approximation is wildly off where one count is small.
AUTO_EXACT_TOTAL = 1_000_000
AUTO_EXACT_COUNT = 1_000
cdef int64_t EXACT_TOTAL = AUTO_EXACT_TOTAL
cdef int64_t EXACT_COUNT = AUTO_EXACT_COUNT


cdef inline int resolve(int method, int64_t n0, int64_t n1) noexcept nogil:
    if method != AUTO:
        return method
    return EXACT if n0 + n1 <= EXACT_TOTAL or min(n0, n1) < EXACT_COUNT else NORMAL


cdef inline double normal_cdf(double z) noexcept nogil:
    return 0.5 * erfc(-z * 0.70710678118654752440)


cdef double runs_p_value(int64_t u, int64_t n0, int64_t n1, int alternative, int method,
                         bint continuity) noexcept nogil:
    cdef double sd, d, tail, shift = 0.5 if continuity else 0.0
    if min(n0, n1) == 0 or n0 + n1 == 2:
        return 1            # one arrangement, or two with as many runs: nothing can be learnt
    if resolve(method, n0, n1) == EXACT:
        if alternative == LESS:
            return runs_cdf(u, n0, n1)
        if alternative == GREATER:
            return runs_sf(u - 1, n0, n1)
        # the two tails sum to 1 + P(U = u): one below a half is the smaller
        tail = runs_cdf(u, n0, n1)
        if not (tail < 0.5):
            tail = min(tail, runs_sf(u - 1, n0, n1))
        return min(1.0, 2 * tail)
    sd = sqrt(var_runs(<double>n0, <double>n1))
    d = <double>u - mean_runs(<double>n0, <double>n1)
    if alternative == LESS:
        return normal_cdf((d + shift) / sd)
    if alternative == GREATER:
        return normal_cdf(-(d - shift) / sd)
    return min(1.0, 2 * normal_cdf(-max(fabs(d) - shift, 0.0) / sd))


cdef double normal_quantile(double p) noexcept nogil:
    # Bisection; called once for a tracker, and only to guess how far ahead to look.
    cdef double lo = -40, hi = 40, mid
    while hi - lo > 1e-9:
        mid = 0.5 * (lo + hi)
        if normal_cdf(mid) < p:
            lo = mid
        else:
            hi = mid
    return lo


# ---------------------------------------------------------------------------------------------
# The tracker
#
# Label i is 1 if r_i >= m, m the median, else 0. Neighbours differ iff min < m <= max, so
#     runs - 1 = #{pairs whose smaller value is below m} - #{pairs whose larger value is below m}
#              = sum of balance(v) over the distinct values v below m.
# Distinct values below m lie in the lower heap (largest first), the others in the upper one
# (smallest first). A new value moves the median past at most a few distinct values; each that
# crosses takes its count and its balance along. All occurrences of a value cross in one step, so
# ties cost nothing: O(log of the number of distinct values) for each push, amortised over doubling
# buffers.
# ---------------------------------------------------------------------------------------------

cdef uint64_t EMPTY = ~<uint64_t>0

# Where a value lies in the table depends on two numbers that differ from process to process, as
# Python's own hashes do (PYTHONHASHSEED): nobody can choose values beforehand that collide.
cdef uint64_t SECRET = <uint64_t><int64_t>hash(b"fastal: added to a value")
cdef uint64_t FACTOR = <uint64_t><int64_t>hash(b"fastal: times the sum") | 1
cdef uint64_t MIXER = 0x9E3779B97F4A7C15        # 2^64 over the golden ratio

cdef enum:
    FIRST_CAPACITY = 16
    MOST_VALUES = 1 << 30       # counts and balances are ints


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define FASTAL_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define FASTAL_PREFETCH(address) ((void)0)
    #endif

    /* The two halves of the 128-bit product a b, one laid over the other. */
    static inline uint64_t fastal_folded_product(uint64_t a, uint64_t b)
    {
    #if defined(__SIZEOF_INT128__)
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
        uint64_t first = (a >> 32) * (b & 0xFFFFFFFF) + (low >> 32);
        uint64_t second = (a & 0xFFFFFFFF) * (b >> 32) + (first & 0xFFFFFFFF);
        uint64_t high = (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
        return ((second << 32) | (low & 0xFFFFFFFF)) ^ high;
    #endif
    }
    """
    void prefetch "FASTAL_PREFETCH"(const void *address) noexcept nogil
    uint64_t folded_product "fastal_folded_product"(uint64_t a, uint64_t b) noexcept nogil


# The two heaps share one buffer: `root` is its first used entry and `step` 1, or its last and -1.
# Three entries before the left root stay free, and the right root stands at a multiple of four: so
# the children of every entry, 4 x 16 bytes, are one line of the cache.

cdef enum:
    LINE = 64
    FREE = 3
    PREFETCH_FROM = 8192        # entries from here on are likely not in the nearer caches
    AHEAD = 4                   # values whose slot is fetched while earlier ones are pushed


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


cdef inline uint64_t hash_of(double value) noexcept nogil:
    # Whole numbers differ in the high bits of the double only: their product, folded, in all. Once
    # folded, those on a lattice still lie on a few lattices: it is folded twice.
    cdef uint64_t bits
    memcpy(&bits, &value, sizeof(double))
    return folded_product(folded_product(bits ^ SECRET, FACTOR) ^ FACTOR, MIXER)


cdef inline uint64_t slot_of(Tracker *t, double value) noexcept nogil:
    return hash_of(value) & (2 * t.capacity - 1)


cdef inline uint64_t find(Tracker *t, double value) noexcept nogil:
    # Slot of the node with this value, or the empty one where it belongs. The upper half of the
    # hash, kept in the slot, spares a look at the nodes of other values.
    cdef uint64_t hashed = hash_of(value), mask = 2 * t.capacity - 1
    cdef uint64_t slot = hashed & mask, entry
    while True:
        entry = t.table[slot]
        if entry == EMPTY or (entry >> 32 == hashed >> 32
                              and t.nodes[<int>entry].value == value):
            return slot
        slot = (slot + 1) & mask


cdef inline void put(Tracker *t, uint64_t slot, int64_t node) noexcept nogil:
    t.table[slot] = (hash_of(t.nodes[node].value) >> 32 << 32) | <uint64_t>node


cdef inline int node_of(Tracker *t, double value) noexcept nogil:
    # of a value that is there
    return <int>t.table[find(t, value)]


cdef void fill_table(Tracker *t) noexcept nogil:
    cdef int64_t i
    memset(t.table, 0xFF, 2 * t.capacity * sizeof(uint64_t))      # every slot EMPTY
    for i in range(t.n_nodes):
        put(t, find(t, t.nodes[i].value), i)


cdef bint reserve_values(Tracker *t, int64_t n) noexcept nogil:
    cdef int64_t capacity = max(t.values_capacity, FIRST_CAPACITY)
    if n <= t.values_capacity:
        return True
    if n > MOST_VALUES:
        return False
    while capacity < n:
        capacity *= 2
    if not resize(<void **>&t.values, capacity, sizeof(double)):
        return False
    t.values_capacity = capacity
    return True


cdef inline Entry *lower_root(Tracker *t) noexcept nogil:
    return t.heaps + FREE


cdef inline Entry *upper_root(Tracker *t) noexcept nogil:
    return t.heaps + (t.capacity + FREE + 1)


cdef bint reserve_heaps(Tracker *t, int64_t capacity) noexcept nogil:
    # A new buffer that begins with a line, both heaps copied to its ends.
    cdef int64_t spare = FREE + 2 + LINE // <int64_t>sizeof(Entry)
    cdef void *memory = allocate(capacity + spare, sizeof(Entry))
    cdef Entry *heaps
    if memory == NULL:
        return False
    heaps = <Entry *>((<uintptr_t>memory + LINE - 1) // LINE * LINE)
    if t.heaps != NULL:
        memcpy(heaps + FREE, lower_root(t), t.n_lower * sizeof(Entry))
        memcpy(heaps + (capacity + FREE + 2 - t.n_upper), upper_root(t) - (t.n_upper - 1),
               t.n_upper * sizeof(Entry))
        free(t.heap_memory)
    t.heap_memory = memory
    t.heaps = heaps
    return True


cdef bint reserve_nodes(Tracker *t, int64_t n) noexcept nogil:
    cdef int64_t capacity = max(t.capacity, FIRST_CAPACITY)
    if n <= t.capacity:
        return True
    while capacity < n:
        capacity *= 2
    # buffers that did grow stay usable at the old capacity if a later one cannot
    if not (resize(<void **>&t.nodes, capacity, sizeof(Node))
            and resize(<void **>&t.table, 2 * capacity, sizeof(uint64_t))
            and reserve_heaps(t, capacity)):
        return False
    t.capacity = capacity
    fill_table(t)
    return True


cdef inline void lower_push(Tracker *t, int64_t node) noexcept nogil:
    cdef Entry new
    new.key, new.node = -t.nodes[node].value, node
    heap_push(lower_root(t), 1, t.n_lower, new)
    t.n_lower += 1


cdef inline void upper_push(Tracker *t, int64_t node) noexcept nogil:
    cdef Entry new
    new.key, new.node = t.nodes[node].value, node
    heap_push(upper_root(t), -1, t.n_upper, new)
    t.n_upper += 1


cdef inline void lower_pop(Tracker *t) noexcept nogil:
    heap_pop(lower_root(t), 1, t.n_lower, t.nodes)
    t.n_lower -= 1


cdef inline void upper_pop(Tracker *t) noexcept nogil:
    heap_pop(upper_root(t), -1, t.n_upper, t.nodes)
    t.n_upper -= 1


cdef inline Node *lower_top(Tracker *t) noexcept nogil:
    return &t.nodes[lower_root(t).node]


cdef inline Node *upper_top(Tracker *t) noexcept nogil:
    return &t.nodes[upper_root(t).node]


cdef inline void lower_to_upper(Tracker *t) noexcept nogil:
    cdef int64_t node = lower_root(t).node
    lower_pop(t)
    upper_push(t, node)
    t.n_below -= t.nodes[node].count
    t.crossings -= t.nodes[node].balance


cdef inline void upper_to_lower(Tracker *t) noexcept nogil:
    cdef int64_t node = upper_root(t).node
    upper_pop(t)
    lower_push(t, node)
    t.n_below += t.nodes[node].count
    t.crossings += t.nodes[node].balance


cdef void drop_unused(Tracker *t) noexcept nogil:
    # Renumber the nodes that still occur in the window and build table and heaps anew: O(size),
    # and at least half of the nodes have gone, so O(1) for each value that left.
    cdef int64_t i, kept = 0
    cdef double last = t.nodes[t.last].value
    t.n_lower = t.n_upper = 0
    for i in range(t.n_nodes):
        if t.nodes[i].count > 0:
            t.nodes[kept] = t.nodes[i]
            if t.nodes[kept].value < t.median:
                lower_push(t, kept)
            else:
                upper_push(t, kept)
            kept += 1
    t.n_nodes = kept
    fill_table(t)
    t.last = node_of(t, last)


cdef inline void discard_unused_tops(Tracker *t) noexcept nogil:
    # Values that left the window stay in their heap until they come to its top.
    while t.n_lower and lower_top(t).count == 0:
        lower_top(t).count = -1
        lower_pop(t)
    while t.n_upper and upper_top(t).count == 0:
        upper_top(t).count = -1
        upper_pop(t)


cdef inline double midpoint(double a, double b) noexcept nogil:
    # NumPy's median of an even number of values, but for sums that overflow
    cdef double m = (a + b) / 2
    return m if isfinite(m) else a / 2 + b / 2


cdef void follow_median(Tracker *t) noexcept nogil:
    cdef int64_t k1 = (t.n + 1) >> 1, k2 = (t.n >> 1) + 1      # ranks of the middle value(s)
    cdef double a, b
    discard_unused_tops(t)
    while t.n_upper and k2 > t.n_below + upper_top(t).count:
        upper_to_lower(t)
        discard_unused_tops(t)
    while t.n_lower and k1 <= t.n_below - lower_top(t).count:
        lower_to_upper(t)
        discard_unused_tops(t)
    a = lower_top(t).value if k1 <= t.n_below else upper_top(t).value
    b = lower_top(t).value if k2 <= t.n_below else upper_top(t).value
    t.median = midpoint(a, b)
    # values at the median count as above it (also when the midpoint rounds down to a)
    while t.n_lower and lower_top(t).value >= t.median:
        lower_to_upper(t)


cdef inline void join(Tracker *t, int first, int second, int sign) noexcept nogil:
    # Add (sign = 1) or take away (-1) the neighbours `first, second`.
    cdef double a = t.nodes[first].value, b = t.nodes[second].value
    if first == second:
        return
    if a < b:
        t.nodes[first].balance += sign
        t.nodes[second].balance -= sign
    else:
        t.nodes[first].balance -= sign
        t.nodes[second].balance += sign
    if (a < t.median) != (b < t.median):
        t.crossings += sign


cdef void forget_oldest(Tracker *t) noexcept nogil:
    cdef double *oldest = t.values + (t.n_pushed - t.n)
    cdef int node = node_of(t, oldest[0])
    join(t, node, node_of(t, oldest[1]), -1)
    t.nodes[node].count -= 1
    t.n -= 1
    if oldest[0] < t.median:
        t.n_below -= 1


cdef int insert(Tracker *t, double value) noexcept nogil:
    # 0 = done, -1 = no memory, -2 = not finite; in these two cases nothing has changed.
    cdef uint64_t slot
    cdef int node
    if not isfinite(value):
        return -2
    value += 0.0                # -0.0 and 0.0 are one value
    if not reserve_values(t, t.n_pushed + 1):
        return -1
    if t.n_nodes == t.capacity:
        if t.rule.window and t.n_nodes >> 1 >= t.rule.window:
            drop_unused(t)
        elif not reserve_nodes(t, t.n_nodes + 1):
            return -1
    if t.rule.window and t.n == t.rule.window:
        forget_oldest(t)
    slot = find(t, value)
    if t.table[slot] == EMPTY:
        node = <int>t.n_nodes
        t.n_nodes += 1
        t.nodes[node].value = value
        t.nodes[node].count = -1
        t.nodes[node].balance = 0
        put(t, slot, node)
    else:
        node = <int>t.table[slot]
    if t.nodes[node].count == -1:
        t.nodes[node].count = 0
        if value < t.median:
            lower_push(t, node)
        else:
            upper_push(t, node)
    t.nodes[node].count += 1
    t.n_below += value < t.median
    if t.n_pushed:
        join(t, t.last, node, 1)
    t.values[t.n_pushed] = value
    t.last = node
    t.n_pushed += 1
    t.n += 1
    follow_median(t)
    return 0


cdef double level_factor(int64_t n) noexcept nogil:
    # w(T) = 1 below T = 16, else (1 + log2(T / 16))^-2
    return 1 if n < 16 else (1 + log2(<double>n / 16)) ** -2


cdef bint tracker_rejects(Tracker *t) noexcept nogil:
    # Is the p-value at most the level?
    #
    # Taking a random zero (or one) out of a random arrangement leaves a random arrangement and
    # never adds a run. So P(U <= u) falls when n0 or n1 grows, and rises with u. One exact tail
    # above the level at counts some steps ahead therefore proves "no" for all that lies between:
    # about sqrt(T) values pass on comparisons of integers alone. The proof holds for every level,
    # and for levels that fall.
    cdef int64_t n0 = t.n_below, n1 = t.n - t.n_below, u = t.crossings + 1, ahead
    cdef double a = <double>n0, b = <double>n1, slack, p, level = t.rule.alpha
    if n0 == 0 or n1 == 0:
        return False
    if t.n < t.n_critical and n0 == t.n >> 1:
        return u <= t.critical[t.n]
    if t.rule.falling:
        level *= level_factor(t.n)
    if t.rule.alternative != LESS or resolve(t.rule.method, n0, n1) == NORMAL:
        return runs_p_value(u, n0, n1, t.rule.alternative, t.rule.method, False) <= level
    if u >= t.keep_runs and n0 <= t.keep_below and n1 <= t.keep_above:
        return False
    if (u <= t.drop_runs and n0 >= t.drop_below and n1 >= t.drop_above and t.drop_p <= level):
        return True
    p = runs_cdf(u, n0, n1)
    if p <= level:
        t.drop_runs, t.drop_below, t.drop_above, t.drop_p = u, n0, n1, p
        return True
    # The mean grows by one with each pair of values: guess how many pairs ahead this u would
    # still not reject, and prove it; halve the guess if it was too bold.
    slack = 0.95 * (u + 0.5 - mean_runs(a, b) - t.z_alpha * sqrt(var_runs(a, b)))
    ahead = <int64_t>min(max(slack, 0.0), a + b)
    while ahead and runs_cdf(u, n0 + ahead, n1 + ahead) <= level * (1 + 1e-9):
        ahead >>= 1
    t.keep_runs, t.keep_below, t.keep_above = u, n0 + ahead, n1 + ahead
    return False


cdef bint is_rule(Rule rule) noexcept nogil:
    # What lies outside would make the loops below endless, or look at values that are not there.
    return (0 < rule.alpha <= 1 and (rule.window == 0 or rule.window >= 2)
            and rule.min_bounds >= 0 and rule.patience >= 1 and rule.horizon >= 0)


cdef Tracker *tracker_new_with(Rule rule) noexcept nogil:
    cdef Tracker *t
    cdef double m, least = 1            # 2 / C(2, 1)
    if not is_rule(rule):
        return NULL
    t = <Tracker *>allocate(1, sizeof(Tracker))
    if t == NULL:
        return NULL
    memset(t, 0, sizeof(Tracker))
    t.rule = rule
    if rule.window > MOST_VALUES:
        t.rule.window = 0       # longer than any sequence can become: all values are tested
    t.z_alpha = normal_quantile(rule.alpha)
    # P(U <= 2) = 2 / C(2m, m) is the least p-value of at most m values on each side
    while least > rule.alpha:
        t.safe_count += 1
        m = <double>t.safe_count + 1
        least *= m / (2 * (2 * m - 1))          # C(2m, m) = C(2m-2, m-1) 2 (2m-1) / m
    tracker_reset(t)
    if not reserve_nodes(t, FIRST_CAPACITY):
        tracker_free(t)
        return NULL
    return t


cdef Tracker *tracker_new(double alpha, int64_t window) noexcept nogil:
    cdef Rule rule
    memset(&rule, 0, sizeof(Rule))      # AUTO, LESS, no horizon
    rule.alpha = alpha
    rule.window = window
    rule.patience = 1
    return tracker_new_with(rule)


cdef int tracker_push(Tracker *tracker, double value) noexcept nogil:
    cdef Tracker *t = tracker
    cdef int status
    if t == NULL:
        return -3
    status = insert(t, value)
    if status:
        return status
    status = tracker_rejects(t)
    t.streak = t.streak + 1 if status else 0
    if (t.stopped_at == 0 and t.streak >= t.rule.patience and t.n_pushed >= t.rule.min_bounds
            and (t.rule.horizon == 0 or t.n_pushed <= t.rule.horizon)):
        t.stopped_at = t.n_pushed
    return status


cdef int64_t tracker_stopped_at(Tracker *tracker) noexcept nogil:
    return tracker.stopped_at if tracker != NULL else 0


cdef double tracker_p_value(Tracker *tracker) noexcept nogil:
    if tracker == NULL:
        return NAN
    if tracker.n < 2:
        return 1
    return runs_p_value(tracker.crossings + 1, tracker.n_below, tracker.n - tracker.n_below,
                        tracker.rule.alternative, tracker.rule.method, False)


cdef int64_t tracker_n_runs(Tracker *tracker) noexcept nogil:
    return tracker.crossings + 1 if tracker != NULL and tracker.n else 0


cdef void tracker_reset(Tracker *tracker) noexcept nogil:
    # Buffers are kept.
    cdef Tracker *t = tracker
    if t == NULL:
        return
    t.n_pushed = t.n = t.n_below = t.crossings = t.n_nodes = t.streak = t.stopped_at = 0
    t.n_lower = t.n_upper = 0
    t.last = -1
    t.median = NAN
    t.keep_runs, t.keep_below, t.keep_above = 0, t.safe_count, t.safe_count
    t.drop_runs, t.drop_below, t.drop_above = -1, 0, 0
    if t.capacity:
        fill_table(t)


cdef void tracker_free(Tracker *tracker) noexcept nogil:
    if tracker == NULL:
        return
    free(tracker.values)
    free(tracker.nodes)
    free(tracker.table)
    free(tracker.heap_memory)
    free(tracker)


cdef int64_t first_not_finite(const double[::1] x) noexcept nogil:
    # x - x is 0 for finite values and NaN for the others: two independent sums, no branch
    cdef int64_t n = x.shape[0], i
    cdef double a = 0, b = 0
    for i in range(0, n - 1, 2):
        a += x[i] - x[i]
        b += x[i + 1] - x[i + 1]
    if n & 1:
        a += x[n - 1] - x[n - 1]
    if a + b == 0:
        return -1
    i = 0
    while isfinite(x[i]):
        i += 1
    return i


cdef void forget_after(Tracker *t, int64_t n) noexcept nogil:
    # Go back to the first n values. What they need is allocated already: nothing can fail.
    cdef int64_t i
    tracker_reset(t)
    for i in range(n):
        tracker_push(t, t.values[i])


cdef int push_all(Tracker *t, const double[::1] values, unsigned char[::1] out) noexcept nogil:
    # out[i] = does the prefix up to values[i] reject? If there is no memory, none is taken.
    cdef int64_t i, before = t.n_pushed
    cdef int status
    if not reserve_values(t, t.n_pushed + values.shape[0]):
        return -1
    for i in range(values.shape[0]):
        if i + AHEAD < values.shape[0]:
            prefetch(&t.table[slot_of(t, values[i + AHEAD])])
        status = tracker_push(t, values[i])
        if status < 0:
            forget_after(t, before)
            return status
        out[i] = status
    return 0


cdef bint tracker_reserve(Tracker *tracker) noexcept nogil:
    # Make sure that the next push cannot fail for want of memory.
    cdef Tracker *t = tracker
    if not reserve_values(t, t.n_pushed + 1):
        return False
    if t.n_nodes < t.capacity or (t.rule.window and t.n_nodes >> 1 >= t.rule.window):
        return True
    return reserve_nodes(t, t.n_nodes + 1)


cdef class RunsTracker:
    """Runs test of a growing sequence about its running median.

    ``push`` and ``extend`` say whether the exact lower tail ``P(U <= n_runs)`` is at most `alpha`.
    ``stopped_after`` and ``stopped_at`` follow the whole rule: a stop, once made, stays.
    One tracker belongs to one thread at a time. Its methods keep the GIL, but for ``extend``; while
    that runs, and while the tracker is lent to compiled code, every other call is a RuntimeError.

    Parameters
    ----------
    alpha : float
        Level of one look.
    method : int
        0 = auto, 1 = exact, 2 = normal.
    window : int
        Test the last `window` values only; 0 means all.
    alternative : int
        0 = less, 1 = greater, 2 = two-sided.
    min_bounds, patience, horizon : int
        No stop before, rejections in a row that stop, no stop after (0 = no limit).
    falling : bool
        Whether the level falls with the number of values T, like (1 + log2(T/16))^-2 from 16 on.
    """

    # busy: something runs without the GIL, no other call may touch the buffers then

    def __cinit__(self, double alpha=1e-3, int method=AUTO, int64_t window=0,
                  int alternative=LESS, int64_t min_bounds=0, int64_t patience=1,
                  int64_t horizon=0, bint falling=False):
        cdef Rule rule
        rule.alpha, rule.falling = alpha, falling
        rule.method, rule.alternative = method, alternative
        rule.window, rule.min_bounds, rule.patience = window, min_bounds, patience
        rule.horizon = horizon
        if not is_rule(rule):
            raise ValueError(f"no rule of a tracker: {rule}")
        self.tracker = tracker_new_with(rule)
        if self.tracker == NULL:
            raise MemoryError("no memory for a runs tracker")

    def __dealloc__(self):
        tracker_free(self.tracker)

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("the tracker is in use by another thread")
        return 0

    def push(self, double value):
        """Add a value; return whether randomness is rejected now."""
        self.check()
        cdef int status = tracker_push(self.tracker, value)
        if status < 0:
            self.refuse(status, value)
        return status == 1

    def stopped_after(self, double value):
        """Add a value; return whether there has been a stop, now or before."""
        self.check()
        cdef int status = tracker_push(self.tracker, value)
        if status < 0:
            self.refuse(status, value)
        return self.tracker.stopped_at > 0

    cdef int refuse(self, int status, double value) except -1:
        if status == -2:
            raise ValueError(f"`value` must be finite, got {value}")
        raise MemoryError(f"no memory for value {self.tracker.n_pushed + 1}")

    def extend(self, const double[::1] values not None, unsigned char[::1] out not None):
        """Push `values`; `out` of the same length receives the decision after each.

        Returns `stopped_at`, as it is before another thread can change it.
        """
        cdef int64_t bad
        cdef int status = 0
        self.check()
        if out.shape[0] != values.shape[0]:
            raise ValueError(f"`out` must have length {values.shape[0]}, got {out.shape[0]}")
        self.busy = True
        with nogil:
            bad = first_not_finite(values)
            if bad < 0:
                status = push_all(self.tracker, values, out)
        self.busy = False
        if bad >= 0:
            raise ValueError(f"`values` must be finite, got {values[bad]} at index {bad}")
        if status < 0:
            self.refuse(status, 0)
        return self.tracker.stopped_at

    def reset(self):
        """Forget all values."""
        self.check()
        tracker_reset(self.tracker)

    def replace(self, RunsTracker other not None, int64_t n_pushed):
        """Exchange states with `other`, if this one still has `n_pushed` values.

        No other thread sees half of it, and a value that one has pushed meanwhile is not lost.
        """
        self.check()
        other.check()
        if self.tracker.n_pushed != n_pushed:
            raise RuntimeError("another thread has pushed meanwhile: nothing is changed")
        self.tracker, other.tracker = other.tracker, self.tracker

    def lend(self):
        """Return the address of the C struct for code that holds no GIL, until `take_back`."""
        self.check()
        self.busy = True
        return <Py_ssize_t>self.tracker

    def take_back(self):
        """End what `lend` began."""
        self.busy = False

    def copy(self):
        """Return an independent tracker in the same state."""
        self.check()
        cdef Tracker *old = self.tracker
        cdef Rule r = old.rule
        cdef RunsTracker new = RunsTracker(r.alpha, r.method, r.window, r.alternative, r.min_bounds,
                                           r.patience, r.horizon, r.falling)
        cdef Tracker *t = new.tracker
        if not (reserve_values(t, max(old.values_capacity, 1)) and reserve_nodes(t, old.capacity)):
            raise MemoryError("no memory for a copy of the tracker")
        if old.n_pushed:                # else there may be no buffer, and memcpy must not see NULL
            memcpy(t.values, old.values, old.n_pushed * sizeof(double))
        memcpy(t.nodes, old.nodes, old.n_nodes * sizeof(Node))
        memcpy(t.table, old.table, 2 * old.capacity * sizeof(uint64_t))
        memcpy(lower_root(t), lower_root(old), old.n_lower * sizeof(Entry))
        memcpy(upper_root(t) - (old.n_upper - 1), upper_root(old) - (old.n_upper - 1),
               old.n_upper * sizeof(Entry))
        t.n_lower, t.n_upper = old.n_lower, old.n_upper
        t.n_nodes, t.last = old.n_nodes, old.last
        t.n_pushed, t.n, t.n_below = old.n_pushed, old.n, old.n_below
        t.crossings, t.median = old.crossings, old.median
        t.streak, t.stopped_at = old.streak, old.stopped_at
        return new

    def p_value(self, int alternative=LESS):
        """Return the p-value now; 1.0 below two values."""
        self.check()
        cdef Tracker *t = self.tracker
        if t.n < 2:
            return 1.0
        return runs_p_value(t.crossings + 1, t.n_below, t.n - t.n_below, alternative, t.rule.method,
                            False)

    def values(self, double[::1] out not None):
        """Copy all pushed values into `out`, of length `n_pushed`."""
        self.check()
        if out.shape[0] != self.tracker.n_pushed:
            raise ValueError(
                f"`out` must have length {self.tracker.n_pushed}, got {out.shape[0]}"
            )
        if out.shape[0]:
            memcpy(&out[0], self.tracker.values, out.shape[0] * sizeof(double))

    @property
    def rejects(self):
        """Whether randomness is rejected now."""
        self.check()
        return tracker_rejects(self.tracker)

    @property
    def address(self):
        """Address of the C struct, for compiled callers; valid as long as this object lives."""
        return <Py_ssize_t>self.tracker

    @property
    def stopped_at(self):
        """Number of values at the stop; 0 before it."""
        # unchecked: whoever has just pushed may ask, whatever the others do
        return self.tracker.stopped_at

    @property
    def n_pushed(self):
        """Number of values pushed."""
        self.check()
        return self.tracker.n_pushed

    @property
    def n_below(self):
        """Number of tested values below the median."""
        self.check()
        return self.tracker.n_below

    @property
    def n_above(self):
        """Number of tested values at or above the median."""
        self.check()
        return self.tracker.n - self.tracker.n_below

    @property
    def n_runs(self):
        """Number of runs; 0 without values."""
        self.check()
        return tracker_n_runs(self.tracker)

    @property
    def median(self):
        """Running median; NaN without values."""
        self.check()
        return self.tracker.median

    @property
    def probes(self):
        """Places of the hash table looked at when every value is found once; for tests."""
        self.check()
        cdef Tracker *t = self.tracker
        cdef uint64_t mask = 2 * t.capacity - 1
        cdef int64_t i, total = 0
        cdef double value
        for i in range(t.n_nodes):
            value = t.nodes[i].value
            total += <int64_t>((find(t, value) - slot_of(t, value)) & mask) + 1
        return total

    @property
    def nbytes(self):
        """Bytes allocated."""
        cdef Tracker *t = self.tracker
        return sizeof(Tracker) + t.values_capacity * sizeof(double) + t.capacity * (
            sizeof(Node) + sizeof(Entry) + 2 * sizeof(uint64_t))


# ---------------------------------------------------------------------------------------------
# Loops for fastal/runs.py
# ---------------------------------------------------------------------------------------------

ctypedef double (*Query)(int64_t, int64_t, int64_t) noexcept nogil


cdef Query query_of(str name) except *:
    if name == "pmf":
        return runs_pmf
    if name == "logpmf":
        return runs_logpmf
    if name == "cdf":
        return runs_cdf
    if name == "logcdf":
        return runs_logcdf
    if name == "sf":
        return runs_sf
    if name == "logsf":
        return runs_logsf
    raise KeyError(name)


cdef double query_at(Query query, double u, int64_t n0, int64_t n1) noexcept nogil:
    # As in scipy: there is no mass between whole numbers, cumulative functions round down.
    cdef int64_t whole
    if u != u:
        return NAN
    whole = <int64_t>max(min(u, <double>max_runs(n0, n1) + 1), 0.0)
    if (query == runs_pmf or query == runs_logpmf) and <double>whole != u:
        whole = 0
    return query(whole, n0, n1)


def evaluate_one(str name, int64_t n0, int64_t n1, double u):
    """Return pmf, logpmf, cdf, logcdf, sf or logsf at `u`."""
    return query_at(query_of(name), u, n0, n1)


def evaluate(str name, int64_t n0, int64_t n1, const double[::1] u, double[::1] out):
    """Fill `out` with pmf, logpmf, cdf, logcdf, sf or logsf at `u`."""
    cdef Query query = query_of(name)
    cdef Py_ssize_t i
    with nogil:
        for i in range(u.shape[0]):
            out[i] = query_at(query, u[i], n0, n1)


def quantiles(int64_t n0, int64_t n1, const double[::1] q, double[::1] out):
    """Fill `out` with the smallest u of cdf(u) >= q; as in scipy, ppf(0) is below the support."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(q.shape[0]):
            if not (0 <= q[i] <= 1):
                out[i] = NAN
            elif q[i] == 0:
                out[i] = <double>(min_runs(n0, n1) - 1)
            else:
                out[i] = <double>runs_ppf(q[i], n0, n1)


def moments(int64_t n0, int64_t n1):
    """Return mean and variance of the number of runs."""
    return mean_runs(<double>n0, <double>n1), var_runs(<double>n0, <double>n1)


def support(int64_t n0, int64_t n1):
    """Return the smallest and the largest number of runs."""
    return min_runs(n0, n1), max_runs(n0, n1)


def p_value(int64_t u, int64_t n0, int64_t n1, int alternative, int method, bint continuity):
    """Return the p-value of u runs."""
    return runs_p_value(u, n0, n1, alternative, method, continuity)


def resolved_method(int64_t n0, int64_t n1):
    """Return what `auto` chooses: 1 = exact, 2 = normal."""
    return resolve(AUTO, n0, n1)


def rising_pairs(double[::1] x, double[::1] work):
    """Return how many pairs i < j have x[i] < x[j], minus those with x[i] > x[j].

    By merging sorted halves, O(n log n). `x` and `work`, of the same length, are overwritten.
    """
    cdef int64_t n = x.shape[0], width = 1, low, middle, high, i, j, k, score = 0
    cdef double *source
    cdef double *target
    if n < 2:
        return 0
    source, target = &x[0], &work[0]
    with nogil:
        while width < n:
            low = 0
            while low < n:
                middle, high = min(low + width, n), min(low + 2 * width, n)
                # rises: for each of the right, how many of the left are smaller; falls likewise
                i = j = low
                for k in range(middle, high):
                    while i < middle and source[i] < source[k]:
                        i += 1
                    while j < middle and source[j] <= source[k]:
                        j += 1
                    score += (i - low) - (middle - j)
                i, j = low, middle
                for k in range(low, high):
                    if i < middle and (j >= high or source[i] <= source[j]):
                        target[k] = source[i]
                        i += 1
                    else:
                        target[k] = source[j]
                        j += 1
                low = high
            source, target = target, source
            width *= 2
    return score


cdef double select_few(const double *x, int64_t n, int64_t k, double *work) noexcept nogil:
    # k-th smallest of a handful, by insertion sort
    cdef int64_t i, j
    cdef double v
    for i in range(n):
        v = x[i]
        j = i
        while j > 0 and work[j - 1] > v:
            work[j] = work[j - 1]
            j -= 1
        work[j] = v
    return work[k]


cdef double select(const double *x, int64_t n, int64_t k, double *work,
                   uint64_t *state) noexcept nogil:
    # k-th smallest (from 0) of x[0 .. n); work holds 2 n doubles.
    # Quickselect with random pivots (begun anew in every process, so that no data can be made for
    # them) from one buffer into the other. Every value is stored at both
    # ends of the free part of the target and one end advances: no branch depends on the data.
    cdef double *target = work
    cdef double *spare = work + n
    cdef double *end
    cdef double pivot, v
    cdef int64_t i, left
    while n > 12:
        state[0] ^= state[0] << 13
        state[0] ^= state[0] >> 7
        state[0] ^= state[0] << 17
        pivot = x[<int64_t>(((state[0] >> 32) * <uint64_t>n) >> 32)]
        end = target + (n - 1)
        left = 0
        for i in range(n):
            v = x[i]
            target[left] = v
            end[left - i] = v
            left += v < pivot
        if left == 0:                   # the pivot is the smallest: set aside what equals it
            for i in range(n):
                v = x[i]
                target[left] = v
                end[left - i] = v
                left += v <= pivot
            if k < left:
                return pivot
        if k < left:
            x, n = target, left
        else:
            x, n, k = target + left, n - left, k - left
        target, spare = spare, target
    return select_few(x, n, k, target)


cdef double middle(const double *x, int64_t n, int64_t k, bint even, double *work,
                   uint64_t *state) noexcept nogil:
    # Value of rank k (from 0), or the midpoint of ranks k - 1 and k
    cdef double a, b
    cdef int64_t i, up_to = 0
    if not even:
        return select(x, n, k, work, state)
    a = select(x, n, k - 1, work, state)
    b = INFINITY
    for i in range(n):
        up_to += x[i] <= a
        b = min(b, x[i] if x[i] > a else INFINITY)
    return a if up_to > k else midpoint(a, b)


cdef double median_of(const double *x, int64_t n, double *work, uint64_t *state) noexcept nogil:
    # NumPy's median; work holds 3 n doubles. A sample of about n^(2/3) values brackets it within
    # about two standard deviations of its rank; one pass keeps what lies in the bracket, and the
    # choice is made among those few.
    cdef int64_t k = n >> 1, size, stride, margin, i, below = 0, up_to = 0
    cdef bint even = not (n & 1)
    cdef double low, high, v
    if n >= 256:
        stride = <int64_t>cbrt(<double>n)
        size = n // stride
        margin = <int64_t>(1.2 * sqrt(<double>size)) + 1
        for i in range(size):
            work[i] = x[i * stride]
        low = select(work, size, size // 2 - margin, work + n, state)
        high = select(work, size, size // 2 + margin, work + n, state)
        for i in range(n):
            v = x[i]
            work[up_to - below] = v
            below += v < low
            up_to += v <= high
        if below < k and k < up_to:             # ranks k - 1 and k are both inside
            return middle(work, up_to - below, k - below, even, work + n, state)
    return middle(x, n, k, even, work, state)


cdef struct RowTest:
    int64_t runs
    int64_t below
    int64_t above
    double statistic
    double p_value
    double cutoff


cdef double z_score(int64_t u, int64_t n0, int64_t n1, int alternative, int method,
                    bint continuity) noexcept nogil:
    cdef double var = var_runs(<double>n0, <double>n1)
    cdef double d = <double>u - mean_runs(<double>n0, <double>n1)
    if not (var > 0):
        return NAN
    if continuity and resolve(method, n0, n1) == NORMAL:
        # half a run towards what is expected
        if alternative == LESS:
            d += 0.5
        elif alternative == GREATER:
            d -= 0.5
        else:
            d -= max(min(d, 0.5), -0.5)
    return d / sqrt(var)


cdef RowTest test_row(const double *x, int64_t n, bint at_median, double cutoff, int alternative,
                      int method, bint continuity, double *work, uint64_t *state) noexcept nogil:
    cdef RowTest r
    cdef int64_t i, changes = 0, below, side, before
    if at_median:
        cutoff = median_of(x, n, work, state)
    below = before = x[0] < cutoff
    for i in range(1, n):
        side = x[i] < cutoff
        below += side
        changes += side ^ before
        before = side
    r.runs = changes + 1
    r.below = below
    r.above = n - below
    r.cutoff = cutoff
    r.statistic = z_score(r.runs, r.below, r.above, alternative, method, continuity)
    r.p_value = runs_p_value(r.runs, r.below, r.above, alternative, method, continuity)
    return r


def test_one(const double[::1] x, bint at_median, double cutoff, int alternative, int method,
             bint continuity):
    """Test one sequence; return the index of the first value that is not finite, or a tuple.

    The tuple holds statistic, p-value, runs, values below, values above, cut-off.
    """
    cdef int64_t n = x.shape[0], bad
    cdef uint64_t state = FACTOR
    cdef double *work = <double *>allocate(3 * n, sizeof(double))
    cdef RowTest r
    if work == NULL:
        raise MemoryError(f"no memory to test {n} values")
    with nogil:
        bad = first_not_finite(x)
        if bad < 0:
            r = test_row(&x[0], n, at_median, cutoff, alternative, method, continuity, work,
                         &state)
        free(work)
    if bad >= 0:
        return bad
    return r.statistic, r.p_value, r.runs, r.below, r.above, r.cutoff


def test_rows(const double[:, ::1] x, bint at_median, double[::1] cutoffs, int alternative,
              int method, bint continuity, double[::1] work, double[:, ::1] floats,
              int64_t[:, ::1] counts):
    """Test each row of finite `x`.

    Parameters
    ----------
    x : (rows, n) IN
    at_median : whether to cut each row at its median
    cutoffs : (rows,) IN, or OUT if `at_median`
    work : (3 n,) scratch
    floats : (2, rows) OUT: statistic, p-value
    counts : (3, rows) OUT: runs, below, above
    """
    cdef Py_ssize_t i
    cdef uint64_t state = FACTOR
    cdef RowTest r
    with nogil:
        for i in range(x.shape[0]):
            r = test_row(&x[i, 0], x.shape[1], at_median, cutoffs[i], alternative, method,
                         continuity, &work[0], &state)
            floats[0, i] = r.statistic
            floats[1, i] = r.p_value
            counts[0, i] = r.runs
            counts[1, i] = r.below
            counts[2, i] = r.above
            cutoffs[i] = r.cutoff
