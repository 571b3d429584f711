"""Subtract-on-Evict in compiled code.

Fact card: FIFO; associative operation with an inverse (`deduct`); insert and query O(1), eviction O(1) amortised, O(n)
where digits were lost; n partials and a sum. Source: paper DABA, Figure 2. What keeps the total from drifting, and from
staying poisoned after a large value, is told in the twin, sluicegate.reference.soe.
"""

cimport cython
from libc.math cimport INFINITY, fabs
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from sluicegate.engines.base cimport Block, Engine, SlideOn
from sluicegate.memory.chunks cimport at, reserve, run_at
from sluicegate.partials.program cimport LOG_SUM, MOMENTS, SUM, Program, Slot, combine, copy, deduct, greatest, invertible
from sluicegate.engines.queued cimport Queued, begin_block, drop_before, end_block, exchange_one, find_ends, shape_elements
from sluicegate.partials.wide cimport TOTAL

from sluicegate.constants import CANCELLED as _CANCELLED
from sluicegate.constants import FAR as _FAR
from sluicegate.constants import LOST as _LOST

cdef double LOST = _LOST
cdef double CANCELLED = _CANCELLED
cdef double FAR = _FAR
cdef enum:
    TURNS = 4  # sluicegate.reference.soe.TURNS
    FEWEST = 512  # sluicegate.reference.soe.FEWEST
    LEAST_RUN = 4  # readings
    STRETCH = 256  # readings at once: what is worked out of them on the way stays in the first cache
    ALONE = 64  # readings that are taken one by one where a stretch cannot be

cdef double CUT = 2.0 ** -28  # of the largest summand: below it 512 rests' rounding, each 2⁻⁹³ of that, is no ulp yet
cdef int64_t EXPONENT = 0x7FF0000000000000
cdef int64_t TWELVE_AND_A_HALF = 0x00C8000000000000  # twelve to a float64's exponent, one half to its fraction

cdef extern from "lanes.h" nogil:
    int lanes_cut(const double* a, const double* b, double* upper, double* lower, int64_t n, double grid, double most)
    void lanes_running(double* x, int64_t n)
    bint lanes_totals(
        double* upper, const double* lower, double* out, int64_t n, double s, double c, double least, double* last
    )
    double lanes_largest(const double* x, int64_t n)
    void lanes_shares(const double* a, const double* b, double* out, int64_t n, double share)
    void lanes_squares(const double* a, const double* b, const double* shift, double* out, int64_t n, double mean)
    bint lanes_sound(const double* x, int64_t n, double s, double least)
    void lanes_fetch(const void* data, int64_t bytes)

include "operators.pxi"


