"""A block of readings through AMTA: while the leftmost tree stays, level by level. The state is single readings' to the
bit.

R0 where the window begins at h is node(l, h >> l) and then R0 at h + 2^l, for l the trailing zeros of h: what Algorithm
7 leaves on the stack. R1 grows by a combination a reading. So every combination is the one that single calls make.
Where every component of a partial has an operator of its own (`split`), each goes through by itself: `w` slots from one
partial to the next, the component `s` slots into it. Part of amta.pyx.
"""

cdef enum:
    SLOTS_OF_FRONTS = 8192  # a block's R0s: 64 KiB at most, whatever the partial's width
    LEAST_FRONTS = 16  # of partials wider than all of that
    LEAST_GLIDE = 4  # readings for which a loop pays off


cdef inline int run_block(Amta self, const Block* block) except -1 nogil:
    cdef int64_t i = 0, k, w = self.p.width
    make_room(self, self.tail + block.n)
    self.fronts = <Slot*> malloc((max(SLOTS_OF_FRONTS, LEAST_FRONTS * w) + w) * sizeof(Slot))
    if self.fronts == NULL:
        with gil:
            raise MemoryError(f"amta: no memory for a block of {block.n} partials of {w} slots")
    freshen(self, any_op)
    while i < block.n:
        k = quiet(self, block, i)
        if k >= LEAST_GLIDE:
            glide(self, block, i, k)
        else:
            k = 1
            self.slide_by(
                self, block.leaves + i * w, block.heads[i], block.totals + i * w if block.totals != NULL else NULL
            )
        i += k
    free(self.fronts)
    return 0


