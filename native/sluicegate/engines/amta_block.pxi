"""A block of readings through AMTA, level by level: the combinations of single readings in the same order. Part of amta.pyx."""

cdef int64_t quiet(Amta self, const Block* block, int64_t done) noexcept nogil:
    """How many readings from `done` on neither let the leftmost tree grow nor lower it, nor let many leave at once."""
    cdef int top = self.depth - 1
    cdef int64_t most, last, low = done, high, middle
    if top < 2:
        return 0
    most = ((((self.tail + 1) >> top) + 1) << top) - self.tail - 2
    most = min(most, block.n - done)
    last = min((self.end(top) << top) - 1, self.head + self.most_left)
    if most <= 0 or block.heads[done] > last:
        return 0
    high = done + most
    middle = done + last + 1 - block.heads[done]  # where one leaves for each that comes
    if middle < high and block.heads[middle] == last + 1 and block.heads[middle - 1] == last:
        high = middle
    elif block.heads[high - 1] > last:  # the readings after which the head is at most `last`
        while high - low > 1:
            middle = (low + high) >> 1
            if block.heads[middle] <= last:
                low = middle
            else:
                high = middle
    if block.jump <= top:  # fewer than the least number that leaves at once
        return high - done
    last = self.head
    for middle in range(done, high):
        if block.heads[middle] - last > top and block.heads[middle] - last > singles(self.tail + middle - done + 1 - last):
            return middle - done
        last = block.heads[middle]
    return high - done


cdef inline void prepare_chunks(Amta self, int64_t n) noexcept nogil:
    """In proportion to the block, have chunks ready for single readings after it."""
    while n >= PREPARES and prepare(&self.pool):
        n -= PREPARES


cdef int run_by(Amta self, Op op, const Block* block) except -1 nogil:
    """All leaves and the nodes above them first, then what the window holds of them after each."""
    cdef int64_t i = 0, k, old
    cdef bint little = is_little(self, op, block)
    if not little:
        if self.lies_flat:
            settle(self, op)
        if self.flat_out:
            bring_back(self)
        if self.unstacked:
            make_stack(self, op)
    if block.n == 1 and not little:
        self.return_chunk()
        make_room(self, 0, self.tail)
        raise_node(self, op, block.leaves)
        self.tail -= 1
        step(self, op, block, 0)
        return 0
    for k in range(block.n >> 1 if self.pool.surplus else 0):
        if self.pool.surplus:
            give_back(&self.pool)
    if little:
        k = self.tail + block.n - block.heads[block.n - 1]
        reserve_levels(self, k)
        self.flat_most = k
        run_little_block(self, op, block)
        return 0
    see_to_layout(self, self.tail + block.n - block.heads[block.n - 1])  # as it will be: else it changes with every block, and back
    make_room_above(self, 0, self.tail + block.n)
    lend_lefts(self, min(block.n, max(self.tail - self.head, LEAST_LEFTS)))
    while i < block.n:
        k = quiet(self, block, i)
        if not lays_itself(self, op, block, k):
            append_leaves(self, block.leaves + i * self.p.width, k if k >= LEAST_GLIDE else 1)
        if k >= LEAST_GLIDE:
            old = self.head
            self.tail += k
            self.head = block.heads[i + k - 1]
            glide_parts(self, op, block, i, k, old)
            if self.head > old:  # only now: a chunk that is dropped may go back to the system at once
                self.drop_to(self.head)
            self.has_base = True
            i += k
        else:
            raise_parts(self, op, self.tail, self.tail + 1)
            step(self, op, block, i)
            i += 1
    return 0


cdef inline bint goes_by_eights(Amta self, int64_t k) noexcept nogil:
    return k >= LEAST_EIGHTS and self.depth > LEVELS_OF_EIGHT and self.pool.least >= LEVELS_OF_EIGHT


cdef inline bint lays_itself(Amta self, Op op, const Block* block, int64_t k) noexcept nogil:
    """Whether the loops for k readings lay their leaves down."""
    return has_loops(op) and self.p.width == 1 and block.totals != NULL and goes_by_eights(self, k)


