"""The Functional Okasaki Aggregator in compiled code: a real-time queue with aggregates, its laziness by hand.

Fact card: FIFO; associative operation; O(1) worst case: at most 1 combine a query, 4 an insert, 3 an eviction; n leaves
in chunks, and a cell of a partial and 7 words for each. Source: paper DABA, Figure 5, Theorems 3.2 and 3.3. The
readable twin is sluicegate.reference.engines.foa.

Where the paper's languages collect garbage, cells are counted: one that is in no list any more goes to a free list,
which always holds enough for the next operation, so that an eviction never asks for memory.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from sluicegate.partials.program cimport Program, Slot, combine, copy
from sluicegate.engines.queued cimport Queued, drop_before

cdef enum:
    BLOCK = 256  # cells
    RESERVE = 8  # an operation takes four at most before it gives any back


@cython.final
cdef class Foa(Queued):
    """Lists F (the oldest first), N (what of F is not yet rotated) and B (the newest first)."""

    def __dealloc__(self):
        cdef void* block
        while self.blocks != NULL:
            block = self.blocks
            self.blocks = (<void**> block)[0]
            free(block)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.f = self.n = self.b = self.free_cells = NULL
        self.free_count = self.block_count = 0
        self.blocks = NULL
        return 0

    # cells

    cdef int reserve_cells(self) noexcept nogil:
        """Make sure of the cells an operation may take; −1: no memory."""
        cdef size_t size = sizeof(Cell) + self.size
        cdef char* block
        cdef Cell* cell
        cdef int k
        if self.free_count >= RESERVE:
            return 0
        block = <char*> malloc(sizeof(void*) + BLOCK * size)
        if block == NULL:
            return -1
        (<void**> block)[0] = self.blocks
        self.blocks = block
        self.block_count += 1
        for k in range(BLOCK):
            cell = <Cell*> (block + sizeof(void*) + k * size)
            cell.agg = <Slot*> (cell + 1)
            cell.tail = self.free_cells
            self.free_cells = cell
        self.free_count += BLOCK
        return 0

    cdef Cell* take(self, int64_t index, Cell* tail) noexcept nogil:
        """A new cell, owned by the caller, before a tail that it shares."""
        cdef Cell* cell = self.free_cells
        self.free_cells = cell.tail
        self.free_count -= 1
        cell.index, cell.references = index, 1
        cell.tail, cell.left, cell.right, cell.done = share(tail), NULL, NULL, NULL
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
            cell.tail = self.free_cells
            self.free_cells = cell
            self.free_count += 1
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
        if self.reserve_cells() < 0:
            with gil:
                raise MemoryError(f"foa: no memory for {BLOCK} cells")
        self.make_room()
        copy(self.p, self.leaf(self.tail), leaf)
        cell = self.take(self.tail, self.b)
        if self.b == NULL:
            copy(self.p, cell.agg, leaf)
        else:
            combine(self.p, cell.agg, self.b.agg, leaf)
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
        return self.both(self.f, self.spare)

    cdef const Slot* rest(self) noexcept nogil:
        return self.both(self.tail_of(self.f), self.spare + self.p.width)

    cdef const Slot* both(self, const Cell* front, Slot* out) noexcept nogil:
        if front == NULL or self.b == NULL:
            return front.agg if front != NULL else self.b.agg if self.b != NULL else NULL
        combine(self.p, out, front.agg, self.b.agg)
        return out

    cdef int64_t bytes(self) noexcept nogil:
        return Queued.bytes(self) + self.block_count * <int64_t> (sizeof(void*) + BLOCK * (sizeof(Cell) + self.size))

    cdef int begin(self, int64_t head) except -1:
        self.release_cell(self.f)
        self.release_cell(self.n)
        self.release_cell(self.b)
        self.f = self.n = self.b = NULL
        return Queued.begin(self, head)

    # invariants

    cdef int check(self) except -1:
        """|N| = |F| − |B|; the leaves in order; B is folded from its end. What is suspended stays so."""
        cdef Cell* cell = self.b
        cdef list front = [], todo = [], back = []
        self.list_cells(self.f, front)
        self.list_cells(self.n, todo)
        self.list_cells(self.b, back)
        sizes = f"|F|, |N|, |B| are {len(front)}, {len(todo)}, {len(back)}"
        self.insist(len(todo) == len(front) - len(back), sizes)
        whole = front + back[::-1]
        self.insist(whole == list(range(self.head, self.tail)), "its lists do not hold the leaves in order")
        while cell != NULL:
            copy(self.p, self.spare, self.leaf(cell.index))
            if cell.tail != NULL:
                combine(self.p, self.spare, cell.tail.agg, self.spare)
            if not self.same(self.spare, cell.agg):
                self.insist(False, f"aggregate of {cell.index} in the back list")
            cell = cell.tail
        return 0

    cdef int list_cells(self, const Cell* cell, list out) except -1:
        """The leaves of a list in its order; what is suspended stays so."""
        cdef list right = []
        while cell != NULL:
            out.append(cell.index)
            if cell.done != NULL:
                self.list_cells(cell.left, out)
                self.list_cells(cell.right, right)
                out.extend(reversed(right))
                cell = cell.done
            else:
                cell = cell.tail
        return 0


cdef inline Cell* share(Cell* cell) noexcept nogil:
    if cell != NULL:
        cell.references += 1
    return cell
