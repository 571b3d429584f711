"""DABA Lite in compiled code: DABA with one partial an element.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 3 an insert, 2 an eviction (DABA's
own bounds are 1, 4, 3); n + 2 partials in one chunked queue, and n times or leaves where the policy asks for the oldest.
Source: paper DABA, Figure 10, where sublists R and B keep their leaves and two sums stand beside them: of R and A
together, which the reversal adds to L, and of B. The readable twin is sluicegate.reference.daba_lite.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.base cimport Block, Engine, SlideOn
from sluicegate.memory.chunks cimport Queue, at, has_room, reserve, run_at
from sluicegate.engines.daba cimport check_sizes
from sluicegate.engines.lite cimport Lite
from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport PREPARES, drop_before, exchange_one, find_ends

cdef enum:
    LEAST_ALIKE = 4  # readings
    LEAST_HELD = 24  # by a window whose readings are looked at for that: of fewer hardly any go alike
    MERGED = 3  # slots of moments
    HELD = 3  # slots of a sum that a loop keeps by itself; a wider one stays where it is

cdef extern from "lanes.h" nogil:
    void lanes_merge(const double* front, double* out, int64_t n)
    void lanes_merge_with(double* each, const double* after, int64_t n)

include "operators.pxi"


@cython.final
cdef class DabaLite(Lite):
    """An element is a leaf or an aggregate, by its sublist."""

    def __dealloc__(self):
        free(self.sums)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Lite.setup(self, p, limit)
        self.lists.l = self.lists.r = self.lists.a = self.lists.b = 0
        self.lists.has_b = False
        self.sums = <Slot*> calloc(2 * p.width, sizeof(Slot))
        if self.sums == NULL:
            raise MemoryError(f"daba_lite: no memory for 2 partials of {p.width} slots")
        self.sum_b, self.sum_ra = self.sums, self.sums + p.width
        return 0

    cdef int keep(self, int slots) except -1:
        if slots == 0:
            set_slides(self, kernel_of(self.p))
        return Lite.keep(self, slots)

    cdef inline Slot* element(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back list, then one step of the reversal."""
        self.append(leaf)
        if self.lists.has_b:
            combine(self.p, self.sum_b, self.sum_b, leaf)
        else:
            copy(self.p, self.sum_b, leaf)
            self.lists.has_b = True
        self.fixup()
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front list, then one step of the reversal."""
        if self.head == self.tail:
            return
        self.drop_oldest()
        self.fixup()

    cdef int run(self, const Block* block) except -1 nogil:
        """As push, pop and total one after the other, the operator in the loop."""
        cdef int kernel = kernel_of(self.p)
        if self.kept:
            return Engine.run(self, block)
        if kernel == MERGE and self.tail - self.head < LEAST_HELD and goes_one_for_one(self, block):
            return run_few(self, block)
        self.ends.until = 0
        if reserve(&self.pool, &self.queue, self.tail) < 0 or reserve(&self.pool, &self.queue, self.tail + block.n - 1) < 0:
            with gil:
                raise MemoryError(f"daba_lite: no memory for leaves {self.tail} to {self.tail + block.n - 1}")
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

    cdef inline void fixup(self) noexcept nogil:
        cdef Slot* sums = self.sum_ra
        if self.head == self.lists.b:  # singleton, or empty
            self.lists.l = self.lists.r = self.lists.a = self.lists.b = self.tail
            self.lists.has_b = False
            return
        if self.lists.l == self.lists.b:  # flip
            self.lists.l, self.lists.a, self.lists.b = self.head, self.tail, self.tail
            self.sum_ra, self.sum_b = self.sum_b, sums
            self.lists.has_b = False
        if self.lists.l == self.lists.r:  # shift
            self.lists.l += 1
            self.lists.r += 1
            self.lists.a += 1
        else:
            self.shrink()

    cdef void shrink(self) noexcept nogil:
        """Move the first of L to the front, and the last of R to A."""
        cdef Slot* front = self.element(self.lists.l)
        combine(self.p, front, front, self.sum_ra)
        self.lists.l += 1
        self.lists.a -= 1
        if self.lists.a + 1 < self.lists.b:
            combine(self.p, self.element(self.lists.a), self.element(self.lists.a), self.element(self.lists.a + 1))

    cdef const Slot* total(self) noexcept nogil:
        if self.head == self.tail:
            return NULL
        if self.head == self.lists.b:
            return self.sum_b
        return self.with_back(self.element(self.head), self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        """The total from the next element on, which may be the first of sublist L."""
        cdef int64_t after = self.head + 1
        cdef Slot* out = self.spare + self.p.width
        if after >= self.lists.b:
            return self.sum_b if self.lists.has_b else NULL
        if after == self.lists.l and self.lists.l < self.lists.r:
            combine(self.p, out, self.element(after), self.sum_ra)
            return self.with_back(out, out)
        return self.with_back(self.element(after), out)

    cdef inline const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil:
        if not self.lists.has_b:
            return front
        combine(self.p, out, front, self.sum_b)
        return out

    cdef int begin(self, int64_t head) except -1:
        self.lists.l = self.lists.r = self.lists.a = self.lists.b = head
        self.lists.has_b = False
        return Lite.begin(self, head)

    cdef int check(self) except -1:
        """The size invariants (Lemma 4.1), and the back list's sum."""
        cdef int64_t index
        check_sizes(self, self.lists.l, self.lists.r, self.lists.a, self.lists.b)
        self.insist(self.lists.has_b == (self.lists.b < self.tail), f"a back list after {self.lists.b}")
        for index in range(self.lists.b, self.tail):
            if index == self.lists.b:
                copy(self.p, self.spare, self.element(index))
            else:
                combine(self.p, self.spare, self.spare, self.element(index))
        return self.insist(not self.lists.has_b or self.same(self.spare, self.sum_b), "the back list's sum is not its leaves'")


