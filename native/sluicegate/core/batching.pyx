"""Batches into an exact window by count or time, in blocks; see batching.pxd."""

from libc.math cimport fabs, log
from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

from sluicegate.core.answering cimport in_column, of_nothing
from sluicegate.answers.results cimport (
    BY_COUNT, K_COUNT, K_MEAN, K_STD, K_VARIANCE, Output, exact_answer, is_slot, spread,
)
from sluicegate.engines.base cimport MOST_BLOCK, Block
from sluicegate.histograms._statistics cimport Moments
from sluicegate.partials.kernels cimport MERGE, kernel_of
from sluicegate.partials.program cimport LOG_SUM, MAX, MIN, MOMENTS, SUM, Program, Slot, lift
from sluicegate.memory.times cimport Times, clear_times, copy_out, give_back_times, keep, time_at
from sluicegate.rolling.starts cimport first_after, starts_by_count, starts_by_time
from sluicegate.rolling.totals cimport Rolling, roll

cdef enum:
    SLOTS_OF_BLOCK = 8192  # of a block's leaves
    BLOCK_OF_FEW = 512  # readings at once into a small window: more would take memory and no time less
    BLOCK_OF_SOME = 2048  # into one of four to 16 times as many: such a part more is held for as long as a block lasts

cdef double FAR_CENTER = 4294967296.0  # sluicegate.reference.core.FAR_CENTER


