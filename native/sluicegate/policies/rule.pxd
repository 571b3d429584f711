"""A policy besides count and time: a built-in condition, a compiled rule, or the user's callable while it is asked."""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.policies._eviction cimport Condition


cdef class Rule:
    cdef Condition condition  # its kind is 0 where there is none
    cdef str name  # for its errors
    cdef object asked  # the user's callable, while it is asked
    cdef object raised  # what it raised
    cdef unsigned long owner  # the thread in which it is asked: that one may look at the window meanwhile

    cdef int take(self, eviction) except -1
    cdef int refuse_fall(self, const Slot* total, const double* values, int64_t count, object dimensions) except -1
    cdef int fail(self) except -1
