"""Where a window begins after each reading; see starts.pxd.

`begin` is the start before the first of these readings, which is reading `first` of the array; readings
begin … first − 1 are in the window then. A start never goes back and is at most the reading itself, which a window
always holds.
"""

cdef enum:
    STRETCHES = 8  # that are gone through side by side: none waits for another's start
    LINE = 8  # readings in a line of the processor's cache
    AHEAD = 3  # readings that are looked at beyond a start


cdef void starts_by_count(int64_t count, int64_t begin, int64_t first, int64_t n, int64_t* starts) noexcept nogil:
    """The window holds the last `count` readings."""
    cdef int64_t i, start = first + 1 - count
    for i in range(n):
        starts[i] = start + i if start + i > begin else begin


cdef void starts_by_time(
    const int64_t* times, int64_t span, int64_t begin, int64_t first, int64_t n, int64_t* starts
) noexcept nogil:
    """The window holds the readings with time > newest − span."""
    cdef int64_t start[STRETCHES]
    cdef int64_t part = length_of_stretch(n - AHEAD), i, k
    if part:
        for k in range(STRETCHES):
            start[k] = begin = first_after(times, times[first + k * part] - span, begin, first + k * part)
        for i in range(part):
            for k in range(STRETCHES):
                start[k] = next_start(times, times[first + k * part + i] - span, start[k])
                starts[k * part + i] = start[k]
        begin = start[STRETCHES - 1]
    for i in range(part * STRETCHES, n):  # nothing is looked at beyond a reading itself
        if begin + AHEAD <= first + i:
            begin = next_start(times, times[first + i] - span, begin)
        while times[begin] <= times[first + i] - span:
            begin += 1
        starts[i] = begin


cdef inline int64_t length_of_stretch(int64_t n) noexcept nogil:
    """An odd number of cache lines: a power of two apart, the stretches would drive each other out of the cache."""
    cdef int64_t lines = n // (STRETCHES * LINE)
    return ((lines - 1) | 1) * LINE if lines else 0


cdef inline int64_t next_start(const int64_t* times, int64_t cutoff, int64_t start) noexcept nogil:
    """The first reading from `start` on that is later than `cutoff`: four at a time, as a branch cannot be foreseen."""
    start += (
        (times[start] <= cutoff) + (times[start + 1] <= cutoff)
        + (times[start + 2] <= cutoff) + (times[start + 3] <= cutoff)
    )
    while times[start] <= cutoff:
        start += 1
    return start


cdef int64_t first_after(const int64_t* times, int64_t cutoff, int64_t low, int64_t high) noexcept nogil:
    cdef int64_t middle
    while low < high:
        middle = (low + high) >> 1
        if times[middle] <= cutoff:
            low = middle + 1
        else:
            high = middle
    return low
