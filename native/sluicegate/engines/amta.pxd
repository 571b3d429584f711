"""The Amortized Monoid Tree Aggregator: a forest whose shape follows from the absolute indices of its first and last leaf.

Level l holds the nodes head >> l … ((tail + 1) >> l) − 2; node i's parent is node i >> 1 of the level above and exists
once i's pair is not the last of its level. The first node of a level is stale until `refresh_spine`; only bulk and level
eviction read it.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Block, Engine, Leaves
from sluicegate.memory.chunks cimport Pool, Queue
from sluicegate.partials.program cimport Slot

cdef enum:
    LEVELS = 64


cdef class Amta(Engine):
    cdef Pool pool
    cdef Queue level[LEVELS]  # a circular queue of levels: level l is at (base + l) % LEVELS
    cdef int base
    cdef int depth  # levels that hold a node
    cdef int reached  # no level above it holds a chunk
    cdef int room  # elements the stack can hold
    cdef int stacked  # elements on the stack
    cdef int kernel  # which operator the loops are made for: `kernels.kernel_of`
    cdef bint split  # every component of a partial has such an operator
    cdef int64_t most_together  # readings for which levels lie together as they do
    cdef bint apart  # each level lies in chunks of its own, however few there are
    cdef bint has_right
    cdef bint has_base
    cdef bint stale  # the newest leaf has changed since R0 and R1 were taken
    cdef Slot* left  # R0, the leftmost tree
    cdef Slot* right  # R1, the other trees: always base and then the newest leaf
    cdef Slot* base_of_right
    cdef Slot* stack  # R0 without the first element of each level, the topmost level first
    cdef Slot* lefts  # R0 after each eviction: room for `most_left` + 1
    cdef int64_t most_left
    cdef Slot* own_lefts  # while a block has its room from the process: the window's own
    cdef int64_t own_most_left
    cdef bint lent
    cdef Slot* flat  # the arrays of little.pxd, while a block lasts
    cdef bint lies_flat  # the nodes are there only
    cdef int64_t flat_from  # the head when they were laid there
    cdef int64_t flat_most  # leaves that `reserve_levels` was asked for
    cdef bint unstacked  # the stack is to be made before anything but a block looks
    cdef bint calm  # readings come as calm.pxd has it: parents from `raised` on are to be made, so is the stack
    cdef int64_t raised  # a tail
    cdef int64_t calm_tail  # so it goes on up to this tail and this head, −1: not
    cdef int64_t calm_head
    cdef int64_t calm_end  # and up to this one after the end of a chunk of leaves
    cdef int64_t calm_jump  # at most so many leave at once
    cdef Slot* calm_lefts  # R0 for the head `lefts_from` and those after it
    cdef int64_t lefts_from
    cdef Slot* next_leaf  # where the next leaf goes
    cdef bint flat_out  # the leaves lie in a ring, and there are no nodes (few.pxd)
    cdef Slot* few  # that ring, and behind it R0 for the leftmost tree's heads
    cdef int64_t most_few  # leaves there is room for
    cdef int64_t origin  # the leaf at its beginning, now or once
    cdef Slot** spread  # while a bulk eviction looks at them: where node 0 of each level would be; else NULL

    cdef Slot* place_of_bucket(self) except NULL nogil  # where the next leaf goes; it may be written before it is pushed
    cdef void push_placed(self) noexcept nogil  # pushes the leaf that has been written there
    cdef Slot* node(self, int level, int64_t index) noexcept nogil
    cdef int64_t first(self, int level) noexcept nogil
    cdef int64_t end(self, int level) noexcept nogil
    cdef int make_room_for(self, int64_t tail) except -1 nogil
    cdef void end_block(self) noexcept nogil
    cdef void unsettle(self) noexcept nogil
    cdef int foresee(self, int64_t head) except -1 nogil
    cdef void measure(self) noexcept nogil
    cdef void return_chunk(self) noexcept nogil
    cdef void freshen(self) noexcept nogil
    cdef void rebuild(self) noexcept nogil
    cdef void drop_to(self, int64_t head) noexcept nogil
    cdef void let_go(self) noexcept nogil
