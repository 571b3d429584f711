"""The Imperative Okasaki Aggregator in compiled code: FOA without laziness or copies.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction; n leaves
in chunks, and a cell of a partial and 3 words for each. Source: paper DABA, 3.2.

At most one rotation is suspended (Lemma 3.1): while `last` is there, the front list goes on after it with the lists
left, right (reversed) and done. No older version of the queue is ever asked for, so a rotated element stays in its
cell: it gets a new aggregate and, from the back list, a new link.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport Queued, drop_before

cdef enum:
    BLOCK = 256  # cells
    RESERVE = 1  # what an operation takes


ctypedef struct Cell:
    Cell* tail
    int64_t index  # of the leaf
    Slot* agg


cdef class Ioa

ctypedef fused Lists:
    Ioa


@cython.final
cdef class Ioa(Queued):
    """Lists F (the oldest first) and B (the newest first), N within F, and the lists of a rotation under way."""

    cdef Cell* f
    cdef Cell* n
    cdef Cell* b
    cdef Cell* last
    cdef Cell* left
    cdef Cell* right
    cdef Cell* done
    cdef Cell* free_cells
    cdef int64_t free_count
    cdef void* blocks  # of cells; each begins with a pointer to the next
    cdef int64_t block_count

    def __dealloc__(self):
        free_blocks(self.blocks)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.f = self.n = self.b = self.last = self.left = self.right = self.done = NULL
        return 0

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """Push on the back list, then one step of the rotation."""
        cdef Cell* cell
        reserve_cells(self)
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        cell = new_cell(self, self.tail)
        fold_back(self, cell, leaf)
        cell.tail = self.b
        self.b = cell
        self.tail += 1
        self.makeq()
        return 0

    cdef void pop(self) noexcept nogil:
        """Pop from the front list, then one step of the rotation."""
        cdef Cell* oldest = self.f
        if self.head == self.tail:
            return
        self.f = self.tail_of(oldest)
        self.makeq()
        free_cell(self, oldest)
        self.head += 1
        drop_before(&self.pool, &self.queue, self.head)

    cdef inline Cell* tail_of(self, Cell* cell) noexcept nogil:
        if cell == self.last:
            self.rotate()
        return cell.tail

    cdef void makeq(self) noexcept nogil:
        if self.n != NULL:
            self.n = self.tail_of(self.n)
            return
        if self.b != NULL:
            self.left, self.right = self.f, self.b
            self.done = self.b = self.last = NULL
            self.f = self.rotate()
        self.n = self.f

    cdef Cell* rotate(self) noexcept nogil:
        """Move one element of `right` to `done`, and the first of `left`, or `done` itself, to the end of F."""
        cdef Cell* left = self.left
        cdef Cell* turned = self.right
        cdef Cell* added = turned
        self.right = turned.tail
        if left != NULL:
            if self.done != NULL:
                combine(self.p, turned.agg, turned.agg, self.done.agg)
            combine(self.p, left.agg, left.agg, turned.agg)
            self.left, added = left.tail, left
        copy(self.p, turned.agg, self.leaf(turned.index))
        if self.done != NULL:
            combine(self.p, turned.agg, turned.agg, self.done.agg)
        turned.tail = self.done
        self.done = turned
        if self.last != NULL:
            self.last.tail = added
        self.last = left
        return added

    cdef const Slot* total(self) noexcept nogil:
        return both(self, self.f, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        return NULL if self.f == NULL else both(self, self.tail_of(self.f), self.spare + self.p.width)

    cdef int64_t bytes(self) noexcept nogil:
        return bytes_of(self)

    cdef int begin(self, int64_t head) except -1:
        while self.last != NULL:
            self.rotate()
        self.free_list(self.f)
        self.free_list(self.b)
        self.f = self.n = self.b = NULL
        return Queued.begin(self, head)

    cdef void free_list(self, Cell* cell) noexcept nogil:
        cdef Cell* after
        while cell != NULL:
            after = cell.tail
            free_cell(self, cell)
            cell = after

    cdef int check(self) except -1:
        return check_lists(self)

    cdef list listed(self, const Cell* cell):
        """The leaves of a list in its order; a suspended rotation stays so."""
        cdef list found = []
        while cell != NULL:
            found.append(cell.index)
            if cell == self.last:
                return found + self.listed(self.left) + self.listed(self.right)[::-1] + self.listed(self.done)
            cell = cell.tail
        return found


include "cells.pxi"
