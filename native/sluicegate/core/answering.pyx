"""Answers and intervals after each reading of a run that joins the newest bucket; see answering.pxd."""

from libc.math cimport NAN
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc

from sluicegate.answers.results cimport (
    BY_COUNT, BY_TIME, K_COUNT, K_DISTINCT, K_FIRST, K_LAST, K_MAX, K_MEAN, K_MIN, K_RANGE, K_SUM, Cut, Output, Sums,
    bucket_answer, cut_extreme, cut_sum, is_whole, known_sums,
)
from sluicegate.core.bounding cimport Around, Bounding, beside_high, beside_low, is_spread, put, sum_beside
from sluicegate.core.bucketing cimport MOST_RUN
from sluicegate.answers.intervals cimport Interval, clamp, has_interval
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot, greatest, least

cdef extern from "answer_lanes.h" nogil:
    ctypedef struct Beside "answer_around":
        double top
        double base
        double center
        double inside
    ctypedef struct Sliding "answer_cut":  # a cut that loses a reading for each that comes
        double total
        double low
        double high
        double least
        double most_value
        double last
        double others
        double size
        double most
        double first
    void answer_whole_means(const Beside* a, const double* totals, double s, int64_t n, double* out)
    void answer_whole_sums(const Beside* a, const double* totals, double s, int64_t n, double* out)
    void answer_standing_means(const Beside* a, const double* totals, double s, int64_t n, double* out)
    void answer_standing_sums(const Beside* a, const double* totals, double s, int64_t n, double* out)
    void answer_sliding_means(const Beside* a, const Sliding* k, const double* totals, int64_t n, double* out)
    void answer_sliding_sums(const Beside* a, const Sliding* k, const double* totals, int64_t n, double* out)


