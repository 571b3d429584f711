"""A FIFO of buckets in which any neighbouring pair may be merged, compiled.

Fact card: FIFO and merging in the middle; associative operation; insert, eviction and merge O(log n) combines expected,
join and total O(1), rest O(log n) once a change; 2n partials in chunks that are never moved. A treap (Seidel & Aragon
1996) whose priorities are a hash of the first ordinal: its shape, and so every bit of an answer, follows from the
buckets alone. The readable twin is tests/native/twins/pairs.py.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free, malloc

from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Program, Slot, combine, copy
from sluicegate.engines.tree.widths cimport Term, beyond, extreme, further, is_extreme, nothing, reach, weight

import struct

cdef enum:
    S_REST = 1  # places of `spare`: total is at 0
    S_CLOSED = 2  # the closed buckets but the oldest
    S_PAIR = 3

_head = struct.Struct("<3q")


@cython.final
cdef class Pairs(Engine):
    """The closed buckets' treap, each also linked to its neighbours, and the open bucket."""

    def __dealloc__(self):
        cdef void** chunk = self.chunk
        while chunk != NULL:
            self.chunk = <void**> chunk[0]
            free(chunk)
            chunk = self.chunk
        free(self.terms)
        free(self.base)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.a_chunk = min(max(<int64_t> 8, limit >> 3), <int64_t> 256)
        return 0

    cdef int measure(self, terms) except -1:
        """Take the widths that a merge is judged by (sluicegate.histograms.widths.Term)."""
        cdef int k
        self.m = len(terms)
        self.terms = <Term*> calloc(max(self.m, 1), sizeof(Term))
        self.base = <double*> calloc(max(5 * self.m, 1), sizeof(double))
        if self.terms == NULL or self.base == NULL:
            raise MemoryError("pairs: no memory for the widths")
        for k, term in enumerate(terms):
            self.terms[k].width, self.terms[k].prefix, self.terms[k].low, self.terms[k].high = term[:4]
            self.terms[k].last, self.terms[k].ends, self.terms[k].timed = term[4:]
            self.terms[k].scale = 1.0
            self.hiding = self.hiding or (self.m > 1 and is_extreme(&self.terms[k]))
        self.later, self.behind = self.base + self.m, self.base + 2 * self.m
        self.between, self.known = self.base + 3 * self.m, self.base + 4 * self.m
        forget_behind(self)
        return 0

    # nodes

    cdef inline Slot* partial(self, Node* node) noexcept nogil:
        return <Slot*> (node + 1)

    cdef inline Slot* all(self, Node* node) noexcept nogil:
        """The partial of a node's subtree."""
        return <Slot*> (node + 1) + self.p.width

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t chunk = sizeof(Slot) + self.a_chunk * record(self)
        return Engine.bytes(self) + self.chunks * chunk + self.m * <int64_t> (sizeof(Term) + 5 * sizeof(double))

    # the contract

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Append a bucket; the one before it is closed now."""
        cdef Node* node = take(self)
        cdef Node* last = self.newest
        if node == NULL:
            with gil:
                raise MemoryError(f"pairs: no memory for {self.a_chunk} buckets beside {self.tail - self.head}")
        copy(self.p, self.partial(node), leaf)
        node.before = last
        self.newest = node
        if last == NULL:
            self.oldest = node
        else:
            last.after = node
            close(self, last)
        self.tail += 1
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        cdef Slot* open = self.partial(self.newest)
        combine(self.p, open, open, reading)

    cdef void pop(self) noexcept nogil:
        cdef Node* gone = self.oldest
        unlink(self, gone)
        if gone == self.newest:
            self.newest = NULL
            forget_behind(self)
        else:
            remove(self, gone)
        self.rest_known = False
        give(self, gone)
        self.head += 1

    cdef void pop_newest(self) noexcept nogil:
        cdef Node* gone = self.newest
        cdef Node* open = gone.before
        cdef int k
        unlink(self, gone)
        self.newest = open
        if open != NULL:
            remove(self, open)
            open.left = open.right = open.up = open.cheapest = NULL
            open.paired = False
        if open != NULL and open.before != NULL:
            price(self, open.before)
            choose_from(self, open.before)
        if open == NULL:
            forget_behind(self)
        for k in range(self.m if open != NULL else 0):
            self.known[k] = self.base[k]
            if is_extreme(&self.terms[k]):
                self.base[k] = extreme(&self.terms[k], self.partial(open))
        self.look += 1
        for k in range(self.m if self.hiding and open != NULL else 0):
            if self.base[k] != self.known[k]:
                reveal(self, k, open.before, self.known[k])
        self.rest_known = False
        give(self, gone)
        self.tail -= 1

    cdef bint wants(self, const Slot* leaf) noexcept nogil:
        cdef Node* first = least(self)
        cdef int64_t size = self.partial(self.newest)[H_COUNT].i + leaf[H_COUNT].i
        cdef double cost
        look_behind(self, self.newest)
        cost = added(self, self.partial(self.newest), leaf)
        if cost > first.cost or (cost == first.cost and size >= first.size):
            return False
        self.merges += 1
        return True

    cdef int merge(self) noexcept nogil:
        cdef Node* first = least(self)
        cdef Node* second = first.after
        cdef Node* lowest
        cdef Node* above
        cdef int touched, k
        touched = (OLDEST if first == self.oldest else 0) | (NEWEST if second == self.newest else 0)
        self.merges += 1
        self.tail -= 1
        if second == self.newest:
            combine(self.p, self.partial(second), self.partial(first), self.partial(second))
            second.state = TOOK
            for k in range(self.m if self.hiding else 0):
                if is_extreme(&self.terms[k]):
                    self.base[k] = further(&self.terms[k], self.base[k], extreme(&self.terms[k], self.partial(first)))
            unlink(self, first)
            remove(self, first)
            give(self, first)
            first = second
        else:
            combine(self.p, self.partial(first), self.partial(first), self.partial(second))
            first.state = TOOK
            unlink(self, second)
            lowest = detach(self, second)
            give(self, second)
            price(self, first)
            above = lowest
            while above != NULL and above != first:
                above = above.up
            refresh_from(self, lowest if above == first else first)  # both lie on one way up
        if first.before != NULL:
            price(self, first.before)
            choose_from(self, first.before)
        return touched

    cdef const Slot* total(self) noexcept nogil:
        if self.newest == NULL:
            return NULL
        if self.root == NULL:
            return self.partial(self.newest)
        combine(self.p, self.spare, self.all(self.root), self.partial(self.newest))
        return self.spare

    cdef const Slot* rest(self) noexcept nogil:
        cdef const Slot* closed
        cdef Slot* out = self.spare + S_REST * self.p.width
        if self.oldest == self.newest:
            return NULL
        closed = closed_rest(self)
        if closed == NULL:
            return self.partial(self.newest)
        combine(self.p, out, closed, self.partial(self.newest))
        return out

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return self.partial(find(self, index))

    cdef int take_state(self, int64_t index) noexcept nogil:
        cdef Node* node = find(self, index)
        cdef int state = node.state
        node.state = GIVEN
        return state

    # storage

    cdef int begin(self, int64_t head) except -1:
        cdef Node* node = self.oldest
        cdef Node* after
        while node != NULL:
            after = node.after
            give(self, node)
            node = after
        self.root = self.oldest = self.newest = self.cursor = NULL
        self.rest_known = False
        forget_behind(self)
        return Engine.begin(self, head)

    cdef int finish(self, const Slot* left, const Slot* right) except -1:
        """Rows may be left of what a bucket took over before: when it is given out, they are told to be of no use."""
        cdef Node* node = self.oldest
        while node != NULL:
            node.state = TOOK
            node = node.after
        return 0

    def state(self):
        """Ordinal of the oldest bucket, merges, when the scales are taken anew, scales; 8 bytes little-endian each."""
        cdef int k
        first = 0 if self.oldest == NULL else self.partial(self.oldest)[H_O_FIRST].i
        scales = [self.terms[k].scale for k in range(self.m)]
        return _head.pack(first, self.merges, self.due) + struct.pack(f"<{self.m}d", *scales)

    def load(self, bytes data not None):
        """Take over a state, before the buckets. Raises ValueError for another length, or scales that cannot be."""
        cdef int k
        if len(data) != self.size:
            raise ValueError(f"state of merged pairs of {len(data)} bytes, expected {self.size}")
        _, merges, due = _head.unpack_from(data)
        scales = struct.unpack_from(f"<{self.m}d", data, _head.size)
        if not 0 <= merges <= 2**62 or not 0 <= due <= 2**62 or not all(scale >= 0.0 for scale in scales):
            raise ValueError(f"{merges} merges, scales {scales}, expected none below 0")
        self.merges, self.due = merges, due
        for k in range(self.m):
            self.terms[k].scale = scales[k]

    @property
    def size(self):
        """Bytes of a state."""
        return _head.size + 8 * self.m


cdef Node* least(Pairs self) noexcept nogil:
    """The first of the pair that adds least, the open bucket's among them."""
    cdef Node* first
    look_at_newest(self)
    if self.m > 1 and self.merges >= self.due:
        rescale(self)
    first = self.newest.before
    price(self, first)
    if self.root.cheapest != NULL and not cheaper(first, self.root.cheapest):
        first = self.root.cheapest
    return first


