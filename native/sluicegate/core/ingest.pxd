"""Readings: one by one and in batches, with the answers after each."""

from libc.stdint cimport int64_t

from sluicegate.core.batching cimport Batching
from sluicegate.partials.program cimport Slot

ctypedef struct Flat:  # a batch in buffers that are held for as long as it lasts
    Py_buffer value_view
    Py_buffer time_view
    const double* values
    const int64_t* times  # NULL: none were given
    int64_t count


cdef class Ingesting(Batching):
    cdef tuple names  # of the aggregates
    cdef object reader  # asked where a value or a time that a caller gives is not a plain float or int
    cdef object read_time
    cdef bint positive  # values must be greater than 0

    cdef int slide_one(self, const double* values, const int64_t* time, double* out) except -1 nogil  # a row of answers
    cdef int answer_all(self, Slot* out) noexcept nogil