cdef class Answering(Bounding):
    """A window that answers after each reading of a batch."""

    def __dealloc__(self):
        free(self.opened)
        free(self.totals)

    cdef int room_for_runs(self) except -1:
        """What a run's answers need; after the outputs are known."""
        cdef int k
        self.swift = self.sharp = self.bucketed
        for k in range(self.answers):
            self.swift = self.swift and has_interval(self.outputs[k].kind)
            self.sharp = self.sharp and (has_interval(self.outputs[k].kind) or is_spread(self.outputs[k].kind))
        if not self.swift:
            return 0
        self.opened = <Newest*> calloc(self.answers, sizeof(Newest))
        self.totals = <double*> malloc(5 * MOST_RUN * sizeof(double))
        if self.opened == NULL or self.totals == NULL:
            raise MemoryError(f"window: no memory for the answers of a run of {MOST_RUN} readings")
        self.lows, self.highs = self.totals + MOST_RUN, self.totals + 2 * MOST_RUN
        self.below, self.above = self.totals + 3 * MOST_RUN, self.totals + 4 * MOST_RUN
        return 0

    @property
    def bounds_in_batches(self):
        """Whether `insert_many` can give intervals: a window of buckets, and only aggregates whose bounds are compiled."""
        return self.sharp

    cdef int64_t answer_run(
        self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
    ) noexcept nogil:
        """Let the newest bucket take what joins, with the answers after each; how many readings these are."""
        cdef Around a
        if not self.swift or not self.look_around(&a):
            return 0
        a.values, a.times = values, times
        a.n = self.join_run(values, times, count)
        if a.n:
            self.lower_run(&a, out, row, bounds)
        return a.n

    cdef void answer_now(self, double** out, int64_t row, bint bounds) noexcept nogil:
        """The answers as they are, to one row."""
        cdef Around a
        if not self.swift or not self.look_around(&a):
            self.answer_full(out, row, bounds)
            return
        a.values, a.times, a.n, a.before, a.held = NULL, NULL, 1, a.before - 1, a.held - 1
        self.lower_run(&a, out, row, bounds)

    cdef bint look_around(self, Around* a) noexcept nogil:
        """What a run leaves as it is, and the newest bucket before it; False: it has to be asked for as a whole."""
        cdef const Slot* newest
        cdef const Output* o
        cdef int k
        if not self.engine.around(&a.left, &a.top, &a.base):
            return False
        newest, a.leaf = self.engine.leaf(self.engine.tail - 1), self.engine.leaf(self.engine.head)
        a.before, a.edge, a.newest, a.held = self.accepted, self.edge, self.newest, newest[H_COUNT].i
        for k in range(self.answers):
            o = &self.outputs[k]
            self.opened[k].total = newest[o.prefix].f if o.prefix >= 0 else 0.0
            if o.low >= 0:
                self.opened[k].low, self.opened[k].high = newest[o.low].f, newest[o.high].f
        return True

    cdef void lower_run(self, const Around* a, double** out, int64_t row, bint bounds) noexcept nogil:
        cdef int k, kind
        for k in range(self.answers):
            kind = self.outputs[k].kind
            self.follow(k, a, bounds or kind == K_MIN or kind == K_MAX or kind == K_RANGE)
            if (kind == K_SUM or kind == K_MEAN) and self.policy != BY_TIME:
                self.lower_sums(k, a, out[k] + row)
            else:
                self.lower_others(k, a, out[k] + row)
            if bounds:
                self.bound_run(
                    k, a, out[k] + row, out[self.answers + k] + row, out[2 * self.answers + k] + row
                )

    cdef void follow(self, int k, const Around* a, bint extremes) noexcept nogil:
        """What the newest bucket holds of an aggregate after each reading, as `fold` adds it up."""
        cdef const Output* o = &self.outputs[k]
        cdef double total = self.opened[k].total, low = self.opened[k].low, high = self.opened[k].high, x
        cdef double center = self.center[o.dimension]
        cdef const double* values = a.values + o.dimension
        cdef int step = self.p.dimensions, i, n = <int> a.n
        if a.values == NULL:
            self.totals[0], self.lows[0], self.highs[0] = total, low, high
            return
        for i in range(n if o.prefix >= 0 and self.p.dimensions > 1 else 0):  # of one dimension `fold_run` has left them
            total += values[i * step] - center
            self.totals[i] = total
        for i in range(n if extremes and o.low >= 0 else 0):
            x = values[i * step]
            low = least(low, x)
            high = greatest(high, x)
            self.lows[i], self.highs[i] = low, high

    # sums and means, where the cut goes by count or not at all

    cdef int64_t uncut(self, const Around* a) noexcept nogil:
        """After so many readings of the run the oldest bucket is still whole."""
        cdef int64_t n = a.leaf[H_COUNT].i, newest = a.newest
        cdef Cut where = self.cut_at(a, 0, &newest)
        if where.taken < n or where.least < n:
            return 0
        if self.policy != BY_COUNT or self.hop > 1:
            return a.n
        return min(a.n, a.leaf[H_O_FIRST].i + self.value - a.before)

    cdef void lower_sums(self, int k, const Around* a, double* out) noexcept nogil:
        cdef const Output* o = &self.outputs[k]
        cdef double center = self.center[o.dimension], base = -0.0 if a.base == NULL else a.base[o.prefix].f
        cdef int64_t beside = 0 if a.base == NULL else a.base[H_COUNT].i
        cdef int whole = <int> self.uncut(a)
        cdef int64_t inside = a.left[H_COUNT].i + beside + a.held + 1
        lower_whole(o.kind == K_MEAN, out, self.totals, whole, a.left[o.prefix].f, base, center, <double> inside)
        if whole == a.n:
            return
        inside = (0 if a.top == NULL else a.top[H_COUNT].i) + beside + a.held + 1 + whole
        self.lower_cut(k, a, out + whole, whole, base, <double> inside)

    cdef void lower_cut(
        self, int k, const Around* a, double* out, int whole, double base, double inside
    ) noexcept nogil:
        cdef const Output* o = &self.outputs[k]
        cdef double center = self.center[o.dimension], top = -0.0 if a.top == NULL else a.top[o.prefix].f, s
        cdef int64_t n = a.leaf[H_COUNT].i, end = a.leaf[H_O_FIRST].i + n - 1, newest = a.newest, c = 0
        cdef Cut where = self.cut_at(a, whole, &newest)
        cdef Sliding cut
        cdef Sums sums
        if self.policy == BY_COUNT and self.hop == 1:
            sums, cut.total = known_sums(o, a.leaf, where, center), a.leaf[o.prefix].f
            cut.low, cut.high, cut.last, cut.others = sums.low, sums.high, sums.last, sums.others
            cut.least, cut.most_value, cut.size = sums.least, sums.most, <double> sums.n
            cut.most, cut.first = <double> min(n, end - a.edge), <double> (end - a.before - whole + self.value)
            slide(o.kind == K_MEAN, out, self.totals + whole, <int> a.n - whole, top, base, center, inside, &cut)
            return
        s = cut_sum(o, a.leaf, where, center, &c)
        stand(o.kind == K_MEAN, out, self.totals + whole, <int> a.n - whole, top, base, center, inside + c, s)

    # the other kinds, and windows by time

    cdef void lower_others(self, int k, const Around* a, double* out) noexcept nogil:
        cdef const Output* o = &self.outputs[k]
        cdef int64_t n = a.leaf[H_COUNT].i, newest = a.newest, i
        cdef Cut where
        for i in range(a.n):
            where = self.cut_at(a, i, &newest)
            if where.taken == n and where.least == n:
                out[i] = self.whole_answer(o, a, i)
            else:
                out[i] = self.cut_answer(o, a, i, where)

    cdef double whole_answer(self, const Output* o, const Around* a, int64_t i) noexcept nogil:
        cdef double count = <double> self.readings(a, i)
        cdef double center = self.center[o.dimension]
        if o.kind == K_COUNT:
            return count
        if o.kind == K_FIRST:
            return a.leaf[o.first].f
        if o.kind == K_LAST:
            return self.last_value(o, a, i)
        if o.kind == K_MIN:
            return least(a.left[o.low].f, beside_low(o, a.base, self.lows[i]))
        if o.kind == K_MAX:
            return greatest(a.left[o.high].f, beside_high(o, a.base, self.highs[i]))
        if o.kind == K_RANGE:
            return self.spread(o, a, i)
        if o.kind == K_SUM:
            return center * count + sum_beside(o, a.left, a.base, self.totals[i])
        return center + sum_beside(o, a.left, a.base, self.totals[i]) / count

    cdef double cut_answer(self, const Output* o, const Around* a, int64_t i, Cut where) noexcept nogil:
        cdef int64_t inside = count_beside(a, i), c = 0
        cdef double center = self.center[o.dimension], s
        if o.kind == K_COUNT:
            return <double> (inside + where.taken)
        if o.kind == K_FIRST:
            return a.leaf[o.last if where.taken == 1 else o.first].f
        if o.kind == K_LAST:
            return self.last_value(o, a, i)
        if o.kind == K_MIN:
            return self.cut_low(o, a, i, where)
        if o.kind == K_MAX:
            return self.cut_high(o, a, i, where)
        if o.kind == K_RANGE:
            return self.cut_high(o, a, i, where) - self.cut_low(o, a, i, where)
        s = sum_beside(o, a.top, a.base, self.totals[i]) + cut_sum(o, a.leaf, where, center, &c)
        return center * (inside + c) + s if o.kind == K_SUM else center + s / (inside + c)

    cdef double cut_low(self, const Output* o, const Around* a, int64_t i, Cut where) noexcept nogil:
        cdef double others = low_beside(o, a, self.lows[i])
        return cut_extreme(o, -1.0, others, a.leaf, where, self.spread(o, a, i), self.readings(a, i))

    cdef double cut_high(self, const Output* o, const Around* a, int64_t i, Cut where) noexcept nogil:
        cdef double others = high_beside(o, a, self.highs[i])
        return cut_extreme(o, 1.0, others, a.leaf, where, self.spread(o, a, i), self.readings(a, i))

    cdef int64_t readings(self, const Around* a, int64_t i) noexcept nogil:
        """Of the whole window, all of the cut bucket's among them."""
        return a.left[H_COUNT].i + (0 if a.base == NULL else a.base[H_COUNT].i) + a.held + i + 1

    cdef double spread(self, const Output* o, const Around* a, int64_t i) noexcept nogil:
        """Between the whole window's extremes, the cut bucket's among them."""
        return greatest(a.left[o.high].f, beside_high(o, a.base, self.highs[i])) - least(
            a.left[o.low].f, beside_low(o, a.base, self.lows[i])
        )

    cdef double last_value(self, const Output* o, const Around* a, int64_t i) noexcept nogil:
        if a.values == NULL:
            return self.engine.leaf(self.engine.tail - 1)[o.last].f
        return a.values[i * self.p.dimensions + o.dimension]

    # one row, from whole partials

    cdef void answer_full(self, double** out, int64_t row, bint bounds) noexcept nogil:
        """The answers as they are, to one row, from the partials of the whole window and of all but its oldest bucket."""
        cdef const Slot* total = self.engine.total()
        cdef const Slot* rest
        cdef const Slot* leaf
        cdef const Slot* outer
        cdef const Output* o
        cdef Interval found
        cdef Slot value
        cdef Cut where
        cdef int k
        if total == NULL:
            for k in range(self.answers * (3 if bounds else 1)):
                out[k][row] = of_nothing(self.outputs[k % self.answers].kind)
            return
        rest, leaf, where = self.engine.rest(), self.engine.leaf(self.engine.head), self.cut_oldest_leaf()
        for k in range(self.answers):
            o = &self.outputs[k]
            value = bucket_answer(o, total, rest, leaf, where, self.center[o.dimension])
            if bounds:
                outer = total if where.least == leaf[H_COUNT].i else rest
                found = self.interval_of(o, value, outer, leaf, where)
                value = clamp(o.kind, value, &found)
                put(o.kind, value, &found, out[k] + row, out[self.answers + k] + row, out[2 * self.answers + k] + row)
            else:
                out[k][row] = <double> value.i if is_whole(o.kind) else value.f



