"""The forest of AMTA, whatever holds its nodes: leaves and their parents, R0, R1 and the stack (Algorithms 3 to 7, and
Algorithm 2 on each tree). Part of amta.pyx, amta_buckets.pyx and kvs_amta.pyx.

`Forest` is the engine of each and `Op` the operators it knows. Each says from which level on it keeps nodes
(`KEPT_FROM`) and where one is (`spot`), moves the head (`leave`, False where that fails) and begins what a new node
needs (`begins`, `fill`). Where it is `faulted` a node could not be had.
"""

cdef extern from *:
    int empty_above "__builtin_clzll"(uint64_t number) nogil  # leading zeros of what is not 0


cdef inline int bits(int64_t number) noexcept nogil:
    """So many binary digits a number has that is not negative."""
    return 64 - empty_above(number) if number else 0


cdef inline int64_t end_of(int64_t tail, int level) noexcept nogil:
    """Index after a level's last node."""
    return ((tail + 1) >> level) - 1


cdef inline int depth_of(int64_t head, int64_t tail) noexcept nogil:
    """Levels of a forest of these leaves that hold a node."""
    cdef int level
    if head == tail:
        return 0
    level = bits(tail + 1 - head)
    return level - (((tail + 1) >> (level - 1)) - (head >> (level - 1)) < 2)


cdef inline void measure(Forest self) noexcept nogil:
    self.depth = depth_of(self.head, self.tail)


cdef inline bint keeps(Forest self, int level) noexcept nogil:
    return level == 0 or level >= KEPT_FROM


cdef inline bint at_once(int64_t head, int64_t after, int64_t tail) noexcept nogil:
    """Whether so many leave that all do at once: more than a log n of them."""
    return after - head > 1 and after - head > bits(tail - head) + 1


cdef inline bint grows(int before, int depth, int64_t tail) noexcept nogil:
    """Whether the newest of the leaves up to `tail` lets the leftmost tree grow."""
    return depth == before and not (tail + 1) & ((<int64_t> 1 << (before - 1)) - 1)


# Algorithms 3 to 5: insertion

cdef inline void insert(Forest self, Op op) noexcept nogil:
    """Take in the leaf that is in its place at the tail; R1 with it is for `freshen`."""
    cdef int before
    if self.depth < 2:
        freshen(self, op)
    raise_placed(self, op)
    before = self.depth
    self.tail += 1
    measure(self)
    if before == 0:
        compute_left(self, op)
    elif grows(before, self.depth, self.tail):
        compute_left(self, op)
        compute_right(self, op)
    else:
        if self.has_right:
            close_newest(self, op)
        self.has_right = self.stale = True


cdef inline void raise_placed(Forest self, Op op) noexcept nogil:
    """The parents that the leaf at the tail completes: a pair gets its own when the next pair of its level begins."""
    cdef int level = 0, w = width_of(op, self.p)
    cdef int64_t index = self.tail, pair
    cdef bint begun
    cdef Slot* node
    while True:
        pair = (index >> 1) - 1
        if index & 1 or pair < self.head >> (level + 1):
            return
        begun = begins(self, level + 1, pair)
        if keeps(self, level + 1):
            node = spot(self, level + 1, pair, w)
            if index - 2 >= self.head >> level:
                combine_by(op, self.p, node, spot(self, level, index - 2, w), spot(self, level, index - 1, w))
            else:
                copy_by(op, self.p, node, spot(self, level, index - 1, w))
        level += 1
        if begun:
            fill(self, level, pair)
        index = pair


cdef inline void close_newest(Forest self, Op op) noexcept nogil:
    """No reading joins the leaf before the one that has come: it is part of what R1 is taken from now."""
    cdef int w = width_of(op, self.p)
    if not self.stale:
        copy_by(op, self.p, self.base_of_right, self.right)
    elif not self.has_base:
        copy_by(op, self.p, self.base_of_right, spot(self, 0, self.tail - 2, w))
    else:
        combine_by(op, self.p, self.base_of_right, self.base_of_right, spot(self, 0, self.tail - 2, w))
    self.has_base = True


