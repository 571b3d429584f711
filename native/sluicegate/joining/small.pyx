"""Readings that come one by one into small buckets; see small.pxd, and small_readings.pxd and small_answers.pxd for the first and the last step. The twin is sluicegate.reference.core."""

from libc.stdint cimport int64_t

from sluicegate.engines.amta cimport Amta
from sluicegate.core.answering cimport Answering
from sluicegate.answers.results cimport BY_COUNT, CUSTOM, K_MEAN, K_SUM, Output
from sluicegate.joining.bucket_blocks cimport LEAST_OPENED, open_many
from sluicegate.joining.bucket_lengths cimport LONGEST
from sluicegate.memory.chunks cimport at
from sluicegate.joining.opening cimport lift_bucket
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_LAST, SUM_BUCKET, Slot
from sluicegate.joining.small_answers cimport answer_irrelevant, answer_small, taken_of
from sluicegate.joining.small_readings cimport fold_small, lift_small
from sluicegate.histograms._max_like cimport peaks_took
from sluicegate.histograms._rules cimport run_joins
from sluicegate.histograms._sum_like cimport Sum, sums_run, sums_took

cdef enum:
    CALM = 16  # readings that join one after the other: then a run is worth looking for
    AHEAD = 16  # readings that a bucket is opened with at most
    PAUSE = 4  # buckets, after many could not be opened at once


cdef bint takes_small(Answering self) noexcept:
    if not (self.bucketed and self.swift) or self.hop > 1 or (self.ruled and self.rules.has_hop):
        return False
    if self.staging:
        return self.policy == BY_COUNT
    if not isinstance(self.engine, Amta) or self.p.folds < 0:
        return False
    self.forest = <Amta> self.engine
    return self.policy == BY_COUNT or self.policy == CUSTOM


cdef int64_t take_small(
    Answering self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
) except -1 nogil:
    cdef int64_t i = 0, calm = 0, pause = 0, time, n
    cdef const int64_t* when = NULL
    cdef double* column = NULL
    cdef bint plain = not bounds and self.answers == 1, many = opens_many(self, bounds), opens
    cdef bint ahead = many and self.policy == BY_COUNT
    cdef Sight s
    if not self.small or not self.centered:
        return 0
    if self.staging:
        return take_staged(self, values, times, count, out, row, bounds)
    see(self, &s)
    know_rule(self, &s)
    s.fetched = 0
    while i < count and calm < CALM and s.whole:
        if is_due(self):
            if not (many and refreshed(self, &s)):
                break
            pause = 0
        time = self.accepted if times == NULL else times[i]
        opens = s.sealed or not joins_small(self, &s, values, time)
        if opens and self.limit and self.forest.tail - self.forest.head >= self.limit:
            return i
        if opens and many and self.forest.tail - self.forest.head > 2 * AHEAD:
            if times != NULL:
                when = times + i
            if out != NULL:
                column = out[0] + row + i
            n = 0
            if pause == 0 and count - i >= LEAST_OPENED and s.newest[H_COUNT].i < LONGEST:
                n = open_many(self, self.forest, &s, values, when, count - i, column)
                pause = 0 if n else PAUSE
            elif pause:
                pause -= 1
            if n:
                calm, s.sealed = 0, True
                see(self, &s)
            elif ahead:
                n = open_small(self, &s, values, when, count - i, column)
                calm = n - 1
            values += n
            i += n
            if n:
                continue
        if not opens:
            fold_small(&self.p, s.newest, values, time, self.accepted, self.center)
            carry_sample(self, s.newest)
            self.forest.stale = True
            calm += 1
            took_small(self, values, True)
        else:
            s.sealed = False
            lift_small(&self.p, self.reading, values, time, self.accepted, self.center)
            carry_sample(self, self.reading)
            self.forest.push(self.reading)
            self.created += 1
            calm = 0
            took_small(self, values, False)
            see(self, &s)
        self.latest = values[0]
        self.accepted += 1
        if time > self.newest:
            self.newest = time
        if evict_small(self, &s):
            calm = 0
        if out != NULL and not (plain and answer_small(self, &s, out[0] + row + i)):
            self.answer_now(out, row + i, bounds)
        values += self.p.dimensions
        i += 1
    return i


