"""Subtract-on-Evict: a running total of leaves, and a fresh one of those that came since the last window turn.

A total is a partial, the exact rounding errors of its plain sums (`sums` of them), and the greatest sum of squared
deviations it has held for each that it keeps (`deviations` of them).
"""

from libc.stdint cimport int64_t

from sluicegate.engines.program cimport Slot
from sluicegate.engines.queued cimport Queued

ctypedef struct Total:
    Slot* partial
    double* errors
    double* peaks
    bint some  # whether anything has been added


cdef class Soe(Queued):
    cdef Total sum
    cdef Total fresh
    cdef Total other  # of rest() and check()
    cdef Slot* arena
    cdef int* sum_slots
    cdef int sums
    cdef int* deviation_slots
    cdef int deviations
    cdef double* before  # the plain sums before an operation
    cdef int64_t turn  # the first leaf of `fresh`
    cdef int64_t since  # evictions since the total was last taken anew
    cdef bint lost  # digits of a deviation

    cdef int find_slots(self) except -1
    cdef void place_total(self, Total* total, int k) noexcept nogil
    cdef void reset(self, Total* total) noexcept nogil
    cdef void add(self, Total* total, const Slot* leaf) noexcept nogil
    cdef void take_away(self, Total* total, const Slot* leaf) noexcept nogil
    cdef void note_sums(self, const Total* total) noexcept nogil
    cdef void note_errors(self, Total* total, const Slot* leaf, double sign) noexcept nogil
    cdef void watch(self) noexcept nogil
    cdef const Slot* rounded(self, const Total* total, Slot* out) noexcept nogil
