"""Where a window by time begins after each reading, whatever the times: late ones, too. Part of batching.pyx."""

cdef enum:
    TOGETHER = 512  # readings
    LEAVING = 2 * TOGETHER  # leaves looked at for them
    LEAST_TOGETHER = 16
    PADS = 16  # times around, of which loops look at some


cdef bint heads_merged(
    Batching self, int64_t* heads, const int64_t* times, int64_t n, int64_t head, int64_t tail, int64_t newest
) noexcept nogil:
    """Of n readings from leaf `tail` on, merge what there is with what comes. False: it cannot be, and nothing is
    noted."""
    cdef int64_t around[LEAVING + TOGETHER + 2 * PADS]
    cdef int64_t* kept = around + PADS
    cdef int64_t m = min(tail - head, 2 * n), i
    if n < LEAST_TOGETHER:
        return False
    copy_out(&self.times, kept, head, m)
    times_raised(kept, m)
    memcpy(kept + m, times, n * sizeof(int64_t))
    if head + m < tail:
        kept[m] = max(kept[m], newest)  # of the leaves between nothing is known but that
    elif (kept[m - 1] if m else times[0]) < newest and times[0] < newest:  # it has been evicted by hand
        return False
    times_raised(kept + max(m - 1, 0), n + min(m, 1))
    for i in range(PADS):
        around[i], kept[m + n + i] = INT64_MIN, INT64_MAX
    starts_by_time(kept, self.value, 0, m, n, heads)
    if head + m < tail and heads[n - 1] >= m:
        return False
    self.newest_of_block = kept[m + n - 1]
    for i in range(n):
        if times[i] < kept[m + i]:
            self.latest_late = tail + i
        heads[i] += head
    return True


cdef void heads_stepwise(
    Batching self, int64_t* heads, const int64_t* times, int64_t n, int64_t head, int64_t tail, int64_t newest
) noexcept nogil:
    """The same one after the other; notes whether the window is ever empty."""
    cdef int64_t left = 0, some = 0, i = 0, cutoff, after  # of `some` leaves whose times stand in `kept`
    cdef int64_t kept[LEAVING + 1]
    while i < n:
        if left == some:
            head, left, some = head + some, 0, min(2 * n, tail + n - head - some)
            copy_out(&self.times, kept, head, some)
            times_raised(kept, some)
            kept[some] = INT64_MAX
        if times[i] < newest:
            self.latest_late = tail + i
        newest = max(newest, times[i])
        cutoff = newest - self.value if self.hop == 1 else self.cut_off_at(newest)
        while kept[left] <= cutoff:
            left += 1
        after = tail + i + 1 - head
        if left == some and some < after:
            continue
        left = min(left, after)
        self.empties = self.empties or left == after
        heads[i] = head + left
        i += 1
    self.newest_of_block = newest
