"""Where a window by time begins after each reading of a block. Part of batching.pyx.

Times are in order here: a batch ends where one comes late.
"""

cdef enum:
    TOGETHER = 512  # readings
    LEAVING = TOGETHER + TOGETHER // 2  # leaves looked at for them
    LEAST_TOGETHER = 16


cdef bint heads_merged(
    Batching self, int64_t* heads, const int64_t* times, int64_t n, int64_t head, int64_t tail
) noexcept nogil:
    """Of n readings from leaf `tail` on, in one array with the oldest leaves. False: of these all leave, and more."""
    cdef int64_t kept[LEAVING + TOGETHER]
    cdef int64_t m = min(tail - head, n + n // 2)
    if n < LEAST_TOGETHER:
        return False
    copy_out(self.times, kept, head, m)
    memcpy(kept + m, times, n * sizeof(int64_t))
    starts_by_time(kept - head, self.value, head, head + m, n, heads)
    return head + m == tail or heads[n - 1] < head + m


cdef void heads_stepwise(
    Batching self, int64_t* heads, const int64_t* times, int64_t n, int64_t head, int64_t tail
) noexcept nogil:
    """The same one after the other; notes whether the window is ever empty."""
    cdef int64_t left = 0, some = 0, i = 0, cutoff, after  # of `some` leaves whose times stand in `kept`
    cdef int64_t kept[LEAVING + 1]
    while i < n:
        if left == some:
            head, left, some = head + some, 0, min(<int64_t> LEAVING, tail + n - head - some)
            copy_out(self.times, kept, head, some)
            kept[some] = INT64_MAX
        cutoff = times[i] - self.value if self.hop == 1 else self.cut_off_at(times[i])
        while kept[left] <= cutoff:
            left += 1
        after = tail + i + 1 - head
        if left == some and some < after:
            continue
        left = min(left, after)
        self.empties = self.empties or left == after
        heads[i] = head + left
        i += 1
