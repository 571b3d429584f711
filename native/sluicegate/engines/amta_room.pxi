"""Room for AMTA's leaves, for the nodes above them and for R0s: had before it is needed, so that nothing fails half-way. Part of amta.pyx."""

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


cdef int reach(Amta self, int level) except -1 nogil:
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


cdef int make_room(Amta self, int level, int64_t index) except -1 nogil:
    """Reserve whatever appending this node may need, so that nothing fails half-way."""
    cdef int64_t pair
    cdef Queue* queue
    if level == 0:
        see_to_layout(self, index + 1 - self.head)
    while True:
        queue = &self.level[(self.base + level) & (LEVELS - 1)]
        if level > self.reached:
            reach(self, level)
        if not queue.behind and not has_room(&self.pool, queue, index) and reserve_at(self, level, queue, index) < 0:
            with gil:
                raise MemoryError(f"amta: no memory for node {index} of level {level}")
        pair = (index >> 1) - 1
        if index & 1 or pair < self.first(level + 1):
            return 0
        level += 1
        index = pair


cdef int make_room_above(Amta self, int level, int64_t tail) except -1 nogil:
    """The same from this level on."""
    cdef int64_t index, last
    cdef Queue* queue
    while True:
        index, last = max(self.end(level), self.first(level)), ((tail + 1) >> level) - 2
        if index > last:
            return 0
        queue = &self.level[(self.base + level) & (LEVELS - 1)]
        if level > self.reached:
            reach(self, level)
        if queue.behind or has_room(&self.pool, queue, last):
            pass
        elif reserve_at(self, level, queue, index) < 0 or reserve_at(self, level, queue, last) < 0:
            with gil:
                raise MemoryError(f"amta: no memory for the leaves up to {tail} at level {level}")
        level += 1


cdef int64_t until_room_ends(Amta self, int64_t most) noexcept nogil:
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


cdef int room_for_lefts(Amta self, int64_t n) except -1 nogil:
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


cdef int lend_lefts(Amta self, int64_t n) except -1 nogil:
    """The same for a block, from the process: the window keeps no more than single readings need."""
    cdef int64_t most = max(min(n, SLOTS_OF_LEFTS // self.p.width), 15)
    cdef Slot* room
    if most <= self.most_left:
        return 0
    return_lefts(self)
    room = <Slot*> lend(ROOM_OF_LEFTS, (max(LEAST_LENT, most * self.p.width) + (1 + EIGHT) * self.p.width) * sizeof(Slot))
    if room == NULL:
        with gil:
            raise MemoryError(f"amta: no memory for a block of {most} partials of {self.p.width} slots")
    self.own_lefts, self.own_most_left, self.lent = self.lefts, self.most_left, True
    self.lefts, self.most_left = room + EIGHT * self.p.width, most
    return 0


cdef void return_lefts(Amta self) noexcept nogil:
    if self.lent:
        put_back(ROOM_OF_LEFTS, self.lefts - EIGHT * self.p.width)
        self.lefts, self.most_left, self.lent = self.own_lefts, self.own_most_left, False


cdef int reserve_levels(Amta self, int64_t most) except -1 nogil:
    """Room for the so many leaves that a batch leaves, in the ring or in chunks for all levels."""
    if fits_ring_after(self, most):
        return reserve_ring(self, most)
    if self.lies_flat and self.few != NULL:
        settle(self, any_op)
    if self.flat_out:
        bring_back(self)
    free(self.few)  # what was reserved for a batch that was not taken
    self.few = NULL
    return reserve_chunks(self, most)


cdef int reserve_chunks(Amta self, int64_t most) except -1 nogil:
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
        reach(self, level)
    if not found or keep_ready(&self.pool, needs) < 0:
        with gil:
            raise MemoryError(f"amta: no memory for a forest of {most} leaves")
    return 0


cdef void open_levels(Amta self, int64_t most) noexcept nogil:
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
