"""Two-Stacks and Two-Stacks Lite in compiled code: a front and a back stack, flipped when the front is empty.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
n + 1 partials in chunks, and beside them the leaves, or what of them is asked for. Source: paper DABA, Figure 1, with
the leaf of a front element given up for its aggregate. The readable twins are tests/native/twins/two_stacks.py and
two_stacks_lite.py.

Elements head … split − 1 are the front, each the partial up to split; the others are leaves.
"""

cimport cython

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.engines.queues.lite cimport Lite, drop_evicted, make_room_for
from sluicegate.memory.chunks cimport at
from sluicegate.partials.kernels cimport (
    ADD, GREATEST, LEAST, MERGE, Add, Any, Greatest, Least, Merge, Op, combine_by, copy_by, width_of,
)
from sluicegate.partials.program cimport Program, Slot

cdef enum:
    HELD = 3  # slots of a partial that has an operator of its own


cdef class TwoStacks

ctypedef fused Sliding:
    TwoStacks


@cython.final
cdef class TwoStacks(Lite):
    """Both stacks in one queue of partials. Two-Stacks Lite is the same engine, asked for no whole leaves."""

    cdef int64_t split  # the back is the partial of leaves split … tail − 1

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Lite.setup(self, p, limit)
        self.slide_by, self.split = slide, 0
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front, and flip where it is empty."""
        if self.head < self.tail:
            evict_to(self, any_op, self.head + 1)

    cdef const Slot* total(self) noexcept nogil:
        return NULL if self.head == self.tail else self.with_back(self.element(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        if self.head + 1 < self.split and self.head < self.tail:
            return self.with_back(self.element(self.head + 1), self.spare + self.p.width)
        return self.back if self.has_back else NULL


# the operator known at compile time

cdef inline void flip(TwoStacks self, Op op) noexcept nogil:
    """Turn the back's leaves into partials up to its end, newest first."""
    cdef int w = width_of(op, self.p)
    cdef int64_t index = self.tail - 2, first = max(self.split, self.head), n, j
    cdef Slot* after = at(&self.queue, w, self.tail - 1)
    cdef Slot* element
    while index >= first:
        element = at(&self.queue, w, index)
        n = min(index - first, index & ((<int64_t> 1 << self.queue.shift) - 1)) + 1  # of its chunk
        for j in range(n):
            combine_by(op, self.p, element, element, after)
            after, element = element, element - w
        index -= n
    self.split, self.has_back = self.tail, False


cdef inline void evict_to(TwoStacks self, Op op, int64_t head) noexcept nogil:
    self.head = head
    if head >= self.split:
        if self.split < self.tail:
            flip(self, op)
        self.has_back = False
    drop_evicted(self)


cdef int slide(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_by_kernel(<TwoStacks> self, leaf, head, out)


cdef inline int slide_by(TwoStacks self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """push, pop_to and total."""
    cdef int w = width_of(op, self.p)
    cdef Slot held[HELD]
    cdef Slot* back = self.back if Op is Any else held
    make_room_for(self, leaf)
    copy_by(op, self.p, at(&self.queue, w, self.tail), leaf)
    if self.has_back:
        combine_by(op, self.p, back, self.back, leaf)
    else:
        copy_by(op, self.p, back, leaf)
        if self.head < self.tail:
            self.has_back = True
        else:
            self.split = self.tail + 1
    if Op is not Any:
        copy_by(op, self.p, self.back, back)
    self.tail += 1
    if head > self.head:
        evict_to(self, op, head)
    if head == self.tail:
        return 0
    if out != NULL:
        if self.has_back:
            combine_by(op, self.p, out, at(&self.queue, w, head), back)
        else:
            copy_by(op, self.p, out, at(&self.queue, w, head))
    return 1


include "sluicegate/engines/sliding.pxi"
