"""Room for one bucket more: by merging the pair that adds least, or by merging all in pairs (a level eviction)."""

from libc.stdint cimport int64_t

from sluicegate.core.state cimport State


cdef int make_room(State s) except -1 nogil  # one bucket less at least
cdef int limit_to(State s, int64_t limit) except -1 nogil  # merge until at most so many buckets are left
cdef void note_oldest(State s) noexcept nogil  # what has left of the oldest bucket, before it takes another
