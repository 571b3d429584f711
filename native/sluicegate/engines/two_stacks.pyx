"""Two-Stacks in compiled code: a front and a back stack, flipped when the front is empty.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
2n partials in chunks. Source: paper DABA, Figure 1. The readable twin is sluicegate.reference.two_stacks.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.base cimport Block
from sluicegate.memory.chunks cimport at, reserve, run_at
from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport Queued, drop_before

cdef enum:
    HELD = 3  # slots of a running partial that a loop keeps by itself; a wider one stays where it is

include "operators.pxi"


@cython.final
cdef class TwoStacks(Queued):
    """Both stacks in one queue; only a front element's aggregate is kept."""

    def __dealloc__(self):
        free(self.back)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.split, self.has_back = 0, False
        self.back = <Slot*> calloc(p.width, sizeof(Slot))
        if self.back == NULL:
            raise MemoryError(f"two_stacks: no memory for a partial of {p.width} slots")
        return self.lay_out(2, limit)

    cdef inline Slot* agg(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index) + self.p.width

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back; into an empty window, on the front."""
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        if self.head == self.tail:
            copy(self.p, self.agg(self.tail), leaf)
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

    cdef int run(self, const Block* block) except -1 nogil:
        """As push, pop and total one after the other, the operator in the loop."""
        cdef int kernel = kernel_of(self.p)
        if reserve(&self.pool, &self.queue, self.tail) < 0 or reserve(&self.pool, &self.queue, self.tail + block.n - 1) < 0:
            with gil:
                raise MemoryError(f"two_stacks: no memory for leaves {self.tail} to {self.tail + block.n - 1}")
        if kernel == ADD:
            run_by(self, add_op, block)
        elif kernel == GREATEST:
            run_by(self, greatest_op, block)
        elif kernel == LEAST:
            run_by(self, least_op, block)
        elif kernel == MERGE:
            run_by(self, merge_op, block)
        else:
            run_by(self, any_op, block)
        drop_before(&self.pool, &self.queue, self.head)
        return 0

    cdef void flip(self) noexcept nogil:
        flip_by(self, any_op, self.tail)
        self.has_back = False

    cdef const Slot* total(self) noexcept nogil:
        return NULL if self.head == self.tail else self.with_back(self.agg(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        if self.head + 1 < self.split and self.head < self.tail:
            return self.with_back(self.agg(self.head + 1), self.spare + self.p.width)
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
            combine(self.p, self.spare, self.leaf(index), self.agg(index + 1))
            if not self.same(self.spare, self.agg(index)):
                self.insist(False, f"front aggregate {index} is not what is below it")
        for index in range(self.split, self.tail if some else self.split):
            if index == self.split:
                copy(self.p, self.spare, self.leaf(index))
            else:
                combine(self.p, self.spare, self.spare, self.leaf(index))
        return self.insist(not self.has_back or self.same(self.spare, self.back), "the back's aggregate is not its leaves'")


cdef inline void flip_by(TwoStacks self, Op op, int64_t tail) noexcept nogil:
    """Move the back onto the front, newest first."""
    cdef int w = width_of(op, self.p)
    cdef int64_t index = tail - 2, least
    cdef Slot held[HELD]
    cdef Slot* element = at(&self.pool, &self.queue, 2 * w, tail - 1)
    cdef Slot* sum = element if Op is Any else held
    copy_by(op, self.p, element + w, element)
    if Op is Any:
        sum = element + w
    else:
        copy_by(op, self.p, sum, element)
    while index >= self.split:
        element = at(&self.pool, &self.queue, 2 * w, index)
        least = max(self.split, index - (index & ((<int64_t> 1 << self.queue.shift) - 1)))
        while index >= least:
            if Op is Any:
                combine_by(op, self.p, element + w, element, sum)
                sum = element + w
            else:
                combine_by(op, self.p, sum, element, sum)
                copy_by(op, self.p, element + w, sum)
            element, index = element - 2 * w, index - 1
    self.split = tail


cdef void run_by(TwoStacks self, Op op, const Block* block) noexcept nogil:
    """Nothing is allocated here, and nothing given back: elements stay where they are."""
    cdef int w = width_of(op, self.p)
    cdef int64_t i, head = self.head, tail = self.tail, put_room, front_room
    cdef bint has_back = self.has_back
    cdef Slot held[HELD]
    cdef Slot* back = self.back if Op is Any else held
    cdef Slot* put = at(&self.pool, &self.queue, 2 * w, tail)
    cdef Slot* front = at(&self.pool, &self.queue, 2 * w, min(head, tail))
    cdef Slot* leaf = <Slot*> block.leaves
    cdef Slot* out = block.totals
    if Op is not Any:
        copy_by(op, self.p, back, self.back)
    put_room, front_room = run_at(&self.queue, tail), run_at(&self.queue, head)
    for i in range(block.n):
        copy_by(op, self.p, put, leaf)
        if has_back:
            combine_by(op, self.p, back, back, leaf)
        elif head == tail:
            copy_by(op, self.p, put + w, leaf)
            self.split, front, front_room = tail + 1, put, put_room
        else:
            copy_by(op, self.p, back, leaf)
            has_back = True
        tail, leaf, put, put_room = tail + 1, leaf + w, put + 2 * w, put_room - 1
        if put_room == 0:
            put_room = run_at(&self.queue, tail)
            put = at(&self.pool, &self.queue, 2 * w, tail) if i + 1 < block.n else put
        if head < block.heads[i]:
            if block.heads[i] == head + 1 < self.split and front_room > 1:
                head, front, front_room = head + 1, front + 2 * w, front_room - 1
            else:
                head = block.heads[i]
                if head >= self.split and self.split < tail:
                    flip_by(self, op, tail)
                has_back = has_back and self.split < tail
                if head < tail:
                    front, front_room = at(&self.pool, &self.queue, 2 * w, head), run_at(&self.queue, head)
        if out != NULL:
            if has_back:
                combine_by(op, self.p, out, front + w, back)
            elif head < tail:
                copy_by(op, self.p, out, front + w)
            out += w
    if Op is not Any:
        copy_by(op, self.p, self.back, back)
    self.head, self.tail, self.has_back = head, tail, has_back
