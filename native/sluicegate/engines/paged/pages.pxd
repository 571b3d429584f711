"""A tree of partials in pages: the pages around head and tail are in memory, all others in a store.

Level l of the tree belongs to tier l // shift. A page of tier t is 2^shift neighbouring nodes of level t·shift, and is
all that is stored: the shift − 1 levels above follow from it and are combined again when it is fetched. In memory a
page is a heap: node h has the children 2h and 2h + 1, the page's own nodes are the last half.
"""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.partials.program cimport Slot

cdef enum:
    LEVELS = 64

ctypedef struct Block:
    int64_t page
    Block* next  # of the free list
    Slot* heap

ctypedef struct Tier:
    Block* tail  # of the newest node; NULL: none yet
    Block* before  # the page before it, some of whose inner nodes are still to come
    Block* head  # of the oldest node, where that is neither of these
    Block* browsed  # the last that was fetched for a look


cdef class Paged(Engine):
    cdef object pager
    cdef readonly object error  # why it is faulted
    cdef object interruption  # what interrupted a call of the pager: raised by the next insertion
    cdef bint interrupted
    cdef bint lost  # what follows from the pages has to be taken anew
    cdef bint recovered
    cdef readonly int64_t sealed  # pages given to the store
    cdef readonly int64_t failures  # pages that could not be had, so far
    cdef readonly int shift
    cdef Tier tier[LEVELS]
    cdef int tier_of[LEVELS]
    cdef int bits[LEVELS]  # a page has 2^bits nodes of this level
    cdef Block* idle  # free ones
    cdef int64_t idle_blocks
    cdef int64_t blocks
    cdef int starts  # pages that the leaf being pushed begins
    cdef int start_tier[LEVELS]
    cdef int64_t start_page[LEVELS]
    cdef list outgoing  # pages that the leaf being pushed completes
    cdef int leaving  # how many
    cdef Slot* blank  # what is given for a leaf that cannot be had

    cdef Slot* node(self, int level, int64_t index) noexcept nogil
    cdef int64_t end(self, int level) noexcept nogil
    # the node one level up that appending this one makes; −1: none
    cdef int64_t parent_made_by(self, int level, int64_t index) noexcept nogil
    cdef int make_room(self, int64_t index) except -1 nogil
    cdef int seal_pages(self) noexcept
    cdef bint begin_page(self, int tier, int64_t page) noexcept nogil
    cdef void fill(self, int tier, int64_t index) noexcept nogil
    cdef int move_head(self, int64_t head) noexcept nogil
    cdef int repair(self) except -1 nogil
    cdef void recompute(self) noexcept nogil  # what follows from the pages
