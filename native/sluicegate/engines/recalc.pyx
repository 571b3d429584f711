"""The recalculating oracle in compiled code.

Fact card: FIFO; any associative operation; insert and evict O(1), a query O(n); n partials; the baseline of every
paper.

Recalc: keeps leaves in a queue and recalculates every answer from them, oldest first.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from sluicegate.engines.base cimport Engine
from sluicegate.memory.chunks cimport Pool, Queue, at, clear, drop, held, release, reserve, ring_bytes, shape_by
from sluicegate.partials.program cimport Program, Slot, combine, copy


@cython.final
cdef class Recalc(Engine):
    """Leaves head … tail − 1 and nothing else."""

    cdef Pool pool
    cdef Queue leaves

    def __dealloc__(self):
        clear(&self.pool, &self.leaves)
        release(&self.pool)
        free(self.leaves.chunk)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        memset(&self.leaves, 0, sizeof(Queue))
        shape_by(&self.pool, p.width, 4 if limit else 3, 4 if limit else 8, False)
        return 0

    cdef int push(self, const Slot* leaf) except -1 nogil:
        if reserve(&self.pool, &self.leaves, self.tail) < 0:
            with gil:
                raise MemoryError(f"recalc: no memory for leaf {self.tail}")
        copy(self.p, self.leaf(self.tail), leaf)
        self.tail += 1
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        cdef Slot* newest = self.leaf(self.tail - 1)
        combine(self.p, newest, newest, reading)

    cdef void pop(self) noexcept nogil:
        self.head += 1
        drop(&self.pool, &self.leaves, self.head)

    cdef int coarsen(self) except -1 nogil:
        """Fold pairs into a new queue under the coarser indices; the old one's chunks return to the free list."""
        cdef Queue fine = self.leaves
        cdef int64_t index, first = self.head, end = self.tail
        memset(&self.leaves, 0, sizeof(Queue))
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
            combine(self.p, out, out, at(&self.leaves, self.p.width, index))
        return out

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.leaves, self.p.width, index)

    cdef int64_t bytes(self) noexcept nogil:
        return Engine.bytes(self) + held(&self.pool) + ring_bytes(&self.leaves)

    cdef int begin(self, int64_t head) except -1:
        clear(&self.pool, &self.leaves)
        return Engine.begin(self, head)
