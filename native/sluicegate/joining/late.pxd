"""Late readings of a window of buckets: a few buckets of their own, in order of time, beside the others."""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport View
from sluicegate.partials.program cimport Program, Slot

cdef enum:
    MOST_LATE = 32  # sluicegate.constants.MOST_LATE


cdef class Late:
    cdef Program* p
    cdef const double* centers
    cdef int n  # buckets
    cdef Slot* buckets  # NULL: no reading came late yet; after them room for six partials
    cdef readonly int64_t joined  # late readings so far that belonged to the window

    cdef Slot* at(self, int k) noexcept nogil
    cdef int add(self, const Slot* reading, int64_t time, int64_t cutoff) noexcept nogil
    cdef void evict(self, int64_t cutoff) noexcept nogil
    cdef int64_t bytes(self) noexcept nogil
    cdef void add_to(self, View* v) noexcept nogil