cdef inline void freshen(Forest self, Op op) noexcept nogil:
    """R0 or R1 anew where the newest leaf has changed since."""
    if not self.stale or self.faulted:
        return
    if self.depth == 1:
        compute_left(self, op)
    else:
        add_newest(self, op)
    self.stale = False


cdef inline void add_newest(Forest self, Op op) noexcept nogil:
    """R1 from its base and the newest leaf."""
    cdef const Slot* newest = spot(self, 0, self.tail - 1, width_of(op, self.p))
    if self.has_base:
        combine_by(op, self.p, self.right, self.base_of_right, newest)
    else:
        copy_by(op, self.p, self.right, newest)


cdef inline void compute_left(Forest self, Op op) noexcept nogil:
    """R0 and the stack (Algorithm 4)."""
    cdef int w = width_of(op, self.p)
    make_stack(self, op)
    if self.stacked:
        combine_by(op, self.p, self.left, spot(self, 0, self.head, w), self.stack + (self.stacked - 1) * w)
    else:
        copy_by(op, self.p, self.left, spot(self, 0, self.head, w))


cdef inline void make_stack(Forest self, Op op) noexcept nogil:
    cdef int level
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        stack_head(self, op, width_of(op, self.p), 0, level)


cdef inline void stack_head(Forest self, Op op, int w, int s, int level) noexcept nogil:
    """Of partials of w slots the component s slots into them."""
    cdef int64_t index = self.head >> level
    cdef Slot* top = self.stack + self.stacked * w + s
    if index & 1 or index + 1 >= end_of(self.tail, level):
        return
    if self.stacked:
        combine_by(op, self.p, top, spot(self, level, index + 1, w) + s, top - w)
    else:
        copy_by(op, self.p, top, spot(self, level, index + 1, w) + s)
    self.stacked += 1


cdef inline void compute_right(Forest self, Op op) noexcept nogil:
    """R1 from the last pair of each level but the topmost, the leftmost tree (Algorithm 5, R1 reset first).

    The newest leaf, which readings may still join, comes last by itself.
    """
    cdef int level, w = width_of(op, self.p)
    cdef int64_t last = self.tail - 1
    cdef Slot* pair = self.spare
    self.stale = False
    self.has_right = self.depth > 1
    self.has_base = self.has_right and last & 1
    if not self.has_right:
        return
    if self.has_base:
        copy_by(op, self.p, self.base_of_right, spot(self, 0, last - 1, w))
    for level in range(1, self.depth - 1):
        last = end_of(self.tail, level) - 1
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


# Algorithms 6 and 7: eviction

cdef inline void evict(Forest self, Op op) noexcept nogil:
    """The oldest leaf."""
    cdef int before = self.depth, level = 0, w = width_of(op, self.p)
    if before < 2:
        freshen(self, op)
    if not leave(self, self.head + 1, True):
        return
    measure(self)
    if self.depth < before:
        rebuild(self, op)
        return
    self.stacked -= 1
    copy_by(op, self.p, self.left, self.stack + self.stacked * w)
    while level < before and not (self.head >> level) & 1:
        level += 1
    while level > 0:
        level -= 1
        stack_head(self, op, w, 0, level)


cdef inline void evict_to(Forest self, Op op, int64_t head) noexcept nogil:
    """One by one, or, where more than about log n leave, at once."""
    if at_once(self.head, head, self.tail):
        evict_all_to(self, op, head)
    while self.head < head:
        evict(self, op)


cdef inline void evict_all_to(Forest self, Op op, int64_t head) noexcept nogil:
    if leave(self, head, False):
        measure(self)
        rebuild(self, op)


