"""Built-in rules besides count and time, enforced after each reading."""

from libc.stdint cimport int64_t

from sluicegate.core.eviction cimport Eviction
from sluicegate.policies._eviction cimport Condition


cdef class Ruling(Eviction):
    cdef Condition condition  # its kind is 0 where there is none
    cdef str policy_name  # for its errors

    cdef int take_condition(self, eviction) except -1
    cdef int refuse_fall(self, const double* values, int64_t count) except -1
    cdef int enforce_rule(self, const double* values) except -1 nogil
    cdef int evict_by_rule(self) noexcept nogil
    cdef int evict_over_limit(self) noexcept nogil
    cdef int64_t wake_at(self) noexcept nogil