cdef class Batching(EventTime):
    """A window whose engine is told where the window begins after each reading of a block."""

    cdef void center_on_reading(self, const double* values) noexcept nogil:
        cdef int k
        for k in range(self.p.dimensions if self.centers_itself else 0):
            self.center[k] = values[k] if self.bucketed or fabs(values[k]) < FAR_CENTER else 0.0
        self.centered = True

    cdef bint ingests_blocks(self) noexcept nogil:
        if self.bucketed or self.up_to.sign or self.sorted is not None:
            return False
        return self.policy == BY_COUNT or self.timed

    cdef int run_blocks(self, const double* values, const int64_t* times, int64_t count, double** out) except -1 nogil:
        """A batch: through the rolling kernels while the window is much shorter than what comes, else in blocks."""
        cdef int64_t i = 0, n, held, again = 0
        if not self.centered:
            self.center_on_reading(values)
        try:
            while i < count:
                held = self.engine.tail - self.engine.head
                if i >= again:  # not sooner: what was tried in vain cost a tile
                    n = ingest_rolled(self, values, times, i, count, out)
                    again = i + max(4 * held, TILE)
                    if n:
                        i += n
                        continue
                n = max(held >> 4, min(max(held >> 2, BLOCK_OF_FEW), BLOCK_OF_SOME))
                n = min(min(n, max(SLOTS_OF_BLOCK // self.p.width, 1)), min(<int64_t> MOST_BLOCK, count - i))
                room_for_blocks(self, n)
                ingest_block(self, values + i * self.p.dimensions, NULL if times == NULL else times + i, n, out, i)
                i += n
        finally:
            self.engine.return_spare(count)
            free(self.scratch)
            self.scratch, self.most_block = NULL, 0
        return 0


cdef int room_for_blocks(Batching self, int64_t n) except -1 nogil:
    """Heads, leaves and totals of n readings, few enough for the processor's first caches, while a batch lasts."""
    cdef int64_t w = self.p.width
    cdef Slot* room
    if n <= self.most_block:
        return 0
    room = <Slot*> malloc(n * (2 * w + 1) * sizeof(Slot))
    if room == NULL:
        with gil:
            raise MemoryError(f"insert_many: no memory for a block of {n} partials of {w} slots")
    free(self.scratch)
    self.scratch, self.most_block = room, n
    return 0


cdef int ingest_block(
    Batching self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
) except -1 nogil:
    cdef int64_t* heads = <int64_t*> self.scratch
    cdef Block block
    block.n, block.heads = n, heads
    block.leaves = lift_block(self, values, times, n)
    block.totals = totals_of_block(self, out, row)
    if self.timed:
        heads_by_time(self, heads, times, n)
    else:
        heads_by_count(self, heads, n)
    try:
        self.engine.run(&block)
    finally:
        note_block(self, times, self.engine.tail - self.accepted)
    if out != NULL:
        lower_block(self, &block, out, row)
    return 0


cdef inline bint lies_as_given(Batching self) noexcept nogil:
    """Whether a value of one dimension is its partial."""
    return self.p.alone == SUM or self.p.alone == MAX or self.p.alone == MIN


cdef const Slot* lift_block(Batching self, const double* values, const int64_t* times, int64_t n) noexcept nogil:
    cdef Slot* leaves = self.scratch + self.most_block
    cdef int64_t i
    if self.p.dimensions == 1 and lies_as_given(self):
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


cdef Slot* totals_of_block(Batching self, double** out, int64_t row) noexcept nogil:
    """Where the engine puts its totals: at once in the column where they are the answers."""
    if out == NULL:
        return NULL
    if self.as_is:
        return <Slot*> (out[0] + row)
    return self.scratch + self.most_block * (1 + self.p.width)


cdef void heads_by_count(Batching self, int64_t* heads, int64_t n) noexcept nogil:
    cdef int64_t i, first = self.engine.head
    if self.hop == 1:
        starts_by_count(self.value, first, self.engine.tail, n, heads)
    for i in range(n if self.hop > 1 else 0):
        heads[i] = max(first, self.cut_off_at(self.accepted + i + 1))


cdef int heads_by_time(Batching self, int64_t* heads, const int64_t* times, int64_t n) except -1 nogil:
    """Where the window begins after each reading; the times are kept."""
    cdef int64_t head = self.engine.head, tail = self.engine.tail, i = 0, k
    keep_times(self, times, n)
    self.empties = False
    if self.hop == 1 and time_at(self.times, head) > times[n - 1] - self.value:  # nothing leaves yet
        for i in range(n):
            heads[i] = head
        return 0
    while i < n:
        k = min(<int64_t> TOGETHER, n - i)
        if self.hop > 1 or not heads_merged(self, heads + i, times + i, k, head, tail + i):
            heads_stepwise(self, heads + i, times + i, k, head, tail + i)
        head, i = heads[i + k - 1], i + k
    return 0


cdef int keep_times(Batching self, const int64_t* times, int64_t n) except -1 nogil:
    """Keep the times of the next n leaves."""
    cdef int64_t index = self.engine.tail
    give_back_times(self.times, n >> 1)
    if keep(self.times, index, times, n) < 0:
        with gil:
            raise MemoryError(f"window: no memory for the times of readings {index} to {index + n - 1}")
    return 0


cdef void note_block(Batching self, const int64_t* times, int64_t taken) noexcept nogil:
    """Take note of the readings that are in."""
    cdef int64_t i
    self.created += taken
    self.accepted += taken
    if times == NULL:
        self.newest = max(self.newest, self.accepted - 1)
    elif self.timed and taken:
        self.newest = times[taken - 1]
    else:
        for i in range(taken):
            self.newest = max(self.newest, times[i])
    if self.timed:
        self.forget_times()
    self.note_edge()


cdef void lower_block(Batching self, const Block* block, double** out, int64_t row) noexcept nogil:
    cdef int64_t first = self.accepted - block.n + 1, i
    cdef int k
    for k in range(self.answers):
        lower_rows(&self.outputs[k], block, out[k] + row, first, self.p.width)
    for i in range(block.n if self.timed and self.empties else 0):
        if block.heads[i] == first + i:
            for k in range(self.answers):
                out[k][row + i] = of_nothing(self.outputs[k].kind)


include "batching_rows.pxi"
include "batching_rolled.pxi"
include "batching_heads.pxi"
