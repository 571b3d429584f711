"""Where the levels of AMTA's forest lie: each in a queue of chunks of its own.

Room is had before it is needed, so that nothing fails half-way. Part of amta.pyx.
"""

cdef enum:
    LEAVES_LIE = 3  # the kind of chunks that leaves come to lie in at least, their parents in those half as long


cdef inline Queue* queue_of(Amta self, int level) noexcept nogil:
    return &self.level[level]


cdef inline void empty_levels(Queue* level) noexcept nogil:
    cdef int i
    memset(level, 0, LEVELS * sizeof(Queue))
    for i in range(LEAVES_LIE):
        level[i].lowest = <short> (LEAVES_LIE - i)


cdef inline void dispose(Pool* pool, Queue* level) noexcept nogil:
    cdef int i
    for i in range(LEVELS):
        clear(pool, &level[i])
        free(level[i].chunk)
    release(pool)


cdef inline bint lay_anew(Amta self, int64_t head, int64_t tail) noexcept nogil:
    """Empty chunks for the leaves head … tail − 1 and what is above them, in place of those there are.

    False: no memory, and nothing of it has changed.
    """
    cdef Pool pool
    cdef Queue level[LEVELS]
    cdef int i = 0
    if not has_stack(self, depth_of(head, tail)):
        return False
    shape(&pool, self.p.width)
    empty_levels(level)
    while (head >> i) < end_of(tail, i):
        if open_queue(&pool, &level[i], head >> i, end_of(tail, i), ((tail - head) >> i) + 1) < 0:
            dispose(&pool, level)
            return False
        i += 1
    dispose(&self.pool, self.level)
    self.pool = pool
    memcpy(self.level, level, sizeof(level))
    return True


# room

cdef inline bint has_stack(Amta self, int levels) noexcept nogil:
    """Have room for what so many levels leave on it: one more than a tree's, and one for the pair being begun."""
    cdef int room = min(levels + 7, LEVELS)
    cdef Slot* stack
    if levels + 2 <= self.room:
        return True
    stack = <Slot*> realloc(self.stack, room * self.p.width * sizeof(Slot)) if levels + 2 <= LEVELS else NULL
    if stack != NULL:
        self.stack, self.room = stack, room
    return stack != NULL


cdef inline int make_room(Amta self, int64_t tail) except -1 nogil:
    """Reserve what the leaves up to `tail` and the nodes above them need."""
    cdef int level = 0
    cdef int64_t index, last
    cdef Queue* queue
    cdef bint found
    while True:
        index, last = max(end_of(self.tail, level), self.head >> level), end_of(tail, level) - 1
        if index > last:
            return 0
        queue = queue_of(self, level)
        found = has_stack(self, level + 1)
        if found and not has_room(queue, last):
            found = reserve(&self.pool, queue, index) == 0 and reserve(&self.pool, queue, last) == 0
        if not found:
            with gil:
                raise MemoryError(f"amta: no memory for the leaves up to {tail} at level {level}")
        level += 1


cdef inline void let_go(Amta self) noexcept nogil:
    """Chunks that lie wholly before the head return to the free list."""
    cdef int level
    cdef Queue* queue
    for level in range(LEVELS):
        queue = queue_of(self, level)
        if queue.begin < min((self.head >> level) >> queue.shift, queue.end):
            drop(&self.pool, queue, self.head >> level)
        elif queue.begin == queue.end or queue.shift <= self.pool.shift:  # so it is above, or soon: heap's chunks all
            break


cdef inline void lay_leaves(Amta self, const Slot* leaves, int64_t index, int64_t k) noexcept nogil:
    """Where there is room for them."""
    cdef int64_t end = index + k, n, w = self.p.width
    while index < end:
        n = min(run_at(queue_of(self, 0), index), end - index)
        memcpy(spot(self, 0, index, self.p.width), leaves, n * w * sizeof(Slot))
        leaves, index = leaves + n * w, index + n
