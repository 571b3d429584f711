"""Where a window by time begins after each reading of a block, found without a branch that depends on the times.

All times are offsets from one of them, in 32 bits. `kept` are those of the leaves from the window's head on, one after the other, in their
order in time, with AROUND before them that have left and BEHIND after them that never do. `cuts`, a reading each, do not go back either:
what is not after cuts[i] has left after reading i. Where about one leaves for each that comes, all heads of a stretch are guessed and put
right at once; else it is a merge of the two.
"""

from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint32_t, uint64_t

from sluicegate.engines.times cimport BLOCK, OFFSETS, Stretch, Times, copy_offsets, odds_of, run_of_offsets, stretch_of, time_at

cdef extern from "times.h" nogil:
    int NEAR "SLUICEGATE_NEAR"
    int AROUND "SLUICEGATE_AROUND"
    bint times_near(const int32_t* kept, const int32_t* cuts, int64_t head, int64_t* heads)
    int64_t times_guess(const int32_t* kept, const uint64_t* times, uint64_t first, int64_t head, int64_t* heads, int n)
    int64_t times_along_close(const int32_t* kept, const int32_t* comes, uint32_t less, int64_t head, int64_t* heads, int n)
    int64_t times_along_around(const int32_t* kept, const int32_t* comes, uint32_t less, int64_t head, int64_t* heads, int n)
    int64_t times_jump(const int64_t* heads, int64_t n)

cdef enum:
    AROUND_AT_MOST = 3
    LANES = 4  # stretches of a block walked side by side: none waits for another's loads
    AHEAD = 4  # leaves looked at together; more seldom leave at one reading
    BEHIND = 40  # more than NEAR + AROUND and than AHEAD
    FAR = 128  # readings at most whose heads are guessed together
    WIDE = 512  # where times lie together
    BEYOND = 8  # leaves looked at from a head on for n readings are n and so many: AHEAD and AROUND, and one
    MOST_WRONG = 4  # stretches of a block that were not as guessed: the rest is merged


cdef inline bint in_order(const int64_t* times, int64_t n) noexcept nogil:
    """Whether none of n times is before the one before it."""
    cdef uint64_t late = 0
    cdef int64_t i
    for i in range(n - 1):
        late |= <uint64_t> times[i + 1] - <uint64_t> times[i]
    return not late >> 63


cdef inline int64_t first_kept_after(const int32_t* kept, int64_t first, int64_t end, int32_t cut) noexcept nogil:
    """Of kept[first … end − 1], which are in order, the first after `cut`; `end` where there is none. No branch on times."""
    cdef int64_t n = end - first, half
    while n > 0:
        half = (n + 1) >> 1
        first += half & -<int64_t> (kept[first + half - 1] <= cut)
        n -= half
    return first


cdef inline int64_t step_on(const int32_t* kept, int64_t k, int32_t cut) noexcept nogil:
    """The first from k on that stays."""
    k += (kept[k] <= cut) + (kept[k + 1] <= cut) + (kept[k + 2] <= cut) + (kept[k + 3] <= cut)
    while kept[k] <= cut:
        k += 1
    return k


cdef inline int64_t follow(
    const int32_t* kept, int64_t end, const int32_t* cuts, int64_t n, int64_t head, int64_t* heads
) noexcept nogil:
    """heads[i] = `head` and how many of kept[0 … end − 1] leave until after reading i. Gives no less than the most that leave at once."""
    cdef int64_t i = 0, k = 0
    cdef int wrong = 0
    while i + NEAR <= n and wrong < MOST_WRONG:
        k = step_on(kept, k, cuts[i])
        if not times_near(kept + k, cuts + i, head + k, heads + i):
            wrong += 1
            merge(kept, k, end, cuts + i, NEAR, head, heads + i)
        k = heads[i + NEAR - 1] - head
        i += NEAR
    merge(kept, k, end, cuts + i, n - i, head, heads + i)
    return (heads[0] - head) | times_jump(heads, n)


cdef inline void merge(
    const int32_t* kept, int64_t k, int64_t end, const int32_t* cuts, int64_t n, int64_t head, int64_t* heads
) noexcept nogil:
    """The same from leaf k on, whatever leaves."""
    cdef int64_t i, part = n // LANES
    cdef int64_t a = k, b, c, d = k
    if part:
        b = first_kept_after(kept, a, end, cuts[part - 1])
        c = first_kept_after(kept, b, end, cuts[2 * part - 1])
        d = first_kept_after(kept, c, end, cuts[3 * part - 1])
        for i in range(part):
            a = step_on(kept, a, cuts[i])
            b = step_on(kept, b, cuts[part + i])
            c = step_on(kept, c, cuts[2 * part + i])
            d = step_on(kept, d, cuts[3 * part + i])
            heads[i], heads[part + i], heads[2 * part + i], heads[3 * part + i] = head + a, head + b, head + c, head + d
    for i in range(LANES * part, n):
        d = step_on(kept, d, cuts[i])
        heads[i] = head + d


