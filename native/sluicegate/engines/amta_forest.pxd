"""The forest of AMTA for each operator: leaves and their parents, R0, R1 and the stack (Algorithms 3 to 7)."""

from libc.stdint cimport int64_t, uint64_t

from sluicegate.engines.amta cimport Amta
from sluicegate.engines.amta_levels cimport end_of, let_go, make_room, measure, see_to_layout, spot
from sluicegate.memory.chunks cimport give_back
from sluicegate.partials.kernels cimport Any, Op, combine_by, copy_by, put_by, width_of
from sluicegate.partials.program cimport Slot

cdef extern from *:
    int empty_above "__builtin_clzll"(uint64_t number) nogil  # leading zeros of what is not 0


cdef inline int bits(int64_t number) noexcept nogil:
    """So many binary digits a number has that is not negative."""
    return 64 - empty_above(number) if number else 0


cdef inline bint at_once(int64_t head, int64_t after, int64_t tail) noexcept nogil:
    """Whether so many leave that all do at once: more than a log n of them."""
    return after - head > 1 and after - head > bits(tail - head) + 1


cdef inline int depth_of(int64_t head, int64_t tail) noexcept nogil:
    """Levels of a forest of these leaves that hold a node."""
    cdef int level
    if head == tail:
        return 0
    level = bits(tail + 1 - head)
    return level - (((tail + 1) >> (level - 1)) - (head >> (level - 1)) < 2)


cdef inline bint renews(int64_t head, int64_t after, int64_t tail) noexcept nogil:
    """Whether leaf `tail`, and what leaves with it before `after`, make the leftmost tree another."""
    cdef int before = depth_of(head, tail), depth = depth_of(head, tail + 1)
    return before == 0 or grows(before, depth, tail + 1) or depth_of(after, tail + 1) < depth


cdef inline bint grows(int before, int depth, int64_t tail) noexcept nogil:
    """Whether the newest of the leaves up to `tail` lets the leftmost tree grow."""
    return depth == before and not (tail + 1) & ((<int64_t> 1 << (before - 1)) - 1)


# Algorithms 3 to 5: insertion

cdef inline void insert(Amta self, Op op) noexcept nogil:
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


cdef inline void raise_placed(Amta self, Op op) noexcept nogil:
    """The parents that the leaf at the tail completes."""
    cdef int level = 0, w = width_of(op, self.p)
    cdef int64_t index = self.tail, pair
    cdef Slot* node
    while True:
        pair = (index >> 1) - 1
        if index & 1 or pair < self.head >> (level + 1):
            return
        node = spot(self, level + 1, pair, w)
        if index - 2 >= self.head >> level:
            combine_by(op, self.p, node, spot(self, level, index - 2, w), spot(self, level, index - 1, w))
        else:
            copy_by(op, self.p, node, spot(self, level, index - 1, w))
        level += 1
        index = pair


cdef inline void close_newest(Amta self, Op op) noexcept nogil:
    """No reading joins the leaf before the one that has come: it is part of what R1 is taken from now."""
    cdef int w = width_of(op, self.p)
    if not self.stale:
        copy_by(op, self.p, self.base_of_right, self.right)
    elif not self.has_base:
        copy_by(op, self.p, self.base_of_right, spot(self, 0, self.tail - 2, w))
    else:
        combine_by(op, self.p, self.base_of_right, self.base_of_right, spot(self, 0, self.tail - 2, w))
    self.has_base = True


cdef inline void freshen(Amta self, Op op) noexcept nogil:
    """R0 or R1 anew where the newest leaf has changed since."""
    if not self.stale:
        return
    if self.depth == 1:
        compute_left(self, op)
    else:
        add_newest(self, op)
    self.stale = False


cdef inline void add_newest(Amta self, Op op) noexcept nogil:
    """R1 from its base and the newest leaf."""
    cdef const Slot* newest = spot(self, 0, self.tail - 1, width_of(op, self.p))
    if self.has_base:
        combine_by(op, self.p, self.right, self.base_of_right, newest)
    else:
        copy_by(op, self.p, self.right, newest)


cdef inline void total_by(Amta self, Op op, Slot* out) noexcept nogil:
    """Of a window that holds any."""
    if self.has_right:
        combine_by(op, self.p, out, self.left, self.right)
    else:
        copy_by(op, self.p, out, self.left)


cdef inline void compute_left(Amta self, Op op) noexcept nogil:
    """R0 and the stack (Algorithm 4)."""
    cdef int w = width_of(op, self.p)
    make_stack(self, op)
    if self.stacked:
        combine_by(op, self.p, self.left, spot(self, 0, self.head, w), self.stack + (self.stacked - 1) * w)
    else:
        copy_by(op, self.p, self.left, spot(self, 0, self.head, w))


cdef inline void make_stack(Amta self, Op op) noexcept nogil:
    cdef int level
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        stack_head(self, op, width_of(op, self.p), 0, level)


cdef inline void stack_head(Amta self, Op op, int w, int s, int level) noexcept nogil:
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


cdef inline void compute_right(Amta self, Op op) noexcept nogil:
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

cdef inline void evict(Amta self, Op op) noexcept nogil:
    """The oldest leaf."""
    cdef int before = self.depth, level = 0, w = width_of(op, self.p)
    if before < 2:
        freshen(self, op)
    self.head += 1
    if not self.head & ((<int64_t> 1 << self.pool.least) - 1):  # no chunk ends anywhere else
        let_go(self)
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


cdef inline void evict_to(Amta self, Op op, int64_t head) noexcept nogil:
    """One by one, or, where more than about log n leave, at once."""
    if at_once(self.head, head, self.tail):
        self.head = head
        let_go(self)
        measure(self)
        rebuild(self, op)
        return
    while self.head < head:
        evict(self, op)


cdef inline void rebuild(Amta self, Op op) noexcept nogil:
    """R0, R1 and the stack from the leaves alone."""
    self.has_right = self.has_base = self.stale = False
    self.stacked = 0
    if self.head < self.tail:
        compute_left(self, op)
        compute_right(self, op)


# one reading

cdef inline int slide_by(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """push, pop_to and total."""
    find_room(self)
    return step(self, op, leaf, head, out)


cdef inline int find_room(Amta self) except -1 nogil:
    """For one leaf. A chunk goes back to the system at every other reading: the others are for the times'."""
    if self.pool.surplus and not self.tail & 1:
        give_back(&self.pool)
    see_to_layout(self, self.tail + 1 - self.head)
    return make_room(self, self.tail + 1)


cdef inline int step(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    """The same where there is room; 0: the window is empty then."""
    put_by(op, self.p, spot(self, 0, self.tail, width_of(op, self.p)), leaf)
    insert(self, op)
    if head > self.head:
        evict_to(self, op, head)
    if self.head == self.tail:
        return 0
    if out != NULL:
        freshen(self, op)
        total_by(self, op, out)
    return 1
