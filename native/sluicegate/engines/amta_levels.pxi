"""Where the levels of AMTA's forest lie: each in chunks of its own, in a small window some of them in the same chunks.

Every queue has a chunk begun at either end, a ring and a link a chunk. So a window of few has one queue for the lowest
three to five levels and one for every three above; a larger one has a queue a level, for long runs. Room is had before
it is needed, so that nothing fails half-way. Part of amta.pyx.
"""

cdef enum:
    WIDEST_TOGETHER = 4  # slots of a partial: chunks of several levels of wider ones would be great
    # levels, in chunks of 8 partials and those above; 4 in chunks of 16, and so on: a pair never lies in two
    LEAST_TOGETHER = 3
    MOST_TOGETHER = 6
    LEAVES_TOGETHER = 3  # the kind of chunks that leaves come to lie in at least, their parents in those half as long


# the shape

cdef inline Queue* queue_of(Amta self, int level) noexcept nogil:
    return &self.level[(self.base + level) & (LEVELS - 1)]


# levels that lie together

cdef inline int64_t most_readings(int levels) noexcept nogil:
    """Readings for which so many levels lie together; 1: any number."""
    if levels == 1:
        return <int64_t> 1 << 62
    if levels < 5:
        return 64 if levels == LEAST_TOGETHER else 110
    return 896 if levels == 5 else 2048


cdef inline int levels_for(int64_t readings) noexcept nogil:
    cdef int levels = LEAST_TOGETHER
    while levels <= MOST_TOGETHER:
        if readings <= most_readings(levels):
            return levels
        levels += 1
    return 1


cdef inline void shape_levels(Pool* pool, Queue* level, int width, int levels) noexcept nogil:
    """Empty queues."""
    cdef int i = 0, k
    memset(level, 0, LEVELS * sizeof(Queue))
    if levels == 1:
        shape(pool, width)
        for i in range(LEAVES_TOGETHER):
            level[i].lowest = <short> (LEAVES_TOGETHER - i)
        return
    shape_together(pool, width, LEAST_TOGETHER, levels)
    while i < LEVELS:
        keep_to_kind(pool, &level[i], levels)
        for k in range(1, min(levels, LEVELS - i)):
            share(&level[i], &level[i + k], k)
        i, levels = i + levels, LEAST_TOGETHER


cdef inline void share_chunks(Amta self, int level) noexcept nogil:
    """Tell the levels that lie in this one's chunks."""
    cdef int k
    for k in range(1, min(self.level[level].shift, LEVELS - level) if self.pool.together else 1):
        share(&self.level[level], &self.level[level + k], k)


cdef inline void dispose(Pool* pool, Queue* level) noexcept nogil:
    cdef int i
    for i in range(LEVELS):
        if not level[i].behind:
            clear(pool, &level[i])
            free(level[i].chunk)
    release(pool)


cdef inline bint lay_anew(Amta self, int64_t head, int64_t tail, int64_t readings, bint keep) noexcept nogil:
    """Chunks for the leaves head … tail − 1 of so many readings in place of those there are, with the nodes that are to
    `keep`.

    False: no memory, and nothing has changed.
    """
    cdef Pool pool
    cdef Queue level[LEVELS]
    cdef int i = 0, base = 0, levels = 1 if self.apart else levels_for(readings)
    shape_levels(&pool, level, self.p.width, levels)
    pool.wide, pool.batch = self.pool.wide, self.pool.batch
    while (head >> i) < end_of(tail, i):
        if not level[i].behind and open_queue(&pool, &level[i], head >> i, end_of(tail, i), (readings >> i) + 1) < 0:
            dispose(&pool, level)
            return False
        if level[i].behind:
            share(&level[base], &level[i], i - base)
        else:
            base = i
        if keep:
            copy_between(self, &self.level[i], &level[i], head >> i, end_of(tail, i))
        i += 1
    dispose(&self.pool, self.level)
    self.pool, self.most_together = pool, most_readings(levels)
    memcpy(self.level, level, sizeof(level))
    for i in range(LEVELS):
        if not level[i].behind:
            share_chunks(self, i)
    return True


