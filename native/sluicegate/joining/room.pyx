"""Room for one bucket more; see room.pxd. The twin is sluicegate.reference.staging."""

from libc.stdint cimport int64_t

from sluicegate.core.state cimport State
from sluicegate.engines.tree.pairs cimport NEWEST, OLDEST


cdef int make_room(State s) except -1 nogil:
    cdef int64_t left = s.last_to_have_left()
    if s.buckets.pairs is None:
        return evict_level(s, left)
    return merge_pair(s, left)


cdef int limit_to(State s, int64_t limit) except -1 nogil:
    s.keep_to(limit)
    while s.buckets.counted(s.engine) > limit:
        make_room(s)
    return 0


cdef void note_oldest(State s) noexcept nogil:
    s.edge = max(s.edge, s.last_to_have_left())
    s.known.index = -1


cdef int merge_pair(State s, int64_t left) except -1 nogil:
    cdef int touched = s.buckets.pairs.merge() if s.buckets.staged is None else s.buckets.staged.merge_stored()
    s.known.index = -1
    if touched & OLDEST:
        s.edge = max(s.edge, left)
    if touched & NEWEST and s.buckets.rules is not None:
        s.buckets.rules.c_coarsened()
    return 0


cdef int evict_level(State s, int64_t left) except -1 nogil:
    cdef int64_t head = s.engine.head
    s.engine.coarsen()
    s.known.index = -1
    if s.buckets.rules is not None:
        s.buckets.rules.c_coarsened()
    s.edge = max(s.edge, left)
    s.buckets.count_level(head)
    return 0
