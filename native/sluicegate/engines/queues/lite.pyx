"""One partial an element, and of its leaf only what is asked for; no engine itself."""

from libc.stdlib cimport calloc, free

from sluicegate.memory.chunks cimport Pool, Queue, at, clear, release, reserve, ring_bytes, shape
from sluicegate.partials.kernels cimport kernel_of
from sluicegate.partials.program cimport Program, Slot, combine


cdef class Lite(Queued):
    """Elements head … tail − 1, and a queue of what is kept of their leaves; see lite.pxd."""

    def __dealloc__(self):
        clear(&self.kept_pool, &self.kept_leaves)
        release(&self.kept_pool)
        free(self.kept_leaves.chunk)
        free(self.back)

    cdef int setup(self, Program* p, int64_t limit) except -1:
        Queued.setup(self, p, limit)
        self.kernel, self.has_back = kernel_of(p), False
        self.back = <Slot*> calloc(p.width, sizeof(Slot))
        if self.back == NULL:
            raise MemoryError(f"{type(self).__name__}: no memory for a partial of {p.width} slots")
        return self.keep(p.width)

    cdef int keep(self, int slots) except -1:
        self.kept = slots
        shape(&self.kept_pool, max(slots, 1))
        return 0

    cdef inline Slot* element(self, int64_t index) noexcept nogil:
        return at(&self.queue, self.stride, index)

    cdef const Slot* with_back(self, const Slot* front, Slot* out) noexcept nogil:
        """What `front` and the back fold to."""
        if not self.has_back:
            return front
        combine(self.p, out, front, self.back)
        return out

    cdef int reserve_kept(self) except -1 nogil:
        if reserve(&self.kept_pool, &self.kept_leaves, self.tail) < 0:
            with gil:
                raise MemoryError(f"{type(self).__name__}: no memory for leaf {self.tail}")
        return 0

    cdef Slot* leaf(self, int64_t index) noexcept nogil:
        return at(&self.kept_leaves, self.kept, index)

    cdef int64_t bytes(self) noexcept nogil:
        return Queued.bytes(self) + self.kept_pool.held + ring_bytes(&self.kept_leaves)

    cdef int begin(self, int64_t head) except -1:
        clear(&self.kept_pool, &self.kept_leaves)
        self.has_back = False
        return Queued.begin(self, head)