cdef inline int64_t quiet(Amta self, const Block* block, int64_t i) noexcept nogil:
    """How many readings from i on neither let the leftmost tree grow nor lower it, nor let many leave at once."""
    cdef int top = self.depth - 1
    cdef int64_t last, head = self.head, high, j
    if top < 2 or not self.has_right:
        return 0
    last = min((end_of(self.tail, top) << top) - 1, head + max(SLOTS_OF_FRONTS // self.p.width, LEAST_FRONTS) - 1)
    high = min(block.n, i + ((((self.tail + 1) >> top) + 1) << top) - self.tail - 2)
    high = first_after(block.heads, last, i, high)
    for j in range(i, high):  # what is not more than the top level's number never leaves at once
        if block.heads[j] - head > top and at_once(head, block.heads[j], self.tail + j - i + 1):
            return j - i
        head = block.heads[j]
    return high - i


cdef inline void glide(Amta self, const Block* block, int64_t i, int64_t k) noexcept nogil:
    """k readings during which the leftmost tree stays."""
    cdef int64_t old = self.head
    cdef int step, kernel, s, w = self.p.width
    freshen(self, any_op)
    lay_leaves(self, block.leaves + i * w, self.tail, k)
    self.tail, self.head = self.tail + k, block.heads[i + k - 1]
    measure(self)
    for step in range(self.p.steps if self.split else 1):
        kernel, s = kernel_of_step(&self.p.step[step]), self.p.step[step].slot
        if not self.split:
            glide_part(self, any_op, w, 0, block, i, k, old)
        elif kernel == ADD:
            glide_part(self, add_op, w, s, block, i, k, old)
        elif kernel == LEAST:
            glide_part(self, least_op, w, s, block, i, k, old)
        elif kernel == GREATEST:
            glide_part(self, greatest_op, w, s, block, i, k, old)
        else:
            glide_part(self, merge_op, w, s, block, i, k, old)
    self.has_base = True
    if self.head > old:
        let_go(self)


cdef inline void glide_part(
    Amta self, Op op, int w, int s, const Block* block, int64_t i, int64_t k, int64_t old
) noexcept nogil:
    if w == 1:  # known while compiling
        glide_by(self, op, 1, 0, block, i, k, old)
    else:
        glide_by(self, op, w, s, block, i, k, old)


cdef inline void glide_by(
    Amta self, Op op, int w, int s, const Block* block, int64_t i, int64_t k, int64_t old
) noexcept nogil:
    """The nodes above the new leaves; R1 and the totals, of R0 where the window begins after each."""
    cdef const Slot* leaves = block.leaves + i * w + s
    cdef Slot* totals = block.totals + i * w + s
    cdef const int64_t* heads = block.heads + i
    cdef Slot* fronts = self.fronts - old * w + s
    cdef Slot held[3]
    cdef Slot* right = self.right if Op is Any else held
    cdef int64_t j
    raise_levels(self, op, w, s, self.tail - k)
    find_fronts(self, op, w, s, old, block.totals != NULL)
    copy_by(op, self.p, self.left + s, fronts + self.head * w)
    copy_by(op, self.p, right, self.right + s)
    for j in range(k - 1):
        combine_by(op, self.p, right, right, leaves + j * w)
        if block.totals != NULL:
            combine_by(op, self.p, totals + j * w, fronts + heads[j] * w, right)
    copy_by(op, self.p, self.base_of_right + s, right)
    combine_by(op, self.p, right, right, leaves + (k - 1) * w)
    copy_by(op, self.p, self.right + s, right)
    if block.totals != NULL:
        combine_by(op, self.p, totals + (k - 1) * w, self.left + s, right)


cdef inline void find_fronts(Amta self, Op op, int w, int s, int64_t old, bint each) noexcept nogil:
    """R0 and the stack for the head as it is now; where `each`, R0 for the heads between, too."""
    cdef int level
    copy_by(op, self.p, self.fronts + s, self.left + s)
    if self.head == old:
        return
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        fronts_of_level(self, op, w, s, self.fronts + s - old * w, old if each else self.head - 1, level)
        stack_head(self, op, w, s, level)


cdef inline void fronts_of_level(
    Amta self, Op op, int w, int s, Slot* fronts, int64_t before, int level
) noexcept nogil:
    """R0 for the heads after `before` that have `level` trailing zeros; the stack's top is what follows the last
    one."""
    cdef int64_t leap = (<int64_t> w) << level, h = ((before >> level) + 1) | 1, last = self.head >> level, n, j
    cdef Queue* queue = queue_of(self, level)
    cdef const Slot* nodes
    cdef Slot* out
    last -= not last & 1
    while h < last:  # all but the last: h, and what follows it, are in `fronts`
        n = min((run_at(queue, h) + 1) >> 1, (last - h) >> 1)
        nodes, out = at(queue, w, h) + s, fronts + (h << level) * w
        for j in range(n):
            combine_by(op, self.p, out + 2 * j * leap, nodes + 2 * j * w, out + (2 * j + 1) * leap)
        h += 2 * n
    if h == last:
        out, nodes = fronts + (h << level) * w, at(queue, w, h) + s
        if ((h + 1) << level) <= self.head:
            combine_by(op, self.p, out, nodes, out + leap)
        elif self.stacked:
            combine_by(op, self.p, out, nodes, self.stack + (self.stacked - 1) * w + s)
        else:
            copy_by(op, self.p, out, nodes)


# the nodes above many leaves

cdef inline void raise_levels(Amta self, Op op, int w, int s, int64_t before) noexcept nogil:
    """Those that the leaves from `before` on complete."""
    cdef int level = 1
    while end_of(before, level) < end_of(self.tail, level):
        raise_level(self, op, w, s, level, max(end_of(before, level), self.head >> level), end_of(self.tail, level))
        level += 1


cdef inline void raise_level(Amta self, Op op, int w, int s, int level, int64_t index, int64_t end) noexcept nogil:
    """Nodes index … end − 1 of a level."""
    cdef Queue* below = queue_of(self, level - 1)
    cdef Queue* queue = queue_of(self, level)
    cdef const Slot* pairs
    cdef Slot* nodes
    cdef int64_t n, j
    if index < end and 2 * index < self.head >> (level - 1):  # its left half has left
        copy_by(op, self.p, at(queue, w, index) + s, at(below, w, 2 * index + 1) + s)
        index += 1
    while index < end:
        n = min(min(run_at(queue, index), run_at(below, 2 * index) >> 1), end - index)
        nodes, pairs = at(queue, w, index) + s, at(below, w, 2 * index) + s
        for j in range(n):
            combine_by(op, self.p, nodes + j * w, pairs + 2 * j * w, pairs + (2 * j + 1) * w)
        index += n
