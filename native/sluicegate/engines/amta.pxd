"""The Amortized Monoid Tree Aggregator: a forest whose shape follows from the absolute indices of its first and last
leaf.

Level l holds the nodes head >> l … ((tail + 1) >> l) − 2; node i's parent is node i >> 1 of the level above and exists
once i's pair is not the last of its level. The first node of a level is stale until `refresh_spine`; only bulk and
level eviction read it.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine, Leaves
from sluicegate.memory.chunks cimport Pool, Queue
from sluicegate.partials.program cimport Slot

cdef enum:
    LEVELS = 64


cdef class Amta(Engine):
    cdef Pool pool
    cdef Queue level[LEVELS]  # a circular queue of levels: level l is at (base + l) % LEVELS
    cdef int base
    cdef int depth  # levels that hold a node
    cdef int room  # elements the stack can hold
    cdef int stacked  # elements on the stack
    cdef int kernel  # the operator of its own that the partial has: `kernels.kernel_of`
    cdef bint split  # every component of a partial has such an operator
    cdef int64_t most_together  # readings for which levels lie together as they do
    cdef bint apart  # each level lies in chunks of its own, however few there are
    cdef bint has_right
    cdef bint has_base
    # the newest leaf is not in R1 yet as it is now, or where it is part of the leftmost tree, not in R0
    cdef bint stale
    cdef Slot* left  # R0, the leftmost tree
    cdef Slot* right  # R1, the other trees: always base and then the newest leaf
    cdef Slot* base_of_right
    cdef Slot* stack  # R0 without the first element of each level, the topmost level first
    cdef Slot* fronts  # while a block lasts: R0 for the heads that come

    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil
    cdef int64_t descend(self, int level, int64_t index, bint started, Leaves leaves, void* context) noexcept nogil
    cdef const Slot* longer(self, bint started, const Slot* node) noexcept nogil
    cdef void refresh_spine(self) noexcept nogil
    cdef const Slot* top(self) noexcept nogil
    cdef int check_nodes(self) except -1
    cdef int check_stack(self) except -1
