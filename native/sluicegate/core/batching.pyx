"""Batches into an exact window by count or time, in blocks; see batching.pxd."""

from libc.math cimport fabs, log
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from sluicegate.core.answering cimport Answering
from sluicegate.answers.results cimport (
    BY_COUNT, K_COUNT, K_GEOMETRIC, K_MEAN, K_STD, K_VARIANCE, Output, exact_answer, is_slot, is_whole,
)
from sluicegate.engines.base cimport EARLIER, MOST_BLOCK, Block
from sluicegate.memory.chunks cimport ROOM_OF_BLOCK, ask_for, lend, put_back
from sluicegate.engines.directly cimport (
    MOST_DIRECTLY, MOST_IN_BLOCKS, add_by_time, directly_add, directly_greatest, directly_least,
    greatest_by_time, growing_add, growing_greatest, growing_least, least_by_time, ordered,
)
from sluicegate.engines.heads cimport AROUND, BEHIND, FAR, NEAR, Guesses, heads_of, heads_together, in_order, no_guesses, offset_at
from sluicegate.partials.program cimport LOG_SUM, MAX, MIN, MOMENTS, SUM, Program, Slot, lift
from sluicegate.memory.times cimport (
    BLOCK, EVEN, OFFSETS, Stretch, Times, ask_for_times, clear_times, copy_offsets, copy_out, give_back_times, keep, keep_even, left_in_block, stretch_of, time_at, time_in,
)
from sluicegate.engines.uneven cimport Course, course_of, find_heads

cdef extern from "lanes.h" nogil:
    void lanes_count(int64_t* out, int64_t n, int64_t first)
    void lanes_means(const double* totals, const int64_t* heads, double* out, int64_t n, int w, int64_t end)
    void lanes_exponentials(double* x, int64_t n)
    void lanes_spread(const double* n_of, const double* squares, double* out, int64_t n, int w, double ddof, bint root)

cdef extern from "times.h" nogil:
    bint times_even(const uint64_t* times, int64_t n, uint64_t step)
    bint times_to_offsets(const uint64_t* times, int32_t* out, int64_t n, uint64_t first)
    void times_risen(const int64_t* times, int64_t* out, int64_t n)
    void times_raised(int64_t* times, int64_t n)

cdef enum:
    TOO_FEW = -1  # leaves were looked at
    TOO_LONG = -2  # between them for offsets
    NOT_SO = -3  # in order
    SLOTS_OF_BLOCK = 8192  # of a block's leaves
    HEADS_TOGETHER = 1024  # readings whose times, and those of what leaves, stay in the first cache
    LEAST_UNEVENLY = 256  # readings for which what is done once pays
    LEAST_EVENLY = 1024  # the same where the batch goes on otherwise after them
    LEAST_RISEN = 4096  # readings whose times are risen at once, at least
    TIMES_AT_ONCE = 512
    MORE_BEFORE = 1024  # readings that may be looked at before those the window holds
    BLOCK_OF_FEW = 512  # readings at once into a small window: more would take memory and no time less
    LEAST_DIRECTLY = 128  # readings, for which the same is so
    BLOCK_BEFORE = 64  # readings at once until the window lies in the batch, where some leave
    LEAST_BEFORE = 16  # and at least
    LOOKED_BACK = 512  # readings at least among which such a window begins anew
    BLOCK_OF_SOME = 2048  # into one of four times as many, up to 16 times: such a part more is held for as long as a block lasts

cdef double FAR_CENTER = 4294967296.0  # sluicegate.reference.core.FAR_CENTER


ctypedef struct Lying:  # what may be kept of a batch
    Times* kept
    const int64_t* given  # leaf j's time is at j
    int64_t head  # of those held before it
    int64_t tail


