"""The De-Amortized Banker's Aggregator in compiled code.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction;
2n partials in one chunked queue. Source: paper DABA, Figures 8 to 10, Theorems 4.2 and 4.3. The readable twin is
tests/native/twins/daba.py.

DABA: pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail) cut one queue of leaves and aggregates into sublists.

The aggregate of p holds leaves p … B − 1 for p in F … L − 1, p … R − 1 in L … R − 1, R … p in R … A − 1, p … B − 1 in
A … B − 1, B … p in B … E − 1.
"""

cimport cython
from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport Queued, check_sizes, drop_before


@cython.final
cdef class Daba(Queued):
    """An element is a leaf and its aggregate."""

    cdef int64_t l
    cdef int64_t r
    cdef int64_t a
    cdef int64_t b

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.l = self.r = self.a = self.b = 0
        return self.lay_out(2, limit)

    cdef inline Slot* agg(self, int64_t index) noexcept nogil:
        return self.leaf(index) + self.p.width

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back list, then one step of the reversal."""
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        if self.b < self.tail:
            combine(self.p, self.agg(self.tail), self.agg(self.tail - 1), leaf)
        else:
            copy(self.p, self.agg(self.tail), leaf)
        self.tail += 1
        self.fixup()
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front list, then one step of the reversal."""
        if self.head == self.tail:
            return
        self.head += 1
        drop_before(&self.pool, &self.queue, self.head)
        self.fixup()

    cdef inline void fixup(self) noexcept nogil:
        if self.head == self.b:  # singleton, or empty
            self.l = self.r = self.a = self.b = self.tail
            return
        if self.l == self.b:  # flip
            self.l, self.a, self.b = self.head, self.tail, self.tail
        if self.l == self.r:  # shift
            self.l += 1
            self.r += 1
            self.a += 1
        else:
            self.shrink()

    cdef void shrink(self) noexcept nogil:
        """Move the first of L to the front, and the last of R to A."""
        cdef Slot* front = self.agg(self.l)
        self.reach(front, front)
        self.l += 1
        self.a -= 1
        if self.a + 1 < self.b:
            combine(self.p, self.agg(self.a), self.leaf(self.a), self.agg(self.a + 1))
        else:
            copy(self.p, self.agg(self.a), self.leaf(self.a))

    cdef void reach(self, Slot* out, const Slot* front) noexcept nogil:
        """An aggregate of L, which ends before R, taken on over R and A to B; R is as long as L, so not empty."""
        cdef Slot* beyond = self.spare + 2 * self.p.width
        if self.a < self.b:
            combine(self.p, beyond, self.agg(self.a - 1), self.agg(self.a))
            combine(self.p, out, front, beyond)
        else:
            combine(self.p, out, front, self.agg(self.a - 1))

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail:
            return NULL
        if self.head == self.b:
            return self.agg(self.tail - 1)
        return self.with_back(self.agg(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        """The total from the next element on, which may be the first of sublist L."""
        cdef int64_t after = self.head + 1
        cdef Slot* out = self.spare + self.p.width
        if after >= self.b:
            return self.agg(self.tail - 1) if self.b < self.tail else NULL
        if after == self.l and self.l < self.r:
            self.reach(out, self.agg(after))
            return self.with_back(out, out)
        return self.with_back(self.agg(after), out)

    cdef inline const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil:
        if self.b == self.tail:
            return front
        combine(self.p, out, front, self.agg(self.tail - 1))
        return out

    cdef int begin(self, int64_t head) except -1:
        self.l = self.r = self.a = self.b = head
        return Queued.begin(self, head)

    cdef int check(self) except -1:
        """The size invariants (Lemma 4.1), and the aggregates that are folds of their neighbours."""
        cdef int64_t index
        check_sizes(self, self.l, self.r, self.a, self.b)
        for index in range(self.r + 1, self.a):
            self.check_aggregate(index, self.agg(index - 1), self.leaf(index))
        for index in range(self.b + 1, self.tail):
            self.check_aggregate(index, self.agg(index - 1), self.leaf(index))
        for index in range(self.a, self.b - 1):
            self.check_aggregate(index, self.leaf(index), self.agg(index + 1))
        return 0

    cdef int check_aggregate(self, int64_t index, const Slot* first, const Slot* second) except -1:
        combine(self.p, self.spare, first, second)
        return self.insist(self.same(self.spare, self.agg(index)), f"aggregate {index}")
