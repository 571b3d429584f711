"""The recalculating oracle in compiled code.

Fact card: FIFO; any associative operation; insert and evict O(1), a query O(n); n partials; the baseline of every paper.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from sluicegate.engines.base cimport Block, Engine
from sluicegate.memory.chunks cimport Pool, Queue, at, clear, drop, held, release, reserve, ring_bytes, run_at, shape_by
from sluicegate.partials.program cimport Program, Slot, combine, copy

cdef extern from "lanes.h" nogil:
    enum: SLUICEGATE_ABREAST
    void lanes_add_on(const double* x, double* held, int64_t n)
    void lanes_least_on(const double* x, double* held, int64_t n)
    void lanes_greatest_on(const double* x, double* held, int64_t n)
    void lanes_merge_on(const double* x, double* means, double* squares, int64_t n, double count)

cdef enum:
    TILE = 256  # leaves that are laid out side by side at once

include "operators.pxi"


@cython.final
cdef class Recalc(Engine):
    """Leaves head … tail − 1 and nothing else."""

    def __dealloc__(self):
        clear(&self.pool, &self.leaves)
        release(&self.pool)
        free(self.leaves.chunk)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        memset(&self.leaves, 0, sizeof(Queue))
        shape_by(&self.pool, p.width, 4 if limit else 3, 4 if limit else 8, False)
        self.kernel = kernel_of(p)
        return 0

    cdef int push(self, const Slot* leaf) except -1 nogil:
        if reserve(&self.pool, &self.leaves, self.tail) < 0:
            with gil:
                raise MemoryError(f"recalc: no memory for leaf {self.tail}")
        copy(self.p, self.leaf(self.tail), leaf)
        self.tail += 1
        return 0

    cdef void join(self, const Slot* reading) noexcept nogil:
        cdef Slot* newest = self.leaf(self.tail - 1)
        combine(self.p, newest, newest, reading)

    cdef void pop(self) noexcept nogil:
        self.head += 1
        drop(&self.pool, &self.leaves, self.head)

    cdef int coarsen(self) except -1 nogil:
        """Fold pairs into a new queue under the coarser indices; the old one's chunks return to the free list."""
        cdef Queue fine = self.leaves
        cdef int64_t index, first = self.head, end = self.tail
        memset(&self.leaves, 0, sizeof(Queue))
        self.head = self.tail = first >> 1
        for index in range(first, end):
            if index & 1 and index > first:
                self.join(at(&self.pool, &fine, self.p.width, index))
            else:
                self.push(at(&self.pool, &fine, self.p.width, index))
        clear(&self.pool, &fine)
        free(fine.chunk)
        return 0

    cdef int run(self, const Block* block) except -1 nogil:
        """Windows of as many readings side by side, where the operator is known."""
        cdef int64_t i = 0
        while i < block.n:
            if self.abreast(block, i):
                self.take_abreast(block, i)
                i += SLUICEGATE_ABREAST
            else:
                self.push(block.leaves + i * self.p.width)
                self.pop_to(block.heads[i])
                if block.totals != NULL and self.head < self.tail:
                    copy(self.p, block.totals + i * self.p.width, self.total())
                i += 1
        return 0

    cdef bint abreast(self, const Block* block, int64_t i) noexcept nogil:
        """Whether one leaves for each of the next readings."""
        cdef int64_t k
        if self.kernel == ANY or block.n - i < SLUICEGATE_ABREAST or block.heads[i] > self.tail:
            return False
        for k in range(1, SLUICEGATE_ABREAST):
            if block.heads[i + k] != block.heads[i] + k:
                return False
        return True

    cdef int take_abreast(self, const Block* block, int64_t i) except -1 nogil:
        cdef int w = self.p.width, k
        cdef int64_t n = self.tail + 1 - block.heads[i]
        cdef double held[2 * SLUICEGATE_ABREAST]
        if reserve(&self.pool, &self.leaves, self.tail + SLUICEGATE_ABREAST - 1) < 0:
            with gil:
                raise MemoryError(f"recalc: no memory for leaves {self.tail} to {self.tail + SLUICEGATE_ABREAST - 1}")
        for k in range(SLUICEGATE_ABREAST):
            copy(self.p, at(&self.pool, &self.leaves, w, self.tail + k), block.leaves + (i + k) * w)
        self.tail += SLUICEGATE_ABREAST
        self.head = block.heads[i]
        if block.totals != NULL:
            self.fold_abreast(held, n)
            for k in range(SLUICEGATE_ABREAST):
                put(block.totals + (i + k) * w, w, held + k, <double> n)
        self.head = block.heads[i + SLUICEGATE_ABREAST - 1]
        drop(&self.pool, &self.leaves, self.head)
        return 0

    cdef void fold_abreast(self, double* held, int64_t n) noexcept nogil:
        """The windows of n leaves that begin with the oldest, with the one after, …; of moments, squares behind means."""
        cdef double x[TILE + SLUICEGATE_ABREAST]
        cdef int64_t j = 1, k
        self.lay_out(self.head, x, SLUICEGATE_ABREAST)
        for k in range(SLUICEGATE_ABREAST):
            held[k], held[SLUICEGATE_ABREAST + k] = x[k], 0.0
        while j < n:
            k = min(n - j, TILE)
            self.lay_out(self.head + j, x, k + SLUICEGATE_ABREAST - 1)
            if self.kernel == ADD:
                lanes_add_on(x, held, k)
            elif self.kernel == LEAST:
                lanes_least_on(x, held, k)
            elif self.kernel == GREATEST:
                lanes_greatest_on(x, held, k)
            else:
                lanes_merge_on(x, held, held + SLUICEGATE_ABREAST, k, <double> j)
            j += k

    cdef void lay_out(self, int64_t first, double* x, int64_t n) noexcept nogil:
        """The values of n leaves, which are readings."""
        cdef int w = self.p.width, value = w >> 1
        cdef int64_t j = 0, k, i
        cdef const Slot* leaves
        while j < n:
            k = min(run_at(&self.leaves, first + j), n - j)
            leaves = self.leaf(first + j)
            for i in range(k):
                x[j + i] = leaves[i * w + value].f
            j += k

    cdef const Slot* total(self) noexcept nogil:
        return self.fold(self.head)

    cdef const Slot* rest(self) noexcept nogil:
        return self.fold(self.head + 1)

    cdef const Slot* fold(self, int64_t first) noexcept nogil:
        cdef Slot* out = self.spare + (self.p.width if first > self.head else 0)
        if first >= self.tail:
            return NULL
        if self.kernel == ADD:
            fold_by(self, add_op, first, out)
        elif self.kernel == GREATEST:
            fold_by(self, greatest_op, first, out)
        elif self.kernel == LEAST:
            fold_by(self, least_op, first, out)
        elif self.kernel == MERGE:
            fold_by(self, merge_op, first, out)
        else:
            fold_by(self, any_op, first, out)
        return out

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.pool, &self.leaves, self.p.width, index)

    cdef int64_t bytes(self) noexcept nogil:
        return Engine.bytes(self) + held(&self.pool) + ring_bytes(&self.leaves)

    cdef int begin(self, int64_t head) except -1:
        clear(&self.pool, &self.leaves)
        return Engine.begin(self, head)


cdef inline void put(Slot* total, int w, const double* held, double n) noexcept nogil:
    if w == 1:
        total.f = held[0]
    else:
        total[0].f, total[1].f, total[2].f = n, held[0], held[SLUICEGATE_ABREAST]


cdef inline void fold_by(Recalc self, Op op, int64_t first, Slot* out) noexcept nogil:
    """The leaves from `first` on, oldest first, combined in registers but for partials of any width."""
    cdef int w = width_of(op, self.p)
    cdef int64_t index = first + 1, n, j
    cdef const Slot* leaves
    cdef Slot few[3]
    cdef Slot* folded = few
    if Op is Any:
        folded = out
    copy_by(op, self.p, folded, at(&self.pool, &self.leaves, w, first))
    while index < self.tail:
        n = min(run_at(&self.leaves, index), self.tail - index)
        leaves = at(&self.pool, &self.leaves, w, index)
        for j in range(n):
            combine_by(op, self.p, folded, folded, leaves + j * w)
        index += n
    if folded != out:
        copy_by(op, self.p, out, folded)
