"""The Functional Okasaki Aggregator in compiled code: a real-time queue with aggregates, its laziness by hand.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction; n leaves
in chunks, and a cell of a partial and 7 words for each. Source: paper DABA, Figure 5, Theorems 3.2 and 3.3.

Where the paper's languages collect garbage, cells are counted: one that is in no list any more goes to a free list,
which always holds enough for the next operation, so that an eviction never asks for memory.

Cells are shared by reference count and never change. A cell's tail may be suspended: then it is rot(left, right, done),
to be computed once, when it is first looked at.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport Queued, drop_before

cdef enum:
    BLOCK = 256  # cells
    RESERVE = 8  # an operation takes four at most before it gives any back


ctypedef struct Cell:
    Cell* tail  # of a cell in the free list: the next there
    Cell* left
    Cell* right
    Cell* done  # NULL: the tail is not suspended
    int64_t references
    int64_t index  # of the leaf
    Slot* agg


cdef class Foa

ctypedef fused Lists:
    Foa


@cython.final
cdef class Foa(Queued):
    """Lists F (the oldest first), N (what of F is not yet rotated) and B (the newest first)."""

    cdef Cell* f
    cdef Cell* n
    cdef Cell* b
    cdef Cell* free_cells
    cdef int64_t free_count
    cdef void* blocks  # of cells; each begins with a pointer to the next
    cdef int64_t block_count

    def __dealloc__(self):
        free_blocks(self.blocks)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.f = self.n = self.b = NULL
        return 0

    # cells

    cdef Cell* take(self, int64_t index, Cell* tail) noexcept nogil:
        """A new cell, owned by the caller, before a tail that it shares."""
        cdef Cell* cell = new_cell(self, index)
        cell.tail, cell.left, cell.right, cell.done, cell.references = share(tail), NULL, NULL, NULL, 1
        return cell

    cdef void release_cell(self, Cell* cell) noexcept nogil:
        """Give up one reference; what nobody refers to any more is free."""
        cdef Cell* after
        while cell != NULL:
            cell.references -= 1
            if cell.references > 0:
                return
            if cell.done != NULL:
                self.release_cell(cell.left)
                self.release_cell(cell.right)
            after = cell.done if cell.done != NULL else cell.tail
            free_cell(self, cell)
            cell = after

    cdef Cell* tail_of(self, Cell* cell) noexcept nogil:
        """The list after its first element, owned by the cell; where it is suspended, it is computed now, once."""
        cdef Cell* done
        if cell == NULL:
            return NULL
        if cell.done != NULL:
            done = cell.done
            cell.tail = self.rot(cell.left, cell.right, done)
            cell.done = NULL
            self.release_cell(cell.left)
            self.release_cell(cell.right)
            self.release_cell(done)
            cell.left = cell.right = NULL
        return cell.tail

    # Figure 5

    cdef Cell* rot(self, Cell* left, Cell* right, Cell* done) noexcept nogil:
        """The list left, then right reversed, then done; |right| = |left| + 1. It belongs to the caller."""
        cdef Cell* turned = self.take(right.index, done)
        cdef Cell* out
        copy(self.p, turned.agg, self.leaf(right.index))
        if done != NULL:
            combine(self.p, turned.agg, turned.agg, done.agg)
        if left == NULL:
            return turned
        out = self.take(left.index, NULL)
        copy(self.p, out.agg, right.agg)
        if done != NULL:
            combine(self.p, out.agg, out.agg, done.agg)
        combine(self.p, out.agg, left.agg, out.agg)
        out.left, out.right, out.done = share(self.tail_of(left)), share(self.tail_of(right)), turned
        return out

    cdef void makeq(self, Cell* f, Cell* b) noexcept nogil:
        """Take over a front and a back that belong to the caller, and advance N or begin a rotation."""
        cdef Cell* n
        if self.n != NULL:
            n = share(self.tail_of(self.n))
        else:
            n = NULL if b == NULL else self.rot(f, b, NULL)
            self.release_cell(f)
            self.release_cell(b)
            f, b = share(n), NULL
        self.release_cell(self.n)
        self.f, self.n, self.b = f, n, b

    cdef int push(self, const Slot* leaf) except -1 nogil:
        """insert(v, ⟨F, N, B⟩)."""
        cdef Cell* cell
        reserve_cells(self)
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        cell = self.take(self.tail, self.b)
        fold_back(self, cell, leaf)
        self.release_cell(self.b)
        self.tail += 1
        self.makeq(self.f, cell)
        return 0

    cdef void pop(self) noexcept nogil:
        """evict(⟨F, N, B⟩)."""
        cdef Cell* f = self.f
        if self.head == self.tail:
            return
        self.makeq(share(self.tail_of(f)), self.b)
        self.release_cell(f)
        self.head += 1
        drop_before(&self.pool, &self.queue, self.head)

    cdef const Slot* total(self) noexcept nogil:
        return both(self, self.f, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        return both(self, self.tail_of(self.f), self.spare + self.p.width)

    cdef int64_t bytes(self) noexcept nogil:
        return bytes_of(self)

    cdef int begin(self, int64_t head) except -1:
        self.release_cell(self.f)
        self.release_cell(self.n)
        self.release_cell(self.b)
        self.f = self.n = self.b = NULL
        return Queued.begin(self, head)

    cdef int check(self) except -1:
        return check_lists(self)

    cdef list listed(self, const Cell* cell):
        """The leaves of a list in its order; what is suspended stays so."""
        cdef list found = []
        while cell != NULL:
            found.append(cell.index)
            if cell.done != NULL:
                return found + self.listed(cell.left) + self.listed(cell.right)[::-1] + self.listed(cell.done)
            cell = cell.tail
        return found


include "cells.pxi"


cdef inline Cell* share(Cell* cell) noexcept nogil:
    if cell != NULL:
        cell.references += 1
    return cell
