"""Subtract-on-Evict in compiled code.

Fact card: FIFO; associative operation with an inverse (`deduct`); insert and query O(1), eviction O(1) amortised, O(n)
where digits were lost; n partials and a sum. Source: paper DABA, Figure 2. What keeps the total from drifting, and from
staying poisoned after a large value, is told in the twin, sluicegate.reference.soe.
"""

cimport cython
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from sluicegate.engines.chunks cimport at
from sluicegate.engines.program cimport LOG_SUM, MOMENTS, SUM, Program, Slot, combine, copy, deduct, invertible
from sluicegate.engines.queued cimport Queued, drop_before
from sluicegate.engines.wide cimport TOTAL

from sluicegate.reference.soe import CANCELLED as _CANCELLED
from sluicegate.reference.soe import FAR as _FAR
from sluicegate.reference.soe import LOST as _LOST

cdef double LOST = _LOST
cdef double CANCELLED = _CANCELLED
cdef double FAR = _FAR
cdef enum:
    TURNS = 4  # sluicegate.reference.soe.TURNS


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
        self.reset()
        return 0

    cdef int find_slots(self) except -1:
        cdef int k, op, n = self.p.steps
        self.sum_slots = <int*> calloc(2 * n, sizeof(int))
        self.arena = <Slot*> calloc(2 * self.p.width + 6 * n, sizeof(Slot))
        if self.sum_slots == NULL or self.arena == NULL:
            raise MemoryError(f"soe: no memory for 2 totals of {self.p.width} slots")
        self.sum, self.kept, self.deviation_slots = self.arena, self.arena + self.p.width, self.sum_slots + n
        self.errors = <double*> (self.kept + self.p.width)
        self.kept_errors, self.before, self.largest = self.errors + n, self.errors + 2 * n, self.errors + 3 * n
        self.greatest, self.largest_at = self.errors + 4 * n, <int64_t*> (self.errors + 5 * n)
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
        memset(self.errors, 0, 5 * self.p.steps * sizeof(double))
        for k in range(self.sums):
            self.largest_at[k] = -1
        self.overflow_at, self.since = -1, 0

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Add to the total."""
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        self.add(leaf, self.tail)
        self.tail += 1
        return 0

    cdef void pop(self) noexcept nogil:
        """Deduct from the total; take it anew where that lost digits."""
        if self.head == self.tail:
            return
        self.head += 1
        self.since += 1
        if self.head == self.tail:
            self.reset()
        else:
            self.take_away(self.sum, self.errors, self.leaf(self.head - 1))
            if self.lost():
                self.take_anew()
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
        if self.deviations and self.since >= TURNS * (self.tail - self.head) + 64:
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
        cdef int64_t slots = 2 * self.p.width + 6 * self.p.steps
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
