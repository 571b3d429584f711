"""Subtract-on-Evict: the leaves, their running total, and what tells when that has lost digits.

The first `plain` of the `sums` are sums whose exact rounding errors stand beside them; the others carry theirs.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.engines.queued cimport Queued


cdef class Soe(Queued):
    cdef Slot* arena  # what the pointers below point at
    cdef Slot* sum
    cdef Slot* kept  # of rest
    cdef Slot* whole  # the leaf last asked for, where only its value is kept
    cdef double* errors  # of the plain sums
    cdef double* kept_errors
    cdef double* before  # the plain sums before an operation
    cdef double* largest  # summand of each sum since the total was taken
    cdef int64_t* largest_at  # its leaf, or a later one half as large
    cdef double* greatest  # squared deviations since then
    cdef Slot* former  # the total before the newest leaf came
    cdef double* former_greatest
    cdef int64_t former_overflow_at
    cdef int64_t former_until  # the tail as long as nothing has left since, or another number
    cdef int64_t overflow_at  # the last leaf far enough to make them overflow, or with which they did
    cdef int64_t since  # evictions since the total was taken
    cdef int* sum_slots
    cdef int* deviation_slots
    cdef int kernel
    cdef int plain
    cdef int sums
    cdef int deviations

    cdef int find_slots(self) except -1
    cdef void reset(self) noexcept nogil
    cdef void add(self, const Slot* leaf, int64_t index) noexcept nogil
    cdef void take_away(self, Slot* total, double* errors, const Slot* leaf) noexcept nogil
    cdef void note_sums(self, const Slot* total) noexcept nogil
    cdef void note_errors(self, const Slot* total, double* errors, const Slot* leaf, double sign) noexcept nogil
    cdef bint lost(self) noexcept nogil
    cdef void exchange_deviations(self) noexcept nogil
    cdef double mean_of(self, int64_t index, int k) noexcept nogil
    cdef void take_anew(self) noexcept nogil
    cdef void take_moments_anew(self) noexcept nogil
    cdef double sum_around(self, double mean, double* squares) noexcept nogil
    cdef Slot* element(self, int64_t index) noexcept nogil
    cdef const Slot* rounded(self, const Slot* total, const double* errors, Slot* out) noexcept nogil
