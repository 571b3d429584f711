"""Readings that come one by one into small buckets, with the answers after each: what `accept` and `answer_now` do, without their calls.

Where a bucket takes a few readings a run of them is not worth looking for (`join_run`). The same bits as either.
"""

from libc.stdint cimport int64_t

from sluicegate.core.answering cimport Answering
from sluicegate.answers.results cimport Cut, Output, Sums, cut_sum
from sluicegate.partials.program cimport Slot
from sluicegate.histograms._statistics cimport Moments, c_merge
from sluicegate.histograms._sum_like cimport Sum

ctypedef struct Sight:  # what stays while readings join the newest bucket
    Slot* newest
    const Slot* oldest
    const Slot* left  # as `Around` has them
    const Slot* top
    const Slot* base
    int64_t n  # readings of the oldest
    int64_t end  # the ordinal after its last
    bint whole  # there are two buckets at least
    bint sealed  # what comes next opens a bucket
    Sum* ruling  # the only sum that decides what joins, NULL: none does, or there are several
    int64_t longest  # readings of a bucket, as far as their number is limited
    int64_t fetched  # leaves before it are on their way into the caches
    bint known  # `sums`, or `taken` and `sum`, are what the cut bucket gives
    Sums sums
    double sum
    int64_t taken


cdef bint takes_small(Answering self) noexcept  # whether the window is one of these; once all of it is set up
cdef bint opens_many(Answering self, bint bounds) noexcept nogil  # whether the answers follow from the readings that a bucket takes, and from what leaves
cdef int64_t take_small(
    Answering self, const double* values, const int64_t* times, int64_t count, double** out, int64_t row, bint bounds
) except -1 nogil  # how many it took, none where `accept` is needed first


cdef inline void know_cut(Answering self, const Output* o, Sight* s, int64_t most) noexcept nogil:
    """What the cut bucket gives where nobody knows how many of its readings are inside, `most` at most; it stands still."""
    cdef Cut where
    if s.known:
        return
    where.least, where.most, where.taken = 1, most, most
    s.taken = 0
    s.sum, s.known = cut_sum(o, s.oldest, where, self.center[o.dimension], &s.taken), True


cdef inline void carry_sample(Answering self, Slot* leaf) noexcept nogil:
    """The first reading after limits were taken anew brings the results that they were taken from into its bucket."""
    cdef Moments sample
    cdef int j
    if not (self.ruled and self.rules.sampling):
        return
    sample.n, sample.m2 = 1.0, 0.0
    for j in range(self.rules.sums.m):
        sample.mean = self.rules.sums.sums[j].result
        c_merge(<Moments*> (leaf + self.sample_slot[j]), &sample)
    self.rules.sampling = False
