"""The Amortized Monoid Tree Aggregator over a store: the forest of amta.pxd, its nodes in the pages of pages.pxd."""

from libc.stdint cimport int64_t

from sluicegate.engines.base cimport Leaves
from sluicegate.engines.paged.pages cimport LEVELS, Paged
from sluicegate.partials.program cimport Slot


cdef class KvsAmta(Paged):
    cdef int depth  # levels that hold a node
    cdef int stacked
    cdef bint has_right
    cdef bint has_base
    cdef bint deferred  # the newest leaf has changed since R0 and R1 were taken
    cdef Slot* left  # R0
    cdef Slot* right  # R1: always base and then the newest leaf
    cdef Slot* base_of_right
    cdef Slot* stack

    cdef void measure(self) noexcept nogil
    cdef int raise_node(self, const Slot* leaf) noexcept nogil
    cdef void note_failure(self) noexcept nogil
    cdef void flush_deferred(self) noexcept nogil
    cdef void add_newest(self) noexcept nogil
    cdef void compute_left(self) noexcept nogil
    cdef void compute_right(self) noexcept nogil
    cdef void stack_head(self, int level) noexcept nogil
    cdef void rebuild(self) noexcept nogil
    cdef void drop_to(self, int64_t head) noexcept nogil
    cdef int refresh_spine(self) noexcept nogil
    cdef int64_t first_kept(self, Leaves leaves, void* context) noexcept nogil
    cdef int64_t descend(self, int level, int64_t index, bint started, Leaves leaves, void* context) noexcept nogil
    cdef int check_stack(self) except -1