cdef bint is_little(Amta self, Op op, const Block* block) noexcept nogil:
    """Whether the window stays so small, and so steady, that flat arrays serve it better."""
    cdef int64_t held = self.tail - self.head, left = block.heads[block.n - 1] - self.head
    cdef int64_t size = max(held, held + block.n - left), most = LITTLE
    if has_loops(op) and left == block.n and held >= LEAST_STEADY:
        most = MOST_STEADY
    if block.jump > 1 or size > most or self.kernel == ANY:
        return False
    if self.flat != NULL:
        return True
    if not self.flat_out and (held > COPIED * block.n or not fits_ring_after(self, held + block.n - left)) and (block.n < LEAST_LITTLE or held > 2 * block.n):
        return False  # copying it would take longer
    self.flat = <Slot*> lend(ROOM_OF_LEVELS, (4 * FLAT_ROOM + ROOM_BESIDE) * self.p.width * sizeof(Slot))
    return self.flat != NULL  # without the memory for them the long way does


cdef inline void run_little_block(Amta self, Op op, const Block* block) noexcept nogil:
    """The window laid out flat, all readings, and what it then has back in chunks where no block comes at once."""
    cdef int64_t i = 0, k
    while i < block.n:
        k = min(block.n - i, PIECE)
        run_through_little(self, op, block, i, k)
        i += k
    if not block.more:
        settle(self, op)


cdef inline void settle(Amta self, Op op) noexcept nogil:
    """What lies flat, back to the ring or to chunks, in which there is room for it; the stack may wait."""
    cdef int w = width_of(op, self.p), level
    if self.few != NULL:
        lay_in_ring(self, little_level(self, 0, w) + self.head * w)
        return
    open_levels(self, self.flat_most)
    for level in range(self.depth):
        copy_level(self, little_level(self, level, w), level, w, True)
    self.lies_flat, self.unstacked = False, True


cdef void run_through_little(Amta self, Op op, const Block* block, int64_t i, int64_t n) noexcept nogil:
    """Lay the window and n leaves out flat, run, and take over where it ends."""
    cdef int w = width_of(op, self.p), level
    cdef int64_t bare = self.tail - self.head if self.flat_out else 0  # leaves without nodes
    cdef Slot* room
    cdef Little t
    room = lay_little(self, &t, n, w)
    memcpy(t.level[0] + self.tail * w, block.leaves + i * w, n * w * sizeof(Slot))
    t.head, t.tail, t.depth = self.head, self.tail - bare, self.depth
    t.has_right, t.has_base = self.has_right, self.has_base
    copy_by(op, self.p, t.left, self.left)
    copy_by(op, self.p, t.right, self.right)
    copy_by(op, self.p, t.base, self.base_of_right)
    raise_little(&t, op, self.p, bare + n)
    t.tail = self.tail
    if has_loops(op) and block.jump == 1 and block.heads[i + n - 1] - t.head == n and t.tail - t.head >= LEAST_STEADY:
        run_steadily(&t, op, room if block.totals == NULL else block.totals + i, n)
    else:
        run_little(&t, op, self.p, block.heads + i, room if block.totals == NULL else block.totals + i * w, n)
    self.tail, self.depth = t.tail, t.depth
    self.head = t.head
    self.has_right, self.has_base = t.has_right, t.has_base
    copy_by(op, self.p, self.left, t.left)
    copy_by(op, self.p, self.right, t.right)
    copy_by(op, self.p, self.base_of_right, t.base)


cdef void make_stack(Amta self, Op op) noexcept nogil:
    cdef int level
    self.unstacked = False
    self.stacked = 0
    for level in range(self.depth - 1, -1, -1):
        stack_head(self, op, level)


cdef inline Slot* little_level(Amta self, int level, int w) noexcept nogil:
    """Where node 0 of a level would be, as the window is laid out; the level after the last is that of the R0s."""
    cdef int64_t before = 2 * FLAT_ROOM - ((2 * FLAT_ROOM) >> level) + level * (EIGHT + 2) + EIGHT
    return self.flat + (before - (self.flat_from >> level if level < LEVELS_OF_LITTLE else self.flat_from)) * w


