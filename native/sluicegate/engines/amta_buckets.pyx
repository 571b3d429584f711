"""AMTA for buckets under a limit, in little memory: closed leaves are packed, lower nodes are combined when asked for.

Fact card: as sluicegate.engines.amta, with the same bits; level eviction O(n) combines, O(1) a bucket.
A bucket is begun once in many readings, so what a node costs is paid seldom, and what it takes is held for long: a
partial of buckets has three times the slots of an exact window's. The twin is tests/native/twins/amta.py.

Kept are the leaves and the nodes from level KEPT_FROM on. A node below is the pair under it, combined, or, where the
first of that has left, the second. The newest leaf, which readings join, lies as it is; all others are amta_packed's.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint16_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset

from sluicegate.engines.base cimport Engine, Leaves, ask, slide_any
from sluicegate.memory.chunks cimport (
    Pool, Queue, at, clear, drop, give_back, has_room, release, reserve, ring_bytes, shape_by,
)
from sluicegate.partials.kernels cimport Any, combine_by, copy_by, width_of
from sluicegate.partials.program cimport Program, Slot, combine, copy

cdef enum:
    KEPT_FROM = 6
    MADE = 2 * KEPT_FROM  # leaves and nodes that are not kept, while they are looked at: two of a level
    BESIDE_STACK = 6  # partials: the results of `total` and of `rest` or R1, R0, R1's base, the newest leaf, the oldest
    BLOCK = 8  # leaves that lie together
    PACKED_MOST = 64  # slots of one that is packed
    LONGEST_CHUNK = 1024  # slots, more or less
    LARGE_LIMIT = 16384  # of buckets: from here on chunks of 64 KiB, too

cdef extern from *:
    """
    /* What is made lasts as long as one step of an engine: all windows of a thread share it. */
    static _Thread_local long long sluicegate_made[12 * 64];  /* MADE partials of PACKED_MOST slots */
    static inline void* sluicegate_made_here(void) { return sluicegate_made; }
    """
    void* made_here "sluicegate_made_here"() noexcept nogil

ctypedef struct Rows:  # a block: where each of its leaves ends, then the leaves
    uint16_t end[BLOCK]

ctypedef struct Closed:
    Rows** block  # those of the leaves from BLOCK · first on
    int64_t first
    int blocks
    int room
    int64_t bytes  # of all of them

cdef Any any_op


cdef class AmtaBuckets

ctypedef fused Forest:
    AmtaBuckets

ctypedef fused Op:
    Any


@cython.final
cdef class AmtaBuckets(Engine):
    """Leaves head … tail − 1, the upper part of their forest, its stack and its result pair."""

    cdef Closed closed
    cdef bint packs
    cdef int64_t placed  # the leaf that is `newest`
    cdef int64_t looked_at  # the one that is `oldest`, -1: none
    cdef bint has_large
    cdef Pool* pool  # of the levels' chunks; NULL: there is no level yet
    cdef Queue* level  # from KEPT_FROM on
    cdef int levels  # how many there is room for
    cdef int depth  # levels that hold a node
    cdef int room  # elements the stack can hold
    cdef int stacked
    cdef bint has_right
    cdef bint has_base
    cdef bint stale  # the newest leaf has changed since R0 and R1 were taken
    cdef Slot* left  # R0; behind `spare`, as all that follows but `own_made`
    cdef Slot* right  # R1, always base and then the newest leaf, until `rest` takes its place
    cdef Slot* base_of_right
    cdef Slot* newest
    cdef Slot* oldest
    cdef Slot* own_made  # where leaves are not packed: two more are for `ask`
    cdef Slot* stack

    def __dealloc__(self):
        cdef int i
        for i in range(self.levels):
            clear(self.pool, &self.level[i])
            free(self.level[i].chunk)
        if self.pool != NULL:
            release(self.pool)
        free(self.pool)
        free(self.level)
        free(self.own_made)
        let_all_go(&self.closed)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        """Nothing is allocated before the first bucket."""
        self.p, self.slide_by, self.has_large = p, slide_any, limit == 0 or limit > LARGE_LIMIT
        self.packs, self.placed, self.looked_at = may_pack(p), -1, -1
        if not self.packs:
            self.own_made = <Slot*> malloc((MADE + 2) * p.width * sizeof(Slot))
            if self.own_made == NULL:
                raise MemoryError(f"amta: no memory for {MADE + 2} buckets of {p.width} slots")
        return 0

    # insertion and eviction

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Insert a leaf (Algorithm 3)."""
        self.return_spare(1)
        make_room(self, self.tail + 1)
        if self.head < self.tail and keep_leaf(self, &self.closed, self.newest, self.placed) < 0:
            with gil:
                raise MemoryError(f"amta: no memory for the buckets up to {self.tail}")
        self.placed = self.tail
        copy(self.p, self.newest, leaf)
        insert(self, any_op)
        return 0

    cdef void touched(self) noexcept nogil:
        self.stale = True

    cdef void pop_to(self, int64_t head) noexcept nogil:
        evict_to(self, any_op, head)

    cdef int bulk(self, Leaves leaves, void* context) noexcept nogil:
        cdef Slot room[2 * PACKED_MOST]
        self.asked = &room[0] if self.packs else self.own_made + MADE * self.p.width
        return evict_prefix(self, any_op, leaves, context)

    cdef void return_spare(self, int64_t chunks) noexcept nogil:
        while self.levels and self.pool.surplus and chunks > 0:
            give_back(self.pool)
            chunks -= 1

    # A2MTA II-D: level eviction

    cdef int coarsen(self) except -1 nogil:
        """Pairs and lone ends become leaves; the levels move down by one."""
        cdef int64_t index, first = self.head >> 1, end = ((self.tail - 1) >> 1) + 1
        cdef Closed halved
        cdef Slot* pair
        cdef bint found = True
        make_room(self, self.tail + 3)  # so far that the newest leaf's parent has its place
        pair = self.spare
        memset(&halved, 0, sizeof(Closed))
        refresh_spine(self)
        for index in range(first, end):
            pair_up(self, pair, 2 * index)
            found = found and (index == end - 1 or keep_leaf(self, &halved, pair, index) == 0)
        if not found:
            let_all_go(&halved)
            with gil:
                raise MemoryError(f"amta: no memory for {end - first} buckets of two each")
        let_all_go(&self.closed)
        self.closed, self.placed, self.looked_at = halved, end - 1, -1
        copy(self.p, self.newest, pair)
        if self.levels:  # the lowest that is kept is not kept any more
            clear(self.pool, self.level)
            free(self.level[0].chunk)
            memmove(self.level, self.level + 1, (self.levels - 1) * sizeof(Queue))
            memset(self.level + self.levels - 1, 0, sizeof(Queue))
        self.return_spare(INT64_MAX)
        self.head, self.tail = first, end - 1
        raise_placed(self, any_op)
        self.tail = end
        measure(self)
        rebuild(self, any_op)
        return 0

    # answers

    cdef const Slot* total(self) noexcept nogil:
        return total_of(self, any_op)

    cdef const Slot* rest(self) noexcept nogil:
        cdef const Slot* found = rest_of(self, any_op)
        self.stale = self.has_right
        return found

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return leaf_at(self, index)

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t partials = BESIDE_STACK + self.room if self.spare != NULL else 0
        cdef int64_t rings = self.closed.bytes + self.closed.room * <int64_t> sizeof(void*)
        cdef int i
        for i in range(self.levels):
            rings += ring_bytes(&self.level[i]) + <int64_t> sizeof(Queue)
        if self.levels:
            rings += self.pool.held + <int64_t> sizeof(Pool)
        partials += 0 if self.packs else MADE + 2
        return partials * self.p.width * <int64_t> sizeof(Slot) + rings

    cdef const Slot* result(self, int side) noexcept nogil:
        return result_of(self, any_op, side)

    cdef int begin(self, int64_t head) except -1:
        cdef int i
        for i in range(self.levels):
            clear(self.pool, &self.level[i])
        let_all_go(&self.closed)
        self.placed = self.looked_at = -1
        self.depth = self.stacked = 0
        self.has_right = self.has_base = self.stale = False
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        rebuild(self, any_op)
        if left != NULL:
            take_over(self, any_op, left, right)
        return 0


