"""Where a window by time begins after each reading of a block, found without a branch that depends on the times.

Where one leaves for each that comes, two comparisons each say so. Else `kept` are the times of the leaves from the window's head on, one after the other, in their order in time, with INT64_MAX behind;
`cuts` are not going back either: after reading i the leaves up to time `cuts[i]` have left. Times are within ±2^61.
"""

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    LANES = 4  # stretches of a block walked side by side: none waits for another's loads
    AHEAD = 4  # leaves looked at together; more seldom leave at one reading
    BEHIND = AHEAD + 1  # times that never leave, behind the last one kept


cdef inline bint in_order(const int64_t* times, int64_t n) noexcept nogil:
    """Whether none of n times is before the one before it."""
    cdef uint64_t late = 0
    cdef int64_t i
    for i in range(n - 1):
        late |= <uint64_t> times[i + 1] - <uint64_t> times[i]
    return not late >> 63


cdef inline bint leave(const int64_t* kept, const int64_t* times, int64_t span, int64_t n) noexcept nogil:
    """Whether kept[i] leaves by the time times[i], each of n; whatever order they are in."""
    cdef uint64_t stays = 0
    cdef int64_t i
    for i in range(n):
        stays |= <uint64_t> times[i] - <uint64_t> span - <uint64_t> kept[i]
    return not stays >> 63


cdef inline bint stay(const int64_t* kept, const int64_t* times, int64_t span, int64_t n) noexcept nogil:
    """Whether kept[i] has not left by the time times[i], each of n."""
    cdef uint64_t leaves = 0
    cdef int64_t i
    for i in range(n):
        leaves |= <uint64_t> kept[i] - 1 - (<uint64_t> times[i] - <uint64_t> span)
    return not leaves >> 63


cdef inline int64_t first_kept_after(const int64_t* kept, int64_t first, int64_t end, int64_t cut) noexcept nogil:
    """Of kept[first … end − 1], which are in order, the first after `cut`; `end` where there is none. No branch on times."""
    cdef int64_t n = end - first, half
    while n > 0:
        half = (n + 1) >> 1
        first += half & -<int64_t> (kept[first + half - 1] <= cut)
        n -= half
    return first


cdef inline int64_t step_on(const int64_t* kept, int64_t k, int64_t cut) noexcept nogil:
    """The first from k on that stays."""
    k += (kept[k] <= cut) + (kept[k + 1] <= cut) + (kept[k + 2] <= cut) + (kept[k + 3] <= cut)
    while kept[k] <= cut:
        k += 1
    return k


cdef inline int64_t walk(
    const int64_t* kept, int64_t end, const int64_t* cuts, int64_t n, int64_t head, int64_t* heads
) noexcept nogil:
    """heads[i] = `head` and how many of kept[0 … end − 1] leave until after reading i. Gives no less than the most that leave at once."""
    cdef int64_t i, part = n // LANES, jump
    cdef int64_t a = 0, b, c, d
    b = first_kept_after(kept, a, end, cuts[part - 1]) if part else 0
    c = first_kept_after(kept, b, end, cuts[2 * part - 1]) if part else 0
    d = first_kept_after(kept, c, end, cuts[3 * part - 1]) if part else 0
    for i in range(part):
        a = step_on(kept, a, cuts[i])
        b = step_on(kept, b, cuts[part + i])
        c = step_on(kept, c, cuts[2 * part + i])
        d = step_on(kept, d, cuts[3 * part + i])
        heads[i], heads[part + i], heads[2 * part + i], heads[3 * part + i] = head + a, head + b, head + c, head + d
    for i in range(LANES * part, n):
        d = step_on(kept, d, cuts[i])
        heads[i] = head + d
    jump = heads[0] - head
    for i in range(n - 1):
        jump |= heads[i + 1] - heads[i]
    return jump
