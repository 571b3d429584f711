"""Engines with a queue of elements in chunks of fixed size; no engine itself."""

from libc.stdlib cimport free

from sluicegate.memory.chunks cimport Pool, Queue, at, clear, has_room, release, reserve, ring_bytes, shape

cdef enum:
    # chunks of 2^5 elements; what no longer fits in a few has a quarter of the longest at once: its loops run from
    # chunk to chunk, and what is begun at both ends is no great part of a thousand
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
        self.lay_out(p.width)
        return 0

    cdef void lay_out(self, int stride) noexcept nogil:
        self.stride = stride
        shape(&self.pool, stride)
        self.pool.least, self.pool.kept = min(self.pool.shift, SHORTEST), KEPT
        self.queue.lowest = <short> (self.pool.shift - self.pool.least - 2)

    cdef int make_room(self) except -1 nogil:
        if not has_room(&self.queue, self.tail) and reserve(&self.pool, &self.queue, self.tail) < 0:
            with gil:
                raise MemoryError(f"{type(self).__name__}: no memory for leaf {self.tail}")
        return 0

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.queue, self.stride, index)

    cdef int64_t bytes(self) noexcept nogil:
        return Engine.bytes(self) + self.pool.held + ring_bytes(&self.queue)

    cdef int begin(self, int64_t head) except -1:
        clear(&self.pool, &self.queue)
        return Engine.begin(self, head)
