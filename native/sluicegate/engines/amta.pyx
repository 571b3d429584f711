"""The Amortized Monoid Tree Aggregator in compiled code (paper AMTA, Algorithms 3 to 7; level eviction of A2MTA, II-D).

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines; about 2n partials in chunks, and log n on the stack. The readable twin is sluicegate.reference.amta.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from sluicegate.engines.base cimport Engine, Leaves
from sluicegate.engines.chunks cimport Pool, Queue, at, clear, drop, has_room, release, reserve
from sluicegate.engines.program cimport Program, Slot, combine, copy

from sluicegate.errors import InvariantError


@cython.final
cdef class Amta(Engine):
    """Leaves head … tail − 1, the forest above them, its stack and its result pair."""

    def __dealloc__(self):
        cdef int level
        for level in range(LEVELS):
            clear(&self.pool, &self.level[level])
            free(self.level[level].chunk)
        release(&self.pool)
        free(self.left)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        memset(self.level, 0, sizeof(self.level))
        memset(&self.pool, 0, sizeof(Pool))
        self.pool.shift = chunk_shift(limit)
        self.pool.chunk = (<int64_t> p.width) << self.pool.shift
        self.room = stack_room(limit)
        self.left = <Slot*> calloc((3 + self.room) * p.width, sizeof(Slot))
        if self.left == NULL:
            raise MemoryError(f"amta: no memory for {3 + self.room} partials of {p.width} slots")
        self.right = self.left + p.width
        self.base_of_right = self.right + p.width
        self.stack = self.base_of_right + p.width
        return 0

    # the shape

    cdef inline Slot* node(self, int level, int64_t index) noexcept nogil:
        return at(&self.pool, &self.level[(self.base + level) & (LEVELS - 1)], self.p.width, index)

    cdef inline int64_t first(self, int level) noexcept nogil:
        return self.head >> level

    cdef inline int64_t end(self, int level) noexcept nogil:
        return ((self.tail + 1) >> level) - 1

    cdef inline void measure(self) noexcept nogil:
        """Find the depth again, from the one before."""
        while self.first(self.depth) < self.end(self.depth):
            self.depth += 1
        while self.depth > 0 and self.first(self.depth - 1) >= self.end(self.depth - 1):
            self.depth -= 1

    # Algorithms 3 to 5: insertion

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Insert a leaf (Algorithm 3): a pair gets its parent when the next pair of its level begins."""
        cdef int before = self.depth, level
        self.freshen()
        self.make_room(0, self.tail)
        level = self.raise_node(leaf)
        self.measure()
        if before == 0:
            self.compute_left()
            return 0
        if self.depth == before and level == before - 1:  # the leftmost tree has grown
            self.compute_left()
            self.compute_right()
        else:
            self.has_base = self.has_right
            if self.has_base:
                copy(self.p, self.base_of_right, self.right)
            self.add_newest()
        return 0

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
        if not self.stale:
            return
        self.stale = False
        if self.depth == 1:
            self.compute_left()
        else:
            self.add_newest()

    cdef int make_room(self, int level, int64_t index) except -1 nogil:
        """Reserve whatever appending this node may need, so that nothing fails half-way."""
        cdef int64_t pair
        cdef Queue* queue
        while True:
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            if not has_room(&self.pool, queue, index) and reserve(&self.pool, queue, index) < 0:
                with gil:
                    raise MemoryError(f"amta: no memory for node {index} of level {level}")
            pair = (index >> 1) - 1
            if index & 1 or pair < self.first(level + 1):
                return 0
            level += 1
            index = pair

    cdef int raise_node(self, const Slot* leaf) noexcept nogil:
        """Append a leaf and the parents this completes; the highest level that grew."""
        cdef int level = 0
        cdef int64_t index = self.tail, pair
        cdef Slot* node
        copy(self.p, self.node(0, index), leaf)
        self.tail += 1
        while True:
            pair = (index >> 1) - 1
            if index & 1 or pair < self.first(level + 1):
                return level
            node = self.node(level + 1, pair)
            if index - 2 >= self.first(level):
                combine(self.p, node, self.node(level, index - 2), self.node(level, index - 1))
            else:
                copy(self.p, node, self.node(level, index - 1))
            level += 1
            index = pair

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
        """R1 from the last pair of each level but the topmost, the leftmost tree (Algorithm 5, R1 reset first).

        The newest leaf, which readings may still join, comes last by itself.
        """
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
        cdef int64_t index = self.first(level)
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
        """Evict the oldest leaf (Algorithms 6 and 7)."""
        cdef int before = self.depth, level = 0
        self.freshen()
        self.drop_to(self.head + 1)
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

    cdef void rebuild(self) noexcept nogil:
        if self.head == self.tail:
            self.stacked = 0
            self.has_right = self.has_base = self.stale = False
            return
        self.compute_left()
        self.compute_right()

    cdef inline void drop_to(self, int64_t head) noexcept nogil:
        """Move the head; chunks that lie wholly before it return to the free list."""
        cdef int level = 0
        cdef Queue* queue
        cdef bint crossed = (head >> self.pool.shift) != (self.head >> self.pool.shift)
        self.head = head
        while crossed and level < LEVELS:
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            if queue.chunk == NULL:
                return
            drop(&self.pool, queue, head >> level)
            level += 1

    # Algorithm 2 on each tree of the forest: bulk eviction

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Evict the longest prefix that leaves: each tree whole first, then down the first that stays."""
        cdef int64_t head
        self.freshen()
        self.refresh_spine()
        head = self.first_kept(leaves, context)
        if head < 0:
            return -1
        self.drop_to(head)
        self.measure()
        self.rebuild()
        return 0

    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil:
        cdef int level, answer
        cdef int64_t index, start
        cdef bint started = False
        for level in range(self.depth - 1, -1, -1):
            start = (self.end(level) - 1) & ~(<int64_t> 1)
            if start < self.first(level):
                start = self.first(level)
            for index in range(start, self.end(level)):
                answer = leaves(context, self.longer(started, self.node(level, index)))
                if answer < 0:
                    return -1
                if answer == 0:
                    return self.descend(level, index, started, leaves, context)
                copy(self.p, self.spare + 2 * self.p.width, self.spare + 4 * self.p.width)
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
            answer = leaves(context, self.longer(started, self.node(level, index)))
            if answer < 0:
                return -1
            if answer == 1:
                copy(self.p, self.spare + 2 * self.p.width, self.spare + 4 * self.p.width)
                started = True
                index += 1
        return index

    cdef const Slot* longer(self, bint started, const Slot* node) noexcept nogil:
        """The prefix that leaves so far (at spare[2]) and one node more, at spare[4]; `total` writes neither."""
        cdef Slot* out = self.spare + 4 * self.p.width
        if started:
            combine(self.p, out, self.spare + 2 * self.p.width, node)
        else:
            copy(self.p, out, node)
        return out

    cdef void refresh_spine(self) noexcept nogil:
        """Recompute the first node of each level from the leaves that are still there."""
        cdef int level
        cdef int64_t child
        cdef Slot* node
        for level in range(1, self.depth):
            child = self.first(level - 1)
            node = self.node(level, child >> 1)
            if child & 1:
                copy(self.p, node, self.node(level - 1, child))
            else:
                combine(self.p, node, self.node(level - 1, child), self.node(level - 1, child + 1))

    # A2MTA II-D: level eviction

    cdef int coarsen(self) except -1 nogil:
        """Evict the lowest level to the back of the queue of levels: pairs and lone ends become leaves."""
        cdef int64_t last = self.tail - 1
        cdef Slot* newest = self.spare + 2 * self.p.width
        cdef Queue* lowest = &self.level[self.base]
        self.make_room(1, last >> 1)
        self.refresh_spine()
        if last & 1 and last - 1 >= self.head:
            combine(self.p, newest, self.node(0, last - 1), self.node(0, last))
        else:
            copy(self.p, newest, self.node(0, last))
        clear(&self.pool, lowest)
        free(lowest.chunk)
        memset(lowest, 0, sizeof(Queue))
        self.base = (self.base + 1) & (LEVELS - 1)
        self.head >>= 1
        self.tail = last >> 1
        self.raise_node(newest)
        self.measure()
        self.rebuild()
        return 0

    # answers

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail:
            return NULL
        self.freshen()
        if not self.has_right:
            return self.left
        combine(self.p, self.spare, self.left, self.right)
        return self.spare

    cdef const Slot* rest(self) noexcept nogil:
        cdef Slot* top
        self.freshen()
        top = self.stack + (self.stacked - 1) * self.p.width
        if not self.stacked:
            return self.right if self.has_right else NULL
        if not self.has_right:
            return top
        combine(self.p, self.spare + self.p.width, top, self.right)
        return self.spare + self.p.width

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return self.node(0, index)

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t slots = (3 + self.room) * self.p.width + self.pool.chunks * self.pool.chunk, rings = 0
        cdef int level
        for level in range(LEVELS):
            if self.level[level].chunk != NULL:
                rings += self.level[level].mask + 1
        return Engine.bytes(self) + slots * <int64_t> sizeof(Slot) + rings * <int64_t> sizeof(void*)

    cdef const Slot* result(self, int side) noexcept nogil:
        if self.head == self.tail or (side == 1 and not self.has_base):
            return NULL
        self.freshen()
        return self.left if side == 0 else self.base_of_right

    cdef int begin(self, int64_t head) except -1:
        cdef int level
        for level in range(LEVELS):
            clear(&self.pool, &self.level[level])
        self.depth = self.stacked = 0
        self.has_right = self.has_base = self.stale = False
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """The stack is a function of the leaves; R0 and R1 depend on how the window came to be."""
        self.rebuild()
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
        self.freshen()
        self.check_nodes()
        return self.check_stack()

    cdef int check_nodes(self) except -1:
        cdef int level
        cdef int64_t index
        for level in range(1, self.depth):
            for index in range(self.first(level) + 1, self.end(level)):
                combine(self.p, self.spare, self.node(level - 1, 2 * index), self.node(level - 1, 2 * index + 1))
                if memcmp(self.spare, self.node(level, index), self.p.width * sizeof(Slot)) != 0:
                    raise InvariantError(f"node {index} of level {level} is not its children combined")
        return 0

    cdef int check_stack(self) except -1:
        """Recompute the stack above a copy of it."""
        cdef int level, kept = self.stacked
        cdef size_t size = kept * self.p.width * sizeof(Slot)
        cdef Slot* kept_stack = <Slot*> calloc(kept + 1, self.p.width * sizeof(Slot))
        if kept_stack == NULL:
            raise MemoryError("amta: no memory to verify")
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


cdef int chunk_shift(int64_t limit) noexcept:
    """Chunks of 256 leaves; for a window of few buckets about an eighth of them, 4 at least."""
    cdef int shift = 2
    if limit == 0:
        return 8
    while shift < 8 and (<int64_t> 8 << shift) < limit:
        shift += 1
    return shift


cdef int stack_room(int64_t limit) noexcept:
    """Levels that a forest of so many leaves may have: one more than a tree's, and one for the pair being begun."""
    cdef int levels = 2
    if limit == 0:
        return LEVELS
    while limit >> (levels - 2):
        levels += 1
    return levels
