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


cdef enum:
    AT_ONCE = 32  # readings


cdef inline int64_t sum_run(Sum* s, const double* x, int step, int64_t most, bint take) noexcept nogil:
    """How many readings one sum allows to join one after the other; with `take` it takes note of them.

    Many at once, where the least and greatest sum of them all keep the limit: so does each then, since rounding keeps the order.
    """
    cdef double low = s.low, high = s.high, total = s.sum, least, greatest, following, limit = s.limit
    cdef int64_t n = 0, k
    while n + AT_ONCE <= most:
        least, greatest, following = low, high, total
        for k in range(n, n + AT_ONCE):
            least, greatest = min(least, following), max(greatest, following)
            following += x[k * step]
        if not (fabs(min(least, following)) <= limit and fabs(max(greatest, following)) <= limit
                and max(greatest, following) - min(least, following) <= limit):
            break
        low, high, total = least, greatest, following
        n += AT_ONCE
    while n < most:
        least, greatest, following = min(low, total), max(high, total), total + x[n * step]
        if not (fabs(least) <= limit and fabs(greatest) <= limit and fabs(following - least) <= limit
                and fabs(following - greatest) <= limit and greatest - least <= limit):
            break
        low, high, total = least, greatest, following
        n += 1
    if take:
        s.low, s.high, s.sum = low, high, total
    return n


cdef inline int64_t sums_run(Sum* sums, int m, int64_t held, const double* values, int step, int64_t most) noexcept nogil:
    """How many readings join an open bucket of `held`; the sums take note of them, the caller of how many they are."""
    cdef int j, others = 0
    for j in range(m):
        if sums[j].dimension >= 0:
            others += 1
        elif sums[j].limit < <double> (held + most - 1):
            most = max(0, <int64_t> sums[j].limit + 1 - held)
    for j in range(m if others > 1 else 0):
        if sums[j].dimension >= 0:
            most = sum_run(&sums[j], values + sums[j].dimension, step, most, False)
    for j in range(m):
        if sums[j].dimension >= 0:
            most = sum_run(&sums[j], values + sums[j].dimension, step, most, True)
    return most


@cython.final
cdef class SumRule:
    cdef Sum* sums
    cdef int m
    cdef int64_t n  # readings of the open bucket
    cdef double confidence
    cdef double t  # Student's quantile for `freedom`
    cdef int freedom

    cdef bint c_joins(self, const double* values) noexcept nogil
    cdef void c_took(self, const double* values, bint joined) noexcept nogil
    cdef void c_coarsened(self) noexcept nogil
    cdef void c_refresh(self, int64_t count, bint full) noexcept nogil
    cdef double base(self, int j, bint full) noexcept nogil
    cdef double floor(self, int j, int64_t count) noexcept nogil
