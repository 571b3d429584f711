"""Event time: late readings join where they belong, those that belong nowhere are counted, time goes on without any."""

from libc.stdint cimport int64_t

from sluicegate.core.state cimport State


cdef class EventTime(State):
    cdef int go_by_time(self) except -1
    cdef int insert_late(self, int64_t time) except -1 nogil
    cdef bint belongs(self, int64_t time) noexcept nogil
    cdef bint needs_order(self) noexcept nogil
    cdef int refuse_late_leafless(self) except -1 nogil
    cdef int64_t in_order(self, const int64_t* times, int64_t count) noexcept nogil
    cdef bint has_late_inside(self, const int64_t* times, int64_t count) noexcept nogil
