"""How the closed leaves of a window of buckets lie: packed, eight in a block. Part of amta_buckets.pyx.

What a slot has in common with another one of its leaf is left out, to the bit: the times and ordinals of an extreme are
near the leaf's own, and most slots are what an earlier one says. A flag a slot tells whether there is a difference;
one of whole numbers takes as many bytes as it needs, one of floats eight. A leaf that has sketches, or more slots than
there are flags for, lies as it is.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from sluicegate.partials.program cimport (
    HIGH, HIGH_ENDS, H_COUNT, H_O_FIRST, H_ORDERED, H_T_FIRST, H_T_LAST, LOW, LOW_ENDS, O_FIRST, ORDERED, Step, WIDE,
    slots_of_step,
)

cdef enum:
    LONGEST = 10  # bytes of a difference at most

ctypedef struct Place:  # in a leaf that is packed or unpacked
    uint8_t* flags
    uint8_t* at
    int slot


cdef inline bint may_pack(const Program* p) noexcept nogil:
    cdef int k
    for k in range(p.steps):
        if p.step[k].op >= WIDE:
            return False
    return p.width <= PACKED_MOST


# a slot

cdef inline void put(Place* to, uint64_t difference, bint whole) noexcept nogil:
    """A difference; `whole`: of two floats, bit by bit."""
    if difference != 0:
        to.flags[to.slot >> 3] |= <uint8_t> (1 << (to.slot & 7))
        if whole:
            memcpy(to.at, &difference, 8)
            to.at += 8
        else:
            difference = (difference << 1) ^ (0 - (difference >> 63))  # small ones of either sign are short
            while difference >= 128:
                to.at[0] = <uint8_t> (difference | 128)
                to.at += 1
                difference >>= 7
            to.at[0] = <uint8_t> difference
            to.at += 1
    to.slot += 1


cdef inline uint64_t get(Place* of, bint whole) noexcept nogil:
    cdef uint64_t difference = 0
    cdef int shift = 0
    if of.flags[of.slot >> 3] >> (of.slot & 7) & 1:
        if whole:
            memcpy(&difference, of.at, 8)
            of.at += 8
        else:
            while of.at[0] & 128:
                difference |= <uint64_t> (of.at[0] & 127) << shift
                shift += 7
                of.at += 1
            difference |= <uint64_t> of.at[0] << shift
            of.at += 1
            difference = (difference >> 1) ^ (0 - (difference & 1))
    of.slot += 1
    return difference


cdef inline void through(Place* place, uint64_t* slot, uint64_t like, bint whole, bint packs) noexcept nogil:
    """A slot that is nearly as `like`, into its place or out of it."""
    if whole:
        if packs:
            put(place, slot[0] ^ like, True)
        else:
            slot[0] = get(place, True) ^ like
    elif packs:
        put(place, slot[0] - like, False)
    else:
        slot[0] = get(place, False) + like


# a leaf

cdef inline int extreme_of(const Program* p, const Step* ends) noexcept nogil:
    """Where the extreme is of which something says what is around it; −1: nowhere."""
    cdef int k
    for k in range(p.steps):
        if p.step[k].op == (LOW if ends.op == LOW_ENDS else HIGH) and p.step[k].dimension == ends.dimension:
            return p.step[k].slot
    return -1


cdef inline uint64_t place_of(const uint64_t* leaf, uint64_t time) noexcept nogil:
    """Which ordinal a reading of this time has, where times are ordinals; else the first one."""
    cdef bint counted = leaf[H_T_LAST] - leaf[H_T_FIRST] == leaf[H_COUNT] - 1
    return leaf[H_O_FIRST] + (time - leaf[H_T_FIRST] if counted else 0)


cdef inline void leaf_through(const Program* p, Place* place, uint64_t* leaf, bint packs) noexcept nogil:
    """All slots of a leaf, each after those that it is like."""
    cdef int k, op, i, like
    cdef uint64_t* s
    through(place, leaf + H_COUNT, 0, False, packs)
    through(place, leaf + H_O_FIRST, 0, False, packs)
    through(place, leaf + H_T_FIRST, leaf[H_O_FIRST], False, packs)  # the same where no times are given
    through(place, leaf + H_T_LAST, leaf[H_T_FIRST] + leaf[H_COUNT] - 1, False, packs)  # the same there, too
    through(place, leaf + H_ORDERED, 1, False, packs)
    for k in range(p.steps):
        op, s = p.step[k].op, leaf + p.step[k].slot
        if ORDERED <= op <= O_FIRST:
            continue
        if op == LOW or op == HIGH:
            through(place, s, 0, True, packs)
            through(place, s + 1, leaf[H_T_FIRST], False, packs)
            through(place, s + 2, s[1], False, packs)
            through(place, s + 3, place_of(leaf, s[1]), False, packs)
            through(place, s + 4, s[3], False, packs)
        elif op == LOW_ENDS or op == HIGH_ENDS:
            like = extreme_of(p, p.step + k)
            through(place, s, leaf[like] if like >= 0 else 0, True, packs)
            through(place, s + 1, 0, True, packs)
            through(place, s + 2, 0, True, packs)
        else:
            for i in range(slots_of_step(op)):
                through(place, s + i, 0, True, packs)


# all of them

cdef inline size_t pack_leaf(const Program* p, const Slot* leaf, uint8_t* out) noexcept nogil:
    """How many bytes it takes."""
    cdef Place place
    cdef int flags = (p.width + 7) >> 3
    memset(out, 0, flags)
    place.flags, place.at, place.slot = out, out + flags, 0
    leaf_through(p, &place, <uint64_t*> leaf, True)
    return place.at - out


cdef inline Slot* unpacked(AmtaBuckets self, const Closed* closed, Slot* out, int64_t index) noexcept nogil:
    """A closed leaf; where leaves lie as they are, its place."""
    cdef Rows* rows = closed.block[(index // BLOCK) - closed.first]
    cdef int i = <int> (index & (BLOCK - 1))
    cdef Place place
    if not self.packs:
        return <Slot*> (rows + 1) + i * self.p.width
    place.flags, place.slot = <uint8_t*> (rows + 1) + (rows.end[i - 1] if i else 0), 0
    place.at = place.flags + ((self.p.width + 7) >> 3)
    leaf_through(self.p, &place, <uint64_t*> out, False)
    return out


cdef inline int keep_leaf(AmtaBuckets self, Closed* closed, const Slot* leaf, int64_t index) noexcept nogil:
    """One more, behind all that there are; -1: no memory, and nothing has changed."""
    cdef uint8_t packed[PACKED_MOST * (LONGEST + 1)]
    cdef int i = <int> (index & (BLOCK - 1))
    cdef int64_t k
    cdef size_t start, size = self.p.width * sizeof(Slot)
    cdef Rows* rows = NULL
    cdef const void* what = leaf
    if not closed.blocks:
        closed.first = index // BLOCK
    k = index // BLOCK - closed.first
    if k == closed.room and not widen_closed(closed):
        return -1
    if k < closed.blocks:
        rows = closed.block[k]
    start = i * size
    if self.packs:
        size, what = pack_leaf(self.p, leaf, packed), packed
        start = rows.end[i - 1] if rows != NULL and i else 0
    rows = <Rows*> realloc(rows, sizeof(Rows) + start + size)
    if rows == NULL:
        return -1
    closed.block[k] = rows
    if k == closed.blocks:
        memset(rows, 0, sizeof(Rows))
        closed.blocks += 1
        closed.bytes += sizeof(Rows) + start
    closed.bytes += size
    rows.end[i] = <uint16_t> (start + size)  # read where leaves are packed
    memcpy(<uint8_t*> (rows + 1) + start, what, size)
    return 0


cdef inline bint widen_closed(Closed* closed) noexcept nogil:
    cdef int room = closed.room + (closed.room >> 2) + 4
    cdef Rows** block = <Rows**> realloc(closed.block, room * sizeof(void*))
    if block == NULL:
        return False
    closed.block, closed.room = block, room
    return True


cdef inline void let_go(AmtaBuckets self, Closed* closed, int64_t head) noexcept nogil:
    """Give back blocks that lie wholly before the head, and what does of the first that stays."""
    cdef int k, gone = <int> max(0, min(head // BLOCK - closed.first, <int64_t> closed.blocks))
    for k in range(gone):
        closed.bytes -= sizeof(Rows) + (
            closed.block[k].end[BLOCK - 1] if self.packs else BLOCK * self.p.width * sizeof(Slot)
        )
        free(closed.block[k])
    if gone:
        closed.first += gone
        closed.blocks -= gone
        memmove(closed.block, closed.block + gone, closed.blocks * sizeof(void*))
    if self.packs and closed.blocks and head & (BLOCK - 1) and head // BLOCK == closed.first:
        let_first_go(closed, <int> (head & (BLOCK - 1)))


cdef inline void let_first_go(Closed* closed, int n) noexcept nogil:
    """The first n leaves of the oldest block: what is left of it moves to its front."""
    cdef Rows* rows = closed.block[0]
    cdef uint16_t gone = rows.end[n - 1], size = 0
    cdef int i
    for i in range(BLOCK):
        rows.end[i] -= min(gone, rows.end[i])  # one that is not there yet ends at 0
        size = max(size, rows.end[i])
    memmove(rows + 1, <uint8_t*> (rows + 1) + gone, size)
    closed.bytes -= gone
    rows = <Rows*> realloc(rows, sizeof(Rows) + size)
    if rows != NULL:
        closed.block[0] = rows


cdef inline void let_all_go(Closed* closed) noexcept nogil:
    cdef int k
    for k in range(closed.blocks):
        free(closed.block[k])
    free(closed.block)
    memset(closed, 0, sizeof(Closed))
