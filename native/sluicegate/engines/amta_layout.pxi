"""Where the levels of AMTA's forest lie: in a small window some of them in the same chunks. Part of amta.pyx.

Every queue has a chunk begun at either end, a ring and a link a chunk. So a window of few has one queue for the lowest three
to five levels and one for every three above; a larger one has a queue a level, for long runs.
"""

cdef enum:
    WIDEST_TOGETHER = 4  # slots of a partial: chunks of several levels of wider ones would be great
    LEAST_TOGETHER = 3  # levels, in chunks of 8 partials and those above; 4 in chunks of 16, and so on: a pair never lies in two
    MOST_TOGETHER = 6
    READINGS_OF_THREE = 64  # held at most
    READINGS_OF_FOUR = 110
    READINGS_OF_FIVE = 896
    READINGS_OF_SIX = 2048


cdef inline int64_t most_together(int levels) noexcept nogil:
    """Readings for which so many levels lie together; 1: any number."""
    if levels == 1:
        return MAX_READINGS
    if levels < 5:
        return READINGS_OF_THREE if levels == LEAST_TOGETHER else READINGS_OF_FOUR
    return READINGS_OF_FIVE if levels == 5 else READINGS_OF_SIX


cdef inline int levels_together(int64_t readings) noexcept nogil:
    cdef int levels = LEAST_TOGETHER
    while levels <= MOST_TOGETHER:
        if readings <= most_together(levels):
            return levels
        levels += 1
    return 1


cdef void shape_levels(Pool* pool, Queue* level, int width, int levels) noexcept nogil:
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


cdef inline int reserve_at(Amta self, int level, Queue* queue, int64_t index) noexcept nogil:
    cdef int mask = queue.mask  # a wider ring may come to lie where the narrow one was
    cdef int done = reserve(&self.pool, queue, index)
    if self.pool.together and (queue.mask != mask or queue.chunk != self.level[level + 1].chunk):
        share_chunks(self, level)
    return done


cdef void dispose(Pool* pool, Queue* level) noexcept nogil:
    cdef int i
    for i in range(LEVELS):
        if not level[i].behind:
            clear(pool, &level[i])
            free(level[i].chunk)
    release(pool)


cdef inline int see_to_layout(Amta self, int64_t readings) except -1 nogil:
    """Before there are so many: lay out the levels as that asks for. No calm reading's parents may be missing."""
    if readings > self.most_together and not lay_anew(self, readings):
        with gil:
            raise MemoryError(f"amta: no memory for {readings} readings in chunks of their own")
    return 0


cdef inline void draw_together(Amta self) noexcept nogil:
    """After many have left; not at once where the next ones might bring it back."""
    cdef int64_t readings = self.tail - self.head
    if most_together(levels_together(readings + (readings >> 2))) < self.most_together and not self.pool.of[LARGE_KIND].used:
        lay_anew(self, readings)  # without the memory for it all stays where it is


cdef bint lay_anew(Amta self, int64_t readings) noexcept nogil:
    """The levels in other chunks; False: no memory, and nothing has changed."""
    cdef Pool pool
    cdef Queue level[LEVELS]
    cdef int i = 0, base = 0, levels = 1 if self.apart else levels_together(readings)
    cdef bint stored = not (self.lies_flat or self.flat_out)
    shape_levels(&pool, level, self.p.width, levels)
    pool.wide, pool.batch = self.pool.wide, self.pool.batch
    while stored and self.first(i) < self.end(i):
        if not level[i].behind and open_queue(&pool, &level[i], self.first(i), self.end(i), (readings >> i) + 1) < 0:
            dispose(&pool, level)
            return False
        if level[i].behind:
            share(&level[base], &level[i], i - base)
        else:
            base = i
        copy_between(self, &self.level[i], &level[i], self.first(i), self.end(i))
        i += 1
    dispose(&self.pool, self.level)
    self.pool = pool
    memcpy(self.level, level, sizeof(level))
    for i in range(LEVELS):
        if not level[i].behind:
            share_chunks(self, i)
    self.reached = self.depth if stored else 0
    self.most_together = most_together(levels)
    return True


cdef void copy_between(Amta self, const Queue* old, const Queue* queue, int64_t index, int64_t end) noexcept nogil:
    cdef int64_t n, w = self.p.width
    while index < end:
        n = min(min(run_at(old, index), run_at(queue, index)), end - index)
        memcpy(node_at(queue, self.p.width, index), node_at(old, self.p.width, index), n * w * sizeof(Slot))
        index += n
