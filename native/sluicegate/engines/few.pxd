"""A window of few readings, one by one: AMTA's leaves in one ring, and R0 for every head of the leftmost tree; no node is stored.

There the leftmost tree changes every few readings, and each change asks for nodes of all levels: they are combined from the leaves
then, side by side, on the stack of the call (`spread`). Operands and order are those of single calls.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from sluicegate.engines.amta cimport Amta
from sluicegate.engines.eights cimport combine_pairs
from sluicegate.partials.kernels cimport Op, combine_by, copy_by, width_of
from sluicegate.partials.program cimport Slot

cdef enum:
    FEW = 704  # readings of the window at most
    FEW_MERGED = 352  # where a combination takes several times as long: what a change costs at once is to stay near a microsecond
    SHORT = 8  # partials for which a call is not worth it
    LEVELS_OF_FEW = 12
    WIDEST_FEW = 3  # slots of a partial: of those that have an operator of their own
    ROOM_OF_SPREAD = (2 * FEW + 2 * LEVELS_OF_FEW) * WIDEST_FEW  # slots
    LEAST_SPARE = 8  # places of the ring beside the readings held: so long stretches are calm at least
    MORE_SPARE = 16

ctypedef struct Spread:  # the nodes of a window of few, or of a part of it
    Slot* level[LEVELS_OF_FEW]  # where node 0 of each would be
    Slot room[ROOM_OF_SPREAD]


cdef inline int64_t room_for_few(int64_t readings) noexcept nogil:
    """Places of a ring for them, and for those that come before one leaves."""
    return readings + max(<int64_t> MORE_SPARE, readings >> 3)


cdef inline int64_t heads_of_few(int64_t room) noexcept nogil:
    """The leftmost tree's leaves at most: two nodes of its top level, beside which stands all but one leaf of such a node."""
    return 2 * (room + 1) // 3 + 1


cdef inline int64_t slots_of_few(Amta self) noexcept nogil:
    """Of the ring and the R0s."""
    return (self.most_few + heads_of_few(self.most_few)) * self.p.width


cdef inline int64_t few_place(Amta self, int64_t index) noexcept nogil:
    """A leaf's place in the ring."""
    cdef int64_t place = index - self.origin
    return place if place < self.most_few else place - self.most_few


cdef inline Slot* few_at(Amta self, int64_t index, int w) noexcept nogil:
    return self.few + few_place(self, index) * w


cdef inline Slot* left_at(Amta self, int64_t head, int w) noexcept nogil:
    return self.calm_lefts + (head - self.lefts_from) * w


cdef inline int64_t end_of_leftmost(Amta self) noexcept nogil:
    """The first leaf after the leftmost tree."""
    return (((self.tail + 1) >> (self.depth - 1)) - 1) << (self.depth - 1)


cdef inline void measure_few(Amta self) noexcept nogil:
    """The depth, which one reading changes by one at most."""
    cdef int depth = self.depth
    if (self.head >> depth) < ((self.tail + 1) >> depth) - 1:
        self.depth = depth + 1
    elif (self.head >> (depth - 1)) >= ((self.tail + 1) >> (depth - 1)) - 1:
        self.depth = depth - 1


cdef inline void turn_few(Amta self) noexcept nogil:
    """Where the head has come around the ring: places count from there."""
    if self.head - self.origin >= self.most_few:
        self.origin += self.most_few


cdef inline void leaves_of_few(Amta self, int64_t first, Slot* out, int w) noexcept nogil:
    """From `first` to the newest, one after the other."""
    cdef int64_t n = self.tail - first, place = few_place(self, first), whole = min(n, self.most_few - place)
    memcpy(out, self.few + place * w, whole * w * sizeof(Slot))
    memcpy(out + whole * w, self.few, (n - whole) * w * sizeof(Slot))


cdef inline void raise_few(Amta self, Op op, int w, Slot* nodes, const Slot* pairs, int64_t n) noexcept nogil:
    cdef int64_t i
    if n > SHORT:
        combine_pairs(op, self.p, w, nodes, pairs, n)
        return
    for i in range(n):
        combine_by(op, self.p, nodes + i * w, pairs + 2 * i * w, pairs + (2 * i + 1) * w)


cdef inline void spread(Amta self, Op op, Spread* s, int64_t first) noexcept nogil:
    """The nodes above the leaves from `first` on; a level's first one without what is before that."""
    cdef int w = width_of(op, self.p), level
    cdef int64_t index = first, end = self.tail, place = few_place(self, first)
    cdef Slot* out = s.room
    if place + end - first <= self.most_few:
        s.level[0] = self.few + (place - first) * w
    else:
        leaves_of_few(self, first, out, w)
        s.level[0] = out - first * w
        out += (end - first) * w
    for level in range(1, self.depth):
        index, end = first >> level, ((self.tail + 1) >> level) - 1
        if index >= end:
            return
        s.level[level] = out - index * w
        if 2 * index < first >> (level - 1):
            copy_by(op, self.p, out, s.level[level - 1] + (2 * index + 1) * w)
            raise_few(self, op, w, out + w, s.level[level - 1] + (2 * index + 2) * w, end - index - 1)
        else:
            raise_few(self, op, w, out, s.level[level - 1] + 2 * index * w, end - index)
        out += (end - index) * w


cdef inline void find_few_lefts(Amta self, Op op, const Spread* s, Slot* lefts) noexcept nogil:
    """R0 for each head of the leftmost tree as it is popped, level by level: those of one do not wait for each other."""
    cdef int w = width_of(op, self.p), level
    cdef int64_t end = end_of_leftmost(self), head = self.head, j, last
    cdef const Slot* nodes
    cdef Slot* at
    lefts -= head * w
    for level in range(self.depth - 1, -1, -1):
        last = (end >> level) - 1
        nodes = s.level[level]
        if last & 1 and last << level >= head:
            copy_by(op, self.p, lefts + (last << level) * w, nodes + last * w)
            last -= 2
        elif not last & 1:
            last -= 1
        j = ((head - 1 >> level) + 1) | 1
        at = lefts + (j << level) * w
        while j <= last:
            combine_by(op, self.p, at, nodes + j * w, at + (<int64_t> w << level))
            at += <int64_t> w << (level + 1)
            j += 2


cdef inline void restart_few_left(Amta self, Op op) noexcept nogil:
    """R0 from the oldest leaf and the stack (Algorithm 4)."""
    cdef int w = width_of(op, self.p)
    if self.head + 1 < self.calm_head:
        combine_by(op, self.p, self.left, few_at(self, self.head, w), left_at(self, self.head + 1, w))
    else:
        copy_by(op, self.p, self.left, few_at(self, self.head, w))


cdef inline void restart_few_right(Amta self, Op op, const Spread* s) noexcept nogil:
    """R1 from the last pair of each level but the topmost (Algorithm 5)."""
    cdef int w = width_of(op, self.p), level
    cdef int64_t last = self.tail - 1
    cdef Slot base[WIDEST_FEW]
    cdef Slot pair[WIDEST_FEW]
    cdef const Slot* newest = few_at(self, last, w)
    cdef bint started = last & 1
    self.has_right = self.has_base = self.depth > 1
    if not self.has_right:
        return
    if started:
        copy_by(op, self.p, base, s.level[0] + (last - 1) * w)
    for level in range(1, self.depth - 1):
        last = ((self.tail + 1) >> level) - 2
        if last & 1:
            combine_by(op, self.p, pair, s.level[level] + (last - 1) * w, s.level[level] + last * w)
        else:
            copy_by(op, self.p, pair, s.level[level] + last * w)
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


cdef inline void extend_few(Amta self, Op op, const Slot* leaf) noexcept nogil:
    self.has_base = self.has_right
    if self.has_base:
        copy_by(op, self.p, self.base_of_right, self.right)
        combine_by(op, self.p, self.right, self.base_of_right, leaf)
    else:
        copy_by(op, self.p, self.right, leaf)
    self.has_right = True


cdef inline void look_ahead(Amta self, int w) noexcept nogil:
    """How far the leftmost tree stays as it is: beyond a level's first node too, where that is certain to change nothing else."""
    cdef int depth = self.depth
    cdef int64_t changes = (((self.tail + 1) >> (depth - 1)) + 1) << (depth - 1)
    self.calm_tail = self.calm_end = -1
    if depth < 2 or not self.has_base:
        return
    self.calm_jump = min(depth - 1, 15)
    if not changes & (((<int64_t> 1) << depth) - 1) and ((self.calm_head - 1) >> depth) + 2 <= changes >> depth:
        changes += (<int64_t> 1) << depth
    self.calm_end = changes - 2
    begin_few(self, w)


cdef inline void begin_few(Amta self, int w) noexcept nogil:
    """A calm stretch: to where the leftmost tree changes, the ring ends, or no place is free before a reading leaves."""
    turn_few(self)
    self.calm_tail = min(self.calm_end, self.head + self.most_few)
    if self.tail - self.origin < self.most_few:
        self.calm_tail = min(self.calm_tail, self.origin + self.most_few)
    self.next_leaf = few_at(self, self.tail, w)
