"""Engines with a queue of elements in chunks of fixed size; no engine itself."""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memset

from sluicegate.engines.base cimport Engine
from sluicegate.memory.chunks cimport Pool, Queue, at, clear, has_room, held, release, reserve, ring_bytes, shape
from sluicegate.partials.program cimport Program, Slot

from sluicegate.errors import InvariantError


cdef enum:
    # chunks of 2^5 elements; what no longer fits in a few has the longest at once: its loops run from chunk to chunk
    SHORTEST = 5
    KEPT = 6  # chunks: a batch's block takes as many before it gives back as many


cdef class Queued(Engine):
    """Elements head … tail − 1; see queued.pxd."""

    def __dealloc__(self):
        clear(&self.pool, &self.queue)
        release(&self.pool)
        free(self.queue.chunk)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Engine.setup(self, p, limit)
        memset(&self.pool, 0, sizeof(Pool))
        memset(&self.queue, 0, sizeof(Queue))
        self.size = p.width * sizeof(Slot)
        return self.lay_out(1, limit)

    cdef int lay_out(self, int partials, int64_t limit) except -1:
        self.stride = partials * self.p.width
        shape_elements(&self.pool, &self.queue, self.stride)
        return 0

    cdef int make_room(self) except -1 nogil:
        if not has_room(&self.pool, &self.queue, self.tail) and reserve(&self.pool, &self.queue, self.tail) < 0:
            with gil:
                raise MemoryError(f"{type(self).__name__}: no memory for leaf {self.tail}")
        return 0

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.queue, self.stride, index)

    cdef int64_t bytes(self) noexcept nogil:
        return Engine.bytes(self) + held(&self.pool) + ring_bytes(&self.queue)

    cdef int begin(self, int64_t head) except -1:
        clear(&self.pool, &self.queue)
        return Engine.begin(self, head)

    cdef bint same(self, const Slot* a, const Slot* b) noexcept nogil:
        return memcmp(a, b, self.size) == 0

    cdef int insist(self, bint holds, str what) except -1:
        if not holds:
            raise InvariantError(f"{type(self).__name__}: {what} (leaves {self.head} … {self.tail - 1})")
        return 0


cdef void shape_elements(Pool* pool, Queue* queue, int stride) noexcept nogil:
    shape(pool, stride)
    pool.least, pool.kept = min(pool.shift, SHORTEST), KEPT
    queue.lowest = <short> (pool.shift - pool.least)


cdef int check_sizes(Queued queue, int64_t l, int64_t r, int64_t a, int64_t b) except -1:
    """Lemma 4.1: |L| + |R| + |A| + 1 = |front| − |back| and |L| = |R|, or the window is empty."""
    cdef int64_t f = queue.head, e = queue.tail
    if f == e:
        return queue.insist(l == r == a == b == e, f"pointers {l}, {r}, {a}, {b} of an empty window")
    queue.insist(f <= l <= r <= a <= b <= e, f"pointers {l}, {r}, {a}, {b}")
    return queue.insist(b - l + 1 == (b - f) - (e - b) and r - l == a - r, f"sizes by {l}, {r}, {a}, {b}")
