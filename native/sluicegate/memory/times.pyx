"""The times of a window's leaves, in blocks of 128; see times.pxd."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from sluicegate.memory.chunks cimport at, clear, drop, give_back, has_room, held, release, reserve, shape_by

cdef extern from "times.h" nogil:
    bint times_even(const uint64_t* times, int64_t n, uint64_t step)
    bint times_to_offsets(const uint64_t* times, int32_t* out, int64_t n, uint64_t first)
    void times_from_offsets(const int32_t* offsets, uint64_t* out, int64_t n, uint64_t first)
    void times_from_step(uint64_t* out, int64_t n, uint64_t first, uint64_t step)

cdef int64_t NONE = INT64_MAX

cdef enum:
    BLOCKS_OF_CHUNK = 5  # bits
    SLOTS_OF_OFFSETS = 64
    SLOTS_OF_TIMES = 128  # what a chunk of `odd_pool` holds at least


cdef void begin_times(Times* t) noexcept nogil:
    memset(t, 0, sizeof(Times))
    shape_by(&t.pool, SLOTS_OF_STRETCH, 1, BLOCKS_OF_CHUNK, True)
    shape_by(&t.odd_pool, 1, BLOCK_BITS, BLOCK_BITS + 2, True)  # the offsets or times of a block lie in one chunk
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
    return held(&t.pool) + held(&t.odd_pool)


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
    elif there == 1 and s.kind == EVEN:
        s.step = times[0] - <uint64_t> time_in(t, s, j - 1)
        s.first = times[0] - <uint64_t> j * s.step
    if s.kind == EVEN:
        if times[0] == s.first + <uint64_t> j * s.step and times_even(times, n, s.step):
            return 0
        if turn(t, s, j - there, there, times[0]) < 0:
            return -1
    if s.kind == OFFSETS:
        return keep_offsets(t, s, j, there, times, n)
    memcpy(<uint64_t*> odds_of(t, s) + j, times, n * sizeof(uint64_t))
    return 0


cdef inline int keep_offsets(
    Times* t, Stretch* s, int64_t j, int64_t there, const uint64_t* times, int64_t n
) noexcept nogil:
    """n times from leaf j of a block on, `there` before them; as they are where one is too far from the first."""
    cdef uint64_t before[BLOCK]
    if times_to_offsets(times, <int32_t*> odds_of(t, s) + j, n, s.first):
        return 0
    copy_block(t, s, before, j - there, there)
    if write_out(t, s, before, j - there, there) < 0:
        return -1
    memcpy(<uint64_t*> odds_of(t, s) + j, times, n * sizeof(uint64_t))
    return 0


cdef int open_block(Times* t, int64_t block) noexcept nogil:
    cdef Stretch* s
    if not has_room(&t.pool, &t.blocks, block) and reserve(&t.pool, &t.blocks, block) < 0:
        return -1
    s = stretch_of(t, block << BLOCK_BITS)
    s.place, s.kind = t.place, EVEN
    t.opened = max(t.opened, block + 1)
    return 0


cdef int turn(Times* t, Stretch* s, int64_t j, int64_t n, uint64_t first) noexcept nogil:
    """Write an even block's n times from leaf j on one by one, as offsets if they fit, and `first`, which comes
    next."""
    cdef uint64_t times[BLOCK]
    cdef Stretch before = s[0]
    cdef uint64_t own = s.first + <uint64_t> j * s.step if n else first
    cdef int64_t i
    for i in range(n):  # not in wide lanes: after a gap waking them takes longer than this
        times[i] = own + <uint64_t> i * s.step
    if fits(first, own):
        if find_place(t, s, t.place, SLOTS_OF_OFFSETS) < 0:
            return -1
        s.first, s.kind = own, OFFSETS
        if times_to_offsets(times, <int32_t*> odds_of(t, s) + j, n, own):
            return 0
    if write_out(t, s, times, j, n) < 0:
        s[0] = before
        return -1
    return 0


cdef inline bint fits(uint64_t time, uint64_t first) noexcept nogil:
    """As an offset from there."""
    return not (time - first + (<uint64_t> 1 << 31)) >> 32


cdef int write_out(Times* t, Stretch* s, const uint64_t* times, int64_t j, int64_t n) noexcept nogil:
    """A block of offsets becomes one of times."""
    cdef int64_t place = s.place if t.place == s.place + SLOTS_OF_OFFSETS else t.place
    if find_place(t, s, (place + SLOTS_OF_TIMES - 1) & -SLOTS_OF_TIMES, SLOTS_OF_TIMES) < 0:
        return -1
    s.kind = TIMES
    memcpy(<uint64_t*> odds_of(t, s) + j, times, n * sizeof(uint64_t))
    return 0


cdef int find_place(Times* t, Stretch* s, int64_t place, int64_t slots) noexcept nogil:
    if not has_room(&t.odd_pool, &t.odd, place) and reserve(&t.odd_pool, &t.odd, place) < 0:
        return -1
    s.place, t.place = place, place + slots
    return 0


# what is there

cdef void copy_block(const Times* t, const Stretch* s, uint64_t* out, int64_t j, int64_t n) noexcept nogil:
    if s.kind == EVEN:
        times_from_step(out, n, s.first + <uint64_t> j * s.step, s.step)
    elif s.kind == OFFSETS:
        times_from_offsets(<const int32_t*> odds_of(t, s) + j, out, n, s.first)
    else:
        memcpy(out, <const uint64_t*> odds_of(t, s) + j, n * sizeof(uint64_t))


cdef void copy_out(const Times* t, int64_t* out, int64_t index, int64_t n) noexcept nogil:
    cdef int64_t k
    while n > 0:
        k = min(left_in_block(index), n)
        copy_block(t, stretch_of(t, index), <uint64_t*> out, index & (BLOCK - 1), k)
        out, index, n = out + k, index + k, n - k
