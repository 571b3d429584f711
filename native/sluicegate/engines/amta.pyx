"""The Amortized Monoid Tree Aggregator in compiled code (paper AMTA, Algorithms 3 to 7; level eviction of A2MTA, II-D).

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines; about 2n partials in chunks, and log n on the stack. The readable twin is
sluicegate.reference.engines.amta.

What the forest is and how it changes is in amta_forest, a block of readings in amta_block, where all lies in
amta_levels.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from sluicegate.engines.amta_block cimport raise_parts, run_block
from sluicegate.engines.amta_forest cimport (
    add_newest, depth_of, evict, evict_to, find_room, freshen, insert, make_stack,
    raise_placed, rebuild, renews, slide_by,
)
from sluicegate.engines.amta_levels cimport (
    WIDEST_TOGETHER, dispose, draw_together, end_of, lay_anew, lay_leaves, let_go, make_room, measure,
    most_readings, queue_of, see_to_layout, shape_levels, share_chunks, spot, widen_stack, LEAST_TOGETHER,
)
from sluicegate.engines.base cimport Block, Engine, Leaves
from sluicegate.memory.chunks cimport (
    LARGE_KIND, Queue, begin_batch, clear, end_batch, give_back, held, narrow, ring_bytes, run_at, shape_by,
)
from sluicegate.partials.kernels cimport (
    ADD, ANY, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, each_has_kernel, kernel_of,
)
from sluicegate.partials.program cimport Program, Slot, combine, copy

from sluicegate.errors import InvariantError

cdef enum:
    FEW_BUCKETS = 16384
    WIDE_PARTIAL = 8  # slots: of so many the window is worth huge pages, and its readings take what it is to get one
    FEW_LEVELS = 8

# tags of kernels.pxd: never read, they choose a function
cdef Any any_op
cdef Add add_op
cdef Least least_op
cdef Greatest greatest_op
cdef Merge merge_op


@cython.final
cdef class Amta(Engine):
    """Leaves head … tail − 1, the forest above them, its stack and its result pair."""

    def __dealloc__(self):
        dispose(&self.pool, self.level)
        free(self.left)
        free(self.stack)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.kernel, self.split, self.slide_by = kernel_of(p), each_has_kernel(p), slide
        self.apart = limit > 0 or p.width > WIDEST_TOGETHER
        shape_levels(&self.pool, self.level, p.width, 1 if self.apart else LEAST_TOGETHER)
        self.most_together = most_readings(1 if self.apart else LEAST_TOGETHER)
        if 0 < limit <= FEW_BUCKETS:  # small chunks from the heap
            shape_by(&self.pool, p.width, chunk_shift(limit), chunk_shift(limit), False)
        self.pool.wide = self.kernel == ANY and p.width >= WIDE_PARTIAL
        self.room = FEW_LEVELS
        self.left = <Slot*> calloc(3 * p.width, sizeof(Slot))
        self.stack = <Slot*> calloc(self.room * p.width, sizeof(Slot))
        if self.left == NULL or self.stack == NULL:
            raise MemoryError(f"amta: no memory for {3 + self.room} partials of {p.width} slots")
        self.right = self.left + p.width
        self.base_of_right = self.right + p.width
        return 0

    # Algorithms 3 to 7: insertion and eviction

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Insert a leaf (Algorithm 3): a pair gets its parent when the next pair of its level begins."""
        find_room(self)
        copy(self.p, spot(self, 0, self.tail, self.p.width), leaf)
        insert(self, any_op)
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Fold a reading into the newest leaf, which has no parent yet."""
        cdef Slot* newest = self.leaf(self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.stale = True

    cdef void touched(self) noexcept nogil:
        self.stale = True

    cdef void pop(self) noexcept nogil:
        evict(self, any_op)

    cdef void pop_to(self, int64_t head) noexcept nogil:
        evict_to(self, any_op, head)

    cdef void return_spare(self, int64_t chunks) noexcept nogil:
        while self.pool.surplus and chunks > 0:
            give_back(&self.pool)
            chunks -= 1

    # batches

    cdef int run(self, const Block* block) except -1 nogil:
        if block.n == 1:
            self.slide_by(self, block.leaves, block.heads[0], block.totals)
            return 0
        begin_batch(&self.pool)
        try:
            run_block(self, block)
        finally:
            if not block.more:
                end_block(self)
        return 0

    cdef bint rolls(self) noexcept nogil:
        return self.kernel != ANY and not self.base and not self.pool.of[LARGE_KIND].used

    cdef int64_t anew(self, const int64_t* heads, int64_t tail, int64_t n) noexcept nogil:
        """Before the last with which the leftmost tree becomes another: R0 and R1 are taken from the leaves then."""
        cdef int64_t i
        for i in range(n - 1, 0, -1):
            if renews(heads[i - 1], heads[i], tail + i):
                return i
        return -1

    cdef int adopt(self, const Slot* leaves, int64_t head, int64_t held) except -1 nogil:
        begin_batch(&self.pool)
        try:
            widen_stack(self, depth_of(head, head + held))
            if not lay_anew(self, head, head + held, held, False):
                with gil:
                    raise MemoryError(f"amta: no memory for a forest of {held} leaves")
            lay_leaves(self, leaves, head, held)
            self.head, self.tail = head, head + held
            raise_parts(self, head)
            measure(self)
            rebuild(self, any_op)
        finally:
            end_block(self)
        return True

    # Algorithm 2 on each tree of the forest: bulk eviction

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Evict the longest prefix that leaves: each tree whole first, then down the first that stays."""
        cdef int64_t head
        freshen(self, any_op)
        self.refresh_spine()
        head = self.first_kept(leaves, context)
        if head < 0:
            return -1
        if head > self.head:
            self.head = head
            let_go(self)
            measure(self)
            rebuild(self, any_op)
        return 0

    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil:
        cdef int level, answer
        cdef int64_t index, start
        cdef bint started = False
        for level in range(self.depth - 1, -1, -1):
            start = (end_of(self.tail, level) - 1) & ~(<int64_t> 1)
            if start < self.head >> level:
                start = self.head >> level
            for index in range(start, end_of(self.tail, level)):
                answer = leaves(context, self.longer(started, spot(self, level, index, self.p.width)))
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
            if index < self.head >> level:
                index += 1
                continue
            answer = leaves(context, self.longer(started, spot(self, level, index, self.p.width)))
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
            child = self.head >> (level - 1)
            node = spot(self, level, child >> 1, self.p.width)
            if child & 1:
                copy(self.p, node, spot(self, level - 1, child, self.p.width))
            else:
                combine(self.p, node, spot(self, level - 1, child, self.p.width), spot(self, level - 1, child + 1, self.p.width))

    # A2MTA II-D: level eviction

    cdef int coarsen(self) except -1 nogil:
        """Evict the lowest level to the back of the queue of levels: pairs and lone ends become leaves."""
        cdef int64_t last = self.tail - 1
        cdef Slot* newest = self.spare + 2 * self.p.width
        cdef Queue* lowest = &self.level[self.base]
        self.apart, self.most_together = True, -1 if self.pool.together else most_readings(1)
        see_to_layout(self, self.tail - self.head)
        make_room(self, self.tail + 3)  # so far that the newest leaf's parent has its place
        self.refresh_spine()
        if last & 1 and last - 1 >= self.head:
            combine(self.p, newest, spot(self, 0, last - 1, self.p.width), spot(self, 0, last, self.p.width))
        else:
            copy(self.p, newest, spot(self, 0, last, self.p.width))
        clear(&self.pool, lowest)
        free(lowest.chunk)
        memset(lowest, 0, sizeof(Queue))
        self.base = (self.base + 1) & (LEVELS - 1)
        self.head >>= 1
        self.tail = last >> 1
        copy(self.p, spot(self, 0, self.tail, self.p.width), newest)
        raise_placed(self, any_op)
        self.tail += 1
        measure(self)
        rebuild(self, any_op)
        return 0

    # answers

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail:
            return NULL
        freshen(self, any_op)
        if not self.has_right:
            return self.left
        combine(self.p, self.spare, self.left, self.right)
        return self.spare

    cdef const Slot* rest(self) noexcept nogil:
        freshen(self, any_op)
        if not self.stacked:
            return self.right if self.has_right else NULL
        if not self.has_right:
            return self.top()
        combine(self.p, self.spare + self.p.width, self.top(), self.right)
        return self.spare + self.p.width

    cdef inline const Slot* top(self) noexcept nogil:
        return self.stack + (self.stacked - 1) * self.p.width if self.stacked else NULL

    cdef bint around(self, const Slot** left, const Slot** top, const Slot** base) noexcept nogil:
        if self.tail - self.head < 2:
            return False
        if self.depth == 1:  # a pair: the newest leaf is part of the leftmost tree
            left[0], top[0], base[0] = self.leaf(self.head), NULL, NULL
            return True
        left[0], top[0], base[0] = self.left, self.top(), self.base_of_right if self.has_base else NULL
        return True

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
            rings += ring_bytes(&self.level[level]) if not self.level[level].behind else 0
        return Engine.bytes(self) + slots * <int64_t> sizeof(Slot) + held(&self.pool) + rings

    cdef const Slot* result(self, int side) noexcept nogil:
        if self.head == self.tail or (side == 1 and not self.has_base):
            return NULL
        freshen(self, any_op)
        return self.left if side == 0 else self.base_of_right

    cdef int begin(self, int64_t head) except -1:
        cdef int level
        for level in range(LEVELS):
            if not self.level[level].behind:
                clear(&self.pool, &self.level[level])
        self.depth = self.stacked = 0
        self.has_right = self.has_base = self.stale = False
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """The stack is a function of the leaves; R0 and R1 depend on how the window came to be."""
        rebuild(self, any_op)
        if left == NULL:
            return 0
        copy(self.p, self.left, left)
        self.has_base = right != NULL
        if right != NULL:
            copy(self.p, self.base_of_right, right)
        if self.has_right:
            add_newest(self, any_op)
        return 0

    # invariants

    cdef int check(self) except -1:
        """The nodes and the stack are what the leaves give."""
        freshen(self, any_op)
        self.check_nodes()
        return self.check_stack()

    cdef int check_nodes(self) except -1:
        cdef int level, w = self.p.width
        cdef int64_t index
        for level in range(1, self.depth):
            for index in range((self.head >> level) + 1, end_of(self.tail, level)):
                combine(self.p, self.spare, spot(self, level - 1, 2 * index, w), spot(self, level - 1, 2 * index + 1, w))
                if memcmp(self.spare, spot(self, level, index, w), self.p.width * sizeof(Slot)) != 0:
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
        make_stack(self, any_op)
        level = self.stacked == kept and memcmp(kept_stack, self.stack, size) == 0
        memcpy(self.stack, kept_stack, size)
        self.stacked = kept
        free(kept_stack)
        if not level:
            raise InvariantError("the stack is not what the heads of the levels give")
        return 0


cdef int slide(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    cdef int kernel = (<Amta> self).kernel
    if kernel == ADD:
        return slide_by(<Amta> self, add_op, leaf, head, out)
    if kernel == GREATEST:
        return slide_by(<Amta> self, greatest_op, leaf, head, out)
    if kernel == LEAST:
        return slide_by(<Amta> self, least_op, leaf, head, out)
    if kernel == MERGE:
        return slide_by(<Amta> self, merge_op, leaf, head, out)
    return slide_by(<Amta> self, any_op, leaf, head, out)


cdef int chunk_shift(int64_t limit) noexcept:
    """For a window of few buckets chunks of about an eighth of them, 4 to 256."""
    cdef int shift = 2
    while shift < 8 and (<int64_t> 8 << shift) < limit:
        shift += 1
    return shift


cdef void end_block(Amta self) noexcept nogil:
    """Leave what only the block needed to the next one, whosever."""
    cdef int level
    draw_together(self)
    end_batch(&self.pool)
    for level in range(LEVELS if not self.pool.of[LARGE_KIND].used else 0):
        if not self.level[level].behind:
            narrow(&self.level[level])
            share_chunks(self, level)
