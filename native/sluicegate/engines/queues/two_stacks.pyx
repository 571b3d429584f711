"""Two-Stacks in compiled code: a front and a back stack, flipped when the front is empty.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
2n partials in chunks. Source: paper DABA, Figure 1. The readable twin is sluicegate.reference.engines.two_stacks.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport Queued, drop_before


@cython.final
cdef class TwoStacks(Queued):
    """Both stacks in one queue: an element is a leaf, and in the front also the partial up to the front's end."""

    def __dealloc__(self):
        free(self.back)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.split, self.has_back = 0, False
        self.back = <Slot*> calloc(p.width, sizeof(Slot))
        if self.back == NULL:
            raise MemoryError(f"two_stacks: no memory for a partial of {p.width} slots")
        return self.lay_out(2, limit)

    cdef inline Slot* front(self, int64_t index) noexcept nogil:
        """The partial of leaves index … split − 1."""
        return self.leaf(index) + self.p.width

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back; into an empty window, on the front."""
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        if self.head == self.tail:
            copy(self.p, self.front(self.tail), leaf)
            self.split = self.tail + 1
        elif self.has_back:
            combine(self.p, self.back, self.back, leaf)
        else:
            copy(self.p, self.back, leaf)
            self.has_back = True
        self.tail += 1
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front, and flip where it is empty."""
        if self.head == self.tail:
            return
        self.head += 1
        drop_before(&self.pool, &self.queue, self.head)
        if self.head == self.split and self.head < self.tail:
            self.flip()

    cdef void flip(self) noexcept nogil:
        """Move the back onto the front, newest first."""
        cdef int64_t index
        copy(self.p, self.front(self.tail - 1), self.leaf(self.tail - 1))
        for index in range(self.tail - 2, self.split - 1, -1):
            combine(self.p, self.front(index), self.leaf(index), self.front(index + 1))
        self.split, self.has_back = self.tail, False

    cdef const Slot* total(self) noexcept nogil:
        return NULL if self.head == self.tail else self.with_back(self.front(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        if self.head + 1 < self.split and self.head < self.tail:
            return self.with_back(self.front(self.head + 1), self.spare + self.p.width)
        return self.back if self.has_back else NULL

    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil:
        if not self.has_back:
            return front
        combine(self.p, out, front, self.back)
        return out

    cdef int begin(self, int64_t head) except -1:
        self.has_back = False
        return Queued.begin(self, head)

    cdef int check(self) except -1:
        """The front is folded from its end, the back from its beginning."""
        cdef int64_t index
        cdef bint some = self.head < self.tail
        self.insist(not some or self.head < self.split <= self.tail, f"the front ends at {self.split}")
        self.insist(self.has_back == (some and self.split < self.tail), f"a back after {self.split}")
        for index in range(self.head, self.split - 1 if some else self.head):
            combine(self.p, self.spare, self.leaf(index), self.front(index + 1))
            self.insist(self.same(self.spare, self.front(index)), f"front aggregate {index} is not what is below it")
        for index in range(self.split, self.tail if some else self.split):
            if index == self.split:
                copy(self.p, self.spare, self.leaf(index))
            else:
                combine(self.p, self.spare, self.spare, self.leaf(index))
        right = not self.has_back or self.same(self.spare, self.back)
        return self.insist(right, "the back's aggregate is not its leaves'")
