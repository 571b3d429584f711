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

from sluicegate.engines.base cimport MOST_BLOCK, Block, Engine
from sluicegate.engines.chunks cimport at, reserve, run_at
from sluicegate.engines.kernels cimport ADD, MERGE, kernel_of
from sluicegate.engines.program cimport LOG_SUM, MOMENTS, SUM, Program, Slot, combine, copy, deduct, greatest, invertible
from sluicegate.engines.queued cimport Queued, begin_block, drop_before, end_block, shape_elements
from sluicegate.engines.wide cimport TOTAL

from sluicegate.reference.soe import CANCELLED as _CANCELLED
from sluicegate.reference.soe import FAR as _FAR
from sluicegate.reference.soe import LOST as _LOST

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
        return 0

    cdef int lay_out(self, int partials, int64_t limit) except -1:
        """Of a reading's moments only the mean is kept: the count is 1, and it deviates from nothing."""
        self.stride = 1 if self.kernel == MERGE else self.p.width
        shape_elements(&self.pool, &self.queue, self.stride)
        return 0

    cdef int find_slots(self) except -1:
        cdef int k, op, n = self.p.steps
        self.sum_slots = <int*> calloc(2 * n, sizeof(int))
        self.arena = <Slot*> calloc(3 * self.p.width + 6 * n, sizeof(Slot))
        if self.sum_slots == NULL or self.arena == NULL:
            raise MemoryError(f"soe: no memory for 2 totals of {self.p.width} slots")
        self.sum, self.kept, self.deviation_slots = self.arena, self.arena + self.p.width, self.sum_slots + n
        self.whole = self.kept + self.p.width
        self.errors = <double*> (self.whole + self.p.width)
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

    cdef inline Slot* element(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.queue, self.stride, index)

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
        begin_block(&self.pool, block)
        try:
            run_stretches(self, block)
            more = block.more
        finally:
            end_block(&self.pool, more)
        return 0

    cdef int one(self, const Block* block, int64_t i) except -1 nogil:
        if self.kernel == MERGE and self.since >= TURNS * (self.tail - self.head) + FEWEST - 1 and self.overflow_at < self.head:
            self.take_moments_anew()
        self.push(block.leaves + i * self.p.width)
        self.pop_to(block.heads[i])
        if block.totals != NULL and self.head < self.tail:
            copy(self.p, block.totals + i * self.p.width, self.total())
        return 0

    cdef bint is_alone(self, const Block* block, int64_t i) noexcept nogil:
        """Whether the window holds one reading, and one after each from `i` on."""
        return self.tail - self.head == 1 and block.jump == 1 and block.heads[block.n - 1] - self.head == block.n - i

    cdef int run_alone(self, const Block* block, int64_t i) except -1 nogil:
        """Each total is the reading itself; the last one's is taken down, as `take_anew` has it."""
        cdef int64_t k
        try:
            while i < block.n:
                self.make_room()
                k = min(run_at(&self.queue, self.tail), block.n - i)
                keep_values(self.element(self.tail), block.leaves + i * self.p.width, k, self.p.width)
                if block.totals != NULL:
                    copy_readings(block.totals + i * self.p.width, block.leaves + i * self.p.width, k, self.p.width)
                self.head, self.tail, i = self.head + k, self.tail + k, i + k
                drop_before(&self.pool, &self.queue, self.head)
        finally:
            self.take_anew()
        return 0

    cdef int64_t steady(self, const Block* block, int64_t i) except -1 nogil:
        """How many readings from `i` on let one leave each; there is room for them then."""
        cdef int64_t n = block.n - i
        if block.jump != 1 or block.heads[block.n - 1] - self.head != n or self.tail - self.head < 2:
            return 1
        self.make_room()
        if reserve(&self.pool, &self.queue, self.tail + n - 1) < 0:
            with gil:
                raise MemoryError(f"soe: no memory for leaves {self.tail} to {self.tail + n - 1}")
        return n

    cdef const double* exchange(self, const double* new, double* room, int64_t k) noexcept nogil:
        """Keep k readings behind the tail; the k oldest, some of which they may be themselves, where they are or in `room`."""
        cdef int64_t j = 0, n
        while j < k:
            n = min(run_at(&self.queue, self.tail + j), k - j)
            memcpy(self.element(self.tail + j), new + j, n * sizeof(double))
            j += n
        if run_at(&self.queue, self.head) >= k:
            return <const double*> self.element(self.head)
        j = 0
        while j < k:
            n = min(run_at(&self.queue, self.head + j), k - j)
            memcpy(room + j, self.element(self.head + j), n * sizeof(double))
            j += n
        return room

    cdef void fetch_next(self, int64_t k, int64_t first, int64_t end) noexcept nogil:
        """Have what the next k readings take out fetched while these are worked on: of it, quarters `first` to `end`."""
        cdef int64_t j = first * k >> 2, n
        end = min(end * k >> 2, self.tail - self.head - k)
        while j < end:
            n = min(run_at(&self.queue, self.head + k + j), end - j)
            lanes_fetch(self.element(self.head + k + j), n * sizeof(double))
            j += n

    cdef int64_t glide(self, const Block* block, int64_t i, int64_t k) noexcept nogil:
        """Take k such readings: the sum of the differences up to each is added to the total of before.

        What comes and what leaves is cut in two (Rump, Ogita & Oishi's extraction): upper parts on a grid so coarse that
        no sum of them rounds, and small rests. 0, and no reading is taken, where a total is so small that the rounding of
        the rests would show in it.
        """
        cdef double room[STRETCH]
        cdef double upper[STRETCH]
        cdef double lower[STRETCH]
        cdef double unasked[STRETCH]
        cdef double* out = <double*> (block.totals + i) if block.totals != NULL else unasked
        cdef double s = self.sum.f, c = self.errors[0], largest = self.largest[0], up, t, part
        cdef const double* new = <const double*> (block.leaves + i)
        cdef const double* old = self.exchange(new, room, k)
        cdef int found = lanes_cut(new, old, upper, lower, k, grid_of(largest), largest)
        self.fetch_next(k, 0, 2)
        if found > 1:
            largest = lanes_largest(new, k)
            found = lanes_cut(new, old, upper, lower, k, grid_of(largest), largest)
        if found:
            lanes_running(lower, k)
        self.fetch_next(k, 2, 4)
        if lanes_totals(upper, lower if found else NULL, out, k, s, c, self.least_sound(largest, found), &up):
            return 0
        self.note_largest(new, k, largest)
        t = s + up
        part = t - s
        self.sum.f = t
        self.errors[0] = c + (lower[k - 1] if found else 0.0) + ((s - (t - part)) + (up - part))
        self.advance(k)
        return k

    cdef inline double least_sound(self, double largest, bint rests) noexcept nogil:
        """The least magnitude of a total in which the rounding of rests, or of the errors, does not show yet."""
        if rests:
            return largest * CUT
        return largest * CANCELLED if self.errors[0] != 0.0 else 0.0  # without rests nothing rounds

    cdef int64_t glide_moments(self, const Block* block, int64_t i, int64_t k) noexcept nogil:
        """Take up to k such readings: mean and squared deviations of as many readings, one of them exchanged.

        It ends before one that may lose digits or overflow, or where the total is due to be taken anew.
        """
        cdef double new[STRETCH]
        cdef double room[STRETCH]
        cdef double shift[STRETCH + 1]
        cdef double squares[STRETCH]
        cdef double n = self.sum[0].f, mean = self.sum[1].f, m2 = self.sum[2].f
        cdef Slot* totals = block.totals + 3 * i
        cdef const double* old
        cdef int64_t j
        k = max(min(k, TURNS * (self.tail - self.head) + FEWEST - self.since), 0)
        for j in range(k):
            new[j] = block.leaves[3 * (i + j) + 1].f
        old = self.exchange(new, room, k)
        self.fetch_next(k, 0, 4)
        shift[0] = 0.0
        lanes_shares(new, old, shift + 1, k, 1.0 / n)
        lanes_running(shift + 1, k)
        lanes_squares(new, old, shift + 1, squares, k, mean)
        lanes_running(squares, k)
        k = self.while_sound(new, squares, k)
        if k == 0:
            return 0
        for j in range(k if block.totals != NULL else 0):
            totals[3 * j].f, totals[3 * j + 1].f, totals[3 * j + 2].f = n, mean + shift[j + 1], m2 + squares[j]
        self.sum[1].f, self.sum[2].f = mean + shift[k], m2 + squares[k - 1]
        self.advance(k)
        return k

    cdef int64_t while_sound(self, const double* new, const double* squares, int64_t k) noexcept nogil:
        """How many readings neither overflow nor lose digits; the greatest squared deviations up to there are noted."""
        cdef double m2 = self.sum[2].f, most = self.greatest[0], high
        cdef int64_t j
        high = greatest(most, m2 + lanes_largest(squares, k))  # or more
        if not (lanes_sound(squares, k, m2, high * LOST) and lanes_largest(new, k) < FAR):
            high = most
            for j in range(k):
                if not (high * LOST <= m2 + squares[j] < INFINITY) or not fabs(new[j]) < FAR:
                    k = j
                    break
                high = greatest(high, m2 + squares[j])
        self.greatest[0] = high
        return k

    cdef void advance(self, int64_t k) noexcept nogil:
        """As many have left as have come."""
        self.head += k
        self.tail += k
        self.since += k
        drop_before(&self.pool, &self.queue, self.head)

    cdef void note_largest(self, const double* new, int64_t k, double largest) noexcept nogil:
        """Before the tail moves."""
        cdef int64_t j
        self.largest[0] = largest
        for j in range(k - 1, -1, -1):
            if fabs(new[j]) >= 0.5 * largest:
                self.largest_at[0] = self.tail + j
                return

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
        cdef int64_t slots = 3 * self.p.width + 6 * self.p.steps
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


