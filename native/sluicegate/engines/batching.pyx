"""Batches into an exact window by count or time, in blocks; see batching.pxd."""

from libc.math cimport log
from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.string cimport memcpy

from sluicegate.engines.answering cimport Answering
from sluicegate.engines.answers cimport (
    BY_COUNT, K_COUNT, K_GEOMETRIC, K_MEAN, K_STD, K_VARIANCE, Output, exact_answer, is_slot, is_whole,
)
from sluicegate.engines.base cimport MOST_BLOCK, Block
from sluicegate.engines.chunks cimport ROOM_OF_BLOCK, ask_for, at, give_back, lend, put_back, reserve, run_at
from sluicegate.engines.heads cimport BEHIND, in_order, leave, stay, walk
from sluicegate.engines.program cimport LOG_SUM, MAX, MIN, MOMENTS, SUM, Program, Slot, lift

cdef extern from "lanes.h" nogil:
    bint lanes_steady(const uint64_t* kept, const uint64_t* times, uint64_t span, int64_t n)
    void lanes_count(int64_t* out, int64_t n, int64_t first)
    void lanes_means(const double* totals, const int64_t* heads, double* out, int64_t n, int w, int64_t end)
    void lanes_exponentials(double* x, int64_t n)
    void lanes_spread(const double* n_of, const double* squares, double* out, int64_t n, int w, double ddof, bint root)

cdef enum:
    SLOTS_OF_BLOCK = 2048  # of a block's leaves
    BLOCK_OF_FEW = 512  # readings at once into a window of up to 16 times as many: more would take memory and no time less


