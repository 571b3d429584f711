"""DABA Lite in compiled code: DABA with one partial an element.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 3 an insert, 2 an eviction (DABA's
own bounds are 1, 4, 3); n + 2 partials in one chunked queue, and n times or leaves where the policy asks for the oldest.
Source: paper DABA, Figure 10, where sublists R and B keep their leaves and two sums stand beside them: of R and A
together, which the reversal adds to L, and of B. The readable twin is sluicegate.reference.daba_lite.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.chunks cimport at
from sluicegate.engines.daba cimport check_sizes
from sluicegate.engines.lite cimport Lite
from sluicegate.engines.program cimport Program, Slot, combine, copy


@cython.final
cdef class DabaLite(Lite):
    """An element is a leaf or an aggregate, by its sublist."""

    def __dealloc__(self):
        free(self.sums)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Lite.setup(self, p, limit)
        self.l = self.r = self.a = self.b = 0
        self.has_b = False
        self.sums = <Slot*> calloc(2 * p.width, sizeof(Slot))
        if self.sums == NULL:
            raise MemoryError(f"daba_lite: no memory for 2 partials of {p.width} slots")
        self.sum_b, self.sum_ra = self.sums, self.sums + p.width
        return 0

    cdef inline Slot* element(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back list, then one step of the reversal."""
        self.append(leaf)
        if self.has_b:
            combine(self.p, self.sum_b, self.sum_b, leaf)
        else:
            copy(self.p, self.sum_b, leaf)
            self.has_b = True
        self.fixup()
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front list, then one step of the reversal."""
        if self.head == self.tail:
            return
        self.drop_oldest()
        self.fixup()

    cdef inline void fixup(self) noexcept nogil:
        cdef Slot* sums = self.sum_ra
        if self.head == self.b:  # singleton, or empty
            self.l = self.r = self.a = self.b = self.tail
            self.has_b = False
            return
        if self.l == self.b:  # flip
            self.l, self.a, self.b = self.head, self.tail, self.tail
            self.sum_ra, self.sum_b = self.sum_b, sums
            self.has_b = False
        if self.l == self.r:  # shift
            self.l += 1
            self.r += 1
            self.a += 1
        else:
            self.shrink()

    cdef void shrink(self) noexcept nogil:
        """Move the first of L to the front, and the last of R to A."""
        cdef Slot* front = self.element(self.l)
        combine(self.p, front, front, self.sum_ra)
        self.l += 1
        self.a -= 1
        if self.a + 1 < self.b:
            combine(self.p, self.element(self.a), self.element(self.a), self.element(self.a + 1))

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail:
            return NULL
        if self.head == self.b:
            return self.sum_b
        return self.with_back(self.element(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        """The total from the next element on, which may be the first of sublist L."""
        cdef int64_t after = self.head + 1
        cdef Slot* out = self.spare + self.p.width
        if after >= self.b:
            return self.sum_b if self.has_b else NULL
        if after == self.l and self.l < self.r:
            combine(self.p, out, self.element(after), self.sum_ra)
            return self.with_back(out, out)
        return self.with_back(self.element(after), out)

    cdef inline const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil:
        if not self.has_b:
            return front
        combine(self.p, out, front, self.sum_b)
        return out

    cdef int begin(self, int64_t head) except -1:
        self.l = self.r = self.a = self.b = head
        self.has_b = False
        return Lite.begin(self, head)

    cdef int check(self) except -1:
        """The size invariants (Lemma 4.1), and the back list's sum."""
        cdef int64_t index
        check_sizes(self, self.l, self.r, self.a, self.b)
        self.insist(self.has_b == (self.b < self.tail), f"a back list after {self.b}")
        for index in range(self.b, self.tail):
            if index == self.b:
                copy(self.p, self.spare, self.element(index))
            else:
                combine(self.p, self.spare, self.spare, self.element(index))
        return self.insist(not self.has_b or self.same(self.spare, self.sum_b), "the back list's sum is not its leaves'")