cdef inline double grid_of(double largest) noexcept nogil:
    """What rounds a number up to `largest` to a multiple of 2⁻⁴¹ of the power of two above: sums of 2^12 of those are exact."""
    cdef Slot grid
    grid.f = largest
    grid.i = (grid.i & EXPONENT) + TWELVE_AND_A_HALF
    return grid.f


cdef inline void keep_values(Slot* elements, const Slot* leaves, int64_t k, int w) noexcept nogil:
    """What `soe` keeps of sums, or of moments."""
    cdef int64_t j
    for j in range(k):
        elements[j] = leaves[j * w + (w > 1)]


cdef inline void copy_readings(Slot* totals, const Slot* leaves, int64_t k, int w) noexcept nogil:
    """The totals of one reading each, as `rounded` has them: a sum with an error of 0, whose sign a zero takes."""
    cdef int64_t j
    if w > 1:
        memcpy(totals, leaves, k * w * sizeof(Slot))
        return
    for j in range(k):
        totals[j].f = leaves[j].f + 0.0


cdef inline void add_distances(const Slot* values, int64_t k, double mean, double* total, double* squares) noexcept nogil:
    cdef double first = 0.0, second = 0.0, third = 0.0, fourth = 0.0, a, b
    cdef int64_t j
    for j in range(0, k - 1, 2):
        a, b = values[j].f - mean, values[j + 1].f - mean
        first += a
        second += b
        third += a * a
        fourth += b * b
    if k & 1:
        a = values[k - 1].f - mean
        first += a
        third += a * a
    total[0] += first + second
    squares[0] += third + fourth


cdef int run_stretches(Soe self, const Block* block) except -1 nogil:
    """Readings that let one leave each by stretches, the others one by one."""
    cdef int64_t i = 0, k, alone
    while i < block.n:
        if self.is_alone(block, i):
            return self.run_alone(block, i)
        k = min(self.steady(block, i), STRETCH)
        alone = 1
        if k >= LEAST_RUN:
            k = self.glide(block, i, k) if self.kernel == ADD else self.glide_moments(block, i, k)
            i += k
            alone = 1 if k or self.kernel == MERGE else ALONE  # moments only have to be taken anew
        while k < LEAST_RUN and alone > 0 and i < block.n:
            self.one(block, i)
            i, alone = i + 1, alone - 1
    return 0