cdef Node* find(Pairs self, int64_t index) noexcept nogil:
    """Both ends at once; between them from where it looked last."""
    if index == self.tail - 1:
        return self.newest
    if index == self.head:
        return self.oldest
    if self.cursor == NULL or index < self.place:
        self.cursor, self.place = self.oldest, self.head
    while self.place < index:
        self.cursor, self.place = self.cursor.after, self.place + 1
    return self.cursor


cdef inline size_t record(Pairs self) noexcept nogil:
    return sizeof(Node) + 2 * self.p.width * sizeof(Slot)


cdef Node* take(Pairs self) noexcept nogil:
    cdef Node* node
    cdef void** chunk
    cdef int64_t i
    if self.free == NULL:
        chunk = <void**> malloc(sizeof(Slot) + self.a_chunk * record(self))
        if chunk == NULL:
            return NULL
        chunk[0] = <void*> self.chunk
        self.chunk, self.chunks = chunk, self.chunks + 1
        for i in range(self.a_chunk):
            give(self, <Node*> (<char*> chunk + sizeof(Slot) + i * record(self)))
    node = self.free
    self.free = node.after
    node.left = node.right = node.up = node.before = node.after = node.cheapest = NULL
    node.paired, node.state, node.look = False, FRESH, self.look
    return node


cdef inline void give(Pairs self, Node* node) noexcept nogil:
    node.after = self.free
    self.free = node


cdef void unlink(Pairs self, Node* node) noexcept nogil:
    if node.before != NULL:
        node.before.after = node.after
    else:
        self.oldest = node.after
    if node.after != NULL:
        node.after.before = node.before
    self.cursor = NULL


cdef const Slot* closed_rest(Pairs self) noexcept nogil:
    """What stands right of each node on the way from the oldest bucket up; kept until a closed bucket changes."""
    cdef Slot* out = self.spare + S_CLOSED * self.p.width
    cdef Node* node = self.oldest
    cdef bint started = self.rest_known or node.right != NULL
    if self.rest_known:
        return out if self.oldest.after != self.newest else NULL
    if node.right != NULL:
        copy(self.p, out, self.all(node.right))
    while node.up != NULL:
        node = node.up
        if started:
            combine(self.p, out, out, self.partial(node))
        else:
            copy(self.p, out, self.partial(node))
        started = True
        if node.right != NULL:
            combine(self.p, out, out, self.all(node.right))
    self.rest_known = True
    return out if started else NULL


include "pairs_tree.pxi"
include "pairs_costs.pxi"