cdef inline double of_nothing(int kind) noexcept nogil:
    """An empty window's answer in a column."""
    return 0.0 if kind <= K_SUM or kind == K_DISTINCT else NAN


cdef inline int64_t count_beside(const Around* a, int64_t i) noexcept nogil:
    """Readings of all but the oldest bucket after reading i."""
    return (0 if a.top == NULL else a.top[H_COUNT].i) + (0 if a.base == NULL else a.base[H_COUNT].i) + a.held + i + 1


cdef inline double low_beside(const Output* o, const Around* a, double newest) noexcept nogil:
    newest = beside_low(o, a.base, newest)
    return newest if a.top == NULL else least(a.top[o.low].f, newest)


cdef inline double high_beside(const Output* o, const Around* a, double newest) noexcept nogil:
    newest = beside_high(o, a.base, newest)
    return newest if a.top == NULL else greatest(a.top[o.high].f, newest)


cdef void lower_whole(
    bint mean, double* out, const double* totals, int n, double left, double base, double center, double count
) noexcept nogil:
    """Where the oldest bucket is whole: as answers.whole."""
    cdef Beside a = Beside(left, base, center, count)
    if mean:
        answer_whole_means(&a, totals, 0.0, n, out)
    else:
        answer_whole_sums(&a, totals, 0.0, n, out)


cdef void stand(
    bint mean, double* out, const double* totals, int n, double top, double base, double center, double count, double s
) noexcept nogil:
    """Where the cut stands still: as answers.partial_sum."""
    cdef Beside a = Beside(top, base, center, count)
    if mean:
        answer_standing_means(&a, totals, s, n, out)
    else:
        answer_standing_sums(&a, totals, s, n, out)


cdef void slide(
    bint mean, double* out, const double* totals, int n, double top, double base, double center, double inside,
    const Sliding* cut,
) noexcept nogil:
    """Where each reading takes one from the cut bucket: as answers.partial_sum of a count that is known."""
    cdef Beside a = Beside(top, base, center, inside)
    if mean:
        answer_sliding_means(&a, cut, totals, n, out)
    else:
        answer_sliding_sums(&a, cut, totals, n, out)
