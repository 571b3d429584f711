# The contract of the compiled hop histogram: O(1) a reading, O(256) an eviction; no allocation, no GIL.
cimport cython
from libc.stdint cimport int64_t

cdef enum:
    MOST_SIZES = 256

cdef enum:  # sluicegate.reference.histograms.hop.HopVerdict
    JOIN = 0
    OPEN = 1
    OTHER = 2


@cython.final
cdef class HopRule:
    cdef double confidence
    cdef double mean  # of the sizes, 0: no prediction
    cdef double spread  # t·s
    cdef int n  # size of the sample, 0: the hint
    cdef int held
    cdef double sizes[MOST_SIZES]  # oldest first
    cdef readonly int64_t boundary
    cdef int64_t following  # the next ordinal
    cdef int64_t k
    cdef readonly int64_t first  # the zone: low − 1 … high of the predicted boundary
    cdef readonly int64_t last
    cdef readonly int64_t failures
    cdef int64_t known  # the last certain boundary
    cdef int64_t pending  # sizes since then, taken at their worst
    cdef int64_t least  # what the first of them may be
    cdef int64_t most
    cdef double usual  # the mean before it

    cdef int c_verdict(self, int64_t ordinal) noexcept nogil
    cdef void c_took(self, int64_t ordinal) noexcept nogil
    cdef void c_evicted(self, int64_t start, int64_t uncertain) noexcept nogil
    cdef void doubt(self, int64_t least, int64_t most) noexcept nogil
    cdef void resolve(self, int64_t start) noexcept nogil
    cdef void note(self, double size) noexcept nogil
    cdef void advance(self) noexcept nogil
    cdef void predict(self) noexcept nogil
    cdef void place(self) noexcept nogil
    cdef void resample(self) noexcept nogil
