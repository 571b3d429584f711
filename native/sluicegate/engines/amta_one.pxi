"""One reading through AMTA: by what stands ready where the forest is calm, else what a stretch of such readings needs. Part of amta.pyx."""

cdef Slide slide_for(int kernel) noexcept:
    if kernel == ADD:
        return slide_add
    if kernel == GREATEST:
        return slide_greatest
    if kernel == LEAST:
        return slide_least
    return slide_merge if kernel == MERGE else slide_any


cdef Slide slide_slowly_for(int kernel) noexcept:
    if kernel == ADD:
        return slowly_add
    if kernel == GREATEST:
        return slowly_greatest
    if kernel == LEAST:
        return slowly_least
    return slowly_merge if kernel == MERGE else slowly_any


cdef int slowly_any(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(self, any_op, leaf, head, out)


cdef int slowly_add(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(self, add_op, leaf, head, out)


cdef int slowly_least(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(self, least_op, leaf, head, out)


cdef int slowly_greatest(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(self, greatest_op, leaf, head, out)


cdef int slowly_merge(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(self, merge_op, leaf, head, out)


cdef int slide_any(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, any_op, leaf, head, out)


cdef int slide_add(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, add_op, leaf, head, out)


cdef int slide_least(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, least_op, leaf, head, out)


cdef int slide_greatest(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, greatest_op, leaf, head, out)


cdef int slide_merge(Amta self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by(self, merge_op, leaf, head, out)


cdef inline int slide_by(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    if is_calm(self, head):
        return slide_calmly(self, op, leaf, head, out)
    return self.slide_slowly_by(self, leaf, head, out)


cdef int slide_slowly(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """Where a stretch of calm readings begins or ends, the leftmost tree changes, or many leave."""
    cdef Block block
    self.freshen()
    if self.calm:
        if self.flat_out and is_few(self, head):
            return slide_flat(self, op, leaf, head, out)
        catch_up(self, op)
        if self.flat_out:
            end_calm(self)
    self.return_chunk()
    if not self.calm and is_few(self, head) and lay_out(self, op):
        return slide_flat(self, op, leaf, head, out)
    if self.foresee(head):
        if not self.calm or head >= self.calm_head:
            find_lefts(self, op)
        if not self.calm:
            self.calm, self.raised = True, self.tail
        return slide_calmly(self, op, leaf, head, out)
    end_calm(self)
    self.make_room(0, self.tail)
    raise_node(self, op, leaf)
    self.tail -= 1
    block.heads, block.totals = &head, out
    step(self, op, &block, 0)
    return self.head < self.tail


cdef void catch_up(Amta self, Op op) noexcept nogil:
    """Make the parents of the leaves that came while it was calm."""
    cdef int64_t tail = self.tail
    if self.flat_out:
        self.raised = self.tail = self.laid
        append_leaves(self, flat_at(self, 0, self.laid, self.p.width), tail - self.laid)
        self.tail = tail
    if self.raised < self.tail:
        raise_parts(self, op, self.raised, self.tail)
    self.raised = self.tail


cdef void end_calm(Amta self) noexcept nogil:
    """Make the stack anew, and let go of what lies before the head."""
    cdef int level
    if not self.calm:
        return
    self.calm = self.flat_out = False
    self.calm_tail = -1
    self.measure()
    self.let_go()
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        stack_head(self, any_op, level)


cdef void find_lefts(Amta self, Op op) noexcept nogil:
    """R0 for the next heads of the leftmost tree."""
    cdef int top = self.depth - 1
    cdef int64_t old = self.head, last = min((self.end(top) << top) - 1, old + min(AHEAD, self.most_left))
    self.let_go()
    self.head = last
    lefts_of_parts(self, op, old)
    self.head = old
    copy_by(op, self.p, self.left, self.lefts)
    self.calm_lefts, self.lefts_from, self.calm_head = self.lefts, old, last + 1


cdef inline bint is_few(Amta self, int64_t head) noexcept nogil:
    """Whether the window is so small, and so steady, that its levels are better laid out flat."""
    cdef int64_t held = self.tail - self.head
    if self.flat_out:
        return held < FEW and head <= self.tail and head - self.head <= 1 and self.tail < self.origin + ROOM_OF_FEW
    return 0 < held < FEW and head <= self.tail and head - self.head <= 1 and not (self.pool.surplus or self.base)


cdef int lay_out(Amta self, Op op) except -1 nogil:
    """Lay the levels out flat; False: any operator, or no memory."""
    cdef int level
    cdef int64_t origin = self.head & ~(<int64_t> 127)
    if self.kernel == ANY:
        return False
    if self.few == NULL:
        self.few = <Slot*> calloc(3 * ROOM_OF_FEW * self.p.width, sizeof(Slot))
    if self.few == NULL:
        return False
    self.make_room_for(origin + ROOM_OF_FEW)
    self.origin, self.laid, self.raised = origin, self.tail, self.tail
    for level in range(self.depth):
        copy_level(self, flat_at(self, level, 0, self.p.width), level, self.p.width, False)
    self.calm_lefts, self.lefts_from = self.few + 2 * ROOM_OF_FEW * self.p.width, origin
    find_flat_lefts(self, op)
    self.calm = self.flat_out = True
    return True


cdef int slide_flat(Amta self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    step_flat(self, op, leaf, head)
    look_ahead(self, width_of(op, self.p))
    if out == NULL:
        return 1
    if self.has_right:
        combine_by(op, self.p, out, self.left, self.right)
    else:
        copy_by(op, self.p, out, self.left)
    return 1
