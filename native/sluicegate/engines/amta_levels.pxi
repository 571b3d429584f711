"""The levels of AMTA's forest: nodes made, R0s found and leaves laid down, many at once. Part of amta.pyx."""

cdef inline void copy_level(Amta self, Slot* flat, int level, int w, bint back) noexcept nogil:
    """A level's nodes in the window to their places in `flat`, or back."""
    cdef int64_t index = self.first(level), n, end = self.end(level)
    cdef Queue* queue = &self.level[(self.base + level) & (LEVELS - 1)]
    cdef Slot* nodes
    while index < end:
        n = min(run_at(queue, index), end - index)
        nodes = node_at(queue, w, index)
        if back:
            memcpy(nodes, flat + index * w, n * w * sizeof(Slot))
        else:
            memcpy(flat + index * w, nodes, n * w * sizeof(Slot))
        index += n


cdef inline void step(Amta self, Op op, const Block* block, int64_t i) noexcept nogil:
    """One reading by itself."""
    cdef int w = width_of(op, self.p)
    advance(self, op)
    if block.heads[i] - self.head > 1:
        self.pop_to(block.heads[i])
    elif self.head < block.heads[i]:
        pop_by(self, op)
    if block.totals != NULL and self.head < self.tail:
        if self.has_right:
            combine_by(op, self.p, block.totals + i * w, self.left, self.right)
        else:
            copy_by(op, self.p, block.totals + i * w, self.left)


cdef inline void append_leaves(Amta self, const Slot* leaves, int64_t k) noexcept nogil:
    cdef int64_t index = self.tail, end = self.tail + k, n, w = self.p.width
    cdef Queue* queue = &self.level[self.base]
    while index < end:
        n = min(run_at(queue, index), end - index)
        ask_for(node_at(queue, self.p.width, index), n * w * sizeof(Slot))
        memcpy(node_at(queue, self.p.width, index), leaves, n * w * sizeof(Slot))
        leaves += n * w
        index += n


# Where every component of a partial has an operator of its own (`split`), each goes through by itself: `w` slots from one
# partial to the next, the component `s` slots into it.

cdef inline void raise_parts(Amta self, Op op, int64_t before, int64_t after) noexcept nogil:
    cdef int k, kernel, s
    if Op is Any:
        if not self.split:
            raise_levels(self, op, self.p.width, 0, 1, before, after)
            return
        for k in range(self.p.steps):
            kernel, s = kernel_of_step(&self.p.step[k]), self.p.step[k].slot
            if kernel == ADD:
                raise_levels(self, add_op, self.p.width, s, 1, before, after)
            elif kernel == LEAST:
                raise_levels(self, least_op, self.p.width, s, 1, before, after)
            elif kernel == GREATEST:
                raise_levels(self, greatest_op, self.p.width, s, 1, before, after)
            else:
                raise_levels(self, merge_op, self.p.width, s, 1, before, after)
    else:
        raise_levels(self, op, width_of(op, self.p), 0, 1, before, after)


cdef inline void lefts_of_parts(Amta self, Op op, int64_t old, int levels, int kept) noexcept nogil:
    cdef int k, kernel, s
    copy_by(op, self.p, self.lefts, self.left)
    if Op is Any:
        if not self.split:
            lower_levels_of_lefts(self, op, self.p.width, 0, old, levels, kept)
            return
        for k in range(self.p.steps):
            kernel, s = kernel_of_step(&self.p.step[k]), self.p.step[k].slot
            if kernel == ADD:
                lower_levels_of_lefts(self, add_op, self.p.width, s, old, levels, kept)
            elif kernel == LEAST:
                lower_levels_of_lefts(self, least_op, self.p.width, s, old, levels, kept)
            elif kernel == GREATEST:
                lower_levels_of_lefts(self, greatest_op, self.p.width, s, old, levels, kept)
            else:
                lower_levels_of_lefts(self, merge_op, self.p.width, s, old, levels, kept)
    else:
        lower_levels_of_lefts(self, op, width_of(op, self.p), 0, old, levels, kept)


