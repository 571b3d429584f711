"""One window's evolution, from a reading to the evicted edge, compiled; the twin is sluicegate.reference.core."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport NAN, fabs, isnan
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from sluicegate.engines.amta cimport Amta
from sluicegate.engines.answers cimport (
    BY_COUNT, BY_TIME, CUSTOM, K_COUNT, K_STD, K_SUM, K_VARIANCE, Cut, Output, bucket_answer, cut_leaf, exact_answer,
    is_whole,
)
from sluicegate.engines.base cimport Engine
from sluicegate.engines.pairs cimport GIVEN, NEWEST, OLDEST, TOOK, Pairs
from sluicegate.engines.program cimport (
    FIRST, H_COUNT, H_O_FIRST, H_T_FIRST, H_T_LAST, HIGH, LAST, LOW, MAX, MIN, MOMENTS, ORDERED, PREFIX, SUM, Program,
    Slot, Step, combine, fold, lift,
)
from sluicegate.engines.recalc cimport Recalc
from sluicegate.engines.runs cimport Run, fold_run
from sluicegate.histograms._rules cimport Rules, run_joins, run_took
from sluicegate.histograms._statistics cimport Moments
from sluicegate.histograms._sum_like cimport Sum, sums_run

from sluicegate.errors import BusyError, InvariantError
from sluicegate.monoids import KINDS as _KINDS
from sluicegate.monoids.layout import EXACT_OPS as _EXACT_OPS
from sluicegate.monoids.layout import Op
from sluicegate.reference.core import FINER as _FINER
from sluicegate.reference.core import LARGEST as _LARGEST
from sluicegate.reference.core import LATEST as _LATEST
from sluicegate.reference.core import NEVER as _NEVER
from sluicegate.reference.core import Saved
from sluicegate.reference.estimate import Cut as CutTuple

cdef double MAGNITUDE = _LARGEST
cdef int64_t TIMES = _LATEST
cdef int64_t NOTHING_LEAVES = -(1LL << 63) + 1
cdef enum:
    KEPT_LEVELS = 16  # sluicegate.reference.core.KEPT_LEVELS
    MOST_RUN = 1024  # readings folded at once: they stay in the processor's first cache


def first_refused(const double[::1] values not None):
    """Index of the first value that is not finite or whose magnitude exceeds 2^960; −1 where all may enter."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            if not fabs(values[i]) <= MAGNITUDE:
                break
        else:
            i = -1
    return i


