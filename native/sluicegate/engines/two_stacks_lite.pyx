"""Two-Stacks Lite in compiled code: Two-Stacks with one partial an element.

Fact card: FIFO; associative operation; insert, eviction and query O(1) amortised, an eviction O(n) where it flips;
n + 1 partials in chunks, and n times or leaves where the policy asks for the oldest. Source: paper DABA, Figure 1, with
the leaf of a front element given up for its aggregate. The readable twin is sluicegate.reference.two_stacks_lite.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from sluicegate.engines.base cimport Block, Engine, SlideOn
from sluicegate.memory.chunks cimport at, prefetch, reserve, run_at
from sluicegate.engines.lite cimport Lite
from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport begin_block, drop_before, end_block, exchange_one, find_ends

cdef enum:
    HELD = 3  # slots of a running partial that a loop keeps by itself; a wider one stays where it is

cdef extern from "lanes.h" nogil:
    void lanes_merge(const double* front, double* out, int64_t n)

include "operators.pxi"


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

    cdef int keep(self, int slots) except -1:
        if slots == 0:
            set_slides(self, kernel_of(self.p))
        return Lite.keep(self, slots)

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

    cdef int run(self, const Block* block) except -1 nogil:
        """As push, pop and total one after the other, the operator in the loop."""
        cdef int kernel = kernel_of(self.p)
        if self.kept:
            return Engine.run(self, block)
        self.ends.until = 0
        begin_block(&self.pool, block)
        if reserve(&self.pool, &self.queue, self.tail) < 0 or reserve(&self.pool, &self.queue, self.tail + block.n - 1) < 0:
            end_block(&self.pool, False)
            with gil:
                raise MemoryError(f"two_stacks_lite: no memory for leaves {self.tail} to {self.tail + block.n - 1}")
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
        end_block(&self.pool, block.more)
        return 0

    cdef void flip(self) noexcept nogil:
        flip_by(self, any_op, self.tail)
        self.has_back = False

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


cdef inline void flip_by(TwoStacksLite self, Op op, int64_t tail) noexcept nogil:
    """Turn the back's leaves into partials up to its end, newest first."""
    cdef int w = width_of(op, self.p)
    cdef int64_t index = tail - 2, least
    cdef Slot held[HELD]
    cdef Slot* element = at(&self.pool, &self.queue, w, tail - 1)
    cdef Slot* sum = element if Op is Any else held
    if Op is not Any:
        copy_by(op, self.p, sum, element)
    while index >= self.split:
        element = at(&self.pool, &self.queue, w, index)
        least = max(self.split, index - (index & ((<int64_t> 1 << self.queue.shift) - 1)))
        while index >= least:
            if Op is Any:
                combine_by(op, self.p, element, element, sum)
                sum = element
            else:
                combine_by(op, self.p, sum, element, sum)
                copy_by(op, self.p, element, sum)
            element, index = element - w, index - 1
    self.split = tail


cdef inline void glide_by(
    TwoStacksLite self, Op op, Slot* put, const Slot* leaves, const Slot* front, Slot* back, Slot* out, int64_t k
) noexcept nogil:
    """k readings with a back before them, and a front element left after each."""
    cdef int w = width_of(op, self.p)
    cdef int64_t j
    if out == NULL or Op is Merge:
        memcpy(put, leaves, k * w * sizeof(Slot))
    if out == NULL:
        for j in range(k):
            combine_by(op, self.p, back, back, leaves + j * w)
    elif Op is Merge:
        for j in range(k):
            combine_by(op, self.p, back, back, leaves + 3 * j)
            copy_by(op, self.p, out + 3 * j, back)
        lanes_merge(<const double*> front, <double*> out, k)
    else:
        for j in range(k):
            copy_by(op, self.p, put + j, leaves + j)  # here it costs nothing: all wait for the chain of the back
            combine_by(op, self.p, back, back, leaves + j)
            combine_by(op, self.p, out + j, front + j, back)


cdef inline void glide_to(
    TwoStacksLite self, Op op, Slot* put, const Slot* leaves, const Slot* front, const int64_t* heads, Slot* back, Slot* out, int64_t k
) noexcept nogil:
    """The same wherever the window begins after each: `front` + head · w is what is before the back then."""
    cdef int w = width_of(op, self.p)
    cdef int64_t j
    memcpy(put, leaves, k * w * sizeof(Slot))
    for j in range(k):
        combine_by(op, self.p, back, back, leaves + j * w)
        if out != NULL:
            combine_by(op, self.p, out + j * w, front + heads[j] * w, back)


cdef inline int64_t readings_before(const int64_t* heads, int64_t n, int64_t end) noexcept nogil:
    """How many of n readings leave the head before `end`: about one leaves for each that comes."""
    cdef int64_t k
    if heads[n - 1] < end:
        return n
    k = min(max(end - heads[0], 0), n - 1)
    while k > 0 and heads[k - 1] >= end:
        k -= 1
    while heads[k] < end:
        k += 1
    return k


