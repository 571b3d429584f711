"""A FIFO of buckets in which any neighbouring pair may be merged: a treap of the closed ones, the open one beside it.

head and tail count the buckets from the oldest; a merge moves those behind it by one, so `tail` falls by one.
"""

from libc.stdint cimport int64_t, uint64_t

from sluicegate.engines.base cimport Engine
from sluicegate.partials.program cimport Slot
from sluicegate.engines.tree.widths cimport Term

cdef enum:  # what `merge` touched
    OLDEST = 1
    NEWEST = 2

cdef enum:  # of a bucket, since it was last given out
    GIVEN = 0
    FRESH = 1
    TOOK = 2  # it took over others

ctypedef struct Node:
    Node* left
    Node* right
    Node* up
    Node* before  # in the order of readings
    Node* after
    Node* cheapest  # of the subtree: the one whose pair with the next adds least; NULL: there is no pair
    double cost  # of merging with `after`; read where `paired`
    int64_t size  # readings of both
    uint64_t priority  # of a closed bucket
    bint paired  # both are closed
    int state
    unsigned int look  # when its pair was priced because of what is behind it


cdef class Pairs(Engine):
    cdef Term* terms
    cdef int m
    cdef bint hiding  # extremes among them are judged by what follows, too
    cdef double* base  # of each: the extreme of all behind the closed buckets, as far as the costs know it
    cdef double* known  # the same before the last change
    cdef unsigned int look
    cdef double* later  # and of all behind the open one: who keeps a tail tells it
    cdef double* behind  # and of all behind a pair, or its second bucket
    cdef double* between  # and of all behind its first one
    cdef readonly int64_t merges  # so far
    cdef int64_t due  # the number of merges from which the scales are taken anew
    cdef Node* root
    cdef Node* oldest
    cdef Node* newest  # the open bucket; NULL: empty
    cdef Node* cursor  # where `leaf` looked last
    cdef int64_t place  # its index
    cdef Node* free
    cdef void** chunk  # all that were allocated, newest first; each begins with the way to the next, in a slot's room
    cdef int64_t chunks
    cdef int64_t a_chunk  # nodes
    cdef bint rest_known

    cdef int measure(self, terms) except -1
    # merges the pair that adds least; OLDEST | NEWEST where it holds one of them; needs two buckets
    cdef int merge(self) noexcept nogil
    cdef bint wants(self, const Slot* leaf) noexcept nogil  # `leaf` and the newest are that pair: join it; needs two
    cdef void pop_newest(self) noexcept nogil  # the one before it is open again
    cdef int take_state(self, int64_t index) noexcept nogil  # GIVEN, FRESH or TOOK; GIVEN from now on
    cdef Slot* partial(self, Node* node) noexcept nogil
    cdef Slot* all(self, Node* node) noexcept nogil