# a bucket with the readings that join it next

cdef bint opens_many(Answering self, bint bounds) noexcept nogil:
    cdef int kind = self.outputs[0].kind
    if bounds or self.answers != 1 or not self.small or self.staging or self.p.bucket != SUM_BUCKET:
        return False
    if self.up_to or (self.ruled and self.rules.has_most):
        return False
    return kind == K_SUM or kind == K_MEAN


cdef int64_t open_small(
    Answering self, Sight* s, const double* values, const int64_t* times, int64_t count, double* out
) except -1 nogil:
    """Open a bucket and let it take what joins next, as far as that can be known already; how many readings these are."""
    cdef double totals[AHEAD]
    cdef Slot* place = self.forest.place_of_bucket()
    cdef int64_t n, limited, most = min(count, AHEAD)
    s.oldest = leaf_of(self, self.forest.head)  # room for one more may have taken all to longer chunks
    s.sealed = False
    if times != NULL:
        most = in_order(times, most)
    if self.ruled:
        most = joined_by_rule(self, s, values, min(most, self.rules.due_at - self.accepted), &limited)
    else:
        most = limited = joined_by_limit(self, s, most)
    n = lift_bucket(&self.p, place, s.ruling, values, times, self.accepted, limited, self.center[0], totals)
    carry_sample(self, place)
    if self.ruled:
        self.rules.sums.n = n
        s.sealed = s.ruling != NULL and self.limit == 0 and n < most
    self.forest.push_placed()
    self.created += 1
    s.newest = place
    see_results(self, s)
    self.latest = values[n - 1]
    self.newest = max(self.newest, self.accepted + n - 1 if times == NULL else times[n - 1])
    serve(self, s, totals, n, out)
    return n


cdef inline int64_t in_order(const int64_t* times, int64_t most) noexcept nogil:
    """How many readings come before one that is late."""
    cdef int64_t n = 1
    while n < most and times[n] >= times[n - 1]:
        n += 1
    return n


cdef inline void know_rule(Answering self, Sight* s) noexcept nogil:
    """What stays until the limits are taken anew."""
    cdef Sum* sum
    cdef int j, found = 0
    s.ruling, s.longest, s.sealed = NULL, LONGEST, False
    for j in range(self.rules.sums.m if self.ruled and self.rules.has_sums else 0):
        sum = &self.rules.sums.sums[j]
        if sum.dimension >= 0:
            s.ruling = sum
            found += 1
        elif sum.limit < <double> s.longest:
            s.longest = <int64_t> sum.limit + 1
    if found > 1:
        s.ruling = NULL


cdef inline int64_t joined_by_rule(Answering self, Sight* s, const double* values, int64_t most, int64_t* limited) noexcept nogil:
    """The readings of a bucket that opens, and how many of them their number allows; the only sum that rules is asked later."""
    if s.ruling != NULL:
        limited[0] = min(most, s.longest)
        return most
    sums_took(self.rules.sums.sums, self.rules.sums.m, values, False)
    limited[0] = 1 + sums_run(self.rules.sums.sums, self.rules.sums.m, 1, values + 1, 1, most - 1)
    return limited[0]


cdef inline int64_t joined_by_limit(Answering self, Sight* s, int64_t most) noexcept nogil:
    """The same where the limit alone makes readings join: as far as that holds whatever leaves meanwhile."""
    cdef int64_t n = 1, share = self.finer * (self.limit - 2), first = s.oldest[H_O_FIRST].i, next
    if self.limit == 0 or self.level == 0:
        s.sealed = most > 1
        return 1
    while n < most:
        next = self.accepted + n
        if n * share >= next - max(first, next - self.value) + 1:
            s.sealed = n * share >= next - first + 1
            break
        n += 1
    return n


ctypedef struct Outer:  # what a bucket that is cut leaves as it is: sums and readings of R0, of the stack's top and of R1's base
    double left
    double top
    double base
    int64_t left_n
    int64_t top_n
    int64_t base_n