def first_not_positive(const double[::1] values not None, int64_t dimensions, int64_t dimension):
    """Index of the first row whose value of this dimension is not greater than 0; −1 where there is none."""
    cdef int64_t i
    with nogil:
        for i in range(values.shape[0] // dimensions):
            if not values[i * dimensions + dimension] > 0.0:
                break
        else:
            i = -1
    return i


def first_late(const int64_t[::1] times not None):
    """Index of the first time beyond ±2^61 µs; −1 where all may enter."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(times.shape[0]):
            if not -TIMES <= times[i] <= TIMES:
                break
        else:
            i = -1
    return i


@cython.final
cdef class Core:
    """A window's leaves, their engine, and what has been evicted."""

    def __cinit__(
        self, layout, str engine, int policy, int64_t value, int64_t limit, centers, Rules rules=None, int64_t hop=1,
        int up_to=0, merging=None,
    ):
        self._layout = layout
        self.policy, self.value, self.limit, self.hop, self.up_to = policy, value, limit, hop, up_to
        self.bucketed, self.rules, self.ruled = layout.bucketed, rules, rules is not None
        self.centers_itself = layout.centered
        self.extreme_slot = layout.extreme_slot(up_to)
        self.accepted = self.created = self.mark = 0
        self.newest, self.edge, self.level, self.held = _NEVER, -1, 0, _NEVER
        self.known_head = -1
        self.newest_slot = H_T_LAST if layout.header else layout.slot(Op.T_LAST)
        self.p.width, self.p.steps = layout.width, len(layout.components)
        self.p.dimensions, self.answers = len(layout.dimensions), len(layout.monoids)
        self.allocate()
        fill_program(&self.p, layout)
        fill_outputs(self.outputs, layout)
        if self.ruled and self.rules.has_sums:
            fill_slots(self, layout)
        self.merging, self.finer = merging is not None, _FINER if merging is not None else 1
        if self.merging:
            self.engine = self.pairs = Pairs()
            self.pairs.measure(merging)
        else:
            self.engine = Amta() if engine == "amta" else Recalc()
        self.engine.setup(&self.p, limit)
        self.center_on(centers)

    def __dealloc__(self):
        free(self.p.step)
        free(self.p.fold)
        free(self.outputs)
        free(self.center)
        free(self.row)
        free(self.reading)
        free(self.sample_slot)
        free(self.prefix_slot)

    cdef int allocate(self) except -1:
        self.p.step = <Step*> calloc(self.p.steps, sizeof(Step))
        self.p.fold = <Step*> calloc(self.p.steps, sizeof(Step))
        self.outputs = <Output*> calloc(self.answers, sizeof(Output))
        self.center = <double*> calloc(self.p.dimensions, sizeof(double))
        self.row = <double*> calloc(self.p.dimensions, sizeof(double))
        self.reading = <Slot*> calloc(self.p.width + self.answers, sizeof(Slot))
        if self.p.step == NULL or self.p.fold == NULL or self.outputs == NULL or not (self.center and self.row and self.reading):
            raise MemoryError(f"window: no memory for partials of {self.p.width} slots")
        return 0

    # readings

    def insert(self, values, int64_t time):
        """Take one reading and enforce a built-in policy."""
        cdef int i
        if self.busy:
            self.enter()
        for i in range(self.p.dimensions):
            self.row[i] = values[i]
        self.accept(self.row, time)

    cdef int enter(self) except -1:
        """Refuse what would meet a batch that runs in another thread, or a policy's own window half-way."""
        if self.busy:
            raise BusyError("window: busy with a batch or an eviction; use one thread a window, and none of it in a policy")
        self.busy = True
        return 0

    def insert_many(self, const double[::1] values not None, const int64_t[::1] times, int64_t count, list out):
        """Take a batch of readings in a flat buffer; each result column gets one value a reading."""
        cdef const int64_t* when = NULL if times is None else &times[0]
        cdef double** columns = NULL
        cdef double[::1] column
        cdef int k
        if values.shape[0] < count * self.p.dimensions or (times is not None and times.shape[0] < count):
            raise ValueError(f"insert_many: {values.shape[0]} values for {count} readings of {self.p.dimensions}")
        self.enter()
        try:
            if out is not None:
                columns = <double**> calloc(self.answers, sizeof(double*))
                if columns == NULL:
                    raise MemoryError("insert_many: no memory for the columns")
            for k in range(self.answers if out is not None else 0):
                column = out[k]
                if column.shape[0] < count:
                    raise ValueError(f"insert_many: a column of {column.shape[0]} for {count} readings")
                columns[k] = &column[0]
            with nogil:
                self.run(&values[0], when, count, columns)
        finally:
            self.busy = False
            free(columns)

    cdef int run(self, const double* values, const int64_t* times, int64_t count, double** out) except -1 nogil:
        cdef int64_t i = 0
        cdef int k, kind
        cdef Slot* answer = self.reading + self.p.width
        while out == NULL and i < count:
            if self.bucketed:
                i += self.join_run(values + i * self.p.dimensions, times + (0 if times == NULL else i), count - i)
            if i < count:
                self.accept(values + i * self.p.dimensions, self.accepted if times == NULL else times[i])
                i += 1
        for i in range(i, count):
            self.accept(values + i * self.p.dimensions, self.accepted if times == NULL else times[i])
            if self.answer_all(answer) < 0:
                for k in range(self.answers):
                    out[k][i] = 0.0 if self.outputs[k].kind <= K_SUM else NAN
                continue
            for k in range(self.answers):
                kind = self.outputs[k].kind
                out[k][i] = <double> answer[k].i if is_whole(kind) else answer[k].f
        return 0

    cdef int accept(self, const double* values, int64_t time) except -1 nogil:
        if not self.centered:
            if self.centers_itself:
                memcpy(self.center, values, self.p.dimensions * sizeof(double))
            self.centered = True
        if self.ruled and self.accepted >= self.rules.due_at:
            self.refresh_rules()
        self.latest = values[0]
        if self.bucketed:
            self.place(values, time)
        else:
            self.lift_reading(values, time)
            self.engine.push(self.reading)
            self.created += 1
        self.accepted += 1
        if time > self.newest:
            self.newest = time
        if self.policy == CUSTOM:
            self.note_edge()
        else:
            self.enforce()
        return 0

    cdef inline void lift_reading(self, const double* values, int64_t time) noexcept nogil:
        if self.p.alone == SUM or self.p.alone == MAX or self.p.alone == MIN:
            self.reading.f = values[0]
            return
        lift(&self.p, self.reading, values, time, self.accepted, self.center)
        if self.ruled and self.rules.sampling:
            self.carry_sample()

    cdef inline void join(self, const double* values, int64_t time) noexcept nogil:
        """Fold the reading into the newest bucket: in place, unless it carries a sample."""
        if self.p.folds < 0 or (self.ruled and self.rules.sampling):
            self.lift_reading(values, time)
            self.engine.join(self.reading)
            return
        fold(&self.p, self.open_leaf, values, time, self.accepted, self.center)
        self.engine.touched()

    cdef void refresh_rules(self) noexcept nogil:
        """Give the sum-like histogram the current results and their sample, which the buckets carry."""
        cdef const Slot* total = self.engine.total()
        cdef Sum* s
        cdef int j
        for j in range(self.rules.sums.m if total != NULL else 0):
            s = &self.rules.sums.sums[j]
            s.result = <double> total[H_COUNT].i
            if s.dimension >= 0:
                s.result = self.center[s.dimension] * total[H_COUNT].i + total[self.prefix_slot[j]].f
            s.sample = (<const Moments*> (total + self.sample_slot[j]))[0]
        self.rules.c_refresh(self.accepted)

    cdef void carry_sample(self) noexcept nogil:
        cdef Slot* s
        cdef int j
        for j in range(self.rules.sums.m):
            s = self.reading + self.sample_slot[j]
            s[0].f, s[1].f, s[2].f = 1.0, self.rules.sums.sums[j].result, 0.0

    # a run of readings that join: the same bits as one after the other, without touching the tree for each

    cdef int64_t join_run(self, const double* values, const int64_t* times, int64_t count) noexcept nogil:
        """Let the newest bucket take all readings up to the first that may do anything but join; how many."""
        cdef bint hopping = self.ruled and self.rules.has_hop
        cdef int64_t most = self.longest_run(count)
        cdef Run run
        if hopping and most > 0:
            most = min(most, self.rules.hop.first - self.accepted) if self.rules.hop.mean > 0.0 else 0
        if most <= 0:
            return 0
        run.values, run.times, run.ordinal = values, times, self.accepted
        run.centers, run.one = self.center, self.reading
        if self.ruled and self.rules.has_sums and not (hopping or self.up_to or self.may_force()):
            run.n = self.sum_run(values, times, most)
        else:
            run.n = self.scan_run(values, times, most, hopping)
        if run.n == 0:
            return 0
        fold_run(&self.p, &run, self.engine.leaf(self.engine.tail - 1))
        self.engine.touched()
        self.accepted += run.n
        self.newest = max(self.newest, self.accepted - 1 if times == NULL else times[run.n - 1])
        if hopping:
            self.rules.hop.c_took(self.accepted - 1)
        self.note_edge()
        return run.n

    cdef int64_t longest_run(self, int64_t count) noexcept nogil:
        """For so many readings at most no limit is refreshed and nothing leaves by count; 0: take them one by one."""
        cdef int64_t most = min(count, MOST_RUN)
        if self.policy == CUSTOM or self.engine.tail - self.engine.head < 2:
            return 0
        if self.ruled:
            if self.rules.sampling:
                return 0
            most = min(most, self.rules.due_at - self.accepted)
        if self.policy == BY_COUNT and self.hop > 1:
            return min(most, self.hop - 1 - self.accepted % self.hop)
        if self.policy == BY_COUNT:
            return min(most, self.end_of_oldest() + self.value - self.accepted - 1)
        return most

    cdef bint may_force(self) noexcept nogil:
        """Whether a reading may have to join because of the limit."""
        return self.coarse() and not (self.ruled and 2 * (self.engine.tail - self.engine.head) <= self.limit)

    cdef inline bint coarse(self) noexcept nogil:
        """Whether buckets have been merged for the limit."""
        return self.pairs.merges > 0 if self.merging else self.level > 0

    cdef int64_t leaves_at(self) noexcept nogil:
        """By time: when the oldest bucket leaves or the window hops."""
        cdef int64_t over
        if self.hop > 1:
            over = self.newest % self.hop
            return self.newest - over + (0 if over < 0 else self.hop)
        return max(self.engine.leaf(self.engine.head)[self.newest_slot].i, self.held) + self.value

    cdef int64_t sum_run(self, const double* values, const int64_t* times, int64_t most) noexcept nogil:
        """As scan_run, where a sum-like histogram alone decides: one sum after the other, in the processor's registers."""
        cdef int64_t late = self.engine.leaf(self.engine.tail - 1)[H_T_LAST].i, n, start
        cdef int64_t until = self.leaves_at() if self.policy == BY_TIME else 0
        if times == NULL and self.accepted < late:
            return 0
        for n in range(most if times != NULL else 0):
            if times[n] < late or (self.policy == BY_TIME and times[n] >= until):
                most = n
                break
            late = times[n]
        most = sums_run(self.rules.sums.sums, self.rules.sums.m, self.rules.sums.n, values, self.p.dimensions, most)
        self.rules.sums.n += most
        start = self.accepted + most - self.value
        if most > 0 and self.policy == BY_COUNT and self.hop == 1 and start > self.rules.start:
            self.rules.start, self.rules.full = start, True
        return most

    cdef int64_t scan_run(self, const double* values, const int64_t* times, int64_t most, bint hopping) noexcept nogil:
        """How many readings join, as the histograms say or because of the limit; the histograms take note of each."""
        cdef const Slot* newest = self.engine.leaf(self.engine.tail - 1)
        cdef const Slot* oldest = self.engine.leaf(self.engine.head)
        cdef int64_t late = newest[H_T_LAST].i, time, n
        cdef int64_t until = self.leaves_at() if self.policy == BY_TIME else 0
        cdef bint counted = self.policy == BY_COUNT and self.hop == 1
        cdef bint forced = self.may_force()
        for n in range(most):
            time = self.accepted + n if times == NULL else times[n]
            if time < late or (self.policy == BY_TIME and time >= until):
                return n
            if self.up_to and self.up_to * values[0] >= self.up_to * oldest[self.extreme_slot].f:
                return n
            if not (self.ruled and run_joins(self.rules, hopping, values)) and not (
                forced and (newest[H_COUNT].i + n) * (self.finer * (self.limit - 2)) < self.accepted + n - oldest[H_O_FIRST].i + 1
            ):
                return n
            if self.ruled:
                run_took(self.rules, values, self.accepted + n)
                if counted and self.accepted + n + 1 - self.value > self.rules.start:
                    self.rules.start, self.rules.full = self.accepted + n + 1 - self.value, True
            late = time
            values += self.p.dimensions
        return most

    cdef int place(self, const double* values, int64_t time) except -1 nogil:
        """Join the newest bucket or open one, evicting a level where there would be one too many."""
        cdef bint joined
        while True:
            joined = self.engine.head < self.engine.tail and self.joins(values, time)
            if joined:
                self.join(values, time)
            elif self.limit == 0 or self.engine.tail - self.engine.head < self.limit:
                self.lift_reading(values, time)
                self.engine.push(self.reading)
                self.created += 1
            else:
                self.make_room()
                continue
            if self.ruled:
                self.rules.c_took(values, self.accepted, joined)
            return 0

    cdef bint joins(self, const double* values, int64_t time) noexcept nogil:
        """Whether the newest bucket takes a reading: as the histograms say, or because of the limit; see the twin."""
        cdef Slot* newest = self.engine.leaf(self.engine.tail - 1)
        cdef bint late = time < newest[H_T_LAST].i
        self.open_leaf = newest
        if self.ruled:
            if not late and self.rules.c_joins(values, self.accepted):
                return True
            if 2 * (self.engine.tail - self.engine.head) <= self.limit:
                return False
        return self.coarse() and self.forced(late, newest)

    cdef bint forced(self, bint late, const Slot* newest) noexcept nogil:
        cdef int64_t inside = self.accepted - self.engine.leaf(self.engine.head)[H_O_FIRST].i + 1
        if late and (self.merging or (4 * inside) >> min(self.level, 62) >= self.limit):
            return False
        return newest[H_COUNT].i * (self.finer * (self.limit - 2)) < inside

    cdef inline int make_room(self) except -1 nogil:
        """One bucket less at least: by the pair that adds least, or by a level."""
        return self.merge_pair() if self.merging else self.evict_level()

    cdef int merge_pair(self) except -1 nogil:
        cdef const Slot* leaf = self.engine.leaf(self.engine.head)
        cdef int64_t out = leaf[H_O_FIRST].i + leaf[H_COUNT].i - 1 - self.cut_oldest_leaf().most
        cdef int touched = self.pairs.merge()
        self.known_head = -1
        if touched & OLDEST:
            self.edge = max(self.edge, out)
        if touched & NEWEST and self.ruled:
            self.rules.c_coarsened()
        return 0

    cdef int evict_level(self) except -1 nogil:
        cdef const Slot* leaf = self.engine.leaf(self.engine.head)
        cdef int64_t out = leaf[H_O_FIRST].i + leaf[H_COUNT].i - 1 - self.cut_oldest_leaf().most
        cdef int64_t head = self.engine.head
        self.engine.coarsen()
        self.known_head = -1
        if self.ruled:
            self.rules.c_coarsened()
        self.edge = max(self.edge, out)
        self.level_heads[self.level % KEPT_LEVELS] = head
        self.level += 1
        self.mark = self.mark >> 1 if self.level % KEPT_LEVELS else 0
        return 0

    def limit_to(self, int64_t limit):
        """From now on at most `limit` buckets; neighbours are merged until no more are there."""
        self.enter()
        try:
            self.limit = limit
            while self.engine.tail - self.engine.head > limit:
                self.make_room()
        finally:
            self.busy = False

    # eviction

    cdef void enforce(self) noexcept nogil:
        cdef int64_t cutoff, head = self.engine.head
        if self.policy == BY_COUNT:
            cutoff = self.cut_off()
            while self.end_of_oldest() <= cutoff:
                self.engine.pop()
        elif self.policy == BY_TIME and self.engine.head < self.engine.tail:
            if self.leaves(self.engine.leaf(self.engine.head)) == 1:
                self.evict_while(True)
        if self.up_to:
            self.evict_irrelevant(head)
        self.note_edge()
        if self.ruled:
            self.settle()

    cdef int64_t end_of_oldest(self) noexcept nogil:
        """The ordinal after the oldest leaf's last reading; a closed leaf is looked at once."""
        cdef const Slot* oldest
        cdef int64_t head = self.engine.head
        if not self.bucketed:
            return head + 1
        if head == self.known_head:
            return self.known_end
        oldest = self.engine.leaf(head)
        if head < self.engine.tail - 1:
            self.known_head, self.known_first = head, oldest[H_O_FIRST].i
            self.known_end = oldest[H_O_FIRST].i + oldest[H_COUNT].i
        return oldest[H_O_FIRST].i + oldest[H_COUNT].i

    cdef int64_t cut_off(self) noexcept nogil:
        """By time: readings of this time or earlier leave. By count: the ordinal of the first reading inside.

        What left early as irrelevant still blocks, as it would in the whole window, a FIFO, what is behind it.
        """
        cdef int64_t last = self.accepted if self.policy == BY_COUNT else self.newest
        cdef int64_t over
        if self.hop > 1:
            over = last % self.hop
            last -= over + self.hop if over < 0 else over
        if self.policy == BY_TIME and self.held > last - self.value:
            return NOTHING_LEAVES
        return last - self.value

    cdef void evict_irrelevant(self, int64_t head) noexcept nogil:
        """Drop the oldest leaves whose extreme a later reading reaches; only a new extreme or a new oldest leaf makes any."""
        cdef const Slot* rest
        cdef double oldest
        while self.engine.tail - self.engine.head > 1:
            oldest = self.up_to * self.engine.leaf(self.engine.head)[self.extreme_slot].f
            if head == self.engine.head and self.up_to * self.latest < oldest:
                return
            rest = self.engine.rest()
            if rest == NULL or self.up_to * rest[self.extreme_slot].f < oldest:
                return
            if self.policy == BY_TIME:
                self.held = max(self.held, self.engine.leaf(self.engine.head)[self.newest_slot].i)
            self.engine.pop()

    cdef void settle(self) noexcept nogil:
        """Tell the histograms where the window begins now, and how uncertain that is within the oldest bucket."""
        cdef int64_t start = self.edge + 1, uncertain = 0
        cdef const Slot* leaf
        cdef Cut where
        if not self.rules.has_hop:
            if start > self.rules.start:
                self.rules.start, self.rules.full = start, True
            return
        if self.engine.head == self.engine.tail:
            self.rules.c_settled(self.accepted, 0)
            return
        leaf = self.engine.leaf(self.engine.head)
        if self.policy == CUSTOM:
            uncertain = leaf[H_COUNT].i - 1
        elif self.policy == BY_TIME and self.rules.has_hop and leaf[H_T_FIRST].i <= self.cut_off():
            where = self.cut_oldest_leaf()
            start, uncertain = leaf[H_O_FIRST].i + leaf[H_COUNT].i - where.most, where.most - where.least
        self.rules.c_settled(start, uncertain)

    cdef int evict_while(self, bint monotone) noexcept nogil:
        """Single evictions first, then, after a log n of them, a bulk one where the policy is monotone."""
        cdef int64_t singles = self.engine.tail - self.engine.head, k = 0
        cdef int answer
        while monotone and singles >> k:
            k += 1
        k = k + 1 if monotone else singles
        while k > 0:
            if self.engine.head == self.engine.tail:
                return 0
            answer = self.leaves(self.engine.leaf(self.engine.head))
            if answer != 1:
                return answer
            self.engine.pop()
            k -= 1
        return self.engine.bulk(ask, <void*> self) if self.engine.head < self.engine.tail else 0

    cdef int leaves(self, const Slot* old) noexcept nogil:
        """Whether a prefix leaves: by time, or by the user's rule."""
        if self.policy == BY_TIME:
            return old[self.newest_slot].i <= self.cut_off()
        with gil:
            return self.ask_rule(old)

    cdef int ask_rule(self, const Slot* old) noexcept:
        try:
            return 1 if self.rule(self.pack(self.engine.total()), self.pack(old)) else 0
        except BaseException as error:
            self.raised = error
            return -1

    def evict(self, leaves, bint monotone):
        """Evict by a user's rule of (total, old); what it raises leaves a consistent window."""
        self.enter()
        self.rule, self.raised = leaves, None
        with nogil:
            self.evict_while(monotone)
            self.note_edge()
            if self.ruled:
                self.settle()
        self.busy = False
        raised, self.rule, self.raised = self.raised, None, None
        if raised is not None:
            raise raised

    cdef void note_edge(self) noexcept nogil:
        cdef int64_t out
        if not self.bucketed:
            out = self.engine.head - 1
        elif self.engine.head == self.engine.tail:
            out = self.accepted - 1
        elif self.engine.head == self.known_head:
            out = self.known_first - 1
        else:
            out = self.engine.leaf(self.engine.head)[H_O_FIRST].i - 1
        self.edge = max(self.edge, out)
        if self.policy == BY_COUNT:
            self.edge = max(self.edge, self.cut_off() - 1)

    # answers

    cdef Cut cut_oldest_leaf(self) noexcept nogil:
        cdef const Slot* leaf = self.engine.leaf(self.engine.head)
        return cut_leaf(&self.p, leaf, self.policy, self.cut_off(), self.edge)

    def cut_oldest(self):
        """Where the edge cuts the oldest leaf of a window of buckets, None for an empty window."""
        if self.engine.head == self.engine.tail:
            return None
        cdef Cut where = self.cut_oldest_leaf()
        return CutTuple(where.least, where.most, where.taken)

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

    def results(self):
        """One answer per aggregate."""
        if self.busy and self.rule is None:
            self.enter()
        cdef Slot* out = self.reading + self.p.width
        return self.as_values(NULL if self.answer_all(out) < 0 else out)

    def lower(self, bytes packed not None):
        """The answers for a partial by itself."""
        cdef Slot* out = self.reading + self.p.width
        cdef const Slot* partial = self.unpack(packed)
        cdef Cut where
        cdef int k
        cdef int64_t n = partial[H_COUNT].i if self._layout.header else 1
        where.least = where.most = where.taken = n
        for k in range(self.answers):
            if not self.bucketed:
                out[k] = exact_answer(&self.outputs[k], partial, n)
            else:
                out[k] = bucket_answer(
                    &self.outputs[k], partial, NULL, partial, where, self.center[self.outputs[k].dimension]
                )
        return self.as_values(out)

    cdef list as_values(self, const Slot* out):
        cdef int k, kind
        values = []
        for k in range(self.answers):
            kind = self.outputs[k].kind
            if out == NULL:
                values.append(0 if kind == K_COUNT else 0.0 if kind == K_SUM else None)
            else:
                spread = kind == K_VARIANCE or kind == K_STD
                values.append(out[k].i if is_whole(kind) else None if spread and isnan(out[k].f) else out[k].f)
        return values

    def total(self):
        """The partial of all leaves, empty for an empty window."""
        return self.pack(self.engine.total())

    def rest(self):
        """The partial of all leaves but the oldest, empty where there is none."""
        return self.pack(self.engine.rest())

    def leaf(self, int64_t index):
        """A leaf of the window, head ≤ index < tail."""
        if not self.engine.head <= index < self.engine.tail:
            raise IndexError(f"leaf {index}: the window holds {self.engine.head} to {self.engine.tail - 1}")
        return self.pack(self.engine.leaf(index))

    def combine(self, bytes a not None, bytes b not None):
        """Two neighbouring leaves as one."""
        cdef const Slot* right = self.unpack(b)
        cdef bytes out = PyBytes_FromStringAndSize(NULL, self.p.width * sizeof(Slot))
        combine(&self.p, <Slot*> PyBytes_AS_STRING(out), self.unpack(a), right)
        return out

    @property
    def cutoff(self):
        """By time: readings of this time or earlier leave. By count: the ordinal of the first reading inside."""
        return self.cut_off()

    @property
    def head(self):
        """Absolute index of the oldest leaf, at the current level."""
        return self.engine.head

    @property
    def tail(self):
        """Absolute index after the newest leaf."""
        return self.engine.tail

    @property
    def heads(self):
        """The head of each lower level when it was evicted, since the last multiple of 16."""
        cdef int level
        return [self.level_heads[level] for level in range(self.level % KEPT_LEVELS)]

    @property
    def centers(self):
        """μ₀ per dimension, None until the first reading decides it."""
        cdef int k
        return tuple([self.center[k] for k in range(self.p.dimensions)]) if self.centered else None

    @property
    def allocated(self):
        """Bytes of partials allocated."""
        return self.engine.bytes()

    # storage

    def save(self):
        """All but the closed leaves."""
        cdef Engine engine = self.engine
        newest = self.pack(engine.leaf(engine.tail - 1)) if self.bucketed and engine.head < engine.tail else b""
        return Saved(
            self.accepted, self.newest, self.edge, self.created, engine.head, engine.tail, self.mark, self.level,
            tuple(self.heads), self.centers or (), self.pack(engine.result(0)), self.pack(engine.result(1)), newest,
            self.histograms_state(), self.limit, self.held,
        )

    cdef bytes histograms_state(self):
        """Merged pairs first, which sluicegate.rebuilding.chain reads."""
        return (self.pairs.state() if self.merging else b"") + (self.rules.state() if self.ruled else b"")

    def take_fresh(self):
        """(first ordinal, ordinal after the last, partial, took over others) of closed buckets not yet given out."""
        cdef int64_t index
        cdef int state
        found = []
        for index in range(self.engine.head, self.engine.tail - 1 if self.merging else 0):
            state = self.pairs.take_state(index)
            if state != GIVEN:
                leaf = self.engine.leaf(index)
                after = leaf[H_O_FIRST].i + leaf[H_COUNT].i
                found.append((leaf[H_O_FIRST].i, after, self.pack(leaf), state == TOOK))
        return found

    def load(self, saved, leaves):
        """Take over a saved window whose leaves, oldest first, include the open one."""
        cdef int level
        cdef bytes leaf
        self.accepted, self.newest, self.edge = saved.accepted, saved.newest, saved.edge
        self.created, self.mark = saved.created, saved.mark
        self.level = saved.level
        self.limit, self.held = saved.limit, saved.held
        for level in range(self.level % KEPT_LEVELS):
            self.level_heads[level] = saved.heads[level]
        self.center_on(saved.centers or None)
        rules = saved.rules
        if self.merging:
            self.pairs.load(rules[: self.pairs.size])
            rules = rules[self.pairs.size :]
        if self.ruled:
            self.rules.load(rules)
        self.engine.begin(saved.head)
        self.known_head = -1
        for leaf in leaves:
            self.engine.push(self.unpack(leaf))
        left, right = saved.left, saved.right
        self.engine.finish(self.unpack(left) if left else NULL, self.unpack(right) if right else NULL)

    cdef int center_on(self, centers) except -1:
        cdef int k
        self.centered = centers is not None
        for k in range(self.p.dimensions if self.centered else 0):
            self.center[k] = centers[k]
        return 0

    def verify(self):
        """Raise InvariantError where the window contradicts itself."""
        cdef Engine engine = self.engine
        cdef int64_t index, after = -1
        engine.check()
        if not self.bucketed:
            return
        if self.limit and engine.tail - engine.head > self.limit:
            raise InvariantError(f"{engine.tail - engine.head} buckets, the limit is {self.limit}")
        for index in range(engine.head, engine.tail):
            leaf = engine.leaf(index)
            if after >= 0 and leaf[H_O_FIRST].i != after:
                raise InvariantError(f"leaf {index} begins at ordinal {leaf[H_O_FIRST].i}, expected {after}")
            after = leaf[H_O_FIRST].i + leaf[H_COUNT].i
        if after >= 0 and after != self.accepted:
            raise InvariantError(f"the newest leaf ends before ordinal {after}, expected {self.accepted}")

    cdef bytes pack(self, const Slot* partial):
        if partial == NULL:
            return b""
        return PyBytes_FromStringAndSize(<const char*> partial, self.p.width * sizeof(Slot))

    cdef const Slot* unpack(self, bytes packed) except NULL:
        if len(packed) != self.p.width * <int64_t> sizeof(Slot):
            raise ValueError(f"partial: {len(packed)} bytes, expected {self.p.width * sizeof(Slot)}")
        return <const Slot*> PyBytes_AS_STRING(packed)


cdef int ask(void* core, const Slot* prefix) noexcept nogil:
    """The core's rule, as an engine calls it."""
    return (<Core> core).leaves(prefix)


cdef int fill_program(Program* p, layout) except -1:
    cdef int k, op
    for k, component in enumerate(layout.components):
        p.step[k].op, p.step[k].dimension, p.step[k].slot = component.op, component.dimension, component.slot
    p.alone = p.step[0].op if p.width == 1 else -1
    p.folds = 0
    for k in range(p.steps):
        op = p.step[k].op
        if op == PREFIX or op == LOW or op == HIGH or op == LAST or op >= MOMENTS:
            p.fold[p.folds] = p.step[k]
            p.folds += 1
        elif op != FIRST and op < ORDERED:
            p.folds = -1
            return 0
    return 0


cdef int fill_slots(Core core, layout) except -1:
    """Where a partial keeps each controlled sum and its sample."""
    cdef int j
    core.sample_slot = <int*> calloc(core.rules.sums.m, sizeof(int))
    core.prefix_slot = <int*> calloc(core.rules.sums.m, sizeof(int))
    if core.sample_slot == NULL or core.prefix_slot == NULL:
        raise MemoryError("window: no memory for the histograms' slots")
    for j in range(core.rules.sums.m):
        core.sample_slot[j] = layout.slot(Op.SAMPLE, j)
        core.prefix_slot[j] = layout.slot(Op.PREFIX, max(core.rules.sums.sums[j].dimension, 0))
    return 0


cdef int fill_outputs(Output* outputs, layout) except -1:
    cdef int k, d
    for k, monoid in enumerate(layout.monoids):
        d = layout.dimension_of(monoid)
        outputs[k].kind, outputs[k].dimension = _KINDS.index(monoid.kind), d
        outputs[k].ddof, exact = monoid.ddof, _EXACT_OPS.get(monoid.kind, (Op.COUNT,))
        outputs[k].slot, outputs[k].second = layout.slot(exact[0], d), layout.slot(exact[len(exact) - 1], d)
        outputs[k].moments = layout.slot(Op.MOMENTS, d)
        outputs[k].low_count, outputs[k].high_count = layout.slot(Op.LOW_COUNT, d), layout.slot(Op.HIGH_COUNT, d)
        outputs[k].prefix = layout.slot(Op.LOG_PREFIX if monoid.kind == "geometric_mean" else Op.PREFIX, d)
        outputs[k].low = layout.slot(Op.LOW, d)
        outputs[k].high = layout.slot(Op.HIGH, d)
        outputs[k].first, outputs[k].last = layout.slot(Op.FIRST, d), layout.slot(Op.LAST, d)
    return 0
