# The runs test of whole sequences: the median in linear time, counts, and Mann-Kendall's pairs.
#
# Layers as in distribution.pyx. Arguments are not validated here, except that test_one refuses what
# is not finite.

from libc.math cimport INFINITY, NAN, cbrt, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from fastal._core.distribution cimport mean_runs, runs_p_value, var_runs
from fastal._core.numeric cimport first_not_finite, midpoint

# Pivots begin anew in every process: no data can be made for them beforehand.
cdef uint64_t PIVOTS = <uint64_t><int64_t>hash(b"fastal: pivots") | 1


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


# Where to cut: at a given number; at the median; between the two values of two-valued data, and at
# the median of all others.
cdef enum Cut:
    CUT_FIXED = 0
    CUT_MEDIAN = 1
    CUT_SYMBOLS = 2

cdef bint two_valued(const double *x, int64_t n, double *high) noexcept nogil:
    # Are there exactly two different values? The larger one of them.
    cdef int64_t i = 1
    cdef double a = x[0], b
    while i < n and x[i] == a:
        i += 1
    if i == n:
        return False
    b = x[i]
    while i < n and (x[i] == a or x[i] == b):
        i += 1
    high[0] = max(a, b)
    return i == n


cdef struct RowTest:
    int64_t runs
    int64_t below
    int64_t above
    double statistic
    double p_value
    double cutoff


cdef double z_score(int64_t u, int64_t n0, int64_t n1) noexcept nogil:
    cdef double var = var_runs(<double>n0, <double>n1)
    if not (var > 0):
        return NAN
    return (<double>u - mean_runs(<double>n0, <double>n1)) / sqrt(var)


cdef RowTest test_row(const double *x, int64_t n, int cut, double cutoff, int alternative,
                      int method, double *work, uint64_t *state) noexcept nogil:
    cdef RowTest r
    cdef int64_t i, changes = 0, below = 0, side, before
    cdef double high = 0
    if cut != CUT_FIXED:
        cutoff = median_of(x, n, work, state)
    if cut == CUT_SYMBOLS and two_valued(x, n, &high):
        # the median parts them, unless it is the smaller one
        for i in range(n):
            below += x[i] < cutoff
        if below == 0:
            cutoff = high
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
    r.statistic = z_score(r.runs, r.below, r.above)
    r.p_value = runs_p_value(r.runs, r.below, r.above, alternative, method)
    return r


def test_one(const double[::1] x, int cut, double cutoff, int alternative, int method):
    """Test one sequence; return the index of the first value that is not finite, or a tuple.

    The tuple holds statistic, p-value, runs, values below, values above, cut-off. `cut`: 0 at
    `cutoff`, 1 at the median, 2 between the two values of two-valued data and else at the median.
    """
    cdef int64_t n = x.shape[0], bad
    cdef uint64_t state = PIVOTS
    cdef double *work = <double *>malloc((3 * n + 1) * sizeof(double))
    cdef RowTest r
    if work == NULL:
        raise MemoryError(f"no memory to test {n} values")
    with nogil:
        bad = first_not_finite(&x[0], n)
        if bad < 0:
            r = test_row(&x[0], n, cut, cutoff, alternative, method, work, &state)
        free(work)
    if bad >= 0:
        return bad
    return r.statistic, r.p_value, r.runs, r.below, r.above, r.cutoff


def test_rows(const double[:, ::1] x, int cut, double[::1] cutoffs, int alternative, int method,
              double[::1] work, double[:, ::1] floats, int64_t[:, ::1] counts):
    """Test each row of finite `x`.

    Parameters
    ----------
    x : (rows, n) IN
    cut : as in `test_one`
    cutoffs : (rows,) IN, and OUT
    work : (3 n,) scratch
    floats : (2, rows) OUT: statistic, p-value
    counts : (3, rows) OUT: runs, below, above
    """
    cdef Py_ssize_t i
    cdef uint64_t state = PIVOTS
    cdef RowTest r
    with nogil:
        for i in range(x.shape[0]):
            r = test_row(&x[i, 0], x.shape[1], cut, cutoffs[i], alternative, method, &work[0],
                         &state)
            floats[0, i] = r.statistic
            floats[1, i] = r.p_value
            counts[0, i] = r.runs
            counts[1, i] = r.below
            counts[2, i] = r.above
            cutoffs[i] = r.cutoff
