"""The recalculating oracle in compiled code.

Fact card: FIFO; any associative operation; insert and evict O(1), a query O(n); n partials; the baseline of every
paper.

Recalc: keeps leaves in a queue and recalculates every answer from them, oldest first.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from sluicegate.engines.queued cimport Queued, drop_before
from sluicegate.memory.chunks cimport Queue, at, clear
from sluicegate.partials.program cimport Slot, combine, copy


@cython.final
cdef class Recalc(Queued):
    """Leaves head … tail − 1 and nothing else."""

    cdef int push(self, const Slot* leaf) except -1 nogil:
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        self.tail += 1
        return 0

    cdef void pop(self) noexcept nogil:
        self.head += 1
        drop_before(&self.pool, &self.queue, self.head)

    cdef int coarsen(self) except -1 nogil:
        """Fold pairs into a new queue under the coarser indices; the old one's chunks return to the free list."""
        cdef Queue fine = self.queue
        cdef int64_t index, first = self.head, end = self.tail
        memset(&self.queue, 0, sizeof(Queue))
        self.queue.lowest = fine.lowest
        self.head = self.tail = first >> 1
        for index in range(first, end):
            if index & 1 and index > first:
                self.join(at(&fine, self.p.width, index))
            else:
                self.push(at(&fine, self.p.width, index))
        clear(&self.pool, &fine)
        free(fine.chunk)
        return 0

    cdef const Slot* total(self) noexcept nogil:
        return self.fold(self.head, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        return self.fold(self.head + 1, self.spare + self.p.width)

    cdef const Slot* fold(self, int64_t first, Slot* out) noexcept nogil:
        """The leaves from `first` on, oldest first; NULL: there are none."""
        cdef int64_t index
        if first >= self.tail:
            return NULL
        copy(self.p, out, self.leaf(first))
        for index in range(first + 1, self.tail):
            combine(self.p, out, out, self.leaf(index))
        return out
