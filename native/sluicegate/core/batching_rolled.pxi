"""A batch through the rolling kernels: window and batch as one flat array, tile by tile. Part of batching.pyx."""

cdef enum:
    LEAST_ROLLED = 128  # readings: of fewer the engine takes as long
    MOST_ROLLED = 8192  # readings of a window: through more the engine's blocks are as quick
    MOST_OF_MOMENTS = 256  # the same of moments
    LEAST_TILE = 4096  # readings at once
    WINDOWS_OF_TILE = 4  # and at least so many windows, since the engine's state is made anew after each tile

ctypedef struct Tile:  # by leaf: what the window holds, then what comes
    int64_t n  # readings that come
    int64_t head  # before them
    int64_t tail
    double* x  # of moments: less the center
    int64_t* times  # each as late as any before it; by time only
    int64_t* own  # what the window holds, as it came; by time only
    double* front
    int64_t* starts  # by reading
    Slot* totals  # and, after these are lowered, the leaves that stay


cdef int64_t ingest_rolled(
    Batching self, const double* values, const int64_t* times, int64_t i, int64_t count, double** out
) except -1 nogil:
    """How many readings of a batch from reading i on were taken.

    0: the window is not much shorter, and nothing has changed.
    """
    cdef int64_t held = self.engine.tail - self.engine.head
    cdef int64_t n = min(count - i, max(WINDOWS_OF_TILE * held, LEAST_TILE))
    cdef int64_t w = self.p.width
    cdef Tile t
    cdef Slot* room
    cdef bint moments = kernel_of(&self.p) == MERGE
    if n < LEAST_ROLLED or held > (MOST_OF_MOMENTS if moments else MOST_ROLLED) or self.hop > 1:
        return 0
    if self.p.dimensions > 1 or not (moments or self.lies_as_given()) or not self.engine.rolls():
        return 0
    if not outlasts(self, NULL if times == NULL else times + i, n):
        return 0
    room = <Slot*> lend(ROOM_OF_ROLLING, ((3 + 2 * w) * n + (3 + w) * held + w + 2 * PADDING) * sizeof(Slot))
    if room == NULL:
        return 0
    try:
        lay_tile(self, &t, room, values + i, NULL if times == NULL else times + i, n)
        if not t.n:
            return 0
        if self.timed:
            starts_by_time(t.times, self.value, t.head, t.tail, n, t.starts)
        else:
            starts_by_count(self.value, t.head, t.tail, n, t.starts)
        n = self.engine.anew(t.starts, t.tail, n)
        if n < 1 or t.starts[n - 1] < t.tail:
            return 0
        if out != NULL:
            roll(
                kernel_of(&self.p), t.x, t.starts, t.tail, n, t.front,
                out[0] + i if self.as_is else <double*> t.totals,
            )
            lower_tile(self, &t, n, out, i)
        settle_tile(self, &t, values + i, NULL if times == NULL else times + i, n)
    finally:
        put_back(ROOM_OF_ROLLING, room)
    return n


cdef bint outlasts(Batching self, const int64_t* times, int64_t n) noexcept nogil:
    """Whether n readings go on for about two windows or more."""
    if not self.timed:
        return n >= 2 * self.value
    return times[n - 1] - self.value >= times[n >> 1] and times[n >> 1] - self.value >= times[0]


cdef void lay_tile(
    Batching self, Tile* t, Slot* room, const double* values, const int64_t* times, int64_t n
) noexcept nogil:
    """The window and n readings as one array; t.n is 0 where what leaves does not follow from their times alone."""
    cdef int64_t head = self.engine.head, held = self.engine.tail - head, all = held + n, i
    cdef int64_t w = self.p.width
    cdef int64_t* when = <int64_t*> (room + all + w * (all + 1))
    t.n, t.head, t.tail = n, head, head + held
    t.x, t.front = <double*> room - head, <double*> (room + all) - w * head
    t.times, t.own = when - head, when + all + PADDING - head
    t.starts = when + all + PADDING + held
    t.totals = <Slot*> (t.starts + n)
    self.engine.copy_leaves(room + all if w > 1 else room)
    for i in range(held if w > 1 else 0):
        room[i] = room[all + w * i + 1]
    if w > 1:
        for i in range(n):
            room[held + i].f = values[i] - self.center[0]
    else:
        memcpy(room + held, values, n * sizeof(double))
    if not self.timed:
        return
    copy_out(&self.times, t.own + head, head, held)
    memcpy(when, t.own + head, held * sizeof(int64_t))
    memcpy(when + held, times, n * sizeof(int64_t))
    times_raised(when, all)
    for i in range(PADDING):
        when[all + i] = INT64_MAX
    if times[0] < self.newest and (when[held - 1] if held else times[0]) < self.newest:
        t.n = 0  # the latest was evicted by hand: it says what leaves, but holds nothing back


cdef void lower_tile(Batching self, const Tile* t, int64_t n, double** out, int64_t row) noexcept nogil:
    """The answers after n readings."""
    cdef Block block
    cdef int k
    block.n, block.heads = n, t.starts
    block.totals = <Slot*> (out[0] + row) if self.as_is else t.totals
    for k in range(self.answers):
        lower_rows(&self.outputs[k], &block, out[k] + row, self.accepted + 1, self.p.width)


cdef int settle_tile(
    Batching self, const Tile* t, const double* values, const int64_t* times, int64_t n
) except -1 nogil:
    """n readings are in: the engine's state is that of the leaves which are left, all of them among these readings."""
    cdef int64_t head = t.starts[n - 1], tail = t.tail + n, stays = tail - head, last
    cdef const Slot* leaves = <const Slot*> values + n - stays
    cdef int taken = False
    if self.p.width > 1:
        lift_alone(&self.p, t.totals, values + n - stays, stays, self.center[0])
        leaves = t.totals
    if self.timed and not keep_only(&self.times, head, times + n - stays, stays, self.step):
        keep_only(&self.times, t.head, t.own + t.head, t.tail - t.head, -1)  # for which there is room: they were there
        with gil:
            raise MemoryError(f"window: no memory for the times of readings {head} to {tail - 1}")
    try:
        taken = self.engine.adopt(leaves, head, stays)
    finally:
        if self.timed and not taken:
            keep_only(&self.times, t.head, t.own + t.head, t.tail - t.head, -1)
    if self.timed:
        self.newest_of_block, last = t.times[tail - 1], tail - 1
        while last >= head and t.times[last] == (times - t.tail)[last]:
            last -= 1
        self.latest_late = last if last >= head else self.latest_late
    self.note_block(times, n, n)
    return 0


cdef inline bint keep_only(Times* kept, int64_t index, const int64_t* times, int64_t n, int64_t step) noexcept nogil:
    """Keep these times, of the n leaves from `index` on, and no others. False: no memory."""
    clear_times(kept)
    return keep_steps(kept, index, times, n, step)


cdef inline bint keep_steps(Times* kept, int64_t index, const int64_t* times, int64_t n, int64_t step) noexcept nogil:
    """Keep n times, `step` apart (−1: not known), beside those there are. False: no memory."""
    return (keep(kept, index, times, n) if step < 0 else keep_even(kept, index, times[0], step, n)) >= 0