cdef inline void serve(Answering self, Sight* s, const double* totals, int64_t n, double* out) noexcept nogil:
    """After each reading of the newest bucket what leaves by count, and the answer."""
    cdef const Output* o = self.outputs
    cdef double center = self.center[0], sum
    cdef int64_t begin = self.accepted - self.value, i, edge = max(self.edge, s.end - s.n - 1), most, inside
    cdef Outer outer
    look_outside(self, o, s, &outer)
    for i in range(n):
        begin += 1
        if s.end <= begin:
            pop_small(self, s, begin)
            look_outside(self, o, s, &outer)
        if out == NULL:
            continue
        edge = max(edge, begin - 1)
        most, sum, inside = min(s.n, s.end - 1 - edge), outer.base + totals[i], outer.base_n + i + 1
        if most == s.n:
            sum, inside = outer.left + sum, outer.left_n + inside
        else:
            sum, inside = (outer.top + sum) + taken_of(o, s, most, center), outer.top_n + inside + most
        out[i] = center * <double> inside + sum if o.kind == K_SUM else center + sum / <double> inside
    self.accepted += n
    note_begin(self, max(edge, begin - 1))


cdef inline void look_outside(Answering self, const Output* o, const Sight* s, Outer* outer) noexcept nogil:
    """−0.0 adds nothing, not even a sign."""
    outer.left, outer.left_n = s.left[o.prefix].f, s.left[H_COUNT].i
    outer.top = outer.base = -0.0
    outer.top_n = outer.base_n = 0
    if s.top != NULL:
        outer.top, outer.top_n = s.top[o.prefix].f, s.top[H_COUNT].i
    if s.base != NULL:
        outer.base, outer.base_n = s.base[o.prefix].f, s.base[H_COUNT].i


cdef inline void pop_small(Answering self, Sight* s, int64_t begin) noexcept nogil:
    """Let leave what ends before reading `begin`."""
    while s.end <= begin:
        self.forest.pop()
        see_head(self, s)
    see_results(self, s)


cdef int64_t take_staged(
    Answering self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
) except -1 nogil:
    """The same behind a staging tail: what it stages, and what it lets go, it says itself."""
    cdef int64_t i = 0, time
    cdef bint plain = not bounds and self.answers == 1
    cdef Sight s
    while i < count and not is_due(self):
        time = self.accepted if times == NULL else times[i]
        self.place_staged(values, time)
        self.latest = values[0]
        self.accepted += 1
        if time > self.newest:
            self.newest = time
        evict_staged(self, &s)
        if out != NULL and not (plain and answer_irrelevant(self, &s, out[0] + row + i)):
            self.answer_now(out, row + i, bounds)
        values += self.p.dimensions
        i += 1
    return i


cdef inline void see_oldest(Answering self, Sight* s) noexcept nogil:
    if self.staged.kept():
        s.oldest = self.staged.stored.partial(self.staged.stored.oldest)
    else:
        s.oldest = self.staged.at(self.staged.base)
    s.n = s.oldest[H_COUNT].i
    s.end = s.oldest[H_O_FIRST].i + s.n


cdef inline void evict_staged(Answering self, Sight* s) noexcept nogil:
    cdef int64_t head = self.engine.head
    see_oldest(self, s)
    while s.end <= self.accepted - self.value:  # the newest stays
        self.staged.pop()
        see_oldest(self, s)
    if self.up_to and (head != self.engine.head or self.up_to * self.latest >= self.up_to * s.oldest[self.extreme_slot].f):
        self.evict_irrelevant(head)
        see_oldest(self, s)
    note_begin(self, max(max(self.edge, self.accepted - self.value - 1), s.oldest[H_O_FIRST].i - 1))


cdef inline void note_begin(Answering self, int64_t edge) noexcept nogil:
    """As `note_edge` and `settle`, where the hop need not know."""
    self.edge = edge
    if self.ruled and edge + 1 > self.rules.start:
        self.rules.start, self.rules.full = edge + 1, True


