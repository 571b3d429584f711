"""The Imperative Okasaki Aggregator: one cell an element, relinked in place; the only suspended rotation stands beside.

While `last` is there, the front list goes on after it with the lists left, right (reversed) and done.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.engines.queued cimport Queued

ctypedef struct Link:
    Link* next
    int64_t index  # of the leaf
    Slot* agg


cdef class Ioa(Queued):
    cdef Link* f
    cdef Link* n
    cdef Link* b
    cdef Link* last
    cdef Link* left
    cdef Link* right
    cdef Link* done
    cdef Link* free_links
    cdef void* blocks  # of cells; each begins with a pointer to the next
    cdef int64_t block_count

    cdef int reserve_links(self) noexcept nogil
    cdef Link* next_of(self, Link* link) noexcept nogil
    cdef Link* rotate(self) noexcept nogil
    cdef void makeq(self) noexcept nogil
    cdef void free_list(self, Link* link) noexcept nogil
    cdef const Slot* both(self, const Link* front, Slot* out) noexcept nogil
    cdef list front_of(self, const Link* link)
