"""The Amortized Monoid Tree Aggregator over a key-value store (paper AMTA, 4.2 with 4.1.5 and 5.1), in compiled code.

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines and O(log n / shift) fetches; O(log n) partials in memory. The readable twin is
sluicegate.reference.kvs_amta; the algorithms are sluicegate.engines.amta's, so both give the same bits.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from sluicegate.engines.base cimport Block, Engine, Leaves
from sluicegate.partials.kernels cimport ADD, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, Op, kernel_of
from sluicegate.engines.paged.pages cimport LEVELS, Paged
from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.paged.within cimport run_within, stretch_within

from sluicegate.errors import InvariantError

# tags of kernels.pxd: never read, they choose a function
cdef Any any_op
cdef Add add_op
cdef Least least_op
cdef Greatest greatest_op
cdef Merge merge_op


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
        self.kernel = kernel_of(p)
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
        """Insert a leaf (Algorithm 3). Raises StoreError, and nothing has changed, where the store is behind and fails."""
        cdef int before, level
        self.make_room(self.tail)
        self.freshen()
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
                self.hand_over()
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

    cdef inline void freshen(self) noexcept nogil:
        """Take R0 and R1 anew where readings have joined the newest leaf since."""
        if not self.stale or self.faulted:
            return
        self.stale = False
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
        self.stale = False
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
        self.stale = True

    cdef void touched(self) noexcept nogil:
        self.stale = True

    # Algorithms 6 and 7: single eviction

    cdef void pop(self) noexcept nogil:
        """Evict the oldest leaf (Algorithms 6 and 7). Where its successor's page cannot be had: faulted, and evicted."""
        cdef int before = self.depth, level = 0
        if self.faulted:
            self.head += 1
            self.lost = True
            return
        self.freshen()
        if self.move_heads(self.head + 1) < 0:
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
            self.has_right = self.has_base = self.stale = False
            return
        self.compute_left()
        self.compute_right()
        self.note_failure()

    cdef void mend(self) noexcept nogil:
        self.measure()
        self.rebuild()

    # a block of readings

    cdef int run(self, const Block* block) except -1 nogil:
        """What stays within the pages of head and tail is taken at once, the rest one by one. Raises as `push`."""
        if self.kernel == ADD:
            return run_by(self, add_op, block)
        if self.kernel == GREATEST:
            return run_by(self, greatest_op, block)
        if self.kernel == LEAST:
            return run_by(self, least_op, block)
        if self.kernel == MERGE:
            return run_by(self, merge_op, block)
        return run_by(self, any_op, block)

    # Algorithm 2 on each tree of the forest: bulk eviction

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Evict the longest prefix that leaves: each tree whole first, then down the first that stays."""
        cdef int64_t head
        if self.faulted:
            return -1
        self.freshen()
        if self.refresh_spine() < 0:
            return -1
        head = self.first_kept(leaves, context)
        if head <= self.head:
            return 0 if head >= 0 else -1
        self.drop_to(head)
        return -1 if self.faulted else 0

    cdef void drop_to(self, int64_t head) noexcept nogil:
        """Move the head, and take R0, R1 and the stack anew."""
        if self.faulted or self.move_heads(head) < 0:
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
            self.freshen()
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
                self.keep_longer()
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
                self.keep_longer()
                started = True
                index += 1
        return index

    cdef int ask(self, bint started, const Slot* node, Leaves leaves, void* context) noexcept nogil:
        """Whether the prefix that leaves so far (at spare[2]) and one node more, made at spare[4], leaves."""
        cdef Slot* out = self.spare + 4 * self.p.width
        if self.faulted:
            return -1
        if started:
            combine(self.p, out, self.spare + 2 * self.p.width, node)
        else:
            copy(self.p, out, node)
        return leaves(context, out)

    cdef inline void keep_longer(self) noexcept nogil:
        copy(self.p, self.spare + 2 * self.p.width, self.spare + 4 * self.p.width)

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
        self.freshen()
        if not self.has_right:
            return self.left
        combine(self.p, self.spare, self.left, self.right)
        return self.spare

    cdef const Slot* rest(self) noexcept nogil:
        cdef Slot* top
        if self.faulted:
            return NULL
        self.freshen()
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
        self.freshen()
        return self.left if side == 0 else self.base_of_right

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """The stack is a function of the pages; R0 and R1 depend on how the window came to be."""
        Paged.finish(self, left, right)
        self.mend()
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
        self.freshen()
        self.check_pages()
        return self.check_stack()

    cdef int check_stack(self) except -1:
        """Recompute the stack above a copy of it."""
        cdef int level, kept = self.stacked
        cdef size_t size = kept * self.p.width * sizeof(Slot)
        cdef Slot* kept_stack = <Slot*> calloc(kept + 1, self.p.width * sizeof(Slot))
        if kept_stack == NULL:
            raise MemoryError("kvs_amta: no memory to verify")
        memcpy(kept_stack, self.stack, size)
        self.stacked = 0
        for level in range(self.depth - 1, -1, -1):
            self.stack_head(level)
        level = self.stacked == kept and memcmp(kept_stack, self.stack, size) == 0
        memcpy(self.stack, kept_stack, size)
        self.stacked = kept
        free(kept_stack)
        if not level:
            raise InvariantError("the stack is not what the heads of the levels give")
        return 0


cdef int run_by(KvsAmta self, Op op, const Block* block) except -1 nogil:
    cdef int64_t done = 0, n
    while done < block.n:
        n = stretch_within(self, block, done)
        if n > 0:
            run_within(self, op, block, done, n)
        else:
            n = 1
            run_one(self, block, done)
        done += n
    return 0


cdef int run_one(KvsAmta self, const Block* block, int64_t i) except -1 nogil:
    """The reading i of a block, by single calls."""
    cdef Block one = block[0]
    one.n, one.leaves, one.heads = 1, block.leaves + i * self.p.width, block.heads + i
    one.totals = NULL if block.totals == NULL else block.totals + i * self.p.width
    return Engine.run(self, &one)
