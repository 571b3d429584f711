"""A long batch through a window of few readings, results from the readings themselves. Part of batching.pyx."""

cdef inline bint holds_few(Batching self, int64_t held, bint even) noexcept nogil:
    """Whether results are taken from the readings themselves; whatever the gaps, it may come to hold some more."""
    cdef int64_t most = self.engine.most_directly()
    return held <= most or (most and not even and held + (held >> 3) <= MOST_IN_BLOCKS)


cdef inline int64_t looked_back(int64_t held) noexcept nogil:
    """Readings among which a window that holds so many, or some more, begins anew."""
    return max(LOOKED_BACK, 3 * held)


cdef inline int64_t least_directly(int64_t held) noexcept nogil:
    """Readings of a batch, with fewer of which it may not."""
    return LEAST_DIRECTLY if held <= MOST_DIRECTLY else looked_back(held)


cdef int64_t take_directly(
    Batching self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
) except -1 nogil:
    """How many of n readings of a batch, which has brought all the window holds, have been taken: up to one with which the engine begins anew."""
    cdef int64_t held = self.engine.tail - self.engine.head
    cdef bint even = self.goes_steadily(times)
    if n < least_directly(held) or not held or not (even or self.may_lie_in_order(times, row)):
        return 0
    if out != NULL and even:
        totals_directly(self, values, n, held, out[0] + row)
    elif out != NULL:
        n = totals_by_time(self, values, times, n, held, row if times == self.given + row else row - self.risen_from, out[0] + row)
    elif not even:
        n = ordered(times, n)
    if n < least_directly(held):
        return 0
    return settle_anew(self, values, times, n, held, even, out, row, NULL if self.given == NULL else self.given + row - held)


cdef int64_t settle_anew(
    Batching self, const double* values, const int64_t* times, int64_t n, int64_t held, bint even, double** out, int64_t row, const int64_t* own
) except -1 nogil:
    """How many of n readings, whose results are known, have been taken: up to one with which the engine begins anew.

    The window holds about `held`; the times of those it held before them stand at `own`.
    """
    cdef int64_t most = min(n, looked_back(held)), back = min(n, held + (held >> 1) + LEAST_BEFORE), k  # as a rule it is among `back`
    self.room_for_blocks(most)
    k = anew_among(self, times, n, back, even)
    if k < 1 and back < most:
        back = most
        k = anew_among(self, times, n, back, even)
    if k < 1:
        return 0
    n += k - back
    return n if settle_directly(self, values, times, n, (<int64_t*> self.scratch)[k - 1], even, out, row, own) else 0


cdef int64_t anew_among(Batching self, const int64_t* times, int64_t n, int64_t back, bint even) noexcept nogil:
    """The last of the last `back` of n readings, counted from their first, with which the engine begins anew; less than 1: none. Their heads are in `scratch`."""
    cdef int64_t* heads = <int64_t*> self.scratch
    cdef int64_t tail = self.engine.tail
    if even:
        lanes_count(heads, back, self.engine.head + 1 + n - back)
    else:
        last_heads(times, self.value, n, back, tail, heads)
    return self.engine.anew(heads, tail + n - back, back)


cdef void totals_directly(Batching self, const double* values, int64_t n, int64_t size, double* out) noexcept nogil:
    if self.p.alone == SUM:
        directly_add(values, n, size, out)
    elif self.p.alone == MIN:
        directly_least(values, n, size, out)
    else:
        directly_greatest(values, n, size, out)


cdef int64_t totals_by_time(
    Batching self, const double* values, const int64_t* times, int64_t n, int64_t held, int64_t before, double* out
) noexcept nogil:
    """Of how many readings; `before`: readings of the batch before them."""
    if self.p.alone == SUM:
        return add_by_time(values, times, self.value, held, before, n, out)
    if self.p.alone == MIN:
        return least_by_time(values, times, self.value, held, before, n, out)
    return greatest_by_time(values, times, self.value, held, before, n, out)


cdef void last_heads(const int64_t* times, int64_t span, int64_t n, int64_t back, int64_t tail, int64_t* heads) noexcept nogil:
    """Where the window begins after the last `back` of n readings, of which leaf `tail` is the first; all it holds are in order before them."""
    cdef int64_t i, first = n - back
    while times[first - 1] > times[n - back] - span:
        first -= 1
    for i in range(back):
        while times[first] <= times[n - back + i] - span:
            first += 1
        heads[i] = tail + first


cdef bint settle_directly(
    Batching self, const double* values, const int64_t* times, int64_t n, int64_t head, bint even, double** out, int64_t row, const int64_t* own
) except -1 nogil:
    """n readings are in, of which and of those before leaves from `head` on are left. False: no memory, and nothing has changed."""
    cdef const int64_t* given = self.given + row
    cdef int64_t before = self.engine.head, held = self.engine.tail - before, stays = self.engine.tail + n - head
    cdef int taken = False
    if self.timed and not (
        self.move_times(head, times[n - stays], stays) if even else self.hold_times(head, given + n - stays, stays)
    ):
        self.hold_times(before, own, held)  # for which there is room: they were there
        return False
    try:
        taken = self.engine.adopt(<const Slot*> values + n - stays, head, stays)
    finally:
        if self.timed and not taken:
            self.hold_times(before, own, held)
    if self.timed:
        self.newest_of_block = times[n - 1]
        note_late(self, times, given, n - stays, n)
    if out == NULL or self.as_is:
        self.took_block(times, n, n)
    else:
        self.lower_rest(times, n, out, row, -1 if even else before)
    return True
