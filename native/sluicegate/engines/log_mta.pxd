"""Log MTA: a binary tree in a queue a level. Leaf i's ancestor at level l is node i >> l; the topmost level is one
pair.

Level l holds nodes head >> l … (tail − 1) >> l, each its children combined, the first and the last included.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine, Leaves
from sluicegate.memory.chunks cimport Pool, Queue
from sluicegate.partials.program cimport Slot

cdef enum:
    LEVELS = 64


cdef class LogMta(Engine):
    cdef Pool pool
    cdef Queue level[LEVELS]
    cdef int top  # the lowest level that is one pair, 0 for an empty window

    cdef Slot* node(self, int level, int64_t index) noexcept nogil
    cdef void measure(self) noexcept nogil
    cdef int make_room(self, int level, int64_t index) except -1 nogil
    cdef void set_pair(self, int level, int64_t index) noexcept nogil
    cdef void drop_to(self, int64_t head) noexcept nogil
    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil
