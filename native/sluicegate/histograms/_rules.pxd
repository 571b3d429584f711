# Where readings stand to predicted evictions, O(1) a reading and O(256) an eviction, and how the histograms of a window
# decide together, as the window's core calls it: no allocation, no GIL.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.histograms._values cimport MaxRule, SumRule

cdef enum:
    MOST_SIZES = 256

cdef enum:  # what becomes of a reading: it joins the block, opens a bucket, or another histogram decides
    JOIN = 0
    OPEN = 1
    OTHER = 2


@cython.final
cdef class HopRule:
    cdef double confidence
    cdef double z  # the normal quantile of that
    cdef double mean  # of the sizes, 0: no prediction
    cdef double spread  # t·s
    cdef int n  # size of the sample, 0: the hint
    cdef int held
    cdef double sizes[MOST_SIZES]  # oldest first
    cdef int64_t boundary
    cdef int64_t following  # the next ordinal
    cdef int64_t k
    cdef int64_t first  # the zone: low − 1 … high of the predicted boundary
    cdef int64_t last
    cdef int64_t failures
    cdef int64_t known  # the last certain boundary
    cdef int64_t pending  # sizes since then, taken at their worst
    cdef int64_t least  # what the first of them may be
    cdef int64_t most
    cdef double usual  # the mean before it

    cdef int verdict(self, int64_t ordinal) noexcept nogil
    cdef void took(self, int64_t ordinal) noexcept nogil
    cdef void evicted(self, int64_t start, int64_t uncertain) noexcept nogil
    cdef void doubt(self, int64_t least, int64_t most) noexcept nogil
    cdef void resolve(self, int64_t start) noexcept nogil
    cdef void note(self, double size) noexcept nogil
    cdef void advance(self) noexcept nogil
    cdef void predict(self) noexcept nogil
    cdef void place(self) noexcept nogil
    cdef void resample(self) noexcept nogil


@cython.final
cdef class Rules:
    cdef SumRule sums  # None where absent, as the others
    cdef MaxRule most
    cdef HopRule hop
    cdef bint has_sums
    cdef bint has_most
    cdef bint has_hop
    cdef int64_t refresh_every
    cdef int64_t start  # ordinal of the first reading of the window
    cdef int64_t due_at  # 2^62 where nothing is ever due
    cdef bint full
    cdef bint sampling  # the next reading carries the current results as a sample

    # before a reading, where due(ordinal): fill sums.sums[j].result and .sample, then refresh
    cdef void refresh(self, int64_t ordinal) noexcept nogil
    cdef bint joins(self, const double* values, int64_t ordinal) noexcept nogil
    cdef void took(self, const double* values, int64_t ordinal, bint joined) noexcept nogil
    cdef void settled(self, int64_t start, int64_t uncertain) noexcept nogil
    cdef void coarsened(self) noexcept nogil

