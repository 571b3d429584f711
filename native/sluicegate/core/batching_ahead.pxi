"""What a long batch by time looks like from a reading on: a step apart, in order, or some late. Part of batching.pyx."""

cdef void look_ahead(Batching self, Ahead* ahead, int64_t i, int64_t count, bint few) noexcept nogil:
    """From reading i on, what the ways for readings in order may take.

    Where the window holds `few` no reading is looked at twice for it; else the way for them looks itself whether one is late.

    A window leaves by the greatest time there was, and a leaf once those before it have left: a late reading is as good as one of the
    greatest time before it. So where some are late, those times stand for theirs.
    """
    cdef int64_t held = self.engine.tail - self.engine.head, most = max(4 * held, LEAST_RISEN), n = count - i, before
    cdef int64_t seen = count if few else min(count, i + most)
    if i >= ahead.searched_to:
        find_even(ahead, self.given, i, count, held)
    if ahead.even_at < count and ahead.even_at + held + EARLIER > i:
        n = min(n, max(ahead.even_at + held + EARLIER - i, LOOKED_BACK))
    if i >= ahead.ordered_to or ahead.looked_to < seen:
        ahead.ordered_to, ahead.looked_to = i + ordered(self.given + i, seen - i), seen
    ahead.times, ahead.n = self.given + i, n if ahead.ordered_to >= seen else min(n, ahead.ordered_to - i)
    if self.may_lie_in_order(ahead.times, i) and ahead.n >= min(n, most):
        return
    before = min(i, held + EARLIER + MORE_BEFORE)
    n = min(n, most)
    if room_for_risen(self, before + n):
        times_risen(self.given + i - before, self.risen, before + n)
        self.risen_from = i - before
        ahead.times, ahead.n = self.risen + before, n


cdef int64_t until_it_lies(Batching self, const int64_t* times, int64_t i, int64_t count, int64_t held) noexcept nogil:
    """Readings from i on to be taken at once before the window lies in the batch: all that come before one leaves, else as many as may do."""
    cdef int64_t grows = self.value - held
    if self.timed:
        grows = before_it_leaves(self, time_at(&self.times, self.engine.head) if held else times[i], times + i, count - i)
    if grows >= BLOCK_BEFORE:
        return grows
    return min(max(held + EARLIER - i, LEAST_BEFORE), BLOCK_BEFORE if held <= self.engine.most_directly() else MOST_BLOCK)


cdef int64_t before_it_leaves(Batching self, int64_t time, const int64_t* times, int64_t n) noexcept nogil:
    """With how many of n readings, where they are in order, a reading of that time stays."""
    cdef int64_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) >> 1
        if times[middle] - self.value < time:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint room_for_risen(Batching self, int64_t n) noexcept nogil:
    """False: no memory; then late readings go in blocks."""
    if n > self.most_risen:
        free(self.risen)
        self.risen = <int64_t*> malloc(n * sizeof(int64_t))
        self.most_risen = n if self.risen != NULL else 0
    return self.risen != NULL


cdef void note_late(Batching self, const int64_t* times, const int64_t* given, int64_t first, int64_t n) noexcept nogil:
    """Of n readings from leaf `tail` on, those from `first` on are left: note the last late one."""
    cdef int64_t i = n - 1
    if times == given:
        return
    while i >= first and times[i] == given[i]:
        i -= 1
    if i >= first:
        self.latest_late = self.engine.tail - n + i


# times a step apart

cdef int64_t take_evenly(Batching self, const double* values, int64_t n, double** out, int64_t row) except -1 nogil:
    """How many of n readings were taken at once as their times, and those the window holds, are a step apart for long."""
    cdef const int64_t* times = self.given + row
    cdef int64_t held = self.engine.tail - self.engine.head, step = times[0] - (times - 1)[0]
    if step <= 0 or not held or n < max(held, LEAST_EVENLY) or not goes_evenly(self, times, held, step):
        return 0
    n = even_on(times, n, step)
    if n < max(held, LEAST_EVENLY):
        return 0
    self.step = step
    try:
        if not self.goes_steadily(times):
            n = 0
        elif holds_few(self, held, True):
            n = take_directly(self, values, times, n, out, row)
        elif not self.take_steadily(values, times, n, out, row):
            n = 0
    finally:
        self.step = -1
    return n


cdef inline bint goes_evenly(Batching self, const int64_t* times, int64_t held, int64_t step) noexcept nogil:
    """Whether what the window holds, which lies before these times, and the first of them are so far apart each, and one leaves for each."""
    return times_even(<const uint64_t*> times - held, held + 1, step) and held * step >= self.value > (held - 1) * step


cdef int64_t even_on(const int64_t* times, int64_t n, int64_t step) noexcept nogil:
    """How many of n times are each `step` after the one before it, as the first is."""
    cdef int64_t i = 1
    while i < n and times_even(<const uint64_t*> times + i - 1, min(n - i, TIMES_AT_ONCE) + 1, step):
        i += TIMES_AT_ONCE
    i = min(i, n)
    while i < n and times[i] - times[i - 1] == step:
        i += 1
    return i


cdef void find_even(Ahead* ahead, const int64_t* times, int64_t i, int64_t count, int64_t held) noexcept nogil:
    """The first of times that are a step apart for long, seen from a window of about so many before reading i."""
    cdef int64_t most = max(2 * held, 2 * LEAST_EVENLY), begin = i, step
    ahead.even_at = ahead.searched_to = count
    i += held
    while i + most < count:
        step = times[i + 1] - times[i]
        if step > 0 and times[i + 2] - times[i + 1] == step and even_on(times + i + 1, most, step) == most:
            ahead.searched_to = i + most
            while i > begin and times[i] - times[i - 1] == step:
                i -= 1
            ahead.even_at = i
            return
        i += most