cdef class Batching(Answering):
    """A window whose engine is told where the window begins after each reading of a block."""

    cdef void center_on_reading(self, const double* values) noexcept nogil:
        cdef int k
        for k in range(self.p.dimensions if self.centers_itself else 0):
            self.center[k] = values[k] if self.bucketed or fabs(values[k]) < FAR_CENTER else 0.0
        self.centered = True

    cdef bint takes_blocks(self) noexcept nogil:
        return not self.bucketed and self.up_to == 0 and (self.policy == BY_COUNT or self.timed)

    cdef int run_blocks(
        self, const double* values, const int64_t* times, int64_t count, double** out
    ) except -1 nogil:
        if not self.centered:
            self.center_on_reading(values)
        cdef Ahead ahead
        ahead.searched_to = ahead.ordered_to = ahead.looked_to = ahead.even_at = 0
        self.given = times
        try:
            self.run_each_block(values, times, take_carried(self, values, times, count, out, &ahead), count, out, &ahead)
        finally:
            put_back(ROOM_OF_BLOCK, self.scratch)
            free(self.risen)
            self.scratch, self.risen = NULL, NULL
            self.most_block = self.most_risen = 0
        return 0

    cdef int run_each_block(
        self, const double* values, const int64_t* times, int64_t i, int64_t count, double** out, Ahead* ahead
    ) except -1 nogil:
        """Readings i … count − 1 of a batch."""
        cdef int64_t n, held, again = 0, again_directly = 0, again_evenly = 0, soon
        cdef bint refused = self.p.dimensions > 1 or not self.lies_as_given(), even = self.step > 0 or not self.timed, few, goes_on
        cdef bint looks = not refused and not even and self.hop == 1 and self.engine.most_directly() > 0  # at the times that lie ahead
        while i < count:
            held = self.engine.tail - self.engine.head
            few = not refused and holds_few(self, held, even)
            soon = count
            if not refused and i >= held + EARLIER:
                if looks and i >= again_evenly:
                    n = take_evenly(self, values + i, count - i, out, i)
                    i += n
                    again_evenly = i + max(held + EARLIER, LEAST_EVENLY)
                    if n:
                        continue
                    if ahead.even_at < count and ahead.even_at + held + EARLIER > i:  # late ones made the window hold more
                        again_evenly = ahead.even_at + held + EARLIER
                ahead.times, ahead.n = NULL if times == NULL else times + i, count - i
                if looks and (few and i >= again_directly or i >= again and self.engine.may_unevenly()):
                    look_ahead(self, ahead, i, count, few)
                goes_on = i + ahead.n < count
                if few and i >= again_directly:
                    n = take_directly(self, values + i, ahead.times, ahead.n, out, i)
                    i += n
                    again_directly = i if n and goes_on else i + looked_back(held)
                    if n:
                        again_evenly = i
                        continue
                if count - i >= held and self.goes_steadily(ahead.times):
                    if self.take_steadily(values + i, ahead.times, count - i, out, i):
                        return 0
                    refused = True
                if looks and i >= again:
                    again = i + max(held + EARLIER, LOOKED_BACK)
                    n = self.take_unevenly(values + i, ahead.times, ahead.n, out, i)
                    if n:
                        i += n
                        again_evenly = again = i
                        continue
                if goes_on:
                    soon = max(min(again_evenly, min(again, again_directly) if few else again), i + BLOCK_BEFORE)
            n = max(held >> 4, min(max(held >> 2, BLOCK_OF_FEW), BLOCK_OF_SOME))
            if not refused and i < held + EARLIER <= count - BLOCK_BEFORE - LEAST_DIRECTLY and self.engine.most_directly() > 0:
                n = min(n, until_it_lies(self, times, i, count, held))
            n = min(n, soon - i)
            n = min(min(n, max(SLOTS_OF_BLOCK // self.p.width, 1)), min(<int64_t> MOST_BLOCK, count - i))
            self.room_for_blocks(n)
            self.take_block(values + i * self.p.dimensions, NULL if times == NULL else times + i, n, out, i, count - i - n)
            i += n
        return 0

    cdef void ask_for_next(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row, int64_t head
    ) noexcept nogil:
        """Have the pages looked up that the block after the one at hand reads and writes, while that one runs; `head`: −1 where the engine fetches times."""
        cdef int k
        ask_for(values, n * self.p.dimensions * sizeof(double))
        for k in range(self.answers if out != NULL else 0):
            ask_for(out[k] + row, n * sizeof(double))
        if times != NULL and self.step < 0:
            ask_for(times, n * sizeof(int64_t))
        if times != NULL and self.timed and head >= 0:
            ask_for_times(&self.times, head, n)

    cdef const int32_t* times_soon(self, int64_t head, int64_t n) noexcept nogil:
        """The offsets from the head on after a block of n readings, where that has them."""
        if head >= self.engine.tail + n or stretch_of(&self.times, head).kind != OFFSETS:
            return NULL
        return offset_at(&self.times, head)

    cdef int room_for_blocks(self, int64_t n) except -1 nogil:
        """Heads, leaves and totals of n readings: as many as stay in the processor's first caches, for as long as a batch lasts."""
        cdef int64_t w = self.p.width
        cdef Slot* room
        if n <= self.most_block:
            return 0
        room = <Slot*> lend(ROOM_OF_BLOCK, (n * (2 * w + 1) + ((3 * n + AROUND + BEHIND) >> 1) + 1) * sizeof(Slot))
        if room == NULL:
            with gil:
                raise MemoryError(f"insert_many: no memory for a block of {n} partials of {w} slots")
        put_back(ROOM_OF_BLOCK, self.scratch)
        self.scratch, self.most_block = room, n
        self.cuts = <int32_t*> (room + n * (2 * w + 1))
        return 0

    cdef bint goes_steadily(self, const int64_t* times) noexcept nogil:
        """Whether one reading leaves for each from these times on, where the batch has brought more than the window holds.

        Then all that were there before it have left. The newest of them may have been evicted by hand, and be after what comes.
        """
        return self.hop == 1 and self.engine.head < self.engine.tail and (not self.timed or (self.step > 0 and (times - 1)[0] >= self.newest))

    cdef int take_steadily(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
    ) except -1 nogil:
        """The last n readings of a batch at once, if the engine has a way for them."""
        cdef int64_t held = self.engine.tail - self.engine.head, head = self.engine.head
        cdef int taken = False
        if self.timed and not self.move_times(head + n, times[n - held], held):
            self.move_times(head, times[-held], held)  # for which there is room: they were there
            return False
        try:
            taken = self.engine.run_steadily(<const Slot*> values, n, NULL if out == NULL else <Slot*> out[0] + row)
        finally:
            if self.timed and not taken:
                self.move_times(head, times[-held], held)
        if not taken:
            return False
        if self.timed:
            self.newest_of_block = times[n - 1]
        if out == NULL or self.as_is:
            self.took_block(times, n, n)
        else:
            self.lower_rest(times, n, out, row, -1)
        return True

    cdef int64_t take_unevenly(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
    ) except -1 nogil:
        """How many of n readings of a batch, which has brought all the window holds, the engine has taken at once whatever their gaps."""
        cdef int64_t head = self.engine.head, tail = self.engine.tail
        cdef Lying lying
        if not self.engine.may_unevenly() or n < max(tail - head, LEAST_UNEVENLY) or not self.may_lie_in_order(times, row):
            return 0
        lying.kept, lying.given, lying.head, lying.tail = &self.times, self.given + row - tail, head, tail
        n = self.engine.run_unevenly(
            <const Slot*> values, times, self.value, n, NULL if out == NULL else <Slot*> out[0] + row, keep_lying, &lying
        )
        if not n:
            return 0
        self.newest_of_block = times[n - 1]
        note_late(self, times, self.given + row, self.engine.head - tail, n)
        if out == NULL or self.as_is:
            self.took_block(times, n, n)
        else:
            self.lower_rest(times, n, out, row, head)
        return n

    cdef bint may_lie_in_order(self, const int64_t* times, int64_t row) noexcept nogil:
        """Whether all that the window holds, and a few before, come in order before these times in the batch, and leave by them alone."""
        cdef int64_t head = self.engine.head, first = head - self.engine.tail - EARLIER
        if self.latest_late >= head and times == self.given + row:
            return False
        return self.hop == 1 and (times - 1)[0] >= self.newest and in_order(times + first, -first)

    cdef bint hold_times(self, int64_t index, const int64_t* times, int64_t n) noexcept nogil:
        return keep_only(&self.times, index, times, n)

    cdef bint move_times(self, int64_t index, int64_t first, int64_t n) noexcept nogil:
        """Keep the times of the n leaves from `index` on, and no others; False: no memory."""
        clear_times(&self.times)
        return keep_even(&self.times, index, first, self.step, n) >= 0

    cdef void lower_rest(self, const int64_t* times, int64_t n, double** out, int64_t row, int64_t head) noexcept nogil:
        """The answers after n readings whose totals stand in the first column, and note that they are in; `head`: before them, −1: one left for each."""
        cdef int64_t i = 0, held = self.engine.tail - self.engine.head, k
        cdef Block block
        cdef Course course
        if head >= 0:
            course = course_of(times, self.value, self.accepted, n)
        block.heads, block.totals = <int64_t*> self.scratch, self.scratch + 2 * self.most_block
        self.empties = False
        while i < n:
            block.n = k = min(self.most_block, n - i)
            memcpy(block.totals, out[0] + row + i, k * sizeof(Slot))
            if head < 0:
                lanes_count(<int64_t*> self.scratch, k, self.accepted + 1 - held)
            else:
                find_heads(&course, head, self.accepted, k, <int64_t*> self.scratch)
                head = (<int64_t*> self.scratch)[k - 1]
            self.took_block(NULL if times == NULL else times + i, k, k)
            self.lower_block(&block, out, row + i)
            i += k

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
        block.soon = self.times_soon(heads[n - 1], n) if left > 0 and self.timed and self.step < 0 else NULL
        if left > 0:
            self.ask_for_next(
                values + n * self.p.dimensions, NULL if times == NULL else times + n, min(n, left), out, row + n,
                min(heads[n - 1], self.engine.tail + n - 1) if block.soon == NULL else -1,
            )
        try:
            self.engine.run(&block)
        finally:
            self.took_block(times, n, self.engine.tail - self.accepted)
        if out != NULL:
            self.lower_block(&block, out, row)
        return 0

    cdef inline bint lies_as_given(self) noexcept nogil:
        """Whether a value of one dimension is its partial."""
        return self.p.alone == SUM or self.p.alone == MAX or self.p.alone == MIN

    cdef const Slot* lift_block(self, const double* values, const int64_t* times, int64_t n) noexcept nogil:
        cdef Slot* leaves = self.scratch + self.most_block
        cdef int64_t i
        if self.p.dimensions == 1 and self.lies_as_given():
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
        if head < self.engine.tail and self.one_for_each(n):
            lanes_count(heads, n, head + 1)
            jump = 1
        else:
            jump = self.heads_in_order(heads, times, n)
        self.newest_of_block = times[n - 1]
        return jump if jump >= 0 else self.heads_one_by_one(heads, times, n)

    cdef bint one_for_each(self, int64_t n) noexcept nogil:
        """Whether exactly one leaves for each of n readings, all of them and those that leave the same step apart."""
        cdef int64_t head = self.engine.head, tail = self.engine.tail, i = 0, k, cut = 0, old
        cdef const Stretch* leaving
        cdef const Stretch* coming
        while i < n:
            leaving, coming = stretch_of(&self.times, head + i), stretch_of(&self.times, tail + i)
            k = min(min(left_in_block(head + i), left_in_block(tail + i)), n - i)
            if leaving.kind != EVEN or coming.kind != EVEN or (k > 1 and leaving.step != coming.step):
                return False
            old = time_in(&self.times, leaving, (head + i) & (BLOCK - 1))
            if i and old <= cut:  # it has left with the one before
                return False
            cut = time_in(&self.times, coming, (tail + i) & (BLOCK - 1)) - self.value
            if old > cut or (k > 1 and old + <int64_t> leaving.step <= cut):
                return False
            cut += (k - 1) * <int64_t> coming.step
            i += k
        return time_at(&self.times, head + n) > cut

    cdef int64_t heads_in_order(self, int64_t* heads, const int64_t* times, int64_t n) noexcept nogil:
        """The same where no reading was late before; −1: one is, more leave than are looked at, or it takes too long for offsets."""
        cdef int64_t head = self.engine.head, end = self.engine.tail + n, i = 0, k, part = HEADS_TOGETHER, some, most, jump = 0, found
        cdef Guesses g = no_guesses()
        while i < n:
            k = 0
            if self.step < 0:
                if i and times[i] < times[i - 1]:
                    return -1
                k = heads_together(&self.times, self.value, self.engine.tail + i, end, n - i, head, heads + i, &jump, &g)
            if k > 0:
                part = FAR  # as a rule it is where two runs meet
            elif k == 0:
                k = min(part, n - i)
                most = min(end - head, 2 * self.most_block)
                some = min(k + (k >> 3) + BEHIND, most)
                found = self.heads_among(heads + i, times + i, k, head, some, &jump, &g)
                if found == TOO_FEW and some < most:
                    found = self.heads_among(heads + i, times + i, k, head, most, &jump, &g)
                if found == TOO_LONG and k > NEAR:
                    part = k >> 1
                    continue
                if found < 0:
                    return -1
                part = min(2 * part, HEADS_TOGETHER)
            if k < 0:
                return -1
            i, head = i + k, heads[i + k - 1]
        return jump

    cdef int64_t heads_among(
        self, int64_t* heads, const int64_t* times, int64_t n, int64_t head, int64_t m, int64_t* jump, Guesses* g
    ) noexcept nogil:
        """The same from `head` on, looking at m leaves."""
        cdef int64_t since = time_at(&self.times, head), i
        cdef int32_t* cuts = self.cuts
        cdef int32_t* kept = cuts + self.most_block + AROUND
        if times[n - 1] - self.value < since:
            for i in range(n):
                heads[i] = head
            return 0 if in_order(times, n) else NOT_SO
        if time_at(&self.times, head + m - 1) - since >= INT32_MAX:
            return TOO_LONG
        if not times_to_offsets(<const uint64_t*> times, cuts, n, <uint64_t> since + <uint64_t> self.value) or cuts[n - 1] == INT32_MAX:
            return TOO_LONG
        for i in range(AROUND):
            kept[-1 - i] = INT32_MIN
        copy_offsets(&self.times, kept, head, m, since)
        for i in range(m, m + BEHIND):
            kept[i] = INT32_MAX
        if heads_of(kept, m + BEHIND, cuts, 0, n, True, head, heads, jump, g) < n:
            return NOT_SO
        return TOO_FEW if heads[n - 1] - head == m else 0

    cdef int64_t heads_one_by_one(self, int64_t* heads, const int64_t* times, int64_t n) noexcept nogil:
        """The same whatever the times: a leaf leaves with the greatest time before it, so a late one counts as that."""
        cdef int64_t head = self.engine.head, newest = self.newest, tail = self.engine.tail, i = 0, k, jump = 0
        self.empties = False
        while i < n:
            k = min(<int64_t> TOGETHER, n - i)
            if self.hop > 1 or not heads_merged(self, heads + i, times + i, k, head, tail + i, newest):
                heads_stepwise(self, heads + i, times + i, k, head, tail + i, newest)
            jump = max(jump, most_at_once(heads + i, k, head))
            newest = self.newest_of_block
            head, i = heads[i + k - 1], i + k
        return jump

    cdef int keep_times(self, const int64_t* times, int64_t n) except -1 nogil:
        """Keep the times of the next n leaves."""
        cdef int64_t index = self.engine.tail
        give_back_times(&self.times, n >> 1)
        if (keep(&self.times, index, times, n) if self.step < 0 else keep_even(&self.times, index, times[0], self.step, n)) < 0:
            with gil:
                raise MemoryError(f"window: no memory for the times of readings {index} to {index + n - 1}")
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


cdef bint keep_lying(void* context, int64_t head, int64_t tail) noexcept nogil:
    """Keep the times of the leaves from `head` on, and no others. False: there are too few for it to pay, or no memory, and nothing has changed."""
    cdef const Lying* t = <const Lying*> context
    if tail - t.tail < max(t.tail - t.head, LEAST_UNEVENLY):
        return False
    if keep_only(t.kept, head, t.given + head, tail - head):
        return True
    keep_only(t.kept, t.head, t.given + t.head, t.tail - t.head)  # for which there is room: they were there
    return False


cdef inline bint keep_only(Times* kept, int64_t index, const int64_t* times, int64_t n) noexcept nogil:
    """Keep these times, of the n leaves from `index` on, and no others; False: no memory."""
    clear_times(kept)
    return keep(kept, index, times, n) >= 0


include "batching_rows.pxi"
include "batching_directly.pxi"
include "batching_carried.pxi"
include "batching_ahead.pxi"
include "batching_heads.pxi"
