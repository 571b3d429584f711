"""What decides how a window's readings are kept in buckets. The twin: tests/native/twins/bucketing.py."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from sluicegate.engines.base cimport Engine
from sluicegate.engines.tree.pairs cimport Pairs
from sluicegate.engines.tree.staged cimport Staged
from sluicegate.histograms._rules cimport Rules
from sluicegate.histograms._statistics cimport Moments
from sluicegate.histograms._values cimport Sum
from sluicegate.partials.program cimport H_COUNT, Slot

from sluicegate.constants import FINER as _FINER
from sluicegate.monoids.layout import Op

cdef Moments NO_SAMPLE = Moments(0.0, 0.0, 0.0)


cdef class Buckets:
    """The histograms' rules, the limit, and the engine's merged pairs and staging tail where it has them."""

    def __dealloc__(self):
        free(self.sample_slot)
        free(self.prefix_slot)

    cdef int setup(self, Rules rules, int64_t limit, layout) except -1:
        cdef int j, m
        self.rules, self.limit, self.finer = rules, limit, 1
        if rules is None or not rules.has_sums:
            return 0
        m = rules.sums.m
        self.sample_slot, self.prefix_slot = <int*> calloc(m, sizeof(int)), <int*> calloc(m, sizeof(int))
        if self.sample_slot == NULL or self.prefix_slot == NULL:
            raise MemoryError("window: no memory for the histograms' slots")
        for j in range(m):
            self.sample_slot[j] = layout.slot(Op.SAMPLE, j)
            self.prefix_slot[j] = layout.slot(Op.PREFIX, max(rules.sums.sums[j].dimension, 0))
        return 0

    cdef Engine own_engine(self, merging, staging):
        """The engine that merging pairs or a staging tail asks for, None where there is neither."""
        if staging is not None:
            self.staged = Staged()
            self.staged.guard(staging[0], staging[1], None if self.rules is None else self.rules.most, merging)
            self.pairs = self.staged.stored
        elif merging is not None:
            self.pairs = Pairs()
            self.pairs.measure(merging)
        self.finer = 1 if merging is None else _FINER
        return self.staged if self.staged is not None else self.pairs

    cdef bint coarse(self) noexcept nogil:
        """Whether buckets have been merged for the limit."""
        return self.level > 0 if self.pairs is None else self.pairs.merges > 0

    cdef int64_t counted(self, Engine engine) noexcept nogil:
        """How many buckets the limit counts: all but what is staged."""
        return engine.tail - engine.head if self.staged is None else self.staged.kept()

    # the samples of past results that the buckets of a sum-like histogram carry

    cdef void sample_results(self, const Slot* total, const double* center, int64_t ordinal) noexcept nogil:
        """Before this reading: take the limits anew, from the results and their sample now; 0 where it is empty."""
        cdef Sum* s
        cdef int j
        for j in range(self.rules.sums.m):
            s = &self.rules.sums.sums[j]
            s.result, s.sample = 0.0, NO_SAMPLE
            if total == NULL:
                continue
            s.result = <double> total[H_COUNT].i
            if s.dimension >= 0:
                s.result = center[s.dimension] * total[H_COUNT].i + total[self.prefix_slot[j]].f
            s.sample = (<const Moments*> (total + self.sample_slot[j]))[0]
        self.rules.refresh(ordinal)

    cdef void carry_sample(self, Slot* reading) noexcept nogil:
        cdef Slot* s
        cdef int j
        for j in range(self.rules.sums.m):
            s = reading + self.sample_slot[j]
            s[0].f, s[1].f, s[2].f = 1.0, self.rules.sums.sums[j].result, 0.0

    # storage

    cdef void count_level(self, int64_t head) noexcept nogil:
        """A level was evicted when this was the head; every 16th gives all leaves out again."""
        self.level_heads[self.level % KEPT_LEVELS] = head
        self.level += 1
        self.mark = self.mark >> 1 if self.level % KEPT_LEVELS else 0

    cdef tuple heads(self):
        cdef int64_t level
        return tuple([self.level_heads[level] for level in range(self.level % KEPT_LEVELS)])

    cdef int take_state(self, int64_t index) noexcept:
        """GIVEN, FRESH or TOOK: whether a bucket is new to whoever stores it; GIVEN from now on."""
        return self.pairs.take_state(index) if self.staged is None else self.staged.take_state(index)

    cdef bytes state(self):
        """Merged pairs first, which sluicegate.window.rebuilding.chain reads."""
        kept = self.pairs if self.staged is None else self.staged
        return (b"" if kept is None else kept.state()) + (b"" if self.rules is None else self.rules.state())

    cdef int load(self, saved, int64_t leaves) except -1:
        """Continue from what was saved, of a window of so many leaves."""
        cdef int64_t level
        kept = self.pairs if self.staged is None else self.staged
        state = saved.rules
        self.level, self.mark = saved.level, saved.mark
        for level in range(self.level % KEPT_LEVELS):
            self.level_heads[level] = saved.heads[level]
        if self.staged is not None:
            self.staged.load(state[: kept.size], leaves)
        elif self.pairs is not None:
            self.pairs.load(state[: kept.size])
        if kept is not None:
            state = state[kept.size :]
        if self.rules is not None:
            self.rules.load(state)
        return 0
