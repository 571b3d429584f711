"""The logarithmic Monoid Tree Aggregator over a key-value store (paper AMTA, 4.1 with 4.1.5 and 5.1), in compiled code.

Fact card: FIFO; associative operation; insert, eviction of any length O(log n), query O(1): one combine;
O(log n / shift) fetches for an eviction; O(log n) partials in memory. Nodes are those of sluicegate.engines.log_mta, so
both give the same bits.

Level l holds nodes head >> l … (tail − 1) >> l, up to `top`, which is one pair. The pages of higher levels are begun
all the same, so that every page before the newest of its tier is in the store; their nodes are set when they come into
use.
"""

cimport cython
from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Leaves, ask
from sluicegate.engines.paged.pages cimport Paged
from sluicegate.partials.program cimport Slot, combine, copy


cdef class KvsLogMta

ctypedef fused Tree:
    KvsLogMta


@cython.final
cdef class KvsLogMta(Paged):
    """Leaves head … tail − 1 and the tree above them, in pages."""

    cdef int top

    # the shape

    cdef int64_t end(self, int level) noexcept nogil:
        return ((self.tail - 1) >> level) + 1

    cdef int64_t parent_made_by(self, int level, int64_t index) noexcept nogil:
        """A leaf begins a page only where all bits below it are 0, or where a level begins."""
        if level == 0 and index & ((1LL << self.shift) - 1) and index & (index - 1):
            return -1
        return index >> 1 if index > 0 else -1

    # Algorithm 1

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Append a leaf, then combine the pairs above it up to the root; a new root gets both sides.

        Raises StoreError, and nothing has changed, where the store is behind and fails.
        """
        cdef int before
        self.make_room(self.tail)
        before = self.top
        self.append(leaf)
        self.tail += 1
        set_above(self, before)
        if self.leaving:
            with gil:
                self.seal_pages()
        if self.faulted:
            self.lost = True
        return 0

    cdef void append(self, const Slot* leaf) noexcept nogil:
        """The leaf, and the pages that begin with it; their nodes have a value before they come into use."""
        cdef int k, t
        cdef int64_t index
        for k in range(self.starts):
            t = self.start_tier[k]
            index = self.tail >> (t * self.shift)
            if self.begin_page(t, index >> self.shift):
                copy(self.p, self.node(t * self.shift, index), leaf)
                self.fill(t, index)
        copy(self.p, self.node(0, self.tail), leaf)

    cdef void touched(self) noexcept nogil:
        if not self.faulted:
            set_lasts(self)
        self.lost = self.lost or self.faulted

    # Algorithm 2

    cdef void pop_to(self, int64_t head) noexcept nogil:
        """Evict a bulk. Where its successor's page cannot be had: faulted, and evicted."""
        if head > self.head:
            self.drop_to(head)

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        return evict_prefix(self, leaves, context)

    cdef void drop_to(self, int64_t head) noexcept nogil:
        """Move the head, then set the first node of each level anew."""
        if self.faulted:
            self.head = head
            self.lost = True
        elif self.move_head(head) < 0:
            self.lost = True
        elif head == self.tail:
            self.top = 0
        else:
            measure(self)
            set_firsts(self)

    cdef void recompute(self) noexcept nogil:
        """Both sides of the tree, from the leaves up."""
        self.top = 0
        if self.head == self.tail:
            return
        set_above(self, 0)

    # answers

    cdef const Slot* total(self) noexcept nogil:
        return total_of(self)

    cdef const Slot* rest(self) noexcept nogil:
        return rest_of(self)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """All follows from the leaves and the pages."""
        Paged.finish(self, left, right)
        self.recompute()
        if self.faulted:
            raise self.error
        return 0


include "sluicegate/engines/log_tree.pxi"