cdef inline void lower_levels_of_lefts(Amta self, Op op, int w, int s, int64_t old, int levels, int kept) noexcept nogil:
    """As `slide_left`, of the lowest levels only; the `kept` lowest elements of the stack, which come from those above, stay."""
    cdef int level
    self.stacked = kept
    for level in range(levels - 1, -1, -1):
        level_of_lefts(self, op, w, s, self.lefts + s - old * w, old, level)
        stack_part(self, op, w, s, level)


cdef inline void raise_levels(Amta self, Op op, int w, int s, int level, int64_t before, int64_t after) noexcept nogil:
    """The nodes from a level on that leaves before … after − 1 complete, level by level."""
    cdef int64_t index, end
    while True:
        index, end = ((before + 1) >> level) - 1, ((after + 1) >> level) - 1
        if index >= end:
            return
        raise_level(self, op, w, s, level, index, end)
        level += 1


cdef inline void raise_level(Amta self, Op op, int w, int s, int level, int64_t index, int64_t end) noexcept nogil:
    """Nodes index … end − 1 of a level, as far as their leaves have not all left."""
    cdef int64_t n
    cdef Queue* below = &self.level[(self.base + level - 1) & (LEVELS - 1)]
    cdef Queue* queue = &self.level[(self.base + level) & (LEVELS - 1)]
    cdef const Slot* pairs
    cdef Slot* nodes
    index = max(index, self.first(level))
    if index < end and 2 * index < self.first(level - 1):  # its left half has left
        copy_by(op, self.p, node_at(queue, w, index) + s, node_at(below, w, 2 * index + 1) + s)
        index += 1
    while index < end:
        n = min(min(run_at(queue, index), run_at(below, 2 * index) >> 1), end - index)
        pairs, nodes = node_at(below, w, 2 * index) + s, node_at(queue, w, index) + s
        combine_pairs(op, self.p, w, nodes, pairs, n)
        index += n


cdef inline void slide_left(Amta self, Op op, int w, int s, int64_t old, bint each, int lowest) noexcept nogil:
    """R0 and the stack for the head as it is now, R0 for it to `lefts`; where `each`, for the heads between too.

    Of the levels below `lowest` then only those of the head's own eight.
    """
    cdef int level
    cdef int64_t before
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        before = old if level >= lowest else max(old, self.head & -EIGHT)
        level_of_lefts(self, op, w, s, self.lefts + s - old * w, before if each else self.head - 1, level)
        stack_part(self, op, w, s, level)


cdef inline void level_of_lefts(Amta self, Op op, int w, int s, Slot* lefts, int64_t before, int level) noexcept nogil:
    """R0 for the heads after `before` that have `level` trailing zeros; the stack's top is what follows the last one."""
    cdef int64_t leap = (<int64_t> w) << level, h = ((before >> level) + 1) | 1, last = (self.head >> level), n, j
    cdef Queue* queue = &self.level[(self.base + level) & (LEVELS - 1)]
    cdef const Slot* nodes
    cdef Slot* out
    if not last & 1:
        last -= 1
    while h < last:  # all but the last: h, and what follows it, are in `lefts`
        n = min((run_at(queue, h) + 1) >> 1, (last - h) >> 1)
        nodes, out = node_at(queue, w, h) + s, lefts + (h << level) * w
        if level == 0:
            for j in range(n):
                combine_by(op, self.p, out + 2 * j * w, nodes + 2 * j * w, out + (2 * j + 1) * w)
        else:
            for j in range(n):
                combine_by(op, self.p, out, nodes + 2 * j * w, out + leap)
                out += 2 * leap
        h += 2 * n
    if h == last:
        out, nodes = lefts + (h << level) * w, node_at(queue, w, h) + s
        if ((h + 1) << level) <= self.head:
            combine_by(op, self.p, out, nodes, out + leap)
        elif self.stacked:
            combine_by(op, self.p, out, nodes, self.stack + (self.stacked - 1) * w + s)
        else:
            copy_by(op, self.p, out, nodes)