cdef inline void rebuild(Forest self, Op op) noexcept nogil:
    """R0, R1 and the stack from the leaves alone."""
    self.has_right = self.has_base = self.stale = False
    self.stacked = 0
    if self.head < self.tail:
        compute_left(self, op)
        compute_right(self, op)


# Algorithm 2 on each tree of the forest: bulk eviction

cdef inline int evict_prefix(Forest self, Op op, Leaves leaves, void* context) noexcept nogil:
    """Evict the longest prefix that leaves: each tree whole first, then down the first that stays."""
    cdef int64_t head
    freshen(self, op)
    if not refresh_spine(self):
        return -1
    head = first_kept(self, leaves, context)
    if head > self.head:
        evict_all_to(self, op, head)
    return -1 if head < 0 or self.faulted else 0


cdef inline int64_t first_kept(Forest self, Leaves leaves, void* context) noexcept nogil:
    cdef int level, answer
    cdef int64_t index, start
    cdef bint started = False
    for level in range(self.depth - 1, -1, -1):
        start = max((end_of(self.tail, level) - 1) & ~(<int64_t> 1), self.head >> level)
        for index in range(start, end_of(self.tail, level)):
            answer = ask(self, started, spot(self, level, index, self.p.width), leaves, context)
            if answer < 0:
                return -1
            if answer == 0:
                return descend(self, level, index, started, leaves, context)
            started = True
    return self.tail


cdef inline int64_t descend(
    Forest self, int level, int64_t index, bint started, Leaves leaves, void* context
) noexcept nogil:
    """The first leaf that stays, below a node that cannot leave as a whole."""
    cdef int answer
    while level > 0:
        level -= 1
        index = 2 * index
        if index < self.head >> level:
            index += 1
            continue
        answer = ask(self, started, spot(self, level, index, self.p.width), leaves, context)
        if answer < 0:
            return -1
        if answer == 1:
            started = True
            index += 1
    return index


cdef inline bint refresh_spine(Forest self) noexcept nogil:
    """Recompute the first node of each level from the leaves that are still there; False: one could not be had."""
    cdef int level, w = self.p.width
    cdef int64_t child
    cdef Slot* node
    for level in range(1, self.depth if not self.faulted else 0):
        child = self.head >> (level - 1)
        if not keeps(self, level):
            continue
        node = spot(self, level, child >> 1, w)
        if self.faulted:
            return False
        if child & 1:
            copy(self.p, node, spot(self, level - 1, child, w))
        else:
            combine(self.p, node, spot(self, level - 1, child, w), spot(self, level - 1, child + 1, w))
    return not self.faulted


# answers

cdef inline const Slot* total_of(Forest self, Op op) noexcept nogil:
    if self.head == self.tail or self.faulted:
        return NULL
    freshen(self, op)
    if not self.has_right:
        return self.left
    combine(self.p, self.spare, self.left, self.right)
    return self.spare


cdef inline const Slot* rest_of(Forest self, Op op) noexcept nogil:
    cdef const Slot* top
    if self.faulted:
        return NULL
    freshen(self, op)
    if not self.stacked:
        return self.right if self.has_right else NULL
    top = self.stack + (self.stacked - 1) * self.p.width
    if not self.has_right:
        return top
    combine(self.p, self.spare + self.p.width, top, self.right)
    return self.spare + self.p.width


cdef inline const Slot* result_of(Forest self, Op op, int side) noexcept nogil:
    if self.head == self.tail or (side == 1 and not self.has_base):
        return NULL
    freshen(self, op)
    return self.left if side == 0 else self.base_of_right


cdef inline void take_over(Forest self, Op op, const Slot* left, const Slot* right) noexcept nogil:
    """R0 and what R1 is taken from, which depend on how the window came to be; all else is a function of the leaves."""
    copy(self.p, self.left, left)
    self.has_base = right != NULL
    if right != NULL:
        copy(self.p, self.base_of_right, right)
    if self.has_right:
        add_newest(self, op)
