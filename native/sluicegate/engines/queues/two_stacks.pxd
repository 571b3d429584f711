"""Two-Stacks: leaves head … split − 1 are the front, each with the partial up to split; the others are the back."""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.engines.queued cimport Queued


cdef class TwoStacks(Queued):
    cdef int64_t split
    cdef bint has_back
    cdef Slot* back  # the partial of leaves split … tail − 1

    cdef Slot* front(self, int64_t index) noexcept nogil
    cdef void flip(self) noexcept nogil
    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil
