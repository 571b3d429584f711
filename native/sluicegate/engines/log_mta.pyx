"""The logarithmic Monoid Tree Aggregator in compiled code.

Fact card: FIFO; associative operation; insert, eviction of any length O(log n), query O(1): one combine; 2n partials in
a chunked queue a level. Source: paper AMTA, Algorithms 1 and 2, with these slips of theirs mended: a node is there by
its absolute index, never by its value; a new root gets the old root pair too; a policy that holds for the whole window
empties it; a level is dropped when its pair is. The readable twin is tests/native/twins/log_mta.py.

Leaf i's ancestor at level l is node i >> l; the topmost level is one pair. Level l holds nodes head >> l … (tail − 1)
>> l, each its children combined, the first and the last included.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from sluicegate.engines.base cimport Engine, Leaves, ask
from sluicegate.memory.chunks cimport (
    Pool, Queue, at, clear, drop, give_back, has_room, release, reserve, ring_bytes, shape,
)
from sluicegate.partials.program cimport Program, Slot, combine, copy

cdef enum:
    SHORTEST = 5  # chunks of 2^5 nodes
    KEPT = 6  # of a kind: its levels give back and take in turns


cdef enum:
    LEVELS = 64


cdef class LogMta

ctypedef fused Tree:
    LogMta


@cython.final
cdef class LogMta(Engine):
    """Leaves head … tail − 1 and the tree above them."""

    cdef Pool pool
    cdef Queue level[LEVELS]
    cdef int top  # the lowest level that is one pair, 0 for an empty window

    def __dealloc__(self):
        cdef int level
        for level in range(LEVELS):
            clear(&self.pool, &self.level[level])
            free(self.level[level].chunk)
        release(&self.pool)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        memset(self.level, 0, sizeof(self.level))
        shape(&self.pool, p.width)
        self.pool.least, self.pool.kept = min(self.pool.shift, SHORTEST), KEPT
        self.top = 0
        return 0

    cdef inline Slot* node(self, int level, int64_t index) noexcept nogil:
        return at(&self.level[level], self.p.width, index)

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return self.node(0, index)

    cdef inline int make_room(self, int level, int64_t index) except -1 nogil:
        cdef Queue* queue = &self.level[level]
        if not has_room(queue, index) and reserve(&self.pool, queue, index) < 0:
            with gil:
                raise MemoryError(f"log_mta: no memory for node {index} of level {level}")
        return 0

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Algorithm 1: append a leaf, then combine the pairs above it up to the root; a new root gets both sides."""
        cdef int level = 0, before = self.top
        cdef int64_t index = self.tail
        self.make_room(0, index)
        while self.head >> (level + 1) < index >> (level + 1):  # room for all that may change, before anything does
            level += 1
            if level > before:
                self.make_room(level, self.head >> level)
            self.make_room(level, index >> level)
        copy(self.p, self.node(0, index), leaf)
        self.tail += 1
        set_above(self, before)
        return 0

    cdef void touched(self) noexcept nogil:
        set_lasts(self)

    cdef void pop_to(self, int64_t head) noexcept nogil:
        if head > self.head:
            self.drop_to(head)

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        return evict_prefix(self, leaves, context)

    cdef void drop_to(self, int64_t head) noexcept nogil:
        """Move the head, then set the first node of each level anew; chunks before it return to the free list."""
        cdef int level, before = self.top
        cdef bint crossed = (head >> self.level[0].shift) != (self.head >> self.level[0].shift)
        self.head = head
        if head == self.tail:
            self.top = 0
        else:
            measure(self)
        set_firsts(self)
        for level in range(before + 1 if crossed else 0):
            drop(&self.pool, &self.level[level], head >> level)
        for level in range(self.top + 1, before + 1):
            clear(&self.pool, &self.level[level])
        if self.pool.surplus:
            give_back(&self.pool)

    cdef int coarsen(self) except -1 nogil:
        """Level eviction: the level above the leaves becomes the leaves."""
        cdef int level
        cdef Queue lowest = self.level[0]
        cdef int64_t last = self.tail - 1
        self.make_room(1, self.head >> 1)
        self.make_room(1, last >> 1)
        set_pair(self, 1, self.head >> 1)
        set_pair(self, 1, last >> 1)
        clear(&self.pool, &lowest)
        for level in range(LEVELS - 1):
            self.level[level] = self.level[level + 1]
        self.level[LEVELS - 1] = lowest
        self.head, self.tail = self.head >> 1, (last >> 1) + 1
        self.top = 0
        measure(self)
        return 0

    cdef const Slot* total(self) noexcept nogil:
        return total_of(self)

    cdef const Slot* rest(self) noexcept nogil:
        return rest_of(self)

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t rings = 0
        cdef int level
        for level in range(LEVELS):
            rings += ring_bytes(&self.level[level])
        return Engine.bytes(self) + self.pool.held + rings

    cdef int begin(self, int64_t head) except -1:
        cdef int level
        for level in range(LEVELS):
            clear(&self.pool, &self.level[level])
        self.top = 0
        return Engine.begin(self, head)


include "log_tree.pxi"
