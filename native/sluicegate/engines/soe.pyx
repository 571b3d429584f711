"""Subtract-on-Evict in compiled code.

Fact card: FIFO; associative operation with an inverse (`deduct`); insert and query O(1), eviction O(1) amortised, O(n)
where digits were lost; n partials and a sum. Source: paper DABA, Figure 2.

What the paper leaves open is a total that drifts, or stays poisoned after a large value. Here:
* sums carry the exact error of each addition and subtraction beside them (TwoSum), as if they had twice the digits;
* where that is not enough the total is taken anew from the leaves: when the largest summand has left and the sum is
  smaller by 2⁻⁴⁰, when squared deviations have fallen below 2⁻¹⁶ of their greatest, and when what made them overflow
  has left. Each time the greatest falls by as much, so this is rare whatever comes;
* so it is where only one leaf is left: the total is that leaf;
* squared deviations have no such errors beside them: they are also taken anew in every fourth window turn
  (of small windows: after 512 evictions more). A reading that leaves right after another came is exchanged for it,
  which rounds less often than adding the one and deducting the other.

The first `plain` of the `sums` are sums whose exact rounding errors stand beside them; the others carry theirs.
"""

cimport cython
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from sluicegate.engines.base cimport Block, Engine
from sluicegate.engines.queued cimport Queued, drop_before
from sluicegate.memory.chunks cimport at, run_at
from sluicegate.partials.kernels cimport ADD, ANY, MERGE, kernel_of
from sluicegate.partials.program cimport (
    LOG_SUM, MOMENTS, SUM, Program, Slot, combine, copy, deduct, greatest, invertible,
)
from sluicegate.partials.wide cimport TOTAL

cdef double LOST = 2.0 ** -16  # squared deviations that have fallen below so much of their greatest
cdef double CANCELLED = 2.0 ** -40  # the same of a sum and its largest summand
cdef double FAR = 2.0 ** 500  # a reading from here on may make squared deviations overflow
cdef enum:
    TURNS = 4
    FEWEST = 512  # evictions, however small the window


