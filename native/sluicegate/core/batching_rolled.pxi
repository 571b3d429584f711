"""A batch through the rolling kernels: window and batch as one flat array, tile by tile. Part of batching.pyx.

The engine hears of it once, at the end: of the readings up to the last with which its state is made anew from leaves.
Times are in order here: a batch ends where one comes late.
"""

cdef enum:
    LEAST_ROLLED = 128  # readings: of fewer the engine takes as long
    MOST_ROLLED = 12288  # readings of a window: of longer ones the engine takes as long with its blocks
    MOST_OF_MOMENTS = 256  # the same of moments
    TILE = 4096  # readings at once: they stay in the cache

ctypedef struct Tile:  # by leaf, `head` the first: what the window holds, then what comes
    int64_t n  # readings that come
    int64_t head  # before them
    int64_t tail
    int64_t room  # leaves
    bint copied  # and not read where they lie in the batch
    double* x  # of moments: less the center
    int64_t* times  # by time only
    int64_t* starts  # by reading
    Slot* totals  # and, at the end, the leaves that stay
    Rolling rolling


cdef int64_t ingest_rolled(
    Batching self, const double* values, const int64_t* times, int64_t i, int64_t count, double** out
) except -1 nogil:
    """How many readings of a batch from reading i on were taken.

    0: the window is not much shorter, and nothing has changed.
    """
    cdef int64_t begin = self.engine.tail, end = begin + count - i, head = begin, tail = begin, n
    cdef Tile t
    cdef Slot* memory
    n = longest_window(self, NULL if times == NULL else times + i, end - begin)
    if end - begin < max(2 * n, LEAST_ROLLED) or not can_roll(self, n):
        return 0
    memory = room_for_tile(self, &t, n, end - begin)
    if memory == NULL:
        return 0
    values, times = values + i - begin, NULL if times == NULL else times + i - begin  # by leaf
    try:
        lay_window(self, &t)
        while t.tail < end and has_room(&t, end):
            lay_readings(self, &t, values, times, begin, end)
            n = self.engine.anew(t.starts, t.tail, t.n)
            if n > 0 and t.starts[n - 1] >= begin:
                head, tail = t.starts[n - 1], t.tail + n
            if out != NULL:
                answer_tile(self, &t, values, out, i + t.tail - begin)
            move_on(self, &t)
        if tail > begin:
            adopt_leaves(self, &t, values, times, head, tail)
    finally:
        free(memory)
    return tail - begin


cdef int64_t longest_window(Batching self, const int64_t* times, int64_t n) noexcept nogil:
    """Readings in it: now or after n more, whichever are more; between them there may be still more."""
    cdef int64_t held = self.engine.tail - self.engine.head
    if not self.timed:
        return max(held, min(self.value, n))
    return max(held, n - first_after(times, times[n - 1] - self.value, 0, n - 1))


cdef bint can_roll(Batching self, int64_t longest) noexcept nogil:
    """Whether windows like this one, of so many readings, go through the kernels."""
    cdef bint moments = kernel_of(&self.p) == MERGE
    if longest > (MOST_OF_MOMENTS if moments else MOST_ROLLED) or self.hop > 1:
        return False
    return self.p.dimensions == 1 and (moments or lies_as_given(self)) and self.engine.rolls()


cdef Slot* room_for_tile(Batching self, Tile* t, int64_t longest, int64_t n) noexcept nogil:
    """For so long a window and several times as much, of n readings; NULL: no memory."""
    cdef int64_t w = self.p.width
    cdef Slot* memory
    t.room = longest + min(n, longest + TILE)
    memory = <Slot*> malloc(((3 + 2 * w) * t.room + w) * sizeof(Slot))
    if memory != NULL:
        t.x, t.rolling.front = <double*> memory, <double*> (memory + t.room)
        t.rolling.begin, t.rolling.block = 0, -1
        t.times = <int64_t*> (memory + t.room + w * (t.room + 1))
        t.starts = t.times + t.room
        t.totals = <Slot*> (t.starts + t.room)
    return memory


