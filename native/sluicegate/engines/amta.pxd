"""The Amortized Monoid Tree Aggregator: a forest whose shape follows from the absolute indices of its first and last leaf.

Level l holds the nodes head >> l … ((tail + 1) >> l) − 2; node i's parent is node i >> 1 of the level above and exists
once i's pair is not the last of its level. The first node of a level is stale until `refresh_spine`; only bulk and level
eviction read it.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Block, Engine, Leaves
from sluicegate.engines.chunks cimport Pool, Queue
from sluicegate.engines.program cimport Slot

cdef enum:
    LEVELS = 64


cdef class Amta(Engine):
    cdef Pool pool
    cdef Queue level[LEVELS]  # a circular queue of levels: level l is at (base + l) % LEVELS
    cdef int base
    cdef int depth  # levels that hold a node
    cdef int room  # elements the stack can hold
    cdef int stacked  # elements on the stack
    cdef int kernel  # which operator the loops are made for: `kernels.kernel_of`
    cdef bint split  # every component of a partial has such an operator
    cdef bint has_right
    cdef bint has_base
    cdef bint stale  # the newest leaf has changed since R0 and R1 were taken
    cdef Slot* left  # R0, the leftmost tree
    cdef Slot* right  # R1, the other trees: always base and then the newest leaf
    cdef Slot* base_of_right
    cdef Slot* stack  # R0 without the first element of each level, the topmost level first
    cdef Slot* lefts  # a block's R0 after each eviction: room for `most_left` + 1
    cdef int64_t most_left
    cdef Slot* flat  # the arrays of little.pxd, where the operator is a known one

    cdef Slot* node(self, int level, int64_t index) noexcept nogil
    cdef int64_t first(self, int level) noexcept nogil
    cdef int64_t end(self, int level) noexcept nogil
    cdef int make_room(self, int level, int64_t index) except -1 nogil
    cdef int make_room_for(self, int64_t tail) except -1 nogil
    cdef int room_for_lefts(self, int64_t n) except -1 nogil
    cdef void measure(self) noexcept nogil
    cdef void return_chunk(self) noexcept nogil
    cdef void freshen(self) noexcept nogil
    cdef void rebuild(self) noexcept nogil
    cdef void leap_to(self, int64_t head) noexcept nogil
    cdef void ask_for_spine(self, int64_t head) noexcept nogil
    cdef void drop_to(self, int64_t head) noexcept nogil
    cdef void refresh_spine(self) noexcept nogil
    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil
    cdef int64_t descend(self, int level, int64_t index, bint started, Leaves leaves, void* context) noexcept nogil
    cdef const Slot* longer(self, bint started, const Slot* node) noexcept nogil
    cdef int64_t quiet(self, const Block* block, int64_t done) noexcept nogil
    cdef int check_nodes(self) except -1
    cdef int check_stack(self) except -1
