"""A finger B-tree of leaves in order of time: the engine that takes late readings; see fiba.pyx."""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Engine
from sluicegate.partials.program cimport Slot

cdef enum:
    MOST = 16  # leaves or children of a node
    APPENDED = 12  # of them stay in a node that splits at the newest end

cdef enum:
    MOST_TOUCHED = 96  # a tree of 47 levels

cdef enum Role:  # where a node stands
    INNER
    LEFT
    RIGHT
    ROOT

ctypedef struct Node:  # followed by `up` and the leaves, or `up` and `run`
    Node* parent  # of a free node: the next one
    Node* next  # leaf node
    int level
    int n  # leaves or children; the left leaf node's begin at `Fiba.start`
    int role
    bint has_up
    bint has_run
    int64_t times[MOST]  # of the leaves, or the least of each child
    Node* child[MOST]


ctypedef struct Touched:  # by splits: the highest node that took a new sibling, then pairs of siblings from above
    int n
    Node* node[MOST_TOUCHED]


cdef class Fiba(Engine):
    cdef Node* root
    cdef Node* left
    cdef Node* right
    cdef bint commutes  # the order matters to nothing but rounding
    cdef int start  # of the left leaf node, the first leaf that is still inside
    cdef Slot* suffix  # of the left leaf node: the partial of its leaves from each on
    cdef Node* free_nodes
    cdef int64_t free_count
    cdef void* blocks  # of nodes, each beginning with the address of the next
    cdef int64_t nodes  # in them
    cdef size_t node_size
    cdef Node* cursor  # where `leaf` was asked last, NULL: nowhere
    cdef int64_t cursor_first  # index of that node's first leaf

    # puts a leaf after those of its time and earlier
    cdef int insert(self, int64_t time, const Slot* leaf) except -1 nogil
    cdef void evict_through(self, int64_t cutoff) noexcept nogil  # all leaves of this time or earlier
    cdef int64_t time_at(self, int64_t index) noexcept nogil
