"""A window of few readings in one ring (few.pxd): how it comes to lie there, what is asked of it there, and back to chunks. Part of amta.pyx."""

cdef inline bint is_few(Amta self, int64_t head) noexcept nogil:
    """Whether the window is so small that it is better laid out so; not at once where the next readings might end that."""
    if self.flat_out:
        return self.tail - self.head < (FEW_MERGED if self.kernel == MERGE else FEW) and head <= self.tail
    return head <= self.tail and fits_ring(self, self.tail - self.head)


cdef inline bint fits_ring(Amta self, int64_t held) noexcept nogil:
    """Whether so many may come to lie there."""
    cdef int64_t most = FEW_MERGED if self.kernel == MERGE else FEW
    if self.kernel == ANY or not 0 < held < most - most // 16:
        return False
    return self.flat_out or not (self.base or self.pool.surplus or self.pool.of[LARGE_KIND].used)


cdef inline bint fits_ring_after(Amta self, int64_t held) noexcept nogil:
    """The same after a batch: fewer are as small in chunks, and need no places for what comes one by one."""
    return held >= LEAST_IN_RING and fits_ring(self, held)


cdef bint lay_out(Amta self) noexcept nogil:
    """Leaves and R0s to a ring, and the chunks back to the heap; False: no memory, and nothing has changed."""
    cdef int w = self.p.width
    if not has_ring(self, self.tail - self.head):
        return False
    copy_level(self, self.few - self.head * w, 0, w, False)
    begin_ring(self)
    furnish(self)
    look_ahead(self, w)
    return True


cdef bint has_ring(Amta self, int64_t held) noexcept nogil:
    """Whether there is a ring for so many leaves, into which none has been laid yet."""
    cdef int64_t room = room_for_few(held)
    cdef Slot* few
    if self.few != NULL and held + LEAST_SPARE <= self.most_few <= 2 * room:
        return True
    few = <Slot*> malloc((room + heads_of_few(room)) * self.p.width * sizeof(Slot))
    if few == NULL:
        return self.few != NULL and held <= self.most_few
    free(self.few)
    self.few, self.most_few = few, room
    return True


cdef int reserve_ring(Amta self, int64_t held) except -1 nogil:
    """The same, with what is in it now."""
    cdef int64_t room = room_for_few(max(held, self.tail - self.head))
    cdef bint found
    if not self.flat_out:
        found = has_ring(self, held)
    else:
        found = held + LEAST_SPARE <= self.most_few <= 2 * room or lay_wider(self, room) or held <= self.most_few
    if not found:
        with gil:
            raise MemoryError(f"amta: no memory for {held} readings")
    return 0


cdef void begin_ring(Amta self) noexcept nogil:
    """All leaves lie in it from its beginning on: the chunks go back to the heap. R0s are found when they are asked for."""
    cdef int w = self.p.width
    cdef bint wide = self.pool.wide, batch = self.pool.batch
    self.flat_out, self.lies_flat, self.unstacked, self.origin = True, False, False, self.head
    self.calm_lefts, self.calm_head, self.calm_tail, self.calm_end = self.few + self.most_few * w, -1, -1, -1
    self.measure()
    if self.level[0].chunk == NULL:
        return
    dispose(&self.pool, self.level)
    shape_levels(&self.pool, self.level, w, 1 if self.apart else LEAST_TOGETHER)
    self.most_together, self.reached = most_together(1 if self.apart else LEAST_TOGETHER), 0
    self.pool.wide, self.pool.batch = wide, batch
    return_lefts(self)
    if self.lefts != NULL:
        free(self.lefts - EIGHT * w)
        self.lefts, self.most_left = NULL, 0


cdef void lay_in_ring(Amta self, const Slot* leaves) noexcept nogil:
    """What a batch leaves: these leaves are all."""
    memcpy(self.few, leaves, (self.tail - self.head) * self.p.width * sizeof(Slot))
    begin_ring(self)


cdef inline void furnish(Amta self) noexcept nogil:
    """R0s for the leftmost tree, where a batch has left only leaves."""
    if self.calm_head < 0:
        self.measure()
        renew_few_by(self, False)
        copy(self.p, left_at(self, self.head, self.p.width), self.left)


