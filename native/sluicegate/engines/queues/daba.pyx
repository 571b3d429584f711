"""DABA and DABA Lite, the De-Amortized Banker's Aggregator, in compiled code.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 3 an insert, 2 an eviction (the
paper's bounds are 1, 4, 3); n + 2 partials in chunks, and beside them the leaves, or what of them is asked for.
Source: paper DABA, Figures 8 to 10, Theorems 4.2 and 4.3, where each element keeps its leaf and its aggregate. Here an
element is one of both, by its sublist, and two sums stand beside them: of R and A together, which the reversal adds to
L, and of B. The readable twin is sluicegate.reference.engines.daba.

DABA: pointers F (head) ≤ L ≤ R ≤ A ≤ B ≤ E (tail) cut one queue of partials into sublists.

Elements of R … A − 1 and B … E − 1 are leaves, the others sums: p … B − 1 for p in F … L − 1 and A … B − 1, p … R − 1
for p in L … R − 1.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.base cimport Engine
from sluicegate.engines.queues.lite cimport Lite, drop_evicted, make_room_for
from sluicegate.memory.chunks cimport at
from sluicegate.partials.kernels cimport (
    ADD, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, Op, combine_by, copy_by, width_of,
)
from sluicegate.partials.program cimport Program, Slot, combine


cdef class Daba

ctypedef fused Sliding:
    Daba


@cython.final
cdef class Daba(Lite):
    """An element is a leaf or an aggregate, by its sublist; the back is the sum of B … E − 1.

    DABA Lite is the same engine, asked for no whole leaves.
    """

    cdef int64_t l
    cdef int64_t r
    cdef int64_t a
    cdef int64_t b
    cdef Slot* sum_ra  # of R … B − 1 while L is not empty

    def __dealloc__(self):
        free(self.sum_ra)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Lite.setup(self, p, limit)
        self.slide_by = slide
        self.l = self.r = self.a = self.b = 0
        self.sum_ra = <Slot*> calloc(p.width, sizeof(Slot))
        if self.sum_ra == NULL:
            raise MemoryError(f"daba: no memory for a partial of {p.width} slots")
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front list, then one step of the reversal."""
        if self.head < self.tail:
            evict_to(self, any_op, self.head + 1)

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail:
            return NULL
        if self.head == self.b:
            return self.back
        return self.with_back(self.element(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        """The total from the next element on, which may be the first of sublist L."""
        cdef int64_t after = self.head + 1
        cdef Slot* out = self.spare + self.p.width
        if after >= self.b:
            return self.back if self.has_back else NULL
        if after == self.l and self.l < self.r:
            combine(self.p, out, self.element(after), self.sum_ra)
            return self.with_back(out, out)
        return self.with_back(self.element(after), out)

    cdef int begin(self, int64_t head) except -1:
        self.l = self.r = self.a = self.b = head
        return Lite.begin(self, head)


# the operator known at compile time

cdef inline void add_to_back(Daba self, Op op, const Slot* leaf) noexcept nogil:
    if self.has_back:
        combine_by(op, self.p, self.back, self.back, leaf)
    else:
        copy_by(op, self.p, self.back, leaf)
        self.has_back = True


cdef inline void fixup(Daba self, Op op) noexcept nogil:
    """One step of the reversal, after an insertion or an eviction."""
    cdef Slot* swapped = self.sum_ra
    if self.head == self.b:  # singleton, or empty
        self.l = self.r = self.a = self.b = self.tail
        self.has_back = False
        return
    if self.l == self.b:  # flip
        self.l, self.a, self.b = self.head, self.tail, self.tail
        self.sum_ra, self.back = self.back, swapped
        self.has_back = False
    if self.l == self.r:  # shift
        self.l += 1
        self.r += 1
        self.a += 1
    else:
        shrink(self, op)


cdef inline void evict_to(Daba self, Op op, int64_t head) noexcept nogil:
    while self.head < head:
        self.head += 1
        fixup(self, op)
    drop_evicted(self)


cdef inline void shrink(Daba self, Op op) noexcept nogil:
    """Move the first of L to the front, and the last of R to A."""
    cdef int w = width_of(op, self.p)
    cdef Slot* element = at(&self.queue, w, self.l)
    combine_by(op, self.p, element, element, self.sum_ra)
    self.l += 1
    self.a -= 1
    if self.a + 1 < self.b:
        element = at(&self.queue, w, self.a)
        combine_by(op, self.p, element, element, at(&self.queue, w, self.a + 1))


cdef int slide(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by_kernel(<Daba> self, leaf, head, out)


cdef inline int slide_by(Daba self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """push, pop_to and total."""
    cdef int w = width_of(op, self.p)
    make_room_for(self, leaf)
    copy_by(op, self.p, at(&self.queue, w, self.tail), leaf)
    self.tail += 1
    add_to_back(self, op, leaf)
    fixup(self, op)
    if self.head < head:
        evict_to(self, op, head)
    if self.head == self.tail:
        return 0
    if out == NULL:
        return 1
    if self.head == self.b:
        copy_by(op, self.p, out, self.back)
    elif self.has_back:
        combine_by(op, self.p, out, at(&self.queue, w, self.head), self.back)
    else:
        copy_by(op, self.p, out, at(&self.queue, w, self.head))
    return 1


include "sluicegate/engines/sliding.pxi"