cdef inline bint is_due(Answering self) noexcept nogil:
    """Whether the next reading asks for more: a limit is refreshed, a sample rides, or a compiled rule has to be asked."""
    if self.ruled and (self.accepted >= self.rules.due_at or self.rules.sampling):
        return True
    return self.policy == CUSTOM and self.accepted >= self.condition.wakes


cdef bint refreshed(Answering self, Sight* s) noexcept nogil:
    """Take the limits anew between two readings, as `accept` does; False: a compiled rule has to be asked."""
    if self.policy == CUSTOM and self.accepted >= self.condition.wakes:
        return False
    if self.accepted >= self.rules.due_at:
        self.refresh_rules()
        know_rule(self, s)
    return True


cdef inline Slot* leaf_of(Answering self, int64_t index) noexcept nogil:
    return at(&self.forest.pool, &self.forest.level[self.forest.base], self.p.width, index)


cdef inline void see(Answering self, Sight* s) noexcept nogil:
    """Look again: a bucket was opened, or left; as `Amta.around`."""
    cdef int64_t head = self.forest.head, tail = self.forest.tail
    s.whole = tail - head > 1
    if not s.whole:
        return
    s.newest = leaf_of(self, tail - 1)
    see_head(self, s)
    if self.forest.depth == 1:
        s.left, s.top, s.base = s.oldest, NULL, NULL
        return
    see_results(self, s)


cdef inline void see_head(Answering self, Sight* s) noexcept nogil:
    s.oldest, s.known = leaf_of(self, self.forest.head), False
    s.n = s.oldest[H_COUNT].i
    s.end = s.oldest[H_O_FIRST].i + s.n


cdef inline void see_results(Answering self, Sight* s) noexcept nogil:
    """Of more than a pair of buckets."""
    s.left = self.forest.left
    s.top = self.forest.stack + (self.forest.stacked - 1) * self.p.width if self.forest.stacked else NULL
    s.base = self.forest.base_of_right if self.forest.has_base else NULL


# what becomes of a reading

cdef inline bint joins_small(Answering self, const Sight* s, const double* values, int64_t time) noexcept nogil:
    """As `Bucketing.joins`."""
    cdef bint late = time < s.newest[H_T_LAST].i
    cdef int64_t inside
    if self.ruled and not late and run_joins(self.rules, False, values):
        return True
    if self.limit == 0:
        return False
    if self.up_to or late or self.ruled:
        return self.joins(values, time)
    inside = self.accepted - s.oldest[H_O_FIRST].i + 1
    return self.level > 0 and s.newest[H_COUNT].i * (self.finer * (self.limit - 2)) < inside


cdef inline void took_small(Answering self, const double* values, bint joined) noexcept nogil:
    """As `Rules.c_took`, where the hop need not know and no sample rides."""
    if not self.ruled:
        return
    if self.rules.has_sums:
        sums_took(self.rules.sums.sums, self.rules.sums.m, values, joined)
        self.rules.sums.n = self.rules.sums.n + 1 if joined else 1
    if self.rules.has_most:
        peaks_took(self.rules.most.peaks, self.rules.most.m, values, joined)
        self.rules.most.n += 1
        self.rules.most.longest = max(self.rules.most.longest, self.accepted + 1 - self.rules.start)
        if self.rules.most.n >= self.rules.most.block_size:
            self.rules.most.end_block()


cdef inline bint evict_small(Answering self, Sight* s) noexcept nogil:
    """As `enforce` of a window by count; where a compiled rule sleeps the edge alone is noted. Whether a bucket left."""
    cdef int64_t head = self.forest.head, edge = self.edge
    if self.policy == BY_COUNT:
        while s.whole and s.end <= self.accepted - self.value:
            self.forest.pop()
            see(self, s)
        if self.up_to and s.whole and (
            head != self.forest.head or self.up_to * self.latest >= self.up_to * s.oldest[self.extreme_slot].f
        ):
            self.evict_irrelevant(head)
            see(self, s)
        edge = max(edge, self.accepted - self.value - 1)
    note_begin(self, max(edge, leaf_of(self, self.forest.head)[H_O_FIRST].i - 1))
    return head != self.forest.head