# nodes

cdef inline Queue* queue_of(AmtaBuckets self, int level) noexcept nogil:
    """Of a level of nodes that is kept."""
    return self.level + (level - KEPT_FROM)


cdef inline Slot* made_at(AmtaBuckets self, int level, int64_t index) noexcept nogil:
    """Where one of a level is made that is not kept: it lasts until another one of its level is, but its neighbour."""
    return (<Slot*> made_here() if self.packs else self.own_made) + (2 * level + (index & 1)) * self.p.width


cdef inline Slot* leaf_at(AmtaBuckets self, int64_t index) noexcept nogil:
    """The newest and the oldest last, another one as what is made."""
    if index == self.placed:
        return self.newest
    if not self.packs or index != self.head:
        return unpacked(self, &self.closed, made_at(self, 0, index), index)
    if index != self.looked_at:
        unpacked(self, &self.closed, self.oldest, index)
        self.looked_at = index
    return self.oldest


cdef inline Slot* spot(AmtaBuckets self, int level, int64_t index, int w) noexcept nogil:
    """A leaf, a node that is kept, or one that is made now."""
    cdef Slot* out
    if level == 0:
        return leaf_at(self, index)
    if level >= KEPT_FROM:
        return at(queue_of(self, level), w, index)
    out = made_at(self, level, index)
    combine_node(self, out, level, index)
    return out


