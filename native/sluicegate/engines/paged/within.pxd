"""Readings through KVS AMTA while head and tail each stay within a page: nothing is begun, sealed or fetched meanwhile.

In a page every node has a place of its own (paged.pxd), so the loop needs no look at the tiers. Where at least one page
lies between head and tail, the forest is deeper than a page is: the leftmost tree neither grows nor falls before one of
them leaves its page. The combinations are those of single calls, operand for operand, in their order.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Block
from sluicegate.partials.kernels cimport Op, combine_by, copy_by, width_of
from sluicegate.engines.paged.kvs_amta cimport KvsAmta
from sluicegate.partials.program cimport Slot


cdef inline int64_t stretch_within(KvsAmta self, const Block* block, int64_t done) noexcept nogil:
    """How many readings from `done` on leave both ends in their pages, one leaving at most for each that comes."""
    cdef int64_t page = <int64_t> 1 << self.shift, offset = self.tail & (page - 1), n, last
    if block.jump > 1 or offset == 0 or not self.has_right or self.faulted or self.uneasy or self.stale:
        return 0
    if (self.head >> self.shift) + 2 > self.tail >> self.shift or self.tier[0].before == NULL:
        return 0
    n = min(page - 2 - offset, block.n - done)  # the last two leaves of a page may deepen the forest
    last = self.head | ((page >> 1) - 1)  # with the middle of the page the next one is asked for
    return n if n <= 0 or block.heads[done + n - 1] <= last else readings_to(block, done, n, last)


cdef inline int64_t readings_to(const Block* block, int64_t done, int64_t n, int64_t last) noexcept nogil:
    """How many of n readings leave the head at `last` or before, where not all do."""
    cdef int64_t some = 0, middle
    while n - some > 1:
        middle = (some + n) >> 1
        if block.heads[done + middle - 1] <= last:
            some = middle
        else:
            n = middle
    return some


cdef inline void run_within(KvsAmta self, Op op, const Block* block, int64_t done, int64_t n) noexcept nogil:
    """Push, pop and total for n readings, of which `stretch_within` has spoken."""
    cdef int w = width_of(op, self.p)
    cdef int64_t page = <int64_t> 1 << self.shift, offset = self.tail & (page - 1), i
    cdef Slot* newest = self.tier[0].tail.heap
    cdef Slot* before = self.tier[0].before.heap
    cdef Slot* oldest = self.node(0, self.head) - (page | (self.head & (page - 1))) * w
    cdef const Slot* leaf = block.leaves + done * w
    for i in range(done, done + n):
        copy_by(op, self.p, newest + (page | offset) * w, leaf)
        parents_within(self, op, newest, before, offset)
        copy_by(op, self.p, self.base_of_right, self.right)
        combine_by(op, self.p, self.right, self.base_of_right, leaf)
        if block.heads[i] > self.head:
            pop_within(self, op, oldest)
        if block.totals != NULL:
            combine_by(op, self.p, block.totals + i * w, self.left, self.right)
        offset += 1
        leaf += w
    self.tail += n
    self.has_base = True


cdef inline void parents_within(KvsAmta self, Op op, Slot* newest, Slot* before, int64_t offset) noexcept nogil:
    """The parents that a leaf completes: a pair's when the next pair begins, so a level's last in a page comes late."""
    cdef int w = width_of(op, self.p)
    cdef int64_t begun = offset + 2, size = <int64_t> 1 << self.shift, node
    cdef Slot* heap = newest
    while not begun & 1:
        begun >>= 1
        size >>= 1
        node = size | (begun - 2)
        if begun == 1:
            node = size | (size - 1)
            heap = before
        combine_by(op, self.p, heap + node * w, heap + 2 * node * w, heap + (2 * node + 1) * w)


cdef inline void pop_within(KvsAmta self, Op op, const Slot* heap) noexcept nogil:
    """Algorithms 6 and 7: the next head is neither the first of its page nor in the leftmost tree's last place."""
    cdef int w = width_of(op, self.p), level = 0
    cdef int64_t page = <int64_t> 1 << self.shift, node
    cdef Slot* top
    self.head += 1
    self.stacked -= 1
    top = self.stack + self.stacked * w
    copy_by(op, self.p, self.left, top)
    node = page | (self.head & (page - 1))
    while not (node >> level) & 1:
        level += 1
    while level > 0:
        level -= 1
        if self.stacked:
            combine_by(op, self.p, top, heap + ((node >> level) + 1) * w, top - w)
        else:
            copy_by(op, self.p, top, heap + ((node >> level) + 1) * w)
        self.stacked += 1
        top += w
