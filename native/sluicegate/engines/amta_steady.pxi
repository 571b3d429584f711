"""A long batch through AMTA while the window lies in it: no node is stored that the window does not end with. Part of amta.pyx."""

cdef int go_steadily(Amta self, Op op, const Slot* leaves, int64_t n, Slot* totals) except -1 nogil:
    """All that may fail first: then the readings, then the levels of the leaves that are left."""
    cdef int64_t held = self.tail - self.head
    cdef Slot* room
    cdef Steady s
    self.unsettle()
    self.freshen()
    begin_batch(&self.pool)
    room = <Slot*> lend(ROOM_OF_STEADY, room_of_steady(held) * sizeof(Slot))
    try:
        if room == NULL:
            with gil:
                raise MemoryError(f"amta: no memory for a batch through {held} readings")
        reserve_levels(self, held)
        begin_steady(&s, <const double*> leaves, <double*> room, self.head, self.tail)
        s.left, s.right, s.base = self.left[0].f, self.right[0].f, self.base_of_right[0].f
        steady_by(op, &s, n, <double*> totals)
        self.left[0].f, self.right[0].f, self.base_of_right[0].f = s.left, s.right, s.base
        self.has_right = self.has_base = True
        take_over(self, op, leaves + n - held, s.head, held)
    finally:
        put_back(ROOM_OF_STEADY, room)
        self.end_block()
    return True


cdef int64_t go_unevenly(
    Amta self, Op op, const Slot* leaves, const int64_t* times, int64_t span, int64_t n, Slot* totals, Goes goes, void* context
) except -1 nogil:
    """The same whatever the gaps: how many readings have been taken."""
    cdef int64_t held = self.tail - self.head
    cdef Slot* room
    cdef Uneven u
    self.unsettle()
    self.freshen()
    begin_batch(&self.pool)
    room = <Slot*> lend(ROOM_OF_STEADY, room_of_uneven(held) * sizeof(Slot))
    try:
        if room == NULL:
            with gil:
                raise MemoryError(f"amta: no memory for a batch through {held} readings")
        begin_uneven(&u, <const double*> leaves, times, <double*> room, self.head, self.tail, n, span)
        u.s.left, u.s.right, u.s.base = self.left[0].f, self.right[0].f, self.base_of_right[0].f
        n = uneven_by(op, &u, n, <double*> totals)
        held = u.s.tail - u.s.head
        if n:
            reserve_levels(self, held)
            n = n if goes(context, u.s.head, u.s.tail) else 0
        if n:
            self.left[0].f, self.right[0].f, self.base_of_right[0].f = u.s.left, u.s.right, u.s.base
            self.has_right = self.has_base = True
            take_over(self, op, leaves + n - held, u.s.head, held)
    finally:
        put_back(ROOM_OF_STEADY, room)
        self.end_block()
    return n


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