cdef void rebuild_few(Amta self) noexcept nogil:
    """R0 and R1 from the leaves alone."""
    self.calm_head = -1
    renew_few_by(self, True)
    restart_few_left(self, any_op)
    copy(self.p, left_at(self, self.head, self.p.width), self.left)


cdef int bring_back(Amta self) except -1 nogil:
    """To chunks, with the nodes; no memory for them is an error, and nothing has changed."""
    cdef int64_t held = self.tail - self.head, head = self.head, whole
    cdef Slot* few = self.few
    self.measure()
    reserve_chunks(self, held)
    self.flat_out, self.few, self.calm_tail, self.calm_end = False, NULL, -1, -1
    open_levels(self, held)
    whole = min(held, self.most_few - few_place(self, head))
    lay_leaves(self, few + few_place(self, head) * self.p.width, head, whole)
    lay_leaves(self, few, head + whole, held - whole)
    free(few)
    raise_parts(self, any_op, head, self.tail)
    make_stack(self, any_op)
    return 0


cdef bint lay_wider(Amta self, int64_t room) noexcept nogil:
    """In a ring for so many; False: no memory, and nothing has changed."""
    cdef int w = self.p.width
    cdef Slot* few = <Slot*> malloc((room + heads_of_few(room)) * w * sizeof(Slot))
    if few == NULL:
        return False
    leaves_of_few(self, self.head, few, w)
    if self.calm_head >= 0:
        memcpy(few + room * w, left_at(self, self.head, w), (self.calm_head - self.head) * w * sizeof(Slot))
    free(self.few)
    self.few, self.most_few, self.origin = few, room, self.head
    self.calm_lefts, self.lefts_from = few + room * w, self.head
    return True


cdef inline int see_to_ring(Amta self) except -1 nogil:
    """Room for some readings more; and no more than that where many have left."""
    cdef int64_t held = self.tail - self.head
    if self.most_few - held < LEAST_SPARE:
        if not lay_wider(self, room_for_few(held)) and held == self.most_few:
            with gil:
                raise MemoryError(f"amta: no memory for {held + 1} readings")
    elif self.most_few > 2 * room_for_few(held):
        lay_wider(self, room_for_few(held))
    return 0


