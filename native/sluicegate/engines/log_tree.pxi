"""The tree of the logarithmic MTA, whatever holds its nodes (paper AMTA, Algorithms 1 and 2). Part of log_mta.pyx and
kvs_log_mta.pyx: `Tree` is the engine of either, with `node`, `drop_to` and `top`, the lowest level that is one pair."""


cdef inline void measure(Tree self) noexcept nogil:
    """Find the topmost level again, from the one before."""
    cdef int64_t last = self.tail - 1
    while self.head >> (self.top + 1) < last >> (self.top + 1):
        self.top += 1
    while self.top > 0 and self.head >> self.top >= last >> self.top:
        self.top -= 1


cdef inline void set_pair(Tree self, int level, int64_t index) noexcept nogil:
    """A node from those of its children that are there; they lie side by side."""
    cdef int64_t first = 2 * index, last = (self.tail - 1) >> (level - 1)
    cdef Slot* child
    if first < self.head >> (level - 1):
        copy(self.p, self.node(level, index), self.node(level - 1, first + 1))
        return
    child = self.node(level - 1, first)
    if first == last:
        copy(self.p, self.node(level, index), child)
    else:
        combine(self.p, self.node(level, index), child, child + self.p.width)


cdef inline void set_above(Tree self, int before) noexcept nogil:
    """Measure with a new leaf and set the pairs above it; levels above `before` are new: these get both sides."""
    cdef int level
    measure(self)
    for level in range(1, self.top + 1):
        if level > before:
            set_pair(self, level, self.head >> level)
        set_pair(self, level, (self.tail - 1) >> level)


cdef inline void set_firsts(Tree self) noexcept nogil:
    """The first node of each level, from the leaves up."""
    cdef int level
    for level in range(1, self.top + 1):
        set_pair(self, level, self.head >> level)


cdef inline void set_lasts(Tree self) noexcept nogil:
    cdef int level
    for level in range(1, self.top + 1):
        set_pair(self, level, (self.tail - 1) >> level)


cdef inline int evict_prefix(Tree self, Leaves leaves, void* context) noexcept nogil:
    """Algorithm 2: from the root down, what leaves goes whole; then combine the first pairs from the leaves up."""
    cdef int64_t head = self.tail
    cdef int answer
    if head == self.head or self.faulted:
        return -1 if self.faulted else 0
    answer = leaves(context, self.total())
    if answer == 0:
        head = first_kept(self, leaves, context)
    if answer < 0 or head < 0:
        return -1
    self.drop_to(head)
    return -1 if self.faulted else 0


cdef inline int64_t first_kept(Tree self, Leaves leaves, void* context) noexcept nogil:
    """The first leaf that stays, where the window as a whole does not leave; −1: an error was noted."""
    cdef int level = self.top, answer
    cdef int64_t index = self.head >> level, last = (self.tail - 1) >> level
    cdef bint started = False
    while True:
        if index < last:
            answer = ask(self, started, self.node(level, index), leaves, context)
            if answer < 0:
                return -1
            if answer == 1:
                started = True
                index += 1
        if level == 0:
            return index
        level -= 1
        last = min(2 * index + 1, (self.tail - 1) >> level)
        index = max(2 * index, self.head >> level)


cdef inline const Slot* total_of(Tree self) noexcept nogil:
    """The root pair, combined."""
    cdef int64_t first = self.head >> self.top, last = (self.tail - 1) >> self.top
    if self.head == self.tail or self.faulted:
        return NULL
    if first == last:
        return self.node(self.top, first)
    combine(self.p, self.spare, self.node(self.top, first), self.node(self.top, last))
    return self.spare


cdef inline const Slot* rest_of(Tree self) noexcept nogil:
    """The right siblings of the oldest leaf's ancestors, from the lowest up."""
    cdef Slot* out = self.spare + self.p.width
    cdef bint some = False
    cdef int64_t index
    cdef int level
    if self.tail - self.head < 2 or self.faulted:
        return NULL
    for level in range(self.top + 1):
        index = self.head >> level
        if index & 1 or index == (self.tail - 1) >> level:
            continue
        if some:
            combine(self.p, out, out, self.node(level, index + 1))
        else:
            copy(self.p, out, self.node(level, index + 1))
        some = True
    return out