cdef inline void copy_between(
    Amta self, const Queue* old, const Queue* queue, int64_t index, int64_t end
) noexcept nogil:
    cdef int64_t n, w = self.p.width
    while index < end:
        n = min(min(run_at(old, index), run_at(queue, index)), end - index)
        memcpy(node_at(queue, self.p.width, index), node_at(old, self.p.width, index), n * w * sizeof(Slot))
        index += n


cdef inline int see_to_layout(Amta self, int64_t readings) except -1 nogil:
    """Before there are so many: lay out the levels as that asks for."""
    if readings > self.most_together and not lay_anew(self, self.head, self.tail, readings, True):
        with gil:
            raise MemoryError(f"amta: no memory for {readings} readings in chunks of their own")
    return 0


cdef inline void draw_together(Amta self) noexcept nogil:
    """After many have left; not at once where the next ones might bring it back."""
    cdef int64_t held = self.tail - self.head
    if self.apart or self.pool.of[LARGE_KIND].used:
        return
    if most_readings(levels_for(held + (held >> 2))) < self.most_together:
        lay_anew(self, self.head, self.tail, held, True)  # without the memory for it all stays where it is


# room

cdef inline int widen_stack(Amta self, int levels) except -1 nogil:
    """Room for what so many levels may leave on it: one more than a tree's, and one for the pair being begun."""
    cdef Slot* stack
    if levels + 2 <= self.room:
        return 0
    stack = <Slot*> realloc(self.stack, (levels + 8) * self.p.width * sizeof(Slot))
    if stack == NULL:
        with gil:
            raise MemoryError(f"amta: no memory for {levels + 8} partials of {self.p.width} slots")
    self.stack, self.room = stack, levels + 8
    return 0


cdef inline int make_room(Amta self, int64_t tail) except -1 nogil:
    """Reserve what the leaves up to `tail` and the nodes above them need."""
    cdef int level = 0
    cdef int64_t index, last
    cdef Queue* queue
    while True:
        index, last = max(end_of(self.tail, level), self.head >> level), end_of(tail, level) - 1
        if index > last:
            return 0
        queue = queue_of(self, level)
        if level + 3 > self.room:
            widen_stack(self, level + 1)
        if not queue.behind and not has_room(&self.pool, queue, last):
            if reserve_at(self, level, queue, index) < 0 or reserve_at(self, level, queue, last) < 0:
                with gil:
                    raise MemoryError(f"amta: no memory for the leaves up to {tail} at level {level}")
        level += 1


cdef inline int reserve_at(Amta self, int level, Queue* queue, int64_t index) noexcept nogil:
    cdef int mask = queue.mask  # a wider ring may come to lie where the narrow one was
    cdef int done = reserve(&self.pool, queue, index)
    if self.pool.together and (queue.mask != mask or queue.chunk != self.level[level + 1].chunk):
        share_chunks(self, level)
    return done


cdef inline void let_go(Amta self) noexcept nogil:
    """Chunks that lie wholly before the head return to the free list."""
    cdef int level = 0
    cdef Queue* queue
    while level < LEVELS:
        queue = queue_of(self, level)
        if queue.behind:
            pass
        elif queue.begin < min((self.head >> level) >> queue.shift, queue.end):
            drop(&self.pool, queue, self.head >> level)
        # so it is above, or soon: chunks of the heap all
        elif queue.begin == queue.end or queue.shift <= self.pool.shift:
            break
        level += 1


cdef inline void lay_leaves(Amta self, const Slot* leaves, int64_t index, int64_t k) noexcept nogil:
    """Where there is room for them."""
    cdef int64_t end = index + k, n, w = self.p.width
    while index < end:
        n = min(run_at(queue_of(self, 0), index), end - index)
        memcpy(spot(self, 0, index, self.p.width), leaves, n * w * sizeof(Slot))
        leaves, index = leaves + n * w, index + n
