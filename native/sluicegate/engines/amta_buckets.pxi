# One bucket at a time: leaves of a window of buckets, or of several aggregates, as wide as two or three cache lines.
#
# R1 is left for when somebody asks: readings mostly join a bucket before that, and then it would be taken twice. What the next
# buckets read and write is fetched beforehand: a window of many is larger than any cache.

cdef extern from *:
    """
    /* the empty line keeps a compiler from leaving out calls of functions that only prefetch */
    #define sg_fetch(address) do { __builtin_prefetch(address); __asm__ volatile(""); } while (0)
    #define sg_fetch_to_write(address) do { __builtin_prefetch(address, 1); __asm__ volatile(""); } while (0)
    """
    void fetch "sg_fetch"(const void* address) noexcept nogil
    void fetch_to_write "sg_fetch_to_write"(const void* address) noexcept nogil

cdef enum:
    SOON = 4  # buckets


cdef inline void push_bucket(Amta self) noexcept nogil:
    """Algorithm 3, but for R1 with the new leaf, which is in its place."""
    cdef int before
    if self.depth < 2:
        self.freshen()
    raise_placed(self, any_op)
    before = self.depth
    self.measure()
    if before == 0:
        compute_left(self, any_op)
    elif self.depth == before and not (self.tail + 1) & (((<int64_t> 1) << (before - 1)) - 1):  # the leftmost tree has grown
        compute_left(self, any_op)
        compute_right(self, any_op)
    else:
        if self.has_right:
            close_newest(self, spot(self, 0, self.tail - 2, self.p.width))
        self.has_right = self.stale = True
    fetch_next_leaf(self)


cdef inline void close_newest(Amta self, const Slot* newest) noexcept nogil:
    """No reading joins it any more: from now on it is part of what R1 is taken from."""
    if self.has_base:
        append_closed(self.p, self.base_of_right, newest)
    else:
        copy(self.p, self.base_of_right, newest)
        self.has_base = True


cdef void pop_bucket(Amta self) noexcept nogil:
    """Algorithms 6 and 7; R1 may wait, but where the newest leaf is part of the leftmost tree."""
    self.unsettle()
    if self.depth < 2:
        self.freshen()
    pop_by(self, any_op)
    fetch_heads(self)


cdef inline void fetch_next_leaf(Amta self) noexcept nogil:
    cdef int64_t index = self.tail + SOON
    cdef Queue* queue = &self.level[self.base & (LEVELS - 1)]
    cdef const Slot* leaf
    cdef int s = 0
    if not has_room(&self.pool, queue, index):
        return
    leaf = node_at(queue, self.p.width, index)
    while s < self.p.width:
        fetch_to_write(leaf + s)
        s += 8


cdef inline void fetch_heads(Amta self) noexcept nogil:
    """What is read when the window begins a few leaves further on: that leaf, and what the stack will take."""
    cdef int64_t head = self.head + SOON
    cdef int level = 1
    if head + 1 >= self.tail:
        return
    fetch_node(self, 0, head)
    if head & 1:
        return
    while level < self.depth and not (head >> level) & 1:
        if (head >> level) + 1 < self.end(level):
            fetch_node(self, level, (head >> level) + 1)
        level += 1


cdef inline void fetch_node(Amta self, int level, int64_t index) noexcept nogil:
    cdef const Slot* node = spot(self, level, index, self.p.width)
    cdef int s = 0
    while s < self.p.width:
        fetch(node + s)
        s += 8
    fetch(node + self.p.width - 1)
