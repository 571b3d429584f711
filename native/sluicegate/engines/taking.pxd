"""Readings: one by one and in batches, with the answers after each."""

from libc.stdint cimport int64_t

from sluicegate.engines.bucketing cimport Bucketing
from sluicegate.engines.program cimport Slot


cdef class Taking(Bucketing):
    cdef int accept(self, const double* values, int64_t time) except -1 nogil
    cdef int run(self, const double* values, const int64_t* times, int64_t count, double** out) except -1 nogil
    cdef int answer_all(self, Slot* out) noexcept nogil