cdef void run_by(TwoStacksLite self, Op op, const Block* block) noexcept nogil:
    """Nothing is allocated here, and nothing given back: elements stay where they are."""
    cdef int w = width_of(op, self.p)
    cdef int64_t i = 0, k, head = self.head, tail = self.tail, put_room, front_room
    cdef bint has_back = self.has_back, one_each = block.jump == 1 and block.heads[block.n - 1] - head == block.n
    cdef Slot held[HELD]
    cdef Slot* back = self.back if Op is Any else held
    cdef Slot* put = at(&self.pool, &self.queue, w, tail)
    cdef Slot* front = at(&self.pool, &self.queue, w, min(head, tail))
    cdef Slot* leaf = <Slot*> block.leaves
    cdef Slot* out = block.totals
    if Op is not Any:
        copy_by(op, self.p, back, self.back)
    put_room, front_room = run_at(&self.queue, tail), run_at(&self.queue, head)
    while i < block.n:
        if Op is not Any and has_back and one_each:
            k = min(min(block.n - i, self.split - head), min(put_room, front_room)) - 1
            if k > 3:
                glide_by(self, op, put, leaf, front + w, back, out, k)
                i, head, tail, put_room, front_room = i + k, head + k, tail + k, put_room - k, front_room - k
                put, front, leaf = put + k * w, front + k * w, leaf + k * w
                out = out if out == NULL else out + k * w
                continue
        elif Op is not Any and has_back:
            k = readings_before(block.heads + i, min(block.n - i, put_room - 1), head + min(self.split - head, front_room)) if put_room > 1 else 0
            if k > 3:
                glide_to(self, op, put, leaf, front - head * w, block.heads + i, back, out, k)
                front, front_room, head = front + (block.heads[i + k - 1] - head) * w, front_room - (block.heads[i + k - 1] - head), block.heads[i + k - 1]
                i, tail, put_room, put, leaf = i + k, tail + k, put_room - k, put + k * w, leaf + k * w
                out = out if out == NULL else out + k * w
                continue
        copy_by(op, self.p, put, leaf)
        if has_back:
            combine_by(op, self.p, back, back, leaf)
        elif head == tail:
            self.split, front, front_room = tail + 1, put, put_room
        else:
            copy_by(op, self.p, back, leaf)
            has_back = True
        tail, leaf, put, put_room = tail + 1, leaf + w, put + w, put_room - 1
        if put_room == 0:
            put_room = run_at(&self.queue, tail)
            put = at(&self.pool, &self.queue, w, tail) if i + 1 < block.n else put
        if head < block.heads[i]:
            if block.heads[i] == head + 1 < self.split and front_room > 1:
                head, front, front_room = head + 1, front + w, front_room - 1
            else:
                head = block.heads[i]
                if head >= self.split and self.split < tail:
                    flip_by(self, op, tail)
                has_back = has_back and self.split < tail
                if head < tail:
                    front, front_room = at(&self.pool, &self.queue, w, head), run_at(&self.queue, head)
        if out != NULL:
            if has_back:
                combine_by(op, self.p, out, front, back)
            elif head < tail:
                copy_by(op, self.p, out, front)
            out += w
        i += 1
    if Op is not Any:
        copy_by(op, self.p, self.back, back)
    self.head, self.tail, self.has_back = head, tail, has_back


# one reading

cdef inline int slide_one(TwoStacksLite self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    """Where one leaves and neither the front nor a chunk ends with it: as push, pop and total, their operands and order."""
    cdef int w = width_of(op, self.p)
    cdef Slot held[HELD]
    cdef Slot* back = self.back if Op is Any else held
    if head != self.head + 1 or head >= self.ends.until:
        return self.slide_slowly_by(self, leaf, head, out)
    put_by(op, self.p, self.ends.newest + self.tail * w, leaf)
    combine_by(op, self.p, back, self.back, leaf)
    if Op is not Any:
        keep_by(op, self.p, self.back, back)
    exchange_one(self)
    if out != NULL:
        combine_by(op, self.p, out, self.ends.oldest + head * w, back)
    return 1


cdef int slide_slowly(TwoStacksLite self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """Whatever leaves, and wherever chunks begin or end."""
    cdef int w = width_of(op, self.p)
    self.ends.until = 0
    self.make_room()
    copy_by(op, self.p, at(&self.pool, &self.queue, w, self.tail), leaf)
    if self.head == self.tail:
        self.split = self.tail + 1
    elif self.has_back:
        combine_by(op, self.p, self.back, self.back, leaf)
    else:
        copy_by(op, self.p, self.back, leaf)
        self.has_back = True
    self.tail += 1
    if head > self.head:
        self.head = head
        if head >= self.split and self.split < self.tail:
            flip_by(self, op, self.tail)
        self.has_back = self.has_back and self.split < self.tail
        drop_before(&self.pool, &self.queue, head)
    if self.head == self.tail:
        return 0
    if out != NULL:
        copy_by(op, self.p, out, at(&self.pool, &self.queue, w, self.head))
        if self.has_back:
            combine_by(op, self.p, out, out, self.back)
    if self.has_back:
        find_ends(self, self.split)
    return 1


cdef inline int slide_by(Engine self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    return slide_one(<TwoStacksLite> self, op, leaf, head, out)


cdef inline int slowly_by(Engine self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(<TwoStacksLite> self, op, leaf, head, out)


include "slides.pxi"
