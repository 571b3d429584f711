"""What the Lite engines have in common: one partial an element, and of its leaf only the slots that are asked for.

An element is a leaf at first and an aggregate later. `leaf(index)` gives the `kept` first slots of a leaf; none:
invalid.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from sluicegate.memory.chunks cimport Pool, Queue, at, has_room
from sluicegate.partials.program cimport Slot
from sluicegate.engines.queued cimport Queued, drop_before


cdef class Lite(Queued):
    cdef int kernel  # the operator, one of kernels.pxd
    cdef int kept
    cdef Pool kept_pool
    cdef Queue kept_leaves
    cdef bint has_back
    cdef Slot* back  # where `has_back`: the partial of the newest leaves, which the engine says

    cdef Slot* element(self, int64_t index) noexcept nogil
    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil
    cdef int reserve_kept(self) except -1 nogil


cdef inline int make_room_for(Lite self, const Slot* leaf) except -1 nogil:
    """For the next element; what is kept of its leaf stands there then."""
    if not has_room(&self.queue, self.tail):
        self.make_room()
    if self.kept:
        if not has_room(&self.kept_leaves, self.tail):
            self.reserve_kept()
        if self.kept == 1:
            at(&self.kept_leaves, 1, self.tail)[0] = leaf[0]
        else:
            memcpy(at(&self.kept_leaves, self.kept, self.tail), leaf, self.kept * sizeof(Slot))
    return 0


cdef inline void drop_evicted(Lite self) noexcept nogil:
    """Give back what lies wholly before the head."""
    if self.pool.surplus or self.queue.begin < self.head >> self.queue.shift:
        drop_before(&self.pool, &self.queue, self.head)
    if self.kept and (self.kept_pool.surplus or self.kept_leaves.begin < self.head >> self.kept_leaves.shift):
        drop_before(&self.kept_pool, &self.kept_leaves, self.head)
