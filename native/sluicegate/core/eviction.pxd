"""What a policy lets go after each reading: by count, by time, up to an extreme, by a built-in or a compiled rule."""

from libc.stdint cimport int64_t

from sluicegate.core.state cimport State


cdef int enforce(State s, const double* values) except -1 nogil  # the policy; `values`: of the newest reading
cdef int enforce_now(State s) except -1 nogil  # the same with the reading that was the newest then
cdef int evict_oldest(State s, int64_t count) except -1
cdef int evict_by_callable(State s, leaves, bint monotone) except -1
