"""The logarithmic Monoid Tree Aggregator over a key-value store (paper AMTA, 4.1 with 4.1.5 and 5.1), in compiled code.

Fact card: FIFO; associative operation; insert, eviction of any length O(log n), query O(1): one combine;
O(log n / shift) fetches for an eviction; O(log n) partials in memory. Nodes are those of sluicegate.engines.log_mta, so
both give the same bits.
"""

cimport cython
from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Leaves
from sluicegate.engines.paged.pages cimport Paged
from sluicegate.partials.program cimport Slot, combine, copy


@cython.final
cdef class KvsLogMta(Paged):
    """Leaves head … tail − 1 and the tree above them, in pages."""

    # the shape

    cdef int64_t end(self, int level) noexcept nogil:
        return ((self.tail - 1) >> level) + 1

    cdef int64_t parent_made_by(self, int level, int64_t index) noexcept nogil:
        """A leaf begins a page only where all bits below it are 0, or where a level begins."""
        if level == 0 and index & ((1LL << self.shift) - 1) and index & (index - 1):
            return -1
        return index >> 1 if index > 0 else -1

    cdef inline void measure(self) noexcept nogil:
        """Find the topmost level again, from the one before."""
        cdef int64_t last = self.tail - 1
        while self.head >> (self.top + 1) < last >> (self.top + 1):
            self.top += 1
        while self.top > 0 and self.head >> self.top >= last >> self.top:
            self.top -= 1

    cdef inline void set_pair(self, int level, int64_t index) noexcept nogil:
        """A node from those of its children that are there."""
        cdef int64_t left = 2 * index, last = (self.tail - 1) >> (level - 1)
        cdef Slot* child
        if left < self.head >> (level - 1):
            copy(self.p, self.node(level, index), self.node(level - 1, left + 1))
            return
        child = self.node(level - 1, left)
        if left == last:
            copy(self.p, self.node(level, index), child)
        else:
            combine(self.p, self.node(level, index), child, child + self.p.width)

    cdef void set_firsts(self) noexcept nogil:
        """The first node of each level, from the leaves up."""
        cdef int level
        for level in range(1, self.top + 1):
            self.set_pair(level, self.head >> level)

    # Algorithm 1

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Append a leaf, then combine the pairs above it up to the root; a new root gets both sides.

        Raises StoreError, and nothing has changed, where the store is behind and fails.
        """
        cdef int before, level
        cdef int64_t index = self.tail
        self.make_room(index)
        before = self.top
        self.append(leaf)
        self.tail += 1
        self.measure()
        for level in range(1, self.top + 1):
            if level > before:
                self.set_pair(level, self.head >> level)
            self.set_pair(level, index >> level)
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

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Fold a reading into the newest leaf, then combine the pairs above it."""
        cdef Slot* newest = self.node(0, self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.touched()

    cdef void touched(self) noexcept nogil:
        cdef int level
        for level in range(1, self.top + 1 if not self.faulted else 0):
            self.set_pair(level, (self.tail - 1) >> level)
        self.lost = self.lost or self.faulted

    # Algorithm 2

    cdef void pop(self) noexcept nogil:
        """Evict the oldest leaf as a bulk of one. Where its successor's page cannot be had: faulted, and evicted."""
        if self.head < self.tail:
            self.drop_to(self.head + 1)

    cdef void pop_to(self, int64_t head) noexcept nogil:
        if head > self.head:
            self.drop_to(head)

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """From the root down, what leaves goes whole; then combine the first pairs from the leaves up."""
        cdef int64_t head = self.tail
        cdef int answer
        if head == self.head or self.faulted:
            return -1 if self.faulted else 0
        answer = leaves(context, self.total())
        if answer == 0:
            head = self.first_kept(leaves, context)
        if answer < 0 or head < 0:
            return -1
        self.drop_to(head)
        return -1 if self.faulted else 0

    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil:
        """The first leaf that stays, where the window as a whole does not leave; −1: an error was noted."""
        cdef int level = self.top, answer
        cdef int64_t index = self.head >> level, last = (self.tail - 1) >> level
        cdef bint started = False
        while True:
            if index < last:
                answer = self.ask(started, self.node(level, index), leaves, context)
                if answer < 0:
                    return -1
                if answer == 1:
                    started = True
                    index += 1
            if level == 0:
                return index
            level -= 1
            last = min(2 * index + 1, (self.tail - 1) >> level)
            index = max(2 * index, self.head >> level)

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
            self.measure()
            self.set_firsts()

    cdef void recompute(self) noexcept nogil:
        """Both sides of the tree, from the leaves up."""
        cdef int level
        self.top = 0
        if self.head == self.tail:
            return
        self.measure()
        for level in range(1, self.top + 1):
            self.set_pair(level, self.head >> level)
            self.set_pair(level, (self.tail - 1) >> level)

    # answers

    cdef const Slot* total(self) noexcept nogil:
        """The root pair, combined."""
        cdef int64_t first = self.head >> self.top, last = (self.tail - 1) >> self.top
        if self.head == self.tail or self.faulted:
            return NULL
        if first == last:
            return self.node(self.top, first)
        combine(self.p, self.spare, self.node(self.top, first), self.node(self.top, last))
        return self.spare

    cdef const Slot* rest(self) noexcept nogil:
        """The right siblings of the oldest leaf's ancestors, from the lowest up."""
        cdef Slot* out = self.spare + self.p.width
        cdef bint some = False
        cdef int64_t index
        cdef int level
        if self.tail - self.head < 2 or self.faulted:
            return NULL
        for level in range(self.top + 1):
            index = self.head >> level
            if index & 1 or index == (self.tail - 1) >> level:
                continue
            if some:
                combine(self.p, out, out, self.node(level, index + 1))
            else:
                copy(self.p, out, self.node(level, index + 1))
            some = True
        return out

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """All follows from the leaves and the pages."""
        Paged.finish(self, left, right)
        self.recompute()
        if self.faulted:
            raise self.error
        return 0

    cdef int check(self) except -1:
        """Each node above the leaves is its children combined; reads every page for each of its levels."""
        self.repair()
        return self.check_nodes(self.top + 1 if self.head < self.tail else 0, 0)
