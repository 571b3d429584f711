"""The logarithmic Monoid Tree Aggregator in compiled code.

Fact card: FIFO; associative operation; insert, eviction of any length O(log n), query O(1): one combine; 2n partials in
a chunked queue a level. Source: paper AMTA, Algorithms 1 and 2, with these slips of theirs mended: a node is there by
its absolute index, never by its value; a new root gets the old root pair too; a policy that holds for the whole window
empties it; a level is dropped when its pair is. The readable twin is sluicegate.reference.engines.log_mta.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from sluicegate.engines.base cimport Engine, Leaves
from sluicegate.memory.chunks cimport (
    Pool, Queue, at, clear, drop, give_back, has_room, held, release, reserve, ring_bytes, shape,
)
from sluicegate.partials.program cimport Program, Slot, combine, copy

from sluicegate.errors import InvariantError

cdef enum:
    SHORTEST = 5  # chunks of 2^5 nodes
    KEPT = 6  # of a kind: its levels give back and take in turns


@cython.final
cdef class LogMta(Engine):
    """Leaves head … tail − 1 and the tree above them."""

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
        return at(&self.pool, &self.level[level], self.p.width, index)

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return self.node(0, index)

    cdef inline void measure(self) noexcept nogil:
        """Find the topmost level again, from the one before."""
        cdef int64_t last = self.tail - 1
        while self.head >> (self.top + 1) < last >> (self.top + 1):
            self.top += 1
        while self.top > 0 and self.head >> self.top >= last >> self.top:
            self.top -= 1

    cdef inline int make_room(self, int level, int64_t index) except -1 nogil:
        cdef Queue* queue = &self.level[level]
        if not has_room(&self.pool, queue, index) and reserve(&self.pool, queue, index) < 0:
            with gil:
                raise MemoryError(f"log_mta: no memory for node {index} of level {level}")
        return 0

    cdef inline void set_pair(self, int level, int64_t index) noexcept nogil:
        """A node from those of its children that are there."""
        cdef int64_t first = 2 * index, last = (self.tail - 1) >> (level - 1)
        if first < self.head >> (level - 1):
            copy(self.p, self.node(level, index), self.node(level - 1, first + 1))
        elif first == last:
            copy(self.p, self.node(level, index), self.node(level - 1, first))
        else:
            combine(self.p, self.node(level, index), self.node(level - 1, first), self.node(level - 1, first + 1))

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
        self.measure()
        for level in range(1, self.top + 1):
            if level > before:
                self.set_pair(level, self.head >> level)
            self.set_pair(level, index >> level)
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Fold a reading into the newest leaf, then combine the pairs above it."""
        cdef Slot* newest = self.leaf(self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.touched()

    cdef void touched(self) noexcept nogil:
        cdef int level
        for level in range(1, self.top + 1):
            self.set_pair(level, (self.tail - 1) >> level)

    cdef void pop(self) noexcept nogil:
        """Evict the oldest leaf as a bulk of one."""
        if self.head < self.tail:
            self.drop_to(self.head + 1)

    cdef void pop_to(self, int64_t head) noexcept nogil:
        if head > self.head:
            self.drop_to(head)

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Algorithm 2: from the root down, what leaves goes whole; then combine the first pairs from the leaves up."""
        cdef const Slot* total = self.total()
        cdef int64_t head = self.tail
        cdef int answer
        if total == NULL:
            return 0
        answer = leaves(context, total)
        if answer == 0:
            head = self.first_kept(leaves, context)
        if answer < 0 or head < 0:
            return -1
        self.drop_to(head)
        return 0

    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil:
        """The first leaf that stays, where the window as a whole does not leave; −1: an error was noted."""
        cdef int level = self.top, answer
        cdef int64_t index = self.head >> level, last = (self.tail - 1) >> level
        cdef bint started = False
        cdef Slot* old = self.spare + 2 * self.p.width
        cdef Slot* longer = self.spare + 4 * self.p.width
        while True:
            if index < last:
                if started:
                    combine(self.p, longer, old, self.node(level, index))
                else:
                    copy(self.p, longer, self.node(level, index))
                answer = leaves(context, longer)
                if answer < 0:
                    return -1
                if answer == 1:
                    copy(self.p, old, longer)
                    started = True
                    index += 1
            if level == 0:
                return index
            level -= 1
            last = min(2 * index + 1, (self.tail - 1) >> level)
            index = max(2 * index, self.head >> level)

    cdef void drop_to(self, int64_t head) noexcept nogil:
        """Move the head, then set the first node of each level anew; chunks before it return to the free list."""
        cdef int level, before = self.top
        cdef bint crossed = (head >> self.level[0].shift) != (self.head >> self.level[0].shift)
        self.head = head
        if head == self.tail:
            self.top = 0
        else:
            self.measure()
        for level in range(1, self.top + 1):
            self.set_pair(level, head >> level)
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
        self.set_pair(1, self.head >> 1)
        self.set_pair(1, last >> 1)
        clear(&self.pool, &lowest)
        for level in range(LEVELS - 1):
            self.level[level] = self.level[level + 1]
        self.level[LEVELS - 1] = lowest
        self.head, self.tail = self.head >> 1, (last >> 1) + 1
        self.top = 0
        self.measure()
        return 0

    cdef const Slot* total(self) noexcept nogil:
        """The root pair, combined."""
        cdef int64_t first = self.head >> self.top, last = (self.tail - 1) >> self.top
        if self.head == self.tail:
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
        if self.tail - self.head < 2:
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

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t rings = 0
        cdef int level
        for level in range(LEVELS):
            rings += ring_bytes(&self.level[level])
        return Engine.bytes(self) + held(&self.pool) + rings

    cdef int begin(self, int64_t head) except -1:
        cdef int level
        for level in range(LEVELS):
            clear(&self.pool, &self.level[level])
        self.top = 0
        return Engine.begin(self, head)

    cdef int check(self) except -1:
        """Each node above the leaves is its children combined."""
        cdef int level
        cdef int64_t index, last = self.tail - 1, first
        if self.head == self.tail:
            return 0
        for level in range(1, self.top + 1):
            for index in range(self.head >> level, (last >> level) + 1):
                first = max(2 * index, self.head >> (level - 1))
                copy(self.p, self.spare, self.node(level - 1, first))
                if first < min(2 * index + 1, last >> (level - 1)):
                    combine(self.p, self.spare, self.spare, self.node(level - 1, first + 1))
                if memcmp(self.spare, self.node(level, index), self.p.width * sizeof(Slot)) != 0:
                    raise InvariantError(f"LogMta: node {index} of level {level} is not its children combined")
        return 0
