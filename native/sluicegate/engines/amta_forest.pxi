"""The forest of AMTA for each operator: leaves and their parents, R0, R1 and the stack (Algorithms 3 to 7). Part of amta.pyx."""

cdef inline Slot* spot(Amta self, int level, int64_t index, int w) noexcept nogil:
    return node_at(&self.level[(self.base + level) & (LEVELS - 1)], w, index)


cdef inline const Slot* known(Amta self, int level, int64_t index) noexcept nogil:
    """The same while a bulk eviction looks: of few readings the nodes stand elsewhere."""
    return self.spread[level] + index * self.p.width if self.spread != NULL else spot(self, level, index, self.p.width)


cdef inline int64_t singles(int64_t size) noexcept nogil:
    """So many leaves are evicted one by one before all that leave are at once: a log n of them."""
    cdef int64_t k = 1
    while size:
        size >>= 1
        k += 1
    return k


# the algorithms, for each operator

cdef inline void push_by(Amta self, Op op, const Slot* leaf) noexcept nogil:
    """Algorithm 3; there is room."""
    raise_node(self, op, leaf)
    self.tail -= 1
    advance(self, op)


cdef inline void advance(Amta self, Op op) noexcept nogil:
    """Take in the next leaf, which is in its place with the parents it completes."""
    cdef int before = self.depth
    self.tail += 1
    self.measure()
    if before == 0:
        compute_left(self, op)
    elif self.depth == before and not (self.tail + 1) & (((<int64_t> 1) << (before - 1)) - 1):  # the leftmost tree has grown
        compute_left(self, op)
        compute_right(self, op)
    else:
        self.has_base = self.has_right
        if self.has_base:
            copy_by(op, self.p, self.base_of_right, self.right)
        add_newest(self, op)


cdef inline void add_newest(Amta self, Op op) noexcept nogil:
    """R1 from its base and the newest leaf."""
    cdef Slot* newest = spot(self, 0, self.tail - 1, width_of(op, self.p))
    if self.has_base:
        combine_by(op, self.p, self.right, self.base_of_right, newest)
    else:
        copy_by(op, self.p, self.right, newest)
    self.has_right = True


cdef inline void total_by(Amta self, Op op, Slot* out) noexcept nogil:
    """Of a window that holds any."""
    if self.has_right:
        combine_by(op, self.p, out, self.left, self.right)
    else:
        copy_by(op, self.p, out, self.left)


cdef inline void raise_node(Amta self, Op op, const Slot* leaf) noexcept nogil:
    """Append a leaf and the parents this completes."""
    copy_by(op, self.p, spot(self, 0, self.tail, width_of(op, self.p)), leaf)
    raise_placed(self, op)


cdef inline void raise_placed(Amta self, Op op) noexcept nogil:
    """The parents that the next leaf completes, which is in its place."""
    cdef int level = 0, w = width_of(op, self.p)
    cdef int64_t index = self.tail, pair
    cdef Slot* node
    self.tail += 1
    while True:
        pair = (index >> 1) - 1
        if index & 1 or pair < self.first(level + 1):
            return
        node = spot(self, level + 1, pair, w)
        if index - 2 >= self.first(level):
            combine_by(op, self.p, node, spot(self, level, index - 2, w), spot(self, level, index - 1, w))
        else:
            copy_by(op, self.p, node, spot(self, level, index - 1, w))
        level += 1
        index = pair


cdef void compute_left(Amta self, Op op) noexcept nogil:
    """R0 and the stack (Algorithm 4)."""
    cdef int level, w = width_of(op, self.p)
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        stack_head(self, op, level)
    if self.stacked:
        combine_by(op, self.p, self.left, spot(self, 0, self.head, w), self.stack + (self.stacked - 1) * w)
    else:
        copy_by(op, self.p, self.left, spot(self, 0, self.head, w))


cdef void compute_right(Amta self, Op op) noexcept nogil:
    """R1 from the last pair of each level but the topmost, the leftmost tree (Algorithm 5, R1 reset first).

    The newest leaf, which readings may still join, comes last by itself.
    """
    cdef int level, w = width_of(op, self.p)
    cdef int64_t last = self.tail - 1
    cdef Slot* pair = self.spare + 3 * w
    self.stale = False
    self.has_right = self.depth > 1
    self.has_base = self.has_right and last & 1
    if not self.has_right:
        return
    if self.has_base:
        copy_by(op, self.p, self.base_of_right, spot(self, 0, last - 1, w))
    for level in range(1, self.depth - 1):
        last = self.end(level) - 1
        if last & 1:
            combine_by(op, self.p, pair, spot(self, level, last - 1, w), spot(self, level, last, w))
        else:
            copy_by(op, self.p, pair, spot(self, level, last, w))
        if self.has_base:
            combine_by(op, self.p, self.base_of_right, pair, self.base_of_right)
        else:
            copy_by(op, self.p, self.base_of_right, pair)
            self.has_base = True
    add_newest(self, op)


cdef inline void stack_head(Amta self, Op op, int level) noexcept nogil:
    stack_part(self, op, width_of(op, self.p), 0, level)


cdef inline void stack_part(Amta self, Op op, int w, int s, int level) noexcept nogil:
    cdef int64_t index = self.first(level)
    cdef Slot* top = self.stack + self.stacked * w + s
    if index & 1 or index + 1 >= self.end(level):
        return
    if self.stacked:
        combine_by(op, self.p, top, spot(self, level, index + 1, w) + s, top - w)
    else:
        copy_by(op, self.p, top, spot(self, level, index + 1, w) + s)
    self.stacked += 1


cdef inline void pop_by(Amta self, Op op) noexcept nogil:
    """Algorithms 6 and 7."""
    cdef int before = self.depth, level = 0, w = width_of(op, self.p)
    self.head += 1
    if not self.head & (((<int64_t> 1) << self.pool.least) - 1):  # no chunk ends anywhere else
        self.let_go()
    self.measure()
    if self.depth < before:
        if self.head == self.tail:
            self.rebuild()
        else:
            compute_left(self, op)
            compute_right(self, op)
        return
    self.stacked -= 1
    copy_by(op, self.p, self.left, self.stack + self.stacked * w)
    while level < before and not (self.head >> level) & 1:
        level += 1
    while level > 0:
        level -= 1
        stack_head(self, op, level)
