"""What the Lite engines have in common: one partial an element, and of its leaf only the slots that are asked for.

An element is a leaf at first and an aggregate later. `leaf(index)` gives the `kept` first slots of a leaf; none:
invalid.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Slide
from sluicegate.memory.chunks cimport Pool, Queue
from sluicegate.partials.program cimport Slot
from sluicegate.engines.queued cimport Queued


cdef class Lite(Queued):
    cdef int kernel  # the operator, one of kernels.pxd
    cdef int kept
    cdef Pool kept_pool
    cdef Queue kept_leaves

    cdef Slide slide_of(self) noexcept  # a reading that leaves no leaf behind, with the operator in the code
    cdef Slot* element(self, int64_t index) noexcept nogil
    cdef int append(self, const Slot* leaf) except -1 nogil  # as an element, and what is kept of it
    cdef void drop_oldest(self) noexcept nogil
