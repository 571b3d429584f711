"""What a long batch by time looks like from a reading on: a step apart, in order, or some late. Part of batching.pyx."""

cdef Ahead where_it_lies(Batching self, int64_t i, int64_t count) noexcept nogil:
    """From reading i on, what the ways for readings in order may take.

    A window leaves by the greatest time there was, and a leaf once those before it have left: a late reading is as good as one of the
    greatest time before it. So where some are late, those times stand for theirs.
    """
    cdef int64_t held = self.engine.tail - self.engine.head, n = until_even(self.given + i, count - i, held), most = max(4 * held, LEAST_RISEN), before
    cdef Ahead ahead
    ahead.times, ahead.n = self.given + i, n
    if self.hop > 1:
        return ahead
    if self.may_lie_in_order(ahead.times, i):
        ahead.n = ordered(ahead.times, n)
        if ahead.n == n or ahead.n >= most:
            return ahead
    before = min(i, held + EARLIER + MORE_BEFORE)
    n = min(n, most)
    if room_for_risen(self, before + n):
        times_risen(self.given + i - before, self.risen, before + n)
        self.risen_from = i - before
        ahead.times, ahead.n = self.risen + before, n
    return ahead


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
    cdef int64_t held = self.engine.tail - self.engine.head, step = times[0] - times[-1]
    if step <= 0 or not held or n < max(held, LEAST_EVENLY) or not times_even(<const uint64_t*> times - held, held + 1, step):
        return 0
    if held * step < self.value or (held - 1) * step >= self.value:  # it is not one that leaves
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


cdef int64_t even_on(const int64_t* times, int64_t n, int64_t step) noexcept nogil:
    """How many of n times are each `step` after the one before it, as the first is."""
    cdef int64_t i = 1
    while i < n and times_even(<const uint64_t*> times + i - 1, min(n - i, TIMES_AT_ONCE) + 1, step):
        i += TIMES_AT_ONCE
    i = min(i, n)
    while i < n and times[i] - times[i - 1] == step:
        i += 1
    return i


cdef int64_t until_even(const int64_t* times, int64_t n, int64_t held) noexcept nogil:
    """How many of n readings come before a window of about so many lies among times that are a step apart for long; all, where that does not come."""
    cdef int64_t most = max(2 * held, 2 * LEAST_EVENLY), i = held, step
    while i + most < n:
        step = times[i + 1] - times[i]
        if step > 0 and times[i + 2] - times[i + 1] == step and even_on(times + i + 1, most, step) == most:
            while i > 0 and times[i] - times[i - 1] == step:
                i -= 1
            return min(n, max(i + held + EARLIER, LOOKED_BACK))
        i += most
    return n