cdef class Batching(Answering):
    """A window whose engine is told where the window begins after each reading of a block."""

    cdef void center_on_reading(self, const double* values) noexcept nogil:
        if self.centers_itself:
            memcpy(self.center, values, self.p.dimensions * sizeof(double))
        self.centered = True

    cdef bint takes_blocks(self) noexcept nogil:
        return not self.bucketed and self.up_to == 0 and (self.policy == BY_COUNT or self.timed)

    cdef int run_blocks(
        self, const double* values, const int64_t* times, int64_t count, double** out
    ) except -1 nogil:
        if not self.centered:
            self.center_on_reading(values)
        try:
            self.run_each_block(values, times, count, out)
        finally:
            put_back(ROOM_OF_BLOCK, self.scratch)
            self.scratch, self.most_block = NULL, 0
        return 0

    cdef int run_each_block(
        self, const double* values, const int64_t* times, int64_t count, double** out
    ) except -1 nogil:
        cdef int64_t i = 0, n
        while i < count:
            n = min(max((self.engine.tail - self.engine.head) >> 4, BLOCK_OF_FEW), max(SLOTS_OF_BLOCK // self.p.width, 1))
            n = min(min(n, MOST_BLOCK), count - i)
            self.room_for_blocks(n)
            self.take_block(values + i * self.p.dimensions, NULL if times == NULL else times + i, n, out, i, count - i - n)
            i += n
        return 0

    cdef void ask_for_next(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row, int64_t head
    ) noexcept nogil:
        """Have the pages looked up that the block after the one at hand reads and writes, while that one runs."""
        cdef int k
        ask_for(values, n * self.p.dimensions * sizeof(double))
        for k in range(self.answers if out != NULL else 0):
            ask_for(out[k] + row, n * sizeof(double))
        if times != NULL:
            ask_for(times, n * sizeof(int64_t))
        if times != NULL and self.timed:
            ask_for(at(&self.time_pool, &self.times, 1, head), min(run_at(&self.times, head), n) * sizeof(int64_t))

    cdef int room_for_blocks(self, int64_t n) except -1 nogil:
        """Heads, leaves and totals of n readings: as many as stay in the processor's first caches, for as long as a batch lasts."""
        cdef int64_t w = self.p.width
        cdef Slot* room
        if n <= self.most_block:
            return 0
        room = <Slot*> lend(ROOM_OF_BLOCK, (n * (2 * w + 4) + BEHIND) * sizeof(Slot))
        if room == NULL:
            with gil:
                raise MemoryError(f"insert_many: no memory for a block of {n} partials of {w} slots")
        put_back(ROOM_OF_BLOCK, self.scratch)
        self.scratch, self.most_block = room, n
        self.cuts = <int64_t*> room + n * (2 * w + 1)
        return 0

    cdef int take_block(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row, int64_t left
    ) except -1 nogil:
        """n readings, after which `left` of the batch are to come."""
        cdef int64_t* heads = <int64_t*> self.scratch
        cdef Block block
        block.n, block.heads, block.more = n, heads, left > 0
        block.leaves = self.lift_block(values, times, n)
        block.totals = self.totals_of_block(out, row)
        if self.timed:
            block.jump = self.heads_by_time(heads, times, n)
        else:
            block.jump = self.heads_by_count(heads, n)
        if left > 0:
            self.ask_for_next(
                values + n * self.p.dimensions, NULL if times == NULL else times + n, min(n, left), out, row + n,
                min(heads[n - 1], self.engine.tail + n - 1),
            )
        try:
            self.engine.run(&block)
        finally:
            self.took_block(times, n, self.engine.tail - self.accepted)
        if out != NULL:
            self.lower_block(&block, out, row)
        return 0

    cdef const Slot* lift_block(self, const double* values, const int64_t* times, int64_t n) noexcept nogil:
        cdef Slot* leaves = self.scratch + self.most_block
        cdef int64_t i
        if self.p.dimensions == 1 and (self.p.alone == SUM or self.p.alone == MAX or self.p.alone == MIN):
            return <const Slot*> values
        if self.p.steps == 1 and (self.p.step.op == MOMENTS or self.p.step.op == LOG_SUM):
            lift_alone(&self.p, leaves, values + self.p.step.dimension, n, self.center[self.p.step.dimension])
            return leaves
        for i in range(n):
            lift(
                &self.p, leaves + i * self.p.width, values + i * self.p.dimensions,
                self.accepted + i if times == NULL else times[i], self.accepted + i, self.center,
            )
        return leaves

    cdef Slot* totals_of_block(self, double** out, int64_t row) noexcept nogil:
        """Where the engine puts its totals: at once in the column where they are the answers."""
        if out == NULL:
            return NULL
        if self.as_is:
            return <Slot*> (out[0] + row)
        return self.scratch + self.most_block * (1 + self.p.width)

    cdef int64_t heads_by_count(self, int64_t* heads, int64_t n) noexcept nogil:
        cdef int64_t i, first = self.engine.head, start = self.accepted + 1 - self.value, full
        if self.hop > 1:
            for i in range(n):
                heads[i] = max(first, self.cut_off_at(self.accepted + i + 1))
            return max(self.hop, heads[0] - first)
        full = min(max(first - start, 0), n)
        for i in range(full):
            heads[i] = first
        lanes_count(heads + full, n - full, start + full)
        return max(heads[0] - first, 1)

    cdef int64_t heads_by_time(self, int64_t* heads, const int64_t* times, int64_t n) except -1 nogil:
        """Where the window begins after each reading; the times are kept. Gives no less than the most that leave at once."""
        cdef int64_t head = self.engine.head, jump = -1
        self.keep_times(times, n)
        self.empties = False
        if self.hop > 1 or self.latest_late >= head or times[0] < self.newest:
            return self.heads_one_by_one(heads, times, n)
        if head < self.engine.tail and self.one_for_each(times, n):
            lanes_count(heads, n, head + 1)
            jump = 1
        elif in_order(times, n):
            jump = self.heads_in_order(heads, times, n)
        self.newest_of_block = times[n - 1]
        return jump if jump >= 0 else self.heads_one_by_one(heads, times, n)

    cdef bint one_for_each(self, const int64_t* times, int64_t n) noexcept nogil:
        """Whether exactly one leaves for each of n readings, which then are in order as those that leave are."""
        cdef int64_t head = self.engine.head, i = 0, k
        cdef const int64_t* kept
        while i < n:
            kept, k = <const int64_t*> at(&self.time_pool, &self.times, 1, head + i), min(run_at(&self.times, head + i), n - i)
            if i and not stay(kept, times + i - 1, self.value, 1):
                return False
            if not lanes_steady(<const uint64_t*> kept, <const uint64_t*> (times + i), self.value, k - 1):
                return False
            if not leave(kept + k - 1, times + i + k - 1, self.value, 1):
                return False
            i += k
        return self.time_of(head + n) > times[n - 1] - self.value

    cdef int64_t heads_in_order(self, int64_t* heads, const int64_t* times, int64_t n) noexcept nogil:
        """The same where no reading was late; −1: more leave than are looked at."""
        cdef int64_t head = self.engine.head, end = self.engine.tail + n, m = min(end - head, 2 * self.most_block), i, jump
        cdef int64_t* cuts = self.cuts
        cdef int64_t* kept = cuts + self.most_block
        for i in range(n):
            cuts[i] = times[i] - self.value
        self.copy_times(kept, head, m)
        for i in range(m, m + BEHIND):
            kept[i] = INT64_MAX
        jump = walk(kept, m, cuts, n, head, heads)
        return -1 if heads[n - 1] - head == m else jump

    cdef int64_t heads_one_by_one(self, int64_t* heads, const int64_t* times, int64_t n) noexcept nogil:
        """The same whatever the times."""
        cdef int64_t head = self.engine.head, tail = self.engine.tail, newest = self.newest, jump = 0, i
        cdef int64_t end = tail + n, lies = head, cutoff, before  # times up to `lies` stand at `span`
        cdef const Slot* span = NULL
        for i in range(n):
            if head == lies and head < end:
                lies = min(head + run_at(&self.times, head), end)
                span = at(&self.time_pool, &self.times, 1, head) - head
            if times[i] < newest:
                self.latest_late = tail + i
            newest = max(newest, times[i])
            cutoff = newest - self.value if self.hop == 1 else self.cut_off_at(newest)
            heads[i] = head
            if head > tail + i or span[head].i > cutoff:
                continue
            before = head
            head += 1
            if head <= tail + i and (span[head].i if head < lies else self.time_of(head)) <= cutoff:
                head = self.first_after(head, tail + i + 1, cutoff)
                lies = max(lies, head)
            jump = max(jump, head - before)
            self.empties = self.empties or head > tail + i
            heads[i] = head
        self.newest_of_block = newest
        return jump

    cdef void copy_times(self, int64_t* out, int64_t index, int64_t n) noexcept nogil:
        """The times of n leaves, one after the other."""
        cdef int64_t k
        while n > 0:
            k = min(run_at(&self.times, index), n)
            memcpy(out, at(&self.time_pool, &self.times, 1, index), k * sizeof(int64_t))
            out, index, n = out + k, index + k, n - k

    cdef int keep_times(self, const int64_t* times, int64_t n) except -1 nogil:
        """Keep the times of the next n leaves."""
        cdef int64_t index = self.engine.tail, i = 0, k
        for k in range(n >> 1 if self.time_pool.surplus else 0):
            if self.time_pool.surplus:
                give_back(&self.time_pool)
        if reserve(&self.time_pool, &self.times, index) < 0 or reserve(&self.time_pool, &self.times, index + n) < 0:
            with gil:
                raise MemoryError(f"window: no memory for the times of readings {index} to {index + n - 1}")
        while i < n:
            k = min(run_at(&self.times, index + i), n - i)
            ask_for(at(&self.time_pool, &self.times, 1, index + i), k * sizeof(int64_t))
            memcpy(at(&self.time_pool, &self.times, 1, index + i), times + i, k * sizeof(int64_t))
            i += k
        return 0

    cdef void took_block(self, const int64_t* times, int64_t n, int64_t taken) noexcept nogil:
        """Take note of the readings that are in."""
        cdef int64_t i, newest = self.newest
        self.created += taken
        self.accepted += taken
        if times == NULL:
            newest = max(newest, self.accepted - 1)
        elif self.timed and taken == n:
            newest = self.newest_of_block
        else:
            for i in range(taken):
                newest = max(newest, times[i])
        self.newest = newest
        if self.timed:
            self.forget_times()
        self.note_edge()

    cdef void lower_block(self, const Block* block, double** out, int64_t row) noexcept nogil:
        cdef int64_t first = self.accepted - block.n + 1, i
        cdef int k
        for k in range(self.answers):
            lower_rows(&self.outputs[k], block, out[k] + row, first, self.p.width)
        for i in range(block.n if self.timed and self.empties else 0):
            if block.heads[i] == first + i:
                for k in range(self.answers):
                    out[k][row + i] = of_nothing(self.outputs[k].kind)


cdef void lift_alone(const Program* p, Slot* leaves, const double* x, int64_t n, double center) noexcept nogil:
    """Readings of a partial that is one set of moments or one sum of logarithms, as `lift`."""
    cdef int64_t i, step = p.dimensions
    if p.step.op == LOG_SUM:
        for i in range(n):
            leaves[i].f = log(x[i * step])
        return
    for i in range(n):
        leaves[3 * i].f, leaves[3 * i + 1].f, leaves[3 * i + 2].f = 1.0, x[i * step] - center, 0.0


cdef void lower_rows(const Output* o, const Block* block, double* out, int64_t first, int w) noexcept nogil:
    """One aggregate's answers after each reading, the first of which gave the window the end `first`."""
    cdef const Slot* totals = block.totals + o.slot
    cdef int64_t i
    cdef Slot answer
    if is_slot(o.kind):
        if <double*> block.totals != out:
            for i in range(block.n):
                out[i] = totals[i * w].f
    elif o.kind == K_COUNT:
        for i in range(block.n):
            out[i] = <double> (first + i - block.heads[i])
    elif o.kind == K_MEAN or o.kind == K_GEOMETRIC:
        lanes_means(<const double*> totals, block.heads, out, block.n, w, first)
        if o.kind == K_GEOMETRIC:
            lanes_exponentials(out, block.n)
    elif o.kind == K_VARIANCE or o.kind == K_STD:
        lanes_spread(<const double*> totals, <const double*> (totals + 2), out, block.n, w, o.ddof, o.kind == K_STD)
    else:
        for i in range(block.n):
            answer = exact_answer(o, block.totals + i * w, first + i - block.heads[i])
            out[i] = <double> answer.i if is_whole(o.kind) else answer.f
