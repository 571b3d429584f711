"""A window of few readings, one by one: AMTA's levels laid out flat for a while, so that a new leftmost tree costs little.

There the leftmost tree changes every few readings. Node i of level l stands at i − (origin >> l) of its level's array, and
R0 for every head of the leftmost tree in an array of its own (see amta.glide); operands and order are those of single calls.
"""

from libc.stdint cimport int64_t, uint64_t

from sluicegate.engines.amta cimport Amta
from sluicegate.engines.kernels cimport Op, combine_by, copy_by, width_of
from sluicegate.engines.program cimport Slot

cdef enum:
    FEW = 64  # readings of the window at most
    LEAST_FEW = 16  # that there is room for at least
    LEVELS_OF_FEW = 8
    ALIKE = 4  # times as many leaves as the window may have: its own, those that come, and up to a multiple of that number before


cdef extern from *:
    int zeros_below "__builtin_ctzll"(uint64_t number) nogil  # trailing zeros of what is not 0


cdef inline int64_t room_of_few(Amta self) noexcept nogil:
    """Leaves."""
    return ALIKE * self.most_few


cdef inline int64_t slots_of_few(Amta self) noexcept nogil:
    """Of all levels and the R0s."""
    return (2 * room_of_few(self) + self.most_few + 2) * self.p.width


cdef inline Slot* flat_at(Amta self, int level, int64_t index, int w) noexcept nogil:
    cdef int64_t room = 2 * room_of_few(self)
    return self.few + (room - (room >> level) + index - (self.origin >> level)) * w


cdef inline Slot* left_at(Amta self, int64_t head, int w) noexcept nogil:
    return self.calm_lefts + (head - self.lefts_from) * w


cdef inline int64_t end_of_leftmost(Amta self) noexcept nogil:
    """The first leaf after the leftmost tree."""
    return (((self.tail + 1) >> (self.depth - 1)) - 1) << (self.depth - 1)


cdef inline void measure_flat(Amta self) noexcept nogil:
    """The depth, which one reading changes by one at most."""
    cdef int depth = self.depth
    if (self.head >> depth) < ((self.tail + 1) >> depth) - 1:
        self.depth = depth + 1
    elif (self.head >> (depth - 1)) >= ((self.tail + 1) >> (depth - 1)) - 1:
        self.depth = depth - 1


cdef inline void raise_flat(Amta self, Op op, int64_t before, int64_t after) noexcept nogil:
    """The nodes that the leaves up to `after` complete, level by level."""
    cdef int w = width_of(op, self.p), level = 1
    cdef int64_t index, end
    cdef const Slot* pair
    cdef Slot* node
    while level < LEVELS_OF_FEW:
        index, end = max(((before + 1) >> level) - 1, self.head >> level), ((after + 1) >> level) - 1
        if index >= end:
            return
        pair, node = flat_at(self, level - 1, 2 * index, w), flat_at(self, level, index, w)
        while index < end:
            combine_by(op, self.p, node, pair, pair + w)
            pair, node, index = pair + 2 * w, node + w, index + 1
        level += 1


cdef inline void find_flat_lefts(Amta self, Op op) noexcept nogil:
    """R0 for each head after the present one in the leftmost tree."""
    cdef int w = width_of(op, self.p), level
    cdef int64_t end = end_of_leftmost(self), h = end - 1, head = self.head, follows
    cdef Slot* lefts
    self.lefts_from = head
    lefts = left_at(self, 0, w)
    while h > head:
        level = zeros_below(h)
        follows = h + ((<int64_t> 1) << level)
        if follows < end:
            combine_by(op, self.p, lefts + h * w, flat_at(self, level, h >> level, w), lefts + follows * w)
        else:
            copy_by(op, self.p, lefts + h * w, flat_at(self, level, h >> level, w))
        h -= 1


