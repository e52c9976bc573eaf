# A rule for Python, and many streams under one.

from libc.stdint cimport int64_t

from fastal._core.state cimport State

cdef class Rule:
    cdef State state
    cdef readonly tuple spec
    cdef list levels            # that the runs tests borrow
    cdef bint busy
    cdef int check(self) except -1
    cdef int refuse(self, int status, double value) except -1
    cdef int admit(self, const double[::1] values, int64_t room) except -1
