"""The Reactive Aggregator over FlatFAT in compiled code: a flat tree that doubles and halves with the window.

Fact card: FIFO as used here; associative operation; insert, eviction and query O(log n), O(n) where the tree is
resized; up to 8n partials in one array. Source: paper DABA, Section 5 (its [27]: Tangwongsan et al., General
Incremental Sliding-Window Aggregation, 2015).

Node k's children are 2k and 2k + 1; leaf index is node capacity + (index & (capacity − 1)). A node is there where a
leaf below it is.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from sluicegate.engines.base cimport Engine
from sluicegate.partials.program cimport Program, Slot, combine, copy

from sluicegate.errors import InvariantError

cdef enum:
    LEAST = 4


@cython.final
cdef class Reactive(Engine):
    """Leaves head … tail − 1 and the nodes above them."""

    cdef int64_t capacity
    cdef Slot* nodes  # 2 · capacity partials
    cdef char* there  # 1 where a node is there

    def __dealloc__(self):
        free(self.nodes)
        free(self.there)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        self.capacity, self.nodes, self.there = 0, NULL, NULL
        if self.resize(LEAST) < 0:
            raise MemoryError(f"reactive: no memory for {2 * LEAST} partials of {p.width} slots")
        return 0

    cdef inline int64_t place(self, int64_t index) noexcept nogil:
        return self.capacity + (index & (self.capacity - 1))

    cdef inline Slot* node(self, int64_t k) noexcept nogil:
        return self.nodes + k * self.p.width

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return self.node(self.place(index))

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Set the next leaf, then its ancestors."""
        cdef int64_t k
        if self.tail - self.head == self.capacity and self.resize(2 * self.capacity) < 0:
            with gil:
                raise MemoryError(f"reactive: no memory for a tree of {2 * self.capacity} leaves")
        k = self.place(self.tail)
        copy(self.p, self.node(k), leaf)
        self.there[k] = 1
        self.set_above(k)
        self.tail += 1
        return 0

    cdef void pop(self) noexcept nogil:
        """Clear the oldest leaf, then set its ancestors."""
        cdef int64_t k = self.place(self.head)
        if self.head == self.tail:
            return
        self.there[k] = 0
        self.set_above(k)
        self.head += 1
        if self.capacity > LEAST and 4 * (self.tail - self.head) <= self.capacity:
            self.resize(self.capacity >> 1)  # without the memory for it, the tree stays as large as it is

    cdef inline void set_pair(self, int64_t k) noexcept nogil:
        cdef bint first = self.there[2 * k], second = self.there[2 * k + 1]
        self.there[k] = first or second
        if first and second:
            combine(self.p, self.node(k), self.node(2 * k), self.node(2 * k + 1))
        elif first or second:
            copy(self.p, self.node(k), self.node(2 * k + second))

    cdef void set_above(self, int64_t k) noexcept nogil:
        while k > 1:
            k >>= 1
            self.set_pair(k)

    cdef int resize(self, int64_t capacity) noexcept nogil:
        """The same leaves in a tree of another size; −1: no memory, nothing has changed."""
        cdef Slot* before = self.nodes
        cdef Slot* nodes = <Slot*> calloc(2 * capacity * self.p.width, sizeof(Slot))
        cdef char* there = <char*> calloc(2 * capacity, 1)
        cdef int64_t index, k, old = self.capacity
        if nodes == NULL or there == NULL:
            free(nodes)
            free(there)
            return -1
        free(self.there)
        self.nodes, self.there, self.capacity = nodes, there, capacity
        for index in range(self.head, self.tail):
            k = self.place(index)
            copy(self.p, self.node(k), before + (old + (index & (old - 1))) * self.p.width)
            there[k] = 1
        free(before)
        for k in range(capacity - 1, 0, -1):
            self.set_pair(k)
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        """Fold a reading into the newest leaf."""
        cdef Slot* newest = self.leaf(self.tail - 1)
        combine(self.p, newest, newest, reading)
        self.touched()

    cdef void touched(self) noexcept nogil:
        self.set_above(self.place(self.tail - 1))

    cdef int coarsen(self) except -1 nogil:
        """Level eviction: pairs become leaves, and the tree is filled anew."""
        cdef int64_t index, k, first = self.head, end = self.tail
        cdef Slot* leaves = <Slot*> calloc((end - first) * self.p.width, sizeof(Slot))
        if leaves == NULL:
            with gil:
                raise MemoryError(f"reactive: no memory to evict a level of {end - first} leaves")
        for index in range(first, end):
            copy(self.p, leaves + (index - first) * self.p.width, self.leaf(index))
            self.there[self.place(index)] = 0
        self.head = self.tail = first >> 1
        for index in range(first, end):
            k = self.place(index >> 1)
            if index & 1 and index > first:
                combine(self.p, self.node(k), self.node(k), leaves + (index - first) * self.p.width)
                continue
            copy(self.p, self.node(k), leaves + (index - first) * self.p.width)
            self.there[k] = 1
            self.tail += 1
        free(leaves)
        for k in range(self.capacity - 1, 0, -1):
            self.set_pair(k)
        return 0

    cdef const Slot* total(self) noexcept nogil:
        """The root, or, where the ring wraps, the suffix from the oldest leaf on, then the prefix up to the newest."""
        cdef Slot* out = self.spare
        if self.head == self.tail:
            return NULL
        if self.place(self.head) <= self.place(self.tail - 1):
            return self.node(1)
        self.suffix(out, self.place(self.head))
        self.prefix(out + 2 * self.p.width, self.place(self.tail - 1))
        combine(self.p, out, out, out + 2 * self.p.width)
        return out

    cdef const Slot* rest(self) noexcept nogil:
        cdef Slot* out = self.spare + self.p.width
        cdef int64_t after = self.place(self.head + 1), last = self.place(self.tail - 1)
        if self.tail - self.head < 2:
            return NULL
        if self.place(self.head) <= last:
            self.suffix(out, after)
        elif after <= last:
            self.prefix(out, last)
        else:
            self.suffix(out, after)
            self.prefix(out + self.p.width, last)
            combine(self.p, out, out, out + self.p.width)
        return out

    cdef void suffix(self, Slot* out, int64_t k) noexcept nogil:
        """The leaves from node k's on, to the end of the ring."""
        copy(self.p, out, self.node(k))
        while k > 1:
            if not k & 1 and self.there[k + 1]:
                combine(self.p, out, out, self.node(k + 1))
            k >>= 1

    cdef void prefix(self, Slot* out, int64_t k) noexcept nogil:
        """The leaves from the beginning of the ring up to node k's."""
        copy(self.p, out, self.node(k))
        while k > 1:
            if k & 1 and self.there[k - 1]:
                combine(self.p, out, self.node(k - 1), out)
            k >>= 1

    cdef int64_t bytes(self) noexcept nogil:
        return Engine.bytes(self) + 2 * self.capacity * (self.p.width * <int64_t> sizeof(Slot) + 1)

    cdef int begin(self, int64_t head) except -1:
        Engine.begin(self, head)
        if self.resize(LEAST) < 0:
            raise MemoryError("reactive: no memory for an empty tree")
        return 0

    cdef int check(self) except -1:
        """Every node is its children combined; leaves are there exactly where the window is."""
        cdef int64_t k, n = self.tail - self.head, inside
        for k in range(self.capacity):
            inside = (k - self.head) & (self.capacity - 1)
            if self.there[self.capacity + k] != (inside < n):
                raise InvariantError(f"Reactive: leaf at {k}, the window holds {self.head} … {self.tail - 1}")
        for k in range(1, self.capacity):
            if self.there[k] != (self.there[2 * k] or self.there[2 * k + 1]):
                raise InvariantError(f"Reactive: node {k} is not there as its children are")
            if self.there[2 * k] and self.there[2 * k + 1]:
                combine(self.p, self.spare, self.node(2 * k), self.node(2 * k + 1))
                if memcmp(self.spare, self.node(k), self.p.width * sizeof(Slot)) != 0:
                    raise InvariantError(f"Reactive: node {k} is not its children combined")
        return 0
