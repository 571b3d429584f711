# The contract of the compiled sum-like histogram: O(1) a reading and control, no allocation, no GIL.
cimport cython
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t

from sluicegate.histograms._statistics cimport Moments


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
    cdef double t  # Student's quantile for `freedom`
    cdef int freedom

    cdef void c_coarsened(self) noexcept nogil
    cdef void c_refresh(self, int64_t count, bint full) noexcept nogil
    cdef double base(self, int j, bint full) noexcept nogil
    cdef double floor(self, int j, int64_t count) noexcept nogil
