# How the histograms of a window decide together, as the window's core calls it: no allocation, no GIL.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.histograms._hop cimport HopRule
from sluicegate.histograms._max_like cimport MaxRule
from sluicegate.histograms._sum_like cimport SumRule


@cython.final
cdef class Rules:
    cdef readonly SumRule sums  # None where absent, as the others
    cdef readonly MaxRule most
    cdef readonly HopRule hop
    cdef bint has_sums
    cdef bint has_most
    cdef bint has_hop
    cdef int64_t refresh_every
    cdef readonly int64_t start  # ordinal of the first reading of the window
    cdef int64_t due_at  # 2^62 where nothing is ever due
    cdef bint full
    cdef bint sampling  # the next reading carries the current results as a sample

    # before a reading, where due(ordinal): fill sums.sums[j].result and .sample, then c_refresh
    cdef void c_refresh(self, int64_t ordinal) noexcept nogil
    cdef bint c_joins(self, const double* values, int64_t ordinal) noexcept nogil
    cdef void c_took(self, const double* values, int64_t ordinal, bint joined) noexcept nogil
    cdef void c_settled(self, int64_t start, int64_t uncertain) noexcept nogil
    cdef void c_coarsened(self) noexcept nogil