cdef inline bint has_room(const Tile* t, int64_t end) noexcept nogil:
    """Whether the rest has room, or so many readings that it pays off."""
    return t.room - (t.tail - t.head) >= min(end - t.tail, TILE >> 2)


cdef void lay_window(Batching self, Tile* t) noexcept nogil:
    """What the window holds."""
    cdef int64_t held = self.engine.tail - self.engine.head, w = self.p.width, i
    t.head, t.tail = self.engine.head, self.engine.tail
    self.engine.copy_leaves(<Slot*> (t.rolling.front if w > 1 else t.x))
    for i in range(held if w > 1 else 0):
        t.x[i] = t.rolling.front[w * i + 1]
    if self.timed:
        copy_out(self.times, t.times, t.head, held)


cdef void lay_readings(
    Batching self, Tile* t, const double* values, const int64_t* times, int64_t begin, int64_t end
) noexcept nogil:
    """The next readings behind it, and where the window begins after each.

    Once the batch has all of the window it is read there.
    """
    cdef int64_t held = t.tail - t.head, i
    t.copied = t.head < begin or self.p.width > 1
    t.n = min(end - t.tail, t.room - held if t.copied else min(t.room - held, <int64_t> TILE))
    if t.copied:
        memcpy(t.x + held, values + t.tail, t.n * sizeof(double))
    for i in range(t.n if self.p.width > 1 else 0):
        t.x[held + i] -= self.center[0]
    if not self.timed:
        starts_by_count(self.value, t.head, t.tail, t.n, t.starts)
        return
    if t.copied:
        memcpy(t.times + held, times + t.tail, t.n * sizeof(int64_t))
        times = t.times - t.head
    starts_by_time(times, self.value, t.head, t.tail, t.n, t.starts)


cdef void answer_tile(Batching self, Tile* t, const double* values, double** out, int64_t row) noexcept nogil:
    """The answers after its readings, the first of which is row `row`."""
    cdef Block block
    cdef int k
    block.n, block.heads = t.n, t.starts
    block.totals = <Slot*> (out[0] + row) if self.as_is else t.totals
    roll(
        kernel_of(&self.p), t.x - t.head if t.copied else values, t.starts, t.tail, t.n, &t.rolling,
        <double*> block.totals,
    )
    for k in range(self.answers):
        lower_rows(&self.outputs[k], &block, out[k] + row, t.tail + 1, self.p.width)


cdef void move_on(Batching self, Tile* t) noexcept nogil:
    """Keep what the window holds after the tile's readings."""
    cdef int64_t head = t.starts[t.n - 1], gone = head - t.head
    t.tail += t.n
    if t.copied:
        memmove(t.x, t.x + gone, (t.tail - head) * sizeof(double))
    if t.copied and self.timed:
        memmove(t.times, t.times + gone, (t.tail - head) * sizeof(int64_t))
    t.head = head


cdef int adopt_leaves(
    Batching self, const Tile* t, const double* values, const int64_t* times, int64_t head, int64_t tail
) except -1 nogil:
    """The engine's leaves are these of the batch's readings now, and their times are kept."""
    cdef int64_t stays = tail - head, before = self.engine.head, begin = self.engine.tail
    cdef const Slot* leaves = <const Slot*> values + head
    cdef int taken = False
    if self.p.width > 1:
        lift_alone(&self.p, t.totals, values + head, stays, self.center[0])
        leaves = t.totals
    if self.timed:
        copy_out(self.times, t.times, before, begin - before)
    try:
        if self.timed and not keep_only(self.times, head, times + head, stays):
            with gil:
                raise MemoryError(f"window: no memory for the times of readings {head} to {tail - 1}")
        taken = self.engine.adopt(leaves, head, stays)
    finally:
        if self.timed and not taken:
            keep_only(self.times, before, t.times, begin - before)  # for which there is room: they were there
    note_block(self, NULL if times == NULL else times + begin, tail - begin)
    return 0


cdef inline bint keep_only(Times* kept, int64_t index, const int64_t* times, int64_t n) noexcept nogil:
    """Keep these times, of the n leaves from `index` on, and no others. False: no memory."""
    clear_times(kept)
    return keep(kept, index, times, n) >= 0
