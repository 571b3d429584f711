"""The Amortized Monoid Tree Aggregator in compiled code (paper AMTA, Algorithms 3 to 7; level eviction of A2MTA, II-D).

Fact card: FIFO; associative operation; insert, single eviction and query O(1) amortised, O(log n) worst; bulk eviction
O(log n) combines; about 2n partials in chunks, and log n on the stack. The readable twin is sluicegate.reference.amta.

The operations on a known operator are functions over `Op` (kernels.pxd), made once for each; a block of readings is
taken level by level (`glide`), which combines the same operands in the same order as one reading after the other.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from sluicegate.engines.base cimport EARLIER, MOST_BLOCK, Block, Engine, Leaves, SlideOn
from sluicegate.engines.calm cimport AHEAD, WIDEST_AHEAD, is_calm, slide_calmly
from sluicegate.engines.chunks cimport (
    KINDS, LARGE_KIND, ROOM_OF_LEFTS, ROOM_OF_LEVELS, ROOM_OF_STEADY, Pool, Queue, ask_for, ask_for_link, ask_for_place, begin_batch, clear, drop, end_batch, foresee_queue,
    give_back, has_room, held, keep_ready, lend, link_of, narrow, node_at, open_queue, prefetch, prepare, put_back, release, reserve, ring_bytes, run_at, shape, shape_by,
    keep_to_kind, shape_together, share, shorten_queue,
)
from sluicegate.engines.directly cimport MOST_DIRECTLY
from sluicegate.engines.eights cimport (
    EIGHT, LEVELS_OF_EIGHT, Beside, Eights, begin_beside, beside_any_by, beside_by, combine_pairs, end_beside, extend, go_on, has_loops,
    lefts_of_eight, raise_eight,
)
from sluicegate.engines.few cimport FEW, LEAST_FEW, find_flat_lefts, flat_at, left_at, look_ahead, room_of_few, slots_of_few, step_flat
from sluicegate.engines.kernels cimport (
    ADD, ANY, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, Op, combine_by, copy_by, each_has_kernel, kernel_of,
    kernel_of_step, width_of,
)
from sluicegate.engines.little cimport (
    LEAST_STEADY, LEVELS_OF_LITTLE, LITTLE, MOST_STEADY, PIECE, ROOM_BESIDE, Little, raise_little, run_little, run_steadily,
)
from sluicegate.engines.program cimport Program, Slot, append_closed, combine, copy
from sluicegate.engines.steady cimport LEAST_STEADILY, MOST_STEADILY, Steady, begin_steady, room_of_steady, steady_by
from sluicegate.engines.uneven cimport LEAST_UNEVEN, MOST_UNEVEN, Uneven, begin_uneven, most_uneven, room_of_uneven, uneven_by

from sluicegate.errors import InvariantError

cdef int64_t MAX_READINGS = <int64_t> 1 << 62

cdef enum:
    SLOTS_OF_LEFTS = 8192  # a block's R0: 64 KiB at most, whatever the partial's width
    LEAST_LENT = 2048  # slots: rooms of many sizes would not fit the next block
    LEAST_GLIDE = 4  # readings for which a block pays off
    LEAST_EIGHTS = 24
    LEAST_LITTLE = 32
    LEAST_LEFTS = 64
    COLD = 14  # levels, beyond which a window does not stay in the first caches
    SLOTS_OF_LINE = 8
    FEW_BUCKETS = 16384
    LEAVES_TOGETHER = 3  # the kind of chunks that leaves come to lie in at least, their parents in those half as long
    WIDE_PARTIAL = 8  # slots: of so many the window is worth huge pages, and its readings take what it is to get one
    FEW_LEVELS = 8
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
        self.return_lefts()
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

    cdef int reach(self, int level) except -1 nogil:
        """Up to which level there are chunks, and room on the stack for those levels."""
        cdef Slot* stack
        cdef int room = level + 8
        if level + 3 > self.room:
            stack = <Slot*> realloc(self.stack, room * self.p.width * sizeof(Slot))
            if stack == NULL:
                with gil:
                    raise MemoryError(f"amta: no memory for {room} partials of {self.p.width} slots")
            self.stack, self.room = stack, room
        self.reached = level
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
        self.unsettle()
        self.freshen()
        self.return_chunk()
        self.make_room(0, self.tail)
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
        self.make_room(0, self.tail)
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
        if self.depth == 1:
            compute_left(self, any_op)
        else:
            add_newest(self, any_op)

    cdef int make_room(self, int level, int64_t index) except -1 nogil:
        """Reserve whatever appending this node may need, so that nothing fails half-way."""
        cdef int64_t pair
        cdef Queue* queue
        if level == 0:
            see_to_layout(self, index + 1 - self.head)
        while True:
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            if level > self.reached:
                self.reach(level)
            if not queue.behind and not has_room(&self.pool, queue, index) and reserve_at(self, level, queue, index) < 0:
                with gil:
                    raise MemoryError(f"amta: no memory for node {index} of level {level}")
            pair = (index >> 1) - 1
            if index & 1 or pair < self.first(level + 1):
                return 0
            level += 1
            index = pair

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Fold a reading into the newest leaf, which has no parent yet."""
        cdef Slot* newest = self.node(0, self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.touched()

    cdef void touched(self) noexcept nogil:
        self.unsettle()
        self.stale = True

    # Algorithms 6 and 7: single eviction

    cdef void pop(self) noexcept nogil:
        """Evict the oldest leaf (Algorithms 6 and 7)."""
        if self.kernel == ANY:
            pop_bucket(self)
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
        self.unsettle()
        if head - self.head > singles(self.tail - self.head):
            self.freshen()
            self.leap_to(head)
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

    cdef void leap_to(self, int64_t head) noexcept nogil:
        """Evict many at once."""
        self.ask_for_spine(head)
        self.drop_to(head)
        self.measure()
        self.rebuild()

    cdef void ask_for_spine(self, int64_t head) noexcept nogil:
        """Have all fetched that a leap reads: some of it has not been looked at for long, and no level waits for another then."""
        cdef int level, depth = self.depth
        cdef int64_t w = self.p.width
        cdef Queue* queue
        for level in range(depth):
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            ask_for_place(queue, head >> level, queue.begin)
            ask_for_place(queue, (head >> level) + 1, self.end(level) - 1 >> queue.shift)
        for level in range(depth):
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            ask_for_link(queue, head >> level)
            prefetch(node_at(queue, w, head >> level))
            prefetch(node_at(queue, w, (head >> level) + 1))
            prefetch(node_at(queue, w, self.end(level) - 1))

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
        self.room_for_lefts(AHEAD)
        if self.tail >= self.calm_tail:
            most = min(most, 1 if self.pool.surplus else AHEAD)
            if head >= self.calm_head:  # R0 is due at this very reading: not again at the same
                most = min(most, AHEAD // 2)
            see_to_layout(self, self.tail + 1 - self.head)
            if self.pool.together:
                begin_stretch(self, most)
                return True
            most = self.until_room_ends(min(most, run_at(&self.level[0], self.tail)))
            if not self.pool.of[LARGE_KIND].used:  # else at another reading: a great window's chunks are not at hand
                self.let_go()
            self.make_room_for(self.tail + most)
            self.next_leaf, self.calm_tail = self.node(0, self.tail), self.tail + most
        return True

    cdef int64_t until_room_ends(self, int64_t most) noexcept nogil:
        """So many leaves, and no more than need a new chunk for the next one: where many levels need one, one after the other."""
        cdef int level = 0
        cdef bint great = self.pool.of[LARGE_KIND].used > 0
        cdef int64_t end
        cdef Queue* queue
        while ((self.tail + most + 1) >> level) > (self.tail + 1) >> level:
            queue = &self.level[level]
            end = queue.end << queue.shift
            end = end if level == 0 else ((end + 2) << level) - 2  # the first leaf whose node has no room
            if end > self.tail and (great or queue.shift >= self.pool.shift):  # of short chunks one is at hand, or soon had
                most = min(most, end - self.tail)
            level += 1
        return most

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
        self.prepare_chunks(block.n)
        return 0

    cdef int run_steadily(self, const Slot* leaves, int64_t n, Slot* totals) except -1 nogil:
        """The rest of a long batch straight from where it lies; the levels are made again after it."""
        cdef int64_t held = self.tail - self.head
        if self.p.width > 1 or not LEAST_STEADILY <= held <= MOST_STEADILY or self.base or self.pool.of[LARGE_KIND].used:
            return False
        if self.kernel == ADD:
            return go_steadily(self, add_op, leaves, n, totals)
        if self.kernel == LEAST:
            return go_steadily(self, least_op, leaves, n, totals)
        if self.kernel == GREATEST:
            return go_steadily(self, greatest_op, leaves, n, totals)
        return False

    cdef int64_t most_unevenly(self) noexcept nogil:
        cdef int64_t held = self.tail - self.head
        if self.p.width > 1 or not LEAST_UNEVEN <= held <= MOST_UNEVEN or self.base or self.pool.of[LARGE_KIND].used:
            return 0
        return most_uneven(held) if self.kernel == ADD or self.kernel == LEAST or self.kernel == GREATEST else 0

    cdef int run_unevenly(self, const Slot* leaves, const int64_t* times, int64_t span, int64_t n, Slot* totals) except -1 nogil:
        """The same of readings of which any number leaves at a time."""
        if self.kernel == ADD:
            return go_unevenly(self, add_op, leaves, times, span, n, totals)
        if self.kernel == LEAST:
            return go_unevenly(self, least_op, leaves, times, span, n, totals)
        if self.kernel == GREATEST:
            return go_unevenly(self, greatest_op, leaves, times, span, n, totals)
        return False

    cdef int64_t most_directly(self) noexcept nogil:
        if self.p.width > 1 or self.base or self.pool.of[LARGE_KIND].used:
            return 0
        return MOST_DIRECTLY if self.kernel == ADD or self.kernel == LEAST or self.kernel == GREATEST else 0

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
            self.reserve_levels(held)
            take_over(self, any_op, leaves, head, held)
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
        self.return_lefts()

    cdef void return_lefts(self) noexcept nogil:
        if self.lent:
            put_back(ROOM_OF_LEFTS, self.lefts - EIGHT * self.p.width)
            self.lefts, self.most_left, self.lent = self.own_lefts, self.own_most_left, False

    cdef inline void prepare_chunks(self, int64_t n) noexcept nogil:
        """In proportion to the block, have chunks ready for single readings after it."""
        while n >= PREPARES and prepare(&self.pool):
            n -= PREPARES

    cdef int64_t quiet(self, const Block* block, int64_t done) noexcept nogil:
        """How many readings from `done` on neither let the leftmost tree grow nor lower it, nor let many leave at once."""
        cdef int top = self.depth - 1
        cdef int64_t most, last, low = done, high, middle
        if top < 2:
            return 0
        most = ((((self.tail + 1) >> top) + 1) << top) - self.tail - 2
        most = min(most, block.n - done)
        last = min((self.end(top) << top) - 1, self.head + self.most_left)
        if most <= 0 or block.heads[done] > last:
            return 0
        high = done + most
        middle = done + last + 1 - block.heads[done]  # where one leaves for each that comes
        if middle < high and block.heads[middle] == last + 1 and block.heads[middle - 1] == last:
            high = middle
        elif block.heads[high - 1] > last:  # the readings after which the head is at most `last`
            while high - low > 1:
                middle = (low + high) >> 1
                if block.heads[middle] <= last:
                    low = middle
                else:
                    high = middle
        if block.jump <= top:  # fewer than the least number that leaves at once
            return high - done
        last = self.head
        for middle in range(done, high):
            if block.heads[middle] - last > top and block.heads[middle] - last > singles(self.tail + middle - done + 1 - last):
                return middle - done
            last = block.heads[middle]
        return high - done

    cdef int room_for_lefts(self, int64_t n) except -1 nogil:
        """Room for the R0s of n readings, and for eight before them that are computed with them and never read."""
        cdef int64_t most = max(min(n, SLOTS_OF_LEFTS // self.p.width), 15)
        cdef Slot* room
        if most <= self.most_left:
            return 0
        room = <Slot*> calloc((most + 1 + EIGHT) * self.p.width, sizeof(Slot))
        if room == NULL:
            with gil:
                raise MemoryError(f"amta: no memory for a block of {most} partials of {self.p.width} slots")
        if self.lefts != NULL:
            free(self.lefts - EIGHT * self.p.width)
        self.lefts, self.most_left = room + EIGHT * self.p.width, most
        return 0

    cdef int lend_lefts(self, int64_t n) except -1 nogil:
        """The same for a block, from the process: the window keeps no more than single readings need."""
        cdef int64_t most = max(min(n, SLOTS_OF_LEFTS // self.p.width), 15)
        cdef Slot* room
        if most <= self.most_left:
            return 0
        self.return_lefts()
        room = <Slot*> lend(ROOM_OF_LEFTS, (max(LEAST_LENT, most * self.p.width) + (1 + EIGHT) * self.p.width) * sizeof(Slot))
        if room == NULL:
            with gil:
                raise MemoryError(f"amta: no memory for a block of {most} partials of {self.p.width} slots")
        self.own_lefts, self.own_most_left, self.lent = self.lefts, self.most_left, True
        self.lefts, self.most_left = room + EIGHT * self.p.width, most
        return 0

    cdef int reserve_levels(self, int64_t most) except -1 nogil:
        """See to it that `open_levels` finds room for a forest of so many leaves once the present one is cleared."""
        cdef int64_t needs[KINDS]
        cdef int level = 0
        cdef bint found = True
        memset(needs, 0, sizeof(needs))
        see_to_layout(self, most)
        while found and (level == 0 or most >> level):
            if not self.level[(self.base + level) & (LEVELS - 1)].behind:
                found = foresee_queue(&self.pool, &self.level[(self.base + level) & (LEVELS - 1)], (most >> level) + 1, needs) == 0
                share_chunks(self, level)
            level += 1
        if level > self.reached:
            self.reach(level)
        if not found or keep_ready(&self.pool, needs) < 0:
            with gil:
                raise MemoryError(f"amta: no memory for a forest of {most} leaves")
        return 0

    cdef void open_levels(self, int64_t most) noexcept nogil:
        """Chunks for head … tail − 1, at most `most` of them, and for the nodes above, in place of those that are there."""
        cdef int level
        cdef Queue* queue
        for level in range(self.reached + 1):
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            if not queue.behind:
                shorten_queue(&self.pool, queue, self.first(level), self.end(level), (most >> level) + 1)
        level = 0
        while self.first(level) < self.end(level):
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            if not queue.behind:
                open_queue(&self.pool, queue, self.first(level), self.end(level), (most >> level) + 1)
                share_chunks(self, level)
            level += 1
        self.reached = level

    cdef int make_room_for(self, int64_t tail) except -1 nogil:
        """Reserve what the leaves up to `tail` and the nodes above them need."""
        see_to_layout(self, tail - self.head)
        return self.make_room_above(0, tail)

    cdef int make_room_above(self, int level, int64_t tail) except -1 nogil:
        """The same from this level on."""
        cdef int64_t index, last
        cdef Queue* queue
        while True:
            index, last = max(self.end(level), self.first(level)), ((tail + 1) >> level) - 2
            if index > last:
                return 0
            queue = &self.level[(self.base + level) & (LEVELS - 1)]
            if level > self.reached:
                self.reach(level)
            if queue.behind or has_room(&self.pool, queue, last):
                pass
            elif reserve_at(self, level, queue, index) < 0 or reserve_at(self, level, queue, last) < 0:
                with gil:
                    raise MemoryError(f"amta: no memory for the leaves up to {tail} at level {level}")
            level += 1

    # Algorithm 2 on each tree of the forest: bulk eviction

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        """Evict the longest prefix that leaves: each tree whole first, then down the first that stays."""
        cdef int64_t head
        self.unsettle()
        self.freshen()
        self.refresh_spine()
        head = self.first_kept(leaves, context)
        if head < 0:
            return -1
        if head > self.head:
            self.leap_to(head)
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
        self.unsettle()
        self.apart, self.most_together = True, -1 if self.pool.together else most_together(1)
        see_to_layout(self, self.tail - self.head)
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
        cdef Slot* top
        self.unsettle()
        self.freshen()
        top = self.stack + (self.stacked - 1) * self.p.width
        if not self.stacked:
            return self.right if self.has_right else NULL
        if not self.has_right:
            return top
        combine(self.p, self.spare + self.p.width, top, self.right)
        return self.spare + self.p.width

    cdef bint around(self, const Slot** left, const Slot** top, const Slot** base) noexcept nogil:
        self.unsettle()
        if self.tail - self.head < 2:
            return False
        if self.depth == 1:  # a pair: the newest leaf is part of the leftmost tree
            left[0], top[0], base[0] = self.node(0, self.head), NULL, NULL
            return True
        left[0] = self.left
        top[0] = self.stack + (self.stacked - 1) * self.p.width if self.stacked else NULL
        base[0] = self.base_of_right if self.has_base else NULL
        return True

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        if self.flat_out or self.lies_flat:
            self.unsettle()
        return self.node(0, index)

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
        for level in range(LEVELS):
            if not self.level[level].behind:
                clear(&self.pool, &self.level[level])
        self.depth = self.stacked = 0
        self.has_right = self.has_base = self.stale = False
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """The stack is a function of the leaves; R0 and R1 depend on how the window came to be."""
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
            stack_head(self, any_op, level)
        level = self.stacked == kept and memcmp(kept_stack, self.stack, size) == 0
        memcpy(self.stack, kept_stack, size)
        self.stacked = kept
        free(kept_stack)
        if not level:
            raise InvariantError("the stack is not what the heads of the levels give")
        return 0


include "amta_layout.pxi"
include "amta_forest.pxi"
include "amta_one.pxi"
include "amta_block.pxi"
include "amta_steady.pxi"
include "amta_levels.pxi"
include "amta_buckets.pxi"


cdef int chunk_shift(int64_t limit) noexcept:
    """For a window of few buckets chunks of about an eighth of them, 4 to 256."""
    cdef int shift = 2
    while shift < 8 and (<int64_t> 8 << shift) < limit:
        shift += 1
    return shift


cdef int stack_room(int64_t limit) noexcept:
    """Levels that a forest of so many leaves may have: one more than a tree's, and one for the pair being begun.

    Where any number may come, those of a few: `reach` makes more room.
    """
    cdef int levels = 2
    if limit == 0:
        return FEW_LEVELS
    while limit >> (levels - 2):
        levels += 1
    return levels
