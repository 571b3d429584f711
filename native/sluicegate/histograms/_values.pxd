# What the values of readings say of joining a bucket, compiled: the sum-like histogram, O(1) a reading and control, and
# the max-like one, O(1) a reading and extreme, a refit when a block ends. No allocation, no GIL.
cimport cython
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t

from sluicegate.histograms._statistics cimport Moments

cdef enum:
    MAXIMA = 30


cdef struct Sum:
    int dimension  # whose values are added, −1: the count
    int mean  # −1, or the sum of the mean that is served
    double error
    double atol
    double limit  # what a cut of the open bucket may cost
    double sum  # of the open bucket
    double low  # the least and greatest sum of a proper, non-empty prefix of it
    double high
    double result  # the current sum, set before a refresh
    Moments sample  # of past results, set before a refresh


cdef inline bint sums_join(const Sum* sums, int m, int64_t n, const double* values) noexcept nogil:
    """Whether the open bucket of n readings stays within every limit with one more."""
    cdef const Sum* s
    cdef double low, high, total
    cdef int j
    for j in range(m):
        s = &sums[j]
        if s.dimension < 0:
            if <double> n > s.limit:
                return False
            continue
        low, high = min(s.low, s.sum), max(s.high, s.sum)
        total = s.sum + values[s.dimension]
        if not (fabs(low) <= s.limit and fabs(high) <= s.limit and fabs(total - low) <= s.limit
                and fabs(total - high) <= s.limit and high - low <= s.limit):
            return False
    return True


cdef inline void sums_took(Sum* sums, int m, const double* values, bint joined) noexcept nogil:
    cdef Sum* s
    cdef int j
    for j in range(m):
        s = &sums[j]
        if s.dimension < 0:
            continue
        if joined:
            s.low, s.high = min(s.low, s.sum), max(s.high, s.sum)
            s.sum += values[s.dimension]
        else:
            s.sum, s.low, s.high = values[s.dimension], INFINITY, -INFINITY


@cython.final
cdef class SumRule:
    cdef Sum* sums
    cdef int m
    cdef int64_t n  # readings of the open bucket
    cdef double confidence
    cdef double z  # the normal quantile of that
    cdef double t  # Student's quantile for `freedom`
    cdef int freedom

    cdef void coarsened(self) noexcept nogil  # the open bucket was merged with its neighbour: it should close
    cdef void refresh(self, int64_t count, bint full) noexcept nogil  # limits anew, from their results and samples
    cdef double base(self, int j, bint full) noexcept nogil
    cdef double floor(self, int j, int64_t count) noexcept nogil


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
    cdef int64_t fits
    cdef double confidence
    cdef bint paper

    cdef void took(self, const double* values, bint joined, int64_t count) noexcept nogil
    cdef void coarsened(self) noexcept nogil  # no candidate joins the open bucket
    cdef void end_block(self) noexcept nogil
    cdef void refit(self, Peak* p) noexcept nogil
