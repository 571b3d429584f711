"""The Amortized Monoid Tree Aggregator over a key-value store (paper AMTA, 4.2 with 4.1.5 and 5.1), in compiled code.

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines and O(log n / shift) fetches; O(log n) partials in memory. The algorithms are those of
sluicegate.engines.amta, so both give the same bits.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.base cimport Leaves, ask
from sluicegate.engines.paged.pages cimport LEVELS, Paged
from sluicegate.partials.kernels cimport Any, combine_by, copy_by, width_of
from sluicegate.partials.program cimport Program, Slot, combine, copy

cdef enum:
    KEPT_FROM = 1  # all levels are

cdef Any any_op


cdef class KvsAmta

ctypedef fused Forest:
    KvsAmta

ctypedef fused Op:
    Any


@cython.final
cdef class KvsAmta(Paged):
    """Leaves head … tail − 1, their forest in pages, its stack and its result pair."""

    cdef int depth  # levels that hold a node
    cdef int stacked
    cdef bint has_right
    cdef bint has_base
    cdef bint stale  # the newest leaf has changed since R0 and R1 were taken
    cdef Slot* left  # R0
    cdef Slot* right  # R1: always base and then the newest leaf
    cdef Slot* base_of_right
    cdef Slot* stack

    def __dealloc__(self):
        free(self.left)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Paged.setup(self, p, limit)
        self.left = <Slot*> calloc((3 + LEVELS) * p.width, sizeof(Slot))
        if self.left == NULL:
            raise MemoryError(f"kvs_amta: no memory for {3 + LEVELS} partials of {p.width} slots")
        self.right = self.left + p.width
        self.base_of_right = self.right + p.width
        self.stack = self.base_of_right + p.width
        return 0

    # the shape

    cdef int64_t end(self, int level) noexcept nogil:
        return ((self.tail + 1) >> level) - 1

    cdef int64_t parent_made_by(self, int level, int64_t index) noexcept nogil:
        """A pair gets its parent when the next pair of its level begins."""
        cdef int64_t pair = (index >> 1) - 1
        return -1 if index & 1 or pair < self.head >> (level + 1) else pair

    # insertion and eviction

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Insert a leaf (Algorithm 3). Raises StoreError where the store is behind and fails: nothing has changed."""
        cdef bint begun
        self.make_room(self.tail)
        begun = begins(self, 0, self.tail)
        copy(self.p, self.node(0, self.tail), leaf)
        if begun:
            fill(self, 0, self.tail)
        insert(self, any_op)
        if self.leaving:
            with gil:
                self.seal_pages()
        self.lost = self.lost or self.faulted
        return 0

    cdef void touched(self) noexcept nogil:
        self.stale = True

    cdef void pop_to(self, int64_t head) noexcept nogil:
        """Algorithms 6 and 7. Where the page of the head's successor cannot be had: faulted, and evicted."""
        evict_to(self, any_op, head)
        self.lost = self.lost or self.faulted

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        cdef int64_t before = self.head
        cdef int answer = evict_prefix(self, any_op, leaves, context)
        self.lost = self.lost or (self.faulted and self.head > before)
        return answer

    cdef void recompute(self) noexcept nogil:
        measure(self)
        rebuild(self, any_op)
        self.lost = self.lost or self.faulted

    # answers

    cdef const Slot* total(self) noexcept nogil:
        return total_of(self, any_op)

    cdef const Slot* rest(self) noexcept nogil:
        return rest_of(self, any_op)

    cdef int64_t bytes(self) noexcept nogil:
        return Paged.bytes(self) + (3 + LEVELS) * self.p.width * <int64_t> sizeof(Slot)

    cdef const Slot* result(self, int side) noexcept nogil:
        return result_of(self, any_op, side)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        Paged.finish(self, left, right)
        self.recompute()
        if self.faulted:
            raise self.error
        if left != NULL:
            take_over(self, any_op, left, right)
        return 0


# what the forest asks

cdef inline Slot* spot(KvsAmta self, int level, int64_t index, int w) noexcept nogil:
    return self.node(level, index)


cdef inline bint leave(KvsAmta self, int64_t head, bint one) noexcept nogil:
    if self.faulted or self.move_head(head) < 0:
        self.head, self.lost = head, True
        return False
    return True


cdef inline bint begins(KvsAmta self, int level, int64_t index) noexcept nogil:
    """Whether a page begins with this node; it is the newest of its tier then."""
    if self.starts == 0 or self.bits[level] != self.shift:
        return False
    return self.begin_page(self.tier_of[level], index >> self.shift)


cdef inline void fill(KvsAmta self, int level, int64_t index) noexcept nogil:
    self.fill(self.tier_of[level], index)


include "sluicegate/engines/amta_forest.pxi"
