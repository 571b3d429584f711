"""The times of a window's leaves, in blocks of 128; see times.pxd."""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from sluicegate.memory.chunks cimport at, clear, drop, give_back, has_room, release, reserve, shape_by

cdef int64_t NONE = INT64_MAX

cdef enum:
    BLOCKS_OF_CHUNK = 5  # bits


cdef void begin_times(Times* t) noexcept nogil:
    memset(t, 0, sizeof(Times))
    shape_by(&t.pool, SLOTS_OF_STRETCH, 1, BLOCKS_OF_CHUNK, True)
    shape_by(&t.odd_pool, 1, BLOCK_BITS, BLOCK_BITS + 2, True)  # the times of a block lie in one chunk
    t.start, t.oldest = NONE, -1


cdef void clear_times(Times* t) noexcept nogil:
    clear(&t.pool, &t.blocks)
    clear(&t.odd_pool, &t.odd)
    t.start, t.oldest, t.opened = NONE, -1, 0


cdef void release_times(Times* t) noexcept nogil:
    clear_times(t)
    release(&t.pool)
    release(&t.odd_pool)
    free(t.blocks.chunk)
    free(t.odd.chunk)


cdef void give_back_times(Times* t, int64_t chunks) noexcept nogil:
    while chunks > 0 and has_surplus(t):
        give_back(&t.pool if t.pool.surplus else &t.odd_pool)
        chunks -= 1


cdef int64_t held_times(const Times* t) noexcept nogil:
    return t.pool.held + t.odd_pool.held


cdef void forget_blocks(Times* t, int64_t block) noexcept nogil:
    t.oldest = block
    drop(&t.odd_pool, &t.odd, stretch_of(t, block << BLOCK_BITS).place if block < t.opened else t.place)
    drop(&t.pool, &t.blocks, block)


# what comes

cdef inline void start_at(Times* t, int64_t index) noexcept nogil:
    """The first of all leaves, where it is."""
    if index < t.start:
        t.start, t.opened = index, index >> BLOCK_BITS


cdef int keep(Times* t, int64_t index, const int64_t* times, int64_t n) noexcept nogil:
    cdef int64_t i = 0, k
    start_at(t, index)
    while i < n:
        k = min(left_in_block(index + i), n - i)
        if keep_in_block(t, index + i, <const uint64_t*> times + i, k) < 0:
            return -1
        i += k
    return 0


cdef int keep_in_block(Times* t, int64_t index, const uint64_t* times, int64_t n) noexcept nogil:
    cdef int64_t block = index >> BLOCK_BITS, j = index & (BLOCK - 1), there = index - max(t.start, index & -BLOCK)
    cdef Stretch* s
    if there == 0 and open_block(t, block) < 0:
        return -1
    s = stretch_of(t, index)
    if there == 0:
        s.step = times[1] - times[0] if n > 1 else 0
        s.first = times[0] - <uint64_t> j * s.step
    elif there == 1 and s.even:
        s.step = times[0] - <uint64_t> time_in(t, s, j - 1)
        s.first = times[0] - <uint64_t> j * s.step
    if s.even:
        if times[0] == s.first + <uint64_t> j * s.step and are_even(times, n, s.step):
            return 0
        if turn(t, s, j - there, there) < 0:
            return -1
    memcpy(odds_of(t, s) + j, times, n * sizeof(uint64_t))
    return 0


cdef inline bint are_even(const uint64_t* times, int64_t n, uint64_t step) noexcept nogil:
    """Whether each of n times is `step` after the one before it."""
    cdef uint64_t odd = 0
    cdef int64_t j
    if n > 1 and times[1] - times[0] != step:
        return False
    for j in range(n - 1):  # without a branch the compiler takes several in a step
        odd |= (times[j + 1] - times[j]) ^ step
    return odd == 0


cdef int open_block(Times* t, int64_t block) noexcept nogil:
    cdef Stretch* s
    if not has_room(&t.blocks, block) and reserve(&t.pool, &t.blocks, block) < 0:
        return -1
    s = stretch_of(t, block << BLOCK_BITS)
    s.place, s.even = t.place, True
    t.opened = max(t.opened, block + 1)
    return 0


cdef int turn(Times* t, Stretch* s, int64_t j, int64_t n) noexcept nogil:
    """Write an even block's n times from leaf j on one by one."""
    cdef int64_t i
    if not has_room(&t.odd, t.place) and reserve(&t.odd_pool, &t.odd, t.place) < 0:
        return -1
    s.place, s.even = t.place, False
    t.place += BLOCK
    for i in range(j, j + n):
        odds_of(t, s)[i] = s.first + <uint64_t> i * s.step
    return 0


# what is there

cdef void copy_block(const Times* t, const Stretch* s, uint64_t* out, int64_t j, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n if s.even else 0):
        out[i] = s.first + <uint64_t> (j + i) * s.step
    if not s.even:
        memcpy(out, odds_of(t, s) + j, n * sizeof(uint64_t))


cdef void copy_out(const Times* t, int64_t* out, int64_t index, int64_t n) noexcept nogil:
    cdef int64_t k
    while n > 0:
        k = min(left_in_block(index), n)
        copy_block(t, stretch_of(t, index), <uint64_t*> out, index & (BLOCK - 1), k)
        out, index, n = out + k, index + k, n - k
