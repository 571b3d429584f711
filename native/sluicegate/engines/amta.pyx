"""The Amortized Monoid Tree Aggregator in compiled code (paper AMTA, Algorithms 3 to 7; level eviction of A2MTA, II-D).

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines; about 2n partials in chunks, and log n on the stack; of few readings one by one fewer than 2n in a ring, where what
others take log n for is at most some hundred combines. The readable twin is sluicegate.reference.amta.

The operations on a known operator are functions over `Op` (kernels.pxd), made once for each; a block of readings is
taken level by level (`glide`), which combines the same operands in the same order as one reading after the other.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from sluicegate.engines.base cimport MOST_BLOCK, Block, Engine, Leaves, SlideOn
from sluicegate.engines.calm cimport AHEAD, WIDEST_AHEAD, is_calm, slide_calmly
from sluicegate.memory.chunks cimport (
    KINDS, LARGE_KIND, ROOM_OF_LEFTS, ROOM_OF_LEVELS, Pool, Queue, ask_for, ask_for_link, ask_for_place, begin_batch, clear, drop, end_batch, foresee_queue,
    give_back, has_room, held, keep_ready, lend, link_of, narrow, node_at, open_queue, prefetch, prepare, put_back, release, reserve, ring_bytes, run_at, shape, shape_by,
    keep_to_kind, shape_together, share, shorten_queue,
)
from sluicegate.engines.eights cimport (
    EIGHT, LEVELS_OF_EIGHT, Beside, Eights, begin_beside, beside_any_by, beside_by, combine_pairs, end_beside, extend, go_on, has_loops,
    lefts_of_eight, raise_eight,
)
from sluicegate.engines.few cimport (
    FEW, FEW_MERGED, LEAST_SPARE, Spread, begin_few, end_of_leftmost, extend_few, few_at, few_place, find_few_lefts, heads_of_few, leaves_of_few, left_at,
    look_ahead, measure_few, restart_few_left, restart_few_right, room_for_few, slots_of_few, spread, turn_few,
)
from sluicegate.partials.kernels cimport (
    ADD, ANY, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, Op, combine_by, copy_by, each_has_kernel, kernel_of,
    kernel_of_step, width_of,
)
from sluicegate.engines.little cimport (
    LEAST_STEADY, LEVELS_OF_LITTLE, LITTLE, MOST_STEADY, PIECE, ROOM_BESIDE, Little, raise_little, run_little, run_steadily,
)
from sluicegate.partials.program cimport Program, Slot, append_closed, combine, copy

from sluicegate.errors import InvariantError

cdef int64_t MAX_READINGS = <int64_t> 1 << 62

cdef enum:
    SLOTS_OF_LEFTS = 8192  # a block's R0: 64 KiB at most, whatever the partial's width
    LEAST_LENT = 2048  # slots: rooms of many sizes would not fit the next block
    LEAST_GLIDE = 4  # readings for which a block pays off
    LEAST_EIGHTS = 24
    LEAST_LITTLE = 32
    COPIED = 12  # leaves a reading of a block: to copy them out of the ring and back takes no longer than chunks do
    LEAST_LEFTS = 64
    COLD = 14  # levels, beyond which a window does not stay in the first caches
    SLOTS_OF_LINE = 8
    FEW_BUCKETS = 16384
    LEAVES_TOGETHER = 3  # the kind of chunks that leaves come to lie in at least, their parents in those half as long
    WIDE_PARTIAL = 8  # slots: of so many the window is worth huge pages, and its readings take what it is to get one
    FEW_LEVELS = 8
    LEAST_IN_RING = 12  # readings that a batch leaves
    FLAT_ROOM = MOST_STEADY + PIECE  # leaves
    PREPARES = 64  # readings of a block that prepare a few pages
    PARTS = 14  # stretches
    UPPER = 9  # from this level on the newest nodes have not been looked at for long, either
    ROUND = 1024  # leaves: at its multiples many levels come to a new chunk or a cold cache line at once
    STILL = 10  # a level whose nodes are looked at so seldom that they leave the caches meanwhile
    FOLLOWING = 5  # lines of the lowest levels, of which many nodes are read
    LINE = 64  # bytes

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
        return_lefts(self)
        if self.lefts != NULL:
            free(self.lefts - EIGHT * self.p.width)
        put_back(ROOM_OF_LEVELS, self.flat)
        free(self.few)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.kernel, self.split = kernel_of(p), each_has_kernel(p)
        self.apart = limit > 0 or p.width > WIDEST_TOGETHER
        shape_levels(&self.pool, self.level, p.width, 1 if self.apart else LEAST_TOGETHER)
        self.most_together = most_together(1 if self.apart else LEAST_TOGETHER)
        if 0 < limit <= FEW_BUCKETS:  # small chunks from the heap
            shape_by(&self.pool, p.width, chunk_shift(limit), chunk_shift(limit), False)
        self.pool.wide = self.kernel == ANY and p.width >= WIDE_PARTIAL
        set_slides(self, self.kernel)
        self.room = stack_room(limit)
        self.left = <Slot*> calloc(3 * p.width, sizeof(Slot))
        self.stack = <Slot*> calloc(self.room * p.width, sizeof(Slot))
        if self.left == NULL or self.stack == NULL:
            raise MemoryError(f"amta: no memory for {3 + self.room} partials of {p.width} slots")
        self.right = self.left + p.width
        self.base_of_right = self.right + p.width
        return 0

    # the shape

    cdef inline Slot* node(self, int level, int64_t index) noexcept nogil:
        return spot(self, level, index, self.p.width)

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
        if self.kernel == ANY:
            copy(self.p, self.place_of_bucket(), leaf)
            push_bucket(self)
            return 0
        if self.flat_out:
            bring_back(self)
        self.unsettle()
        self.freshen()
        self.return_chunk()
        make_room(self, 0, self.tail)
        if self.kernel == ADD:
            push_by(self, add_op, leaf)
        elif self.kernel == GREATEST:
            push_by(self, greatest_op, leaf)
        elif self.kernel == LEAST:
            push_by(self, least_op, leaf)
        elif self.kernel == MERGE:
            push_by(self, merge_op, leaf)
        return 0

    cdef Slot* place_of_bucket(self) except NULL nogil:
        self.unsettle()
        self.return_chunk()
        make_room(self, 0, self.tail)
        return spot(self, 0, self.tail, self.p.width)

    cdef void push_placed(self) noexcept nogil:
        push_bucket(self)

    cdef inline void return_chunk(self) noexcept nogil:
        """Give a chunk back to the system where there are too many, at every other reading: the others are for the times'."""
        if self.pool.surplus and not self.tail & 1:
            give_back(&self.pool)

    cdef void return_spare(self, int64_t chunks) noexcept nogil:
        while self.pool.surplus and chunks > 0:
            give_back(&self.pool)
            chunks -= 1

    cdef inline void freshen(self) noexcept nogil:
        """Take R0 and R1 anew where readings have joined the newest leaf since."""
        if not self.stale:
            return
        self.stale = False
        if self.flat_out:
            freshen_few(self)
        elif self.depth == 1:
            compute_left(self, any_op)
        else:
            add_newest(self, any_op)

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Fold a reading into the newest leaf, which has no parent yet."""
        cdef Slot* newest = self.leaf(self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.touched()

    cdef void touched(self) noexcept nogil:
        self.unsettle()
        if self.flat_out:
            self.calm_tail = self.calm_end = -1
        self.stale = True

    # Algorithms 6 and 7: single eviction

    cdef void pop(self) noexcept nogil:
        """Evict the oldest leaf (Algorithms 6 and 7)."""
        if self.kernel == ANY:
            pop_bucket(self)
            return
        if self.flat_out:
            leave_few(self, self.head + 1, False)
            return
        self.unsettle()
        self.freshen()
        if self.kernel == ADD:
            pop_by(self, add_op)
        elif self.kernel == GREATEST:
            pop_by(self, greatest_op)
        elif self.kernel == LEAST:
            pop_by(self, least_op)
        elif self.kernel == MERGE:
            pop_by(self, merge_op)

    cdef void pop_to(self, int64_t head) noexcept nogil:
        """One by one, or, where more than about log n leave, at once."""
        if self.flat_out:
            if head > self.head:
                leave_few(self, head, False)
            return
        self.unsettle()
        if leaps(self, head, self.tail):
            self.freshen()
            leap_to(self, head)
            return
        while self.head < head:
            self.pop()

    cdef void rebuild(self) noexcept nogil:
        if self.head == self.tail:
            self.stacked = 0
            self.has_right = self.has_base = self.stale = False
            return
        compute_left(self, any_op)
        compute_right(self, any_op)

    cdef void drop_to(self, int64_t head) noexcept nogil:
        """Move the head; chunks that lie wholly before it return to the free list."""
        self.head = head
        self.let_go()

    cdef inline void let_go(self) noexcept nogil:
        cdef int64_t head = self.head
        cdef int level = 0
        cdef Queue* queue
        while level < LEVELS:
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            if queue.behind:
                pass
            elif queue.begin < min((head >> level) >> queue.shift, queue.end):
                drop(&self.pool, queue, head >> level)
            elif queue.begin == queue.end or queue.shift <= self.pool.shift:  # so it is above, or soon: chunks of the heap all
                break
            level += 1

    # one reading

    cdef inline void unsettle(self) noexcept nogil:
        """Before anything but a calm reading looks at the nodes or the stack, or changes the forest."""
        if self.calm:
            catch_up(self, any_op)
            end_calm(self)
        else:
            if self.lies_flat:
                settle(self, any_op)
            if self.unstacked:
                make_stack(self, any_op)

    cdef int foresee(self, int64_t head) except -1 nogil:
        """Whether the leftmost tree stays when a leaf comes and the head moves so far; then there is room for some leaves."""
        cdef int top = self.depth - 1
        cdef int64_t falls, most
        if top < 2 or self.base or not self.has_base or self.p.width > WIDEST_AHEAD:
            return False
        most = ((((self.tail + 1) >> top) + 1) << top) - 2 - self.tail
        falls = self.end(top) << top
        self.calm_jump = min(top, 15)  # fewer than the least number that leaves at once, and than `lefts` holds
        if most <= 0 or head >= falls or head - self.head > self.calm_jump:
            return False
        room_for_lefts(self, AHEAD)
        if self.tail >= self.calm_tail:
            most = min(most, 1 if self.pool.surplus else AHEAD)
            if head >= self.calm_head:  # R0 is due at this very reading: not again at the same
                most = min(most, AHEAD // 2)
            see_to_layout(self, self.tail + 1 - self.head)
            if self.pool.together:
                begin_stretch(self, most)
                return True
            most = until_room_ends(self, min(most, run_at(&self.level[0], self.tail)))
            if not self.pool.of[LARGE_KIND].used:  # else at another reading: a great window's chunks are not at hand
                self.let_go()
            self.make_room_for(self.tail + most)
            self.next_leaf, self.calm_tail = self.node(0, self.tail), self.tail + most
        return True

    # a block of readings

    cdef int run(self, const Block* block) except -1 nogil:
        """Runs between the rare changes of the leftmost tree are taken level by level, the rest one by one."""
        if self.calm:
            self.unsettle()
        self.freshen()
        begin_batch(&self.pool)
        try:
            if self.kernel == ADD:
                run_by(self, add_op, block)
            elif self.kernel == GREATEST:
                run_by(self, greatest_op, block)
            elif self.kernel == LEAST:
                run_by(self, least_op, block)
            elif self.kernel == MERGE:
                run_by(self, merge_op, block)
            else:
                run_by(self, any_op, block)
        finally:
            if not block.more:
                self.end_block()
        prepare_chunks(self, block.n)
        return 0

    cdef bint rolls(self) noexcept nogil:
        if self.p.width > 1 or self.base or self.pool.of[LARGE_KIND].used:
            return False
        return self.kernel == ADD or self.kernel == LEAST or self.kernel == GREATEST

    cdef int64_t anew(self, const int64_t* heads, int64_t tail, int64_t n) noexcept nogil:
        """The last with which the leftmost tree grows or falls: R0 and R1 are taken from the leaves then."""
        cdef int64_t i
        for i in range(n - 1, 0, -1):
            if changes(heads[i - 1], heads[i], tail + i):
                return i
        return -1

    cdef int adopt(self, const Slot* leaves, int64_t head, int64_t held) except -1 nogil:
        """R0 and R1, too, are then what the leaves alone give."""
        self.unsettle()
        self.freshen()
        begin_batch(&self.pool)
        try:
            reserve_levels(self, held)
            take_over(self, any_op, leaves, head, held)
            if self.flat_out:
                rebuild_few(self)
            else:
                self.unsettle()
                self.rebuild()
        finally:
            self.end_block()
        return True

    cdef void end_block(self) noexcept nogil:
        """Leave what only the block needed to the next one, whosever."""
        cdef int level
        if self.lies_flat:
            settle(self, any_op)
        if not self.apart:
            draw_together(self)
        end_batch(&self.pool)
        for level in range(self.reached + 1 if not self.pool.of[LARGE_KIND].used else 0):
            if not self.level[(self.base + level) & (LEVELS - 1)].behind:
                narrow(&self.level[(self.base + level) & (LEVELS - 1)])
                share_chunks(self, level)
        put_back(ROOM_OF_LEVELS, self.flat)
        self.flat = NULL
        return_lefts(self)

    cdef int make_room_for(self, int64_t tail) except -1 nogil:
        """Reserve what the leaves up to `tail` and the nodes above them need."""
        see_to_layout(self, tail - self.head)
        return make_room_above(self, 0, tail)

    # Algorithm 2 on each tree of the forest: bulk eviction

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Evict the longest prefix that leaves: each tree whole first, then down the first that stays."""
        cdef int64_t head
        self.unsettle()
        self.freshen()
        if self.flat_out:
            head = first_kept_of_few(self, leaves, context)
        else:
            refresh_spine(self)
            head = first_kept(self, leaves, context)
        if head < 0:
            return -1
        if head > self.head:
            if self.flat_out:
                leave_few(self, head, True)
            else:
                leap_to(self, head)
        return 0

    # A2MTA II-D: level eviction

    cdef int coarsen(self) except -1 nogil:
        """Evict the lowest level to the back of the queue of levels: pairs and lone ends become leaves."""
        cdef int64_t last = self.tail - 1
        cdef Slot* newest = self.spare + 2 * self.p.width
        cdef Queue* lowest = &self.level[self.base]
        if self.flat_out:
            bring_back(self)
        self.unsettle()
        self.apart, self.most_together = True, -1 if self.pool.together else most_together(1)
        see_to_layout(self, self.tail - self.head)
        make_room(self, 1, last >> 1)
        refresh_spine(self)
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
        raise_node(self, any_op, newest)
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
        cdef const Slot* top
        self.unsettle()
        self.freshen()
        if self.flat_out:
            top = rest_of_left(self)
        else:
            top = self.stack + (self.stacked - 1) * self.p.width if self.stacked else NULL
        if top == NULL:
            return self.right if self.has_right else NULL
        if not self.has_right:
            return top
        combine(self.p, self.spare + self.p.width, top, self.right)
        return self.spare + self.p.width

    cdef bint around(self, const Slot** left, const Slot** top, const Slot** base) noexcept nogil:
        self.unsettle()
        if self.tail - self.head < 2:
            return False
        if self.flat_out:
            self.measure()
        if self.depth == 1:  # a pair: the newest leaf is part of the leftmost tree
            left[0], top[0], base[0] = self.leaf(self.head), NULL, NULL
            return True
        left[0] = self.left
        base[0] = self.base_of_right if self.has_base else NULL
        if self.flat_out:
            top[0] = rest_of_left(self)
            return True
        top[0] = self.stack + (self.stacked - 1) * self.p.width if self.stacked else NULL
        return True

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        if self.lies_flat:
            self.unsettle()
        if self.flat_out:
            return few_at(self, index, self.p.width)
        return self.node(0, index)

    cdef void copy_leaves(self, Slot* out) noexcept nogil:
        """As they lie: a chunk at a time."""
        cdef int64_t index = self.head, n
        self.unsettle()
        if self.flat_out:
            Engine.copy_leaves(self, out)
            return
        while index < self.tail:
            n = min(run_at(&self.level[self.base], index), self.tail - index)
            memcpy(out, self.node(0, index), n * self.p.width * sizeof(Slot))
            out, index = out + n * self.p.width, index + n

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t slots = (3 + self.room) * self.p.width, rings = 0
        cdef int level
        if self.few != NULL:
            slots += slots_of_few(self)
        if self.lefts != NULL:
            slots += (self.most_left + 1 + EIGHT) * self.p.width
        for level in range(LEVELS):
            rings += ring_bytes(&self.level[level]) if not self.level[level].behind else 0
        return Engine.bytes(self) + slots * <int64_t> sizeof(Slot) + held(&self.pool) + rings

    cdef const Slot* result(self, int side) noexcept nogil:
        if self.head == self.tail or (side == 1 and not self.has_base):
            return NULL
        self.freshen()
        return self.left if side == 0 else self.base_of_right

    cdef int begin(self, int64_t head) except -1:
        cdef int level
        self.unsettle()
        if self.flat_out:
            forget_few(self, self.tail)
        for level in range(LEVELS):
            if not self.level[level].behind:
                clear(&self.pool, &self.level[level])
        self.depth = self.stacked = 0
        self.has_right = self.has_base = self.stale = False
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """The stack is a function of the leaves; R0 and R1 depend on how the window came to be."""
        if self.flat_out:
            bring_back(self)
        self.unsettle()
        self.rebuild()
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
        self.unsettle()
        self.freshen()
        if self.flat_out:
            return check_few(self)
        check_nodes(self)
        return check_stack(self)


include "amta_layout.pxi"
include "amta_room.pxi"
include "amta_forest.pxi"
include "amta_one.pxi"
include "amta_few.pxi"
include "amta_block.pxi"
include "amta_adopt.pxi"
include "amta_levels.pxi"
include "amta_buckets.pxi"
include "amta_bulk.pxi"
include "amta_check.pxi"
