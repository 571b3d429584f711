"""The Functional Okasaki Aggregator: lists of cells that are shared by reference count and never change.

A cell's tail may be suspended: then it is rot(left, right, done), to be computed once, when it is first looked at.
"""

from libc.stdint cimport int64_t

from sluicegate.partials.program cimport Slot
from sluicegate.engines.queued cimport Queued

ctypedef struct Cell:
    Cell* tail  # of a cell in the free list: the next there
    Cell* left
    Cell* right
    Cell* done  # NULL: the tail is not suspended
    int64_t references
    int64_t index  # of the leaf
    Slot* agg


cdef class Foa(Queued):
    cdef Cell* f
    cdef Cell* n
    cdef Cell* b
    cdef Cell* free_cells
    cdef int64_t free_count
    cdef void* blocks  # of cells; each begins with a pointer to the next
    cdef int64_t block_count

    cdef int reserve_cells(self) noexcept nogil
    cdef Cell* take(self, int64_t index, Cell* tail) noexcept nogil
    cdef void release_cell(self, Cell* cell) noexcept nogil
    cdef Cell* tail_of(self, Cell* cell) noexcept nogil
    cdef Cell* rot(self, Cell* left, Cell* right, Cell* done) noexcept nogil
    cdef void makeq(self, Cell* f, Cell* b) noexcept nogil
    cdef const Slot* both(self, const Cell* front, Slot* out) noexcept nogil
    cdef int list_cells(self, const Cell* cell, list out) except -1