cdef inline void fixup_by(
    DabaLite self, Op op, const Queue* queue, State* s, Slot** sum_b, Slot** sum_ra
) noexcept nogil:
    """As DabaLite.fixup, on a state of its own."""
    cdef int w = width_of(op, self.p)
    cdef Slot* element
    if s.head == s.b:  # singleton, or empty
        s.l = s.r = s.a = s.b = s.tail
        s.has_b = False
        return
    if s.l == s.b:  # flip
        s.l, s.a, s.b = s.head, s.tail, s.tail
        if Op is Any:
            sum_b[0], sum_ra[0] = sum_ra[0], sum_b[0]
        else:
            keep_by(op, self.p, sum_ra[0], sum_b[0])
        s.has_b = False
    if s.l == s.r:  # shift
        s.l += 1
        s.r += 1
        s.a += 1
        return
    element = at(&self.pool, queue, w, s.l)
    combine_by(op, self.p, element, element, sum_ra[0])
    s.l += 1
    s.a -= 1
    if s.a + 1 < s.b:
        element = at(&self.pool, queue, w, s.a)
        renew_by(op, self.p, element, element, at(&self.pool, queue, w, s.a + 1))


cdef inline void step_by(
    DabaLite self, Op op, const Queue* queue, State* s, Slot** sum_b, Slot** sum_ra, const Slot* leaf, int64_t head, Slot* out
) noexcept nogil:
    """push, pop and total one after the other; an empty window has none."""
    cdef int w = width_of(op, self.p)
    put_by(op, self.p, at(&self.pool, queue, w, s.tail), leaf)
    s.tail += 1
    if s.has_b:
        renew_by(op, self.p, sum_b[0], sum_b[0], leaf)
    else:
        keep_by(op, self.p, sum_b[0], leaf)
        s.has_b = True
    fixup_by(self, op, queue, s, sum_b, sum_ra)
    while s.head < head:
        s.head += 1
        fixup_by(self, op, queue, s, sum_b, sum_ra)
    if out == NULL:
        return
    if s.head == s.b:
        if s.head < s.tail:
            keep_by(op, self.p, out, sum_b[0])
    elif s.has_b:
        renew_by(op, self.p, out, at(&self.pool, queue, w, s.head), sum_b[0])
    else:
        keep_by(op, self.p, out, at(&self.pool, queue, w, s.head))


cdef inline int64_t alike(DabaLite self, const State* s, int64_t most, bint shrinks) noexcept nogil:
    """How many readings each of which lets one leave go alike and stay within the chunks."""
    cdef int64_t k = min(most, min(run_at(&self.queue, s.tail), run_at(&self.queue, s.head) - 1))
    if s.a == s.b:
        return 0
    if not shrinks:
        return min(k, (s.b - s.l) >> 1)
    return min(min(k, (s.r - s.l) >> 1), min(run_at(&self.queue, s.l), s.a & ((<int64_t> 1 << self.queue.shift) - 1)) >> 1)