cdef void combine_node(AmtaBuckets self, Slot* out, int level, int64_t index) noexcept nogil:
    cdef int64_t child = 2 * index
    cdef int w = self.p.width
    if level == 1:
        pair_up(self, out, child)
    elif child < self.head >> (level - 1):
        copy(self.p, out, spot(self, level - 1, child + 1, w))
    else:
        combine(self.p, out, spot(self, level - 1, child, w), spot(self, level - 1, child + 1, w))


cdef inline void pair_up(AmtaBuckets self, Slot* out, int64_t index) noexcept nogil:
    """Of leaf `index` and the one behind it what is there."""
    if index < self.head:
        copy(self.p, out, self.leaf(index + 1))
    elif index + 1 == self.tail:
        copy(self.p, out, self.leaf(index))
    else:
        combine(self.p, out, self.leaf(index), self.leaf(index + 1))


# what else the forest asks

cdef inline bint leave(AmtaBuckets self, int64_t head, bint one) noexcept nogil:
    """What lies wholly before the head is given back."""
    cdef int i
    self.head = head
    if one and head & 1 and head < self.tail:  # two leaves are given back at once
        return True
    if head == self.tail:  # the next leaf need not be the one behind those that there were
        let_all_go(&self.closed)
    let_go(self, &self.closed, head)
    for i in range(self.levels if not one or not head & ((1 << KEPT_FROM) - 1) else 0):
        drop(self.pool, &self.level[i], head >> (i + KEPT_FROM))
    return True


cdef inline bint begins(AmtaBuckets self, int level, int64_t index) noexcept nogil:
    return False


cdef inline void fill(AmtaBuckets self, int level, int64_t index) noexcept nogil:
    pass


# room

cdef int make_room(AmtaBuckets self, int64_t tail) except -1 nogil:
    """Reserve what the leaves up to `tail` and the nodes above them need."""
    cdef int level = 0
    cdef int64_t index, last
    cdef bint found = has_stack(self, most_stacked(tail - self.head))
    while found:
        index, last = max(end_of(self.tail, level), self.head >> level), end_of(tail, level) - 1
        if index > last:
            return 0
        found = level < KEPT_FROM + self.levels or widen(self, level)
        if found and level >= KEPT_FROM and not has_room(queue_of(self, level), last):
            found = (
                reserve(self.pool, queue_of(self, level), index) == 0
                and reserve(self.pool, queue_of(self, level), last) == 0
            )
        level += 1
    with gil:
        raise MemoryError(f"amta: no memory for the buckets up to {tail} at level {level - 1}")


cdef inline int most_stacked(int64_t leaves) noexcept nogil:
    """What is stacked are whole nodes of different levels, and as many leaves as the largest has lie behind them."""
    return bits((leaves + 1) // 3)


cdef inline bint has_stack(AmtaBuckets self, int room) noexcept nogil:
    """Room for so many partials on the stack, and for those before it; False: no memory."""
    cdef int w = self.p.width
    cdef Slot* partials
    if self.spare != NULL and room <= self.room:
        return True
    partials = <Slot*> realloc(self.spare, (BESIDE_STACK + room) * w * sizeof(Slot))
    if partials == NULL:
        return False
    self.spare, self.room = partials, room
    self.right, self.left, self.base_of_right = partials + w, partials + 2 * w, partials + 3 * w
    self.newest, self.oldest = partials + 4 * w, partials + 5 * w
    self.stack = partials + BESIDE_STACK * w
    return True


cdef inline bint widen(AmtaBuckets self, int level) noexcept nogil:
    """A queue for this level, which is kept; False: no memory."""
    cdef int levels = level - KEPT_FROM + 1, shift = 7
    cdef Queue* queues
    if self.pool == NULL:
        self.pool = <Pool*> malloc(sizeof(Pool))
        if self.pool == NULL:
            return False
        while shift > 2 and (self.p.width << shift) > LONGEST_CHUNK:
            shift -= 1
        shape_by(self.pool, self.p.width, max(0, shift - 6), shift, self.has_large)
        self.pool.spare = 0
    queues = <Queue*> realloc(self.level, levels * sizeof(Queue))
    if queues == NULL:
        return False
    memset(queues + self.levels, 0, (levels - self.levels) * sizeof(Queue))
    self.level, self.levels = queues, levels
    return True


include "amta_packed.pxi"
include "amta_forest.pxi"
