# The contract of the compiled max-like histogram: O(1) a reading and extreme, a refit when a block ends. No allocation,
# no GIL.
cimport cython
from libc.stdint cimport int64_t

cdef enum:
    MAXIMA = 30


cdef struct Peak:
    int dimension
    int sign  # +1: the greatest value, −1: the least
    bint strict  # an equal value opens a bucket too
    int held  # block maxima, at most MAXIMA
    double low  # the range of candidates
    double high
    double opened  # the open bucket's greatest value
    double height  # the open block's
    double maxima[MAXIMA]  # oldest first


cdef inline bint peaks_join(const Peak* peaks, int m, bint paper, const double* values) noexcept nogil:
    """Whether the reading is no candidate of any extreme, or hides what the open bucket holds."""
    cdef const Peak* p
    cdef double x
    cdef int j
    for j in range(m):
        p = &peaks[j]
        x = p.sign * values[p.dimension]
        if p.low <= x and x <= p.high:
            if paper or not (x > p.opened or (x == p.opened and not p.strict)):
                return False
    return True


cdef inline void peaks_took(Peak* peaks, int m, const double* values, bint joined) noexcept nogil:
    cdef Peak* p
    cdef double x
    cdef int j
    for j in range(m):
        p = &peaks[j]
        x = p.sign * values[p.dimension]
        p.opened = max(p.opened, x) if joined else x
        p.height = max(p.height, x)


@cython.final
cdef class MaxRule:
    cdef Peak* peaks
    cdef int m
    cdef int64_t block  # 0: automatic
    cdef int64_t block_size
    cdef int64_t n  # readings of the open block
    cdef int64_t longest  # the longest window so far
    cdef readonly int64_t fits
    cdef double confidence
    cdef bint paper

    cdef void c_took(self, const double* values, bint joined, int64_t count) noexcept nogil
    cdef void c_coarsened(self) noexcept nogil
    cdef void end_block(self) noexcept nogil
    cdef void refit(self, Peak* p) noexcept nogil
