"""KLL sketches of fixed width, for buckets: the twin, sluicegate.monoids.kll over reference/wide, has the same bits.

A partial: readings, levels, the least and the greatest value, a size for each level, then the levels' values one after
the other, each level sorted. A value of level h stands for 2^h readings. Source: Karnin, Lang & Liberty (2016).
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from sluicegate.partials.wide cimport Slot

cdef enum:  # sluicegate.monoids.kll
    Q_COUNT = 0
    Q_LEVELS = 1
    Q_LOW = 2
    Q_HIGH = 3
    Q_SIZES = 4
    Q_MOST_LEVELS = 32
    Q_VALUES = 36  # Q_SIZES + Q_MOST_LEVELS
    Q_ROOM = 2048  # values of two sketches of the greatest k, and a few more


cdef inline int64_t two_thirds(int64_t k, int depth) noexcept nogil:
    cdef int64_t power = 1
    cdef int i
    for i in range(depth):
        power *= 3
    return (((k << 1) << depth) // power + 1) >> 1


cdef inline int64_t room_of(int64_t k, int64_t levels, int64_t height) noexcept nogil:
    """Values that a level may hold."""
    cdef int depth = <int> (levels - height - 1)
    cdef int64_t room
    if depth > 30:
        room = two_thirds(two_thirds(k, depth // 2), depth - depth // 2)
    else:
        room = two_thirds(k, depth)
    return max(8, room)


cdef inline int64_t room_of_all(int64_t k, int64_t levels) noexcept nogil:
    cdef int64_t height, room = 0
    for height in range(levels):
        room += room_of(k, levels, height)
    return room


cdef inline uint64_t mixed(uint64_t k) noexcept nogil:
    k = (k ^ (k >> 33)) * <uint64_t> 0xFF51AFD7ED558CCD
    k = (k ^ (k >> 33)) * <uint64_t> 0xC4CEB9FE1A85EC53
    return k ^ (k >> 33)


cdef inline int coin_of(const double* level, int64_t size, int64_t n, int64_t height) noexcept nogil:
    """Two bits that follow from what is merged, and look as if tossed."""
    cdef uint64_t first, last
    memcpy(&first, level, 8)
    memcpy(&last, level + size - 1, 8)
    return <int> (mixed(mixed(first + <uint64_t> n) + last + <uint64_t> height) & 3)


cdef inline void lift_quantiles(Slot* s, double x) noexcept nogil:
    x += 0.0  # −0.0 as 0.0
    s[Q_COUNT].i = s[Q_LEVELS].i = s[Q_SIZES].i = 1
    s[Q_LOW].f = s[Q_HIGH].f = s[Q_VALUES].f = x


cdef inline int64_t size_of(const Slot* s, int64_t height) noexcept nogil:
    """Of a level; never more than there is room for, whatever a stored partial says."""
    cdef int64_t size = s[Q_SIZES + height].i
    return 0 if size < 0 else min(size, Q_ROOM // 2)


cdef inline int64_t merge_runs(double* out, const double* a, int64_t n, const double* b, int64_t m) noexcept nogil:
    """Two sorted runs as one."""
    cdef int64_t i = 0, j = 0
    while i < n and j < m:
        if b[j] < a[i]:
            out[i + j] = b[j]
            j += 1
        else:
            out[i + j] = a[i]
            i += 1
    memcpy(out + i + j, a + i, (n - i) * sizeof(double))
    memcpy(out + n + j, b + j, (m - j) * sizeof(double))
    return n + m


cdef inline void combine_quantiles(int64_t k, int64_t slots, Slot* o, const Slot* a, const Slot* b) noexcept nogil:
    """From the lowest level up: both sides' values and what comes from below, halved where there are too many."""
    cdef double joined[Q_ROOM]
    cdef double level[2 * Q_ROOM]
    cdef double up[2 * Q_ROOM]
    cdef double out[Q_ROOM]
    cdef int64_t sizes[Q_MOST_LEVELS]
    cdef int64_t n = a[Q_COUNT].i + b[Q_COUNT].i, levels = max(a[Q_LEVELS].i, b[Q_LEVELS].i)
    cdef int64_t count = 0, height = 0, taken = 0, rising = 0, size, left, right, x, y, stays, i
    cdef const double* first = <const double*> (a + Q_VALUES)
    cdef const double* second = <const double*> (b + Q_VALUES)
    cdef double low = min(a[Q_LOW].f, b[Q_LOW].f), high = max(a[Q_HIGH].f, b[Q_HIGH].f)
    cdef int coin
    cdef bint odd
    levels = min(max(levels, 1), Q_MOST_LEVELS)
    left = right = slots - Q_VALUES
    for height in range(levels):
        x, y = min(size_of(a, height), left), min(size_of(b, height), right)
        count, left, right = count + x + y, left - x, right - y
    left = right = slots - Q_VALUES
    height = 0
    while height < levels:
        x, y = min(size_of(a, height), left), min(size_of(b, height), right)
        size = merge_runs(joined, first, x, second, y)
        size = merge_runs(level, joined, size, up, rising)
        first, second, left, right = first + x, second + y, left - x, right - y
        rising, stays = 0, size
        if count >= room_of_all(k, levels) and size >= room_of(k, levels, height) and height + 1 < Q_MOST_LEVELS:
            levels = max(levels, height + 2)
            count -= size // 2
            coin, odd = coin_of(level, size, n, height), size & 1
            stays = odd
            rising = size // 2
            i = 1 if odd and coin >> 1 else 0  # an odd one stays behind, at either end
            if odd and not i:
                joined[0] = level[size - 1]
            else:
                joined[0] = level[0]
            for x in range(rising):
                up[x] = level[i + 2 * x + (coin & 1)]
            level[0] = joined[0]
        stays = min(stays, slots - Q_VALUES - taken)
        memcpy(out + taken, level, stays * sizeof(double))
        sizes[height] = stays
        taken += stays
        height += 1
    memset(o, 0, slots * sizeof(Slot))
    o[Q_COUNT].i, o[Q_LEVELS].i, o[Q_LOW].f, o[Q_HIGH].f = n, levels, low, high
    for height in range(levels):
        o[Q_SIZES + height].i = sizes[height]
    memcpy(o + Q_VALUES, out, taken * sizeof(double))