cdef int slide_few(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    furnish(self)
    see_to_ring(self)
    if self.tail < self.calm_end and head < self.calm_head and <uint64_t> (head - self.head) <= <uint64_t> self.calm_jump:
        begin_few(self, width_of(op, self.p))
        return slide_calmly(self, op, leaf, head, out)
    step_few(self, op, leaf, head, False)
    look_ahead(self, width_of(op, self.p))
    if out != NULL:
        total_by(self, op, out)
    return 1


cdef inline void step_few(Amta self, Op op, const Slot* leaf, int64_t head, bint leap) noexcept nogil:
    """A reading, or none, that may change the leftmost tree, and what leaves for it: R0 and R1 are taken once, after all."""
    cdef int w = width_of(op, self.p), before
    cdef int64_t fell = -1
    cdef bint grown = False, moved = head > self.head
    turn_few(self)
    measure_few(self)  # a level may have come while it was calm
    if leaf != NULL:
        before = self.depth
        copy_by(op, self.p, few_at(self, self.tail, w), leaf)
        self.tail += 1
        measure_few(self)
        grown = self.depth == before and not (self.tail + 1) & (((<int64_t> 1) << (before - 1)) - 1)
        if not grown:
            extend_few(self, op, leaf)
    if leap or leaps(self, head, self.tail):
        self.head = fell = head
        self.measure()
    while self.head < head:
        before = self.depth
        self.head += 1
        measure_few(self)
        if self.depth < before:
            fell = self.head
    if grown or fell >= 0:
        renew_few(self, op, True)
    if fell == self.head or grown and not moved:
        restart_few_left(self, op)
    elif moved:
        copy_by(op, self.p, self.left, left_at(self, head, w))
    copy_by(op, self.p, left_at(self, self.head, w), self.left)


cdef void renew_few(Amta self, Op op, bint right) noexcept nogil:
    """R0 for the heads of another leftmost tree; and R1, where asked for."""
    cdef Spread s
    cdef int64_t end = end_of_leftmost(self)
    if end != self.calm_head:
        spread(self, op, &s, self.head)
        find_few_lefts(self, op, &s, self.calm_lefts)
        self.lefts_from, self.calm_head = self.head, end
    else:
        spread(self, op, &s, end)
    if right:
        restart_few_right(self, op, &s)


cdef void renew_few_by(Amta self, bint right) noexcept nogil:
    if self.kernel == ADD:
        renew_few(self, add_op, right)
    elif self.kernel == GREATEST:
        renew_few(self, greatest_op, right)
    elif self.kernel == LEAST:
        renew_few(self, least_op, right)
    else:
        renew_few(self, merge_op, right)


cdef void leave_few(Amta self, int64_t head, bint leap) noexcept nogil:
    """Evict the leaves before `head`, at once or as few leave one by one."""
    self.freshen()
    if head >= self.tail:
        forget_few(self, head)
        return
    furnish(self)
    if self.kernel == ADD:
        step_few(self, add_op, NULL, head, leap)
    elif self.kernel == GREATEST:
        step_few(self, greatest_op, NULL, head, leap)
    elif self.kernel == LEAST:
        step_few(self, least_op, NULL, head, leap)
    else:
        step_few(self, merge_op, NULL, head, leap)
    look_ahead(self, self.p.width)


cdef void forget_few(Amta self, int64_t head) noexcept nogil:
    """All leave: the window lies in chunks again, of which it needs none."""
    free(self.few)
    self.few, self.flat_out, self.calm_tail, self.calm_end = NULL, False, -1, -1
    self.head, self.depth = head, 0
    self.rebuild()


cdef void freshen_few(Amta self) noexcept nogil:
    """R0 and R1 anew where the newest leaf has changed."""
    cdef const Slot* newest = few_at(self, self.tail - 1, self.p.width)
    self.measure()
    if self.depth == 1:  # it is part of the leftmost tree
        self.calm_head = -1
        renew_few_by(self, False)
        restart_few_left(self, any_op)
        copy(self.p, left_at(self, self.head, self.p.width), self.left)
    elif self.has_base:
        combine(self.p, self.right, self.base_of_right, newest)
    else:
        copy(self.p, self.right, newest)


cdef inline const Slot* rest_of_left(Amta self) noexcept nogil:
    """The leftmost tree without the oldest leaf, as the stack has it; NULL: nothing."""
    furnish(self)
    self.measure()
    return left_at(self, self.head + 1, self.p.width) if self.head + 1 < end_of_leftmost(self) else NULL


cdef int64_t first_kept_of_few(Amta self, Leaves leaves, void* context) noexcept nogil:
    """As in chunks, on nodes that are there for as long as that takes."""
    cdef Spread s
    cdef int64_t head
    self.measure()
    spread(self, any_op, &s, self.head)
    self.spread = s.level
    head = first_kept(self, leaves, context)
    self.spread = NULL
    return head


cdef int check_few(Amta self) except -1:
    """R0 for each head of the leftmost tree is what the leaves give, and the ring holds them all."""
    cdef int64_t n, w = self.p.width
    cdef Slot* kept
    furnish(self)
    self.measure()
    n = (end_of_leftmost(self) - self.head) * w
    if self.tail - self.head > self.most_few or not self.origin <= self.head < self.tail <= self.origin + 2 * self.most_few:
        raise InvariantError(f"leaves {self.head} to {self.tail} do not lie in a ring of {self.most_few} from {self.origin} on")
    if self.calm_head != end_of_leftmost(self) or n > heads_of_few(self.most_few) * w:
        raise InvariantError(f"the leftmost tree ends before {end_of_leftmost(self)}, its R0s before {self.calm_head}")
    if memcmp(left_at(self, self.head, self.p.width), self.left, w * sizeof(Slot)) != 0:
        raise InvariantError("R0 is not what stands ready for the head")
    kept = <Slot*> malloc(n * sizeof(Slot))
    if kept == NULL:
        raise MemoryError("amta: no memory to verify")
    memcpy(kept, left_at(self, self.head, self.p.width), n * sizeof(Slot))
    self.calm_head = -1
    renew_few_by(self, False)
    copy(self.p, left_at(self, self.head, self.p.width), self.left)
    n = memcmp(kept, left_at(self, self.head, self.p.width), n * sizeof(Slot))
    free(kept)
    if n:
        raise InvariantError("the R0s of the leftmost tree are not what the leaves give")
    return 0
