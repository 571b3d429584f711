"""Two-Stacks Lite in compiled code: Two-Stacks with one partial an element.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
n + 1 partials in chunks, and n times or leaves where the policy asks for the oldest. Source: paper DABA, Figure 1, with
the leaf of a front element given up for its aggregate. The readable twin is sluicegate.reference.two_stacks_lite.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.chunks cimport at
from sluicegate.engines.lite cimport Lite
from sluicegate.engines.program cimport Program, Slot, combine, copy


@cython.final
cdef class TwoStacksLite(Lite):
    """Both stacks in one queue of partials."""

    def __dealloc__(self):
        free(self.back)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Lite.setup(self, p, limit)
        self.split, self.has_back = 0, False
        self.back = <Slot*> calloc(p.width, sizeof(Slot))
        if self.back == NULL:
            raise MemoryError(f"two_stacks_lite: no memory for a partial of {p.width} slots")
        return 0

    cdef inline Slot* element(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back; into an empty window, on the front."""
        self.append(leaf)
        if self.head == self.tail - 1:
            self.split = self.tail
        elif self.has_back:
            combine(self.p, self.back, self.back, leaf)
        else:
            copy(self.p, self.back, leaf)
            self.has_back = True
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front, and flip where it is empty."""
        if self.head == self.tail:
            return
        self.drop_oldest()
        if self.head == self.split and self.head < self.tail:
            self.flip()

    cdef void flip(self) noexcept nogil:
        """Turn the back's leaves into partials up to its end, newest first."""
        cdef int64_t index
        for index in range(self.tail - 2, self.head - 1, -1):
            combine(self.p, self.element(index), self.element(index), self.element(index + 1))
        self.split, self.has_back = self.tail, False

    cdef const Slot* total(self) noexcept nogil:
        return NULL if self.head == self.tail else self.with_back(self.element(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        if self.head + 1 < self.split and self.head < self.tail:
            return self.with_back(self.element(self.head + 1), self.spare + self.p.width)
        return self.back if self.has_back else NULL

    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil:
        if not self.has_back:
            return front
        combine(self.p, out, front, self.back)
        return out

    cdef int begin(self, int64_t head) except -1:
        self.has_back = False
        return Lite.begin(self, head)

    cdef int check(self) except -1:
        """A window that holds anything has a front; the back is folded from its leaves."""
        cdef int64_t index
        cdef bint some = self.head < self.tail
        self.insist(not some or self.head < self.split <= self.tail, f"the front ends at {self.split}")
        self.insist(self.has_back == (some and self.split < self.tail), f"a back after {self.split}")
        for index in range(self.split, self.tail if some else self.split):
            if index == self.split:
                copy(self.p, self.spare, self.element(index))
            else:
                combine(self.p, self.spare, self.spare, self.element(index))
        return self.insist(not self.has_back or self.same(self.spare, self.back), "the back's aggregate is not its leaves'")
