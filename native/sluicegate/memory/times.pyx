"""The times of a window's leaves, in blocks of 128; see times.pxd."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from sluicegate.memory.chunks cimport ask_for, at, clear, drop, give_back, has_room, held, release, reserve, run_at, shape_by

cdef extern from "times.h" nogil:
    bint times_even(const uint64_t* times, int64_t n, uint64_t step)
    bint times_to_offsets(const uint64_t* times, int32_t* out, int64_t n, uint64_t first)
    void times_from_offsets(const int32_t* offsets, uint64_t* out, int64_t n, uint64_t first)
    void times_from_step(uint64_t* out, int64_t n, uint64_t first, uint64_t step)

cdef int64_t NONE = INT64_MAX
# from what offsets count from, for a block to begin there: what fits from its own first time mostly fits
cdef uint64_t NEAR_BASE = 1 << 30

cdef enum:
    BLOCKS_OF_CHUNK = 5  # bits
    SLOTS_OF_OFFSETS = 64
    # chunks of offsets before they lie in large ones, in runs merged where they lie; more than a queue brings from
    # shorter ones (18)
    MOST_SMALL = 28
    SLOTS_OF_TIMES = 128  # what a chunk of `odd_pool` holds at least


cdef void begin_times(Times* t) noexcept nogil:
    memset(t, 0, sizeof(Times))
    shape_by(&t.pool, SLOTS_OF_STRETCH, 1, BLOCKS_OF_CHUNK, True)
    shape_by(&t.odd_pool, 1, BLOCK_BITS, BLOCK_BITS + 2, True)  # the offsets or times of a block lie in one chunk
    t.odd_pool.most_small = MOST_SMALL
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


cdef int keep_even(Times* t, int64_t index, uint64_t first, uint64_t step, int64_t n) noexcept nogil:
    cdef uint64_t times[BLOCK]
    cdef int64_t k, block
    cdef Stretch* s
    start_at(t, index)
    while n > 0:
        k, block = min(left_in_block(index), n), index >> BLOCK_BITS
        if index > t.start and index & (BLOCK - 1):
            times_from_step(times, k, first, step)
            if keep_in_block(t, index, times, k) < 0:
                return -1
        else:
            if open_block(t, block) < 0:
                return -1
            s = stretch_of(t, index)
            s.step, s.first = step, first - <uint64_t> (index & (BLOCK - 1)) * step
        first, index, n = first + <uint64_t> k * step, index + k, n - k
    return 0


cdef int keep(Times* t, int64_t index, const int64_t* times, int64_t n) noexcept nogil:
    cdef int64_t i = 0, k, whole
    start_at(t, index)
    while i < n:
        k = min(left_in_block(index + i), n - i)
        if k == BLOCK and not begins_even(<const uint64_t*> times + i):
            whole = keep_uneven_blocks(t, (index + i) >> BLOCK_BITS, <const uint64_t*> times + i, n - i)
            if whole < 0:
                return -1
            if whole:
                i += whole
                continue
        if keep_in_block(t, index + i, <const uint64_t*> times + i, k) < 0:
            return -1
        i += k
    return 0


cdef inline bint begins_even(const uint64_t* times) noexcept nogil:
    cdef uint64_t step = times[1] - times[0]
    return times[2] - times[1] == step and times[3] - times[2] == step


cdef inline int64_t keep_uneven_blocks(Times* t, int64_t block, const uint64_t* times, int64_t n) noexcept nogil:
    """The times of up to n readings in whole blocks, none of which begins evenly: nothing is written twice. How many it
    was; −1: no memory."""
    cdef int64_t k = 1, i
    cdef uint64_t first = base_of(t, block, times[0])
    cdef Stretch* s
    if not has_room(&t.odd_pool, &t.odd, t.place) and reserve(&t.odd_pool, &t.odd, t.place) < 0:
        return -1
    n = min(n >> BLOCK_BITS, run_at(&t.odd, t.place) // SLOTS_OF_OFFSETS)
    while k < n and times[k << BLOCK_BITS] - first < NEAR_BASE and not begins_even(times + (k << BLOCK_BITS)):
        k += 1
    if not times_to_offsets(times, <int32_t*> at(&t.odd, 1, t.place), k << BLOCK_BITS, first):
        return 0
    for i in range(block, block + k):
        if open_block(t, i) < 0:
            return -1
        s = stretch_of(t, i << BLOCK_BITS)
        s.first, s.kind = first, OFFSETS
        t.place += SLOTS_OF_OFFSETS
    return k << BLOCK_BITS


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
        if turn(t, s, block, j - there, there, times[0]) < 0:
            return -1
    if s.kind == OFFSETS:
        return keep_offsets(t, s, j, there, times, n)
    memcpy(<uint64_t*> odds_of(t, s) + j, times, n * sizeof(uint64_t))
    return 0


cdef inline int keep_offsets(Times* t, Stretch* s, int64_t j, int64_t there, const uint64_t* times, int64_t n) noexcept nogil:
    """n times from leaf j of a block on, `there` before them; where they are too far from what it counts from, from its
    own first, or as they are."""
    cdef uint64_t before[BLOCK]
    cdef uint64_t old = s.first
    if times_to_offsets(times, <int32_t*> odds_of(t, s) + j, n, s.first):
        return 0
    copy_block(t, s, before, j - there, there)
    s.first = before[0] if there else times[0]
    if times_to_offsets(before, <int32_t*> odds_of(t, s) + j - there, there, s.first) and times_to_offsets(times, <int32_t*> odds_of(t, s) + j, n, s.first):
        return 0
    if write_out(t, s, before, j - there, there) < 0:
        s.first = old
        times_to_offsets(before, <int32_t*> odds_of(t, s) + j - there, there, old)
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


cdef int turn(Times* t, Stretch* s, int64_t block, int64_t j, int64_t n, uint64_t first) noexcept nogil:
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
        s.first, s.kind = base_of(t, block, own), OFFSETS
        if times_to_offsets(times, <int32_t*> odds_of(t, s) + j, n, s.first):
            return 0
        s.first = own
        if times_to_offsets(times, <int32_t*> odds_of(t, s) + j, n, s.first):
            return 0
    if write_out(t, s, times, j, n) < 0:
        s[0] = before
        return -1
    return 0


cdef inline bint fits(uint64_t time, uint64_t first) noexcept nogil:
    """As an offset from there."""
    return not (time - first + (<uint64_t> 1 << 31)) >> 32


cdef inline uint64_t base_of(const Times* t, int64_t block, uint64_t first) noexcept nogil:
    """What a block's offsets count from: what those before it do, so that they can be read together; or its own first
    time, where that is far from there."""
    cdef const Stretch* before
    if block <= max(t.start >> BLOCK_BITS, t.oldest):
        return first
    before = stretch_of(t, (block - 1) << BLOCK_BITS)
    return before.first if before.kind == OFFSETS and first - before.first < NEAR_BASE else first


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


cdef void ask_for_times(const Times* t, int64_t index, int64_t n) noexcept nogil:
    cdef const Stretch* s
    cdef int64_t end = index + n
    while index < end and index >> BLOCK_BITS < t.opened:
        s = stretch_of(t, index)
        if s.kind != EVEN:
            ask_for(odds_of(t, s), (SLOTS_OF_OFFSETS if s.kind == OFFSETS else SLOTS_OF_TIMES) * sizeof(uint64_t))
        index += BLOCK