@cython.final
cdef class Soe(Queued):
    """Leaves head … tail − 1 and their running total."""

    def __dealloc__(self):
        free(self.arena)
        free(self.sum_slots)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        self.kernel = kernel_of(p)
        Queued.setup(self, p, limit)
        if not invertible(p):
            raise ValueError("soe: the program has a component without an inverse")
        self.find_slots()
        self.reset()
        if self.kernel == ADD:
            self.slide_by, self.slide_slowly_by = slide_sum, <SlideOn> slowly_sum
        elif self.kernel == MERGE:
            self.slide_by, self.slide_slowly_by = slide_moments, <SlideOn> slowly_moments
        else:
            self.slide_by, self.slide_slowly_by = slide_any, <SlideOn> slide_any
        return 0

    cdef int lay_out(self, int partials, int64_t limit) except -1:
        """Of a reading's moments only the mean is kept: the count is 1, and it deviates from nothing."""
        self.stride = 1 if self.kernel == MERGE else self.p.width
        shape_elements(&self.pool, &self.queue, self.stride)
        return 0

    cdef int find_slots(self) except -1:
        cdef int k, op, n = self.p.steps
        self.sum_slots = <int*> calloc(2 * n, sizeof(int))
        self.arena = <Slot*> calloc(4 * self.p.width + 7 * n, sizeof(Slot))
        if self.sum_slots == NULL or self.arena == NULL:
            raise MemoryError(f"soe: no memory for 2 totals of {self.p.width} slots")
        self.errors, self.deviation_slots = <double*> self.arena, self.sum_slots + n
        self.kept_errors, self.before, self.former_greatest = self.errors + n, self.errors + 2 * n, self.errors + 3 * n
        self.largest, self.greatest, self.largest_at = self.errors + 4 * n, self.errors + 5 * n, <int64_t*> (self.errors + 6 * n)
        self.sum = self.arena + 7 * n
        self.kept, self.whole, self.former = self.sum + self.p.width, self.sum + 2 * self.p.width, self.sum + 3 * self.p.width
        self.plain = self.sums = self.deviations = 0
        for k in range(n):
            op = self.p.step[k].op
            if op == SUM or op == LOG_SUM:
                self.sum_slots[self.plain] = self.p.step[k].slot
                self.plain += 1
            elif op == MOMENTS:
                self.deviation_slots[self.deviations] = self.p.step[k].slot + 2
                self.deviations += 1
        self.sums = self.plain
        for k in range(n):
            if self.p.step[k].op == TOTAL:
                self.sum_slots[self.sums] = self.p.step[k].slot
                self.sums += 1
        return 0

    cdef void reset(self) noexcept nogil:
        """Nothing added yet."""
        cdef int k
        memset(self.errors, 0, 6 * self.p.steps * sizeof(double))
        for k in range(self.sums):
            self.largest_at[k] = -1
        self.overflow_at, self.since, self.former_until = -1, 0, -1

    cdef inline Slot* element(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        if self.kernel != MERGE:
            return self.element(index)
        self.whole[0].f, self.whole[1], self.whole[2].f = 1.0, self.element(index)[0], 0.0
        return self.whole

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Add to the total."""
        self.ends.until = 0
        self.make_room()
        if self.kernel == MERGE:
            self.element(self.tail)[0] = leaf[1]
        else:
            copy(self.p, self.element(self.tail), leaf)
        copy(self.p, self.former, self.sum)
        memcpy(self.former_greatest, self.greatest, self.deviations * sizeof(double))
        self.former_overflow_at = self.overflow_at
        self.add(leaf, self.tail)
        self.tail += 1
        self.former_until = self.tail
        return 0

    cdef void pop(self) noexcept nogil:
        """Deduct from the total; take it anew where that lost digits."""
        if self.head == self.tail:
            return
        self.ends.until = 0
        self.head += 1
        self.since += 1
        if self.head == self.tail:
            self.reset()
        else:
            self.take_away(self.sum, self.errors, self.leaf(self.head - 1))
            if self.former_until == self.tail:
                self.exchange_deviations()
            if self.lost():
                self.take_anew()
        self.former_until = -1
        drop_before(&self.pool, &self.queue, self.head)

    cdef void add(self, const Slot* leaf, int64_t index) noexcept nogil:
        cdef double x
        cdef int k
        if index == self.head:
            copy(self.p, self.sum, leaf)
        else:
            self.note_sums(self.sum)
            combine(self.p, self.sum, self.sum, leaf)
            self.note_errors(self.sum, self.errors, leaf, 1.0)
        for k in range(self.sums):
            x = fabs(leaf[self.sum_slots[k]].f)
            if x >= 0.5 * self.largest[k]:
                self.largest[k], self.largest_at[k] = max(self.largest[k], x), index
        for k in range(self.deviations):
            x = self.sum[self.deviation_slots[k]].f
            self.greatest[k] = max(self.greatest[k], x)
            if fabs(leaf[self.deviation_slots[k] - 1].f) >= FAR or (x == INFINITY and self.overflow_at < self.head):
                self.overflow_at = index

    cdef void take_away(self, Slot* total, double* errors, const Slot* leaf) noexcept nogil:
        self.note_sums(total)
        deduct(self.p, total, total, leaf)
        self.note_errors(total, errors, leaf, -1.0)

    cdef void exchange_deviations(self) noexcept nogil:
        """The leaf before the head, which has left, for the newest, which came right before: from the total of before both."""
        cdef Slot* former
        cdef Slot* now
        cdef int k
        for k in range(self.deviations):
            if self.former_greatest[k] == INFINITY or not fabs(self.mean_of(self.tail - 1, k)) < FAR:
                return
        for k in range(self.deviations):
            former, now = self.former + self.deviation_slots[k] - 2, self.sum + self.deviation_slots[k] - 2
            exchange_mean(former[0].f, &former[1].f, &former[2].f, self.mean_of(self.tail - 1, k), self.mean_of(self.head - 1, k))
            now[0].f, now[1].f, now[2].f = former[0].f, former[1].f, former[2].f
            self.greatest[k] = greatest(self.former_greatest[k], now[2].f)
        self.overflow_at = self.former_overflow_at

    cdef inline double mean_of(self, int64_t index, int k) noexcept nogil:
        return self.element(index)[0 if self.kernel == MERGE else self.deviation_slots[k] - 1].f

    cdef inline void note_sums(self, const Slot* total) noexcept nogil:
        cdef int k
        for k in range(self.plain):
            self.before[k] = total[self.sum_slots[k]].f

    cdef inline void note_errors(self, const Slot* total, double* errors, const Slot* leaf, double sign) noexcept nogil:
        """What rounding took from each sum, exactly (Knuth's TwoSum)."""
        cdef double a, b, s, part
        cdef int k
        for k in range(self.plain):
            a, b, s = self.before[k], sign * leaf[self.sum_slots[k]].f, total[self.sum_slots[k]].f
            part = s - a
            errors[k] += (a - (s - part)) + (b - part)

    cdef bint lost(self) noexcept nogil:
        """Whether the total has lost digits that the leaves still have."""
        cdef double now
        cdef int k
        if self.tail - self.head == 1:
            return True
        if self.deviations and self.since >= TURNS * (self.tail - self.head) + FEWEST:
            return True
        for k in range(self.sums):
            if self.largest_at[k] < self.head and fabs(self.sum[self.sum_slots[k]].f) < self.largest[k] * CANCELLED:
                return True
        for k in range(self.deviations):
            now = self.sum[self.deviation_slots[k]].f
            if self.overflow_at < self.head if self.greatest[k] == INFINITY else now < self.greatest[k] * LOST:
                return True
        return False

    cdef void take_anew(self) noexcept nogil:
        cdef int64_t index
        self.reset()
        for index in range(self.head, self.tail):
            self.add(self.leaf(index), index)

    cdef void take_moments_anew(self) noexcept nogil:
        """As take_anew, of readings none of which is far: first their mean, then the squares around it."""
        cdef double n = <double> (self.tail - self.head), mean, off, squares
        mean = self.sum_around(0.0, &squares) / n
        off = self.sum_around(mean, &squares)
        self.sum[0].f, self.sum[1].f, self.sum[2].f = n, mean + off / n, greatest(squares - off * off / n, 0.0)
        self.greatest[0], self.since = self.sum[2].f, 0

    cdef double sum_around(self, double mean, double* squares) noexcept nogil:
        """The sum of all leaves' distances from a mean, and that of their squares."""
        cdef double total = 0.0
        cdef int64_t index = self.head, k
        squares[0] = 0.0
        while index < self.tail:
            k = min(run_at(&self.queue, index), self.tail - index)
            add_distances(self.element(index), k, mean, &total, squares)
            index += k
        return total

    # blocks of readings; results may differ from those of single calls by their rounding

    cdef int run(self, const Block* block) except -1 nogil:
        """A single sum or a single set of moments in loops of their own, all else reading by reading."""
        cdef bint more = False
        if self.kernel != ADD and self.kernel != MERGE:
            return Engine.run(self, block)
        self.ends.until = 0
        begin_block(&self.pool, block)
        try:
            run_stretches(self, block)
            more = block.more
        finally:
            end_block(&self.pool, more)
        return 0

    cdef const Slot* total(self) noexcept nogil:
        return NULL if self.head == self.tail else self.rounded(self.sum, self.errors, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        """The total less the oldest leaf."""
        if self.tail - self.head < 2:
            return NULL
        copy(self.p, self.kept, self.sum)
        memcpy(self.kept_errors, self.errors, self.plain * sizeof(double))
        self.take_away(self.kept, self.kept_errors, self.leaf(self.head))
        return self.rounded(self.kept, self.kept_errors, self.spare + self.p.width)

    cdef const Slot* rounded(self, const Slot* total, const double* errors, Slot* out) noexcept nogil:
        cdef int k
        copy(self.p, out, total)
        for k in range(self.plain):
            out[self.sum_slots[k]].f += errors[k]
        return out

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t slots = 4 * self.p.width + 7 * self.p.steps
        return Queued.bytes(self) + slots * <int64_t> sizeof(Slot) + 2 * self.p.steps * <int64_t> sizeof(int)

    cdef int begin(self, int64_t head) except -1:
        Queued.begin(self, head)
        self.reset()
        return 0

    cdef int check(self) except -1:
        """Its sums are close to their leaves'."""
        cdef double total, inside
        cdef int64_t index
        cdef int k
        if self.head == self.tail:
            return 0
        for k in range(self.plain):
            total = inside = 0.0
            for index in range(self.head, self.tail):
                total += self.leaf(index)[self.sum_slots[k]].f
                inside += fabs(self.leaf(index)[self.sum_slots[k]].f)
            total -= self.sum[self.sum_slots[k]].f + self.errors[k]
            inside *= (self.tail - self.head + 1) * 2.0 ** -50
            self.insist(fabs(total) <= inside, f"the sum in slot {self.sum_slots[k]} is not its leaves'")
        return 0


include "soe_block.pxi"
include "soe_one.pxi"
