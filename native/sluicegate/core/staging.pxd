"""Readings of a window with a staging tail: what the newest hides, what leaves the tail, what is stored."""

from libc.stdint cimport int64_t

from sluicegate.core.ruling cimport Ruling


cdef class Staging(Ruling):
    cdef int64_t finer  # new buckets are so many times smaller than those that would all be equal

    cdef int place_staged(self, const double* values, int64_t time) except -1 nogil
    cdef void collapse(self) noexcept nogil
    cdef int spill(self) except -1 nogil
    cdef int verdict(self) noexcept nogil
    cdef int64_t fewest_cut(self) noexcept nogil
    cdef void note_oldest(self) noexcept nogil
    cdef int merge_pair(self) except -1 nogil
    cdef int64_t constrained(self) noexcept nogil
