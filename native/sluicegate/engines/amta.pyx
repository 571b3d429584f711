"""The Amortized Monoid Tree Aggregator in compiled code (paper AMTA, Algorithms 3 to 7), of single readings.

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines; about 2n partials in chunks, and log n on the stack. The readable twin is tests/native/twins/amta.py.

Level l holds the nodes head >> l … ((tail + 1) >> l) − 2; node i's parent is node i >> 1 of the level above and exists
once i's pair is not the last of its level. The first node of a level is stale until `refresh_spine`; only a bulk
eviction reads it. Buckets have an engine of their own, amta_buckets. How the forest changes is in amta_forest, a block
of readings in amta_block, where all lies in amta_levels.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from sluicegate.engines.base cimport Block, Engine, Leaves, ask
from sluicegate.memory.chunks cimport (
    LARGE_KIND, Pool, Queue, at, clear, drop, give_back, has_room, narrow, open_queue, release, reserve,
    ring_bytes, run_at, shape,
)
from sluicegate.partials.kernels cimport (
    ADD, ANY, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, Op, combine_by, copy_by, each_has_kernel,
    kernel_of, kernel_of_step, width_of,
)
from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.rolling.starts cimport first_after

cdef enum:
    LEVELS = 32  # of 2^29 leaves at most
    KEPT_FROM = 1  # all levels are

cdef class Amta

ctypedef fused Forest:
    Amta

ctypedef fused Sliding:
    Amta


@cython.final
cdef class Amta(Engine):
    """Leaves head … tail − 1, the forest above them, its stack and its result pair."""

    cdef Pool pool
    cdef Queue level[LEVELS]
    cdef int depth  # levels that hold a node
    cdef int room  # elements the stack can hold
    cdef int stacked  # elements on the stack
    cdef int kernel  # the operator of its own that the partial has: `kernels.kernel_of`
    cdef bint split  # every component of a partial has such an operator
    cdef bint has_right
    cdef bint has_base
    # the newest leaf is not in R1 yet as it is now, or where it is part of the leftmost tree, not in R0
    cdef bint stale
    cdef Slot* left  # R0, the leftmost tree
    cdef Slot* right  # R1, the other trees: always base and then the newest leaf
    cdef Slot* base_of_right
    cdef Slot* stack  # R0 without the first element of each level, the topmost level first
    cdef Slot* fronts  # while a block lasts: R0 for the heads that come

    def __dealloc__(self):
        dispose(&self.pool, self.level)
        free(self.left)
        free(self.stack)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.kernel, self.split, self.slide_by = kernel_of(p), each_has_kernel(p), slide
        shape(&self.pool, p.width)
        empty_levels(self.level)
        self.left = <Slot*> calloc(3, p.width * sizeof(Slot))
        if self.left == NULL:
            raise MemoryError(f"amta: no memory for 3 partials of {p.width} slots")
        self.right = self.left + p.width
        self.base_of_right = self.right + p.width
        return 0

    # Algorithms 3 to 7: insertion and eviction

    cdef void pop_to(self, int64_t head) noexcept nogil:
        evict_to(self, any_op, head)

    cdef void return_spare(self, int64_t chunks) noexcept nogil:
        """After a batch: all that is free, of a great window what is too much."""
        cdef int level
        if not self.pool.of[LARGE_KIND].used:
            release(&self.pool)
            for level in range(LEVELS):
                narrow(&self.level[level])
        while self.pool.surplus and chunks > 0:
            give_back(&self.pool)
            chunks -= 1

    # batches

    cdef int run(self, const Block* block) except -1 nogil:
        return run_block(self, block)

    cdef bint rolls(self) noexcept nogil:
        return self.kernel != ANY and not self.pool.of[LARGE_KIND].used

    cdef int64_t anew(self, const int64_t* heads, int64_t tail, int64_t n) noexcept nogil:
        """Before the last with which the leftmost tree becomes another: R0 and R1 are taken from the leaves then."""
        cdef int64_t i
        for i in range(n - 1, 0, -1):
            if renews(heads[i - 1], heads[i], tail + i):
                return i
        return -1

    cdef int adopt(self, const Slot* leaves, int64_t head, int64_t held) except -1 nogil:
        if not lay_anew(self, head, head + held):
            with gil:
                raise MemoryError(f"amta: no memory for a forest of {held} leaves")
        lay_leaves(self, leaves, head, held)
        self.head, self.tail = head, head + held
        raise_levels(self, any_op, self.p.width, 0, head)
        measure(self)
        rebuild(self, any_op)
        return True

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        return evict_prefix(self, any_op, leaves, context)

    # answers

    cdef const Slot* total(self) noexcept nogil:
        return total_of(self, any_op)

    cdef const Slot* rest(self) noexcept nogil:
        return rest_of(self, any_op)

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return spot(self, 0, index, self.p.width)

    cdef void copy_leaves(self, Slot* out) noexcept nogil:
        """As they lie: a chunk at a time."""
        cdef int64_t index = self.head, n
        while index < self.tail:
            n = min(run_at(queue_of(self, 0), index), self.tail - index)
            memcpy(out, self.leaf(index), n * self.p.width * sizeof(Slot))
            out, index = out + n * self.p.width, index + n

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t slots = (3 + self.room) * self.p.width, rings = 0
        cdef int level
        for level in range(LEVELS):
            rings += ring_bytes(&self.level[level])
        return Engine.bytes(self) + slots * <int64_t> sizeof(Slot) + self.pool.held + rings

    cdef const Slot* result(self, int side) noexcept nogil:
        return result_of(self, any_op, side)

    cdef int begin(self, int64_t head) except -1:
        cdef int level
        for level in range(LEVELS):
            clear(&self.pool, &self.level[level])
        self.depth = self.stacked = 0
        self.has_right = self.has_base = self.stale = False
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        rebuild(self, any_op)
        if left != NULL:
            take_over(self, any_op, left, right)
        return 0


# what the forest asks

cdef inline Slot* spot(Amta self, int level, int64_t index, int w) noexcept nogil:
    return at(queue_of(self, level), w, index)


cdef inline bint leave(Amta self, int64_t head, bint one) noexcept nogil:
    self.head = head
    if not one or not head & ((<int64_t> 1 << self.pool.least) - 1):  # no chunk ends anywhere else
        let_go(self)
    return True


cdef inline bint begins(Amta self, int level, int64_t index) noexcept nogil:
    return False


cdef inline void fill(Amta self, int level, int64_t index) noexcept nogil:
    pass


cdef inline bint renews(int64_t head, int64_t after, int64_t tail) noexcept nogil:
    """Whether leaf `tail`, and what leaves with it before `after`, make the leftmost tree another."""
    cdef int before = depth_of(head, tail), depth = depth_of(head, tail + 1)
    return before == 0 or grows(before, depth, tail + 1) or depth_of(after, tail + 1) < depth


# one reading

cdef int slide(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by_kernel(<Amta> self, leaf, head, out)


cdef inline int slide_by(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """push, pop_to and total. A chunk goes back to the system at every other reading: the others are for the times'."""
    if self.pool.surplus and not self.tail & 1:
        give_back(&self.pool)
    make_room(self, self.tail + 1)
    copy_by(op, self.p, spot(self, 0, self.tail, width_of(op, self.p)), leaf)
    insert(self, op)
    if head > self.head:
        evict_to(self, op, head)
    if self.head == self.tail:
        return 0
    if out != NULL:
        freshen(self, op)
        if self.has_right:
            combine_by(op, self.p, out, self.left, self.right)
        else:
            copy_by(op, self.p, out, self.left)
    return 1


include "sliding.pxi"
include "amta_forest.pxi"
include "amta_levels.pxi"
include "amta_block.pxi"
