"""Which reading joins the newest bucket and which opens one; runs of those that join are folded at once."""

from libc.stdint cimport int64_t

from sluicegate.core.state cimport State

cdef enum:
    MOST_RUN = 1024  # readings folded at once: they stay in the processor's first cache

cdef int place(State s, const double* values, int64_t time) except -1 nogil  # a reading, whose ordinal is `accepted`
cdef int64_t join_run(State s, const double* values, const int64_t* times, int64_t count) noexcept nogil
cdef int limit_to(State s, int64_t limit) except -1 nogil  # merge until at most so many buckets are left
