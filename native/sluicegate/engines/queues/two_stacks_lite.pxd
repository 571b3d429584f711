"""Two-Stacks Lite: elements head … split − 1 are the front, each the partial up to split; the others are leaves."""

from libc.stdint cimport int64_t

from sluicegate.engines.queues.lite cimport Lite
from sluicegate.partials.program cimport Slot


cdef class TwoStacksLite(Lite):
    cdef int64_t split
    cdef bint has_back
    cdef Slot* back  # the partial of leaves split … tail − 1

    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil
