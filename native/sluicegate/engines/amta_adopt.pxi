"""Leaves in place of all there are, and when that is possible. Part of amta.pyx."""

cdef void take_over(Amta self, Op op, const Slot* leaves, int64_t head, int64_t held) noexcept nogil:
    """These leaves from `head` on in place of all there are, where `reserve_levels` has room for them; the stack may wait."""
    self.head, self.tail = head, head + held
    if self.few != NULL:
        lay_in_ring(self, leaves)
        return
    self.measure()
    open_levels(self, held)
    self.tail = head
    append_leaves(self, leaves, held)
    self.tail = head + held
    raise_parts(self, op, head, self.tail)
    self.unstacked = True


cdef inline int depth_of(int64_t head, int64_t tail) noexcept nogil:
    """Levels of a forest of these leaves that hold a node."""
    cdef int level
    if head == tail:
        return 0
    level = 64 - empty_above(<uint64_t> (tail + 1 - head))
    return level - (((tail + 1) >> (level - 1)) - (head >> (level - 1)) < 2)


cdef inline bint changes(int64_t before, int64_t after, int64_t tail) noexcept nogil:
    """Whether leaf `tail`, and what leaves with it, let the leftmost tree become another (`advance`, `pop_by`)."""
    cdef int was = depth_of(before, tail), now = depth_of(before, tail + 1)
    return was == 0 or now == was and not (tail + 2) & (((<int64_t> 1) << (was - 1)) - 1) or depth_of(after, tail + 1) < now
