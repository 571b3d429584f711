"""Buckets: which reading joins the newest and which opens one; how room is made; see bucketing.pxd."""

from libc.stdint cimport int64_t

from sluicegate.answers.results cimport BY_COUNT, BY_TIME, CUSTOM
from sluicegate.partials.program cimport H_COUNT, H_O_FIRST, H_T_LAST, MAX, MIN, SUM, Slot, fold, lift
from sluicegate.joining.runs cimport Run, fold_run
from sluicegate.core.staging cimport Staging
from sluicegate.core.state cimport KEPT_LEVELS
from sluicegate.histograms._rules cimport run_joins, run_took
from sluicegate.histograms._statistics cimport Moments
from sluicegate.histograms._sum_like cimport Sum, sums_run


cdef class Bucketing(Staging):
    """A window that places readings in leaves."""

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

    cdef int place(self, const double* values, int64_t time) except -1 nogil:
        """Join the newest bucket or open one, making room where there would be one too many."""
        cdef bint joined
        if self.staging:
            return self.place_staged(values, time)
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
        if self.up_to and not self.ruled and not late and self.hides(values, newest):
            return True
        if self.ruled:
            if not late and self.rules.c_joins(values, self.accepted):
                return True
            if 2 * (self.engine.tail - self.engine.head) <= self.limit:
                return False
        return self.coarse() and self.forced(late, newest)

    cdef inline bint coarse(self) noexcept nogil:
        """Whether buckets have been merged for the limit."""
        return self.pairs.merges > 0 if self.merging else self.level > 0

    cdef inline bint hides(self, const double* values, const Slot* newest) noexcept nogil:
        """Whether the reading makes all of the newest bucket irrelevant, of a window up to an extreme: joining is free."""
        return self.up_to * values[0] >= self.up_to * newest[self.extreme_slot].f

    cdef bint forced(self, bint late, const Slot* newest) noexcept nogil:
        cdef int64_t inside = self.accepted - self.engine.leaf(self.engine.head)[H_O_FIRST].i + 1
        if late and (self.merging or (4 * inside) >> min(self.level, 62) >= self.limit):
            return False
        return self.counted(newest) * (self.finer * (self.limit - 2)) < max(inside, self.fewest_cut())

    cdef inline int64_t counted(self, const Slot* newest) noexcept nogil:
        """The newest bucket's readings that count for its size: up to an extreme, what stands before that is irrelevant."""
        return self.accepted - newest[self.extreme_slot + 4].i if self.up_to and not self.ruled else newest[H_COUNT].i

    cdef inline int make_room(self) except -1 nogil:
        """One bucket less at least: by the pair that adds least, or by a level."""
        return self.merge_pair() if self.merging else self.evict_level()

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
            self.keep_to(limit)
            while self.constrained() > limit:
                self.make_room()
        finally:
            self.busy = False

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
        run.centers, run.one, run.totals = self.center, self.reading, self.totals
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
        if self.staging or self.engine.tail - self.engine.head < 2:
            return 0
        if self.policy == CUSTOM:
            most = min(most, self.condition.wakes - self.accepted)
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
        cdef bint forced = self.may_force(), hiding = self.up_to and not self.ruled
        cdef int64_t share = self.finer * (self.limit - 2), few = self.fewest_cut()
        cdef double top = newest[self.extreme_slot].f if hiding else 0.0
        cdef int64_t size = self.counted(newest)
        for n in range(most):
            time = self.accepted + n if times == NULL else times[n]
            if time < late or (self.policy == BY_TIME and time >= until):
                return n
            if self.up_to and self.up_to * values[0] >= self.up_to * oldest[self.extreme_slot].f:
                return n
            if hiding and self.up_to * values[0] >= self.up_to * top:
                top, size = values[0], -n
            elif not (self.ruled and run_joins(self.rules, hopping, values)) and not (
                forced and (size + n) * share < max(self.accepted + n - oldest[H_O_FIRST].i + 1, few)
            ):
                return n
            if self.ruled:
                run_took(self.rules, values, self.accepted + n)
                if counted and self.accepted + n + 1 - self.value > self.rules.start:
                    self.rules.start, self.rules.full = self.accepted + n + 1 - self.value, True
            late = time
            values += self.p.dimensions
        return most
