"""Subtract-on-Evict in compiled code.

Fact card: FIFO; associative operation with an inverse (`deduct`); insert and query O(1) worst case, eviction O(1), and
O(n) now and then where squared deviations cancel; n partials and two sums. Source: paper DABA, Figure 2. What keeps the
total from drifting, and from staying poisoned after a large value, is told in the twin, sluicegate.reference.soe.
"""

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from sluicegate.engines.chunks cimport at, drop
from sluicegate.engines.program cimport LOG_SUM, MOMENTS, SUM, Program, Slot, combine, copy, deduct, invertible
from sluicegate.engines.queued cimport Queued

from sluicegate.reference.soe import LOST as _LOST

cdef double LOST = _LOST


@cython.final
cdef class Soe(Queued):
    """Leaves head … tail − 1 and their running total."""

    def __dealloc__(self):
        free(self.arena)
        free(self.sum_slots)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        if not invertible(p):
            raise ValueError("soe: the program has a component without an inverse")
        self.find_slots()
        self.turn = self.since = 0
        self.lost = False
        return 0

    cdef int find_slots(self) except -1:
        cdef int k, each
        self.sums = self.deviations = 0
        self.sum_slots = <int*> calloc(2 * self.p.steps, sizeof(int))
        each = self.p.width + 2 * self.p.steps
        self.arena = <Slot*> calloc(3 * each + self.p.steps, sizeof(Slot))
        if self.sum_slots == NULL or self.arena == NULL:
            raise MemoryError(f"soe: no memory for 3 totals of {self.p.width} slots")
        self.deviation_slots = self.sum_slots + self.p.steps
        for k in range(self.p.steps):
            if self.p.step[k].op == SUM or self.p.step[k].op == LOG_SUM:
                self.sum_slots[self.sums] = self.p.step[k].slot
                self.sums += 1
            elif self.p.step[k].op == MOMENTS:
                self.deviation_slots[self.deviations] = self.p.step[k].slot + 2
                self.deviations += 1
        self.place_total(&self.sum, 0)
        self.place_total(&self.fresh, 1)
        self.place_total(&self.other, 2)
        self.before = <double*> (self.arena + 3 * each)
        return 0

    cdef void place_total(self, Total* total, int k) noexcept nogil:
        total.partial = self.arena + k * (self.p.width + 2 * self.p.steps)
        total.errors = <double*> (total.partial + self.p.width)
        total.peaks = total.errors + self.p.steps
        total.some = False

    cdef void reset(self, Total* total) noexcept nogil:
        memset(total.errors, 0, 2 * self.p.steps * sizeof(double))
        total.some = False

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Add to the total, and to what came since the last turn."""
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        self.tail += 1
        self.add(&self.sum, leaf)
        if self.tail - self.head == 1:
            self.turn, self.since = self.tail, 0
        else:
            self.add(&self.fresh, leaf)
        return 0

    cdef void pop(self) noexcept nogil:
        """Deduct from the total; at a turn, take over what came since the last."""
        cdef Total old
        if self.head == self.tail:
            return
        self.head += 1
        self.since += 1
        if self.head == self.tail:
            self.reset(&self.sum)
            self.reset(&self.fresh)
            self.turn, self.lost = self.tail, False
        elif self.head == self.turn:
            old, self.sum = self.sum, self.fresh
            self.fresh = old
            self.reset(&self.fresh)
            self.turn, self.lost = self.tail, False
        else:
            self.take_away(&self.sum, self.leaf(self.head - 1))
            if self.deviations:
                self.watch()
        drop(&self.pool, &self.queue, self.head)

    cdef void add(self, Total* total, const Slot* leaf) noexcept nogil:
        cdef int k
        if total.some:
            self.note_sums(total)
            combine(self.p, total.partial, total.partial, leaf)
            self.note_errors(total, leaf, 1.0)
        else:
            copy(self.p, total.partial, leaf)
            total.some = True
        for k in range(self.deviations):
            if total.partial[self.deviation_slots[k]].f > total.peaks[k]:
                total.peaks[k] = total.partial[self.deviation_slots[k]].f

    cdef void take_away(self, Total* total, const Slot* leaf) noexcept nogil:
        self.note_sums(total)
        deduct(self.p, total.partial, total.partial, leaf)
        self.note_errors(total, leaf, -1.0)

    cdef inline void note_sums(self, const Total* total) noexcept nogil:
        cdef int k
        for k in range(self.sums):
            self.before[k] = total.partial[self.sum_slots[k]].f

    cdef inline void note_errors(self, Total* total, const Slot* leaf, double sign) noexcept nogil:
        """What rounding took from each sum, exactly (Knuth's TwoSum)."""
        cdef double a, b, s, part
        cdef int k
        for k in range(self.sums):
            a, b, s = self.before[k], sign * leaf[self.sum_slots[k]].f, total.partial[self.sum_slots[k]].f
            part = s - a
            total.errors[k] += (a - (s - part)) + (b - part)

    cdef void watch(self) noexcept nogil:
        """Take the total anew where digits of a deviation are lost, at most once in as many evictions as leaves."""
        cdef double peak, now
        cdef int64_t index
        cdef int k
        for k in range(self.deviations):
            peak, now = self.sum.peaks[k], self.sum.partial[self.deviation_slots[k]].f
            if peak > 0.0 and not peak * LOST < now < INFINITY:
                self.lost = True
        if not self.lost or self.since < self.tail - self.head:
            return
        self.reset(&self.sum)
        for index in range(self.head, self.tail):
            self.add(&self.sum, self.leaf(index))
        self.lost, self.since = False, 0

    cdef const Slot* total(self) noexcept nogil:
        return NULL if self.head == self.tail else self.rounded(&self.sum, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        """The total less the oldest leaf."""
        cdef int k
        if self.tail - self.head < 2:
            return NULL
        copy(self.p, self.other.partial, self.sum.partial)
        for k in range(self.sums):
            self.other.errors[k] = self.sum.errors[k]
        self.take_away(&self.other, self.leaf(self.head))
        return self.rounded(&self.other, self.spare + self.p.width)

    cdef const Slot* rounded(self, const Total* total, Slot* out) noexcept nogil:
        cdef int k
        copy(self.p, out, total.partial)
        for k in range(self.sums):
            out[self.sum_slots[k]].f += total.errors[k]
        return out

    cdef int64_t bytes(self) noexcept nogil:
        cdef int64_t slots = 3 * (self.p.width + 2 * self.p.steps) + self.p.steps
        return Queued.bytes(self) + slots * <int64_t> sizeof(Slot) + 2 * self.p.steps * <int64_t> sizeof(int)

    cdef int begin(self, int64_t head) except -1:
        Queued.begin(self, head)
        self.reset(&self.sum)
        self.reset(&self.fresh)
        self.turn, self.since, self.lost = head, 0, False
        return 0

    cdef int check(self) except -1:
        """What came since the last turn is the sum of those leaves, errors and all."""
        cdef int64_t index
        self.insist(self.head == self.tail or self.head < self.turn <= self.tail, f"the last turn was at {self.turn}")
        self.reset(&self.other)
        for index in range(self.turn, self.tail):
            self.add(&self.other, self.leaf(index))
        self.insist(self.other.some == self.fresh.some, f"nothing since {self.turn}")
        if not self.other.some:
            return 0
        self.insist(self.same(self.other.partial, self.fresh.partial), f"the sum since {self.turn} is not its leaves'")
        index = memcmp(self.other.errors, self.fresh.errors, self.sums * sizeof(double))
        return self.insist(index == 0, f"the errors since {self.turn} are not its leaves'")
