"""The times of a window's leaves, in blocks of 128: where they are a step apart only that.

A block is a first time and a step as long as its times are as far apart; then they stand in a second queue, block after
block. So the times of readings at a steady rate take a quarter of a byte each and nothing is written for them. A block
that turns is written once: 128 times at most. Any number leaves at once in O(1).
"""

from libc.stdint cimport int64_t, uint64_t

from sluicegate.memory.chunks cimport Pool, Queue, at

cdef enum:
    BLOCK_BITS = 7
    BLOCK = 128  # leaves
    SLOTS_OF_STRETCH = 4

ctypedef struct Stretch:  # a block, as it stands in a queue
    uint64_t first
    uint64_t step
    int64_t place  # where its times begin, or would
    int64_t even  # leaf j has the time first + j · step

ctypedef struct Times:
    Pool pool
    Queue blocks
    Pool odd_pool
    Queue odd  # times
    int64_t start  # the first leaf since it was empty; greater than any where it is
    int64_t oldest  # block, up to which all has been let go
    int64_t opened  # the block after the newest that was begun
    int64_t place  # where that one's times would begin


cdef inline Stretch* stretch_of(const Times* t, int64_t index) noexcept nogil:
    """The block of a leaf."""
    return <Stretch*> at(&t.blocks, SLOTS_OF_STRETCH, index >> BLOCK_BITS)


cdef inline int64_t left_in_block(int64_t index) noexcept nogil:
    """So many leaves of its block begin with this one."""
    return BLOCK - (index & (BLOCK - 1))


cdef inline uint64_t* odds_of(const Times* t, const Stretch* s) noexcept nogil:
    return <uint64_t*> at(&t.odd, 1, s.place)


cdef inline int64_t time_in(const Times* t, const Stretch* s, int64_t j) noexcept nogil:
    """The time of leaf j of a block."""
    return <int64_t> (s.first + <uint64_t> j * s.step if s.even else odds_of(t, s)[j])


cdef inline int64_t time_at(const Times* t, int64_t index) noexcept nogil:
    """The time of a leaf."""
    return time_in(t, stretch_of(t, index), index & (BLOCK - 1))


cdef inline bint keep_next(Times* t, int64_t index, int64_t time) noexcept nogil:
    """`keep` of one time where its block goes on as before; False: it does not."""
    cdef int64_t j = index & (BLOCK - 1)
    cdef Stretch* s
    if j < 2 or index - t.start < 2:
        return False
    s = stretch_of(t, index)
    if s.even:
        return <uint64_t> time == s.first + <uint64_t> j * s.step
    odds_of(t, s)[j] = <uint64_t> time
    return True


cdef inline bint has_surplus(const Times* t) noexcept nogil:
    """Whether there are chunks to return to the system."""
    return t.pool.surplus or t.odd_pool.surplus


cdef inline void forget(Times* t, int64_t head) noexcept nogil:
    """Give back the times before `head`, as far as their blocks end before it."""
    if head >> BLOCK_BITS != t.oldest:
        forget_blocks(t, head >> BLOCK_BITS)


cdef void begin_times(Times* t) noexcept nogil  # none yet; what it held before is not looked at
cdef void clear_times(Times* t) noexcept nogil  # none again
cdef void release_times(Times* t) noexcept nogil
# of the next n leaves, or anew from there; −1: no memory
cdef int keep(Times* t, int64_t index, const int64_t* times, int64_t n) noexcept nogil
# the times of n leaves, one after the other
cdef void copy_out(const Times* t, int64_t* out, int64_t index, int64_t n) noexcept nogil
cdef void give_back_times(Times* t, int64_t chunks) noexcept nogil  # returns at most so many chunks to the system
cdef int64_t held_times(const Times* t) noexcept nogil  # bytes
cdef void forget_blocks(Times* t, int64_t block) noexcept nogil