cdef inline int64_t guess_along(
    const Times* t, int64_t span, int64_t index, int64_t end, const int64_t* times, int64_t n, int64_t head, int64_t* heads, int64_t* jump
) noexcept nogil:
    """`follow` straight from where times are kept, those of leaves from `index` on, too, of readings in order as far as guesses do: how many it was. −1: not in order."""
    cdef int64_t i = 0, k, most, m, width = FAR
    cdef uint64_t first = 0
    cdef int32_t cut
    cdef int32_t some[AROUND_AT_MOST + FAR + BEYOND]
    cdef const int32_t* kept
    while i + NEAR <= n and head + NEAR + BEYOND <= end:
        if i and times[i] < times[i - 1]:
            return -1
        m = guess_together(t, span, index + i, end, n - i, head, heads + i, jump)
        if m < 0:
            return -1
        if m:
            i += m
            head = heads[i - 1]
            continue
        m = width if i + width <= n and head + width + BEYOND <= end else NEAR
        kept = kept_around(t, head, m + BEYOND, <uint64_t> times[i] - <uint64_t> span, some, &first)
        first += <uint64_t> span
        most = 0
        if kept != NULL and is_offset(<uint64_t> times[i] - first) and is_offset(<uint64_t> times[i + m - 1] - first):
            cut = <int32_t> <int64_t> (<uint64_t> times[i] - first)
            k = (kept[0] <= cut) + (kept[1] <= cut) + (kept[2] <= cut) + (kept[3] <= cut)
            most = times_guess(kept + k, <const uint64_t*> times + i, first, head + k, heads + i, <int> m)
        if most < 0:
            return -1
        if most:
            jump[0] |= most | (heads[i] - head)
            i += m
            head = heads[i - 1]
        elif m == NEAR:
            return i
        else:
            width = NEAR
    return i


cdef inline int64_t guess_together(
    const Times* t, int64_t span, int64_t index, int64_t end, int64_t n, int64_t head, int64_t* heads, int64_t* jump
) noexcept nogil:
    """The same while the times of the leaves from `head` and `index` on lie together: of whole NEARs, 0 where they do not."""
    cdef int64_t i = 0, k, m, most, left = run_of_offsets(t, head, min(n + BEYOND, end - head)), width = WIDE
    cdef const int32_t* kept
    cdef const int32_t* comes
    cdef uint64_t less
    cdef int64_t first
    cdef int32_t cut
    if head & (BLOCK - 1) < AROUND or left < NEAR + BEYOND:
        return 0
    n = run_of_offsets(t, index, n)
    kept, comes = offset_at(t, head), offset_at(t, index)
    less = stretch_of(t, head).first + <uint64_t> span - stretch_of(t, index).first
    first = head
    while i + NEAR <= n:
        cut = <int32_t> <int64_t> (<uint64_t> <int64_t> comes[i] - less)
        k = head - first
        k += (kept[k] <= cut) + (kept[k + 1] <= cut) + (kept[k + 2] <= cut) + (kept[k + 3] <= cut)
        m = min(min(n - i, left - BEYOND - k), width) & -NEAR
        if m <= 0 or i and comes[i] < comes[i - 1]:
            break
        if not is_offset(<uint64_t> <int64_t> comes[i] - less) or not is_offset(<uint64_t> <int64_t> comes[i + m - 1] - less):
            break
        if i == 0 and not (kept[k - 1] <= cut and kept[k - 2] <= cut and kept[k - 3] <= cut):
            break
        if width == WIDE:
            most = times_along_close(kept + k, comes + i, <uint32_t> less, first + k, heads + i, <int> m)
        else:
            most = times_along_around(kept + k, comes + i, <uint32_t> less, first + k, heads + i, <int> m)
        if most < 0:
            return -1
        if most:
            jump[0] |= most | (heads[i] - head)
            i += m
            head = heads[i - 1]
        elif width == NEAR:
            break
        else:
            width = FAR if width == WIDE else NEAR
    return i


cdef inline const int32_t* offset_at(const Times* t, int64_t index) noexcept nogil:
    return <const int32_t*> odds_of(t, stretch_of(t, index)) + (index & (BLOCK - 1))


cdef inline bint is_offset(uint64_t offset) noexcept nogil:
    return not (offset + (<uint64_t> 1 << 31)) >> 32


cdef inline const int32_t* kept_around(const Times* t, int64_t head, int64_t n, uint64_t since, int32_t* some, uint64_t* first) noexcept nogil:
    """The offsets from `first` of n leaves from `head` on, AROUND before it that are not after `since`; in `some` where they do not lie together. NULL: too far apart."""
    cdef const Stretch* s = stretch_of(t, head)
    cdef int64_t j = head & (BLOCK - 1)
    cdef int i
    cdef const int32_t* kept
    cdef int32_t cut
    if s.kind == OFFSETS and AROUND <= j <= BLOCK - n and is_offset(since - s.first):
        kept, cut = <const int32_t*> odds_of(t, s) + j, <int32_t> <int64_t> (since - s.first)
        if (kept - 1)[0] <= cut and (kept - 2)[0] <= cut and (kept - 3)[0] <= cut:
            first[0] = s.first
            return kept
    first[0] = <uint64_t> time_at(t, head)
    if not is_offset(<uint64_t> time_at(t, head + n - 1) - first[0]):
        return NULL
    for i in range(AROUND):
        some[i] = INT32_MIN
    copy_offsets(t, some + AROUND, head, n, <int64_t> first[0])
    return some + AROUND
