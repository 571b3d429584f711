"""Readings: one by one and in batches, with the answers after each; see taking.pxd."""

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.math cimport NAN, fabs, isnan, log, sqrt
from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from sluicegate.engines.answering cimport Answering
from sluicegate.engines.answers cimport (
    BY_COUNT, BY_TIME, CUSTOM, K_COUNT, K_DISTINCT, K_GEOMETRIC, K_MEAN, K_RATE, K_STD, K_SUM, K_VARIANCE, Cut, Output,
    bucket_answer, exact_answer, is_slot, is_whole, may_lack,
)
from sluicegate.engines.base cimport MOST_BLOCK, Block, Engine
from sluicegate.engines.chunks cimport ask_for, at, give_back, reserve, run_at
from sluicegate.engines.heads cimport BEHIND, in_order, leave, stay, walk
from sluicegate.engines.program cimport LOG_SUM, MAX, MIN, MOMENTS, SUM, Program, Slot, lift
from sluicegate.engines.small cimport take_small

from sluicegate.errors import InputError
from sluicegate.reference.core import LARGEST as _LARGEST
from sluicegate.reference.core import LATEST as _LATEST

cdef extern from "lanes.h" nogil:
    bint lanes_steady(const uint64_t* kept, const uint64_t* times, uint64_t span, int64_t n)
    void lanes_count(int64_t* out, int64_t n, int64_t first)
    void lanes_means(const double* totals, const int64_t* heads, double* out, int64_t n, int w, int64_t end)
    void lanes_exponentials(double* x, int64_t n)
    void lanes_spread(const double* n_of, const double* squares, double* out, int64_t n, int w, double ddof, bint root)

cdef double MAGNITUDE = _LARGEST
cdef int64_t TIMES = _LATEST
cdef enum:
    SHORT_RUN = 8  # readings that joined: the next are rather taken one by one
    LEAST_BATCH = 4  # readings: fewer are taken one by one
    SLOTS_OF_BLOCK = 2048  # of a block's leaves
    BLOCK_OF_FEW = 512  # readings at once into a window of up to 16 times as many: more would take memory and no time less


