"""Bulk eviction (Algorithm 2 on each tree of the forest): each tree whole first, then down the first that stays. Part of amta.pyx."""

cdef inline bint leaps(Amta self, int64_t head, int64_t tail) noexcept nogil:
    """Whether so many leave that all do at once."""
    return head - self.head > 1 and head - self.head > singles(tail - self.head)


cdef void leap_to(Amta self, int64_t head) noexcept nogil:
    """Evict many at once."""
    ask_for_places(self, head)
    ask_for_spine(self, head)
    leap(self, any_op, head)


cdef inline void leap(Amta self, Op op, int64_t head) noexcept nogil:
    self.drop_to(head)
    self.measure()
    if self.head == self.tail:
        self.rebuild()
        return
    compute_left(self, op)
    compute_right(self, op)


cdef int slide_far(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """A reading with which many leave: R0, R1 and the stack are made once, after all, while what they need is on its way."""
    ask_for_places(self, head)
    if self.calm:
        catch_up(self, op)
        leave_calm(self)
        self.unstacked = True
    elif self.lies_flat:
        settle(self, op)
    self.return_chunk()
    make_room(self, 0, self.tail)
    ask_for_spine(self, head)
    self.unstacked = False
    raise_node(self, op, leaf)
    leap(self, op, head)
    if out != NULL and self.head < self.tail:
        total_by(self, op, out)
    return self.head < self.tail


cdef void ask_for_places(Amta self, int64_t head) noexcept nogil:
    """Have fetched where it stands where all is that a leap reads or writes: some of it has not been looked at for long."""
    cdef int level
    cdef Queue* queue
    for level in range(self.depth):
        queue = &self.level[(self.base + level) & (LEVELS - 1)]
        ask_for_place(queue, head >> level, queue.begin)
        prefetch(queue.chunk + ((self.end(level) - 1 >> queue.shift) & queue.mask))


cdef void ask_for_spine(Amta self, int64_t head) noexcept nogil:
    """And that itself: no level waits for another then. A page that is looked up for nothing is one that others wait for."""
    cdef int level
    cdef int64_t w = self.p.width, index
    cdef Queue* queue
    prefetch(spot(self, 0, head, w))
    for level in range(self.depth):
        queue, index = &self.level[(self.base + level) & (LEVELS - 1)], head >> level
        ask_for_link(queue, index)
        if not index & 1:
            prefetch(node_at(queue, w, index + 1))
        prefetch(node_at(queue, w, self.end(level) - 1))


cdef int64_t first_kept(Amta self, Leaves leaves, void* context) noexcept nogil:
    cdef int level, answer
    cdef int64_t index, start
    cdef bint started = False
    for level in range(self.depth - 1, -1, -1):
        start = (self.end(level) - 1) & ~(<int64_t> 1)
        if start < self.first(level):
            start = self.first(level)
        for index in range(start, self.end(level)):
            answer = leaves(context, longer(self, started, known(self, level, index)))
            if answer < 0:
                return -1
            if answer == 0:
                return descend(self, level, index, started, leaves, context)
            copy(self.p, self.spare + 2 * self.p.width, self.spare + 4 * self.p.width)
            started = True
    return self.tail


cdef int64_t descend(Amta self, int level, int64_t index, bint started, Leaves leaves, void* context) noexcept nogil:
    """The first leaf that stays, below a node that cannot leave as a whole."""
    cdef int answer
    while level > 0:
        level -= 1
        index = 2 * index
        if index < self.first(level):
            index += 1
            continue
        answer = leaves(context, longer(self, started, known(self, level, index)))
        if answer < 0:
            return -1
        if answer == 1:
            copy(self.p, self.spare + 2 * self.p.width, self.spare + 4 * self.p.width)
            started = True
            index += 1
    return index


cdef const Slot* longer(Amta self, bint started, const Slot* node) noexcept nogil:
    """The prefix that leaves so far (at spare[2]) and one node more, at spare[4]; `total` writes neither."""
    cdef Slot* out = self.spare + 4 * self.p.width
    if started:
        combine(self.p, out, self.spare + 2 * self.p.width, node)
    else:
        copy(self.p, out, node)
    return out


cdef void refresh_spine(Amta self) noexcept nogil:
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