cdef inline void restart_flat_left(Amta self, Op op) noexcept nogil:
    """R0 from the oldest leaf and the stack (Algorithm 4)."""
    cdef int w = width_of(op, self.p)
    if self.head + 1 < end_of_leftmost(self):
        combine_by(op, self.p, self.left, flat_at(self, 0, self.head, w), left_at(self, self.head + 1, w))
    else:
        copy_by(op, self.p, self.left, flat_at(self, 0, self.head, w))


cdef inline void restart_flat_right(Amta self, Op op) noexcept nogil:
    """R1 from the last pair of each level but the topmost (Algorithm 5)."""
    cdef int w = width_of(op, self.p), level
    cdef int64_t last = self.tail - 1
    cdef Slot base[3]
    cdef Slot pair[3]
    cdef const Slot* newest = flat_at(self, 0, last, w)
    cdef bint started = last & 1
    self.has_right = self.has_base = self.depth > 1
    if not self.has_right:
        return
    if started:
        copy_by(op, self.p, base, newest - w)
    for level in range(1, self.depth - 1):
        last = ((self.tail + 1) >> level) - 2
        if last & 1:
            combine_by(op, self.p, pair, flat_at(self, level, last - 1, w), flat_at(self, level, last, w))
        else:
            copy_by(op, self.p, pair, flat_at(self, level, last, w))
        if started:
            combine_by(op, self.p, base, pair, base)
        else:
            copy_by(op, self.p, base, pair)
        started = True
    self.has_base = started
    if started:
        copy_by(op, self.p, self.base_of_right, base)
        combine_by(op, self.p, self.right, base, newest)
    else:
        copy_by(op, self.p, self.right, newest)


cdef inline void extend_flat(Amta self, Op op, const Slot* leaf) noexcept nogil:
    self.has_base = self.has_right
    if self.has_base:
        copy_by(op, self.p, self.base_of_right, self.right)
        combine_by(op, self.p, self.right, self.base_of_right, leaf)
    else:
        copy_by(op, self.p, self.right, leaf)
    self.has_right = True


cdef inline void step_flat(Amta self, Op op, const Slot* leaf, int64_t head) noexcept nogil:
    """A reading that may change the leftmost tree, and the one that leaves for it: R0 and R1 are taken once, after both."""
    cdef int w = width_of(op, self.p), before
    cdef bint grown, moved, fell = False
    measure_flat(self)  # a level may have come while it was calm
    before = self.depth
    copy_by(op, self.p, flat_at(self, 0, self.tail, w), leaf)
    self.tail += 1
    raise_flat(self, op, self.raised, self.tail)
    self.raised = self.tail
    measure_flat(self)
    grown = self.depth == before and not (self.tail + 1) & (((<int64_t> 1) << (before - 1)) - 1)
    if not grown:
        extend_flat(self, op, leaf)
    if grown:
        find_flat_lefts(self, op)
    moved = head > self.head
    if moved:
        before = self.depth
        self.head = head
        measure_flat(self)
        fell = self.depth < before
    if fell:
        find_flat_lefts(self, op)
    if fell or grown and not moved:
        restart_flat_left(self, op)
    elif moved:
        copy_by(op, self.p, self.left, left_at(self, head, w))
    if grown or fell:
        restart_flat_right(self, op)
    copy_by(op, self.p, left_at(self, self.head, w), self.left)


cdef inline void look_ahead(Amta self, int w) noexcept nogil:
    """How far the leftmost tree stays as it is: beyond a level's first node too, where that is certain to change nothing else."""
    cdef int depth = self.depth
    cdef int64_t changes = (((self.tail + 1) >> (depth - 1)) + 1) << (depth - 1)
    self.calm_tail = -1
    if depth < 2 or not self.has_base:
        return
    self.calm_head, self.calm_jump = end_of_leftmost(self), 1
    if not changes & (((<int64_t> 1) << depth) - 1) and ((self.calm_head - 1) >> depth) + 2 <= changes >> depth:
        changes += (<int64_t> 1) << depth
    self.calm_tail = min(min(changes - 2, self.origin + room_of_few(self)), self.head + self.most_few + self.most_few // 2)
    self.next_leaf = flat_at(self, 0, self.tail, w)
