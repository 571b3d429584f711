"""One reading through AMTA: by what stands ready where the forest is calm, else what a stretch of such readings needs. Part of amta.pyx."""

cdef inline int slide_by(Engine self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    return slide_one(<Amta> self, op, leaf, head, out)


cdef inline int slowly_by(Engine self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(<Amta> self, op, leaf, head, out)


include "slides.pxi"


cdef inline int slide_one(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    if is_calm(self, head):
        return slide_calmly(self, op, leaf, head, out)
    return self.slide_slowly_by(self, leaf, head, out)


cdef int slide_slowly(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """Where a stretch of calm readings begins or ends, the leftmost tree changes, or many leave."""
    cdef Block block
    cdef int64_t oldest, newest
    cdef bint found, took = self.tail >= self.calm_tail
    self.freshen()
    if self.flat_out:
        if is_few(self, head):
            return slide_few(self, op, leaf, head, out)
        bring_back(self)
    if leaps(self, head, self.tail + 1):
        return slide_far(self, op, leaf, head, out)
    if self.lies_flat or self.unstacked:
        self.unsettle()
    if self.calm:
        if self.tail < self.calm_end and head < self.calm_head and <uint64_t> (head - self.head) <= <uint64_t> self.calm_jump:
            go_on_calmly(self)
            return slide_calmly(self, op, leaf, head, out)
        catch_up(self, op)
    self.return_chunk()
    if not self.calm and is_few(self, head) and lay_out(self):
        return slide_few(self, op, leaf, head, out)
    if self.foresee(head):
        if took:
            prepare(&self.pool)
        newest, oldest = self.tail + 1, self.head
        found = not self.calm or head >= self.calm_head
        if found:
            find_lefts(self, op)
        if not self.calm:
            self.calm, self.raised = True, self.tail
        slide_calmly(self, op, leaf, head, out)
        if took:  # last, so that nothing here waits behind what is fetched; for the end whose turn it is not
            ask_ahead(self, oldest, False)
        if found:
            ask_ahead(self, newest, True)
        if took and not found and self.pool.of[LARGE_KIND].used:
            self.let_go()
        return 1
    end_calm(self)
    make_room(self, 0, self.tail)
    raise_node(self, op, leaf)
    self.tail -= 1
    block.heads, block.totals, block.more = &head, out, False
    step(self, op, &block, 0)
    return self.head < self.tail


cdef inline int begin_stretch(Amta self, int64_t most) except -1 nogil:
    """Of so many leaves at most, a chunk of them after the other."""
    cdef int64_t over = (self.tail + most) & (run_at(&self.level[0], 0) - 1)
    self.let_go()
    self.calm_end = self.tail + (most - over if over < most else most)
    return go_on_calmly(self)


cdef inline int go_on_calmly(Amta self) except -1 nogil:
    """From the end of a chunk of leaves to the next."""
    cdef Queue* queue = &self.level[0]
    cdef int above = queue.shift
    cdef int64_t tail = self.tail + min(self.calm_end - self.tail, run_at(queue, self.tail))
    drop(&self.pool, queue, self.head)
    if not has_room(&self.pool, queue, self.tail) and reserve_at(self, 0, queue, self.tail) < 0:
        with gil:
            raise MemoryError(f"amta: no memory for leaf {self.tail}")
    if not has_room(&self.pool, &self.level[above], ((tail + 1) >> above) - 2):
        make_room_above(self, above, tail)
    self.next_leaf, self.calm_tail = self.node(0, self.tail), tail
    return 0


cdef void catch_up(Amta self, Op op) noexcept nogil:
    """Make the parents of the leaves that came while it was calm."""
    if self.raised < self.tail:
        raise_parts(self, op, self.raised, self.tail)
    self.raised = self.tail


cdef inline void leave_calm(Amta self) noexcept nogil:
    self.calm = False
    self.calm_tail = self.calm_end = -1
    self.measure()


cdef void end_calm(Amta self) noexcept nogil:
    """Make the stack anew, and let go of what lies before the head."""
    cdef int level
    if not self.calm:
        return
    leave_calm(self)
    self.let_go()
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        stack_head(self, any_op, level)


cdef void find_lefts(Amta self, Op op) noexcept nogil:
    """R0 for the next heads of the leftmost tree.

    While it is calm the stack is that of the last head found so far: where a level's first node is the same for the new
    last head, nothing changes there and above.
    """
    cdef int top = self.depth - 1, levels = top + 1, kept = 0
    cdef int64_t old = self.head, last = min((self.end(top) << top) - 1, old + min(AHEAD, self.most_left))
    cdef int64_t room = (self.level[0].end << self.level[0].shift) - self.tail
    if self.pool.of[LARGE_KIND].used and old - (self.level[0].begin << self.level[0].shift) > run_at(&self.level[0], 0) + 4 * AHEAD:
        self.let_go()  # else with a tail's stretch
    if last - old == AHEAD and AHEAD - 1 <= room <= AHEAD + 2:  # due again when the leaves need a chunk: sooner, not both at once
        last -= AHEAD // 2
    if self.calm and bits(old ^ last) <= top:
        levels = bits(old ^ last)
        kept = zeros(last >> levels, top - levels) + (not self.first(top) & 1 and self.first(top) + 1 < self.end(top))
    self.head = last
    lefts_of_parts(self, op, old, levels, kept)
    self.head = old
    copy_by(op, self.p, self.left, self.lefts)
    self.calm_lefts, self.lefts_from, self.calm_head = self.lefts, old, last + 1


cdef extern from *:
    int ones "__builtin_popcountll"(uint64_t number) nogil
    int empty_above "__builtin_clzll"(uint64_t number) nogil  # leading zeros of what is not 0


cdef inline int bits(int64_t number) noexcept nogil:
    """So many binary digits a number has that is not negative."""
    return 64 - empty_above(number) if number else 0


cdef inline int zeros(int64_t number, int digits) noexcept nogil:
    """The zeros among a number's lowest digits: levels whose first node is a pair's left one."""
    return digits - ones(number & ((<int64_t> 1 << digits) - 1))


cdef inline void ask_ahead(Amta self, int64_t index, bint newest) noexcept nogil:
    """Have fetched what an end of the window will touch where it crosses a multiple of ROUND leaves: it is cold at many levels.

    First where the chunks stand that it comes to, then, in the next stretches, the nodes, a part of the levels each: a
    processor fetches few pages at a time.
    """
    cdef int64_t crossing = (index + (PARTS + 2) * AHEAD) & -ROUND, stretches = (crossing - index - 1) // AHEAD
    if crossing <= index + AHEAD:
        return
    if stretches > PARTS:
        ask_for_chunks(self, crossing)
    elif newest:
        ask_for_newest(self, crossing, <int> stretches - 1)
    else:
        ask_for_oldest(self, crossing, <int> stretches - 1)


cdef void ask_for_chunks(Amta self, int64_t crossing) noexcept nogil:
    """Of the levels where a chunk begins there."""
    cdef int level = 0
    cdef Queue* queue
    while level < self.depth and not crossing & ((<int64_t> 1 << level) - 1):
        queue = &self.level[level]
        if not (crossing >> level) & ((<int64_t> 1 << queue.shift) - 1):
            ask_for_place(queue, crossing >> level, queue.end - 1)
        level += 1


cdef void ask_for_oldest(Amta self, int64_t crossing, int stage) noexcept nogil:
    """Of every PARTS-th level from `stage` on, where a cache line or a chunk begins: that, and what follows; of others the chunk that is let go."""
    cdef int64_t w = self.p.width
    cdef int level = stage, line
    cdef Queue* queue
    cdef Slot* node
    while level < self.depth and not crossing & ((<int64_t> 1 << level) - 1):
        queue = &self.level[level]
        if queue.begin <= (crossing >> level) >> queue.shift < queue.end:
            node = node_at(queue, w, crossing >> level)
            if level >= STILL or (<size_t> node & (LINE - 1)) < w * sizeof(Slot) or run_at(queue, crossing >> level) == <int64_t> 1 << queue.shift:
                for line in range(FOLLOWING if level < 2 else 2):
                    prefetch(node + line * (LINE // sizeof(Slot)))
        level += PARTS
    level = (stage + PARTS // 2) % PARTS
    while level < self.depth and not crossing & ((<int64_t> 1 << level) - 1):
        ask_for_link(&self.level[level], crossing >> level)
        level += PARTS


cdef void ask_for_newest(Amta self, int64_t crossing, int level) noexcept nogil:
    """The same, where the pairs that are complete there have not been looked at for long: at the upper levels."""
    cdef int64_t index
    cdef Queue* queue
    level += UPPER
    while level < self.depth and not crossing & ((<int64_t> 1 << level) - 1):
        queue, index = &self.level[level], (crossing >> level) - 2
        if queue.begin <= index >> queue.shift < queue.end:
            prefetch(node_at(queue, self.p.width, index))
            prefetch(link_of(queue, queue.end - 1))
        level += PARTS