cdef inline Slot* lay_little(Amta self, Little* t, int64_t n, int w) noexcept nogil:
    """The window's nodes, each level with room for n leaves more; what room is left."""
    cdef int level
    cdef int64_t begin
    cdef Slot* nodes
    cdef Slot* before
    if self.flat_out:
        self.measure()  # a level may have come while it was calm
        self.flat_out, self.lies_flat, self.flat_from = False, True, self.head
        leaves_of_few(self, self.head, little_level(self, 0, w) + self.head * w, w)
    elif not self.lies_flat or self.tail + n - self.flat_from > FLAT_ROOM:
        for level in range(LEVELS_OF_LITTLE):
            begin = self.flat_from
            before = little_level(self, level, w)
            self.flat_from = self.head
            nodes = little_level(self, level, w)
            if not self.lies_flat:
                copy_level(self, nodes, level, w, False)
            elif level < self.depth:
                memmove(
                    nodes + self.first(level) * w, before + self.first(level) * w,
                    (self.end(level) - self.first(level)) * w * sizeof(Slot),
                )
            self.flat_from = begin
        self.lies_flat, self.flat_from = True, self.head
    for level in range(LEVELS_OF_LITTLE):
        t.level[level] = little_level(self, level, w)
    t.lefts = little_level(self, LEVELS_OF_LITTLE, w)
    return t.lefts + (self.flat_from + EIGHT + FLAT_ROOM) * w


cdef inline void glide_parts(Amta self, Op op, const Block* block, int64_t i, int64_t k, int64_t old) noexcept nogil:
    cdef int step, kernel, s
    if Op is Any:
        if not self.split:
            glide(self, op, self.p.width, 0, block, i, k, old)
            return
        for step in range(self.p.steps):
            kernel, s = kernel_of_step(&self.p.step[step]), self.p.step[step].slot
            if kernel == ADD:
                glide(self, add_op, self.p.width, s, block, i, k, old)
            elif kernel == LEAST:
                glide(self, least_op, self.p.width, s, block, i, k, old)
            elif kernel == GREATEST:
                glide(self, greatest_op, self.p.width, s, block, i, k, old)
            else:
                glide(self, merge_op, self.p.width, s, block, i, k, old)
    else:
        glide(self, op, width_of(op, self.p), 0, block, i, k, old)


cdef inline void glide(
    Amta self, Op op, int w, int s, const Block* block, int64_t i, int64_t k, int64_t old
) noexcept nogil:
    """Take k readings during which the leftmost tree neither grows nor falls: R0 backwards, R1 forwards, level by level.

    R0 where the window begins at h > old is node(l, h >> l) and then R0 at h + 2^l, for l the trailing zeros of h: what
    Algorithm 7 leaves on the stack. R1 is R1 before and the leaf. So every combination is the one that single calls make.
    """
    cdef Slot* lefts = self.lefts + s - old * w
    copy_by(op, self.p, lefts + old * w, self.left + s)
    if Op is Any:
        glide_by_level(self, op, w, s, block, i, k, old)
    elif goes_by_eights(self, k):
        glide_by_eights(self, op, w, s, block, i, k, old)
    else:
        glide_by_level(self, op, w, s, block, i, k, old)
    copy_by(op, self.p, self.left + s, lefts + self.head * w)


cdef inline void glide_by_level(
    Amta self, Op op, int w, int s, const Block* block, int64_t i, int64_t k, int64_t old
) noexcept nogil:
    """A level after the other, then R1."""
    cdef Slot few[3]
    cdef Slot* right = own(self, op, s, few)
    raise_levels(self, op, w, s, 1, self.tail - k, self.tail)
    if self.head > old:
        slide_left(self, op, w, s, old, block.totals != NULL, 0)
    extend_right(self, op, w, s, block, i, 0, k, old, right)


