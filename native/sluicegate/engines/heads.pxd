"""Where a window by time begins after each reading of a block, found without a branch that depends on the times.

All times are offsets from one of them, in 32 bits. `kept` are those of the leaves from the window's head on, one after the other, in their
order in time, with AROUND before them that have left and BEHIND after them that never do. `cuts`, a reading each, do not go back either:
what is not after cuts[i] has left after reading i. Where about one leaves for each that comes, all heads of a stretch are guessed and put
right at once; else it is a merge of the two.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from sluicegate.memory.times cimport BLOCK, OFFSETS, Stretch, Times, copy_offsets, odds_of, run_of_offsets, stretch_of, time_at

cdef extern from "merging.h" nogil:
    int SEEN "SLUICEGATE_SEEN"
    int64_t merge "sluicegate_merge_offsets"(
        const int32_t* kept, int64_t head, int64_t end, const int32_t* comes, int32_t less, int64_t* heads, int64_t n)

cdef extern from "../memory/times.h" nogil:
    int NEAR "SLUICEGATE_NEAR"
    int AROUND "SLUICEGATE_AROUND"
    int64_t times_along_close(const int32_t* kept, const int32_t* comes, uint32_t less, int64_t head, int64_t* heads, int n)
    int64_t times_along_around(const int32_t* kept, const int32_t* comes, uint32_t less, int64_t head, int64_t* heads, int n)
    bint times_go_back(const int32_t* offsets, int n)

cdef enum:
    BEHIND = 40  # more than NEAR + AROUND and than SEEN
    FAR = 128  # readings at most whose heads are guessed together
    WIDE = 512  # where times lie together
    MERGED = 1024  # that are merged before heads are guessed again
    TOGETHER = 512  # readings, and leaves, that lie together: fewer are sooner copied
    BEYOND = 8  # leaves looked at from a head on for n readings are n and so many: those before a guess and AROUND, and one; SEEN

ctypedef struct Guesses:  # of a block
    int64_t width  # readings that are guessed together
    int64_t missed  # times that it failed
    int64_t waits  # readings that are merged before it is tried again


cdef inline Guesses no_guesses() noexcept nogil:
    cdef Guesses g
    g.width, g.missed, g.waits = WIDE, 0, 0
    return g


cdef inline bint in_order(const int64_t* times, int64_t n) noexcept nogil:
    """Whether none of n times is before the one before it."""
    cdef uint64_t late = 0
    cdef int64_t i
    for i in range(n - 1):
        late |= <uint64_t> times[i + 1] - <uint64_t> times[i]
    return not late >> 63


cdef inline int64_t heads_together(
    const Times* t, int64_t span, int64_t index, int64_t end, int64_t n, int64_t head, int64_t* heads, int64_t* jump, Guesses* g
) noexcept nogil:
    """heads[i] after up to n readings in order whose times are those of the leaves from `index` on, while these and those from `head` on each lie together:
    how many it was, 0 where they do not lie so for long. −1: not in order. `jump` becomes no less than the most that leave at once."""
    cdef int64_t left = run_of_offsets(t, head, min(n + (n >> 3) + BEYOND, end - head)), least = min(n, TOGETHER)
    n = run_of_offsets(t, index, n)
    if n < least or left < least + BEYOND:
        return 0
    return heads_of(
        offset_at(t, head), left, offset_at(t, index), stretch_of(t, head).first + <uint64_t> span - stretch_of(t, index).first,
        n, head & (BLOCK - 1) >= AROUND, head, heads, jump, g,
    )


cdef inline int64_t heads_of(
    const int32_t* kept, int64_t left, const int32_t* comes, uint64_t less, int64_t n, bint before, int64_t head, int64_t* heads,
    int64_t* jump, Guesses* g,
) noexcept nogil:
    """The same: comes[i] less `less` is a reading's cut, `left` leaves are there, and AROUND `before` them. Where a guess fails, merged."""
    cdef int64_t i = 0, k = 0, m = 0, most, some
    while i < n and is_offset(<uint64_t> <int64_t> comes[i] - less):
        if i and comes[i] < comes[i - 1]:
            return -1
        most, some = 0, NEAR
        if before or k >= AROUND:  # a guess looks at leaves before the head: a few readings on there are such
            if g.waits <= 0:
                most = guess_offsets(kept + k, comes + i, less, left - k, n - i, g.width, head + k, heads + i, &m)
                if most == 0 and m > 0 and g.width == WIDE:
                    g.width = FAR
                    continue
                if most == 0 and m > 0:  # else there were too few to guess at
                    g.missed += 1
                    g.waits = MERGED * g.missed
            some = max(g.waits, NEAR)
        if most == 0:
            most = merge_offsets(kept + k, comes + i, less, left - k, min(n - i, some), head + k, heads + i, &m)
            g.waits -= m
        if most < 0:
            return -1
        if m == 0:
            break
        jump[0] = max(jump[0], max(most, heads[i] - head - k))
        i += m
        k = heads[i - 1] - head
    return i


cdef inline int64_t guess_offsets(
    const int32_t* kept, const int32_t* comes, uint64_t less, int64_t left, int64_t n, int64_t width, int64_t head, int64_t* heads, int64_t* m
) noexcept nogil:
    """Up to `width` of n readings, m, as guessed from `left` leaves, with AROUND before them; 0: not so, where m is more than 0."""
    cdef int32_t cut = <int32_t> <int64_t> (<uint64_t> <int64_t> comes[0] - less)
    cdef int64_t k = (kept[0] <= cut) + (kept[1] <= cut) + (kept[2] <= cut) + (kept[3] <= cut)
    m[0] = min(min(n, left - BEYOND - k), width) & -NEAR
    m[0] = max(m[0], 0)
    if m[0] == 0 or not (kept[k - 1] <= cut and kept[k - 2] <= cut and kept[k - 3] <= cut):
        return 0
    if not is_offset(<uint64_t> <int64_t> comes[m[0] - 1] - less):
        return 0
    if width == WIDE:
        return times_along_close(kept + k, comes, <uint32_t> less, head + k, heads, <int> m[0])
    return times_along_around(kept + k, comes, <uint32_t> less, head + k, heads, <int> m[0])


cdef inline int64_t merge_offsets(
    const int32_t* kept, const int32_t* comes, uint64_t less, int64_t left, int64_t n, int64_t head, int64_t* heads, int64_t* m
) noexcept nogil:
    """Up to n readings, m, whatever leaves of `left` − SEEN leaves. −1: not in order."""
    cdef int64_t end = left - SEEN, j
    m[0] = 0
    if n > NEAR:
        n &= -NEAR
    if end < 0:
        return 0
    while n > 0 and (not is_offset(<uint64_t> <int64_t> comes[n - 1] - less + 1) or kept[end] <= <int32_t> <int64_t> (<uint64_t> <int64_t> comes[n - 1] - less)):
        n = (n >> 1) & (-NEAR if n > NEAR else -1)
    if n == 0:
        return 0
    if n >= NEAR and times_go_back(comes, <int> n):
        return -1
    for j in range(1, n if n < NEAR else 1):
        if comes[j] < comes[j - 1]:
            return -1
    m[0] = n
    return merge(kept - head, head, head + end, comes, <int32_t> <int64_t> less, heads, n)


cdef inline const int32_t* offset_at(const Times* t, int64_t index) noexcept nogil:
    return <const int32_t*> odds_of(t, stretch_of(t, index)) + (index & (BLOCK - 1))


cdef inline bint is_offset(uint64_t offset) noexcept nogil:
    return not (offset + (<uint64_t> 1 << 31)) >> 32
