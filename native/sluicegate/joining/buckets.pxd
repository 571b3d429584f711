"""What decides how a window's readings are kept in buckets: the histograms, the limit, and what has been merged for it.

A window whose leaves are single readings has one of these, too; its limit is 0 then, and it has no rules.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.engines.tree.pairs cimport Pairs
from sluicegate.engines.tree.staged cimport Staged
from sluicegate.histograms._rules cimport Rules
from sluicegate.partials.program cimport Slot

cdef enum:
    KEPT_LEVELS = 16  # sluicegate.constants.KEPT_LEVELS


cdef class Buckets:
    cdef Rules rules  # of the histograms; None: the limit alone decides
    cdef Pairs pairs  # the engine where neighbouring pairs are merged, else None
    cdef Staged staged  # the engine where there is a staging tail, else None
    cdef int64_t limit  # of buckets now, 0: none; at most what the engine was set up for
    cdef int64_t finer  # new buckets are so many times smaller than those that would all be equal
    cdef int64_t level  # level evictions so far
    cdef int64_t level_heads[KEPT_LEVELS]  # the head of level l when it was evicted, at l % 16; since the last 16th
    cdef int64_t mark  # leaves before it have been given out
    cdef int* sample_slot  # of each controlled sum: where a partial keeps the sample of its results
    cdef int* prefix_slot  # and the sum itself

    cdef int setup(self, Rules rules, int64_t limit, layout) except -1
    cdef Engine own_engine(self, merging, staging)
    cdef bint coarse(self) noexcept nogil
    cdef int64_t counted(self, Engine engine) noexcept nogil
    cdef void sample_results(self, const Slot* total, const double* center, int64_t ordinal) noexcept nogil
    cdef void carry_sample(self, Slot* reading) noexcept nogil
    cdef void count_level(self, int64_t head) noexcept nogil
    cdef tuple heads(self)
    cdef int take_state(self, int64_t index) noexcept
    cdef bytes state(self)
    cdef int load(self, saved, int64_t leaves) except -1