cdef class Taking(Answering):
    """A window that takes readings."""

    def __dealloc__(self):
        free(self.scratch)

    # readings

    def insert(self, values, int64_t time):
        """Take one reading and enforce a built-in policy."""
        cdef int i
        if self.busy:
            self.enter()
        for i in range(self.p.dimensions):
            self.row[i] = values[i]
        if self.condition.growing:
            self.refuse_fall(self.row, 1)
        self.accept(self.row, time)

    def serve(self, names, row, when, bint positive):
        """How `slide` names its answers and reads what is no plain float or int; whether values must be greater than 0."""
        self.names, self.read_row, self.read_time, self.positive = names, row, when, positive

    def slide(self, value, time=None):
        """Take one reading and answer: `Window.slide`, whose checks and words these are."""
        cdef int i
        if self.busy:
            self.enter()
        if PyFloat_CheckExact(value) and self.p.dimensions == 1 and self.may_enter(PyFloat_AS_DOUBLE(value)):
            self.row[0] = PyFloat_AS_DOUBLE(value)
        else:
            values = self.read_row(value)
            for i in range(self.p.dimensions):
                self.row[i] = values[i]
        cdef int64_t when = self.accepted if time is None and self.policy != BY_TIME else self.time_from(time)
        if self.condition.growing:
            self.refuse_fall(self.row, 1)
        self.accept(self.row, when)
        return self.answer()

    cdef inline bint may_enter(self, double x) noexcept nogil:
        return fabs(x) <= MAGNITUDE and (x > 0.0 or not self.positive)

    cdef int64_t time_from(self, time) except? -1:
        cdef int overflow = 0
        cdef int64_t when
        if time is None:
            raise InputError("time: missing, expected microseconds as int64, since the policy evicts by time")
        if PyLong_CheckExact(time):
            when = PyLong_AsLongLongAndOverflow(time, &overflow)
            if not overflow and -TIMES <= when <= TIMES:
                return when
        return self.read_time(time)

    cdef object answer(self):
        """The only aggregate's answer, or all by name."""
        cdef Slot* out = self.reading + self.p.width
        cdef int k
        cdef bint plain = self.answer_all(out) >= 0
        for k in range(self.answers):
            plain = plain and self.outputs[k].kind < K_RATE
        if not plain:
            values = self.results()
            return values[0] if self.answers == 1 else dict(zip(self.names, values))
        if self.answers == 1:
            return answer_of(&self.outputs[0], out)
        named = {}
        for k in range(self.answers):
            named[self.names[k]] = answer_of(&self.outputs[k], out + k)
        return named

    def insert_many(self, const double[::1] values not None, const int64_t[::1] times, int64_t count, list out):
        """Take a batch of readings in a flat buffer; each result column gets one value a reading.

        Three times as many columns as aggregates: the values, then the low and then the high ends of their intervals.
        """
        cdef const int64_t* when = NULL if times is None else &times[0]
        cdef double** columns = NULL
        cdef double[::1] column
        cdef int k, n = 0 if out is None else len(out)
        cdef bint bounds = n == 3 * self.answers and self.bounds_in_batches
        if values.shape[0] < count * self.p.dimensions or (times is not None and times.shape[0] < count):
            raise ValueError(f"insert_many: {values.shape[0]} values for {count} readings of {self.p.dimensions}")
        if n != 0 and n != self.answers and not bounds:
            raise ValueError(f"insert_many: {n} columns for {self.answers} aggregates")
        self.enter()
        try:
            if out is not None:
                columns = <double**> calloc(max(n, 1), sizeof(double*))
                if columns == NULL:
                    raise MemoryError("insert_many: no memory for the columns")
            for k in range(n):
                column = out[k]
                if column.shape[0] < count:
                    raise ValueError(f"insert_many: a column of {column.shape[0]} for {count} readings")
                columns[k] = &column[0]
            if self.condition.growing:
                self.refuse_fall(&values[0], count)
            with nogil:
                self.run(&values[0], when, count, columns, bounds)
        finally:
            self.busy = False
            free(columns)

    cdef int run(
        self, const double* values, const int64_t* times, int64_t count, double** out, bint bounds
    ) except -1 nogil:
        cdef int64_t i = 0, k = 0
        if count >= LEAST_BATCH and self.takes_blocks():
            self.run_blocks(values, times, count, out)
            return 0
        if self.plain:
            for i in range(count):
                row_of_plain(self, values + i * self.p.dimensions, self.accepted if times == NULL else times[i], out, i)
            return 0
        while i < count:
            if self.bucketed and not self.staging:
                k = self.take_run(values + i * self.p.dimensions, NULL if times == NULL else times + i, count - i, out, i, bounds)
                i += k
            if i < count:
                self.accept(values + i * self.p.dimensions, self.accepted if times == NULL else times[i])
                if out != NULL and self.bucketed:
                    self.answer_now(out, i, bounds)
                elif out != NULL:
                    self.answer_into(out, i)
                i += 1
            if self.small and k < SHORT_RUN and i < count:
                i += take_small(self, values + i * self.p.dimensions, NULL if times == NULL else times + i, count - i, out, i, bounds)
        return 0

    cdef inline int64_t take_run(
        self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
    ) noexcept nogil:
        """Let the newest bucket take what joins; how many readings these are."""
        if out == NULL:
            return self.join_run(values, times, count)
        return self.answer_run(values, times, count, out, row, bounds)

    cdef int take(self, const double* values, const int64_t* time, double* out) except -1 nogil:
        """One reading, at its ordinal where `time` is NULL, and the answers after it: what compiled code calls for each."""
        if self.simple and self.centered:
            return take_simple(self, values, time, out)
        return self.take_any(values, time, out)

    cdef int take_any(self, const double* values, const int64_t* time, double* out) except -1 nogil:
        """`take` for any window."""
        cdef int64_t when = self.accepted if time == NULL else time[0]
        cdef Slot* answer = self.reading + self.p.width
        cdef bint holds
        cdef int k
        if self.plain:
            return answer_plain(self, values, when, out)
        self.accept(values, when)
        holds = self.answer_all(answer) >= 0
        for k in range(self.answers):
            out[k] = of_nothing(self.outputs[k].kind) if not holds else in_column(self.outputs[k].kind, answer[k])
        return 0

    cdef int answer_into(self, double** out, int64_t i) noexcept nogil:
        """The answers as they are now, to row i of the columns."""
        cdef Slot* answer = self.reading + self.p.width
        cdef bint empty = self.answer_all(answer) < 0
        cdef int k, kind
        for k in range(self.answers):
            kind = self.outputs[k].kind
            if empty:
                out[k][i] = of_nothing(kind)
            else:
                out[k][i] = <double> answer[k].i if is_whole(kind) else answer[k].f
        return 0

    cdef void center_on_reading(self, const double* values) noexcept nogil:
        if self.centers_itself:
            memcpy(self.center, values, self.p.dimensions * sizeof(double))
        self.centered = True

    cdef int accept(self, const double* values, int64_t time) except -1 nogil:
        if self.plain:
            return take_plain(self, values, time, NULL)
        if not self.centered:
            self.center_on_reading(values)
        if self.ruled and self.accepted >= self.rules.due_at:
            self.refresh_rules()
        self.latest = values[0]
        if self.bucketed:
            self.place(values, time)
        else:
            self.lift_reading(values, time)
            if self.timed:
                self.keep_time(time)
            self.engine.push(self.reading)
            self.created += 1
        self.accepted += 1
        if time > self.newest:
            self.newest = time
        if self.policy != CUSTOM:
            self.enforce()
        elif self.condition.kind:
            self.enforce_rule(values)
        else:
            self.note_edge()
        return 0

    cdef int answer_all(self, Slot* out) noexcept nogil:
        """One answer per aggregate; −1 for an empty window."""
        cdef const Slot* total = self.engine.total()
        cdef const Slot* rest
        cdef const Slot* leaf
        cdef Cut where
        cdef int k
        if total == NULL:
            return -1
        if not self.bucketed:
            for k in range(self.answers):
                out[k] = exact_answer(&self.outputs[k], total, self.engine.tail - self.engine.head)
            return 0
        rest, leaf, where = self.engine.rest(), self.engine.leaf(self.engine.head), self.cut_oldest_leaf()
        for k in range(self.answers):
            out[k] = bucket_answer(&self.outputs[k], total, rest, leaf, where, self.center[self.outputs[k].dimension])
        return 0

    # blocks of an exact window by count or time: the engine is told where the window begins after each reading

    cdef bint takes_blocks(self) noexcept nogil:
        return not self.bucketed and self.up_to == 0 and (self.policy == BY_COUNT or self.timed)

    cdef int run_blocks(
        self, const double* values, const int64_t* times, int64_t count, double** out
    ) except -1 nogil:
        cdef int64_t i = 0, n
        if not self.centered:
            self.center_on_reading(values)
        while i < count:
            n = min(max((self.engine.tail - self.engine.head) >> 4, BLOCK_OF_FEW), max(SLOTS_OF_BLOCK // self.p.width, 1))
            n = min(min(n, MOST_BLOCK), count - i)
            self.room_for_blocks(n)
            self.take_block(values + i * self.p.dimensions, NULL if times == NULL else times + i, n, out, i)
            i += n
            if i < count:
                self.ask_for_next(values + i * self.p.dimensions, NULL if times == NULL else times + i, min(n, count - i), out, i)
        return 0

    cdef void ask_for_next(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
    ) noexcept nogil:
        """Have the pages looked up that the next block reads and writes."""
        cdef int64_t head = self.engine.head
        cdef int k
        ask_for(values, n * self.p.dimensions * sizeof(double))
        for k in range(self.answers if out != NULL else 0):
            ask_for(out[k] + row, n * sizeof(double))
        if times != NULL:
            ask_for(times, n * sizeof(int64_t))
        if self.timed and head < self.engine.tail:
            ask_for(at(&self.time_pool, &self.times, 1, head), min(run_at(&self.times, head), n) * sizeof(int64_t))

    cdef int room_for_blocks(self, int64_t n) except -1 nogil:
        """Heads, leaves and totals of n readings: as many as stay in the processor's first caches."""
        cdef int64_t w = self.p.width
        cdef Slot* room
        if n <= self.most_block:
            return 0
        room = <Slot*> malloc((n * (2 * w + 4) + BEHIND) * sizeof(Slot))
        if room == NULL:
            with gil:
                raise MemoryError(f"insert_many: no memory for a block of {n} partials of {w} slots")
        free(self.scratch)
        self.scratch, self.most_block = room, n
        self.cuts = <int64_t*> room + n * (2 * w + 1)
        return 0

    cdef int take_block(
        self, const double* values, const int64_t* times, int64_t n, double** out, int64_t row
    ) except -1 nogil:
        cdef int64_t* heads = <int64_t*> self.scratch
        cdef Block block
        block.n, block.heads = n, heads
        block.leaves = self.lift_block(values, times, n)
        block.totals = self.totals_of_block(out, row)
        if self.timed:
            block.jump = self.heads_by_time(heads, times, n)
        else:
            block.jump = self.heads_by_count(heads, n)
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


# a reading of a plain window

cdef inline const Slot* lift_plain(Taking self, const double* values, int64_t time) noexcept nogil:
    if self.p.alone == SUM or self.p.alone == MAX or self.p.alone == MIN:
        return <const Slot*> values
    lift(&self.p, self.reading, values, time, self.accepted, self.center)
    return self.reading


cdef inline int64_t head_by_count(Taking self) noexcept nogil:
    """Where the window begins with one reading more."""
    cdef int64_t cutoff = self.accepted + 1
    return max(self.engine.head, cutoff - self.value if self.hop == 1 else self.cut_off_at(cutoff))


cdef int64_t head_by_time(Taking self, int64_t time) except -1 nogil:
    """The same by time, which is kept."""
    cdef int64_t head = self.engine.head, cutoff
    self.keep_time(time)
    cutoff = max(self.newest, time)
    cutoff = cutoff - self.value if self.hop == 1 else self.cut_off_at(cutoff)
    if at(&self.time_pool, &self.times, 1, head).i <= cutoff:
        return self.first_after(head, self.engine.tail + 1, cutoff)
    return head


cdef inline int slide_engine(Engine engine, const Slot* leaf, int64_t head, Slot* total) except -1 nogil:
    return engine.slide(leaf, head, total) if engine.slide_by == NULL else engine.slide_by(engine, leaf, head, total)


cdef inline int take_plain(Taking self, const double* values, int64_t time, Slot* total) except -1 nogil:
    """Take a reading; the window's total after it where that is wanted. Gives whether the window holds any."""
    cdef int64_t head
    cdef int holds
    if not self.centered:
        self.center_on_reading(values)
    head = head_by_time(self, time) if self.timed else head_by_count(self)
    holds = slide_engine(self.engine, lift_plain(self, values, time), head, total)
    if self.timed:
        self.forget_times()
    self.newest = max(self.newest, time)
    self.edge = max(self.edge, head - 1)
    self.created += 1
    self.accepted += 1
    return holds


cdef inline int take_simple(Taking self, const double* values, const int64_t* time, double* out) except -1 nogil:
    """As `answer_plain`, of what needs neither lifting nor lowering."""
    cdef int64_t newest = self.accepted, head = max(self.engine.head, newest + 1 - self.value)
    if not slide_engine(self.engine, <const Slot*> values, head, <Slot*> out):
        out[0] = of_nothing(self.outputs[0].kind)
    if time != NULL:
        newest = time[0]
    self.newest = max(self.newest, newest)
    self.edge = max(self.edge, head - 1)
    self.created += 1
    self.accepted += 1
    return 0


cdef inline int answer_plain(Taking self, const double* values, int64_t time, double* out) except -1 nogil:
    """Take a reading; the answers to a row."""
    cdef Slot* total = <Slot*> out if self.as_is else self.reading + self.p.width + self.answers
    cdef const Output* o = self.outputs
    cdef int k
    if not take_plain(self, values, time, total):
        for k in range(self.answers):
            out[k] = of_nothing(o[k].kind)
        return 0
    for k in range(0 if self.as_is else self.answers):
        if is_slot(o[k].kind):
            out[k] = total[o[k].slot].f
        else:
            out[k] = in_column(o[k].kind, exact_answer(o + k, total, self.engine.tail - self.engine.head))
    return 0


cdef int row_of_plain(Taking self, const double* values, int64_t time, double** out, int64_t i) except -1 nogil:
    """The same to row i of the columns, where there are any."""
    cdef double* row = <double*> (self.reading + self.p.width)
    cdef int k
    if out == NULL:
        take_plain(self, values, time, NULL)
        return 0
    answer_plain(self, values, time, row)
    for k in range(self.answers):
        out[k][i] = row[k]
    return 0


cdef inline double in_column(int kind, Slot answer) noexcept nogil:
    return <double> answer.i if is_whole(kind) else answer.f


cdef inline object answer_of(const Output* o, const Slot* out):
    if is_whole(o.kind):
        return out.i
    return None if may_lack(o.kind) and isnan(out.f) else out.f


cdef inline double of_nothing(int kind) noexcept nogil:
    """An empty window's answer in a column."""
    return 0.0 if kind <= K_SUM or kind == K_DISTINCT else NAN


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
