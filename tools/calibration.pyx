# cython: boundscheck=False, wraparound=False, cdivision=True
# Calibration of the sequential mode; make_sequential.py compiles and uses it.

from libc.stdint cimport int64_t
from libc.string cimport memset

from fastal._core.distribution cimport normal_quantile
from fastal._core.tracker cimport (
    RunsRule,
    Tracker,
    level_factor,
    tracker_free,
    tracker_new_with,
    tracker_p_value,
    tracker_push,
    tracker_reset,
)


def least_p_values(const double[:, ::1] bounds, bint weighted, bint fall,
                   const int64_t[::1] horizons, double[:, ::1] out):
    """Fill out[i, j] with the least P(U <= u) over the first horizons[j] bounds of row i.

    The p-value at T bounds is divided by w(T) if `weighted`; with `fall` it is 1 where the bounds
    did not fall. A look costs an exact tail only where
    it could lower the minimum: the level of the tracker follows the minimum.
    """
    cdef RunsRule rule
    cdef Tracker *t
    cdef int64_t i, j, k
    cdef double least, p
    memset(&rule, 0, sizeof(RunsRule))
    rule.method, rule.patience, rule.falling, rule.fall = 1, 1, weighted, fall
    rule.alpha = 1
    with nogil:
        t = tracker_new_with(rule)
        if t != NULL:
            for i in range(bounds.shape[0]):
                tracker_reset(t)
                least = 1
                t.rule.alpha = 1
                t.z_alpha = 0
                t.safe_below = t.safe_above = -1
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
