"""The first readings of a long batch by time, with what the window holds laid before them, as if the batch had brought that, too. Part of batching.pyx."""

cdef enum:
    MOST_COPIED = 2048  # readings of a batch that is copied as a whole: so it goes in one piece

ctypedef struct Carried:  # readings that are copied: EARLIER that have left, those the window holds, those that come
    double* room
    const double* values  # of the first that comes
    const int64_t* times


cdef int64_t take_carried(
    Batching self, const double* values, const int64_t* times, int64_t count, double** out, Ahead* ahead
) except -1 nogil:
    """How many of a batch's readings were taken directly (batching_directly.pxi), the first among them, where the window holds few.

    Of a long batch only the first are copied, up to where the window lies in the batch.
    """
    cdef int64_t held = self.engine.tail - self.engine.head, about = held_about(self, times, count), first, n = count
    cdef Carried c
    if about < 0:
        return 0
    first = before_it_leaves(self, times[EARLIER - 1], times, count) + 1
    if self.step < 0 and first < count:
        find_even(ahead, times, first, count, about)
        n = min(n, max(ahead.even_at + about + EARLIER, first))
    if n < max(first, BLOCK_BEFORE) + least_directly(about):  # shorter ones give sums to the bit
        return 0
    if out != NULL and not self.as_is:  # answers look at the times of all that leave
        n = min(n, first + looked_back(about))
    if n <= max(first + looked_back(about), MOST_COPIED):
        first = n
    if not carry(self, &c, values, times, first, held):
        return 0
    try:
        return take_with_carried(self, &c, first, values, times, n, about, out)
    finally:
        self.given = times
        free(c.room)


cdef int64_t held_about(Batching self, const int64_t* times, int64_t count) noexcept nogil:
    """About how many readings the window comes to hold, where a batch goes so; −1: it does not."""
    cdef int64_t head = self.engine.head, held = self.engine.tail - head, about
    if not self.timed or self.hop > 1 or self.p.dimensions > 1 or not self.lies_as_given() or self.engine.most_directly() == 0:
        return -1
    if count < LEAST_DIRECTLY or times[0] < self.newest or self.latest_late >= head:
        return -1
    about = before_it_leaves(self, times[0], times, count)
    if held:
        about = max(about, held + before_it_leaves(self, time_at(&self.times, head), times, count))
    return about if holds_few(self, about, self.step > 0) else -1


cdef bint carry(Batching self, Carried* c, const double* values, const int64_t* times, int64_t n, int64_t held) noexcept nogil:
    """False: no memory; then they go in blocks."""
    cdef int64_t all = EARLIER + held + n, i
    cdef double* room = <double*> malloc(all * (sizeof(double) + sizeof(int64_t)))
    cdef int64_t* when = <int64_t*> (room + all)
    if room == NULL:
        return False
    for i in range(EARLIER):
        room[i], when[i] = 0.0, (self.newest if held else times[0]) - self.value
    self.engine.copy_leaves(<Slot*> room + EARLIER)
    copy_out(&self.times, when + EARLIER, self.engine.head, held)
    memcpy(room + EARLIER + held, values, n * sizeof(double))
    memcpy(when + EARLIER + held, times, n * sizeof(int64_t))
    c.room, c.values, c.times = room, room + EARLIER + held, when + EARLIER + held
    return True


cdef int64_t take_with_carried(
    Batching self, const Carried* c, int64_t first, const double* values, const int64_t* times, int64_t n, int64_t about, double** out
) except -1 nogil:
    """The `first` of n readings from where they were copied to, the others from where they lie."""
    cdef int64_t held = self.engine.tail - self.engine.head, some
    cdef bint even = self.step > 0 and held > 0 and goes_evenly(self, c.times, held, self.step)
    some = first if even else first_by_time(self, c, first, held, out)
    if even and out != NULL:
        totals_directly(self, c.values, first, held, out[0])
        totals_directly(self, values + first, n - first, held, out[0] + first)
    if some < first or first == n:
        self.given = c.times
        return settle_anew(self, c.values, c.times, some, about, even, out, 0, c.times - held) if some >= least_directly(about) else 0
    if not even:
        n = first + rest_by_time(self, values, times, first, n - first, out)
    return settle_anew(self, values, times, n, about, even, out, 0, c.times - held) if n > first + looked_back(about) else 0


cdef int64_t first_by_time(Batching self, const Carried* c, int64_t n, int64_t held, double** out) noexcept nogil:
    """Results of up to n readings that were copied; how many, where some are late."""
    cdef int64_t grows
    n = ordered(c.times, n)
    if out == NULL or n == 0:
        return n
    grows = before_it_leaves(self, c.times[-held], c.times, n)
    totals_growing(self, c.values, held, grows, out[0])
    return grows + totals_by_time(
        self, c.values + grows, c.times + grows, n - grows, held + grows, EARLIER + held + grows, out[0] + grows)


cdef int64_t rest_by_time(Batching self, const double* values, const int64_t* times, int64_t first, int64_t n, double** out) noexcept nogil:
    """The same of n readings from `first` on, before which the window lies in the batch."""
    cdef int64_t head = EARLIER
    if out == NULL:
        return ordered(times + first, n)
    while times[head] <= times[first - 1] - self.value:
        head += 1
    if self.step > 0:
        totals_directly(self, values + first, n, first - head, out[0] + first)
        return n
    return totals_by_time(self, values + first, times + first, n, first - head, first, out[0] + first)


cdef void totals_growing(Batching self, const double* values, int64_t held, int64_t n, double* out) noexcept nogil:
    if self.p.alone == SUM:
        growing_add(values, held, n, out)
    elif self.p.alone == MIN:
        growing_least(values, held, n, out)
    else:
        growing_greatest(values, held, n, out)
