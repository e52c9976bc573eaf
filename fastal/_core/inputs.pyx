# Arrays that come from outside, on their way to a model: one pass each, without temporary arrays.
#
# For a pool of 100 points the same in NumPy is 100,000 instructions of looking up what to do.

from libc.math cimport fabs
from libc.stdint cimport int64_t

from fastal._core.numeric cimport first_not_finite

cdef enum:
    # rows at a time, so that they stay in the cache for the next feature
    BLOCK = 1024
    # more numbers are done without the GIL
    MANY = 10_000


cdef bint scale_all(const double[:, :] X, double one, const double[::1] each,
                    double[:, ::1] out) noexcept nogil:
    cdef int64_t n = X.shape[0], low = 0, high, i, f
    cdef double weight = one
    cdef bint finite = True
    while low < n:
        high = min(n, low + BLOCK)
        for f in range(X.shape[1]):
            if each is not None:
                weight = each[f]
            for i in range(low, high):
                out[f, i] = X[i, f] * weight
            finite &= first_not_finite(&out[f, low], high - low) < 0
        low = high
    return finite


def scale_rows(const double[:, :] X not None, per_length, double[:, ::1] out not None):
    """Write inputs over length scales, feature by feature; return whether all are finite.

    X : (n, d).  per_length : the reciprocal of one length scale, or of each, (d,).  out : (d, n).
    """
    cdef const double[::1] each = None
    cdef double one = 0
    cdef bint finite
    if isinstance(per_length, float):
        one = per_length
    else:
        each = per_length
        if each.shape[0] != X.shape[1]:
            raise ValueError(f"there are {each.shape[0]} length scales of {X.shape[1]} features")
    if out.shape[0] != X.shape[1] or out.shape[1] != X.shape[0]:
        raise ValueError(f"`out` must have shape ({X.shape[1]}, {X.shape[0]})")
    if X.shape[0] * X.shape[1] > MANY:
        with nogil:
            finite = scale_all(X, one, each, out)
    else:
        finite = scale_all(X, one, each, out)
    return finite


cdef int64_t farthest_from(const double[::1] y, double center) noexcept nogil:
    cdef int64_t i, found = 0
    cdef double distance, largest = -1
    for i in range(y.shape[0]):
        distance = fabs(y[i] - center)
        if distance > largest:
            largest, found = distance, i
    return found


def farthest(const double[::1] y not None, double center):
    """Return the place of the number that is farthest from `center`, the first among equals."""
    cdef int64_t found
    if y.shape[0] > MANY:
        with nogil:
            found = farthest_from(y, center)
    else:
        found = farthest_from(y, center)
    return found