cdef inline void run_alike(
    DabaLite self, Op op, State* s, Slot* sum_b, const Slot* sum_ra, const Slot* leaves, Slot* out, int64_t k, bint shrinks
) noexcept nogil:
    """k such readings: both fixups of each shrink, or both shift."""
    cdef int w = width_of(op, self.p)
    cdef Slot* put = at(&self.pool, &self.queue, w, s.tail)
    cdef const Slot* front = at(&self.pool, &self.queue, w, s.head)
    cdef Slot* left = at(&self.pool, &self.queue, w, s.l)
    cdef Slot* right = at(&self.pool, &self.queue, w, s.a)
    cdef Slot sum_a[HELD]
    cdef int64_t j, i
    if shrinks:
        copy_by(op, self.p, sum_a, right)
        if Op is Merge:
            lanes_merge_with(<double*> left, <const double*> sum_ra, 2 * k)
        else:
            for j in range(2 * k):
                combine_by(op, self.p, left + j * w, left + j * w, sum_ra)
    for j in range(k):
        copy_by(op, self.p, put + j * w, leaves + j * w)
        combine_by(op, self.p, sum_b, sum_b, leaves + j * w)
        if shrinks:
            for i in range(2):
                right -= w
                combine_by(op, self.p, sum_a, right, sum_a)
                copy_by(op, self.p, right, sum_a)
        if out != NULL:
            combine_by(op, self.p, out + j * w, front + (j + 1) * w, sum_b)
    s.head, s.tail, s.l = s.head + k, s.tail + k, s.l + 2 * k
    if shrinks:
        s.a -= 2 * k
    else:
        s.r, s.a = s.r + 2 * k, s.a + 2 * k


cdef inline bint goes_one_for_one(DabaLite self, const Block* block) noexcept nogil:
    """Whether one leaves with each reading."""
    return block.jump == 1 and block.heads[block.n - 1] - self.head == block.n


cdef inline State state_of(DabaLite self) noexcept nogil:
    self.lists.head, self.lists.tail = self.head, self.tail
    return self.lists


cdef inline void take_over(DabaLite self, const State* s) noexcept nogil:
    self.lists, self.head, self.tail = s[0], s.head, s.tail


cdef void run_by(DabaLite self, Op op, const Block* block) noexcept nogil:
    """Nothing is allocated here, and nothing given back: elements stay where they are."""
    cdef int w = width_of(op, self.p)
    cdef int64_t i = 0, k
    cdef bint one_each = Op is not Any and self.tail - self.head >= LEAST_HELD and goes_one_for_one(self, block), shrinks
    cdef Queue queue = self.queue
    cdef Slot held_b[HELD]
    cdef Slot held_ra[HELD]
    cdef Slot* sum_b = self.sum_b if Op is Any else held_b
    cdef Slot* sum_ra = self.sum_ra if Op is Any else held_ra
    cdef Slot* out = block.totals
    cdef State s = state_of(self)
    if Op is not Any:
        copy_by(op, self.p, sum_b, self.sum_b)
        copy_by(op, self.p, sum_ra, self.sum_ra)
    while i < block.n:
        shrinks = s.l < s.r
        k = alike(self, &s, block.n - i, shrinks) if one_each and s.has_b else 0
        if k < LEAST_ALIKE:
            k = 1
            step_by(self, op, &queue, &s, &sum_b, &sum_ra, block.leaves + i * w, block.heads[i], out)
        elif shrinks:
            run_alike(self, op, &s, sum_b, sum_ra, block.leaves + i * w, out, k, True)
        else:
            run_alike(self, op, &s, sum_b, sum_ra, block.leaves + i * w, out, k, False)
        i, out = i + k, out if out == NULL else out + k * w
    if Op is Any:
        self.sum_b, self.sum_ra = sum_b, sum_ra
    else:
        copy_by(op, self.p, self.sum_b, sum_b)
        copy_by(op, self.p, self.sum_ra, sum_ra)
    take_over(self, &s)


# one reading