cdef inline void glide_by_eights(
    Amta self, Op op, int w, int s, const Block* block, int64_t i, int64_t k, int64_t old
) noexcept nogil:
    """Eight readings at a time: the lowest nodes and R0s beside R1, which takes one combination after the other."""
    cdef Slot* lefts = self.lefts + s - old * w
    cdef bint each = block.totals != NULL, steady = block.jump == 1 and block.heads[i + k - 1] - block.heads[i] == k - 1
    cdef int64_t n, j = 0, before = self.tail - k, group = (old + 1) & -EIGHT, whole = 0  # R0s from `whole` on are there, and before `group`
    cdef int64_t fresh = (before + EIGHT - 1) & -EIGHT, end = max(((self.tail + 1) & -EIGHT) - EIGHT, fresh)
    cdef Eights oldest, newest
    cdef Slot few[3]
    cdef Slot* right = own(self, op, s, few)
    cdef bint lays = lays_itself(self, op, block, k)
    cdef const Slot* leaves = block.leaves + i - before  # where they are laid here: leaf j's is at j
    if lays:
        lay_leaves(self, leaves + before, before, fresh - before)
        lay_leaves(self, leaves + end, end, self.tail - end)
    memset(&oldest, 0, sizeof(Eights))
    memset(&newest, 0, sizeof(Eights))
    raise_edges(self, op, w, s, before, fresh, False)
    if self.head > old:
        slide_left(self, op, w, s, old, each, LEVELS_OF_EIGHT)
        whole = self.head & -EIGHT if each else 0
        if group < whole:
            eight_lefts(self, op, w, s, &oldest, lefts, group)
            copy_by(op, self.p, lefts + old * w, self.left + s)  # the only one of these that is not what its nodes give
            group += EIGHT
    while j < (k - 1) // EIGHT:
        if each and w == 1 and fresh < end and has_loops(op):
            n = min((k - 1) // EIGHT - j, (end - fresh) // EIGHT)
            n = beside(self, op, &newest, &oldest, &fresh, &group, whole, right, block, i + EIGHT * j, n, lefts, leaves, steady)
            j += n
            continue
        if fresh < end:
            eight_nodes(self, op, w, s, &newest, fresh)
            fresh += EIGHT
        while group < whole and group <= block.heads[i + EIGHT * j + EIGHT - 1]:
            eight_lefts(self, op, w, s, &oldest, lefts, group)
            group += EIGHT
        extend(op, self.p, w, s, right, block, i + EIGHT * j, lefts, EIGHT)
        j += 1
    if lays and fresh < end:
        lay_leaves(self, leaves + fresh, fresh, end - fresh)
    while fresh < end:
        eight_nodes(self, op, w, s, &newest, fresh)
        fresh += EIGHT
    while group < whole:
        eight_lefts(self, op, w, s, &oldest, lefts, group)
        group += EIGHT
    raise_edges(self, op, w, s, end, self.tail, True)
    raise_levels(self, op, w, s, LEVELS_OF_EIGHT + 1, before, self.tail)
    if self.depth > COLD:
        ask_for_nodes(self, w, k)
    extend_right(self, op, w, s, block, i, (k - 1) & -EIGHT, k, old, right)


cdef inline int64_t beside(
    Amta self, Op op, Eights* newest, Eights* oldest, int64_t* fresh, int64_t* group, int64_t whole, Slot* right,
    const Block* block, int64_t i, int64_t n, Slot* lefts, const Slot* leaves, bint steady
) noexcept nogil:
    """Up to n eights of readings from i on, in one loop; how many it was, where old nodes end perhaps none."""
    cdef Beside b
    cdef int64_t groups = (whole - group[0]) // EIGHT
    if not newest.left:
        find_eights(self, newest, 4, 1, 0, fresh[0])
    if groups > 0 and not oldest.left:
        find_eights(self, oldest, 3, 1, 0, group[0])
    n = min(n, newest.left)
    begin_beside(&b, newest, oldest, <double*> (lefts + group[0]), group[0], whole)
    b.from_ = <const double*> (leaves + fresh[0])
    if steady and groups > 0:
        n = min(n, min(groups, oldest.left))
        right.f = beside_by(op, right.f, n, block, i, lefts, &b)
    else:
        n = beside_any_by(op, <double*> right, n, block, i, lefts, &b)
    end_beside(&b, newest, oldest, n)
    fresh[0], group[0] = fresh[0] + EIGHT * n, b.head
    return n


cdef inline void ask_for_nodes(Amta self, int w, int64_t k) noexcept nogil:
    """Fetch what the R0s of the next k heads need of the higher levels: pieces too short for the processor to look ahead."""
    cdef int level
    cdef int64_t begin, end
    cdef const Slot* nodes
    for level in range(LEVELS_OF_EIGHT, self.depth):
        begin = self.head >> level
        end = min(min(((self.head + k) >> level) + 2, self.end(level)) - begin, run_at(&self.level[(self.base + level) & (LEVELS - 1)], begin))
        nodes = spot(self, level, begin, w)
        begin = 0
        while begin < end * w:
            prefetch(nodes + begin)
            begin += SLOTS_OF_LINE


cdef inline void raise_edges(Amta self, Op op, int w, int s, int64_t begin, int64_t end, bint after) noexcept nogil:
    """The nodes of the three levels above leaves that are no whole eight: before leaf `end`, or, `after`, from leaf `begin` on."""
    cdef int level
    for level in range(1, LEVELS_OF_EIGHT + 1):
        if after:
            raise_level(self, op, w, s, level, begin >> level, self.end(level))
        else:
            raise_level(self, op, w, s, level, ((begin + 1) >> level) - 1, min(end >> level, self.end(level)))


cdef inline void eight_nodes(Amta self, Op op, int w, int s, Eights* e, int64_t leaf) noexcept nogil:
    if not e.left:
        find_eights(self, e, 4, w, s, leaf)
    raise_eight(op, self.p, w, e)
    go_on(e, 4, w)


cdef inline void eight_lefts(Amta self, Op op, int w, int s, Eights* e, Slot* lefts, int64_t head) noexcept nogil:
    if not e.left:
        find_eights(self, e, 3, w, s, head)
    lefts_of_eight(op, self.p, w, e, lefts + head * w)
    go_on(e, 3, w)


cdef void find_eights(Amta self, Eights* e, int levels, int w, int s, int64_t leaf) noexcept nogil:
    """Where the eight leaves from a multiple of eight on are, and their nodes; a chunk holds at least eight."""
    cdef int level
    cdef Queue* queue
    e.left = MOST_BLOCK
    for level in range(levels):
        queue = &self.level[(self.base + level) & (LEVELS - 1)]
        e.node[level] = node_at(queue, w, leaf >> level) + s
        e.left = min(e.left, run_at(queue, leaf >> level) >> (LEVELS_OF_EIGHT - level))


cdef inline void extend_right(
    Amta self, Op op, int w, int s, const Block* block, int64_t i, int64_t done, int64_t k, int64_t old, Slot* right
) noexcept nogil:
    """R1, and the totals, for the rest of the k readings from i on: the newest leaf, which comes last, by itself."""
    cdef const Slot* newest = block.leaves + (i + k - 1) * w + s
    cdef const Slot* lefts = self.lefts + s - old * w
    extend(op, self.p, w, s, right, block, i + done, lefts, k - 1 - done)
    copy_by(op, self.p, self.base_of_right + s, right)
    combine_by(op, self.p, self.right + s, right, newest)
    if block.totals != NULL:
        combine_by(op, self.p, block.totals + (i + k - 1) * w + s, lefts + self.head * w, self.right + s)


cdef inline Slot* own(Amta self, Op op, int s, Slot* few) noexcept nogil:
    """Where R1 is while a loop runs: in registers, but for partials of any width."""
    if Op is Any:
        return self.right
    else:
        copy_by(op, self.p, few, self.right + s)
        return few
