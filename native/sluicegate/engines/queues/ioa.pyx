"""The Imperative Okasaki Aggregator in compiled code: FOA without laziness or copies.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction; n leaves
in chunks, and a cell of a partial and 3 words for each. Source: paper DABA, 3.2. The readable twin, which tells why
cells may be reused, is sluicegate.reference.engines.ioa.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport Queued, drop_before

cdef enum:
    BLOCK = 256  # cells


@cython.final
cdef class Ioa(Queued):
    """Lists F (the oldest first) and B (the newest first), N within F, and the lists of a rotation under way."""

    def __dealloc__(self):
        cdef void* block
        while self.blocks != NULL:
            block = self.blocks
            self.blocks = (<void**> block)[0]
            free(block)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.f = self.n = self.b = self.last = self.left = self.right = self.done = self.free_links = NULL
        self.blocks, self.block_count = NULL, 0
        return 0

    cdef int reserve_links(self) noexcept nogil:
        """Make sure of a cell; −1: no memory."""
        cdef size_t size = sizeof(Link) + self.size
        cdef char* block
        cdef Link* link
        cdef int k
        if self.free_links != NULL:
            return 0
        block = <char*> malloc(sizeof(void*) + BLOCK * size)
        if block == NULL:
            return -1
        (<void**> block)[0] = self.blocks
        self.blocks = block
        self.block_count += 1
        for k in range(BLOCK):
            link = <Link*> (block + sizeof(void*) + k * size)
            link.agg = <Slot*> (link + 1)
            link.next = self.free_links
            self.free_links = link
        return 0

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back list, then one step of the rotation."""
        cdef Link* link
        if self.reserve_links() < 0:
            with gil:
                raise MemoryError(f"ioa: no memory for {BLOCK} cells")
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        link = self.free_links
        self.free_links = link.next
        link.index = self.tail
        if self.b == NULL:
            copy(self.p, link.agg, leaf)
        else:
            combine(self.p, link.agg, self.b.agg, leaf)
        link.next = self.b
        self.b = link
        self.tail += 1
        self.makeq()
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front list, then one step of the rotation."""
        cdef Link* oldest = self.f
        if self.head == self.tail:
            return
        self.f = self.next_of(oldest)
        self.makeq()
        oldest.next = self.free_links
        self.free_links = oldest
        self.head += 1
        drop_before(&self.pool, &self.queue, self.head)

    cdef inline Link* next_of(self, Link* link) noexcept nogil:
        if link == self.last:
            self.rotate()
        return link.next

    cdef void makeq(self) noexcept nogil:
        if self.n != NULL:
            self.n = self.next_of(self.n)
            return
        if self.b != NULL:
            self.left, self.right = self.f, self.b
            self.done = self.b = self.last = NULL
            self.f = self.rotate()
        self.n = self.f

    cdef Link* rotate(self) noexcept nogil:
        """Move one element of `right` to `done`, and the first of `left`, or `done` itself, to the end of F."""
        cdef Link* left = self.left
        cdef Link* turned = self.right
        cdef Link* added = turned
        self.right = turned.next
        if left != NULL:
            if self.done != NULL:
                combine(self.p, turned.agg, turned.agg, self.done.agg)
            combine(self.p, left.agg, left.agg, turned.agg)
            self.left, added = left.next, left
        copy(self.p, turned.agg, self.leaf(turned.index))
        if self.done != NULL:
            combine(self.p, turned.agg, turned.agg, self.done.agg)
        turned.next = self.done
        self.done = turned
        if self.last != NULL:
            self.last.next = added
        self.last = left
        return added

    cdef const Slot* total(self) noexcept nogil:
        return self.both(self.f, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        return NULL if self.f == NULL else self.both(self.next_of(self.f), self.spare + self.p.width)

    cdef const Slot* both(self, const Link* front, Slot* out) noexcept nogil:
        if front == NULL or self.b == NULL:
            return front.agg if front != NULL else self.b.agg if self.b != NULL else NULL
        combine(self.p, out, front.agg, self.b.agg)
        return out

    cdef int64_t bytes(self) noexcept nogil:
        return Queued.bytes(self) + self.block_count * <int64_t> (sizeof(void*) + BLOCK * (sizeof(Link) + self.size))

    cdef int begin(self, int64_t head) except -1:
        while self.last != NULL:
            self.rotate()
        self.free_list(self.f)
        self.free_list(self.b)
        self.f = self.n = self.b = NULL
        return Queued.begin(self, head)

    cdef void free_list(self, Link* link) noexcept nogil:
        cdef Link* after
        while link != NULL:
            after = link.next
            link.next = self.free_links
            self.free_links = link
            link = after

    # invariants

    cdef int check(self) except -1:
        """|N| = |F| − |B|; the leaves in order; B is folded from its end. A suspended rotation stays so."""
        cdef const Link* link = self.b
        cdef list front = self.front_of(self.f), todo = self.front_of(self.n), back = walk(self.b)
        sizes = f"|F|, |N|, |B| are {len(front)}, {len(todo)}, {len(back)}"
        self.insist(len(todo) == len(front) - len(back), sizes)
        whole = front + back[::-1]
        self.insist(whole == list(range(self.head, self.tail)), "its lists do not hold the leaves in order")
        while link != NULL:
            copy(self.p, self.spare, self.leaf(link.index))
            if link.next != NULL:
                combine(self.p, self.spare, link.next.agg, self.spare)
            if not self.same(self.spare, link.agg):
                self.insist(False, f"aggregate of {link.index} in the back list")
            link = link.next
        return 0

    cdef list front_of(self, const Link* link):
        cdef list found = []
        while link != NULL:
            found.append(link.index)
            if link == self.last:
                return found + walk(self.left) + walk(self.right)[::-1] + walk(self.done)
            link = link.next
        return found


cdef list walk(const Link* link):
    cdef list found = []
    while link != NULL:
        found.append(link.index)
        link = link.next
    return found