cdef inline int slide_one(DabaLite self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    """As `run_alike` of one."""
    cdef int w = width_of(op, self.p)
    if head != self.head + 1 or head >= self.ends.until:
        return self.slide_slowly_by(self, leaf, head, out)
    if self.lists.l == self.lists.r:
        self.lists.r, self.lists.a = self.lists.r + 2, self.lists.a + 2
    else:
        shrink_twice(self, op, self.left + self.lists.l * w, self.right + self.lists.a * w)
        self.lists.a -= 2
    self.lists.l += 2
    append_and_answer(self, op, leaf, head, out)
    return 1


cdef inline void shrink_twice(DabaLite self, Op op, Slot* left, Slot* right) noexcept nogil:
    """`left` and the one after it take in R and A; what is in `right` goes into the one before, and with that into the next."""
    cdef int w = width_of(op, self.p)
    combine_by(op, self.p, left, left, self.sum_ra)
    combine_by(op, self.p, left + w, left + w, self.sum_ra)
    combine_by(op, self.p, right - w, right - w, right)
    renew_by(op, self.p, right - 2 * w, right - 2 * w, right - w)


cdef inline void append_and_answer(DabaLite self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    cdef int w = width_of(op, self.p)
    cdef Slot held[HELD]
    cdef Slot* sum_b = self.sum_b if Op is Any else held
    put_by(op, self.p, self.ends.newest + self.tail * w, leaf)
    if self.lists.has_b:
        combine_by(op, self.p, sum_b, self.sum_b, leaf)
    else:
        copy_by(op, self.p, sum_b, leaf)
        self.lists.has_b = True
    if Op is not Any:
        keep_by(op, self.p, self.sum_b, sum_b)
    exchange_one(self)
    if out != NULL:
        combine_by(op, self.p, out, self.ends.oldest + head * w, sum_b)


cdef int run_few(DabaLite self, const Block* block) except -1 nogil:
    """As single readings: into so few a loop of its own finds its state more often than that saves."""
    cdef int64_t i
    cdef Slot* out = block.totals
    for i in range(block.n):
        if slide_one(self, merge_op, block.leaves + i * MERGED, block.heads[i], out) < 0:
            return -1
        out = out if out == NULL else out + MERGED
    return 0


cdef int slide_slowly(DabaLite self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    """Whatever leaves, and wherever chunks begin or end."""
    cdef State* s = &self.lists
    if head == self.head + 1 and self.ends.until and head < self.inside and change_phase(self, op, leaf, head, out):
        find_phase(self)
        return 1
    self.ends.until = 0
    if not self.tail & (PREPARES - 1) or not has_room(&self.pool, &self.queue, self.tail):
        self.make_room()
    s.head = self.head
    apart(&s.head)
    s.tail = self.tail
    step_by(self, op, &self.queue, s, &self.sum_b, &self.sum_ra, leaf, head, out)
    self.head = s.head
    apart(&self.head)
    self.tail = s.tail
    drop_before(&self.pool, &self.queue, self.head)
    if self.head < self.tail:
        find_ends(self, INT64_MAX)
    self.inside = self.ends.until
    if self.inside:
        find_phase(self)
    return self.head < self.tail


cdef inline bint change_phase(DabaLite self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    """One that shrinks and then shifts, or shifts and then flips, with both ends inside chunks: even numbers of readings have one of each in a turn."""
    cdef int w = width_of(op, self.p)
    cdef State* s = &self.lists
    cdef Slot* front
    cdef Slot* right
    if s.l + 1 == s.r:
        front = at(&self.pool, &self.queue, w, s.l)
        combine_by(op, self.p, front, front, self.sum_ra)
        if s.a < s.b:
            right = at(&self.pool, &self.queue, w, s.a - 1)
            combine_by(op, self.p, right, right, at(&self.pool, &self.queue, w, s.a))
        s.l, s.r = s.l + 2, s.r + 1
        append_and_answer(self, op, leaf, head, out)
        return True
    if not (s.l == s.r and s.l + 1 == s.b and s.has_b):
        return False
    put_by(op, self.p, self.ends.newest + self.tail * w, leaf)
    renew_by(op, self.p, self.sum_ra, self.sum_b, leaf)
    exchange_one(self)
    s.l, s.r, s.a, s.b = head + 1, s.b, self.tail - 1, self.tail
    s.has_b = False
    front = self.ends.oldest + head * w
    renew_by(op, self.p, front, front, self.sum_ra)
    if out != NULL:
        copy_by(op, self.p, out, front)
    return True


cdef inline void find_phase(DabaLite self) noexcept nogil:
    """How far the next readings go alike, where the ends are known, and where L and A are then."""
    cdef int w = self.stride
    cdef bint shrinks = self.lists.l < self.lists.r
    cdef int64_t k = alike(self, &self.lists, PREPARES, shrinks)
    if shrinks:
        self.left = at(&self.pool, &self.queue, w, self.lists.l) - self.lists.l * w
        self.right = at(&self.pool, &self.queue, w, self.lists.a) - self.lists.a * w
    self.ends.until = min(self.inside, self.head + 1 + k)


cdef inline int slide_by(Engine self, Op op, const Slot* leaf, int64_t head, Slot* out) noexcept nogil:
    return slide_one(<DabaLite> self, op, leaf, head, out)


cdef inline int slowly_by(Engine self, Op op, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    return slide_slowly(<DabaLite> self, op, leaf, head, out)


include "slides.pxi"