@cython.final
cdef class Soe(Queued):
    """Leaves head … tail − 1 and their running total."""

    cdef Slot* arena  # what the pointers below point at
    cdef Slot* sum
    cdef Slot* kept  # of rest
    cdef Slot* whole  # the leaf last asked for, where only its value is kept
    cdef double* errors  # of the plain sums
    cdef double* kept_errors
    cdef double* before  # the plain sums before an operation
    cdef double* largest  # summand of each sum since the total was taken
    cdef int64_t* largest_at  # its leaf, or a later one half as large
    cdef double* greatest  # squared deviations since then
    cdef Slot* former  # the total before the newest leaf came
    cdef double* former_greatest
    cdef int64_t former_overflow_at
    cdef int64_t former_until  # the tail as long as nothing has left since, or another number
    cdef int64_t overflow_at  # the last leaf far enough to make them overflow, or with which they did
    cdef int64_t since  # evictions since the total was taken
    cdef int* sum_slots
    cdef int* deviation_slots
    cdef int kernel
    cdef int plain
    cdef int sums
    cdef int deviations

    def __dealloc__(self):
        free(self.arena)
        free(self.sum_slots)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.kernel = kernel_of(p)
        if self.kernel == MERGE:  # of a reading's moments only the mean is kept: it counts 1, and deviates from nothing
            self.lay_out(1)
        if not invertible(p):
            raise ValueError("soe: the program has a component without an inverse")
        self.find_slots()
        self.reset()
        self.slide_by = slide
        return 0

    cdef int find_slots(self) except -1:
        cdef int k, op, n = self.p.steps
        self.sum_slots = <int*> calloc(2 * n, sizeof(int))
        self.arena = <Slot*> calloc(4 * self.p.width + 7 * n, sizeof(Slot))
        if self.sum_slots == NULL or self.arena == NULL:
            raise MemoryError(f"soe: no memory for 2 totals of {self.p.width} slots")
        self.errors, self.deviation_slots = <double*> self.arena, self.sum_slots + n
        self.kept_errors, self.before, self.former_greatest = self.errors + n, self.errors + 2 * n, self.errors + 3 * n
        self.largest, self.greatest = self.errors + 4 * n, self.errors + 5 * n
        self.largest_at = <int64_t*> (self.errors + 6 * n)
        self.sum = self.arena + 7 * n
        self.kept, self.whole = self.sum + self.p.width, self.sum + 2 * self.p.width
        self.former = self.sum + 3 * self.p.width
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
        return at(&self.queue, self.stride, index)

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        if self.kernel != MERGE:
            return self.element(index)
        self.whole[0].f, self.whole[1], self.whole[2].f = 1.0, self.element(index)[0], 0.0
        return self.whole

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Add to the total."""
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
        """The leaf before the head, which has left, for the newest, which came right before: from the total of before
        both."""
        cdef Slot* former
        cdef Slot* now
        cdef double newest, gone
        cdef int k
        for k in range(self.deviations):
            if self.former_greatest[k] == INFINITY or not fabs(self.mean_of(self.tail - 1, k)) < FAR:
                return
        for k in range(self.deviations):
            former, now = self.former + self.deviation_slots[k] - 2, self.sum + self.deviation_slots[k] - 2
            newest, gone = self.mean_of(self.tail - 1, k), self.mean_of(self.head - 1, k)
            exchange_mean(former[0].f, &former[1].f, &former[2].f, newest, gone)
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

    cdef int run(self, const Block* block) except -1 nogil:
        cdef int64_t i = 0
        while i < block.n:
            i += take(
                self, block.leaves + i * self.p.width, block.heads + i, block.n - i,
                block.totals + i * self.p.width if block.totals != NULL else NULL,
            )
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


cdef int slide(Engine self, const Slot* leaf, int64_t head, Slot* out) except -1 nogil:
    take(<Soe> self, leaf, &head, 1, out)
    return self.head < self.tail


cdef inline int64_t take(Soe self, const Slot* leaves, const int64_t* heads, int64_t n, Slot* out) except -1 nogil:
    """The first of n readings as push, pop_to and total; or, where one leaves for each, as many as go in one
    stretch."""
    cdef int64_t taken = 0
    if self.kernel != ANY and heads[0] == self.head + 1 and self.tail - self.head > 1:
        self.make_room()
        n = min(n, min(run_at(&self.queue, self.head), run_at(&self.queue, self.tail)))
        if self.kernel == ADD:
            taken = exchange_sums(self, leaves, heads, n, out)
        else:
            taken = exchange_moments(self, leaves, heads, min(n, turns_left(self) - 1), out)
    if taken:
        self.head += taken
        self.tail += taken
        drop_before(&self.pool, &self.queue, self.head)
        return taken
    self.push(leaves)
    self.pop_to(heads[0])
    if out != NULL and self.head < self.tail:
        copy(self.p, out, self.total())
    return 1


cdef inline int64_t exchange_sums(Soe self, const Slot* new, const int64_t* heads, int64_t n, Slot* out) noexcept nogil:
    """Readings for each of which one leaves, up to one with which digits are lost: a sum, its error, the largest
    summand."""
    cdef const Slot* old = self.element(self.head)
    cdef Slot* kept = self.element(self.tail)
    cdef double total = self.sum.f, errors = self.errors[0], most = self.largest[0], x, between, after
    cdef int64_t at_most = self.largest_at[0], i = 0, latest
    while i < n and heads[i] == self.head + i + 1:
        x, latest = new[i].f, at_most
        between = total + x
        after = between - old[i].f
        if fabs(x) >= 0.5 * most:
            latest = self.tail + i
        if latest <= self.head + i and fabs(after) < max(most, fabs(x)) * CANCELLED:
            break
        errors = errors + error_of(total, x, between)
        errors += error_of(between, -old[i].f, after)
        most, at_most, total = max(most, fabs(x)), latest, after
        kept[i].f = x
        if out != NULL:
            out[i].f = total + errors
        i += 1
    self.sum.f, self.errors[0], self.largest[0], self.largest_at[0] = total, errors, most, at_most
    return i


cdef inline double error_of(double a, double b, double total) noexcept nogil:
    """What rounding took from a + b = total (Knuth's TwoSum)."""
    cdef double part = total - a
    return (a - (total - part)) + (b - part)


cdef inline int64_t exchange_moments(
    Soe self, const Slot* new, const int64_t* heads, int64_t n, Slot* out
) noexcept nogil:
    """The same of mean and squared deviations, up to where they overflow or lose digits."""
    cdef const Slot* old = self.element(self.head)
    cdef Slot* kept = self.element(self.tail)
    cdef double count = self.sum[0].f, mean = self.sum[1].f, m2 = self.sum[2].f, most = self.greatest[0]
    cdef double x, next_mean, next_m2
    cdef int64_t i = 0
    while i < n and heads[i] == self.head + i + 1:
        x, next_mean, next_m2 = new[3 * i + 1].f, mean, m2
        exchange_mean(count, &next_mean, &next_m2, x, old[i].f)
        if not (fabs(x) < FAR and next_m2 < INFINITY and most < INFINITY and next_m2 >= most * LOST):
            break
        mean, m2, most = next_mean, next_m2, greatest(most, next_m2)
        kept[i].f = x
        if out != NULL:
            out[3 * i].f, out[3 * i + 1].f, out[3 * i + 2].f = count, mean, m2
        i += 1
    self.sum[1].f, self.sum[2].f, self.greatest[0] = mean, m2, most
    self.since += i
    return i


cdef inline void exchange_mean(double n, double* mean, double* m2, double new, double old) noexcept nogil:
    """Mean and squared deviations of n readings, one of them for another."""
    cdef double by = new - old, before = mean[0]
    mean[0] = before + by / n
    m2[0] += by * ((new - mean[0]) + (old - before))


cdef inline int64_t turns_left(Soe self) noexcept nogil:
    """How many readings until moments are due to be taken anew."""
    return TURNS * (self.tail - self.head) + FEWEST - self.since
