# The exact distribution of the number of runs, and p-values.
#
# Two layers: `cdef ... noexcept nogil` functions hold the mathematics, `def` functions loop them
# over memoryviews that the caller allocates. Arguments are not validated here.

from libc.math cimport INFINITY, NAN, fabs, frexp, log, log1p, sqrt
from libc.stdint cimport int64_t

from fastal._core.doubledouble cimport atanh_ratio, dd, dd_add, dd_exp, dd_scale, two_sum

# The choice of `auto`, for the documentation and tests.
AUTO_EXACT_TOTAL = EXACT_TOTAL
AUTO_EXACT_COUNT = EXACT_COUNT

# ---------------------------------------------------------------------------------------------
# Logarithms of factorials
# ---------------------------------------------------------------------------------------------

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


cdef dd log_even_mass(int64_t k, int64_t n0, int64_t n1) noexcept nogil:
    # log f(k), written with 2 (n0-1)! (n1-1)! n0! n1! = 2 (n0! n1!)^2 / (n0 n1)
    cdef dd r = dd_add(log_factorial(n0), log_factorial(n1))
    r = dd_add(r, dd_scale(log_factorial(k - 1), -1))
    r = dd_add(dd_scale(r, 2), dd_scale(log_factorial(n0 + n1), -1))
    r = dd_add(r, dd_scale(log_factorial(n0 - k), -1))
    r = dd_add(r, dd_scale(log_factorial(n1 - k), -1))
    r = dd_add(r, dd_scale(dd_add(log_dd(<double>n0), log_dd(<double>n1)), -1))
    return dd_add(r, LOG_2)


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


cdef double runs_p_value(int64_t u, int64_t n0, int64_t n1, int alternative,
                         int method) noexcept nogil:
    cdef double sd, d, tail
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
        return normal_cdf(d / sd)
    if alternative == GREATER:
        return normal_cdf(-d / sd)
    return min(1.0, 2 * normal_cdf(-fabs(d) / sd))


cdef double normal_quantile(double p) noexcept nogil:
    # Bisection; for a level, and only to guess how far ahead to look.
    cdef double lo = -40, hi = 40, mid
    while hi - lo > 1e-9:
        mid = 0.5 * (lo + hi)
        if normal_cdf(mid) < p:
            lo = mid
        else:
            hi = mid
    return lo


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


def p_value(int64_t u, int64_t n0, int64_t n1, int alternative, int method):
    """Return the p-value of u runs."""
    return runs_p_value(u, n0, n1, alternative, method)


def resolved_method(int64_t n0, int64_t n1):
    """Return what `auto` chooses: 1 = exact, 2 = normal."""
    return resolve(AUTO, n0, n1)
