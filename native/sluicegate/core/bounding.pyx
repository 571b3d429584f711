"""Certain intervals after each reading of a run, and of whole partials; see bounding.pxd."""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport BY_COUNT, BY_TIME, K_COUNT, Cut, Output, cut_holds_until, cut_leaf
from sluicegate.core.bucketing cimport Bucketing
from sluicegate.answers.intervals cimport Inside, Interval, clamp, inside_of, interval
from sluicegate.answers.spreads cimport spread_interval
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, Slot, greatest, least
from sluicegate.answers.stretches cimport Stretch, alike, intervals

cdef enum:
    FEW = 4  # readings, whose intervals are rather taken one by one


cdef class Bounding(Bucketing):
    """A window whose answers are bounded."""

    cdef Cut cut_at(self, const Around* a, int64_t i, int64_t* newest) noexcept nogil:
        """Where the edge cuts the oldest bucket after reading i; `newest`: the greatest time before it, then with it."""
        cdef int64_t n = a.leaf[H_COUNT].i, cutoff
        cdef Cut where
        if self.policy == BY_COUNT:
            cutoff = self.cut_off_at(a.before + i + 1)
            where.most = min(n, a.leaf[H_O_FIRST].i + n - 1 - max(a.edge, cutoff - 1))
            where.least = where.taken = where.most
            return where
        if a.values != NULL:
            newest[0] = max(newest[0], a.before + i if a.times == NULL else a.times[i])
        return cut_leaf(&self.p, a.leaf, self.policy, self.cut_off_at(newest[0]), a.edge)

    cdef void bound_run(
        self, int k, const Around* a, double* out, double* low, double* high
    ) noexcept nogil:
        cdef const Output* o = &self.outputs[k]
        cdef int64_t newest = a.newest, i = 0, beside = a.held + 1 + (0 if a.base == NULL else a.base[H_COUNT].i)
        cdef Stretch s
        if a.n < FEW:
            self.bound_each(k, a, out, low, high)
            return
        s.leaf, s.base, s.center, s.below, s.above = a.leaf, a.base, self.center[o.dimension], self.below, self.above
        while i < a.n:
            s.where = self.cut_at(a, i, &newest)
            s.whole = s.where.least == a.leaf[H_COUNT].i
            s.outer = a.left if s.whole else a.top
            s.inside = beside + i + (0 if s.outer == NULL else s.outer[H_COUNT].i)
            s.totals, s.lows, s.highs = self.totals + i, self.lows + i, self.highs + i
            s.n = self.stretch(o, a, i, s.where.most, &newest)
            s.falls = s.n > 1 and self.falls(a, i)
            intervals(o, &s, out + i, low + i, high + i)
            i += s.n

    cdef int64_t stretch(
        self, const Output* o, const Around* a, int64_t i, int64_t most, int64_t* newest
    ) noexcept nogil:
        """How many readings from i on, where the cut keeps `most`, are alike to an interval; `newest` up to the last of them."""
        if self.policy == BY_TIME:
            return self.stretch_by_time(a, i, newest)
        if self.falls(a, i):
            return min(a.n - i, alike(o, a.leaf, most))
        return min(a.n, self.falls_from(a)) - i

    cdef bint falls(self, const Around* a, int64_t i) noexcept nogil:
        """Whether each reading after i takes one from the cut bucket."""
        return i >= self.falls_from(a)

    cdef int64_t falls_from(self, const Around* a) noexcept nogil:
        """The first reading of a run that does so, as `cut_at` has it."""
        if self.policy != BY_COUNT or self.hop > 1:
            return a.n
        return max(a.edge, a.leaf[H_O_FIRST].i - 1) + self.value - a.before + 1

    cdef int64_t stretch_by_time(self, const Around* a, int64_t i, int64_t* newest) noexcept nogil:
        cdef int64_t until = cut_holds_until(&self.p, a.leaf, self.cut_off_at(newest[0])), j = i + 1, time
        while j < a.n:
            time = max(newest[0], a.before + j if a.times == NULL else a.times[j])
            if time - self.value >= until and self.cut_off_at(time) >= until:
                break
            newest[0] = time
            j += 1
        return j - i

    cdef void bound_each(self, int k, const Around* a, double* out, double* low, double* high) noexcept nogil:
        """One reading after the other."""
        cdef const Output* o = &self.outputs[k]
        cdef int64_t n = a.leaf[H_COUNT].i, newest = a.newest, i
        cdef const Slot* outer
        cdef Inside inside
        cdef Interval found
        cdef Slot value
        cdef Cut where
        for i in range(a.n):
            where = self.cut_at(a, i, &newest)
            outer = a.left if where.least == n else a.top
            inside = inside_of(o, outer)
            inside.n += a.held + i + 1 + (0 if a.base == NULL else a.base[H_COUNT].i)
            if o.prefix >= 0:
                inside.total = sum_beside(o, outer, a.base, self.totals[i])
            if o.low >= 0:
                inside.low = least(inside.low, beside_low(o, a.base, self.lows[i]))
                inside.high = greatest(inside.high, beside_high(o, a.base, self.highs[i]))
            if o.kind == K_COUNT:
                value.i = <int64_t> out[i]
            else:
                value.f = out[i]
            found = interval(o, value, &inside, a.leaf, where, self.center[o.dimension])
            put(o.kind, clamp(o.kind, value, &found), &found, out + i, low + i, high + i)

    cdef Interval interval_of(self, const Output* o, Slot value, const Slot* outer, const Slot* leaf, Cut where) noexcept nogil:
        cdef Inside inside = inside_of(o, outer)
        if is_spread(o.kind):
            return spread_interval(o, outer, leaf, where, self.center[o.dimension])
        return interval(o, value, &inside, leaf, where, self.center[o.dimension])
