"""The Amortized Monoid Tree Aggregator over a key-value store (paper AMTA, 4.2 with 4.1.5 and 5.1), in compiled code.

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines and O(log n / shift) fetches; O(log n) partials in memory. The readable twin is
sluicegate.reference.engines.kvs_amta; the algorithms are sluicegate.engines.amta's, so both give the same bits.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.base cimport Leaves
from sluicegate.engines.paged.pages cimport LEVELS, Paged
from sluicegate.partials.program cimport Program, Slot, combine, copy

from sluicegate.errors import InvariantError


@cython.final
cdef class KvsAmta(Paged):
    """Leaves head … tail − 1, their forest in pages, its stack and its result pair."""

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

    cdef inline void measure(self) noexcept nogil:
        """Find the depth again, from the one before."""
        while self.head >> self.depth < ((self.tail + 1) >> self.depth) - 1:
            self.depth += 1
        while self.depth > 0 and self.head >> (self.depth - 1) >= ((self.tail + 1) >> (self.depth - 1)) - 1:
            self.depth -= 1

    cdef inline void note_failure(self) noexcept nogil:
        if self.faulted:
            self.lost = True

    # Algorithms 3 to 5: insertion

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Insert a leaf (Algorithm 3). Raises StoreError where the store is behind and fails: nothing has changed."""
        cdef int before, level
        self.make_room(self.tail)
        self.flush_deferred()
        before = self.depth
        level = self.raise_node(leaf)
        self.measure()
        if before == 0:
            self.compute_left()
        elif self.depth == before and level == before - 1:  # the leftmost tree has grown
            self.compute_left()
            self.compute_right()
        else:
            self.has_base = self.has_right
            if self.has_base:
                copy(self.p, self.base_of_right, self.right)
            self.add_newest()
        if self.leaving:
            with gil:
                self.seal_pages()
        self.note_failure()
        return 0

    cdef int raise_node(self, const Slot* leaf) noexcept nogil:
        """Append a leaf and the parents this completes; the highest level that grew."""
        cdef int level = 0
        cdef int64_t index = self.tail, pair
        cdef bint begins = self.starts > 0 and self.begin_page(0, index >> self.shift)
        cdef Slot* node
        copy(self.p, self.node(0, index), leaf)
        if begins:
            self.fill(0, index)
        self.tail += 1
        while True:
            pair = self.parent_made_by(level, index)
            if pair < 0:
                return level
            begins = self.starts > 0 and self.bits[level + 1] == self.shift and self.begin_page(
                self.tier_of[level + 1], pair >> self.shift
            )
            node = self.node(level + 1, pair)
            if index - 2 >= self.first(level):
                combine(self.p, node, self.node(level, index - 2), self.node(level, index - 1))
            else:
                copy(self.p, node, self.node(level, index - 1))
            if begins:
                self.fill(self.tier_of[level + 1], pair)
            level += 1
            index = pair

    cdef void add_newest(self) noexcept nogil:
        """R1 from its base and the newest leaf."""
        cdef Slot* newest = self.node(0, self.tail - 1)
        if self.has_base:
            combine(self.p, self.right, self.base_of_right, newest)
        else:
            copy(self.p, self.right, newest)
        self.has_right = True

    cdef inline void flush_deferred(self) noexcept nogil:
        """Take R0 and R1 anew where readings have joined the newest leaf since."""
        if not self.deferred or self.faulted:
            return
        self.deferred = False
        if self.depth == 1:
            self.compute_left()
        else:
            self.add_newest()

    cdef void compute_left(self) noexcept nogil:
        """R0 and the stack (Algorithm 4)."""
        cdef int level
        self.stacked = 0
        for level in range(self.depth - 1, -1, -1):
            self.stack_head(level)
        if self.stacked:
            combine(self.p, self.left, self.node(0, self.head), self.stack + (self.stacked - 1) * self.p.width)
        else:
            copy(self.p, self.left, self.node(0, self.head))

    cdef void compute_right(self) noexcept nogil:
        """R1 from the last pair of each level but the topmost; the newest leaf comes last by itself (Algorithm 5)."""
        cdef int level
        cdef int64_t last = self.tail - 1
        cdef Slot* pair = self.spare + 3 * self.p.width
        self.deferred = False
        self.has_right = self.depth > 1
        self.has_base = self.has_right and last & 1
        if not self.has_right:
            return
        if self.has_base:
            copy(self.p, self.base_of_right, self.node(0, last - 1))
        for level in range(1, self.depth - 1):
            last = self.end(level) - 1
            if last & 1:
                combine(self.p, pair, self.node(level, last - 1), self.node(level, last))
            else:
                copy(self.p, pair, self.node(level, last))
            if self.has_base:
                combine(self.p, self.base_of_right, pair, self.base_of_right)
            else:
                copy(self.p, self.base_of_right, pair)
                self.has_base = True
        self.add_newest()

    cdef inline void stack_head(self, int level) noexcept nogil:
        cdef int64_t index = self.head >> level
        cdef Slot* top = self.stack + self.stacked * self.p.width
        if index & 1 or index + 1 >= self.end(level):
            return
        if self.stacked:
            combine(self.p, top, self.node(level, index + 1), top - self.p.width)
        else:
            copy(self.p, top, self.node(level, index + 1))
        self.stacked += 1

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Fold a reading into the newest leaf, which has no parent yet."""
        cdef Slot* newest = self.node(0, self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.deferred = True

    cdef void touched(self) noexcept nogil:
        self.deferred = True

    # Algorithms 6 and 7: single eviction

    cdef void pop(self) noexcept nogil:
        """Evict the oldest leaf (Algorithms 6, 7). Where its successor's page cannot be had: faulted, and evicted."""
        cdef int before = self.depth, level = 0
        if self.faulted:
            self.head += 1
            self.lost = True
            return
        self.flush_deferred()
        if self.move_head(self.head + 1) < 0:
            self.lost = True
            return
        self.measure()
        if self.depth < before:
            self.rebuild()
            return
        self.stacked -= 1
        copy(self.p, self.left, self.stack + self.stacked * self.p.width)
        while level < before and not (self.head >> level) & 1:
            level += 1
        while level > 0:
            level -= 1
            self.stack_head(level)
        self.note_failure()

    cdef void rebuild(self) noexcept nogil:
        if self.head == self.tail:
            self.stacked = 0
            self.has_right = self.has_base = self.deferred = False
            return
        self.compute_left()
        self.compute_right()
        self.note_failure()

    cdef void recompute(self) noexcept nogil:
        self.measure()
        self.rebuild()

    # Algorithm 2 on each tree of the forest: bulk eviction

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Evict the longest prefix that leaves: each tree whole first, then down the first that stays."""
        cdef int64_t head
        if self.faulted:
            return -1
        self.flush_deferred()
        if self.refresh_spine() < 0:
            return -1
        head = self.first_kept(leaves, context)
        if head <= self.head:
            return 0 if head >= 0 else -1
        self.drop_to(head)
        return -1 if self.faulted else 0

    cdef void drop_to(self, int64_t head) noexcept nogil:
        """Move the head, and take R0, R1 and the stack anew."""
        if self.faulted or self.move_head(head) < 0:
            self.head = head
            self.lost = True
            return
        self.measure()
        self.rebuild()

    cdef void pop_to(self, int64_t head) noexcept nogil:
        """One by one, or, where more than about log n leave, at once: as AMTA in memory does."""
        cdef int64_t size = self.tail - self.head, singles = 1
        if head - self.head == 1:
            self.pop()
            return
        while size:
            size >>= 1
            singles += 1
        if head - self.head > singles:
            self.flush_deferred()
            self.drop_to(head)
        while self.head < head:
            self.pop()

    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil:
        cdef int level, answer
        cdef int64_t index, start
        cdef bint started = False
        for level in range(self.depth - 1, -1, -1):
            start = max((self.end(level) - 1) & ~(<int64_t> 1), self.first(level))
            for index in range(start, self.end(level)):
                answer = self.ask(started, self.node(level, index), leaves, context)
                if answer < 0:
                    return -1
                if answer == 0:
                    return self.descend(level, index, started, leaves, context)
                started = True
        return self.tail

    cdef int64_t descend(self, int level, int64_t index, bint started, Leaves leaves, void* context) noexcept nogil:
        """The first leaf that stays, below a node that cannot leave as a whole."""
        cdef int answer
        while level > 0:
            level -= 1
            index = 2 * index
            if index < self.first(level):
                index += 1
                continue
            answer = self.ask(started, self.node(level, index), leaves, context)
            if answer < 0:
                return -1
            if answer == 1:
                started = True
                index += 1
        return index

    cdef int refresh_spine(self) noexcept nogil:
        """Recompute the first node of each level from the leaves that are still there; −1: a page could not be had."""
        cdef int level
        cdef int64_t child
        cdef Slot* node
        for level in range(1, self.depth):
            child = self.first(level - 1)
            node = self.node(level, child >> 1)
            if self.faulted:
                return -1
            if child & 1:
                copy(self.p, node, self.node(level - 1, child))
            else:
                combine(self.p, node, self.node(level - 1, child), self.node(level - 1, child + 1))
        return 0

    # answers

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail or self.faulted:
            return NULL
        self.flush_deferred()
        if not self.has_right:
            return self.left
        combine(self.p, self.spare, self.left, self.right)
        return self.spare

    cdef const Slot* rest(self) noexcept nogil:
        cdef Slot* top
        if self.faulted:
            return NULL
        self.flush_deferred()
        top = self.stack + (self.stacked - 1) * self.p.width
        if not self.stacked:
            return self.right if self.has_right else NULL
        if not self.has_right:
            return top
        combine(self.p, self.spare + self.p.width, top, self.right)
        return self.spare + self.p.width

    cdef int64_t bytes(self) noexcept nogil:
        return Paged.bytes(self) + (3 + LEVELS) * self.p.width * <int64_t> sizeof(Slot)

    cdef const Slot* result(self, int side) noexcept nogil:
        if self.head == self.tail or (side == 1 and not self.has_base):
            return NULL
        self.flush_deferred()
        return self.left if side == 0 else self.base_of_right

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """The stack is a function of the pages; R0 and R1 depend on how the window came to be."""
        Paged.finish(self, left, right)
        self.recompute()
        if self.faulted:
            raise self.error
        if left == NULL:
            return 0
        copy(self.p, self.left, left)
        self.has_base = right != NULL
        if right != NULL:
            copy(self.p, self.base_of_right, right)
        if self.has_right:
            self.add_newest()
        return 0

    # invariants

    cdef int check(self) except -1:
        self.repair()
        self.flush_deferred()
        self.check_nodes(self.depth, 1)
        return self.check_stack()

    cdef int check_stack(self) except -1:
        """Compare the stack with one taken anew."""
        cdef int level, kept = self.stacked
        before = PyBytes_FromStringAndSize(<const char*> self.stack, kept * self.p.width * sizeof(Slot))
        self.stacked = 0
        for level in range(self.depth - 1, -1, -1):
            self.stack_head(level)
        if self.stacked != kept or before != PyBytes_FromStringAndSize(<const char*> self.stack, len(before)):
            raise InvariantError("the stack is not what the heads of the levels give")
        return 0
